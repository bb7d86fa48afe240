/* Lists the types that can be written, and encodes rows of them. */
#include "quant/encode.h"

#include <math.h>
#include <string.h>
#include <strings.h>

static const struct {
    fr_dtype type;
    const char *word;
    fr_encode_fn *encode; /* NULL for types without blocks */
} written[] = {
    {FR_Q4_0, "q4_0", fr_encode_q4_0},
    {FR_Q4_1, "q4_1", fr_encode_q4_1},
    {FR_Q5_0, "q5_0", fr_encode_q5_0},
    {FR_Q5_1, "q5_1", fr_encode_q5_1},
    {FR_Q8_0, "q8_0", fr_encode_q8_0},
    {FR_Q2_K, "q2_k", fr_encode_q2_k},
    {FR_Q3_K, "q3_k", fr_encode_q3_k},
    {FR_Q4_K, "q4_k", fr_encode_q4_k},
    {FR_Q5_K, "q5_k", fr_encode_q5_k},
    {FR_Q6_K, "q6_k", fr_encode_q6_k},
    {FR_IQ4_NL, "iq4_nl", fr_encode_iq4_nl},
    {FR_IQ4_XS, "iq4_xs", fr_encode_iq4_xs},
    {FR_MXFP4, "mxfp4", fr_encode_mxfp4},
    {FR_Q1_0, "q1_0", fr_encode_q1_0},
    {FR_Q2_0, "q2_0", fr_encode_q2_0},
    {FR_PQ2_0, "pq2_0", fr_encode_pq2_0},
    {FR_TQ1_0, "tq1_0", fr_encode_tq1_0},
    {FR_PTQ1_0, "ptq1_0", fr_encode_ptq1_0},
    {FR_TQ2_0, "tq2_0", fr_encode_tq2_0},
    {FR_F16, "f16", NULL},
    {FR_BF16, "bf16", NULL},
    {FR_F32, "f32", NULL},
};
#define WRITTEN (sizeof written / sizeof *written)

const char *fr_written_word(size_t index) {
    return index < WRITTEN ? written[index].word : NULL;
}

fr_dtype fr_written_from_word(const char *word) {
    for (size_t i = 0; i < WRITTEN; i++)
        if (strcasecmp(word, written[i].word) == 0) return written[i].type;
    return FR_DTYPE_COUNT;
}

float fr_encode_limit(fr_dtype type) {
    switch (type) {
    case FR_F32: return 0x1.fffffep127f;
    case FR_BF16: return 0x1.fep127f;
    default: return 65504;
    }
}

#define BLOCK_MAX 256 /* the largest block of the types that can be written */

static fr_encode_fn *encoder_of(fr_dtype type) {
    size_t i = 0;
    while (written[i].type != type) i++;
    return written[i].encode;
}

static void encode_float(fr_dtype type, float value, uint8_t *bytes) {
    float limit = fr_encode_limit(type);
    value = value > limit ? limit : value < -limit ? -limit : value;
    uint16_t bits = type == FR_F16 ? fr_f16_from_f32(value) : fr_bf16_from_f32(value);
    bytes[0] = (uint8_t)bits;
    bytes[1] = (uint8_t)(bits >> 8);
}

/* The least weight of a column's error. With a weight of 0, a column of importance 0 could get any code. With this
 * small weight, the column gets the nearest code, but has almost no influence on the scales. */
#define LEAST_WEIGHT 0x1p-20

/* Turns the importances of a block's columns into weights of about 1. Returns false if all importances are 0; the
 * caller then weights all columns alike. */
static bool weigh_block(fr_dtype type, const float *x, const float *importance, size_t n, float *weights) {
    double mean = 0, square = 0;
    for (size_t i = 0; i < n; i++) {
        mean += (double)importance[i] / (double)n;
        square += (double)x[i] * (double)x[i] / (double)n;
    }
    for (size_t i = 0; i < n && mean > 0; i++) {
        double spread = (type == FR_Q2_K ? 1 : 2) + (square > 0 ? (double)x[i] * (double)x[i] / square : 0);
        double weight = importance[i] / mean + LEAST_WEIGHT;
        weights[i] = (float)(type == FR_Q6_K ? weight : weight * sqrt(spread));
    }
    return mean > 0;
}

void fr_dtype_encode_weighted(fr_dtype type, const float *source, const float *importance, void *target, size_t cols) {
    uint8_t *bytes = target;
    if (cols == 0) return;
    if (type == FR_F32) {
        memcpy(target, source, cols * sizeof *source);
        return;
    }
    if (type < FR_FLOAT_TYPES) {
        for (size_t i = 0; i < cols; i++) encode_float(type, source[i], bytes + 2 * i);
        return;
    }
    size_t block = fr_dtype_block(type), size = fr_dtype_row_bytes(type, block);
    fr_encode_fn *encode = encoder_of(type);
    for (size_t i = 0; i < cols; i += block, bytes += size) {
        float weights[BLOCK_MAX];
        bool weighted = importance && weigh_block(type, source + i, importance + i, block, weights);
        encode(source + i, weighted ? weights : NULL, bytes);
    }
}

void fr_dtype_encode(fr_dtype type, const float *source, void *target, size_t cols) {
    fr_dtype_encode_weighted(type, source, NULL, target, cols);
}
