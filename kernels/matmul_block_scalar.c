/* Defines the product of packed block-quantized weights and quantized rows. The contract is fr_matmul_block_fn in
 * kernels.h. */
#include "kernels/scalar.h"
#include "quant/packed.h"

enum { RUN = 32 };

/* Says how a code becomes a value, and how the sums of a run are added to an output's chain. */
typedef struct format {
    fr_dtype type;
    int offset;           /* value = code - offset, if there is no table */
    const int8_t *values; /* table of values by code, or NULL */
} format;

static int32_t code_sum(const format *f, const uint8_t *codes, const int8_t *q, size_t count) {
    int32_t sum = 0;
    for (size_t i = 0; i < count; i++) sum += (f->values ? f->values[codes[i]] : codes[i] - f->offset) * q[i];
    return sum;
}

/* Returns MXFP4's scale, 2^(e - 128). The format's scale is 2^(e - 127); 128 is subtracted because the table's values
 * are doubled. */
static float exponent_scale(uint16_t e) {
    return e < 2 ? float_of(0x00200000u << e) : float_of((uint32_t)(e - 1) << 23);
}

/* Returns the scale of IQ1 to IQ3 as an integer, in units of fr_code_unit. scale: the stored number. */
static int odd(uint8_t scale) {
    return 2 * scale + 1;
}

/* Returns the scale of columns 16h to 16h + 15. */
static int32_t scale_of(const format *f, const fr_block_parts *parts, size_t h) {
    switch (f->type) {
    case FR_Q6_K: return (int8_t)parts->scales[h];
    case FR_Q3_K: return parts->scales[h] - 32;
    case FR_Q2_K: return parts->scales[h];
    default: return odd(parts->scales[h]);
    }
}

static bool halved(fr_dtype type) {
    return type == FR_Q2_K || type == FR_Q3_K || type == FR_Q6_K || type == FR_IQ2_XS || type == FR_IQ1_M;
}

/* Adds the two halves of NVFP4's only run to the chain one after the other, because each half has a float scale of its
 * own. */
static float add_nvfp4(const format *f, const fr_block_parts *parts, const fr_qblock *x, float acc) {
    for (size_t h = 0; h < 2; h++) {
        uint16_t bits = (uint16_t)(parts->scales[h] << 7);
        float d = load_f16(&bits, 0) * fr_code_unit(f->type);
        acc = fmaf(d * x->d, (float)code_sum(f, parts->codes + h * RUN / 2, x->q + h * RUN / 2, RUN / 2), acc);
    }
    return acc;
}

/* Adds run `run` of a block to the chain. */
static float add_run(const format *f, const fr_block_parts *parts, size_t run, const fr_qblock *x, float acc) {
    const uint8_t *codes = parts->codes + run * RUN;
    if (f->type == FR_NVFP4) return add_nvfp4(f, parts, x, acc);
    float d = f->type == FR_MXFP4 ? exponent_scale(parts->d) : load_f16(&parts->d, 0), m = load_f16(&parts->m, 0);
    d *= fr_code_unit(f->type);
    if (halved(f->type)) {
        int32_t isum = scale_of(f, parts, 2 * run) * code_sum(f, codes, x->q, RUN / 2) +
                       scale_of(f, parts, 2 * run + 1) * code_sum(f, codes + RUN / 2, x->q + RUN / 2, RUN / 2);
        acc = fmaf(d * x->d, (float)isum, acc);
        if (f->type != FR_Q2_K) return acc;
        int32_t msum = parts->mins[2 * run] * x->half + parts->mins[2 * run + 1] * (x->sum - x->half);
        return fmaf(-(m * x->d), (float)msum, acc);
    }
    float isum = (float)code_sum(f, codes, x->q, RUN);
    switch (f->type) {
    case FR_Q4_1:
    case FR_Q5_1: return fmaf(m, x->dsum, fmaf(d * x->d, isum, acc));
    case FR_Q4_K:
    case FR_Q5_K:
        return fmaf(-(m * (float)parts->mins[run]), x->dsum, fmaf(d * (float)parts->scales[run] * x->d, isum, acc));
    case FR_IQ4_XS: return fmaf(d * (float)(parts->scales[run] - 32) * x->d, isum, acc);
    case FR_IQ1_S:
    case FR_IQ2_XXS:
    case FR_IQ3_XXS:
    case FR_IQ3_S: return fmaf(d * (float)odd(parts->scales[run]) * x->d, isum, acc);
    default: return fmaf(d * x->d, isum, acc);
    }
}

static void matmul(const format *f, const fr_matmul_block *job) {
    size_t block = fr_tile_block(f->type), runs = block / RUN;
    size_t tile_bytes = fr_packed_bytes(f->type, FR_TILE_FEATURES, job->cols);
    for (size_t r = 0; r < job->rows; r++)
        for (size_t o = 0; o < job->features; o++) job->y[r * job->y_stride + o] = 0.0f;
    for (size_t o = 0; o < job->features; o++)
        for (size_t b = 0; b < job->cols / block; b++) {
            fr_block_parts parts;
            fr_tile_parts(f->type, &parts, job->w + o / FR_TILE_FEATURES * tile_bytes, b, o % FR_TILE_FEATURES);
            for (size_t r = 0; r < job->rows; r++) {
                float *acc = job->y + r * job->y_stride + o;
                for (size_t run = 0; run < runs; run++)
                    *acc = add_run(f, &parts, run, job->x + r * job->x_stride + b * runs + run, *acc);
            }
        }
}

static const int8_t signs[] = {-1, 1};

/* Defines the kernel of each type: it calls matmul with the type's format. */
#define FR_MATMUL_BLOCK(name, ...)                              \
    void FR_SCALAR(matmul_##name)(const fr_matmul_block *job) { \
        matmul(&(format){__VA_ARGS__}, job);                    \
    }

FR_MATMUL_BLOCK(q8_0, FR_Q8_0, 128, NULL)
FR_MATMUL_BLOCK(q4_0, FR_Q4_0, 8, NULL)
FR_MATMUL_BLOCK(q4_1, FR_Q4_1, 0, NULL)
FR_MATMUL_BLOCK(q5_0, FR_Q5_0, 16, NULL)
FR_MATMUL_BLOCK(q5_1, FR_Q5_1, 0, NULL)
FR_MATMUL_BLOCK(iq4_nl, FR_IQ4_NL, 0, fr_code_values(FR_IQ4_NL))
FR_MATMUL_BLOCK(mxfp4, FR_MXFP4, 0, fr_code_values(FR_MXFP4))
FR_MATMUL_BLOCK(q1_0, FR_Q1_0, 0, signs)
FR_MATMUL_BLOCK(q2_0, FR_Q2_0, 1, NULL)
FR_MATMUL_BLOCK(q4_k, FR_Q4_K, 0, NULL)
FR_MATMUL_BLOCK(q5_k, FR_Q5_K, 0, NULL)
FR_MATMUL_BLOCK(q6_k, FR_Q6_K, 32, NULL)
FR_MATMUL_BLOCK(iq4_xs, FR_IQ4_XS, 0, fr_code_values(FR_IQ4_XS))
FR_MATMUL_BLOCK(q2_k, FR_Q2_K, 0, NULL)
FR_MATMUL_BLOCK(q3_k, FR_Q3_K, 4, NULL)
FR_MATMUL_BLOCK(iq2_xxs, FR_IQ2_XXS, 0, fr_code_values(FR_IQ2_XXS))
FR_MATMUL_BLOCK(iq2_xs, FR_IQ2_XS, 0, fr_code_values(FR_IQ2_XS))
FR_MATMUL_BLOCK(iq3_xxs, FR_IQ3_XXS, 0, fr_code_values(FR_IQ3_XXS))
FR_MATMUL_BLOCK(iq3_s, FR_IQ3_S, 0, fr_code_values(FR_IQ3_S))
FR_MATMUL_BLOCK(iq1_s, FR_IQ1_S, 0, fr_code_values(FR_IQ1_S))
FR_MATMUL_BLOCK(iq1_m, FR_IQ1_M, 0, fr_code_values(FR_IQ1_M))
FR_MATMUL_BLOCK(tq2_0, FR_TQ2_0, 1, NULL)
FR_MATMUL_BLOCK(pq2_0, FR_PQ2_0, 1, NULL)
FR_MATMUL_BLOCK(nvfp4, FR_NVFP4, 0, fr_code_values(FR_NVFP4))
