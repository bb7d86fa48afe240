/* Answers requests for tokens, rendered templates and properties (text_routes.h). */
#include "tools/serve/text_routes.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "forerun_lab.h"
#include "tools/cli/wide_json.h"
#include "tools/jobs/job_parts.h"
#include "tools/serve/answer.h"
#include "tools/serve/caps.h"
#include "tools/serve/settings.h"

json_t *fr_json_body(fr_http_exchange *exchange) {
    size_t length;
    json_error_t error = {.text = ""};
    const char *bytes = fr_http_exchange_body(exchange, &length);
    json_t *kept = fr_http_exchange_kept(exchange), *body = kept ? kept : fr_json_load(bytes, length, &error);
    if (json_is_object(body)) return body;
    if (body)
        fr_http_exchange_refuse(exchange, 400, "the body is no JSON object");
    else
        fr_http_exchange_refuse(exchange, 400, "the body is no JSON: %.120s", error.text);
    json_decref(body);
    return NULL;
}

/* Gives the model's tokenizer. NULL: the model has no tokenizer, and the exchange was refused. */
static const fr_tokenizer *tokenizer_of(fr_http_exchange *exchange, const fr_model_instance *model) {
    const fr_tokenizer *tokenizer = fr_model_tokenizer(model->loaded.model);
    if (!tokenizer) fr_http_exchange_refuse(exchange, 501, "the model has no tokenizer: only ids can be run");
    return tokenizer;
}

/* --------------------------------------------------------------------------------------------------------- tokenize */

/* Gives a token's text. If its bytes are not valid UTF-8, gives an array of the bytes. */
static json_t *piece_of(const fr_tokenizer *tokenizer, int32_t id) {
    size_t length;
    const char *bytes = fr_token_bytes(tokenizer, id, &length);
    json_t *text = bytes ? json_stringn(bytes, length) : json_string("");
    return text ? text : fr_json_byte_numbers(bytes, length);
}

/* Reads an optional member that must be true or false. If it has another type, the exchange is refused, and the
 * function returns false. */
static bool take_flag(fr_http_exchange *exchange, const json_t *body, const char *key, bool *flag) {
    const json_t *value = json_object_get(body, key);
    if (json_is_boolean(value))
        *flag = json_is_true(value);
    else if (value && !json_is_null(value))
        fr_http_exchange_refuse(exchange, 400, "\"%s\" must be true or false", key);
    return !value || json_is_null(value) || json_is_boolean(value);
}

/* Tokenizes a text. In llama.cpp's form the text is in "content". In vLLM's form it is in "prompt". In vLLM's form the
 * tokens that begin a text are added, but the body can ask for the opposite. */
static void answer_tokens(fr_http_exchange *exchange, const fr_model_instance *model, const fr_tokenizer *tokenizer,
                          const json_t *body) {
    const json_t *content = json_object_get(body, "content"), *prompt = json_object_get(body, "prompt");
    bool vllm = !content && prompt, add = vllm, parse = true, pieces = false;
    if (vllm) content = prompt;
    int32_t *ids;
    size_t count;
    if (!take_flag(exchange, body, "add_special", &add) || !take_flag(exchange, body, "add_special_tokens", &add) ||
        !take_flag(exchange, body, "parse_special", &parse) || !take_flag(exchange, body, "with_pieces", &pieces))
        return;
    if (!json_is_string(content)) {
        fr_http_exchange_refuse(exchange, 400, content ? "\"content\" must be a text" : "\"content\" is missing");
        return;
    }
    fr_status status =
        fr_tokenize(tokenizer, json_string_value(content), json_string_length(content), add, parse, &ids, &count);
    if (status != FR_OK) {
        fr_http_exchange_refuse(exchange, 500, "%s", fr_last_error());
        return;
    }
    json_t *tokens = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *id = json_integer(ids[i]);
        json_array_append_new(tokens,
                              pieces ? json_pack("{s:o, s:o}", "id", id, "piece", piece_of(tokenizer, ids[i])) : id);
    }
    fr_free(ids);
    json_t *answer = json_pack("{s:o}", "tokens", tokens);
    if (vllm) fr_json_put(answer, "count", json_integer((json_int_t)count));
    if (vllm) fr_json_put(answer, "max_model_len", json_integer((json_int_t)model->jobs.context));
    fr_http_exchange_answer_json(exchange, 200, answer);
}

void fr_text_routes_tokenize(fr_http_exchange *exchange, const fr_model_instance *model) {
    const fr_tokenizer *tokenizer = tokenizer_of(exchange, model);
    json_t *body = tokenizer ? fr_json_body(exchange) : NULL;
    if (body) answer_tokens(exchange, model, tokenizer, body);
    json_decref(body);
}

static void answer_text(fr_http_exchange *exchange, const fr_tokenizer *tokenizer, const json_t *tokens) {
    size_t count = json_array_size(tokens), good = 0, length = 0;
    int32_t *ids = fr_resize(NULL, count, sizeof *ids);
    for (; good < count && fr_job_whole(json_array_get(tokens, good), 0, INT32_MAX); good++)
        ids[good] = (int32_t)json_integer_value(json_array_get(tokens, good));
    char *text = NULL;
    if (!json_is_array(tokens))
        fr_http_exchange_refuse(exchange, 400, "\"tokens\" must be an array of ids");
    else if (good < count)
        fr_http_exchange_refuse(exchange, 400, "\"tokens\"[%zu] is no id", good);
    else if (fr_detokenize(tokenizer, ids, count, &text, &length) != FR_OK)
        fr_http_exchange_refuse(exchange, 400, "%s", fr_last_error());
    else
        fr_http_exchange_answer_json(
            exchange, 200,
            json_pack("{s:o, s:o}", "content", fr_json_bytes(text, length), "prompt", fr_json_bytes(text, length)));
    fr_free(text);
    free(ids);
}

void fr_text_routes_detokenize(fr_http_exchange *exchange, const fr_model_instance *model) {
    const fr_tokenizer *tokenizer = tokenizer_of(exchange, model);
    json_t *body = tokenizer ? fr_json_body(exchange) : NULL;
    if (body) answer_text(exchange, tokenizer, json_object_get(body, "tokens"));
    json_decref(body);
}

/* --------------------------------------------------------------------------------------------------------- template */

/* Renders the conversation in the same way as a chat with this body would. */
void fr_text_routes_apply_template(fr_http_exchange *exchange, const fr_model_instance *model) {
    json_t *body = fr_json_body(exchange);
    fr_job_setting setting = model->jobs;
    if (!body) return;
    setting.context = 0; /* the context is no limit here, because the prompt is not run */
    fr_generation_request *request = fr_generation_request_read(exchange, &setting, FR_JOB_CHAT, body);
    const fr_marked_text *prompt = request->count ? &request->choices[0].job.prompt.rendered : NULL;
    if (!prompt || !prompt->text)
        fr_answer_refuse(request);
    else
        fr_http_exchange_answer_json(exchange, 200,
                                     json_pack("{s:o}", "prompt", fr_json_bytes(prompt->text, prompt->length)));
    fr_generation_request_free(request);
}

/* ------------------------------------------------------------------------------------------------------------ props */

static json_t *token_text(const fr_tokenizer *tokenizer, int32_t id) {
    size_t length;
    const char *text = id < 0 ? NULL : fr_token_text(tokenizer, id, &length);
    return text ? fr_json_bytes(text, length) : json_string("");
}

/* Describes the tokenizer in vLLM's form, which lm-eval uses. */
void fr_text_routes_tokenizer_info(fr_http_exchange *exchange, const fr_model_instance *model) {
    const fr_tokenizer *tokenizer = tokenizer_of(exchange, model);
    size_t length;
    if (!tokenizer) return;
    const char *template = fr_chat_template_text(tokenizer, &length);
    int32_t bos = fr_tokenizer_bos(tokenizer), eos = fr_tokenizer_eos(tokenizer);
    json_t *info = json_pack("{s:s}", "tokenizer_class", "forerun");
    fr_json_put(info, "bos_token", bos < 0 ? json_null() : token_text(tokenizer, bos));
    fr_json_put(info, "eos_token", eos < 0 ? json_null() : token_text(tokenizer, eos));
    fr_json_put(info, "chat_template", template ? fr_json_bytes(template, length) : json_null());
    fr_http_exchange_answer_json(exchange, 200, info);
}

static json_t *settings_of(const fr_model_instance *model) {
    const fr_arguments *args = model->args;
    json_t *params = fr_settings_of_options(model->loaded.options);
    if (!args->given[FR_ARG_SEED] || args->seed_drawn) fr_json_put(params, "seed", json_integer(-1));
    fr_json_put(params, "n_predict", json_integer(args->number[FR_ARG_PREDICT]));
    return json_pack("{s:I, s:o}", "n_ctx", (json_int_t)model->jobs.context, "params", params);
}

void fr_text_routes_props(fr_http_exchange *exchange, const fr_model_instance *model) {
    const fr_tokenizer *tokenizer = fr_model_tokenizer(model->loaded.model);
    size_t length;
    const char *template = fr_chat_template_text(tokenizer, &length);
    bool sees = fr_model_fact(model->loaded.model, FR_FACT_IMAGE_TOKEN) >= 0;
    json_t *props = json_object();
    fr_json_put(props, "default_generation_settings", settings_of(model));
    fr_json_put(props, "total_slots", json_integer((json_int_t)model->slots));
    fr_json_put(props, "model_alias", fr_json_bytes(model->name, strlen(model->name)));
    fr_json_put(props, "model_ftype", json_string(fr_lab_model_type(model->loaded.model)));
    fr_json_put(props, "model_path", fr_json_bytes(model->path, strlen(model->path)));
    fr_json_put(props, "modalities", json_pack("{s:b, s:b, s:b}", "vision", sees, "video", 0, "audio", 0));
    fr_json_put(props, "media_marker", json_string(FR_JOB_MEDIA_MARK));
    fr_json_put(props, "endpoint_slots", json_boolean(model->args->given[FR_ARG_SLOTS]));
    fr_json_put(props, "endpoint_props", json_false());
    fr_json_put(props, "endpoint_metrics", json_boolean(model->args->given[FR_ARG_METRICS]));
    fr_json_put(props, "chat_template", template ? fr_json_bytes(template, length) : json_string(""));
    fr_json_put(props, "chat_template_caps", template ? fr_caps_of(tokenizer) : json_object());
    fr_json_put(props, "bos_token", token_text(tokenizer, fr_tokenizer_bos(tokenizer)));
    fr_json_put(props, "eos_token", token_text(tokenizer, fr_tokenizer_eos(tokenizer)));
    fr_json_put(props, "build_info", json_sprintf("forerun %s", fr_version()));
    fr_json_put(props, "system_fingerprint", json_string(model->fingerprint));
    fr_json_put(props, "is_sleeping", json_false());
    fr_http_exchange_answer_json(exchange, 200, props);
}
