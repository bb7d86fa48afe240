/* Sets options that are words: instruction sets, cache types, draft methods, files, biases and samplers.
 *
 * In: an option and its text. Out: fr_options (base/options.h); an unknown word is FR_USAGE. */
#include <errno.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "base/word_list.h"
#include "forerun_lab.h"
#include "formats/pre_tokenizers.h"
#include "kernels/cpu.h"
#include "src/engine/cache/kv.h"
#include "src/engine/draft/draft_list.h"

static fr_status set_isa(fr_options *options, const char *word) {
    if (fr_isa_from_word(word) == FR_ISA_WORDS)
        return fr_fail(FR_USAGE, "isa %s is not known (%s)", word, fr_list_words(fr_isa_word).text);
    snprintf(options->isa, sizeof options->isa, "%s", word);
    return FR_OK;
}

static fr_status set_kv_type(fr_options *options, fr_option option, const char *word) {
    fr_dtype type = fr_kv_type_from_word(word);
    if (type == FR_DTYPE_COUNT)
        return fr_fail(FR_USAGE, "%s %s is not known (%s)", fr_options_bounds[option].name, word,
                       fr_list_words(fr_kv_type_word).text);
    options->value[option] = type;
    return FR_OK;
}

static fr_status set_spec_type(fr_options *options, const char *words) {
    FR_TRY(fr_draft_words_check(words));
    if (strlen(words) >= sizeof options->spec_type) return fr_fail(FR_USAGE, "spec-type: too many words");
    snprintf(options->spec_type, sizeof options->spec_type, "%s", words);
    return FR_OK;
}

static fr_status set_path(fr_option option, const char *path, char *place, size_t size) {
    if (strlen(path) >= size)
        return fr_fail(FR_USAGE, "%s: a path of more than %zu bytes", fr_options_bounds[option].name, size - 1);
    snprintf(place, size, "%s", path);
    return FR_OK;
}

static fr_status set_draft_times(fr_options *options, const char *folder) {
    if (strcmp(folder, "off") == 0) folder = "";
    return set_path(FR_OPT_DRAFT_TIMES, folder, options->draft_times, sizeof options->draft_times);
}

static fr_status set_tokenizer_pre(fr_options *options, const char *word) {
    const char *name;
    for (size_t i = 0; (name = fr_pre_tokenizer_word(i)) && strcmp(name, word) != 0;) i++;
    if (!name)
        return fr_fail(FR_USAGE, "tokenizer-pre %.99s is not known (%.380s)", word,
                       fr_list_words(fr_pre_tokenizer_word).text);
    snprintf(options->tokenizer_pre, sizeof options->tokenizer_pre, "%s", word);
    return FR_OK;
}

static fr_status set_accept(fr_options *options, const char *word) {
    bool rejection = strcmp(word, "rejection") == 0;
    if (!rejection && strcmp(word, "gumbel") != 0)
        return fr_fail(FR_USAGE, "accept %s is not known (gumbel rejection)", word);
    options->value[FR_OPT_ACCEPT] = rejection ? FR_ACCEPT_REJECTION : FR_ACCEPT_GUMBEL;
    return FR_OK;
}

/* Reads "id+x", "id-x" or "id:x" at the beginning of a text. Gives the place after it, or NULL if there is none. */
static const char *read_bias(const char *text, fr_logit_bias *bias) {
    char *end;
    errno = 0;
    long id = strtol(text, &end, 10);
    if (end == text || *text < '0' || *text > '9' || errno || id > INT32_MAX) return NULL;
    text = *end == ':' ? end + 1 : end;
    if (end == text && *text != '+' && *text != '-') return NULL;
    /* strtod would skip white space; strchr also finds the NUL at the end of the text */
    if (strchr(" \t\n\v\f\r", *text)) return NULL;
    double value = strtod_l(text, &end, newlocale(LC_ALL_MASK, "C", (locale_t)0));
    if (end == text || isnan(value) || value > FLT_MAX || (value < -FLT_MAX && !isinf(value))) return NULL;
    *bias = (fr_logit_bias){(int32_t)id, (float)value};
    return end;
}

/* Adds a list of biases. If one of them is wrong, adds none of them. */
static fr_status add_biases(fr_options *options, const char *list) {
    size_t count = options->bias_count;
    for (const char *at = list; at; at = *at == ',' ? at + 1 : NULL) {
        fr_logit_bias bias;
        const char *end = read_bias(at, &bias);
        if (!end || (*end && *end != ','))
            return fr_fail(FR_USAGE, "logit-bias %.60s: not a list such as 15+1.5,20-1,30-inf", at);
        if (count == FR_BIAS_MAX) return fr_fail(FR_USAGE, "logit-bias: at most %zu ids", FR_BIAS_MAX);
        if ((count & (count - 1)) == 0) { /* the capacity is a power of two, and all of it is used */
            size_t room = (count ? 2 * count : 1) * sizeof bias;
            fr_logit_bias *more = realloc(options->biases, room);
            if (!more) return fr_fail_memory("logit biases", room);
            options->biases = more;
        }
        options->biases[count++] = bias;
        at = end;
    }
    options->bias_count = count;
    return FR_OK;
}

/* -------------------------------------------------------------------------------------------------------- samplers */

static const struct {
    const char *name; /* underscores may be left out or be written as hyphens */
    const char *letter;
    fr_filter filter; /* FR_FILTER_COUNT: forerun does not have this sampler */
} samplers[] = {
#define FR_SAMPLER(id, word, letter, run, drops_best, works) {word, letter, FR_FILTER_##id},
#include "samplers.def"
    {"infill", "i", FR_FILTER_COUNT},     {"adaptive_p", "a", FR_FILTER_COUNT}, {"typ", "", FR_FILTER_TYPICAL},
    {"typical_p", "", FR_FILTER_TYPICAL}, {"nucleus", "", FR_FILTER_TOP_P},     {"temp", "", FR_FILTER_TEMPERATURE},
};
enum { SAMPLERS = sizeof samplers / sizeof *samplers };

static bool is_name(const char *name, const char *text, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '_' || text[i] == '-') continue;
        char lower = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] - 'A' + 'a') : text[i];
        name += *name == '_';
        if (lower != *name++) return false;
    }
    return *name == 0;
}

/* Finds a sampler by its name, or by its letter if the text has length 1. Returns SAMPLERS if there is none. */
static size_t find_sampler(const char *text, size_t length) {
    for (size_t i = 0; i < SAMPLERS; i++)
        if (is_name(samplers[i].name, text, length) || (length == 1 && *samplers[i].letter == *text)) return i;
    return SAMPLERS;
}

static const char *sampler_word(size_t index) {
    return index < FR_FILTER_NAMED ? fr_sampler_names[index].word : NULL;
}

/* Adds the next sampler to the order. Penalties and DRY must come first: they change logits, and logits must be changed
 * before any token is removed. */
static fr_status add_sampler(fr_options *options, const char *text, size_t length) {
    size_t at = find_sampler(text, length);
    int shown = length < 40 ? (int)length : 40;
    if (at == SAMPLERS)
        return fr_fail(FR_USAGE, "samplers: %.*s is not known (%s)", shown, text, fr_list_words(sampler_word).text);
    fr_filter filter = samplers[at].filter, last = FR_FILTER_COUNT;
    if (filter == FR_FILTER_COUNT) return fr_fail(FR_UNBUILT, "samplers: %.*s is not built", shown, text);
    for (size_t i = 0; i < options->filter_count; i++) {
        last = options->filters[i];
        if (last == filter) return fr_fail(FR_USAGE, "samplers: %.*s is named twice", shown, text);
    }
    bool first = filter == FR_FILTER_PENALTIES || filter == FR_FILTER_DRY;
    if (first && last != FR_FILTER_COUNT && last >= filter)
        return fr_fail(FR_USAGE, "samplers: penalties and then dry can only stand in front");
    options->filters[options->filter_count++] = (uint8_t)filter;
    return FR_OK;
}

/* Sets the order of samplers. The text has the samplers' names with ; between them, or their letters. A failure changes
 * nothing. */
static fr_status set_samplers(fr_options *options, const char *text) {
    fr_options changed = *options;
    size_t length = strlen(text), step;
    bool letters = length && !strchr(text, ';') && find_sampler(text, length) == SAMPLERS;
    changed.filter_count = 0;
    for (size_t i = 0; letters && i < length; i++) letters = find_sampler(text + i, 1) < SAMPLERS;
    for (const char *at = text; at < text + length || at == text; at += step + !letters) {
        step = letters ? 1 : strcspn(at, ";");
        FR_TRY(add_sampler(&changed, at, step));
    }
    changed.filters_given = true;
    *options = changed;
    return FR_OK;
}

const char *fr_lab_sampler(const fr_options *options, size_t index) {
    bool given = options && options->filters_given;
    if (index >= (given ? options->filter_count : FR_FILTER_NAMED)) return NULL;
    return sampler_word(given ? options->filters[index] : index);
}

static fr_status add_breaker(fr_options *options, const char *text) {
    fr_breakers *breakers = &options->breakers;
    if (strcmp(text, "none") == 0) {
        *breakers = (fr_breakers){.given = true};
        return FR_OK;
    }
    if (!*text || strlen(text) > FR_BREAKER_SIZE_MAX)
        return fr_fail(FR_USAGE, "dry-sequence-breaker: a text of 1 to %d bytes", FR_BREAKER_SIZE_MAX);
    if (breakers->count == FR_BREAKERS_MAX)
        return fr_fail(FR_USAGE, "dry-sequence-breaker: at most %d texts", FR_BREAKERS_MAX);
    snprintf(breakers->texts[breakers->count++], FR_BREAKER_SIZE_MAX + 1, "%s", text);
    breakers->given = true;
    return FR_OK;
}

fr_status fr_options_set_text(fr_options *options, fr_option option, const char *value) {
    bool kv = option == FR_OPT_KV_K || option == FR_OPT_KV_V;
    if (!options || !value) return fr_fail_null("fr_options_set_text", "options and a text");
    if (option == FR_OPT_ISA) return set_isa(options, value);
    if (option == FR_OPT_SPEC_TYPE) return set_spec_type(options, value);
    if (kv) return set_kv_type(options, option, value);
    if (option == FR_OPT_DRAFT_HEAD) return set_path(option, value, options->draft_head, sizeof options->draft_head);
    if (option == FR_OPT_DRAFT_TIMES) return set_draft_times(options, value);
    if (option == FR_OPT_MMPROJ) return set_path(option, value, options->mmproj, sizeof options->mmproj);
    if (option == FR_OPT_CHAT_TEMPLATE)
        return set_path(option, value, options->chat_template, sizeof options->chat_template);
    if (option == FR_OPT_TOKENIZER_PRE) return set_tokenizer_pre(options, value);
    if (option == FR_OPT_ACCEPT) return set_accept(options, value);
    if (option == FR_OPT_LOGIT_BIAS) return add_biases(options, value);
    if (option == FR_OPT_SAMPLERS) return set_samplers(options, value);
    if (option == FR_OPT_DRY_SEQUENCE_BREAKER) return add_breaker(options, value);
    if (!fr_option_name(option)) return fr_fail(FR_USAGE, "%d is no option", (int)option);
    return fr_fail(FR_USAGE, "%s takes a number, not a text", fr_option_name(option));
}
