/* Grows a text: see text_buffer.h. */
#include "base/text_buffer.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define FIRST_CAPACITY ((size_t)256)

/* Doubles the capacity, so that appending n bytes copies O(n) bytes in all. */
static bool reserve(fr_text_buffer *buffer, size_t more) {
    if (buffer->status != FR_OK) return false;
    if (more > FR_TEXT_MAX - buffer->length) {
        buffer->status = FR_INPUT;
        return false;
    }
    size_t needed = buffer->length + more + 1, capacity = buffer->capacity ? buffer->capacity : FIRST_CAPACITY;
    if (needed <= buffer->capacity) return true;
    while (capacity < needed) capacity *= 2;
    char *bytes = realloc(buffer->bytes, capacity);
    if (!bytes) {
        buffer->status = FR_MEMORY;
        return false;
    }
    buffer->bytes = bytes;
    buffer->capacity = capacity;
    return true;
}

void fr_text_append(fr_text_buffer *buffer, const void *bytes, size_t length) {
    if (!reserve(buffer, length)) return;
    if (length > 0) memcpy(buffer->bytes + buffer->length, bytes, length);
    buffer->length += length;
    buffer->bytes[buffer->length] = 0;
}

void fr_text_append_string(fr_text_buffer *buffer, const char *string) {
    fr_text_append(buffer, string, strlen(string));
}

fr_status fr_text_check(const fr_text_buffer *buffer, const char *what) {
    if (buffer->status == FR_OK) return FR_OK;
    if (buffer->status == FR_MEMORY) return fr_fail_memory(what, buffer->capacity);
    return fr_fail(FR_INPUT, "%s: a text of more than %zu bytes", what, FR_TEXT_MAX);
}

fr_status fr_text_take(fr_text_buffer *buffer, const char *what, char **bytes, size_t *length) {
    fr_text_append(buffer, "", 0);
    FR_TRY(fr_text_check(buffer, what));
    *bytes = buffer->bytes;
    *length = buffer->length;
    *buffer = (fr_text_buffer){0};
    return FR_OK;
}

void fr_text_free(fr_text_buffer *buffer) {
    free(buffer->bytes);
    *buffer = (fr_text_buffer){0};
}
