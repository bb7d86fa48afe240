/* A text in the ids of another vocabulary, kept along with a timeline that grows and is cut.
 *
 * In: a timeline's ids, and the tokenizers of both vocabularies. Out: the other's ids of the same text, of which as
 * few change as possible when the text grows; and, the other way, the timeline's ids for a drafter's continuation.
 *
 * The text is the bytes that its tokens print; both vocabularies' ids end at offsets of it. As it grows, the other's
 * newest ids may become wrong (" hel", when the word becomes " hello"), so they are made anew from a border between
 * words. A token without bytes of its own, a control token or an id of no token, counts as one byte. It becomes the
 * other's token of the same text if there is one; otherwise its text is spelt out. If the other's ids don't print a
 * stretch as it is (the other folds letters, or has no token for one), all ids of the stretch count as one token.
 *
 * A text that is too long for the room loses its first half. Tokenizing takes memory from the heap, in proportion to
 * the new text. */
#ifndef FR_SRC_ENGINE_DRAFT_SAME_TEXT_H
#define FR_SRC_ENGINE_DRAFT_SAME_TEXT_H

#include "base/arena.h"
#include "src/language/tokenizer/tokenizer.h"

typedef struct fr_same_text {
    const fr_tokenizer *from, *to; /* the timeline's tokenizer, the other's */
    size_t context;                /* ids of a timeline */
    size_t *from_ends;             /* [context] the offsets at which the timeline's ids end in the text */
    size_t origin, known;          /* the text is that of the timeline's ids [origin, known) */
    size_t room;
    int32_t *ids; /* [room] the other's ids */
    size_t *ends; /* [room] the offsets at which they end; ids that count as one token have the same */
    size_t count;
    size_t begin;  /* the number of ids with which every text begins */
    size_t stands; /* ids before it have not changed since the owner last set it */
    char *bytes;   /* a stretch of the text */
} fr_same_text;

/* Gives the room for the other's ids of a timeline of this length. */
size_t fr_same_text_room(size_t context);

/* Takes its memory, or measures it; tokenizers NULL while measuring. */
void fr_same_text_layout(fr_same_text *text, fr_arena *arena, const fr_tokenizer *from, const fr_tokenizer *to,
                         size_t context);

/* Cuts the text after the timeline has been cut: ids before `told` are as they were. */
void fr_same_text_cut(fr_same_text *text, size_t told);

/* Makes the text that of a timeline, whose ids before `told` are as they were. Returns false if no part of it fits, or
 * if there is no memory; then the text is empty. */
bool fr_same_text_follow(fr_same_text *text, const int32_t *ids, size_t length, size_t told);

/* Translates ids of the other vocabulary, said after the text, into the timeline's: at most `most`, up to the first
 * that is no text or not the text that was said. */
size_t fr_same_text_back(fr_same_text *text, const int32_t *said, size_t count, int32_t *ids, size_t most);

/* Copies a text into another one that was laid out alike. */
void fr_same_text_become(fr_same_text *text, const fr_same_text *of);

#endif
