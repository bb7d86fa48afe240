/* Gives the values of options as texts: see fr_options_get_text of forerun.h.
 *
 * In: options (base/options.h). Out: the word, path or list that sets the same value again. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "base/text_buffer.h"
#include "src/engine/cache/kv.h"

static const char *kv_word(int64_t type) {
    const char *word = type < 0 ? NULL : fr_kv_type_word(fr_kv_type_index((fr_dtype)type));
    return word ? word : "";
}

/* Adds a bias as "5+1.5". Nine digits identify every float. The decimal point is a dot in every locale. */
static void add_bias(fr_text_buffer *list, const fr_logit_bias *bias) {
    char text[64], *to = text;
    snprintf(text, sizeof text, "%+.9g", (double)bias->bias);
    for (const char *from = text; *from; from++) {
        bool plain = isalnum((unsigned char)*from) || *from == '+' || *from == '-';
        if (plain)
            *to++ = *from;
        else if (to > text && to[-1] != '.')
            *to++ = '.';
    }
    *to = 0;
    char id[16];
    snprintf(id, sizeof id, "%s%d", list->length ? "," : "", (int)bias->id);
    fr_text_append_string(list, id);
    fr_text_append_string(list, text);
}

/* Adds the samplers as letters, in their order and in the form in which the option is set. Adds nothing if the order is
 * the default. */
static void add_order(fr_text_buffer *text, const fr_options *options) {
    for (size_t i = 0; options->filters_given && i < options->filter_count; i++)
        fr_text_append(text, fr_sampler_names[options->filters[i]].letter, 1);
}

/* Adds the breakers, separated by NULs. Adds nothing if they are the default ones. */
static void add_breakers(fr_text_buffer *text, const fr_breakers *breakers) {
    if (breakers->given && breakers->count == 0) fr_text_append_string(text, "none");
    for (size_t i = 0; i < breakers->count; i++) {
        if (i) fr_text_append(text, "", 1);
        fr_text_append_string(text, breakers->texts[i]);
    }
}

static fr_status write_text(const fr_options *options, fr_option option, fr_text_buffer *text) {
    switch ((int)option) {
    case FR_OPT_ISA: fr_text_append_string(text, options->isa); break;
    case FR_OPT_SPEC_TYPE: fr_text_append_string(text, options->spec_type); break;
    case FR_OPT_DRAFT_HEAD: fr_text_append_string(text, options->draft_head); break;
    case FR_OPT_DRAFT_TIMES: fr_text_append_string(text, options->draft_times); break;
    case FR_OPT_MMPROJ: fr_text_append_string(text, options->mmproj); break;
    case FR_OPT_CHAT_TEMPLATE: fr_text_append_string(text, options->chat_template); break;
    case FR_OPT_TOKENIZER_PRE: fr_text_append_string(text, options->tokenizer_pre); break;
    case FR_OPT_KV_K:
    case FR_OPT_KV_V: fr_text_append_string(text, kv_word(options->value[option])); break;
    case FR_OPT_ACCEPT:
        fr_text_append_string(text, options->value[option] == FR_ACCEPT_REJECTION ? "rejection" : "gumbel");
        break;
    case FR_OPT_LOGIT_BIAS:
        for (size_t i = 0; i < options->bias_count; i++) add_bias(text, &options->biases[i]);
        break;
    case FR_OPT_SAMPLERS: add_order(text, options); break;
    case FR_OPT_DRY_SEQUENCE_BREAKER: add_breakers(text, &options->breakers); break;
    default: return fr_fail(FR_USAGE, "option %d takes no text", (int)option);
    }
    return fr_text_check(text, "an option");
}

static fr_status hand_out(const fr_text_buffer *from, char *text, size_t size, size_t *length) {
    *length = from->length;
    if (size <= from->length)
        return fr_fail(FR_USAGE, "fr_options_get_text: the text takes %zu bytes, not %zu", from->length + 1, size);
    memcpy(text, from->length ? from->bytes : "", from->length + 1);
    return FR_OK;
}

fr_status fr_options_get_text(const fr_options *options, fr_option option, char *text, size_t size, size_t *length) {
    size_t unasked;
    length = length ? length : &unasked;
    *length = 0;
    if (size && !text) return fr_fail_null("fr_options_get_text", "room for the text");
    if (size) *text = 0;
    fr_options resolved = fr_options_resolve(options);
    fr_text_buffer all = {0};
    fr_status status = write_text(&resolved, option, &all);
    if (status == FR_OK) status = hand_out(&all, text, size, length);
    fr_text_free(&all);
    return status;
}
