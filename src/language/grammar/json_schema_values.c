/* Makes JSON values while a schema is read (json_schema_values.h). */
#include "src/language/grammar/json_schema_values.h"

#include <float.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "formats/json_wide.h"
#include "src/language/grammar/decimal.h"

_Static_assert(LDBL_MANT_DIG >= 64, "a long double has each integer of 64 bits");

static void lose(fr_grammar_rules *rules) {
    if (rules->status == FR_OK) rules->status = FR_MEMORY;
}

static json_t *made(fr_grammar_rules *rules, json_t *value) {
    if (!value) lose(rules);
    return value;
}

fr_status fr_schema_check(const fr_grammar_rules *rules, const fr_schema_path *path) {
    if (rules->status == FR_UNBUILT)
        return fr_schema_fail(path, FR_UNBUILT, "the schema up to here takes too many steps to read: not built");
    if (rules->status == FR_INPUT) return fr_schema_fail(path, FR_INPUT, "the schema is too large");
    return fr_grammar_rules_check(rules);
}

/* ----------------------------------------------------------------------------------------------------------- making */

json_t *fr_schema_list(fr_grammar_rules *rules) {
    return fr_grammar_spend(rules, 2) ? made(rules, json_array()) : NULL;
}

json_t *fr_schema_pack(fr_grammar_rules *rules, const char *format, ...) {
    json_error_t error;
    va_list values;
    fr_grammar_spend(rules, 4);
    va_start(values, format);
    json_t *value = json_vpack_ex(&error, 0, format, values); /* frees the given values even if it fails */
    va_end(values);
    return made(rules, value);
}

json_t *fr_schema_said(fr_grammar_rules *rules, const char *key, json_t *value) {
    json_t *object = fr_grammar_spend(rules, 2) ? made(rules, json_object()) : NULL;
    fr_schema_set(rules, object, key, value);
    return object;
}

/* Copies a value as json_copy does, but reports if there is no memory for a member. */
json_t *fr_schema_copy(fr_grammar_rules *rules, const json_t *value) {
    const char *key;
    json_t *item, *copy = fr_schema_pack(rules, json_is_array(value) ? "[]" : "{}");
    size_t i;
    json_array_foreach (value, i, item) fr_schema_add(rules, copy, json_incref(item));
    json_object_foreach ((json_t *)value, key, item) fr_schema_set(rules, copy, key, json_incref(item));
    return copy;
}

json_t *fr_schema_without(fr_grammar_rules *rules, const json_t *object, const char *key) {
    json_t *rest = fr_schema_copy(rules, object);
    if (rest) json_object_del(rest, key);
    return rest;
}

void fr_schema_add(fr_grammar_rules *rules, json_t *list, json_t *value) {
    if (!fr_grammar_spend(rules, 1))
        json_decref(value);
    else if (json_array_append_new(list, value) != 0)
        lose(rules);
}

void fr_schema_set(fr_grammar_rules *rules, json_t *object, const char *key, json_t *value) {
    if (!fr_grammar_spend(rules, 2))
        json_decref(value);
    else if (json_object_set_new_nocheck(object, key, value) != 0)
        lose(rules);
}

/* ------------------------------------------------------------------------------------------------------ comparisons */

bool fr_schema_is_number(const json_t *value) {
    size_t length;
    return json_is_number(value) || fr_json_wide_digits(value, &length);
}

long double fr_schema_number(const json_t *value) {
    size_t length;
    const char *digits = fr_json_wide_digits(value, &length);
    if (digits) return strtold(digits, NULL);
    return json_is_integer(value) ? (long double)json_integer_value(value) : (long double)json_real_value(value);
}

/* Compares integers by their digits. */
static int compare_digits(const char *one, size_t length, const char *other, size_t other_length) {
    bool negative = *one == '-';
    if (negative != (*other == '-')) return negative ? -1 : 1;
    int larger = (length > other_length) - (length < other_length);
    if (larger == 0) larger = memcmp(one, other, length);
    larger = (larger > 0) - (larger < 0);
    return negative ? -larger : larger;
}

int fr_schema_compare(const json_t *one, const json_t *other) {
    size_t length, other_length;
    const char *digits = fr_json_wide_digits(one, &length), *others = fr_json_wide_digits(other, &other_length);
    if (digits && others) return compare_digits(digits, length, others, other_length);
    if (digits && json_is_integer(other)) return *digits == '-' ? -1 : 1;
    if (others && json_is_integer(one)) return *others == '-' ? 1 : -1;
    if ((digits && length <= FR_DECIMAL_DIGITS) || (others && other_length <= FR_DECIMAL_DIGITS)) {
        bool whole;
        fr_decimal a = fr_decimal_of(one, false, &whole), b = fr_decimal_of(other, false, &whole);
        return fr_decimal_compare(&a, &b);
    }
    long double a = fr_schema_number(one), b = fr_schema_number(other);
    return (a > b) - (a < b);
}

static bool same_items(fr_grammar_rules *rules, const json_t *one, const json_t *other) {
    size_t i;
    json_t *item;
    if (json_array_size(one) != json_array_size(other)) return false;
    json_array_foreach (one, i, item)
        if (!fr_schema_same(rules, item, json_array_get(other, i))) return false;
    return true;
}

static bool same_members(fr_grammar_rules *rules, const json_t *one, const json_t *other) {
    const char *key;
    json_t *member;
    if (json_object_size(one) != json_object_size(other)) return false;
    json_object_foreach ((json_t *)one, key, member)
        if (!fr_schema_same(rules, member, json_object_get(other, key))) return false;
    return true;
}

bool fr_schema_same(fr_grammar_rules *rules, const json_t *one, const json_t *other) {
    if (!one || !other || !fr_grammar_spend(rules, 1)) return false;
    if (one == other) return true;
    if (fr_schema_is_number(one) && fr_schema_is_number(other)) return fr_schema_compare(one, other) == 0;
    if (json_is_array(one) && json_is_array(other)) return same_items(rules, one, other);
    if (json_is_object(one) && json_is_object(other)) return same_members(rules, one, other);
    return json_equal(one, other);
}

bool fr_schema_lists(fr_grammar_rules *rules, const json_t *list, const json_t *value) {
    size_t i;
    json_t *item;
    json_array_foreach (list, i, item) {
        if (fr_schema_same(rules, item, value)) return true;
        if (rules->status != FR_OK) return false;
    }
    return false;
}
