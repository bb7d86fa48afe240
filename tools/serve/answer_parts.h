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
    double began, first, ended; /* fr_seconds: a session's start, its first id, its end or now; 0: not yet */
} fr_timings;

/* The part of a reply that an answer in another dialect is sending now (answer_dialect.h). */
typedef enum fr_item_kind { FR_ITEM_NONE, FR_ITEM_THOUGHT, FR_ITEM_TEXT, FR_ITEM_CALL } fr_item_kind;

typedef struct fr_item {
    fr_item_kind kind;
    size_t index;            /* items before it */
    fr_stream text;          /* the item's text so far */
    json_t *call;            /* {"id", "function": {"name", "arguments"}} */
    json_t *logprobs, *news; /* of all ids of a text, of its newest ids; NULL: none are asked for */
    bool last;               /* it is the reply's last item */
} fr_item;

/* The state of one choice's answer: the part of the choice that the client has already been sent. */
typedef struct fr_telling {
    fr_generation_request *request;
    fr_choice *choice;
    fr_timings timings;
    json_t *whole; /* the ended choice of an answer that is no stream */
    double likely; /* the mean log-probability of its ids, if they have any */

    fr_reply_part part; /* the part to which the text below belongs */
    fr_stream text;     /* taken from the reply and not sent yet */
    bool drafted;       /* it came from accepted drafts, if the request asks for that */
    size_t known;       /* ids whose text was taken from the reply */
    size_t ids;         /* ids that the stream was sent */
    size_t offset;      /* characters of the texts of these */
    size_t calls;       /* tool calls that the stream was sent */
    json_t *call;       /* the call that is under way */
    bool begun;         /* the stream has had its first chunk */
    bool echoed;        /* the stream has had the prompt */
    bool progressed;    /* the stream was told that all of the prompt has been run */

    fr_item item;   /* of an answer in another dialect */
    json_t *items;  /* ended items, as whole answers have them; NULL: none */
    size_t events;  /* that the stream was sent */
    size_t thought; /* ids of the thought */
} fr_telling;

fr_telling *fr_telling_of(fr_generation_request *request, fr_choice *choice);

/* ---------------------------------------------------------------------------------------------------------- timings */

/* Updates the choice's figures from its session, which must be open. */
void fr_timings_take(fr_telling *telling);

/* Gives the figures of all choices of a request together: each prompt counts once, and the time runs from the first
 * choice's start to the last one's end. */
fr_timings fr_timings_of_request(const fr_generation_request *request);

/* {"cache_n", "prompt_n", ..., "predicted_n", ...} as llama.cpp's server has them, and "draft_by_depth": [[drafted,
 * accepted], ...]. */
json_t *fr_timings_json(const fr_timings *timings);
json_t *fr_timings_usage(const fr_timings *timings);

/* {"total", "cache", "processed", "time_ms"} of a prompt that is being run. */
json_t *fr_timings_progress(const fr_telling *telling);

/* The timings of a prompt that is being run: its tokens and time so far. */
json_t *fr_timings_so_far(const fr_telling *telling);

/* ----------------------------------------------------------------------------------------------------------- events */

/* Makes {"id", "object", "created", "model", "system_fingerprint", "choices"}. */
json_t *fr_answer_object(const fr_generation_request *request, const char *object, json_t *choices);

/* Sends the next event of the stream, and starts the stream with the first one. */
void fr_answer_send(fr_generation_request *request, json_t *event);
void fr_answer_send_line(fr_generation_request *request, const char *line);

/* ----------------------------------------------------------------------------------------------------------- chunks */

/* Sends a chunk of the choice with what is new. delta: a chat's delta or a text. ids: the chunk covers the ids from
 * telling->ids up to this one. end: it is the choice's last chunk. */
void fr_chunk_send(fr_telling *telling, json_t *delta, size_t ids, bool end);

/* Sends how much of the prompt has been run. */
void fr_chunk_send_progress(fr_telling *telling);

/* Sends the usage of all choices as the last chunk, if the request asked for it. */
void fr_chunk_send_usage(fr_generation_request *request);

/* ---------------------------------------------------------------------------------------------------------- telling */

/* Starts to send the job's reply to the stream as it grows. */
void fr_telling_begin(fr_telling *telling);

/* Sends what is new of the reply. With `end` it also sends text that was held back, and the last chunk. */
void fr_telling_send(fr_telling *telling, bool end);

/* ----------------------------------------------------------------------------------------------------------- native */

/* The choice as llama.cpp's /completion has it: as a whole, or the end of a stream. */
json_t *fr_native_whole(fr_telling *telling);
json_t *fr_native_end(fr_telling *telling);

/* Gives one chunk of a stream. */
json_t *fr_native_chunk(const fr_telling *telling, json_t *content, size_t ids);

#endif
