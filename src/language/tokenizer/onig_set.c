/* Reads sets of characters (onig_set.h). */
#include "src/language/tokenizer/onig_set.h"

#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

#include "base/error.h"

#define NAME_LENGTH_MAX 32
#define DEPTH_MAX       64 /* limit on nested sets */

#define SPACE \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define CIRCLED   "\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}\\x{1f170}-\\x{1f189}"
#define WORD      "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}" CIRCLED
#define LONE_WORD WORD "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}"
#define HEX       "0-9A-Fa-f"

/* The characters of the script Han. No name for them is known to all versions of PCRE2. */
#define HAN                                                                                                     \
    "\\x{2e80}-\\x{2e99}\\x{2e9b}-\\x{2ef3}\\x{2f00}-\\x{2fd5}\\x{3005}\\x{3007}\\x{3021}-\\x{3029}"            \
    "\\x{3038}-\\x{303b}\\x{3400}-\\x{4dbf}\\x{4e00}-\\x{9fff}\\x{f900}-\\x{fa6d}\\x{fa70}-\\x{fad9}\\x{16fe2}" \
    "\\x{16fe3}\\x{16ff0}\\x{16ff1}\\x{20000}-\\x{2a6df}\\x{2a700}-\\x{2b739}\\x{2b740}-\\x{2b81d}"             \
    "\\x{2b820}-\\x{2cea1}\\x{2ceb0}-\\x{2ebe0}\\x{2ebf0}-\\x{2ee5d}\\x{2f800}-\\x{2fa1d}\\x{30000}-\\x{3134a}" \
    "\\x{31350}-\\x{323af}"

/* set_word: the characters of \w in sets. lone_word: those of \w outside of sets, which has some more digits. */
static const char set_word[] = WORD;
static const char lone_word[] = LONE_WORD;

const char fr_onig_word[] = "[" LONE_WORD "]";

fr_status fr_onig_refuse(const fr_onig_reader *reader, const char *construct) {
    return fr_fail(FR_UNBUILT, "%s: the pattern \"%.*s\" has %s: not built", reader->where,
                   reader->pattern.length < 99 ? (int)reader->pattern.length : 99, reader->pattern.bytes, construct);
}

fr_status fr_onig_fail(const fr_onig_reader *reader, const char *reason) {
    return fr_fail(FR_INPUT, "%s: the pattern \"%.*s\" is not a regular expression: %s at byte %zu", reader->where,
                   reader->pattern.length < 99 ? (int)reader->pattern.length : 99, reader->pattern.bytes, reason,
                   (size_t)(reader->at - reader->pattern.bytes));
}

/* ------------------------------------------------------------------------------------------------------- characters */

fr_status fr_onig_character(fr_onig_reader *reader, int32_t *codepoint) {
    utf8proc_ssize_t step = utf8proc_iterate((const utf8proc_uint8_t *)reader->at, reader->end - reader->at, codepoint);
    if (step <= 0) return fr_onig_fail(reader, "bytes that are not UTF-8");
    reader->at += step;
    return FR_OK;
}

void fr_onig_literal(int32_t codepoint, fr_text_buffer *out) {
    char text[16];
    bool plain = (codepoint >= '0' && codepoint <= '9') || (codepoint >= 'A' && codepoint <= 'Z') ||
                 (codepoint >= 'a' && codepoint <= 'z');
    int length = snprintf(text, sizeof text, plain ? "%c" : "\\x{%x}", (unsigned)codepoint);
    fr_text_append(out, text, (size_t)length);
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads at most `most` hexadecimal digits, and gives the number of digits. */
static size_t read_hex(fr_onig_reader *reader, size_t most, int32_t *value) {
    size_t count = 0;
    for (*value = 0; count < most && reader->at < reader->end && hex_digit(*reader->at) >= 0; count++)
        *value = *value << 4 | hex_digit(*reader->at++);
    return count;
}

/* Reads a hexadecimal escape after \x. It is {H...}, or two digits, which give a byte. A byte above 7F is no character
 * and is refused. */
static fr_status read_hex_escape(fr_onig_reader *reader, int32_t *codepoint) {
    if (reader->at < reader->end && *reader->at == '{') {
        reader->at++;
        if (read_hex(reader, 7, codepoint) == 0 || reader->at == reader->end || *reader->at != '}')
            return fr_onig_refuse(reader, "\\x{} with anything but one character");
        reader->at++;
        bool valid = *codepoint <= 0x10FFFF && (*codepoint < 0xD800 || *codepoint > 0xDFFF);
        return valid ? FR_OK : fr_onig_fail(reader, "a number that is not a character's");
    }
    if (read_hex(reader, 2, codepoint) == 0) return fr_onig_refuse(reader, "\\x without digits");
    return *codepoint < 0x80 ? FR_OK : fr_onig_refuse(reader, "\\x of a byte above 7F");
}

fr_status fr_onig_escaped(fr_onig_reader *reader, int32_t *codepoint) {
    static const char controls[] = "t\tn\nr\rf\fa\ae\x1Bv\v";
    *codepoint = -1;
    if (reader->at == reader->end) return fr_onig_fail(reader, "a backslash at the end");
    char c = *reader->at;
    for (size_t i = 0; i + 1 < sizeof controls - 1; i += 2) {
        if (controls[i] != c) continue;
        *codepoint = controls[i + 1];
        reader->at++;
        return FR_OK;
    }
    if (strchr("dDwWsShHpPbBAzZGKyYRXNOkgcCM", c) || (c >= '1' && c <= '9')) return FR_OK;
    if (c == '0') return fr_onig_refuse(reader, "an octal number");
    if (c == 'x') {
        reader->at++;
        return read_hex_escape(reader, codepoint);
    }
    if (c == 'u') {
        reader->at++;
        return read_hex(reader, 4, codepoint) == 4 && (*codepoint < 0xD800 || *codepoint > 0xDFFF)
                   ? FR_OK
                   : fr_onig_refuse(reader, "\\u without four digits of a character");
    }
    return fr_onig_character(reader, codepoint);
}

/* ---------------------------------------------------------------------------------------------------------- classes */

typedef struct class_name {
    /* name: in lower case, without blanks, hyphens and underscores. singles: the class as PCRE2 writes it within a
     * set. */
    const char *name, *singles;
} class_name;

static const class_name classes[] = {
    {"l", "\\p{L}"},
    {"letter", "\\p{L}"},
    {"lu", "\\p{Lu}"},
    {"uppercaseletter", "\\p{Lu}"},
    {"ll", "\\p{Ll}"},
    {"lowercaseletter", "\\p{Ll}"},
    {"lt", "\\p{Lt}"},
    {"titlecaseletter", "\\p{Lt}"},
    {"lm", "\\p{Lm}"},
    {"modifierletter", "\\p{Lm}"},
    {"lo", "\\p{Lo}"},
    {"otherletter", "\\p{Lo}"},
    {"lc", "\\p{Lu}\\p{Ll}\\p{Lt}"},
    {"m", "\\p{M}"},
    {"mark", "\\p{M}"},
    {"mn", "\\p{Mn}"},
    {"nonspacingmark", "\\p{Mn}"},
    {"mc", "\\p{Mc}"},
    {"spacingmark", "\\p{Mc}"},
    {"me", "\\p{Me}"},
    {"enclosingmark", "\\p{Me}"},
    {"n", "\\p{N}"},
    {"number", "\\p{N}"},
    {"nd", "\\p{Nd}"},
    {"decimalnumber", "\\p{Nd}"},
    {"digit", "\\p{Nd}"},
    {"nl", "\\p{Nl}"},
    {"letternumber", "\\p{Nl}"},
    {"no", "\\p{No}"},
    {"othernumber", "\\p{No}"},
    {"p", "\\p{P}"},
    {"punctuation", "\\p{P}"},
    {"punct", "\\p{P}"},
    {"pc", "\\p{Pc}"},
    {"connectorpunctuation", "\\p{Pc}"},
    {"pd", "\\p{Pd}"},
    {"dashpunctuation", "\\p{Pd}"},
    {"ps", "\\p{Ps}"},
    {"openpunctuation", "\\p{Ps}"},
    {"pe", "\\p{Pe}"},
    {"closepunctuation", "\\p{Pe}"},
    {"pi", "\\p{Pi}"},
    {"initialpunctuation", "\\p{Pi}"},
    {"pf", "\\p{Pf}"},
    {"finalpunctuation", "\\p{Pf}"},
    {"po", "\\p{Po}"},
    {"otherpunctuation", "\\p{Po}"},
    {"s", "\\p{S}"},
    {"symbol", "\\p{S}"},
    {"sm", "\\p{Sm}"},
    {"mathsymbol", "\\p{Sm}"},
    {"sc", "\\p{Sc}"},
    {"currencysymbol", "\\p{Sc}"},
    {"sk", "\\p{Sk}"},
    {"modifiersymbol", "\\p{Sk}"},
    {"so", "\\p{So}"},
    {"othersymbol", "\\p{So}"},
    {"z", "\\p{Z}"},
    {"separator", "\\p{Z}"},
    {"zs", "\\p{Zs}"},
    {"spaceseparator", "\\p{Zs}"},
    {"zl", "\\p{Zl}"},
    {"lineseparator", "\\p{Zl}"},
    {"zp", "\\p{Zp}"},
    {"paragraphseparator", "\\p{Zp}"},
    {"c", "\\p{C}"},
    {"other", "\\p{C}"},
    {"cc", "\\p{Cc}"},
    {"control", "\\p{Cc}"},
    {"cntrl", "\\p{Cc}"},
    {"cf", "\\p{Cf}"},
    {"format", "\\p{Cf}"},
    {"cn", "\\p{Cn}"},
    {"unassigned", "\\p{Cn}"},
    {"co", "\\p{Co}"},
    {"privateuse", "\\p{Co}"},
    {"space", SPACE},
    {"whitespace", SPACE},
    {"blank", "\\p{Zs}\\x{9}"},
    {"word", set_word},
    {"xdigit", HEX},
    {"ascii", "\\x{0}-\\x{7f}"},
    {"han", HAN},
};

/* A set that is being made. singles: the members that PCRE2 allows between brackets. others: expressions for the other
 * members, each after a '|'. */
typedef struct set {
    fr_text_buffer singles, others;
    bool lone; /* the class is not between brackets */
} set;

static void add_other(set *to, const char *before, const char *text, const char *behind) {
    fr_text_append_string(&to->others, "|");
    fr_text_append_string(&to->others, before);
    fr_text_append_string(&to->others, text);
    fr_text_append_string(&to->others, behind);
}

static void add_class(set *to, const char *singles, bool negated) {
    if (to->lone && singles == set_word) singles = lone_word;
    if (!negated)
        fr_text_append_string(&to->singles, singles);
    else
        add_other(to, "[^", singles, "]");
}

static char lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* Adds a named class. If case is ignored, classes of upper or lower case are refused, because Oniguruma and PCRE2
 * differ there. */
static fr_status add_named(fr_onig_reader *reader, fr_text given, bool negated, set *to) {
    char name[NAME_LENGTH_MAX], construct[NAME_LENGTH_MAX + 32];
    size_t length = 0;
    for (size_t i = 0; i < given.length && length < sizeof name - 1; i++)
        if (!strchr(" -_", given.bytes[i])) name[length++] = lower(given.bytes[i]);
    name[length] = 0;
    snprintf(construct, sizeof construct, "the class \"%.*s\"", given.length < 31 ? (int)given.length : 31,
             given.bytes);
    bool cased = !strcmp(name, "lu") || !strcmp(name, "ll") || !strcmp(name, "lt") || strstr(name, "caseletter");
    if (cased && reader->caseless) return fr_onig_refuse(reader, construct);
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++) {
        if (strcmp(name, classes[i].name) != 0) continue;
        add_class(to, classes[i].singles, negated);
        return FR_OK;
    }
    return fr_onig_refuse(reader, construct);
}

/* Adds a property after \p or \P. It has the form {name} or {^name}. */
static fr_status add_property(fr_onig_reader *reader, bool negated, set *to) {
    const char *close = memchr(reader->at, '}', (size_t)(reader->end - reader->at));
    if (*reader->at != '{' || !close) return fr_onig_refuse(reader, "\\p without {}");
    fr_text name = {reader->at + 1, (size_t)(close - reader->at - 1)};
    reader->at = close + 1;
    if (name.length > 0 && *name.bytes == '^') {
        negated = !negated;
        name.bytes++;
        name.length--;
    }
    return add_named(reader, name, negated, to);
}

/* Reads an escape after its backslash, and adds its characters to the set. */
static fr_status add_escape(fr_onig_reader *reader, set *to, bool *found) {
    char c = *reader->at;
    *found = strchr("dDwWsShHpP", c) != NULL;
    if (!*found) return FR_OK;
    reader->at++;
    bool negated = c < 'a';
    switch (c | 0x20) {
    case 'd': add_class(to, "\\p{Nd}", negated); break;
    case 'w': add_class(to, set_word, negated); break;
    case 's': add_class(to, SPACE, negated); break;
    case 'h': add_class(to, HEX, negated); break;
    default: return reader->at < reader->end ? add_property(reader, negated, to) : fr_onig_fail(reader, "a lone \\p");
    }
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------- sets */

/* Appends an expression that matches one character of the set. Empties the set. */
static fr_status write_set(set *from, bool negated, fr_text_buffer *out) {
    const char *open = negated ? "(?:(?!" : "(?:", *close = negated ? ")(?s:.))" : ")";
    bool plain = from->others.length == 0, none = from->singles.length == 0;
    if (plain && !none) {
        fr_text_append_string(out, negated ? "[^" : "[");
        fr_text_append(out, from->singles.bytes, from->singles.length);
        fr_text_append_string(out, "]");
    } else {
        fr_text_append_string(out, open);
        fr_text_append_string(out, negated && !plain ? "(?:" : "");
        fr_text_append_string(out, none ? "(?!)" : "[");
        fr_text_append(out, from->singles.bytes, from->singles.length);
        fr_text_append_string(out, none ? "" : "]");
        fr_text_append(out, from->others.bytes, from->others.length);
        fr_text_append_string(out, negated && !plain ? ")" : "");
        fr_text_append_string(out, close);
    }
    fr_status status = fr_text_check(&from->singles, "a pattern");
    if (status == FR_OK) status = fr_text_check(&from->others, "a pattern");
    fr_text_free(&from->singles);
    fr_text_free(&from->others);
    return status;
}

fr_status fr_onig_class(fr_onig_reader *reader, fr_text_buffer *out, bool *found) {
    set one = {.lone = true};
    fr_status status = add_escape(reader, &one, found);
    if (status == FR_OK && *found) return write_set(&one, false, out);
    fr_text_free(&one.singles);
    fr_text_free(&one.others);
    return status;
}

static fr_status read_set(fr_onig_reader *reader, size_t depth, fr_text_buffer *out);

static fr_status add_nested(fr_onig_reader *reader, size_t depth, set *to) {
    fr_text_append_string(&to->others, "|");
    return read_set(reader, depth + 1, &to->others);
}

/* Adds the class [:name:] or [:^name:]. If the reader is at neither of them, adds a nested set. */
static fr_status add_bracket(fr_onig_reader *reader, size_t depth, set *to) {
    const char *close = reader->at;
    if (reader->at < reader->end && *reader->at == ':') {
        while (close + 1 < reader->end && *close != ']' && !(close[0] == ':' && close[1] == ']' && close > reader->at))
            close++;
        if (close + 1 < reader->end && *close == ':') {
            bool negated = reader->at[1] == '^';
            fr_text name = {reader->at + 1 + negated, (size_t)(close - reader->at) - 1 - negated};
            reader->at = close + 2;
            bool symbols = fr_text_is(name, "punct"); /* [:punct:] also has symbols, which the class \p{punct} lacks */
            if (symbols) add_class(to, "\\p{P}\\p{S}", negated);
            return symbols ? FR_OK : add_named(reader, name, negated, to);
        }
    }
    return add_nested(reader, depth, to);
}

/* Reads one character of a set, escaped or not. -1: no character follows, and the reader has not moved. */
static fr_status read_member(fr_onig_reader *reader, int32_t *codepoint) {
    *codepoint = -1;
    const char *from = reader->at;
    if (*from == '[' || (*from == '&' && from + 1 < reader->end && from[1] == '&')) return FR_OK;
    if (*from != '\\') return fr_onig_character(reader, codepoint);
    reader->at++;
    FR_TRY(fr_onig_escaped(reader, codepoint));
    if (*codepoint >= 0) return FR_OK;
    if (*reader->at == 'b') { /* \b is a backspace in a set */
        *codepoint = '\b';
        reader->at++;
    } else if (strchr("dDwWsShHpP", *reader->at)) {
        reader->at = from;
    } else {
        return fr_onig_refuse(reader, "an escape of this kind in a set");
    }
    return FR_OK;
}

static fr_status add_range(fr_onig_reader *reader, int32_t first, set *to) {
    int32_t last = first;
    const char *dash = reader->at;
    if (reader->end - dash > 1 && *dash == '-' && dash[1] != ']') {
        reader->at++;
        FR_TRY(read_member(reader, &last));
        if (last < 0) return fr_onig_refuse(reader, "a range whose end is a set");
        if (last < first) return fr_onig_fail(reader, "a range that ends before it begins");
    }
    if (reader->caseless && last >= 0x80) return fr_onig_refuse(reader, "a letter outside ASCII whose case is ignored");
    fr_onig_literal(first, &to->singles);
    if (last == first) return FR_OK;
    fr_text_append_string(&to->singles, "-");
    fr_onig_literal(last, &to->singles);
    return FR_OK;
}

static fr_status add_member(fr_onig_reader *reader, size_t depth, set *to) {
    int32_t codepoint;
    bool found;
    FR_TRY(read_member(reader, &codepoint));
    if (codepoint >= 0) return add_range(reader, codepoint, to);
    if (*reader->at++ == '[') return add_bracket(reader, depth, to);
    return add_escape(reader, to, &found);
}

/* Reads members of a set, up to && or the end of the set. */
static fr_status read_part(fr_onig_reader *reader, size_t depth, bool first, set *to) {
    if (first && reader->at < reader->end && *reader->at == ']' &&
        memchr(reader->at + 1, ']', (size_t)(reader->end - reader->at - 1))) {
        reader->at++;
        FR_TRY(add_range(reader, ']', to));
    }
    while (reader->at < reader->end && *reader->at != ']') {
        if (reader->end - reader->at > 1 && memcmp(reader->at, "&&", 2) == 0) return FR_OK;
        FR_TRY(add_member(reader, depth, to));
    }
    return reader->at < reader->end ? FR_OK : fr_onig_fail(reader, "a set that has no end");
}

/* Reads the parts of an intersection. All parts except the last become look-aheads, so that a character must match
 * every part. */
static fr_status read_parts(fr_onig_reader *reader, size_t depth, fr_text_buffer *all, bool *several) {
    fr_status status = FR_OK;
    for (bool first = true, more = true; more && status == FR_OK; first = false) {
        set part = {0};
        fr_text_buffer text = {0};
        status = read_part(reader, depth, first, &part);
        more = status == FR_OK && *reader->at == '&';
        fr_status written = write_set(&part, false, &text);
        if (status == FR_OK) status = written;
        if (more) fr_text_append_string(all, "(?=");
        fr_text_append(all, text.bytes, text.length);
        if (more) fr_text_append_string(all, ")");
        if (more) reader->at += 2;
        *several |= more;
        fr_text_free(&text);
    }
    if (status == FR_OK) reader->at++;
    return status;
}

/* Reads a set after its bracket. */
static fr_status read_set(fr_onig_reader *reader, size_t depth, fr_text_buffer *out) {
    if (depth > DEPTH_MAX) return fr_onig_refuse(reader, "sets nested too deep");
    bool negated = reader->at < reader->end && *reader->at == '^', several = false;
    if (negated) reader->at++;
    fr_text_buffer all = {0};
    fr_status status = read_parts(reader, depth, &all, &several);
    bool plain = status == FR_OK && !several && all.length > 1 && all.bytes[0] == '[';
    if (status == FR_OK && negated && plain) {
        fr_text_append_string(out, "[^");
        fr_text_append(out, all.bytes + 1, all.length - 1);
    } else if (status == FR_OK) {
        fr_text_append_string(out, negated ? "(?:(?!" : "(?:");
        fr_text_append(out, all.bytes, all.length);
        fr_text_append_string(out, negated ? ")(?s:.))" : ")");
    }
    fr_text_free(&all);
    return status;
}

fr_status fr_onig_set(fr_onig_reader *reader, fr_text_buffer *out) {
    return read_set(reader, 0, out);
}
