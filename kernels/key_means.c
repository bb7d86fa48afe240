/* Subtracts mean keys: see key_means.h. */
#include "kernels/key_means.h"

#include <string.h>

void fr_key_means_fill(float *row, const float *cosine, const float *sine, size_t dims) {
    memcpy(row, cosine, dims / 2 * sizeof *row);
    memcpy(row + dims / 2, sine, dims / 2 * sizeof *row);
}

void fr_key_means_fill_columns(float *columns, size_t r, const float *cosine, const float *sine, size_t dims) {
    float *at = columns + r;
    at[0] = 1;
    at[FR_KEY_MEANS_BLOCK] = fr_key_means_t(r);
    for (size_t i = 0; i < dims / 2; i++) {
        at[(2 + i) * FR_KEY_MEANS_BLOCK] = cosine[i];
        at[(2 + dims / 2 + i) * FR_KEY_MEANS_BLOCK] = sine[i];
    }
}

void fr_key_means_begin(fr_key_means *means) {
    means->used[0] = 0;
    means->used[1] = 1;
    means->used_count = 2;
}

void fr_key_means_add_fast(fr_key_means *means, size_t pair) {
    means->used[means->used_count++] = (uint16_t)(2 + pair);
    means->used[means->used_count++] = (uint16_t)(2 + means->dims / 2 + pair);
}

static size_t fast_count(const fr_key_means *means) {
    return (means->used_count - 2) / 2;
}

static size_t fast_pair(const fr_key_means *means, size_t i) {
    return means->used[2 + 2 * i] - 2U;
}

/* Turns a pair of values by an angle. */
static void turn(float *x, float *y, float cosine, float sine) {
    float from = *x;
    *x = from * cosine - *y * sine;
    *y = *y * cosine + from * sine;
}

/* Turns all pairs of a vector by the angles of a block's first position. */
static void turn_to_block(const fr_key_means *means, size_t block, const float *from, float *to) {
    const float *start = means->starts + block * means->dims;
    memcpy(to, from, means->head_dim * sizeof *to);
    for (size_t i = 0; i < means->dims / 2; i++) {
        size_t a, b;
        fr_key_means_pair(means, i, &a, &b);
        turn(&to[a], &to[b], start[i], start[i + means->dims / 2]);
    }
}

void fr_key_means_enter(const fr_key_means *means, size_t block, fr_key_means_block *at) {
    const float *start = means->starts + block * means->dims;
    turn_to_block(means, block, means->level, at->rows[0]);
    turn_to_block(means, block, means->slope, at->rows[1]);
    memcpy(at->rows[2], means->first, means->head_dim * sizeof(float));
    for (size_t i = 0; i < fast_count(means); i++) {
        size_t a, b, pair = fast_pair(means, i);
        fr_key_means_pair(means, pair, &a, &b);
        at->x[i] = means->mean[a];
        at->y[i] = means->mean[b];
        turn(&at->x[i], &at->y[i], start[pair], start[pair + means->dims / 2]);
    }
}

void fr_key_means_at(const fr_key_means *means, size_t position, float *mean) {
    size_t r = position % FR_KEY_MEANS_BLOCK;
    fr_key_means_block at;
    if (position == 0) {
        memcpy(mean, means->first, means->head_dim * sizeof *mean);
        return;
    }
    fr_key_means_enter(means, position / FR_KEY_MEANS_BLOCK, &at);
    for (size_t i = 0; i < means->head_dim; i++) mean[i] = at.rows[0][i] + at.rows[1][i] * fr_key_means_t(r);
    for (size_t i = 0; i < fast_count(means); i++) {
        size_t a, b;
        const uint16_t *used = means->used + 2 + 2 * i;
        fr_key_means_pair(means, fast_pair(means, i), &a, &b);
        turn(&at.x[i], &at.y[i], means->columns[used[0] * FR_KEY_MEANS_BLOCK + r],
             means->columns[used[1] * FR_KEY_MEANS_BLOCK + r]);
        mean[a] += at.x[i];
        mean[b] += at.y[i];
    }
}

void fr_key_means_remove(const fr_key_means *means, size_t position, float *key) {
    float mean[FR_KEY_MEANS_WIDEST];
    fr_key_means_at(means, position, mean);
    for (size_t i = 0; i < means->head_dim; i++) key[i] = (key[i] - mean[i]) * means->key_scale[i];
}

void fr_key_means_factors(const fr_key_means *means, const fr_key_means_block *at, const float *query, float level,
                          float slope, float scale, float *factors) {
    factors[0] = level;
    factors[1] = slope;
    for (size_t i = 0; i < fast_count(means); i++) {
        size_t a, b;
        fr_key_means_pair(means, fast_pair(means, i), &a, &b);
        factors[2 + 2 * i] = (query[a] * at->x[i] + query[b] * at->y[i]) * scale;
        factors[3 + 2 * i] = (query[b] * at->x[i] - query[a] * at->y[i]) * scale;
    }
}
