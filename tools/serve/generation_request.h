/* Reads a request for text and keeps its choices while they run.
 *
 * In: the body of a request in OpenAI's forms, or in llama.cpp's own (/completion). Out: the choices as jobs
 * (tools/jobs/job.h), read but not begun, and the form of their answer. Fields that are known and not built are
 * refused by name; unknown fields are ignored, as clients expect, and noted once. */
#ifndef FR_TOOLS_SERVE_GENERATION_REQUEST_H
#define FR_TOOLS_SERVE_GENERATION_REQUEST_H

#include <time.h>

#include "tools/jobs/job.h"
#include "tools/serve/http_exchange.h"

/* One choice with its job; all members are 0 at first. */
typedef struct fr_choice {
    fr_job job;
    size_t prompt;       /* which of the request's prompts it answers */
    size_t slot;         /* the scheduler's, where its session is */
    double began, first; /* fr_seconds: its session's start, its first id */
    double ready;        /* when it could continue after that */
    uint64_t behind;     /* the last request that had arrived by then */

    struct fr_telling *telling; /* the state of its answer; fr_answer_forget frees it */
    bool finished;              /* its answer is complete */
} fr_choice;

typedef struct fr_generation_request fr_generation_request;
struct fr_generation_request {
    fr_generation_request *next; /* in its scheduler's line */
    fr_http_exchange *exchange;  /* held */
    const fr_job_setting *setting;
    fr_job_form form;                 /* FR_JOB_CHAT, FR_JOB_COMPLETION or FR_JOB_NATIVE */
    json_t *body;                     /* its pictures' urls are no longer there */
    const struct fr_dialect *dialect; /* of its answer; NULL: the form's own (fr_answer_in) */
    json_t *dialect_body;             /* the body in that dialect, of which answers repeat members */
    json_t *called;                   /* a chat's tools that are no functions (tool_kinds.h); NULL: it is no chat */
    bool functions;                   /* its tools are in OpenAI's older form, and its calls are answered so */
    const char *model;                /* the name that the request has for it, else the server's own */
    bool stream, include_usage;
    bool return_tokens, return_progress, return_drafted, timings_per_token;
    const json_t *fields; /* "response_fields": texts, all that a choice's last answer is to have; NULL: everything */
    int64_t slot;         /* "id_slot", -1: any */
    double most;  /* "t_max_predict_ms" in seconds from a choice's first id, once it has a line break; 0: any time */
    int64_t ping; /* "sse_ping_interval": seconds, 0: none; -1: as the server has it */
    fr_choice *choices;
    size_t count;    /* prompts * n; choices of one prompt stand next to each other */
    size_t each;     /* n, or "best_of" if that is more */
    size_t shown;    /* choices that the answer has, the likeliest ones; 0: all */
    size_t too_long; /* ids of the first prompt that the context, setting->context, has no room for; 0: all fit */
    char id[48];     /* "chatcmpl-...", or as its dialect begins one */
    time_t created;
    double arrived;     /* seconds, monotonic */
    bool streaming;     /* the exchange's answer has begun */
    bool answered;      /* the answer has ended: choices still under way add nothing */
    char error[640];    /* why it can't be run, "": it can; */
    fr_status why;      /* its kind */
    uint64_t number;    /* in the order of arrival at its scheduler */
    size_t begun, done; /* choices that have a slot, or had one; that have ended */
};

/* Reads a body, which the request takes over; a request that can't be run keeps it too. The exchange that it answers
 * is held (NULL: there is none). Several threads may read at a time. */
fr_generation_request *fr_generation_request_read(fr_http_exchange *call, const fr_job_setting *setting,
                                                  fr_job_form form, json_t *body);

/* Ends the choices under way and releases the exchange. */
void fr_generation_request_free(fr_generation_request *request);

#endif
