/* Finds marks in a reply while it is generated.
 *
 * In: pieces of a reply, and which of them are control tokens. Out: marks, and the text between them. They do not
 * depend on how the reply was cut into pieces. Only bytes that can still become a mark are held back. */
#ifndef FR_SRC_LANGUAGE_CHAT_REPLY_MARKS_H
#define FR_SRC_LANGUAGE_CHAT_REPLY_MARKS_H

#include "src/language/chat/reply_format.h"

typedef struct fr_mark_finder {
    const fr_reply_format *format;
    char held[FR_MARK_MAX];
    size_t count;
    bool begins[256]; /* [byte] true if some mark that is found in text begins with this byte */
} fr_mark_finder;

/* Receives a mark or text. text: the bytes of the mark; if mark is FR_MARK_NONE, bytes between marks. */
typedef void fr_mark_fn(void *context, fr_mark mark, const char *text, size_t length);

void fr_mark_finder_begin(fr_mark_finder *finder, const fr_reply_format *format);

/* Reads a piece. If the piece is a control token, all of it is a mark, or all of it is text. */
void fr_mark_finder_feed(fr_mark_finder *finder, const char *text, size_t length, bool control, fr_mark_fn *found,
                         void *context);

/* Ends the reply: the bytes that are held back are text. */
void fr_mark_finder_finish(fr_mark_finder *finder, fr_mark_fn *found, void *context);

#endif
