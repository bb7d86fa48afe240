/* The K types: blocks of 256 in runs with a scale (and a minimum) of few bits, which d (and dmin), of float16, multiply
 * (the layouts: decode_k.c).
 *
 * In: 256 values. Out: a block's bytes. First every run gets the best line of its own. Then, in rounds: the pair of
 * small integers for each run that fits d and dmin best, and for those and the codes they give the least-squares d and
 * dmin; as long as the error of the block falls. */
#include "quant/encode.h"
#include "quant/encode_fit.h"

enum { COLS = 256, RUN = 32, RUNS = COLS / RUN, HALF = 16, HALVES = COLS / HALF };

/* Rounds over a block, and steps of descent from one starting point of a run. */
#define ROUNDS 6
#define STEPS  3

FR_INLINE lanes snap_q4_k(lanes t) {
    return snap_integer(t, 0, 15);
}

FR_INLINE lanes snap_q5_k(lanes t) {
    return snap_integer(t, 0, 31);
}

FR_INLINE lanes snap_q6_k(lanes t) {
    return snap_integer(t, -32, 31);
}

/* The error of zeros, which a block of values too small for its float16 scales is best encoded as. */
static float sum_of_squares(const float *x) {
    lanes sum = splat(0);
    for (size_t i = 0; i < COLS; i += 4) {
        lanes value = load_lanes(x + i);
        sum += value * value;
    }
    return sum_of(sum);
}

/* ------------------------------------------------------------------------------------------------------- Q4_K, Q5_K */

/* What a block is encoded as: value = (d * scale) * code - dmin * minimum. */
typedef struct plan {
    float d, dmin, error;
    uint8_t scales[RUNS], minimums[RUNS];
} plan;

/* A run by itself. Offsets are not positive: minima are subtracted. */
typedef struct run_fit {
    float scale, minimum, total;
} run_fit;

/* Starting points: the values' range takes a little more or less than the codes' range. */
FR_INLINE run_fit fit_run(const float *x, float top, snap_fn *snap) {
    float low = 0, high = x[0], total = 0;
    for (size_t i = 0; i < RUN; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
        total += x[i];
    }
    answer best = {.l.offset = total < 0 ? total / RUN : 0};
    for (float level = top - 2; level <= top + 1; level += 0.5F) {
        answer a = {{(high - low) / level, low}, 0};
        for (int step = 0; step < STEPS; step++) a = falling_line_of(fit_codes(x, RUN, a.l, snap), RUN, total);
        if (a.worth > best.worth) best = a;
    }
    return (run_fit){best.l.scale, -best.l.offset, total};
}

/* n / d as one of the 64 numbers that scales and minima have. */
static int six_bits(float n, float d) {
    float t = d > 0 ? n / d + 0.5F : 0;
    return t < 63 ? (int)t : 63;
}

typedef struct choice {
    fit f;
    int scale, minimum;
} choice;

/* The neighbours of the run's own line, as integers. */
FR_INLINE choice choose(const float *x, const run_fit *run, float d, float dmin, snap_fn *snap) {
    int scale = six_bits(run->scale, d), minimum = six_bits(run->minimum, dmin);
    choice best = {0};
    bool first = true;
    for (int s = scale - 1; s <= scale + 1; s++) {
        for (int m = minimum - 1; m <= minimum + 1; m++) {
            if (s < 0 || s > 63 || m < 0 || m > 63) continue;
            fit f = fit_codes(x, RUN, (line){d * (float)s, -(dmin * (float)m)}, snap);
            if (first || f.error < best.f.error) best = (choice){f, s, m};
            first = false;
        }
    }
    return best;
}

/* Normal equations of value = d * (scale * code) - dmin * minimum over the block. */
typedef struct normal {
    double dd, dm, mm, xd, xm;
} normal;

static void add_run(normal *n, const choice *c, float total) {
    double s = c->scale, m = c->minimum;
    n->dd += s * s * c->f.squares;
    n->dm += s * m * c->f.codes;
    n->mm += m * m * RUN;
    n->xd += s * c->f.cross;
    n->xm += m * total;
}

static void solve(const normal *n, float *d, float *dmin) {
    double determinant = n->dd * n->mm - n->dm * n->dm;
    if (determinant > 0) {
        *d = (float)((n->xd * n->mm - n->xm * n->dm) / determinant);
        *dmin = (float)((n->xd * n->dm - n->xm * n->dd) / determinant);
    } else if (n->dd > 0) {
        *d = (float)(n->xd / n->dd);
    }
}

/* Rounds from one pair of d and dmin. */
FR_INLINE void improve(const float *x, const run_fit *runs, float d, float dmin, snap_fn *snap, plan *best) {
    float last = 0;
    for (int round = 0; round < ROUNDS; round++) {
        plan p = {.d = half_of(d), .dmin = half_of(dmin)};
        normal n = {0};
        for (size_t run = 0; run < RUNS; run++) {
            choice c = choose(x + run * RUN, &runs[run], p.d, p.dmin, snap);
            p.scales[run] = (uint8_t)c.scale;
            p.minimums[run] = (uint8_t)c.minimum;
            p.error += c.f.error;
            add_run(&n, &c, runs[run].total);
        }
        if (round > 0 && !(p.error < last)) return;
        last = p.error;
        if (p.error < best->error) *best = p;
        solve(&n, &d, &dmin);
        if (!(d > 0 && dmin >= 0)) return;
    }
}

FR_INLINE plan search(const float *x, float top, snap_fn *snap) {
    run_fit runs[RUNS];
    float scale = 0, minimum = 0;
    for (size_t run = 0; run < RUNS; run++) {
        runs[run] = fit_run(x + run * RUN, top, snap);
        scale = runs[run].scale > scale ? runs[run].scale : scale;
        minimum = runs[run].minimum > minimum ? runs[run].minimum : minimum;
    }
    plan best = {.error = sum_of_squares(x)};
    for (float level = 63; level >= 59; level -= 2) improve(x, runs, scale / level, minimum / level, snap, &best);
    return best;
}

/* Scales and minima in 12 bytes: decode_k.c says where the bits are. */
static void pack_scales(const plan *p, uint8_t *bytes) {
    for (size_t i = 0; i < 4; i++) {
        unsigned scale = p->scales[i + 4], minimum = p->minimums[i + 4];
        bytes[i] = (uint8_t)(p->scales[i] | (scale >> 4) << 6);
        bytes[i + 4] = (uint8_t)(p->minimums[i] | (minimum >> 4) << 6);
        bytes[i + 8] = (uint8_t)((scale & 15) | (minimum & 15) << 4);
    }
}

/* d, dmin, scales; codes[i] for each column. */
FR_INLINE void encode_header(const float *x, float top, snap_fn *snap, uint8_t *block, uint8_t *codes) {
    plan p = search(x, top, snap);
    store_half(block, p.d);
    store_half(block + 2, p.dmin);
    pack_scales(&p, block + 4);
    for (size_t i = 0; i < COLS; i += 4) {
        float scale = p.d * (float)p.scales[i / RUN], minimum = p.dmin * (float)p.minimums[i / RUN];
        lanes code = snap((load_lanes(x + i) + splat(minimum)) * splat(inverse_of(scale)));
        for (size_t lane = 0; lane < 4; lane++) codes[i + lane] = (uint8_t)(int)code[lane];
    }
}

/* For each pair of runs 32 bytes, the first run in their low halves. */
static void pack_low_bits(uint8_t *bytes, const uint8_t *codes) {
    for (size_t i = 0; i < COLS / 2; i++) {
        const uint8_t *pair = codes + i / RUN * 2 * RUN + i % RUN;
        bytes[i] = (uint8_t)((pair[0] & 15) | pair[RUN] << 4);
    }
}

void fr_encode_q4_k(const float *x, uint8_t *block) {
    uint8_t codes[COLS];
    encode_header(x, 15, snap_q4_k, block, codes);
    pack_low_bits(block + 16, codes);
}

void fr_encode_q5_k(const float *x, uint8_t *block) {
    uint8_t codes[COLS], *fifths = block + 16;
    encode_header(x, 31, snap_q5_k, block, codes);
    for (size_t i = 0; i < RUN; i++) {
        fifths[i] = 0;
        for (size_t run = 0; run < RUNS; run++) fifths[i] |= (uint8_t)(codes[run * RUN + i] >> 4 << run);
    }
    pack_low_bits(block + 48, codes);
}

/* ------------------------------------------------------------------------------------------------------------- Q6_K */

/* value = (d * scale) * code, scales of 8 bits with a sign. */
typedef struct signed_plan {
    float d, error;
    int8_t scales[HALVES];
} signed_plan;

/* The best scale of 16 values by themselves. */
static float fit_half(const float *x) {
    float extreme = 0, magnitude = 0;
    for (size_t i = 0; i < HALF; i++) {
        float m = x[i] < 0 ? -x[i] : x[i];
        extreme = m > magnitude ? x[i] : extreme;
        magnitude = m > magnitude ? m : magnitude;
    }
    answer best = {0};
    for (float level = 30; level <= 33; level += 0.5F) {
        for (float side = -1; side <= 1; side += 2) {
            answer a = ray_of(fit_codes(x, HALF, (line){side * extreme / level, 0}, snap_q6_k));
            if (a.worth > best.worth) best = a;
        }
    }
    return best.l.scale;
}

static signed char eight_bits(float n, float d) {
    float t = d != 0 ? n / d : 0;
    t += t < 0 ? -0.5F : 0.5F;
    return (signed char)(t > 127 ? 127 : t > -128 ? (int)t : -128);
}

static void improve_signed(const float *x, const float *own, float d, signed_plan *best) {
    float last = 0;
    for (int round = 0; round < ROUNDS; round++) {
        signed_plan p = {.d = half_of(d)};
        double square = 0, cross = 0;
        for (size_t h = 0; h < HALVES; h++) {
            int centre = eight_bits(own[h], p.d), chosen = centre;
            fit least = fit_codes(x + h * HALF, HALF, (line){p.d * (float)centre, 0}, snap_q6_k);
            for (int s = centre - 1; s <= centre + 1; s += 2) {
                if (s < -128 || s > 127) continue;
                fit f = fit_codes(x + h * HALF, HALF, (line){p.d * (float)s, 0}, snap_q6_k);
                if (!(f.error < least.error)) continue;
                least = f;
                chosen = s;
            }
            p.scales[h] = (int8_t)chosen;
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

/* For each 128 columns 64 bytes of low 4 bits and 32 of high 2 bits. */
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

void fr_encode_q6_k(const float *x, uint8_t *block) {
    float own[HALVES], widest = 0;
    for (size_t h = 0; h < HALVES; h++) {
        own[h] = fit_half(x + h * HALF);
        if (own[h] * own[h] > widest * widest) widest = own[h];
    }
    signed_plan best = {.error = sum_of_squares(x)};
    for (float level = 128; level >= 124; level -= 2) improve_signed(x, own, -widest / level, &best);
    uint8_t codes[COLS];
    for (size_t i = 0; i < COLS; i += 4) {
        float scale = best.d * (float)best.scales[i / HALF];
        lanes code = snap_q6_k(load_lanes(x + i) * splat(inverse_of(scale)));
        for (size_t lane = 0; lane < 4; lane++) codes[i + lane] = (uint8_t)((int)code[lane] + 32);
    }
    pack_6_bits(codes, block);
    memcpy(block + 192, best.scales, HALVES);
    store_half(block + 208, best.d);
}
