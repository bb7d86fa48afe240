/* Answers requests that need a model, but run no forward. They tokenize a text, turn tokens into text, render a
 * conversation, or ask for the model's properties.
 *
 * In: exchanges, whose bodies are JSON objects. Out: their answers. Each function is an fr_models_fn. */
#ifndef FR_TOOLS_SERVE_TEXT_ROUTES_H
#define FR_TOOLS_SERVE_TEXT_ROUTES_H

#include "tools/serve/models.h"

/* Gives the body of an exchange, which must be a JSON object. NULL: the body is not a JSON object, and the exchange was
 * refused. */
json_t *fr_json_body(fr_http_exchange *exchange);

/* Reads {"content", "add_special": false, "parse_special": true, "with_pieces": false} and answers {"tokens": [ID,
 * ...]}. If "with_pieces" is true, the tokens are [{"id", "piece": TEXT or [BYTE, ...]}, ...]. For vLLM's {"prompt",
 * "add_special_tokens": true} the answer is {"tokens", "count", "max_model_len"}. */
void fr_text_routes_tokenize(fr_http_exchange *exchange, const fr_model_instance *model);

/* Reads {"tokens": [...]} and answers with the text. The answer has it twice: as "content", and as vLLM's "prompt". */
void fr_text_routes_detokenize(fr_http_exchange *exchange, const fr_model_instance *model);

/* Answers {"tokenizer_class", "bos_token", "eos_token", "chat_template"}. A member is null if the model lacks it. */
void fr_text_routes_tokenizer_info(fr_http_exchange *exchange, const fr_model_instance *model);

/* Reads {"messages", "tools", "chat_template_kwargs", "add_generation_prompt"} and answers {"prompt"}. */
void fr_text_routes_apply_template(fr_http_exchange *exchange, const fr_model_instance *model);

/* Answers {"default_generation_settings", "total_slots", "model_alias", "model_path", ...}. */
void fr_text_routes_props(fr_http_exchange *exchange, const fr_model_instance *model);

#endif
