/* Removes a line that differs in each request from the system text. Then prompts begin in the same way and are found
 * in the cache. */
#ifndef FR_TOOLS_SERVE_CHANGING_HEADER_H
#define FR_TOOLS_SERVE_CHANGING_HEADER_H

#include <jansson.h>

/* Changes the messages in place. A part or message that consists only of such a line is removed. */
void fr_changing_header_drop(json_t *messages);

#endif
