/* Makes the automaton of an expression (language.h). First it makes nodes (Thompson 1968, doi:10.1145/363347.363387). A
 * node reads a character, or leads to other nodes without reading one. Then it makes states, each of which is a set of
 * nodes.
 *
 * A look-ahead has an automaton of its own. From the look-ahead's place on, this automaton reads the same characters as
 * the nodes that follow. It must reach an end; the automaton of a negative look-ahead must not. A look-ahead that is
 * still being checked is called a duty. So a member of a set is a node together with its duties. A look-behind also has
 * an automaton, which reads all characters from the beginning of the text. */
#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"
#include "src/language/grammar/language.h"

#define NODES_MAX   ((size_t)1 << 16)
#define MEMBERS_MAX ((size_t)1 << 21) /* limit on the members of all states together */
#define STATES_MAX  ((size_t)1 << 13)
#define WORK_MAX    ((size_t)1 << 23)
#define DEPTH_MAX   400
#define COUNTED_MAX 2000 /* limit on the optional repetitions of an expression, such as the 3 of {2,5} */
#define END         0u

#define LOOKS_MAX  32 /* limit on the look-arounds of an expression */
#define BEHIND_MAX 4  /* limit on the look-behinds of an expression */
#define DUTIES_MAX 16 /* limit on the duties (look-aheads to be checked) of one node */

typedef struct node {
    enum { NODE_END, NODE_CHARACTER, NODE_SPLIT, NODE_LOOK } kind;
    uint32_t next, other;  /* other: second successor of a split, or index of a look-around */
    uint32_t first, count; /* ranges of characters that the node reads */
} node;

/* A look-around. language: the automaton of the texts that it looks for. sure: [states of that automaton] true if every
 * text that may follow is accepted. */
typedef struct look {
    fr_expression of;
    unsigned how;
    fr_language *language;
    bool *sure;
    uint32_t behind; /* index of a look-behind among all look-behinds */
} look;

/* A look-ahead that is still being checked, and the state of its automaton. UINT32_MAX: the text can no longer match
 * the expression of the look-ahead. */
typedef struct duty {
    uint32_t look, state;
} duty;

/* A node, together with the look-aheads that are still being checked there (duties, which are sorted). A member without
 * duties has the same number as its node. Members with duties have larger numbers. */
typedef struct member {
    /* seen: number of the last search that reached this member */
    uint32_t node, duties, count, seen;
} member;

typedef struct members {
    uint32_t first, count;
    bool ends;
    uint32_t behind[BEHIND_MAX]; /* states of the look-behinds' automata */
} members;

typedef struct making {
    const fr_grammar_rules *rules;
    fr_language *language;
    node *nodes;
    member *members;
    duty *duties; /* duties of all members */
    /* pool: the members of all sets, one set after the other; bounds: see list_bounds */
    uint32_t *waiting, *pool, *bounds;
    uint32_t *table;        /* [slots] hash table: 1 + index of a state; 0: the slot is empty */
    uint32_t *member_table; /* [MEMBER_SLOTS] hash table: 1 + index of a member that has duties; 0: the slot
                                        * is empty */
    members *sets;          /* the set of members of each state */
    size_t node_count, node_capacity, pool_count, pool_capacity, set_count, bound_capacity, work;
    size_t member_count, member_capacity, duty_count, duty_capacity, waiting_capacity;
    look looks[LOOKS_MAX];
    uint32_t look_count, behind_count, search; /* search: number of the newest search */
    /* limit on the optional repetitions of an expression, such as the 3 of {2,5}; if there are more, the upper bound is
     * dropped */
    uint32_t most_counted;
    bool inner; /* the automaton is made for a look-around */
    fr_status status;
} making;

#define MEMBER_SLOTS ((size_t)1 << 17)
#define MARKED_MAX   (MEMBER_SLOTS / 2) /* limit on the members that have duties (look-aheads to be checked) */

/* ------------------------------------------------------------------------------------------------------------ nodes */

static bool grow(making *m, void *items, size_t size, size_t count, size_t limit, size_t *capacity) {
    void **at = items;
    if (m->status != FR_OK) return false;
    if (count > limit) {
        m->status = fr_language_fail_size();
        return false;
    }
    if (count <= *capacity) return true;
    void *grown = realloc(*at, 2 * count * size);
    if (!grown) {
        m->status = fr_fail_memory("an automaton", 2 * count * size);
        return false;
    }
    *at = grown;
    *capacity = 2 * count;
    return true;
}

static uint32_t add(making *m, node one) {
    if (!grow(m, &m->nodes, sizeof *m->nodes, m->node_count + 1, NODES_MAX, &m->node_capacity)) return END;
    m->nodes[m->node_count] = one;
    return (uint32_t)m->node_count++;
}

static uint32_t split(making *m, uint32_t next, uint32_t other) {
    return add(m, (node){.kind = NODE_SPLIT, .next = next, .other = other});
}

static uint32_t make(making *m, fr_expression expression, uint32_t next, size_t depth);

/* Repeats an expression. If the upper bound is far above the least one, it is dropped, because it would need a state
 * for each count. */
static uint32_t make_repeat(making *m, const fr_expression_node *e, uint32_t next, size_t depth) {
    uint32_t entry = next;
    if (e->most == FR_GRAMMAR_UNBOUND || e->most - e->second > m->most_counted) {
        entry = split(m, next, next);
        uint32_t body = make(m, e->first, entry, depth);
        if (m->status == FR_OK) m->nodes[entry].next = body;
    } else {
        for (uint32_t i = e->second; i < e->most && m->status == FR_OK; i++)
            entry = split(m, make(m, e->first, entry, depth), next);
    }
    for (uint32_t i = 0, before; i < e->second && m->status == FR_OK; i++) {
        before = entry;
        entry = make(m, e->first, entry, depth);
        if (entry == before) break; /* the expression allows only the empty text */
    }
    return entry;
}

static uint32_t make_choice(making *m, const fr_expression_node *e, uint32_t next, size_t depth) {
    uint32_t others = make(m, e->second, next, depth);
    for (; m->rules->expressions[e->first].kind == FR_EXPRESSION_CHOICE;) {
        e = &m->rules->expressions[e->first];
        others = split(m, make(m, e->second, next, depth), others);
    }
    return split(m, make(m, e->first, next, depth), others);
}

/* Gives the index of this look-around. Adds the look-around if it is new. */
static uint32_t find_look(making *m, const fr_expression_node *e) {
    for (uint32_t i = 0; i < m->look_count; i++)
        if (m->looks[i].of == e->first && m->looks[i].how == e->second) return i;
    bool ahead = e->second & FR_LOOK_AHEAD;
    if (m->status != FR_OK) return 0;
    if (!ahead && m->inner) m->status = fr_fail(FR_UNBUILT, "a look-behind inside a look-around is not built");
    if (m->look_count == LOOKS_MAX || (!ahead && m->behind_count == BEHIND_MAX)) m->status = fr_language_fail_size();
    if (m->status != FR_OK) return 0;
    m->looks[m->look_count] = (look){e->first, e->second, NULL, NULL, ahead ? 0 : m->behind_count++};
    return m->look_count++;
}

/* Makes the nodes of an expression, from its end to its beginning, as in automaton_nodes.c. */
static uint32_t make(making *m, fr_expression expression, uint32_t next, size_t depth) {
    const fr_expression_node *e = &m->rules->expressions[expression];
    if (depth == DEPTH_MAX && m->status == FR_OK) m->status = fr_language_fail_size();
    for (; m->status == FR_OK && e->kind == FR_EXPRESSION_SEQUENCE; e = &m->rules->expressions[e->first])
        next = make(m, e->second, next, depth + 1);
    if (m->status != FR_OK) return END;
    switch (e->kind) {
    case FR_EXPRESSION_CHARACTER:
        return add(m, (node){.kind = NODE_CHARACTER, .next = next, .first = e->first, .count = e->second});
    case FR_EXPRESSION_CHOICE: return make_choice(m, e, next, depth + 1);
    case FR_EXPRESSION_REPEAT: return make_repeat(m, e, next, depth + 1);
    case FR_EXPRESSION_LOOK: return add(m, (node){.kind = NODE_LOOK, .next = next, .other = find_look(m, e)});
    case FR_EXPRESSION_EMPTY: return next;
    default: m->status = fr_language_fail_size(); return END;
    }
}

/* ---------------------------------------------------------------------------------------------------- look-arounds */

static fr_status make_language(const fr_grammar_rules *rules, fr_expression expression, bool inner,
                               uint32_t most_counted, size_t *work, fr_language **language);

/* Finds the sure states. In a sure state a text may end, and every character leads to a sure state. */
static void find_sure(const fr_language *l, bool *sure, size_t *work) {
    for (size_t i = 0; i < l->state_count; i++) sure[i] = l->states[i].ends;
    for (bool found = true; found && *work <= WORK_MAX;) {
        found = false;
        *work += l->state_count + l->edge_count;
        for (size_t i = 0; i < l->state_count; i++) {
            const fr_language_state s = l->states[i];
            uint32_t next = 0;
            bool all = sure[i];
            for (uint32_t k = s.first; k < s.first + s.count && all; k++) {
                all = l->edges[k].low == next && sure[l->edges[k].to];
                next = l->edges[k].high + 1;
            }
            all &= next == FR_CODE_POINT_MAX + 1;
            found |= sure[i] != all;
            sure[i] = all;
        }
    }
}

/* Makes the automaton of a look-around. A negative look-around keeps the bounds of its repetitions, because without
 * them it would refuse texts that are allowed. */
static void open_look(making *m, look *l) {
    m->status = make_language(m->rules, l->of, true, l->how & FR_LOOK_NOT ? COUNTED_MAX : m->most_counted, &m->work,
                              &l->language);
    if (m->status != FR_OK) return;
    l->sure = calloc(l->language->state_count + 1, sizeof *l->sure);
    if (!l->sure) m->status = fr_fail_memory("an automaton", l->language->state_count);
    if (l->sure) find_sure(l->language, l->sure, &m->work);
    if (m->work > WORK_MAX && m->status == FR_OK) m->status = fr_language_fail_size();
}

/* Outcomes of a duty: it is fulfilled, it has failed for good, or it must still be checked. */
typedef enum outcome { DONE, FAILED, GOES_ON } outcome;

static outcome judge(const making *m, duty d) {
    const look *l = &m->looks[d.look];
    bool not = l->how & FR_LOOK_NOT;
    if (d.state >= l->language->state_count) return not ? DONE : FAILED;
    if (l->sure[d.state]) return not ? FAILED : DONE;
    return GOES_ON;
}

/* --------------------------------------------------------------------------------------------------------- members */

/* Gives the member for a node with these duties. Adds the member if it is new. */
static uint32_t member_of(making *m, uint32_t number, const duty *duties, uint32_t count) {
    if (count == 0) return number;
    size_t at = fr_hash(number, duties, count * sizeof *duties) & (MEMBER_SLOTS - 1);
    for (; m->member_table[at]; at = (at + 1) & (MEMBER_SLOTS - 1)) {
        uint32_t found = m->member_table[at] - 1;
        const member *one = &m->members[found];
        if (one->node == number && one->count == count &&
            memcmp(m->duties + one->duties, duties, count * sizeof *duties) == 0)
            return found;
    }
    if (m->member_count - m->node_count == MARKED_MAX && m->status == FR_OK) m->status = fr_language_fail_size();
    if (!grow(m, &m->members, sizeof *m->members, m->member_count + 1, MEMBERS_MAX, &m->member_capacity) ||
        !grow(m, &m->duties, sizeof *m->duties, m->duty_count + count, MEMBERS_MAX, &m->duty_capacity))
        return END;
    memcpy(m->duties + m->duty_count, duties, count * sizeof *duties);
    m->members[m->member_count] = (member){number, (uint32_t)m->duty_count, count, 0};
    m->duty_count += count;
    m->member_table[at] = (uint32_t)m->member_count + 1;
    return (uint32_t)m->member_count++;
}

/* Adds a duty to a sorted list, if the list does not have it already. */
static bool add_duty(making *m, duty *duties, uint32_t *count, duty d) {
    uint32_t at = *count;
    for (uint32_t i = 0; i < *count; i++)
        if (duties[i].look == d.look && duties[i].state == d.state) return true;
    if (*count == DUTIES_MAX && m->status == FR_OK) m->status = fr_language_fail_size();
    if (m->status != FR_OK) return false;
    for (;
         at > 0 && (duties[at - 1].look > d.look || (duties[at - 1].look == d.look && duties[at - 1].state > d.state));
         at--)
        duties[at] = duties[at - 1];
    duties[at] = d;
    ++*count;
    return true;
}

/* Steps over a look-around, and gives the member after it. Returns false if the look-around does not hold here. */
static bool pass(making *m, const members *set, uint32_t number, uint32_t *next) {
    const member one = m->members[number];
    const node *n = &m->nodes[one.node];
    const look *l = &m->looks[n->other];
    duty duties[DUTIES_MAX], own = {n->other, 0};
    uint32_t count = one.count;
    if (count) memcpy(duties, m->duties + one.duties, count * sizeof *duties);
    if (l->how & FR_LOOK_AHEAD) {
        outcome is = judge(m, own);
        if (is == FAILED || (is == GOES_ON && !add_duty(m, duties, &count, own))) return false;
    } else {
        bool empty = l->language->state_count == 0;
        bool found = !empty && l->language->states[set->behind[l->behind]].ends;
        if (found == !!(l->how & FR_LOOK_NOT)) return false;
    }
    *next = member_of(m, n->next, duties, count);
    return m->status == FR_OK;
}

/* Advances a member's duties by one character. Returns false if one of them has failed. */
static bool step_duties(making *m, const member *one, uint32_t code, duty *duties, uint32_t *count) {
    *count = 0;
    for (uint32_t i = 0; i < one->count; i++) {
        duty d = m->duties[one->duties + i];
        const fr_language_edge *edge = fr_language_edge_at(m->looks[d.look].language, d.state, code);
        d.state = edge ? edge->to : UINT32_MAX;
        outcome is = judge(m, d);
        m->work++;
        if (is == FAILED || (is == GOES_ON && !add_duty(m, duties, count, d))) return false;
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------------------- sets */

static int by_number(const void *one, const void *other) {
    uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
    return (a > b) - (a < b);
}

static void wait_for(making *m, size_t *waiting, uint32_t number) {
    if (grow(m, &m->waiting, sizeof *m->waiting, *waiting + 1, 4 * MEMBERS_MAX, &m->waiting_capacity))
        m->waiting[(*waiting)++] = number;
}

/* Adds all members that can be reached from a member without reading a character to the set at the pool's end. */
static void reach(making *m, uint32_t from, members *set) {
    size_t waiting = 0;
    wait_for(m, &waiting, from);
    while (waiting && m->status == FR_OK) {
        uint32_t number = m->waiting[--waiting], next;
        const member one = m->members[number];
        const node *n = &m->nodes[one.node];
        if (one.seen == m->search) continue;
        m->members[number].seen = m->search;
        m->work++;
        bool ends = n->kind == NODE_END;
        for (uint32_t i = 0; ends && i < one.count; i++) { /* the text may end only if its end fulfils all duties */
            const duty d = m->duties[one.duties + i];
            const look *l = &m->looks[d.look];
            ends = l->language->states[d.state].ends == !(l->how & FR_LOOK_NOT);
        }
        set->ends |= ends;
        if (n->kind == NODE_SPLIT) {
            duty own[DUTIES_MAX];
            if (one.count) memcpy(own, m->duties + one.duties, one.count * sizeof *own);
            wait_for(m, &waiting, member_of(m, n->other, own, one.count));
            wait_for(m, &waiting, member_of(m, n->next, own, one.count));
        }
        if (n->kind == NODE_LOOK && pass(m, set, number, &next)) wait_for(m, &waiting, next);
        if (n->kind != NODE_CHARACTER) continue;
        if (!grow(m, &m->pool, sizeof *m->pool, set->first + set->count + 1, MEMBERS_MAX, &m->pool_capacity)) return;
        m->pool[set->first + set->count++] = number;
    }
}

static members begin_set(making *m) {
    m->search++;
    return (members){.first = (uint32_t)m->pool_count};
}

/* Gives the state for the set at the pool's end. Adds the state if it is new. */
static uint32_t find_set(making *m, members set) {
    size_t size = set.count * sizeof *m->pool;
    if (m->status != FR_OK || set.count + set.ends == 0) return UINT32_MAX;
    if (set.count > 1) qsort(m->pool + set.first, set.count, sizeof *m->pool, by_number);
    uint64_t seed = fr_hash(set.ends, set.behind, sizeof set.behind);
    size_t at = (size ? fr_hash(seed, m->pool + set.first, size) : seed) & (4 * STATES_MAX - 1);
    for (; m->table[at]; at = (at + 1) & (4 * STATES_MAX - 1)) {
        const members *found = &m->sets[m->table[at] - 1];
        if (found->count == set.count && found->ends == set.ends &&
            memcmp(found->behind, set.behind, sizeof set.behind) == 0 &&
            (size == 0 || memcmp(m->pool + found->first, m->pool + set.first, size) == 0))
            return m->table[at] - 1;
    }
    if (m->set_count == STATES_MAX) {
        m->status = fr_language_fail_size();
        return UINT32_MAX;
    }
    m->pool_count = set.first + set.count;
    m->sets[m->set_count++] = set;
    return m->table[at] = (uint32_t)m->set_count, (uint32_t)m->set_count - 1;
}

static size_t add_bound(making *m, size_t count, uint32_t low, uint32_t high) {
    if (!grow(m, &m->bounds, sizeof *m->bounds, count + 2, MEMBERS_MAX, &m->bound_capacity)) return count;
    m->bounds[count] = low;
    m->bounds[count + 1] = high + 1;
    return count + 2;
}

static size_t add_bounds_of(making *m, size_t count, const fr_language *l, uint32_t state) {
    const fr_language_state s = l->states[state];
    for (uint32_t k = s.first; k < s.first + s.count; k++)
        count = add_bound(m, count, l->edges[k].low, l->edges[k].high);
    return count;
}

/* Lists, in ascending order, the characters at which the set's next state may change. For each range of characters,
 * these are its first character and the character after its last one. The ranges are those that the set's nodes read,
 * and those that its look-arounds read. */
static size_t list_bounds(making *m, members set) {
    size_t count = 0, kept = 0;
    for (uint32_t i = 0; i < set.count; i++) {
        const member one = m->members[m->pool[set.first + i]];
        const node *n = &m->nodes[one.node];
        for (uint32_t k = 0; k < n->count; k++)
            count = add_bound(m, count, m->rules->ranges[n->first + k].low, m->rules->ranges[n->first + k].high);
        for (uint32_t k = 0; k < one.count; k++) {
            const duty d = m->duties[one.duties + k];
            count = add_bounds_of(m, count, m->looks[d.look].language, d.state);
        }
    }
    for (uint32_t i = 0; i < m->look_count; i++)
        if (!(m->looks[i].how & FR_LOOK_AHEAD) && m->looks[i].language->state_count)
            count = add_bounds_of(m, count, m->looks[i].language, set.behind[m->looks[i].behind]);
    m->work += count;
    if (count > 1) qsort(m->bounds, count, sizeof *m->bounds, by_number);
    for (size_t i = 0; i < count; i++)
        if (!kept || m->bounds[kept - 1] != m->bounds[i]) m->bounds[kept++] = m->bounds[i];
    return kept;
}

static bool reads(const making *m, const node *n, uint32_t code) {
    const fr_character_range *ranges = m->rules->ranges + n->first;
    uint32_t low = 0, high = n->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (ranges[middle].high < code)
            low = middle + 1;
        else
            high = middle;
    }
    return low < n->count && ranges[low].low <= code;
}

/* Advances the look-behinds by one character. Any text may come before the text that a look-behind looks for, so its
 * automaton has an edge for every character. */
static void step_behind(const making *m, const members *set, uint32_t code, members *next) {
    for (uint32_t i = 0; i < m->look_count; i++) {
        const look *l = &m->looks[i];
        if (l->how & FR_LOOK_AHEAD || l->language->state_count == 0) continue;
        const fr_language_edge *edge = fr_language_edge_at(l->language, set->behind[l->behind], code);
        next->behind[l->behind] = edge ? edge->to : 0;
    }
}

/* Adds the edges of a state. All characters between two bounds lead to one state. */
static void leave(making *m, members set) {
    size_t bounds = list_bounds(m, set);
    if (m->status == FR_OK) m->status = fr_language_add_state(m->language, set.ends);
    for (size_t b = 0; b + 1 < bounds && m->status == FR_OK; b++) {
        members next = begin_set(m);
        step_behind(m, &set, m->bounds[b], &next);
        for (uint32_t i = 0; i < set.count && m->status == FR_OK; i++) {
            const member one = m->members[m->pool[set.first + i]];
            const node *n = &m->nodes[one.node];
            duty duties[DUTIES_MAX];
            uint32_t count;
            m->work++;
            if (reads(m, n, m->bounds[b]) && step_duties(m, &one, m->bounds[b], duties, &count))
                reach(m, member_of(m, n->next, duties, count), &next);
        }
        if (m->work > WORK_MAX && m->status == FR_OK) m->status = fr_language_fail_size();
        uint32_t to = find_set(m, next);
        if (to != UINT32_MAX && m->status == FR_OK)
            m->status = fr_language_add_edge(m->language, m->bounds[b], m->bounds[b + 1] - 1, to);
    }
}

/* ---------------------------------------------------------------------------------------------- the whole automaton */

/* Makes the members without duties, one for each node. Also makes the automata of the look-arounds. */
static void open_members(making *m) {
    if (!grow(m, &m->members, sizeof *m->members, m->node_count, MEMBERS_MAX, &m->member_capacity)) return;
    for (size_t i = 0; i < m->node_count; i++) m->members[i] = (member){.node = (uint32_t)i};
    m->member_count = m->node_count;
    for (uint32_t i = 0; i < m->look_count && m->status == FR_OK; i++) open_look(m, &m->looks[i]);
    m->sets = malloc(STATES_MAX * sizeof *m->sets);
    m->table = calloc(4 * STATES_MAX, sizeof *m->table);
    m->member_table = m->look_count ? calloc(MEMBER_SLOTS, sizeof *m->member_table) : NULL;
    if (m->status == FR_OK && (!m->sets || !m->table || (m->look_count && !m->member_table)))
        m->status = fr_fail_memory("an automaton", 4 * STATES_MAX * sizeof *m->table);
}

static fr_status determine(making *m, fr_expression expression) {
    add(m, (node){.kind = NODE_END});
    uint32_t entry = make(m, expression, END, 0);
    if (m->status == FR_OK) open_members(m);
    if (m->status != FR_OK) return m->status;
    members first = begin_set(m);
    reach(m, entry, &first);
    find_set(m, first);
    for (size_t i = 0; i < m->set_count && m->status == FR_OK; i++) leave(m, m->sets[i]);
    m->language->work = m->work + m->node_count;
    return m->status == FR_OK ? fr_language_trim(m->language) : m->status;
}

/* Makes the automaton of an expression, and adds the work done to *work. */
static fr_status make_language(const fr_grammar_rules *rules, fr_expression expression, bool inner,
                               uint32_t most_counted, size_t *work, fr_language **language) {
    making m = {
        .rules = rules, .language = calloc(1, sizeof *m.language), .inner = inner, .most_counted = most_counted};
    *language = NULL;
    fr_status status = fr_grammar_rules_check(rules);
    if (!m.language) status = fr_fail_memory("an automaton", sizeof *m.language);
    if (status == FR_OK && rules->expression_count == 0) status = fr_language_of_text((fr_text){"", 0}, language);
    if (status == FR_OK && rules->expression_count) status = determine(&m, expression);
    *work += m.work + m.node_count;
    for (uint32_t i = 0; i < m.look_count; i++) {
        fr_language_free(m.looks[i].language);
        free(m.looks[i].sure);
    }
    free(m.nodes);
    free(m.members);
    free(m.duties);
    free(m.waiting);
    free(m.pool);
    free(m.bounds);
    free(m.table);
    free(m.member_table);
    free(m.sets);
    if (status == FR_OK && !*language)
        *language = m.language;
    else
        fr_language_free(m.language);
    return status;
}

fr_status fr_language_of(const fr_grammar_rules *rules, fr_expression expression, fr_language **language) {
    size_t work = 0;
    return make_language(rules, expression, false, COUNTED_MAX, &work, language);
}

fr_status fr_language_of_regex(fr_text text, bool whole, size_t *work, fr_language **language) {
    static const uint32_t counted[] = {COUNTED_MAX, 64, 8};
    fr_grammar_rules rules = {0};
    fr_expression expression;
    bool looks;
    *work = 0;
    *language = NULL;
    fr_status status = fr_regex_parse(text, whole, fr_expression_characters, &rules, &expression, &looks);
    bool read = status == FR_OK;
    *work = 4 * rules.work;
    for (size_t i = 0; read && i < sizeof counted / sizeof *counted && (i == 0 || status == FR_UNBUILT); i++)
        status = make_language(&rules, expression, false, counted[i], work, language);
    fr_grammar_rules_free(&rules);
    return status;
}
