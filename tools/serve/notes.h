/* Lines that a server says once, however many requests there are of the kind: what it passes over in them.
 *
 * In: lines, some with words of clients in them. Out: each on standard error the first time, "forerun: LINE"; of very
 * many different ones the first alone. Any thread. */
#ifndef FR_TOOLS_SERVE_NOTES_H
#define FR_TOOLS_SERVE_NOTES_H

#include <stdbool.h>

/* Switches the notes on, as text or as JSON, {"note": LINE}. A server calls it if its log shows warnings. */
void fr_notes_begin(bool json);

/* Writes a line, unless it was written before. */
void fr_notes_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
