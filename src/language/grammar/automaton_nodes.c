/* Makes the nodes of rules (automaton_nodes.h). To make an expression, the node that follows it is needed, so
 * expressions are made from their end to their beginning. */
#include "src/language/grammar/automaton_nodes.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "src/language/grammar/token_tree.h"

#define NODES_MAX (1u << 20)
#define DEPTH_MAX 400 /* limit on nested expressions */
#define END       0u  /* the node that ends every rule */

typedef struct making {
    fr_grammar_nodes *nodes;
    const fr_grammar_rules *rules;
    uint16_t *sizes;    /* the size of each rule's body: see size_of_rule */
    uint8_t *empty;     /* [rules] kept answers of may_be_empty */
    uint32_t *nonempty; /* [rules] 1 + the number of the rule that allows the same texts without the empty one; 0: it is
                         * not made yet */
    bool counting;      /* inside a loop that counts */
    fr_status status;
} making;

/* Makes room for one more item. If there is no room, stores the failure in `m` and returns false. */
static bool make_room(making *m, void *items, size_t size, size_t count, size_t *capacity) {
    void **at = items;
    if (m->status == FR_OK && count == NODES_MAX)
        m->status = fr_fail(FR_INPUT, "the grammar is too large: its repetitions have more than %u parts", NODES_MAX);
    if (m->status != FR_OK) return false;
    if (count < *capacity) return true;
    size_t wanted = count ? 2 * count : 256;
    void *grown = realloc(*at, wanted * size);
    if (!grown) m->status = fr_fail_memory("a grammar", wanted * size);
    if (!grown) return false;
    *at = grown;
    *capacity = wanted;
    return true;
}

static uint32_t add(making *m, fr_grammar_node node) {
    fr_grammar_nodes *n = m->nodes;
    if (!make_room(m, &n->items, sizeof *n->items, n->count, &n->capacity)) return END;
    n->items[n->count] = node;
    return (uint32_t)n->count++;
}

static uint32_t add_split(making *m, uint32_t next, uint32_t other) {
    return add(m, (fr_grammar_node){.kind = FR_NODE_SPLIT, .next = next, .other = other});
}

/* ------------------------------------------------------------------------------------------------------- characters */

/* A set of characters whose encodings have the same length, given by a range for each byte. Every combination of bytes
 * within the ranges is one of the characters. */
typedef struct byte_run {
    uint8_t length, low[4], high[4];
} byte_run;

/* The byte runs of a class of characters, sorted. any[n]: a node that begins to read n continuation bytes of any value;
 * it is made only once. */
typedef struct characters {
    making *m;
    uint32_t next, any[4];
    byte_run *runs;
    size_t count, capacity;
} characters;

static uint32_t any_end(characters *c, size_t bytes) {
    if (bytes == 0) return c->next;
    if (!c->any[bytes]) {
        uint32_t next = any_end(c, bytes - 1);
        c->any[bytes] = add(c->m, (fr_grammar_node){.kind = FR_NODE_BYTE, .low = 0x80, .high = 0xBF, .next = next});
    }
    return c->any[bytes];
}

size_t fr_utf8_encode(uint32_t code, uint8_t *bytes) {
    if (code < 0x80) return bytes[0] = (uint8_t)code, 1;
    size_t length = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    for (size_t i = length; i-- > 1; code >>= 6) bytes[i] = (uint8_t)(0x80 | (code & 0x3F));
    bytes[0] = (uint8_t)(0xF00 >> length | code);
    return length;
}

static void add_bytes(characters *c, uint32_t low, uint32_t high) {
    byte_run run;
    if (!make_room(c->m, &c->runs, sizeof run, c->count, &c->capacity)) return;
    run.length = (uint8_t)fr_utf8_encode(low, run.low);
    fr_utf8_encode(high, run.high);
    c->runs[c->count++] = run;
}

/* Adds a range of characters whose encodings have the same length. Cuts the range into parts that are byte runs. In
 * each part the first bytes are fixed, the next byte has a range, and all bytes after it take all values of a
 * continuation byte. */
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
        {0, 0x7F}, {0x80, 0x7FF}, {0x800, 0xD7FF}, {0xE000, 0xFFFF}, {0x10000, FR_CODE_POINT_MAX}};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        uint32_t from = low > lengths[i].low ? low : lengths[i].low,
                 to = high < lengths[i].high ? high : lengths[i].high;
        if (from <= to && i == 0) add_bytes(c, from, to);
        if (from <= to && i > 0) add_same_length(c, from, to);
    }
}

/* Makes the nodes that read runs from their byte number `at` on. Runs with the same beginning share a node, so that a
 * state has few places while a character of a large class is read. */
static uint32_t make_runs(characters *c, const byte_run *runs, size_t count, size_t at) {
    uint32_t entry = END;
    size_t left = runs->length - at, end;
    bool any = left > 0;
    for (size_t i = at; i < runs->length; i++) any &= runs->low[i] == 0x80 && runs->high[i] == 0xBF;
    if (left == 0 || (count == 1 && any && at > 0)) return any_end(c, left);
    for (size_t i = 0; i < count; i = end) {
        for (end = i + 1; end < count && runs[end].low[at] == runs[i].low[at];) end++;
        uint32_t next = make_runs(c, runs + i, end - i, at + 1);
        fr_grammar_node node = {.kind = FR_NODE_BYTE, .low = runs[i].low[at], .high = runs[i].high[at], .next = next};
        next = add(c->m, node);
        entry = i ? add_split(c->m, entry, next) : next;
    }
    return entry;
}

/* Makes the nodes of a class of characters. A class without ranges becomes a node that can read no byte. */
static uint32_t make_characters(making *m, const fr_expression_node *e, uint32_t next) {
    characters c = {.m = m, .next = next};
    const fr_character_range *ranges = m->rules->ranges + e->first;
    for (size_t i = 0; i < e->second; i++) add_range(&c, ranges[i].low, ranges[i].high);
    uint32_t entry = c.count ? make_runs(&c, c.runs, c.count, 0)
                             : add(m, (fr_grammar_node){.kind = FR_NODE_BYTE, .low = 1, .high = 0, .next = next});
    free(c.runs);
    return entry;
}

static uint32_t make_token(making *m, const fr_expression_node *e, uint32_t next) {
    uint8_t sign[FR_TOKEN_SIZE];
    fr_token_sign((int32_t)e->first, sign);
    for (size_t i = sizeof sign; i-- > 0;)
        next = add(m, (fr_grammar_node){.kind = FR_NODE_BYTE, .low = sign[i], .high = sign[i], .next = next});
    return next;
}

/* ------------------------------------------------------------------------------------------------------ small rules */

/* A small rule is copied to the places that refer to it. A rule that is large, or that repeats without end, is called
 * instead. The part of a mask that lies within a called rule is computed once for many states. For a rule such as a
 * whole string, that saves more than a call costs; for a rule of one character it does not. A reference at the end of a
 * rule is always a call, because such a call needs no frame and so costs nothing. (The states of a language become such
 * rules, each of which ends by calling the next.)
 *
 * The enumerators are values of `sizes`. A small rule has SIZE_BASE plus its size. */
enum { NOT_SEEN, BEING_SEEN, LARGE, SIZE_BASE };
#define COPIED_MAX 256 /* limit on the ranges and rules of a copied body; each counts as often as it is repeated */
#define WIDE_RANGE 8   /* a range of characters of several bytes counts as this many ranges of one byte */

static size_t size_of(making *m, fr_expression expression, size_t depth);

static size_t size_of_rule(making *m, uint32_t rule, size_t depth) {
    uint16_t *size = &m->sizes[rule];
    if (*size == NOT_SEEN) {
        *size = BEING_SEEN;
        size_t found = size_of(m, m->rules->bodies[rule], depth + 1);
        *size = found > COPIED_MAX ? LARGE : (uint16_t)(SIZE_BASE + found);
    }
    return *size < SIZE_BASE ? COPIED_MAX + 1 : *size - SIZE_BASE;
}

/* Gives the size of an expression. A size above COPIED_MAX means that the expression is too large to be copied, or
 * repeats without end. */
static size_t size_of(making *m, fr_expression expression, size_t depth) {
    const fr_expression_node *e = &m->rules->expressions[expression];
    size_t size = 0, one;
    if (depth >= DEPTH_MAX) return COPIED_MAX + 1;
    for (; e->kind == FR_EXPRESSION_SEQUENCE || e->kind == FR_EXPRESSION_CHOICE; e = &m->rules->expressions[e->first]) {
        size += size_of(m, e->second, depth + 1);
        if (size > COPIED_MAX) return size;
    }
    switch (e->kind) {
    case FR_EXPRESSION_CHARACTER:
        for (uint32_t i = 0; i < e->second; i++) size += m->rules->ranges[e->first + i].high < 0x80 ? 1 : WIDE_RANGE;
        return size;
    case FR_EXPRESSION_TOKEN: return size + 1;
    case FR_EXPRESSION_RULE: return size + 1 + size_of_rule(m, e->first, depth);
    case FR_EXPRESSION_REPEAT:
        one = e->most > COPIED_MAX ? COPIED_MAX + 1 : size_of(m, e->first, depth + 1);
        return one > COPIED_MAX ? COPIED_MAX + 1 : size + e->most * one;
    case FR_EXPRESSION_COUNT:
    case FR_EXPRESSION_COUNTED: return COPIED_MAX + 1; /* never copied: a copy would need the only counter of a rule */
    default: return size;
    }
}

/* ------------------------------------------------------------------------------------------------------ empty texts */

enum { UNASKED, NEVER_EMPTY, EMPTY_TOO };

/* Returns true if the expression allows the empty text. A rule that is met again within itself counts as not empty,
 * because it allows no empty text that was not found before. */
static bool may_be_empty(making *m, fr_expression expression, size_t depth) {
    const fr_expression_node *e = &m->rules->expressions[expression];
    if (depth >= DEPTH_MAX) return false; /* `make` refuses expressions that are this deep */
    for (; e->kind == FR_EXPRESSION_CHOICE || e->kind == FR_EXPRESSION_SEQUENCE; e = &m->rules->expressions[e->first])
        if (may_be_empty(m, e->second, depth + 1) == (e->kind == FR_EXPRESSION_CHOICE))
            return e->kind == FR_EXPRESSION_CHOICE;
    switch (e->kind) {
    case FR_EXPRESSION_CHARACTER:
    case FR_EXPRESSION_TOKEN: return false;
    case FR_EXPRESSION_REPEAT: return e->second == 0 || may_be_empty(m, e->first, depth + 1);
    case FR_EXPRESSION_RULE:
        if (m->empty[e->first] == UNASKED) {
            m->empty[e->first] = NEVER_EMPTY;
            if (may_be_empty(m, m->rules->bodies[e->first], depth + 1)) m->empty[e->first] = EMPTY_TOO;
        }
        return m->empty[e->first] == EMPTY_TOO;
    default: return true;
    }
}

/* ---------------------------------------------------------------------------------------------------- counted parts */

/* Finds the limit with these bounds, or adds it. The search begins with the newest limit, which usually has these
 * bounds. */
static uint32_t limit_of(making *m, uint32_t least, uint32_t most) {
    fr_grammar_nodes *n = m->nodes;
    for (size_t i = n->limit_count; i > 0 && i + 16 > n->limit_count; i--)
        if (n->limits[i - 1].least == least && n->limits[i - 1].most == most) return (uint32_t)i - 1;
    if (!make_room(m, &n->limits, sizeof *n->limits, n->limit_count, &n->limit_capacity)) return 0;
    n->limits[n->limit_count] = (fr_count_limit){least, most, FR_TREE_DEPTH_MAX + 1};
    return (uint32_t)n->limit_count++;
}

static uint32_t make_count(making *m, uint32_t limit, uint32_t behind, bool exactly, uint32_t next) {
    fr_grammar_nodes *n = m->nodes;
    if (!make_room(m, &n->counts, sizeof *n->counts, n->step_count, &n->step_capacity)) return END;
    uint32_t margin = FR_TREE_DEPTH_MAX + 1 + behind;
    if (n->limits[limit].margin < margin) n->limits[limit].margin = margin;
    n->counts[n->step_count] = (fr_count_step){limit, behind, exactly};
    return add(m, (fr_grammar_node){.kind = FR_NODE_COUNT, .next = next, .other = (uint32_t)n->step_count++});
}

static uint32_t make_counted(making *m, uint32_t limit, uint32_t next) {
    return add(m, (fr_grammar_node){.kind = FR_NODE_COUNTED, .next = next, .other = limit});
}

/* Adds a rule that the grammar does not contain. The caller sets its entry later. */
static uint32_t add_rule(making *m) {
    fr_grammar_nodes *n = m->nodes;
    if (!make_room(m, &n->entries, sizeof *n->entries, n->rules, &n->rule_capacity)) return 0;
    n->entries[n->rules] = END;
    return (uint32_t)n->rules++;
}

static uint32_t add_call(making *m, uint32_t rule, uint32_t next) {
    return add(m, (fr_grammar_node){.kind = FR_NODE_CALL, .next = next, .other = rule});
}

/* ------------------------------------------------------------------------------------------------------ expressions */

static uint32_t make(making *m, fr_expression expression, uint32_t next, size_t depth);
static uint32_t make_nonempty(making *m, fr_expression expression, uint32_t next, size_t depth);

/* Makes `least` copies of a body. After them come as many optional copies as the largest count allows; if there is no
 * largest count, a loop. */
static uint32_t make_copies(making *m, const fr_expression_node *e, uint32_t next, size_t depth) {
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
        if (entry == before) break; /* the body can only be the empty text */
    }
    return entry;
}

/* Makes a loop that counts. nonempty: the body's empty text is not allowed, so that each repetition reads at least one
 * byte. */
static uint32_t make_loop(making *m, const fr_expression_node *e, uint32_t least, bool nonempty, uint32_t next,
                          size_t depth) {
    bool outer = m->counting;
    uint32_t rule = outer ? add_rule(m) : 0, end = outer ? END : next;
    uint32_t limit = limit_of(m, least, e->most), head = add_split(m, END, END);
    m->counting = true;
    uint32_t body = nonempty ? make_nonempty(m, e->first, head, depth) : make(m, e->first, head, depth);
    m->counting = outer;
    uint32_t again = make_count(m, limit, 0, false, body), out = make_counted(m, limit, end);
    if (m->status != FR_OK) return END;
    m->nodes->items[head].next = again;
    m->nodes->items[head].other = out;
    if (!outer) return head;
    m->nodes->entries[rule] = head;
    return add_call(m, rule, next);
}

/* Repeats a body. If many copies would be needed and the body may be empty, the least count becomes 0, because missing
 * repetitions can be empty texts. */
static uint32_t make_repeat(making *m, const fr_expression_node *e, uint32_t least, uint32_t next, size_t depth) {
    fr_expression_node copied = *e;
    size_t times = e->most == FR_GRAMMAR_UNBOUND ? least : e->most;
    bool few = times < 2 || (times <= COPIED_MAX && times * size_of(m, e->first, depth) <= COPIED_MAX);
    bool empty = !few && may_be_empty(m, e->first, depth);
    copied.second = empty ? 0 : least;
    if (few || (empty && e->most == FR_GRAMMAR_UNBOUND)) return make_copies(m, &copied, next, depth);
    return make_loop(m, e, copied.second, empty, next, depth);
}

/* Makes a choice. The last alternative is made first. */
static uint32_t make_choice(making *m, const fr_expression_node *e, uint32_t next, size_t depth) {
    uint32_t others = make(m, e->second, next, depth);
    for (; m->rules->expressions[e->first].kind == FR_EXPRESSION_CHOICE;) {
        e = &m->rules->expressions[e->first];
        others = add_split(m, make(m, e->second, next, depth), others);
    }
    return add_split(m, make(m, e->first, next, depth), others);
}

/* Makes the nodes of an expression, and gives the first node. Sequences are made from their end. */
static uint32_t make(making *m, fr_expression expression, uint32_t next, size_t depth) {
    const fr_expression_node *e = &m->rules->expressions[expression];
    if (depth == DEPTH_MAX && m->status == FR_OK)
        m->status = fr_fail(FR_INPUT, "the grammar is nested more than %d deep", DEPTH_MAX);
    for (; m->status == FR_OK && e->kind == FR_EXPRESSION_SEQUENCE; e = &m->rules->expressions[e->first])
        next = make(m, e->second, next, depth + 1);
    if (m->status != FR_OK) return END;
    switch (e->kind) {
    case FR_EXPRESSION_CHARACTER: return make_characters(m, e, next);
    case FR_EXPRESSION_TOKEN: return make_token(m, e, next);
    case FR_EXPRESSION_CHOICE: return make_choice(m, e, next, depth + 1);
    case FR_EXPRESSION_REPEAT: return make_repeat(m, e, e->second, next, depth + 1);
    case FR_EXPRESSION_COUNT:
        return make_count(m, limit_of(m, e->first, e->second), e->most & ~FR_COUNT_EXACTLY, e->most & FR_COUNT_EXACTLY,
                          next);
    case FR_EXPRESSION_COUNTED: return make_counted(m, limit_of(m, e->first, e->second), next);
    case FR_EXPRESSION_LOOK: m->status = fr_fail(FR_UNBUILT, "look-around is not built here"); return END;
    case FR_EXPRESSION_RULE:
        if (next != END && size_of_rule(m, e->first, depth) <= COPIED_MAX)
            return make(m, m->rules->bodies[e->first], next, depth + 1);
        return add_call(m, e->first, next);
    default: return next;
    }
}

/* Calls a new rule that allows the texts of `rule` without the empty text. The new rule gets its number before its
 * nodes are made, because it may call itself. */
static uint32_t call_nonempty(making *m, uint32_t rule, uint32_t next, size_t depth) {
    if (!m->nonempty[rule]) {
        uint32_t own = add_rule(m);
        bool outer = m->counting;
        m->nonempty[rule] = own + 1;
        m->counting = false;
        uint32_t entry = make_nonempty(m, m->rules->bodies[rule], END, depth + 1);
        m->counting = outer;
        if (m->status == FR_OK) m->nodes->entries[own] = entry;
    }
    return add_call(m, m->nonempty[rule] - 1, next);
}

/* Makes the nodes of an expression as `make` does, but without those for the empty text. */
static uint32_t make_nonempty(making *m, fr_expression expression, uint32_t next, size_t depth) {
    const fr_expression_node *e = &m->rules->expressions[expression];
    if (!may_be_empty(m, expression, depth)) return make(m, expression, next, depth);
    if (depth >= DEPTH_MAX && m->status == FR_OK)
        m->status = fr_fail(FR_INPUT, "the grammar is nested more than %d deep", DEPTH_MAX);
    if (m->status != FR_OK) return END;
    uint32_t others;
    switch (e->kind) {
    case FR_EXPRESSION_CHOICE:
        others = make_nonempty(m, e->second, next, depth + 1);
        for (; m->rules->expressions[e->first].kind == FR_EXPRESSION_CHOICE;) {
            e = &m->rules->expressions[e->first];
            others = add_split(m, make_nonempty(m, e->second, next, depth + 1), others);
        }
        return add_split(m, make_nonempty(m, e->first, next, depth + 1), others);
    case FR_EXPRESSION_SEQUENCE:
        others = make_nonempty(m, e->second, next, depth + 1);
        return add_split(m, make_nonempty(m, e->first, make(m, e->second, next, depth + 1), depth + 1), others);
    case FR_EXPRESSION_REPEAT:
        if (!may_be_empty(m, e->first, depth)) return make_repeat(m, e, 1, next, depth + 1);
        return make_loop(m, e, 1, true, next, depth + 1);
    case FR_EXPRESSION_RULE: return call_nonempty(m, e->first, next, depth);
    default: /* only the empty text is left, so this makes a node that can read no byte */
        return add(m, (fr_grammar_node){.kind = FR_NODE_BYTE, .low = 1, .high = 0});
    }
}

/* ----------------------------------------------------------------------------------------- rules that allow nothing */

/* The links between nodes, as one list for each node to which links lead. Link 2n leads from node n to its `next`. Link
 * 2n + 1 leads from node n to its `other`, or to the rule that it calls. */
typedef struct links {
    /* first: [nodes] the first link that leads to the node. next: [2 nodes] the next link of the same list. Both store
     * 1 + the link's number; 0: there is none. */
    uint32_t *first, *next;
    uint32_t *waiting; /* [nodes] live nodes; the links that lead to them must still be followed */
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

/* Finds the live nodes, which are those from which the end of their rule can be reached. A node is live if a node to
 * which it leads is live. A call is live if both its rule and the node after it are live. */
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
    uint8_t *rules;    /* [rules] what is known of each rule: one of the enumerators above */
    bool *seen;        /* [nodes] the node was visited */
    uint32_t *waiting; /* [nodes] a stack that nested calls share */
    size_t depth;
} beginnings;

/* Returns true if a text can pass the node without reading a byte. The end of a count can't be passed in this way if
 * its least count is above 0, because each repetition reads a byte. */
static bool passes(const beginnings *b, const fr_grammar_node *node) {
    if (node->kind == FR_NODE_CALL) return b->rules[node->other] == MAY_BE_EMPTY;
    return node->kind != FR_NODE_COUNTED || b->nodes->limits[node->other].least == 0;
}

/* Finds out if a rule allows the empty text, and refuses rules that begin with themselves. */
static fr_status look_at_rule(beginnings *b, uint32_t rule, size_t bottom) {
    const fr_grammar_nodes *n = b->nodes;
    if (b->rules[rule] >= CONSUMES) return FR_OK;
    if (b->rules[rule] == ASKED)
        return fr_fail(FR_INPUT, "a rule of the grammar begins with itself: write what repeats behind it instead");
    if (++b->depth > DEPTH_MAX)
        return fr_fail(FR_INPUT, "the grammar has more than %d rules that begin with each other", DEPTH_MAX);
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
        if (passes(b, node)) b->waiting[top++] = node->next;
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

/* -------------------------------------------------------------------------------------------------------- all nodes */

static fr_status make_all(fr_grammar_nodes *n, const fr_grammar_rules *rules) {
    const size_t count = rules->rule_count;
    making m = {.nodes = n,
                .rules = rules,
                .sizes = calloc(count, sizeof *m.sizes),
                .empty = calloc(count, sizeof *m.empty),
                .nonempty = calloc(count, sizeof *m.nonempty)};
    n->rules = n->rule_capacity = count;
    n->root = rules->root;
    n->entries = calloc(count, sizeof *n->entries);
    if (!n->entries || !m.sizes || !m.empty || !m.nonempty) m.status = fr_fail_memory("a grammar", count * 16);
    add(&m, (fr_grammar_node){.kind = FR_NODE_END});
    for (size_t rule = 0; m.status == FR_OK && rule < count; rule++) {
        uint32_t entry = make(&m, rules->bodies[rule], END, 0);
        n->entries[rule] = entry;
    }
    free(m.sizes);
    free(m.empty);
    free(m.nonempty);
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
    free(nodes->limits);
    free(nodes->counts);
    free(nodes->entries);
    *nodes = (fr_grammar_nodes){0};
}
