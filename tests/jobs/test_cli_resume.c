/* Tests batch --resume. Answers that are already in the output file must be kept unchanged, and only the other lines
 * must be run. */
/* suite: native */
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/command.h"
#include "tests/support/suite.h"

#define BATCH "batch " DEMO "--quiet -n 9 -f %s -o %s "

/* Lines of a batch in both formats. One of them can't be run. Some have an id that does not fit in any number type of
 * C. */
static const char *const asked[] = {
    "{\"id\": 1.10, \"prompt\": \"The\"}",
    "{\"id\": \"b\", \"prompt\": \"def\"}",
    "{\"prompt\": \"x\", \"bogus\": 1}",
    "{\"custom_id\": \"d\", \"url\": \"/v1/completions\", \"body\": {\"prompt\": \"import\"}}",
    "{\"id\": 123456789012345678901234567890, \"ids\": [2, 5]}",
    "{\"prompt\": \"Once\"}",
};
enum { LINES = sizeof asked / sizeof *asked };

static char folder[32], in[64], out[64], before[80];

static void make_folder(void) {
    snprintf(folder, sizeof folder, "/tmp/forerun-resume-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(in, sizeof in, "%s/in.jsonl", folder);
    snprintf(out, sizeof out, "%s/out.jsonl", folder);
    snprintf(before, sizeof before, "%s.before", out);
}

static void remove_folder(void) {
    unlink(in);
    unlink(out);
    ck_assert_int_eq(rmdir(folder), 0);
}

static void write_file(const char *path, const char *bytes) {
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(bytes, file);
    ck_assert_int_eq(fclose(file), 0);
}

/* Returns the bytes of the file. The caller frees them. */
static char *read_file(const char *path) {
    char *bytes = NULL;
    size_t size = 0;
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    if (getdelim(&bytes, &size, '\0', file) < 0) bytes = calloc(1, 1);
    fclose(file);
    return bytes;
}

static void write_input(void) {
    FILE *file = fopen(in, "w");
    for (size_t i = 0; i < LINES; i++) fprintf(file, "%s\n\n", asked[i]);
    fclose(file);
}

/* Splits a text into lines and returns their number. The lines point into the text, whose line ends are overwritten. */
static size_t split(char *text, char **lines, size_t most) {
    size_t count = 0;
    for (char *end; count < most && (end = strchr(text, '\n')); text = end + 1) {
        *end = '\0';
        lines[count++] = text;
    }
    ck_assert_msg(!*text, "more than %zu lines, or no end: %s", most, text);
    return count;
}

/* Returns an answer without the members that differ from run to run. */
static json_t *bare(const char *line) {
    json_t *answer = json_loads(line, JSON_DECODE_INT_AS_REAL, NULL), *response;
    ck_assert_msg(answer != NULL, "no JSON: %s", line);
    json_object_del(answer, "stats");
    response = json_object_get(json_object_get(answer, "response"), "body");
    json_object_del(response, "stats");
    json_object_del(response, "created");
    return answer;
}

static void check_same(const char *got, const char *expected, size_t line) {
    json_t *a = bare(got), *b = bare(expected);
    ck_assert_msg(json_equal(a, b), "line %zu: %s\nnot: %s", line, got, expected);
    json_decref(a);
    json_decref(b);
}

/* Output files that an earlier run has left. A digit in `left` means the answer to the line with this number, counted
 * from 1. Any other character means itself. */
#define CUT "{\"id\":\"b\",\"ids\":[4],\"text\":\"MARK\",\"stop\":\"interrupt\"}\n"
#define CANCELLED                                                                        \
    "{\"id\":\"batch_req_7\",\"custom_id\":\"d\",\"response\":null,\"error\":{\"code\":" \
    "\"batch_cancelled\",\"message\":\"MARK\"}}\n"
#define FAILED "{\"id\":null,\"error\":\"MARK\"}\n"

static const struct {
    const char *left;
    const char *marked; /* one character per line of the batch; # means that its answer must be kept */
} ways[] = {
    {"", "......"},
    {"12", "##...."},
    {"1{\"id\":\"b\",\"ids\":[4", "#....."},
    {"1" CUT, "#....."},
    {"1" CUT FAILED "456", "#..###"},
    {"12" FAILED CANCELLED "5", "##..#."},
    {CUT "", NULL},
    {"12" FAILED "456", "##.###"},
};

/* Writes the output file as an earlier run has left it. The answers in it contain a mark, by which the test recognizes
 * answers that were kept. */
static void write_left(const char *left, char **whole) {
    FILE *file = fopen(out, "w");
    while (*left) {
        const char *line = *left >= '1' && *left <= '6' ? whole[*left - '1'] : NULL, *end = strchr(left, '\n');
        int length = line ? 1 : end ? (int)(end + 1 - left) : (int)strlen(left);
        if (line)
            fprintf(file, "%.*s, \"mark\": 1}\n", (int)strlen(line) - 1, line);
        else
            fprintf(file, "%.*s", length, left);
        left += length;
    }
    fclose(file);
}

START_TEST(answers_are_kept) {
    char *whole[LINES], *got[LINES], line[512];
    write_input();
    snprintf(line, sizeof line, BATCH, in, out);
    fr_command first = fr_command_run(line, NULL);
    ck_assert_int_eq(first.status, 1);
    fr_command_free(&first);
    char *expected = read_file(out);
    ck_assert_uint_eq(split(expected, whole, LINES), LINES);
    if (!ways[_i].marked)
        unlink(out);
    else
        write_left(ways[_i].left, whole);
    snprintf(line + strlen(line), sizeof line - strlen(line), "--resume");
    fr_command again = fr_command_run(line, NULL);
    ck_assert_int_eq(again.status, 1);
    ck_assert_str_eq(again.err, "forerun: 1 of 6 lines could not be run: each has its \"error\"\n");
    char *answers = read_file(out);
    ck_assert_uint_eq(split(answers, got, LINES), LINES);
    ck_assert_ptr_null(strstr(answers, "MARK"));
    for (size_t i = 0; i < LINES; i++) {
        bool marked = ways[_i].marked && ways[_i].marked[i] == '#', has = strstr(got[i], ", \"mark\": 1}") != NULL;
        ck_assert_msg(marked == has, "line %zu: %s", i, got[i]);
        if (!marked) check_same(got[i], whole[i], i);
    }
    free(expected);
    free(answers);
    fr_command_free(&again);
}
END_TEST

static const struct {
    const char *left, *says;
} others[] = {
    {"{\"id\":1.10,\"ids\":[]}\n{\"id\":\"c\",\"ids\":[]}\n", "out.jsonl:2: its id is not that of "},
    {"{\"id\":1.1,\"ids\":[]}\n", "in.jsonl:1: these are another batch's answers"},
    {"{\"id\":1.10,\"ids\":[]}\n\n", "out.jsonl:2: this is no JSON object"},
    {"Dear diary,\n", "out.jsonl:1: this is no JSON object"},
    {CUT CUT CUT CUT CUT CUT CUT, "out.jsonl:7: "},
};

START_TEST(another_batchs_answers_are_refused) {
    char line[512];
    write_input();
    write_file(out, others[_i].left);
    snprintf(line, sizeof line, BATCH "--resume", in, out);
    fr_command c = fr_command_run(line, NULL);
    ck_assert_int_eq(c.status, 1);
    ck_assert_msg(strstr(c.err, others[_i].says), "%s", c.err);
    ck_assert_ptr_eq(strchr(c.err, '\n'), c.err + c.err_length - 1);
    char *left = read_file(out);
    ck_assert_str_eq(left, others[_i].left);
    free(left);
    fr_command_free(&c);
}
END_TEST

START_TEST(places_that_hold_no_answers) {
    char line[512];
    write_input();
    snprintf(line, sizeof line, BATCH "--resume", in, "-");
    fr_command c = fr_command_run(line, NULL);
    ck_assert_int_eq(c.status, 2);
    ck_assert_ptr_nonnull(strstr(c.err, "--resume needs the file of answers"));
    fr_command_free(&c);
    ck_assert_int_eq(mkfifo(out, 0600), 0);
    const char *const places[] = {folder, out};
    for (int i = 0; i < 2; i++) {
        snprintf(line, sizeof line, BATCH "--resume", in, places[i]);
        c = fr_command_run(line, NULL);
        ck_assert_int_eq(c.status, 1);
        ck_assert_ptr_nonnull(strstr(c.err, "regular file"));
        fr_command_free(&c);
    }
}
END_TEST

/* Writes three short lines and three lines with n ids each. In the first run n is so large that these three are still
 * running when the signal comes. */
static void write_rest(int n) {
    FILE *file = fopen(in, "w");
    for (int i = 0; i < 6; i++)
        fprintf(file, "{\"id\": %d, \"prompt\": \"The dog\", \"ignore_eos\": true, \"n\": %d}\n", i, i < 3 ? 5 : n);
    fclose(file);
}

/* Starts a command and waits until the output file has this size. If `size` is 0, waits until the file is not empty. */
static pid_t start_and_await(FILE *err, const char *options, off_t size) {
    char line[512];
    struct stat info;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    snprintf(line, sizeof line, "batch " DEMO "-t 1 -np 1 -c 4096 -f %s -o %s %s", in, out, options);
    pid_t process = fr_command_start(line, null, null, fileno(err));
    close(null);
    while (stat(out, &info) != 0 || (size ? info.st_size != size : info.st_size == 0)) usleep(1000);
    return process;
}

START_TEST(an_interrupted_batch_goes_on) {
    char note[512], line[512], *got[6];
    unsigned done, all;
    FILE *err = tmpfile();
    write_rest(3500);
    pid_t process = start_and_await(err, "", 0);
    ck_assert_int_eq(kill(process, SIGINT), 0);
    ck_assert_int_eq(fr_command_wait(process), 128 + SIGINT);
    rewind(err);
    note[fread(note, 1, sizeof note - 1, err)] = '\0';
    fclose(err);
    snprintf(line, sizeof line, "forerun: interrupted: %s has the answers to ", out);
    ck_assert_msg(strncmp(note, line, strlen(line)) == 0, "%s", note);
    ck_assert_int_eq(sscanf(note + strlen(line), "%u of %u lines; the same command with --resume", &done, &all), 2);
    ck_assert(done >= 1 && done < 6 && all == 6);
    write_rest(4);
    fr_command again = fr_command_ok("batch " DEMO "-np 1 -c 4096 -f %s -o %s --resume", in, out);
    ck_assert_str_eq(again.err, "");
    char *answers = read_file(out);
    ck_assert_uint_eq(split(answers, got, 6), 6);
    for (int i = 0; i < 6; i++) {
        json_t *answer = json_loads(got[i], 0, NULL);
        ck_assert_int_eq(json_integer_value(fr_json_get(answer, "id")), i);
        ck_assert_uint_eq(json_array_size(fr_json_get(answer, "ids")), i < 3 ? 5 : 4);
        json_decref(answer);
    }
    fr_command_free(&again);
    free(answers);
}
END_TEST

/* Parts of an output file that an earlier run has left. It has answers to the first and the third of four lines. The
 * second line has not been run yet. */
#define FIRST   "{\"id\":0,\"ids\":[4],\"text\":\"\",\"stop\":\"length\"}"
#define NOT_RUN "{\"error\": \"not run yet\"}\n"
#define THIRD   "{\"id\":2,\"ids\":[4],\"text\":\"MARK\",\"stop\":\"length\"}"

static void write_four(int n) {
    FILE *file = fopen(in, "w");
    for (int i = 0; i < 4; i++)
        fprintf(file, "{\"id\": %d, \"ids\": [2], \"ignore_eos\": true, \"n\": %d}\n", i, i == 1 ? n : 3);
    fclose(file);
}

/* The resumed run is interrupted too. It must still keep the answers to lines after the line that was running. */
START_TEST(answers_behind_are_kept_again) {
    char *got[3];
    FILE *err = tmpfile();
    write_four(3500);
    write_file(out, FIRST "\n{\"id\":1,\"ids\":[],\"text\":\"\",\"stop\":\"interrupt\"}\n" THIRD "\n");
    pid_t process = start_and_await(err, "--resume", sizeof FIRST);
    ck_assert_int_eq(kill(process, SIGINT), 0);
    ck_assert_int_eq(fr_command_wait(process), 128 + SIGINT);
    fclose(err);
    char *answers = read_file(out);
    ck_assert_uint_eq(split(answers, got, 3), 3);
    json_t *cut = json_loads(got[1], 0, NULL);
    ck_assert_int_eq(json_integer_value(fr_json_get(cut, "id")), 1);
    ck_assert_str_eq(json_string_value(fr_json_get(cut, "stop")), "interrupt");
    ck_assert_str_eq(got[2], THIRD);
    json_decref(cut);
    free(answers);
}
END_TEST

/* The command is killed twice while it runs its second line. When it is killed the second time, the file already has an
 * incomplete answer. */
START_TEST(a_killed_batch_has_answers_behind) {
    char *got[4], *whole[4];
    struct stat info;
    write_four(4);
    fr_command all = fr_command_ok("batch " DEMO "-c 4096 -f %s -o -", in);
    ck_assert_uint_eq(split(all.out, whole, 4), 4);
    write_four(3500);
    write_file(out, FIRST "\n{\"id\":1,\"error\":\"MARK\"}\n" THIRD "\n");
    ck_assert_int_eq(chmod(out, 0600), 0);
    for (int i = 0; i < 2; i++) {
        FILE *err = tmpfile();
        pid_t process = start_and_await(err, "--resume", sizeof FIRST);
        ck_assert_int_eq(kill(process, SIGKILL), 0);
        ck_assert_int_eq(fr_command_wait(process), 128 + SIGKILL);
        fclose(err);
        char *left = read_file(out), *behind = read_file(before);
        ck_assert_str_eq(left, FIRST "\n");
        ck_assert_str_eq(behind, NOT_RUN NOT_RUN THIRD "\n");
        ck_assert(stat(before, &info) == 0 && (info.st_mode & 0777) == 0600);
        free(left);
        free(behind);
        write_file(out, FIRST "\n{\"id\":1,\"ids\":[4");
    }
    write_four(4);
    fr_command again = fr_command_ok("batch " DEMO "-c 4096 -f %s -o %s --resume", in, out);
    char *answers = read_file(out);
    ck_assert_uint_eq(split(answers, got, 4), 4);
    ck_assert_str_eq(got[0], FIRST);
    ck_assert_str_eq(got[2], THIRD);
    check_same(got[1], whole[1], 1);
    check_same(got[3], whole[3], 3);
    ck_assert_int_ne(access(before, F_OK), 0);
    fr_command_free(&all);
    fr_command_free(&again);
    free(answers);
}
END_TEST

/* Runs a command that can't write files larger than a few thousand bytes. */
static fr_command run_with_little_room(const char *line) {
    const char *emulator = getenv("FORERUN_EMULATOR");
    char *around = emulator ? strdup(emulator) : NULL, shell[512];
    snprintf(shell, sizeof shell, "sh -c 'ulimit -f 4; exec \"$0\" \"$@\"' %s", around ? around : "");
    setenv("FORERUN_EMULATOR", shell, 1);
    fr_command c = fr_command_run(line, NULL);
    if (around)
        setenv("FORERUN_EMULATOR", around, 1);
    else
        unsetenv("FORERUN_EMULATOR");
    free(around);
    return c;
}

/* The answer is longer than the space on the disk, so a write fails in the middle of the answer. */
START_TEST(a_full_disk_is_told_of) {
    char line[512];
    write_file(in, "{\"prompt\": \"The\", \"n\": 400, \"ignore_eos\": true}\n");
    for (int i = 0; i < 2; i++) {
        snprintf(line, sizeof line, "batch " DEMO "--logprobs 4 -f %s -o %s%s", in, out, i ? " --resume" : "");
        fr_command c = run_with_little_room(line);
        ck_assert_int_eq(c.status, 1);
        ck_assert_msg(strstr(c.err, "out.jsonl: File too large\n"), "%s", c.err);
        fr_command_free(&c);
    }
}
END_TEST

/* Without --resume the whole batch must run again, even if the output file has answers to the same lines. */
START_TEST(a_new_batch_has_nothing_before) {
    char *got[4];
    write_four(4);
    for (int i = 0; i < 2; i++) {
        write_file(before, NOT_RUN NOT_RUN THIRD "\n");
        if (i == 0)
            write_file(out, FIRST "\n");
        else
            unlink(out);
        fr_command c = fr_command_ok("batch " DEMO "-f %s -o %s %s", in, out, i == 0 ? "" : "--resume");
        char *answers = read_file(out);
        ck_assert_uint_eq(split(answers, got, 4), 4);
        ck_assert_ptr_null(strstr(got[2], "MARK"));
        ck_assert_int_ne(access(before, F_OK), 0);
        free(answers);
        fr_command_free(&c);
    }
}
END_TEST

/* --resume makes a copy of the output file. If another program's file already has the name of the copy, this file must
 * be neither read nor lost. */
START_TEST(a_copy_of_that_name_stays) {
    static const char left[] = FIRST "\n{\"id\":1,\"error\":\"MARK\"}\n" THIRD "\n";
    char line[512];
    write_four(4);
    for (int i = 0; i < 2; i++) {
        write_file(before, "Dear diary,\n");
        write_file(out, left);
        snprintf(line, sizeof line, BATCH "%s", in, out, i == 0 ? "--resume" : "");
        fr_command c = fr_command_run(line, NULL);
        char *bytes = read_file(out), *copy = read_file(before);
        ck_assert_int_eq(c.status, i == 0);
        ck_assert((strcmp(bytes, left) == 0) == (i == 0));
        ck_assert((strstr(c.err, "out.jsonl.before: --resume needs this name") != NULL) == (i == 0));
        ck_assert_str_eq(copy, "Dear diary,\n");
        free(bytes);
        free(copy);
        fr_command_free(&c);
    }
    unlink(before);
}
END_TEST

FR_SUITE("cli_resume") {
    TCase *cases = tcase_create("resume");
    tcase_set_timeout(cases, 120);
    tcase_add_checked_fixture(cases, make_folder, remove_folder);
    tcase_add_loop_test(cases, answers_are_kept, 0, sizeof ways / sizeof *ways);
    tcase_add_loop_test(cases, another_batchs_answers_are_refused, 0, sizeof others / sizeof *others);
    tcase_add_test(cases, places_that_hold_no_answers);
    tcase_add_test(cases, an_interrupted_batch_goes_on);
    tcase_add_test(cases, answers_behind_are_kept_again);
    tcase_add_test(cases, a_killed_batch_has_answers_behind);
    tcase_add_test(cases, a_full_disk_is_told_of);
    tcase_add_test(cases, a_new_batch_has_nothing_before);
    tcase_add_test(cases, a_copy_of_that_name_stays);
    suite_add_tcase(suite, cases);
}
