/* Reads calls that are a name and a JSON object: those of Mistral since its v11 tokenizers, and those of GLM-4 before
 * version 4.5.
 *
 *     Mistral  [TOOL_CALLS]NAME[ARGS]{...}, or [TOOL_CALLS]NAME[CALL_ID]ID[ARGS]{...}
 *     GLM-4    NAME\n{...}
 *
 * Mistral's older models write a list of objects after the same mark; the JSON reader reads such a list. */
#include <string.h>

#include "src/language/chat/reply_call.h"
#include "src/language/chat/reply_forms.h"

enum {
    BEGIN,
    LEAD, /* after the opening mark */
    NAME,
    ID,
    BEFORE, /* before the object with the arguments */
    OBJECT,
};

static fr_call_verdict go(fr_reply_call *call, int state) {
    call->state = state;
    return FR_CALL_ON;
}

/* Ends the name, and keeps it until the object begins. A call is reported as soon as its name is set, but at this place
 * its id may still follow. */
static fr_call_verdict end_name(fr_reply_call *call, int state) {
    bool offered = !call->bare || (call->value.bytes && fr_tool_find(call->tools, call->value.bytes));
    return offered ? go(call, state) : FR_CALL_FAULT;
}

/* Begins the object. In a call without a mark, any word may look like the name. So the object must then be on the next
 * line, or the call must be the first text of the reply. */
static fr_call_verdict begin_object(fr_reply_call *call) {
    bool line = memchr(call->raw.bytes, '\n', call->raw.length) != NULL, marked = call->given;
    if (call->bare && !marked && !line && !call->alone) return FR_CALL_FAULT;
    if (!fr_call_set_name(call, call->value.bytes ? call->value.bytes : "", call->value.length)) return FR_CALL_FAULT;
    call->given = false;
    call->state = OBJECT;
    return fr_call_object_byte(call, '{');
}

static fr_call_verdict name_byte(fr_reply_call *call, char byte) {
    if (byte == '{' || fr_json_is_space(byte)) {
        fr_call_verdict verdict = end_name(call, BEFORE);
        return verdict == FR_CALL_ON && byte == '{' ? begin_object(call) : verdict;
    }
    if (!fr_call_take(&call->value, byte, FR_CALL_NAME_MAX)) return FR_CALL_FAULT;
    bool offered = !call->bare || fr_call_begins_name(call->tools, call->value.bytes, call->value.length);
    return offered ? FR_CALL_ON : FR_CALL_FAULT;
}

static fr_call_verdict named_byte(fr_reply_call *call, char byte) {
    switch (call->state) {
    case BEGIN:
    case LEAD:
        if (fr_json_is_space(byte)) return FR_CALL_ON;
        call->bare = call->state == BEGIN;
        if (byte == '{' || byte == '[') return fr_call_begin_json(call, byte);
        call->state = NAME;
        /* fallthrough */
    case NAME: return name_byte(call, byte);
    case ID:
        if (byte == '{') return begin_object(call);
        if (fr_json_is_space(byte)) return FR_CALL_ON;
        return fr_call_take(&call->id, byte, FR_CALL_NAME_MAX) ? FR_CALL_ON : FR_CALL_FAULT;
    case BEFORE:
        if (fr_json_is_space(byte)) return FR_CALL_ON;
        return byte == '{' ? begin_object(call) : FR_CALL_FAULT;
    default: return fr_call_object_byte(call, byte);
    }
}

/* Ends a call in which nothing follows the mark before the arguments. */
static fr_call_verdict end_empty(fr_reply_call *call) {
    call->near = true;
    bool named = fr_call_set_name(call, call->value.bytes ? call->value.bytes : "", call->value.length);
    if (!named || !fr_call_is_offered(call)) return FR_CALL_FAULT;
    fr_text_append_string(&call->arguments, "{}");
    return FR_CALL_DONE;
}

/* Reads a mark. After the mark that comes before the arguments, sets `given`: the object that follows must be the
 * arguments. */
static fr_call_verdict named_mark(fr_reply_call *call, fr_mark mark) {
    if (call->state == OBJECT) return call->scan.state == FR_SCAN_STRING ? FR_CALL_TEXT : FR_CALL_FAULT;
    if (call->state == BEGIN && mark == FR_MARK_CALL) return go(call, LEAD);
    if (mark == FR_MARK_CALL && call->state == BEFORE && call->given)
        return end_empty(call) == FR_CALL_DONE ? FR_CALL_WHOLE : FR_CALL_FAULT;
    bool named = call->state == BEFORE || (call->state == NAME && end_name(call, BEFORE) == FR_CALL_ON);
    if (mark == FR_MARK_ID && named) return go(call, ID);
    if (mark != FR_MARK_VALUE || !(named || call->state == ID)) return FR_CALL_FAULT;
    call->given = true;
    return go(call, BEFORE);
}

static fr_call_verdict named_finish(fr_reply_call *call) {
    return call->state == BEFORE && call->given ? end_empty(call) : FR_CALL_FAULT;
}

const fr_call_reader fr_read_named_call = {named_byte, named_mark, named_finish, NULL};
