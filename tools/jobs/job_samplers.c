/* Reads a job's sampling settings, which have the names of llama.cpp's server (job_parts.h). */
#include <string.h>

#include "tools/cli/wide_json.h"
#include "tools/jobs/job_parts.h"

static const struct {
    const char *key;
    fr_option option;
    bool whole;
} numbers[] = {
    {"temp", FR_OPT_TEMPERATURE, false},
#define FR_SAMPLER_NUMBER(id, key, low, high, usual, name, ...) {#key, FR_OPT_##id, false},
#define FR_SAMPLER_WHOLE(id, key, low, high, usual, name, ...)  {#key, FR_OPT_##id, true},
#include "samplers.def"
};
enum { NUMBERS = sizeof(numbers) / sizeof(*numbers) };

/* Gives the index of the numeric setting with this name. NUMBERS: there is no such setting. */
static size_t find_number(const char *key) {
    size_t i = 0;
    while (i < NUMBERS && strcmp(numbers[i].key, key) != 0) i++;
    return i;
}

static bool take_number(fr_job *job, const char *key, const json_t *value) {
    size_t i = find_number(key);
    fr_option option = numbers[i].option;
    bool whole = numbers[i].whole, fits = whole ? json_is_integer(value) : json_is_number(value);
    if (!fits) return fr_job_refuse(job, FR_USAGE, "%s must be a %snumber", key, whole ? "whole " : "");
    if (whole) return fr_job_check(job, fr_options_set(job->options, option, json_integer_value(value)));
    return fr_job_check(job, fr_options_set_number(job->options, option, json_number_value(value)));
}

static bool set_samplers(fr_job *job, const char *names) {
    return fr_job_check(job, fr_options_set_text(job->options, FR_OPT_SAMPLERS, names));
}

/* Reads the list of samplers. It is an array of names, or a text in which each letter means a sampler. */
static bool take_samplers(fr_job *job, const char *key, const json_t *value) {
    char names[256] = "";
    if (fr_job_plain_text(value)) return set_samplers(job, fr_job_plain_text(value));
    for (size_t i = 0; i < json_array_size(value); i++) {
        const char *name = fr_job_plain_text(json_array_get(value, i));
        size_t length = strlen(names);
        if (!name || strlen(name) + 2 > sizeof(names) - length)
            return fr_job_refuse(job, FR_USAGE, "%s must be names of samplers", key);
        snprintf(names + length, sizeof(names) - length, "%s%s", i ? ";" : "", name);
    }
    if (!json_is_array(value)) return fr_job_refuse(job, FR_USAGE, "%s must be an array of names, or letters", key);
    return set_samplers(job, names);
}

/* Reads the sequence breakers of the DRY sampler. They replace the default breakers. */
static bool take_breakers(fr_job *job, const char *key, const json_t *value) {
    fr_option option = FR_OPT_DRY_SEQUENCE_BREAKER;
    if (!json_is_array(value)) return fr_job_refuse(job, FR_USAGE, "%s must be an array of texts", key);
    if (!fr_job_check(job, fr_options_set_text(job->options, option, "none"))) return false;
    for (size_t i = 0; i < json_array_size(value); i++) {
        const char *text = fr_job_plain_text(json_array_get(value, i));
        if (!text) return fr_job_refuse(job, FR_USAGE, "%s must be an array of texts", key);
        if (!fr_job_check(job, fr_options_set_text(job->options, option, text))) return false;
    }
    return true;
}

/* Adds each numeric setting once. If an option has two names, the second name is used. */
void fr_job_put_samplers(const fr_options *options, json_t *object) {
    for (size_t i = 0; i < NUMBERS; i++) {
        int64_t whole = 0;
        double number = 0;
        if (i + 1 < NUMBERS && numbers[i + 1].option == numbers[i].option) continue;
        if (numbers[i].whole)
            fr_options_get(options, numbers[i].option, &whole);
        else
            fr_options_get_number(options, numbers[i].option, &number);
        fr_json_put(object, numbers[i].key, numbers[i].whole ? json_integer(whole) : json_real(number));
    }
}

fr_job_take_field *fr_job_sampler(const char *key) {
    if (strcmp(key, "samplers") == 0) return take_samplers;
    if (strcmp(key, "dry_sequence_breakers") == 0) return take_breakers;
    return find_number(key) < NUMBERS ? take_number : NULL;
}
