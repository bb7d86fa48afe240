/* Finds available memory: see memory.h. */
#include "base/memory.h"

#include <stdlib.h>
#include <string.h>

#include "base/cgroup.h"

/* Finds the first line that begins with `name` and a blank, and reads the number after the blanks. Returns false if
 * there is no such line or number. */
static bool number_of(const char *text, const char *name, uint64_t *number) {
    size_t length = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (strncmp(line, name, length) != 0 || line[length] != ' ') continue;
        const char *digits = line + length + strspn(line + length, " ");
        if (*digits < '0' || *digits > '9') return false;
        *number = strtoull(digits, NULL, 10);
        return true;
    }
    return false;
}

/* Gives a group's limit minus the part of its memory that the system can't reclaim; at least 1, because 0 means no
 * limit. */
static uint64_t left_of(const char *folder, const char *limit_name, const char *taken_name) {
    char text[64], stat[8192];
    uint64_t taken = 0;
    if (!fr_read_small(folder, limit_name, text, sizeof text) || *text < '0' || *text > '9') return 0;
    uint64_t limit = strtoull(text, NULL, 10);
    if (fr_read_small(folder, "memory.stat", stat, sizeof stat)) number_of(stat, taken_name, &taken);
    return limit > taken ? limit - taken : 1;
}

/* Gives the memory that a group of version 2 has left. If the group has no limit, its file contains the word "max". */
static uint64_t left_v2(const char *folder) {
    return left_of(folder, "memory.max", "anon");
}

/* Gives the memory that a group of version 1 has left. If there is no limit, the file has a number near 2^63. That
 * number can be treated as a limit, because no machine has so much memory. */
static uint64_t left_v1(const char *folder) {
    return left_of(folder, "memory.limit_in_bytes", "total_rss");
}

uint64_t fr_memory_available(const char *root) {
    char text[8192];
    uint64_t available = UINT64_MAX, kilobytes;
    if (fr_read_small(root, "proc/meminfo", text, sizeof text) && number_of(text, "MemAvailable:", &kilobytes) &&
        kilobytes < UINT64_MAX / 1024)
        available = kilobytes * 1024;
    uint64_t left = fr_cgroup_least(root, "memory", left_v2, left_v1);
    return left && left < available ? left : available;
}
