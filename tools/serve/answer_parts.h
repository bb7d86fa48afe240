/* Declares the parts of answer.c: the pieces of a choice that a stream sends, and the objects of each form. The
 * engine's thread alone calls them. */
#ifndef FR_TOOLS_SERVE_ANSWER_PARTS_H
#define FR_TOOLS_SERVE_ANSWER_PARTS_H

#include "tools/jobs/job_choice.h"
#include "tools/serve/answer.h"

/* Figures of a choice, or of all choices of an answer. */
typedef struct fr_timings {
    size_t prompt, cached, predicted, drafted, accepted; /* tokens */
    size_t texts;                                        /* the number of choices, each with a first token */
    struct {
        size_t drafted, accepted;
    } depth[FR_STEP_MAX - 1];
    /* fr_seconds of the start of the session, of its first id, and of its end (or now); 0: not yet */
    double began, first, ended;
} fr_timings;

/* The part of a reply that an answer in another dialect is sending now (answer_dialect.h). */
typedef enum fr_item_kind { FR_ITEM_NONE, FR_ITEM_THOUGHT, FR_ITEM_TEXT, FR_ITEM_CALL } fr_item_kind;

typedef struct fr_item {
    fr_item_kind kind;
    size_t index;            /* number of items before it */
    fr_stream text;          /* the item's text so far */
    json_t *call;            /* {"id", "function": {"name", "arguments"}} */
    json_t *logprobs, *news; /* logprobs: of all ids of a text; news: of its newest ids; NULL: not requested */
    bool last;               /* it is the reply's last item */
} fr_item;

/* The state of one choice's answer: the part of the choice that the client has already been sent. */
typedef struct fr_telling {
    fr_generation_request *request;
    fr_choice *choice;
    fr_timings timings;
    json_t *whole; /* the choice after it has ended, for an answer that is not a stream */
    double likely; /* the mean log-probability of its ids, if they have any */

    fr_reply_part part; /* the part to which the text below belongs */
    fr_stream text;     /* taken from the reply and not sent yet */
    bool drafted;       /* the text came from accepted drafts; set only if the request asks for it */
    size_t known;       /* ids whose text was taken from the reply */
    size_t ids;         /* ids that were sent to the stream */
    size_t offset;      /* characters in the texts of these ids */
    size_t calls;       /* tool calls that were sent to the stream */
    json_t *call;       /* the call that is being sent */
    bool begun;         /* the first chunk was sent */
    bool echoed;        /* the prompt was sent */
    bool progressed;    /* the stream got the message that the whole prompt has been run */

    fr_item item;   /* for an answer in another dialect: the item that is being sent */
    json_t *items;  /* the items that have ended, as a whole answer has them; NULL: none */
    size_t events;  /* events that were sent to the stream */
    size_t thought; /* ids of the thought */
} fr_telling;

fr_telling *fr_telling_of(fr_generation_request *request, fr_choice *choice);

/* ---------------------------------------------------------------------------------------------------------- timings */

/* Updates the choice's figures from its session, which must be open. */
void fr_timings_take(fr_telling *telling);

/* Gives the figures of all choices of a request together: each prompt counts once, and the time runs from the first
 * choice's start to the last one's end. */
fr_timings fr_timings_of_request(const fr_generation_request *request);

/* Makes {"cache_n", "prompt_n", ..., "predicted_n", ...} in the form of llama.cpp's server, and "draft_by_depth":
 * [[drafted, accepted], ...]. */
json_t *fr_timings_json(const fr_timings *timings);
json_t *fr_timings_usage(const fr_timings *timings);

/* Makes {"total", "cache", "processed", "time_ms"} for a prompt that is being run. */
json_t *fr_timings_progress(const fr_telling *telling);

/* Makes the timings of a prompt that is being run: its tokens and time so far. */
json_t *fr_timings_so_far(const fr_telling *telling);

/* ----------------------------------------------------------------------------------------------------------- events */

/* Makes {"id", "object", "created", "model", "system_fingerprint", "choices"}. */
json_t *fr_answer_object(const fr_generation_request *request, const char *object, json_t *choices);

/* Sends the next event of the stream, and starts the stream with the first one. */
void fr_answer_send(fr_generation_request *request, json_t *event);
void fr_answer_send_line(fr_generation_request *request, const char *line);

/* ----------------------------------------------------------------------------------------------------------- chunks */

/* Sends a chunk with the new part of the choice. delta: a chat's delta or a text. ids: the chunk covers the ids from
 * telling->ids up to this one. end: it is the choice's last chunk. */
void fr_chunk_send(fr_telling *telling, json_t *delta, size_t ids, bool end);

/* Sends the number of the prompt's ids that have been run. */
void fr_chunk_send_progress(fr_telling *telling);

/* Sends the usage of all choices as the last chunk, if the request asked for it. */
void fr_chunk_send_usage(fr_generation_request *request);

/* ---------------------------------------------------------------------------------------------------------- telling */

/* Starts to send the job's reply to the stream as it grows. */
void fr_telling_begin(fr_telling *telling);

/* Sends the new part of the reply. end: also sends text that was held back, and the last chunk. */
void fr_telling_send(fr_telling *telling, bool end);

/* ----------------------------------------------------------------------------------------------------------- native */

/* Makes the choice in the form of llama.cpp's /completion: the whole choice, or the end of a stream. */
json_t *fr_native_whole(fr_telling *telling);
json_t *fr_native_end(fr_telling *telling);

/* Gives one chunk of a stream. */
json_t *fr_native_chunk(const fr_telling *telling, json_t *content, size_t ids);

#endif
