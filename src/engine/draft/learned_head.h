/* A trimmed draft head that learns: it has the rows of likely ids (draft_head.h, --draft-head auto), and the rows of
 * ids that texts have used so far.
 *
 * In: the timelines of an engine's sessions. Out: a matrix whose rows score the likely ids and all ids that the
 * sessions have learned; and for each session the scores of the ids that it may draft.
 *
 *     [ likely ids, the same for all sessions | learned ids, each used by one or more sessions ]
 *
 * A session learns the ids of its timeline that are not likely ids, in the order of the text, up to FR_LEARNED_IDS_MAX
 * ids. What it has learned depends only on its own text: it forgets ids if its text is cut, and it never drafts an id
 * that only another session has learned. So the same text always gets the same drafts. Sessions share the rows, because
 * one product scores all sessions. A row that no session uses any more is taken for another id.
 *
 * If the drafter's head does not learn, all functions do nothing, and no memory is taken. */
#ifndef FR_SRC_ENGINE_DRAFT_LEARNED_HEAD_H
#define FR_SRC_ENGINE_DRAFT_LEARNED_HEAD_H

#include "src/engine/draft/draft.h"

/* The most ids that a session learns. A text of 30,000 tokens of source code has about 3,000 different ids. */
enum { FR_LEARNED_IDS_MAX = 4096 };

/* The head of all sessions of an engine, which is in a method's workspace. */
typedef struct fr_learned_head {
    fr_matrix matrix;       /* the matrix whose rows score `ids`; it has no features if the drafter's head does not
                             * learn */
    const fr_matrix *whole; /* the head from which rows are copied */
    size_t likely;          /* number of likely ids, which come first */
    size_t capacity;        /* the most rows */
    size_t vocab;           /* ids below this number can be learned */
    int32_t *ids;           /* [capacity] the id that each row scores */
    int32_t *rows;          /* [vocab] the row that scores each id; -1: no row scores it */
    uint32_t *users;        /* [capacity] number of sessions that have learned a row's id; unused for likely ids */
    size_t unused;          /* number of rows of learned ids that no session uses */
    bool *stale;            /* [tiles] true if some row of this tile scores an id whose weights have not been copied
                             * yet */
    uint8_t *room;          /* memory for the rows of one tile, before they are copied to `matrix` */
    int32_t *scored;        /* [likely + FR_LEARNED_IDS_MAX] the ids for which one session gets scores */
    float *scores;          /* [FR_LEARNED_IDS_MAX] memory for scores that are moved */
} fr_learned_head;

/* The ids that one session has learned. They are in the state of the session's method. */
typedef struct fr_learned_ids {
    int32_t *text;  /* [context] the timeline's ids at the last call */
    size_t length;  /* number of ids in `text` */
    int32_t *ids;   /* [FR_LEARNED_IDS_MAX] the learned ids, in the order of the text */
    int32_t *first; /* [FR_LEARNED_IDS_MAX] the position at which each entry of `ids` occurs first */
    size_t count;
    uint8_t *known; /* [vocab / 8 + 1] a bit for each id, which is set if the session has learned the id */
} fr_learned_ids;

/* Take the memory from the arena. If the arena does not only measure (base/arena.h), the functions also copy the rows
 * of the likely ids, so the weights must be in memory. */
void fr_learned_head_layout(fr_learned_head *head, fr_arena *arena, const fr_drafter *drafter,
                            const fr_draft_sizes *sizes);
void fr_learned_ids_layout(fr_learned_ids *ids, fr_arena *arena, const fr_drafter *drafter,
                           const fr_draft_sizes *sizes);

/* Gives the length of a row of scores: the most ids that one call may score. */
size_t fr_learned_head_width(const fr_learned_head *head);

/* Learns the ids of a session's timeline. If the timeline was cut, forgets the ids that were only in the removed
 * part. */
void fr_learned_ids_follow(fr_learned_ids *ids, fr_learned_head *head, const fr_draft_view *view);

/* Forgets all ids. Call it before the session's memory is freed. */
void fr_learned_ids_forget(fr_learned_ids *ids, fr_learned_head *head);

/* Copies the rows of newly learned ids from the whole head. Call it after sessions have followed their texts, and
 * before the matrix is used. */
void fr_learned_head_gather(fr_learned_head *head);

/* Gives one session's scores. scores: a row of scores from a product with the whole matrix; the function reorders this
 * row. The result stays valid until the next call. */
fr_scores fr_learned_head_scores(fr_learned_head *head, const fr_learned_ids *ids, float *scores);

#endif
