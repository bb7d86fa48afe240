/* Tests that block drafters give one answer. A text of 96 ids, and the log-probabilities of each id, must be equal to
 * the last bit, however DFlash, DFlash2 and DSpark draft it.
 *
 * The factors are:
 *   - the drafter, in a folder or a GGUF file; some targets have two drafters;
 *   - how ids are sampled;
 *   - a mask or a grammar on the text;
 *   - neighbours with other prompts and drafts of their own in the same forward pass;
 *   - the session's life: in the middle of the text it is saved and then restored after another text, or forked, or
 *     truncated, or gets its prompt again; or before the text another session runs its prompt; or nothing happens;
 *   - the method: the drafter's own drafts, or n-grams before them, or scripted drafts, which are wrong at one depth
 *     after the other;
 *   - depth, threads, chunk and instruction set.
 *
 * The reference is decoding without drafts, with each text in a session that runs alone; test_dflash.c compares that
 * with transformers. First come the runs of a pairwise cover: any two values of two factors occur together in at least
 * one run. Then come runs of every depth, and runs that cut a grammar's text at each of its first ids. The last runs
 * have rejection sampling, with which the text may depend only on drafter and depth. */
/* suite: alone native threads no-valgrind */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/sizes.h"
#include "forerun_lab.h"
#include "tests/support/pairs.h"
#include "tests/support/parts.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

enum { TEXT = 96, HALF = 40, CONTEXT = 256, MOST = 4, PROMPT_MOST = 64 };

#define DATA "tests/data/dflash/"

static const struct {
    const char *target, *drafter, *word;
} subjects[] = {{DATA "qwen3", DATA "qwen3/drafter", "dflash"},
                {DATA "llama-sliding", DATA "llama-sliding/drafter.gguf", "dflash"},
                {DATA "spec-llama", DATA "spec-llama/drafter", "draft-dflash"},
                {DATA "v2-qwen3.5", DATA "v2-qwen3.5/drafter", "dflash2"},
                {DATA "v2-spec-qwen3", DATA "v2-spec-qwen3/drafter", "dflash2"},
                {DATA "dspark-qwen3", DATA "dspark-qwen3/drafter", "dspark"},
                {DATA "dspark-dense-qwen3", DATA "dspark-dense-qwen3/drafter.gguf", "dspark"},
                {DATA "muse-glimmer", DATA "muse-glimmer/drafter", "dflash"},
                /* Each of these subjects has two drafters. If the depth is fixed, only the drafter that is named first
                 * makes drafts. */
                {DATA "v2-qwen3.5-mtp", DATA "v2-qwen3.5/drafter", "dflash2,mtp"},
                {DATA "v2-qwen3.5-mtp", DATA "v2-qwen3.5/drafter.gguf", "mtp,dflash2"}};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

typedef enum factor { WHO, DRAWN, BOUND, NEIGHBOURS, LIFE, METHOD, DEPTH, THREADS, CHUNK, WORD, FACTORS } factor;

enum { FREE, MASKED, GRAMMAR, BOUNDS };
enum { STRAIGHT, SAVED, FORKED, CUT, AGAIN, FOUND, LIVES };
enum { ITS_OWN, AFTER_NGRAM, REPLACED, METHODS };
enum { GREEDY, WARM, PENALIZED, DRAWS };

static const size_t neighbours[] = {0, 1, 3};
static const int64_t chunks[] = {1, 7, 64, 512};
static const int64_t some_depths[] = {1, 2, 3, 4, 5, 7, 8, 11, 15, FR_DRAFT_AUTO};
enum { DEPTHS = sizeof some_depths / sizeof *some_depths };

static const char *words[FR_PAIRS_VALUES];
static size_t word_count;

/* The factors' values of one run. `at` has the index of each factor's value; only `depth` is the number of drafts
 * itself. kept: number of generated ids that are kept when the life is CUT or AGAIN, at most HALF. It is fixed before
 * the run. The number of ids that were generated up to a given time may depend on measured times, and the place of the
 * cut must not depend on them. */
typedef struct manner {
    size_t at[FACTORS];
    int64_t depth;
    size_t kept;
    bool rejection;
} manner;

/* ------------------------------------------------------------------------------------------------------------ texts */

/* A prompt, the ids that a session alone generates after the prompt, and a hash of each id's log-probabilities. */
typedef struct text {
    int32_t ids[PROMPT_MOST + TEXT];
    size_t prompt, most; /* prompt: number of ids in the prompt. most: number of ids after the prompt */
    size_t bound;
    uint64_t hashes[TEXT];
} text;

static fr_status ban(void *context, const int32_t *ids, size_t length, float *logits, size_t vocab) {
    (void)context;
    for (size_t i = (size_t)ids[length - 1] % 3; i < vocab; i += 3) logits[i] = -INFINITY;
    return FR_OK;
}

typedef struct language {
    fr_token_tree *tree;
    fr_grammar *grammar;
} language;

static language open_language(const fr_model *model) {
    static const char rule[] = "root ::= ([a-z ] | [A-Z0-9,.;:] [a-z ]){900,1000}";
    language l;
    require(fr_token_tree_open(fr_model_tokenizer(model), &l.tree));
    require(fr_grammar_open(l.tree, FR_GRAMMAR_GBNF, rule, sizeof rule - 1, &l.grammar));
    return l;
}

static void close_language(const language *l) {
    fr_grammar_close(l->grammar);
    fr_token_tree_close(l->tree);
}

/* Gives a session the mask or the grammar that its text has. */
static void bind_text(fr_session *session, const text *t, const language *l) {
    if (t->bound == MASKED) require(fr_session_set_mask(session, ban, NULL));
    if (t->bound == GRAMMAR) require(fr_session_set_grammar(session, l->grammar));
    if (t->bound == GRAMMAR) require(fr_session_begin_grammar(session, t->prompt));
}

static void set_drawing(fr_options *options, size_t drawn, bool rejection) {
    require(fr_options_set(options, FR_OPT_CONTEXT, CONTEXT));
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set(options, FR_OPT_PIN, 0));
    require(fr_options_set(options, FR_OPT_LOGPROBS, 3));
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, drawn == GREEDY ? 0 : drawn == WARM ? 0.7 : 1.2));
    if (drawn == PENALIZED) require(fr_options_set_number(options, FR_OPT_TOP_P, 0.9));
    if (drawn == PENALIZED) require(fr_options_set_number(options, FR_OPT_REPEAT_PENALTY, 1.1));
    if (rejection) require(fr_options_set_text(options, FR_OPT_ACCEPT, "rejection"));
}

static uint64_t hash_logprobs(const fr_session *session, size_t index) {
    float own;
    const int32_t *ids;
    const float *values;
    size_t count = fr_session_logprobs(session, index, &own, &ids, &values);
    ck_assert_uint_eq(count, 3);
    return fr_hash(fr_hash(fr_hash(0, &own, sizeof own), ids, count * sizeof *ids), values, count * sizeof *values);
}

/* Makes the prompt with the number `index`. Prompt 0 is a prompt of reference.json, because the drafter was trained on
 * the text that follows it. */
static void make_prompt(const char *target, int64_t vocab, size_t index, text *t) {
    if (index == 0) {
        char path[128];
        snprintf(path, sizeof path, "%s/reference.json", target);
        json_t *reference = json_load_file(path, 0, NULL);
        int32_t *ids = fr_json_ids_of(json_array_get(json_object_get(reference, "prompts"), 3), &t->prompt);
        ck_assert_uint_le(t->prompt, PROMPT_MOST);
        memcpy(t->ids, ids, t->prompt * sizeof *ids);
        free(ids);
        json_decref(reference);
        return;
    }
    t->prompt = 5 + 11 * index;
    for (size_t i = 0; i < t->prompt; i++)
        t->ids[i] = (int32_t)((i * i * 31 + (index + 7) * i + 2) % (size_t)(vocab - 20));
}

static void say_alone(const fr_model *model, const fr_options *options, const language *l, text *t) {
    fr_session *session;
    require(fr_session_open(model, NULL, options, &session));
    require(fr_session_prompt(session, t->ids, t->prompt));
    bind_text(session, t, l);
    for (size_t made = 0, count; made < t->most; made++) {
        require(fr_session_step(session, t->ids + t->prompt + made, 1, &count, NULL));
        ck_assert_uint_eq(count, 1);
        t->hashes[made] = hash_logprobs(session, 0);
    }
    fr_session_close(session);
}

typedef struct texts {
    text all[MOST];
} texts;

/* Makes the text of the session under test. `bound` says whether it has a mask or a grammar. Also makes the texts of
 * its neighbours, which have neither mask nor grammar. */
static texts texts_of(size_t who, size_t drawn, size_t bound) {
    texts made = {0};
    fr_options *options = fr_options_new();
    fr_model *model;
    set_drawing(options, drawn, false);
    require(fr_options_set(options, FR_OPT_THREADS, 1));
    require(fr_model_open(subjects[who].target, options, &model));
    language l = open_language(model);
    for (size_t i = 0; i < MOST; i++) {
        text *t = &made.all[i];
        t->most = i ? 20 + 17 * i : TEXT;
        t->bound = i ? FREE : bound;
        make_prompt(subjects[who].target, fr_model_fact(model, FR_FACT_VOCAB), i, t);
        require(fr_options_set(options, FR_OPT_SEED, (int64_t)i));
        say_alone(model, options, &l, t);
    }
    close_language(&l);
    fr_model_close(model);
    fr_options_free(options);
    return made;
}

/* ------------------------------------------------------------------------------------------------------------ a run */

typedef struct speaker {
    fr_session *session;
    const text *text;
    int32_t said_ids[TEXT + FR_STEP_MAX];
    size_t said;
    int depth; /* number of scripted drafts per step */
} speaker;

typedef struct run {
    const manner *how;
    const texts *texts;
    fr_options *options;
    fr_model *model;
    fr_drafter *drafter;
    language language;
    fr_engine *engine;
    speaker speakers[MOST];
    size_t count;
    double accepted;
} run;

/* Returns true if the draft at this depth must be right. In each round the drafts are wrong at one depth, which is one
 * deeper than in the round before. Once per cycle all drafts are right. */
static bool reject_in_turn(void *context, size_t round, size_t depth) {
    int asked = *(int *)context, drafts = asked == FR_DRAFT_AUTO ? FR_STEP_MAX - 1 : asked;
    return depth != round % ((size_t)drafts + 1);
}

static void open_run(run *r, const manner *how, const texts *of) {
    static const char *const forms[] = {"%s", "ngram,%s", "%s"};
    const size_t *at = how->at;
    char methods[64];
    *r = (run){.how = how, .texts = of, .options = fr_options_new(), .count = 1 + neighbours[at[NEIGHBOURS]]};
    set_drawing(r->options, at[DRAWN], how->rejection);
    snprintf(methods, sizeof methods, forms[at[METHOD]], subjects[at[WHO]].word);
    require(fr_options_set_text(r->options, FR_OPT_SPEC_TYPE, methods));
    require(fr_options_set(r->options, FR_OPT_DRAFT_MAX, how->depth));
    require(fr_options_set(r->options, FR_OPT_THREADS, 1 + (int64_t)at[THREADS]));
    require(fr_options_set(r->options, FR_OPT_CHUNK, chunks[at[CHUNK]]));
    require(fr_options_set_text(r->options, FR_OPT_ISA, words[at[WORD]]));
    require(fr_model_open(subjects[at[WHO]].target, r->options, &r->model));
    require(fr_drafter_open(subjects[at[WHO]].drafter, r->model, r->options, &r->drafter));
    r->language = open_language(r->model);
    require(fr_engine_open(r->model, r->drafter, r->options, r->count + 2, &r->engine));
}

static void close_run(run *r) {
    for (size_t i = 0; i < r->count; i++) fr_session_close(r->speakers[i].session);
    fr_engine_close(r->engine);
    close_language(&r->language);
    fr_drafter_close(r->drafter);
    fr_model_close(r->model);
    fr_options_free(r->options);
}

static fr_session *open_session(const run *r, size_t seed) {
    fr_session *session;
    require(fr_options_set(r->options, FR_OPT_SEED, (int64_t)seed));
    require(fr_engine_session(r->engine, r->options, &session));
    return session;
}

/* Runs the same prompt in another session, which generates some ids and is then closed. So the session under test finds
 * the prompt's keys and values in the cache. */
static void run_before(const run *r) {
    int32_t ids[FR_STEP_MAX];
    const text *t = &r->texts->all[0];
    fr_session *session = open_session(r, 0);
    require(fr_session_prompt(session, t->ids, t->prompt));
    for (size_t round = 0, got; round < 6; round++) require(fr_session_step(session, ids, FR_STEP_MAX, &got, NULL));
    fr_session_close(session);
}

static void open_speakers(run *r) {
    for (size_t i = 0; i < r->count; i++) {
        speaker *s = &r->speakers[i];
        const text *t = &r->texts->all[i];
        *s = (speaker){.session = open_session(r, i), .text = t, .depth = (int)r->how->depth};
        if (r->how->at[METHOD] == REPLACED)
            require(fr_lab_session_script(s->session, t->ids, t->prompt + t->most, reject_in_turn, &s->depth));
        require(fr_session_put(s->session, t->ids, t->prompt));
        bind_text(s->session, t, &r->language);
    }
}

/* Replaces the session's text by another text of 150 ids. */
static void digress(fr_session *session) {
    int32_t ids[150 + FR_STEP_MAX];
    for (size_t i = 0; i < 150; i++) ids[i] = (int32_t)((7 * i * i + i) % 300);
    require(fr_session_set_prompt(session, ids, 150));
    for (size_t round = 0, got; round < 3; round++) require(fr_session_step(session, ids, FR_STEP_MAX, &got, NULL));
}

/* When the first session is in the middle of its text, does to it what the factor LIFE says. */
static void live(const run *r, speaker *s) {
    const text *t = s->text;
    fr_session *fork;
    void *bytes;
    size_t size;
    switch (r->how->at[LIFE]) {
    case SAVED:
        require(fr_session_save_bytes(s->session, &bytes, &size));
        require(fr_session_set_grammar(s->session, NULL));
        digress(s->session);
        require(fr_session_restore_bytes(s->session, bytes, size));
        fr_free(bytes);
        bind_text(s->session, t, &r->language);
        break;
    case FORKED:
        require(fr_session_fork(s->session, NULL, &fork));
        bind_text(fork, t, &r->language);
        fr_session_close(s->session);
        s->session = fork;
        break;
    /* After a cut the text of a grammar begins anew. This call sets the position where the text began before */
    case CUT:
        s->said = r->how->kept;
        require(fr_session_truncate(s->session, t->prompt + s->said));
        if (t->bound == GRAMMAR) require(fr_session_begin_grammar(s->session, t->prompt));
        break;
    case AGAIN:
        s->said = r->how->kept;
        require(fr_session_put(s->session, t->ids, t->prompt + s->said));
        bind_text(s->session, t, &r->language);
        break;
    default: break;
    }
}

static void differ(const run *r, const char *what, size_t index, size_t at) {
    char factors[128] = "";
    for (size_t f = 0, end = 0; f < FACTORS; f++)
        end += (size_t)snprintf(factors + end, sizeof factors - end, " %zu", r->how->at[f]);
    ck_abort_msg("%s, text %zu, id %zu: other %s than alone; depth %d, factors%s", subjects[r->how->at[WHO]].drafter,
                 index, at, what, (int)r->how->depth, factors);
}

static void check(const run *r, speaker *s, size_t count) {
    const text *t = s->text;
    for (size_t i = 0; i < count && s->said + i < t->most && !r->how->rejection; i++) {
        size_t at = s->said + i;
        if (s->said_ids[at] != t->ids[t->prompt + at]) differ(r, "id", (size_t)(s - r->speakers), at);
        if (hash_logprobs(s->session, i) != t->hashes[at])
            differ(r, "log-probabilities", (size_t)(s - r->speakers), at);
    }
    s->said += count;
}

/* Runs one round of all sessions whose texts are not complete. Returns how many sessions took part. */
static size_t turn_around(run *r) {
    fr_round rounds[MOST];
    speaker *whose[MOST];
    size_t n = 0;
    for (size_t i = 0; i < r->count; i++) {
        speaker *s = &r->speakers[i];
        if (s->said >= s->text->most) continue;
        whose[n] = s;
        rounds[n++] = (fr_round){.session = s->session, .ids = s->said_ids + s->said, .limit = FR_STEP_MAX};
    }
    if (n) require(fr_engine_step(r->engine, rounds, n));
    for (size_t i = 0; i < n; i++) {
        ck_assert_msg(rounds[i].status == FR_OK, "%s", rounds[i].error);
        r->accepted += (double)rounds[i].accepted;
        check(r, whose[i], rounds[i].count);
    }
    return n;
}

/* Runs the texts and compares them. Returns how many drafts were accepted. ids: memory for the first text's ids, or
 * NULL. */
static double try_run(const manner *how, const texts *of, int32_t *ids) {
    static run r;
    open_run(&r, how, of);
    if (how->at[LIFE] == FOUND) run_before(&r);
    open_speakers(&r);
    bool lived = false;
    for (size_t rounds = 0; turn_around(&r); rounds++) {
        ck_assert_uint_lt(rounds, 4 * TEXT);
        if (lived || r.speakers[0].said < HALF) continue;
        live(&r, &r.speakers[0]);
        lived = true;
    }
    if (how->at[LIFE] == FOUND) ck_assert_double_gt(fr_session_stat(r.speakers[0].session, FR_STAT_REUSED_TOKENS), 0);
    if (ids) memcpy(ids, r.speakers[0].said_ids, TEXT * sizeof *ids);
    double accepted = r.accepted;
    close_run(&r);
    return accepted;
}

/* ------------------------------------------------------------------------------------------------------------ tests */

START_TEST(every_two_values_together) {
    static fr_pairs_run runs[FR_PAIRS_RUNS];
    static texts of[DRAWS][BOUNDS];
    const size_t values[FACTORS] = {
        [WHO] = SUBJECTS,   [DRAWN] = DRAWS,  [BOUND] = BOUNDS, [NEIGHBOURS] = 3, [LIFE] = LIVES,
        [METHOD] = METHODS, [DEPTH] = DEPTHS, [THREADS] = 3,    [CHUNK] = 4,      [WORD] = word_count};
    size_t count = fr_pairs_cover(values, FACTORS, NULL, runs);
    double accepted = 0;
    for (size_t drawn = 0; drawn < DRAWS; drawn++)
        for (size_t bound = 0; bound < BOUNDS; bound++) of[drawn][bound] = texts_of((size_t)_i, drawn, bound);
    for (size_t i = 0; i < count; i++) {
        manner how = {.depth = some_depths[runs[i][DEPTH]], .kept = 1 + i % HALF};
        memcpy(how.at, runs[i], sizeof how.at);
        if (how.at[WHO] == (size_t)_i) accepted += try_run(&how, &of[how.at[DRAWN]][how.at[BOUND]], NULL);
    }
    ck_assert_double_gt(accepted, 0);
}
END_TEST

/* Runs each depth twice, with the drafter's own drafts and with scripted drafts. Some of the drafter's own drafts must
 * be accepted. Some scripted drafts are accepted at each depth. */
START_TEST(every_depth) {
    static texts of[2];
    double accepted = 0;
    for (size_t drawn = 0; drawn < 2; drawn++) of[drawn] = texts_of((size_t)_i, drawn, FREE);
    int64_t step = fr_test_full() ? 1 : 2;
    for (int64_t depth = 1; depth < FR_STEP_MAX; depth += step)
        for (size_t method = 0; method < METHODS; method += REPLACED) {
            manner how = {.at = {[WHO] = (size_t)_i,
                                 [DRAWN] = (size_t)depth % 2,
                                 [NEIGHBOURS] = (size_t)depth % 3,
                                 [LIFE] = (size_t)depth % LIVES,
                                 [METHOD] = method,
                                 [THREADS] = (size_t)depth % 3,
                                 [CHUNK] = 2,
                                 [WORD] = word_count - 1},
                          .depth = depth,
                          .kept = HALF / 2};
            double stood = try_run(&how, &of[how.at[DRAWN]], NULL);
            if (method == ITS_OWN) accepted += stood;
        }
    ck_assert_double_gt(accepted, step == 1 ? 60 : 5);
}
END_TEST

/* Cuts a text that follows a grammar after each of its first ids. After many of these ids the grammar is in the middle
 * of a pair of letters. So the next id shows whether the grammar continued from that point. */
START_TEST(a_cut_after_each_id) {
    static texts of;
    size_t drawn = (size_t)_i % DRAWS;
    of = texts_of((size_t)_i, drawn, GRAMMAR);
    for (size_t kept = 1; kept <= HALF; kept++) {
        manner how = {.at = {[WHO] = (size_t)_i,
                             [DRAWN] = drawn,
                             [BOUND] = GRAMMAR,
                             [LIFE] = CUT,
                             [METHOD] = kept % METHODS,
                             [CHUNK] = 2,
                             [WORD] = word_count - 1},
                      .depth = 1 + (int64_t)kept % (FR_STEP_MAX - 1),
                      .kept = kept};
        try_run(&how, &of, NULL);
    }
}
END_TEST

/* With rejection sampling the text depends on the drafter, the depth and the random numbers. Threads, chunk,
 * instruction set and neighbours must not change it. */
START_TEST(rejection_draws_the_same_on_any_machine) {
    static texts of;
    int32_t first[TEXT], ids[TEXT];
    of = texts_of((size_t)_i, WARM, FREE);
    for (int64_t depth = 3; depth < FR_STEP_MAX; depth += fr_test_full() ? 5 : 10) {
        double stood = 0;
        for (size_t i = 0; i < word_count + 1; i++) {
            manner how = {.at = {[WHO] = (size_t)_i,
                                 [DRAWN] = WARM,
                                 [NEIGHBOURS] = i % 3,
                                 [THREADS] = i % 3,
                                 [CHUNK] = i % 4,
                                 [WORD] = (word_count - 1 + i) % word_count},
                          .depth = depth,
                          .rejection = true};
            stood += try_run(&how, &of, i ? ids : first);
            if (i) ck_assert_msg(memcmp(ids, first, sizeof ids) == 0, "depth %d, run %zu", (int)depth, i);
        }
        ck_assert_double_gt(stood, 0);
    }
}
END_TEST

FR_SUITE("one answer with block drafters") {
    for (size_t i = 0; fr_lab_word(FR_LAB_ISA, i); i++)
        if (fr_lab_isa_here(fr_lab_word(FR_LAB_ISA, i))) words[word_count++] = fr_lab_word(FR_LAB_ISA, i);
    TCase *cases = tcase_create("blocks");
    tcase_set_timeout(cases, 0);
    tcase_add_loop_test(cases, every_two_values_together, 0, SUBJECTS);
    tcase_add_loop_test(cases, every_depth, 0, SUBJECTS);
    tcase_add_loop_test(cases, a_cut_after_each_id, 0, SUBJECTS);
    tcase_add_loop_test(cases, rejection_draws_the_same_on_any_machine, 0, SUBJECTS);
    suite_add_tcase(suite, cases);
}
