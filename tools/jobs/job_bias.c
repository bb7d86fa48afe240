/* Reads "logit_bias" of a line or a request (job_parts.h): {"ID": bias, ...}, or llama.cpp's [[ID, bias | false], ...].
 * In a server's request a text may be given instead of an ID. Then the bias holds for each token of the text. */
#include <stdlib.h>
#include <string.h>

#include "tools/jobs/job_parts.h"

static bool add_id(fr_job *job, int64_t id, const json_t *bias) {
    char text[128];
    int64_t vocab = fr_model_fact(job->setting->loaded->model, FR_FACT_VOCAB);
    if (fr_job_is_served(job) && id >= vocab)
        return fr_job_refuse(job, FR_INPUT, "logit_bias: id %lld is outside the vocabulary of %lld", (long long)id,
                             (long long)vocab);
    if (json_is_false(bias))
        snprintf(text, sizeof text, "%lld-inf", (long long)id);
    else if (json_is_number(bias))
        snprintf(text, sizeof text, "%lld:%.9g", (long long)id, json_number_value(bias));
    else
        return fr_job_refuse(job, FR_USAGE, "logit_bias has a value that is not a number");
    return fr_job_check(job, fr_options_set_text(job->options, FR_OPT_LOGIT_BIAS, text));
}

/* Adds the bias for each token of a text. The text is tokenized without the tokens that the tokenizer puts at the
 * beginning of every text. */
static bool add_tokens(fr_job *job, const char *text, size_t length, const json_t *bias) {
    const fr_tokenizer *tokenizer = fr_model_tokenizer(job->setting->loaded->model);
    int32_t *ids;
    size_t count;
    if (!fr_job_check(job, fr_tokenize(tokenizer, text, length, false, false, &ids, &count))) return false;
    bool added = true;
    for (size_t i = 0; i < count && added; i++) added = add_id(job, ids[i], bias);
    fr_free(ids);
    return added;
}

static bool is_id(const char *text) {
    return *text && strspn(text, "0123456789") == strlen(text);
}

static bool add_word(fr_job *job, const char *word, const json_t *bias) {
    if (is_id(word) && strlen(word) > 10) return fr_job_refuse(job, FR_USAGE, "logit_bias: \"%.60s\" is no id", word);
    if (is_id(word)) return add_id(job, strtoll(word, NULL, 10), bias);
    if (fr_job_is_served(job)) return add_tokens(job, word, strlen(word), bias);
    return fr_job_refuse(job, FR_USAGE, "logit_bias: \"%.60s\" is no id", word);
}

static bool add_pair(fr_job *job, const char *key, size_t at, const json_t *pair) {
    const json_t *first = json_array_get(pair, 0), *bias = json_array_get(pair, 1);
    bool text = fr_job_is_served(job) && json_is_string(first);
    if (text) return add_tokens(job, json_string_value(first), json_string_length(first), bias);
    if (!fr_job_whole(first, 0, INT32_MAX)) return fr_job_refuse(job, FR_USAGE, "%s[%zu] has no id", key, at);
    return add_id(job, json_integer_value(first), bias);
}

bool fr_job_take_bias(fr_job *job, const char *key, const json_t *value) {
    const char *word;
    json_t *bias;
    json_object_foreach ((json_t *)(uintptr_t)value, word, bias)
        if (!add_word(job, word, bias)) return false;
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!add_pair(job, key, i, json_array_get(value, i))) return false;
    return json_is_object(value) || json_is_array(value) ||
           fr_job_refuse(job, FR_USAGE, "%s must be an object {\"ID\": number}", key);
}
