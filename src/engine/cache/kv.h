/* The key/value cache of a timeline: a table of pages for each kind of layer, written at slot = position, and a
 * frontier.
 *
 * States of a slot, and who moves it:
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
 * Layers that have a state instead of keys and values keep it beside the tables (recurrent.h), and say themselves how
 * far back the frontier may be moved.
 *
 * Position p lies in page p / 64 of its layer's kind, row p % 64 (kv_pages.h). Before a forward its pages are claimed:
 * those it will write must be there, and nobody else's; one that is shared is copied first, which only ever happens at
 * the frontier. Sliding layers let go of pages behind what a row may look back to and a batch more. How far the
 * frontier may be moved back is another matter: `from` is the first position that they still hold, and a row at the new
 * frontier must find what it looks back to (fr_kv_holds_lookback). Farther back, pages have to come from elsewhere
 * (kv_checkpoints.h), or from running the positions again.
 *
 * In: shapes, types, a context length, the largest batch. Out: memory taken from an arena. */
#ifndef FR_SRC_ENGINE_CACHE_KV_H
#define FR_SRC_ENGINE_CACHE_KV_H

#include "kernels/kernels.h"
#include "src/engine/cache/kv_pages.h"
#include "src/engine/cache/recurrent.h"

/* What keys and values are stored as, each one of FR_KV_TYPES. */
typedef struct fr_kv_types {
    fr_dtype k, v;
} fr_kv_types;

/* The options' words of types, by the type, NULL past the last; and the type that one names, FR_DTYPE_COUNT for any
 * other word. */
const char *fr_kv_type_word(size_t index);
fr_dtype fr_kv_type_from_word(const char *word);

/* What one owning layer stores per position. Where ranks run a model this one may keep some of its heads, or none, and
 * others those in front of them and behind. */
typedef struct fr_kv_shape {
    size_t heads, head_dim;
    size_t window; /* positions that a reader may look back, its own included; 0: all */
    size_t latent; /* a value is the first so many of its key's values, not stored again; 0: values of their own */
    size_t before, behind; /* heads that are not kept here */
} fr_kv_shape;

/* By how far their readers look back. */
typedef enum fr_kv_kind { FR_KV_FULL, FR_KV_SLIDING, FR_KV_KINDS } fr_kv_kind;

/* A layer's keys, or its values, in each of its pages: [heads][64] rows, `bytes` each. Values that are the beginnings
 * of their keys have rows of no bytes. */
typedef struct fr_kv_rows {
    size_t at; /* bytes from the page's beginning */
    fr_dtype type;
    size_t bytes;
} fr_kv_rows;

typedef struct fr_kv_layer {
    fr_kv_rows k, v;
    size_t heads, head_dim, value_dim;
    size_t first, all; /* the number of the first of those heads among all that the model has */
    fr_kv_kind kind;
    uint8_t **pages; /* the table of its kind */
} fr_kv_layer;

typedef struct fr_kv {
    fr_kv_layer *layers;
    size_t count;
    fr_kv_pages *pages; /* [FR_KV_KINDS] the pool that its pages are from */
    size_t page_bytes[FR_KV_KINDS], page_count[FR_KV_KINDS]; /* page_count: in the pool */
    size_t whole_bytes[FR_KV_KINDS]; /* of a page with all heads: what counts for how many pages there are */
    uint8_t **table[FR_KV_KINDS]; /* [blocks] pages by position / 64; NULL: none */
    size_t blocks;
    size_t fewest_bytes; /* of a pool with these shares of both kinds, that one timeline alone needs; of whole pages */
    size_t length; /* the frontier */
    size_t from;   /* accepted positions below it may be missing from layers that slide */
    size_t window; /* the widest of those that slide */
    bool rope_far; /* its keys are rotated as those of long texts are (fr_trunk.rope_near_max) */
    size_t keeps;  /* positions behind a forward's last that they hold at least; 0: they hold all */
    size_t spare;  /* checkpoints that there are pages for: further tables of theirs, states of recurrent layers */
    fr_recurrent recurrent;
} fr_kv;

/* Whether heads of these shapes are whole blocks of these types; FR_INPUT if not. */
fr_status fr_kv_check(const fr_kv_shape *shapes, size_t count, fr_kv_types types);

/* What a cache has pages for. */
typedef struct fr_kv_sizes {
    size_t context;
    size_t batch;       /* rows of the largest; with as many as the context has no layer lets go of pages */
    size_t checkpoints; /* of the layers that do, as many as are wanted; it has as many as there is a use for */
    size_t timelines;   /* that are laid out like it, itself included */
    size_t pages;       /* of those that keep all, in the pool; 0: what all timelines may need */
    size_t bytes;       /* of all pages, as if this process kept all heads, so that ranks have as many; 0: the same */
    const fr_recurrent_shape *recurrent; /* layers without keys and values; kept by the caller */
    size_t recurrent_count;
} fr_kv_sizes;

/* The widest window of these shapes; 0: none of them slides. */
size_t fr_kv_window(const fr_kv_shape *shapes, size_t count);

/* Takes the cache and its pages from the arena, or measures them. */
void fr_kv_layout(fr_kv *kv, fr_arena *arena, const fr_kv_shape *shapes, size_t count, fr_kv_types types,
                  fr_kv_sizes sizes);

/* Bytes per position that a cache of these shapes grows by while no page is let go of. */
size_t fr_kv_position_bytes(const fr_kv_shape *shapes, size_t count, fr_kv_types types);

/* Bytes of keys and values that a timeline has pages for. */
size_t fr_kv_bytes(const fr_kv *kv);

/* Bytes of all pages in its pool, those of states too; and the share of them that is meant for checkpoints. */
size_t fr_kv_pool_bytes(const fr_kv *kv);
size_t fr_kv_spare_bytes(const fr_kv *kv);

/* By how much they would be more if this process kept all heads. */
size_t fr_kv_foreign_bytes(const fr_kv *kv);

/* Where the key (or value) of a position lies, of one of the heads that are kept. */
static inline void *fr_kv_slot(const fr_kv_layer *layer, const fr_kv_rows *rows, size_t head, size_t position) {
    return layer->pages[position / FR_KV_PAGE] + rows->at + (head * FR_KV_PAGE + position % FR_KV_PAGE) * rows->bytes;
}

/* How many positions from `position` on, before `end`, lie side by side from that slot on. */
static inline size_t fr_kv_run(size_t position, size_t end) {
    size_t left = FR_KV_PAGE - position % FR_KV_PAGE;
    return end - position < left ? end - position : left;
}

/* Said before a forward writes `rows` positions from the frontier on. FR_MEMORY: there are not enough pages; then none
 * is claimed, and nothing that has been accepted is lost. Recurrent layers take what the frontier has passed for
 * certain, until they are told otherwise (fr_recurrent_certain). */
fr_status fr_kv_claim(fr_kv *kv, size_t rows);

/* Gives back pages that were claimed for rows which have not been accepted, behind that of the frontier. */
void fr_kv_give_back(fr_kv *kv);

/* Of positions [from, end) the first that layers which slide have pages for. */
size_t fr_kv_held_from(const fr_kv *kv, size_t from, size_t end);

/* Gives an empty cache the pages of a frontier at `length` whose sliding layers hold positions from `from` on, which
 * they must be able to; what is in them is the caller's to write. */
fr_status fr_kv_restore(fr_kv *kv, size_t from, size_t length);

/* A timeline over the pages of another: laid out empty, like it; then what the other has accepted, by holding its
 * pages. */
void fr_kv_layout_fork(fr_kv *fork, fr_arena *arena, const fr_kv *kv);
void fr_kv_fork(fr_kv *fork, const fr_kv *kv);

/* Moves the frontier forward: positions below length are accepted. */
void fr_kv_commit(fr_kv *kv, size_t length);

/* A forward over rows of it has run. */
void fr_kv_ran(fr_kv *kv);

/* Whether the frontier can stand at `length`, at most where it is: all that rows from there on look back to is held. */
bool fr_kv_holds_lookback(const fr_kv *kv, size_t length);

/* Moves the frontier back to a length whose lookback is held, or to 0. */
void fr_kv_rewind(fr_kv *kv, size_t length);
void fr_kv_reset(fr_kv *kv);

#endif
