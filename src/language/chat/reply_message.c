/* Gathers the parts of a reply into a message (reply_message.h). */
#include "src/language/chat/reply_message.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sizes.h"
#include "base/unicode_form.h"
#include "formats/json.h"
#include "src/language/chat/reply_once.h"

#define REPLACEMENT "\xef\xbf\xbd"

/* Makes a JSON string of any bytes. Each incomplete character becomes one U+FFFD, however many bytes it has. NULL:
 * memory ran out. */
static json_t *string_of(const fr_text_buffer *text) {
    fr_text_buffer valid = {0};
    for (size_t at = 0; at < text->length;) {
        fr_character_bytes character = fr_first_character(text->bytes + at, text->length - at);
        if (character.there > 0 && character.there == character.whole)
            fr_text_append(&valid, text->bytes + at, character.whole);
        else
            fr_text_append_string(&valid, REPLACEMENT);
        at += fr_larger(character.there, 1);
    }
    json_t *string = valid.status == FR_OK ? json_stringn(valid.bytes ? valid.bytes : "", valid.length) : NULL;
    fr_text_free(&valid);
    return string;
}

static void add_call(fr_reply_message *m) {
    if (!m->cut) fr_arguments_once(&m->arguments);
    if (!m->calls) m->calls = json_array();
    json_t *call = json_pack("{s:o, s:s, s:{s:o, s:o}}", "id", string_of(&m->id), "type", "function", "function",
                             "name", string_of(&m->name), "arguments", string_of(&m->arguments));
    if (json_array_append_new(m->calls, call) != 0) m->lost = true;
}

void fr_reply_message_clear(fr_reply_message *message) {
    fr_text_free(&message->content);
    fr_text_free(&message->reasoning);
    fr_text_free(&message->id);
    fr_text_free(&message->name);
    fr_text_free(&message->arguments);
    json_decref(message->calls);
    *message = (fr_reply_message){0};
}

void fr_reply_message_add(fr_reply_message *message, fr_reply_part part, const char *text, size_t length) {
    fr_reply_message *m = message;
    switch (part) {
    case FR_REPLY_CONTENT: fr_text_append(&m->content, text, length); break;
    case FR_REPLY_REASONING: fr_text_append(&m->reasoning, text, length); break;
    case FR_REPLY_CALL:
        m->id.length = m->name.length = m->arguments.length = 0;
        fr_text_append(&m->id, text, length);
        break;
    case FR_REPLY_NAME: fr_text_append(&m->name, text, length); break;
    case FR_REPLY_ARGUMENTS: fr_text_append(&m->arguments, text, length); break;
    case FR_REPLY_CALL_END: add_call(m); break;
    case FR_REPLY_CALL_VOID: break;
    }
}

fr_status fr_reply_message_check(const fr_reply_message *message) {
    const fr_text_buffer *texts[] = {&message->content, &message->reasoning, &message->id, &message->name,
                                     &message->arguments};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) FR_TRY(fr_text_check(texts[i], "a reply"));
    return message->lost ? fr_fail_memory("a call", message->arguments.length) : FR_OK;
}

/* Writes the message. If the message has only calls, its content is null. */
fr_status fr_reply_message_write(const fr_reply_message *message, char **json, size_t *length) {
    *json = NULL;
    *length = 0;
    FR_TRY(fr_reply_message_check(message));
    bool said = message->content.length > 0 || !message->calls;
    json_t *object =
        json_pack("{s:s, s:o}", "role", "assistant", "content", said ? string_of(&message->content) : json_null());
    bool good = object != NULL;
    if (good && message->reasoning.length > 0)
        good = json_object_set_new(object, "reasoning_content", string_of(&message->reasoning)) == 0;
    if (good && message->calls) good = json_object_set(object, "tool_calls", message->calls) == 0;
    fr_status status = fr_json_dump(good ? object : NULL, JSON_COMPACT, "a message", json, length);
    json_decref(object);
    return status;
}
