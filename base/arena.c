/* Implements the arena of arena.h as a bump pointer over anonymous pages. */
#include "base/arena.h"

#include <sys/mman.h>

#include "base/error.h"

#define ALIGNMENT  ((size_t)64)
#define HUGE_PAGE  ((size_t)2 << 20)
#define SMALL_PAGE ((size_t)64 << 10) /* a multiple of the page size on every system */

/* Marks the arena as full for good. An arena that only measures then reports SIZE_MAX, a size that no block can
 * have. */
static void *refuse(fr_arena *arena) {
    arena->overflow = true;
    arena->used = arena->base ? arena->size : SIZE_MAX;
    return NULL;
}

void *fr_arena_take(fr_arena *arena, size_t count, size_t item) {
    size_t bytes, end;
    if (__builtin_mul_overflow(count, item, &bytes)) return refuse(arena);
    if (__builtin_add_overflow(bytes, -bytes % ALIGNMENT, &bytes)) return refuse(arena);
    if (__builtin_add_overflow(arena->used, bytes, &end)) return refuse(arena);
    if (arena->base && end > arena->size) return refuse(arena);
    uint8_t *piece = arena->base ? arena->base + arena->used : NULL;
    arena->used = end;
    return piece;
}

fr_status fr_arena_check(const fr_arena *arena, const char *what) {
    if (!arena->overflow) return FR_OK;
    return fr_fail(FR_MEMORY, "%s needs more memory than the %zu bytes that were allocated", what, arena->size);
}

fr_status fr_arena_open(fr_arena *arena, size_t size, const char *what) {
    *arena = (fr_arena){0};
    /* An empty arena has a page too, because an arena whose base is NULL would be a measuring arena. */
    void *base = mmap(NULL, size ? size : 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return fr_fail_memory(what, size);
    if (size >= HUGE_PAGE)
        madvise(base, size, MADV_HUGEPAGE); /* only a hint: without huge pages everything works, but
                                             * slower */
    *arena = (fr_arena){.base = base, .size = size};
    return FR_OK;
}

void fr_arena_small_pages(const fr_arena *arena, size_t from) {
    size_t begin = (from + SMALL_PAGE - 1) / SMALL_PAGE * SMALL_PAGE;
    if (begin < arena->size) madvise(arena->base + begin, arena->size - begin, MADV_NOHUGEPAGE);
}

void fr_arena_close(fr_arena *arena) {
    if (arena->base) munmap(arena->base, arena->size ? arena->size : 1);
    *arena = (fr_arena){0};
}
