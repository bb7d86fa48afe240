/* Gives forerun's own chat templates, for checkpoints that have none.
 *
 * In: a vocabulary. Out: the family whose tokens it has, and the template of that family, in Jinja. The templates know
 * turns, reasoning if the family reasons, and pictures. Conversations with tools need the checkpoint's own
 * template. */
#ifndef FR_SRC_LANGUAGE_CHAT_CHAT_FAMILIES_H
#define FR_SRC_LANGUAGE_CHAT_CHAT_FAMILIES_H

#include "src/language/tokenizer/vocabulary.h"

typedef struct fr_chat_family {
    const char *name;
    /* two tokens, such as those that open and close a turn: a vocabulary that has both is of the family */
    const char *tokens[2];
    const char *begin;   /* used as bos_token if the checkpoint names none; "" for none */
    const char *picture; /* the token that stands for a picture; NULL: the family reads no pictures */
    const char *source;
} fr_chat_family;

/* Finds the family of a vocabulary; NULL: the vocabulary is of no known family. */
const fr_chat_family *fr_chat_family_find(const fr_vocabulary *vocabulary);

#endif
