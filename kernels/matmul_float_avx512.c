/* Float weights times rows, 16 partial sums a register. Contracts fr_matmul_fn and fr_gather_fn in kernels.h.
 *
 * A tile is 4 outputs x up to 6 rows: each weight register is converted once and used for every row, each activation
 * register for 4 outputs. With 6 rows a step of 16 columns is 24 multiply-adds on 10 loads, in 24 + 4 + 1 registers. The
 * four weight rows of a tile are read once from memory, by the first tile of rows; later ones find them in the L1 or L2
 * cache. */
#include "kernels/simd_avx512.h"

enum { OUTS = 4, ROWS = 6 };

/* 16 weights as floats, of which only the lanes of the mask are read. */
typedef __m512 load_fn(const char *w, size_t i, __mmask16 mask);

FR_INLINE __m512 load_f32(const char *w, size_t i, __mmask16 mask) {
    return _mm512_maskz_loadu_ps(mask, w + 4 * i);
}

FR_INLINE __m512 load_f16(const char *w, size_t i, __mmask16 mask) {
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, w + 2 * i));
}

FR_INLINE __m512 load_bf16(const char *w, size_t i, __mmask16 mask) {
    __m256i half = _mm256_maskz_loadu_epi16(mask, w + 2 * i);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

/* One step of a tile: up to 16 columns, from i on. */
FR_INLINE void step(load_fn *load, __m512 p[ROWS][OUTS], const char *const *w, const float *x, size_t x_stride,
                    size_t rows, size_t i, __mmask16 mask) {
    __m512 weights[OUTS];
#pragma GCC unroll 4
    for (size_t o = 0; o < OUTS; o++) weights[o] = load(w[o], i, mask);
#pragma GCC unroll 6
    for (size_t r = 0; r < rows; r++) {
        __m512 values = load_lanes(x + r * x_stride + i, mask);
#pragma GCC unroll 4
        for (size_t o = 0; o < OUTS; o++) p[r][o] = _mm512_mask3_fmadd_ps(weights[o], values, p[r][o], mask);
    }
}

/* y[r * y_stride + o] for `rows` rows, a constant, and the outputs of the mask. */
FR_INLINE void tile(load_fn *load, float *y, size_t y_stride, const float *x, size_t x_stride, size_t rows,
                    const char *const *w, size_t cols, __mmask8 outs) {
    __m512 p[ROWS][OUTS];
#pragma GCC unroll 6
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (size_t o = 0; o < OUTS; o++) p[r][o] = _mm512_setzero_ps();
    size_t i = 0;
    for (; i + 16 <= cols; i += 16) step(load, p, w, x, x_stride, rows, i, 0xffff);
    if (i < cols) step(load, p, w, x, x_stride, rows, i, lanes(cols - i));
#pragma GCC unroll 6
    for (size_t r = 0; r < rows; r++)
        _mm_mask_storeu_ps(y + r * y_stride, outs, sum16_of_4(p[r][0], p[r][1], p[r][2], p[r][3]));
}

/* Rows are split evenly over as few tiles as can be. */
FR_INLINE void matmul(load_fn *load, float *y, size_t y_stride, const float *x, size_t x_stride, size_t rows,
                      const char *w, size_t w_stride, size_t cols, size_t outs) {
    for (size_t o = 0; o < outs; o += OUTS) {
        size_t last = outs - o < OUTS ? outs - o - 1 : OUTS - 1;
        const char *first = w + o * w_stride;
        const char *const w_rows[OUTS] = {first, first + (last < 1 ? last : 1) * w_stride,
                                          first + (last < 2 ? last : 2) * w_stride, first + last * w_stride};
        __mmask8 mask = (__mmask8)((2u << last) - 1);
        size_t tiles = (rows + ROWS - 1) / ROWS;
        for (size_t r = 0, count; r < rows; r += count, tiles--) {
            count = (rows - r + tiles - 1) / tiles;
            float *y_tile = y + r * y_stride + o;
            const float *x_tile = x + r * x_stride;
            switch (count) {
            case 1: tile(load, y_tile, y_stride, x_tile, x_stride, 1, w_rows, cols, mask); break;
            case 2: tile(load, y_tile, y_stride, x_tile, x_stride, 2, w_rows, cols, mask); break;
            case 3: tile(load, y_tile, y_stride, x_tile, x_stride, 3, w_rows, cols, mask); break;
            case 4: tile(load, y_tile, y_stride, x_tile, x_stride, 4, w_rows, cols, mask); break;
            case 5: tile(load, y_tile, y_stride, x_tile, x_stride, 5, w_rows, cols, mask); break;
            default: tile(load, y_tile, y_stride, x_tile, x_stride, 6, w_rows, cols, mask);
            }
        }
    }
}

/* Outputs past the end repeat the last weight row and are not stored. */
FR_INLINE void gather(load_fn *load, float *y, const float *x, const char *w, size_t w_stride, size_t cols,
                      const int32_t *ids, size_t count) {
    for (size_t j = 0; j < count; j += OUTS) {
        size_t last = count - j < OUTS ? count - j - 1 : OUTS - 1;
        const char *w_rows[OUTS];
        for (size_t o = 0; o < OUTS; o++) w_rows[o] = w + (size_t)ids[j + (o < last ? o : last)] * w_stride;
        tile(load, y + j, 0, x, 0, 1, w_rows, cols, (__mmask8)((2u << last) - 1));
    }
}

void fr_matmul_f32_avx512(float *y, size_t y_stride, const float *x, size_t x_stride, size_t rows, const void *w,
                          size_t w_stride, size_t cols, size_t outs) {
    matmul(load_f32, y, y_stride, x, x_stride, rows, w, w_stride, cols, outs);
}

void fr_matmul_f16_avx512(float *y, size_t y_stride, const float *x, size_t x_stride, size_t rows, const void *w,
                          size_t w_stride, size_t cols, size_t outs) {
    matmul(load_f16, y, y_stride, x, x_stride, rows, w, w_stride, cols, outs);
}

void fr_matmul_bf16_avx512(float *y, size_t y_stride, const float *x, size_t x_stride, size_t rows, const void *w,
                           size_t w_stride, size_t cols, size_t outs) {
    matmul(load_bf16, y, y_stride, x, x_stride, rows, w, w_stride, cols, outs);
}

void fr_gather_f32_avx512(float *y, const float *x, const void *w, size_t w_stride, size_t cols, const int32_t *ids,
                          size_t count) {
    gather(load_f32, y, x, w, w_stride, cols, ids, count);
}

void fr_gather_f16_avx512(float *y, const float *x, const void *w, size_t w_stride, size_t cols, const int32_t *ids,
                          size_t count) {
    gather(load_f16, y, x, w, w_stride, cols, ids, count);
}

void fr_gather_bf16_avx512(float *y, const float *x, const void *w, size_t w_stride, size_t cols, const int32_t *ids,
                           size_t count) {
    gather(load_bf16, y, x, w, w_stride, cols, ids, count);
}
