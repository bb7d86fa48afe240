/* Defines each operation's contract, and the table that holds one implementation of each operation.
 *
 * In: plain arrays. Out: plain arrays. No kernel allocates, fails, locks or knows a model. The _scalar file of an
 * operation is the definition of its result (quant/NUMERICS.md has the formulas). Every other instruction set gives the
 * same bits, for any number of rows computed together. A kernel reads and writes only the arrays that it is given (a
 * prefetch hint may point outside). Float arrays are aligned as floats are; weights may begin at any byte. Values are
 * finite; if an input is NaN, the output is NaN too, with any payload. Arrays don't overlap unless a contract allows
 * it. rows, features, count and the n of elementwise operations may be 0; other lengths are at least 1. Operations with
 * many operands take them as a struct. The faster kernels first copy that struct to a local one. Otherwise a compiler
 * must assume that storing results changes the caller's struct, and load its members again.
 *
 * A "row" is a row of activations (one token). A "feature" is an output feature: one row of the weight matrix. */
#ifndef FR_KERNELS_KERNELS_H
#define FR_KERNELS_KERNELS_H

#include "quant/dtype.h"
#include "quant/grouped.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Computes y[r * y_stride + o] = dot(w_o, x_r) for r < rows, o < features. w_o is `cols` values of the kernel's type,
 * beginning at byte o * w_stride of w; x_r = x + r * x_stride. Strides of x and y are in floats, that of w is in bytes.
 *
 * dot has 16 partial sums p, which begin as 0. For ascending i < cols, p[i % 16] = fma(w[i], x[i], p[i % 16]). Then
 * p[i] += p[i + 8] for i < 8, p[i] += p[i + 4] for i < 4, and likewise with 2 and 1; the result is p[0]. Nothing is
 * added to a partial sum for columns past cols, not even 0. */
typedef struct fr_matmul {
    float *y;
    size_t y_stride;
    const float *x;
    size_t x_stride, rows;
    const void *w;
    size_t w_stride, cols, features;
} fr_matmul;

typedef void fr_matmul_fn(const fr_matmul *job);

/* Computes the product of fr_matmul with other weights: FP8 codes in scaled blocks (quant/fp8.h). Weight i of w_o is
 * one rounded product: the value of its code, which is the byte at o * w_stride + i of w, times scales[(first + o) /
 * 128 * scale_stride + i / 128]. The outputs may begin anywhere in their matrix. If scales begins with the matrix's
 * first block, `first` is the index of output 0 in the matrix. If scales begins with the block of output 0, `first` is
 * the index of output 0 within that block. No code is NaN, and fp8.h says which scales are valid. Denormal codes,
 * products and scales keep their value: none is flushed to 0. */
typedef struct fr_matmul_fp8 {
    float *y;
    size_t y_stride;
    const float *x;
    size_t x_stride, rows;
    const uint8_t *w;
    size_t w_stride;
    const float *scales;
    size_t scale_stride, first, cols, features;
} fr_matmul_fp8;

typedef void fr_matmul_fp8_fn(const fr_matmul_fp8 *job);

/* Computes y[j] = dot(w_{ids[j]}, x) for j < count, with the dot of fr_matmul. The centroid head uses it to multiply
 * weight rows that are not neighbours. ids may repeat. */
typedef struct fr_gather {
    float *y;
    const float *x;
    const void *w;
    size_t w_stride, cols;
    const int32_t *ids;
    size_t count;
} fr_gather;

typedef void fr_gather_fn(const fr_gather *job);

/* Holds 32 columns of a row of activations, quantized. Block-quantized weights are multiplied with rows that consist of
 * such blocks. */
typedef struct fr_qblock {
    int8_t q[32];
    float d;           /* scale: the value of column i is about d * q[i] */
    float dsum;        /* d * (float)sum */
    int32_t sum, half; /* sum: the sum of all q; half: the sum of the first 16 q */
} fr_qblock;

/* Quantizes a row into ceil(cols / 32) blocks; columns past the end count as 0. m is the largest |x| of the block,
 * compared by bit pattern. If m is not finite, d = NaN and q = 0. If m is below 2^-100, d = 0 and q = 0. Otherwise d =
 * m / 127, r = 127 / m, and q = clamp(rint(x * r), -127, 127). */
typedef void fr_quantize_fn(fr_qblock *q, const float *x, size_t cols);

/* Computes y[r * y_stride + o] = product of packed weight row o (quant/packed.h) and quantized row r, for r < rows, o <
 * features. x_r is x + r * x_stride blocks; w is the first tile. cols is a multiple of the type's block. Each output is
 * one chain over the blocks of 32 columns in ascending order, beginning with acc = +0. In the formulas, isum is the
 * exact sum of code * q over the block, isum0 and isum1 are the sums over the block's two halves of 16 columns, and xd
 * and dsum are d and dsum of the block of x_r:
 *     Q8_0 Q4_0 Q5_0 IQ4_NL MXFP4   acc = fma(d * xd, (float)isum, acc)
 *     Q1_0 Q2_0 TQ1_0 TQ2_0         as Q8_0; PQ2_0 and PTQ1_0 too
 *     Q4_1 Q5_1                     as Q8_0, then acc = fma(m, dsum, acc)
 *     Q4_K Q5_K                     acc = fma((d * scale) * xd, (float)isum, acc); acc = fma(-(dmin * min), dsum, acc)
 *     Q6_K                          acc = fma(d * xd, (float)(scale0 * isum0 + scale1 * isum1), acc)
 *     Q3_K                          as Q6_K, with scale0 - 32 and scale1 - 32
 *     Q2_K                          as Q6_K, then acc = fma(-(dmin * xd), (float)(min0 * sum0 + min1 * sum1), acc),
 *                                   where sum0 and sum1 are the sums of q over the halves
 *     IQ4_XS                        acc = fma((d * (scale - 32)) * xd, (float)isum, acc)
 *     IQ1_S IQ2_XXS IQ3_XXS IQ3_S   acc = fma((unit * d * (2 * scale + 1)) * xd, (float)isum, acc)
 *     IQ1_M IQ2_XS IQ2_S            as Q6_K, with unit * d and 2 * scale + 1
 *     NVFP4                         acc = fma((unit * scale0) * xd, (float)isum0, acc), then with scale1, isum1
 * A code is: Q8_0 the value; Q1_0 2 * bit - 1; Q2_0 PQ2_0 TQ1_0 PTQ1_0 TQ2_0 bits - 1; Q4_0 bits - 8; Q5_0 bits - 16;
 * Q4_1 Q5_1 Q2_K Q4_K Q5_K bits; Q3_K bits - 4; Q6_K bits - 32; of other types the entry of the type's table
 * (fr_code_values), in units of fr_code_unit. */
typedef struct fr_matmul_block {
    float *y;
    size_t y_stride;
    const fr_qblock *x;
    size_t x_stride, rows;
    const uint8_t *w;
    size_t cols, features;
} fr_matmul_block;

typedef void fr_matmul_block_fn(const fr_matmul_block *job);

/* Computes the product of fr_matmul_block with other weights: tiles of grouped codes (quant/grouped.h). fr_kernels has
 * two such kernels for each number of bits of a code: one for codes with a centre or zero points, and one for codes
 * with biases. The tiles must be of the kernel's kind. cols is that of the tiles' layout and may be any number. A row
 * x_r is ceil(cols / 32) blocks; in the last one, columns past the end are 0. Each output is one chain over the runs of
 * 32 columns in ascending order, beginning with acc = +0. xd and dsum are d and dsum of the block of x_r:
 *     with a centre or a zero   isum = sum of (code - zero) * q, exact; acc = fma(scale * xd, (float)isum, acc)
 *     with a bias               isum = sum of code * q, exact; acc as above; then acc = fma(bias, dsum, acc) */
typedef struct fr_matmul_grouped {
    float *y;
    size_t y_stride;
    const fr_qblock *x;
    size_t x_stride, rows;
    const uint8_t *w;
    size_t features;
    const fr_grouped_tiles *tiles;
} fr_matmul_grouped;

typedef void fr_matmul_grouped_fn(const fr_matmul_grouped *job);

/* Computes y[i] = (x[i] * r) * weight[i], where r = 1 / sqrt(s / n + eps) and s = dot(x, x) with the dot of fr_matmul.
 * If weight is NULL, y[i] = x[i] * r. y may be x. Zhang and Sennrich 2019, arXiv:1910.07467. */
typedef void fr_rmsnorm_fn(float *y, const float *x, const float *weight, size_t n, float eps);

/* Computes y[i] = fma(c[i] * r, weight[i], bias[i]), where c[i] = x[i] - mean, mean = s / n, and r = 1 / sqrt(dot(c, c)
 * / n + eps). s is the sum of the x[i], added in dot's order: x[i] is added to partial sum i mod 16, for ascending i,
 * and then the 16 partial sums are added as in dot. If bias is NULL, it counts as zeros. y may be x. Ba, Kiros and
 * Hinton 2016, arXiv:1607.06450. */
typedef void fr_layernorm_fn(float *y, const float *x, const float *weight, const float *bias, size_t n, float eps);

/* Rotates one head in place; cosine and sine have n / 2 values; n is even. Su et al. 2021, arXiv:2104.09864.
 *
 *     half form (pairs i and i + n/2):  a = x[i], b = x[i + n/2];   x[i] = fma(-b, sine[i], a * cosine[i]),
 *                                       x[i + n/2] = fma(a, sine[i], b * cosine[i])
 *     pair form (pairs 2i and 2i + 1):  the same with a = x[2i], b = x[2i + 1] */
typedef void fr_rope_fn(float *x, const float *cosine, const float *sine, size_t n);

/* Computes y[i] = gelu_tanh(gate[i]) * up[i]; y may be gate or up. gelu_tanh(x) = (0.5 * x) * (1 + tanh(sqrt(2/pi) *
 * fma(0.044715 * (x * x), x, x))). Hendrycks and Gimpel 2016, arXiv:1606.08415. */
typedef void fr_gelu_mul_fn(float *y, const float *gate, const float *up, size_t n);

/* Computes y[i] = x[i] times the probability that a standard normal variable is below x[i]. The formula is fma(-w,
 * tail, max(x[i], 0)), with w = |x[i]|, tail = exp(-0.5 * (w * w)) * t * P(t), and t = 1 / fma(STEP, w, 1);
 * quant/NUMERICS.md has the constant STEP and the polynomial P. y may be x. */
typedef void fr_gelu_erf_fn(float *y, const float *x, size_t n);

/* Computes y[i] = (gate[i] / (1 + exp(-gate[i]))) * up[i]; y may be gate or up. Elfwing, Uchibe and Doya 2017,
 * arXiv:1702.03118. */
typedef void fr_silu_mul_fn(float *y, const float *gate, const float *up, size_t n);

/* Computes y[i] = (g / (1 + exp(-(1.702 * g)))) * (u + 1), where g is the smaller of gate[i] and `limit`, and u is
 * up[i] clamped to -limit..limit. y may be gate or up. This is the gated feed-forward of gpt-oss: OpenAI 2025,
 * arXiv:2508.10925. */
typedef void fr_clamped_swiglu_fn(float *y, const float *gate, const float *up, size_t n, float limit);

/* Computes y[i] = x[i] / (1 + exp(-gate[i])); y may be x or gate. */
typedef void fr_sigmoid_mul_fn(float *y, const float *x, const float *gate, size_t n);

/* The largest conv_kernel of fr_short_conv_fn. Models with a larger one are refused. */
#define FR_CONV_KERNEL_MAX 16

/* Computes a short causal convolution of n channels, then silu: y[c] = acc / (1 + exp(-acc)). acc begins with bias[c],
 * or with +0 if bias is NULL. Then acc = fma(w[t * w_stride + c], rows[t][c], acc) for t from 0 to conv_kernel - 1.
 * rows[t] is the input conv_kernel - 1 - t rows before the current row, so the last one is the current row. A row
 * before the beginning of the text is NULL, and its term is skipped. w_stride is in floats, conv_kernel is at least 1.
 * y may be one of the rows. */
typedef void fr_short_conv_fn(float *y, const float *const *rows, const float *w, size_t w_stride, size_t conv_kernel,
                              const float *bias, size_t n);

/* Computes x[i] = tanh(x[i] / cap) * cap. */
typedef void fr_softcap_fn(float *x, size_t n, float cap);

/* y[i] += x[i]. */
typedef void fr_add_fn(float *y, const float *x, size_t n);

/* y[i] *= factor. */
typedef void fr_scale_fn(float *y, size_t n, float factor);

/* y[i] /= divisor. */
typedef void fr_div_fn(float *y, size_t n, float divisor);

/* y[i] = y[i] * x[i]. */
typedef void fr_mul_fn(float *y, const float *x, size_t n);

/* Multiplies each block of `block` values by the Walsh-Hadamard matrix divided by sqrt(block). `block` is a power of
 * two that divides n. First v[i] = x[i] * signs[i], where signs are 1 or -1, and all 1 if NULL. Then there is a stage
 * for each h = 1, 2, 4 .. block / 2. In a stage, every 2 h values are pairs a = v[i], b = v[i + h], which become a + b
 * and a - b. Last y[i] = v[i] * (float)(1 / sqrt(block)), with the root and quotient in double. y may be x. */
typedef void fr_hadamard_fn(float *y, const float *x, const float *signs, size_t block, size_t n);

/* Computes y[i] = fma(x[i], factor, y[i]). It adds an expert's weighted output to the sum of the experts. */
typedef void fr_axpy_fn(float *y, const float *x, size_t n, float factor);

/* Returns the index of the largest of n >= 1 values. If several values are equal (0.0 equals -0.0), returns the lowest
 * of their indices. If any value is NaN or infinite, returns -1. */
typedef int64_t fr_argmax_fn(const float *x, size_t n);

/* Sets ids[0..k) to the indices of the k largest of n values (1 <= k <= n), the largest value first. If values are
 * equal, the lowest index comes first. NaN counts as less than everything. n < 2^31. scratch has room for n int32,
 * which an implementation may use. */
typedef void fr_topk_fn(const float *x, size_t n, size_t k, int32_t *ids, int32_t *scratch);

/* The number of types that keys and values may be cached in. They are F32 F16 BF16 Q8_0 Q4_0, the first types of
 * fr_dtype. */
#define FR_KV_TYPES (FR_Q4_0 + 1)

/* Stores a row of keys or values in the cache: slot[i] becomes x[i], converted to the type of this kernel, in GGUF's
 * layout. quant/NUMERICS.md has the formulas of Q8_0 and Q4_0. n is a multiple of the type's block; the slot may begin
 * at any byte. */
typedef void fr_kv_store_fn(void *slot, const float *x, size_t n);

/* Computes flash attention of one KV head for `count` queries (rows times the query heads that share the KV head). Dao
 * 2022, arXiv:2205.14135.
 *
 * Position p is in page p / 64. Its key begins at byte k_at + p % 64 * k_stride of k_pages[p / 64], its value at byte
 * v_at + p % 64 * v_stride of v_pages[p / 64]. A key has head_dim values of k_type, a value has value_dim <= head_dim
 * values of v_type. The types are any two of the cache's; each length is a multiple of its type's block. Values, and
 * keys of float types, are read as the float32 that fr_dtype_decode gives. A value may be the beginning of its key
 * (latent attention). A query sees positions first..last (0 <= first <= last, both inclusive). Other positions are not
 * read. If no query sees a position of a page, the page need not exist: its pointer is not read.
 *
 * Positions are taken in blocks of 64 counted from position 0. For each query, every block is first computed alone,
 * over the positions that the query sees:
 *
 *     s = dot(q, k_p) * scale, plus what key_means.h adds, then fr_softcap_fn if there is a cap
 *         if keys are codes (fr_attn_coded), dot is replaced by the product of a row of activations and a row of Q8_0:
 *         q is quantized as fr_quantize_fn says; per block of 32, ascending from 0, acc = fma(d_k * d_q, isum, acc)
 *     s = s + fr_alibi_added (alibi.h), if the query has a slope
 *     m_b = the largest s;  e = exp(s - m_b);  l_b = the sum of e, in 16 partial sums by p mod 16, added as in dot
 *     o_b[d] = one ascending chain fma(e, v_p[d], o_b[d]) from 0
 *
 * The first block's m_b, l_b and o_b are copied to (m, l, o). Later blocks join in ascending order:
 *
 *     M = max(m, m_b);  a = exp(m - M);  b = exp(m_b - M);  l = fma(l, a, l_b * b);  o = fma(o, a, o_b * b);  m = M
 *
 * At the end l = l + exp(sink - m) if the query has a sink, and out = o / l.
 *
 * If `partial_stride` is not 0, the caller joins the blocks and the sink. A query's blocks are then counted from the
 * block that contains `first`. o_b, m_b and l_b of its i-th block are the value_dim + 2 floats at out + i *
 * partial_stride (the sign of a zero m_b is arbitrary). */
typedef struct fr_attn_query {
    const float *q;      /* [head_dim] */
    const float *plain;  /* [head_dim] the query before it was rotated for turbo keys; read only if key_means is
                          * given */
    float *out;          /* [value_dim] */
    int64_t first, last; /* visible positions */
    const float *sink;   /* the score of an extra position that has no value (Xiao et al. 2023, arXiv:2309.17453); NULL
                          * if there is none */
    float slope;         /* number by which a score grows from each position to the next (alibi.h); 0 if there is no
                          * slope */
    int64_t slope_from;  /* the position at which the slope adds 0 to the score */
} fr_attn_query;

struct fr_key_means;

typedef struct fr_attn {
    const uint8_t *const *k_pages, *const *v_pages; /* the keys and the values may be in the same pages */
    size_t k_at, v_at;
    fr_dtype k_type, v_type;
    size_t k_stride, v_stride, head_dim, value_dim;
    float scale, softcap;                 /* softcap 0: scores are not capped */
    bool slopes_stepped;                  /* what a slope adds is rounded to bfloat16, then multiplied by `scale` */
    const struct fr_key_means *key_means; /* means that were subtracted from the keys (key_means.h); NULL if there are
                                           * none */
    const fr_attn_query *queries;
    size_t count;
    size_t partial_stride; /* floats from one block's results to the next block's, at least value_dim + 2; 0: blocks are
                            * joined */
    float *scratch;        /* fr_attn_scratch(head_dim, count) floats, aligned to 64 bytes */
} fr_attn;

typedef void fr_attn_fn(const fr_attn *attn);

/* Returns true if keys are blocks of 32 codes with a scale: Q8_0, Q4_0, turbo4, turbo3. A code's value is the block's
 * scale times an integer of 8 bits. */
static inline bool fr_attn_coded(const fr_attn *attn) {
    return attn->k_type >= FR_FLOAT_TYPES;
}

/* Gives the number of floats of scratch memory that an implementation may use. They are a tile of decoded or transposed
 * rows, rounded up to whole cache lines, then FR_ATTN_STATE floats for each query, and then room for each query's
 * quantized row, in whole cache lines too. */
#define FR_ATTN_STATE 80
static inline size_t fr_attn_row(size_t head_dim) {
    return ((head_dim + 31) / 32 * (sizeof(fr_qblock) / sizeof(float)) + 15) / 16 * 16;
}
static inline size_t fr_attn_tile(size_t head_dim) {
    return (8 * head_dim + 64 * 64 + 15) / 16 * 16;
}
static inline size_t fr_attn_scratch(size_t head_dim, size_t count) {
    return fr_attn_tile(head_dim) + count * (FR_ATTN_STATE + fr_attn_row(head_dim));
}

/* Computes one value head of a gated DeltaNet layer over rows in their order. Yang, Kautz and Hatamizadeh 2024,
 * arXiv:2412.06464. The state s is strips of 16 value columns, [strips][key_dim][16]; strip i has columns 16 i to 16 i
 * + 15. Columns past value_dim are 0 and stay 0. Per column, row after row:
 *     s[k] = s[k] * decay;  m = fma(s[k], key[k], m)                        ascending k, from m = +0
 *     delta = (value - m) * beta
 *     s[k] = fma(key[k], delta, s[k]);  o = fma(s[k], query[k], o)          ascending k, from o = +0;  out = o
 * The state is stored as it is after the first `keeps` rows. Later rows are computed in scratch memory, so rejecting
 * drafts costs nothing. A row without a query changes the state, but gives no output. If a row has decays, decays[k]
 * replaces decay (Kimi Delta Attention). out may be value. */
typedef struct fr_deltanet_row {
    const float *key, *query; /* [key_dim]; query NULL: no output */
    const float *value;       /* [value_dim] */
    float *out;               /* [value_dim] */
    float decay, beta;
    const float *decays; /* [key_dim], one for each index of the key; NULL: `decay` is used for all of them */
} fr_deltanet_row;

typedef struct fr_deltanet {
    float *state; /* fr_deltanet_state(key_dim, value_dim) floats; the kernel is fastest if `state` and `scratch` are
                   * aligned to 64 bytes */
    size_t key_dim, value_dim;
    const fr_deltanet_row *rows;
    size_t count, keeps; /* keeps: number of rows, counted from the first, that change `state`; at most `count` */
    float *scratch;      /* fr_deltanet_scratch(key_dim) floats; not used if keeps == count */
} fr_deltanet;

typedef void fr_deltanet_fn(const fr_deltanet *run);

/* FR_DELTANET_STRIP is the number of columns of a strip. FR_DELTANET_TOGETHER is the largest number of strips that an
 * implementation advances together. */
enum { FR_DELTANET_STRIP = 16, FR_DELTANET_TOGETHER = 2 };

static inline size_t fr_deltanet_state(size_t key_dim, size_t value_dim) {
    return (value_dim + FR_DELTANET_STRIP - 1) / FR_DELTANET_STRIP * key_dim * FR_DELTANET_STRIP;
}
static inline size_t fr_deltanet_scratch(size_t key_dim) {
    return FR_DELTANET_TOGETHER * key_dim * FR_DELTANET_STRIP;
}

/* Computes one head of a Mamba-2 layer over rows in their order. Dao and Gu 2024, arXiv:2405.21060. State, rows,
 * `keeps` and scratch are those of fr_deltanet_fn: key is the paper's B, query is C, value is x, and beta is the time
 * step. Per column, row after row:
 *     u = value * beta
 *     s[k] = fma(key[k], u, s[k] * decay);  o = fma(s[k], query[k], o)      ascending k, from o = +0
 *     out = fma(value, skip, o)
 * out may be value. */
typedef void fr_mamba_fn(const fr_deltanet *run, float skip);

/* Computes y[i] = exp(x[i]); y may be x. exp(0) = 1, exp(-inf) = 0, overflow gives inf. */
typedef void fr_exp_fn(float *y, const float *x, size_t n);

/* Returns l, the sum of a query's weights after its blocks are joined, plus the weight of the query's sink. Attention
 * uses this function, and so does code that joins partial results. */
static inline float fr_attn_with_sink(fr_exp_fn *exp, const fr_attn_query *query, float m, float l) {
    if (!query->sink) return l;
    float rest = *query->sink - m;
    exp(&rest, &rest, 1);
    return l + rest;
}

/* Computes y[i] = tanh(x[i]); y may be x. */
typedef void fr_tanh_fn(float *y, const float *x, size_t n);

typedef struct fr_kernels {
    const char *isa; /* the word of the instruction set whose table this is */
    fr_matmul_fn *matmul[FR_FLOAT_TYPES];
    fr_gather_fn *gather[FR_FLOAT_TYPES];
    fr_matmul_fp8_fn *matmul_fp8;
    fr_quantize_fn *quantize;
    fr_matmul_block_fn *matmul_block[FR_KERNEL_TYPES]; /* indexed by type; types that are not block types have no
                                                        * kernel */
    /* The arrays are indexed by the number of bits of a code. matmul_grouped is for codes with a centre or zero points,
     * matmul_biased for codes with biases. */
    fr_matmul_grouped_fn *matmul_grouped[FR_GROUPED_BITS_MAX + 1], *matmul_biased[FR_GROUPED_BITS_MAX + 1];
    fr_rmsnorm_fn *rmsnorm;
    fr_layernorm_fn *layernorm;
    fr_rope_fn *rope_neox;
    fr_rope_fn *rope_pairs;
    fr_gelu_mul_fn *gelu_mul;
    fr_gelu_erf_fn *gelu_erf;
    fr_silu_mul_fn *silu_mul;
    fr_clamped_swiglu_fn *clamped_swiglu;
    fr_sigmoid_mul_fn *sigmoid_mul;
    fr_short_conv_fn *short_conv;
    fr_softcap_fn *softcap;
    fr_add_fn *add;
    fr_scale_fn *scale;
    fr_div_fn *div;
    fr_mul_fn *mul;
    fr_axpy_fn *axpy;
    fr_hadamard_fn *hadamard;
    fr_argmax_fn *argmax;
    fr_topk_fn *topk;
    fr_kv_store_fn *kv_store[FR_KV_TYPES];
    fr_attn_fn *attn;
    fr_deltanet_fn *deltanet;
    fr_mamba_fn *mamba;
    fr_exp_fn *exp;
    fr_tanh_fn *tanh;
} fr_kernels;

#define FR_KERNEL(level, kind, slot, function) fr_##kind##_fn function;
#include "kernels/kernels.def"
#include "kernels/block_kernels.def"
#include "kernels/grouped_kernels.def"
#undef FR_KERNEL

#endif
