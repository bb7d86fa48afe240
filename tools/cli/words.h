/* Searches lists of words that are written in one string, and computes how similar two words are.
 *
 * In: NUL-terminated strings. Out: parts of these strings, or the number of edits between two of them. */
#ifndef FR_TOOLS_CLI_WORDS_H
#define FR_TOOLS_CLI_WORDS_H

#include <stdbool.h>
#include <stddef.h>

static inline size_t fr_least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Gives the next word of a list and its *length, and moves *list to the text after the word. NULL: the list has no
 * further word. */
const char *fr_next_word(const char **list, char separator, size_t *length);

/* These functions return true if a list of words, separated by blanks, contains the wanted word.
 * fr_has_word_in_any_case ignores the difference of capital and small letters; the words of its list must be in small
 * letters. */
bool fr_has_word(const char *list, const char *wanted, size_t wanted_length);
bool fr_has_word_in_any_case(const char *list, const char *wanted, size_t wanted_length);

/* Counts the edits that turn one word into the other. Edits are inserted, removed or replaced characters, and swapped
 * neighbours. If a word is too long to be a name, the result is SIZE_MAX. */
size_t fr_word_distance(const char *a, const char *b);

/* Returns true if `word` is likely to be a misspelling of a known word, so that the known word can be suggested.
 * distance: the number of edits between the two words (fr_word_distance). One edit is allowed for every three letters
 * of `word`. */
bool fr_word_near(const char *word, size_t distance);

/* Gives the number of bytes of a command line that fit into a line of `most` columns. The command line is cut at a
 * blank that comes before an option, a bracket or a pipe, and is not within brackets or quotes. If there is no such
 * blank, the part may be longer. */
size_t fr_line_part(const char *line, size_t length, size_t most);

#endif
