/* Makes expressions of a schema's numbers (json_schema_reader.h). Bounds are written digit by digit (json_parts.c). If
 * multipleOf or excluded constants forbid some numbers, an automaton removes these. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/language/grammar/json_schema_reader.h"

#define STEP_MAX   10000
#define PLACES_MAX 6  /* limit on the digits after the decimal point */
#define WIDE       15 /* digits of the bound that replaces a missing one; up to 15 digits have exactly one spelling */

/* Reads one bound. Two keywords can give this bound; the tighter of the two is used. */
static void read_bound(const json_t *schema, const char *key, const char *strict_key, bool upper, bool *has,
                       bool *strict, fr_decimal *bound) {
    const json_t *plain = json_object_get(schema, key), *tight = json_object_get(schema, strict_key);
    bool number = fr_schema_is_number(tight), whole = false;
    int compared = number && plain ? fr_schema_compare(tight, plain) : 0;
    *strict = json_is_true(tight); /* in draft 4 the keyword is a boolean */
    if (number && (!plain || (upper ? compared <= 0 : compared >= 0))) {
        plain = tight;
        *strict = true;
    }
    *has = plain != NULL;
    if (plain) *bound = fr_decimal_of(plain, !upper, &whole);
    *strict &= whole;
}

/* ---------------------------------------------------------------------------------------------- multiples of a step */

/* Reads multipleOf as two integers: its value is units / 10^places. */
static fr_status read_step(const json_t *step, const fr_schema_path *path, uint32_t *units, uint32_t *places) {
    double value = (double)fr_schema_number(step), power = 1;
    for (*places = 0; *places <= PLACES_MAX; ++*places, power *= 10) {
        double scaled = floor(value * power + 0.5);
        if (scaled > STEP_MAX) break;
        if (scaled < 1 || fabs(scaled / power - value) > value * 1e-14) continue;
        *units = (uint32_t)scaled;
        return FR_OK;
    }
    return fr_schema_fail(path, FR_UNBUILT, "steps of more than 10000 units of their last place are not built");
}

static uint64_t power_of_ten(uint32_t exponent) {
    uint64_t power = 1;
    while (exponent-- > 0) power *= 10;
    return power;
}

/* Makes the automaton that accepts multiples of a step. It has a state for the beginning and one for the place after a
 * minus. The digits read so far leave a remainder when they are divided by `units`. For each number of digits after the
 * point (including 0) and each remainder there is a state. For each remainder there is also a state for the place
 * directly after the point. */
static fr_status make_decimals(fr_language *l, uint32_t units, uint32_t places) {
    for (uint32_t state = 0; state < 2; state++) {
        FR_TRY(fr_language_add_state(l, false));
        if (state == 0) FR_TRY(fr_language_add_edge(l, '-', '-', 1));
        for (uint32_t digit = 0; digit < 10; digit++)
            FR_TRY(fr_language_add_edge(l, '0' + digit, '0' + digit, 2 + digit % units));
    }
    for (uint32_t place = 0; place <= places; place++)
        for (uint64_t rest = 0; rest < units; rest++) {
            uint32_t next = 2 + (place + (place > 0)) * units; /* the first state with one more digit after the point */
            FR_TRY(fr_language_add_state(l, rest * power_of_ten(places - place) % units == 0));
            if (place == 0 && places > 0)
                FR_TRY(fr_language_add_edge(l, '.', '.', 2 + (places + 1) * units + (uint32_t)rest));
            for (uint32_t digit = 0; digit < 10 && (place == 0 || place < places); digit++)
                FR_TRY(
                    fr_language_add_edge(l, '0' + digit, '0' + digit, next + (uint32_t)((10 * rest + digit) % units)));
        }
    for (uint64_t rest = 0; rest < units && places > 0; rest++) {
        FR_TRY(fr_language_add_state(l, false));
        for (uint32_t digit = 0; digit < 10; digit++)
            FR_TRY(
                fr_language_add_edge(l, '0' + digit, '0' + digit, 2 + units + (uint32_t)((10 * rest + digit) % units)));
    }
    return FR_OK;
}

static fr_status narrow_by_step(fr_grammar_rules *rules, const json_t *step, const fr_schema_path *path,
                                fr_language **numbers) {
    uint32_t units = 1, places = 0;
    const fr_schema_path place = {path, "multipleOf", 0};
    FR_TRY(read_step(step, &place, &units, &places));
    fr_language *multiples = calloc(1, sizeof *multiples);
    fr_status status = multiples ? make_decimals(multiples, units, places) : fr_fail_memory("a schema", 64);
    if (status == FR_OK)
        status = fr_schema_narrow(rules, numbers, multiples);
    else
        fr_language_free(multiples);
    return status == FR_UNBUILT ? fr_schema_fail(&place, status, "too many steps: not built") : status;
}

/* ---------------------------------------------------------------------------------------------- excluding constants */

/* Writes a number as the grammar writes it: as an integer, or with as few decimal places as distinguish it from other
 * numbers. */
static void write_number(const json_t *number, char *text, size_t size) {
    double value = json_number_value(number);
    if (value == 0) value = 0; /* turns -0 into 0 */
    bool whole;
    if (!json_is_real(number)) snprintf(text, size, "%s", fr_decimal_of(number, false, &whole).text);
    if (!json_is_real(number)) return;
    for (int places = 0; places <= PLACES_MAX; places++) {
        snprintf(text, size, "%.*f", places, value);
        if (strtod(text, NULL) == value) return;
    }
}

static fr_status narrow_by_constants(fr_grammar_rules *rules, const json_t *list, fr_language **numbers) {
    static const fr_character_range digits[] = {{'-', '.'}, {'0', '9'}};
    json_t *texts = fr_schema_list(rules), *item;
    size_t i;
    json_array_foreach (list, i, item) {
        char text[400];
        if (!fr_schema_is_number(item)) continue;
        write_number(item, text, sizeof text);
        fr_schema_add(rules, texts, fr_schema_pack(rules, "s", text));
    }
    fr_language *some = NULL, *others = NULL;
    fr_status status = fr_schema_texts(rules, texts, &some);
    json_decref(texts);
    if (status == FR_OK) status = fr_schema_except(rules, some, digits, 2, &others);
    fr_language_free(some);
    return status == FR_OK ? fr_schema_narrow(rules, numbers, others) : status;
}

/* ---------------------------------------------------------------------------------------------------------- numbers */

static fr_status narrow(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path, fr_language **numbers,
                        fr_expression *expression) {
    const json_t *step = json_object_get(schema, "multipleOf"), *others = json_object_get(schema, FR_NONE_OF);
    fr_grammar_rules *rules = r->parts->rules;
    if (step) FR_TRY(narrow_by_step(rules, step, path, numbers));
    if (others) FR_TRY(narrow_by_constants(rules, others, numbers));
    if (fr_language_is_empty(*numbers)) return fr_schema_nothing(r, path);
    *expression = fr_language_expression(*numbers, fr_expression_characters, r->parts->rules);
    return FR_OK;
}

/* Gives a bound that replaces a missing one, below the numbers (`below`) or above them. The new bound is far from the
 * other bound. If the other bound is missing too, the new bound is far from 0. */
static fr_decimal far_from(const fr_decimal *other, bool below) {
    size_t digits = other && (*other->text == '-') == below ? fr_decimal_length(other) + 1 : 0;
    return fr_decimal_nines(digits > WIDE ? digits : WIDE, below);
}

/* Refuses a bound if only numbers of 40 or more digits reach it. */
static fr_status check_reach(const json_t *schema, const fr_schema_path *path) {
    static const char *const words[] = {"minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        const fr_schema_path place = {path, words[i], 0};
        long double bound = fr_schema_number(json_object_get(schema, words[i]));
        if ((i < 2 ? bound : -bound) < 1e39L) continue;
        return fr_schema_fail(&place, FR_UNBUILT, "numbers of 40 digits and more are not built");
    }
    return FR_OK;
}

fr_status fr_schema_read_number(fr_schema_reader *r, const json_t *schema, bool whole, const fr_schema_path *path,
                                fr_expression *expression) {
    FR_TRY(check_reach(schema, path));
    fr_written_bounds b = {0};
    bool narrowed = json_object_get(schema, "multipleOf") || json_object_get(schema, FR_NONE_OF);
    read_bound(schema, "minimum", "exclusiveMinimum", false, &b.has_least, &b.above_least, &b.least);
    read_bound(schema, "maximum", "exclusiveMaximum", true, &b.has_most, &b.below_most, &b.most);
    if (narrowed && !b.has_least) b.least = far_from(b.has_most ? &b.most : NULL, true);
    if (narrowed && !b.has_most) b.most = far_from(b.has_least ? &b.least : NULL, false);
    if (narrowed) b.has_least = b.has_most = true;
    bool some = whole ? fr_written_integer(r->parts, &b, expression) : fr_written_number(r->parts, &b, expression);
    if (!some) return fr_schema_nothing(r, path);
    if (!narrowed) return FR_OK;
    fr_language *numbers;
    FR_TRY(fr_language_of(r->parts->rules, *expression, &numbers));
    fr_status status = narrow(r, schema, path, &numbers, expression);
    fr_language_free(numbers);
    return status;
}
