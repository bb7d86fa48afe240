/* Implements block_cases.h: makes cases for the checks of block-quantized kernels. */
#include "tests/support/block_cases.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

enum { RUN = 32, ARENAS = 8 };

/* --------------------------------------------------------------------------------------------------- random numbers */

static uint64_t state;

void fr_random_start(uint64_t seed) {
    state = seed;
}

/* SplitMix64. */
uint64_t fr_random_bits(void) {
    uint64_t z = state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

uint32_t fr_random_below(uint32_t limit) {
    return (uint32_t)((fr_random_bits() >> 32) * limit >> 32);
}

static void fill_bytes(uint8_t *bytes, size_t count) {
    for (size_t i = 0; i < count; i += 8) {
        uint64_t bits = fr_random_bits();
        memcpy(bytes + i, &bits, count - i < 8 ? count - i : 8);
    }
}

/* ------------------------------------------------------------------------------------------------------ activations */

const char *fr_row_mode_name(fr_row_mode mode) {
    static const char *const names[FR_ROW_MODES] = {"ordinary", "full",  "positive",  "ties",
                                                    "small",    "large", "nonfinite", "sparse"};
    return names[mode];
}

/* Returns a random number, evenly distributed from -1 to 1. */
static float random_value(void) {
    return (float)(int32_t)fr_random_bits() * 0x1p-31f;
}

static float random_sign(void) {
    return fr_random_below(2) ? 1.0f : -1.0f;
}

/* Fills a block that has at most 32 columns. */
static void fill_block(float *x, size_t count, fr_row_mode mode) {
    static const float bad[] = {NAN, INFINITY, -INFINITY};
    float unit = ldexpf(1.0f + fabsf(random_value()), (int)fr_random_below(20) - 15), sign = random_sign();
    if (mode == FR_ROW_SMALL) unit = ldexpf(unit, -95);
    if (mode == FR_ROW_LARGE) unit = ldexpf(unit, 122);
    bool empty = fr_random_below(2), spoiled = mode == FR_ROW_NONFINITE && fr_random_below(4) == 0;
    for (size_t i = 0; i < count; i++) switch (mode) {
        case FR_ROW_FULL: x[i] = unit * random_sign(); break;
        case FR_ROW_POSITIVE: x[i] = unit * sign; break;
        case FR_ROW_TIES: x[i] = i == count / 2 ? 127.0f : (float)fr_random_below(127) + 0.5f; break;
        case FR_ROW_SMALL: x[i] = i % 4 ? unit * random_value() : ldexpf(random_value(), -149 + (int)(i % 32)); break;
        case FR_ROW_SPARSE: x[i] = (empty ? 0.0f : unit * random_value()) * random_sign(); break;
        default: x[i] = unit * random_value();
        }
    if (mode == FR_ROW_TIES && fr_random_below(2))
        for (size_t i = 0; i < count; i++) x[i] *= random_sign() * 0x1p-7f;
    if (spoiled) x[fr_random_below((uint32_t)count)] = bad[fr_random_below(COUNT(bad))];
    if (mode == FR_ROW_SMALL && empty) x[count / 2] = fr_random_below(2) ? 0x1p-100f : nextafterf(0x1p-100f, 0);
}

void fr_fill_row(float *x, size_t cols, fr_row_mode mode) {
    for (size_t i = 0; i < cols; i += RUN) fill_block(x + i, cols - i < RUN ? cols - i : RUN, mode);
}

/* ---------------------------------------------------------------------------------------------------------- weights */

const char *fr_weight_mode_name(fr_weight_mode mode) {
    static const char *const names[FR_WEIGHT_MODES] = {"ordinary", "full", "special", "nonfinite"};
    return names[mode];
}

/* Returns the float16 bits of a random scale. */
static uint16_t random_scale(fr_weight_mode mode) {
    static const uint16_t special[] = {0, 0x8000, 1, 0x8001, 0x03ff, 0x0400, 0x7bff, 0xfbff, 0x3c00, 0xbc00};
    uint16_t bits = (uint16_t)fr_random_bits();
    if (mode == FR_WEIGHTS_SPECIAL && fr_random_below(2)) return special[fr_random_below(COUNT(special))];
    if (mode == FR_WEIGHTS_NONFINITE) return bits;
    uint32_t exponent = 5 + fr_random_below(10);
    return (uint16_t)((bits & 0x83ff) | exponent << 10);
}

/* Returns the number of float16 scales in a block. Writes the positions of these scales in the block to `offsets`. */
static size_t scale_offsets(fr_dtype type, size_t offsets[2]) {
    static const uint8_t first[FR_KERNEL_TYPES] = {
        [FR_Q6_K] = 208, [FR_Q2_K] = 80, [FR_Q3_K] = 108, [FR_TQ1_0] = 52, [FR_TQ2_0] = 64, [FR_PTQ1_0] = 26};
    offsets[0] = first[type];
    offsets[1] = offsets[0] + 2;
    return type == FR_Q4_1 || type == FR_Q5_1 || type == FR_Q2_K || type == FR_Q4_K || type == FR_Q5_K ? 2 : 1;
}

/* Stores d, the scale of an IQ1_M block. Each of the block's last four 16-bit words has four bits of d as its high
 * bits. */
static void spread_scale(uint8_t *block, uint16_t bits) {
    for (size_t i = 0; i < 4; i++) {
        uint8_t *top = block + 49 + 2 * i;
        *top = (uint8_t)((*top & 15) | (bits >> 4 * i & 15) << 4);
    }
}

void fr_fill_weights(fr_dtype type, uint8_t *row, size_t cols, fr_weight_mode mode) {
    static const uint8_t extremes[] = {0, 127, 128, 255};
    static const uint8_t e4m3[] = {0, 1, 7, 8, 0x7e, 0x7f, 0x80, 0xff};
    size_t cols_of_block = fr_dtype_block(type), bytes = fr_dtype_row_bytes(type, cols_of_block);
    size_t offsets[2], scales = scale_offsets(type, offsets);
    uint8_t extreme = extremes[fr_random_below(COUNT(extremes))];
    for (size_t done = 0; done < cols; done += cols_of_block, row += bytes) {
        if (mode == FR_WEIGHTS_FULL)
            memset(row, extreme, bytes);
        else
            fill_bytes(row, bytes);
        if (type == FR_MXFP4) {
            if (mode != FR_WEIGHTS_NONFINITE) row[0] = (uint8_t)(115 + fr_random_below(10));
            if (mode == FR_WEIGHTS_SPECIAL) row[0] = (uint8_t)fr_random_below(4);
            continue;
        }
        if (type == FR_NVFP4) {
            for (size_t s = 0; mode == FR_WEIGHTS_SPECIAL && s < 4; s++) row[s] = e4m3[fr_random_below(COUNT(e4m3))];
            continue;
        }
        for (size_t s = 0; s < scales; s++) {
            uint16_t bits = random_scale(mode);
            if (type == FR_IQ1_M) {
                spread_scale(row, bits);
                continue;
            }
            memcpy(row + offsets[s], &bits, sizeof bits);
        }
    }
}

/* ----------------------------------------------------------------------------------------------------------- memory */

static struct guarded {
    char *base;
    size_t size;
} arenas[ARENAS];

static void open_arena(struct guarded *arena, size_t size) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size = (size + page - 1) / page * page;
    if (arena->base) munmap(arena->base - page, arena->size + 2 * page);
    char *base = mmap(NULL, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED || mprotect(base + page, size, PROT_READ | PROT_WRITE)) {
        perror("mmap");
        exit(1);
    }
    madvise(base + page, size, MADV_HUGEPAGE);
    *arena = (struct guarded){base + page, size};
}

void *fr_guarded(size_t index, size_t bytes, bool at_end) {
    struct guarded *arena = &arenas[index];
    if (arena->size < bytes) open_arena(arena, bytes > 1 << 16 ? bytes : 1 << 16);
    return at_end ? arena->base + arena->size - bytes : arena->base;
}

double fr_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
