/* A trimmed draft head: the rows of a drafter's head that score likely ids, gathered into a matrix of their own.
 *
 * In: the value of --draft-head, a head that scores all ids. Out: the ids that it scores from then on, ascending, and
 * their rows, bit for bit. An id that is not among them is never drafted, so the text stays the same; a draft step
 * reads less.
 *
 * The value is a word, a number or a file:
 *     whole    all ids, the default
 *     N        the first N ids: vocabularies are written with frequent tokens first
 *     auto     likely ids, and all ids that the text has used so far (learned_head.h). Likely are the first
 *              FR_LIKELY_IDS ids, or N with auto:N, and all tokens of one byte, which some vocabularies write last
 *     FILE     the ids that `forerun trim-head` has counted, a text:
 *                  forerun draft head 1
 *                  ID            one a line, decimal, the most frequent first; no id twice
 * The ids that end a sequence are always among them. */
#ifndef FR_SRC_ENGINE_DRAFT_DRAFT_HEAD_H
#define FR_SRC_ENGINE_DRAFT_DRAFT_HEAD_H

#include "base/arena.h"
#include "src/engine/model/model.h"
#include "src/engine/weights/matrix.h"

/* Number of first ids that `auto` takes for likely. */
enum { FR_LIKELY_IDS = 32768 };

typedef struct fr_draft_head {
    fr_arena arena;
    int32_t *ids;     /* [matrix.features] the ids that are scored; NULL: the head is whole */
    fr_matrix matrix; /* the head's rows of `ids`; without data until they are gathered */
    bool learns;      /* `ids` are only the likely ids, and texts add further ones (learned_head.h). Each engine
                       * therefore has a matrix of its own, and the matrix here never has data */
} fr_draft_head;

/* Returns true if the option's value asks for only a part of the ids. A number or a file may still turn out to mean
 * all ids. */
bool fr_draft_head_trims(const char *what);

/* Chooses the ids that the trimmed head will score. whole: the head with a row for every id, in order. Only ids of the
 * target's vocabulary are chosen. If all ids are chosen, the head stays whole. FR_USAGE: an invalid number of rows;
 * FR_INPUT: the file can't be read or is no such list; FR_UNBUILT: an FP8 head can't be trimmed. fr_draft_head_free
 * must be called also after a failure. */
fr_status fr_draft_head_choose(fr_draft_head *head, const char *what, const fr_model *target, const fr_matrix *whole);

/* Gathers the rows of the chosen ids from the whole head, which must be in memory by now. */
fr_status fr_draft_head_gather(fr_draft_head *head, const fr_matrix *whole);

/* Gathers one tile of FR_TILE_FEATURES rows: those of ids[first] and the ids after it, as far as `matrix` has
 * features. room: memory for the tile's rows, each of fr_draft_head_row_bytes. */
void fr_draft_head_gather_tile(const fr_matrix *matrix, const int32_t *ids, const fr_matrix *whole, size_t first,
                               uint8_t *room);
size_t fr_draft_head_row_bytes(const fr_matrix *whole);

/* Gives the bytes of the trimmed head's matrix; 0: the head is whole, or engines have the matrix. */
uint64_t fr_draft_head_bytes(const fr_draft_head *head);

void fr_draft_head_free(fr_draft_head *head);

#endif
