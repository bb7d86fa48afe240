/* Tests a session's steps: the ids that a step returns, where it ends, the state after a rejected draft, the
 * allocations, and the floating-point environment of the computation. */
/* suite: quick threads */
#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "forerun_lab.h"
#include "src/engine/session/accept.h"
#include "src/engine/session/state.h"
#include "tests/support/alloc_guard.h"
#include "tests/support/always.h"
#include "tests/support/fp_caller.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"
#include "tests/support/unread_logits.h"

#define COUNT 60

typedef struct engine {
    fr_model *model;
    fr_drafter *drafter;
    fr_options *options;
} engine;

static engine open_engine(void) {
    engine e = {.options = fr_options_new()};
    require(fr_options_set(e.options, FR_OPT_CONTEXT, 128));
    require(fr_model_open(FR_TEST_MODELS "gemma4-e", e.options, &e.model));
    require(fr_drafter_open(FR_TEST_MODELS "gemma4-e/assistant", e.model, e.options, &e.drafter));
    return e;
}

static void close_engine(engine *e) {
    fr_drafter_close(e->drafter);
    fr_model_close(e->model);
    fr_options_free(e->options);
}

static fr_session *open_session(const engine *e, bool draft) {
    fr_session *session;
    require(fr_session_open(e->model, draft ? e->drafter : NULL, e->options, &session));
    return session;
}

static const int32_t prompt[] = {2, 100, 200, 300, 400, 50, 60, 70, 80, 90};
static const size_t prompt_count = sizeof prompt / sizeof *prompt;

/* Checks that each id of a step has log-probabilities if they are requested, and that no index after the last id has
 * any. */
static void check_logprobs(const fr_session *session, size_t got) {
    const int32_t *ids;
    const float *values;
    float own;
    size_t best = session->sampling.logprobs.best;
    for (size_t i = 0; i <= FR_STEP_MAX; i++) {
        ck_assert_uint_eq(fr_session_logprobs(session, i, &own, &ids, &values), i < got ? best : 0);
        ck_assert_int_eq(isnan(own), i >= got || best == 0);
    }
}

/* Runs steps until there are `count` ids or the session ends. Returns the number of ids. */
static size_t generate(fr_session *session, int32_t *ids, size_t count) {
    size_t made = 0;
    while (made < count) {
        size_t got, accepted;
        require(fr_session_step(session, ids + made, count - made, &got, &accepted));
        ck_assert_uint_le(accepted, got);
        check_logprobs(session, got);
        if (got == 0) break;
        made += got;
    }
    return made;
}

/* Writes the ids that the model generates after the prompt without drafts. An end of sequence does not stop the
 * text. */
static void right_text(const engine *e, int32_t *ids) {
    require(fr_options_set(e->options, FR_OPT_IGNORE_EOS, 1));
    fr_session *session = open_session(e, false);
    require(fr_session_prompt(session, prompt, prompt_count));
    ck_assert_uint_eq(generate(session, ids, COUNT), COUNT);
    fr_session_close(session);
    require(fr_options_set(e->options, FR_OPT_IGNORE_EOS, 0));
}

static void use_script(fr_session *session, const int32_t *text) {
    int32_t script[COUNT + 16];
    memcpy(script, prompt, sizeof prompt);
    memcpy(script + prompt_count, text, COUNT * sizeof *text);
    require(fr_lab_session_script(session, script, prompt_count + COUNT, fr_test_always, NULL));
}

START_TEST(acceptance_is_the_longest_right_prefix) {
    const int64_t says[] = {5, 6, 7, 8};
    ck_assert_uint_eq(fr_accept_greedy(says, (int32_t[]){5, 6, 7}, 3), 3);
    ck_assert_uint_eq(fr_accept_greedy(says, (int32_t[]){5, 9, 7}, 3), 1);
    ck_assert_uint_eq(fr_accept_greedy(says, (int32_t[]){9, 6, 7}, 3), 0);
    ck_assert_uint_eq(fr_accept_greedy(says, NULL, 0), 0);
}
END_TEST

START_TEST(an_end_of_sequence_inside_a_step_ends_it) {
    int32_t text[COUNT], ids[COUNT];
    engine e = open_engine();
    right_text(&e, text);
    /* a step returns up to 16 ids; index `at` of the step has the id that ends the sequence */
    for (size_t at = 0; at < 12; at++) {
        size_t first = 0;
        while (text[first] != text[at]) first++;
        require(fr_options_set(e.options, FR_OPT_LOGPROBS, 2));
        require(fr_options_set(e.options, FR_OPT_DRAFT_MAX, 15));
        fr_session *session = open_session(&e, false);
        use_script(session, text);
        e.model->eos[0] = text[at];
        e.model->eos_count = 1;
        require(fr_session_prompt(session, prompt, prompt_count));
        ck_assert_uint_eq(generate(session, ids, COUNT), first + 1);
        ck_assert_mem_eq(ids, text, (first + 1) * sizeof *ids);
        ck_assert_uint_eq(fr_session_length(session), prompt_count + first + 1);
        ck_assert(fr_session_stat(session, FR_STAT_GENERATED_TOKENS) == (double)(first + 1));
        fr_session_close(session);
    }
    close_engine(&e);
}
END_TEST

START_TEST(a_limit_inside_a_step_cuts_the_drafting) {
    int32_t text[COUNT], ids[COUNT];
    engine e = open_engine();
    right_text(&e, text);
    require(fr_options_set(e.options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set(e.options, FR_OPT_DRAFT_MAX, 15));
    for (size_t limit = 1; limit < 40; limit++) {
        fr_session *session = open_session(&e, false);
        use_script(session, text);
        require(fr_session_prompt(session, prompt, prompt_count));
        ck_assert_uint_eq(generate(session, ids, limit), limit);
        ck_assert_mem_eq(ids, text, limit * sizeof *ids);
        double drafted = fr_session_stat(session, FR_STAT_DRAFTED),
               calls = fr_session_stat(session, FR_STAT_TARGET_CALLS);
        ck_assert(drafted + calls == (double)limit - 1); /* no draft was made beyond the limit */
        fr_session_close(session);
    }
    close_engine(&e);
}
END_TEST

START_TEST(a_full_context_ends_the_session) {
    int32_t text[COUNT], ids[COUNT];
    engine e = open_engine();
    right_text(&e, text);
    require(fr_options_set(e.options, FR_OPT_IGNORE_EOS, 1));
    for (size_t room = 1; room < 30; room += 3)
        for (int draft = 0; draft < 2; draft++) {
            require(fr_options_set(e.options, FR_OPT_CONTEXT, (int64_t)(prompt_count + room)));
            fr_session *session = open_session(&e, draft);
            require(fr_session_prompt(session, prompt, prompt_count));
            ck_assert_uint_eq(generate(session, ids, COUNT), room);
            ck_assert_mem_eq(ids, text, room * sizeof *ids);
            fr_session_close(session);
        }
    close_engine(&e);
}
END_TEST

START_TEST(rejected_drafts_leave_no_trace_in_the_cache) {
    int32_t text[COUNT], ids[COUNT];
    engine e = open_engine();
    right_text(&e, text);
    require(fr_options_set(e.options, FR_OPT_IGNORE_EOS, 1));
    fr_session *drafting = open_session(&e, true), *fresh = open_session(&e, false);
    require(fr_session_prompt(drafting, prompt, prompt_count));
    ck_assert_uint_eq(generate(drafting, ids, COUNT), COUNT);
    ck_assert(fr_session_stat(drafting, FR_STAT_REJECTED) > 0);
    require(fr_session_prompt(fresh, prompt, prompt_count));
    ck_assert_uint_eq(generate(fresh, ids, COUNT), COUNT);
    ck_assert_uint_eq(drafting->cache.kv.length, fresh->cache.kv.length);
    for (size_t l = 0; l < drafting->cache.kv.count; l++) {
        const fr_kv_layer *a = &drafting->cache.kv.layers[l], *b = &fresh->cache.kv.layers[l];
        for (size_t head = 0; head < a->heads; head++)
            for (size_t p = drafting->cache.kv.length - 8; p < drafting->cache.kv.length; p++) {
                ck_assert_mem_eq(fr_kv_slot(a, &a->k, head, p), fr_kv_slot(b, &b->k, head, p), a->k.bytes);
                ck_assert_mem_eq(fr_kv_slot(a, &a->v, head, p), fr_kv_slot(b, &b->v, head, p), a->v.bytes);
            }
    }
    fr_session_close(drafting);
    fr_session_close(fresh);
    close_engine(&e);
}
END_TEST

START_TEST(a_prompt_between_steps_continues_the_timeline) {
    int32_t ids[COUNT], all[COUNT], once[COUNT];
    engine e = open_engine();
    require(fr_options_set(e.options, FR_OPT_IGNORE_EOS, 1));
    fr_session *turns = open_session(&e, true), *whole = open_session(&e, false);
    require(fr_session_prompt(turns, prompt, prompt_count));
    size_t made = generate(turns, ids, 17);
    require(fr_session_prompt(turns, prompt + 1, 5));
    ck_assert_uint_eq(generate(turns, ids + made, 10), 10);
    memcpy(all, prompt, sizeof prompt);
    memcpy(all + prompt_count, ids, made * sizeof *ids);
    memcpy(all + prompt_count + made, prompt + 1, 5 * sizeof *ids);
    require(fr_session_prompt(whole, all, prompt_count + made + 5));
    ck_assert_uint_eq(generate(whole, once, 10), 10);
    ck_assert_mem_eq(once, ids + made, 10 * sizeof *ids);
    fr_session_close(turns);
    fr_session_close(whole);
    close_engine(&e);
}
END_TEST

START_TEST(generating_allocates_nothing) {
    int32_t ids[COUNT];
    engine e = open_engine();
    require(fr_options_set(e.options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set_text(e.options, FR_OPT_SPEC_TYPE, "ngram,mtp"));
    fr_session *session = open_session(&e, true);
    size_t before = fr_alloc_count(), made = 0, got = 1, accepted;
    fr_status status = fr_session_prompt(session, prompt, prompt_count);
    for (; status == FR_OK && made < COUNT; made += got) /* no assertions here: they allocate */
        status = fr_session_step(session, ids + made, COUNT - made, &got, &accepted);
    size_t after = fr_alloc_count();
    void *volatile probe = malloc(1); /* checks that allocations are counted */
    size_t probed = fr_alloc_count();
    free(probe);
    ck_assert_int_eq(status, FR_OK);
    ck_assert_uint_eq(after, before);
    ck_assert_uint_eq(probed, before + fr_alloc_counted());
    fr_session_close(session);
    close_engine(&e);
}
END_TEST

START_TEST(the_callers_rounding_and_flushing_change_nothing) {
    int32_t text[COUNT], ids[COUNT];
    engine e = open_engine();
    right_text(&e, text);
    close_engine(&e);
    uint64_t usual = fr_fp_word();
    fr_fp_unfriendly();
    uint64_t unfriendly = fr_fp_word();
    ck_assert_uint_ne(usual, unfriendly);
    e = open_engine();
    right_text(&e, ids);
    ck_assert_uint_eq(fr_fp_word(), unfriendly);
    fr_fp_set(usual);
    ck_assert_mem_eq(ids, text, sizeof ids);
    close_engine(&e);
}
END_TEST

static bool at_once(void *context) {
    (void)context;
    return true;
}

/* A scored text must have no later effect. After scoring, the session is reset and gets a prompt. A truncation must
 * then run only the last id again, and an aborted step must leave no rows waiting, as in a session that never
 * scored. */
START_TEST(a_scored_text_is_forgotten) {
    int32_t ids[FR_STEP_MAX], text[COUNT];
    size_t got, accepted;
    engine e = open_engine();
    right_text(&e, text);
    fr_session *session = open_session(&e, false);
    require(fr_session_logits(session, text, COUNT, 0, fr_test_unread_logits, NULL));
    fr_session_reset(session);
    require(fr_session_prompt(session, text, COUNT / 2));
    require(fr_session_truncate(session, COUNT / 2 - 5));
    ck_assert_double_eq(fr_session_stat(session, FR_STAT_RERUN_TOKENS), 1);
    require(fr_session_prompt(session, text, 3));
    require(fr_session_step(session, ids, FR_STEP_MAX, &got, &accepted));
    fr_session_set_abort(session, at_once, NULL);
    ck_assert_int_eq(fr_session_step(session, ids, FR_STEP_MAX, &got, &accepted), FR_ABORTED);
    ck_assert_uint_eq(fr_session_waiting(session), 0);
    fr_session_set_abort(session, NULL, NULL);
    require(fr_session_step(session, ids, FR_STEP_MAX, &got, &accepted));
    ck_assert_uint_gt(got, 0);
    fr_session_close(session);
    close_engine(&e);
}
END_TEST

START_TEST(what_can_not_be_done_is_an_error_line) {
    int32_t ids[FR_STEP_MAX];
    size_t count, accepted;
    engine e = open_engine();
    fr_session *session = open_session(&e, false);
    ck_assert_int_eq(fr_session_step(session, ids, 1, &count, &accepted), FR_USAGE);
    ck_assert_int_eq(fr_session_prompt(session, prompt, 0), FR_INPUT);
    ck_assert_int_eq(fr_session_prompt(session, (int32_t[]){512}, 1), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "512"));
    ck_assert_int_eq(fr_session_prompt(session, (int32_t[]){-1}, 1), FR_INPUT);
    ck_assert_uint_eq(fr_session_length(session), 0);
    int32_t *longer = calloc(129, sizeof *longer);
    ck_assert_int_eq(fr_session_prompt(session, longer, 129), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "129"));
    free(longer);
    ck_assert_int_eq(fr_options_set(e.options, FR_OPT_DRAFT_MAX, 16), FR_USAGE);
    ck_assert_int_eq(fr_options_set(e.options, FR_OPT_DRAFT_MAX, -2), FR_USAGE);
    ck_assert_int_eq(fr_options_set_text(e.options, FR_OPT_SPEC_TYPE, "eagle2"), FR_USAGE);
    ck_assert_int_eq(fr_options_set(e.options, FR_OPT_THREADS, 0), FR_USAGE);
    ck_assert_int_eq(fr_options_set_text(e.options, FR_OPT_ISA, "sse9"), FR_USAGE);
    ck_assert_int_eq(fr_options_set_text(e.options, FR_OPT_ISA, NULL), FR_USAGE);
    ck_assert_int_eq(fr_options_set(e.options, FR_OPT_KV_K, 1), FR_USAGE);
    ck_assert_str_eq(fr_last_error(), "cache-type-k takes a text, not a whole number");
    ck_assert_int_eq(fr_lab_session_script(session, (int32_t[]){3, 512}, 2, fr_test_always, NULL), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "id 512 at index 1 of the script"));
    ck_assert_int_eq(fr_lab_session_script(session, (int32_t[]){-1}, 1, fr_test_always, NULL), FR_INPUT);
    ck_assert_int_eq(fr_lab_session_script(session, prompt, prompt_count, NULL, NULL), FR_USAGE);
    require(fr_session_prompt(session, prompt, prompt_count)); /* the refused calls changed nothing */
    require(fr_session_step(session, ids, FR_STEP_MAX, &count, &accepted));
    ck_assert_uint_eq(count, 1);
    fr_session_close(session);
    close_engine(&e);
}
END_TEST

START_TEST(a_drafter_of_another_model_is_refused) {
    engine e = open_engine();
    fr_drafter *drafter = e.drafter;
    fr_model *other;
    require(fr_model_open(FR_TEST_MODELS "gemma4-dense", NULL, &other));
    ck_assert_int_eq(fr_drafter_open(FR_TEST_MODELS "gemma4-e/assistant", other, NULL, &drafter), FR_INPUT);
    ck_assert_ptr_null(drafter);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "backbone_hidden_size"));
    /* unlike the first drafter, this model drafts by text, so it fits any target */
    require(fr_drafter_open(FR_TEST_MODELS "llama", e.model, NULL, &drafter));
    fr_drafter_close(drafter);
    fr_model_close(other);
    ck_assert_int_eq(fr_model_open(FR_TEST_MODELS "gemma4-e/assistant", NULL, &other), FR_INPUT);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "which is opened for its target"));
    close_engine(&e);
}
END_TEST

/* At the end of this prompt no id can be chosen, so the call fails. The next call, whichever function it is, must run
 * the end of the prompt again and fail too. */
START_TEST(a_prompt_without_a_choice_fails_again) {
    enum { VOCAB = 211, A_BIAS = 16 };
    static const int32_t few[] = {1, 2, 3, 4, 5};
    fr_model *model;
    char *biases = malloc(VOCAB * A_BIAS + 1), *end = biases;
    for (int id = 0; id < VOCAB; id++) end += snprintf(end, A_BIAS, "%s%d-inf", id ? "," : "", id);
    fr_options *options = fr_options_new();
    require(fr_options_set_text(options, FR_OPT_LOGIT_BIAS, biases));
    fr_session *session;
    require(fr_model_open(FR_TEST_MODELS "llama-fp8", options, &model));
    ck_assert_int_eq(fr_model_fact(model, FR_FACT_VOCAB), VOCAB);
    require(fr_session_open(model, NULL, options, &session));
    int32_t ids[FR_STEP_MAX];
    size_t count, accepted;
    ck_assert_int_eq(fr_session_prompt(session, few, 5), FR_INPUT);
    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(fr_session_step(session, ids, 4, &count, &accepted), FR_INPUT);
        ck_assert_ptr_nonnull(strstr(fr_last_error(), "no token is left"));
        ck_assert_uint_eq(fr_session_length(session), 5);
    }
    fr_session_close(session);
    fr_options_free(options);
    free(biases);
    fr_model_close(model);
}
END_TEST

enum { FEW = 5 };
static const int32_t few[FEW] = {2, 100, 200, 30, 40};

static void say(fr_session *session, int32_t *ids) {
    ck_assert_uint_eq(generate(session, ids, COUNT), COUNT);
}

static void set_seed(fr_session *session, fr_options *options, int64_t seed) {
    require(fr_options_set(options, FR_OPT_SEED, seed));
    require(fr_session_set_options(session, options));
}

/* The seed is set before the first step, after one step, or before a truncation to the prompt. The samples must be
 * those of a session that had this seed from the beginning. One target has recurrent states, and the other has sliding
 * layers. */
START_TEST(another_seed_draws_as_if_it_had_been_the_first) {
    static const char *const folders[] = {"gemma4-e", "qwen35-odd"};
    fr_model *model;
    fr_session *other, *session;
    fr_options *options = fr_options_new();
    int32_t first[COUNT], second[COUNT], ids[COUNT];
    require(fr_options_set(options, FR_OPT_CONTEXT, 128));
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set_number(options, FR_OPT_TEMPERATURE, 1));
    char folder[64];
    snprintf(folder, sizeof folder, FR_TEST_MODELS "%s", folders[_i]);
    require(fr_model_open(folder, options, &model));
    require(fr_session_open(model, NULL, options, &session));
    require(fr_options_set(options, FR_OPT_SEED, 7));
    require(fr_session_open(model, NULL, options, &other));
    require(fr_session_set_prompt(other, few, FEW));
    say(other, second);
    require(fr_session_set_prompt(session, few, FEW));
    set_seed(session, options, 7);
    say(session, ids);
    ck_assert_mem_eq(ids, second, sizeof ids);
    require(fr_session_set_prompt(session, few, FEW));
    set_seed(session, options, 0);
    say(session, first);
    ck_assert_mem_ne(first, second, sizeof first);
    set_seed(session, options, 7);
    require(fr_session_set_prompt(session, few, FEW));
    say(session, ids);
    ck_assert_mem_eq(ids, second, sizeof ids);
    fr_session_close(session);
    fr_session_close(other);
    fr_model_close(model);
    fr_options_free(options);
}
END_TEST

START_TEST(what_fails_to_open_is_null) {
    engine e = open_engine();
    fr_model *other;
    require(fr_model_open(FR_TEST_MODELS "gemma4-dense", NULL, &other));
    void *const set = &e;
    fr_session *session = set, *fork = set;
    fr_engine *many = set;
    ck_assert_int_eq(fr_session_open(other, e.drafter, NULL, &session), FR_USAGE);
    ck_assert_ptr_null(session);
    ck_assert_int_eq(fr_engine_open(e.model, NULL, NULL, 0, &many), FR_USAGE);
    ck_assert_ptr_null(many);
    fr_model_close(other);
    fr_drafter *drafter = set;
    fr_picture *picture = set;
    fr_tokenizer *tokenizer = set;
    other = set;
    session = set;
    many = set;
    ck_assert_int_eq(fr_model_open(NULL, NULL, &other), FR_USAGE);
    ck_assert_int_eq(fr_drafter_open("x", NULL, NULL, &drafter), FR_USAGE);
    ck_assert_int_eq(fr_session_open(NULL, NULL, NULL, &session), FR_USAGE);
    ck_assert_int_eq(fr_session_fork(NULL, NULL, &fork), FR_USAGE);
    ck_assert_int_eq(fr_engine_open(NULL, NULL, NULL, 1, &many), FR_USAGE);
    ck_assert_int_eq(fr_picture_open(NULL, NULL, &picture), FR_USAGE);
    ck_assert_int_eq(fr_tokenizer_open(NULL, NULL, &tokenizer), FR_USAGE);
    ck_assert(!other && !drafter && !session && !fork && !many && !picture && !tokenizer);
    session = set;
    ck_assert_int_eq(fr_engine_session(NULL, NULL, &session), FR_USAGE);
    ck_assert_ptr_null(session);
    close_engine(&e);
}
END_TEST

FR_SUITE("session") {
    TCase *cycle = tcase_create("cycle");
    tcase_set_timeout(cycle, 300);
    tcase_add_test(cycle, acceptance_is_the_longest_right_prefix);
    tcase_add_test(cycle, an_end_of_sequence_inside_a_step_ends_it);
    tcase_add_test(cycle, a_limit_inside_a_step_cuts_the_drafting);
    tcase_add_test(cycle, a_full_context_ends_the_session);
    tcase_add_test(cycle, rejected_drafts_leave_no_trace_in_the_cache);
    tcase_add_test(cycle, a_prompt_between_steps_continues_the_timeline);
    tcase_add_test(cycle, generating_allocates_nothing);
    tcase_add_test(cycle, the_callers_rounding_and_flushing_change_nothing);
    tcase_add_test(cycle, a_scored_text_is_forgotten);
    tcase_add_test(cycle, what_can_not_be_done_is_an_error_line);
    tcase_add_test(cycle, a_drafter_of_another_model_is_refused);
    tcase_add_test(cycle, a_prompt_without_a_choice_fails_again);
    tcase_add_loop_test(cycle, another_seed_draws_as_if_it_had_been_the_first, 0, 2);
    tcase_add_test(cycle, what_fails_to_open_is_null);
    suite_add_tcase(suite, cycle);
}
