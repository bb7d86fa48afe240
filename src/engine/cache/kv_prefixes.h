/* Shared prefixes: pages that were filled before, found again by the ids in them.
 *
 * A node of the tree is a block of 64 consecutive ids that follow its parent's, so that it stands for all ids up to its
 * end; its pages are those of a timeline with these ids, of the target's cache and of a drafter's own. Two blocks are
 * equal if they have the same parent and equal ids and digests, which are compared, not only hashed. A page enters once
 * the frontier has passed its last position; from then on no timeline writes it (kv.h). Pages that were read from a
 * file must not enter, as no forward here has computed them.
 *
 * A text that ends within a block leaves a tail there: a node of fewer ids, which has no children. A node with all of
 * its ids and more replaces it (fr_kv_prefixes_add_tail).
 *
 * A prompt begins where it leaves all texts that are there, or earlier, where the sliding layers still have a whole
 * window: they have given up most pages. Within a block it begins in a copy of another text's page, which takes less
 * time than running a single row. A drafter's pair of a position depends on the id after it, so a page's last pair
 * depends on the next block. Each node therefore also keeps its parent block's drafter page as it is before this block,
 * and a prompt that goes back runs the last position again to make its pair again.
 *
 * States of recurrent layers can't be cut, so there a prompt begins at points: positions whose states a timeline left
 * in a page. A point belongs to the block or tail that holds the position before it. It is found if the prompt has the
 * ids before it, and with a drafter's pairs the id at it. The pages that are cut there are copied before they are
 * written. Without a free page the longest unused point is given up, those at regular distances first.
 *
 * Timelines keep the nodes in which they stand. All other nodes are cache: the longest unused is given up when a pool
 * has no free page. Sliding layers give up pages that no timeline holds, first those in the window of no prompt's end
 * and no branch. For all other layers a leaf is given up with all its pages, which also frees the rest of a window with
 * a hole. Finding takes one comparison for each block, giving up a page one walk down a heap.
 *
 * One caller at a time. A thread that makes drafts claims pages too, for which pages of any kind may be given up.
 *
 * In: timelines and their ids. Out: the same pages in other timelines. */
#ifndef FR_SRC_ENGINE_CACHE_KV_PREFIXES_H
#define FR_SRC_ENGINE_CACHE_KV_PREFIXES_H

#include "src/engine/cache/kv.h"

typedef struct fr_kv_node fr_kv_node;

/* What stands in a block beside its ids: pictures, and where on the rotary axes. All 0: nothing. Two that are equal are
 * taken for the same, so nobody must be able to make such. */
typedef struct fr_kv_digest {
    uint8_t bytes[32];
} fr_kv_digest;

/* What a timeline says. */
typedef struct fr_kv_content {
    const int32_t *ids;
    const fr_kv_digest *digests; /* of each whole block; NULL: nothing but ids */
} fr_kv_content;

/* Nodes by how long they have not been used, the longest first. */
typedef struct fr_kv_heap {
    uint32_t *nodes; /* [1 + count] from 1 on */
    size_t count;
} fr_kv_heap;

/* Leaves in which no timeline stands; nodes whose sliding page nobody else holds. */
typedef enum fr_kv_unused { FR_KV_LEAVES, FR_KV_WINDOWS, FR_KV_UNUSED } fr_kv_unused;

/* Where recurrent layers can go on. */
typedef struct fr_kv_point {
    uint32_t node; /* of the block of its last position; 0: there is none here */
    size_t position;
    uint8_t *states; /* a page */
    bool spare;      /* it lies at a regular distance, and goes before others */
    uint64_t used;
} fr_kv_point;

typedef struct fr_kv_prefixes {
    fr_kv_node *nodes;            /* [capacity] */
    uint32_t *first;              /* [buckets] of the chain of a hash */
    uint32_t *owner[FR_KV_KINDS]; /* [pages of the pool] the node that has it; 0: none */
    fr_kv_heap unused[FR_KV_UNUSED];
    size_t capacity, buckets;
    uint32_t free, fresh; /* of nodes the first that was removed; how many were never used */
    uint64_t clock;
    fr_kv_pages *pages;   /* [FR_KV_KINDS] the target's pools */
    fr_kv_pages *drafter; /* a drafter's; NULL: it has none */
    size_t window;        /* positions behind a point that a row there may look back to */
    fr_kv_pages *states;  /* of recurrent layers; NULL: there are none */
    fr_kv_point *points;  /* [point_count] one per page of those */
    size_t point_count;
} fr_kv_prefixes;

/* Where a timeline stands: the nodes of its first blocks. */
typedef struct fr_kv_path {
    uint32_t *nodes; /* [blocks] */
    size_t length;
    size_t prompt; /* at whose end a prompt ended, and is not marked yet; 0: none */
} fr_kv_path;

/* Takes room for all blocks that the cache has pages for from the arena, or measures it. drafter: NULL, or its
 * cache. */
void fr_kv_prefixes_layout(fr_kv_prefixes *prefixes, fr_arena *arena, const fr_kv *kv, const fr_kv *drafter);
void fr_kv_path_layout(fr_kv_path *path, fr_arena *arena, const fr_kv *kv);

/* Lets pools ask it for pages. */
void fr_kv_prefixes_serve(fr_kv_prefixes *prefixes);

/* Counts the leading positions of a prompt of `count` ids that need not be run. They are fewer than all, so that one is
 * left to give logits; with a drafter's cache one less still; and with recurrent layers they end at a point. */
size_t fr_kv_prefixes_find(const fr_kv_prefixes *prefixes, fr_kv_content content, size_t count, bool drafter);

/* Counts the leading ids that some text there shares, even if their pages and states have been given up. */
size_t fr_kv_prefixes_known(const fr_kv_prefixes *prefixes, fr_kv_content content, size_t count);

/* Makes them an empty timeline's, whose frontier is then there. drafter: NULL, or its cache, empty too. */
void fr_kv_prefixes_take(fr_kv_prefixes *prefixes, fr_kv_path *path, fr_kv *kv, fr_kv *drafter, fr_kv_content content,
                         size_t length);

/* The timeline's blocks that are complete and not in its path yet enter; where an equal one is there already, its pages
 * become the timeline's, which nobody may be reading just then. prompt_end: a prompt ends here. */
void fr_kv_prefixes_add(fr_kv_prefixes *prefixes, fr_kv_path *path, fr_kv *kv, fr_kv *drafter, fr_kv_content content,
                        bool prompt_end);

/* Makes a tail of the timeline's last block, which is not complete, or whose last pairs the drafter has not been given
 * yet, so that other prompts can begin with it; the timeline takes a copy of the page when it goes on. length: ids of
 * the timeline, run or not. Gives the node; 0: nothing could be made one. */
uint32_t fr_kv_prefixes_add_tail(fr_kv_prefixes *prefixes, const fr_kv_path *path, fr_kv *kv, fr_kv *drafter,
                                 fr_kv_content content, size_t length);

/* Adds a point, from which recurrent layers can go on. It belongs to the block that holds the position before it, which
 * must be in the timeline's path or be that tail; otherwise nothing is added. spare: it is given up before points that
 * are not. */
void fr_kv_prefixes_add_point(fr_kv_prefixes *prefixes, const fr_kv_path *path, uint32_t tail, size_t position,
                              uint8_t *states, bool spare);

/* Counts the pages for states that are free or held by spare points alone. */
size_t fr_kv_prefixes_spare_states(const fr_kv_prefixes *prefixes);

/* The timeline is cut to `length` positions, or closed. */
void fr_kv_path_cut(fr_kv_prefixes *prefixes, fr_kv_path *path, size_t length);

/* Pages of a cache that timelines hold, that more than one of them does, and that nobody does. */
typedef struct fr_kv_use {
    size_t used, shared, cached; /* bytes */
} fr_kv_use;
fr_kv_use fr_kv_prefixes_use(const fr_kv_prefixes *prefixes, const fr_kv *kv);

/* How many pages of a cache's pool no timeline holds: free ones, and what would be given up for others. */
size_t fr_kv_prefixes_unheld(const fr_kv_prefixes *prefixes, const fr_kv *kv, fr_kv_kind kind);

#endif
