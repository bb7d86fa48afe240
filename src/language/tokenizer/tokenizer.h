/* Converts text to token ids and back.
 *
 * In: a tokenizer's source (formats/tokenizer_source.h). Out: an immutable fr_tokenizer. The public functions are in
 * forerun.h; this header has those for the rest of the engine. Sennrich et al. 2016, arXiv:1508.07909; Kudo and
 * Richardson 2018, arXiv:1808.06226. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_TOKENIZER_H
#define FR_SRC_LANGUAGE_TOKENIZER_TOKENIZER_H

#include "forerun.h"
#include "formats/notes.h"
#include "formats/tokenizer_source.h"

/* Finds a token by its exact text; -1: there is none. */
int32_t fr_tokenizer_id(const fr_tokenizer *tokenizer, const char *text);

/* Gives the bytes that an id prints when it is the only id; special tokens are printed, too. An id that is not a token
 * has no bytes. */
const char *fr_tokenizer_printed(const fr_tokenizer *tokenizer, int32_t id, size_t *length);

/* Returns true if ids mean the same in two tokenizers. Of the ids that are text in one of them, at most one in a
 * thousand may be another text in the other. Control tokens, added tokens and ids without a token may differ. */
bool fr_tokenizers_agree(const fr_tokenizer *one, const fr_tokenizer *other);

/* Refuses spans that overlap, are out of order or reach beyond the text. */
fr_status fr_marked_text_check(const fr_marked_text *text);

/* Gives the notes that fr_tokenizer_note returns one by one. */
const fr_notes *fr_tokenizer_notes(const fr_tokenizer *tokenizer);

/* Gives the bos_token that tokenizer_config.json or the GGUF file names; NULL: there is none. */
const char *fr_tokenizer_begin(const fr_tokenizer *tokenizer);

/* Gives the ids that the post-processor adds before and after a text. Returns the number of all these ids. */
size_t fr_tokenizer_around(const fr_tokenizer *tokenizer, const int32_t **prefix, size_t *prefix_count,
                           const int32_t **suffix, size_t *suffix_count);

/* Gives the template by which a pair of texts is converted to ids. Returns the number of its pieces; 0: there is no
 * template. */
size_t fr_tokenizer_pair(const fr_tokenizer *tokenizer, const fr_pair_piece **pieces);

/* Returns true if the normalizer makes texts lower case. */
bool fr_tokenizer_lowers(const fr_tokenizer *tokenizer);

/* Gives the id of the eos_token; -1: there is none. */
int32_t fr_tokenizer_end(const fr_tokenizer *tokenizer);

/* fr_decoder_longest gives the largest number of bytes that one call can return. fr_decoder_restart resets a decoder.
 * fr_decoder_become copies the state of another decoder of the same tokenizer. */
size_t fr_decoder_longest(const fr_decoder *decoder);
void fr_decoder_restart(fr_decoder *decoder);
void fr_decoder_become(fr_decoder *decoder, const fr_decoder *of);

#endif
