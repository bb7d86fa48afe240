/* Telling of options that mean nothing (option_notes.h). */
#include "option_notes.h"

#include <string.h>

#include "option_table.h"
#include "output.h"

/* "-ngl, --jinja", as they were given. */
typedef struct names {
    char list[512];
    size_t length;
} names;

static void add(names *n, const char *word) {
    size_t room = sizeof n->list - n->length;
    int length = snprintf(n->list + n->length, room, "%s%.*s", n->length ? ", " : "", (int)strcspn(word, "="), word);
    if (length > 0 && (size_t)length < room) n->length += (size_t)length;
    else n->list[n->length] = '\0';
}

static void note_llama_cpps(const fr_arguments *args) {
    names n = {.length = 0};
    for (size_t i = 0; i < args->harmless_count; i++) add(&n, args->harmless[i]);
    if (n.length) fr_note("%s: for llama.cpp; nothing here depends on it", n.list);
}

/* A batch's lines may have temperatures of their own; where --temp 0 is given it is no mistake. */
static void note_draws(const fr_arguments *args) {
    names n = {.length = 0};
    if (args->verb->bit == FR_VERB_BATCH || args->given[FR_ARG_TEMP] || fr_arguments_draw(args)) return;
    for (int arg = 0; arg < FR_ARG_COUNT; arg++)
        if (args->given[arg] && fr_option_table[arg].draws) add(&n, args->name[arg]);
    if (n.length) fr_note("%s: nothing is drawn without --temp above 0, so that this changes nothing", n.list);
}

void fr_option_notes(const fr_arguments *args) {
    if (args->given[FR_ARG_QUIET]) return;
    note_llama_cpps(args);
    note_draws(args);
}
