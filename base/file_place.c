/* Following links to what need not be there: see file_place.h. */
#include "base/file_place.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* As many as Linux follows. */
enum { LINKS = 40 };

/* What the link at `path` names, from where the path begins. */
static char *follow(const char *path, const char *named) {
    const char *slash = *named == '/' ? NULL : strrchr(path, '/');
    int folder = slash ? (int)(slash + 1 - path) : 0;
    char *followed;
    return asprintf(&followed, "%.*s%s", folder, path, named) < 0 ? NULL : followed;
}

char *fr_file_place(const char *path) {
    char named[PATH_MAX], *place = strdup(path);
    for (int links = 0; place; links++) {
        ssize_t length = readlink(place, named, sizeof named - 1);
        if (length < 0) return place;
        if (links == LINKS) break;
        named[length] = '\0';
        char *next = follow(place, named);
        free(place);
        place = next;
    }
    errno = place ? ELOOP : ENOMEM;
    free(place);
    return NULL;
}
