/* A turn of a chat: the conversation with it put to the session, and the model's reply.
 *
 * In: messages, the last of them a user's. Out: the reply, streamed to standard output, and the conversation with it.
 * A turn that can't be answered, or is interrupted before its answer begins, leaves everything as it was before it. */
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
    size_t waiting;    /* of the pictures: those for the next turn, behind those of the turns before it */
    size_t shown;      /* how many of the pictures the session has been shown */
    char *read; /* the text of a file, for the next turn; NULL: none waits */
    size_t read_length;
    bool unseen;       /* those were more than before, and their prompt has not been run to the end */
    size_t answered, left_out; /* turns of this run */
    int64_t seed;      /* of what is drawn */
    bool settled;      /* the last reply is all that these options give: greedy, there is no other */
    fr_figures before; /* statistics at the start of the turn */
    fr_stream text;    /* of the turn's reply, and its way there */
    fr_word_wrap wrap; /* on a terminal */
    fr_reply_view view;
    size_t dropped;   /* turns, of which nothing has been said yet */
    json_t *asked;    /* the conversation under way */
    bool interrupted; /* it was, before its answer began */
} fr_chat;

/* The reply to these messages, which become the conversation with it, or are dropped: they belong to the chat either
 * way. Gives the exit status; *answered: there is a reply. */
int fr_chat_answer(fr_chat *chat, json_t *messages, bool *answered);

/* Makes these messages the conversation, and runs them, so that the next turn has only itself to run. *taken: it was
 * done; otherwise it has been said why not, and all is as before. */
int fr_chat_take(fr_chat *chat, json_t *messages, bool *taken);

/* Counts the tokens of the conversation's prompt. Gives the exit status. */
int fr_chat_measure(fr_chat *chat, size_t *count);

/* Only the first of the pictures are left, of the conversation and for the next turn. */
void fr_chat_keep_pictures(fr_chat *chat, size_t count);

#endif
