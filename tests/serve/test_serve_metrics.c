/* Tests the page of metrics. It must have the names and types of llama.cpp's server in Prometheus' text format. It must
 * count rounds and sessions correctly. */
/* suite: links=command */
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/reference.h"
#include "tests/support/require.h"
#include "tests/support/suite.h"
#include "tools/serve/metrics.h"

#define LLAMACPP "llamacpp:"
#define OWN      "forerun:"

/* Returns the value of a sample, which must be on the page. If `name` has no prefix, it gets llama.cpp's prefix. */
static double value_of(const char *page, const char *name) {
    char line[256];
    snprintf(line, sizeof line, "\n%s%s ", strchr(name, ':') ? "" : LLAMACPP, name);
    const char *at = strstr(page, line);
    ck_assert_msg(at, "no %s in\n%s", name, page);
    return strtod(at + strlen(line), NULL);
}

static char *page_of(fr_metrics *metrics, size_t running, size_t waiting) {
    size_t length;
    char *page = fr_metrics_page(metrics, running, waiting, &length);
    ck_assert_uint_eq(strlen(page), length);
    return page;
}

/* The counters of llama-server's /metrics in its order, and then the counters that only forerun has. */
static const char *const counters[] = {
    LLAMACPP "prompt_tokens_total",
    LLAMACPP "prompt_tokens_cached_total",
    LLAMACPP "prompt_seconds_total",
    LLAMACPP "tokens_predicted_total",
    LLAMACPP "tokens_predicted_seconds_total",
    LLAMACPP "n_decode_total",
    LLAMACPP "n_tokens_max",
    LLAMACPP "spec_decode_num_draft_tokens_total",
    LLAMACPP "spec_decode_num_accepted_tokens_total",
    LLAMACPP "spec_decode_num_drafts_total",
    OWN "vision_tower_runs_total",
    OWN "vision_seconds_total",
};
static const char *const gauges[] = {
    LLAMACPP "prompt_tokens_seconds", LLAMACPP "predicted_tokens_seconds", LLAMACPP "requests_processing",
    LLAMACPP "requests_deferred",     LLAMACPP "n_busy_slots_per_decode",  OWN "kv_cache_used_bytes",
    OWN "kv_cache_shared_bytes",      OWN "kv_cache_kept_bytes",
};
enum { COUNTERS = sizeof counters / sizeof *counters, GAUGES = sizeof gauges / sizeof *gauges };

/* Checks the part of the page before the counts of HTTP requests. There, each sample must come after its HELP and TYPE
 * lines, and there must be no other lines. */
START_TEST(the_page_has_llama_cpps_names) {
    fr_metrics *metrics = fr_metrics_new();
    char *page = page_of(metrics, 0, 0), *rest = page, name[128], type[16], help[256], again[128];
    double value;
    size_t count = 0;
    char *others = strstr(page, "# HELP " OWN "http_requests_total");
    ck_assert_ptr_nonnull(others);
    for (int used = 0; rest < others; rest += used, count++) {
        ck_assert_int_eq(sscanf(rest, "# HELP %127s %255[^\n]\n%n", name, help, &used), 2);
        rest += used;
        ck_assert_int_eq(sscanf(rest, "# TYPE %127s %15[^\n]\n%n", again, type, &used), 2);
        ck_assert_str_eq(again, name);
        rest += used;
        ck_assert_int_eq(sscanf(rest, "%127s %lf\n%n", again, &value, &used), 2);
        ck_assert_str_eq(again, name);
        ck_assert(value == 0);
        bool known = false;
        for (size_t i = 0; i < COUNTERS; i++) known |= strcmp(name, counters[i]) == 0 && strcmp(type, "counter") == 0;
        for (size_t i = 0; i < GAUGES; i++) known |= strcmp(name, gauges[i]) == 0 && strcmp(type, "gauge") == 0;
        ck_assert_msg(known, "%s %s", name, type);
    }
    ck_assert_uint_eq(count, COUNTERS + GAUGES);
    free(page);
    fr_metrics_free(metrics);
}
END_TEST

static double bucket_of(const char *page, const char *name, const char *bound) {
    char line[256];
    snprintf(line, sizeof line, "\n" OWN "%s_bucket{le=\"%s\"} ", name, bound);
    const char *at = strstr(page, line);
    ck_assert_msg(at, "no %s in\n%s", line, page);
    return strtod(at + strlen(line), NULL);
}

/* As in Prometheus, a bucket also counts all smaller values. Refused requests, and requests that generate no text, are
 * counted only by their status. */
START_TEST(exchanges_are_counted_and_timed) {
    fr_metrics *metrics = fr_metrics_new();
    const fr_http_exchange_texts quick = {.prompt = 3, .generated = 11, .first = 0.02, .end = "length"},
                                 slow = {.prompt = 3, .generated = 1, .first = 40, .end = "stop"};
    const fr_http_exchange_report reports[] = {{.status = 200, .seconds = 0.12, .texts = &quick},
                                               {.status = 200, .seconds = 400, .texts = &slow},
                                               {.status = 200, .seconds = 9},
                                               {.status = 404, .seconds = 9},
                                               {.status = 503, .seconds = 1, .texts = &quick}};
    for (size_t i = 0; i < sizeof reports / sizeof *reports; i++) fr_metrics_add_http_exchange(metrics, &reports[i]);
    char *page = page_of(metrics, 0, 0);
    ck_assert_ptr_nonnull(strstr(page, "\n" OWN "http_requests_total{status=\"2xx\"} 3\n"));
    ck_assert_ptr_nonnull(strstr(page, "\n" OWN "http_requests_total{status=\"4xx\"} 1\n"));
    ck_assert_ptr_nonnull(strstr(page, "\n" OWN "http_requests_total{status=\"5xx\"} 1\n"));
    ck_assert_ptr_nonnull(strstr(page, "# TYPE " OWN "time_to_first_token_seconds histogram\n"));
    static const char whole[] = "e2e_request_latency_seconds", first[] = "time_to_first_token_seconds";
    static const char each[] = "time_per_output_token_seconds";
    ck_assert(bucket_of(page, whole, "0.1") == 0 && bucket_of(page, whole, "0.25") == 1);
    ck_assert(bucket_of(page, whole, "300") == 1 && bucket_of(page, whole, "+Inf") == 2);
    ck_assert(bucket_of(page, first, "0.025") == 1 && bucket_of(page, first, "30") == 1);
    ck_assert(bucket_of(page, first, "60") == 2 && bucket_of(page, first, "+Inf") == 2);
    ck_assert(bucket_of(page, each, "0.005") == 0 && bucket_of(page, each, "0.025") == 1);
    ck_assert(bucket_of(page, each, "+Inf") == 1); /* a single token has no distance to another */
    ck_assert_double_eq_tol(value_of(page, OWN "e2e_request_latency_seconds_sum"), 400.12, 1e-9);
    ck_assert(value_of(page, OWN "e2e_request_latency_seconds_count") == 2);
    free(page);
    fr_metrics_free(metrics);
}
END_TEST

START_TEST(rounds_are_counted_and_requests_are_as_they_are) {
    fr_metrics *metrics = fr_metrics_new();
    for (size_t busy = 1; busy <= 4; busy++) fr_metrics_add_round(metrics, busy);
    char *page = page_of(metrics, 4, 7);
    ck_assert(value_of(page, "n_decode_total") == 4);
    ck_assert(value_of(page, "n_busy_slots_per_decode") == 2.5);
    ck_assert(value_of(page, "requests_processing") == 4 && value_of(page, "requests_deferred") == 7);
    free(page);
    page = page_of(metrics, 0, 1);
    ck_assert(value_of(page, "requests_processing") == 0 && value_of(page, "requests_deferred") == 1);
    free(page);
    fr_metrics_free(metrics);
}
END_TEST

enum { TEXTS = 2, PROMPT = 24, SAID = 40 };

/* The sums over all sessions, which the metrics must show. */
typedef struct said {
    size_t ids, drafts, drafted, accepted, kept[FR_STEP_MAX];
    double prompt_seconds, seconds;
} said;

/* Runs a text that repeats itself, with drafts from its own n-grams. Adds its counts to `s`. */
static void run_text(const fr_reference *r, fr_metrics *metrics, size_t prompt, said *s) {
    fr_options *options = fr_options_new();
    fr_session *session;
    int32_t ids[PROMPT], out[FR_STEP_MAX];
    for (size_t i = 0; i < PROMPT; i++) ids[i] = (int32_t)(20 + i % 3);
    require(fr_options_set_text(options, FR_OPT_SPEC_TYPE, "ngram"));
    require(fr_options_set(options, FR_OPT_DRAFT_MAX, 3));
    require(fr_options_set(options, FR_OPT_IGNORE_EOS, 1));
    require(fr_session_open(r->model, NULL, options, &session));
    require(fr_session_prompt(session, ids, prompt));
    for (size_t done = 0, count, accepted; done < SAID; done += count) {
        double drafted = fr_session_stat(session, FR_STAT_DRAFTED);
        size_t room = SAID - done < FR_STEP_MAX ? SAID - done : FR_STEP_MAX;
        require(fr_session_step(session, out, room, &count, &accepted));
        s->ids += count;
        s->drafts += fr_session_stat(session, FR_STAT_DRAFTED) > drafted;
        s->drafted += (size_t)(fr_session_stat(session, FR_STAT_DRAFTED) - drafted);
        s->accepted += accepted;
        for (size_t i = 0; i < accepted; i++) s->kept[i]++;
    }
    s->prompt_seconds += fr_session_stat(session, FR_STAT_PREFILL_SECONDS);
    s->seconds += fr_session_stat(session, FR_STAT_DECODE_SECONDS);
    fr_metrics_add_text(metrics, session);
    fr_session_close(session);
    fr_options_free(options);
}

static void expect_depths(const char *page, const said *s) {
    char name[128];
    for (size_t depth = 0; depth < 3; depth++) {
        snprintf(name, sizeof name, OWN "spec_decode_num_accepted_tokens_per_pos_total{position=\"%zu\"}", depth);
        ck_assert(value_of(page, name) == (double)s->kept[depth]);
    }
    ck_assert_ptr_null(strstr(page, "position=\"3\""));
    ck_assert_ptr_nonnull(strstr(page, "\n# TYPE " OWN "spec_decode_num_accepted_tokens_per_pos_total counter\n"));
}

START_TEST(texts_are_summed) {
    fr_metrics *metrics = fr_metrics_new();
    fr_reference r;
    said s = {0};
    fr_reference_open(&r, "llama", NULL);
    run_text(&r, metrics, PROMPT, &s);
    run_text(&r, metrics, PROMPT / 2, &s);
    char *page = page_of(metrics, 0, 0);
    ck_assert(s.accepted > 0);
    ck_assert(value_of(page, "prompt_tokens_total") == PROMPT + PROMPT / 2);
    ck_assert(value_of(page, "tokens_predicted_total") == (double)s.ids && s.ids == TEXTS * SAID);
    ck_assert(value_of(page, "n_tokens_max") == PROMPT + SAID);
    ck_assert(value_of(page, "spec_decode_num_drafts_total") == (double)s.drafts);
    ck_assert(value_of(page, "spec_decode_num_draft_tokens_total") == (double)s.drafted);
    ck_assert(value_of(page, "spec_decode_num_accepted_tokens_total") == (double)s.accepted);
    ck_assert_double_eq_tol(value_of(page, "prompt_seconds_total"), s.prompt_seconds, 1e-6);
    ck_assert_double_eq_tol(value_of(page, "tokens_predicted_seconds_total"), s.seconds, 1e-6);
    ck_assert_double_eq_tol(value_of(page, "predicted_tokens_seconds"), (double)s.ids / s.seconds, 1e-3);
    expect_depths(page, &s);
    free(page);
    fr_reference_close(&r);
    fr_metrics_free(metrics);
}
END_TEST

enum { THREADS = 4, EACH = 500000 };

static void *count_rounds(void *metrics) {
    for (size_t i = 0; i < EACH; i++) fr_metrics_add_round(metrics, 1);
    return NULL;
}

START_TEST(threads_lose_nothing) {
    fr_metrics *metrics = fr_metrics_new();
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++) ck_assert_int_eq(pthread_create(&threads[i], NULL, count_rounds, metrics), 0);
    for (size_t i = 0; i < 20; i++) free(page_of(metrics, 0, 0));
    for (size_t i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    char *page = page_of(metrics, 0, 0);
    ck_assert(value_of(page, "n_decode_total") == THREADS * EACH && value_of(page, "n_busy_slots_per_decode") == 1);
    free(page);
    fr_metrics_free(metrics);
}
END_TEST

FR_SUITE("serve_metrics") {
    TCase *cases = tcase_create("metrics");
    tcase_set_timeout(cases, 60);
    tcase_add_test(cases, the_page_has_llama_cpps_names);
    tcase_add_test(cases, exchanges_are_counted_and_timed);
    tcase_add_test(cases, rounds_are_counted_and_requests_are_as_they_are);
    tcase_add_test(cases, texts_are_summed);
    tcase_add_test(cases, threads_lose_nothing);
    suite_add_tcase(suite, cases);
}
