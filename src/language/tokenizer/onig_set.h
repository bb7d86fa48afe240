/* Sets of characters in Oniguruma's regular expressions: [...], \s, \p{...}.
 *
 * In: a place in a pattern. Out: an expression of PCRE2 that matches one character of the set. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_ONIG_SET_H
#define FR_SRC_LANGUAGE_TOKENIZER_ONIG_SET_H

#include "base/text.h"
#include "base/text_buffer.h"

/* A pattern being read. */
typedef struct fr_onig_reader {
    fr_text pattern;
    const char *at, *end, *where;
    bool caseless, dot_all, extended;
    bool own; /* one of ours, which may pass over what it has matched as PCRE2 does: (*SKIP)(*FAIL) */
} fr_onig_reader;

/* Says that a construct is not built: FR_UNBUILT. */
fr_status fr_onig_refuse(const fr_onig_reader *reader, const char *construct);

/* Says that the pattern is none. */
fr_status fr_onig_fail(const fr_onig_reader *reader, const char *reason);

/* An escape that stands for one character, behind its backslash: moves on and gives the character. -1: it is of
 * another kind, and nothing moves. */
fr_status fr_onig_escaped(fr_onig_reader *reader, int32_t *codepoint);

/* An escape that stands for a set (d, w, s, h, p and their capitals, behind the backslash), or a set behind its
 * bracket: appends an expression. found: whether there is one. */
fr_status fr_onig_class(fr_onig_reader *reader, fr_text_buffer *out, bool *found);
fr_status fr_onig_set(fr_onig_reader *reader, fr_text_buffer *out);

/* Appends a character as PCRE2 takes it outside and inside of sets. */
void fr_onig_literal(int32_t codepoint, fr_text_buffer *out);

/* The character at the reader's place; it moves on. */
fr_status fr_onig_character(fr_onig_reader *reader, int32_t *codepoint);

/* What \w means. */
extern const char fr_onig_word[];

#endif
