/* Multiplies float weights by rows, with the 16 partial sums in 4 registers. The contracts are fr_matmul_fn and
 * fr_gather_fn in kernels.h.
 *
 * A tile is 2 outputs x up to 3 rows. A step of 4 columns is 6 multiply-adds on 5 loads and 2 conversions. 24 registers
 * hold sums, 2 hold weights, and the others hold rows. The first tile of rows reads both weight rows from memory; later
 * tiles find these rows in the L1 cache. */
#include "kernels/simd_neon.h"

enum { FEATURES = 2, ROWS = 3, GATHERED = 4 };

FR_INLINE float32x4_t load_f16(const char *w) {
    return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8((const uint8_t *)w)));
}

FR_INLINE float32x4_t load_bf16(const char *w) {
    uint16x4_t half = vreinterpret_u16_u8(vld1_u8((const uint8_t *)w));
    return vreinterpretq_f32_u32(vshll_n_u16(half, 16));
}

/* Describes a tile of `rows` rows from `row` on, and of FEATURES outputs from `feature` on. If fewer outputs are left,
 * the tile stores only these. */
FR_INLINE dots_job tile_of(const fr_matmul *job, size_t row, size_t feature, const char *const *w, size_t rows) {
    size_t left = job->features - feature;
    return (dots_job){.y = job->y + row * job->y_stride + feature,
                      .y_stride = job->y_stride,
                      .x = job->x + row * job->x_stride,
                      .x_stride = job->x_stride,
                      .rows = rows,
                      .w = w,
                      .features = FEATURES,
                      .kept = left < FEATURES ? left : FEATURES,
                      .cols = job->cols};
}

/* Computes all outputs, FEATURES at a time. For each group of outputs, the rows are divided evenly into as few tiles as
 * possible. */
FR_INLINE void matmul(load_fn *load, size_t width, fr_matmul job) {
    for (size_t o = 0; o < job.features; o += FEATURES) {
        size_t kept = job.features - o < FEATURES ? job.features - o : FEATURES;
        const char *w = (const char *)job.w + o * job.w_stride;
        const char *const w_rows[FEATURES] = {w, w + (kept - 1) * job.w_stride};
        size_t tiles = (job.rows + ROWS - 1) / ROWS;
        for (size_t r = 0, count; r < job.rows; r += count, tiles--) {
            count = (job.rows - r + tiles - 1) / tiles;
            switch (count) {
            case 1: dots(load, width, tile_of(&job, r, o, w_rows, 1)); break;
            case 2: dots(load, width, tile_of(&job, r, o, w_rows, 2)); break;
            default: dots(load, width, tile_of(&job, r, o, w_rows, 3));
            }
        }
    }
}

/* Multiplies one row with weight rows that are not neighbours. Outputs past the end repeat the last weight row and are
 * not stored. */
FR_INLINE void gather(load_fn *load, size_t width, fr_gather job) {
    for (size_t j = 0; j < job.count; j += GATHERED) {
        size_t kept = job.count - j < GATHERED ? job.count - j : GATHERED;
        const char *w_rows[GATHERED];
        for (size_t o = 0; o < GATHERED; o++)
            w_rows[o] = (const char *)job.w + (size_t)job.ids[j + (o < kept ? o : kept - 1)] * job.w_stride;
        dots(load, width, (dots_job){job.y + j, 0, job.x, 0, 1, w_rows, GATHERED, kept, job.cols});
    }
}

void fr_matmul_f32_neon(const fr_matmul *job) {
    matmul(load_f32, 4, *job);
}

void fr_matmul_f16_neon(const fr_matmul *job) {
    matmul(load_f16, 2, *job);
}

void fr_matmul_bf16_neon(const fr_matmul *job) {
    matmul(load_bf16, 2, *job);
}

void fr_gather_f32_neon(const fr_gather *job) {
    gather(load_f32, 4, *job);
}

void fr_gather_f16_neon(const fr_gather *job) {
    gather(load_f16, 2, *job);
}

void fr_gather_bf16_neon(const fr_gather *job) {
    gather(load_bf16, 2, *job);
}
