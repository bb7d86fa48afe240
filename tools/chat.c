/* forerun chat: lines of standard input are user turns, replies are streamed to standard output.
 *
 * The messages are attached to the session that --prompt-cache keeps, so that the next run goes on with both.
 * Every turn renders and tokenizes the whole history, and the session runs what is new of it: most often the last reply
 * too, as templates write a past turn in another way than they open it. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "conversation.h"
#include "figures.h"
#include "reply.h"
#include "verbs.h"

typedef struct fr_chat {
    fr_engine engine;
    const fr_arguments *args;
    const fr_tokenizer *tokenizer;
    json_t *messages;
    bool unseen;       /* there is a picture, and its prompt has not been run to the end */
    fr_figures before; /* statistics at the start of the turn */
} fr_chat;

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number) {
    (void)signal_number;
    interrupted = 1;
}

static bool wants_abort(void *context) {
    (void)context;
    return interrupted != 0;
}

/* Gives the session the conversation's ids. If that is interrupted, so is the reply, before its first token; a picture
 * that was stopped half way is run again as a whole. */
static int bring_up_to_date(fr_chat *chat, const int32_t *ids, size_t count) {
    size_t context = fr_session_context(chat->engine.session);
    if (count > context) {
        return fr_bad_input("the conversation has %zu tokens and the context holds %zu (-c N)", count, context);
    }
    if (chat->unseen && fr_session_length(chat->engine.session) > 0) fr_session_reset(chat->engine.session);
    chat->before = fr_figures_take(chat->engine.session);
    fr_status status = fr_session_set_prompt(chat->engine.session, ids, count);
    if (status == FR_ABORTED) return 0;
    chat->unseen = false;
    fr_figures now = fr_figures_since(fr_figures_take(chat->engine.session), &chat->before);
    size_t reused = (size_t)now.of[FR_STAT_REUSED_TOKENS];
    if (status == FR_OK)
        status = fr_tracer_text(&chat->engine.trace, "prompt", ids + reused, count - reused, true);
    return fr_exit_status(status);
}

static int prompt_session(fr_chat *chat) {
    fr_prompt prompt = {0};
    int code = fr_prompt_converse(&prompt, &chat->engine, chat->messages, chat->tokenizer);
    if (!code) code = fr_prompt_tokenize(&prompt, &chat->engine, chat->args, false);
    if (!code) code = bring_up_to_date(chat, prompt.ids, prompt.count);
    fr_prompt_free(&prompt);
    return code;
}

/* The model's turn: streamed, then kept in the history. */
static int answer(fr_chat *chat) {
    const fr_arguments *args = chat->args;
    fr_stream text = {.out = stdout, .color = args->given[FR_ARG_COLOR], .stops = args->stops,
                    .stop_count = args->stop_count};
    fr_reply reply;
    int code = fr_reply_run(&reply, &chat->engine, args, &text);
    if (!code) {
        putchar('\n');
        fr_flush_output();
        fr_reply_remark(&reply, &chat->engine, args);
        fr_conversation_add(chat->messages, "assistant", text.bytes, text.length, 0);
        fr_figures figures = fr_figures_since(fr_figures_take(chat->engine.session), &chat->before);
        if (args->given[FR_ARG_STATS]) fr_figures_print(&figures, stderr);
        fr_tracer_stats(&chat->engine.trace, fr_end_name(reply.end), &figures, chat->engine.session);
    }
    fr_reply_free(&reply);
    fr_stream_free(&text);
    return code;
}

static int take_turn(fr_chat *chat, const char *line, size_t length) {
    bool first = fr_conversation_turns(chat->messages) == 0;
    interrupted = 0;
    fr_conversation_add(chat->messages, "user", line, length, first ? chat->engine.picture_count : 0);
    int code = prompt_session(chat);
    return code ? code : answer(chat);
}

/* The next line without its end; false at the end of input and at Ctrl-C. */
static bool read_line(char **line, size_t *capacity, size_t *length) {
    if (isatty(STDIN_FILENO)) fputs("> ", stderr);
    ssize_t got = getline(line, capacity, stdin);
    if (got < 0) return false;
    while (got > 0 && strchr("\r\n", (*line)[got - 1])) got--;
    *length = (size_t)got;
    return true;
}

static int converse(fr_chat *chat) {
    char *line = NULL;
    size_t capacity = 0, length = 0;
    int code = 0;
    while (!code && read_line(&line, &capacity, &length)) {
        if (length == strlen("/exit") && memcmp(line, "/exit", length) == 0) break;
        if (length > 0) code = take_turn(chat, line, length);
    }
    if (!code && ferror(stdin) && errno != EINTR) code = fr_bad_input("standard input: %s", strerror(errno));
    if (isatty(STDIN_FILENO)) fputc('\n', stderr);
    free(line);
    return code;
}

/* The conversation that came with the session of --prompt-cache, if one did. */
static int resume(fr_chat *chat) {
    const fr_arguments *args = chat->args;
    size_t size;
    const void *bytes = fr_session_attached(chat->engine.session, &size);
    if (!size) return 0;
    json_t *messages = fr_conversation_read(bytes, size);
    if (!messages)
        return fr_bad_input("%s: what came with this session is no conversation", args->text[FR_ARG_PROMPT_CACHE]);
    json_decref(chat->messages);
    chat->messages = messages;
    if (args->given[FR_ARG_SYSTEM]) fr_conversation_set_system(messages, args->text[FR_ARG_SYSTEM]);
    size_t turns = fr_conversation_turns(messages);
    if (!args->given[FR_ARG_QUIET])
        fr_note("%s: the conversation goes on after %zu turn%s", args->text[FR_ARG_PROMPT_CACHE], turns,
                turns == 1 ? "" : "s");
    return 0;
}

/* The session with its conversation, to --prompt-cache's file, if one was named. */
static int save(fr_chat *chat) {
    char *bytes;
    size_t length;
    int code = fr_conversation_write(chat->messages, &bytes, &length);
    if (code) return code;
    fr_status status = fr_session_attach(chat->engine.session, bytes, length);
    free(bytes);
    code = fr_exit_status(status);
    return code ? code : fr_engine_save(&chat->engine, chat->args);
}

int fr_verb_chat(const fr_arguments *args) {
    if (args->image_count && args->given[FR_ARG_PROMPT_CACHE])
        return fr_wrong_usage("--prompt-cache with --image: a conversation with pictures can't be saved yet");
    fr_chat chat = {.args = args, .messages = fr_conversation_new(args->text[FR_ARG_SYSTEM])};
    int code = fr_engine_open(&chat.engine, args);
    if (!code) code = fr_engine_tokenizer(&chat.engine, args, &chat.tokenizer);
    if (!code) code = fr_engine_start(&chat.engine, args, 0, 0);
    if (!code) code = resume(&chat);
    if (!code) {
        chat.unseen = chat.engine.picture_count > 0;
        /* Without SA_RESTART: Ctrl-C at an empty prompt ends the reading of a line. */
        struct sigaction action = {.sa_handler = on_interrupt};
        sigaction(SIGINT, &action, NULL);
        fr_session_set_abort(chat.engine.session, wants_abort, NULL);
        code = converse(&chat);
        if (!code) code = fr_tracer_close(&chat.engine.trace);
        if (!code) code = save(&chat);
    }
    json_decref(chat.messages);
    fr_engine_close(&chat.engine);
    return code;
}
