/* The reply of a chat as its parts come: content, reasoning apart from it, calls.
 *
 * In: ids. Out: content to an fr_stream, which watches it for stop strings; all parts to whoever is told of them,
 * content once it is known that no stop string begins in it. On a terminal, or where else the stream writes to,
 * reply_screen.c shows them. */
#ifndef FR_TOOLS_CLI_REPLY_VIEW_H
#define FR_TOOLS_CLI_REPLY_VIEW_H

#include <jansson.h>

#include "forerun.h"
#include "tools/cli/output.h"

/* Parts as text for people: reasoning is dim on a terminal, and elsewhere stands between <think> and </think>, each on
 * a line of its own; a call is a line. Content itself is what the stream writes. */
typedef struct fr_reply_screen {
    FILE *out;
    fr_word_wrap *wrap; /* of the terminal that out is; NULL: lines end where the parts say */
    bool dim;      /* reasoning is, instead of having marks around it */
    bool thinking; /* the part that was shown last is reasoning */
    bool begun;    /* something was shown */
} fr_reply_screen;

/* An fr_reply_fn; and what stands behind the last part. */
void fr_reply_screen_show(void *screen, fr_reply_part part, const char *text, size_t length);
void fr_reply_screen_end(fr_reply_screen *screen);

typedef struct fr_reply_view {
    fr_reply_parser *parser;
    fr_stream *text;
    fr_reply_fn *told; /* NULL: nobody is */
    void *context;
    fr_reply_screen screen; /* without an out: nothing is shown */
    bool accepted;          /* the id under way is an accepted draft */
    bool one_call;          /* a call ends the reply: set by who wants that, before any id */
    bool cut;               /* the reply was cut off: a call that is told of now is as far as it came */
    bool stopped;           /* a stop string is complete, or the only call that is wanted */
} fr_reply_view;

/* prompt: the conversation that the reply answers, as it was rendered with these settings. text must outlive the view.
 * If it is written somewhere, all parts are shown there. */
fr_status fr_reply_view_open(fr_reply_view *view, const fr_tokenizer *tokenizer, const json_t *settings,
                             const fr_marked_text *prompt, fr_stream *text);
void fr_reply_view_close(fr_reply_view *view);

/* Tells somebody else of the parts, from the first on: before any id. Calls are whole. */
void fr_reply_view_tell(fr_reply_view *view, fr_reply_fn *told, void *context);

/* The next id, whether it was an accepted draft; and the reply's end, which tells of what was held back. cut: the reply
 * ended at a limit, so a call under way is told of as far as it came. *stopped: its content has come to a stop string,
 * or it has had its only call. */
fr_status fr_reply_view_feed(fr_reply_view *view, int32_t id, bool accepted, bool *stopped);
fr_status fr_reply_view_finish(fr_reply_view *view, bool cut, bool *stopped);

/* Adds what the reply is beside its content to a message or a result: reasoning_content and tool_calls. */
fr_status fr_reply_view_add(const fr_reply_view *view, json_t *object);

#endif
