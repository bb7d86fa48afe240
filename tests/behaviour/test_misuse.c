/* Tests calls with meaningless arguments. They are NULL instead of a pointer that is needed, counts that are too large,
 * invalid ids, and numbers in a locale with decimal commas. Each call must return a status and set an error line that
 * names the wrong argument. No call may crash. */
#include <check.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "forerun.h"
#include "tests/support/reference.h"
#include "tests/support/suite.h"

static void require(fr_status status) {
    ck_assert_msg(status == FR_OK, "%s", fr_last_error());
}

static void refused(fr_status status, fr_status expected, const char *words) {
    ck_assert_msg(status == expected, "%s: %s", fr_status_name(status), fr_last_error());
    ck_assert_msg(strstr(fr_last_error(), words), "%s", fr_last_error());
}

static void usage(fr_status status, const char *words) {
    refused(status, FR_USAGE, words);
}

static fr_model *open_model(fr_session **session, fr_options **options) {
    fr_model *model;
    *options = fr_options_new();
    require(fr_options_set(*options, FR_OPT_CONTEXT, 64));
    require(fr_options_set(*options, FR_OPT_THREADS, 1));
    require(fr_model_open(FR_TEST_MODELS "gemma4-e", *options, &model));
    if (session) require(fr_session_open(model, NULL, *options, session));
    return model;
}

static fr_status sink(void *context, const float *logits, size_t rows, size_t vocab) {
    (void)context, (void)logits, (void)rows, (void)vocab;
    return FR_OK;
}

static fr_status score(void *context, int32_t id, float own, const int32_t *ids, const float *values, size_t best) {
    (void)context;
    (void)id;
    (void)own;
    (void)ids;
    (void)values;
    (void)best;
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------- NULL */

START_TEST(a_session_that_is_none) {
    const int32_t one = 2, *ids;
    int32_t out[FR_STEP_MAX];
    size_t count = 7, accepted = 7;
    const float *values;
    float own = 0;
    void *bytes = out;
    usage(fr_session_prompt(NULL, &one, 1), "fr_session_prompt: a session is needed");
    usage(fr_session_set_prompt(NULL, &one, 1), "fr_session_set_prompt");
    usage(fr_session_put(NULL, &one, 1), "fr_session_put");
    usage(fr_session_show(NULL, NULL, 0), "fr_session_show");
    usage(fr_session_truncate(NULL, 0), "fr_session_truncate");
    usage(fr_session_step(NULL, out, 1, &count, &accepted), "fr_session_step");
    ck_assert(count == 0 && accepted == 0);
    usage(fr_session_next_logits(NULL, &values), "fr_session_next_logits");
    usage(fr_session_set_mask(NULL, NULL, NULL), "fr_session_set_mask");
    usage(fr_session_set_options(NULL, NULL), "fr_session_set_options");
    usage(fr_session_set_stops(NULL, NULL, 0), "fr_session_set_stops");
    usage(fr_session_logits(NULL, &one, 1, 0, sink, NULL), "fr_session_logits");
    usage(fr_session_score(NULL, &one, 1, score, NULL), "fr_session_score");
    usage(fr_session_put_scored(NULL, &one, 1, score, NULL), "fr_session_put_scored");
    usage(fr_session_rows(NULL, &one, 1, &(size_t){0}, 1, sink, NULL), "fr_session_rows");
    usage(fr_session_draft_logits(NULL, &one, 2, 1, sink, NULL), "fr_session_draft_logits");
    usage(fr_draft_submit(NULL), "fr_draft_submit");
    usage(fr_draft_wait(NULL, out, &count), "fr_draft_wait");
    usage(fr_draft_now(NULL, 1, out, &count, NULL), "fr_draft_now");
    usage(fr_session_save(NULL, "x"), "fr_session_save");
    usage(fr_session_restore(NULL, "x"), "fr_session_restore");
    usage(fr_session_save_bytes(NULL, &bytes, &count), "fr_session_save_bytes");
    ck_assert_ptr_null(bytes);
    usage(fr_session_restore_bytes(NULL, "x", 1), "fr_session_restore_bytes");
    usage(fr_session_attach(NULL, "x", 1), "fr_session_attach");
    usage(fr_session_fork(NULL, NULL, NULL), "fr_session_fork");
    usage(fr_session_set_proposer(NULL, NULL), "fr_session_set_proposer");
    fr_session_set_abort(NULL, NULL, NULL);
    fr_session_set_progress(NULL, NULL, NULL);
    fr_session_set_trace(NULL, NULL, NULL);
    fr_session_cancel(NULL);
    fr_session_reset(NULL);
    fr_draft_cancel(NULL);
    fr_session_close(NULL);
    ck_assert_uint_eq(fr_session_length(NULL) + fr_session_context(NULL) + fr_session_waiting(NULL), 0);
    ck_assert_uint_eq(fr_session_ids(NULL, &ids) + fr_session_logprobs(NULL, 0, &own, &ids, &values), 0);
    ck_assert(isnan(own) && isnan(fr_session_stat(NULL, FR_STAT_DRAFTED)) && isnan(fr_session_depth_stat(NULL, 0, 0)));
    ck_assert_int_eq(fr_session_stopped(NULL, &count), -1);
    ck_assert_ptr_null(fr_session_attached(NULL, &count));
    ck_assert_uint_eq(fr_session_accepted_lengths(NULL, NULL), 0);
    ck_assert(!fr_session_adapts(NULL));
}
END_TEST

START_TEST(places_that_are_none) {
    fr_session *session;
    fr_options *options;
    fr_model *model = open_model(&session, &options);
    int32_t ids[FR_STEP_MAX];
    size_t count;
    require(fr_session_prompt(session, (int32_t[]){2, 5}, 2));
    usage(fr_session_step(session, ids, 1, NULL, NULL), "count");
    usage(fr_session_step(session, NULL, 1, &count, NULL), "room");
    usage(fr_session_next_logits(session, NULL), "logits");
    usage(fr_session_logits(session, ids, 1, 0, NULL, NULL), "function");
    usage(fr_session_score(session, ids, 1, NULL, NULL), "function");
    usage(fr_session_score(session, ids, 1, score, NULL), "FR_OPT_LOGPROBS");
    usage(fr_session_put_scored(session, ids, 1, NULL, NULL), "function");
    usage(fr_session_put_scored(session, ids, 1, score, NULL), "FR_OPT_LOGPROBS");
    usage(fr_session_logits(session, (int32_t[]){2, 5}, 2, 2, sink, NULL), "first_row 2 is beyond the prompt's 2");
    usage(fr_session_save(session, NULL), "path");
    usage(fr_session_restore(session, NULL), "path");
    usage(fr_session_save_bytes(session, NULL, NULL), "bytes");
    usage(fr_session_restore_bytes(session, NULL, 0), "bytes");
    usage(fr_session_show(session, NULL, 1), "picture 0");
    usage(fr_session_set_stops(session, NULL, 1), "strings");
    refused(fr_session_prompt(session, NULL, 1), FR_INPUT, "empty");
    require(fr_session_step(session, ids, FR_STEP_MAX, &count, NULL));
    ck_assert_uint_gt(count, 0);
    ck_assert_int_eq(fr_session_stopped(session, NULL), -1);
    fr_session_attached(session, NULL);
    fr_session_close(session);
    fr_model_close(model);
    fr_options_free(options);
}
END_TEST

START_TEST(models_and_engines_that_are_none) {
    fr_options *options;
    fr_model *model = open_model(NULL, &options), *none;
    fr_engine *engine;
    fr_picture *picture;
    fr_round round = {0};
    uint64_t bytes[FR_ESTIMATE_COUNT];
    usage(fr_model_open(NULL, NULL, &none), "path");
    usage(fr_model_open("x", NULL, NULL), "model");
    usage(fr_model_open_bytes(NULL, 1, "x", NULL, &none), "bytes");
    usage(fr_drafter_open("x", NULL, NULL, NULL), "target");
    usage(fr_session_open(NULL, NULL, NULL, NULL), "model");
    usage(fr_engine_open(NULL, NULL, NULL, 1, &engine), "model");
    usage(fr_engine_session(NULL, NULL, NULL), "engine");
    usage(fr_engine_step(NULL, &round, 1), "engine");
    usage(fr_picture_open("x", NULL, &picture), "model");
    usage(fr_picture_open_bytes(NULL, 0, "x", NULL, model, &picture), "bytes");
    refused(fr_picture_open_bytes("x", 1, "x", NULL, model, &picture), FR_INPUT, "no vision tower: it can't see x");
    usage(fr_model_estimate(NULL, NULL, NULL, 1, bytes), "path");
    usage(fr_model_estimate("x", NULL, NULL, 0, bytes), "1 to 256 sessions");
    refused(fr_model_estimate("/nowhere", NULL, NULL, 1, bytes), FR_INPUT, "/nowhere");
    require(fr_engine_open(model, NULL, options, 2, &engine));
    usage(fr_engine_step(engine, NULL, 1), "rounds");
    require(fr_engine_step(engine, NULL, 0));
    fr_engine_close(engine);
    ck_assert_int_eq(fr_model_fact(NULL, FR_FACT_VOCAB), -1);
    ck_assert_uint_eq(fr_model_eos(NULL, NULL) + fr_model_suppressed(NULL, NULL) + fr_picture_tokens(NULL), 0);
    ck_assert(!fr_model_isa(NULL) && !fr_model_note(NULL, 0) && !fr_model_tokenizer(NULL) && !fr_drafter_note(NULL, 0));
    fr_model_close(model);
    fr_options_free(options);
}
END_TEST

START_TEST(tokenizers_that_are_none) {
    const char *text;
    char *all;
    int32_t *ids;
    size_t count;
    fr_decoder *decoder;
    fr_reply_parser *parser;
    fr_marked_text marked = {0};
    refused(fr_tokenize(NULL, "x", 1, false, false, &ids, &count), FR_INPUT, "fr_tokenize: there is no tokenizer");
    refused(fr_tokenize_marked(NULL, &marked, &ids, &count), FR_INPUT, "fr_tokenize_marked");
    refused(fr_detokenize(NULL, NULL, 0, &all, &count), FR_INPUT, "fr_detokenize");
    refused(fr_decoder_new(NULL, false, &decoder), FR_INPUT, "fr_decoder_new");
    refused(fr_reply_parser_new(NULL, NULL, NULL, &parser), FR_INPUT, "fr_reply_parser_new");
    refused(fr_chat_render(NULL, "[]", NULL, &marked), FR_INPUT, "fr_chat_render");
    usage(fr_chat_render(NULL, NULL, NULL, &marked), "messages");
    usage(fr_tokenizer_open(NULL, NULL, NULL), "path");
    usage(fr_tokenize(NULL, NULL, 1, false, false, &ids, &count), "text");
    usage(fr_tokenize_marked(NULL, NULL, &ids, &count), "text");
    usage(fr_decoder_feed(NULL, 1, &text, &count), "decoder");
    usage(fr_decoder_finish(NULL, &text, &count), "decoder");
    usage(fr_reply_parser_begin(NULL, NULL, NULL, false, 0), "parser");
    usage(fr_reply_parser_feed(NULL, 1), "fr_reply_parser_begin");
    usage(fr_reply_parser_feed_text(NULL, "x", 1), "fr_reply_parser_begin");
    usage(fr_reply_parser_finish(NULL), "fr_reply_parser_begin");
    usage(fr_reply_parser_message(NULL, &all, &count), "parser");
    fr_reply_parser_free(NULL);
    fr_decoder_follow(NULL);
    fr_decoder_free(NULL);
    fr_tokenizer_close(NULL);
    fr_marked_text_free(NULL);
    ck_assert(!fr_tokenizer_note(NULL, 0) && !fr_chat_note(NULL, false) && fr_tokenizer_count(NULL) == 0);
    ck_assert(fr_tokenizer_bos(NULL) == -1 && fr_tokenizer_eos(NULL) == -1 && fr_tokenizer_unk(NULL) == -1);
    ck_assert_int_eq(fr_token_kind_of(NULL, 0), FR_TOKEN_NONE);
    ck_assert(!fr_token_text(NULL, 0, NULL) && !fr_token_bytes(NULL, 0, NULL));
    ck_assert_uint_eq(fr_stop_find(NULL, 1, "abc", 3, 0, NULL), 3);
}
END_TEST

START_TEST(options_that_are_none) {
    int64_t value;
    double number;
    fr_options *options = fr_options_new();
    usage(fr_options_set(NULL, FR_OPT_SEED, 1), "options");
    usage(fr_options_set_number(NULL, FR_OPT_TEMPERATURE, 1), "options");
    usage(fr_options_set_text(NULL, FR_OPT_ISA, "scalar"), "options");
    usage(fr_options_set_text(options, FR_OPT_ISA, NULL), "text");
    usage(fr_options_set(options, FR_OPT_COUNT, 1), "is no option");
    usage(fr_options_set(options, (fr_option)-1, 1), "-1 is no option");
    usage(fr_options_set_text(options, FR_OPT_COUNT, "x"), "is no option");
    usage(fr_options_set_text(options, FR_OPT_TOP_P, "x"), "top-p takes a number");
    usage(fr_options_set(options, FR_OPT_ISA, 1), "isa takes a text");
    usage(fr_options_get(options, FR_OPT_SEED, NULL), "place");
    usage(fr_options_get_number(options, FR_OPT_SEED, &number), "seed takes a whole number");
    require(fr_options_get(NULL, FR_OPT_REPEAT_LAST_N, &value));
    ck_assert_int_eq(value, 64);
    fr_options_set_log(NULL, NULL, NULL);
    fr_options_set_progress(NULL, NULL, NULL);
    fr_options_free(NULL);
    fr_options_free(options);
}
END_TEST

/* ----------------------------------------------------------------------------------------------- counts and indexes */

/* Passes a count that is larger than the array. If the library read beyond the array, the sanitizers would report
 * it. */
START_TEST(more_rounds_than_there_is_room_for) {
    fr_options *options;
    fr_model *model = open_model(NULL, &options);
    fr_engine *engine;
    fr_session *session;
    int32_t ids[4];
    require(fr_engine_open(model, NULL, options, 2, &engine));
    require(fr_engine_session(engine, options, &session));
    require(fr_session_put(session, (int32_t[]){2, 5}, 2));
    fr_round *rounds = malloc(sizeof *rounds);
    *rounds = (fr_round){.session = session, .ids = ids, .limit = 4};
    usage(fr_engine_step(engine, rounds, 3), "3 rounds, and the engine has room for 2 sessions");
    free(rounds);
    fr_session_close(session);
    fr_engine_close(engine);
    fr_model_close(model);
    fr_options_free(options);
}
END_TEST

START_TEST(ids_are_named_as_the_caller_counts_them) {
    fr_session *session;
    fr_options *options;
    fr_model *model = open_model(&session, &options);
    static int32_t many[100] = {2, 5, 7};
    require(fr_session_set_prompt(session, (int32_t[]){2, 5, 6}, 3));
    refused(fr_session_set_prompt(session, (int32_t[]){2, 5, -1}, 3), FR_INPUT, "id -1 at index 2 of the prompt");
    refused(fr_session_put(session, (int32_t[]){2, 5, 6, 9, 1 << 30}, 5), FR_INPUT, "at index 4 of the prompt");
    refused(fr_session_prompt(session, (int32_t[]){9, -3}, 2), FR_INPUT, "id -3 at index 1 of the prompt");
    refused(fr_session_set_prompt(session, many, 100), FR_INPUT,
            "the prompt has 100 tokens, the context has room for 64 of 64");
    ck_assert_int_eq(fr_last_error_option(), FR_OPT_CONTEXT);
    ck_assert_ptr_null(strstr(fr_last_error(), "-c"));
    refused(fr_session_prompt(session, many, 100), FR_INPUT, "100 tokens, the context has room for 61 of 64");
    usage(fr_session_truncate(session, 9), "3 tokens, not 9");
    ck_assert_int_eq(fr_last_error_option(), FR_OPT_COUNT);
    fr_session_close(session);
    fr_model_close(model);
    fr_options_free(options);
}
END_TEST

/* ---------------------------------------------------------------------------------------------------------- locales */

/* Sets a locale with decimal commas. It is an installed locale, or one that localedef makes. */
static bool take_comma(void) {
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "test.UTF-8"};
    char folder[] = "/tmp/test_misuse_XXXXXX", command[256];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    setenv("LOCPATH", folder, 1);
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/test.UTF-8 >%s/log 2>&1", folder, folder);
    bool made = system(command) == 0, there = made && setlocale(LC_ALL, names[3]);
    unsetenv("LOCPATH");
    for (size_t i = 0; !there && i < 3; i++) there = setlocale(LC_ALL, names[i]);
    snprintf(command, sizeof command, "rm -r %s", folder);
    ck_assert_int_eq(system(command), 0);
    return there && *localeconv()->decimal_point == ',';
}

START_TEST(a_bias_is_read_in_any_locale) {
    fr_options *options = fr_options_new();
    char text[64];
    if (!take_comma()) fprintf(stderr, "no locale with decimal commas: nothing is checked\n");
    require(fr_options_set_text(options, FR_OPT_LOGIT_BIAS, "5-1.5"));
    require(fr_options_set_text(options, FR_OPT_LOGIT_BIAS, "5-1,6+1"));
    require(fr_options_get_text(options, FR_OPT_LOGIT_BIAS, text, sizeof text, NULL));
    ck_assert_str_eq(text, "5-1.5,5-1,6+1");
    usage(fr_options_set_text(options, FR_OPT_LOGIT_BIAS, "5-1,5"), "logit-bias");
    fr_options_free(options);
}
END_TEST

FR_SUITE("misuse") {
    TCase *cases = tcase_create("misuse");
    tcase_set_timeout(cases, 120); /* localedef takes long */
    tcase_add_test(cases, a_session_that_is_none);
    tcase_add_test(cases, places_that_are_none);
    tcase_add_test(cases, models_and_engines_that_are_none);
    tcase_add_test(cases, tokenizers_that_are_none);
    tcase_add_test(cases, options_that_are_none);
    tcase_add_test(cases, more_rounds_than_there_is_room_for);
    tcase_add_test(cases, ids_are_named_as_the_caller_counts_them);
    tcase_add_test(cases, a_bias_is_read_in_any_locale);
    suite_add_tcase(suite, cases);
}
