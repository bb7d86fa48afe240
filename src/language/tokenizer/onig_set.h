/* Reads sets of characters in Oniguruma's regular expressions: [...], \s, \p{...}.
 *
 * In: a place in a pattern. Out: an expression of PCRE2 that matches one character of the set. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_ONIG_SET_H
#define FR_SRC_LANGUAGE_TOKENIZER_ONIG_SET_H

#include "base/text.h"
#include "base/text_buffer.h"

/* The state of reading a pattern. */
typedef struct fr_onig_reader {
    fr_text pattern;
    const char *at, *end, *where;
    bool caseless, dot_all, extended;
    bool own; /* the pattern is not from a file; it may then use PCRE2's (*SKIP)(*FAIL) */
} fr_onig_reader;

/* Fails with FR_UNBUILT: the construct is not supported. */
fr_status fr_onig_refuse(const fr_onig_reader *reader, const char *construct);

/* Fails because the pattern is not a regular expression. */
fr_status fr_onig_fail(const fr_onig_reader *reader, const char *reason);

/* Reads an escape for a single character; the reader is after the backslash. -1: the escape is of another kind, and the
 * reader has not moved. */
fr_status fr_onig_escaped(fr_onig_reader *reader, int32_t *codepoint);

/* fr_onig_class appends an expression for an escape that denotes a set (d, w, s, h, p, or the same in upper case); the
 * reader is after the backslash. *found: true if there is such an escape. fr_onig_set appends an expression for a set
 * in brackets; the reader is after the opening bracket. */
fr_status fr_onig_class(fr_onig_reader *reader, fr_text_buffer *out, bool *found);
fr_status fr_onig_set(fr_onig_reader *reader, fr_text_buffer *out);

/* Appends a character in such a form that PCRE2 reads it as that character, inside and outside of sets. */
void fr_onig_literal(int32_t codepoint, fr_text_buffer *out);

/* Reads the character at the reader's place. */
fr_status fr_onig_character(fr_onig_reader *reader, int32_t *codepoint);

/* The characters that \w matches. */
extern const char fr_onig_word[];

#endif
