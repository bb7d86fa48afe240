/* The automaton of an expression: see language.h. Nodes that read a character or lead on without one (Thompson 1968,
 * doi:10.1145/363347.363387), then sets of them as states. */
#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"
#include "src/grammar/language.h"

#define MAX_NODES   ((size_t)1 << 16)
#define MAX_MEMBERS ((size_t)1 << 21) /* nodes of all states together */
#define MAX_STATES  ((size_t)1 << 13)
#define MAX_WORK    ((size_t)1 << 23)
#define MAX_DEPTH   400
#define MAX_COUNTED 2000 /* more repetitions than at least */
#define END         0u

typedef struct node {
    enum { NODE_END, NODE_CHARACTER, NODE_SPLIT } kind;
    uint32_t next, other;  /* other: of a split */
    uint32_t first, count; /* of a character's ranges */
    uint32_t seen;         /* by which search, last */
} node;

typedef struct members {
    uint32_t first, count;
    bool ends;
} members;

typedef struct making {
    const fr_grammar_rules *rules;
    fr_language *language;
    node *nodes;
    uint32_t *waiting, *pool, *bounds, *table; /* table: of states + 1, by hash */
    members *sets;                             /* by state */
    size_t node_count, node_capacity, pool_count, pool_capacity, set_count, bound_capacity, work;
    uint32_t search;
    fr_status status;
} making;

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
    if (!grow(m, &m->nodes, sizeof *m->nodes, m->node_count + 1, MAX_NODES, &m->node_capacity)) return END;
    m->nodes[m->node_count] = one;
    return (uint32_t)m->node_count++;
}

static uint32_t split(making *m, uint32_t next, uint32_t other) {
    return add(m, (node){.kind = NODE_SPLIT, .next = next, .other = other});
}

static uint32_t make(making *m, fr_expression expression, uint32_t next, size_t depth);

/* A bound that is far beyond the least is none: a state for each count would take the room of all else. */
static uint32_t make_repeat(making *m, const fr_expression_node *e, uint32_t next, size_t depth) {
    uint32_t entry = next;
    if (e->most == FR_GRAMMAR_UNBOUND || e->most - e->second > MAX_COUNTED) {
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
        if (entry == before) break; /* of the empty text */
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

/* From an expression's end to its beginning, as in automaton_nodes.c. */
static uint32_t make(making *m, fr_expression expression, uint32_t next, size_t depth) {
    const fr_expression_node *e = &m->rules->expressions[expression];
    if (depth == MAX_DEPTH && m->status == FR_OK) m->status = fr_language_fail_size();
    for (; m->status == FR_OK && e->kind == FR_EXPRESSION_SEQUENCE; e = &m->rules->expressions[e->first])
        next = make(m, e->second, next, depth + 1);
    if (m->status != FR_OK) return END;
    switch (e->kind) {
    case FR_EXPRESSION_CHARACTER:
        return add(m, (node){.kind = NODE_CHARACTER, .next = next, .first = e->first, .count = e->second});
    case FR_EXPRESSION_CHOICE: return make_choice(m, e, next, depth + 1);
    case FR_EXPRESSION_REPEAT: return make_repeat(m, e, next, depth + 1);
    case FR_EXPRESSION_EMPTY: return next;
    default: m->status = fr_language_fail_size(); return END;
    }
}

/* ------------------------------------------------------------------------------------------------------------- sets */

static int by_number(const void *one, const void *other) {
    uint32_t a = *(const uint32_t *)one, b = *(const uint32_t *)other;
    return (a > b) - (a < b);
}

/* Adds what is reached from a node without a character to the set at the pool's end. */
static void reach(making *m, uint32_t from, members *set) {
    size_t waiting = 0;
    m->waiting[waiting++] = from;
    while (waiting && m->status == FR_OK) {
        uint32_t number = m->waiting[--waiting];
        node *n = &m->nodes[number];
        if (n->seen == m->search) continue;
        n->seen = m->search;
        m->work++;
        set->ends |= n->kind == NODE_END;
        if (n->kind == NODE_SPLIT) m->waiting[waiting++] = n->other;
        if (n->kind == NODE_SPLIT) m->waiting[waiting++] = n->next;
        if (n->kind != NODE_CHARACTER) continue;
        if (!grow(m, &m->pool, sizeof *m->pool, set->first + set->count + 1, MAX_MEMBERS, &m->pool_capacity)) return;
        m->pool[set->first + set->count++] = number;
    }
}

static members begin_set(making *m) {
    m->search++;
    return (members){(uint32_t)m->pool_count, 0, false};
}

/* The state of the set at the pool's end. */
static uint32_t find_set(making *m, members set) {
    size_t size = set.count * sizeof *m->pool;
    if (m->status != FR_OK || set.count + set.ends == 0) return UINT32_MAX;
    if (set.count > 1) qsort(m->pool + set.first, set.count, sizeof *m->pool, by_number);
    size_t at = (size ? fr_hash(set.ends, m->pool + set.first, size) : set.ends) & (4 * MAX_STATES - 1);
    for (; m->table[at]; at = (at + 1) & (4 * MAX_STATES - 1)) {
        const members *found = &m->sets[m->table[at] - 1];
        if (found->count == set.count && found->ends == set.ends &&
            (size == 0 || memcmp(m->pool + found->first, m->pool + set.first, size) == 0))
            return m->table[at] - 1;
    }
    if (m->set_count == MAX_STATES) {
        m->status = fr_language_fail_size();
        return UINT32_MAX;
    }
    m->pool_count = set.first + set.count;
    m->sets[m->set_count++] = set;
    return m->table[at] = (uint32_t)m->set_count, (uint32_t)m->set_count - 1;
}

/* Where the ranges of a set's nodes begin, and the characters behind their ends, sorted. */
static size_t list_bounds(making *m, members set) {
    size_t count = 0, kept = 0;
    for (uint32_t i = 0; i < set.count; i++) {
        const node *n = &m->nodes[m->pool[set.first + i]];
        if (!grow(m, &m->bounds, sizeof *m->bounds, count + 2 * n->count, MAX_MEMBERS, &m->bound_capacity)) return 0;
        for (uint32_t k = 0; k < n->count; k++) {
            m->bounds[count++] = m->rules->ranges[n->first + k].low;
            m->bounds[count++] = m->rules->ranges[n->first + k].high + 1;
        }
    }
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

/* The edges of a state: from bound to bound all characters lead to one state. */
static void leave(making *m, members set) {
    size_t bounds = list_bounds(m, set);
    if (m->status == FR_OK) m->status = fr_language_add_state(m->language, set.ends);
    for (size_t b = 0; b + 1 < bounds && m->status == FR_OK; b++) {
        members next = begin_set(m);
        for (uint32_t i = 0; i < set.count && m->status == FR_OK; i++) {
            const node *n = &m->nodes[m->pool[set.first + i]];
            m->work++;
            if (reads(m, n, m->bounds[b])) reach(m, n->next, &next);
        }
        if (m->work > MAX_WORK && m->status == FR_OK) m->status = fr_language_fail_size();
        uint32_t to = find_set(m, next);
        if (to != UINT32_MAX && m->status == FR_OK)
            m->status = fr_language_add_edge(m->language, m->bounds[b], m->bounds[b + 1] - 1, to);
    }
}

/* -------------------------------------------------------------------------------------------------------------- all */

static fr_status determine(making *m, fr_expression expression) {
    add(m, (node){.kind = NODE_END});
    uint32_t entry = make(m, expression, END, 0);
    m->waiting = malloc((2 * m->node_count + 2) * sizeof *m->waiting);
    m->sets = malloc(MAX_STATES * sizeof *m->sets);
    m->table = calloc(4 * MAX_STATES, sizeof *m->table);
    if (m->status == FR_OK && (!m->waiting || !m->sets || !m->table))
        m->status = fr_fail_memory("an automaton", 4 * MAX_STATES * sizeof *m->table);
    if (m->status != FR_OK) return m->status;
    members first = begin_set(m);
    reach(m, entry, &first);
    find_set(m, first);
    for (size_t i = 0; i < m->set_count && m->status == FR_OK; i++) leave(m, m->sets[i]);
    m->language->work = m->work + m->node_count;
    return m->status == FR_OK ? fr_language_trim(m->language) : m->status;
}

fr_status fr_language_of(const fr_grammar_rules *rules, fr_expression expression, fr_language **language) {
    making m = {.rules = rules, .language = calloc(1, sizeof *m.language)};
    *language = NULL;
    fr_status status = fr_grammar_rules_check(rules);
    if (!m.language) status = fr_fail_memory("an automaton", sizeof *m.language);
    if (status == FR_OK && rules->expression_count == 0) status = fr_language_of_text((fr_text){"", 0}, language);
    if (status == FR_OK && rules->expression_count) status = determine(&m, expression);
    free(m.nodes);
    free(m.waiting);
    free(m.pool);
    free(m.bounds);
    free(m.table);
    free(m.sets);
    if (status == FR_OK && !*language)
        *language = m.language;
    else
        fr_language_free(m.language);
    return status;
}

fr_status fr_language_of_regex(fr_text text, bool whole, fr_language **language) {
    fr_grammar_rules rules = {0};
    fr_expression expression;
    *language = NULL;
    fr_status status = fr_regex_expression(text, whole, fr_expression_characters, &rules, &expression);
    if (status == FR_OK) status = fr_language_of(&rules, expression, language);
    fr_grammar_rules_free(&rules);
    return status;
}
