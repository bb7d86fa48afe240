/* Contents of messages: a text, or a list of parts, of which some are texts in one of the forms that clients send. */
#ifndef FR_SRC_CHAT_CONTENT_H
#define FR_SRC_CHAT_CONTENT_H

#include <jansson.h>
#include <stdbool.h>

/* The text of a part; NULL: it is none, but a picture, say. */
const json_t *fr_chat_text_of(const json_t *part);

/* True for a list of parts that are all texts. */
bool fr_chat_is_texts(const json_t *content);

/* A content as a new value, which is one text if it has nothing but texts: a line for each part. NULL: memory ran
 * out. */
json_t *fr_chat_plain_content(const json_t *content);

#endif
