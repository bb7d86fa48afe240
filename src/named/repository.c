/* Chooses one of a repository's files (repository.h). */
#include "src/named/repository.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file_place.h"
#include "base/text_buffer.h"
#include "formats/checkpoint.h"
#include "formats/gguf_name.h"

enum { DEPTH = 4, TOLD_MAX = 8 };

/* --------------------------------------------------------------------------------------------------------- choosing */

static size_t find_file(const fr_names *names, const char *file) {
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], file) == 0) return i;
    return SIZE_MAX;
}

/* Finds the first model of a type. If `type` is NULL, finds the first model of any type. */
static size_t find_type(const fr_names *names, const char *type) {
    for (size_t i = 0; i < names->count; i++)
        if (fr_gguf_name_of_model(names->items[i]) && (!type || fr_gguf_name_has(names->items[i], type, strlen(type))))
            return i;
    return SIZE_MAX;
}

size_t fr_repository_choose(const fr_names *names, const char *which) {
    static const char *const usual[] = {"Q4_K_M", "Q8_0", NULL};
    size_t found = *which ? find_file(names, which) : SIZE_MAX;
    if (*which) return found != SIZE_MAX ? found : find_type(names, which);
    for (size_t i = 0; i < sizeof usual / sizeof *usual && found == SIZE_MAX; i++) found = find_type(names, usual[i]);
    return found;
}

/* Reads the type at the end of a file's name. It is the word after the last hyphen or dot. */
static bool take_type(const char *name, char *type, size_t size) {
    fr_shard_name shard = fr_shard_name_of(name);
    size_t end = shard.count > 1 ? shard.stem : strlen(name) - strlen(".gguf"), begin = end;
    while (begin && (isalnum((unsigned char)name[begin - 1]) || name[begin - 1] == '_')) begin--;
    if (begin == 0 || begin == end || end - begin >= size || !strchr("-.", name[begin - 1])) return false;
    snprintf(type, size, "%.*s", (int)(end - begin), name + begin);
    for (char *c = type; *c; c++) *c = (char)toupper((unsigned char)*c);
    return true;
}

void fr_repository_which(const fr_names *names, size_t index, char *which, size_t size) {
    if (take_type(names->items[index], which, size) && fr_repository_choose(names, which) == index) return;
    snprintf(which, size, "%s", names->items[index]);
}

fr_status fr_repository_tell(const fr_names *names, fr_found_files *found) {
    fr_text_buffer text = {0};
    size_t count = 0;
    for (size_t i = 0; i < names->count && !found->others; i++) {
        if (!fr_gguf_name_of_model(names->items[i]) || count++ >= TOLD_MAX) continue;
        if (count > 1) fr_text_append_string(&text, ", ");
        fr_text_append_string(&text, names->items[i]);
    }
    if (count == 0) return FR_OK;
    if (count > TOLD_MAX) fr_text_append_string(&text, ", ...");
    size_t length;
    return fr_text_take(&text, "names of files", &found->others, &length);
}

/* ---------------------------------------------------------------------------------------------- a folder of its own */

static bool is_published(const fr_names *names) {
    bool weights = find_file(names, "model.safetensors") != SIZE_MAX ||
                   find_file(names, "model.safetensors.index.json") != SIZE_MAX;
    return weights && find_file(names, "config.json") != SIZE_MAX;
}

/* Returns true for a file of weights. read: count only the kinds of files that forerun reads. */
static bool is_weights(const char *name, bool read) {
    static const char *const endings[] = {".safetensors", ".bin", ".pth"};
    size_t length = strlen(name);
    for (size_t i = 0; i < (read ? 1 : sizeof endings / sizeof *endings); i++) {
        size_t ending = strlen(endings[i]);
        if (length > ending && strcmp(name + length - ending, endings[i]) == 0) return !strchr(name, '/');
    }
    return false;
}

static bool has_weights(const fr_names *names) {
    for (size_t i = 0; i < names->count; i++)
        if (is_weights(names->items[i], false)) return true;
    return false;
}

/* Finds the first vision tower in the same folder as the model. */
static const char *find_tower(const fr_names *names, const char *model) {
    const char *slash = strrchr(model, '/');
    size_t length = slash ? (size_t)(slash - model) + 1 : 0;
    for (size_t i = 0; i < names->count; i++) {
        const char *name = names->items[i];
        bool beside = strncmp(name, model, length) == 0 && !strchr(name + length, '/');
        if (beside && fr_gguf_name(name) && strstr(name + length, "mmproj")) return name;
    }
    return NULL;
}

static fr_status join(const char *folder, const char *name, char **path) {
    *path = fr_path_join(folder, name);
    return *path ? FR_OK : fr_fail_memory("a path", strlen(folder) + strlen(name));
}

static fr_status take_found(const char *folder, const fr_names *names, const char *which, fr_found_files *found) {
    if (!*which && is_published(names)) {
        found->path = strdup(folder);
        return found->path ? FR_OK : fr_fail_memory("a path", strlen(folder));
    }
    size_t index = fr_repository_choose(names, which);
    if (index == SIZE_MAX) return fr_repository_tell(names, found);
    const char *tower = find_tower(names, names->items[index]);
    FR_TRY(join(folder, names->items[index], &found->path));
    return tower ? join(folder, tower, &found->tower) : FR_OK;
}

fr_status fr_repository_find(const char *folder, const char *which, fr_found_files *found) {
    fr_names names;
    FR_TRY(fr_names_files(folder, DEPTH, &names));
    fr_status status = take_found(folder, &names, which, found);
    fr_names_free(&names);
    return status;
}

fr_status fr_repository_find_other(const char *folder, fr_found_files *found) {
    fr_names names;
    FR_TRY(fr_names_files(folder, 0, &names));
    bool other = has_weights(&names);
    fr_names_free(&names);
    if (other) found->path = strdup(folder);
    return !other || found->path ? FR_OK : fr_fail_memory("a path", strlen(folder));
}

/* ---------------------------------------------------------------------------------------------------------- listing */

static uint64_t bytes_of(const char *folder, const char *name) {
    struct stat info;
    char *path = fr_path_join(folder, name);
    bool known = path && stat(path, &info) == 0;
    free(path);
    return known ? (uint64_t)info.st_size : 0;
}

uint64_t fr_repository_bytes(const char *folder, const char *name) {
    fr_shard_name shard = fr_shard_name_of(name);
    uint64_t bytes = 0;
    char *part = strdup(name);
    for (unsigned i = 1; part && i <= shard.count && i <= FR_SHARDS_MAX; i++) {
        fr_shard_name_turn(part, shard, i);
        bytes += bytes_of(folder, part);
    }
    free(part);
    return bytes;
}

static fr_status tell(const char *folder, const fr_names *names, size_t index, const char *repository,
                      const char *store, const fr_found_told *to) {
    char which[2 * FR_NAME_PART], *name = NULL, *path = NULL, *tower_path = NULL;
    const char *file = names->items[index], *tower = find_tower(names, file);
    fr_repository_which(names, index, which, sizeof which);
    bool named = asprintf(&name, "%s:%s", repository, which) >= 0;
    fr_status status = named ? join(folder, file, &path) : fr_fail_memory("a name", strlen(which));
    if (status == FR_OK && tower) status = join(folder, tower, &tower_path);
    fr_found found = {
        .name = name, .path = path, .tower = tower_path, .store = store, .bytes = fr_repository_bytes(folder, file)};
    if (status == FR_OK && !to->told(to->context, &found)) status = fr_fail(FR_ABORTED, "%s: no more", name);
    if (named) free(name);
    free(path);
    free(tower_path);
    return status;
}

static fr_status tell_folder(const char *folder, const fr_names *names, const char *name, const char *store,
                             const fr_found_told *to) {
    bool published = is_published(names);
    fr_found found = {.name = name, .path = folder, .store = store};
    for (size_t i = 0; i < names->count; i++)
        if (is_weights(names->items[i], published)) found.bytes += bytes_of(folder, names->items[i]);
    return to->told(to->context, &found) ? FR_OK : fr_fail(FR_ABORTED, "%s: no more", name);
}

static fr_status tell_all(const char *folder, const fr_names *names, const char *name, const char *store, bool others,
                          const fr_found_told *to) {
    bool other = others && fr_repository_choose(names, "") == SIZE_MAX && has_weights(names);
    if (is_published(names) || other) FR_TRY(tell_folder(folder, names, name, store, to));
    for (size_t i = 0; i < names->count; i++)
        if (fr_gguf_name_of_model(names->items[i])) FR_TRY(tell(folder, names, i, name, store, to));
    return FR_OK;
}

fr_status fr_repository_list(const char *folder, const char *name, const char *store, bool others,
                             const fr_found_told *to) {
    fr_names names;
    FR_TRY(fr_names_files(folder, DEPTH, &names));
    fr_status status = tell_all(folder, &names, name, store, others, to);
    fr_names_free(&names);
    return status;
}
