/* Computes a gated DeltaNet head strip by strip. Each step takes steps->together strips through a row: see
 * deltanet.h. */
#include "kernels/deltanet.h"

#include <string.h>

enum { STRIP = FR_DELTANET_STRIP };

/* Describes the columns of a row that a step computes. If `whole` is true, the step uses them in the row's own arrays.
 * If fewer columns are left than a step computes, the step uses the buffers of this struct. */
typedef struct columns {
    size_t first, count;
    bool whole;
    float value[FR_DELTANET_COLUMNS_MAX], out[FR_DELTANET_COLUMNS_MAX];
} columns;

static const float *value_of(columns *c, const fr_deltanet_row *row) {
    if (c->whole) return row->value + c->first;
    return memcpy(c->value, row->value + c->first, c->count * sizeof *c->value);
}

/* Returns the address to which the step writes o. A row without a query has an o too, which goes to a buffer and is
 * dropped. */
static float *out_of(columns *c, const fr_deltanet_row *row) {
    return c->whole && row->query ? row->out + c->first : c->out;
}

static void take_rows(const fr_deltanet *run, const fr_deltanet_steps *steps, float *state, columns *c) {
    float m[FR_DELTANET_COLUMNS_MAX];
    fr_deltanet_step step = {.key_dim = run->key_dim, .m = m};
    step.ahead = state + steps->together * STRIP * run->key_dim;
    float *first = run->keeps ? state : run->scratch;
    steps->begin(first, state, &run->rows[0], run->key_dim, m);
    for (size_t r = 0; r < run->count; r++) {
        const fr_deltanet_row *row = &run->rows[r], *next = r + 1 < run->count ? row + 1 : NULL;
        step.key = row->key;
        step.query = row->query ? row->query : row->key;
        step.value = value_of(c, row);
        step.beta = row->beta;
        step.from = r < run->keeps ? state : run->scratch;
        step.next = !next ? NULL : r + 1 < run->keeps ? state : run->scratch;
        step.kept = r + 1 == run->keeps ? state : next ? NULL : run->scratch;
        step.next_row = next;
        step.out = out_of(c, row);
        steps->advance(&step);
        if (row->query && !c->whole) memcpy(row->out + c->first, c->out, c->count * sizeof *c->out);
    }
}

size_t fr_deltanet_advance(const fr_deltanet *run, const fr_deltanet_steps *steps, size_t strip) {
    size_t strips = (run->value_dim + STRIP - 1) / STRIP;
    if (run->count == 0) return strips;
    for (; strips - strip >= steps->together; strip += steps->together) {
        columns c = {.first = strip * STRIP, .count = steps->together * STRIP};
        size_t left = run->value_dim - c.first;
        c.whole = left >= c.count;
        if (!c.whole) c.count = left;
        take_rows(run, steps, run->state + strip * STRIP * run->key_dim, &c);
    }
    return strip;
}
