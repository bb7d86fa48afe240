/* Answers the requests of ollama's clients that ask for no text: they list the models, those in memory and the
 * features of one, and load a model or remove it from memory.
 *
 * In: exchanges. Out: their answers in ollama's form. The version in the answers is that of the ollama whose interface
 * this is, and forerun's own version is beside it. */
#ifndef FR_TOOLS_SERVE_OLLAMA_H
#define FR_TOOLS_SERVE_OLLAMA_H

#include "tools/serve/models.h"

/* GET /api/version, /api/tags, /api/ps. A model's digest there is the SHA-256 of three lines: the name of its file or
 * folder, its size in bytes, and the time of its last change in nanoseconds. For a folder, the size is the sum over
 * all its files, and the time that of the latest change. */
void fr_ollama_version(fr_http_exchange *exchange);
void fr_ollama_tags(fr_http_exchange *exchange, fr_models *models);
void fr_ollama_loaded(fr_http_exchange *exchange, fr_models *models);

/* Answers POST /api/show for the model that the body names (an fr_models_fn). */
void fr_ollama_show(fr_http_exchange *exchange, const fr_model_instance *model);

/* The first returns true if a body of /api/generate or /api/chat has no prompt and only loads its model, or, with
 * *leaves, removes it from memory. The others answer such requests; the first of these is an fr_models_fn. */
bool fr_ollama_is_silent(const char *path, const json_t *body, bool *leaves);
void fr_ollama_load(fr_http_exchange *exchange, const fr_model_instance *model);
void fr_ollama_unload(fr_http_exchange *exchange, fr_models *models, const json_t *body);

#endif
