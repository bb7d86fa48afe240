/* Makes expressions of a schema's strings (json_schema_reader.h). If the schema has a single keyword, it is written
 * directly. Several keywords become one automaton. */
#include <stdio.h>
#include <stdlib.h>

#include "base/text_buffer.h"
#include "formats/json_wide.h"
#include "src/language/grammar/json_schema_reader.h"

#define NAME_LENGTH_MAX 1000 /* limit on the characters of a name; a larger upper bound is dropped */
#define MULTIPLIED_MAX  4096 /* limit on the states of an automaton that counts characters */

/* --------------------------------------------------------------------------------------------------------- automata */

/* If a language can't be made, adds the place in the schema to the error line. */
static fr_status with_place(fr_status status, const fr_schema_path *path) {
    char line[200];
    if (status == FR_OK || status == FR_MEMORY) return status;
    snprintf(line, sizeof line, "%s", fr_last_error());
    return fr_schema_fail(path, status, line);
}

/* Counts the work of making a language. One step of the count takes some nanoseconds. */
static void count_work(fr_grammar_rules *rules, const fr_language *made) {
    if (made) fr_grammar_spend(rules, 1 + made->work / 4);
}

fr_status fr_schema_pattern(fr_grammar_rules *rules, const char *pattern, size_t length, bool whole,
                            const fr_schema_path *path, fr_language **language) {
    FR_TRY(fr_schema_check(rules, path));
    size_t work;
    fr_status status = fr_language_of_regex((fr_text){pattern, length}, whole, &work, language);
    fr_grammar_spend(rules, 1 + work / 4);
    return with_place(status, path);
}

fr_status fr_schema_both(fr_grammar_rules *rules, const fr_language *one, const fr_language *other,
                         fr_language **both) {
    fr_status status = fr_language_both(one, other, both);
    count_work(rules, *both);
    return status;
}

fr_status fr_schema_narrow(fr_grammar_rules *rules, fr_language **all, fr_language *by) {
    fr_language *both = by;
    fr_status status = *all ? fr_schema_both(rules, *all, by, &both) : FR_OK;
    if (*all) fr_language_free(by);
    if (*all) fr_language_free(*all);
    *all = status == FR_OK ? both : NULL;
    return status;
}

fr_status fr_schema_except(fr_grammar_rules *rules, const fr_language *one, const fr_character_range *alphabet,
                           size_t count, fr_language **others) {
    fr_status status = fr_language_except(one, alphabet, count, others);
    count_work(rules, *others);
    return status;
}

fr_status fr_schema_texts(fr_grammar_rules *rules, const json_t *list, fr_language **language) {
    fr_grammar_rules own = {0};
    fr_expression all = fr_expression_characters(&own, NULL, 0, false);
    size_t i;
    json_t *item;
    json_array_foreach (list, i, item) {
        const fr_text text = {json_string_value(item), json_string_length(item)};
        if (fr_json_is_text(item)) all = fr_expression_or(&own, all, fr_expression_text(&own, text));
    }
    fr_status status = fr_language_of(&own, all, language);
    count_work(rules, *language);
    fr_grammar_rules_free(&own);
    return status;
}

/* The alphabets for texts that do not match an expression. They have only characters that mean the same in all dialects
 * of regular expressions. */
static const fr_character_range PRINTED[] = {{' ', '~'}}, PLAIN[] = {{' ', '~'}, {0x80, FR_CODE_POINT_MAX}};

static fr_status narrow_by_pattern(fr_grammar_rules *rules, fr_language **all, const json_t *pattern, bool matches,
                                   const fr_schema_path *path) {
    fr_language *language, *others = NULL;
    FR_TRY(fr_schema_pattern(rules, json_string_value(pattern), json_string_length(pattern), false, path, &language));
    if (matches) return with_place(fr_schema_narrow(rules, all, language), path);
    fr_status status = fr_schema_except(rules, language, PRINTED, 1, &others);
    fr_language_free(language);
    return with_place(status == FR_OK ? fr_schema_narrow(rules, all, others) : status, path);
}

static fr_status narrow_by_patterns(fr_grammar_rules *rules, fr_language **all, const json_t *schema, const char *key,
                                    bool matches, const fr_schema_path *path) {
    const fr_schema_path place = {path, "pattern", 0};
    size_t i;
    json_t *pattern;
    json_array_foreach (json_object_get(schema, key), i, pattern)
        FR_TRY(narrow_by_pattern(rules, all, pattern, matches, &place));
    return FR_OK;
}

static fr_status narrow_by_constants(fr_grammar_rules *rules, fr_language **all, const json_t *list,
                                     const fr_schema_path *path) {
    fr_language *texts, *others = NULL;
    fr_status status = fr_schema_texts(rules, list, &texts);
    if (status == FR_OK) status = fr_schema_except(rules, texts, PLAIN, 2, &others);
    fr_language_free(texts);
    return with_place(status == FR_OK ? fr_schema_narrow(rules, all, others) : status, path);
}

static fr_status narrow_by_lengths(fr_grammar_rules *rules, fr_language **all, uint32_t least, uint32_t most,
                                   const fr_schema_path *path) {
    fr_language *lengths;
    if (least == 0 && most == FR_GRAMMAR_UNBOUND) return FR_OK;
    fr_status status = fr_language_of_lengths(least, most, &lengths);
    return with_place(status == FR_OK ? fr_schema_narrow(rules, all, lengths) : status, path);
}

static fr_status narrow_by_words(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path,
                                 fr_language **all) {
    const json_t *pattern = json_object_get(schema, "pattern"), *other_than = json_object_get(schema, FR_NONE_OF);
    const char *format = fr_schema_format(schema);
    const fr_schema_path place = {path, "pattern", 0}, form = {path, "format", 0};
    fr_grammar_rules *rules = r->parts->rules;
    if (pattern) FR_TRY(narrow_by_pattern(rules, all, pattern, true, &place));
    FR_TRY(narrow_by_patterns(rules, all, schema, FR_ALL_PATTERNS, true, path));
    if (format) {
        fr_language *language;
        FR_TRY(fr_schema_pattern(rules, format, strlen(format), true, &form, &language));
        FR_TRY(with_place(fr_schema_narrow(rules, all, language), &form));
    }
    FR_TRY(narrow_by_patterns(rules, all, schema, FR_NO_PATTERNS, false, path));
    return other_than ? narrow_by_constants(rules, all, other_than, path) : FR_OK;
}

/* Makes the language of a schema's strings, but without a limit on their length. NULL: all strings. After a failure
 * there is no language. */
static fr_status language_of_words(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path,
                                   fr_language **language) {
    *language = NULL;
    fr_status status = narrow_by_words(r, schema, path, language);
    if (status == FR_OK) return FR_OK;
    fr_language_free(*language);
    *language = NULL;
    return status;
}

/* Makes the language of a schema's strings. If their upper bound is above NAME_LENGTH_MAX, it is dropped: names of
 * members are never that long, and the automaton would need a state for each length. */
fr_status fr_schema_language(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path,
                             fr_language **language) {
    uint32_t least, most;
    FR_TRY(fr_schema_read_counts(r, schema, "minLength", "maxLength", path, &least, &most));
    FR_TRY(language_of_words(r, schema, path, language));
    if (most > NAME_LENGTH_MAX && least <= NAME_LENGTH_MAX) most = FR_GRAMMAR_UNBOUND;
    return narrow_by_lengths(r->parts->rules, language, least, most, path);
}

/* Writes the texts of a language that have least to most characters; the language must not be empty. If the automaton
 * is small, it gets a copy of each state for each length, which is exact. Otherwise the characters are counted. Takes
 * over the language. */
static fr_status write_language(fr_grammar_rules *rules, fr_language *language, uint32_t least, uint32_t most,
                                const fr_schema_path *path, fr_write_characters *write, fr_expression *expression,
                                bool *some) {
    size_t bound = most == FR_GRAMMAR_UNBOUND ? least : most, states = language->state_count;
    bool few = (bound + 1) * states <= MULTIPLIED_MAX, few_least = (least + (size_t)1) * states <= MULTIPLIED_MAX;
    fr_status status = FR_OK;
    if (few || few_least) {
        status = narrow_by_lengths(rules, &language, least, few ? most : FR_GRAMMAR_UNBOUND, path);
        least = 0;
        if (few) most = FR_GRAMMAR_UNBOUND;
    }
    *some = status == FR_OK && !fr_language_is_empty(language);
    if (*some && least == 0 && most == FR_GRAMMAR_UNBOUND)
        *expression = fr_language_expression(language, write, rules);
    else if (*some)
        status =
            with_place(fr_language_expression_of_length(language, least, most, write, rules, expression, some), path);
    fr_language_free(language);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- strings */

static fr_expression quoted(fr_schema_reader *r, fr_expression inside) {
    fr_expression quote = fr_written_quote(r->parts);
    return fr_schema_then(r, fr_schema_then(r, quote, inside), quote);
}

static fr_status read_expression(fr_schema_reader *r, const char *text, size_t length, bool whole,
                                 const fr_schema_path *path, fr_expression *expression) {
    fr_status status =
        fr_regex_expression((fr_text){text, length}, whole, fr_written_writer(r->parts), r->parts->rules, expression);
    *expression = quoted(r, *expression);
    return with_place(status, path);
}

/* Writes a key that consists of a string's keywords and of the form `how` in which the string is written. Strings with
 * the same key have the same rule. */
static void write_key(const json_t *schema, uint32_t least, uint32_t most, const char *how, fr_text_buffer *key) {
    static const char *const words[] = {"format", "pattern"};
    char counts[32];
    snprintf(counts, sizeof counts, "%u-%u", least, most);
    fr_text_append_string(key, counts);
    for (size_t i = 0; i < 2; i++) {
        const char *said = json_string_value(json_object_get(schema, words[i]));
        fr_text_append_string(key, said ? "\x01" : "\x02");
        fr_text_append_string(key, said ? said : "");
    }
    fr_text_append_string(key, "\x01");
    fr_text_append_string(key, how);
}

/* Counts the keywords that limit a text. If there are two or more, an automaton must combine them. */
static size_t count_words(const json_t *schema, bool counted) {
    static const char *const words[] = {"pattern", FR_NONE_OF, FR_ALL_PATTERNS, FR_NO_PATTERNS};
    size_t count = counted + (fr_schema_format(schema) != NULL);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        count += json_object_get(schema, words[i]) != NULL;
        /* a schema with one of our own keywords (those after "pattern") always needs an automaton, so such a keyword
         * counts twice */
        if (i > 0 && json_object_get(schema, words[i])) count++;
    }
    return count;
}

static fr_status read_language(fr_schema_reader *r, const json_t *schema, uint32_t least, uint32_t most,
                               const fr_schema_path *path, fr_expression *expression) {
    fr_language *language;
    bool some;
    FR_TRY(language_of_words(r, schema, path, &language));
    FR_TRY(
        write_language(r->parts->rules, language, least, most, path, fr_written_writer(r->parts), expression, &some));
    *expression = quoted(r, *expression);
    return some ? FR_OK : fr_schema_nothing(r, path);
}

static fr_status read_limited(fr_schema_reader *r, const json_t *schema, uint32_t least, uint32_t most,
                              const fr_schema_path *path, fr_expression *expression) {
    const fr_schema_path pattern = {path, "pattern", 0}, format = {path, "format", 0};
    const json_t *said = json_object_get(schema, "pattern");
    const char *form = fr_schema_format(schema);
    bool counted = least > 0 || most != FR_GRAMMAR_UNBOUND;
    if (count_words(schema, counted) > 1) return read_language(r, schema, least, most, path, expression);
    if (!said) return read_expression(r, form, strlen(form), true, &format, expression);
    return read_expression(r, json_string_value(said), json_string_length(said), false, &pattern, expression);
}

/* Reads the schema of a string. Schemas with the same keywords have the same rule. */
static fr_status read_shared(fr_schema_reader *r, const json_t *schema, uint32_t least, uint32_t most,
                             const fr_schema_path *path, fr_expression *expression) {
    fr_text_buffer key = {0};
    uint32_t rule;
    write_key(schema, least, most, r->parts->mark ? "bare" : "quoted", &key);
    fr_status status = fr_text_check(&key, "a schema");
    bool shared = status == FR_OK && fr_grammar_find_shared(r->parts->rules, key.bytes, &rule);
    if (shared) *expression = fr_expression_rule(r->parts->rules, rule);
    if (status == FR_OK && !shared) status = read_limited(r, schema, least, most, path, expression);
    if (status == FR_OK && !shared) *expression = fr_grammar_share(r->parts->rules, key.bytes, *expression);
    fr_text_free(&key);
    return status;
}

fr_status fr_schema_read_string(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path,
                                fr_expression *expression) {
    static const char *const own[] = {FR_NONE_OF, FR_ALL_PATTERNS, FR_NO_PATTERNS, NULL};
    uint32_t least, most;
    FR_TRY(fr_schema_read_counts(r, schema, "minLength", "maxLength", path, &least, &most));
    if (fr_schema_has_any(schema, own)) return read_limited(r, schema, least, most, path, expression);
    if (json_object_get(schema, "pattern") || fr_schema_format(schema))
        return read_shared(r, schema, least, most, path, expression);
    bool counted = least > 0 || most != FR_GRAMMAR_UNBOUND;
    *expression = counted ? fr_written_string_of_length(r->parts, least, most) : fr_written_string(r->parts);
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------- plain text without quotes */

bool fr_json_schema_limits_text(const json_t *schema) {
    static const char *const words[] = {"pattern", "minLength", "maxLength", NULL};
    return fr_schema_has_any(schema, words) || fr_schema_format(schema);
}

/* Makes the language of all texts that do not contain `text`. */
static fr_status texts_without(fr_grammar_rules *rules, const char *text, fr_language **language) {
    static const fr_character_range all[] = {{0, FR_CODE_POINT_MAX}};
    fr_grammar_rules own = {0};
    fr_language *with;
    fr_expression any =
        fr_expression_repeat(&own, fr_expression_characters(&own, NULL, 0, true), 0, FR_GRAMMAR_UNBOUND);
    fr_expression around =
        fr_expression_then(&own, fr_expression_then(&own, any, fr_expression_string(&own, text)), any);
    fr_status status = fr_language_of(&own, around, &with);
    if (status == FR_OK) status = fr_schema_except(rules, with, all, 1, language);
    fr_language_free(with);
    fr_grammar_rules_free(&own);
    return status;
}

static fr_status read_plain_text(fr_schema_reader *r, const json_t *schema, uint32_t least, uint32_t most,
                                 const fr_schema_path *path, const char *without, fr_expression *expression) {
    fr_grammar_rules *rules = r->parts->rules;
    fr_language *language, *free_of_it;
    bool some;
    FR_TRY(language_of_words(r, schema, path, &language));
    if (!language && !without) {
        *expression = fr_expression_repeat(rules, fr_expression_characters(rules, NULL, 0, true), least, most);
        return FR_OK;
    }
    fr_status status = without ? texts_without(rules, without, &free_of_it) : FR_OK;
    if (status == FR_OK && without) status = with_place(fr_schema_narrow(rules, &language, free_of_it), path);
    if (status == FR_OK)
        status = write_language(rules, language, least, most, path, fr_expression_characters, expression, &some);
    else
        fr_language_free(language);
    return status == FR_OK && !some ? fr_schema_nothing(r, path) : status;
}

fr_status fr_json_schema_plain_text(const json_t *root, const json_t *schema, const fr_schema_path *path,
                                    const char *without, fr_grammar_rules *rules, fr_expression *expression) {
    fr_written_parts parts = fr_written_parts_of(rules);
    fr_schema_reader r = {.root = root, .parts = &parts};
    uint32_t least, most;
    fr_text_buffer key = {0};
    FR_TRY(fr_schema_check_words(&r, schema, path));
    FR_TRY(fr_schema_read_counts(&r, schema, "minLength", "maxLength", path, &least, &most));
    write_key(schema, least, most, without ? without : "plain", &key);
    fr_status status = fr_text_check(&key, "a schema");
    uint32_t rule;
    bool shared = status == FR_OK && fr_grammar_find_shared(rules, key.bytes, &rule);
    if (shared) *expression = fr_expression_rule(rules, rule);
    if (status == FR_OK && !shared) status = read_plain_text(&r, schema, least, most, path, without, expression);
    if (status == FR_OK && !shared) *expression = fr_grammar_share(rules, key.bytes, *expression);
    fr_text_free(&key);
    return status;
}
