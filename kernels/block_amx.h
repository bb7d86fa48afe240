/* Multiplies packed block-quantized weights by many quantized rows with AMX's tiles. The contracts are
 * fr_matmul_block_fn and fr_matmul_grouped_fn in kernels.h. The formats and their unpacking are those of
 * block_avx512.h.
 *
 * A tile instruction multiplies 16 rows of 32 activations by 32 codes of each of 16 outputs, which is a run of a tile
 * of weights. Every run has a float scale of its own for each row (NUMERICS.md, section 5), so integer sums can't stay
 * in a tile register from one run to the next. They go through memory to AVX-512 registers, where they are added to the
 * chains. A chain is the float sum of one output of a row. The chains stay in 16 registers, one for each row, over all
 * columns of a part.
 *
 * The float operations are the limit. While tile instructions are in use, and for some 150 cycles after the last one,
 * the processor runs 512-bit float operations at one port instead of two. (This was measured with instructions on
 * registers. Even a single TILEZERO has this effect, while integer operations keep their two ports.) In a run, each row
 * needs a conversion, a product of scales and an fma, 48 operations for 16 rows. So a run of 16 rows and 16 outputs
 * takes at least 48 cycles, and 64 with a minimum. The table compares the cycles that a run takes here with those of
 * the vpdpbusd kernel, at the clock of `bench machine`, 64 rows, weights in the caches:
 *
 *     type      tiles      vpdpbusd
 *     Q4_0      82         127
 *     Q8_0      85         130
 *     Q4_K      105        130
 *
 * The instructions alone take less: a tdpbssd 19 cycles, a tilestored 18, the loads of a run 15, all of them together
 * 26. Types whose halves of a run have scales of their own need two tiles and twice the float operations. They have no
 * kernel here, because Q6_K took 148 cycles with tiles and 146 without. Float sums (tdpbf16ps) need no conversion, but
 * their codes are twice as long; they were not faster with activations in L2. Three runs are in progress at once: while
 * run i is multiplied, the sums of run i - 1 are stored, and the sums of run i - 3 are added to the chains.
 *
 * The offset is subtracted from the codes when they are unpacked, so codes are signed, and sums need no correction.
 * Only codes of 8 bits with a bias are unsigned. A call has these loops, the outermost first: parts of the rows; parts
 * of the columns, whose activations are packed; tiles of 16 outputs, of which the same columns are unpacked into the L1
 * cache; groups of 16 rows; runs. Between two parts of the columns, chains are kept in y. If the last group has fewer
 * rows, it is filled up with rows of zeros, whose sums are dropped. */
#ifndef FR_KERNELS_BLOCK_AMX_H
#define FR_KERNELS_BLOCK_AMX_H

#include "kernels/block_avx512.h"
#include "kernels/tiles_amx.h"

enum {
    ROWS = 16,         /* rows of a tile register */
    ROWS_LEAST = 32,   /* with fewer rows than this, unpacking takes longer than the tiles save */
    GROUPS_MAX = 8,    /* largest number of groups of rows in a part */
    RUNS_MAX = 32,     /* largest number of runs in a part of the columns; their codes take 16 KB */
    SETS = 2,          /* runs whose sums are in tile registers at once */
    JOINED_BEFORE = 3, /* step i adds the sums of run i - JOINED_BEFORE to the chains */
    STORED_MAX = 4     /* runs whose stored sums are in memory at once; step i needs those of runs i - JOINED_BEFORE to
                        * i - 1 */
};

/* Holds the activations of a group of rows in one run. */
typedef struct group_run {
    int8_t q[ROWS][RUN];
    float d[ROWS], dsum[ROWS];
} group_run;

/* Holds the unpacked weights of a tile over a part of the columns, run by run. Minima are not set if the format has
 * none. */
typedef struct weights_part {
    uint8_t codes[RUNS_MAX][GROUPS][64];
    float d[RUNS_MAX][FR_TILE_FEATURES], m[RUNS_MAX][FR_TILE_FEATURES];
} weights_part;

/* The integer sums of a run, for each row and output, as a tile register stores them. */
typedef int32_t stored_sums[ROWS][FR_TILE_FEATURES];

/* Describes the product of one tile with one group of rows, over a part of the columns. */
typedef struct tile_part {
    const weights_part *weights;
    const group_run *rows; /* [runs] the activations of the group */
    size_t runs, count;    /* runs: number of runs in the part; count: number of rows in the group */
    bool started;          /* y already holds the sums over earlier columns */
    float *y;
    size_t y_stride;
    __mmask16 stored; /* outputs that the tile has */
    const uint8_t *next;
    size_t next_step; /* bytes of the next weights to prefetch in each run; 0 if nothing is prefetched */
} tile_part;

typedef void multiply_fn(const tile_part *p);
typedef void unpack_fn(weights_part *to, const product *job, const uint8_t *bytes, size_t blocks, size_t runs);

/* ------------------------------------------------------------------------------------ a run: product, sums, chains */

/* Multiplies run i. Its sums go to tile register `set`. */
FR_INLINE void multiply_run(bool unsigned_codes, const tile_part *p, size_t i, unsigned set) {
    fr_tile_zero_sums(set);
    fr_tile_load_rows(set, p->rows[i].q[0], RUN);
    fr_tile_load_codes(set, p->weights->codes[i][0]);
    if (unsigned_codes)
        fr_tile_multiply_unsigned(set);
    else
        fr_tile_multiply_signed(set);
}

/* Adds the sums of run i to the chains, with the operations of add_run in block_avx512.h. */
FR_INLINE void join_run(joining how, const tile_part *p, size_t i, stored_sums from, __m512 acc[ROWS]) {
    const group_run *x = &p->rows[i];
    __m512 d = _mm512_load_ps(p->weights->d[i]), m = _mm512_load_ps(p->weights->m[i]);
    FR_UNROLLED_FOR (size_t r = 0; r < ROWS; r++) {
        __m512 isum = _mm512_cvtepi32_ps(_mm512_load_si512(from[r]));
        acc[r] = _mm512_fmadd_ps(_mm512_mul_ps(d, _mm512_set1_ps(x->d[r])), isum, acc[r]);
        if (how == PLUS_MIN) acc[r] = _mm512_fmadd_ps(m, _mm512_set1_ps(x->dsum[r]), acc[r]);
        if (how == MINUS_MIN) acc[r] = _mm512_fnmadd_ps(m, _mm512_set1_ps(x->dsum[r]), acc[r]);
    }
}

/* ------------------------------------------------------------------------------------------------ a part of a tile */

/* Multiplies all runs of a part for a group of rows. Step i multiplies run i, stores the sums of run i - 1, and adds
 * the sums of run i - 3 to the chains. */
FR_INLINE void multiply_part(joining how, bool unsigned_codes, const tile_part *given) {
    const tile_part p = *given;
    _Alignas(64) stored_sums stored[STORED_MAX];
    __m512 acc[ROWS];
    FR_UNROLLED_FOR (size_t r = 0; r < ROWS; r++)
        acc[r] = p.started && r < p.count ? _mm512_maskz_loadu_ps(p.stored, p.y + r * p.y_stride) : _mm512_setzero_ps();
    for (size_t first = 0; first < p.runs + JOINED_BEFORE; first += SETS)
        FR_UNROLLED_FOR (unsigned set = 0; set < SETS; set++) {
            size_t i = first + set;
            if (i < p.runs) {
                multiply_run(unsigned_codes, &p, i, set);
                for (size_t byte = 0; byte < p.next_step; byte += 64)
                    _mm_prefetch((const char *)p.next + i * p.next_step + byte, _MM_HINT_T1);
            }
            if (i >= 1 && i - 1 < p.runs) fr_tile_store_sums((set + 1) % SETS, stored[(i - 1) % STORED_MAX][0]);
            if (i >= JOINED_BEFORE && i - JOINED_BEFORE < p.runs)
                join_run(how, &p, i - JOINED_BEFORE, stored[(i - JOINED_BEFORE) % STORED_MAX], acc);
        }
    FR_UNROLLED_FOR (size_t r = 0; r < ROWS; r++)
        if (r < p.count) _mm512_mask_storeu_ps(p.y + r * p.y_stride, p.stored, acc[r]);
}

/* Defines a function that calls multiply_part, for one kind of joining. */
#define FR_MULTIPLY(name, how, unsigned_codes) \
    static void name(const tile_part *p) {     \
        multiply_part(how, unsigned_codes, p); \
    }
FR_MULTIPLY(multiply_plain, PLAIN, false)
FR_MULTIPLY(multiply_plus_min, PLUS_MIN, false)
FR_MULTIPLY(multiply_plus_min_unsigned, PLUS_MIN, true)
FR_MULTIPLY(multiply_minus_min, MINUS_MIN, false)
#undef FR_MULTIPLY

FR_INLINE bool keeps_codes_unsigned(const format *f) {
    return f->bits == 8 && f->offset == 0;
}

FR_INLINE multiply_fn *multiply_of(const format *f) {
    switch (f->joining) {
    case PLUS_MIN: return keeps_codes_unsigned(f) ? multiply_plus_min_unsigned : multiply_plus_min;
    case MINUS_MIN: return multiply_minus_min;
    default: return multiply_plain;
    }
}

/* ------------------------------------------------------------------------------------------- unpacking and packing */

/* Unpacks `blocks` blocks of a tile, which together have `runs` runs. The last block of grouped codes may have fewer
 * runs than the others. If codes are looked up in a table, the table's values are signed already. From other codes the
 * offset is subtracted. */
FR_INLINE void unpack_part(const format *f, weights_part *to, const product *job, const uint8_t *bytes, size_t blocks,
                           size_t runs) {
    const int8_t *values = grouped(f) ? NULL : fr_code_values(f->type);
    __m512i offset = _mm512_set1_epi8((char)(values ? 0 : f->offset));
    block b = {.tiles = job->tiles};
    b.values = values ? _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)values)) : _mm512_setzero_si512();
    for (size_t at = 0, i = 0; at < blocks; at++, bytes += block_bytes(f, job)) {
        f->open(&b, bytes);
        for (size_t index = 0; index < block_runs(f, job) && i < runs; index++, i++) {
            const uint8_t *run_bytes = bytes + head_bytes(f, job);
            run r;
            f->scale(&r, &b, run_bytes, index);
            _mm512_store_ps(to->d[i], r.d);
            if (f->joining != PLAIN) _mm512_store_ps(to->m[i], r.m);
            FR_UNROLLED_FOR (size_t g = 0; g < GROUPS; g++)
                _mm512_store_si512(to->codes[i][g], _mm512_sub_epi8(f->code(&b, run_bytes, index, g), offset));
        }
    }
}

/* Packs the activations of a part of the rows and columns, and the sums of the activations. Each thread packs all rows
 * for its own outputs. If many threads share a matrix, each thread has few outputs, so packing must take little time.
 * If the last group has fewer rows than ROWS, its missing rows are filled with zeros. */
static void pack_rows(group_run panel[][RUNS_MAX], const product *job, size_t row, size_t rows, size_t from,
                      size_t runs) {
    static const fr_qblock nothing;
    for (size_t g = 0; g * ROWS < rows; g++)
        for (size_t i = 0; i < runs; i++)
            for (size_t r = 0; r < ROWS; r++) {
                bool missing = g * ROWS + r >= rows;
                const fr_qblock *x = missing ? &nothing : &job->x[(row + g * ROWS + r) * job->x_stride + from + i];
                group_run *to = &panel[g][i];
                memcpy(to->q[r], x->q, RUN);
                to->d[r] = x->d;
                to->dsum[r] = x->dsum;
            }
}

/* ----------------------------------------------------------------------------------------- parts, tiles and groups */

/* Holds the properties of a format that the walk over a matrix needs. The walk gets them at run time, so it is compiled
 * once and not again for each format. */
typedef struct tile_format {
    size_t block_runs, block_bytes, tile_bytes;
    unpack_fn *unpack;
    multiply_fn *multiply;
} tile_format;

/* Shapes of the tile registers: first the sums, then the rows, then the codes. */
static const fr_tile_shapes shapes = {
    .palette = 1,
    .row_bytes = {64, 64, [4] = RUN, RUN, 64, 64},
    .rows = {ROWS, ROWS, [4] = ROWS, ROWS, GROUPS, GROUPS},
};

/* Computes all tiles of a part of the rows and columns. While a tile is multiplied by the first group of rows, the same
 * columns of the next tile are prefetched. */
static void compute_part_by_tiles(const tile_format *f, const product *job, group_run panel[][RUNS_MAX], size_t row,
                                  size_t rows, size_t from, size_t blocks, size_t runs) {
    _Alignas(64) weights_part weights;
    size_t bytes = blocks * f->block_bytes;
    for (size_t o = 0; o < job->features; o += FR_TILE_FEATURES) {
        const uint8_t *w = job->w + o / FR_TILE_FEATURES * f->tile_bytes + from * f->block_bytes;
        f->unpack(&weights, job, w, blocks, runs);
        tile_part p = {.weights = &weights, .runs = runs, .started = from > 0, .y_stride = job->y_stride};
        p.stored = lanes(job->features - o);
        for (size_t g = 0; g * ROWS < rows; g++) {
            bool more = g == 0 && o + FR_TILE_FEATURES < job->features;
            p.rows = panel[g];
            p.count = rows - g * ROWS < ROWS ? rows - g * ROWS : ROWS;
            p.y = job->y + (row + g * ROWS) * job->y_stride + o;
            p.next = w + f->tile_bytes;
            p.next_step = more ? (bytes / runs + 63) / 64 * 64 : 0;
            f->multiply(&p);
        }
    }
}

/* Computes a whole call. */
static void multiply_by_tiles(const tile_format *f, const product *job) {
    _Alignas(64) group_run panel[GROUPS_MAX][RUNS_MAX];
    size_t all_runs = job->tiles ? job->tiles->runs : job->blocks * f->block_runs, most = RUNS_MAX / f->block_runs;
    fr_tiles_configure(&shapes);
    for (size_t row = 0, rows; row < job->rows; row += rows) {
        size_t groups = (job->rows - row + ROWS - 1) / ROWS, parts = (groups + GROUPS_MAX - 1) / GROUPS_MAX;
        rows = (groups + parts - 1) / parts * ROWS;
        if (rows > job->rows - row) rows = job->rows - row;
        for (size_t from = 0, blocks; from < job->blocks; from += blocks) {
            blocks = job->blocks - from < most ? job->blocks - from : most;
            size_t first = from * f->block_runs, runs = all_runs - first;
            if (runs > blocks * f->block_runs) runs = blocks * f->block_runs;
            pack_rows(panel, job, row, rows, first, runs);
            compute_part_by_tiles(f, job, panel, row, rows, from, blocks, runs);
        }
    }
    fr_tiles_release();
}

FR_INLINE void matmul_block_by_tiles(const format *f, unpack_fn *unpack, const fr_matmul_block *of) {
    product job = {of->y,        of->y_stride, of->x, of->x_stride, of->rows, of->w, of->cols / (f->runs * RUN),
                   of->features, NULL};
    tile_format tiles = {f->runs, f->bytes, job.blocks * f->bytes, unpack, multiply_of(f)};
    if (of->features > 0) multiply_by_tiles(&tiles, &job);
}

FR_INLINE void matmul_grouped_by_tiles(const format *f, unpack_fn *unpack, const fr_matmul_grouped *of) {
    const fr_grouped_tiles *t = of->tiles;
    product job = {of->y, of->y_stride, of->x, of->x_stride, of->rows, of->w, t->blocks, of->features, t};
    tile_format tiles = {t->block_runs, t->block_bytes, t->tile_bytes, unpack, multiply_of(f)};
    if (of->features > 0) multiply_by_tiles(&tiles, &job);
}

#endif
