/* Merges by scores (score_merges.h). */
#include "src/language/tokenizer/score_merges.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/error.h"
#include "src/language/tokenizer/merge_heap.h"

/* A part of the text. The parts are in the text's order. A merge extends the left part and unlinks the right one. */
typedef struct fr_score_symbol {
    uint32_t begin, length; /* length 0: the part is unlinked (it was merged into another) */
    int32_t id;             /* the part's token; -1: it is no token */
    int32_t previous, next; /* the parts before and after this one; -1: there is none */
} symbol;

/* ---------------------------------------------------------------------------------------------------------- opening */

typedef struct scored_id {
    double score;
    int32_t id;
} scored_id;

static int higher_first(const void *a, const void *b) {
    double left = ((const scored_id *)a)->score, right = ((const scored_id *)b)->score;
    return (left < right) - (left > right);
}

static fr_status rank_tokens(fr_score_merges *merges, const fr_tokenizer_source *source) {
    size_t count = source->vocabulary_count;
    scored_id *order = malloc((count + 1) * sizeof *order);
    merges->ranks = calloc(merges->vocabulary->size + 1, sizeof *merges->ranks);
    if (!order || !merges->ranks) {
        free(order);
        return fr_fail_memory(source->path, count * sizeof *order);
    }
    for (size_t i = 0; i < count; i++) order[i] = (scored_id){source->scores[i], source->vocabulary[i].id};
    qsort(order, count, sizeof *order, higher_first);
    uint32_t rank = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && order[i].score < order[i - 1].score) rank++;
        merges->ranks[order[i].id] = rank;
    }
    free(order);
    return FR_OK;
}

fr_status fr_score_merges_open(fr_score_merges *merges, const fr_vocabulary *vocabulary,
                               const fr_tokenizer_source *source) {
    *merges = (fr_score_merges){.vocabulary = vocabulary, .unknown = -1};
    fr_find_byte_ids(vocabulary, true, merges->byte_ids);
    if (source->unknown.bytes)
        merges->unknown = fr_vocabulary_find_in_model(vocabulary, source->unknown.bytes, source->unknown.length);
    return rank_tokens(merges, source);
}

void fr_score_merges_close(fr_score_merges *merges) {
    free(merges->ranks);
    *merges = (fr_score_merges){0};
}

/* ---------------------------------------------------------------------------------------------------------- merging */

/* Finds the token whose text is this part of the text; -1: there is none. */
static int32_t find(const fr_score_merges *merges, const fr_score_work *work, size_t begin, size_t length) {
    if (length > merges->vocabulary->longest) return -1;
    int32_t id = fr_vocabulary_find_in_model(merges->vocabulary, work->text + begin, length);
    return id >= 0 && !(work->foreign && merges->vocabulary->tokens[id].control) ? id : -1;
}

/* Makes a symbol of each character. A byte that is not part of valid UTF-8 counts as a character. */
static size_t start_symbols(const fr_score_merges *merges, size_t length, fr_score_work *work) {
    size_t count = 0;
    for (size_t at = 0, step; at < length; at += step) {
        utf8proc_int32_t codepoint;
        utf8proc_ssize_t valid =
            utf8proc_iterate((const utf8proc_uint8_t *)work->text + at, (utf8proc_ssize_t)(length - at), &codepoint);
        step = valid > 0 ? (size_t)valid : 1;
        int32_t here = (int32_t)count++;
        work->symbols[here] = (symbol){(uint32_t)at, (uint32_t)step, find(merges, work, at, step), here - 1, here + 1};
    }
    work->symbols[count - 1].next = -1;
    return count;
}

/* Finds the token whose text consists of the texts of a symbol and of the next symbol; -1: there is no such token. */
static int32_t find_pair(const fr_score_merges *merges, const fr_score_work *work, int32_t left) {
    const symbol *at = &work->symbols[left];
    return at->next < 0 ? -1 : find(merges, work, at->begin, at->length + work->symbols[at->next].length);
}

static void offer(const fr_score_merges *merges, fr_score_work *work, int32_t left) {
    int32_t id = left < 0 ? -1 : find_pair(merges, work, left);
    if (id >= 0) fr_merge_heap_push(work->heap, &work->heap_count, (uint64_t)merges->ranks[id] << 32 | (uint32_t)left);
}

/* Merges pairs in order of rank. A candidate for a merge is out of date if its symbol is unlinked or now begins another
 * pair. */
static void merge_all(const fr_score_merges *merges, size_t count, fr_score_work *work) {
    symbol *symbols = work->symbols;
    work->heap_count = 0;
    for (size_t i = 0; i < count; i++) offer(merges, work, (int32_t)i);
    while (work->heap_count > 0) {
        uint64_t key = fr_merge_heap_pop(work->heap, &work->heap_count);
        int32_t at = (int32_t)(uint32_t)key;
        int32_t id = symbols[at].length > 0 ? find_pair(merges, work, at) : -1;
        if (id < 0 || merges->ranks[id] != key >> 32) continue;
        symbol *right = &symbols[symbols[at].next];
        symbols[at].id = id;
        symbols[at].length += right->length;
        symbols[at].next = right->next;
        right->length = 0;
        if (symbols[at].next >= 0) symbols[symbols[at].next].previous = at;
        offer(merges, work, symbols[at].previous);
        offer(merges, work, at);
    }
}

/* Makes room for a text of n bytes. The heap has at most 2 n candidates: it starts with n - 1 pairs, and there are at
 * most n - 1 merges, each of which removes one candidate and adds two. */
static fr_status reserve(fr_score_work *work, size_t length) {
    if (length <= work->capacity) return FR_OK;
    fr_score_work_free(work);
    work->symbols = malloc(length * sizeof *work->symbols);
    work->heap = malloc(2 * length * sizeof *work->heap);
    if (!work->symbols || !work->heap)
        return fr_fail_memory("the text's symbols", length * (sizeof *work->symbols + 2 * sizeof *work->heap));
    work->capacity = length;
    return FR_OK;
}

/* Appends the ids of a character that is not a token: those of its bytes, or the unknown token. */
static fr_status append_bytes(const fr_score_merges *merges, const char *bytes, size_t length, fr_id_list *ids) {
    int32_t found[4];
    for (size_t i = 0; i < length; i++) {
        found[i] = merges->byte_ids[(unsigned char)bytes[i]];
        if (found[i] >= 0) continue;
        return merges->unknown < 0 ? FR_OK : fr_ids_append(ids, &merges->unknown, 1);
    }
    return fr_ids_append(ids, found, length);
}

fr_status fr_score_merges_encode(const fr_score_merges *merges, const char *text, size_t length, bool foreign,
                                 fr_score_work *work, fr_id_list *ids) {
    if (length == 0) return FR_OK;
    FR_TRY(reserve(work, length));
    work->text = text;
    work->foreign = foreign;
    merge_all(merges, start_symbols(merges, length, work), work);
    for (int32_t at = 0; at >= 0; at = work->symbols[at].next) {
        const symbol *s = &work->symbols[at];
        FR_TRY(s->id >= 0 ? fr_ids_append(ids, &s->id, 1) : append_bytes(merges, text + s->begin, s->length, ids));
    }
    return FR_OK;
}

void fr_score_work_free(fr_score_work *work) {
    free(work->symbols);
    free(work->heap);
    *work = (fr_score_work){0};
}
