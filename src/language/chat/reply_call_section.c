/* Reads calls in a section of their own. From V3.1 on, DeepSeek writes a name, a mark and a JSON object. Before V3.1 it
 * writes a type, the mark, the name, and the object in a fence of Markdown. Kimi writes an id that contains the
 * name. */
#include <string.h>

#include "src/language/chat/reply_call.h"

enum {
    BEGIN,
    SECTION, /* after the mark that opens the section */
    NAME,
    BEHIND, /* after the mark that separates the first text (name or type) from the rest */
    NAMED,  /* in the name, which follows a type */
    FENCE,
    OBJECT,
    AFTER,
};

static const char functions[] = "functions.";

static fr_call_verdict go(fr_reply_call *call, int state) {
    call->state = state;
    return FR_CALL_ON;
}

/* Reads a byte of the name. A call without its opening mark must begin with the name of a tool, or with "functions."
 * and such a name. */
static fr_call_verdict name_byte(fr_reply_call *call, char byte) {
    if (!fr_call_take(&call->value, byte, FR_CALL_NAME_MAX)) return FR_CALL_FAULT;
    const char *text = call->value.bytes;
    size_t length = call->value.length, within = sizeof functions - 1;
    if (!call->bare || strncmp(functions, text, length) == 0) return FR_CALL_ON;
    if (strncmp(text, functions, within) == 0) text += within, length -= within;
    const char *number = memchr(text, ':', length);
    return fr_call_begins_name(call->tools, text, number ? (size_t)(number - text) : length) ? FR_CALL_ON
                                                                                             : FR_CALL_FAULT;
}

static bool take_name(fr_reply_call *call, const char *name, size_t length) {
    return fr_call_set_name(call, name, length) && fr_call_is_offered(call);
}

/* Reads the byte after the separating mark. If an object follows, the text before the mark is the name; otherwise it is
 * the type. */
static fr_call_verdict behind_byte(fr_reply_call *call, char byte) {
    const fr_text_buffer *before = &call->value;
    bool type = before->length == 8 && memcmp(before->bytes, "function", 8) == 0;
    if (byte == '{' && take_name(call, before->bytes, before->length)) {
        call->state = OBJECT;
        return fr_call_object_byte(call, byte);
    }
    if (!type || byte == '{') return FR_CALL_FAULT;
    fr_call_clear(&call->value);
    call->state = NAMED;
    return fr_call_take(&call->value, byte, FR_CALL_NAME_MAX) ? FR_CALL_ON : FR_CALL_FAULT;
}

/* Splits Kimi's id, functions.NAME:NUMBER. "functions." or ":NUMBER" may be missing. */
static fr_call_verdict take_id(fr_reply_call *call) {
    const char *id = call->value.bytes ? call->value.bytes : "", *name;
    size_t length = call->value.length, end;
    while (length > 0 && fr_json_is_space(*id)) id++, length--;
    while (length > 0 && fr_json_is_space(id[length - 1])) length--;
    bool within = length >= sizeof functions - 1 && memcmp(id, functions, sizeof functions - 1) == 0;
    name = id + (within ? sizeof functions - 1 : 0);
    for (end = length; end > 0 && id[end - 1] >= '0' && id[end - 1] <= '9';) end--;
    bool numbered = end < length && end > 0 && id[end - 1] == ':';
    end = numbered ? end - 1 : length;
    if (end < (size_t)(name - id)) return FR_CALL_FAULT;
    if (numbered) fr_text_append(&call->id, id, length);
    call->state = OBJECT;
    return take_name(call, name, end - (size_t)(name - id)) ? FR_CALL_ON : FR_CALL_FAULT;
}

static fr_call_verdict named_byte(fr_reply_call *call, char byte) {
    if (byte != '\n') return fr_call_take(&call->value, byte, FR_CALL_NAME_MAX) ? FR_CALL_ON : FR_CALL_FAULT;
    call->state = FENCE;
    call->literal = "```json\n";
    return take_name(call, call->value.bytes, call->value.length) ? FR_CALL_ON : FR_CALL_FAULT;
}

static fr_call_verdict fence_byte(fr_reply_call *call, char byte) {
    if (byte != *call->literal++) return FR_CALL_FAULT;
    if (*call->literal == '\0') call->state = OBJECT;
    return FR_CALL_ON;
}

/* Reads the text between the object and the closing mark: white space, and the end of the fence if one was opened. */
static fr_call_verdict after_byte(fr_reply_call *call, char byte) {
    if (fr_json_is_space(byte)) return FR_CALL_ON;
    if (!call->literal) return FR_CALL_FAULT;
    if (*call->literal == '\0') call->literal = "```";
    return byte == *call->literal++ ? FR_CALL_ON : FR_CALL_FAULT;
}

static fr_call_verdict section_byte(fr_reply_call *call, char byte) {
    fr_call_verdict verdict;
    switch (call->state) {
    case SECTION: return fr_json_is_space(byte) ? FR_CALL_ON : FR_CALL_FAULT;
    case BEGIN:
        if (fr_json_is_space(byte)) return FR_CALL_ON;
        call->bare = true;
        call->state = NAME;
        /* fallthrough */
    case NAME: return name_byte(call, byte);
    case BEHIND: return behind_byte(call, byte);
    case NAMED: return named_byte(call, byte);
    case FENCE: return fence_byte(call, byte);
    case OBJECT:
        verdict = fr_call_object_byte(call, byte);
        if (verdict == FR_CALL_DONE) call->state = AFTER;
        return verdict == FR_CALL_FAULT ? verdict : FR_CALL_ON;
    default: return after_byte(call, byte);
    }
}

/* Ends the name of a call that has no arguments, because its closing mark follows the name. */
static bool end_name(fr_reply_call *call) {
    const fr_text_buffer *name = &call->value;
    bool kimi = call->format->marks[FR_MARK_VALUE] != NULL;
    call->near = true;
    if (call->state == NAME) return kimi && take_id(call) == FR_CALL_ON;
    call->state = OBJECT;
    return take_name(call, name->bytes ? name->bytes : "", name->length);
}

static fr_call_verdict section_mark(fr_reply_call *call, fr_mark mark) {
    bool string = call->state == OBJECT && call->scan.state == FR_SCAN_STRING;
    if (string) return FR_CALL_TEXT;
    if (call->state == BEGIN && mark == FR_MARK_CALLS) return go(call, SECTION);
    if (call->state <= SECTION && mark == FR_MARK_CALL) return go(call, NAME);
    if (call->state == NAME && mark == FR_MARK_NAME) return go(call, BEHIND);
    if (call->state == NAME && mark == FR_MARK_VALUE) return take_id(call);
    bool named = (call->state == BEHIND || call->state == NAMED || call->state == NAME) && mark == FR_MARK_CALL_END;
    if (named && !end_name(call)) return FR_CALL_FAULT;
    if (call->state == OBJECT && mark == FR_MARK_CALL_END && fr_call_has_nothing(call)) {
        fr_text_append_string(&call->arguments, "{}");
        return FR_CALL_DONE;
    }
    if (call->state == OBJECT && mark == FR_MARK_CALL_END) fr_call_close_object(call, section_byte);
    if (call->state == AFTER && mark == FR_MARK_CALL_END) return FR_CALL_DONE;
    if (call->state == AFTER && (mark == FR_MARK_CALL || mark == FR_MARK_CALLS_END)) return FR_CALL_WHOLE;
    return FR_CALL_FAULT;
}

static fr_call_verdict section_finish(fr_reply_call *call) {
    return call->state == AFTER ? FR_CALL_DONE : FR_CALL_FAULT;
}

const fr_call_reader fr_read_section_call = {section_byte, section_mark, section_finish, NULL};
