/* A request for text: what its body asks for, and its choices under way.
 *
 * In: the body of a request in OpenAI's forms, or in llama.cpp's own (SERVER's /completion). Out: the choices as jobs
 * (tools/jobs/job.h), read but not begun, and how their answer is to look. Fields that are known and not built are
 * refused by name; those that nobody knows are passed over, as clients expect, and told once. */
#ifndef FR_TOOLS_SERVE_GENERATION_REQUEST_H
#define FR_TOOLS_SERVE_GENERATION_REQUEST_H

#include <time.h>

#include "tools/jobs/job.h"
#include "tools/serve/http_exchange.h"

/* One choice beside its job, all 0 to begin with. */
typedef struct fr_choice {
    fr_job job;
    size_t prompt; /* which of the request's prompts it answers */
    size_t slot;   /* the scheduler's, where its session is */
    double began, first; /* fr_seconds: its session's start, its first id */
    double ready;    /* and when it could go on behind that */
    uint64_t behind; /* the last request that had arrived by then */

    struct fr_telling *telling; /* what its answer has been given of it so far; fr_answer_forget frees it */
    bool finished;              /* its answer has all of it */
} fr_choice;

typedef struct fr_generation_request fr_generation_request;
struct fr_generation_request {
    fr_generation_request *next; /* in its scheduler's line */
    fr_http_exchange *exchange;  /* held */
    const fr_job_setting *setting;
    fr_job_form form; /* FR_JOB_CHAT, FR_JOB_COMPLETION or FR_JOB_NATIVE */
    json_t *body; /* its pictures' urls are no longer there */
    const struct fr_dialect *dialect; /* in which it is answered; NULL: its form's (fr_answer_in) */
    json_t *dialect_body;             /* the body in that dialect, of which answers repeat members */
    json_t *called; /* a chat's tools that are no functions (tool_kinds.h); NULL: it is no chat */
    const char *model; /* the name that the request has for it, else the server's own */
    bool stream, include_usage;
    bool return_tokens, return_progress, return_drafted, timings_per_token;
    const json_t *fields; /* "response_fields": texts, all that a choice's last answer is to have; NULL: everything */
    int64_t slot; /* "id_slot", -1: any */
    double most;  /* "t_max_predict_ms" in seconds from a choice's first id, once it has a line break; 0: any time */
    int64_t ping; /* "sse_ping_interval": seconds, 0: none; -1: as the server has it */
    fr_choice *choices;
    size_t count; /* prompts * n, choices of one prompt behind each other */
    size_t each;  /* n, or "best_of" if that is more */
    size_t shown; /* how many the answer has, the likeliest ones; 0: all */
    size_t too_long; /* ids of the first prompt that the context, setting->context, has no room for; 0: all fit */
    char id[48];  /* "chatcmpl-...", or as its dialect begins one */
    time_t created;
    double arrived; /* seconds, monotonic */
    bool streaming; /* the exchange's answer has begun */
    bool answered;  /* it has ended: nothing more is said, whatever is still under way */
    char error[640]; /* why it can't be run, "": it can; */
    fr_status why;   /* its kind */
    uint64_t number; /* by arrival at its scheduler */
    size_t begun, done; /* choices that have a slot, or had one; that have ended */
};

/* Reads a body, which the request keeps (so does one that can't be run); an exchange that it answers, held
 * (NULL: nobody asks). Several threads may read at a time. */
fr_generation_request *fr_generation_request_read(fr_http_exchange *call, const fr_job_setting *setting,
                                                  fr_job_form form, json_t *body);

/* Ends what is under way and releases the exchange. */
void fr_generation_request_free(fr_generation_request *request);

#endif
