/* Encodes pieces of text by merging pairs (bpe.h). */
#include "src/language/tokenizer/bpe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

#include "base/error.h"
#include "base/hash.h"
#include "src/language/tokenizer/byte_level.h"
#include "src/language/tokenizer/merge_heap.h"

typedef struct fr_bpe_merge {
    uint64_t pair;  /* left id << 32 | right id; NO_PAIR: the slot is empty */
    uint32_t rank;  /* index in the list of merges; the lowest rank is merged first */
    int32_t result; /* id of the merged token */
} merge;

#define NO_PAIR   UINT64_MAX
#define AFFIX_MAX 64

/* A symbol: a part of the piece that is a token. Symbols are in the order of the text. A merge extends the left symbol
 * and unlinks the right one. */
typedef struct fr_bpe_symbol {
    int32_t id;             /* the symbol's token; -1: the symbol is unlinked (it was merged into another) */
    int32_t previous, next; /* the symbols before and after this one; -1: there is none */
} symbol;

/* ----------------------------------------------------------------------------------------------------------- merges */

/* Finds the slot of a pair. If the pair is missing, finds the empty slot for it. A lookup visits at most FR_PROBES_MAX
 * slots; NULL: neither slot is among them. */
static merge *find_slot(const fr_bpe *bpe, int32_t left, int32_t right, uint64_t *pair) {
    *pair = (uint64_t)left << 32 | (uint32_t)right;
    uint64_t hash = *pair * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 32;
    for (size_t probe = 0; probe < FR_PROBES_MAX; probe++) {
        merge *slot = &bpe->merges[(hash + probe) & bpe->merge_mask];
        if (slot->pair == *pair || slot->pair == NO_PAIR) return slot;
    }
    return NULL;
}

static const merge *find_merge(const fr_bpe *bpe, int32_t left, int32_t right) {
    uint64_t pair;
    const merge *slot = find_slot(bpe, left, right, &pair);
    return slot && slot->pair == pair ? slot : NULL;
}

static int shown(fr_text text) {
    return text.length < 99 ? (int)text.length : 99;
}

static fr_status fail_merge(const fr_tokenizer_source *source, size_t rank, const char *reason) {
    const fr_merge_entry *entry = &source->merges[rank];
    return fr_fail(FR_INPUT, "%s: merge %zu, \"%.*s\" + \"%.*s\": %s", source->path, rank, shown(entry->left),
                   entry->left.bytes, shown(entry->right), entry->right.bytes, reason);
}

/* Adds a merge. If a pair is listed twice, it gets the later rank, as in the reference implementation. `both` has room
 * for the merged token's text. */
static fr_status add_merge(fr_bpe *bpe, const fr_tokenizer_source *source, size_t rank, char *both) {
    fr_text left = source->merges[rank].left, right = source->merges[rank].right;
    int32_t left_id = fr_vocabulary_find_in_model(bpe->vocabulary, left.bytes, left.length);
    int32_t right_id = fr_vocabulary_find_in_model(bpe->vocabulary, right.bytes, right.length), result = -1;
    bool known = left_id >= 0 && right_id >= 0;
    if (!known && source->loose_merges) return FR_OK;
    if (!known) return fail_merge(source, rank, "one of them is not in the vocabulary");
    size_t skip = strlen(bpe->inside_prefix);
    right = skip <= right.length ? (fr_text){right.bytes + skip, right.length - skip} : (fr_text){0};
    if (left.length + right.length <= bpe->vocabulary->longest) {
        memcpy(both, left.bytes, left.length);
        memcpy(both + left.length, right.bytes, right.length);
        result = fr_vocabulary_find_in_model(bpe->vocabulary, both, left.length + right.length);
    }
    if (result < 0 && source->loose_merges) return FR_OK;
    if (result < 0) return fail_merge(source, rank, "what they make is not in the vocabulary");
    uint64_t pair;
    merge *slot = find_slot(bpe, left_id, right_id, &pair);
    if (!slot) return fail_merge(source, rank, "too many merges collide");
    *slot = (merge){pair, (uint32_t)rank, result};
    return FR_OK;
}

static fr_status add_merges(fr_bpe *bpe, const fr_tokenizer_source *source) {
    size_t size = fr_hash_table_size(source->merge_count);
    char *both = malloc(bpe->vocabulary->longest + 1);
    bpe->merges = malloc(size * sizeof *bpe->merges);
    bpe->merge_mask = size - 1;
    fr_status status = FR_OK;
    if (!both || !bpe->merges)
        status = fr_fail_memory(source->path, size * sizeof *bpe->merges);
    else
        memset(bpe->merges, 0xFF, size * sizeof *bpe->merges);
    for (size_t rank = 0; status == FR_OK && rank < source->merge_count; rank++)
        status = add_merge(bpe, source, rank, both);
    free(both);
    return status;
}

/* ---------------------------------------------------------------------------------------------------------- opening */

void fr_find_byte_ids(const fr_vocabulary *vocabulary, bool wanted, int32_t ids[256]) {
    for (unsigned byte = 0; byte < 256; byte++) {
        char name[8];
        size_t length = (size_t)snprintf(name, sizeof name, "<0x%02X>", byte);
        ids[byte] = wanted ? fr_vocabulary_find_in_model(vocabulary, name, length) : -1;
    }
}

static void find_level_ids(fr_bpe *bpe) {
    for (unsigned byte = 0; byte < 256; byte++) {
        char name[2];
        size_t length = fr_byte_level_write((unsigned char)byte, name);
        bpe->byte_ids[byte] = fr_vocabulary_find_in_model(bpe->vocabulary, name, length);
    }
}

static fr_status copy_affix(fr_text affix, const char *where, char **copy) {
    if (affix.length > AFFIX_MAX)
        return fr_fail(FR_INPUT, "%s: a prefix or suffix of words has %zu bytes, which is too long", where,
                       affix.length);
    *copy = strndup(affix.bytes ? affix.bytes : "", affix.length);
    return *copy ? FR_OK : fr_fail_memory(where, affix.length);
}

fr_status fr_bpe_open(fr_bpe *bpe, const fr_vocabulary *vocabulary, const fr_tokenizer_source *source) {
    *bpe = (fr_bpe){.vocabulary = vocabulary, .unknown = -1};
    bpe->fuse_unknown = source->fuse_unknown;
    bpe->ignore_merges = source->ignore_merges;
    bpe->byte_level = source->byte_level;
    FR_TRY(copy_affix(source->inside_prefix, source->path, &bpe->inside_prefix));
    FR_TRY(copy_affix(source->end_suffix, source->path, &bpe->end_suffix));
    if (source->byte_level)
        find_level_ids(bpe);
    else
        fr_find_byte_ids(vocabulary, source->byte_fallback, bpe->byte_ids);
    if (source->unknown.bytes) {
        bpe->unknown = fr_vocabulary_find_in_model(vocabulary, source->unknown.bytes, source->unknown.length);
        if (bpe->unknown < 0)
            return fr_fail(FR_INPUT, "%s: the unk_token \"%.99s\" is not in the vocabulary", source->path,
                           source->unknown.bytes);
    }
    return add_merges(bpe, source);
}

void fr_bpe_close(fr_bpe *bpe) {
    free(bpe->merges);
    free(bpe->inside_prefix);
    free(bpe->end_suffix);
    *bpe = (fr_bpe){0};
}

/* ---------------------------------------------------------------------------------------------------------- symbols */

static bool allows(const fr_bpe *bpe, const fr_bpe_work *work, int32_t id) {
    return id >= 0 && !(work->foreign && bpe->vocabulary->tokens[id].control);
}

static bool has_byte_ids(const fr_bpe *bpe, const fr_bpe_work *work, fr_text text) {
    for (size_t i = 0; i < text.length; i++)
        if (!allows(bpe, work, bpe->byte_ids[(unsigned char)text.bytes[i]])) return false;
    return true;
}

/* Gives a character's length. A byte that is not part of valid UTF-8 counts as a character. */
static size_t character_length(fr_text text, size_t at) {
    utf8proc_int32_t codepoint;
    utf8proc_ssize_t valid =
        utf8proc_iterate((const utf8proc_uint8_t *)text.bytes + at, (utf8proc_ssize_t)(text.length - at), &codepoint);
    return valid > 0 ? (size_t)valid : 1;
}

static void add_symbol(fr_bpe_work *work, int32_t id) {
    int32_t at = (int32_t)work->symbol_count++;
    work->symbols[at] = (symbol){id, at - 1, at + 1};
}

/* Gives the name that the vocabulary has for a symbol of a piece. In byte-level vocabularies each symbol is a byte.
 * Each symbol's name except the first has a prefix, and the name of the last symbol has a suffix. */
static fr_text name_symbol(const fr_bpe *bpe, fr_bpe_work *work, fr_text piece, size_t at, size_t step) {
    const char *prefix = at > 0 ? bpe->inside_prefix : "", *suffix = at + step == piece.length ? bpe->end_suffix : "";
    if (!*prefix && !*suffix && !bpe->byte_level) return (fr_text){piece.bytes + at, step};
    size_t before = strlen(prefix), behind = strlen(suffix), length = before;
    memcpy(work->written, prefix, before);
    if (bpe->byte_level) {
        length += fr_byte_level_write((unsigned char)piece.bytes[at], work->written + length);
    } else {
        memcpy(work->written + length, piece.bytes + at, step);
        length += step;
    }
    memcpy(work->written + length, suffix, behind);
    return (fr_text){work->written, length + behind};
}

/* Makes the first symbols of a piece. An unknown token is held back until a known character or the end comes, so that
 * neighbouring unknown characters can become one token. Byte tokens do not end this: they are placed before the unknown
 * token that is held back, as in the reference implementation. That happens only if the vocabulary has some byte tokens
 * but lacks others. */
static void start_symbols(const fr_bpe *bpe, fr_text piece, fr_bpe_work *work) {
    bool pending = false, plain = !*bpe->inside_prefix && !*bpe->end_suffix;
    work->symbol_count = 0;
    for (size_t at = 0, step; at < piece.length; at += step) {
        step = bpe->byte_level ? 1 : character_length(piece, at);
        fr_text name = {piece.bytes + at, step};
        int32_t id;
        if (bpe->byte_level && plain) {
            id = bpe->byte_ids[(unsigned char)piece.bytes[at]];
        } else {
            name = name_symbol(bpe, work, piece, at, step);
            id = fr_vocabulary_find_in_model(bpe->vocabulary, name.bytes, name.length);
        }
        if (allows(bpe, work, id)) {
            if (pending) add_symbol(work, bpe->unknown);
            pending = false;
            add_symbol(work, id);
        } else if (!bpe->byte_level && has_byte_ids(bpe, work, name)) {
            for (size_t i = 0; i < name.length; i++) add_symbol(work, bpe->byte_ids[(unsigned char)name.bytes[i]]);
        } else if (bpe->unknown >= 0) {
            if (pending && !bpe->fuse_unknown) add_symbol(work, bpe->unknown);
            pending = true;
        }
    }
    if (pending) add_symbol(work, bpe->unknown);
    if (work->symbol_count > 0) work->symbols[work->symbol_count - 1].next = -1;
}

/* ---------------------------------------------------------------------------------------------------------- merging */

static void offer(const fr_bpe *bpe, fr_bpe_work *work, int32_t left) {
    if (left < 0 || work->symbols[left].next < 0) return;
    const merge *found = find_merge(bpe, work->symbols[left].id, work->symbols[work->symbols[left].next].id);
    if (found && allows(bpe, work, found->result))
        fr_merge_heap_push(work->heap, &work->heap_count, (uint64_t)found->rank << 32 | (uint32_t)left);
}

/* Merges pairs in order of rank. A candidate for a merge is out of date if its symbol is unlinked or now begins another
 * pair. */
static void merge_all(const fr_bpe *bpe, fr_bpe_work *work) {
    symbol *symbols = work->symbols;
    work->heap_count = 0;
    work->last_rank = -1;
    for (size_t i = 0; i < work->symbol_count; i++) offer(bpe, work, (int32_t)i);
    while (work->heap_count > 0) {
        uint64_t key = fr_merge_heap_pop(work->heap, &work->heap_count);
        int32_t at = (int32_t)(uint32_t)key;
        if (symbols[at].id < 0 || symbols[at].next < 0) continue;
        symbol *right = &symbols[symbols[at].next];
        const merge *found = find_merge(bpe, symbols[at].id, right->id);
        if (!found || found->rank != key >> 32) continue;
        work->last_rank = found->rank;
        symbols[at].id = found->result;
        symbols[at].next = right->next;
        right->id = -1;
        if (symbols[at].next >= 0) symbols[symbols[at].next].previous = at;
        offer(bpe, work, symbols[at].previous);
        offer(bpe, work, at);
    }
}

fr_status fr_ids_append(fr_id_list *ids, const int32_t *items, size_t count) {
    if (ids->capacity - ids->count < count) {
        size_t capacity = 2 * ids->capacity > ids->count + count ? 2 * ids->capacity : ids->count + count + 64;
        int32_t *grown = realloc(ids->items, capacity * sizeof *grown);
        if (!grown) return fr_fail_memory("token ids", capacity * sizeof *grown);
        ids->items = grown;
        ids->capacity = capacity;
    }
    if (count > 0) memcpy(ids->items + ids->count, items, count * sizeof *items);
    ids->count += count;
    return FR_OK;
}

/* Makes room for a piece of n bytes, each of which may become a symbol. The heap has at most 2 n candidates: it starts
 * with n - 1 pairs, and there are at most n - 1 merges, each of which removes one candidate and adds two. */
static fr_status reserve(const fr_bpe *bpe, fr_bpe_work *work, size_t length) {
    size_t prefix = strlen(bpe->inside_prefix), suffix = strlen(bpe->end_suffix);
    length = length * (1 + prefix) + suffix; /* the bytes of the prefixes and of the suffix may become symbols, too */
    if (length <= work->capacity) return FR_OK;
    if (length > INT32_MAX) return fr_fail(FR_INPUT, "a word of more than %d symbols", INT32_MAX);
    fr_bpe_work_free(work);
    work->symbols = malloc(length * sizeof *work->symbols);
    work->heap = malloc(2 * length * sizeof *work->heap);
    work->written = malloc(2 * length + 2 + prefix + suffix);
    if (!work->symbols || !work->heap || !work->written)
        return fr_fail_memory("the text's symbols", length * (sizeof *work->symbols + 2 * sizeof *work->heap));
    work->capacity = length;
    return FR_OK;
}

/* Finds the token whose text is the whole piece; -1: there is none. */
static int32_t find_whole(const fr_bpe *bpe, const char *text, size_t length, fr_bpe_work *work) {
    if (!bpe->byte_level) return fr_vocabulary_find_in_model(bpe->vocabulary, text, length);
    size_t written = 0;
    for (size_t i = 0; i < length; i++) written += fr_byte_level_write((unsigned char)text[i], work->written + written);
    return fr_vocabulary_find_in_model(bpe->vocabulary, work->written, written);
}

fr_status fr_bpe_encode(const fr_bpe *bpe, const char *text, size_t length, bool foreign, fr_bpe_work *work,
                        fr_id_list *ids) {
    if (length == 0) return FR_OK;
    FR_TRY(reserve(bpe, work, length));
    work->foreign = foreign;
    int32_t whole = bpe->ignore_merges ? find_whole(bpe, text, length, work) : -1;
    if (allows(bpe, work, whole)) return fr_ids_append(ids, &whole, 1);
    start_symbols(bpe, (fr_text){text, length}, work);
    merge_all(bpe, work);
    if (work->symbol_count == 0) return FR_OK;
    for (int32_t at = 0; at >= 0; at = work->symbols[at].next) FR_TRY(fr_ids_append(ids, &work->symbols[at].id, 1));
    return FR_OK;
}

void fr_bpe_work_free(fr_bpe_work *work) {
    free(work->symbols);
    free(work->heap);
    free(work->written);
    *work = (fr_bpe_work){0};
}
