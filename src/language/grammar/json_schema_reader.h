/* Shared by the files that read a schema: finds the schemas in it and makes an expression of each.
 *
 * In: schemas in a root, with their places. Out: expressions of some of their values, none where they fail. A schema
 * that no value matches fails too, and sets `nothing`: a choice continues without it, an optional member is left out.
 *
 * Reading takes a bounded time: work that may exceed the text's length is counted (fr_grammar_spend).
 *
 * Each kind of value has a file: json_schema_strings.c (formats: json_schema_formats.c), _numbers.c, _arrays.c,
 * _objects.c. _constants.c: which listed values match the rest of a schema; _choices.c: which schemas contain others;
 * _unevaluated.c: members and items that no keyword covers; _forms.c: types and ranges of keywords' values. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_JSON_SCHEMA_READER_H
#define FR_SRC_LANGUAGE_GRAMMAR_JSON_SCHEMA_READER_H

#include "src/language/grammar/json_schema.h"
#include "src/language/grammar/json_schema_values.h"
#include "src/language/grammar/language.h"

typedef struct fr_schema_reference fr_schema_reference;

typedef struct fr_schema_reader {
    const json_t *root;
    fr_written_parts *parts;
    fr_schema_reference *references; /* what was made a rule of: where `$ref` leads */
    size_t reference_count, schemas, depth;
    bool nothing; /* why a reading failed: no value is of the schema, or none that can be written here */
} fr_schema_reader;

fr_status fr_schema_read(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path,
                         fr_expression *expression);

/* The same, but for what no value is of: *some is false then. */
fr_status fr_schema_read_some(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path,
                              fr_expression *expression, bool *some);

fr_status fr_schema_nothing(fr_schema_reader *r, const fr_schema_path *path);

/* Two expressions in a row; one of two, of which *all may be none yet (*some). */
fr_expression fr_schema_then(fr_schema_reader *r, fr_expression first, fr_expression second);
void fr_schema_or(fr_schema_reader *r, fr_expression one, fr_expression *all, bool *some);

/* Where a pointer leads; what a schema says, through references that are all of it. */
fr_status fr_schema_find(fr_schema_reader *r, const char *pointer, const fr_schema_path *path, const json_t **found);
const json_t *fr_schema_look_through(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path);

/* A failure by the place of the first of a schema's own keywords that is not of the form that it has to be of, or is
 * not built at all; FR_INPUT too for what is no schema. Whoever looks at what a schema says has asked this before. */
fr_status fr_schema_check_words(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path);

/* True if the keyword's value has the type and range that JSON Schema requires of it. */
bool fr_schema_is_formed(const char *key, const json_t *value);

/* Whether a schema says anything but by one keyword. */
bool fr_schema_says_more(const json_t *schema, const char *than);

/* The least and the most of something that two keywords count; NULL: nothing says the most. */
fr_status fr_schema_read_counts(fr_schema_reader *r, const json_t *schema, const char *least_key, const char *most_key,
                                const fr_schema_path *path, uint32_t *least, uint32_t *most);

/* Values of one type. */
fr_status fr_schema_read_string(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path,
                                fr_expression *expression);
fr_status fr_schema_read_number(fr_schema_reader *r, const json_t *schema, bool whole, const fr_schema_path *path,
                                fr_expression *expression);
fr_status fr_schema_read_array(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path,
                               fr_expression *expression);
fr_status fr_schema_read_object(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path,
                                fr_expression *expression);

/* Gives the regular expression of a schema's format; NULL: it has no format, or an unknown one. */
const char *fr_schema_format(const json_t *schema);

/* The texts of a schema of strings; NULL: all. They may be none. Of a regular expression, with its place in failures;
 * all but the texts of a list, in plain characters. */
fr_status fr_schema_language(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path,
                             fr_language **language);
fr_status fr_schema_pattern(fr_grammar_rules *rules, const char *pattern, size_t length, bool whole,
                            const fr_schema_path *path, fr_language **language);
fr_status fr_schema_texts(fr_grammar_rules *rules, const json_t *list, fr_language **language);
fr_status fr_schema_except(fr_grammar_rules *rules, const fr_language *one, const fr_character_range *alphabet,
                           size_t count, fr_language **others);

fr_status fr_schema_both(fr_grammar_rules *rules, const fr_language *one, const fr_language *other, fr_language **both);

/* What is of both; takes and frees all that `by` says, and *all where it fails. */
fr_status fr_schema_narrow(fr_grammar_rules *rules, fr_language **all, fr_language *by);

/* Of a schema that lists its values those that are of all that it says; NULL: it lists none. */
fr_status fr_schema_constants(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path, json_t **values);

/* Whether a value is of a schema; FR_UNBUILT: it says what is not looked at. */
fr_status fr_schema_holds(fr_schema_reader *r, const json_t *schema, const json_t *value, const fr_schema_path *path,
                          size_t depth, bool *holds);

/* A schema without `not`, `if` and what depends on members, which choices say instead. as_part: nor references and
 * oneOf, so that it can be merged with others. NULL: it has none of them. */
fr_status fr_schema_rewrite(fr_schema_reader *r, const json_t *schema, bool as_part, const fr_schema_path *path,
                            json_t **rewritten);

/* What a schema says of members and items that nothing else in it speaks of, once that is all in one schema. */
fr_status fr_schema_rewrite_unevaluated(fr_schema_reader *r, json_t *schema, const fr_schema_path *path);

/* Schemas of which each value is of exactly one of a list. */
fr_status fr_schema_one_of(fr_schema_reader *r, const json_t *list, const fr_schema_path *path, json_t **schemas);

/* One schema that says what both say; what can't be said at once is FR_UNBUILT. */
fr_status fr_schema_merge(fr_grammar_rules *rules, const json_t *one, const json_t *other, const fr_schema_path *path,
                          json_t **merged);

/* Whether no value is of both, as far as their types, constants or required constant members tell. */
bool fr_schemas_disjoint(fr_grammar_rules *rules, const json_t *one, const json_t *other);

#endif
