/* Tests the chat template in generate, and conversations in chat, as users call them. */
/* suite: threads native */
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/changed_folder.h"
#include "tests/support/command.h"
#include "tests/support/suite.h"

#define TEN_WORDS "one two three four five six seven eight nine ten "

/* Turns in the form in which the model's chat template writes them. */
#define TURN(role, text) "<|turn>" role "\n" text "<turn|>\n"
#define OPENING          "<|turn>model\n<|channel>thought\n<channel|>"

/* Returns the reply that generate gives to a conversation. `rendered` is the text that the template makes of the
 * conversation. */
static fr_command reply_to(const char *rendered, const char *options) {
    fr_command tokens = fr_command_feed(rendered, "tokenize " DEMO "--no-bos -f -");
    tokens.out[tokens.out_length - 1] = '\0';
    fr_command c = fr_command_ok("generate " DEMO "--ids %s %s", tokens.out, options);
    fr_command_free(&tokens);
    return c;
}

/* Appends to a text in a buffer of 8192 bytes. */
__attribute__((format(printf, 2, 3))) static void append(char *text, const char *format, ...) {
    size_t length = strlen(text), room = 8192 - length;
    va_list values;
    va_start(values, format);
    ck_assert_int_lt(vsnprintf(text + length, room, format, values), (int)room);
    va_end(values);
}

/* Removes the blanks at both ends of the text, in place. The template does the same with a model's turn. */
static const char *trim(char *text) {
    for (size_t length = strlen(text); length > 0 && strchr(" \n", text[length - 1]); length--) text[length - 1] = '\0';
    return text + strspn(text, " \n");
}

START_TEST(generate_applies_the_template) {
    fr_command chat = fr_command_ok("generate " DEMO "--chat -p 'Tell me of a cat.' --system Briefly. -n 40"), plain;
    plain = reply_to("<bos>" TURN("system", "Briefly.") TURN("user", "Tell me of a cat.") OPENING, "-n 40");
    ck_assert_str_eq(chat.out, plain.out);
    fr_command_free(&chat);
    fr_command_free(&plain);
}
END_TEST

/* -cnv, llama.cpp's option for a chat, must apply the template like --chat. If neither is given, a note must say that
 * there is a template. With --quiet there must be no note. There must also be none if the prompt has control tokens. */
START_TEST(a_template_is_pointed_at) {
    static const char *const silent[] = {"-no-cnv -p Hi", "--quiet -p Hi", "--ids 2,5", "-p '<|turn>user\nHi<turn|>'"};
    static const char says[] =
        "forerun: this model has a chat template: --chat applies it, -no-cnv is for text as it is\n";
    fr_command chat = fr_command_ok("generate " DEMO "--chat -p Hi -n 9"), plain;
    plain = fr_command_ok("generate " DEMO "-cnv -p Hi -n 9");
    ck_assert_str_eq(plain.out, chat.out);
    ck_assert_str_eq(plain.err, "");
    fr_command_free(&plain);
    plain = fr_command_ok("generate " DEMO "-p Hi -n 9");
    ck_assert_str_eq(plain.err, says);
    fr_command_free(&plain);
    for (size_t i = 0; i < sizeof silent / sizeof *silent; i++) {
        plain = fr_command_ok("generate " DEMO "%s -n 2 --output ids", silent[i]);
        ck_assert_msg(plain.err_length == 0, "%s: %s", silent[i], plain.err);
        fr_command_free(&plain);
    }
    fr_command_free(&chat);
}
END_TEST

/* Texts of generation_config.json, each with the options that must give the same chat. NULL: the chat must be greedy.
 * Settings that the file leaves out have llama.cpp's defaults (common/common.h). */
static const struct {
    const char *generation, *options;
} sampled[] = {
    {"{}", "--temp 0.8 --top-k 40 --top-p 0.95 --min-p 0.05"},
    {"{\"temperature\": 1.5, \"top_k\": 300, \"top_p\": 1.0, \"min_p\": 0.0}",
     "--temp 1.5 --top-k 300 --top-p 1 --min-p 0"},
    {"{\"temperature\": 1.2, \"repetition_penalty\": 1.5, \"do_sample\": true}",
     "--temp 1.2 --top-k 40 --top-p 0.95 --min-p 0.05 --repeat-penalty 1.5"},
    {"{\"temperature\": 1.5, \"do_sample\": false}", NULL},
    {"{\"temperature\": \"hot\", \"top_k\": -3, \"top_p\": 70}", "--temp 0.8 --top-k 40 --top-p 0.95 --min-p 0.05"},
};

START_TEST(chats_sample_as_the_model_says) {
    static const char lines[] = "Tell me of a cat.\nAnd more?\n";
    static const char common[] = "-n 40 --ignore-eos --stop ~";
    fr_changed_folder folder;
    fr_changed_folder_make(&folder, "tools/demo/target", "{}");
    fr_changed_folder_write(&folder, "generation_config.json", sampled[_i].generation);
    fr_command usual = fr_command_feed(lines, "chat -m %s %s", folder.path, common), same, greedy;
    same = fr_command_feed(lines, "chat -m %s %s %s --samplers edskypmxt", folder.path, common,
                           sampled[_i].options ? sampled[_i].options : "--temp 0");
    greedy = fr_command_feed(lines, "chat -m %s %s --temp 0", folder.path, common);
    ck_assert_str_eq(usual.out, same.out);
    ck_assert_int_eq(strcmp(usual.out, greedy.out) == 0, !sampled[_i].options);
    fr_command_free(&usual);
    fr_command_free(&same);
    fr_command_free(&greedy);
    fr_changed_folder_remove(&folder);
}
END_TEST

static const char *const turns[] = {"The function returns a list.", "What is a dictionary of bytes?", "And more?"};
enum { TURNS = 3 };

/* Each reply must be the reply to the whole history, which is written here by hand. Some replies must be different
 * without the history. */
START_TEST(chat_keeps_the_history) {
    const char *options = _i ? "-n 40 --stop ~ " DEMO_DRAFTER : "-n 40 --stop ~";
    char history[8192] = "<bos>", rendered[8192 + sizeof OPENING], alone[1024], expected[8192] = "";
    size_t forgetful = 0;
    for (size_t i = 0; i < TURNS; i++) {
        append(history, TURN("user", "%s"), turns[i]);
        snprintf(rendered, sizeof rendered, "%s" OPENING, history);
        snprintf(alone, sizeof alone, "<bos>" TURN("user", "%s") OPENING, turns[i]);
        fr_command reply = reply_to(rendered, options), other = reply_to(alone, options);
        append(expected, "%s", reply.out);
        forgetful += strcmp(reply.out, other.out) == 0;
        append(history, TURN("model", "%s"), trim(reply.out));
        fr_command_free(&reply);
        fr_command_free(&other);
    }
    ck_assert_uint_lt(forgetful, TURNS);
    char lines[1024];
    snprintf(lines, sizeof lines, "%s\n\n%s\r\n%s\n/exit\nNever read.\n", turns[0], turns[1], turns[2]);
    fr_command chat = fr_command_feed(lines, TALK "%s", options);
    ck_assert_str_eq(chat.out, expected);
    ck_assert_str_eq(chat.err, "");
    fr_command_free(&chat);
}
END_TEST

static fr_command run_bytes(const char *line, const char *input, size_t length) {
    fr_command c = fr_command_run_bytes(line, input, length);
    ck_assert_msg(c.status == 0, "%s: exit %d: %s", line, c.status, c.err);
    return c;
}

/* A turn may contain every byte except those that end a line. The answer to invalid UTF-8 must be the answer to
 * U+FFFD. */
START_TEST(any_bytes_are_a_turn) {
    char turn[600] = "A\0B", lines[700];
    size_t length = 3;
    for (int byte = 1; byte < 256; byte++)
        if (byte != '\n' && byte != '\r') turn[length++] = (char)byte;
    memcpy(turn + length, "\xe2\x82.", 3);
    length += 3;
    memcpy(lines, turn, length);
    memcpy(lines + length, "\nAnd more?\n", 11);
    fr_command once = run_bytes("generate " DEMO "--chat -f - -n 20 --stop ~", turn, length), chat;
    chat = run_bytes(TALK "-n 20 --stop ~", lines, length + 11);
    ck_assert_uint_gt(chat.out_length, once.out_length);
    ck_assert_mem_eq(chat.out, once.out, once.out_length);
    fr_command_free(&once);
    fr_command_free(&chat);
}
END_TEST

#define NUL_TOKEN "7" /* <0x00> */

START_TEST(generated_nuls_are_kept) {
    static const char replies[] = "\0\0\0\0\0\n\0\0\0\0\0\n";
    fr_command chat = fr_command_feed("Hello.\nAnd more?\n", TALK "-n 5 -l " NUL_TOKEN "+1000"), json;
    ck_assert_uint_eq(chat.out_length, sizeof replies - 1);
    ck_assert_mem_eq(chat.out, replies, chat.out_length);
    json = fr_command_ok("generate " DEMO "-p x -n 2 --output json -l " NUL_TOKEN "+1000");
    ck_assert_ptr_nonnull(strstr(json.out, "\"text\": \"\\u0000\\u0000\""));
    fr_command_free(&chat);
    fr_command_free(&json);
}
END_TEST

/* Checks that standard error has exactly one line, and that the line contains this text. */
static void check_line(const fr_command *c, const char *says) {
    ck_assert_msg(strstr(c->err, says) != NULL, "%s", c->err);
    ck_assert_ptr_eq(strchr(c->err, '\n'), c->err + c->err_length - 1);
}

/* `with` has lines that must be refused. `without` is the same input without these lines. The answers to both must be
 * the same. The refusal must be one line that contains `says`. */
static void check_left_out(const char *with, const char *without, const char *options, const char *says) {
    fr_command c = fr_command_feed(with, TALK "%s", options);
    fr_command plain = fr_command_feed(without, TALK "%s", options);
    ck_assert_str_eq(c.out, plain.out);
    ck_assert_uint_gt(c.out_length, 1);
    check_line(&c, says);
    fr_command_free(&c);
    fr_command_free(&plain);
}

START_TEST(a_turn_beyond_the_context_is_left_out) {
    check_left_out("Hello.\n" TEN_WORDS TEN_WORDS "\nAnd?\n", "Hello.\nAnd?\n", "-c 48 -n 4", "the context holds 48");
    check_left_out(TEN_WORDS TEN_WORDS TEN_WORDS "\nHello.\n", "Hello.\n", "-c 48 -n 4", "the context holds 48");
}
END_TEST

/* If a turn fills the whole context, there is no room for an answer. */
START_TEST(a_turn_has_room_for_an_answer) {
    fr_command tokens = fr_command_feed("<bos>" TURN("user", "Hello.") OPENING, "tokenize " DEMO "--no-bos -f -");
    int count = 1;
    for (const char *c = tokens.out; *c; c++) count += *c == ',';
    char options[128];
    snprintf(options, sizeof options, TALK "-c %d", count);
    fr_command full = fr_command_run(options, "Hello.\n");
    ck_assert_str_eq(full.out, "");
    ck_assert_int_eq(full.status, 1); /* nothing was answered */
    check_line(&full, "left out");
    ck_assert_ptr_null(strstr(full.err, "/undo")); /* /undo is not offered, because there is nothing to take back */
    fr_command_free(&full);
    snprintf(options, sizeof options, "-c %d -l 500+1000", count + 1);
    full = fr_command_feed("Hello.\n", TALK "%s", options);
    ck_assert_uint_gt(full.out_length, 1);
    check_line(&full, "the context is full");
    fr_command_free(&full);
    fr_command_free(&tokens);
}
END_TEST

/* If the template can't be used, every turn must be refused, and an error line must say why. */
START_TEST(a_template_that_is_none) {
    fr_command c = fr_command_run(TALK "--chat-template-file tests/data/chat/reference.json", "Hello.\n");
    ck_assert_str_eq(c.out, "");
    ck_assert_int_eq(c.status, 1);
    check_line(&c, "reference.json:");
    fr_command_free(&c);
}
END_TEST

/* A reply fills the context. After /undo or /clear there must be room again. */
START_TEST(a_full_context_is_not_the_end) {
    const char *options = "-c 96 --ignore-eos";
    fr_command one = fr_command_feed("Hello.\n", TALK "%s", options);
    fr_command c = fr_command_feed("Hello.\nAnd?\n/undo\nHello.\nAnd?\n/clear\nHello.\n", TALK "%s", options);
    check_line(&one, "the context is full");
    for (size_t i = 0; i < 3; i++) ck_assert_int_eq(strncmp(c.out + i * one.out_length, one.out, one.out_length), 0);
    ck_assert_uint_eq(c.out_length, 3 * one.out_length);
    const char *at = c.err;
    for (size_t i = 0; i < 2; i++) {
        at = strstr(at, "this turn is left out: with it the conversation has ");
        ck_assert_ptr_nonnull(at++);
    }
    fr_command_free(&one);
    fr_command_free(&c);
}
END_TEST

/* ----------------------------------------------------------------------------------------------- commands and lines */

START_TEST(turns_are_taken_back) {
    char with[512], without[512];
    snprintf(with, sizeof with, "%s\n%s\n/undo\n%s\n", turns[0], turns[1], turns[2]);
    snprintf(without, sizeof without, "%s\n%s\n", turns[0], turns[2]);
    const char *options = _i ? "-n 20 --quiet --stop ~ --system Briefly. " DEMO_DRAFTER : "-n 20 --stop ~ --quiet";
    fr_command c = fr_command_feed(with, TALK "%s", options);
    fr_command plain = fr_command_feed(without, TALK "%s", options), first, second;
    snprintf(without, sizeof without, "%s\n", turns[0]);
    first = fr_command_feed(without, TALK "%s", options);
    size_t third = plain.out_length - first.out_length;
    ck_assert_int_eq(strncmp(c.out, first.out, first.out_length), 0);
    ck_assert_uint_gt(c.out_length, plain.out_length);
    ck_assert_str_eq(c.out + c.out_length - third, plain.out + first.out_length);
    ck_assert_str_eq(c.err, "");
    fr_command_free(&c);
    snprintf(with, sizeof with, "%s\n%s\n/clear\n%s\n", turns[1], turns[2], turns[0]);
    snprintf(without, sizeof without, "%s\n%s\n", turns[1], turns[2]);
    c = fr_command_feed(with, TALK "%s", options);
    second = fr_command_feed(without, TALK "%s", options);
    ck_assert_int_eq(strncmp(c.out, second.out, second.out_length), 0);
    ck_assert_str_eq(c.out + second.out_length, first.out);
    fr_command_free(&c);
    fr_command_free(&plain);
    fr_command_free(&first);
    fr_command_free(&second);
}
END_TEST

/* Each of these lines must give one error line. None of them may be sent to the model. */
START_TEST(other_commands_are_refused) {
    static const char *const lines[][2] = {
        {"/cler", "/cler is no command; did you mean /clear?"},
        {"/usr/bin/env is a file", "forerun: /usr/bin/env is no command (/help lists them; to say a line that begins"},
        {"/", "forerun: / is no command"},
        {"/ clear", "forerun: / is no command"},
        {"/exit now", "now: what is this word for? /exit stands alone"},
        {"/clear \t all", "all: what is this word for?"},
        {"/image", "/image needs a FILE"},
        {"/image \t ", "/image needs a FILE"},
        {"/image nothing.png", "has no vision tower"},
        {"/undo", "there is no turn to take back"},
        {"/clear\\", "/clear\\ is no command; did you mean /clear?"},
        {"/\x1b[2J", "/?[2J is no command"},
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char with[128];
        snprintf(with, sizeof with, "%s\nHello.\n", lines[i][0]);
        check_left_out(with, "Hello.\n", "-n 4", lines[i][1]);
    }
    static const char nul[] = "/clear\0\nHello.\n";
    fr_command c = run_bytes(TALK "-n 4", nul, sizeof nul - 1);
    ck_assert_uint_gt(c.out_length, 1);
    check_line(&c, "no NUL");
    fr_command_free(&c);
    char *word = calloc(1 << 20, 1);
    memset(word, '/', 1);
    memset(word + 1, 'x', (1 << 20) - 8);
    memcpy(word + (1 << 20) - 7, "\nHi.\n", 5);
    c = run_bytes(TALK "-n 4", word, (1 << 20) - 2);
    ck_assert_uint_gt(c.out_length, 1);
    check_line(&c, "/help lists them");
    fr_command_free(&c);
    free(word);
}
END_TEST

START_TEST(help_lists_the_commands) {
    static const char *const words[] = {"/clear",      "/undo",      "/regen",  "/edit", "/save FILE", "/load FILE",
                                        "/image FILE", "/read FILE", "/system", "/set",  "/context",   "/stats",
                                        "/help",       "/exit",      "/quit",   "/bye"};
    fr_command c = fr_command_feed("/help\n/exit \t\nNever read.\n", TALK "-n 4"), help;
    help = fr_command_ok("chat --help");
    ck_assert_str_eq(c.out, "");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        ck_assert_msg(strstr(c.err, words[i]) != NULL, "%s: %s", words[i], c.err);
        ck_assert_msg(strstr(help.out, words[i]) != NULL, "%s: %s", words[i], help.out);
    }
    fr_command_free(&c);
    fr_command_free(&help);
}
END_TEST

/* Input of several lines, and the single turn that the input must become. */
START_TEST(lines_become_a_turn) {
    static const char *const said[][2] = {
        {"One\\\ntwo\\\nthree\n", "One\ntwo\nthree"},
        {"One\\\n/clear\n", "One\n/clear"},
        {"One\\\r\ntwo\r\n", "One\ntwo"},
        {"One\\\n", "One"},
        {"One\\\\\ntwo\n", "One\\\ntwo"},
        {"//clear\n", "/clear"},
        {"///\n", "//"},
        {"//a\\\n//b\n", "/a\n//b"},
        {"\"\"\"One\n\n/exit\\\nthree\"\"\"\n", "One\n\n/exit\\\nthree"},
        {"\"\"\"\nOne\ntwo\n\"\"\"\n", "One\ntwo"},
        {"\"\"\"\n  One\n\"\"\"\r\n", "  One"},
        {"\"\"\"/clear\"\"\"\n", "/clear"},
        {"\"\"\"\n\"quoted\" words\nand no end", "\"quoted\" words\nand no end"},
        {"\"\"\"\"\"\"\n\"\"\"\n\"\"\"\nOne\n", "One"},
        {"It is \"\"\"quoted\"\"\"\n", "It is \"\"\"quoted\"\"\""},
        {"\\\n\nOne", NULL},
    };
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        fr_command c = fr_command_feed(said[i][0], TALK "-n 12 --stop ~"), once;
        once = fr_command_feed(said[i][1] ? said[i][1] : "\n", "generate " DEMO "--chat -f - -n 12 --stop ~");
        ck_assert_msg(strncmp(c.out, once.out, once.out_length) == 0, "%s: %s, not %s", said[i][0], c.out, once.out);
        ck_assert(!said[i][1] || c.out_length == once.out_length);
        ck_assert_str_eq(c.err, "");
        fr_command_free(&c);
        fr_command_free(&once);
    }
}
END_TEST

/* Ctrl-C during a reply must end only that reply. The next line must be answered. */
START_TEST(interrupt_ends_a_reply_only) {
    int in[2], out[2], null = open("/dev/null", O_WRONLY);
    ck_assert(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
    pid_t chat = fr_command_start(TALK "--ignore-eos -c 4096 -t 1 --isa scalar", in[0], out[1], null);
    close(in[0]);
    close(out[1]);
    char byte;
    size_t lines = 0, bytes = 0;
    ck_assert_int_eq(write(in[1], "Hello.\n", 7), 7);
    ck_assert_int_eq(read(out[0], &byte, 1), 1);
    ck_assert_int_eq(kill(chat, SIGINT), 0);
    while (read(out[0], &byte, 1) == 1 && byte != '\n') bytes++;
    ck_assert_int_eq(write(in[1], "Again?\n", 7), 7);
    ck_assert_int_eq(read(out[0], &byte, 1), 1);
    ck_assert_int_eq(kill(chat, SIGINT), 0);
    close(in[1]);
    while (read(out[0], &byte, 1) == 1) lines += byte == '\n';
    ck_assert_int_eq(fr_command_wait(chat), 0);
    ck_assert_uint_ge(lines, 1);
    ck_assert_msg(bytes < 4000, "the first reply went on to its end");
    close(out[0]);
    close(null);
}
END_TEST

FR_SUITE("cli_chat") {
    TCase *cases = tcase_create("cli_chat");
    tcase_set_timeout(cases, 300);
    tcase_add_test(cases, generate_applies_the_template);
    tcase_add_test(cases, a_template_is_pointed_at);
    tcase_add_loop_test(cases, chats_sample_as_the_model_says, 0, sizeof sampled / sizeof *sampled);
    tcase_add_loop_test(cases, chat_keeps_the_history, 0, 2);
    tcase_add_test(cases, any_bytes_are_a_turn);
    tcase_add_test(cases, generated_nuls_are_kept);
    tcase_add_test(cases, a_turn_beyond_the_context_is_left_out);
    tcase_add_test(cases, a_turn_has_room_for_an_answer);
    tcase_add_test(cases, a_template_that_is_none);
    tcase_add_test(cases, a_full_context_is_not_the_end);
    tcase_add_loop_test(cases, turns_are_taken_back, 0, 2);
    tcase_add_test(cases, other_commands_are_refused);
    tcase_add_test(cases, help_lists_the_commands);
    tcase_add_test(cases, lines_become_a_turn);
    tcase_add_test(cases, interrupt_ends_a_reply_only);
    suite_add_tcase(suite, cases);
}
