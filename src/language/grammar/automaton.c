/* Runs rules byte by byte (automaton.h). automaton_nodes.c makes nodes from the rules; this file makes states from the
 * nodes. */
#include "src/language/grammar/automaton.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "src/language/grammar/automaton_nodes.h"

#define STATES_MAX  (1u << 16)
#define FRAMES_MAX  (1u << 21)
#define PLACES_MAX  (1u << 22) /* limit on the places of all states together */
#define AT_ONCE_MAX 4096       /* limit on the places of one state; each place is another way to read the text */
#define UNKNOWN     UINT32_MAX
#define LAST_ROUND  0xFFFEu /* the largest number of a round */

/* Costs of work, in units of about 10 ns on a slow core. FR_AUTOMATON_MAX units are the most work of one mask or step.
 * So much work fills at most half of the table of states, half of the table of places, and three quarters of the table
 * of frames. */
enum { STATE_COST = 256, LOOK_COST = 6, PLACES_A_UNIT = 8 };

/* Counts the repetitions within a rule. limit: 1 + the index in nodes.limits of the bounds on `count`; 0: the rule
 * counts nothing. */
typedef struct counter {
    uint32_t limit, count;
} counter;

/* A stack frame. It says how a called rule returns: to the node at which the caller continues, with the caller's own
 * frame and the caller's counter. Frame 0 is the end of the text. plain: the number of the frame that is equal to this
 * one except that its counters are plain (see plain_of). */
typedef struct frame {
    uint32_t node, caller;
    counter counter;
    uint32_t plain;
} frame;

/* A place in the rules: a node that reads a byte, the frame to which its rule returns, and the rule's counter. */
typedef struct place {
    uint32_t frame, node;
    counter counter;
} place;

typedef struct state {
    uint32_t first, count; /* the state's places, which are sorted */
    bool ends;             /* the text may end in this state */
    uint16_t round;        /* the round (automaton.h) in which the state's cost was last counted */
} state;

struct fr_automaton {
    fr_grammar_nodes nodes;
    frame *frames;
    state *states;
    place *places;
    /* [states, 256] the next state in the low 16 bits. The bits above are the round in which the step's cost was last
     * counted. UNKNOWN: the step was not taken yet. */
    uint32_t *steps;
    uint8_t *costs;  /* [states, 256] the cost of each step, stored as its logarithm to base 2 */
    uint32_t *plain; /* [states] the plain state of each state (fr_automaton_plain); UNKNOWN: it was not searched yet */
    /* round: the present round, or FR_NO_ROUND; last_round: the number of the round that was begun last */
    uint32_t round, last_round;
    size_t spent, most; /* units of work so far, and their limit */
    size_t frame_count, frame_capacity, state_count, state_capacity, place_count, place_capacity;
    uint32_t *frame_table, *state_table; /* hash tables: 1 + the number of a frame or state; 0: the slot is empty */
    size_t frame_slots, state_slots;
    /* found: [AT_ONCE_MAX] the places of the state that is being made. waiting: the places whose nodes must still be
     * visited. */
    place *found, *waiting;
    size_t found_count, waiting_count;
    bool found_end;               /* the text may end in the state that is being made */
    uint32_t *seen;               /* hash table of the places that were already visited: 1 + index into `looked` */
    place *looked;                /* [AT_ONCE_MAX * 4] the places that were already visited */
    size_t looked_count, doubled; /* doubled: number of frames found for this state that differ from their plain
                                   * frames */
};

#define LOOKED_MAX (4 * AT_ONCE_MAX)
#define SEEN_SLOTS (2 * LOOKED_MAX)

/* ----------------------------------------------------------------------------------------------------------- memory */

static fr_status fail_size(void) {
    return fr_fail(FR_INPUT, "the grammar is too large or too ambiguous: a text can be read in too many ways");
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

/* Makes room for one more number in a hash table of numbers, and keeps the table at most half full. hash: a function
 * that gives the hash of a number. */
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

/* --------------------------------------------------------------------------------------------------------- counters */

static const counter NOTHING = {0, 0};

static const fr_count_limit *limit_of(const fr_automaton *a, counter c) {
    return &a->nodes.limits[c.limit - 1];
}

/* Counts one more repetition. Compares the count, plus the repetitions that must still follow, with the bounds. Returns
 * false if this sum exceeds the largest count. If step->exactly is set, no other repetitions may follow, so a sum below
 * the least count also returns false. If there is no largest count, the counter stops at the least count, which keeps
 * the number of states small. */
static bool count_one(const fr_automaton *a, const fr_count_step *step, counter *c) {
    const fr_count_limit *limit = &a->nodes.limits[step->limit];
    uint64_t count = c->count + UINT64_C(1), ends = count + step->behind;
    if (limit->most != FR_GRAMMAR_UNBOUND && ends > limit->most) return false;
    if (step->exactly && ends < limit->least) return false;
    if (limit->most == FR_GRAMMAR_UNBOUND && count > limit->least) count = limit->least;
    *c = (counter){step->limit + 1, (uint32_t)count};
    return true;
}

/* Replaces a count that no single token can bring to its next bound. If the count is below the least count, it becomes
 * 1; otherwise it becomes the least count. The old and the new count allow the same tokens. */
static counter plain_of(const fr_automaton *a, counter c) {
    if (!c.limit) return c;
    const fr_count_limit *limit = limit_of(a, c);
    if (c.count < limit->least) return limit->least - c.count > limit->margin ? (counter){c.limit, 1} : c;
    bool far = limit->most != FR_GRAMMAR_UNBOUND && limit->most - c.count > limit->margin;
    return far ? (counter){c.limit, limit->least} : c;
}

static bool same_counter(counter one, counter other) {
    return one.limit == other.limit && one.count == other.count;
}

/* ----------------------------------------------------------------------------------------------------------- frames */

static uint64_t hash_place(uint32_t frame_number, uint32_t node, counter c) {
    const uint32_t all[] = {frame_number, node, c.limit, c.count};
    return fr_hash(0, all, sizeof all);
}

static uint64_t hash_frame(const fr_automaton *a, uint32_t number) {
    const frame *f = &a->frames[number];
    return hash_place(f->caller, f->node, f->counter);
}

static fr_status find_frame(fr_automaton *a, uint32_t node, uint32_t caller, counter c, uint32_t *number) {
    FR_TRY(widen(&a->frame_table, &a->frame_slots, a->frame_count, hash_frame, a));
    size_t at = hash_place(caller, node, c) & (a->frame_slots - 1);
    for (; a->frame_table[at]; at = (at + 1) & (a->frame_slots - 1)) {
        const frame *f = &a->frames[ *number = a->frame_table[at] - 1];
        if (f->node == node && f->caller == caller && same_counter(f->counter, c)) return FR_OK;
    }
    FR_TRY(make_room(&a->frames, sizeof *a->frames, a->frame_count, 1, FRAMES_MAX, &a->frame_capacity));
    *number = (uint32_t)a->frame_count;
    a->frames[a->frame_count++] = (frame){node, caller, c, *number};
    a->frame_table[at] = *number + 1;
    uint32_t outer = a->frames[caller].plain, plain = *number;
    counter less = plain_of(a, c);
    if (outer != caller || !same_counter(less, c)) FR_TRY(find_frame(a, node, outer, less, &plain));
    a->frames[*number].plain = plain;
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
    if (a->node != b->node) return a->node < b->node ? -1 : 1;
    if (a->counter.limit != b->counter.limit) return a->counter.limit < b->counter.limit ? -1 : 1;
    return (a->counter.count > b->counter.count) - (a->counter.count < b->counter.count);
}

/* Returns true if `one` allows every text that `other` allows. Places are sorted and `one` comes first, so its count is
 * not above the count of `other`. If both counts have reached the least count, the lower count allows more texts. */
static bool covers(const fr_automaton *a, const place *one, const place *other) {
    if (one->frame != other->frame || one->node != other->node || one->counter.limit != other->counter.limit)
        return false;
    return !one->counter.limit || same_counter(one->counter, other->counter) ||
           one->counter.count >= limit_of(a, one->counter)->least;
}

/* Sorts the places that were found, and drops each place for which another place allows the same texts and more
 * (covers). */
static void sort_found(fr_automaton *a) {
    size_t kept = 0;
    qsort(a->found, a->found_count, sizeof *a->found, by_frame);
    for (size_t i = 0; i < a->found_count; i++)
        if (!kept || !covers(a, &a->found[kept - 1], &a->found[i])) a->found[kept++] = a->found[i];
    a->found_count = kept;
}

static fr_status widen_steps(fr_automaton *a) {
    size_t steps = a->state_capacity * 256;
    uint32_t *wider = realloc(a->steps, steps * sizeof *wider);
    if (wider) a->steps = wider;
    uint8_t *costs = realloc(a->costs, steps);
    if (costs) a->costs = costs;
    uint32_t *plain = realloc(a->plain, a->state_capacity * sizeof *plain);
    if (plain) a->plain = plain;
    bool there = wider && costs && plain;
    return there ? FR_OK : fr_fail_memory("a grammar's states", steps * (sizeof *wider + sizeof *costs));
}

static fr_status add_state(fr_automaton *a, uint32_t *number) {
    size_t count = a->found_count;
    FR_TRY(make_room(&a->places, sizeof *a->places, a->place_count, count + 1, PLACES_MAX, &a->place_capacity));
    size_t steps = a->state_capacity;
    FR_TRY(make_room(&a->states, sizeof *a->states, a->state_count, 1, STATES_MAX, &a->state_capacity));
    if (steps != a->state_capacity && widen_steps(a) != FR_OK) {
        a->state_capacity = steps;
        return FR_MEMORY;
    }
    memcpy(a->places + a->place_count, a->found, count * sizeof *a->found);
    *number = (uint32_t)a->state_count++;
    a->states[*number] = (state){.first = (uint32_t)a->place_count, .count = (uint32_t)count, .ends = a->found_end};
    memset(a->steps + (size_t)*number * 256, 0xFF, 256 * sizeof *a->steps);
    a->plain[*number] = UNKNOWN;
    a->place_count += count;
    return FR_OK;
}

/* Gives the number of the state that consists of the places that were found. Adds the state if it is new. */
static fr_status find_state(fr_automaton *a, uint32_t *number) {
    sort_found(a);
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

/* --------------------------------------------------------------------------- places that are reached without a byte */

static void find_nothing(fr_automaton *a) {
    for (size_t i = 0; i < a->looked_count; i++) {
        size_t at = hash_place(a->looked[i].frame, a->looked[i].node, a->looked[i].counter) & (SEEN_SLOTS - 1);
        while (a->seen[at]) a->seen[at] = 0, at = (at + 1) & (SEEN_SLOTS - 1);
    }
    a->looked_count = a->found_count = a->waiting_count = a->doubled = 0;
    a->found_end = false;
}

/* Adds a place to those that must be visited. A place that was added before is not added again. */
static fr_status reach(fr_automaton *a, uint32_t node, uint32_t frame_number, counter c) {
    if (!a->nodes.items[node].live) return FR_OK;
    size_t at = hash_place(frame_number, node, c) & (SEEN_SLOTS - 1);
    for (; a->seen[at]; at = (at + 1) & (SEEN_SLOTS - 1)) {
        const place *p = &a->looked[a->seen[at] - 1];
        if (p->frame == frame_number && p->node == node && same_counter(p->counter, c)) return FR_OK;
    }
    if (a->looked_count == LOOKED_MAX) return fail_size();
    a->looked[a->looked_count] = a->waiting[a->waiting_count++] = (place){frame_number, node, c};
    a->seen[at] = (uint32_t)++a->looked_count;
    return FR_OK;
}

/* Calls a rule. If the call is the last node of the calling rule, the called rule returns directly to the caller's
 * frame and keeps the caller's counter. Any other call gets a new frame and a new counter. */
static fr_status call(fr_automaton *a, const fr_grammar_node *node, place p) {
    const uint32_t entry = a->nodes.entries[node->other];
    if (a->nodes.items[node->next].kind == FR_NODE_END) return reach(a, entry, p.frame, p.counter);
    FR_TRY(find_frame(a, node->next, p.frame, p.counter, &p.frame));
    a->doubled += a->frames[p.frame].plain != p.frame;
    return reach(a, entry, p.frame, NOTHING);
}

static bool is_enough(const fr_automaton *a, const fr_grammar_node *node, counter c) {
    const fr_count_limit *limit = &a->nodes.limits[node->other];
    return c.count >= limit->least && c.count <= limit->most;
}

static fr_status look_at(fr_automaton *a, place p) {
    const fr_grammar_node *node = &a->nodes.items[p.node];
    const frame *back = &a->frames[p.frame];
    switch (node->kind) {
    case FR_NODE_BYTE:
        if (a->found_count == AT_ONCE_MAX) return fail_size();
        a->found[a->found_count++] = p;
        return FR_OK;
    case FR_NODE_SPLIT:
        FR_TRY(reach(a, node->next, p.frame, p.counter));
        return reach(a, node->other, p.frame, p.counter);
    case FR_NODE_CALL: return call(a, node, p);
    case FR_NODE_COUNT:
        return count_one(a, &a->nodes.counts[node->other], &p.counter) ? reach(a, node->next, p.frame, p.counter)
                                                                       : FR_OK;
    case FR_NODE_COUNTED: return is_enough(a, node, p.counter) ? reach(a, node->next, p.frame, NOTHING) : FR_OK;
    default:
        if (p.frame) return reach(a, back->node, back->caller, back->counter);
        a->found_end = true;
        return FR_OK;
    }
}

static fr_status settle(fr_automaton *a, uint32_t *number) {
    while (a->waiting_count) FR_TRY(look_at(a, a->waiting[--a->waiting_count]));
    return find_state(a, number);
}

/* --------------------------------------------------------------------------------------------- opening and stepping */

/* Makes the dead state, which is state 0, and the frame of the text's end, which is frame 0. */
static fr_status open_states(fr_automaton *a) {
    uint32_t number;
    FR_TRY(make_room(&a->frames, sizeof *a->frames, 0, 1, FRAMES_MAX, &a->frame_capacity));
    a->frames[0] = (frame){0};
    a->frame_count = 1;
    find_nothing(a);
    return find_state(a, &number);
}

static fr_status open_work(fr_automaton *a) {
    a->found = malloc(AT_ONCE_MAX * sizeof *a->found);
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
    fr_automaton_limit(a, SIZE_MAX);
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
    free(a->costs);
    free(a->plain);
    free(a->frame_table);
    free(a->state_table);
    free(a->found);
    free(a->waiting);
    free(a->looked);
    free(a->seen);
    free(a);
}

fr_status fr_automaton_begin(fr_automaton *a, uint32_t *number) {
    find_nothing(a);
    FR_TRY(reach(a, a->nodes.entries[a->nodes.root], 0, NOTHING));
    return settle(a, number);
}

/* Takes a step for the first time, and stores its result and its cost. */
static fr_status find_step(fr_automaton *a, uint32_t number, uint8_t byte) {
    const state s = a->states[number];
    uint32_t next;
    find_nothing(a);
    for (size_t i = s.first; i < s.first + s.count; i++) {
        const place p = a->places[i];
        const fr_grammar_node *node = &a->nodes.items[p.node];
        if (node->low <= byte && byte <= node->high) FR_TRY(reach(a, node->next, p.frame, p.counter));
    }
    FR_TRY(settle(a, &next));
    uint8_t cost = 0;
    while ((size_t)1 << cost < s.count / PLACES_A_UNIT + LOOK_COST * (a->looked_count + a->doubled)) cost++;
    a->costs[(size_t)number * 256 + byte] = cost;
    a->steps[(size_t)number * 256 + byte] = next;
    return FR_OK;
}

/* Takes a step whose cost was not yet counted in this round. Counts the cost, and marks it as counted. */
static fr_status pay_step(fr_automaton *a, uint32_t number, uint8_t byte, uint32_t *next) {
    size_t at = (size_t)number * 256 + byte;
    if (a->steps[at] == UNKNOWN) FR_TRY(find_step(a, number, byte));
    *next = a->steps[at] & 0xFFFF;
    state *s = &a->states[*next];
    size_t cost = (size_t)1 << a->costs[at];
    if (*next != FR_STATE_DEAD && s->round != a->round) cost += STATE_COST + s->count;
    if (a->round != FR_NO_ROUND) {
        s->round = (uint16_t)a->round;
        a->steps[at] = *next | a->round << 16;
    }
    return fr_automaton_spend(a, cost);
}

fr_status fr_automaton_step(fr_automaton *a, uint32_t number, uint8_t byte, uint32_t *next) {
    uint32_t known = a->steps[(size_t)number * 256 + byte];
    *next = known & 0xFFFF;
    return known >> 16 == a->round ? FR_OK : pay_step(a, number, byte, next);
}

/* ---------------------------------------------------------------------------------------------------- costs of work */

void fr_automaton_limit(fr_automaton *a, size_t most) {
    a->spent = 0;
    a->most = most;
    a->round = FR_NO_ROUND;
}

size_t fr_automaton_spent(const fr_automaton *a) {
    return a->spent;
}

fr_status fr_automaton_spend(fr_automaton *a, size_t units) {
    a->spent += units;
    return a->spent <= a->most ? FR_OK : fail_size();
}

/* Begins a round. A round's number has 16 bits. When all numbers are used, they are cleared from steps and states, and
 * begin at 1 again. */
void fr_automaton_begin_round(fr_automaton *a) {
    if (a->last_round == LAST_ROUND) {
        a->last_round = 0;
        for (size_t i = 0; i < 256 * a->state_count; i++)
            if (a->steps[i] != UNKNOWN) a->steps[i] &= 0xFFFF;
        for (size_t i = 0; i < a->state_count; i++) a->states[i].round = 0;
    }
    a->round = ++a->last_round;
}

uint32_t fr_automaton_set_round(fr_automaton *a, uint32_t round) {
    uint32_t before = a->round;
    a->round = round;
    return before;
}

/* ------------------------------------------------------------------------------------------- properties of a state */

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

/* Finds part `index` of a state. A part is a run of the state's places that return to the same frame. */
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
    FR_TRY(fr_automaton_spend(a, s.count / PLACES_A_UNIT));
    if (first == end) return FR_OK;
    const frame back = a->frames[a->places[first].frame];
    bool inner = a->places[first].frame != 0;
    find_nothing(a);
    for (size_t i = first; i < end; i++)
        a->found[a->found_count++] = (place){0, a->places[i].node, a->places[i].counter};
    FR_TRY(fr_automaton_spend(a, STATE_COST + LOOK_COST * (end - first)));
    FR_TRY(find_state(a, local));
    if (!inner) return FR_OK;
    find_nothing(a);
    FR_TRY(reach(a, back.node, back.caller, back.counter));
    FR_TRY(settle(a, after));
    return fr_automaton_spend(a, STATE_COST + LOOK_COST * (a->looked_count + a->doubled));
}

fr_status fr_automaton_plain(fr_automaton *a, uint32_t number, uint32_t *plain) {
    const state s = a->states[number];
    *plain = a->plain[number];
    if (*plain != UNKNOWN) return FR_OK;
    find_nothing(a);
    for (size_t i = s.first; i < s.first + s.count; i++) {
        const place p = a->places[i];
        a->found[a->found_count++] = (place){a->frames[p.frame].plain, p.node, plain_of(a, p.counter)};
    }
    a->found_end = s.ends;
    FR_TRY(find_state(a, plain));
    a->plain[number] = *plain;
    return FR_OK;
}

/* -------------------------------------------------------------------------------------------------- room for states */

size_t fr_automaton_states(const fr_automaton *a) {
    return a->state_count;
}

bool fr_automaton_is_full(const fr_automaton *a) {
    return a->state_count > STATES_MAX / 2 || a->frame_count > FRAMES_MAX / 4 || a->place_count > PLACES_MAX / 2;
}

fr_status fr_automaton_sweep(fr_automaton *a, uint32_t *kept) {
    const state s = a->states[*kept];
    size_t frames = a->frame_count;
    uint32_t *numbers = calloc(frames, sizeof *numbers);
    frame *old = malloc(frames * sizeof *old);
    if (!numbers || !old) {
        free(numbers);
        free(old);
        return fr_fail_memory("a grammar's states", frames * (sizeof *numbers + sizeof *old));
    }
    memcpy(old, a->frames, frames * sizeof *old);
    /* Marks the frames to which places return, and the frames to which these frames return in turn. A frame's number is
     * above its caller's, so one pass from the last frame to the first marks them all. */
    for (size_t i = s.first; i < s.first + s.count; i++) numbers[a->places[i].frame] = 1;
    for (size_t i = frames; i-- > 1;)
        if (numbers[i]) numbers[a->frames[i].caller] = 1;
    if (s.count) memcpy(a->found, a->places + s.first, s.count * sizeof *a->found);
    memset(a->frame_table, 0, a->frame_slots * sizeof *a->frame_table);
    memset(a->state_table, 0, a->state_slots * sizeof *a->state_table);
    a->frame_count = a->state_count = a->place_count = 0;
    fr_status status = open_states(a);
    numbers[0] = 0;
    for (size_t i = 1; status == FR_OK && i < frames; i++) /* from here on, `numbers` has the frames' new numbers */
        if (numbers[i]) status = find_frame(a, old[i].node, numbers[old[i].caller], old[i].counter, &numbers[i]);
    a->found_count = s.count;
    a->found_end = s.ends;
    for (size_t i = 0; i < s.count; i++) a->found[i].frame = numbers[a->found[i].frame];
    if (status == FR_OK) status = find_state(a, kept);
    free(numbers);
    free(old);
    return status;
}
