/* Text to token ids and back: byte-pair encoding in the SentencePiece style with byte fallback (Gemma).
 *
 * In: a tokenizer's source (formats/tokenizer_source.h). Out: an immutable fr_tokenizer. The public functions are in
 * forerun.h; this header is what the rest of the engine asks beyond them. Sennrich et al. 2016, arXiv:1508.07909;
 * Kudo and Richardson 2018, arXiv:1808.06226. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_TOKENIZER_H
#define FR_SRC_LANGUAGE_TOKENIZER_TOKENIZER_H

#include "forerun.h"
#include "formats/notes.h"

/* The id of a token by its exact text, -1 when there is none. */
int32_t fr_tokenizer_id(const fr_tokenizer *tokenizer, const char *text);

/* What an id is printed as on its own, a special token too; no bytes where it is no token. */
const char *fr_tokenizer_printed(const fr_tokenizer *tokenizer, int32_t id, size_t *length);

/* Whether ids mean the same in both: those that are text in either are so in the other, but for one in a thousand.
 * Control and added tokens, and ids of none, may differ. */
bool fr_tokenizers_agree(const fr_tokenizer *one, const fr_tokenizer *other);

/* What fr_tokenizer_note tells. */
const fr_notes *fr_tokenizer_notes(const fr_tokenizer *tokenizer);

/* The bos_token of tokenizer_config.json or GGUF, NULL when it names none. */
const char *fr_tokenizer_begin(const fr_tokenizer *tokenizer);

/* The id of the eos_token, -1 when there is none. */
int32_t fr_tokenizer_end(const fr_tokenizer *tokenizer);

/* Bytes that one call gives at most; a decoder as it was when it was new; as another of its tokenizer is. */
size_t fr_decoder_longest(const fr_decoder *decoder);
void fr_decoder_restart(fr_decoder *decoder);
void fr_decoder_become(fr_decoder *decoder, const fr_decoder *of);

#endif
