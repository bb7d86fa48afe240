/* Finds patterns in texts (text_pattern.h). */
#define PCRE2_CODE_UNIT_WIDTH 8

#include "src/language/tokenizer/text_pattern.h"

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/error.h"
#include "base/unicode_form.h"
#include "base/unicode_versions.h"
#include "src/language/tokenizer/onig_pattern.h"

#define SOURCE_MAX 65536
#define MATCH_MAX  50000000 /* limit on the backtracks from one position; the allowance usually ends a match earlier */
#define HEAP_MAX   262144   /* limit on the saved backtracking points, in KiB */

#define COMPILE_OPTIONS (PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | PCRE2_AUTO_CALLOUT)

typedef struct pattern_walk {
    const fr_text_pattern *pattern;
    /* text: the given text; seen: the text against which the expression is matched (see_text) */
    const char *text, *seen;
    size_t length;
    uint64_t *allowance;
    size_t done;     /* end of the part of the text that was passed to `stretch` */
    size_t position; /* the position of the match when count_steps was last called */
    fr_stretch_fn *stretch;
    void *context;
} pattern_walk;

/* Compiles a pattern. written: the pattern in PCRE2's syntax. */
static fr_status compile(fr_text_pattern *pattern, const fr_text_buffer *written, const char *where) {
    int code;
    PCRE2_SIZE offset;
    PCRE2_SPTR text = (PCRE2_SPTR)(written->bytes ? written->bytes : "");
    pattern->regex = pcre2_compile(text, written->length, COMPILE_OPTIONS, &code, &offset, NULL);
    if (!pattern->regex && code == PCRE2_ERROR_HEAP_FAILED) return fr_fail_memory(where, pattern->length);
    if (!pattern->regex) {
        PCRE2_UCHAR reason[128];
        pcre2_get_error_message(code, reason, sizeof reason);
        return fr_fail(FR_INPUT, "%s: the pattern \"%.99s\" is not a regular expression: %s", where, pattern->source,
                       (const char *)reason);
    }
    return FR_OK;
}

fr_status fr_text_pattern_open(fr_text_pattern *pattern, fr_text source, bool regex, bool own, const char *where) {
    *pattern = (fr_text_pattern){.source = malloc(source.length + 1), .length = source.length};
    if (!pattern->source) return fr_fail_memory(where, source.length + 1);
    memcpy(pattern->source, source.bytes, source.length);
    pattern->source[source.length] = 0;
    if (!regex) return FR_OK;
    if (source.length > SOURCE_MAX)
        return fr_fail(FR_INPUT, "%s: the pattern has %zu bytes, which is too long", where, source.length);
    fr_text_buffer written = {0};
    fr_status status = fr_onig_pattern(source, own, where, &written);
    if (status == FR_OK) status = compile(pattern, &written, where);
    fr_text_free(&written);
    return status;
}

void fr_text_pattern_close(fr_text_pattern *pattern) {
    pcre2_code_free(pattern->regex);
    free(pattern->source);
    *pattern = (fr_text_pattern){0};
}

uint64_t fr_text_pattern_allowance(size_t length) {
    return 256 * ((uint64_t)length + 64);
}

/* ---------------------------------------------------------------------------------------------------------- walking */

static fr_status hand_on(pattern_walk *walk, size_t begin, size_t end) {
    if (begin > walk->done) FR_TRY(walk->stretch(walk->context, walk->done, begin, false));
    walk->done = end;
    return walk->stretch(walk->context, begin, end, true);
}

static fr_status hand_rest(const pattern_walk *walk) {
    return walk->done < walk->length ? walk->stretch(walk->context, walk->done, walk->length, false) : FR_OK;
}

static fr_status walk_string(const pattern_walk *walk) {
    size_t at = 0;
    for (const char *found; at < walk->length; at = (size_t)(found - walk->text) + walk->pattern->length) {
        found = memmem(walk->text + at, walk->length - at, walk->pattern->source, walk->pattern->length);
        if (!found) break;
        size_t begin = (size_t)(found - walk->text);
        if (begin > at) FR_TRY(walk->stretch(walk->context, at, begin, false));
        FR_TRY(walk->stretch(walk->context, begin, begin + walk->pattern->length, true));
    }
    return at < walk->length ? walk->stretch(walk->context, at, walk->length, false) : FR_OK;
}

static bool is_of_class(fr_character_class characters, int32_t codepoint) {
    switch (characters) {
    case FR_CHARACTERS_SPACE: return fr_is_space(codepoint);
    case FR_CHARACTERS_WORD: return fr_is_word(codepoint);
    case FR_CHARACTERS_NUMBER: return fr_is_numeric(codepoint);
    default: return fr_is_punctuation(codepoint);
    }
}

static fr_status walk_characters(pattern_walk *walk) {
    const utf8proc_uint8_t *text = (const utf8proc_uint8_t *)walk->text;
    for (size_t at = 0, step; at < walk->length; at += step) {
        utf8proc_int32_t codepoint;
        utf8proc_ssize_t valid = utf8proc_iterate(text + at, (utf8proc_ssize_t)(walk->length - at), &codepoint);
        step = valid > 0 ? (size_t)valid : 1;
        if (valid > 0 && is_of_class(walk->pattern->characters, codepoint)) FR_TRY(hand_on(walk, at, at + step));
    }
    return hand_rest(walk);
}

/* Counts the steps of a match. PCRE2 calls this function before each item of the pattern. So the distance from the
 * position of the last call is the number of bytes that one item has read. */
static int count_steps(pcre2_callout_block *block, void *context) {
    pattern_walk *walk = context;
    size_t position = block->current_position;
    uint64_t cost = 1 + (position > walk->position ? position - walk->position : walk->position - position);
    walk->position = position;
    if (cost > *walk->allowance) return PCRE2_ERROR_CALLOUT;
    *walk->allowance -= cost;
    return 0;
}

static fr_status fail_match(const pattern_walk *walk, int code) {
    PCRE2_UCHAR reason[128];
    if (code == PCRE2_ERROR_NOMEMORY) return fr_fail_memory("a pattern's steps", walk->length);
    pcre2_get_error_message(code, reason, sizeof reason);
    bool endless = code == PCRE2_ERROR_CALLOUT || code == PCRE2_ERROR_MATCHLIMIT || code == PCRE2_ERROR_DEPTHLIMIT ||
                   code == PCRE2_ERROR_HEAPLIMIT;
    return fr_fail(FR_INPUT, "tokenizer pattern \"%.99s\" on a text of %zu bytes: %s", walk->pattern->source,
                   walk->length, endless ? "it takes too many steps" : (const char *)reason);
}

/* Finds all matches within bytes [begin, begin + length), which are valid UTF-8. PCRE2 gets only these bytes, so
 * anchors and look-behinds can't read beyond them. */
static fr_status walk_run(pattern_walk *walk, size_t begin, size_t length, pcre2_match_data *data,
                          pcre2_match_context *limits) {
    const size_t *match = pcre2_get_ovector_pointer(data);
    const unsigned char *run = (const unsigned char *)walk->seen + begin;
    for (size_t from = 0, behind = SIZE_MAX; from <= length;) {
        walk->position = from;
        int code = pcre2_match(walk->pattern->regex, run, length, from, PCRE2_NO_UTF_CHECK, data, limits);
        if (code == PCRE2_ERROR_NOMATCH) break;
        if (code < 0) return fail_match(walk, code);
        /* \K can put the beginning of a match before the place where the search began, or after the match's end */
        if (match[0] < from || match[1] < match[0]) return fail_match(walk, PCRE2_ERROR_BADOFFSET);
        if (match[0] == match[1] && match[1] == behind) {
            for (from++; from < length && (run[from] & 0xC0) == 0x80;) from++;
            continue;
        }
        from = behind = match[1];
        FR_TRY(hand_on(walk, begin + match[0], begin + match[1]));
    }
    return FR_OK;
}

/* Searches each run of valid UTF-8. Bytes that are not UTF-8 match nothing. */
static fr_status walk_runs(pattern_walk *walk, pcre2_match_data *data, pcre2_match_context *limits) {
    const unsigned char *text = (const unsigned char *)walk->seen;
    for (size_t begin = 0, end; begin < walk->length; begin = end + 1) {
        utf8proc_int32_t codepoint;
        utf8proc_ssize_t step = 0;
        for (end = begin; end < walk->length; end += (size_t)step) {
            step = utf8proc_iterate(text + end, (utf8proc_ssize_t)(walk->length - end), &codepoint);
            if (step <= 0) break;
        }
        FR_TRY(walk_run(walk, begin, end - begin, data, limits));
    }
    return hand_rest(walk);
}

/* Makes the text for PCRE2. The installed version of PCRE2 may not know all characters of Unicode. So characters that
 * it may not know are replaced by characters of the same category with the same number of bytes. */
static fr_status see_text(pattern_walk *walk, char **copy) {
    const utf8proc_uint8_t *text = (const utf8proc_uint8_t *)walk->text;
    for (size_t at = 0, step; at < walk->length; at += step) {
        utf8proc_int32_t codepoint, older;
        step = 1;
        if (text[at] < 0xE0) continue;
        utf8proc_ssize_t valid = utf8proc_iterate(text + at, (utf8proc_ssize_t)(walk->length - at), &codepoint);
        if (valid <= 0) continue;
        step = (size_t)valid;
        older = fr_older_character(codepoint);
        if (older == codepoint) continue;
        if (!*copy) {
            walk->seen = *copy = malloc(walk->length);
            if (!*copy) return fr_fail_memory("a text", walk->length);
            memcpy(*copy, walk->text, walk->length);
        }
        utf8proc_encode_char(older, (utf8proc_uint8_t *)*copy + at);
    }
    return FR_OK;
}

static fr_status walk_regex(pattern_walk *walk, pcre2_match_data *data, pcre2_match_context *limits) {
    char *copy = NULL;
    fr_status status = see_text(walk, &copy);
    if (status == FR_OK) status = walk_runs(walk, data, limits);
    free(copy);
    return status;
}

fr_status fr_text_pattern_walk(const fr_text_pattern *pattern, const char *text, size_t length, uint64_t *allowance,
                               fr_stretch_fn *stretch, void *context) {
    pattern_walk walk = {pattern, text, text, length, allowance, 0, 0, stretch, context};
    if (pattern->characters != FR_CHARACTERS_OF_PATTERN) return walk_characters(&walk);
    if (!pattern->regex) return walk_string(&walk);
    pcre2_match_data *data = pcre2_match_data_create(1, NULL);
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    fr_status status = data && limits ? FR_OK : fr_fail_memory("a pattern's state", length);
    if (status == FR_OK) {
        pcre2_set_match_limit(limits, MATCH_MAX);
        pcre2_set_depth_limit(limits, MATCH_MAX);
        pcre2_set_heap_limit(limits, HEAP_MAX);
        pcre2_set_callout(limits, count_steps, &walk);
        status = walk_regex(&walk, data, limits);
    }
    pcre2_match_context_free(limits);
    pcre2_match_data_free(data);
    return status;
}
