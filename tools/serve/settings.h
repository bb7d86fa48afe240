/* Lists the settings of a text in the form of llama.cpp's server: "generation_settings" of an answer, "params" of
 * /slots and of /props' "default_generation_settings".
 *
 * In: options, or a job that was read. Out: a new JSON object with the values in effect, under the names that requests
 * use. */
#ifndef FR_TOOLS_SERVE_SETTINGS_H
#define FR_TOOLS_SERVE_SETTINGS_H

#include "tools/jobs/job.h"

json_t *fr_settings_of_options(const fr_options *options);

/* Lists the job's options, and its own settings: its limit and its stop strings. */
json_t *fr_settings_of_job(const fr_job *job);

#endif
