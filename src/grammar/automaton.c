/* Rules run byte by byte: see automaton.h. The rules become nodes (automaton_nodes.c); here are the states. */
#include "src/grammar/automaton.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "src/grammar/automaton_nodes.h"

#define MAX_STATES  (1u << 16)
#define MAX_FRAMES  (1u << 20)
#define MAX_PLACES  (1u << 22) /* of all states */
#define MAX_AT_ONCE 4096       /* places of one state */
#define UNKNOWN     UINT32_MAX

/* A place to return to, and where that returns; number 0 is the end of the text. */
typedef struct frame {
    uint32_t node, caller;
} frame;

/* A node that reads a byte, and the frame that its rule returns to. */
typedef struct place {
    uint32_t frame, node;
} place;

typedef struct state {
    uint32_t first, count; /* of its places, sorted */
    bool ends;
} state;

struct fr_automaton {
    fr_grammar_nodes nodes;
    frame *frames;
    state *states;
    place *places;
    uint32_t *steps; /* [states, 256]; UNKNOWN: not taken yet */
    size_t frame_count, frame_capacity, state_count, state_capacity, place_count, place_capacity;
    uint32_t *frame_table, *state_table; /* numbers + 1 by hash; 0: empty */
    size_t frame_slots, state_slots;
    place *found, *waiting; /* [MAX_AT_ONCE] of the state that is being made; nodes still to be looked at */
    size_t found_count, waiting_count;
    bool found_end;
    uint32_t *seen; /* table of places that were looked at: 1 + index into `looked`, */
    place *looked;  /* [MAX_AT_ONCE * 4] */
    size_t looked_count;
};

#define LOOKED_MAX (4 * MAX_AT_ONCE)
#define SEEN_SLOTS (2 * LOOKED_MAX)

/* ----------------------------------------------------------------------------------------------------------- memory */

static fr_status fail_size(void) {
    return fr_fail(FR_INPUT, "the grammar is too ambiguous or too large to be followed");
}

static fr_status make_room(void *items, size_t size, size_t count, size_t more, size_t limit, size_t *capacity) {
    void **at = items;
    if (more > limit - count) return fail_size();
    if (count + more <= *capacity) return FR_OK;
    size_t wanted = 2 * (count + more);
    void *grown = realloc(*at, wanted * size);
    if (!grown) return fr_fail_memory("a grammar's states", wanted * size);
    *at = grown;
    *capacity = wanted;
    return FR_OK;
}

/* A table of numbers by hash that stays at most half full: room for one more, `hash` gives that of a number. */
static fr_status widen(uint32_t **table, size_t *slots, size_t count, uint64_t (*hash)(const fr_automaton *, uint32_t),
                       const fr_automaton *a) {
    if (2 * (count + 1) <= *slots) return FR_OK;
    size_t wanted = fr_hash_table_size(2 * (count + 1));
    uint32_t *wider = calloc(wanted, sizeof *wider);
    if (!wider) return fr_fail_memory("a grammar's states", wanted * sizeof *wider);
    for (size_t i = 0; i < *slots; i++) {
        if (!(*table)[i]) continue;
        size_t at = hash(a, (*table)[i] - 1) & (wanted - 1);
        while (wider[at]) at = (at + 1) & (wanted - 1);
        wider[at] = (*table)[i];
    }
    free(*table);
    *table = wider;
    *slots = wanted;
    return FR_OK;
}

/* ----------------------------------------------------------------------------------------------------------- frames */

static uint64_t hash_pair(uint32_t a, uint32_t b) {
    uint64_t both[1] = {(uint64_t)a << 32 | b};
    return fr_hash(0, both, sizeof both);
}

static uint64_t hash_frame(const fr_automaton *a, uint32_t number) {
    return hash_pair(a->frames[number].node, a->frames[number].caller);
}

static fr_status find_frame(fr_automaton *a, uint32_t node, uint32_t caller, uint32_t *number) {
    FR_TRY(widen(&a->frame_table, &a->frame_slots, a->frame_count, hash_frame, a));
    size_t at = hash_pair(node, caller) & (a->frame_slots - 1);
    for (; a->frame_table[at]; at = (at + 1) & (a->frame_slots - 1)) {
        const frame *f = &a->frames[ *number = a->frame_table[at] - 1];
        if (f->node == node && f->caller == caller) return FR_OK;
    }
    FR_TRY(make_room(&a->frames, sizeof *a->frames, a->frame_count, 1, MAX_FRAMES, &a->frame_capacity));
    *number = (uint32_t)a->frame_count;
    a->frames[a->frame_count++] = (frame){node, caller};
    a->frame_table[at] = *number + 1;
    return FR_OK;
}

/* ----------------------------------------------------------------------------------------------------------- states */

static uint64_t hash_places(const place *places, size_t count, bool ends) {
    return fr_hash(ends, places, count * sizeof *places);
}

static uint64_t hash_state(const fr_automaton *a, uint32_t number) {
    const state *s = &a->states[number];
    return hash_places(a->places + s->first, s->count, s->ends);
}

static int by_frame(const void *one, const void *other) {
    const place *a = one, *b = other;
    if (a->frame != b->frame) return a->frame < b->frame ? -1 : 1;
    return (a->node > b->node) - (a->node < b->node);
}

static fr_status add_state(fr_automaton *a, uint32_t *number) {
    size_t count = a->found_count;
    FR_TRY(make_room(&a->places, sizeof *a->places, a->place_count, count + 1, MAX_PLACES, &a->place_capacity));
    size_t steps = a->state_capacity;
    FR_TRY(make_room(&a->states, sizeof *a->states, a->state_count, 1, MAX_STATES, &a->state_capacity));
    if (steps != a->state_capacity) {
        uint32_t *wider = realloc(a->steps, a->state_capacity * 256 * sizeof *wider);
        if (!wider) a->state_capacity = steps;
        if (!wider) return fr_fail_memory("a grammar's states", 2 * steps * 256 * sizeof *wider);
        a->steps = wider;
    }
    memcpy(a->places + a->place_count, a->found, count * sizeof *a->found);
    *number = (uint32_t)a->state_count++;
    a->states[*number] = (state){(uint32_t)a->place_count, (uint32_t)count, a->found_end};
    memset(a->steps + (size_t)*number * 256, 0xFF, 256 * sizeof *a->steps);
    a->place_count += count;
    return FR_OK;
}

/* The number of the state of the places that were found. */
static fr_status find_state(fr_automaton *a, uint32_t *number) {
    qsort(a->found, a->found_count, sizeof *a->found, by_frame);
    FR_TRY(widen(&a->state_table, &a->state_slots, a->state_count, hash_state, a));
    size_t at = hash_places(a->found, a->found_count, a->found_end) & (a->state_slots - 1);
    for (; a->state_table[at]; at = (at + 1) & (a->state_slots - 1)) {
        const state *s = &a->states[ *number = a->state_table[at] - 1];
        if (s->ends == a->found_end && s->count == a->found_count &&
            memcmp(a->places + s->first, a->found, s->count * sizeof(place)) == 0)
            return FR_OK;
    }
    FR_TRY(add_state(a, number));
    a->state_table[at] = *number + 1;
    return FR_OK;
}

/* ------------------------------------------------------------------------------------ what is reached without bytes */

static void find_nothing(fr_automaton *a) {
    for (size_t i = 0; i < a->looked_count; i++) {
        size_t at = hash_pair(a->looked[i].frame, a->looked[i].node) & (SEEN_SLOTS - 1);
        while (a->seen[at]) a->seen[at] = 0, at = (at + 1) & (SEEN_SLOTS - 1);
    }
    a->looked_count = a->found_count = a->waiting_count = 0;
    a->found_end = false;
}

/* A place that has not been looked at yet waits. */
static fr_status reach(fr_automaton *a, uint32_t node, uint32_t frame_number) {
    if (!a->nodes.items[node].live) return FR_OK;
    size_t at = hash_pair(frame_number, node) & (SEEN_SLOTS - 1);
    for (; a->seen[at]; at = (at + 1) & (SEEN_SLOTS - 1)) {
        const place *p = &a->looked[a->seen[at] - 1];
        if (p->frame == frame_number && p->node == node) return FR_OK;
    }
    if (a->looked_count == LOOKED_MAX) return fail_size();
    a->looked[a->looked_count] = a->waiting[a->waiting_count++] = (place){frame_number, node};
    a->seen[at] = (uint32_t)++a->looked_count;
    return FR_OK;
}

/* A call whose rule's end is this rule's end too returns where this one does. */
static fr_status call(fr_automaton *a, const fr_grammar_node *node, uint32_t frame_number) {
    if (a->nodes.items[node->next].kind != FR_NODE_END) FR_TRY(find_frame(a, node->next, frame_number, &frame_number));
    return reach(a, a->nodes.entries[node->other], frame_number);
}

static fr_status look_at(fr_automaton *a, place p) {
    const fr_grammar_node *node = &a->nodes.items[p.node];
    switch (node->kind) {
    case FR_NODE_BYTE:
        if (a->found_count == MAX_AT_ONCE) return fail_size();
        a->found[a->found_count++] = p;
        return FR_OK;
    case FR_NODE_SPLIT: FR_TRY(reach(a, node->next, p.frame)); return reach(a, node->other, p.frame);
    case FR_NODE_CALL: return call(a, node, p.frame);
    default:
        if (p.frame) return reach(a, a->frames[p.frame].node, a->frames[p.frame].caller);
        a->found_end = true;
        return FR_OK;
    }
}

static fr_status settle(fr_automaton *a, uint32_t *number) {
    while (a->waiting_count) FR_TRY(look_at(a, a->waiting[--a->waiting_count]));
    return find_state(a, number);
}

/* ----------------------------------------------------------------------------------------------------- from outside */

/* The dead state and the frame of the end come first. */
static fr_status open_states(fr_automaton *a) {
    uint32_t number;
    FR_TRY(make_room(&a->frames, sizeof *a->frames, 0, 1, MAX_FRAMES, &a->frame_capacity));
    a->frames[0] = (frame){0};
    a->frame_count = 1;
    find_nothing(a);
    return find_state(a, &number);
}

static fr_status open_work(fr_automaton *a) {
    a->found = malloc(MAX_AT_ONCE * sizeof *a->found);
    a->waiting = malloc(LOOKED_MAX * sizeof *a->waiting);
    a->looked = malloc(LOOKED_MAX * sizeof *a->looked);
    a->seen = calloc(SEEN_SLOTS, sizeof *a->seen);
    if (!a->found || !a->waiting || !a->looked || !a->seen)
        return fr_fail_memory("a grammar's states", SEEN_SLOTS * 4 + LOOKED_MAX * 20);
    return open_states(a);
}

fr_status fr_automaton_open(const fr_grammar_rules *rules, fr_automaton **automaton) {
    fr_automaton *a = *automaton = calloc(1, sizeof *a);
    if (!a) return fr_fail_memory("a grammar", sizeof *a);
    fr_status status = fr_grammar_nodes_make(&a->nodes, rules);
    if (status == FR_OK) status = open_work(a);
    if (status == FR_OK) return FR_OK;
    fr_automaton_close(a);
    *automaton = NULL;
    return status;
}

void fr_automaton_close(fr_automaton *a) {
    if (!a) return;
    fr_grammar_nodes_free(&a->nodes);
    free(a->frames);
    free(a->states);
    free(a->places);
    free(a->steps);
    free(a->frame_table);
    free(a->state_table);
    free(a->found);
    free(a->waiting);
    free(a->looked);
    free(a->seen);
    free(a);
}

fr_status fr_automaton_begin(fr_automaton *a, uint32_t *number) {
    if (a->state_count == 0) FR_TRY(open_states(a));
    find_nothing(a);
    FR_TRY(reach(a, a->nodes.entries[a->nodes.root], 0));
    return settle(a, number);
}

fr_status fr_automaton_step(fr_automaton *a, uint32_t number, uint8_t byte, uint32_t *next) {
    *next = a->steps[(size_t)number * 256 + byte];
    if (*next != UNKNOWN) return FR_OK;
    const state s = a->states[number];
    find_nothing(a);
    for (size_t i = s.first; i < s.first + s.count; i++) {
        const fr_grammar_node *node = &a->nodes.items[a->places[i].node];
        if (node->low <= byte && byte <= node->high) FR_TRY(reach(a, node->next, a->places[i].frame));
    }
    FR_TRY(settle(a, next));
    a->steps[(size_t)number * 256 + byte] = *next;
    return FR_OK;
}

uint8_t fr_automaton_same_until(const fr_automaton *a, uint32_t number, uint8_t low, uint8_t high) {
    const state s = a->states[number];
    for (size_t i = s.first; i < s.first + s.count; i++) {
        const fr_grammar_node *node = &a->nodes.items[a->places[i].node];
        if (node->low > low && node->low <= high) high = (uint8_t)(node->low - 1);
        if (node->low <= low && node->high >= low && node->high < high) high = node->high;
    }
    return high;
}

bool fr_automaton_ends(const fr_automaton *a, uint32_t number) {
    return a->states[number].ends;
}

bool fr_automaton_goes_on(const fr_automaton *a, uint32_t number) {
    return a->states[number].count > 0;
}

int fr_automaton_only_byte(const fr_automaton *a, uint32_t number) {
    const state *s = &a->states[number];
    int only = -1;
    if (s->ends) return -1;
    for (size_t i = s->first; i < s->first + s->count; i++) {
        const fr_grammar_node *node = &a->nodes.items[a->places[i].node];
        if (node->low != node->high || (only >= 0 && only != node->low)) return -1;
        only = node->low;
    }
    return only;
}

/* Where the places of part `index` begin and end. */
static void find_part(const fr_automaton *a, const state *s, size_t index, size_t *first, size_t *end) {
    size_t last = s->first + s->count;
    for (*end = s->first;; index--) {
        for (*first = *end; *end < last && a->places[*end].frame == a->places[*first].frame;) ++*end;
        if (index == 0 || *first == last) return;
    }
}

fr_status fr_automaton_part(fr_automaton *a, uint32_t number, size_t index, uint32_t *local, uint32_t *after) {
    const state s = a->states[number];
    size_t first, end;
    *local = *after = FR_STATE_DEAD;
    find_part(a, &s, index, &first, &end);
    if (first == end) return FR_OK;
    const frame back = a->frames[a->places[first].frame];
    bool inner = a->places[first].frame != 0;
    find_nothing(a);
    for (size_t i = first; i < end; i++) a->found[a->found_count++] = (place){0, a->places[i].node};
    FR_TRY(find_state(a, local));
    if (!inner) return FR_OK;
    find_nothing(a);
    FR_TRY(reach(a, back.node, back.caller));
    return settle(a, after);
}

size_t fr_automaton_states(const fr_automaton *a) {
    return a->state_count;
}

void fr_automaton_sweep(fr_automaton *a) {
    memset(a->frame_table, 0, a->frame_slots * sizeof *a->frame_table);
    memset(a->state_table, 0, a->state_slots * sizeof *a->state_table);
    a->frame_count = a->state_count = a->place_count = 0;
}
