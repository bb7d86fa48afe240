/* Takes one block of memory for everything that a session needs. The block's size is found when the session opens. The
 * block is cut into pieces and never grows.
 *
 * In: the pieces, which the caller requests twice: first from a measuring arena (base NULL), which only adds up sizes,
 * then from a real one. Out: pieces aligned to 64 bytes. The block consists of fresh pages, huge ones if the system
 * gives them. No thread has touched them, so the thread that first writes to a piece decides the piece's NUMA node. */
#ifndef FR_BASE_ARENA_H
#define FR_BASE_ARENA_H

#include "forerun.h"

typedef struct fr_arena {
    uint8_t *base; /* NULL in a measuring arena, which only adds up sizes */
    size_t used, size;
    bool overflow; /* true if a size did not fit size_t, or if a piece did not fit the block. In a measuring arena
                    * `used` is then SIZE_MAX */
} fr_arena;

/* Gives `count` items of `item` bytes each, aligned to 64 bytes. A measuring arena only counts the bytes and returns
 * NULL. If the bytes do not fit, or their number overflows, the call sets `overflow` and returns NULL. The caller of a
 * measuring arena need not check the flag: after an overflow the measured size is SIZE_MAX, which fr_arena_open
 * refuses. */
void *fr_arena_take(fr_arena *arena, size_t count, size_t item);

/* Returns FR_MEMORY if any piece was refused. Code that takes pieces from an arena ends with this call, so that a
 * refusal cannot be overlooked. what: names the arena in the error line. */
fr_status fr_arena_check(const fr_arena *arena, const char *what);

/* Takes `size` bytes of pages from the system. what: names the arena in the error line. */
fr_status fr_arena_open(fr_arena *arena, size_t size, const char *what);

/* Makes the system use small pages from byte `from` on. A row that is touched only in part then takes memory only for
 * that part. Call this before any of these bytes is touched. */
void fr_arena_small_pages(const fr_arena *arena, size_t from);
void fr_arena_close(fr_arena *arena);

#endif
