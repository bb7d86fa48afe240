/* Runs the commands of a chat (chat_actions.h): /undo, /regen, /save, /load and others. */
#include "tools/cli/chat_actions.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/chat_files.h"
#include "tools/cli/chat_set.h"
#include "tools/cli/conversation.h"
#include "tools/cli/output.h"

/* Prints a note about a file, which ends with the number of turns of the conversation. path: the file's name; "": no
 * file. */
static void remark_file(const fr_chat *chat, const char *path, const char *what) {
    size_t turns = fr_conversation_turns(chat->messages);
    if (!chat->args->given[FR_ARG_QUIET])
        fr_note("%s%s; the conversation has %zu turn%s", path, what, turns, turns == 1 ? "" : "s");
}

static void remark(const fr_chat *chat, const char *what) {
    remark_file(chat, "", what);
}

static void forget_read(fr_chat *chat) {
    free(chat->read);
    chat->read = NULL;
    chat->read_length = 0;
}

/* Sends a turn to the model. If /read has stored a file's text, it comes before the typed text, with a line end
 * between them. */
int fr_chat_say(fr_chat *chat, const char *bytes, size_t length) {
    bool answered, ends = chat->read_length == 0 || chat->read[chat->read_length - 1] == '\n';
    size_t before = chat->read_length + !ends;
    char *said = fr_resize(NULL, before + length, 1);
    if (chat->read_length) memcpy(said, chat->read, chat->read_length);
    if (!ends) said[before - 1] = '\n';
    memcpy(said + before, bytes, length);
    json_t *messages = json_copy(chat->messages);
    fr_conversation_add(messages, "user", said, before + length, chat->waiting);
    free(said);
    int code = fr_chat_answer(chat, messages, &answered);
    if (!answered) return code;
    chat->waiting = 0;
    forget_read(chat);
    return code;
}

static void undo(fr_chat *chat) {
    size_t pictures = chat->loaded.picture_count;
    chat->settled = false;
    if (chat->read) {
        forget_read(chat);
        remark(chat, "the text for the next turn is taken back");
    } else if (chat->waiting) {
        fr_chat_keep_pictures(chat, pictures - chat->waiting);
        remark(chat, "the pictures for the next turn are taken back");
    } else if (fr_conversation_turns(chat->messages) == 0) {
        fr_note("/undo: there is no turn to take back");
    } else {
        fr_chat_keep_pictures(chat, pictures - fr_conversation_take_back(chat->messages));
        remark(chat, "the last turn is taken back");
    }
}

static void clear(fr_chat *chat) {
    chat->settled = false;
    fr_chat_keep_pictures(chat, 0);
    forget_read(chat);
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

/* Reads a text file for the next turn. A binary file is refused, because the model would only see replacement
 * characters. */
static void read_text(fr_chat *chat, const char *path) {
    fr_prompt file;
    if (fr_prompt_read_file(&file, path) == 0) {
        if (file.length == 0) {
            fr_note("%s is empty", path);
        } else if (memchr(file.bytes, '\0', file.length)) {
            fr_note("%s is no text: it has NUL bytes", path);
        } else {
            chat->read = fr_resize(chat->read, chat->read_length + file.length, 1);
            memcpy(chat->read + chat->read_length, file.bytes, file.length);
            chat->read_length += file.length;
            if (!chat->args->given[FR_ARG_QUIET]) fr_note("%s: %zu bytes, in the next turn", path, file.length);
        }
    }
    fr_prompt_free(&file);
}

static int tell_context(fr_chat *chat) {
    size_t count, context = fr_session_context(chat->loaded.session), turns = fr_conversation_turns(chat->messages);
    int code = fr_chat_measure(chat, &count);
    if (!code)
        fr_note("%zu turn%s, %zu of %zu tokens: the context is %.0f%% full", turns, turns == 1 ? "" : "s", count,
                context, 100.0 * (double)count / (double)context);
    return code;
}

static void tell_figures(const fr_chat *chat) {
    fr_figures figures = fr_figures_take(chat->loaded.session);
    fr_figures_print(&figures, stderr);
}

/* Uses the next seed for /regen, so that a run with the same commands gives the same replies. */
static int draw_anew(fr_chat *chat) {
    chat->seed = chat->seed < INT64_MAX ? chat->seed + 1 : 0;
    if (!chat->args->given[FR_ARG_QUIET]) fr_note("another reply, of --seed %lld", (long long)chat->seed);
    fr_options *options = chat->loaded.options;
    fr_status status = fr_options_set(options, FR_OPT_SEED, chat->seed);
    return fr_exit_status(status == FR_OK ? fr_session_set_options(chat->loaded.session, options) : status);
}

/* Generates another reply in place of the last one. The command is refused while a file's text or pictures wait for
 * the next turn. */
static int regenerate(fr_chat *chat) {
    bool answered, samples = fr_loaded_draws(&chat->loaded);
    if (fr_conversation_turns(chat->messages) == 0) {
        fr_note("/regen: there is no reply yet");
        return 0;
    }
    if (chat->waiting || chat->read) {
        fr_note("/regen: %s for the next turn; /undo takes %s back", chat->read ? "a text waits" : "pictures wait",
                chat->read ? "it" : "them");
        return 0;
    }
    if (!samples && chat->settled) {
        fr_note("/regen: the reply would be the same, as greedy decoding draws nothing (--temp 0.8 does)");
        return 0;
    }
    int code = samples ? draw_anew(chat) : 0;
    json_t *messages = json_copy(chat->messages);
    fr_conversation_take_reply(messages);
    return code ? code : fr_chat_answer(chat, messages, &answered);
}

/* ---------------------------------------------------------------------------------------------------- the last turn */

char *fr_chat_last_said(const fr_chat *chat) {
    return fr_conversation_turns(chat->messages) ? fr_conversation_said(chat->messages) : NULL;
}

int fr_chat_say_instead(fr_chat *chat, const char *bytes, size_t length) {
    bool answered;
    json_t *messages = json_copy(chat->messages);
    size_t pictures = fr_conversation_take_back(messages);
    fr_conversation_add(messages, "user", bytes, length, pictures);
    return fr_chat_answer(chat, messages, &answered);
}

/* ------------------------------------------------------------------------------------------------------------ files */

static void save(const fr_chat *chat, const char *path) {
    if (chat->loaded.picture_count) {
        fr_note("/save: a conversation with pictures can't be saved yet");
    } else if (json_array_size(chat->messages) == 0) {
        fr_note("/save: nothing has been said yet");
    } else if (fr_chat_file_write(path, chat->messages)) {
        remark_file(chat, path, ": written");
    }
}

/* Loads a conversation. If it ends with a user's turn, the model answers that turn. */
static int load(fr_chat *chat, const char *path) {
    bool taken;
    if (chat->loaded.picture_count) {
        fr_note("/load: this conversation has pictures; /clear makes an end of them");
        return 0;
    }
    json_t *messages = fr_chat_file_read(path);
    if (!messages) return 0;
    if (!fr_conversation_answered(messages)) return fr_chat_answer(chat, messages, &taken);
    int code = fr_chat_take(chat, messages, &taken);
    if (!code && taken) remark_file(chat, path, ": read");
    return code;
}

/* Replaces ~ at the beginning of a file's name by the home folder, as a shell does. The caller frees the result. */
static char *expand_home(const char *name) {
    const char *home = name[0] == '~' && (name[1] == '/' || name[1] == '\0') ? getenv("HOME") : NULL;
    size_t size = strlen(name) + (home ? strlen(home) : 0) + 1;
    char *expanded = fr_resize(NULL, size, 1);
    snprintf(expanded, size, "%s%s", home ? home : "", home ? name + 1 : name);
    return expanded;
}

static int act(fr_chat *chat, fr_chat_command command, const char *argument) {
    switch (command) {
    case FR_CHAT_CLEAR: clear(chat); break;
    case FR_CHAT_UNDO: undo(chat); break;
    case FR_CHAT_IMAGE: add_image(chat, argument); break;
    case FR_CHAT_READ: read_text(chat, argument); break;
    case FR_CHAT_CONTEXT: return tell_context(chat);
    case FR_CHAT_STATS: tell_figures(chat); break;
    case FR_CHAT_REGEN: return regenerate(chat);
    case FR_CHAT_SAVE: save(chat, argument); break;
    case FR_CHAT_LOAD: return load(chat, argument);
    default: break;
    }
    return 0;
}

int fr_chat_act(fr_chat *chat, fr_chat_command command, const char *argument) {
    if (command == FR_CHAT_SET) return fr_chat_set(chat, argument);
    if (command == FR_CHAT_SYSTEM) fr_chat_set_system(chat, argument);
    char *expanded = expand_home(argument);
    int code = act(chat, command, expanded);
    free(expanded);
    return code;
}
