/* Converts texts and pairs to ids as sentence-transformers does: see embedder.h.
 *
 * If a text is too long, the text's own tokens are cut. They are cut at the end, or at the beginning if the tokenizer
 * says so. The ids that the post-processor adds stay. In a pair, the longer text is cut first; if that is not enough,
 * both texts are cut. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sizes.h"
#include "base/text_buffer.h"
#include "src/engine/embed/embedder.h"
#include "src/language/tokenizer/tokenizer.h"

/* The prompt with which Qwen3-Reranker was trained, from its makers' example. */
static const char judge_before[] =
    "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
    "provided. Note that the answer can only be \"yes\" or \"no\".<|im_end|>\n<|im_start|>user\n";
static const char judge_after[] = "<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n";
static const char judge_by[] = "Given a web search query, retrieve relevant passages that answer the query";

static fr_status take_text(fr_embedder_text *encoded, size_t count) {
    *encoded = (fr_embedder_text){.ids = malloc((count + 1) * sizeof *encoded->ids), .types = calloc(count + 1, 1)};
    if (encoded->ids && encoded->types) return FR_OK;
    fr_embedder_text_free(encoded);
    return fr_fail_memory("a text's ids", count * sizeof *encoded->ids);
}

static void put(fr_embedder_text *encoded, const int32_t *ids, size_t count, uint8_t type) {
    if (count) memcpy(encoded->ids + encoded->count, ids, count * sizeof *ids);
    memset(encoded->types + encoded->count, type, count);
    encoded->count += count;
}

/* Appends `kept` of a text's `count` ids. These are the first ids, or the last ids if texts lose their beginning. */
static void put_cut(const fr_embedder *e, fr_embedder_text *encoded, const int32_t *ids, size_t count, size_t kept,
                    uint8_t type) {
    put(encoded, ids + (e->recipe.cuts_begin ? count - kept : 0), kept, type);
}

static fr_status check_tokenizer(const fr_embedder *e) {
    if (e->model->tokenizer) return FR_OK;
    return fr_fail(FR_INPUT, "%s has no tokenizer: it reads ids alone", e->model->files.path);
}

static fr_status tokenize(const fr_embedder *e, const char *text, size_t length, int32_t **ids, size_t *count) {
    return fr_tokenize(e->model->tokenizer, text, length, false, true, ids, count);
}

fr_status fr_embedder_text_of(const fr_embedder *e, const char *prompt, fr_text text, fr_embedder_text *encoded) {
    const int32_t *prefix, *suffix;
    size_t before, behind, count, prompt_count = 0, prompt_length = prompt ? strlen(prompt) : 0;
    int32_t *ids, *alone = NULL;
    FR_TRY(check_tokenizer(e));
    size_t added = fr_tokenizer_around(e->model->tokenizer, &prefix, &before, &suffix, &behind);
    if (added >= e->limit)
        return fr_fail(FR_INPUT, "%s: its tokenizer adds %zu ids, and at most %zu are read", e->model->files.path,
                       added, e->limit);
    fr_text_buffer whole = {0};
    fr_text_append(&whole, prompt ? prompt : "", prompt_length);
    fr_text_append(&whole, text.bytes ? text.bytes : "", text.length);
    fr_status status = fr_text_check(&whole, "a text");
    if (status == FR_OK) status = tokenize(e, whole.bytes ? whole.bytes : "", whole.length, &ids, &count);
    fr_text_free(&whole);
    FR_TRY(status);
    if (prompt_length) status = tokenize(e, prompt, prompt_length, &alone, &prompt_count);
    if (status == FR_OK) status = take_text(encoded, fr_smaller(count, e->limit - added) + added);
    if (status == FR_OK) {
        put(encoded, prefix, before, 0);
        put_cut(e, encoded, ids, count, fr_smaller(count, e->limit - added), 0);
        put(encoded, suffix, behind, 0);
        encoded->whole = count + added;
        encoded->prompt = prompt_length ? before + fr_smaller(prompt_count, e->limit - added) : 0;
    }
    fr_free(ids);
    fr_free(alone);
    return status;
}

fr_status fr_embedder_ids_of(const fr_embedder *e, const int32_t *ids, size_t count, fr_embedder_text *encoded) {
    FR_TRY(fr_embedder_check_ids(e, ids, count));
    FR_TRY(take_text(encoded, count));
    put(encoded, ids, count, 0);
    encoded->whole = count;
    return FR_OK;
}

/* Cuts two texts so that they have `room` tokens together, as longest_first of tokenizers does. First the longer text
 * is cut to what the shorter one leaves. If both together are still too long, each gets half of the room. */
static void cut_pair(size_t room, size_t *first, size_t *second) {
    size_t *shorter = *first > *second ? second : first, *longer = shorter == first ? second : first;
    if (*first + *second <= room) return;
    *longer = *shorter > room ? *shorter : fr_larger(*shorter, room - *shorter);
    if (*shorter + *longer <= room) return;
    *shorter = room / 2;
    *longer = room / 2 + room % 2;
}

static fr_status join_pair(const fr_embedder *e, const int32_t *const ids[2], const size_t counts[2],
                           fr_embedder_text *encoded) {
    const fr_pair_piece *pieces;
    size_t count = fr_tokenizer_pair(e->model->tokenizer, &pieces), kept[2] = {counts[0], counts[1]};
    if (count < 2)
        return fr_fail(FR_INPUT, "%s: its tokenizer does not say how a pair of texts is joined", e->model->files.path);
    size_t added = count - 2, types = fr_encoder_fact(e->model->encoder).types;
    if (added >= e->limit)
        return fr_fail(FR_INPUT, "%s: its tokenizer adds %zu ids, and at most %zu are read", e->model->files.path,
                       added, e->limit);
    cut_pair(e->limit - added, &kept[0], &kept[1]);
    FR_TRY(take_text(encoded, kept[0] + kept[1] + added));
    for (size_t i = 0; i < count; i++) {
        uint8_t type = e->recipe.typed && pieces[i].type < types ? pieces[i].type : 0;
        bool second = pieces[i].id == FR_PAIR_SECOND;
        if (second || pieces[i].id == FR_PAIR_FIRST)
            put_cut(e, encoded, ids[second], counts[second], kept[second], type);
        else
            put(encoded, &pieces[i].id, 1, type);
    }
    encoded->whole = counts[0] + counts[1] + added;
    return FR_OK;
}

/* Makes the prompt that asks a model that generates text about a pair, in the words with which Qwen3-Reranker was
 * trained. */
static fr_status ask_pair(const fr_embedder *e, const char *instruction, fr_text query, fr_text document,
                          fr_embedder_text *encoded) {
    int32_t *ids[3] = {NULL};
    size_t counts[3] = {0};
    fr_text_buffer asked = {0};
    const char *const pieces[] = {"<Instruct>: ", instruction ? instruction : judge_by, "\n<Query>: "};
    for (size_t i = 0; i < 3; i++) fr_text_append(&asked, pieces[i], strlen(pieces[i]));
    fr_text_append(&asked, query.bytes ? query.bytes : "", query.length);
    fr_text_append(&asked, "\n<Document>: ", strlen("\n<Document>: "));
    fr_text_append(&asked, document.bytes ? document.bytes : "", document.length);
    fr_status status = fr_text_check(&asked, "a pair");
    if (status == FR_OK) status = tokenize(e, judge_before, sizeof judge_before - 1, &ids[0], &counts[0]);
    if (status == FR_OK) status = tokenize(e, asked.bytes, asked.length, &ids[1], &counts[1]);
    if (status == FR_OK) status = tokenize(e, judge_after, sizeof judge_after - 1, &ids[2], &counts[2]);
    size_t added = counts[0] + counts[2];
    if (status == FR_OK && added >= e->limit)
        status = fr_fail(FR_INPUT, "%s: its question has %zu tokens, and at most %zu are read", e->model->files.path,
                         added, e->limit);
    if (status == FR_OK) status = take_text(encoded, counts[1] + added);
    if (status == FR_OK) {
        put(encoded, ids[0], counts[0], 0);
        put(encoded, ids[1], fr_smaller(counts[1], e->limit - added), 0);
        put(encoded, ids[2], counts[2], 0);
        encoded->whole = counts[1] + added;
    }
    for (size_t i = 0; i < 3; i++) fr_free(ids[i]);
    fr_text_free(&asked);
    return status;
}

fr_status fr_embedder_pair_of(const fr_embedder *e, const char *instruction, fr_text query, fr_text document,
                              fr_embedder_text *encoded) {
    int32_t *ids[2] = {NULL};
    size_t counts[2];
    FR_TRY(check_tokenizer(e));
    if (!e->model->encoder) return ask_pair(e, instruction, query, document, encoded);
    fr_status status = tokenize(e, query.bytes, query.length, &ids[0], &counts[0]);
    if (status == FR_OK) status = tokenize(e, document.bytes, document.length, &ids[1], &counts[1]);
    if (status == FR_OK) status = join_pair(e, (const int32_t *const *)ids, counts, encoded);
    for (size_t i = 0; i < 2; i++) fr_free(ids[i]);
    return status;
}
