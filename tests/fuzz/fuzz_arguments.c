/* libFuzzer's target for the command line. Each line of the input is an argument. The first is the verb, and options
 * follow.
 *
 * In: lines of text. Out: a crash if a sanitizer finds an error. */
/* suite: links=command */
#include "tests/fuzz/harness.h"
#include "tools/cli/options.h"
#include "tools/cli/words.h"

#define WORDS_MAX 256

static const fr_verb verbs[] = {
    {.name = "generate", .bit = FR_VERB_GENERATE},     {.name = "chat", .bit = FR_VERB_CHAT},
    {.name = "logits", .bit = FR_VERB_LOGITS},         {.name = "tokenize", .bit = FR_VERB_TOKENIZE},
    {.name = "inspect", .bit = FR_VERB_INSPECT},       {.name = "verify", .bit = FR_VERB_VERIFY},
    {.name = "perplexity", .bit = FR_VERB_PERPLEXITY}, {.name = "quantize", .bit = FR_VERB_QUANTIZE},
    {.name = "synth", .bit = FR_VERB_SYNTH},           {.name = "pack", .bit = FR_VERB_PACK},
    {.name = "report", .bit = FR_VERB_REPORT},         {.name = "bench", .bit = FR_VERB_BENCH},
    {.name = "imatrix", .bit = FR_VERB_IMATRIX},
};

/* Splits a text into lines, but into at most `most`. Returns the number of lines. */
static size_t cut(char *text, char **lines, size_t most) {
    size_t count = 0;
    for (char *line; count < most && (line = strsep(&text, "\n"));) lines[count++] = line;
    return count;
}

/* Returns the verb with this name. If there is none, returns the verb with the most similar name. */
static const fr_verb *find_verb(const char *name) {
    const fr_verb *nearest = verbs;
    for (size_t i = 1; i < sizeof verbs / sizeof *verbs; i++)
        if (fr_word_distance(name, verbs[i].name) < fr_word_distance(name, nearest->name)) nearest = &verbs[i];
    return nearest;
}

static void read_lists(const fr_arguments *args) {
    static const fr_arg lists[] = {FR_ARG_BENCH_ROWS,     FR_ARG_BENCH_THREADS, FR_ARG_BENCH_PROMPT,
                                   FR_ARG_BENCH_GENERATE, FR_ARG_BENCH_DEPTH,   FR_ARG_BENCH_DRAFTS};
    int64_t numbers[64];
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) fr_arguments_numbers(args, lists[i], numbers, 64);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    char *words[WORDS_MAX], *text = malloc(size + 1);
    fr_arguments args;
    if (!text) die("no memory for", "a command line");
    if (size) memcpy(text, bytes, size);
    text[size] = '\0';
    size_t count = cut(text, words, WORDS_MAX);
    fuzz_hush(true);
    if (fr_arguments_parse(&args, find_verb(words[0]), (int)count - 1, words + 1) == 0) {
        fuzz_inputs_read++;
        read_lists(&args);
    }
    fuzz_hush(false);
    fr_arguments_free(&args);
    free(text);
    return 0;
}
