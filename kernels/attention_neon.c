/* Implements the steps of flash attention (attention.h) on registers of 4 floats, one query at a time. 16 registers
 * hold sums: the partial sums of four positions, or the sums of columns. */
#include "kernels/attention_codes_neon.h"
#include "kernels/simd_neon.h"

#include <math.h>

enum { COLUMNS = 16, STRIP = 4 * COLUMNS };

/* Loads the first `count` 16-bit values, at most 4; the other lanes are 0. */
FR_INLINE uint16x4_t load_halves(const void *x, size_t count) {
    uint16_t values[4] = {0};
    memcpy(values, x, (count < 4 ? count : 4) * sizeof *values);
    return vld1_u16(values);
}

static void decode_f16(float *y, const void *x, size_t n) {
    for (size_t i = 0; i < n; i += 4) {
        uint16x4_t halves = load_halves((const char *)x + 2 * i, n - i);
        store_lanes(y + i, vcvt_f32_f16(vreinterpret_f16_u16(halves)), n - i);
    }
}

static void decode_bf16(float *y, const void *x, size_t n) {
    for (size_t i = 0; i < n; i += 4) {
        uint32x4_t bits = vshll_n_u16(load_halves((const char *)x + 2 * i, n - i), 16);
        store_lanes(y + i, vreinterpretq_f32_u32(bits), n - i);
    }
}

/* Returns a block's scale d. */
FR_INLINE float scale_of(const uint8_t *block) {
    return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(load_halves(block, 1))), 0);
}

FR_INLINE void store_codes(float *y, int8x16_t codes, float d) {
    int16x8_t halves[2] = {vmovl_s8(vget_low_s8(codes)), vmovl_s8(vget_high_s8(codes))};
    FR_UNROLLED_FOR (size_t h = 0; h < 2; h++) {
        vst1q_f32(y + 8 * h, vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(halves[h]))), d));
        vst1q_f32(y + 8 * h + 4, vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(vget_high_s16(halves[h]))), d));
    }
}

/* Reads the 32 codes of a block. */
typedef void codes_fn(int8x16_t codes[2], const uint8_t *block);

FR_INLINE void q8_0_codes(int8x16_t codes[2], const uint8_t *block) {
    codes[0] = vreinterpretq_s8_u8(vld1q_u8(block + 2));
    codes[1] = vreinterpretq_s8_u8(vld1q_u8(block + 18));
}

FR_INLINE void q4_0_codes(int8x16_t codes[2], const uint8_t *block) {
    uint8x16_t bytes = vld1q_u8(block + 2), middle = vdupq_n_u8(8);
    codes[0] = vreinterpretq_s8_u8(vsubq_u8(vandq_u8(bytes, vdupq_n_u8(15)), middle));
    codes[1] = vreinterpretq_s8_u8(vsubq_u8(vshrq_n_u8(bytes, 4), middle));
}

FR_INLINE void turbo4_codes(int8x16_t codes[2], const uint8_t *block) {
    static const int8_t table[] = {FR_TURBO4_TABLE};
    int8x16_t entries = vld1q_s8(table);
    uint8x16_t bytes = vld1q_u8(block + 2);
    codes[0] = vqtbl1q_s8(entries, vandq_u8(bytes, vdupq_n_u8(15)));
    codes[1] = vqtbl1q_s8(entries, vshrq_n_u8(bytes, 4));
}

FR_INLINE void turbo3_codes(int8x16_t codes[2], const uint8_t *block) {
    static const int8_t table[] = {FR_TURBO3_TABLE, FR_TURBO3_TABLE};
    static const uint8_t bit_of[] = {1, 2, 4, 8, 16, 32, 64, 128};
    int8x16_t entries = vld1q_s8(table);
    uint8x8_t bits = vld1_u8(bit_of), bytes = vld1_u8(block + 2), eight[4];
    FR_UNROLLED_FOR (size_t g = 0; g < 4; g++) {
        uint8x8_t low = vand_u8(vshl_u8(bytes, vdup_n_s8((int8_t)(-2 * (int)g))), vdup_n_u8(3));
        eight[g] = vorr_u8(low, vand_u8(vtst_u8(vdup_n_u8(block[10 + g]), bits), vdup_n_u8(4)));
    }
    codes[0] = vqtbl1q_s8(entries, vcombine_u8(eight[0], eight[1]));
    codes[1] = vqtbl1q_s8(entries, vcombine_u8(eight[2], eight[3]));
}

/* Decodes blocks of `bytes` bytes. */
FR_INLINE void decode_blocks(codes_fn *read, size_t bytes, float *y, const uint8_t *block, size_t n) {
    for (size_t i = 0; i < n; i += 32, block += bytes) {
        int8x16_t codes[2];
        float d = scale_of(block);
        read(codes, block);
        store_codes(y + i, codes[0], d);
        store_codes(y + i + 16, codes[1], d);
    }
}

static void decode_q8_0(float *y, const void *x, size_t n) {
    decode_blocks(q8_0_codes, 34, y, x, n);
}

static void decode_q4_0(float *y, const void *x, size_t n) {
    decode_blocks(q4_0_codes, 18, y, x, n);
}

static void decode_turbo4(float *y, const void *x, size_t n) {
    decode_blocks(turbo4_codes, 18, y, x, n);
}

static void decode_turbo3(float *y, const void *x, size_t n) {
    decode_blocks(turbo3_codes, 14, y, x, n);
}

static void scores(fr_attn_state *states, size_t count, fr_attn_rows k, int32_t first, size_t head_dim, float scale,
                   fr_attn_ahead ahead) {
    fr_attn_ask(&ahead, SIZE_MAX);
    (void)count;
    const char *rows[FR_ATTN_SCORES];
    float *s = states->weights + first;
    for (int32_t i = 0; i < FR_ATTN_SCORES; i++) rows[i] = fr_attn_seen_row(states, k, first, i);
    dots(load_f32, sizeof(float), (dots_job){s, 0, states->q, 0, 1, rows, FR_ATTN_SCORES, FR_ATTN_SCORES, head_dim});
    vst1q_f32(s, vmulq_n_f32(vld1q_f32(s), scale));
}

static void add_columns(float *weights, const float *factors, const float *columns, const uint16_t *used,
                        size_t count) {
    float32x4_t s[FR_ATTN_BLOCK / 4];
    FR_UNROLLED_FOR (size_t r = 0; r < FR_ATTN_BLOCK / 4; r++) s[r] = vld1q_f32(weights + 4 * r);
    for (size_t k = 0; k < count; k++) {
        const float *column = columns + (size_t)FR_ATTN_BLOCK * used[k];
        float32x4_t factor = vdupq_n_f32(factors[k]);
        FR_UNROLLED_FOR (size_t r = 0; r < FR_ATTN_BLOCK / 4; r++)
            s[r] = vfmaq_f32(s[r], factor, vld1q_f32(column + 4 * r));
    }
    FR_UNROLLED_FOR (size_t r = 0; r < FR_ATTN_BLOCK / 4; r++) vst1q_f32(weights + 4 * r, s[r]);
}

/* Merges m_b and l_b, the m and l of a block, into m and l. Sets the factors a and b, which join the block's o_b to
 * o. */
FR_INLINE void merge(fr_attn_state *state, float m_b, float l_b) {
    if (state->first) {
        state->m = m_b;
        state->l = l_b;
        return;
    }
    float higher = m_b > state->m ? m_b : state->m;
    float32x4_t both = vsetq_lane_f32(state->m, vdupq_n_f32(m_b), 0);
    float32x4_t factors = exp4(vsubq_f32(both, vdupq_n_f32(higher)));
    state->a = vgetq_lane_f32(factors, 0);
    state->b = vgetq_lane_f32(factors, 1);
    state->l = fmaf(state->l, state->a, l_b * state->b);
    state->m = higher;
}

/* Returns a mask of the lanes whose position, i to i + 3, is visible. */
FR_INLINE uint32x4_t seen_lanes(const fr_attn_state *state, size_t i) {
    return vbicq_u32(lanes_below(i, (size_t)state->to), lanes_below(i, (size_t)state->from));
}

/* Turns a query's scores into weights. The maximum ignores a NaN score. The weight e of that score is NaN, so the
 * result is NaN too. A sum of weights is never -0, so adding 0 for a position that is not visible does not change
 * it. */
FR_INLINE void weigh_one(fr_attn_state *state) {
    float32x4_t highest = vdupq_n_f32(-INFINITY), p[4] = {{0}};
    for (size_t i = 0; i < FR_ATTN_BLOCK; i += 4) {
        float32x4_t s = vld1q_f32(state->weights + i);
        highest = vbslq_f32(vandq_u32(vcgtq_f32(s, highest), seen_lanes(state, i)), s, highest);
    }
    float m_b = vmaxvq_f32(highest);
    for (size_t i = 0; i < FR_ATTN_BLOCK; i += 4) {
        float32x4_t e = exp4(vsubq_f32(vld1q_f32(state->weights + i), vdupq_n_f32(m_b)));
        e = vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(e), seen_lanes(state, i)));
        p[i / 4 % 4] = vaddq_f32(p[i / 4 % 4], e);
        vst1q_f32(state->weights + i, e);
    }
    merge(state, m_b, sum16(p));
}

static void weigh(fr_attn_state *states, size_t count) {
    for (size_t j = 0; j < count; j++) weigh_one(&states[j]);
}

/* Computes `width` registers of columns of o_b from column d on, and joins them to o. Callers pass a constant as
 * `width`. `left` is the number of columns of the output from d on. */
FR_INLINE void columns(const fr_attn_state *state, const char *v, size_t stride, size_t d, size_t width, size_t left) {
    float32x4_t sum[COLUMNS] = {{0}};
    float *o = state->out + d;
    for (int32_t i = state->from; i < state->to; i++) {
        float32x4_t e = vdupq_n_f32(state->weights[i]);
        const float *row = (const void *)(v + (size_t)i * stride);
        FR_UNROLLED_FOR (size_t c = 0; c < width; c++) sum[c] = vfmaq_f32(sum[c], e, load_lanes(row + 4 * c, left));
    }
    float32x4_t a = vdupq_n_f32(state->a), b = vdupq_n_f32(state->b);
    FR_UNROLLED_FOR (size_t c = 0; c < width; c++) {
        if (!state->first) sum[c] = vfmaq_f32(vmulq_f32(sum[c], b), load_lanes(o + 4 * c, left), a);
        store_lanes(o + 4 * c, sum[c], left);
    }
}

static void add(const fr_attn_state *states, size_t count, fr_attn_rows v, size_t d, size_t width,
                fr_attn_ahead ahead) {
    fr_attn_ask(&ahead, SIZE_MAX);
    (void)count;
    if (width == STRIP) {
        columns(states, v.data, v.stride, d, COLUMNS, 4);
        return;
    }
    for (size_t c = 0; c < width; c += 4)
        columns(states, (const char *)v.data + c * sizeof(float), v.stride, d + c, 1, width - c);
}

/* Exchanges rows and columns of 4 registers of 4 numbers of 32 bits. */
FR_INLINE void transpose_fours(int32x4_t r[4]) {
    int32x4_t a = vtrn1q_s32(r[0], r[1]), b = vtrn2q_s32(r[0], r[1]);
    int32x4_t c = vtrn1q_s32(r[2], r[3]), d = vtrn2q_s32(r[2], r[3]);
    r[0] = vcombine_s32(vget_low_s32(a), vget_low_s32(c));
    r[1] = vcombine_s32(vget_low_s32(b), vget_low_s32(d));
    r[2] = vcombine_s32(vget_high_s32(a), vget_high_s32(c));
    r[3] = vcombine_s32(vget_high_s32(b), vget_high_s32(d));
}

/* Transposes the rows of FR_ATTN_CODES positions, 4 positions at a time. `bytes`: bytes of a block. */
FR_INLINE void transpose_blocks(codes_fn *read, size_t bytes, fr_attn_codes *tile, const void *const *rows,
                                size_t head_dim) {
    for (size_t at = 0; at < head_dim / 32 * bytes; at += bytes, tile++)
        for (size_t i = 0; i < FR_ATTN_CODES; i += 4) {
            int8x16_t codes[4][2];
            FR_UNROLLED_FOR (size_t j = 0; j < 4; j++) {
                const uint8_t *block = (const uint8_t *)rows[i + j] + at;
                tile->d[i + j] = scale_of(block);
                read(codes[j], block);
            }
            FR_UNROLLED_FOR (size_t half = 0; half < 2; half++) {
                int32x4_t r[4];
                FR_UNROLLED_FOR (size_t j = 0; j < 4; j++) r[j] = vreinterpretq_s32_s8(codes[j][half]);
                transpose_fours(r);
                FR_UNROLLED_FOR (size_t j = 0; j < 4; j++)
                    vst1q_s8(tile->codes[4 * half + j][i], vreinterpretq_s8_s32(r[j]));
            }
        }
}

static void transpose_codes(fr_attn_codes *tile, fr_dtype type, const void *const *rows, size_t head_dim) {
    switch ((unsigned)type) {
    case FR_Q8_0: transpose_blocks(q8_0_codes, 34, tile, rows, head_dim); break;
    case FR_Q4_0: transpose_blocks(q4_0_codes, 18, tile, rows, head_dim); break;
    case FR_TURBO4: transpose_blocks(turbo4_codes, 18, tile, rows, head_dim); break;
    case FR_TURBO3: transpose_blocks(turbo3_codes, 14, tile, rows, head_dim); break;
    }
}

/* Multiplies four codes. A sum of two products is at most 2 * 128 * 127, which fits 16 bits. */
FR_INLINE int32x4_t multiply_codes(int32x4_t sums, int8x16_t keys, int8x16_t columns) {
    int16x8_t low = vmull_s8(vget_low_s8(keys), vget_low_s8(columns)), high = vmull_high_s8(keys, columns);
    return vpadalq_s16(sums, vpaddq_s16(low, high));
}

static void scores_of_codes(fr_attn_state *states, size_t count, const fr_attn_codes *tile, int32_t first,
                            size_t head_dim, float scale, fr_attn_ahead ahead) {
    scores_of_codes_of(multiply_codes, states, count, tile, first, head_dim, scale, ahead);
}

const fr_attn_steps fr_attn_steps_neon = {
    .together = 1,
    .strip = STRIP,
    .decode = {[FR_F16] = decode_f16,
               [FR_BF16] = decode_bf16,
               [FR_Q8_0] = decode_q8_0,
               [FR_Q4_0] = decode_q4_0,
               [FR_TURBO4] = decode_turbo4,
               [FR_TURBO3] = decode_turbo3},
    .scores = scores,
    .quantize = fr_quantize_neon,
    .transpose_codes = transpose_codes,
    .scores_of_codes = scores_of_codes,
    .add_columns = add_columns,
    .weigh = weigh,
    .add = add,
    .softcap = fr_softcap_neon,
    .exp = fr_exp_neon,
    .divide = fr_div_neon,
};

void fr_attn_neon(const fr_attn *attn) {
    fr_attend(attn, &fr_attn_steps_neon);
}
