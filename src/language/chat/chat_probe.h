/* Finds out which messages a chat template takes by rendering small conversations with it.
 *
 * In: a compiled template, with the variables that it will be rendered with. Out: the roles that it knows, the
 * messages and orders of messages that it takes, the forms in which it reads contents and calls, and whether it shows
 * tools. If a template fails on all of these conversations, nothing is known of it, and it gets the messages as they
 * were given.
 *
 * Answers depend on the template and its variables alone, never on the conversation, so they can be kept
 * (chat_answers.h) and reused. */
#ifndef FR_SRC_LANGUAGE_CHAT_CHAT_PROBE_H
#define FR_SRC_LANGUAGE_CHAT_CHAT_PROBE_H

#include "src/language/chat/chat_answers.h"
#include "src/language/jinja/template.h"

typedef struct fr_chat_probe {
    const fr_template *template;
    const json_t *own, *given; /* the variables of fr_template_render; "messages" among them is ignored */
    int64_t now;
    fr_chat_answers answers; /* answers known so far */
    fr_status status;        /* FR_MEMORY: memory ran out, so an answer is missing and none can be relied on */
    /* true while the probe tests in which form contents are read: messages are then rendered unchanged */
    bool as_given;
} fr_chat_probe;

typedef enum fr_sent_arguments {
    FR_SENT_AS_GIVEN, /* the template takes both forms, or nothing is known */
    FR_SENT_MAPPING,  /* the template takes only an object */
    FR_SENT_TEXT,     /* the template takes only JSON text */
} fr_sent_arguments;

/* Outcomes for a message that a template may not show. */
typedef enum fr_taken {
    FR_TAKEN,   /* the prompt contains the message's text */
    FR_DROPPED, /* the template renders the conversation without the message's text */
    FR_REFUSED, /* the template fails, usually with an exception of its own */
} fr_taken;

/* True if the template renders messages of this role differently from those of an invented role. */
bool fr_chat_probe_knows_role(fr_chat_probe *probe, const char *role);

/* Say which form of content the template shows in messages of this role. fr_chat_probe_only_text: a text, but not a
 * list of parts. fr_chat_probe_only_parts: a list of parts, but not a text. */
bool fr_chat_probe_only_text(fr_chat_probe *probe, const char *role);
bool fr_chat_probe_only_parts(fr_chat_probe *probe, const char *role);

fr_sent_arguments fr_chat_probe_arguments(fr_chat_probe *probe);

/* False if the template shows calls beside a content that is null, but not beside one that is an empty text. */
bool fr_chat_probe_text_beside_calls(fr_chat_probe *probe);

/* True if the prompt shows calls of past turns. */
bool fr_chat_probe_shows_calls(fr_chat_probe *probe);

/* Tells if the template shows the tools in the probe's variables, which must be those of fr_chat_probe_tools. If the
 * template fails even without tools, the answer is FR_TAKEN, because the tools are not the reason then. */
fr_taken fr_chat_probe_takes_tools(fr_chat_probe *probe);

/* Makes a list with one small tool, which stands for any tools; NULL: memory ran out. */
json_t *fr_chat_probe_tools(void);

/* Tell if the template shows a system message at the head, a second one right after it, and one after other turns. */
fr_taken fr_chat_probe_system(fr_chat_probe *probe);
fr_taken fr_chat_probe_second_system(fr_chat_probe *probe);
fr_taken fr_chat_probe_late_system(fr_chat_probe *probe);

/* True if the template takes two messages of this role (the user's or the assistant's) only with a turn of the other
 * role between them. */
bool fr_chat_probe_alternates(fr_chat_probe *probe, const char *role);

/* True if the template takes two calls only in messages of their own, each with its result after it, but not in one
 * message. */
bool fr_chat_probe_one_call(fr_chat_probe *probe);

/* True if the template takes only ids of nine letters and digits, as Mistral's are, but not those that OpenAI's
 * interface makes. */
bool fr_chat_probe_short_ids(fr_chat_probe *probe);

/* True if the template refuses or drops a result whose call is not in the conversation. */
bool fr_chat_probe_refuses_orphans(fr_chat_probe *probe);

#endif
