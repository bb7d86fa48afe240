/* Defines the recurrent states of gated DeltaNet and Mamba-2 over rows, and the short convolution that precedes them.
 * The contracts are fr_deltanet_fn, fr_mamba_fn and fr_short_conv_fn in kernels.h. */
#include "kernels/scalar.h"

enum { STRIP = FR_DELTANET_STRIP };

/* Advances the columns of a strip by one row. The last strip may have columns past the end of the head. The value of
 * such a column is 0, and its result is not written to `out`. */
static void advance(float *strip, size_t key_dim, const fr_deltanet_row *row, size_t first, size_t columns) {
    float m[STRIP] = {0}, delta[STRIP] = {0}, o[STRIP] = {0};
    memcpy(delta, row->value + first, columns * sizeof *delta);
    for (size_t k = 0; k < key_dim; k++)
        for (size_t c = 0; c < STRIP; c++) {
            strip[k * STRIP + c] *= row->decays ? row->decays[k] : row->decay;
            m[c] = fmaf(strip[k * STRIP + c], row->key[k], m[c]);
        }
    for (size_t c = 0; c < STRIP; c++) delta[c] = (delta[c] - m[c]) * row->beta;
    for (size_t k = 0; k < key_dim; k++)
        for (size_t c = 0; c < STRIP; c++) {
            strip[k * STRIP + c] = fmaf(row->key[k], delta[c], strip[k * STRIP + c]);
            if (row->query) o[c] = fmaf(strip[k * STRIP + c], row->query[k], o[c]);
        }
    if (row->query) memcpy(row->out + first, o, columns * sizeof *o);
}

void FR_SCALAR(deltanet)(const fr_deltanet *run) {
    size_t size = run->key_dim * STRIP;
    for (size_t first = 0; first < run->value_dim; first += STRIP) {
        size_t left = run->value_dim - first, columns = left < STRIP ? left : STRIP;
        float *strip = run->state + first / STRIP * size;
        for (size_t r = 0; r < run->count; r++) {
            if (r == run->keeps) strip = memcpy(run->scratch, strip, size * sizeof *strip);
            advance(strip, run->key_dim, &run->rows[r], first, columns);
        }
    }
}

/* Advances the columns of a strip of Mamba-2 by one row. Columns past the end of the head are treated as in
 * `advance`. */
static void advance_mamba(float *strip, size_t key_dim, const fr_deltanet_row *row, float skip, size_t first,
                          size_t columns) {
    float u[STRIP] = {0}, o[STRIP] = {0};
    for (size_t c = 0; c < columns; c++) u[c] = row->value[first + c] * row->beta;
    for (size_t k = 0; k < key_dim; k++)
        for (size_t c = 0; c < STRIP; c++) {
            float *s = &strip[k * STRIP + c];
            *s = fmaf(row->key[k], u[c], *s * row->decay);
            if (row->query) o[c] = fmaf(*s, row->query[k], o[c]);
        }
    for (size_t c = 0; c < columns && row->query; c++) row->out[first + c] = fmaf(row->value[first + c], skip, o[c]);
}

void FR_SCALAR(mamba)(const fr_deltanet *run, float skip) {
    size_t size = run->key_dim * STRIP;
    for (size_t first = 0; first < run->value_dim; first += STRIP) {
        size_t left = run->value_dim - first, columns = left < STRIP ? left : STRIP;
        float *strip = run->state + first / STRIP * size;
        for (size_t r = 0; r < run->count; r++) {
            if (r == run->keeps) strip = memcpy(run->scratch, strip, size * sizeof *strip);
            advance_mamba(strip, run->key_dim, &run->rows[r], skip, first, columns);
        }
    }
}

void FR_SCALAR(short_conv)(float *y, const float *const *rows, const float *w, size_t w_stride, size_t conv_kernel,
                           const float *bias, size_t n) {
    for (size_t c = 0; c < n; c++) {
        float acc = bias ? bias[c] : 0;
        for (size_t t = 0; t < conv_kernel; t++)
            if (rows[t]) acc = fmaf(w[t * w_stride + c], rows[t][c], acc);
        y[c] = acc / (1.0f + scalar_exp(-acc));
    }
}
