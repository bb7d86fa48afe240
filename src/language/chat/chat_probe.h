/* Finds out which messages a chat template accepts by rendering small conversations with it.
 *
 * In: a compiled template, and the variables with which it will be rendered. Out: the roles that the template knows,
 * the messages and orders of messages that it accepts, the forms in which it reads contents and calls, and whether it
 * shows tools. If a template fails on all of these conversations, nothing is known about it, and it gets the messages
 * as they were given.
 *
 * What is found out (an answer) depends only on the template and its variables, and not on the conversation. So answers
 * are kept (chat_answers.h) and reused. */
#ifndef FR_SRC_LANGUAGE_CHAT_CHAT_PROBE_H
#define FR_SRC_LANGUAGE_CHAT_CHAT_PROBE_H

#include "src/language/chat/chat_answers.h"
#include "src/language/jinja/template.h"

typedef struct fr_chat_probe {
    const fr_template *template;
    const json_t *own, *given; /* the variables of fr_template_render; "messages" among them is ignored */
    int64_t now;
    fr_chat_answers answers; /* answers known so far */
    fr_status status;        /* FR_MEMORY: memory ran out, so answers may be missing or wrong */
    /* true while the probe tests in which form the template reads contents; messages are then rendered unchanged */
    bool as_given;
} fr_chat_probe;

typedef enum fr_sent_arguments {
    FR_SENT_AS_GIVEN, /* the template accepts both forms, or nothing is known about it */
    FR_SENT_MAPPING,  /* the template accepts only an object */
    FR_SENT_TEXT,     /* the template accepts only JSON text */
} fr_sent_arguments;

/* The ways in which a template may treat a message. */
typedef enum fr_taken {
    FR_TAKEN,   /* the prompt contains the message's text */
    FR_DROPPED, /* the template renders the conversation without the message's text */
    FR_REFUSED, /* the template fails, usually with an exception of its own */
} fr_taken;

/* Returns true if the template renders messages of this role differently from those of an invented role. */
bool fr_chat_probe_knows_role(fr_chat_probe *probe, const char *role);

/* Return true if the template shows only one form of content in messages of this role. fr_chat_probe_only_text: it
 * shows a text, but not a list of parts. fr_chat_probe_only_parts: it shows a list of parts, but not a text. */
bool fr_chat_probe_only_text(fr_chat_probe *probe, const char *role);
bool fr_chat_probe_only_parts(fr_chat_probe *probe, const char *role);

fr_sent_arguments fr_chat_probe_arguments(fr_chat_probe *probe);

/* Returns false if the template shows the calls of a message only if the message's content is null, and not if the
 * content is an empty text. */
bool fr_chat_probe_text_beside_calls(fr_chat_probe *probe);

/* Returns true if the prompt shows calls of past turns. */
bool fr_chat_probe_shows_calls(fr_chat_probe *probe);

/* Finds out if the template shows the tools in the probe's variables, which must be those of fr_chat_probe_tools. If
 * the template fails even without tools, the answer is FR_TAKEN, because the tools are not the cause of the failure. */
fr_taken fr_chat_probe_takes_tools(fr_chat_probe *probe);

/* Makes a list with one small tool, which is used in place of any tools. NULL: memory ran out. */
json_t *fr_chat_probe_tools(void);

/* Find out if the template shows a system message at the head, a second one right after it, and one after other turns,
 * in this order of the functions. */
fr_taken fr_chat_probe_system(fr_chat_probe *probe);
fr_taken fr_chat_probe_second_system(fr_chat_probe *probe);
fr_taken fr_chat_probe_late_system(fr_chat_probe *probe);

/* Returns true if the template accepts two messages of this role (the user's or the assistant's) only if a turn of the
 * other role is between them. */
bool fr_chat_probe_alternates(fr_chat_probe *probe, const char *role);

/* Returns true if the template accepts two calls only if each is in a message of its own, followed by its result. */
bool fr_chat_probe_one_call(fr_chat_probe *probe);

/* Returns true if the template accepts ids of nine letters and digits, which Mistral's templates require, but not the
 * ids that OpenAI's interface makes. */
bool fr_chat_probe_short_ids(fr_chat_probe *probe);

/* Returns true if the template refuses or drops a result whose call is not in the conversation. */
bool fr_chat_probe_refuses_orphans(fr_chat_probe *probe);

#endif
