/* Handles several choices of one request (job_choices.h). */
#include "tools/jobs/job_choices.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/wide_json.h"
#include "tools/jobs/job_echo.h"
#include "tools/jobs/job_parts.h"

/* ---------------------------------------------------------------------------------------------------------- members */

static bool is_given(const fr_job *job, const char *key) {
    const json_t *value = json_object_get(job->request, key);
    return value && !json_is_null(value);
}

static bool take_number(fr_job *job, const char *key, const json_t *value, size_t *number) {
    if (!fr_job_whole(value, 1, FR_CHOICES_MAX))
        return fr_job_refuse(job, FR_USAGE, "%s must be a whole number from 1 to %d", key, FR_CHOICES_MAX);
    *number = (size_t)json_integer_value(value);
    return true;
}

/* Reads the number of choices. llama.cpp's name for it is "n_cmpl", and OpenAI's name is "n". If the request gives
 * both, "n_cmpl" is used. */
bool fr_job_take_choices(fr_job *job, const char *key, const json_t *value) {
    size_t n = 1;
    if (!take_number(job, key, value, &n)) return false;
    if (strcmp(key, "n_cmpl") == 0 || !is_given(job, "n_cmpl")) job->each = n;
    return true;
}

bool fr_job_take_best_of(fr_job *job, const char *key, const json_t *value) {
    return take_number(job, key, value, &job->shown); /* the number is compared with n later, in
                                                       * fr_job_settle_choices */
}

bool fr_job_take_echo(fr_job *job, const char *key, const json_t *value) {
    const json_t *suffix = json_object_get(job->request, "suffix");
    if (!json_is_boolean(value)) return fr_job_refuse(job, FR_USAGE, "%s must be true or false", key);
    job->echo = json_is_true(value);
    return !job->echo || !is_given(job, "suffix") || fr_job_is_word(suffix, "") ||
           fr_job_refuse(job, FR_USAGE, "%s and suffix exclude each other", key);
}

bool fr_job_take_suffix(fr_job *job, const char *key, const json_t *value) {
    if (!fr_is_json_text(value)) return fr_job_refuse(job, FR_USAGE, "%s must be a text", key);
    if (json_string_length(value)) job->suffix = value;
    return true;
}

/* Decides how many choices are generated. The number is n, or best_of if best_of is larger than n. If best_of is
 * larger, the answer shows only the n choices with the highest mean log-probability. */
bool fr_job_settle_choices(fr_job *job, bool streams) {
    size_t most = job->shown, n = job->each;
    job->shown = 0;
    job->scores = job->echo && job->best >= 0;
    if (most == 0 || most == n) return true;
    if (most < n) return fr_job_refuse(job, FR_USAGE, "best_of %zu is less than n %zu", most, n);
    if (streams) return fr_job_refuse(job, FR_USAGE, "best_of can't be streamed: the best is known at the end");
    job->shown = n;
    job->each = most;
    if (job->best >= 0) return true;
    job->hides_logprobs = true;
    job->best = 0;
    return fr_job_check(job, fr_options_set(job->options, FR_OPT_LOGPROBS, 0));
}

bool fr_job_move_seed(fr_job *job, size_t by) {
    int64_t seed = 0;
    fr_options_get(job->options, FR_OPT_SEED, &seed);
    int64_t moved = (int64_t)(((uint64_t)seed + by) & INT64_MAX);
    if (job->seed >= 0) job->seed = moved;
    return fr_job_check(job, fr_options_set(job->options, FR_OPT_SEED, moved));
}

/* ---------------------------------------------------------------------------------------------------------- choices */

json_t *fr_job_whole_choice(fr_job *job, const fr_reply *echoed, size_t index, double *likely) {
    const fr_reply *reply = &job->reply;
    *likely = 0;
    for (size_t i = 0; i < reply->kept && reply->logprobs; i++)
        *likely += (double)reply->logprobs[i * (reply->best + 1)].value / (double)reply->kept;
    json_t *whole = fr_job_choice(job, index);
    if (job->hides_logprobs) fr_json_put(whole, "logprobs", json_null());
    if (job->echo) fr_job_echo_put(job, echoed, whole);
    return whole;
}

size_t fr_job_nth_likeliest(const double *likely, size_t count, size_t nth) {
    for (size_t i = 0; i < count; i++) {
        size_t before = 0;
        for (size_t other = 0; other < count; other++)
            before += likely[other] > likely[i] || (likely[other] == likely[i] && other < i);
        if (before == nth) return i;
    }
    return 0; /* reached if a mean log-probability is NaN, because then no comparison is true */
}

/* ------------------------------------------------------------------------------------------------ choices of a line */

/* The choices of a line that have ended so far. */
struct fr_job_ended {
    json_t *wholes[FR_CHOICES_MAX];
    double likely[FR_CHOICES_MAX];
    /* count: number of choices that have ended. ids: number of ids that these choices have together */
    size_t count, ids;
    fr_figures figures; /* sums of the figures of the choices that have ended */
};

static void add_choice(fr_job *job) {
    struct fr_job_ended *ended = job->choices;
    if (!ended) {
        job->choices = ended = fr_resize(NULL, 1, sizeof *ended);
        *ended = (struct fr_job_ended){0};
    }
    ended->wholes[ended->count] = fr_job_whole_choice(job, &job->echoed, ended->count, &ended->likely[ended->count]);
    ended->count++;
    ended->ids += job->reply.kept;
}

/* Adds up the figures of all choices. All choices have the same prompt, so it is counted only once, from the first
 * choice. */
fr_figures fr_job_choices_figures(const fr_job *job) {
    fr_figures figures = fr_job_figures(job);
    const struct fr_job_ended *ended = job->choices;
    double prompt = figures.of[FR_STAT_PROMPT_TOKENS], reused = figures.of[FR_STAT_REUSED_TOKENS];
    if (!ended || ended->count == 0) return figures;
    figures = fr_figures_plus(figures, &ended->figures);
    figures.of[FR_STAT_PROMPT_TOKENS] -= prompt;
    figures.of[FR_STAT_REUSED_TOKENS] -= reused;
    return figures;
}

bool fr_job_keep_choice(fr_job *job) {
    size_t ended = job->choices ? job->choices->count : 0;
    if (job->error[0] || job->reply.end == FR_END_INTERRUPT || ended + 1 >= job->each) return false;
    fr_figures figures = fr_job_choices_figures(job);
    add_choice(job);
    job->choices->figures = figures;
    return true;
}

json_t *fr_job_choices(fr_job *job, size_t *ids) {
    json_t *choices = json_array();
    add_choice(job);
    const struct fr_job_ended *ended = job->choices;
    for (size_t i = 0; i < (job->shown ? job->shown : ended->count); i++) {
        json_t *whole = ended->wholes[job->shown ? fr_job_nth_likeliest(ended->likely, ended->count, i) : i];
        fr_json_put(whole, "index", json_integer((json_int_t)i));
        json_array_append(choices, whole);
    }
    *ids = ended->ids;
    return choices;
}

void fr_job_drop_choices(fr_job *job) {
    for (size_t i = 0; job->choices && i < job->choices->count; i++) json_decref(job->choices->wholes[i]);
    free(job->choices);
    job->choices = NULL;
}
