/* Answers POST /v1/embeddings, and ollama's /api/embed and /api/embeddings: it gives a row of numbers for each text.
 *
 * In: OpenAI's "input" (a text, an array of texts, ids, or arrays of ids), "encoding_format" (float or base64),
 * "dimensions", and "prompt_name". Out: a list of rows in the order of the inputs, and the number of tokens. Each row
 * is a vector of length 1. Between two rounds of generation, some of the texts are run. */
#ifndef FR_TOOLS_SERVE_EMBEDDINGS_H
#define FR_TOOLS_SERVE_EMBEDDINGS_H

#include "tools/serve/models.h"

void fr_embeddings_answer(fr_http_exchange *exchange, const fr_model_instance *model);

/* These functions answer in ollama's form. Texts that are too long are cut. If "truncate" is false, they are refused
 * instead. The older path takes a single text in "prompt". */
void fr_embeddings_answer_ollama(fr_http_exchange *exchange, const fr_model_instance *model);
void fr_embeddings_answer_ollama_older(fr_http_exchange *exchange, const fr_model_instance *model);

#endif
