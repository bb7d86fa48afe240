/* Answers in other APIs' words (answer_parts.h): of requests whose "dialect" is one of these, which have one choice.
 *
 * A reply is told as items that stand behind each other: what was thought, a text, a call. answer_items.c sees where
 * they begin and end; a dialect says it in its events, and puts the whole answer together of the same items. */
#ifndef FR_TOOLS_SERVE_DIALECTS_ANSWER_DIALECT_H
#define FR_TOOLS_SERVE_DIALECTS_ANSWER_DIALECT_H

#include "tools/serve/answer_parts.h"

struct fr_dialect {
    const char *names; /* what its answers' ids begin with */
    const char *type;  /* of a stream's content */

    /* A stream begins; an item does, telling->item; has so much more text, in a call more of its arguments; has ended,
     * which gives what whole answers have of it. Events that are sent while no stream is wanted come to nothing. */
    void (*begin)(fr_telling *telling);
    void (*open)(fr_telling *telling);
    void (*more)(fr_telling *telling, const json_t *text);
    json_t *(*close)(fr_telling *telling);

    /* The choice has ended: the whole answer; or a stream's last events. */
    json_t *(*whole)(fr_telling *telling);
    void (*end)(fr_telling *telling);

    /* An error, made of {"error": {"code", "message", "type"}}, which is handed over: the whole answer, or a stream's
     * last event. */
    json_t *(*fault)(fr_generation_request *request, json_t *fault);

    /* How that is sent. */
    void (*send)(fr_generation_request *request, json_t *event);

    /* A sign of life; NULL: there is none in a stream. */
    void (*ping)(fr_generation_request *request);
};

/* A delta of a chat's, or a text, handed over (NULL: nothing new): to the items. ids: that have come before its end.
 * end: it is the last one. */
void fr_items_take(fr_telling *telling, json_t *delta, size_t ids, bool end);

/* The text of the item so far, or of any bytes. */
json_t *fr_item_text(const fr_telling *telling);

/* A call's arguments, whose text is one of an object. */
json_t *fr_item_object(const fr_telling *telling);

/* Sends an event whose "type" is its name, as server-sent events have it; or a line of JSON. */
void fr_items_send(fr_generation_request *request, json_t *event);
void fr_items_send_line(fr_generation_request *request, json_t *event);

/* Whether the reply was ended before it had ended itself. */
bool fr_items_cut(const fr_telling *telling);

#endif
