/* Measures several sessions that share each forward. Rounds without drafts are compared with plain forwards that have
 * one row for each session. Rounds with drafts, which are accepted at known rates, are compared with rounds without
 * drafts. Two more things are timed: forking a long timeline, and a prompt that begins like an earlier one.
 *
 * In: FILE FILE [RATES [COUNT]], a target, its drafter, the acceptance rates and the largest number of sessions.
 * Without files, the target of 1.1 GB and the drafter that bench_float writes are measured. Out: markdown. Every
 * session has its own prompt and writes the target's text. Making a draft costs as much as with the real drafter. For
 * each number of sessions, rounds with and without drafts are measured in turn, pair after pair.
 *
 * RATES lists, for each depth, the share of the drafts at that depth that are accepted. Its last number holds for all
 * greater depths; the default is .80, .775 and .758. RATES may also be told:MEAN. Then each draft comes with a
 * probability, either .97 or a random one from 0 to .7, and is right with that probability. MEAN is the mean of the
 * probabilities. Real drafters predict their drafts' chances about as well. With such probabilities, a chain can be
 * ended before the draft that will fail. Without them it can't. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/sizes.h"
#include "bench/drafting.h"
#include "bench/measure.h"
#include "bench/sample.h"
#include "forerun_lab.h"

enum {
    PAIRS = 7,      /* pairs of measurements, with and without drafts */
    SESSIONS = 8,   /* largest number of sessions */
    PROMPT = 64,    /* ids of a prompt */
    SCRIPT = 160,   /* number of ids after each prompt for which drafts are scripted */
    IDS = 80,       /* the approximate number of ids that each session writes */
    FORKED = 16384, /* the largest number of positions of the timeline that is forked */
    FORKS = 15,     /* number of forks that are timed */
    COMMON = 4096,  /* the largest number of ids that two prompts have in common at their beginning */
    PROMPTS = 3,    /* number of timed pairs of prompts */
    GOING_ON = 64,  /* ids that a prompt has after the common beginning */
};

typedef struct bench {
    fr_bench_engine models;
    fr_engine *engine;
    int32_t texts[SESSIONS][PROMPT + SCRIPT]; /* each session's prompt, followed by the target's text */
    double round;                             /* seconds of a round without drafts */
    double rates[FR_STEP_MAX];                /* the share of drafts that are accepted at each depth */
    /* mean of the probabilities that come with drafts; 0 if drafts have no probabilities */
    double told;
} bench;

static fr_session *open_session(const bench *b, bool drafts) {
    fr_session *session;
    fr_bench_require(fr_options_set(b->models.options, FR_OPT_DRAFT_MAX, drafts ? FR_DRAFT_AUTO : 0));
    fr_bench_require(fr_engine_session(b->engine, b->models.options, &session));
    return session;
}

/* Runs rounds of all sessions until they have written `wanted` ids together. Gives the number of ids. *rounds: number
 * of rounds. out: the array that gets the ids, or NULL. */
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

/* Writes the target's text after each prompt, one id in each round. */
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

/* Holds the state with which `tell` makes one session's drafts, each with a probability. */
typedef struct teller {
    const int32_t *ids; /* [PROMPT + SCRIPT] the prompt and the target's text, from which right drafts are taken */
    int32_t vocab;
    double mean;
    uint64_t random;
} teller;

static double draw(uint64_t *random) {
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (double)(*random >> 11) * 0x1p-53;
}

static size_t tell(void *context, fr_drafting *drafting) {
    teller *t = context;
    const double sure = .97, unsure = .7;
    double share = (t->mean - unsure / 2) / (sure - unsure / 2);
    size_t count = 0;
    for (; count < drafting->count && drafting->length + count < PROMPT + SCRIPT; count++) {
        int32_t right = t->ids[drafting->length + count];
        double chance = draw(&t->random) < share ? sure : unsure * draw(&t->random);
        drafting->drafts[count] = draw(&t->random) < chance ? right : (right + 1) % t->vocab;
        if (drafting->odds) drafting->odds[count] = (float)chance;
    }
    drafting->tells_odds = drafting->odds != NULL;
    return count;
}

/* Gives the tokens per second that `count` sessions generate together. */
static double rate(bench *b, size_t count, bool drafts, size_t pair) {
    fr_session *sessions[SESSIONS] = {0};
    fr_bench_replay replays[SESSIONS];
    teller tellers[SESSIONS];
    size_t rounds;
    for (size_t i = 0; i < count; i++) {
        tellers[i] = (teller){.ids = b->texts[i],
                              .vocab = (int32_t)fr_model_fact(b->models.model, FR_FACT_VOCAB),
                              .mean = b->told,
                              .random = SESSIONS * pair + i + 1};
        replays[i] = (fr_bench_replay){.random = SESSIONS * pair + i + 1};
        memcpy(replays[i].at, b->rates, sizeof b->rates);
        sessions[i] = open_session(b, drafts);
        if (drafts && b->told > 0)
            fr_bench_require(
                fr_session_set_proposer(sessions[i], &(fr_proposer){.propose = tell, .context = &tellers[i]}));
        else if (drafts)
            fr_bench_require(
                fr_lab_session_script(sessions[i], b->texts[i], PROMPT + SCRIPT, fr_bench_replay_accepts, &replays[i]));
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

/* Measures rounds with and without drafts in turn, and prints the medians. */
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
    double gain = fr_bench_median(gains, PAIRS); /* this also sorts the gains */
    printf("| %zu | %.3f | %.1f | %.2f | **%.2f** (%.2f to %.2f) |\n", count, over_forward, middle, middle / *one, gain,
           gains[0], gains[PAIRS - 1]);
}

/* ------------------------------------------------------------------------------------------------ common beginnings */

static double used_bytes(const fr_session *session) {
    return fr_session_stat(session, FR_STAT_KV_USED_BYTES);
}

static void say_one(fr_session *session) {
    int32_t id;
    size_t count, accepted;
    fr_bench_require(fr_session_step(session, &id, 1, &count, &accepted));
}

/* Times forks of one timeline. Prints how many pages a fork takes: none at first, and some when both timelines
 * continue. */
static void bench_forks(const bench *b, int32_t *ids, size_t length) {
    double seconds[FORKS], before, forked, gone;
    fr_session *session = open_session(b, false), *fork;
    fr_bench_prompt(b->models.model, ids, length, 0);
    fr_bench_require(fr_session_prompt(session, ids, length));
    say_one(session);
    for (size_t i = 0; i < FORKS; i++) {
        double start = fr_clock();
        fr_bench_require(fr_session_fork(session, NULL, &fork));
        seconds[i] = fr_clock() - start;
        fr_session_close(fork);
    }
    before = used_bytes(session);
    fr_bench_require(fr_session_fork(session, NULL, &fork));
    forked = used_bytes(session);
    say_one(session);
    say_one(fork);
    gone = used_bytes(session);
    printf("| fork of %zu positions, ms (at most 1) | %.3f |\n| pages it holds, MB | %.1f |\n"
           "| pages it copies, MB | %.3f |\n| copied once both went on, MB (a page of each layer) | %.3f |\n",
           length, 1e3 * fr_bench_median(seconds, FORKS), before / 1e6, (forked - before) / 1e6, (gone - forked) / 1e6);
    fr_session_close(fork);
    fr_session_close(session);
}

static double prompt_seconds(const bench *b, const int32_t *ids, size_t count, fr_session **session) {
    *session = open_session(b, false);
    double start = fr_clock();
    fr_bench_require(fr_session_prompt(*session, ids, count));
    return fr_clock() - start;
}

/* Times a prompt, and then another prompt with the same beginning while the pages of the first one are still in the
 * cache. */
static void bench_prompts(const bench *b, int32_t *ids, size_t common) {
    double shares[PROMPTS];
    for (size_t pair = 0; pair < PROMPTS; pair++) {
        fr_session *first, *second;
        fr_bench_prompt(b->models.model, ids, common + 1, pair + 1);
        double alone = prompt_seconds(b, ids, common + 1, &first);
        ids[common] ^= 1;
        shares[pair] = prompt_seconds(b, ids, common + 1, &second) / alone;
        fr_session_close(second);
        fr_session_close(first);
    }
    printf("| second prompt of %zu common positions, %% of the first's time (at most 3) | %.2f |\n", common,
           100 * fr_bench_median(shares, PROMPTS));
}

static void bench_beginnings(bench *b) {
    static int32_t ids[FORKED];
    size_t most = (size_t)fr_model_fact(b->models.model, FR_FACT_CONTEXT_LIMIT) - GOING_ON;
    size_t forked = fr_smaller(FORKED, most);
    fr_bench_require(fr_options_set(b->models.options, FR_OPT_CONTEXT, (int64_t)forked + GOING_ON));
    fr_bench_require(fr_engine_open(b->models.model, b->models.drafter, b->models.options, 2, &b->engine));
    printf("\n| common beginnings | |\n| --- | --- |\n");
    bench_forks(b, ids, forked);
    bench_prompts(b, ids, fr_smaller(COMMON, forked));
    fr_engine_close(b->engine);
}

static void read_rates(bench *b, const char *list) {
    double rate = 0;
    char *end;
    if (strncmp(list, "told:", 5) == 0) {
        b->told = strtod(list + 5, NULL);
        return;
    }
    for (size_t d = 0; d < FR_STEP_MAX; d++) {
        if (*list) rate = strtod(list, &end);
        if (*list) list = *end ? end + 1 : end;
        b->rates[d] = rate;
    }
}

int main(int argc, char **argv) {
    static bench b;
    double one = 0;
    const char *target = argc >= 3 ? argv[1] : "build/bench/target";
    size_t most = argc >= 5 ? fr_smaller(SESSIONS, strtoul(argv[4], NULL, 10)) : SESSIONS;
    setvbuf(stdout, NULL, _IOLBF, 0);
    read_rates(&b, argc >= 4 ? argv[3] : ".80,.775,.758");
    b.models = fr_bench_engine_open(target, argc >= 3 ? argv[2] : "build/bench/assistant");
    fr_bench_require(fr_engine_open(b.models.model, b.models.drafter, b.models.options, SESSIONS, &b.engine));
    write_scripts(&b);
    printf("# forerun, sessions in one forward\n\n%d pairs in turn, %d ids a session\n\n"
           "| sessions | a round over a forward | tokens/s | over one | auto over none |\n"
           "| --- | --- | --- | --- | --- |\n",
           PAIRS, IDS);
    for (size_t count = 1; count <= most; count *= 2) bench_count(&b, count, &one);
    fr_engine_close(b.engine);
    if (argc < 4) bench_beginnings(&b);
    fr_bench_engine_close(&b.models);
    return 0;
}
