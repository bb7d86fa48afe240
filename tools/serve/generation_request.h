/* Reads a request for text and keeps its choices while they run.
 *
 * In: the body of a request in OpenAI's forms, or in llama.cpp's own form (/completion). Out: the choices as jobs
 * (tools/jobs/job.h), which have been read but not begun, and the form of their answer. Fields that are known but not
 * implemented are refused, and the error names them. Unknown fields are ignored, as clients expect, and noted once. */
#ifndef FR_TOOLS_SERVE_GENERATION_REQUEST_H
#define FR_TOOLS_SERVE_GENERATION_REQUEST_H

#include <time.h>

#include "tools/jobs/job.h"
#include "tools/serve/http_exchange.h"

/* A choice with its job. All members are 0 at first. */
typedef struct fr_choice {
    fr_job job;
    size_t prompt;       /* index of the prompt in the request that the choice answers */
    size_t slot;         /* index of the slot of the scheduler that has the choice's session */
    double began, first; /* times, in fr_seconds. began: when the choice's session began. first: when the choice's first
                          * id came */
    double ready;        /* time, in fr_seconds, when the choice could generate its second id */
    /* the last request that had arrived when this choice's first id came, by its number in the order of arrival */
    uint64_t behind;

    struct fr_telling *telling; /* the state of the choice's answer; fr_answer_forget frees it */
    bool finished;              /* the choice's answer is complete */
} fr_choice;

typedef struct fr_generation_request fr_generation_request;
struct fr_generation_request {
    fr_generation_request *next; /* the next request in the scheduler's queue */
    fr_http_exchange *exchange;  /* the request is a holder of this exchange (fr_http_exchange_hold) */
    const fr_job_setting *setting;
    fr_job_form form; /* FR_JOB_CHAT, FR_JOB_COMPLETION or FR_JOB_NATIVE */
    json_t *body;     /* the request's body; the pictures in urls were removed from it */
    /* the dialect of the answer; NULL: the answer has the usual form (fr_answer_in) */
    const struct fr_dialect *dialect;
    json_t *dialect_body; /* the body as it was sent in that dialect. The answer repeats some of its members */
    /* in a chat, the tools that are not functions (tool_kinds.h); NULL: the request is not a chat */
    json_t *called;
    bool functions;    /* the body has "functions", OpenAI's older form, so calls are answered in the older form too */
    const char *model; /* the model's name in the request; if the request names no model, the server's model */
    bool stream, include_usage;
    bool return_tokens, return_progress, return_drafted, timings_per_token;
    const json_t *fields; /* "response_fields": only these members are in the last answer of a choice; NULL: it has all
                           * members */
    int64_t slot;         /* "id_slot": the slot that must be used; -1: any slot */
    /* The value of "t_max_predict_ms", in seconds. The time is counted from a choice's first id. When the time is over,
     * the choice ends at the next line break. 0: no limit. */
    double most;
    int64_t ping; /* "sse_ping_interval" in seconds; 0: no pings; -1: the server's own interval */
    fr_choice *choices;
    /* number of choices, which is the number of prompts times `each`. The choices of a prompt are next to each other */
    size_t count;
    size_t each;     /* number of choices per prompt: "n", or "best_of" if "best_of" is larger */
    size_t shown;    /* number of choices per prompt that the answer shows. It shows the likeliest ones. 0: it shows all
                      * choices */
    size_t pixels;   /* number of pixels of all the request's pictures together */
    size_t too_long; /* number of ids of the first prompt that does not fit into the context; 0: all prompts fit */
    char id[48];     /* id of the answer: "chatcmpl-...", or with the prefix of the dialect */
    time_t created;
    double arrived;     /* time of arrival, in fr_seconds */
    bool streaming;     /* the exchange's answer has begun */
    bool answered;      /* the answer has ended, so the remaining choices are not needed */
    char error[640];    /* the reason why the request can't be run; "": the request can be run */
    fr_status why;      /* the kind of this error */
    uint64_t number;    /* the request's number in the order of arrival */
    size_t begun, done; /* begun: number of choices that have had a slot; done: number of choices that have ended */
};

/* Reads a body and takes ownership of it, even if the request can't be run. `call` is the exchange that the request
 * answers, and the request becomes one of its holders. NULL: there is no exchange. Several threads may read requests at
 * the same time. */
fr_generation_request *fr_generation_request_read(fr_http_exchange *call, const fr_job_setting *setting,
                                                  fr_job_form form, json_t *body);

/* Frees a request. Its choices that are still being run are ended, and its exchange is released. */
void fr_generation_request_free(fr_generation_request *request);

#endif
