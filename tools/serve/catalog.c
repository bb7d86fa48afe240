/* Finds the models of a server (catalog.h). */
#include "tools/serve/catalog.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/output.h"

/* Returns true if a file's name is that of a model in GGUF. Hidden files and vision towers don't count. If a model has
 * several shards, only its first shard counts. */
static bool is_gguf(const char *name) {
    size_t length = strlen(name);
    const char *part = strstr(name, "-of-");
    bool later = part && part - name >= 6 && strncmp(part - 6, "-00001", 6) != 0;
    return name[0] != '.' && length > 5 && strcmp(name + length - 5, ".gguf") == 0 && !later && !strstr(name, "mmproj");
}

static bool is_published(const char *folder) {
    struct stat file;
    char config[PATH_MAX + sizeof "/config.json"];
    snprintf(config, sizeof config, "%s/config.json", folder);
    return stat(config, &file) == 0;
}

/* If a folder has exactly one GGUF file, gives its path, which the caller frees. Otherwise gives NULL. */
static char *only_gguf(const char *folder) {
    DIR *names = opendir(folder);
    char *only = NULL;
    size_t count = 0;
    if (!names) return NULL;
    for (struct dirent *one; (one = readdir(names));) {
        if (!is_gguf(one->d_name) || count++) continue;
        size_t size = strlen(folder) + strlen(one->d_name) + 2;
        only = fr_resize(NULL, size, 1);
        snprintf(only, size, "%s/%s", folder, one->d_name);
    }
    closedir(names);
    if (count == 1) return only;
    free(only);
    return NULL;
}

/* Adds a model. If the path is a folder with exactly one GGUF file, the path of that file is stored, because a model is
 * identified by its files' bytes. */
static void add(fr_catalog *c, const char *path, const char *name) {
    char *file = is_published(path) ? NULL : only_gguf(path);
    c->list = fr_resize(c->list, c->count + 1, sizeof *c->list);
    c->list[c->count++] = (struct fr_catalog_model){.name = strdup(name), .path = file ? file : strdup(path)};
}

/* Adds a model whose name is the last part of its path, without .gguf. */
static void add_path(fr_catalog *c, const char *path) {
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') end--;
    size_t first = end;
    while (first > 0 && path[first - 1] != '/') first--;
    size_t length = end - first;
    if (length > 5 && strncmp(path + end - 5, ".gguf", 5) == 0) length -= 5;
    char *name = strndup(path + first, length);
    add(c, path, name);
    free(name);
}

/* Returns true for a file in GGUF. Also returns true for a folder that holds a published model or exactly one GGUF
 * file. */
static bool is_model(const char *path, const char *name) {
    struct stat file;
    if (name[0] == '.' || stat(path, &file) != 0) return false;
    if (!S_ISDIR(file.st_mode)) return is_gguf(name);
    if (is_published(path)) return true;
    char *only = only_gguf(path);
    bool is = only != NULL;
    free(only);
    return is;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct fr_catalog_model *)a)->name, ((const struct fr_catalog_model *)b)->name);
}

static int read_folder(fr_catalog *c, const char *folder) {
    DIR *names = opendir(folder);
    if (!names) return fr_bad_input("%s: %s", folder, strerror(errno));
    for (struct dirent *one; (one = readdir(names));) {
        char path[PATH_MAX];
        int length = snprintf(path, sizeof path, "%s/%s", folder, one->d_name);
        if (length > 0 && (size_t)length < sizeof path && is_model(path, one->d_name)) add_path(c, path);
    }
    closedir(names);
    if (c->count == 0) return fr_bad_input("%s: no GGUF file and no model's folder in it", folder);
    qsort(c->list, c->count, sizeof *c->list, by_name);
    return 0;
}

/* Adds a model of --models. The entry is a path, or the name of a model that another program has downloaded. */
static int add_listed(fr_catalog *c, const char *name) {
    char *path;
    if (name[0] == '\0') return fr_wrong_usage("--models: a name is missing between commas");
    int code = fr_exit_status(fr_model_find(name, (const char *const *)environ, &path));
    if (code) return code;
    if (access(path, R_OK) != 0)
        code = fr_bad_input("--models: %s: %s", path, strerror(errno));
    else if (strcmp(name, path) != 0)
        add(c, path, name);
    else
        add_path(c, path);
    fr_free(path);
    for (size_t i = 0; !code && i + 1 < c->count; i++)
        if (strcmp(c->list[i].name, c->list[c->count - 1].name) == 0)
            code = fr_bad_input("--models: two are called \"%s\": %s and %s", c->list[i].name, c->list[i].path,
                                c->list[c->count - 1].path);
    return code;
}

static int read_list(fr_catalog *c, const char *text) {
    char *names = strdup(text);
    int code = 0;
    for (char *name = names, *comma; !code && name; name = comma) {
        comma = strchr(name, ',');
        if (comma) *comma++ = '\0';
        code = add_listed(c, name);
    }
    free(names);
    return code;
}

static bool is_folder_of_models(const char *path) {
    struct stat file;
    return stat(path, &file) == 0 && S_ISDIR(file.st_mode) && !is_published(path);
}

int fr_catalog_read(fr_catalog *c, const fr_arguments *args) {
    const char *models = args->text[FR_ARG_MODELS], *alias = args->text[FR_ARG_ALIAS];
    const char *name = alias ? alias : args->model_name;
    *c = (fr_catalog){0};
    if (args->given[FR_ARG_MODELS]) return is_folder_of_models(models) ? read_folder(c, models) : read_list(c, models);
    if (name)
        add(c, args->text[FR_ARG_MODEL], name);
    else
        add_path(c, args->text[FR_ARG_MODEL]);
    return 0;
}

void fr_catalog_free(fr_catalog *c) {
    for (size_t i = 0; i < c->count; i++) {
        free(c->list[i].name);
        free(c->list[i].path);
    }
    free(c->list);
    *c = (fr_catalog){0};
}
