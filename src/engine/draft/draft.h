/* Draft methods: who proposes the tokens that the target then verifies.
 *
 * In: views of timelines. Out: up to K proposed ids each. A method is one vtable in one file (draft_*.c). The text
 * never depends on a method: a proposal is only ever accepted where the target's own answer is the same id. (Under
 * rejection sampling, which a user has to ask for, the distribution of the text doesn't.)
 *
 * Life of a method in an engine: workspace; in each of its sessions: open (both twice: measuring, then real), then
 * after each prompt begin, then rounds of propose and commit, at last close. */
#ifndef FR_SRC_ENGINE_DRAFT_DRAFT_H
#define FR_SRC_ENGINE_DRAFT_DRAFT_H

#include "base/error.h"
#include "src/engine/draft/draft_gain.h"
#include "src/engine/draft/draft_head.h"
#include "src/engine/draft/token_picker.h"
#include "src/engine/model/model.h"

typedef struct fr_draft_method fr_draft_method;

/* A drafter's weights, opened and checked against a target; immutable. files is empty where they lie in the target's
 * own checkpoint. */
struct fr_drafter {
    const fr_draft_method *method;
    const fr_model *target;
    fr_checkpoint files;
    fr_weights weights;
    void *net;       /* the method's own */
    fr_aux_layers
        aux_layers;  /* what it sees of the target's rows: these, side by side; none: the row after the final norm */
    fr_draft_head head; /* what it scores drafts with, where that is not its whole head */
    size_t lookback; /* positions it looks back over in the target's sliding KV, the newest included; 0: none */
};

/* The file or folder that they lie in. */
const char *fr_drafter_path(const fr_drafter *drafter);

/* The model that a drafter is, NULL if it is none. */
const fr_model *fr_drafter_model(const fr_drafter *drafter);

/* Whether it reads that KV layer of the target's. */
bool fr_drafter_borrows(const fr_drafter *drafter, size_t kv);

/* What a session shows its method. */
typedef struct fr_draft_view {
    const int32_t *ids;     /* the timeline */
    const fr_rope_position *rope_positions; /* of its positions, and of FR_STEP_MAX behind them */
    const fr_input_embeddings *embeddings; /* of its positions that are not those of the ids */
    size_t length;          /* >= 2; to propose, the last id has not been run by the target */
    size_t seen;            /* ids before it are as begin or commit last saw them, those from it on may be new */
    fr_kv *kv;              /* the target's cache: positions below kv->length have been run and accepted */
    /* Of the target's row of position kv->length - 1 what the drafter sees: as it is after the final norm, or its
     * aux_layers; the accepted rows of the same batch lie in front of it. */
    const float *hidden;
    fr_pool *pool;
    bool defers; /* begin and follow may leave to propose what takes forwards: who knows whether it is asked */
    const fr_token_picker *picker; /* picks from a method's logits as from the target's; NULL: the largest */
} fr_draft_view;

/* A method's state in one session; each method's own struct begins with it. */
typedef struct fr_draft {
    const fr_draft_method *method;
    bool follows; /* wants all of the target's hidden rows */
    bool lags;    /* follows the timeline when it proposes or begins: rounds without a proposal leave it behind */
    bool finds;      /* looks drafts up, which takes no time: it, or one of those that it asks; */
    bool only_finds; /* all of them */
} fr_draft;

/* What a session's method is asked, and what it answers. */
typedef struct fr_proposal {
    fr_draft *draft;
    const fr_draft_view *view;
    /* Of ids that are wanted: up to 15. Where gains are given, that is of drafts which take steps to make, and of those
     * that are looked up `most_found` are wanted; then either may be 0. */
    size_t count, most_found;
    size_t n_min;             /* fewer than so many are none */
    /* A draft that its method gives less of all chance ends the chain, and is none of it; methods that give none a
     * chance don't look at it. */
    double p_min;
    const fr_draft_gain *gains;  /* NULL, or what drafts must be worth: */
    bool ends;                   /* methods that give chances end chains by it */
    float *chances;           /* NULL, or [count] out: of all chance what each draft has, where the method tells */
    int32_t *ids;             /* [count, or most_found if that is more] out: what may follow the timeline */
    float *logits;            /* NULL, or [count, vocab] out: each step's scores, -infinity for ids not scored */
    size_t proposed;          /* out: of ids; may be less, 0 too */
    size_t made;              /* out, of a method that scores: drafts, also one that it then left out */
    bool found;               /* out: they were looked up, being worth more than what could be made */
    fr_failure failure;       /* out: of this session alone */
    struct fr_proposal *next; /* while it is asked: of another session; NULL: the last */
} fr_proposal;

/* What there is room for. */
typedef struct fr_draft_sizes {
    size_t threads, context, sessions;
    size_t rows; /* of the largest batch */
    size_t pages; /* of the target's caches, each of FR_KV_PAGE positions */
    fr_kv_types kv_types;
    void *workspace; /* what the drafter's method laid out for all sessions; NULL: nothing, or it was measured */
} fr_draft_sizes;

struct fr_draft_method {
    const char *name;

    /* For methods with weights: whether a drafter's files are theirs; what reads them into drafter->net and checks them
     * against drafter->target, and what frees it again (also after a failing load). */
    bool (*reads)(const fr_checkpoint *files);
    fr_status (*load)(fr_drafter *drafter);
    void (*unload)(fr_drafter *drafter);

    /* The head that scores drafts, where it scores all ids of the target's, in their order; NULL: it does not, or
     * nothing is bound. Where drafter->head has ids the method scores with that one. */
    const fr_matrix *(*head)(const fr_drafter *drafter);

    /* Whether it reads that KV layer of the target's caches, which is of the last ones that look so far back: a rank
     * then keeps all heads of it. NULL: it reads none. */
    bool (*borrows)(const fr_drafter *drafter, size_t kv);

    /* Takes what all sessions of an engine work in, in one call at a time, from the arena; NULL while measuring. NULL
     * instead of the function: nothing. */
    void *(*workspace)(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes);

    /* Takes a session's state from the arena; NULL while measuring. drafter is not looked at by methods without
     * weights. */
    fr_draft *(*open)(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes);

    /* Makes a new state of this method that of another, whose timeline becomes its own; NULL: begin does, of a timeline
     * that it was told nothing of. */
    void (*fork)(fr_draft *fork, const fr_draft *draft);

    /* Proposes for each of a list of states of this method: one engine's, each another session's; nothing is proposed
     * yet, and none has failed. No bit of what one proposes depends on who is asked with it. Called by
     * fr_draft_propose. */
    void (*propose)(fr_proposal *first);

    /* The rest may be NULL where a method has nothing to do. The timeline has been cut, or its cache's frontier moved
     * back: lets go of pages for what is behind it. */
    void (*cut)(fr_draft *draft, const fr_draft_view *view);

    /* After a prompt; the timeline may have become another since the last call: view->seen is how much of it still
     * stands. */
    void (*begin)(fr_draft *draft, const fr_draft_view *view);

    /* Where `follows` is set: the target has run more positions, and its rows are about to be overwritten. Called after
     * each batch of a prompt and, with view->defers, before every forward that no propose comes before. The cache may
     * be shorter than at the last call; ids up to and including index kv->length are then still the same. */
    fr_status (*follow)(fr_draft *draft, const fr_draft_view *view);

    /* What became of the last proposal; the view is the one after acceptance. */
    void (*commit)(fr_draft *draft, const fr_draft_view *view, size_t proposed, size_t accepted);

    /* The KV cache that the state has of its own; and what those of all sessions are laid out like. */
    fr_kv *(*kv)(fr_draft *draft);
    const fr_kv *(*workspace_kv)(const void *workspace);

    /* Frees what open did not take from the arena, and lets go of pages. */
    void (*close)(fr_draft *draft);
};

extern const fr_draft_method fr_draft_none, fr_draft_assistant, fr_draft_mtp, fr_draft_eagle3, fr_draft_eagle,
    fr_draft_model, fr_draft_ngram, fr_draft_own_method;

/* fr_draft_model where the model's ids mean something else than the target's: what its files become when loaded. */
extern const fr_draft_method fr_draft_text;

/* ngram before other methods, which draft where it has no long match. */
extern const fr_draft_method fr_draft_ngram_first;

/* Proposes for sessions of one engine, no session twice: each method is asked once for all that draft with it, so that
 * its weights are read once for all. Of an array `next` is set here; of a list, which is reordered, by the caller. One
 * alone returns its failure. */
void fr_draft_propose(fr_proposal *proposals, size_t count);
void fr_draft_propose_list(fr_proposal *first);
fr_status fr_draft_propose_one(fr_proposal *proposal);

/* path NULL: the MTP layer in the target's own checkpoint. */
fr_status fr_drafter_load(const char *path, const fr_model *target, const fr_options *options, fr_drafter **drafter);

/* The same without bringing weights into memory. */
fr_status fr_drafter_bind(const char *path, const fr_model *target, const fr_options *options, fr_drafter **drafter);
void fr_drafter_unload(fr_drafter *drafter);

#endif
