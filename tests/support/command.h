/* Runs the forerun command as a user's shell would.
 *
 * The command is in the parent folder of the test program's, or where the environment variable FORERUN says;
 * FORERUN_EMULATOR is put before it. Command lines are split at blanks; 'single quotes' keep blanks and empty
 * words. */
#ifndef FR_TESTS_COMMAND_H
#define FR_TESTS_COMMAND_H

#include <jansson.h>
#include <stddef.h>
#include <sys/types.h>

/* The models of many suites: a reference model with its references, and the demo model. */
#define FOLDER       "tests/data/models/gemma4-e"
#define MODEL        "-m " FOLDER " "
#define DRAFTER      "-md " FOLDER "/assistant "
#define DEMO         "-m tools/demo/target "
/* A greedy chat with the demo model. */
#define TALK         "chat " DEMO "--temp 0 "
#define DEMO_DRAFTER "-md tools/demo/assistant "

typedef struct fr_command {
    int status; /* the exit status; 128 + n for signal n */
    char *out;  /* NUL-terminated */
    size_t out_length;
    char *err;
    size_t err_length;
} fr_command;

/* input: what standard input holds, NULL for nothing. */
fr_command fr_command_run(const char *line, const char *input);
fr_command fr_command_run_bytes(const char *line, const char *input, size_t length);

/* Runs a command line that must succeed; the second form with this standard input. */
fr_command fr_command_ok(const char *format, ...) __attribute__((format(printf, 1, 2)));
fr_command fr_command_feed(const char *input, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fr_command_free(fr_command *command);

/* Starts a command with the caller's file descriptors; a stream below 0 is closed. */
pid_t fr_command_start(const char *line, int in, int out, int err);

/* Starts a command on a terminal of its own, given by name; standard output goes elsewhere. */
pid_t fr_command_start_on(const char *terminal, const char *line, int out);
int fr_command_wait(pid_t process);

/* The first returns FOLDER's reference.json, which transformers computed; the others return its ids of a prompt, and
 * the greedy ids that follow. */
json_t *fr_reference_json(void);
json_t *fr_reference_prompt(const json_t *reference);
json_t *fr_reference_greedy(const json_t *reference);

/* Returns a member, which must exist. */
json_t *fr_json_get(const json_t *object, const char *key);

/* Writes the first `count` ids as the command line takes them: "1,2,3". */
const char *fr_json_join(const json_t *ids, size_t count, char *list, size_t size);

#endif
