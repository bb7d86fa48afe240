/* Tokens of plain characters: see token_slices.h. */
#include "src/grammar/token_slices.h"

#include <stdlib.h>
#include <string.h>

#include "src/grammar/cursor.h"
#include "src/grammar/token_tree.h"

#define NONE 255

static const uint8_t LENGTHS[FR_SLICE_LENGTHS] = {4, 8, 16, FR_SLICE_UNBOUND};

int fr_slice_of_length(size_t characters) {
    int index = FR_SLICE_LENGTHS - 1;
    while (index >= 0 && LENGTHS[index] > characters) index--;
    return index;
}

size_t fr_slice_length(int index) {
    return LENGTHS[index];
}

static uint8_t class_of(uint32_t code) {
    if (code >= 'a' && code <= 'z') return 0;
    if ((code >= 'A' && code <= 'Z') || (code >= '0' && code <= '9') || code == '-' || code == '_') return 1;
    return code < ' ' || code == '"' || code == '\\' || code == 0x7F ? NONE : 2;
}

/* The class and the characters of a token; NONE: of no class, or not whole characters. */
static void measure(fr_text text, uint8_t *class, uint8_t *length) {
    fr_cursor c = {text, 0};
    size_t count = 0;
    uint32_t code;
    for (*class = 0; c.at < text.length && *class != NONE; count++) {
        uint8_t of = fr_cursor_take_character(&c, &code) ? class_of(code) : NONE;
        if (of > *class) *class = of;
    }
    if (count > FR_SLICE_UNBOUND) *class = NONE;
    *length = *class == NONE ? NONE : (uint8_t)count;
}

static void add_bits(fr_token_slices *s, const fr_token_tree *tree, int32_t first, uint8_t class, uint8_t length) {
    for (int c = class; c < FR_SLICE_CLASSES; c++)
        for (int k = 0; k < FR_SLICE_LENGTHS; k++)
            for (int32_t id = first; id >= 0 && length <= LENGTHS[k]; id = tree->same[id])
                s->bits[c][k][id / 64] |= UINT64_C(1) << (id % 64);
}

/* What each node's own token is. */
static void measure_tokens(fr_token_slices *s, const fr_token_tree *tree) {
    for (size_t i = 0; i < tree->node_count; i++) {
        const fr_token_node *node = &tree->nodes[i];
        fr_text text = {NULL, 0};
        if (node->id < 0) continue;
        if (!node->itself) text.bytes = fr_token_tree_bytes(tree, node->id, &text.length);
        s->classes[i] = s->lengths[i] = NONE;
        if (text.bytes) measure(text, &s->classes[i], &s->lengths[i]);
        if (s->classes[i] != NONE) add_bits(s, tree, node->id, s->classes[i], s->lengths[i]);
    }
}

/* From the leaves on: a subtree is of what its nodes are of. A node's children follow it, each behind the last one's
 * subtree. */
static void measure_subtrees(fr_token_slices *s, const fr_token_tree *tree) {
    for (size_t i = tree->node_count; i-- > 0;)
        for (size_t child = i + 1; child < tree->nodes[i].end; child = tree->nodes[child].end) {
            if (s->classes[child] > s->classes[i]) s->classes[i] = s->classes[child];
            if (s->lengths[child] > s->lengths[i]) s->lengths[i] = s->lengths[child];
        }
}

fr_status fr_token_slices_make(fr_token_slices *s, const fr_token_tree *tree) {
    size_t words = tree->vocab / 64 + 1;
    s->classes = calloc(tree->node_count, 1);
    s->lengths = calloc(tree->node_count, 1);
    bool there = s->classes && s->lengths;
    for (int c = 0; c < FR_SLICE_CLASSES; c++)
        for (int k = 0; k < FR_SLICE_LENGTHS; k++) {
            s->bits[c][k] = calloc(words, sizeof *s->bits[c][k]);
            there &= s->bits[c][k] != NULL;
        }
    if (!there) return fr_fail_memory("a tree of tokens", words * 96 + 2 * tree->node_count);
    measure_tokens(s, tree);
    measure_subtrees(s, tree);
    return FR_OK;
}

void fr_token_slices_free(fr_token_slices *s) {
    free(s->classes);
    free(s->lengths);
    for (int c = 0; c < FR_SLICE_CLASSES; c++)
        for (int k = 0; k < FR_SLICE_LENGTHS; k++) free(s->bits[c][k]);
}
