/* tokenizer.json and tokenizer_config.json as plain data.
 *
 * In: a folder with tokenizer.json as Hugging Face publishes it, and tokenizer_config.json if there is one. Out: what
 * the two say. Kinds of model, of normalizer and so on that forerun does not implement are refused by name.
 *
 *   {"added_tokens":   [{"id", "content", "special", "lstrip", "rstrip", "single_word", "normalized"}, ...],
 *    "normalizer":     null, or a rule: {"type": "Replace", ...}, or {"type": "Sequence", "normalizers": [rule, ...]}
 *    "pre_tokenizer":  the same with "pretokenizers"
 *    "post_processor": null, or {"type": "TemplateProcessing", "single": [...], "special_tokens": {...}}
 *    "decoder":        a rule, or a Sequence of "decoders"
 *    "model":          {"type": "BPE", "vocab": {text: id}, "merges": [["a", "b"] or "a b", ...], "unk_token", ...}}
 *
 * Of tokenizer_config.json only "bos_token" and "eos_token" are used, for chat templates (chat_source.h reads these).
 * add_bos_token and its like are not read: where they contradict the post-processor, the post-processor wins in
 * transformers too. */
#ifndef FR_FORMATS_TOKENIZER_JSON_H
#define FR_FORMATS_TOKENIZER_JSON_H

#include "formats/json.h"
#include "formats/tokenizer_source.h"

/* A failure leaves nothing open. */
fr_status fr_tokenizer_json_open(fr_tokenizer_source *source, const char *folder);

#endif
