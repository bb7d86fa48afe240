/* Rewrites regular expressions of Oniguruma, which Hugging Face's tokenizers use, for PCRE2.
 *
 * In: a pattern in Oniguruma's syntax, UTF-8. Out: a pattern that matches the same texts, or a failure that names the
 * construct without a counterpart in PCRE2. These constructs have another meaning in Oniguruma and are rewritten: sets
 * within sets, and intersections of sets; \s, \w, \h, \b and the classes in [::], which contain other characters than
 * in PCRE2; ^ and $, which match at every line; (?m), which means PCRE2's (?s); an option in the middle of a group,
 * which holds for all later alternatives; {n,m}+, which is not possessive. No group captures its text, because no
 * pattern can refer back to a group. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_ONIG_PATTERN_H
#define FR_SRC_LANGUAGE_TOKENIZER_ONIG_PATTERN_H

#include "base/text_buffer.h"
#include "base/text.h"

/* Appends the rewritten pattern to `out`. own: true if the pattern is not from a file; it may then use PCRE2's
 * (*SKIP)(*FAIL). where: the file, for the error line. */
fr_status fr_onig_pattern(fr_text pattern, bool own, const char *where, fr_text_buffer *out);

#endif
