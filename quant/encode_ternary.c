/* Encodes blocks whose values are -1, 0 or 1 times one scale, or only -1 and 1: see encode.h.
 *
 * Suppose the columns of the k largest magnitudes get the code sign(x), and all other columns the code 0. Then the
 * least-squares scale is the mean of these k magnitudes. The error is smallest for the k that makes (sum of the k
 * magnitudes)^2 / k largest. So all k are tried, in descending order of magnitude. A block whose values already have
 * this form is reproduced exactly. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quant/encode.h"

enum { MOST = 256 };

typedef struct magnitude {
    float size, weight;
} magnitude;

static int descending(const void *a, const void *b) {
    float first = ((const magnitude *)a)->size, second = ((const magnitude *)b)->size;
    return (first < second) - (first > second);
}

/* Chooses the codes 0, 1 and 2, which mean -1, 0 and 1. Returns the scale as a float16. */
static uint16_t choose_codes(const float *x, const float *weights, size_t n, uint8_t *codes) {
    magnitude sorted[MOST];
    double sum = 0, count = 0, best = -1, scale = 0;
    for (size_t i = 0; i < n; i++) sorted[i] = (magnitude){.size = fabsf(x[i]), .weight = weights ? weights[i] : 1.0f};
    qsort(sorted, n, sizeof *sorted, descending);
    for (size_t i = 0; i < n; i++) {
        sum += (double)sorted[i].size * (double)sorted[i].weight;
        count += (double)sorted[i].weight;
        if (count > 0 && sum * sum / count > best) {
            best = sum * sum / count;
            scale = sum / count;
        }
    }
    uint16_t bits = fr_f16_from_f32((float)scale);
    float half = 0.5f * fr_f32_from_f16(bits);
    for (size_t i = 0; i < n; i++) codes[i] = (uint8_t)(1 + (x[i] > half) - (x[i] < -half));
    return bits;
}

static void put_scale(uint8_t *bytes, uint16_t bits) {
    bytes[0] = (uint8_t)bits;
    bytes[1] = (uint8_t)(bits >> 8);
}

/* Writes `count` bytes of `digits` base-3 digits each: digit j of byte i is column count * j + i. A byte stores its
 * digits as a fraction in base 3: the byte is the fraction times 256, rounded up. Missing digits are 0. */
static uint8_t *put_digits(uint8_t *bytes, const uint8_t *codes, size_t count, size_t digits) {
    for (size_t i = 0; i < count; i++) {
        unsigned value = 0;
        for (size_t j = 0; j < 5; j++) value = 3 * value + (j < digits ? codes[count * j + i] : 0);
        *bytes++ = (uint8_t)((value * 256 + 242) / 243);
    }
    return bytes;
}

void fr_encode_tq1_0(const float *x, const float *weights, uint8_t *block) {
    uint8_t codes[256];
    put_scale(block + 52, choose_codes(x, weights, 256, codes));
    uint8_t *at = put_digits(block, codes, 32, 5);
    at = put_digits(at, codes + 160, 16, 5);
    put_digits(at, codes + 240, 4, 4);
}

void fr_encode_ptq1_0(const float *x, const float *weights, uint8_t *block) {
    uint8_t codes[128];
    put_scale(block + 26, choose_codes(x, weights, 128, codes));
    uint8_t *at = put_digits(block, codes, 16, 5);
    at = put_digits(at, codes + 80, 8, 5);
    put_digits(at, codes + 120, 2, 4);
}

void fr_encode_tq2_0(const float *x, const float *weights, uint8_t *block) {
    uint8_t codes[256];
    put_scale(block + 64, choose_codes(x, weights, 256, codes));
    for (size_t i = 0; i < 64; i++) {
        const uint8_t *first = codes + i / 32 * 128 + i % 32;
        block[i] = (uint8_t)(first[0] | first[32] << 2 | first[64] << 4 | first[96] << 6);
    }
}

/* Writes Q2_0 or PQ2_0. */
static void encode_pairs(const float *x, const float *weights, size_t n, uint8_t *block) {
    uint8_t codes[MOST];
    put_scale(block, choose_codes(x, weights, n, codes));
    for (size_t i = 0; i < n / 4; i++) {
        const uint8_t *four = codes + 4 * i;
        block[2 + i] = (uint8_t)(four[0] | four[1] << 2 | four[2] << 4 | four[3] << 6);
    }
}

void fr_encode_q2_0(const float *x, const float *weights, uint8_t *block) {
    encode_pairs(x, weights, 64, block);
}

void fr_encode_pq2_0(const float *x, const float *weights, uint8_t *block) {
    encode_pairs(x, weights, 128, block);
}

/* Encodes a block of Q1_0. Its scale is the mean magnitude, which is the least-squares scale if all codes are
 * signs. */
void fr_encode_q1_0(const float *x, const float *weights, uint8_t *block) {
    double sum = 0, count = 0;
    memset(block, 0, 18);
    for (size_t i = 0; i < 128; i++) {
        double weight = weights ? (double)weights[i] : 1;
        sum += fabs((double)x[i]) * weight;
        count += weight;
        if (x[i] >= 0) block[2 + i / 8] |= (uint8_t)(1u << i % 8);
    }
    put_scale(block, fr_f16_from_f32((float)(sum / count)));
}
