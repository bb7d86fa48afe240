/* tools/: a chat on a terminal: keys that edit a line, lines that come back, and what Ctrl-C and Ctrl-D end. */
#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "tests/command.h"

#define LEFT   "\033[D"
#define UP     "\033[A"
#define CTRL_A "\001"
#define CTRL_C "\003"
#define CTRL_D "\004"
#define ERASE  "\177"
#define ENTER  "\r"
#define OTHER  "\xef\xbf\xbd" /* for what is no character */

#define CHAT "chat " DEMO "-n 12 --stop ~ "

/* Prompts; a line that is edited is shown again with its own, which no new line stands before. */
#define FIRST "> "
#define NEXT  "\n> "
#define MORE  "\n. "

typedef struct person {
    pid_t chat;
    int terminal, end, out;
    char shown[1 << 16];
    size_t length, seen;
} person;

static person sit_down(const char *line, const char *kind) {
    person p = {0};
    char name[64];
    int out[2];
    ck_assert_int_eq(openpty(&p.terminal, &p.end, name, NULL, NULL), 0);
    ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
    fcntl(p.terminal, F_SETFD, FD_CLOEXEC);
    fcntl(p.end, F_SETFD, FD_CLOEXEC);
    setenv("TERM", kind, 1);
    p.chat = fr_command_start_on(name, line, out[1]);
    close(out[1]);
    p.out = out[0];
    return p;
}

/* Reads on until this has been shown behind what was waited for last. */
static void await(person *p, const char *text) {
    for (const char *found; !(found = strstr(p->shown + p->seen, text));) {
        struct pollfd wait = {.fd = p->terminal, .events = POLLIN};
        ck_assert_msg(poll(&wait, 1, 30000) == 1, "%s does not come: %s", text, p->shown);
        ssize_t got = read(p->terminal, p->shown + p->length, sizeof p->shown - 1 - p->length);
        ck_assert_msg(got > 0, "%s does not come any more: %s", text, p->shown);
        for (ssize_t i = 0; i < got; i++) /* so that strstr looks at all of it */
            if (p->shown[p->length + (size_t)i] == '\0') p->shown[p->length + (size_t)i] = '@';
        p->length += (size_t)got;
    }
    p->seen = (size_t)(strstr(p->shown + p->seen, text) - p->shown) + strlen(text);
}

/* Types at a new prompt. */
static void type(person *p, const char *prompt, const char *keys) {
    await(p, prompt);
    ck_assert_int_eq(write(p->terminal, keys, strlen(keys)), (ssize_t)strlen(keys));
}

/* What was answered; the chat has ended well, and its terminal is as it was. */
static char *stand_up(person *p) {
    static char answers[1 << 16];
    struct termios state;
    size_t length = 0;
    for (ssize_t got; (got = read(p->out, answers + length, sizeof answers - 1 - length)) > 0;) length += (size_t)got;
    answers[length] = '\0';
    ck_assert_int_eq(fr_command_wait(p->chat), 0);
    ck_assert_int_eq(tcgetattr(p->end, &state), 0);
    ck_assert((state.c_lflag & ICANON) && (state.c_lflag & ECHO));
    close(p->terminal);
    close(p->end);
    close(p->out);
    return answers;
}

/* The chat's answers are those to these lines, which come in a pipe. */
static void expect_answers(person *p, const char *line, const char *lines) {
    char *answers = stand_up(p);
    fr_command piped = fr_command_feed(lines, "%s", line);
    ck_assert_str_eq(answers, piped.out);
    fr_command_free(&piped);
}

START_TEST(keys_edit_a_line) {
    person p = sit_down(CHAT, "xterm");
    type(&p, FIRST, "Helo!" LEFT LEFT "l" ENTER);
    type(&p, NEXT, "a Caf\xc3\xa9\xc3\xa8" ERASE "?" CTRL_A "Is it " ENTER);
    type(&p, NEXT, UP UP ENTER);
    type(&p, NEXT, ENTER);
    type(&p, NEXT, "and \xff\xe2no more\xe2\x82\xac" ENTER);
    type(&p, NEXT, CTRL_D);
    expect_answers(&p, CHAT, "Hello!\nIs it a Caf\xc3\xa9?\nHello!\nand " OTHER OTHER "no more\xe2\x82\xac\n");
}
END_TEST

/* The answers are much the same whatever is said; what a command is told comes back. */
START_TEST(what_is_typed_stays) {
    person p = sit_down(CHAT, "xterm");
    type(&p, FIRST, "/x\xe2no\xff" ENTER);
    await(&p, "/x" OTHER "no" OTHER " is no command");
    type(&p, NEXT, "/y\xe2\x82" ENTER);
    await(&p, "/y" OTHER " is no command");
    type(&p, NEXT, "/image a\tb" ENTER);
    await(&p, "see a?b"); /* an error line has no tabs */
    type(&p, NEXT, CTRL_D);
    stand_up(&p);
}
END_TEST

START_TEST(a_locale_without_characters_does_not_matter) {
    setenv("LC_ALL", _i ? "C" : "nowhere", 1);
    person p = sit_down(CHAT, "xterm");
    type(&p, FIRST, "Caf\xc3\xa9s" LEFT ERASE "e" ENTER);
    type(&p, NEXT, CTRL_D);
    expect_answers(&p, CHAT, "Cafes\n");
}
END_TEST

/* Ctrl-C at the prompt: the line, and the whole turn that it belongs to, is as if it had not been typed. */
START_TEST(an_interrupt_drops_the_line) {
    person p = sit_down(CHAT, _i ? "dumb" : "xterm");
    type(&p, FIRST, "Never");
    await(&p, "Never");
    type(&p, "", CTRL_C);
    type(&p, NEXT, "Hello." ENTER);
    type(&p, NEXT, "\"\"\"never" ENTER);
    type(&p, MORE, "this either");
    await(&p, "this either");
    type(&p, "", CTRL_C);
    type(&p, NEXT, CTRL_C);
    type(&p, NEXT, "One\\" ENTER);
    type(&p, MORE, "two" ENTER);
    type(&p, NEXT, CTRL_D);
    expect_answers(&p, CHAT, "Hello.\nOne\\\ntwo\n");
}
END_TEST

/* In an answer it ends that answer, and nothing else. */
START_TEST(an_interrupt_ends_an_answer) {
    person p = sit_down("chat " DEMO "--ignore-eos -c 4096 -t 1 --isa scalar", _i ? "dumb" : "xterm");
    char byte;
    size_t bytes = 0;
    type(&p, FIRST, "Hello." ENTER);
    ck_assert_int_eq(read(p.out, &byte, 1), 1);
    type(&p, "", CTRL_C);
    while (read(p.out, &byte, 1) == 1 && byte != '\n') bytes++;
    ck_assert_uint_lt(bytes, 4000);
    type(&p, FIRST, "/undo" ENTER); /* the new line before it is the answer's */
    type(&p, "the conversation has 0 turns", "");
    type(&p, NEXT, CTRL_D);
    stand_up(&p);
}
END_TEST

/* The terminal has been given another size, and the chat been stopped, while a line was typed. */
START_TEST(a_line_goes_on_after_other_signals) {
    person p = sit_down(CHAT, "xterm");
    struct winsize small = {.ws_row = 10, .ws_col = 30};
    type(&p, FIRST, "Hel");
    await(&p, "Hel");
    ck_assert_int_eq(ioctl(p.terminal, TIOCSWINSZ, &small), 0);
    ck_assert_int_eq(kill(p.chat, SIGSTOP), 0);
    ck_assert_int_eq(kill(p.chat, SIGCONT), 0);
    await(&p, "Hel");
    type(&p, "", "lo." ENTER);
    type(&p, NEXT, "/exit" ENTER);
    expect_answers(&p, CHAT, "Hello.\n");
}
END_TEST

/* The terminal goes away. */
START_TEST(a_chat_ends_with_its_terminal) {
    person p = sit_down(CHAT, "xterm");
    char byte;
    type(&p, FIRST, "Hel");
    await(&p, "Hel");
    close(p.end);
    close(p.terminal);
    ck_assert_int_eq(read(p.out, &byte, 1), 0);
    ck_assert_int_ge(fr_command_wait(p.chat), 0);
    close(p.out);
}
END_TEST

int main(void) {
    TCase *cases = tcase_create("cli_terminal");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, keys_edit_a_line);
    tcase_add_test(cases, what_is_typed_stays);
    tcase_add_loop_test(cases, a_locale_without_characters_does_not_matter, 0, 2);
    tcase_add_loop_test(cases, an_interrupt_drops_the_line, 0, 2);
    tcase_add_loop_test(cases, an_interrupt_ends_an_answer, 0, 2);
    tcase_add_test(cases, a_line_goes_on_after_other_signals);
    tcase_add_test(cases, a_chat_ends_with_its_terminal);
    Suite *suite = suite_create("cli_terminal");
    suite_add_tcase(suite, cases);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
