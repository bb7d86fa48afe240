/* A line of a batch: what it asks for, put to a session of its own; and the line that answers it.
 *
 * In: {"prompt" | "ids" | "messages", and any of "id", "n", "temp", "top_k", "top_p", "min_p", "seed", "stop",
 * "ignore_eos", "images", and other samplers' settings by their names in llama.cpp's server}; what is not there is as
 * the command line says. Out: {"id", "ids", "text", "stop",
 * "stats"}, a chat's with what its reply is made of, and "seed" where for the line's -1 one was drawn; or {"id",
 * "error"}. */
#ifndef FR_TOOLS_JOB_H
#define FR_TOOLS_JOB_H

#include "loaded.h"
#include "reply.h"

/* What all lines share. */
typedef struct fr_job_setting {
    const fr_arguments *args;
    const fr_loaded *loaded;
    fr_engine *engine;
} fr_job_setting;

typedef struct fr_job {
    json_t *line; /* as it was read, its id but for null; NULL: it is no JSON object */
    char *id;     /* its text, which is given back as it was written; NULL: there is none */
    int64_t seed; /* that was drawn for it; -1: none */
    const fr_job_setting *setting;
    fr_options *options;
    fr_prompt prompt;
    fr_picture *pictures[FR_IMAGES_MAX];
    size_t picture_count;
    const char *stops[FR_STOPS_MAX];
    size_t stop_count;
    int64_t most; /* ids at most, -1: no limit */
    bool ignore_eos;
    fr_session *session;
    fr_stream text;
    fr_reply_view view;
    fr_reply reply;
    bool ended;
    char error[640]; /* "": none */
} fr_job;

/* What the line asks for: the ids of its prompt, and how many at most behind it (-1: no limit). False: it can't be
 * run. */
bool fr_job_measure(const fr_job_setting *setting, const char *line, size_t length, size_t *prompt, int64_t *most);

/* Reads the line and puts its prompt to a new session, which rounds will run; a job that can't be run has ended, and
 * its answer says why. */
void fr_job_begin(fr_job *job, const fr_job_setting *setting, const char *line, size_t length);

/* Its part in the next round, with room for FR_STEP_MAX ids; and what that gave. */
fr_round fr_job_round(const fr_job *job, int32_t *ids);
void fr_job_take(fr_job *job, const fr_round *round);

/* Ends it where it is: its answer has what there is, and says "interrupt". */
void fr_job_interrupt(fr_job *job);

/* The line for one that has ended; free. */
char *fr_job_answer(fr_job *job);
void fr_job_end(fr_job *job);

#endif
