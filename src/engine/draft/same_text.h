/* Keeps the text of a timeline in the ids of another vocabulary, while the timeline grows and is cut.
 *
 * In: a timeline's ids, and the tokenizers of both vocabularies. Out: the other vocabulary's ids of the same text, of
 * which as few as possible change when the text grows. In the other direction: the timeline's ids for the ids with
 * which a drafter continues the text.
 *
 * The text is the bytes that the timeline's tokens print. The ids of both vocabularies end at offsets of this text.
 * When the text grows, the other vocabulary's newest ids may become wrong, for example " hel" when the word becomes "
 * hello". So the newest ids are tokenized again from the beginning of a word. A token without bytes of its own (a
 * control token, or an id that is no token) counts as one byte of the text. It becomes the other vocabulary's token
 * with the same name. If there is no such token, its name is tokenized as text. The other vocabulary may not be able to
 * print a part of the text unchanged, because it folds letters or has no token for a letter. All ids of that part then
 * count as one token.
 *
 * If a text is too long for its memory, its first half is dropped. Tokenizing takes memory from the heap, in proportion
 * to the new text. */
#ifndef FR_SRC_ENGINE_DRAFT_SAME_TEXT_H
#define FR_SRC_ENGINE_DRAFT_SAME_TEXT_H

#include "base/arena.h"
#include "src/language/tokenizer/tokenizer.h"

typedef struct fr_same_text {
    const fr_tokenizer *from, *to; /* from: tokenizer of the timeline's ids; to: tokenizer of the other vocabulary */
    size_t context;                /* the most ids of a timeline */
    size_t *from_ends;             /* [context] for each id of the timeline, the offset in the text at which it ends */
    size_t origin, known;          /* the text is that of the timeline's ids [origin, known) */
    size_t room;
    int32_t *ids; /* [room] the other vocabulary's ids */
    size_t *ends; /* [room] for each id in `ids`, the offset in the text at which it ends; ids that count as one token
                   * have the same offset */
    size_t count;
    size_t begin;  /* number of ids with which every text begins in the other vocabulary */
    size_t stands; /* ids before this index have not changed since the owner last set it */
    char *bytes;   /* memory for a part of the text */
} fr_same_text;

/* Gives the number of the other vocabulary's ids for which memory is needed if a timeline has this length. */
size_t fr_same_text_room(size_t context);

/* Takes the memory of a text from the arena. If that is a measuring arena (base/arena.h), the tokenizers are NULL. */
void fr_same_text_layout(fr_same_text *text, fr_arena *arena, const fr_tokenizer *from, const fr_tokenizer *to,
                         size_t context);

/* Cuts the text after the timeline was cut. told: number of the timeline's first ids that are unchanged. */
void fr_same_text_cut(fr_same_text *text, size_t told);

/* Changes the text to the text of this timeline. told: number of the timeline's first ids that are the same as in the
 * last call. Returns false if no part of the text fits, or if there is no memory; the text is then empty. */
bool fr_same_text_follow(fr_same_text *text, const int32_t *ids, size_t length, size_t told);

/* Translates ids of the other vocabulary, which continue the text, into the timeline's ids. Gives at most `most` ids.
 * Stops before the first id that prints no text or that has no exact translation. */
size_t fr_same_text_back(fr_same_text *text, const int32_t *said, size_t count, int32_t *ids, size_t most);

/* Copies one text to another. Both must have been laid out with the same sizes. */
void fr_same_text_become(fr_same_text *text, const fr_same_text *of);

#endif
