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

/* Shows parts as text for people. Reasoning is dim on a terminal, and elsewhere stands between <think> and </think>,
 * each on a line of its own; a call is a line. The stream writes the content itself. */
typedef struct fr_reply_screen {
    FILE *out;
    fr_word_wrap *wrap; /* of the terminal that out is; NULL: lines end where the parts say */
    bool dim;           /* reasoning is, instead of having marks around it */
    bool thinking;      /* the part that was shown last is reasoning */
    bool begun;         /* something was shown */
} fr_reply_screen;

/* Show a piece of a part, an fr_reply_fn; and end the last part. */
void fr_reply_screen_show(void *screen, fr_reply_part part, const char *text, size_t length);
void fr_reply_screen_end(fr_reply_screen *screen);

typedef struct fr_reply_view {
    fr_reply_parser *parser;
    fr_stream *text;
    fr_reply_fn *told; /* called for each piece; NULL: none */
    void *context;
    fr_reply_screen screen; /* without an out: nothing is shown */
    bool accepted;          /* the id under way is an accepted draft */
    bool one_call;          /* a call ends the reply: set by who wants that, before any id */
    bool cut;               /* the reply was cut off, so that an incomplete call is passed on as it is */
    bool stopped;           /* a stop string is complete, or the only call that is wanted */
} fr_reply_view;

/* Opens a view. prompt: the conversation that the reply answers, as it was rendered with these settings. text must
 * outlive the view; if it is written somewhere, all parts are shown there. */
fr_status fr_reply_view_open(fr_reply_view *view, const fr_tokenizer *tokenizer, const json_t *settings,
                             const fr_marked_text *prompt, fr_stream *text);
void fr_reply_view_close(fr_reply_view *view);

/* Sets a callback that gets the parts from the first one on; call it before any id. Calls come as a whole. */
void fr_reply_view_tell(fr_reply_view *view, fr_reply_fn *told, void *context);

/* Take the next id, and if it was an accepted draft; and end the reply, which passes on the bytes that were held back.
 * cut: the reply ended at a limit, so that an incomplete call is passed on as it is. *stopped: the content has a stop
 * string, or the reply has had its only call. */
fr_status fr_reply_view_feed(fr_reply_view *view, int32_t id, bool accepted, bool *stopped);
fr_status fr_reply_view_finish(fr_reply_view *view, bool cut, bool *stopped);

/* Adds the parts besides the content to a message or a result: reasoning_content and tool_calls. */
fr_status fr_reply_view_add(const fr_reply_view *view, json_t *object);

#endif
