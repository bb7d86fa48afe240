/* Recognises the tokens that chat templates write.
 *
 * It goes by the texts of the tokens, because early converters typed them as ordinary ones. In: a token's text. Out:
 * its kind, FR_TURN_NONE for all other tokens. */
#ifndef FR_FORMATS_TURN_TOKENS_H
#define FR_FORMATS_TURN_TOKENS_H

#include "base/text.h"

typedef enum fr_turn_token {
    FR_TURN_NONE,
    FR_TURN_CONTROL, /* opens or ends a turn or a text, or marks a gap to fill in one: never printed */
    FR_TURN_SHOWN    /* opens or ends a part of a reply, a thought or a call: the parser of replies reads it */
} fr_turn_token;

fr_turn_token fr_turn_token_of(fr_text text);

/* True if a token ends the generated text in every vocabulary that has it. This is llama.cpp's list of ends of turns,
 * messages and texts, and of tokens that pad or separate files when code is filled in. "</s>" is not in it, because
 * some vocabularies have it for struck out text; there the list of types decides. */
bool fr_ends_texts(fr_text text);

/* True if a text looks like one of them, <|so|>, <|so> or <so|>. Vocabularies without token types need this. */
bool fr_looks_like_turn_token(fr_text text);

#endif
