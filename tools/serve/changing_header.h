/* Removes a line of the system text that is different in each request. */
#ifndef FR_TOOLS_SERVE_CHANGING_HEADER_H
#define FR_TOOLS_SERVE_CHANGING_HEADER_H

#include <jansson.h>

/* Changes the messages in place. A text or message that has only such a line is removed. */
void fr_changing_header_drop(json_t *messages);

#endif
