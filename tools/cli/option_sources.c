/* Reads options from a configuration file and from the environment (option_sources.h).
 *
 * Source of the variables' names: llama.cpp, common/arg.cpp (set_env), in llama-cpp-python 0.3.36. */
#include "tools/cli/option_sources.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "forerun_lab.h"
#include "tools/cli/option_table.h"
#include "tools/cli/output.h"
#include "tools/cli/prompt_file.h"
#include "tools/cli/words.h"

enum {
    NAME_MAX_BYTES = 64,      /* bytes of an option's name with its dashes, at most */
    FILE_MAX_BYTES = 1 << 20, /* bytes of a configuration file, at most */
};

extern char **environ;

/* ---------------------------------------------------------------------------------------------------------- setting */

/* Makes the word --NAME or --NAME=VALUE and reads it as an option. The arguments own the word, because they point into
 * it. value NULL: there is no value. */
static int take_word(fr_arguments *args, const char *option, const char *value) {
    size_t size = strlen(option) + (value ? strlen(value) + 1 : 0) + 1;
    char *word = fr_resize(NULL, size, 1);
    snprintf(word, size, value ? "%s=%s" : "%s", option, value);
    args->words = fr_resize(args->words, args->word_count + 1, sizeof *args->words);
    args->words[args->word_count++] = word;
    return fr_option_take_word(args, word);
}

static bool is_on(const char *value) {
    return fr_has_word_in_any_case("on true yes enabled 1", value, strlen(value));
}

static bool is_off(const char *value) {
    return fr_has_word_in_any_case("off false no disabled 0", value, strlen(value));
}

/* Reads one setting. option: its name with two dashes. value: NULL if it has none. If the setting is a flag with the
 * value off, the option --no-NAME is read instead. If there is no option --no-NAME, nothing is read, as if the flag had
 * not been given. */
static int take_setting(fr_arguments *args, const char *option, const char *value) {
    char opposite[NAME_MAX_BYTES + 3];
    fr_option_form form = fr_option_form_of(args->verb, option);
    if (form != FR_FORM_FLAG && form != FR_FORM_SWITCH) {
        if (!value) return fr_wrong_usage("%s needs a value: %s = ...", option, option + 2);
        return take_word(args, option, value);
    }
    if (!value || is_on(value)) return take_word(args, option, NULL);
    if (form == FR_FORM_SWITCH && fr_has_word("off auto", value, strlen(value))) return take_word(args, option, value);
    if (!is_off(value)) return fr_wrong_usage("%s takes on or off, not %s", option, value);
    snprintf(opposite, sizeof opposite, "--no-%s", option + 2);
    return fr_option_form_of(args->verb, opposite) == FR_FORM_FLAG ? take_word(args, opposite, NULL) : 0;
}

/* Marks all options that were given so far as settled, so that the sources that are read later do not change them. */
static void settle(fr_arguments *args) {
    memcpy(args->settled, args->given, sizeof args->settled);
}

/* ------------------------------------------------------------------------------------------------------------- file */

/* Cuts blanks off both ends of a text, in place. */
static char *trim(char *text) {
    while (isspace((unsigned char)*text)) text++;
    for (size_t n = strlen(text); n > 0 && isspace((unsigned char)text[n - 1]); n--) text[n - 1] = '\0';
    return text;
}

/* Reads a line of a configuration file. The line is NAME, NAME = VALUE, a comment, or empty. A value may be enclosed in
 * double quotes, which keep blanks at its ends. */
static int take_line(fr_arguments *args, char *line) {
    char option[NAME_MAX_BYTES], *equals = strchr(line, '='), *value = NULL, *name = line;
    if (equals) {
        *equals = '\0';
        value = trim(equals + 1);
        size_t length = strlen(value);
        bool quoted = length > 1 && *value == '"' && value[length - 1] == '"';
        if (quoted) value[length - 1] = '\0';
        value += quoted;
    }
    name = trim(name);
    if (*name == '[') return fr_wrong_usage("%s: sections are not supported", name);
    name += strncmp(name, "--", 2) == 0 ? 2 : 0;
    if (strlen(name) >= sizeof option - 2) return fr_wrong_usage("%.20s... is too long for a name", name);
    if (!*name || *name == '-' || name[strcspn(name, " \t")])
        return fr_wrong_usage("\"%s\" is not an option's long name", name);
    snprintf(option, sizeof option, "--%s", name);
    if (strcmp(option, "--config") == 0) return fr_wrong_usage("a file can't name another file of options");
    if (strcmp(option, "--help") == 0 || strcmp(option, "--version") == 0)
        return fr_wrong_usage("%s belongs on the command line", option);
    return take_setting(args, option, value);
}

static int take_lines(fr_arguments *args, const char *path, char *text) {
    char place[256];
    int code = 0;
    size_t number = 0;
    for (char *line = text, *next; line && !code; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = '\0';
        char *begin = trim(line);
        snprintf(place, sizeof place, "%s, line %zu", path, ++number);
        fr_output_set_source(place);
        if (*begin && *begin != '#') code = take_line(args, begin);
    }
    fr_output_set_source("");
    return code;
}

static int take_file(fr_arguments *args, const char *path) {
    fr_prompt file = {0};
    int code = fr_prompt_read_file(&file, path);
    if (!code && file.length > FILE_MAX_BYTES)
        code = fr_bad_input("%s is too large for a file of options: %zu bytes", path, file.length);
    if (!code && file.length && memchr(file.bytes, '\0', file.length))
        code = fr_bad_input("%s is no text: it has NUL bytes", path);
    char *text = fr_resize(NULL, file.length + 1, 1);
    if (!code && file.length) memcpy(text, file.bytes, file.length);
    text[code ? 0 : file.length] = '\0';
    if (!code) code = take_lines(args, path, text);
    free(text);
    fr_prompt_free(&file);
    return code;
}

/* ------------------------------------------------------------------------------------------------------ environment */

/* Turns a variable's name into an option's name: CTX_SIZE becomes --ctx-size. Returns false if the name is too long. */
static bool name_option(const char *variable, size_t length, char option[NAME_MAX_BYTES]) {
    if (length == 0 || length >= NAME_MAX_BYTES - 2) return false;
    option[0] = option[1] = '-';
    for (size_t i = 0; i < length; i++)
        option[2 + i] = variable[i] == '_' ? '-' : (char)tolower((unsigned char)variable[i]);
    option[2 + length] = '\0';
    return true;
}

/* Gives the name of the option that a variable of llama.cpp sets, if that name can't be derived from the variable's
 * name. NULL: it can be derived. */
static const char *foreign_name(const char *variable, size_t length) {
    static const char *const named[][2] = {
        {"BATCH", "--batch-size"},
        {"UBATCH", "--ubatch-size"},
        {"N_PARALLEL", "--parallel"},
        {"N_PREDICT", "--predict"},
        {"TEMPERATURE", "--temp"},
        {"ENDPOINT_METRICS", "--metrics"},
        {"ENDPOINT_SLOTS", "--slots"},
        {"ENDPOINT_PROPS", "--props"},
        {"STATIC_PATH", "--path"},
        {"THINK", "--reasoning-format"},
        {"THINK_BUDGET", "--reasoning-budget"},
        {"THINK_BUDGET_MESSAGE", "--reasoning-budget-message"},
        {"CHECKPOINT_MIN_SPACING_NT", "--checkpoint-min-step"},
        {"FIT_ESTIMATE", "--fit-print"},
        {"SPEC_DRAFT_HF_REPO", "--spec-draft-hf"},
        {"SPEC_DRAFT_CACHE_TYPE_K", "--spec-draft-type-k"},
        {"SPEC_DRAFT_CACHE_TYPE_V", "--spec-draft-type-v"},
        {"LOG_VERBOSITY", "--log-verbosity"},
    };
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (strlen(named[i][0]) == length && strncmp(named[i][0], variable, length) == 0) return named[i][1];
    return NULL;
}

/* Reads one variable of the environment. It is read only if it begins with this prefix and names an option that a
 * variable may set. An empty variable counts as not set. *taken: the variable has set an option. */
static int take_variable(fr_arguments *args, const char *variable, const char *prefix, bool foreign, bool *taken) {
    static const char *const never[] = {"--config", "--help", "--version"}; /* FORERUN_VERSION is set in containers */
    char option[NAME_MAX_BYTES], name[NAME_MAX_BYTES + 16];
    const char *begin = variable + strlen(prefix), *equals = strchr(variable, '=');
    *taken = false;
    if (strncmp(variable, prefix, strlen(prefix)) != 0 || !equals || !equals[1]) return 0;
    const char *other = foreign ? foreign_name(begin, (size_t)(equals - begin)) : NULL;
    if (other)
        snprintf(option, sizeof option, "%s", other);
    else if (!name_option(begin, (size_t)(equals - begin), option))
        return 0;
    if (fr_option_form_of(args->verb, option) == FR_FORM_UNKNOWN) return 0;
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        if (strcmp(option, never[i]) == 0) return 0;
    bool before[FR_ARG_COUNT];
    memcpy(before, args->given, sizeof before);
    snprintf(name, sizeof name, "%.*s", (int)(equals - variable), variable);
    fr_output_set_source(name);
    int code = take_setting(args, option, equals + 1);
    fr_output_set_source("");
    *taken = memcmp(before, args->given, sizeof before) != 0;
    return code;
}

/* Reads all variables whose names have a prefix. If they are variables of llama.cpp (foreign), a note lists the ones
 * that were used, because they were set for another program. */
static int take_variables(fr_arguments *args, const char *prefix, bool foreign) {
    char list[512] = "";
    bool taken;
    for (char **variable = environ; *variable; variable++) {
        int code = take_variable(args, *variable, prefix, foreign, &taken);
        if (code) return code;
        size_t length = strlen(list);
        if (taken)
            snprintf(list + length, sizeof list - length, "%s%.*s", length ? ", " : "", (int)strcspn(*variable, "="),
                     *variable);
    }
    settle(args);
    if (foreign && *list && !args->given[FR_ARG_QUIET]) fr_note("set by the environment: %s", list);
    return 0;
}

int fr_option_sources_read(fr_arguments *args) {
    if (args->verb->bit != FR_VERB_SERVE) return 0;
    const char *path = args->given[FR_ARG_CONFIG] ? args->text[FR_ARG_CONFIG] : getenv("FORERUN_CONFIG");
    settle(args);
    int code = path && *path ? take_file(args, path) : 0;
    settle(args);
    if (!code) code = take_variables(args, "FORERUN_", false);
    if (!code) code = take_variables(args, "LLAMA_ARG_", true);
    const char *key = getenv("LLAMA_API_KEY");
    if (!code && key && *key) code = take_setting(args, "--api-key", key);
    return code;
}
