/* Draft methods propose the tokens that the target then verifies.
 *
 * In: views of timelines. Out: up to K proposed ids each. A method is one table of functions in one file (draft_*.c).
 * The text never depends on a method: a proposal is only ever accepted where the target's own answer is the same id.
 * (Under rejection sampling, which a user has to ask for, it is the distribution of the text that does not depend on
 * it.)
 *
 * An engine calls a method's workspace once, and in each session open (both twice: first measuring, then for real),
 * begin after each prompt, propose and commit in each round, and close at the end. */
#ifndef FR_SRC_ENGINE_DRAFT_DRAFT_H
#define FR_SRC_ENGINE_DRAFT_DRAFT_H

#include "base/error.h"
#include "src/engine/draft/draft_gain.h"
#include "src/engine/draft/draft_head.h"
#include "src/engine/draft/token_picker.h"
#include "src/engine/model/model.h"

typedef struct fr_draft_method fr_draft_method;

/* A drafter's weights, opened and checked against a target; immutable. files is empty if they are in the target's own
 * checkpoint. */
struct fr_drafter {
    const fr_draft_method *method;
    const fr_model *target;
    fr_checkpoint files;
    fr_weights weights;
    void *net; /* the method's own */
    fr_aux_layers
        /* the target's layers whose rows it sees, side by side; none: it sees the row after the final norm */
        aux_layers;
    fr_draft_head head; /* the trimmed head that scores drafts; without ids: its whole head does */
    size_t lookback;    /* positions it looks back over in the target's sliding KV, the newest included; 0: none */
};

/* Gives the file or folder of the weights. */
const char *fr_drafter_path(const fr_drafter *drafter);

/* Gives the model that a drafter is; NULL: it is not a model. */
const fr_model *fr_drafter_model(const fr_drafter *drafter);

/* Returns true if it reads that KV layer of the target. */
bool fr_drafter_borrows(const fr_drafter *drafter, size_t kv);

/* The view of a session that its method gets. */
typedef struct fr_draft_view {
    const int32_t *ids;                     /* the timeline */
    const fr_rope_position *rope_positions; /* for its positions, and for FR_STEP_MAX after them */
    const fr_input_embeddings *embeddings;  /* for its positions whose embeddings are not those of the ids */
    size_t length;                          /* >= 2; at a proposal, the target has not run the last id yet */
    size_t seen; /* ids before it are as at the last begin or commit, those from it on may be new */
    fr_kv *kv;   /* the target's cache: positions below kv->length have been run and accepted */
    /* The part of the target's row of position kv->length - 1 that the drafter sees: the row after the final norm, or
     * its aux_layers. The accepted rows of the same batch lie in front of it. */
    const float *hidden;
    fr_pool *pool;
    bool defers;                   /* begin and follow may leave forwards to propose, in case it is never called */
    const fr_token_picker *picker; /* picks from a method's logits as from the target's; NULL: the largest */
} fr_draft_view;

/* A method's state in one session; each method's own struct begins with it. */
typedef struct fr_draft {
    const fr_draft_method *method;
    bool follows; /* it wants all of the target's hidden rows */
    /* it follows the timeline only when it proposes or begins, so it lags after rounds without a proposal */
    bool lags;
    bool finds;      /* it, or a method that it asks, looks drafts up, which takes no time */
    bool only_finds; /* all of its drafts are looked up */
    /* The drafts that one forward makes, all at the cost of one; 0: each draft takes a step of its own. Such a method
     * is asked for all of them if any are worth their rows, and writes the chances of all. */
    size_t block;
} fr_draft;

/* A request to a session's method, and the answer. */
typedef struct fr_proposal {
    fr_draft *draft;
    const fr_draft_view *view;
    /* The numbers of drafts that are wanted, up to 15. With gains, `count` is for drafts that take steps to make, and
     * `most_found` for drafts that are looked up; one of the two may be 0. */
    size_t count, most_found;
    size_t n_min; /* a proposal of fewer drafts is dropped */
    /* A draft with a lower chance than this ends the chain and is not part of it. Methods that give no chances ignore
     * it. */
    double p_min;
    const fr_draft_gain *gains; /* the gains that drafts are judged by; NULL: they are not */
    bool ends;                  /* methods that give chances end chains by the gains */
    float *chances; /* out: [count] the chance of each draft, if the method gives chances; NULL: not wanted */
    int32_t *ids;   /* out: [count, or most_found if that is more] the drafts that may follow the timeline */
    /* out: [count, vocab] each step's scores, -infinity for ids not scored; NULL: not wanted */
    float *logits;
    size_t proposed; /* out: the number of ids; may be fewer than wanted, or 0 */
    size_t made;     /* out, of a method that scores: drafts made, the one left out at the end included */
    /* out: the drafts were looked up, as they were worth more than drafts that could be made */
    bool found;
    fr_failure failure;       /* out: the failure of this session alone */
    struct fr_proposal *next; /* the next session's proposal while the method is called; NULL: the last */
} fr_proposal;

/* The sizes that a method makes room for. */
typedef struct fr_draft_sizes {
    size_t threads, context, sessions;
    size_t rows;        /* rows of the largest batch */
    size_t pages;       /* pages of the target's caches, each of FR_KV_PAGE positions */
    size_t checkpoints; /* pages for states of recurrent layers, for each session */
    fr_kv_types kv_types;
    void *workspace; /* the workspace that the method laid out for all sessions; NULL: it has none, or is measured */
} fr_draft_sizes;

struct fr_draft_method {
    const char *name;

    /* For methods with weights: returns true if a drafter's files are for this method; reads them into drafter->net
     * and checks them against drafter->target; frees that again (also after a load that failed). */
    bool (*reads)(const fr_checkpoint *files);
    fr_status (*load)(fr_drafter *drafter);
    void (*unload)(fr_drafter *drafter);

    /* Gives the head that scores drafts, if it scores all ids of the target in their order; NULL: it does not, or
     * nothing is bound. If drafter->head has ids, the method scores with that one instead. */
    const fr_matrix *(*head)(const fr_drafter *drafter);

    /* Returns true if the drafter reads that KV layer of the target's caches, which is the last sliding or the last
     * full one; a rank then keeps all heads of the layer. NULL: it reads none. */
    bool (*borrows)(const fr_drafter *drafter, size_t kv);

    /* Takes the memory that all sessions of an engine work in, one call at a time, from the arena. It returns NULL
     * while measuring. The function is NULL if a method needs no such memory. */
    void *(*workspace)(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes);

    /* Takes a session's state from the arena; NULL while measuring. Methods without weights ignore drafter. */
    fr_draft *(*open)(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes);

    /* Gives a new state of this method the contents of another one, whose timeline it continues. NULL: begin has to do
     * it, for a timeline that the method knows nothing of. */
    void (*fork)(fr_draft *fork, const fr_draft *draft);

    /* Proposes drafts for each state in a list: all are of this method and of one engine, each of another session;
     * nothing is proposed yet, and none has failed. No bit of a proposal depends on the other sessions in the list.
     * Called by fr_draft_propose. */
    void (*propose)(fr_proposal *first);

    /* The functions below may be NULL if a method has nothing to do. cut: the timeline has been cut, or its cache's
     * frontier has moved back, so the method drops the pages past it. */
    void (*cut)(fr_draft *draft, const fr_draft_view *view);

    /* Called after a prompt. The timeline may have changed since the last call; its first view->seen ids are as they
     * were. */
    void (*begin)(fr_draft *draft, const fr_draft_view *view);

    /* Called if `follows` is set, when the target has run more positions and its rows are about to be overwritten:
     * after each batch of a prompt and, with view->defers, before every forward without a propose before it. The cache
     * may be shorter than at the last call; ids up to and including index kv->length are then still the same. */
    fr_status (*follow)(fr_draft *draft, const fr_draft_view *view);

    /* Tells how many drafts of the last proposal were accepted; the view is the one after acceptance. */
    void (*commit)(fr_draft *draft, const fr_draft_view *view, size_t proposed, size_t accepted);

    /* Gives the state's own KV cache; and the cache whose layout those of all sessions have. */
    fr_kv *(*kv)(fr_draft *draft);
    const fr_kv *(*workspace_kv)(const void *workspace);

    /* Frees the memory that open did not take from the arena, and drops the pages. */
    void (*close)(fr_draft *draft);
};

extern const fr_draft_method fr_draft_none, fr_draft_assistant, fr_draft_mtp, fr_draft_eagle3, fr_draft_eagle,
    fr_draft_model, fr_draft_ngram, fr_draft_own_method;

/* A drafter of fr_draft_model changes to this method when it is loaded if the model's ids mean something else than the
 * target's. */
extern const fr_draft_method fr_draft_text;

/* ngram before other methods, which draft if it has no long match. */
extern const fr_draft_method fr_draft_ngram_first;

/* Proposes drafts for sessions of one engine, each at most once. Each method is called once for all its sessions, so
 * that its weights are read once for all. The first function sets `next` of an array's elements; the second takes a
 * list, which it reorders; the third takes a single proposal and returns its failure. */
void fr_draft_propose(fr_proposal *proposals, size_t count);
void fr_draft_propose_list(fr_proposal *first);
fr_status fr_draft_propose_one(fr_proposal *proposal);

/* Loads a drafter; path NULL: the MTP layer in the target's own checkpoint. */
fr_status fr_drafter_load(const char *path, const fr_model *target, const fr_options *options, fr_drafter **drafter);

/* Does the same without loading the weights. */
fr_status fr_drafter_bind(const char *path, const fr_model *target, const fr_options *options, fr_drafter **drafter);
void fr_drafter_unload(fr_drafter *drafter);

#endif
