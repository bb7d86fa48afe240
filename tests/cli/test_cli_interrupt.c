/* Tests generate and batch when a signal interrupts them. The text so far must be printed, and the files must have it.
 * A second signal must end the program at once.
 *
 * The tests do not depend on speed. The command writes into a pipe that is too small for all of its output. So it can't
 * finish before the test reads the pipe. */
/* suite: threads native */
#include <check.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/command.h"
#include "tests/support/suite.h"

#define LONG  "generate -no-cnv " DEMO "-t 1 --ignore-eos -n 1500 "
#define START "-p 'The cat sat on the mat, and the dog' "

enum { PIPE = 4096 }; /* size of the pipe in bytes */

static char folder[32], cache[64], trace[64];

static void make_folder(void) {
    snprintf(folder, sizeof folder, "/tmp/forerun-interrupt-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(cache, sizeof cache, "%s/cache", folder);
    snprintf(trace, sizeof trace, "%s/trace", folder);
}

static void remove_folder(void) {
    unlink(cache);
    unlink(trace);
    ck_assert_msg(rmdir(folder) == 0, "something else is left in the folder");
}

/* A command that has begun to write. Now it waits until the test reads more. */
typedef struct running {
    pid_t process;
    int from; /* the pipe that blocks the command; the test has read only its first byte */
    /* the other output. If the pipe has the text, this is standard error. If the pipe has the trace, this is the
     * text */
    FILE *rest;
} running;

static void small_pipe(int fds[2]) {
    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    ck_assert_int_ge(fcntl(fds[1], F_SETPIPE_SZ, PIPE), 0);
}

static running await_byte(pid_t process, int from, FILE *rest) {
    char byte;
    ck_assert_int_eq(read(from, &byte, 1), 1);
    return (running){process, from, rest};
}

/* Starts a command that writes its text into the pipe. */
static running start_text(const char *options) {
    char line[8192];
    int out[2], null = open("/dev/null", O_RDONLY);
    FILE *err = tmpfile();
    snprintf(line, sizeof line, LONG "%s", options);
    small_pipe(out);
    pid_t process = fr_command_start(line, null, out[1], fileno(err));
    close(out[1]);
    close(null);
    return await_byte(process, out[0], err);
}

/* Starts a command that writes its trace into the pipe. The command gets a path that leads to the pipe. */
static running start_traced(const char *options) {
    char line[8192];
    int null = open("/dev/null", O_RDWR);
    FILE *out = tmpfile();
    ck_assert_int_eq(mkfifo(trace, 0600), 0);
    int from = open(trace, O_RDONLY | O_NONBLOCK | O_CLOEXEC), hold = open(trace, O_WRONLY | O_CLOEXEC);
    ck_assert_int_ge(fcntl(from, F_SETPIPE_SZ, PIPE), 0);
    ck_assert_int_eq(fcntl(from, F_SETFL, 0), 0);
    snprintf(line, sizeof line, LONG "--output json --trace %s %s", trace, options);
    pid_t process = fr_command_start(line, null, fileno(out), null);
    running r = await_byte(process, from, out);
    close(hold);
    close(null);
    return r;
}

/* Reads the rest of the pipe, waits until the command ends, and closes everything. Returns the bytes of the pipe.
 * `other` gets the other output. The command must end with this status. */
static char *finish(running *r, size_t *length, char *other, size_t size, int status) {
    char *bytes = NULL;
    ssize_t got = 1;
    for (*length = 0; got > 0; *length += (size_t)got) {
        bytes = realloc(bytes, *length + PIPE + 1);
        got = read(r->from, bytes + *length, PIPE);
        ck_assert_int_ge(got, 0);
    }
    bytes[*length] = '\0';
    ck_assert_int_eq(fr_command_wait(r->process), status);
    rewind(r->rest);
    other[fread(other, 1, size - 1, r->rest)] = '\0';
    fclose(r->rest);
    close(r->from);
    return bytes;
}

static json_t *parse(const char *text) {
    json_t *object = json_loads(text, 0, NULL);
    ck_assert_msg(object != NULL, "no JSON: %s", text);
    return object;
}

static double stat_of(const json_t *object, const char *name) {
    return json_number_value(fr_json_get(fr_json_get(object, "stats"), name));
}

/* Returns the last line of a trace. */
static json_t *last_line(char *lines, size_t length) {
    ck_assert_int_eq(lines[length - 1], '\n');
    lines[length - 1] = '\0';
    return parse(strrchr(lines, '\n') + 1);
}

static json_t *run_json(const char *options) {
    fr_command c = fr_command_ok(LONG "--output json %s", options);
    json_t *object = parse(c.out);
    fr_command_free(&c);
    return object;
}

/* If a text is interrupted, a newline and the statistics must follow it. The next run must continue the text where it
 * was interrupted, from the saved cache. */
START_TEST(a_text_ends_with_all_that_is_known) {
    char options[256], err[4096];
    size_t length;
    snprintf(options, sizeof options, START "--stats --prompt-cache %s", cache);
    running r = start_text(options);
    ck_assert_int_eq(kill(r.process, SIGINT), 0);
    char *text = finish(&r, &length, err, sizeof err, 128 + SIGINT);
    ck_assert_int_eq(text[length - 1], '\n');
    ck_assert_msg(strncmp(err, "prompt ", 7) == 0 && strstr(err, "\ngenerated "), "%s", err);

    json_t *again = run_json(options), *whole;
    ck_assert_int_eq((int)stat_of(again, "prompt_tokens"), 0);
    ck_assert_int_gt((int)stat_of(again, "reused_tokens"), 0);
    whole = run_json(START);
    ck_assert(json_equal(fr_json_get(again, "ids"), fr_json_get(whole, "ids")));
    const char *all = json_string_value(fr_json_get(whole, "text"));
    ck_assert_uint_lt(length, strlen(all));
    ck_assert_mem_eq(text, all + 1, length - 1);
    json_decref(again);
    json_decref(whole);
    free(text);
}
END_TEST

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
enum { SIGNALS = sizeof signals / sizeof *signals };

START_TEST(json_and_trace_say_interrupt) {
    char json[65536];
    size_t length;
    running r = start_traced(START DEMO_DRAFTER);
    ck_assert_int_eq(kill(r.process, signals[_i]), 0);
    char *lines = finish(&r, &length, json, sizeof json, 128 + signals[_i]);
    json_t *object = parse(json), *last = last_line(lines, length), *whole = run_json(START);
    ck_assert_str_eq(json_string_value(fr_json_get(object, "stop")), "interrupt");
    ck_assert_str_eq(json_string_value(fr_json_get(last, "event")), "stats");
    ck_assert_str_eq(json_string_value(fr_json_get(last, "stop")), "interrupt");
    ck_assert(json_equal(fr_json_get(last, "stats"), fr_json_get(object, "stats")));
    const json_t *ids = fr_json_get(object, "ids"), *all = fr_json_get(whole, "ids");
    ck_assert_uint_gt(json_array_size(ids), 0);
    ck_assert_uint_lt(json_array_size(ids), json_array_size(all));
    ck_assert_uint_eq(json_array_size(ids), (size_t)stat_of(object, "generated_tokens"));
    for (size_t i = 0; i < json_array_size(ids); i++)
        ck_assert(json_equal(json_array_get(ids, i), json_array_get(all, i)));
    json_decref(object);
    json_decref(whole);
    json_decref(last);
    free(lines);
}
END_TEST

/* The signal comes in the middle of a prompt of 1500 ids. The ids that were run before must be kept, so that the next
 * run does not run them again. */
START_TEST(a_prompt_is_kept_as_far_as_it_came) {
    char options[8000], json[4096];
    size_t length;
    int at = snprintf(options, sizeof options, "--chunk 1 --prompt-cache %s --ids 2", cache);
    for (int i = 1; i < 1500; i++) at += snprintf(options + at, sizeof options - (size_t)at, ",%d", 300 + i % 7);
    running r = start_traced(options);
    ck_assert_int_eq(kill(r.process, SIGINT), 0);
    char *lines = finish(&r, &length, json, sizeof json, 128 + SIGINT);
    json_t *object = parse(json), *last = last_line(lines, length), *again, *fresh;
    ck_assert_str_eq(json_string_value(fr_json_get(object, "stop")), "interrupt");
    ck_assert_str_eq(json_string_value(fr_json_get(object, "text")), "");
    ck_assert_uint_eq(json_array_size(fr_json_get(object, "ids")), 0);
    ck_assert(stat_of(object, "prefill_seconds") > 0);
    ck_assert_str_eq(json_string_value(fr_json_get(last, "stop")), "interrupt");

    unlink(trace);
    memcpy(options, "--chunk 9", 9);
    snprintf(options + at, sizeof options - (size_t)at, " -n 20");
    again = run_json(options);
    int ran = (int)stat_of(object, "prompt_tokens");
    ck_assert(ran > 0 && ran < 1000);
    ck_assert_int_eq((int)stat_of(again, "reused_tokens"), ran);
    ck_assert_int_eq((int)stat_of(again, "prompt_tokens"), 1500 - ran);
    ck_assert_int_eq((int)stat_of(again, "rerun_tokens"), 0);
    unlink(cache);
    fresh = run_json(options);
    ck_assert(json_equal(fr_json_get(again, "ids"), fr_json_get(fresh, "ids")));
    json_decref(object);
    json_decref(last);
    json_decref(again);
    json_decref(fresh);
    free(lines);
}
END_TEST

/* Writes a batch with far more lines than can be answered before the signal comes. The command answers two lines at a
 * time. */
static void write_batch(void) {
    FILE *lines = fopen(cache, "w");
    ck_assert_ptr_nonnull(lines);
    fputs("{\"id\": 0, \"prompt\": \"The cat\", \"n\": 1}\n", lines);
    fputs("nonsense\n", lines); /* this line gives an error. The exit status must still be that of the signal */
    for (int i = 1; i < 200; i++) fprintf(lines, "{\"id\": %d, \"prompt\": \"The dog\", \"n\": 1500}\n", i);
    fclose(lines);
}

/* When the signal comes, some lines are done, some are running, and the others have not begun. The lines that are done
 * or running must be answered in order. The others must not be answered. */
START_TEST(a_batch_answers_what_was_begun) {
    char err[4096], options[128];
    size_t length, interrupted = 0;
    int out[2], null = open("/dev/null", O_RDONLY), id = 1;
    FILE *rest = tmpfile();
    write_batch();
    snprintf(options, sizeof options, "batch " DEMO "-t 1 -np 2 --ignore-eos -f %s -o -", cache);
    small_pipe(out);
    pid_t process = fr_command_start(options, null, out[1], fileno(rest));
    close(out[1]);
    close(null);
    running r = await_byte(process, out[0], rest);
    ck_assert_int_eq(kill(process, SIGINT), 0);
    char *lines = finish(&r, &length, err, sizeof err, 128 + SIGINT);
    char *line = strchr(strchr(lines, '\n') + 1, '\n') + 1; /* skips the answers to the first two lines */
    for (char *end; (end = strchr(line, '\n')); line = end + 1, id++) {
        *end = '\0';
        json_t *answer = parse(line);
        const char *stop = json_string_value(fr_json_get(answer, "stop"));
        ck_assert_int_eq(json_integer_value(fr_json_get(answer, "id")), id);
        interrupted += strcmp(stop, "interrupt") == 0;
        ck_assert(interrupted > 0 || strcmp(stop, "length") == 0);
        json_decref(answer);
    }
    ck_assert_uint_ge(interrupted, 1);
    ck_assert_uint_le(interrupted, 2);
    ck_assert_int_lt(id, 200);
    free(lines);
}
END_TEST

/* Fills the pipe through a second descriptor, so that the command's own writes block. */
static void fill(int pipe) {
    char name[32];
    snprintf(name, sizeof name, "/proc/self/fd/%d", pipe);
    int to = open(name, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    while (write(to, "", 1) == 1) continue;
    close(to);
}

/* After the first signal the command can't end by itself, because the pipe has no room for the newline that it writes
 * at the end. The second signal must end it at once and remove the unfinished trace. */
START_TEST(a_second_signal_ends_it_at_once) {
    char options[256];
    int status;
    snprintf(options, sizeof options, START "--trace %s --prompt-cache %s", trace, cache);
    running r = start_text(options);
    fill(r.from);
    for (pid_t ended = 0; ended == 0; usleep(1000)) {
        kill(r.process, signals[_i]);
        ended = waitpid(r.process, &status, WNOHANG);
        ck_assert_int_ge(ended, 0);
    }
    ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == signals[_i]);
    ck_assert_int_ne(access(trace, F_OK), 0);
    ck_assert_int_ne(access(cache, F_OK), 0);
    fclose(r.rest);
    close(r.from);
}
END_TEST

/* A signal that was ignored when the command started must stay ignored. nohup and background jobs of a shell rely on
 * this. */
START_TEST(an_ignored_signal_stays_ignored) {
    char err[4096];
    size_t length;
    signal(signals[_i], SIG_IGN);
    running r = start_text(START);
    signal(signals[_i], SIG_DFL);
    ck_assert_int_eq(kill(r.process, signals[_i]), 0);
    char *text = finish(&r, &length, err, sizeof err, 0);
    fr_command whole = fr_command_ok(LONG START);
    ck_assert_str_eq(text, whole.out + 1);
    fr_command_free(&whole);
    free(text);
}
END_TEST

FR_SUITE("cli_interrupt") {
    TCase *cases = tcase_create("cli_interrupt");
    tcase_set_timeout(cases, 300);
    tcase_add_checked_fixture(cases, make_folder, remove_folder);
    tcase_add_test(cases, a_text_ends_with_all_that_is_known);
    tcase_add_loop_test(cases, json_and_trace_say_interrupt, 0, SIGNALS);
    tcase_add_test(cases, a_batch_answers_what_was_begun);
    tcase_add_test(cases, a_prompt_is_kept_as_far_as_it_came);
    tcase_add_loop_test(cases, a_second_signal_ends_it_at_once, 0, SIGNALS);
    tcase_add_loop_test(cases, an_ignored_signal_stays_ignored, 0, SIGNALS);
    suite_add_tcase(suite, cases);
}
