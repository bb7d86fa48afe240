/* What answer.c is made of: a choice's pieces for a stream, the objects of each form. By the engine's thread alone. */
#ifndef FR_TOOLS_SERVE_ANSWER_PARTS_H
#define FR_TOOLS_SERVE_ANSWER_PARTS_H

#include "tools/jobs/job_choice.h"
#include "tools/serve/answer.h"

/* Figures of a choice, or of all choices of an answer. */
typedef struct fr_timings {
    size_t prompt, cached, predicted, drafted, accepted; /* tokens */
    size_t texts; /* they are of so many choices, each with a first token */
    struct {
        size_t drafted, accepted;
    } depth[FR_STEP_MAX - 1];
    double began, first, ended; /* fr_seconds: a session's start, its first id, its end or now; 0: not yet */
} fr_timings;

/* Of an answer in another dialect, what is being told: answer_dialect.h. */
typedef enum fr_item_kind { FR_ITEM_NONE, FR_ITEM_THOUGHT, FR_ITEM_TEXT, FR_ITEM_CALL } fr_item_kind;

typedef struct fr_item {
    fr_item_kind kind;
    size_t index;  /* items before it */
    fr_stream text; /* of it so far */
    json_t *call;  /* {"id", "function": {"name", "arguments"}} */
    json_t *logprobs, *news; /* of a text's ids; of those that came with the newest part. NULL: none are asked for */
    bool last;     /* the reply has ended with it */
} fr_item;

/* What an answer has been given of a choice. */
typedef struct fr_telling {
    fr_generation_request *request;
    fr_choice *choice;
    fr_timings timings;
    json_t *whole; /* the choice, once it has ended, of an answer that is no stream; */
    double likely; /* the mean log-probability of its ids, where they have any */

    fr_reply_part part; /* what the text below is of */
    fr_stream text;     /* that has been told of and not sent */
    bool drafted;       /* it came from accepted drafts, where the request asked for that */
    size_t known;       /* ids whose text has been told of */
    size_t ids;         /* and those that the stream has had */
    size_t offset;      /* characters of their texts */
    size_t calls;       /* and tool calls */
    json_t *call;       /* that is being told of */
    bool begun;         /* the stream has had its first chunk */
    bool echoed;        /* and its prompt */
    bool progressed;    /* and was told that all of the prompt has been run */

    fr_item item;   /* of an answer in another dialect */
    json_t *items;  /* that have ended, as whole answers have them; NULL: none has */
    size_t events;  /* of the stream so far */
    size_t thought; /* ids of what was thought */
} fr_telling;

fr_telling *fr_telling_of(fr_generation_request *request, fr_choice *choice);

/* ---------------------------------------------------------------------------------------------------------- timings */

/* As the choice is now: of its session, which is open. */
void fr_timings_take(fr_telling *telling);

/* All choices of a request together: each prompt once, the time from the first to the last. */
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

/* {"id", "object", "created", "model", "system_fingerprint", "choices"}. */
json_t *fr_answer_object(const fr_generation_request *request, const char *object, json_t *choices);

/* The next event of the stream, which begins with it. */
void fr_answer_send(fr_generation_request *request, json_t *event);
void fr_answer_send_line(fr_generation_request *request, const char *line);

/* ----------------------------------------------------------------------------------------------------------- chunks */

/* A chunk of the choice with what is new: a chat's delta, or a text as `delta`; the ids from telling->ids on, before
 * `ids`. end: it is the choice's last. */
void fr_chunk_send(fr_telling *telling, json_t *delta, size_t ids, bool end);

/* Of how far its prompt has been run. */
void fr_chunk_send_progress(fr_telling *telling);

/* Behind all choices, where it was asked for: what they took. */
void fr_chunk_send_usage(fr_generation_request *request);

/* ---------------------------------------------------------------------------------------------------------- telling */

/* From now on the job's reply is told to the stream. */
void fr_telling_begin(fr_telling *telling);

/* Sends what is new; at its end all of it, and the last chunk. */
void fr_telling_send(fr_telling *telling, bool end);

/* ----------------------------------------------------------------------------------------------------------- native */

/* The choice as llama.cpp's /completion has it: as a whole, or the end of a stream. */
json_t *fr_native_whole(fr_telling *telling);
json_t *fr_native_end(fr_telling *telling);

/* Part of a stream. */
json_t *fr_native_chunk(const fr_telling *telling, json_t *content, size_t ids);

#endif
