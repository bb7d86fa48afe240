/* Serves the chat page at /: files of tools/serve/page, built into the command.
 *
 * In: exchanges for / and for the files in FR_WEB_PAGE_FOLDER. Out: those files, with a policy for browsers. The policy
 * lets the page run only these files and contact only this server. If the client has a file already, the answer only
 * says that it is unchanged. */
#ifndef FR_TOOLS_SERVE_WEB_PAGE_H
#define FR_TOOLS_SERVE_WEB_PAGE_H

#include <stdbool.h>

#include "tools/serve/http_exchange.h"

#define FR_WEB_PAGE_FOLDER "/page/"

/* Returns true if a path is one of the page's files. None of them needs a key. */
bool fr_web_page_has(const char *path);

void fr_web_page_answer(fr_http_exchange *exchange);

#endif
