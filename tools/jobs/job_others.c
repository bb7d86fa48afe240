/* Reads fields that other services have and that forerun's own form lacks or names differently (job_parts.h). They are
 * fields of vLLM, and the fields with which DeepSeek, Qwen and OpenRouter switch reasoning off. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/wide_json.h"
#include "tools/jobs/job_parts.h"

/* --------------------------------------------------------------------------------------------------------- grammars */

static void put_quoted(FILE *out, const char *text, size_t length) {
    fputc('"', out);
    for (size_t i = 0; i < length; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < ' ' || c == 0x7f)
            fprintf(out, "\\x%02x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

/* Turns a list of texts into a grammar that allows exactly one of them. */
bool fr_job_take_guided_choice(fr_job *job, const char *key, const json_t *value) {
    char *rules = NULL;
    size_t length = 0, count = json_array_size(value), texts = 0;
    while (texts < count && json_string_length(json_array_get(value, texts))) texts++;
    if (count == 0 || texts < count)
        return fr_job_refuse(job, FR_USAGE, "%s must be an array of texts that are not empty", key);
    FILE *out = open_memstream(&rules, &length);
    if (!out) return fr_job_refuse(job, FR_MEMORY, "out of memory: %s", key);
    for (size_t i = 0; i < count; i++) {
        const json_t *text = json_array_get(value, i);
        fputs(i ? " | " : "root ::= ", out);
        put_quoted(out, json_string_value(text), json_string_length(text));
    }
    fclose(out);
    json_t *grammar = json_stringn(rules, length);
    free(rules);
    bool taken = fr_job_take_grammar(job, key, grammar);
    json_decref(grammar);
    return taken;
}

/* Reads a JSON schema. Some clients send the schema as a string that contains JSON. */
bool fr_job_take_guided_json(fr_job *job, const char *key, const json_t *value) {
    json_error_t error;
    json_t *read =
        json_is_string(value) ? fr_json_load(json_string_value(value), json_string_length(value), &error) : NULL;
    if (json_is_string(value) && !read) return fr_job_refuse(job, FR_USAGE, "%s is no schema: %.120s", key, error.text);
    bool taken = fr_job_take_json_schema(job, key, read ? read : value);
    json_decref(read);
    return taken;
}

static bool take_guided_object(fr_job *job, const char *key, const json_t *value) {
    if (!json_is_boolean(value)) return fr_job_refuse(job, FR_USAGE, "%s must be true or false", key);
    if (json_is_false(value)) return true;
    json_t *format = json_pack("{s:s}", "type", "json_object");
    bool taken = fr_job_take_response_format(job, key, format);
    json_decref(format);
    return taken;
}

/* Reads vLLM's "structured_outputs". Its only member names the kind of restriction, such as {"json": SCHEMA}. Options
 * about vLLM's backend are ignored. */
bool fr_job_take_structured_outputs(fr_job *job, const char *key, const json_t *value) {
    static const struct {
        const char *key;
        fr_job_take_field *take;
    } kinds[] = {{"json", fr_job_take_guided_json},
                 {"regex", fr_job_take_regex},
                 {"choice", fr_job_take_guided_choice},
                 {"grammar", fr_job_take_grammar},
                 {"json_object", take_guided_object}};
    const json_t *tags = json_object_get(value, "structural_tag");
    if (!json_is_object(value)) return fr_job_refuse(job, FR_USAGE, "%s must be an object", key);
    if (tags && !json_is_null(tags)) return fr_job_unbuilt(job, "structural_tag");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const json_t *one = json_object_get(value, kinds[i].key);
        if (one && !json_is_null(one) && !kinds[i].take(job, kinds[i].key, one)) return false;
    }
    return true;
}

/* ----------------------------------------------------------------------------------------------------------- tokens */

/* Reads vLLM's repetition penalty. It covers all tokens, including the tokens of the prompt. If the request also has
 * llama.cpp's "repeat_last_n", the penalty covers only that many of the last tokens. */
bool fr_job_take_repetition(fr_job *job, const char *key, const json_t *value) {
    const json_t *last = json_object_get(job->request, "repeat_last_n");
    if (!json_is_number(value)) return fr_job_refuse(job, FR_USAGE, "%s must be a number", key);
    if (!fr_job_check(job, fr_options_set_number(job->options, FR_OPT_REPEAT_PENALTY, json_number_value(value))))
        return false;
    return (last && !json_is_null(last)) || fr_job_check(job, fr_options_set(job->options, FR_OPT_REPEAT_LAST_N, -1));
}

bool fr_job_take_stop_ids(fr_job *job, const char *key, const json_t *value) {
    size_t count = json_array_size(value);
    if (!json_is_array(value) || count > FR_STOPS_MAX)
        return fr_job_refuse(job, FR_USAGE, "%s must be an array of %d ids at most", key, FR_STOPS_MAX);
    for (size_t i = 0; i < count; i++) {
        const json_t *id = json_array_get(value, i);
        if (!fr_job_whole(id, 0, INT32_MAX)) return fr_job_refuse(job, FR_USAGE, "%s[%zu] is no id", key, i);
        job->stop_ids[i] = (int32_t)json_integer_value(id);
    }
    job->stop_id_count = count;
    return true;
}

bool fr_job_take_keep_stop(fr_job *job, const char *key, const json_t *value) {
    if (!json_is_boolean(value)) return fr_job_refuse(job, FR_USAGE, "%s must be true or false", key);
    job->keeps_stop = json_is_true(value);
    return true;
}

bool fr_job_take_least(fr_job *job, const char *key, const json_t *value) {
    if (!fr_job_whole(value, 0, INT32_MAX))
        return fr_job_refuse(job, FR_USAGE, "%s must be a whole number from 0 to %d", key, INT32_MAX);
    job->least = (size_t)json_integer_value(value);
    return true;
}

/* ------------------------------------------------------------------------------------------ least number of tokens */

/* Forbids the ids that would end the reply, as long as the reply is too short. This function is a mask of the job's
 * session. */
static fr_status hold_end_back(void *context, const int32_t *ids, size_t length, float *logits, size_t vocab) {
    const fr_job *job = context;
    const int32_t *eos;
    (void)ids;
    if (length >= job->prompt.count + job->least) return FR_OK;
    size_t count = fr_model_eos(job->setting->loaded->model, &eos);
    for (size_t i = 0; i < count; i++)
        if ((size_t)eos[i] < vocab) logits[eos[i]] = -INFINITY;
    for (size_t i = 0; i < job->stop_id_count; i++)
        if ((size_t)job->stop_ids[i] < vocab) logits[job->stop_ids[i]] = -INFINITY;
    return FR_OK;
}

bool fr_job_check_least(fr_job *job) {
    bool other = job->grammar || job->budget;
    return !job->least || !other ||
           fr_job_refuse(job, FR_USAGE, "min_tokens goes neither with a grammar nor with a budget of reasoning");
}

fr_status fr_job_set_least(fr_job *job) {
    return job->least ? fr_session_set_mask(job->session, hold_end_back, job) : FR_OK;
}

fr_status fr_job_lift_least(const fr_job *job) {
    return job->least ? fr_session_set_mask(job->session, NULL, NULL) : FR_OK;
}

/* -------------------------------------------------------------------------------------------------------- reasoning */

/* Reads Qwen's "enable_thinking". Clients may send it as a member of the body instead of inside
 * "chat_template_kwargs". */
bool fr_job_take_enable_thinking(fr_job *job, const char *key, const json_t *value) {
    if (!json_is_boolean(value)) return fr_job_refuse(job, FR_USAGE, "%s must be true or false", key);
    fr_json_put(job->settings, "enable_thinking", json_incref((json_t *)(uintptr_t)value));
    return true;
}

/* Reads DeepSeek's and GLM's "thinking", which is {"type": "enabled"} or {"type": "disabled"}. */
bool fr_job_take_thinking(fr_job *job, const char *key, const json_t *value) {
    const json_t *type = json_object_get(value, "type");
    bool off = fr_job_is_word(type, "disabled");
    if (!off && !fr_job_is_word(type, "enabled") && !fr_job_is_word(type, "auto"))
        return fr_job_refuse(job, FR_USAGE, "%s must be of type enabled, disabled or auto", key);
    if (!fr_job_is_word(type, "auto")) fr_json_put(job->settings, "enable_thinking", json_boolean(!off));
    return true;
}

/* Reads OpenAI's "reasoning_effort", which some chat templates use. */
bool fr_job_take_effort(fr_job *job, const char *key, const json_t *value) {
    if (!json_is_string(value)) return fr_job_refuse(job, FR_USAGE, "%s must be a text", key);
    if (fr_job_is_word(value, "none"))
        fr_json_put(job->settings, "enable_thinking", json_false());
    else
        fr_json_put(job->settings, key, json_incref((json_t *)(uintptr_t)value));
    return true;
}

/* Reads OpenRouter's "reasoning": {"enabled", "effort", "max_tokens"}. Its fields about showing the reasoning are
 * ignored. */
bool fr_job_take_reasoning(fr_job *job, const char *key, const json_t *value) {
    static const struct {
        const char *inner, *own;
        fr_job_take_field *take;
    } members[] = {{"enabled", "enable_thinking", fr_job_take_enable_thinking},
                   {"effort", "reasoning_effort", fr_job_take_effort},
                   {"max_tokens", "reasoning_budget", fr_job_take_budget}};
    if (!json_is_object(value)) return fr_job_refuse(job, FR_USAGE, "%s must be an object", key);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        const json_t *one = json_object_get(value, members[i].inner);
        if (one && !json_is_null(one) && !members[i].take(job, members[i].own, one)) return false;
    }
    return true;
}
