/* Answers requests that need a model but run nothing in it: to tokenize a text, to turn tokens into text, to render a
 * conversation, and to give the model's properties.
 *
 * In: exchanges, whose bodies are JSON objects. Out: their answers. Each function is an fr_models_fn. */
#ifndef FR_TOOLS_SERVE_TEXT_ROUTES_H
#define FR_TOOLS_SERVE_TEXT_ROUTES_H

#include "tools/serve/models.h"

/* Gives the body of an exchange, which must be a JSON object. NULL: it is not one, and the exchange was refused. */
json_t *fr_json_body(fr_http_exchange *exchange);

/* Reads {"content", "add_special": false, "parse_special": true, "with_pieces": false} and answers {"tokens": [ID,
 * ...]}, or with pieces [{"id", "piece": TEXT or [BYTE, ...]}, ...]. For vLLM's {"prompt", "add_special_tokens": true}
 * it answers {"tokens", "count", "max_model_len"}. */
void fr_text_routes_tokenize(fr_http_exchange *exchange, const fr_model_instance *model);

/* Reads {"tokens": [...]} and answers {"content"}, and the same text as vLLM's "prompt". */
void fr_text_routes_detokenize(fr_http_exchange *exchange, const fr_model_instance *model);

/* Answers {"tokenizer_class", "bos_token", "eos_token", "chat_template"}, with null for those that the model lacks. */
void fr_text_routes_tokenizer_info(fr_http_exchange *exchange, const fr_model_instance *model);

/* Reads {"messages", "tools", "chat_template_kwargs", "add_generation_prompt"} and answers {"prompt"}. */
void fr_text_routes_apply_template(fr_http_exchange *exchange, const fr_model_instance *model);

/* Answers {"default_generation_settings", "total_slots", "model_alias", "model_path", ...}. */
void fr_text_routes_props(fr_http_exchange *exchange, const fr_model_instance *model);

#endif
