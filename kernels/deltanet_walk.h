/* Defines the steps of gated DeltaNet (deltanet.h) once for registers of any width.
 *
 * In: names that the including file defines: `vector`, which has LANES floats, and the functions load, store, spread
 * (one value to all lanes), difference, product and multiply_add (a * b + c, rounded once). Out: run_strips, the whole
 * kernel. */
#ifndef FR_KERNELS_DELTANET_WALK_H
#define FR_KERNELS_DELTANET_WALK_H

#include "kernels/compiler.h"
#include "kernels/deltanet.h"

enum { STRIP = FR_DELTANET_STRIP, A_STRIP = STRIP / LANES, REGISTERS_MAX = FR_DELTANET_TOGETHER * A_STRIP };

/* Returns the index in the state at which register i of key index k begins. The state is laid out in strips, and a
 * strip has A_STRIP registers for each k. */
FR_INLINE size_t place(size_t key_dim, size_t k, size_t i) {
    return (i / A_STRIP * key_dim + k) * STRIP + i % A_STRIP * LANES;
}

/* Begins the first row (fr_deltanet_steps). Callers pass a constant as by_key, which is true if the row has
 * `decays`. */
FR_INLINE void begin_rows(float *to, const float *from, const fr_deltanet_row *row, size_t key_dim, float *m,
                          size_t strips, bool by_key) {
    vector sum[REGISTERS_MAX], factor = spread(row->decay);
    FR_UNROLLED_FOR (size_t i = 0; i < strips * A_STRIP; i++) sum[i] = spread(0);
    for (size_t k = 0; k < key_dim; k++) {
        vector key_k = spread(row->key[k]);
        if (by_key) factor = spread(row->decays[k]);
        FR_UNROLLED_FOR (size_t i = 0; i < strips * A_STRIP; i++) {
            vector s = product(load(from + place(key_dim, k, i)), factor);
            sum[i] = multiply_add(s, key_k, sum[i]);
            store(to + place(key_dim, k, i), s);
        }
    }
    FR_UNROLLED_FOR (size_t i = 0; i < strips * A_STRIP; i++) store(m + i * LANES, sum[i]);
}

FR_INLINE void begin(float *to, const float *from, const fr_deltanet_row *row, size_t key_dim, float *m,
                     size_t strips) {
    if (row->decays)
        begin_rows(to, from, row, key_dim, m, strips, true);
    else
        begin_rows(to, from, row, key_dim, m, strips, false);
}

/* Finishes a row and begins the next row (fr_deltanet_steps). Callers pass constants as the three flags: keeps is true
 * if step->kept is given, goes_on if step->next is given, by_key if the next row has `decays`. */
FR_INLINE void walk(const fr_deltanet_step *step, size_t strips, bool keeps, bool goes_on, bool by_key) {
    const float *from = step->from, *key = step->key, *query = step->query;
    const float *next_key = goes_on ? step->next_row->key : key;
    float *kept = step->kept, *next = step->next;
    size_t key_dim = step->key_dim;
    vector delta[REGISTERS_MAX], o[REGISTERS_MAX], m[REGISTERS_MAX],
        decay = spread(goes_on ? step->next_row->decay : 0);
    FR_UNROLLED_FOR (size_t i = 0; i < strips * A_STRIP; i++) {
        vector missing = difference(load(step->value + i * LANES), load(step->m + i * LANES));
        delta[i] = product(missing, spread(step->beta));
        o[i] = m[i] = spread(0);
    }
    for (size_t k = 0; k < key_dim; k++) {
        vector key_k = spread(key[k]), query_k = spread(query[k]), next_k = spread(next_key[k]);
        if (by_key) decay = spread(step->next_row->decays[k]);
        FR_UNROLLED_FOR (size_t i = 0; i < strips * A_STRIP; i++) {
            size_t at = place(key_dim, k, i);
            vector s = multiply_add(key_k, delta[i], load(from + at));
            o[i] = multiply_add(s, query_k, o[i]);
            if (keeps) store(kept + at, s);
            if (!goes_on && i % A_STRIP == 0) __builtin_prefetch(step->ahead + at);
            if (!goes_on) continue;
            s = product(s, decay);
            m[i] = multiply_add(s, next_k, m[i]);
            store(next + at, s);
        }
    }
    FR_UNROLLED_FOR (size_t i = 0; i < strips * A_STRIP; i++) {
        store(step->out + i * LANES, o[i]);
        store(step->m + i * LANES, m[i]);
    }
}

FR_INLINE void advance(const fr_deltanet_step *step, size_t strips) {
    if (!step->next)
        walk(step, strips, true, false, false);
    else if (step->next_row->decays && step->kept)
        walk(step, strips, true, true, true);
    else if (step->next_row->decays)
        walk(step, strips, false, true, true);
    else if (step->kept)
        walk(step, strips, true, true, false);
    else
        walk(step, strips, false, true, false);
}

static void begin_pair(float *to, const float *from, const fr_deltanet_row *row, size_t key_dim, float *m) {
    begin(to, from, row, key_dim, m, 2);
}

static void begin_one(float *to, const float *from, const fr_deltanet_row *row, size_t key_dim, float *m) {
    begin(to, from, row, key_dim, m, 1);
}

static void advance_pair(const fr_deltanet_step *step) {
    advance(step, 2);
}

static void advance_one(const fr_deltanet_step *step) {
    advance(step, 1);
}

/* Advances two strips at a time, because each FMA waits for the FMA before it in its chain, and one strip has too few
 * chains to hide this latency. If the number of strips is odd, the last one is advanced alone. */
FR_INLINE void run_strips(const fr_deltanet *run) {
    static const fr_deltanet_steps pair = {2, begin_pair, advance_pair}, one = {1, begin_one, advance_one};
    fr_deltanet_advance(run, &one, fr_deltanet_advance(run, &pair, 0));
}

#endif
