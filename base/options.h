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
    fr_progress_fn *progress;
    void *progress_context;
    fr_log log;
};

/* What an option is called in error lines, and what it may be set to. */
typedef struct fr_option_range {
    const char *name;
    enum { FR_OPTION_TEXT, FR_OPTION_WHOLE, FR_OPTION_REAL } kind;
    struct {
        int64_t low, high, fallback; /* fallback: of words that are kept as numbers too */
    } whole;
    struct {
        double low, high, fallback;
    } real;
} fr_option_range;

/* Of FR_OPT_COUNT options. */
extern const fr_option_range fr_option_ranges[];

/* The options, or the defaults where options is NULL. */
fr_options fr_options_resolve(const fr_options *options);

#endif
