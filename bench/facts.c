/* Collects facts about the machine of a measurement (facts.h). */
#include "bench/facts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/error.h"
#include "base/topology.h"

#ifdef __clang__
#define COMPILER __VERSION__ /* contains the compiler's name */
#else
#define COMPILER "gcc " __VERSION__
#endif

/* The fields of /proc/cpuinfo that are read, in the order in which they are printed, and the text that is printed
 * before each field. A line of that file is "KEY<tab>: VALUE". */
static const struct {
    const char *key, *before;
} parts[] = {{"model name", ""},      {"cpu family", ", family "}, {"model", " model "},
             {"CPU implementer", ""}, {"CPU part", " part "},      {"flags", ""}};
enum { PARTS = sizeof parts / sizeof *parts, FLAGS = PARTS - 1, TEXT = 128 };

/* Reads the values of the first processor. Some machines have several kinds of cores; the values of the other kinds are
 * not reported. */
static void read_values(FILE *file, char values[PARTS][TEXT]) {
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, file) > 1) {
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

static void cpu_name(char *name, size_t size) {
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

/* Counts the physical cores. Hardware threads of the same core have the same number and are adjacent in the list. */
static size_t count_cores(const fr_machine *machine) {
    size_t cores = 0;
    for (size_t i = 0; i < machine->count; i++)
        cores += i == 0 || machine->places[i].core != machine->places[i - 1].core;
    return cores;
}

static void software_facts(fr_bench_report *report) {
    struct utsname os;
    char text[256], moment[32];
    time_t now = time(NULL);
    struct tm utc;
    if (uname(&os) == 0) {
        snprintf(text, sizeof text, "%s %s %s", os.sysname, os.release, os.machine);
        fr_bench_fact_text(report, "os", "system", text);
    }
    fr_bench_fact_text(report, "version", "forerun", fr_version());
    fr_bench_fact_text(report, "compiler", "compiler", COMPILER);
    if (gmtime_r(&now, &utc) && strftime(moment, sizeof moment, "%Y-%m-%dT%H:%M:%SZ", &utc))
        fr_bench_fact_text(report, "test_time", NULL, moment);
}

fr_status fr_bench_machine_facts(fr_bench_report *report, const char *isa, size_t threads) {
    fr_machine machine;
    char name[256];
    FR_TRY(fr_machine_read(&machine));
    cpu_name(name, sizeof name);
    fr_bench_fact_text(report, "cpu_info", "CPU", name);
    size_t cores = count_cores(&machine);
    fr_bench_fact_number(report, "cores", "cores", (double)cores);
    fr_bench_fact_number(report, "cpus", machine.count == cores ? NULL : "logical CPUs", (double)machine.count);
    fr_bench_fact_number(report, "cpu_quota", "CPUs by quota", machine.quota ? machine.quota : NAN);
    fr_bench_fact_number(report, "numa_nodes", "NUMA nodes", machine.nodes);
    if (threads) fr_bench_fact_number(report, "n_threads", "threads", (double)threads);
    if (isa) fr_bench_fact_text(report, "isa", "instruction set", isa);
    software_facts(report);
    return FR_OK;
}
