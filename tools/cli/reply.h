/* Collects the reply to a prompt from the steps of a session: its ids, its text, and the reason why it ended. */
#ifndef FR_TOOLS_CLI_REPLY_H
#define FR_TOOLS_CLI_REPLY_H

#include "tools/cli/loaded.h"
#include "tools/cli/output.h"
#include "tools/cli/reply_view.h"

typedef enum fr_end {
    FR_END_NONE,      /* the reply has not ended */
    FR_END_EOS,       /* an end-of-sequence token was generated */
    FR_END_LENGTH,    /* -n tokens were generated */
    FR_END_CONTEXT,   /* the context is full */
    FR_END_STOP,      /* a stop string was found */
    FR_END_INTERRUPT, /* the session's abort callback ended the reply */
} fr_end;

typedef struct fr_reply_logprob {
    int32_t id;
    float value;
} fr_reply_logprob;

/* The settings of a reply: the session that generates it, its limits, and the stream for its text. */
typedef struct fr_reply_setting {
    const fr_model *model;
    fr_session *session;
    int64_t most; /* limit of ids; below 1: no limit */
    /* number of most likely tokens whose log-probabilities are given with each id. The id's own log-probability is
     * given too. -1: no log-probabilities are given */
    int64_t best;
    bool chances; /* results have probabilities ("prob" and "top_probs") instead of log-probabilities */
    bool ignore_eos;
    const int32_t *stop_ids; /* ids that end the reply, in addition to end-of-sequence tokens; NULL: none */
    size_t stop_id_count;
    fr_stream *text; /* receives the text; NULL: only ids are wanted */
    /* splits a chat's reply into parts, and writes the content to `text`; NULL: the reply is not split */
    fr_reply_view *view;
} fr_reply_setting;

typedef struct fr_reply fr_reply;

/* Makes room in a full context by dropping old turns. *made: there is room. The timeline then has the remaining
 * conversation, followed by the reply's ids. */
typedef fr_status fr_make_room_fn(void *context, const fr_reply *reply, bool *made);

typedef struct fr_reply_shift {
    fr_make_room_fn *make_room;
    void *context;
} fr_reply_shift;

struct fr_reply {
    fr_reply_setting setting;
    fr_decoder *decoder; /* turns ids into text; NULL if no text is wanted, or if a view splits the reply */
    int32_t *ids;
    size_t *begins; /* for each id, the number of bytes of text before it */
    size_t count;   /* number of ids that the steps gave; all of them are on the session's timeline */
    /* number of ids up to and including the id that ended the reply, for example by completing a stop string */
    size_t kept;
    size_t capacity;
    /* with --logprobs, the log-probabilities of each id: first its own one, then those of the `best` most likely
     * tokens */
    fr_reply_logprob *logprobs;
    size_t best;
    fr_end end;
};

/* These functions collect a reply. fr_reply_begin begins an empty reply. If the reply has a text, the model needs a
 * tokenizer. Then fr_reply_take is called with the ids of each step until the reply has ended. A step may have at most
 * fr_reply_room ids. fr_reply_finish ends the text. */
fr_status fr_reply_begin(fr_reply *reply, const fr_reply_setting *setting);
size_t fr_reply_room(const fr_reply *reply);
fr_status fr_reply_take(fr_reply *reply, const int32_t *ids, size_t count, size_t accepted);
fr_status fr_reply_finish(fr_reply *reply);
void fr_reply_free(fr_reply *reply);

/* Adds the reply to a result: its ids, text and log-probabilities, the parts of a chat's reply, and the reason why the
 * reply ended. */
fr_status fr_reply_put(const fr_reply *reply, json_t *object);

/* Gives the reply's ids from index `from` up to, but not including, `to`, as an array. */
json_t *fr_reply_ids(const fr_reply *reply, size_t from, size_t to);

/* These functions give the log-probabilities of the ids from index `from` up to, but not including, `to`. They return
 * NULL if no log-probabilities were wanted. fr_reply_logprobs makes an object for each id: [{"id", "logprob", "token",
 * "bytes", "top_logprobs": [{"id", "logprob", "token", "bytes"}, ...]}, ...]. fr_reply_logprobs_lists uses the form of
 * OpenAI's /v1/completions: {"tokens", "token_logprobs", "top_logprobs", "text_offset"}. Before the call, *offset is
 * the number of characters before the token `from`; the call adds the number of characters of the tokens. If the model
 * has no tokenizer, the results have no texts. */
json_t *fr_reply_logprobs(const fr_reply *reply, size_t from, size_t to);
json_t *fr_reply_logprobs_lists(const fr_reply *reply, size_t from, size_t to, size_t *offset);

/* Generates and finishes a reply with the session that the command line opened. shift: makes room in a full context;
 * NULL: a full context ends the reply. Gives the exit status. */
int fr_reply_run(fr_reply *reply, fr_loaded *loaded, const fr_arguments *args, fr_stream *text, fr_reply_view *view,
                 const fr_reply_shift *shift);

/* Gives the reason's name: "eos", "length", "context", "stop" or "interrupt". */
const char *fr_end_name(fr_end end);

/* Prints a note after the text if the reply ended in a way that the user may not expect, such as a full context. Prints
 * nothing with --quiet. */
void fr_reply_remark(const fr_reply *reply, const fr_loaded *loaded, const fr_arguments *args);

#endif
