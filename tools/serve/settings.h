/* Lists the settings of a text in the form of llama.cpp's server. They are shown as "generation_settings" of an answer,
 * and as "params" in /slots and in the "default_generation_settings" of /props.
 *
 * In: options, or a job that was read. Out: a new JSON object with the values in effect, under the names that requests
 * use. */
#ifndef FR_TOOLS_SERVE_SETTINGS_H
#define FR_TOOLS_SERVE_SETTINGS_H

#include "tools/jobs/job.h"

json_t *fr_settings_of_options(const fr_options *options);

/* Lists the options of a job, and its other settings, which are its limit and its stop strings. */
json_t *fr_settings_of_job(const fr_job *job);

#endif
