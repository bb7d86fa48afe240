/* Harmony's headers, and its calls: see reply_harmony.h and reply_call.h. */
#include "src/chat/reply_harmony.h"

#include <string.h>

#include "src/chat/reply_call.h"

/* ---------------------------------------------------------------------------------------------------------- headers */

/* The word behind a mark; its length, 0: there is no such mark. */
static size_t word_behind(const char *header, size_t length, const char *mark, const char **word) {
    const char *found = memmem(header, length, mark, strlen(mark)), *end = header + length;
    if (!found) return 0;
    found += strlen(mark);
    *word = found;
    while (found < end && *found != '<' && !fr_json_is_space(*found)) found++;
    return (size_t)(found - *word);
}

fr_harmony_body fr_harmony_header(const char *header, size_t length, const char **function, size_t *function_length) {
    static const char analysis[] = "analysis", functions[] = "functions.";
    const char *channel;
    *function_length = word_behind(header, length, "to=", function);
    if (*function_length > sizeof functions - 1 && memcmp(*function, functions, sizeof functions - 1) == 0) {
        *function += sizeof functions - 1;
        *function_length -= sizeof functions - 1;
        return FR_HARMONY_CALL;
    }
    size_t size = word_behind(header, length, "<|channel|>", &channel);
    bool thinks = size == sizeof analysis - 1 && memcmp(channel, analysis, size) == 0;
    return thinks ? FR_HARMONY_REASONING : FR_HARMONY_CONTENT;
}

/* ------------------------------------------------------------------------------------------------------------ calls */

enum { OBJECT, AFTER };

/* The body, which is the arguments. */
static fr_call_verdict harmony_byte(fr_reply_call *call, char byte) {
    if (call->state == AFTER) return fr_json_is_space(byte) ? FR_CALL_ON : FR_CALL_FAULT;
    fr_call_verdict verdict = fr_call_object_byte(call, byte);
    if (verdict == FR_CALL_DONE) call->state = AFTER;
    return verdict == FR_CALL_FAULT ? verdict : FR_CALL_ON;
}

static fr_call_verdict harmony_mark(fr_reply_call *call, fr_mark mark) {
    bool ends = mark == FR_MARK_CALL_END || mark == FR_MARK_BODY_END || mark == FR_MARK_RETURN;
    return ends && call->state == AFTER ? FR_CALL_DONE : FR_CALL_FAULT;
}

static bool harmony_complete(const fr_reply_call *call) {
    return call->state == AFTER;
}

const fr_call_reader fr_read_harmony_call = {harmony_byte, harmony_mark, harmony_complete};
