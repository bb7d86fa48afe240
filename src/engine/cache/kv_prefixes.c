/* Keeps the tree of shared prefixes: see kv_prefixes.h. */
#include "src/engine/cache/kv_prefixes.h"

#include <string.h>

#include "base/hash.h"
#include "base/sizes.h"

enum {
    BLOCK = FR_KV_PAGE,
    NONE = 0,       /* node 0 is the root, which has no block */
    ALIKE_MAX = 16, /* the most nodes in one hash chain. There are twice as many chains as nodes, so a chain does not
                     * grow this long by chance */
};

struct fr_kv_node {
    int32_t ids[BLOCK];
    uint32_t count; /* number of ids in `ids`: one for each of the node's positions. If drafters have pairs, a tail also
                     * has the id after its positions */
    uint32_t run;   /* positions whose rows are in the node's pages. A tail is a node with fewer than BLOCK of them and
                     * without children */
    fr_kv_digest digest;
    uint8_t *pages[FR_KV_KINDS]; /* the target's pages of the block; NULL: the node doesn't hold a page of that kind */
    /* each drafter's page of this block. The last pair (pairs.h) in such a page depends on the first id of the next
     * block */
    uint8_t *drafter[FR_KV_DRAFTERS];
    /* each drafter's page of the parent's block. The last pair in such a page depends on the first id of this block */
    uint8_t *before[FR_KV_DRAFTERS];
    uint32_t parent, next; /* next: the next node in the hash chain, or in the list of removed nodes */
    uint32_t first_child, sibling;
    uint32_t children, timelines, depth; /* children: number of child nodes; timelines: number of timelines in the node;
                                          * depth: number of blocks from the root to the node's end */
    uint32_t points; /* counts the ends of prompts, and the branches, whose window includes this block */
    bool ends_prompt;
    uint64_t used[FR_KV_UNUSED];  /* [FR_KV_LEAVES]: time when the last timeline left the node; [FR_KV_WINDOWS]: time
                                   * when the last timeline left the node's sliding page */
    uint32_t place[FR_KV_UNUSED]; /* index of the node in each heap; 0: the node is not in that heap */
    uint32_t aside;               /* the next leaf in the list of leaves that are out of the heap during a search */
};

/* ----------------------------------------------------------------------------------------------------------- layout */

void fr_kv_prefixes_layout(fr_kv_prefixes *p, fr_arena *arena, const fr_kv *kv, const fr_kv *const *drafters) {
    size_t count = fr_larger(kv->blocks, fr_larger(kv->page_count[FR_KV_FULL], kv->page_count[FR_KV_SLIDING]));
    *p = (fr_kv_prefixes){.capacity = count + 1, .buckets = fr_hash_table_size(count), .fresh = 1};
    p->nodes = fr_arena_take(arena, p->capacity, sizeof *p->nodes);
    p->first = fr_arena_take(arena, p->buckets, sizeof *p->first);
    for (fr_kv_kind kind = 0; kind < FR_KV_KINDS; kind++)
        p->owner[kind] = fr_arena_take(arena, kv->page_count[kind], sizeof *p->owner[kind]);
    for (fr_kv_unused which = 0; which < FR_KV_UNUSED; which++)
        p->unused[which].nodes = fr_arena_take(arena, p->capacity, sizeof *p->unused[which].nodes);
    p->pages = kv->pages;
    for (size_t i = 0; drafters && i < FR_KV_DRAFTERS; i++)
        if (drafters[i] && drafters[i]->pages) p->drafter[i] = &drafters[i]->pages[FR_KV_FULL];
    p->window = kv->window;
    if (kv->recurrent.count == 0) return;
    p->states = kv->recurrent.pages;
    p->point_count = kv->recurrent.page_count;
    p->points = fr_arena_take(arena, p->point_count, sizeof *p->points);
}

void fr_kv_path_layout(fr_kv_path *path, fr_arena *arena, const fr_kv *kv) {
    *path = (fr_kv_path){.nodes = fr_arena_take(arena, kv->blocks, sizeof *path->nodes)};
}

/* Returns true if there is a page for every drafter in a set. drafters: the set; bit i stands for drafter i. */
static bool has_all(uint8_t *const pages[FR_KV_DRAFTERS], unsigned drafters) {
    for (size_t i = 0; i < FR_KV_DRAFTERS; i++)
        if (drafters >> i & 1 && !pages[i]) return false;
    return true;
}

/* Gives the set of drafters that have a cache. Bit i of the set stands for drafter i. */
static unsigned set_of(fr_kv *const *drafters) {
    unsigned set = 0;
    for (size_t i = 0; drafters && i < FR_KV_DRAFTERS; i++) set |= (drafters[i] != NULL) << i;
    return set;
}

/* Gives the number of the drafter whose pool this is. Gives FR_KV_DRAFTERS if the pool is not a drafter's. */
static size_t drafter_with(const fr_kv_prefixes *p, const fr_kv_pages *pool) {
    size_t i = 0;
    while (i < FR_KV_DRAFTERS && p->drafter[i] != pool) i++;
    return i;
}

/* ----------------------------------------------------------------------------------------------------- unused nodes */

static void put(fr_kv_prefixes *p, fr_kv_unused which, size_t at, uint32_t n) {
    p->unused[which].nodes[at] = n;
    p->nodes[n].place[which] = (uint32_t)at;
}

static bool goes_before(const fr_kv_prefixes *p, fr_kv_unused which, uint32_t n, uint32_t other) {
    const fr_kv_node *a = &p->nodes[n], *b = &p->nodes[other];
    bool kept = which == FR_KV_WINDOWS && a->points, other_kept = which == FR_KV_WINDOWS && b->points;
    return kept == other_kept ? a->used[which] < b->used[which] : other_kept;
}

/* Moves a node up or down the heap, from index `at` on, until the heap is in order. */
static void sift(fr_kv_prefixes *p, fr_kv_unused which, size_t at, uint32_t n) {
    const fr_kv_heap *heap = &p->unused[which];
    for (; at > 1 && goes_before(p, which, n, heap->nodes[at / 2]); at /= 2) put(p, which, at, heap->nodes[at / 2]);
    for (size_t child; (child = 2 * at) <= heap->count; at = child) {
        child += child < heap->count && goes_before(p, which, heap->nodes[child + 1], heap->nodes[child]);
        if (!goes_before(p, which, heap->nodes[child], n)) break;
        put(p, which, at, heap->nodes[child]);
    }
    put(p, which, at, n);
}

static void take_out(fr_kv_prefixes *p, fr_kv_unused which, uint32_t n) {
    fr_kv_heap *heap = &p->unused[which];
    uint32_t at = p->nodes[n].place[which], last = heap->nodes[heap->count--];
    p->nodes[n].place[which] = 0;
    if (last != n) sift(p, which, at, last);
}

static bool is_unused(const fr_kv_prefixes *p, fr_kv_unused which, const fr_kv_node *node) {
    if (which == FR_KV_LEAVES) return !node->children && !node->timelines;
    const uint8_t *page = node->pages[FR_KV_SLIDING];
    return page && !fr_kv_page_shared(&p->pages[FR_KV_SLIDING], page);
}

/* Updates the place of a node in a heap of unused nodes after the node's use has changed. The node is added to the
 * heap, moved within it, or taken out. */
static void settle(fr_kv_prefixes *p, fr_kv_unused which, uint32_t n) {
    fr_kv_node *node = &p->nodes[n];
    if (n == NONE) return;
    bool is = is_unused(p, which, node);
    if (is)
        sift(p, which, node->place[which] ? node->place[which] : ++p->unused[which].count, n);
    else if (node->place[which])
        take_out(p, which, n);
}

/* ------------------------------------------------------------------------------------------------------------ nodes */

static fr_kv_digest digest_of(fr_kv_content content, size_t block) {
    return content.digests ? content.digests[block] : (fr_kv_digest){0};
}

static uint32_t *chain_of(const fr_kv_prefixes *p, uint32_t parent, const int32_t *ids, const fr_kv_digest *digest) {
    uint64_t hash = fr_hash(fr_hash(parent, ids, BLOCK * sizeof *ids), digest, sizeof *digest);
    return &p->first[hash & (p->buckets - 1)];
}

/* Finds the child of a node for the content's next block. If there is no such child, returns NONE and sets *chain to
 * the hash chain to which the child must be added. *chain is NULL if that chain is full. */
static uint32_t look_up(const fr_kv_prefixes *p, uint32_t parent, fr_kv_content content, uint32_t **chain) {
    size_t block = parent == NONE ? 0 : p->nodes[parent].depth, alike = 0;
    const int32_t *ids = content.ids + block * BLOCK;
    const fr_kv_digest digest = digest_of(content, block);
    *chain = chain_of(p, parent, ids, &digest);
    for (uint32_t n = **chain; n != NONE; n = p->nodes[n].next, alike++) {
        const fr_kv_node *node = &p->nodes[n];
        if (node->parent == parent && memcmp(node->ids, ids, sizeof node->ids) == 0 &&
            memcmp(&node->digest, &digest, sizeof digest) == 0)
            return n;
    }
    if (alike == ALIKE_MAX) *chain = NULL;
    return NONE;
}

static uint32_t child_of(const fr_kv_prefixes *p, uint32_t parent, fr_kv_content content) {
    uint32_t *chain;
    return look_up(p, parent, content, &chain);
}

/* Adds `change` (1 or -1) to the `points` of this block and of the blocks before it that are in a sliding window. A
 * prompt that shares the text up to this block continues at the block's end or at the block's last position. The first
 * row of the prompt's new text reads these blocks through its sliding window. So the sliding pages of blocks with
 * points are worth keeping. */
static void mark_window(fr_kv_prefixes *p, uint32_t n, int change) {
    size_t blocks = p->window ? fr_kv_blocks(p->window + 1) : 0;
    for (size_t i = 0; i < blocks && n != NONE; i++, n = p->nodes[n].parent) {
        p->nodes[n].points = (uint32_t)((int)p->nodes[n].points + change);
        if (p->nodes[n].place[FR_KV_WINDOWS]) settle(p, FR_KV_WINDOWS, n);
    }
}

/* Counts the leading ids of a block that a text of `count` ids has too. Gives 0 if the pictures differ, because then
 * all rows differ. */
static size_t shared_ids(const fr_kv_prefixes *p, uint32_t n, fr_kv_content content, size_t count) {
    const fr_kv_node *node = &p->nodes[n];
    size_t block = node->depth - 1, most = fr_smaller(node->count, count - block * BLOCK), shared = 0;
    const int32_t *ids = content.ids + block * BLOCK;
    const fr_kv_digest digest = digest_of(content, block);
    if (memcmp(&node->digest, &digest, sizeof digest) != 0) return 0;
    while (shared < most && node->ids[shared] == ids[shared]) shared++;
    return shared;
}

static size_t number_of(const fr_kv_prefixes *p, fr_kv_kind kind, const uint8_t *page) {
    return fr_kv_page_number(&p->pages[kind], page);
}

static void drop_page(fr_kv_prefixes *p, uint32_t n, fr_kv_kind kind) {
    uint8_t **page = &p->nodes[n].pages[kind];
    if (!*page) return;
    p->owner[kind][number_of(p, kind, *page)] = NONE;
    fr_kv_pages_drop(&p->pages[kind], page, 0, 1);
    if (kind == FR_KV_SLIDING) settle(p, FR_KV_WINDOWS, n);
}

/* ----------------------------------------------------------------------------------------------------------- points */

static void drop_point(fr_kv_prefixes *p, fr_kv_point *point) {
    fr_kv_pages_drop(p->states, &point->states, 0, 1);
    point->node = NONE;
}

static void drop_points_in(fr_kv_prefixes *p, uint32_t n) {
    for (size_t i = 0; i < p->point_count; i++)
        if (p->points[i].node == n) drop_point(p, &p->points[i]);
}

/* Returns true if a prompt can begin at this point. The prompt must have all ids before the point. If a drafter's pairs
 * need the id at the point, the prompt must have that id too. The caller has checked the ids before the point's
 * node. */
static bool leads_to(const fr_kv_prefixes *p, const fr_kv_point *point, fr_kv_content content, size_t count,
                     unsigned drafters) {
    const fr_kv_node *node = &p->nodes[point->node];
    size_t ids = point->position - (node->depth - 1) * BLOCK + (drafters != 0);
    return point->position < count && has_all(node->drafter, drafters) && ids <= node->count &&
           shared_ids(p, point->node, content, count) >= ids;
}

/* Looks at all points in a node's children and gives the farthest one at which the prompt can begin. Gives NULL if
 * there is none. */
static fr_kv_point *best_point(const fr_kv_prefixes *p, uint32_t parent, fr_kv_content content, size_t count,
                               unsigned drafters) {
    fr_kv_point *best = NULL;
    for (fr_kv_point *at = p->points; at < p->points + p->point_count; at++)
        if (at->node != NONE && p->nodes[at->node].parent == parent && (!best || at->position > best->position) &&
            leads_to(p, at, content, count, drafters))
            best = at;
    return best;
}

/* Finds the farthest point at which the prompt can begin. Gives NULL if there is none. If the prompt has a drafter,
 * each block after the first must still hold the drafter's page of the block before it. */
static fr_kv_point *find_point(const fr_kv_prefixes *p, fr_kv_content content, size_t count, unsigned drafters) {
    fr_kv_point *found = NULL;
    for (uint32_t n = NONE;;) {
        fr_kv_point *point = best_point(p, n, content, count, drafters);
        if (point && (n == NONE || has_all(p->nodes[point->node].before, drafters))) found = point;
        size_t depth = n == NONE ? 0 : p->nodes[n].depth;
        if ((depth + 1) * BLOCK > count) return found;
        n = child_of(p, n, content);
        if (n == NONE || (depth > 0 && !has_all(p->nodes[n].before, drafters))) return found;
    }
}

void fr_kv_prefixes_add_point(fr_kv_prefixes *p, const fr_kv_path *path, uint32_t tail, size_t position,
                              uint8_t *states, bool spare) {
    size_t block = (position - 1) / BLOCK;
    uint32_t n = block < path->length ? path->nodes[block] : block == path->length ? tail : NONE;
    fr_kv_point *place = NULL;
    if (n == NONE || position - block * BLOCK > p->nodes[n].run) return;
    for (fr_kv_point *at = p->points; at < p->points + p->point_count; at++) {
        if (at->node == NONE)
            place = at;
        else if (at->position == position && at->node == n)
            return;
    }
    if (!place) return;
    *place = (fr_kv_point){.node = n, .position = position, .spare = spare, .used = ++p->clock};
    fr_kv_pages_hold(p->states, &place->states, &states, 0, 1);
}

static bool is_in(const fr_kv_point *point, const uint8_t *page) {
    return point->node != NONE && point->states == page;
}

/* Returns true if points hold the page and only `others` further holders do. Several points may hold the same page: if
 * texts branch off at one position, each branch has a point there. */
static bool points_hold(const fr_kv_prefixes *p, const uint8_t *page, size_t others) {
    size_t holders = p->states->holders[fr_kv_page_number(p->states, page)];
    for (size_t i = 0; holders > others && i < p->point_count; i++) holders -= is_in(&p->points[i], page);
    return holders == others;
}

static void drop_points_with(fr_kv_prefixes *p, const uint8_t *page) {
    for (size_t i = 0; i < p->point_count; i++)
        if (is_in(&p->points[i], page)) drop_point(p, &p->points[i]);
}

/* Chooses the point that is given up next. A point whose page a timeline holds cannot be given up. Spare points are
 * given up first. Among equals, the point that was unused for the longest time is given up first. Gives NULL if there
 * is none. */
static const fr_kv_point *point_to_drop(const fr_kv_prefixes *p) {
    const fr_kv_point *first = NULL;
    for (const fr_kv_point *at = p->points; at < p->points + p->point_count; at++) {
        bool sooner = !first || (at->spare == first->spare ? at->used < first->used : at->spare);
        if (at->node != NONE && sooner && points_hold(p, at->states, 0)) first = at;
    }
    return first;
}

static void reclaim_states(fr_kv_prefixes *p) {
    const fr_kv_point *first = point_to_drop(p);
    if (first) drop_points_with(p, first->states);
}

size_t fr_kv_prefixes_spare_states(const fr_kv_prefixes *p) {
    size_t count = p->states->free_count;
    for (size_t i = 0; i < p->point_count; i++)
        count += p->points[i].node != NONE && p->points[i].spare && points_hold(p, p->points[i].states, 0);
    return count;
}

static bool is_tail(const fr_kv_node *node) {
    return node->run < BLOCK;
}

static void unlink_node(fr_kv_prefixes *p, uint32_t n) {
    const fr_kv_node *node = &p->nodes[n];
    uint32_t *link = &p->nodes[node->parent].first_child;
    while (*link != n) link = &p->nodes[*link].sibling;
    *link = node->sibling;
    /* A tail is in no hash chain, because a tail is searched for only among its parent's children. */
    if (is_tail(node)) return;
    link = chain_of(p, node->parent, node->ids, &node->digest);
    while (*link != n) link = &p->nodes[*link].next;
    *link = node->next;
}

/* Updates the parent of a node that is being removed. gave: the set of drafters whose page of the parent's block came
 * from this node. If the parent has other children, the parent drops these pages, because it must not hold a page that
 * none of its children has. The next timeline that enters one of the children gives the parent a page again
 * (hold_before). */
static void leave_parent(fr_kv_prefixes *p, const fr_kv_node *node, unsigned gave) {
    fr_kv_node *parent = &p->nodes[node->parent];
    if (node->parent == NONE) return;
    if (--parent->children == 1) mark_window(p, node->parent, -1);
    for (size_t i = 0; i < FR_KV_DRAFTERS; i++)
        if (parent->children && gave >> i & 1) fr_kv_pages_drop(p->drafter[i], &parent->drafter[i], 0, 1);
    settle(p, FR_KV_LEAVES, node->parent);
}

/* Removes a leaf. No timeline may end in this leaf. */
static void remove_node(fr_kv_prefixes *p, uint32_t n) {
    fr_kv_node *node = &p->nodes[n];
    unsigned gave = 0;
    for (size_t i = 0; i < FR_KV_DRAFTERS; i++)
        gave |= (node->before[i] && p->nodes[node->parent].drafter[i] == node->before[i]) << i;
    unlink_node(p, n);
    drop_points_in(p, n);
    take_out(p, FR_KV_LEAVES, n);
    for (fr_kv_kind kind = 0; kind < FR_KV_KINDS; kind++) drop_page(p, n, kind);
    for (size_t i = 0; i < FR_KV_DRAFTERS; i++) {
        if (!p->drafter[i]) continue;
        fr_kv_pages_drop(p->drafter[i], &node->drafter[i], 0, 1);
        fr_kv_pages_drop(p->drafter[i], &node->before[i], 0, 1);
    }
    if (node->ends_prompt) mark_window(p, n, -1);
    leave_parent(p, node, gave);
    *node = (fr_kv_node){.next = p->free};
    p->free = n;
}

/* Gives an empty node. If no node is free, the leaf that was unused for the longest time is removed. Gives NONE if
 * timelines end in all leaves. */
static uint32_t free_node(fr_kv_prefixes *p) {
    if (p->free == NONE && p->fresh < p->capacity) return p->fresh++;
    if (p->free == NONE && p->unused[FR_KV_LEAVES].count) remove_node(p, p->unused[FR_KV_LEAVES].nodes[1]);
    uint32_t n = p->free;
    if (n != NONE) p->free = p->nodes[n].next;
    return n;
}

/* Adds a child whose ids are the content's next `count` ids. The first `run` of these ids have been run. Returns NONE
 * if there is no room. */
static uint32_t add_child(fr_kv_prefixes *p, uint32_t parent, fr_kv_content content, size_t count, size_t run) {
    size_t block = parent == NONE ? 0 : p->nodes[parent].depth;
    uint32_t n = free_node(p);
    fr_kv_node *node = &p->nodes[n];
    if (n == NONE) return NONE;
    *node = (fr_kv_node){.count = (uint32_t)count,
                         .run = (uint32_t)run,
                         .parent = parent,
                         .sibling = p->nodes[parent].first_child,
                         .depth = (uint32_t)block + 1,
                         .digest = digest_of(content, block)};
    memcpy(node->ids, content.ids + block * BLOCK, count * sizeof *node->ids);
    p->nodes[parent].first_child = n;
    if (parent != NONE && ++p->nodes[parent].children == 2) mark_window(p, parent, 1);
    return n;
}

/* Removes the tails that this node replaces because it has all their ids. The points of these tails now belong to the
 * node. */
static void remove_tails(fr_kv_prefixes *p, uint32_t n) {
    const fr_kv_node *node = &p->nodes[n];
    for (uint32_t c = p->nodes[node->parent].first_child, next; c != NONE; c = next) {
        const fr_kv_node *tail = &p->nodes[c];
        next = tail->sibling;
        if (c == n || !is_tail(tail) || tail->run > node->run || tail->count > node->count) continue;
        if (memcmp(&tail->digest, &node->digest, sizeof tail->digest) != 0) continue;
        if (memcmp(tail->ids, node->ids, tail->count * sizeof *tail->ids) != 0) continue;
        for (size_t i = 0; i < p->point_count; i++)
            if (p->points[i].node == c) p->points[i].node = n;
        remove_node(p, c);
    }
}

/* Gives the child for the content's next block, and adds this child if there is none. The timeline then counts as one
 * of the child's timelines. Gives NONE if there is no room. */
static uint32_t enter_child(fr_kv_prefixes *p, uint32_t parent, fr_kv_content content) {
    uint32_t *chain, n = look_up(p, parent, content, &chain);
    if (n == NONE && chain && (n = add_child(p, parent, content, BLOCK, BLOCK)) != NONE) {
        fr_kv_node *node = &p->nodes[n];
        chain = chain_of(p, parent, node->ids, &node->digest); /* making room for the child may have changed this
                                                                * chain */
        node->next = *chain;
        *chain = n;
    }
    if (n == NONE) return NONE;
    p->nodes[n].timelines++;
    settle(p, FR_KV_LEAVES, n);
    return n;
}

/* -------------------------------------------------------------------------------------------------- giving up pages */

/* Returns true if removing the leaf frees a page of this pool, because nothing else holds that page. */
static bool frees(const fr_kv_prefixes *p, const fr_kv_node *node, const fr_kv_pages *pool) {
    size_t drafter = drafter_with(p, pool);
    const uint8_t *pages[] = {node->pages[FR_KV_FULL], NULL};
    if (drafter < FR_KV_DRAFTERS) pages[0] = node->before[drafter], pages[1] = node->drafter[drafter];
    for (size_t i = 0; i < 2; i++)
        if (pages[i] && !fr_kv_page_shared(pool, pages[i])) return true;
    return false;
}

/* Among the leaves whose removal frees a page, finds the one that was unused for the longest time. Returns NONE if
 * there is none. Leaves that free no page are taken out of the heap during the search. */
static uint32_t leaf_that_frees(fr_kv_prefixes *p, const fr_kv_pages *pool) {
    fr_kv_heap *leaves = &p->unused[FR_KV_LEAVES];
    uint32_t aside = NONE, n = NONE;
    while (leaves->count && !frees(p, &p->nodes[n = leaves->nodes[1]], pool)) {
        take_out(p, FR_KV_LEAVES, n);
        p->nodes[n].aside = aside;
        aside = n;
        n = NONE;
    }
    for (; aside != NONE; aside = p->nodes[aside].aside) settle(p, FR_KV_LEAVES, aside);
    return n;
}

/* Frees a page of the pool, if possible. In the pool of sliding layers, a single page is given up. In any other pool, a
 * leaf is removed with all its pages. A drafter's pages may be held by inner nodes as well. So for a drafter's pool,
 * more leaves are removed until a page becomes free. */
static void reclaim(void *context, fr_kv_pages *pool) {
    fr_kv_prefixes *p = context;
    const fr_kv_heap *leaves = &p->unused[FR_KV_LEAVES], *windows = &p->unused[FR_KV_WINDOWS];
    if (pool == p->states) {
        reclaim_states(p);
        return;
    }
    if (pool == &p->pages[FR_KV_SLIDING]) {
        if (windows->count) drop_page(p, windows->nodes[1], FR_KV_SLIDING);
        return;
    }
    uint32_t n = leaf_that_frees(p, pool);
    if (n != NONE) remove_node(p, n);
    bool drafters = drafter_with(p, pool) < FR_KV_DRAFTERS;
    while (drafters && pool->free_count == 0 && leaves->count) remove_node(p, leaves->nodes[1]);
}

static void release(void *context, fr_kv_pages *pool, const uint8_t *page) {
    fr_kv_prefixes *p = context;
    size_t number = fr_kv_page_number(pool, page);
    if (drafter_with(p, pool) < FR_KV_DRAFTERS) return;
    if (pool == p->states) {
        if (points_hold(p, page, 1)) drop_points_with(p, page);
        return;
    }
    fr_kv_kind kind = pool == &p->pages[FR_KV_SLIDING] ? FR_KV_SLIDING : FR_KV_FULL;
    uint32_t n = p->owner[kind][number];
    if (n == NONE || pool->holders[number] > 2) return;
    if (kind == FR_KV_SLIDING)
        drop_page(p, n, kind);
    else if (is_unused(p, FR_KV_LEAVES, &p->nodes[n]))
        remove_node(p, n);
}

static void left(void *context, const fr_kv_pages *pool, size_t page) {
    fr_kv_prefixes *p = context;
    uint32_t n = pool == &p->pages[FR_KV_SLIDING] ? p->owner[FR_KV_SLIDING][page] : NONE;
    if (n == NONE) return;
    p->nodes[n].used[FR_KV_WINDOWS] = ++p->clock;
    settle(p, FR_KV_WINDOWS, n);
}

void fr_kv_prefixes_serve(fr_kv_prefixes *p) {
    const fr_kv_keeper keeper = {.reclaim = reclaim, .release = release, .left = left, .context = p};
    fr_kv_pages *pools[] = {&p->pages[FR_KV_FULL], &p->pages[FR_KV_SLIDING], p->states};
    for (size_t i = 0; i < sizeof pools / sizeof *pools; i++)
        if (pools[i]) pools[i]->keeper = keeper;
    for (size_t i = 0; i < FR_KV_DRAFTERS; i++)
        if (p->drafter[i]) p->drafter[i]->keeper = keeper;
}

/* ---------------------------------------------------------------------------------------------------- find and take */

/* Finds the first block of an unbroken run of blocks that ends with node n and in which every block has its sliding
 * page. Gives this block's index. */
static size_t window_from(const fr_kv_prefixes *p, uint32_t n) {
    size_t from = p->nodes[n].depth;
    for (; n != NONE && p->nodes[n].pages[FR_KV_SLIDING]; n = p->nodes[n].parent) from--;
    return from;
}

/* Returns true if a node still has all pages that a prompt needs to begin at the node's end. */
static bool has_pages(const fr_kv_prefixes *p, const fr_kv_node *node, unsigned drafters) {
    if (p->window && !node->pages[FR_KV_SLIDING]) return false;
    return has_all(node->drafter, drafters) && (node->parent == NONE || has_all(node->before, drafters));
}

/* Gives the position up to which a prompt can use a node's pages. Gives 0 if the prompt can't use them. */
static size_t reach(const fr_kv_prefixes *p, uint32_t n, fr_kv_content content, size_t count, unsigned drafters) {
    const fr_kv_node *node = &p->nodes[n];
    size_t shared = shared_ids(p, n, content, count), pair = drafters != 0;
    if (shared <= pair || !has_pages(p, node, drafters)) return 0;
    return fr_smaller((node->depth - 1) * BLOCK + fr_smaller(shared - pair, node->run), count - 1);
}

/* Finds the node that lets the prompt begin at the highest position, and stores that position in *found. If no node can
 * be used, gives NONE and stores 0. */
static uint32_t find_node(const fr_kv_prefixes *p, fr_kv_content content, size_t count, unsigned drafters,
                          size_t *found) {
    uint32_t n = NONE, best = NONE;
    *found = 0;
    for (size_t depth = 0, from = 0; depth * BLOCK < count; depth++) { /* from: the result of window_from */
        for (uint32_t c = p->nodes[n].first_child; c != NONE; c = p->nodes[c].sibling) {
            size_t length = reach(p, c, content, count, drafters);
            if (length <= *found || (p->window && from && from * BLOCK + p->window > length)) continue;
            *found = length;
            best = c;
        }
        n = (depth + 1) * BLOCK <= count ? child_of(p, n, content) : NONE;
        if (n == NONE || (depth > 0 && !has_all(p->nodes[n].before, drafters))) break;
        if (!p->nodes[n].pages[FR_KV_SLIDING]) from = depth + 1;
    }
    return best;
}

size_t fr_kv_prefixes_find(const fr_kv_prefixes *p, fr_kv_content content, size_t count, unsigned drafters) {
    size_t found;
    if (p->states) {
        const fr_kv_point *point = find_point(p, content, count, drafters);
        return point ? point->position : 0;
    }
    find_node(p, content, count, drafters, &found);
    return found;
}

size_t fr_kv_prefixes_known(const fr_kv_prefixes *p, fr_kv_content content, size_t count) {
    size_t known = 0;
    for (uint32_t n = NONE; known % BLOCK == 0 && known < count;) {
        size_t most = 0;
        uint32_t next = NONE;
        for (uint32_t c = p->nodes[n].first_child; c != NONE; c = p->nodes[c].sibling) {
            size_t shared = fr_smaller(shared_ids(p, c, content, count), p->nodes[c].run);
            if (shared > most) next = c;
            most = fr_larger(most, shared);
        }
        if (next == NONE) break;
        known += most;
        n = next;
    }
    return known;
}

static void hold_page(fr_kv_prefixes *p, uint32_t n, fr_kv *kv, fr_kv_kind kind) {
    fr_kv_node *node = &p->nodes[n];
    fr_kv_pages_hold(&p->pages[kind], kv->table[kind] + node->depth - 1, &node->pages[kind], 0, 1);
    if (kind == FR_KV_SLIDING) settle(p, FR_KV_WINDOWS, n);
}

/* Lets each drafter's cache hold its page of a block. pages: the drafters' pages of the block, which a node of the tree
 * holds. */
static void hold_drafter_pages(const fr_kv_prefixes *p, fr_kv *const *drafters, size_t block,
                               uint8_t *const pages[FR_KV_DRAFTERS]) {
    for (size_t i = 0; drafters && i < FR_KV_DRAFTERS; i++)
        if (drafters[i]) fr_kv_pages_hold(p->drafter[i], drafters[i]->table[FR_KV_FULL] + block, &pages[i], 0, 1);
}

/* Lets each drafter's cache hold its page of the parent's block, which this node keeps in node->before. If the parent
 * no longer holds a drafter's page of its own block, the parent gets this page too. */
static void hold_before(const fr_kv_prefixes *p, uint32_t n, fr_kv *const *drafters) {
    fr_kv_node *node = &p->nodes[n], *parent = &p->nodes[node->parent];
    if (!drafters || node->parent == NONE) return;
    hold_drafter_pages(p, drafters, parent->depth - 1, node->before);
    for (size_t i = 0; i < FR_KV_DRAFTERS; i++)
        if (drafters[i] && !parent->drafter[i])
            fr_kv_pages_hold(p->drafter[i], &parent->drafter[i], &node->before[i], 0, 1);
}

/* Enters all blocks before the frontier's block into the timeline's path. The timeline copies the pages of the
 * frontier's block before it writes there, so the path need not contain that block's node. */
void fr_kv_prefixes_take(fr_kv_prefixes *p, fr_kv_path *path, fr_kv *kv, fr_kv *const *drafters, fr_kv_content content,
                         size_t length) {
    unsigned set = set_of(drafters);
    size_t found;
    fr_kv_point *point = p->states ? find_point(p, content, length + 1, set) : NULL;
    uint32_t n = NONE, last = point ? point->node : find_node(p, content, length + 1, set, &found);
    for (size_t block = 0; block < fr_kv_blocks(length); block++) {
        if (block < length / BLOCK)
            path->nodes[path->length++] = n = enter_child(p, n, content);
        else
            n = last;
        hold_page(p, n, kv, FR_KV_FULL);
        hold_before(p, n, drafters);
    }
    p->nodes[n].used[FR_KV_LEAVES] = ++p->clock;
    settle(p, FR_KV_LEAVES, n);
    hold_drafter_pages(p, drafters, p->nodes[n].depth - 1, p->nodes[n].drafter);
    size_t from = p->window ? fr_kv_held_from(kv, window_from(p, n) * BLOCK, length + 1) : 0;
    for (; p->window && p->nodes[n].depth * BLOCK > from; n = p->nodes[n].parent) hold_page(p, n, kv, FR_KV_SLIDING);
    kv->length = length;
    kv->from = from;
    for (size_t i = 0; i < FR_KV_DRAFTERS; i++)
        if (set >> i & 1) drafters[i]->length = length;
    if (!point) return;
    fr_recurrent_return(&kv->recurrent, point->states, length);
    point->used = p->clock;
}

/* -------------------------------------------------------------------------------------------------------------- add */

/* Makes a node and a timeline hold the same page. If the node has a page, the timeline gets it; otherwise the node gets
 * the timeline's page. */
static void share_page(fr_kv_pages *pool, uint8_t **held, uint8_t **own) {
    if (!*own) return;
    if (!*held) {
        fr_kv_pages_hold(pool, held, own, 0, 1);
    } else if (*held != *own) {
        fr_kv_pages_drop(pool, own, 0, 1);
        fr_kv_pages_hold(pool, own, held, 0, 1);
    }
}

static void share_kind(fr_kv_prefixes *p, uint32_t n, fr_kv *kv, fr_kv_kind kind, size_t block) {
    uint8_t **held = &p->nodes[n].pages[kind];
    share_page(&p->pages[kind], held, &kv->table[kind][block]);
    if (*held) p->owner[kind][number_of(p, kind, *held)] = n;
    if (kind == FR_KV_SLIDING) settle(p, FR_KV_WINDOWS, n);
}

/* Makes a node and a drafter's cache hold the same page of a block. Does the same with the drafter's page of the block
 * before, which is complete now that this block's first id is known. */
static void share_drafter(fr_kv_prefixes *p, size_t which, fr_kv_node *node, fr_kv *drafter, size_t block) {
    fr_kv_pages *pool = p->drafter[which];
    uint8_t **own = &drafter->table[FR_KV_FULL][block];
    if (!node->drafter[which] && !node->children) fr_kv_pages_hold(pool, &node->drafter[which], own, 0, 1);
    if (node->parent == NONE) return;
    /* node->before is a complete page of the parent's block, because it has the block's last pair. The parent may hold
     * any complete page of its own block. So it drops the page that it holds and holds node->before instead. */
    uint8_t **ends = &p->nodes[node->parent].drafter[which];
    share_page(pool, &node->before[which], own - 1);
    fr_kv_pages_drop(pool, ends, 0, 1);
    fr_kv_pages_hold(pool, ends, &node->before[which], 0, 1);
}

static void share_block(fr_kv_prefixes *p, uint32_t n, fr_kv *kv, fr_kv *const *drafters, size_t block) {
    share_kind(p, n, kv, FR_KV_FULL, block);
    if (block * BLOCK >= kv->from) share_kind(p, n, kv, FR_KV_SLIDING, block);
    for (size_t i = 0; drafters && i < FR_KV_DRAFTERS; i++)
        if (drafters[i]) share_drafter(p, i, &p->nodes[n], drafters[i], block);
}

/* Gives the smallest of a frontier and the frontiers of the drafters' caches. */
static size_t least_length(size_t length, fr_kv *const *drafters) {
    for (size_t i = 0; drafters && i < FR_KV_DRAFTERS; i++)
        if (drafters[i]) length = fr_smaller(length, drafters[i]->length);
    return length;
}

/* Marks the node at which a prompt ends, once the path has reached that node. With a drafter this may happen after the
 * prompt has been run, because a node is added only when its pairs are complete. */
static void mark_prompt(fr_kv_prefixes *p, fr_kv_path *path) {
    if (path->prompt == 0 || path->length < path->prompt) return;
    uint32_t end = path->nodes[path->prompt - 1];
    path->prompt = 0;
    if (p->nodes[end].ends_prompt) return;
    p->nodes[end].ends_prompt = true;
    mark_window(p, end, 1);
}

void fr_kv_prefixes_add(fr_kv_prefixes *p, fr_kv_path *path, fr_kv *kv, fr_kv *const *drafters, fr_kv_content content,
                        bool prompt_end) {
    size_t complete = kv->length / BLOCK;
    if (prompt_end) path->prompt = complete;
    /* a drafter may still lack the block's last pair */
    if (set_of(drafters)) complete = fr_smaller(complete, (least_length(SIZE_MAX - 1, drafters) + 1) / BLOCK);
    while (path->length < complete) {
        size_t block = path->length;
        uint32_t n = enter_child(p, block ? path->nodes[block - 1] : NONE, content);
        if (n == NONE) return;
        path->nodes[path->length++] = n;
        remove_tails(p, n); /* tails go first: a page has only one owner in the tree, and a tail may have owned this
                             * page until now */
        share_block(p, n, kv, drafters, block);
    }
    mark_prompt(p, path);
}

/* Finds a node that can replace a text's last, incomplete block: the shortest child that begins with all ids of this
 * block and has all pages for them. Gives NONE if there is no such child. */
static uint32_t covering_child(const fr_kv_prefixes *p, uint32_t parent, fr_kv_content content, size_t first,
                               size_t count, size_t run, unsigned drafters) {
    uint32_t best = NONE;
    for (uint32_t c = p->nodes[parent].first_child; c != NONE; c = p->nodes[c].sibling)
        if (shared_ids(p, c, content, first + count) == count && p->nodes[c].run >= run &&
            has_pages(p, &p->nodes[c], drafters) && (best == NONE || p->nodes[c].count < p->nodes[best].count))
            best = c;
    return best;
}

uint32_t fr_kv_prefixes_add_tail(fr_kv_prefixes *p, const fr_kv_path *path, fr_kv *kv, fr_kv *const *drafters,
                                 fr_kv_content content, size_t length) {
    unsigned set = set_of(drafters);
    size_t block = path->length, first = block * BLOCK, end = kv->length;
    if (set) end = fr_smaller(length, least_length(end, drafters) + 1);
    size_t count = end - first, run = fr_smaller(count, kv->length - first);
    if (end <= first + (set != 0) || run >= BLOCK || count > BLOCK) return NONE;
    if (p->window && (!kv->table[FR_KV_SLIDING][block] || first < kv->from)) return NONE;
    /* If a node already holds the page, nothing needs to be done, because the page has not been written since that node
     * got it. */
    for (fr_kv_kind kind = 0; kind < FR_KV_KINDS; kind++)
        if (kv->table[kind][block] && p->owner[kind][number_of(p, kind, kv->table[kind][block])] != NONE) return NONE;
    uint32_t parent = block ? path->nodes[block - 1] : NONE;
    uint32_t n = covering_child(p, parent, content, first, count, run, set);
    if (n == NONE && (n = add_child(p, parent, content, count, run)) != NONE) {
        fr_kv_node *node = &p->nodes[n];
        share_block(p, n, kv, drafters, block);
        node->ends_prompt = true;
        mark_window(p, n, 1);
        remove_tails(p, n);
    }
    if (n == NONE || !is_tail(&p->nodes[n]) || p->nodes[n].count > count) return n; /* a longer node covers the text */
    p->nodes[n].used[FR_KV_LEAVES] = ++p->clock;
    settle(p, FR_KV_LEAVES, n);
    return n;
}

void fr_kv_path_cut(fr_kv_prefixes *p, fr_kv_path *path, size_t length) {
    if (path->prompt > length / BLOCK) path->prompt = 0;
    while (path->length > length / BLOCK) {
        uint32_t n = path->nodes[--path->length];
        if (--p->nodes[n].timelines) continue;
        p->nodes[n].used[FR_KV_LEAVES] = ++p->clock;
        settle(p, FR_KV_LEAVES, n);
    }
}

static bool is_owned(const fr_kv_prefixes *p, fr_kv_kind kind, size_t page) {
    return p->owner[kind] && p->owner[kind][page] != NONE;
}

fr_kv_use fr_kv_prefixes_use(const fr_kv_prefixes *p, const fr_kv *kv) {
    fr_kv_use use = {0};
    for (fr_kv_kind kind = 0; kind < FR_KV_KINDS; kind++) {
        const fr_kv_pages *pool = &kv->pages[kind];
        for (size_t i = 0; i < pool->count; i++) {
            bool owned = is_owned(p, kind, i);
            size_t timelines = pool->holders[i] - owned;
            use.used += timelines > 0 ? pool->bytes : 0;
            use.shared += timelines > 1 ? pool->bytes : 0;
            use.cached += owned && timelines == 0 ? pool->bytes : 0;
        }
    }
    return use;
}

size_t fr_kv_prefixes_unheld(const fr_kv_prefixes *p, const fr_kv *kv, fr_kv_kind kind) {
    const fr_kv_pages *pool = &kv->pages[kind];
    size_t count = 0;
    for (size_t i = 0; i < pool->count; i++) count += pool->holders[i] == is_owned(p, kind, i);
    return count;
}
