/* Notes options that are given but have no effect (option_notes.h). */
#include "tools/cli/option_notes.h"

#include <string.h>
#include <unistd.h>

#include "tools/cli/foreign_options.h"
#include "tools/cli/option_table.h"
#include "tools/cli/output.h"

/* Names of options as the user gave them, with commas between them: "-ngl, --jinja". */
typedef struct names {
    char list[512];
    size_t length;
} names;

static void add(names *n, const char *word) {
    size_t room = sizeof n->list - n->length;
    int length = snprintf(n->list + n->length, room, "%s%.*s", n->length ? ", " : "", (int)strcspn(word, "="), word);
    if (length > 0 && (size_t)length < room)
        n->length += (size_t)length;
    else
        n->list[n->length] = '\0';
}

static void note_llama_cpps(const fr_arguments *args) {
    names n = {.length = 0};
    for (size_t i = 0; i < args->harmless_count; i++) {
        const char *word = args->harmless[i], *says = fr_foreign_find(args->verb, word)->says;
        if (says)
            fr_note("%.*s: for llama.cpp; %s", (int)strcspn(word, "="), word, says);
        else
            add(&n, word);
    }
    if (n.length) fr_note("%s: for llama.cpp; nothing here depends on it", n.list);
}

/* Notes environment variables of llama.cpp's programs. Of forerun's verbs only serve reads these variables
 * (option_sources.h). Without the note, a script that relies on them would silently run with other settings. */
static void note_environment(const fr_arguments *args) {
    static const char prefix[] = "LLAMA_ARG_";
    names n = {.length = 0};
    if (!(args->verb->bit & (FR_VERB_GENERATE | FR_VERB_CHAT))) return;
    for (char **at = environ; *at; at++)
        if (strncmp(*at, prefix, sizeof prefix - 1) == 0) add(&n, *at);
    if (n.length) fr_note("%s: environment of llama.cpp, which only serve reads: give the options", n.list);
}

/* Returns true if the temperature is above 0. For chat and serve this is the default. */
static bool is_hot(const fr_arguments *args) {
    bool usual = args->verb->bit & (FR_VERB_CHAT | FR_VERB_SERVE) && !args->given[FR_ARG_TEMPERATURE];
    return usual || args->real[FR_ARG_TEMPERATURE] > 0;
}

/* Returns true if tokens are drawn at random, because of the temperature or of a sampler that draws even at
 * temperature 0. */
static bool is_drawn(const fr_arguments *args) {
    return is_hot(args) || args->real[FR_ARG_DYNATEMP_RANGE] > 0 || args->real[FR_ARG_XTC_PROBABILITY] > 0;
}

/* Notes sampling options that have no effect because no token is drawn at random. If --temp 0 was given, nothing is
 * noted, because the user has asked for greedy decoding. */
static void note_draws(const fr_arguments *args) {
    names n = {.length = 0};
    if (args->given[FR_ARG_TEMPERATURE] || is_drawn(args)) return;
    for (int arg = 0; arg < FR_ARG_COUNT; arg++)
        if (args->given[arg] && fr_option_table[arg].draws) add(&n, args->name[arg]);
    if (n.length) fr_note("%s: nothing is drawn without --temp above 0, so that this changes nothing", n.list);
}

/* Returns true if this option's value switches its sampler on. The value may be given or the default. */
static bool is_on(const fr_arguments *args, fr_arg arg) {
    if (fr_option_table[arg].kind == FR_KIND_NUMBER) return args->number[arg] > 0;
    if (arg == FR_ARG_REPEAT_PENALTY) return args->given[arg] && args->real[arg] != 1;
    return args->real[arg] != 0;
}

/* Notes settings of samplers that are switched off. If no token is drawn at random, note_draws has already noted the
 * settings that need random draws, so they are left out here. */
static void note_off(const fr_arguments *args) {
    static const struct {
        fr_arg of[5];  /* the sampler's settings, then FR_ARG_COUNT */
        fr_arg any[4]; /* each of these options can switch the sampler on */
        const char *needs;
    } rows[] = {
        {{FR_ARG_DRY_BASE, FR_ARG_DRY_ALLOWED_LENGTH, FR_ARG_DRY_PENALTY_LAST_N, FR_ARG_DRY_SEQUENCE_BREAKER,
          FR_ARG_COUNT},
         {FR_ARG_DRY_MULTIPLIER, FR_ARG_COUNT},
         "--dry-multiplier above 0"},
        {{FR_ARG_XTC_THRESHOLD, FR_ARG_COUNT}, {FR_ARG_XTC_PROBABILITY, FR_ARG_COUNT}, "--xtc-probability above 0"},
        {{FR_ARG_DYNATEMP_EXPONENT, FR_ARG_COUNT}, {FR_ARG_DYNATEMP_RANGE, FR_ARG_COUNT}, "--dynatemp-range above 0"},
        {{FR_ARG_MIROSTAT_LR, FR_ARG_MIROSTAT_ENT, FR_ARG_COUNT}, {FR_ARG_MIROSTAT, FR_ARG_COUNT}, "--mirostat 2"},
        {{FR_ARG_REPEAT_LAST_N, FR_ARG_COUNT},
         {FR_ARG_REPEAT_PENALTY, FR_ARG_PRESENCE_PENALTY, FR_ARG_FREQUENCY_PENALTY, FR_ARG_COUNT},
         "a penalty"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        names n = {.length = 0};
        bool on = false;
        for (const fr_arg *arg = rows[i].any; *arg != FR_ARG_COUNT; arg++) on = on || is_on(args, *arg);
        for (const fr_arg *arg = rows[i].of; !on && *arg != FR_ARG_COUNT; arg++)
            if (args->given[*arg] && (!fr_option_table[*arg].draws || is_hot(args))) add(&n, args->name[*arg]);
        if (n.length) fr_note("%s: this changes nothing without %s", n.list, rows[i].needs);
    }
}

/* Notes options of samplers that are not used because mirostat replaces them. */
static void note_mirostat(const fr_arguments *args) {
    names n = {.length = 0};
    if (args->number[FR_ARG_MIROSTAT] != 2 || !is_hot(args)) return;
    for (int arg = 0; arg < FR_ARG_COUNT; arg++)
        if (args->given[arg] && fr_option_table[arg].replaced) add(&n, args->name[arg]);
    if (n.length) fr_note("%s: this changes nothing beside --mirostat 2, which is in its place", n.list);
}

void fr_option_note_threads(const fr_arguments *args) {
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (args->given[FR_ARG_QUIET] || !args->given[FR_ARG_THREADS] || processors < 1) return;
    /* a number outside of the range gets an error line later, so it needs no note */
    fr_lab_range range = fr_option_row_range(&fr_option_table[FR_ARG_THREADS]);
    if (args->number[FR_ARG_THREADS] > 2 * processors && args->number[FR_ARG_THREADS] <= range.high)
        fr_note("-t %lld: this machine has %ld processor%s, and more threads than that wait for each other",
                (long long)args->number[FR_ARG_THREADS], processors, processors > 1 ? "s" : "");
}

void fr_option_notes(const fr_arguments *args) {
    if (args->given[FR_ARG_QUIET]) return;
    fr_option_note_threads(args);
    note_llama_cpps(args);
    note_environment(args);
    /* these verbs get no notes, because each line of a batch may have its own sampling settings */
    if (args->verb->bit & (FR_VERB_BATCH | FR_VERB_FEATURES)) return;
    note_draws(args);
    note_off(args);
    note_mirostat(args);
}
