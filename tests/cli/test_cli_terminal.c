/* Tests chat on a terminal. It covers keys that edit a line, the history of lines, pasted text, and what Ctrl-C, Ctrl-Z
 * and Ctrl-D do. It also covers what is saved when the chat ends in any of these ways. */
/* suite: native */
#include <check.h>
#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "tests/support/command.h"
#include "tests/support/suite.h"

#define LEFT   "\033[D"
#define UP     "\033[A"
#define CTRL_A "\001"
#define CTRL_C "\003"
#define CTRL_D "\004"
#define CTRL_Z "\032"
#define ESCAPE "\033"
#define ERASE  "\177"
#define ENTER  "\r"
#define OTHER  "\xef\xbf\xbd" /* what is shown instead of bytes that are not a character */

/* The sequences of xterm's "bracketed paste mode". If it is switched on, the terminal puts these sequences around
 * pasted text. */
#define PASTED(text) "\033[200~" text "\033[201~"
#define PASTE_ON     "\033[?2004h"
#define PASTE_OFF    "\033[?2004l"

#define CHAT TALK "-n 12 --stop ~ "
#define LONG "-t 1 --isa scalar -c 4096 --ignore-eos " /* makes answers long and slow enough to be interrupted */

/* The prompts that a chat prints. While a line is edited, the prompt and the line are drawn again and again. In these
 * drawings there is no newline before the prompt. */
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

/* Finds the first place where a text was shown. *end gets the position after it. If the text begins with a newline, it
 * may also come directly after the sequence that switches paste mode on, because a new prompt is printed after that
 * sequence. */
static bool find(const char *shown, const char *text, const char **end) {
    char marked[256];
    bool line = text[0] == '\n';
    snprintf(marked, sizeof marked, PASTE_ON "%s", text + line);
    const char *plain = strstr(shown, text), *other = line ? strstr(shown, marked) : NULL;
    if (!plain && !other) return false;
    bool first = plain && (!other || plain < other);
    *end = first ? plain + strlen(text) : other + strlen(marked);
    return true;
}

/* Reads from the terminal until this text has been shown. The search begins after the text that was awaited last. */
static void await(person *p, const char *text) {
    const char *end;
    while (!find(p->shown + p->seen, text, &end)) {
        struct pollfd wait = {.fd = p->terminal, .events = POLLIN};
        ck_assert_msg(poll(&wait, 1, 30000) == 1, "%s does not come: %s", text, p->shown);
        ssize_t got = read(p->terminal, p->shown + p->length, sizeof p->shown - 1 - p->length);
        ck_assert_msg(got > 0, "%s does not come any more: %s", text, p->shown);
        for (ssize_t i = 0; i < got; i++) /* replaces NULs, so that strstr searches the whole text */
            if (p->shown[p->length + (size_t)i] == '\0') p->shown[p->length + (size_t)i] = '@';
        p->length += (size_t)got;
    }
    p->seen = (size_t)(end - p->shown);
}

/* Waits for a prompt, and then sends these keys. */
static void type(person *p, const char *prompt, const char *keys) {
    await(p, prompt);
    ck_assert_int_eq(write(p->terminal, keys, strlen(keys)), (ssize_t)strlen(keys));
}

/* Waits for the end of the chat. Its exit status must be success, and the terminal must have its usual settings again.
 * Returns the chat's answers. */
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

/* Waits for the end of the chat. Its answers must be those that the same lines from a pipe get. */
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

/* Checks the bytes that the chat reads. Answers would not show these bytes, because the answers of this small model
 * hardly depend on its input. So the test uses error lines, which repeat what was typed. */
START_TEST(what_is_typed_stays) {
    person p = sit_down(CHAT, "xterm");
    type(&p, FIRST, "/x\xe2no\xff" ENTER);
    await(&p, "/x" OTHER "no" OTHER " is no command");
    type(&p, NEXT, "/y\xe2\x82" ENTER);
    await(&p, "/y" OTHER " is no command");
    type(&p, NEXT, "/image a\tb" ENTER);
    await(&p, "see a?b"); /* the error line shows the tab as ? */
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

/* Ctrl-C at the prompt must discard the line. If the line continues a turn, it must discard the whole turn, as if
 * nothing had been typed. */
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

/* Ctrl-C during an answer must end only that answer. */
START_TEST(an_interrupt_ends_an_answer) {
    person p = sit_down(TALK LONG, _i ? "dumb" : "xterm");
    char byte;
    size_t bytes = 0;
    type(&p, FIRST, "Hello." ENTER);
    ck_assert_int_eq(read(p.out, &byte, 1), 1);
    type(&p, "", CTRL_C);
    while (read(p.out, &byte, 1) == 1 && byte != '\n') bytes++;
    ck_assert_uint_lt(bytes, 4000);
    type(&p, FIRST, "/undo" ENTER); /* this prompt has no newline before it, because the answer ended with one */
    type(&p, "the conversation has 0 turns", "");
    type(&p, NEXT, CTRL_D);
    stand_up(&p);
}
END_TEST

/* While a line is being typed, the terminal changes its size, and the chat is stopped and continued. The line must
 * still be there. */
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
    ck_assert_msg(!strstr(p.shown, "> Hel> "), "shown twice: %s", p.shown);
    expect_answers(&p, CHAT, "Hello.\n");
}
END_TEST

/* A chat must first print the model, the context, the sampling, and how to continue and how to leave. */
START_TEST(the_first_screen_says_what_is_there) {
    person p = sit_down("chat " DEMO DEMO_DRAFTER "-c 512 --seed 3", "xterm");
    type(&p, "target with a drafter", "");
    type(&p, "context 512 tokens (of ", "");
    type(&p, "temperature 0.8, top-p 0.95, min-p 0.05, top-k 40, seed 3", "");
    type(&p, "/help lists the commands; /exit or Ctrl-D leaves", "");
    type(&p, FIRST, "/bye" ENTER);
    stand_up(&p);
    p = sit_down(CHAT "--quiet", "xterm");
    type(&p, FIRST, CTRL_D);
    stand_up(&p);
    ck_assert_ptr_null(strstr(p.shown, "/help"));
}
END_TEST

/* Writes the lines that a terminal of this width shows, in order and without erased text. The test fails if a line is
 * longer than the screen is wide. */
static void show_lines(const char *shown, size_t columns, char *lines, size_t size) {
    size_t length = 0, column = 0;
    for (const char *c = shown; *c && length < size - 1; c++) {
        int back = 0, end = 0;
        if (sscanf(c, "\033[%dD\033[K%n", &back, &end) == 1 && end > 0) {
            ck_assert_uint_lt((size_t)back, column);
            length -= (size_t)back;
            column -= (size_t)back;
            c += end - 1;
        } else if (*c != '\r') {
            lines[length++] = *c;
            column = *c == '\n' ? 0 : column + 1;
        }
        ck_assert_msg(column < columns, "%s", shown);
    }
    lines[length] = '\0';
}

/* Replaces each run of blanks and line breaks by one blank. Then texts can be compared even if they were wrapped
 * differently. */
static void squeeze(char *text) {
    char *to = text;
    for (const char *c = text; *c; c++)
        if (!strchr(" \n", *c))
            *to++ = *c;
        else if (to > text && to[-1] != ' ')
            *to++ = ' ';
    *to = '\0';
}

START_TEST(lines_end_between_words) {
    enum { COLUMNS = 54 };
    char name[64], lines[1 << 14];
    person p = {0};
    struct winsize narrow = {.ws_row = 24, .ws_col = COLUMNS};
    ck_assert_int_eq(openpty(&p.terminal, &p.end, name, NULL, &narrow), 0);
    setenv("TERM", "xterm", 1);
    p.chat = fr_command_start_on(name, TALK LONG "-n 150 --quiet", p.end);
    type(&p, FIRST, "Hello." ENTER);
    await(&p, PASTE_OFF PASTE_ON);
    size_t begin = p.seen;
    await(&p, NEXT);
    p.shown[p.seen] = '\0';
    show_lines(p.shown + begin, COLUMNS, lines, sizeof lines);
    *strstr(lines, PASTE_ON) = '\0';
    fr_command piped = fr_command_feed("Hello.\n", TALK LONG "-n 150");
    ck_assert_uint_gt(piped.out_length, 3 * (size_t)COLUMNS);
    squeeze(lines);
    squeeze(piped.out);
    ck_assert_str_eq(lines, piped.out);
    ck_assert_ptr_nonnull(strstr(p.shown + begin, "\033[K"));
    type(&p, "", CTRL_D);
    ck_assert_int_eq(fr_command_wait(p.chat), 0);
    fr_command_free(&piped);
    close(p.terminal);
    close(p.end);
}
END_TEST

/* Lines that are pasted together must become one turn and keep their line breaks. The Enter key sends the turn. */
START_TEST(pasted_lines_are_a_turn) {
    person p = sit_down(CHAT, "xterm");
    type(&p, PASTE_ON, "It is: " PASTED("one\r\ttwo\\\r/clear\nth\xff\xe2\x82\xac.\r"));
    type(&p, "", LEFT ERASE "r" ENTER); /* the cursor was in front of the last line end of the pasted text */
    type(&p, PASTE_OFF, "");
    ck_assert_msg(!strstr(p.shown, "> It is: > "), "shown twice: %s", p.shown);
    type(&p, NEXT, PASTED("/undo\rOne") ENTER);
    type(&p, NEXT, PASTED("Two") "." ENTER);
    type(&p, NEXT, ESCAPE "[200" ENTER);
    type(&p, NEXT,
         "one three" ESCAPE "b"
         "two " ENTER);
    type(&p, NEXT, PASTED("") CTRL_D);
    expect_answers(&p, CHAT,
                   "\"\"\"It is: one\n\ttwo\\\n/clear\nth" OTHER "\xe2\x82\xacr\n\"\"\"\n"
                   "\"\"\"/undo\nOne\"\"\"\nTwo.\n00\none two three\n");
}
END_TEST

/* Paste mode stays on during a reply. So lines that are pasted during a reply must become one turn too. */
START_TEST(lines_pasted_in_a_reply_are_a_turn) {
    char byte;
    person p = sit_down(TALK LONG "-n 60", "xterm");
    type(&p, FIRST, "Hello." ENTER);
    await(&p, PASTE_OFF PASTE_ON);
    ck_assert_int_eq(read(p.out, &byte, 1), 1);
    type(&p, "", PASTED("one\rtwo\r/exit"));
    await(&p, NEXT);
    char *echoed = strstr(p.shown, "one"); /* the pasted text must not be shown in the middle of the reply */
    ck_assert_msg(!echoed || echoed > p.shown + p.seen - 1, "%s", p.shown);
    type(&p, "", "!" ENTER);
    type(&p, NEXT, CTRL_D);
    await(&p, PASTE_OFF);
    char *rest = stand_up(&p);
    fr_command piped = fr_command_feed("Hello.\n\"\"\"one\ntwo\n/exit!\"\"\"\n", TALK LONG "-n 60");
    ck_assert_int_eq(piped.out[0], byte);
    ck_assert_str_eq(piped.out + 1, rest);
    fr_command_free(&piped);
}
END_TEST

/* The pasted text is larger than the screen, and arrives in several reads. */
START_TEST(much_is_pasted) {
    person p = sit_down(CHAT "-c 4096", "xterm");
    struct winsize small = {.ws_row = 10, .ws_col = 30};
    static char lines[20000] = "\"\"\"";
    ck_assert_int_eq(ioctl(p.terminal, TIOCSWINSZ, &small), 0);
    type(&p, FIRST, "\033[20");
    type(&p, "", "0~");
    for (int i = 0; i < 150; i++) {
        char line[64];
        int length = snprintf(line, sizeof line, "%d bottles\r", i);
        ck_assert_int_eq(write(p.terminal, line, (size_t)length), length);
        line[length - 1] = '\n';
        strncat(lines, line, sizeof lines - strlen(lines) - 1);
    }
    type(&p, "", "\033[201~" ENTER);
    type(&p, PASTE_OFF, "");
    type(&p, NEXT, CTRL_D);
    strncat(lines, "\"\"\"\n", sizeof lines - strlen(lines) - 1);
    expect_answers(&p, CHAT "-c 4096", lines);
}
END_TEST

/* /edit must show the last turn again, so that it can be edited. The edited turn must replace the last turn. If the
 * line is discarded, the turn must stay as it was. */
START_TEST(a_turn_is_edited) {
    person p = sit_down(CHAT, "xterm");
    type(&p, FIRST, "/edit" ENTER);
    await(&p, "there is no turn yet");
    type(&p, NEXT, "Hello." ENTER);
    type(&p, NEXT, "Ad?" ENTER);
    type(&p, NEXT, "/edit" ENTER);
    await(&p, "> Ad?");
    type(&p, "", LEFT LEFT "n" ENTER);
    type(&p, NEXT, "/edit" ENTER);
    await(&p, "> And?");
    type(&p, "", " Never" CTRL_C);
    type(&p, NEXT, "//x" ENTER);
    type(&p, NEXT, "/edit" ENTER);
    await(&p, "> //x");
    type(&p, "", "y" ENTER);
    type(&p, NEXT, PASTED("one\rtwo") ENTER);
    type(&p, NEXT, "/edit" ENTER);
    await(&p, "two");
    type(&p, "", "!" ENTER);
    type(&p, NEXT, "/undo" ENTER);
    await(&p, "the conversation has 3 turns");
    type(&p, NEXT, CTRL_D);
    char *answers = stand_up(&p);
    fr_command piped = fr_command_feed("Hello.\nAd?\n/undo\nAnd?\n//x\n/undo\n//xy\none\\\ntwo\n/undo\n"
                                       "one\\\ntwo!\n",
                                       CHAT);
    ck_assert_str_eq(answers, piped.out);
    fr_command_free(&piped);
}
END_TEST

/* Starts the chat from a shell script. While the chat is stopped, the shell uses the terminal. */
static person sit_down_at_a_shell(const char *line, const char *script) {
    const char *emulator = getenv("FORERUN_EMULATOR");
    char *before = emulator ? strdup(emulator) : NULL, shell[512];
    snprintf(shell, sizeof shell, "sh -c '%s' %s", script, before ? before : "");
    setenv("FORERUN_EMULATOR", shell, 1);
    person p = sit_down(line, "xterm");
    if (before)
        setenv("FORERUN_EMULATOR", before, 1);
    else
        unsetenv("FORERUN_EMULATOR");
    free(before);
    return p;
}
#define STOPPED "set -m; \"$0\" \"$@\"; stty -a >&2; fg >/dev/null"

/* Waits until the shell uses the terminal. The terminal must have the settings that it had before the chat, and paste
 * mode must be off. */
static void await_shell(person *p, size_t from) {
    await(p, "icanon");
    await(p, "echo ");
    ck_assert_msg(!strstr(p->shown + from, "-icanon") && !strstr(p->shown + from, "-echo "), "%s", p->shown + from);
}

START_TEST(a_line_is_stopped_and_goes_on) {
    person p = sit_down_at_a_shell(CHAT, STOPPED);
    type(&p, FIRST, "Hel");
    await(&p, "Hel");
    size_t from = p.seen;
    type(&p, "", CTRL_Z);
    type(&p, PASTE_OFF, "");
    await_shell(&p, from);
    type(&p, PASTE_ON, "");
    type(&p, "> Hel", "lo." ENTER);
    type(&p, NEXT, CTRL_D);
    expect_answers(&p, CHAT, "Hello.\n");
}
END_TEST

START_TEST(an_answer_is_stopped_and_goes_on) {
    person p = sit_down_at_a_shell(TALK LONG, STOPPED);
    char bytes[64];
    type(&p, FIRST, "Hello." ENTER);
    ck_assert_int_eq(read(p.out, bytes, 1), 1);
    size_t from = p.seen;
    type(&p, PASTE_OFF PASTE_ON, CTRL_Z);
    await(&p, PASTE_OFF);
    await_shell(&p, from);
    await(&p, PASTE_ON);
    for (size_t got = 0; got < 1 << 13;) {
        /* the output is much larger than the pipe, so these bytes show that the command has continued */
        ssize_t more = read(p.out, bytes, sizeof bytes);
        ck_assert_int_gt(more, 0);
        got += (size_t)more;
        if (got >= 1 << 10) break;
    }
    type(&p, "", CTRL_C);
    type(&p, FIRST, "Hel" CTRL_C);
    type(&p, NEXT, CTRL_D);
    stand_up(&p);
}
END_TEST

/* Ctrl-C while a prompt runs must remove the prompt's turn, as if it had not been sent. The test also checks the
 * progress line, which is shown only on terminals. */
START_TEST(an_interrupt_takes_a_turn_back) {
    person p = sit_down(TALK "-c 4096 -n 4 --chunk 1 -t 1 --isa scalar", "xterm");
    char word[] = "never ";
    type(&p, FIRST, "Hello." ENTER);
    await(&p, NEXT);
    for (int i = 0; i < 1000; i++) ck_assert_int_eq(write(p.terminal, word, 6), 6);
    type(&p, "", ENTER);
    type(&p, "reading the prompt ", CTRL_C);
    await(&p, "% of ");
    type(&p, "the conversation is as it was", "");
    type(&p, FIRST, "Again." ENTER);
    type(&p, NEXT, "/undo" ENTER);
    type(&p, "the conversation has 1 turn", "");
    type(&p, NEXT, CTRL_D);
    char *answers = stand_up(&p), *second = strchr(answers, '\n');
    ck_assert_ptr_nonnull(second);
    fr_command plain = fr_command_feed("Hello.\nAgain.\n", TALK "-c 4096 -n 4");
    ck_assert_str_eq(answers, plain.out);
    fr_command_free(&plain);
}
END_TEST

/* Returns the command line of a chat that is saved in a new folder. */
static char *saved_chat(char *folder) {
    static char line[256];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(line, sizeof line, TALK LONG "--prompt-cache %s/session", folder);
    return line;
}

/* Checks that the saved conversation has one turn, and removes the folder. */
static void expect_saved(const char *folder) {
    char file[64];
    snprintf(file, sizeof file, "%s/session", folder);
    fr_command next = fr_command_feed("/exit\n", TALK "--prompt-cache %s", file);
    ck_assert_msg(strstr(next.err, "the conversation goes on after 1 turn") != NULL, "%s", next.err);
    fr_command_free(&next);
    unlink(file);
    ck_assert_int_eq(rmdir(folder), 0);
}

static const int endings[] = {SIGTERM, SIGHUP};

/* A signal comes while a line is typed, or during an answer. The session must be saved, and the exit status must be
 * that of the signal. */
START_TEST(a_signal_ends_a_chat_that_is_saved) {
    int ending = endings[_i / 2];
    bool answering = _i % 2;
    char byte, folder[] = "/tmp/forerun-XXXXXX";
    person p = sit_down(saved_chat(folder), "xterm");
    type(&p, FIRST, "Hello." ENTER);
    ck_assert_int_eq(read(p.out, &byte, 1), 1);
    if (!answering) type(&p, "", CTRL_C);
    if (!answering) type(&p, FIRST, "Never");
    if (!answering) await(&p, "Never");
    ck_assert_int_eq(kill(p.chat, ending), 0);
    while (read(p.out, &byte, 1) == 1) continue;
    ck_assert_int_eq(fr_command_wait(p.chat), 128 + ending);
    close(p.terminal);
    close(p.end);
    close(p.out);
    expect_saved(folder);
}
END_TEST

/* The terminal is closed while the chat writes an answer to it. */
START_TEST(a_chat_without_its_terminal_is_saved) {
    char byte, folder[] = "/tmp/forerun-XXXXXX";
    person p = sit_down_at_a_shell(saved_chat(folder), "trap \"\" HUP; \"$0\" \"$@\" >/dev/tty; echo $?");
    type(&p, FIRST, "Hello." ENTER);
    type(&p, PASTE_OFF, "");
    await(&p, "e"); /* the answer has begun */
    close(p.end);
    close(p.terminal);
    ck_assert_int_eq(read(p.out, &byte, 1), 1);
    ck_assert_int_eq(byte, '0');
    fr_command_wait(p.chat);
    close(p.out);
    expect_saved(folder);
}
END_TEST

/* Shell scripts that start the command, each with the output format and with the exit status that the shell prints. The
 * last script prints nothing, because its shell ends together with the terminal. */
static const struct {
    const char *script, *form, *says;
} lost[] = {
    {"trap \"\" HUP; \"$0\" \"$@\" >/dev/tty; echo $?", "text", "1\n"},
    {"trap \"\" HUP; \"$0\" \"$@\" >/dev/tty; echo $?", "json", "1\n"},
    {"exec 3>&1; \"$0\" \"$@\" >/dev/tty; echo $?", "text", ""},
};

/* The terminal is closed while a text is generated. The text so far must be kept in the cache and in the trace. */
START_TEST(a_text_without_its_terminal_is_kept) {
    char line[320], folder[] = "/tmp/forerun-XXXXXX", path[64], said[16] = "";
    struct stat info;
    size_t length = 0;
    ck_assert_ptr_nonnull(mkdtemp(folder));
    bool json = strcmp(lost[_i].form, "json") == 0;
    snprintf(line, sizeof line,
             "generate " DEMO LONG "-n %d -p Hello -v --output %s --trace %s/trace --prompt-cache "
             "%s/session",
             json ? 20 : 4000, lost[_i].form, folder, folder);
    person p = sit_down_at_a_shell(line, lost[_i].script);
    await(&p, "text as it is"); /* the last note that is printed before the text */
    if (!json) await(&p, ",");  /* the text has begun, so the command handles signals now */
    close(p.end);
    close(p.terminal);
    for (ssize_t got; (got = read(p.out, said + length, sizeof said - 1 - length)) > 0;) length += (size_t)got;
    ck_assert_str_eq(said, lost[_i].says);
    fr_command_wait(p.chat);
    close(p.out);
    snprintf(path, sizeof path, "%s/session", folder);
    ck_assert_int_eq(unlink(path), 0);
    snprintf(path, sizeof path, "%s/trace", folder);
    ck_assert(stat(path, &info) == 0 && info.st_size > 100);
    unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
}
END_TEST

/* If the terminal is closed while a line is typed, the chat ends. */
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

FR_SUITE("cli_terminal") {
    TCase *cases = tcase_create("cli_terminal");
    tcase_set_timeout(cases, 120);
    tcase_add_test(cases, keys_edit_a_line);
    tcase_add_test(cases, what_is_typed_stays);
    tcase_add_loop_test(cases, a_locale_without_characters_does_not_matter, 0, 2);
    tcase_add_loop_test(cases, an_interrupt_drops_the_line, 0, 2);
    tcase_add_loop_test(cases, an_interrupt_ends_an_answer, 0, 2);
    tcase_add_test(cases, a_line_goes_on_after_other_signals);
    tcase_add_test(cases, the_first_screen_says_what_is_there);
    tcase_add_test(cases, lines_end_between_words);
    tcase_add_test(cases, pasted_lines_are_a_turn);
    tcase_add_test(cases, lines_pasted_in_a_reply_are_a_turn);
    tcase_add_test(cases, much_is_pasted);
    tcase_add_test(cases, a_turn_is_edited);
    tcase_add_test(cases, a_line_is_stopped_and_goes_on);
    tcase_add_test(cases, an_answer_is_stopped_and_goes_on);
    tcase_add_test(cases, an_interrupt_takes_a_turn_back);
    tcase_add_loop_test(cases, a_signal_ends_a_chat_that_is_saved, 0, 4);
    tcase_add_test(cases, a_chat_without_its_terminal_is_saved);
    tcase_add_loop_test(cases, a_text_without_its_terminal_is_kept, 0, 3);
    tcase_add_test(cases, a_chat_ends_with_its_terminal);
    suite_add_tcase(suite, cases);
}
