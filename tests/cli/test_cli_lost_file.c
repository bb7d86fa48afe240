/* Tests files of weights that another program truncates or changes while the command has them open. The command must
 * end with an error line that names the file.
 *
 * The tests do not depend on speed. The command writes into a pipe that is too small for all of its output. So it can't
 * finish before the test reads the pipe. The test changes the file first, and then reads the pipe. */
/* suite: native */
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/command.h"
#include "tests/support/suite.h"

enum { PIPE = 4096, /* bytes that the pipe holds */ LEFT = 65536 /* bytes that truncation leaves */ };

static char folder[32];

/* Makes two copies of the demo model, which the tests may damage: the published folder, and a packed file. */
static void make_files(void) {
    char line[512];
    snprintf(folder, sizeof folder, "/tmp/forerun-lost-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(line, sizeof line, "cp -r tools/demo/target tools/demo/assistant %s", folder);
    ck_assert_int_eq(system(line), 0);
    snprintf(line, sizeof line, "%s/in.jsonl", folder);
    FILE *prompts = fopen(line, "w");
    ck_assert_ptr_nonnull(prompts);
    for (int i = 0; i < 20; i++) fputs("{\"prompt\": \"The dog\"}\n", prompts);
    fclose(prompts);
    fr_command quantized = fr_command_ok("quantize " DEMO "--type q8_0 -o %s/q.gguf", folder);
    fr_command packed = fr_command_ok("pack -m %1$s/q.gguf -o %1$s/packed.gguf", folder);
    fr_command_free(&quantized);
    fr_command_free(&packed);
}

static void remove_files(void) {
    char line[512];
    snprintf(line, sizeof line, "rm -r %s", folder);
    ck_assert_int_eq(system(line), 0);
}

/* A command that has begun to write. Now it waits until the test reads more. */
typedef struct running {
    pid_t process;
    int from;
    FILE *err;
} running;

static running start_writing(const char *line) {
    char byte;
    int out[2];
    running r = {.err = tmpfile()};
    FILE *in = tmpfile();
    fputs("Hello!\n", in);
    rewind(in);
    ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
    ck_assert_int_ge(fcntl(out[1], F_SETPIPE_SZ, PIPE), 0);
    r.process = fr_command_start(line, fileno(in), out[1], fileno(r.err));
    r.from = out[0];
    close(out[1]);
    fclose(in);
    ck_assert_int_eq(read(r.from, &byte, 1), 1);
    return r;
}

/* Reads the rest of the output. Returns the exit status. `err` gets the line on standard error. */
static int finish(running *r, char *err, size_t size) {
    char bytes[PIPE];
    while (read(r->from, bytes, sizeof bytes) > 0) continue;
    int status = fr_command_wait(r->process);
    rewind(r->err);
    err[fread(err, 1, size - 1, r->err)] = '\0';
    fclose(r->err);
    close(r->from);
    return status;
}

/* Command lines, each with the file that is truncated while the command runs. %1$s is replaced by the folder. */
static const struct {
    const char *line, *file;
} cuts[] = {
    {"generate -no-cnv -m %1$s/packed.gguf -p x -n 3000 -c 4096 --ignore-eos -t 2", "packed.gguf"},
    {"generate -no-cnv -m %1$s/target -p x -n 3000 -c 4096 --ignore-eos -t 1", "target/model.safetensors"},
    {"generate -no-cnv -m %1$s/packed.gguf -md %1$s/assistant --draft-max 4 -p x -n 3000 -c 4096 --ignore-eos",
     "assistant/model.safetensors"},
    {"chat -m %1$s/packed.gguf -n 3000 -c 4096 --ignore-eos", "packed.gguf"},
    {"batch -m %1$s/packed.gguf -f %1$s/in.jsonl -o - -n 1000 --ignore-eos -np 2", "packed.gguf"},
};

START_TEST(a_file_that_is_cut_is_named) {
    char line[512], path[256], err[4096], expected[512];
    snprintf(line, sizeof line, cuts[_i].line, folder);
    snprintf(path, sizeof path, "%s/%s", folder, cuts[_i].file);
    snprintf(expected, sizeof expected, "forerun: %s: it got shorter while it was open, or can't be read any more\n",
             path);
    running r = start_writing(line);
    ck_assert_int_eq(truncate(path, LEFT), 0);
    int status = finish(&r, err, sizeof err);
    ck_assert_msg(status == 1, "exit %d: %s", status, err);
    ck_assert_str_eq(err, expected);
}
END_TEST

/* Ways to change a file, each with the line with which the command must end. If another file takes the name of the
 * opened file, this must not matter, because the opened file still exists. */
static const struct {
    const char *line, *change, *says;
} changes[] = {
    {"generate -no-cnv -m %1$s/packed.gguf -p x -n 3000 -c 4096 --ignore-eos -t 2", "truncate -s -1 %1$s/packed.gguf",
     "%1$s/packed.gguf: it got shorter while it was open, or can't be read any more"},
    {"generate -no-cnv -m %1$s/target -p x -n 3000 -c 4096 --ignore-eos -t 1",
     "printf x | dd of=%1$s/target/model.safetensors bs=1 seek=9000 conv=notrunc status=none",
     "%1$s/target/model.safetensors: it was written to while it was open"},
    {"generate -no-cnv -m %1$s/packed.gguf -md %1$s/assistant --draft-max 4 -p x -n 3000 -c 4096 --ignore-eos",
     "printf x >> %1$s/assistant/model.safetensors",
     "%1$s/assistant/model.safetensors: it was written to while it was open"},
    {"chat -m %1$s/packed.gguf -n 3000 -c 4096 --ignore-eos", "touch %1$s/packed.gguf",
     "%1$s/packed.gguf: it was written to while it was open"},
    {"batch -m %1$s/packed.gguf -f %1$s/in.jsonl -o - -n 1000 --ignore-eos -np 2", "touch %1$s/packed.gguf",
     "%1$s/packed.gguf: it was written to while it was open"},
    {"generate -no-cnv -m %1$s/packed.gguf -p x -n 300 --ignore-eos",
     "cp %1$s/q.gguf %1$s/n && mv %1$s/n %1$s/packed.gguf", NULL},
    {"generate -no-cnv -m %1$s/packed.gguf -p x -n 300 --ignore-eos", "rm %1$s/packed.gguf", NULL},
    {"generate -no-cnv -m %1$s/target --no-mmap -p x -n 300 --ignore-eos", "touch %1$s/target/model.safetensors", NULL},
};

START_TEST(a_file_that_is_changed_is_named) {
    char line[512], change[512], err[4096], says[512], expected[560] = "";
    snprintf(line, sizeof line, changes[_i].line, folder);
    snprintf(change, sizeof change, changes[_i].change, folder);
    if (changes[_i].says) snprintf(says, sizeof says, changes[_i].says, folder);
    if (changes[_i].says) snprintf(expected, sizeof expected, "forerun: %s\n", says);
    running r = start_writing(line);
    ck_assert_int_eq(system(change), 0);
    int status = finish(&r, err, sizeof err);
    ck_assert_msg(status == (changes[_i].says != NULL), "exit %d: %s", status, err);
    ck_assert_str_eq(err, expected);
}
END_TEST

/* If another process sends SIGBUS, the error line must not name a file. This is not tested with a sanitizer, which
 * reports the signal with a message of its own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define BUS_ERRORS 0
#else
#define BUS_ERRORS 1
#endif

START_TEST(another_bus_error_stays_one) {
    char line[512], err[4096];
    snprintf(line, sizeof line, cuts[0].line, folder);
    running r = start_writing(line);
    ck_assert_int_eq(kill(r.process, SIGBUS), 0);
    ck_assert_int_eq(finish(&r, err, sizeof err), 128 + SIGBUS);
    ck_assert_str_eq(err, "");
}
END_TEST

FR_SUITE("cli_lost_file") {
    TCase *cases = tcase_create("cli_lost_file");
    tcase_set_timeout(cases, 300);
    tcase_add_checked_fixture(cases, make_files, remove_files);
    tcase_add_loop_test(cases, a_file_that_is_cut_is_named, 0, sizeof cuts / sizeof *cuts);
    tcase_add_loop_test(cases, a_file_that_is_changed_is_named, 0, sizeof changes / sizeof *changes);
    tcase_add_loop_test(cases, another_bus_error_stays_one, 0, BUS_ERRORS);
    suite_add_tcase(suite, cases);
}
