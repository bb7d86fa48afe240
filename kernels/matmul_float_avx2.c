/* Float weights times rows, 16 partial sums in two registers. Contracts fr_matmul_fn and fr_gather_fn in kernels.h.
 *
 * A tile is 4 outputs x 1 row, or 2 outputs x 2 or 3 rows: at least 8 sums in flight, as the latency of a multiply-add
 * asks for, and at most 12 + 2 + 1 of the 16 registers. Its weight rows are read once from memory, by the first tile of
 * rows; later ones find them in the cache. */
#include "kernels/simd_avx2.h"

enum { OUTS = 4, ROWS = 3 };

/* 8 weights as floats, from the i-th on. */
typedef __m256 load_fn(const char *w, size_t i);

FR_INLINE __m256 load_f32(const char *w, size_t i) {
    return _mm256_loadu_ps((const float *)(const void *)(w + 4 * i));
}

FR_INLINE __m256 load_f16(const char *w, size_t i) {
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(w + 2 * i)));
}

FR_INLINE __m256 load_bf16(const char *w, size_t i) {
    __m128i half = _mm_loadu_si128((const __m128i *)(const void *)(w + 2 * i));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}

/* A kernel's weight type. */
typedef struct weights {
    load_fn *load;
    size_t size;
} weights;

/* A tile's sums; half h of 16 columns has its own register. */
typedef __m256 sums[ROWS][OUTS][2];

/* 16 columns from i on, of which the first `count` are used. */
FR_INLINE void step(load_fn *load, sums p, size_t rows, size_t outs, const char *const *w, const float *x,
                    size_t x_stride, size_t i, size_t count) {
#pragma GCC unroll 2
    for (size_t h = 0; h < 2; h++) {
        __m256 mask = lane_mask((int)count - 8 * (int)h), wide[OUTS];
#pragma GCC unroll 4
        for (size_t o = 0; o < outs; o++) wide[o] = load(w[o], i + 8 * h);
#pragma GCC unroll 3
        for (size_t r = 0; r < rows; r++) {
            __m256 values = _mm256_loadu_ps(x + r * x_stride + i + 8 * h);
#pragma GCC unroll 4
            for (size_t o = 0; o < outs; o++) {
                __m256 sum = _mm256_fmadd_ps(wide[o], values, p[r][o][h]);
                p[r][o][h] = count == 16 ? sum : _mm256_blendv_ps(p[r][o][h], sum, mask);
            }
        }
    }
}

/* The last columns, from i on, copied to where 16 can be read. */
FR_INLINE void last_step(weights type, sums p, size_t rows, size_t outs, const char *const *w, const float *x,
                         size_t x_stride, size_t i, size_t count) {
    float values[ROWS][16] = {0};
    char copies[OUTS][64] = {0};
    const char *w_copies[OUTS];
    for (size_t r = 0; r < rows; r++) memcpy(values[r], x + r * x_stride + i, count * sizeof *x);
    for (size_t o = 0; o < outs; o++) w_copies[o] = memcpy(copies[o], w[o] + i * type.size, count * type.size);
    step(type.load, p, rows, outs, w_copies, values[0], 16, 0, count);
}

/* y[r * y_stride + o] for `rows` rows and the first `stored` of `outs` outputs; rows and outs are constants. */
FR_INLINE void tile(weights type, float *y, size_t y_stride, const float *x, size_t x_stride, size_t rows,
                    const char *const *w, size_t cols, size_t outs, size_t stored) {
    sums p;
#pragma GCC unroll 3
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (size_t o = 0; o < outs; o++) p[r][o][0] = p[r][o][1] = _mm256_setzero_ps();
    size_t i = 0;
    for (; i + 16 <= cols; i += 16) step(type.load, p, rows, outs, w, x, x_stride, i, 16);
    if (i < cols) last_step(type, p, rows, outs, w, x, x_stride, i, cols - i);
#pragma GCC unroll 3
    for (size_t r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (size_t o = 0; o < outs; o++) {
            float sum = sum16(p[r][o][0], p[r][o][1]);
            if (o < stored) y[r * y_stride + o] = sum;
        }
}

/* One row, by its weight rows. Outputs past the end repeat the last and are not stored. */
FR_INLINE void gather(weights type, float *y, const float *x, const char *w, size_t w_stride, size_t cols,
                      const int32_t *ids, size_t count) {
    for (size_t j = 0; j < count; j += 4) {
        size_t left = count - j;
        const char *w_rows[4];
        for (size_t o = 0; o < 4; o++) {
            size_t at = j + (o < left ? o : left - 1);
            w_rows[o] = w + (ids ? (size_t)ids[at] : at) * w_stride;
        }
        tile(type, y + j, 0, x, 0, 1, w_rows, cols, 4, left);
    }
}

/* Two or more rows are split evenly over tiles of 2 or 3. */
FR_INLINE void matmul(weights type, float *y, size_t y_stride, const float *x, size_t x_stride, size_t rows,
                      const char *w, size_t w_stride, size_t cols, size_t outs) {
    if (rows == 1) {
        gather(type, y, x, w, w_stride, cols, NULL, outs);
        return;
    }
    for (size_t o = 0; o < outs; o += 2) {
        size_t left = outs - o;
        const char *const w_rows[2] = {w + o * w_stride, w + (left > 1 ? o + 1 : o) * w_stride};
        for (size_t r = 0; r < rows;) {
            float *y_tile = y + r * y_stride + o;
            const float *x_tile = x + r * x_stride;
            if ((rows - r) % 3 == 0) {
                tile(type, y_tile, y_stride, x_tile, x_stride, 3, w_rows, cols, 2, left);
                r += 3;
            } else {
                tile(type, y_tile, y_stride, x_tile, x_stride, 2, w_rows, cols, 2, left);
                r += 2;
            }
        }
    }
}

static const weights f32 = {load_f32, 4}, f16 = {load_f16, 2}, bf16 = {load_bf16, 2};

void fr_matmul_f32_avx2(float *y, size_t y_stride, const float *x, size_t x_stride, size_t rows, const void *w,
                        size_t w_stride, size_t cols, size_t outs) {
    matmul(f32, y, y_stride, x, x_stride, rows, w, w_stride, cols, outs);
}

void fr_matmul_f16_avx2(float *y, size_t y_stride, const float *x, size_t x_stride, size_t rows, const void *w,
                        size_t w_stride, size_t cols, size_t outs) {
    matmul(f16, y, y_stride, x, x_stride, rows, w, w_stride, cols, outs);
}

void fr_matmul_bf16_avx2(float *y, size_t y_stride, const float *x, size_t x_stride, size_t rows, const void *w,
                         size_t w_stride, size_t cols, size_t outs) {
    matmul(bf16, y, y_stride, x, x_stride, rows, w, w_stride, cols, outs);
}

void fr_gather_f32_avx2(float *y, const float *x, const void *w, size_t w_stride, size_t cols, const int32_t *ids,
                        size_t count) {
    gather(f32, y, x, w, w_stride, cols, ids, count);
}

void fr_gather_f16_avx2(float *y, const float *x, const void *w, size_t w_stride, size_t cols, const int32_t *ids,
                        size_t count) {
    gather(f16, y, x, w, w_stride, cols, ids, count);
}

void fr_gather_bf16_avx2(float *y, const float *x, const void *w, size_t w_stride, size_t cols, const int32_t *ids,
                         size_t count) {
    gather(bf16, y, x, w, w_stride, cols, ids, count);
}
