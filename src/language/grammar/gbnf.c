/* Reads GBNF (readers.h); llama.cpp's grammars/README.md describes the language.
 *
 * A line break ends a rule, except within parentheses and after ::= and |. */
#include <stdlib.h>

#include "base/error.h"
#include "base/hash.h"
#include "src/language/grammar/cursor.h"
#include "src/language/grammar/readers.h"

#define DEPTH_MAX 100 /* limit on nested parentheses */
#define RULES_MAX 16384

typedef struct rule_name {
    fr_text name;
    uint32_t rule;
    size_t first; /* offset in the text at which the rule is first mentioned */
} rule_name;

typedef struct reader {
    fr_cursor c;
    fr_grammar_rules *rules;
    rule_name *names; /* [slots] hash table of the rules' names */
    size_t name_count, slots;
} reader;

/* ------------------------------------------------------------------------------------------------------------- text */

static fr_status fail_at(const reader *r, size_t at, fr_status status, const char *what) {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at && i < r->c.text.length; i++) {
        column = r->c.text.bytes[i] == '\n' ? 1 : column + 1;
        line += r->c.text.bytes[i] == '\n';
    }
    return fr_fail(status, "grammar, line %zu, column %zu: %s", line, column, what);
}

static fr_status fail(const reader *r, const char *what) {
    return fail_at(r, r->c.at, FR_INPUT, what);
}

/* Skips blanks and comments. If `lines` is true, because a rule may continue on the next line, also skips line
 * breaks. */
static void skip_blanks(reader *r, bool lines) {
    for (int c; (c = fr_cursor_peek(&r->c)) == ' ' || c == '\t' || c == '#' || (lines && (c == '\n' || c == '\r'));
         r->c.at++)
        if (c == '#') {
            while (fr_cursor_peek(&r->c) >= 0 && fr_cursor_peek(&r->c) != '\n' && fr_cursor_peek(&r->c) != '\r')
                r->c.at++;
            r->c.at--;
        }
}

static bool is_name_byte(int c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

static fr_text take_name(reader *r) {
    fr_text name = {r->c.text.bytes + r->c.at, 0};
    for (; is_name_byte(fr_cursor_peek(&r->c)); r->c.at++) name.length++;
    return name;
}

/* ------------------------------------------------------------------------------------------------------- characters */

static fr_status take_code(reader *r, size_t digits, uint32_t *code) {
    if (!fr_cursor_take_hex(&r->c, digits, code)) return fail(r, "a hexadecimal digit is missing");
    return *code <= FR_CODE_POINT_MAX ? FR_OK : fail(r, "no character has such a code");
}

static fr_status take_escape(reader *r, uint32_t *code) {
    int c = fr_cursor_peek(&r->c);
    r->c.at++;
    switch (c) {
    case 'x': return take_code(r, 2, code);
    case 'u': return take_code(r, 4, code);
    case 'U': return take_code(r, 8, code);
    case 't': *code = '\t'; return FR_OK;
    case 'r': *code = '\r'; return FR_OK;
    case 'n': *code = '\n'; return FR_OK;
    case '\\':
    case '"':
    case '[':
    case ']': *code = (uint32_t)c; return FR_OK;
    default: r->c.at--; return fail(r, "an unknown escape");
    }
}

static fr_status take_character(reader *r, uint32_t *code) {
    if (fr_cursor_take(&r->c, '\\')) return take_escape(r, code);
    return fr_cursor_take_character(&r->c, code)
               ? FR_OK
               : fail(r, r->c.at < r->c.text.length ? "not UTF-8" : "the text ends inside a character");
}

static fr_status read_literal(reader *r, fr_expression *expression) {
    *expression = 0;
    while (!fr_cursor_take(&r->c, '"')) {
        uint32_t code;
        if (fr_cursor_peek(&r->c) < 0) return fail(r, "a literal without its closing quote");
        FR_TRY(take_character(r, &code));
        *expression = fr_expression_then(r->rules, *expression, fr_expression_character(r->rules, code));
    }
    return FR_OK;
}

enum { RANGES_MAX = 1024 };

static fr_status read_class(reader *r, fr_expression *expression) {
    fr_character_range ranges[RANGES_MAX];
    size_t count = 0;
    bool except = fr_cursor_take(&r->c, '^');
    while (!fr_cursor_take(&r->c, ']')) {
        if (fr_cursor_peek(&r->c) < 0) return fail(r, "a class of characters without its closing bracket");
        if (count == RANGES_MAX) return fail(r, "a class of more than 1024 ranges");
        fr_character_range *range = &ranges[count++];
        FR_TRY(take_character(r, &range->low));
        range->high = range->low;
        bool goes_on =
            fr_cursor_peek(&r->c) == '-' && r->c.at + 1 < r->c.text.length && r->c.text.bytes[r->c.at + 1] != ']';
        if (goes_on) r->c.at++;
        if (goes_on) FR_TRY(take_character(r, &range->high));
        if (range->high < range->low) return fail(r, "a range that ends before it begins");
    }
    *expression = fr_expression_characters(r->rules, ranges, count, except);
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------ names */

static fr_status find_rule(reader *r, fr_text name, uint32_t *rule) {
    size_t mask = r->slots - 1, at = fr_hash(0, name.bytes, name.length) & mask;
    for (; r->names[at].name.bytes; at = (at + 1) & mask) {
        *rule = r->names[at].rule;
        if (fr_text_same(r->names[at].name, name)) return FR_OK;
    }
    if (r->name_count == RULES_MAX) return fail(r, "more than 16384 rules");
    *rule = fr_grammar_rule(r->rules);
    r->names[at] = (rule_name){name, *rule, (size_t)(name.bytes - r->c.text.bytes)};
    r->name_count++;
    return FR_OK;
}

static fr_status check_defined(const reader *r) {
    const rule_name *missing = NULL;
    for (size_t i = 0; i < r->slots; i++) {
        const rule_name *n = &r->names[i];
        if (!n->name.bytes || r->rules->defined[n->rule]) continue;
        if (!missing || n->first < missing->first) missing = n;
    }
    return missing ? fail_at(r, missing->first, FR_INPUT, "a rule that is not defined anywhere") : FR_OK;
}

/* ------------------------------------------------------------------------------------------------------ expressions */

static fr_status read_choices(reader *r, size_t depth, fr_expression *expression);

static fr_status read_number(reader *r, uint32_t *number) {
    if (fr_cursor_peek(&r->c) < '0' || fr_cursor_peek(&r->c) > '9') return fail(r, "a number is missing");
    for (*number = 0; fr_cursor_peek(&r->c) >= '0' && fr_cursor_peek(&r->c) <= '9'; r->c.at++) {
        uint64_t longer = *number * UINT64_C(10) + (uint64_t)(fr_cursor_peek(&r->c) - '0');
        if (longer > FR_REPEATS_MAX) return fail(r, "more than 2147483647 repetitions");
        *number = (uint32_t)longer;
    }
    return FR_OK;
}

/* Reads the counts {m}, {m,} or {m,n} after the opening brace. */
static fr_status read_counts(reader *r, uint32_t *least, uint32_t *most) {
    skip_blanks(r, false);
    FR_TRY(read_number(r, least));
    *most = *least;
    skip_blanks(r, false);
    if (fr_cursor_take(&r->c, ',')) {
        *most = FR_GRAMMAR_UNBOUND;
        skip_blanks(r, false);
        if (fr_cursor_peek(&r->c) != '}') FR_TRY(read_number(r, most));
        skip_blanks(r, false);
    }
    if (!fr_cursor_take(&r->c, '}')) return fail(r, "a repetition without its closing brace");
    return *least <= *most ? FR_OK : fail(r, "a repetition of fewer times than at least");
}

static fr_status read_repeats(reader *r, bool lines, fr_expression *expression) {
    for (;;) {
        uint32_t least = 0, most = FR_GRAMMAR_UNBOUND;
        if (fr_cursor_take(&r->c, '+')) {
            least = 1;
        } else if (fr_cursor_take(&r->c, '?')) {
            most = 1;
        } else if (fr_cursor_take(&r->c, '{')) {
            FR_TRY(read_counts(r, &least, &most));
        } else if (!fr_cursor_take(&r->c, '*')) {
            return FR_OK;
        }
        *expression = fr_expression_repeat(r->rules, *expression, least, most);
        skip_blanks(r, lines);
    }
}

static fr_status read_group(reader *r, size_t depth, fr_expression *expression) {
    if (depth == DEPTH_MAX) return fail(r, "parentheses nested more than 100 deep");
    skip_blanks(r, true);
    FR_TRY(read_choices(r, depth + 1, expression));
    return fr_cursor_take(&r->c, ')') ? FR_OK : fail(r, "a parenthesis is not closed");
}

/* Reads an item of a sequence. *there: false if no item begins here. */
static fr_status read_item(reader *r, size_t depth, fr_expression *expression, bool *there) {
    *there = true;
    if (fr_cursor_take(&r->c, '"')) return read_literal(r, expression);
    if (fr_cursor_take(&r->c, '[')) return read_class(r, expression);
    if (fr_cursor_take(&r->c, '(')) return read_group(r, depth, expression);
    if (fr_cursor_take(&r->c, '.')) {
        *expression = fr_expression_characters(r->rules, NULL, 0, true);
        return FR_OK;
    }
    if (fr_cursor_peek(&r->c) == '<' || fr_cursor_peek(&r->c) == '!')
        return fail_at(r, r->c.at, FR_UNBUILT, "tokens as terminals are not built: write their text");
    *there = is_name_byte(fr_cursor_peek(&r->c));
    if (!*there) return FR_OK;
    uint32_t rule;
    FR_TRY(find_rule(r, take_name(r), &rule));
    *expression = fr_expression_rule(r->rules, rule);
    return FR_OK;
}

static fr_status read_sequence(reader *r, size_t depth, fr_expression *expression) {
    *expression = 0;
    for (;;) {
        fr_expression item;
        bool there;
        FR_TRY(read_item(r, depth, &item, &there));
        if (!there) return FR_OK;
        skip_blanks(r, depth > 0);
        FR_TRY(read_repeats(r, depth > 0, &item));
        *expression = fr_expression_then(r->rules, *expression, item);
    }
}

static fr_status read_choices(reader *r, size_t depth, fr_expression *expression) {
    FR_TRY(read_sequence(r, depth, expression));
    while (fr_cursor_take(&r->c, '|')) {
        fr_expression other;
        skip_blanks(r, true);
        FR_TRY(read_sequence(r, depth, &other));
        *expression = fr_expression_or(r->rules, *expression, other);
    }
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------ rules */

static fr_status read_rule(reader *r) {
    uint32_t rule;
    fr_expression body;
    fr_text name = take_name(r);
    if (!name.length) return fail(r, "the name of a rule is missing");
    FR_TRY(find_rule(r, name, &rule));
    skip_blanks(r, false);
    if (!fr_cursor_take(&r->c, ':') || !fr_cursor_take(&r->c, ':') || !fr_cursor_take(&r->c, '='))
        return fail(r, "::= is missing");
    skip_blanks(r, true);
    FR_TRY(read_choices(r, 0, &body));
    fr_grammar_define(r->rules, rule, body);
    if (fr_cursor_peek(&r->c) >= 0 && fr_cursor_peek(&r->c) != '\n' && fr_cursor_peek(&r->c) != '\r')
        return fail(r, "the rule can't go on like this");
    skip_blanks(r, true);
    return FR_OK;
}

static fr_status read_all(reader *r) {
    FR_TRY(find_rule(r, (fr_text){"root", 4}, &r->rules->root));
    skip_blanks(r, true);
    while (fr_cursor_peek(&r->c) >= 0) FR_TRY(read_rule(r));
    FR_TRY(fr_grammar_rules_check(r->rules));
    if (!r->rules->defined[r->rules->root]) return fr_fail(FR_INPUT, "the grammar has no rule called root");
    return check_defined(r);
}

fr_status fr_gbnf_read(fr_text text, fr_grammar_rules *rules) {
    size_t most = text.length / 2 + 2; /* in the text, another byte follows each name; the name `root` is always in the
                                        * table */
    reader r = {.c = {text, 0}, .rules = rules, .slots = fr_hash_table_size(2 * (most < RULES_MAX ? most : RULES_MAX))};
    r.names = calloc(r.slots, sizeof *r.names);
    if (!r.names) return fr_fail_memory("a grammar", r.slots * sizeof *r.names);
    fr_status status = read_all(&r);
    free(r.names);
    return status;
}
