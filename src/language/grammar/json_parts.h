/* Makes expressions of the parts of JSON values, for schemas.
 *
 * In: bounds, names. Out: expressions of values as JSON writes them. White space is limited to a space, or a line
 * break and an indentation, so that no text can continue with white space for ever.
 *
 * The bare form is the one in which Gemma writes the arguments of calls: no blanks, keys without quotes, and strings
 * without escapes between two marks. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_JSON_PARTS_H
#define FR_SRC_LANGUAGE_GRAMMAR_JSON_PARTS_H

#include <jansson.h>

#include "src/language/grammar/decimal.h"
#include "src/language/grammar/readers.h"

/* Rules that all values share. Each is made when it is first needed; until then it is FR_GRAMMAR_NO_RULE. */
typedef struct fr_written_parts {
    fr_grammar_rules *rules;
    uint32_t string, any, object, array;
    fr_expression mark; /* the mark before and after a string, for the bare form; 0: JSON's quote */
    bool mark_is_text;  /* the mark is written as text; otherwise it is a token that no text can spell */
    bool lenient; /* parts that are not supported or not valid are ignored, and the schema is not refused for them */
} fr_written_parts;

fr_written_parts fr_written_parts_of(fr_grammar_rules *rules);

fr_expression fr_written_blank(fr_written_parts *parts);
fr_expression fr_written_string(fr_written_parts *parts);
fr_expression fr_written_any(fr_written_parts *parts);
fr_expression fr_written_any_object(fr_written_parts *parts);
fr_expression fr_written_any_array(fr_written_parts *parts);

/* Writes a value without blanks. */
fr_expression fr_written_literal(fr_written_parts *parts, const json_t *value);

/* Give the function that writes characters of strings, and the expression that stands before and after a string. */
fr_write_characters *fr_written_writer(const fr_written_parts *parts);
fr_expression fr_written_quote(fr_written_parts *parts);

/* fr_written_write allows characters inside quotes; its arguments are those of fr_write_characters.
 * fr_written_string_of_length allows any `least` to `most` characters between quotes. */
fr_expression fr_written_write(fr_grammar_rules *rules, const fr_character_range *ranges, size_t count, bool except);
fr_expression fr_written_string_of_length(fr_written_parts *parts, uint32_t least, uint32_t most);

/* Allows quoted strings of plain characters, except for the given names. */
fr_expression fr_written_other_string(fr_written_parts *parts, const char *const *names, size_t count);

/* The bounds of a number. The functions allow the integers or the real numbers between them. If there is a bound, real
 * numbers have at most six digits after the point. The functions give false if no number between the bounds can be
 * written in this form. */
typedef struct fr_written_bounds {
    bool has_least, has_most;
    bool above_least, below_most; /* the bound is a whole number that is itself excluded */
    fr_decimal least, most;       /* the bounds; if a bound is no whole number, the next one within the range */
} fr_written_bounds;
bool fr_written_integer(fr_written_parts *parts, const fr_written_bounds *bounds, fr_expression *expression);
bool fr_written_number(fr_written_parts *parts, const fr_written_bounds *bounds, fr_expression *expression);

/* Allows a list of least to most items, `open item (, item)* close`, with blanks between its parts. */
fr_expression fr_written_list(fr_written_parts *parts, const char *open, fr_expression item, uint32_t least,
                              uint32_t most, const char *close);

/* fr_written_member allows "name":, then blanks, then the value. fr_written_comma allows a comma and then blanks. */
fr_expression fr_written_member(fr_written_parts *parts, const char *name, fr_expression value);
fr_expression fr_written_comma(fr_written_parts *parts);

#endif
