/* JSON values that are made while a schema is read, and looked at.
 *
 * In: values, which the caller keeps unless it says "takes". Out: others. None of these calls fails: what memory is
 * short for, or what would take more steps than a grammar may (rules.h), is NULL or left out, and stays so, until
 * fr_schema_check says it. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_JSON_SCHEMA_VALUES_H
#define FR_SRC_LANGUAGE_GRAMMAR_JSON_SCHEMA_VALUES_H

#include <jansson.h>

#include "src/language/grammar/json_schema_words.h"
#include "src/language/grammar/rules.h"

/* FR_MEMORY; FR_UNBUILT or FR_INPUT, by the place, where there is too much to be looked at or to be made. */
fr_status fr_schema_check(const fr_grammar_rules *rules, const fr_schema_path *path);

json_t *fr_schema_list(fr_grammar_rules *rules);
json_t *fr_schema_pack(fr_grammar_rules *rules, const char *format, ...);

/* An object of one member, whose key may be one of our own; takes the value. */
json_t *fr_schema_said(fr_grammar_rules *rules, const char *key, json_t *value);

/* A copy of an object or list with the same values in it. */
json_t *fr_schema_copy(fr_grammar_rules *rules, const json_t *value);
json_t *fr_schema_without(fr_grammar_rules *rules, const json_t *object, const char *key);

/* Both take the value. */
void fr_schema_add(fr_grammar_rules *rules, json_t *list, json_t *value);
void fr_schema_set(fr_grammar_rules *rules, json_t *object, const char *key, json_t *value);

/* As JSON Schema has it: numbers are one if they are of one value, however they are written. */
bool fr_schema_same(fr_grammar_rules *rules, const json_t *one, const json_t *other);
bool fr_schema_lists(fr_grammar_rules *rules, const json_t *list, const json_t *value);

/* Says if a value is a number, also an integer that jansson has no value for (json_wide.h); gives its value, 0 of what
 * is none; compares two: -1, 0 or 1. */
bool fr_schema_is_number(const json_t *value);
long double fr_schema_number(const json_t *value);
int fr_schema_compare(const json_t *one, const json_t *other);

#endif
