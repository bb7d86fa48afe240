/* Makes expressions of the parts of JSON values, for schemas.
 *
 * In: bounds and names. Out: expressions of values as JSON writes them. White space is limited to a space, or to a line
 * break and an indentation, so that no text can continue with white space without end.
 *
 * The bare form is the one in which Gemma writes the arguments of calls. It has no blanks, keys have no quotes, and
 * strings have no escapes and are enclosed by two marks. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_JSON_PARTS_H
#define FR_SRC_LANGUAGE_GRAMMAR_JSON_PARTS_H

#include <jansson.h>

#include "src/language/grammar/decimal.h"
#include "src/language/grammar/readers.h"

/* Rules that all values share. Each is made when it is first needed; until then it is FR_GRAMMAR_NO_RULE. */
typedef struct fr_written_parts {
    fr_grammar_rules *rules;
    uint32_t string, any, object, array;
    fr_expression mark; /* the mark before and after a string in the bare form; 0: strings have JSON's quotes */
    bool mark_is_text;  /* the mark is written as text; otherwise it is a token that no text can replace */
    /* parts of a schema that are not supported or not valid are ignored; otherwise such a schema is refused */
    bool lenient;
} fr_written_parts;

fr_written_parts fr_written_parts_of(fr_grammar_rules *rules);

fr_expression fr_written_blank(fr_written_parts *parts);
fr_expression fr_written_string(fr_written_parts *parts);
fr_expression fr_written_any(fr_written_parts *parts);
fr_expression fr_written_any_object(fr_written_parts *parts);
fr_expression fr_written_any_array(fr_written_parts *parts);

/* Writes a value without blanks. */
fr_expression fr_written_literal(fr_written_parts *parts, const json_t *value);

/* fr_written_writer gives the function that writes characters of strings. fr_written_quote gives the expression before
 * and after a string. */
fr_write_characters *fr_written_writer(const fr_written_parts *parts);
fr_expression fr_written_quote(fr_written_parts *parts);

/* fr_written_write allows characters inside quotes; its arguments are those of fr_write_characters.
 * fr_written_string_of_length allows strings of `least` to `most` characters between quotes. */
fr_expression fr_written_write(fr_grammar_rules *rules, const fr_character_range *ranges, size_t count, bool except);
fr_expression fr_written_string_of_length(fr_written_parts *parts, uint32_t least, uint32_t most);

/* Allows quoted strings of plain characters, except those that equal one of the names. */
fr_expression fr_written_other_string(fr_written_parts *parts, const char *const *names, size_t count);

/* The bounds of a number. fr_written_integer allows the integers between the bounds, and fr_written_number the real
 * numbers. If there is a bound, real numbers have at most six digits after the point. The functions return false if no
 * number between the bounds can be written in this form. */
typedef struct fr_written_bounds {
    bool has_least, has_most;
    bool above_least, below_most; /* the bound is a whole number that is not in the range itself */
    /* the bounds; if a bound is not a whole number, the next whole number within the range */
    fr_decimal least, most;
} fr_written_bounds;
bool fr_written_integer(fr_written_parts *parts, const fr_written_bounds *bounds, fr_expression *expression);
bool fr_written_number(fr_written_parts *parts, const fr_written_bounds *bounds, fr_expression *expression);

/* Allows a list of `least` to `most` items, `open item (, item)* close`, with blanks between these parts. */
fr_expression fr_written_list(fr_written_parts *parts, const char *open, fr_expression item, uint32_t least,
                              uint32_t most, const char *close);

/* fr_written_member allows "name":, then blanks, then the value. fr_written_comma allows a comma, then blanks. */
fr_expression fr_written_member(fr_written_parts *parts, const char *name, fr_expression value);
fr_expression fr_written_comma(fr_written_parts *parts);

#endif
