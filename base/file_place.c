/* Joins paths and follows links, also to files that do not exist: see file_place.h. */
#include "base/file_place.h"

#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Limits how many links are followed one after another. The limit is that of Linux. */
enum { LINKS = 40 };

/* Gives the path to which a link at `path` leads. A relative target begins in the link's own folder. */
static char *follow(const char *path, const char *named) {
    const char *slash = *named == '/' ? NULL : strrchr(path, '/');
    int folder = slash ? (int)(slash + 1 - path) : 0;
    char *followed;
    return asprintf(&followed, "%.*s%s", folder, path, named) < 0 ? NULL : followed;
}

/* Follows one link: frees `place` and returns the path that the link names. If `place` is no link, returns `place`
 * itself. Returns NULL with errno set on failure. */
static char *step(char *place, bool *stepped) {
    char named[PATH_MAX];
    ssize_t length = readlink(place, named, sizeof named - 1);
    *stepped = length >= 0;
    if (!*stepped) return place;
    named[length] = '\0';
    char *next = follow(place, named);
    free(place);
    return next;
}

char *fr_file_place(const char *path) {
    char *place = strdup(path);
    bool stepped = place;
    for (int links = 0; place && stepped; links++) {
        if (links > LINKS) {
            free(place);
            errno = ELOOP;
            return NULL;
        }
        place = step(place, &stepped);
    }
    if (!place) errno = ENOMEM;
    return place;
}

/* True for a path in procfs, where Linux lists a process's descriptors as links. If output is written to a file in
 * procfs, that file is always such a descriptor. */
static bool is_in_procfs(const char *place) {
    struct statfs info;
    const char *slash = strrchr(place, '/');
    char *folder = strndup(place, slash ? (size_t)(slash + 1 - place) : 0);
    bool is = folder && statfs(slash ? folder : ".", &info) == 0 && info.f_type == PROC_SUPER_MAGIC;
    free(folder);
    return is;
}

bool fr_file_is_descriptor(const char *path) {
    char *place = strdup(path);
    bool stepped = place, is = false;
    for (int links = 0; place && stepped && !is && links <= LINKS; links++) {
        is = is_in_procfs(place);
        place = step(place, &stepped);
    }
    free(place);
    return is;
}

char *fr_path_join(const char *folder, const char *name) {
    char *path;
    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

bool fr_file_exists(const char *path) {
    struct stat info;
    return lstat(path, &info) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

bool fr_file_is_reached(const char *path) {
    return access(path, F_OK) == 0;
}
