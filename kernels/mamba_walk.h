/* Computes Mamba-2's state over rows (fr_mamba_fn), written once for registers of any width.
 *
 * In: the including file defines MAMBA_ROWS and the names that deltanet_walk.h needs, which this file uses too. Out:
 * run_mamba, the whole kernel. A row of DeltaNet reads the whole state before it changes any element. A row of Mamba-2
 * needs each element only once. So an element is loaded once, taken through MAMBA_ROWS rows in a register, and stored
 * once. Each of these rows has a chain of its own for each column. */
#ifndef FR_KERNELS_MAMBA_WALK_H
#define FR_KERNELS_MAMBA_WALK_H

#include <string.h>

#include "kernels/deltanet_walk.h"

/* Describes the strips that are walked together: which of the head's columns they have, and the memory that is
 * prefetched at the end. */
typedef struct mamba_part {
    const fr_deltanet *run;
    float skip;
    size_t first, columns; /* columns [first, first + columns) */
    const float *ahead;    /* the state's next strips, or memory after its end */
} mamba_part;

/* Takes `rows` rows through `strips` strips. `to` gets the state after these rows and may be `from`; it is NULL if the
 * state is not needed. Callers pass constants as rows, strips, keeps and asks. keeps: `to` is given; asks: at least one
 * row has a query. */
FR_INLINE void mamba_walk(const mamba_part *part, const fr_deltanet_row *row, const float *from, float *to, size_t rows,
                          size_t strips, bool keeps, bool asks) {
    enum { COLUMNS = FR_DELTANET_COLUMNS_MAX };
    size_t key_dim = part->run->key_dim, registers = strips * A_STRIP;
    bool whole = part->columns == strips * STRIP;
    float padded[MAMBA_ROWS][COLUMNS], out[COLUMNS];
    const float *value[MAMBA_ROWS], *key[MAMBA_ROWS], *query[MAMBA_ROWS];
    vector u[MAMBA_ROWS][REGISTERS_MAX], o[MAMBA_ROWS][REGISTERS_MAX];
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
        key[r] = row[r].key;
        query[r] = row[r].query ? row[r].query : row[r].key;
        value[r] = row[r].value + part->first;
        if (!whole) {
            memset(padded[r], 0, sizeof padded[r]);
            value[r] = memcpy(padded[r], value[r], part->columns * sizeof *padded[r]);
        }
        FR_UNROLLED_FOR (size_t i = 0; i < registers; i++) {
            u[r][i] = product(load(value[r] + i * LANES), spread(row[r].beta));
            o[r][i] = spread(0);
        }
    }
    for (size_t k = 0; k < key_dim; k++)
        FR_UNROLLED_FOR (size_t i = 0; i < registers; i++) {
            size_t at = place(key_dim, k, i);
            vector s = load(from + at);
            if (i % A_STRIP == 0) __builtin_prefetch(part->ahead + at);
            FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
                s = multiply_add(spread(key[r][k]), u[r][i], product(s, spread(row[r].decay)));
                if (asks) o[r][i] = multiply_add(s, spread(query[r][k]), o[r][i]);
            }
            if (keeps) store(to + at, s);
        }
    FR_UNROLLED_FOR (size_t r = 0; r < rows; r++) {
        if (!asks || !row[r].query) continue;
        float *y = whole ? row[r].out + part->first : out;
        FR_UNROLLED_FOR (size_t i = 0; i < registers; i++)
            store(y + i * LANES, multiply_add(load(value[r] + i * LANES), spread(part->skip), o[r][i]));
        if (!whole) memcpy(row[r].out + part->first, out, part->columns * sizeof *out);
    }
}

FR_INLINE void mamba_rows(const mamba_part *part, const fr_deltanet_row *row, const float *from, float *to, size_t rows,
                          size_t strips) {
    bool asks = false;
    for (size_t r = 0; r < rows; r++) asks |= row[r].query != NULL;
    if (!to)
        mamba_walk(part, row, from, to, rows, strips, false, true);
    else if (asks)
        mamba_walk(part, row, from, to, rows, strips, true, true);
    else
        mamba_walk(part, row, from, to, rows, strips, true, false);
}

/* Takes the strips through all rows. The first rows, which are kept, change the state. The other rows continue in
 * scratch memory. */
FR_INLINE void mamba_strips(const mamba_part *part, float *state, size_t strips) {
    const fr_deltanet *run = part->run;
    const float *from = state;
    for (size_t r = 0, group; r < run->count; r += group) {
        bool kept = r < run->keeps;
        size_t end = kept ? run->keeps : run->count;
        group = end - r < MAMBA_ROWS ? end - r : MAMBA_ROWS;
        float *to = kept ? state : r + group < run->count ? run->scratch : NULL;
        if (group == 1)
            mamba_rows(part, run->rows + r, from, to, 1, strips);
        else if (group == 2)
            mamba_rows(part, run->rows + r, from, to, 2, strips);
        else if (group == 3 && MAMBA_ROWS > 3)
            mamba_rows(part, run->rows + r, from, to, 3, strips);
        else
            mamba_rows(part, run->rows + r, from, to, MAMBA_ROWS, strips);
        from = to;
    }
}

static void mamba_pair(const mamba_part *part, float *state) {
    mamba_strips(part, state, 2);
}

static void mamba_one(const mamba_part *part, float *state) {
    mamba_strips(part, state, 1);
}

FR_INLINE void run_mamba(const fr_deltanet *run, float skip) {
    size_t strips = (run->value_dim + STRIP - 1) / STRIP, size = run->key_dim * STRIP;
    for (size_t strip = 0; strip < strips;) {
        size_t together = strips - strip < 2 ? 1 : 2;
        mamba_part part = {.run = run, .skip = skip, .first = strip * STRIP};
        size_t left = run->value_dim - part.first;
        float *state = run->state + strip * size;
        part.columns = left < together * STRIP ? left : together * STRIP;
        part.ahead = state + together * size;
        if (together == 2)
            mamba_pair(&part, state);
        else
            mamba_one(&part, state);
        strip += together;
    }
}

#endif
