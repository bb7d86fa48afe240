/* Recognises the special tokens that chat templates write.
 *
 * In: a token's text. Out: its kind, which is FR_TURN_NONE for all other tokens. The text decides, and not the type
 * that a file gives the token, because early converters gave such tokens the type of normal tokens. */
#ifndef FR_FORMATS_TURN_TOKENS_H
#define FR_FORMATS_TURN_TOKENS_H

#include "base/text.h"

typedef enum fr_turn_token {
    FR_TURN_NONE,
    FR_TURN_CONTROL, /* opens or ends a turn or a text, or marks a gap that the model fills in; never printed */
    FR_TURN_SHOWN    /* opens or ends a part of a reply, such as a thought or a call; the parser of replies reads it */
} fr_turn_token;

fr_turn_token fr_turn_token_of(fr_text text);

/* Returns true if a token ends the generated text in every vocabulary that has the token. The list is llama.cpp's: ends
 * of turns, messages and texts, and tokens that pad or separate files when code is filled in. "</s>" is not in the
 * list, because some vocabularies use it for struck-out text. For "</s>" the caller must look at the token's type. */
bool fr_ends_texts(fr_text text);

/* Returns true if a text looks like a special token: <|so|>, <|so> or <so|>. Vocabularies without token types need this
 * function. */
bool fr_looks_like_turn_token(fr_text text);

#endif
