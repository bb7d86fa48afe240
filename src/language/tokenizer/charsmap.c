/* Reads SentencePiece's map of characters (charsmap.h).
 *
 * The tree is a double array. The unit at index `place` has these bits:
 *
 *   bits 0-7, 31   the byte that leads to the unit; if bit 31 is set, the unit is no node but a value, in bits 0-30
 *   bit 8          the unit has a value, in the unit at index place XOR offset
 *   bit 9          the offset is stored in units of 256
 *   bits 10-30     the offset: a child is at index place XOR offset XOR the byte that leads to the child
 *
 * Aoe 1989, in the layout of the Darts-clone library. */
#include "src/language/tokenizer/charsmap.h"

#include <utf8proc.h>

#include "base/error.h"
#include "base/unicode_versions.h"

#define SMALL_GRAPHEME 6      /* a grapheme with fewer bytes than this is looked up as a whole */
#define ANY_MARK       0x0301 /* in place of each character that is new in Unicode and joins the grapheme before it */

static uint32_t unit_at(const fr_charsmap *map, size_t place) {
    return (uint32_t)fr_little_endian(map->units + 4 * place, 4);
}

static uint32_t offset_of(uint32_t unit) {
    return (unit >> 10 & 0x1FFFFF) << (unit >> 6 & 8);
}

fr_status fr_charsmap_open(fr_charsmap *map, fr_text bytes, const char *where) {
    *map = (fr_charsmap){0};
    uint64_t size = bytes.length < 4 ? UINT64_MAX : fr_little_endian((const uint8_t *)bytes.bytes, 4);
    if (size > bytes.length - 4 || size < 4 || size % 4)
        return fr_fail(FR_INPUT, "%s: the precompiled_charsmap has no tree of whole units", where);
    map->units = (const uint8_t *)bytes.bytes + 4;
    map->count = size / 4;
    map->texts = (fr_text){bytes.bytes + 4 + size, bytes.length - 4 - size};
    return FR_OK;
}

/* Finds the shortest beginning of `text` that is in the tree, and gives the text that replaces it. Returns false if the
 * tree has no beginning of the text. */
static bool find(const fr_charsmap *map, const char *text, size_t length, fr_text *found) {
    size_t place = offset_of(unit_at(map, 0));
    for (size_t i = 0; i < length && text[i]; i++) {
        unsigned char byte = (unsigned char)text[i];
        place ^= byte;
        if (place >= map->count) return false;
        uint32_t unit = unit_at(map, place);
        if ((unit & 0x800000FFu) != byte) return false;
        place ^= offset_of(unit);
        if (!(unit >> 8 & 1)) continue;
        if (place >= map->count) return false;
        size_t begin = unit_at(map, place) & 0x7FFFFFFF;
        if (begin >= map->texts.length) return false;
        const char *bytes = map->texts.bytes + begin;
        *found = (fr_text){bytes, strnlen(bytes, map->texts.length - begin)};
        return true;
    }
    return false;
}

static void rewrite_characters(const fr_charsmap *map, fr_text text, fr_text_buffer *out) {
    const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)text.bytes;
    for (size_t at = 0, step; at < text.length; at += step) {
        utf8proc_int32_t codepoint;
        utf8proc_ssize_t valid = utf8proc_iterate(bytes + at, (utf8proc_ssize_t)(text.length - at), &codepoint);
        fr_text part = {text.bytes + at, step = valid > 0 ? (size_t)valid : 1};
        if (valid > 0) find(map, part.bytes, part.length, &part);
        fr_text_append(out, part.bytes, part.length);
    }
}

/* Gives the length of the grapheme at the beginning of a text. A grapheme always ends before a byte that is not
 * UTF-8. */
static size_t grapheme_length(fr_text text) {
    const utf8proc_uint8_t *bytes = (const utf8proc_uint8_t *)text.bytes;
    utf8proc_int32_t before, codepoint, state = 0;
    utf8proc_ssize_t step = utf8proc_iterate(bytes, (utf8proc_ssize_t)text.length, &before);
    if (step <= 0) return 1;
    for (size_t at = (size_t)step; at < text.length; at += (size_t)step, before = codepoint) {
        step = utf8proc_iterate(bytes + at, (utf8proc_ssize_t)(text.length - at), &codepoint);
        if (step > 0 && (fr_unicode_changes(codepoint) & FR_NEW_JOINING)) codepoint = ANY_MARK;
        if (step <= 0 || utf8proc_grapheme_break_stateful(before, codepoint, &state)) return at;
    }
    return text.length;
}

void fr_charsmap_rewrite(const fr_charsmap *map, fr_text text, fr_text_buffer *out) {
    for (size_t at = 0, step; at < text.length; at += step) {
        fr_text grapheme = {text.bytes + at, text.length - at}, whole;
        grapheme.length = step = grapheme_length(grapheme);
        if (step < SMALL_GRAPHEME && find(map, grapheme.bytes, step, &whole))
            fr_text_append(out, whole.bytes, whole.length);
        else
            rewrite_characters(map, grapheme, out);
    }
}
