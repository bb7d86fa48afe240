/* SentencePiece's map of characters: what a normalizer that was compiled into a model makes of each.
 *
 * In: the bytes of a precompiled_charsmap,
 *
 *   u32         size of the tree in bytes, little-endian
 *   u32[]       the tree, a double array: see charsmap.c
 *   char[]      texts, a NUL behind each
 *
 * Out: texts rewritten, a grapheme at a time: of one of less than six bytes the whole is looked for first, then each
 * character; the shortest beginning that the tree has decides, as in Hugging Face's tokenizers, and what it stands for
 * takes the place of the whole. Bytes that are no UTF-8 stay. Any map may be given: no place outside it is read. */
#ifndef FR_SRC_LANGUAGE_TOKENIZER_CHARSMAP_H
#define FR_SRC_LANGUAGE_TOKENIZER_CHARSMAP_H

#include "base/text_buffer.h"
#include "formats/tokenizer_source.h"

typedef struct fr_charsmap {
    const uint8_t *units; /* in the source's bytes */
    size_t count;
    fr_text texts;
} fr_charsmap;

/* bytes: kept, not copied. */
fr_status fr_charsmap_open(fr_charsmap *map, fr_text bytes, const char *where);

/* Appends what a text becomes. */
void fr_charsmap_rewrite(const fr_charsmap *map, fr_text text, fr_text_buffer *out);

#endif
