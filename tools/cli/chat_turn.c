/* Runs a conversation and streams the model's next reply (chat_turn.h).
 *
 * Each turn renders and tokenizes the whole conversation again, and the session runs only the ids from the first one
 * that differs from its timeline, which is the sequence of ids that it has already run. The ids of the last reply
 * usually differ: a template often writes an earlier reply in another form than the model generated it. */
#include "tools/cli/chat_turn.h"

#include <stdlib.h>
#include <string.h>

#include "tools/cli/chat_settings.h"
#include "tools/cli/conversation.h"
#include "tools/cli/interrupt.h"
#include "tools/cli/output.h"
#include "tools/cli/prompt_run.h"

/* Returns true if the reply must stop. It stops after Ctrl-C, after a signal that ends the conversation, and when the
 * terminal on standard output was lost. */
static bool wants_abort(void *context) {
    return fr_interrupt_answer(context) || fr_output_gone();
}

static void take_back(fr_chat *chat) {
    chat->interrupted = true;
    if (!chat->args->given[FR_ARG_QUIET]) fr_note("interrupted before the answer began: the conversation is as it was");
}

void fr_chat_keep_pictures(fr_chat *chat, size_t count) {
    /* The timeline may still have the dropped pictures. With SIZE_MAX, the session runs the whole timeline again */
    if (count < chat->loaded.picture_count) chat->shown = SIZE_MAX;
    fr_loaded_keep_pictures(&chat->loaded, count);
    chat->waiting = 0;
}

/* ---------------------------------------------------------------------------------------------- fitting the context */

/* Makes the ids of a conversation without its `dropped` oldest turns. */
static int measure(const fr_chat *chat, const json_t *messages, size_t dropped, fr_prompt *prompt) {
    json_t *kept = json_copy((json_t *)messages);
    fr_loaded view = chat->loaded;
    size_t gone = fr_conversation_drop(kept, dropped);
    view.picture_count -= gone;
    memmove(view.pictures, view.pictures + gone, view.picture_count * sizeof(*view.pictures));
    *prompt = (fr_prompt){0};
    int code = fr_prompt_converse(prompt, &view, chat->args, kept);
    if (!code) code = fr_prompt_tokenize(prompt, &view, chat->args);
    json_decref(kept);
    return code;
}

int fr_chat_measure(fr_chat *chat, size_t *count) {
    fr_prompt prompt = {0};
    *count = 0;
    if (fr_conversation_turns(chat->messages) == 0) return 0;
    int code = measure(chat, chat->messages, 0, &prompt);
    *count = prompt.count;
    fr_prompt_free(&prompt);
    return code;
}

/* Gives the number of ids for which dropping turns must make room. This is a quarter of the context, or less if the
 * limit of -n leaves fewer ids for the rest of the reply. behind: number of ids of the reply so far. */
static size_t wanted_room(const fr_chat *chat, size_t behind) {
    size_t quarter = fr_session_context(chat->loaded.session) / 4;
    int64_t most = chat->args->number[FR_ARG_PREDICT];
    size_t left = most > 0 ? (size_t)most - behind : SIZE_MAX;
    size_t room = left < quarter ? left : quarter;
    return room ? room : 1;
}

/* Drops the oldest turns of the conversation that is being answered (chat->asked). chat->messages is the conversation
 * without the new turn. If it begins with the same message, the same turns are dropped there. So these turns stay
 * dropped even if the new turn is taken back. */
static void drop_turns(fr_chat *chat, size_t count) {
    bool same = json_array_get(chat->messages, 0) == json_array_get(chat->asked, 0);
    if (same) fr_conversation_drop(chat->messages, count);
    size_t pictures = fr_conversation_drop(chat->asked, count);
    if (pictures) {
        fr_loaded_drop_pictures(&chat->loaded, pictures);
        chat->shown = SIZE_MAX;
    }
    chat->settled = false;
    chat->dropped += count;
}

/* Notes how many turns were dropped. Call it between replies, because a note must not appear within a reply's text. */
static void say_dropped(fr_chat *chat) {
    size_t count = chat->dropped;
    chat->dropped = 0;
    if (count == 0 || chat->args->given[FR_ARG_QUIET]) return;
    if (count == 1)
        fr_note("the context is full: the oldest turn is dropped");
    else
        fr_note("the context is full: the %zu oldest turns are dropped", count);
}

/* Makes the prompt of the conversation that is being answered. The prompt must leave room in the context for the
 * `behind` ids of the reply so far, and for at least one more id. If the room is missing, --context-shift drops the
 * oldest turns until there is room. *fits: the prompt leaves this room. */
static int fit(fr_chat *chat, size_t behind, fr_prompt *prompt, bool *fits) {
    size_t context = fr_session_context(chat->loaded.session), turns = fr_conversation_turns(chat->asked);
    int code = measure(chat, chat->asked, 0, prompt);
    *fits = !code && prompt->count + behind < context;
    if (code || *fits || !chat->args->given[FR_ARG_CONTEXT_SHIFT]) return code;
    size_t room = wanted_room(chat, behind), dropped = 0, needed = prompt->count;
    while (!code && dropped + 1 < turns && prompt->count + behind + room > context) {
        fr_prompt_free(prompt);
        code = measure(chat, chat->asked, ++dropped, prompt);
    }
    *fits = !code && prompt->count + behind < context;
    if (*fits)
        drop_turns(chat, dropped);
    else
        prompt->count = needed;
    return code;
}

static void say_full(const fr_chat *chat, size_t count) {
    size_t context = fr_session_context(chat->loaded.session);
    if (fr_conversation_turns(chat->messages) == 0) {
        fr_note("this turn is left out: it is too long, with %zu tokens, and the context holds %zu (-c N, up to %lld)",
                count, context, (long long)fr_model_fact(chat->loaded.model, FR_FACT_CONTEXT_LIMIT));
        return;
    }
    const char *way = chat->args->given[FR_ARG_CONTEXT_SHIFT]
                          ? "; alone it is too long"
                          : "; /undo or /clear makes room, and --context-shift drops the oldest turns";
    fr_note("this turn is left out: with it the conversation has %zu tokens, and the context holds %zu (-c N)%s", count,
            context, way);
}

/* ------------------------------------------------------------------------------------------------------- the prompt */

/* Gives the session its pictures. On the timeline pictures come before all text. So the whole timeline is run again if
 * the pictures have changed, or if a run with them was interrupted. */
static int show_pictures(fr_chat *chat) {
    fr_loaded *loaded = &chat->loaded;
    if (chat->shown != loaded->picture_count) {
        int code = fr_loaded_show(loaded);
        if (code) return code;
        chat->shown = loaded->picture_count;
        chat->unseen = chat->shown > 0;
        /* fr_loaded_show empties the timeline and resets the session's statistics */
        chat->before = fr_figures_take(loaded->session);
    } else if (chat->unseen && fr_session_length(loaded->session) > 0) {
        fr_session_reset(loaded->session);
    }
    return 0;
}

/* Runs the ids in the session. */
static fr_status run(fr_chat *chat, const int32_t *ids, size_t count, bool quiet) {
    fr_status status = fr_prompt_run(chat->loaded.session, ids, count, wants_abort, quiet);
    if (status == FR_OK) chat->unseen = false;
    return status;
}

/* Runs the conversation's ids in the session. *refused: the ids could not be run, and an error line has given the
 * reason. */
static int bring_up_to_date(fr_chat *chat, const fr_prompt *prompt, bool *refused) {
    *refused = show_pictures(chat) != 0;
    if (*refused) return 0;
    chat->before = fr_figures_take(chat->loaded.session);
    say_dropped(chat);
    fr_status status = run(chat, prompt->ids, prompt->count, chat->args->given[FR_ARG_QUIET]);
    *refused = status == FR_INPUT || status == FR_ABORTED;
    if (status == FR_ABORTED) {
        take_back(chat);
        return 0;
    }
    if (status != FR_OK) return fr_exit_status(status);
    fr_figures now = fr_figures_since(fr_figures_take(chat->loaded.session), &chat->before);
    size_t reused = (size_t)now.of[FR_STAT_REUSED_TOKENS];
    return fr_exit_status(
        fr_tracer_text(&chat->loaded.trace, "prompt", prompt->ids + reused, prompt->count - reused, true));
}

static fr_status open_view(fr_chat *chat, const fr_prompt *prompt) {
    json_t *settings = fr_chat_settings(chat->args, chat->loaded.tools, chat->loaded.picture_count > 0);
    fr_status status = fr_reply_view_open(&chat->view, chat->tokenizer, settings, &prompt->rendered, &chat->text);
    json_decref(settings);
    return status;
}

/* Runs the conversation, which ends with the new turn, as a prompt. *refused: it could not be run, and an error line
 * has given the reason. */
static int prompt_session(fr_chat *chat, bool *refused) {
    fr_prompt prompt;
    bool fits;
    int code = fit(chat, 0, &prompt, &fits);
    *refused = code || !fits;
    if (!code && !fits) say_full(chat, prompt.count);
    if (!*refused) code = bring_up_to_date(chat, &prompt, refused);
    if (!code && !*refused) code = fr_exit_status(open_view(chat, &prompt));
    fr_prompt_free(&prompt);
    return *refused ? 0 : code;
}

/* -------------------------------------------------------------------------------------------------------- the reply */

/* Makes room in a full context so that the reply can continue (an fr_make_room_fn). This needs --context-shift. */
static fr_status make_room(void *context, const fr_reply *reply, bool *made) {
    fr_chat *chat = context;
    fr_prompt prompt;
    size_t turns = fr_conversation_turns(chat->asked);
    *made = false;
    if (!chat->args->given[FR_ARG_CONTEXT_SHIFT]) return FR_OK;
    int code = fit(chat, reply->count, &prompt, made);
    if (code || !*made || fr_conversation_turns(chat->asked) == turns || show_pictures(chat)) {
        *made = false;
        fr_prompt_free(&prompt);
        return FR_OK;
    }
    size_t count = prompt.count + reply->count;
    int32_t *ids = fr_resize(NULL, count, sizeof(*ids));
    memcpy(ids, prompt.ids, prompt.count * sizeof(*ids));
    memcpy(ids + prompt.count, reply->ids, reply->count * sizeof(*ids));
    fr_status status = run(chat, ids, count, true);
    free(ids);
    fr_prompt_free(&prompt);
    return status;
}

/* Adds the reply to the conversation. */
static int keep_reply(fr_chat *chat, const fr_reply *reply) {
    const fr_arguments *args = chat->args;
    fr_conversation_add(chat->asked, "assistant", chat->text.bytes, chat->text.length, 0);
    int code = fr_exit_status(fr_reply_view_add(&chat->view, fr_conversation_last(chat->asked)));
    fr_figures figures = fr_figures_since(fr_figures_take(chat->loaded.session), &chat->before);
    if (args->given[FR_ARG_STATS]) fr_figures_print(&figures, stderr);
    fr_tracer_stats(&chat->loaded.trace, fr_end_name(reply->end), &figures, chat->loaded.session);
    return code;
}

/* Generates the reply and streams it. *answered: at least one token of it was generated. */
static int reply_to(fr_chat *chat, bool *answered) {
    fr_reply reply;
    const fr_reply_shift shift = {.make_room = make_room, .context = chat};
    chat->settled = true;
    int code = fr_reply_run(&reply, &chat->loaded, chat->args, &chat->text, &chat->view, &shift);
    *answered = !code && !(reply.end == FR_END_INTERRUPT && reply.kept == 0);
    if (!code && !*answered) take_back(chat);
    if (*answered) {
        putchar('\n');
        fr_flush_output();
        say_dropped(chat);
        fr_reply_remark(&reply, &chat->loaded, chat->args);
        code = keep_reply(chat, &reply);
        chat->settled &= reply.end != FR_END_INTERRUPT;
    }
    fr_reply_free(&reply);
    return code;
}

int fr_chat_answer(fr_chat *chat, json_t *messages, bool *answered) {
    const fr_arguments *args = chat->args;
    bool refused;
    *answered = false;
    chat->asked = messages;
    bool wraps = fr_word_wrap_begin(&chat->wrap, stdout);
    chat->text = (fr_stream){.out = stdout,
                             .wrap = wraps ? &chat->wrap : NULL,
                             .color = args->given[FR_ARG_COLOR],
                             .stops = args->stops,
                             .stop_count = args->stop_count};
    chat->interrupted = false;
    fr_interrupt_next_answer();
    int code = prompt_session(chat, &refused);
    chat->left_out += refused && !chat->interrupted;
    if (!code && !refused) code = reply_to(chat, answered);
    fr_reply_view_close(&chat->view);
    fr_stream_free(&chat->text);
    json_decref(*answered ? chat->messages : messages);
    if (*answered) chat->messages = messages;
    chat->answered += *answered;
    chat->asked = NULL;
    return code;
}

int fr_chat_take(fr_chat *chat, json_t *messages, bool *taken) {
    fr_prompt prompt;
    chat->asked = messages;
    chat->interrupted = false;
    fr_interrupt_next_answer();
    int code = fit(chat, 0, &prompt, taken);
    if (!code && !*taken)
        fr_note("it has %zu tokens, and the context holds %zu (-c N)", prompt.count,
                fr_session_context(chat->loaded.session));
    say_dropped(chat);
    fr_status status = *taken ? run(chat, prompt.ids, prompt.count, chat->args->given[FR_ARG_QUIET]) : FR_OK;
    *taken &= status == FR_OK;
    if (status == FR_ABORTED) fr_note("interrupted: the conversation is as it was");
    code = status == FR_OK || status == FR_ABORTED ? 0 : fr_exit_status(status);
    fr_prompt_free(&prompt);
    json_decref(*taken ? chat->messages : messages);
    if (*taken) chat->messages = messages;
    chat->asked = NULL;
    chat->settled = false;
    return status == FR_INPUT ? 0 : code;
}
