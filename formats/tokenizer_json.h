/* Reads tokenizer.json, and the files beside it, as plain data.
 *
 * In: a folder with tokenizer.json as Hugging Face publishes it. Out: the contents of tokenizer.json and of the files
 * beside it (tokenizer_beside.h). Types of models, normalizers and so on that forerun does not implement are refused by
 * name.
 *
 *   {"added_tokens":   [{"id", "content", "special", "lstrip", "rstrip", "single_word", "normalized"}, ...],
 *    "normalizer":     null, or a rule: {"type": "Replace", ...}, or {"type": "Sequence", "normalizers": [rule, ...]}
 *    "pre_tokenizer":  like "normalizer", but with "pretokenizers"; the last one may be a ByteLevel
 *    "post_processor": null, or {"type": "TemplateProcessing", "single": [...], "special_tokens": {...}}
 *    "decoder":        a rule, or a Sequence of "decoders"
 *    "model":          {"type": "BPE", "vocab": {text: id}, "merges": [["a", "b"] or "a b", ...], "unk_token", ...}} */
#ifndef FR_FORMATS_TOKENIZER_JSON_H
#define FR_FORMATS_TOKENIZER_JSON_H

#include "formats/json.h"
#include "formats/tokenizer_source.h"

/* Reads the folder. A failure leaves nothing open. */
fr_status fr_tokenizer_json_open(fr_tokenizer_source *source, const char *folder);

/* Returns true if a folder has a tokenizer.json, or the older files vocab.json and merges.txt, which are read if there
 * is no tokenizer.json. */
bool fr_tokenizer_json_there(const char *folder);

#endif
