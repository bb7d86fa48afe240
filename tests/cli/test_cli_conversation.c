/* Tests the commands of chat that change the conversation. They generate another reply, read and write files of
 * messages, make room in a full context, and set tools. After each of them the model must answer as in a fresh
 * conversation with the same turns. Models that are named without -m, and models without a template, are tested too. */
#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/changed_folder.h"
#include "tests/support/command.h"
#include "tests/support/suite.h"
#include "tests/support/token_files.h"

#define TOOLS "tests/data/chat/tools.json"

/* Checks that standard error contains this text. */
static void expect_note(const fr_command *c, const char *says) {
    ck_assert_msg(strstr(c->err, says) != NULL, "%s", c->err);
}

static void expect_same(fr_command *a, fr_command *b) {
    ck_assert_str_eq(a->out, b->out);
    fr_command_free(a);
    fr_command_free(b);
}

/* ---------------------------------------------------------------------------------------------------- another reply */

START_TEST(a_reply_is_drawn_anew) {
    const char *options = "--temp 1 -n 12 --stop ~";
    fr_command c = fr_command_feed("Hello.\n/regen\n/regen\nAnd?\n", TALK "%s", options), first, second, third;
    first = fr_command_feed("Hello.\n", TALK "%s", options);
    second = fr_command_feed("Hello.\n", TALK "%s --seed 1", options);
    third = fr_command_feed("Hello.\nAnd?\n", TALK "%s --seed 2", options);
    ck_assert_str_ne(first.out, second.out);
    char expected[4096];
    snprintf(expected, sizeof expected, "%s%s%s", first.out, second.out, third.out);
    ck_assert_str_eq(c.out, expected);
    expect_note(&c, "another reply, of --seed 1");
    fr_command_free(&c);
    fr_command_free(&first);
    fr_command_free(&second);
    fr_command_free(&third);
}
END_TEST

START_TEST(a_greedy_reply_is_the_only_one) {
    fr_command c = fr_command_feed("/regen\nHello.\n/regen\nAnd?\n", TALK "-n 12 --stop ~"), plain;
    plain = fr_command_feed("Hello.\nAnd?\n", TALK "-n 12 --stop ~");
    expect_note(&c, "there is no reply yet");
    expect_note(&c, "the reply would be the same");
    expect_same(&c, &plain);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------ files */

static json_t *read_messages(const char *path) {
    json_t *messages = json_load_file(path, 0, NULL);
    ck_assert_ptr_nonnull(messages);
    return messages;
}

static const char *member(const json_t *messages, size_t index, const char *key) {
    return json_string_value(fr_json_get(json_array_get(messages, index), key));
}

/* The name of the saved file contains blanks. */
START_TEST(a_conversation_is_kept_in_a_file) {
    fr_test_folder folder;
    char lines[512];
    fr_folder_make(&folder);
    fclose(fr_folder_create(&folder, "what was said.json"));
    const char *options = "-n 12 --stop ~ --system Briefly.";
    snprintf(lines, sizeof lines, "Hello.\nA \"b\"\\\nc\n/save %s\nMore?\n", folder.file);
    fr_command c = fr_command_feed(lines, TALK "%s", options), again;
    expect_note(&c, "what was said.json: written; the conversation has 2 turns");
    json_t *messages = read_messages(folder.file);
    ck_assert_uint_eq(json_array_size(messages), 5);
    ck_assert_str_eq(member(messages, 0, "role"), "system");
    ck_assert_str_eq(member(messages, 0, "content"), "Briefly.");
    ck_assert_str_eq(member(messages, 3, "role"), "user");
    ck_assert_str_eq(member(messages, 3, "content"), "A \"b\"\nc");
    ck_assert_str_eq(member(messages, 4, "role"), "assistant");
    ck_assert_ptr_nonnull(strstr(c.out, member(messages, 4, "content")));
    snprintf(lines, sizeof lines, "Never mind.\n/load %s\nMore?\n", folder.file);
    again = fr_command_feed(lines, TALK "-n 12 --stop ~");
    expect_note(&again, "what was said.json: read; the conversation has 2 turns");
    ck_assert_str_eq(strrchr(again.out + 1, ' '), strrchr(c.out + 1, ' '));
    json_decref(messages);
    fr_command_free(&c);
    fr_command_free(&again);
    unlink(folder.file);
    fr_folder_remove(&folder);
}
END_TEST

/* If settings are changed between turns, the chat must answer like a chat that started with these settings. */
START_TEST(settings_are_changed_between_turns) {
    static const char *const same[][2] = {
        {"/set temp 0.9\n/set seed 7\n/set top_k=20", "--temp 0.9 --seed 7 --top-k 20"},
        {"/set --repeat-penalty 1.5", "--repeat-penalty 1.5 --temp 0"},
        {"/set n 5", "-n 5 --temp 0"},
        {"/system Be brief.", "--system 'Be brief.' --temp 0"},
        {"/system Be long.\n/system -", "--temp 0"},
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        char lines[256];
        snprintf(lines, sizeof lines, "%s\nHello.\nAnd more?\n", same[i][0]);
        fr_command changed = fr_command_feed(lines, TALK "-n 20 --ignore-eos --stop ~ --quiet"), from_the_start;
        from_the_start = fr_command_feed("Hello.\nAnd more?\n",
                                         "chat " DEMO "-n 20 --ignore-eos --stop ~ %s --quiet "
                                         "--top-p 1 --min-p 0 --samplers edtkpm%s",
                                         same[i][1], strstr(same[i][1], "--top-k") ? "" : " --top-k 0");
        ck_assert_str_eq(changed.out, from_the_start.out);
        ck_assert_str_eq(changed.err, "");
        fr_command_free(&changed);
        fr_command_free(&from_the_start);
    }
}
END_TEST

START_TEST(settings_that_can_not_be_are_refused) {
    static const char *const refused[][2] = {
        {"/set temp hot", "temp hot: not a number"},
        {"/set top-p 2", "top-p 2 is out of range"},
        {"/set threads 2", "threads is none of"},
        {"/set samplers top_k;warm", "warm is not known"},
        {"/set n 0", "takes 1 or more"},
        {"/set mirostat 1", "not built"},
        {"/read no/such/file", "No such file"},
        {"/read tests/data", "Is a directory"},
        {"/system", "there is no system turn"},
        {"/read tests/data/llama/q4_0.gguf", "is no text"},
    };
    fr_command plain = fr_command_feed("Hello.\n", TALK "-n 12");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        char lines[128];
        snprintf(lines, sizeof lines, "%s\nHello.\n", refused[i][0]);
        fr_command c = fr_command_feed(lines, TALK "-n 12");
        ck_assert_msg(strstr(c.err, refused[i][1]) != NULL, "%s: %s", refused[i][0], c.err);
        ck_assert_str_eq(c.out, plain.out);
        fr_command_free(&c);
    }
    fr_command_free(&plain);
}
END_TEST

/* /read must put a file's text before the next turn, and only before that turn. /undo must remove the text together
 * with the turn. */
START_TEST(files_are_read_into_a_turn) {
    fr_test_folder folder;
    char lines[512];
    fr_folder_make(&folder);
    FILE *file = fr_folder_create(&folder, "notes.txt");
    fputs("One note.", file);
    fclose(file);
    snprintf(lines, sizeof lines, "/read %s\n/undo\n/read %s\nWhat is it?\nAnd?\n", folder.file, folder.file);
    fr_command c = fr_command_feed(lines, TALK "-n 12 --stop ~"), said;
    said = fr_command_feed("One note.\\\nWhat is it?\nAnd?\n", TALK "-n 12 --stop ~");
    ck_assert_str_eq(c.out, said.out);
    expect_note(&c, "notes.txt: 9 bytes, in the next turn");
    expect_note(&c, "the text for the next turn is taken back");
    fr_command_free(&c);
    fr_command_free(&said);
    unlink(folder.file);
    fr_folder_remove(&folder);
}
END_TEST

/* tokenize counts the tokens of the text that the template makes of the conversation. /context must print the same
 * number. */
START_TEST(the_context_and_figures_are_told) {
    fr_command c = fr_command_feed("/context\nHello.\n/context\n/stats\n/set\n/quit\nNever.\n", TALK "-c 512 -n 4");
    expect_note(&c, "0 turns, 0 of 512 tokens: the context is 0% full");
    const char *told = strstr(c.err, "1 turn, ");
    int count = 0;
    ck_assert(told && sscanf(told, "1 turn, %d of 512 tokens", &count) == 1);
    ck_assert_int_gt(count, 12);
    ck_assert_int_lt(count, 40);
    expect_note(&c, "tokens a call");
    expect_note(&c, "  top-k                  0\n");
    ck_assert_ptr_eq(strchr(c.out, '\n'), c.out + c.out_length - 1); /* only one reply is printed */
    fr_command_free(&c);
}
END_TEST

/* A chat's context must be as long as the model's own context. If there is too little memory for that, the chat's
 * context must have 4096 positions. */
START_TEST(a_chats_context_is_the_models_own) {
    fr_changed_folder folder;
    fr_changed_folder_make(&folder, "tools/demo/target", "{\"max_position_embeddings\": 16384}");
    fr_command c = fr_command_feed("/context\n", "chat -m %s", folder.path), small;
    expect_note(&c, " of 16384 tokens");
    small = fr_command_feed("/context\n", "chat -m %s --memory 27000000", folder.path);
    expect_note(&small, " of 4096 tokens");
    fr_command_free(&c);
    fr_command_free(&small);
    fr_changed_folder_remove(&folder);
}
END_TEST

/* ~ must mean the home folder, as in a shell. */
START_TEST(a_tilde_is_the_home_folder) {
    fr_test_folder folder;
    fr_folder_make(&folder);
    fclose(fr_folder_create(&folder, "said.json"));
    char *home = strdup(getenv("HOME"));
    setenv("HOME", folder.path, 1);
    fr_command c = fr_command_feed("Hello.\n/save ~/said.json\n", TALK "-n 12 --stop ~"), again;
    again = fr_command_feed("/load ~/said.json\n/image ~/none.png\n/save ~nobody/x\n", TALK "-n 12 --stop ~");
    setenv("HOME", home, 1);
    expect_note(&c, folder.file);
    expect_note(&again, "said.json: read; the conversation has 1 turn");
    expect_note(&again, "~nobody/x: ");
    ck_assert_ptr_null(strstr(again.err, "~/"));
    json_decref(read_messages(folder.file));
    free(home);
    fr_command_free(&c);
    fr_command_free(&again);
    unlink(folder.file);
    fr_folder_remove(&folder);
}
END_TEST

static void put(fr_test_folder *folder, const char *name, const char *text) {
    FILE *file = fr_folder_create(folder, name);
    fputs(text, file);
    fclose(file);
}

/* /load reads every form of OpenAI's messages. If the conversation ends with a user's turn, it must be answered. */
START_TEST(a_conversation_comes_from_elsewhere) {
    static const char *const forms[] = {
        "[{\"role\": \"user\", \"content\": \"Hello.\"}]",
        "{\"model\": \"m\", \"messages\": [{\"role\": \"user\", \"content\": \"Hello.\"}]}",
        "[{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"Hello.\"}]}]",
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        fr_test_folder folder;
        char lines[512];
        fr_folder_make(&folder);
        put(&folder, "messages.json", forms[i]);
        snprintf(lines, sizeof lines, "/save x\n/load %s\nAnd?\n/undo\n/undo\n/undo\n", folder.file);
        fr_command c = fr_command_feed(lines, TALK "-n 12 --stop ~"), plain;
        plain = fr_command_feed("Hello.\nAnd?\n", TALK "-n 12 --stop ~");
        expect_note(&c, "nothing has been said yet");
        expect_note(&c, "there is no turn to take back");
        expect_same(&c, &plain);
        unlink(folder.file);
        fr_folder_remove(&folder);
    }
}
END_TEST

/* If a file is refused, the conversation must stay as it was. */
START_TEST(a_file_that_is_no_conversation_is_refused) {
    static const char *const files[][2] = {
        {"[{", "not JSON"},
        {"", "not JSON"},
        {"[]", "not a JSON array of messages"},
        {"{\"messages\": 1}", "not a JSON array of messages"},
        {"[1]", "messages here have the role"},
        {"[{\"role\": \"pirate\", \"content\": \"x\"}]", "messages here have the role"},
        {"[{\"role\": \"assistant\", \"content\": \"x\"}]", "does not begin with a user's turn"},
        {"[{\"role\": \"user\"}]", "no text"},
        {"[{\"role\": \"user\", \"content\": [{\"type\": \"image\"}]}]", "no text"},
        {"[{\"role\": \"user\", \"content\": 12345678901234567890123}]", "no text"},
        {"[{\"role\": \"user\", \"content\": \"x\"}, {\"role\": \"system\", \"content\": \"x\"}]", "messages here"},
    };
    fr_command plain = fr_command_feed("Hello.\nAnd?\n", TALK "-n 6 --stop ~");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        fr_test_folder folder;
        char lines[512];
        fr_folder_make(&folder);
        put(&folder, "messages.json", files[i][0]);
        snprintf(lines, sizeof lines, "Hello.\n/load %s\n/load %s/nowhere\n/save %s/no/where\n/save Makefile\nAnd?\n",
                 folder.file, folder.path, folder.path);
        fr_command c = fr_command_feed(lines, TALK "-n 6 --stop ~");
        expect_note(&c, files[i][1]);
        expect_note(&c, "nowhere: No such file");
        expect_note(&c, "where: No such file");
        expect_note(&c, "Makefile is there, and is no conversation");
        ck_assert_str_eq(c.out, plain.out);
        fr_command_free(&c);
        unlink(folder.file);
        fr_folder_remove(&folder);
    }
    fr_command_free(&plain);
}
END_TEST

/* --------------------------------------------------------------------------------------------------- a full context */

enum { CONTEXT = 128 };

/* The timeline of a session, as its trace shows it. It has the session's ids, the length of the last prompt, and the
 * ids of the last reply. */
typedef struct timeline {
    int32_t ids[CONTEXT];
    size_t length, prompt;
    int32_t reply[CONTEXT]; /* ids of the last reply */
    size_t replied;
} timeline;

static void take_event(timeline *t, const json_t *event, bool prompt) {
    size_t at = (size_t)json_integer_value(fr_json_get(event, "position"));
    const json_t *ids = fr_json_get(event, "ids");
    ck_assert_uint_le(at + json_array_size(ids), CONTEXT);
    for (size_t i = 0; i < json_array_size(ids); i++)
        t->ids[at + i] = (int32_t)json_integer_value(json_array_get(ids, i));
    t->length = at + json_array_size(ids);
    if (prompt) t->prompt = t->length;
    for (size_t i = at; i < t->length && !prompt; i++) {
        ck_assert_uint_lt(t->replied, CONTEXT);
        t->reply[t->replied++] = t->ids[i];
    }
}

static timeline read_trace(const char *path) {
    timeline t = {0};
    char *line = NULL;
    size_t capacity = 0;
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (getline(&line, &capacity, file) > 0) {
        json_t *event = json_loads(line, 0, NULL);
        const char *what = json_string_value(fr_json_get(event, "event"));
        if (strcmp(what, "prompt") == 0 || strcmp(what, "accept") == 0) take_event(&t, event, *what == 'p');
        bool asked = strcmp(what, "text") == 0 && strcmp(json_string_value(fr_json_get(event, "of")), "prompt") == 0;
        if (asked)
            t.replied = 0; /* This event "text" has the prompt of a turn, because its "of" is "prompt". A turn's prompt
                            * begins a new reply. If a prompt makes room within a reply, it has no such event. */
        json_decref(event);
    }
    free(line);
    fclose(file);
    return t;
}

static char *join(const int32_t *ids, size_t count) {
    static char list[CONTEXT * 12];
    size_t length = 0;
    for (size_t i = 0; i < count; i++)
        length += (size_t)snprintf(list + length, sizeof list - length, i ? ",%d" : "%d", ids[i]);
    return list;
}

static size_t count_of(const char *text, const char *word) {
    size_t count = 0;
    for (; (text = strstr(text, word)); text++) count++;
    return count;
}

/* The targets have sliding layers over 128 positions, sliding layers over 8 positions, and recurrent states. Recurrent
 * states can't be truncated. */
static const char *const targets[] = {DEMO, MODEL, "-m tests/data/models/qwen35-odd "};
static const char *const models[] = {DEMO DEMO_DRAFTER, MODEL DRAFTER, "-m tests/data/models/qwen35-odd "};

/* The oldest turns are dropped several times. The last time is in the middle of the last reply. The text after that
 * must be the text of a fresh session with the remaining turns and the reply so far. The saved conversation must begin
 * with the system turn and the first remaining turn. */
START_TEST(the_oldest_turns_are_dropped) {
    fr_test_folder folder, saved;
    char lines[1024], options[256];
    fr_folder_make(&folder);
    fr_folder_make(&saved);
    fclose(fr_folder_create(&folder, "trace"));
    fclose(fr_folder_create(&saved, "messages.json"));
    snprintf(options, sizeof options, "-c %d --ignore-eos -n 50 --stop ~ --context-shift --system Hi", CONTEXT);
    snprintf(lines, sizeof lines, "One.\nTwo.\nThree.\nFour.\nFive.\n/save %s\n", saved.file);
    fr_command c = fr_command_feed(lines, "chat --temp 0 %s%s --trace %s", models[_i], options, folder.file);
    ck_assert_msg(count_of(c.err, "the context is full: the ") >= 2, "%s", c.err);
    ck_assert_uint_eq(count_of(c.err, "left out"), 0);
    timeline t = read_trace(folder.file);
    fr_command fresh = fr_command_ok("generate %s--ids %s -n %zu -c %d --ignore-eos --output ids", models[_i],
                                     join(t.ids, t.prompt), t.length - t.prompt, CONTEXT);
    ck_assert_uint_gt(t.length, t.prompt);
    ck_assert_uint_gt(t.replied, t.length - t.prompt);
    ck_assert_mem_eq(t.ids + t.length - t.replied, t.reply, t.replied * sizeof *t.reply);
    fresh.out[fresh.out_length - 1] = '\0';
    ck_assert_str_eq(fresh.out, join(t.ids + t.prompt, t.length - t.prompt));
    fr_command_free(&fresh);

    json_t *messages = read_messages(saved.file);
    ck_assert_uint_lt(json_array_size(messages), 11);
    ck_assert_str_eq(member(messages, 0, "content"), "Hi");
    ck_assert_str_eq(member(messages, 1, "role"), "user");
    ck_assert_str_eq(member(messages, json_array_size(messages) - 2, "content"), "Five.");
    json_array_remove(messages, json_array_size(messages) - 1);
    ck_assert_int_eq(json_dump_file(messages, saved.file, 0), 0);
    fresh = fr_command_ok("template %s--messages %s --output ids", targets[_i], saved.file);
    fresh.out[fresh.out_length - 1] = '\0';
    ck_assert_str_eq(fresh.out, join(t.ids, t.length - t.replied));
    fr_command_free(&fresh);
    json_decref(messages);
    fr_command_free(&c);
    unlink(folder.file);
    fr_folder_remove(&folder);
    unlink(saved.file);
    fr_folder_remove(&saved);
}
END_TEST

/* A saved conversation is longer than the context. With --context-shift it must continue without its oldest turns. A
 * conversation from a file of messages must continue in the same way. Without --context-shift it must be refused. A
 * cache that holds a text and no conversation must be refused too. */
START_TEST(a_longer_cache_is_shifted) {
    fr_test_folder folder, saved;
    char lines[512], line[256];
    const char *options = "-c 160 --ignore-eos -n 50 --context-shift";
    fr_folder_make(&folder);
    fr_folder_make(&saved);
    fclose(fr_folder_create(&folder, "cache"));
    fclose(fr_folder_create(&saved, "messages.json"));
    unlink(folder.file);
    snprintf(lines, sizeof lines, "One.\nTwo.\nThree.\nFour.\nFive.\nSix.\n/save %s\n", saved.file);
    fr_command c = fr_command_feed(lines, TALK "-c 1024 --ignore-eos -n 50 --prompt-cache %s", folder.file);
    fr_command_free(&c);
    snprintf(line, sizeof line, TALK "-c 160 --prompt-cache %s", folder.file);
    c = fr_command_run(line, "And?\n");
    ck_assert_int_eq(c.status, 1);
    expect_note(&c, "the context 160: raise -c");
    fr_command_free(&c);
    c = fr_command_feed("And?\n", TALK "%s --prompt-cache %s", options, folder.file);
    expect_note(&c, "the conversation goes on after 6 turns");
    expect_note(&c, "oldest turns are dropped");
    snprintf(lines, sizeof lines, "/load %s\nAnd?\n", saved.file);
    fr_command loaded = fr_command_feed(lines, TALK "%s", options);
    ck_assert_str_eq(c.out, loaded.out);
    fr_command_free(&c);
    fr_command_free(&loaded);
    unlink(folder.file);
    c = fr_command_ok("generate " DEMO "--ids 2 -n 300 --ignore-eos --quiet --prompt-cache %s", folder.file);
    fr_command_free(&c);
    snprintf(line, sizeof line, TALK "%s --prompt-cache %s", options, folder.file);
    c = fr_command_run(line, "And?\n");
    ck_assert_int_eq(c.status, 1);
    expect_note(&c, "the context 160: raise -c");
    fr_command_free(&c);
    unlink(folder.file);
    unlink(saved.file);
    fr_folder_remove(&folder);
    fr_folder_remove(&saved);
}
END_TEST

static void repeat(char *text, size_t times) {
    static const char word[] = "word ";
    for (size_t i = 0; i < times; i++) memcpy(text + i * (sizeof word - 1), word, sizeof word);
}

/* A long turn drops older turns to make room. The answer must be the same as if the dropped turns had never been in the
 * conversation. */
START_TEST(a_turn_makes_room_for_itself) {
    const char *options = "-c 128 -n 4 --ignore-eos --stop ~ --context-shift --system Hi";
    char lines[4096], kept[2048], longest[600];
    repeat(longest, 30);
    snprintf(lines, sizeof lines, "One.\nTwo.\n%s\nThree.\n%s\n", longest, longest);
    snprintf(kept, sizeof kept, "%s\n", longest);
    fr_command c = fr_command_feed(lines, "chat --temp 0 %s%s", models[_i], options);
    fr_command fresh = fr_command_feed(kept, "chat --temp 0 %s%s", models[_i], options);
    ck_assert_uint_ge(c.out_length, fresh.out_length);
    ck_assert_str_eq(c.out + c.out_length - fresh.out_length, fresh.out);
    expect_note(&c, "oldest turns are dropped");
    fr_command_free(&c);
    fr_command_free(&fresh);
}
END_TEST

/* A turn that is too long for the context, even without any other turn, must be refused. The conversation must stay
 * unchanged. Without --context-shift, a turn must also be refused if the context is full. */
START_TEST(a_turn_that_is_too_long_drops_nothing) {
    char longest[2000], lines[4096];
    repeat(longest, 200);
    snprintf(lines, sizeof lines, "One.\n%s\n/undo\n/undo\n", longest);
    fr_command c = fr_command_feed(lines, TALK "-c 128 -n 4 --context-shift");
    expect_note(&c, "alone it is too long");
    expect_note(&c, "the conversation has 0 turns");
    fr_command_free(&c);
    c = fr_command_feed(lines, TALK "-c 128 -n 4");
    expect_note(&c, "/undo or /clear makes room, and --context-shift drops the oldest turns");
    fr_command_free(&c);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------------ tools */

/* The prompt must contain the tools in the form in which the template writes them. */
START_TEST(tools_reach_the_template) {
    fr_test_folder folder;
    fr_folder_make(&folder);
    put(&folder, "messages.json", "[{\"role\": \"user\", \"content\": \"Weather?\"}]");
    fr_command ids = fr_command_ok("template " DEMO "--messages %s --tools " TOOLS " --output ids", folder.file);
    ids.out[ids.out_length - 1] = '\0';
    const char *options = "-n 40";
    fr_command expected = fr_command_ok("generate " DEMO "--ids %s %s", ids.out, options), c;
    fr_command without = fr_command_ok("generate " DEMO "--chat -p Weather? %s", options);
    ck_assert_str_ne(expected.out, without.out);
    c = fr_command_ok("generate " DEMO "--chat -p Weather? --tools " TOOLS " %s", options);
    ck_assert_str_eq(c.out, expected.out);
    fr_command_free(&c);
    c = fr_command_feed("Weather?\n", TALK "--tools " TOOLS " %s", options);
    ck_assert_str_eq(c.out, expected.out);
    fr_command_free(&c);
    c = fr_command_feed("{\"messages\": [{\"role\": \"user\", \"content\": \"Weather?\"}]}\n",
                        "batch " DEMO "--tools " TOOLS " %s -f - -o -", options);
    json_t *line = json_loads(c.out, 0, NULL);
    expected.out[expected.out_length - 1] = '\0';
    ck_assert_str_eq(json_string_value(fr_json_get(line, "text")), expected.out);
    json_decref(line);
    fr_command_free(&c);
    fr_command_free(&ids);
    fr_command_free(&expected);
    fr_command_free(&without);
    unlink(folder.file);
    fr_folder_remove(&folder);
}
END_TEST

/* If the template has no place for tools, a note must say so. If it has a place, there must be no note. */
START_TEST(tools_without_a_place_are_told_of) {
    fr_test_folder folder;
    fr_folder_make(&folder);
    put(&folder, "template.jinja", "{% for m in messages %}{{ m.content }}{% endfor %}");
    fr_command c =
        fr_command_ok("generate " DEMO "--chat -p a -n 1 --tools " TOOLS " --chat-template-file %s", folder.file);
    expect_note(&c, "the chat template has no place for tools");
    fr_command_free(&c);
    c = fr_command_ok("generate " DEMO "--chat -p a -n 1 --tools " TOOLS);
    ck_assert_str_eq(c.err, "");
    fr_command_free(&c);
    unlink(folder.file);
    fr_folder_remove(&folder);
}
END_TEST

/* JSON that is not a list of tools must be refused, because no template could render it. */
START_TEST(what_is_no_tool_is_refused) {
    static const char *const files[] = {"[1]", "[{\"type\": \"function\"}, \"get_weather\"]", "[null]", "[[]]"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        fr_test_folder folder;
        char line[512];
        fr_folder_make(&folder);
        put(&folder, "tools.json", files[i]);
        snprintf(line, sizeof line, "generate " DEMO "--chat -p a -n 1 --tools %s", folder.file);
        fr_command c = fr_command_run(line, NULL);
        ck_assert_int_eq(c.status, 1);
        expect_note(&c, "tools.json: a tool in it is no JSON object");
        fr_command_free(&c);
        snprintf(line, sizeof line, "generate " DEMO "--chat -p a -n 1 --chat-template-kwargs '{\"tools\": %s}'",
                 files[i]);
        c = fr_command_run(line, NULL);
        ck_assert_int_eq(c.status, 1);
        expect_note(&c, "\"tools\" has an element that is no object");
        fr_command_free(&c);
        unlink(folder.file);
        fr_folder_remove(&folder);
    }
}
END_TEST

/* ----------------------------------------------------------------------------------------------------------- models */

START_TEST(a_model_needs_no_option) {
    fr_command c = fr_command_feed("Hello.\n", "chat --temp 0 tools/demo/target -n 12 --stop ~"), named;
    named = fr_command_feed("Hello.\n", "chat --temp 0 -n 12 --stop ~ " DEMO);
    expect_same(&c, &named);
    c = fr_command_ok("generate --chat -p Hello. -n 12 tools/demo/target --stop ~");
    named = fr_command_ok("generate " DEMO "--chat -p Hello. -n 12 --stop ~");
    expect_same(&c, &named);
    c = fr_command_ok("tokenize tools/demo/target -p Hello.");
    named = fr_command_ok("tokenize " DEMO "-p Hello.");
    expect_same(&c, &named);
    static const char *const wrong[] = {"chat tools/demo/target " DEMO, TALK "tools/demo/target",
                                        "chat tools/demo/target tools/demo/target", "chat"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        c = fr_command_run(wrong[i], "");
        ck_assert_int_eq(c.status, 2);
        ck_assert_uint_eq(count_of(c.err, "\n"), 1);
        fr_command_free(&c);
    }
}
END_TEST

/* Makes a model without a template. Its tokens belong to no known family, so forerun has no template for it either. */
static void make_templateless(fr_changed_folder *folder) {
    char path[128];
    size_t length;
    fr_changed_folder_make(folder, "tests/data/models/llama", "{}");
    char *tokens = fr_load_text("tests/data/models/llama/tokenizer.json", &length);
    for (char *name = tokens; (name = strstr(name, "start_header_id"));) *name = 'x';
    fr_changed_folder_write(folder, "tokenizer.json", tokens);
    snprintf(path, sizeof path, "%s/chat_template.jinja", folder->path);
    ck_assert_int_eq(unlink(path), 0);
    free(tokens);
}

/* If the model has no template, the chat must end before the user can type a turn. */
START_TEST(a_chat_without_a_template_ends_at_once) {
    fr_changed_folder folder;
    char line[128];
    make_templateless(&folder);
    snprintf(line, sizeof line, "chat --temp 0 %s", folder.path);
    fr_command none = fr_command_run(line, "");
    ck_assert_int_eq(none.status, 1);
    expect_note(&none, "no chat template");
    expect_note(&none, "--chat-template-file FILE gives it one");
    ck_assert_uint_eq(count_of(none.err, "\n"), 1);
    fr_command_free(&none);
    fr_changed_folder_remove(&folder);
    fr_command c = fr_command_run(TALK "--chat-template-file tests/data/chat/reference.json", "");
    ck_assert_str_eq(c.out, "");
    ck_assert_int_eq(c.status, 1);
    expect_note(&c, "reference.json:");
    ck_assert_uint_eq(count_of(c.err, "\n"), 1);
    fr_command_free(&c);
}
END_TEST

FR_SUITE("cli_conversation") {
    TCase *cases = tcase_create("cli_conversation");
    tcase_set_timeout(cases, 300);
    tcase_add_test(cases, a_reply_is_drawn_anew);
    tcase_add_test(cases, a_greedy_reply_is_the_only_one);
    tcase_add_test(cases, a_conversation_is_kept_in_a_file);
    tcase_add_test(cases, settings_are_changed_between_turns);
    tcase_add_test(cases, settings_that_can_not_be_are_refused);
    tcase_add_test(cases, files_are_read_into_a_turn);
    tcase_add_test(cases, the_context_and_figures_are_told);
    tcase_add_test(cases, a_chats_context_is_the_models_own);
    tcase_add_test(cases, a_tilde_is_the_home_folder);
    tcase_add_test(cases, a_conversation_comes_from_elsewhere);
    tcase_add_test(cases, a_file_that_is_no_conversation_is_refused);
    tcase_add_loop_test(cases, the_oldest_turns_are_dropped, 0, 3);
    tcase_add_test(cases, a_longer_cache_is_shifted);
    tcase_add_loop_test(cases, a_turn_makes_room_for_itself, 0, 3);
    tcase_add_test(cases, a_turn_that_is_too_long_drops_nothing);
    tcase_add_test(cases, tools_reach_the_template);
    tcase_add_test(cases, tools_without_a_place_are_told_of);
    tcase_add_test(cases, what_is_no_tool_is_refused);
    tcase_add_test(cases, a_model_needs_no_option);
    tcase_add_test(cases, a_chat_without_a_template_ends_at_once);
    suite_add_tcase(suite, cases);
}
