/* Reads the files beside tokenizer.json that belong to the tokenizer, as transformers does.
 *
 * In: a folder's
 *
 *   tokenizer_config.json    {"bos_token": text or {"content": text}, likewise eos, unk, sep, pad, cls and mask_token,
 *                             "image_token", or any other "..._token" that is a text,
 *                             "model_specific_special_tokens": {"image_token": text, ...},
 *                             "extra_special_tokens": {"image_token": text, ...} or [text, ...],
 *                             "additional_special_tokens": [text, ...],
 *                             "added_tokens_decoder": {"ID": {"content", "special", "lstrip", "rstrip", "single_word",
 *                                                             "normalized"}, ...},
 *                             "add_bos_token": true, "add_eos_token": false}
 *   special_tokens_map.json  the same names; its seven names replace those of the configuration
 *   added_tokens.json        {text: id, ...}
 *
 * The last two files come from older releases. They are read if the configuration has no added_tokens_decoder or does
 * not exist. Out: named tokens; further added tokens, and changed flags of known ones; the tokens before and after a
 * text.
 *
 * "add_bos_token" and "add_eos_token" decide if bos_token comes before texts and eos_token after them, whatever the
 * post-processor of tokenizer.json says; an absent or null flag changes nothing. llama.cpp's converter treats the flags
 * in this way, and so do the classes of transformers 4 for Llama, Gemma and others. transformers 5 ignores these flags
 * if there is a tokenizer.json. */
#ifndef FR_FORMATS_TOKENIZER_BESIDE_H
#define FR_FORMATS_TOKENIZER_BESIDE_H

#include "formats/json.h"
#include "formats/tokenizer_source.h"

#define FR_TOKENIZER_FILE_MAX ((size_t)256 << 20) /* bytes; eight times the largest published file */

/* Adds the contents of the files beside tokenizer.json to a source whose tokenizer.json has been read. */
fr_status fr_tokenizer_beside_read(fr_tokenizer_source *source, const char *folder);

#endif
