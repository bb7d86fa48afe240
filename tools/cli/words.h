/* Finds words in lists within one string, and tells how similar two words are.
 *
 * In: NUL-terminated strings. Out: parts of them, distances. */
#ifndef FR_TOOLS_CLI_WORDS_H
#define FR_TOOLS_CLI_WORDS_H

#include <stdbool.h>
#include <stddef.h>

static inline size_t fr_least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Walks a list of words between separators: gives the next one and its length, or NULL at the end. */
const char *fr_next_word(const char **list, char separator, size_t *length);

/* Return true if a list of words with blanks between them has this word. The second accepts it in any case of letters,
 * for a list in small letters. */
bool fr_has_word(const char *list, const char *wanted, size_t wanted_length);
bool fr_has_word_in_any_case(const char *list, const char *wanted, size_t wanted_length);

/* Counts the single-character edits, including swaps of neighbours, that turn one word into the other. The count is
 * large for words that are not names. */
size_t fr_word_distance(const char *a, const char *b);

/* Returns true if a distance is small enough to suggest the other word: at most one edit for three letters. */
bool fr_word_near(const char *word, size_t distance);

/* Gives how much of a command line fits into a line of `most` columns. It is cut at a blank before an option, a
 * bracket or a pipe, outside of brackets and quotes. If there is no such blank, the part may be longer. */
size_t fr_line_part(const char *line, size_t length, size_t most);

#endif
