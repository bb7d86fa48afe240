/* Checks every kernel of every instruction set of this machine. Each must give the same bits as the scalar definition.
 *
 *     check_kernels [--one-in N] [--either-zero] [--filter TEXT] [--isa WORD] [--seed N]
 *
 * The list of kernels is kernels.def. A kernel with a line there is checked here and timed by bench/kernels.c. For each
 * entry of the kernel table, the program makes cases of random numbers. The plain scalar build gives the expected bits,
 * and every other build must give the same. Any NaN is equal to any other NaN. With --either-zero, -0 is equal to 0.
 * This is for valgrind: it emulates a negated multiply-add by negating the sum, which makes -0 from 0.
 *
 * Each array ends where an inaccessible page begins, or begins where one ends. So if a kernel reads or writes one byte
 * outside its arrays, a signal comes, whose handler prints the kernel's name. One case in N is run, chosen by the seed;
 * tests/support/brief.h gives the default of N. The program prints one line per kernel. The exit status is 1 if any
 * kernel gives other bits. */
/* suite: neon */
#include "kernels/cpu.h"
#include "kernels/kernels.h"
#include "kernels/key_means.h"
#include "quant/fp8.h"
#include "quant/turbo.h"
#include "tests/support/brief.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

typedef void any_fn(void);

enum { BUILDS_MAX = 8 };

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

/* Describes how kernels with the same parameters and meaning are checked. All kernels on plain arrays share one check,
 * which calls a kernel by the function `call`. in_place lists which of the arrays a and b may be the same array as
 * y. */
typedef void call_fn(any_fn *function, float *y, const float *a, const float *b, size_t n, float factor);

enum { Y_MAY_BE_A = 1, Y_MAY_BE_B = 2 };

typedef struct kind {
    void (*check)(operation *op);
    call_fn *call;
    unsigned in_place;
} kind;

static struct {
    bool either_zero;
    unsigned one_in;
    const char *filter, *isa;
    uint64_t seed;
} options = {.filter = ""};

/* ------------------------------------------------------------------------------------------------- random numbers */

static uint64_t state;

static uint64_t random_bits(void) {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static uint32_t below(uint32_t limit) {
    return (uint32_t)((random_bits() >> 32) * limit >> 32);
}

static bool left_out(void) {
    return below(options.one_in) > 0;
}

typedef enum fill_mode { ORDINARY, CANCELLING, TINY, VANISHING, WIDE, NONFINITE, MODES } fill_mode;

static const char *const mode_names[MODES] = {"ordinary", "cancelling", "tiny", "vanishing", "wide", "nonfinite"};

/* The sign of all numbers in an array of the mode VANISHING. In this mode the products are so small that they become 0.
 * If every product is negative, the sum must be -0. */
static uint32_t array_sign;

/* Returns a random number of this mode, as the bits of a floating-point format with these numbers of exponent and
 * mantissa bits. */
static uint32_t random_number(fill_mode mode, unsigned exponent_bits, unsigned mantissa_bits) {
    uint32_t top = (1u << exponent_bits) - 1, bias = top / 2;
    uint32_t sign = below(2), exponent = bias - 6 + below(8);
    uint32_t mantissa = (uint32_t)random_bits() & ((1u << mantissa_bits) - 1);
    if (mode == VANISHING) {
        exponent = 0;
        mantissa |= 1;
        sign = array_sign;
    } else if (below(16) == 0)
        exponent = mantissa = 0;
    else if (mode == CANCELLING) {
        exponent = bias + 9 * below(2);
        mantissa &= 3u << (mantissa_bits - 2);
    } else if (mode == TINY && below(2))
        exponent = below(3);
    else if (mode == WIDE)
        exponent = bias / 2 + below(bias);
    else if (mode == NONFINITE && below(8) == 0) {
        exponent = top - below(2);
        if (below(2)) mantissa = 0;
    }
    return (sign << exponent_bits | exponent) << mantissa_bits | mantissa;
}

static void fill_floats(float *x, size_t n, fill_mode mode) {
    array_sign = below(2);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = random_number(mode, 8, 23);
        memcpy(&x[i], &bits, sizeof bits);
    }
}

static void fill_weights(char *w, size_t n, fr_dtype type, fill_mode mode) {
    array_sign = below(2);
    for (size_t i = 0; i < n; i++) {
        uint32_t bits = type == FR_F32    ? random_number(mode, 8, 23)
                        : type == FR_BF16 ? random_number(mode, 8, 7)
                                          : random_number(mode, 5, 10);
        size_t size = fr_dtype_row_bytes(type, 1);
        memcpy(w + i * size, &bits, size);
    }
}

/* Returns the mode of one row. In a large matrix only one row in sixteen may have denormal numbers, because on some
 * processors multiplying them takes forty times as long. */
static fill_mode row_mode(fill_mode mode, size_t values) {
    bool slow = mode == TINY || mode == VANISHING;
    return slow && values > 4096 && below(16) > 0 ? ORDINARY : mode;
}

/* Fills rows of activations, and the gaps between the rows too. */
static void fill_rows(float *x, size_t rows, size_t stride, size_t cols, fill_mode mode) {
    for (size_t r = 0; r < rows; r++)
        fill_floats(x + r * stride, r + 1 < rows ? stride : cols, row_mode(mode, rows * cols));
}

/* -------------------------------------------------------------------------------------------------- guarded arrays */

/* Memory between two inaccessible pages. */
typedef struct guarded {
    char *base;
    size_t size;
} guarded;

static guarded arenas[10];

static void arena_open(guarded *arena, size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size = (size + page - 1) / page * page;
    char *base = mmap(NULL, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED || mprotect(base + page, size, PROT_READ | PROT_WRITE)) {
        perror("check_kernels: mmap");
        exit(1);
    }
    arena->base = base + page;
    arena->size = size;
}

/* Returns `bytes` bytes of the guarded memory number `index`. These are the memory's last bytes if at_end is true, and
 * its first bytes otherwise. */
static void *place(size_t index, size_t bytes, bool at_end) {
    guarded *arena = &arenas[index];
    if (!arena->base || arena->size < bytes) arena_open(arena, bytes > 1 << 16 ? bytes : 1 << 16);
    return at_end ? arena->base + arena->size - bytes : arena->base;
}

static float *place_floats(size_t index, size_t n, bool at_end) {
    return place(index, n * sizeof(float), at_end);
}

/* ------------------------------------------------------------------------------------------- running and comparing */

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

/* Compares n values. If any differ, counts one error of the build. Prints the build's first error. */
static void compare(struct build *build, const float *got, const float *expected, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (!differ(got[i], expected[i])) continue;
        if (build->wrong++ == 0)
            printf("%s: value %zu is %a, not %a, at %s, --seed %llu\n", build->name, i, (double)got[i],
                   (double)expected[i], shape, (unsigned long long)options.seed);
        return;
    }
}

static void compare_ids(struct build *build, const int32_t *got, const int32_t *expected, size_t n) {
    for (size_t i = 0; i < n; i++) {
        if (got[i] == expected[i]) continue;
        if (build->wrong++ == 0)
            printf("%s: id %zu is %d, not %d, at %s, --seed %llu\n", build->name, i, got[i], expected[i], shape,
                   (unsigned long long)options.seed);
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

/* ---------------------------------------------------------------------------------------------------------- matmul */

static fr_dtype type_of(const operation *op, size_t first) {
    return (fr_dtype)((op->offset - first) / sizeof(any_fn *));
}

typedef struct matmul_case {
    fr_dtype type;
    size_t rows, cols, features, x_stride, y_stride, w_stride;
    bool at_end;
} matmul_case;

static size_t extent(size_t count, size_t stride, size_t last) {
    return (count - 1) * stride + last;
}

/* Checks one case. The gaps between rows of y must not change, so they are compared too. Then each row is run alone and
 * must give the same result as in the batch. */
static void check_matmul_case(operation *op, const matmul_case *c) {
    fill_mode w_mode = below(MODES), x_mode = below(MODES);
    size_t row_bytes = fr_dtype_row_bytes(c->type, c->cols), y_count = extent(c->rows, c->y_stride, c->features);
    size_t x_count = extent(c->rows, c->x_stride, c->cols);
    char *w = place(0, extent(c->features, c->w_stride, row_bytes), c->at_end);
    float *x = place_floats(1, x_count, c->at_end), *y = place_floats(2, y_count, c->at_end);
    float *expected = place_floats(3, y_count, true), *alone = place_floats(4, c->features, c->at_end);
    snprintf(shape, sizeof shape, "rows %zu cols %zu features %zu, strides x %zu y %zu w %zu, %s weights, %s rows",
             c->rows, c->cols, c->features, c->x_stride, c->y_stride, c->w_stride, mode_names[w_mode],
             mode_names[x_mode]);
    for (size_t o = 0; o < c->features; o++)
        fill_weights(w + o * c->w_stride, c->cols, c->type, row_mode(w_mode, c->features * c->cols));
    fill_rows(x, c->rows, c->x_stride, c->cols, x_mode);
    for (size_t i = 0; i < y_count; i++) expected[i] = -12345;
    fr_matmul job = {expected, c->y_stride, x, c->x_stride, c->rows, w, c->w_stride, c->cols, c->features};
    ((fr_matmul_fn *)op->definition)(&job);
    job.y = y;
    op->cases++;
    for (struct build *build = NULL; (build = next_build(op, build));) {
        fr_matmul_fn *matmul = (fr_matmul_fn *)build->function;
        for (size_t i = 0; i < y_count; i++) y[i] = -12345;
        matmul(&job);
        compare(build, y, expected, y_count);
        size_t row = below((uint32_t)c->rows);
        fr_matmul one = {alone, c->features, x + row * c->x_stride, c->cols, 1, w, c->w_stride, c->cols, c->features};
        matmul(&one);
        compare(build, alone, y + row * c->y_stride, c->features);
    }
}

/* Returns N for large cases: one in N of them is run. There are few large cases, so N is at most six. With N = 6, every
 * number of rows and every number of columns still occurs. */
static unsigned large_one_in(void) {
    return options.one_in < 6 ? options.one_in : 6;
}

/* Checks three kinds of large matrices, because kernels may process these in other orders. Some do not fit in the L2
 * cache. Some fit in no cache; these have one row of activations. In the others, all rows fall on the same cache
 * lines. */
static void check_large_matmul(operation *op, fr_dtype type) {
    static const size_t rows[] = {1, 1, 2, 3, 5, 7, 8, 13, 53}, cols[] = {500, 1500, 1543, 2048, 2700, 5001};
    for (size_t i = 0; i < COUNT(rows); i++)
        for (size_t j = 0; j < COUNT(cols); j++) {
            if ((i + j) % large_one_in()) continue;
            matmul_case c = {.type = type, .rows = rows[i], .cols = cols[j], .at_end = below(4) > 0};
            c.features = ((i == 0 ? 4 << 20 : 1 << 20) + below(1 << 17)) / fr_dtype_row_bytes(type, c.cols) + 1;
            c.x_stride = below(2) ? c.cols + below(20) : (c.cols + 1023) / 1024 * 1024;
            c.y_stride = c.features + below(20);
            c.w_stride = fr_dtype_row_bytes(type, c.cols) + below(2) * below(20);
            check_matmul_case(op, &c);
        }
}

static void check_matmul(operation *op) {
    matmul_case c = {.type = type_of(op, offsetof(fr_kernels, matmul))};
    for (c.rows = 1; c.rows <= 64; c.rows += c.rows < 17 ? 1 : c.rows == 17 ? 14 : 33)
        for (c.features = 1; c.features <= 17; c.features++)
            for (c.cols = 1; c.cols <= 1000; c.cols = c.cols == 70 ? 127 : c.cols == 129 ? 1000 : c.cols + 1) {
                if (left_out()) continue;
                c.at_end = below(4) > 0;
                c.x_stride = c.cols + below(2) * below(20);
                c.y_stride = c.features + below(2) * below(20);
                c.w_stride = fr_dtype_row_bytes(c.type, c.cols) + below(2) * below(20);
                check_matmul_case(op, &c);
            }
    check_large_matmul(op, c.type);
    for (struct build *build = NULL; (build = next_build(op, build));) {
        void *nowhere = place(0, 0, true);
        snprintf(shape, sizeof shape, "no rows, or no outputs");
        ((fr_matmul_fn *)build->function)(&(fr_matmul){nowhere, 8, nowhere, 64, 0, nowhere, 256, 64, 8});
        ((fr_matmul_fn *)build->function)(&(fr_matmul){nowhere, 0, nowhere, 64, 3, nowhere, 256, 64, 0});
    }
}

/* Fills an array with scales. They have every exponent that a scale may have, also those of denormal numbers. */
static void fill_scales(float *scales, size_t n, fill_mode mode) {
    fill_floats(scales, n, mode == NONFINITE ? WIDE : mode);
    for (size_t i = 0; i < n; i++) scales[i] = fminf(fabsf(scales[i]), FR_FP8_SCALE_MAX);
}

/* Fills an array with random codes, but without NaN. In the mode VANISHING all codes are denormal and have one sign. */
static void fill_codes(uint8_t *codes, size_t n, fill_mode mode) {
    uint8_t sign = (uint8_t)(below(2) << 7);
    for (size_t i = 0; i < n; i++) {
        codes[i] = (uint8_t)random_bits();
        if (mode == VANISHING) codes[i] = sign | (1 + codes[i] % 7);
        if ((codes[i] & 0x7f) == 0x7f) codes[i] ^= 1;
    }
}

/* Fills weights and scales. If the scales of several outputs are in the same row of scale blocks, these outputs have
 * the same mode. */
static void fill_fp8(uint8_t *w, const matmul_case *c, float *scales, size_t stride, size_t first, fill_mode mode) {
    size_t across = fr_fp8_blocks(c->cols);
    fill_mode of_blocks = mode;
    for (size_t o = 0; o < c->features; o++) {
        if (o == 0 || (first + o) % FR_FP8_BLOCK == 0) {
            of_blocks = row_mode(mode, c->features * c->cols);
            fill_scales(scales + (first + o) / FR_FP8_BLOCK * stride, across, of_blocks);
        }
        fill_codes(w + o * c->w_stride, c->cols, of_blocks);
    }
}

static void check_fp8_case(operation *op, const matmul_case *c, size_t first) {
    fill_mode w_mode = below(MODES), x_mode = below(MODES);
    size_t y_count = extent(c->rows, c->y_stride, c->features), x_count = extent(c->rows, c->x_stride, c->cols);
    size_t across = fr_fp8_blocks(c->cols), stride = across + below(3);
    size_t blocks = extent((first + c->features - 1) / FR_FP8_BLOCK + 1, stride, across);
    uint8_t *w = place(0, extent(c->features, c->w_stride, c->cols), c->at_end);
    float *x = place_floats(1, x_count, c->at_end), *y = place_floats(2, y_count, c->at_end);
    float *expected = place_floats(3, y_count, true), *alone = place_floats(4, c->features, c->at_end);
    float *scales = place_floats(5, blocks, c->at_end);
    snprintf(shape, sizeof shape, "rows %zu cols %zu features %zu from %zu, strides x %zu y %zu w %zu, %s and %s",
             c->rows, c->cols, c->features, first, c->x_stride, c->y_stride, c->w_stride, mode_names[w_mode],
             mode_names[x_mode]);
    fill_fp8(w, c, scales, stride, first, w_mode);
    fill_rows(x, c->rows, c->x_stride, c->cols, x_mode);
    for (size_t i = 0; i < y_count; i++) expected[i] = -12345;
    fr_matmul_fp8 job = {.y = expected,
                         .y_stride = c->y_stride,
                         .x = x,
                         .x_stride = c->x_stride,
                         .rows = c->rows,
                         .w = w,
                         .w_stride = c->w_stride,
                         .scales = scales,
                         .scale_stride = stride,
                         .first = first,
                         .cols = c->cols,
                         .features = c->features};
    ((fr_matmul_fp8_fn *)op->definition)(&job);
    job.y = y;
    op->cases++;
    for (struct build *build = NULL; (build = next_build(op, build));) {
        fr_matmul_fp8_fn *matmul = (fr_matmul_fp8_fn *)build->function;
        for (size_t i = 0; i < y_count; i++) y[i] = -12345;
        matmul(&job);
        compare(build, y, expected, y_count);
        size_t row = below((uint32_t)c->rows);
        fr_matmul_fp8 one = job;
        one.y = alone;
        one.x = x + row * c->x_stride;
        one.rows = 1;
        matmul(&one);
        compare(build, alone, y + row * c->y_stride, c->features);
    }
}

/* Checks small shapes, and then shapes whose weights fit in no cache. Blocks with one scale may begin and end anywhere
 * in a row. */
static void check_matmul_fp8(operation *op) {
    static const size_t rows[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 17, 20, 24, 25, 47, 48, 49, 50, 64, 97};
    static const size_t large[] = {1, 2, 3, 4, 5, 8, 53}, cols[] = {500, 1543, 2048, 5001};
    matmul_case c = {.type = FR_F8_E4M3};
    for (size_t i = 0; i < COUNT(rows); i++)
        for (c.features = 1; c.features <= 17; c.features++)
            for (size_t j = 0; j < (rows[i] < 47 ? 40 : 12); j++) {
                if (left_out()) continue;
                c.rows = rows[i];
                c.cols = j % 4 ? 1 + below(300) : 490 + below(560);
                c.at_end = below(4) > 0;
                c.x_stride = c.cols + below(2) * below(20);
                c.y_stride = c.features + below(2) * below(20);
                c.w_stride = c.cols + below(2) * below(20);
                check_fp8_case(op, &c, below(2) * below(300));
            }
    for (size_t i = 0; i < COUNT(large); i++)
        for (size_t j = 0; j < COUNT(cols); j++) {
            if ((i + j) % large_one_in()) continue;
            c = (matmul_case){.type = FR_F8_E4M3, .rows = large[i], .cols = cols[j], .at_end = below(4) > 0};
            c.features = (1 << 20) / c.cols + below(200);
            c.x_stride = below(2) ? c.cols + below(20) : (c.cols + 1023) / 1024 * 1024;
            c.y_stride = c.features + below(20);
            c.w_stride = c.cols + below(2) * below(20);
            check_fp8_case(op, &c, below(2) * below(300));
        }
    for (struct build *build = NULL; (build = next_build(op, build));) {
        void *nowhere = place(0, 0, true);
        snprintf(shape, sizeof shape, "no rows, or no outputs");
        fr_matmul_fp8 job = {nowhere, 8, nowhere, 64, 0, nowhere, 64, nowhere, 1, 0, 64, 8};
        ((fr_matmul_fp8_fn *)build->function)(&job);
        job.y_stride = job.features = 0;
        job.rows = 3;
        ((fr_matmul_fp8_fn *)build->function)(&job);
        job.rows = 9;
        ((fr_matmul_fp8_fn *)build->function)(&job);
    }
}

static void check_gather_case(operation *op, fr_dtype type, size_t cols, size_t features, size_t count) {
    fill_mode mode = below(MODES);
    bool at_end = below(4) > 0;
    size_t row_bytes = fr_dtype_row_bytes(type, cols), w_stride = row_bytes + below(20);
    char *w = place(0, extent(features, w_stride, row_bytes), at_end);
    float *x = place_floats(1, cols, at_end), *y = place_floats(2, count, at_end);
    float *expected = place_floats(3, count, true);
    int32_t *ids = place(4, count * sizeof *ids, at_end);
    snprintf(shape, sizeof shape, "cols %zu, %zu of %zu weight rows, w stride %zu, %s", cols, count, features, w_stride,
             mode_names[mode]);
    for (size_t o = 0; o < features; o++) fill_weights(w + o * w_stride, cols, type, mode);
    fill_floats(x, cols, mode);
    for (size_t j = 0; j < count; j++) ids[j] = (int32_t)below((uint32_t)features);
    fr_gather job = {expected, x, w, w_stride, cols, ids, count};
    ((fr_gather_fn *)op->definition)(&job);
    job.y = y;
    op->cases++;
    for (struct build *build = NULL; (build = next_build(op, build));) {
        ((fr_gather_fn *)build->function)(&job);
        compare(build, y, expected, count);
    }
}

static void check_gather(operation *op) {
    fr_dtype type = type_of(op, offsetof(fr_kernels, gather));
    for (size_t cols = 1; cols <= 1000; cols = cols == 70 ? 127 : cols == 129 ? 1000 : cols + 1)
        for (size_t count = 0; count <= 20; count++) check_gather_case(op, type, cols, 1 + below(30), count);
}

/* --------------------------------------------------------------------------------------- contracts on plain arrays */

static void call_exp(any_fn *function, float *y, const float *a, const float *b, size_t n, float factor) {
    (void)b, (void)factor;
    ((fr_exp_fn *)function)(y, a, n);
}

static void call_softcap(any_fn *function, float *y, const float *a, const float *b, size_t n, float factor) {
    (void)a, (void)b;
    ((fr_softcap_fn *)function)(y, n, factor);
}

static void call_add(any_fn *function, float *y, const float *a, const float *b, size_t n, float factor) {
    (void)b, (void)factor;
    ((fr_add_fn *)function)(y, a, n);
}

static void call_scale(any_fn *function, float *y, const float *a, const float *b, size_t n, float factor) {
    (void)a, (void)b;
    ((fr_scale_fn *)function)(y, n, factor);
}

static void call_axpy(any_fn *function, float *y, const float *a, const float *b, size_t n, float factor) {
    (void)b;
    ((fr_axpy_fn *)function)(y, a, n, factor);
}

static void call_clamped(any_fn *function, float *y, const float *a, const float *b, size_t n, float factor) {
    ((fr_clamped_swiglu_fn *)function)(y, a, b, n, factor);
}

static void call_gated(any_fn *function, float *y, const float *a, const float *b, size_t n, float factor) {
    (void)factor;
    ((fr_gelu_mul_fn *)function)(y, a, b, n);
}

/* Runs RMSNorm. If `factor` is above 1, the norm has no weights. */
static void call_rmsnorm(any_fn *function, float *y, const float *a, const float *b, size_t n, float factor) {
    ((fr_rmsnorm_fn *)function)(y, a, factor > 1 ? NULL : b, n, 1e-6f);
}

/* Runs LayerNorm. If `factor` is above 1, the norm has no bias. */
static void call_layernorm(any_fn *function, float *y, const float *a, const float *b, size_t n, float factor) {
    ((fr_layernorm_fn *)function)(y, a, b, factor > 1 ? NULL : b, n, 1e-6f);
}

static void check_array_case(operation *op, size_t n, fill_mode mode, unsigned alias) {
    bool at_end = below(4) > 0;
    float *first = place_floats(0, n, at_end), *a = place_floats(1, n, at_end), *b = place_floats(2, n, at_end);
    float *y = place_floats(3, n, at_end), *expected = place_floats(4, n, true);
    float factor;
    snprintf(shape, sizeof shape, "n %zu, %s%s", n, mode_names[mode], alias ? ", in place" : "");
    fill_floats(first, n, mode);
    fill_floats(a, n, mode);
    fill_floats(b, n, mode);
    fill_floats(&factor, 1, ORDINARY);
    const float *start = alias == Y_MAY_BE_A ? a : alias == Y_MAY_BE_B ? b : first;
    memcpy(expected, start, n * sizeof *y);
    op->kind->call(op->definition, expected, a, b, n, factor);
    op->cases++;
    for (struct build *build = NULL; (build = next_build(op, build));) {
        memcpy(y, start, n * sizeof *y);
        op->kind->call(build->function, y, alias == Y_MAY_BE_A ? y : a, alias == Y_MAY_BE_B ? y : b, n, factor);
        compare(build, y, expected, n);
    }
}

/* Checks a kernel on plain arrays with numbers of all magnitudes. Array a gets every step-th bit pattern of float32,
 * and array b gets other bit patterns. Some kernels also read y, so before the call y is a copy of a. */
static void check_array_sweep(operation *op) {
    uint32_t n = 4096, step = options.one_in > 4 ? 99991 : 9973, count = UINT32_MAX / step;
    float *first = place_floats(0, n, true), *b = place_floats(2, n, true);
    float *y = place_floats(3, n, true), *expected = place_floats(4, n, true);
    snprintf(shape, sizeof shape, "every %u-th bit pattern", step);
    for (uint32_t done = 0; done < count; done += n) {
        for (uint32_t i = 0; i < n; i++) {
            uint32_t bits = (done + i) * step, other = (done + i) * 2654435761u;
            memcpy(&first[i], &bits, sizeof bits);
            memcpy(&b[i], &other, sizeof other);
        }
        memcpy(expected, first, n * sizeof *y);
        op->kind->call(op->definition, expected, first, b, n, 30.0f);
        op->cases++;
        for (struct build *build = NULL; (build = next_build(op, build));) {
            memcpy(y, first, n * sizeof *y);
            op->kind->call(build->function, y, first, b, n, 30.0f);
            compare(build, y, expected, n);
        }
    }
}

static void check_array(operation *op) {
    for (size_t n = 0; n <= 1000; n = n == 70 ? 127 : n == 129 ? 1000 : n + 1)
        for (fill_mode mode = 0; mode < MODES; mode++)
            for (unsigned repeat = 0; repeat < (options.one_in > 4 ? 1 : 4); repeat++) {
                check_array_case(op, n, mode, 0);
                if (op->kind->in_place) check_array_case(op, n, mode, Y_MAY_BE_A);
                if (op->kind->in_place & Y_MAY_BE_B) check_array_case(op, n, mode, Y_MAY_BE_B);
            }
    check_array_sweep(op);
}

static void check_rope(operation *op) {
    for (size_t n = 2; n <= 512; n = n == 140 ? 256 : n == 256 ? 512 : n + 2)
        for (unsigned repeat = 0; repeat < 20; repeat++) {
            fill_mode mode = below(MODES);
            bool at_end = below(4) > 0;
            float *first = place_floats(0, n, at_end), *x = place_floats(1, n, at_end);
            float *cosine = place_floats(2, n / 2, at_end), *sine = place_floats(3, n / 2, at_end);
            float *expected = place_floats(4, n, true);
            snprintf(shape, sizeof shape, "n %zu, %s", n, mode_names[mode]);
            fill_floats(first, n, mode);
            fill_floats(cosine, n / 2, mode);
            fill_floats(sine, n / 2, mode);
            memcpy(expected, first, n * sizeof *x);
            ((fr_rope_fn *)op->definition)(expected, cosine, sine, n);
            op->cases++;
            for (struct build *build = NULL; (build = next_build(op, build));) {
                memcpy(x, first, n * sizeof *x);
                ((fr_rope_fn *)build->function)(x, cosine, sine, n);
                compare(build, x, expected, n);
            }
        }
}

/* ------------------------------------------------------------------------------------------------------- selection */

/* Fills an array with small whole numbers. Many of them are equal, and +0 and -0 occur too. Then `spoiled` elements
 * become NaN or infinite. */
static void fill_ties(float *x, size_t n, uint32_t levels, uint32_t spoiled) {
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < n; i++) x[i] = copysignf((float)below(levels), below(2) ? 1 : -1);
    while (spoiled--) x[below((uint32_t)n)] = bad[below(COUNT(bad))];
}

static void check_argmax_case(operation *op, size_t n, uint32_t levels, uint32_t spoiled) {
    float *x = place_floats(0, n, below(4) > 0);
    snprintf(shape, sizeof shape, "n %zu, %u levels, %u not finite", n, levels, spoiled);
    fill_ties(x, n, levels, spoiled);
    int32_t expected = (int32_t)((fr_argmax_fn *)op->definition)(x, n);
    op->cases++;
    for (struct build *build = NULL; (build = next_build(op, build));) {
        int32_t got = (int32_t)((fr_argmax_fn *)build->function)(x, n);
        compare_ids(build, &got, &expected, 1);
    }
}

static void check_argmax(operation *op) {
    for (size_t n = 1; n <= 300; n++)
        for (uint32_t repeat = 0; repeat < 24; repeat++)
            check_argmax_case(op, n, repeat % 3 == 0 ? 1 : repeat % 3 == 1 ? 4 : 1000000, repeat < 6);
    for (uint32_t repeat = 0; repeat < 8; repeat++)
        check_argmax_case(op, 262144, repeat < 4 ? 3 : 1000000, repeat == 7);
}

static void check_topk_case(operation *op, size_t n, size_t k, uint32_t levels, uint32_t spoiled) {
    bool at_end = below(4) > 0;
    float *x = place_floats(0, n, at_end);
    int32_t *ids = place(1, k * sizeof *ids, at_end), *scratch = place(2, n * sizeof *scratch, at_end);
    int32_t *expected = place(3, k * sizeof *ids, true);
    snprintf(shape, sizeof shape, "n %zu, k %zu, %u levels, %u not finite", n, k, levels, spoiled);
    fill_ties(x, n, levels, spoiled);
    ((fr_topk_fn *)op->definition)(x, n, k, expected, scratch);
    op->cases++;
    for (struct build *build = NULL; (build = next_build(op, build));) {
        ((fr_topk_fn *)build->function)(x, n, k, ids, scratch);
        compare_ids(build, ids, expected, k);
    }
}

static void check_topk(operation *op) {
    static const uint32_t levels[] = {1, 3, 1000, 1000000};
    for (size_t n = 1; n <= 150; n++)
        for (uint32_t repeat = 0; repeat < 12; repeat++) {
            size_t k = repeat < 3 ? n : 1 + below((uint32_t)n);
            check_topk_case(op, n, k, levels[repeat % 4], repeat % 5 == 4 ? below((uint32_t)n + 1) : 0);
        }
    check_topk_case(op, 2048, 32, 1000000, 0);
    check_topk_case(op, 262144, 64, 1000, 3);
    if (options.one_in <= 4) check_topk_case(op, 262144, 262144, 1000, 3);
}

/* ------------------------------------------------------------------------------------------------------- attention */

enum { QUERIES_MAX = 40, PAGE = 64, SLOTS_MAX = 4 * PAGE, POSITIONS_MAX = 100100 / PAGE * PAGE };

/* Number of types of cached rows: FR_KV_TYPES types, and turbo4 and turbo3. */
enum { ROW_TYPES = FR_KV_TYPES + 2 };

static fr_dtype row_type(uint32_t index) {
    return index < FR_KV_TYPES ? index : index == FR_KV_TYPES ? FR_TURBO4 : FR_TURBO3;
}

/* Fills rows of a block type. The scales are random numbers of `mode`, and the codes are random bytes. */
static void fill_blocks(uint8_t *row, size_t bytes, fr_dtype type, fill_mode mode) {
    size_t block = fr_dtype_row_bytes(type, fr_dtype_block(type));
    for (size_t at = 0; at < bytes; at += block) {
        uint16_t scale = (uint16_t)random_number(mode, 5, 10);
        for (size_t i = 0; i < block; i++) row[at + i] = (uint8_t)random_bits();
        memcpy(row + at, &scale, sizeof scale);
    }
}

/* Makes K or V with memory for the slots `low` to `high` only. If at_end is true, an inaccessible page comes directly
 * after these slots, otherwise directly before them. */
static const void *place_slots(size_t index, size_t head_dim, fr_dtype type, size_t stride, size_t low, size_t high,
                               bool at_end, fill_mode mode) {
    size_t row_bytes = fr_dtype_row_bytes(type, head_dim);
    uint8_t *seen = place(index, extent(high - low + 1, stride, row_bytes), at_end);
    for (size_t i = 0; i <= high - low; i++)
        if (type < FR_FLOAT_TYPES)
            fill_weights((char *)seen + i * stride, head_dim, type, mode);
        else
            fill_blocks(seen + i * stride, row_bytes, type, mode);
    return (const void *)((uintptr_t)seen - low * stride);
}

/* Makes `count` queries as a forward pass makes them. The first `share` queries are heads at position `start`, the next
 * `share` queries are heads at the next position, and so on. Each query sees the last `window` positions up to its
 * own. */
static void make_queries(fr_attn_query *queries, size_t count, int64_t start, size_t share, int64_t window) {
    for (size_t j = 0; j < count; j++) {
        int64_t last = start + (int64_t)(j / share);
        queries[j].last = last;
        queries[j].first = last < window ? 0 : last - window + 1;
    }
}

/* A case of attention. Few slots store many positions: position p is stored in slot p % slots. */
typedef struct attn_case {
    fr_attn attn;
    size_t slots;
    bool latent; /* true: each value is the first part of its key */
} attn_case;

/* Finds the lowest and the highest slot that at least one query sees. */
static void seen_slots(const attn_case *c, size_t *low, size_t *high) {
    const fr_attn *attn = &c->attn;
    *low = SIZE_MAX, *high = 0;
    for (size_t j = 0; j < attn->count; j++)
        for (int64_t p = attn->queries[j].first; p <= attn->queries[j].last; p++) {
            size_t slot = (size_t)p % c->slots;
            *low = slot < *low ? slot : *low;
            *high = slot > *high ? slot : *high;
        }
}

/* Returns the number of floats in a query's output. The output is one result, or one partial result for each page of
 * positions. */
static size_t output_size(const fr_attn *attn) {
    return attn->partial_stride ? (SLOTS_MAX / PAGE + 1) * attn->partial_stride : attn->value_dim;
}

/* Returns pointers to the pages of all positions up to `last`. In the engine, a page begins with rows of other layers.
 * So each of these pointers is `at` bytes before the first row of its page in `ring`. */
static const uint8_t *const *pages_of(const attn_case *c, const uint8_t *ring, size_t stride, size_t at, int64_t last,
                                      const uint8_t **pages) {
    for (size_t p = 0; p <= (size_t)last; p += PAGE)
        pages[p / PAGE] = (const uint8_t *)((uintptr_t)ring + p % c->slots * stride - at);
    return pages;
}

/* Gives each query its part of `out`. A kernel may leave some floats of `out` unwritten. They are set to zero first, so
 * that the whole results of two kernels can be compared. */
static void point_outputs(const fr_attn *attn, fr_attn_query *queries, float *out) {
    memset(out, 0, attn->count * output_size(attn) * sizeof *out);
    for (size_t j = 0; j < attn->count; j++) queries[j].out = out + j * output_size(attn);
}

/* Runs a build or the definition. The maximum in a partial result may be +0 or -0. It is changed to +0, so that both
 * compare as equal. */
static void run_attn(any_fn *function, const fr_attn *attn) {
    ((fr_attn_fn *)function)(attn);
    for (size_t j = 0; attn->partial_stride && j < attn->count; j++)
        for (size_t at = attn->value_dim; at < output_size(attn); at += attn->partial_stride)
            if (attn->queries[j].out[at] == 0) attn->queries[j].out[at] = 0;
}

/* Adds options to cases of attention. About a third of the cases get a cap on scores, a third get sinks, and a quarter
 * get slopes. Sinks and slopes go to some or to all queries. Some sinks are far below or far above any possible
 * score. */
static void cap_and_slope(fr_attn *attn, fr_attn_query *queries, float *sinks, fill_mode mode) {
    static const float caps[] = {0.25f, 1.5f, 50.0f};
    attn->softcap = below(3) ? 0 : caps[below(COUNT(caps))];
    bool sink = below(3) == 0, all = below(2);
    fill_floats(sinks, attn->count, mode);
    for (size_t j = 0; j < attn->count; j++) {
        if (below(4) == 0) sinks[j] *= 100;
        queries[j].sink = sink && (all || below(2)) ? &sinks[j] : NULL;
    }
    bool slope = below(4) == 0;
    attn->slopes_stepped = slope && below(2);
    for (size_t j = 0; j < attn->count; j++) {
        queries[j].slope = slope && (all || below(2)) ? 1.0f / (float)(1 + below(300)) : 0;
        queries[j].slope_from = attn->slopes_stepped ? 0 : queries[j].last;
    }
}

/* In about a third of the cases, the keys are stored without their means. Such a case also needs the means, and the
 * queries from before their rotation. All these numbers are random and do not belong together, because the kernels'
 * sums are defined for any numbers. */
static void subtract_means(fr_attn *attn, fr_attn_query *queries, fr_key_means *means) {
    static float starts[POSITIONS_MAX / PAGE * FR_KEY_MEANS_WIDEST];
    _Alignas(64) static float columns[PAGE * (2 + FR_KEY_MEANS_WIDEST)];
    static float values[4][FR_KEY_MEANS_WIDEST], plain[QUERIES_MAX * FR_KEY_MEANS_WIDEST];
    static uint16_t used[FR_KEY_MEANS_USED];
    size_t n = attn->head_dim, dims = below((uint32_t)n / 2 + 1) * 2;
    if (below(3) || n > FR_KEY_MEANS_WIDEST) return;
    if (starts[0] == 0) fill_floats(starts, COUNT(starts), ORDINARY);
    fill_floats(columns, PAGE * (2 + dims), ORDINARY);
    fill_floats(values[0], 4 * FR_KEY_MEANS_WIDEST, ORDINARY);
    fill_floats(plain, attn->count * n, ORDINARY);
    for (size_t j = 0; j < attn->count; j++) queries[j].plain = plain + j * n;
    *means = (fr_key_means){.head_dim = n,
                            .dims = dims,
                            .neox = below(2),
                            .first = values[0],
                            .mean = values[1],
                            .level = values[2],
                            .slope = values[3],
                            .starts = starts,
                            .columns = columns,
                            .used = used};
    fr_key_means_begin(means);
    for (uint32_t fast = dims ? below(FR_KEY_MEANS_FAST + 1) : 0; fast > 0; fast--)
        fr_key_means_add_fast(means, below((uint32_t)dims / 2));
    attn->key_means = means;
}

static void check_attn_case(operation *op, attn_case *c, fr_attn_query *queries) {
    static const uint8_t *k_pages[POSITIONS_MAX / PAGE], *v_pages[POSITIONS_MAX / PAGE];
    fr_attn *attn = &c->attn;
    fill_mode mode = below(4) ? ORDINARY : below(MODES);
    float sinks[QUERIES_MAX];
    bool at_end = below(4) > 0;
    size_t n = attn->head_dim, size = output_size(attn), low, high;
    float *q = place_floats(2, attn->count * n, at_end), *out = place_floats(3, attn->count * size, at_end);
    float *expected = place_floats(4, attn->count * size, true), *alone = place_floats(5, size, at_end);
    attn->queries = queries;
    attn->scratch = place_floats(6, fr_attn_scratch(n, attn->count), at_end);
    int64_t last = queries[attn->count - 1].last;
    seen_slots(c, &low, &high);
    const uint8_t *k = place_slots(0, n, attn->k_type, attn->k_stride, low, high, at_end, mode);
    const uint8_t *v =
        c->latent ? k : place_slots(1, attn->value_dim, attn->v_type, attn->v_stride, low, high, at_end, mode);
    attn->k_at = below(2) * below(1000) * sizeof(float);
    attn->v_at = below(2) * below(1000) * sizeof(float);
    attn->k_pages = pages_of(c, k, attn->k_stride, attn->k_at, last, k_pages);
    attn->v_pages = pages_of(c, v, attn->v_stride, attn->v_at, last, v_pages);
    fill_floats(q, attn->count * n, mode);
    for (size_t j = 0; j < attn->count; j++) queries[j].q = q + j * n;
    cap_and_slope(attn, queries, sinks, mode);
    fr_key_means means;
    subtract_means(attn, queries, &means);
    snprintf(shape, sizeof shape,
             "head_dim %zu, values of %zu, %zu queries, positions %lld..%lld to %lld, %zu slots, %s keys, stride %zu, "
             "%s values, stride %zu, partial results %zu, cap %g, %s, slope %g%s, %s means, %s",
             n, attn->value_dim, attn->count, (long long)queries[0].first, (long long)queries[0].last, (long long)last,
             c->slots, fr_dtype_name(attn->k_type), attn->k_stride, fr_dtype_name(attn->v_type), attn->v_stride,
             attn->partial_stride, (double)attn->softcap, queries[0].sink ? "a sink" : "no sink",
             (double)queries[0].slope, attn->slopes_stepped ? " in steps" : "", attn->key_means ? "with" : "no",
             mode_names[mode]);
    point_outputs(attn, queries, expected);
    run_attn(op->definition, attn);
    op->cases++;
    for (struct build *build = NULL; (build = next_build(op, build));) {
        point_outputs(attn, queries, out);
        run_attn(build->function, attn);
        compare(build, out, expected, attn->count * size);
        fr_attn_query one = queries[below((uint32_t)attn->count)];
        fr_attn single = *attn;
        const float *among = one.out;
        one.out = memset(alone, 0, size * sizeof *alone);
        single.queries = &one;
        single.count = 1;
        single.scratch = place_floats(6, fr_attn_scratch(n, 1), at_end);
        run_attn(build->function, &single);
        compare(build, alone, among, size);
    }
}

/* Returns a random distance in bytes between the beginnings of two rows. For floats the distance keeps rows aligned. */
static size_t random_stride(fr_dtype type, size_t head_dim) {
    size_t gap = below(2) * below(30);
    return fr_dtype_row_bytes(type, head_dim) + (type == FR_F32 ? gap * sizeof(float) : gap);
}

/* Checks latent attention, in which keys are wider than values. A key consists of a latent and a rotary part, and the
 * value is the latent. Also checks wide keys with values that are stored separately. */
static void check_latent_attn(operation *op) {
    static const size_t dims[][2] = {{2, 1}, {17, 16}, {40, 33}, {96, 32}, {80, 64}, {100, 80}, {576, 512}};
    fr_attn_query queries[QUERIES_MAX];
    for (size_t d = 0; d < COUNT(dims); d++)
        for (uint32_t repeat = 0; repeat < 100; repeat++) {
            if (left_out()) continue;
            uint32_t types = dims[d][0] % 32 || dims[d][1] % 32 ? FR_FLOAT_TYPES : ROW_TYPES;
            attn_case c = {.slots = PAGE * (1 + below(4)), .latent = repeat % 4 > 0};
            fr_attn *attn = &c.attn;
            size_t rows = 1 + below(4), share = 1 + below(QUERIES_MAX / 4);
            *attn = (fr_attn){.head_dim = dims[d][0], .value_dim = dims[d][1], .scale = 0.25f, .count = rows * share};
            attn->k_type = row_type(repeat % types);
            attn->k_stride = random_stride(attn->k_type, attn->head_dim);
            attn->v_type = c.latent ? attn->k_type : row_type(repeat / types % types);
            attn->v_stride = c.latent ? attn->k_stride : random_stride(attn->v_type, attn->value_dim);
            if (below(3) == 0) attn->partial_stride = attn->value_dim + 2 + below(20);
            make_queries(queries, attn->count, below(70), share, (int64_t)(c.slots - rows));
            check_attn_case(op, &c, queries);
        }
}

static void check_attn(operation *op) {
    static const size_t head_dims[] = {1, 2, 15, 16, 17, 31, 32, 33, 64, 80, 96, 100, 128, 192, 256, 512};
    fr_attn_query queries[QUERIES_MAX];
    for (size_t d = 0; d < COUNT(head_dims); d++)
        for (uint32_t repeat = 0; repeat < 200; repeat++) {
            if (left_out()) continue;
            size_t share = 1 + below(4), rows = repeat % 20 == 0 ? 10 : 1 + below(9);
            uint32_t types = head_dims[d] % 32 ? FR_FLOAT_TYPES : ROW_TYPES;
            attn_case c = {.slots = PAGE * (1 + below(4))};
            fr_attn *attn = &c.attn;
            *attn = (fr_attn){.head_dim = head_dims[d], .value_dim = head_dims[d], .scale = 0.25f};
            attn->k_type = row_type(repeat % types);
            attn->v_type = row_type(repeat / types % types);
            attn->k_stride = random_stride(attn->k_type, attn->head_dim);
            attn->v_stride = random_stride(attn->v_type, attn->head_dim);
            attn->count = rows * share;
            if (below(3) == 0) attn->partial_stride = attn->head_dim + 2 + below(20);
            int64_t window = 1 + below((uint32_t)(c.slots - rows)), start = below(2) ? below(70) : below(100000);
            if (below(2)) window = (int64_t)(c.slots - rows);
            make_queries(queries, attn->count, start, share, window);
            check_attn_case(op, &c, queries);
        }
    check_latent_attn(op);
}

/* ----------------------------------------------------------------------------------------- storing keys and values */

typedef enum store_fill { NUMBERS, SCALED, HALFWAY, EQUALS, STORE_FILLS } store_fill;

/* Fills a row with numbers that must be rounded when they are stored. NUMBERS: numbers of `mode`. SCALED: numbers of
 * `mode` times a power of two, so that scales have every exponent of float16. HALFWAY: multiples of half the distance
 * between two values that the type can store, so that many numbers are halfway between two such values. EQUALS: blocks
 * whose largest magnitude occurs with both signs. */
static void fill_row(float *x, size_t n, store_fill fill, fill_mode mode) {
    float power = ldexpf(1, (int)below(48) - 32);
    fill_floats(x, n, mode);
    for (size_t i = 0; i < n; i++) {
        float sign = below(2) ? 1 : -1;
        if (fill == SCALED)
            x[i] *= power;
        else if (fill == EQUALS)
            x[i] = below(3) ? sign * power : sign * power * 0.5f;
        else if (fill == HALFWAY && below(2)) {
            uint32_t bits;
            memcpy(&bits, &x[i], sizeof bits);
            bits &= below(2) ? 0xfffff000 : 0xffff8000;
            memcpy(&x[i], &bits, sizeof bits);
        } else if (fill == HALFWAY)
            x[i] = sign * power * (i % 32 == 0 ? 127 : 0.5f * (float)below(254));
    }
}

/* Compares stored rows. Rows of block types are compared byte by byte. Rows of other types are compared as float32, and
 * any NaN is equal to any other NaN. */
static void compare_rows(struct build *build, fr_dtype type, const uint8_t *got, const uint8_t *expected, size_t n) {
    static float values[2][2048];
    size_t bytes = fr_dtype_row_bytes(type, n);
    if (type < FR_FLOAT_TYPES) {
        fr_dtype_decode(type, got, values[0], n);
        fr_dtype_decode(type, expected, values[1], n);
        compare(build, values[0], values[1], n);
        return;
    }
    for (size_t i = 0; i < bytes; i++) {
        if (got[i] == expected[i]) continue;
        if (build->wrong++ == 0)
            printf("%s: byte %zu is %d, not %d, at %s, --seed %llu\n", build->name, i, got[i], expected[i], shape,
                   (unsigned long long)options.seed);
        return;
    }
}

static void check_kv_store(operation *op) {
    fr_dtype type = type_of(op, offsetof(fr_kernels, kv_store));
    size_t block = fr_dtype_block(type);
    for (size_t n = 0; n <= 1024; n += n < 70 ? block : 13 * block)
        for (uint32_t repeat = 0; repeat < (block > 1 ? 8000 : 400); repeat++) {
            if (left_out()) continue;
            store_fill fill = below(STORE_FILLS);
            fill_mode mode = below(2) ? ORDINARY : below(MODES);
            bool at_end = below(4) > 0;
            size_t bytes = fr_dtype_row_bytes(type, n);
            float *x = place_floats(0, n, at_end);
            uint8_t *slot = place(1, bytes, at_end), *expected = place(2, bytes, true);
            snprintf(shape, sizeof shape, "n %zu, fill %d of %s", n, (int)fill, mode_names[mode]);
            fill_row(x, n, fill, mode);
            ((fr_kv_store_fn *)op->definition)(expected, x, n);
            op->cases++;
            for (struct build *build = NULL; (build = next_build(op, build));) {
                memset(slot, 0xa5, bytes);
                ((fr_kv_store_fn *)build->function)(slot, x, n);
                compare_rows(build, type, slot, expected, n);
            }
        }
}

/* -------------------------------------------------------------------------------------------- DeltaNet and Mamba-2 */

enum { ROWS_MAX = 12, CONV_KERNEL_MAX = 6 };

/* Fills an array with factors from 0 to 1, including 0 and 1. */
static void fill_factors(float *x, size_t n, fill_mode mode) {
    fill_floats(x, n, mode == NONFINITE ? WIDE : mode);
    for (size_t i = 0; i < n; i++) x[i] = below(8) ? fminf(fabsf(x[i]), 1) : (float)below(2);
}

/* Fills a head's state. The columns from value_dim on are 0. */
static void fill_head(float *head, size_t key_dim, size_t value_dim, fill_mode mode) {
    size_t n = fr_deltanet_state(key_dim, value_dim), last = value_dim / FR_DELTANET_STRIP;
    fill_floats(head, n, mode);
    for (size_t i = last * key_dim * FR_DELTANET_STRIP; i < n; i++)
        if (last * FR_DELTANET_STRIP + i % FR_DELTANET_STRIP >= value_dim) head[i] = 0;
}

typedef struct deltanet_case {
    size_t key_dim, value_dim, count, keeps;
    /* decays: one for each value of each row's key, or NULL */
    const float *head, *keys, *queries, *values, *factors, *decays;
    float *scratch, skip;
    bool down, asked[ROWS_MAX]; /* down: the rows are in descending order in memory; asked: the row has a query */
} deltanet_case;

/* Runs a build. If in_place is true, the build reads the rows' values from `out`, where it also writes the results.
 * Otherwise it reads them from c->values. If a row has no query, the build must not write a result for it. */
static void run_deltanet(const operation *op, any_fn *function, const deltanet_case *c, bool in_place, float *head,
                         float *out) {
    fr_deltanet_row rows[ROWS_MAX];
    memcpy(head, c->head, fr_deltanet_state(c->key_dim, c->value_dim) * sizeof *head);
    memcpy(out, c->values, c->count * c->value_dim * sizeof *out);
    for (size_t r = 0; r < c->count; r++) {
        size_t at = c->down ? c->count - 1 - r : r;
        rows[r] = (fr_deltanet_row){.key = c->keys + at * c->key_dim,
                                    .query = c->asked[r] ? c->queries + at * c->key_dim : NULL,
                                    .value = (in_place ? out : c->values) + at * c->value_dim,
                                    .out = out + at * c->value_dim,
                                    .decay = c->factors[2 * r],
                                    .beta = c->factors[2 * r + 1],
                                    .decays = c->decays ? c->decays + r * c->key_dim : NULL};
    }
    for (size_t i = 0; c->scratch && i < fr_deltanet_scratch(c->key_dim); i++) c->scratch[i] = NAN;
    const fr_deltanet run = {head, c->key_dim, c->value_dim, rows, c->count, c->keeps, c->scratch};
    if (op->offset == offsetof(fr_kernels, mamba))
        ((fr_mamba_fn *)function)(&run, c->skip);
    else
        ((fr_deltanet_fn *)function)(&run);
}

static void check_deltanet_case(operation *op, deltanet_case *c) {
    fill_mode mode = below(MODES);
    bool at_end = below(4) > 0, in_place = below(2);
    size_t size = fr_deltanet_state(c->key_dim, c->value_dim), outputs = c->count * c->value_dim;
    float *start = place_floats(0, size, at_end), *keys = place_floats(1, c->count * c->key_dim, at_end);
    float *queries = place_floats(2, c->count * c->key_dim, at_end), *values = place_floats(3, outputs, at_end);
    float *head = place_floats(4, size, at_end), *expected_head = place_floats(5, size, true);
    float *out = place_floats(6, outputs, at_end), *expected = place_floats(7, outputs, true), factors[2 * ROWS_MAX];
    float *decays = place_floats(9, c->count * c->key_dim, at_end);
    snprintf(shape, sizeof shape, "key_dim %zu, value_dim %zu, %zu rows, %zu kept, %s%s", c->key_dim, c->value_dim,
             c->count, c->keeps, mode_names[mode], in_place ? ", in place" : "");
    fill_head(start, c->key_dim, c->value_dim, mode);
    fill_floats(keys, c->count * c->key_dim, mode);
    fill_floats(queries, c->count * c->key_dim, mode);
    fill_floats(values, outputs, mode);
    fill_factors(factors, 2 * c->count, mode);
    fill_factors(decays, c->count * c->key_dim, mode);
    c->decays = below(2) && op->offset == offsetof(fr_kernels, deltanet) ? decays : NULL;
    c->head = start, c->keys = keys, c->queries = queries, c->values = values, c->factors = factors;
    c->scratch = c->keeps < c->count ? place_floats(8, fr_deltanet_scratch(c->key_dim), at_end) : NULL;
    c->skip = below(2) ? 1.0F : 0.3F;
    c->down = below(2);
    for (size_t r = 0; r < c->count; r++) c->asked[r] = below(4);
    run_deltanet(op, op->definition, c, false, expected_head, expected);
    op->cases++;
    for (struct build *build = NULL; (build = next_build(op, build));) {
        run_deltanet(op, build->function, c, in_place, head, out);
        compare(build, out, expected, outputs);
        compare(build, head, expected_head, size);
    }
}

static void check_deltanet(operation *op) {
    static const size_t key_dims[] = {1, 2, 3, 4, 5, 7, 16, 17, 33, 64, 100, 128, 192, 256};
    static const size_t value_dims[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 47, 48, 49, 64, 65, 100, 128};
    for (size_t i = 0; i < COUNT(key_dims); i++)
        for (size_t j = 0; j < COUNT(value_dims); j++)
            for (uint32_t repeat = 0; repeat < 40; repeat++) {
                if (left_out()) continue;
                deltanet_case c = {.key_dim = key_dims[i], .value_dim = value_dims[j]};
                c.count = repeat % 2 ? below(3) : below(ROWS_MAX + 1);
                c.keeps = below(3) ? below((uint32_t)c.count + 1) : c.count;
                check_deltanet_case(op, &c);
            }
}

static void check_short_conv_case(operation *op, size_t n, size_t conv_kernel) {
    fill_mode mode = below(MODES);
    bool at_end = below(4) > 0;
    size_t stride = n + below(2) * below(20);
    float *w = place_floats(0, extent(conv_kernel, stride, n), at_end), *x = place_floats(1, conv_kernel * n, at_end);
    float *y = place_floats(2, n, at_end), *expected = place_floats(3, n, true);
    float *bias = below(2) ? place_floats(4, n, at_end) : NULL;
    const float *rows[CONV_KERNEL_MAX];
    snprintf(shape, sizeof shape, "%zu channels, %zu taps, stride %zu, %s", n, conv_kernel, stride, mode_names[mode]);
    fill_floats(w, extent(conv_kernel, stride, n), mode);
    fill_floats(x, conv_kernel * n, mode);
    if (bias) fill_floats(bias, n, mode);
    size_t missing = below(2) * below((uint32_t)conv_kernel + 1);
    for (size_t t = 0; t < conv_kernel; t++) rows[t] = t < missing ? NULL : x + t * n;
    ((fr_short_conv_fn *)op->definition)(expected, rows, w, stride, conv_kernel, bias, n);
    op->cases++;
    for (struct build *build = NULL; (build = next_build(op, build));) {
        ((fr_short_conv_fn *)build->function)(y, rows, w, stride, conv_kernel, bias, n);
        compare(build, y, expected, n);
        if (missing == conv_kernel) continue;
        size_t t = missing + below((uint32_t)(conv_kernel - missing));
        rows[t] = memcpy(y, rows[t], n * sizeof *y);
        ((fr_short_conv_fn *)build->function)(y, rows, w, stride, conv_kernel, bias, n);
        compare(build, y, expected, n);
        rows[t] = x + t * n;
    }
}

static void check_short_conv(operation *op) {
    for (size_t n = 0; n <= 1000; n = n == 70 ? 127 : n == 129 ? 1000 : n + 1)
        for (size_t conv_kernel = 1; conv_kernel <= CONV_KERNEL_MAX; conv_kernel++)
            for (unsigned repeat = 0; repeat < 12; repeat++)
                if (!left_out()) check_short_conv_case(op, n, conv_kernel);
}

/* Checks the Hadamard transform of blocks of every size, with and without signs, in place and from one array to
 * another. */
static void check_hadamard(operation *op) {
    for (size_t block = 1; block <= 4096; block *= 2)
        for (fill_mode mode = 0; mode < MODES; mode++)
            for (unsigned repeat = 0; repeat < 4; repeat++) {
                if (left_out()) continue;
                size_t n = block * (block > 512 ? 1 + below(2) : below(6));
                bool at_end = below(4) > 0, in_place = below(2);
                float *x = place_floats(0, n, at_end), *signs = place_floats(1, n, at_end);
                float *y = place_floats(2, n, at_end), *expected = place_floats(3, n, true);
                for (size_t i = 0; i < n; i++) signs[i] = below(2) ? 1.0f : -1.0f;
                if (below(3) == 0) signs = NULL;
                snprintf(shape, sizeof shape, "n %zu, block %zu, %s%s", n, block, mode_names[mode],
                         in_place ? ", in place" : "");
                fill_floats(x, n, mode);
                ((fr_hadamard_fn *)op->definition)(expected, x, signs, block, n);
                op->cases++;
                for (struct build *build = NULL; (build = next_build(op, build));) {
                    if (in_place) memcpy(y, x, n * sizeof *y);
                    ((fr_hadamard_fn *)build->function)(y, in_place ? y : x, signs, block, n);
                    compare(build, y, expected, n);
                }
            }
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* ----------------------------------------------------------------------------------------------------- the kernels */

static const kind kind_matmul = {check_matmul, NULL, 0};
static const kind kind_matmul_fp8 = {check_matmul_fp8, NULL, 0};
static const kind kind_gather = {check_gather, NULL, 0};
static const kind kind_rmsnorm = {check_array, call_rmsnorm, Y_MAY_BE_A};
static const kind kind_layernorm = {check_array, call_layernorm, Y_MAY_BE_A};
static const kind kind_rope = {check_rope, NULL, 0};
static const kind kind_gelu_mul = {check_array, call_gated, Y_MAY_BE_A | Y_MAY_BE_B};
static const kind kind_gelu_erf = {check_array, call_exp, Y_MAY_BE_A};
static const kind kind_silu_mul = {check_array, call_gated, Y_MAY_BE_A | Y_MAY_BE_B};
static const kind kind_clamped_swiglu = {check_array, call_clamped, Y_MAY_BE_A | Y_MAY_BE_B};
static const kind kind_sigmoid_mul = {check_array, call_gated, Y_MAY_BE_A | Y_MAY_BE_B};
static const kind kind_short_conv = {check_short_conv, NULL, 0};
static const kind kind_softcap = {check_array, call_softcap, 0};
static const kind kind_add = {check_array, call_add, 0};
static const kind kind_scale = {check_array, call_scale, 0};
static const kind kind_div = {check_array, call_scale, 0};
static const kind kind_mul = {check_array, call_add, 0};
static const kind kind_axpy = {check_array, call_axpy, 0};
static const kind kind_hadamard = {check_hadamard, NULL, 0};
static const kind kind_argmax = {check_argmax, NULL, 0};
static const kind kind_topk = {check_topk, NULL, 0};
static const kind kind_kv_store = {check_kv_store, NULL, 0};
static const kind kind_attn = {check_attn, NULL, 0};
static const kind kind_deltanet = {check_deltanet, NULL, 0};
static const kind kind_mamba = {check_deltanet, NULL, 0};
static const kind kind_exp = {check_array, call_exp, Y_MAY_BE_A};
static const kind kind_tanh = {check_array, call_exp, Y_MAY_BE_A};

static const struct kernel {
    fr_isa_level level;
    size_t offset;
    const char *name;
    any_fn *function;
    const kind *kind;
} kernels[] = {
#define FR_KERNEL(level, kind, slot, function) \
    {level, offsetof(fr_kernels, slot), #function, (any_fn *)(function), &kind_##kind},
#include "kernels/kernels.def"
#undef FR_KERNEL
};

/* Returns the instruction sets that this machine has, as a bit set. Sets above the one of --isa are left out. */
static unsigned wanted_levels(void) {
    unsigned here = fr_cpu_levels();
    if (!options.isa) return here;
    fr_isa_level level = fr_isa_from_word(options.isa);
    if (level < FR_ISA_WORDS && here >> level & 1) return here & fr_isa_allows(level);
    fprintf(stderr, "check_kernels: this machine has no instruction set '%s'\n", options.isa);
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
    double start = now();
    op->kind->check(op);
    for (size_t b = 0; b < op->count; b++) {
        bool bad = op->builds[b].wrong > 0;
        printf("%-6s %-28s %6zu cases, %zu wrong\n", bad ? "WRONG" : "ok", op->builds[b].name, op->cases,
               op->builds[b].wrong);
        wrong += bad;
    }
    printf("       %.2f s\n", now() - start);
    return wrong;
}

static void read_options(int argc, char **argv) {
    options.seed = (uint64_t)time(NULL);
    options.one_in = fr_test_one_in();
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
            fprintf(stderr, "check_kernels: unknown option '%s'\n", word);
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
    state = options.seed;
    printf("check_kernels --seed %llu\n", (unsigned long long)options.seed);
    for (size_t i = 0; i < COUNT(kernels) && kernels[i].level == FR_ISA_SCALAR; i++) {
        operation op = open_operation(&kernels[i], levels);
        checked += op.count;
        if (op.count > 0) wrong += check_operation(&op);
    }
    printf("%zu kernels, %zu wrong\n", checked, wrong);
    return wrong > 0 || checked == 0;
}
