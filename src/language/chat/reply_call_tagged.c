/* Reads calls in which tags enclose each argument: those of GLM, of Qwen since 3.5, of Seed-OSS and of MiniMax.
 *
 *     GLM      <tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>...</tool_call>
 *     Qwen     <tool_call><function=NAME><parameter=KEY>\nVALUE\n</parameter>...</function></tool_call>
 *     MiniMax  <minimax:tool_call><invoke name="NAME"><parameter name="KEY">VALUE</parameter>...</invoke>...
 *              </minimax:tool_call>
 *
 * White space may stand between tags. A value is plain text, and the tool's schema gives its type. A value ends at its
 * closing tag if another tag follows. If other text follows, the closing tag was part of the value. A value without a
 * closing tag ends before the tag of another parameter. It also ends before the call's closing tag, if after that tag
 * and white space the reply ends, a further call follows or a mark follows. One <tool_call> may have several functions.
 * A function may come without <tool_call>. */
#include <string.h>

#include "base/text.h"
#include "src/language/chat/reply_call.h"
#include "src/language/chat/reply_forms.h"

enum {
    BEGIN,
    BEFORE_NAME,
    NAME,
    BETWEEN, /* between arguments */
    KEY,
    BEFORE_VALUE,
    VALUE,
    MAYBE_BETWEEN, /* between arguments, unless the tag that was just read belongs to a value */
    MAYBE_KEY,     /* in a key, unless this text belongs to a value without a closing tag */
    MAYBE_END,     /* after the function, unless the tag that was just read belongs to a value */
    MAYBE_AFTER,   /* after the call, unless the tag that was just read belongs to a value */
};
/* Kinds of sections: functions inside the marks of a call, or without these marks. */
enum { WITHIN_CALL = 1, WITHOUT_CALL };

static bool is_glm(const fr_reply_call *call) {
    return call->format->marks[FR_MARK_KEY_END] != NULL;
}

static fr_mark end_mark(const fr_reply_call *call) {
    return is_glm(call) ? FR_MARK_CALL_END : FR_MARK_NAME_END;
}

static fr_call_verdict go(fr_reply_call *call, int state) {
    call->state = state;
    return FR_CALL_ON;
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
    call->lines = strstr(call->format->form->argument, "\n$VALUE\n") != NULL;
    return go(call, VALUE);
}

/* Reads text of a value. The text of a string is passed on at once. If the value may have another type, its text is
 * collected. */
static void put_value(fr_reply_call *call, const char *text, size_t length) {
    if (call->types == FR_VALUE_STRING)
        fr_value_put_escaped(&call->arguments, text, length);
    else
        fr_text_append(&call->value, text, length);
}

/* Reads a byte of a value. A value may be on lines of its own, and then the line breaks before and after it are not
 * part of it. So each line break is held back until another byte follows. */
static void value_byte(fr_reply_call *call, char byte) {
    bool first = call->fresh && byte == '\n';
    call->fresh = false;
    call->lines |= first;
    if (first) return;
    if (call->newline) put_value(call, "\n", 1);
    call->newline = byte == '\n';
    if (!call->newline) put_value(call, &byte, 1);
}

/* Ends a value. closed: the value's own closing tag ended it. If it is false, the line break before the next tag
 * belongs to that tag. */
static void end_value(fr_reply_call *call, bool closed) {
    if (call->newline && closed && !call->lines) put_value(call, "\n", 1);
    if (call->types == FR_VALUE_STRING)
        fr_text_append_string(&call->arguments, "\"");
    else
        fr_value_put(&call->arguments, call->value.bytes ? call->value.bytes : "", call->value.length, call->types);
}

/* Continues the value: the tag that seemed to end it belongs to the value. So does the text after that tag, except for
 * the last `behind` bytes. */
static void reopen_value(fr_reply_call *call, size_t behind) {
    for (size_t i = call->reopen; i + behind < call->raw.length; i++) value_byte(call, call->raw.bytes[i]);
    call->state = VALUE;
}

/* ------------------------------------------------------------------------------------------------------ names, keys */

/* Removes the quotes around a text, and attributes that follow the text. */
static fr_text unquoted(const char *text, size_t length) {
    while (length > 0 && fr_json_is_space(*text)) text++, length--;
    bool quoted = length > 1 && (*text == '"' || *text == '\'');
    const char *end = quoted ? memchr(text + 1, *text, length - 1) : NULL;
    return end ? (fr_text){text + 1, (size_t)(end - text - 1)} : (fr_text){text, length};
}

/* Gives the name or key in a tag. The tags of some forms write it as a quoted attribute. */
static fr_text tag_text(const fr_reply_call *call, const char *text, size_t length) {
    return is_glm(call) ? (fr_text){text, length} : unquoted(text, length);
}

static bool end_name(fr_reply_call *call) {
    fr_text name = tag_text(call, call->value.bytes ? call->value.bytes : "", call->value.length);
    bool good = fr_call_set_name(call, name.bytes, name.length) && fr_call_is_offered(call);
    if (good) fr_call_open_arguments(call);
    return good;
}

static bool begins_json(char byte) {
    return byte == '{' || byte == '[' || byte == '`';
}

static fr_call_verdict name_byte(fr_reply_call *call, char byte) {
    bool json = begins_json(byte) && is_glm(call) && !call->bare && call->value.length == 0;
    if (json) return fr_call_begin_json(call, byte);
    if (is_glm(call) && fr_json_is_space(byte) && call->value.length == 0) return FR_CALL_ON;
    bool ends = is_glm(call) ? fr_json_is_space(byte) : byte == '>';
    if (ends) return end_name(call) ? go(call, BETWEEN) : FR_CALL_FAULT;
    if (!fr_call_take(&call->value, byte, FR_CALL_NAME_MAX)) return FR_CALL_FAULT;
    const char *name = call->value.bytes + (call->value.bytes[0] == '"');
    size_t length = strcspn(name, "\"");
    return !call->bare || fr_call_begins_name(call->tools, name, length) ? FR_CALL_ON : FR_CALL_FAULT;
}

static fr_call_verdict end_key(fr_reply_call *call) {
    fr_text key = tag_text(call, call->key.bytes ? call->key.bytes : "", call->key.length);
    if (key.length == 0) return FR_CALL_FAULT;
    memmove(call->key.bytes, key.bytes, key.length);
    call->key.bytes[call->key.length = key.length] = '\0';
    return is_glm(call) ? go(call, BEFORE_VALUE) : begin_value(call);
}

/* Returns true if the object has a member of this name. Before version 2.14, jansson has no function for names that do
 * not end with a NUL. */
static bool has_member(const json_t *object, fr_text name) {
    json_t *members = (json_t *)(uintptr_t)object; /* jansson's iterator accepts no const object */
    for (void *at = json_object_iter(members); at; at = json_object_iter_next(members, at)) {
        const char *key = json_object_iter_key(at);
        if (strlen(key) == name.length && memcmp(key, name.bytes, name.length) == 0) return true;
    }
    return false;
}

/* Returns true if a tag within a value begins another parameter. If the tool's parameters are known, the tag must name
 * one of them. Otherwise the tag may name any parameter, but must be on a new line. */
static bool is_next_key(const fr_reply_call *call, fr_text key) {
    const json_t *tool = fr_tool_find(call->tools, call->name.bytes);
    const json_t *properties = json_object_get(json_object_get(tool, "parameters"), "properties");
    bool same = key.length == call->key.length && memcmp(key.bytes, call->key.bytes, key.length) == 0;
    bool line = call->reopen > 0 && call->raw.bytes[call->reopen - 1] == '\n';
    if (key.length == 0) return false;
    return properties ? has_member(properties, key) && (line || !same) : line;
}

/* Decides, at the end of a key's tag within a value, if the value ended before the tag or includes it. */
static fr_call_verdict end_maybe_key(fr_reply_call *call, fr_mark by) {
    const char *tag = call->raw.bytes + call->reopen + strlen(call->format->marks[FR_MARK_KEY]);
    size_t behind = by == FR_MARK_NONE ? 1 : strlen(call->format->marks[by]);
    fr_text key = tag_text(call, tag, call->raw.length - behind - (size_t)(tag - call->raw.bytes));
    if (!is_next_key(call, key)) {
        reopen_value(call, 0);
        return FR_CALL_ON;
    }
    end_value(call, false);
    fr_call_clear(&call->key);
    fr_text_append(&call->key, key.bytes, key.length);
    if (call->key.status != FR_OK) return FR_CALL_FAULT;
    return is_glm(call) ? go(call, BEFORE_VALUE) : begin_value(call);
}

/* ------------------------------------------------------------------------------------------------------------ bytes */

static fr_call_verdict tagged_byte(fr_reply_call *call, char byte) {
    switch (call->state) {
    case BEGIN:
        if (fr_json_is_space(byte)) return FR_CALL_ON;
        if (call->section) return FR_CALL_PAST;
        call->bare = true;
        return name_byte(call, (call->state = NAME, byte));
    case NAME: return name_byte(call, byte);
    case KEY:
        if (!is_glm(call) && byte == '>') return end_key(call);
        return fr_call_take(&call->key, byte, FR_CALL_KEY_MAX) ? FR_CALL_ON : FR_CALL_FAULT;
    case MAYBE_KEY:
        if (!is_glm(call) && byte == '>') return end_maybe_key(call, FR_MARK_NONE);
        if (byte != '\n' && call->raw.length - call->reopen <= FR_CALL_NAME_MAX) return FR_CALL_ON;
        reopen_value(call, 0);
        return FR_CALL_ON;
    case MAYBE_BETWEEN:
    case MAYBE_END:
    case MAYBE_AFTER:
        if (fr_json_is_space(byte)) return FR_CALL_ON;
        reopen_value(call, 1);
        /* fallthrough */
    case VALUE: value_byte(call, byte); return FR_CALL_ON;
    case BEFORE_NAME: /* models that know this form and the JSON form sometimes write JSON here */
        if (begins_json(byte)) return fr_call_begin_json(call, byte);
        /* fallthrough */
    default: return fr_json_is_space(byte) ? FR_CALL_ON : FR_CALL_FAULT;
    }
}

/* ------------------------------------------------------------------------------------------------------------ marks */

/* Ends the function. Other functions may follow until the mark that ends the call. */
static fr_call_verdict end_function(fr_reply_call *call, fr_mark mark) {
    fr_call_close_arguments(call);
    if (mark == FR_MARK_NAME_END)
        call->section = call->bare ? WITHOUT_CALL : WITHIN_CALL;
    else
        call->section = 0;
    return FR_CALL_DONE;
}

static fr_call_verdict between_mark(fr_reply_call *call, fr_mark mark) {
    if (mark == end_mark(call)) return end_function(call, mark);
    if (mark != FR_MARK_KEY) return FR_CALL_FAULT;
    fr_call_clear(&call->key);
    return go(call, KEY);
}

static fr_call_verdict value_mark(fr_reply_call *call, fr_mark mark) {
    int state = mark == FR_MARK_VALUE_END  ? MAYBE_BETWEEN
                : mark == FR_MARK_KEY      ? MAYBE_KEY
                : mark == FR_MARK_NAME_END ? MAYBE_END
                : mark == FR_MARK_CALL_END ? MAYBE_AFTER
                                           : VALUE;
    if (state == VALUE) return FR_CALL_TEXT;
    call->reopen = call->raw.length - strlen(call->format->marks[mark]);
    return go(call, state);
}

/* Continues the value, because this mark can't follow the tag that seemed to end it. */
static fr_call_verdict reopen_before_mark(fr_reply_call *call, fr_mark mark) {
    reopen_value(call, strlen(call->format->marks[mark]));
    return value_mark(call, mark);
}

static fr_call_verdict maybe_mark(fr_reply_call *call, fr_mark mark) {
    bool another = mark == FR_MARK_CALL || mark == FR_MARK_NAME;
    switch (call->state) {
    case MAYBE_KEY: return mark == FR_MARK_KEY_END ? end_maybe_key(call, mark) : reopen_before_mark(call, mark);
    case MAYBE_BETWEEN:
        if (mark != FR_MARK_KEY && mark != FR_MARK_NAME_END && mark != FR_MARK_CALL_END) break;
        end_value(call, true);
        return mark == FR_MARK_KEY ? between_mark(call, mark) : end_function(call, mark);
    case MAYBE_END:
        if (mark != FR_MARK_CALL_END && !another) break;
        end_value(call, false);
        end_function(call, another ? FR_MARK_NAME_END : mark);
        return another ? FR_CALL_WHOLE : FR_CALL_DONE;
    default:
        if (!another) break;
        end_value(call, false);
        end_function(call, FR_MARK_CALL_END);
        return FR_CALL_WHOLE;
    }
    return reopen_before_mark(call, mark);
}

/* Reads a mark before a function: the mark of a call, or the function's own mark. The function's own mark may come
 * directly after another function, or without the mark of a call. */
static fr_call_verdict begin_mark(fr_reply_call *call, fr_mark mark) {
    if (mark == FR_MARK_NAME) {
        if (!call->section) call->bare = true;
        return go(call, NAME);
    }
    if (call->section) return mark == FR_MARK_CALL_END ? FR_CALL_OVER : FR_CALL_PAST;
    return mark == FR_MARK_CALL ? go(call, is_glm(call) ? NAME : BEFORE_NAME) : FR_CALL_FAULT;
}

static fr_call_verdict tagged_mark(fr_reply_call *call, fr_mark mark) {
    switch (call->state) {
    case BEGIN: return begin_mark(call, mark);
    case BEFORE_NAME: return mark == FR_MARK_NAME ? go(call, NAME) : FR_CALL_FAULT;
    case NAME: return is_glm(call) && end_name(call) ? between_mark(call, mark) : FR_CALL_FAULT;
    case BETWEEN: return between_mark(call, mark);
    case KEY: return mark == FR_MARK_KEY_END ? end_key(call) : FR_CALL_FAULT;
    case BEFORE_VALUE: return mark == FR_MARK_VALUE ? begin_value(call) : FR_CALL_FAULT;
    case VALUE: return value_mark(call, mark);
    default: return maybe_mark(call, mark);
    }
}

/* Ends a call at the end of the reply. The text counts as a call only if the reply ended after a tag that may have
 * ended the function or the call. */
static fr_call_verdict tagged_finish(fr_reply_call *call) {
    if (call->state == BEGIN && call->section) return FR_CALL_OVER;
    if (call->state != MAYBE_END && call->state != MAYBE_AFTER) return FR_CALL_FAULT;
    end_value(call, false);
    return end_function(call, FR_MARK_CALL_END);
}

/* When the reply was cut off within the call, appends the value that was being collected to the arguments. (A value is
 * collected if its type is not known.) */
static void tagged_cut(fr_reply_call *call) {
    bool collected = call->state >= VALUE && call->types != FR_VALUE_STRING;
    if (collected) fr_text_append(&call->arguments, call->value.bytes ? call->value.bytes : "", call->value.length);
}

const fr_call_reader fr_read_tagged_call = {tagged_byte, tagged_mark, tagged_finish, tagged_cut};
