/* Defines the functions that all readers of calls use. They handle names, limits, and arguments as JSON text
 * (reply_call.h). */
#include "src/language/chat/reply_call.h"

#include <string.h>

void fr_call_clear(fr_text_buffer *text) {
    text->length = 0;
}

bool fr_call_take(fr_text_buffer *text, char byte, size_t limit) {
    fr_text_append(text, &byte, 1);
    return text->status == FR_OK && text->length <= limit;
}

bool fr_call_set_name(fr_reply_call *call, const char *name, size_t length) {
    if (length == 0 || length > FR_CALL_NAME_MAX || call->named) return false;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)name[i] <= ' ' || name[i] == 0x7f || strchr("\"'<>{}[]()", name[i])) return false;
    fr_text_append(&call->name, name, length);
    call->named = call->name.status == FR_OK;
    return call->named;
}

bool fr_call_is_offered(const fr_reply_call *call) {
    return call->named && (!(call->bare || call->near) || fr_tool_find(call->tools, call->name.bytes));
}

bool fr_call_has_nothing(const fr_reply_call *call) {
    return call->scan.depth == 0 && call->scan.state == FR_SCAN_VALUE && call->arguments.length == 0;
}

bool fr_call_begins_name(const json_t *tools, const char *text, size_t length) {
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const char *name = fr_tool_name_of(json_array_get(tools, i));
        if (name && strncmp(name, text, length) == 0) return true;
    }
    return false;
}

void fr_call_open_arguments(fr_reply_call *call) {
    fr_text_append_string(&call->arguments, "{");
    call->first = true;
}

void fr_call_put_key(fr_reply_call *call, const char *key, size_t length) {
    fr_text_append_string(&call->arguments, call->first ? "\"" : ",\"");
    fr_value_put_escaped(&call->arguments, key, length);
    fr_text_append_string(&call->arguments, "\":");
    call->first = false;
}

void fr_call_close_arguments(fr_reply_call *call) {
    fr_text_append_string(&call->arguments, "}");
}

fr_call_verdict fr_call_object_byte(fr_reply_call *call, char byte) {
    fr_json_scan scan = call->scan;
    bool before = scan.state == FR_SCAN_VALUE && scan.depth == 0;
    if (before && fr_json_is_space(byte)) return FR_CALL_ON;
    if (before && byte != '{') return FR_CALL_FAULT;
    fr_scan_result result = fr_json_scan_byte(&call->scan, byte);
    if (result == FR_SCAN_BAD) return FR_CALL_FAULT;
    fr_value_put_json(&call->arguments, &call->writer, &scan, byte);
    if (result == FR_SCAN_DONE) call->given = true;
    return result == FR_SCAN_DONE ? FR_CALL_DONE : FR_CALL_ON;
}

fr_call_verdict fr_call_close_object(fr_reply_call *call, fr_call_verdict (*byte)(fr_reply_call *call, char byte)) {
    for (char closing; (closing = fr_json_scan_closing(&call->scan));) {
        fr_call_verdict verdict = byte(call, closing);
        if (verdict != FR_CALL_ON) return verdict;
    }
    return call->scan.depth == 0 ? FR_CALL_ON : FR_CALL_FAULT;
}
