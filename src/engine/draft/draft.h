/* Draft methods propose the tokens that the target then verifies.
 *
 * In: views of timelines. Out: up to K proposed ids for each timeline. A method is one table of functions in one file
 * (draft_*.c). The text never depends on the method, because a draft is accepted only if the target itself gives the
 * same id. (Rejection sampling, which a user must ask for, is different: only the distribution of the text is then
 * independent of the method.)
 *
 * An engine calls a method's `workspace` once. Each session calls `open` once, `begin` after each prompt, `propose` and
 * `commit` in each round, and `close` at the end. `workspace` and `open` are each called twice: first with an arena
 * that only measures, then with a real arena. */
#ifndef FR_SRC_ENGINE_DRAFT_DRAFT_H
#define FR_SRC_ENGINE_DRAFT_DRAFT_H

#include "base/error.h"
#include "src/engine/cache/kv_prefixes.h"
#include "src/engine/draft/draft_gain.h"
#include "src/engine/draft/draft_head.h"
#include "src/engine/draft/token_picker.h"
#include "src/engine/model/model.h"

typedef struct fr_draft_method fr_draft_method;

_Static_assert((int)FR_DRAFTERS_MAX == (int)FR_KV_DRAFTERS, "pages of all drafters are shared");

/* A drafter's weights, which were opened and checked against a target, and do not change any more. `files` is empty if
 * the weights are in the target's own checkpoint. */
struct fr_drafter {
    const fr_draft_method *method;
    const fr_model *target;
    fr_checkpoint files;
    fr_weights weights;
    void *net; /* owned by the method */
    /* the layers of the target whose inputs the drafter reads, joined to one row. If there are none, the drafter reads
     * the target's row after the final norm */
    fr_aux_layers aux_layers;
    fr_draft_head head; /* a smaller head that scores drafts; if it has no ids, the drafter's whole head scores them */
    /* positions that the drafter looks back over in the target's sliding layers, including the newest position; 0: the
     * drafter does not read these layers */
    size_t lookback;
    fr_drafter *beside; /* the MTP layer in the target's own checkpoint, which was opened together with this drafter;
                         * NULL: it was not asked for */
};

/* Gives one of the drafters that were opened together. Index 0 is the drafter itself, index 1 is drafter->beside. Gives
 * NULL if there is no such drafter. */
const fr_drafter *fr_drafter_at(const fr_drafter *drafter, size_t index);

/* fr_drafter_memory_use says how the weights of a drafter use memory. fr_drafter_bytes gives the number of their bytes.
 * Both include the weights of drafter->beside. */
fr_memory_use fr_drafter_memory_use(const fr_drafter *drafter);
size_t fr_drafter_bytes(const fr_drafter *drafter);

/* Gives the file or folder of the weights. */
const char *fr_drafter_path(const fr_drafter *drafter);

/* Gives the model of a drafter that is a whole language model. Gives NULL for any other drafter. */
const fr_model *fr_drafter_model(const fr_drafter *drafter);

/* Returns true if the drafter reads the target's keys and values of this layer. kv: the layer's number in the cache. */
bool fr_drafter_borrows(const fr_drafter *drafter, size_t kv);

/* A session as its draft method sees it. */
typedef struct fr_draft_view {
    const int32_t *ids; /* the timeline */
    /* rotary positions of the positions of the timeline, and of FR_STEP_MAX more positions */
    const fr_rope_position *rope_positions;
    /* input embeddings of positions that don't use the embedding of their id, for example positions within pictures */
    const fr_input_embeddings *embeddings;
    /* number of ids in the timeline, at least 2; when `propose` is called, the target has not run the last id yet */
    size_t length;
    size_t seen; /* ids before this index have not changed since the last begin or commit; later ids may be new */
    fr_kv *kv;   /* the target's cache: positions below kv->length have been run and accepted */
    /* The target's row of position kv->length - 1. `hidden` is this row after the final norm. `aux_hidden` has the
     * inputs of the aux_layers at this position. Both are NULL if no drafter reads them. In memory, the row comes after
     * the earlier rows of the same batch that were accepted. */
    const float *hidden, *aux_hidden;
    fr_pool *pool;
    /* begin and follow may postpone their forwards until propose is called, which may never happen */
    bool defers;
    /* chooses ids from a method's logits in the way in which the target's ids are chosen; NULL: the method takes the id
     * with the largest logit */
    const fr_token_picker *picker;
} fr_draft_view;

/* The state of a method in one session. The struct of each method begins with this one. */
typedef struct fr_draft {
    const fr_draft_method *method;
    size_t drafter; /* number of the drafter whose weights the method reads, if it reads any (fr_drafter_at) */
    bool follows;   /* the method must see all of the target's hidden rows */
    /* the method sees the timeline only in propose and begin, so its state is behind after rounds without a proposal */
    bool lags;
    bool finds;      /* the method finds drafts by looking them up, which takes no time, or asks another method that
                      * does so */
    bool only_finds; /* the method finds all of its drafts by looking them up */
    /* The number of drafts that one forward makes together; 0: each draft takes a step of its own. A method with a
     * block is asked for the whole block if some of its drafts are worth their rows. The method writes the
     * probabilities of all drafts to `chances`. */
    size_t block;
} fr_draft;

/* A request to a session's method, and the answer. */
typedef struct fr_proposal {
    fr_draft *draft;
    const fr_draft_view *view;
    /* The most drafts that are wanted, up to 15. If `gains` is given, `count` limits the drafts that take steps, and
     * `most_found` limits the drafts that are looked up. One of the two may be 0. */
    size_t count, most_found;
    size_t depth; /* the most drafts that any round of the session may want; a block is not made longer than this; 0:
                   * the most is `count` */
    size_t by;    /* 1 + number of the drafter that may make drafts; 0: any drafter may */
    size_t n_min; /* a proposal with fewer drafts than this is dropped */
    /* If a draft's probability is below p_min, the draft is left out and the chain ends. Methods that give no
     * probabilities ignore p_min. */
    double p_min;
    const fr_draft_gain *gains; /* the gain and cost of each draft, which decide whether drafts are worth their time;
                                 * NULL: this is not decided */
    bool ends;                  /* methods that give probabilities end a chain when, by `gains`, another draft is not
                                 * worth its time */
    /* out: [the larger of count and most_found] the probability of each draft, if the method gives probabilities; NULL:
     * not wanted */
    float *chances;
    int32_t *ids; /* out: [the larger of count and most_found] the drafts; this array may directly follow the timeline's
                   * ids in memory */
    /* out: [count, vocab] the scores of each step, -infinity for ids that were not scored; NULL: not wanted */
    float *logits;
    size_t proposed; /* out: the number of ids in `ids`, which may be 0 or less than the number that is wanted */
    /* out, if the method gives scores: the number of drafts made. It includes a draft that ended the chain and was left
     * out */
    size_t made;
    /* out: the drafts were looked up, because they were worth more than drafts that take steps */
    bool found;
    fr_failure failure;       /* out: this session's failure, which does not affect the other proposals of the list */
    struct fr_proposal *next; /* the proposal of the next session while a method is called; NULL: this is the last
                               * proposal */
} fr_proposal;

/* The sizes for which a method takes memory. */
typedef struct fr_draft_sizes {
    size_t threads, context, sessions;
    size_t rows;        /* most rows of a batch */
    size_t pages;       /* number of pages of the target's caches; a page has FR_KV_PAGE positions */
    size_t checkpoints; /* pages for states of recurrent layers that each session can have */
    fr_kv_types kv_types;
    /* the memory that the method has taken for all sessions; NULL: the method takes no such memory, or the arena only
     * measures (base/arena.h) */
    void *workspace;
} fr_draft_sizes;

struct fr_draft_method {
    const char *name;

    /* Methods with weights have these three functions. `reads` returns true if a drafter's files are for this method.
     * `load` reads the files into drafter->net and checks them against drafter->target. `unload` frees drafter->net,
     * also after a load that failed. */
    bool (*reads)(const fr_checkpoint *files);
    fr_status (*load)(fr_drafter *drafter);
    void (*unload)(fr_drafter *drafter);

    /* Gives the head that scores drafts if this head scores all of the target's ids in their order. Gives NULL for any
     * other head, and if no weights are bound. If drafter->head has ids, the method scores with drafter->head
     * instead. */
    const fr_matrix *(*head)(const fr_drafter *drafter);
    bool whole_head; /* the method needs its whole head: drafter->head has no ids */

    /* Returns true if the drafter reads the keys and values of layer `kv` in the target's caches. Such a layer is the
     * last sliding layer or the last full layer. Each rank then keeps all heads of the layer. The pointer is NULL if
     * the drafter reads no keys and values of the target. */
    bool (*borrows)(const fr_drafter *drafter, size_t kv);

    /* Takes from the arena the memory in which the method works. All sessions of an engine share this memory, and calls
     * never overlap. If the arena only measures (base/arena.h), NULL is returned. The pointer to this function is NULL
     * if the method needs no such memory. */
    void *(*workspace)(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes);

    /* Takes a session's state from the arena. If the arena only measures, NULL is returned. Methods without weights
     * ignore `drafter`. */
    fr_draft *(*open)(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes);

    /* Copies the contents of a state to a new state, whose session continues the same timeline. If the pointer is NULL,
     * nothing is copied, and `begin` then treats the timeline as new. */
    void (*fork)(fr_draft *fork, const fr_draft *draft);

    /* Proposes drafts for a list of sessions. All are sessions of one engine with this method, and each is in the list
     * once at most. At the call, no proposal has drafts yet, and no session has failed. The bits of a proposal do not
     * depend on the other sessions in the list. fr_draft_propose makes these calls. */
    void (*propose)(fr_proposal *first);

    /* The functions from here on may be NULL if a method has nothing to do. `cut` is called when the timeline was cut,
     * or when the frontier of its cache moved back. The method then drops its own pages after the new end or
     * frontier. */
    void (*cut)(fr_draft *draft, const fr_draft_view *view);

    /* Called after a prompt. The timeline may have changed since the last call, but its first view->seen ids are the
     * same as before. */
    void (*begin)(fr_draft *draft, const fr_draft_view *view);

    /* Called if `follows` is set, after the target has run more positions and before the next forward overwrites the
     * rows of these positions. So it is called after each batch of a prompt. It is also called in a round in which
     * nothing is proposed, with view->defers set. The cache may be shorter than at the last call; the ids up to and
     * including index kv->length are then still the same. */
    fr_status (*follow)(fr_draft *draft, const fr_draft_view *view);

    /* Says how many drafts of the last proposal were accepted. view: the session after accepting them. */
    void (*commit)(fr_draft *draft, const fr_draft_view *view, size_t proposed, size_t accepted);

    /* `kv` gives the cache of keys and values that a state has. `workspace_kv` gives the cache in the workspace, from
     * which the caches of all sessions take their layout. */
    fr_kv *(*kv)(fr_draft *draft);
    const fr_kv *(*workspace_kv)(const void *workspace);

    /* Frees memory that open took without the arena, and drops the state's pages. */
    void (*close)(fr_draft *draft);
};

extern const fr_draft_method fr_draft_none, fr_draft_assistant, fr_draft_mtp, fr_draft_eagle3, fr_draft_eagle,
    fr_draft_dflash, fr_draft_dflash2, fr_draft_dspark, fr_draft_model, fr_draft_ngram, fr_draft_own_method;

/* The method for a drafter that is a language model with another vocabulary, so that its ids and the target's ids
 * differ in meaning. A drafter of fr_draft_model changes to this method when it is loaded, if its ids differ. */
extern const fr_draft_method fr_draft_text;

/* The variant of the method ngram for a list in which other methods follow. It drafts only if it finds a long match.
 * Otherwise the next methods draft. */
extern const fr_draft_method fr_draft_ngram_first;

/* Propose drafts for sessions of one engine; each session may have one proposal. A method is called once for all of its
 * sessions, so that its weights are read only once. fr_draft_propose takes an array and sets `next` of its elements.
 * fr_draft_propose_list takes a list, and reorders it. fr_draft_propose_one takes a single proposal and returns its
 * failure. */
void fr_draft_propose(fr_proposal *proposals, size_t count);
void fr_draft_propose_list(fr_proposal *first);
fr_status fr_draft_propose_one(fr_proposal *proposal);

/* Loads a drafter. If `path` is NULL, the drafter is the MTP layer in the target's own checkpoint. If FR_OPT_SPEC_TYPE
 * names the method of the drafter at `path` and also mtp, the MTP layer is opened too, as drafter->beside. */
fr_status fr_drafter_load(const char *path, const fr_model *target, const fr_options *options, fr_drafter **drafter);

/* Opens a drafter as fr_drafter_load does, but without loading the weights. */
fr_status fr_drafter_bind(const char *path, const fr_model *target, const fr_options *options, fr_drafter **drafter);
void fr_drafter_unload(fr_drafter *drafter);

#endif
