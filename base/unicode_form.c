/* Normalizes and classifies characters: see unicode_form.h. */
#include "base/unicode_form.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/unicode_versions.h"

#define DECOMPOSITION_MAX 18 /* codepoints of the longest decomposition, that of U+FDFA */

/* Collects the codepoints of a stretch of valid UTF-8; bytes that are not UTF-8 end it. */
typedef struct codepoint_run {
    int32_t *items, *sorted; /* sorted: a second array that sorting needs */
    size_t count, capacity;
} codepoint_run;

static bool reserve(codepoint_run *run, size_t more) {
    if (run->capacity - run->count >= more) return true;
    size_t capacity = 2 * run->capacity + more;
    int32_t *items = realloc(run->items, capacity * sizeof *items);
    if (items) run->items = items;
    int32_t *sorted = realloc(run->sorted, capacity * sizeof *sorted);
    if (sorted) run->sorted = sorted;
    if (items && sorted) run->capacity = capacity;
    return items && sorted;
}

/* Returns true for a character that is too new for the normalizers inside tokenizers. These normalizers neither
 * decompose the character nor combine it with another one. */
static bool is_unknown(int32_t codepoint) {
    return fr_older_character(codepoint) != codepoint ||
           (fr_unicode_changes(codepoint) & (FR_NO_CLASS | FR_NO_DECOMPOSITION));
}

static utf8proc_propval_t class_of(int32_t codepoint) {
    utf8proc_propval_t class = utf8proc_get_property(codepoint)->combining_class;
    return class == 0 || is_unknown(codepoint) ? 0 : class;
}

/* Sorts the characters [begin, end) by combining class. Characters of the same class keep their order. */
static void sort_marks(codepoint_run *run, size_t begin, size_t end) {
    size_t first[257] = {0};
    for (size_t i = begin; i < end; i++) first[class_of(run->items[i]) + 1]++;
    for (size_t i = 1; i < 257; i++) first[i] += first[i - 1];
    for (size_t i = begin; i < end; i++) run->sorted[first[class_of(run->items[i])]++] = run->items[i];
    memcpy(run->items + begin, run->sorted, (end - begin) * sizeof *run->items);
}

/* Brings combining marks into canonical order: sorts the marks between two characters of class 0. */
static void order_marks(codepoint_run *run) {
    for (size_t begin = 0, end; begin < run->count; begin = end) {
        end = begin + 1;
        if (class_of(run->items[begin]) == 0) continue;
        while (end < run->count && class_of(run->items[end]) != 0) end++;
        if (end - begin > 1) sort_marks(run, begin, end);
    }
}

static void append_codepoints(const codepoint_run *run, size_t count, fr_text_buffer *out) {
    for (size_t i = 0; i < count; i++) {
        utf8proc_uint8_t bytes[4];
        fr_text_append(out, bytes, (size_t)utf8proc_encode_char(run->items[i], bytes));
    }
}

static void flush(codepoint_run *run, bool compose, fr_text_buffer *out) {
    order_marks(run);
    utf8proc_ssize_t count = (utf8proc_ssize_t)run->count;
    if (compose) count = utf8proc_normalize_utf32(run->items, count, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    append_codepoints(run, (size_t)count, out);
    run->count = 0;
}

static bool is_ascii(const char *text, size_t length) {
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)text[i] >= 0x80) return false;
    return true;
}

void fr_unicode_form(const char *text, size_t length, bool compose, bool compatible, fr_text_buffer *out) {
    if (is_ascii(text, length)) {
        fr_text_append(out, text, length);
        return;
    }
    codepoint_run run = {0};
    int options = UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compatible ? UTF8PROC_COMPAT : 0);
    const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)text;
    for (size_t at = 0; at < length && out->status == FR_OK;) {
        utf8proc_int32_t codepoint;
        utf8proc_ssize_t step = utf8proc_iterate(bytes + at, (utf8proc_ssize_t)(length - at), &codepoint);
        if (!reserve(&run, DECOMPOSITION_MAX)) {
            out->status = FR_MEMORY;
        } else if (step > 0 && is_unknown(codepoint)) {
            flush(&run, compose, out);
            run.items[run.count++] = codepoint;
            at += (size_t)step;
        } else if (step > 0) {
            run.count += (size_t)utf8proc_decompose_char(codepoint, run.items + run.count, DECOMPOSITION_MAX,
                                                         (utf8proc_option_t)options, NULL);
            at += (size_t)step;
        } else {
            flush(&run, compose, out);
            fr_text_append(out, text + at++, 1);
        }
    }
    flush(&run, compose, out);
    free(run.items);
    free(run.sorted);
}

/* ------------------------------------------------------------------------------------------------------------ bytes */

/* Lists the ranges of lead bytes and second bytes in UTF-8 (table 3-7 of the Unicode Standard). Bytes after the second
 * are 80 to BF. */
static const struct {
    unsigned char first, last, low, high; /* first to last: range of the lead byte; low to high: range of the second
                                           * byte */
    size_t whole;                         /* bytes of the character */
} sequences[] = {{0x00, 0x7F, 0x00, 0x00, 1}, {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
                 {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
                 {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4}};

fr_character_bytes fr_first_character(const char *text, size_t length) {
    const unsigned char *bytes = (const unsigned char *)text;
    for (size_t i = 0; length > 0 && i < sizeof sequences / sizeof *sequences; i++) {
        if (bytes[0] < sequences[i].first || bytes[0] > sequences[i].last) continue;
        size_t there = 1, whole = sequences[i].whole;
        if (length < 2 || bytes[1] < sequences[i].low || bytes[1] > sequences[i].high)
            return (fr_character_bytes){there, whole};
        while (there < length && there < whole && (bytes[there] & 0xC0) == 0x80) there++;
        return (fr_character_bytes){there, whole};
    }
    return (fr_character_bytes){0};
}

/* ------------------------------------------------------------------------------------------------------- properties */

bool fr_is_space(int32_t codepoint) {
    if (codepoint < 0x80) return codepoint == ' ' || (codepoint >= '\t' && codepoint <= '\r');
    utf8proc_category_t category = utf8proc_category(codepoint);
    return codepoint == 0x85 || category == UTF8PROC_CATEGORY_ZS || category == UTF8PROC_CATEGORY_ZL ||
           category == UTF8PROC_CATEGORY_ZP;
}

/* Returns true for the circled and squared Latin letters, which are alphabetic although their category is symbol. */
static bool is_enclosed_letter(int32_t codepoint) {
    return (codepoint >= 0x24B6 && codepoint <= 0x24E9) || (codepoint >= 0x1F130 && codepoint <= 0x1F149) ||
           (codepoint >= 0x1F150 && codepoint <= 0x1F169) || (codepoint >= 0x1F170 && codepoint <= 0x1F189);
}

static utf8proc_category_t category_of(int32_t codepoint) {
    return utf8proc_category(fr_older_character(codepoint));
}

bool fr_is_word(int32_t codepoint) {
    switch (category_of(codepoint)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC: return true;
    default:
        return codepoint == 0x200C || codepoint == 0x200D || is_enclosed_letter(codepoint) ||
               (fr_unicode_changes(codepoint) & FR_NEW_WORD);
    }
}

bool fr_is_numeric(int32_t codepoint) {
    utf8proc_category_t category = category_of(codepoint);
    return (category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO) ||
           (fr_unicode_changes(codepoint) & FR_NEW_NUMBER);
}

/* Returns true if the character's category is from `first` to `last` in the older Unicode version that the tokenizers
 * use. utf8proc's tables are of a newer version, so two flags correct them. not_yet: flag of characters whose category
 * is in the range only in the newer version. was: flag of characters whose category is in the range only in the older
 * version. */
static bool has_old_category(int32_t codepoint, utf8proc_category_t first, utf8proc_category_t last, unsigned not_yet,
                             unsigned was) {
    utf8proc_category_t category = utf8proc_category(codepoint);
    unsigned changes = fr_unicode_changes(codepoint);
    if (changes & was) return true;
    return category >= first && category <= last && !(changes & not_yet) && fr_older_character(codepoint) == codepoint;
}

bool fr_is_mark(int32_t codepoint) {
    return has_old_category(codepoint, UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_ME, FR_NO_MARK, FR_MARK);
}

bool fr_is_nonspacing(int32_t codepoint) {
    return has_old_category(codepoint, UTF8PROC_CATEGORY_MN, UTF8PROC_CATEGORY_MN, FR_NO_NONSPACING, FR_NONSPACING);
}

bool fr_is_punctuation(int32_t codepoint) {
    if (codepoint < 0x80) /* in ASCII, symbols count as punctuation too */
        return codepoint > ' ' && codepoint < 0x7F && utf8proc_category(codepoint) >= UTF8PROC_CATEGORY_PC;
    return has_old_category(codepoint, UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO, FR_NO_PUNCTUATION, FR_PUNCTUATION);
}

bool fr_is_control(int32_t codepoint) {
    return has_old_category(codepoint, UTF8PROC_CATEGORY_CC, UTF8PROC_CATEGORY_CO, FR_NO_CONTROL, 0);
}

int32_t fr_lower(int32_t codepoint) {
    int32_t lower = utf8proc_tolower(codepoint);
    return lower != codepoint ? lower : fr_newer_lower(codepoint);
}

/* ------------------------------------------------------------------------------------------------------- characters */

int32_t fr_character_before(const char *text, size_t end, size_t *length) {
    for (size_t n = 1; n <= 4 && n <= end; n++) {
        utf8proc_int32_t codepoint;
        const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)text + end - n;
        if (utf8proc_iterate(bytes, (utf8proc_ssize_t)n, &codepoint) != (utf8proc_ssize_t)n) continue;
        *length = n;
        return codepoint;
    }
    *length = 1;
    return -1;
}

int32_t fr_character_at(const char *text, size_t at, size_t end, size_t *length) {
    utf8proc_int32_t codepoint = -1;
    const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)text + at;
    utf8proc_ssize_t n = at < end ? utf8proc_iterate(bytes, (utf8proc_ssize_t)(end - at), &codepoint) : 0;
    *length = n > 0 ? (size_t)n : 1;
    return n > 0 ? codepoint : -1;
}

size_t fr_skip_space_back(const char *text, size_t begin, size_t limit) {
    while (begin > limit) {
        size_t n;
        int32_t before = fr_character_before(text, begin, &n);
        if (before < 0 || !fr_is_space(before) || n > begin - limit) break;
        begin -= n;
    }
    return begin;
}

size_t fr_skip_space(const char *text, size_t at, size_t limit) {
    while (at < limit) {
        size_t n;
        int32_t next = fr_character_at(text, at, limit, &n);
        if (next < 0 || !fr_is_space(next)) break;
        at += n;
    }
    return at;
}
