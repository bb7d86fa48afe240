/* The key/value cache of a timeline: a table of pages for each kind of layer, and a frontier. The key and the value of
 * a position are written in the slot with the position's number.
 *
 * A slot's states, and the functions that change them:
 *
 *     unwritten --forward--> tentative --fr_kv_commit--> accepted
 *                               ^  |
 *                               |  +--fr_kv_commit (shorter)--> stale --forward (overwrites)--> tentative
 *     accepted --fr_kv_rewind, fr_kv_reset--> stale
 *
 * `length` is the frontier: slots of positions below it were written by accepted tokens. Slots at or above it are
 * tentative or stale. A row reads such a slot only after the row's own forward has written the slot again. So rejecting
 * a draft is one assignment, and nothing is copied or cleared.
 *
 * Recurrent layers have a state instead of keys and values. This state (recurrent.h) limits how far the frontier can
 * move back.
 *
 * Position p is in page p / 64 of its layer's kind, in row p % 64 (kv_pages.h). Before a forward, the pages that the
 * forward will write are claimed: each must exist and be held by this timeline alone. A shared page is copied first;
 * this happens only at the frontier. Sliding layers drop pages that are farther back than their window and one batch.
 * So the frontier cannot move back to every position: `from` is the first position that these layers still hold, and a
 * row at the new frontier must find its whole window (fr_kv_holds_lookback). To go back farther, pages are restored
 * from checkpoints (kv_checkpoints.h), or the positions are run again.
 *
 * In: shapes, types, a context length, the largest batch. Out: memory taken from an arena. */
#ifndef FR_SRC_ENGINE_CACHE_KV_H
#define FR_SRC_ENGINE_CACHE_KV_H

#include "kernels/kernels.h"
#include "src/engine/cache/kv_pages.h"
#include "src/engine/cache/recurrent.h"

/* The number of types in which keys and values can be cached: those of FR_KV_TYPES, turbo4 and turbo3. */
enum { FR_CACHED_TYPES = FR_KV_TYPES + 2 };

/* The types in which keys and values are stored. */
typedef struct fr_kv_types {
    fr_dtype k, v;
} fr_kv_types;

/* fr_kv_type_word gives the word that options use for type number `index`, and NULL past the last type. fr_kv_type
 * gives the type with this number. fr_kv_type_index gives the number of a type. fr_kv_type_from_word gives the type
 * that a word names, and FR_DTYPE_COUNT for any other text. */
const char *fr_kv_type_word(size_t index);
fr_dtype fr_kv_type(size_t index);
size_t fr_kv_type_index(fr_dtype type);
fr_dtype fr_kv_type_from_word(const char *word);

/* Stores n values, the key or the value of one head, in type `type`. `head` is overwritten if the type stores rotated
 * values (kernels/turbo.h). */
void fr_kv_store(const fr_kernels *kernels, fr_dtype type, void *slot, float *head, size_t n);

/* The heads that one layer stores for each position. If ranks share a model, each of them may keep only some of a
 * layer's heads, or none. */
typedef struct fr_kv_shape {
    size_t heads, head_dim;
    size_t window; /* positions that a row may look back over, including its own position; 0: all positions */
    size_t latent; /* a value is the first `latent` numbers of its key, and is not stored a second time; 0: values are
                    * stored */
    size_t before, behind; /* before: number of heads that other ranks keep before this rank's heads; behind: number
                            * after them */
} fr_kv_shape;

/* The kinds of layers. A row of a full layer reads all positions before it. A row of a sliding layer reads only the
 * positions in its window. */
typedef enum fr_kv_kind { FR_KV_FULL, FR_KV_SLIDING, FR_KV_KINDS } fr_kv_kind;

/* The place of one layer's keys, or of its values, in a page: [heads][64] rows of `bytes` bytes each. Latent values
 * are the beginnings of their keys, so their rows have 0 bytes. */
typedef struct fr_kv_rows {
    size_t at; /* bytes from the page's beginning */
    fr_dtype type;
    size_t bytes;
} fr_kv_rows;

typedef struct fr_kv_layer {
    fr_kv_rows k, v;
    size_t heads, head_dim, value_dim;
    /* first: index of this rank's first head among all heads of the model; all: number of all heads */
    size_t first, all;
    fr_kv_kind kind;
    uint8_t **pages; /* fr_kv.table of the layer's kind */
    /* [heads] means that are subtracted from keys before they are stored (kernels/key_means.h); NULL: keys are stored
     * without subtracting means */
    struct fr_key_means *key_means;
    /* [heads][head_dim] sums of squares of the queries that read each key head, which are counted while means are
     * learned (src/engine/session/mean_keys.h); NULL: no sums are counted */
    double *query_squares;
} fr_kv_layer;

typedef struct fr_kv {
    fr_kv_layer *layers;
    size_t count;
    fr_kv_pages *pages;                                      /* [FR_KV_KINDS] the pools from which the cache takes its
                                                              * pages */
    size_t page_bytes[FR_KV_KINDS], page_count[FR_KV_KINDS]; /* page_count: pages in the pool */
    /* bytes that a page would have with the heads of all ranks. The number of pages is computed from these bytes, so
     * that all ranks get the same number */
    size_t whole_bytes[FR_KV_KINDS];
    uint8_t **table[FR_KV_KINDS]; /* [blocks] for each kind, entry p / 64 is the page of position p; NULL: no page */
    size_t blocks;
    /* the fewest bytes of pages with which one timeline can run, if the numbers of full and of sliding pages keep their
     * ratio */
    size_t fewest_bytes;
    size_t length; /* the frontier */
    size_t from;   /* accepted positions below `from` may be missing from sliding layers */
    size_t window; /* the widest window of the sliding layers */
    bool rope_far; /* keys are rotated with the frequencies for long texts (fr_trunk.rope_near_max) */
    size_t keeps;  /* sliding layers hold at least this many positions before a forward's last row; 0: sliding layers
                    * hold all positions */
    size_t spare;  /* number of checkpoints for which there are pages of sliding layers and of recurrent states */
    fr_recurrent recurrent;
} fr_kv;

/* Checks that each head of these shapes fills a whole number of blocks of these types. Returns FR_INPUT if some head
 * does not. */
fr_status fr_kv_check(const fr_kv_shape *shapes, size_t count, fr_kv_types types);

/* Gives the types for a drafter's cache. types: those of the target's cache. If keys have type turbo4 or turbo3 there,
 * the drafter's keys have type Q8_0, because means are learned for the target's keys only. If the drafter's heads do
 * not fill whole blocks of these types, its keys and values are F16. */
fr_kv_types fr_kv_drafter_types(const fr_kv_shape *shapes, size_t count, fr_kv_types types);

/* The sizes for which a cache is laid out. */
typedef struct fr_kv_sizes {
    size_t context;
    size_t batch;       /* number of rows of the largest forward; if it is as large as the context, no layer drops
                         * pages */
    size_t checkpoints; /* number of checkpoints that are wanted; the cache makes room only for as many as it can use */
    size_t timelines;   /* number of timelines that share the pool, including this one */
    size_t pages;       /* number of pages for full layers in the pool; 0: as many as all timelines may need */
    bool whole;         /* sliding layers have as many pages as full layers */
    /* bytes of all pages. The size of a page is computed for the heads of all ranks, not only of this rank, so that all
     * ranks have the same number of pages. 0: as many pages as all timelines may need */
    size_t bytes;
    const fr_recurrent_shape *recurrent; /* the shapes of layers that have no keys and values; the caller keeps this
                                          * array */
    size_t recurrent_count;
} fr_kv_sizes;

/* Gives the widest window of these shapes. Gives 0 if no layer has a window. */
size_t fr_kv_window(const fr_kv_shape *shapes, size_t count);

/* Takes the memory of the cache and its pages from the arena, which may be a measuring one (base/arena.h). */
void fr_kv_layout(fr_kv *kv, fr_arena *arena, const fr_kv_shape *shapes, size_t count, fr_kv_types types,
                  fr_kv_sizes sizes);

/* Gives the bytes by which a cache of these shapes grows with each position while sliding layers have not dropped pages
 * yet. */
size_t fr_kv_position_bytes(const fr_kv_shape *shapes, size_t count, fr_kv_types types);

/* Gives the bytes of keys, values and states for which a timeline has pages at most. */
size_t fr_kv_bytes(const fr_kv *kv);

/* fr_kv_pool_bytes gives the bytes of all pages in the pool, including pages of states. fr_kv_spare_bytes gives how
 * many of these bytes are meant for checkpoints. */
size_t fr_kv_pool_bytes(const fr_kv *kv);
size_t fr_kv_spare_bytes(const fr_kv *kv);

/* Gives the number of bytes by which the pool would be larger if this process kept all heads. */
size_t fr_kv_foreign_bytes(const fr_kv *kv);

/* Gives the address of a position's key (or value) of one of the kept heads. */
static inline void *fr_kv_slot(const fr_kv_layer *layer, const fr_kv_rows *rows, size_t head, size_t position) {
    return layer->pages[position / FR_KV_PAGE] + rows->at + (head * FR_KV_PAGE + position % FR_KV_PAGE) * rows->bytes;
}

/* Counts the positions from `position` up to `end` (excluded) whose rows follow each other in one page. */
static inline size_t fr_kv_run(size_t position, size_t end) {
    size_t left = FR_KV_PAGE - position % FR_KV_PAGE;
    return end - position < left ? end - position : left;
}

/* Claims the pages for a forward that writes `rows` positions from the frontier on. Returns FR_MEMORY if there are not
 * enough pages. Then no page is claimed, and nothing accepted is lost. For recurrent layers, only the positions before
 * the frontier count as accepted, until fr_recurrent_certain adds more. */
fr_status fr_kv_claim(fr_kv *kv, size_t rows);

/* Returns pages to the pool: those that were claimed after the frontier's page and whose rows have not been
 * accepted. */
void fr_kv_give_back(fr_kv *kv);

/* Gives the first of the positions [from, end) that sliding layers still hold when a forward ends at `end`. */
size_t fr_kv_held_from(const fr_kv *kv, size_t from, size_t end);

/* Gives pages to an empty cache, so that its frontier can be `length`; the caller writes their contents. Sliding layers
 * get pages only from position `from` on. So `length` - `from` must be at most the number of positions that sliding
 * layers can hold. */
fr_status fr_kv_restore(fr_kv *kv, size_t from, size_t length);

/* A fork is a timeline that shares the pages of another one. fr_kv_layout_fork takes the memory of an empty fork.
 * fr_kv_fork lets the fork hold everything that the other timeline has accepted. */
void fr_kv_layout_fork(fr_kv *fork, fr_arena *arena, const fr_kv *kv);
void fr_kv_fork(fr_kv *fork, const fr_kv *kv);

/* Moves the frontier forward to `length`: from then on all positions below `length` are accepted. */
void fr_kv_commit(fr_kv *kv, size_t length);

/* Tells the cache that the forward over the claimed rows has been run. */
void fr_kv_ran(fr_kv *kv);

/* Returns true if the frontier can move back to `length`. Then the cache still holds everything that rows from `length`
 * on read. `length` is at most the present frontier. */
bool fr_kv_holds_lookback(const fr_kv *kv, size_t length);

/* fr_kv_rewind moves the frontier back to a length for which fr_kv_holds_lookback is true; fr_kv_reset moves it to
 * 0. */
void fr_kv_rewind(fr_kv *kv, size_t length);
void fr_kv_reset(fr_kv *kv);

#endif
