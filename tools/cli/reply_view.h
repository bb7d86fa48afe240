/* Splits a chat's reply, while it is generated, into its parts: content, reasoning, and calls of tools.
 *
 * In: ids. Out: an fr_stream gets the content and searches it for stop strings. A callback gets all parts. The callback
 * gets content only when it is certain that no stop string begins in it. If the stream writes to a terminal or a file,
 * reply_screen.c shows all parts there. */
#ifndef FR_TOOLS_CLI_REPLY_VIEW_H
#define FR_TOOLS_CLI_REPLY_VIEW_H

#include <jansson.h>

#include "forerun.h"
#include "tools/cli/output.h"

/* Shows the parts of a reply to a person. On a terminal, reasoning is dim. Elsewhere, reasoning is put between the
 * lines <think> and </think>. A call takes one line. The content is written by the stream itself. */
typedef struct fr_reply_screen {
    FILE *out;
    fr_word_wrap *wrap; /* wraps lines if `out` is a terminal; NULL: lines are not wrapped */
    /* reasoning is dim, because `out` is a terminal; otherwise it is put between <think> and </think> */
    bool dim;
    bool thinking; /* the part that was shown last is reasoning */
    bool begun;    /* something was shown */
} fr_reply_screen;

/* fr_reply_screen_show (an fr_reply_fn) shows the next bytes of a part. fr_reply_screen_end ends the part that was
 * shown last. */
void fr_reply_screen_show(void *screen, fr_reply_part part, const char *text, size_t length);
void fr_reply_screen_end(fr_reply_screen *screen);

typedef struct fr_reply_view {
    const fr_tokenizer *tokenizer;
    fr_reply_parser *parser;
    fr_stream *text;
    fr_stream fed;     /* the bytes of all ids so far, with whether they came from accepted drafts */
    size_t passed;     /* number of bytes of `fed` that were passed on, or that belong to marks */
    fr_reply_fn *told; /* gets the next bytes of a part as they come; NULL: no callback */
    void *context;
    fr_reply_screen screen; /* shows the parts; nothing is shown if its `out` is NULL */
    bool accepted;          /* the bytes that are being passed on came from an accepted draft */
    bool one_call;          /* the first call ends the reply; this is set before the first id */
    bool cut;               /* the reply was cut off, so an incomplete call is passed on as it is */
    bool stopped;           /* a stop string was found, or only one call was wanted and it is complete */
} fr_reply_view;

/* Opens a view. prompt: the rendered conversation to which the reply belongs. settings: the settings with which it was
 * rendered. `text` must outlive the view. If `text` goes to a terminal or a file, all parts of the reply are shown
 * there. */
fr_status fr_reply_view_open(fr_reply_view *view, const fr_tokenizer *tokenizer, const json_t *settings,
                             const fr_marked_text *prompt, fr_stream *text);
void fr_reply_view_close(fr_reply_view *view);

/* Sets a callback that gets all parts. Call this function before the first id. The callback gets a tool's call only
 * when the call is complete. If the reply was cut off, the callback gets the incomplete call at the end. */
void fr_reply_view_tell(fr_reply_view *view, fr_reply_fn *told, void *context);

/* fr_reply_view_feed adds the next id of the reply. accepted: the id was an accepted draft. *stopped: a stop string was
 * found, or only one call was wanted and it is complete. fr_reply_view_finish ends the reply, and passes on the bytes
 * that were held back. cut: the reply ended at a limit, so an incomplete call is passed on as it is. */
fr_status fr_reply_view_feed(fr_reply_view *view, int32_t id, bool accepted, bool *stopped);
fr_status fr_reply_view_finish(fr_reply_view *view, bool cut, bool *stopped);

/* Adds the parts that are not content to a message or a result, as "reasoning_content" and "tool_calls". */
fr_status fr_reply_view_add(const fr_reply_view *view, json_t *object);

#endif
