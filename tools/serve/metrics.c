/* Counts what a server has done, for /metrics (metrics.h). */
#include "tools/serve/metrics.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/cli/output.h"

/* The figures of the page. Some are sums, one is the longest text, and some are computed from other figures. */
typedef enum figure {
    PROMPT_TOKENS,
    CACHED_TOKENS,
    PROMPT_SECONDS,
    TOKENS,
    SECONDS,
    ROUNDS,
    LONGEST,
    DRAFTS,
    DRAFTED,
    ACCEPTED,
    PROMPT_SPEED,
    SPEED,
    RUNNING,
    WAITING,
    BUSY,
    TOWER_RUNS,
    TOWER_SECONDS,
    KV_USED,
    KV_SHARED,
    KV_CACHED,
    FIGURES
} figure;

enum { DEPTHS = FR_STEP_MAX - 1 };

/* The histograms of the times of requests for text. The upper bounds of their classes are in seconds. */
typedef enum span { WHOLE, FIRST, EACH, SPANS } span;

static const double bounds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300};
enum { BOUNDS = sizeof bounds / sizeof *bounds };

typedef struct histogram {
    double below[BOUNDS]; /* number of requests that took at most bounds[i] seconds */
    double count, sum;
} histogram;

/* Prefixes of names. If llama-server has the same figure, the figure gets the name that it has there. All other
 * figures, such as the histograms, get forerun's prefix. Programs that read llama-server's page may not expect these
 * figures. */
#define LLAMACPP "llamacpp:"
#define OWN      "forerun:"

static const struct {
    const char *name, *help;
} span_rows[SPANS] = {
    [WHOLE] = {OWN "e2e_request_latency_seconds", "Seconds from a request for text to the end of its answer"},
    [FIRST] = {OWN "time_to_first_token_seconds", "Seconds from a request for text to its first token"},
    [EACH] = {OWN "time_per_output_token_seconds",
              "Seconds of each token of an answer after its first one, on average"},
};

/* Answers are counted in classes by the first digit of their status, 1xx to 5xx. */
enum { CLASSES = 5 };

struct fr_metrics {
    pthread_mutex_t lock; /* protects all members below */
    double figures[FIGURES];
    double busy;         /* sum over all rounds of the number of sessions in a round */
    double kept[DEPTHS]; /* number of accepted drafts at each depth */
    size_t depths;       /* number of depths at which drafts were made */
    time_t since;
    histogram spans[SPANS];
    double exchanges[CLASSES];
};

#define BY_DEPTH OWN "spec_decode_num_accepted_tokens_per_pos_total"
#define CALLS    OWN "http_requests_total"

static const struct {
    const char *name, *type, *help;
    int decimals;
} rows[FIGURES] = {
    [PROMPT_TOKENS] = {LLAMACPP "prompt_tokens_total", "counter", "Tokens of prompts that were run", 0},
    [CACHED_TOKENS] = {LLAMACPP "prompt_tokens_cached_total", "counter",
                       "Tokens of prompts that were found in the cache", 0},
    [PROMPT_SECONDS] = {LLAMACPP "prompt_seconds_total", "counter", "Seconds that prompts took", 6},
    [TOKENS] = {LLAMACPP "tokens_predicted_total", "counter", "Generated tokens", 0},
    [SECONDS] = {LLAMACPP "tokens_predicted_seconds_total", "counter", "Seconds that generated tokens took", 6},
    [ROUNDS] = {LLAMACPP "n_decode_total", "counter", "Forwards of the model, each for all texts under way", 0},
    [LONGEST] = {LLAMACPP "n_tokens_max", "counter", "Tokens of the longest text so far, its prompt's among them", 0},
    [DRAFTS] = {LLAMACPP "spec_decode_num_drafts_total", "counter", "Forwards of texts that verified drafts", 0},
    [DRAFTED] = {LLAMACPP "spec_decode_num_draft_tokens_total", "counter", "Drafted tokens", 0},
    [ACCEPTED] = {LLAMACPP "spec_decode_num_accepted_tokens_total", "counter", "Drafted tokens that were accepted", 0},
    [PROMPT_SPEED] = {LLAMACPP "prompt_tokens_seconds", "gauge", "Tokens of prompts in a second, on average", 3},
    [SPEED] = {LLAMACPP "predicted_tokens_seconds", "gauge", "Generated tokens of a text in a second, on average", 3},
    [RUNNING] = {LLAMACPP "requests_processing", "gauge", "Requests under way", 0},
    [WAITING] = {LLAMACPP "requests_deferred", "gauge", "Requests that wait", 0},
    [BUSY] = {LLAMACPP "n_busy_slots_per_decode", "gauge", "Texts in a forward, on average", 3},
    [TOWER_RUNS] = {OWN "vision_tower_runs_total", "counter",
                    "Pictures that the vision tower was run for; the same pixels are not run again", 0},
    [TOWER_SECONDS] = {OWN "vision_seconds_total", "counter", "Seconds that pictures took in the vision tower", 6},
    [KV_USED] = {OWN "kv_cache_used_bytes", "gauge", "Keys and values that texts held as the last one ended", 0},
    [KV_SHARED] = {OWN "kv_cache_shared_bytes", "gauge", "Of these what more than one text held", 0},
    [KV_CACHED] = {OWN "kv_cache_kept_bytes", "gauge", "Keys and values kept for prompts that begin alike", 0},
};

fr_metrics *fr_metrics_new(void) {
    fr_metrics *metrics = fr_resize(NULL, 1, sizeof *metrics);
    *metrics = (fr_metrics){.since = time(NULL)};
    pthread_mutex_init(&metrics->lock, NULL);
    return metrics;
}

time_t fr_metrics_since(const fr_metrics *metrics) {
    return metrics->since;
}

void fr_metrics_free(fr_metrics *metrics) {
    if (metrics) pthread_mutex_destroy(&metrics->lock);
    free(metrics);
}

void fr_metrics_add_round(fr_metrics *metrics, size_t busy) {
    pthread_mutex_lock(&metrics->lock);
    metrics->figures[ROUNDS]++;
    metrics->busy += (double)busy;
    pthread_mutex_unlock(&metrics->lock);
}

void fr_metrics_add_prompt(fr_metrics *metrics, size_t tokens, double seconds) {
    pthread_mutex_lock(&metrics->lock);
    metrics->figures[PROMPT_TOKENS] += (double)tokens;
    metrics->figures[PROMPT_SECONDS] += seconds;
    pthread_mutex_unlock(&metrics->lock);
}

void fr_metrics_add_text(fr_metrics *metrics, const fr_session *session) {
    static const struct {
        figure figure;
        fr_stat stat;
    } stats[] = {
        {PROMPT_TOKENS, FR_STAT_PROMPT_TOKENS},
        {CACHED_TOKENS, FR_STAT_REUSED_TOKENS},
        {PROMPT_SECONDS, FR_STAT_PREFILL_SECONDS},
        {TOKENS, FR_STAT_GENERATED_TOKENS},
        {SECONDS, FR_STAT_DECODE_SECONDS},
        {DRAFTED, FR_STAT_DRAFTED},
        {ACCEPTED, FR_STAT_ACCEPTED},
        {TOWER_RUNS, FR_STAT_TOWER_RUNS},
        {TOWER_SECONDS, FR_STAT_VISION_SECONDS},
    };
    double length = (double)fr_session_length(session);
    pthread_mutex_lock(&metrics->lock);
    for (size_t i = 0; i < sizeof stats / sizeof *stats; i++)
        metrics->figures[stats[i].figure] += fr_session_stat(session, stats[i].stat);
    metrics->figures[KV_USED] = fr_session_stat(session, FR_STAT_KV_USED_BYTES);
    metrics->figures[KV_SHARED] = fr_session_stat(session, FR_STAT_KV_SHARED_BYTES);
    metrics->figures[KV_CACHED] = fr_session_stat(session, FR_STAT_KV_CACHED_BYTES);
    metrics->figures[DRAFTS] += fr_session_depth_stat(session, 0, FR_DEPTH_DRAFTED);
    if (metrics->figures[LONGEST] < length) metrics->figures[LONGEST] = length;
    for (size_t depth = 0; depth < DEPTHS; depth++) {
        if (fr_session_depth_stat(session, depth, FR_DEPTH_DRAFTED) == 0) continue;
        metrics->kept[depth] += fr_session_depth_stat(session, depth, FR_DEPTH_ACCEPTED);
        if (metrics->depths <= depth) metrics->depths = depth + 1;
    }
    pthread_mutex_unlock(&metrics->lock);
}

static void add_seconds(histogram *h, double seconds) {
    for (size_t i = 0; i < BOUNDS; i++) h->below[i] += seconds <= bounds[i];
    h->count++;
    h->sum += seconds;
}

void fr_metrics_add_http_exchange(fr_metrics *metrics, const fr_http_exchange_report *report) {
    const fr_http_exchange_texts *texts = report->texts;
    unsigned class = report->status / 100;
    pthread_mutex_lock(&metrics->lock);
    if (class >= 1 && class <= CLASSES) metrics->exchanges[class - 1]++;
    if (texts && report->status < 400) {
        add_seconds(&metrics->spans[WHOLE], report->seconds);
        if (texts->first > 0) add_seconds(&metrics->spans[FIRST], texts->first);
        if (texts->first > 0 && texts->generated > 1 && report->seconds > texts->first)
            add_seconds(&metrics->spans[EACH], (report->seconds - texts->first) / (double)(texts->generated - 1));
    }
    pthread_mutex_unlock(&metrics->lock);
}

static double ratio(double a, double b) {
    return b > 0 ? a / b : 0;
}

static void print_head(FILE *page, const char *name, const char *type, const char *help) {
    fprintf(page, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void print_histogram(FILE *page, const char *name, const char *help, const histogram *h) {
    print_head(page, name, "histogram", help);
    for (size_t i = 0; i < BOUNDS; i++) fprintf(page, "%s_bucket{le=\"%g\"} %.0f\n", name, bounds[i], h->below[i]);
    fprintf(page, "%s_bucket{le=\"+Inf\"} %.0f\n", name, h->count);
    fprintf(page, "%s_sum %.6f\n%s_count %.0f\n", name, h->sum, name, h->count);
}

static void print_page(const fr_metrics *metrics, FILE *page) {
    for (size_t i = 0; i < FIGURES; i++) {
        print_head(page, rows[i].name, rows[i].type, rows[i].help);
        fprintf(page, "%s %.*f\n", rows[i].name, rows[i].decimals, metrics->figures[i]);
    }
    print_head(page, CALLS, "counter", "Requests that were answered, by the class of their status");
    for (size_t i = 0; i < CLASSES; i++) fprintf(page, CALLS "{status=\"%zuxx\"} %.0f\n", i + 1, metrics->exchanges[i]);
    for (size_t i = 0; i < SPANS; i++) print_histogram(page, span_rows[i].name, span_rows[i].help, &metrics->spans[i]);
    if (metrics->depths == 0) return;
    print_head(page, BY_DEPTH, "counter", "Drafted tokens that were accepted, by their place in a draft");
    for (size_t depth = 0; depth < metrics->depths; depth++)
        fprintf(page, BY_DEPTH "{position=\"%zu\"} %.0f\n", depth, metrics->kept[depth]);
}

char *fr_metrics_page(fr_metrics *metrics, size_t running, size_t waiting, size_t *length) {
    char *text = NULL;
    FILE *page = open_memstream(&text, length);
    if (!page) exit(fr_bad_input("out of memory: counts"));
    pthread_mutex_lock(&metrics->lock);
    double *figures = metrics->figures;
    figures[PROMPT_SPEED] = ratio(figures[PROMPT_TOKENS], figures[PROMPT_SECONDS]);
    figures[SPEED] = ratio(figures[TOKENS], figures[SECONDS]);
    figures[RUNNING] = (double)running;
    figures[WAITING] = (double)waiting;
    figures[BUSY] = ratio(metrics->busy, figures[ROUNDS]);
    print_page(metrics, page);
    pthread_mutex_unlock(&metrics->lock);
    fclose(page);
    return text;
}
