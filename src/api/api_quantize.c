/* Defines fr_quantize of forerun.h. It does what the command's conversion does, but writes to a path instead of a
 * stream.
 *
 * In: a model's path, and how it is quantized. Out: a GGUF file, which gets its name once it is complete. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file_place.h"
#include "base/options.h"
#include "base/temporary_file.h"
#include "forerun_lab.h"

/* The log from the options of this thread's current call. It is a thread's variable because the conversion calls
 * log_note without a context. */
static _Thread_local const fr_log *note_log;

static void log_note(const char *line) {
    fr_log_line(note_log, FR_LOG_WARN, "%s", line);
}

static fr_status can_not_write(const char *to, int error) {
    if (error == ENOMEM) return fr_fail_memory(to, 0);
    return fr_fail(FR_INPUT, "%s: can't be written: %s", to, strerror(error));
}

/* Writes the file under its temporary name, then renames it to its final name. `fd` stays open until after the
 * renaming, so that the file stays locked. */
static fr_status write_named(const char *path, const fr_lab_quantization *how, const fr_options *options, int fd,
                             const char *temporary, const char *place) {
    int own = dup(fd);
    FILE *out = own < 0 ? NULL : fdopen(own, "wb");
    if (!out) {
        int error = errno;
        if (own >= 0) close(own);
        return can_not_write(place, error);
    }
    fr_status status = fr_lab_quantize(path, how, options, out);
    int error = fclose(out) == 0 ? 0 : errno;
    FR_TRY(status);
    if (!error) error = fr_temporary_keep(fd, temporary, place);
    return error ? can_not_write(place, error) : FR_OK;
}

/* Warns if a folder has a vision tower, because fr_quantize writes none. (The command writes the tower as a second
 * file.) */
static void note_tower(const char *path, const fr_quantization *how) {
    bool found = false;
    if (!note_log || how->drafter || fr_lab_find_tower(path, &found) != FR_OK || !found) return;
    log_note(
        "the vision tower is not in the file, which sees no pictures alone: give one with FR_OPT_MMPROJ (--mmproj)");
}

fr_status fr_quantize(const char *path, const char *to, const fr_quantization *how, const fr_options *options) {
    struct stat info;
    char temporary[PATH_MAX];
    if (!path || !to) return fr_fail_null("fr_quantize", "the paths of a model and of a new file");
    if (!how || !how->type) return fr_fail_null("fr_quantize", "a type");
    bool replaces = stat(to, &info) == 0;
    if (replaces && !S_ISREG(info.st_mode))
        return fr_fail(FR_INPUT, "%s is no regular file: a model can't be written there", to);
    char *place = fr_file_place(to);
    if (!place) return can_not_write(to, errno);
    int fd = fr_temporary_open(place, temporary, sizeof temporary, replaces ? info.st_mode & 0777 : 0644);
    if (fd < 0) {
        int error = errno;
        free(place);
        return can_not_write(to, error);
    }
    fr_lab_quantization inner = {
        .type = how->type,
        .pure = how->pure,
        .overrides = how->overrides,
        .override_count = how->override_count,
        .output_type = how->output_type,
        .embedding_type = how->embedding_type,
        .imatrix = how->imatrix,
        .drafter = how->drafter,
    };
    if (options && options->log.fn) {
        note_log = &options->log;
        inner.note = log_note;
    }
    fr_status status = write_named(path, &inner, options, fd, temporary, place);
    if (status == FR_OK) note_tower(path, how);
    note_log = NULL;
    if (status != FR_OK) unlink(temporary);
    close(fd);
    free(place);
    return status;
}
