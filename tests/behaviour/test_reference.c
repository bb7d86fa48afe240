/* Tests the engine against transformers for every fixture: logits of prompts, greedy text, drafts, accepted lengths.
 *
 * Every logit must be within 1e-3 of the reference's. Greedy ids must be equal wherever the reference's margin, which
 * is the difference of its two largest logits, exceeds 2e-3. */
/* suite: quick */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/reference.h"
#include "tests/support/suite.h"

#define LOGIT_BOUND 1e-3
#define MARGIN      2e-3

static fr_session *open_session(const fr_reference *r, const fr_options *options) {
    fr_session *session;
    ck_assert_msg(fr_session_open(r->model, r->drafter, options, &session) == FR_OK, "%s", fr_last_error());
    return session;
}

/* Returns the largest difference. If only one of two values is finite, returns infinity. */
static double largest_difference(const float *a, const float *b, size_t count) {
    double largest = 0;
    for (size_t i = 0; i < count; i++) {
        double difference = fabs((double)a[i] - (double)b[i]);
        if (!(difference <= largest)) largest = isnan(difference) ? INFINITY : difference;
    }
    return largest;
}

static void compare_prompts(const char *name) {
    fr_reference r;
    fr_reference_open(&r, name, NULL);
    fr_session *session = open_session(&r, NULL);
    const json_t *prompts = json_object_get(r.info, "prompts");
    ck_assert_uint_gt(json_array_size(prompts), 0);
    for (size_t p = 0; p < json_array_size(prompts); p++) {
        if (fr_reference_sees(&r, p)) continue;
        size_t count, expected_count;
        int32_t *ids = fr_json_ids_of(json_array_get(prompts, p), &count);
        const float *expected = fr_reference_floats(&r, &expected_count, "prompt.%zu.logits", p);
        fr_rows s = {malloc(expected_count * sizeof(float)), 0, expected_count};
        ck_assert_msg(fr_session_logits(session, ids, count, 0, fr_rows_collect, &s) == FR_OK, "%s", fr_last_error());
        ck_assert_uint_eq(s.count, expected_count);
        double difference = largest_difference(s.values, expected, expected_count);
        ck_assert_msg(difference < LOGIT_BOUND, "%s prompt %zu: a logit differs by %g", r.folder, p, difference);
        free(s.values);
        free(ids);
    }
    fr_session_close(session);
    fr_reference_close(&r);
}

START_TEST(prompt_logits_are_within_a_thousandth) {
    compare_prompts(fr_reference_name((size_t)_i));
}
END_TEST

START_TEST(prompt_logits_of_targets_alone_are_within_a_thousandth) {
    compare_prompts(fr_reference_alone((size_t)_i));
}
END_TEST

/* Steps until there are at least `count` ids. The function continues after end-of-sequence tokens. */
static void generate(fr_session *session, int32_t *ids, size_t count) {
    for (size_t made = 0; made < count;) {
        int32_t step[FR_STEP_MAX];
        size_t got, accepted;
        ck_assert_msg(fr_session_step(session, step, FR_STEP_MAX, &got, &accepted) == FR_OK, "%s", fr_last_error());
        ck_assert_uint_ge(got, 1);
        for (size_t i = 0; i < got && made < count; i++) ids[made++] = step[i];
    }
}

static fr_options *endless(void) {
    fr_options *options = fr_options_new();
    ck_assert(fr_options_set(options, FR_OPT_IGNORE_EOS, 1) == FR_OK);
    return options;
}

static void compare_greedy(const char *name) {
    fr_reference r;
    fr_options *options = endless();
    fr_reference_open(&r, name, options);
    fr_session *session = open_session(&r, options);
    json_t *greedy = json_object_get(r.info, "greedy"), *item;
    size_t index;
    ck_assert_uint_gt(json_array_size(greedy), 0);
    json_array_foreach (greedy, index, item) {
        size_t prompt_count, count;
        size_t prompt_index = (size_t)json_integer_value(json_object_get(item, "prompt"));
        if (fr_reference_sees(&r, prompt_index)) continue;
        int32_t *prompt =
            fr_json_ids_of(json_array_get(json_object_get(r.info, "prompts"), prompt_index), &prompt_count);
        int32_t *expected = fr_json_ids_of(json_object_get(item, "tokens"), &count), *got = malloc(count * sizeof *got);
        fr_session_reset(session);
        ck_assert_msg(fr_session_prompt(session, prompt, prompt_count) == FR_OK, "%s", fr_last_error());
        generate(session, got, count);
        for (size_t i = 0; i < count && got[i] != expected[i]; i++) {
            double margin = json_number_value(json_array_get(json_object_get(item, "margins"), i));
            ck_assert_msg(margin <= MARGIN, "%s prompt %zu: id %zu is %d, the reference says %d", r.folder,
                          prompt_index, i, got[i], expected[i]);
        }
        free(prompt);
        free(expected);
        free(got);
    }
    fr_session_close(session);
    fr_options_free(options);
    fr_reference_close(&r);
}

START_TEST(greedy_ids_are_the_references) {
    compare_greedy(fr_reference_name((size_t)_i));
}
END_TEST

START_TEST(greedy_ids_of_targets_alone_are_the_references) {
    compare_greedy(fr_reference_alone((size_t)_i));
}
END_TEST

/* Returns a prompt followed by the first n ids of its greedy text. The caller frees it. */
static int32_t *prefix(const fr_reference *r, size_t prompt_index, size_t n, size_t *count) {
    size_t generated, index;
    int32_t *ids = fr_json_ids_of(json_array_get(json_object_get(r->info, "prompts"), prompt_index), count);
    json_t *item;
    json_array_foreach (json_object_get(r->info, "greedy"), index, item) {
        if ((size_t)json_integer_value(json_object_get(item, "prompt")) != prompt_index) continue;
        int32_t *tokens = fr_json_ids_of(json_object_get(item, "tokens"), &generated);
        ids = realloc(ids, (*count + n) * sizeof *ids);
        memcpy(ids + *count, tokens, n * sizeof *ids);
        *count += n;
        free(tokens);
    }
    return ids;
}

/* Compares the draft logits of a row. A centroid head scores only some ids. For the others forerun has -infinity, and
 * the reference has the smallest value of the row. */
static void compare_draft_row(const char *name, size_t step, const float *got, const float *expected, size_t vocab) {
    float smallest = INFINITY;
    size_t scored = 0;
    for (size_t i = 0; i < vocab; i++) smallest = fminf(smallest, expected[i]);
    for (size_t i = 0; i < vocab; i++) {
        if (isinf(got[i])) {
            ck_assert_msg(expected[i] == smallest, "%s step %zu: id %zu was not scored", name, step, i);
            continue;
        }
        scored++;
        double difference = fabs((double)got[i] - (double)expected[i]);
        ck_assert_msg(difference < LOGIT_BOUND, "%s step %zu: the logit of id %zu differs by %g", name, step, i,
                      difference);
    }
    ck_assert_uint_gt(scored, 0);
}

START_TEST(draft_logits_are_within_a_thousandth) {
    fr_reference r;
    fr_reference_open(&r, fr_reference_name((size_t)_i), NULL);
    fr_session *session = open_session(&r, NULL);
    size_t vocab = (size_t)fr_model_fact(r.model, FR_FACT_VOCAB), index;
    json_t *cases = json_object_get(json_object_get(r.info, "draft"), "cases"), *item;
    ck_assert_uint_gt(json_array_size(cases), 0);
    json_array_foreach (cases, index, item) {
        size_t count, expected_count;
        const char *name = json_string_value(json_object_get(item, "case"));
        size_t prompt = (size_t)json_integer_value(json_object_get(item, "prompt"));
        if (fr_reference_sees(&r, prompt)) continue;
        int32_t *ids = prefix(&r, prompt, (size_t)json_integer_value(json_object_get(item, "n_generated")), &count);
        const float *expected = fr_reference_floats(&r, &expected_count, "%s.logits", name);
        size_t steps = expected_count / vocab;
        fr_rows s = {malloc(expected_count * sizeof(float)), 0, expected_count};
        ck_assert_msg(fr_session_draft_logits(session, ids, count, steps, fr_rows_collect, &s) == FR_OK, "%s",
                      fr_last_error());
        ck_assert_uint_eq(s.count, expected_count);
        for (size_t step = 0; step < steps; step++)
            compare_draft_row(name, step, s.values + step * vocab, expected + step * vocab, vocab);
        free(s.values);
        free(ids);
    }
    fr_session_close(session);
    fr_reference_close(&r);
}
END_TEST

START_TEST(accepted_lengths_are_the_references) {
    fr_reference r;
    fr_options *options = endless();
    ck_assert(fr_options_set(options, FR_OPT_DRAFT_MAX, 3) == FR_OK);
    fr_reference_open(&r, fr_reference_name((size_t)_i), options);
    fr_session *session = open_session(&r, options);
    json_t *loops = json_object_get(json_object_get(r.info, "draft"), "loop"), *loop, *round;
    size_t index, at;
    ck_assert_uint_gt(json_array_size(loops), 0);
    json_array_foreach (loops, index, loop) {
        size_t count, prompt_index = (size_t)json_integer_value(json_object_get(loop, "prompt"));
        if (fr_reference_sees(&r, prompt_index)) continue;
        int32_t *prompt = prefix(&r, prompt_index, 0, &count), ids[48];
        ck_assert_int_eq(json_integer_value(json_object_get(loop, "draft_length")), 3);
        fr_session_reset(session);
        ck_assert_msg(fr_session_prompt(session, prompt, count) == FR_OK, "%s", fr_last_error());
        generate(session, ids, 48);
        const uint8_t *lengths;
        size_t rounds = fr_session_accepted_lengths(session, &lengths);
        json_t *expected = json_object_get(loop, "rounds");
        ck_assert_uint_ge(rounds, json_array_size(expected));
        json_array_foreach (expected, at, round)
            ck_assert_msg(lengths[at] == json_integer_value(json_object_get(round, "accepted")),
                          "%s: round %zu accepted %d", r.folder, at, lengths[at]);
        free(prompt);
    }
    fr_session_close(session);
    fr_options_free(options);
    fr_reference_close(&r);
}
END_TEST

FR_SUITE("reference") {
    int fixtures = 0, alone = 0;
    while (fr_reference_name((size_t)fixtures)) fixtures++;
    while (fr_reference_alone((size_t)alone)) alone++;
    TCase *references = tcase_create("transformers");
    tcase_set_timeout(references, 300);
    tcase_add_loop_test(references, prompt_logits_are_within_a_thousandth, 0, fixtures);
    tcase_add_loop_test(references, greedy_ids_are_the_references, 0, fixtures);
    tcase_add_loop_test(references, prompt_logits_of_targets_alone_are_within_a_thousandth, 0, alone);
    tcase_add_loop_test(references, greedy_ids_of_targets_alone_are_the_references, 0, alone);
    tcase_add_loop_test(references, draft_logits_are_within_a_thousandth, 0, fixtures);
    tcase_add_loop_test(references, accepted_lengths_are_the_references, 0, fixtures);
    suite_add_tcase(suite, references);
}
