/* Parses the command line by one table of options for all verbs (option_table.c).
 *
 * In: a verb and the words of argv after it. Out: the value of every option, and whether the option was given. All
 * values are checked here, so that the verbs need no checks of their own. A value that is known but not implemented is
 * refused, and the error line names it. */
#ifndef FR_TOOLS_CLI_OPTIONS_H
#define FR_TOOLS_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "forerun.h"

enum {
    FR_VERB_GENERATE = 1,
    FR_VERB_CHAT = 2,
    FR_VERB_LOGITS = 4,
    FR_VERB_TOKENIZE = 8,
    FR_VERB_INSPECT = 16,
    FR_VERB_VERIFY = 32,
    FR_VERB_PERPLEXITY = 64,
    FR_VERB_QUANTIZE = 128,
    FR_VERB_SYNTH = 256,
    FR_VERB_PACK = 512,
    FR_VERB_REPORT = 1024,
    FR_VERB_BENCH = 2048,
    FR_VERB_TEMPLATE = 4096,
    FR_VERB_BATCH = 8192,
    FR_VERB_COMPLETION = 16384,
    FR_VERB_SERVE = 32768,
    FR_VERB_MODELS = 65536,
    FR_VERB_FEATURES = 131072,
    FR_VERB_IMATRIX = 262144,
    FR_VERB_TRIM_HEAD = 524288,
    FR_VERB_EMBED = 1048576,
    FR_VERB_RERANK = 2097152,
};

typedef struct fr_arguments fr_arguments;

typedef struct fr_verb {
    const char *name;
    unsigned bit; /* one of FR_VERB_* */
    /* the text of tools/cli/help/NAME.txt. Later it is split in place, and the members below point to its parts */
    char *help;
    int (*run)(const fr_arguments *args); /* runs the verb and gives the exit status */
    const char *usage, *does, *notes, *examples;
} fr_verb;

/* Gives the parser the list of all verbs. If a verb does not have an option, the error line names the verbs that have
 * it. */
void fr_arguments_know(const fr_verb *verbs, size_t count);

/* All options, in the order of the help text. */
typedef enum fr_arg {
    FR_ARG_MODEL,
    FR_ARG_DRAFTER,
    FR_ARG_MMPROJ,
    FR_ARG_LORA,
    FR_ARG_LORA_SCALED,
    FR_ARG_LORA_IDLE,
    FR_ARG_VECTOR,
    FR_ARG_VECTOR_SCALED,
    FR_ARG_VECTOR_RANGE,
    FR_ARG_TOKENIZER_PRE,
    FR_ARG_PROMPT,
    FR_ARG_FILE,
    FR_ARG_IDS,
    FR_ARG_ESCAPE,
    FR_ARG_NO_ESCAPE,
    FR_ARG_CHAT,
    FR_ARG_NO_CHAT,
    FR_ARG_SYSTEM,
    FR_ARG_SYSTEM_FILE,
    FR_ARG_MESSAGES,
    FR_ARG_TOOLS,
    FR_ARG_CHAT_TEMPLATE,
    FR_ARG_CHAT_KWARGS,
    FR_ARG_NO_THINK,
    FR_ARG_PARSE_SPECIAL,
    FR_ARG_DECODE,
    FR_ARG_NO_BOS,
    FR_ARG_PIECES,
    FR_ARG_PREDICT,
    FR_ARG_STOP,
    FR_ARG_IGNORE_EOS,
    FR_ARG_OUTPUT,
    FR_ARG_TEMPLATE_OUTPUT,
    FR_ARG_EMBED_OUTPUT,
    FR_ARG_PROMPT_NAME,
    FR_ARG_INSTRUCTION,
    FR_ARG_SEPARATOR,
    FR_ARG_DIMENSIONS,
    FR_ARG_NORMALIZE,
    FR_ARG_RAW_SCORES,
    FR_ARG_TOP,
    FR_ARG_COLOR,
    FR_ARG_STATS,
    FR_ARG_TRACE,
    FR_ARG_PROMPT_CACHE,
    FR_ARG_OUT_FILE,
    FR_ARG_MOST_IDS,
    FR_ARG_ROWS,
    FR_ARG_TAPS,
    FR_ARG_DRAFT_STEPS,
    FR_ARG_BASE,
    FR_ARG_KL,
    FR_ARG_HELLASWAG,
    FR_ARG_WINOGRANDE,
    FR_ARG_MULTIPLE_CHOICE,
    FR_ARG_TASKS,
    FR_ARG_CHUNK_IDS,
    FR_ARG_CHUNKS,
    FR_ARG_PROCESS_OUTPUT,
    FR_ARG_OUTPUT_FORMAT,
    FR_ARG_STRIDE,
    FR_ARG_TENSORS,
    FR_ARG_INSPECT_FORM,
    FR_ARG_SHAPE,
    FR_ARG_TYPE,
    FR_ARG_TENSOR_TYPE,
    FR_ARG_OUTPUT_TYPE,
    FR_ARG_EMBEDDING_TYPE,
    FR_ARG_PURE,
    FR_ARG_MMPROJ_TYPE,
    FR_ARG_IMATRIX,
    FR_ARG_VOCAB,
    FR_ARG_LAYERS,
    FR_ARG_EXPERTS,
    FR_ARG_PARALLEL,
    FR_ARG_KV_MEMORY,
    FR_ARG_MEMORY,
    FR_ARG_RESUME,
    FR_ARG_RANK_DELAY,
    FR_ARG_RANK_TIMEOUT,
    FR_ARG_RANK_SHARES,
    FR_ARG_RANK_SPLIT,
    FR_ARG_CONFIG,
    FR_ARG_HOST,
    FR_ARG_PORT,
    FR_ARG_ALIAS,
    FR_ARG_MODELS,
    FR_ARG_MODELS_MAX,
    FR_ARG_API_KEY,
    FR_ARG_API_KEY_FILE,
    FR_ARG_SSL_KEY,
    FR_ARG_SSL_CERT,
    FR_ARG_CORS,
    FR_ARG_ALLOW_HOST,
    FR_ARG_METRICS,
    FR_ARG_EMBEDDINGS,
    FR_ARG_POOLING,
    FR_ARG_SLOTS,
    FR_ARG_NO_SLOTS,
    FR_ARG_NO_UI,
    FR_ARG_SLOT_SAVE_PATH,
    FR_ARG_TIMEOUT,
    FR_ARG_MAX_BODY,
    FR_ARG_MAX_CONNECTIONS,
    FR_ARG_MAX_QUEUE,
    FR_ARG_PING,
    FR_ARG_LOG_CONTENTS,
    FR_ARG_LOG_FORMAT,
    FR_ARG_LOG_LEVEL,
#define FR_SAMPLER_NUMBER(id, key, low, high, usual, name, ...) FR_ARG_##id,
#include "samplers.def"
    FR_ARG_DRY_SEQUENCE_BREAKER,
    FR_ARG_SAMPLERS,
    FR_ARG_LOGIT_BIAS,
    FR_ARG_GRAMMAR,
    FR_ARG_GRAMMAR_FILE,
    FR_ARG_JSON_SCHEMA,
    FR_ARG_JSON_SCHEMA_FILE,
    FR_ARG_REGEX,
    FR_ARG_SEED,
    FR_ARG_LOGPROBS,
    FR_ARG_SPEC_TYPE,
    FR_ARG_DRAFT_MAX,
    FR_ARG_DRAFT_MIN,
    FR_ARG_DRAFT_P_MIN,
    FR_ARG_DRAFT_HEAD,
    FR_ARG_DRAFT_TIMES,
    FR_ARG_DRAFT_TOPK,
    FR_ARG_DRAFT_ROWS,
    FR_ARG_PRESET,
    FR_ARG_ACCEPT,
    FR_ARG_CONTEXT,
    FR_ARG_CONTEXT_SHIFT,
    FR_ARG_THREADS,
    FR_ARG_PIN,
    FR_ARG_NO_PIN,
    FR_ARG_NUMA,
    FR_ARG_ISA,
    FR_ARG_CHUNK,
    FR_ARG_KV_K,
    FR_ARG_KV_V,
    FR_ARG_CTX_CHECKPOINTS,
    FR_ARG_SWA_FULL,
    FR_ARG_NO_MMAP,
    FR_ARG_MLOCK,
    FR_ARG_QUIET,
    FR_ARG_VERBOSE,
    FR_ARG_VERSION,
    FR_ARG_HELP,
    FR_ARG_IMAGE,
    FR_ARG_IMAGE_MAX_PIXELS,
    FR_ARG_IMAGE_MIN_PIXELS,
    FR_ARG_IMAGE_MAX_TOKENS,
    FR_ARG_IMAGE_MIN_TOKENS,
    FR_ARG_SHELL,
    FR_ARG_BENCH_PART,
    FR_ARG_BENCH_FORM,
    FR_ARG_BENCH_FILTER,
    FR_ARG_BENCH_ISA,
    FR_ARG_BENCH_ROWS,
    FR_ARG_BENCH_WEIGHTS,
    FR_ARG_BENCH_THREADS,
    FR_ARG_BENCH_PROMPT,
    FR_ARG_BENCH_GENERATE,
    FR_ARG_BENCH_BOTH,
    FR_ARG_BENCH_DEPTH,
    FR_ARG_BENCH_PHASES,
    FR_ARG_BENCH_DRAFTS,
    FR_ARG_BENCH_SPEC_TYPE,
    FR_ARG_BENCH_PROMPTS,
    FR_ARG_BENCH_SYNTH_RATES,
    FR_ARG_BENCH_REPETITIONS,
    FR_ARG_BENCH_SPREAD,
    FR_ARG_BENCH_PLOT,
    FR_ARG_COUNT
} fr_arg;

#define FR_TENSOR_TYPES_MAX    64
#define FR_BIASES_MAX          4096
#define FR_PAIRS_MAX           64
#define FR_IMAGES_MAX          64
#define FR_ADAPTER_OPTIONS_MAX 64
#define FR_HARMLESS_MAX        32
#define FR_BREAKERS_MAX        16
#define FR_NAMED_MAX           3
#define FR_BARE_MAX            4

struct fr_arguments {
    const fr_verb *verb;
    bool given[FR_ARG_COUNT];
    bool settled[FR_ARG_COUNT];     /* true for an option that an earlier source has given; later sources do not change
                                     * it (option_sources.h) */
    const char *name[FR_ARG_COUNT]; /* the name by which each option was given, perhaps with =value */
    const char *text[FR_ARG_COUNT];
    int64_t number[FR_ARG_COUNT];
    double real[FR_ARG_COUNT];
    const char *stops[FR_STOPS_MAX]; /* every --stop */
    size_t stop_count;
    const char *tensor_types[FR_TENSOR_TYPES_MAX]; /* every --tensor-type */
    size_t tensor_type_count;
    int64_t pairs[FR_PAIRS_MAX][2]; /* every -pg */
    size_t pair_count;
    const char *biases[FR_BIASES_MAX]; /* every --logit-bias */
    size_t bias_count;
    const char *breakers[FR_BREAKERS_MAX]; /* every --dry-sequence-breaker */
    size_t breaker_count;
    struct {
        const char *text;
        fr_arg option;
    } adapters[FR_ADAPTER_OPTIONS_MAX]; /* every --lora, --lora-scaled, --control-vector, --control-vector-scaled */
    size_t vector_range[2];             /* --control-vector-layer-range; 0, 0: it is not given */
    size_t adapter_count;
    const char *images[FR_IMAGES_MAX]; /* every --image */
    size_t image_count;
    /* options that only llama.cpp has, which were given and have no effect */
    const char *harmless[FR_HARMLESS_MAX];
    size_t harmless_count;
    int32_t *ids; /* --ids */
    size_t id_count;
    bool uses_drafter;             /* the run may use a drafter: drafts are wanted, and --spec-type allows one */
    char *system;                  /* text of --system-prompt-file */
    const char *bare[FR_BARE_MAX]; /* the words after quantize that follow no option's name */
    size_t bare_count;
    bool bare_model;           /* the model was named by a word without -m */
    bool piped;                /* no prompt was given, so it is read from standard input */
    char *found[FR_NAMED_MAX]; /* paths of models that were given by their names in other programs (named.h) */
    const char *model_name;    /* the value of -m if it was a name and not a path; otherwise NULL */
    bool seed_drawn;           /* the seed was drawn, because --seed was -1 or not given */
    char **words;              /* words that were made from settings in a file or in the environment */
    size_t word_count;
};

/* Gives the numbers of a list such as "1..8,16" in order. Returns how many there are, which is at most `most`, or 0 if
 * the option was not given. A special word in the list becomes -1. */
size_t fr_arguments_numbers(const fr_arguments *args, fr_arg arg, int64_t *numbers, size_t most);

/* Parses the words after the verb. Gives 0, or the exit status after an error line. If --help or --version is found,
 * the parsing ends at once. */
int fr_arguments_parse(fr_arguments *args, const fr_verb *verb, int count, char **words);
void fr_arguments_free(fr_arguments *args);

/* Prints the error line that the verb needs a prompt and has none. Gives the exit status. */
int fr_arguments_lack_prompt(const fr_arguments *args);

/* Gives the name of an option that makes sense only with drafts; NULL: no such option was given. Values that mean no
 * drafts, such as --draft-max 0 or --accept gumbel, don't count. A preset doesn't count if --draft-max overrides it. */
const char *fr_arguments_drafting(const fr_arguments *args);

/* Draws a random seed to replace a seed of -1. */
uint32_t fr_draw_seed(void);

#define FR_HELP_SIZE 2048 /* bytes of a help text, including the words that it lists */

/* An option as help shows it. more: text that only the manual page has; "": none. */
typedef struct fr_option_help {
    const char *names, *value;
    char help[FR_HELP_SIZE], more[FR_HELP_SIZE];
    unsigned verbs;
} fr_option_help;

fr_option_help fr_arguments_help(fr_arg arg);

/* Prints the help text of a verb: its own lines, and its options from the table. */
void fr_help_print(const fr_verb *verb, FILE *out);

#endif
