/* Makes automata over characters (language.h). Products and complements: Rabin and Scott 1959,
 * doi:10.1147/rd.32.0114. */
#include "src/language/grammar/language.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"
#include "src/language/grammar/cursor.h"

#define STATES_MAX ((size_t)1 << 14)
#define EDGES_MAX  ((size_t)1 << 17)
#define WORK_MAX   ((size_t)1 << 23)

/* ----------------------------------------------------------------------------------------------------------- making */

fr_status fr_language_fail_size(void) {
    return fr_fail(FR_UNBUILT, "the constraints that hold together take too large an automaton: not built");
}

static fr_status room(void *items, size_t size, size_t count, size_t limit, size_t *capacity) {
    void **at = items;
    if (count == limit) return fr_language_fail_size();
    if (count < *capacity) return FR_OK;
    size_t wanted = count ? 2 * count : 64;
    void *grown = realloc(*at, wanted * size);
    if (!grown) return fr_fail_memory("an automaton", wanted * size);
    *at = grown;
    *capacity = wanted;
    return FR_OK;
}

fr_status fr_language_add_state(fr_language *l, bool ends) {
    FR_TRY(room(&l->states, sizeof *l->states, l->state_count, STATES_MAX, &l->state_capacity));
    l->states[l->state_count++] = (fr_language_state){(uint32_t)l->edge_count, 0, ends};
    return FR_OK;
}

fr_status fr_language_add_edge(fr_language *l, uint32_t low, uint32_t high, uint32_t to) {
    fr_language_state *state = &l->states[l->state_count - 1];
    fr_language_edge *last = state->count ? &l->edges[l->edge_count - 1] : NULL;
    if (last && last->to == to && last->high + 1 == low) {
        last->high = high;
        return FR_OK;
    }
    FR_TRY(room(&l->edges, sizeof *l->edges, l->edge_count, EDGES_MAX, &l->edge_capacity));
    l->edges[l->edge_count++] = (fr_language_edge){low, high, to};
    state->count++;
    return FR_OK;
}

void fr_language_free(fr_language *l) {
    if (!l) return;
    free(l->states);
    free(l->edges);
    free(l);
}

/* Finishes an automaton: gives it to the caller, or frees it after a failure. */
static fr_status finish(fr_language *made, fr_status status, fr_language **language) {
    if (status == FR_OK) status = fr_language_trim(made);
    if (status != FR_OK) fr_language_free(made);
    *language = status == FR_OK ? made : NULL;
    return status;
}

static fr_status begin(fr_language **made) {
    *made = calloc(1, sizeof **made);
    return *made ? FR_OK : fr_fail_memory("an automaton", sizeof **made);
}

/* --------------------------------------------------------------------------------------------------------- trimming */

/* Finds the states from which an end can be reached. Most edges lead to later states. So each pass goes from the last
 * state to the first, and few passes are needed. */
static void find_live(fr_language *l, bool *live) {
    for (bool found = true; found && l->work <= WORK_MAX;) {
        found = false;
        l->work += l->state_count + l->edge_count;
        for (size_t i = l->state_count; i-- > 0;) {
            const fr_language_state *s = &l->states[i];
            bool is = live[i] || s->ends;
            for (uint32_t k = 0; k < s->count && !is; k++) is = live[l->edges[s->first + k].to];
            found |= is && !live[i];
            live[i] = is;
        }
    }
}

/* Removes the states that are not live. Live states move towards the beginning of the array. */
static void keep(fr_language *l, const bool *live, uint32_t *numbers) {
    size_t kept = 0, edges = 0;
    for (size_t i = 0; i < l->state_count; i++) numbers[i] = live[i] ? (uint32_t)kept++ : 0;
    for (size_t i = 0; i < l->state_count; i++) {
        const fr_language_state s = l->states[i];
        if (!live[i]) continue;
        uint32_t first = (uint32_t)edges;
        for (uint32_t k = s.first; k < s.first + s.count; k++)
            if (live[l->edges[k].to])
                l->edges[edges++] = (fr_language_edge){l->edges[k].low, l->edges[k].high, numbers[l->edges[k].to]};
        l->states[numbers[i]] = (fr_language_state){first, (uint32_t)edges - first, s.ends};
    }
    l->state_count = kept;
    l->edge_count = edges;
}

fr_status fr_language_trim(fr_language *l) {
    bool *live = calloc(l->state_count + 1, sizeof *live);
    uint32_t *numbers = calloc(l->state_count + 1, sizeof *numbers);
    bool there = live && numbers;
    if (there) find_live(l, live);
    if (there && !live[0])
        l->state_count = l->edge_count = 0;
    else if (there)
        keep(l, live, numbers);
    free(live);
    free(numbers);
    if (l->work > WORK_MAX) return fr_language_fail_size();
    return there ? FR_OK : fr_fail_memory("an automaton", l->state_count * 5);
}

/* -------------------------------------------------------------------------------------------- lengths, single texts */

static fr_status make_lengths(fr_language *l, uint32_t least, uint32_t most) {
    uint32_t last = most == FR_GRAMMAR_UNBOUND ? least : most;
    for (uint32_t i = 0; i <= last; i++) {
        FR_TRY(fr_language_add_state(l, i >= least));
        if (i < last) FR_TRY(fr_language_add_edge(l, 0, FR_CODE_POINT_MAX, i + 1));
    }
    return most == FR_GRAMMAR_UNBOUND ? fr_language_add_edge(l, 0, FR_CODE_POINT_MAX, last) : FR_OK;
}

fr_status fr_language_of_lengths(uint32_t least, uint32_t most, fr_language **language) {
    fr_language *made;
    FR_TRY(begin(&made));
    return finish(made, make_lengths(made, least, most), language);
}

static fr_status make_text(fr_language *l, fr_text utf8) {
    fr_cursor c = {utf8, 0};
    uint32_t code;
    while (c.at < utf8.length) {
        if (!fr_cursor_take_character(&c, &code)) return fr_fail(FR_INPUT, "a text is not UTF-8");
        FR_TRY(fr_language_add_state(l, false));
        FR_TRY(fr_language_add_edge(l, code, code, (uint32_t)l->state_count));
    }
    return fr_language_add_state(l, true);
}

fr_status fr_language_of_text(fr_text utf8, fr_language **language) {
    fr_language *made;
    FR_TRY(begin(&made));
    return finish(made, make_text(made, utf8), language);
}

/* --------------------------------------------------------------------------------------------------------- products */

typedef struct pair {
    uint32_t one, other;
} pair;

typedef struct product {
    const fr_language *one, *other;
    fr_language *made;
    pair *pairs;     /* [most] the pair of states from which each new state was made */
    uint32_t *table; /* [slots] hash table: 1 + index of a state; 0: the slot is empty */
    size_t most, slots, count;
} product;

static fr_status find_pair(product *p, pair wanted, uint32_t *state) {
    size_t at = fr_hash(0, &wanted, sizeof wanted) & (p->slots - 1);
    for (; p->table[at]; at = (at + 1) & (p->slots - 1)) {
        const pair *found = &p->pairs[ *state = p->table[at] - 1];
        if (found->one == wanted.one && found->other == wanted.other) return FR_OK;
    }
    if (p->count == p->most) return fr_language_fail_size();
    *state = (uint32_t)p->count;
    p->pairs[p->count++] = wanted;
    p->table[at] = *state + 1;
    return FR_OK;
}

/* Makes the edges of a pair of states in ascending order: one edge for each range of characters for which both states
 * have an edge. */
static fr_status multiply_state(product *p, pair at) {
    const fr_language_state one = p->one->states[at.one], other = p->other->states[at.other];
    uint32_t i = 0, k = 0, to;
    FR_TRY(fr_language_add_state(p->made, one.ends && other.ends));
    p->made->work += 1 + one.count + other.count;
    if (p->made->work > WORK_MAX) return fr_language_fail_size();
    while (i < one.count && k < other.count) {
        const fr_language_edge a = p->one->edges[one.first + i], b = p->other->edges[other.first + k];
        uint32_t low = a.low > b.low ? a.low : b.low, high = a.high < b.high ? a.high : b.high;
        if (low <= high) {
            FR_TRY(find_pair(p, (pair){a.to, b.to}, &to));
            FR_TRY(fr_language_add_edge(p->made, low, high, to));
        }
        if (a.high <= b.high) i++;
        if (b.high <= a.high) k++;
    }
    return FR_OK;
}

fr_status fr_language_both(const fr_language *one, const fr_language *other, fr_language **both) {
    size_t pairs = one->state_count * other->state_count + 1;
    product p = {.one = one, .other = other, .most = pairs < STATES_MAX ? pairs : STATES_MAX};
    *both = NULL;
    FR_TRY(begin(&p.made));
    p.slots = fr_hash_table_size(p.most);
    p.pairs = malloc(p.most * sizeof *p.pairs);
    p.table = calloc(p.slots, sizeof *p.table);
    fr_status status = p.pairs && p.table ? FR_OK : fr_fail_memory("an automaton", 16 * p.most);
    bool any = one->state_count && other->state_count;
    uint32_t first;
    if (status == FR_OK && any) status = find_pair(&p, (pair){0, 0}, &first);
    for (size_t i = 0; status == FR_OK && any && i < p.count; i++) status = multiply_state(&p, p.pairs[i]);
    free(p.pairs);
    free(p.table);
    return finish(p.made, status, both);
}

/* ------------------------------------------------------------------------------------------------------ complements */

/* Adds the edges of a complement for one range of characters. If the state has no edge for a character, the character
 * leads to the state `lost`. */
static fr_status cover(fr_language *made, const fr_language *l, fr_language_state s, fr_character_range range,
                       uint32_t lost) {
    uint32_t low = range.low;
    for (uint32_t k = s.first; k < s.first + s.count && low <= range.high; k++) {
        const fr_language_edge e = l->edges[k];
        if (e.high < low) continue;
        if (e.low > range.high) break;
        if (e.low > low) FR_TRY(fr_language_add_edge(made, low, e.low - 1, lost));
        uint32_t from = e.low > low ? e.low : low, to = e.high < range.high ? e.high : range.high;
        FR_TRY(fr_language_add_edge(made, from, to, e.to));
        low = to + 1;
    }
    return low <= range.high ? fr_language_add_edge(made, low, range.high, lost) : FR_OK;
}

/* Makes the complement. It has the states of the language and one more state, `lost`. A text that has left the language
 * stays in that state. */
static fr_status make_except(fr_language *made, const fr_language *l, const fr_character_range *alphabet,
                             size_t count) {
    uint32_t lost = (uint32_t)l->state_count;
    for (size_t i = 0; i <= lost; i++) {
        const fr_language_state s = i < lost ? l->states[i] : (fr_language_state){0};
        FR_TRY(fr_language_add_state(made, !s.ends));
        made->work += 1 + s.count;
        for (size_t k = 0; k < count; k++) FR_TRY(cover(made, l, s, alphabet[k], lost));
    }
    return FR_OK;
}

fr_status fr_language_except(const fr_language *one, const fr_character_range *alphabet, size_t count,
                             fr_language **others) {
    fr_language *made;
    *others = NULL;
    FR_TRY(begin(&made));
    return finish(made, make_except(made, one, alphabet, count), others);
}

/* --------------------------------------------------------------------------------------------- uses of an automaton */

bool fr_language_is_empty(const fr_language *l) {
    return l->state_count == 0;
}

const fr_language_edge *fr_language_edge_at(const fr_language *l, uint32_t state, uint32_t code) {
    const fr_language_state s = l->states[state];
    uint32_t low = s.first, end = s.first + s.count, high = end;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (l->edges[middle].high < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && l->edges[low].low <= code ? &l->edges[low] : NULL;
}

bool fr_language_has(const fr_language *l, fr_text utf8) {
    fr_cursor c = {utf8, 0};
    uint32_t state = 0, code;
    if (l->state_count == 0) return false;
    while (c.at < utf8.length) {
        const fr_language_edge *edge = fr_cursor_take_character(&c, &code) ? fr_language_edge_at(l, state, code) : NULL;
        if (!edge) return false;
        state = edge->to;
    }
    return l->states[state].ends;
}

/* Collects all ranges of characters that lead from a state to the state to which this edge leads. Gives NULL if an
 * earlier edge leads to that state, because the ranges were then collected for the earlier edge. Also gives NULL if
 * memory ran out. */
static fr_character_range *ranges_like(const fr_language *l, fr_language_state s, uint32_t edge, size_t *count,
                                       fr_grammar_rules *rules) {
    uint32_t to = l->edges[edge].to;
    if (!fr_grammar_spend(rules, 1 + s.count / 64)) return NULL;
    for (uint32_t k = s.first; k < edge; k++)
        if (l->edges[k].to == to) return NULL;
    fr_character_range *ranges = malloc(s.count * sizeof *ranges);
    if (!ranges) rules->status = FR_MEMORY;
    *count = 0;
    for (uint32_t k = edge; ranges && k < s.first + s.count; k++)
        if (l->edges[k].to == to) ranges[(*count)++] = (fr_character_range){l->edges[k].low, l->edges[k].high};
    return ranges;
}

/* The bounds of a text's length, and two distances from each state to an end, in characters. `shortest` is the length
 * of the shortest path to an end. `looped` is the length of the shortest such path that contains a state with an edge
 * to itself; there the path can be made longer by any number of characters. NEVER: there is no such path. */
#define NEVER UINT32_MAX
typedef struct lengths {
    uint32_t least, most, *shortest, *looped;
} lengths;

static uint32_t one_more(uint32_t characters) {
    return characters == NEVER ? NEVER : characters + 1;
}

/* Finds the distances. Most edges lead to later states. So each pass goes from the last state to the first, and few
 * passes are needed. */
static fr_status find_lengths(const fr_language *l, const lengths *n) {
    size_t work = 0;
    for (size_t i = 0; i < l->state_count; i++) n->shortest[i] = n->looped[i] = NEVER;
    for (bool found = true; found;) {
        found = false;
        work += l->state_count + l->edge_count;
        if (work > WORK_MAX) return fr_language_fail_size();
        for (size_t i = l->state_count; i-- > 0;) {
            const fr_language_state *s = &l->states[i];
            uint32_t shortest = s->ends ? 0 : NEVER, looped = NEVER;
            bool loop = false;
            for (uint32_t k = s->first; k < s->first + s->count; k++) {
                uint32_t to = l->edges[k].to;
                if (one_more(n->shortest[to]) < shortest) shortest = n->shortest[to] + 1;
                if (one_more(n->looped[to]) < looped) looped = n->looped[to] + 1;
                loop |= to == i;
            }
            if (loop && shortest < looped) looped = shortest;
            found |= shortest != n->shortest[i] || looped != n->looped[i];
            n->shortest[i] = shortest;
            n->looped[i] = looped;
        }
    }
    return FR_OK;
}

/* Returns the expression that counts the character leading to state `to`. When a text is matched, this expression
 * refuses the character if the text can no longer be continued from `to` so that it ends with `least` to `most`
 * characters in all. */
static fr_expression count_to(const lengths *n, uint32_t to, fr_grammar_rules *rules) {
    bool unbound = n->most == FR_GRAMMAR_UNBOUND;
    fr_expression exactly = fr_expression_count(rules, n->least, n->most, n->shortest[to], n->least > 0);
    if (n->least == 0 || n->looped[to] == NEVER) return exactly;
    uint32_t behind = unbound ? 0 : n->looped[to];
    return fr_expression_or(rules, exactly, fr_expression_count(rules, n->least, n->most, behind, false));
}

/* Writes the texts that begin in one state. n: the bounds of their length, or NULL if they may have any length. */
static fr_expression write_state(const fr_language *l, fr_language_state s, uint32_t first_rule, const lengths *n,
                                 fr_write_characters *write, fr_grammar_rules *rules) {
    fr_expression all = s.ends && n ? fr_expression_counted(rules, n->least, n->most) : 0;
    bool some = s.ends;
    for (uint32_t k = s.first; k < s.first + s.count; k++) {
        size_t count;
        fr_character_range *ranges = ranges_like(l, s, k, &count, rules);
        if (!ranges) continue;
        fr_expression way = fr_expression_then(rules, write(rules, ranges, count, false),
                                               fr_expression_rule(rules, first_rule + l->edges[k].to));
        if (n) way = fr_expression_then(rules, count_to(n, l->edges[k].to, rules), way);
        all = some ? fr_expression_or(rules, all, way) : way;
        some = true;
        free(ranges);
    }
    return all;
}

static fr_expression write_states(const fr_language *l, const lengths *n, fr_write_characters *write,
                                  fr_grammar_rules *rules) {
    uint32_t first = (uint32_t)rules->rule_count;
    for (size_t i = 0; i < l->state_count; i++) fr_grammar_rule(rules);
    for (size_t i = 0; i < l->state_count && rules->status == FR_OK; i++)
        fr_grammar_define(rules, first + (uint32_t)i, write_state(l, l->states[i], first, n, write, rules));
    return fr_expression_rule(rules, first);
}

fr_expression fr_language_expression(const fr_language *l, fr_write_characters *write, fr_grammar_rules *rules) {
    return write_states(l, NULL, write, rules);
}

fr_status fr_language_expression_of_length(const fr_language *l, uint32_t least, uint32_t most,
                                           fr_write_characters *write, fr_grammar_rules *rules,
                                           fr_expression *expression, bool *some) {
    lengths n = {.least = least, .most = most};
    n.shortest = malloc((l->state_count + 1) * sizeof *n.shortest);
    n.looped = malloc((l->state_count + 1) * sizeof *n.looped);
    fr_status status = n.shortest && n.looped ? find_lengths(l, &n) : fr_fail_memory("an automaton", l->state_count);
    *some = status == FR_OK && n.shortest[0] <= most;
    bool looped = *some && n.looped[0] != NEVER && n.looped[0] <= most;
    if (*some && !looped && n.shortest[0] < least) status = fr_language_fail_size();
    if (*some && status == FR_OK) *expression = write_states(l, &n, write, rules);
    free(n.shortest);
    free(n.looped);
    return status;
}
