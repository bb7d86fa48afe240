/* What the command writes: one-line diagnostics, text as it is generated, files that appear whole or not at all. */
#ifndef FR_TOOLS_CLI_OUTPUT_H
#define FR_TOOLS_CLI_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "forerun.h"
#include "tools/cli/terminal/word_wrap.h"

/* ------------------------------------------------------------------------------------------------------ diagnostics */

/* Each writes one line "forerun: ..." to standard error. The first gives exit status 2, the second 1; the third only
 * remarks. */
int fr_wrong_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
int fr_bad_input(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fr_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fr_note_line(const char *line); /* as a callback for the library */

/* What of the command line would help where the library's last call failed: ": raise -c"; "" for nothing. */
const char *fr_failure_hint(void);

/* The exit status of a library call; a failure's line is written, with that. */
int fr_exit_status(fr_status status);

/* realloc of count elements; a system without memory ends the command with exit status 1. */
void *fr_resize(void *memory, size_t count, size_t size);

/* A closed pipe, or a file larger than is allowed, is a failed write like others, not a signal; so is one to a stream
 * that the command was started without. Call it first. */
void fr_output_begin(void);

/* Flushes standard output. If not everything could be written (a full disk), prints why and exits with status 1. If the
 * reader has gone (| head), ends silently by SIGPIPE, as other programs do. Call it after all output, before a long
 * computation. */
void fr_flush_output(void);

/* From here on a terminal that goes away (a lost connection) is no such failure: what would be printed on it is
 * dropped, for a command that has something to save: said before anything takes long, as a terminal that has gone can't
 * be told from a pipe. And whether one has gone. */
void fr_output_outlive_terminal(void);
bool fr_output_gone(void);

/* ------------------------------------------------------------------------------------------------------------- text */

/* Told of a text's next bytes. */
typedef void fr_stream_fn(void *context, const char *bytes, size_t length);

/* A text as it is generated: streamed, watched for stop strings, kept. What could be the beginning of a stop string is
 * held back until it is known. */
typedef struct fr_stream {
    FILE *out;  /* NULL: nothing is streamed */
    bool color; /* accepted drafts in green */
    fr_stream_fn *told; /* before bytes are written to out, or would be; NULL: nobody is */
    void *context;
    const char *const *stops;
    size_t stop_count;
    const char *stopped; /* the one that has ended it; NULL: none has */
    bool keeps_stop;     /* the stop string stays in the text */
    char *bytes; /* the text so far, without the stop string that ended it unless that is kept */
    bool *accepted;
    size_t length, written, capacity;
    bool green; /* the colour that out is in */
    fr_word_wrap *wrap; /* wraps lines if `out` is a terminal; NULL: no wrapping */
} fr_stream;

/* Takes bytes of one token; true when they complete a stop string, which ends the text before it. */
bool fr_stream_feed(fr_stream *text, const char *bytes, size_t length, bool accepted);

/* Writes what is no longer held back, so that a reader sees it now. */
void fr_stream_flush(fr_stream *text);

/* The end of the text: writes what is still held back. */
void fr_stream_end(fr_stream *text);
void fr_stream_free(fr_stream *text);

/* The text of an id that is no token: U+FFFD. */
#define FR_NO_TOKEN "\xef\xbf\xbd"

/* "1,2,3\n" */
void fr_ids_print(const int32_t *ids, size_t count, FILE *out);

/* Any bytes in quotes, on one line: \" \\ \n \r \t, and \xNN for other control characters and what is not UTF-8. */
void fr_quoted_print(const char *bytes, size_t length, FILE *out);

/* A JSON string of any bytes: what is not UTF-8 becomes U+FFFD, one for each maximal part of a character (the Unicode
 * Standard, 3.9). */
json_t *fr_json_bytes(const char *bytes, size_t length);

/* The bytes as an array of numbers: where a token is part of a character its text alone doesn't tell. */
json_t *fr_json_byte_numbers(const char *bytes, size_t length);

/* Characters of a JSON string. */
size_t fr_json_characters(const json_t *text);

/* A value's text, on one line; free. A system without memory ends the command with exit status 1. */
char *fr_json_line(const json_t *value);

/* Hands a new value over to an object. */
void fr_json_put(json_t *object, const char *key, json_t *value);

/* ------------------------------------------------------------------------------------------------------------ files */

/* Whether a regular file can get that name when it is complete: its folder is there and takes new files. Makes and
 * changes nothing; gives the exit status. For what is written after a long time. */
int fr_output_check(const char *path);

/* A file that gets its name only when it is complete: written under a temporary name in the same folder, synced,
 * renamed, the folder synced. "-" is standard output; what exists and is no regular file (a pipe, a device) is written
 * in place, and so is an open descriptor (/dev/stdout). The temporary file is removed when the command ends in any
 * other way, by SIGINT, SIGTERM or SIGHUP too; after SIGKILL by the next run that writes there. One at a time.
 * The first write to the file that fails ends the command: a line that names it and says why, exit status 1. */
typedef struct fr_writer {
    FILE *file;
    int fd;
    char *path; /* what the complete file will be called */
    bool temporary;
} fr_writer;

int fr_writer_open(fr_writer *writer, const char *path);

/* Completes the file. Gives the exit status. */
int fr_writer_close(fr_writer *writer);

/* Without completing it. */
void fr_writer_abandon(fr_writer *writer);

/* Removes the temporary file, if there is one: for a signal handler that ends the command. */
void fr_writer_remove(void);

/* Whether one of the lines that give an exit status has been written. */
bool fr_has_failed(void);

/* Who says of a signal that ends the command whether it does; handlers ask (true: nobody has been named). */
void fr_signal_ask(bool (*ends)(int signal_number));
bool fr_signal_ends(int signal_number);

#endif
