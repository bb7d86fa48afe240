/* Computes the slopes of ALiBi and the terms that they add to scores: see alibi.h. */
#include "kernels/alibi.h"

#include "kernels/double_math.h"

void fr_alibi_slopes(size_t heads, double octaves, float *slopes) {
    const double ln2 = FR_DOUBLE_LN2_HIGH + FR_DOUBLE_LN2_LOW;
    size_t power = 1;
    while (2 * power <= heads) power *= 2;
    for (size_t h = 0; h < heads; h++) {
        double below = h < power ? octaves * (double)(h + 1) : octaves / 2 * (double)(2 * (h - power) + 1);
        slopes[h] = (float)fr_exp_double(-below / (double)power * ln2);
    }
}

static float round_to_bf16(float x) {
    return fr_f32_from_bf16(fr_bf16_from_f32(x));
}

float fr_alibi_added(const fr_attn *attn, const fr_attn_query *query, int64_t position) {
    float distance = (float)(position - query->slope_from);
    if (!attn->slopes_stepped) return query->slope * distance;
    return round_to_bf16(query->slope * round_to_bf16(distance)) * attn->scale;
}
