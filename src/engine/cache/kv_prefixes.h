/* Shared prefixes: a tree of ids, in which a new text finds the pages that earlier texts with the same beginning have
 * filled.
 *
 * A node of the tree is a block of 64 consecutive ids, which follow the ids of the node's parent. So a node stands for
 * all ids from the beginning of a text to the end of the node's block. The node's pages are those of a timeline with
 * these ids: pages of the target's cache and of the drafters' caches. Two blocks are equal if they have the same
 * parent, equal ids and equal digests. Ids and digests are compared in full, not only by a hash. A page enters the tree
 * once the frontier has passed the page's last position. From then on no timeline writes the page (kv.h). Pages that
 * were read from a file must not enter, because no forward of this process has computed them.
 *
 * A text that ends within a block leaves a tail there: a node with fewer ids and no children. When a node with all ids
 * of the tail and more is added, it replaces the tail (fr_kv_prefixes_add_tail).
 *
 * A prompt begins at the position where it first differs from all known texts. Sliding layers give up most pages. If
 * there are sliding layers, the prompt may have to begin earlier, at a position before which these layers still have a
 * whole window. Within a block the prompt begins with a copy of another text's page, which takes less time than running
 * a single row. A drafter's entry for a position is called its pair (pairs.h), and also depends on the id after that
 * position. So the last pair of a page depends on the next block. For this reason each node also keeps the drafter's
 * page of the parent's block, in which the last pair was made for this node's first id. If a prompt begins within a
 * block, the position before its beginning is run again, so that the pair of that position is made again.
 *
 * States of recurrent layers can't be cut at a position. So with recurrent layers, a prompt begins at a point: a
 * position whose states a timeline has left in a page. A point at position p belongs to the block or tail that contains
 * position p - 1. A prompt can begin at the point if it has the same ids before p. If drafters have pairs, the prompt
 * must also have the same id at p. A page that the point divides is copied before it is written. If no page is free, a
 * point is given up. Points that were made only at a regular distance are given up first, and among these the one that
 * was unused for the longest time.
 *
 * A timeline keeps the nodes of its own path. All other nodes are a cache: when a pool has no free page, the node that
 * was unused for the longest time is given up. Sliding layers give up pages that no timeline holds. Pages outside the
 * windows of all prompts' ends and branches are given up first. For all other layers, a leaf is given up with all its
 * pages. This also frees sliding pages that have become useless because other pages of their window are gone. Finding a
 * prefix takes one comparison for each block. Giving up a page takes one walk down a heap.
 *
 * Calls must not overlap. A call must not overlap with a claim of pages either, for example by a thread that makes
 * drafts, because a claim may make the tree give up pages of any kind.
 *
 * In: timelines and their ids. Out: the same pages in other timelines. */
#ifndef FR_SRC_ENGINE_CACHE_KV_PREFIXES_H
#define FR_SRC_ENGINE_CACHE_KV_PREFIXES_H

#include "src/engine/cache/kv.h"

typedef struct fr_kv_node fr_kv_node;

/* The most drafters of an engine that have caches of their own. The functions below take an array of FR_KV_DRAFTERS
 * pointers to the drafters' caches, in which NULL stands for a drafter that is missing. If the array itself is NULL,
 * there are no drafters. In a set of drafters, bit i stands for drafter i. */
enum { FR_KV_DRAFTERS = 2 };

/* A hash of what a block contains besides its ids: pictures, and positions on the rotary axes. All bytes are 0 if there
 * is no such content. Blocks with equal digests count as equal. So the hash is one for which nobody can construct two
 * contents with the same value. */
typedef struct fr_kv_digest {
    uint8_t bytes[32];
} fr_kv_digest;

/* The ids of a timeline, and the digests of its blocks. */
typedef struct fr_kv_content {
    const int32_t *ids;
    const fr_kv_digest *digests; /* one digest for each whole block; NULL: the blocks have only ids */
} fr_kv_content;

/* A heap of nodes. The first node of the heap is the one that was unused for the longest time. */
typedef struct fr_kv_heap {
    uint32_t *nodes; /* [1 + count] the nodes of the heap; index 0 is unused */
    size_t count;
} fr_kv_heap;

/* The two heaps. One has the leaves in which no timeline ends. The other has the nodes that are the only holders of
 * their sliding page. */
typedef enum fr_kv_unused { FR_KV_LEAVES, FR_KV_WINDOWS, FR_KV_UNUSED } fr_kv_unused;

/* A position at which a prompt can begin although there are recurrent layers. */
typedef struct fr_kv_point {
    uint32_t node; /* the block that contains the position before the point; 0: this entry is free */
    size_t position;
    uint8_t *states; /* the page with the states */
    bool spare;      /* the point was made at a regular distance, and is given up before other points */
    uint64_t used;
} fr_kv_point;

typedef struct fr_kv_prefixes {
    fr_kv_node *nodes;            /* [capacity] the nodes, indexed by their numbers; node 0 is the root */
    uint32_t *first;              /* [buckets] the first node of each hash chain */
    uint32_t *owner[FR_KV_KINDS]; /* [pages of the pool] for each page, the node that holds it; 0: no node holds it */
    fr_kv_heap unused[FR_KV_UNUSED];
    size_t capacity, buckets;
    uint32_t free, fresh; /* free: number of the first node in the list of removed nodes; fresh: number of the first
                           * node that was never used */
    uint64_t clock;
    fr_kv_pages *pages;                   /* [FR_KV_KINDS] the target's pools */
    fr_kv_pages *drafter[FR_KV_DRAFTERS]; /* the pools of the drafters; NULL: this drafter is missing or has no cache of
                                           * its own */
    size_t window;                        /* the widest window of the sliding layers */
    fr_kv_pages *states;                  /* the pool of recurrent states; NULL: there are none */
    fr_kv_point *points;                  /* [point_count] the points; there are as many as pages of states */
    size_t point_count;
} fr_kv_prefixes;

/* A timeline's path in the tree: the nodes of its first blocks. */
typedef struct fr_kv_path {
    uint32_t *nodes; /* [blocks] the node of each block */
    size_t length;
    size_t prompt; /* the path still has to grow to this number of blocks before the end of a prompt can be marked; 0:
                    * no end is waiting */
} fr_kv_path;

/* Takes from the arena, which may be a measuring one (base/arena.h), memory for nodes of all blocks for which the cache
 * has pages. */
void fr_kv_prefixes_layout(fr_kv_prefixes *prefixes, fr_arena *arena, const fr_kv *kv, const fr_kv *const *drafters);
void fr_kv_path_layout(fr_kv_path *path, fr_arena *arena, const fr_kv *kv);

/* Makes the tree the keeper of the pools (fr_kv_keeper): a pool without a free page then asks the tree to give up
 * pages. */
void fr_kv_prefixes_serve(fr_kv_prefixes *prefixes);

/* Counts the leading positions of a prompt of `count` ids that need not be run. At least one position is left to run,
 * because it must give logits; if there are drafters, at least two positions are left. With recurrent layers the count
 * ends at a point (fr_kv_prefixes_add_point), because the states are stored only there. drafters: the set of drafters
 * whose pages the prompt needs too. */
size_t fr_kv_prefixes_find(const fr_kv_prefixes *prefixes, fr_kv_content content, size_t count, unsigned drafters);

/* Counts how many of the first ids also begin some text in the tree. The tree may already have given up the pages and
 * states of these ids. */
size_t fr_kv_prefixes_known(const fr_kv_prefixes *prefixes, fr_kv_content content, size_t count);

/* Gives an empty timeline the pages of its first `length` positions, and moves its frontier there. Does the same for
 * the caches of the timeline's drafters, which are empty too. */
void fr_kv_prefixes_take(fr_kv_prefixes *prefixes, fr_kv_path *path, fr_kv *kv, fr_kv *const *drafters,
                         fr_kv_content content, size_t length);

/* Adds the timeline's complete blocks that are not in its path yet. If an equal block already exists, that block's
 * pages replace the timeline's pages. So no thread may be reading the timeline's pages during the call. prompt_end: a
 * prompt ends at the present end of the timeline. */
void fr_kv_prefixes_add(fr_kv_prefixes *prefixes, fr_kv_path *path, fr_kv *kv, fr_kv *const *drafters,
                        fr_kv_content content, bool prompt_end);

/* Adds the timeline's last block as a tail, so that other prompts can begin with it. That block may be incomplete, or
 * it may lack the drafter's last pairs. The timeline copies the tail's page when it continues. length: number of ids of
 * the timeline, including ids that have not been run. Returns the node, or 0 if no tail could be made. */
uint32_t fr_kv_prefixes_add_tail(fr_kv_prefixes *prefixes, const fr_kv_path *path, fr_kv *kv, fr_kv *const *drafters,
                                 fr_kv_content content, size_t length);

/* Adds a point at `position`, from which recurrent layers can continue. The point belongs to the block that contains
 * the position before it. That block must be in the timeline's path or be the given tail; otherwise nothing is added.
 * spare: the point is given up before points that are not spare. */
void fr_kv_prefixes_add_point(fr_kv_prefixes *prefixes, const fr_kv_path *path, uint32_t tail, size_t position,
                              uint8_t *states, bool spare);

/* Counts the pages of states that are free, or that only spare points hold. */
size_t fr_kv_prefixes_spare_states(const fr_kv_prefixes *prefixes);

/* Removes a timeline from the nodes after its first `length` positions, because the timeline is cut there. If length is
 * 0, the timeline is closed. */
void fr_kv_path_cut(fr_kv_prefixes *prefixes, fr_kv_path *path, size_t length);

/* Bytes of a cache's pages. used: bytes of pages that timelines hold; shared: bytes of pages that several timelines
 * hold; cached: bytes of pages that only the tree holds. */
typedef struct fr_kv_use {
    size_t used, shared, cached; /* bytes */
} fr_kv_use;
fr_kv_use fr_kv_prefixes_use(const fr_kv_prefixes *prefixes, const fr_kv *kv);

/* Counts the pages of a cache's pool that no timeline holds: the free pages, and the pages that the tree would give
 * up. */
size_t fr_kv_prefixes_unheld(const fr_kv_prefixes *prefixes, const fr_kv *kv, fr_kv_kind kind);

#endif
