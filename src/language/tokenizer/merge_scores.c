/* Makes scores of merges (merge_scores.h). */
#include "src/language/tokenizer/merge_scores.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/pre_tokenizers.h"
#include "src/language/tokenizer/bpe.h"
#include "src/language/tokenizer/score_merges.h"

#define RANKS_MAX (1 << 24) /* a file stores scores as float32, which can hold all integers up to this one */

typedef struct scoring {
    fr_tokenizer_source *source;
    fr_vocabulary vocabulary;
    fr_bpe bpe;
    fr_score_merges scored;
    fr_bpe_work bpe_work;
    fr_score_work score_work;
    fr_id_list by_merges, by_scores;
} scoring;

bool fr_added_by_merges(fr_text text, bool special) {
    return !special && strstr(text.bytes, FR_LOWER_BLOCK);
}

static fr_status encode(scoring *s, fr_text text) {
    s->by_merges.count = 0;
    return fr_bpe_encode(&s->bpe, text.bytes, text.length, false, &s->bpe_work, &s->by_merges);
}

/* Checks that the vocabulary has the byte tokens that readers of the file need. Readers turn a character without a
 * token into the tokens of its bytes. */
static fr_status check_bytes(const scoring *s) {
    for (unsigned byte = 0; byte < 256; byte++) {
        const char character = (char)byte;
        bool whole = byte < 0x80 && fr_vocabulary_find_in_model(&s->vocabulary, &character, 1) >= 0;
        if (s->bpe.byte_ids[byte] < 0 && !whole)
            return fr_fail(FR_UNBUILT, "%s: a tokenizer without the token <0x%02X> has no form in GGUF",
                           s->source->path, byte);
    }
    return FR_OK;
}

/* Scores each token by the rank of the last merge that makes it from its text. If the merges do not make the token from
 * its own text, it gets a score below all others. */
static fr_status score_tokens(scoring *s) {
    fr_tokenizer_source *source = s->source;
    for (size_t i = 0; i < source->vocabulary_count; i++) {
        const fr_vocabulary_entry *entry = &source->vocabulary[i];
        FR_TRY(encode(s, entry->text));
        bool own = s->by_merges.count == 1 && s->by_merges.items[0] == entry->id;
        source->scores[i] = own ? -(double)s->bpe_work.last_rank : -(double)source->merge_count;
    }
    return FR_OK;
}

/* Returns true if the token is found in texts before these are merged, so that no merge ever meets its text. */
static bool is_cut_first(const scoring *s, const fr_vocabulary_entry *entry) {
    const fr_token *token = &s->vocabulary.tokens[entry->id];
    return token->added && !fr_added_by_merges(entry->text, token->special);
}

/* Checks that merging by the scores makes no token that the merges do not make. */
static fr_status check_tokens(scoring *s) {
    const fr_tokenizer_source *source = s->source;
    for (size_t i = 0; i < source->vocabulary_count; i++) {
        const fr_vocabulary_entry *entry = &source->vocabulary[i];
        FR_TRY(encode(s, entry->text));
        s->by_scores.count = 0;
        FR_TRY(fr_score_merges_encode(&s->scored, entry->text.bytes, entry->text.length, false, &s->score_work,
                                      &s->by_scores));
        bool same = s->by_scores.count == s->by_merges.count &&
                    memcmp(s->by_scores.items, s->by_merges.items, s->by_merges.count * sizeof(int32_t)) == 0;
        if (!same && !is_cut_first(s, entry))
            return fr_fail(FR_UNBUILT,
                           "%s: token %d, \"%.99s\", is made of two tokens that no merge joins, and GGUF files of "
                           "this kind have no form for that",
                           source->path, entry->id, entry->text.bytes);
    }
    return FR_OK;
}

static fr_status make_scores(scoring *s) {
    fr_tokenizer_source *source = s->source;
    if (source->merge_count > RANKS_MAX)
        return fr_fail(FR_UNBUILT, "%s: %zu merges are more than a GGUF file has scores for", source->path,
                       source->merge_count);
    source->scores = calloc(source->vocabulary_count + 1, sizeof *source->scores);
    if (!source->scores) return fr_fail_memory(source->path, source->vocabulary_count * sizeof *source->scores);
    FR_TRY(fr_vocabulary_open(&s->vocabulary, source));
    FR_TRY(fr_bpe_open(&s->bpe, &s->vocabulary, source));
    FR_TRY(check_bytes(s));
    FR_TRY(score_tokens(s));
    FR_TRY(fr_score_merges_open(&s->scored, &s->vocabulary, source));
    return check_tokens(s);
}

fr_status fr_merge_scores(fr_tokenizer_source *source) {
    scoring s = {.source = source};
    fr_status status = make_scores(&s);
    fr_vocabulary_close(&s.vocabulary);
    fr_bpe_close(&s.bpe);
    fr_score_merges_close(&s.scored);
    fr_bpe_work_free(&s.bpe_work);
    fr_score_work_free(&s.score_work);
    free(s.by_merges.items);
    free(s.by_scores.items);
    return status;
}
