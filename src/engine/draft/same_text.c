/* Keeps a text in the ids of a second vocabulary: see same_text.h. */
#include "src/engine/draft/same_text.h"

#include <string.h>

#include "base/error.h"
#include "base/sizes.h"
#include "src/language/tokenizer/tokenizer_parts.h"

/* STRETCH: number of bytes that are tokenized at a time. ANCHOR: bytes of memory that are reserved before these
 * bytes. */
enum { STRETCH = 4096, ANCHOR = 1 };

/* When the text grows, some of its newest ids are tokenized again. Their number is at least AGAIN. It is up to
 * AGAIN_MAX if the beginning of a word can be reached in this way. */
enum { AGAIN = 3, AGAIN_MAX = 16 };

typedef struct stretch {
    const char *bytes;
    size_t length;
} stretch;

/* ----------------------------------------------------------------------------------------------------------- tokens */

/* Returns true if the token prints nothing. Here such tokens are called marks. */
static bool is_mark(const fr_tokenizer *tokenizer, int32_t id) {
    fr_token_kind kind = fr_token_kind_of(tokenizer, id);
    return kind == FR_TOKEN_CONTROL || kind == FR_TOKEN_UNKNOWN || kind == FR_TOKEN_NONE;
}

static stretch printed(const fr_tokenizer *tokenizer, int32_t id) {
    stretch s;
    s.bytes = fr_tokenizer_printed(tokenizer, id, &s.length);
    return s;
}

static size_t length_of(const fr_tokenizer *tokenizer, int32_t id) {
    return is_mark(tokenizer, id) ? 1 : printed(tokenizer, id).length;
}

/* Returns the number k for which the last k ids print exactly `length` bytes together. Returns 0 if there is no such
 * number. */
static size_t printing(const fr_tokenizer *tokenizer, const int32_t *ids, size_t count, size_t length) {
    size_t bytes = 0, taken = 0;
    while (taken < count && bytes < length) bytes += printed(tokenizer, ids[count - ++taken]).length;
    return bytes == length ? taken : 0;
}

/* Tokenizes a part of a text. Some tokenizers put a space before a text, which must not happen within a text. With such
 * a tokenizer, the part is tokenized after a line break, and the line break's ids are left out. *first: index of the
 * first id after those of the line break. `text` has ANCHOR bytes of memory before it. */
static fr_status tokenize_inside(const fr_tokenizer *tokenizer, char *text, size_t length, int32_t **ids, size_t *first,
                                 size_t *count) {
    *first = 0;
    FR_TRY(fr_tokenize(tokenizer, text, length, false, false, ids, count));
    if (printing(tokenizer, *ids, *count, length) == *count) return FR_OK;
    size_t plain = *count, inside;
    int32_t *anchored;
    text[-1] = '\n';
    fr_status status = fr_tokenize(tokenizer, text - 1, length + 1, false, false, &anchored, count);
    if (status != FR_OK) {
        fr_free(*ids);
        return status;
    }
    inside = printing(tokenizer, anchored, *count, length);
    fr_free(inside ? *ids : anchored);
    if (inside) *ids = anchored;
    *first = inside ? *count - inside : 0;
    *count = inside ? *count : plain;
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------- ends */

static size_t start_of_text(const fr_same_text *t) {
    return t->origin ? t->from_ends[t->origin - 1] : 0;
}

static size_t end_of_text(const fr_same_text *t) {
    return t->known ? t->from_ends[t->known - 1] : 0;
}

/* Gives the offset in the text at which the last id of the other vocabulary ends. */
static size_t reached(const fr_same_text *t) {
    return t->count > t->begin ? t->ends[t->count - 1] : start_of_text(t);
}

/* Finds the id of the timeline to which the byte at an offset belongs, and gives the id's index. */
static size_t id_at(const fr_same_text *t, size_t offset) {
    size_t low = t->origin, high = t->known;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (t->from_ends[middle] > offset)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static size_t start_of(const fr_same_text *t, size_t id) {
    return id ? t->from_ends[id - 1] : 0;
}

/* -------------------------------------------------------------------------------------- ids of the other vocabulary */

static bool append(fr_same_text *t, int32_t id, size_t end) {
    if (t->count == t->room) return false;
    if (t->count < t->stands && t->ids[t->count] != id) t->stands = t->count;
    t->ids[t->count] = id;
    t->ends[t->count++] = end;
    return true;
}

/* Appends the other vocabulary's ids for the part of the text that ends at `end`. If these ids don't print exactly this
 * part, all of them count as one token. */
static bool append_stretch(fr_same_text *t, char *bytes, size_t length, size_t end) {
    int32_t *ids;
    size_t first, count, at = 0;
    bool room = true;
    fr_status status = tokenize_inside(t->to, bytes, length, &ids, &first, &count);
    if (fr_failure_keep(status).status != FR_OK) return false;
    bool same = printing(t->to, ids + first, count - first, length) == count - first;
    for (size_t i = first; i < count && same; at += printed(t->to, ids[i++]).length)
        same = memcmp(printed(t->to, ids[i]).bytes, bytes + at, printed(t->to, ids[i]).length) == 0;
    at = end - length;
    for (size_t i = first; i < count && room; i++) {
        at += printed(t->to, ids[i]).length;
        room = append(t, ids[i], same ? at : end);
    }
    fr_free(ids);
    return room;
}

/* Gives the other vocabulary's token for a mark (a token that prints nothing), or -1 if there is none. The end of a
 * text is a mark in both vocabularies. */
static int32_t same_mark(const fr_same_text *t, int32_t id) {
    const char *text = fr_token_text(t->from, id, NULL);
    int32_t same = text ? fr_tokenizer_id(t->to, text) : -1;
    if (same < 0 && id == fr_tokenizer_eos(t->from)) same = fr_tokenizer_eos(t->to);
    return same >= 0 && is_mark(t->to, same) ? same : -1;
}

static bool append_mark(fr_same_text *t, int32_t id, size_t end) {
    stretch text = printed(t->from, id);
    int32_t same = same_mark(t, id);
    bool begins = id == fr_tokenizer_bos(t->from);
    /* the list already begins with the other vocabulary's token for the beginning of a text */
    if (begins && t->begin && t->count == t->begin) return true;
    if (same >= 0) return append(t, same, end);
    if (begins || text.length == 0 || text.length > STRETCH) return true;
    memcpy(t->bytes + ANCHOR, text.bytes, text.length);
    size_t at = t->count;
    bool room = append_stretch(t, t->bytes + ANCHOR, text.length, end);
    for (; at < t->count; at++) t->ends[at] = end;
    return room;
}

/* Appends the mark at an offset, or if there is text, the text up to the next mark. Moves the offset to the end of
 * that. */
static bool append_next(fr_same_text *t, const int32_t *ids, size_t *offset) {
    size_t id = id_at(t, *offset), length = 0;
    if (is_mark(t->from, ids[id])) return append_mark(t, ids[id], *offset = t->from_ends[id]);
    for (; id < t->known && length < STRETCH && !is_mark(t->from, ids[id]); id++) {
        stretch text = printed(t->from, ids[id]);
        size_t skipped = *offset + length - start_of(t, id);
        size_t taken = fr_smaller(text.length - skipped, STRETCH - length);
        memcpy(t->bytes + ANCHOR + length, text.bytes + skipped, taken);
        length += taken;
    }
    return append_stretch(t, t->bytes + ANCHOR, length, *offset += length);
}

/* -------------------------------------------------------------------------------------------------- growth and cuts */

static void begin_at(fr_same_text *t, size_t origin) {
    t->origin = t->known = origin;
    t->count = t->begin;
    for (size_t i = 0; i < t->begin; i++) t->ends[i] = start_of_text(t);
}

/* Drops the other vocabulary's ids for the text after the timeline's first `told` ids. Ids that count as one token are
 * dropped together. */
static void forget(fr_same_text *t, size_t told) {
    if (told >= t->known) return;
    if (told <= t->origin) begin_at(t, 0);
    t->known = fr_smaller(t->known, told);
    while (t->count > t->begin && t->ends[t->count - 1] > end_of_text(t)) t->count--;
}

void fr_same_text_cut(fr_same_text *t, size_t told) {
    forget(t, told);
    t->stands = fr_smaller(t->stands, t->count);
}

/* Drops the newest ids, back to the beginning of a word, because text that follows may change how they are
 * tokenized. */
static void go_back(fr_same_text *t) {
    bool word = false, border = true;
    for (size_t gone = 0; t->count > t->begin; gone++) {
        if (border && (gone >= AGAIN_MAX || (gone >= AGAIN && word))) return;
        stretch text = printed(t->to, t->ids[--t->count]);
        word = text.length == 0 || *text.bytes == ' ' || *text.bytes == '\n' || is_mark(t->to, t->ids[t->count]);
        border = t->count == t->begin || t->ends[t->count - 1] < t->ends[t->count];
    }
}

static void measure(fr_same_text *t, const int32_t *ids, size_t length) {
    for (; t->known < length; t->known++)
        t->from_ends[t->known] = start_of(t, t->known) + length_of(t->from, ids[t->known]);
}

static bool extend(fr_same_text *t, const int32_t *ids, size_t length) {
    measure(t, ids, length);
    go_back(t);
    for (size_t offset = reached(t); offset < end_of_text(t);)
        if (!append_next(t, ids, &offset)) return false;
    return true;
}

bool fr_same_text_follow(fr_same_text *t, const int32_t *ids, size_t length, size_t told) {
    bool fits = false;
    forget(t, told);
    for (size_t half = 1; half; begin_at(t, t->origin + half)) {
        fits = extend(t, ids, length);
        half = fits ? 0 : (length - t->origin) / 2;
        if (half == 0) break;
    }
    if (!fits) begin_at(t, 0);
    t->stands = fr_smaller(t->stands, t->count);
    return fits;
}

size_t fr_same_text_back(fr_same_text *t, const int32_t *said, size_t count, int32_t *ids, size_t most) {
    char *bytes = t->bytes + ANCHOR;
    size_t length = 0, first, made, taken = 0;
    int32_t *all;
    for (size_t i = 0; i < count && !is_mark(t->to, said[i]); i++) {
        stretch text = printed(t->to, said[i]);
        if (text.length > STRETCH - length) break;
        memcpy(bytes + length, text.bytes, text.length);
        length += text.length;
    }
    if (length == 0) return 0;
    if (fr_failure_keep(tokenize_inside(t->from, bytes, length, &all, &first, &made)).status != FR_OK) return 0;
    for (size_t i = first, at = 0; i < made && taken < most; i++) {
        stretch text = printed(t->from, all[i]);
        if (is_mark(t->from, all[i]) || text.length > length - at || memcmp(text.bytes, bytes + at, text.length) != 0)
            break;
        ids[taken++] = all[i];
        at += text.length;
    }
    fr_free(all);
    return taken;
}

/* ------------------------------------------------------------------------------------------------------------- open */

size_t fr_same_text_room(size_t context) {
    return context + context / 2 + STRETCH / 16;
}

/* Begins the text with the ids that the other vocabulary's post-processor puts before every text. */
static void put_begin(fr_same_text *t) {
    t->begin = fr_smaller(t->to->prefix_count, t->room);
    memcpy(t->ids, t->to->prefix, t->begin * sizeof *t->ids);
    begin_at(t, 0);
}

void fr_same_text_layout(fr_same_text *t, fr_arena *arena, const fr_tokenizer *from, const fr_tokenizer *to,
                         size_t context) {
    *t = (fr_same_text){.from = from, .to = to, .context = context, .room = fr_same_text_room(context)};
    t->from_ends = fr_arena_take(arena, context, sizeof *t->from_ends);
    t->ids = fr_arena_take(arena, t->room, sizeof *t->ids);
    t->ends = fr_arena_take(arena, t->room, sizeof *t->ends);
    t->bytes = fr_arena_take(arena, ANCHOR + STRETCH, 1);
    if (to && t->bytes && !arena->overflow) put_begin(t);
}

void fr_same_text_become(fr_same_text *t, const fr_same_text *of) {
    t->origin = of->origin;
    t->known = of->known;
    t->count = of->count;
    t->stands = of->stands;
    memcpy(t->from_ends, of->from_ends, of->known * sizeof *t->from_ends);
    memcpy(t->ids, of->ids, of->count * sizeof *t->ids);
    memcpy(t->ends, of->ends, of->count * sizeof *t->ends);
}
