/* Subtracts mean keys: see key_means.h. */
#include "kernels/key_means.h"

#include <string.h>

void fr_key_means_fill(float *row, const float *cosine, const float *sine, size_t dims, size_t width) {
    for (size_t i = 0; i < dims / 2; i++) {
        row[i] = cosine[i];
        row[i + dims / 2] = sine[i];
    }
    for (size_t i = dims; i < width; i++) row[i] = 1;
}

/* Turns the pairs of `from` by a row of `starts` or `turns`. The values that don't turn are copied. */
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

void fr_key_means_query(const fr_key_means *means, const float *start, const float *query, float *u) {
    for (size_t i = 0; i < means->dims / 2; i++) {
        size_t a, b;
        fr_key_means_pair(means, i, &a, &b);
        u[i] = query[a] * start[a] + query[b] * start[b];
        u[i + means->dims / 2] = query[b] * start[a] - query[a] * start[b];
    }
    for (size_t i = means->dims; i < means->head_dim; i++) u[i] = query[i] * start[i];
}
