/* A trimmed draft head: a smaller matrix, with only those rows of a drafter's head that score likely ids.
 *
 * In: the value of --draft-head, and a head that scores all ids. Out: the ids that are scored from then on, in
 * ascending order, and copies of their rows. An id that is not among them is never drafted. So the text stays the same,
 * and a draft step reads less.
 *
 * The value is a word, a number or a file:
 *     whole    all ids, the default
 *     N        the first N ids, because vocabularies are written with frequent tokens first
 *     auto     likely ids, and all ids that the text has used so far (learned_head.h). Likely ids are the first
 *              FR_LIKELY_IDS ids (with auto:N the first N), and all tokens of one byte, which some vocabularies write
 *              last
 *     FILE     the ids that `forerun trim-head` has counted, a text:
 *                  forerun draft head 1
 *                  ID            one in each line, decimal, the most frequent first; no id occurs twice
 * In every case the ids that end a sequence are added. */
#ifndef FR_SRC_ENGINE_DRAFT_DRAFT_HEAD_H
#define FR_SRC_ENGINE_DRAFT_DRAFT_HEAD_H

#include "base/arena.h"
#include "src/engine/model/model.h"
#include "src/engine/weights/matrix.h"

/* `auto` takes this many of the first ids as likely ids. */
enum { FR_LIKELY_IDS = 32768 };

typedef struct fr_draft_head {
    fr_arena arena;
    int32_t *ids;     /* [matrix.features] the ids that are scored; NULL: all ids are scored, by the drafter's whole
                       * head */
    fr_matrix matrix; /* the rows of the whole head for `ids`; it has no data until the rows are copied */
    bool learns;      /* `ids` are only the likely ids, and texts add more ids (learned_head.h). So each engine has a
                       * matrix of its own, and `matrix` never has data */
} fr_draft_head;

/* Returns true if the option's value asks for a part of the ids. If the value is a number or a file, the part may later
 * turn out to be all ids. */
bool fr_draft_head_trims(const char *what);

/* Chooses the ids that the trimmed head will score. whole: the head that has a row for every id, in order. Only ids of
 * the target's vocabulary are chosen. If all ids are chosen, the head stays whole. Returns FR_USAGE for an invalid
 * number of rows. Returns FR_INPUT if the file can't be read or is not a list of ids. Returns FR_UNBUILT for an FP8
 * head, which can't be trimmed. fr_draft_head_free must be called also after a failure. */
fr_status fr_draft_head_choose(fr_draft_head *head, const char *what, const fr_model *target, const fr_matrix *whole);

/* Copies the rows of the chosen ids from the whole head, which must be in memory by then. */
fr_status fr_draft_head_gather(fr_draft_head *head, const fr_matrix *whole);

/* Copies one tile of FR_TILE_FEATURES rows from the whole head: the row of ids[first], and the rows of the ids after
 * it. The tile ends earlier if `matrix` has no more features. room: memory for the tile's rows, each of
 * fr_draft_head_row_bytes. */
void fr_draft_head_gather_tile(const fr_matrix *matrix, const int32_t *ids, const fr_matrix *whole, size_t first,
                               uint8_t *room);
size_t fr_draft_head_row_bytes(const fr_matrix *whole);

/* Gives the bytes of the trimmed head's matrix. Gives 0 if the head is whole, or if each engine has a matrix of its
 * own. */
uint64_t fr_draft_head_bytes(const fr_draft_head *head);

void fr_draft_head_free(fr_draft_head *head);

#endif
