/* Finds out which tokens may come next in a text that follows a grammar.
 *
 * In: a grammar and a tree of tokens. Out: states of texts, and for each state a mask: one bit for each token that may
 * come next. Masks are kept for states. They are also kept for parts that many states have in common, such as the
 * inside of a string. If the mask of a part is known, only the tokens that reach beyond the part are tested. So most
 * steps only look up a mask (Dong et al. 2024, arXiv:2411.15100).
 *
 * Only one thread may use a grammar at a time. A state is valid until fr_grammar_make_room forgets the states, which
 * fr_grammar_sweeps counts. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_GRAMMAR_H
#define FR_SRC_LANGUAGE_GRAMMAR_GRAMMAR_H

#include "src/language/grammar/automaton.h"
#include "src/language/grammar/token_tree.h"

/* fr_grammar_make_room makes room for a mask and a step. If there are many states or masks, it forgets all except
 * *state, which gets another number. fr_grammar_sweeps counts how often that has happened. fr_grammar_begin gives the
 * state of an empty text. */
fr_status fr_grammar_make_room(fr_grammar *grammar, uint32_t *state);
size_t fr_grammar_sweeps(const fr_grammar *grammar);
fr_status fr_grammar_begin(fr_grammar *grammar, uint32_t *state);

/* Gives the state after one more token; FR_STATE_DEAD: the token is not allowed. */
fr_status fr_grammar_step(fr_grammar *grammar, uint32_t state, int32_t id, uint32_t *next);

/* Returns true if a text may end here. */
bool fr_grammar_ends(const fr_grammar *grammar, uint32_t state);

/* Gives the mask of a state: bit id % 64 of word id / 64 says whether a token may come next, for the tree's `vocab`
 * ids. FR_INPUT: to find the mask takes too much work. Whether the limit is exceeded depends only on the grammar and
 * the text. */
fr_status fr_grammar_mask(fr_grammar *grammar, uint32_t state, const uint64_t **bits);

/* Gives the bytes that must come next because the grammar allows no others, at most `size` of them. */
fr_status fr_grammar_forced(fr_grammar *grammar, uint32_t state, char *bytes, size_t size, size_t *length);

const fr_token_tree *fr_grammar_tree(const fr_grammar *grammar);

/* fr_grammar_read reads a text in one of the grammar languages as rules. The caller frees the rules, even after a
 * failure, when they are incomplete. fr_grammar_of_rules makes a grammar from rules. */
fr_status fr_grammar_read(fr_grammar_kind kind, fr_text text, fr_grammar_rules *rules);
fr_status fr_grammar_of_rules(const fr_token_tree *tree, const fr_grammar_rules *rules, fr_grammar **grammar);

/* After this call, these tokens are allowed only where the grammar names the token itself, and never as the token's
 * text. It must be called before the grammar is used. */
fr_status fr_grammar_keep_apart(fr_grammar *grammar, const int32_t *ids, size_t count);

#endif
