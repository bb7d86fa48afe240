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

#define FR_BIAS_MAX ((size_t)1 << 20) /* more than any vocabulary has tokens */

enum { FR_ACCEPT_GUMBEL, FR_ACCEPT_REJECTION };

/* The samplers in their default order (samplers.def). The last ones have no names. */
typedef enum fr_filter {
#define FR_SAMPLER(id, word, letter, run, works) FR_FILTER_##id,
#define FR_SAMPLER_INSTEAD(id, run)              FR_FILTER_##id,
#include "base/samplers.def"
#undef FR_SAMPLER
#undef FR_SAMPLER_INSTEAD
    FR_FILTER_COUNT,
    FR_FILTER_NAMED = FR_FILTER_MIROSTAT
} fr_filter;

/* The names by which an order lists a sampler. */
typedef struct fr_sampler_name {
    const char *word;
    char letter;
} fr_sampler_name;

extern const fr_sampler_name fr_sampler_names[FR_FILTER_NAMED];

/* Texts that a repetition does not reach across. */
#define FR_BREAKERS_MAX     16
#define FR_BREAKER_SIZE_MAX 40 /* bytes */

typedef struct fr_breakers {
    char texts[FR_BREAKERS_MAX][FR_BREAKER_SIZE_MAX + 1];
    size_t count;
    bool given; /* or they are the usual ones */
} fr_breakers;

#define FR_PRE_SIZE 64 /* bytes of the name of a pre-tokenizer, its NUL among them */

/* How ranks split models: what rows of all layers are made of, or layers; FR_SPLIT_AUTO: by what a network takes, which
 * is not known of ranks of one machine. */
typedef enum fr_rank_split { FR_SPLIT_AUTO, FR_SPLIT_ROWS, FR_SPLIT_LAYERS } fr_rank_split;
typedef struct fr_rank_plan {
    fr_rank_split split;
    double latency;   /* seconds of a gather of few bytes; 0: not known */
    double bandwidth; /* bytes a second of weights that all ranks together read */
} fr_rank_plan;

struct fr_options {
    int64_t value[FR_OPT_COUNT];
    double number[FR_OPT_COUNT]; /* of options that take one */
    /* Malloc'd, with a capacity of the next power of two. Options copied by value share them until
     * fr_options_own_biases gives the copy its own. */
    fr_logit_bias *biases;
    size_t bias_count;
    uint8_t filters[FR_FILTER_COUNT]; /* in this order, */
    size_t filter_count;
    bool filters_given;               /* or in the usual one */
    fr_breakers breakers;
    char isa[16];             /* "" for the best here */
    char spec_type[64];       /* "" for what the drafter is */
    char draft_head[4096];    /* a word, a number or a path; "" for whole */
    char mmproj[4096];        /* "" for none */
    char chat_template[4096]; /* a path; "" for the model's own */
    char tokenizer_pre[FR_PRE_SIZE]; /* "" for what the file says */
    const void *bytes; /* of the model, instead of what its path names; NULL: the path */
    size_t byte_count;
    int tapping; /* which products' inputs a model sums up (src/engine/weights/weights.h) */
    struct fr_ranks *ranks; /* NULL; or those that share the model's weights (base/ranks.h), */
    fr_rank_plan rank_plan; /* and how */
    fr_progress_fn *progress;
    void *progress_context;
    fr_log log;
};

/* What an option is called in error lines, and what it may be set to. */
typedef struct fr_option_bounds {
    const char *name;
    fr_option_kind kind;
    struct {
        int64_t low, high, fallback; /* fallback: of words that are kept as numbers too */
    } whole;
    struct {
        double low, high, fallback;
    } number;
} fr_option_bounds;

/* Of FR_OPT_COUNT options. */
extern const fr_option_bounds fr_options_bounds[];

/* The options, or the defaults where options is NULL. */
fr_options fr_options_resolve(const fr_options *options);

/* Gives options that were copied by value biases of their own, which are freed with them. FR_MEMORY leaves them
 * none. */
fr_status fr_options_own_biases(fr_options *options);

#endif
