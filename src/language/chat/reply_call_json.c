/* Reads calls that are JSON objects: those of Hermes and its like, those of Llama 3, and the lists of Mistral, Granite,
 * Phi-4 and Command. An object or a list is enclosed by two marks, or follows one mark. Without a mark it must be the
 * whole reply.
 *
 * An object's members may have any order. Arguments that come before the name are kept until the name is known. */
#include <string.h>

#include "formats/json_read.h"
#include "src/language/chat/reply_call.h"
#include "src/language/chat/reply_forms.h"

enum {
    BEGIN,
    LEAD,    /* before an object: after the mark, or in a list */
    FENCE,   /* inside the word json, which follows the three backticks before Command R's list */
    OPENING, /* the opening backticks of a fence that the model put around its objects */
    LANGUAGE,
    CLOSING, /* the closing backticks of that fence */
    OBJECT,
    CLOSE,  /* the second brace of }} must follow, because the object began with two braces */
    AFTER,  /* after the object: its closing mark must follow */
    ENDED,  /* after the list: its closing mark may follow */
    UNWRAP, /* after the list: the brace that closes the object around it must follow */
    METHOD_NAME,
    METHOD, /* after a method's name, before its arguments */
    KEY,
    EQUALS,
    VALUE,
    QUOTED, /* after a quote that may have ended the value */
};
enum { FIELD_OTHER, FIELD_NAME, FIELD_ARGUMENTS, FIELD_ID, FIELD_NUMBER, FIELD_CALLS, FIELD_FUNCTION };
/* Kinds of sections. IN_LIST: objects in a list. IN_ROW: objects one after the other, without marks between them.
 * IN_WRAPPED_LIST: a list that is the only member of an object. IN_WRAPPER: an object that is the only member of
 * another object. */
enum { IN_LIST = 1, IN_ROW, IN_WRAPPED_LIST, IN_WRAPPER };

/* ------------------------------------------------------------------------------------------------------- the object */

static fr_call_verdict lead_byte(fr_reply_call *call, char byte);

static int field_of(const fr_reply_call *call) {
    static const struct {
        const char *key;
        int field;
    } fields[] = {{"name", FIELD_NAME},           {"tool_name", FIELD_NAME},
                  {"arguments", FIELD_ARGUMENTS}, {"parameters", FIELD_ARGUMENTS},
                  {"function", FIELD_FUNCTION},   {"id", FIELD_ID},
                  {"tool_call_id", FIELD_NUMBER}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcmp(call->key.bytes, fields[i].key) == 0) return fields[i].field;
    bool calls = strcmp(call->key.bytes, "tool_calls") == 0 || strcmp(call->key.bytes, "tool_call") == 0;
    bool first = !call->named && !call->given && !call->wrapped && !call->listed;
    return calls && first && call->format->form == &fr_generic_call_form ? FIELD_CALLS : FIELD_OTHER;
}

/* Returns true if the object may have this key (call->key). An object without a mark around it is a call only if all
 * its keys are keys that calls have. */
static bool key_may_be(const fr_reply_call *call) {
    bool bare = call->bare || call->reader == &fr_read_llama_call;
    return call->field != FIELD_OTHER || !bare || strcmp(call->key.bytes, "type") == 0;
}

static bool begin_field(fr_reply_call *call, char byte) {
    bool string = byte == '"' || byte == '\'';
    fr_call_clear(&call->value);
    call->writer = (fr_json_writer){0};
    call->in_field = true;
    switch (call->field) {
    case FIELD_NAME: return string && !call->named;
    case FIELD_ID: return string;
    case FIELD_ARGUMENTS: return (string || byte == '{' || byte == 'n' || byte == 'N') && !call->given;
    default: return true;
    }
}

static size_t field_limit(const fr_reply_call *call) {
    return call->field == FIELD_ARGUMENTS ? FR_CALL_MAX : FR_CALL_NAME_MAX + 2;
}

/* Reads a byte of a member. If the arguments are an object, their bytes are passed on at once; other values are
 * collected. */
static bool take_field(fr_reply_call *call, const fr_json_scan *before, char byte) {
    if (call->field == FIELD_OTHER || call->field == FIELD_NUMBER) return true;
    bool object = call->field == FIELD_ARGUMENTS && (call->arguments.length > 0 || byte == '{') && !call->value.length;
    fr_text_buffer *text = object ? &call->arguments : &call->value;
    fr_value_put_json(text, &call->writer, before, byte);
    return text->status == FR_OK && text->length <= field_limit(call);
}

/* Decodes a JSON string. NULL: it is not valid, or memory ran out; in the latter case the buffer's status says so. */
static json_t *decode(fr_text_buffer *text) {
    bool lost;
    json_t *string = fr_json_read_text(text->bytes, text->length, JSON_DECODE_ANY | JSON_ALLOW_NUL, &lost);
    if (lost) text->status = FR_MEMORY;
    return string;
}

static bool is_blank(const json_t *text) {
    const char *bytes = json_string_value(text);
    size_t length = json_string_length(text), begin = 0;
    while (begin < length && fr_json_is_space(bytes[begin])) begin++;
    return text && begin == length;
}

/* Ends the arguments. They are an object, null, a blank string, or a string that contains the object as text. */
static bool end_arguments(fr_reply_call *call) {
    call->given = true;
    if (call->value.length == 0) return true;
    json_t *text = call->value.bytes[0] == 'n' ? NULL : decode(&call->value);
    if (call->value.bytes[0] == 'n' || is_blank(text)) {
        fr_text_append_string(&call->arguments, "{}");
        json_decref(text);
        return true;
    }
    fr_call_verdict verdict = FR_CALL_FAULT;
    call->given = false;
    fr_json_scan outer = call->scan;
    call->scan = (fr_json_scan){.loose = true};
    call->writer = (fr_json_writer){0};
    for (size_t i = 0; i < json_string_length(text); i++) {
        verdict = fr_call_object_byte(call, json_string_value(text)[i]);
        if (verdict == FR_CALL_FAULT) break;
    }
    call->scan = outer;
    json_decref(text);
    return call->given && verdict != FR_CALL_FAULT;
}

static bool end_field(fr_reply_call *call) {
    call->in_field = false;
    if (call->field == FIELD_ARGUMENTS) return end_arguments(call);
    if (call->field == FIELD_OTHER || call->field == FIELD_NUMBER) return true;
    json_t *text = decode(&call->value);
    const char *bytes = json_string_value(text);
    bool good = text && strlen(bytes) == json_string_length(text);
    if (good && call->field == FIELD_NAME) good = fr_call_set_name(call, bytes, strlen(bytes));
    if (good && call->field == FIELD_ID && call->id.length == 0) fr_text_append_string(&call->id, bytes);
    json_decref(text);
    return good;
}

/* Reads a byte of a key in the outermost object. */
static bool take_key(fr_reply_call *call, const fr_json_scan *before, char byte) {
    if (before->state == FR_SCAN_KEY || before->state == FR_SCAN_KEY_OR_END) {
        if (call->scan.state == FR_SCAN_STRING) fr_call_clear(&call->key);
        return true;
    }
    if (call->scan.state != FR_SCAN_COLON) return fr_call_take(&call->key, byte, FR_CALL_KEY_MAX);
    fr_text_append(&call->key, "", 0); /* makes sure that even an empty key has bytes */
    if (call->key.status != FR_OK) return false;
    call->field = field_of(call);
    return key_may_be(call);
}

static bool is_in_key(const fr_json_scan *scan) {
    bool string = scan->state == FR_SCAN_STRING || scan->state == FR_SCAN_ESCAPE || scan->state == FR_SCAN_HEX;
    return scan->state == FR_SCAN_KEY || scan->state == FR_SCAN_KEY_OR_END || (string && scan->key);
}

/* Begins to read the value of an object's only member. The value is a call or a list of calls, and is read as if the
 * outer object were missing. */
static fr_call_verdict unwrap(fr_reply_call *call, char byte) {
    call->scan = (fr_json_scan){.loose = true};
    call->wrapped = true;
    call->state = LEAD;
    return lead_byte(call, byte);
}

/* Begins the member "function". Its value is the function's name. It may also be an object with the members of the
 * call, as in OpenAI's requests. */
static void begin_function(fr_reply_call *call, char byte) {
    bool string = byte == '"' || byte == '\'';
    call->near = true;
    call->inner = byte == '{';
    call->field = string && !call->named ? FIELD_NAME : FIELD_OTHER;
}

static fr_call_verdict member_byte(fr_reply_call *call, char byte) {
    fr_json_scan before = call->scan;
    fr_scan_result result = fr_json_scan_byte(&call->scan, byte);
    if (result == FR_SCAN_BAD) return FR_CALL_FAULT;
    bool outermost = before.depth == 1u + call->inner, good = true;
    if (outermost && is_in_key(&before)) good = take_key(call, &before, byte);
    bool begins = good && outermost && before.state == FR_SCAN_VALUE && !fr_json_is_space(byte);
    if (begins && call->field == FIELD_CALLS) return unwrap(call, byte);
    if (begins && call->field == FIELD_FUNCTION) begin_function(call, byte);
    if (begins && !(call->inner && before.depth == 1)) good = begin_field(call, byte);
    if (good && call->in_field) {
        good = take_field(call, &before, byte);
        bool ended = call->scan.depth == 0 || call->scan.state == FR_SCAN_AFTER || call->scan.state == FR_SCAN_KEY;
        if (good && ended && call->scan.depth <= 1u + call->inner) good = end_field(call);
    }
    if (call->inner && call->scan.depth == 1) call->inner = false;
    if (!good) return FR_CALL_FAULT;
    return result == FR_SCAN_DONE ? FR_CALL_DONE : FR_CALL_ON;
}

/* Returns true for the second brace of {{...}}, which is not JSON. Qwen2.5-Coder's own template shows calls in this
 * form, so the model writes them. */
static bool doubles(fr_reply_call *call, char byte) {
    bool doubled = byte == '{' && call->scan.depth == 1 && call->scan.state == FR_SCAN_KEY_OR_END && !call->doubled;
    call->doubled |= doubled;
    return doubled;
}

/* ------------------------------------------------------------------------------------------- text around the object */

static fr_call_verdict go(fr_reply_call *call, int state) {
    call->state = state;
    return FR_CALL_ON;
}

static bool has_end(const fr_reply_call *call) {
    return call->format->marks[FR_MARK_CALL_END] != NULL;
}

/* Returns true for a call in Llama's form without its opening mark. Such a call needs no closing mark, even if the form
 * has one. */
static bool stands_bare(const fr_reply_call *call) {
    return call->bare && call->reader == &fr_read_llama_call;
}

/* Ends the object. A call without an opening mark must be the whole reply, or its closing mark must follow. Llama's
 * calls need neither. */
static fr_call_verdict end_object(fr_reply_call *call) {
    bool may_lack = !call->bare && call->reader != &fr_read_llama_call;
    if (!call->named || (!call->given && !may_lack)) return FR_CALL_FAULT;
    if (!call->given) fr_text_append_string(&call->arguments, "{}");
    if (call->listed || call->wrapped) {
        call->section = !call->wrapped ? IN_LIST : call->listed ? IN_WRAPPED_LIST : IN_WRAPPER;
        return FR_CALL_DONE;
    }
    if (has_end(call) && !stands_bare(call)) {
        call->section = 0;
        return go(call, AFTER);
    }
    call->section = IN_ROW;
    return FR_CALL_DONE;
}

/* Reads a byte of the object. An object without an opening mark before it is a call only if it names one of the tools,
 * because a reply may simply be JSON. */
static fr_call_verdict object_byte(fr_reply_call *call, char byte) {
    if (doubles(call, byte)) return FR_CALL_ON;
    bool named = call->named;
    fr_call_verdict verdict = member_byte(call, byte);
    if (call->named && !named && !fr_call_is_offered(call)) return FR_CALL_FAULT;
    if (verdict != FR_CALL_DONE) return verdict;
    return call->doubled ? go(call, CLOSE) : end_object(call);
}

/* Reads the text before an object, in which a list may begin. */
static fr_call_verdict lead_byte(fr_reply_call *call, char byte) {
    if (fr_json_is_space(byte)) return FR_CALL_ON;
    bool marked = !call->bare && has_end(call) && !call->listed;
    if (byte == '[' && !call->listed && (marked || call->format->form->lists)) {
        call->listed = true;
        call->near |= !call->format->form->lists;
        return go(call, LEAD);
    }
    if (byte == '`' && marked && !call->fenced) {
        call->near = true;
        call->literal = "``";
        return go(call, OPENING);
    }
    if (byte != '{') return FR_CALL_FAULT;
    call->state = OBJECT;
    return object_byte(call, byte);
}

/* Reads the text between a call and the next one of the same section. */
static fr_call_verdict next_byte(fr_reply_call *call, char byte) {
    call->wrapped = call->section == IN_WRAPPED_LIST || call->section == IN_WRAPPER;
    call->listed = call->section == IN_LIST || call->section == IN_WRAPPED_LIST;
    if (fr_json_is_space(byte)) return FR_CALL_ON;
    if (call->section == IN_WRAPPER) return byte == '}' ? FR_CALL_OVER : FR_CALL_FAULT;
    if (byte == ']' && call->wrapped) return go(call, UNWRAP);
    if (call->section == IN_ROW && has_end(call)) call->near = true;
    if (byte == '{') return lead_byte(call, byte);
    if (byte == ']' && call->listed) return has_end(call) ? go(call, ENDED) : FR_CALL_OVER;
    bool separates = !call->comma && (byte == ',' || (byte == ';' && !call->listed));
    call->comma = true;
    return separates ? FR_CALL_ON : FR_CALL_FAULT;
}

/* Reads a fence's language, which may be missing, up to the line break or the object. */
static fr_call_verdict language_byte(fr_reply_call *call, char byte) {
    bool begins = byte == '{' || byte == '[';
    call->fenced = begins || byte == '\n';
    if (begins) return lead_byte(call, byte);
    if (call->fenced) return go(call, LEAD);
    bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
    return letter || fr_json_is_space(byte) ? FR_CALL_ON : FR_CALL_FAULT;
}

/* Reads the text between an object and its closing mark. Instead of the mark, another object may follow. */
static fr_call_verdict after_byte(fr_reply_call *call, char byte) {
    bool separates = !call->bare && !call->comma && (byte == ',' || byte == ';');
    if (fr_json_is_space(byte)) return FR_CALL_ON;
    if (byte == '{' && (!call->bare || call->alone)) {
        call->section = call->bare ? 0 : IN_ROW;
        return FR_CALL_WHOLE;
    }
    call->comma |= separates;
    return separates ? FR_CALL_ON : FR_CALL_FAULT;
}

static fr_call_verdict json_byte(fr_reply_call *call, char byte) {
    if (byte == '`' && call->fenced && (call->state == AFTER || call->state == ENDED)) {
        call->literal = "``";
        return go(call, CLOSING);
    }
    switch (call->state) {
    case BEGIN:
        if (call->section) return next_byte(call, byte);
        if (fr_json_is_space(byte)) return FR_CALL_ON;
        call->bare = true;
        if (!call->alone && (!has_end(call) || stands_bare(call))) return FR_CALL_FAULT;
        /* fallthrough */
    case LEAD: return lead_byte(call, byte);
    case FENCE:
        if (byte != *call->literal++) return FR_CALL_FAULT;
        return go(call, *call->literal ? FENCE : LEAD);
    case OPENING:
    case CLOSING:
        if (byte != *call->literal++) return FR_CALL_FAULT;
        if (*call->literal) return FR_CALL_ON;
        call->fenced = false;
        return go(call, call->state == OPENING ? LANGUAGE : call->listed ? ENDED : AFTER);
    case LANGUAGE: return language_byte(call, byte);
    case OBJECT: return object_byte(call, byte);
    case CLOSE: return byte == '}' ? end_object(call) : FR_CALL_FAULT;
    case UNWRAP:
        if (fr_json_is_space(byte)) return FR_CALL_ON;
        return byte == '}' ? FR_CALL_OVER : FR_CALL_FAULT;
    case AFTER: return after_byte(call, byte);
    default: return fr_json_is_space(byte) ? FR_CALL_ON : FR_CALL_PAST;
    }
}

static fr_call_verdict json_mark(fr_reply_call *call, fr_mark mark) {
    bool begins = mark == FR_MARK_CALL || mark == FR_MARK_CALLS, ends = mark == FR_MARK_CALL_END;
    if (call->state == OBJECT && call->scan.state == FR_SCAN_STRING) return FR_CALL_TEXT;
    if (call->state == BEGIN && begins && !call->section) return go(call, LEAD);
    bool fence = ends && call->format->marks[mark][0] == '`';
    if (call->state == LEAD && fence && !call->listed && !call->literal) {
        call->literal = "json";
        return go(call, FENCE);
    }
    if (call->state == OBJECT && ends) {
        fr_call_verdict closed = fr_call_close_object(call, object_byte);
        call->section = 0;
        if (closed != FR_CALL_ON) return closed;
    }
    if (call->state == AFTER && ends) return FR_CALL_DONE;
    if (call->state == AFTER && begins && !call->bare) return FR_CALL_WHOLE;
    if (call->state == ENDED || (call->state == BEGIN && call->section)) return ends ? FR_CALL_OVER : FR_CALL_PAST;
    return FR_CALL_FAULT;
}

static fr_call_verdict json_finish(fr_reply_call *call) {
    bool over = call->state == ENDED || call->state == UNWRAP || (call->state == BEGIN && call->section);
    if (over) return FR_CALL_OVER;
    return call->state == AFTER && (!call->bare || call->alone) ? FR_CALL_DONE : FR_CALL_FAULT;
}

const fr_call_reader fr_read_json_call = {json_byte, json_mark, json_finish, NULL};

fr_call_verdict fr_call_begin_json(fr_reply_call *call, char byte) {
    call->reader = &fr_read_json_call;
    if (call->bare && !call->alone && !has_end(call)) return FR_CALL_FAULT;
    call->state = LEAD;
    return lead_byte(call, byte);
}

/* ------------------------------------------------------------------------------------------------------------ Llama */

/* Reads a byte of the name in NAME.call(KEY="VALUE", KEY="VALUE"), the form of Llama's built-in tools. */
static fr_call_verdict method_name_byte(fr_reply_call *call, char byte) {
    if (byte != '.') return fr_call_take(&call->value, byte, FR_CALL_NAME_MAX) ? FR_CALL_ON : FR_CALL_FAULT;
    call->state = METHOD;
    call->literal = "call(";
    return fr_call_set_name(call, call->value.bytes, call->value.length) ? FR_CALL_ON : FR_CALL_FAULT;
}

static fr_call_verdict method_byte(fr_reply_call *call, char byte) {
    if (byte != *call->literal++) return FR_CALL_FAULT;
    if (*call->literal) return FR_CALL_ON;
    fr_call_open_arguments(call);
    call->state = KEY;
    return FR_CALL_ON;
}

static fr_call_verdict end_method(fr_reply_call *call) {
    fr_call_close_arguments(call);
    return FR_CALL_DONE;
}

static fr_call_verdict key_byte(fr_reply_call *call, char byte) {
    bool empty = call->key.length == 0;
    if (byte == ')' && empty && call->first) return end_method(call);
    if (fr_json_is_space(byte) && empty) return FR_CALL_ON;
    if (byte == '=' && !empty) {
        call->state = EQUALS;
        return FR_CALL_ON;
    }
    if ((unsigned char)byte <= ' ' || strchr("\"'(),=", byte)) return FR_CALL_FAULT;
    return fr_call_take(&call->key, byte, FR_CALL_KEY_MAX) ? FR_CALL_ON : FR_CALL_FAULT;
}

static fr_call_verdict equals_byte(fr_reply_call *call, char byte) {
    if (byte != '"') return FR_CALL_FAULT;
    fr_call_put_key(call, call->key.bytes, call->key.length);
    fr_call_clear(&call->key);
    fr_text_append_string(&call->arguments, "\"");
    call->state = VALUE;
    return FR_CALL_ON;
}

/* Reads a byte of a value. Values are not escaped: a quote ends a value only if a comma or the closing parenthesis
 * follows the quote. */
static fr_call_verdict value_byte(fr_reply_call *call, char byte) {
    if (call->state == QUOTED && (byte == ',' || byte == ')')) {
        fr_text_append_string(&call->arguments, "\"");
        call->state = KEY;
        return byte == ')' ? end_method(call) : FR_CALL_ON;
    }
    if (call->state == QUOTED) fr_value_put_escaped(&call->arguments, "\"", 1);
    call->state = byte == '"' ? QUOTED : VALUE;
    if (byte != '"') fr_value_put_escaped(&call->arguments, &byte, 1);
    return FR_CALL_ON;
}

static fr_call_verdict llama_byte(fr_reply_call *call, char byte) {
    switch (call->state) {
    case BEGIN: /* Llama 3.2 and 4 also write a list of calls in Python's form */
        if (byte != '[' || call->section || !call->alone) return json_byte(call, byte);
        call->bare = true;
        return fr_call_begin_python(call, byte);
    case LEAD:
        if (byte == '[') return fr_call_begin_python(call, byte);
        if (fr_json_is_space(byte) || byte == '{') return lead_byte(call, byte);
        call->state = METHOD_NAME;
        /* fallthrough */
    case METHOD_NAME: return method_name_byte(call, byte);
    case METHOD: return method_byte(call, byte);
    case KEY: return key_byte(call, byte);
    case EQUALS: return equals_byte(call, byte);
    case VALUE:
    case QUOTED: return value_byte(call, byte);
    default: return json_byte(call, byte);
    }
}

static fr_call_verdict llama_mark(fr_reply_call *call, fr_mark mark) {
    return call->state == VALUE || call->state == QUOTED ? FR_CALL_TEXT : json_mark(call, mark);
}

const fr_call_reader fr_read_llama_call = {llama_byte, llama_mark, json_finish, NULL};
