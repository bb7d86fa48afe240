/* Opens the chat templates of a tokenizer: the checkpoint's own, or those of its family.
 *
 * In: the templates in the checkpoint (formats/chat_source.h), and the family that its tokens show. Out: templates
 * ready to render. If a template does not compile, its error line is kept. It is reported only when a chat is rendered,
 * because everything else works without a chat template. */
#ifndef FR_SRC_LANGUAGE_CHAT_CHAT_TEMPLATES_H
#define FR_SRC_LANGUAGE_CHAT_CHAT_TEMPLATES_H

#include <stdatomic.h>

#include "formats/chat_source.h"
#include "src/language/chat/chat_answers.h"
#include "src/language/chat/chat_families.h"
#include "src/language/jinja/template.h"

typedef struct fr_chat_template {
    fr_template *ready;
    char *error; /* the line that says why the template does not compile; NULL: it compiled, or there is no template */
} fr_chat_template;

typedef struct fr_chat_templates {
    fr_chat_template any, tools;  /* tools: the template for conversations with tools, if the checkpoint has one */
    fr_chat_template pictures;    /* the family's template; it is used for pictures if `any` leaves them out */
    const fr_chat_family *family; /* NULL: the family is not known */
    bool built_in;                /* `any` is the family's template */
    char *note;                   /* a line for the user about `any`, or NULL */
    char *picture_note;           /* a line for the user about `pictures`, or NULL */
    fr_kept_answers answers;      /* what was found out about the templates (chat_probe.h) */
    /* bits of chat_turns.h. notes: changes that were made so far; told: changes that were already reported to the
     * caller */
    atomic_uint notes, told;
} fr_chat_templates;

/* Compiles the templates. where: the checkpoint's path, for the notes. */
fr_status fr_chat_templates_open(fr_chat_templates *chat, const fr_chat_sources *sources, const fr_chat_family *family,
                                 const char *where);
void fr_chat_templates_close(fr_chat_templates *chat);

/* Chooses the template for a conversation by its options: `pictures`, `tools` or `any`. */
const fr_chat_template *fr_chat_templates_for(const fr_chat_templates *chat, const json_t *options);

#endif
