/* What a chat template takes, found out by asking it: it is given small conversations, and what it makes of them tells.
 *
 * In: a compiled template, with the variables that it is going to be rendered with. Out: whether its messages may be
 * lists of parts; in which form it wants the arguments of past calls, and whether with a text beside them. A template
 * that takes neither form, or asks for what these conversations don't have, has nothing found out about it, and gets
 * what was given. */
#ifndef FR_SRC_CHAT_PROBE_H
#define FR_SRC_CHAT_PROBE_H

#include "src/jinja/template.h"

typedef struct fr_chat_probe {
    const fr_template *template;
    const json_t *own, *given; /* fr_template_render's; messages don't matter */
    int64_t now;
} fr_chat_probe;

typedef enum fr_arguments_form {
    FR_ARGUMENTS_AS_GIVEN, /* it takes both, or nothing is known */
    FR_ARGUMENTS_MAPPING,
    FR_ARGUMENTS_TEXT,
} fr_arguments_form;

/* Whether it takes texts as the content of such messages, and not lists of parts. */
bool fr_chat_probe_only_text(const fr_chat_probe *probe, const char *role);

fr_arguments_form fr_chat_probe_arguments(const fr_chat_probe *probe);

/* Whether a message with calls has to have a text beside them, if an empty one: it fails without. */
bool fr_chat_probe_wants_text(const fr_chat_probe *probe);

#endif
