/* Tests the library's calls beyond prompting and stepping. A program reads ids and logits, masks logits, changes how a
 * session samples, asks how much memory a model will take, aborts a load, forks child processes, and passes NULL. */
#include <check.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "forerun.h"
#include "tests/support/reference.h"
#include "tests/support/suite.h"

#define COUNT 40

static void require(fr_status status) {
    ck_assert_msg(status == FR_OK, "%s", fr_last_error());
}

static const int32_t prompt[] = {2, 100, 200, 300, 400, 50, 60, 70, 80, 90};
enum { PROMPT = sizeof prompt / sizeof *prompt };

/* The three pairs undo rejected drafts in different ways. gemma4-e has sliding layers and a separate drafter. EAGLE-3's
 * drafter keeps a cached row of its own for each row of the target. qwen35-tied has recurrent states, and drafts with
 * its own MTP layer. */
static const struct {
    const char *target, *drafter; /* drafter: "" means the target's own MTP layer; NULL: there is no drafter */
} pairs[] = {{FR_TEST_MODELS "gemma4-e", FR_TEST_MODELS "gemma4-e/assistant"},
             {"tests/data/llama/q4_0.gguf", "tests/data/llama/eagle3.gguf"},
             {FR_TEST_MODELS "qwen35-tied", ""}};
enum { PAIRS = sizeof pairs / sizeof *pairs };

typedef struct engine {
    fr_model *model;
    fr_drafter *drafter;
    fr_options *options;
} engine;

static engine open_engine(int pair) {
    engine e = {.options = fr_options_new()};
    require(fr_options_set(e.options, FR_OPT_CONTEXT, 128));
    require(fr_options_set(e.options, FR_OPT_THREADS, 1));
    require(fr_options_set(e.options, FR_OPT_IGNORE_EOS, 1));
    require(fr_model_open(pairs[pair].target, e.options, &e.model));
    const char *path = *pairs[pair].drafter ? pairs[pair].drafter : NULL;
    require(fr_drafter_open(path, e.model, e.options, &e.drafter));
    return e;
}

static void close_engine(engine *e) {
    fr_drafter_close(e->drafter);
    fr_model_close(e->model);
    fr_options_free(e->options);
}

static fr_session *open_session(const engine *e, bool drafts) {
    fr_session *session;
    require(fr_session_open(e->model, drafts ? e->drafter : NULL, e->options, &session));
    return session;
}

/* Prompts a session. The ids are taken modulo the size of the vocabulary, because the smallest model has few
 * tokens. */
static void begin(const engine *e, fr_session *session) {
    int32_t ids[PROMPT], vocab = (int32_t)fr_model_fact(e->model, FR_FACT_VOCAB);
    for (size_t i = 0; i < PROMPT; i++) ids[i] = prompt[i] % vocab;
    require(fr_session_prompt(session, ids, PROMPT));
}

static void generate(fr_session *session, int32_t *ids, size_t count) {
    for (size_t made = 0, got; made < count; made += got) {
        require(fr_session_step(session, ids + made, count - made, &got, NULL));
        ck_assert_uint_gt(got, 0);
    }
}

static void say(const engine *e, bool drafts, int32_t *ids, size_t count) {
    fr_session *session = open_session(e, drafts);
    begin(e, session);
    generate(session, ids, count);
    fr_session_close(session);
}

static void expect_ids(const int32_t *got, const int32_t *expected, size_t count) {
    for (size_t i = 0; i < count; i++)
        ck_assert_msg(got[i] == expected[i], "id %zu: %d, not %d", i, got[i], expected[i]);
}

/* --------------------------------------------------------------------------------------------------- ids and logits */

/* If the same ids are prompted again, a new text starts, so mirostat's bound must be back at its initial value. Reading
 * logits before that must not change it. */
START_TEST(a_look_at_logits_leaves_no_bound_behind) {
    engine e = open_engine(_i);
    require(fr_options_set_number(e.options, FR_OPT_TEMPERATURE, 1));
    require(fr_options_set(e.options, FR_OPT_MIROSTAT, 2));
    require(fr_options_set_number(e.options, FR_OPT_MIROSTAT_LR, 1));
    for (int64_t seed = 0; seed < 8; seed++) {
        int32_t said[2][COUNT], timeline[PROMPT + COUNT];
        require(fr_options_set(e.options, FR_OPT_SEED, seed));
        for (int looks = 0; looks < 2; looks++) {
            fr_session *session = open_session(&e, false);
            const int32_t *ids;
            const float *logits;
            begin(&e, session);
            generate(session, said[looks], COUNT);
            memcpy(timeline, (fr_session_ids(session, &ids), ids), sizeof timeline);
            if (looks) require(fr_session_next_logits(session, &logits));
            require(fr_session_set_prompt(session, timeline, PROMPT + COUNT));
            generate(session, said[looks], COUNT);
            fr_session_close(session);
        }
        expect_ids(said[1], said[0], COUNT);
    }
    close_engine(&e);
}
END_TEST

START_TEST(a_restored_timeline_tells_its_ids) {
    engine e = open_engine(_i);
    fr_session *session = open_session(&e, true), *other = open_session(&e, false);
    int32_t said[COUNT];
    const int32_t *ids;
    void *bytes;
    size_t size;
    ck_assert_uint_eq(fr_session_ids(session, &ids), 0);
    begin(&e, session);
    generate(session, said, COUNT);
    require(fr_session_save_bytes(session, &bytes, &size));
    require(fr_session_restore_bytes(other, bytes, size));
    ck_assert_uint_eq(fr_session_ids(other, &ids), PROMPT + COUNT);
    expect_ids(ids + PROMPT, said, COUNT);
    ck_assert_uint_eq(fr_session_ids(other, NULL), PROMPT + COUNT);
    fr_free(bytes);
    fr_session_close(other);
    fr_session_close(session);
    close_engine(&e);
}
END_TEST

/* Compares the session's next logits with those of a new session whose prompt is the whole timeline. */
static void expect_next_logits(const engine *e, fr_session *session) {
    const int32_t *ids;
    const float *logits;
    size_t vocab = (size_t)fr_model_fact(e->model, FR_FACT_VOCAB), length = fr_session_ids(session, &ids);
    fr_rows rows = {.values = malloc(vocab * sizeof(float)), .capacity = vocab};
    fr_session *fresh = open_session(e, false);
    require(fr_session_logits(fresh, ids, length, length - 1, fr_rows_collect, &rows));
    require(fr_session_next_logits(session, &logits));
    ck_assert_uint_eq(rows.count, vocab);
    ck_assert(memcmp(rows.values, logits, vocab * sizeof *logits) == 0);
    ck_assert_uint_eq(fr_session_length(session), length);
    free(rows.values);
    fr_session_close(fresh);
}

START_TEST(logits_of_the_next_token_are_those_of_its_prompt) {
    engine e = open_engine(_i);
    int32_t expected[COUNT], got[COUNT];
    say(&e, false, expected, COUNT);
    fr_session *session = open_session(&e, true);
    const float *logits;
    ck_assert_int_eq(fr_session_next_logits(session, &logits), FR_USAGE);
    begin(&e, session);
    expect_next_logits(&e, session);
    for (size_t made = 0, step; made < COUNT; made += step) {
        require(fr_session_step(session, got + made, COUNT - made, &step, NULL));
        if (made % 3 == 0) expect_next_logits(&e, session);
        if (made % 2 == 0) expect_next_logits(&e, session);
    }
    expect_ids(got, expected, COUNT);
    fr_session_close(session);
    close_engine(&e);
}
END_TEST

/* A program can choose tokens itself: it appends the id of the largest logit as a prompt, and repeats this. The result
 * must be the ids that the session generates by itself. */
START_TEST(a_sampler_of_ones_own_is_a_loop) {
    engine e = open_engine(_i);
    int32_t expected[COUNT];
    size_t vocab = (size_t)fr_model_fact(e.model, FR_FACT_VOCAB), suppressed;
    const int32_t *banned;
    say(&e, false, expected, COUNT);
    suppressed = fr_model_suppressed(e.model, &banned);
    ck_assert_uint_eq(suppressed, 0);
    fr_session *session = open_session(&e, true);
    begin(&e, session);
    for (size_t i = 0; i < COUNT; i++) {
        const float *logits;
        int32_t best = 0;
        require(fr_session_next_logits(session, &logits));
        for (size_t id = 1; id < vocab; id++)
            if (logits[id] > logits[best]) best = (int32_t)id;
        ck_assert_int_eq(best, expected[i]);
        require(fr_session_prompt(session, &best, 1));
    }
    fr_session_close(session);
    close_engine(&e);
}
END_TEST

/* Logits are in memory of the engine, and a forward of another session overwrites that memory. If the logits are read
 * after that, the last row must be run again. */
START_TEST(logits_outlive_a_neighbour) {
    engine e = open_engine(0);
    fr_engine *shared;
    fr_session *session, *neighbour;
    require(fr_engine_open(e.model, NULL, e.options, 2, &shared));
    require(fr_engine_session(shared, e.options, &session));
    require(fr_engine_session(shared, e.options, &neighbour));
    begin(&e, session);
    require(fr_session_prompt(neighbour, (int32_t[]){2, 7, 7, 9}, 4));
    expect_next_logits(&e, session);
    int32_t expected[COUNT], got[COUNT];
    say(&e, false, expected, COUNT);
    generate(session, got, COUNT);
    expect_ids(got, expected, COUNT);
    fr_session_close(session);
    fr_session_close(neighbour);
    fr_engine_close(shared);
    close_engine(&e);
}
END_TEST

/* ------------------------------------------------------------------------------------------------ masks and options */

typedef struct ban {
    const int32_t *ids;
    size_t count, calls, fails_at;
} ban;

static fr_status mask(void *context, const int32_t *ids, size_t length, float *logits, size_t vocab) {
    ban *b = context;
    ck_assert(length >= PROMPT && ids[0] == prompt[0] % (int32_t)vocab);
    if (++b->calls == b->fails_at) return FR_NUMERIC;
    for (size_t i = 0; i < b->count; i++) logits[b->ids[i]] = -INFINITY;
    return FR_OK;
}

static void draw_by(fr_options *options, bool samples, const char *accept) {
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, samples ? 1.5 : 0));
    require(fr_options_set(options, FR_OPT_SEED, 7));
    require(fr_options_set_text(options, FR_OPT_ACCEPT, accept));
}

/* A mask that bans some ids gives the same text as a logit bias of -inf for these ids. This must hold for greedy and
 * sampled text, with and without drafts. */
START_TEST(a_mask_bans_what_a_bias_bans) {
    engine e = open_engine(_i / 2);
    int32_t first[8], expected[COUNT], got[COUNT];
    char biases[256] = "";
    draw_by(e.options, _i % 2, "gumbel");
    say(&e, false, first, 8);
    for (size_t i = 0; i < 8; i++)
        snprintf(biases + strlen(biases), sizeof biases - strlen(biases), "%s%d-inf", i ? "," : "", first[i]);
    fr_options *plain = fr_options_copy(e.options);
    require(fr_options_set_text(e.options, FR_OPT_LOGIT_BIAS, biases));
    say(&e, false, expected, COUNT);
    fr_options_free(e.options);
    e.options = plain;
    for (int drafts = 0; drafts < 2; drafts++) {
        ban b = {first, 8, 0, 0};
        fr_session *session = open_session(&e, drafts);
        require(fr_session_set_mask(session, mask, &b));
        begin(&e, session);
        generate(session, got, COUNT);
        expect_ids(got, expected, COUNT);
        ck_assert_uint_ge(b.calls, COUNT);
        fr_session_close(session);
    }
    close_engine(&e);
}
END_TEST

/* A mask that is set after a prompt already applies to the logits of the prompt's last row. If a mask function fails,
 * the timeline stays as it was. */
START_TEST(a_mask_comes_and_goes) {
    engine e = open_engine(_i);
    int32_t expected[COUNT], got[COUNT];
    size_t count = 9;
    say(&e, false, expected, COUNT);
    ban b = {expected, 1, 0, 0};
    fr_session *session = open_session(&e, true);
    begin(&e, session);
    require(fr_session_set_mask(session, mask, &b));
    generate(session, got, 1);
    ck_assert_int_ne(got[0], expected[0]);
    require(fr_session_truncate(session, PROMPT));
    b.fails_at = b.calls + 1;
    ck_assert_int_eq(fr_session_step(session, got, COUNT, &count, NULL), FR_NUMERIC);
    ck_assert_uint_eq(count, 0);
    ck_assert_uint_eq(fr_session_length(session), PROMPT);
    require(fr_session_set_mask(session, NULL, NULL));
    generate(session, got, COUNT / 2);
    require(fr_session_set_mask(session, mask, &(ban){NULL, 0, 0, 1}));
    ck_assert_int_eq(fr_session_step(session, got + COUNT / 2, COUNT / 2, &count, NULL), FR_NUMERIC);
    ck_assert_uint_eq(fr_session_length(session), PROMPT + COUNT / 2);
    require(fr_session_set_mask(session, NULL, NULL));
    generate(session, got + COUNT / 2, COUNT / 2);
    expect_ids(got, expected, COUNT);
    fr_session_close(session);
    close_engine(&e);
}
END_TEST

/* The noise of sampling depends only on seed, position and token. So a session that gets new options in the middle of
 * a text continues like a new session with these options whose prompt is the text so far. */
START_TEST(a_session_draws_by_new_options) {
    engine e = open_engine(_i / 2);
    int32_t got[COUNT], expected[COUNT];
    fr_session *session = open_session(&e, true);
    const int32_t *ids;
    begin(&e, session);
    if (_i % 2) generate(session, got, COUNT / 2);
    draw_by(e.options, true, "gumbel");
    require(fr_options_set_text(e.options, FR_OPT_LOGIT_BIAS, "5+1.5"));
    require(fr_options_set_number(e.options, FR_OPT_REPEAT_PENALTY, 1.2));
    require(fr_options_set(e.options, FR_OPT_TOP_K, 40));
    fr_session *other = open_session(&e, false);
    size_t length = fr_session_ids(session, &ids);
    require(fr_session_prompt(other, ids, length));
    generate(other, expected, COUNT);
    require(fr_session_set_options(session, e.options));
    generate(session, got, COUNT);
    expect_ids(got, expected, COUNT);
    require(fr_session_truncate(session, length));
    require(fr_session_set_options(session, NULL));
    require(fr_options_set_text(e.options, FR_OPT_LOGIT_BIAS, "100000000+1"));
    ck_assert_int_eq(fr_session_set_options(session, e.options), FR_INPUT);
    fr_session_close(other);
    fr_session_close(session);
    close_engine(&e);
}
END_TEST

static size_t propose_nothing(void *context, fr_drafting *drafting) {
    (void)context, (void)drafting;
    return 0;
}

START_TEST(rejection_stays_beside_a_method_of_ones_own) {
    engine e = open_engine(0);
    fr_session *session = open_session(&e, true);
    require(fr_session_set_proposer(session, &(fr_proposer){.propose = propose_nothing}));
    begin(&e, session);
    draw_by(e.options, true, "rejection");
    ck_assert_int_eq(fr_session_set_options(session, e.options), FR_USAGE);
    draw_by(e.options, true, "gumbel");
    require(fr_session_set_options(session, e.options));
    int32_t ids[COUNT];
    generate(session, ids, COUNT);
    fr_session_close(session);
    close_engine(&e);
}
END_TEST

START_TEST(every_option_can_be_asked_for) {
    ck_assert_str_eq(fr_version(), FR_VERSION);
    fr_options *options = fr_options_new();
    for (fr_option o = 0; o < FR_OPT_COUNT; o++) {
        fr_option_kind kind;
        double low, high, number;
        int64_t whole;
        char text[64];
        ck_assert_ptr_nonnull(fr_option_name(o));
        require(fr_option_range(o, &kind, &low, &high));
        ck_assert_int_eq(fr_options_get(options, o, &whole) == FR_OK, kind == FR_OPTION_WHOLE);
        ck_assert_int_eq(fr_options_get_number(options, o, &number) == FR_OK, kind == FR_OPTION_NUMBER);
        ck_assert_int_eq(fr_options_get_text(options, o, text, sizeof text, NULL) == FR_OK, kind == FR_OPTION_TEXT);
        /* the range of draft-p-min does not include the values that mean "automatic", which are allowed too */
        bool beside = o == FR_OPT_DRAFT_P_MIN && number <= FR_DRAFT_P_AUTO;
        if (kind == FR_OPTION_NUMBER) ck_assert((number >= low || beside) && number <= high);
        if (kind == FR_OPTION_NUMBER) ck_assert_int_eq(fr_options_set_number(options, o, high + 1), FR_USAGE);
        if (kind == FR_OPTION_WHOLE) ck_assert((double)whole >= fmin(low, -1) && (double)whole <= high);
        if (kind == FR_OPTION_WHOLE) ck_assert_int_eq(fr_options_set(options, o, (int64_t)low - 1), FR_USAGE);
    }
    ck_assert_ptr_null(fr_option_name(FR_OPT_COUNT));
    ck_assert_int_eq(fr_option_range(FR_OPT_COUNT, NULL, NULL, NULL), FR_USAGE);
    ck_assert_int_eq(fr_options_set_number(options, FR_OPT_THREADS, 1.5), FR_USAGE);
    ck_assert_str_eq(fr_last_error(), "threads takes a whole number, not a number");
    fr_options_free(options);
}
END_TEST

static const struct {
    fr_option option;
    const char *text;
} texts[] = {{FR_OPT_ISA, "scalar"},
             {FR_OPT_KV_K, "q8_0"},
             {FR_OPT_KV_V, "bf16"},
             {FR_OPT_ACCEPT, "rejection"},
             {FR_OPT_SPEC_TYPE, "mtp,ngram"},
             {FR_OPT_MMPROJ, "a/path"},
             {FR_OPT_CHAT_TEMPLATE, "x.jinja"},
             {FR_OPT_TOKENIZER_PRE, "qwen2"},
             {FR_OPT_LOGIT_BIAS, "5+1.5,6-inf,7-0.100000001"}};

START_TEST(texts_are_read_back) {
    fr_options *options = fr_options_new();
    char text[64], least[4];
    size_t length;
    require(fr_options_set_text(options, texts[_i].option, texts[_i].text));
    require(fr_options_get_text(options, texts[_i].option, text, sizeof text, &length));
    ck_assert_str_eq(text, texts[_i].text);
    ck_assert_uint_eq(length, strlen(text));
    ck_assert_int_eq(fr_options_get_text(options, texts[_i].option, least, sizeof least, &length), FR_USAGE);
    ck_assert_uint_eq(length, strlen(text));
    ck_assert_int_eq(fr_options_get_text(options, texts[_i].option, NULL, 0, &length), FR_USAGE);
    ck_assert_uint_eq(length, strlen(text));
    fr_options_free(options);
}
END_TEST

/* ----------------------------------------------------------------------------------------------------------- memory */

static double stat_of(const fr_session *session, fr_stat stat) {
    return fr_session_stat(session, stat);
}

static bool is_loading(void *context, uint64_t done, uint64_t total) {
    (void)done, (void)total;
    ck_abort_msg("an estimate brings weights in: %s", (const char *)context);
    return false;
}

START_TEST(an_estimate_is_what_a_session_takes) {
    engine e = open_engine(_i);
    uint64_t bytes[FR_ESTIMATE_COUNT], plain[FR_ESTIMATE_COUNT];
    fr_session *session = open_session(&e, true), *alone = open_session(&e, false);
    fr_options_set_progress(e.options, is_loading, (void *)(uintptr_t)pairs[_i].target);
    require(fr_model_estimate(pairs[_i].target, pairs[_i].drafter, e.options, 1, bytes));
    require(fr_model_estimate(pairs[_i].target, NULL, e.options, 1, plain));
    ck_assert_double_eq((double)bytes[FR_ESTIMATE_RESIDENT], stat_of(session, FR_STAT_RESIDENT_BYTES));
    ck_assert_double_eq((double)bytes[FR_ESTIMATE_MAPPED], stat_of(session, FR_STAT_MAPPED_BYTES));
    ck_assert_double_eq((double)plain[FR_ESTIMATE_RESIDENT], stat_of(alone, FR_STAT_RESIDENT_BYTES));
    ck_assert_double_eq((double)(bytes[FR_ESTIMATE_KV] + bytes[FR_ESTIMATE_STATES]),
                        stat_of(session, FR_STAT_TARGET_KV_BYTES));
    ck_assert_double_eq((double)bytes[FR_ESTIMATE_STATES], stat_of(session, FR_STAT_STATE_BYTES));
    ck_assert_double_eq((double)bytes[FR_ESTIMATE_CHECKPOINTS], stat_of(session, FR_STAT_CHECKPOINT_BYTES));
    ck_assert_double_eq((double)(bytes[FR_ESTIMATE_DRAFTING] + bytes[FR_ESTIMATE_SCRATCH]),
                        stat_of(session, FR_STAT_SCRATCH_BYTES) + stat_of(session, FR_STAT_DRAFT_KV_BYTES));
    ck_assert_double_eq((double)plain[FR_ESTIMATE_SCRATCH], stat_of(alone, FR_STAT_SCRATCH_BYTES));
    ck_assert_uint_gt(bytes[FR_ESTIMATE_DRAFTING], 0);
    ck_assert_uint_eq(plain[FR_ESTIMATE_DRAFTING], 0);
    ck_assert_uint_gt(bytes[FR_ESTIMATE_AVAILABLE], 0);
    fr_session_close(session);
    fr_session_close(alone);
    close_engine(&e);
}
END_TEST

START_TEST(a_limit_is_heeded_to_the_byte) {
    engine e = open_engine(_i);
    uint64_t bytes[FR_ESTIMATE_COUNT];
    fr_session *session;
    require(fr_model_estimate(pairs[_i].target, pairs[_i].drafter, e.options, 1, bytes));
    require(fr_options_set(e.options, FR_OPT_MEMORY, (int64_t)bytes[FR_ESTIMATE_TOTAL]));
    fr_session_close(open_session(&e, true));
    require(fr_options_set(e.options, FR_OPT_MEMORY, (int64_t)bytes[FR_ESTIMATE_TOTAL] - 1));
    ck_assert_int_eq(fr_session_open(e.model, e.drafter, e.options, &session), FR_MEMORY);
    ck_assert_int_eq(fr_last_error_option(), FR_OPT_MEMORY);
    ck_assert_ptr_null(session);
    fr_model *model;
    fr_drafter *drafter;
    require(fr_options_set(e.options, FR_OPT_MEMORY, 1000));
    ck_assert_int_eq(fr_model_open(pairs[_i].target, e.options, &model), FR_MEMORY);
    ck_assert_int_eq(fr_last_error_option(), FR_OPT_MEMORY);
    ck_assert_int_eq(fr_drafter_open(*pairs[_i].drafter ? pairs[_i].drafter : NULL, e.model, e.options, &drafter),
                     FR_MEMORY);
    close_engine(&e);
}
END_TEST

/* Under a memory limit an engine opens with fewer pages of keys and values. An engine needs a least number of pages to
 * work. If the limit leaves no room for these, opening fails. */
START_TEST(an_engine_gives_way_to_its_limit) {
    engine e = open_engine(0);
    uint64_t bytes[FR_ESTIMATE_COUNT], least[FR_ESTIMATE_COUNT];
    fr_engine *shared;
    fr_session *session;
    require(fr_options_set(e.options, FR_OPT_CONTEXT, 2048));
    require(fr_model_estimate(pairs[0].target, NULL, e.options, 8, bytes));
    ck_assert_uint_gt(bytes[FR_ESTIMATE_KV_LEAST], 0);
    fr_options *fewest = fr_options_copy(e.options);
    require(fr_options_set(fewest, FR_OPT_KV_MEMORY, (int64_t)bytes[FR_ESTIMATE_KV_LEAST]));
    require(fr_model_estimate(pairs[0].target, NULL, fewest, 8, least));
    ck_assert_uint_lt(least[FR_ESTIMATE_TOTAL], bytes[FR_ESTIMATE_TOTAL]);
    uint64_t between = (least[FR_ESTIMATE_TOTAL] + bytes[FR_ESTIMATE_TOTAL]) / 2;
    require(fr_options_set(e.options, FR_OPT_MEMORY, (int64_t)between));
    require(fr_engine_open(e.model, NULL, e.options, 8, &shared));
    require(fr_engine_session(shared, e.options, &session));
    ck_assert_double_lt(stat_of(session, FR_STAT_TARGET_KV_BYTES), (double)bytes[FR_ESTIMATE_KV]);
    fr_session_close(session);
    fr_engine_close(shared);
    require(fr_options_set(e.options, FR_OPT_MEMORY, (int64_t)least[FR_ESTIMATE_TOTAL] - 1));
    ck_assert_int_eq(fr_engine_open(e.model, NULL, e.options, 8, &shared), FR_MEMORY);
    fr_options_free(fewest);
    close_engine(&e);
}
END_TEST

/* An engine opens under every limit between the least size and the full size. A lower limit never gives the engine more
 * memory for keys and values. */
START_TEST(every_limit_from_the_least_on_opens) {
    enum { SESSIONS = 4, LIMITS = 5 };
    engine e = open_engine(_i);
    uint64_t all[FR_ESTIMATE_COUNT], least[FR_ESTIMATE_COUNT];
    double before = INFINITY;
    require(fr_options_set(e.options, FR_OPT_CONTEXT, 256));
    require(fr_model_estimate(pairs[_i].target, NULL, e.options, SESSIONS, all));
    fr_options *limited = fr_options_copy(e.options);
    require(fr_options_set(limited, FR_OPT_KV_MEMORY, (int64_t)all[FR_ESTIMATE_KV_LEAST]));
    require(fr_model_estimate(pairs[_i].target, NULL, limited, SESSIONS, least));
    require(fr_options_set(limited, FR_OPT_KV_MEMORY, 0));
    uint64_t lowest = least[FR_ESTIMATE_TOTAL], range = all[FR_ESTIMATE_TOTAL] - lowest;
    ck_assert_uint_gt(range, 0);
    for (uint64_t i = LIMITS; i-- > 0;) {
        fr_engine *shared;
        fr_session *session;
        uint64_t limit = lowest + (i == LIMITS - 1 ? range - 1 : range * i / LIMITS);
        require(fr_options_set(limited, FR_OPT_MEMORY, (int64_t)limit));
        require(fr_engine_open(e.model, NULL, limited, SESSIONS, &shared));
        require(fr_engine_session(shared, e.options, &session));
        double kv = stat_of(session, FR_STAT_TARGET_KV_BYTES);
        ck_assert_double_lt(kv, (double)(all[FR_ESTIMATE_KV] + all[FR_ESTIMATE_STATES]));
        ck_assert_double_le(kv, before);
        before = kv;
        fr_session_close(session);
        fr_engine_close(shared);
    }
    fr_options_free(limited);
    close_engine(&e);
}
END_TEST

/* --------------------------------------------------------------------------------------------------------- progress */

static bool stop_at(void *context, uint64_t done, uint64_t total) {
    ck_assert_uint_le(done, total);
    return ++*(int *)context < 3;
}

START_TEST(a_load_ends_when_it_is_told_to) {
    fr_options *options = fr_options_new();
    fr_model *model;
    int calls = 0;
    fr_options_set_progress(options, stop_at, &calls);
    require(fr_options_set(options, FR_OPT_THREADS, 1 + _i));
    require(fr_options_set(options, FR_OPT_MMAP, _i));
    ck_assert_int_eq(fr_model_open(pairs[_i].target, options, &model), FR_ABORTED);
    ck_assert_ptr_null(model);
    ck_assert_int_eq(calls, 3);
    fr_options_free(options);
}
END_TEST

static bool after_one(void *context) {
    return (*(int *)context)++ > 0;
}

/* The abort callback is asked before each picture. Here it stops the vision encoder before the second of two
 * pictures. */
START_TEST(a_tower_asks_whether_to_abort) {
    fr_model *model;
    fr_picture *picture;
    fr_session *session;
    int asked = 0;
    require(fr_model_open("tests/data/glm-ocr", NULL, &model));
    require(fr_picture_open("tests/data/images/jpeg-rgb.jpg", model, &picture));
    require(fr_session_open(model, NULL, NULL, &session));
    const fr_picture *both[] = {picture, picture};
    fr_session_set_abort(session, after_one, &asked);
    ck_assert_int_eq(fr_session_show(session, both, 2), FR_ABORTED);
    ck_assert_int_eq(asked, 2);
    fr_session_set_abort(session, NULL, NULL);
    require(fr_session_show(session, both, 2));
    fr_session_close(session);
    fr_picture_close(picture);
    fr_model_close(model);
}
END_TEST

static void note_progress(void *context, size_t done, size_t total) {
    size_t *last = context;
    ck_assert_uint_eq(total, PROMPT);
    ck_assert_uint_gt(done, *last);
    *last = done;
}

START_TEST(a_prompt_tells_how_far_it_is) {
    engine e = open_engine(_i);
    size_t last = 0;
    require(fr_options_set(e.options, FR_OPT_CHUNK, 3));
    fr_session *session = open_session(&e, true);
    fr_session_set_progress(session, note_progress, &last);
    begin(&e, session);
    ck_assert_uint_eq(last, PROMPT);
    fr_session_set_progress(session, NULL, NULL);
    begin(&e, session);
    fr_session_close(session);
    close_engine(&e);
}
END_TEST

/* -------------------------------------------------------------------------------------------------------- processes */

/* Uses inherited models and sessions in a child process. Returns the child's exit status, which says which check
 * failed. */
static int in_child(const engine *e, fr_session *session, const int32_t *expected) {
    int32_t ids[COUNT];
    size_t count = 1, made = 0;
    fr_session *own;
    alarm(60);
    if (fr_session_step(session, ids, 1, &count, NULL) != FR_USAGE || count != 0) return 1;
    if (fr_session_prompt(session, prompt, 1) != FR_USAGE) return 2;
    if (fr_draft_submit(session) != FR_USAGE) return 3;
    if (!isnan(fr_session_stat(session, FR_STAT_KV_USED_BYTES))) return 4;
    if (fr_session_length(session) != PROMPT) return 5;
    if (fr_session_set_proposer(session, &(fr_proposer){.propose = propose_nothing}) != FR_USAGE) return 10;
    fr_session_reset(session);
    fr_session_close(session);
    if (fr_session_open(e->model, e->drafter, e->options, &own) != FR_OK) return 6;
    if (fr_session_prompt(own, prompt, PROMPT) != FR_OK) return 7;
    for (; made < COUNT && count <= COUNT; made += count)
        if (fr_session_step(own, ids + made, COUNT - made, &count, NULL) != FR_OK || count == 0) return 8;
    fr_session_close(own);
    return memcmp(ids, expected, sizeof ids) == 0 ? 0 : 9;
}

START_TEST(a_child_has_no_sessions_of_its_parent) {
    engine e = open_engine(0);
    int32_t expected[COUNT], got[COUNT];
    int status = -1;
    say(&e, false, expected, COUNT);
    require(fr_options_set(e.options, FR_OPT_THREADS, 2));
    fr_session *session = open_session(&e, true);
    begin(&e, session);
    require(fr_draft_submit(session));
    pid_t child = fork();
    if (child == 0) _exit(in_child(&e, session, expected));
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with %d", status);
    generate(session, got, COUNT);
    expect_ids(got, expected, COUNT);
    fr_session_close(session);
    close_engine(&e);
}
END_TEST

/* ----------------------------------------------------------------------------------------- models from other places */

static void *read_file(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    ck_assert_ptr_nonnull(file);
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    void *bytes = aligned_alloc(4096, (*size + 4095) / 4096 * 4096); /* The bytes fill whole pages of memory. The
                                                                      * library may drop pages of a mapped file. If it
                                                                      * dropped these pages, the bytes would change */
    ck_assert_uint_eq(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

static void expect_says(fr_model *model, const fr_options *options, const int32_t *expected) {
    engine e = {.model = model, .options = fr_options_copy(options)};
    int32_t got[COUNT];
    say(&e, false, got, COUNT);
    expect_ids(got, expected, COUNT);
    close_engine(&e);
}

START_TEST(a_model_comes_from_memory_or_a_descriptor) {
    const char *path = pairs[1].target;
    engine e = open_engine(1);
    int32_t expected[COUNT];
    char descriptor[64];
    size_t size;
    fr_model *model;
    say(&e, false, expected, COUNT);
    uint8_t *bytes = read_file(path, &size), *before = malloc(size);
    memcpy(before, bytes, size);
    require(fr_model_open_bytes(bytes, size, "a model", e.options, &model));
    expect_says(model, e.options, expected);
    ck_assert(memcmp(bytes, before, size) == 0);
    ck_assert_int_eq(fr_model_open_bytes(bytes + 4, size - 4, "a model", e.options, &model), FR_USAGE);
    ck_assert_int_eq(fr_model_open_bytes(bytes, size / 2, "half a model", e.options, &model), FR_INPUT);
    ck_assert_msg(strncmp(fr_last_error(), "half a model", 12) == 0, "%s", fr_last_error());
    int fd = open(path, O_RDONLY);
    snprintf(descriptor, sizeof descriptor, "/proc/self/fd/%d", fd);
    require(fr_model_open(descriptor, e.options, &model));
    close(fd);
    expect_says(model, e.options, expected);
    free(before);
    free(bytes);
    close_engine(&e);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------- single tokens */

/* The expected kinds and texts are copied from Gemma's tokenizer.json. */
START_TEST(a_token_has_a_kind_and_texts) {
    fr_tokenizer *t;
    size_t length;
    require(fr_tokenizer_open(FR_TEST_MODELS "gemma4-e", NULL, &t));
    int32_t bos = fr_tokenizer_bos(t), *ids;
    ck_assert_str_eq(fr_token_text(t, bos, &length), "<bos>");
    ck_assert_uint_eq(length, 5);
    ck_assert_int_eq(fr_token_kind_of(t, bos), FR_TOKEN_CONTROL);
    ck_assert_int_eq(fr_token_kind_of(t, fr_tokenizer_unk(t)), FR_TOKEN_UNKNOWN);
    require(fr_tokenize(t, "\x01", 1, false, false, &ids, &length));
    ck_assert_int_eq(fr_token_kind_of(t, ids[0]), FR_TOKEN_BYTE);
    ck_assert_str_eq(fr_token_text(t, ids[0], NULL), "<0x01>");
    ck_assert(*fr_token_bytes(t, ids[0], &length) == 1 && length == 1);
    fr_free(ids);
    require(fr_tokenize(t, " the", 4, false, false, &ids, &length));
    ck_assert_int_eq(fr_token_kind_of(t, ids[0]), FR_TOKEN_TEXT);
    fr_free(ids);
    ck_assert_int_eq(fr_token_kind_of(t, -1), FR_TOKEN_NONE);
    ck_assert_int_eq(fr_token_kind_of(t, (int32_t)fr_tokenizer_count(t)), FR_TOKEN_NONE);
    ck_assert_ptr_null(fr_token_text(t, -1, &length));
    ck_assert_ptr_null(fr_token_bytes(t, (int32_t)fr_tokenizer_count(t), &length));
    fr_tokenizer_close(t);
}
END_TEST

/* If the bytes of single tokens are joined, they equal the text of the whole list of tokens. */
START_TEST(bytes_of_tokens_are_their_text) {
    fr_tokenizer *t;
    int32_t *ids;
    size_t count, length, at = 0;
    const char text[] = "Wörter, 42\n\n\tand <more> — 日本";
    require(fr_tokenizer_open(_i ? "tests/data/gguf/gemma-tokenizer.gguf" : FR_TEST_MODELS "llama", NULL, &t));
    require(fr_tokenize(t, text, strlen(text), false, false, &ids, &count));
    for (size_t i = 0; i < count; i++) {
        const char *bytes = fr_token_bytes(t, ids[i], &length);
        ck_assert_uint_le(at + length, strlen(text));
        ck_assert(memcmp(bytes, text + at, length) == 0);
        at += length;
    }
    ck_assert_uint_eq(at, strlen(text));
    fr_free(ids);
    fr_tokenizer_close(t);
}
END_TEST

FR_SUITE("embedder") {
    TCase *cases = tcase_create("embedder");
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, a_look_at_logits_leaves_no_bound_behind, 0, PAIRS);
    tcase_add_loop_test(cases, a_restored_timeline_tells_its_ids, 0, PAIRS);
    tcase_add_loop_test(cases, logits_of_the_next_token_are_those_of_its_prompt, 0, PAIRS);
    tcase_add_loop_test(cases, a_sampler_of_ones_own_is_a_loop, 0, PAIRS);
    tcase_add_test(cases, logits_outlive_a_neighbour);
    tcase_add_loop_test(cases, a_mask_bans_what_a_bias_bans, 0, 2 * PAIRS);
    tcase_add_loop_test(cases, a_mask_comes_and_goes, 0, PAIRS);
    tcase_add_loop_test(cases, a_session_draws_by_new_options, 0, 2 * PAIRS);
    tcase_add_test(cases, rejection_stays_beside_a_method_of_ones_own);
    tcase_add_test(cases, every_option_can_be_asked_for);
    tcase_add_loop_test(cases, texts_are_read_back, 0, sizeof texts / sizeof *texts);
    tcase_add_loop_test(cases, an_estimate_is_what_a_session_takes, 0, PAIRS);
    tcase_add_loop_test(cases, a_limit_is_heeded_to_the_byte, 0, PAIRS);
    tcase_add_test(cases, an_engine_gives_way_to_its_limit);
    tcase_add_loop_test(cases, every_limit_from_the_least_on_opens, 0, PAIRS);
    tcase_add_loop_test(cases, a_load_ends_when_it_is_told_to, 0, 2);
    tcase_add_test(cases, a_tower_asks_whether_to_abort);
    tcase_add_loop_test(cases, a_prompt_tells_how_far_it_is, 0, PAIRS);
    tcase_add_test(cases, a_child_has_no_sessions_of_its_parent);
    tcase_add_test(cases, a_model_comes_from_memory_or_a_descriptor);
    tcase_add_test(cases, a_token_has_a_kind_and_texts);
    tcase_add_loop_test(cases, bytes_of_tokens_are_their_text, 0, 2);
    suite_add_tcase(suite, cases);
}
