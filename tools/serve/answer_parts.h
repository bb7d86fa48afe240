/* Declares the functions that answer.c shares with its other files. They make the chunks of a stream, and the JSON
 * objects of each form of answer. Only the engine's thread calls them. */
#ifndef FR_TOOLS_SERVE_ANSWER_PARTS_H
#define FR_TOOLS_SERVE_ANSWER_PARTS_H

#include "tools/jobs/job_choice.h"
#include "tools/serve/answer.h"

/* The figures of one choice, or those of all choices of an answer together. */
typedef struct fr_timings {
    size_t prompt, cached, predicted, drafted, accepted; /* numbers of tokens */
    size_t texts;                                        /* number of choices that have got their first token */
    struct {
        size_t drafted, accepted;
    } depth[FR_STEP_MAX - 1];
    /* Times, in fr_seconds; 0: this has not happened yet. began: when the session began. first: when its first id came.
     * ended: when the session ended, or the current time. */
    double began, first, ended;
} fr_timings;

/* An item is a part of a reply in the form of another dialect. It is a thought, a text or a call (answer_dialect.h). */
typedef enum fr_item_kind { FR_ITEM_NONE, FR_ITEM_THOUGHT, FR_ITEM_TEXT, FR_ITEM_CALL } fr_item_kind;

typedef struct fr_item {
    fr_item_kind kind;
    size_t index;   /* number of items before this one */
    fr_stream text; /* the item's text so far */
    json_t *call;   /* {"id", "function": {"name", "arguments"}} */
    /* log-probabilities, or NULL if they were not requested. logprobs: those of all ids of a text. news: those of the
     * ids that were added last */
    json_t *logprobs, *news;
    bool last; /* the item is the last one of the reply */
} fr_item;

/* The state of a choice's answer. It records how much of the choice was sent to the client. */
typedef struct fr_telling {
    fr_generation_request *request;
    fr_choice *choice;
    fr_timings timings;
    json_t *whole; /* JSON of the choice, for an answer that is not a stream; NULL until the choice has ended */
    double likely; /* the mean log-probability of the choice's ids; 0 if the ids have no log-probabilities */

    fr_reply_part part; /* the part of the reply (content, reasoning, ...) from which `text` is */
    fr_stream text;     /* text of the reply that has not been sent yet */
    bool drafted;       /* the text came from accepted drafts; set only if the request asks for it */
    size_t known;       /* number of the reply's ids whose text was added to `text` or sent */
    size_t ids;         /* number of ids that were sent */
    size_t offset;      /* number of characters in the texts of the ids that were sent */
    size_t calls;       /* number of tool calls that were sent */
    json_t *call;       /* the tool call that is being collected */
    bool begun;         /* the first chunk was sent */
    bool echoed;        /* the echoed prompt was sent */
    bool progressed;    /* the client was told that the whole prompt has been run */

    fr_item item; /* the item that is being sent, for an answer in another dialect */
    /* JSON of the items that have ended, for an answer that is not a stream; NULL: none has ended yet */
    json_t *items;
    size_t events;  /* number of events that were sent */
    size_t thought; /* number of the reply's ids that belong to the thought */
} fr_telling;

fr_telling *fr_telling_of(fr_generation_request *request, fr_choice *choice);

/* ---------------------------------------------------------------------------------------------------------- timings */

/* Updates the choice's figures from its session, which must be open. */
void fr_timings_take(fr_telling *telling);

/* Gives the figures of all choices of a request together. Each prompt is counted once. The time runs from the start of
 * the first choice to the end of the last choice. */
fr_timings fr_timings_of_request(const fr_generation_request *request);

/* These functions make JSON of the figures. fr_timings_json makes {"cache_n", "prompt_n", ..., "predicted_n", ...} in
 * the form of llama.cpp's server, and "draft_by_depth": [[drafted, accepted], ...]. fr_timings_usage makes OpenAI's
 * "usage": {"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details"}. */
json_t *fr_timings_json(const fr_timings *timings);
json_t *fr_timings_usage(const fr_timings *timings);

/* Makes {"total", "cache", "processed", "time_ms"} for a prompt that is being run. */
json_t *fr_timings_progress(const fr_telling *telling);

/* Makes the timings of a prompt that is still being run. They have the tokens and the time so far. */
json_t *fr_timings_so_far(const fr_telling *telling);

/* ----------------------------------------------------------------------------------------------------------- events */

/* Makes {"id", "object", "created", "model", "system_fingerprint", "choices"}. */
json_t *fr_answer_object(const fr_generation_request *request, const char *object, json_t *choices);

/* fr_answer_send sends the next event of the stream. The first event starts the stream. */
void fr_answer_send(fr_generation_request *request, json_t *event);
void fr_answer_send_line(fr_generation_request *request, const char *line);

/* ----------------------------------------------------------------------------------------------------------- chunks */

/* Sends a chunk with the new text of the choice. delta: a chat's delta, or a text. ids: the number of the reply's ids
 * up to the end of the chunk. The first telling->ids of them were sent with earlier chunks. end: this is the choice's
 * last chunk. */
void fr_chunk_send(fr_telling *telling, json_t *delta, size_t ids, bool end);

/* Sends the number of the prompt's ids that have been run. */
void fr_chunk_send_progress(fr_telling *telling);

/* If the request asked for the usage, sends the usage of all choices as the last chunk. */
void fr_chunk_send_usage(fr_generation_request *request);

/* -------------------------------------------------------------------------------------------- the stream of a reply */

/* Begins to collect the text of the reply while it is generated, for the stream. */
void fr_telling_begin(fr_telling *telling);

/* Sends the new text of the reply. end: the reply is complete, so the text that was held back and the last chunk are
 * sent too. */
void fr_telling_send(fr_telling *telling, bool end);

/* ------------------------------------------------------------------------------------------------- llama.cpp's form */

/* These functions make JSON of a choice in the form of llama.cpp's /completion. fr_native_whole makes the whole choice.
 * fr_native_end makes the last event of a stream. */
json_t *fr_native_whole(fr_telling *telling);
json_t *fr_native_end(fr_telling *telling);

/* Makes one chunk of a stream in the form of llama.cpp's /completion. */
json_t *fr_native_chunk(const fr_telling *telling, json_t *content, size_t ids);

#endif
