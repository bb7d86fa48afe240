/* Edits a line on a terminal with libedit (line_editor.h). */
#include "tools/cli/terminal/line_editor.h"

#include <errno.h>
#include <histedit.h>
#include <limits.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include "tools/cli/output.h"
#include "tools/cli/terminal/key_wait.h"

/* REMEMBERED: the most lines that can be recalled. FOR_EVER: a limit for next_byte that means no limit. REST_OF_KEY: a
 * key may send several bytes, which all come within this many milliseconds. */
enum { REMEMBERED = 1000, FOR_EVER = -1, REST_OF_KEY = 50 };

/* These bytes switch bracketed paste on and off. While it is on, the terminal puts marks around pasted text. */
#define PASTE_ON  "\033[?2004h"
#define PASTE_OFF "\033[?2004l"

/* A character that no keyboard sends. It makes libedit redraw the line after this file has inserted text into it. */
#define SHOW_CHANGED L'\x80'
static const char paste_begin[] = "\033[200~", paste_end[] = "\033[201~";
enum { MARK = sizeof paste_begin - 1 };

struct fr_line_editor {
    EditLine *edit;
    History *history;
    char prompt[8];
    char *initial;  /* text that the line has before the first key; NULL: none */
    mbstate_t half; /* conversion state of a character of which some bytes were read */
    /* bytes that were read to find a paste mark or to complete a character, but turned out to be something else; they
     * are read again */
    char again[MARK + 1];
    size_t agains;
    char *pasted;
    size_t length, capacity;
    bool dropped;
};

/* ----------------------------------------------------------------------------------------------------- the terminal */

static void prepare_terminal(fr_line_editor *editor) {
    el_set(editor->edit, EL_PREP_TERM, 1);
    fputs(PASTE_ON, stderr);
}

static void leave_terminal(fr_line_editor *editor) {
    fputs(PASTE_OFF, stderr);
    el_set(editor->edit, EL_PREP_TERM, 0);
}

/* ------------------------------------------------------------------------------------------------ between two lines */

static volatile sig_atomic_t bracketed; /* bracketed paste is also on between two lines */

static struct termios cooked; /* the terminal's settings while no line is edited */

/* Switches bracketed paste on or off for the time between two lines. While it is on, keys are not echoed. Otherwise
 * keys that are typed early, for the next line, would appear in the middle of a reply. */
static void bracket(bool on) {
    const char *asks = on ? PASTE_ON : PASTE_OFF;
    struct termios hushed = cooked;
    if (!bracketed) return;
    ssize_t unused = write(STDERR_FILENO, asks, strlen(asks));
    (void)unused;
    hushed.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    if (tcgetpgrp(STDIN_FILENO) != getpgrp()) return; /* another program uses the terminal */
    tcsetattr(STDIN_FILENO, TCSADRAIN, on ? &hushed : &cooked);
}

static void stop_bracketing(void) {
    bracket(false);
    bracketed = false;
}

/* Handles Ctrl-Z between two lines. Before this program is stopped, the function restores the terminal's usual
 * settings, because another program uses the terminal meanwhile. When this program continues, the function changes the
 * settings again. */
static void step_aside(int signal_number) {
    struct sigaction own, usual = {.sa_handler = SIG_DFL};
    sigset_t only;
    int error = errno;
    bracket(false);
    sigemptyset(&only);
    sigaddset(&only, signal_number);
    sigaction(signal_number, &usual, &own);
    raise(signal_number);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL); /* the process stops here */
    pthread_sigmask(SIG_BLOCK, &only, NULL);
    sigaction(signal_number, &own, NULL);
    bracket(true);
    errno = error;
}

/* Handles a signal that comes while a line is edited. Returns true if editing continues. Before Ctrl-Z stops this
 * program, the terminal gets its usual settings back. When the program continues, SIGCONT comes and the line is shown
 * again. */
static bool go_on_after(fr_line_editor *editor, int signal_number) {
    if (signal_number == SIGINT) editor->dropped = true;
    if (signal_number == SIGINT || signal_number == SIGTERM || signal_number == SIGHUP) return false;
    if (signal_number == SIGWINCH) el_resize(editor->edit);
    if (signal_number == SIGTSTP) {
        leave_terminal(editor);
        fr_key_wait_stop();
        prepare_terminal(editor);
        return true;
    }
    if (signal_number == SIGCONT) prepare_terminal(editor);
    fputs("\r\033[J", stderr);
    el_set(editor->edit, EL_REFRESH);
    return true;
}

/* ------------------------------------------------------------------------------------------------------------- keys */

/* Reads the next byte, and waits at most this many milliseconds for it. Returns 1 if there is a byte. Returns 0 at the
 * end of input, or if no byte came in time. Returns -1 after an error, or if a signal ends the line. */
static int next_byte(fr_line_editor *editor, char *byte, int milliseconds) {
    for (;;) {
        int came = fr_key_wait(milliseconds);
        if (came == FR_KEY_FAILED) return -1;
        if (came == FR_KEY_NONE) return 0;
        if (came == FR_KEY_TYPED) {
            ssize_t got = read(STDIN_FILENO, byte, 1);
            if (got >= 0 || errno != EINTR) return (int)got;
        } else if (!go_on_after(editor, came)) {
            return -1;
        }
    }
}

/* Gives the character that replaces invalid bytes. The locale must be able to write this character, because libedit
 * aborts on characters that the locale can't write. */
static wchar_t replacement(void) {
    char bytes[MB_LEN_MAX];
    mbstate_t state = {0};
    return wcrtomb(bytes, 0xfffd, &state) == (size_t)-1 ? L'?' : (wchar_t)0xfffd;
}

/* Adds a byte to a character. Invalid bytes become one replacement character. Invalid are a byte that can't begin a
 * character, and the bytes of a character that another character interrupts. Returns false if the character continues
 * in the next byte. *again: the byte must be read again, because it may begin the next character. */
static bool take_byte(mbstate_t *half, char byte, wchar_t *character, bool *again) {
    bool begun = !mbsinit(half);
    size_t length = mbrtowc(character, &byte, 1, half);
    *again = false;
    if (length == (size_t)-2) return false;
    if (length != (size_t)-1) return true;
    memset(half, 0, sizeof *half);
    *again = begun;
    *character = replacement();
    return true;
}

static void put_again(fr_line_editor *editor, const char *bytes, size_t count) {
    memmove(editor->again + count, editor->again, editor->agains);
    memcpy(editor->again, bytes, count);
    editor->agains += count;
}

/* ---------------------------------------------------------------------------------------------------- inserted text */

/* Inserts bytes at the cursor unchanged. A line end becomes a character of the line. */
static void put_text(fr_line_editor *editor, const char *bytes, size_t length) {
    wchar_t *text = fr_resize(NULL, length + 1, sizeof *text);
    mbstate_t half = {0};
    size_t count = 0;
    for (size_t i = 0; i < length;) {
        bool again, whole = take_byte(&half, bytes[i], &text[count], &again);
        if (whole && text[count]) count++; /* a NUL would end the inserted text, so NULs are left out */
        i += !again;
    }
    if (!mbsinit(&half)) text[count++] = replacement();
    text[count] = L'\0';
    if (count) el_winsertstr(editor->edit, text);
    free(text);
}

/* Reads pasted text up to the mark at its end, and inserts the text. Returns 1. If reading fails, returns next_byte's
 * result. */
static int paste(fr_line_editor *editor) {
    for (editor->length = 0;;) {
        char byte;
        int got = next_byte(editor, &byte, FOR_EVER);
        if (got <= 0) return got;
        if (editor->length == editor->capacity) {
            editor->capacity = 2 * editor->capacity + 256;
            editor->pasted = fr_resize(editor->pasted, editor->capacity, 1);
        }
        /* terminals send the byte of the Enter key for each line end in a pasted text */
        editor->pasted[editor->length++] = byte == '\r' ? '\n' : byte;
        if (editor->length < MARK || memcmp(editor->pasted + editor->length - MARK, paste_end, MARK) != 0) continue;
        editor->length -= MARK;
        put_text(editor, editor->pasted, editor->length);
        return 1;
    }
}

/* Reads the rest of a paste mark. Its first byte, an escape, was already read. Returns 1 if the bytes are a paste mark.
 * Returns 0 if they are not; then they are read again as keys. Returns -1 if the line ends here. */
static int begins_paste(fr_line_editor *editor) {
    char bytes[MARK];
    size_t count = 1;
    for (; count < MARK; count++) {
        int got = next_byte(editor, &bytes[count], REST_OF_KEY);
        if (got < 0) return -1;
        if (got == 0) break;
        if (bytes[count] == paste_begin[count]) continue;
        count++;
        break;
    }
    if (count == MARK && bytes[MARK - 1] == paste_begin[MARK - 1]) return 1;
    put_again(editor, bytes + 1, count - 1);
    return 0;
}

/* Reads the next byte of a key, like next_byte. *pasted: true if pasted text came instead of a key; it was inserted. */
static int next_key(fr_line_editor *editor, char *byte, bool *pasted) {
    *pasted = false;
    if (editor->agains) {
        *byte = editor->again[0];
        memmove(editor->again, editor->again + 1, --editor->agains);
        return 1;
    }
    int got = next_byte(editor, byte, FOR_EVER);
    if (got <= 0 || *byte != paste_begin[0]) return got;
    int begins = begins_paste(editor);
    if (begins <= 0) return begins < 0 ? begins : 1;
    *pasted = true;
    return paste(editor);
}

static void forget_initial(fr_line_editor *editor) {
    free(editor->initial);
    editor->initial = NULL;
}

/* Gives libedit the next character (an el_rfunc_t). */
static int next_character(EditLine *edit, wchar_t *character) {
    fr_line_editor *editor;
    el_get(edit, EL_CLIENTDATA, &editor);
    *character = SHOW_CHANGED;
    if (editor->initial) {
        put_text(editor, editor->initial, strlen(editor->initial));
        forget_initial(editor);
        return 1;
    }
    for (;;) {
        char byte;
        bool again, pasted;
        int got = next_key(editor, &byte, &pasted);
        if (got <= 0 || pasted) return got;
        bool whole = take_byte(&editor->half, byte, character, &again);
        if (again) put_again(editor, &byte, 1);
        if (whole) return 1;
    }
}

/* --------------------------------------------------------------------------------------------------------- the line */

static char *prompt_of(EditLine *edit) {
    fr_line_editor *editor;
    el_get(edit, EL_CLIENTDATA, &editor);
    return editor->prompt;
}

static bool can_edit(void) {
    const char *kind = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO) && kind && *kind && strcmp(kind, "dumb") != 0;
}

fr_line_editor *fr_line_editor_open(void) {
    HistEvent event;
    if (!can_edit()) return NULL;
    /* if the locale has no multi-byte encoding, characters are taken to be UTF-8 */
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1) setlocale(LC_CTYPE, "C.UTF-8");
    fr_line_editor *editor = fr_resize(NULL, 1, sizeof(*editor));
    *editor = (fr_line_editor){.edit = el_init("forerun", stdin, stderr, stderr), .history = history_init()};
    if (!editor->edit || !editor->history) {
        fr_line_editor_close(editor);
        return NULL;
    }
    history(editor->history, &event, H_SETSIZE, REMEMBERED);
    history(editor->history, &event, H_SETUNIQUE, 1);
    el_set(editor->edit, EL_CLIENTDATA, editor);
    el_set(editor->edit, EL_GETCFN, next_character);
    el_set(editor->edit, EL_PROMPT, prompt_of);
    el_set(editor->edit, EL_EDITOR, "emacs");
    el_set(editor->edit, EL_BIND, "^I", "ed-insert", NULL); /* a tab is inserted, because pasted text may have tabs */
    el_set(editor->edit, EL_HIST, history, editor->history);
    el_source(editor->edit, NULL); /* reads the user's own settings from ~/.editrc */
    /* SHOW_CHANGED is bound in both key maps of libedit, because its vi mode uses both */
    el_set(editor->edit, EL_BIND, "\\200", "ed-redisplay", NULL);
    el_set(editor->edit, EL_BIND, "-a", "\\200", "ed-redisplay", NULL);
    struct sigaction before, action = {.sa_handler = step_aside, .sa_flags = SA_RESTART};
    sigaction(SIGTSTP, NULL, &before);
    if (before.sa_handler == SIG_DFL) sigaction(SIGTSTP, &action, NULL);
    atexit(stop_bracketing);
    return editor;
}

void fr_line_editor_close(fr_line_editor *editor) {
    if (!editor) return;
    stop_bracketing();
    if (editor->edit) el_end(editor->edit);
    if (editor->history) history_end(editor->history);
    forget_initial(editor);
    free(editor->pasted);
    free(editor);
}

void fr_line_editor_begin_with(fr_line_editor *editor, const char *text) {
    forget_initial(editor);
    editor->initial = fr_resize(NULL, strlen(text) + 1, 1);
    memcpy(editor->initial, text, strlen(text) + 1);
}

fr_line fr_line_editor_read(fr_line_editor *editor, const char *prompt, const char **line, size_t *length) {
    int count;
    snprintf(editor->prompt, sizeof(editor->prompt), "%s", prompt);
    editor->dropped = false;
    memset(&editor->half, 0, sizeof(editor->half));
    editor->agains = 0;
    if (!fr_key_wait_begin()) return FR_LINE_END;
    bracketed = false;
    /* this is done before the prompt is shown, so that keys that are typed at the prompt belong to this line */
    prepare_terminal(editor);
    *line = el_gets(editor->edit, &count);
    leave_terminal(editor);
    fr_key_wait_end();
    forget_initial(editor);
    if (!editor->dropped && (!*line || count <= 0)) return FR_LINE_END;
    fflush(stderr);
    bracketed = tcgetattr(STDIN_FILENO, &cooked) == 0;
    bracket(true); /* from now on, text that is pasted before the next prompt becomes one turn */
    if (editor->dropped) fputc('\n', stderr);
    if (editor->dropped) return FR_LINE_DROPPED;
    *length = (size_t)count;
    return FR_LINE_TYPED;
}

void fr_line_editor_remember(fr_line_editor *editor, const char *line) {
    HistEvent event;
    if (*line) history(editor->history, &event, H_ENTER, line);
}
