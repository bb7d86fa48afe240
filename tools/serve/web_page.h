/* The chat page at /: files of tools/serve/page, built into the command.
 *
 * In: exchanges for / and for what is in FR_WEB_PAGE_FOLDER. Out: those files, with a policy by which the page runs
 * nothing but them and asks nobody but this server. A client that has them already is told that they are the same. */
#ifndef FR_TOOLS_SERVE_WEB_PAGE_H
#define FR_TOOLS_SERVE_WEB_PAGE_H

#include <stdbool.h>

#include "tools/serve/http_exchange.h"

#define FR_WEB_PAGE_FOLDER "/page/"

/* Whether a path is one of its files: none of them needs a key. */
bool fr_web_page_has(const char *path);

void fr_web_page_answer(fr_http_exchange *exchange);

#endif
