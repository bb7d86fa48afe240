/* Tests messages in the forms in which clients send them, with templates that expect other forms. Arguments of calls
 * may be a text or an object. A content may be a text or a list of parts. Reasoning may be in a member of another name.
 *
 * The expected texts come from transformers, which got the messages in the form that each template expects.
 * tests/references/adapted_cases.py lists these forms by hand. The library must find out the form by trying the
 * template. */
/* suite: hostile */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "src/language/chat/chat_messages.h"
#include "src/language/chat/chat_turns.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static fr_template *compile(const char *source, size_t length) {
    fr_template *template;
    ck_assert_msg(fr_template_compile(source, length, "t", &template) == FR_OK, "%s", fr_last_error());
    return template;
}

static fr_template *open_named(const json_t *root, const char *name) {
    const char *inline_source = json_string_value(json_object_get(json_object_get(root, "inline"), name));
    if (inline_source) return compile(inline_source, strlen(inline_source));
    char path[96];
    size_t length;
    snprintf(path, sizeof path, "tests/data/%s.jinja", name);
    char *source = fr_load_text(path, &length);
    fr_template *template = compile(source, length);
    free(source);
    return template;
}

static unsigned rendered_notes; /* the notes of the last call of render */

/* Adapts messages to the template and renders them, just as fr_chat_render does. */
static fr_status render(const fr_template *template, const json_t *messages, const json_t *context,
                        fr_marked_text *text) {
    json_t *sent = json_deep_copy(messages), *given = json_copy((json_t *)(uintptr_t)context);
    fr_chat_probe probe = {.template = template, .given = given};
    const fr_chat_rules rules = {.late_systems = true, .rearrange = true};
    json_object_set(given, "messages", sent);
    *text = (fr_marked_text){0};
    fr_status status = fr_chat_messages_adapt(sent, &rules, &probe, &rendered_notes);
    if (status == FR_OK) status = fr_template_render(template, NULL, given, 0, text);
    json_decref(given);
    json_decref(sent);
    return status;
}

static void check_conversation(const fr_template *template, const json_t *root, size_t index, const char *name,
                               const json_t *expected) {
    const json_t *conversation = json_array_get(json_object_get(root, "conversations"), index);
    const char *title = json_string_value(json_object_get(conversation, "title"));
    fr_marked_text text;
    fr_status status =
        render(template, json_object_get(conversation, "messages"), json_object_get(root, "context"), &text);
    ck_assert_msg(status == (json_is_null(expected) ? FR_INPUT : FR_OK), "%s, %s: %s", name, title,
                  status == FR_OK ? text.text : fr_last_error());
    if (status == FR_OK)
        ck_assert_msg(strcmp(text.text, json_string_value(expected)) == 0, "%s, %s:\n%s\nnot\n%s", name, title,
                      text.text, json_string_value(expected));
    fr_marked_text_free(&text);
}

START_TEST(sent_conversations) {
    json_t *root = fr_load_json("tests/data/chat/adapted.json"), *texts, *expected;
    const char *name;
    size_t index, templates = 0;
    setenv("TZ", "UTC", 1);
    json_object_foreach (json_object_get(root, "rendered"), name, texts) {
        fr_template *template = open_named(root, name);
        json_array_foreach (texts, index, expected) check_conversation(template, root, index, name, expected);
        ck_assert_uint_eq(index, 41);
        templates++;
        fr_template_close(template);
    }
    ck_assert_uint_eq(templates, 18);
    json_decref(root);
}
END_TEST

static void check_text(const char *source, const char *messages, const char *expected) {
    fr_template *template = compile(source, strlen(source));
    json_t *sent = json_loads(messages, 0, NULL), *context = json_object();
    fr_marked_text text;
    ck_assert_msg(render(template, sent, context, &text) == FR_OK, "%s: %s", source, fr_last_error());
    ck_assert_str_eq(text.text, expected);
    fr_marked_text_free(&text);
    json_decref(context);
    json_decref(sent);
    fr_template_close(template);
}

#define PARTS                                                                                                    \
    "[{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a\"}, {\"type\": \"text\", \"text\": " \
    "\"b\"}]}]"

/* The library must find out whether a template can join the parts of a content. Templates that can't do it may fail in
 * different ways. */
START_TEST(who_takes_parts) {
    static const char *const cases[][2] = {
        {"{% for m in messages %}{{ m.content }}{% endfor %}", "a\nb"},
        {"{% for m in messages %}{{ m.content | tojson }}{% endfor %}", "\"a\\nb\""},
        {"{% for m in messages %}{{ m.content if m.content is string }}{% endfor %}", "a\nb"},
        {"{% for m in messages %}{{ m.content.strip() }}{% endfor %}", "a\nb"},
        {"{% for m in messages %}{{ m.content if m.content is string else m.content[0].text }}{% endfor %}", "a\nb"},
        {"{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{{ raise_exception('parts') }}"
         "{% endif %}{% endfor %}",
         "a\nb"},
        {"{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}{% for p in m.content %}"
         "[{{ p.text }}]{% endfor %}{% endif %}{% endfor %}",
         "[a][b]"},
        {"{% for m in messages %}{{ m.content | map(attribute='text') | join('+') }}{% endfor %}", "a+b"},
        {"nothing of it", "nothing of it"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) check_text(cases[i][0], PARTS, cases[i][1]);
}
END_TEST

#define ITEMS            "{% for p in m.content %}{{ p.text }};{% endfor %}"
#define EACH(body)       "{% for m in messages %}" body "{% endfor %}"
#define SAYS(role, text) "{\"role\": \"" role "\", \"content\": \"" text "\"}"

/* If a template reads only parts, each text must be passed to it as one part. This also applies to a text that was
 * joined from several texts, and to a text that represents a call. If the template can also read texts, these are
 * passed unchanged. */
START_TEST(who_takes_parts_alone) {
    /* SmolVLM's published template, which has no place for calls */
    check_text("<|im_start|>{% for message in messages %}{{message['role'] | capitalize}}"
               "{% if message['content'][0]['type'] == 'image' %}{{':'}}{% else %}{{': '}}{% endif %}"
               "{% for line in message['content'] %}{% if line['type'] == 'text' %}{{line['text']}}"
               "{% elif line['type'] == 'image' %}{{ '<image>' }}{% endif %}{% endfor %}<end_of_utterance>\n"
               "{% endfor %}{% if add_generation_prompt %}{{ 'Assistant:' }}{% endif %}",
               "[" SAYS("system", "s") ", " SAYS(
                   "user", "a") ", "
                                "{\"role\": \"user\", \"content\": [{\"type\": \"input_text\", \"text\": \"b\"}]}, "
                                "{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [{\"id\": \"c\", "
                                "\"function\": {\"name\": \"f\", \"arguments\": {}}}]}, "
                                "{\"role\": \"tool\", \"tool_call_id\": \"c\", \"content\": \"r\"}]",
               "<|im_start|>System: s<end_of_utterance>\nUser: a<end_of_utterance>\nUser: b<end_of_utterance>\n"
               "Assistant: {\"tool_calls\": [{\"name\": \"f\", \"arguments\": {}}]}<end_of_utterance>\n"
               "User: {\"tool_response\": {\"name\": \"f\", \"content\": \"r\"}}<end_of_utterance>\n");
    /* This template refuses system messages, and its turns must alternate. */
    check_text(EACH("{% if (m.role == 'user') != (loop.index0 % 2 == 0) or m.role == 'system' %}"
                    "{{ raise_exception('no') }}{% endif %}<{{ m.role }}>" ITEMS),
               "[" SAYS("system", "s") ", " SAYS("user", "a") ", " SAYS("user", "b") "]", "<user>s\n\na\n\nb;");
    static const char *const cases[][2] = {
        {EACH("{% if m.content is string %}{{ raise_exception('text') }}{% endif %}" ITEMS), "s;a;"},
        {EACH("{% if m.role == 'user' %}" ITEMS "{% else %}{{ m.content + '+' }}{% endif %}"), "s+a;"},
        {EACH("{% if m.content is string %}{{ m.content }}{% else %}" ITEMS "{% endif %}"), "sa"},
        {EACH("{% for p in m.content %}{{ p }}{% endfor %}"), "sa"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        check_text(cases[i][0], "[" SAYS("system", "s") ", " SAYS("user", "a") "]", cases[i][1]);
}
END_TEST

#define CALL(arguments)                                                                                        \
    "[{\"role\": \"user\", \"content\": \"a\"}, {\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": " \
    "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": " arguments "}}]}]"
#define CALLS "{% for m in messages %}{% for c in m.tool_calls or [] %}{% set a = c.function.arguments %}"
#define ENDED "{% endfor %}{% endfor %}"

/* The library must find out in which form a template expects the arguments of calls: only as objects, only as texts, or
 * in either form. */
START_TEST(which_arguments) {
    static const struct {
        const char *source, *text, *object; /* the template's results for a text and for an object */
    } cases[] = {
        {CALLS "{{ a | tojson }}" ENDED, "{\"k\": [1]}", "{\"k\": [1]}"},
        {CALLS "{{ '' + a }}" ENDED, "{\"k\":[1]}", "{\"k\": [1]}"},
        {CALLS "{{ a }}" ENDED, "{\"k\":[1]}", "{\"k\": [1]}"},
        {CALLS "{{ a if a is string else a | tojson }}" ENDED, "{\"k\":[1]}", "{\"k\": [1]}"},
        {CALLS "{{ a if a is string else a | tojson(separators=(',', ':')) }}" ENDED, "{\"k\":[1]}", "{\"k\":[1]}"},
        {CALLS "{{ a if a is string else a | tojson(indent=1) }}" ENDED, "{\"k\":[1]}", "{\n \"k\": [\n  1\n ]\n}"},
        {CALLS "{{ a if a is string }}" ENDED, "{\"k\":[1]}", "{\"k\": [1]}"},
        {CALLS "{% for k, v in a | items %}<{{ k }}>{{ v }}{% endfor %}" ENDED, "<k>[1]", "<k>[1]"},
        {CALLS "{% for k in a %}<{{ k }}>{{ a[k] }}{% endfor %}" ENDED, "<k>[1]", "<k>[1]"},
        {CALLS "{% if a is mapping %}{% for k in a %}<{{ k }}>{{ a[k] }}{% endfor %}{% endif %}" ENDED, "<k>[1]",
         "<k>[1]"},
        {CALLS "{% if a is string %}{{ a }}{% else %}{% for k in a %}<{{ k }}>{{ a[k] }}{% endfor %}{% endif %}" ENDED,
         "<k>[1]", "<k>[1]"},
        {CALLS "{{ c.function.name }}" ENDED, "f", "f"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        check_text(cases[i].source, CALL("\"{\\\"k\\\":[1]}\""), cases[i].text);
        check_text(cases[i].source, CALL("{\"k\": [1]}"), cases[i].object);
    }
}
END_TEST

/* If a model wrote the same key twice, the last value must be used, as in Python. */
START_TEST(repeated_keys) {
    static const char source[] = CALLS "{% for k, v in a | items %}<{{ k }}>{{ v }}{% endfor %}" ENDED;
    check_text(source, CALL("\"{\\\"k\\\": 1, \\\"l\\\": {\\\"m\\\": 1, \\\"m\\\": 2}, \\\"k\\\": 3}\""),
               "<k>3<l>{'m': 2}");
}
END_TEST

/* Some templates show a call only under a condition: the message has no other content, or the call's id has nine
 * letters. Other templates show calls but refuse their results. */
START_TEST(templates_that_ask_for_more) {
    static const char *const cases[] = {
        "{% for m in messages %}{% if m.content is none %}{{ m.tool_calls[0].function.arguments | tojson }}{% endif %}"
        "{% endfor %}",
        "{% for m in messages %}{% if m.tool_calls %}{% if m.tool_calls[0].id | length != 9 %}{{ raise_exception('id') "
        "}}"
        "{% endif %}{{ m.tool_calls[0].function.arguments | tojson }}{% endif %}{% endfor %}",
        "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('tool') }}{% endif %}"
        "{{ m.tool_calls[0].function.arguments | tojson if m.tool_calls }}{% endfor %}",
    };
    static const char sent[] = "[{\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"id\": \"a1b2c3d4e\", "
                               "\"function\": {\"name\": \"f\", \"arguments\": \"{\\\"k\\\":1}\"}}]}]";
    for (size_t i = 0; i < COUNT_OF(cases); i++) check_text(cases[i], sent, "{\"k\": 1}");
}
END_TEST

/* Clients send calls with null as the content, or without a content. Templates that join texts fail on null. Templates
 * that print the content write "None". Templates of both kinds must get an empty text instead. But a template that
 * shows calls only if the content is null must get null. */
START_TEST(calls_without_a_text) {
#define CALLED "{{ m.tool_calls[0].function.name if m.tool_calls }}{% endfor %}"
#define A_CALL "\"tool_calls\": [{\"function\": {\"name\": \"f\", \"arguments\": \"{}\"}}]"
    static const char *const templates[][2] = {
        {"{% for m in messages %}{{ '<' + m.content + '>' }}" CALLED, "<>f"},
        {"{% for m in messages %}<{{ m.content }}>" CALLED, "<>f"},
    };
    static const char null[] = "[{\"role\": \"assistant\", \"content\": null, " A_CALL "}]";
    static const char none[] = "[{\"role\": \"assistant\", " A_CALL "}]";
    for (size_t i = 0; i < 2; i++) {
        check_text(templates[i][0], null, templates[i][1]);
        check_text(templates[i][0], none, templates[i][1]);
    }
    check_text("{% for m in messages %}{% if m.content is none %}{{ m.tool_calls[0].function.name }}{% endif %}"
               "{% endfor %}",
               null, "f");
}
END_TEST

#define SYSTEM_FIRST "{% if messages[0].role != 'system' %}{{ raise_exception('system') }}{% endif %}"
#define SYSTEM       "{\"role\": \"system\", \"content\": \"s\"}, "

/* If a template refuses a conversation without a system message, the library must try again with a system message. */
START_TEST(templates_that_ask_for_a_system_message) {
    check_text(SYSTEM_FIRST "{% for m in messages %}<{{ m.content }}>{% endfor %}",
               "[" SYSTEM "{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a\"}, {\"type\": "
               "\"text\", \"text\": \"b\"}]}]",
               "<s><a\nb>");
    check_text(SYSTEM_FIRST CALLS "{{ a | tojson }}" ENDED,
               "[" SYSTEM "{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [{\"function\": {\"name\": "
               "\"f\", \"arguments\": \"{\\\"k\\\":1}\"}}]}]",
               "{\"k\": 1}");
}
END_TEST

/* ------------------------------------------------------------------------------------------- roles and their order */

#define PRINTS "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
#define RAISES "{{ raise_exception('no') }}"
#define FOR    "{% for m in messages %}"
#define BRIEF  "{\"role\": \"system\", \"content\": \"Be brief.\"}"
#define FRENCH "{\"role\": \"system\", \"content\": \"Speak French.\"}"
#define HI     "{\"role\": \"user\", \"content\": \"hi\"}"
#define YO     "{\"role\": \"assistant\", \"content\": \"yo\"}"
#define AND    "{\"role\": \"user\", \"content\": \"and?\"}"
#define SPOKEN                                                                      \
    "{\"role\": \"system\", \"content\": [{\"type\": \"text\", \"text\": \"Be\"}, " \
    "{\"type\": \"text\", \"text\": \"brief.\"}]}"
#define SHOWN "{\"role\": \"user\", \"content\": [{\"type\": \"image\"}, {\"type\": \"text\", \"text\": \"hi\"}]}"
#define CALLING                                                                                    \
    "{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [{\"id\": \"c\", \"function\": " \
    "{\"name\": \"f\", \"arguments\": {}}}]}"
#define RESULT "{\"role\": \"tool\", \"tool_call_id\": \"c\", \"content\": \"r\"}"

/* These templates have different rules about turns:
 *   - ONE_HEAD: one system message, at the beginning, as Qwen's;
 *   - NO_SYSTEM: no system message, as Gemma 2's;
 *   - ALTERNATES: the user's and the assistant's turns must alternate, as Mistral's;
 *   - LEAVES_OUT: a system message is read only if it is the first message;
 *   - PARTED: contents may be parts. */
#define NAME_OF "{{ m.tool_calls[0].function.name if m.tool_calls }}"
#define ONE_HEAD                                                                                                   \
    FOR "{% if m.role == 'system' and not loop.first %}" RAISES "{% endif %}<{{ m.role }}>{{ m.content }}" NAME_OF \
        "{% endfor %}"
#define NO_SYSTEM                                                                    \
    FOR "{% if m.role == 'system' %}" RAISES "{% endif %}"                           \
        "{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}" RAISES "{% endif %}" \
        "<{{ m.role }}>{{ m.content | trim }}{% endfor %}"
#define ALTERNATES                                                                                      \
    "{% set ns = namespace(i=0) %}" FOR "{% if m.role in ('user', 'assistant') and not m.tool_calls %}" \
    "{% if (m.role == 'user') != (ns.i % 2 == 0) %}" RAISES "{% endif %}{% set ns.i = ns.i + 1 %}"      \
    "{% endif %}<{{ m.role }}>{{ m.content }}{{ m.tool_calls[0].function.name if m.tool_calls }}"       \
    "{% endfor %}"
#define LEAVES_OUT                                                                          \
    "{% if messages[0].role == 'system' %}<system>{{ messages[0].content }}{% endif %}" FOR \
    "{% if m.role != 'system' %}<{{ m.role }}>{{ m.content }}{% endif %}{% endfor %}"
#define PARTED                                                                                 \
    FOR "{% if m.role == 'system' and not loop.first %}" RAISES "{% endif %}<{{ m.role }}>"    \
        "{% if m.content is string %}{{ m.content | trim }}{% else %}{% for p in m.content %}" \
        "{{ '[image]' if p.type == 'image' else p.text | trim }}{% endfor %}{% endif %}{% endfor %}"

/* Like Llama 3.1's, this template raises an error if a message has two calls. */
#define ONE_CALL                                                                                                 \
    FOR "{% if m.tool_calls and m.tool_calls | length != 1 %}" RAISES "{% endif %}<{{ m.role }}>{{ m.content }}" \
        "{{ m.tool_calls[0].function.arguments | tojson if m.tool_calls }}{% endfor %}"
#define TWO_CALLS                                                                                                      \
    "{\"role\": \"assistant\", \"content\": \"so\", \"tool_calls\": [{\"id\": \"c\", \"function\": {\"name\": \"f\", " \
    "\"arguments\": {}}}, {\"id\": \"d\", \"function\": {\"name\": \"f\", \"arguments\": {\"a\": 1}}}]}"
#define OTHER "{\"role\": \"tool\", \"tool_call_id\": \"d\", \"content\": \"s\"}"
#define NO_ORPHANS                                                                                                   \
    "{% set ns = namespace(called=false) %}" FOR "{% if m.role == 'tool' and not ns.called %}" RAISES "{% endif %}"  \
    "{% set ns.called = m.tool_calls is defined or (ns.called and m.role == 'tool') %}<{{ m.role }}>{{ m.content }}" \
    "{{ m.tool_calls[0].function.name if m.tool_calls }}{% endfor %}"
#define NAMELESS "{\"role\": \"tool\", \"content\": \"n\"}"

/* If a template refuses the order of turns, turns are merged, with a blank line between their texts, as in llama.cpp
 * and litellm. The conversations come from reports about engines that refuse them. */
START_TEST(orders_of_turns) {
    static const struct {
        const char *source, *messages, *expected;
        unsigned notes;
    } cases[] = {
        {PRINTS, "[" BRIEF ", " FRENCH ", " HI ", " BRIEF "]",
         "<system>Be brief.<system>Speak French.<user>hi<system>Be brief.", 0},
        {ONE_HEAD, "[" BRIEF ", " FRENCH ", " HI "]", "<system>Be brief.\n\nSpeak French.<user>hi", 0},
        {ONE_HEAD, "[" BRIEF ", " FRENCH ", " BRIEF ", " HI "]",
         "<system>Be brief.\n\nSpeak French.\n\nBe brief.<user>hi", 0},
        {ONE_HEAD, "[" BRIEF ", " HI ", " FRENCH "]", "<system>Be brief.<user>hi\n\nSpeak French.",
         FR_NOTE_LATE_SYSTEM},
        {ONE_HEAD, "[" HI ", " FRENCH "]", "<user>hi\n\nSpeak French.", FR_NOTE_LATE_SYSTEM},
        {ONE_HEAD, "[" BRIEF ", " HI ", " FRENCH ", " YO ", " AND "]",
         "<system>Be brief.<user>hi\n\nSpeak French.<assistant>yo<user>and?", FR_NOTE_LATE_SYSTEM},
        {ONE_HEAD, "[" HI ", " YO ", " FRENCH ", " BRIEF ", " AND "]",
         "<user>hi<assistant>yo<user>Speak French.\n\nBe brief.\n\nand?", FR_NOTE_LATE_SYSTEM},
        {ONE_HEAD, "[" BRIEF ", " HI ", " CALLING ", " RESULT ", " FRENCH "]",
         "<system>Be brief.\n\nSpeak French.<user>hi<assistant>f<tool>r", FR_NOTE_LATE_SYSTEM},
        {ONE_HEAD, "[" HI ", " CALLING ", " RESULT ", " FRENCH "]", "<system>Speak French.<user>hi<assistant>f<tool>r",
         FR_NOTE_LATE_SYSTEM},
        {LEAVES_OUT, "[" BRIEF ", " FRENCH ", " HI ", " FRENCH "]",
         "<system>Be brief.\n\nSpeak French.<user>hi\n\nSpeak French.", FR_NOTE_LATE_SYSTEM},
        {PARTED, "[" SPOKEN ", " FRENCH ", " SHOWN ", " SPOKEN "]",
         "<system>Be\nbrief.\n\nSpeak French.<user>[image]hi\n\nBe\nbrief.", FR_NOTE_LATE_SYSTEM},
        {NO_SYSTEM, "[" BRIEF ", " HI ", " YO "]", "<user>Be brief.\n\nhi<assistant>yo", FR_NOTE_NO_SYSTEM},
        {NO_SYSTEM, "[" SPOKEN ", " FRENCH ", " HI "]", "<user>Be\nbrief.\n\nSpeak French.\n\nhi", FR_NOTE_NO_SYSTEM},
        {NO_SYSTEM, "[" SPOKEN "]", "<user>Be\nbrief.", FR_NOTE_NO_SYSTEM},
        {NO_SYSTEM, "[" BRIEF "]", "<user>Be brief.", FR_NOTE_NO_SYSTEM},
        {NO_SYSTEM, "[" HI "]", "<user>hi", 0},
        {NO_SYSTEM, "[" HI ", " YO ", " FRENCH ", " AND ", " AND "]",
         "<user>hi<assistant>yo<user>Speak French.\n\nand?\n\nand?", FR_NOTE_LATE_SYSTEM | FR_NOTE_JOINED_TURNS},
        {ALTERNATES, "[" HI ", " AND ", " YO ", " YO ", " AND "]", "<user>hi\n\nand?<assistant>yo\n\nyo<user>and?",
         FR_NOTE_JOINED_TURNS},
        {ALTERNATES, "[" HI ", " CALLING ", " RESULT ", " YO "]", "<user>hi<assistant>f<tool>r<assistant>yo", 0},
        {ALTERNATES, "[" HI ", " YO ", " CALLING "]", "<user>hi<assistant>yof", FR_NOTE_JOINED_TURNS},
        {PRINTS, "[" HI ", " AND ", " YO ", " YO "]", "<user>hi<user>and?<assistant>yo<assistant>yo", 0},
        {ONE_CALL, "[" HI ", " TWO_CALLS ", " OTHER ", " RESULT ", " AND "]",
         "<user>hi<assistant>so{}<tool>r<assistant>{\"a\": 1}<tool>s<user>and?", FR_NOTE_PARTED_CALLS},
        {ONE_CALL, "[" HI ", " TWO_CALLS ", " NAMELESS ", " OTHER ", " NAMELESS "]",
         "<user>hi<assistant>so{}<tool>n<assistant>{\"a\": 1}<tool>s<tool>n", FR_NOTE_PARTED_CALLS},
        {ONE_CALL, "[" HI ", " TWO_CALLS "]", "<user>hi<assistant>so{}<assistant>{\"a\": 1}", FR_NOTE_PARTED_CALLS},
        {ONE_CALL, "[" HI ", " CALLING ", " RESULT "]", "<user>hi<assistant>{}<tool>r", 0},
        {NO_ORPHANS, "[" RESULT ", " HI ", " CALLING ", " RESULT "]",
         "<user>{\"tool_response\": {\"content\": \"r\"}}<user>hi<assistant>f<tool>r", FR_NOTE_ORPHANS},
        {NO_ORPHANS, "[" HI ", " CALLING ", " AND ", " RESULT ", " OTHER ", " YO "]",
         "<user>hi<assistant>f<user>and?<user>{\"tool_response\": {\"name\": \"f\", \"content\": \"r\"}}"
         "<user>{\"tool_response\": {\"content\": \"s\"}}<assistant>yo",
         FR_NOTE_ORPHANS},
        {NO_SYSTEM, "[" HI ", " RESULT ", " YO "]",
         "<user>hi\n\n{\"tool_response\": {\"content\": \"r\"}}<assistant>yo", FR_NOTE_ORPHANS | FR_NOTE_JOINED_TURNS},
        {PRINTS, "[" HI ", " RESULT "]", "<user>hi<tool>r", 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        rendered_notes = 0;
        check_text(cases[i].source, cases[i].messages, cases[i].expected);
        ck_assert_msg(rendered_notes == cases[i].notes, "%s: notes %u", cases[i].messages, rendered_notes);
    }
}
END_TEST

/* If a template doesn't show calls, the calls and their results become texts, as in llama.cpp's generic handler. The
 * text of a call follows the text of its message. The text of a result becomes a part of the user's turn and has the
 * name of the call. */
START_TEST(calls_that_a_template_leaves_out) {
#define SPOKEN_CALLS                                                                                          \
    "{\"role\": \"assistant\", \"content\": \"Let me see.\", \"tool_calls\": [{\"id\": \"c\", \"function\": " \
    "{\"name\": "                                                                                             \
    "\"f\", \"arguments\": \"{\\\"a\\\": 1}\"}}, {\"id\": \"d\", \"function\": {\"name\": \"g\"}}]}"
#define OF_G    "{\"role\": \"tool\", \"tool_call_id\": \"d\", \"content\": [{\"type\": \"text\", \"text\": \"s\"}]}"
#define UNNAMED "{\"role\": \"tool\", \"content\": \"t\"}"
    rendered_notes = 0;
    check_text(PRINTS, "[" HI ", " SPOKEN_CALLS ", " OF_G ", " RESULT ", " UNNAMED ", " YO "]",
               "<user>hi<assistant>Let me see.\n\n{\"tool_calls\": [{\"name\": \"f\", \"arguments\": {\"a\": 1}}, "
               "{\"name\": \"g\", \"arguments\": {}}]}<user>{\"tool_response\": {\"name\": \"g\", \"content\": \"s\"}}"
               "<user>{\"tool_response\": {\"name\": \"f\", \"content\": \"r\"}}<user>{\"tool_response\": "
               "{\"content\": \"t\"}}<assistant>yo");
    ck_assert_uint_eq(rendered_notes, FR_NOTE_NO_CALLS);
    check_text(NO_SYSTEM, "[" HI ", " CALLING ", " RESULT ", " AND "]",
               "<user>hi<assistant>{\"tool_calls\": [{\"name\": \"f\", \"arguments\": {}}]}<user>{\"tool_response\": "
               "{\"name\": \"f\", \"content\": \"r\"}}\n\nand?");
}
END_TEST

/* Mistral's templates raise an error for an id that does not have nine letters and digits. So the library replaces such
 * an id by another one. A call and its result must get the same id, and an id that fits must be kept. Calls and results
 * without ids get ids too. A result without an id belongs to the call of the same name. If no name fits, results belong
 * to calls in their order. */
START_TEST(ids_of_nine_letters) {
#define NINE                                                                                            \
    FOR "{% for c in m.tool_calls or [] %}{% if c.id | length != 9 %}" RAISES "{% endif %}<{{ c.id }}>" \
        "{{ c.function.name }}{{ c.function.arguments | tojson }}{% endfor %}{% if m.role == 'tool' %}" \
        "{% if m.tool_call_id | length != 9 %}" RAISES "{% endif %}<{{ m.tool_call_id }}>{% endif %}{% endfor %}"
#define CALL_AND(id, result)                                                                            \
    "{\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [{\"id\": \"" id "\", \"function\": " \
    "{\"name\": \"f\", \"arguments\": {}}}]}, {\"role\": \"tool\", " result "}"
#define CALL_OF(id)     CALL_AND(id, "\"tool_call_id\": \"" id "\", \"content\": \"r\"")
#define LONE_CALL(name) "{\"function\": {\"name\": \"" name "\", \"arguments\": {}}}"
    check_text(NINE, "[" HI ", " CALL_OF("abcdefghi") "]", "<abcdefghi>f{}<abcdefghi>");
    check_text(FOR "{{ m.tool_calls[0].id if m.tool_calls }}{{ m.tool_call_id }}" NAME_OF "{% endfor %}",
               "[" HI ", " CALL_OF("call_1") "]", "call_1fcall_1");
    check_text(FOR "{% if m.role == 'tool' and m.tool_call_id | length != 9 %}" RAISES "{% endif %}{{ m.content }}"
                   "{{ m.tool_calls[0].function.arguments | tojson if m.tool_calls }}{% endfor %}",
               "[" HI ", " RESULT "]", "hir");
    check_text(NINE,
               "[" HI ", {\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [" LONE_CALL("f") ", " LONE_CALL(
                   "g") "]}, {\"role\": \"tool\", \"name\": \"g\", \"content\": \"r\"}, {\"role\": \"tool\", "
                        "\"content\": \"s\"}]",
               "<m0001c000>f{}<m0001c001>g{}<m0001c001><m0001c000>");
    check_text(NINE,
               "[" HI ", {\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [" LONE_CALL(
                   "f") "]}, {\"role\": \"tool\", \"tool_call_id\": \"abcdefghi\", \"content\": \"r\"}]",
               "<abcdefghi>f{}<abcdefghi>");
    check_text(NINE,
               "[" HI ", {\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [" LONE_CALL("f") ", " LONE_CALL(
                   "g") "]}, {\"role\": \"tool\", \"name\": \"g\", \"content\": \"r\"}]",
               "<m0001c000>f{}<m0001c001>g{}<m0001c001>");
    check_text(NINE, "[" HI ", " CALL_AND("abcdefghi", "\"content\": \"r\"") "]", "<abcdefghi>f{}<abcdefghi>");
    fr_template *template = compile(NINE, strlen(NINE));
    json_t *sent = json_loads("[" HI ", " CALL_OF("call_0123456789abcdef") "]", 0, NULL), *context = json_object();
    fr_marked_text text;
    ck_assert_msg(render(template, sent, context, &text) == FR_OK, "%s", fr_last_error());
    ck_assert_uint_eq(strlen(text.text), strlen("<abcdefghi>f{}<abcdefghi>"));
    ck_assert_msg(memcmp(text.text, text.text + strlen("<abcdefghi>f{}"), strlen("<abcdefghi>")) == 0, "%s", text.text);
    fr_marked_text_free(&text);
    json_decref(context);
    json_decref(sent);
    fr_template_close(template);
}
END_TEST

#define OF(role) "[" HI ", {\"role\": \"" role "\", \"content\": \"x\"}]"

/* If a template does not know a role, the library replaces it by the usual role of the same meaning. A template that
 * only prints the name of a role, even in upper or lower case, counts as not knowing the role. */
START_TEST(names_of_roles) {
    static const char *const cases[][3] = {
        {PRINTS, OF("developer"), "<user>hi<system>x"},
        {FOR "<{{ m.role | upper }}>{{ m.content }}{% endfor %}", OF("developer"), "<USER>hi<SYSTEM>x"},
        {FOR "{% if m.role in ('user', 'system') %}{{ m.content }}{% endif %}{% endfor %}", OF("developer"), "hix"},
        {FOR "{% if m.role not in ('user', 'system', 'assistant') %}" RAISES "{% endif %}{{ m.content }}{% endfor %}",
         OF("developer"), "hix"},
        {FOR "{{ 'D' if m.role == 'developer' }}<{{ m.role }}>{% endfor %}", OF("developer"), "<user>D<developer>"},
        {FOR "{% if m.role not in ('user', 'developer') %}" RAISES "{% endif %}<{{ m.role }}>{% endfor %}",
         OF("developer"), "<user><developer>"},
        {FOR "<{{ m.role }}>{{ m.content }}" NAME_OF "{% endfor %}",
         "[" HI ", " CALLING ", {\"role\": \"function\", \"name\": \"f\", \"content\": \"r\"}]",
         "<user>hi<assistant>f<tool>r"},
        {FOR "<{{ m.role }}{{ m.tool_call_id }}>{{ m.tool_calls[0].function.arguments | tojson if m.tool_calls }}"
             "{{ m.function_call }}{% endfor %}",
         "[" HI ", {\"role\": \"assistant\", \"content\": null, \"function_call\": {\"name\": \"f\", "
         "\"arguments\": \"{\\\"a\\\": 5}\"}}, {\"role\": \"function\", \"name\": \"f\", \"content\": \"r\"}]",
         "<user><assistant>{\"a\": 5}<toolcall00001>"},
        {FOR "{{ 'F' if m.role == 'function' }}<{{ m.role }}>{% endfor %}", OF("function"), "<user>F<function>"},
        {PRINTS, OF("ipython"), "<user>hi<tool>x"},
        {PRINTS, OF("narrator"), "<user>hi<narrator>x"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) check_text(cases[i][0], cases[i][1], cases[i][2]);
}
END_TEST

/* The library finds out properties of a template by trying it, and keeps these answers for each set of variables. If
 * there are too many sets, the answers for the oldest set are dropped. */
START_TEST(kept_answers) {
    fr_kept_answers kept;
    fr_chat_answers answers = {0};
    int found;
    json_t *sets[FR_KEPT_MAX + 1], *large = json_object();
    fr_kept_answers_open(&kept);
    for (int i = 0; i <= FR_KEPT_MAX; i++) {
        sets[i] = json_pack("{s:i, s:b}", "n", i, "add_generation_prompt", 1);
        answers.count = 0;
        fr_chat_answers_add(&answers, "system", i);
        fr_kept_answers_put(&kept, sets[i], &answers);
    }
    for (int i = 0; i <= FR_KEPT_MAX; i++) {
        fr_kept_answers_get(&kept, sets[i], &answers);
        bool known = fr_chat_answers_find(&answers, "system", &found);
        ck_assert_msg(known == (i > 0) && (!known || found == i), "%d", i);
        ck_assert(!fr_chat_answers_find(&answers, "late", &found));
        json_decref(sets[i]);
    }
    char *text = malloc(4000);
    memset(text, 'x', 3999);
    text[3999] = '\0';
    json_object_set_new(large, "documents", json_string(text));
    fr_kept_answers_put(&kept, large, &answers);
    fr_kept_answers_get(&kept, large, &answers);
    ck_assert_uint_eq(answers.count, 0);
    for (int i = 0; i < 2 * FR_ANSWERS_MAX; i++) fr_chat_answers_add(&answers, "role", i);
    fr_chat_answers_add(&answers, text, 1);
    ck_assert_uint_eq(answers.count, FR_ANSWERS_MAX);
    free(text);
    json_decref(large);
    fr_kept_answers_close(&kept);
}
END_TEST

FR_SUITE("chat_messages") {
    TCase *tcase = tcase_create("chat_messages");
    tcase_add_test(tcase, sent_conversations);
    tcase_add_test(tcase, who_takes_parts);
    tcase_add_test(tcase, who_takes_parts_alone);
    tcase_add_test(tcase, which_arguments);
    tcase_add_test(tcase, repeated_keys);
    tcase_add_test(tcase, templates_that_ask_for_more);
    tcase_add_test(tcase, calls_without_a_text);
    tcase_add_test(tcase, templates_that_ask_for_a_system_message);
    tcase_add_test(tcase, orders_of_turns);
    tcase_add_test(tcase, calls_that_a_template_leaves_out);
    tcase_add_test(tcase, names_of_roles);
    tcase_add_test(tcase, ids_of_nine_letters);
    tcase_add_test(tcase, kept_answers);
    suite_add_tcase(suite, tcase);
}
