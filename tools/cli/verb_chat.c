/* Implements forerun chat: reads user turns and commands from standard input, and streams replies to standard output.
 *
 * With --prompt-cache, the session is saved with the messages attached to it, so that the next run continues the
 * conversation. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/chat_actions.h"
#include "tools/cli/chat_dropped.h"
#include "tools/cli/chat_set.h"
#include "tools/cli/chat_settings.h"
#include "tools/cli/conversation.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/cli/turn_input.h"
#include "tools/cli/verbs.h"

/* Lets the user edit the last turn, and answers it again. If the user drops the line, nothing changes. */
static int edit(fr_chat *chat, fr_turn *turn, fr_line_input *input) {
    char *said = fr_chat_last_said(chat);
    int code = 0;
    if (!said)
        fr_note("/edit: there is no turn yet");
    else if (chat->waiting)
        fr_note("/edit: pictures wait for the next turn; /undo takes them back");
    else if (chat->read)
        fr_note("/edit: a text waits for the next turn; /undo takes it back");
    else if (!fr_turn_begin_with(input, said))
        fr_note("/edit: that takes a terminal; /undo takes a turn back");
    else if (fr_turn_read(turn, input) && turn->length > 0 && turn->command)
        fr_note("/edit: that is a command: the turn is as it was");
    else if (turn->length > 0 && !turn->command)
        code = fr_chat_say_instead(chat, turn->bytes, turn->length);
    free(said);
    return code;
}

/* Runs a command. *goes_on: the conversation continues after the command. */
static int obey(fr_chat *chat, fr_turn *turn, fr_line_input *input, bool *goes_on) {
    const char *argument;
    fr_chat_command command = fr_chat_command_read(turn->bytes, turn->length, &argument);
    if (command == FR_CHAT_HELP) fr_chat_commands_print(stderr);
    *goes_on = command != FR_CHAT_EXIT;
    return command == FR_CHAT_EDIT ? edit(chat, turn, input) : fr_chat_act(chat, command, argument);
}

static bool ended(void) {
    return fr_interrupt_came(NULL) || fr_output_gone();
}

static int converse(fr_chat *chat) {
    fr_line_input input;
    fr_turn turn = {0};
    bool goes_on = true;
    int code = 0;
    fr_line_input_open(&input);
    while (!code && goes_on && !ended() && fr_turn_read(&turn, &input)) {
        if (ended()) break;
        bool sees = fr_model_fact(chat->loaded.model, FR_FACT_IMAGE_TOKEN) >= 0;
        char *dropped = sees ? fr_chat_dropped(turn.bytes, turn.length) : NULL;
        if (dropped)
            code = fr_chat_act(chat, FR_CHAT_IMAGE, dropped);
        else if (turn.command)
            code = obey(chat, &turn, &input, &goes_on);
        else if (turn.length > 0)
            code = fr_chat_say(chat, turn.bytes, turn.length);
        free(dropped);
    }
    int failed = fr_line_input_close(&input);
    fr_turn_free(&turn);
    return code ? code : failed;
}

/* Renders a sample turn, so that a model without a chat template is refused before the user types one. */
static int check_template(const fr_chat *chat) {
    fr_marked_text text = {0};
    json_t *messages = fr_conversation_new(chat->args->text[FR_ARG_SYSTEM]);
    json_t *settings = fr_chat_settings(chat->args, chat->loaded.tools, false);
    fr_conversation_add(messages, "user", "?", 1, 0);
    int code = fr_exit_status(fr_conversation_render(messages, chat->tokenizer, settings, &text));
    if (!code) fr_conversation_note_changes(chat->tokenizer, chat->args->given[FR_ARG_QUIET]);
    fr_marked_text_free(&text);
    json_decref(messages);
    json_decref(settings);
    return code;
}

/* If a conversation was saved with the session of --prompt-cache, continues it. */
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

/* Saves the session and its conversation to the file of --prompt-cache, if the option was given. */
static int save(fr_chat *chat) {
    size_t length;
    char *bytes = fr_conversation_write(chat->messages, &length);
    int code = fr_exit_status(fr_session_attach(chat->loaded.session, bytes, length));
    free(bytes);
    return code ? code : fr_loaded_save(&chat->loaded, chat->args);
}

/* Runs the conversation to its end. Then writes its files, even if SIGTERM, SIGHUP or the loss of the terminal ended
 * the conversation. */
static int hold(fr_chat *chat) {
    fr_loaded_note_chat(&chat->loaded, chat->args);
    chat->waiting = chat->shown = chat->loaded.picture_count;
    chat->unseen = chat->shown > 0;
    fr_interrupt_watch_answers();
    int code = converse(chat);
    if (!code) code = fr_tracer_close(&chat->loaded.trace);
    if (!code) code = save(chat);
    /* the status is 1 if no turn was answered; error lines have given the reasons */
    return !code && chat->left_out && !chat->answered ? 1 : code;
}

/* Prints the first screen: the model, its context, the sampling, and the keys that stop a reply and leave the chat.
 * Prints it only on a terminal. */
static void show_screen(const fr_chat *chat) {
    const fr_arguments *args = chat->args;
    long long context = (long long)fr_session_context(chat->loaded.session);
    long long limit = fr_model_fact(chat->loaded.model, FR_FACT_CONTEXT_LIMIT);
    if (args->given[FR_ARG_QUIET] || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) return;
    const char *path = args->model_name ? args->model_name : args->text[FR_ARG_MODEL], *slash = strrchr(path, '/');
    fprintf(stderr, "forerun %s, %s%s", fr_version(), args->model_name || !slash || !slash[1] ? path : slash + 1,
            chat->loaded.drafter ? " with a drafter" : "");
    fprintf(stderr, "\ncontext %lld tokens", context);
    if (context < limit) fprintf(stderr, " (of %lld: -c N)", limit);
    fputs("; ", stderr);
    fr_chat_tell_sampling(chat);
    fputs("\n/help lists the commands; /exit or Ctrl-D leaves, Ctrl-C stops a reply\n\n", stderr);
}

int fr_verb_chat(const fr_arguments *given) {
    fr_arguments own = *given, *args = &own;
    fr_chat chat = {
        .args = args, .messages = fr_conversation_new(args->text[FR_ARG_SYSTEM]), .seed = args->number[FR_ARG_SEED]};
    fr_output_outlive_terminal();
    int code = args->given[FR_ARG_PROMPT_CACHE] ? fr_output_check(args->text[FR_ARG_PROMPT_CACHE]) : 0;
    if (!code) code = fr_loaded_open(&chat.loaded, args);
    bool greedy = args->given[FR_ARG_TEMPERATURE] && args->real[FR_ARG_TEMPERATURE] == 0;
    if (!code && !greedy) code = fr_loaded_sample(&chat.loaded, args);
    if (!code) code = fr_loaded_tokenizer(&chat.loaded, args, &chat.tokenizer);
    if (!code) code = check_template(&chat);
    if (!code) code = fr_loaded_start(&chat.loaded, args, 0, 0);
    if (!code) code = resume(&chat);
    if (!code) show_screen(&chat);
    if (!code) code = hold(&chat);
    free(chat.read);
    json_decref(chat.messages);
    fr_loaded_close(&chat.loaded);
    if (!code) fr_interrupt_repeat();
    return code;
}
