/* Stop strings: texts that end a session's steps when what it says comes to one.
 *
 * In: the strings, ids as they are committed. Out: at which id one is complete; how much of the text stands before it.
 * The text is that of the ids since the last prompt, whichever rounds they came in, so that drafts change nothing. */
#ifndef FR_SRC_ENGINE_SESSION_STOPS_H
#define FR_SRC_ENGINE_SESSION_STOPS_H

#include "base/text_buffer.h"
#include "src/language/tokenizer/tokenizer.h"

typedef struct fr_stops {
    char **strings; /* [count] copies */
    size_t count;
    const fr_tokenizer *tokenizer;
    fr_decoder *decoder; /* NULL: no strings */
    fr_text_buffer held; /* the text from `before` on, in which one may have begun; never grows */
    size_t before;       /* bytes of the text before that */
    int which;           /* that is complete, -1: none */
} fr_stops;

/* Takes copies of the strings in the place of those before. */
fr_status fr_stops_set(fr_stops *stops, const fr_tokenizer *tokenizer, const char *const *strings, size_t count);
/* Becomes what another is, in the middle of a text. */
fr_status fr_stops_copy(fr_stops *stops, const fr_stops *of);
void fr_stops_close(fr_stops *stops);

/* A new text begins. */
void fr_stops_begin(fr_stops *stops);

/* The next id of the text: whether one is complete. */
bool fr_stops_feed(fr_stops *stops, int32_t id);

#endif
