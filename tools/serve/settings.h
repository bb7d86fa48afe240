/* How a text is generated, as llama.cpp's server tells it: "generation_settings" of an answer, "params" of /slots and
 * of /props' "default_generation_settings".
 *
 * In: options, or a job that was read. Out: a new JSON object, of what is really set, by the names that requests have
 * for it. */
#ifndef FR_TOOLS_SERVE_SETTINGS_H
#define FR_TOOLS_SERVE_SETTINGS_H

#include "tools/jobs/job.h"

json_t *fr_settings_of_options(const fr_options *options);

/* With what is the job's own: its limit, its stop strings. */
json_t *fr_settings_of_job(const fr_job *job);

#endif
