/* tools/: the chat template in generate, and conversations, as users call them. */
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/command.h"

#define TEN_WORDS "one two three four five six seven eight nine ten "

/* Turns as the template writes them (the reference: Jinja). */
#define TURN(role, text) "<|turn>" role "\n" text "<turn|>\n"
#define OPENING "<|turn>model\n<|channel>thought\n<channel|>"

/* The reply to a rendered conversation, by way of generate. */
static fr_command reply_to(const char *rendered, const char *options) {
    fr_command tokens = fr_command_feed(rendered, "tokenize " DEMO "--no-bos -f -");
    tokens.out[tokens.out_length - 1] = '\0';
    fr_command c = fr_command_ok("generate " DEMO "--ids %s %s", tokens.out, options);
    fr_command_free(&tokens);
    return c;
}

/* Puts more text behind a text of at most 8191 bytes. */
__attribute__((format(printf, 2, 3))) static void append(char *text, const char *format, ...) {
    size_t length = strlen(text), room = 8192 - length;
    va_list values;
    va_start(values, format);
    ck_assert_int_lt(vsnprintf(text + length, room, format, values), (int)room);
    va_end(values);
}

/* In place: the template takes blanks off both ends of a model's turn. */
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

static const char *const turns[] = {"The function returns a list.", "What is a dictionary of bytes?", "And more?"};
enum { TURNS = 3 };

/* Each reply is the one to the whole history, written by hand; without the history it would be another. */
START_TEST(chat_keeps_the_history) {
    const char *options = _i ? "-n 40 --stop ~ " DEMO_DRAFTER : "-n 40 --stop ~";
    char history[8192] = "<bos>", rendered[8192], alone[1024], expected[8192] = "";
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
    fr_command chat = fr_command_feed(lines, "chat " DEMO "%s", options);
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

/* Every byte but those that end a line, in a turn; what is not UTF-8 is answered as U+FFFD is. */
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
    chat = run_bytes("chat " DEMO "-n 20 --stop ~", lines, length + 11);
    ck_assert_uint_gt(chat.out_length, once.out_length);
    ck_assert_mem_eq(chat.out, once.out, once.out_length);
    fr_command_free(&once);
    fr_command_free(&chat);
}
END_TEST

#define NUL_TOKEN "7" /* <0x00> */

START_TEST(generated_nuls_are_kept) {
    static const char replies[] = "\0\0\0\0\0\n\0\0\0\0\0\n";
    fr_command chat = fr_command_feed("Hello.\nAnd more?\n", "chat " DEMO "-n 5 -l " NUL_TOKEN "+1000"), json;
    ck_assert_uint_eq(chat.out_length, sizeof replies - 1);
    ck_assert_mem_eq(chat.out, replies, chat.out_length);
    json = fr_command_ok("generate " DEMO "-p x -n 2 --output json -l " NUL_TOKEN "+1000");
    ck_assert_ptr_nonnull(strstr(json.out, "\"text\": \"\\u0000\\u0000\""));
    fr_command_free(&chat);
    fr_command_free(&json);
}
END_TEST

START_TEST(chat_beyond_the_context_is_exit_1) {
    fr_command c = fr_command_run("chat " DEMO "-c 48 -n 4", "Hello.\n" TEN_WORDS TEN_WORDS "\nNever read.\n");
    ck_assert_int_eq(c.status, 1);
    ck_assert_ptr_nonnull(strstr(c.err, "the context holds 48"));
    ck_assert_ptr_eq(strchr(c.err, '\n'), c.err + c.err_length - 1);
    ck_assert_uint_gt(c.out_length, 1);
    fr_command_free(&c);
}
END_TEST

/* Ctrl-C in a reply ends that reply; the next line is answered. */
START_TEST(interrupt_ends_a_reply_only) {
    int in[2], out[2], null = open("/dev/null", O_WRONLY);
    ck_assert(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0);
    pid_t chat = fr_command_start("chat " DEMO "--ignore-eos -c 4096 -t 1 --isa scalar", in[0], out[1], null);
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

int main(void) {
    TCase *cases = tcase_create("cli_chat");
    tcase_set_timeout(cases, 300);
    tcase_add_test(cases, generate_applies_the_template);
    tcase_add_loop_test(cases, chat_keeps_the_history, 0, 2);
    tcase_add_test(cases, any_bytes_are_a_turn);
    tcase_add_test(cases, generated_nuls_are_kept);
    tcase_add_test(cases, chat_beyond_the_context_is_exit_1);
    tcase_add_test(cases, interrupt_ends_a_reply_only);
    Suite *suite = suite_create("cli_chat");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
