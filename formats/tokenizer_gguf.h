/* Reads the tokenizer in GGUF metadata as plain data, the ids that end a text, and the ids that must not be generated.
 *
 *     tokenizer.ggml.model, .pre    the kind of tokenizer, and how it cuts texts (pre_tokenizers.h); unsupported kinds
 *                                   are refused by name. Without a .pre, the kind that fits general.architecture and
 *                                   the tokens is assumed, with a note; if none fits, the file is refused
 *     tokenizer.ggml.tokens         texts by id; no NUL in them
 *     tokenizer.ggml.token_type     2 unknown, 3 control, 4 user-defined: searched for before a text is cut, like the
 *                                   added tokens of a tokenizer.json; 1 normal, 5 unused, 6 byte. Tokens that are
 *                                   known to open or end turns (turn_tokens.h), bos and eos are always searched
 *                                   for; a note says so if the file gives them another type or has no types
 *     tokenizer.ggml.merges         "left right", the first one has the highest rank
 *     tokenizer.ggml.KIND_token_id  bos, eos, eot, eom, unknown, seperator (so spelled), padding, cls, mask, and
 *                                   fim_pad, fim_rep, fim_sep, which also end texts
 *     tokenizer.ggml.add_bos_token, .add_eos_token
 *     tokenizer.ggml.scores         one for each token, needed only in models that use scores ("llama", "t5")
 *     tokenizer.ggml.add_space_prefix   for the models "llama" (true if missing) and "t5"; ignored if pieces are bytes,
 *                                   refused for others
 *     tokenizer.ggml.remove_extra_whitespaces, .precompiled_charsmap    of SentencePiece's normalizer
 *     tokenizer.ggml.normalizer.lowercase, .strip_accents    for the models "bert" (both true if missing) and
 *                                   "whitespace"
 *     tokenizer.ggml.suppress_tokens  ids that must never be generated
 * Model "llama" has no merges. If its file gives no ids, it has those of SentencePiece: unknown 0, bos 1, eos 2. */
#ifndef FR_FORMATS_TOKENIZER_GGUF_H
#define FR_FORMATS_TOKENIZER_GGUF_H

#include "formats/gguf.h"
#include "formats/pre_tokenizers.h"
#include "formats/tokenizer_source.h"

/* Returns true if the file has the texts of tokens. A drafter's file may not have them. */
bool fr_tokenizer_gguf_has(const fr_gguf *gguf);

/* Reads the tokenizer of a file. The metadata must outlive the source. `pre` replaces the name of the pre-tokenizer in
 * the file; "" keeps it. A failure leaves nothing open. */
fr_status fr_tokenizer_gguf_open(fr_tokenizer_source *source, const fr_gguf *gguf, const char *pre);

/* Reads the id under a key. A missing key gives -1. An id of `count` or more also gives -1, with a note, because some
 * files have 4294967295 there. */
fr_status fr_tokenizer_gguf_id(const fr_gguf *gguf, const char *key, size_t count, fr_notes *notes, int32_t *id);

/* Gives the ids below `vocab` that end a text, at most `capacity`. They are the file's eos, eot and eom, its tokens
 * that pad or separate files when code is filled in, and tokens whose text says that they end a text (turn_tokens.h).
 * If the file has no eot, the tokens that end turns in files of its kind are added. `pre` is as in
 * fr_tokenizer_gguf_open. */
fr_status fr_tokenizer_gguf_ends(const fr_gguf *gguf, const char *pre, size_t vocab, fr_notes *notes, int32_t *ids,
                                 size_t capacity, size_t *count);

/* Gives the ids below `vocab` that the file lists as never to be generated. Other numbers in the list are not ids of
 * tokens and are left out. If the list has more than `capacity` ids, the call fails with FR_INPUT. */
fr_status fr_tokenizer_gguf_suppressed(const fr_gguf *gguf, size_t vocab, int32_t *ids, size_t capacity, size_t *count);
#define FR_KEY_SUPPRESSED "tokenizer.ggml.suppress_tokens"

/* Finds a kind of this model whose files cut texts in the same way as the source; NULL if there is none. If several
 * kinds do, the one with the name `pre` is preferred. `pre` may be NULL, which prefers none. */
const fr_pre_tokenizer *fr_tokenizer_gguf_suits(const fr_tokenizer_source *source, const char *model, const char *pre);

/* Sets the rules by which a unigram model's file cuts texts. `rules` already has the rule that turns a blank into
 * U+2581. If `removes`, the file removes extra blanks, and each piece is a word that begins with U+2581. Otherwise the
 * whole text is one piece, with U+2581 for each blank. If `adds`, one U+2581 is put before that text. */
void fr_tokenizer_gguf_cut_unigram(fr_text_rules *rules, bool adds, bool removes);

/* Finds the two settings with which a unigram model's file cuts texts as the source does. Returns false if no settings
 * do. */
bool fr_tokenizer_gguf_suits_unigram(const fr_tokenizer_source *source, bool *adds, bool *removes);

#endif
