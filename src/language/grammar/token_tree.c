/* Makes the tree of tokens (token_tree.h). */
#include "src/language/grammar/token_tree.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

typedef struct token {
    fr_text bytes; /* NULL: the token is in the tree under its sign, and not as text */
    int32_t id;
    uint8_t sign[FR_TOKEN_SIZE];
} token;

static fr_text bytes_of(const token *t) {
    return t->bytes.bytes ? t->bytes : (fr_text){(const char *)t->sign, sizeof t->sign};
}

const char *fr_token_tree_bytes(const fr_token_tree *tree, int32_t id, size_t *length) {
    fr_token_kind kind = fr_token_kind_of(tree->tokenizer, id);
    *length = 0;
    if (kind == FR_TOKEN_NONE || kind == FR_TOKEN_CONTROL || kind == FR_TOKEN_UNKNOWN) return NULL;
    const char *bytes = fr_token_bytes(tree->tokenizer, id, length);
    bool fits = bytes && *length && *length <= FR_TREE_DEPTH_MAX && !memchr(bytes, 0, *length);
    return fits && (uint8_t)*bytes != FR_TOKEN_SIGN ? bytes : NULL;
}

void fr_token_sign(int32_t id, uint8_t bytes[FR_TOKEN_SIZE]) {
    bytes[0] = FR_TOKEN_SIGN;
    for (int i = 1; i < FR_TOKEN_SIZE; i++) bytes[i] = (uint8_t)(id >> 7 * (FR_TOKEN_SIZE - 1 - i) & 0x7F);
}

int32_t fr_token_signed(const uint8_t bytes[FR_TOKEN_SIZE]) {
    int32_t id = 0;
    for (int i = 1; i < FR_TOKEN_SIZE; i++) id = id << 7 | bytes[i];
    return id;
}

bool fr_token_tree_has_sign(const fr_token_tree *tree, int32_t id) {
    fr_token_kind kind = fr_token_kind_of(tree->tokenizer, id);
    return (kind == FR_TOKEN_ADDED || kind == FR_TOKEN_CONTROL) && id < 1 << 7 * (FR_TOKEN_SIZE - 1);
}

static int by_bytes(const void *one, const void *other) {
    const token *a = one, *b = other;
    int order = fr_text_compare(bytes_of(a), bytes_of(b));
    return order ? order : (a->id > b->id) - (a->id < b->id);
}

/* Lists the tokens in sorted order, and gives their number. *bytes: the sum of their lengths. */
static size_t list_tokens(const fr_token_tree *tree, token *tokens, size_t *bytes) {
    size_t count = 0;
    *bytes = 0;
    for (size_t id = 0; id < tree->vocab; id++) {
        token *t = &tokens[count];
        t->id = (int32_t)id;
        t->bytes.bytes = fr_token_tree_bytes(tree, t->id, &t->bytes.length);
        if (t->bytes.bytes) {
            *bytes += t->bytes.length;
            t = &tokens[++count];
        }
        if (!fr_token_tree_has_sign(tree, (int32_t)id)) continue;
        *t = (token){.id = (int32_t)id};
        fr_token_sign(t->id, t->sign);
        *bytes += sizeof t->sign;
        count++;
    }
    qsort(tokens, count, sizeof *tokens, by_bytes);
    return count;
}

static size_t common_length(fr_text a, fr_text b) {
    size_t n = 0;
    while (n < a.length && n < b.length && a.bytes[n] == b.bytes[n]) n++;
    return n;
}

/* Makes the tree from sorted tokens. Each token has its first bytes in common with the token before it; nodes are added
 * below these bytes. */
static void plant(fr_token_tree *tree, const token *tokens, size_t count) {
    uint32_t path[FR_TREE_DEPTH_MAX + 1] = {0};
    fr_text before = {NULL, 0};
    tree->nodes[tree->node_count++] = (fr_token_node){.id = -1};
    for (size_t i = 0; i < count; i++) {
        fr_text text = bytes_of(&tokens[i]);
        for (size_t depth = common_length(before, text); depth < text.length; depth++) {
            path[depth + 1] = (uint32_t)tree->node_count;
            tree->nodes[tree->node_count++] =
                (fr_token_node){.id = -1, .depth = (uint16_t)(depth + 1), .byte = (uint8_t)text.bytes[depth]};
        }
        fr_token_node *leaf = &tree->nodes[path[text.length]];
        leaf->itself = !tokens[i].bytes.bytes;
        if (!leaf->itself) tree->same[tokens[i].id] = leaf->id;
        leaf->id = tokens[i].id;
        before = text;
    }
}

/* Finds the ends of subtrees. A node's subtree ends before the next node that is not deeper than the node. */
static void find_ends(fr_token_tree *tree) {
    uint32_t open[FR_TREE_DEPTH_MAX + 2];
    size_t opened = 0;
    for (uint32_t i = 0; i < tree->node_count; i++) {
        while (opened && tree->nodes[open[opened - 1]].depth >= tree->nodes[i].depth)
            tree->nodes[open[--opened]].end = i;
        open[opened++] = i;
    }
    while (opened) tree->nodes[open[--opened]].end = (uint32_t)tree->node_count;
}

static fr_status grow(fr_token_tree *tree) {
    size_t bytes = 0;
    size_t most = 2 * tree->vocab + 1;
    token *tokens = malloc(most * sizeof *tokens);
    if (!tokens) return fr_fail_memory("a tree of tokens", most * sizeof *tokens);
    size_t count = list_tokens(tree, tokens, &bytes);
    tree->nodes = malloc((bytes + 1) * sizeof *tree->nodes);
    tree->same = calloc(tree->vocab + 1, sizeof *tree->same);
    bool there = tree->nodes && tree->same;
    if (there) {
        plant(tree, tokens, count);
        find_ends(tree);
        fr_token_node *fitting = realloc(tree->nodes, tree->node_count * sizeof *fitting);
        if (fitting) tree->nodes = fitting;
    }
    free(tokens);
    return there ? FR_OK : fr_fail_memory("a tree of tokens", (bytes + 1) * sizeof *tree->nodes);
}

fr_status fr_token_tree_open(const fr_tokenizer *tokenizer, fr_token_tree **tree) {
    if (!tree) return fr_fail_null("fr_token_tree_open", "a place for the tree");
    *tree = NULL;
    if (!tokenizer) return fr_fail_no_tokenizer("fr_token_tree_open");
    fr_token_tree *t = calloc(1, sizeof *t);
    if (!t) return fr_fail_memory("a tree of tokens", sizeof *t);
    t->tokenizer = tokenizer;
    t->vocab = fr_tokenizer_count(tokenizer);
    fr_status status = grow(t);
    if (status == FR_OK) status = fr_token_slices_make(&t->slices, t);
    if (status == FR_OK)
        *tree = t;
    else
        fr_token_tree_close(t);
    return status;
}

void fr_token_tree_close(fr_token_tree *tree) {
    if (!tree) return;
    fr_token_slices_free(&tree->slices);
    free(tree->nodes);
    free(tree->same);
    free(tree);
}
