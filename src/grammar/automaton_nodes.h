/* What an automaton walks over: nodes that read a byte, and the ways between them.
 *
 * In: rules. Out: nodes. A character becomes the bytes of its UTF-8; a repetition so many copies. */
#ifndef FR_SRC_GRAMMAR_AUTOMATON_NODES_H
#define FR_SRC_GRAMMAR_AUTOMATON_NODES_H

#include "src/grammar/rules.h"

typedef enum fr_node_kind {
    FR_NODE_BYTE,  /* low to high, then next */
    FR_NODE_SPLIT, /* next or other, and no byte */
    FR_NODE_CALL,  /* rule `other`, then next */
    FR_NODE_END,   /* of a rule */
} fr_node_kind;

typedef struct fr_grammar_node {
    uint8_t kind, low, high;
    bool live; /* a rule's end can be reached from it */
    uint32_t next, other;
} fr_grammar_node;

typedef struct fr_grammar_nodes {
    fr_grammar_node *items;
    size_t count, capacity;
    uint32_t *entries; /* by rule */
    size_t rules;
    uint32_t root;
} fr_grammar_nodes;

fr_status fr_grammar_nodes_make(fr_grammar_nodes *nodes, const fr_grammar_rules *rules);
void fr_grammar_nodes_free(fr_grammar_nodes *nodes);

#endif
