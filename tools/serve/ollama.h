/* Answers those requests of ollama's clients that do not generate text. Such a request lists all models or those in
 * memory, shows the features of a model, loads a model, or removes it from memory.
 *
 * In: exchanges. Out: their answers in ollama's form. The answer about the version gives the version of ollama that has
 * this interface, and also forerun's own version. */
#ifndef FR_TOOLS_SERVE_OLLAMA_H
#define FR_TOOLS_SERVE_OLLAMA_H

#include "tools/serve/models.h"

/* These functions answer GET /api/version, /api/tags and /api/ps. In the lists of models, a model's digest is the
 * SHA-256 of three lines: the name of its file or folder, its size in bytes, and the time of its last change in
 * nanoseconds. A folder has the total size of its files, and the time of their latest change. */
void fr_ollama_version(fr_http_exchange *exchange);
void fr_ollama_tags(fr_http_exchange *exchange, fr_models *models);
void fr_ollama_loaded(fr_http_exchange *exchange, fr_models *models);

/* Answers POST /api/show for the model that the body names (an fr_models_fn). */
void fr_ollama_show(fr_http_exchange *exchange, const fr_model_instance *model);

/* fr_ollama_is_silent returns true if a body of /api/generate or /api/chat has no prompt. Such a request loads the
 * model. If *leaves is true, it removes the model from memory instead. fr_ollama_load (an fr_models_fn) answers a
 * request that loads the model. fr_ollama_unload answers a request that removes the model. */
bool fr_ollama_is_silent(const char *path, const json_t *body, bool *leaves);
void fr_ollama_load(fr_http_exchange *exchange, const fr_model_instance *model);
void fr_ollama_unload(fr_http_exchange *exchange, fr_models *models, const json_t *body);

#endif
