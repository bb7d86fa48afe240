/* The tokenizer in GGUF metadata as plain data, the ids that end a text, and those that are kept out.
 *
 *     tokenizer.ggml.model, .pre    the kind of tokenizer, and how it cuts texts (pre_tokenizers.h); kinds not
 *                                   built are refused by name; where there is no .pre, one that goes with
 *                                   general.architecture and the tokens is assumed, with a note, or the file is refused
 *     tokenizer.ggml.tokens         texts by id; no NUL in them
 *     tokenizer.ggml.token_type     2 unknown, 3 control, 4 user-defined: looked for before anything else, as the added
 *                                   tokens of a tokenizer.json; 1 normal, 5 unused, 6 byte. Whatever is said, or where
 *                                   nothing is, tokens that are known to open or end turns do (turn_tokens.h), and so
 *                                   do bos and eos, with a note
 *     tokenizer.ggml.merges         "left right", the first one ranks first
 *     tokenizer.ggml.KIND_token_id  bos, eos, eot, eom, unknown, seperator (so spelled), padding, cls, mask, and
 *                                   fim_pad, fim_rep, fim_sep, which end texts too
 *     tokenizer.ggml.add_bos_token, .add_eos_token
 *     tokenizer.ggml.scores         of each token, in models that go by them ("llama", "t5"); else not needed
 *     tokenizer.ggml.add_space_prefix   of model "llama", where it is true unless told, and "t5"; without meaning
 *                                   where pieces are bytes, not built for others
 *     tokenizer.ggml.remove_extra_whitespaces, .precompiled_charsmap    of SentencePiece's normalizer
 *     tokenizer.ggml.normalizer.lowercase, .strip_accents    of models "bert" (both true unless told), "whitespace"
 *     tokenizer.ggml.suppress_tokens  ids that a text must never go on with
 * Model "llama" has no merges, and where it names no ids the ones of SentencePiece: unknown 0, bos 1, eos 2. */
#ifndef FR_FORMATS_TOKENIZER_GGUF_H
#define FR_FORMATS_TOKENIZER_GGUF_H

#include "formats/gguf.h"
#include "formats/pre_tokenizers.h"
#include "formats/tokenizer_source.h"

/* Whether the file carries the token strings; a drafter's need not. */
bool fr_tokenizer_gguf_has(const fr_gguf *gguf);

/* The metadata must outlive the source. pre: the pre-tokenizer's name instead of the one that the file has, "" for
 * that. A failure leaves nothing open. */
fr_status fr_tokenizer_gguf_open(fr_tokenizer_source *source, const fr_gguf *gguf, const char *pre);

/* The id under a key; -1 where there is none, or, with a note, none of `count` tokens' (files write 4294967295). */
fr_status fr_tokenizer_gguf_id(const fr_gguf *gguf, const char *key, size_t count, fr_notes *notes, int32_t *id);

/* The ids below `vocab` that end a text, at most capacity: eos, eot and eom, and the padding and the parting of files
 * in code that is filled in, as the file names them; the tokens that do so by their texts (turn_tokens.h); and where it
 * names no eot, those that its kind of tokenizer has besides. pre: as above. */
fr_status fr_tokenizer_gguf_ends(const fr_gguf *gguf, const char *pre, size_t vocab, fr_notes *notes, int32_t *ids,
                                 size_t capacity, size_t *count);

/* The ids below `vocab` that the file keeps out of texts, as it lists them; others there name nothing and are passed
 * over. A list of more than `capacity` is FR_INPUT. */
fr_status fr_tokenizer_gguf_suppressed(const fr_gguf *gguf, size_t vocab, int32_t *ids, size_t capacity, size_t *count);
#define FR_KEY_SUPPRESSED "tokenizer.ggml.suppress_tokens"

/* The kind of that model in whose files texts are cut as the source says; NULL: there is none. `pre` is taken before
 * others that cut alike; NULL: no matter which. */
const fr_pre_tokenizer *fr_tokenizer_gguf_suits(const fr_tokenizer_source *source, const char *model, const char *pre);

#endif
