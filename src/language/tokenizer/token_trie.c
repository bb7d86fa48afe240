/* Makes a tree of tokens (token_trie.h). */
#include "src/language/tokenizer/token_trie.h"

#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"

#define NODES_MAX ((size_t)1 << 24) /* limit on the nodes, so that a node and a byte together fit in a key of 32 bits */

typedef struct fr_trie_edge {
    uint32_t key;   /* node << 8 | byte */
    uint32_t child; /* 0: the slot is empty; no edge leads to the root, which is node 0 */
} trie_edge;

/* Finds the slot of a key. If the key is missing, finds the empty slot for it. A lookup visits at most FR_PROBES_MAX
 * slots; NULL: neither slot is among them. */
static trie_edge *find_slot(const fr_token_trie *trie, uint32_t key) {
    uint64_t hash = key * UINT64_C(0x9E3779B97F4A7C15); /* 2^64 / golden ratio, odd */
    hash ^= hash >> 32;
    for (size_t probe = 0; probe < FR_PROBES_MAX; probe++) {
        trie_edge *slot = &trie->edges[(hash + probe) & trie->edge_mask];
        if (slot->child == 0 || slot->key == key) return slot;
    }
    return NULL;
}

uint32_t fr_token_trie_step(const fr_token_trie *trie, uint32_t node, unsigned char byte) {
    const trie_edge *slot = find_slot(trie, node << 8 | byte);
    return slot && slot->child ? slot->child : FR_TRIE_NONE;
}

uint32_t fr_token_trie_walk(const fr_token_trie *trie, fr_text text) {
    uint32_t node = FR_TRIE_ROOT;
    for (size_t i = 0; i < text.length && node != FR_TRIE_NONE; i++)
        node = fr_token_trie_step(trie, node, (unsigned char)text.bytes[i]);
    return node;
}

/* ---------------------------------------------------------------------------------------------------------- opening */

static fr_status fail_memory(size_t nodes, const char *where) {
    return fr_fail_memory(where, nodes * (2 * sizeof(trie_edge) + sizeof(int32_t)));
}

static fr_status fail_collision(const char *where) {
    return fr_fail(FR_INPUT, "%s: too many beginnings of tokens collide", where);
}

/* Makes room for twice as many nodes. The table of edges stays at most half full. */
static fr_status grow(fr_token_trie *trie, const char *where) {
    size_t capacity = trie->capacity ? 2 * trie->capacity : 1024, slots = fr_hash_table_size(capacity);
    fr_token_trie grown = {calloc(slots, sizeof *grown.edges), slots - 1, NULL, trie->count, capacity};
    int32_t *ids = realloc(trie->ids, capacity * sizeof *ids);
    if (ids) trie->ids = ids;
    fr_status status = grown.edges && ids ? FR_OK : fail_memory(capacity, where);
    for (size_t i = 0; status == FR_OK && trie->edges && i <= trie->edge_mask; i++) {
        if (trie->edges[i].child == 0) continue;
        trie_edge *slot = find_slot(&grown, trie->edges[i].key);
        if (slot)
            *slot = trie->edges[i];
        else
            status = fail_collision(where);
    }
    grown.ids = trie->ids;
    if (status == FR_OK) {
        free(trie->edges);
        *trie = grown;
    } else {
        free(grown.edges);
    }
    return status;
}

static fr_status add_node(fr_token_trie *trie, const char *where) {
    if (trie->count == NODES_MAX)
        return fr_fail(FR_INPUT, "%s: the tokens have more than %zu beginnings", where, NODES_MAX);
    if (trie->count == trie->capacity) FR_TRY(grow(trie, where));
    trie->ids[trie->count++] = -1;
    return FR_OK;
}

static fr_status add_token(fr_token_trie *trie, const fr_token *token, int32_t id, const char *where) {
    uint32_t node = FR_TRIE_ROOT;
    if (token->length > FR_TRIE_LENGTH_MAX)
        return fr_fail(FR_INPUT, "%s: token %d has %u bytes, and at most %d in a model of this kind", where, id,
                       token->length, FR_TRIE_LENGTH_MAX);
    for (uint32_t i = 0; i < token->length; i++) {
        uint32_t key = node << 8 | (unsigned char)token->text[i], next = fr_token_trie_step(trie, node, key & 0xFF);
        if (next == FR_TRIE_NONE) {
            next = (uint32_t)trie->count;
            FR_TRY(add_node(trie, where));
            trie_edge *slot = find_slot(trie, key);
            if (!slot) return fail_collision(where);
            *slot = (trie_edge){key, next};
        }
        node = next;
    }
    trie->ids[node] = id;
    return FR_OK;
}

fr_status fr_token_trie_open(fr_token_trie *trie, const fr_vocabulary *vocabulary, const char *where) {
    *trie = (fr_token_trie){0};
    FR_TRY(add_node(trie, where));
    for (size_t id = 0; id < vocabulary->size; id++)
        if (vocabulary->tokens[id].in_model) FR_TRY(add_token(trie, &vocabulary->tokens[id], (int32_t)id, where));
    trie->ids[FR_TRIE_ROOT] = -1; /* a token without bytes is left out, because it can't be found in a text */
    return FR_OK;
}

void fr_token_trie_close(fr_token_trie *trie) {
    free(trie->edges);
    free(trie->ids);
    *trie = (fr_token_trie){0};
}
