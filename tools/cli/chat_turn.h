/* Runs a turn of a chat. The conversation ends with that turn; it is run in the session, and the model's reply is
 * streamed.
 *
 * In: messages, the last of which is a user's. Out: the reply, streamed to standard output, and the conversation with
 * the reply added. If the turn can't be answered, or is interrupted before its answer begins, the conversation does not
 * change. */
#ifndef FR_TOOLS_CLI_CHAT_TURN_H
#define FR_TOOLS_CLI_CHAT_TURN_H

#include "tools/cli/figures.h"
#include "tools/cli/loaded.h"
#include "tools/cli/reply.h"

typedef struct fr_chat {
    fr_loaded loaded;
    fr_arguments *args; /* the chat's own copy, which /set changes */
    const fr_tokenizer *tokenizer;
    json_t *messages;
    size_t waiting; /* number of pictures for the next turn; they are the last of `loaded.pictures` */
    size_t shown;   /* number of pictures that the session was given */
    char *read;     /* the text of a file for the next turn; NULL: there is none */
    size_t read_length;
    bool unseen; /* the session has new pictures, but no prompt with them has been run completely */
    /* answered: number of turns in this run that were answered. left_out: number of turns that were too long for the
     * context */
    size_t answered, left_out;
    int64_t seed;      /* seed of the next reply */
    bool settled;      /* sampling is greedy, so another reply to the same turn would have the same text */
    fr_figures before; /* the session's statistics when the turn began */
    fr_stream text;    /* the text of the turn's reply, and the stream that shows it */
    fr_word_wrap wrap; /* wraps the reply on a terminal */
    fr_reply_view view;
    size_t dropped;   /* number of dropped turns that still have to be noted */
    json_t *asked;    /* the conversation that is being answered */
    bool interrupted; /* this answer was interrupted before it began */
} fr_chat;

/* Generates a reply to these messages, and takes ownership of the messages. If there is a reply, the messages and the
 * reply become the conversation. If there is none, the messages are freed. *answered: there is a reply. Gives the exit
 * status. */
int fr_chat_answer(fr_chat *chat, json_t *messages, bool *answered);

/* Makes these messages the conversation and runs them, so that the next turn has to run only its own ids. *taken: true
 * if this succeeded. If it failed, an error line was written, and nothing has changed. Gives the exit status. */
int fr_chat_take(fr_chat *chat, json_t *messages, bool *taken);

/* Counts the tokens of the conversation's prompt. Gives the exit status. */
int fr_chat_measure(fr_chat *chat, size_t *count);

/* Drops all pictures after the first `count`, both those in the conversation and those that wait for the next turn. */
void fr_chat_keep_pictures(fr_chat *chat, size_t count);

#endif
