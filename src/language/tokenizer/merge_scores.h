/* Gives tokens the scores with which merging by scores (score_merges.h) makes the ids that a list of merges makes.
 *
 * In: a vocabulary with merges. Out: a score for each token. Suppose that two neighbours, which together are a token T,
 * are merged in some text. No merge has crossed the ends of the two, and inside them the same merges were done in the
 * same order as in T's own text. So the two are also the last pair that is merged when T's own text is encoded. It
 * follows that T is only ever made from this one pair, whatever other pairs the list has for T, and the rank of this
 * pair gives T's score. If the merges do not make T from its own text, they never make T in any text. Merging by scores
 * must not make such a T either, although its parts may become neighbours. If it would make T, there are no scores for
 * this vocabulary, and it is refused. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_MERGE_SCORES_H
#define FR_SRC_LANGUAGE_TOKENIZER_MERGE_SCORES_H

#include "formats/tokenizer_source.h"

/* Returns true if merges make the added token: its text has U+2581 for blanks, so it is not found in texts as people
 * write them. */
bool fr_added_by_merges(fr_text text, bool special);

/* Sets source->scores from the merges. FR_UNBUILT: there are no scores that give the same ids. */
fr_status fr_merge_scores(fr_tokenizer_source *source);

#endif
