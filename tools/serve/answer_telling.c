/* Sends a job's reply to a stream while it is generated (answer_parts.h).
 *
 * In: bytes of the reply's parts, which come when ids are added to the reply. Out: chunks. If a step of the session
 * gives several ids, their bytes that belong to the same part are sent as one chunk. An id belongs to the chunk in
 * which its text begins. Text that may be the beginning of a stop string or of a character is held back. Its id is then
 * sent with the later chunk that has the text. */
#include "tools/serve/answer_parts.h"
#include "tools/serve/tool_kinds.h"

/* Counts the reply's ids whose text begins before the byte at the offset `content` of the content. */
static size_t ids_within(const fr_telling *t, size_t content) {
    const fr_reply *reply = &t->choice->job.reply;
    size_t ids = t->known;
    while (ids < reply->kept && reply->begins[ids] < content) ids++;
    return ids;
}

static json_t *delta_of(const fr_telling *t) {
    json_t *text = fr_json_bytes(t->text.bytes, t->text.length), *delta;
    if (t->request->form != FR_JOB_CHAT) return text;
    delta = json_object();
    fr_json_put(delta, t->part == FR_REPLY_REASONING ? "reasoning_content" : "content", text);
    return delta;
}

/* Sends the collected text. If it ends with an incomplete character, these bytes stay for the next chunk. */
static void send_text(fr_telling *t) {
    if (t->text.length == 0) return;
    fr_chunk_send(t, delta_of(t), t->known, false);
    t->text.length = t->text.written = 0;
}

static void add_text(fr_telling *t, fr_reply_part part, const char *text, size_t length) {
    if (part != t->part) send_text(t);
    t->part = part;
    fr_stream_feed(&t->text, text, length, false);
}

/* Returns true if a byte of a new text came from an accepted draft. at: the byte's position in that text. */
static bool is_drafted(const fr_telling *t, fr_reply_part part, size_t at) {
    const fr_job *job = &t->choice->job;
    return part == FR_REPLY_CONTENT ? job->text.accepted[job->text.written + at] : job->view.accepted;
}

/* Adds a text. It is split into chunks so that each chunk's text is either completely from accepted drafts, or
 * completely not. */
static void add_runs(fr_telling *t, fr_reply_part part, const char *text, size_t length) {
    for (size_t at = 0, end; at < length; at = end) {
        bool drafted = is_drafted(t, part, at);
        for (end = at + 1; end < length && is_drafted(t, part, end) == drafted;) end++;
        if (drafted != t->drafted) send_text(t);
        t->drafted = drafted;
        add_text(t, part, text + at, end - at);
    }
}

static void begin_call(fr_telling *t, const char *id, size_t length) {
    send_text(t);
    t->part = FR_REPLY_ARGUMENTS;
    json_decref(t->call);
    t->call = json_object();
    fr_json_put(t->call, "index", json_integer((json_int_t)t->calls++));
    fr_json_put(t->call, "id", fr_json_bytes(id, length));
    fr_json_put(t->call, "type", json_string("function"));
    fr_json_put(t->call, "function", json_object());
}

/* Sends a tool call. A call is always sent as one chunk. */
static void end_call(fr_telling *t) {
    json_t *delta = json_object(), *calls = json_array();
    json_t *arguments = fr_json_bytes(t->text.bytes ? t->text.bytes : "", t->text.length);
    t->text.length = t->text.written = 0;
    fr_json_put(json_object_get(t->call, "function"), "arguments", arguments);
    fr_tool_call_of_chat(t->request->called, t->call);
    json_array_append_new(calls, t->call);
    t->call = NULL;
    fr_json_put(delta, "tool_calls", calls);
    if (t->request->functions) fr_function_call_of_chat(delta);
    fr_chunk_send(t, delta, t->known, false);
}

/* Receives a piece of the reply (an fr_reply_fn). A completion with pictures is run as a chat, but only the content of
 * its reply is sent. */
static void take_part(void *context, fr_reply_part part, const char *text, size_t length) {
    fr_telling *t = context;
    const fr_job *job = &t->choice->job;
    if (t->request->form != FR_JOB_CHAT && part != FR_REPLY_CONTENT) return;
    switch (part) {
    case FR_REPLY_CONTENT:
    case FR_REPLY_REASONING:
        if (t->request->return_drafted)
            add_runs(t, part, text, length);
        else
            add_text(t, part, text, length);
        break;
    case FR_REPLY_ARGUMENTS: add_text(t, part, text, length); break;
    case FR_REPLY_CALL: begin_call(t, text, length); break;
    case FR_REPLY_NAME: fr_json_put(json_object_get(t->call, "function"), "name", fr_json_bytes(text, length)); break;
    case FR_REPLY_CALL_END: end_call(t); break;
    default: break;
    }
    t->known = part == FR_REPLY_CONTENT ? ids_within(t, job->text.written + length) : job->reply.kept;
}

/* Receives a piece of a text that is not split into parts (an fr_stream_fn). */
static void take_content(void *context, const char *text, size_t length) {
    take_part(context, FR_REPLY_CONTENT, text, length);
}

void fr_telling_begin(fr_telling *t) {
    fr_job *job = &t->choice->job;
    t->part = FR_REPLY_CONTENT;
    if (job->reply.setting.view) {
        fr_reply_view_tell(&job->view, take_part, t);
        return;
    }
    job->text.told = take_content;
    job->text.context = t;
}

/* Sends the new part of the reply. If the model has no tokenizer, there is no text, and only ids are sent. */
void fr_telling_send(fr_telling *t, bool end) {
    const fr_reply *reply = &t->choice->job.reply;
    if (!t->call) send_text(t);
    bool bare = !reply->setting.text && t->ids < reply->kept;
    if (bare && !end) fr_chunk_send(t, json_string(""), reply->kept, false);
    if (end) fr_chunk_send(t, NULL, reply->kept, true);
}
