/* Finds out how long a text can go on within a class of characters: the largest number n for which any n characters of
 * the class may follow a state.
 *
 * In: an automaton's states, and a class of token_slices.h. Out: a number of characters. Results are kept for each
 * state until the automaton is swept. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_TEXT_RUNS_H
#define FR_SRC_LANGUAGE_GRAMMAR_TEXT_RUNS_H

#include "src/language/grammar/automaton.h"
#include "src/language/grammar/token_slices.h"

enum { FR_RUN_WAYS = 4, FR_RUN_MAX = FR_STOP_TEXTS_MAX };

typedef struct fr_text_step {
    uint32_t ways[FR_RUN_WAYS]; /* the different states after one more character */
    uint32_t cost;              /* the cost of finding the states in `ways` */
    /* count: number of the states in `ways`. It is 0 if not every character of the class may come, or if the text may
     * end after such a character. looked_at: 0 if the states were not searched yet. */
    uint8_t count, looked_at;
} fr_text_step;

typedef struct fr_text_runs {
    fr_text_step *steps; /* [states, FR_SLICE_CLASSES] the step from each state */
    size_t capacity;
} fr_text_runs;

/* Gives the length of a run: the largest number n for which any n characters of the class may follow the state, and the
 * text can't end within these characters. The length is at most FR_RUN_MAX, or FR_SLICE_UNBOUND if there is no
 * limit. */
fr_status fr_text_run(fr_text_runs *runs, fr_automaton *automaton, uint32_t state, int class, size_t *characters);

/* Gives the states after 0 to `characters` characters of the class. *one: true if the number of characters alone
 * determines the state, whatever the characters are. If it is false, the states are incomplete. */
fr_status fr_text_path(fr_text_runs *runs, fr_automaton *automaton, uint32_t state, int class, size_t characters,
                       uint32_t *states, bool *one);

void fr_text_runs_forget(fr_text_runs *runs);
void fr_text_runs_free(fr_text_runs *runs);

#endif
