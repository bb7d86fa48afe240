/* Rewrites regular expressions of Oniguruma, which Hugging Face's tokenizers use, for PCRE2.
 *
 * In: a pattern in Oniguruma's syntax, UTF-8. Out: a pattern that matches the same, or a failure that names the
 * construct without a counterpart in PCRE2. The differences that are rewritten: sets within sets and their
 * intersections; \s, \w, \h, \b and the classes in [::], which contain other characters; ^ and $, which match at every
 * line; (?m), which is (?s); an option in the middle of a group, which holds for all later alternatives; {n,m}+, which
 * is not possessive. No group captures, because nothing can refer back to one. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_ONIG_PATTERN_H
#define FR_SRC_LANGUAGE_TOKENIZER_ONIG_PATTERN_H

#include "base/text_buffer.h"
#include "base/text.h"

/* Appends the rewritten pattern to out. own: the pattern is not from a file, and may use PCRE2's (*SKIP)(*FAIL).
 * where: the file, for the error line. */
fr_status fr_onig_pattern(fr_text pattern, bool own, const char *where, fr_text_buffer *out);

#endif
