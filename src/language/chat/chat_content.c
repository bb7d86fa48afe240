/* Reads the texts in a message's content, alone and joined (chat_content.h). */
#include "src/language/chat/chat_content.h"

#include <string.h>

#include "base/text_buffer.h"
#include "formats/json_wide.h"

bool fr_chat_is_role(const json_t *message, const char *role) {
    const char *own = json_string_value(json_object_get(message, "role"));
    return own && strcmp(own, role) == 0;
}

const json_t *fr_chat_text_of(const json_t *part) {
    static const char *const words[][2] = {
        {"text", "text"}, {"input_text", "text"}, {"output_text", "text"}, {"refusal", "refusal"}};
    const char *type = json_string_value(json_object_get(part, "type"));
    const json_t *text = fr_json_is_text(part) ? part : NULL;
    for (size_t i = 0; type && i < sizeof words / sizeof *words; i++)
        if (strcmp(type, words[i][0]) == 0) text = json_object_get(part, words[i][1]);
    return fr_json_is_text(text) ? text : NULL;
}

bool fr_chat_is_texts(const json_t *content) {
    for (size_t i = 0; i < json_array_size(content); i++)
        if (!fr_chat_text_of(json_array_get(content, i))) return false;
    return json_is_array(content);
}

json_t *fr_chat_plain_content(const json_t *content) {
    if (!fr_chat_is_texts(content)) return json_incref((json_t *)(uintptr_t)content);
    fr_text_buffer joined = {0};
    fr_text_append_string(&joined, "");
    for (size_t i = 0; i < json_array_size(content); i++) {
        const json_t *text = fr_chat_text_of(json_array_get(content, i));
        if (i > 0) fr_text_append_string(&joined, "\n");
        fr_text_append(&joined, json_string_value(text), json_string_length(text));
    }
    json_t *plain = joined.status == FR_OK ? json_stringn(joined.bytes, joined.length) : NULL;
    fr_text_free(&joined);
    return plain;
}

json_t *fr_chat_parted_content(json_t *text) {
    return json_pack("[{s:s, s:O}]", "type", "text", "text", text);
}
