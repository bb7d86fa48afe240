/* Calls whose arguments stand one by one between tags: GLM's, and Qwen's since 3.5.
 *
 *     GLM   <tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>...</tool_call>
 *     Qwen  <tool_call><function=NAME><parameter=KEY>\nVALUE\n</parameter>...</function></tool_call>
 *
 * White space may stand between tags. A value is plain text, whose type the tool's schema tells. It ends at its closing
 * tag, unless something else than a tag follows: then the tag was part of it. */
#include <string.h>

#include "src/chat/reply_call.h"

enum {
    BEGIN,
    BEFORE_NAME,
    NAME,
    BETWEEN, /* arguments */
    KEY,
    BEFORE_VALUE,
    VALUE,
    MAYBE_BETWEEN, /* the same as BETWEEN, unless it was part of the value */
    AFTER,         /* Qwen's function */
};

static bool is_glm(const fr_reply_call *call) {
    return call->format->calls == FR_CALLS_GLM;
}

static fr_call_verdict go(fr_reply_call *call, int state) {
    call->state = state;
    return FR_CALL_ON;
}

static fr_call_verdict blank(char byte) {
    return fr_json_is_space(byte) ? FR_CALL_ON : FR_CALL_FAULT;
}

/* ----------------------------------------------------------------------------------------------------------- values */

static fr_call_verdict begin_value(fr_reply_call *call) {
    const json_t *tool = fr_tool_find(call->tools, call->name.bytes);
    call->types = fr_tool_parameter_types(tool, call->key.bytes);
    fr_call_put_key(call, call->key.bytes, call->key.length);
    if (call->types == FR_VALUE_STRING) fr_text_append_string(&call->arguments, "\"");
    fr_call_clear(&call->value);
    call->newline = false;
    call->fresh = !is_glm(call);
    return go(call, VALUE);
}

/* A string goes on as it comes; what may be of another type is collected. */
static void put_value(fr_reply_call *call, const char *text, size_t length) {
    if (call->types == FR_VALUE_STRING)
        fr_value_put_escaped(&call->arguments, text, length);
    else
        fr_text_append(&call->value, text, length);
}

/* Qwen's values have a line break before and behind them. */
static void value_byte(fr_reply_call *call, char byte) {
    bool first = call->fresh && byte == '\n', last = !is_glm(call) && byte == '\n';
    call->fresh = false;
    if (first) return;
    if (call->newline) put_value(call, "\n", 1);
    call->newline = last;
    if (!last) put_value(call, &byte, 1);
}

static void end_value(fr_reply_call *call) {
    if (call->types == FR_VALUE_STRING)
        fr_text_append_string(&call->arguments, "\"");
    else
        fr_value_put(&call->arguments, call->value.bytes ? call->value.bytes : "", call->value.length, call->types);
}

/* The value goes on: what came since its tag, but for the last `behind` bytes, was part of it. */
static void reopen_value(fr_reply_call *call, size_t behind) {
    for (size_t i = call->reopen; i < call->raw.length - behind; i++) value_byte(call, call->raw.bytes[i]);
    call->state = VALUE;
}

/* ------------------------------------------------------------------------------------------------------------ bytes */

static bool end_name(fr_reply_call *call) {
    bool good = fr_call_set_name(call, call->value.bytes, call->value.length);
    if (good) fr_call_open_arguments(call);
    return good;
}

static fr_call_verdict name_byte(fr_reply_call *call, char byte) {
    if (is_glm(call) && fr_json_is_space(byte) && call->value.length == 0) return FR_CALL_ON;
    bool ends = is_glm(call) ? fr_json_is_space(byte) : byte == '>';
    if (!ends) return fr_call_take(&call->value, byte, FR_CALL_NAME_LONGEST) ? FR_CALL_ON : FR_CALL_FAULT;
    return end_name(call) ? go(call, BETWEEN) : FR_CALL_FAULT;
}

static fr_call_verdict tagged_byte(fr_reply_call *call, char byte) {
    switch (call->state) {
    case NAME: return name_byte(call, byte);
    case KEY:
        if (!is_glm(call) && byte == '>') return call->key.length > 0 ? begin_value(call) : FR_CALL_FAULT;
        return fr_call_take(&call->key, byte, FR_CALL_KEY_LONGEST) ? FR_CALL_ON : FR_CALL_FAULT;
    case MAYBE_BETWEEN:
        if (fr_json_is_space(byte)) return FR_CALL_ON;
        reopen_value(call, 1);
        /* fallthrough */
    case VALUE: value_byte(call, byte); return FR_CALL_ON;
    default: return blank(byte);
    }
}

/* ------------------------------------------------------------------------------------------------------------ marks */

static fr_call_verdict end_call(fr_reply_call *call, fr_mark mark) {
    bool ends = mark == (is_glm(call) ? FR_MARK_CALL_END : FR_MARK_NAME_END);
    if (!ends) return FR_CALL_FAULT;
    fr_call_close_arguments(call);
    return is_glm(call) ? FR_CALL_DONE : go(call, AFTER);
}

static fr_call_verdict between_mark(fr_reply_call *call, fr_mark mark) {
    if (mark != FR_MARK_KEY) return end_call(call, mark);
    fr_call_clear(&call->key);
    return go(call, KEY);
}

static fr_call_verdict value_mark(fr_reply_call *call, fr_mark mark) {
    if (mark != FR_MARK_VALUE_END) return FR_CALL_TEXT;
    call->reopen = call->raw.length - strlen(call->format->marks[mark]);
    return go(call, MAYBE_BETWEEN);
}

static fr_call_verdict maybe_mark(fr_reply_call *call, fr_mark mark) {
    if (mark == FR_MARK_KEY || mark == (is_glm(call) ? FR_MARK_CALL_END : FR_MARK_NAME_END)) {
        end_value(call);
        return between_mark(call, mark);
    }
    reopen_value(call, strlen(call->format->marks[mark]));
    return value_mark(call, mark);
}

static fr_call_verdict tagged_mark(fr_reply_call *call, fr_mark mark) {
    switch (call->state) {
    case BEGIN: return mark == FR_MARK_CALL ? go(call, is_glm(call) ? NAME : BEFORE_NAME) : FR_CALL_FAULT;
    case BEFORE_NAME: return mark == FR_MARK_NAME ? go(call, NAME) : FR_CALL_FAULT;
    case NAME: return is_glm(call) && end_name(call) ? between_mark(call, mark) : FR_CALL_FAULT;
    case BETWEEN: return between_mark(call, mark);
    case KEY: return mark == FR_MARK_KEY_END && call->key.length > 0 ? go(call, BEFORE_VALUE) : FR_CALL_FAULT;
    case BEFORE_VALUE: return mark == FR_MARK_VALUE ? begin_value(call) : FR_CALL_FAULT;
    case VALUE: return value_mark(call, mark);
    case MAYBE_BETWEEN: return maybe_mark(call, mark);
    default: return mark == FR_MARK_CALL_END ? FR_CALL_DONE : FR_CALL_FAULT;
    }
}

/* GLM's may lack further arguments as long as its mark has not come. */
static bool tagged_complete(const fr_reply_call *call) {
    return call->state == AFTER;
}

const fr_call_reader fr_read_tagged_call = {tagged_byte, tagged_mark, tagged_complete};
