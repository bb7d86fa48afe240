/* Compares the speed of models with float weights with this machine's limits, in one run. The program measures the
 * bandwidth of decoding, the cost of verifying rows, the centroid head, and the gain of speculation. In one model
 * weights come from memory; in another they stay in the cache.
 *
 * In: the parts to run, `demo`, `head` or `big` (all if none is named). The first run writes about 2.3 GB of random
 * weights to build/bench. Out: markdown on standard output. Each line has a figure, its target, and the limit of the
 * machine to which the figure is compared. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/drafting.h"
#include "bench/limits.h"
#include "bench/measure.h"
#include "bench/synth.h"
#include "forerun_lab.h"
#include "src/engine/draft/assistant_gemma4.h"

#define FOLDER   "build/bench"
#define ROWS_MAX 8
#define PAIRS    FR_BENCH_PAIRS
#define DEMO_IDS 400
#define BIG_IDS  120
#define CONTEXT  128 /* number of positions before the timed rows */

/* A model of about 1 GB in BF16. It has the widths of published dense models, but fewer layers. */
static const fr_synth_target big = {.vocab = 16384,
                                    .hidden = 1536,
                                    .layers = 14,
                                    .heads = 8,
                                    .kv_heads = 2,
                                    .head_dim = 256,
                                    .global_head_dim = 512,
                                    .ffn = 6144,
                                    .window = 512,
                                    .full_every = 6};
static const fr_synth_assistant big_assistant = {
    .hidden = 256, .layers = 4, .heads = 4, .ffn = 2048, .clusters = 128, .top = 32};

/* A model with the vocabulary and widths of Gemma 4 E2B. It has only the layers whose keys and values the assistant
 * reads. */
static const fr_synth_target e2b = {.vocab = 262144,
                                    .hidden = 1536,
                                    .layers = 2,
                                    .heads = 8,
                                    .kv_heads = 1,
                                    .head_dim = 256,
                                    .global_head_dim = 512,
                                    .ffn = 512,
                                    .window = 512,
                                    .full_every = 2};
static const fr_synth_assistant e2b_assistant = {
    .hidden = 256, .layers = 4, .heads = 4, .ffn = 2048, .clusters = 2048, .top = 32};

static const char *const demo_prompts[] = {"1-parser", "2-lock", "3-modules", "4-iterators", "5-collector"};

static void write_models(void) {
    fr_synth_assistant plain = e2b_assistant;
    plain.plain = true;
    mkdir("build", 0777);
    mkdir(FOLDER, 0777);
    if (access(FOLDER "/done", F_OK) == 0) return;
    fprintf(stderr, "writing random weights to " FOLDER "\n");
    bool good = fr_synth_write_target(FOLDER "/target", &big) &&
                fr_synth_write_assistant(FOLDER "/assistant", &big_assistant, &big) &&
                fr_synth_write_target(FOLDER "/e2b", &e2b) &&
                fr_synth_write_assistant(FOLDER "/e2b-assistant", &e2b_assistant, &e2b) &&
                fr_synth_write_assistant(FOLDER "/e2b-plain", &plain, &e2b);
    FILE *done = good ? fopen(FOLDER "/done", "w") : NULL;
    if (!done) exit(1);
    fclose(done);
}

/* ----------------------------------------------------------------------------------------- the time of a draft step */

/* Gives the seconds of one chained draft step. */
static double time_draft_step(fr_session *s) {
    double five[PAIRS], fifteen[PAIRS];
    fr_bench_require(fr_bench_begin_drafts(s));
    for (int pair = -1; pair < PAIRS; pair++) {
        fr_bench_require(fr_bench_time_drafts(s, 5, &five[pair < 0 ? 0 : pair]));
        fr_bench_require(fr_bench_time_drafts(s, 15, &fifteen[pair < 0 ? 0 : pair]));
    }
    return (fr_bench_median(fifteen, PAIRS) - fr_bench_median(five, PAIRS)) / 10;
}

/* ------------------------------------------------------------------------------------------------------ speculation */

/* Counts how often each depth of a chain of drafts was reached, and how often the draft at that depth was accepted. */
typedef struct tally {
    size_t reached[FR_STEP_MAX], stood[FR_STEP_MAX];
} tally;

static void count_rounds(const fr_session *session, size_t drafts, tally *t) {
    const uint8_t *lengths;
    size_t rounds = fr_session_accepted_lengths(session, &lengths);
    for (size_t r = 0; r < rounds; r++)
        for (size_t d = 0; d < drafts && d <= lengths[r]; d++) {
            t->reached[d]++;
            t->stood[d] += lengths[r] > d;
        }
}

static void run_text(fr_session *session, const int32_t *prompt, size_t count, int32_t *text) {
    fr_session_reset(session);
    fr_bench_require(fr_session_prompt(session, prompt, count));
    fr_bench_generate(session, text, DEMO_IDS);
}

/* Compares decoding with `depth` drafts to decoding without drafts, prompt by prompt. Gives the median ratio of their
 * tokens per second. */
static double bench_demo_depth(const fr_bench_engine *e, int depth, tally *rounds) {
    static int32_t plain[DEMO_IDS], text[DEMO_IDS];
    double ratios[PAIRS], calls = 0;
    bool same = true;
    fr_session *none = fr_bench_engine_session(e, "none", 0), *drafting = fr_bench_engine_session(e, "mtp", depth);
    for (int pair = 0; pair < PAIRS; pair++) {
        size_t count;
        const char *name = demo_prompts[(size_t)pair % (sizeof demo_prompts / sizeof *demo_prompts)];
        int32_t *prompt = fr_bench_demo_prompt(e->model, name, &count);
        run_text(none, prompt, count, plain);
        run_text(drafting, prompt, count, text);
        same = same && memcmp(plain, text, sizeof text) == 0;
        ratios[pair] = fr_bench_tokens_per_second(drafting) / fr_bench_tokens_per_second(none);
        calls += fr_session_stat(drafting, FR_STAT_TARGET_CALLS);
        count_rounds(drafting, (size_t)depth, rounds);
        fr_free(prompt);
    }
    double ratio = fr_bench_median(ratios, PAIRS);
    printf("| %d | %s | %.2f%s | %.2f |\n", depth, same ? "same" : "**differ**", PAIRS * (DEMO_IDS - 1) / calls,
           depth == 3 ? " (target 2.2)" : "", ratio);
    fr_session_close(none);
    fr_session_close(drafting);
    return ratio;
}

static void bench_demo(fr_bench_replay *measured) {
    fr_bench_engine e = fr_bench_engine_open("tools/demo/target", "tools/demo/assistant");
    tally rounds;
    double best = 0;
    printf("\n## The demo model (it lies in the cache), %d ids after each of its prompts\n\n"
           "| drafts | ids | tokens a call | tokens/s over none |\n| --- | --- | --- | --- |\n",
           DEMO_IDS);
    for (int depth = 1; depth <= 3; depth++) {
        rounds = (tally){0};
        best = fmax(best, bench_demo_depth(&e, depth, &rounds));
    }
    for (size_t d = 0; d < 3; d++) measured->at[d] = (double)rounds.stood[d] / (double)rounds.reached[d];
    printf("\nBest depth over none: %.2f (target 1.00). Acceptance by depth: %.2f %.2f %.2f.\n", best, measured->at[0],
           measured->at[1], measured->at[2]);
    fr_bench_engine_close(&e);
}

/* Measures the gain of speculation with scripted drafts, which are accepted at the demo's rates. Prints the gain
 * together with its limit, which follows from the time of a draft step and from t[K] = T(K) / T(1). T(K) is the time of
 * a forward of K rows. one: T(1). */
static void bench_speculation(const fr_bench_engine *e, const fr_bench_replay *measured, const double *t, double one,
                              double draft_step) {
    int32_t script[CONTEXT + BIG_IDS], text[BIG_IDS];
    fr_bench_prompt(e->model, script, CONTEXT, 0);
    printf("\n## Speculation on the 1 GB model, drafts accepted at the demo's rates\n\n"
           "| drafts | ids | tokens a call | tokens/s over none | of what T(K+1) and the draft step allow |\n"
           "| --- | --- | --- | --- | --- |\n");
    for (int depth = 1; depth <= 3; depth++) {
        double ratios[5], shares[5];
        bool same = true;
        for (int pair = 0; pair < 5; pair++) {
            fr_bench_replay r = *measured;
            r.random = (uint64_t)pair + 1;
            fr_session *none = fr_bench_engine_session(e, "none", 0);
            fr_session *drafting = fr_bench_engine_session(e, "mtp", depth);
            fr_bench_require(fr_session_prompt(none, script, CONTEXT));
            fr_bench_generate(none, script + CONTEXT, BIG_IDS);
            fr_bench_require(fr_lab_session_script(drafting, script, CONTEXT + BIG_IDS, fr_bench_replay_accepts, &r));
            fr_bench_require(fr_session_prompt(drafting, script, CONTEXT));
            fr_bench_generate(drafting, text, BIG_IDS);
            same = same && memcmp(text, script + CONTEXT, sizeof text) == 0;
            double calls = (BIG_IDS - 1) / fr_session_stat(drafting, FR_STAT_TARGET_CALLS); /* mean number of tokens
                                                                                             * that a call of the
                                                                                             * target gives */
            ratios[pair] = fr_bench_tokens_per_second(drafting) / fr_bench_tokens_per_second(none);
            shares[pair] = ratios[pair] / (calls / (t[depth + 1] + depth * draft_step / one));
            if (pair == 4) printf("| %d | %s | %.2f |", depth, same ? "same" : "**differ**", calls);
            fr_session_close(none);
            fr_session_close(drafting);
        }
        printf(" %.2f%s | %.0f%% (target 90%%) |\n", fr_bench_median(ratios, 5), depth == 3 ? " (target 1.4)" : "",
               100 * fr_bench_median(shares, 5));
    }
}

static void bench_big(const fr_bench_replay *measured) {
    fr_bench_engine e = fr_bench_engine_open(FOLDER "/target", FOLDER "/assistant");
    fr_session *session = fr_bench_engine_session(&e, "mtp", 3);
    int32_t ids[CONTEXT];
    double t[ROWS_MAX + 1], one;
    fr_bench_prompt(e.model, ids, CONTEXT, 0);
    double draft_step = time_draft_step(session);
    fr_session_reset(session);
    fr_bench_require(fr_session_prompt(session, ids, CONTEXT));
    fr_bench_stream stream = fr_bench_stream_of(session, CONTEXT);
    for (size_t rows = ROWS_MAX; rows > 0; rows--) t[rows] = fr_bench_verify_ratio(session, rows, CONTEXT, &one);
    printf("\n## Decode and verify, %.2f GB of BF16 weights, context %d, %s, %zu threads\n\n",
           fr_bench_cost_of(session, 1, CONTEXT).bytes / 1e9, CONTEXT, fr_model_isa(e.model), e.model->plan.threads);
    printf("Read bandwidth, measured in turn with decode: %.1f GB/s (%.1f to %.1f). Decode: %.1f ms a token, "
           "**%.0f%%** of it (target 85%%). Draft step: %.2f ms.\n\n| rows | T(K)/T(1) |\n| --- | --- |\n",
           stream.bandwidth / 1e9, stream.lowest / 1e9, stream.highest / 1e9, stream.step * 1e3, 100 * stream.share,
           draft_step * 1e3);
    for (size_t rows = 1; rows <= ROWS_MAX; rows++)
        printf("| %zu | %.2f%s |\n", rows, t[rows], rows == 4 ? " (target 1.30)" : "");
    fr_session_close(session);
    bench_speculation(&e, measured, t, one, draft_step);
    fr_bench_engine_close(&e);
}

/* Holds the arguments of a run of the head alone, on one row by the whole team. A draft step runs the head in this way
 * after its layers. */
typedef struct head_job {
    const fr_assistant *assistant;
    const fr_kernels *kernels;
    float *row, *centroid_scores, *scores;
    int32_t *chosen, *scratch;
} head_job;

static void run_plain_head(void *context, const fr_team *team) {
    head_job *job = context;
    const fr_matrix *head = &job->assistant->trunk.head;
    fr_matrix_apply(team, &(fr_workspace){.kernels = job->kernels}, head,
                    &(fr_matrix_rows){job->scores, 0, job->row, head->cols, 1});
}

static void run_centroid_head(void *context, const fr_team *team) {
    head_job *job = context;
    const fr_assistant *a = job->assistant;
    const fr_matrix *head = &a->trunk.head;
    size_t begin, end, size = a->cluster_size;
    fr_matrix_apply(team, &(fr_workspace){.kernels = job->kernels}, &a->centroids,
                    &(fr_matrix_rows){job->centroid_scores, 0, job->row, head->cols, 1});
    fr_team_sync(team);
    if (team->index == 0) job->kernels->topk(job->centroid_scores, a->clusters, a->top, job->chosen, job->scratch);
    fr_team_sync(team);
    fr_partition(a->top, 1, team->index, team->count, &begin, &end);
    for (size_t c = begin; c < end; c++)
        job->kernels->gather[head->type](&(fr_gather){job->scores + c * size, job->row, head->data, head->row_bytes,
                                                      head->cols, a->ordering + (size_t)job->chosen[c] * size, size});
}

static double time_head(const fr_bench_engine *e, fr_session *session, fr_team_fn *head) {
    const fr_assistant *a = e->drafter->net;
    double seconds[PAIRS];
    head_job job = {.assistant = a, .kernels = e->model->kernels};
    job.row = calloc(a->trunk.spec.hidden, sizeof(float));
    job.centroid_scores = calloc(a->clusters + 1, sizeof(float));
    job.scores = calloc(a->trunk.spec.vocab, sizeof(float));
    job.chosen = calloc(a->top + 1, sizeof(int32_t));
    job.scratch = calloc(a->clusters + 1, sizeof(int32_t));
    for (size_t i = 0; i < a->trunk.spec.hidden; i++) job.row[i] = (float)(i % 7) - 3;
    for (int pair = -2; pair < PAIRS; pair++) {
        double start = fr_clock();
        fr_pool_run(session->engine->pool, head, &job);
        if (pair >= 0) seconds[pair] = fr_clock() - start;
    }
    free(job.row);
    free(job.centroid_scores);
    free(job.scores);
    free(job.chosen);
    free(job.scratch);
    return fr_bench_median(seconds, PAIRS);
}

static void bench_centroids(void) {
    const char *const assistants[] = {FOLDER "/e2b-assistant", FOLDER "/e2b-plain"};
    fr_team_fn *const heads[] = {run_centroid_head, run_plain_head};
    double step[2], head[2], bytes[2];
    for (int plain = 0; plain < 2; plain++) {
        fr_bench_engine e = fr_bench_engine_open(FOLDER "/e2b", assistants[plain]);
        fr_session *session = fr_bench_engine_session(&e, "mtp", 15);
        const fr_assistant *a = e.drafter->net;
        step[plain] = time_draft_step(session);
        head[plain] = time_head(&e, session, heads[plain]);
        bytes[plain] = (double)e.drafter->weights.bytes;
        const fr_matrix *rows = &a->trunk.head;
        if (!plain) bytes[0] -= (double)(rows->features - a->top * a->cluster_size) * (double)rows->row_bytes;
        fr_session_close(session);
        fr_bench_engine_close(&e);
    }
    printf("\n## The assistant's draft step at E2B's dims (262,144 ids)\n\n| | centroid head | full head | ratio |\n"
           "| --- | --- | --- | --- |\n| head alone, ms | %.3f | %.3f | 1/%.1f |\n"
           "| whole draft step, ms | %.3f | %.3f | 1/%.1f (target 1/20) |\n"
           "| bytes of weights a step reads, MB | %.1f | %.1f | 1/%.1f |\n",
           head[0] * 1e3, head[1] * 1e3, head[1] / head[0], step[0] * 1e3, step[1] * 1e3, step[1] / step[0],
           bytes[0] / 1e6, bytes[1] / 1e6, bytes[1] / bytes[0]);
}

/* Returns true if this part should run. It should if the user named it, or named no part. */
static bool wanted(int argc, char **argv, const char *part) {
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], part) == 0) return true;
    return argc == 1;
}

int main(int argc, char **argv) {
    /* acceptance rates that are used if the demo part is not run */
    fr_bench_replay measured = {.at = {0.75, 0.75, 0.75}, .random = 1};
    setvbuf(stdout, NULL, _IOLBF, 0);
    write_models();
    printf("# forerun, float path\n");
    if (wanted(argc, argv, "demo")) bench_demo(&measured);
    if (wanted(argc, argv, "head")) bench_centroids();
    if (wanted(argc, argv, "big")) bench_big(&measured);
    return 0;
}
