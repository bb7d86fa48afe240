/* Stores messages as JSON, renders them with the model's chat template, and writes them into a session's file
 * (conversation.h). */
#include "tools/cli/conversation.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/output.h"
#include "tools/cli/wide_json.h"

json_t *fr_conversation_new(const char *system) {
    json_t *messages = json_array();
    if (system) fr_conversation_add(messages, "system", system, strlen(system), 0);
    return messages;
}

static void add_part(json_t *parts, const char *type, json_t *text) {
    json_t *part = json_object();
    fr_json_put(part, "type", json_string(type));
    if (text) fr_json_put(part, "text", text);
    json_array_append_new(parts, part);
}

static void add_message(json_t *messages, const char *role, json_t *content) {
    json_t *message = json_object();
    fr_json_put(message, "role", json_string(role));
    fr_json_put(message, "content", content);
    json_array_append_new(messages, message);
}

void fr_conversation_add(json_t *messages, const char *role, const char *bytes, size_t length, size_t pictures) {
    json_t *text = fr_json_bytes(bytes, length), *content = pictures ? json_array() : text;
    for (size_t i = 0; i < pictures; i++) add_part(content, "image", NULL);
    if (pictures) add_part(content, "text", text);
    add_message(messages, role, content);
}

void fr_conversation_add_placed(json_t *messages, const char *bytes, size_t length, const char *mark) {
    json_t *parts = json_array();
    for (const char *found; (found = memmem(bytes, length, mark, strlen(mark)));) {
        size_t before = (size_t)(found - bytes), passed = before + strlen(mark);
        if (before > 0) add_part(parts, "text", fr_json_bytes(bytes, before));
        add_part(parts, "image", NULL);
        bytes += passed;
        length -= passed;
    }
    if (length > 0) add_part(parts, "text", fr_json_bytes(bytes, length));
    add_message(messages, "user", parts);
}

json_t *fr_conversation_last(const json_t *messages) {
    return json_array_get(messages, json_array_size(messages) - 1);
}

static bool is_of(const json_t *message, const char *role) {
    const char *word = json_string_value(json_object_get(message, "role"));
    return word && strcmp(word, role) == 0;
}

static bool begins_with_system(const json_t *messages) {
    return is_of(json_array_get(messages, 0), "system");
}

const char *fr_conversation_system(const json_t *messages) {
    return begins_with_system(messages) ? json_string_value(json_object_get(json_array_get(messages, 0), "content"))
                                        : NULL;
}

void fr_conversation_set_system(json_t *messages, const char *system) {
    if (begins_with_system(messages)) json_array_remove(messages, 0);
    if (!system) return;
    json_t *first = fr_conversation_new(system);
    json_array_insert(messages, 0, json_array_get(first, 0));
    json_decref(first);
}

size_t fr_conversation_turns(const json_t *messages) {
    size_t turns = 0;
    for (size_t i = 0; i < json_array_size(messages); i++) turns += is_of(json_array_get(messages, i), "user");
    return turns;
}

bool fr_conversation_answered(const json_t *messages) {
    const json_t *last = fr_conversation_last(messages);
    return !is_of(last, "user") && !is_of(last, "tool");
}

static size_t pictures_of(const json_t *message) {
    const json_t *parts = json_object_get(message, "content");
    size_t pictures = 0;
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const char *type = json_string_value(json_object_get(json_array_get(parts, i), "type"));
        pictures += type && strcmp(type, "image") == 0;
    }
    return pictures;
}

size_t fr_conversation_take_back(json_t *messages) {
    size_t pictures = 0, count;
    while ((count = json_array_size(messages)) > begins_with_system(messages)) {
        const json_t *last = json_array_get(messages, count - 1);
        bool user = is_of(last, "user");
        pictures = pictures_of(last);
        json_array_remove(messages, count - 1);
        if (user) break;
    }
    return pictures;
}

void fr_conversation_take_reply(json_t *messages) {
    while (is_of(fr_conversation_last(messages), "assistant"))
        json_array_remove(messages, json_array_size(messages) - 1);
}

size_t fr_conversation_drop(json_t *messages, size_t turns) {
    size_t first = begins_with_system(messages), pictures = 0;
    for (size_t dropped = 0; first < json_array_size(messages); json_array_remove(messages, first)) {
        const json_t *message = json_array_get(messages, first);
        dropped += is_of(message, "user");
        if (dropped > turns || turns == 0) break;
        pictures += pictures_of(message);
    }
    return pictures;
}

char *fr_conversation_said(const json_t *messages) {
    fr_stream said = {0};
    size_t last = json_array_size(messages);
    while (last > 0 && !is_of(json_array_get(messages, last - 1), "user")) last--;
    const json_t *content = json_object_get(json_array_get(messages, last - 1), "content");
    size_t parts = json_is_array(content) ? json_array_size(content) : 1;
    for (size_t i = 0; i < parts; i++) {
        const json_t *part = json_is_array(content) ? json_object_get(json_array_get(content, i), "text") : content;
        fr_stream_feed(&said, json_string_value(part), json_string_length(part), false);
    }
    fr_stream_feed(&said, "", 1, false);
    free(said.accepted);
    return said.bytes;
}

void fr_conversation_forget(json_t *messages) {
    while (json_array_size(messages) > begins_with_system(messages))
        json_array_remove(messages, json_array_size(messages) - 1);
}

/* If a part is a picture, sound or video, gives the word for its medium, such as "image". NULL: it is another part. A
 * part without a type counts too if the name of one of its members is such a word, because Qwen's templates accept such
 * parts. */
static const char *medium_of(const json_t *part) {
    static const char *const words[] = {"image",       "image_url", "input_image", "video",       "video_url",
                                        "input_video", "audio",     "audio_url",   "input_audio", "file"};
    const json_t *type = json_object_get(part, "type");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (type ? json_is_string(type) && strcmp(json_string_value(type), words[i]) == 0
                 : json_object_get(part, words[i]) != NULL)
            return words[i];
    return NULL;
}

size_t fr_conversation_pictures(const json_t *messages, const char **other) {
    size_t pictures = 0;
    *other = NULL;
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *content = json_object_get(json_array_get(messages, i), "content");
        for (size_t part = 0; part < json_array_size(content); part++) {
            const char *medium = medium_of(json_array_get(content, part));
            bool picture = medium && strcmp(medium, "image") == 0;
            pictures += picture;
            if (medium && !picture && !*other) *other = medium;
        }
    }
    return pictures;
}

bool fr_conversation_is_parts(const json_t *messages) {
    for (size_t i = 0; i < json_array_size(messages); i++) {
        const json_t *content = json_object_get(json_array_get(messages, i), "content");
        if (content && !fr_is_json_text(content) && !json_is_array(content) && !json_is_null(content)) return false;
        const json_t *part;
        size_t at;
        json_array_foreach (content, at, part)
            if (!json_is_string(json_object_get(part, "type")) && !medium_of(part)) return false;
    }
    return true;
}

char *fr_conversation_write(const json_t *messages, size_t *length) {
    char *bytes = fr_json_line(messages);
    *length = strlen(bytes);
    return bytes;
}

/* Returns true if templates can show the content, which must be a text or a list of text parts. If a message has tool
 * calls, its content may be missing. */
static bool is_said(const json_t *message) {
    const json_t *content = json_object_get(message, "content");
    if (!content || json_is_null(content)) return json_array_size(json_object_get(message, "tool_calls")) > 0;
    if (!json_is_array(content)) return fr_is_json_text(content);
    for (size_t i = 0; i < json_array_size(content); i++)
        if (!fr_is_json_text(json_object_get(json_array_get(content, i), "text"))) return false;
    return json_array_size(content) > 0;
}

const char *fr_conversation_fault(const json_t *messages) {
    size_t count = json_array_size(messages), first = begins_with_system(messages);
    if (count == 0) return "not a JSON array of messages, at least one";
    for (size_t i = 0; i < count; i++) {
        const json_t *message = json_array_get(messages, i);
        bool known = i < first || is_of(message, "user") || is_of(message, "assistant") || is_of(message, "tool");
        if (!known) return "messages here have the role user, assistant or tool, and the first one may be the system's";
        if (!is_said(message)) return "a message has a content that is no text: pictures and sound can't be loaded";
    }
    if (first < count && !is_of(json_array_get(messages, first), "user")) return "it does not begin with a user's turn";
    return NULL;
}

json_t *fr_conversation_read(const void *bytes, size_t length) {
    json_t *messages = json_loadb(bytes, length, JSON_ALLOW_NUL, NULL);
    bool empty = json_is_array(messages) && json_array_size(messages) == 0;
    if (empty || (!fr_conversation_fault(messages) && fr_conversation_answered(messages))) return messages;
    json_decref(messages);
    return NULL;
}

fr_status fr_conversation_render(const json_t *messages, const fr_tokenizer *tokenizer, const json_t *settings,
                                 fr_marked_text *text) {
    json_t *strict = json_copy((json_t *)(uintptr_t)settings);
    if (!json_object_get(strict, "strict_roles")) fr_json_put(strict, "strict_roles", json_true());
    char *said = fr_json_line(messages), *options = fr_json_line(strict);
    json_decref(strict);
    fr_status status = fr_chat_render(tokenizer, said, options, text);
    free(said);
    free(options);
    return status;
}

void fr_conversation_note_changes(const fr_tokenizer *tokenizer, bool quiet) {
    for (const char *line; (line = fr_chat_change(tokenizer));)
        if (!quiet) fr_note("%s", line);
}

fr_status fr_conversation_tokenize(const fr_marked_text *text, const fr_tokenizer *tokenizer, bool parse_special,
                                   int32_t **ids, size_t *count) {
    if (!parse_special) return fr_tokenize_marked(tokenizer, text, ids, count);
    return fr_tokenize(tokenizer, text->text, text->length, false, true, ids, count);
}
