/* Checks the kernels of block-quantized weights and of grouped codes. Every build (a kernel for one instruction set of
 * this machine) must give the same bits as the scalar definition. The definition is compared with sums over the blocks
 * of the file. Packing and unpacking are checked too.
 *
 *     check_blocks [--one-in N] [--either-zero] [--filter TEXT] [--isa WORD] [--seed N]
 *
 * The lists of kernels are block_kernels.def, grouped_kernels.def and amx_kernels.def. A kernel with a line in one of
 * them is checked here and timed by bench/kernels.c. Any NaN is equal to any other NaN. With --either-zero, for
 * valgrind, -0 is equal to 0; check_kernels.c gives the reasons.
 *
 * Each array ends where an inaccessible page begins, or begins where one ends. So if a kernel reads or writes one byte
 * outside its arrays, a signal comes, whose handler prints the kernel's name. One case in N is run, chosen by the seed;
 * tests/support/brief.h gives the default of N. The program prints one line per kernel. The exit status is 1 if any
 * kernel gives other bits. */
/* suite: neon */
#include "kernels/amx_kernels.h"
#include "kernels/cpu.h"
#include "kernels/kernels.h"
#include "quant/packed.h"
#include "tests/support/block_cases.h"
#include "tests/support/block_reference.h"
#include "tests/support/brief.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* The kernels that are checked if the option --filter is not given. */
#ifndef FR_CHECK_FILTER
#define FR_CHECK_FILTER  ""
#define FR_CHECK_SPARSER 1 /* one case in FR_CHECK_SPARSER * fr_test_one_in() runs */
#endif

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

typedef void any_fn(void);

enum { BUILDS_MAX = 8, RUN = 32, UNTOUCHED = -12345 };

/* Numbers of the guarded allocations that hold the arrays of a case. */
enum { WEIGHTS, ROWS, RESULT, EXPECTED, FILE_ROWS, VALUES, UNPACKED };

/* An entry of the kernel table (fr_kernels), with its definition, its builds and their results. A build is the kernel
 * for one instruction set. Each build is compared with the definition. */
typedef struct operation {
    const struct kind *kind;
    size_t offset; /* offset of the entry in fr_kernels */
    any_fn *definition;
    struct build {
        const char *name;
        any_fn *function;
        size_t wrong;
    } builds[BUILDS_MAX];
    size_t count, cases;
} operation;

typedef struct kind {
    void (*check)(operation *op);
} kind;

static struct {
    bool either_zero;
    unsigned one_in;
    const char *filter, *isa;
    uint64_t seed;
} options = {.filter = FR_CHECK_FILTER};

static bool left_out(void) {
    return fr_random_below(options.one_in) > 0;
}

/* -------------------------------------------------------------------------------------------- running and comparing */

static const char *running = "no kernel"; /* the signal handler prints this kernel's name */
static char shape[256];

static void on_fault(int number) {
    char line[512];
    int length = snprintf(line, sizeof line, "%s: signal %d (memory outside its arrays?) at %s, --seed %llu\n", running,
                          number, shape, (unsigned long long)options.seed);
    if (length > 0 && write(STDERR_FILENO, line, (size_t)length) < 0) _exit(2);
    _exit(1);
}

static bool differ(float a, float b) {
    if (options.either_zero && a == b) return false;
    return memcmp(&a, &b, sizeof a) != 0 && !(isnan(a) && isnan(b));
}

/* Counts an error of a build. Prints the build's first error. */
static void tell(struct build *build, size_t index, double got, double expected) {
    if (build->wrong++ == 0)
        printf("%s: value %zu is %a, not %a, at %s, --seed %llu\n", build->name, index, got, expected, shape,
               (unsigned long long)options.seed);
}

static void compare(struct build *build, const float *got, const float *expected, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!differ(got[i], expected[i])) continue;
        tell(build, i, (double)got[i], (double)expected[i]);
        return;
    }
}

/* Returns the next build of an operation. Sets `running` to the build's name. */
static struct build *next_build(operation *op, struct build *build) {
    build = build ? build + 1 : op->builds;
    if (build == op->builds + op->count) return NULL;
    running = build->name;
    return build;
}

/* --------------------------------------------------------------------------------------------------------- quantize */

static void compare_blocks(struct build *build, const fr_qblock *got, const fr_qblock *expected, size_t count) {
    for (size_t b = 0; b < count; b++, got++, expected++) {
        for (size_t i = 0; i < RUN; i++)
            if (got->q[i] != expected->q[i]) {
                tell(build, b * RUN + i, got->q[i], expected->q[i]);
                return;
            }
        if (!differ(got->d, expected->d) && !differ(got->dsum, expected->dsum) && got->sum == expected->sum &&
            got->half == expected->half)
            continue;
        tell(build, b, (double)got->dsum, (double)expected->dsum);
        return;
    }
}

static void check_quantize_case(operation *op, size_t cols, fr_row_mode mode) {
    bool at_end = fr_random_below(4) > 0;
    size_t blocks = (cols + RUN - 1) / RUN;
    float *x = fr_guarded(VALUES, cols * sizeof *x, at_end);
    fr_qblock *q = fr_guarded(RESULT, blocks * sizeof *q, at_end);
    fr_qblock *expected = fr_guarded(EXPECTED, blocks * sizeof *q, true);
    snprintf(shape, sizeof shape, "cols %zu, %s", cols, fr_row_mode_name(mode));
    fr_fill_row(x, cols, mode);
    ((fr_quantize_fn *)op->definition)(expected, x, cols);
    op->cases++;
    for (struct build *build = NULL; (build = next_build(op, build));) {
        memset(q, 0x55, blocks * sizeof *q);
        ((fr_quantize_fn *)build->function)(q, x, cols);
        compare_blocks(build, q, expected, blocks);
    }
}

static void check_quantize(operation *op) {
    for (size_t cols = 1; cols <= 2048; cols = cols < 130 ? cols + 1 : cols * 4 - 7)
        for (fr_row_mode mode = 0; mode < FR_ROW_MODES; mode++)
            for (uint32_t repeat = 0; repeat < 10; repeat++)
                if (!left_out()) check_quantize_case(op, cols, mode);
}

/* ----------------------------------------------------------------------------------------------------- matmul_block */

static fr_dtype type_of(const operation *op) {
    return (fr_dtype)((op->offset - offsetof(fr_kernels, matmul_block)) / sizeof(any_fn *));
}

typedef struct matmul_case {
    fr_dtype type;
    size_t rows, cols, features, x_stride, y_stride, y_count;
    bool at_end;
    uint8_t *file, *w;
    fr_qblock *x;
} matmul_case;

/* Makes the rows of a matrix as a file has them. Also makes their packed tiles, at a random alignment. */
static void make_weights(matmul_case *c, fr_weight_mode mode) {
    size_t row_bytes = fr_dtype_row_bytes(c->type, c->cols);
    size_t tile_bytes = FR_TILE_FEATURES * fr_packed_row_bytes(c->type, c->cols);
    size_t shift = fr_random_below(2) * fr_random_below(64);
    c->file = fr_guarded(FILE_ROWS, c->features * row_bytes, true);
    c->w = fr_guarded(WEIGHTS, fr_packed_bytes(c->type, c->features, c->cols) + shift, c->at_end);
    if (!c->at_end) c->w += shift;
    for (size_t o = 0; o < c->features; o++) fr_fill_weights(c->type, c->file + o * row_bytes, c->cols, mode);
    for (size_t o = 0; o < c->features; o += FR_TILE_FEATURES)
        fr_pack_tile(c->type, c->w + o / FR_TILE_FEATURES * tile_bytes, c->file + o * row_bytes, row_bytes,
                     c->features - o < FR_TILE_FEATURES ? c->features - o : FR_TILE_FEATURES, c->cols);
}

/* Makes quantized rows. A kernel must not read the bytes between two rows, so these are 0xff, which is NaN as a
 * scale. */
static void make_rows(matmul_case *c, fr_row_mode mode) {
    size_t count = (c->rows - 1) * c->x_stride + c->cols / RUN;
    float *values = fr_guarded(VALUES, c->cols * sizeof *values, true);
    c->x = fr_guarded(ROWS, count * sizeof *c->x, c->at_end);
    memset(c->x, 0xff, count * sizeof *c->x);
    for (size_t r = 0; r < c->rows; r++) {
        fr_fill_row(values, c->cols, mode);
        fr_quantize_scalar(c->x + r * c->x_stride, values, c->cols);
    }
}

/* Runs a kernel. Before that, y is filled with UNTOUCHED, so that a write to a gap between two rows of y is noticed. */
static void run_matmul(const matmul_case *c, any_fn *function, float *y) {
    for (size_t i = 0; i < c->y_count; i++) y[i] = UNTOUCHED;
    ((fr_matmul_block_fn *)function)(
        &(fr_matmul_block){y, c->y_stride, c->x, c->x_stride, c->rows, c->w, c->cols, c->features});
}

/* Compares one output of the definition with the sum over the file's own blocks. The definition reads packed tiles, so
 * equal bits show that packing changes no result. */
static void check_against_file(operation *op, const matmul_case *c, const float *expected) {
    static struct build definition = {.name = "the definition, unpacked,"};
    size_t r = fr_random_below((uint32_t)c->rows), o = fr_random_below((uint32_t)c->features);
    const uint8_t *row = c->file + o * fr_dtype_row_bytes(c->type, c->cols);
    float y;
    fr_block_reference(&y, c->type, row, c->x + r * c->x_stride, c->cols);
    if (!differ(y, expected[r * c->y_stride + o])) return;
    tell(&definition, r * c->y_stride + o, (double)y, (double)expected[r * c->y_stride + o]);
    for (size_t b = 0; b < op->count; b++) op->builds[b].wrong++;
}

static void check_matmul_case(operation *op, matmul_case c) {
    fr_weight_mode w_mode = fr_random_below(FR_WEIGHT_MODES);
    fr_row_mode x_mode = fr_random_below(FR_ROW_MODES);
    c.at_end = fr_random_below(4) > 0;
    c.x_stride = c.cols / RUN + fr_random_below(2) * fr_random_below(5);
    c.y_stride = c.features + fr_random_below(2) * fr_random_below(20);
    c.y_count = (c.rows - 1) * c.y_stride + c.features;
    snprintf(shape, sizeof shape, "rows %zu cols %zu features %zu, strides x %zu y %zu, %s weights, %s rows", c.rows,
             c.cols, c.features, c.x_stride, c.y_stride, fr_weight_mode_name(w_mode), fr_row_mode_name(x_mode));
    make_weights(&c, w_mode);
    make_rows(&c, x_mode);
    float *y = fr_guarded(RESULT, c.y_count * sizeof *y, c.at_end);
    float *expected = fr_guarded(EXPECTED, c.y_count * sizeof *y, true);
    run_matmul(&c, op->definition, expected);
    check_against_file(op, &c, expected);
    op->cases++;
    for (struct build *build = NULL; (build = next_build(op, build));) {
        run_matmul(&c, build->function, y);
        compare(build, y, expected, c.y_count);
    }
}

/* Checks matrices that fit in no cache, and rows of activations that do not fit in the L1 cache. Kernels may process
 * large matrices and long rows in another order. */
static void check_large_matmul(operation *op) {
    static const size_t rows[] = {1, 2, 3, 4, 6, 8, 11, 33, 65}, cols[] = {1536, 2048, 6144, 10240, 16384, 33024};
    matmul_case c = {.type = type_of(op)};
    for (size_t i = 0; i < 24; i++) {
        if (left_out()) continue;
        c.rows = rows[i % COUNT(rows)];
        c.cols = cols[fr_random_below(COUNT(cols))];
        c.features = (fr_random_below(8) ? 1u << 18 : 1u << 20) / c.cols + 1 + fr_random_below(40);
        check_matmul_case(op, c);
    }
    /* This case has more rows than kernels multiply at once, and more columns than AMX's kernels process in one
     * part. */
    check_matmul_case(op, (matmul_case){.type = c.type, .rows = 150, .cols = 1280, .features = 19});
    if (options.one_in > 4) return;
    /* These cases have too many columns, outputs and rows to fit in the caches together. Kernels may process them in
     * blocks, in any order. */
    check_matmul_case(op, (matmul_case){.type = c.type, .rows = 19, .cols = 4352, .features = 661});
    check_matmul_case(op, (matmul_case){.type = c.type, .rows = 67, .cols = 4352, .features = 33});
}

/* Checks a call without rows and a call without outputs. A kernel must not read or write anything of x and y. */
static void check_nothing(operation *op) {
    enum { COLS = 256, FEATURES = 8 };
    const uint8_t *w = fr_guarded(WEIGHTS, fr_packed_bytes(type_of(op), FEATURES, COLS), true);
    void *end = fr_guarded(RESULT, 0, true);
    for (struct build *build = NULL; (build = next_build(op, build));) {
        fr_matmul_block_fn *matmul = (fr_matmul_block_fn *)build->function;
        snprintf(shape, sizeof shape, "no rows, or no outputs");
        matmul(&(fr_matmul_block){end, FEATURES, end, 8, 0, w, COLS, FEATURES});
        matmul(&(fr_matmul_block){end, FEATURES, end, 8, 3, w, COLS, 0});
    }
}

static void check_matmul(operation *op) {
    static const size_t blocks[] = {1, 2, 3, 4, 5, 7, 8, 9, 16, 17};
    matmul_case c = {.type = type_of(op)};
    /* Numbers of rows: 1 to 20, 32 to 35, 64 and 65. 32 is the least number that AMX's kernels multiply. */
    for (c.rows = 1; c.rows <= 65; c.rows += c.rows == 20 ? 12 : c.rows == 35 ? 29 : 1)
        for (c.features = 1; c.features <= 40; c.features++) {
            if (left_out()) continue;
            size_t most = fr_dtype_block(c.type) == RUN ? COUNT(blocks) : COUNT(blocks) / 2;
            c.cols = fr_dtype_block(c.type) * blocks[fr_random_below((uint32_t)most)];
            check_matmul_case(op, c);
        }
    check_large_matmul(op);
    check_nothing(op);
}

/* --------------------------------------------------------------------------------------------------- matmul_grouped */

/* A matrix of grouped codes that is stored twice: as arrays for each row, and as tiles. */
typedef struct grouped_case {
    fr_grouping form;
    fr_grouped_tiles tiles;
    size_t cols, groups, features;
    fr_grouped_row *rows;
    uint8_t *w;
    bool at_end;
} grouped_case;

/* Returns a random scale or bias that `type` can hold exactly. */
static float random_scale(unsigned type, fr_weight_mode mode) {
    uint32_t bits = (uint32_t)fr_random_bits();
    uint16_t half = (uint16_t)bits;
    float value;
    if (mode == FR_WEIGHTS_ORDINARY || mode == FR_WEIGHTS_FULL) {
        value = ((float)(bits & 0xff) + 1) * (bits & 0x100 ? 0x1p-14f : -0x1p-15f);
        return value;
    }
    if (mode == FR_WEIGHTS_SPECIAL) half = type == FR_F16 ? half & 0x83ff : half & 0x807f;
    if (type == FR_F16) return fr_f32_from_f16(half);
    if (type == FR_BF16) return fr_f32_from_bf16(half);
    if (mode == FR_WEIGHTS_SPECIAL) bits &= 0x807fffff;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void make_grouped(grouped_case *c, fr_weight_mode mode) {
    const fr_grouping *form = &c->form;
    size_t bytes = fr_grouped_bytes(&c->tiles, c->features), shift = c->at_end ? 0 : fr_random_below(64);
    unsigned top = (1u << form->bits) - 1;
    uint8_t *codes = fr_guarded(FILE_ROWS, c->features * (c->cols + c->groups), true);
    float *scales = fr_guarded(UNPACKED, 2 * c->features * c->groups * sizeof *scales, true);
    c->rows = calloc(c->features, sizeof *c->rows);
    if (!c->rows) exit(2);
    c->w = (uint8_t *)fr_guarded(WEIGHTS, bytes + shift, c->at_end) + shift;
    for (size_t o = 0; o < c->features; o++) {
        fr_grouped_row *row = &c->rows[o];
        *row = (fr_grouped_row){codes, scales, codes + c->cols, scales + c->groups};
        codes += c->cols + c->groups;
        scales += 2 * c->groups;
        for (size_t i = 0; i < c->cols + c->groups; i++)
            row->codes[i] = mode == FR_WEIGHTS_FULL ? (uint8_t)(fr_random_below(2) * top) : fr_random_bits() & top;
        for (size_t g = 0; g < 2 * c->groups; g++) row->scales[g] = random_scale(form->scale_type, mode);
    }
    for (size_t o = 0; o < c->features; o += FR_TILE_FEATURES)
        fr_grouped_pack(&c->tiles, c->w + o / FR_TILE_FEATURES * c->tiles.tile_bytes, c->rows + o,
                        c->features - o < FR_TILE_FEATURES ? c->features - o : FR_TILE_FEATURES, c->cols);
}

static int zero_of(const fr_grouping *form, const fr_grouped_row *row, size_t group) {
    if (form->offset == FR_OFFSET_BIAS) return 0;
    return form->offset == FR_OFFSET_ZERO ? row->zeros[group] : 1 << (form->bits - 1);
}

/* Computes one output by its definition in kernels.h, from the arrays of its row. */
static float grouped_output(const grouped_case *c, const fr_grouped_row *row, const fr_qblock *x) {
    float acc = 0;
    for (size_t from = 0; from < c->cols; from += RUN, x++) {
        size_t group = from / c->form.group;
        int32_t isum = 0;
        for (size_t i = 0; i < RUN && from + i < c->cols; i++)
            isum += (row->codes[from + i] - zero_of(&c->form, row, group)) * x->q[i];
        acc = fmaf(row->scales[group] * x->d, (float)isum, acc);
        if (c->form.offset == FR_OFFSET_BIAS) acc = fmaf(row->biases[group], x->dsum, acc);
    }
    return acc;
}

/* Compares rows that are decoded from tiles with the values of the rows' arrays. The last tile may have rows beyond the
 * last row of the matrix. These rows must be 0. */
static bool decodes_rows(const grouped_case *c) {
    float *values = fr_guarded(VALUES, c->cols * sizeof *values, true);
    for (size_t o = 0; o < c->features; o++) {
        const uint8_t *tile = c->w + o / FR_TILE_FEATURES * c->tiles.tile_bytes;
        fr_grouped_decode(&c->tiles, values, tile, o % FR_TILE_FEATURES, c->cols);
        for (size_t i = 0; i < c->cols; i++) {
            size_t group = i / c->form.group;
            const fr_grouped_row *row = &c->rows[o];
            float value = (float)(row->codes[i] - zero_of(&c->form, row, group)) * row->scales[group];
            if (c->form.offset == FR_OFFSET_BIAS) value += row->biases[group];
            if (differ(values[i], value)) return false;
        }
    }
    return true;
}

/* Chooses a form of grouped codes. The table's entry fixes the number of bits and whether there is a bias. Everything
 * else is random. The number of columns is one for which tiles exist. */
static void choose_grouped(const operation *op, grouped_case *c) {
    size_t slot = (op->offset - offsetof(fr_kernels, matmul_grouped)) / sizeof(any_fn *);
    bool biased = slot > FR_GROUPED_BITS_MAX;
    static const uint32_t groups[] = {32, 64, 128, 128, 96, 256, 512, 2048};
    c->form.bits = (uint8_t)(slot % (FR_GROUPED_BITS_MAX + 1));
    c->form.offset = (uint8_t)(biased ? FR_OFFSET_BIAS : fr_random_below(2) ? FR_OFFSET_ZERO : FR_OFFSET_CENTRE);
    c->form.scale_type = (uint8_t)fr_random_below(FR_FLOAT_TYPES);
    c->form.group = groups[fr_random_below(COUNT(groups))];
    if (fr_random_below(3) == 0) /* usually the last RUN is incomplete, but in every third case all are complete */
        c->cols = c->cols / RUN * RUN + RUN;
    if (fr_random_below(6) == 0) c->form.group = (uint32_t)c->cols; /* one group for the whole row */
    c->groups = (c->cols + c->form.group - 1) / c->form.group;
    if (fr_grouped_layout(&c->tiles, &c->form, c->cols)) return;
    printf("no tiles of %u bits, groups of %u, %zu columns\n", c->form.bits, c->form.group, c->cols);
    exit(1);
}

static void check_grouped_case(operation *op, size_t rows, size_t features, size_t most_cols) {
    grouped_case c = {.features = features, .cols = 1 + fr_random_below((uint32_t)most_cols)};
    fr_weight_mode w_mode = fr_random_below(FR_WEIGHT_MODES);
    fr_row_mode x_mode = fr_random_below(FR_ROW_MODES);
    choose_grouped(op, &c);
    c.at_end = fr_random_below(4) > 0;
    size_t blocks = (c.cols + RUN - 1) / RUN, x_stride = blocks + fr_random_below(2) * fr_random_below(5);
    size_t y_stride = features + fr_random_below(2) * fr_random_below(20), count = (rows - 1) * y_stride + features;
    snprintf(shape, sizeof shape, "%u bits, offset %u, %s, groups of %u; rows %zu cols %zu features %zu, %s, %s",
             c.form.bits, c.form.offset, fr_dtype_name(c.form.scale_type), c.form.group, rows, c.cols, features,
             fr_weight_mode_name(w_mode), fr_row_mode_name(x_mode));
    make_grouped(&c, w_mode);
    if (!decodes_rows(&c)) tell(op->builds, 0, 0, 0);
    float *values = fr_guarded(VALUES, c.cols * sizeof *values, true);
    fr_qblock *x = fr_guarded(ROWS, ((rows - 1) * x_stride + blocks) * sizeof *x, c.at_end);
    memset(x, 0xff, ((rows - 1) * x_stride + blocks) * sizeof *x);
    for (size_t r = 0; r < rows; r++) {
        fr_fill_row(values, c.cols, x_mode);
        fr_quantize_scalar(x + r * x_stride, values, c.cols);
    }
    float *y = fr_guarded(RESULT, count * sizeof *y, c.at_end);
    float *expected = fr_guarded(EXPECTED, count * sizeof *y, true);
    for (size_t i = 0; i < count; i++) expected[i] = UNTOUCHED;
    for (size_t r = 0; r < rows; r++)
        for (size_t o = 0; o < features; o++)
            expected[r * y_stride + o] = grouped_output(&c, &c.rows[o], x + r * x_stride);
    op->cases++;
    for (struct build *build = NULL; (build = next_build(op, build));) {
        for (size_t i = 0; i < count; i++) y[i] = UNTOUCHED;
        ((fr_matmul_grouped_fn *)build->function)(
            &(fr_matmul_grouped){y, y_stride, x, x_stride, rows, c.w, features, &c.tiles});
        compare(build, y, expected, count);
    }
    free(c.rows);
}

/* Checks all small numbers of rows and outputs with short rows of weights. Some of them are also checked with long
 * rows. */
static void check_grouped(operation *op) {
    static const size_t rows[] = {1, 2, 3, 4, 8, 11, 65};
    for (size_t r = 1; r <= 65; r += r == 20 ? 44 : 1)
        for (size_t features = 1; features <= 40; features++)
            if (!left_out()) check_grouped_case(op, r, features, 700);
    for (size_t i = 0; i < 2 * COUNT(rows); i++)
        if (!left_out()) check_grouped_case(op, rows[i % COUNT(rows)], 30 + fr_random_below(40), 9000);
    check_grouped_case(op, 150, 19, 2500);
}

/* Checks which forms of grouped codes can be stored as tiles, and how many bytes these tiles take. */
static size_t check_layouts(void) {
    static const struct {
        fr_grouping form;
        size_t cols, bytes; /* 0: no tiles */
    } layouts[] = {
        {{4, FR_OFFSET_ZERO, FR_F16, 128}, 4096, 32 * (32 + 8 + 4 * 256)},
        {{4, FR_OFFSET_CENTRE, FR_BF16, 128}, 4096, 32 * (32 + 4 * 256)},
        {{4, FR_OFFSET_BIAS, FR_F32, 64}, 128, 2 * (128 + 2 * 256)},
        {{8, FR_OFFSET_ZERO, FR_F16, 32}, 33, 2 * (32 + 16 + 512)},
        {{8, FR_OFFSET_CENTRE, FR_F32, 4096}, 4096, 4 * (64 + 32 * 512)},
        {{3, FR_OFFSET_CENTRE, FR_F16, 100}, 100, 32 + 4 * 192},
        {{3, FR_OFFSET_CENTRE, FR_F16, 100}, 101, 0}, /* no tiles: the second group begins inside a run */
        {{4, FR_OFFSET_CENTRE, FR_F16, 1056}, 2112, 0},
        {{7, FR_OFFSET_CENTRE, FR_F16, 32}, 32, 0},
        {{1, FR_OFFSET_CENTRE, FR_F16, 32}, 32, 0},
        {{4, 3, FR_F16, 32}, 32, 0},
        {{4, FR_OFFSET_CENTRE, FR_Q8_0, 32}, 32, 0},
        {{4, FR_OFFSET_CENTRE, FR_F16, 0}, 32, 0},
        {{4, FR_OFFSET_CENTRE, FR_F16, 32}, 0, 0},
        {{8, FR_OFFSET_BIAS, FR_F32, 32}, SIZE_MAX / 16, 0},
    };
    size_t wrong = 0;
    for (size_t i = 0; i < COUNT(layouts); i++) {
        fr_grouped_tiles tiles;
        bool has = fr_grouped_layout(&tiles, &layouts[i].form, layouts[i].cols);
        size_t bytes = has ? fr_grouped_bytes(&tiles, FR_TILE_FEATURES) : 0;
        bool right = bytes == layouts[i].bytes;
        if (has) right = right && fr_grouped_bytes(&tiles, 17) == 2 * bytes && fr_grouped_bytes(&tiles, SIZE_MAX) == 0;
        if (!right) printf("layout %zu takes %zu bytes, not %zu\n", i, bytes, layouts[i].bytes);
        wrong += !right;
    }
    printf("%-6s %-28s %6zu cases, %zu wrong\n", wrong ? "WRONG" : "ok", "layouts of grouped codes", COUNT(layouts),
           wrong);
    return wrong;
}

/* ---------------------------------------------------------------------------------------------------------- packing */

/* Returns true if two rows have the same values. Compares decoded values, because the bytes may differ: some types have
 * several codes for one value. In TQ1_0 and PTQ1_0 five ternary digits use only 243 of 256 byte values. NVFP4 has
 * several bytes for one scale. */
static bool same_values(fr_dtype type, const uint8_t *row, const uint8_t *expected, size_t cols) {
    bool same = true;
    size_t block = fr_dtype_block(type), bytes = fr_dtype_row_bytes(type, block);
    for (size_t c = 0; c < cols; c += block, row += bytes, expected += bytes) {
        float got[256], wanted[256];
        fr_dtype_decode(type, row, got, block);
        fr_dtype_decode(type, expected, wanted, block);
        same = same && memcmp(got, wanted, block * sizeof *got) == 0;
    }
    return same;
}

/* Packs rows of random bytes into tiles and unpacks them again. Each row must be unchanged. If a tile has rows beyond
 * the last feature, these must become zeros. */
static bool packs_forth_and_back(fr_dtype type, size_t features, size_t cols) {
    size_t row_bytes = fr_dtype_row_bytes(type, cols), stride = row_bytes + fr_random_below(9);
    bool at_end = fr_random_below(2);
    uint8_t *rows = fr_guarded(FILE_ROWS, (features - 1) * stride + row_bytes, at_end);
    size_t tile_bytes = FR_TILE_FEATURES * fr_packed_row_bytes(type, cols);
    uint8_t *tile = fr_guarded(WEIGHTS, tile_bytes, at_end);
    uint8_t *row = fr_guarded(UNPACKED, row_bytes, at_end), *zeros = fr_guarded(EXPECTED, row_bytes, true);
    for (size_t i = 0; i < (features - 1) * stride + row_bytes; i++) rows[i] = (uint8_t)fr_random_bits();
    bool by_value = type == FR_TQ1_0 || type == FR_PTQ1_0 || type == FR_NVFP4;
    memset(zeros, 0, row_bytes);
    memset(tile, 0x55, tile_bytes);
    fr_pack_tile(type, tile, rows, stride, features, cols);
    for (size_t o = 0; o < FR_TILE_FEATURES; o++) {
        fr_unpack_row(type, row, tile, o, cols);
        /* For Q8_0, rows beyond the last feature are not compared: the zero bytes of such a row in a tile mean codes of
         * -128. */
        if (o >= features && type == FR_Q8_0) continue;
        const uint8_t *expected = o < features ? rows + o * stride : zeros;
        if (by_value ? !same_values(type, row, expected, cols) : memcmp(row, expected, row_bytes) != 0) return false;
    }
    return fr_packed_bytes(type, features, cols) == tile_bytes;
}

/* Returns the number of types whose rows change when they are packed and unpacked. */
static size_t check_packing(void) {
    size_t wrong = 0;
    for (fr_dtype type = 0; type < FR_DTYPE_COUNT; type++) {
        size_t failures = 0;
        if (!fr_packs(type)) continue;
        running = fr_dtype_name(type);
        snprintf(shape, sizeof shape, "packing");
        for (size_t features = 1; features <= FR_TILE_FEATURES; features++)
            for (size_t blocks = 1; blocks <= 4; blocks++)
                failures += !packs_forth_and_back(type, features, blocks * fr_dtype_block(type));
        printf("%-6s %-28s %6d cases, %zu wrong\n", failures ? "WRONG" : "ok", running, 4 * FR_TILE_FEATURES, failures);
        wrong += failures > 0;
    }
    return wrong;
}

/* ------------------------------------------------------------------------------------------------------ the kernels */

static const kind kind_quantize = {check_quantize};
static const kind kind_matmul_block = {check_matmul};
static const kind kind_matmul_grouped = {check_grouped};

static const struct kernel {
    fr_isa_level level;
    size_t offset;
    const char *name;
    any_fn *function;
    const kind *kind;
} kernels[] = {
#define FR_KERNEL(level, kind, slot, function) \
    {level, offsetof(fr_kernels, slot), #function, (any_fn *)(function), &kind_##kind},
#include "kernels/block_kernels.def"
#include "kernels/grouped_kernels.def"
#include "kernels/amx_kernels.def"
#undef FR_KERNEL
};

/* Returns the instruction sets that this machine has, as a bit set. Sets above the one of --isa are left out. */
static unsigned wanted_levels(void) {
    unsigned here = fr_cpu_levels();
    for (fr_isa_level level = 0; level < FR_ISA_WORDS; level++)
        if ((here >> level & 1) && !fr_cpu_permits(level)) here &= ~(1u << level);
    if (!options.isa) return here;
    fr_isa_level level = fr_isa_from_word(options.isa);
    if (level < FR_ISA_WORDS && here >> level & 1) return here & fr_isa_allows(level);
    fprintf(stderr, "check_blocks: this machine has no instruction set '%s'\n", options.isa);
    exit(2);
}

/* Makes the operation that a scalar kernel defines, with all builds whose instruction set is in `levels`. */
static operation open_operation(const struct kernel *scalar, unsigned levels) {
    operation op = {.kind = scalar->kind, .offset = scalar->offset, .definition = scalar->function};
    for (size_t i = 0; i < COUNT(kernels); i++) {
        const struct kernel *k = &kernels[i];
        bool wanted = k->offset == op.offset && levels >> k->level & 1 && strstr(k->name, options.filter);
        if (wanted && op.count < BUILDS_MAX) op.builds[op.count++] = (struct build){k->name, k->function, 0};
    }
    return op;
}

/* Checks an operation. Returns how many of its builds give wrong bits. */
static size_t check_operation(operation *op) {
    size_t wrong = 0;
    double start = fr_now();
    op->kind->check(op);
    for (size_t b = 0; b < op->count; b++) {
        bool bad = op->builds[b].wrong > 0;
        printf("%-6s %-28s %6zu cases, %zu wrong\n", bad ? "WRONG" : "ok", op->builds[b].name, op->cases,
               op->builds[b].wrong);
        wrong += bad;
    }
    printf("       %.2f s\n", fr_now() - start);
    return wrong;
}

static void read_options(int argc, char **argv) {
    options.seed = (uint64_t)time(NULL);
    options.one_in = FR_CHECK_SPARSER * fr_test_one_in();
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(word, "--either-zero") == 0)
            options.either_zero = true;
        else if (value && strcmp(word, "--one-in") == 0 && strtoul(value, NULL, 10) > 0)
            options.one_in = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (value && strcmp(word, "--filter") == 0)
            options.filter = argv[++i];
        else if (value && strcmp(word, "--isa") == 0)
            options.isa = argv[++i];
        else if (value && strcmp(word, "--seed") == 0)
            options.seed = strtoull(argv[++i], NULL, 10);
        else {
            fprintf(stderr, "check_blocks: unknown option '%s'\n", word);
            exit(2);
        }
    }
}

int main(int argc, char **argv) {
    read_options(argc, argv);
    unsigned levels = wanted_levels();
    size_t wrong = 0, checked = 0;
    signal(SIGSEGV, on_fault);
    signal(SIGBUS, on_fault);
    setvbuf(stdout, NULL, _IOLBF, 0);
    fr_random_start(options.seed);
    printf("check_blocks --seed %llu\n", (unsigned long long)options.seed);
    wrong += check_packing() + check_layouts();
    for (size_t i = 0; i < COUNT(kernels); i++) {
        if (kernels[i].level != FR_ISA_SCALAR) continue;
        operation op = open_operation(&kernels[i], levels);
        checked += op.count;
        if (op.count > 0) wrong += check_operation(&op);
    }
    printf("%zu kernels, %zu wrong\n", checked, wrong);
    return wrong > 0 || checked == 0;
}
