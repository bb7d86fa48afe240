/* Nodes of rules: see automaton_nodes.h. Each expression is made with the node that comes behind it at hand, so it is
 * made from its end to its beginning. */
#include "src/grammar/automaton_nodes.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "src/grammar/token_tree.h"

#define MAX_NODES (1u << 20)
#define MAX_DEPTH 400 /* of expressions in expressions */
#define END       0u  /* the node of all rules' ends */

typedef struct making {
    fr_grammar_nodes *nodes;
    const fr_grammar_rules *rules;
    uint16_t *sizes; /* by rule, of its body: see size_of_rule */
    fr_status status;
} making;

static uint32_t add(making *m, fr_grammar_node node) {
    fr_grammar_nodes *n = m->nodes;
    if (m->status != FR_OK) return END;
    if (n->count == MAX_NODES) {
        m->status = fr_fail(FR_INPUT, "the grammar is too large: its repetitions have more than %u parts", MAX_NODES);
        return END;
    }
    if (n->count == n->capacity) {
        size_t wanted = n->capacity ? 2 * n->capacity : 256;
        fr_grammar_node *grown = realloc(n->items, wanted * sizeof *grown);
        if (!grown) m->status = fr_fail_memory("a grammar", wanted * sizeof *grown);
        if (!grown) return END;
        n->items = grown;
        n->capacity = wanted;
    }
    n->items[n->count] = node;
    return (uint32_t)n->count++;
}

static uint32_t add_split(making *m, uint32_t next, uint32_t other) {
    return add(m, (fr_grammar_node){.kind = FR_NODE_SPLIT, .next = next, .other = other});
}

/* ------------------------------------------------------------------------------------------------------- characters */

/* The ways through the bytes of some ranges of characters: `any` is the node that reads so many bytes of a character's
 * end, whatever they are, made once. */
typedef struct characters {
    making *m;
    uint32_t next, any[4], entry;
    bool some;
} characters;

static void add_way(characters *c, uint32_t entry) {
    c->entry = c->some ? add_split(c->m, entry, c->entry) : entry;
    c->some = true;
}

static uint32_t any_end(characters *c, size_t bytes) {
    if (bytes == 0) return c->next;
    if (!c->any[bytes]) {
        uint32_t next = any_end(c, bytes - 1);
        c->any[bytes] = add(c->m, (fr_grammar_node){.kind = FR_NODE_BYTE, .low = 0x80, .high = 0xBF, .next = next});
    }
    return c->any[bytes];
}

static size_t encode(uint32_t code, uint8_t *bytes) {
    if (code < 0x80) return bytes[0] = (uint8_t)code, 1;
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; code >>= 6) bytes[i] = (uint8_t)(0x80 | (code & 0x3F));
    bytes[0] = (uint8_t)(0xF00 >> length | code);
    return length;
}

/* Characters of one length whose bytes vary independently of each other. */
static void add_bytes(characters *c, uint32_t low, uint32_t high) {
    uint8_t from[4], to[4];
    size_t length = encode(low, from), free_bytes = 0;
    encode(high, to);
    while (free_bytes < length - 1 && from[length - 1 - free_bytes] == 0x80 && to[length - 1 - free_bytes] == 0xBF)
        free_bytes++;
    uint32_t next = any_end(c, free_bytes);
    for (size_t i = length - free_bytes; i-- > 0;)
        next = add(c->m, (fr_grammar_node){.kind = FR_NODE_BYTE, .low = from[i], .high = to[i], .next = next});
    add_way(c, next);
}

/* Characters of one length: cut where a byte's range is not the whole one behind another that varies. */
static void add_same_length(characters *c, uint32_t low, uint32_t high) {
    for (uint32_t mask = 0x3F; mask < high && mask < 0xFFFFFF; mask = mask << 6 | 0x3F) {
        if ((low & ~mask) == (high & ~mask)) continue;
        if (low & mask) {
            add_same_length(c, low, low | mask);
            add_same_length(c, (low | mask) + 1, high);
            return;
        }
        if ((high & mask) != mask) {
            add_same_length(c, low, (high & ~mask) - 1);
            add_same_length(c, high & ~mask, high);
            return;
        }
    }
    add_bytes(c, low, high);
}

static void add_range(characters *c, uint32_t low, uint32_t high) {
    static const fr_character_range lengths[] = {
        {0, 0x7F}, {0x80, 0x7FF}, {0x800, 0xD7FF}, {0xE000, 0xFFFF}, {0x10000, FR_MAX_CODE_POINT}};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        uint32_t from = low > lengths[i].low ? low : lengths[i].low,
                 to = high < lengths[i].high ? high : lengths[i].high;
        if (from <= to && i == 0) add_bytes(c, from, to);
        if (from <= to && i > 0) add_same_length(c, from, to);
    }
}

/* No range at all: a node that nothing leads on from. */
static uint32_t make_characters(making *m, const fr_expression_node *e, uint32_t next) {
    characters c = {.m = m, .next = next};
    const fr_character_range *ranges = m->rules->ranges + e->first;
    for (size_t i = e->second; i-- > 0;) add_range(&c, ranges[i].low, ranges[i].high);
    return c.some ? c.entry : add(m, (fr_grammar_node){.kind = FR_NODE_BYTE, .low = 1, .high = 0, .next = next});
}

static uint32_t make_token(making *m, const fr_expression_node *e, uint32_t next) {
    uint8_t sign[FR_TOKEN_SIZE];
    fr_token_sign((int32_t)e->first, sign);
    for (size_t i = sizeof sign; i-- > 0;)
        next = add(m, (fr_grammar_node){.kind = FR_NODE_BYTE, .low = sign[i], .high = sign[i], .next = next});
    return next;
}

/* ------------------------------------------------------------------------------------------------------ small rules */

/* A rule that neither repeats without end nor is large is copied to where it is spoken of: what a mask has in common
 * with others ends where a rule does, so a rule for a string is worth one of its own, and one for its characters
 * not. At another rule's end it is called, small or not: that takes no place to return to, so it costs nothing, and the
 * states of an automaton, a rule each that ends with another, stay as few as they are. */
enum { NOT_SEEN, BEING_SEEN, LARGE, SIZE_BASE };
#define MAX_COPIED 256 /* ranges and rules of a body, repetitions counted out */

static size_t size_of(making *m, fr_expression expression, size_t depth);

static size_t size_of_rule(making *m, uint32_t rule, size_t depth) {
    uint16_t *size = &m->sizes[rule];
    if (*size == NOT_SEEN) {
        *size = BEING_SEEN;
        size_t found = size_of(m, m->rules->bodies[rule], depth + 1);
        *size = found > MAX_COPIED ? LARGE : (uint16_t)(SIZE_BASE + found);
    }
    return *size < SIZE_BASE ? MAX_COPIED + 1 : *size - SIZE_BASE;
}

/* Anything above MAX_COPIED: too large, or without end. */
static size_t size_of(making *m, fr_expression expression, size_t depth) {
    const fr_expression_node *e = &m->rules->expressions[expression];
    size_t size = 0, one;
    if (depth >= MAX_DEPTH) return MAX_COPIED + 1;
    for (; e->kind == FR_EXPRESSION_SEQUENCE || e->kind == FR_EXPRESSION_CHOICE; e = &m->rules->expressions[e->first]) {
        size += size_of(m, e->second, depth + 1);
        if (size > MAX_COPIED) return size;
    }
    switch (e->kind) {
    case FR_EXPRESSION_CHARACTER: return size + e->second;
    case FR_EXPRESSION_TOKEN: return size + 1;
    case FR_EXPRESSION_RULE: return size + 1 + size_of_rule(m, e->first, depth);
    case FR_EXPRESSION_REPEAT:
        one = e->most > MAX_COPIED ? MAX_COPIED + 1 : size_of(m, e->first, depth + 1);
        return one > MAX_COPIED ? MAX_COPIED + 1 : size + e->most * one;
    default: return size;
    }
}

/* ------------------------------------------------------------------------------------------------------ expressions */

static uint32_t make(making *m, fr_expression expression, uint32_t next, size_t depth);

/* least copies, then as many more as may be, or a loop. */
static uint32_t make_repeat(making *m, const fr_expression_node *e, uint32_t next, size_t depth) {
    uint32_t entry = next;
    if (e->most == FR_GRAMMAR_UNBOUND) {
        entry = add_split(m, next, next);
        uint32_t body = make(m, e->first, entry, depth);
        if (m->status == FR_OK) m->nodes->items[entry].next = body;
    } else {
        for (uint32_t i = e->second; i < e->most && m->status == FR_OK; i++)
            entry = add_split(m, make(m, e->first, entry, depth), next);
    }
    for (uint32_t i = 0, before; i < e->second && m->status == FR_OK; i++) {
        before = entry;
        entry = make(m, e->first, entry, depth);
        if (entry == before) break; /* of the empty text */
    }
    return entry;
}

/* One of several. The last is made first. */
static uint32_t make_choice(making *m, const fr_expression_node *e, uint32_t next, size_t depth) {
    uint32_t others = make(m, e->second, next, depth);
    for (; m->rules->expressions[e->first].kind == FR_EXPRESSION_CHOICE;) {
        e = &m->rules->expressions[e->first];
        others = add_split(m, make(m, e->second, next, depth), others);
    }
    return add_split(m, make(m, e->first, next, depth), others);
}

/* The node that an expression begins with. Sequences are gone through from their ends. */
static uint32_t make(making *m, fr_expression expression, uint32_t next, size_t depth) {
    const fr_expression_node *e = &m->rules->expressions[expression];
    if (depth == MAX_DEPTH && m->status == FR_OK)
        m->status = fr_fail(FR_INPUT, "the grammar is nested more than %d deep", MAX_DEPTH);
    for (; m->status == FR_OK && e->kind == FR_EXPRESSION_SEQUENCE; e = &m->rules->expressions[e->first])
        next = make(m, e->second, next, depth + 1);
    if (m->status != FR_OK) return END;
    switch (e->kind) {
    case FR_EXPRESSION_CHARACTER: return make_characters(m, e, next);
    case FR_EXPRESSION_TOKEN: return make_token(m, e, next);
    case FR_EXPRESSION_CHOICE: return make_choice(m, e, next, depth + 1);
    case FR_EXPRESSION_REPEAT: return make_repeat(m, e, next, depth + 1);
    case FR_EXPRESSION_RULE:
        if (next != END && size_of_rule(m, e->first, depth) <= MAX_COPIED)
            return make(m, m->rules->bodies[e->first], next, depth + 1);
        return add(m, (fr_grammar_node){.kind = FR_NODE_CALL, .next = next, .other = e->first});
    default: return next;
    }
}

/* ----------------------------------------------------------------------------------------- rules that allow nothing */

/* Who leads where: two links a node, each in the list of the node that it leads to. */
typedef struct links {
    uint32_t *first, *next; /* [nodes], [2 nodes]; link + 1, 0: none */
    uint32_t *waiting;      /* [nodes] live, with what leads there still to be looked at */
    size_t waiting_count;
} links;

static void link_to(links *l, uint32_t to, size_t link) {
    l->next[link] = l->first[to];
    l->first[to] = (uint32_t)link + 1;
}

static void revive(fr_grammar_nodes *n, links *l, uint32_t node) {
    if (n->items[node].live) return;
    n->items[node].live = true;
    l->waiting[l->waiting_count++] = node;
}

/* A node is live if a node that it leads to is; a call, if both its rule and what comes behind are. */
static void find_live(fr_grammar_nodes *n, links *l) {
    for (uint32_t i = 0; i < n->count; i++) {
        const fr_grammar_node *node = &n->items[i];
        if (node->kind == FR_NODE_END || (node->kind == FR_NODE_BYTE && node->low > node->high)) continue;
        link_to(l, node->next, 2 * (size_t)i);
        if (node->kind == FR_NODE_SPLIT) link_to(l, node->other, 2 * (size_t)i + 1);
        if (node->kind == FR_NODE_CALL) link_to(l, n->entries[node->other], 2 * (size_t)i + 1);
    }
    revive(n, l, END);
    while (l->waiting_count) {
        uint32_t reached = l->waiting[--l->waiting_count];
        for (uint32_t link = l->first[reached]; link; link = l->next[link - 1]) {
            const fr_grammar_node *from = &n->items[(link - 1) / 2];
            bool both =
                n->items[from->next].live && (from->kind != FR_NODE_CALL || n->items[n->entries[from->other]].live);
            if (from->kind == FR_NODE_SPLIT || both) revive(n, l, (link - 1) / 2);
        }
    }
}

static fr_status drop_dead_ends(fr_grammar_nodes *n) {
    links l = {.first = calloc(n->count, sizeof *l.first),
               .next = malloc(2 * n->count * sizeof *l.next),
               .waiting = malloc(n->count * sizeof *l.waiting)};
    bool there = l.first && l.next && l.waiting;
    if (there) find_live(n, &l);
    free(l.first);
    free(l.next);
    free(l.waiting);
    if (!there) return fr_fail_memory("a grammar", 4 * n->count * sizeof *l.first);
    return n->items[n->entries[n->root]].live ? FR_OK : fr_fail(FR_INPUT, "the grammar allows no text at all");
}

/* --------------------------------------------------------------------------------- rules that begin with themselves */

enum { UNKNOWN, ASKED, CONSUMES, MAY_BE_EMPTY };

typedef struct beginnings {
    const fr_grammar_nodes *nodes;
    uint8_t *rules;    /* by rule: one of these */
    bool *seen;        /* by node */
    uint32_t *waiting; /* [nodes] a stack that calls share */
    size_t depth;
} beginnings;

/* Whether a rule allows the empty text. */
static fr_status look_at_rule(beginnings *b, uint32_t rule, size_t bottom) {
    const fr_grammar_nodes *n = b->nodes;
    if (b->rules[rule] >= CONSUMES) return FR_OK;
    if (b->rules[rule] == ASKED)
        return fr_fail(FR_INPUT, "a rule of the grammar begins with itself: write what repeats behind it instead");
    if (++b->depth > MAX_DEPTH)
        return fr_fail(FR_INPUT, "the grammar has more than %d rules that begin with each other", MAX_DEPTH);
    b->rules[rule] = ASKED;
    bool empty = false;
    size_t top = bottom;
    b->waiting[top++] = n->entries[rule];
    while (top > bottom) {
        uint32_t at = b->waiting[--top];
        const fr_grammar_node *node = &n->items[at];
        empty |= node->kind == FR_NODE_END;
        if (node->kind == FR_NODE_END || node->kind == FR_NODE_BYTE || b->seen[at]) continue;
        b->seen[at] = true;
        if (node->kind == FR_NODE_CALL) FR_TRY(look_at_rule(b, node->other, top));
        if (node->kind == FR_NODE_SPLIT || b->rules[node->other] == MAY_BE_EMPTY) b->waiting[top++] = node->next;
        if (node->kind == FR_NODE_SPLIT) b->waiting[top++] = node->other;
    }
    b->rules[rule] = empty ? MAY_BE_EMPTY : CONSUMES;
    b->depth--;
    return FR_OK;
}

static fr_status refuse_left_recursion(const fr_grammar_nodes *n) {
    beginnings b = {.nodes = n,
                    .rules = calloc(n->rules, 1),
                    .seen = calloc(n->count, sizeof *b.seen),
                    .waiting = malloc((2 * n->count + n->rules + 1) * sizeof *b.waiting)};
    fr_status status = b.rules && b.seen && b.waiting ? FR_OK : fr_fail_memory("a grammar", 9 * n->count);
    for (uint32_t rule = 0; status == FR_OK && rule < n->rules; rule++) status = look_at_rule(&b, rule, 0);
    free(b.rules);
    free(b.seen);
    free(b.waiting);
    return status;
}

/* -------------------------------------------------------------------------------------------------------------- all */

static fr_status make_all(fr_grammar_nodes *n, const fr_grammar_rules *rules) {
    making m = {.nodes = n, .rules = rules, .sizes = calloc(rules->rule_count, sizeof *m.sizes)};
    if (!m.sizes) return fr_fail_memory("a grammar", rules->rule_count * sizeof *m.sizes);
    n->rules = rules->rule_count;
    n->root = rules->root;
    n->entries = calloc(n->rules, sizeof *n->entries);
    if (!n->entries) m.status = fr_fail_memory("a grammar", n->rules * sizeof *n->entries);
    add(&m, (fr_grammar_node){.kind = FR_NODE_END});
    for (size_t rule = 0; m.status == FR_OK && rule < n->rules; rule++)
        n->entries[rule] = make(&m, rules->bodies[rule], END, 0);
    free(m.sizes);
    FR_TRY(m.status);
    FR_TRY(drop_dead_ends(n));
    return refuse_left_recursion(n);
}

fr_status fr_grammar_nodes_make(fr_grammar_nodes *nodes, const fr_grammar_rules *rules) {
    *nodes = (fr_grammar_nodes){0};
    FR_TRY(fr_grammar_rules_check(rules));
    return make_all(nodes, rules);
}

void fr_grammar_nodes_free(fr_grammar_nodes *nodes) {
    free(nodes->items);
    free(nodes->entries);
    *nodes = (fr_grammar_nodes){0};
}
