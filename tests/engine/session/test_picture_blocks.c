/* Tests pictures whose rows attend to each other (Gemma 3 and 4). All rows of such a picture must be in one forward
 * pass. A prompt must give the ids and logits that it gives in a session alone, whatever the chunk, the neighbouring
 * sessions and the earlier prompts are. test_vision_models.c compares sessions alone with transformers. */
/* suite: threads */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/engine/session/state.h"
#include "tests/support/least_kv.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

/* The kinds of pictures. The pictures of Gemma 4's E-series, of Mistral and of SmolVLM are causal, like text. In the
 * last three kinds a picture consists of several runs of tokens, so a truncation may fall between two runs. */
static const char *const kinds[] = {"gemma3",   "gemma4-dense", "gemma4-unified", "gemma4-e",
                                    "mistral3", "smolvlm",      "gemma3-crops"};

enum { KINDS = sizeof kinds / sizeof *kinds, TEXT = 12, PROMPTS_MAX = 8, CONTEXT = 320 };

static fr_options *make_options(int chunk) {
    fr_options *options = fr_options_new();
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set(options, FR_OPT_CONTEXT, CONTEXT));
    require(fr_options_set(options, FR_OPT_CHUNK, chunk));
    require(fr_options_set(options, FR_OPT_DRAFT_MAX, 0));
    return options;
}

/* The results of a prompt: the logits after it, and the ids that are generated next. */
typedef struct given {
    float *logits;
    int32_t ids[TEXT];
} given;

typedef struct subject {
    fr_reference r;
    size_t vocab, prompts;
    int32_t *ids[PROMPTS_MAX];
    size_t count[PROMPTS_MAX];
    given alone[PROMPTS_MAX];
} subject;

static void show(const subject *s, fr_session *session, size_t prompt) {
    const json_t *list = json_array_get(json_object_get(s->r.info, "prompt_pictures"), prompt);
    for (size_t count = json_array_size(list), i = 0; count && i <= count; i++) {
        static fr_picture *pictures[4];
        char path[400];
        if (i == count) {
            require(fr_session_show(session, (const fr_picture *const *)pictures, count));
            for (size_t p = 0; p < count; p++) fr_picture_close(pictures[p]);
            return;
        }
        const json_t *images = json_object_get(s->r.info, "images");
        const json_t *entry = json_array_get(images, (size_t)json_integer_value(json_array_get(list, i)));
        snprintf(path, sizeof path, "%s/%s", s->r.folder, json_string_value(json_object_get(entry, "file")));
        require(fr_picture_open(path, s->r.model, &pictures[i]));
    }
}

static void go_on(fr_session *session, int32_t *ids, size_t count) {
    for (size_t made = 0, got, accepted; made < count; made += got)
        require(fr_session_step(session, ids + made, count - made, &got, &accepted));
}

static void take_logits(const subject *s, fr_session *session, float *logits) {
    const float *next;
    require(fr_session_next_logits(session, &next));
    memcpy(logits, next, s->vocab * sizeof *logits);
}

static void run_alone(const subject *s, size_t prompt, int chunk, given *g) {
    fr_session *session;
    fr_options *options = make_options(chunk);
    g->logits = malloc(s->vocab * sizeof *g->logits);
    require(fr_session_open(s->r.model, NULL, options, &session));
    show(s, session, prompt);
    require(fr_session_prompt(session, s->ids[prompt], s->count[prompt]));
    take_logits(s, session, g->logits);
    go_on(session, g->ids, TEXT);
    fr_session_close(session);
    fr_options_free(options);
}

static void expect_same(const subject *s, const given *got, size_t prompt) {
    ck_assert_mem_eq(got->logits, s->alone[prompt].logits, s->vocab * sizeof *got->logits);
    ck_assert_mem_eq(got->ids, s->alone[prompt].ids, sizeof got->ids);
}

static subject open_subject(int kind) {
    subject s = {0};
    char name[64];
    snprintf(name, sizeof name, "../vision/%s", kinds[kind]);
    fr_reference_open(&s.r, name, NULL);
    const json_t *prompts = json_object_get(s.r.info, "prompts");
    s.vocab = (size_t)fr_model_fact(s.r.model, FR_FACT_VOCAB);
    s.prompts = json_array_size(prompts);
    ck_assert_uint_le(s.prompts, PROMPTS_MAX);
    for (size_t i = 0; i < s.prompts; i++) {
        s.ids[i] = fr_json_ids_of(json_array_get(prompts, i), &s.count[i]);
        run_alone(&s, i, 512, &s.alone[i]);
    }
    return s;
}

static void close_subject(subject *s) {
    for (size_t i = 0; i < s->prompts; i++) {
        free(s->ids[i]);
        free(s->alone[i].logits);
    }
    fr_reference_close(&s->r);
}

START_TEST(any_chunk_gives_the_same_bits) {
    static const int chunks[] = {1, 5, 33, 100};
    subject s = open_subject(_i);
    for (size_t c = 0; c < sizeof chunks / sizeof *chunks; c++)
        for (size_t i = 0; i < s.prompts; i++) {
            given g;
            run_alone(&s, i, chunks[c], &g);
            expect_same(&s, &g, i);
            free(g.logits);
        }
    close_subject(&s);
}
END_TEST

/* If earlier prompts leave too few rows of a round for a picture, the picture must wait. A forward pass must never have
 * more rows than its memory allows. */
START_TEST(neighbours_leave_no_trace) {
    subject s = open_subject(_i);
    for (size_t piece = 0; piece < 2; piece++) {
        static const size_t pieces[] = {3, 0};
        fr_engine *engine;
        fr_options *options = make_options(9);
        fr_session *sessions[PROMPTS_MAX];
        fr_round rounds[PROMPTS_MAX];
        given got[PROMPTS_MAX] = {0};
        size_t made[PROMPTS_MAX] = {0}, ready = 0;
        require(fr_engine_open(s.r.model, NULL, options, s.prompts, &engine));
        fr_engine_set_piece(engine, pieces[piece]);
        for (size_t i = 0; i < s.prompts; i++) {
            require(fr_engine_session(engine, options, &sessions[i]));
            show(&s, sessions[i], i);
            require(fr_session_put(sessions[i], s.ids[i], s.count[i]));
        }
        for (size_t step = 0; ready < s.prompts; step++) {
            ck_assert_uint_lt(step, 2000);
            for (size_t i = 0; i < s.prompts; i++)
                rounds[i] = (fr_round){.session = sessions[i], .ids = got[i].ids + made[i], .limit = TEXT - made[i]};
            require(fr_engine_step(engine, rounds, s.prompts));
            for (size_t i = ready = 0; i < s.prompts; i++) {
                require(rounds[i].status);
                made[i] += rounds[i].count;
                ready += made[i] == TEXT;
            }
        }
        for (size_t i = 0; i < s.prompts; i++) {
            ck_assert_mem_eq(got[i].ids, s.alone[i].ids, sizeof got[i].ids);
            fr_session_close(sessions[i]);
        }
        fr_engine_close(engine);
        fr_options_free(options);
    }
    close_subject(&s);
}
END_TEST

/* Runs prompts that begin with text and pictures that another session has run. If `few_pages` is true, the reusable
 * part may end within a picture. Returns how many ids were reused. */
static double run_prefixes(const subject *s, bool few_pages) {
    fr_engine *engine;
    fr_options *options = make_options(9);
    double reused = 0;
    if (few_pages)
        require(fr_options_set(options, FR_OPT_KV_MEMORY, (int64_t)fr_test_least_kv(s->r.model, NULL, options, 2)));
    require(fr_engine_open(s->r.model, NULL, options, 2, &engine));
    for (size_t turn = 0; turn < 2 * s->prompts; turn++) {
        size_t prompt = turn * 5 % 7 % s->prompts;
        fr_session *session;
        given g = {.logits = malloc(s->vocab * sizeof(float))};
        require(fr_engine_session(engine, options, &session));
        show(s, session, prompt);
        require(fr_session_prompt(session, s->ids[prompt], s->count[prompt]));
        take_logits(s, session, g.logits);
        go_on(session, g.ids, TEXT);
        expect_same(s, &g, prompt);
        reused += fr_session_stat(session, FR_STAT_REUSED_TOKENS);
        free(g.logits);
        fr_session_close(session);
    }
    fr_engine_close(engine);
    fr_options_free(options);
    return reused;
}

START_TEST(prefixes_are_used_again) {
    subject s = open_subject(_i);
    ck_assert_double_gt(run_prefixes(&s, false), 0);
    run_prefixes(&s, true);
    close_subject(&s);
}
END_TEST

static bool count_down(void *context) {
    int *left = context;
    return (*left)-- == 0;
}

/* A prompt is aborted, and the next step runs the rest of it. Then it is truncated at several positions and given
 * again. A truncation within a picture must remove the whole picture. */
START_TEST(aborted_and_cut_prompts) {
    subject s = open_subject(_i);
    size_t prompt = s.prompts - 1, count = s.count[prompt], first = 0, last;
    const int32_t *ids = s.ids[prompt];
    int32_t image = (int32_t)fr_model_fact(s.r.model, FR_FACT_IMAGE_TOKEN);
    fr_options *options = make_options(9);
    fr_session *session;
    while (ids[first] != image) first++;
    for (last = first; ids[last] == image;) last++;
    require(fr_session_open(s.r.model, NULL, options, &session));
    for (int forwards = 0; forwards < 4; forwards++) {
        int left = forwards;
        given g = {.logits = malloc(s.vocab * sizeof(float))};
        fr_session_reset(session);
        show(&s, session, prompt);
        fr_session_set_abort(session, count_down, &left);
        ck_assert_int_eq(fr_session_prompt(session, ids, count), FR_ABORTED);
        fr_session_set_abort(session, NULL, NULL);
        go_on(session, g.ids, TEXT);
        ck_assert_mem_eq(g.ids, s.alone[prompt].ids, sizeof g.ids);
        /* The whole prompt has been run. The test truncates it before, within and after the picture, and gives the rest
         * again. */
        const size_t cuts[] = {count - 1, last + 1, last, first + 1, first, 2};
        for (size_t c = 0; c < sizeof cuts / sizeof *cuts; c++) {
            require(fr_session_truncate(session, cuts[c]));
            show(&s, session, prompt);
            require(fr_session_set_prompt(session, ids, count));
            take_logits(&s, session, g.logits);
            go_on(session, g.ids, TEXT);
            expect_same(&s, &g, prompt);
        }
        free(g.logits);
    }
    /* The test now truncates within a picture and does not give the rest again, so only the picture's first tokens
     * remain. The next step must then fail, even if the rows of these tokens are in the cache. There is one exception:
     * a causal picture of which no row has been run. */
    for (int all = 0; all < 2; all++) {
        int none = 0;
        fr_session_reset(session);
        show(&s, session, prompt);
        if (!all) fr_session_set_abort(session, count_down, &none);
        ck_assert_int_eq(fr_session_prompt(session, ids, count), all ? FR_OK : FR_ABORTED);
        fr_session_set_abort(session, NULL, NULL);
        require(fr_session_truncate(session, first + 1));
        int32_t next;
        size_t got, accepted;
        bool causal = s.r.model->block_rows == 0;
        ck_assert_int_eq(fr_session_step(session, &next, 1, &got, &accepted), causal && !all ? FR_OK : FR_INPUT);
    }
    fr_session_close(session);
    fr_options_free(options);
    close_subject(&s);
}
END_TEST

FR_SUITE("picture_blocks") {
    TCase *tests = tcase_create("blocks");
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, any_chunk_gives_the_same_bits, 0, KINDS);
    tcase_add_loop_test(tests, neighbours_leave_no_trace, 0, KINDS);
    tcase_add_loop_test(tests, prefixes_are_used_again, 0, KINDS);
    tcase_add_loop_test(tests, aborted_and_cut_prompts, 0, KINDS);
    suite_add_tcase(suite, tests);
}
