/* The key/value cache of a timeline: a table of pages for each kind of layer, written at slot = position, and a
 * frontier.
 *
 * A slot's states, and the functions that change them:
 *
 *     unwritten --forward--> tentative --fr_kv_commit--> accepted
 *                               ^  |
 *                               |  +--fr_kv_commit (shorter)--> stale --forward (overwrites)--> tentative
 *     accepted --fr_kv_rewind, fr_kv_reset--> stale
 *
 * length is the frontier: slots of positions below it were written by accepted tokens; slots at or above it are
 * tentative or stale and are read by no row before that row's own forward has written them again. Rejecting a draft is
 * therefore one assignment; nothing is copied or cleared.
 *
 * Recurrent layers have a state instead of keys and values. It lies beside the tables (recurrent.h) and limits how far
 * back the frontier may move.
 *
 * Position p lies in page p / 64 of its layer's kind, row p % 64 (kv_pages.h). Before a forward the pages that it will
 * write are claimed: each must exist and be held by this timeline alone. A shared page is copied first, which only
 * happens at the frontier. Sliding layers drop pages that lie farther back than their window and one batch. The
 * frontier can therefore not move back to any position: `from` is the first position that these layers still hold, and
 * a row at the new frontier must find its whole window (fr_kv_holds_lookback). To go back farther, pages are restored
 * from checkpoints (kv_checkpoints.h), or the positions are run again.
 *
 * In: shapes, types, a context length, the largest batch. Out: memory taken from an arena. */
#ifndef FR_SRC_ENGINE_CACHE_KV_H
#define FR_SRC_ENGINE_CACHE_KV_H

#include "kernels/kernels.h"
#include "src/engine/cache/kv_pages.h"
#include "src/engine/cache/recurrent.h"

/* The types that keys and values are stored as, each one of FR_KV_TYPES. */
typedef struct fr_kv_types {
    fr_dtype k, v;
} fr_kv_types;

/* Gives the word that options use for a type, NULL past the last one; and the type that a word names, FR_DTYPE_COUNT
 * if it names none. */
const char *fr_kv_type_word(size_t index);
fr_dtype fr_kv_type_from_word(const char *word);

/* The heads that one layer stores for each position. If ranks share a model, each of them may keep only some of a
 * layer's heads, or none. */
typedef struct fr_kv_shape {
    size_t heads, head_dim;
    size_t window; /* positions that a reader may look back, its own included; 0: all */
    size_t latent; /* a value is the first `latent` numbers of its key and is not stored again; 0: values are stored */
    size_t before, behind; /* heads before and after these, which other ranks keep */
} fr_kv_shape;

/* Layers differ by how far back a row reads: all positions, or a window. */
typedef enum fr_kv_kind { FR_KV_FULL, FR_KV_SLIDING, FR_KV_KINDS } fr_kv_kind;

/* A layer's keys, or its values, in each of its pages: [heads][64] rows, `bytes` each. Latent values are the
 * beginnings of their keys, so their rows have 0 bytes. */
typedef struct fr_kv_rows {
    size_t at; /* bytes from the page's beginning */
    fr_dtype type;
    size_t bytes;
} fr_kv_rows;

typedef struct fr_kv_layer {
    fr_kv_rows k, v;
    size_t heads, head_dim, value_dim;
    size_t first, all; /* the first of these heads, counted among all heads that the model has */
    fr_kv_kind kind;
    uint8_t **pages; /* the table of its kind */
} fr_kv_layer;

typedef struct fr_kv {
    fr_kv_layer *layers;
    size_t count;
    fr_kv_pages *pages;                                      /* [FR_KV_KINDS] the pools that its pages come from */
    size_t page_bytes[FR_KV_KINDS], page_count[FR_KV_KINDS]; /* page_count: in the pool */
    /* bytes of a page with all ranks' heads, by which pages are counted, so that all ranks have equally many */
    size_t whole_bytes[FR_KV_KINDS];
    uint8_t **table[FR_KV_KINDS]; /* [blocks] pages by position / 64; NULL: none */
    size_t blocks;
    /* the smallest pool, in whole pages, that one timeline can run with at these shares of both kinds */
    size_t fewest_bytes;
    size_t length; /* the frontier */
    size_t from;   /* accepted positions below it may be missing from layers that slide */
    size_t window; /* the widest one of the sliding layers */
    bool rope_far; /* its keys are rotated with the frequencies for long texts (fr_trunk.rope_near_max) */
    size_t keeps;  /* positions that sliding layers hold at least before a forward's last; 0: they hold all */
    size_t spare;  /* checkpoints that there are pages for, of sliding layers and of recurrent states */
    fr_recurrent recurrent;
} fr_kv;

/* Checks that the heads of these shapes are whole blocks of these types; FR_INPUT if not. */
fr_status fr_kv_check(const fr_kv_shape *shapes, size_t count, fr_kv_types types);

/* The sizes that a cache is laid out for. */
typedef struct fr_kv_sizes {
    size_t context;
    size_t batch;       /* rows of the largest forward; if it is as large as the context, no layer drops pages */
    size_t checkpoints; /* as many as are wanted; the cache has room for those that it can use */
    size_t timelines;   /* timelines that share the pool, this one included */
    size_t pages;       /* pages of full layers in the pool; 0: as many as all timelines may need */
    /* bytes of all pages, counted with all ranks' heads so that all ranks have equally many; 0: as all timelines
     * need */
    size_t bytes;
    const fr_recurrent_shape *recurrent; /* layers without keys and values; kept by the caller */
    size_t recurrent_count;
} fr_kv_sizes;

/* Gives the widest window of these shapes; 0: no layer slides. */
size_t fr_kv_window(const fr_kv_shape *shapes, size_t count);

/* Takes the cache and its pages from the arena, or measures them. */
void fr_kv_layout(fr_kv *kv, fr_arena *arena, const fr_kv_shape *shapes, size_t count, fr_kv_types types,
                  fr_kv_sizes sizes);

/* Gives the bytes that a cache of these shapes grows by for each position while no page is dropped. */
size_t fr_kv_position_bytes(const fr_kv_shape *shapes, size_t count, fr_kv_types types);

/* Gives the bytes of keys, values and states that a timeline has pages for. */
size_t fr_kv_bytes(const fr_kv *kv);

/* Gives the bytes of all pages in its pool, those of states too; and the share of them that is meant for
 * checkpoints. */
size_t fr_kv_pool_bytes(const fr_kv *kv);
size_t fr_kv_spare_bytes(const fr_kv *kv);

/* Gives how many bytes more the pool would have if this process kept all heads. */
size_t fr_kv_foreign_bytes(const fr_kv *kv);

/* Gives the address of a position's key (or value), of one of the heads that are kept. */
static inline void *fr_kv_slot(const fr_kv_layer *layer, const fr_kv_rows *rows, size_t head, size_t position) {
    return layer->pages[position / FR_KV_PAGE] + rows->at + (head * FR_KV_PAGE + position % FR_KV_PAGE) * rows->bytes;
}

/* Counts the positions from `position` on, before `end`, whose rows lie side by side in one page. */
static inline size_t fr_kv_run(size_t position, size_t end) {
    size_t left = FR_KV_PAGE - position % FR_KV_PAGE;
    return end - position < left ? end - position : left;
}

/* Claims the pages for a forward that writes `rows` positions from the frontier on. FR_MEMORY: there are not enough
 * pages; then none is claimed, and nothing accepted is lost. Recurrent layers take the positions before the frontier
 * as certain, until fr_recurrent_certain says more. */
fr_status fr_kv_claim(fr_kv *kv, size_t rows);

/* Gives back the pages that were claimed past the frontier's page, as their rows have not been accepted. */
void fr_kv_give_back(fr_kv *kv);

/* Gives the first of positions [from, end) that sliding layers have pages for. */
size_t fr_kv_held_from(const fr_kv *kv, size_t from, size_t end);

/* Gives an empty cache pages for a frontier at `length`. Its sliding layers get those from position `from` on, which
 * must be within what they can hold. The caller writes the contents. */
fr_status fr_kv_restore(fr_kv *kv, size_t from, size_t length);

/* A fork is a timeline over the pages of another one. The first function lays it out empty, the second lets it hold
 * all that the other has accepted. */
void fr_kv_layout_fork(fr_kv *fork, fr_arena *arena, const fr_kv *kv);
void fr_kv_fork(fr_kv *fork, const fr_kv *kv);

/* Moves the frontier forward: positions below length are accepted. */
void fr_kv_commit(fr_kv *kv, size_t length);

/* Tells the cache that a forward over rows of it has run. */
void fr_kv_ran(fr_kv *kv);

/* Returns true if the frontier can move to `length`, which is at most where it is: the cache still holds all that rows
 * from there on look back to. */
bool fr_kv_holds_lookback(const fr_kv *kv, size_t length);

/* Moves the frontier back to a length whose lookback is held, or to 0. */
void fr_kv_rewind(fr_kv *kv, size_t length);
void fr_kv_reset(fr_kv *kv);

#endif
