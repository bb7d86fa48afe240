/* Writes the command's output: one-line diagnostics, text while it is generated, and files that appear only when they
 * are complete. */
#ifndef FR_TOOLS_CLI_OUTPUT_H
#define FR_TOOLS_CLI_OUTPUT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "forerun.h"
#include "tools/cli/terminal/word_wrap.h"

/* ------------------------------------------------------------------------------------------------------ diagnostics */

/* Makes all further lines begin with a place, such as a file's name and a line number. "": they begin without a
 * place. */
void fr_output_set_source(const char *place);

/* These functions write one line "forerun: ..." to standard error. fr_wrong_usage returns exit status 2, and
 * fr_bad_input returns 1. fr_note writes a note, which is no failure. */
int fr_wrong_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
int fr_bad_input(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fr_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
void fr_note_line(const char *line); /* fr_note in the form of a callback for the library */

/* Gives advice about the command line for the library's last failure, such as ": raise -c"; "" if there is none. */
const char *fr_failure_hint(void);

/* Gives the exit status of a library call, and writes the error line if it has failed. */
int fr_exit_status(fr_status status);

/* Resizes memory to `count` elements, as realloc does. If there is no memory the command ends with exit status 1. */
void *fr_resize(void *memory, size_t count, size_t size);

/* Call it first. It makes failing writes return an error. Otherwise a write to a closed pipe, or to a file that has
 * reached its size limit, would end the command by a signal. It also opens standard streams that were closed at the
 * start. Otherwise a write to such a stream would go to a wrong file. */
void fr_output_begin(void);

/* Flushes standard output. If a write fails (a full disk), prints the reason and exits with status 1. If the reader has
 * gone (| head), the command ends by SIGPIPE without an error line, as other programs do. Call it after all output, and
 * before a long computation. */
void fr_flush_output(void);

/* fr_output_outlive_terminal makes the command survive the loss of its terminal (a closed connection), so that it can
 * still save its work. After the loss, output to the terminal is dropped. Call it before any long work, because a
 * terminal that is already lost can't be told from a pipe. fr_output_gone returns true if the terminal was lost. */
void fr_output_outlive_terminal(void);
bool fr_output_gone(void);

/* ------------------------------------------------------------------------------------------------------------- text */

/* Receives the next bytes of a text. */
typedef void fr_stream_fn(void *context, const char *bytes, size_t length);

/* A text while it is generated. It is streamed, searched for stop strings, and stored. Bytes that may be the beginning
 * of a stop string are held back until later bytes show whether they are. */
typedef struct fr_stream {
    FILE *out;  /* NULL: nothing is streamed */
    bool color; /* show accepted drafts in green */
    /* called with bytes before they are written to `out`. It is called even if `out` is NULL. NULL: no callback */
    fr_stream_fn *told;
    void *context;
    const char *const *stops;
    size_t stop_count;
    const char *stopped; /* the stop string that has ended the text; NULL: none */
    bool keeps_stop;     /* the stop string that ends the text stays a part of the text */
    /* the text so far. The stop string that ended the text is a part of it only if keeps_stop is set */
    char *bytes;
    bool *accepted;                   /* [length] true for each byte that is from an accepted draft */
    size_t length, written, capacity; /* written: number of bytes that were passed on */
    bool green;                       /* the terminal's colour is green now */
    fr_word_wrap *wrap;               /* wraps lines if `out` is a terminal; NULL: no wrapping */
} fr_stream;

/* Adds the bytes of one token. Returns true if they complete a stop string. The text then ends before that stop
 * string. */
bool fr_stream_feed(fr_stream *text, const char *bytes, size_t length, bool accepted);

/* Writes all bytes that are not held back, so that they appear now. */
void fr_stream_flush(fr_stream *text);

/* Ends the text: writes the bytes that are still held back. */
void fr_stream_end(fr_stream *text);
void fr_stream_free(fr_stream *text);

/* The text of an id that is no token: U+FFFD. */
#define FR_NO_TOKEN "\xef\xbf\xbd"

/* Prints ids as "1,2,3\n". */
void fr_ids_print(const int32_t *ids, size_t count, FILE *out);

/* Prints any bytes in quotes on one line. Quotes, backslashes and line ends are written as \" \\ \n \r \t. Other
 * control characters, and bytes that are not UTF-8, are written as \xNN. */
void fr_quoted_print(const char *bytes, size_t length, FILE *out);

/* Makes a JSON string of any bytes. Bytes that are not UTF-8 become U+FFFD, one for each maximal part of a character
 * (Unicode Standard, 3.9). */
json_t *fr_json_bytes(const char *bytes, size_t length);

/* Makes an array of the bytes as numbers. Such an array identifies a token that is only a part of a character. As a
 * string, such a token would become U+FFFD. */
json_t *fr_json_byte_numbers(const char *bytes, size_t length);

/* Counts the characters of a JSON string. */
size_t fr_json_characters(const json_t *text);

/* Gives a value as JSON on one line, which the caller frees. If there is no memory the command ends with exit status
 * 1. */
char *fr_json_line(const json_t *value);

/* Adds a new value to an object. The object takes ownership of the value. */
void fr_json_put(json_t *object, const char *key, json_t *value);

/* ------------------------------------------------------------------------------------------------------------ files */

/* Checks that a regular file can be written under this name later: its folder exists and allows new files. It is meant
 * for output that comes only after a long computation. Nothing is changed. Gives the exit status. */
int fr_output_check(const char *path);

/* A file that gets its name only when it is complete. It is written under a temporary name in the same folder, synced
 * and renamed, and then the folder is synced. The path "-" is standard output. Two kinds of paths are written in place:
 * an existing path that is no regular file (a pipe, a device), and an open descriptor (/dev/stdout).
 *
 * If the command ends early, also by SIGINT, SIGTERM or SIGHUP, the temporary file is removed. After SIGKILL it stays,
 * and the next run that writes to the same path removes it. Only one writer may be open at a time. The first write that
 * fails ends the command with exit status 1, after a line with the file's name and the reason. */
typedef struct fr_writer {
    FILE *file;
    int fd;
    char *path; /* the path that the complete file gets */
    bool temporary;
} fr_writer;

int fr_writer_open(fr_writer *writer, const char *path);

/* Completes the file. Gives the exit status. */
int fr_writer_close(fr_writer *writer);

/* Closes the file without completing it. */
void fr_writer_abandon(fr_writer *writer);

/* Removes the temporary file, if there is one. It may be called by the handler of a signal that ends the command. */
void fr_writer_remove(void);

/* Returns true if an error line has been written. */
bool fr_has_failed(void);

/* fr_signal_ask sets a callback that decides whether a signal ends the command. Signal handlers call fr_signal_ends,
 * which asks the callback. Without a callback it returns true. */
void fr_signal_ask(bool (*ends)(int signal_number));
bool fr_signal_ends(int signal_number);

#endif
