/* Gives forerun's own chat templates, for checkpoints that have none.
 *
 * In: a vocabulary. Out: the family whose tokens it has, and the template of that family, in Jinja. The templates write
 * turns, pictures, and reasoning if the family reasons. Conversations with tools need the checkpoint's own template. */
#ifndef FR_SRC_LANGUAGE_CHAT_CHAT_FAMILIES_H
#define FR_SRC_LANGUAGE_CHAT_CHAT_FAMILIES_H

#include "src/language/tokenizer/vocabulary.h"

typedef struct fr_chat_family {
    const char *name;
    /* two tokens, such as those that open and close a turn; a vocabulary with both of them belongs to the family */
    const char *tokens[2];
    const char *begin;   /* used as bos_token if the checkpoint names none; "" for none */
    const char *picture; /* the token for a picture; NULL: the family reads no pictures */
    const char *source;
} fr_chat_family;

/* Finds the family to which a vocabulary belongs; NULL: it belongs to no known family. */
const fr_chat_family *fr_chat_family_find(const fr_vocabulary *vocabulary);

#endif
