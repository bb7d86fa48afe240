/* Tests options of serve that come from a configuration file or from the environment. Checks which source has priority,
 * and the error line for a wrong setting. */
/* suite: quick */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/support/command.h"
#include "tests/support/http_client.h"
#include "tests/support/server.h"
#include "tests/support/suite.h"

#define TARGET "tools/demo/target"

static char path[40];

static void write_settings(const char *text) {
    snprintf(path, sizeof path, "/tmp/forerun-sources-XXXXXX");
    int handle = mkstemp(path);
    ck_assert_int_ge(handle, 0);
    ck_assert_int_eq(write(handle, text, strlen(text)), (ssize_t)strlen(text));
    close(handle);
}

/* Returns the status of a GET request. */
static int status_of(const fr_server *server, const char *resource) {
    char *text;
    int status = fr_client_once(server->port, "GET", resource, NULL, NULL, &text);
    free(text);
    return status;
}

/* Waits up to ten seconds for the server to write this text to standard error. Returns true if the server has written
 * it. */
static bool said(const fr_server *server, const char *text) {
    for (int i = 0; i < 1000; i++) {
        char *all = fr_server_said(server);
        bool found = strstr(all, text) != NULL;
        free(all);
        if (found) return true;
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    return false;
}

START_TEST(a_file_names_options) {
    write_settings("# a comment\n\nmodel = " TARGET "\n--alias = \" a model \"\r\nparallel=3\nctx-size = 320\n"
                   "no-ui\nmetrics = off\nslots = on\n");
    fr_server server = fr_server_start("--config %s", path);
    ck_assert(said(&server, "ready:  a model , 3 slots with a context of 320 tokens"));
    ck_assert_int_eq(status_of(&server, "/slots"), 200);
    ck_assert_int_ne(status_of(&server, "/metrics"), 200);
    fr_server_stop(&server);
    unlink(path);
}
END_TEST

/* The command line has the highest priority. Then come the file, FORERUN_ variables, and llama.cpp's variables. The
 * server prints a note with those of llama.cpp's variables that had an effect. */
START_TEST(the_nearest_source_is_taken) {
    write_settings("parallel = 3\nctx-size = 320\n");
    setenv("FORERUN_CTX_SIZE", "160", 1);
    setenv("FORERUN_ALIAS", "mine", 1);
    setenv("FORERUN_VERSION", "1", 1);
    setenv("LLAMA_ARG_ALIAS", "theirs", 1);
    setenv("LLAMA_ARG_N_PARALLEL", "7", 1);
    setenv("LLAMA_ARG_ENDPOINT_METRICS", "1", 1);
    setenv("LLAMA_ARG_PORT", "", 1);
    fr_server server = fr_server_start("-m " TARGET " -np 2 --config %s", path);
    ck_assert(said(&server, "ready: mine, 2 slots with a context of 320 tokens"));
    ck_assert(said(&server, "set by the environment: LLAMA_ARG_ENDPOINT_METRICS\n"));
    ck_assert_int_eq(status_of(&server, "/metrics"), 200);
    fr_server_stop(&server);
    unlink(path);
}
END_TEST

START_TEST(a_variable_names_the_file) {
    write_settings("model = " TARGET "\n");
    setenv("FORERUN_CONFIG", path, 1);
    setenv("FORERUN_ALIAS", "mine", 1);
    fr_server server = fr_server_start("--no-slots");
    ck_assert_int_eq(status_of(&server, "/health"), 200);
    fr_server_stop(&server);
    unlink(path);
}
END_TEST

/* If a line of the file is wrong, the command ends with one error line that gives the name of the file and the number
 * of the line. */
START_TEST(wrong_settings_are_refused) {
    static const struct {
        const char *settings, *says;
        int status;
    } wrong[] = {{"model = x\n\nprot = 3\n", ", line 3: unknown option --prot; did you mean --port?", 2},
                 {"port = 99999\n", ", line 1: --port 99999 is out of range: 0 to 65535", 2},
                 {"port\n", ", line 1: --port needs a value", 2},
                 {"metrics = 3\n", ", line 1: --metrics takes on or off, not 3", 2},
                 {"[server]\n", ", line 1: [server]: sections are not supported", 2},
                 {"config = other\n", ", line 1: a file can't name another file of options", 2},
                 {"help\n", ", line 1: --help belongs on the command line", 2},
                 {"model = x\nversion = on\n", ", line 2: --version belongs on the command line", 2},
                 {"= 3\n", ", line 1: \"\" is not an option's long name", 2},
                 {"-p = 3\n", ", line 1: \"-p\" is not an option's long name", 2},
                 {"top k = 3\n", ", line 1: \"top k\" is not an option's long name", 2},
                 {"alias = a\nalias = b\n", ", line 2: --alias is given twice", 2},
                 {"chunks = 3\n", ", line 1: serve takes no --chunks; perplexity, imatrix do", 2}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char line[128], says[128];
        write_settings(wrong[i].settings);
        snprintf(line, sizeof line, "serve --config %s", path);
        snprintf(says, sizeof says, "forerun: %s%s", path, wrong[i].says);
        fr_command c = fr_command_run(line, NULL);
        ck_assert_int_eq(c.status, wrong[i].status);
        ck_assert_msg(strncmp(c.err, says, strlen(says)) == 0, "%s instead of %s", c.err, says);
        ck_assert_ptr_eq(strchr(c.err, '\n'), c.err + c.err_length - 1);
        fr_command_free(&c);
        unlink(path);
    }
}
END_TEST

START_TEST(wrong_variables_are_refused) {
    static const char *const wrong[][3] = {
        {"FORERUN_PORT", "x", "forerun: FORERUN_PORT: --port x: not a whole number"},
        {"LLAMA_ARG_ENDPOINT_SLOTS", "maybe", "forerun: LLAMA_ARG_ENDPOINT_SLOTS: --slots takes on or off, not maybe"},
        {"LLAMA_ARG_LOG_FILE", "f", "forerun: LLAMA_ARG_LOG_FILE: --log-file is llama.cpp's; forerun: "},
        {"FORERUN_CONFIG", "no/such/file", "forerun: no/such/file: No such file"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        setenv(wrong[i][0], wrong[i][1], 1);
        fr_command c = fr_command_run("serve -m x", NULL);
        ck_assert_int_ne(c.status, 0);
        ck_assert_msg(strncmp(c.err, wrong[i][2], strlen(wrong[i][2])) == 0, "%s instead of %s", c.err, wrong[i][2]);
        fr_command_free(&c);
        unsetenv(wrong[i][0]);
    }
}
END_TEST

FR_SUITE("serve sources") {
    TCase *tests = tcase_create("sources");
    tcase_add_test(tests, a_file_names_options);
    tcase_add_test(tests, the_nearest_source_is_taken);
    tcase_add_test(tests, a_variable_names_the_file);
    tcase_add_test(tests, wrong_settings_are_refused);
    tcase_add_test(tests, wrong_variables_are_refused);
    suite_add_tcase(suite, tests);
}
