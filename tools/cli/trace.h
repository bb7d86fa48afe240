/* Writes the file of --trace. The session writes its own lines (fr_session_set_trace), and this code adds the following
 * lines:
 *     {"event":"text", "of", "pieces"}     of: "prompt" after a prompt's lines, "reply" after an accept line. pieces:
 *                                          a text for each id. If the last character is incomplete, its bytes follow
 *     {"event":"stats", "stop", "stats"}   after a reply; stats is as in --output json
 * The file gets its name when it is complete. Without --trace, a tracer has no file and its functions do nothing. */
#ifndef FR_TOOLS_CLI_TRACE_H
#define FR_TOOLS_CLI_TRACE_H

#include "tools/cli/figures.h"
#include "tools/cli/output.h"

typedef struct fr_tracer {
    fr_writer writer; /* if its file is NULL there is no trace */
    const fr_tokenizer *tokenizer;
    fr_decoder *decoder; /* made for the first text; NULL before the first text, or if the model has no tokenizer */
} fr_tracer;

/* Opens the trace. path NULL: no trace. Gives the exit status. */
int fr_tracer_open(fr_tracer *tracer, const char *path);

void fr_tracer_follow(fr_tracer *tracer, fr_session *session, const fr_tokenizer *tokenizer);

/* Writes the text of ids that have just been run. of: "prompt" or "reply". last: these ids are the end of the prompt or
 * reply. */
fr_status fr_tracer_text(fr_tracer *tracer, const char *of, const int32_t *ids, size_t count, bool last);

/* Writes the statistics at a reply's end. */
void fr_tracer_stats(fr_tracer *tracer, const char *stop, const fr_figures *figures, const fr_session *session);

/* Completes the file. Gives the exit status. */
int fr_tracer_close(fr_tracer *tracer);

/* Closes the file without completing it; does nothing after fr_tracer_close. */
void fr_tracer_abandon(fr_tracer *tracer);

#endif
