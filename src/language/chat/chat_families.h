/* Chat templates of forerun's own, for checkpoints that carry none.
 *
 * In: a vocabulary. Out: the family whose tokens it has, and that family's template, in Jinja. They know turns,
 * thinking where the family thinks, and pictures; conversations with tools want the checkpoint's own. */
#ifndef FR_SRC_LANGUAGE_CHAT_CHAT_FAMILIES_H
#define FR_SRC_LANGUAGE_CHAT_CHAT_FAMILIES_H

#include "src/language/tokenizer/vocabulary.h"

typedef struct fr_chat_family {
    const char *name;
    const char *tokens[2]; /* by which it is recognized: those that open and close a turn, say */
    const char *begin;     /* bos_token where the checkpoint names none; "" for none */
    const char *picture;   /* the token that stands for one; NULL: the family sees none */
    const char *source;
} fr_chat_family;

/* NULL: none is known. */
const fr_chat_family *fr_chat_family_find(const fr_vocabulary *vocabulary);

#endif
