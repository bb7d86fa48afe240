/* Reads calls in Python's form: those of LFM2 and OLMo 3, and those that Llama 3.2 and 4 write without a mark.
 *
 *     LFM2    <|tool_call_start|>[NAME(KEY=VALUE, ...), ...]<|tool_call_end|>
 *     OLMo 3  <function_calls>NAME(KEY=VALUE, ...)\n...</function_calls>
 *
 * Values are Python's literals or JSON. A loose scan accepts both (json_scan.h). */
#include <string.h>

#include "src/language/chat/reply_call.h"

enum {
    BEGIN,
    LEAD, /* before a call: after the mark, or in a list */
    NAME,
    KEY,
    BEFORE, /* before a value */
    VALUE,
    NEXT,   /* a comma or the end of the arguments must follow */
    OBJECT, /* within an object that has all the arguments */
    CLOSE,  /* after an object that has all the arguments */
    AFTER,  /* after a call without its opening mark: the closing mark or the end of the reply must follow */
    ENDED,  /* after the list: its closing mark may follow */
};
enum { IN_LIST = 1, IN_ROW }; /* kinds of sections: calls in a list, or one after the other */

static fr_call_verdict go(fr_reply_call *call, int state) {
    call->state = state;
    return FR_CALL_ON;
}

static bool has_end(const fr_reply_call *call) {
    return call->format->marks[FR_MARK_CALL_END] != NULL;
}

static fr_call_verdict end_call(fr_reply_call *call) {
    if (!call->given) fr_call_close_arguments(call);
    if (call->bare && !call->listed) return go(call, AFTER);
    call->section = call->listed ? IN_LIST : IN_ROW;
    return FR_CALL_DONE;
}

/* ------------------------------------------------------------------------------------------- names, keys and values */

static fr_call_verdict name_byte(fr_reply_call *call, char byte) {
    if (byte == '(') {
        bool good = fr_call_set_name(call, call->value.bytes ? call->value.bytes : "", call->value.length);
        if (good) fr_text_append_string(&call->arguments, "{");
        call->first = true;
        return good && fr_call_is_offered(call) ? go(call, KEY) : FR_CALL_FAULT;
    }
    if (!fr_call_take(&call->value, byte, FR_CALL_NAME_MAX)) return FR_CALL_FAULT;
    bool offered = !call->bare || fr_call_begins_name(call->tools, call->value.bytes, call->value.length);
    return offered ? FR_CALL_ON : FR_CALL_FAULT;
}

/* Reads a key, the end of the arguments, or the beginning of an object that has all the arguments. */
static fr_call_verdict key_byte(fr_reply_call *call, char byte) {
    bool empty = call->key.length == 0;
    if (empty && byte == ')') return end_call(call);
    if (empty && byte == '{' && call->first) {
        fr_call_clear(&call->arguments);
        call->state = OBJECT;
        return fr_call_object_byte(call, byte);
    }
    if (fr_json_is_space(byte)) return FR_CALL_ON;
    if (byte == '=' && !empty) {
        fr_call_put_key(call, call->key.bytes, call->key.length);
        return go(call, BEFORE);
    }
    if ((unsigned char)byte < ' ' || strchr("\"'(){}[],=", byte)) return FR_CALL_FAULT;
    return fr_call_take(&call->key, byte, FR_CALL_KEY_MAX) ? FR_CALL_ON : FR_CALL_FAULT;
}

static fr_call_verdict next_byte(fr_reply_call *call, char byte) {
    if (fr_json_is_space(byte)) return FR_CALL_ON;
    if (byte == ')') return end_call(call);
    fr_call_clear(&call->key);
    return byte == ',' ? go(call, KEY) : FR_CALL_FAULT;
}

/* Reads a byte of a value. A number ends before the first byte that is not part of it. */
static fr_call_verdict value_byte(fr_reply_call *call, char byte) {
    bool behind = fr_json_is_space(byte) || byte == ',' || byte == ')';
    if (behind && call->scan.depth == 0 && fr_json_scan_in_number(&call->scan)) {
        call->state = NEXT;
        return fr_json_scan_complete(&call->scan) ? next_byte(call, byte) : FR_CALL_FAULT;
    }
    const fr_json_scan before = call->scan;
    fr_scan_result result = fr_json_scan_byte(&call->scan, byte);
    if (result == FR_SCAN_BAD) return FR_CALL_FAULT;
    fr_value_put_json(&call->arguments, &call->writer, &before, byte);
    return go(call, result == FR_SCAN_DONE ? NEXT : VALUE);
}

static fr_call_verdict object_byte(fr_reply_call *call, char byte) {
    fr_call_verdict verdict = fr_call_object_byte(call, byte);
    return verdict == FR_CALL_DONE ? go(call, CLOSE) : verdict;
}

/* ----------------------------------------------------------------------------------------------- text around a call */

static fr_call_verdict lead_byte(fr_reply_call *call, char byte) {
    if (fr_json_is_space(byte)) return FR_CALL_ON;
    if (byte == '[' && !call->listed) {
        call->listed = true;
        return go(call, LEAD);
    }
    if (byte == '{') return fr_call_begin_json(call, byte);
    call->state = NAME;
    return name_byte(call, byte);
}

/* Reads the text between a call and the next one of the same section. */
static fr_call_verdict following_byte(fr_reply_call *call, char byte) {
    bool separates = !call->comma && (byte == ',' || (byte == ';' && !call->listed));
    call->listed = call->section == IN_LIST;
    call->comma |= separates;
    if (separates) return FR_CALL_ON;
    if (byte == ']' && call->listed) return has_end(call) ? go(call, ENDED) : FR_CALL_OVER;
    return lead_byte(call, byte);
}

static fr_call_verdict python_byte(fr_reply_call *call, char byte) {
    switch (call->state) {
    case BEGIN:
        if (call->section) return following_byte(call, byte);
        if (!fr_json_is_space(byte)) call->bare = true;
        return lead_byte(call, byte);
    case LEAD: return lead_byte(call, byte);
    case NAME: return name_byte(call, byte);
    case KEY: return key_byte(call, byte);
    case BEFORE:
        if (fr_json_is_space(byte)) return FR_CALL_ON;
        call->scan = (fr_json_scan){.loose = true, .python = true};
        call->writer = (fr_json_writer){0};
        /* fallthrough */
    case VALUE: return value_byte(call, byte);
    case NEXT: return next_byte(call, byte);
    case OBJECT: return object_byte(call, byte);
    case CLOSE:
        if (fr_json_is_space(byte)) return FR_CALL_ON;
        return byte == ')' ? end_call(call) : FR_CALL_FAULT;
    case AFTER:
        if (fr_json_is_space(byte)) return FR_CALL_ON;
        return call->alone && fr_call_begins_name(call->tools, &byte, 1) ? FR_CALL_WHOLE : FR_CALL_FAULT;
    default: return fr_json_is_space(byte) ? FR_CALL_ON : FR_CALL_PAST;
    }
}

/* Ends a call at a closing mark. Only brackets may be missing before the mark. */
static fr_call_verdict close_call(fr_reply_call *call) {
    if (call->state == VALUE || call->state == OBJECT) fr_call_close_object(call, python_byte);
    bool number = call->state == VALUE && fr_json_scan_complete(&call->scan);
    if (!number && call->state != NEXT && call->state != CLOSE) return FR_CALL_FAULT;
    python_byte(call, ')');
    call->section = 0;
    return FR_CALL_DONE;
}

static fr_call_verdict python_mark(fr_reply_call *call, fr_mark mark) {
    bool ends = mark == FR_MARK_CALL_END;
    if ((call->state == VALUE || call->state == OBJECT) && call->scan.state == FR_SCAN_STRING) return FR_CALL_TEXT;
    if (call->state == ENDED || (call->state == BEGIN && call->section)) return ends ? FR_CALL_OVER : FR_CALL_PAST;
    if (call->state == BEGIN && mark == FR_MARK_CALL) return go(call, LEAD);
    if (!ends) return FR_CALL_FAULT;
    return call->state == AFTER ? FR_CALL_DONE : close_call(call);
}

static fr_call_verdict python_finish(fr_reply_call *call) {
    if (call->state == ENDED || (call->state == BEGIN && call->section)) return FR_CALL_OVER;
    return call->state == AFTER && call->alone ? FR_CALL_DONE : FR_CALL_FAULT;
}

const fr_call_reader fr_read_python_call = {python_byte, python_mark, python_finish, NULL};

fr_call_verdict fr_call_begin_python(fr_reply_call *call, char byte) {
    call->reader = &fr_read_python_call;
    call->state = LEAD;
    return lead_byte(call, byte);
}
