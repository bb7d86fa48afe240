/* A text in the ids of another vocabulary, kept along with a timeline that grows and is cut.
 *
 * In: a timeline's ids, and the tokenizers of both vocabularies. Out: the other's ids of the same text, of which as few
 * change as the text asks for; and ids the other way, of what a drafter says behind it.
 *
 * What a token is printed as inside a text counts, byte by byte; both vocabularies' ids end at offsets of that text. As
 * it grows the other's newest ids may be wrong (" hel" of what becomes " hello"): they are made anew, from a border
 * between words. What has no bytes of its own, control tokens and ids of no token, counts as one, and is the other's
 * token of the same text where there is one; else its text is spelt out. Where a text is not what the other makes of it
 * (it folds letters, or has no token for one) the ids of the whole stretch count as one token.
 *
 * A text longer than there is room for loses its first half. Tokenizing takes memory from the heap, of the size of what
 * is new. */
#ifndef FR_SRC_ENGINE_DRAFT_SAME_TEXT_H
#define FR_SRC_ENGINE_DRAFT_SAME_TEXT_H

#include "base/arena.h"
#include "src/language/tokenizer/tokenizer.h"

typedef struct fr_same_text {
    const fr_tokenizer *from, *to; /* the timeline's, the other's */
    size_t context;                /* ids of a timeline */
    size_t *from_ends;             /* [context] where each of the timeline's ids ends in the text */
    size_t origin, known;          /* of the timeline's ids [origin, known) the text is */
    size_t room;
    int32_t *ids;                  /* [room] the other's */
    size_t *ends;                  /* [room] where they end; of several that count as one token, the same */
    size_t count;
    size_t begin;                  /* so many begin every text, whatever it says */
    size_t stands;                 /* ids before it have not changed since the owner last set it */
    char *bytes;                   /* a stretch of the text */
} fr_same_text;

/* Ids of the other vocabulary that a timeline of so many may take. */
size_t fr_same_text_room(size_t context);

/* Takes its memory, or measures it; tokenizers NULL while measuring. */
void fr_same_text_layout(fr_same_text *text, fr_arena *arena, const fr_tokenizer *from, const fr_tokenizer *to,
                         size_t context);

/* The timeline has been cut: ids before `told` are as they were. */
void fr_same_text_cut(fr_same_text *text, size_t told);

/* Becomes the text of a timeline, of which ids before `told` are as they were. False, and no text at all: there is none
 * that fits, or no memory. */
bool fr_same_text_follow(fr_same_text *text, const int32_t *ids, size_t length, size_t told);

/* Ids of the other vocabulary said behind the text, as ids of the timeline's: at most `most`, up to the first that is
 * no text or not what the text says. */
size_t fr_same_text_back(fr_same_text *text, const int32_t *said, size_t count, int32_t *ids, size_t most);

/* Makes a text that has been laid out alike what another is. */
void fr_same_text_become(fr_same_text *text, const fr_same_text *of);

#endif
