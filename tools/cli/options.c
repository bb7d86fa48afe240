/* Parses the command line by the table of options, and checks the rules that connect options (options.h). */
#include "tools/cli/adapters.h"
#include "tools/cli/options.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "tools/cli/escapes.h"
#include "tools/cli/foreign_options.h"
#include "tools/cli/option_notes.h"
#include "tools/cli/option_sources.h"
#include "tools/cli/option_table.h"
#include "tools/cli/output.h"
#include "tools/cli/prompt_file.h"
#include "tools/cli/wide_json.h"
#include "tools/cli/words.h"

bool fr_verb_takes(const fr_verb *verb, const fr_option_row *row) {
    return (row->verbs & verb->bit) != 0;
}

/* ----------------------------------------------------------------------------------------------------------- lookup */

/* Finds the row with this name. If several rows have the name, a row that the verb takes is preferred. FR_ARG_COUNT: no
 * row has the name. */
static fr_arg find_row(const fr_verb *verb, const char *name, size_t length) {
    int found = FR_ARG_COUNT;
    for (int arg = 0; arg < FR_ARG_COUNT; arg++) {
        if (!fr_has_word(fr_option_table[arg].names, name, length)) continue;
        found = arg;
        if (fr_verb_takes(verb, &fr_option_table[arg])) break;
    }
    return (fr_arg)found;
}

static int unknown_option(const fr_verb *verb, const char *name) {
    char nearest[32] = "";
    size_t distance = SIZE_MAX;
    for (int arg = 0; arg < FR_ARG_COUNT; arg++) {
        const char *names = fr_verb_takes(verb, &fr_option_table[arg]) ? fr_option_table[arg].names : NULL;
        size_t length;
        for (const char *word; (word = fr_next_word(&names, ' ', &length));) {
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

/* Gives the option to which a word without an option's name belongs. For verbs that write a model the word is the
 * output file. For report it is the trace, for bench the part, and for completion the shell. For all other verbs it is
 * the model. */
static fr_arg bare_word_of(const fr_arguments *args) {
    unsigned verb = args->verb->bit;
    if (verb == FR_VERB_BENCH) return FR_ARG_BENCH_PART;
    if (verb == FR_VERB_REPORT) return FR_ARG_FILE;
    if (verb == FR_VERB_COMPLETION) return FR_ARG_SHELL;
    return verb & (FR_VERB_QUANTIZE | FR_VERB_SYNTH | FR_VERB_PACK) ? FR_ARG_OUT_FILE : FR_ARG_MODEL;
}

/* Returns true if a text is a list of the words on, off, auto, 0 and 1, which are the values of switches in
 * llama.cpp. */
static bool is_switch(const char *list) {
    size_t length;
    for (const char *word; (word = fr_next_word(&list, ',', &length));)
        if (!fr_has_word("on off auto 0 1", word, length)) return false;
    return true;
}

/* Reads a flag. If the flag is a switch in llama.cpp, one of its words may follow. "off" clears the flag, and "auto"
 * sets the flag if standard output is a terminal. */
static int take_flag(fr_arguments *args, fr_arg arg, const char *name, const char *equals, int count, char **words,
                     int *at) {
    const char *value = equals ? equals + 1 : *at < count ? words[*at] : "";
    bool follows = fr_option_table[arg].switches && fr_has_word("on off auto", value, strlen(value));
    if (equals && !follows) return fr_wrong_usage("%s takes no value", name);
    *at += !equals && follows;
    args->given[arg] = !follows || strcmp(value, "on") == 0 || (strcmp(value, "auto") == 0 && isatty(STDOUT_FILENO));
    return 0;
}

/* Handles an option of llama.cpp that forerun does not have under that name: accepts it with a note, or refuses it. */
static int take_foreign(fr_arguments *args, const fr_foreign_option *row, const char *name, const char *word, int count,
                        char **words, int *at) {
    const char *equals = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : NULL;
    const char *value = equals ? equals + 1 : *at < count ? words[*at] : NULL;
    if (!(row->taken & args->verb->bit)) {
        if (row->taken || !row->says) return fr_wrong_usage("%s takes no %s", args->verb->name, name);
        return fr_wrong_usage("%s is llama.cpp's; forerun: %s", name, row->says);
    }
    bool follows = row->kind == FR_FOREIGN_VALUE || (row->kind == FR_FOREIGN_SWITCH && value && is_switch(value));
    if (row->kind == FR_FOREIGN_VALUE && !value) return fr_wrong_usage("%s needs a value", name);
    if (equals && row->kind == FR_FOREIGN_FLAG) return fr_wrong_usage("%s takes no value", name);
    if (equals && !follows) return fr_wrong_usage("%s %s is unknown; known: on off auto 0 1", name, value);
    *at += !equals && follows;
    if (args->harmless_count < FR_HARMLESS_MAX) args->harmless[args->harmless_count++] = word;
    return 0;
}

static const fr_verb *known;
static size_t known_count;

void fr_arguments_know(const fr_verb *verbs, size_t count) {
    known = verbs;
    known_count = count;
}

/* Refuses an option that this verb does not have, and names the verbs that have it. */
static int refuse_option(const fr_verb *verb, const fr_option_row *row, const char *name) {
    char takers[256] = "";
    size_t length = 0, count = 0;
    for (size_t i = 0; i < known_count && length < sizeof takers; i++) {
        if (!(row->verbs & known[i].bit)) continue;
        length += (size_t)snprintf(takers + length, sizeof takers - length, count ? ", %s" : "%s", known[i].name);
        count++;
    }
    return fr_wrong_usage("%s takes no %s; %s do%s", verb->name, name, takers, count > 1 ? "" : "es");
}

/* Reads a word that is neither an option's name nor its value. */
static int take_bare(fr_arguments *args, const char *word) {
    fr_arg arg = bare_word_of(args);
    /* quantize's words are assigned later by place_bare, which needs all of them */
    bool places = args->verb->bit == FR_VERB_QUANTIZE;
    if (places && args->bare_count < FR_BARE_MAX) {
        args->bare[args->bare_count++] = word;
        return 0;
    }
    if (args->given[arg] || places)
        return fr_wrong_usage("%s: what is this word for? (forerun %s --help)", word, args->verb->name);
    args->given[arg] = true;
    args->bare_model = arg == FR_ARG_MODEL;
    return fr_option_take(args, arg, fr_option_table[arg].names, word);
}

/* Assigns the words of quantize that follow no option's name. Their order is that of llama-quantize: MODEL FILE TYPE
 * THREADS. If MODEL, FILE or TYPE was given as an option, that place is skipped, and the words are assigned to the
 * other places. */
static int place_bare(fr_arguments *args) {
    static const fr_arg order[FR_BARE_MAX] = {FR_ARG_MODEL, FR_ARG_OUT_FILE, FR_ARG_TYPE, FR_ARG_THREADS};
    size_t next = 0;
    bool none = !args->given[FR_ARG_MODEL] && !args->given[FR_ARG_OUT_FILE] && !args->given[FR_ARG_TYPE];
    if (args->bare_count == 2 && none)
        return fr_wrong_usage("quantize needs the file to write: quantize %s FILE %s", args->bare[0], args->bare[1]);
    for (size_t i = 0; i < args->bare_count; i++, next++) {
        while (next < FR_BARE_MAX && args->given[order[next]]) next++;
        /* THREADS may be given only after the other three */
        bool threads = next < FR_BARE_MAX && order[next] == FR_ARG_THREADS;
        if (next == FR_BARE_MAX || (threads && args->bare_count < FR_BARE_MAX))
            return fr_wrong_usage("%s: what is this word for? (forerun quantize --help)", args->bare[i]);
        args->given[order[next]] = true;
        size_t length = strcspn(fr_option_table[order[next]].names, " ");
        char name[16];
        snprintf(name, sizeof name, "%.*s", (int)length, fr_option_table[order[next]].names);
        int code = fr_option_take(args, order[next], name, args->bare[i]);
        if (code) return code;
    }
    return 0;
}

/* Reads the two layers of --control-vector-layer-range. They are given as one value with a comma, or as two words. */
static int take_range(fr_arguments *args, const char *name, const char *value, int count, char **words, int *at) {
    char *end;
    args->text[FR_ARG_VECTOR_RANGE] = value;
    for (size_t i = 0; i < 2; i++) {
        bool number = value && *value >= '0' && *value <= '9' && strlen(value) < 16;
        args->vector_range[i] = number ? strtoul(value, &end, 10) : 0;
        if (!number || (*end && !(i == 0 && (*end == ',' || *end == ' '))))
            return fr_wrong_usage("%s needs two layers, such as 4 20 or 4,20", name);
        if (i == 0) value = *end ? end + 1 : *at < count ? words[(*at)++] : NULL;
    }
    if (args->vector_range[1] > 0 && args->vector_range[0] <= args->vector_range[1]) return 0;
    return fr_wrong_usage("%s %zu %zu: the first layer is after the last, or the last is 0", name,
                          args->vector_range[0], args->vector_range[1]);
}

/* Reads the option at words[*at]: "--name value", "--name=value" or a flag. Then moves *at to the word after the
 * option. */
static int take_option(fr_arguments *args, int count, char **words, int *at) {
    const char *word = words[(*at)++];
    const char *equals = strncmp(word, "--", 2) == 0 ? strchr(word, '=') : NULL;
    char name[64];
    snprintf(name, sizeof(name), "%.*s", (int)(equals ? equals - word : (ptrdiff_t)strlen(word)), word);

    if (*word != '-' || (!word[1] && !args->given[bare_word_of(args)])) return take_bare(args, word);
    fr_arg arg = find_row(args->verb, name, strlen(name));
    bool takes = arg != FR_ARG_COUNT && fr_verb_takes(args->verb, &fr_option_table[arg]);
    const fr_foreign_option *foreign = takes ? NULL : fr_foreign_find(args->verb, name);
    if (foreign) return take_foreign(args, foreign, name, word, count, words, at);
    if (arg == FR_ARG_COUNT) return unknown_option(args->verb, name);
    const fr_option_row *row = &fr_option_table[arg];
    if (!takes) return refuse_option(args->verb, row, name);
    if (args->settled[arg]) return 0;
    const char *earlier = args->name[arg];
    args->name[arg] = word;
    if (!row->value) return take_flag(args, arg, name, equals, count, words, at);
    if (!equals && *at == count) return fr_wrong_usage("%s needs a value: %s", name, row->value);
    bool once = (row->kind == FR_KIND_TEXT || row->kind == FR_KIND_IDS) && !row->again;
    if (once && args->given[arg] && arg == FR_ARG_MODEL && args->bare_model)
        return fr_wrong_usage("%s: what is this word for? %s names the model", args->text[arg], name);
    /* Some rows have several names, such as -m and -hf: someone who typed each of them once needs to see both. */
    int typed = earlier ? (int)strcspn(earlier, "=") : 0;
    if (once && args->given[arg] && earlier && (strncmp(earlier, name, (size_t)typed) != 0 || name[typed]))
        return fr_wrong_usage("%.*s and %s: which of them?", typed, earlier, name);
    if (once && args->given[arg]) return fr_wrong_usage("%s is given twice", name);
    args->given[arg] = true;
    const char *value = equals ? equals + 1 : words[(*at)++];
    if (arg == FR_ARG_VECTOR_RANGE) return take_range(args, name, value, count, words, at);
    return fr_option_take(args, arg, name, value);
}

int fr_option_take_word(fr_arguments *args, char *word) {
    int at = 0;
    return take_option(args, 1, &word, &at);
}

fr_option_form fr_option_form_of(const fr_verb *verb, const char *name) {
    fr_arg arg = find_row(verb, name, strlen(name));
    if (arg != FR_ARG_COUNT && fr_verb_takes(verb, &fr_option_table[arg])) {
        if (fr_option_table[arg].value) return FR_FORM_VALUE;
        return fr_option_table[arg].switches ? FR_FORM_SWITCH : FR_FORM_FLAG;
    }
    const fr_foreign_option *foreign = fr_foreign_find(verb, name);
    if (!foreign) return arg == FR_ARG_COUNT ? FR_FORM_UNKNOWN : FR_FORM_VALUE;
    if (foreign->kind == FR_FOREIGN_FLAG) return FR_FORM_FLAG;
    return foreign->kind == FR_FOREIGN_SWITCH ? FR_FORM_SWITCH : FR_FORM_VALUE;
}

/* ------------------------------------------------------------------------------------------------------------ rules */

/* Returns true if standard input is a pipe, a socket or a file, which may hold a prompt. A terminal and /dev/null
 * don't count. */
static bool has_piped_input(void) {
    struct stat info;
    if (fstat(STDIN_FILENO, &info) != 0) return false;
    return S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode) || S_ISREG(info.st_mode);
}

int fr_arguments_lack_prompt(const fr_arguments *args) {
    bool takes_ids = fr_verb_takes(args->verb, &fr_option_table[FR_ARG_IDS]);
    return fr_wrong_usage("%s needs a prompt: -p TEXT, -f FILE%s", args->verb->name,
                          takes_ids ? ", --ids LIST or standard input" : " or standard input");
}

/* Checks the prompt of a verb that needs one. The prompt must be either ids or a text (-p or -f). If neither is given,
 * piped input is the prompt. */
static int check_prompt(fr_arguments *args) {
    if (!fr_verb_takes(args->verb, &fr_option_table[FR_ARG_PROMPT])) return 0;
    bool text = args->given[FR_ARG_PROMPT] || args->given[FR_ARG_FILE], ids = args->given[FR_ARG_IDS];
    if (text && ids) return fr_wrong_usage("--ids and a text (-p or -f) exclude each other");
    if (text || ids) return 0;
    if (!args->given[FR_ARG_DECODE] && has_piped_input()) {
        args->given[FR_ARG_FILE] = args->piped = true;
        args->text[FR_ARG_FILE] = "-";
        return 0;
    }
    return fr_arguments_lack_prompt(args);
}

/* Refuses options that the chosen part of bench does not have. */
static int check_part(const fr_arguments *args) {
    static const char *const words[] = {"machine", "kernels", "model", "neighbours", "grammar", "ranks"};
    size_t part = 0;
    if (!args->given[FR_ARG_BENCH_PART]) return 0;
    while (strcmp(args->text[FR_ARG_BENCH_PART], words[part]) != 0) part++;
    if (args->harmless_count && 1u << part != FR_PART_MODEL)
        return fr_wrong_usage("bench %s takes no %.*s", words[part], (int)strcspn(args->harmless[0], "="),
                              args->harmless[0]);
    for (int arg = 0; arg < FR_ARG_COUNT; arg++) {
        if (!args->given[arg] || !fr_option_table[arg].parts || fr_option_table[arg].parts & 1u << part) continue;
        const char *names = fr_option_table[arg].names;
        return fr_wrong_usage("bench %s takes no %.*s", words[part], (int)strcspn(names, " "), names);
    }
    return 0;
}

/* Checks that --chat-template-kwargs is an object and doesn't contradict another option. */
static int check_kwargs(const fr_arguments *args) {
    json_error_t error;
    const char *text = args->text[FR_ARG_CHAT_KWARGS];
    if (!args->given[FR_ARG_CHAT_KWARGS]) return 0;
    json_t *kwargs = fr_json_load(text, strlen(text), &error);
    bool parsed = kwargs != NULL, object = json_is_object(kwargs);
    bool thinks = json_object_get(kwargs, "enable_thinking") != NULL, tools = json_object_get(kwargs, "tools") != NULL;
    json_decref(kwargs);
    if (!parsed) return fr_wrong_usage("--chat-template-kwargs: not JSON: %s", error.text);
    if (!object) return fr_wrong_usage("--chat-template-kwargs: not an object such as {\"enable_thinking\": true}");
    if (thinks && args->given[FR_ARG_NO_THINK])
        return fr_wrong_usage("--no-think and --chat-template-kwargs with an enable_thinking exclude each other");
    if (tools && args->given[FR_ARG_TOOLS])
        return fr_wrong_usage("--tools and --chat-template-kwargs with tools exclude each other");
    return 0;
}

/* Refuses the options of chats if generate is used without --chat. */
static int check_chat(const fr_arguments *args) {
    static const struct {
        fr_arg arg;
        const char *name;
    } options[] = {{FR_ARG_SYSTEM, "--system"},
                   {FR_ARG_CHAT_TEMPLATE, "--chat-template-file"},
                   {FR_ARG_CHAT_KWARGS, "--chat-template-kwargs"},
                   {FR_ARG_NO_THINK, "--no-think"},
                   {FR_ARG_TOOLS, "--tools"},
                   {FR_ARG_PARSE_SPECIAL, "--parse-special"}};
    bool chats = args->verb->bit != FR_VERB_GENERATE || args->given[FR_ARG_CHAT];
    const char *plain = args->name[FR_ARG_NO_CHAT];
    if (plain && args->verb->bit == FR_VERB_CHAT)
        return fr_wrong_usage("%s: chat is a conversation; forerun generate goes on with a text", plain);
    if (plain && args->given[FR_ARG_CHAT])
        return fr_wrong_usage("%s and %s: which of them?", args->name[FR_ARG_CHAT], plain);
    for (size_t i = 0; i < sizeof(options) / sizeof(*options); i++) {
        if (!chats && args->given[options[i].arg]) return fr_wrong_usage("%s goes with --chat", options[i].name);
    }
    return check_kwargs(args);
}

/* Checks that at most one grammar was given. */
static int check_grammar(const fr_arguments *args) {
    static const fr_arg each[] = {FR_ARG_GRAMMAR, FR_ARG_GRAMMAR_FILE, FR_ARG_JSON_SCHEMA, FR_ARG_JSON_SCHEMA_FILE,
                                  FR_ARG_REGEX};
    size_t given = 0;
    for (size_t i = 0; i < sizeof(each) / sizeof(*each); i++) given += args->given[each[i]];
    if (given <= 1) return 0;
    return fr_wrong_usage("--grammar, --json-schema, their files and --regex exclude each other");
}

const char *fr_arguments_drafting(const fr_arguments *args) {
    const bool *given = args->given;
    if (given[FR_ARG_DRAFT_MAX] && args->number[FR_ARG_DRAFT_MAX] > 0) return "--draft-max";
    if (given[FR_ARG_DRAFT_MIN] && args->number[FR_ARG_DRAFT_MIN] > 0) return "--draft-min";
    if (given[FR_ARG_DRAFT_P_MIN] && args->real[FR_ARG_DRAFT_P_MIN] > 0) return "--draft-p-min";
    if (given[FR_ARG_DRAFT_HEAD]) return "--draft-head";
    if (given[FR_ARG_ACCEPT] && strcmp(args->text[FR_ARG_ACCEPT], "gumbel") != 0) return "--accept";
    return given[FR_ARG_PRESET] && !given[FR_ARG_DRAFT_MAX] ? "--preset" : NULL;
}

/* Decides by --spec-type and --draft-max whether a drafter is used. If there are no drafts, notes the drafting options
 * that have no effect. */
static int check_drafting(fr_arguments *args) {
    const char *words = args->text[FR_ARG_SPEC_TYPE], *asks = fr_arguments_drafting(args);
    bool zero = args->given[FR_ARG_DRAFT_MAX] && args->number[FR_ARG_DRAFT_MAX] == 0;
    bool none = words && strcmp(words, "none") == 0;
    unsigned drafting =
        FR_VERB_GENERATE | FR_VERB_CHAT | FR_VERB_BATCH | FR_VERB_FEATURES | FR_VERB_SERVE | FR_VERB_VERIFY;
    bool drafts = args->verb->bit & drafting || args->given[FR_ARG_DRAFT_STEPS];
    bool weights = fr_lab_takes_drafter(words);
    args->uses_drafter = drafts && !zero && weights;
    /* A drafter (-md) that is not used gets no note. Users add --spec-type none to the same command line to compare
     * with a run without drafts. */
    if (asks && (none || zero) && !args->given[FR_ARG_QUIET])
        fr_note("%s is for drafts, and %s makes none", asks, none ? "--spec-type none" : "--draft-max 0");
    if (!weights && !none && args->given[FR_ARG_DRAFT_P_MIN] && args->real[FR_ARG_DRAFT_P_MIN] > 0)
        return fr_wrong_usage("--draft-p-min needs a drafter: --spec-type ngram gives its drafts no chance");
    return 0;
}

uint32_t fr_draw_seed(void) {
    uint32_t drawn;
    return getrandom(&drawn, sizeof(drawn), 0) == sizeof(drawn) ? drawn : (uint32_t)time(NULL);
}

/* Replaces escapes if --escape was given. The texts of --system and --stop are changed in place here. The prompt is
 * copied later, and its escapes are replaced in the copy. An escape that means a NUL is refused, because a NUL would
 * end the text. */
static int read_escapes(fr_arguments *args) {
    if (args->given[FR_ARG_ESCAPE] && args->given[FR_ARG_NO_ESCAPE])
        return fr_wrong_usage("--escape and --no-escape: which of them?");
    if (!args->given[FR_ARG_ESCAPE]) return 0;
    bool system = args->given[FR_ARG_SYSTEM], prompt = args->given[FR_ARG_PROMPT] || args->given[FR_ARG_FILE];
    if (!system && !args->stop_count && (!prompt || args->verb->bit & (FR_VERB_BATCH | FR_VERB_FEATURES)))
        return fr_wrong_usage("--escape is for a prompt, --system and --stop: there is none");
    const char *texts[FR_STOPS_MAX + 1];
    size_t count = args->stop_count;
    memcpy(texts, args->stops, count * sizeof *texts);
    if (system) texts[count++] = args->text[FR_ARG_SYSTEM];
    for (size_t i = 0; i < count; i++) {
        char *text = (char *)(uintptr_t)texts[i]; /* argv's memory belongs to the program, which may change it */
        size_t length = fr_escapes_read(text, strlen(text));
        text[length] = '\0';
        if (strlen(text) != length) return fr_wrong_usage("--escape: \\x00 can't be in --system or --stop");
    }
    return 0;
}

/* Reads the file of --system-prompt-file as the text of --system. If the file ends with a line end, the text is stored
 * without it. */
static int read_system(fr_arguments *args) {
    fr_prompt file;
    if (!args->given[FR_ARG_SYSTEM_FILE]) return 0;
    if (args->given[FR_ARG_SYSTEM]) return fr_wrong_usage("--system and --system-prompt-file: which of them?");
    int code = fr_prompt_read_file(&file, args->text[FR_ARG_SYSTEM_FILE]);
    if (!code && file.length && memchr(file.bytes, '\0', file.length))
        code = fr_bad_input("%s is no text: it has NUL bytes", args->text[FR_ARG_SYSTEM_FILE]);
    if (!code) {
        if (file.length && file.bytes[file.length - 1] == '\n') file.length--;
        args->system = fr_resize(NULL, file.length + 1, 1);
        if (file.length) memcpy(args->system, file.bytes, file.length);
        args->system[file.length] = '\0';
        args->given[FR_ARG_SYSTEM] = true;
        args->text[FR_ARG_SYSTEM] = args->system;
    }
    fr_prompt_free(&file);
    return code;
}

/* Checks the rules that connect several options. */
static int check_rules(fr_arguments *args) {
    unsigned without = FR_VERB_SYNTH | FR_VERB_REPORT | FR_VERB_BENCH | FR_VERB_COMPLETION | FR_VERB_MODELS;
    bool served = args->given[FR_ARG_MODELS];
    int placed = place_bare(args);
    if (placed) return placed;
    if (!args->given[FR_ARG_MODEL] && !served && args->verb->bit & ~without) {
        return fr_wrong_usage("%s needs -m MODEL", args->verb->name);
    }
    if (!args->given[FR_ARG_PREDICT]) args->number[FR_ARG_PREDICT] = -1;
    if (args->verb->bit == FR_VERB_CHAT && args->number[FR_ARG_PREDICT] == 0) {
        return fr_wrong_usage("chat's -n takes 1 or more, or -1 for no limit");
    }
    const char *output = args->text[FR_ARG_OUTPUT];
    bool batch = args->verb->bit == FR_VERB_BATCH, features = args->verb->bit == FR_VERB_FEATURES;
    bool crowd = batch || features || args->verb->bit == FR_VERB_SERVE;
    if (args->given[FR_ARG_LOGPROBS] && !batch && !(output && strcmp(output, "json") == 0)) {
        return fr_wrong_usage("--logprobs goes with --output json");
    }
    if (args->given[FR_ARG_COLOR] && output && strcmp(output, "text") != 0) {
        return fr_wrong_usage("--color goes with --output text");
    }
    if (args->image_count && args->given[FR_ARG_PROMPT_CACHE]) {
        return fr_wrong_usage("--prompt-cache with --image: a session with pictures can't be saved yet");
    }
    if (batch && !(args->given[FR_ARG_FILE] && args->given[FR_ARG_OUT_FILE])) {
        return fr_wrong_usage("batch needs -f IN.jsonl and -o OUT.jsonl");
    }
    if (features && !(args->given[FR_ARG_FILE] && args->given[FR_ARG_OUT_FILE])) {
        return fr_wrong_usage("features needs -f PROMPTS.jsonl and -o FOLDER");
    }
    if (features && strcmp(args->text[FR_ARG_OUT_FILE], "-") == 0) {
        return fr_wrong_usage("features writes a folder: -o FOLDER");
    }
    if (args->given[FR_ARG_RESUME] && strcmp(args->text[FR_ARG_OUT_FILE], "-") == 0) {
        return fr_wrong_usage("--resume needs the file of answers: -o OUT.jsonl");
    }
    if (crowd && args->given[FR_ARG_ACCEPT] && strcmp(args->text[FR_ARG_ACCEPT], "rejection") == 0) {
        return fr_wrong_usage("--accept rejection: its text depends on the neighbours, which %s promises not to",
                              args->verb->name);
    }
    if (args->verb->bit == FR_VERB_TEMPLATE && !args->given[FR_ARG_MESSAGES]) {
        return fr_wrong_usage("template needs --messages FILE");
    }
    /* A seed of -1 is drawn once, here, so that all parts of the command use the same one. */
    args->seed_drawn = args->given[FR_ARG_SEED] && args->number[FR_ARG_SEED] < 0;
    if (args->seed_drawn) args->number[FR_ARG_SEED] = fr_draw_seed();
    int code = 0;
    if (args->given[FR_ARG_PIN] && args->given[FR_ARG_NO_PIN])
        code = fr_wrong_usage("--pin and --no-pin: which of them?");
    if (!code) code = read_system(args);
    if (!code) code = read_escapes(args);
    if (!code) code = check_drafting(args);
    if (!code) code = check_prompt(args);
    if (!code) code = fr_adapters_check(args);
    if (!code) code = check_chat(args);
    if (!code) code = check_grammar(args);
    if (!code) code = check_part(args);
    if (!code) fr_option_notes(args);
    return code;
}

/* After the error line of a wrong option, notes that -t has too many threads, so that the user can correct both
 * mistakes at once. It searches all words for -t, because -t may come after the wrong option. */
static void note_threads_behind(fr_arguments *args, int count, char **words) {
    for (int i = 0; i + 1 < count && !args->given[FR_ARG_THREADS]; i++) {
        if (!fr_has_word(fr_option_table[FR_ARG_THREADS].names, words[i], strlen(words[i]))) continue;
        args->number[FR_ARG_THREADS] = strtoll(words[i + 1], NULL, 10);
        args->given[FR_ARG_THREADS] = true;
    }
    fr_option_note_threads(args);
}

int fr_arguments_parse(fr_arguments *args, const fr_verb *verb, int count, char **words) {
    *args = (fr_arguments){.verb = verb};
    bool options = true; /* true until the word -- is found; only until then words may be options */
    for (int at = 0; at < count;) {
        bool ends = options && strcmp(words[at], "--") == 0;
        options = options && !ends;
        at += ends;
        if (ends) continue;
        int code = options ? take_option(args, count, words, &at) : take_bare(args, words[at++]);
        if (code) note_threads_behind(args, count - at, words + at);
        if (code || args->given[FR_ARG_HELP] || args->given[FR_ARG_VERSION]) return code;
    }
    int code = fr_option_sources_read(args);
    return code ? code : check_rules(args);
}

void fr_arguments_free(fr_arguments *args) {
    for (size_t i = 0; i < FR_NAMED_MAX; i++) fr_free(args->found[i]);
    free(args->ids);
    args->ids = NULL;
    free(args->system);
    args->system = NULL;
    for (size_t i = 0; i < args->word_count; i++) free(args->words[i]);
    free(args->words);
    args->words = NULL;
}
