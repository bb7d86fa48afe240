/* Makes a trimmed draft head: see draft_head.h. */
#include "src/engine/draft/draft_head.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sizes.h"
#include "formats/map.h"
#include "quant/packed.h"
#include "src/language/tokenizer/tokenizer.h"

#define FIRST_LINE "forerun draft head 1\n"

enum { LIST_MAX = 16 << 20 /* most bytes of a file */ };

/* -------------------------------------------------------------------------------------------------------------- ids */

/* A set of ids below `vocab`. */
typedef struct id_set {
    bool *has; /* [vocab] true for the ids of the set */
    size_t vocab, count;
} id_set;

static void add(id_set *set, size_t id) {
    if (id >= set->vocab || set->has[id]) return;
    set->has[id] = true;
    set->count++;
}

static void add_first(id_set *set, size_t count) {
    for (size_t id = 0; id < count && id < set->vocab; id++) add(set, id);
}

static fr_status fail_line(const char *path, size_t line, const char *why) {
    return fr_fail(FR_INPUT, "%s: line %zu of a draft head's list %s", path, line, why);
}

/* Reads one id from a line that ends in a line feed, and moves *at to the next line. */
static fr_status read_id(const char *path, const char **at, const char *end, size_t line, id_set *set) {
    size_t id = 0, digits = 0;
    for (; *at < end && **at >= '0' && **at <= '9'; ++*at, digits++) {
        id = id * 10 + (size_t)(**at - '0');
        if (id >= set->vocab) return fail_line(path, line, "is no id of the vocabulary");
    }
    if (digits == 0 || *at == end || **at != '\n') return fail_line(path, line, "is no id");
    if (set->has[id]) return fail_line(path, line, "has an id again");
    ++*at;
    add(set, id);
    return FR_OK;
}

static fr_status read_ids(const char *path, const char *text, size_t size, id_set *set) {
    size_t first = strlen(FIRST_LINE);
    const char *at = text + first, *end = text + size;
    if (size < first || memcmp(text, FIRST_LINE, first) != 0)
        return fr_fail(FR_INPUT, "%s is no list of a draft head, as forerun trim-head writes it", path);
    for (size_t line = 2; at < end; line++) FR_TRY(read_id(path, &at, end, line, set));
    return set->count ? FR_OK : fr_fail(FR_INPUT, "%s: the draft head's list has no id", path);
}

static fr_status add_file(const char *path, id_set *set) {
    char *text;
    size_t size;
    FR_TRY(fr_read_text(path, LIST_MAX, &text, &size));
    fr_status status = read_ids(path, text, size, set);
    free(text);
    return status;
}

bool fr_draft_head_trims(const char *what) {
    return *what && strcmp(what, "whole") != 0;
}

static bool is_auto(const char *what) {
    return strcmp(what, "auto") == 0 || strncmp(what, "auto:", 5) == 0;
}

/* Adds the tokens whose text is a single byte. */
static void add_bytes(id_set *set, const fr_tokenizer *tokenizer) {
    for (size_t id = 0; tokenizer && id < set->vocab; id++) {
        size_t length;
        if (fr_token_bytes(tokenizer, (int32_t)id, &length) && length == 1) add(set, id);
    }
}

static fr_status add_chosen(const char *what, const fr_model *target, id_set *set) {
    unsigned long long rows = FR_LIKELY_IDS;
    const char *number = is_auto(what) ? strchr(what, ':') : what;
    if (number == what && what[strspn(what, "0123456789")]) return add_file(what, set);
    if (number) {
        number += *number == ':';
        errno = 0;
        rows = strtoull(number, NULL, 10);
        if (errno || rows == 0 || number[strspn(number, "0123456789")])
            return fr_fail(FR_USAGE, "draft-head %s is no number of rows", what);
    }
    add_first(set, fr_smaller(rows, set->vocab));
    if (is_auto(what)) add_bytes(set, target->tokenizer);
    return FR_OK;
}

/* Copies the set's ids to the head in ascending order. Copies none if the set has all ids, because the head then stays
 * whole. */
static fr_status take_ids(fr_draft_head *head, id_set *set, const fr_model *target, const fr_matrix *whole) {
    for (size_t i = 0; i < target->eos_count; i++) add(set, (size_t)target->eos[i]);
    if (set->count >= set->vocab) return FR_OK;
    head->ids = malloc(set->count * sizeof *head->ids);
    if (!head->ids) return fr_fail_memory("a draft head's ids", set->count * sizeof *head->ids);
    size_t count = 0;
    for (size_t id = 0; id < set->vocab; id++)
        if (set->has[id]) head->ids[count++] = (int32_t)id;
    head->matrix = *whole;
    head->matrix.data = NULL;
    head->matrix.features = count;
    return FR_OK;
}

fr_status fr_draft_head_choose(fr_draft_head *head, const char *what, const fr_model *target, const fr_matrix *whole) {
    if (!fr_draft_head_trims(what)) return FR_OK;
    /* In these types, rows share scales, so single rows can't be taken. */
    if (whole->type == FR_F8_E4M3 || whole->type == FR_STORED)
        return fr_fail(FR_UNBUILT, "draft-head %s: the drafter's head is %s, which can only be whole", what,
                       whole->type == FR_STORED ? "quantized as its folder has it" : "of FP8");
    id_set set = {.vocab = fr_smaller(whole->features, target->trunk.spec.vocab)};
    set.has = calloc(set.vocab + 1, sizeof *set.has);
    if (!set.has) return fr_fail_memory("a draft head's ids", set.vocab);
    fr_status status = add_chosen(what, target, &set);
    if (status == FR_OK) status = take_ids(head, &set, target, whole);
    head->learns = head->ids && is_auto(what);
    free(set.has);
    return status;
}

/* ------------------------------------------------------------------------------------------------------------- rows */

size_t fr_draft_head_row_bytes(const fr_matrix *whole) {
    return fr_dtype_row_bytes(whole->type, whole->cols);
}

static void copy_row(const fr_matrix *whole, size_t id, uint8_t *row) {
    size_t first = id / FR_TILE_FEATURES * FR_TILE_FEATURES;
    const uint8_t *tile = whole->packed ? whole->data + fr_packed_bytes(whole->type, first, whole->cols) : NULL;
    if (tile)
        fr_unpack_row(whole->type, row, tile, id % FR_TILE_FEATURES, whole->cols);
    else
        memcpy(row, whole->data + id * whole->row_bytes, fr_draft_head_row_bytes(whole));
}

void fr_draft_head_gather_tile(const fr_matrix *matrix, const int32_t *ids, const fr_matrix *whole, size_t first,
                               uint8_t *room) {
    size_t count = fr_smaller(FR_TILE_FEATURES, matrix->features - first), row_bytes = fr_draft_head_row_bytes(whole);
    uint8_t *to = (uint8_t *)matrix->data;
    for (size_t i = 0; i < count; i++) copy_row(whole, (size_t)ids[first + i], room + i * row_bytes);
    if (whole->packed)
        fr_pack_tile(whole->type, to + fr_packed_bytes(whole->type, first, whole->cols), room, row_bytes, count,
                     whole->cols);
    else
        memcpy(to + first * row_bytes, room, count * row_bytes);
}

fr_status fr_draft_head_gather(fr_draft_head *head, const fr_matrix *whole) {
    if (!head->ids || head->learns) return FR_OK;
    size_t bytes = fr_matrix_bytes(&head->matrix);
    size_t tile = FR_TILE_FEATURES * fr_draft_head_row_bytes(whole);
    uint8_t *rows = malloc(tile);
    if (!rows) return fr_fail_memory("rows of a draft head", tile);
    fr_arena measure = {0};
    fr_arena_take(&measure, 1, bytes);
    fr_status status = fr_arena_open(&head->arena, measure.used, "a draft head");
    head->matrix.data = status == FR_OK ? fr_arena_take(&head->arena, 1, bytes) : NULL;
    for (size_t first = 0; head->matrix.data && first < head->matrix.features; first += FR_TILE_FEATURES)
        fr_draft_head_gather_tile(&head->matrix, head->ids, whole, first, rows);
    free(rows);
    return status;
}

uint64_t fr_draft_head_bytes(const fr_draft_head *head) {
    return head->ids && !head->learns ? fr_matrix_bytes(&head->matrix) : 0;
}

void fr_draft_head_free(fr_draft_head *head) {
    fr_arena_close(&head->arena);
    free(head->ids);
    *head = (fr_draft_head){0};
}
