/* A trace as one HTML page: plots, the text in its colours, a table of the figures.
 *
 * Whatever a trace says is data here: it is escaped, and the page has no script and forbids itself to load anything.
 * The caller looks for a failure to write. */
#ifndef FR_TOOLS_CLI_PAGE_H
#define FR_TOOLS_CLI_PAGE_H

#include "tools/cli/record.h"

void fr_page_write(const fr_record *record, FILE *out);

/* The page's style sheet. */
extern const char fr_page_style[];

/* Text as HTML text or attribute: markup escaped, control characters as pictures of them. */
void fr_page_text(const char *bytes, size_t length, FILE *out);

/* The plots, a figure each; one without data is left out. */
void fr_page_plots(const fr_record *record, FILE *out);

#endif
