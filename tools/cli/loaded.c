/* Opens the model, drafter and session that a command line names, and makes the ids of its prompt (loaded.h). */
#include "tools/cli/loaded.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/cache_folder.h"
#include "tools/cli/chat_settings.h"
#include "tools/cli/conversation.h"
#include "tools/cli/escapes.h"
#include "tools/cli/option_table.h"
#include "tools/cli/output.h"
#include "tools/cli/prompt_pictures.h"
#include "tools/cli/words.h"

#define DEFAULT_CONTEXT 4096

/* ---------------------------------------------------------------------------------------------------------- options */

/* Gives the number of drafts of a preset. A forward has one row for each draft, and one for the last accepted token. */
static int64_t preset_drafts(const char *preset) {
    return strcmp(preset, "throughput") == 0 ? 1 : strcmp(preset, "balanced") == 0 ? 2 : 3;
}

/* Sets all values of an option that may be given several times. If the values are texts, their escapes are
 * replaced. */
static fr_status set_texts(fr_options *options, const fr_arguments *args, fr_arg arg) {
    bool breakers = arg == FR_ARG_DRY_SEQUENCE_BREAKER;
    const char *const *texts = breakers ? args->breakers : args->biases;
    size_t count = breakers ? args->breaker_count : args->bias_count;
    fr_status status = FR_OK;
    for (size_t i = 0; i < count && status == FR_OK; i++) {
        size_t length = strlen(texts[i]);
        char *text = fr_resize(NULL, length + 1, 1);
        memcpy(text, texts[i], length + 1);
        if (breakers) text[fr_escapes_read(text, length)] = '\0';
        status = fr_options_set_text(options, fr_option_table[arg].sets, text);
        free(text);
    }
    return status;
}

/* Sets an option of the library. The table's row of a command line option names the library's option. */
static fr_status set_option(fr_options *options, const fr_arguments *args, fr_arg arg) {
    const fr_option_row *row = &fr_option_table[arg];
    if (row->to != FR_SET_GIVEN) return fr_options_set(options, row->sets, row->to == FR_SET_ON);
    if (row->kind == FR_KIND_NUMBER) return fr_options_set(options, row->sets, args->number[arg]);
    if (row->kind == FR_KIND_REAL) return fr_options_set_number(options, row->sets, args->real[arg]);
    return row->again ? set_texts(options, args, arg) : fr_options_set_text(options, row->sets, args->text[arg]);
}

/* Makes the session store measured times in the user's cache folder. This is done only if the verb has the option
 * --draft-times and the option was not given. Other verbs store nothing. */
static fr_status set_draft_times(fr_options *options, const fr_arguments *args) {
    bool takes = fr_option_table[FR_ARG_DRAFT_TIMES].verbs & args->verb->bit;
    char *folder = takes && !args->given[FR_ARG_DRAFT_TIMES] ? fr_cache_folder() : NULL;
    bool fits = folder && strlen(folder) < PATH_MAX / 2; /* If the folder can't be used, no times are stored. This is no
                                                          * error, because the user did not ask for it */
    fr_status status = fits ? fr_options_set_text(options, FR_OPT_DRAFT_TIMES, folder) : FR_OK;
    free(folder);
    return status;
}

static fr_status set_options(fr_options *options, const fr_arguments *args) {
    fr_status status = set_draft_times(options, args);
    if (status == FR_OK && args->given[FR_ARG_PRESET])
        status = fr_options_set(options, FR_OPT_DRAFT_MAX, preset_drafts(args->text[FR_ARG_PRESET]));
    if (status == FR_OK && args->given[FR_ARG_NUMA])
        status = fr_options_set(options, FR_OPT_NUMA, strcmp(args->text[FR_ARG_NUMA], "auto") == 0);
    for (fr_arg arg = 0; arg < FR_ARG_COUNT && status == FR_OK; arg++)
        if (args->given[arg] && fr_option_table[arg].to != FR_SET_NOTHING) status = set_option(options, args, arg);
    return status;
}

int fr_loaded_options(fr_options **options, const fr_arguments *args) {
    *options = fr_options_new();
    if (!*options) return fr_bad_input("out of memory: options");
    /* This note is printed even with --quiet, because without the seed the text can't be generated again. */
    if (args->seed_drawn) fr_note("--seed %lld", (long long)args->number[FR_ARG_SEED]);
    return fr_exit_status(set_options(*options, args));
}

static fr_status set_value(fr_options *options, fr_option option, double value) {
    fr_option_kind kind = FR_OPTION_NUMBER;
    fr_status status = fr_option_range(option, &kind, NULL, NULL);
    if (status != FR_OK) return status;
    return kind == FR_OPTION_WHOLE ? fr_options_set(options, option, (int64_t)value)
                                   : fr_options_set_number(options, option, value);
}

int fr_loaded_sample(fr_loaded *loaded, const fr_arguments *args) {
    static const struct {
        fr_arg arg;
        double otherwise; /* the value without the option; NAN: the library's own default */
    } settings[] = {
#define FR_SAMPLER_PUBLISHED(id, gguf, json, chat) {FR_ARG_##id, chat},
#include "samplers.def"
    };
    fr_options *options = loaded->options;
    fr_status status = FR_OK;
    bool found = true;
    if (!args->given[FR_ARG_SAMPLERS]) status = fr_options_recommend(options, loaded->model, FR_OPT_SAMPLERS, &found);
    for (size_t i = 0; i < sizeof settings / sizeof *settings && status == FR_OK; i++) {
        fr_option option = fr_option_table[settings[i].arg].sets;
        if (args->given[settings[i].arg]) continue;
        status = fr_options_recommend(options, loaded->model, option, &found);
        bool usual = status == FR_OK && !found && !isnan(settings[i].otherwise);
        if (usual) status = set_value(options, option, settings[i].otherwise);
    }
    return fr_exit_status(status);
}

bool fr_loaded_draws(const fr_loaded *loaded) {
    static const fr_option each[] = {FR_OPT_TEMPERATURE, FR_OPT_DYNATEMP_RANGE, FR_OPT_XTC_PROBABILITY};
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        double value = 0;
        if (fr_options_get_number(loaded->options, each[i], &value) == FR_OK && value > 0) return true;
    }
    return false;
}

/* ------------------------------------------------------------------------------------------------ model and session */

int fr_loaded_open(fr_loaded *loaded, const fr_arguments *args) {
    *loaded = (fr_loaded){.progress = fr_progress_begin("loading", args->given[FR_ARG_QUIET])};
    int code = fr_loaded_options(&loaded->options, args);
    if (!code) code = fr_chat_tools(args, &loaded->tools);
    if (!code) code = fr_tracer_open(&loaded->trace, args->text[FR_ARG_TRACE]);
    if (code) return code;
    fr_options_set_progress(loaded->options, fr_progress_show, &loaded->progress);
    if (args->verb->bit == FR_VERB_IMATRIX) fr_lab_collect(loaded->options, args->given[FR_ARG_PROCESS_OUTPUT]);
    fr_status status = fr_model_open(args->text[FR_ARG_MODEL], loaded->options, &loaded->model);
    fr_progress_end(&loaded->progress);
    for (size_t i = 0; status == FR_OK && !args->given[FR_ARG_QUIET] && fr_model_note(loaded->model, i); i++)
        fr_note("%s", fr_model_note(loaded->model, i));
    code = fr_exit_status(status);
    if (!code) code = fr_adapters_open(&loaded->adapters, loaded->model, args);
    for (size_t i = 0; !code && i < args->image_count; i++) code = fr_loaded_add_picture(loaded, args->images[i]);
    return code;
}

int fr_loaded_add_picture(fr_loaded *loaded, const char *path) {
    if (loaded->picture_count == FR_IMAGES_MAX)
        return fr_bad_input("%s: there are %d pictures already, which is as many as there may be", path, FR_IMAGES_MAX);
    fr_status status = fr_picture_open(path, loaded->model, &loaded->pictures[loaded->picture_count]);
    loaded->picture_count += status == FR_OK;
    return fr_exit_status(status);
}

void fr_loaded_keep_pictures(fr_loaded *loaded, size_t count) {
    while (loaded->picture_count > count) fr_picture_close(loaded->pictures[--loaded->picture_count]);
}

void fr_loaded_drop_pictures(fr_loaded *loaded, size_t count) {
    for (size_t i = 0; i < count; i++) fr_picture_close(loaded->pictures[i]);
    loaded->picture_count -= count;
    memmove(loaded->pictures, loaded->pictures + count, loaded->picture_count * sizeof(*loaded->pictures));
}

static fr_status show(const fr_loaded *loaded) {
    return fr_session_show(loaded->session, (const fr_picture *const *)loaded->pictures, loaded->picture_count);
}

int fr_loaded_show(fr_loaded *loaded) {
    fr_session_reset(loaded->session);
    return fr_exit_status(show(loaded));
}

int fr_loaded_tokenizer(const fr_loaded *loaded, const fr_arguments *args, const fr_tokenizer **tokenizer) {
    *tokenizer = fr_model_tokenizer(loaded->model);
    if (*tokenizer) return 0;
    return fr_bad_input("%s has no tokenizer: only --ids and --output ids work with it", args->text[FR_ARG_MODEL]);
}

int fr_loaded_tokenizer_alone(fr_tokenizer **tokenizer, const fr_arguments *args) {
    fr_options *options = NULL;
    int code = fr_loaded_options(&options, args);
    fr_status status = code ? FR_OK : fr_tokenizer_open(args->text[FR_ARG_MODEL], options, tokenizer);
    fr_options_free(options);
    if (code) return code;
    for (size_t i = 0; status == FR_OK && !args->given[FR_ARG_QUIET] && fr_tokenizer_note(*tokenizer, i); i++)
        fr_note("%s", fr_tokenizer_note(*tokenizer, i));
    return fr_exit_status(status);
}

/* Returns true if a session with this context takes at most half of the free memory, so that other programs keep the
 * rest. The weights do not count. If --memory was given, the session must fit into its limit instead. */
static bool context_fits(const fr_loaded *loaded, const fr_arguments *args, int64_t context) {
    uint64_t bytes[FR_ESTIMATE_COUNT];
    const char *drafter = args->uses_drafter ? args->text[FR_ARG_DRAFTER] : NULL;
    bool inner = args->uses_drafter && !drafter && fr_model_fact(loaded->model, FR_FACT_MTP_LAYERS) > 0;
    fr_options *options = fr_options_copy(loaded->options);
    fr_status status = options ? fr_options_set(options, FR_OPT_CONTEXT, context) : FR_MEMORY;
    if (status == FR_OK) status = fr_model_estimate(args->text[FR_ARG_MODEL], inner ? "" : drafter, options, 1, bytes);
    fr_options_free(options);
    if (status != FR_OK) return false;
    if (args->given[FR_ARG_MEMORY]) return bytes[FR_ESTIMATE_TOTAL] <= (uint64_t)args->number[FR_ARG_MEMORY];
    /* the weights don't count, because they are in memory already */
    uint64_t taken = bytes[FR_ESTIMATE_TOTAL] - bytes[FR_ESTIMATE_RESIDENT];
    uint64_t beside = bytes[FR_ESTIMATE_AVAILABLE] - fr_least(bytes[FR_ESTIMATE_AVAILABLE], bytes[FR_ESTIMATE_MAPPED]);
    return taken <= beside / 2;
}

int64_t fr_loaded_context(const fr_loaded *loaded, const fr_arguments *args, size_t prompt, int64_t more) {
    int64_t limit = fr_model_fact(loaded->model, FR_FACT_CONTEXT_LIMIT), wanted = DEFAULT_CONTEXT;
    if (args->given[FR_ARG_CONTEXT]) {
        wanted = args->number[FR_ARG_CONTEXT] ? args->number[FR_ARG_CONTEXT] : limit;
        if (wanted > limit && !args->given[FR_ARG_QUIET]) {
            fr_note("-c %lld: this model runs at most %lld positions: the context has these", (long long)wanted,
                    (long long)limit);
        }
    } else if (args->verb->bit & (FR_VERB_PERPLEXITY | FR_VERB_IMATRIX)) {
        wanted = (int64_t)prompt; /* the prompt is a chunk, and no ids are generated after it */
    } else if (args->verb->bit == FR_VERB_CHAT) {
        if (context_fits(loaded, args, limit)) wanted = limit;
    } else if (more >= 0) {
        if (wanted < (int64_t)prompt + more) wanted = (int64_t)prompt + more;
    } else {
        while (wanted <= (int64_t)prompt) wanted *= 2;
    }
    return wanted < limit ? wanted : limit;
}

/* Counts the threads of this process. Only the difference of two counts has a meaning, because an emulator may add
 * threads of its own. */
static int count_threads(void) {
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    if (!tasks) return 0;
    for (struct dirent *entry; (entry = readdir(tasks));) count += entry->d_name[0] != '.';
    closedir(tasks);
    return count;
}

static void describe(const fr_loaded *loaded, const fr_arguments *args) {
    fr_note("model %s, %.2f GB of weights", args->text[FR_ARG_MODEL],
            (double)fr_model_fact(loaded->model, FR_FACT_WEIGHT_BYTES) / 1e9);
    if (loaded->drafter)
        fr_note("drafter %s", args->given[FR_ARG_DRAFTER] ? args->text[FR_ARG_DRAFTER] : "in the same checkpoint");
    fr_note("isa %s, threads %d, context %zu", fr_model_isa(loaded->model), loaded->threads,
            fr_session_context(loaded->session));
}

/* Refuses options that have no effect without a drafter. Call it only if there is no drafter. */
static int check_without(const fr_arguments *args) {
    static const char line[] = "%s%s needs a drafter: -md DRAFTER, or a model with an MTP layer";
    if (args->given[FR_ARG_DRAFT_STEPS]) return fr_wrong_usage(line, "--draft-steps", "");
    if (args->given[FR_ARG_SPEC_TYPE]) return fr_wrong_usage(line, "--spec-type ", args->text[FR_ARG_SPEC_TYPE]);
    const char *asks = fr_arguments_drafting(args);
    return asks ? fr_wrong_usage(line, asks, "") : 0;
}

static const struct {
    fr_arg text, file;
    fr_grammar_kind kind;
} grammars[] = {{FR_ARG_GRAMMAR, FR_ARG_GRAMMAR_FILE, FR_GRAMMAR_GBNF},
                {FR_ARG_JSON_SCHEMA, FR_ARG_JSON_SCHEMA_FILE, FR_GRAMMAR_JSON_SCHEMA},
                {FR_ARG_REGEX, FR_ARG_REGEX, FR_GRAMMAR_REGEX}};

/* Two threads may make the tree at the same time. The thread that finishes second frees its own tree and uses that of
 * the first. */
fr_status fr_loaded_tokens(fr_loaded *loaded, const fr_token_tree **tree) {
    fr_token_tree *made, *there = atomic_load(&loaded->tokens);
    *tree = there;
    if (there) return FR_OK;
    fr_status status = fr_token_tree_open(fr_model_tokenizer(loaded->model), &made);
    if (status != FR_OK) return status;
    bool first = atomic_compare_exchange_strong(&loaded->tokens, &there, made);
    if (!first) fr_token_tree_close(made);
    *tree = first ? made : there;
    return FR_OK;
}

/* Makes the grammar from its text. In a chat's reply only the content must follow the grammar. Reasoning and calls are
 * allowed too. */
static fr_status make_grammar(fr_loaded *loaded, const fr_arguments *args, const fr_token_tree *tree,
                              fr_grammar_kind kind, const char *text, size_t length) {
    if (!loaded->answers) return fr_grammar_open(tree, kind, text, length, &loaded->grammar);
    json_t *settings = fr_chat_settings(args, loaded->tools, loaded->picture_count > 0);
    char *options = fr_json_line(settings);
    const fr_reply_rule rule = {.prompt = loaded->answers,
                                .options_json = options,
                                .calls = json_array_size(loaded->tools) ? FR_REPLY_CALLS_MAY : FR_REPLY_CALLS_NONE,
                                .several = true,
                                .kind = kind,
                                .text = text,
                                .length = length};
    fr_status status = fr_grammar_open_reply(tree, &rule, &loaded->grammar);
    free(options);
    json_decref(settings);
    return status;
}

/* Opens the grammar that the options give, if there is one. */
static int open_grammar(fr_loaded *loaded, const fr_arguments *args) {
    const fr_tokenizer *tokenizer;
    const fr_token_tree *tree;
    for (size_t i = 0; i < sizeof(grammars) / sizeof(*grammars); i++) {
        const char *text = args->text[grammars[i].text];
        bool given = args->given[grammars[i].text], file = !given && args->given[grammars[i].file];
        if (!given && !file) continue;
        fr_prompt read = {0};
        int code = fr_loaded_tokenizer(loaded, args, &tokenizer);
        if (!code && file) code = fr_prompt_read_file(&read, args->text[grammars[i].file]);
        fr_status status = code ? FR_OK : fr_loaded_tokens(loaded, &tree);
        if (!code && status == FR_OK)
            status = make_grammar(loaded, args, tree, grammars[i].kind, file ? read.bytes : text,
                                  file ? read.length : strlen(text));
        fr_prompt_free(&read);
        return code ? code : fr_exit_status(status);
    }
    return 0;
}

/* Checks the drafter of a run without drafts. The same command line may be used with and without drafts to compare the
 * two runs, so an invalid drafter is an error in both. */
static int check_unused(fr_loaded *loaded, const fr_arguments *args) {
    fr_drafter *drafter;
    fr_status status = fr_drafter_open(args->text[FR_ARG_DRAFTER], loaded->model, loaded->options, &drafter);
    fr_progress_end(&loaded->progress);
    fr_drafter_close(drafter);
    return fr_exit_status(status);
}

int fr_loaded_open_drafter(fr_loaded *loaded, const fr_arguments *args) {
    if (!args->uses_drafter) return args->given[FR_ARG_DRAFTER] ? check_unused(loaded, args) : 0;
    if (!args->given[FR_ARG_DRAFTER] && fr_model_fact(loaded->model, FR_FACT_MTP_LAYERS) == 0)
        return check_without(args);
    fr_status status = fr_drafter_open(args->text[FR_ARG_DRAFTER], loaded->model, loaded->options, &loaded->drafter);
    fr_progress_end(&loaded->progress);
    for (size_t i = 0; status == FR_OK && !args->given[FR_ARG_QUIET] && fr_drafter_note(loaded->drafter, i); i++)
        fr_note("%s", fr_drafter_note(loaded->drafter, i));
    return fr_exit_status(status);
}

void fr_loaded_note_unused(const fr_loaded *loaded, const fr_arguments *args) {
    static const fr_arg limits[] = {FR_ARG_IMAGE_MAX_PIXELS, FR_ARG_IMAGE_MIN_PIXELS, FR_ARG_IMAGE_MAX_TOKENS,
                                    FR_ARG_IMAGE_MIN_TOKENS};
    if (args->given[FR_ARG_QUIET]) return;
    bool sees = fr_model_fact(loaded->model, FR_FACT_IMAGE_TOKEN) >= 0;
    for (size_t i = 0; !sees && i < sizeof limits / sizeof *limits; i++)
        if (args->given[limits[i]]) fr_note("%s: this model sees no pictures", fr_option_table[limits[i]].names);
    if (args->given[FR_ARG_SWA_FULL] && fr_model_fact(loaded->model, FR_FACT_WINDOW) == 0)
        fr_note("--swa-full: no layer of this model slides");
}

static void note_chance(const fr_loaded *loaded, const fr_arguments *args) {
    const char *accept = args->text[FR_ARG_ACCEPT];
    bool rejects = accept && strcmp(accept, "rejection") == 0 && fr_loaded_draws(loaded);
    if (rejects && fr_session_adapts(loaded->session) && !args->given[FR_ARG_QUIET])
        fr_note("--accept rejection with --draft-max auto: no two runs need give the same text (set --draft-max K)");
}

static bool lacks_context(fr_status status) {
    return status == FR_INPUT && fr_last_error_option() == FR_OPT_CONTEXT;
}

/* Restores only the conversation of a saved session, because its text is longer than the context. To read the
 * conversation, the whole session is restored in larger and larger contexts until one is large enough. */
static fr_status restore_attached(const fr_loaded *loaded, const char *path, int64_t context) {
    int64_t limit = fr_model_fact(loaded->model, FR_FACT_CONTEXT_LIMIT), larger = context;
    fr_status status = FR_INPUT;
    size_t size = 0;
    while (lacks_context(status) && larger < limit) {
        fr_session *whole = NULL;
        larger = larger < limit / 2 ? 2 * larger : limit;
        status = fr_options_set(loaded->options, FR_OPT_CONTEXT, larger);
        if (status == FR_OK) status = fr_session_open(loaded->model, loaded->drafter, loaded->options, &whole);
        if (status == FR_OK) status = fr_adapters_use(&loaded->adapters, NULL, whole);
        if (status == FR_OK) status = fr_session_restore(whole, path);
        const void *attached = status == FR_OK ? fr_session_attached(whole, &size) : NULL;
        if (size) status = fr_session_attach(loaded->session, attached, size);
        fr_session_close(whole);
    }
    if (status == FR_OK) status = fr_options_set(loaded->options, FR_OPT_CONTEXT, context);
    return status == FR_OK && size == 0 ? fr_session_restore(loaded->session, path) : status;
}

/* Restores the session of --prompt-cache. If its conversation is longer than the context and --context-shift may drop
 * turns, only the conversation is restored. The oldest turns are dropped later, and the remaining turns are run
 * again. */
static fr_status restore(const fr_loaded *loaded, const fr_arguments *args, int64_t context) {
    const char *path = args->text[FR_ARG_PROMPT_CACHE];
    fr_status status = fr_session_restore(loaded->session, path);
    bool shifts = lacks_context(status) && args->given[FR_ARG_CONTEXT_SHIFT];
    return shifts ? restore_attached(loaded, path, context) : status;
}

/* Returns true if the file holds a saved session. An empty file holds none. mktemp makes such files. If a run is killed
 * before it saves its session, it leaves such a file too. */
static bool is_saved(const char *path) {
    struct stat file;
    return stat(path, &file) == 0 && !(S_ISREG(file.st_mode) && file.st_size == 0);
}

int fr_loaded_start(fr_loaded *loaded, const fr_arguments *args, size_t prompt, int64_t more) {
    int64_t context = fr_loaded_context(loaded, args, prompt, more);
    if ((int64_t)prompt > context) {
        return fr_bad_input("the prompt has %zu tokens and the context holds %lld (the model's own limit is %lld)",
                            prompt, (long long)context, (long long)fr_model_fact(loaded->model, FR_FACT_CONTEXT_LIMIT));
    }
    fr_loaded_note_unused(loaded, args);
    fr_status status = fr_options_set(loaded->options, FR_OPT_CONTEXT, context);
    if (status == FR_OK) {
        int code = open_grammar(loaded, args);
        if (!code) code = fr_loaded_open_drafter(loaded, args);
        if (code) return code;
        int before = count_threads();
        status = fr_session_open(loaded->model, loaded->drafter, loaded->options, &loaded->session);
        loaded->threads = 1 + count_threads() - before; /* the calling thread computes too */
    }
    if (status == FR_OK) status = fr_adapters_use(&loaded->adapters, NULL, loaded->session);
    if (status == FR_OK && loaded->grammar) status = fr_session_set_grammar(loaded->session, loaded->grammar);
    if (status == FR_OK && loaded->picture_count) status = show(loaded);
    if (status == FR_OK) note_chance(loaded, args);
    if (status == FR_OK) fr_tracer_follow(&loaded->trace, loaded->session, fr_model_tokenizer(loaded->model));
    if (status == FR_OK && args->given[FR_ARG_VERBOSE]) describe(loaded, args);
    if (status == FR_OK && args->given[FR_ARG_PROMPT_CACHE] && is_saved(args->text[FR_ARG_PROMPT_CACHE]))
        status = restore(loaded, args, context);
    return fr_exit_status(status);
}

int fr_loaded_save(const fr_loaded *loaded, const fr_arguments *args) {
    if (!args->given[FR_ARG_PROMPT_CACHE]) return 0;
    return fr_exit_status(fr_session_save(loaded->session, args->text[FR_ARG_PROMPT_CACHE]));
}

void fr_loaded_close(fr_loaded *loaded) {
    fr_tracer_abandon(&loaded->trace);
    fr_session_close(loaded->session);
    fr_grammar_close(loaded->grammar);
    fr_token_tree_close(loaded->tokens);
    fr_drafter_close(loaded->drafter);
    fr_adapters_close(&loaded->adapters);
    fr_loaded_keep_pictures(loaded, 0);
    json_decref(loaded->tools);
    fr_model_close(loaded->model);
    fr_options_free(loaded->options);
    *loaded = (fr_loaded){0};
}

/* ----------------------------------------------------------------------------------------------------------- prompt */

int fr_prompt_read(fr_prompt *prompt, const fr_arguments *args) {
    *prompt = (fr_prompt){.ids = args->ids, .count = args->id_count};
    if (args->given[FR_ARG_IDS]) return 0;
    int code = args->given[FR_ARG_FILE] ? fr_prompt_read_file(prompt, args->text[FR_ARG_FILE]) : 0;
    if (!code && args->piped && prompt->length == 0) return fr_arguments_lack_prompt(args);
    if (!code && args->given[FR_ARG_PROMPT]) {
        size_t length = strlen(args->text[FR_ARG_PROMPT]);
        prompt->bytes = fr_resize(prompt->bytes, prompt->length + length, 1);
        memcpy(prompt->bytes + prompt->length, args->text[FR_ARG_PROMPT], length);
        prompt->length += length;
    }
    if (args->given[FR_ARG_ESCAPE]) prompt->length = fr_escapes_read(prompt->bytes, prompt->length);
    return code;
}

void fr_loaded_note_chat(const fr_loaded *loaded, const fr_arguments *args) {
    const char *note = fr_chat_note(fr_model_tokenizer(loaded->model), loaded->picture_count > 0);
    if (note && !args->given[FR_ARG_QUIET]) fr_note("%s", note);
}

int fr_prompt_converse(fr_prompt *prompt, const fr_loaded *loaded, const fr_arguments *args, const json_t *messages) {
    const fr_tokenizer *tokenizer;
    int code = fr_loaded_tokenizer(loaded, args, &tokenizer);
    if (code) return code;
    json_t *settings = fr_chat_settings(args, loaded->tools, loaded->picture_count > 0);
    if (fr_conversation_answered(messages)) fr_json_put(settings, "add_generation_prompt", json_false());
    code = fr_exit_status(fr_conversation_render(messages, tokenizer, settings, &prompt->rendered));
    if (!code) fr_conversation_note_changes(tokenizer, args->given[FR_ARG_QUIET]);
    json_decref(settings);
    return code;
}

int fr_prompt_render(fr_prompt *prompt, const fr_loaded *loaded, const fr_arguments *args) {
    size_t pictures = loaded->picture_count;
    bool placed = pictures && fr_has_picture_place(loaded->model, prompt->bytes, prompt->length);
    bool chat = prompt->bytes && (args->given[FR_ARG_CHAT] || (pictures && !placed));
    if (placed) fr_mark_picture_places(loaded->model, FR_PICTURE_PLACE, !chat, &prompt->bytes, &prompt->length);
    if (!chat) return 0;
    json_t *messages = fr_conversation_new(args->text[FR_ARG_SYSTEM]);
    if (placed && !args->given[FR_ARG_PARSE_SPECIAL])
        fr_conversation_add_placed(messages, prompt->bytes, prompt->length, fr_model_image_mark(loaded->model));
    else
        fr_conversation_add(messages, "user", prompt->bytes, prompt->length, placed ? 0 : pictures);
    fr_loaded_note_chat(loaded, args);
    int code = fr_prompt_converse(prompt, loaded, args, messages);
    json_decref(messages);
    return code;
}

fr_status fr_prompt_ids(fr_prompt *prompt, const fr_model *model, fr_picture *const *pictures, size_t picture_count,
                        bool parse_special) {
    const fr_marked_text *text = &prompt->rendered;
    bool raw = !text->text || parse_special;
    const char *bytes = text->text ? text->text : prompt->bytes;
    size_t length = text->text ? text->length : prompt->length;
    fr_status status =
        raw ? fr_tokenize_raw_pictures(model, pictures, picture_count, bytes, length, !text->text, &prompt->tokens,
                                       &prompt->count)
            : fr_tokenize_pictures(model, pictures, picture_count, text, &prompt->tokens, &prompt->count);
    prompt->ids = prompt->tokens;
    return status;
}

const char *fr_prompt_doubled(const fr_tokenizer *tokenizer, const int32_t *ids, size_t count) {
    int32_t *added;
    size_t adds;
    if (count < 2 || ids[0] != ids[1] || fr_tokenize(tokenizer, "", 0, true, false, &added, &adds) != FR_OK)
        return NULL;
    bool doubled = adds && added[0] == ids[0];
    fr_free(added);
    return doubled ? fr_token_text(tokenizer, ids[0], NULL) : NULL;
}

int fr_prompt_tokenize(fr_prompt *prompt, const fr_loaded *loaded, const fr_arguments *args) {
    if (prompt->bytes || prompt->rendered.text) {
        const fr_tokenizer *tokenizer;
        int code = fr_loaded_tokenizer(loaded, args, &tokenizer);
        if (!code)
            code = fr_exit_status(fr_prompt_ids(prompt, loaded->model, loaded->pictures, loaded->picture_count,
                                                args->given[FR_ARG_PARSE_SPECIAL]));
        if (code) return code;
        const char *doubled = prompt->rendered.text ? NULL : fr_prompt_doubled(tokenizer, prompt->ids, prompt->count);
        if (doubled && !args->given[FR_ARG_QUIET]) fr_note(FR_DOUBLED_NOTE, doubled);
    }
    return prompt->count ? 0 : fr_bad_input("the prompt is empty: it has no token");
}

int fr_prompt_front(const fr_loaded *loaded, const fr_arguments *args, int32_t *front) {
    const fr_tokenizer *tokenizer;
    int32_t *ids;
    size_t count;
    *front = -1;
    int code = fr_loaded_tokenizer(loaded, args, &tokenizer);
    if (!code) code = fr_exit_status(fr_tokenize(tokenizer, "", 0, true, true, &ids, &count));
    if (code) return code;
    if (count) *front = ids[0];
    fr_free(ids);
    return 0;
}
