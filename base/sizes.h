/* Returns the smaller or the larger of two sizes. */
#ifndef FR_BASE_SIZES_H
#define FR_BASE_SIZES_H

#include <stddef.h>

static inline size_t fr_smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static inline size_t fr_larger(size_t a, size_t b) {
    return a > b ? a : b;
}

#endif
