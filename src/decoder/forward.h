/* A batch on its way through a target: what goes in, what comes out, and where.
 *
 * In: rows of a timeline. Out: hidden rows, logits. A family's forward fills the hidden rows (families/model.h), the
 * head makes logits of them (head.h). */
#ifndef FR_SRC_FORWARD_H
#define FR_SRC_FORWARD_H

#include "forerun.h"
#include "src/decoder/kv.h"
#include "src/decoder/matrix.h"

/* Where a token stands for rotary positions, along time, height and width: of text all the same. */
#define FR_AXES 3
typedef struct fr_place {
    int32_t at[FR_AXES];
} fr_place;

/* Positions of a timeline whose embeddings are not looked up but given: what an image's tokens say. */
typedef struct fr_given {
    size_t first, count;
    const float *rows; /* [count, hidden] */
} fr_given;

/* The row given for a position, NULL where there is none. spans end with one of no rows. */
static inline const float *fr_given_row(const fr_given *spans, size_t position, size_t hidden) {
    for (; spans->count; spans++)
        if (position >= spans->first && position - spans->first < spans->count)
            return spans->rows + (position - spans->first) * hidden;
    return NULL;
}

/* One batch through the target: rows of tokens at consecutive positions in; hidden rows, and for some rows logits, out.
 * Prefill, decode and verify are this with many, one and K + 1 rows. */
typedef struct fr_forward {
    const fr_model *model;
    void *pass; /* the family's working rows */
    fr_kv *kv;  /* written at slot = position; not committed here */
    const int32_t *ids;
    const fr_place *places; /* [rows] */
    const fr_given *given;  /* embeddings that are not those of the ids */
    size_t rows;
    int64_t position;      /* of the first row */
    size_t keep;           /* rows before it are run for their K/V alone */
    float *hidden;         /* [rows, hidden] out, from row `keep` on: after the final norm */
    size_t head_first, head_rows; /* rows whose logits are wanted, none before keep; 0: none */
    float *logits;         /* [head_rows, vocab] out: after soft capping */
    int64_t *best;         /* [threads, FR_STEP_MAX]: the first head_rows out: the largest logit's id, -1 if any is
                            * not finite */
} fr_forward;

/* What makes logits of hidden rows. */
typedef struct fr_head {
    const fr_matrix *matrix; /* [vocab, hidden] */
    const fr_work *work;
    float softcap; /* 0: none */
} fr_head;

#endif
