/* Words: lists of them in one string, and how near one is to another.
 *
 * In: NUL-terminated strings. Out: stretches of them, distances. */
#ifndef FR_TOOLS_CLI_WORDS_H
#define FR_TOOLS_CLI_WORDS_H

#include <stdbool.h>
#include <stddef.h>

static inline size_t fr_least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Walks a list of words between separators: gives the next one and its length, or NULL at the end. */
const char *fr_next_word(const char **list, char separator, size_t *length);

/* Whether a list of words with blanks between has one; and one in any case, where the list is of lower case. */
bool fr_has_word(const char *list, const char *wanted, size_t wanted_length);
bool fr_has_word_in_any_case(const char *list, const char *wanted, size_t wanted_length);

/* How many single-character edits, swaps of neighbours among them, make one word of the other; large for words that are
 * no names. */
size_t fr_word_distance(const char *a, const char *b);

/* Whether a distance is close enough to suggest the other word: one edit for three letters. */
bool fr_word_near(const char *word, size_t distance);

/* Tells how much of a command line fits into a line of `most` columns: up to a blank before an option, a bracket or a
 * pipe, outside of brackets and quotes; more, where there is no such blank. */
size_t fr_line_part(const char *line, size_t length, size_t most);

#endif
