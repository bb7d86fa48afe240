/* Writes options as JSON, in the form that a request would have (settings.h). */
#include "tools/serve/settings.h"

#include <stdlib.h>
#include <string.h>

#include "forerun_lab.h"
#include "tools/jobs/job_parts.h"

static int64_t whole_of(const fr_options *options, fr_option option) {
    int64_t value = 0;
    fr_options_get(options, option, &value);
    return value;
}

/* Gives an option's text, which the caller frees. *length does not count the NUL at its end. */
static char *text_of(const fr_options *options, fr_option option, size_t *length) {
    fr_options_get_text(options, option, NULL, 0, length);
    char *text = fr_resize(NULL, *length + 1, 1);
    fr_options_get_text(options, option, text, *length + 1, length);
    return text;
}

/* Gives the sequence breakers of the DRY sampler. If none were set, gives the library's own. */
static json_t *breakers_of(const fr_options *options) {
    static const char usual[] = "\n\0:\0\"\0*";
    size_t length;
    char *given = text_of(options, FR_OPT_DRY_SEQUENCE_BREAKER, &length);
    const char *texts = length ? given : usual;
    size_t end = length ? length : sizeof usual - 1;
    json_t *breakers = json_array();
    for (size_t at = 0; at < end && strcmp(texts, "none") != 0; at += strlen(texts + at) + 1)
        json_array_append_new(breakers, fr_json_bytes(texts + at, strlen(texts + at)));
    free(given);
    return breakers;
}

/* Converts biases such as "5+1.5,7-inf" to [{"token", "bias"}, ...]. The bias of a banned token is false, as in a
 * request, because JSON has no infinite number. */
static json_t *biases_of(const fr_options *options) {
    size_t length;
    char *text = text_of(options, FR_OPT_LOGIT_BIAS, &length), *at = text;
    json_t *biases = json_array();
    while (*at) {
        json_t *one = json_object();
        fr_json_put(one, "token", json_integer(strtol(at, &at, 10)));
        const char *bias = at;
        at += strcspn(at, ",");
        if (*at) *at++ = '\0';
        json_t *value = json_loads(*bias == '+' ? bias + 1 : bias, JSON_DECODE_ANY, NULL);
        fr_json_put(one, "bias", value ? value : json_false());
        json_array_append_new(biases, one);
    }
    free(text);
    return biases;
}

json_t *fr_settings_of_options(const fr_options *options) {
    json_t *settings = json_object(), *samplers = json_array();
    double p_min = 0;
    size_t length;
    const char *word;
    for (size_t i = 0; (word = fr_lab_sampler(options, i)); i++) json_array_append_new(samplers, json_string(word));
    fr_json_put(settings, "seed", json_integer(whole_of(options, FR_OPT_SEED)));
    fr_job_put_samplers(options, settings);
    fr_json_put(settings, "dry_sequence_breakers", breakers_of(options));
    fr_json_put(settings, "samplers", samplers);
    fr_json_put(settings, "logit_bias", biases_of(options));
    fr_json_put(settings, "ignore_eos", json_boolean(whole_of(options, FR_OPT_IGNORE_EOS) == 1));
    int64_t best = whole_of(options, FR_OPT_LOGPROBS);
    fr_json_put(settings, "n_probs", json_integer(best > 0 ? best : 0));
    char *types = text_of(options, FR_OPT_SPEC_TYPE, &length);
    fr_json_put(settings, "speculative.types", fr_json_bytes(types, length));
    free(types);
    fr_json_put(settings, "speculative.n_max", json_integer(whole_of(options, FR_OPT_DRAFT_MAX)));
    fr_json_put(settings, "speculative.n_min", json_integer(whole_of(options, FR_OPT_DRAFT_MIN)));
    fr_options_get_number(options, FR_OPT_DRAFT_P_MIN, &p_min);
    fr_json_put(settings, "speculative.p_min", json_real(p_min));
    return settings;
}

/* Gives the adapters that the job uses, in the form of a request's "lora". */
static json_t *adapters_of(const fr_job *job) {
    json_t *adapters = json_array();
    for (size_t i = 0; i < job->setting->loaded->adapters.count; i++)
        if (job->adapter_scales[i] != 0)
            json_array_append_new(adapters,
                                  json_pack("{s:I, s:f}", "id", (json_int_t)i, "scale", job->adapter_scales[i]));
    return adapters;
}

json_t *fr_settings_of_job(const fr_job *job) {
    json_t *settings = fr_settings_of_options(job->options), *stops = json_array();
    for (size_t i = 0; i < job->stop_count; i++)
        json_array_append_new(stops, fr_json_bytes(job->stops[i], strlen(job->stops[i])));
    fr_json_put(settings, "stop", stops);
    fr_json_put(settings, "lora", adapters_of(job));
    fr_json_put(settings, "max_tokens", json_integer(job->most));
    fr_json_put(settings, "n_predict", json_integer(job->most));
    return settings;
}
