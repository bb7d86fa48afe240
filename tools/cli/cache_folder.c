/* Gives the user's cache folder: see cache_folder.h. */
#include "tools/cli/cache_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/output.h"

char *fr_cache_folder(void) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME"), *inside = "/forerun";
    if (!cache || cache[0] != '/') {
        cache = home;
        inside = "/.cache/forerun";
    }
    if (!cache || cache[0] != '/') return NULL;
    size_t size = strlen(cache) + strlen(inside) + 1;
    char *folder = fr_resize(NULL, size, 1);
    snprintf(folder, size, "%s%s", cache, inside);
    return folder;
}
