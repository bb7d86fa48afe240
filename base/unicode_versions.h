/* Characters as the libraries inside Hugging Face's tokenizers know them, whose Unicode versions are not that of ours.
 *
 * In: characters. Out: what changed. Tables tell of Unicode 8 to 17 what differs from Unicode 14, so that the answers
 * are those of the tokenizers package whatever versions PCRE2 and utf8proc have from 14 on. */
#ifndef FR_BASE_UNICODE_VERSIONS_H
#define FR_BASE_UNICODE_VERSIONS_H

#include <stdint.h>

enum {
    FR_NEW_WORD = 1, /* of Unicode 17: a letter, mark or digit */
    FR_NEW_NUMBER = 2,
    FR_NO_MARK = 4, /* not yet, in Unicode 9, and the next two: in Unicode 8; or not any more in ours */
    FR_MARK = 8,
    FR_NO_NONSPACING = 16,
    FR_NONSPACING = 32,
    FR_NO_PUNCTUATION = 64,
    FR_PUNCTUATION = 128,
    FR_NO_CONTROL = 256,
    FR_NO_DECOMPOSITION = 512,
    FR_NO_CLASS = 1024,    /* its combining class counts as 0 */
    FR_NEW_JOINING = 2048, /* of Unicode 17: part of the grapheme before it */
};

unsigned fr_unicode_changes(int32_t codepoint);

/* For a character that Unicode 15 or 16 has new, or in another category, one that Unicode 14 has in this category, of
 * as many bytes; another one is itself. */
int32_t fr_older_character(int32_t codepoint);

/* The small letter of a capital that Unicode 15, 16 or 17 has new; another one is itself. */
int32_t fr_newer_lower(int32_t codepoint);

#endif
