/* Finds how many characters of a class may follow a state (text_runs.h). */
#include "src/language/grammar/text_runs.h"

#include <stdlib.h>
#include <string.h>

#define STATES_MAX 128 /* limit on the different states through which a run goes */

/* Characters whose encodings have the same length, given by a range for each byte. */
typedef struct bytes {
    uint8_t count;
    struct {
        uint8_t low, high;
    } of[4];
} bytes;

static const bytes SEQUENCES[FR_SLICE_CLASSES][16] = {
    {{1, {{'a', 'z'}}}},
    {{1, {{'-', '-'}}}, {1, {{'0', '9'}}}, {1, {{'A', 'Z'}}}, {1, {{'_', '_'}}}},
    {{1, {{' ', '!'}}},
     {1, {{'#', ','}}},
     {1, {{'.', '/'}}},
     {1, {{':', '@'}}},
     {1, {{'[', '['}}},
     {1, {{']', '^'}}},
     {1, {{'`', '`'}}},
     {1, {{'{', '~'}}},
     {2, {{0xC2, 0xDF}, {0x80, 0xBF}}},
     {3, {{0xE0, 0xE0}, {0xA0, 0xBF}, {0x80, 0xBF}}},
     {3, {{0xE1, 0xEC}, {0x80, 0xBF}, {0x80, 0xBF}}},
     {3, {{0xED, 0xED}, {0x80, 0x9F}, {0x80, 0xBF}}},
     {3, {{0xEE, 0xEF}, {0x80, 0xBF}, {0x80, 0xBF}}},
     {4, {{0xF0, 0xF0}, {0x90, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}}},
     {4, {{0xF1, 0xF3}, {0x80, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}}},
     {4, {{0xF4, 0xF4}, {0x80, 0x8F}, {0x80, 0xBF}, {0x80, 0xBF}}}},
};

/* Adds the states after the bytes of a sequence, beginning with byte number `at`. Sets *all to false if some of the
 * bytes can't come, if the text may end after the last byte, or if there are too many states. */
static fr_status follow(fr_automaton *a, uint32_t state, const bytes *sequence, size_t at, fr_text_step *step,
                        bool *all) {
    if (at == sequence->count) {
        uint8_t i = 0;
        while (i < step->count && step->ways[i] != state) i++;
        if (i == FR_RUN_WAYS || fr_automaton_ends(a, state)) *all = false;
        if (i == step->count && *all) step->ways[step->count++] = state;
        return FR_OK;
    }
    for (unsigned low = sequence->of[at].low; low <= sequence->of[at].high && *all;) {
        uint8_t until = fr_automaton_same_until(a, state, (uint8_t)low, sequence->of[at].high);
        uint32_t next;
        FR_TRY(fr_automaton_step(a, state, (uint8_t)low, &next));
        if (next == FR_STATE_DEAD) *all = false;
        if (*all) FR_TRY(follow(a, next, sequence, at + 1, step, all));
        low = until + 1u;
    }
    return FR_OK;
}

static fr_status look(fr_automaton *a, uint32_t state, int class, fr_text_step *step) {
    bool all = true;
    *step = (fr_text_step){0};
    for (int c = 0; c <= class && all; c++)
        for (size_t i = 0; i < 16 && SEQUENCES[c][i].count && all; i++)
            FR_TRY(follow(a, state, &SEQUENCES[c][i], 0, step, &all));
    if (!all) step->count = 0;
    return FR_OK;
}

/* Finds the states after one more character, and keeps them together with the cost of finding them. The cost is counted
 * at each use, so that the count does not depend on earlier uses. */
static fr_status look_and_keep(fr_automaton *a, uint32_t state, int class, fr_text_step *kept) {
    uint32_t round = fr_automaton_set_round(a, FR_NO_ROUND);
    size_t before = fr_automaton_spent(a);
    fr_status status = look(a, state, class, kept);
    fr_automaton_set_round(a, round);
    kept->cost = (uint32_t)(fr_automaton_spent(a) - before);
    kept->looked_at = status == FR_OK; /* after a failure, the next use tries again */
    return status;
}

static fr_status widen(fr_text_runs *runs, size_t states) {
    if (states <= runs->capacity) return FR_OK;
    size_t wanted = 2 * states;
    fr_text_step *steps = realloc(runs->steps, wanted * FR_SLICE_CLASSES * sizeof *steps);
    if (!steps) return fr_fail_memory("a grammar's masks", wanted * FR_SLICE_CLASSES * sizeof *steps);
    memset(steps + runs->capacity * FR_SLICE_CLASSES, 0, (wanted - runs->capacity) * FR_SLICE_CLASSES * sizeof *steps);
    runs->steps = steps;
    runs->capacity = wanted;
    return FR_OK;
}

static fr_status step_of(fr_text_runs *runs, fr_automaton *a, uint32_t state, int class, fr_text_step *step) {
    FR_TRY(widen(runs, fr_automaton_states(a)));
    fr_text_step *kept = &runs->steps[(size_t)state * FR_SLICE_CLASSES + (size_t) class];
    FR_TRY(kept->looked_at ? fr_automaton_spend(a, kept->cost) : look_and_keep(a, state, class, kept));
    *step = *kept;
    return FR_OK;
}

/* States in the order in which they are reached. The states [first, count) are those that the last character
 * reached. */
typedef struct path {
    uint32_t states[STATES_MAX];
    size_t first, count;
} path;

static bool add_way(path *p, uint32_t state) {
    for (size_t i = 0; i < p->count; i++)
        if (p->states[i] == state) return true;
    if (p->count == STATES_MAX) return false;
    p->states[p->count++] = state;
    return true;
}

fr_status fr_text_run(fr_text_runs *runs, fr_automaton *a, uint32_t state, int class, size_t *characters) {
    path p = {.states = {state}, .count = 1};
    for (*characters = 0; *characters < FR_RUN_MAX; ++*characters) {
        size_t end = p.count;
        for (size_t i = p.first; i < end; i++) {
            fr_text_step step;
            FR_TRY(step_of(runs, a, p.states[i], class, &step));
            if (step.count == 0) return FR_OK;
            for (uint8_t way = 0; way < step.count; way++)
                if (!add_way(&p, step.ways[way])) return FR_OK;
        }
        p.first = end;
        if (p.first == p.count) *characters = FR_SLICE_UNBOUND; /* the last character reached no new state */
        if (p.first == p.count) return FR_OK;
    }
    return FR_OK;
}

fr_status fr_text_path(fr_text_runs *runs, fr_automaton *a, uint32_t state, int class, size_t characters,
                       uint32_t *states, bool *one) {
    states[0] = state;
    *one = true;
    for (size_t i = 0; i < characters && *one; i++) {
        fr_text_step step;
        FR_TRY(step_of(runs, a, states[i], class, &step));
        *one = step.count == 1;
        states[i + 1] = step.ways[0];
    }
    return FR_OK;
}

void fr_text_runs_forget(fr_text_runs *runs) {
    if (runs->steps) memset(runs->steps, 0, runs->capacity * FR_SLICE_CLASSES * sizeof *runs->steps);
}

void fr_text_runs_free(fr_text_runs *runs) {
    free(runs->steps);
}
