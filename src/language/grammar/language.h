/* Makes automata of regular languages, which read characters. They are for texts that must match several expressions at
 * once, or that must not match an expression.
 *
 * In: expressions without rules. Out: deterministic automata, trimmed to the states that can reach an end, and rules
 * made of them. A call that makes an automaton only reads its arguments, which still belong to the caller. After a
 * failure there is no automaton. FR_UNBUILT: the automaton would have too many states, or take too long to make. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_LANGUAGE_H
#define FR_SRC_LANGUAGE_GRAMMAR_LANGUAGE_H

#include "src/language/grammar/readers.h"

typedef struct fr_language_edge {
    uint32_t low, high, to;
} fr_language_edge;

typedef struct fr_language_state {
    uint32_t first, count; /* the state's edges, which are sorted and do not overlap */
    bool ends;
} fr_language_state;

typedef struct fr_language {
    fr_language_state *states; /* a text begins in the first state; if there are no states, the language is empty */
    fr_language_edge *edges;
    size_t state_count, state_capacity, edge_count, edge_capacity;
    size_t work; /* number of states and edges that were visited while the automaton was made */
} fr_language;

fr_status fr_language_of(const fr_grammar_rules *rules, fr_expression expression, fr_language **language);

/* Makes the language of a regular expression. If its automaton is too large, upper bounds of repetitions are dropped,
 * and the largest bound is dropped first. Bounds inside negative look-arounds are kept, because without them the
 * language would lack texts that the expression allows. *work: the work that was done; it is also set after a
 * failure. */
fr_status fr_language_of_regex(fr_text text, bool whole, size_t *work, fr_language **language);

/* fr_language_of_lengths makes the language of all texts of least to most characters. fr_language_of_text makes the
 * language of one text. */
fr_status fr_language_of_lengths(uint32_t least, uint32_t most, fr_language **language);
fr_status fr_language_of_text(fr_text utf8, fr_language **language);

/* fr_language_both makes the language of the texts that are in both languages. fr_language_except makes the language of
 * the texts that are not in `one` and consist of characters of `alphabet`, which is sorted. */
fr_status fr_language_both(const fr_language *one, const fr_language *other, fr_language **both);
fr_status fr_language_except(const fr_language *one, const fr_character_range *alphabet, size_t count,
                             fr_language **others);
void fr_language_free(fr_language *language);

/* Finds the edge for a character from a state; NULL: the state has no such edge. */
const fr_language_edge *fr_language_edge_at(const fr_language *language, uint32_t state, uint32_t code);

bool fr_language_is_empty(const fr_language *language);
bool fr_language_has(const fr_language *language, fr_text utf8);

/* Write a non-empty language as rules, one for each state. fr_language_expression_of_length writes only the texts of
 * least to most characters; its rules count the characters. *some: true if there are such texts. FR_UNBUILT if no path
 * of `least` characters contains a state with an edge to itself, because it is then unknown which lengths are
 * possible. */
fr_expression fr_language_expression(const fr_language *language, fr_write_characters *write, fr_grammar_rules *rules);
fr_status fr_language_expression_of_length(const fr_language *language, uint32_t least, uint32_t most,
                                           fr_write_characters *write, fr_grammar_rules *rules,
                                           fr_expression *expression, bool *some);

/* Add states and edges, for functions that make an automaton. First add a state, and then its edges in the order of
 * their characters. Neighbouring edges that lead to the same state are joined. fr_language_trim finishes the
 * automaton. */
fr_status fr_language_add_state(fr_language *language, bool ends);
fr_status fr_language_add_edge(fr_language *language, uint32_t low, uint32_t high, uint32_t to);
fr_status fr_language_trim(fr_language *language);
fr_status fr_language_fail_size(void);

#endif
