/* tokenizer.json and tokenizer_config.json as plain data.
 *
 * In: a folder with tokenizer.json as Hugging Face publishes it, and tokenizer_config.json if there is one. Out: what
 * the two say. Kinds of model, of normalizer and so on that forerun does not implement are refused by name.
 *
 *   {"added_tokens":   [{"id", "content", "special", "lstrip", "rstrip", "single_word", "normalized"}, ...],
 *    "normalizer":     null, or a rule: {"type": "Replace", ...}, or {"type": "Sequence", "normalizers": [rule, ...]}
 *    "pre_tokenizer":  the same with "pretokenizers"; the last one may be a ByteLevel
 *    "post_processor": null, or {"type": "TemplateProcessing", "single": [...], "special_tokens": {...}}
 *    "decoder":        a rule, or a Sequence of "decoders"
 *    "model":          {"type": "BPE", "vocab": {text: id}, "merges": [["a", "b"] or "a b", ...], "unk_token", ...}}
 *
 * Of tokenizer_config.json "bos_token" and "eos_token" are used, for chat templates (chat_source.h reads these), and
 * "add_bos_token": true, which puts the bos_token before a text where the post-processor adds nothing, as llama.cpp's
 * converter has it, and LlamaTokenizerFast of transformers 4 (DeepSeek-V3's folder). A post-processor that adds
 * something wins, whatever add_bos_token says; add_eos_token is not read. */
#ifndef FR_FORMATS_TOKENIZER_JSON_H
#define FR_FORMATS_TOKENIZER_JSON_H

#include "formats/json.h"
#include "formats/tokenizer_source.h"

/* A failure leaves nothing open. */
fr_status fr_tokenizer_json_open(fr_tokenizer_source *source, const char *folder);

#endif
