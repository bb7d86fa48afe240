/* Writes a trace as one HTML page: plots, the text with colours for accepted drafts and corrections, and a table of
 * figures.
 *
 * A trace may hold any bytes, so everything from it is escaped. The page has no script, and its policy forbids it to
 * load anything. The caller must call ferror to find out whether a write has failed. */
#ifndef FR_TOOLS_CLI_PAGE_H
#define FR_TOOLS_CLI_PAGE_H

#include "tools/cli/record.h"

void fr_page_write(const fr_record *record, FILE *out);

/* The style sheet of the page. */
extern const char fr_page_style[];

/* Writes text for HTML or an attribute: markup is escaped, and control characters are replaced by visible symbols. */
void fr_page_text(const char *bytes, size_t length, FILE *out);

/* Writes each plot as a figure. A plot without data is left out. */
void fr_page_plots(const fr_record *record, FILE *out);

#endif
