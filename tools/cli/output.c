/* Writes diagnostics, streamed text, JSON and files that appear only when complete (output.h). */
#include "tools/cli/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "tools/cli/wide_json.h"

/* ------------------------------------------------------------------------------------------------------ diagnostics */

static char source[256]; /* text at the beginning of every line (fr_output_set_source); "": lines begin without such a
                          * text */

void fr_output_set_source(const char *place) {
    snprintf(source, sizeof source, "%s", place);
}

/* Writes one line. Names of files and words of the command line may contain control characters. Each control character
 * is replaced by a question mark. */
static void write_line(const char *format, va_list values) {
    char line[1024];
    int begun = *source ? snprintf(line, sizeof line, "%s: ", source) : 0;
    vsnprintf(line + begun, sizeof line - (size_t)begun, format, values);
    for (char *c = line; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f) *c = '?';
    }
    fprintf(stderr, "forerun: %s\n", line);
}

static atomic_bool failed; /* set once an error line was written */

bool fr_has_failed(void) {
    return failed;
}

int fr_wrong_usage(const char *format, ...) {
    va_list values;
    failed = true;
    va_start(values, format);
    write_line(format, values);
    va_end(values);
    return 2;
}

int fr_bad_input(const char *format, ...) {
    va_list values;
    failed = true;
    va_start(values, format);
    write_line(format, values);
    va_end(values);
    return 1;
}

void fr_note(const char *format, ...) {
    va_list values;
    va_start(values, format);
    write_line(format, values);
    va_end(values);
}

const char *fr_failure_hint(void) {
    switch ((int)fr_last_error_option()) {
    case FR_OPT_CONTEXT: return ": raise -c";
    case FR_OPT_MEMORY: return ": raise --memory, or take less of -c";
    case FR_OPT_SPEC_TYPE: return ": give a drafter with -md, its target with -m";
    case FR_OPT_MMPROJ: return ": give a vision tower with --mmproj, its text model with -m";
    case FR_OPT_TOKENIZER_PRE: return ": choose how texts are cut with --tokenizer-pre";
    case FR_OPT_MLOCK: return ": leave out --mlock";
    case FR_OPT_MMAP: return ": leave out --no-mmap";
    default: return "";
    }
}

void fr_note_line(const char *line) {
    fr_note("%s", line);
}

int fr_exit_status(fr_status status) {
    if (status == FR_OK) return 0;
    failed = true;
    const char *line = fr_last_error(), *second = strchr(line, '\n');
    fr_note("%.*s%s", second ? (int)(second - line) : (int)strlen(line), line, fr_failure_hint());
    if (second) fr_note("%s", second + 1);
    return status == FR_USAGE || status == FR_UNBUILT ? 2 : 1;
}

void *fr_resize(void *memory, size_t count, size_t size) {
    void *resized = reallocarray(memory, count ? count : 1, size);
    if (resized) return resized;
    fr_note("out of memory: %zu times %zu bytes", count, size);
    exit(1);
}

/* Opens each closed standard stream on /dev/null. Standard input is opened for writing and the other two streams for
 * reading, so that any use of them fails. If the stream stayed closed, the next opened file would get its number, and
 * output would go into that file. */
static void hold_streams(void) {
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++) {
        int fails = stream == STDIN_FILENO ? O_WRONLY : O_RDONLY;
        if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", fails) != stream) exit(1);
    }
}

static bool unread;

/* Ends the command by SIGPIPE if the reader of its output has gone. SIGPIPE is used because shells print no message
 * about it. The function runs as the last exit handler. */
static void end_unread(void) {
    if (!unread) return;
    signal(SIGPIPE, SIG_DFL);
    raise(SIGPIPE);
}

/* Ends the command with an error line that says which output could not be written; errno has the reason. */
static _Noreturn void end_unwritten(const char *name) {
    unread = errno == EPIPE;
    if (unread) __fpurge(stdout);
    exit(unread ? 1 : fr_bad_input("%s: %s", name, strerror(errno)));
}

void fr_output_begin(void) {
    hold_streams();
    atexit(end_unread);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
}

static bool outlives, gone;

void fr_output_outlive_terminal(void) {
    outlives = isatty(STDOUT_FILENO);
}

bool fr_output_gone(void) {
    return gone;
}

/* Replaces a terminal that has gone away by /dev/null, because writes to it would fail with EIO. */
static bool drop_output(void) {
    if (!outlives || errno != EIO) return false;
    int nowhere = open("/dev/null", O_WRONLY);
    gone = nowhere >= 0 && dup2(nowhere, STDOUT_FILENO) == STDOUT_FILENO;
    if (nowhere >= 0) close(nowhere);
    __fpurge(stdout);
    clearerr(stdout);
    return gone;
}

void fr_flush_output(void) {
    if ((fflush(stdout) == 0 && !ferror(stdout)) || drop_output()) return;
    end_unwritten("standard output");
}

/* ------------------------------------------------------------------------------------------------------------- text */

static void append(fr_stream *text, const char *bytes, size_t length, bool accepted) {
    if (text->capacity - text->length < length) {
        text->capacity = 2 * text->capacity + length + 256;
        text->bytes = fr_resize(text->bytes, text->capacity, 1);
        text->accepted = fr_resize(text->accepted, text->capacity, sizeof(*text->accepted));
    }
    if (length == 0) return;
    memcpy(text->bytes + text->length, bytes, length);
    memset(text->accepted + text->length, accepted, length);
    text->length += length;
}

static void set_green(fr_stream *text, bool green) {
    if (green != text->green) fputs(green ? "\033[32m" : "\033[0m", text->out);
    text->green = green;
}

/* Writes a byte, in green if it is from an accepted draft (an fr_wrap_put). */
static void put_byte(void *context, char byte, bool accepted) {
    fr_stream *text = context;
    if (text->color) set_green(text, accepted);
    putc(byte, text->out);
}

/* Writes the bytes of the text that follow the first `text->written` bytes, up to `end`. */
static void write_until(fr_stream *text, size_t end) {
    if (text->told && text->written < end) text->told(text->context, text->bytes + text->written, end - text->written);
    for (; text->out && text->written < end; text->written++) {
        char byte = text->bytes[text->written];
        if (text->wrap)
            fr_word_wrap_feed(text->wrap, byte, text->accepted[text->written], put_byte, text);
        else
            put_byte(text, byte, text->accepted[text->written]);
    }
    text->written = end;
}

bool fr_stream_feed(fr_stream *text, const char *bytes, size_t length, bool accepted) {
    append(text, bytes, length, accepted);
    int which;
    size_t at = fr_stop_find(text->stops, text->stop_count, text->bytes, text->length, text->written, &which);
    if (which >= 0) {
        text->stopped = text->stops[which];
        text->length = at + (text->keeps_stop ? strlen(text->stopped) : 0);
        return true;
    }
    write_until(text, at);
    return false;
}

void fr_stream_flush(fr_stream *text) {
    if (!text->out) return;
    /* the colour is switched off until the next byte, because other programs may write to the terminal meanwhile */
    set_green(text, false);
    fr_flush_output();
}

void fr_stream_end(fr_stream *text) {
    write_until(text, text->length);
    if (text->wrap) fr_word_wrap_finish(text->wrap, put_byte, text);
    fr_stream_flush(text);
}

void fr_stream_free(fr_stream *text) {
    free(text->bytes);
    free(text->accepted);
    *text = (fr_stream){0};
}

void fr_ids_print(const int32_t *ids, size_t count, FILE *out) {
    for (size_t i = 0; i < count; i++) fprintf(out, i ? ",%d" : "%d", ids[i]);
    putc('\n', out);
}

/* Gives the length of the UTF-8 character at `bytes`. `length` is the number of bytes that are left. If no valid
 * character is there, the result is 0, and *bad is the number of bytes that one U+FFFD replaces. The range of the
 * second byte excludes overlong forms, surrogates and characters above U+10FFFF. */
static size_t utf8_length(const unsigned char *bytes, size_t length, size_t *bad) {
    unsigned char first = bytes[0], low = 0x80, high = 0xbf;
    *bad = 1;
    if (first < 0x80) return 1;
    if (first < 0xc2 || first > 0xf4) return 0;
    size_t need = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (first == 0xe0) low = 0xa0;
    if (first == 0xed) high = 0x9f;
    if (first == 0xf0) low = 0x90;
    if (first == 0xf4) high = 0x8f;
    for (size_t i = 1; i < need; i++) {
        if (i == length || bytes[i] < low || bytes[i] > high) return 0;
        *bad = i + 1;
        low = 0x80;
        high = 0xbf;
    }
    return need;
}

static void print_escaped(unsigned char c, FILE *out) {
    static const char plain[] = "\"\\\n\r\t", letters[] = "\"\\nrt";
    const char *found = c ? strchr(plain, c) : NULL;
    if (found)
        fprintf(out, "\\%c", letters[found - plain]);
    else
        fprintf(out, "\\x%02x", c);
}

void fr_quoted_print(const char *bytes, size_t length, FILE *out) {
    putc('"', out);
    for (size_t at = 0; at < length;) {
        const unsigned char *c = (const unsigned char *)bytes + at;
        size_t bad, good = utf8_length(c, length - at, &bad);
        bool escaped = good == 0 || *c < ' ' || *c == 0x7f || *c == '"' || *c == '\\';
        if (escaped)
            print_escaped(*c, out);
        else
            fwrite(c, 1, good, out);
        at += escaped ? 1 : good;
    }
    putc('"', out);
}

json_t *fr_json_bytes(const char *bytes, size_t length) {
    fr_stream valid = {0};
    for (size_t at = 0; at < length;) {
        size_t bad, good = utf8_length((const unsigned char *)bytes + at, length - at, &bad);
        append(&valid, good ? bytes + at : "\xef\xbf\xbd", good ? good : 3, false);
        at += good ? good : bad;
    }
    json_t *value = json_stringn(valid.bytes ? valid.bytes : "", valid.length);
    fr_stream_free(&valid);
    return value;
}

size_t fr_json_characters(const json_t *text) {
    size_t count = 0, length = json_string_length(text);
    const char *bytes = json_string_value(text);
    for (size_t i = 0; i < length; i++) count += ((unsigned char)bytes[i] & 0xc0) != 0x80;
    return count;
}

json_t *fr_json_byte_numbers(const char *bytes, size_t length) {
    json_t *numbers = json_array();
    for (size_t i = 0; i < length; i++) json_array_append_new(numbers, json_integer((unsigned char)bytes[i]));
    return numbers;
}

/* Ends the command with an error line, because there is no memory for a JSON value. */
static void give_up(void) {
    fr_note("out of memory: a JSON object");
    exit(1);
}

char *fr_json_line(const json_t *value) {
    char *text = NULL;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    bool written = out && fr_json_write(value, out);
    if (!out || fclose(out) != 0 || !written) give_up();
    return text;
}

void fr_json_put(json_t *object, const char *key, json_t *value) {
    if (json_object_set_new(object, key, value) != 0) give_up();
}

/* ------------------------------------------------------------------------------------------------------------ files */

/* The destination of a file stream: its descriptor, and its name in errors. */
typedef struct outlet {
    int fd;
    bool failed;
    char name[];
} outlet;

/* Writes bytes of a stream. The first write that fails ends the command. If more bytes come while the command ends,
 * they are dropped. */
static ssize_t take_bytes(void *cookie, const char *bytes, size_t size) {
    outlet *out = cookie;
    for (size_t done = 0; done < size && !out->failed;) {
        ssize_t count = write(out->fd, bytes + done, size - done);
        if (count >= 0) done += (size_t)count;
        out->failed = count < 0 && errno != EINTR;
        if (out->failed) end_unwritten(out->name);
    }
    return out->failed ? 0 : (ssize_t)size;
}

static int close_outlet(void *cookie) {
    outlet *out = cookie;
    int closed = out->fd == STDOUT_FILENO ? 0 : close(out->fd);
    free(out);
    return closed;
}

/* Opens a stream on a descriptor. Returns NULL, with errno set, if that fails or if the descriptor is negative. */
static FILE *open_outlet(int fd, const char *name) {
    if (fd < 0) return NULL;
    outlet *out = fr_resize(NULL, sizeof(*out) + strlen(name) + 1, 1);
    *out = (outlet){.fd = fd};
    memcpy(out->name, name, strlen(name) + 1);
    return fopencookie(out, "w", (cookie_io_functions_t){.write = take_bytes, .close = close_outlet});
}

static char temporary_path[PATH_MAX]; /* "": there is no temporary file */

void fr_writer_remove(void) {
    if (*temporary_path) unlink(temporary_path);
}

static bool (*ask_of_signal)(int signal_number);

void fr_signal_ask(bool (*ends)(int signal_number)) {
    ask_of_signal = ends;
}

bool fr_signal_ends(int signal_number) {
    return !ask_of_signal || ask_of_signal(signal_number);
}

static void end_by_signal(int signal_number) {
    if (!fr_signal_ends(signal_number)) return;
    fr_writer_remove();
    raise(signal_number); /* SA_RESETHAND has restored the default action */
}

/* Watches the signals that end the command. A signal that was ignored when the command started (nohup) stays
 * ignored. */
static void watch_for_end(void) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
        struct sigaction old, action = {.sa_handler = end_by_signal, .sa_flags = (int)SA_RESETHAND};
        sigaction(signals[i], NULL, &old);
        if (old.sa_handler != SIG_IGN) sigaction(signals[i], &action, NULL);
    }
    atexit(fr_writer_remove);
}

/* Makes the temporary file while signals are blocked. So the signal handler finds either no name, or the name of a file
 * that this command has made. */
static int make_temporary(const char *path, mode_t mode) {
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    int fd = fr_lab_temporary_open(path, temporary_path, sizeof(temporary_path), mode);
    if (fd < 0) *temporary_path = '\0';
    sigprocmask(SIG_SETMASK, &before, NULL);
    return fd;
}

/* Gives the permissions that a new file gets under the current umask. */
static mode_t new_mode(void) {
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

/* Opens the temporary file. If the path is a symbolic link, the link is kept, and the file to which it points is
 * replaced or made. */
static int open_temporary(fr_writer *writer, const struct stat *existing) {
    char *place = fr_lab_file_place(writer->path);
    if (!place) return -1;
    free(writer->path);
    writer->path = place;
    watch_for_end();
    writer->temporary = true;
    return make_temporary(writer->path, existing ? existing->st_mode & 0777 : new_mode());
}

/* Returns true if the path must be written in place, without a temporary file. That holds for pipes and devices. It
 * also holds for /dev/stdout and /dev/fd/N, which are open descriptors even if they lead to a file. */
static bool in_place(const char *path, const struct stat *info) {
    return fr_lab_file_is_descriptor(path) || (info && !S_ISREG(info->st_mode));
}

int fr_output_check(const char *path) {
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode)) return fr_bad_input("%s is no regular file", path);
    char *place = fr_lab_file_place(path), *slash = place ? strrchr(place, '/') : NULL;
    if (slash) slash[1] = '\0';
    bool takes = place && access(slash ? place : ".", W_OK | X_OK) == 0;
    int error = errno;
    free(place);
    return takes ? 0 : fr_bad_input("%s: %s", path, strerror(error));
}

int fr_writer_open(fr_writer *writer, const char *path) {
    *writer = (fr_writer){.path = fr_resize(NULL, strlen(path) + 1, 1)};
    memcpy(writer->path, path, strlen(path) + 1);
    struct stat info;
    const struct stat *existing = stat(path, &info) == 0 ? &info : NULL;
    bool standard = strcmp(path, "-") == 0;
    if (standard)
        writer->fd = STDOUT_FILENO;
    else if (in_place(path, existing))
        writer->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    else
        writer->fd = open_temporary(writer, existing);
    writer->file = open_outlet(writer->fd, standard ? "standard output" : path);
    if (writer->file) return 0;
    int code = fr_bad_input("%s: %s", path, strerror(errno));
    fr_writer_abandon(writer);
    return code;
}

int fr_writer_close(fr_writer *writer) {
    int error = 0, held = -1; /* held: a second descriptor, which keeps the file locked until the file has its final
                               * name */
    fflush(writer->file);
    if (writer->temporary && (held = dup(writer->fd)) < 0) error = errno;
    if (fclose(writer->file) != 0 && !error) error = errno;
    writer->file = NULL;
    if (!error && writer->temporary) error = fr_lab_temporary_keep(held, temporary_path, writer->path);
    if (held >= 0) close(held);
    if (!error) *temporary_path = '\0';
    int code = error ? fr_bad_input("%s: %s", writer->path, strerror(error)) : 0;
    fr_writer_abandon(writer);
    return code;
}

void fr_writer_abandon(fr_writer *writer) {
    if (writer->file) {
        __fpurge(writer->file);
        fclose(writer->file);
    }
    fr_writer_remove();
    *temporary_path = '\0';
    free(writer->path);
    *writer = (fr_writer){0};
}
