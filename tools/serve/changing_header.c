/* Removes a line that differs in each request (changing_header.h). */
#include "tools/serve/changing_header.h"

#include <stdlib.h>
#include <string.h>

#include "tools/jobs/job_parts.h"

/* The beginning of the line. Claude Code puts this line before the system text. The line serves Anthropic's billing and
 * contains a hash of the request, which the model does not need. The line would make the beginning of each prompt
 * different, so no part of a prompt would be found in the cache. */
#define HEADER "x-anthropic-billing-header:"

/* Gives the text without the lines that begin with HEADER, as a new value. NULL: the text has no such line. */
static json_t *without_header(const json_t *text) {
    size_t length = json_string_length(text), kept = 0;
    const char *from = json_string_value(text);
    if (!from || !strcasestr(from, HEADER)) return NULL;
    char *left = fr_resize(NULL, length + 1, 1);
    for (const char *line = from, *end = from + length, *next; line < end; line = next) {
        const char *feed = memchr(line, '\n', (size_t)(end - line));
        next = feed ? feed + 1 : end;
        if (strncasecmp(line, HEADER, strlen(HEADER)) == 0) continue;
        memcpy(left + kept, line, (size_t)(next - line));
        kept += (size_t)(next - line);
    }
    json_t *rest = kept < length ? json_stringn(left, kept) : NULL;
    free(left);
    return rest;
}

/* Removes the line from the parts of a message. A part that has no other text is removed too. If one text is left, it
 * becomes the content itself, as if the line had never been there. */
static void drop_header_of_parts(json_t *message, json_t *parts) {
    bool dropped = false;
    for (size_t i = json_array_size(parts); i-- > 0;) {
        json_t *part = json_array_get(parts, i), *rest = without_header(json_object_get(part, "text"));
        bool gone = rest && strspn(json_string_value(rest), " \t\r\n") == json_string_length(rest);
        dropped |= rest != NULL;
        if (gone)
            json_array_remove(parts, i);
        else if (rest)
            json_object_set(part, "text", rest);
        json_decref(rest);
    }
    json_t *last = json_object_get(json_array_get(parts, 0), "text");
    if (dropped && json_array_size(parts) == 1 && last) json_object_set(message, "content", last);
}

void fr_changing_header_drop(json_t *messages) {
    for (size_t i = json_array_size(messages); i-- > 0;) {
        json_t *message = json_array_get(messages, i), *content = json_object_get(message, "content");
        const json_t *role = json_object_get(message, "role");
        if (!fr_job_is_word(role, "system") && !fr_job_is_word(role, "developer")) continue;
        json_t *rest = without_header(content);
        bool parts = json_array_size(content) > 0, silent = rest && json_string_length(rest) == 0;
        if (rest) json_object_set_new(message, "content", rest);
        if (parts) drop_header_of_parts(message, content);
        if (parts && json_is_array(json_object_get(message, "content")))
            silent = json_array_size(json_object_get(message, "content")) == 0;
        if (silent) json_array_remove(messages, i);
    }
}
