/* Ends a session's steps when its text comes to a stop string.
 *
 * In: the strings, ids as they are committed. Out: the id at which a string is complete, and how much of the text comes
 * before the string. The text consists of all ids since the last prompt. It does not matter in which rounds these ids
 * came, so drafts change nothing. */
#ifndef FR_SRC_ENGINE_SESSION_STOPS_H
#define FR_SRC_ENGINE_SESSION_STOPS_H

#include "base/text_buffer.h"
#include "src/language/tokenizer/tokenizer.h"

typedef struct fr_stops {
    char **strings; /* [count] the stop strings, copied */
    size_t count;
    const fr_tokenizer *tokenizer;
    fr_decoder *decoder; /* NULL: there are no stop strings */
    fr_text_buffer held; /* the text from byte `before` on, which may contain the beginning of a stop string; its
                          * memory never grows */
    size_t before;       /* bytes of the text before `held` */
    int which;           /* index of the string that is complete; -1: none */
} fr_stops;

/* Copies the strings. The copies replace the strings of the last call. */
fr_status fr_stops_set(fr_stops *stops, const fr_tokenizer *tokenizer, const char *const *strings, size_t count);
/* Copies the strings of `of`, and how far `of` has come in its text. */
fr_status fr_stops_copy(fr_stops *stops, const fr_stops *of);
void fr_stops_close(fr_stops *stops);

/* Begins a new text. */
void fr_stops_begin(fr_stops *stops);

/* Takes the next id of the text. Returns true if a string is complete. */
bool fr_stops_feed(fr_stops *stops, int32_t id);

#endif
