/* Collects the times and counts of choices (answer_parts.h). */
#include "tools/serve/answer_parts.h"
#include "tools/serve/seconds.h"

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static size_t stat_of(const fr_job *job, fr_stat stat) {
    return (size_t)fr_session_stat(job->session, stat);
}

static size_t depth_stat_of(const fr_job *job, size_t depth, fr_depth_stat stat) {
    return (size_t)fr_session_depth_stat(job->session, depth, stat);
}

void fr_timings_take(fr_telling *telling) {
    fr_timings *t = &telling->timings;
    fr_choice *choice = telling->choice;
    const fr_job *job = &choice->job;
    if (!job->session) return;
    t->prompt = job->prompt.count;
    t->cached = smaller(stat_of(job, FR_STAT_REUSED_TOKENS), t->prompt);
    t->predicted = job->reply.kept;
    t->texts = 1;
    t->drafted = stat_of(job, FR_STAT_DRAFTED);
    t->accepted = stat_of(job, FR_STAT_ACCEPTED);
    for (size_t d = 0; d < FR_STEP_MAX - 1; d++) {
        t->depth[d].drafted = depth_stat_of(job, d, FR_DEPTH_DRAFTED);
        t->depth[d].accepted = depth_stat_of(job, d, FR_DEPTH_ACCEPTED);
    }
    if (choice->first == 0 && (job->reply.count > 0 || job->ended)) choice->first = fr_seconds();
    t->began = choice->began;
    t->first = choice->first;
    t->ended = fr_seconds();
}

static void add(fr_timings *sum, const fr_timings *one, bool same_prompt) {
    if (!same_prompt) {
        sum->prompt += one->prompt;
        sum->cached += one->cached;
    }
    sum->predicted += one->predicted;
    sum->texts += one->texts;
    sum->drafted += one->drafted;
    sum->accepted += one->accepted;
    for (size_t d = 0; d < FR_STEP_MAX - 1; d++) {
        sum->depth[d].drafted += one->depth[d].drafted;
        sum->depth[d].accepted += one->depth[d].accepted;
    }
    if (sum->began == 0 || one->began < sum->began) sum->began = one->began;
    if (sum->first == 0 || one->first < sum->first) sum->first = one->first;
    if (one->ended > sum->ended) sum->ended = one->ended;
}

/* Adds up the figures of a request's choices. The tokens of a prompt are counted only with the first choice of that
 * prompt. The other choices of the prompt come directly after its first choice. */
fr_timings fr_timings_of_request(const fr_generation_request *request) {
    fr_timings sum = {0};
    for (size_t i = 0; i < request->count; i++) {
        const fr_choice *choice = &request->choices[i];
        if (choice->telling) add(&sum, &choice->telling->timings, i > 0 && choice->prompt == choice[-1].prompt);
    }
    return sum;
}

static void put_rate(json_t *timings, size_t count, double seconds, const char *of_one, const char *of_second) {
    fr_json_put(timings, of_one, json_real(count ? 1e3 * seconds / (double)count : 0));
    fr_json_put(timings, of_second, json_real(count && seconds > 0 ? (double)count / seconds : 0));
}

static json_t *depths_of(const fr_timings *t) {
    json_t *depths = json_array();
    for (size_t d = 0; d < FR_STEP_MAX - 1 && t->depth[d].drafted > 0; d++) {
        json_t *depth = json_array();
        json_array_append_new(depth, json_integer((json_int_t)t->depth[d].drafted));
        json_array_append_new(depth, json_integer((json_int_t)t->depth[d].accepted));
        json_array_append_new(depths, depth);
    }
    return depths;
}

json_t *fr_timings_json(const fr_timings *t) {
    json_t *timings = json_object();
    double prompt = t->first > t->began ? t->first - t->began : 0;
    double predicted = t->ended > t->first ? t->ended - t->first : 0;
    fr_json_put(timings, "cache_n", json_integer((json_int_t)t->cached));
    fr_json_put(timings, "prompt_n", json_integer((json_int_t)(t->prompt - t->cached)));
    fr_json_put(timings, "prompt_ms", json_real(1e3 * prompt));
    put_rate(timings, t->prompt - t->cached, prompt, "prompt_per_token_ms", "prompt_per_second");
    fr_json_put(timings, "predicted_n", json_integer((json_int_t)t->predicted));
    fr_json_put(timings, "predicted_ms", json_real(1e3 * predicted));
    /* the first token of each text is not counted, because the prompt's forward gives it */
    size_t later = t->predicted > t->texts ? t->predicted - t->texts : 0;
    put_rate(timings, later, predicted, "predicted_per_token_ms", "predicted_per_second");
    if (t->drafted == 0) return timings;
    fr_json_put(timings, "draft_n", json_integer((json_int_t)t->drafted));
    fr_json_put(timings, "draft_n_accepted", json_integer((json_int_t)t->accepted));
    fr_json_put(timings, "draft_by_depth", depths_of(t));
    return timings;
}

json_t *fr_timings_usage(const fr_timings *t) {
    return fr_job_usage(t->prompt, t->cached, t->predicted);
}

json_t *fr_timings_progress(const fr_telling *telling) {
    const fr_timings *t = &telling->timings;
    size_t waiting = smaller(fr_session_waiting(telling->choice->job.session), t->prompt);
    json_t *progress = json_object();
    fr_json_put(progress, "total", json_integer((json_int_t)t->prompt));
    fr_json_put(progress, "cache", json_integer((json_int_t)t->cached));
    fr_json_put(progress, "processed", json_integer((json_int_t)(t->prompt - waiting)));
    fr_json_put(progress, "time_ms", json_integer((json_int_t)(1e3 * (fr_seconds() - t->began))));
    return progress;
}

json_t *fr_timings_so_far(const fr_telling *telling) {
    fr_timings t = telling->timings;
    size_t waiting = smaller(fr_session_waiting(telling->choice->job.session), t.prompt), ran = t.prompt - waiting;
    t.prompt = ran > t.cached ? ran : t.cached;
    /* until the first token comes, all time is counted as the prompt's */
    if (t.first == 0) t.first = t.ended = t.prompt > t.cached ? t.ended : t.began;
    return fr_timings_json(&t);
}
