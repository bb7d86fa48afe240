/* Subtracts mean keys: see key_means.h. */
#include "kernels/key_means.h"

#include "kernels/compiler.h"

#include <string.h>

void fr_key_means_fill(float *row, const float *cosine, const float *sine, size_t dims, size_t width) {
    for (size_t i = 0; i < dims / 2; i++) {
        row[i] = cosine[i];
        row[i + dims / 2] = sine[i];
    }
    for (size_t i = dims; i < width; i++) row[i] = 1;
}

void fr_key_means_transpose(float *across, const float *turns, size_t head_dim) {
    for (size_t p = 0; p < FR_KEY_MEANS_BLOCK; p++)
        for (size_t i = 0; i < head_dim; i++) across[(p / 16 * head_dim + i) * 16 + p % 16] = turns[p * head_dim + i];
}

/* Rotates the pairs of `from` by the angles of a row of `starts` or `turns`. Values that are in no pair are copied. */
static void turn(const fr_key_means *means, const float *row, const float *from, float *to) {
    memmove(to, from, means->head_dim * sizeof *to);
    for (size_t i = 0; i < means->dims / 2; i++) {
        size_t a, b;
        fr_key_means_pair(means, i, &a, &b);
        float cosine = row[i], sine = row[i + means->dims / 2], x = from[a], y = from[b];
        to[a] = x * cosine - y * sine;
        to[b] = y * cosine + x * sine;
    }
}

void fr_key_means_start(const fr_key_means *means, size_t block, float *start) {
    turn(means, means->starts + block * means->dims, means->mean, start);
}

void fr_key_means_at(const fr_key_means *means, size_t position, float *mean) {
    if (position == 0) {
        memcpy(mean, means->first, means->head_dim * sizeof *mean);
        return;
    }
    fr_key_means_start(means, position / FR_KEY_MEANS_BLOCK, mean);
    turn(means, means->turns + position % FR_KEY_MEANS_BLOCK * means->head_dim, mean, mean);
}

void fr_key_means_remove(const fr_key_means *means, size_t position, float *key) {
    float mean[FR_KEY_MEANS_WIDEST];
    fr_key_means_at(means, position, mean);
    for (size_t i = 0; i < means->head_dim; i++) key[i] = (key[i] - mean[i]) * means->key_scale[i];
}

enum { PAIRS = 16 /* the largest number of pairs in a run of turn_pairs */ };

/* Computes u's two values for each of `count` pairs; the two are `half` apart in u. The values of the first pair are at
 * `query` and at `query` + `apart`, and each next pair is `step` further; `start` is laid out in the same way. Callers
 * pass a constant as `count`, and the results are stored at the end, so that compilers use vectors. */
FR_INLINE void turn_pairs(float *u, size_t half, const float *query, const float *start, size_t step, size_t apart,
                          size_t count) {
    float first[PAIRS], second[PAIRS];
    for (size_t i = 0; i < count; i++) {
        float a = query[i * step], b = query[i * step + apart], x = start[i * step], y = start[i * step + apart];
        first[i] = a * x + b * y;
        second[i] = b * x - a * y;
    }
    memcpy(u, first, count * sizeof *u);
    memcpy(u + half, second, count * sizeof *u);
}

/* Computes the values of u that belong to pairs. step: the distance from one pair to the next; apart: the distance
 * between the two values of a pair. */
FR_INLINE void turn_query(float *u, size_t half, const float *query, const float *start, size_t step, size_t apart) {
    size_t i = 0;
    for (; i + PAIRS <= half; i += PAIRS)
        turn_pairs(u + i, half, query + i * step, start + i * step, step, apart, PAIRS);
    for (; i < half; i++) turn_pairs(u + i, half, query + i * step, start + i * step, step, apart, 1);
}

void fr_key_means_query(const fr_key_means *means, const float *start, const float *query, float *u) {
    size_t half = means->dims / 2;
    if (means->neox)
        turn_query(u, half, query, start, 1, half);
    else
        turn_query(u, half, query, start, 2, 1);
    for (size_t i = means->dims; i < means->head_dim; i++) u[i] = query[i] * start[i];
}
