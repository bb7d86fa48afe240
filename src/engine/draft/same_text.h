/* A text in the ids of another vocabulary, kept along with a timeline that grows and is cut.
 *
 * In: a timeline's ids, and the tokenizers of both vocabularies. Out: the other vocabulary's ids of the same text, of
 * which as few as possible change when the text grows; and, in the other direction, the timeline's ids for a drafter's
 * continuation.
 *
 * The text is the bytes that its tokens print; both vocabularies' ids end at offsets of it. As the text grows, the
 * other vocabulary's newest ids may become wrong, such as " hel" when the word becomes " hello". So they are tokenized
 * again from the beginning of a word. A token without bytes of its own, a control token or an id of no token, counts
 * as one byte. It becomes the other vocabulary's token with the same name if there is one; otherwise its name is
 * tokenized as text. The other vocabulary may not be able to print a part of the text unchanged, because it folds
 * letters or has no token for one. All ids of that part then count as one token.
 *
 * If a text is too long for its room, its first half is dropped. Tokenizing takes memory from the heap, in proportion
 * to the new text. */
#ifndef FR_SRC_ENGINE_DRAFT_SAME_TEXT_H
#define FR_SRC_ENGINE_DRAFT_SAME_TEXT_H

#include "base/arena.h"
#include "src/language/tokenizer/tokenizer.h"

typedef struct fr_same_text {
    const fr_tokenizer *from, *to; /* from: tokenizer of the timeline's ids; to: tokenizer of the other vocabulary */
    size_t context;                /* the most ids of a timeline */
    size_t *from_ends;             /* [context] the offsets at which the timeline's ids end in the text */
    size_t origin, known;          /* the text is that of the timeline's ids [origin, known) */
    size_t room;
    int32_t *ids; /* [room] the other vocabulary's ids */
    size_t *ends; /* [room] the offset at which each entry of `ids` ends; ids that count as one token have the same
                   * offset */
    size_t count;
    size_t begin;  /* the number of ids with which every text begins */
    size_t stands; /* ids before this index have not changed since the owner last set it */
    char *bytes;   /* room for a part of the text */
} fr_same_text;

/* Gives the room for the other vocabulary's ids of a timeline of this length. */
size_t fr_same_text_room(size_t context);

/* Takes the memory of a text from the arena. If that is a measuring arena (base/arena.h), the tokenizers are NULL. */
void fr_same_text_layout(fr_same_text *text, fr_arena *arena, const fr_tokenizer *from, const fr_tokenizer *to,
                         size_t context);

/* Cuts the text after the timeline was cut: only the part of the timeline's ids before `told` is unchanged. */
void fr_same_text_cut(fr_same_text *text, size_t told);

/* Changes the text to that of this timeline, of which the ids before `told` are as in the last call. Returns false if
 * no part of the text fits, or if there is no memory; the text is then empty. */
bool fr_same_text_follow(fr_same_text *text, const int32_t *ids, size_t length, size_t told);

/* Translates ids of the other vocabulary into the timeline's ids; they must continue the text. Gives at most `most`
 * ids. Stops before the first id that prints no text or that has no exact translation. */
size_t fr_same_text_back(fr_same_text *text, const int32_t *said, size_t count, int32_t *ids, size_t most);

/* Copies a text into another one that was laid out with the same sizes. */
void fr_same_text_become(fr_same_text *text, const fr_same_text *of);

#endif
