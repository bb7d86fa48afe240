/* Compares each file that a verb writes with all files that it reads, and with the other files that it writes
 * (output_check.h). */
#include "tools/cli/output_check.h"

#include <dirent.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/cli/output.h"

/* A file that will be written, and the option that names it. */
typedef struct fr_target {
    fr_arg arg;
    const char *path;
    bool exists;
    struct stat info; /* status of the file, if it exists */
} fr_target;

/* Gives the length of an option's first name, which help shows first. */
static int name_length(const char *names) {
    return (int)strcspn(names, " ");
}

static const char *last_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool is_target(const fr_target *target, const struct stat *info) {
    return S_ISREG(info->st_mode) && info->st_dev == target->info.st_dev && info->st_ino == target->info.st_ino;
}

static int refuse(const fr_target *target, fr_arg reader, const char *file) {
    const char *written = fr_arguments_help(target->arg).names, *read = fr_arguments_help(reader).names;
    return fr_wrong_usage("%.*s %s would write over %s, which %.*s reads: give another name", name_length(written),
                          written, target->path, file, name_length(read), read);
}

static bool ends_in(const char *name, const char *end) {
    size_t length = strlen(name), tail = strlen(end);
    return length >= tail && strcmp(name + length - tail, end) == 0;
}

/* Returns true if forerun reads a file of this name from a published model's folder. weighs: the folder has weights in
 * safetensors files, so forerun does not read its GGUF files. */
static bool is_published(const char *name, bool weighs) {
    static const char *const names[] = {"config.json",
                                        "generation_config.json",
                                        "preprocessor_config.json",
                                        "processor_config.json",
                                        "tokenizer.json",
                                        "tokenizer_config.json",
                                        "chat_template.jinja",
                                        "chat_template.json",
                                        "model.safetensors.index.json",
                                        "special_tokens_map.json",
                                        "added_tokens.json"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        if (strcmp(name, names[i]) == 0) return true;
    }
    return ends_in(name, ".safetensors") || (!weighs && ends_in(name, ".gguf"));
}

/* Returns true if both files belong to one series of shards, NAME-00001-of-00003.gguf. */
static bool is_other_shard(const char *name, const char *of) {
    enum { NUMBER = sizeof("00001-of-00003.gguf") - 1, DIGITS = 5 };
    size_t length = strlen(of);
    if (length <= NUMBER || strlen(name) != length) return false;
    size_t stem = length - NUMBER;
    return of[stem - 1] == '-' && strncmp(of + stem + DIGITS, "-of-", 4) == 0 && strncmp(name, of, stem) == 0 &&
           strcmp(name + stem + DIGITS, of + stem + DIGITS) == 0;
}

/* Checks the files of a folder. If `shard` is given, the shards of its series are checked. Otherwise the files of a
 * published model are checked. */
static int check_folder(const fr_target *target, fr_arg reader, const char *folder, const char *shard) {
    DIR *entries = opendir(folder);
    int code = 0;
    if (!entries) return 0;
    bool weighs = faccessat(dirfd(entries), "model.safetensors", F_OK, 0) == 0 ||
                  faccessat(dirfd(entries), "model.safetensors.index.json", F_OK, 0) == 0;
    for (const struct dirent *e; !code && (e = readdir(entries));) {
        struct stat info;
        if (!(shard ? is_other_shard(e->d_name, shard) : is_published(e->d_name, weighs))) continue;
        if (fstatat(dirfd(entries), e->d_name, &info, 0) != 0 || !is_target(target, &info)) continue;
        code = refuse(target, reader, e->d_name);
    }
    closedir(entries);
    return code;
}

/* Checks a file that is read. If its status can't be read, nothing is reported here, because the code that opens the
 * file later reports the error. */
static int check_input(const fr_target *target, fr_arg reader, const char *path) {
    struct stat info;
    char copy[PATH_MAX];
    bool standard = reader == FR_ARG_FILE && strcmp(path, "-") == 0;
    if ((standard ? fstat(STDIN_FILENO, &info) : stat(path, &info)) != 0 || strlen(path) >= sizeof(copy)) return 0;
    if (is_target(target, &info)) return refuse(target, reader, standard ? "standard input" : path);
    if (standard) return 0;
    if (S_ISDIR(info.st_mode)) return check_folder(target, reader, path, NULL);
    memcpy(copy, path, strlen(path) + 1);
    bool published = ends_in(path, ".safetensors") || ends_in(path, ".json");
    return check_folder(target, reader, dirname(copy), published ? NULL : last_name(path));
}

static int check_target(const fr_target *target, const fr_arguments *args) {
    static const fr_arg inputs[] = {FR_ARG_MODEL,        FR_ARG_DRAFTER,       FR_ARG_MMPROJ, FR_ARG_FILE,
                                    FR_ARG_PROMPT_CACHE, FR_ARG_CHAT_TEMPLATE, FR_ARG_TOOLS};
    int code = 0;
    for (size_t i = 0; i < sizeof(inputs) / sizeof(*inputs) && !code; i++) {
        bool itself = inputs[i] == target->arg; /* a prompt cache is both read and written through the same option */
        if (args->given[inputs[i]] && !itself) code = check_input(target, inputs[i], args->text[inputs[i]]);
    }
    for (size_t i = 0; i < args->image_count && !code; i++) code = check_input(target, FR_ARG_IMAGE, args->images[i]);
    return code;
}

/* Finds the folder of a path, and follows links. Returns false if there is no such folder. */
static bool find_folder(const char *path, struct stat *folder) {
    char copy[PATH_MAX];
    if (strlen(path) >= sizeof(copy)) return false;
    memcpy(copy, path, strlen(path) + 1);
    return stat(dirname(copy), folder) == 0;
}

/* Returns true if two paths lead to the same file. A file that does not exist yet is identified by its folder and its
 * name. */
static bool is_same(const fr_target *a, const fr_target *b) {
    struct stat left, right;
    if (a->exists || b->exists) return a->exists && b->exists && is_target(a, &b->info);
    return strcmp(last_name(a->path), last_name(b->path)) == 0 && find_folder(a->path, &left) &&
           find_folder(b->path, &right) && left.st_dev == right.st_dev && left.st_ino == right.st_ino;
}

static int check_others(const fr_target *targets, size_t count, const fr_target *target) {
    const char *names = fr_arguments_help(target->arg).names;
    for (size_t i = 0; i < count; i++) {
        if (!is_same(&targets[i], target)) continue;
        const char *other = fr_arguments_help(targets[i].arg).names;
        return fr_wrong_usage("%.*s %s would write over what %.*s %s wrote: give another name", name_length(names),
                              names, target->path, name_length(other), other, targets[i].path);
    }
    return 0;
}

int fr_output_check_overwrites(const fr_arguments *args) {
    static const fr_arg outputs[] = {FR_ARG_OUT_FILE, FR_ARG_TRACE, FR_ARG_PROMPT_CACHE, FR_ARG_BASE,
                                     FR_ARG_BENCH_PLOT};
    enum { OUTPUTS = sizeof(outputs) / sizeof(*outputs) };
    fr_target targets[OUTPUTS];
    size_t count = 0;
    int code = 0;
    for (size_t i = 0; i < OUTPUTS && !code; i++) {
        fr_target *target = &targets[count];
        if (!args->given[outputs[i]] || (outputs[i] == FR_ARG_BASE && args->given[FR_ARG_KL])) continue;
        *target = (fr_target){.arg = outputs[i], .path = args->text[outputs[i]]};
        bool standard = strcmp(target->path, "-") == 0;
        target->exists = (standard ? fstat(STDOUT_FILENO, &target->info) : stat(target->path, &target->info)) == 0;
        if (target->exists && S_ISREG(target->info.st_mode)) code = check_target(target, args);
        if (!code) code = check_others(targets, count++, target);
    }
    return code;
}
