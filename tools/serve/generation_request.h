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
    size_t prompt;       /* index of the request's prompt that it answers */
    size_t slot;         /* index of the scheduler's slot that has its session */
    double began, first; /* fr_seconds of the start of its session, and of its first id */
    double ready;        /* fr_seconds when it could continue after its first id */
    uint64_t behind;     /* the last request that had arrived when it had its first id */

    struct fr_telling *telling; /* the state of its answer; fr_answer_forget frees it */
    bool finished;              /* its answer is complete */
} fr_choice;

typedef struct fr_generation_request fr_generation_request;
struct fr_generation_request {
    fr_generation_request *next; /* the next request in the scheduler's line */
    fr_http_exchange *exchange;  /* held by the request */
    const fr_job_setting *setting;
    fr_job_form form;                 /* FR_JOB_CHAT, FR_JOB_COMPLETION or FR_JOB_NATIVE */
    json_t *body;                     /* the body, without the urls of pictures */
    const struct fr_dialect *dialect; /* the dialect of the answer; NULL: the form's own (see fr_answer_in) */
    json_t *dialect_body;             /* the body in that dialect; answers repeat some of its members */
    /* a chat's tools that are not functions (tool_kinds.h); NULL: it is not a chat */
    json_t *called;
    bool functions;    /* the tools are in OpenAI's older form, and so are the answer's calls */
    const char *model; /* the model's name in the request, or else the server's own */
    bool stream, include_usage;
    bool return_tokens, return_progress, return_drafted, timings_per_token;
    const json_t *fields; /* "response_fields": the only members that the last answer of a choice has; NULL: all */
    int64_t slot;         /* "id_slot"; -1: any slot */
    /* "t_max_predict_ms", in seconds from a choice's first id, applied once it has a line break; 0: no limit */
    double most;
    int64_t ping; /* "sse_ping_interval" in seconds; 0: no pings; -1: the server's interval */
    fr_choice *choices;
    size_t count;    /* prompts * n; choices of one prompt stand next to each other */
    size_t each;     /* n, or "best_of" if that is more */
    size_t shown;    /* choices that the answer has, the likeliest ones; 0: all */
    size_t too_long; /* ids of the first prompt that does not fit into setting->context; 0: all fit */
    char id[48];     /* "chatcmpl-...", or with the prefix of the dialect */
    time_t created;
    double arrived;     /* seconds, monotonic */
    bool streaming;     /* the exchange's answer has begun */
    bool answered;      /* the answer has ended, and further choices add nothing to it */
    char error[640];    /* the reason why it can't be run; "": it can */
    fr_status why;      /* the kind of that error */
    uint64_t number;    /* its number in the order of arrival at its scheduler */
    size_t begun, done; /* choices that have had a slot; choices that have ended */
};

/* Reads a body, which the request takes over, even if the request can't be run. The request holds the exchange that it
 * answers (NULL: there is none). Several threads may read at the same time. */
fr_generation_request *fr_generation_request_read(fr_http_exchange *call, const fr_job_setting *setting,
                                                  fr_job_form form, json_t *body);

/* Ends the choices that are being run, and releases the exchange. */
void fr_generation_request_free(fr_generation_request *request);

#endif
