/* Encodes the types of blocks of 256 values without minima, Q3_K, Q6_K and IQ4_XS. Each run has a signed scale of few
 * bits, which is multiplied by the block's float16 d (decode_k.c and decode_codebook.c have the layouts).
 *
 * In: 256 values, and the weights of their errors or NULL. Out: a block's bytes. First the best scale of every run is
 * found separately. Then rounds follow. In a round each run gets the integer scale that fits best with the current d.
 * From these and the codes, the least-squares d is computed. The rounds end when the block's error no longer falls. */
#include "quant/encode.h"
#include "quant/encode_fit.h"

enum { COLS = 256, RUN = 32, RUNS = COLS / RUN, HALF = 16, HALVES = COLS / HALF };

#define ROUNDS 6

FR_INLINE lanes snap_q3_k(lanes t) {
    return snap_integer(t, -4, 3);
}

FR_INLINE lanes snap_q6_k(lanes t) {
    return snap_integer(t, -32, 31);
}

/* Describes a block to encode, and the limits of its type. A run has `run` values. The search for a run's scale starts
 * from scales that map the run's largest value to `first`, `first` + `step`, ... `last`. Stored scales are from -limit
 * to limit - 1. */
typedef struct task {
    const float *x, *weights;
    size_t run;
    float first, last, step;
    int limit;
} task;

FR_INLINE const float *weights_at(const task *t, size_t run) {
    return t->weights ? t->weights + run * t->run : NULL;
}

/* Holds one way to encode a block: value = (d * scale) * code. */
typedef struct plan {
    float d, error;
    int8_t scales[HALVES];
} plan;

/* Returns the scale with which a run has the smallest error, without regard to the other runs of the block. */
FR_INLINE float fit_run(const task *t, size_t run, snap_fn *snap) {
    const float *x = t->x + run * t->run;
    float extreme = 0, magnitude = 0;
    for (size_t i = 0; i < t->run; i++) {
        float m = x[i] < 0 ? -x[i] : x[i];
        extreme = m > magnitude ? x[i] : extreme;
        magnitude = m > magnitude ? m : magnitude;
    }
    answer best = {0};
    for (float level = t->first; level <= t->last; level += t->step) {
        for (float side = -1; side <= 1; side += 2) {
            answer a = ray_of(fit_codes(x, weights_at(t, run), t->run, (line){side * extreme / level, 0}, snap));
            if (a.worth > best.worth) best = a;
        }
    }
    return best.l.scale;
}

static int small_integer(float n, float d, int limit) {
    float t = d != 0 ? n / d : 0;
    t += t < 0 ? -0.5F : 0.5F;
    return t > (float)(limit - 1) ? limit - 1 : t > (float)-limit ? (int)t : -limit;
}

/* Refines a fit in rounds, starting with d. If a round's plan has a smaller error than *best, the plan replaces *best.
 * own: the best scale of each run, before it is rounded. */
FR_INLINE void improve(const task *t, const float *own, float d, snap_fn *snap, plan *best) {
    float last = 0;
    for (int round = 0; round < ROUNDS; round++) {
        plan p = {.d = half_of(d)};
        double square = 0, cross = 0;
        for (size_t run = 0; run < COLS / t->run; run++) {
            const float *x = t->x + run * t->run, *weights = weights_at(t, run);
            int centre = small_integer(own[run], p.d, t->limit), chosen = centre;
            fit least = fit_codes(x, weights, t->run, (line){p.d * (float)centre, 0}, snap);
            for (int s = centre - 1; s <= centre + 1; s += 2) {
                if (s < -t->limit || s >= t->limit) continue;
                fit f = fit_codes(x, weights, t->run, (line){p.d * (float)s, 0}, snap);
                if (!(f.error < least.error)) continue;
                least = f;
                chosen = s;
            }
            p.scales[run] = (int8_t)chosen;
            p.error += least.error;
            square += (double)chosen * chosen * least.squares;
            cross += (double)chosen * least.cross;
        }
        if (round > 0 && !(p.error < last)) return;
        last = p.error;
        if (p.error < best->error) *best = p;
        if (!(square > 0)) return;
        d = (float)(cross / square);
    }
}

FR_INLINE plan search(const task *t, snap_fn *snap) {
    float own[HALVES], widest = 0, most = (float)t->limit;
    for (size_t run = 0; run < COLS / t->run; run++) {
        own[run] = fit_run(t, run, snap);
        if (own[run] * own[run] > widest * widest) widest = own[run];
    }
    plan best = {.error = error_of_zeros(t->x, t->weights, COLS)};
    for (float level = most; level >= most - 4; level -= 2) improve(t, own, -widest / level, snap, &best);
    return best;
}

/* Sets codes[i] to the code of column i plus `zero`, which makes the code unsigned. Returns the plan to which these
 * codes belong. */
FR_INLINE plan encode_columns(const task *t, float zero, snap_fn *snap, uint8_t *codes) {
    plan p = search(t, snap);
    for (size_t i = 0; i < COLS; i += 4) {
        float scale = p.d * (float)p.scales[i / t->run];
        lanes code = snap(load_lanes(t->x + i) * splat(inverse_of(scale)));
        for (size_t lane = 0; lane < 4; lane++) codes[i + lane] = (uint8_t)(int)(code[lane] + zero);
    }
    return p;
}

/* ------------------------------------------------------------------------------------------------------------- Q3_K */

/* Packs 16 scales of 6 bits into 12 bytes. The low four bits of scale h are in byte h % 8: in the low half of the byte
 * if h < 8, otherwise in the high half. The high two bits are in byte 8 + h % 4. */
static void pack_q3_k_scales(const int8_t *scales, uint8_t *bytes) {
    memset(bytes, 0, 12);
    for (size_t h = 0; h < HALVES; h++) {
        unsigned scale = (unsigned)(scales[h] + 32);
        bytes[h % 8] |= (uint8_t)((scale & 15) << h / 8 * 4);
        bytes[8 + h % 4] |= (uint8_t)(scale >> 4 << h / 4 * 2);
    }
}

void fr_encode_q3_k(const float *x, const float *weights, uint8_t *block) {
    uint8_t codes[COLS];
    plan p = weights ? encode_columns(&(task){x, weights, HALF, 2.5F, 5, 0.25F, 32}, 4, snap_q3_k, codes)
                     : encode_columns(&(task){x, NULL, HALF, 2.5F, 5, 0.25F, 32}, 4, snap_q3_k, codes);
    for (size_t i = 0; i < RUN; i++) {
        block[i] = 0;
        for (size_t run = 0; run < RUNS; run++) block[i] |= (uint8_t)(codes[run * RUN + i] >> 2 << run);
    }
    pack_2_bits(block + 32, codes);
    pack_q3_k_scales(p.scales, block + 96);
    store_half(block + 108, p.d);
}

/* ------------------------------------------------------------------------------------------------------------- Q6_K */

/* Packs 6-bit codes. For each 128 columns there are 64 bytes with the low 4 bits and 32 bytes with the high 2 bits. */
static void pack_6_bits(const uint8_t *codes, uint8_t *block) {
    for (size_t wide = 0; wide < 2; wide++, codes += 4 * RUN) {
        uint8_t *low = block + wide * 64, *high = block + 128 + wide * RUN;
        for (size_t i = 0; i < RUN; i++) {
            uint8_t a = codes[i], b = codes[i + RUN], c = codes[i + 2 * RUN], e = codes[i + 3 * RUN];
            low[i] = (uint8_t)((a & 15) | c << 4);
            low[i + RUN] = (uint8_t)((b & 15) | e << 4);
            high[i] = (uint8_t)(a >> 4 | (b >> 4) << 2 | (c >> 4) << 4 | (e >> 4) << 6);
        }
    }
}

void fr_encode_q6_k(const float *x, const float *weights, uint8_t *block) {
    uint8_t codes[COLS];
    plan p = weights ? encode_columns(&(task){x, weights, HALF, 30, 33, 0.5F, 128}, 32, snap_q6_k, codes)
                     : encode_columns(&(task){x, NULL, HALF, 30, 33, 0.5F, 128}, 32, snap_q6_k, codes);
    pack_6_bits(codes, block);
    memcpy(block + 192, p.scales, HALVES);
    store_half(block + 208, p.d);
}

/* ----------------------------------------------------------------------------------------------------------- IQ4_XS */

/* Layout: d; 6-bit scales, with their high two bits in two bytes and their low four bits in four bytes; codes. The
 * first 16 codes of a run are in the low halves of its bytes. */
void fr_encode_iq4_xs(const float *x, const float *weights, uint8_t *block) {
    uint8_t codes[COLS];
    plan p = weights ? encode_columns(&(task){x, weights, RUN, 80, 140, 5, 32}, 127, snap_iq4_nl, codes)
                     : encode_columns(&(task){x, NULL, RUN, 80, 140, 5, 32}, 127, snap_iq4_nl, codes);
    number_iq4_nl(codes, COLS, 127);
    memset(block, 0, 8);
    store_half(block, p.d);
    for (size_t run = 0; run < RUNS; run++) {
        unsigned scale = (unsigned)(p.scales[run] + 32);
        block[2 + run / 4] |= (uint8_t)(scale >> 4 << run % 4 * 2);
        block[4 + run / 2] |= (uint8_t)((scale & 15) << run % 2 * 4);
        const uint8_t *own = codes + run * RUN;
        for (size_t i = 0; i < HALF; i++) block[8 + run * HALF + i] = (uint8_t)(own[i] | own[i + HALF] << 4);
    }
}
