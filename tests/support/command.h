/* Runs the forerun command as a user's shell would.
 *
 * The command is in the parent folder of the test program's folder. If the environment variable FORERUN is set, it
 * gives another path. The text of FORERUN_EMULATOR is put before the command. Command lines are split at spaces. Single
 * quotes keep spaces and empty arguments together ('a b', ''). */
#ifndef FR_TESTS_COMMAND_H
#define FR_TESTS_COMMAND_H

#include <jansson.h>
#include <stddef.h>
#include <sys/types.h>

/* The models that many suites use: a reference model with its references, and the demo model. */
#define FOLDER       "tests/data/models/gemma4-e"
#define MODEL        "-m " FOLDER " "
#define DRAFTER      "-md " FOLDER "/assistant "
#define DEMO         "-m tools/demo/target "
/* A greedy chat with the demo model. */
#define TALK         "chat " DEMO "--temp 0 "
#define DEMO_DRAFTER "-md tools/demo/assistant "

typedef struct fr_command {
    int status; /* exit status, or 128 + n for signal n */
    char *out;  /* NUL-terminated */
    size_t out_length;
    char *err;
    size_t err_length;
} fr_command;

/* Runs a command line. `input` is the content of standard input; NULL means that it is empty. */
fr_command fr_command_run(const char *line, const char *input);
fr_command fr_command_run_bytes(const char *line, const char *input, size_t length);

/* fr_command_ok runs a command line that must succeed. fr_command_feed does the same, with `input` as the content of
 * standard input. */
fr_command fr_command_ok(const char *format, ...) __attribute__((format(printf, 1, 2)));
fr_command fr_command_feed(const char *input, const char *format, ...) __attribute__((format(printf, 2, 3)));
void fr_command_free(fr_command *command);

/* Starts a command with the caller's file descriptors as its streams. If a descriptor is negative, that stream is
 * closed. */
pid_t fr_command_start(const char *line, int in, int out, int err);

/* Starts a command on the terminal with this name. Its standard output goes to `out`. */
pid_t fr_command_start_on(const char *terminal, const char *line, int out);
int fr_command_wait(pid_t process);

/* fr_reference_json returns FOLDER's reference.json, which transformers computed. The two other functions return the
 * ids of one of its prompts, and the greedy ids after this prompt. */
json_t *fr_reference_json(void);
json_t *fr_reference_prompt(const json_t *reference);
json_t *fr_reference_greedy(const json_t *reference);

/* Returns a member of an object. The member must exist. */
json_t *fr_json_get(const json_t *object, const char *key);

/* Writes the first `count` ids in the format of the command line: "1,2,3". */
const char *fr_json_join(const json_t *ids, size_t count, char *list, size_t size);

#endif
