/* A line of the system's text that is another one in each request.
 *
 * In: messages of a chat. Out: the same without such lines, so that a prompt begins as the one before it did. */
#ifndef FR_TOOLS_SERVE_CHANGING_HEADER_H
#define FR_TOOLS_SERVE_CHANGING_HEADER_H

#include <jansson.h>

/* A text or a message that says nothing else goes as a whole. */
void fr_changing_header_drop(json_t *messages);

#endif
