/* The option table, the parser that reads argv by it, and the help text that is printed from it. */
#include "options.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "forerun_lab.h"
#include "output.h"

enum {
    G = FR_VERB_GENERATE,
    C = FR_VERB_CHAT,
    L = FR_VERB_LOGITS,
    T = FR_VERB_TOKENIZE,
    I = FR_VERB_INSPECT,
    V = FR_VERB_VERIFY,
    P = FR_VERB_PERPLEXITY,
    Q = FR_VERB_QUANTIZE,
    S = FR_VERB_SYNTH,
    K = FR_VERB_PACK,
    R = FR_VERB_REPORT,
    B = FR_VERB_BENCH,
    ALL = 2 * B - 1,
    READ = ALL - S - R,        /* those that are given a model */
    RUN = G | C | L | V | P,   /* those that run it, as they are told; bench does it its own way */
    MACHINE = 1,
    KERNELS = 2,
    MODEL = 4,
};

typedef enum fr_kind {
    TEXT,    /* anything; a flag when the row names no value */
    NUMBER,  /* a whole number in [low, high] */
    REAL,    /* a number in [low, high] */
    WORD,    /* one of words */
    LIST,    /* comma list of words */
    ISA,     /* one of the library's instruction-set words */
    NUMBERS, /* comma list of whole numbers and stretches of them in [low, high] */
    ISAS,    /* comma list of instruction-set words */
    IDS,     /* comma list of token ids */
} fr_kind;

typedef struct fr_row {
    const char *names;   /* the ones that help shows first, and the plainest of all in front */
    const char *value;   /* what help calls the value, NULL for a flag */
    fr_kind kind;
    unsigned verbs;      /* who takes it */
    unsigned parts;      /* of bench, which take it; 0: all */
    bool again;          /* each time it is given counts */
    int64_t low, high;
    const char *words;   /* words that are built */
    const char *special; /* a word beside the numbers; it leaves the number -1 */
    const char *unbuilt; /* words that are known, for any kind, but not built yet */
    const char *help;
    const char *more; /* for the manual page alone */
} fr_row;

#define KV_TYPES .kind = WORD, .words = "f32 f16 bf16 q8_0 q4_0", .unbuilt = "q4_1 iq4_nl q5_0 q5_1"

static const fr_row table[FR_ARG_COUNT] = {
    [FR_ARG_MODEL] = {.names = "-m --model", .verbs = READ, .parts = MODEL, .value = "MODEL",
                      .help = "folder as published (config.json, *.safetensors, tokenizer.json), or a GGUF file"},
    [FR_ARG_DRAFTER] = {.names = "-md --model-draft --spec-draft-model", .value = "DRAFTER",
                        .verbs = G | C | L | I | V | B, .parts = MODEL,
                        .help = "the model's MTP assistant: a folder or a GGUF file"},
    [FR_ARG_MMPROJ] = {.names = "--mmproj -mm", .value = "FILE", .verbs = G | C | L | I,
                       .help = "a GGUF model's vision tower, in the file that llama.cpp's converter makes of it"},

    [FR_ARG_PROMPT] = {.names = "-p --prompt", .value = "TEXT", .verbs = G | L | T, .help = "the prompt"},
    [FR_ARG_FILE] = {.names = "-f --file", .value = "FILE", .verbs = G | L | T | P | R,
                     .help = "the prompt, text or trace is this file, its bytes as they are; - for standard input"},
    [FR_ARG_IDS] = {.names = "--ids", .value = "LIST", .kind = IDS, .verbs = G | L | T,
                    .help = "the prompt is these token ids, as they are: 2,415,443"},
    [FR_ARG_CHAT] = {.names = "--chat", .verbs = G,
                     .help = "the prompt is a user turn: apply the model's chat template"},
    [FR_ARG_SYSTEM] = {.names = "-sys --system --system-prompt", .value = "TEXT", .verbs = G | C,
                       .help = "the system turn of a chat"},
    [FR_ARG_DECODE] = {.names = "--decode", .verbs = T, .help = "from ids to text"},
    [FR_ARG_NO_BOS] = {.names = "--no-bos", .verbs = T, .help = "leave out what the post-processor adds"},
    [FR_ARG_PIECES] = {.names = "--pieces --show-pieces", .verbs = T,
                       .help = "a line for each id: it, and its bytes as they are in the text, in quotes",
                       .more = "Quotes, backslashes, control characters and bytes that are no UTF-8 are escaped"},
    [FR_ARG_PREDICT] = {.names = "-n --predict --n-predict", .value = "N", .kind = NUMBER, .verbs = G | C, .low = -1,
                        .high = INT32_MAX,
                        .help = "new tokens at most (default -1: until end of sequence, or the context is full)",
                        .more = "0: the prompt is run, which fills a --prompt-cache, and nothing is generated"},
    [FR_ARG_STOP] = {.names = "--stop", .value = "TEXT", .verbs = G | C, .again = true,
                     .help = "end before this text; may be given 16 times"},
    [FR_ARG_IGNORE_EOS] = {.names = "--ignore-eos", .verbs = G | C, .help = "go on past an end of sequence"},
    [FR_ARG_OUTPUT] = {.names = "--output", .value = "FORM", .kind = WORD, .verbs = G, .words = "text ids json",
                       .help = "text (default), ids or json"},
    [FR_ARG_COLOR] = {.names = "--color -co", .verbs = G | C, .help = "accepted drafts in green (text output)"},
    [FR_ARG_STATS] = {.names = "--stats", .verbs = G | C, .help = "statistics on standard error",
                      .more = "Tokens a target call, acceptance, by depth too, speed, the time of each phase, memory"},
    [FR_ARG_TRACE] = {.names = "--trace", .value = "FILE", .verbs = G | C,
                      .help = "what every round drafted, accepted and took, in lines of JSON (forerun report)"},
    [FR_ARG_PROMPT_CACHE] = {.names = "--prompt-cache", .value = "FILE", .verbs = G | C,
                             .help = "begin with the session that FILE holds, if it is there; save the session to it",
                             .more = "What the prompt shares with it is not run again; chat goes on with the "
                                     "conversation that a chat left there; another's file is refused"},

    [FR_ARG_OUT_FILE] = {.names = "-o --output-file", .value = "FILE", .verbs = L | Q | S | K | R,
                         .help = "where to; - for standard output"},
    [FR_ARG_ROWS] = {.names = "--rows", .value = "WHICH", .kind = WORD, .verbs = L, .words = "all last",
                     .help = "all (default), or last: the last row alone"},
    [FR_ARG_DRAFT_STEPS] = {.names = "--draft-steps", .value = "K", .kind = NUMBER, .verbs = L, .low = 1, .high = 15,
                            .help = "the drafter's logits instead, [K, vocab], at K chained steps"},
    [FR_ARG_BASE] = {.names = "--kl-divergence-base --save-all-logits", .value = "FILE", .verbs = P,
                     .help = "write this model's predictions to FILE; with --kl-divergence compare with those in FILE"},
    [FR_ARG_KL] = {.names = "--kl-divergence", .verbs = P,
                   .help = "compare with a base: its chunks and ids, so -f is only checked"},
    [FR_ARG_CHUNKS] = {.names = "--chunks", .value = "N", .kind = NUMBER, .verbs = P, .low = 1, .high = INT32_MAX,
                       .help = "chunks at most (default: all that the text has)"},
    [FR_ARG_STRIDE] = {.names = "--ppl-stride --stride", .value = "N", .kind = NUMBER, .verbs = P, .low = 1,
                       .high = INT32_MAX, .help = "chunks begin N ids apart, and each scores its last N",
                       .more = "llama-perplexity's chunks are then half of N longer than -c, up to a multiple of 256"},
    [FR_ARG_SHAPE] = {.names = "--shape", .value = "SHAPE", .kind = WORD, .verbs = S,
                      .words = "gemma4-e2b gemma4-e4b gemma4-26b-a4b gemma4-31b gemma4-1b gemma4-e2b-assistant "
                               "gemma4-e4b-assistant gemma4-26b-a4b-assistant gemma4-31b-assistant "
                               "gemma4-1b-assistant gemma4-e2b-assistant-plain gemma4-e4b-assistant-plain glm-ocr "
                               "llama3.2-1b llama3.1-8b",
                      .help = "one of those above"},
    [FR_ARG_TYPE] = {.names = "--type", .value = "TYPE", .kind = WORD, .verbs = Q | S,
                     .words = "q4_0 q4_1 q5_0 q5_1 q8_0 q4_k q5_k q6_k iq4_nl f16 bf16 f32",
                     .help = "what matrices become: q4_0 q4_1 q5_0 q5_1 q8_0 q4_k q5_k q6_k iq4_nl f16 bf16 f32"},
    [FR_ARG_TENSOR_TYPE] = {.names = "--tensor-type", .value = "PATTERN=TYPE", .verbs = Q, .again = true,
                            .help = "for tensors whose name the regular expression matches; the first match decides",
                            .more = "May be given 64 times; a pattern that decides nothing is refused"},
    [FR_ARG_PURE] = {.names = "--pure", .verbs = Q,
                     .help = "every matrix in TYPE, tables too (default: llama-quantize's mixture)"},
    [FR_ARG_VOCAB] = {.names = "--vocab", .value = "N", .kind = NUMBER, .verbs = S, .low = 262, .high = 1 << 24,
                      .help = "ids (default: the shape's own); the same for a model and its assistant"},
    [FR_ARG_LAYERS] = {.names = "--layers", .value = "N", .kind = NUMBER, .verbs = S, .low = 2, .high = 1024,
                       .help = "the first N layers alone, the last of them of full attention (default: all)"},
    [FR_ARG_TENSORS] = {.names = "--tensors", .verbs = I, .help = "list every tensor"},
    [FR_ARG_INSPECT_FORM] = {.names = "-o --output", .value = "FORM", .kind = WORD, .verbs = I, .words = "text json",
                             .help = "text (default), or json: one object"},

    [FR_ARG_TEMP] = {.names = "--temp --temperature", .value = "T", .kind = REAL, .verbs = G | C, .low = 0, .high = 100,
                     .help = "0 (default): greedy; above 0 draws tokens, the hotter the more evenly"},
    [FR_ARG_TOP_K] = {.names = "--top-k", .value = "N", .kind = NUMBER, .verbs = G | C, .low = 0, .high = INT32_MAX,
                      .help = "draw from the N best tokens (default 0: all)"},
    [FR_ARG_TOP_P] = {.names = "--top-p", .value = "P", .kind = REAL, .verbs = G | C, .low = 0, .high = 1,
                      .help = "draw from the best tokens that have this much together (default 1: all)"},
    [FR_ARG_MIN_P] = {.names = "--min-p", .value = "P", .kind = REAL, .verbs = G | C, .low = 0, .high = 1,
                      .help = "draw from tokens that have this much of the best one's chance (default 0: all)"},
    [FR_ARG_REPEAT_PENALTY] = {.names = "--repeat-penalty", .value = "X", .kind = REAL, .verbs = G | C, .low = 0,
                               .high = 100, .help = "make tokens that occurred less likely (default 1: no)"},
    [FR_ARG_REPEAT_LAST_N] = {.names = "--repeat-last-n", .value = "N", .kind = NUMBER, .verbs = G | C, .low = -1,
                              .high = INT32_MAX,
                              .help = "in the last N tokens, for all penalties (default 64; -1: all)"},
    [FR_ARG_PRESENCE_PENALTY] = {.names = "--presence-penalty", .value = "X", .kind = REAL, .verbs = G | C,
                                 .low = -1000, .high = 1000,
                                 .help = "take X off the logits of tokens that occurred (default 0)"},
    [FR_ARG_FREQUENCY_PENALTY] = {.names = "--frequency-penalty", .value = "X", .kind = REAL, .verbs = G | C,
                                  .low = -1000, .high = 1000, .help = "the same for each occurrence (default 0)"},
    [FR_ARG_LOGIT_BIAS] = {.names = "-l --logit-bias", .value = "LIST", .verbs = G | C, .again = true,
                           .help = "add to tokens' logits: 15+1.5,20-1; 30-inf bans id 30; may be given again"},
    [FR_ARG_SEED] = {.names = "-s --seed", .value = "N", .kind = NUMBER, .verbs = G | C, .low = -1, .high = INT64_MAX,
                     .help = "of the random numbers (default 0; -1: one that is drawn and told); greedy draws none"},
    [FR_ARG_LOGPROBS] = {.names = "--logprobs", .value = "N", .kind = NUMBER, .verbs = G, .low = 0, .high = 100,
                         .help = "with --output json: log-probabilities of each token and of the N best"},
    [FR_ARG_SPEC_TYPE] = {.names = "--spec-type", .value = "WORDS", .kind = LIST, .verbs = G | C | L | V,
                          .words = "none mtp ngram draft-mtp "
                                   "ngram-simple ngram-cache ngram-map-k ngram-map-k4v ngram-mod",
                          .unbuilt = "eagle eagle3 draft-eagle3",
                          .help = "none mtp ngram, or ngram,mtp: the first that proposes (default mtp with a drafter)",
                          .more = "mtp: the drafter, or the model's own MTP layer; ngram: text that ends alike"},
    [FR_ARG_DRAFT_MAX] = {.names = "--spec-draft-n-max --draft-max --draft --draft-n", .value = "K", .kind = NUMBER,
                          .verbs = G | C | V, .low = 0, .high = 15, .special = "auto",
                          .help = "drafts a step, 0 (none) to 15, or auto (default): as many as pay, 0 too"},
    [FR_ARG_PRESET] = {.names = "--preset", .value = "WORD", .kind = WORD, .verbs = G | C,
                       .words = "throughput balanced quality",
                       .help = "blocks of 2, 3 or 4 tokens: 1, 2 or 3 drafts; --draft-max goes before it"},
    [FR_ARG_ACCEPT] = {.names = "--accept", .value = "RULE", .kind = WORD, .verbs = G | C, .words = "gumbel rejection",
                        .help = "gumbel (default): a draft stands where the target draws it too; rejection: by chance",
                        .more = "Rejection gives a text of the model's distribution that depends on the drafter"},

    [FR_ARG_CONTEXT] = {.names = "-c --ctx-size", .value = "N", .kind = NUMBER, .verbs = RUN | I, .low = 0,
                        .high = INT32_MAX,
                        .help = "context in tokens (default 4096, more for a longer prompt; 0: all the model has)",
                        .more = "inspect: what a session of that context takes; at most what the model was made for"},
    [FR_ARG_THREADS] = {.names = "-t --threads", .value = "N", .kind = NUMBER, .verbs = RUN | I | Q, .low = 1,
                        .high = 1024,
                        .help = "threads (default: the cores that this process may use)"},
    [FR_ARG_NO_PIN] = {.names = "--no-pin", .verbs = RUN | Q | B, .help = "leave threads unpinned"},
    [FR_ARG_NUMA] = {.names = "--numa", .verbs = RUN | I | Q | B, .value = "WORD", .kind = WORD, .words = "auto off",
                     .help = "auto (default): spread threads and weights over NUMA nodes; off"},
    [FR_ARG_ISA] = {.names = "--isa", .value = "WORD", .kind = ISA, .verbs = RUN | I,
                    .help = "instruction set at most (default: the best here); the answer is the same",
                    .more = "The words: scalar avx2 avxvnni avx512 avx512vnni amx neon dotprod i8mm"},
    [FR_ARG_CHUNK] = {.names = "--chunk -ub --ubatch-size", .verbs = RUN | B, .parts = MODEL, .value = "N",
                      .kind = NUMBER, .low = 1, .high = 4096,
                      .help = "prompt rows a forward (default 64)"},
    [FR_ARG_KV_K] = {.names = "-ctk --cache-type-k", .verbs = RUN | I | B, .parts = MODEL, .value = "TYPE", KV_TYPES,
                     .help = "type of cached keys: f32 f16 bf16 q8_0 q4_0 (default f16, or f32 for float weights)",
                     .more = "q8_0 and q4_0 need heads that are multiples of 32 wide"},
    [FR_ARG_KV_V] = {.names = "-ctv --cache-type-v", .verbs = RUN | I | B, .parts = MODEL, .value = "TYPE", KV_TYPES,
                     .help = "type of cached values"},
    [FR_ARG_CTX_CHECKPOINTS] = {.names = "--ctx-checkpoints --swa-checkpoints -ctxcp", .value = "N", .kind = NUMBER,
                                .verbs = G | C, .low = 0, .high = 1024,
                                .help = "snapshots of sliding layers' caches, to go back to (default 8 at most)",
                                .more = "A changed prompt or a shorter conversation then runs few tokens again"},
    [FR_ARG_SWA_FULL] = {.names = "--swa-full", .verbs = G | C,
                         .help = "sliding layers cache every position: more memory, nothing is ever run again"},
    [FR_ARG_NO_MMAP] = {.names = "--no-mmap", .verbs = RUN | I | K | B, .parts = MODEL,
                        .help = "read weights into memory instead of mapping the file"},
    [FR_ARG_MLOCK] = {.names = "--mlock", .verbs = RUN | B, .parts = MODEL,
                      .help = "lock weights in memory"},
    [FR_ARG_QUIET] = {.names = "--quiet", .verbs = ALL, .help = "no progress and no notes on standard error"},
    [FR_ARG_VERBOSE] = {.names = "-v --verbose", .verbs = RUN | B, .parts = MODEL,
                        .help = "say what runs: files, instruction set, threads, context"},
    [FR_ARG_VERSION] = {.names = "--version", .verbs = ALL, .help = "print the version"},
    [FR_ARG_HELP] = {.names = "-h --help", .verbs = ALL, .help = "print this"},

    [FR_ARG_IMAGE] = {.names = "--image", .value = "FILE", .verbs = G | C | L, .again = true,
                      .help = "PNG or JPEG for models that see: before the prompt, or a chat's first turn; repeatable"},

    [FR_ARG_BENCH_PART] = {.names = "--part", .value = "PART", .kind = WORD, .verbs = B,
                           .words = "machine kernels model", .help = "machine, kernels or model; the word alone does"},
    [FR_ARG_BENCH_FORM] = {.names = "-o --output", .value = "FORM", .kind = WORD, .verbs = B,
                           .words = "md csv json jsonl", .help = "md (default), csv, json or jsonl"},
    [FR_ARG_BENCH_FILTER] = {.names = "--filter", .value = "RE", .verbs = B, .parts = KERNELS,
                             .help = "kernels: those whose name the regular expression matches",
                             .more = "A kernel whose bits differ is not timed, and the exit status is 1"},
    [FR_ARG_BENCH_ISA] = {.names = "--isa", .value = "LIST", .kind = ISAS, .verbs = B,
                          .help = "instruction sets (default: the best here; for kernels all that run here)"},
    [FR_ARG_BENCH_ROWS] = {.names = "--rows", .value = "LIST", .kind = NUMBERS, .verbs = B, .parts = KERNELS | MODEL,
                           .low = 0, .high = 4096,
                           .help = "rows of activations: 1,2,4,8,64,512; for model 1..8,16 by default, 0: none"},
    [FR_ARG_BENCH_WEIGHTS] = {.names = "--weights", .value = "MIB", .kind = NUMBER, .verbs = B, .parts = KERNELS,
                              .low = 1, .high = 1 << 20,
                              .help = "kernels: weights to walk through (default: 4 times the caches)"},
    [FR_ARG_BENCH_THREADS] = {.names = "-t --threads", .value = "LIST", .kind = NUMBERS, .verbs = B, .low = 1,
                              .high = 1024, .help = "threads (default: the cores that this process may use)"},
    [FR_ARG_BENCH_PROMPT] = {.names = "-p --n-prompt", .value = "LIST", .kind = NUMBERS, .verbs = B, .parts = MODEL,
                             .low = 0, .high = 1 << 20, .help = "model: lengths of prompts (default 512; 0: none)"},
    [FR_ARG_BENCH_GENERATE] = {.names = "-n --n-gen", .value = "LIST", .kind = NUMBERS, .verbs = B, .parts = MODEL,
                               .low = 0, .high = 1 << 20, .help = "model: tokens to generate (default 128; 0: none)"},
    [FR_ARG_BENCH_DEPTH] = {.names = "-d --n-depth", .value = "LIST", .kind = NUMBERS, .verbs = B, .parts = MODEL,
                            .low = 0, .high = 1 << 20,
                            .help = "model: tokens in the context before (default 0,4096,16384)"},
    [FR_ARG_BENCH_DRAFTS] = {.names = "--spec-draft-n-max --draft-max --draft --draft-n", .value = "LIST",
                             .kind = NUMBERS, .verbs = B, .parts = MODEL, .low = 1, .high = 15, .special = "auto",
                             .help = "model: drafts a step, 1..3,auto (default auto; for made-up rates 1..4,auto)"},
    [FR_ARG_BENCH_SPEC_TYPE] = {.names = "--spec-type", .value = "WORDS", .kind = LIST, .verbs = B, .parts = MODEL,
                                .words = "none mtp ngram draft-mtp", .unbuilt = "eagle eagle3 draft-eagle3",
                                .help = "model: who drafts (default mtp with a drafter)"},
    [FR_ARG_BENCH_PROMPTS] = {.names = "--prompts", .value = "FOLDER", .verbs = B, .parts = MODEL,
                              .help = "model: speculate on its CLASS*.txt files (default: texts of its own)"},
    [FR_ARG_BENCH_SYNTH_RATES] = {.names = "--spec-synth-rates", .value = "LIST", .verbs = B, .parts = MODEL,
                                  .help = "model: drafts accepted at these rates, by depth: 0.8,0.6,0.5"},
    [FR_ARG_BENCH_REPETITIONS] = {.names = "-r --repetitions", .value = "N", .kind = NUMBER, .verbs = B, .low = 1,
                                  .high = 1000,
                                  .help = "timings whose middle and spread are told (default 5; machine: 15)",
                                  .more = "One timing has no spread, so its figure is not told"},
    [FR_ARG_BENCH_SPREAD] = {.names = "--max-spread", .value = "PERCENT", .kind = REAL, .verbs = B, .low = 0,
                             .high = 1000000, .help = "tell no number that spread more than this (default 20)"},
    [FR_ARG_BENCH_PLOT] = {.names = "--plot", .value = "FILE", .verbs = B, .parts = KERNELS | MODEL,
                           .help = "kernels, model: also draw a picture of it, SVG"},
};

static bool takes(const fr_verb *verb, const fr_row *row) {
    return (row->verbs & verb->bit) != 0;
}

/* ------------------------------------------------------------------------------------------------------------ words */

/* Walks a list of words between separators: gives the next one and its length, or NULL at the end. */
static const char *next_word(const char **list, char separator, size_t *length) {
    const char *word = *list;
    if (!word) return NULL;
    const char *end = strchr(word, separator);
    *length = end ? (size_t)(end - word) : strlen(word);
    *list = end ? end + 1 : NULL;
    return word;
}

static bool has_word(const char *list, const char *wanted, size_t wanted_length) {
    size_t length;
    for (const char *word; (word = next_word(&list, ' ', &length));) {
        if (length == wanted_length && memcmp(word, wanted, length) == 0) return true;
    }
    return false;
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* The distance of strings of optimal alignment: insertions, deletions, replacements, and neighbours that have changed
 * places. Three rows of the table at a time. */
size_t fr_word_distance(const char *a, const char *b) {
    enum { LONGEST = 64 };
    size_t rows[3][LONGEST + 1], n = strlen(a), m = strlen(b);
    if (n > LONGEST || m > LONGEST) return SIZE_MAX;
    for (size_t j = 0; j <= m; j++) rows[0][j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t *row = rows[i % 3], *above = rows[(i - 1) % 3], *second = rows[(i + 1) % 3];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            row[j] = least(least(above[j], row[j - 1]) + 1, above[j - 1] + (a[i - 1] != b[j - 1]));
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (swapped) row[j] = least(row[j], second[j - 2] + 1);
        }
    }
    return rows[n % 3][m];
}

bool fr_word_near(const char *word, size_t distance) {
    return distance <= strlen(word + strspn(word, "-")) / 3;
}

/* ----------------------------------------------------------------------------------------------------------- lookup */

/* The row with this name, FR_ARG_COUNT if there is none; what the verb takes goes before another's option. */
static fr_arg find_row(const fr_verb *verb, const char *name, size_t length) {
    int found = FR_ARG_COUNT;
    for (int arg = 0; arg < FR_ARG_COUNT; arg++) {
        if (!has_word(table[arg].names, name, length)) continue;
        found = arg;
        if (takes(verb, &table[arg])) break;
    }
    return (fr_arg)found;
}

static int unknown_option(const fr_verb *verb, const char *name) {
    char nearest[32] = "";
    size_t distance = SIZE_MAX;
    for (int arg = 0; arg < FR_ARG_COUNT; arg++) {
        const char *names = table[arg].names;
        size_t length;
        for (const char *word; takes(verb, &table[arg]) && (word = next_word(&names, ' ', &length));) {
            char candidate[sizeof(nearest)];
            snprintf(candidate, sizeof(candidate), "%.*s", (int)length, word);
            size_t d = fr_word_distance(name, candidate);
            if (d >= distance) continue;
            distance = d;
            memcpy(nearest, candidate, sizeof(nearest));
        }
    }
    if (fr_word_near(name, distance)) return fr_wrong_usage("unknown option %s; did you mean %s?", name, nearest);
    return fr_wrong_usage("unknown option %s (forerun %s --help lists them)", name, verb->name);
}

/* ----------------------------------------------------------------------------------------------------------- values */

static bool whole_number(const char *text, int64_t *value) {
    const char *digits = text + (*text == '-');
    if (!*digits || strspn(digits, "0123456789") != strlen(digits)) return false;
    errno = 0;
    *value = strtoll(text, NULL, 10);
    return errno == 0;
}

static int take_number(fr_arguments *args, fr_arg arg, const char *name, const char *text) {
    const fr_row *row = &table[arg];
    if (row->special && strcmp(text, row->special) == 0) {
        args->number[arg] = -1;
        return 0;
    }
    if (!whole_number(text, &args->number[arg])) return fr_wrong_usage("%s %s: not a whole number", name, text);
    if (args->number[arg] >= row->low && args->number[arg] <= row->high) return 0;
    return fr_wrong_usage("%s %s is out of range: %lld to %lld", name, text, (long long)row->low, (long long)row->high);
}

static int take_real(fr_arguments *args, fr_arg arg, const char *name, const char *text) {
    const fr_row *row = &table[arg];
    char *end;
    double value = strtod(text, &end);
    if (isspace((unsigned char)*text) || end == text || *end) return fr_wrong_usage("%s %s: not a number", name, text);
    args->real[arg] = value;
    if (value >= (double)row->low && value <= (double)row->high) return 0;
    return fr_wrong_usage("%s %s is out of range: %lld to %lld", name, text, (long long)row->low, (long long)row->high);
}

/* One word of a WORD or LIST option. */
static int take_word(fr_arg arg, const char *name, const char *word, size_t length) {
    const fr_row *row = &table[arg];
    if (has_word(row->words, word, length)) return 0;
    int shown = (int)least(length, 40);
    if (has_word(row->unbuilt, word, length)) return fr_wrong_usage("%s %.*s is not built yet", name, shown, word);
    return fr_wrong_usage("%s %.*s is unknown; known: %s%s%s", name, shown, word, row->words,
                          row->unbuilt ? "; not built yet: " : "", row->unbuilt ? row->unbuilt : "");
}

static int take_list(fr_arg arg, const char *name, const char *text) {
    size_t length;
    for (const char *word; (word = next_word(&text, ',', &length));) {
        int code = take_word(arg, name, word, length);
        if (code) return code;
    }
    return 0;
}

static int take_isa(const char *name, const char *text, size_t length) {
    char known[256] = "";
    const char *word;
    for (size_t i = 0; (word = fr_lab_isa_word(i)); i++) {
        if (strlen(word) == length && memcmp(word, text, length) == 0) return 0;
        snprintf(known + strlen(known), sizeof(known) - strlen(known), " %s", word);
    }
    return fr_wrong_usage("%s %.*s is unknown; known:%s", name, (int)least(length, 40), text, known);
}

static int take_isas(const char *name, const char *text) {
    size_t length;
    for (const char *word; (word = next_word(&text, ',', &length));) {
        int code = take_isa(name, word, length);
        if (code) return code;
    }
    return 0;
}

/* "8", or "1..8": the first and the last of a stretch. */
static bool take_stretch(const fr_row *row, const char *item, size_t length, int64_t *first, int64_t *last) {
    char text[64];
    snprintf(text, sizeof(text), "%.*s", (int)least(length, sizeof(text) - 1), item);
    char *dots = strstr(text, "..");
    if (dots) *dots = 0;
    return whole_number(text, first) && whole_number(dots ? dots + 2 : text, last) && *first <= *last &&
           *first >= row->low && *last <= row->high;
}

static bool is_special(const fr_row *row, const char *item, size_t length) {
    return row->special && strlen(row->special) == length && memcmp(row->special, item, length) == 0;
}

static int take_numbers(fr_arg arg, const char *name, const char *text) {
    const fr_row *row = &table[arg];
    int64_t first, last;
    size_t length;
    for (const char *item; (item = next_word(&text, ',', &length));) {
        if (is_special(row, item, length)) continue;
        if (!take_stretch(row, item, length, &first, &last))
            return fr_wrong_usage("%s %.*s: numbers such as 1..8,16 from %lld to %lld%s%s", name,
                                  (int)least(length, 40), item, (long long)row->low, (long long)row->high,
                                  row->special ? ", or " : "", row->special ? row->special : "");
    }
    return 0;
}

size_t fr_arguments_numbers(const fr_arguments *args, fr_arg arg, int64_t *numbers, size_t most) {
    const char *list = args->given[arg] ? args->text[arg] : NULL;
    int64_t first, last;
    size_t length, count = 0;
    for (const char *item; (item = next_word(&list, ',', &length));) {
        first = last = -1;
        if (!is_special(&table[arg], item, length)) take_stretch(&table[arg], item, length, &first, &last);
        for (; first <= last && count < most; first++) numbers[count++] = first;
    }
    return count;
}

/* A number that no vocabulary can have is bad input, as an id beyond this model's would be; anything else that is not
 * digits between commas is wrong usage. */
static int take_ids(fr_arguments *args, const char *name, const char *text) {
    const char *list = text;
    size_t length, capacity = strlen(text) / 2 + 1;
    free(args->ids);
    args->ids = fr_resize(NULL, capacity, sizeof(*args->ids));
    args->id_count = 0;
    for (const char *item; (item = next_word(&list, ',', &length));) {
        size_t sign = length > 1 && *item == '-';
        if (length == 0 || strspn(item + sign, "0123456789") != length - sign) {
            return fr_wrong_usage("%s %.40s: not a list of ids such as 1,2,3", name, text);
        }
        errno = 0;
        long long id = strtoll(item, NULL, 10);
        if (errno || id < 0 || id > INT32_MAX) {
            return fr_bad_input("%s: id %.*s is outside every vocabulary", name, (int)least(length, 40), item);
        }
        args->ids[args->id_count++] = (int32_t)id;
    }
    return 0;
}

static int take_text(fr_arguments *args, fr_arg arg, const char *name, const char *text) {
    if (arg == FR_ARG_TENSOR_TYPE) {
        if (args->tensor_type_count == FR_TENSOR_TYPES_MAX)
            return fr_wrong_usage("%s can be given %d times", name, FR_TENSOR_TYPES_MAX);
        args->tensor_types[args->tensor_type_count++] = text;
    }
    if (arg == FR_ARG_IMAGE) {
        if (args->image_count == FR_IMAGES_MAX) return fr_wrong_usage("%s can be given %d times", name, FR_IMAGES_MAX);
        args->images[args->image_count++] = text;
    }
    if (arg == FR_ARG_LOGIT_BIAS) {
        if (args->bias_count == FR_BIASES_MAX) return fr_wrong_usage("%s can be given %d times", name, FR_BIASES_MAX);
        args->biases[args->bias_count++] = text;
    }
    if (arg != FR_ARG_STOP) return 0;
    if (!*text) return fr_wrong_usage("%s needs a text that is not empty", name);
    if (args->stop_count == FR_STOPS_MAX) return fr_wrong_usage("%s can be given %d times", name, FR_STOPS_MAX);
    args->stops[args->stop_count++] = text;
    return 0;
}

static int take_value(fr_arguments *args, fr_arg arg, const char *name, const char *text) {
    const fr_row *row = &table[arg];
    args->text[arg] = text;
    if (row->kind != LIST && has_word(row->unbuilt, text, strlen(text))) {
        return fr_wrong_usage("%s %s is not built yet", name, text);
    }
    switch (row->kind) {
    case NUMBER: return take_number(args, arg, name, text);
    case REAL: return take_real(args, arg, name, text);
    case WORD: return take_word(arg, name, text, strlen(text));
    case LIST: return take_list(arg, name, text);
    case ISA: return take_isa(name, text, strlen(text));
    case ISAS: return take_isas(name, text);
    case NUMBERS: return take_numbers(arg, name, text);
    case IDS: return take_ids(args, name, text);
    case TEXT: break;
    }
    return take_text(args, arg, name, text);
}

/* What a word without an option in front is for. Verbs that write a model take the file's name, report the trace's,
 * bench its part. FR_ARG_COUNT: nothing. */
static fr_arg bare_word_of(const fr_arguments *args) {
    unsigned verb = args->verb->bit;
    if (verb == B) return FR_ARG_BENCH_PART;
    if (verb == R) return FR_ARG_FILE;
    return verb & (Q | S | K) ? FR_ARG_OUT_FILE : FR_ARG_COUNT;
}

/* One option at words[*at], as "--name value", "--name=value" or a flag. */
static int take_option(fr_arguments *args, int count, char **words, int *at) {
    const char *word = words[(*at)++];
    const char *equals = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : NULL;
    char name[64];
    snprintf(name, sizeof(name), "%.*s", (int)(equals ? equals - word : (ptrdiff_t)strlen(word)), word);

    fr_arg arg = bare_word_of(args);
    if ((*word != '-' || !word[1]) && arg != FR_ARG_COUNT && !args->given[arg]) {
        args->given[arg] = true;
        return take_value(args, arg, table[arg].names, word);
    }
    if (*word != '-') return fr_wrong_usage("%s: what is this word for? (forerun %s --help)", word, args->verb->name);
    arg = find_row(args->verb, name, strlen(name));
    if (arg == FR_ARG_COUNT) return unknown_option(args->verb, name);
    const fr_row *row = &table[arg];
    if (!takes(args->verb, row)) return fr_wrong_usage("%s takes no %s", args->verb->name, name);
    if (!row->value) {
        args->given[arg] = true;
        return equals ? fr_wrong_usage("%s takes no value", name) : 0;
    }
    if (!equals && *at == count) return fr_wrong_usage("%s needs a value: %s", name, row->value);
    bool once = (row->kind == TEXT || row->kind == IDS) && !row->again;
    if (once && args->given[arg]) return fr_wrong_usage("%s is given twice", name);
    args->given[arg] = true;
    return take_value(args, arg, name, equals ? equals + 1 : words[(*at)++]);
}

/* ------------------------------------------------------------------------------------------------------------ rules */

/* Where a verb takes a prompt, it takes one. */
static int check_prompt(const fr_arguments *args) {
    if (!takes(args->verb, &table[FR_ARG_PROMPT])) return 0;
    int sources = args->given[FR_ARG_PROMPT] + args->given[FR_ARG_FILE] + args->given[FR_ARG_IDS];
    if (sources == 0) return fr_wrong_usage("%s needs a prompt: -p TEXT, -f FILE or --ids LIST", args->verb->name);
    if (sources > 1) return fr_wrong_usage("-p, -f and --ids exclude each other");
    return 0;
}

/* A part of the bench takes its own options alone. */
static int check_part(const fr_arguments *args) {
    static const char *const words[] = {"machine", "kernels", "model"};
    size_t part = 0;
    if (!args->given[FR_ARG_BENCH_PART]) return 0;
    while (strcmp(args->text[FR_ARG_BENCH_PART], words[part]) != 0) part++;
    for (int arg = 0; arg < FR_ARG_COUNT; arg++) {
        if (!args->given[arg] || !table[arg].parts || table[arg].parts & 1u << part) continue;
        const char *names = table[arg].names;
        return fr_wrong_usage("bench %s takes no %.*s", words[part], (int)strcspn(names, " "), names);
    }
    return 0;
}

/* What ties options together. */
static int check_rules(fr_arguments *args) {
    if (!args->given[FR_ARG_MODEL] && args->verb->bit & ~(unsigned)(S | R | B)) {
        return fr_wrong_usage("%s needs -m MODEL", args->verb->name);
    }
    if (!args->given[FR_ARG_PREDICT]) args->number[FR_ARG_PREDICT] = -1;
    if (args->verb->bit == C && args->number[FR_ARG_PREDICT] == 0) {
        return fr_wrong_usage("chat's -n takes 1 or more, or -1 for no limit");
    }
    const char *output = args->text[FR_ARG_OUTPUT];
    if (args->given[FR_ARG_LOGPROBS] && !(output && strcmp(output, "json") == 0)) {
        return fr_wrong_usage("--logprobs goes with --output json");
    }
    if (args->given[FR_ARG_COLOR] && output && strcmp(output, "text") != 0) {
        return fr_wrong_usage("--color goes with --output text");
    }
    if (args->image_count && args->given[FR_ARG_PROMPT_CACHE]) {
        return fr_wrong_usage("--prompt-cache with --image: a session with pictures can't be saved yet");
    }
    const char *words = args->text[FR_ARG_SPEC_TYPE];
    /* Every word that is built is none, or mtp under one of its names. */
    bool none = args->given[FR_ARG_DRAFT_MAX] && args->number[FR_ARG_DRAFT_MAX] == 0;
    bool drafts = args->verb->bit & (G | C | V) || args->given[FR_ARG_DRAFT_STEPS];
    args->uses_drafter = drafts && !none && (!words || strstr(words, "mtp"));
    int code = check_prompt(args);
    return code ? code : check_part(args);
}

int fr_arguments_parse(fr_arguments *args, const fr_verb *verb, int count, char **words) {
    *args = (fr_arguments){.verb = verb};
    for (int at = 0; at < count;) {
        int code = take_option(args, count, words, &at);
        if (code || args->given[FR_ARG_HELP] || args->given[FR_ARG_VERSION]) return code;
    }
    return check_rules(args);
}

void fr_arguments_free(fr_arguments *args) {
    free(args->ids);
    args->ids = NULL;
}

/* ------------------------------------------------------------------------------------------------------------- help */

static void print_row(const fr_row *row, FILE *out) {
    enum { COLUMN = 36 };
    int width = fprintf(out, "  ");
    const char *names = row->names;
    size_t length;
    for (const char *name; (name = next_word(&names, ' ', &length));) {
        width += fprintf(out, "%.*s%s", (int)length, name, names ? ", " : "");
    }
    if (row->value) width += fprintf(out, " %s", row->value);
    if (width >= COLUMN) width = fprintf(out, "\n") - 1;
    fprintf(out, "%*s%s\n", COLUMN - width, "", row->help);
}

static void print_options(const fr_verb *verb, FILE *out) {
    fprintf(out, "\noptions:\n");
    for (int arg = 0; arg < FR_ARG_COUNT; arg++) {
        if (takes(verb, &table[arg])) print_row(&table[arg], out);
    }
}

fr_option_help fr_arguments_help(fr_arg arg) {
    const fr_row *row = &table[arg];
    return (fr_option_help){row->names, row->value, row->help, row->more, row->verbs};
}

void fr_help_print(const fr_verb *verb, FILE *out) {
    fprintf(out, "usage: forerun %s\n\n%s: %s\n", verb->usage, verb->name, verb->does);
    if (!verb->bit) {
        fprintf(out, "not built yet\n");
    } else {
        if (verb->notes) fprintf(out, "%s", verb->notes);
        print_options(verb, out);
    }
    fprintf(out, "\nexamples:\n%s", verb->examples);
}
