/* Reads roles and contents of messages. A content is a text or a list of parts, some of which are texts in one of the
 * forms that clients send. */
#ifndef FR_SRC_LANGUAGE_CHAT_CHAT_CONTENT_H
#define FR_SRC_LANGUAGE_CHAT_CHAT_CONTENT_H

#include <jansson.h>
#include <stdbool.h>

bool fr_chat_is_role(const json_t *message, const char *role);

/* Gives the text of a part; NULL: the part is not a text, but a picture, for example. */
const json_t *fr_chat_text_of(const json_t *part);

/* Returns true for a list whose parts are all texts. */
bool fr_chat_is_texts(const json_t *content);

/* Copies a content. If all its parts are texts, the copy is one text with a line for each part. NULL: memory ran
 * out. */
json_t *fr_chat_plain_content(const json_t *content);

/* Makes a content whose only part is `text`; NULL: memory ran out. */
json_t *fr_chat_parted_content(json_t *text);

#endif
