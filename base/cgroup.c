/* Walks from the control groups of a process up to the root of their hierarchy: see cgroup.h. */
#include "base/cgroup.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool read_text(const char *path, char *text, size_t size) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return false;
    size_t length = 0;
    ssize_t got = 1;
    while (got > 0 && length < size - 1) {
        got = read(file, text + length, size - 1 - length);
        if (got > 0) length += (size_t)got;
    }
    close(file);
    text[length] = '\0';
    return got == 0;
}

bool fr_read_small(const char *folder, const char *name, char *text, size_t size) {
    char path[PATH_MAX];
    int length = snprintf(path, sizeof path, "%s/%s", folder, name);
    return length > 0 && (size_t)length < sizeof path && read_text(path, text, size);
}

static uint64_t tighter(uint64_t a, uint64_t b) {
    return !a || (b && b < a) ? b : a;
}

/* Gives the tightest limit of the groups from `path` up to the root of the mounted hierarchy. Missing folders are
 * skipped: inside a container the path often does not exist, and the root of the mount is the container's group. */
static uint64_t walk_up(const char *root, const char *mount, const char *path, fr_cgroup_limit_fn *limit_of) {
    char folder[PATH_MAX];
    if (strstr(path, "/..")) path = "";
    int top = snprintf(folder, sizeof folder, "%s/sys/fs/cgroup%s", root, mount);
    if (top < 0 || (size_t)top + strlen(path) >= sizeof folder) return 0;
    memcpy(folder + top, path, strlen(path) + 1);
    uint64_t limit = limit_of(folder);
    while (folder[top]) {
        *strrchr(folder + top, '/') = '\0';
        limit = tighter(limit, limit_of(folder));
    }
    return limit;
}

uint64_t fr_cgroup_least(const char *root, const char *controller, fr_cgroup_limit_fn *v2, fr_cgroup_limit_fn *v1) {
    char text[32768], mount[32], named[34], *rest = text, *line;
    if (!fr_read_small(root, "proc/self/cgroup", text, sizeof text)) return 0;
    snprintf(mount, sizeof mount, "/%s", controller);
    snprintf(named, sizeof named, ",%s,", controller);
    uint64_t least = 0;
    /* A line is "0::PATH" in version 2, or "ID:CONTROLLER,CONTROLLER:PATH" in version 1. */
    while ((line = strsep(&rest, "\n"))) {
        char *controllers = strchr(line, ':'), *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path || path[1] != '/') continue;
        *controllers = *path = ',';
        const char *found = strstr(controllers, named);
        if (path == controllers + 1)
            least = tighter(least, walk_up(root, "", path + 1, v2));
        else if (found && found < path)
            least = tighter(least, walk_up(root, mount, path + 1, v1));
    }
    return least;
}
