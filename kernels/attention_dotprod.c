/* Implements flash attention (attention.h) with sdot for keys that are codes. All other steps are those of neon. */
#include "kernels/attention_codes_neon.h"

FR_INLINE int32x4_t multiply_codes(int32x4_t sums, int8x16_t keys, int8x16_t columns) {
    return vdotq_s32(sums, keys, columns);
}

static void scores_of_codes(fr_attn_state *states, size_t count, const fr_attn_codes *tile, int32_t first,
                            size_t head_dim, float scale, fr_attn_ahead ahead) {
    scores_of_codes_of(multiply_codes, states, count, tile, first, head_dim, scale, ahead);
}

void fr_attn_dotprod(const fr_attn *attn) {
    fr_attn_steps steps = fr_attn_steps_neon;
    steps.scores_of_codes = scores_of_codes;
    fr_attend(attn, &steps);
}
