/* One continuation: a session's steps in, ids and text out, and why it ended. */
#ifndef FR_TOOLS_REPLY_H
#define FR_TOOLS_REPLY_H

#include "loaded.h"
#include "output.h"
#include "reply_view.h"

typedef enum fr_end {
    FR_END_NONE,
    FR_END_EOS,
    FR_END_LENGTH,  /* -n tokens */
    FR_END_CONTEXT, /* the context is full */
    FR_END_STOP,    /* a stop string */
    FR_END_INTERRUPT, /* the session's abort callback said so */
} fr_end;

typedef struct fr_reply_logprob {
    int32_t id;
    float value;
} fr_reply_logprob;

typedef struct fr_reply {
    int32_t *ids;
    size_t count;    /* on the session's timeline */
    size_t kept;     /* up to the token that completed a stop string */
    size_t capacity;
    fr_reply_logprob *logprobs; /* with --logprobs, for each id: its own, then those of the `best` */
    size_t best;
    fr_end end;
} fr_reply;

/* Runs a prompted session to the end of its reply. text: where the reply goes, NULL when only ids are wanted. view:
 * NULL, or what takes a chat's reply apart before it goes there. Gives the exit status. */
int fr_reply_run(fr_reply *reply, fr_loaded *loaded, const fr_arguments *args, fr_stream *text, fr_reply_view *view);
void fr_reply_free(fr_reply *reply);

/* "eos", "length", "context", "stop", "interrupt". */
const char *fr_end_name(fr_end end);

/* Remarks on an end that the caller may not have expected, once its text is out; nothing with --quiet. */
void fr_reply_remark(const fr_reply *reply, const fr_loaded *loaded, const fr_arguments *args);

#endif
