/* Applies SentencePiece's map of characters, which holds a normalizer's rules, compiled into one table in the model's
 * file.
 *
 * In: the bytes of a precompiled_charsmap,
 *   u32         size of the tree in bytes, little-endian
 *   u32[]       the tree, a double array: see charsmap.c
 *   char[]      texts, with a NUL after each
 * Out: texts rewritten, one grapheme at a time. A grapheme of less than six bytes is first looked up as a whole;
 * otherwise each of its characters is. As in Hugging Face's tokenizers, the shortest beginning that is in the tree
 * decides, and its text replaces the whole grapheme or character. Bytes that are not UTF-8 stay. Any map is safe: no
 * place outside of it is read. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_CHARSMAP_H
#define FR_SRC_LANGUAGE_TOKENIZER_CHARSMAP_H

#include "base/text_buffer.h"
#include "formats/tokenizer_source.h"

typedef struct fr_charsmap {
    const uint8_t *units; /* the tree's units; they lie within the source's bytes */
    size_t count;
    fr_text texts;
} fr_charsmap;

/* Opens a map. bytes: they are not copied, so they must outlive the map. */
fr_status fr_charsmap_open(fr_charsmap *map, fr_text bytes, const char *where);

/* Appends the rewritten text. */
void fr_charsmap_rewrite(const fr_charsmap *map, fr_text text, fr_text_buffer *out);

#endif
