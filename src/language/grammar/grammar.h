/* Which tokens a text of a grammar may go on with.
 *
 * In: a grammar and a tree of tokens. Out: states of texts, and for each the tokens that may come next, a bit an id.
 * Masks are kept: of a state, and of a state's part that others share (the inside of a string, wherever that string
 * is), of which only the tokens that reach beyond that part have to be looked at anew. So most steps look one up (Dong
 * et al. 2024, arXiv:2411.15100).
 *
 * One thread at a time. States are valid until the grammar makes room, which its count of sweeps tells. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_GRAMMAR_H
#define FR_SRC_LANGUAGE_GRAMMAR_GRAMMAR_H

#include "src/language/grammar/automaton.h"
#include "src/language/grammar/token_tree.h"

/* Forgets states and masks if there are many, all but one state, which gets another number, so that a mask and a step
 * have room; how often that has happened; the state of an empty text. */
fr_status fr_grammar_make_room(fr_grammar *grammar, uint32_t *state);
size_t fr_grammar_sweeps(const fr_grammar *grammar);
fr_status fr_grammar_begin(fr_grammar *grammar, uint32_t *state);

/* The state behind one more token, FR_STATE_DEAD behind one that is not allowed. */
fr_status fr_grammar_step(fr_grammar *grammar, uint32_t state, int32_t id, uint32_t *next);

/* Whether a text may end here. */
bool fr_grammar_ends(const fr_grammar *grammar, uint32_t state);

/* Bit id % 64 of word id / 64: whether a token may come next; of a tree's `vocab` ids. FR_INPUT: it takes too much work
 * to find, by a count that depends on nothing but the grammar and the text. */
fr_status fr_grammar_mask(fr_grammar *grammar, uint32_t state, const uint64_t **bits);

/* The bytes that have to come next, at most `size`. */
fr_status fr_grammar_forced(fr_grammar *grammar, uint32_t state, char *bytes, size_t size, size_t *length);

const fr_token_tree *fr_grammar_tree(const fr_grammar *grammar);

/* The rules of a text in one of the languages, also half-made ones where it fails, which the caller frees; and a
 * grammar of rules. */
fr_status fr_grammar_read(fr_grammar_kind kind, fr_text text, fr_grammar_rules *rules);
fr_status fr_grammar_of_rules(const fr_token_tree *tree, const fr_grammar_rules *rules, fr_grammar **grammar);

/* These tokens are as themselves alone, and no text: before the grammar is used. */
fr_status fr_grammar_keep_apart(fr_grammar *grammar, const int32_t *ids, size_t count);

#endif
