/* Finds out which messages a chat template takes by rendering small conversations with it.
 *
 * In: a compiled template, with the variables that it is going to be rendered with. Out: which roles it knows, which
 * messages it takes and in which order, in which form it reads contents and calls, and if it has a place for tools. A
 * template that fails on all of them stays unknown, and gets the messages as they were given.
 *
 * Answers depend on the template and its variables alone, never on the conversation, so they can be kept
 * (chat_answers.h) and asked for again. */
#ifndef FR_SRC_LANGUAGE_CHAT_CHAT_PROBE_H
#define FR_SRC_LANGUAGE_CHAT_CHAT_PROBE_H

#include "src/language/chat/chat_answers.h"
#include "src/language/jinja/template.h"

typedef struct fr_chat_probe {
    const fr_template *template;
    const json_t *own, *given; /* fr_template_render's; messages don't matter */
    int64_t now;
    fr_chat_answers answers; /* answers known so far */
    fr_status status;        /* FR_MEMORY: an answer is missing because memory ran out, and none can be relied on */
    bool as_given;           /* set while it finds out in which form contents are read */
} fr_chat_probe;

typedef enum fr_sent_arguments {
    FR_SENT_AS_GIVEN, /* it takes both, or nothing is known */
    FR_SENT_MAPPING,
    FR_SENT_TEXT,
} fr_sent_arguments;

/* Outcomes for a message for which a template may have no place. */
typedef enum fr_taken {
    FR_TAKEN,   /* its text is in the prompt */
    FR_DROPPED, /* the template goes on without its text */
    FR_REFUSED, /* the template fails, as its exception says */
} fr_taken;

/* True if messages of this role are rendered differently from those of a role that no template has. */
bool fr_chat_probe_knows_role(fr_chat_probe *probe, const char *role);

/* True if it takes texts as the content of such messages, and not lists of parts; then the other way round: it reads
 * the parts of a list, and loses a text. */
bool fr_chat_probe_only_text(fr_chat_probe *probe, const char *role);
bool fr_chat_probe_only_parts(fr_chat_probe *probe, const char *role);

fr_sent_arguments fr_chat_probe_arguments(fr_chat_probe *probe);

/* True unless it shows calls only if the content beside them is null. */
bool fr_chat_probe_text_beside_calls(fr_chat_probe *probe);

/* True if the prompt shows calls of past turns. */
bool fr_chat_probe_shows_calls(fr_chat_probe *probe);

/* Outcome for the tools among its variables, which must be those of fr_chat_probe_tools. FR_TAKEN also if the template
 * fails without tools too, as they are not the reason then. */
fr_taken fr_chat_probe_takes_tools(fr_chat_probe *probe);

/* Makes a list of one small tool, which stands for any others; NULL: memory ran out. */
json_t *fr_chat_probe_tools(void);

/* Outcomes for a system message at the head, for a second one after it, and for one after other turns. */
fr_taken fr_chat_probe_system(fr_chat_probe *probe);
fr_taken fr_chat_probe_second_system(fr_chat_probe *probe);
fr_taken fr_chat_probe_late_system(fr_chat_probe *probe);

/* True if two messages in a row of this role, the user's or the assistant's, are refused or left out, but taken with a
 * turn of the other role between them. */
bool fr_chat_probe_alternates(fr_chat_probe *probe, const char *role);

/* True if one of two calls in a message is refused or left out, but both are taken as turns of their own, each with its
 * result after it. */
bool fr_chat_probe_one_call(fr_chat_probe *probe);

#endif
