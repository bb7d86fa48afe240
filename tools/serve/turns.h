/* A chat's body put together from the pieces in which another API has a conversation.
 *
 * In: texts, pictures, calls and their results, one after the other. Out: the body of a request to
 * /v1/chat/completions, or a line that says why it can't be one. Values are shared, not copied. */
#ifndef FR_TOOLS_SERVE_TURNS_H
#define FR_TOOLS_SERVE_TURNS_H

#include <jansson.h>
#include <stdbool.h>

typedef struct fr_turns {
    json_t *chat;     /* the body */
    json_t *messages; /* of it */
    json_t *message;  /* which pieces go to; NULL: the next one begins a message */
    json_t *parts;    /* of it that are its content */
    char error[320];  /* "": all is well */
} fr_turns;

/* The beginning of the "encrypted_content" of a thought, which a client sends back. */
#define FR_SEALED "forerun:"

/* For who reads such a conversation: a member that is there and not null, or NULL; what a value says that its type is,
 * "" if nothing; and the same value once more, for who keeps it. */
const json_t *fr_turns_get(const json_t *object, const char *key);
const char *fr_turns_type(const json_t *value);
json_t *fr_turns_share(const json_t *value);

/* A chat with those members of the body that mean the same there: how tokens are drawn and drafted, the model's name,
 * whether it is a stream. */
void fr_turns_begin(fr_turns *turns, const json_t *body);

/* Says once (notes.h) of each member of the body that it is not known at this path: it is neither one of these nor one
 * that means the same in a chat. */
void fr_turns_note_others(const json_t *body, const char *path, const char *const *known, size_t count);

/* The body; NULL: it was refused. */
json_t *fr_turns_end(fr_turns *turns);

/* False. */
bool fr_turns_refuse(fr_turns *turns, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A member of the chat: a new value. */
void fr_turns_put(fr_turns *turns, const char *key, json_t *value);

/* The next piece begins a message of its own. */
void fr_turns_break(fr_turns *turns);

/* Pieces of a message of this role, which begins with them or goes on. A url is an image_url's. */
void fr_turns_text(fr_turns *turns, const char *role, const json_t *text);
void fr_turns_picture(fr_turns *turns, const char *role, json_t *url);

/* Of the assistant: what it has thought, a call with its arguments, a text or an object. */
void fr_turns_thought(fr_turns *turns, const json_t *text);
void fr_turns_call(fr_turns *turns, const json_t *id, const json_t *name, json_t *arguments);

/* A call's result begins: what follows with the role "tool" is its content. */
void fr_turns_result(fr_turns *turns, const json_t *id);

/* A tool: a new one of these values, of which all but the name may be NULL. */
void fr_turns_tool(fr_turns *turns, const json_t *name, const json_t *description, const json_t *parameters,
                   const json_t *strict);

#endif
