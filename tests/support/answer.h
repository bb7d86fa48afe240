/* Runs a model and returns its answer as two hashes. The one-answer suite compares the hashes of different ways of
 * running.
 *
 * In: a model, a drafter, and a way of running them. Out: a hash of the logits and a hash of the ids. */
#ifndef FR_TESTS_ANSWER_H
#define FR_TESTS_ANSWER_H

#include "forerun.h"
#include "kernels/kernels.h"

typedef enum fr_test_method {
    FR_TEST_NONE,
    FR_TEST_MTP, /* the drafter's own method */
    FR_TEST_NGRAM,
    FR_TEST_NGRAM_MTP, /* ngram if it has a long match, otherwise the drafter */
    /* All drafts of a round are right except one. From round to round the wrong draft is at another depth, so that
     * every rejection happens. */
    FR_TEST_SCRIPTED,
    FR_TEST_REPLACED, /* the drafts of FR_TEST_SCRIPTED replace those of the drafter, which runs too */
    FR_TEST_METHODS
} fr_test_method;

/* Settings of sampling. If all of them are 0, the ids are chosen greedily. */
typedef struct fr_test_draws {
    double temperature, top_p, repeat; /* 0 switches top_p or the repeat penalty off */
    bool rejection;
    void (*set)(fr_options *options, size_t which); /* sets more options; may be NULL */
    size_t which;
} fr_test_draws;

/* A way of running a model. Only `k`, `v` and `draws` may change the answer. */
typedef struct fr_manner {
    const char *isa;
    int threads, chunk;
    bool some; /* true: each run uses only a part of the threads, each time another number */
    int depth; /* number of drafts per step; may be FR_DRAFT_AUTO */
    fr_test_method method;
    const char *drafts;  /* option text for the drafter's method, or NULL for mtp */
    const char *k, *v;   /* types of cached keys and values, or NULL for the usual ones */
    fr_test_draws draws; /* how ids are chosen */
} fr_manner;

typedef struct fr_answer {
    uint64_t ids;    /* FNV-1a 64 of the generated ids */
    uint64_t logits; /* hash of the raw logits of prompt and text */
} fr_answer;

/* Generates `count` ids after a fixed prompt, with the model in `folder` and the drafter in `assistant`. If `assistant`
 * is NULL, the model's own MTP layer drafts. An end of sequence does not end the text. Then computes the logits of the
 * whole text. `script` has the right ids after the prompt, which FR_TEST_SCRIPTED and FR_TEST_REPLACED need. `text`
 * receives the ids; it may be NULL. For `misround` see fr_misround. Any failure ends the test. */
fr_answer fr_answer_of(const char *folder, const char *assistant, const fr_manner *manner, size_t count,
                       const int32_t *script, int32_t *text, bool misround);

/* Replaces a kernel of the model by one that rounds a product once too often. A suite uses it to show that it would
 * notice such an error. */
void fr_misround(fr_model *model, fr_kernels *kernels);

#endif
