/* Single rules that rewrite a text: see text_rules.h.
 *
 * In: a rule and a text of any bytes. Out: what it makes of it, appended; bytes that are no UTF-8 stay as they are. */
#include <string.h>
#include <utf8proc.h>

#include "base/error.h"
#include "base/unicode_form.h"
#include "src/text/byte_level.h"
#include "src/text/text_rules.h"

static void append_character(int32_t codepoint, fr_text_buffer *out) {
    utf8proc_uint8_t bytes[4];
    fr_text_append(out, bytes, (size_t)utf8proc_encode_char(codepoint, bytes));
}

/* ------------------------------------------------------------------------------------------- character by character */

/* Appends what a character becomes; false: it goes. */
typedef bool rewrite_character(int32_t codepoint, fr_text_buffer *out);

static bool keep(int32_t codepoint, fr_text_buffer *out) {
    append_character(codepoint, out);
    return true;
}

/* The one capital whose small letter is two characters is U+0130. */
static bool lowercase(int32_t codepoint, fr_text_buffer *out) {
    append_character(codepoint == 0x130 ? 'i' : fr_lower(codepoint), out);
    if (codepoint == 0x130) append_character(0x307, out);
    return true;
}

static bool drop_mark(int32_t codepoint, fr_text_buffer *out) {
    return !fr_is_mark(codepoint) && keep(codepoint, out);
}

static bool drop_nonspacing(int32_t codepoint, fr_text_buffer *out) {
    return !fr_is_nonspacing(codepoint) && keep(codepoint, out);
}

static bool is_in(int32_t codepoint, int32_t low, int32_t high) {
    return codepoint >= low && codepoint <= high;
}

static bool nmt(int32_t c, fr_text_buffer *out) {
    if (is_in(c, 1, 8) || c == 0xB || is_in(c, 0xE, 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F) return false;
    bool space = is_in(c, 9, 0xD) || c == 0x1680 || is_in(c, 0x200B, 0x200F) || is_in(c, 0x2028, 0x2029) ||
                 c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
    return keep(space ? ' ' : c, out);
}

static bool clean(int32_t c, fr_text_buffer *out) {
    bool space = fr_is_space(c), line = c == '\t' || c == '\n' || c == '\r';
    if (c == 0 || c == 0xFFFD || (fr_is_control(c) && !line)) return false;
    return keep(space ? ' ' : c, out);
}

/* The blocks that BERT calls Chinese. */
static bool space_chinese(int32_t c, fr_text_buffer *out) {
    bool chinese = is_in(c, 0x4E00, 0x9FFF) || is_in(c, 0x3400, 0x4DBF) || is_in(c, 0x20000, 0x2A6DF) ||
                   is_in(c, 0x2A700, 0x2B73F) || is_in(c, 0x2B740, 0x2B81F) || is_in(c, 0x2B920, 0x2CEAF) ||
                   is_in(c, 0xF900, 0xFAFF) || is_in(c, 0x2F800, 0x2FA1F);
    if (chinese) fr_text_append(out, " ", 1);
    append_character(c, out);
    if (chinese) fr_text_append(out, " ", 1);
    return true;
}

/* kept_first: whether the first one did not go. */
static void rewrite_each(fr_text text, rewrite_character *rewrite, bool *kept_first, fr_text_buffer *out) {
    const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)text.bytes;
    *kept_first = true;
    for (size_t at = 0, step; at < text.length && out->status == FR_OK; at += step) {
        utf8proc_int32_t codepoint;
        utf8proc_ssize_t valid = utf8proc_iterate(bytes + at, (utf8proc_ssize_t)(text.length - at), &codepoint);
        step = valid > 0 ? (size_t)valid : 1;
        if (valid <= 0)
            fr_text_append(out, text.bytes + at, 1);
        else if (!rewrite(codepoint, out) && at == 0)
            *kept_first = false;
    }
}

static rewrite_character *const by_character[] = {
    [FR_RULE_LOWERCASE] = lowercase,
    [FR_RULE_DROP_MARKS] = drop_mark,
    [FR_RULE_DROP_NONSPACING] = drop_nonspacing,
    [FR_RULE_NMT] = nmt,
    [FR_RULE_CLEAN] = clean,
    [FR_RULE_SPACE_CHINESE] = space_chinese,
};

/* ------------------------------------------------------------------------------------------------------ whole texts */

static void trim(const fr_ready_rule *rule, fr_text text, bool *kept_first, fr_text_buffer *out) {
    size_t begin = rule->left ? fr_skip_space(text.bytes, 0, text.length) : 0;
    size_t end = rule->right ? fr_skip_space_back(text.bytes, text.length, begin) : text.length;
    *kept_first = begin == 0;
    fr_text_append(out, text.bytes + begin, end - begin);
}

static void write_bytes(fr_text text, fr_text_buffer *out) {
    for (size_t i = 0; i < text.length; i++) {
        char character[2];
        fr_text_append(out, character, fr_byte_level_write((unsigned char)text.bytes[i], character));
    }
}

static void put_before(fr_text content, fr_text text, bool puts, fr_text_buffer *out) {
    if (puts) fr_text_append(out, content.bytes, content.length);
    fr_text_append(out, text.bytes, text.length);
}

static bool begins_with(fr_text text, fr_text content) {
    return text.length >= content.length && memcmp(text.bytes, content.bytes, content.length) == 0;
}

typedef struct replacing {
    fr_text text, content;
    bool *kept_first;
    fr_text_buffer *out;
} replacing;

/* What takes the place of several characters counts as the last one's. */
static bool is_one(fr_text text) {
    return fr_first_character(text.bytes, text.length).there >= text.length;
}

static fr_status replace_stretch(void *context, size_t begin, size_t end, bool is_match) {
    const replacing *state = context;
    fr_text stretch = {state->text.bytes + begin, end - begin};
    if (begin == 0 && is_match && end > 0) *state->kept_first = state->content.length > 0 && is_one(stretch);
    if (is_match) stretch = state->content;
    fr_text_append(state->out, stretch.bytes, stretch.length);
    return state->out->status == FR_OK ? FR_OK : fr_text_check(state->out, "normalizer");
}

fr_status fr_rule_rewrite(const fr_ready_rule *rule, fr_text text, bool *first, uint64_t *allowance,
                          fr_text_buffer *out) {
    bool kept_first = true, compatible = rule->kind == FR_RULE_NFKC || rule->kind == FR_RULE_NFKD;
    switch (rule->kind) {
    case FR_RULE_NFC:
    case FR_RULE_NFD:
    case FR_RULE_NFKC:
    case FR_RULE_NFKD:
        fr_unicode_form(text.bytes, text.length, rule->kind == FR_RULE_NFC || rule->kind == FR_RULE_NFKC, compatible,
                        out);
        break;
    case FR_RULE_TRIM: trim(rule, text, &kept_first, out); break;
    case FR_RULE_PRECOMPILED: fr_charsmap_rewrite(&rule->charsmap, text, out); break;
    case FR_RULE_BYTE_CHARACTERS: write_bytes(text, out); break;
    case FR_RULE_PREPEND: put_before(rule->content, text, true, out); break;
    case FR_RULE_PREFIX:
        put_before(rule->content, text, (!rule->first || *first) && !begins_with(text, rule->content), out);
        break;
    case FR_RULE_REPLACE: {
        replacing state = {text, rule->content, &kept_first, out};
        FR_TRY(fr_text_pattern_walk(&rule->pattern, text.bytes, text.length, allowance, replace_stretch, &state));
        break;
    }
    default: rewrite_each(text, by_character[rule->kind], &kept_first, out);
    }
    *first &= kept_first;
    return fr_text_check(out, "normalizer");
}
