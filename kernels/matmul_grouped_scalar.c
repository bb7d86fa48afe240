/* Defines the product of tiles of grouped codes and quantized rows. The contract is fr_matmul_grouped_fn in
 * kernels.h. */
#include "kernels/scalar.h"
#include "quant/packed.h"

/* Adds run `run` of a block to the chain of an output. */
static float add_run(const fr_grouped_block *block, size_t run, bool biased, const fr_qblock *x, float acc) {
    const uint8_t *codes = block->codes + run * FR_GROUPED_RUN;
    int32_t isum = 0;
    for (size_t i = 0; i < FR_GROUPED_RUN; i++) isum += (codes[i] - block->zero) * x->q[i];
    acc = fmaf(block->scale * x->d, (float)isum, acc);
    return biased ? fmaf(block->bias, x->dsum, acc) : acc;
}

static void matmul(const fr_matmul_grouped *job, bool biased) {
    const fr_grouped_tiles *tiles = job->tiles;
    for (size_t r = 0; r < job->rows; r++)
        for (size_t o = 0; o < job->features; o++) job->y[r * job->y_stride + o] = 0.0f;
    for (size_t o = 0; o < job->features; o++)
        for (size_t b = 0; b < tiles->blocks; b++) {
            fr_grouped_block block;
            const uint8_t *tile = job->w + o / FR_TILE_FEATURES * tiles->tile_bytes;
            size_t runs = fr_grouped_parts(tiles, &block, tile, b, o % FR_TILE_FEATURES);
            for (size_t r = 0; r < job->rows; r++) {
                const fr_qblock *x = job->x + r * job->x_stride + b * tiles->block_runs;
                float *acc = job->y + r * job->y_stride + o;
                for (size_t run = 0; run < runs; run++) *acc = add_run(&block, run, biased, x + run, *acc);
            }
        }
}

/* Defines the two kernels for codes of `bits` bits. */
#define FR_MATMUL_GROUPED(bits, ...)                                      \
    void FR_SCALAR(matmul_grouped_##bits)(const fr_matmul_grouped *job) { \
        matmul(job, false);                                               \
    }                                                                     \
    void FR_SCALAR(matmul_biased_##bits)(const fr_matmul_grouped *job) {  \
        matmul(job, true);                                                \
    }

FR_GROUPED_CODES(FR_MATMUL_GROUPED)
