/* Runs a prompt in a session, with a line of progress, and stops when the user interrupts it.
 *
 * In: ids. Out: the session, with the ids on its timeline. While the ids are run, a line of progress is shown
 * (progress.h). */
#ifndef FR_TOOLS_CLI_PROMPT_RUN_H
#define FR_TOOLS_CLI_PROMPT_RUN_H

#include "forerun.h"

/* Calls fr_session_set_prompt. abort: the function becomes the session's abort callback, also for later calls. quiet:
 * no progress is shown. */
fr_status fr_prompt_run(fr_session *session, const int32_t *ids, size_t count, fr_abort_fn *abort, bool quiet);

#endif
