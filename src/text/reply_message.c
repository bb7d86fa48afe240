/* Parts of a reply gathered into a message: see reply_message.h. */
#include "src/text/reply_message.h"

#include <stdlib.h>
#include <string.h>

#include <utf8proc.h>

#include "formats/error.h"

#define REPLACEMENT "\xef\xbf\xbd"

/* How many bytes one U+FFFD stands for where no character is: as much of one as there is, at least a byte. */
static size_t broken_length(const unsigned char *text, size_t length) {
    static const struct {
        unsigned char first, last, low, high, size; /* the lead byte's range, the second byte's, bytes in all */
    } rows[] = {{0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
                {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
                {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (text[0] < rows[i].first || text[0] > rows[i].last) continue;
        if (length < 2 || text[1] < rows[i].low || text[1] > rows[i].high) return 1;
        size_t n = 2;
        while (n < length && n < rows[i].size && (text[n] & 0xc0) == 0x80) n++;
        return n;
    }
    return 1;
}

/* A JSON string of any bytes; NULL: no memory. */
static json_t *string_of(const fr_text_buffer *text) {
    fr_text_buffer valid = {0};
    const unsigned char *bytes = (const unsigned char *)text->bytes;
    for (size_t at = 0; at < text->length;) {
        utf8proc_int32_t c;
        size_t left = text->length - at;
        utf8proc_ssize_t good = utf8proc_iterate(bytes + at, (utf8proc_ssize_t)left, &c);
        if (good > 0)
            fr_text_append(&valid, bytes + at, (size_t)good);
        else
            fr_text_append_string(&valid, REPLACEMENT);
        at += good > 0 ? (size_t)good : broken_length(bytes + at, left);
    }
    json_t *string = valid.status == FR_OK ? json_stringn(valid.bytes ? valid.bytes : "", valid.length) : NULL;
    fr_text_free(&valid);
    return string;
}

static void add_call(fr_reply_message *m) {
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

/* Content is null where there are calls alone. */
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
    *json = good ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    if (!*json) return fr_fail_memory("a message", message->content.length + message->reasoning.length);
    *length = strlen(*json);
    return FR_OK;
}
