/* Runs a model and returns its answer as two hashes, which the one-answer suite compares.
 *
 * In: a model, a drafter, and the way of running them. Out: a hash of the logits and a hash of the ids. */
#ifndef FR_TESTS_ANSWER_H
#define FR_TESTS_ANSWER_H

#include "forerun.h"
#include "kernels/kernels.h"

typedef enum fr_test_method {
    FR_TEST_NONE,
    FR_TEST_MTP, /* the drafter's own method */
    FR_TEST_NGRAM,
    FR_TEST_NGRAM_MTP, /* ngram if it has a long match, otherwise the drafter */
    FR_TEST_SCRIPTED,  /* all drafts of a round are right except one, which is at every depth in turn, so that all
                        * rejections happen */
    FR_TEST_REPLACED,  /* the same drafts as FR_TEST_SCRIPTED; the drafter runs too, but its own drafts are replaced */
    FR_TEST_METHODS
} fr_test_method;

/* The settings of sampling. If all of them are 0, the ids are chosen greedily. */
typedef struct fr_test_draws {
    double temperature, top_p, repeat; /* 0 leaves top_p or the repeat penalty off */
    bool rejection;
    void (*set)(fr_options *options, size_t which); /* sets more options; may be NULL */
    size_t which;
} fr_test_draws;

/* One way of running a model. Only `k`, `v` and `draws` may change the answer. */
typedef struct fr_manner {
    const char *isa;
    int threads, chunk;
    bool some; /* uses only some of the threads, and another number of them in each run */
    int depth; /* number of drafts per step; may be FR_DRAFT_AUTO */
    fr_test_method method;
    const char *drafts;  /* option text for the drafter's method; NULL: mtp */
    const char *k, *v;   /* types of cached keys and values; NULL: the usual ones */
    fr_test_draws draws; /* how ids are chosen */
} fr_manner;

typedef struct fr_answer {
    uint64_t ids;    /* FNV-1a 64 of the generated ids */
    uint64_t logits; /* hash of the raw logits of prompt and text */
} fr_answer;

/* Generates `count` ids after a fixed prompt, with the model in `folder` and the drafter in `assistant`. If
 * `assistant` is NULL, the model's own MTP layer drafts. Generation continues after an end of sequence. Then computes
 * the logits of the whole text. script: the right ids after the prompt, for FR_TEST_SCRIPTED and FR_TEST_REPLACED.
 * text: receives the ids; may be NULL. misround: see fr_misround. Ends the test at any failure. */
fr_answer fr_answer_of(const char *folder, const char *assistant, const fr_manner *manner, size_t count,
                       const int32_t *script, int32_t *text, bool misround);

/* For the negative control: replaces a kernel of the model by one that rounds a product once too often. */
void fr_misround(fr_model *model, fr_kernels *kernels);

#endif
