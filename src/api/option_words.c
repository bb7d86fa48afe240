/* Settings that are words: those of instruction sets, cache types, draft methods, files and biases.
 *
 * In: an option and its text. Out: fr_options (base/options.h); a word that means nothing is FR_USAGE. */
#include <errno.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "kernels/cpu.h"
#include "src/cache/kv.h"
#include "src/draft/draft_list.h"

static fr_status set_isa(fr_options *options, const char *word) {
    for (size_t i = 0; fr_isa_word(i); i++) {
        if (strcmp(fr_isa_word(i), word) != 0) continue;
        snprintf(options->isa, sizeof options->isa, "%s", word);
        return FR_OK;
    }
    return fr_fail(FR_USAGE, "isa %s is not known (scalar avx2 avxvnni avx512 avx512vnni amx neon dotprod i8mm)", word);
}

static fr_status set_kv_type(fr_options *options, fr_option option, const char *word) {
    fr_dtype type = fr_kv_type_from_word(word);
    if (type == FR_DTYPE_COUNT)
        return fr_fail(FR_USAGE, "%s %s is not known (f32 f16 bf16 q8_0 q4_0)", fr_option_name(option), word);
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
        return fr_fail(FR_USAGE, "%s: a path of more than %zu bytes", fr_option_name(option), size - 1);
    snprintf(place, size, "%s", path);
    return FR_OK;
}

static fr_status set_accept(fr_options *options, const char *word) {
    bool rejection = strcmp(word, "rejection") == 0;
    if (!rejection && strcmp(word, "gumbel") != 0)
        return fr_fail(FR_USAGE, "accept %s is not known (gumbel rejection)", word);
    options->value[FR_OPT_ACCEPT] = rejection ? FR_ACCEPT_REJECTION : FR_ACCEPT_GUMBEL;
    return FR_OK;
}

/* "id+x", "id-x" or "id:x" at the beginning of a text; where it ends, or NULL. */
static const char *read_bias(const char *text, fr_logit_bias *bias) {
    char *end;
    errno = 0;
    long id = strtol(text, &end, 10);
    if (end == text || *text < '0' || *text > '9' || errno || id > INT32_MAX) return NULL;
    text = *end == ':' ? end + 1 : end;
    if (end == text && *text != '+' && *text != '-') return NULL;
    if (strchr(" \t\n\v\f\r", *text)) return NULL; /* which strtod would pass by, and the end of the text */
    double value = strtod_l(text, &end, newlocale(LC_ALL_MASK, "C", (locale_t)0));
    if (end == text || isnan(value) || value > FLT_MAX || (value < -FLT_MAX && !isinf(value))) return NULL;
    *bias = (fr_logit_bias){(int32_t)id, (float)value};
    return end;
}

/* All of a list, or nothing of it. */
static fr_status add_biases(fr_options *options, const char *list) {
    size_t count = options->bias_count;
    for (const char *at = list; at; at = *at == ',' ? at + 1 : NULL) {
        fr_logit_bias bias;
        at = read_bias(at, &bias);
        if (!at || (*at && *at != ','))
            return fr_fail(FR_USAGE, "logit-bias %s: not a list such as 15+1.5,20-1,30-inf", list);
        if (count == FR_BIAS_MAX) return fr_fail(FR_USAGE, "logit-bias: at most %d ids", FR_BIAS_MAX);
        options->biases[count++] = bias;
    }
    options->bias_count = count;
    return FR_OK;
}

fr_status fr_options_set_text(fr_options *options, fr_option option, const char *value) {
    bool kv = option == FR_OPT_KV_K || option == FR_OPT_KV_V;
    if (!options || !value) return fr_fail_null("fr_options_set_text", "options and a text");
    if (option == FR_OPT_ISA) return set_isa(options, value);
    if (option == FR_OPT_SPEC_TYPE) return set_spec_type(options, value);
    if (kv) return set_kv_type(options, option, value);
    if (option == FR_OPT_MMPROJ)
        return set_path(option, value, options->mmproj, sizeof options->mmproj);
    if (option == FR_OPT_CHAT_TEMPLATE)
        return set_path(option, value, options->chat_template, sizeof options->chat_template);
    if (option == FR_OPT_ACCEPT) return set_accept(options, value);
    if (option == FR_OPT_LOGIT_BIAS) return add_biases(options, value);
    if (!fr_option_name(option)) return fr_fail(FR_USAGE, "%d is no option", (int)option);
    return fr_fail(FR_USAGE, "%s takes a number, not a text", fr_option_name(option));
}
