/* What several sessions in one forward are worth: an engine's rounds without drafts beside forwards of as many rows,
 * and with drafts, accepted at known rates, beside none.
 *
 * In: a target and its drafter (FILE FILE), or the 1.1 GB that bench_float writes. Out: markdown. Sessions have prompts
 * of their own and write what the target says; drafts cost what the drafter's do, and stand at .80, .62 and .47 of the
 * first three depths. Both manners of a number of sessions run in turn, pair after pair. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/drafting.h"
#include "bench/measure.h"
#include "bench/sample.h"
#include "forerun_lab.h"

enum {
    PAIRS = 7,
    SESSIONS = 8,
    PROMPT = 64,
    SCRIPT = 160, /* ids that drafts are made of; */
    IDS = 80,     /* a session writes so many, more or less */
};

typedef struct bench {
    fr_bench_engine models;
    fr_engine *engine;
    int32_t texts[SESSIONS][PROMPT + SCRIPT]; /* prompts, and what the target says after them */
    double round; /* seconds of one without drafts */
} bench;

static fr_session *open_session(const bench *b, bool drafts) {
    fr_session *session;
    fr_bench_require(fr_options_set(b->models.options, FR_OPT_DRAFT_MAX, drafts ? FR_DRAFT_AUTO : 0));
    fr_bench_require(fr_engine_session(b->engine, b->models.options, &session));
    return session;
}

/* Rounds of all sessions until they have written so many ids together; gives how many they did, and in how many
 * rounds. out: NULL, or where the ids go. */
static size_t write_ids(const bench *b, fr_session *const *sessions, size_t count, size_t wanted, size_t *rounds,
                        int32_t (*out)[PROMPT + SCRIPT]) {
    int32_t ids[SESSIONS][FR_STEP_MAX];
    fr_round round[SESSIONS];
    size_t written = 0, at = PROMPT;
    for (*rounds = 0; written < wanted; ++*rounds) {
        for (size_t i = 0; i < count; i++)
            round[i] = (fr_round){.session = sessions[i], .ids = ids[i], .limit = FR_STEP_MAX};
        fr_bench_require(fr_engine_step(b->engine, round, count));
        for (size_t i = 0; i < count; i++) {
            fr_bench_require(round[i].status);
            for (size_t j = 0; out && j < round[i].count; j++) out[i][at + j] = ids[i][j];
            written += round[i].count;
        }
        at += round[0].count;
    }
    return written;
}

/* What the target says after each prompt, one id a round. */
static void write_scripts(bench *b) {
    fr_session *sessions[SESSIONS];
    size_t rounds;
    for (size_t i = 0; i < SESSIONS; i++) {
        fr_bench_prompt(b->models.model, b->texts[i], PROMPT, i);
        sessions[i] = open_session(b, false);
        fr_bench_require(fr_session_prompt(sessions[i], b->texts[i], PROMPT));
    }
    write_ids(b, sessions, SESSIONS, SESSIONS * SCRIPT, &rounds, b->texts);
    for (size_t i = 0; i < SESSIONS; i++) fr_session_close(sessions[i]);
}

/* Tokens a second of so many sessions. */
static double rate(bench *b, size_t count, bool drafts, size_t pair) {
    fr_session *sessions[SESSIONS] = {0};
    fr_bench_replay replays[SESSIONS];
    size_t rounds;
    for (size_t i = 0; i < count; i++) {
        replays[i] = (fr_bench_replay){.at = {.80, .62 / .80, .47 / .62}, .random = SESSIONS * pair + i + 1};
        for (size_t d = 3; d < FR_STEP_MAX; d++) replays[i].at[d] = replays[i].at[2];
        sessions[i] = open_session(b, drafts);
        if (drafts)
            fr_bench_require(fr_lab_session_script(sessions[i], b->texts[i], PROMPT + SCRIPT, fr_bench_replay_accepts,
                                                   &replays[i]));
        fr_bench_require(fr_session_prompt(sessions[i], b->texts[i], PROMPT));
    }
    write_ids(b, sessions, count, count, &rounds, NULL);
    double start = fr_clock();
    size_t written = write_ids(b, sessions, count, count * IDS, &rounds, NULL);
    double seconds = fr_clock() - start;
    if (!drafts) b->round = seconds / (double)rounds;
    for (size_t i = 0; i < count; i++) fr_session_close(sessions[i]);
    return (double)written / seconds;
}

/* The middle of pairs in turn. */
static void bench_count(bench *b, size_t count, double *one) {
    double none[PAIRS], gains[PAIRS], over[PAIRS], single;
    fr_session *alone = fr_bench_engine_session(&b->models, "none", 0);
    fr_bench_require(fr_session_prompt(alone, b->texts[0], PROMPT + 32));
    for (size_t pair = 0; pair < PAIRS; pair++) {
        none[pair] = rate(b, count, false, pair);
        over[pair] = b->round / (fr_bench_verify_ratio(alone, count, PROMPT, &single) * single);
        gains[pair] = rate(b, count, true, pair) / none[pair];
    }
    fr_session_close(alone);
    double middle = fr_bench_median(none, PAIRS), over_forward = fr_bench_median(over, PAIRS);
    if (count == 1) *one = middle;
    double gain = fr_bench_median(gains, PAIRS); /* which sorts them */
    printf("| %zu | %.3f | %.1f | %.2f | **%.2f** (%.2f to %.2f) |\n", count, over_forward, middle, middle / *one, gain,
           gains[0], gains[PAIRS - 1]);
}

int main(int argc, char **argv) {
    static bench b;
    double one = 0;
    const char *target = argc == 3 ? argv[1] : "build/bench/target";
    setvbuf(stdout, NULL, _IOLBF, 0);
    b.models = fr_bench_engine_open(target, argc == 3 ? argv[2] : "build/bench/assistant");
    fr_bench_require(fr_engine_open(b.models.model, b.models.drafter, b.models.options, SESSIONS, &b.engine));
    write_scripts(&b);
    printf("# forerun, sessions in one forward\n\n%d pairs in turn, %d ids a session\n\n"
           "| sessions | a round over a forward | tokens/s | over one | auto over none |\n"
           "| --- | --- | --- | --- | --- |\n",
           PAIRS, IDS);
    for (size_t count = 1; count <= SESSIONS; count *= 2) bench_count(&b, count, &one);
    fr_engine_close(b.engine);
    fr_bench_engine_close(&b.models);
    return 0;
}
