/* Runs rules byte by byte: tells which texts they allow, and which bytes may come next in one.
 *
 * In: rules. Out: states and the steps between them. A state is a set of places in the rules, each with its counter and
 * the calls to which it returns. States and lists of calls are numbered as they are met, equal ones alike, so that a
 * step that was taken before is only looked up. A state's number is valid until the automaton is swept.
 *
 * A rule that begins with itself is refused, as are rules that allow nothing. Thompson 1968, doi:10.1145/363347.363387;
 * Lang 1974, doi:10.1007/3-540-06841-4_65, for sets of places with shared stacks. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_AUTOMATON_H
#define FR_SRC_LANGUAGE_GRAMMAR_AUTOMATON_H

#include "src/language/grammar/rules.h"

#define FR_STATE_DEAD 0u /* nothing may come, and nothing is whole */

typedef struct fr_automaton fr_automaton;

fr_status fr_automaton_open(const fr_grammar_rules *rules, fr_automaton **automaton);
void fr_automaton_close(fr_automaton *automaton);

/* Before anything was read. */
fr_status fr_automaton_begin(fr_automaton *automaton, uint32_t *state);

/* The state behind one more byte. FR_INPUT: the grammar needs more states, or more places in one, than there may be, or
 * more work than there may be. */
fr_status fr_automaton_step(fr_automaton *automaton, uint32_t state, uint8_t byte, uint32_t *next);

/* The last byte up to `high` that leads, as all between do, where `low` does; perhaps not the very last. */
uint8_t fr_automaton_same_until(const fr_automaton *automaton, uint32_t state, uint8_t low, uint8_t high);

/* Whether what was read is a whole text; whether something may follow it. */
bool fr_automaton_ends(const fr_automaton *automaton, uint32_t state);
bool fr_automaton_goes_on(const fr_automaton *automaton, uint32_t state);

/* The only byte that can come next; -1: there are several, or the text may end here. */
int fr_automaton_only_byte(const fr_automaton *automaton, uint32_t state);

/* A state's places by what they return to: part `index` as if it returned to nowhere, which is a state that many others
 * have a part in, and the state that it goes on in when its rule ends, FR_STATE_DEAD where that is the end of the text.
 * *local is FR_STATE_DEAD behind the last part. */
fr_status fr_automaton_part(fr_automaton *automaton, uint32_t state, size_t index, uint32_t *local, uint32_t *after);

/* Gives a state that allows the same next tokens, with the counts changed to plain ones, which are as far from their
 * bounds as any token matters. Many states share it. */
fr_status fr_automaton_plain(fr_automaton *automaton, uint32_t state, uint32_t *plain);

/* Work is counted as if nothing were known from before, so that what is too much depends on no others' steps. From now
 * on it may be so much; what has been done since; more of it, FR_INPUT: too much. */
void fr_automaton_limit(fr_automaton *automaton, size_t most);
size_t fr_automaton_spent(const fr_automaton *automaton);
fr_status fr_automaton_spend(fr_automaton *automaton, size_t units);

/* From here on each step counts once. Outside of rounds it counts each time: FR_NO_ROUND; gives the round before. */
#define FR_NO_ROUND 0x10000u
void fr_automaton_begin_round(fr_automaton *automaton);
uint32_t fr_automaton_set_round(fr_automaton *automaton, uint32_t round);

/* How many states there are; whether there is room for what a limit of FR_AUTOMATON_MOST may need; forgets all but one
 * of them, which gets another number. */
#define FR_AUTOMATON_MOST 8000000
size_t fr_automaton_states(const fr_automaton *automaton);
bool fr_automaton_is_full(const fr_automaton *automaton);
fr_status fr_automaton_sweep(fr_automaton *automaton, uint32_t *kept);

#endif
