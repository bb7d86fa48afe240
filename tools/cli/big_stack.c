/* Runs the command on the stack of a thread (big_stack.h). */
#include "tools/cli/big_stack.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/resource.h>

#include "tools/cli/output.h"

/* The library needs 300 KB of its caller's stack. The rest is for parsers that recurse on nested input. */
#define STACK_BYTES ((size_t)4 << 20)

typedef struct command {
    fr_command_fn *run;
    int count, code;
    char **words;
} command;

static void *run_there(void *context) {
    command *c = context;
    c->code = c->run(c->count, c->words);
    return NULL;
}

static int run_on_thread(command *c) {
    pthread_t thread;
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (!error) error = pthread_attr_setstacksize(&attributes, STACK_BYTES);
    if (!error) error = pthread_create(&thread, &attributes, run_there, c);
    if (error)
        return fr_bad_input("a stack of %zu KB can't be had: %s (ulimit -s is below it: raise that)", STACK_BYTES >> 10,
                            strerror(error));
    pthread_attr_destroy(&attributes);
    pthread_join(thread, NULL);
    return c->code;
}

int fr_run_on_big_stack(fr_command_fn *run, int count, char **words) {
    struct rlimit limit;
    bool enough = getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= STACK_BYTES;
    return enough ? run(count, words) : run_on_thread(&(command){.run = run, .count = count, .words = words});
}
