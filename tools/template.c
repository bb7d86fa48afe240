/* forerun template: messages in, what the chat template makes of them out, as text or as ids. */
#include <stdlib.h>
#include <string.h>

#include "chat_settings.h"
#include "conversation.h"
#include "loaded.h"
#include "output.h"
#include "verbs.h"
#include "wide_json.h"

static int read_json(const char *path, json_t **value) {
    json_error_t error;
    fr_prompt file = {0};
    int code = fr_prompt_read_file(&file, path);
    *value = code ? NULL : fr_json_load(file.bytes ? file.bytes : "", file.length, &error);
    fr_prompt_free(&file);
    if (code) return code;
    return *value ? 0 : fr_bad_input("%s:%d: not JSON: %s", path, error.line, error.text);
}

static int add_tools(const fr_arguments *args, json_t *settings) {
    json_t *tools;
    if (!args->given[FR_ARG_TOOLS]) return 0;
    int code = read_json(args->text[FR_ARG_TOOLS], &tools);
    if (!code && !json_is_array(tools) && !json_is_null(tools)) {
        json_decref(tools);
        return fr_bad_input("%s: not a JSON array of tools", args->text[FR_ARG_TOOLS]);
    }
    if (!code) fr_json_put(settings, "tools", tools);
    return code;
}

static int read_messages(const char *path, json_t **messages) {
    int code = read_json(path, messages);
    if (code) return code;
    if (json_array_size(*messages) == 0)
        return fr_bad_input("%s: not a JSON array with at least one message", path);
    for (size_t i = 0; i < json_array_size(*messages); i++)
        if (!fr_is_json_text(json_object_get(json_array_get(*messages, i), "role")))
            return fr_bad_input("%s: [%zu] is not an object with a \"role\"", path, i);
    return 0;
}

static int print_ids(const fr_tokenizer *tokenizer, const fr_marked_text *text, bool parse_special) {
    int32_t *ids = NULL;
    size_t count = 0;
    fr_status status = fr_conversation_tokenize(text, tokenizer, parse_special, &ids, &count);
    if (status == FR_OK) fr_ids_print(ids, count, stdout);
    fr_free(ids);
    return fr_exit_status(status);
}

static int print(const fr_tokenizer *tokenizer, const fr_marked_text *text, const fr_arguments *args) {
    const char *form = args->text[FR_ARG_TEMPLATE_OUTPUT];
    if (form && strcmp(form, "ids") == 0) return print_ids(tokenizer, text, args->given[FR_ARG_PARSE_SPECIAL]);
    fwrite(text->text, 1, text->length, stdout);
    fr_flush_output();
    return 0;
}

static int open_tokenizer(const fr_arguments *args, fr_tokenizer **tokenizer) {
    fr_options *options = NULL;
    int code = fr_loaded_options(&options, args);
    if (!code) code = fr_loaded_tokenizer_alone(tokenizer, options, args);
    fr_options_free(options);
    return code;
}

int fr_verb_template(const fr_arguments *args) {
    fr_tokenizer *tokenizer = NULL;
    fr_marked_text text = {0};
    json_t *messages = NULL, *settings = fr_chat_settings(args, false);
    int code = read_messages(args->text[FR_ARG_MESSAGES], &messages);
    if (!code) code = add_tools(args, settings);
    if (!code) code = open_tokenizer(args, &tokenizer);
    if (!code && !args->given[FR_ARG_QUIET] && fr_chat_note(tokenizer, false))
        fr_note("%s", fr_chat_note(tokenizer, false));
    if (!code) code = fr_exit_status(fr_conversation_render(messages, tokenizer, settings, &text));
    if (!code) code = print(tokenizer, &text, args);
    json_decref(messages);
    json_decref(settings);
    fr_marked_text_free(&text);
    fr_tokenizer_close(tokenizer);
    return code;
}
