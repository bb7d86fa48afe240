/* libFuzzer's target for the reader of replies. It gets any bytes, in pieces of any size, in each call format (the form
 * in which a model writes tool calls).
 *
 * In: a digit that chooses the call format, a letter that chooses how the reply is read, and the reply. The byte 0xff
 * ends a piece. A piece that begins with 0xfe is a control token. Out: a crash in four cases: a sanitizer finds an
 * error; the parts of the reply depend on where pieces end; bytes are lost although the reply is only content; or the
 * arguments of a call are not JSON. */
#include "base/text_buffer.h"
#include "src/language/chat/reply.h"
#include "tests/fuzz/harness.h"

enum { CUT = 0xff, CONTROL = 0xfe };

/* Excerpts of templates' sources. Each shows one call format. */
static const char *const sources[] = {
    "<|tool_call>call: <|channel>",
    "<｜tool▁call▁begin｜><｜tool▁sep｜></think>",
    "<tool_call><arg_key><think>",
    "<tool_call><function=<think>",
    "<tool_call>arguments<think>",
    "<|start_header_id|>\"parameters\"",
    "[THINK]",
    "<|tool_calls_section_begin|><think>",
    "<minimax:tool_call><think>",
    "<seed:tool_call><seed:think>",
    "[TOOL_CALLS][ARGS][THINK]",
    "[TOOL_CALLS]",
    "<|tool_list_start|>",
    "<function_calls><think>",
    "<|START_ACTION|><|START_THINKING|>",
    "Action: ```json tool_name",
    "<|tool|><|/tool|>",
    "<|tool_call|>",
    "[gMASK]<sop><|observation|>",
};
enum { SOURCES = sizeof sources / sizeof *sources };

static const char schema[] =
    "[{\"name\": \"now\", \"parameters\": {\"properties\": {\"s\": {\"type\": \"string\"}, \"n\": {\"type\": "
    "[\"integer\", \"null\"]}, \"o\": {\"type\": \"object\"}, \"b\": {\"type\": \"boolean\"}}}}]";

/* All parts of a reply, one after the other. Pieces of the same part are joined to one part. */
typedef struct parts {
    fr_text_buffer text;
    fr_text_buffer arguments;
    int last;
    bool marks; /* true: there is a part of another kind than content */
} parts;

static void check_arguments(parts *p) {
    json_error_t error;
    json_t *value = json_loadb(p->arguments.bytes, p->arguments.length, 0, &error);
    enum json_error_code code = value ? json_error_unknown : json_error_code(&error);
    bool allowed = code == json_error_numeric_overflow || code == json_error_invalid_utf8 ||
                   code == json_error_null_character || code == json_error_null_byte_in_key;
    if (!json_is_object(value) && !(!value && allowed)) abort();
    json_decref(value);
}

static void take_part(void *context, fr_reply_part part, const char *text, size_t length) {
    parts *p = context;
    char mark[2] = {'\0', (char)('0' + (int)part)};
    bool joined =
        p->last == (int)part && (part == FR_REPLY_CONTENT || part == FR_REPLY_REASONING || part == FR_REPLY_ARGUMENTS);
    if (!joined) fr_text_append(&p->text, mark, sizeof mark);
    fr_text_append(&p->text, text, length);
    p->last = (int)part;
    p->marks |= part != FR_REPLY_CONTENT;
    if (part == FR_REPLY_CALL) p->arguments.length = 0;
    if (part == FR_REPLY_ARGUMENTS) fr_text_append(&p->arguments, text, length);
    if (part == FR_REPLY_CALL_END) check_arguments(p);
}

static bool next_piece(const uint8_t **at, const uint8_t *end, const uint8_t **begin, size_t *length, bool *control) {
    if (*at >= end) return false;
    const uint8_t *cut = memchr(*at, CUT, (size_t)(end - *at));
    *control = **at == CONTROL;
    *begin = *at + *control;
    *length = (size_t)((cut ? cut : end) - *begin);
    *at = cut ? cut + 1 : end;
    return true;
}

/* Reads the reply into parts. If `by_byte` is true, a piece that is not a control token is passed one byte at a
 * time. */
static void read_reply(parts *p, const uint8_t *bytes, size_t size, bool by_byte, json_t *tools) {
    fr_reply_format format = fr_reply_format_of(sources[bytes[0] % SOURCES], strlen(sources[bytes[0] % SOURCES]), NULL);
    fr_reply_reader *reader;
    const uint8_t *at = bytes + 2, *begin;
    size_t length;
    bool control;
    char *json;
    if (fr_reply_reader_new(take_part, p, &reader) != FR_OK) die("no memory for", "a reply");
    char prompt[64] = "";
    if (bytes[1] & 1 && format.marks[FR_MARK_THINK])
        snprintf(prompt, sizeof prompt, "%s%s\n", format.marks[FR_MARK_THINK], format.channel);
    fr_status status =
        fr_reply_reader_begin(reader, &format, prompt, strlen(prompt), bytes[1] & 2 ? tools : NULL, 1, bytes[1] & 4);
    while (next_piece(&at, bytes + size, &begin, &length, &control)) {
        size_t step = by_byte && !control ? 1 : length;
        for (size_t i = 0; i < length && status == FR_OK; i += step)
            status = fr_reply_reader_feed(reader, (const char *)begin + i, step, control);
    }
    if (status == FR_OK) status = fr_reply_reader_finish(reader);
    if (status == FR_OK) status = fr_reply_reader_message(reader, &json, &length);
    if (status != FR_OK) die(fr_last_error(), "");
    free(json);
    fr_reply_reader_free(reader);
}

/* Checks that the joined parts are the whole reply. Call this only if all parts are content. */
static void check_content(const parts *p, const uint8_t *bytes, size_t size) {
    const uint8_t *at = bytes + 2, *begin;
    size_t length, done = p->text.length > 0 ? 2 : 0;
    bool control;
    while (next_piece(&at, bytes + size, &begin, &length, &control)) {
        if (length == 0) continue;
        if (p->text.length - done < length || memcmp(p->text.bytes + done, begin, length) != 0) abort();
        done += length;
    }
    if (done != p->text.length) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
    static json_t *tools;
    if (!tools) tools = json_loads(schema, 0, NULL);
    if (size < 2) return 0;
    parts whole = {.last = -1}, cut = {.last = -1};
    read_reply(&whole, bytes, size, false, tools);
    read_reply(&cut, bytes, size, true, tools);
    if (whole.text.length != cut.text.length) abort();
    if (whole.text.length > 0 && memcmp(whole.text.bytes, cut.text.bytes, whole.text.length) != 0) abort();
    bool thinks = bytes[1] & 1 || memmem(bytes, size, "hink>", 5) || memmem(bytes, size, "channel", 7) ||
                  memmem(bytes, size, "THINK]", 6) || memmem(bytes, size, "RESPONSE|>", 10) ||
                  memmem(bytes, size, "_TEXT|>", 7);
    if (whole.marks)
        fuzz_inputs_read++;
    else if (!thinks)
        check_content(&whole, bytes, size);
    fr_text_free(&whole.text);
    fr_text_free(&cut.text);
    fr_text_free(&whole.arguments);
    fr_text_free(&cut.arguments);
    return 0;
}
