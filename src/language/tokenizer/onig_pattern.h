/* Regular expressions as Oniguruma reads them, which Hugging Face's tokenizers use, written as PCRE2 reads them.
 *
 * In: a pattern in Oniguruma's syntax, UTF-8. Out: one that matches the same, or a failure that names what has no
 * counterpart here. What differs and is rewritten: sets inside sets and their intersections; \s, \w, \h, \b and the
 * classes in [::], which mean other characters; ^ and $, which stand at every line; (?m), which is (?s); an option in
 * the middle of a group, which is for all alternatives behind it; {n,m}+, which is not possessive. No group captures,
 * as nothing can refer back to them. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_ONIG_PATTERN_H
#define FR_SRC_LANGUAGE_TOKENIZER_ONIG_PATTERN_H

#include "base/text_buffer.h"
#include "base/text.h"

/* Appends to out. own: it is not from a file, and may have PCRE2's (*SKIP)(*FAIL). where: the file, for the error
 * line. */
fr_status fr_onig_pattern(fr_text pattern, bool own, const char *where, fr_text_buffer *out);

#endif
