/* Writes notes about parts of requests that the server ignores. Each kind of part is noted once, however many requests
 * have it.
 *
 * In: lines, some of which contain words from clients. Out: "forerun: LINE" on standard error, the first time that a
 * line comes. After a certain number of different lines no more lines are written. Any thread may call these
 * functions. */
#ifndef FR_TOOLS_SERVE_NOTES_H
#define FR_TOOLS_SERVE_NOTES_H

#include <stdbool.h>

/* Switches the notes on. They have the form of text, or of JSON, {"note": LINE}. A server calls this function if its
 * log shows warnings. */
void fr_notes_begin(bool json);

/* Writes a line. If the line was written before, does nothing. */
void fr_notes_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
