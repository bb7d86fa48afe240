/* The chat templates of a tokenizer: the checkpoint's own, or its family's.
 *
 * In: what the checkpoint carries (formats/chat_source.h) and the family its tokens tell. Out: templates ready to
 * render. One that does not compile is kept with the line that says why, for whoever asks for a chat: for everything
 * else a model is as good without. */
#ifndef FR_SRC_LANGUAGE_CHAT_CHAT_TEMPLATES_H
#define FR_SRC_LANGUAGE_CHAT_CHAT_TEMPLATES_H

#include <stdatomic.h>

#include "formats/chat_source.h"
#include "src/language/chat/chat_answers.h"
#include "src/language/chat/chat_families.h"
#include "src/language/jinja/template.h"

typedef struct fr_chat_template {
    fr_template *ready;
    char *error; /* NULL: there is one that is ready, or none */
} fr_chat_template;

typedef struct fr_chat_templates {
    fr_chat_template any, tools;  /* tools: for conversations with tools, where they have one of their own */
    fr_chat_template pictures;    /* the family's, where `any` leaves pictures out */
    const fr_chat_family *family; /* NULL: none is known */
    bool built_in;                /* `any` is the family's */
    char *note;                   /* what is worth saying about `any`, or NULL */
    char *picture_note;           /* and about `pictures` */
    fr_kept_answers answers;      /* given when the templates were asked about messages */
    atomic_uint notes, told;      /* bits of chat_turns.h: changes made, and those whose line was given */
} fr_chat_templates;

/* where: the checkpoint, for the note. */
fr_status fr_chat_templates_open(fr_chat_templates *chat, const fr_chat_sources *sources, const fr_chat_family *family,
                                 const char *where);
void fr_chat_templates_close(fr_chat_templates *chat);

/* Which one is for a conversation, by the tools and pictures among its options. */
const fr_chat_template *fr_chat_templates_for(const fr_chat_templates *chat, const json_t *options);

#endif
