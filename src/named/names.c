/* Reads the names in folders (names.h). */
#include "src/named/names.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/error.h"
#include "base/file_place.h"
#include "formats/checkpoint.h"

fr_status fr_names_add(fr_names *names, const char *name) {
    if (names->count == FR_NAMES_MAX) return fr_fail(FR_INPUT, "%s: more than %d files", name, FR_NAMES_MAX);
    if (names->count == names->capacity) {
        size_t capacity = names->capacity ? 2 * names->capacity : 32;
        char **items = realloc(names->items, capacity * sizeof *items);
        if (!items) return fr_fail_memory("names of files", capacity * sizeof *items);
        names->items = items;
        names->capacity = capacity;
    }
    char *copy = strdup(name);
    if (!copy) return fr_fail_memory("the name of a file", strlen(name) + 1);
    names->items[names->count++] = copy;
    return FR_OK;
}

void fr_names_free(fr_names *names) {
    for (size_t i = 0; i < names->count; i++) free(names->items[i]);
    free(names->items);
    *names = (fr_names){0};
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* A folder that is being read. inside: its path relative to `root`, "" for `root` itself. */
typedef struct place {
    const char *root, *inside;
    size_t depth; /* number of levels of folders that are read below this folder */
    bool folders; /* folders are listed, not files */
} place;

static fr_status read_folder(place at, fr_names *names);

static fr_status take(place at, int folder, const char *name, fr_names *names) {
    struct stat info;
    bool link = fstatat(folder, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(info.st_mode);
    char *inside = *at.inside ? fr_path_join(at.inside, name) : strdup(name);
    if (!inside) return fr_fail_memory("the name of a file", strlen(name));
    bool known = link || fstatat(folder, name, &info, 0) == 0, below = known && !link && S_ISDIR(info.st_mode);
    fr_status status = FR_OK;
    if (at.folders ? below : link || (known && S_ISREG(info.st_mode)))
        status = fr_names_add(names, inside);
    else if (below && at.depth)
        status = read_folder((place){at.root, inside, at.depth - 1, false}, names);
    free(inside);
    return status;
}

static fr_status read_folder(place at, fr_names *names) {
    char *path = *at.inside ? fr_path_join(at.root, at.inside) : strdup(at.root);
    if (!path) return fr_fail_memory("a path", strlen(at.root));
    DIR *entries = opendir(path);
    free(path);
    fr_status status = FR_OK;
    for (struct dirent *e; entries && status == FR_OK && (e = readdir(entries));)
        if (e->d_name[0] != '.') status = take(at, dirfd(entries), e->d_name, names);
    if (entries) closedir(entries);
    return status;
}

static fr_status read_sorted(place at, fr_names *names) {
    *names = (fr_names){0};
    fr_status status = read_folder(at, names);
    if (status != FR_OK) fr_names_free(names);
    if (names->count) qsort(names->items, names->count, sizeof *names->items, by_name);
    return status;
}

fr_status fr_names_files(const char *folder, size_t depth, fr_names *names) {
    return read_sorted((place){folder, "", depth, false}, names);
}

fr_status fr_names_folders(const char *folder, fr_names *names) {
    return read_sorted((place){folder, "", 0, true}, names);
}
