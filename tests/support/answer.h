/* Runs a model and gives its answer as one number, which the one-answer suite compares.
 *
 * In: a model, a drafter, and how to run them. Out: a hash over the bytes of the logits and ids. */
#ifndef FR_TESTS_ANSWER_H
#define FR_TESTS_ANSWER_H

#include "forerun.h"
#include "kernels/kernels.h"

typedef enum fr_test_method {
    FR_TEST_NONE,
    FR_TEST_MTP, /* the drafter's own method, whatever that is */
    FR_TEST_NGRAM,
    FR_TEST_NGRAM_MTP, /* ngram where it has a long match, else the drafter */
    FR_TEST_SCRIPTED,  /* right drafts, and a wrong one at each depth in turn: rejection is forced everywhere */
    FR_TEST_REPLACED,  /* the same in place of the drafter's proposals, while the drafter runs */
    FR_TEST_METHODS
} fr_test_method;

/* The settings of sampling; all 0: greedily. */
typedef struct fr_test_draws {
    double temperature, top_p, repeat; /* top_p and repeat penalty: 0 leaves them off */
    bool rejection;
    void (*set)(fr_options *options, size_t which); /* sets more; NULL: nothing */
    size_t which;
} fr_test_draws;

/* The settings of a run. Only the last lines may change the answer. */
typedef struct fr_manner {
    const char *isa;
    int threads, chunk;
    bool some; /* uses some of the threads, another number of them in each run */
    int depth; /* may be FR_DRAFT_AUTO */
    fr_test_method method;
    const char *drafts;  /* the word for the drafter's method; NULL: mtp */
    const char *k, *v;   /* types of cached keys and values; NULL: the model's usual ones. They change the answer */
    fr_test_draws draws; /* these change it too */
} fr_manner;

typedef struct fr_answer {
    uint64_t ids;    /* FNV-1a 64 of the generated ids */
    uint64_t logits; /* hash of the raw logits over prompt and text */
} fr_answer;

/* Generates `count` ids after a fixed prompt with the model in `folder` (drafter in `assistant`; NULL: the model's own
 * MTP layer), in that manner, past any end of sequence; then the logits of the whole text. script: the right ids after
 * the prompt, for FR_TEST_SCRIPTED and FR_TEST_REPLACED. text: NULL, or room for the ids. misround: see fr_misround.
 * Ends the test on any failure. */
fr_answer fr_answer_of(const char *folder, const char *assistant, const fr_manner *manner, size_t count,
                       const int32_t *script, int32_t *text, bool misround);

/* The negative control: replaces a kernel of the model by one that rounds a product too often. */
void fr_misround(fr_model *model, fr_kernels *kernels);

#endif
