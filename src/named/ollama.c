/* Finds models in ollama's store (stores.h).
 *     manifests/HOST/NAMESPACE/NAME/TAG    JSON: a list of layers, each with its mediaType, digest and size
 *     blobs/sha256-DIGEST                  their contents; sha256-DIGEST-partial during a download
 * A model is one layer, a GGUF file, and a vision tower another one. Template, parameters and system prompt are layers
 * too, in ollama's own forms; they are ignored, because the GGUF file has a template itself. An adapter is refused,
 * because the weights without it are another model. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file_place.h"
#include "formats/checkpoint.h"
#include "formats/json.h"
#include "src/named/names.h"
#include "src/named/stores.h"

#define MANIFEST_MAX ((size_t)256 << 10)
#define LAYERS_MAX   64
#define MEDIA        "application/vnd.ollama.image."
#define REGISTRY     "registry.ollama.ai"
#define LIBRARY      "library"

enum { DIGEST = 64 };

/* Makes the path of a layer's blob; the caller frees it. A digest in another form than sha256:DIGITS is refused,
 * because it could lead to a file outside of the folder. */
static fr_status blob_of(const char *folder, const char *where, const json_t *layer, char **path) {
    const char *digest = json_string_value(json_object_get(layer, "digest"));
    *path = NULL;
    if (!digest || strncmp(digest, "sha256:", 7) != 0 || strlen(digest + 7) != DIGEST ||
        strspn(digest + 7, "0123456789abcdef") != DIGEST)
        return fr_fail(FR_INPUT, "%s: a layer's digest is not sha256: and %d hexadecimal digits", where, DIGEST);
    if (asprintf(path, "%s/blobs/sha256-%s", folder, digest + 7) >= 0) return FR_OK;
    *path = NULL;
    return fr_fail_memory("a path", strlen(folder));
}

/* Checks that a blob has as many bytes as the manifest says. */
static fr_status check_blob(const char *path, const json_t *layer) {
    struct stat info;
    json_int_t size = json_integer_value(json_object_get(layer, "size"));
    if (stat(path, &info) != 0) return fr_fail(FR_INPUT, "%s: its download is not finished: it is not there", path);
    if ((json_int_t)info.st_size >= size) return FR_OK;
    return fr_fail(FR_INPUT, "%s: its download is not finished: %lld of %lld bytes are there", path,
                   (long long)info.st_size, (long long)size);
}

static fr_status take_layer(const char *folder, const char *where, const json_t *layer, fr_found_files *found) {
    const char *media = json_string_value(json_object_get(layer, "mediaType"));
    if (!media || strncmp(media, MEDIA, strlen(MEDIA)) != 0) return FR_OK;
    const char *kind = media + strlen(MEDIA);
    if (strcmp(kind, "adapter") == 0) return fr_fail(FR_UNBUILT, "%s: an adapter (LoRA) is not built yet", where);
    if (strcmp(kind, "tensor") == 0)
        return fr_fail(FR_UNBUILT, "%s: weights in layers of single tensors are not built yet", where);
    bool model = strcmp(kind, "model") == 0, tower = strcmp(kind, "projector") == 0;
    if (!model && !tower) return FR_OK;
    char **place = model ? &found->path : &found->tower;
    if (*place) return fr_fail(FR_UNBUILT, "%s: a model of several files is not built yet", where);
    FR_TRY(blob_of(folder, where, layer, place));
    return check_blob(*place, layer);
}

/* Finds the files of the model and of its vision tower among a manifest's layers. */
static fr_status read_layers(const char *folder, const char *where, const json_t *manifest, fr_found_files *found) {
    const json_t *layers = json_object_get(manifest, "layers");
    size_t count = json_array_size(layers);
    if (count > LAYERS_MAX)
        return fr_fail(FR_INPUT, "%s: %zu layers, and at most %d are read", where, count, LAYERS_MAX);
    for (size_t i = 0; i < count; i++) FR_TRY(take_layer(folder, where, json_array_get(layers, i), found));
    return found->path ? FR_OK : fr_fail(FR_INPUT, "%s: no layer of it is a model", where);
}

static fr_status read_manifest(const char *folder, const char *path, fr_found_files *found) {
    json_t *manifest;
    FR_TRY(fr_json_read(path, MANIFEST_MAX, &manifest));
    fr_status status = read_layers(folder, path, manifest, found);
    json_decref(manifest);
    if (status != FR_OK) fr_found_files_free(found);
    return status;
}

static char *manifest_path(const char *folder, const fr_model_name *name) {
    char *path;
    bool made =
        asprintf(&path, "%s/manifests/%s/%s/%s/%s", folder, name->host, name->org, name->model, name->which) >= 0;
    return made ? path : NULL;
}

fr_status fr_ollama_find(const char *folder, const fr_model_name *name, fr_found_files *found) {
    char *path = manifest_path(folder, name);
    if (!path) return fr_fail_memory("a path", strlen(folder));
    fr_status status = fr_file_exists(path) ? read_manifest(folder, path, found) : FR_OK;
    free(path);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- listing */

/* Reads HOST/NAMESPACE/NAME/TAG from a manifest's path. */
static bool read_name(const char *inside, fr_model_name *name) {
    char *parts[] = {name->host, name->org, name->model, name->which};
    *name = (fr_model_name){.ollama = true};
    for (size_t i = 0; i < 4; i++) {
        size_t length = strcspn(inside, "/");
        if (!fr_model_name_part(inside, length) || (inside[length] == '/') != (i < 3)) return false;
        memcpy(parts[i], inside, length);
        inside += length + (i < 3);
    }
    return true;
}

static void print_name(const fr_model_name *name, char *text, size_t size) {
    bool registry = strcmp(name->host, REGISTRY) == 0, library = registry && strcmp(name->org, LIBRARY) == 0;
    snprintf(text, size, "ollama:%s%s%s%s%s:%s", registry ? "" : name->host, registry ? "" : "/",
             library ? "" : name->org, library ? "" : "/", name->model, name->which);
}

static uint64_t bytes_of(const char *path) {
    struct stat info;
    return path && stat(path, &info) == 0 ? (uint64_t)info.st_size : 0;
}

static fr_status tell(const char *folder, const fr_model_name *name, const fr_found_told *to) {
    char text[6 * FR_NAME_PART], *path = manifest_path(folder, name);
    if (!path) return fr_fail_memory("a path", strlen(folder));
    fr_found_files files = {0};
    fr_status status = read_manifest(folder, path, &files);
    print_name(name, text, sizeof text);
    fr_found found = {.name = text,
                      .path = files.path ? files.path : path,
                      .tower = files.tower,
                      .store = "ollama",
                      .bytes = bytes_of(files.path),
                      .problem = status == FR_OK ? NULL : fr_last_error()};
    if (status != FR_MEMORY) status = to->told(to->context, &found) ? FR_OK : fr_fail(FR_ABORTED, "%s: no more", text);
    fr_found_files_free(&files);
    free(path);
    return status;
}

fr_status fr_ollama_list(const char *folder, const fr_found_told *to) {
    fr_names names;
    char *manifests = fr_path_join(folder, "manifests");
    if (!manifests) return fr_fail_memory("a path", strlen(folder));
    fr_status status = fr_names_files(manifests, 3, &names);
    free(manifests);
    FR_TRY(status);
    for (size_t i = 0; status == FR_OK && i < names.count; i++) {
        fr_model_name name;
        if (read_name(names.items[i], &name)) status = tell(folder, &name, to);
    }
    fr_names_free(&names);
    return status;
}
