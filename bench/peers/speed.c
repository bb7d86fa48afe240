/* Prompt and decode speed after a warm-up, as llama-bench takes them, for compare.py.
 *
 * usage: speed MODEL THREADS PROMPT NEW
 * In: a model; how many random ids to run, from an empty context: PROMPT of them at once, then NEW one after the other.
 * Out: on standard output, seconds. Everything has been run once before it is timed. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "forerun.h"

#define MAX_PROMPT 65536

static void require(fr_status status) {
    if (status == FR_OK) return;
    fprintf(stderr, "speed: %s\n", fr_last_error());
    exit(1);
}

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* A decode from an empty context begins with a prompt of one id: its forward is the first of those that are counted,
 * and the step behind it only tells what it said. */
static double run(fr_session *session, const int32_t *ids, size_t prompt, size_t more) {
    int32_t id;
    size_t count = 1, accepted;
    fr_session_reset(session);
    double begin = now();
    require(fr_session_prompt(session, ids, prompt ? prompt : 1));
    size_t steps = prompt ? more + 1 : more;
    for (size_t i = 0; i < steps && count > 0; i++) require(fr_session_step(session, &id, 1, &count, &accepted));
    return now() - begin;
}

/* -1 for a text that is no number. */
static long number(const char *text) {
    char *end;
    long value = strtol(text, &end, 10);
    return end == text || *end ? -1 : value;
}

int main(int argc, char **argv) {
    long threads = argc == 5 ? number(argv[2]) : -1, prompt = argc == 5 ? number(argv[3]) : -1;
    long more = argc == 5 ? number(argv[4]) : -1;
    if (threads < 1 || prompt < 0 || prompt > MAX_PROMPT || more < 0 || prompt + more < 1) {
        fprintf(stderr, "usage: speed MODEL THREADS PROMPT NEW\n");
        return 2;
    }
    fr_options *options = fr_options_new();
    fr_model *model;
    fr_session *session;
    require(fr_options_set(options, FR_OPT_THREADS, threads));
    require(fr_options_set(options, FR_OPT_CONTEXT, prompt + more + 1));
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    require(fr_model_open(argv[1], options, &model));
    require(fr_session_open(model, NULL, options, &session));
    static int32_t ids[MAX_PROMPT];
    uint64_t vocab = (uint64_t)fr_model_fact(model, FR_FACT_VOCAB), random = 1;
    for (size_t i = 0; i < MAX_PROMPT; i++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        ids[i] = (int32_t)((random >> 33) % vocab);
    }
    run(session, ids, (size_t)prompt, (size_t)more);
    printf("%.6f\n", run(session, ids, (size_t)prompt, (size_t)more));
    fr_session_close(session);
    fr_model_close(model);
    fr_options_free(options);
    return 0;
}
