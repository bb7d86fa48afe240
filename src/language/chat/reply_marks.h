/* Marks found in a reply as it comes.
 *
 * In: pieces of a reply, and which of them are control tokens. Out: marks, and the text between them, whichever way it
 * was cut into pieces. Held back is only what can still become a mark. */
#ifndef FR_SRC_LANGUAGE_CHAT_REPLY_MARKS_H
#define FR_SRC_LANGUAGE_CHAT_REPLY_MARKS_H

#include "src/language/chat/reply_format.h"

typedef struct fr_mark_finder {
    const fr_reply_format *format;
    char held[FR_MARK_LONGEST];
    size_t count;
    bool begins[256]; /* a mark that is found in text begins with this byte */
} fr_mark_finder;

/* text: the mark's own where there is one, else what lies between marks. */
typedef void fr_mark_fn(void *context, fr_mark mark, const char *text, size_t length);

void fr_mark_finder_begin(fr_mark_finder *finder, const fr_reply_format *format);

/* A control token is a mark or text as a whole. */
void fr_mark_finder_feed(fr_mark_finder *finder, const char *text, size_t length, bool control, fr_mark_fn *found,
                         void *context);

/* What is held back is text. */
void fr_mark_finder_finish(fr_mark_finder *finder, fr_mark_fn *found, void *context);

#endif
