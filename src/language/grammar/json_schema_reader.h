/* Declares the functions that the files for reading a schema share. These files find the schemas within the schema and
 * make an expression of each.
 *
 * In: a schema, the root in which it lies, and its place there. Out: an expression of some of its values, or a failure.
 * If no value matches the schema, reading it fails, too, and sets `nothing`. A choice then drops that alternative, and
 * an object leaves out an optional member with that schema.
 *
 * The time to read a schema is bounded: work that may grow faster than the length of the text is counted
 * (fr_grammar_spend).
 *
 * Each kind of value has a file: json_schema_strings.c (formats: json_schema_formats.c), _numbers.c, _arrays.c and
 * _objects.c. _constants.c finds the listed values that match the rest of a schema. _choices.c replaces `not` and `if`
 * by choices. _unevaluated.c handles members and items that no keyword covers. _references.c finds what a $ref leads
 * to. _forms.c checks the types and ranges of keywords' values. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_JSON_SCHEMA_READER_H
#define FR_SRC_LANGUAGE_GRAMMAR_JSON_SCHEMA_READER_H

#include "src/language/grammar/json_schema.h"
#include "src/language/grammar/json_schema_values.h"
#include "src/language/grammar/language.h"

typedef struct fr_schema_reference fr_schema_reference;

typedef struct fr_schema_reader {
    const json_t *root;
    fr_written_parts *parts;
    fr_schema_reference *references; /* schemas that became a rule, because a `$ref` leads to them */
    size_t reference_count, schemas, depth;
    /* why reading failed: no value matches the schema, or no value that the grammar can write */
    bool nothing;
} fr_schema_reader;

fr_status fr_schema_read(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path,
                         fr_expression *expression);

/* Reads a schema. If no value matches it, the call succeeds, but *some is false. */
fr_status fr_schema_read_some(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path,
                              fr_expression *expression, bool *some);

fr_status fr_schema_nothing(fr_schema_reader *r, const fr_schema_path *path);

/* fr_schema_then makes a sequence of two expressions. fr_schema_or adds an alternative to *all. *some says if *all
 * already has an alternative. */
fr_expression fr_schema_then(fr_schema_reader *r, fr_expression first, fr_expression second);
void fr_schema_or(fr_schema_reader *r, fr_expression one, fr_expression *all, bool *some);

/* fr_schema_find finds the schema to which a reference leads (json_schema_references.c). If a schema has only a
 * reference and no other keyword, fr_schema_look_through follows the reference, and so on. */
fr_status fr_schema_find(fr_schema_reader *r, const char *reference, const fr_schema_path *path, const json_t **found);
const json_t *fr_schema_look_through(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path);

/* Fails at the first keyword of a schema that is not built, or whose value does not have the required form. The error
 * line names the keyword's place. FR_INPUT also if `schema` is no schema at all. It is called before a schema's
 * keywords are read. */
fr_status fr_schema_check_words(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path);

/* Returns true if the keyword's value has the type and range that JSON Schema requires. */
bool fr_schema_is_formed(const char *key, const json_t *value);

/* Returns true if a schema has any keyword except `than` and annotations. */
bool fr_schema_says_more(const json_t *schema, const char *than);

/* Reads two keywords that give the least and the largest number of something. most_key: NULL if there is no keyword for
 * the largest number. */
fr_status fr_schema_read_counts(fr_schema_reader *r, const json_t *schema, const char *least_key, const char *most_key,
                                const fr_schema_path *path, uint32_t *least, uint32_t *most);

/* Read values of one type. */
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

/* These functions make automata of texts. Such an automaton is called a language (language.h). fr_schema_language makes
 * the language of a schema's strings; it may be empty, and NULL means all strings. fr_schema_pattern makes the language
 * of a regular expression; path: the place of the expression, for error lines. fr_schema_texts makes the language of
 * the texts in a list. fr_schema_except makes the language of all texts over an alphabet that are not in `one`.
 * fr_schema_both makes the language of the texts that are in both languages. */
fr_status fr_schema_language(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path,
                             fr_language **language);
fr_status fr_schema_pattern(fr_grammar_rules *rules, const char *pattern, size_t length, bool whole,
                            const fr_schema_path *path, fr_language **language);
fr_status fr_schema_texts(fr_grammar_rules *rules, const json_t *list, fr_language **language);
fr_status fr_schema_except(fr_grammar_rules *rules, const fr_language *one, const fr_character_range *alphabet,
                           size_t count, fr_language **others);

fr_status fr_schema_both(fr_grammar_rules *rules, const fr_language *one, const fr_language *other, fr_language **both);

/* Removes from *all the texts that are not in `by`. If *all is NULL, it means all texts. Takes over both languages.
 * After a failure *all is NULL. */
fr_status fr_schema_narrow(fr_grammar_rules *rules, fr_language **all, fr_language *by);

/* Gives the values that a schema lists and that match all its keywords. NULL: the schema lists no values. */
fr_status fr_schema_constants(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path, json_t **values);

/* Finds out if a value matches a schema. FR_UNBUILT: the schema has a keyword that this function can't check. */
fr_status fr_schema_holds(fr_schema_reader *r, const json_t *schema, const json_t *value, const fr_schema_path *path,
                          size_t depth, bool *holds);

/* Rewrites a schema so that choices replace `not`, `if` and dependents. as_part: also replaces references and oneOf, so
 * that the schema can be merged with others. *rewritten is NULL if there is nothing to rewrite. */
fr_status fr_schema_rewrite(fr_schema_reader *r, const json_t *schema, bool as_part, const fr_schema_path *path,
                            json_t **rewritten);

/* Rewrites unevaluatedProperties as additionalProperties, and unevaluatedItems as items. For that, all keywords about
 * the same object or array must be in this schema. */
fr_status fr_schema_rewrite_unevaluated(fr_schema_reader *r, json_t *schema, const fr_schema_path *path);

/* Makes the schemas that replace a oneOf. A value of such a schema matches exactly one schema of `list`. */
fr_status fr_schema_one_of(fr_schema_reader *r, const json_t *list, const fr_schema_path *path, json_t **schemas);

/* Merges two schemas into one that requires both. FR_UNBUILT: no single schema can express that. */
fr_status fr_schema_merge(fr_grammar_rules *rules, const json_t *one, const json_t *other, const fr_schema_path *path,
                          json_t **merged);

/* Returns true if no value can match both schemas. It considers only types, constants, and constants of required
 * members. */
bool fr_schemas_disjoint(fr_grammar_rules *rules, const json_t *one, const json_t *other);

#endif
