/* Encodes the K types with minima, Q2_K, Q4_K and Q5_K, whose blocks of 256 values consist of runs. Each run has a
 * scale and a minimum of few bits, which are multiplied by the block's float16 d and dmin (decode_k.c has the layouts).
 *
 * In: 256 values, and the weights of their errors or NULL. Out: a block's bytes. First the best line of every run is
 * found separately. Then rounds follow. In a round each run gets the integer scale and minimum that fit best with the
 * current d and dmin. From these and the codes, the least-squares d and dmin are computed. The rounds end when the
 * block's error no longer falls. */
#include "quant/encode.h"
#include "quant/encode_fit.h"

enum { COLS = 256, RUN = 32, RUNS = COLS / RUN, HALF = 16, HALVES = COLS / HALF };

/* ROUNDS is the largest number of rounds over a block. STEPS is the number of times that the line of a run is improved
 * from one starting point. */
#define ROUNDS 6
#define STEPS  3

FR_INLINE lanes snap_q2_k(lanes t) {
    return snap_integer(t, 0, 3);
}

FR_INLINE lanes snap_q4_k(lanes t) {
    return snap_integer(t, 0, 15);
}

FR_INLINE lanes snap_q5_k(lanes t) {
    return snap_integer(t, 0, 31);
}

/* Describes a block to encode, and the limits of its type: a run has `run` values; codes are 0 to top; scales and
 * minima are 0 to limit. */
typedef struct task {
    const float *x, *weights;
    size_t run;
    float top;
    int limit;
} task;

FR_INLINE const float *weights_at(const task *t, size_t run) {
    return t->weights ? t->weights + run * t->run : NULL;
}

/* Holds one way to encode a block: value = (d * scale) * code - dmin * minimum. */
typedef struct plan {
    float d, dmin, error;
    uint8_t scales[HALVES], minimums[HALVES];
} plan;

/* Holds the best line of a run, found without regard to d and dmin. The line's offset is never positive, because minima
 * are subtracted. */
typedef struct run_fit {
    float scale, minimum;
    mass m;
} run_fit;

/* Fits a run's line, starting from several scales. A starting scale maps the range of the run's values to slightly more
 * or slightly fewer codes than the type has. */
FR_INLINE run_fit fit_run(const task *t, size_t run, snap_fn *snap) {
    const float *x = t->x + run * t->run, *weights = weights_at(t, run);
    float low = 0, high = x[0];
    mass m = mass_of(x, weights, t->run);
    for (size_t i = 0; i < t->run; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    answer best = {.l.offset = m.total < 0 ? mean_of(m) : 0};
    for (float level = t->top - 2; level <= t->top + 1; level += 0.5F) {
        answer a = {{(high - low) / level, low}, 0};
        for (int step = 0; step < STEPS; step++) a = falling_line_of(fit_codes(x, weights, t->run, a.l, snap), m);
        if (a.worth > best.worth) best = a;
    }
    return (run_fit){best.l.scale, -best.l.offset, m};
}

/* Divides a scale or minimum by d or dmin, and rounds to an integer that can be stored, at most limit. */
static int small_integer(float n, float d, int limit) {
    float t = d > 0 ? n / d + 0.5F : 0;
    return t < (float)limit ? (int)t : limit;
}

typedef struct choice {
    fit f;
    int scale, minimum;
} choice;

/* Chooses a run's integer scale and minimum: the pair with the smallest error. The candidates are the pair that the
 * run's own line would have with this d and dmin, and the pairs whose numbers differ from it by at most 1. */
FR_INLINE choice choose(const task *t, size_t run, const run_fit *own, float d, float dmin, snap_fn *snap) {
    int scale = small_integer(own->scale, d, t->limit), minimum = small_integer(own->minimum, dmin, t->limit);
    choice best = {0};
    bool first = true;
    for (int s = scale - 1; s <= scale + 1; s++) {
        for (int m = minimum - 1; m <= minimum + 1; m++) {
            if (s < 0 || s > t->limit || m < 0 || m > t->limit) continue;
            line l = {d * (float)s, -(dmin * (float)m)};
            fit f = fit_codes(t->x + run * t->run, weights_at(t, run), t->run, l, snap);
            if (first || f.error < best.f.error) best = (choice){f, s, m};
            first = false;
        }
    }
    return best;
}

/* Holds the block's sums for the normal equations. Their solution is the least-squares d and dmin of value = d *
 * (scale * code) - dmin * minimum. */
typedef struct normal {
    double dd, dm, mm, xd, xm;
} normal;

static void add_run(normal *n, const choice *c, mass run) {
    double s = c->scale, m = c->minimum;
    n->dd += s * s * c->f.squares;
    n->dm += s * m * c->f.codes;
    n->mm += m * m * run.weight;
    n->xd += s * c->f.cross;
    n->xm += m * run.total;
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

/* Refines a fit in rounds, starting with d and dmin. If a round's plan has a smaller error than *best, the plan
 * replaces *best. */
FR_INLINE void improve(const task *t, const run_fit *runs, float d, float dmin, snap_fn *snap, plan *best) {
    float last = 0;
    for (int round = 0; round < ROUNDS; round++) {
        plan p = {.d = half_of(d), .dmin = half_of(dmin)};
        normal n = {0};
        for (size_t run = 0; run < COLS / t->run; run++) {
            choice c = choose(t, run, &runs[run], p.d, p.dmin, snap);
            p.scales[run] = (uint8_t)c.scale;
            p.minimums[run] = (uint8_t)c.minimum;
            p.error += c.f.error;
            add_run(&n, &c, runs[run].m);
        }
        if (round > 0 && !(p.error < last)) return;
        last = p.error;
        if (p.error < best->error) *best = p;
        solve(&n, &d, &dmin);
        if (!(d > 0 && dmin >= 0)) return;
    }
}

FR_INLINE plan search(const task *t, snap_fn *snap) {
    run_fit runs[HALVES];
    float scale = 0, minimum = 0;
    for (size_t run = 0; run < COLS / t->run; run++) {
        runs[run] = fit_run(t, run, snap);
        scale = runs[run].scale > scale ? runs[run].scale : scale;
        minimum = runs[run].minimum > minimum ? runs[run].minimum : minimum;
    }
    plan best = {.error = error_of_zeros(t->x, t->weights, COLS)};
    float most = (float)t->limit;
    for (float level = most; level >= most - 4; level -= 2)
        improve(t, runs, scale / level, minimum / level, snap, &best);
    return best;
}

/* Sets codes[i] for each column, and returns the plan to which these codes belong. */
FR_INLINE plan encode_columns(const task *t, snap_fn *snap, uint8_t *codes) {
    plan p = search(t, snap);
    for (size_t i = 0; i < COLS; i += 4) {
        float scale = p.d * (float)p.scales[i / t->run], minimum = p.dmin * (float)p.minimums[i / t->run];
        lanes code = snap((load_lanes(t->x + i) + splat(minimum)) * splat(inverse_of(scale)));
        for (size_t lane = 0; lane < 4; lane++) codes[i + lane] = (uint8_t)(int)code[lane];
    }
    return p;
}

/* ------------------------------------------------------------------------------------------------------------- Q2_K */

void fr_encode_q2_k(const float *x, const float *weights, uint8_t *block) {
    uint8_t codes[COLS];
    plan p = weights ? encode_columns(&(task){x, weights, HALF, 3, 15}, snap_q2_k, codes)
                     : encode_columns(&(task){x, NULL, HALF, 3, 15}, snap_q2_k, codes);
    for (size_t h = 0; h < HALVES; h++) block[h] = (uint8_t)(p.scales[h] | p.minimums[h] << 4);
    pack_2_bits(block + HALVES, codes);
    store_half(block + 80, p.d);
    store_half(block + 82, p.dmin);
}

/* ------------------------------------------------------------------------------------------------------- Q4_K, Q5_K */

/* Stores d and dmin, and the scales and minima in 12 bytes (decode_k.c has the layout). */
static void store_header(const plan *p, uint8_t *block) {
    uint8_t *bytes = block + 4;
    store_half(block, p->d);
    store_half(block + 2, p->dmin);
    for (size_t i = 0; i < 4; i++) {
        unsigned scale = p->scales[i + 4], minimum = p->minimums[i + 4];
        bytes[i] = (uint8_t)(p->scales[i] | (scale >> 4) << 6);
        bytes[i + 4] = (uint8_t)(p->minimums[i] | (minimum >> 4) << 6);
        bytes[i + 8] = (uint8_t)((scale & 15) | (minimum & 15) << 4);
    }
}

/* Packs the codes of each pair of runs into 32 bytes. The first run is in the low halves of the bytes, the second run
 * in the high halves. */
static void pack_low_bits(uint8_t *bytes, const uint8_t *codes) {
    for (size_t i = 0; i < COLS / 2; i++) {
        const uint8_t *pair = codes + i / RUN * 2 * RUN + i % RUN;
        bytes[i] = (uint8_t)((pair[0] & 15) | pair[RUN] << 4);
    }
}

void fr_encode_q4_k(const float *x, const float *weights, uint8_t *block) {
    uint8_t codes[COLS];
    plan p = weights ? encode_columns(&(task){x, weights, RUN, 15, 63}, snap_q4_k, codes)
                     : encode_columns(&(task){x, NULL, RUN, 15, 63}, snap_q4_k, codes);
    store_header(&p, block);
    pack_low_bits(block + 16, codes);
}

void fr_encode_q5_k(const float *x, const float *weights, uint8_t *block) {
    uint8_t codes[COLS], *fifths = block + 16;
    plan p = weights ? encode_columns(&(task){x, weights, RUN, 31, 63}, snap_q5_k, codes)
                     : encode_columns(&(task){x, NULL, RUN, 31, 63}, snap_q5_k, codes);
    store_header(&p, block);
    for (size_t i = 0; i < RUN; i++) {
        fifths[i] = 0;
        for (size_t run = 0; run < RUNS; run++) fifths[i] |= (uint8_t)(codes[run * RUN + i] >> 4 << run);
    }
    pack_low_bits(block + 48, codes);
}
