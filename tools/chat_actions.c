/* Turns taken back, answered again, kept and fetched (chat_actions.h). */
#include "chat_actions.h"

#include <stdlib.h>
#include <string.h>

#include "chat_files.h"
#include "conversation.h"
#include "output.h"

/* path: of the file that it is about, or "". */
static void remark_file(const fr_chat *chat, const char *path, const char *what) {
    size_t turns = fr_conversation_turns(chat->messages);
    if (!chat->args->given[FR_ARG_QUIET])
        fr_note("%s%s; the conversation has %zu turn%s", path, what, turns, turns == 1 ? "" : "s");
}

static void remark(const fr_chat *chat, const char *what) {
    remark_file(chat, "", what);
}

int fr_chat_say(fr_chat *chat, const char *bytes, size_t length) {
    bool answered;
    json_t *messages = json_copy(chat->messages);
    fr_conversation_add(messages, "user", bytes, length, chat->waiting);
    int code = fr_chat_answer(chat, messages, &answered);
    if (answered) chat->waiting = 0;
    return code;
}

static void undo(fr_chat *chat) {
    size_t pictures = chat->loaded.picture_count;
    chat->settled = false;
    if (chat->waiting) {
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

/* The next of the seeds: so a run with all its /regen can be had again. */
static int draw_anew(fr_chat *chat) {
    chat->seed = chat->seed < INT64_MAX ? chat->seed + 1 : 0;
    if (!chat->args->given[FR_ARG_QUIET]) fr_note("another reply, of --seed %lld", (long long)chat->seed);
    fr_options *options = chat->loaded.options;
    fr_status status = fr_options_set(options, FR_OPT_SEED, chat->seed);
    return fr_exit_status(status == FR_OK ? fr_session_set_options(chat->loaded.session, options) : status);
}

/* Another reply in the place of the last one; pictures that wait for the next turn go on waiting. */
static int regenerate(fr_chat *chat) {
    bool answered, samples = fr_loaded_draws(&chat->loaded);
    if (fr_conversation_turns(chat->messages) == 0) {
        fr_note("/regen: there is no reply yet");
        return 0;
    }
    if (chat->waiting) {
        fr_note("/regen: pictures wait for the next turn; /undo takes them back");
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

/* A conversation that ends with a user's turn is answered. */
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

/* A name of a file as a shell would hand it on: ~ is the home folder. Free it. */
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
    case FR_CHAT_REGEN: return regenerate(chat);
    case FR_CHAT_SAVE: save(chat, argument); break;
    case FR_CHAT_LOAD: return load(chat, argument);
    default: break;
    }
    return 0;
}

int fr_chat_act(fr_chat *chat, fr_chat_command command, const char *argument) {
    char *expanded = expand_home(argument);
    int code = act(chat, command, expanded);
    free(expanded);
    return code;
}
