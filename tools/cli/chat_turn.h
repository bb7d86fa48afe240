/* Runs a turn of a chat: gives the session the conversation with the turn, and streams the model's reply.
 *
 * In: messages, the last of them a user's. Out: the reply, streamed to standard output, and the conversation with it.
 * If a turn can't be answered, or is interrupted before its answer begins, everything stays as it was. */
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
    size_t waiting; /* pictures for the next turn, which are the last ones */
    size_t shown;   /* number of pictures that the session has been shown */
    char *read;     /* the text of a file for the next turn; NULL: there is none */
    size_t read_length;
    bool unseen;               /* the pictures became more, and their prompt has not been run to its end */
    size_t answered, left_out; /* turns of this run that were answered, and that were left out */
    int64_t seed;              /* seed of the next reply */
    bool settled;              /* another reply would be the same as the last one, because sampling is greedy */
    fr_figures before;         /* statistics at the start of the turn */
    fr_stream text;            /* the turn's reply, and its way to standard output */
    fr_word_wrap wrap;         /* wraps the reply on a terminal */
    fr_reply_view view;
    size_t dropped;   /* turns that were dropped, and not yet noted */
    json_t *asked;    /* the conversation under way */
    bool interrupted; /* the conversation under way was interrupted before its answer began */
} fr_chat;

/* Answers these messages, which the chat takes over: they become the conversation together with the reply, or are
 * dropped. *answered: there is a reply. Gives the exit status. */
int fr_chat_answer(fr_chat *chat, json_t *messages, bool *answered);

/* Makes these messages the conversation and runs them, so that the next turn only runs its own ids. *taken: this was
 * done; otherwise an error line was written, and nothing has changed. Gives the exit status. */
int fr_chat_take(fr_chat *chat, json_t *messages, bool *taken);

/* Counts the tokens of the conversation's prompt. Gives the exit status. */
int fr_chat_measure(fr_chat *chat, size_t *count);

/* Drops all but the first `count` pictures, both those of the conversation and those for the next turn. */
void fr_chat_keep_pictures(fr_chat *chat, size_t count);

#endif
