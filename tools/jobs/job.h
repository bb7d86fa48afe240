/* A job: a text that a line of a batch or a request to a server asks for, and its session.
 *
 * In, for a batch: {"prompt" | "ids" | "messages", and any of "id", "n", "temp", "top_k", "top_p", "min_p", "seed",
 * "stop", "ignore_eos", "logprobs", "logit_bias", "images", "tools", "grammar", "json_schema", "regex", and the
 * settings of other samplers by their names in llama.cpp's server}. A member that is missing or null has the command
 * line's value. Out: {"id", "ids", "text", "stop", "stats"}, the parts of the reply for a chat, "logprobs" if they
 * were asked for, and "seed" if the line's seed is -1 and one was drawn; or {"id", "error"}.
 *
 * OpenAI's form is {"custom_id", "method", "url", "body"}; its answer is {"id", "custom_id", "response":
 * {"status_code", "request_id", "body"}, "error"}.
 *
 * In, for a server: such a body, whose members and prompt are read one by one (job_parts.h). Out: ids, the text, and
 * the reason why it ended; the server writes the answer. */
#ifndef FR_TOOLS_JOBS_JOB_H
#define FR_TOOLS_JOBS_JOB_H

#include "tools/cli/loaded.h"
#include "tools/cli/reply.h"

/* A line of a file, and its position. */
typedef struct fr_job_line {
    const char *text;
    size_t length, row; /* row: the line's number in the file, from 1 */
    size_t number;      /* its number among the lines that are not blank, from 0 */
} fr_job_line;

/* The state that all lines of a batch, or all requests to a model, share. */
typedef struct fr_job_setting {
    const fr_arguments *args;
    fr_loaded *loaded;
    fr_engine *engine;
    const char *file;        /* name of the lines' file in errors; NULL: the job is a server's, which has no file */
    int64_t context;         /* positions of a session of the engine; only a server's */
    size_t longest;          /* bytes of the model's longest token; 0: not known */
    const char *model;       /* the model's name in answers to requests that have none; only a server's */
    const char *fingerprint; /* hash of everything that decides a text besides its request; only a server's */
} fr_job_setting;

typedef enum fr_job_form {
    FR_JOB_PLAIN,
    FR_JOB_REQUEST,    /* OpenAI's form, not yet known to be one of the next two */
    FR_JOB_CHAT,       /* /v1/chat/completions */
    FR_JOB_COMPLETION, /* /v1/completions */
    FR_JOB_NATIVE,     /* /completion, llama.cpp's own form; only a server's */
} fr_job_form;

typedef struct fr_job {
    json_t *line; /* the line as it was read, with its id replaced by null; NULL: it is not a JSON object */
    char *id;     /* the id's text, which is written back unchanged; NULL: there is none */
    fr_job_form form;
    const char *member;    /* the member of the request that is being read; NULL: none */
    const json_t *request; /* the object whose members are the settings: the line, or its "body" */
    size_t row;
    int64_t seed; /* the seed that was drawn for the job; -1: none was */
    /* number of best ids whose log-probabilities are given beside each id's own; -1: no log-probabilities */
    int64_t best;
    bool chances;                   /* log-probabilities are given as probabilities after the samplers */
    json_t *settings;               /* settings of the chat template */
    struct fr_job_grammar *grammar; /* the grammar of the reply (job_grammar.h); NULL: any text */
    struct fr_job_budget *budget;   /* the limit of the reasoning (job_budget.h); NULL: no limit */
    bool must_call;                 /* the reply must be tool calls */
    bool one_call, several;         /* at most one call; several calls were asked for */
    const char *tool;               /* the only tool that may be called; NULL: any */
    const fr_job_setting *setting;
    fr_options *options;
    size_t *sharers;              /* number of jobs that share this prompt and its pictures; NULL: no other job does */
    const char *doubled;          /* the token with which the prompt begins twice, for a note; NULL: none */
    size_t each;                  /* choices that are generated (job_choices.h): "n", or "best_of" if that is more */
    size_t shown;                 /* choices that the answer has, the likeliest ones; 0: all */
    bool hides_logprobs;          /* choices are ranked by log-probabilities, but the answer shows none */
    struct fr_job_ended *choices; /* a line's choices that have ended; NULL: none yet */
    bool echo;                    /* the answer begins with its prompt (job_echo.h) */
    bool scores;          /* the prompt's log-probabilities are computed too; only for the first choice of a prompt */
    fr_reply echoed;      /* the prompt's log-probabilities so far */
    const json_t *suffix; /* "suffix" of /v1/completions: the text that follows the reply; NULL: none */
    bool continues;       /* the conversation's last message is the beginning of the reply */
    fr_prompt prompt;
    fr_picture *pictures[FR_IMAGES_MAX];
    size_t picture_count;
    const char *stops[FR_STOPS_MAX];
    size_t stop_count;
    bool keeps_stop;                /* the stop string stays in the text */
    int32_t stop_ids[FR_STOPS_MAX]; /* these ids end the text and are not part of it */
    size_t stop_id_count;
    int64_t most; /* the most ids; -1: no limit */
    size_t least; /* the least ids, which `most` counts too */
    bool ignore_eos;
    fr_session *session;
    /* called while pictures run: true ends the job; NULL: nothing is */
    fr_abort_fn *pause;
    void *pause_context;
    fr_stream text;
    fr_reply_view view;
    fr_reply reply;
    size_t too_long; /* the least number of tokens of a prompt that exceeds the context; 0: it fits */
    bool ended;
    char error[640]; /* "": there is no error */
    fr_status why;   /* the kind of the error */
} fr_job;

/* Gives the size of a line's text: the number of its prompt's ids, and in *most the largest number of ids after it
 * (-1: no limit). Returns false if the line can't be run. */
bool fr_job_measure(const fr_job_setting *setting, const fr_job_line *line, size_t *prompt, int64_t *most);

/* Reads the line and gives its prompt to a new session, which rounds will run. A job that can't be run has ended, and
 * its answer has the reason. */
void fr_job_begin(fr_job *job, const fr_job_setting *setting, const fr_job_line *line);

/* For a batch: stores the choice of the line that has ended (job_choices.h) and begins the next one. Returns false if
 * there is no next one, or if the job has failed or was interrupted. */
bool fr_job_next_choice(fr_job *job);

/* Opens a server's job for the body of a request, with the command line's settings. The body must outlive the job.
 * After this call the members and the prompt are read, and the job is started. The setting is not changed, so several
 * threads may open jobs at the same time. */
void fr_job_open(fr_job *job, const fr_job_setting *setting, fr_job_form form, const json_t *request);

/* Makes a second job of the same request, before either is started. The two share the prompt. */
void fr_job_copy(fr_job *copy, fr_job *job);

/* Starts the job: gives its prompt to a new session of the engine. kept: NULL, or bytes of fr_session_save_bytes: the
 * session continues their text as far as it begins like the prompt. A job that can't be run has ended, and its error
 * has the reason. */
void fr_job_start(fr_job *job, const void *kept, size_t size);

/* fr_job_resume begins the grammar again after the prompt in a restored session, because its state is not saved.
 * fr_job_leave removes grammar and masks from a session that continues without the job. */
fr_status fr_job_resume(const fr_job *job);
fr_status fr_job_leave(const fr_job *job);

/* The first gives the job's part in the next round, with room for FR_STEP_MAX ids. The second takes the result of that
 * round. */
fr_round fr_job_round(const fr_job *job, int32_t *ids);
void fr_job_take(fr_job *job, const fr_round *round);

/* Ends the job because a library call for it has failed. */
void fr_job_fail(fr_job *job, fr_status status);

/* End the job with its text so far. The answer's reason is "interrupt", or "length" if the job has reached a limit.
 * The third function ends a line that will not be begun. */
void fr_job_interrupt(fr_job *job);
void fr_job_limit(fr_job *job);
void fr_job_pass_over(fr_job *job, const fr_job_setting *setting, const fr_job_line *line);

/* Makes the text of an object: `begin`, an id as it was written (NULL: null), and the members of `rest`, at least one.
 * The caller frees it. */
char *fr_job_behind_id(const char *begin, const char *id, const json_t *rest);

/* Gives the line of the answer of a job that has ended; the caller frees it. */
char *fr_job_answer(fr_job *job);
void fr_job_end(fr_job *job);

#endif
