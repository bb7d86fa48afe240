/* Collects one continuation: takes the ids of a session's steps; gives ids, text, and the reason why it ended. */
#ifndef FR_TOOLS_CLI_REPLY_H
#define FR_TOOLS_CLI_REPLY_H

#include "tools/cli/loaded.h"
#include "tools/cli/output.h"
#include "tools/cli/reply_view.h"

typedef enum fr_end {
    FR_END_NONE,
    FR_END_EOS,
    FR_END_LENGTH,    /* -n tokens were generated */
    FR_END_CONTEXT,   /* the context is full */
    FR_END_STOP,      /* a stop string was found */
    FR_END_INTERRUPT, /* the session's abort callback ended it */
} fr_end;

typedef struct fr_reply_logprob {
    int32_t id;
    float value;
} fr_reply_logprob;

/* The source of a reply, and the destination of its text. */
typedef struct fr_reply_setting {
    const fr_model *model;
    fr_session *session;
    int64_t most; /* the most ids; below 1: no limit */
    /* number of best tokens whose log-probabilities are given beside each id's own; -1: no log-probabilities */
    int64_t best;
    bool chances; /* log-probabilities are given as probabilities, "prob" and "top_probs" */
    bool ignore_eos;
    const int32_t *stop_ids; /* further ids that end the reply, like a stop string; NULL: none */
    size_t stop_id_count;
    fr_stream *text;     /* NULL: only ids are wanted */
    fr_reply_view *view; /* splits a chat's reply into parts before `text`; NULL: the reply is not split */
} fr_reply_setting;

typedef struct fr_reply fr_reply;

/* Makes room in a full context. *made: there is room again, and the reply's ids follow the remaining part of the
 * conversation. */
typedef fr_status fr_make_room_fn(void *context, const fr_reply *reply, bool *made);

typedef struct fr_reply_shift {
    fr_make_room_fn *make_room;
    void *context;
} fr_reply_shift;

struct fr_reply {
    fr_reply_setting setting;
    fr_decoder *decoder; /* NULL without text, or with a view */
    int32_t *ids;
    size_t *begins; /* for each id, the bytes of text before it */
    size_t count;   /* ids that are on the session's timeline */
    size_t kept;    /* ids up to the token that completed a stop string */
    size_t capacity;
    fr_reply_logprob *logprobs; /* with --logprobs, for each id: its own, then those of the `best` tokens */
    size_t best;
    fr_end end;
};

/* Called in this order: begin an empty reply, whose text needs the model's tokenizer; add each step's ids, at most as
 * many as there is room for, until the reply has ended; finish its text. */
fr_status fr_reply_begin(fr_reply *reply, const fr_reply_setting *setting);
size_t fr_reply_room(const fr_reply *reply);
fr_status fr_reply_take(fr_reply *reply, const int32_t *ids, size_t count, size_t accepted);
fr_status fr_reply_finish(fr_reply *reply);
void fr_reply_free(fr_reply *reply);

/* Adds the reply to a result: ids, text, log-probabilities, the parts of a chat's reply, and the reason why it
 * ended. */
fr_status fr_reply_put(const fr_reply *reply, json_t *object);

/* Gives the ids [from, to). */
json_t *fr_reply_ids(const fr_reply *reply, size_t from, size_t to);

/* Give the log-probabilities of these ids, or NULL if none were wanted. The first function makes an object for each
 * id: [{"id", "logprob", "token", "bytes", "top_logprobs": [{"id", "logprob", "token", "bytes"}, ...]}, ...]. The
 * second uses the form of OpenAI's /v1/completions: {"tokens", "token_logprobs", "top_logprobs", "text_offset"};
 * *offset is the first text offset, and afterwards the next one. A model without a tokenizer has no texts. */
json_t *fr_reply_logprobs(const fr_reply *reply, size_t from, size_t to);
json_t *fr_reply_logprobs_lists(const fr_reply *reply, size_t from, size_t to, size_t *offset);

/* Does all of this for the session that the command line opened. shift: NULL if a full context ends the reply. Gives
 * the exit status. */
int fr_reply_run(fr_reply *reply, fr_loaded *loaded, const fr_arguments *args, fr_stream *text, fr_reply_view *view,
                 const fr_reply_shift *shift);

/* Gives "eos", "length", "context", "stop" or "interrupt". */
const char *fr_end_name(fr_end end);

/* Notes an end that the caller may not have expected, after the text was written. Writes nothing with --quiet. */
void fr_reply_remark(const fr_reply *reply, const fr_loaded *loaded, const fr_arguments *args);

#endif
