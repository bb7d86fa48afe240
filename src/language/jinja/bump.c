/* Takes pieces from blocks that double in size (bump.h). */
#include "src/language/jinja/bump.h"

#include <stdlib.h>
#include <string.h>

/* Number of bytes of the first block. If it is 1, every piece gets a block of its own, so that a sanitizer detects
 * reads beyond a piece. */
#ifndef FR_BUMP_FIRST
#define FR_BUMP_FIRST ((size_t)16 << 10)
#endif
#define LARGEST   ((size_t)1 << 20)
#define ALIGNMENT ((size_t)16)

struct fr_jinja_bump_block {
    fr_jinja_bump_block *next;
    size_t size;
    _Alignas(16) char bytes[];
};

static bool open_block(fr_jinja_bump *bump, size_t needed) {
    size_t size = FR_BUMP_FIRST == 1 ? 1 : bump->blocks ? 2 * bump->blocks->size : FR_BUMP_FIRST;
    if (size > LARGEST) size = LARGEST;
    if (size < needed) size = needed;
    fr_jinja_bump_block *block = calloc(1, sizeof *block + size);
    if (!block) {
        bump->refused = FR_MEMORY;
        return false;
    }
    block->size = size;
    block->next = bump->blocks;
    bump->blocks = block;
    bump->at = block->bytes;
    bump->end = block->bytes + size;
    return true;
}

void *fr_jinja_bump_take(fr_jinja_bump *bump, size_t count, size_t item) {
    size_t bytes;
    bool fits = !__builtin_mul_overflow(count, item, &bytes) && bytes <= bump->limit &&
                !__builtin_add_overflow(bytes, -bytes % ALIGNMENT, &bytes) && bytes <= bump->limit - bump->taken;
    if (!fits) {
        bump->refused = FR_INPUT;
        return NULL;
    }
    if (bytes == 0) bytes = ALIGNMENT;
    if (bytes > (size_t)(bump->end - bump->at) && !open_block(bump, bytes)) return NULL;
    void *piece = bump->at;
    bump->at += bytes;
    bump->taken += bytes;
    return piece;
}

void fr_jinja_bump_free(fr_jinja_bump *bump) {
    for (fr_jinja_bump_block *block = bump->blocks; block;) {
        fr_jinja_bump_block *next = block->next;
        free(block);
        block = next;
    }
    *bump = (fr_jinja_bump){.limit = bump->limit};
}
