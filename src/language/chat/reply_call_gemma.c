/* Reads Gemma 4's calls: call:NAME{KEY:VALUE,...}, with keys without quotes, strings between two quote marks (a token
 * of the model), and lists and objects within each other. Small and quantized models also write strings and keys in
 * plain quotes, a comma after the last item of a list or an object, and white space before the first brace.
 *
 * Arguments become JSON while they are read. The reader is an automaton, with a bit for each object or list that is
 * open. */
#include <string.h>

#include "src/language/chat/reply_call.h"

enum {
    BEGIN,
    PREFIX, /* within the text "call:" */
    NAME,
    BRACE, /* after a name and white space; the first brace must follow */
    KEY_OR_END,
    KEY,
    COLON,
    VALUE_OR_END,
    VALUE,
    STRING,       /* between two quote marks */
    QUOTED_KEY,   /* in a key between two quote marks */
    PLAIN_STRING, /* within plain quotes, as JSON or Python writes them */
    PLAIN_KEY,    /* in a key in plain quotes */
    PLAIN_KEY_ESCAPE,
    WORD, /* a number, true, false or null */
    NEXT, /* a comma or the end of the container must follow */
    AFTER,
};

static fr_call_verdict go(fr_reply_call *call, int state) {
    call->state = state;
    return FR_CALL_ON;
}

static fr_call_verdict put(fr_reply_call *call, const char *text, int state) {
    fr_text_append_string(&call->arguments, text);
    return go(call, state);
}

/* Writes a comma that was held back until something follows it. */
static void put_comma(fr_reply_call *call) {
    if (call->comma) fr_text_append_string(&call->arguments, ",");
    call->comma = false;
}

static fr_call_verdict begin_string(fr_reply_call *call, int state) {
    put_comma(call);
    return put(call, "\"", state);
}

/* ------------------------------------------------------------------------------------------------------- containers */

static bool in_object(const fr_reply_call *call) {
    return (call->scan.objects >> (call->scan.depth - 1) & 1) != 0;
}

static fr_call_verdict open_container(fr_reply_call *call, bool object) {
    if (call->scan.depth == FR_SCAN_DEPTH) return FR_CALL_FAULT;
    put_comma(call);
    uint64_t bit = (uint64_t)1 << call->scan.depth++;
    call->scan.objects = object ? call->scan.objects | bit : call->scan.objects & ~bit;
    return put(call, object ? "{" : "[", object ? KEY_OR_END : VALUE_OR_END);
}

static fr_call_verdict close_container(fr_reply_call *call, char byte) {
    if (in_object(call) != (byte == '}')) return FR_CALL_FAULT;
    bool outermost = --call->scan.depth == 0;
    call->comma = false;
    return put(call, byte == '}' ? "}" : "]", outermost ? AFTER : NEXT);
}

static fr_call_verdict next_byte(fr_reply_call *call, char byte) {
    if (fr_json_is_space(byte)) return FR_CALL_ON;
    if (byte == '}' || byte == ']') return close_container(call, byte);
    if (byte != ',') return FR_CALL_FAULT;
    fr_call_clear(&call->key);
    call->comma = true;
    return go(call, in_object(call) ? KEY_OR_END : VALUE_OR_END);
}

/* -------------------------------------------------------------------------------------------------- keys and values */

static fr_call_verdict put_key(fr_reply_call *call) {
    put_comma(call);
    fr_text_append_string(&call->arguments, "\"");
    fr_value_put_escaped(&call->arguments, call->key.bytes, call->key.length);
    fr_call_clear(&call->key);
    return put(call, "\":", VALUE);
}

static fr_call_verdict key_byte(fr_reply_call *call, char byte) {
    bool empty = call->key.length == 0;
    if (empty && fr_json_is_space(byte)) return FR_CALL_ON;
    if (empty && byte == '}' && call->state == KEY_OR_END) return close_container(call, byte);
    if (empty && (byte == '"' || byte == '\'')) {
        call->scan.quote = byte; /* keys use only this member of the scan */
        return go(call, PLAIN_KEY);
    }
    if (byte == ':') return empty ? FR_CALL_FAULT : put_key(call);
    if (strchr("{}[],\"", byte) || (unsigned char)byte < ' ') return FR_CALL_FAULT;
    call->state = KEY;
    return fr_call_take(&call->key, byte, FR_CALL_KEY_MAX) ? FR_CALL_ON : FR_CALL_FAULT;
}

static fr_call_verdict value_byte(fr_reply_call *call, char byte) {
    if (fr_json_is_space(byte)) return FR_CALL_ON;
    if (byte == '{' || byte == '[') return open_container(call, byte == '{');
    if (byte == ']' && call->state == VALUE_OR_END) return close_container(call, byte);
    if (byte == '"' || byte == '\'') {
        call->scan.state = FR_SCAN_STRING;
        call->scan.quote = byte;
        call->scan.python = byte == '\'';
        call->writer = (fr_json_writer){0};
        return begin_string(call, PLAIN_STRING);
    }
    if (strchr("]},:", byte)) return FR_CALL_FAULT;
    fr_call_clear(&call->value);
    fr_text_append(&call->value, &byte, 1);
    return go(call, WORD);
}

/* Reads a byte of a number or word. A word is one of JSON's words, or Python's None. A number that is too large for
 * JSON readers is written as a string. */
static fr_call_verdict word_byte(fr_reply_call *call, char byte) {
    bool ends = fr_json_is_space(byte) || strchr(",]}", byte);
    if (!ends) return fr_call_take(&call->value, byte, FR_CALL_NAME_MAX) ? FR_CALL_ON : FR_CALL_FAULT;
    put_comma(call);
    size_t before = call->arguments.length;
    fr_value_put(&call->arguments, call->value.bytes, call->value.length,
                 FR_VALUE_NUMBER | FR_VALUE_BOOLEAN | FR_VALUE_NULL);
    bool string = call->arguments.status == FR_OK && call->arguments.bytes[before] == '"';
    if (string && !fr_value_is_too_big(call->value.bytes, call->value.length)) return FR_CALL_FAULT;
    call->state = NEXT;
    return next_byte(call, byte);
}

/* ------------------------------------------------------------------------------------------- texts in plain quotes */

/* Reads a byte of a string as JSON or Python writes it. */
static fr_call_verdict plain_byte(fr_reply_call *call, char byte) {
    const fr_json_scan before = call->scan;
    fr_json_scan_byte(&call->scan, byte);
    fr_value_put_json(&call->arguments, &call->writer, &before, byte);
    return go(call, call->scan.state == FR_SCAN_AFTER ? NEXT : PLAIN_STRING);
}

/* Reads a byte of a key in plain quotes. Only escapes of quotes and backslashes are allowed in it. */
static fr_call_verdict plain_key_byte(fr_reply_call *call, char byte) {
    bool escaped = call->state == PLAIN_KEY_ESCAPE;
    if (!escaped && byte == call->scan.quote) return go(call, COLON);
    if (!escaped && byte == '\\') return go(call, PLAIN_KEY_ESCAPE);
    if (escaped && byte != call->scan.quote && byte != '\\') return FR_CALL_FAULT;
    call->state = PLAIN_KEY;
    return fr_call_take(&call->key, byte, FR_CALL_KEY_MAX) ? FR_CALL_ON : FR_CALL_FAULT;
}

static bool in_plain_quotes(const fr_reply_call *call) {
    return call->state >= PLAIN_STRING && call->state <= PLAIN_KEY_ESCAPE;
}

/* Reads a mark within plain quotes. The quote mark is text there. A mark that begins or ends a call shows that the
 * closing quote is missing, so it is a fault. */
static fr_call_verdict plain_mark(fr_reply_call *call, fr_mark mark) {
    if (mark == FR_MARK_CALL || mark == FR_MARK_CALL_END) return FR_CALL_FAULT;
    if (mark != FR_MARK_QUOTE) return FR_CALL_TEXT;
    if (call->state != PLAIN_STRING || call->scan.state != FR_SCAN_STRING) return FR_CALL_FAULT;
    fr_value_end_unit(&call->arguments, &call->writer.half);
    fr_value_put_escaped(&call->arguments, call->format->marks[mark], strlen(call->format->marks[mark]));
    return FR_CALL_ON;
}

static fr_call_verdict name_byte(fr_reply_call *call, char byte) {
    if (fr_json_is_space(byte) && call->value.length > 0) return go(call, BRACE);
    if (byte == '{')
        return fr_call_set_name(call, call->value.bytes, call->value.length) && fr_call_is_offered(call)
                   ? open_container(call, true)
                   : FR_CALL_FAULT;
    if (call->state == BRACE) return FR_CALL_FAULT;
    return fr_call_take(&call->value, byte, FR_CALL_NAME_MAX) ? FR_CALL_ON : FR_CALL_FAULT;
}

/* -------------------------------------------------------------------------------------------------- bytes and marks */

static fr_call_verdict gemma_byte(fr_reply_call *call, char byte) {
    switch (call->state) {
    case BEGIN:
        if (fr_json_is_space(byte)) return FR_CALL_ON;
        call->bare = true;
        call->literal = "call:";
        call->state = PREFIX;
        /* fallthrough */
    case PREFIX:
        if (byte != *call->literal++) return FR_CALL_FAULT;
        return *call->literal ? FR_CALL_ON : go(call, NAME);
    case NAME:
    case BRACE: return name_byte(call, byte);
    case KEY_OR_END:
    case KEY: return key_byte(call, byte);
    case QUOTED_KEY: return fr_call_take(&call->key, byte, FR_CALL_KEY_MAX) ? FR_CALL_ON : FR_CALL_FAULT;
    case COLON:
        if (fr_json_is_space(byte)) return FR_CALL_ON;
        return byte == ':' ? put_key(call) : FR_CALL_FAULT;
    case VALUE_OR_END:
    case VALUE: return value_byte(call, byte);
    case STRING: fr_value_put_escaped(&call->arguments, &byte, 1); return FR_CALL_ON;
    case PLAIN_STRING: return plain_byte(call, byte);
    case PLAIN_KEY:
    case PLAIN_KEY_ESCAPE: return plain_key_byte(call, byte);
    case WORD: return word_byte(call, byte);
    case NEXT: return next_byte(call, byte);
    default: return fr_json_is_space(byte) && call->state == AFTER ? FR_CALL_ON : FR_CALL_FAULT;
    }
}

static fr_call_verdict quote_mark(fr_reply_call *call) {
    switch (call->state) {
    case KEY_OR_END:
    case KEY: return call->key.length == 0 ? go(call, QUOTED_KEY) : FR_CALL_FAULT;
    case QUOTED_KEY: return go(call, COLON);
    case VALUE_OR_END:
    case VALUE: return begin_string(call, STRING);
    case STRING: return put(call, "\"", NEXT);
    default: return FR_CALL_FAULT;
    }
}

static fr_call_verdict gemma_mark(fr_reply_call *call, fr_mark mark) {
    if (in_plain_quotes(call)) return plain_mark(call, mark);
    if (mark == FR_MARK_QUOTE) return quote_mark(call);
    if (call->state == STRING || call->state == QUOTED_KEY) return FR_CALL_TEXT;
    if (call->state == BEGIN && mark == FR_MARK_CALL) {
        call->literal = "call:";
        return go(call, PREFIX);
    }
    if (mark != FR_MARK_CALL_END) return FR_CALL_FAULT;
    if (call->state == NAME || call->state == BRACE) {
        call->near = true;
        if (name_byte(call, '{') == FR_CALL_FAULT) return FR_CALL_FAULT;
    }
    while (call->scan.depth > 0)
        if (gemma_byte(call, in_object(call) ? '}' : ']') == FR_CALL_FAULT) return FR_CALL_FAULT;
    return call->state == AFTER ? FR_CALL_DONE : FR_CALL_FAULT;
}

static fr_call_verdict gemma_finish(fr_reply_call *call) {
    return call->state == AFTER && (!call->bare || call->alone) ? FR_CALL_DONE : FR_CALL_FAULT;
}

static void gemma_cut(fr_reply_call *call) {
    if (call->state != WORD) return;
    put_comma(call);
    fr_text_append(&call->arguments, call->value.bytes, call->value.length);
}

const fr_call_reader fr_read_gemma_call = {gemma_byte, gemma_mark, gemma_finish, gemma_cut};
