/* Makes expressions of the parts of JSON values (json_parts.h), after RFC 8259. */
#include "src/language/grammar/json_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <utf8proc.h>

#include "formats/json.h"
#include "formats/json_wide.h"

#define INDENT_MAX      20 /* limit on the characters of an indentation */
#define DIGITS_MAX      18 /* limit on the digits of an integer that has no bounds */
#define FRACTION_MAX    6  /* limit on the digits after the decimal point */
#define KEY_MAX         40 /* limit on the further characters of a key without quotes, after its first one */
/* Limit on the total bytes of the names that a schema gives to an object's keys. A key that the schema does not name
 * must differ from all of them (other_end). */
#define NAME_LENGTH_MAX 200

fr_written_parts fr_written_parts_of(fr_grammar_rules *rules) {
    return (fr_written_parts){.rules = rules,
                              .string = FR_GRAMMAR_NO_RULE,
                              .any = FR_GRAMMAR_NO_RULE,
                              .object = FR_GRAMMAR_NO_RULE,
                              .array = FR_GRAMMAR_NO_RULE};
}

static fr_expression range(fr_written_parts *p, uint32_t low, uint32_t high) {
    return fr_expression_characters(p->rules, &(fr_character_range){low, high}, 1, false);
}

static fr_expression then(fr_written_parts *p, fr_expression first, fr_expression second) {
    return fr_expression_then(p->rules, first, second);
}

static fr_expression maybe(fr_written_parts *p, fr_expression of) {
    return fr_expression_repeat(p->rules, of, 0, 1);
}

static fr_expression string(fr_written_parts *p, const char *text) {
    return fr_expression_string(p->rules, text);
}

fr_expression fr_written_blank(fr_written_parts *p) {
    if (p->mark) return 0;
    const fr_character_range indents[] = {{' ', ' '}, {'\t', '\t'}};
    fr_expression indent =
        fr_expression_repeat(p->rules, fr_expression_characters(p->rules, indents, 2, false), 0, INDENT_MAX);
    return maybe(p, fr_expression_or(p->rules, string(p, " "), then(p, string(p, "\n"), indent)));
}

fr_expression fr_written_comma(fr_written_parts *p) {
    return then(p, string(p, ","), fr_written_blank(p));
}

fr_expression fr_written_list(fr_written_parts *p, const char *open, fr_expression item, uint32_t least, uint32_t most,
                              const char *close) {
    uint32_t rule = fr_grammar_rule(p->rules); /* the item occurs twice in the expression, so it becomes a rule */
    fr_grammar_define(p->rules, rule, item);
    item = fr_expression_rule(p->rules, rule);
    fr_expression begin = then(p, string(p, open), fr_written_blank(p));
    fr_expression more = then(p, fr_written_comma(p), item), end = then(p, fr_written_blank(p), string(p, close));
    if (most == 0) return then(p, string(p, open), string(p, close));
    uint32_t others = most == FR_GRAMMAR_UNBOUND ? most : most - 1;
    fr_expression all = then(p, item, fr_expression_repeat(p->rules, more, least ? least - 1 : 0, others));
    return then(p, then(p, begin, least ? all : maybe(p, all)), end);
}

/* ---------------------------------------------------------------------------------------------------------- strings */

static const fr_character_range PLAIN[] = {{0x20, 0x21}, {0x23, 0x5B}, {0x5D, 0x7E}, {0x80, FR_CODE_POINT_MAX}};

/* Characters that have a short escape in JSON. */
static const struct escape {
    uint32_t code;
    const char *written;
} ESCAPES[] = {{'"', "\\\""}, {'\\', "\\\\"}, {'\b', "\\b"}, {'\f', "\\f"},
               {'\n', "\\n"}, {'\r', "\\r"},  {'\t', "\\t"}};

static bool within(const fr_character_range *ranges, size_t count, bool except, uint32_t code) {
    bool found = false;
    for (size_t i = 0; i < count; i++) found |= ranges[i].low <= code && code <= ranges[i].high;
    return found != except;
}

/* Gives the intersection of the ranges with PLAIN, and returns how many ranges it has. The given ranges must not
 * overlap. */
static size_t common(const fr_character_range *ranges, size_t count, fr_character_range *out) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < sizeof PLAIN / sizeof *PLAIN; k++) {
            uint32_t low = ranges[i].low > PLAIN[k].low ? ranges[i].low : PLAIN[k].low;
            uint32_t high = ranges[i].high < PLAIN[k].high ? ranges[i].high : PLAIN[k].high;
            if (low <= high) out[kept++] = (fr_character_range){low, high};
        }
    return kept;
}

/* Allows every plain character except those in the ranges. */
static fr_expression plain_except(fr_grammar_rules *rules, const fr_character_range *ranges, size_t count) {
    fr_character_range *all = malloc((count + 4) * sizeof *all);
    if (!all) {
        rules->status = FR_MEMORY;
        return 0;
    }
    if (count) memcpy(all, ranges, count * sizeof *all);
    const fr_character_range banned[] = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}, {0x7F, 0x7F}};
    memcpy(all + count, banned, sizeof banned);
    fr_expression made = fr_expression_characters(rules, all, count + 4, true);
    free(all);
    return made;
}

static fr_expression plain_of(fr_grammar_rules *rules, const fr_character_range *ranges, size_t count) {
    fr_character_range *all = malloc((4 * count + 1) * sizeof *all);
    if (!all) {
        rules->status = FR_MEMORY;
        return 0;
    }
    fr_expression made = fr_expression_characters(rules, all, common(ranges, count, all), false);
    free(all);
    return made;
}

fr_expression fr_written_write(fr_grammar_rules *rules, const fr_character_range *ranges, size_t count, bool except) {
    fr_expression made = except ? plain_except(rules, ranges, count) : plain_of(rules, ranges, count);
    for (size_t i = 0; i < sizeof ESCAPES / sizeof *ESCAPES; i++)
        if (within(ranges, count, except, ESCAPES[i].code))
            made = fr_expression_or(rules, made, fr_expression_string(rules, ESCAPES[i].written));
    return made;
}

/* Allows \uXXXX for all codes except halves of surrogate pairs. */
static fr_expression by_code(fr_written_parts *p) {
    const fr_character_range hex[] = {{'0', '9'}, {'a', 'f'}, {'A', 'F'}};
    const fr_character_range but_d[] = {{'0', '9'}, {'a', 'c'}, {'e', 'f'}, {'A', 'C'}, {'E', 'F'}};
    const fr_character_range d[] = {{'d', 'd'}, {'D', 'D'}};
    fr_expression any = fr_expression_characters(p->rules, hex, 3, false);
    fr_expression whole =
        then(p, fr_expression_characters(p->rules, but_d, 5, false), fr_expression_repeat(p->rules, any, 3, 3));
    fr_expression lower = then(p, then(p, fr_expression_characters(p->rules, d, 2, false), range(p, '0', '7')),
                               fr_expression_repeat(p->rules, any, 2, 2));
    return then(p, string(p, "\\u"), fr_expression_or(p->rules, whole, lower));
}

/* Writes the characters of a string between two marks. If the marks are written as text, the string must not contain
 * '<', because the marks begin with it. */
static fr_expression bare_characters(fr_grammar_rules *rules, const fr_character_range *ranges, size_t count,
                                     bool except) {
    fr_character_range *all = malloc((count + 2) * sizeof *all);
    if (!all) {
        rules->status = FR_MEMORY;
        return 0;
    }
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        fr_character_range range = ranges[i];
        bool cut = !except && range.low <= '<' && range.high >= '<';
        if (!cut) all[kept++] = range;
        if (cut && range.low < '<') all[kept++] = (fr_character_range){range.low, '<' - 1};
        if (cut && range.high > '<') all[kept++] = (fr_character_range){'<' + 1, range.high};
    }
    if (except) all[kept++] = (fr_character_range){'<', '<'};
    fr_expression made = fr_expression_characters(rules, all, kept, except);
    free(all);
    return made;
}

fr_write_characters *fr_written_writer(const fr_written_parts *p) {
    if (!p->mark) return fr_written_write;
    return p->mark_is_text ? bare_characters : fr_expression_characters;
}

fr_expression fr_written_quote(fr_written_parts *p) {
    return p->mark ? p->mark : string(p, "\"");
}

static fr_expression character(fr_written_parts *p) {
    if (p->mark) return fr_written_writer(p)(p->rules, NULL, 0, true);
    fr_expression slash = fr_expression_or(p->rules, string(p, "\\/"), by_code(p));
    return fr_expression_or(p->rules, fr_written_write(p->rules, NULL, 0, true), slash);
}

fr_expression fr_written_string_of_length(fr_written_parts *p, uint32_t least, uint32_t most) {
    fr_expression quote = fr_written_quote(p);
    return then(p, then(p, quote, fr_expression_repeat(p->rules, character(p), least, most)), quote);
}

fr_expression fr_written_string(fr_written_parts *p) {
    if (p->string == FR_GRAMMAR_NO_RULE) {
        p->string = fr_grammar_rule(p->rules);
        fr_grammar_define(p->rules, p->string, fr_written_string_of_length(p, 0, FR_GRAMMAR_UNBOUND));
    }
    return fr_expression_rule(p->rules, p->string);
}

/* ------------------------------------------------------------------------------------ strings other than given ones */

static int by_text(const void *one, const void *other) {
    return strcmp(*(const char *const *)one, *(const char *const *)other);
}

static uint32_t code_at(const char *text, size_t at, size_t *length) {
    utf8proc_int32_t code;
    utf8proc_ssize_t size = utf8proc_iterate((const utf8proc_uint8_t *)text + at, -1, &code);
    *length = size < 1 ? 1 : (size_t)size;
    return size < 1 ? 0xFFFD : (uint32_t)code;
}

/* Makes the rest of a string after its first `at` bytes, up to its closing quote. These bytes are the beginning of all
 * `names`, which are sorted. The whole string must not be one of these names. */
static fr_expression other_end(fr_written_parts *p, const char *const *names, size_t count, size_t at) {
    fr_expression quote = string(p, "\"");
    fr_expression any = fr_expression_repeat(p->rules, plain_except(p->rules, NULL, 0), 0, FR_GRAMMAR_UNBOUND);
    fr_character_range *taken = malloc((count + 1) * sizeof *taken);
    size_t kinds = 0;
    fr_expression made = 0;
    bool ends = count && !names[0][at];
    if (at > NAME_LENGTH_MAX && p->rules->status == FR_OK) p->rules->status = FR_INPUT;
    if (!taken) p->rules->status = FR_MEMORY;
    if (p->rules->status != FR_OK) {
        free(taken);
        return 0;
    }
    for (size_t i = ends, next; taken && i < count; i = next) {
        size_t length, same;
        uint32_t code = code_at(names[i], at, &length);
        for (next = i + 1; next < count && code_at(names[next], at, &same) == code;) next++;
        fr_expression below = then(p, fr_written_write(p->rules, &(fr_character_range){code, code}, 1, false),
                                   other_end(p, names + i, next - i, at + length));
        made = kinds ? fr_expression_or(p->rules, made, below) : below;
        taken[kinds++] = (fr_character_range){code, code};
    }
    fr_expression others = taken ? then(p, plain_except(p->rules, taken, kinds), then(p, any, quote)) : 0;
    free(taken);
    made = kinds ? fr_expression_or(p->rules, made, others) : others;
    return ends ? made : fr_expression_or(p->rules, made, quote);
}

static fr_expression any_key(fr_written_parts *p);

fr_expression fr_written_other_string(fr_written_parts *p, const char *const *names, size_t count) {
    const char **sorted = p->mark ? NULL : malloc((count + 1) * sizeof *sorted);
    if (p->mark) return any_key(p); /* keys without quotes are not compared with names */
    if (!sorted) {
        p->rules->status = FR_MEMORY;
        return 0;
    }
    memcpy(sorted, names, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_text);
    fr_expression made = then(p, string(p, "\""), other_end(p, sorted, count, 0));
    free(sorted);
    return made;
}

/* ---------------------------------------------------------------------------------------------------------- numbers */

static fr_expression digits(fr_written_parts *p, uint32_t least, uint32_t most) {
    return fr_expression_repeat(p->rules, range(p, '0', '9'), least, most);
}

/* Allows 0, or digits that do not begin with 0. */
static fr_expression natural(fr_written_parts *p) {
    return fr_expression_or(p->rules, string(p, "0"), then(p, range(p, '1', '9'), digits(p, 0, DIGITS_MAX - 1)));
}

static void join(fr_written_parts *p, fr_expression *all, bool *some, fr_expression one) {
    *all = *some ? fr_expression_or(p->rules, *all, one) : one;
    *some = true;
}

/* Allows the numbers from low to high, digit by digit. low and high must have the same number of digits. */
static fr_expression between(fr_written_parts *p, const char *low, const char *high) {
    size_t length = strlen(low);
    if (length == 0) return 0;
    if (strspn(low, "0") == length && strspn(high, "9") == length) return digits(p, (uint32_t)length, (uint32_t)length);
    if (*low == *high) return then(p, fr_expression_character(p->rules, (uint32_t)*low), between(p, low + 1, high + 1));
    char bound[FR_DECIMAL_DIGITS + 1];
    fr_expression all = 0;
    bool some = false, low_cut = strspn(low + 1, "0") != length - 1, high_cut = strspn(high + 1, "9") != length - 1;
    uint32_t from = (uint32_t)*low + low_cut, to = (uint32_t)*high - high_cut;
    memset(bound, '9', length);
    bound[length - 1] = '\0';
    if (low_cut)
        join(p, &all, &some, then(p, fr_expression_character(p->rules, (uint32_t)*low), between(p, low + 1, bound)));
    uint32_t rest = (uint32_t)length - 1;
    if (from <= to) join(p, &all, &some, then(p, range(p, from, to), digits(p, rest, rest)));
    memset(bound, '0', length - 1);
    if (high_cut)
        join(p, &all, &some, then(p, fr_expression_character(p->rules, (uint32_t)*high), between(p, bound, high + 1)));
    return all;
}

/* Allows the numbers from low to high. low and high are at least 0. */
static void add_naturals(fr_written_parts *p, fr_decimal low, fr_decimal high, const char *sign, fr_expression *all,
                         bool *some) {
    const size_t shortest = strlen(low.text), longest = strlen(high.text);
    for (size_t length = shortest; length <= longest && fr_decimal_compare(&low, &high) <= 0; length++) {
        fr_decimal end = length == longest ? high : fr_decimal_nines(length, false);
        join(p, all, some, then(p, string(p, sign), between(p, low.text, end.text)));
        low = fr_decimal_next(end, false);
    }
}

/* Finds the smallest and the largest integer within the bounds. A missing bound is replaced by an integer of DIGITS_MAX
 * digits. If the other bound already has more digits than that, the replacement has one digit more than the other
 * bound. */
static void whole_bounds(const fr_written_bounds *b, fr_decimal *low, fr_decimal *high) {
    const fr_decimal far_low = fr_decimal_nines(DIGITS_MAX, true), far_high = fr_decimal_nines(DIGITS_MAX, false);
    *low = b->has_least && b->above_least ? fr_decimal_next(b->least, false) : b->has_least ? b->least : far_low;
    *high = b->has_most && b->below_most ? fr_decimal_next(b->most, true) : b->has_most ? b->most : far_high;
    if (!b->has_least && fr_decimal_compare(high, &far_low) < 0)
        *low = fr_decimal_nines(fr_decimal_length(high) + 1, true);
    if (!b->has_most && fr_decimal_compare(low, &far_high) > 0)
        *high = fr_decimal_nines(fr_decimal_length(low) + 1, false);
}

static const fr_decimal ZERO = {"0"}, ONE = {"1"};

static fr_decimal larger(fr_decimal one, fr_decimal other) {
    return fr_decimal_compare(&one, &other) > 0 ? one : other;
}

static void add_integers(fr_written_parts *p, fr_decimal low, fr_decimal high, fr_expression *all, bool *some) {
    if (fr_decimal_compare(&low, &high) > 0) return;
    if (*low.text == '-')
        add_naturals(p, larger(fr_decimal_negated(high), ONE), fr_decimal_negated(low), "-", all, some);
    if (*high.text != '-') add_naturals(p, larger(low, ZERO), high, "", all, some);
}

bool fr_written_integer(fr_written_parts *p, const fr_written_bounds *bounds, fr_expression *expression) {
    fr_decimal low, high;
    bool some = false;
    *expression = then(p, maybe(p, string(p, "-")), natural(p));
    if (!bounds->has_least && !bounds->has_most) return true;
    whole_bounds(bounds, &low, &high);
    add_integers(p, low, high, expression, &some);
    return some;
}

/* Allows numbers with a fraction that is not 0. Such a number lies between two neighbouring integers, so it suffices to
 * bound its whole part. */
static void add_fractions(fr_written_parts *p, const fr_written_bounds *b, fr_expression *all, bool *some) {
    const fr_decimal far = fr_decimal_nines(DIGITS_MAX - 1, false);
    fr_decimal low = b->has_least ? larger(b->least, ZERO) : ZERO, high = b->has_most ? b->most : far;
    fr_expression whole = 0,
                  fraction = then(p, then(p, string(p, "."), digits(p, 0, FRACTION_MAX - 1)), range(p, '1', '9'));
    bool any = false;
    if (b->has_most) high = fr_decimal_next(high, true);
    if (fr_decimal_compare(&low, &high) <= 0) add_naturals(p, low, high, "", &whole, &any);
    low = b->has_most ? larger(fr_decimal_negated(b->most), ZERO) : ZERO;
    high = b->has_least ? fr_decimal_next(fr_decimal_negated(b->least), true) : far;
    if (fr_decimal_compare(&low, &high) <= 0) add_naturals(p, low, high, "-", &whole, &any);
    if (any) join(p, all, some, then(p, whole, fraction));
}

bool fr_written_number(fr_written_parts *p, const fr_written_bounds *bounds, fr_expression *expression) {
    fr_decimal low, high;
    bool some = false;
    const fr_character_range e[] = {{'e', 'e'}, {'E', 'E'}}, signs[] = {{'+', '+'}, {'-', '-'}};
    if (bounds->has_least || bounds->has_most) {
        *expression = 0;
        whole_bounds(bounds, &low, &high);
        add_integers(p, low, high, expression, &some);
        add_fractions(p, bounds, expression, &some);
        return some;
    }
    fr_expression exponent =
        then(p, fr_expression_characters(p->rules, e, 2, false),
             then(p, maybe(p, fr_expression_characters(p->rules, signs, 2, false)), digits(p, 1, 2)));
    fr_expression fraction = then(p, string(p, "."), digits(p, 1, DIGITS_MAX));
    *expression =
        then(p, then(p, then(p, maybe(p, string(p, "-")), natural(p)), maybe(p, fraction)), maybe(p, exponent));
    return true;
}

/* ------------------------------------------------------------------------------------------------------- any values */

static bool is_bare(const char *name) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    return *name && strspn(name, letters) == strlen(name);
}

/* Writes a value as JSON; NULL: memory ran out. */
static fr_expression dumped(fr_written_parts *p, const json_t *value) {
    char *text = NULL;
    size_t length = 0;
    fr_status status = fr_json_dump(value, JSON_COMPACT | JSON_ENCODE_ANY, "a schema", &text, &length);
    if (p->rules->status == FR_OK) p->rules->status = status;
    fr_expression made = status == FR_OK ? fr_expression_text(p->rules, (fr_text){text, length}) : 0;
    free(text);
    return made;
}

/* Writes a key in the form of `parts`: without quotes, or as a JSON string. */
static fr_expression key(fr_written_parts *p, const char *name) {
    if (p->mark && is_bare(name)) return string(p, name);
    json_t *text = json_string(name);
    fr_expression made = dumped(p, text);
    json_decref(text);
    return made;
}

static fr_expression any_key(fr_written_parts *p) {
    const fr_character_range letters[] = {{'a', 'z'}, {'A', 'Z'}, {'_', '_'}, {'0', '9'}};
    if (!p->mark) return fr_written_string(p);
    return then(p, fr_expression_characters(p->rules, letters, 3, false),
                fr_expression_repeat(p->rules, fr_expression_characters(p->rules, letters, 4, false), 0, KEY_MAX));
}

fr_expression fr_written_member(fr_written_parts *p, const char *name, fr_expression value) {
    return then(p, then(p, key(p, name), then(p, string(p, ":"), fr_written_blank(p))), value);
}

fr_expression fr_written_any_array(fr_written_parts *p) {
    if (p->array == FR_GRAMMAR_NO_RULE) {
        p->array = fr_grammar_rule(p->rules);
        fr_grammar_define(p->rules, p->array, fr_written_list(p, "[", fr_written_any(p), 0, FR_GRAMMAR_UNBOUND, "]"));
    }
    return fr_expression_rule(p->rules, p->array);
}

fr_expression fr_written_any_object(fr_written_parts *p) {
    if (p->object == FR_GRAMMAR_NO_RULE) {
        p->object = fr_grammar_rule(p->rules);
        fr_expression member =
            then(p, then(p, any_key(p), then(p, string(p, ":"), fr_written_blank(p))), fr_written_any(p));
        fr_grammar_define(p->rules, p->object, fr_written_list(p, "{", member, 0, FR_GRAMMAR_UNBOUND, "}"));
    }
    return fr_expression_rule(p->rules, p->object);
}

fr_expression fr_written_any(fr_written_parts *p) {
    static const char *const words[] = {"true", "false", "null"};
    if (p->any == FR_GRAMMAR_NO_RULE) {
        p->any = fr_grammar_rule(p->rules);
        fr_expression all;
        fr_written_number(p, &(fr_written_bounds){0}, &all);
        all = fr_expression_or(p->rules, all, fr_written_string(p));
        for (size_t i = 0; i < 3; i++) all = fr_expression_or(p->rules, all, string(p, words[i]));
        all = fr_expression_or(p->rules, all, fr_written_any_object(p));
        fr_grammar_define(p->rules, p->any, fr_expression_or(p->rules, all, fr_written_any_array(p)));
    }
    return fr_expression_rule(p->rules, p->any);
}

static fr_expression bare_literal(fr_written_parts *p, const json_t *value);

static fr_expression bare_array(fr_written_parts *p, const json_t *value) {
    fr_expression all = string(p, "[");
    for (size_t i = 0; i < json_array_size(value); i++) {
        if (i) all = then(p, all, string(p, ","));
        all = then(p, all, bare_literal(p, json_array_get(value, i)));
    }
    return then(p, all, string(p, "]"));
}

static fr_expression bare_object(fr_written_parts *p, const json_t *value) {
    const char *name, *comma = "";
    json_t *member;
    fr_expression all = string(p, "{");
    json_object_foreach ((json_t *)value, name, member) {
        all = then(p, then(p, all, string(p, comma)), fr_written_member(p, name, bare_literal(p, member)));
        comma = ",";
    }
    return then(p, all, string(p, "}"));
}

static fr_expression bare_literal(fr_written_parts *p, const json_t *value) {
    if (json_is_array(value)) return bare_array(p, value);
    if (json_is_object(value)) return bare_object(p, value);
    if (!fr_json_is_text(value)) return fr_written_literal(p, value);
    fr_text text = {json_string_value(value), json_string_length(value)};
    return then(p, then(p, p->mark, fr_expression_text(p->rules, text)), p->mark);
}

fr_expression fr_written_literal(fr_written_parts *p, const json_t *value) {
    if (p->mark && (json_is_array(value) || json_is_object(value) || fr_json_is_text(value)))
        return bare_literal(p, value);
    return dumped(p, value);
}
