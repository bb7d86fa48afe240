/* Reads harmony's headers, and its calls (reply_harmony.h, reply_call.h). */
#include "src/language/chat/reply_harmony.h"

#include <string.h>

#include "base/unicode_form.h"
#include "src/language/chat/reply_call.h"

/* ---------------------------------------------------------------------------------------------------------- headers */

/* Finds the word after a mark, up to white space, which may be a Unicode character, and gives its length. 0: there is
 * no such mark. */
static size_t word_behind(const char *header, size_t length, const char *mark, const char **word) {
    const char *found = memmem(header, length, mark, strlen(mark));
    if (!found) return 0;
    *word = found + strlen(mark);
    size_t begin = (size_t)(*word - header), end = begin;
    while (end < length && header[end] != '<' && fr_skip_space(header, end, length) == end) end++;
    return end - begin;
}

bool fr_harmony_is_tool(const json_t *tools, const char *name, size_t length) {
    for (size_t i = 0; i < json_array_size(tools); i++) {
        const char *own = fr_tool_name_of(json_array_get(tools, i));
        if (own && strlen(own) == length && memcmp(own, name, length) == 0) return true;
    }
    return false;
}

/* Gives the length of a function's name. If the model wrote another word directly after the name, that word is not
 * counted. */
static size_t name_length(const json_t *tools, const char *name, size_t length) {
    static const char *const glued[] = {"json", "code", "commentary"};
    if (fr_harmony_is_tool(tools, name, length)) return length;
    for (size_t i = 0; i < sizeof glued / sizeof *glued; i++) {
        size_t tail = strlen(glued[i]);
        bool ends = length > tail && memcmp(name + length - tail, glued[i], tail) == 0;
        if (ends && fr_harmony_is_tool(tools, name, length - tail)) return length - tail;
    }
    for (size_t end = length; end > 0; end--) /* the word after the name may begin with characters that names can't
                                               * have */
        if ((name[end - 1] & 0x80) && fr_harmony_is_tool(tools, name, end - 1)) return end - 1;
    return length;
}

fr_harmony_body fr_harmony_header(const char *header, size_t length, const json_t *tools, const char **function,
                                  size_t *function_length) {
    static const char analysis[] = "analysis", functions[] = "functions.";
    const char *channel;
    *function_length = word_behind(header, length, "to=", function);
    bool space = *function_length > sizeof functions - 1 && memcmp(*function, functions, sizeof functions - 1) == 0;
    if (space) {
        *function += sizeof functions - 1;
        *function_length -= sizeof functions - 1;
    }
    if (*function_length > 0) *function_length = name_length(tools, *function, *function_length);
    if (space || (*function_length > 0 && fr_harmony_is_tool(tools, *function, *function_length)))
        return FR_HARMONY_CALL;
    size_t size = word_behind(header, length, "<|channel|>", &channel);
    bool thinks = size == sizeof analysis - 1 && memcmp(channel, analysis, size) == 0;
    return thinks ? FR_HARMONY_REASONING : FR_HARMONY_CONTENT;
}

/* ------------------------------------------------------------------------------------------------------------ calls */

enum { OBJECT, AFTER };

/* Reads a byte of the body, which is the arguments. */
static fr_call_verdict harmony_byte(fr_reply_call *call, char byte) {
    if (call->state == AFTER) return fr_json_is_space(byte) ? FR_CALL_ON : FR_CALL_FAULT;
    fr_call_verdict verdict = fr_call_object_byte(call, byte);
    if (verdict == FR_CALL_DONE) call->state = AFTER;
    return verdict == FR_CALL_FAULT ? verdict : FR_CALL_ON;
}

static fr_call_verdict harmony_mark(fr_reply_call *call, fr_mark mark) {
    bool ends = mark == FR_MARK_CALL_END || mark == FR_MARK_BODY_END || mark == FR_MARK_RETURN;
    if (call->state == OBJECT && call->scan.state == FR_SCAN_STRING) return FR_CALL_FAULT;
    if (call->state == OBJECT && ends && fr_call_has_nothing(call)) {
        fr_text_append_string(&call->arguments, "{}");
        return FR_CALL_DONE;
    }
    if (call->state == OBJECT && ends) fr_call_close_object(call, harmony_byte);
    return ends && call->state == AFTER ? FR_CALL_DONE : FR_CALL_FAULT;
}

static fr_call_verdict harmony_finish(fr_reply_call *call) {
    return call->state == AFTER ? FR_CALL_DONE : FR_CALL_FAULT;
}

const fr_call_reader fr_read_harmony_call = {harmony_byte, harmony_mark, harmony_finish, NULL};
