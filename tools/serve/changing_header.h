/* Removes from the system text a line that is different in each request. Then the prompts of the requests begin in the
 * same way, and are found in the cache. */
#ifndef FR_TOOLS_SERVE_CHANGING_HEADER_H
#define FR_TOOLS_SERVE_CHANGING_HEADER_H

#include <jansson.h>

/* Changes the messages in place. A part or message that consists only of such a line is removed. */
void fr_changing_header_drop(json_t *messages);

#endif
