/* Makes the nodes over which an automaton walks. A node reads a byte, or leads to other nodes.
 *
 * In: rules. Out: nodes. A character becomes the bytes of its UTF-8. A repetition becomes copies if they are few, and
 * otherwise a loop that counts. A call of a rule has one counter, so a counted loop within another counted loop becomes
 * a rule of its own. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_AUTOMATON_NODES_H
#define FR_SRC_LANGUAGE_GRAMMAR_AUTOMATON_NODES_H

#include "src/language/grammar/rules.h"

typedef enum fr_node_kind {
    FR_NODE_BYTE,    /* reads a byte from low to high, then goes to next */
    FR_NODE_SPLIT,   /* goes to next or to other; reads no byte */
    FR_NODE_CALL,    /* calls rule `other`, then goes to next */
    FR_NODE_COUNT,   /* counts one more repetition (counts[other]), then goes to next; reads no byte */
    FR_NODE_COUNTED, /* ends the count if it is within limits[other], then goes to next; reads no byte */
    FR_NODE_END,     /* ends a rule */
} fr_node_kind;

typedef struct fr_grammar_node {
    uint8_t kind, low, high;
    bool live; /* the end of the rule can be reached from this node */
    uint32_t next, other;
} fr_grammar_node;

/* The bounds within which a count must be when it ends. margin: counts that are below a bound by more than this number
 * do not matter for the next token. So all counts below least - margin allow the same tokens, and all counts from
 * `least` up to most - margin allow the same tokens. */
typedef struct fr_count_limit {
    uint32_t least, most, margin;
} fr_count_limit;

/* Counts one more repetition. At least `behind` repetitions must follow it; if `exactly` is set, exactly that number
 * must follow it. */
typedef struct fr_count_step {
    uint32_t limit, behind;
    bool exactly;
} fr_count_step;

typedef struct fr_grammar_nodes {
    fr_grammar_node *items;
    fr_count_limit *limits;
    fr_count_step *counts;
    size_t count, capacity, limit_count, limit_capacity, step_count, step_capacity, rule_capacity;
    uint32_t *entries; /* the first node of each rule */
    size_t rules;
    uint32_t root;
} fr_grammar_nodes;

fr_status fr_grammar_nodes_make(fr_grammar_nodes *nodes, const fr_grammar_rules *rules);
void fr_grammar_nodes_free(fr_grammar_nodes *nodes);

/* Writes a character as UTF-8, and gives the number of bytes, at most four. */
size_t fr_utf8_encode(uint32_t code, uint8_t *bytes);

#endif
