/* Messages as JSON, and from there through the model's template (conversation.h). */
#include "conversation.h"

#include <stdlib.h>
#include <string.h>

#include "output.h"

json_t *fr_conversation_new(const char *system) {
    json_t *messages = json_array();
    if (system) fr_conversation_add(messages, "system", system, strlen(system), 0);
    return messages;
}

/* [{"type": "image"}, ..., {"type": "text", "text": ...}] */
static json_t *behind_pictures(json_t *text, size_t pictures) {
    json_t *parts = json_array();
    for (size_t i = 0; i <= pictures; i++) {
        json_t *part = json_object();
        fr_json_put(part, "type", json_string(i < pictures ? "image" : "text"));
        if (i == pictures) fr_json_put(part, "text", text);
        json_array_append_new(parts, part);
    }
    return parts;
}

void fr_conversation_add(json_t *messages, const char *role, const char *bytes, size_t length, size_t pictures) {
    json_t *message = json_object(), *text = fr_json_bytes(bytes, length);
    fr_json_put(message, "role", json_string(role));
    fr_json_put(message, "content", pictures ? behind_pictures(text, pictures) : text);
    json_array_append_new(messages, message);
}

int fr_conversation_render(const json_t *messages, const fr_tokenizer *tokenizer, bool pictures, char **text,
                           size_t *length) {
    char *json = json_dumps(messages, JSON_COMPACT);
    if (!json) return fr_bad_input("out of memory: a conversation");
    fr_status status = fr_chat_render(tokenizer, json, pictures ? "{\"pictures\": true}" : NULL, text, length);
    free(json);
    return fr_exit_status(status);
}
