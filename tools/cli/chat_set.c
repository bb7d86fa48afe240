/* Runs the commands /set and /system (chat_set.h). */
#include "tools/cli/chat_set.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/conversation.h"
#include "tools/cli/option_table.h"
#include "tools/cli/output.h"
#include "tools/cli/words.h"

/* The options that /set can change. They are the options that an open session accepts, and the limit of a reply's
 * length. */
static const fr_arg settable[] = {
#define FR_SAMPLER_NUMBER(id, key, low, high, usual, name, ...) FR_ARG_##id,
#include "samplers.def"
    FR_ARG_SAMPLERS,
    FR_ARG_SEED,
    FR_ARG_PREDICT,
};
enum { SETTABLE = sizeof settable / sizeof *settable };

/* Gives an option's first long name without its dashes, such as "top-k" for "--top-k", and the name's *length. */
static const char *name_of(fr_arg arg, size_t *length) {
    const char *names = fr_option_table[arg].names;
    for (const char *word; (word = fr_next_word(&names, ' ', length));)
        if (strncmp(word, "--", 2) == 0) {
            *length -= 2;
            return word + 2;
        }
    return "";
}

/* Finds a settable option by its name. The name may have dashes before it, and "_" instead of "-". FR_ARG_COUNT: no
 * settable option has this name. */
static fr_arg find(const char *name, size_t length) {
    char word[64];
    while (length && *name == '-') name++, length--;
    if (length + 3 > sizeof word) return FR_ARG_COUNT;
    for (size_t dashes = 1; dashes <= 2; dashes++) {
        int size = snprintf(word, sizeof word, "%.*s%.*s", (int)dashes, "--", (int)length, name);
        for (char *c = word; *c; c++)
            if (*c == '_') *c = '-';
        for (size_t i = 0; i < SETTABLE; i++)
            if (fr_has_word(fr_option_table[settable[i]].names, word, (size_t)size)) return settable[i];
    }
    return FR_ARG_COUNT;
}

static void tell(const fr_chat *chat, fr_arg arg) {
    const fr_options *options = chat->loaded.options;
    fr_option option = fr_option_table[arg].sets;
    size_t length;
    const char *name = name_of(arg, &length);
    int64_t whole = 0;
    double number = 0;
    char text[64] = "";
    size_t size;
    fprintf(stderr, "  %-22.*s ", (int)length, name);
    if (arg == FR_ARG_PREDICT)
        fprintf(stderr, "%lld\n", (long long)chat->args->number[arg]);
    else if (fr_options_get(options, option, &whole) == FR_OK)
        fprintf(stderr, "%lld\n", (long long)whole);
    else if (fr_options_get_number(options, option, &number) == FR_OK)
        fprintf(stderr, "%g\n", number);
    else if (fr_options_get_text(options, option, text, sizeof text, &size) == FR_OK)
        fprintf(stderr, "%s\n", *text ? text : "(the usual order)");
}

/* Stores the value in the chat's arguments and applies it to the session. A wrong value prints an error line and
 * changes nothing. */
static int set(fr_chat *chat, fr_arg arg, const char *value) {
    const fr_option_row *row = &fr_option_table[arg];
    fr_arguments changed = *chat->args;
    size_t length;
    const char *name = name_of(arg, &length);
    char shown[64];
    snprintf(shown, sizeof shown, "%.*s", (int)length, name);
    if (fr_option_take(&changed, arg, shown, value) != 0) return 0;
    if (arg == FR_ARG_PREDICT && changed.number[arg] == 0) {
        fr_note("%s takes 1 or more, or -1 for no limit", shown);
        return 0;
    }
    fr_options *options = fr_options_copy(chat->loaded.options);
    fr_status status = FR_OK;
    if (!options) return fr_bad_input("out of memory: options");
    if (arg == FR_ARG_SEED && changed.number[arg] < 0) changed.number[arg] = fr_draw_seed();
    if (arg == FR_ARG_SAMPLERS)
        status = fr_options_set_text(options, row->sets, value);
    else if (row->kind == FR_KIND_REAL)
        status = fr_options_set_number(options, row->sets, changed.real[arg]);
    else if (arg != FR_ARG_PREDICT)
        status = fr_options_set(options, row->sets, changed.number[arg]);
    if (status == FR_OK) status = fr_session_set_options(chat->loaded.session, options);
    if (status != FR_OK) {
        fr_exit_status(status);
        fr_options_free(options);
        return 0;
    }
    fr_options_free(chat->loaded.options);
    chat->loaded.options = options;
    *chat->args = changed;
    chat->args->given[arg] = true;
    chat->settled = false;
    if (arg == FR_ARG_SEED) chat->seed = changed.number[arg];
    if (!chat->args->given[FR_ARG_QUIET]) tell(chat, arg);
    return 0;
}

int fr_chat_set(fr_chat *chat, const char *argument) {
    size_t length = strcspn(argument, " \t=");
    const char *value = argument + length + strspn(argument + length, " \t=");
    if (length == 0) {
        for (size_t i = 0; i < SETTABLE; i++) tell(chat, settable[i]);
        return 0;
    }
    fr_arg arg = find(argument, length);
    if (arg == FR_ARG_COUNT)
        fr_note("/set: %.*s is none of the settings, which /set alone lists", (int)fr_least(length, 40), argument);
    else if (*value)
        return set(chat, arg, value);
    else
        tell(chat, arg);
    return 0;
}

void fr_chat_tell_sampling(const fr_chat *chat) {
    static const fr_option each[] = {FR_OPT_TEMPERATURE, FR_OPT_TOP_P, FR_OPT_MIN_P};
    static const char *const names[] = {"temperature", "top-p", "min-p"};
    int64_t top_k = 0, seed = 0;
    if (!fr_loaded_draws(&chat->loaded)) {
        fputs("greedy: always the likeliest token", stderr);
        return;
    }
    for (size_t i = 0; i < sizeof each / sizeof *each; i++) {
        double value = 0;
        fr_options_get_number(chat->loaded.options, each[i], &value);
        fprintf(stderr, "%s%s %.3g", i ? ", " : "", names[i], value);
    }
    fr_options_get(chat->loaded.options, FR_OPT_TOP_K, &top_k);
    fr_options_get(chat->loaded.options, FR_OPT_SEED, &seed);
    fprintf(stderr, ", top-k %lld, seed %lld", (long long)top_k, (long long)seed);
}

void fr_chat_set_system(fr_chat *chat, const char *text) {
    const char *system = fr_conversation_system(chat->messages);
    bool quiet = chat->args->given[FR_ARG_QUIET];
    if (!*text) {
        if (system)
            fprintf(stderr, "%s\n", system);
        else
            fr_note("there is no system turn (/system TEXT makes one)");
        return;
    }
    bool none = strcmp(text, "-") == 0;
    fr_conversation_set_system(chat->messages, none ? NULL : text);
    chat->settled = false;
    if (!quiet) fr_note(none ? "there is no system turn any more" : "this is the system turn from now on");
}
