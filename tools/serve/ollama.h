/* The rest of what ollama's clients ask, beside texts: which models there are and are loaded, what one can do, that one
 * be loaded or leave memory.
 *
 * In: exchanges. Out: their answers, in ollama's words. Its version is that whose interface this is; ours stands
 * beside. */
#ifndef FR_TOOLS_SERVE_OLLAMA_H
#define FR_TOOLS_SERVE_OLLAMA_H

#include "tools/serve/models.h"

/* GET /api/version, /api/tags, /api/ps. A model's digest there is the SHA-256 of three lines: its file's or folder's
 * name, its bytes, and when it was changed last, in nanoseconds; of a folder these are its files' bytes and the last
 * change of any. */
void fr_ollama_version(fr_http_exchange *exchange);
void fr_ollama_tags(fr_http_exchange *exchange, fr_models *models);
void fr_ollama_loaded(fr_http_exchange *exchange, fr_models *models);

/* POST /api/show of a model that the body names: an fr_models_fn. */
void fr_ollama_show(fr_http_exchange *exchange, const fr_model_instance *model);

/* Tells whether a body of /api/generate or /api/chat asks for no text: it only has its model loaded; *leaves: or
 * leave. And the answers to both, the first an fr_models_fn. */
bool fr_ollama_is_silent(const char *path, const json_t *body, bool *leaves);
void fr_ollama_load(fr_http_exchange *exchange, const fr_model_instance *model);
void fr_ollama_unload(fr_http_exchange *exchange, fr_models *models, const json_t *body);

#endif
