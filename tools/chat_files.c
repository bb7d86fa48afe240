/* Conversations to files and back (chat_files.h). */
#include "chat_files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conversation.h"
#include "loaded.h"
#include "output.h"
#include "wide_json.h"

/* A message a line. */
static bool write_messages(const json_t *messages, FILE *out) {
    size_t count = json_array_size(messages);
    bool written = true;
    fputs("[", out);
    for (size_t i = 0; i < count && written; i++) {
        fputs(i ? ",\n " : "\n ", out);
        written = fr_json_write(json_array_get(messages, i), out);
    }
    fputs("\n]\n", out);
    return written;
}

/* A model, say, whose name was typed by mistake. */
static bool is_another_file(const char *path) {
    FILE *file = fopen(path, "r");
    int first = file ? getc(file) : EOF;
    if (file) fclose(file);
    if (first == EOF || first == '[') return false;
    fr_bad_input("%s is there, and is no conversation: nothing was written", path);
    return true;
}

bool fr_chat_file_write(const char *path, const json_t *messages) {
    char temporary[PATH_MAX];
    if (fr_output_check(path) || is_another_file(path)) return false;
    const char *slash = strrchr(path, '/');
    int folder = slash ? (int)(slash + 1 - path) : 0;
    int length = snprintf(temporary, sizeof(temporary), "%.*s.forerun-XXXXXX", folder, path);
    errno = ENAMETOOLONG;
    int fd = length < (int)sizeof(temporary) ? mkstemp(temporary) : -1;
    FILE *out = fd < 0 ? NULL : fdopen(fd, "w");
    bool written = out && write_messages(messages, out);
    if (out && fclose(out) != 0) written = false;
    if (written && rename(temporary, path) == 0) return true;
    fr_bad_input("%s: %s", path, strerror(errno));
    if (fd >= 0) unlink(temporary);
    return false;
}

json_t *fr_chat_file_read(const char *path) {
    fr_prompt file;
    json_error_t error;
    if (fr_prompt_read_file(&file, path)) {
        fr_prompt_free(&file);
        return NULL;
    }
    json_t *read = fr_json_load(file.bytes ? file.bytes : "", file.length, &error);
    json_t *messages = json_is_object(read) ? json_object_get(read, "messages") : read;
    const char *fault = NULL;
    if (!read) fr_bad_input("%s:%d: not JSON: %s", path, error.line, error.text);
    else if ((fault = fr_conversation_fault(messages))) fr_bad_input("%s: %s", path, fault);
    json_t *taken = read && !fault ? json_incref(messages) : NULL;
    json_decref(read);
    fr_prompt_free(&file);
    return taken;
}
