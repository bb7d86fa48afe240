/* What JSON values are made of, as expressions: for schemas.
 *
 * In: bounds, names. Out: expressions of values as JSON writes them. Blanks are few, so that nobody can go on with them
 * for ever: a space, or a line break and an indentation.
 *
 * Or, bare, as Gemma writes arguments of calls: no blanks, keys without quotes, strings between two marks and as they
 * are. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_JSON_PARTS_H
#define FR_SRC_LANGUAGE_GRAMMAR_JSON_PARTS_H

#include <jansson.h>

#include "src/language/grammar/decimal.h"
#include "src/language/grammar/readers.h"

/* Rules that all values share, made when they are first asked for; FR_GRAMMAR_NO_RULE before. */
typedef struct fr_written_parts {
    fr_grammar_rules *rules;
    uint32_t string, any, object, array;
    fr_expression mark; /* before and behind a string; 0: JSON's quote */
    bool mark_is_text;  /* a token as itself otherwise, which no text is */
    bool lenient;       /* ignores parts of a schema that are not built or not valid, instead of refusing the schema */
} fr_written_parts;

fr_written_parts fr_written_parts_of(fr_grammar_rules *rules);

fr_expression fr_written_blank(fr_written_parts *parts);
fr_expression fr_written_string(fr_written_parts *parts);
fr_expression fr_written_any(fr_written_parts *parts);
fr_expression fr_written_any_object(fr_written_parts *parts);
fr_expression fr_written_any_array(fr_written_parts *parts);

/* A value written out, without blanks. */
fr_expression fr_written_literal(fr_written_parts *parts, const json_t *value);

/* How its strings' characters are written, and what stands before and behind them. */
fr_write_characters *fr_written_writer(const fr_written_parts *parts);
fr_expression fr_written_quote(fr_written_parts *parts);

/* Characters inside quotes, as fr_write_characters has it; any so many of them between quotes. */
fr_expression fr_written_write(fr_grammar_rules *rules, const fr_character_range *ranges, size_t count, bool except);
fr_expression fr_written_string_of_length(fr_written_parts *parts, uint32_t least, uint32_t most);

/* Strings between quotes that are none of some; of plain characters. */
fr_expression fr_written_other_string(fr_written_parts *parts, const char *const *names, size_t count);

/* Numbers. Bounds of real numbers, both included or not, are kept by fractions of at most six digits. False: what can
 * be written between them here is nothing. */
typedef struct fr_written_bounds {
    bool has_least, has_most;
    bool above_least, below_most; /* the bound is a whole number that is not included */
    fr_decimal least, most;       /* the bounds, or the whole numbers next to them that lie between them */
} fr_written_bounds;
bool fr_written_integer(fr_written_parts *parts, const fr_written_bounds *bounds, fr_expression *expression);
bool fr_written_number(fr_written_parts *parts, const fr_written_bounds *bounds, fr_expression *expression);

/* open item (, item)* close with blanks, of least to most items, none allowed if least is 0. */
fr_expression fr_written_list(fr_written_parts *parts, const char *open, fr_expression item, uint32_t least,
                              uint32_t most, const char *close);

/* "name": and blanks, behind it value. */
fr_expression fr_written_member(fr_written_parts *parts, const char *name, fr_expression value);
fr_expression fr_written_comma(fr_written_parts *parts);

#endif
