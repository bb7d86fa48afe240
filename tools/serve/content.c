/* Lists the files of a model and hashes all of them (content.h). */
#include "tools/serve/content.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/output.h"
#include "tools/serve/content_file.h"

/* A list of files in one folder, by name. */
typedef struct names {
    char *folder; /* ends with a slash; "": the current folder */
    char **items;
    size_t count;
} names;

static void add_name(names *all, const char *name) {
    all->items = fr_resize(all->items, all->count + 1, sizeof *all->items);
    size_t size = strlen(name) + 1;
    all->items[all->count] = memcpy(fr_resize(NULL, size, 1), name, size);
    all->count++;
}

static void free_names(names *all) {
    for (size_t i = 0; i < all->count; i++) free(all->items[i]);
    free(all->items);
    free(all->folder);
}

/* Gives the path of a file; the caller frees it. */
static char *path_of(const names *all, const char *name) {
    size_t size = strlen(all->folder) + strlen(name) + 1;
    char *path = fr_resize(NULL, size, 1);
    snprintf(path, size, "%s%s", all->folder, name);
    return path;
}

static bool is_there(const names *all, const char *name) {
    char *path = path_of(all, name);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

/* ------------------------------------------------------------------------------------------------------------- GGUF */

#define SHARD_SUFFIX        "-%05u-of-%05u.gguf"
#define SHARD_SUFFIX_LENGTH 20
#define SHARDS_MAX          1024

/* Gives the number of shards that a shard's name contains. Any other name gives 1. *stem: the length of the beginning
 * of the name that all shards share. */
static unsigned count_shards(const char *name, size_t *stem) {
    unsigned number, count;
    char again[2 * SHARD_SUFFIX_LENGTH];
    size_t length = strlen(name);
    if (length <= SHARD_SUFFIX_LENGTH) return 1;
    *stem = length - SHARD_SUFFIX_LENGTH;
    if (sscanf(name + *stem, "-%5u-of-%5u.gguf", &number, &count) != 2) return 1;
    snprintf(again, sizeof again, SHARD_SUFFIX, number, count);
    return strcmp(again, name + *stem) == 0 && count <= SHARDS_MAX ? count : 1;
}

/* Gets one shard of a model and lists all shards. If other shards are missing, they were merged into this shard's file,
 * which is then the whole model. */
static void list_shards(names *all, const char *name) {
    size_t stem = 0;
    unsigned count = count_shards(name, &stem);
    bool whole = true;
    size_t size = stem + SHARD_SUFFIX_LENGTH + 1;
    char *shard = fr_resize(NULL, size, 1);
    for (unsigned i = 1; count > 1 && i <= count; i++) {
        snprintf(shard, size, "%.*s" SHARD_SUFFIX, (int)stem, name, i, count);
        add_name(all, shard);
        whole = whole && is_there(all, shard);
    }
    free(shard);
    if (count > 1 && whole) return;
    while (all->count > 0) free(all->items[--all->count]);
    add_name(all, name);
}

/* ----------------------------------------------------------------------------------------------------------- folder */

/* Lists the weights of a folder. If the folder has model.safetensors, that is the only file. Otherwise each file that
 * the index names is listed once. */
static bool list_weights(const fr_content_run *run, names *all) {
    if (is_there(all, "model.safetensors")) {
        add_name(all, "model.safetensors");
        return true;
    }
    char *path = path_of(all, "model.safetensors.index.json");
    json_error_t error;
    json_t *index = json_load_file(path, 0, &error), *file;
    const char *tensor, *name;
    json_t *seen = json_object();
    json_object_foreach (json_object_get(index, "weight_map"), tensor, file) {
        name = json_string_value(file);
        if (name && !strchr(name, '/')) json_object_set_new(seen, name, json_true());
    }
    json_object_foreach (seen, name, file) add_name(all, name);
    bool any = json_object_size(seen) > 0;
    json_decref(seen);
    json_decref(index);
    if (!any) fr_content_fail(run, "%s: no list of weights", path);
    free(path);
    return any;
}

static int by_bytes(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool list_folder(const fr_content_run *run, names *all) {
    static const char *const beside[] = {"config.json",         "generation_config.json", "hf_quant_config.json",
                                         "tokenizer.json",      "tokenizer_config.json",  "added_tokens.json",
                                         "chat_template.jinja", "special_tokens_map.json"};
    for (size_t i = 0; i < sizeof beside / sizeof *beside; i++)
        if (is_there(all, beside[i])) add_name(all, beside[i]);
    if (!list_weights(run, all)) return false;
    qsort(all->items, all->count, sizeof *all->items, by_bytes);
    return true;
}

/* -------------------------------------------------------------------------------------------------------- all files */

/* Lists the files of the model at a path. */
static bool list_files(const fr_content_run *run, const char *path, names *all) {
    struct stat info;
    if (stat(path, &info) != 0) return fr_content_fail(run, "%s: %s", path, strerror(errno));
    bool folder = S_ISDIR(info.st_mode);
    const char *slash = strrchr(path, '/');
    size_t length = folder ? strlen(path) : slash ? (size_t)(slash - path) + 1 : 0;
    all->folder = fr_resize(NULL, length + 2, 1);
    snprintf(all->folder, length + 2, "%.*s%s", (int)length, path, folder ? "/" : "");
    if (folder) return list_folder(run, all);
    list_shards(all, slash ? slash + 1 : path);
    return true;
}

/* Writes a line for each file in the form of sha256sum. A name that contains a line feed is refused, because its line
 * could be mistaken for two lines. */
static bool hash_lines(const fr_content_run *run, const names *all, FILE *lines) {
    for (size_t i = 0; i < all->count; i++) {
        char hash[FR_CONTENT_SIZE], *path = path_of(all, all->items[i]);
        bool done = !strpbrk(all->items[i], "\\\n") || fr_content_fail(run, "%s: no plain name", path);
        done = done && fr_content_file(run, path, hash);
        free(path);
        if (!done) return false;
        fprintf(lines, "%s  %s\n", hash, all->items[i]);
    }
    return true;
}

static bool hash_all(const fr_content_run *run, const names *all, char hash[FR_CONTENT_SIZE]) {
    char *text = NULL;
    size_t length = 0;
    FILE *lines = open_memstream(&text, &length);
    bool done = (lines || fr_content_fail(run, "no memory")) && hash_lines(run, all, lines);
    if (lines) fclose(lines);
    done = done && fr_content_bytes(run, text, length, hash);
    free(text);
    return done;
}

bool fr_content_hash(const char *path, char hash[FR_CONTENT_SIZE], char *error, bool (*stop)(void *), void *context) {
    const fr_content_run run = {stop, context, error};
    names all = {0};
    error[0] = 0;
    bool done = list_files(&run, path, &all);
    if (done && all.count == 1) {
        char *only = path_of(&all, all.items[0]);
        done = fr_content_file(&run, only, hash);
        free(only);
    } else if (done) {
        done = hash_all(&run, &all, hash);
    }
    free_names(&all);
    return done;
}
