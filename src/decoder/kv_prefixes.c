/* Shared prefixes: see kv_prefixes.h. */
#include "src/decoder/kv_prefixes.h"

#include <string.h>

#include "src/base/hash.h"
#include "src/base/sizes.h"

enum { BLOCK = FR_KV_PAGE, NONE = 0 }; /* node 0 is the root, which has no block */

struct fr_kv_node {
    int32_t ids[BLOCK];
    uint8_t *pages[FR_KV_KINDS]; /* NULL: not held */
    uint8_t *drafter;            /* the same of a drafter's cache, but for its last pair; */
    uint8_t *before;             /* and the page of the parent's block, whole, with the pair that looks in here */
    uint32_t parent, next;       /* next: of the same hash */
    uint32_t children, timelines, depth;
    uint32_t points; /* ends of prompts and branches whose window this block is in */
    bool taken, ends_prompt;
    uint64_t used;
};

/* ----------------------------------------------------------------------------------------------------------- layout */

void fr_kv_prefixes_layout(fr_kv_prefixes *p, fr_arena *arena, const fr_kv *kv, const fr_kv *drafter) {
    size_t pages = fr_larger(kv->page_count[FR_KV_FULL], kv->page_count[FR_KV_SLIDING]);
    *p = (fr_kv_prefixes){.capacity = pages + 1, .buckets = fr_hash_table_size(pages)};
    p->nodes = fr_arena_take(arena, p->capacity, sizeof *p->nodes);
    p->first = fr_arena_take(arena, p->buckets, sizeof *p->first);
    p->pages = kv->pages;
    p->drafter = drafter && drafter->pages ? &drafter->pages[FR_KV_FULL] : NULL;
    p->window = fr_kv_blocks(kv->window);
}

void fr_kv_path_layout(fr_kv_path *path, fr_arena *arena, const fr_kv *kv) {
    *path = (fr_kv_path){.nodes = fr_arena_take(arena, kv->blocks, sizeof *path->nodes)};
}

/* ------------------------------------------------------------------------------------------------------------ nodes */

static size_t bucket_of(const fr_kv_prefixes *p, uint32_t parent, const int32_t *ids) {
    return fr_hash(parent + 1, ids, BLOCK * sizeof *ids) & (p->buckets - 1);
}

static uint32_t child_of(const fr_kv_prefixes *p, uint32_t parent, const int32_t *ids) {
    uint32_t n = p->first[bucket_of(p, parent, ids)];
    while (n != NONE && (p->nodes[n].parent != parent || memcmp(p->nodes[n].ids, ids, sizeof p->nodes[n].ids) != 0))
        n = p->nodes[n].next;
    return n;
}

/* The blocks that a row at the end of this one looks back to are worth keeping, or are not for its sake any more. */
static void mark_window(fr_kv_prefixes *p, uint32_t n, int change) {
    for (size_t i = 0; i < p->window && n != NONE; i++, n = p->nodes[n].parent)
        p->nodes[n].points = (uint32_t)((int)p->nodes[n].points + change);
}

/* A leaf in which no timeline stands. */
static void remove_node(fr_kv_prefixes *p, uint32_t n) {
    fr_kv_node *node = &p->nodes[n], *parent = &p->nodes[node->parent];
    uint32_t *link = &p->first[bucket_of(p, node->parent, node->ids)];
    while (*link != n) link = &p->nodes[*link].next;
    *link = node->next;
    for (fr_kv_kind kind = 0; kind < FR_KV_KINDS; kind++) fr_kv_pages_drop(&p->pages[kind], &node->pages[kind], 0, 1);
    if (p->drafter) {
        fr_kv_pages_drop(p->drafter, &node->drafter, 0, 1);
        fr_kv_pages_drop(p->drafter, &node->before, 0, 1);
    }
    if (node->ends_prompt) mark_window(p, n, -1);
    if (node->parent != NONE && --parent->children == 1) mark_window(p, node->parent, -1);
    *node = (fr_kv_node){0};
    p->count--;
}

/* The longest unused leaf in which no timeline stands; NONE. */
static uint32_t oldest_leaf(const fr_kv_prefixes *p) {
    uint32_t oldest = NONE;
    for (uint32_t n = 1; n < p->capacity; n++) {
        const fr_kv_node *node = &p->nodes[n];
        if (!node->taken || node->children || node->timelines) continue;
        if (oldest == NONE || node->used < p->nodes[oldest].used) oldest = n;
    }
    return oldest;
}

/* The sliding page that is missed least among those that nobody else holds. */
static uint32_t oldest_window(const fr_kv_prefixes *p) {
    uint32_t oldest = NONE;
    for (uint32_t n = 1; n < p->capacity; n++) {
        const fr_kv_node *node = &p->nodes[n], *best = &p->nodes[oldest];
        const uint8_t *page = node->pages[FR_KV_SLIDING];
        if (!page || fr_kv_page_shared(&p->pages[FR_KV_SLIDING], page)) continue;
        bool kept = node->points > 0, best_kept = best->points > 0;
        if (oldest == NONE || kept < best_kept || (kept == best_kept && node->used < best->used)) oldest = n;
    }
    return oldest;
}

/* An fr_kv_reclaim_fn: a window's page alone, or leaves until one had a page that nobody else held. */
static void reclaim(void *context, fr_kv_pages *pool) {
    fr_kv_prefixes *p = context;
    bool slides = pool == &p->pages[FR_KV_SLIDING];
    uint32_t n = slides ? oldest_window(p) : oldest_leaf(p);
    if (slides && n != NONE) fr_kv_pages_drop(pool, &p->nodes[n].pages[FR_KV_SLIDING], 0, 1);
    for (; !slides && n != NONE && pool->free_count == 0; n = oldest_leaf(p)) remove_node(p, n);
}

void fr_kv_prefixes_serve(fr_kv_prefixes *p) {
    fr_kv_pages *pools[] = {&p->pages[FR_KV_FULL], &p->pages[FR_KV_SLIDING], p->drafter};
    for (size_t i = 0; i < sizeof pools / sizeof *pools && pools[i]; i++) {
        pools[i]->reclaim = reclaim;
        pools[i]->reclaim_context = p;
    }
}

/* A node that is not taken; NONE: timelines stand in all. */
static uint32_t free_node(fr_kv_prefixes *p) {
    if (p->count + 1 == p->capacity) {
        uint32_t oldest = oldest_leaf(p);
        if (oldest == NONE) return NONE;
        remove_node(p, oldest);
    }
    uint32_t n = 1;
    while (p->nodes[n].taken) n++;
    return n;
}

static uint32_t add_node(fr_kv_prefixes *p, uint32_t parent, const int32_t *ids) {
    uint32_t n = free_node(p);
    if (n == NONE) return NONE;
    size_t bucket = bucket_of(p, parent, ids);
    p->nodes[n] = (fr_kv_node){.parent = parent,
                               .next = p->first[bucket],
                               .taken = true,
                               .depth = parent == NONE ? 1 : p->nodes[parent].depth + 1};
    memcpy(p->nodes[n].ids, ids, sizeof p->nodes[n].ids);
    p->first[bucket] = n;
    p->count++;
    if (parent != NONE && ++p->nodes[parent].children == 2) mark_window(p, parent, 1);
    return n;
}

/* ---------------------------------------------------------------------------------------------------- find and take */

/* The first of the blocks that end with this node whose windows are all there. */
static size_t window_from(const fr_kv_prefixes *p, uint32_t n) {
    size_t from = p->nodes[n].depth;
    while (n != NONE && p->nodes[n].pages[FR_KV_SLIDING]) {
        n = p->nodes[n].parent;
        from--;
    }
    return from;
}

/* Whether a row behind this node, or `back` positions before that, finds all that it looks back to. */
static bool can_stand(const fr_kv_prefixes *p, uint32_t n, size_t back) {
    if (p->window == 0) return true;
    size_t from = window_from(p, n);
    return from == 0 || from + p->window + back <= p->nodes[n].depth;
}

size_t fr_kv_prefixes_find(fr_kv_prefixes *p, const int32_t *ids, size_t count, bool drafter) {
    size_t found = 0, depth = 0;
    for (uint32_t n = NONE; (depth + 1) * BLOCK < count; depth++) {
        n = child_of(p, n, ids + depth * BLOCK);
        if (n == NONE || (drafter && depth && !p->nodes[n].before)) break;
        if ((!drafter || p->nodes[n].drafter) && can_stand(p, n, drafter)) found = depth + 1;
    }
    return found ? found * BLOCK - drafter : 0;
}

static void enter_node(fr_kv_prefixes *p, fr_kv_path *path, uint32_t n) {
    path->nodes[path->length++] = n;
    p->nodes[n].timelines++;
    p->nodes[n].used = ++p->clock;
}

void fr_kv_prefixes_take(fr_kv_prefixes *p, fr_kv_path *path, fr_kv *kv, fr_kv *drafter, const int32_t *ids,
                         size_t length) {
    size_t blocks = fr_kv_blocks(length), from = 0;
    uint32_t n = NONE;
    for (size_t block = 0; block < blocks; block++) {
        n = child_of(p, n, ids + block * BLOCK);
        enter_node(p, path, n);
        fr_kv_pages_hold(&p->pages[FR_KV_FULL], kv->table[FR_KV_FULL] + block, &p->nodes[n].pages[FR_KV_FULL], 0, 1);
        if (drafter && block)
            fr_kv_pages_hold(p->drafter, drafter->table[FR_KV_FULL] + block - 1, &p->nodes[n].before, 0, 1);
    }
    if (drafter) fr_kv_pages_hold(p->drafter, drafter->table[FR_KV_FULL] + blocks - 1, &p->nodes[n].drafter, 0, 1);
    if (p->window) from = window_from(p, n);
    for (size_t block = blocks; p->window && block-- > from; n = p->nodes[n].parent)
        fr_kv_pages_hold(&p->pages[FR_KV_SLIDING], kv->table[FR_KV_SLIDING] + block, &p->nodes[n].pages[FR_KV_SLIDING],
                         0, 1);
    kv->length = length;
    kv->from = from * BLOCK;
    if (drafter) drafter->length = length;
}

/* -------------------------------------------------------------------------------------------------------------- add */

/* One page of both: the node's where it has one, else the timeline's. */
static void share_page(fr_kv_pages *pool, uint8_t **held, uint8_t **own) {
    if (!*own) return;
    if (!*held) {
        fr_kv_pages_hold(pool, held, own, 0, 1);
    } else if (*held != *own) {
        fr_kv_pages_drop(pool, own, 0, 1);
        fr_kv_pages_hold(pool, own, held, 0, 1);
    }
}

static void share_block(fr_kv_prefixes *p, uint32_t n, fr_kv *kv, fr_kv *drafter, size_t block) {
    fr_kv_node *node = &p->nodes[n];
    share_page(&p->pages[FR_KV_FULL], &node->pages[FR_KV_FULL], &kv->table[FR_KV_FULL][block]);
    if (block * BLOCK >= kv->from)
        share_page(&p->pages[FR_KV_SLIDING], &node->pages[FR_KV_SLIDING], &kv->table[FR_KV_SLIDING][block]);
    if (!drafter) return;
    uint8_t **own = &drafter->table[FR_KV_FULL][block];
    if (!node->drafter) fr_kv_pages_hold(p->drafter, &node->drafter, own, 0, 1);
    if (node->parent == NONE) return;
    uint8_t **ends = &p->nodes[node->parent].drafter; /* any page that is whole will do there */
    share_page(p->drafter, &node->before, own - 1);
    fr_kv_pages_drop(p->drafter, ends, 0, 1);
    fr_kv_pages_hold(p->drafter, ends, &node->before, 0, 1);
}

void fr_kv_prefixes_add(fr_kv_prefixes *p, fr_kv_path *path, fr_kv *kv, fr_kv *drafter, const int32_t *ids,
                        bool prompt_end) {
    size_t complete = kv->length / BLOCK;
    if (drafter) complete = fr_smaller(complete, (drafter->length + 1) / BLOCK); /* but for the last pair */
    while (path->length < complete) {
        size_t block = path->length;
        uint32_t parent = block ? path->nodes[block - 1] : NONE, n = child_of(p, parent, ids + block * BLOCK);
        if (n == NONE) n = add_node(p, parent, ids + block * BLOCK);
        if (n == NONE) return;
        enter_node(p, path, n);
        share_block(p, n, kv, drafter, block);
    }
    if (!prompt_end || path->length == 0) return;
    uint32_t last = path->nodes[path->length - 1];
    if (p->nodes[last].ends_prompt) return;
    p->nodes[last].ends_prompt = true;
    mark_window(p, last, 1);
}

void fr_kv_path_cut(fr_kv_prefixes *p, fr_kv_path *path, size_t length) {
    while (path->length > length / BLOCK) p->nodes[path->nodes[--path->length]].timelines--;
}

fr_kv_use fr_kv_prefixes_use(const fr_kv_prefixes *p, const fr_kv *kv) {
    fr_kv_use use = {0};
    for (fr_kv_kind kind = 0; kind < FR_KV_KINDS; kind++) {
        const fr_kv_pages *pool = &kv->pages[kind];
        size_t held = pool->count - pool->free_count, shared = 0, cached = 0;
        for (size_t i = 0; i < pool->count; i++) shared += pool->holders[i] > 1;
        for (uint32_t n = 1; n < p->capacity; n++) {
            const uint8_t *page = p->nodes[n].pages[kind];
            uint32_t holders = page ? pool->holders[(size_t)(page - pool->data) / pool->bytes] : 0;
            cached += holders == 1;
            shared -= holders == 2;
        }
        use.used += (held - cached) * pool->bytes;
        use.shared += shared * pool->bytes;
        use.cached += cached * pool->bytes;
    }
    return use;
}
