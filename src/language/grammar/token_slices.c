/* Groups the tokens by the class of their characters (token_slices.h). */
#include "src/language/grammar/token_slices.h"

#include <stdlib.h>
#include <string.h>

#include "src/language/grammar/cursor.h"
#include "src/language/grammar/token_tree.h"

/* Finds a token's class and its number of characters. FR_NO_CLASS: the token has no class, or does not consist of
 * whole characters. */
static void measure(fr_text text, uint8_t *class, uint8_t *length) {
    fr_cursor c = {text, 0};
    size_t count = 0;
    uint32_t code;
    for (*class = 0; c.at < text.length && *class != FR_NO_CLASS; count++) {
        uint8_t of = fr_cursor_take_character(&c, &code) ? fr_slice_class_of(code) : FR_NO_CLASS;
        if (of > *class) *class = of;
    }
    if (count > FR_SLICE_UNBOUND) *class = FR_NO_CLASS;
    *length = *class == FR_NO_CLASS ? FR_NO_CLASS : (uint8_t)count;
}

static void add_bits(fr_slice_origin *origin, const fr_token_tree *tree, int32_t first, uint8_t class, uint8_t length) {
    for (int c = class; c < FR_SLICE_CLASSES; c++)
        for (int k = 0; k < FR_SLICE_LENGTHS; k++)
            for (int32_t id = first; id >= 0 && length <= fr_slice_length(k); id = tree->same[id])
                origin->bits[c][k][id / 64] |= UINT64_C(1) << (id % 64);
}

/* Gives the class and the length of the part of a node's own token that follows the first `depth` bytes. */
static void measure_from(const fr_token_tree *tree, const fr_token_node *node, size_t depth, uint8_t *class,
                         uint8_t *length) {
    fr_text text = {NULL, 0};
    *class = *length = FR_NO_CLASS;
    if (!node->itself) text.bytes = fr_token_tree_bytes(tree, node->id, &text.length);
    if (text.bytes) measure((fr_text){text.bytes + depth, text.length - depth}, class, length);
}

static void measure_tokens(fr_token_slices *s, const fr_token_tree *tree) {
    for (size_t i = 1; i < tree->node_count; i++) {
        const fr_token_node *node = &tree->nodes[i];
        if (node->id < 0) continue;
        measure_from(tree, node, 0, &s->classes[i], &s->lengths[i]);
        if (s->classes[i] != FR_NO_CLASS) add_bits(&s->origins[0], tree, node->id, s->classes[i], s->lengths[i]);
    }
    for (size_t o = 1; o < s->origin_count; o++) {
        const fr_token_node *origin = &tree->nodes[s->origins[o].node];
        for (size_t i = s->origins[o].node + 1; i < origin->end; i++) {
            uint8_t class, length;
            if (tree->nodes[i].id < 0) continue;
            measure_from(tree, &tree->nodes[i], origin->depth, &class, &length);
            if (class != FR_NO_CLASS) add_bits(&s->origins[o], tree, tree->nodes[i].id, class, length);
        }
    }
}

static fr_status open_origin(fr_token_slices *s, const fr_token_tree *tree, uint32_t node) {
    const size_t words = tree->vocab / 64 + 1;
    fr_slice_origin *origin = &s->origins[s->origin_count++];
    origin->node = node;
    for (int c = 0; c < FR_SLICE_CLASSES; c++) {
        for (int k = 0; k < FR_SLICE_LENGTHS; k++) {
            origin->bits[c][k] = calloc(words, sizeof *origin->bits[c][k]);
            if (!origin->bits[c][k]) return fr_fail_memory("a tree of tokens", words * sizeof *origin->bits[c][k]);
        }
        FR_TRY(fr_slice_stops_make(&origin->stops[c], tree, node, c));
    }
    return FR_OK;
}

fr_status fr_token_slices_make(fr_token_slices *s, const fr_token_tree *tree) {
    s->classes = calloc(tree->node_count, 1);
    s->lengths = calloc(tree->node_count, 1);
    if (!s->classes || !s->lengths) return fr_fail_memory("a tree of tokens", 2 * tree->node_count);
    FR_TRY(open_origin(s, tree, 0));
    for (uint32_t child = 1; child < tree->node_count; child = tree->nodes[child].end)
        if (tree->nodes[child].byte == ' ') FR_TRY(open_origin(s, tree, child));
    measure_tokens(s, tree);
    /* Each node gets the largest class and the largest length in its subtree, beginning with the leaves. A node's
     * children follow it in the array, and each child follows the subtree of the child before it. */
    for (size_t i = tree->node_count; i-- > 0;)
        for (size_t child = i + 1; child < tree->nodes[i].end; child = tree->nodes[child].end) {
            if (s->classes[child] > s->classes[i]) s->classes[i] = s->classes[child];
            if (s->lengths[child] > s->lengths[i]) s->lengths[i] = s->lengths[child];
        }
    return FR_OK;
}

void fr_token_slices_free(fr_token_slices *s) {
    free(s->classes);
    free(s->lengths);
    for (size_t o = 0; o < s->origin_count; o++)
        for (int c = 0; c < FR_SLICE_CLASSES; c++) {
            for (int k = 0; k < FR_SLICE_LENGTHS; k++) free(s->origins[o].bits[c][k]);
            fr_slice_stops_free(&s->origins[o].stops[c]);
        }
}
