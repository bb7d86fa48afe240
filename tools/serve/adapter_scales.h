/* Chooses the scales of the adapters (LoRA) for each request, as llama.cpp's server does.
 *
 * In: lists such as [{"id": 0, "scale": 0.5}, ...]. A request has one in its member "lora". The body of POST
 * /lora-adapters is one. Adapters that such a list leaves out have the scale 0. Out: the scales of a job, and the
 * answers of /lora-adapters. All functions may be called from any thread. A request without "lora" has the scales that
 * the model had when the request was read. */
#ifndef FR_TOOLS_SERVE_ADAPTER_SCALES_H
#define FR_TOOLS_SERVE_ADAPTER_SCALES_H

#include "tools/serve/models.h"

/* Copies the scales that a model's adapters have at this time. */
void fr_adapter_scales_copy(const fr_loaded_adapters *adapters, double scales[FR_LOADED_ADAPTERS_MAX]);

/* Reads the member "lora" into the job. If the list is empty, the job keeps the scales that the model has. Returns
 * false if the list is refused. */
bool fr_adapter_scales_take(fr_job *job, const char *key, const json_t *value);

/* These functions answer GET and POST /lora-adapters. */
void fr_adapter_scales_list(fr_http_exchange *exchange, const fr_model_instance *model);
void fr_adapter_scales_set(fr_http_exchange *exchange, const fr_model_instance *model);

#endif
