/* Splits a reply into items for answers in other dialects (answer_dialect.h). */
#include <stdlib.h>
#include <string.h>

#include "tools/cli/wide_json.h"
#include "tools/serve/dialects/answer_dialect.h"

/* ----------------------------------------------------------------------------------------------------------- events */

static void send(fr_generation_request *request, const char *before, const char *type, const char *between,
                 json_t *event, const char *behind) {
    char *json = fr_json_line(event);
    size_t size = strlen(before) + strlen(type) + strlen(between) + strlen(json) + strlen(behind) + 1;
    char *line = fr_resize(NULL, size, 1);
    snprintf(line, size, "%s%s%s%s%s", before, type, between, json, behind);
    fr_answer_send_line(request, line);
    free(line);
    free(json);
}

void fr_items_send(fr_generation_request *request, json_t *event) {
    if (request->stream)
        send(request, "event: ", json_string_value(json_object_get(event, "type")), "\ndata: ", event, "\n\n");
    json_decref(event);
}

void fr_items_send_line(fr_generation_request *request, json_t *event) {
    if (request->stream) send(request, "", "", "", event, "\n");
    json_decref(event);
}

/* ------------------------------------------------------------------------------------------------------------ items */

bool fr_items_cut(const fr_telling *t) {
    fr_end end = t->choice->job.reply.end;
    return end != FR_END_EOS && end != FR_END_STOP;
}

json_t *fr_item_text(const fr_telling *t) {
    return fr_json_bytes(t->item.text.bytes ? t->item.text.bytes : "", t->item.text.length);
}

json_t *fr_item_object(const fr_telling *t) {
    json_t *object = fr_json_load_cut(t->item.text.bytes, t->item.text.length);
    return object ? object : json_object();
}

static void close_item(fr_telling *t) {
    fr_item *item = &t->item;
    if (item->kind == FR_ITEM_NONE) return;
    if (!t->items) t->items = json_array();
    json_array_append_new(t->items, t->request->dialect->close(t));
    json_decref(item->call);
    json_decref(item->logprobs);
    fr_stream_free(&item->text);
    *item = (fr_item){.index = item->index + 1};
}

/* Begins an item. call: if the item is a call, its object, to which the item adds a reference; otherwise NULL. */
static void open_item(fr_telling *t, fr_item_kind kind, json_t *call) {
    close_item(t);
    t->item.kind = kind;
    t->item.call = json_incref(call);
    t->request->dialect->open(t);
}

static void add_text(fr_telling *t, const json_t *text) {
    fr_stream_feed(&t->item.text, json_string_value(text), json_string_length(text), false);
    t->request->dialect->more(t, text);
}

/* Adds text to the current item if that item is of this kind. Otherwise adds it to a new item. */
static void take_text(fr_telling *t, fr_item_kind kind, const json_t *text, size_t ids) {
    if (t->item.kind != kind) open_item(t, kind, NULL);
    json_t *news = kind == FR_ITEM_TEXT ? fr_reply_logprobs(&t->choice->job.reply, t->ids, ids) : NULL;
    if (news && !t->item.logprobs) t->item.logprobs = json_array();
    if (news) json_array_extend(t->item.logprobs, news);
    t->item.news = news;
    add_text(t, text);
    json_decref(news);
    t->item.news = NULL;
}

/* Adds a tool call as a whole item. */
static void take_call(fr_telling *t, json_t *call) {
    open_item(t, FR_ITEM_CALL, call);
    add_text(t, json_object_get(json_object_get(call, "function"), "arguments"));
    close_item(t);
}

/* Adds a delta to the items. If the reply ends without any item, it gets an item with an empty text. */
void fr_items_take(fr_telling *t, json_t *delta, size_t ids, bool end) {
    const json_t *thought = json_object_get(delta, "reasoning_content");
    const json_t *text = json_is_string(delta) ? delta : json_object_get(delta, "content");
    const json_t *calls = json_object_get(delta, "tool_calls");
    if (!t->begun && t->request->stream) {
        fr_timings_take(t);
        t->request->dialect->begin(t);
    }
    t->begun = true;
    if (thought) {
        take_text(t, FR_ITEM_THOUGHT, thought, ids);
        t->thought = t->known; /* the exact number is known only when the thought has ended */
    }
    if (text) take_text(t, FR_ITEM_TEXT, text, ids);
    for (size_t i = 0; i < json_array_size(calls); i++) take_call(t, json_array_get(calls, i));
    json_decref(delta);
    if (!end) return;
    if (t->item.kind == FR_ITEM_NONE && !t->items) open_item(t, FR_ITEM_TEXT, NULL);
    t->item.last = true;
    close_item(t);
}
