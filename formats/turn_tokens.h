/* Tokens that chat templates write, known by their texts: files of early converters have them typed as ordinary ones.
 *
 * In: a token's text. Out: whether it is such, and of which kind. */
#ifndef FR_FORMATS_TURN_TOKENS_H
#define FR_FORMATS_TURN_TOKENS_H

#include "base/text.h"

typedef enum fr_turn_token {
    FR_TURN_NONE,
    FR_TURN_CONTROL, /* opens or ends a turn, or a text, or stands for a hole in one: not to be printed */
    FR_TURN_SHOWN    /* opens or ends what a reply has in it, a thought or a call: its parser reads it */
} fr_turn_token;

fr_turn_token fr_turn_token_of(fr_text text);

/* Whether a token ends what is generated wherever a vocabulary has it: llama.cpp's list of ends of turns, of messages
 * and of texts, and of what pads or parts files in code that is filled in. "</s>" is none of them: some have it for
 * struck out text, and then a list of types tells. */
bool fr_ends_texts(fr_text text);

/* Whether a text looks like one of them, <|so|>, <|so> or <so|>: for vocabularies that say nothing of their tokens. */
bool fr_looks_like_turn_token(fr_text text);

#endif
