/* Encodes words as WordPiece and WordLevel do (word_pieces.h). */
#include "src/language/tokenizer/word_pieces.h"

#include <utf8proc.h>

#include "base/error.h"

fr_status fr_word_pieces_open(fr_word_pieces *pieces, const fr_vocabulary *vocabulary,
                              const fr_tokenizer_source *source) {
    *pieces = (fr_word_pieces){.vocabulary = vocabulary, .inside = FR_TRIE_NONE, .unknown = -1};
    pieces->max_characters = source->max_word_characters;
    if (source->unknown.bytes)
        pieces->unknown = fr_vocabulary_find_in_model(vocabulary, source->unknown.bytes, source->unknown.length);
    if (pieces->unknown < 0)
        return fr_fail(FR_INPUT, "%s: the unk_token \"%.99s\" is not in the vocabulary", source->path,
                       source->unknown.bytes ? source->unknown.bytes : "");
    if (source->model == FR_MODEL_WORD_LEVEL) return FR_OK;
    FR_TRY(fr_token_trie_open(&pieces->trie, vocabulary, source->path));
    pieces->inside = fr_token_trie_walk(&pieces->trie, source->inside_prefix);
    return FR_OK;
}

void fr_word_pieces_close(fr_word_pieces *pieces) {
    fr_token_trie_close(&pieces->trie);
    *pieces = (fr_word_pieces){0};
}

/* Gives a character's length. A byte that is not part of valid UTF-8 counts as a character. */
static size_t character_length(const char *text, size_t length) {
    utf8proc_int32_t codepoint;
    utf8proc_ssize_t valid = utf8proc_iterate((const utf8proc_uint8_t *)text, (utf8proc_ssize_t)length, &codepoint);
    return valid > 0 ? (size_t)valid : 1;
}

/* Returns true if a word has at most `most` characters. */
static bool is_short(const char *text, size_t length, size_t most) {
    size_t count = 0;
    for (size_t at = 0; at < length && count <= most; count++) at += character_length(text + at, length - at);
    return count <= most;
}

static bool allows(const fr_word_pieces *pieces, int32_t id, bool foreign) {
    return id >= 0 && !(foreign && id != pieces->unknown && pieces->vocabulary->tokens[id].control);
}

/* Finds the longest token at the beginning of a text; -1: there is none. */
static int32_t longest(const fr_word_pieces *pieces, uint32_t node, const char *text, size_t length, bool foreign,
                       size_t *taken) {
    int32_t best = -1;
    for (size_t at = 0; at < length && node != FR_TRIE_NONE;) {
        node = fr_token_trie_step(&pieces->trie, node, (unsigned char)text[at++]);
        if (node == FR_TRIE_NONE || !allows(pieces, pieces->trie.ids[node], foreign)) continue;
        best = pieces->trie.ids[node];
        *taken = at;
    }
    return best;
}

static fr_status append_pieces(const fr_word_pieces *pieces, const char *text, size_t length, bool foreign,
                               fr_id_list *ids) {
    size_t before = ids->count, taken = 0;
    for (size_t at = 0; at < length; at += taken) {
        uint32_t from = at == 0 ? FR_TRIE_ROOT : pieces->inside;
        int32_t id = longest(pieces, from, text + at, length - at, foreign, &taken);
        if (id < 0) {
            ids->count = before;
            return fr_ids_append(ids, &pieces->unknown, 1);
        }
        FR_TRY(fr_ids_append(ids, &id, 1));
    }
    return FR_OK;
}

fr_status fr_word_pieces_encode(const fr_word_pieces *pieces, const char *text, size_t length, bool foreign,
                                fr_id_list *ids) {
    if (length == 0) return FR_OK;
    if (pieces->trie.count > 0 && is_short(text, length, pieces->max_characters))
        return append_pieces(pieces, text, length, foreign, ids);
    int32_t id = pieces->trie.count > 0 ? -1 : fr_vocabulary_find_in_model(pieces->vocabulary, text, length);
    if (!allows(pieces, id, foreign)) id = pieces->unknown;
    return fr_ids_append(ids, &id, 1);
}
