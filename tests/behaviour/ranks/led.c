/* Prints hashes of what an engine answers if rank 0 leads: the program makes all calls on rank 0, and the other ranks
 * follow its messages. Three sessions run together and make rank 0 send every kind of message that it has. In a job of
 * several processes (mpirun) rank 0 prints.
 *
 * In: led [--alone] MODEL[,DRAFTER]... With --alone there is one process. Out: a line for each model, with a hash of
 * the statuses and ids of each step. If something fails, a line says why, and the exit status is 1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forerun_lab.h"
#include "forerun_lab_ranks.h"

enum { SESSIONS = 3, CONTEXT = 160, CHUNK = 16, TIMEOUT = 60, DRAFTS = 3 };

#define FNV_BASIS 0xcbf29ce484222325u
#define FNV_PRIME 0x100000001b3u

typedef struct led {
    fr_model *model;
    fr_drafter *drafter;
    fr_options *options;
    fr_engine *engine;
    fr_session *sessions[SESSIONS];
    fr_token_tree *tree;
    fr_grammar *grammar;
    size_t prompt[SESSIONS]; /* number of ids in each session's last prompt */
    uint64_t hash;
    size_t given, aborted, scored; /* given: number of generated ids. aborted: number of aborted rounds. scored: number
                                    * of scored ids */
} led;

#define TRY(call)                                   \
    do {                                            \
        fr_status try_status = (call);              \
        if (try_status != FR_OK) return try_status; \
    } while (0)

static void hash(led *l, const void *bytes, size_t size) {
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < size; i++) l->hash = (l->hash ^ byte[i]) * FNV_PRIME;
}

/* Checks that a call has ended with the expected status, and adds the status to the hash. */
static fr_status expect(led *l, fr_status wanted, fr_status status) {
    hash(l, &status, sizeof status);
    if (status == wanted) return FR_OK;
    if (status == FR_OK) fprintf(stderr, "a call that was to fail did not\n");
    return status == FR_OK ? FR_NUMERIC : status;
}

static fr_status put(led *l, size_t session, const char *text) {
    int32_t *ids;
    size_t count;
    TRY(fr_tokenize(fr_model_tokenizer(l->model), text, strlen(text), true, false, &ids, &count));
    fr_status status = fr_session_put(l->sessions[session], ids, count);
    l->prompt[session] = count;
    fr_free(ids);
    return status;
}

/* Runs rounds of all sessions. In each round a session may end or be aborted. */
static fr_status step(led *l, size_t rounds) {
    int32_t ids[SESSIONS][FR_STEP_MAX];
    for (size_t r = 0; r < rounds; r++) {
        fr_round all[SESSIONS];
        for (size_t i = 0; i < SESSIONS; i++)
            all[i] = (fr_round){.session = l->sessions[i], .ids = ids[i], .limit = FR_STEP_MAX};
        TRY(fr_engine_step(l->engine, all, SESSIONS));
        for (size_t i = 0; i < SESSIONS; i++) {
            if (all[i].status != FR_OK && all[i].status != FR_ABORTED) return all[i].status;
            hash(l, &all[i].status, sizeof all[i].status);
            hash(l, ids[i], all[i].count * sizeof *ids[i]);
            l->given += all[i].count;
            l->aborted += all[i].status == FR_ABORTED;
        }
    }
    return FR_OK;
}

static fr_status ban_some(void *context, const int32_t *ids, size_t length, float *logits, size_t vocab) {
    (void)context;
    for (size_t i = (size_t)ids[length - 1] % 3; i < vocab; i += 3) logits[i] = -1.0f / 0.0f;
    return FR_OK;
}

static void pass_by(void *context, const char *line, size_t length) {
    (void)context;
    (void)line;
    (void)length;
}

static bool abort_now(void *context) {
    (void)context;
    return true;
}

/* Opens three sessions. One samples, one is greedy, and the sampling of the third depends on earlier tokens. */
static fr_status open_sessions(led *l) {
    for (size_t i = 0; i < SESSIONS; i++) {
        TRY(fr_options_set_number(l->options, FR_OPT_TEMPERATURE, i == 1 ? 0.0 : 0.9));
        TRY(fr_options_set(l->options, FR_OPT_MIROSTAT, i == 2 ? 2 : 0));
        TRY(fr_options_set_number(l->options, FR_OPT_MIROSTAT_ENT, 1.0));
        TRY(fr_options_set_number(l->options, FR_OPT_MIROSTAT_LR, 0.5));
        TRY(fr_options_set(l->options, FR_OPT_SEED, (int64_t)i));
        TRY(fr_engine_session(l->engine, l->options, &l->sessions[i]));
    }
    fr_session *more = NULL;
    return expect(l, FR_USAGE, fr_engine_session(l->engine, l->options, &more));
}

static fr_status say_plainly(led *l) {
    static const char *const stops[] = {"e", "th"};
    static const int32_t wrong[] = {1, 2, INT32_MAX};
    TRY(put(l, 0, "Once upon a time there was a"));
    TRY(put(l, 1, "The old man and the"));
    TRY(put(l, 2, "Once upon a time there was an"));
    TRY(step(l, 4));
    TRY(expect(l, FR_INPUT, fr_session_put(l->sessions[1], wrong, 3)));
    fr_session_set_trace(l->sessions[1], pass_by, NULL);
    TRY(fr_session_set_stops(l->sessions[0], stops, 2));
    TRY(step(l, 4));
    TRY(fr_session_set_stops(l->sessions[0], NULL, 0));
    fr_session_set_trace(l->sessions[1], NULL, NULL);
    TRY(put(l, 0, "A dog"));
    return step(l, 2);
}

static fr_status say_by_rules(led *l) {
    static const char text[] = "root ::= (\"the \" | [a-f]+ \" \")* \"end of this\"";
    TRY(fr_token_tree_open(fr_model_tokenizer(l->model), &l->tree));
    TRY(fr_grammar_open(l->tree, FR_GRAMMAR_GBNF, text, sizeof text - 1, &l->grammar));
    TRY(fr_session_set_mask(l->sessions[1], ban_some, NULL));
    TRY(fr_session_set_mask(l->sessions[2], ban_some, NULL));
    TRY(step(l, 6));
    TRY(fr_session_set_mask(l->sessions[2], NULL, NULL));
    TRY(put(l, 2, "These are words:"));
    TRY(fr_session_set_grammar(l->sessions[2], l->grammar));
    TRY(step(l, 6));
    TRY(put(l, 0, "More words: "));
    TRY(fr_session_set_grammar(l->sessions[0], l->grammar));
    TRY(step(l, 4));
    TRY(fr_session_set_grammar(l->sessions[0], NULL));
    TRY(fr_session_set_mask(l->sessions[1], NULL, NULL));
    TRY(step(l, 2));
    TRY(fr_session_set_mask(l->sessions[1], ban_some, NULL));
    return step(l, 2);
}

static fr_status say_again(led *l) {
    TRY(fr_lab_session_set_aside(l->sessions[2]));
    TRY(fr_lab_session_take_up(l->sessions[2]));
    TRY(fr_session_begin_grammar(l->sessions[2], l->prompt[2]));
    TRY(fr_options_set_number(l->options, FR_OPT_TEMPERATURE, 0.4));
    TRY(fr_options_set(l->options, FR_OPT_MIROSTAT, 0));
    TRY(fr_session_set_options(l->sessions[1], l->options));
    TRY(step(l, 3));
    fr_session_reset(l->sessions[0]);
    TRY(put(l, 0, "Once upon a time there was a"));
    fr_session_cancel(l->sessions[0]);
    fr_session_set_abort(l->sessions[1], abort_now, NULL);
    TRY(step(l, 1));
    fr_session_set_abort(l->sessions[1], NULL, NULL);
    return step(l, 5);
}

/* Hashes the pooled embedding of a text. */
static fr_status pool(led *l) {
    const int32_t ids[] = {1, 5, 9, 2};
    size_t width = (size_t)fr_model_fact(l->model, FR_FACT_HIDDEN);
    float *values = malloc(width * sizeof *values);
    fr_status status = values ? fr_session_embed(l->sessions[1], ids, 4, FR_POOLING_MEAN, values) : FR_MEMORY;
    if (status == FR_OK) hash(l, values, width * sizeof *values);
    free(values);
    return status;
}

static fr_status take_score(void *context, int32_t id, float own, const int32_t *ids, const float *values,
                            size_t best) {
    led *l = context;
    (void)values;
    hash(l, &id, sizeof id);
    hash(l, &own, sizeof own);
    hash(l, ids, best * sizeof *ids);
    return ++l->scored % 20 ? FR_OK : FR_ABORTED; /* every 20th score aborts the scoring */
}

/* Scores three texts. The first is scored in one call, which the callback aborts. The second is scored in one call that
 * runs to its end. The third is scored in rounds together with the other sessions, and the callback aborts it too. */
static fr_status score(led *l) {
    int32_t ids[3 * CHUNK];
    for (int32_t i = 0; i < 3 * CHUNK; i++) ids[i] = 1 + i * 7 % 50;
    TRY(fr_options_set(l->options, FR_OPT_LOGPROBS, 2));
    fr_session_close(l->sessions[1]);
    TRY(fr_engine_session(l->engine, l->options, &l->sessions[1]));
    TRY(expect(l, FR_ABORTED, fr_session_score(l->sessions[1], ids, 2 * CHUNK, take_score, l)));
    TRY(fr_session_score(l->sessions[1], ids, CHUNK, take_score, l));
    TRY(put(l, 0, "Once upon a time there was a"));
    TRY(put(l, 2, "The old man and the"));
    TRY(step(l, 2));
    TRY(fr_session_put_scored(l->sessions[1], ids, 3 * CHUNK, take_score, l));
    TRY(step(l, 6));
    return expect(l, FR_USAGE, fr_session_put_scored(l->sessions[0], ids, CHUNK, take_score, l));
}

static fr_status lead(led *l) {
    TRY(open_sessions(l));
    TRY(say_plainly(l));
    TRY(say_by_rules(l));
    TRY(say_again(l));
    TRY(pool(l));
    return score(l);
}

static fr_status open_engine(led *l, char *path) {
    char *comma = strchr(path, ',');
    if (comma) *comma = '\0';
    TRY(fr_options_set(l->options, FR_OPT_THREADS, 1));
    TRY(fr_options_set(l->options, FR_OPT_CONTEXT, CONTEXT));
    TRY(fr_options_set(l->options, FR_OPT_CHUNK, CHUNK));
    TRY(fr_options_set(l->options, FR_OPT_IGNORE_EOS, 1));
    TRY(fr_options_set(l->options, FR_OPT_DRAFT_MAX, DRAFTS));
    TRY(fr_model_open(path, l->options, &l->model));
    if (comma) TRY(fr_drafter_open(comma + 1, l->model, l->options, &l->drafter));
    return fr_engine_open(l->model, l->drafter, l->options, SESSIONS, &l->engine);
}

static void close_all(led *l) {
    for (size_t i = 0; i < SESSIONS; i++) fr_session_close(l->sessions[i]);
    fr_engine_close(l->engine);
    fr_grammar_close(l->grammar);
    fr_token_tree_close(l->tree);
    fr_drafter_close(l->drafter);
    fr_model_close(l->model);
    fr_options_free(l->options);
}

static fr_status answer(char *path) {
    led l = {.options = fr_options_new(), .hash = FNV_BASIS};
    fr_status status = l.options ? open_engine(&l, path) : FR_MEMORY;
    bool leads = fr_rank() == 0;
    if (status == FR_OK && leads && fr_rank_count() > 1) status = fr_lab_engine_lead(l.engine);
    if (status == FR_OK) status = leads ? lead(&l) : fr_lab_engine_follow(l.engine);
    if (status == FR_OK && leads)
        printf("%s %016llx %zu ids, %zu aborted\n", path, (unsigned long long)l.hash, l.given, l.aborted);
    close_all(&l);
    return status;
}

int main(int argc, char **argv) {
    bool alone = argc > 1 && strcmp(argv[1], "--alone") == 0;
    fr_status status = alone ? FR_OK : fr_ranks_join(TIMEOUT);
    for (char **path = argv + 1 + alone; *path && status == FR_OK; path++) status = answer(*path);
    if (status != FR_OK && fr_rank() == 0) fprintf(stderr, "%s\n", fr_last_error());
    fflush(NULL);
    return fr_ranks_part(status != FR_OK, fr_last_error(), NULL);
}
