/* Reads the fields of a line or a request into options of its session (job_parts.h). */
#include <string.h>

#include "tools/cli/wide_json.h"
#include "tools/jobs/job_parts.h"

bool fr_job_take_count(fr_job *job, const char *key, const json_t *value) {
    if (!fr_job_whole(value, -1, INT32_MAX))
        return fr_job_refuse(job, FR_USAGE, "%s must be a whole number of ids up to %d, or -1", key, INT32_MAX);
    job->most = json_integer_value(value);
    return true;
}

bool fr_job_take_seed(fr_job *job, const char *key, const json_t *value) {
    json_int_t seed = json_integer_value(value);
    if (!json_is_integer(value)) return fr_job_refuse(job, FR_USAGE, "%s must be a whole number", key);
    if (seed == -1) seed = job->seed = fr_draw_seed();
    return fr_job_check(job, fr_options_set(job->options, FR_OPT_SEED, seed));
}

bool fr_job_take_switch(fr_job *job, const char *key, const json_t *value) {
    if (!json_is_boolean(value)) return fr_job_refuse(job, FR_USAGE, "%s must be true or false", key);
    job->ignore_eos = json_is_true(value);
    return fr_job_check(job, fr_options_set(job->options, FR_OPT_IGNORE_EOS, job->ignore_eos));
}

static bool take_stop(fr_job *job, const char *key, const json_t *value) {
    const char *text = json_string_value(value);
    if (!text) return fr_job_refuse(job, FR_USAGE, "%s must be texts", key);
    if (json_string_length(value) == 0) return true; /* "" means no stop string; some clients send it */
    if (strlen(text) != json_string_length(value)) return fr_job_refuse(job, FR_USAGE, "%s has a NUL in it", key);
    if (job->stop_count == FR_STOPS_MAX) return fr_job_refuse(job, FR_USAGE, "%s may have %d texts", key, FR_STOPS_MAX);
    job->stops[job->stop_count++] = text;
    return true;
}

bool fr_job_take_stops(fr_job *job, const char *key, const json_t *value) {
    job->stop_count = 0;
    if (!json_is_array(value)) return take_stop(job, key, value);
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!take_stop(job, key, json_array_get(value, i))) return false;
    return true;
}

bool fr_job_take_images(fr_job *job, const char *key, const json_t *value) {
    size_t count = json_array_size(value);
    if (!json_is_array(value) || count > FR_IMAGES_MAX)
        return fr_job_refuse(job, FR_USAGE, "%s must be an array of %d paths at most", key, FR_IMAGES_MAX);
    for (size_t i = 0; i < count; i++) {
        const char *path = json_string_value(json_array_get(value, i));
        if (!path) return fr_job_refuse(job, FR_USAGE, "%s must be an array of paths", key);
        if (!fr_job_check(job, fr_picture_open(path, job->setting->loaded->model, &job->pictures[i]))) return false;
        job->picture_count++;
    }
    return true;
}

/* Reads the tools, which the chat template renders. */
bool fr_job_take_tools(fr_job *job, const char *key, const json_t *value) {
    if (!json_is_array(value)) return fr_job_refuse(job, FR_USAGE, "%s must be an array of tools", key);
    fr_json_put(job->settings, "tools", json_incref((json_t *)(uintptr_t)value));
    return true;
}

bool fr_job_take_logprobs(fr_job *job, const char *key, const json_t *value) {
    if (!fr_job_whole(value, 0, FR_LOGPROBS_MAX))
        return fr_job_refuse(job, FR_USAGE, "%s must be a whole number from 0 to %d", key, FR_LOGPROBS_MAX);
    job->best = json_integer_value(value);
    return fr_job_check(job, fr_options_set(job->options, FR_OPT_LOGPROBS, job->best));
}

bool fr_job_take_later(fr_job *job, const char *key, const json_t *value) {
    (void)job;
    (void)key;
    (void)value;
    return true;
}

bool fr_job_take_fields(fr_job *job) {
    static const struct {
        const char *key;
        fr_job_take_field *take;
    } fields[] = {{"id", fr_job_take_later},
                  {"prompt", fr_job_take_later},
                  {"ids", fr_job_take_later},
                  {"messages", fr_job_take_later},
                  {"n", fr_job_take_count},
                  {"seed", fr_job_take_seed},
                  {"stop", fr_job_take_stops},
                  {"images", fr_job_take_images},
                  {"tools", fr_job_take_tools},
                  {"ignore_eos", fr_job_take_switch},
                  {"logprobs", fr_job_take_logprobs},
                  {"logit_bias", fr_job_take_bias},
                  {"grammar", fr_job_take_grammar},
                  {"regex", fr_job_take_regex},
                  {"json_schema", fr_job_take_json_schema}};
    const char *key;
    json_t *value;
    json_object_foreach (job->line, key, value) {
        size_t i = 0, count = sizeof(fields) / sizeof(*fields);
        while (i < count && strcmp(fields[i].key, key) != 0) i++;
        bool rendered = strcmp(key, "messages") == 0 || strcmp(key, "tools") == 0;
        if (!rendered && fr_json_has_wide(value))
            return fr_job_refuse(job, FR_INPUT, "no JSON that can be read: too big integer");
        fr_job_take_field *take = i < count ? fields[i].take : fr_job_sampler(key);
        if (!take)
            return fr_job_refuse(job, FR_USAGE,
                                 "\"%.60s\" is not known (id; prompt, ids or messages; n temp top_k "
                                 "top_p min_p seed stop ignore_eos logprobs logit_bias images tools grammar "
                                 "json_schema regex; samplers' settings: forerun batch --help)",
                                 key);
        if (!take(job, key, value)) return false;
    }
    return true;
}
