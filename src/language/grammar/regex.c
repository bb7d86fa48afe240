/* Reads regular expressions (readers.h). They are the regular part of those in ECMA 262: alternatives, groups, classes
 * with \d \w \s and their opposites, quantifiers, ^, $ and \b, look-ahead and look-behind, Unicode's classes \p and \P,
 * and the flags i and s of groups. Quantifiers may be greedy or not; both match the same texts. Back-references are
 * refused. \w and \d match only ASCII characters; \s also matches the other blanks of ECMA 262. */

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "src/language/grammar/cursor.h"
#include "src/language/grammar/readers.h"
#include "src/language/grammar/unicode_classes.h"

#define DEPTH_MAX  100
#define RANGES_MAX 8192 /* limit on the ranges of a class; all letters of Unicode take 650 */

typedef struct ranges {
    fr_character_range items[RANGES_MAX];
    size_t count;
} ranges;

typedef struct reader {
    fr_cursor c;
    fr_write_characters *write;
    fr_grammar_rules *rules;
    bool whole;         /* the expression must match whole texts, so ^ and $ are ignored */
    bool fold, dot_all; /* flags of the group. fold: letters match both cases. dot_all: . also matches a line break. */
    bool looks;         /* a look-around was read */
    ranges set;         /* the class that is being read; a class can't contain another class */
} reader;

static fr_status fail(const reader *r, const char *what) {
    return fr_fail(FR_INPUT, "regular expression, at byte %zu: %s", r->c.at, what);
}

static fr_status unbuilt(const reader *r, const char *what) {
    return fr_fail(FR_UNBUILT, "regular expression, at byte %zu: %s", r->c.at, what);
}

/* ------------------------------------------------------------------------------------------------------- characters */

static const fr_character_range DIGITS[] = {{'0', '9'}}, WORD[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
                                BLANKS[] = {{'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
                                            {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
                                            {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};

/* Adds the ranges of a class letter such as d. For an upper-case letter such as D, adds all other characters. Returns
 * false if the letter is no class letter. */
static bool class_letter(int letter, ranges *set) {
    const fr_character_range *items = letter == 'd' || letter == 'D'   ? DIGITS
                                      : letter == 'w' || letter == 'W' ? WORD
                                      : letter == 's' || letter == 'S' ? BLANKS
                                                                       : NULL;
    size_t count = items == DIGITS ? 1 : items == WORD ? 4 : sizeof BLANKS / sizeof *BLANKS;
    if (!items || set->count + count + 1 > RANGES_MAX) return false;
    bool except = letter < 'a';
    uint32_t low = 0;
    for (size_t i = 0; i < count; i++) {
        if (!except) set->items[set->count++] = items[i];
        if (except && items[i].low > low) set->items[set->count++] = (fr_character_range){low, items[i].low - 1};
        low = items[i].high + 1;
    }
    if (except) set->items[set->count++] = (fr_character_range){low, FR_CODE_POINT_MAX};
    return true;
}

/* Passes the ranges to r->write, with both cases of each letter if flag i is set. */
static fr_expression write_ranges(reader *r, ranges *set, bool except) {
    for (size_t i = 0, count = set->count; r->fold && i < count; i++) {
        const fr_character_range range = set->items[i];
        for (uint32_t c = 'a'; c <= 'z'; c++) {
            bool lower = range.low <= c && c <= range.high, upper = range.low <= c - 32 && c - 32 <= range.high;
            if (lower != upper && set->count < RANGES_MAX)
                set->items[set->count++] = lower ? (fr_character_range){c - 32, c - 32} : (fr_character_range){c, c};
        }
    }
    return r->write(r->rules, set->items, set->count, except);
}

static fr_expression write_code(reader *r, uint32_t code) {
    r->set.count = 1;
    r->set.items[0] = (fr_character_range){code, code};
    return write_ranges(r, &r->set, false);
}

/* Replaces the last `count` ranges of the set, which must be sorted, by the gaps between them. Returns false if there
 * is no room. */
static bool turn_round(ranges *set, size_t count) {
    fr_character_range *items = set->items + set->count - count;
    uint32_t low = 0;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        fr_character_range range = items[i];
        if (range.low > low) items[kept++] = (fr_character_range){low, range.low - 1};
        low = range.high + 1;
    }
    set->count -= count - kept;
    if (low > FR_CODE_POINT_MAX) return true;
    if (set->count == RANGES_MAX) return false;
    set->items[set->count++] = (fr_character_range){low, FR_CODE_POINT_MAX};
    return true;
}

/* Reads a property after its backslash: p{NAME} or pL. With P in place of p, the property's other characters are
 * meant. */
static fr_status read_property(reader *r, ranges *set) {
    const char *bytes = r->c.text.bytes;
    bool except = bytes[r->c.at] == 'P';
    size_t end = r->c.at + 1, count;
    fr_text name = {bytes + end, 1};
    if (end < r->c.text.length && bytes[end] == '{') {
        const char *close = memchr(bytes + end, '}', r->c.text.length - end);
        if (!close) return fail(r, "a property's name is not closed");
        name = (fr_text){bytes + end + 1, (size_t)(close - bytes) - end - 1};
        end = (size_t)(close - bytes);
    } else if (end == r->c.text.length) {
        return fail(r, "a property without a name");
    }
    if (!fr_grammar_spend(r->rules, FR_UNICODE_CLASS_WORK)) return fr_grammar_rules_check(r->rules);
    char line[200];
    fr_status status = fr_unicode_class(name, set->items + set->count, RANGES_MAX - set->count, &count);
    snprintf(line, sizeof line, "%s", status == FR_OK ? "" : fr_last_error());
    if (status == FR_UNBUILT) return unbuilt(r, line);
    FR_TRY(status);
    if (count > RANGES_MAX - set->count) return fail(r, "a class of more than 8192 ranges");
    set->count += count;
    r->c.at = end + 1;
    return !except || turn_round(set, count) ? FR_OK : fail(r, "a class of more than 8192 ranges");
}

static bool is_property(const reader *r, size_t at) {
    return at < r->c.text.length && (r->c.text.bytes[at] == 'p' || r->c.text.bytes[at] == 'P');
}

/* Reads the rest of an escape for one character, after the backslash. */
static fr_status take_escaped(reader *r, uint32_t *code) {
    static const char letters[] = "tnrfv0", codes[] = "\t\n\r\f\v";
    int c = fr_cursor_peek(&r->c);
    if (c < 0) return fail(r, "nothing behind the backslash");
    r->c.at++;
    if (c == 'u' && fr_cursor_take(&r->c, '{')) {
        size_t digits = 0;
        while (digits < 8 && r->c.at + digits < r->c.text.length && r->c.text.bytes[r->c.at + digits] != '}') digits++;
        if (!digits || !fr_cursor_take_hex(&r->c, digits, code)) return fail(r, "a hexadecimal digit is missing");
        if (!fr_cursor_take(&r->c, '}') || *code > FR_CODE_POINT_MAX) return fail(r, "no character has this code");
        bool half = *code >= 0xD800 && *code <= 0xDFFF;
        return half ? unbuilt(r, "halves of characters are not built: write the character") : FR_OK;
    }
    if (c == 'x' || c == 'u') {
        if (!fr_cursor_take_hex(&r->c, c == 'x' ? 2 : 4, code)) return fail(r, "a hexadecimal digit is missing");
        uint32_t low;
        size_t at = r->c.at;
        bool pair = c == 'u' && *code >= 0xD800 && *code <= 0xDBFF && fr_cursor_take(&r->c, '\\') &&
                    fr_cursor_take(&r->c, 'u') && fr_cursor_take_hex(&r->c, 4, &low) && low >= 0xDC00 && low <= 0xDFFF;
        if (pair)
            *code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
        else
            r->c.at = at;
        bool surrogate = *code >= 0xD800 && *code <= 0xDFFF;
        return surrogate ? unbuilt(r, "halves of characters are not built: write the character") : FR_OK;
    }
    const char *letter = c ? strchr(letters, c) : NULL;
    bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '1' && c <= '9');
    if (!letter && is_letter) return unbuilt(r, "this escape is not built");
    *code = letter ? (uint32_t)codes[letter - letters] : (uint32_t)c;
    return FR_OK;
}

static fr_status take_character(reader *r, uint32_t *code) {
    if (fr_cursor_take(&r->c, '\\')) return take_escaped(r, code);
    return fr_cursor_take_character(&r->c, code) ? FR_OK : fail(r, "not UTF-8");
}

/* Reads a character or a class letter within a class. *single: true for a character, which may begin a range. */
static fr_status read_member(reader *r, ranges *set, uint32_t *code, bool *single) {
    bool escaped = fr_cursor_peek(&r->c) == '\\' && r->c.at + 1 < r->c.text.length;
    if (escaped && is_property(r, r->c.at + 1)) {
        *single = false;
        r->c.at++;
        return read_property(r, set);
    }
    *single = !(escaped && class_letter(r->c.text.bytes[r->c.at + 1], set));
    if (*single && escaped && r->c.text.bytes[r->c.at + 1] == 'b') {
        *code = '\b';
        r->c.at += 2;
        return FR_OK;
    }
    if (*single) return take_character(r, code);
    r->c.at += 2;
    return FR_OK;
}

static fr_status read_class(reader *r, fr_expression *expression) {
    ranges *set = &r->set;
    set->count = 0;
    bool except = fr_cursor_take(&r->c, '^');
    while (!fr_cursor_take(&r->c, ']')) {
        uint32_t low, high;
        bool single, ends;
        if (fr_cursor_peek(&r->c) < 0) return fail(r, "a class without its closing bracket");
        FR_TRY(read_member(r, set, &low, &single));
        if (!single) continue;
        high = low;
        if (fr_cursor_peek(&r->c) == '-' && r->c.at + 1 < r->c.text.length && r->c.text.bytes[r->c.at + 1] != ']') {
            r->c.at++;
            FR_TRY(read_member(r, set, &high, &ends));
            if (!ends) return fail(r, "a range that ends in a class");
        }
        if (set->count == RANGES_MAX) return fail(r, "a class of more than 8192 ranges");
        if (high < low) return fail(r, "a range that ends before it begins");
        set->items[set->count++] = (fr_character_range){low, high};
    }
    *expression = write_ranges(r, set, except);
    return FR_OK;
}

/* --------------------------------------------------------------------------------------------------- looking around */

static fr_expression any_text(reader *r) {
    return fr_expression_repeat(r->rules, r->write(r->rules, NULL, 0, true), 0, FR_GRAMMAR_UNBOUND);
}

/* Makes a look-around. If `how` has FR_LOOK_AHEAD, it holds if the text after this place begins with the expression.
 * Otherwise it holds if the text before this place ends with the expression. */
static fr_expression look(reader *r, fr_expression of, unsigned how) {
    r->looks = true;
    fr_expression any = any_text(r);
    of = how & FR_LOOK_AHEAD ? fr_expression_then(r->rules, of, any) : fr_expression_then(r->rules, any, of);
    return fr_expression_look(r->rules, of, how);
}

/* Makes a look-around that holds only at the beginning of the text: no character may come before that place. If `end`
 * is true, it holds only at the end of the text: no character may come after that place. */
static fr_expression look_for_edge(reader *r, bool end) {
    return look(r, r->write(r->rules, NULL, 0, true), FR_LOOK_NOT | (end ? FR_LOOK_AHEAD : 0));
}

/* Makes a look-around that holds at the border of a word: of the characters before and after that place, only one
 * belongs to a word. If `otherwise` is true, makes a look-around that holds everywhere except at such borders. */
static fr_expression look_for_border(reader *r, bool otherwise) {
    fr_expression word = r->write(r->rules, WORD, sizeof WORD / sizeof *WORD, false);
    fr_expression before = look(r, word, 0), none_before = look(r, word, FR_LOOK_NOT);
    fr_expression behind = look(r, word, FR_LOOK_AHEAD), none_behind = look(r, word, FR_LOOK_AHEAD | FR_LOOK_NOT);
    fr_expression one = fr_expression_then(r->rules, before, otherwise ? behind : none_behind);
    fr_expression other = fr_expression_then(r->rules, none_before, otherwise ? none_behind : behind);
    return fr_expression_or(r->rules, one, other);
}

/* ------------------------------------------------------------------------------------------------------ expressions */

static fr_status read_choices(reader *r, size_t depth, fr_expression *expression);

static fr_status take_name(reader *r) {
    while (fr_cursor_peek(&r->c) >= 0 && fr_cursor_peek(&r->c) != ')')
        if (fr_cursor_take(&r->c, '>'))
            return FR_OK;
        else
            r->c.at++;
    return fail(r, "a group's name is not closed");
}

/* Reads flags, up to the colon as in (?s-i: or up to the parenthesis as in (?i). If they end with a parenthesis, they
 * hold for the rest of the enclosing group. */
static fr_status take_flags(reader *r, bool *rest) {
    for (bool on = true; fr_cursor_peek(&r->c) != ':' && fr_cursor_peek(&r->c) != ')';) {
        if (fr_cursor_take(&r->c, '-'))
            on = false;
        else if (fr_cursor_take(&r->c, 'i'))
            r->fold = on;
        else if (fr_cursor_take(&r->c, 's'))
            r->dot_all = on;
        else
            return unbuilt(r, "groups of this kind are not built: (?:, (?=, (?!, (?<=, (?<!, names, flags i and s are");
    }
    *rest = fr_cursor_peek(&r->c) == ')';
    r->c.at += !*rest;
    return FR_OK;
}

/* Reads the kind of a group after `(?`. *how: if the group is a look-around, FR_LOOK_... with LOOKS added. *rest: true
 * if the group consists only of flags. */
enum { LOOKS = 4 };
static fr_status take_kind(reader *r, unsigned *how, bool *rest) {
    bool behind = fr_cursor_take(&r->c, '<');
    int next = fr_cursor_peek(&r->c);
    *rest = false;
    if (next == '=' || next == '!') {
        r->c.at++;
        *how = LOOKS | (behind ? 0u : FR_LOOK_AHEAD) | (next == '!' ? FR_LOOK_NOT : 0u);
        return FR_OK;
    }
    if (behind) return take_name(r);
    if (next == 'P' && r->c.at + 1 < r->c.text.length && r->c.text.bytes[r->c.at + 1] == '<') {
        r->c.at += 2;
        return take_name(r);
    }
    return take_flags(r, rest);
}

static fr_status read_group(reader *r, size_t depth, fr_expression *expression) {
    const bool fold = r->fold, dot_all = r->dot_all;
    bool rest = false;
    unsigned how = 0;
    if (depth == DEPTH_MAX) return fail(r, "groups nested more than 100 deep");
    if (fr_cursor_take(&r->c, '?')) FR_TRY(take_kind(r, &how, &rest));
    if (rest) {
        r->c.at++;
        *expression = 0;
        return FR_OK;
    }
    FR_TRY(read_choices(r, depth + 1, expression));
    if (!fr_cursor_take(&r->c, ')')) return fail(r, "a group is not closed");
    if (how & LOOKS) *expression = look(r, *expression, how & ~(unsigned)LOOKS);
    r->fold = fold;
    r->dot_all = dot_all;
    return FR_OK;
}

static fr_status read_escape(reader *r, fr_expression *expression) {
    uint32_t code;
    bool property = is_property(r, r->c.at);
    r->set.count = 0;
    if (property) FR_TRY(read_property(r, &r->set));
    if (property || class_letter(fr_cursor_peek(&r->c), &r->set)) {
        r->c.at += !property;
        *expression = write_ranges(r, &r->set, false);
        return FR_OK;
    }
    if (fr_cursor_peek(&r->c) == 'b' || fr_cursor_peek(&r->c) == 'B') {
        *expression = look_for_border(r, fr_cursor_peek(&r->c) == 'B');
        r->c.at++;
        return FR_OK;
    }
    FR_TRY(take_escaped(r, &code));
    *expression = write_code(r, code);
    return FR_OK;
}

static fr_status read_item(reader *r, size_t depth, fr_expression *expression) {
    static const fr_character_range breaks[] = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
    uint32_t code;
    if (fr_cursor_take(&r->c, '(')) return read_group(r, depth, expression);
    if (fr_cursor_take(&r->c, '[')) return read_class(r, expression);
    if (fr_cursor_take(&r->c, '\\')) return read_escape(r, expression);
    if (fr_cursor_take(&r->c, '.')) {
        *expression = r->write(r->rules, breaks, r->dot_all ? 0 : 3, true);
        return FR_OK;
    }
    if (fr_cursor_peek(&r->c) == '*' || fr_cursor_peek(&r->c) == '+' || fr_cursor_peek(&r->c) == '?')
        return fail(r, "nothing to repeat");
    if (fr_cursor_peek(&r->c) == ')') return fail(r, "a parenthesis too many");
    if (fr_cursor_peek(&r->c) == '^' || fr_cursor_peek(&r->c) == '$') {
        *expression = look_for_edge(r, fr_cursor_peek(&r->c) == '$');
        r->c.at++;
        return FR_OK;
    }
    FR_TRY(take_character(r, &code));
    *expression = write_code(r, code);
    return FR_OK;
}

static bool take_number(reader *r, uint32_t *number) {
    size_t begin = r->c.at;
    for (*number = 0; fr_cursor_peek(&r->c) >= '0' && fr_cursor_peek(&r->c) <= '9'; r->c.at++)
        if (*number <= FR_REPEATS_MAX) {
            uint64_t longer = *number * UINT64_C(10) + (uint64_t)(fr_cursor_peek(&r->c) - '0');
            *number = longer <= FR_REPEATS_MAX ? (uint32_t)longer : FR_REPEATS_MAX + 1;
        }
    return r->c.at > begin;
}

/* Takes {m}, {m,} or {m,n}. Any other text in braces is literal. */
static bool take_counts(reader *r, uint32_t *least, uint32_t *most) {
    size_t begin = r->c.at;
    if (fr_cursor_take(&r->c, '{') && take_number(r, least)) {
        *most = *least;
        if (fr_cursor_take(&r->c, ',') && !take_number(r, most)) *most = FR_GRAMMAR_UNBOUND;
        if (fr_cursor_take(&r->c, '}')) return true;
    }
    r->c.at = begin;
    return false;
}

static fr_status read_repeats(reader *r, fr_expression *expression) {
    uint32_t least = 0, most = FR_GRAMMAR_UNBOUND;
    if (fr_cursor_take(&r->c, '+')) {
        least = 1;
    } else if (fr_cursor_take(&r->c, '?')) {
        most = 1;
    } else if (!fr_cursor_take(&r->c, '*') && !take_counts(r, &least, &most)) {
        return FR_OK;
    }
    if (least > FR_REPEATS_MAX || (most > FR_REPEATS_MAX && most != FR_GRAMMAR_UNBOUND))
        return fail(r, "more than 2147483647 repetitions");
    if (least > most) return fail(r, "a repetition of fewer times than at least");
    fr_cursor_take(&r->c, '?');
    *expression = fr_expression_repeat(r->rules, *expression, least, most);
    return FR_OK;
}

/* Reads a sequence. At depth 0 it may begin with ^ and end with $. If the expression need not match whole texts, any
 * text may come where ^ or $ is missing. */
static fr_status read_sequence(reader *r, size_t depth, fr_expression *expression) {
    bool outer = depth == 0, begins = outer && fr_cursor_take(&r->c, '^'), ends = false;
    fr_expression any = outer && !r->whole ? any_text(r) : 0;
    *expression = outer && !r->whole && !begins ? any : 0;
    while (!ends && fr_cursor_peek(&r->c) >= 0 && fr_cursor_peek(&r->c) != '|' &&
           (outer || fr_cursor_peek(&r->c) != ')')) {
        bool last = r->c.at + 1 == r->c.text.length || r->c.text.bytes[r->c.at + 1] == '|';
        ends = outer && last && fr_cursor_take(&r->c, '$');
        if (ends) break;
        fr_expression item;
        FR_TRY(read_item(r, depth, &item));
        FR_TRY(read_repeats(r, &item));
        *expression = fr_expression_then(r->rules, *expression, item);
    }
    if (outer && !r->whole && !ends) *expression = fr_expression_then(r->rules, *expression, any);
    return FR_OK;
}

static fr_status read_choices(reader *r, size_t depth, fr_expression *expression) {
    FR_TRY(read_sequence(r, depth, expression));
    while (fr_cursor_take(&r->c, '|')) {
        fr_expression other;
        FR_TRY(read_sequence(r, depth, &other));
        *expression = fr_expression_or(r->rules, *expression, other);
    }
    return FR_OK;
}

fr_status fr_regex_parse(fr_text text, bool whole, fr_write_characters *write, fr_grammar_rules *rules,
                         fr_expression *expression, bool *looks) {
    reader r = {.c = {text, 0}, .write = write, .rules = rules, .whole = whole};
    fr_status status = read_choices(&r, 0, expression);
    *looks = r.looks;
    return status;
}
