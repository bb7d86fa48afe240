/* Writes a folder of features, and continues an earlier one (features_folder.h). */
#include "tools/cli/features_folder.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/output.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is the memory, so that must be little-endian too");

static int refuse_file(const fr_features_folder *folder, const char *name, const char *why) {
    return fr_bad_input("%s/%s: %s", folder->path, name, why);
}

/* Makes the path of a file in the folder; returns false if it is too long. */
static bool place(const fr_features_folder *folder, const char *name, char path[PATH_MAX]) {
    return snprintf(path, PATH_MAX, "%s/%s", folder->path, name) < PATH_MAX;
}

/* ------------------------------------------------------------------------------------------------------------- kind */

static char *kind_text(const fr_features_kind *kind) {
    json_t *object = json_object(), *layers = json_array();
    fr_json_put(object, "format", json_integer(1));
    fr_json_put(object, "type", json_string("BF16"));
    fr_json_put(object, "hidden", json_integer(kind->hidden));
    fr_json_put(object, "vocab", json_integer(kind->vocab));
    fr_json_put(object, "model_layers", json_integer(kind->model_layers));
    for (size_t i = 0; i < kind->layer_count; i++)
        json_array_append_new(layers, json_integer((json_int_t)kind->layers[i]));
    fr_json_put(object, "layers", layers);
    char *text = fr_json_line(object);
    json_decref(object);
    return text;
}

static int write_kind(const char *path, const fr_features_kind *kind) {
    fr_writer writer;
    int code = fr_writer_open(&writer, path);
    if (code) return code;
    char *text = kind_text(kind);
    fprintf(writer.file, "%s\n", text);
    free(text);
    return fr_writer_close(&writer);
}

/* Checks that the features that a folder already has are of this kind. *there: the folder has features of this kind. A
 * folder without features is no error. */
static int check_kind(const fr_features_folder *folder, const char *path, const fr_features_kind *kind, bool *there) {
    json_t *read = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    *there = false;
    if (!read) return access(path, F_OK) == 0 ? refuse_file(folder, "features.json", "no JSON that can be read") : 0;
    char *text = kind_text(kind);
    json_t *own = json_loads(text, 0, NULL);
    *there = json_equal(read, own);
    json_decref(read);
    json_decref(own);
    free(text);
    return *there ? 0 : refuse_file(folder, "features.json", "its features are of another model, or of other layers");
}

/* ------------------------------------------------------------------------------------------------------------ index */

/* Returns true if this line of the index describes the next text, and the file of rows has all rows of that text.
 * *rows: number of rows in the file up to and including the last row of this text. */
static bool is_next(const fr_features_folder *folder, const char *line, size_t length, uint64_t stored,
                    uint64_t *rows) {
    json_t *text = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL);
    const json_t *at = json_object_get(text, "at");
    *rows = folder->row_count + json_array_size(json_object_get(text, "ids"));
    bool ran = json_is_integer(at) && (uint64_t)json_integer_value(at) == folder->row_count && *rows <= stored;
    bool next = json_is_integer(json_object_get(text, "line")) &&
                (size_t)json_integer_value(json_object_get(text, "line")) == folder->texts &&
                (ran || (json_object_get(text, "error") && *rows == folder->row_count));
    json_decref(text);
    return next;
}

/* Counts the complete texts of an earlier run. *end: number of bytes at the beginning of the index that describe these
 * texts. */
static void read_index(fr_features_folder *folder, FILE *index, uint64_t stored, size_t most, off_t *end) {
    char *line = NULL;
    size_t room = 0;
    uint64_t rows;
    ssize_t length;
    *end = 0;
    while (folder->texts < most && (length = getline(&line, &room, index)) > 0 && line[length - 1] == '\n' &&
           is_next(folder, line, (size_t)length, stored, &rows)) {
        folder->row_count = rows;
        folder->texts++;
        *end += length;
    }
    free(line);
}

/* Cuts the index and the file of rows after the last complete text that an earlier run has written. */
static int keep_whole(fr_features_folder *folder, const char *index_path, const char *rows_path, size_t width,
                      size_t most) {
    struct stat info = {0};
    off_t end = 0;
    FILE *index = fopen(index_path, "rb");
    if (stat(rows_path, &info) != 0) info.st_size = 0;
    if (index) {
        read_index(folder, index, (uint64_t)info.st_size / (width * sizeof(uint16_t)), most, &end);
        fclose(index);
    }
    off_t bytes = (off_t)(folder->row_count * width * sizeof(uint16_t));
    if (index && truncate(index_path, end) != 0) return refuse_file(folder, "index.jsonl", strerror(errno));
    if (info.st_size > bytes && truncate(rows_path, bytes) != 0)
        return refuse_file(folder, "rows.bf16", strerror(errno));
    return 0;
}

/* ---------------------------------------------------------------------------------------------------------- opening */

/* Opens the index and locks it until it is closed. Two processes that write one folder would mix their rows. */
static int open_index(fr_features_folder *folder, const char *path) {
    folder->index = fopen(path, "ab");
    if (folder->index && flock(fileno(folder->index), LOCK_EX | LOCK_NB) == 0) return 0;
    return refuse_file(folder, "index.jsonl", errno == EWOULDBLOCK ? "another process writes there" : strerror(errno));
}

int fr_features_open(fr_features_folder *folder, const char *path, const fr_features_kind *kind, bool resumes,
                     size_t most) {
    char kind_path[PATH_MAX], index_path[PATH_MAX], rows_path[PATH_MAX];
    size_t width = kind->layer_count * (size_t)kind->hidden;
    bool there;
    *folder = (fr_features_folder){.path = path};
    if (!place(folder, "features.json", kind_path) || !place(folder, "index.jsonl", index_path) ||
        !place(folder, "rows.bf16", rows_path))
        return fr_bad_input("%.200s...: %s", path, strerror(ENAMETOOLONG));
    if (mkdir(path, S_IRWXU | S_IRWXG | S_IRWXO) != 0 && errno != EEXIST)
        return fr_bad_input("%s: %s", path, strerror(errno));
    /* the folder is examined under the lock, because another process could write between an examination and the lock */
    int code = open_index(folder, index_path);
    if (code) return code;
    struct stat info;
    bool written = fstat(fileno(folder->index), &info) != 0 || info.st_size > 0;
    if (!resumes && (written || access(kind_path, F_OK) == 0 || access(rows_path, F_OK) == 0))
        return fr_bad_input("%s has features already: --resume goes on with them, another folder begins anew", path);
    code = check_kind(folder, kind_path, kind, &there);
    if (!code && !there) code = write_kind(kind_path, kind);
    if (!code) code = keep_whole(folder, index_path, rows_path, width, most);
    folder->half = fr_resize(NULL, width, sizeof *folder->half);
    if (code) return code;
    folder->rows = fopen(rows_path, "ab");
    return folder->rows ? 0 : refuse_file(folder, "rows.bf16", strerror(errno));
}

void fr_features_close(fr_features_folder *folder) {
    if (folder->rows) fclose(folder->rows);
    if (folder->index) fclose(folder->index);
    free(folder->half);
}

/* ---------------------------------------------------------------------------------------------------------- writing */

/* Rounds to the nearest bfloat16, ties to even. The values must be finite. A value that would round to more than the
 * largest bfloat16 becomes infinite, as in IEEE 754. */
static uint16_t bfloat16_of(float value) {
    enum { KEPT = 16 };
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (uint16_t)((bits + 0x7fffu + (bits >> KEPT & 1u)) >> KEPT);
}

fr_status fr_features_take(void *context, const float *values, size_t rows, size_t width) {
    fr_features_folder *folder = context;
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < width; i++) folder->half[i] = bfloat16_of(values[r * width + i]);
        if (fwrite(folder->half, sizeof *folder->half, width, folder->rows) == width) continue;
        snprintf(folder->line, sizeof folder->line, "rows.bf16: %s", strerror(errno));
        return FR_INPUT;
    }
    return FR_OK;
}

/* Ends a text. Its rows are synced to the disk before the line that counts them is written. */
int fr_features_end_text(fr_features_folder *folder, const char *line, size_t rows) {
    if (rows && (fflush(folder->rows) != 0 || fdatasync(fileno(folder->rows)) != 0))
        return refuse_file(folder, "rows.bf16", strerror(errno));
    if (fprintf(folder->index, "%s\n", line) < 0 || fflush(folder->index) != 0)
        return refuse_file(folder, "index.jsonl", strerror(errno));
    folder->row_count += rows;
    folder->texts++;
    return 0;
}
