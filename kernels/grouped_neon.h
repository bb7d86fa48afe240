/* Multiplies tiles of grouped codes by quantized rows for neon, dotprod and i8mm. The dot product itself is the one
 * that block_neon.h's formats use.
 *
 * In: tiles (quant/grouped.h) and quantized rows. Out: products, as fr_matmul_grouped_fn defines them. block_neon.h has
 * the panel of rows, the unpacking of codes and the integer sums. As in that file, a chunk of 8 runs of 32 columns is
 * multiplied with up to 16 rows and a group of tiles. A block of a tile is a group of columns and may end within a
 * chunk, so each run of a chunk has its own address. The zero points of features are multiplied with the sum of a row's
 * activations. */
#ifndef FR_KERNELS_GROUPED_NEON_H
#define FR_KERNELS_GROUPED_NEON_H

#include "kernels/block_neon.h"
#include "quant/grouped.h"

/* Describes the columns of a chunk in a tile: the codes of each run, and the scales, biases and zero points of the
 * block that the run is in. */
typedef struct grouped_runs {
    const uint8_t *codes[RUNS];
    float d[RUNS][FEATURES], m[RUNS][FEATURES];
    int32_t zeros[RUNS][FEATURES]; /* minus the zero points */
} grouped_runs;

typedef struct grouped_chunk {
    panel panel;
    int32_t sum[RUNS][ROWS]; /* sum of a run's activations */
    grouped_runs runs;       /* the runs of the current tile */
} grouped_chunk;

FR_INLINE void load_floats(float *to, unsigned type, const uint8_t *floats) {
    if (type == FR_F16) load_d(to, floats);
    if (type == FR_F32) memcpy(to, floats, FEATURES * sizeof *to);
    if (type != FR_BF16) return;
    FR_UNROLLED_FOR (size_t i = 0; i < FEATURES; i += 4) {
        uint32x4_t bits = vshll_n_u16(vreinterpret_u16_u8(vld1_u8(floats + 2 * i)), 16);
        vst1q_f32(to + i, vreinterpretq_f32_u32(bits));
    }
}

/* Loads the negated zero points and adds `taken`, the number that was subtracted from each code before the
 * multiplication. zeros: the first byte after the scales. */
FR_INLINE void load_zeros(int32_t *to, const fr_grouping *form, const uint8_t *zeros, int taken) {
    bool biased = form->offset == FR_OFFSET_BIAS;
    int centre = form->offset == FR_OFFSET_CENTRE ? 1 << (form->bits - 1) : 0;
    for (size_t i = 0; i < FEATURES; i++) {
        int zero = centre;
        if (form->offset == FR_OFFSET_ZERO)
            zero = form->bits > 4 ? zeros[i] : zeros[i % (FEATURES / 2)] >> i / (FEATURES / 2) * 4 & 15;
        to[i] = (biased ? 0 : -zero) + taken;
    }
}

/* Sets the addresses of the codes of runs first .. first + count - 1 of a tile. Unpacks the scales of their blocks, and
 * the zero points or biases. */
FR_INLINE void load_grouped(format f, grouped_runs *runs, const fr_grouped_tiles *tiles, const uint8_t *tile,
                            size_t first, size_t count, int taken) {
    const fr_grouping *form = &tiles->form;
    size_t step = (size_t)LINE * (size_t)f.bits, place = first % tiles->block_runs;
    const uint8_t *block = tile + first / tiles->block_runs * tiles->block_bytes;
    for (size_t run = 0; run < count; run++) {
        const uint8_t *second = block + FEATURES * (form->scale_type == FR_F32 ? 4 : 2);
        runs->codes[run] = block + tiles->head_bytes + place * step;
        if (run > 0 && place > 0) {
            memcpy(runs->d[run], runs->d[run - 1], sizeof runs->d[run]);
            memcpy(runs->m[run], runs->m[run - 1], sizeof runs->m[run]);
            memcpy(runs->zeros[run], runs->zeros[run - 1], sizeof runs->zeros[run]);
        } else {
            load_floats(runs->d[run], form->scale_type, block);
            if (f.mins) load_floats(runs->m[run], form->scale_type, second);
            load_zeros(runs->zeros[run], form, second, taken);
        }
        if (++place < tiles->block_runs) continue;
        place = 0;
        block += tiles->block_bytes;
    }
}

/* Adds the contribution of the zero points to a row's integer sums, and adds the sums to the row's chains. */
FR_INLINE void join_grouped(format f, float *chain, int32x4_t *sums, const grouped_chunk *c, size_t run, size_t r,
                            size_t feature) {
    const panel *p = &c->panel;
    float32x4_t d[PARTS], m[PARTS];
    FR_UNROLLED_FOR (size_t i = 0; i < PARTS; i++) {
        sums[i] = vmlaq_n_s32(sums[i], vld1q_s32(c->runs.zeros[run] + feature + 4 * i), c->sum[run][r]);
        d[i] = vld1q_f32(c->runs.d[run] + feature + 4 * i);
        m[i] = f.mins ? vld1q_f32(c->runs.m[run] + feature + 4 * i) : d[i];
    }
    join(f, chain, sums, d, m, p->d[run][r], p->dsum[run][r]);
}

/* Adds the products of run `run` to the chains of row r, or of rows r and r + 1. */
FR_INLINE void add_grouped_run(format f, float (*chains)[FEATURES], run_values values, const grouped_chunk *c,
                               size_t run, size_t r, size_t feature, bool pair) {
    row_sums sums;
    FR_UNROLLED_FOR (size_t i = 0; i < PARTS; i++) sums[0][i] = sums[1][i] = vdupq_n_s32(0);
    multiply(f, sums, values, 0, c->panel.q[run][r], pair);
    multiply(f, sums, values, 1, c->panel.q[run][r], pair);
    if (pair) part_sums(sums);
    join_grouped(f, chains[r] + feature, sums[0], c, run, r, feature);
    if (pair) join_grouped(f, chains[r + 1] + feature, sums[1], c, run, r + 1, feature);
}

/* Adds the products of a chunk to the chains of all rows, for 4 * PARTS features of a tile from `feature` on. */
FR_INLINE void walk_grouped(format f, float (*chains)[FEATURES], const grouped_chunk *c, size_t feature, size_t runs,
                            size_t rows, bool few, bool pairs) {
    size_t together = pairs ? 2 : 1;
    for (size_t run = 0; run < runs; run++) {
        run_values values;
        unpack_run(f, values, c->runs.codes[run] + 4 * feature, vdupq_n_s8(0), pairs);
        if (few) {
            FR_UNROLLED_FOR (size_t r = 0; r < rows; r += together)
                add_grouped_run(f, chains, values, c, run, r, feature, pairs);
        } else {
            for (size_t r = 0; r < rows; r += together) add_grouped_run(f, chains, values, c, run, r, feature, pairs);
        }
    }
}

/* Computes `rows` rows from `row` on with a group of tiles from tile `first` on. If rows are taken in pairs and their
 * number is odd, the last pair has an extra row, whose result is not stored. */
FR_INLINE void compute_grouped(format f, const fr_matmul_grouped *job, grouped_chunk *c, size_t first, size_t row,
                               size_t rows, bool few, bool pairs, int taken) {
    format of_panel = {.mins = f.mins}; /* each feature has its own zero point, so there is no offset to correct */
    const fr_grouped_tiles *at = job->tiles;
    size_t left = (job->features + FEATURES - 1) / FEATURES - first, tiles = left < GROUP ? left : GROUP;
    float chains[GROUP][ROWS][FEATURES];
    memset(chains, 0, tiles * sizeof chains[0]);
    for (size_t run = 0; run < at->runs; run += RUNS) {
        size_t runs = at->runs - run < RUNS ? at->runs - run : RUNS;
        const fr_qblock *x = job->x + row * job->x_stride + run;
        pack_panel(of_panel, &c->panel, x, job->x_stride, rows, runs, pairs);
        for (size_t i = 0; i < runs; i++)
            for (size_t r = 0; r < rows; r++) c->sum[i][r] = x[r * job->x_stride + i].sum;
        for (size_t t = 0; t < tiles; t++) {
            load_grouped(f, &c->runs, at, job->w + (first + t) * at->tile_bytes, run, runs, taken);
            for (size_t feature = 0; feature < FEATURES; feature += 4 * PARTS)
                walk_grouped(f, chains[t], c, feature, runs, rows, few, pairs);
        }
    }
    for (size_t t = 0; t < tiles; t++) {
        size_t feature = (first + t) * FEATURES, rest = job->features - feature;
        size_t kept = rest < FEATURES ? rest : FEATURES;
        for (size_t r = 0; r < rows; r++)
            memcpy(job->y + (row + r) * job->y_stride + feature, chains[t][r], kept * sizeof(float));
    }
}

/* Multiplies all rows with one group of tiles, then with the next group. For each group, the rows are divided evenly
 * into as few passes as possible, of up to ROWS rows each. If the instruction set can't multiply unsigned codes of 8
 * bits, 128 is subtracted from each code. */
FR_INLINE void matmul_grouped(level l, format f, fr_matmul_grouped job) {
    grouped_chunk c = {0};
    fr_grouped_tiles tiles = *job.tiles;
    job.tiles = &tiles;
    f.offset = f.bits == 8 && l.all_bytes; /* an offset of 0 makes the unpacking subtract 128 from codes of 8 bits */
    int taken = f.bits == 8 && !l.all_bytes ? 128 : 0;
    for (size_t first = 0; first * FEATURES < job.features; first += GROUP) {
        size_t parts = (job.rows + ROWS - 1) / ROWS;
        for (size_t row = 0, rows; row < job.rows; row += rows, parts--) {
            rows = (job.rows - row + parts - 1) / parts;
            switch (rows) {
            case 1: compute_grouped(f, &job, &c, first, row, 1, true, false, taken); break;
            case 2: compute_grouped(f, &job, &c, first, row, 2, true, l.pairs, taken); break;
            case 3: compute_grouped(f, &job, &c, first, row, 3, true, l.pairs, taken); break;
            case 4: compute_grouped(f, &job, &c, first, row, 4, true, l.pairs, taken); break;
            default: compute_grouped(f, &job, &c, first, row, rows, false, l.pairs, taken);
            }
        }
    }
}

/* Defines the two kernels for codes of `width` bits. */
#define FR_GROUPED_KERNEL(width, level)                                                                    \
    void fr_matmul_grouped_##width##_##level(const fr_matmul_grouped *job) {                               \
        matmul_grouped(level, (format){.bits = width, .most = width == 8 ? 128 : (1 << width) - 1}, *job); \
    }                                                                                                      \
    void fr_matmul_biased_##width##_##level(const fr_matmul_grouped *job) {                                \
        format f = {.bits = width, .mins = true, .most = width == 8 ? 128 : (1 << width) - 1};             \
        matmul_grouped(level, f, *job);                                                                    \
    }
#define FR_GROUPED_KERNELS(level) FR_GROUPED_CODES(FR_GROUPED_KERNEL, level)

#endif
