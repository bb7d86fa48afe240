/* Finds the matches of a string, a regular expression or a class of characters.
 *
 * In: a pattern of a tokenizer.json, and texts of any bytes. Out: each text as a sequence of matches and of the
 * stretches between them. The leftmost match comes first, and matches do not overlap. An empty match directly after
 * another match is skipped.
 *
 * A file may contain a regular expression that takes almost infinite time. So each step is counted against an
 * allowance. If it is exceeded, the match ends with an error line, at the same step on every machine. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_TEXT_PATTERN_H
#define FR_SRC_LANGUAGE_TOKENIZER_TEXT_PATTERN_H

#include "formats/tokenizer_source.h"

typedef struct fr_text_pattern {
    char *source; /* NUL-terminated */
    size_t length;
    struct pcre2_real_code_8 *regex; /* NULL: `source` is a literal text that is searched for */
    /* the class, if the pattern is a class of characters; then each of its characters is a match, and `source` is not
     * used */
    fr_character_class characters;
} fr_text_pattern;

/* Opens a pattern. own: true if the expression is not from a file (src/language/tokenizer/onig_pattern.h). */
fr_status fr_text_pattern_open(fr_text_pattern *pattern, fr_text source, bool regex, bool own, const char *where);
void fr_text_pattern_close(fr_text_pattern *pattern);

/* Gives the number of steps that all patterns of a tokenizer together may take on a text of this length. It is 256 for
 * each byte, which takes about a second for a megabyte. The patterns of published tokenizers take at most 12 steps for
 * each byte. */
uint64_t fr_text_pattern_allowance(size_t length);

/* Receives each stretch [begin, end) in order; all stretches together are the whole text. A match may be empty. */
typedef fr_status fr_stretch_fn(void *context, size_t begin, size_t end, bool is_match);

fr_status fr_text_pattern_walk(const fr_text_pattern *pattern, const char *text, size_t length, uint64_t *allowance,
                               fr_stretch_fn *stretch, void *context);

#endif
