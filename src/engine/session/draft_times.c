/* Stores measured times in files: see draft_times.h. */
#include "src/engine/session/draft_times.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/temporary_file.h"

#define MARK "FRTIMES1"

/* No computer takes fewer than SHORTEST or more than LONGEST seconds for a forward of a few rows. A file with such a
 * time is ignored. */
#define SHORTEST 1e-7
#define LONGEST  3600.0

enum { TIMES = FR_DRAFT_DEPTH_ROWS + 1 };

/* The contents of a file: a mark, the key that is also in the file's name, times in seconds (0: unknown), and a hash of
 * all these. */
typedef struct times_file {
    char mark[8];
    uint64_t key;
    double seconds[TIMES];
    uint64_t hash;
} times_file;

static uint64_t hash_file(const times_file *file) {
    return fr_hash(0, file, offsetof(times_file, hash));
}

/* ------------------------------------------------------------------------------------------------------------- keys */

/* Adds to the hash the lines of /proc/cpuinfo that name the first processor. */
static uint64_t hash_processor(uint64_t hash) {
    static const char *const names[] = {"model name", "CPU implementer", "CPU variant", "CPU part"};
    char text[4096], *rest = NULL;
    int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    text[got > 0 ? got : 0] = 0;
    for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (strncmp(line, names[i], strlen(names[i])) == 0) hash = fr_hash(hash, line, strlen(line));
    return hash;
}

static uint64_t hash_tensors(uint64_t hash, const fr_tensors *tensors) {
    for (size_t i = 0; i < tensors->count; i++) {
        const fr_tensor *tensor = &tensors->items[i];
        const uint64_t type[] = {tensor->type, tensor->packed, tensor->dims};
        hash = fr_hash(hash, type, sizeof type);
        hash = fr_hash(hash, tensor->shape, tensor->dims * sizeof *tensor->shape);
    }
    return hash;
}

/* Hashes what the times of a model's forwards depend on. */
static uint64_t target_key(const fr_engine *e) {
    const fr_model *model = e->model;
    const uint64_t sizes[] = {model->plan.threads, (uint64_t)e->kv_types.k, (uint64_t)e->kv_types.v};
    uint64_t hash = hash_processor(fr_hash(0, MARK, sizeof MARK - 1));
    hash = fr_hash(hash, model->kernels->isa, strlen(model->kernels->isa));
    hash = fr_hash(hash, sizes, sizeof sizes);
    return hash_tensors(hash, &model->files.tensors);
}

static uint64_t drafter_key(const fr_drafter *drafter, uint64_t target) {
    uint64_t hash = fr_hash(target, drafter->method->name, strlen(drafter->method->name));
    const uint64_t head = drafter->head.matrix.features | (uint64_t)drafter->head.learns << 63;
    return hash_tensors(fr_hash(hash, &head, sizeof head), &drafter->files.tensors);
}

/* ------------------------------------------------------------------------------------------------------------ files */

/* Gives a file's path. If the path is too long, returns false. */
static bool name_file(const char *folder, uint64_t key, char path[PATH_MAX]) {
    int length = snprintf(path, PATH_MAX, "%s/draft-times-%016llx", folder, (unsigned long long)key);
    return length > 0 && length < PATH_MAX;
}

/* Reads the file with this key into earlier[1 .. count]. Changes nothing if there is no such file or if it is
 * damaged. */
static void read_times(const char *folder, uint64_t key, double *earlier, size_t count) {
    char path[PATH_MAX];
    times_file file;
    struct stat info;
    int fd = name_file(folder, key, path) ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    if (fd < 0) return;
    bool good = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size == sizeof file &&
                read(fd, &file, sizeof file) == sizeof file;
    close(fd);
    good = good && memcmp(file.mark, MARK, sizeof file.mark) == 0 && file.key == key && file.hash == hash_file(&file);
    for (size_t i = 0; good && i < TIMES; i++)
        good = file.seconds[i] == 0 || (file.seconds[i] >= SHORTEST && file.seconds[i] <= LONGEST);
    if (good) fr_draft_depth_inherit(file.seconds, earlier, count);
}

/* Opens a temporary file in the folder, which is made if it does not exist. */
static int open_temporary(const char *folder, const char *path, char *name) {
    char above[PATH_MAX];
    int fd = fr_temporary_open(path, name, PATH_MAX, 0600);
    if (fd >= 0) return fd;
    snprintf(above, sizeof above, "%s", folder);
    char *slash = strrchr(above, '/');
    if (slash && slash > above) {
        *slash = 0;
        mkdir(above, 0700);
    }
    bool there = mkdir(folder, 0700) == 0 || errno == EEXIST; /* another process may have made it just now */
    return there ? fr_temporary_open(path, name, PATH_MAX, 0600) : -1;
}

/* The file is not flushed to disk with fsync. After a crash of the system it may be damaged; such a file is ignored. */
static void write_times(const char *folder, uint64_t key, const double *seconds, size_t count) {
    char path[PATH_MAX], name[PATH_MAX];
    times_file file = {.mark = MARK, .key = key};
    memcpy(file.seconds, seconds, count * sizeof *seconds);
    file.hash = hash_file(&file);
    int fd = name_file(folder, key, path) ? open_temporary(folder, path, name) : -1;
    if (fd < 0) return;
    if (write(fd, &file, sizeof file) != sizeof file || rename(name, path) != 0) unlink(name);
    close(fd);
}

/* ------------------------------------------------------------------------------------------------------------ times */

void fr_draft_times_load(fr_engine *e, const char *folder) {
    uint64_t key = target_key(e);
    read_times(folder, key, e->draft_depth.earlier, FR_DRAFT_DEPTH_ROWS);
    for (size_t i = 0; i < FR_DRAFTERS_MAX; i++)
        if (e->drafters[i])
            read_times(folder, drafter_key(e->drafters[i], key), e->draft_depth.by[i].earlier, FR_STEP_MAX - 1);
}

void fr_draft_times_store(const fr_engine *e, const char *folder) {
    double verify[TIMES], draft[FR_STEP_MAX];
    uint64_t key = target_key(e);
    if (fr_draft_depth_verify_times(&e->draft_depth, verify)) write_times(folder, key, verify, TIMES);
    for (size_t i = 0; i < FR_DRAFTERS_MAX; i++)
        if (e->drafters[i] && fr_draft_depth_draft_times(&e->draft_depth, i, draft))
            write_times(folder, drafter_key(e->drafters[i], key), draft, FR_STEP_MAX);
}
