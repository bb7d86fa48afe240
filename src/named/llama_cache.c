/* Finds models in llama.cpp's own cache, which it used before it adopted Hugging Face's (stores.h).
 *     ORG_NAME_FILE.gguf               a file of a repository; slashes in its name are underscores too
 *     manifest=ORG=NAME=TAG.json       the repository's files for a type: ggufFile and mmprojFile, by "rfilename"
 *     FILE.downloadInProgress          a file whose download is not finished
 * Only a manifest tells which part of a file's name is the name of the repository, so a file without a manifest is
 * listed by its path. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file_place.h"
#include "formats/checkpoint.h"
#include "formats/gguf_name.h"
#include "formats/json.h"
#include "src/named/repository.h"

#define MANIFEST     "manifest="
#define MANIFEST_MAX ((size_t)256 << 10)

static const char store[] = "llama.cpp";

/* Makes ORG_NAME_FILE; the caller frees it. NULL: memory ran out. */
static char *flat_name(const char *org, const char *model, const char *file) {
    char *name;
    if (asprintf(&name, "%s_%s_%s", org, model, file) < 0) return NULL;
    for (char *c = name; *c; c++)
        if (*c == '/') *c = '_';
    return name;
}

/* Makes the flat name of a file that the manifest names; the caller frees it. NULL: the manifest names no such file,
 * or can't be read. */
static char *file_of(const json_t *manifest, const char *key, const char *org, const char *model) {
    const char *file = json_string_value(json_object_get(json_object_get(manifest, key), "rfilename"));
    return file && *file ? flat_name(org, model, file) : NULL;
}

/* Reads a manifest; NULL: there is none. */
static json_t *read_manifest(const char *folder, const char *name) {
    json_t *manifest = NULL;
    char *path = fr_path_join(folder, name);
    bool there = path && fr_file_exists(path) && fr_json_read(path, MANIFEST_MAX, &manifest) == FR_OK;
    free(path);
    return there ? manifest : NULL;
}

static fr_status join(const char *folder, const char *name, char **path) {
    *path = fr_path_join(folder, name);
    return *path ? FR_OK : fr_fail_memory("a path", strlen(folder) + strlen(name));
}

/* ---------------------------------------------------------------------------------------------------------- finding */

/* Finds the files that are listed in the manifest for the type in `name`. */
static fr_status find_listed(const char *folder, const fr_model_name *name, fr_found_files *found) {
    char manifest_name[4 * FR_NAME_PART + 32];
    snprintf(manifest_name, sizeof manifest_name, MANIFEST "%s=%s=%s.json", name->org, name->model,
             *name->which ? name->which : "latest");
    if (strchr(manifest_name, '/')) return FR_OK;
    json_t *manifest = read_manifest(folder, manifest_name);
    char *file = file_of(manifest, "ggufFile", name->org, name->model);
    char *tower = file_of(manifest, "mmprojFile", name->org, name->model);
    fr_status status = file ? join(folder, file, &found->path) : FR_OK;
    if (status == FR_OK && tower) status = join(folder, tower, &found->tower);
    free(file);
    free(tower);
    json_decref(manifest);
    if (found->path && !fr_file_is_reached(found->path)) fr_found_files_free(found);
    return status;
}

/* Lists the files of a repository. The repository's name is the prefix of their names, and is left out. */
static fr_status take_files(const fr_names *all, const char *prefix, fr_names *files) {
    size_t length = strlen(prefix);
    *files = (fr_names){0};
    for (size_t i = 0; i < all->count; i++)
        if (strncmp(all->items[i], prefix, length) == 0) FR_TRY(fr_names_add(files, all->items[i] + length));
    return FR_OK;
}

static fr_status choose(const char *folder, const char *prefix, const fr_names *files, const char *which,
                        fr_found_files *found) {
    size_t index = fr_repository_choose(files, which);
    if (index == SIZE_MAX) return fr_repository_tell(files, found);
    char *name;
    if (asprintf(&name, "%s%s", prefix, files->items[index]) < 0) return fr_fail_memory("a name", strlen(prefix));
    fr_status status = join(folder, name, &found->path);
    free(name);
    return status;
}

fr_status fr_llama_find(const char *folder, const fr_model_name *name, fr_found_files *found) {
    fr_names all, files = {0};
    FR_TRY(find_listed(folder, name, found));
    if (found->path) return FR_OK;
    FR_TRY(fr_names_files(folder, 0, &all));
    char *prefix = flat_name(name->org, name->model, ""), *which = strdup(name->which);
    for (char *c = which; c && *c; c++)
        if (*c == '/') *c = '_';
    fr_status status = prefix && which ? take_files(&all, prefix, &files) : fr_fail_memory("a name", FR_NAME_PART);
    if (status == FR_OK) status = choose(folder, prefix, &files, which, found);
    free(prefix);
    free(which);
    fr_names_free(&files);
    fr_names_free(&all);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- listing */

/* Reads the name "manifest=ORG=NAME=TAG.json". */
static bool read_manifest_name(const char *text, fr_model_name *name) {
    char copy[4 * FR_NAME_PART];
    size_t length = strlen(text), ending = strlen(".json");
    if (strncmp(text, MANIFEST, strlen(MANIFEST)) != 0 || length >= sizeof copy || length < ending ||
        strcmp(text + length - ending, ".json") != 0)
        return false;
    snprintf(copy, sizeof copy, "%.*s", (int)(length - ending - strlen(MANIFEST)), text + strlen(MANIFEST));
    char *first = strchr(copy, '='), *second = first ? strchr(first + 1, '=') : NULL;
    if (!second) return false;
    *first = '/';
    *second = ':';
    return fr_model_name_read(copy, name) && !name->ollama;
}

static fr_status tell(const char *folder, const char *name, const char *file, const char *tower,
                      const fr_found_told *to) {
    char *path = fr_path_join(folder, file), *tower_path = tower ? fr_path_join(folder, tower) : NULL;
    if (!path || (tower && !tower_path)) {
        free(path);
        free(tower_path);
        return fr_fail_memory("a path", strlen(folder) + strlen(file));
    }
    fr_found found = {.name = name ? name : path,
                      .path = path,
                      .tower = tower_path,
                      .store = store,
                      .bytes = fr_repository_bytes(folder, file)};
    bool more = !fr_file_is_reached(path) || to->told(to->context, &found);
    free(path);
    free(tower_path);
    return more ? FR_OK : fr_fail(FR_ABORTED, "%s: no more", file);
}

/* Lists the model that a manifest names. *file: its flat name, which the caller frees. */
static fr_status list_manifest(const char *folder, const char *manifest_name, const fr_found_told *to, char **file) {
    fr_model_name name;
    char shown[4 * FR_NAME_PART];
    *file = NULL;
    if (!read_manifest_name(manifest_name, &name)) return FR_OK;
    json_t *manifest = read_manifest(folder, manifest_name);
    *file = file_of(manifest, "ggufFile", name.org, name.model);
    char *tower = file_of(manifest, "mmprojFile", name.org, name.model);
    json_decref(manifest);
    snprintf(shown, sizeof shown, "%s/%s%s%s", name.org, name.model, strcmp(name.which, "latest") ? ":" : "",
             strcmp(name.which, "latest") ? name.which : "");
    fr_status status = *file ? tell(folder, shown, *file, tower, to) : FR_OK;
    free(tower);
    return status;
}

static bool lists(const fr_names *names, const char *name) {
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], name) == 0) return true;
    return false;
}

static fr_status list_all(const char *folder, const fr_names *all, fr_names *told, const fr_found_told *to) {
    for (size_t i = 0; i < all->count; i++) {
        char *file;
        fr_status status = list_manifest(folder, all->items[i], to, &file);
        if (status == FR_OK && file) status = fr_names_add(told, file);
        free(file);
        FR_TRY(status);
    }
    for (size_t i = 0; i < all->count; i++)
        if (fr_gguf_name_of_model(all->items[i]) && !lists(told, all->items[i]))
            FR_TRY(tell(folder, NULL, all->items[i], NULL, to));
    return FR_OK;
}

fr_status fr_llama_list(const char *folder, const fr_found_told *to) {
    fr_names all, told = {0};
    FR_TRY(fr_names_files(folder, 0, &all));
    fr_status status = list_all(folder, &all, &told, to);
    fr_names_free(&told);
    fr_names_free(&all);
    return status;
}
