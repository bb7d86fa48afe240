/* Implements forerun template: renders messages with the chat template, as text or as ids. */
#include <stdlib.h>
#include <string.h>

#include "tools/cli/chat_settings.h"
#include "tools/cli/conversation.h"
#include "tools/cli/loaded.h"
#include "tools/cli/output.h"
#include "tools/cli/verbs.h"
#include "tools/cli/wide_json.h"

static int read_messages(const char *path, json_t **messages) {
    int code = fr_json_read_file(path, messages);
    if (code) return code;
    if (json_array_size(*messages) == 0) return fr_bad_input("%s: not a JSON array with at least one message", path);
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

int fr_verb_template(const fr_arguments *args) {
    fr_tokenizer *tokenizer = NULL;
    fr_marked_text text = {0};
    json_t *messages = NULL, *tools = NULL;
    int code = read_messages(args->text[FR_ARG_MESSAGES], &messages);
    if (!code) code = fr_chat_tools(args, &tools);
    if (!code) code = fr_loaded_tokenizer_alone(&tokenizer, args);
    json_t *settings = fr_chat_settings(args, tools, false);
    /* A system message at a wrong place is not moved. The template's error is reported instead, because the user can
     * correct the file */
    if (!json_object_get(settings, "late_systems")) fr_json_put(settings, "late_systems", json_false());
    if (!code && !args->given[FR_ARG_QUIET] && fr_chat_note(tokenizer, false))
        fr_note("%s", fr_chat_note(tokenizer, false));
    if (!code) code = fr_exit_status(fr_conversation_render(messages, tokenizer, settings, &text));
    if (!code) fr_conversation_note_changes(tokenizer, args->given[FR_ARG_QUIET]);
    const char *form = args->text[FR_ARG_TEMPLATE_OUTPUT];
    if (!code && form && strcmp(form, "ids") == 0)
        code = print_ids(tokenizer, &text, args->given[FR_ARG_PARSE_SPECIAL]);
    else if (!code) {
        fwrite(text.text, 1, text.length, stdout);
        fr_flush_output();
    }
    json_decref(messages);
    json_decref(tools);
    json_decref(settings);
    fr_marked_text_free(&text);
    fr_tokenizer_close(tokenizer);
    return code;
}
