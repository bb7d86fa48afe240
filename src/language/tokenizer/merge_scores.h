/* Gives tokens the scores with which merging by scores (score_merges.h) makes the ids that a list of merges makes.
 *
 * In: a vocabulary with merges. Out: a score for each token. A pair of neighbours that together are a token T comes up
 * only as the last pair in the encoding of T's own text, because no merge crosses the ends of the two, and inside them
 * the same merges are done in the same order. So each token that its text gives has one pair of parts, whatever other
 * pairs the list has for it, and the rank of this pair orders the tokens. Of a token that its text does not give, the
 * list has no merge that comes up. Merging by scores must not make it either, although its parts may be neighbours;
 * where it would, no scores exist. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_MERGE_SCORES_H
#define FR_SRC_LANGUAGE_TOKENIZER_MERGE_SCORES_H

#include "formats/tokenizer_source.h"

/* Returns true if an added token comes of merges: its text has U+2581 for blanks, so that it is not found in texts as
 * people write them. */
bool fr_added_by_merges(fr_text text, bool special);

/* Sets source->scores from the merges. A source for which no scores exist is refused with FR_UNBUILT. */
fr_status fr_merge_scores(fr_tokenizer_source *source);

#endif
