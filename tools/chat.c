/* forerun chat: lines of standard input are user turns and commands, replies are streamed to standard output.
 *
 * The messages are attached to the session that --prompt-cache keeps, so that the next run goes on with both.
 *
 * Every turn renders and tokenizes the whole history, and the session runs what is new of it: most often the last reply
 * too, as templates write a past turn in another way than they open it. A turn that can't be answered leaves everything
 * as it was before it. */
#include <stdlib.h>
#include <string.h>

#include "chat_commands.h"
#include "conversation.h"
#include "figures.h"
#include "interrupt.h"
#include "prompt_run.h"
#include "reply.h"
#include "turn_input.h"
#include "verbs.h"

typedef struct fr_chat {
    fr_loaded loaded;
    const fr_arguments *args;
    const fr_tokenizer *tokenizer;
    json_t *messages;
    size_t waiting;    /* of the pictures: those for the next turn, behind those of the turns before it */
    size_t shown;      /* how many of the pictures the session has been shown */
    bool unseen;       /* those were more than before, and their prompt has not been run to the end */
    size_t answered, left_out, interrupted; /* turns of this run; the last ones are left out too */
    fr_figures before; /* statistics at the start of the turn */
    fr_stream text;    /* of the turn's reply, and its way there */
    fr_reply_view view;
} fr_chat;

/* Ctrl-C, a signal that ends the conversation, or nobody left to read it. */
static bool wants_abort(void *context) {
    return fr_interrupt_answer(context) || fr_output_gone();
}

/* Pictures stand at the beginning of what is run: with others than before it is run again as a whole, and so it is
 * where that was stopped half way. */
static int show_pictures(fr_chat *chat) {
    fr_loaded *loaded = &chat->loaded;
    if (chat->shown != loaded->picture_count) {
        int code = fr_loaded_show(loaded);
        if (code) return code;
        chat->shown = loaded->picture_count;
        chat->unseen = chat->shown > 0;
    } else if (chat->unseen && fr_session_length(loaded->session) > 0) {
        fr_session_reset(loaded->session);
    }
    return 0;
}

/* The turn was interrupted before its answer began. */
static int take_back_unanswered(fr_chat *chat) {
    chat->interrupted++;
    if (!chat->args->given[FR_ARG_QUIET]) fr_note("interrupted before its answer: this turn is taken back");
    return 0;
}

/* Gives the session the conversation's ids. */
static int bring_up_to_date(fr_chat *chat, const int32_t *ids, size_t count, bool *refused) {
    size_t context = fr_session_context(chat->loaded.session);
    *refused = count >= context || show_pictures(chat) != 0;
    if (count >= context)
        fr_note("this turn is left out: with it the conversation has %zu tokens, and the context holds %zu (-c N)%s",
                count, context, fr_conversation_turns(chat->messages) > 1 ? "; /undo or /clear makes room" : "");
    if (*refused) return 0;
    chat->before = fr_figures_take(chat->loaded.session);
    fr_status status = fr_prompt_run(chat->loaded.session, ids, count, wants_abort, chat->args->given[FR_ARG_QUIET]);
    *refused = status == FR_INPUT || status == FR_ABORTED;
    if (status == FR_ABORTED) return take_back_unanswered(chat);
    if (status != FR_OK) return fr_exit_status(status);
    chat->unseen = false;
    fr_figures now = fr_figures_since(fr_figures_take(chat->loaded.session), &chat->before);
    size_t reused = (size_t)now.of[FR_STAT_REUSED_TOKENS];
    return fr_exit_status(fr_tracer_text(&chat->loaded.trace, "prompt", ids + reused, count - reused, true));
}

/* *refused: the conversation can't be put to the model with this turn, and it has been said why. */
static int prompt_session(fr_chat *chat, bool *refused) {
    fr_prompt prompt = {0};
    int code = fr_prompt_converse(&prompt, &chat->loaded, chat->args, chat->messages);
    if (!code) code = fr_prompt_tokenize(&prompt, &chat->loaded, chat->args);
    *refused = code != 0;
    if (!code) code = bring_up_to_date(chat, prompt.ids, prompt.count, refused);
    if (!code && !*refused)
        code = fr_exit_status(fr_reply_view_open(&chat->view, chat->tokenizer, chat->args, &prompt.rendered,
                                                 chat->loaded.picture_count > 0, &chat->text));
    fr_prompt_free(&prompt);
    return code;
}

/* The model's turn: streamed, then kept in the history. *refused: it was interrupted before it began. */
static int answer(fr_chat *chat, bool *refused) {
    const fr_arguments *args = chat->args;
    fr_reply reply;
    int code = fr_reply_run(&reply, &chat->loaded, args, &chat->text, &chat->view);
    *refused = !code && reply.end == FR_END_INTERRUPT && reply.kept == 0;
    if (*refused) {
        code = take_back_unanswered(chat);
    } else if (!code) {
        putchar('\n');
        fr_flush_output();
        fr_reply_remark(&reply, &chat->loaded, args);
        fr_conversation_add(chat->messages, "assistant", chat->text.bytes, chat->text.length, 0);
        code = fr_exit_status(fr_reply_view_add(&chat->view, fr_conversation_last(chat->messages)));
        fr_figures figures = fr_figures_since(fr_figures_take(chat->loaded.session), &chat->before);
        if (args->given[FR_ARG_STATS]) fr_figures_print(&figures, stderr);
        fr_tracer_stats(&chat->loaded.trace, fr_end_name(reply.end), &figures, chat->loaded.session);
    }
    fr_reply_free(&reply);
    return code;
}

static int ask(fr_chat *chat, bool *refused) {
    const fr_arguments *args = chat->args;
    chat->text = (fr_stream){.out = stdout, .color = args->given[FR_ARG_COLOR], .stops = args->stops,
                             .stop_count = args->stop_count};
    int code = prompt_session(chat, refused);
    if (!code && !*refused) code = answer(chat, refused);
    fr_reply_view_close(&chat->view);
    fr_stream_free(&chat->text);
    return code;
}

static int take_turn(fr_chat *chat, const fr_turn *turn) {
    bool refused;
    fr_interrupt_next_answer();
    fr_conversation_add(chat->messages, "user", turn->bytes, turn->length, chat->waiting);
    int code = ask(chat, &refused);
    if (refused) fr_conversation_take_back(chat->messages);
    else chat->waiting = 0;
    chat->left_out += refused;
    chat->answered += !refused;
    return refused ? 0 : code;
}

/* --------------------------------------------------------------------------------------------------------- commands */

/* Of the pictures only the first ones are left. The timeline may have had the others. */
static void keep_pictures(fr_chat *chat, size_t count) {
    if (count < chat->loaded.picture_count) chat->shown = SIZE_MAX;
    fr_loaded_keep_pictures(&chat->loaded, count);
    chat->waiting = 0;
}

static void remark(const fr_chat *chat, const char *what) {
    size_t turns = fr_conversation_turns(chat->messages);
    if (!chat->args->given[FR_ARG_QUIET])
        fr_note("%s; the conversation has %zu turn%s", what, turns, turns == 1 ? "" : "s");
}

static void undo(fr_chat *chat) {
    size_t pictures = chat->loaded.picture_count;
    if (chat->waiting) {
        keep_pictures(chat, pictures - chat->waiting);
        remark(chat, "the pictures for the next turn are taken back");
    } else if (fr_conversation_turns(chat->messages) == 0) {
        fr_note("/undo: there is no turn to take back");
    } else {
        keep_pictures(chat, pictures - fr_conversation_take_back(chat->messages));
        remark(chat, "the last turn is taken back");
    }
}

static void clear(fr_chat *chat) {
    keep_pictures(chat, 0);
    fr_conversation_forget(chat->messages);
    remark(chat, "all that was said is forgotten");
}

static void add_image(fr_chat *chat, const char *path) {
    fr_loaded *loaded = &chat->loaded;
    if (chat->args->given[FR_ARG_PROMPT_CACHE]) {
        fr_note("/image: with --prompt-cache, a conversation with pictures can't be saved yet");
    } else if (fr_loaded_add_picture(loaded, path) == 0) {
        chat->waiting++;
        if (!chat->args->given[FR_ARG_QUIET])
            fr_note("%s: %zu tokens, in the next turn", path,
                    fr_picture_tokens(loaded->pictures[loaded->picture_count - 1]));
    }
}

/* False: the conversation ends. */
static bool obey(fr_chat *chat, fr_turn *turn) {
    const char *argument;
    switch (fr_chat_command_read(turn->bytes, turn->length, &argument)) {
    case FR_CHAT_CLEAR: clear(chat); break;
    case FR_CHAT_UNDO: undo(chat); break;
    case FR_CHAT_IMAGE: add_image(chat, argument); break;
    case FR_CHAT_HELP: fr_chat_commands_print(stderr); break;
    case FR_CHAT_EXIT: return false;
    case FR_CHAT_REFUSED: break;
    }
    return true;
}

/* ------------------------------------------------------------------------------------------------- the conversation */

static int converse(fr_chat *chat) {
    fr_line_input input;
    fr_turn turn = {0};
    int code = 0;
    fr_line_input_open(&input);
    while (!code && !fr_interrupt_came(NULL) && !fr_output_gone() && fr_turn_read(&turn, &input)) {
        if (turn.command && !obey(chat, &turn)) break;
        if (!turn.command && turn.length > 0) code = take_turn(chat, &turn);
    }
    int failed = fr_line_input_close(&input);
    fr_turn_free(&turn);
    return code ? code : failed;
}

/* The conversation that came with the session of --prompt-cache, if one did. */
static int resume(fr_chat *chat) {
    const fr_arguments *args = chat->args;
    size_t size;
    const void *bytes = fr_session_attached(chat->loaded.session, &size);
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
    size_t length;
    char *bytes = fr_conversation_write(chat->messages, &length);
    int code = fr_exit_status(fr_session_attach(chat->loaded.session, bytes, length));
    free(bytes);
    return code ? code : fr_loaded_save(&chat->loaded, chat->args);
}

int fr_verb_chat(const fr_arguments *args) {
    fr_chat chat = {.args = args, .messages = fr_conversation_new(args->text[FR_ARG_SYSTEM])};
    int code = args->given[FR_ARG_PROMPT_CACHE] ? fr_output_check(args->text[FR_ARG_PROMPT_CACHE]) : 0;
    if (!code) code = fr_loaded_open(&chat.loaded, args);
    if (!code) code = fr_loaded_tokenizer(&chat.loaded, args, &chat.tokenizer);
    if (!code) code = fr_loaded_start(&chat.loaded, args, 0, 0);
    if (!code) code = resume(&chat);
    if (!code) {
        fr_loaded_note_chat(&chat.loaded, args);
        chat.waiting = chat.shown = chat.loaded.picture_count;
        chat.unseen = chat.shown > 0;
        fr_interrupt_watch_answers();
        fr_output_outlive_terminal();
        code = converse(&chat);
        if (!code) code = fr_tracer_close(&chat.loaded.trace);
        if (!code) code = save(&chat);
        if (!code && chat.left_out > chat.interrupted && !chat.answered) code = 1; /* its lines have said why */
    }
    json_decref(chat.messages);
    fr_loaded_close(&chat.loaded);
    if (!code) fr_interrupt_repeat();
    return code;
}
