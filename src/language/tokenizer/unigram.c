/* Encodes pieces of text with the unigram language model (unigram.h). */
#include "src/language/tokenizer/unigram.h"

#include <math.h>
#include <stdlib.h>
#include <utf8proc.h>

#include "base/error.h"

#define UNKNOWN_PENALTY 10.0

/* The end of the best path from the beginning of the text to a place in it. */
typedef struct fr_unigram_end {
    double score;
    int32_t begin; /* the place where the path's last step begins; -1: no path leads to this place */
    int32_t id;    /* the token of the path's last step; -1: the unknown token */
} end;

/* ---------------------------------------------------------------------------------------------------------- opening */

static void find_unknown(fr_unigram *unigram, const fr_tokenizer_source *source) {
    unigram->unknown = -1;
    if (source->unknown.bytes)
        unigram->unknown =
            fr_vocabulary_find_in_model(unigram->vocabulary, source->unknown.bytes, source->unknown.length);
}

fr_status fr_unigram_open(fr_unigram *unigram, const fr_vocabulary *vocabulary, const fr_tokenizer_source *source) {
    *unigram = (fr_unigram){.vocabulary = vocabulary, .unknown_score = INFINITY};
    FR_TRY(fr_token_trie_open(&unigram->trie, vocabulary, source->path));
    fr_find_byte_ids(vocabulary, source->byte_fallback, unigram->byte_ids);
    find_unknown(unigram, source);
    unigram->scores = calloc(vocabulary->size + 1, sizeof *unigram->scores);
    if (!unigram->scores) return fr_fail_memory(source->path, vocabulary->size * sizeof *unigram->scores);
    for (size_t i = 0; i < source->vocabulary_count; i++) {
        unigram->scores[source->vocabulary[i].id] = source->scores[i];
        if (source->scores[i] < unigram->unknown_score) unigram->unknown_score = source->scores[i];
    }
    unigram->unknown_score -= UNKNOWN_PENALTY;
    return FR_OK;
}

void fr_unigram_close(fr_unigram *unigram) {
    fr_token_trie_close(&unigram->trie);
    free(unigram->scores);
    *unigram = (fr_unigram){0};
}

/* ---------------------------------------------------------------------------------------------------- finding paths */

static void offer(fr_unigram_work *work, size_t begin, size_t at, double score, int32_t id) {
    end *target = &work->ends[at];
    double sum = score + work->ends[begin].score;
    if (target->begin >= 0 && !(sum > target->score)) return;
    *target = (end){sum, (int32_t)begin, id};
}

/* Gives a character's length. A byte that is not part of valid UTF-8 counts as a character. */
static size_t character_length(const fr_unigram_work *work, size_t at) {
    utf8proc_int32_t codepoint;
    utf8proc_ssize_t valid = utf8proc_iterate(work->text + at, (utf8proc_ssize_t)(work->length - at), &codepoint);
    return valid > 0 ? (size_t)valid : 1;
}

static void offer_tokens(const fr_unigram *unigram, fr_unigram_work *work, size_t begin, size_t character) {
    uint32_t node = FR_TRIE_ROOT;
    bool has_single = false;
    for (size_t at = begin; at < work->length;) {
        node = fr_token_trie_step(&unigram->trie, node, work->text[at++]);
        if (node == FR_TRIE_NONE) break;
        int32_t id = unigram->trie.ids[node];
        if (id < 0 || (work->foreign && id != unigram->unknown && unigram->vocabulary->tokens[id].control)) continue;
        offer(work, begin, at, unigram->scores[id], id == unigram->unknown ? -1 : id);
        has_single |= at == begin + character;
    }
    if (!has_single) offer(work, begin, begin + character, unigram->unknown_score, -1);
}

static void find_ways(const fr_unigram *unigram, fr_unigram_work *work) {
    for (size_t at = 0; at <= work->length; at++) work->ends[at].begin = -1;
    work->ends[0].score = 0;
    for (size_t at = 0, step; at < work->length; at += step) {
        step = character_length(work, at);
        offer_tokens(unigram, work, at, step);
    }
}

/* ---------------------------------------------------------------------------------------------------- the best path */

/* Reverses the links of the best path, so that it can be followed from the beginning of the text. Afterwards `begin` of
 * a place on the path is the next place on the path. */
static void turn_around(fr_unigram_work *work) {
    int32_t at = (int32_t)work->length, behind = at, id = -1;
    while (at >= 0) {
        end here = work->ends[at];
        work->ends[at].begin = behind;
        work->ends[at].id = id;
        behind = at;
        id = here.id;
        at = here.begin;
    }
}

static fr_status append_unknown(const fr_unigram *unigram, const fr_unigram_work *work, size_t begin, size_t behind,
                                fr_id_list *ids) {
    const char *text = (const char *)work->text + begin;
    int32_t id = fr_vocabulary_find_in_model(unigram->vocabulary, text, behind - begin);
    bool own = id >= 0 && !(work->foreign && unigram->vocabulary->tokens[id].control), bytes = !own;
    for (size_t at = begin; at < behind && bytes; at++) bytes = unigram->byte_ids[work->text[at]] >= 0;
    if (!bytes) {
        if (!own) id = unigram->unknown;
        return id < 0 ? FR_OK : fr_ids_append(ids, &id, 1);
    }
    for (size_t at = begin; at < behind; at++) FR_TRY(fr_ids_append(ids, &unigram->byte_ids[work->text[at]], 1));
    return FR_OK;
}

static fr_status append_best(const fr_unigram *unigram, const fr_unigram_work *work, fr_id_list *ids) {
    for (size_t at = 0, behind; at < work->length; at = behind) {
        behind = (size_t)work->ends[at].begin;
        if (work->ends[at].id >= 0) {
            FR_TRY(fr_ids_append(ids, &work->ends[at].id, 1));
            continue;
        }
        while (behind < work->length && work->ends[behind].id < 0) behind = (size_t)work->ends[behind].begin;
        FR_TRY(append_unknown(unigram, work, at, behind, ids));
    }
    return FR_OK;
}

fr_status fr_unigram_encode(const fr_unigram *unigram, const char *text, size_t length, bool foreign,
                            fr_unigram_work *work, fr_id_list *ids) {
    if (length == 0) return FR_OK;
    if (length >= work->capacity) {
        free(work->ends);
        work->ends = malloc((length + 1) * sizeof *work->ends);
        work->capacity = work->ends ? length + 1 : 0;
        if (!work->ends) return fr_fail_memory("the text's ways", (length + 1) * sizeof *work->ends);
    }
    work->text = (const unsigned char *)text;
    work->length = length;
    work->foreign = foreign;
    find_ways(unigram, work);
    turn_around(work);
    return append_best(unigram, work, ids);
}

void fr_unigram_work_free(fr_unigram_work *work) {
    free(work->ends);
    *work = (fr_unigram_work){0};
}
