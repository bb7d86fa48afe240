/* A suffix automaton over ids: see suffix_index.h. */
#include "src/engine/draft/suffix_index.h"

#include <string.h>

void fr_suffix_layout(fr_suffix_index *index, fr_arena *arena, size_t capacity, size_t longest) {
    *index = (fr_suffix_index){.capacity = capacity, .longest = longest};
    while (((size_t)1 << index->bits) < 2 * capacity) index->bits++;
    index->states = fr_arena_take(arena, capacity, 2 * sizeof *index->states);
    index->edges = fr_arena_take(arena, capacity + 1, 3 * sizeof *index->edges);
    index->buckets = fr_arena_take(arena, (size_t)1 << index->bits, sizeof *index->buckets);
}

void fr_suffix_reset(fr_suffix_index *index) {
    if (index->count) memset(index->buckets, 0, sizeof *index->buckets << index->bits);
    index->states[0] = (fr_suffix_state){0};
    index->state_count = index->edge_count = 1;
    index->last = index->active = 0;
    index->count = index->match = index->end = index->steps = 0;
}

/* Finds an edge's bucket. The key is multiplied by an odd number near 2^64 divided by the golden ratio, and the
 * product's high bits are used, because these are mixed best. */
static uint32_t *bucket_of(const fr_suffix_index *index, uint32_t state, int32_t id) {
    uint64_t key = ((uint64_t)state << 32 | (uint32_t)id) * 0x9e3779b97f4a7c15u;
    key = (key ^ key >> 29) * 0xbf58476d1ce4e5b9u;
    return &index->buckets[index->bits ? key >> (64 - index->bits) : 0];
}

/* Finds the edge with which an id leaves a state; NULL if there is none. */
static fr_suffix_edge *find_edge(fr_suffix_index *index, uint32_t state, int32_t id) {
    index->steps++;
    for (uint32_t e = *bucket_of(index, state, id); e; e = index->edges[e].chained)
        if (index->edges[e].from == state && index->edges[e].id == id) return &index->edges[e];
    return NULL;
}

static void add_edge(fr_suffix_index *index, uint32_t from, int32_t id, uint32_t to) {
    uint32_t *bucket = bucket_of(index, from, id), e = index->edge_count++;
    fr_suffix_state *state = &index->states[from];
    index->edges[e] = (fr_suffix_edge){.from = from, .to = to, .id = id, .next = state->edges, .chained = *bucket};
    *bucket = state->edges = e;
    index->steps++;
}

/* Splits a state. Its substrings of up to `length` ids end at one more place than its longer substrings, so they get a
 * new state. */
static uint32_t split(fr_suffix_index *index, uint32_t state, uint32_t length) {
    uint32_t copy = index->state_count++;
    fr_suffix_state *whole = &index->states[state];
    index->states[copy] = (fr_suffix_state){.length = length, .link = whole->link, .end = whole->end};
    for (uint32_t e = whole->edges; e; e = index->edges[e].next)
        add_edge(index, copy, index->edges[e].id, index->edges[e].to);
    whole->link = copy;
    return copy;
}

/* Appends `id` to the text: adds the state of the whole text, and returns this state. */
static uint32_t extend(fr_suffix_index *index, int32_t id) {
    fr_suffix_state *states = index->states;
    uint32_t whole = index->state_count++, at = index->last;
    fr_suffix_edge *edge = NULL;
    states[whole] = (fr_suffix_state){.length = states[at].length + 1, .end = (uint32_t)index->count};
    while (!(edge = find_edge(index, at, id))) {
        add_edge(index, at, id, whole);
        /* No earlier text has this id, so the new state's link is the empty text. */
        if (at == 0) return whole;
        at = states[at].link;
    }
    uint32_t found = edge->to, wanted = states[at].length + 1;
    if (states[found].length > wanted) {
        uint32_t copy = split(index, found, wanted);
        for (;; edge = find_edge(index, at, id)) {
            if (edge->to != found) break;
            edge->to = copy;
            if (at == 0) break;
            at = states[at].link;
        }
        found = copy;
    }
    states[whole].link = found;
    return whole;
}

/* Updates the match for a new id. If the id continues the match, the match grows by this id. Otherwise it shrinks to
 * the longest suffix of the text that occurred before. A match has at most `longest` ids. The old match's state has an
 * edge with this id. The edge leads to the new match's state, or to a state below it in the tree of links; from there
 * the loop climbs. Each id deepens the state by at most one, so all climbs together take no more steps than there are
 * ids. */
static void follow(fr_suffix_index *index, int32_t id) {
    fr_suffix_state *states = index->states;
    size_t before = states[states[index->last].link].length;
    index->match = before < index->longest ? before : index->longest;
    index->active = index->match ? find_edge(index, index->active, id)->to : 0;
    while (index->active && states[states[index->active].link].length >= index->match) {
        index->active = states[index->active].link;
        index->steps++;
    }
    index->end = states[index->active].end;
    /* This is now the latest place at which the state's substrings end. */
    states[index->active].end = (uint32_t)index->count;
}

void fr_suffix_add(fr_suffix_index *index, int32_t id) {
    index->count++;
    index->last = extend(index, id);
    follow(index, id);
}
