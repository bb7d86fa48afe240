/* POST /v1/embeddings, and ollama's /api/embed and /api/embeddings: texts, or ids, as rows of numbers.
 *
 * In: OpenAI's "input", a text or an array of texts, ids or arrays of ids; "encoding_format" float or base64,
 * "dimensions". Out: a list of rows of length 1 in their order, and how many tokens they took. A text goes through the
 * model between two rounds of those under way. */
#ifndef FR_TOOLS_SERVE_EMBEDDINGS_H
#define FR_TOOLS_SERVE_EMBEDDINGS_H

#include "tools/serve/models.h"

void fr_embeddings_answer(fr_http_exchange *exchange, const fr_model_instance *model);

/* The same as ollama has it, texts that are too long cut unless "truncate" is false; and one text, "prompt". */
void fr_embeddings_answer_ollama(fr_http_exchange *exchange, const fr_model_instance *model);
void fr_embeddings_answer_ollama_older(fr_http_exchange *exchange, const fr_model_instance *model);

#endif
