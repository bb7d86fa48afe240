/* Implements command.h: starts commands with posix_spawn, gives them files as standard streams, and reads the
 * results. */
#include "tests/support/command.h"

#include <check.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { WORDS_MAX = 64 };

/* Splits a line into words and appends them to `words`, which already has `count` words. Returns the new number of
 * words. The words point into the line. */
static size_t split(char *line, char **words, size_t count) {
    for (char *c = line; *c;) {
        c += strspn(c, " ");
        if (!*c) break;
        ck_assert_uint_lt(count, WORDS_MAX);
        char end = *c == '\'' ? '\'' : ' ';
        if (end == '\'') c++;
        words[count++] = c;
        c += strcspn(c, (char[]){end, '\0'});
        if (*c) *c++ = '\0';
    }
    return count;
}

/* The running test is BUILD/tests/test_NAME, so the forerun command is BUILD/forerun. */
static void find_command(char *path, size_t size) {
    char self[PATH_MAX] = "";
    ck_assert_int_gt(readlink("/proc/self/exe", self, sizeof self - 1), 0);
    for (int up = 0; up < 2; up++) *strrchr(self, '/') = '\0';
    ck_assert_int_lt(snprintf(path, size, "%s/forerun", self), (int)size);
}

static pid_t start(const char *line, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes) {
    const char *emulator = getenv("FORERUN_EMULATOR"), *named = getenv("FORERUN");
    char path[PATH_MAX];
    find_command(path, sizeof path);
    char *words[WORDS_MAX + 1], *before = strdup(emulator ? emulator : ""), *after = strdup(line);
    size_t count = split(before, words, 0);
    words[count++] = (char *)(named ? named : path);
    words[split(after, words, count)] = NULL;

    pid_t process;
    ck_assert_msg(posix_spawnp(&process, words[0], actions, attributes, words, environ) == 0, "cannot start %s",
                  words[0]);
    free(before);
    free(after);
    return process;
}

pid_t fr_command_start(const char *line, int in, int out, int err) {
    posix_spawn_file_actions_t actions;
    const int streams[] = {in, out, err};
    posix_spawn_file_actions_init(&actions);
    for (int i = 0; i < 3; i++)
        if (streams[i] < 0)
            posix_spawn_file_actions_addclose(&actions, i);
        else
            posix_spawn_file_actions_adddup2(&actions, streams[i], i);
    pid_t process = start(line, &actions, NULL);
    posix_spawn_file_actions_destroy(&actions);
    return process;
}

/* The command leads a new session of processes. Such a leader gets the first terminal that it opens as its controlling
 * terminal. */
pid_t fr_command_start_on(const char *terminal, const char *line, int out) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, terminal, O_RDWR, 0);
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    posix_spawn_file_actions_adddup2(&actions, 0, 2);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
    pid_t process = start(line, &actions, &attributes);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return process;
}

int fr_command_wait(pid_t process) {
    int status;
    ck_assert_int_eq(waitpid(process, &status, 0), process);
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static char *read_back(FILE *file, size_t *length) {
    fseek(file, 0, SEEK_END);
    *length = (size_t)ftell(file);
    char *text = malloc(*length + 1);
    rewind(file);
    ck_assert_uint_eq(fread(text, 1, *length, file), *length);
    text[*length] = '\0';
    fclose(file);
    return text;
}

fr_command fr_command_run(const char *line, const char *input) {
    return fr_command_run_bytes(line, input ? input : "", input ? strlen(input) : 0);
}

fr_command fr_command_run_bytes(const char *line, const char *input, size_t length) {
    fr_command command;
    FILE *in = tmpfile(), *out = tmpfile(), *err = tmpfile();
    ck_assert(in && out && err);
    ck_assert_uint_eq(fwrite(input, 1, length, in), length);
    rewind(in);
    pid_t process = fr_command_start(line, fileno(in), fileno(out), fileno(err));
    command.status = fr_command_wait(process);
    command.out = read_back(out, &command.out_length);
    command.err = read_back(err, &command.err_length);
    fclose(in);
    return command;
}

void fr_command_free(fr_command *command) {
    free(command->out);
    free(command->err);
}

static fr_command run_formatted(const char *input, const char *format, va_list values) {
    char line[8192];
    ck_assert_int_lt(vsnprintf(line, sizeof line, format, values), (int)sizeof line);
    fr_command c = fr_command_run(line, input);
    ck_assert_msg(c.status == 0, "%s: exit %d: %s", line, c.status, c.err);
    return c;
}

fr_command fr_command_ok(const char *format, ...) {
    va_list values;
    va_start(values, format);
    fr_command c = run_formatted(NULL, format, values);
    va_end(values);
    return c;
}

fr_command fr_command_feed(const char *input, const char *format, ...) {
    va_list values;
    va_start(values, format);
    fr_command c = run_formatted(input, format, values);
    va_end(values);
    return c;
}

json_t *fr_json_get(const json_t *object, const char *key) {
    json_t *value = json_object_get(object, key);
    ck_assert_msg(value != NULL, "no %s", key);
    return value;
}

const char *fr_json_join(const json_t *ids, size_t count, char *list, size_t size) {
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        length += (size_t)snprintf(list + length, size - length, i ? ",%lld" : "%lld",
                                   (long long)json_integer_value(json_array_get(ids, i)));
        ck_assert_uint_lt(length, size);
    }
    return list;
}

json_t *fr_reference_json(void) {
    json_t *reference = json_load_file(FOLDER "/reference.json", 0, NULL);
    ck_assert_ptr_nonnull(reference);
    return reference;
}

static const json_t *first_greedy(const json_t *reference) {
    return json_array_get(fr_json_get(reference, "greedy"), 0);
}

json_t *fr_reference_prompt(const json_t *reference) {
    json_int_t index = json_integer_value(fr_json_get(first_greedy(reference), "prompt"));
    return json_array_get(fr_json_get(reference, "prompts"), (size_t)index);
}

json_t *fr_reference_greedy(const json_t *reference) {
    return fr_json_get(first_greedy(reference), "tokens");
}
