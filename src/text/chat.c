/* fr_chat_render: finds the family's template, checks what every template relies on. */
#include "src/text/chat.h"

#include <string.h>

#include "formats/error.h"
#include "formats/json.h"
#include "src/text/tokenizer.h"

typedef fr_status chat_renderer(const json_t *messages, const fr_chat_options *options, fr_text_buffer *out);

/* A family is recognised by two of its tokens: those that open and close a turn, say. */
static const struct {
    const char *open, *close, *begin;
    chat_renderer *render;
} families[] = {
    {"<|turn>", "<turn|>", "<bos>", fr_chat_gemma4},
    {"<|user|>", "[gMASK]", "", fr_chat_glm},
};

static fr_status check_messages(const json_t *messages) {
    if (!json_is_array(messages) || json_array_size(messages) == 0)
        return fr_fail(FR_INPUT, "messages: not a JSON array with at least one message");
    for (size_t i = 0; i < json_array_size(messages); i++) {
        if (!json_is_string(json_object_get(json_array_get(messages, i), "role")))
            return fr_fail(FR_INPUT, "messages[%zu] is not an object with a \"role\"", i);
    }
    return FR_OK;
}

static fr_status read_options(const json_t *json, fr_chat_options *options) {
    if (json && !json_is_object(json)) return fr_fail(FR_INPUT, "chat options: not a JSON object");
    FR_TRY(fr_json_bool(json, "add_generation_prompt", true, "chat options", &options->add_generation_prompt));
    FR_TRY(fr_json_bool(json, "enable_thinking", false, "chat options", &options->enable_thinking));
    FR_TRY(fr_json_bool(json, "pictures", false, "chat options", &options->pictures));
    options->thinking_given = json_object_get(json, "enable_thinking") != NULL;
    const json_t *tools = json_object_get(json, "tools");
    if (!tools || json_is_null(tools)) return FR_OK;
    if (!json_is_array(tools)) return fr_fail(FR_INPUT, "chat options: \"tools\" is not an array");
    if (json_array_size(tools) > 0) options->tools = tools;
    return FR_OK;
}

static fr_status render(const fr_tokenizer *tokenizer, const json_t *messages, const json_t *json,
                        fr_text_buffer *out) {
    fr_chat_options options = {0};
    FR_TRY(check_messages(messages));
    FR_TRY(read_options(json, &options));
    for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
        bool opens = fr_tokenizer_id(tokenizer, families[i].open) >= 0;
        if (!opens || fr_tokenizer_id(tokenizer, families[i].close) < 0) continue;
        options.begin = fr_tokenizer_begin(tokenizer) ? fr_tokenizer_begin(tokenizer) : families[i].begin;
        return families[i].render(messages, &options, out);
    }
    return fr_fail(FR_INPUT, "this model has no chat template that forerun knows");
}

fr_status fr_chat_render(const fr_tokenizer *tokenizer, const char *messages_json, const char *options_json,
                         char **text, size_t *length) {
    *text = NULL;
    *length = 0;
    if (!tokenizer) return fr_fail(FR_INPUT, "this model has no tokenizer, so no chat template");
    json_t *messages = NULL, *options = NULL;
    fr_text_buffer out = {0};
    fr_status status = fr_json_parse_texts(messages_json, strlen(messages_json), "messages", &messages);
    if (status == FR_OK && options_json)
        status = fr_json_parse_texts(options_json, strlen(options_json), "chat options", &options);
    if (status == FR_OK) status = render(tokenizer, messages, options, &out);
    if (status == FR_OK) status = fr_text_take(&out, "a chat", text, length);
    fr_text_free(&out);
    json_decref(messages);
    json_decref(options);
    return status;
}
