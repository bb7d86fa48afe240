/* Declares jobs. A job is one text that is generated for a line of a batch or for a request to a server, together with
 * the session that generates it.
 *
 * In, for a batch: {"prompt" | "ids" | "messages", and any of "id", "n", "temp", "top_k", "top_p", "min_p", "seed",
 * "stop", "ignore_eos", "logprobs", "logit_bias", "images", "tools", "grammar", "json_schema", "regex", and the
 * settings of other samplers by their names in llama.cpp's server}. A member that is missing or null has the command
 * line's value. Out: {"id", "ids", "text", "stop", "stats"}. For a chat, the parts of the reply are added. "logprobs"
 * is added if the line asks for it. "seed" is added if the line's seed is -1, so that a seed was drawn. A line that
 * can't be run gives {"id", "error"}.
 *
 * OpenAI's form is {"custom_id", "method", "url", "body"}; its answer is {"id", "custom_id", "response":
 * {"status_code", "request_id", "body"}, "error"}.
 *
 * In, for a server: a body as in OpenAI's form. The server reads its members and prompt one by one (job_parts.h). Out:
 * ids, the text, and the reason why it ended; the server writes the answer. */
#ifndef FR_TOOLS_JOBS_JOB_H
#define FR_TOOLS_JOBS_JOB_H

#include "tools/cli/loaded.h"
#include "tools/cli/reply.h"

/* A line of a file, and its position. */
typedef struct fr_job_line {
    const char *text;
    size_t length, row; /* row: the line's number in the file, from 1 */
    size_t number;      /* the line's number among the lines that are not blank, from 0 */
} fr_job_line;

/* The state that all lines of a batch, or all requests to a model, share. */
typedef struct fr_job_setting {
    const fr_arguments *args;
    fr_loaded *loaded;
    fr_engine *engine;
    const char *file; /* name of the file with the lines, for error lines; NULL: the job belongs to a server */
    /* number of positions of the context of each session in the engine; set only by a server */
    int64_t context;
    size_t longest;          /* number of bytes of the model's longest token; 0: not known */
    const char *model;       /* the model's name in answers, if the request names no model; set only by a server */
    const char *fingerprint; /* hash of everything besides the request that decides the text; set only by a server */
} fr_job_setting;

typedef enum fr_job_form {
    FR_JOB_PLAIN,      /* forerun's own form of a line */
    FR_JOB_REQUEST,    /* OpenAI's form; the line's "url" says whether it is a chat or a completion */
    FR_JOB_CHAT,       /* /v1/chat/completions */
    FR_JOB_COMPLETION, /* /v1/completions */
    FR_JOB_NATIVE,     /* /completion, llama.cpp's own form; only for a server */
} fr_job_form;

typedef struct fr_job {
    json_t *line; /* the line as it was read, with its id replaced by null; NULL: the line is not a JSON object */
    char *id;     /* text of the id, which the answer repeats unchanged; NULL: there is no id */
    fr_job_form form;
    const char *member;    /* name of the request's member that is being read; NULL: no member is being read */
    const json_t *request; /* the object whose members are the settings. It is the line itself, or the line's "body" */
    size_t row;
    int64_t seed; /* the random seed that was drawn for the job; -1: none was drawn */
    /* Number of most likely ids whose log-probabilities are given with each id of the reply. The id's own
     * log-probability is given too. -1: no log-probabilities are given. */
    int64_t best;
    bool chances;     /* probabilities are given instead of log-probabilities; they are those after the
                                     * samplers have removed tokens */
    json_t *settings; /* settings of the chat template */
    /* the grammar that the reply must follow (job_grammar.h); NULL: the reply may be any text */
    struct fr_job_grammar *grammar;
    struct fr_job_budget *budget; /* the limit of the reasoning (job_budget.h); NULL: no limit */
    bool must_call;               /* the reply must be tool calls */
    /* one_call: the reply ends after its first call. several: the request allows several calls */
    bool one_call, several;
    const char *tool; /* the only tool that the reply may call; NULL: it may call any tool */
    const fr_job_setting *setting;
    fr_options *options;
    size_t *sharers; /* number of jobs that share this prompt and its pictures; NULL: only this job uses them */
    /* the token that is twice at the beginning of the prompt, for a note; NULL: there is no such token */
    const char *doubled;
    /* number of choices that are generated (job_choices.h). This is "n", or "best_of" if "best_of" is larger */
    size_t each;
    /* number of choices that the answer shows. It shows the likeliest ones. 0: it shows all */
    size_t shown;
    /* log-probabilities are computed only to rank the choices; the answer does not show them */
    bool hides_logprobs;
    struct fr_job_ended *choices; /* choices of a line that have ended already; NULL: none have */
    bool echo;                    /* the answer begins with its prompt (job_echo.h) */
    /* the prompt's log-probabilities are computed too. This is set only for the first choice of a prompt */
    bool scores;
    fr_reply echoed;      /* the prompt's log-probabilities so far */
    const json_t *suffix; /* "suffix" of /v1/completions: the text that follows the reply; NULL: none */
    /* the conversation's last message is the beginning of a reply, and the model continues that message */
    bool continues;
    fr_prompt prompt;
    double adapter_scales[FR_LOADED_ADAPTERS_MAX]; /* the scale of each adapter (fr_loaded.adapters) */
    fr_picture *pictures[FR_IMAGES_MAX];
    size_t picture_count;
    const char *stops[FR_STOPS_MAX];
    size_t stop_count;
    bool keeps_stop;                /* the stop string that ends the text stays a part of the text */
    int32_t stop_ids[FR_STOPS_MAX]; /* ids that end the text and are not part of it */
    size_t stop_id_count;
    int64_t most; /* the most ids of the reply; -1: no limit */
    size_t least; /* the least number of ids of the reply */
    bool ignore_eos;
    fr_session *session;
    /* called while pictures are run. If it returns true, the job ends. NULL: nothing is called */
    fr_abort_fn *pause;
    void *pause_context;
    fr_stream text;
    fr_reply_view view;
    fr_reply reply;
    /* 0, unless the prompt's number of bytes alone shows that it is too long. Then this is a lower bound of its number
     * of tokens. */
    size_t too_long;
    bool ended;
    char error[640]; /* "": there is no error */
    fr_status why;   /* the kind of the error */
} fr_job;

/* Measures a line. *prompt: number of ids of its prompt. *most: the largest number of ids of its reply; -1: no limit.
 * Returns false if the line can't be run. */
bool fr_job_measure(const fr_job_setting *setting, const fr_job_line *line, size_t *prompt, int64_t *most);

/* Reads the line and puts its prompt into a new session, so that rounds can run it. If the job can't be run, it ends at
 * once, and its answer has the reason. */
void fr_job_begin(fr_job *job, const fr_job_setting *setting, const fr_job_line *line);

/* Begins the next choice, if the line of a batch asks for several choices. The choice that has ended is stored before.
 * Returns false if there is no next choice, or if the job has failed or was interrupted. */
bool fr_job_next_choice(fr_job *job);

/* Opens a server's job for the body of a request. The settings of the command line are the defaults. The body must
 * outlive the job. The caller then sets the scales of adapters, reads the members and the prompt, and starts the job.
 * The setting is not changed, so several threads may open jobs at the same time. */
void fr_job_open(fr_job *job, const fr_job_setting *setting, fr_job_form form, const json_t *request);

/* Makes a second job for the same request, before either job is started. The two jobs share the prompt. */
void fr_job_copy(fr_job *copy, fr_job *job);

/* Starts the job: puts its prompt into a new session of the engine. kept: a saved session (bytes of
 * fr_session_save_bytes), or NULL. If the prompt and the saved session begin in the same way, that beginning is not run
 * again. If the job can't be run, it ends at once, and its error has the reason. */
void fr_job_start(fr_job *job, const void *kept, size_t size);

/* fr_job_resume is called for a session that was swapped out and restored. A saved session has no state of the grammar,
 * so this function runs the grammar over the text again. fr_job_leave is called if a session outlives the job. It
 * removes the grammar and the masks from the session. */
fr_status fr_job_resume(const fr_job *job);
fr_status fr_job_leave(const fr_job *job);

/* fr_job_round gives the job's entry for the next round. ids: memory for FR_STEP_MAX ids. When the round has been run,
 * fr_job_take takes the ids that it gave. */
fr_round fr_job_round(const fr_job *job, int32_t *ids);
void fr_job_take(fr_job *job, const fr_round *round);

/* Ends the job with the library's error. Call it after a library call for the job has failed. */
void fr_job_fail(fr_job *job, fr_status status);

/* These functions end a job with its text so far. fr_job_interrupt gives the reason "interrupt". fr_job_limit gives the
 * reason "length", because the job has reached a limit. fr_job_pass_over ends a line that was never begun. */
void fr_job_interrupt(fr_job *job);
void fr_job_limit(fr_job *job);
void fr_job_pass_over(fr_job *job, const fr_job_setting *setting, const fr_job_line *line);

/* Makes the text of a JSON object. It consists of `begin`, then `id` as it was written (null if `id` is NULL), then the
 * members of `rest`, which must not be empty. The caller frees the text. */
char *fr_job_behind_id(const char *begin, const char *id, const json_t *rest);

/* Gives the answer of a job that has ended, as a line. The caller frees it. */
char *fr_job_answer(fr_job *job);
void fr_job_end(fr_job *job);

#endif
