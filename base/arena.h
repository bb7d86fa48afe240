/* One block of memory for everything a session needs, sized at open, cut in pieces, never grown.
 *
 * In: the pieces, asked for twice: first with a measuring arena (base NULL), which only adds sizes up, then with a real
 * one. Out: pieces aligned to 64 bytes. The block is fresh pages from the system (huge pages where it gives them),
 * untouched, so that the thread that first writes a piece decides its NUMA
 * node. */
#ifndef FR_BASE_ARENA_H
#define FR_BASE_ARENA_H

#include "forerun.h"

typedef struct fr_arena {
    uint8_t *base; /* NULL: measuring */
    size_t used, size;
    bool overflow; /* a size exceeded size_t, or a piece the block; `used` is then at its maximum */
} fr_arena;

/* Gives count * item bytes (overflow-checked), aligned to 64 bytes. Returns NULL while measuring, and, with `overflow`
 * set, if the bytes do not fit. A measuring arena that overflows measures SIZE_MAX, which fr_arena_open refuses, so
 * the caller need not look at the flag. */
void *fr_arena_take(fr_arena *arena, size_t count, size_t item);

/* Returns FR_MEMORY if any piece was refused. Every layout ends with this call, so that no refusal goes unseen. what:
 * names the arena in the error line. */
fr_status fr_arena_check(const fr_arena *arena, const char *what);

/* Takes `size` bytes of pages from the system. what: names the arena in the error line. */
fr_status fr_arena_open(fr_arena *arena, size_t size, const char *what);

/* Keeps the system from using huge pages from byte `from` on, so that rows of which only a part is touched take memory
 * for that part alone. Call it before any of these bytes is touched. */
void fr_arena_small_pages(const fr_arena *arena, size_t from);
void fr_arena_close(fr_arena *arena);

#endif
