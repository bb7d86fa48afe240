/* The main function of the forerun command: finds the verb, reads its options and runs it. */
#include <stdio.h>
#include <string.h>

#include "forerun.h"
#include "tools/cli/big_stack.h"
#include "tools/cli/completion.h"
#include "tools/cli/embed.h"
#include "tools/cli/foreign_options.h"
#include "tools/cli/lost_file.h"
#include "tools/cli/manual.h"
#include "tools/cli/named.h"
#include "tools/cli/output.h"
#include "tools/cli/output_check.h"
#include "tools/cli/ranks.h"
#include "tools/cli/verbs.h"
#include "tools/cli/words.h"

static int print_completion(const fr_arguments *args);

/* Embeds a help text. The text's bytes are writable, because read_help splits them in place. */
#define HELP(symbol, name) FR_EMBED(".data", char, fr_help_##symbol, "tools/cli/help/" name ".txt")

/* The help texts of all verbs and of the overview, as bytes. */
HELP(generate, "generate");
HELP(chat, "chat");
HELP(logits, "logits");
HELP(perplexity, "perplexity");
HELP(imatrix, "imatrix");
HELP(tokenize, "tokenize");
HELP(template, "template");
HELP(inspect, "inspect");
HELP(verify, "verify");
HELP(quantize, "quantize");
HELP(pack, "pack");
HELP(trim_head, "trim-head");
HELP(synth, "synth");
HELP(bench, "bench");
HELP(report, "report");
HELP(batch, "batch");
HELP(features, "features");
HELP(completion, "completion");
HELP(serve, "serve");
HELP(models, "models");
HELP(embed, "embed");
HELP(rerank, "rerank");
HELP(about, "about");

/* The verbs, in the order of the overview. */
static fr_verb verbs[] = {
    {"generate", FR_VERB_GENERATE, fr_help_generate, .run = fr_verb_generate},
    {"chat", FR_VERB_CHAT, fr_help_chat, .run = fr_verb_chat},
    {"logits", FR_VERB_LOGITS, fr_help_logits, .run = fr_verb_logits},
    {"perplexity", FR_VERB_PERPLEXITY, fr_help_perplexity, .run = fr_verb_perplexity},
    {"imatrix", FR_VERB_IMATRIX, fr_help_imatrix, .run = fr_verb_imatrix},
    {"tokenize", FR_VERB_TOKENIZE, fr_help_tokenize, .run = fr_verb_tokenize},
    {"template", FR_VERB_TEMPLATE, fr_help_template, .run = fr_verb_template},
    {"inspect", FR_VERB_INSPECT, fr_help_inspect, .run = fr_verb_inspect},
    {"verify", FR_VERB_VERIFY, fr_help_verify, .run = fr_verb_verify},
    {"quantize", FR_VERB_QUANTIZE, fr_help_quantize, .run = fr_verb_quantize},
    {"pack", FR_VERB_PACK, fr_help_pack, .run = fr_verb_pack},
    {"trim-head", FR_VERB_TRIM_HEAD, fr_help_trim_head, .run = fr_verb_trim_head},
    {"synth", FR_VERB_SYNTH, fr_help_synth, .run = fr_verb_synth},
    {"bench", FR_VERB_BENCH, fr_help_bench, .run = fr_verb_bench},
    {"report", FR_VERB_REPORT, fr_help_report, .run = fr_verb_report},
    {"batch", FR_VERB_BATCH, fr_help_batch, .run = fr_verb_batch},
    {"features", FR_VERB_FEATURES, fr_help_features, .run = fr_verb_features},
    {"completion", FR_VERB_COMPLETION, fr_help_completion, .run = print_completion},
    {"embed", FR_VERB_EMBED, fr_help_embed, .run = fr_verb_embed},
    {"rerank", FR_VERB_RERANK, fr_help_rerank, .run = fr_verb_rerank},
    {"serve", FR_VERB_SERVE, fr_help_serve, .run = fr_verb_serve},
    {"models", FR_VERB_MODELS, fr_help_models, .run = fr_verb_models},
};

enum { VERBS = sizeof(verbs) / sizeof(*verbs) };

/* Splits the help text of a verb into its parts. The text has the form in which it is printed, but without the
 * options:
 *
 *     usage: forerun VERB ...
 *
 *     VERB: the line that says what the verb does
 *     notes, on any number of lines
 *
 *     examples:
 *       forerun VERB ... */
static void read_help(fr_verb *verb) {
    char *at = verb->help + strlen("usage: forerun ");
    verb->usage = at;
    at = strchr(at, '\n');
    *at = '\0';
    at += strlen("\n\n") + strlen(verb->name) + strlen(": ");
    verb->does = at;
    at = strchr(at, '\n');
    *at++ = '\0';
    verb->notes = at;
    at = strstr(at, "\nexamples:\n");
    *at = '\0';
    verb->examples = at + strlen("\nexamples:\n");
}

static int print_completion(const fr_arguments *args) {
    if (!args->given[FR_ARG_SHELL]) return fr_wrong_usage("completion needs a shell: bash, zsh or fish");
    fr_completion_print(verbs, VERBS, args->text[FR_ARG_SHELL], stdout);
    return 0;
}

static void print_overview(FILE *out) {
    fprintf(out,
            "forerun %s: large language models on the CPU, with speculative decoding\n"
            "that gives the same text\n\n"
            "usage: forerun VERB [options]\n\n%s\n",
            fr_version(), fr_help_about);
    for (int i = 0; i < VERBS; i++) {
        fprintf(out, "  %-12s%s\n", verbs[i].name, verbs[i].does);
    }
    fprintf(out, "\nforerun help VERB, or VERB --help, has the options and examples; forerun\n"
                 "--version the version. Exit status: 0 done; 1 the input or model is unusable;\n"
                 "2 wrong usage, or not built yet; 130 ended by Ctrl-C.\n"
                 "\nexamples:\n"
                 "  forerun chat -m gemma-4-E2B-it -md gemma-4-E2B-it-assistant\n"
                 "  forerun generate -m gemma-4-E2B-it -p \"Once upon a time\" -n 100\n");
}

static const fr_verb *find_verb(const char *name) {
    for (int i = 0; i < VERBS; i++) {
        if (strcmp(verbs[i].name, name) == 0) return &verbs[i];
    }
    return NULL;
}

/* If a word is the verb of another program, gives a hint. The hint names forerun's own verb for the same task. */
static const char *find_hint(const char *name) {
    static const struct {
        const char *words, *hint;
    } others[] = {{"run", "forerun chat MODEL talks with a model, forerun generate MODEL -p TEXT writes a text"},
                  {"pull fetch download push create cp rm",
                   "forerun fetches and keeps nothing: forerun models lists what other programs have, and -m NAME says "
                   "how to get it"},
                  {"list ls", "forerun models lists the models that there are"},
                  {"ps stop", "forerun serve has GET /v1/models and /slots; Ctrl-C ends it"},
                  {"show info", "forerun inspect MODEL says what a model is"},
                  {"cli complete completions", "forerun generate writes a text, forerun chat talks"},
                  {"server start", "forerun serve answers over HTTP"},
                  {"embedding embeddings", "forerun embed MODEL -p TEXT writes a row of numbers"},
                  {"reranking", "forerun rerank MODEL -p QUERY -f FILE scores documents"},
                  {"convert", "forerun quantize MODEL --type f16 -o FILE writes a GGUF file"},
                  {"detokenize", "forerun tokenize --decode --ids LIST prints the text of ids"}};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (fr_has_word(others[i].words, name, strlen(name))) return others[i].hint;
    return NULL;
}

static int unknown_verb(const char *name) {
    const char *hint = find_hint(strncmp(name, "llama-", 6) == 0 ? name + 6 : name);
    if (hint) return fr_wrong_usage("%s is no verb here: %s", name, hint);
    const fr_verb *nearest = NULL;
    size_t distance = SIZE_MAX;
    for (int i = 0; i < VERBS; i++) {
        /* llama.cpp has a program for each task, and most of their names end like a verb of ours. */
        if (strncmp(name, "llama-", 6) == 0 && strcmp(name + 6, verbs[i].name) == 0)
            return fr_wrong_usage("%s is no verb here: forerun %s --help", name, verbs[i].name);
        size_t d = fr_word_distance(name, verbs[i].name);
        if (d < distance) {
            distance = d;
            nearest = &verbs[i];
        }
    }
    if (nearest && fr_word_near(name, distance)) {
        return fr_wrong_usage("unknown verb %s; did you mean %s?", name, nearest->name);
    }
    if (*name == '-')
        return fr_wrong_usage("unknown verb %s; a verb comes first: forerun generate -m FILE -p TEXT", name);
    return fr_wrong_usage("unknown verb %s (forerun --help lists them)", name);
}

static bool is_one_of(const char *word, const char *a, const char *b) {
    return strcmp(word, a) == 0 || strcmp(word, b) == 0;
}

static void print_version(void) {
    printf("forerun %s\n", fr_version());
}

/* Runs forerun help [VERB], or --help [VERB]. Two more forms are for building forerun, and the help does not list
 * them: `make install` uses --man, and docs/options.md is made with --llama.cpp. */
static int run_help(int count, char **words) {
    if (count > 1) return fr_wrong_usage("%s: what is this word for? (forerun help VERB)", words[1]);
    if (count && strcmp(words[0], "--man") == 0) {
        fr_manual_print(verbs, VERBS, fr_help_about, stdout);
        return 0;
    }
    if (count && strcmp(words[0], "--llama.cpp") == 0) {
        fr_foreign_print(stdout);
        return 0;
    }
    const fr_verb *verb = count ? find_verb(words[0]) : NULL;
    if (count && !verb) return unknown_verb(words[0]);
    if (verb)
        fr_help_print(verb, stdout);
    else
        print_overview(stdout);
    return 0;
}

static int run_verb(const fr_verb *verb, int count, char **words) {
    fr_arguments args;
    int code = fr_arguments_parse(&args, verb, count, words);
    if (!code) {
        if (args.given[FR_ARG_HELP])
            fr_help_print(verb, stdout);
        else if (args.given[FR_ARG_VERSION])
            print_version();
        else if (!(code = fr_named_resolve(&args)) && !(code = fr_output_check_overwrites(&args)) &&
                 !(code = fr_ranks_check_arguments(verb, &args)))
            code = verb->run(&args);
    }
    fr_arguments_free(&args);
    return code;
}

static int dispatch(int count, char **words) {
    if (count == 0) {
        print_overview(stderr);
        return 2;
    }
    const fr_verb *verb = find_verb(words[0]);
    if (verb) return run_verb(verb, count - 1, words + 1);
    if (strcmp(words[0], "help") == 0 || is_one_of(words[0], "--help", "-h")) return run_help(count - 1, words + 1);
    if (!is_one_of(words[0], "--version", "version")) return unknown_verb(words[0]);
    if (count > 1) return fr_wrong_usage("%s: what is this word for? (forerun --version)", words[1]);
    print_version();
    return 0;
}

int main(int argc, char **argv) {
    fr_output_begin();
    for (int i = 0; i < VERBS; i++) read_help(&verbs[i]);
    fr_arguments_know(verbs, VERBS);
    fr_lost_file_watch();
    int code = fr_ranks_enter();
    if (!code) code = fr_run_on_big_stack(dispatch, argc - 1, argv + (argc > 0));
    if (!code) fr_flush_output();
    return fr_ranks_leave_with(code);
}
