/* Settings as the library reads them.
 *
 * In: fr_options_set calls, each checked for range (those of words: api/option_words.c). Out: plain values, defaults
 * filled in; -1 where the default depends on the model or the machine. */
#ifndef FR_BASE_OPTIONS_H
#define FR_BASE_OPTIONS_H

#include "base/log.h"

/* What is added to a token's logit. */
typedef struct fr_logit_bias {
    int32_t id;
    float bias;
} fr_logit_bias;

#define FR_BIAS_MAX 256

enum { FR_ACCEPT_GUMBEL, FR_ACCEPT_REJECTION };

struct fr_options {
    int64_t value[FR_OPT_COUNT];
    double number[FR_OPT_COUNT]; /* of options that take one */
    fr_logit_bias biases[FR_BIAS_MAX];
    size_t bias_count;
    char isa[16];             /* "" for the best here */
    char spec_type[64];       /* "" for what the drafter is */
    char mmproj[4096];        /* "" for none */
    char chat_template[4096]; /* a path; "" for the model's own */
    const void *bytes; /* of the model, instead of what its path names; NULL: the path */
    size_t byte_count;
    fr_progress_fn *progress;
    void *progress_context;
    fr_log log;
};

/* The options, or the defaults where options is NULL. */
fr_options fr_options_resolve(const fr_options *options);

#endif
