/* Answers POST /v1/rerank: it scores documents by how well they answer a query.
 *
 * In: {"query", "documents": [TEXT or {"text": TEXT}, ...], "top_n", "return_documents", "instruction", "raw_scores"}.
 * Instead of "documents" a request may have "texts", as in text-embeddings-inference. Out: {"results": [{"index",
 * "relevance_score"}, ...]}, with the best document first. If the request has "texts", the answer is only the list, and
 * its entries have "score" instead of "relevance_score". The pairs are scored by embedder_chore.h. */
#ifndef FR_TOOLS_SERVE_RERANK_H
#define FR_TOOLS_SERVE_RERANK_H

#include "tools/serve/models.h"

void fr_rerank_answer(fr_http_exchange *exchange, const fr_model_instance *model);

#endif
