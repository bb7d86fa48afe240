/* Draft methods: who proposes the tokens that the target then verifies.
 *
 * In: a view of the timeline. Out: up to K proposed ids. A method is one vtable in one file (draft_*.c). The text never
 * depends on a method: a proposal is only ever accepted where the target's own answer is the same id. (Under rejection
 * sampling, which a user has to ask for, the distribution of the text doesn't.)
 *
 * Life of a method in a session: open (twice: measuring, then real), then after each prompt begin, then rounds of
 * propose and commit, at last close. */
#ifndef FR_SRC_DRAFT_H
#define FR_SRC_DRAFT_H

#include "src/model.h"
#include "src/sampler.h"

typedef struct fr_draft_method fr_draft_method;

/* A drafter's weights, opened and checked against a target; immutable. */
struct fr_drafter {
    const fr_draft_method *method;
    const fr_model *target;
    fr_checkpoint files;
    fr_weights weights;
    void *net;    /* the method's own */
    size_t reach; /* positions it looks back over in the target's sliding KV, the newest included; 0: none */
};

/* What a session shows its method. */
typedef struct fr_draft_view {
    const int32_t *ids;  /* the timeline */
    size_t length;       /* >= 2; the last id has not been run by the target */
    fr_kv *kv;           /* the target's cache: positions 0 .. length - 2 are accepted */
    const float *hidden; /* the target's row of position length - 2, after its final norm */
    fr_pool *pool;
    fr_sampler *sampler; /* picks from a method's logits as the target will be picked from; NULL: the largest */
} fr_draft_view;

/* A method's state in one session; each method's own struct begins with it. */
typedef struct fr_draft {
    const fr_draft_method *method;
} fr_draft;

struct fr_draft_method {
    const char *name;

    /* For methods with weights: the architectures in their config.json or GGUF, NULL-terminated; what reads it into
     * drafter->net and checks it against drafter->target, and what frees it again (also after a failing load). */
    const char *const *architectures;
    fr_status (*load)(fr_drafter *drafter);
    void (*unload)(fr_drafter *drafter);

    /* Takes the state from the arena; NULL while measuring. drafter is not looked at by methods without weights.
     * context: positions the timeline can have. */
    fr_draft *(*open)(const fr_drafter *drafter, fr_arena *arena, size_t threads, size_t context);

    /* Proposes up to `count` (1 to 15) ids that may follow the timeline; *proposed may be less, 0 too. logits: NULL, or
     * room for [count, vocab], where each step's scores go (-infinity for ids not scored). */
    fr_status (*propose)(fr_draft *draft, const fr_draft_view *view, size_t count, int32_t *ids, size_t *proposed,
                         float *logits);

    /* The rest may be NULL where a method has nothing to do. After a prompt: */
    void (*begin)(fr_draft *draft, const fr_draft_view *view);

    /* What became of the last proposal; the view is the one after acceptance. */
    void (*commit)(fr_draft *draft, const fr_draft_view *view, size_t proposed, size_t accepted);

    /* Bytes of KV cache that the state holds of its own. */
    size_t (*kv_bytes)(const fr_draft *draft);

    /* Frees what open did not take from the arena. */
    void (*close)(fr_draft *draft);
};

extern const fr_draft_method fr_draft_none, fr_draft_mtp, fr_draft_ngram, fr_draft_scripted;

/* ngram before other methods, which draft where it has no long match. */
extern const fr_draft_method fr_draft_ngram_first;

fr_status fr_drafter_load(const char *path, const fr_model *target, const fr_options *options, fr_drafter **drafter);

/* The same without bringing weights into memory. */
fr_status fr_drafter_bind(const char *path, const fr_model *target, const fr_options *options, fr_drafter **drafter);
void fr_drafter_unload(fr_drafter *drafter);

#endif
