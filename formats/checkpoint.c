/* Opens a model on disk: its configuration and its weight files; checks that shards and index agree.
 *
 * In: the name of a folder or GGUF file. Out: an fr_checkpoint, or one line that says what is wrong with it. */
#include "formats/checkpoint.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file_place.h"
#include "base/sizes.h"
#include "base/text_buffer.h"
#include "formats/download.h"
#include "formats/gguf_folder.h"
#include "formats/gguf_name.h"
#include "formats/safetensors.h"
#include "formats/storage.h"

#define CONFIG_MAX  ((size_t)16 << 20)
#define INDEX_MAX   ((size_t)64 << 20)
#define MISSING_MAX 4 /* the largest number of missing parts that an error line names */
#define CONTENTS    "config.json and model.safetensors"

static fr_status join(const char *folder, const char *name, char **path) {
    *path = fr_path_join(folder, name);
    return *path ? FR_OK : fr_fail_memory("a path", strlen(folder) + strlen(name) + 2);
}

static fr_status check_folder(const char *folder) {
    struct stat info;
    bool there = stat(folder, &info) == 0;
    if (!there) FR_TRY(fr_download_check(folder));
    if (!there && stat(folder, &info) != 0)
        return fr_fail(FR_INPUT, "%s: %m: expected a GGUF file, or a folder with " CONTENTS, folder);
    if (!S_ISDIR(info.st_mode))
        return fr_fail(FR_INPUT, "%s is not a folder: give a GGUF file, or the folder that has " CONTENTS, folder);
    return FR_OK;
}

/* Reads an object from a JSON file of the folder; NULL if the file is missing. */
static fr_status read_object(const char *folder, const char *name, size_t limit, json_t **object) {
    *object = NULL;
    char *path;
    FR_TRY(join(folder, name, &path));
    fr_status status = fr_file_exists(path) ? fr_json_read(path, limit, object) : FR_OK;
    if (*object && !json_is_object(*object)) {
        json_decref(*object);
        *object = NULL;
        status = fr_fail(FR_INPUT, "%s: not a JSON object", path);
    }
    free(path);
    return status;
}

static fr_status read_configs(fr_checkpoint *checkpoint, const char *folder) {
    FR_TRY(check_folder(folder));
    checkpoint->path = strdup(folder);
    if (!checkpoint->path) return fr_fail_memory("a path", strlen(folder) + 1);
    FR_TRY(read_object(folder, "config.json", CONFIG_MAX, &checkpoint->config));
    if (!checkpoint->config)
        return fr_fail(FR_INPUT, "%s has no config.json: expected a folder with " CONTENTS, folder);
    FR_TRY(read_object(folder, "generation_config.json", CONFIG_MAX, &checkpoint->generation));
    static const char *const described[] = {"hf_quant_config.json", "quantize_config.json", "quant_config.json"};
    for (size_t i = 0; i < sizeof described / sizeof *described && !checkpoint->quantization; i++) {
        checkpoint->quantization_file = described[i];
        FR_TRY(read_object(folder, described[i], CONFIG_MAX, &checkpoint->quantization));
    }
    return read_object(folder, FR_POOLING_FILE, CONFIG_MAX, &checkpoint->pooling);
}

/* Maps the folder's file `name`, and appends it to the checkpoint's files. */
static fr_status add_map(fr_checkpoint *checkpoint, const char *folder, const char *name, bool use_mmap) {
    size_t file = checkpoint->file_count;
    char *copy = strdup(name), *path;
    if (!copy) return fr_fail_memory("a file name", strlen(name) + 1);
    checkpoint->file_names[file] = copy;
    checkpoint->file_count++; /* from here on fr_checkpoint_close frees the name and the map */
    FR_TRY(join(folder, name, &path));
    fr_status status = fr_download_check(path);
    if (status == FR_OK) status = fr_map_open(&checkpoint->files[file], path, use_mmap);
    free(path);
    return status;
}

static fr_status add_file(fr_checkpoint *checkpoint, const char *name, bool use_mmap) {
    FR_TRY(add_map(checkpoint, checkpoint->path, name, use_mmap));
    size_t file = checkpoint->file_count - 1;
    return fr_safetensors_read(&checkpoint->files[file], (uint32_t)file, &checkpoint->tensors, &checkpoint->unread);
}

static fr_status reserve_files(fr_checkpoint *checkpoint, size_t count) {
    checkpoint->files = calloc(count, sizeof *checkpoint->files);
    checkpoint->file_names = calloc(count, sizeof *checkpoint->file_names);
    if (checkpoint->files && checkpoint->file_names) return FR_OK;
    return fr_fail_memory("a list of files", count * (sizeof *checkpoint->files + sizeof *checkpoint->file_names));
}

static bool is_plain_name(const char *name) {
    return name[0] && name[0] != '.' && !strchr(name, '/');
}

/* Collects the file names that the index contains, in the order of their first appearance. The names are stored as keys
 * of an object, so that each name is stored once. */
static fr_status collect_shards(const char *folder, const json_t *weight_map, json_t *shards) {
    const char *tensor;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)weight_map, tensor, value) {
        const char *name = json_string_value(value);
        if (!name || !is_plain_name(name))
            return fr_fail(FR_INPUT, "%s: index: tensor %s: \"%s\" is not a plain file name", folder, tensor,
                           name ? name : "(not a string)");
        if (json_object_set_new(shards, name, json_true()) != 0) return fr_fail_memory("shard names", strlen(name));
        if (json_object_size(shards) > FR_SHARDS_MAX)
            return fr_fail(FR_INPUT, "%s: index: more than %d shards", folder, FR_SHARDS_MAX);
    }
    if (json_object_size(shards) == 0) return fr_fail(FR_INPUT, "%s: index: weight_map is empty", folder);
    return FR_OK;
}

static fr_status add_shards(fr_checkpoint *checkpoint, json_t *shards, bool use_mmap) {
    FR_TRY(reserve_files(checkpoint, json_object_size(shards)));
    const char *name;
    json_t *unused;
    json_object_foreach (shards, name, unused) FR_TRY(add_file(checkpoint, name, use_mmap));
    return FR_OK;
}

/* Checks that the index lists every tensor of the files, with the name of the file that contains it. */
static fr_status check_listed(const fr_checkpoint *checkpoint, const fr_tensors *tensors, const json_t *weight_map) {
    for (size_t i = 0; i < tensors->count; i++) {
        const fr_tensor *tensor = &tensors->items[i];
        const char *file = checkpoint->file_names[tensor->file];
        const char *listed = json_string_value(json_object_get(weight_map, tensor->name));
        if (!listed)
            return fr_fail(FR_INPUT, "%s: tensor %s is in %s, but not in the index", checkpoint->path, tensor->name,
                           file);
        if (strcmp(listed, file) != 0)
            return fr_fail(FR_INPUT, "%s: tensor %s is in %s, and the index says %s", checkpoint->path, tensor->name,
                           file, listed);
    }
    return FR_OK;
}

/* Checks that every tensor of the index is in one of the files. It is then also in the file that the index names,
 * because check_listed has compared the names of the files. */
static fr_status check_present(const fr_checkpoint *checkpoint, const json_t *weight_map) {
    const char *name;
    json_t *file;
    json_object_foreach ((json_t *)(uintptr_t)weight_map, name, file) {
        if (!fr_tensors_find(&checkpoint->tensors, name) && !fr_tensors_find(&checkpoint->unread, name))
            return fr_fail(FR_INPUT, "%s: tensor %s is not in %s, where the index has it", checkpoint->path, name,
                           json_string_value(file));
    }
    return FR_OK;
}

static fr_status read_shards(fr_checkpoint *checkpoint, const json_t *index, json_t *shards, bool use_mmap) {
    const json_t *weight_map = json_object_get(index, "weight_map");
    if (!json_is_object(weight_map))
        return fr_fail(FR_INPUT, "%s: index: \"weight_map\" is not an object", checkpoint->path);
    FR_TRY(collect_shards(checkpoint->path, weight_map, shards));
    FR_TRY(add_shards(checkpoint, shards, use_mmap));
    FR_TRY(check_listed(checkpoint, &checkpoint->tensors, weight_map));
    FR_TRY(check_listed(checkpoint, &checkpoint->unread, weight_map));
    return check_present(checkpoint, weight_map);
}

static fr_status read_sharded(fr_checkpoint *checkpoint, bool use_mmap) {
    json_t *index;
    FR_TRY(read_object(checkpoint->path, "model.safetensors.index.json", INDEX_MAX, &index));
    if (!index)
        return fr_fail(FR_INPUT, "%s has neither model.safetensors nor model.safetensors.index.json", checkpoint->path);
    json_t *shards = json_object();
    fr_status status = shards ? read_shards(checkpoint, index, shards, use_mmap) : fr_fail_memory("shard names", 0);
    json_decref(shards);
    json_decref(index);
    return status;
}

/* Maps the weight files of a folder. If the folder has both a single file and shards, the single file is read, as in
 * transformers. */
static fr_status read_weights(fr_checkpoint *checkpoint, bool use_mmap) {
    char *path;
    FR_TRY(join(checkpoint->path, "model.safetensors", &path));
    bool single = fr_file_exists(path);
    free(path);
    if (!single) return read_sharded(checkpoint, use_mmap);
    FR_TRY(reserve_files(checkpoint, 1));
    return add_file(checkpoint, "model.safetensors", use_mmap);
}

fr_status fr_checkpoint_check(const fr_checkpoint *checkpoint) {
    for (size_t i = 0; i < checkpoint->file_count; i++) FR_TRY(fr_map_check(&checkpoint->files[i]));
    return FR_OK;
}

/* Releases pages of the first file only. The other shards have so little metadata that the call would not pay. */
void fr_checkpoint_release_head(const fr_checkpoint *checkpoint) {
    const fr_map *map = checkpoint->files;
    if (checkpoint->file_count == 0 || map->fd >= 0) return;
    size_t before = map->size;
    for (size_t i = 0; i < checkpoint->tensors.count; i++) {
        const fr_tensor *tensor = &checkpoint->tensors.items[i];
        if (tensor->file == 0) before = fr_smaller(before, (size_t)((const uint8_t *)tensor->data - map->bytes));
    }
    fr_map_release(map, 0, before);
}

fr_status fr_checkpoint_open_config(fr_checkpoint *checkpoint, const char *folder) {
    *checkpoint = (fr_checkpoint){0};
    fr_status status = read_configs(checkpoint, folder);
    if (status != FR_OK) fr_checkpoint_close(checkpoint);
    return status;
}

/* ------------------------------------------------------------------------------------------------------------- GGUF */

/* Gives the number of shards that the metadata states. If the key is missing or 0, the number is 1, because
 * llama-gguf-split leaves a 0 in a file that it has merged. */
static fr_status count_shards(const fr_gguf *gguf, int64_t *count) {
    FR_TRY(fr_gguf_int(gguf, "split.count", 0, UINT16_MAX, 1, count));
    if (*count == 0) *count = 1;
    return FR_OK;
}

/* Checks that a shard's metadata and its file name state the same shard number and the same number of shards. */
static fr_status check_shard(const fr_gguf *gguf, size_t number, size_t count) {
    int64_t own_number, own_count;
    FR_TRY(count_shards(gguf, &own_count));
    FR_TRY(fr_gguf_int(gguf, "split.no", 0, UINT16_MAX, 0, &own_number));
    if (own_count == 1 && count == 1) return FR_OK;
    if ((size_t)own_count == count && (size_t)own_number == number) return FR_OK;
    return fr_fail(FR_INPUT, "%s: it is shard %lld of %lld, and its name says %zu of %zu", gguf->path,
                   (long long)own_number + 1, (long long)own_count, number + 1, count);
}

/* Maps the next shard and reads it; only the first shard's metadata is kept. */
static fr_status add_shard(fr_checkpoint *checkpoint, const char *folder, const char *name, size_t count,
                           bool use_mmap) {
    size_t file = checkpoint->file_count;
    FR_TRY(add_map(checkpoint, folder, name, use_mmap));
    fr_gguf later, *gguf = file == 0 ? checkpoint->gguf : &later;
    FR_TRY(fr_gguf_read(gguf, &checkpoint->files[file], (uint32_t)file, &checkpoint->tensors, &checkpoint->unread));
    fr_status status = check_shard(gguf, file, count);
    if (gguf == &later) fr_gguf_close(&later);
    return status;
}

/* Sets *whole if the file is a complete model although its name is that of a shard. Files merged from shards often keep
 * the first shard's name. */
static fr_status read_whether_whole(const char *path, bool *whole) {
    fr_map map;
    fr_gguf gguf;
    fr_tensors tensors = {0}, unread = {0};
    int64_t count = 1;
    FR_TRY(fr_map_open(&map, path, true));
    fr_status status = fr_gguf_read(&gguf, &map, 0, &tensors, &unread);
    if (status == FR_OK) {
        status = count_shards(&gguf, &count);
        fr_gguf_close(&gguf);
    }
    fr_tensors_free(&tensors);
    fr_tensors_free(&unread);
    fr_map_close(&map);
    *whole = count == 1;
    return status;
}

/* Counts the missing parts, and lists as many of them as an error line can name. */
static fr_status list_missing(const char *folder, char *name, fr_shard_name shard, fr_text_buffer *names,
                              size_t *count) {
    for (unsigned i = 1; i <= shard.count; i++) {
        char *part;
        fr_shard_name_turn(name, shard, i);
        FR_TRY(join(folder, name, &part));
        bool there = fr_file_exists(part);
        fr_status status = there ? FR_OK : fr_download_check(part);
        free(part);
        FR_TRY(status);
        if (there || (*count)++ >= MISSING_MAX) continue;
        fr_text_append_string(names, *count == 1 ? "" : ", ");
        fr_text_append_string(names, name);
    }
    return fr_text_check(names, folder);
}

static fr_status check_parts(const char *path, const char *folder, char *name, fr_shard_name shard) {
    fr_text_buffer names = {0};
    size_t count = 0;
    fr_status status = list_missing(folder, name, shard, &names, &count);
    if (status == FR_OK && count)
        status = fr_fail(FR_INPUT, "%s: %zu of its %u parts %s missing: %s%s", path, count, shard.count,
                         count == 1 ? "is" : "are", names.bytes, count > MISSING_MAX ? ", ..." : "");
    fr_text_free(&names);
    return status;
}

static fr_status add_gguf_files(fr_checkpoint *checkpoint, const char *folder, char *name, bool use_mmap) {
    fr_shard_name shard = fr_shard_name_of(name);
    bool whole = shard.number == 1 && shard.count == 1;
    if (!whole) FR_TRY(read_whether_whole(checkpoint->path, &whole));
    if (whole) shard = (fr_shard_name){.number = 1, .count = 1};
    if (shard.number < 1 || shard.number > shard.count || shard.count > FR_SHARDS_MAX)
        return fr_fail(FR_INPUT, "%s: no name for a shard: 1 to %d of them are read", checkpoint->path, FR_SHARDS_MAX);
    if (shard.count > 1) FR_TRY(check_parts(checkpoint->path, folder, name, shard));
    FR_TRY(reserve_files(checkpoint, shard.count));
    for (unsigned i = 1; i <= shard.count; i++) {
        fr_shard_name_turn(name, shard, i);
        FR_TRY(add_shard(checkpoint, folder, name, shard.count, use_mmap));
    }
    int64_t tensors = (int64_t)(checkpoint->tensors.count + checkpoint->unread.count), listed;
    FR_TRY(fr_gguf_int(checkpoint->gguf, "split.tensors.count", 0, INT64_MAX, tensors, &listed));
    if (listed == tensors || shard.count == 1)
        return fr_rotation_set_read(checkpoint->gguf, &checkpoint->tensors, &checkpoint->rotations);
    return fr_fail(FR_INPUT, "%s: its shards have %lld tensors, and key split.tensors.count is %lld", checkpoint->path,
                   (long long)tensors, (long long)listed);
}

static fr_status open_gguf(fr_checkpoint *checkpoint, const char *path, bool use_mmap) {
    const char *slash = strrchr(path, '/');
    char *folder = slash ? strndup(path, (size_t)(slash - path)) : strdup(".");
    char *name = strdup(slash ? slash + 1 : path);
    checkpoint->path = strdup(path);
    checkpoint->gguf = calloc(1, sizeof *checkpoint->gguf);
    bool there = checkpoint->path && checkpoint->gguf && folder && name;
    fr_status status =
        there ? add_gguf_files(checkpoint, folder, name, use_mmap) : fr_fail_memory("a path", strlen(path));
    free(folder);
    free(name);
    return status;
}

/* Reads the rotation of a folder's weights. The file has the name that config.json gives as hadamard_config. If
 * config.json gives no name, but its model type begins with prism_hadamard, the file is hadamard.json. */
static fr_status read_rotation(fr_checkpoint *checkpoint) {
    const char *type = json_string_value(json_object_get(checkpoint->config, "model_type")), *name = NULL;
    bool rotated = type && strncmp(type, "prism_hadamard", strlen("prism_hadamard")) == 0;
    json_t *keys;
    char *path;
    FR_TRY(fr_json_text(checkpoint->config, "hadamard_config", checkpoint->path, &name));
    if (!name && !rotated) return FR_OK;
    if (!name) name = "hadamard.json";
    if (!is_plain_name(name))
        return fr_fail(FR_INPUT, "%s: hadamard_config is no name of a file in the folder", checkpoint->path);
    FR_TRY(read_object(checkpoint->path, name, CONFIG_MAX, &keys));
    if (!keys) return fr_fail(FR_INPUT, "%s: its weights are rotated, and %s is missing", checkpoint->path, name);
    fr_status status = join(checkpoint->path, name, &path);
    if (status == FR_OK) {
        status = fr_rotation_set_read_published(keys, path, &checkpoint->tensors, &checkpoint->rotations);
        free(path);
    }
    json_decref(keys);
    return status;
}

static fr_status open_folder(fr_checkpoint *checkpoint, const char *path, bool use_mmap) {
    FR_TRY(read_configs(checkpoint, path));
    FR_TRY(read_weights(checkpoint, use_mmap));
    FR_TRY(fr_storage_read(checkpoint));
    return read_rotation(checkpoint);
}

/* Refuses a path that is one file of a published folder; the error names the folder to open instead. */
static fr_status refuse_part(const char *path) {
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    if (!dot || (strcmp(dot, ".safetensors") != 0 && strcmp(dot, ".json") != 0)) return FR_OK;
    return fr_fail(FR_INPUT, "%s is a part of a model: give the folder that it is in, %.*s", path,
                   slash ? (int)(slash - path) + (slash == path) : 1, slash ? path : ".");
}

fr_status fr_checkpoint_open(fr_checkpoint *checkpoint, const char *path, bool use_mmap) {
    char *place;
    struct stat info;
    *checkpoint = (fr_checkpoint){0};
    FR_TRY(fr_gguf_folder_place(path, &place));
    bool file = stat(place, &info) == 0 && S_ISREG(info.st_mode);
    fr_status status = file ? refuse_part(place) : FR_OK;
    if (status == FR_OK) status = (file ? open_gguf : open_folder)(checkpoint, place, use_mmap);
    if (status != FR_OK) fr_checkpoint_close(checkpoint);
    free(place);
    return status;
}

static fr_status open_bytes(fr_checkpoint *checkpoint, const void *bytes, size_t size, const char *name) {
    checkpoint->path = strdup(name);
    checkpoint->gguf = calloc(1, sizeof *checkpoint->gguf);
    if (!checkpoint->path || !checkpoint->gguf) return fr_fail_memory("a model in memory", strlen(name));
    FR_TRY(reserve_files(checkpoint, 1));
    checkpoint->file_count = 1;
    FR_TRY(fr_map_lend(&checkpoint->files[0], bytes, size, name));
    checkpoint->file_names[0] = strdup(name);
    if (!checkpoint->file_names[0]) return fr_fail_memory("a model in memory", strlen(name));
    FR_TRY(fr_gguf_read(checkpoint->gguf, &checkpoint->files[0], 0, &checkpoint->tensors, &checkpoint->unread));
    FR_TRY(check_shard(checkpoint->gguf, 0, 1));
    return fr_rotation_set_read(checkpoint->gguf, &checkpoint->tensors, &checkpoint->rotations);
}

fr_status fr_checkpoint_open_bytes(fr_checkpoint *checkpoint, const void *bytes, size_t size, const char *name) {
    *checkpoint = (fr_checkpoint){0};
    fr_status status = open_bytes(checkpoint, bytes, size, name);
    if (status != FR_OK) fr_checkpoint_close(checkpoint);
    return status;
}

fr_status fr_checkpoint_tensor(const fr_checkpoint *checkpoint, const char *name, const fr_tensor **tensor) {
    *tensor = fr_tensors_find(&checkpoint->tensors, name);
    if (*tensor) return FR_OK;
    const fr_tensor *unread = fr_tensors_find(&checkpoint->unread, name);
    if (unread)
        return fr_fail(FR_INPUT, "%s: tensor %s is of type %s, which is not read", checkpoint->path, name,
                       unread->type_name);
    return fr_fail(FR_INPUT, "%s: tensor %s is missing", checkpoint->path, name);
}

void fr_checkpoint_close(fr_checkpoint *checkpoint) {
    fr_tensors_free(&checkpoint->tensors);
    fr_tensors_free(&checkpoint->unread);
    fr_tensors_free(&checkpoint->parts);
    free(checkpoint->storages);
    for (size_t i = 0; i < checkpoint->file_count; i++) {
        fr_map_close(&checkpoint->files[i]);
        free(checkpoint->file_names[i]);
    }
    free(checkpoint->files);
    free(checkpoint->file_names);
    if (checkpoint->gguf) fr_gguf_close(checkpoint->gguf);
    free(checkpoint->gguf);
    fr_rotation_set_free(checkpoint->rotations);
    json_decref(checkpoint->config);
    json_decref(checkpoint->generation);
    json_decref(checkpoint->quantization);
    json_decref(checkpoint->pooling);
    free(checkpoint->path);
    *checkpoint = (fr_checkpoint){0};
}
