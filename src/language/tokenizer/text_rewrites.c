/* Applies single rules that rewrite a text (text_rules.h).
 *
 * In: a rule and a text of any bytes. Out: the rewritten text, appended; bytes that are not UTF-8 stay unchanged. */
#include <string.h>
#include <utf8proc.h>

#include "base/error.h"
#include "base/unicode_form.h"
#include "src/language/tokenizer/byte_level.h"
#include "src/language/tokenizer/text_rules.h"

static void append_character(int32_t codepoint, fr_text_buffer *out) {
    utf8proc_uint8_t bytes[4];
    fr_text_append(out, bytes, (size_t)utf8proc_encode_char(codepoint, bytes));
}

/* ------------------------------------------------------------------------------------------- character by character */

/* Appends the characters that replace a character; there may be none. */
typedef void rewrite_character(int32_t codepoint, fr_text_buffer *out);

/* Converts to lower case. U+0130 is the only upper-case letter whose lower case has two characters. */
static void lowercase(int32_t codepoint, fr_text_buffer *out) {
    append_character(codepoint == 0x130 ? 'i' : fr_lower(codepoint), out);
    if (codepoint == 0x130) append_character(0x307, out);
}

static void drop_mark(int32_t codepoint, fr_text_buffer *out) {
    if (!fr_is_mark(codepoint)) append_character(codepoint, out);
}

static void drop_nonspacing(int32_t codepoint, fr_text_buffer *out) {
    if (!fr_is_nonspacing(codepoint)) append_character(codepoint, out);
}

static bool is_in(int32_t codepoint, int32_t low, int32_t high) {
    return codepoint >= low && codepoint <= high;
}

static void nmt(int32_t c, fr_text_buffer *out) {
    if (is_in(c, 1, 8) || c == 0xB || is_in(c, 0xE, 0x1F) || c == 0x7F || c == 0x8F || c == 0x9F) return;
    bool space = is_in(c, 9, 0xD) || c == 0x1680 || is_in(c, 0x200B, 0x200F) || is_in(c, 0x2028, 0x2029) ||
                 c == 0x2581 || c == 0xFEFF || c == 0xFFFD;
    append_character(space ? ' ' : c, out);
}

static void clean(int32_t c, fr_text_buffer *out) {
    bool space = fr_is_space(c), line = c == '\t' || c == '\n' || c == '\r';
    if (c == 0 || c == 0xFFFD || (fr_is_control(c) && !line)) return;
    append_character(space ? ' ' : c, out);
}

/* Puts spaces around characters that are in one of the blocks which BERT's tokenizer calls Chinese. */
static void space_chinese(int32_t c, fr_text_buffer *out) {
    bool chinese = is_in(c, 0x4E00, 0x9FFF) || is_in(c, 0x3400, 0x4DBF) || is_in(c, 0x20000, 0x2A6DF) ||
                   is_in(c, 0x2A700, 0x2B73F) || is_in(c, 0x2B740, 0x2B81F) || is_in(c, 0x2B920, 0x2CEAF) ||
                   is_in(c, 0xF900, 0xFAFF) || is_in(c, 0x2F800, 0x2FA1F);
    if (chinese) fr_text_append(out, " ", 1);
    append_character(c, out);
    if (chinese) fr_text_append(out, " ", 1);
}

static void rewrite_each(fr_text text, rewrite_character *rewrite, fr_text_buffer *out) {
    const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)text.bytes;
    for (size_t at = 0, step; at < text.length && out->status == FR_OK; at += step) {
        utf8proc_int32_t codepoint;
        utf8proc_ssize_t valid = utf8proc_iterate(bytes + at, (utf8proc_ssize_t)(text.length - at), &codepoint);
        step = valid > 0 ? (size_t)valid : 1;
        if (valid > 0)
            rewrite(codepoint, out);
        else
            fr_text_append(out, text.bytes + at, 1);
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

static size_t less(size_t a, size_t b) {
    return a < b ? a : b;
}

static void trim(const fr_ready_rule *rule, fr_text text, size_t *first, fr_text_buffer *out) {
    size_t begin = rule->left ? fr_skip_space(text.bytes, 0, text.length) : 0;
    size_t end = rule->right ? fr_skip_space_back(text.bytes, text.length, begin) : text.length;
    *first = less(*first > begin ? *first - begin : 0, end - begin);
    fr_text_append(out, text.bytes + begin, end - begin);
}

static void write_bytes(fr_text text, fr_text_buffer *out) {
    for (size_t i = 0; i < text.length; i++) {
        char character[2];
        fr_text_append(out, character, fr_byte_level_write((unsigned char)text.bytes[i], character));
    }
}

/* Puts `content` before a text. The content then counts as part of the text's first character. */
static void put_before(fr_text content, fr_text text, size_t *first, fr_text_buffer *out) {
    if (*first > 0) *first += content.length;
    fr_text_append(out, content.bytes, content.length);
    fr_text_append(out, text.bytes, text.length);
}

static bool begins_with(fr_text text, fr_text content) {
    return text.length >= content.length && memcmp(text.bytes, content.bytes, content.length) == 0;
}

typedef struct replacing {
    fr_text text, content;
    /* first: length of the first character of the text; kept: length of the output into which that character was
     * rewritten */
    size_t first, kept;
    bool behind; /* the first character is done, so further output does not belong to it */
    uint64_t *allowance;
    fr_text_buffer *out;
} replacing;

/* Returns true if a match has at most one character. The text that replaces a match counts as the match's last
 * character. So it counts as the text's first character only if the match has no other character. */
static bool is_one(fr_text text) {
    return fr_first_character(text.bytes, text.length).there >= text.length;
}

static void count_first(replacing *state, size_t begin, size_t end, bool is_match) {
    fr_text stretch = {state->text.bytes + begin, end - begin};
    bool within = begin < state->first && (!is_match || end <= state->first || is_one(stretch));
    if (state->behind) return;
    if (within) state->kept += is_match ? state->content.length : less(end, state->first) - begin;
    state->behind = !within || end > state->first;
}

static fr_status replace_stretch(void *context, size_t begin, size_t end, bool is_match) {
    replacing *state = context;
    fr_text stretch = {state->text.bytes + begin, end - begin};
    count_first(state, begin, end, is_match);
    if (is_match) {
        stretch = state->content;
        if (stretch.length > *state->allowance)
            return fr_fail(FR_INPUT, "the tokenizer's replacements in a text make it too long");
        *state->allowance -= stretch.length;
    }
    fr_text_append(state->out, stretch.bytes, stretch.length);
    return state->out->status == FR_OK ? FR_OK : fr_text_check(state->out, "normalizer");
}

static fr_status replace(const fr_ready_rule *rule, fr_text text, size_t *first, uint64_t *allowance,
                         fr_text_buffer *out) {
    replacing state = {.text = text, .content = rule->content, .first = *first, .allowance = allowance, .out = out};
    FR_TRY(fr_text_pattern_walk(&rule->pattern, text.bytes, text.length, allowance, replace_stretch, &state));
    *first = state.kept;
    return FR_OK;
}

/* Applies rules that rewrite characters, one by one or a few together. */
static void rewrite_characters(const fr_ready_rule *rule, fr_text text, fr_text_buffer *out) {
    bool compatible = rule->kind == FR_RULE_NFKC || rule->kind == FR_RULE_NFKD;
    switch (rule->kind) {
    case FR_RULE_NFC:
    case FR_RULE_NFD:
    case FR_RULE_NFKC:
    case FR_RULE_NFKD:
        fr_unicode_form(text.bytes, text.length, rule->kind == FR_RULE_NFC || rule->kind == FR_RULE_NFKC, compatible,
                        out);
        break;
    case FR_RULE_PRECOMPILED: fr_charsmap_rewrite(&rule->charsmap, text, out); break;
    case FR_RULE_BYTE_CHARACTERS: write_bytes(text, out); break;
    default: rewrite_each(text, by_character[rule->kind], out);
    }
}

fr_status fr_rule_rewrite(const fr_ready_rule *rule, fr_text text, size_t *first, uint64_t *allowance,
                          fr_text_buffer *out) {
    size_t from = out->length;
    switch (rule->kind) {
    case FR_RULE_TRIM: trim(rule, text, first, out); break;
    case FR_RULE_REPLACE: FR_TRY(replace(rule, text, first, allowance, out)); break;
    case FR_RULE_PREPEND: put_before(rule->content, text, first, out); break;
    case FR_RULE_PREFIX: {
        bool puts = (!rule->first || *first > 0) && !begins_with(text, rule->content);
        put_before(puts ? rule->content : (fr_text){"", 0}, text, first, out);
        break;
    }
    default:
        rewrite_characters(rule, (fr_text){text.bytes, *first}, out);
        *first = out->length - from;
        out->length = from;
        rewrite_characters(rule, text, out);
        *first = less(*first, out->length - from);
    }
    return fr_text_check(out, "normalizer");
}
