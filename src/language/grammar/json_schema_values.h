/* Makes and compares JSON values while a schema is read.
 *
 * In: values, which still belong to the caller, except where a comment says that the call takes a value over. Out:
 * other values. These calls return no status. If memory runs out, or if the call takes more steps than a grammar may
 * (rules.h), the result is NULL or left out, and fr_schema_check reports the failure later. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_JSON_SCHEMA_VALUES_H
#define FR_SRC_LANGUAGE_GRAMMAR_JSON_SCHEMA_VALUES_H

#include <jansson.h>

#include "src/language/grammar/json_schema_words.h"
#include "src/language/grammar/rules.h"

/* Reports a failure of the calls below. FR_MEMORY: there was no memory. FR_UNBUILT or FR_INPUT, with the place in the
 * error line: there was too much to read or to make. */
fr_status fr_schema_check(const fr_grammar_rules *rules, const fr_schema_path *path);

json_t *fr_schema_list(fr_grammar_rules *rules);
json_t *fr_schema_pack(fr_grammar_rules *rules, const char *format, ...);

/* Makes an object with one member, whose key may be one of our own keywords. Takes over the value. */
json_t *fr_schema_said(fr_grammar_rules *rules, const char *key, json_t *value);

/* fr_schema_copy copies an object or list, but not the values in it, which belong to both the copy and the original. */
json_t *fr_schema_copy(fr_grammar_rules *rules, const json_t *value);
json_t *fr_schema_without(fr_grammar_rules *rules, const json_t *object, const char *key);

/* fr_schema_add appends `value` to a list. fr_schema_set stores `value` in an object. Both take `value` over, and free
 * it if they fail. */
void fr_schema_add(fr_grammar_rules *rules, json_t *list, json_t *value);
void fr_schema_set(fr_grammar_rules *rules, json_t *object, const char *key, json_t *value);

/* Compare by JSON Schema's rules: numbers are equal if their values are equal, in whatever form they are written. */
bool fr_schema_same(fr_grammar_rules *rules, const json_t *one, const json_t *other);
bool fr_schema_lists(fr_grammar_rules *rules, const json_t *list, const json_t *value);

/* fr_schema_is_number returns true for a number, including an integer that is too large for jansson (json_wide.h).
 * fr_schema_number gives a number's value, or 0 if the value is not a number. fr_schema_compare compares two numbers
 * and returns -1, 0 or 1. */
bool fr_schema_is_number(const json_t *value);
long double fr_schema_number(const json_t *value);
int fr_schema_compare(const json_t *one, const json_t *other);

#endif
