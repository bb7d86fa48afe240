/* Tests src/engine/session/trace.c and src/engine/session/stats.c. A session reports and counts its rounds. The reports
 * and counts are compared with transformers' own loop of speculative decoding. */
/* suite: quick hostile native */
#include <check.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun_lab.h"
#include "src/engine/session/state.h"
#include "tests/support/alloc_guard.h"
#include "tests/support/always.h"
#include "tests/support/command.h"
#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"

enum { CONTEXT = 128, ROOM = 1 << 18, DEPTH = 3 };

/* All lines of a trace, in order. The buffer has a fixed size, so the test itself allocates nothing while the library
 * runs. */
typedef struct heard {
    char text[ROOM];
    size_t length;
} heard;

static heard lines;

static void hear(void *context, const char *text, size_t length) {
    heard *to = context;
    if (length > ROOM - to->length) abort();
    memcpy(to->text + to->length, text, length);
    to->length += length;
}

/* Returns the trace's lines as an array of objects. */
static json_t *parse(const heard *from) {
    json_t *all = json_array();
    for (const char *at = from->text, *end; at < from->text + from->length; at = end + 1) {
        end = memchr(at, '\n', (size_t)(from->text + from->length - at));
        ck_assert_ptr_nonnull(end);
        json_error_t error;
        json_t *line = json_loadb(at, (size_t)(end - at), JSON_REJECT_DUPLICATES, &error);
        ck_assert_msg(json_is_object(line), "%s: %.*s", error.text, (int)(end - at), at);
        json_array_append_new(all, line);
    }
    return all;
}

/* Returns the lines whose event is `event`. */
static json_t *events(const json_t *all, const char *event) {
    json_t *some = json_array();
    for (size_t i = 0; i < json_array_size(all); i++) {
        json_t *line = json_array_get(all, i);
        if (strcmp(json_string_value(fr_json_get(line, "event")), event) == 0) json_array_append(some, line);
    }
    return some;
}

static json_int_t integer(const json_t *object, const char *key) {
    ck_assert_msg(json_is_integer(fr_json_get(object, key)), "%s is no integer", key);
    return json_integer_value(fr_json_get(object, key));
}

static double real(const json_t *object, const char *key) {
    ck_assert_msg(json_is_real(fr_json_get(object, key)), "%s is no real", key);
    return json_real_value(fr_json_get(object, key));
}

typedef struct engine {
    fr_reference reference;
    fr_options *options;
    const json_t *rounds, *prompt; /* the rounds and the prompt of a loop that transformers ran */
} engine;

/* Opens the fixture. The reference has several runs that draft DEPTH tokens per round; `loop` is the number of one of
 * them. */
static void open_engine(engine *e, size_t loop) {
    e->options = fr_options_new();
    require(fr_options_set(e->options, FR_OPT_CONTEXT, CONTEXT));
    require(fr_options_set(e->options, FR_OPT_IGNORE_EOS, 1));
    require(fr_options_set(e->options, FR_OPT_DRAFT_MAX, DEPTH));
    require(fr_options_set(e->options, FR_OPT_CHUNK, 4));
    fr_reference_open(&e->reference, "gemma4-e", e->options);
    json_t *run = json_array_get(fr_json_get(fr_json_get(e->reference.info, "draft"), "loop"), loop);
    e->rounds = fr_json_get(run, "rounds");
    e->prompt = json_array_get(fr_json_get(e->reference.info, "prompts"), (size_t)integer(run, "prompt"));
    lines.length = 0;
}

static void close_engine(engine *e) {
    fr_reference_close(&e->reference);
    fr_options_free(e->options);
}

static fr_session *open_session(const engine *e, bool traced) {
    fr_session *session;
    require(fr_session_open(e->reference.model, e->reference.drafter, e->options, &session));
    if (traced) fr_session_set_trace(session, hear, &lines);
    return session;
}

/* Runs the prompt, then the step that returns its first id, and then as many rounds as the reference has. */
static void run_rounds(const engine *e, fr_session *session) {
    size_t count, got, accepted;
    int32_t *prompt = fr_json_ids_of(e->prompt, &count), ids[FR_STEP_MAX];
    require(fr_session_prompt(session, prompt, count));
    for (size_t i = 0; i <= json_array_size(e->rounds); i++)
        require(fr_session_step(session, ids, FR_STEP_MAX, &got, &accepted));
    free(prompt);
}

/* ----------------------------------------------------------------------------------------------------------- rounds */

/* The drafts, accepted drafts, ids and margins in the trace must be those of transformers. */
START_TEST(the_rounds_are_the_references) {
    engine e;
    open_engine(&e, (size_t)_i);
    fr_session *session = open_session(&e, true);
    run_rounds(&e, session);
    json_t *all = parse(&lines), *drafts = events(all, "draft"), *accepts = events(all, "accept");
    const json_t *greedy = json_array_get(fr_json_get(e.reference.info, "greedy"), (size_t)_i);
    const json_t *tokens = fr_json_get(greedy, "tokens"), *margins = fr_json_get(greedy, "margins");
    ck_assert_uint_eq(json_array_size(drafts), json_array_size(e.rounds));
    ck_assert_uint_eq(json_array_size(accepts), json_array_size(e.rounds) + 1);
    size_t token = 0;
    for (size_t r = 0; r < json_array_size(accepts); r++) {
        const json_t *accept = json_array_get(accepts, r), *ids = fr_json_get(accept, "ids");
        ck_assert_int_eq(integer(accept, "round"), (json_int_t)r);
        ck_assert_int_eq(integer(accept, "rows"), r ? DEPTH + 1 : 0);
        ck_assert_int_eq(integer(accept, "position"), (json_int_t)(json_array_size(e.prompt) + token));
        ck_assert_uint_eq(json_array_size(ids), json_array_size(fr_json_get(accept, "margins")));
        if (r > 0) {
            const json_t *round = json_array_get(e.rounds, r - 1), *draft = json_array_get(drafts, r - 1);
            ck_assert(json_equal(fr_json_get(draft, "ids"), fr_json_get(round, "drafted")));
            ck_assert_int_eq(integer(draft, "round"), (json_int_t)r);
            ck_assert_int_eq(integer(accept, "accepted"), integer(round, "accepted"));
            ck_assert_int_eq((json_int_t)token, integer(round, "n_generated"));
        }
        for (size_t i = 0; i < json_array_size(ids); i++, token++) {
            if (token >= json_array_size(tokens)) continue;
            ck_assert(json_equal(json_array_get(ids, i), json_array_get(tokens, token)));
            double margin = json_real_value(json_array_get(fr_json_get(accept, "margins"), i));
            ck_assert_double_eq_tol(margin, json_real_value(json_array_get(margins, token)), 2e-4);
        }
    }
    ck_assert_uint_ge(token, json_array_size(tokens));
    json_decref(drafts);
    json_decref(accepts);
    json_decref(all);
    fr_session_close(session);
    close_engine(&e);
}
END_TEST

/* The lines for a prompt must list the prompt's ids in order. Each line may list at most as many ids as a chunk has. */
START_TEST(prompt_lines_are_the_prompt) {
    engine e;
    open_engine(&e, 0);
    fr_session *session = open_session(&e, true);
    run_rounds(&e, session);
    json_t *all = parse(&lines), *prompts = events(all, "prompt"), *ids = json_array();
    for (size_t i = 0; i < json_array_size(prompts); i++) {
        const json_t *line = json_array_get(prompts, i);
        ck_assert_int_eq(integer(line, "position"), (json_int_t)json_array_size(ids));
        ck_assert_uint_le(json_array_size(fr_json_get(line, "ids")), 4);
        json_array_extend(ids, fr_json_get(line, "ids"));
    }
    ck_assert(json_equal(ids, e.prompt));
    ck_assert_uint_eq(json_array_size(prompts), (json_array_size(e.prompt) + 3) / 4);
    json_decref(ids);
    json_decref(prompts);
    json_decref(all);
    fr_session_close(session);
    close_engine(&e);
}
END_TEST

/* A trace must not change any id, and the library must not allocate memory for it. */
START_TEST(tracing_changes_no_id_and_allocates_nothing) {
    int32_t ids[2][60];
    engine e;
    open_engine(&e, 0);
    size_t count, prompt_count, accepted;
    int32_t *prompt = fr_json_ids_of(e.prompt, &prompt_count);
    for (int traced = 0; traced < 2; traced++) {
        fr_session *session = open_session(&e, traced);
        size_t before = fr_alloc_count(), made = 0;
        fr_status status = fr_session_prompt(session, prompt, prompt_count);
        for (; status == FR_OK && made < 60; made += count)
            status = fr_session_step(session, ids[traced] + made, 60 - made, &count, &accepted);
        size_t after = fr_alloc_count();
        require(status);
        ck_assert_uint_eq(after, before);
        fr_session_close(session);
    }
    ck_assert_mem_eq(ids[0], ids[1], sizeof ids[0]);
    ck_assert_uint_gt(lines.length, 0);
    free(prompt);
    close_engine(&e);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------- figures */

/* The expected counts for each draft depth are computed from the number of drafts that each round of the reference
 * accepts. */
START_TEST(depths_are_counted) {
    engine e;
    open_engine(&e, (size_t)_i);
    fr_session *session = open_session(&e, false);
    run_rounds(&e, session);
    double expected[DEPTH][FR_DEPTH_COUNT] = {0};
    size_t rounds = json_array_size(e.rounds);
    for (size_t r = 0; r < rounds; r++) {
        json_int_t stood = integer(json_array_get(e.rounds, r), "accepted");
        for (json_int_t d = 0; d < DEPTH; d++) {
            expected[d][FR_DEPTH_DRAFTED]++;
            expected[d][FR_DEPTH_COMPARED] += d <= stood;
            expected[d][FR_DEPTH_ACCEPTED] += d < stood;
            expected[d][FR_DEPTH_REJECTED] += d >= stood;
        }
    }
    for (size_t d = 0; d < DEPTH; d++)
        for (int stat = 0; stat < FR_DEPTH_COUNT; stat++)
            ck_assert_double_eq(fr_session_depth_stat(session, d, (fr_depth_stat)stat), expected[d][stat]);
    ck_assert_double_eq(fr_session_depth_stat(session, DEPTH, FR_DEPTH_DRAFTED), 0);
    ck_assert(isnan(fr_session_depth_stat(session, FR_STEP_MAX - 1, FR_DEPTH_DRAFTED)));
    ck_assert(isnan(fr_session_depth_stat(session, 0, FR_DEPTH_COUNT)));
    fr_session_reset(session);
    ck_assert_double_eq(fr_session_depth_stat(session, 0, FR_DEPTH_DRAFTED), 0);
    fr_session_close(session);
    close_engine(&e);
}
END_TEST

/* All 15 drafts are right, and the fifth is an end of sequence. So five drafts are accepted. The other ten must be
 * neither compared with the target's ids nor counted. */
START_TEST(drafts_behind_an_end_of_sequence_are_not_compared) {
    enum { STOOD = 5 };
    engine e;
    open_engine(&e, 0);
    require(fr_options_set(e.options, FR_OPT_IGNORE_EOS, 0));
    require(fr_options_set(e.options, FR_OPT_DRAFT_MAX, FR_STEP_MAX - 1));
    const json_t *greedy = fr_json_get(json_array_get(fr_json_get(e.reference.info, "greedy"), 0), "tokens");
    json_t *text = json_deep_copy(e.prompt);
    json_array_extend(text, (json_t *)greedy);
    size_t count, got, accepted;
    int32_t *script = fr_json_ids_of(text, &count), ids[FR_STEP_MAX];
    size_t prompt_count = json_array_size(e.prompt);
    e.reference.model->eos[0] = script[prompt_count + STOOD];
    e.reference.model->eos_count = 1;
    fr_session *session = open_session(&e, false);
    require(fr_lab_session_script(session, script, count, fr_test_always, NULL));
    require(fr_session_prompt(session, script, prompt_count));
    require(fr_session_step(session, ids, FR_STEP_MAX, &got, &accepted));
    require(fr_session_step(session, ids, FR_STEP_MAX, &got, &accepted));
    ck_assert_uint_eq(got, STOOD);
    for (size_t d = 0; d < FR_STEP_MAX - 1; d++) {
        ck_assert_double_eq(fr_session_depth_stat(session, d, FR_DEPTH_DRAFTED), 1);
        ck_assert_double_eq(fr_session_depth_stat(session, d, FR_DEPTH_COMPARED), d < STOOD);
        ck_assert_double_eq(fr_session_depth_stat(session, d, FR_DEPTH_ACCEPTED), d < STOOD);
        ck_assert_double_eq(fr_session_depth_stat(session, d, FR_DEPTH_REJECTED), d >= STOOD);
    }
    fr_session_close(session);
    json_decref(text);
    free(script);
    close_engine(&e);
}
END_TEST

/* The seconds in a trace's lines must add up to the session's totals, even if the totals are reset in the middle of the
 * trace. */
START_TEST(seconds_add_up_to_the_statistics) {
    static const struct {
        const char *key;
        fr_stat stat;
    } phases[] = {{"draft_seconds", FR_STAT_DRAFT_SECONDS},
                  {"verify_seconds", FR_STAT_VERIFY_SECONDS},
                  {"accept_seconds", FR_STAT_ACCEPT_SECONDS},
                  {"seconds", FR_STAT_DECODE_SECONDS}};
    engine e;
    open_engine(&e, 0);
    fr_session *session = open_session(&e, true);
    for (int turn = 0; turn <= _i; turn++) {
        lines.length = 0;
        fr_session_reset(session);
        run_rounds(&e, session);
    }
    json_t *all = parse(&lines), *accepts = events(all, "accept"), *prompts = events(all, "prompt");
    double sums[4] = {0}, prefill = 0;
    for (size_t i = 0; i < json_array_size(accepts); i++) {
        const json_t *line = json_array_get(accepts, i);
        for (int p = 0; p < 4; p++) sums[p] += real(line, phases[p].key);
        ck_assert_int_eq(real(line, "verify_seconds") > 0, i > 0);
        ck_assert_double_le(real(line, "draft_seconds") + real(line, "verify_seconds") + real(line, "accept_seconds"),
                            real(line, "seconds") + 3e-9);
    }
    for (size_t i = 0; i < json_array_size(prompts); i++) prefill += real(json_array_get(prompts, i), "seconds");
    for (int p = 0; p < 4; p++) ck_assert_double_eq_tol(sums[p], fr_session_stat(session, phases[p].stat), 1e-7);
    ck_assert_double_gt(sums[2], 0);
    ck_assert_double_lt(sums[2], sums[1]); /* comparing four ids takes less time than a forward pass */
    ck_assert_double_gt(prefill, 0);
    ck_assert_double_le(prefill, fr_session_stat(session, FR_STAT_PREFILL_SECONDS) + 1e-7);
    json_decref(accepts);
    json_decref(prompts);
    json_decref(all);
    fr_session_close(session);
    close_engine(&e);
}
END_TEST

/* ----------------------------------------------------------------------------------------------------------- header */

/* The name of the model's folder contains unusual bytes: quotes, a newline and an incomplete character. */
START_TEST(any_path_is_a_json_string) {
    static const char name[] = "fr\"\\\n\x01\x1f\xff\xc3\xa9\xe2\x82<";
    static const char shown[] = "fr\"\\\n\x01\x1f\xef\xbf\xbd\xc3\xa9\xef\xbf\xbd";
    char folder[64], link[128], target[PATH_MAX];
    snprintf(folder, sizeof folder, "%s/forerun-trace-XXXXXX", P_tmpdir);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(link, sizeof link, "%s/%s", folder, name);
    ck_assert_ptr_nonnull(realpath(FOLDER, target));
    ck_assert_int_eq(symlink(target, link), 0);
    fr_model *model;
    fr_session *session;
    require(fr_model_open(link, NULL, &model));
    require(fr_session_open(model, NULL, NULL, &session));
    lines.length = 0;
    fr_session_set_trace(session, hear, &lines);
    json_t *all = parse(&lines), *begin = json_array_get(all, 0);
    const char *path = json_string_value(fr_json_get(begin, "model")), *last = strrchr(path, '/') + 1;
    ck_assert_msg(strncmp(last, shown, strlen(shown)) == 0, "%s", path);
    ck_assert_str_eq(json_string_value(fr_json_get(begin, "method")), "none");
    ck_assert_str_eq(json_string_value(fr_json_get(begin, "version")), fr_version());
    ck_assert_str_eq(json_string_value(fr_json_get(begin, "isa")), fr_model_isa(model));
    ck_assert_int_eq(integer(begin, "trace"), 1);
    ck_assert_ptr_null(json_object_get(begin, "drafter"));

    fr_session_set_trace(session, NULL, NULL); /* nothing is traced after this */
    size_t before = lines.length;
    require(fr_session_prompt(session, (int32_t[]){2}, 1));
    ck_assert_uint_eq(lines.length, before);
    json_decref(all);
    fr_session_close(session);
    fr_model_close(model);
    unlink(link);
    rmdir(folder);
}
END_TEST

FR_SUITE("trace") {
    TCase *cases = tcase_create("trace");
    tcase_set_timeout(cases, 120);
    tcase_add_loop_test(cases, the_rounds_are_the_references, 0, 2);
    tcase_add_test(cases, prompt_lines_are_the_prompt);
    tcase_add_test(cases, tracing_changes_no_id_and_allocates_nothing);
    tcase_add_loop_test(cases, depths_are_counted, 0, 2);
    tcase_add_test(cases, drafts_behind_an_end_of_sequence_are_not_compared);
    tcase_add_loop_test(cases, seconds_add_up_to_the_statistics, 0, 2);
    tcase_add_test(cases, any_path_is_a_json_string);
    suite_add_tcase(suite, cases);
}
