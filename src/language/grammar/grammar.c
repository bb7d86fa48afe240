/* Finds the tokens that may come next in a text that follows a grammar (grammar.h). */
#include "src/language/grammar/grammar.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "src/language/grammar/readers.h"
#include "src/language/grammar/text_runs.h"

#define KEPT_BYTES_MAX ((size_t)64 << 20) /* limit on the bytes of all masks that are kept */
#define TEXT_MAX       ((size_t)1 << 20)  /* limit on the bytes of a grammar's text */
#define APART_MAX      64                 /* limit on the tokens in fr_grammar.apart */
/* The number of words of a mask whose combination costs one unit of the automaton's work. Combining this many words
 * takes about as long as a visit to one node of the tree of tokens, which is one unit. */
#define UNIT_WORDS     16

/* Holds what the places of one rule allow: the tokens that end within the rule, and the nodes of the tree at which the
 * rule may end (`returns`). */
typedef struct local_mask {
    uint64_t *bits; /* NULL: not made yet */
    uint32_t *returns;
    size_t return_count, cost; /* cost: the work of making this mask */
} local_mask;

struct fr_grammar {
    const fr_token_tree *tree;
    fr_automaton *automaton;
    fr_text_runs runs;
    local_mask *locals; /* [states] for each state that is the *local of a part (fr_automaton_part): what its places
                         * allow */
    uint64_t **masks;   /* [states] the masks that are kept; NULL: not made yet */
    /* capacity: number of states for which there is room; words: number of 64-bit words of a mask; kept: bytes of the
     * masks that are kept */
    size_t capacity, words, kept, sweeps;
    int32_t apart[APART_MAX]; /* tokens that are allowed only where the grammar names the token itself, and never as the
                               * token's text */
    size_t apart_count;
    /* [depth] for each node between the root and the node that a walk has reached: the state after the node's text */
    uint32_t path[FR_TREE_DEPTH_MAX + 1];
};

/* ----------------------------------------------------------------------------------------------------------- memory */

static void forget(fr_grammar *g) {
    for (size_t i = 0; i < g->capacity; i++) {
        free(g->locals[i].bits);
        free(g->locals[i].returns);
        free(g->masks[i]);
        g->locals[i] = (local_mask){0};
        g->masks[i] = NULL;
    }
    fr_text_runs_forget(&g->runs);
    g->kept = 0;
}

fr_status fr_grammar_make_room(fr_grammar *g, uint32_t *state) {
    if (g->kept <= KEPT_BYTES_MAX && !fr_automaton_is_full(g->automaton)) return FR_OK;
    forget(g);
    g->sweeps++;
    return fr_automaton_sweep(g->automaton, state);
}

size_t fr_grammar_sweeps(const fr_grammar *g) {
    return g->sweeps;
}

/* Makes room for a mask for every state of the automaton. */
static fr_status widen(fr_grammar *g) {
    size_t states = fr_automaton_states(g->automaton), wanted = 2 * states;
    if (states <= g->capacity) return FR_OK;
    local_mask *locals = realloc(g->locals, wanted * sizeof *locals);
    if (locals) g->locals = locals;
    uint64_t **masks = realloc(g->masks, wanted * sizeof *masks);
    if (masks) g->masks = masks;
    if (!locals || !masks) return fr_fail_memory("a grammar's masks", wanted * (sizeof *locals + sizeof *masks));
    memset(locals + g->capacity, 0, (wanted - g->capacity) * sizeof *locals);
    memset(masks + g->capacity, 0, (wanted - g->capacity) * sizeof *masks);
    g->capacity = wanted;
    return FR_OK;
}

static fr_status new_mask(fr_grammar *g, uint64_t **bits) {
    *bits = calloc(g->words, sizeof **bits);
    if (!*bits) return fr_fail_memory("a grammar's mask", g->words * sizeof **bits);
    g->kept += g->words * sizeof **bits;
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------ walks */

static fr_status note_return(local_mask *m, uint32_t node) {
    if ((m->return_count & (m->return_count - 1)) == 0) {
        size_t wanted = m->return_count ? 2 * m->return_count : 1;
        uint32_t *grown = realloc(m->returns, wanted * sizeof *grown);
        if (!grown) return fr_fail_memory("a grammar's mask", wanted * sizeof *grown);
        m->returns = grown;
    }
    m->returns[m->return_count++] = node;
    return FR_OK;
}

/* The tokens of at most `length` characters that are all of one class. If a text may continue with such characters,
 * these tokens are allowed without a walk over their bytes. */
typedef struct slice {
    int class, index; /* class -1: there is no slice */
    size_t length;
} slice;

static const slice NO_SLICE = {-1, -1, 0};

static fr_status walk_origin(fr_grammar *g, const fr_slice_origin *origin, uint32_t state, uint64_t *bits,
                             local_mask *m);

/* Gives the slices of the tokens below a node; NULL: no slices were made for the node. */
static const fr_slice_origin *origin_at(const fr_grammar *g, uint32_t node) {
    for (size_t i = 1; i < g->tree->slices.origin_count; i++)
        if (g->tree->slices.origins[i].node == node) return &g->tree->slices.origins[i];
    return NULL;
}

/* Handles a node whose text is allowed: allows the tokens that end at the node. m: NULL, or gets the node if the rule
 * may end there. */
static fr_status arrive(fr_grammar *g, uint32_t node, uint32_t state, uint64_t *bits, local_mask *m) {
    const fr_token_node *at = &g->tree->nodes[node];
    for (int32_t id = at->id; id >= 0; id = at->itself ? -1 : g->tree->same[id])
        bits[id / 64] |= UINT64_C(1) << (id % 64);
    return m && fr_automaton_ends(g->automaton, state) ? note_return(m, node) : FR_OK;
}

/* Allows the tokens below the node `from` that may come in the state `state`. The tokens of the slice `known` are
 * already allowed and are left out. m: NULL, or collects the nodes at which the rule may end. */
static fr_status walk(fr_grammar *g, uint32_t from, uint32_t state, slice known, uint64_t *bits, local_mask *m) {
    const fr_token_node *nodes = g->tree->nodes;
    const uint32_t end = nodes[from].end;
    size_t visited = 0;
    g->path[nodes[from].depth] = state;
    for (uint32_t i = from + 1; i < end; visited++) {
        const fr_token_node *node = &nodes[i];
        uint32_t next;
        if (g->tree->slices.classes[i] <= known.class && g->tree->slices.lengths[i] <= known.length) {
            i = node->end;
            continue;
        }
        FR_TRY(fr_automaton_step(g->automaton, g->path[node->depth - 1], node->byte, &next));
        if (next == FR_STATE_DEAD) {
            i = node->end;
            continue;
        }
        g->path[node->depth] = next;
        FR_TRY(arrive(g, i, next, bits, m));
        const fr_slice_origin *origin = from == 0 ? origin_at(g, i) : NULL;
        if (origin) FR_TRY(walk_origin(g, origin, next, bits, m));
        i = !origin && fr_automaton_goes_on(g->automaton, next) ? i + 1 : node->end;
    }
    return fr_automaton_spend(g->automaton, 2 + visited);
}

/* Allows the token that ends at a stop (slice_stops.h) and the tokens below the stop, as far as they may come. state:
 * the state before the character that is not of the class. */
static fr_status walk_stop(fr_grammar *g, const fr_slice_stop *stop, uint32_t state, uint64_t *bits, local_mask *m) {
    for (uint8_t i = 0; i < stop->count; i++) {
        FR_TRY(fr_automaton_step(g->automaton, state, stop->bytes[i], &state));
        if (state == FR_STATE_DEAD) return FR_OK;
    }
    FR_TRY(arrive(g, stop->node, state, bits, m));
    if (!stop->whole || !fr_automaton_goes_on(g->automaton, state)) return FR_OK;
    const fr_slice_origin *origin = origin_at(g, stop->node);
    if (origin) return walk_origin(g, origin, state, bits, m);
    return walk(g, stop->node, state, NO_SLICE, bits, m);
}

/* Allows the tokens below an origin (a node with slices) that are not in the slice `known`: those that have a character
 * outside of the class, and those that are longer than the slice. states[n]: the state after n characters of the
 * class. */
static fr_status walk_stops(fr_grammar *g, const fr_slice_stops *stops, slice known, const uint32_t *states,
                            uint64_t *bits, local_mask *m) {
    size_t most = known.length < FR_STOP_TEXTS_MAX ? known.length : FR_STOP_TEXTS_MAX;
    FR_TRY(fr_automaton_spend(g->automaton, stops->group_count));
    for (size_t i = 0; i < stops->group_count && stops->groups[i].behind < most; i++) {
        const fr_stop_group *group = &stops->groups[i];
        uint32_t next;
        FR_TRY(fr_automaton_step(g->automaton, states[group->behind], group->byte, &next));
        for (uint32_t k = group->first; k < group->end && next != FR_STATE_DEAD; k++)
            FR_TRY(walk_stop(g, &stops->stops[k], states[group->behind], bits, m));
    }
    for (size_t i = 0; i < stops->longer_count[known.index]; i++)
        FR_TRY(walk(g, stops->longer[known.index][i], states[most], NO_SLICE, bits, m));
    return FR_OK;
}

/* Finds the largest slice whose tokens are all allowed. */
static fr_status find_slice(fr_grammar *g, uint32_t state, slice *found) {
    *found = NO_SLICE;
    for (int class = FR_SLICE_CLASSES - 1; class >= 0 && found->class < 0; class --) {
        size_t characters;
        FR_TRY(fr_text_run(&g->runs, g->automaton, state, class, &characters));
        int index = fr_slice_of_length(characters);
        if (index >= 0) *found = (slice){class, index, fr_slice_length(index)};
    }
    return FR_OK;
}

/* Allows the tokens below an origin (a node with slices) that may come in the state `state`. First allows the tokens of
 * a slice, then the others. */
static fr_status walk_origin(fr_grammar *g, const fr_slice_origin *origin, uint32_t state, uint64_t *bits,
                             local_mask *m) {
    uint32_t states[FR_STOP_TEXTS_MAX + 1];
    bool one = false;
    slice known;
    FR_TRY(find_slice(g, state, &known));
    if (known.class >= 0) {
        size_t most = known.length < FR_STOP_TEXTS_MAX ? known.length : FR_STOP_TEXTS_MAX;
        const uint64_t *slice_bits = origin->bits[known.class][known.index];
        for (size_t i = 0; i < g->words; i++) bits[i] |= slice_bits[i];
        FR_TRY(fr_text_path(&g->runs, g->automaton, state, known.class, most, states, &one));
    }
    if (one) return walk_stops(g, &origin->stops[known.class], known, states, bits, m);
    return walk(g, origin->node, state, origin->node ? NO_SLICE : known, bits, m);
}

static fr_status make_local(fr_grammar *g, uint32_t state) {
    FR_TRY(widen(g));
    local_mask made = {0};
    if (g->locals[state].bits) return fr_automaton_spend(g->automaton, g->locals[state].cost);
    size_t before = fr_automaton_spent(g->automaton);
    fr_automaton_begin_round(g->automaton);
    fr_status status = new_mask(g, &made.bits);
    if (status == FR_OK) status = walk_origin(g, &g->tree->slices.origins[0], state, made.bits, &made);
    if (status != FR_OK) {
        free(made.bits);
        free(made.returns);
        return status;
    }
    g->kept += made.return_count * sizeof *made.returns;
    made.cost = fr_automaton_spent(g->automaton) - before;
    g->locals[state] = made;
    return FR_OK;
}

static fr_status add_part(fr_grammar *g, uint32_t local, uint32_t after, uint64_t *bits) {
    FR_TRY(make_local(g, local));
    const local_mask m = g->locals[local];
    for (size_t i = 0; i < g->words; i++) bits[i] |= m.bits[i];
    FR_TRY(fr_automaton_spend(g->automaton, g->words / UNIT_WORDS));
    fr_automaton_begin_round(g->automaton);
    for (size_t i = 0; after != FR_STATE_DEAD && i < m.return_count; i++)
        FR_TRY(walk(g, m.returns[i], after, NO_SLICE, bits, NULL));
    return FR_OK;
}

static fr_status add_parts(fr_grammar *g, uint32_t state, uint64_t *bits) {
    for (size_t i = 0;; i++) {
        uint32_t local, after;
        FR_TRY(fr_automaton_part(g->automaton, state, i, &local, &after));
        if (local == FR_STATE_DEAD) return FR_OK;
        FR_TRY(add_part(g, local, after, bits));
    }
}

static bool is_apart(const fr_grammar *g, int32_t id) {
    for (size_t i = 0; i < g->apart_count; i++)
        if (g->apart[i] == id) return true;
    return false;
}

/* Sets the bits of the tokens in g->apart. Such a token is allowed if the grammar names the token itself here, and
 * forbidden otherwise. */
static fr_status set_apart(fr_grammar *g, uint32_t state, uint64_t *bits) {
    for (size_t i = 0; i < g->apart_count; i++) {
        uint32_t next;
        int32_t id = g->apart[i];
        uint64_t bit = UINT64_C(1) << (id % 64);
        FR_TRY(fr_grammar_step(g, state, id, &next));
        bits[id / 64] = next == FR_STATE_DEAD ? bits[id / 64] & ~bit : bits[id / 64] | bit;
    }
    return FR_OK;
}

fr_status fr_grammar_mask(fr_grammar *g, uint32_t state, const uint64_t **bits) {
    uint64_t *made = NULL;
    FR_TRY(fr_automaton_plain(g->automaton, state, &state));
    FR_TRY(widen(g));
    *bits = g->masks[state];
    if (*bits) return FR_OK;
    fr_status status = new_mask(g, &made);
    fr_automaton_limit(g->automaton, FR_AUTOMATON_MAX);
    if (status == FR_OK) status = add_parts(g, state, made);
    fr_automaton_limit(g->automaton, SIZE_MAX);
    if (status == FR_OK) status = set_apart(g, state, made);
    if (status == FR_OK) status = widen(g);
    if (status != FR_OK) {
        free(made);
        return status;
    }
    *bits = g->masks[state] = made;
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------ texts */

fr_status fr_grammar_begin(fr_grammar *g, uint32_t *state) {
    return fr_automaton_begin(g->automaton, state);
}

static fr_status step(fr_grammar *g, uint32_t state, fr_text bytes, uint32_t *next) {
    *next = state;
    for (size_t i = 0; i < bytes.length && *next != FR_STATE_DEAD; i++)
        FR_TRY(fr_automaton_step(g->automaton, *next, (uint8_t)bytes.bytes[i], next));
    return FR_OK;
}

/* Steps over a token. If the token may come both as itself (the grammar names the token) and as its text, it counts as
 * itself. */
fr_status fr_grammar_step(fr_grammar *g, uint32_t state, int32_t id, uint32_t *next) {
    uint8_t sign[FR_TOKEN_SIZE];
    fr_text text;
    *next = FR_STATE_DEAD;
    if (fr_token_tree_has_sign(g->tree, id)) {
        fr_token_sign(id, sign);
        FR_TRY(step(g, state, (fr_text){(const char *)sign, sizeof sign}, next));
    }
    if (*next != FR_STATE_DEAD || is_apart(g, id)) return FR_OK;
    text.bytes = fr_token_tree_bytes(g->tree, id, &text.length);
    return text.bytes ? step(g, state, text, next) : FR_OK;
}

bool fr_grammar_ends(const fr_grammar *g, uint32_t state) {
    return fr_automaton_ends(g->automaton, state);
}

fr_status fr_grammar_forced(fr_grammar *g, uint32_t state, char *bytes, size_t size, size_t *length) {
    for (*length = 0; *length < size; ++*length) {
        int only = fr_automaton_only_byte(g->automaton, state);
        if (only < 0) return FR_OK;
        bytes[*length] = (char)only;
        FR_TRY(fr_automaton_step(g->automaton, state, (uint8_t)only, &state));
    }
    return FR_OK;
}

const fr_token_tree *fr_grammar_tree(const fr_grammar *g) {
    return g->tree;
}

fr_status fr_grammar_allowed(fr_grammar *g, const int32_t *ids, size_t count, const uint64_t **bits, bool *ends) {
    uint32_t state;
    if (!g || (count && !ids) || !bits || !ends)
        return fr_fail_null("fr_grammar_allowed", "a grammar, ids, bits and ends");
    *bits = NULL;
    *ends = false;
    FR_TRY(fr_grammar_begin(g, &state));
    for (size_t i = 0; i < count; i++) {
        FR_TRY(fr_grammar_make_room(g, &state));
        FR_TRY(fr_grammar_step(g, state, ids[i], &state));
        if (state == FR_STATE_DEAD)
            return fr_fail(FR_INPUT, "fr_grammar_allowed: id %d at index %zu is not allowed there", ids[i], i);
    }
    FR_TRY(fr_grammar_make_room(g, &state));
    *ends = fr_grammar_ends(g, state);
    return fr_grammar_mask(g, state, bits);
}

/* ---------------------------------------------------------------------------------------------- opening and closing */

static fr_status open(fr_grammar *g, const fr_token_tree *tree, const fr_grammar_rules *rules) {
    g->tree = tree;
    g->words = (tree->vocab + 63) / 64;
    uint32_t first;
    FR_TRY(fr_automaton_open(rules, &g->automaton));
    FR_TRY(fr_automaton_begin(g->automaton, &first)); /* refuses a grammar with which no text can begin */
    return widen(g);
}

fr_status fr_grammar_of_rules(const fr_token_tree *tree, const fr_grammar_rules *rules, fr_grammar **grammar) {
    fr_grammar *g = *grammar = calloc(1, sizeof *g);
    fr_status status = g ? open(g, tree, rules) : fr_fail_memory("a grammar", sizeof *g);
    if (status == FR_OK) return FR_OK;
    fr_grammar_close(g);
    *grammar = NULL;
    return status;
}

fr_status fr_grammar_read(fr_grammar_kind kind, fr_text text, fr_grammar_rules *rules) {
    if (text.length > TEXT_MAX) return fr_fail(FR_INPUT, "the grammar has more than %zu bytes", TEXT_MAX);
    switch (kind) {
    case FR_GRAMMAR_GBNF: return fr_gbnf_read(text, rules);
    case FR_GRAMMAR_REGEX: return fr_regex_read(text, rules);
    case FR_GRAMMAR_JSON_SCHEMA: return fr_json_schema_read(text, rules);
    default: return fr_fail(FR_USAGE, "fr_grammar_open: %d is no kind of grammar", (int)kind);
    }
}

fr_status fr_grammar_keep_apart(fr_grammar *g, const int32_t *ids, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (ids[i] < 0 || !fr_token_tree_has_sign(g->tree, ids[i])) continue;
        if (g->apart_count == APART_MAX) return fr_fail(FR_USAGE, "more than %d tokens that are no text", APART_MAX);
        g->apart[g->apart_count++] = ids[i];
    }
    return FR_OK;
}

fr_status fr_grammar_open(const fr_token_tree *tree, fr_grammar_kind kind, const char *text, size_t length,
                          fr_grammar **grammar) {
    if (!grammar) return fr_fail_null("fr_grammar_open", "a place for the grammar");
    *grammar = NULL;
    if (!tree || !text) return fr_fail_null("fr_grammar_open", "a tree of tokens and a text");
    fr_grammar_rules rules = {0};
    fr_status status = fr_grammar_read(kind, (fr_text){text, length}, &rules);
    if (status == FR_OK) status = fr_grammar_of_rules(tree, &rules, grammar);
    fr_grammar_rules_free(&rules);
    return status;
}

void fr_grammar_close(fr_grammar *g) {
    if (!g) return;
    forget(g);
    free(g->locals);
    free(g->masks);
    fr_text_runs_free(&g->runs);
    fr_automaton_close(g->automaton);
    free(g);
}
