/* The reply of a chat as its parts come: content as it is, reasoning apart from it, calls one a line.
 *
 * In: ids. Out: content to an fr_stream, which watches it for stop strings; the rest where the stream writes to. On a
 * terminal reasoning is dim; elsewhere it stands between <think> and </think>, each on a line of its own. */
#ifndef FR_TOOLS_REPLY_VIEW_H
#define FR_TOOLS_REPLY_VIEW_H

#include <jansson.h>

#include "forerun.h"
#include "output.h"

typedef struct fr_reply_view {
    fr_reply_parser *parser;
    fr_stream *text;
    bool dim;      /* reasoning is, instead of having marks around it */
    bool accepted; /* the id under way is an accepted draft */
    bool stopped;  /* a stop string is complete */
    bool thinking; /* the part that was shown last is reasoning */
    bool begun;    /* something was shown */
} fr_reply_view;

/* prompt: the conversation that the reply answers, as it was rendered with these settings. text must outlive the
 * view. */
fr_status fr_reply_view_open(fr_reply_view *view, const fr_tokenizer *tokenizer, const json_t *settings,
                             const fr_marked_text *prompt, fr_stream *text);
void fr_reply_view_close(fr_reply_view *view);

/* The next id, whether it was an accepted draft; and the reply's end, which shows what was held back. *stopped: its
 * content has come to a stop string. */
fr_status fr_reply_view_feed(fr_reply_view *view, int32_t id, bool accepted, bool *stopped);
fr_status fr_reply_view_finish(fr_reply_view *view, bool *stopped);

/* Adds what the reply is beside its content to a message or a result: reasoning_content and tool_calls. */
fr_status fr_reply_view_add(const fr_reply_view *view, json_t *object);

#endif
