/* Writes conversations to files and reads them (chat_files.h). */
#include "tools/cli/chat_files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "tools/cli/conversation.h"
#include "tools/cli/loaded.h"
#include "tools/cli/output.h"
#include "tools/cli/wide_json.h"

/* Writes the messages as a JSON array with one message on each line. */
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

/* Parses the conversation in a file's bytes. NULL: the bytes hold no conversation, and `why` has the reason. */
static json_t *take_messages(const fr_prompt *file, const char *path, char *why, size_t size) {
    json_error_t error;
    json_t *read = fr_json_load(file->bytes ? file->bytes : "", file->length, &error);
    json_t *messages = json_is_object(read) ? json_object_get(read, "messages") : read;
    const char *fault = read ? fr_conversation_fault(messages) : NULL;
    if (!read) snprintf(why, size, "%s:%d: not JSON: %s", path, error.line, error.text);
    if (fault) snprintf(why, size, "%s: %s", path, fault);
    json_t *taken = read && !fault ? json_incref(messages) : NULL;
    json_decref(read);
    return taken;
}

/* Returns true if the file exists but is not a conversation, for example a model whose name was typed by mistake.
 * /save does not overwrite such a file. */
static bool is_another_file(const char *path) {
    struct stat info;
    char why[512];
    fr_prompt file = {0};
    if (stat(path, &info) != 0 || info.st_size == 0) return false;
    json_t *messages = fr_prompt_read_file(&file, path) == 0 ? take_messages(&file, path, why, sizeof(why)) : NULL;
    fr_prompt_free(&file);
    json_decref(messages);
    if (!messages) fr_bad_input("%s is there, and is no conversation: nothing was written", path);
    return !messages;
}

bool fr_chat_file_write(const char *path, const json_t *messages) {
    char temporary[PATH_MAX];
    if (fr_output_check(path) || is_another_file(path)) return false;
    int fd = fr_lab_temporary_open(path, temporary, sizeof(temporary), 0600), error = 0;
    int own = fd < 0 ? -1 : dup(fd); /* a second descriptor, which keeps the file locked until the file has its final
                                      * name */
    FILE *out = own < 0 ? NULL : fdopen(own, "w");
    bool written = out && write_messages(messages, out) && !ferror(out);
    if (!out) error = errno;
    if (!out && own >= 0) close(own);
    if (out && fclose(out) != 0) error = errno;
    if (!error && written) error = fr_lab_temporary_keep(fd, temporary, path);
    if (error || !written) {
        fr_bad_input("%s: %s", path, strerror(error ? error : EIO));
        if (fd >= 0) unlink(temporary);
    }
    if (fd >= 0) close(fd);
    return written && !error;
}

json_t *fr_chat_file_read(const char *path) {
    fr_prompt file;
    char why[512];
    bool read = fr_prompt_read_file(&file, path) == 0;
    json_t *messages = read ? take_messages(&file, path, why, sizeof(why)) : NULL;
    if (read && !messages) fr_bad_input("%s", why);
    fr_prompt_free(&file);
    return messages;
}
