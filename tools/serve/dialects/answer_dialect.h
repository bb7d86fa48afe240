/* Declares the answers in other APIs' forms (answer_parts.h). A request in such a form has one choice.
 *
 * A reply is sent as a sequence of items, each of which is a thought, a text or a call. answer_items.c finds where each
 * item begins and ends. If the answer is a stream, the dialect sends its own events about the items. If it is not, the
 * dialect makes JSON of the same items. */
#ifndef FR_TOOLS_SERVE_DIALECTS_ANSWER_DIALECT_H
#define FR_TOOLS_SERVE_DIALECTS_ANSWER_DIALECT_H

#include "tools/serve/answer_parts.h"

struct fr_dialect {
    const char *names; /* prefix of the answers' ids */
    const char *type;  /* content type of a stream */

    /* These functions are called in this order. `begin`: a stream begins. `open`: telling->item begins. `more`: this
     * item has more text; the text of a call is its arguments. `close`: the item has ended. If the answer is not a
     * stream, the events that these functions send are dropped, and `close` gives the item's JSON. */
    void (*begin)(fr_telling *telling);
    void (*open)(fr_telling *telling);
    void (*more)(fr_telling *telling, const json_t *text);
    json_t *(*close)(fr_telling *telling);

    /* Called when the choice has ended. `whole` makes the answer if it is not a stream. `end` sends the last events of
     * a stream. */
    json_t *(*whole)(fr_telling *telling);
    void (*end)(fr_telling *telling);

    /* Turns an error {"error": {"code", "message", "type"}} into the dialect's form, and takes ownership of it. The
     * result is the whole answer, or the last event of a stream. */
    json_t *(*fault)(fr_generation_request *request, json_t *fault);

    /* Sends an event in the format of this dialect's streams. */
    void (*send)(fr_generation_request *request, json_t *event);

    /* Sends a ping. NULL: streams of this dialect have no pings. */
    void (*ping)(fr_generation_request *request);
};

/* Adds a delta of a chat, or a text, to the items, and takes ownership of it. delta: NULL if there is nothing new. ids:
 * the number of the reply's ids up to the end of the delta. end: this is the last delta. */
void fr_items_take(fr_telling *telling, json_t *delta, size_t ids, bool end);

/* Gives the text of the current item so far. Bytes that are not UTF-8 become U+FFFD. */
json_t *fr_item_text(const fr_telling *telling);

/* Gives the arguments of the current call as an object, by parsing their text as JSON. */
json_t *fr_item_object(const fr_telling *telling);

/* fr_items_send sends an event as a server-sent event, with its "type" as the event's name. fr_items_send_line sends
 * an event as a line of JSON. */
void fr_items_send(fr_generation_request *request, json_t *event);
void fr_items_send_line(fr_generation_request *request, json_t *event);

/* Returns true if the reply was cut off by a limit or an interrupt. */
bool fr_items_cut(const fr_telling *telling);

#endif
