/* Rewrites Oniguruma's regular expressions for PCRE2 (onig_pattern.h). */
#include "src/language/tokenizer/onig_pattern.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "src/language/tokenizer/onig_set.h"

#define GROUPS_MAX  200 /* limit on nested groups */
#define REPEATS_MAX 1000000
#define SKIPS       "*SKIP)(*FAIL)"

static fr_status read_alternatives(fr_onig_reader *reader, size_t depth, fr_text_buffer *out);

static bool at_end(const fr_onig_reader *reader) {
    return reader->at == reader->end;
}

static bool takes(fr_onig_reader *reader, const char *word) {
    size_t length = strlen(word);
    bool there = (size_t)(reader->end - reader->at) >= length && memcmp(reader->at, word, length) == 0;
    if (there) reader->at += length;
    return there;
}

/* ----------------------------------------------------------------------------------------------------------- groups */

static fr_status read_body(fr_onig_reader *reader, size_t depth, const char *open, fr_text_buffer *out) {
    fr_text_append_string(out, open);
    FR_TRY(read_alternatives(reader, depth + 1, out));
    if (!takes(reader, ")")) return fr_onig_fail(reader, "a group that has no end");
    fr_text_append_string(out, ")");
    return FR_OK;
}

/* Reads the flags i, m and x. Flags before a - are turned on, flags after it are turned off. */
static fr_status read_flags(fr_onig_reader *reader) {
    bool on = true;
    for (; !at_end(reader) && *reader->at != ')' && *reader->at != ':'; reader->at++) {
        switch (*reader->at) {
        case '-': on = false; break;
        case 'i': reader->caseless = on; break;
        case 'm': reader->dot_all = on; break;
        case 'x': reader->extended = on; break;
        default: return fr_onig_refuse(reader, "a group of this kind");
        }
    }
    return at_end(reader) ? fr_onig_fail(reader, "a group that has no end") : FR_OK;
}

/* Reads (?i:...) or (?i). The form (?i) holds for the rest of its group, including the alternatives that follow in the
 * group. */
static fr_status read_options(fr_onig_reader *reader, size_t depth, fr_text_buffer *out) {
    fr_onig_reader before = *reader;
    FR_TRY(read_flags(reader));
    bool rest = *reader->at++ == ')';
    const char *open = reader->caseless ? "(?i:" : "(?-i:";
    if (!rest) {
        FR_TRY(read_body(reader, depth, open, out));
    } else {
        fr_text_append_string(out, open);
        FR_TRY(read_alternatives(reader, depth + 1, out));
        fr_text_append_string(out, ")");
    }
    reader->caseless = before.caseless;
    reader->dot_all = before.dot_all;
    reader->extended = before.extended;
    return FR_OK;
}

static fr_status skip_comment(fr_onig_reader *reader) {
    while (!at_end(reader) && *reader->at != ')')
        reader->at += *reader->at == '\\' && reader->end - reader->at > 1 ? 2 : 1;
    return takes(reader, ")") ? FR_OK : fr_onig_fail(reader, "a comment that has no end");
}

static fr_status skip_name(fr_onig_reader *reader, char close) {
    const char *end = memchr(reader->at, close, (size_t)(reader->end - reader->at));
    if (!end) return fr_onig_fail(reader, "a name that has no end");
    reader->at = end + 1;
    return FR_OK;
}

/* Reads a group after its parenthesis. No group captures its text, because no pattern can refer back to a group. */
static fr_status read_group(fr_onig_reader *reader, size_t depth, fr_text_buffer *out) {
    static const char *const kinds[] = {"?:", "?=", "?!", "?<=", "?<!", "?>"};
    char open[8] = "(";
    if (depth > GROUPS_MAX) return fr_onig_refuse(reader, "too many groups inside of each other");
    if (reader->own && takes(reader, SKIPS)) {
        fr_text_append_string(out, "(" SKIPS);
        return FR_OK;
    }
    if (!at_end(reader) && *reader->at == '*') return fr_onig_refuse(reader, "a callout");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (!takes(reader, kinds[i])) continue;
        memcpy(open + 1, kinds[i], strlen(kinds[i]) + 1);
        return read_body(reader, depth, open, out);
    }
    if (takes(reader, "?#")) return skip_comment(reader);
    if (takes(reader, "?<")) {
        FR_TRY(skip_name(reader, '>'));
        return read_body(reader, depth, "(?:", out);
    }
    return takes(reader, "?") ? read_options(reader, depth, out) : read_body(reader, depth, "(?:", out);
}

/* ------------------------------------------------------------------------------------------------------------ atoms */

static void append_boundary(bool negated, fr_text_buffer *out) {
    const char *word = fr_onig_word;
    const char *parts[] = {
        "(?:(?<=", word, negated ? ")(?=" : ")(?!", word, ")|(?<!", word, negated ? ")(?!" : ")(?=", word, "))"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) fr_text_append_string(out, parts[i]);
}

/* Returns true if some single letter, such as a ligature, equals these two letters when case is ignored. */
static bool folds_together(char before, int32_t codepoint) {
    static const char *const pairs[] = {"ss", "ff", "fi", "fl", "st"};
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if ((before | 0x20) == pairs[i][0] && (codepoint | 0x20) == pairs[i][1]) return true;
    return false;
}

/* Appends a literal character. before: the literal character directly before it; 0: there is none. */
static fr_status append_literal(fr_onig_reader *reader, int32_t codepoint, char *before, fr_text_buffer *out) {
    if (reader->caseless && codepoint >= 0x80)
        return fr_onig_refuse(reader, "a letter outside ASCII whose case is ignored");
    if (reader->caseless && folds_together(*before, codepoint))
        return fr_onig_refuse(reader, "letters whose case is ignored and that a ligature would match");
    *before = codepoint < 0x80 ? (char)codepoint : 0;
    fr_onig_literal(codepoint, out);
    return FR_OK;
}

static const struct {
    char letter;
    const char *text;
} anchors[] = {
    {'A', "\\A"},
    {'z', "\\z"},
    {'Z', "(?=\\x{a}?\\z)"},
    {'R', "(?>\\r\\n|[\\x{a}-\\x{d}\\x{85}\\x{2028}\\x{2029}])"},
    {'N', "[^\\x{a}]"},
    {'O', "(?s:.)"},
};

/* Reads an escape after its backslash. */
static fr_status read_escape(fr_onig_reader *reader, char *before, fr_text_buffer *out) {
    int32_t codepoint;
    bool found;
    char c, construct[] = "\\?";
    FR_TRY(fr_onig_escaped(reader, &codepoint));
    if (codepoint >= 0) return append_literal(reader, codepoint, before, out);
    *before = 0;
    FR_TRY(fr_onig_class(reader, out, &found));
    if (found) return FR_OK;
    c = *reader->at++;
    for (size_t i = 0; i < sizeof anchors / sizeof *anchors; i++) {
        if (anchors[i].letter != c) continue;
        fr_text_append_string(out, anchors[i].text);
        return FR_OK;
    }
    if (c == 'b' || c == 'B') {
        append_boundary(c == 'B', out);
        return FR_OK;
    }
    construct[1] = c;
    bool refers = c == 'k' || c == 'g' || (c >= '1' && c <= '9');
    return fr_onig_refuse(reader, refers ? "a part that refers back to a group" : construct);
}

static fr_status read_atom(fr_onig_reader *reader, size_t depth, char *before, fr_text_buffer *out) {
    int32_t codepoint;
    char c = *reader->at;
    if (!strchr("\\[(.^$*+?", c)) {
        FR_TRY(fr_onig_character(reader, &codepoint));
        return append_literal(reader, codepoint, before, out);
    }
    reader->at++;
    if (c == '\\') return read_escape(reader, before, out);
    *before = 0;
    switch (c) {
    case '[': return fr_onig_set(reader, out);
    case '(': return read_group(reader, depth, out);
    case '.': fr_text_append_string(out, reader->dot_all ? "(?s:.)" : "[^\\x{a}]"); return FR_OK;
    case '^': fr_text_append_string(out, "(?:\\A|(?<=\\x{a})(?!\\z))"); return FR_OK;
    case '$': fr_text_append_string(out, "(?=\\x{a}|\\z)"); return FR_OK;
    default: return fr_onig_fail(reader, "nothing to repeat");
    }
}

/* ------------------------------------------------------------------------------------------------------ quantifiers */

/* Reads digits, and gives the number of digits. If the value is too large for an interval, it stays too large, and does
 * not overflow. */
static size_t read_number(const char **at, const char *end, long *number) {
    const char *begin = *at;
    for (*number = 0; *at < end && **at >= '0' && **at <= '9'; ++*at)
        *number = *number > REPEATS_MAX ? *number : 10 * *number + **at - '0';
    return (size_t)(*at - begin);
}

/* Reads {n}, {n,}, {,m} or {n,m}, and moves past it. Returns false if the text has none of these forms; the brace is
 * then literal. *most: -1 if there is no limit. */
static bool read_interval(fr_onig_reader *reader, long *least, long *most) {
    const char *at = reader->at + 1;
    size_t low = read_number(&at, reader->end, least), high = 0;
    bool two = at < reader->end && *at == ',';
    *most = *least;
    if (two) {
        at++;
        high = read_number(&at, reader->end, most);
        if (high == 0) *most = -1;
    }
    if (low + high == 0 || at == reader->end || *at != '}') return false;
    reader->at = at + 1;
    return true;
}

/* Encloses everything from offset `start` on in a group. */
static fr_status enclose(size_t start, fr_text_buffer *out) {
    fr_text_append_string(out, "(?:)");
    FR_TRY(fr_text_check(out, "a pattern"));
    memmove(out->bytes + start + 3, out->bytes + start, out->length - start - 4);
    memcpy(out->bytes + start, "(?:", 3);
    out->bytes[out->length - 1] = ')';
    return FR_OK;
}

/* Reads a quantifier, if there is one. In Oniguruma a + after an interval, or a ? after {n}, is a second quantifier. So
 * this call does not read such a + or ?. */
static fr_status read_quantifier(fr_onig_reader *reader, size_t start, bool again, bool *found, fr_text_buffer *out) {
    char text[48];
    long least = 0, most = 0;
    bool simple = !at_end(reader) && strchr("*+?", *reader->at);
    *found = simple || (!at_end(reader) && *reader->at == '{' && read_interval(reader, &least, &most));
    if (!*found) return FR_OK;
    if (again) FR_TRY(enclose(start, out));
    if (simple) {
        fr_text_append(out, reader->at++, 1);
        const char *kind = takes(reader, "?") ? "?" : takes(reader, "+") ? "+" : "";
        fr_text_append_string(out, kind);
        return FR_OK;
    }
    if (most >= 0 && most < least) return fr_onig_refuse(reader, "an interval that ends before it begins");
    snprintf(text, sizeof text, most < 0 ? "{%ld,}" : "{%ld,%ld}", least, most);
    fr_text_append_string(out, text);
    if (most != least && takes(reader, "?")) fr_text_append_string(out, "?");
    return FR_OK;
}

/* -------------------------------------------------------------------------------------------- alternatives, pattern */

static void skip_blanks(fr_onig_reader *reader) {
    while (reader->extended && !at_end(reader) && strchr(" \t\n\r\f\v#", *reader->at)) {
        const char *line = memchr(reader->at, '\n', (size_t)(reader->end - reader->at));
        reader->at = *reader->at != '#' ? reader->at + 1 : line ? line + 1 : reader->end;
    }
}

static fr_status read_term(fr_onig_reader *reader, size_t depth, char *before, fr_text_buffer *out) {
    size_t start = out->length;
    FR_TRY(read_atom(reader, depth, before, out));
    skip_blanks(reader);
    for (bool again = false, found = true; found; again = true) {
        FR_TRY(read_quantifier(reader, start, again, &found, out));
        if (found) *before = 0;
        skip_blanks(reader);
    }
    return fr_text_check(out, "a pattern");
}

/* Reads alternatives up to the parenthesis that ends the group, or the end of the pattern. */
static fr_status read_alternatives(fr_onig_reader *reader, size_t depth, fr_text_buffer *out) {
    char before = 0;
    skip_blanks(reader);
    while (!at_end(reader) && *reader->at != ')') {
        bool other = takes(reader, "|");
        if (other) before = 0;
        if (other)
            fr_text_append_string(out, "|");
        else
            FR_TRY(read_term(reader, depth, &before, out));
        skip_blanks(reader);
    }
    return FR_OK;
}

fr_status fr_onig_pattern(fr_text pattern, bool own, const char *where, fr_text_buffer *out) {
    fr_onig_reader reader = {.pattern = pattern, .at = pattern.bytes, .end = pattern.bytes + pattern.length};
    reader.where = where;
    reader.own = own;
    if (memchr(pattern.bytes, 0, pattern.length)) return fr_onig_refuse(&reader, "a zero byte");
    FR_TRY(read_alternatives(&reader, 0, out));
    if (!at_end(&reader)) return fr_onig_fail(&reader, "a closing parenthesis too many");
    return fr_text_check(out, "a pattern");
}
