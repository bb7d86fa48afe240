/* Gives the properties of single ids (forerun.h).
 *
 * In: ids of an fr_tokenizer, which may be any numbers. Out: the kind and the text of an id, and the ids of the tokens
 * for beginning of sequence, end of sequence and unknown text. */
#include "base/error.h"
#include "src/language/tokenizer/tokenizer_parts.h"

size_t fr_tokenizer_count(const fr_tokenizer *tokenizer) {
    return tokenizer ? tokenizer->vocabulary.size : 0;
}

int32_t fr_tokenizer_bos(const fr_tokenizer *tokenizer) {
    return tokenizer && tokenizer->begin ? fr_tokenizer_id(tokenizer, tokenizer->begin) : -1;
}

int32_t fr_tokenizer_eos(const fr_tokenizer *tokenizer) {
    return tokenizer ? fr_tokenizer_end(tokenizer) : -1;
}

int32_t fr_tokenizer_unk(const fr_tokenizer *tokenizer) {
    if (!tokenizer) return -1;
    switch (tokenizer->model) {
    case FR_MODEL_SCORED_BPE: return tokenizer->score_merges.unknown;
    case FR_MODEL_UNIGRAM: return tokenizer->unigram.unknown;
    case FR_MODEL_WORD_PIECE:
    case FR_MODEL_WORD_LEVEL: return tokenizer->word_pieces.unknown;
    default: return tokenizer->bpe.unknown;
    }
}

/* Finds a token; NULL: no token has this id. */
static const fr_token *find(const fr_tokenizer *tokenizer, int32_t id) {
    if (!tokenizer || id < 0 || (size_t)id >= tokenizer->vocabulary.size) return NULL;
    const fr_token *token = &tokenizer->vocabulary.tokens[id];
    return token->text ? token : NULL;
}

fr_token_kind fr_token_kind_of(const fr_tokenizer *tokenizer, int32_t id) {
    const fr_token *token = find(tokenizer, id);
    if (!token) return FR_TOKEN_NONE;
    if (id == fr_tokenizer_unk(tokenizer)) return FR_TOKEN_UNKNOWN;
    if (token->control) return FR_TOKEN_CONTROL;
    if (token->added) return FR_TOKEN_ADDED;
    return fr_printed_as_byte(&tokenizer->printed, token, id) ? FR_TOKEN_BYTE : FR_TOKEN_TEXT;
}

const char *fr_token_text(const fr_tokenizer *tokenizer, int32_t id, size_t *length) {
    const fr_token *token = find(tokenizer, id);
    if (length) *length = token ? token->length : 0;
    return token ? token->text : NULL;
}

const char *fr_token_bytes(const fr_tokenizer *tokenizer, int32_t id, size_t *length) {
    size_t unasked;
    length = length ? length : &unasked;
    *length = 0;
    return find(tokenizer, id) ? fr_printed_bytes(&tokenizer->printed, id, length) : NULL;
}
