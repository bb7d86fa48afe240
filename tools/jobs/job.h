/* A text that was asked for, put to a session of its own: by a line of a batch, or by a request to a server.
 *
 * In, of a batch: {"prompt" | "ids" | "messages", and any of "id", "n", "temp", "top_k", "top_p", "min_p", "seed",
 * "stop", "ignore_eos", "logprobs", "logit_bias", "images", "tools", "grammar", "json_schema", "regex", and other
 * samplers' settings by their names in llama.cpp's server}; what is not there, or null, is as the command line says.
 * Out: {"id", "ids", "text", "stop", "stats"}, a chat's with what its reply is made of, "logprobs" where they were
 * asked for, and "seed" where for the line's -1 one was drawn; or {"id", "error"}.
 *
 * Or OpenAI's form, in {"custom_id", "method", "url", "body"}, out {"id", "custom_id", "response": {"status_code",
 * "request_id", "body"}, "error"}.
 *
 * In, of a server: such a body, whose members and prompt are taken one by one (job_parts.h). Out: ids, text, why it
 * ended; the answer is the server's to write. */
#ifndef FR_TOOLS_JOBS_JOB_H
#define FR_TOOLS_JOBS_JOB_H

#include "tools/cli/loaded.h"
#include "tools/cli/reply.h"

/* A line of a file, and which. */
typedef struct fr_job_line {
    const char *text;
    size_t length, row; /* row: of all lines of the file, from 1 */
    size_t number;      /* of those that are not blank, from 0 */
} fr_job_line;

/* What all lines, or all requests to a model, share. */
typedef struct fr_job_setting {
    const fr_arguments *args;
    fr_loaded *loaded;
    fr_engine *engine;
    const char *file; /* the lines', as errors call it; NULL: a server's, which have none */
    int64_t context; /* positions of a session of the engine; a server's alone */
    size_t longest;  /* bytes of the model's longest token; 0: not known */
    const char *model; /* what answers call it, where a request does not; a server's alone */
    const char *fingerprint; /* what decides a text beside its request, for answers; a server's alone */
} fr_job_setting;

typedef enum fr_job_form {
    FR_JOB_PLAIN,
    FR_JOB_REQUEST,    /* OpenAI's, of neither of these kinds yet */
    FR_JOB_CHAT,       /* /v1/chat/completions */
    FR_JOB_COMPLETION, /* /v1/completions */
    FR_JOB_NATIVE,     /* /completion, of a server alone: llama.cpp's own form */
} fr_job_form;

typedef struct fr_job {
    json_t *line; /* as it was read, its id but for null; NULL: it is no JSON object */
    char *id;     /* its text, which is given back as it was written; NULL: there is none */
    fr_job_form form;
    const char *member;    /* of the request, that is being taken; NULL: none is */
    const json_t *request; /* whose members say what is asked for: the line, or its "body" */
    size_t row;
    int64_t seed; /* that was drawn for it; -1: none */
    int64_t best; /* log-probabilities of so many beside each id's own, -1: none at all */
    bool chances; /* log-probabilities are given as probabilities after the samplers */
    json_t *settings; /* of its chat template */
    struct fr_job_grammar *grammar; /* what its text is of (job_grammar.h); NULL: any */
    struct fr_job_budget *budget;   /* how much it may reason (job_budget.h); NULL: as much as it likes */
    bool must_call;                 /* the reply must be tool calls */
    bool one_call, several;         /* at most one call; several calls were asked for */
    const char *tool;               /* the only one that may be called, NULL: any */
    const fr_job_setting *setting;
    fr_options *options;
    size_t *sharers; /* how many jobs have this prompt and its pictures; NULL: no other has */
    const char *doubled; /* text of the token that its prompt begins with twice, which is worth a note; NULL: of none */
    size_t each;  /* choices that are generated (job_choices.h): "n", or "best_of" if that is more */
    size_t shown; /* choices that the answer has, the likeliest ones; 0: all */
    bool hides_logprobs; /* the likeliest are chosen by them, and the request asks for none */
    struct fr_job_ended *choices; /* a line's choices that have ended; NULL: none yet */
    bool echo;    /* the answer begins with its prompt (job_echo.h) */
    bool scores;  /* and the prompt's log-probabilities are computed, for the first choice of a prompt alone */
    fr_reply echoed; /* those, as they come */
    const json_t *suffix; /* of /v1/completions: the text that stands behind what is asked for; NULL: none */
    bool continues;  /* the conversation's last message is the beginning of the reply */
    fr_prompt prompt;
    fr_picture *pictures[FR_IMAGES_MAX];
    size_t picture_count;
    const char *stops[FR_STOPS_MAX];
    size_t stop_count;
    bool keeps_stop; /* the stop string stays in the text */
    int32_t stop_ids[FR_STOPS_MAX]; /* these ids end the text and are not part of it */
    size_t stop_id_count;
    int64_t most; /* ids at most, -1: no limit */
    size_t least; /* fewest ids, see "most" */
    bool ignore_eos;
    fr_session *session;
    fr_stream text;
    fr_reply_view view;
    fr_reply reply;
    size_t too_long; /* tokens that its prompt has at least, and no context; 0: it was not looked at so */
    bool ended;
    char error[640]; /* "": none */
    fr_status why;   /* its kind */
} fr_job;

/* What the line asks for: the ids of its prompt, and how many at most behind it (-1: no limit). False: it can't be
 * run. */
bool fr_job_measure(const fr_job_setting *setting, const fr_job_line *line, size_t *prompt, int64_t *most);

/* Reads the line and puts its prompt to a new session, which rounds will run; a job that can't be run has ended, and
 * its answer says why. */
void fr_job_begin(fr_job *job, const fr_job_setting *setting, const fr_job_line *line);

/* A server's: begins one for a request's body, which must outlive it, by what the command line says. Its members and
 * its prompt are to be taken; then it is started. Nothing here changes the setting: several threads may do so at a
 * time. */
void fr_job_open(fr_job *job, const fr_job_setting *setting, fr_job_form form, const json_t *request);

/* Another one of the same request, neither of them started; what there is of a prompt is there once for both. */
void fr_job_copy(fr_job *copy, fr_job *job);

/* Puts its prompt to a new session of the engine. kept: NULL, or what fr_session_save_bytes gave, which the session
 * goes on from as far as the prompt begins so. A job that can't be run has ended, and its error says why. */
void fr_job_start(fr_job *job, const void *kept, size_t size);

/* Its session was restored to what it was before: what belongs to it and is not saved is as it was too. And it has
 * ended, and its session goes on without it. */
fr_status fr_job_resume(const fr_job *job);
fr_status fr_job_leave(const fr_job *job);

/* Its part in the next round, with room for FR_STEP_MAX ids; and what that gave. */
fr_round fr_job_round(const fr_job *job, int32_t *ids);
void fr_job_take(fr_job *job, const fr_round *round);

/* Ends it by the failure of a library call that was made for it. */
void fr_job_fail(fr_job *job, fr_status status);

/* Ends it where it is: its answer has what there is, and says "interrupt"; or, at a limit that it was given, "length".
 * And a line that will not be begun. */
void fr_job_interrupt(fr_job *job);
void fr_job_limit(fr_job *job);
void fr_job_pass_over(fr_job *job, const fr_job_setting *setting, const fr_job_line *line);

/* The beginning of an object up to an id, that id as it was written (NULL: null), and the members of the rest, at least
 * one; free. */
char *fr_job_behind_id(const char *begin, const char *id, const json_t *rest);

/* The line for one that has ended; free. */
char *fr_job_answer(fr_job *job);
void fr_job_end(fr_job *job);

#endif
