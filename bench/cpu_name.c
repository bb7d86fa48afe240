/* The processor's name: see cpu_name.h. */
#include "bench/cpu_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Lines of /proc/cpuinfo, "KEY<tab>: VALUE", in the order in which they are told. */
static const struct {
    const char *key, *before;
} parts[] = {{"model name", ""},      {"cpu family", ", family "}, {"model", " model "},
             {"CPU implementer", ""}, {"CPU part", " part "},      {"flags", ""}};
enum { PARTS = sizeof parts / sizeof *parts, FLAGS = PARTS - 1, TEXT = 128 };

/* The first processor's values; the others' are the same, or of a core that is not asked about. */
static void read_values(FILE *file, char values[PARTS][TEXT]) {
    char *line = NULL;
    size_t room = 0;
    while (getline(&line, &room, file) > 1) {
        char *colon = strchr(line, ':');
        if (!colon) continue;
        size_t length = strcspn(line, "\t:");
        char *value = colon + 1 + strspn(colon + 1, " ");
        value[strcspn(value, "\n")] = '\0';
        for (size_t i = 0; i < PARTS; i++) {
            if (strlen(parts[i].key) != length || strncmp(line, parts[i].key, length) != 0) continue;
            if (i == FLAGS) value = strstr(value, " hypervisor") ? ", virtual" : "";
            snprintf(values[i], TEXT, "%s", value);
        }
    }
    free(line);
}

void fr_bench_cpu_name(char *name, size_t size) {
    char values[PARTS][TEXT] = {""};
    FILE *file = fopen("/proc/cpuinfo", "r");
    if (file) read_values(file, values);
    if (file) fclose(file);
    size_t used = 0;
    name[0] = '\0';
    for (size_t i = 0; i < PARTS && used < size; i++)
        if (values[i][0]) used += (size_t)snprintf(name + used, size - used, "%s%s", parts[i].before, values[i]);
    if (!name[0]) snprintf(name, size, "unknown");
}
