/* Counts for /metrics: see tally.h. */
#include "tools/serve/tally.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "tools/output.h"

/* Sums, the longest text, and what is made of them. */
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
    FIGURES
} figure;

enum { DEPTHS = FR_STEP_MAX - 1 };

struct fr_tally {
    pthread_mutex_t lock; /* over all below */
    double figures[FIGURES];
    double busy;          /* sessions of all rounds together */
    double kept[DEPTHS];  /* accepted drafts by depth */
    size_t depths;        /* that there were drafts at */
};

#define PREFIX   "llamacpp:"
#define BY_DEPTH "spec_decode_num_accepted_tokens_per_pos_total"

static const struct {
    const char *name, *type, *help;
    int decimals;
} rows[FIGURES] = {
    [PROMPT_TOKENS] = {"prompt_tokens_total", "counter", "Tokens of prompts that were run", 0},
    [CACHED_TOKENS] = {"prompt_tokens_cached_total", "counter", "Tokens of prompts that were found in the cache", 0},
    [PROMPT_SECONDS] = {"prompt_seconds_total", "counter", "Seconds that prompts took", 6},
    [TOKENS] = {"tokens_predicted_total", "counter", "Generated tokens", 0},
    [SECONDS] = {"tokens_predicted_seconds_total", "counter", "Seconds that generated tokens took", 6},
    [ROUNDS] = {"n_decode_total", "counter", "Forwards of the model, each for all texts under way", 0},
    [LONGEST] = {"n_tokens_max", "counter", "Tokens of the longest text so far, its prompt's among them", 0},
    [DRAFTS] = {"spec_decode_num_drafts_total", "counter", "Forwards of texts that verified drafts", 0},
    [DRAFTED] = {"spec_decode_num_draft_tokens_total", "counter", "Drafted tokens", 0},
    [ACCEPTED] = {"spec_decode_num_accepted_tokens_total", "counter", "Drafted tokens that were accepted", 0},
    [PROMPT_SPEED] = {"prompt_tokens_seconds", "gauge", "Tokens of prompts in a second, on average", 3},
    [SPEED] = {"predicted_tokens_seconds", "gauge", "Generated tokens of a text in a second, on average", 3},
    [RUNNING] = {"requests_processing", "gauge", "Requests under way", 0},
    [WAITING] = {"requests_deferred", "gauge", "Requests that wait", 0},
    [BUSY] = {"n_busy_slots_per_decode", "gauge", "Texts in a forward, on average", 3},
};

fr_tally *fr_tally_new(void) {
    fr_tally *tally = fr_resize(NULL, 1, sizeof *tally);
    *tally = (fr_tally){0};
    pthread_mutex_init(&tally->lock, NULL);
    return tally;
}

void fr_tally_free(fr_tally *tally) {
    if (tally) pthread_mutex_destroy(&tally->lock);
    free(tally);
}

void fr_tally_round(fr_tally *tally, size_t busy) {
    pthread_mutex_lock(&tally->lock);
    tally->figures[ROUNDS]++;
    tally->busy += (double)busy;
    pthread_mutex_unlock(&tally->lock);
}

static void add_depths(fr_tally *tally, const fr_session *session) {
    for (size_t depth = 0; depth < DEPTHS; depth++) {
        if (fr_session_depth_stat(session, depth, FR_DEPTH_DRAFTED) == 0) continue;
        tally->kept[depth] += fr_session_depth_stat(session, depth, FR_DEPTH_ACCEPTED);
        if (tally->depths <= depth) tally->depths = depth + 1;
    }
}

void fr_tally_text(fr_tally *tally, const fr_session *session) {
    static const struct {
        figure figure;
        fr_stat stat;
    } stats[] = {
        {PROMPT_TOKENS, FR_STAT_PROMPT_TOKENS}, {CACHED_TOKENS, FR_STAT_REUSED_TOKENS},
        {PROMPT_SECONDS, FR_STAT_PREFILL_SECONDS}, {TOKENS, FR_STAT_GENERATED_TOKENS},
        {SECONDS, FR_STAT_DECODE_SECONDS}, {DRAFTED, FR_STAT_DRAFTED}, {ACCEPTED, FR_STAT_ACCEPTED},
    };
    double length = (double)fr_session_length(session);
    pthread_mutex_lock(&tally->lock);
    for (size_t i = 0; i < sizeof stats / sizeof *stats; i++)
        tally->figures[stats[i].figure] += fr_session_stat(session, stats[i].stat);
    tally->figures[DRAFTS] += fr_session_depth_stat(session, 0, FR_DEPTH_DRAFTED);
    if (tally->figures[LONGEST] < length) tally->figures[LONGEST] = length;
    add_depths(tally, session);
    pthread_mutex_unlock(&tally->lock);
}

static double ratio(double a, double b) {
    return b > 0 ? a / b : 0;
}

static void print_head(FILE *page, const char *name, const char *type, const char *help) {
    fprintf(page, "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s %s\n", name, help, name, type);
}

static void print_page(const fr_tally *tally, FILE *page) {
    for (size_t i = 0; i < FIGURES; i++) {
        print_head(page, rows[i].name, rows[i].type, rows[i].help);
        fprintf(page, PREFIX "%s %.*f\n", rows[i].name, rows[i].decimals, tally->figures[i]);
    }
    if (tally->depths == 0) return;
    print_head(page, BY_DEPTH, "counter", "Drafted tokens that were accepted, by their place in a draft");
    for (size_t depth = 0; depth < tally->depths; depth++)
        fprintf(page, PREFIX BY_DEPTH "{position=\"%zu\"} %.0f\n", depth, tally->kept[depth]);
}

char *fr_tally_page(fr_tally *tally, size_t running, size_t waiting, size_t *length) {
    char *text = NULL;
    FILE *page = open_memstream(&text, length);
    if (!page) exit(fr_bad_input("out of memory: counts"));
    pthread_mutex_lock(&tally->lock);
    double *figures = tally->figures;
    figures[PROMPT_SPEED] = ratio(figures[PROMPT_TOKENS], figures[PROMPT_SECONDS]);
    figures[SPEED] = ratio(figures[TOKENS], figures[SECONDS]);
    figures[RUNNING] = (double)running;
    figures[WAITING] = (double)waiting;
    figures[BUSY] = ratio(tally->busy, figures[ROUNDS]);
    print_page(tally, page);
    pthread_mutex_unlock(&tally->lock);
    fclose(page);
    return text;
}
