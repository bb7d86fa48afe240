/* Tells how the libraries inside Hugging Face's tokenizers classify characters, since they use other Unicode versions
 * than forerun.
 *
 * In: characters. Out: the differences. Tables list how Unicode 8 to 17 differ from Unicode 14. With these tables,
 * characters are classified as in the tokenizers package, whatever versions of PCRE2 and utf8proc are installed, from
 * Unicode 14 on. */
#ifndef FR_BASE_UNICODE_VERSIONS_H
#define FR_BASE_UNICODE_VERSIONS_H

#include <stdint.h>

enum {
    FR_NEW_WORD = 1,   /* a letter, mark or digit in Unicode 17 */
    FR_NEW_NUMBER = 2, /* a number in Unicode 17 */
    FR_NO_MARK = 4,    /* a mark in Unicode 14, but not in Unicode 9 */
    FR_MARK = 8,       /* a mark in Unicode 9, but not in 14; the next four flags compare Unicode 8 with 14 */
    FR_NO_NONSPACING = 16,
    FR_NONSPACING = 32,
    FR_NO_PUNCTUATION = 64,
    FR_PUNCTUATION = 128,
    FR_NO_CONTROL = 256,       /* a control character in Unicode 14, but not in the tables of the normalizers */
    FR_NO_DECOMPOSITION = 512, /* the normalizers do not decompose the character */
    FR_NO_CLASS = 1024,        /* the character's combining class counts as 0 */
    FR_NEW_JOINING = 2048,     /* Unicode 17 joins the character to the preceding grapheme */
};

unsigned fr_unicode_changes(int32_t codepoint);

/* Replaces a character that Unicode 15 or 16 has added or moved to another category. The substitute already has the new
 * category in Unicode 14, and has the same number of bytes. Other characters are returned unchanged. */
int32_t fr_older_character(int32_t codepoint);

/* Gives the lower-case form of a capital letter that is new in Unicode 15, 16 or 17. Other characters are returned
 * unchanged. */
int32_t fr_newer_lower(int32_t codepoint);

#endif
