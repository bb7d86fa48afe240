/* Joins the words of a table to one text, for messages that list them.
 *
 * In: a function that gives the word at an index, or NULL past the end. Out: all words, separated by blanks. */
#ifndef FR_BASE_WORD_LIST_H
#define FR_BASE_WORD_LIST_H

#include <stddef.h>
#include <stdio.h>

typedef const char *fr_word_fn(size_t index);

/* Holds a text of words, cut at the size of the array. */
typedef struct fr_word_list {
    char text[1024];
} fr_word_list;

static inline fr_word_list fr_list_words(fr_word_fn *word) {
    fr_word_list list = {""};
    size_t length = 0;
    for (size_t i = 0; word(i) && length < sizeof list.text; i++)
        length += (size_t)snprintf(list.text + length, sizeof list.text - length, "%s%s", i ? " " : "", word(i));
    return list;
}

#endif
