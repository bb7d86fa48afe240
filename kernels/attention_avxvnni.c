/* Implements flash attention (attention.h) with vpdpbusd for keys that are codes. All other steps are those of avx2. */
#include "kernels/attention_codes_avx2.h"

FR_INLINE __m256i multiply_codes(__m256i sums, __m256i magnitudes, __m256i columns) {
    return _mm256_dpbusd_avx_epi32(sums, magnitudes, columns);
}

static void scores_of_codes(fr_attn_state *states, size_t count, const fr_attn_codes *tile, int32_t first,
                            size_t head_dim, float scale, fr_attn_ahead ahead) {
    scores_of_codes_of(multiply_codes, states, count, tile, first, head_dim, scale, ahead);
}

void fr_attn_avxvnni(const fr_attn *attn) {
    fr_attn_steps steps = fr_attn_steps_avx2;
    steps.scores_of_codes = scores_of_codes;
    fr_attend(attn, &steps);
}
