/* Splits the reply of a chat into parts as they come: content, reasoning, calls.
 *
 * In: ids. Out: content to an fr_stream, which searches it for stop strings; all parts to a callback, which gets
 * content once it is known that no stop string begins in it. If the stream writes to a terminal or a file,
 * reply_screen.c shows all parts there. */
#ifndef FR_TOOLS_CLI_REPLY_VIEW_H
#define FR_TOOLS_CLI_REPLY_VIEW_H

#include <jansson.h>

#include "forerun.h"
#include "tools/cli/output.h"

/* Shows parts as text for people. Reasoning is dim on a terminal; elsewhere it stands between <think> and </think>,
 * each on a line of its own. A call is a line. The stream writes the content itself. */
typedef struct fr_reply_screen {
    FILE *out;
    fr_word_wrap *wrap; /* wraps lines if `out` is a terminal; NULL: lines end only where the parts say */
    bool dim;           /* reasoning is shown dim, instead of with marks around it */
    bool thinking;      /* the part that was shown last is reasoning */
    bool begun;         /* something was shown */
} fr_reply_screen;

/* The first shows a piece of a part (an fr_reply_fn). The second ends the last part. */
void fr_reply_screen_show(void *screen, fr_reply_part part, const char *text, size_t length);
void fr_reply_screen_end(fr_reply_screen *screen);

typedef struct fr_reply_view {
    fr_reply_parser *parser;
    fr_stream *text;
    fr_reply_fn *told; /* called for each piece; NULL: none */
    void *context;
    fr_reply_screen screen; /* if its `out` is NULL nothing is shown */
    bool accepted;          /* the id that is taken apart is an accepted draft */
    bool one_call;          /* the first call ends the reply; set by the caller, before any id */
    bool cut;               /* the reply was cut off, so an incomplete call is passed on */
    bool stopped;           /* a stop string was found, or the only wanted call is complete */
} fr_reply_view;

/* Opens a view. prompt: the conversation that the reply answers, as it was rendered with these settings. `text` must
 * outlive the view; if it is written to a terminal or file, all parts are shown there. */
fr_status fr_reply_view_open(fr_reply_view *view, const fr_tokenizer *tokenizer, const json_t *settings,
                             const fr_marked_text *prompt, fr_stream *text);
void fr_reply_view_close(fr_reply_view *view);

/* Sets a callback that gets all parts; call it before any id. Calls are passed on only as a whole. */
void fr_reply_view_tell(fr_reply_view *view, fr_reply_fn *told, void *context);

/* The first takes the next id; accepted: it was an accepted draft; *stopped: the content has a stop string, or the
 * reply has had its only call. The second ends the reply and passes on the bytes that were held back; cut: the reply
 * ended at a limit, so an incomplete call is passed on as it is. */
fr_status fr_reply_view_feed(fr_reply_view *view, int32_t id, bool accepted, bool *stopped);
fr_status fr_reply_view_finish(fr_reply_view *view, bool cut, bool *stopped);

/* Adds the parts besides the content to a message or a result: reasoning_content and tool_calls. */
fr_status fr_reply_view_add(const fr_reply_view *view, json_t *object);

#endif
