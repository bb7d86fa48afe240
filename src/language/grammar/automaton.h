/* Runs rules byte by byte. Finds out which texts the rules allow, and which bytes may come next in a text.
 *
 * In: rules. Out: states and the steps between them. A state is a set of places in the rules. Each place has a counter,
 * and a stack frame that says to which calls its rule returns. Equal states have the same number, and equal frames have
 * the same number. So a step that was taken before is only looked up. A state's number is valid until
 * fr_automaton_sweep.
 *
 * A rule that begins with itself is refused. Rules that allow no text are refused, too. Sources: Thompson 1968,
 * doi:10.1145/363347.363387; Lang 1974, doi:10.1007/3-540-06841-4_65, for sets of places with shared stacks. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_AUTOMATON_H
#define FR_SRC_LANGUAGE_GRAMMAR_AUTOMATON_H

#include "src/language/grammar/rules.h"

/* the state of a text that the rules do not allow; no byte may follow, and the text is not complete */
#define FR_STATE_DEAD 0u

typedef struct fr_automaton fr_automaton;

fr_status fr_automaton_open(const fr_grammar_rules *rules, fr_automaton **automaton);
void fr_automaton_close(fr_automaton *automaton);

/* Gives the state of the empty text. */
fr_status fr_automaton_begin(fr_automaton *automaton, uint32_t *state);

/* Gives the state after one more byte. FR_INPUT: the grammar needs more states, more places in a state, or more work
 * than is allowed. */
fr_status fr_automaton_step(fr_automaton *automaton, uint32_t state, uint8_t byte, uint32_t *next);

/* Returns a byte from `low` to `high`. All bytes from `low` to this byte lead to the same state. Larger bytes may lead
 * to that state, too. */
uint8_t fr_automaton_same_until(const fr_automaton *automaton, uint32_t state, uint8_t low, uint8_t high);

/* fr_automaton_ends returns true if the bytes that led to the state are a complete text. fr_automaton_goes_on returns
 * true if more bytes may follow these bytes. */
bool fr_automaton_ends(const fr_automaton *automaton, uint32_t state);
bool fr_automaton_goes_on(const fr_automaton *automaton, uint32_t state);

/* Gives the only byte that can come next. -1: there are several such bytes, or the text may end here. */
int fr_automaton_only_byte(const fr_automaton *automaton, uint32_t state);

/* Gives part `index` of a state. A part consists of all places of the state that return to one frame. *local: a state
 * that has only the part's places, whose rule returns to the end of the text; many states have parts with the same
 * *local. *after: the state in which the text continues once the part's rule has ended; FR_STATE_DEAD: the text ends
 * with the rule. For an index after the last part, *local is FR_STATE_DEAD. */
fr_status fr_automaton_part(fr_automaton *automaton, uint32_t state, size_t index, uint32_t *local, uint32_t *after);

/* Gives the plain state of a state; it allows the same next tokens. In a plain state, counts that no single token can
 * bring to a bound are replaced by low counts for which the same holds. So many states have the same plain state. */
fr_status fr_automaton_plain(fr_automaton *automaton, uint32_t state, uint32_t *plain);

/* Limit and count the work. A step costs the same whether or not it was taken before, so earlier requests do not change
 * at which work a grammar fails. fr_automaton_limit sets the limit and resets the count, fr_automaton_spent gives the
 * count, and fr_automaton_spend adds to the count and gives FR_INPUT once the limit is exceeded. */
void fr_automaton_limit(fr_automaton *automaton, size_t most);
size_t fr_automaton_spent(const fr_automaton *automaton);
fr_status fr_automaton_spend(fr_automaton *automaton, size_t units);

/* fr_automaton_begin_round begins a round: a series of steps, such as those of one mask, in which the cost of each
 * step is counted only once. Outside of rounds (FR_NO_ROUND) a step's cost is counted each time.
 * fr_automaton_set_round sets the round and gives the round that was set before. */
#define FR_NO_ROUND 0x10000u
void fr_automaton_begin_round(fr_automaton *automaton);
uint32_t fr_automaton_set_round(fr_automaton *automaton, uint32_t round);

/* FR_AUTOMATON_MAX limits the work of one mask or step. fr_automaton_states gives the number of states.
 * fr_automaton_is_full returns true if the tables may not have room for FR_AUTOMATON_MAX more units of work. Then call
 * fr_automaton_sweep: it forgets all states except *kept, which gets a new number. */
#define FR_AUTOMATON_MAX 8000000
size_t fr_automaton_states(const fr_automaton *automaton);
bool fr_automaton_is_full(const fr_automaton *automaton);
fr_status fr_automaton_sweep(fr_automaton *automaton, uint32_t *kept);

#endif
