/* Builds the body of a chat from the pieces of a conversation in another API's form: texts, pictures, calls and their
 * results.
 *
 * In: these pieces, in the order of the conversation. Out: the body of a request to /v1/chat/completions, or an error
 * line. Values are shared, not copied. */
#ifndef FR_TOOLS_SERVE_TURNS_H
#define FR_TOOLS_SERVE_TURNS_H

#include <jansson.h>
#include <stdbool.h>

typedef struct fr_turns {
    json_t *chat;     /* the body of the chat */
    json_t *messages; /* the messages of `chat` */
    json_t *message;  /* the message to which pieces are being added; NULL: the next piece begins a new message */
    json_t *parts;    /* the parts of the content of `message` */
    char error[320];  /* "": there is no error */
} fr_turns;

/* The beginning of "encrypted_content" in thoughts that this server wrote. When a client sends thoughts back, the
 * server recognizes its own ones by this beginning. */
#define FR_SEALED "forerun:"

/* These functions help to read a conversation in another API's form. fr_turns_get gives a member. NULL: the member is
 * missing or null. fr_turns_type gives a value's "type". "": the value has no type. fr_turns_share gives the value
 * itself with one more reference. */
const json_t *fr_turns_get(const json_t *object, const char *key);
const char *fr_turns_type(const json_t *value);
json_t *fr_turns_share(const json_t *value);

/* Begins a chat. It copies those members of the body that have the same meaning in a chat. They are about sampling,
 * drafting, the model's name and streaming. */
void fr_turns_begin(fr_turns *turns, const json_t *body);

/* Notes the members of the body that forerun does not know at this path. Each member is noted once (notes.h). forerun
 * knows the members in `known` and the members that fr_turns_begin copies. */
void fr_turns_note_others(const json_t *body, const char *path, const char *const *known, size_t count);

/* Gives the body of the chat. NULL: the request was refused. */
json_t *fr_turns_end(fr_turns *turns);

/* Refuses the request with an error line. Returns false. */
bool fr_turns_refuse(fr_turns *turns, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Sets a member of the chat to a new value. */
void fr_turns_put(fr_turns *turns, const char *key, json_t *value);

/* Ends the current message, so that the next piece begins a new one. */
void fr_turns_break(fr_turns *turns);

/* These functions add a piece to the current message if that message has this role. Otherwise they begin a new message
 * for the piece. url: the value of an image_url. part: a part that is added unchanged, and of which the chat takes
 * ownership. The code that reads the chat checks the part. */
void fr_turns_text(fr_turns *turns, const char *role, const json_t *text);
void fr_turns_picture(fr_turns *turns, const char *role, json_t *url);
void fr_turns_part(fr_turns *turns, const char *role, json_t *part);

/* fr_turns_thought adds a thought of the assistant. fr_turns_call adds a call of the assistant. arguments: a text or an
 * object, of which the call takes ownership. */
void fr_turns_thought(fr_turns *turns, const json_t *text);
void fr_turns_call(fr_turns *turns, const json_t *id, const json_t *name, json_t *arguments);

/* Begins the result of a call. Its content consists of the pieces of the role "tool" that follow. */
void fr_turns_result(fr_turns *turns, const json_t *id);

/* Adds a tool with these values. The name is necessary; the other values may be NULL. */
void fr_turns_tool(fr_turns *turns, const json_t *name, const json_t *description, const json_t *parameters,
                   const json_t *strict);

#endif
