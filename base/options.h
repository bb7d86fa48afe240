/* Keeps the settings in the form that the library reads.
 *
 * In: fr_options_set calls, each checked for range (api/option_words.c handles options that take words). Out: plain
 * values with defaults filled in. A value of -1 means that the default depends on the model or the machine. */
#ifndef FR_BASE_OPTIONS_H
#define FR_BASE_OPTIONS_H

#include "base/log.h"

/* Adds `bias` to the logit of token `id`. */
typedef struct fr_logit_bias {
    int32_t id;
    float bias;
} fr_logit_bias;

#define FR_BIAS_MAX ((size_t)1 << 20) /* more than the tokens of any vocabulary */

enum { FR_ACCEPT_GUMBEL, FR_ACCEPT_REJECTION };

/* The samplers in their default order (samplers.def). Samplers without a name come last. */
typedef enum fr_filter {
#define FR_SAMPLER(id, word, letter, run, drops_best, works) FR_FILTER_##id,
#define FR_SAMPLER_INSTEAD(id, run)                          FR_FILTER_##id,
#include "samplers.def"
    FR_FILTER_COUNT,
    FR_FILTER_NAMED = FR_FILTER_MIROSTAT
} fr_filter;

/* Names a sampler in a text that gives the samplers' order: by a word or by a letter. */
typedef struct fr_sampler_name {
    const char *word, *letter;
} fr_sampler_name;

extern const fr_sampler_name fr_sampler_names[FR_FILTER_NAMED];

/* Holds the samplers' settings that are numbers (samplers.def). */
typedef struct fr_sampler_settings {
#define FR_SAMPLER_NUMBER(id, key, low, high, usual, name, ...) double key;
#define FR_SAMPLER_WHOLE(id, key, low, high, usual, name, ...)  int64_t key;
#include "samplers.def"
} fr_sampler_settings;

/* Lists the texts that break a repetition: the DRY sampler does not match a sequence across such a text. */
#define FR_BREAKERS_MAX     16
#define FR_BREAKER_SIZE_MAX 40 /* bytes */

typedef struct fr_breakers {
    char texts[FR_BREAKERS_MAX][FR_BREAKER_SIZE_MAX + 1];
    size_t count;
    bool given; /* false if the default breakers are used */
} fr_breakers;

#define FR_PRE_SIZE 64 /* bytes of a pre-tokenizer's name, including its NUL */

/* Says how ranks split a model. They split every layer by its rows (ROWS), or give each rank a group of whole layers
 * (LAYERS). FR_SPLIT_AUTO chooses by the speed of the network. If all ranks are on one machine, FR_SPLIT_AUTO splits
 * rows without measuring the speed. */
typedef enum fr_rank_split { FR_SPLIT_AUTO, FR_SPLIT_ROWS, FR_SPLIT_LAYERS } fr_rank_split;
typedef struct fr_rank_plan {
    fr_rank_split split;
    double latency;   /* seconds that a gather of few bytes takes; 0 if unknown */
    double bandwidth; /* bytes of weights that all ranks together read per second */
} fr_rank_plan;

struct fr_options {
    int64_t value[FR_OPT_COUNT];
    double number[FR_OPT_COUNT]; /* values of options that take a number */
    /* The biases are malloc'd; their capacity is the next power of two. Options that are copied by value share the
     * biases until fr_options_own_biases gives the copy its own. */
    fr_logit_bias *biases;
    size_t bias_count;
    uint8_t filters[FR_FILTER_COUNT]; /* the samplers to apply, in order */
    size_t filter_count;
    bool filters_given; /* false: the default samplers in their default order */
    fr_breakers breakers;
    char isa[16];                    /* name of an instruction set; "" for the best instruction set of this machine */
    char spec_type[64];              /* draft method; "" for the method that the drafter's files imply */
    char draft_head[4096];           /* "whole", "auto", a number of ids, or the path of a list of ids; "" means the
                                      * whole head */
    char draft_times[4096];          /* folder in which measured times of drafting are stored; "" for none */
    char mmproj[4096];               /* path of a vision tower; "" for none */
    char chat_template[4096];        /* path of a chat template; "" for the model's own template */
    char tokenizer_pre[FR_PRE_SIZE]; /* name of a pre-tokenizer; "" for the name in the model's file */
    const void *bytes;               /* the model file in memory; NULL: the file is read from its path */
    size_t byte_count;
    int activation_stats;   /* which statistics of the matrices' inputs are collected (src/engine/weights/weights.h) */
    struct fr_ranks *ranks; /* the ranks that share the model's weights (base/ranks.h); NULL if one process has all
                             * weights */
    fr_rank_plan rank_plan; /* how the ranks divide the weights */
    fr_progress_fn *progress;
    void *progress_context;
    fr_log log;
};

/* Gives an option's name for error lines, and the values that it accepts. */
typedef struct fr_option_bounds {
    const char *name;
    fr_option_kind kind;
    struct {
        int64_t low, high, fallback; /* fallback: the default; for an option that takes words, the number that stands
                                      * for the default word */
    } whole;
    struct {
        double low, high, fallback;
    } number;
} fr_option_bounds;

/* Has FR_OPT_COUNT entries, one for each option. */
extern const fr_option_bounds fr_options_bounds[];

/* Copies the options; NULL gives the defaults. */
fr_options fr_options_resolve(const fr_options *options);

/* Gives the samplers' numeric settings as a struct whose members have the samplers' names. */
fr_sampler_settings fr_options_sampling(const fr_options *options);

/* Gives options that were copied by value their own copy of the biases, which is freed with the options. After
 * FR_MEMORY the options have no biases. */
fr_status fr_options_own_biases(fr_options *options);

#endif
