/* Implements flash attention (attention.h) with vpdpbusd for keys that are codes. vpdpbusd multiplies unsigned bytes by
 * signed bytes. So the tile stores each code of a key as code + 128, and sums begin with the correction for the 128.
 * All other steps are those of avx512. */
#include "kernels/attention_codes_avx512.h"

FR_INLINE __m512i multiply_codes(__m512i sums, __m512i keys, __m512i columns) {
    return _mm512_dpbusd_epi32(sums, keys, columns);
}

static void transpose_codes(fr_attn_codes *tile, fr_dtype type, const void *const *rows, size_t head_dim) {
    transpose_codes_of(tile, type, rows, head_dim, _mm512_set1_epi8((char)0x80));
}

static void scores_of_codes(fr_attn_state *states, size_t count, const fr_attn_codes *tile, int32_t first,
                            size_t head_dim, float scale, fr_attn_ahead ahead) {
    scores_of_codes_of(multiply_codes, 128, states, count, tile, first, head_dim, scale, ahead);
}

void fr_attn_avx512vnni(const fr_attn *attn) {
    fr_attn_steps steps = fr_attn_steps_avx512;
    steps.transpose_codes = transpose_codes;
    steps.scores_of_codes = scores_of_codes;
    fr_attend(attn, &steps);
}
