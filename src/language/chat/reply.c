/* Splits a reply into its parts (reply.h) with an automaton. Some states of the automaton hold bytes back.
 *
 *             prompt opened it                      THINK, before any content; Gemma's anywhere
 *      begin ------------------> REASONING <--------------------------------------------- CONTENT <-- begin
 *                                    |         THINK_END                                  ^  |  ^
 *                                    +----------------------------------------------------+  |  |
 *                                          CALL, CALLS, NAME; at the start of a line also the    |  |
 *                                          first byte of a call without its mark                 v  | whole, or none
 *                                                                                              CALL-+
 *
 * A call within reasoning counts as a call only if the reasoning never ends. So its bytes are held back: REASONING ->
 * CALL -> HELD. If THINK_END follows, they are given as reasoning. If the reply ends first, they are given as a call.
 *
 * Harmony's replies are messages, each with a header: HEADER -> REASONING, CONTENT or CALL -> HEADER.
 *
 * Line breaks are held back, as a count, until the byte or mark after them shows whether they are text or belong to
 * that mark. */
#include "src/language/chat/reply.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "src/language/chat/reply_call.h"
#include "src/language/chat/reply_forms.h"
#include "src/language/chat/reply_harmony.h"
#include "src/language/chat/reply_marks.h"
#include "src/language/chat/reply_message.h"
#include "src/language/chat/reply_once.h"

#define ID_LENGTH 9 /* an id has nine letters and digits, because Mistral's templates require that */

typedef enum reply_state { CONTENT, REASONING, CHANNEL, CALL, HELD, HEADER } reply_state;

/* One piece of the held text: a mark, or text between marks. */
typedef struct held_piece {
    fr_mark mark;
    size_t length;
} held_piece;

struct fr_reply_reader {
    fr_reply_fn *part;
    void *context;
    fr_reply_format format;
    json_t *tools;
    uint64_t seed;
    bool whole_calls, cut;

    reply_state state;
    fr_mark_finder finder;
    size_t newlines;     /* number of line breaks that are held back */
    bool fresh;          /* a mark has just ended reasoning or a call, so the next line breaks belong to that mark */
    bool called;         /* the mark that set `fresh` ended a call */
    bool said;           /* some content was given */
    char last;           /* the last byte of content */
    bool fenced;         /* inside a fence of Markdown, where calls without their mark are quotations */
    bool amid_line;      /* the line has something other than white space and backticks */
    size_t ticks;        /* backticks at the line's beginning */
    const char *channel; /* the rest of the channel's name that must still follow */
    fr_text_buffer header;

    fr_reply_call call;
    size_t calls;           /* number of calls begun so far; each call gets an id that is made from this number */
    bool told;              /* the id and the name of the present call were passed to the callback */
    size_t shown;           /* number of bytes of the present call's arguments that were passed to the callback */
    size_t before_newlines; /* the value of `newlines` when the present call began */
    bool before_fresh;      /* the value of `fresh` when the present call began */

    /* the call or header that is being read, or whose bytes are held back, began within reasoning */
    bool thinking;
    /* held: the bytes held back within reasoning; held_pieces: the pieces of which these bytes consist */
    fr_text_buffer held, held_pieces;

    fr_reply_part out_part; /* the part that is collected for the next callback */
    fr_text_buffer out;
    fr_reply_message message;
};

/* ------------------------------------------------------------------------------------------- parts for the callback */

static void tell(fr_reply_reader *r, fr_reply_part part, const char *text, size_t length) {
    fr_reply_message_add(&r->message, part, text, length);
    if (r->part) r->part(r->context, part, text, length);
}

static void flush(fr_reply_reader *r) {
    if (r->out.length > 0) tell(r, r->out_part, r->out.bytes, r->out.length);
    r->out.length = 0;
}

/* Collects a piece of a part. Neighbouring pieces of one part are passed to the callback as one. */
static void put(fr_reply_reader *r, fr_reply_part part, const char *text, size_t length) {
    if (part != r->out_part) flush(r);
    r->out_part = part;
    fr_text_append(&r->out, text, length);
}

static void tell_apart(fr_reply_reader *r, fr_reply_part part, const fr_text_buffer *text) {
    flush(r);
    tell(r, part, text && text->bytes ? text->bytes : "", text ? text->length : 0);
}

/* Returns true if line breaks must be held back because a mark may follow: line breaks before a mark that opens or
 * closes something belong to that mark. Without tools no call can follow, so content keeps its line breaks. */
static bool holds_lines(const fr_reply_reader *r, fr_reply_part part) {
    if (part == FR_REPLY_REASONING || r->fresh || json_array_size(r->tools) > 0) return true;
    return !r->said && r->format.marks[FR_MARK_THINK] != NULL;
}

/* Passes on text of the reply's content or reasoning. Line breaks at its end are held back. */
static void say(fr_reply_reader *r, fr_reply_part part, const char *text, size_t length) {
    for (size_t at = 0; at < length;) {
        const char *line = memchr(text + at, '\n', length - at);
        size_t end = line ? (size_t)(line - text) : length;
        if (end > at) {
            for (; r->newlines > 0 && !r->fresh; r->newlines--) put(r, part, "\n", 1);
            put(r, part, text + at, end - at);
            r->newlines = 0;
            r->fresh = false;
            if (part == FR_REPLY_CONTENT) {
                r->said = true;
                r->last = text[end - 1];
            }
        }
        if (line && !holds_lines(r, part))
            put(r, part, "\n", 1);
        else
            r->newlines += line != NULL;
        at = end + (line != NULL);
    }
}

static void say_content(fr_reply_reader *r, const char *text, size_t length) {
    say(r, FR_REPLY_CONTENT, text, length);
    for (size_t i = 0; i < length; i++) {
        r->amid_line = text[i] != '\n' && (r->amid_line || (text[i] != ' ' && text[i] != '`'));
        r->ticks = text[i] == '`' && !r->amid_line ? r->ticks + 1 : 0;
        if (r->ticks == 3) r->fenced = !r->fenced;
    }
}

/* Returns to the content after a mark that ended reasoning or a call. */
static void go_on(fr_reply_reader *r) {
    r->state = CONTENT;
    r->newlines = 0;
    r->fresh = true;
    r->called = false;
}

/* ------------------------------------------------------------------------------------------------------------ calls */

/* Makes an id of nine letters and digits from the seed and the call's number (the finalizer of splitmix64). */
static void make_id(fr_reply_reader *r, fr_text_buffer *id) {
    static const char letters[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    uint64_t z = r->seed + (uint64_t)r->calls * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z ^= z >> 31;
    for (size_t i = 0; i < ID_LENGTH; i++, z /= 62) fr_text_append(id, &letters[z % 62], 1);
}

/* Starts a call. section: the kind of section in which the call is (fr_reply_call); 0: it is in none. A call that
 * continues the section of the previous call gets the `section` of that call. */
static void begin_call(fr_reply_reader *r, int section) {
    fr_reply_call *call = &r->call;
    fr_text_buffer kept[] = {call->raw, call->name, call->id, call->arguments, call->key, call->value};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) fr_call_clear(&kept[i]);
    *call = (fr_reply_call){.format = &r->format,
                            .tools = r->tools,
                            .reader = section ? call->reader : r->format.form->reader,
                            .alone = section ? call->alone : !r->said,
                            .bare = section && call->bare,
                            .near = section && call->near,
                            .fenced = section && call->fenced,
                            .section = section,
                            .scan = {.loose = true},
                            .raw = kept[0],
                            .name = kept[1],
                            .id = kept[2],
                            .arguments = kept[3],
                            .key = kept[4],
                            .value = kept[5]};
    r->before_newlines = r->newlines;
    r->before_fresh = r->fresh;
    r->told = false;
    r->shown = 0;
    r->calls++;
    r->state = CALL;
}

/* Passes to the callback what is known about the call and was not passed before. */
static void show_call(fr_reply_reader *r) {
    fr_reply_call *call = &r->call;
    if (!call->named) return;
    if (!r->told) {
        if (call->id.length == 0) make_id(r, &call->id);
        tell_apart(r, FR_REPLY_CALL, &call->id);
        tell_apart(r, FR_REPLY_NAME, &call->name);
        r->told = true;
    }
    if (call->arguments.length > r->shown)
        put(r, FR_REPLY_ARGUMENTS, call->arguments.bytes + r->shown, call->arguments.length - r->shown);
    r->shown = call->arguments.length;
}

/* Passes the held bytes to the callback as reasoning, except for the last `behind` bytes. */
static void release_held(fr_reply_reader *r, size_t behind) {
    r->thinking = false;
    r->state = REASONING;
    if (r->held.length > behind) say(r, FR_REPLY_REASONING, r->held.bytes, r->held.length - behind);
    fr_call_clear(&r->held);
    fr_call_clear(&r->held_pieces);
}

static void end_section(fr_reply_reader *r) {
    go_on(r);
    r->called = true;
}

static void end_call(fr_reply_reader *r) {
    int section = r->call.section;
    if (r->thinking) {
        r->state = HELD;
        if (!fr_tool_find(r->tools, r->call.name.bytes)) release_held(r, 0);
        return;
    }
    if (r->whole_calls) fr_arguments_once(&r->call.arguments);
    show_call(r);
    tell_apart(r, FR_REPLY_CALL_END, NULL);
    end_section(r);
    if (section) begin_call(r, section);
}

/* Handles a text that only looked like a call: passes its bytes to the callback as content or reasoning, except for the
 * last `behind` bytes. */
static void drop_call(fr_reply_reader *r, size_t behind) {
    if (r->thinking) {
        release_held(r, behind);
        return;
    }
    if (r->told) tell_apart(r, FR_REPLY_CALL_VOID, NULL);
    r->newlines = r->before_newlines;
    r->fresh = r->before_fresh;
    r->state = CONTENT;
    say_content(r, r->call.raw.bytes ? r->call.raw.bytes : "", r->call.raw.length - behind);
}

static void hold(fr_reply_reader *r, fr_mark mark, const char *text, size_t length) {
    fr_text_append(&r->held, text, length);
    size_t last = r->held_pieces.length;
    held_piece piece = {mark, length};
    if (last > 0 && mark == FR_MARK_NONE) {
        held_piece before;
        memcpy(&before, r->held_pieces.bytes + last - sizeof before, sizeof before);
        if (before.mark == FR_MARK_NONE) {
            piece.length += before.length;
            r->held_pieces.length -= sizeof before;
        }
    }
    fr_text_append(&r->held_pieces, &piece, sizeof piece);
}

/* Keeps bytes or a mark of the present call. If the text turns out not to be a call, they become text again. */
static void take_raw(fr_reply_reader *r, fr_mark mark, const char *text, size_t length) {
    fr_text_append(&r->call.raw, text, length);
    if (r->thinking) hold(r, mark, text, length);
}

/* Removes the last byte or mark (`length` bytes) from the held text, because it does not belong to the call. */
static void give_back(fr_reply_reader *r, size_t length) {
    held_piece last;
    if (!r->thinking || r->held_pieces.length < sizeof last || r->held.length < length) return;
    size_t before = r->held_pieces.length - sizeof last;
    memcpy(&last, r->held_pieces.bytes + before, sizeof last);
    last.length -= length;
    r->held.length -= length;
    r->held_pieces.length = before;
    if (last.length > 0) fr_text_append(&r->held_pieces, &last, sizeof last);
}

/* Does what a call reader's verdict demands. Returns false if the last byte or mark, which has `length` bytes, does not
 * belong to the call and must be read again. */
static bool go_by(fr_reply_reader *r, fr_call_verdict verdict, size_t length) {
    if (r->call.raw.length > FR_CALL_MAX) verdict = FR_CALL_FAULT;
    switch (verdict) {
    case FR_CALL_FAULT: drop_call(r, 0); return true;
    case FR_CALL_DONE: end_call(r); return true;
    case FR_CALL_OVER: end_section(r); return true;
    case FR_CALL_WHOLE:
        give_back(r, length);
        end_call(r);
        return false;
    case FR_CALL_PAST: end_section(r); return false;
    default:
        if (!r->whole_calls && !r->thinking) show_call(r);
        return true;
    }
}

/* Reads bytes of a call, and returns how many it read. It stops early if a byte shows that the call has ended or that
 * the text is no call. */
static size_t read_call(fr_reply_reader *r, const char *text, size_t length) {
    size_t at = 0;
    while (at < length && r->state == CALL) {
        take_raw(r, FR_MARK_NONE, text + at, 1);
        if (!go_by(r, r->call.reader->byte(&r->call, text[at]), 1)) break;
        at++;
    }
    return at;
}

/* --------------------------------------------------------------------------------------------------- marks and text */

static void on_mark(fr_reply_reader *r, fr_mark mark, const char *text, size_t length);

/* Reads a mark within a call. In a string or value the mark is text. If the mark shows that the text so far is no call,
 * the mark is read again, because it may begin a call. */
static void on_mark_in_call(fr_reply_reader *r, fr_mark mark, const char *text, size_t length) {
    take_raw(r, mark, text, length);
    fr_call_verdict verdict = r->call.reader->mark(&r->call, mark);
    for (size_t i = 0; verdict == FR_CALL_TEXT && i < length; i++) {
        fr_call_verdict byte = r->call.reader->byte(&r->call, text[i]);
        if (byte != FR_CALL_ON) verdict = FR_CALL_FAULT;
    }
    if (verdict == FR_CALL_TEXT) verdict = FR_CALL_ON;
    if (verdict == FR_CALL_FAULT && r->call.raw.length > length) {
        drop_call(r, length);
        on_mark(r, mark, text, length);
    } else if (!go_by(r, verdict, length)) {
        on_mark(r, mark, text, length);
    }
}

static void begin_reasoning(fr_reply_reader *r) {
    r->state = REASONING;
    r->newlines = 0;
    r->fresh = true;
}

static bool is_of_call(fr_mark mark) {
    return mark == FR_MARK_CALL || mark == FR_MARK_CALLS || mark == FR_MARK_NAME;
}

static void on_mark_in_content(fr_reply_reader *r, fr_mark mark, const char *text, size_t length) {
    bool thinks = mark == FR_MARK_THINK && (!r->said || *r->format.channel);
    bool ends_calls = (mark == FR_MARK_CALLS_END || mark == FR_MARK_RESPONSE) && r->fresh && r->called;
    bool surrounds = mark >= FR_MARK_SAY && mark <= FR_MARK_SAY_TEXT_END;
    if (thinks && *r->format.channel) {
        r->state = CHANNEL;
        r->channel = r->format.channel;
    } else if (thinks) {
        begin_reasoning(r);
    } else if (is_of_call(mark) && !(mark == FR_MARK_NAME && r->fenced)) {
        begin_call(r, 0);
        on_mark_in_call(r, mark, text, length);
    } else if (ends_calls || surrounds) {
        r->newlines = 0;
    } else {
        say_content(r, text, length);
    }
}

/* Gives as content the text that looked like the beginning of reasoning. Gemma's reasoning is a channel, and the
 * channel's name must follow the mark; here the last byte does not fit the name. */
static void leave_channel(fr_reply_reader *r) {
    const char *mark = r->format.marks[FR_MARK_THINK];
    r->state = CONTENT;
    say_content(r, mark, strlen(mark));
    say_content(r, r->format.channel, (size_t)(r->channel - r->format.channel));
}

static void on_channel_byte(fr_reply_reader *r, char byte) {
    if (byte != *r->channel) {
        leave_channel(r);
        say_content(r, &byte, 1);
    } else if (*++r->channel == '\0') {
        begin_reasoning(r);
    }
}

static bool is_of_word(char byte) {
    return byte == '_' || byte == '-' || (byte & 0x80) != 0 || isalnum((unsigned char)byte);
}

/* Returns true if the byte may begin a call without its mark. Models sometimes leave marks out, and some forms of calls
 * have no mark. If there are tools, such a call may begin at each line; if the form has no mark, it may begin at each
 * word. White space before a reply's first call belongs to the call. */
static bool begins_bare_call(const fr_reply_reader *r, char byte) {
    const fr_call_form *form = r->format.form;
    bool line = r->fresh || r->newlines > 0 || !r->said;
    if (!form || !byte || r->fenced || json_array_size(r->tools) == 0) return false;
    if (!line && (form->marks[FR_MARK_CALL] || is_of_word(r->last))) return false;
    if (fr_json_is_space(byte)) return (form->bare || form->names) && !r->said;
    return (form->bare && strchr(form->bare, byte)) || (form->names && fr_call_begins_name(r->tools, &byte, 1));
}

/* ---------------------------------------------------------------------------------------------- messages of harmony */

/* Gives a header's bytes back as text: as reasoning if the header began within reasoning, otherwise as content. This
 * happens if the bytes turn out to be no header, or if the reply ends within the header. */
static void leave_header(fr_reply_reader *r) {
    r->state = r->thinking ? REASONING : CONTENT;
    say(r, r->thinking ? FR_REPLY_REASONING : FR_REPLY_CONTENT, r->header.bytes ? r->header.bytes : "",
        r->header.length);
    r->thinking = false;
    fr_call_clear(&r->header);
}

static void take_header(fr_reply_reader *r, const char *text, size_t length) {
    fr_text_append(&r->header, text, length);
    if (r->header.length > FR_HEADER_MAX) leave_header(r);
}

/* Opens a message after its header. If the message is a call, the header's bytes are kept, because they become text if
 * the message turns out not to be a call. */
static void open_message(fr_reply_reader *r) {
    const char *function, *mark = r->format.marks[FR_MARK_BODY], *header = r->header.bytes ? r->header.bytes : "";
    size_t length;
    fr_harmony_body body = fr_harmony_header(header, r->header.length, r->tools, &function, &length);
    if (r->thinking && (body != FR_HARMONY_CALL || !fr_harmony_is_tool(r->tools, function, length))) {
        take_header(r, mark, strlen(mark));
        if (r->state == HEADER) leave_header(r);
        return;
    }
    r->thinking = false;
    r->newlines = 0;
    r->fresh = false;
    r->state = CONTENT;
    if (body == FR_HARMONY_REASONING) begin_reasoning(r);
    if (body == FR_HARMONY_CALL) {
        begin_call(r, 0);
        fr_text_append(&r->call.raw, r->header.bytes, r->header.length);
        fr_text_append(&r->call.raw, mark, strlen(mark));
        go_by(r, fr_call_set_name(&r->call, function, length) ? FR_CALL_ON : FR_CALL_FAULT, 0);
    }
    fr_call_clear(&r->header);
}

/* Ends a message's body. The next message's header follows. */
static void close_message(fr_reply_reader *r) {
    for (; r->state == CONTENT && r->newlines > 0; r->newlines--) put(r, FR_REPLY_CONTENT, "\n", 1);
    r->newlines = 0;
    r->state = HEADER;
}

static void on_harmony_mark(fr_reply_reader *r, fr_mark mark, const char *text, size_t length) {
    bool ends = mark == FR_MARK_BODY_END || mark == FR_MARK_CALL_END || mark == FR_MARK_RETURN;
    if (r->state == HEADER && r->thinking && (ends || mark == FR_MARK_MESSAGE)) leave_header(r);
    if (r->state == REASONING && mark == FR_MARK_CHANNEL) {
        r->thinking = true;
        r->state = HEADER;
    }
    if (r->state == CALL)
        on_mark_in_call(r, mark, text, length);
    else if (r->state == HEADER && mark == FR_MARK_BODY)
        open_message(r);
    else if (r->state == HEADER && !ends && mark != FR_MARK_MESSAGE)
        take_header(r, text, length);
    else if (r->state != HEADER && !ends && mark != FR_MARK_MESSAGE)
        say(r, r->state == REASONING ? FR_REPLY_REASONING : FR_REPLY_CONTENT, text, length);
    if (!ends && mark != FR_MARK_MESSAGE) return;
    if (r->state != HEADER) close_message(r);
    fr_call_clear(&r->header);
}

/* Begins a reply in harmony's form. Its prompt ends within a header. Usually that is after the role; if a message is
 * continued, it is after the message's channel. */
static void begin_harmony(fr_reply_reader *r, const char *prompt, size_t length) {
    const char *start = r->format.marks[FR_MARK_MESSAGE], *body = r->format.marks[FR_MARK_BODY], *last = NULL, *at;
    size_t mark = strlen(start), left = length;
    r->state = HEADER;
    for (at = prompt; (at = memmem(at, left, start, mark)); left = length - (size_t)(at - prompt)) last = at += mark;
    if (!last) return;
    while (last < prompt + length && *last != '<' && !fr_json_is_space(*last)) last++;
    left = length - (size_t)(last - prompt);
    at = memmem(last, left, body, strlen(body));
    take_header(r, last, at ? (size_t)(at - last) : left);
    if (at && r->state == HEADER) open_message(r);
    if (r->state == CALL) drop_call(r, r->call.raw.length);
}

/* Reads the bytes at the beginning of a text that belong to the present state, and returns their number. */
static size_t take_text(fr_reply_reader *r, const char *text, size_t length) {
    size_t lines = 0;
    switch (r->state) {
    case CALL: return read_call(r, text, length);
    case CHANNEL: on_channel_byte(r, *text); return 1;
    case HEADER: take_header(r, text, length); return length;
    case REASONING: say(r, FR_REPLY_REASONING, text, length); return length;
    default:
        while (lines < length && text[lines] == '\n') lines++;
        say_content(r, text, lines);
        if (lines == length) return length;
        if (begins_bare_call(r, text[lines])) {
            begin_call(r, 0);
            return lines;
        }
        bool words = r->format.form && !r->format.form->marks[FR_MARK_CALL];
        size_t end = lines + 1;
        while (end < length && text[end] != '\n' && !(words && !is_of_word(text[end - 1]))) end++;
        say_content(r, text + lines, end - lines);
        return end;
    }
}

/* Handles a mark in content, in reasoning or in a call, in all forms except harmony's. */
static void on_mark(fr_reply_reader *r, fr_mark mark, const char *text, size_t length) {
    if (r->thinking && mark == FR_MARK_THINK_END) release_held(r, 0);
    if (r->state == CALL) {
        on_mark_in_call(r, mark, text, length);
    } else if (r->state == CONTENT) {
        on_mark_in_content(r, mark, text, length);
    } else if (mark == FR_MARK_THINK_END) {
        go_on(r);
    } else if (is_of_call(mark) && json_array_size(r->tools) > 0) {
        r->thinking = true;
        begin_call(r, 0);
        on_mark_in_call(r, mark, text, length);
    } else {
        say(r, FR_REPLY_REASONING, text, length);
    }
}

static void on_piece(void *context, fr_mark mark, const char *text, size_t length) {
    fr_reply_reader *r = context;
    if (r->state == HELD && mark != FR_MARK_THINK_END) {
        hold(r, mark, text, length);
    } else if (mark == FR_MARK_NONE) {
        size_t at = 0;
        while (at < length && r->state != HELD) at += take_text(r, text + at, length - at);
        if (at < length) hold(r, mark, text + at, length - at);
    } else if (r->format.marks[FR_MARK_CHANNEL]) {
        on_harmony_mark(r, mark, text, length);
    } else {
        if (r->state == CHANNEL) leave_channel(r);
        on_mark(r, mark, text, length);
    }
}

/* ---------------------------------------------------------------------------------------------------------- a reply */

fr_status fr_reply_reader_new(fr_reply_fn *part, void *context, fr_reply_reader **reader) {
    *reader = calloc(1, sizeof **reader);
    if (!*reader) return fr_fail_memory("a reply", sizeof **reader);
    (*reader)->part = part;
    (*reader)->context = context;
    return FR_OK;
}

static void close_call(fr_reply_call *call) {
    fr_text_buffer *texts[] = {&call->raw, &call->name, &call->id, &call->arguments, &call->key, &call->value};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) fr_text_free(texts[i]);
}

void fr_reply_reader_free(fr_reply_reader *reader) {
    if (!reader) return;
    close_call(&reader->call);
    fr_text_free(&reader->out);
    fr_text_free(&reader->held);
    fr_text_free(&reader->held_pieces);
    fr_text_free(&reader->header);
    fr_reply_message_clear(&reader->message);
    json_decref(reader->tools);
    free(reader);
}

bool fr_reply_opens_reasoning(const fr_reply_format *format, const char *prompt, size_t length) {
    const char *mark = format->marks[FR_MARK_THINK];
    if (!mark) return false;
    while (length > 0 && fr_json_is_space(prompt[length - 1])) length--;
    size_t channel = strlen(format->channel), size = strlen(mark);
    if (length < size + channel || memcmp(prompt + length - channel, format->channel, channel) != 0) return false;
    return memcmp(prompt + length - channel - size, mark, size) == 0;
}

bool fr_reply_ends_reasoning(const fr_reply_format *format, const char *prompt, size_t length) {
    const char *mark = format->marks[FR_MARK_THINK_END];
    size_t size = mark ? strlen(mark) : 0;
    while (length > 0 && fr_json_is_space(prompt[length - 1])) length--;
    return mark && length >= size && memcmp(prompt + length - size, mark, size) == 0;
}

fr_status fr_reply_reader_begin(fr_reply_reader *reader, const fr_reply_format *format, const char *prompt,
                                size_t length, json_t *tools, uint64_t seed, bool whole_calls) {
    fr_reply_reader *r = reader;
    fr_reply_message_clear(&r->message);
    json_decref(r->tools);
    close_call(&r->call);
    fr_text_free(&r->out);
    fr_text_free(&r->held);
    fr_text_free(&r->held_pieces);
    fr_text_free(&r->header);
    *r = (fr_reply_reader){.part = r->part,
                           .context = r->context,
                           .format = *format,
                           .tools = json_incref(tools),
                           .seed = seed,
                           .whole_calls = whole_calls};
    fr_mark_finder_begin(&r->finder, &r->format);
    if (format->marks[FR_MARK_CHANNEL])
        begin_harmony(r, prompt, length);
    else if (fr_reply_opens_reasoning(&r->format, prompt, length))
        begin_reasoning(r);
    return FR_OK;
}

const fr_reply_format *fr_reply_reader_format(const fr_reply_reader *reader) {
    return &reader->format;
}

static fr_status check(const fr_reply_reader *r) {
    const fr_reply_call *call = &r->call;
    const fr_text_buffer *texts[] = {&r->out,    &call->raw,   &call->name, &call->id,       &call->arguments,
                                     &call->key, &call->value, &r->held,    &r->held_pieces, &r->header};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) FR_TRY(fr_text_check(texts[i], "a reply"));
    return fr_reply_message_check(&r->message);
}

fr_status fr_reply_reader_feed(fr_reply_reader *reader, const char *text, size_t length, bool control) {
    fr_mark_finder_feed(&reader->finder, text, length, control, on_piece, reader);
    flush(reader);
    return check(reader);
}

/* Drops an incomplete mark at the reply's end if the complete mark would only have closed calls that were already
 * given. */
static void drop_half_mark(fr_reply_reader *r) {
    const fr_text_buffer *raw = &r->call.raw;
    bool behind = r->state == CONTENT && r->fresh && r->called;
    if (r->state == CALL && r->call.section) {
        behind = true;
        for (size_t i = 0; i < raw->length; i++) behind &= fr_json_is_space(raw->bytes[i]) || raw->bytes[i] == ']';
    }
    for (fr_mark mark = FR_MARK_CALLS_END; behind && mark <= FR_MARK_CALL_END; mark++) {
        const char *text = mark == FR_MARK_CALL ? NULL : r->format.marks[mark];
        if (text && strncmp(text, r->finder.held, r->finder.count) == 0) r->finder.count = 0;
    }
}

/* Returns true if the reply was cut off within a text that can only be a call of one of the tools. */
static bool is_cut_call(const fr_reply_reader *r) {
    const fr_reply_call *call = &r->call;
    return r->cut && !r->thinking && call->named && (!call->bare || call->alone) &&
           fr_tool_find(r->tools, call->name.bytes);
}

static void give_cut_call(fr_reply_reader *r) {
    if (r->call.reader->cut) r->call.reader->cut(&r->call);
    show_call(r);
    r->message.cut = true;
    tell_apart(r, FR_REPLY_CALL_END, NULL);
    end_section(r);
}

static void finish_call(fr_reply_reader *r) {
    if (r->state != CALL) return;
    fr_call_verdict verdict = r->call.reader->finish(&r->call);
    r->call.section = 0;
    if (verdict == FR_CALL_DONE)
        end_call(r);
    else if (verdict == FR_CALL_OVER)
        end_section(r);
    else if (is_cut_call(r))
        give_cut_call(r);
    else
        drop_call(r, 0);
}

/* Reads the held bytes of a call within reasoning again, this time as content. The reply has ended without the mark
 * that ends reasoning, so the reasoning is assumed to have ended where the call began. */
static void replay_held(fr_reply_reader *r) {
    fr_text_buffer text = r->held, pieces = r->held_pieces;
    if (text.status != FR_OK || pieces.status != FR_OK) return;
    r->held = r->held_pieces = (fr_text_buffer){0};
    r->thinking = false;
    go_on(r);
    held_piece piece;
    for (size_t i = 0, at = 0; i + sizeof piece <= pieces.length; i += sizeof piece, at += piece.length) {
        memcpy(&piece, pieces.bytes + i, sizeof piece);
        on_piece(r, piece.mark, text.bytes + at, piece.length);
    }
    fr_text_free(&text);
    fr_text_free(&pieces);
}

void fr_reply_reader_cut(fr_reply_reader *reader) {
    reader->cut = true;
}

fr_status fr_reply_reader_finish(fr_reply_reader *reader) {
    fr_reply_reader *r = reader;
    drop_half_mark(r);
    if (r->state == CALL && is_cut_call(r) && r->call.scan.state != FR_SCAN_STRING) r->finder.count = 0;
    fr_mark_finder_finish(&r->finder, on_piece, r);
    if (r->state == CHANNEL) leave_channel(r);
    if (r->state == HEADER && (r->thinking || (!r->said && r->calls == 0))) leave_header(r);
    finish_call(r);
    if (r->state == HELD) {
        replay_held(r);
        finish_call(r);
    }
    for (; r->state == CONTENT && !r->fresh && r->newlines > 0; r->newlines--) put(r, FR_REPLY_CONTENT, "\n", 1);
    flush(r);
    return check(r);
}

fr_status fr_reply_reader_message(const fr_reply_reader *reader, char **json, size_t *length) {
    return fr_reply_message_write(&reader->message, json, length);
}
