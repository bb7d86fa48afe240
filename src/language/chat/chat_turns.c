/* Moves and joins turns (chat_turns.h). */
#include "src/language/chat/chat_turns.h"

#include <string.h>

#include "base/error.h"
#include "base/text_buffer.h"
#include "formats/json_wide.h"
#include "src/language/chat/chat_content.h"

#define BETWEEN "\n\n"

static fr_status no_memory(void) {
    return fr_fail_memory("a conversation", 0);
}

/* ---------------------------------------------------------------------------------------------------------- joining */

/* Joins two texts. If both have text, a blank line separates them. NULL: memory ran out. */
static json_t *join_texts(const json_t *first, const json_t *second) {
    fr_text_buffer text = {0};
    fr_text_append_string(&text, "");
    fr_text_append(&text, json_string_value(first), json_string_length(first));
    if (json_string_length(first) && json_string_length(second)) fr_text_append_string(&text, BETWEEN);
    fr_text_append(&text, json_string_value(second), json_string_length(second));
    json_t *joined = text.status == FR_OK ? json_stringn(text.bytes, text.length) : NULL;
    fr_text_free(&text);
    return joined;
}

/* Makes a new list of parts from a content. */
static json_t *parts_of(const json_t *content) {
    if (json_is_array(content)) return json_copy((json_t *)(uintptr_t)content);
    return fr_chat_parted_content((json_t *)(uintptr_t)content);
}

/* Joins two lists of parts. The last text of the first list and the first text of the second list become one text,
 * because templates strip the blanks of each part. */
static json_t *join_parts(const json_t *first, const json_t *second) {
    json_t *parts = parts_of(first), *more = parts_of(second);
    size_t count = json_array_size(parts);
    const json_t *last = fr_chat_text_of(json_array_get(parts, count - 1)),
                 *next = fr_chat_text_of(json_array_get(more, 0));
    bool good = parts && more;
    if (good && last && next) {
        json_t *part = json_pack("{s:s, s:o}", "type", "text", "text", join_texts(last, next));
        good = json_array_set_new(parts, count - 1, part) == 0 && json_array_remove(more, 0) == 0;
    }
    good = good && json_array_extend(parts, more) == 0;
    json_decref(more);
    if (good) return parts;
    json_decref(parts);
    return NULL;
}

json_t *fr_chat_join_contents(const json_t *first, const json_t *second) {
    json_t *one = fr_chat_plain_content(first), *other = fr_chat_plain_content(second);
    json_t *joined = !one || !other                                   ? NULL
                     : fr_json_is_text(one) && fr_json_is_text(other) ? join_texts(one, other)
                                                                      : join_parts(one, other);
    json_decref(one);
    json_decref(other);
    return joined;
}

static bool is_content(const json_t *content) {
    return fr_json_is_text(content) || json_array_size(content) > 0;
}

/* Sets a member of `into` from the same member of two messages. If both messages have the member, `join` joins the two
 * values; otherwise the only value is used. */
static fr_status join_member(json_t *into, const char *key, const json_t *first, const json_t *second,
                             json_t *(*join)(const json_t *first, const json_t *second)) {
    const json_t *one = json_object_get(first, key), *other = json_object_get(second, key);
    json_t *joined = !is_content(one)     ? json_incref((json_t *)(uintptr_t)other)
                     : !is_content(other) ? json_incref((json_t *)(uintptr_t)one)
                                          : join(one, other);
    if (!joined && (one || other)) return no_memory();
    return !joined || json_object_set_new(into, key, joined) == 0 ? FR_OK : no_memory();
}

static json_t *join_lists(const json_t *first, const json_t *second) {
    json_t *list = json_copy((json_t *)(uintptr_t)first);
    if (json_array_extend(list, (json_t *)(uintptr_t)second) == 0) return list;
    json_decref(list);
    return NULL;
}

fr_status fr_chat_join_turns(json_t *messages, size_t to, size_t from) {
    static const char *const thoughts[] = {"reasoning_content", "reasoning", "thinking"};
    json_t *into = json_array_get(messages, to), *gone = json_array_get(messages, from);
    const json_t *first = to < from ? into : gone, *second = to < from ? gone : into;
    FR_TRY(join_member(into, "content", first, second, fr_chat_join_contents));
    FR_TRY(join_member(into, "tool_calls", first, second, join_lists));
    for (size_t i = 0; i < sizeof thoughts / sizeof *thoughts; i++)
        FR_TRY(join_member(into, thoughts[i], first, second, join_texts));
    json_array_remove(messages, from);
    return FR_OK;
}

/* -------------------------------------------------------------------------------------------------- system messages */

static size_t count_systems(const json_t *messages, size_t from) {
    size_t at = from;
    while (fr_chat_is_role(json_array_get(messages, at), "system")) at++;
    return at - from;
}

static size_t find_late_system(const json_t *messages, size_t from) {
    while (from < json_array_size(messages) && !fr_chat_is_role(json_array_get(messages, from), "system")) from++;
    return from;
}

/* Takes the system messages from `at` on, which follow other turns, and joins them to the user's turn before or after
 * them. If there is no such turn, moves them to the head. */
static fr_status move_late_system(json_t *messages, size_t at) {
    json_t *message = json_array_get(messages, at);
    while (count_systems(messages, at) > 1) FR_TRY(fr_chat_join_turns(messages, at, at + 1));
    if (fr_chat_is_role(json_array_get(messages, at - 1), "user")) return fr_chat_join_turns(messages, at - 1, at);
    if (fr_chat_is_role(json_array_get(messages, at + 1), "user")) return fr_chat_join_turns(messages, at + 1, at);
    if (fr_chat_is_role(json_array_get(messages, 0), "system")) return fr_chat_join_turns(messages, 0, at);
    if (json_array_insert(messages, 0, message) != 0) return no_memory();
    json_array_remove(messages, at + 1);
    return FR_OK;
}

static fr_status move_late_systems(json_t *messages, size_t at) {
    while ((at = find_late_system(messages, at)) < json_array_size(messages)) FR_TRY(move_late_system(messages, at));
    return FR_OK;
}

/* Joins the system message at the head to the first user's turn. If no user's turn exists, the system message becomes
 * a user's turn. */
static fr_status move_system_to_user(json_t *messages) {
    size_t at = 1, count = json_array_size(messages);
    while (at < count && !fr_chat_is_role(json_array_get(messages, at), "user")) at++;
    if (at < count) return fr_chat_join_turns(messages, at, 0);
    json_t *message = json_array_get(messages, 0);
    bool made =
        json_object_set_new(message, "role", json_string("user")) == 0 &&
        json_object_set_new(message, "content", fr_chat_plain_content(json_object_get(message, "content"))) == 0;
    return made ? FR_OK : no_memory();
}

static fr_status arrange_systems(json_t *messages, bool late_systems, fr_chat_probe *probe, unsigned *notes) {
    size_t head = count_systems(messages, 0);
    bool refused = head && fr_chat_probe_system(probe) != FR_TAKEN;
    if (head > 1 && (refused || fr_chat_probe_second_system(probe) != FR_TAKEN))
        for (; head > 1; head--) FR_TRY(fr_chat_join_turns(messages, 0, 1));
    if (find_late_system(messages, head) < json_array_size(messages)) {
        fr_taken late = fr_chat_probe_late_system(probe);
        if (late == FR_DROPPED || (late == FR_REFUSED && late_systems)) {
            FR_TRY(move_late_systems(messages, head));
            *notes |= FR_NOTE_LATE_SYSTEM;
        }
    }
    if (count_systems(messages, 0) == 0 || fr_chat_probe_system(probe) == FR_TAKEN) return FR_OK;
    *notes |= FR_NOTE_NO_SYSTEM;
    return move_system_to_user(messages);
}

/* --------------------------------------------------------------------------------------- turns of one role in a row */

static bool is_twice(const json_t *messages, size_t at, const char *role) {
    return fr_chat_is_role(json_array_get(messages, at), role) &&
           fr_chat_is_role(json_array_get(messages, at + 1), role);
}

static fr_status arrange_turns(json_t *messages, const char *role, fr_chat_probe *probe, unsigned *notes) {
    for (size_t at = 0; at + 1 < json_array_size(messages);) {
        if (!is_twice(messages, at, role)) {
            at++;
            continue;
        }
        if (!fr_chat_probe_alternates(probe, role)) return FR_OK;
        FR_TRY(fr_chat_join_turns(messages, at, at + 1));
        *notes |= FR_NOTE_JOINED_TURNS;
    }
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------ calls */

/* Moves the result of a call to messages[at], where results begin. If no result has the call's id, the first result is
 * moved. Gives the number of results that were moved, 0 or 1. */
static size_t bring_result(json_t *messages, size_t at, const json_t *call) {
    const json_t *id = json_object_get(call, "id");
    size_t found = at;
    if (!fr_chat_is_role(json_array_get(messages, at), "tool")) return 0;
    for (size_t i = at; fr_chat_is_role(json_array_get(messages, i), "tool"); i++) {
        if (!id || !json_equal(json_object_get(json_array_get(messages, i), "tool_call_id"), id)) continue;
        found = i;
        break;
    }
    json_t *result = json_incref(json_array_get(messages, found));
    json_array_remove(messages, found);
    return json_array_insert_new(messages, at, result) == 0;
}

/* Gives each call of messages[at] except the first a message of its own, and puts each result after its call. */
static fr_status part_calls(json_t *messages, size_t at) {
    json_t *message = json_array_get(messages, at), *calls = json_object_get(message, "tool_calls");
    bool speaks = fr_json_is_text(json_object_get(message, "content"));
    at += 1 + bring_result(messages, at + 1, json_array_get(calls, 0));
    while (json_array_size(calls) > 1) {
        json_t *call = json_array_get(calls, 1);
        json_t *own = json_pack("{s:s, s:o, s:[O]}", "role", "assistant", "content",
                                speaks ? json_string("") : json_null(), "tool_calls", call);
        if (json_array_insert_new(messages, at, own) != 0) return no_memory();
        at += 1 + bring_result(messages, at + 1, call);
        json_array_remove(calls, 1);
    }
    return FR_OK;
}

static fr_status arrange_calls(json_t *messages, fr_chat_probe *probe, unsigned *notes) {
    for (size_t at = 0; at < json_array_size(messages); at++) {
        if (json_array_size(json_object_get(json_array_get(messages, at), "tool_calls")) < 2) continue;
        if (!fr_chat_probe_one_call(probe)) return FR_OK;
        FR_TRY(part_calls(messages, at));
        *notes |= FR_NOTE_PARTED_CALLS;
    }
    return FR_OK;
}

fr_status fr_chat_turns_arrange(json_t *messages, bool late_systems, fr_chat_probe *probe, unsigned *notes) {
    FR_TRY(arrange_systems(messages, late_systems, probe, notes));
    FR_TRY(arrange_turns(messages, "user", probe, notes));
    FR_TRY(arrange_turns(messages, "assistant", probe, notes));
    return arrange_calls(messages, probe, notes);
}
