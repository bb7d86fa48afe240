/* Writes answers in the form of llama.cpp's own /completion (answer_parts.h). */
#include <string.h>

#include "tools/cli/words.h"
#include "tools/serve/answer_parts.h"
#include "tools/serve/settings.h"

static void put_integer(json_t *object, const char *key, size_t value) {
    fr_json_put(object, key, json_integer((json_int_t)value));
}

/* Gives the word for the reason why a text ended. A text that was interrupted gets "limit", because llama.cpp's form
 * has no word for that. */
static const char *stop_type(const fr_job *job) {
    switch (job->reply.end) {
    case FR_END_EOS: return "eos";
    case FR_END_STOP: return "word";
    default: return "limit";
    }
}

/* Gives the prompt as text, including the control tokens that a template wrote. */
static json_t *prompt_of(const fr_job *job) {
    const fr_tokenizer *tokenizer = fr_model_tokenizer(job->setting->loaded->model);
    char *text = NULL;
    size_t length = 0;
    if (!tokenizer || fr_detokenize(tokenizer, job->prompt.ids, job->prompt.count, &text, &length) != FR_OK)
        return json_string("");
    json_t *prompt = fr_json_bytes(text, length);
    fr_free(text);
    return prompt;
}

static json_t *settings_of(const fr_telling *t) {
    json_t *settings = fr_settings_of_job(&t->choice->job);
    fr_json_put(settings, "stream", json_boolean(t->request->stream));
    fr_json_put(settings, "timings_per_token", json_boolean(t->request->timings_per_token));
    return settings;
}

static json_t *begin(const fr_telling *t, json_t *content, json_t *tokens, bool stop) {
    const fr_job *job = &t->choice->job;
    json_t *answer = json_object();
    put_integer(answer, "index", (size_t)(t->choice - t->request->choices));
    fr_json_put(answer, "content", content);
    fr_json_put(answer, "tokens", tokens);
    put_integer(answer, "id_slot", t->choice->slot);
    fr_json_put(answer, "stop", json_boolean(stop));
    put_integer(answer, "tokens_predicted", job->reply.kept);
    put_integer(answer, "tokens_evaluated", job->prompt.count);
    return answer;
}

/* Adds the members that only the end of a choice has. "truncated" is true if the context was full, or if the server was
 * stopped. The last step may give ids after the end of the reply. These ids do not count. */
static void put_end(const fr_telling *t, json_t *answer) {
    const fr_job *job = &t->choice->job;
    const char *fingerprint = t->request->setting->fingerprint, *stopped = job->text.stopped ? job->text.stopped : "";
    fr_end end = job->reply.end;
    bool broken = memchr(job->text.bytes ? job->text.bytes : "", '\n', job->text.length) != NULL;
    fr_json_put(answer, "model", fr_json_bytes(t->request->model, strlen(t->request->model)));
    if (fingerprint) fr_json_put(answer, "system_fingerprint", fr_json_bytes(fingerprint, strlen(fingerprint)));
    fr_json_put(answer, "generation_settings", settings_of(t));
    fr_json_put(answer, "prompt", prompt_of(job));
    fr_json_put(answer, "has_new_line", json_boolean(broken));
    fr_json_put(answer, "truncated", json_boolean(end == FR_END_CONTEXT || end == FR_END_INTERRUPT));
    fr_json_put(answer, "stop_type", json_string(stop_type(job)));
    fr_json_put(answer, "stopping_word", fr_json_bytes(stopped, strlen(stopped)));
    put_integer(answer, "tokens_cached", job->prompt.count + job->reply.kept);
    fr_json_put(answer, "timings", fr_timings_json(&t->timings));
}

static void put_probabilities(const fr_telling *t, json_t *answer, size_t ids) {
    json_t *all = t->ids < ids ? fr_reply_logprobs(&t->choice->job.reply, t->ids, ids) : NULL;
    if (all) fr_json_put(answer, "completion_probabilities", all);
}

/* Finds a member by a path, which is names with slashes between them. NULL: there is no such member. */
static json_t *member_at(json_t *object, const char *path) {
    const char *name;
    size_t length;
    while (object && (name = fr_next_word(&path, '/', &length))) {
        json_t *found = NULL;
        const char *key;
        json_t *value;
        json_object_foreach (object, key, value) {
            if (strlen(key) == length && memcmp(key, name, length) == 0) found = value;
        }
        object = found;
    }
    return object;
}

/* Keeps only the members that "response_fields" lists as paths. In the answer each of these members has its whole path
 * as its name. */
static json_t *chosen_of(const fr_telling *t, json_t *answer) {
    const json_t *fields = t->request->fields;
    if (!fields) return answer;
    json_t *chosen = json_object();
    for (size_t i = 0; i < json_array_size(fields); i++) {
        const char *path = json_string_value(json_array_get(fields, i));
        json_t *member = member_at(answer, path);
        if (member) fr_json_put(chosen, path, json_incref(member));
    }
    json_decref(answer);
    return chosen;
}

json_t *fr_native_whole(fr_telling *t) {
    const fr_job *job = &t->choice->job;
    size_t kept = job->reply.kept;
    json_t *tokens = fr_reply_ids(&job->reply, 0, t->request->return_tokens ? kept : 0);
    json_t *answer = begin(t, fr_json_bytes(job->text.bytes, job->text.length), tokens, true);
    put_end(t, answer);
    put_probabilities(t, answer, kept);
    return chosen_of(t, answer);
}

json_t *fr_native_end(fr_telling *t) {
    json_t *answer = begin(t, json_string(""), json_array(), true);
    put_end(t, answer);
    return chosen_of(t, answer);
}

json_t *fr_native_chunk(const fr_telling *t, json_t *content, size_t ids) {
    json_t *answer = begin(t, content, fr_reply_ids(&t->choice->job.reply, t->ids, ids), false);
    put_probabilities(t, answer, ids);
    return answer;
}
