/* One block of memory for everything a session needs, sized at open, cut in pieces, never grown.
 *
 * In: the pieces, asked for twice: first with a measuring arena (base NULL), which only adds sizes up, then with a real
 * one. Out: pieces aligned to 64 bytes. The block is fresh pages from the system (huge pages where it gives them),
 * untouched, so that the thread that first writes a piece decides its NUMA node.
 */
#ifndef FR_BASE_ARENA_H
#define FR_BASE_ARENA_H

#include "forerun.h"

typedef struct fr_arena {
    uint8_t *base; /* NULL: measuring */
    size_t used, size;
    bool overflow; /* a size did not fit size_t, or a piece not the block; then `used` is as large as can be */
} fr_arena;

/* count * item bytes (overflow-checked), 64-byte aligned. NULL while measuring and, `overflow` set, if they don't fit.
 * A measuring arena that overflows measures SIZE_MAX, which fr_arena_open refuses: nobody has to look at the flag. */
void *fr_arena_take(fr_arena *arena, size_t count, size_t item);

/* FR_MEMORY if any piece was refused: called at the end of every layout, so that no refusal goes unseen. what: for the
 * error line. */
fr_status fr_arena_check(const fr_arena *arena, const char *what);

/* Takes `size` bytes of pages from the system; what: for the error line. */
fr_status fr_arena_open(fr_arena *arena, size_t size, const char *what);

/* Nothing from byte `from` on becomes huge pages: of rows that are touched in part what isn't touched takes no memory
 * then. Before any of it is. */
void fr_arena_small_pages(const fr_arena *arena, size_t from);
void fr_arena_close(fr_arena *arena);

#endif
