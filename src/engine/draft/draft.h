/* Draft methods propose the tokens that the target then verifies.
 *
 * In: views of timelines. Out: up to K proposed ids each. A method is one table of functions in one file (draft_*.c).
 * The text never depends on a method, because a draft is accepted only if it is the id that the target itself gives.
 * (Under rejection sampling, which a user must ask for, only the distribution of the text is independent of the
 * method.)
 *
 * An engine calls a method's `workspace` once. Each session calls `open` once, `begin` after each prompt, `propose`
 * and `commit` in each round, and `close` at the end. `workspace` and `open` are first called with an arena that only
 * measures, and then with a real one. */
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

/* A drafter's weights, opened and checked against a target; immutable. `files` is empty if the weights are in the
 * target's own checkpoint. */
struct fr_drafter {
    const fr_draft_method *method;
    const fr_model *target;
    fr_checkpoint files;
    fr_weights weights;
    void *net; /* owned by the method */
    /* the layers of the target whose inputs the drafter reads, side by side; if there are none, it reads the target's
     * row after the final norm */
    fr_aux_layers aux_layers;
    fr_draft_head head; /* the trimmed head that scores drafts; without ids: the drafter's whole head scores them */
    /* positions that the drafter looks back over in the target's sliding KV, the newest included; 0: none */
    size_t lookback;
    fr_drafter *beside; /* the MTP layer in the target's own checkpoint, opened with this drafter; NULL: not wanted */
};

/* Gives one of the drafters that were opened together: 0 is the drafter itself, 1 is drafter->beside. NULL if there is
 * no such drafter. */
const fr_drafter *fr_drafter_at(const fr_drafter *drafter, size_t index);

/* fr_drafter_memory_use gives how much memory a drafter's weights take, fr_drafter_bytes gives their bytes. Both
 * include the weights of drafter->beside. */
fr_memory_use fr_drafter_memory_use(const fr_drafter *drafter);
size_t fr_drafter_bytes(const fr_drafter *drafter);

/* Gives the file or folder of the weights. */
const char *fr_drafter_path(const fr_drafter *drafter);

/* Gives the model of a drafter that is a whole language model; NULL for any other drafter. */
const fr_model *fr_drafter_model(const fr_drafter *drafter);

/* Returns true if the drafter reads this KV layer of the target. */
bool fr_drafter_borrows(const fr_drafter *drafter, size_t kv);

/* A session as its draft method sees it. */
typedef struct fr_draft_view {
    const int32_t *ids; /* the timeline */
    /* rotary positions of the timeline's positions, and of the FR_STEP_MAX positions after them */
    const fr_rope_position *rope_positions;
    /* input embeddings of positions that don't use the embedding of their id, as in pictures */
    const fr_input_embeddings *embeddings;
    /* at least 2; when `propose` is called, the target has not run the last id yet */
    size_t length;
    size_t seen; /* ids before this index are as at the last begin or commit; later ids may be new */
    fr_kv *kv;   /* the target's cache: positions below kv->length have been run and accepted */
    /* The target's row of position kv->length - 1: `hidden` is that row after the final norm, `aux_hidden` the inputs
     * of the aux_layers. NULL if no drafter reads it. In memory, the row comes after the earlier rows of the same
     * batch that were accepted. */
    const float *hidden, *aux_hidden;
    fr_pool *pool;
    /* begin and follow may put off their forwards until propose, which may never be called */
    bool defers;
    /* picks tokens from a method's logits as the target's are picked; NULL: the method takes the largest */
    const fr_token_picker *picker;
} fr_draft_view;

/* A method's state in one session; each method's own struct begins with it. */
typedef struct fr_draft {
    const fr_draft_method *method;
    size_t drafter; /* index of the drafter whose weights the method reads, if it reads any */
    bool follows;   /* the method must see all of the target's hidden rows */
    /* the method follows the timeline only in propose and begin, so it lags after rounds without a proposal */
    bool lags;
    bool finds;      /* the method, or one that it asks, looks drafts up, which takes no time */
    bool only_finds; /* all drafts of the method are looked up */
    /* The drafts that one forward makes, all at the cost of one; 0: each draft takes a step of its own. A method with
     * a block is asked for the whole block if some of its drafts are worth their rows. It writes the chances of all
     * drafts. */
    size_t block;
} fr_draft;

/* A request to a session's method, and the answer. */
typedef struct fr_proposal {
    fr_draft *draft;
    const fr_draft_view *view;
    /* The most drafts that are wanted, up to 15. With gains, `count` limits the drafts that take steps, and
     * `most_found` the looked-up ones; one of the two may be 0. */
    size_t count, most_found;
    size_t depth; /* the most drafts that any round of the session may want; blocks are cut to this number; 0: the most
                   * is `count` */
    size_t by;    /* 1 + index of the drafter that may make drafts; 0: any may */
    size_t n_min; /* a proposal of fewer drafts is dropped */
    /* A draft with a lower chance than p_min ends the chain and is not part of it. Methods that give no chances ignore
     * p_min. */
    double p_min;
    const fr_draft_gain *gains; /* the gain and cost of each draft, by which drafts are judged; NULL: drafts are not
                                 * judged */
    bool ends;                  /* methods that give chances end their chains when, by `gains`, another draft does not
                                 * pay */
    /* out: [the larger of count and most_found] the chance of each draft, if the method gives chances; NULL: not
     * wanted */
    float *chances;
    int32_t *ids; /* out: [the larger of count and most_found] the drafts; the array may lie right after the timeline's
                   * ids */
    /* out: [count, vocab] the scores of each step, -infinity for ids that were not scored; NULL: not wanted */
    float *logits;
    size_t proposed; /* out: the number of ids; may be fewer than wanted, or 0 */
    /* out, if the method scores: number of drafts made, including one that ended the chain and was left out */
    size_t made;
    /* out: the proposed drafts were looked up, because they were worth more than drafts that take steps */
    bool found;
    fr_failure failure;       /* out: this session's failure; the list's other proposals are not affected */
    struct fr_proposal *next; /* the next session's proposal while the method is called; NULL: the last */
} fr_proposal;

/* The sizes that a method makes room for. */
typedef struct fr_draft_sizes {
    size_t threads, context, sessions;
    size_t rows;        /* most rows of a batch */
    size_t pages;       /* pages of the target's caches, each of FR_KV_PAGE positions */
    size_t checkpoints; /* pages for states of recurrent layers, for each session */
    fr_kv_types kv_types;
    /* memory that the method laid out for all sessions; NULL: the method has none, or the arena only measures
     * (base/arena.h) */
    void *workspace;
} fr_draft_sizes;

struct fr_draft_method {
    const char *name;

    /* These three are for methods with weights. `reads` returns true if a drafter's files are for this method. `load`
     * reads them into drafter->net and checks them against drafter->target. `unload` frees drafter->net, also after a
     * load that failed. */
    bool (*reads)(const fr_checkpoint *files);
    fr_status (*load)(fr_drafter *drafter);
    void (*unload)(fr_drafter *drafter);

    /* Gives the head that scores drafts, if it scores all ids of the target in their order; otherwise NULL, and also
     * if no weights are bound. If drafter->head has ids, the method scores with drafter->head instead. */
    const fr_matrix *(*head)(const fr_drafter *drafter);
    bool whole_head; /* the head of the method can't be trimmed: drafter->head has no ids */

    /* Returns true if the drafter reads this KV layer of the target's caches. It may be the last sliding layer or the
     * last full layer. Each rank then keeps all heads of the layer. The pointer is NULL if the drafter reads no KV of
     * the target. */
    bool (*borrows)(const fr_drafter *drafter, size_t kv);

    /* Takes from the arena the memory in which the method works. All sessions of an engine share it, and calls never
     * overlap. With a measuring arena (base/arena.h) it returns NULL. The pointer to this function is NULL if the
     * method needs no such memory. */
    void *(*workspace)(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes);

    /* Takes a session's state from the arena; with a measuring arena it returns NULL. Methods without weights ignore
     * `drafter`. */
    fr_draft *(*open)(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes);

    /* Copies the contents of a state to a new one whose session continues the same timeline. The pointer is NULL if
     * nothing is copied: `begin` then starts anew, as for a timeline that the method has never seen. */
    void (*fork)(fr_draft *fork, const fr_draft *draft);

    /* Proposes drafts for a list of sessions of one engine, all with this method, each at most once. When it is
     * called, nothing is proposed yet, and no session has failed. No bit of a proposal depends on the other sessions
     * in the list. Called by fr_draft_propose. */
    void (*propose)(fr_proposal *first);

    /* The functions from here on may be NULL if a method has nothing to do. cut is called when the timeline was cut or
     * its cache's frontier moved back. The method then drops its own pages after the new end or frontier. */
    void (*cut)(fr_draft *draft, const fr_draft_view *view);

    /* Called after a prompt. The timeline may have changed since the last call; its first view->seen ids are as they
     * were. */
    void (*begin)(fr_draft *draft, const fr_draft_view *view);

    /* Called if `follows` is set, when the target has run more positions and before the next forward overwrites its
     * rows. That is after each batch of a prompt, and in a round in which nothing is proposed (then view->defers is
     * set). The cache may be shorter than at the last call; ids up to and including index kv->length are then still
     * the same. */
    fr_status (*follow)(fr_draft *draft, const fr_draft_view *view);

    /* Tells the method how many drafts of the last proposal were accepted. view: the session after these were
     * accepted. */
    void (*commit)(fr_draft *draft, const fr_draft_view *view, size_t proposed, size_t accepted);

    /* `kv` gives a state's own KV cache. `workspace_kv` gives the cache in the workspace, from which all sessions'
     * caches take their layout. */
    fr_kv *(*kv)(fr_draft *draft);
    const fr_kv *(*workspace_kv)(const void *workspace);

    /* Frees the memory that open did not take from the arena, and drops the pages. */
    void (*close)(fr_draft *draft);
};

extern const fr_draft_method fr_draft_none, fr_draft_assistant, fr_draft_mtp, fr_draft_eagle3, fr_draft_eagle,
    fr_draft_dflash, fr_draft_dflash2, fr_draft_dspark, fr_draft_model, fr_draft_ngram, fr_draft_own_method;

/* The method of fr_draft_model's drafters whose ids do not mean the same as the target's ids. Such a drafter changes
 * to this method when it is loaded. */
extern const fr_draft_method fr_draft_text;

/* The method ngram as it is used in a list before other methods. It drafts only if it finds a long match; otherwise it
 * leaves drafting to the other methods. */
extern const fr_draft_method fr_draft_ngram_first;

/* Propose drafts for sessions of one engine, each at most once. A method is called once for all of its sessions, so
 * that its weights are read only once. fr_draft_propose takes an array and sets `next` of its elements.
 * fr_draft_propose_list takes a list, and reorders it. fr_draft_propose_one takes a single proposal and returns its
 * failure. */
void fr_draft_propose(fr_proposal *proposals, size_t count);
void fr_draft_propose_list(fr_proposal *first);
fr_status fr_draft_propose_one(fr_proposal *proposal);

/* Loads a drafter; path NULL: the MTP layer in the target's own checkpoint. If FR_OPT_SPEC_TYPE names the drafter's
 * method and also mtp, the layer is opened beside the drafter. */
fr_status fr_drafter_load(const char *path, const fr_model *target, const fr_options *options, fr_drafter **drafter);

/* Opens a drafter as fr_drafter_load does, but does not load the weights. */
fr_status fr_drafter_bind(const char *path, const fr_model *target, const fr_options *options, fr_drafter **drafter);
void fr_drafter_unload(fr_drafter *drafter);

#endif
