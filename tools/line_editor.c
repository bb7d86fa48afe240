/* A line typed on a terminal, by way of libedit (line_editor.h). */
#include "line_editor.h"

#include <errno.h>
#include <histedit.h>
#include <limits.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include "key_wait.h"
#include "output.h"

enum { REMEMBERED = 1000 };

struct fr_line_editor {
    EditLine *edit;
    History *history;
    char prompt[8];
    mbstate_t half; /* of a character that is being read */
    char again;     /* if `reread`: the byte that showed that to be none, and may begin the next */
    bool reread, dropped;
};

/* After a signal: whether the line goes on. */
static bool go_on_after(fr_line_editor *editor, int signal_number) {
    if (signal_number == SIGINT) return false;
    if (signal_number == SIGWINCH) el_resize(editor->edit);
    if (signal_number == SIGCONT) el_set(editor->edit, EL_PREP_TERM, 1);
    el_set(editor->edit, EL_REFRESH);
    return true;
}

/* The next byte that is typed: 1, or 0 at the end of input, or -1 on an error or where the line is dropped. */
static int next_byte(fr_line_editor *editor, char *byte) {
    for (;;) {
        int came = fr_key_wait();
        if (came < 0) return -1;
        if (came == 0) {
            ssize_t got = read(STDIN_FILENO, byte, 1);
            if (got >= 0 || errno != EINTR) return (int)got;
        } else if (!go_on_after(editor, came)) {
            editor->dropped = true;
            return -1;
        }
    }
}

/* For what is no character; libedit aborts at one that the locale can't write. */
static wchar_t replacement(void) {
    char bytes[MB_LEN_MAX];
    mbstate_t state = {0};
    return wcrtomb(bytes, 0xfffd, &state) == (size_t)-1 ? L'?' : (wchar_t)0xfffd;
}

/* An el_rfunc_t. Bytes that are no character are replaced: one that begins none, or all that began one. */
static int next_character(EditLine *edit, wchar_t *character) {
    fr_line_editor *editor;
    el_get(edit, EL_CLIENTDATA, &editor);
    for (;;) {
        char byte = editor->again;
        int got = editor->reread ? 1 : next_byte(editor, &byte);
        editor->reread = false;
        if (got <= 0) return got;
        bool begun = !mbsinit(&editor->half);
        size_t length = mbrtowc(character, &byte, 1, &editor->half);
        if (length == (size_t)-2) continue;
        if (length != (size_t)-1) return 1;
        memset(&editor->half, 0, sizeof(editor->half));
        editor->again = byte;
        editor->reread = begun;
        *character = replacement();
        return 1;
    }
}

static char *prompt_of(EditLine *edit) {
    fr_line_editor *editor;
    el_get(edit, EL_CLIENTDATA, &editor);
    return editor->prompt;
}

/* Characters are UTF-8, whatever else the user's locale says or fails to say. */
static void use_utf8(void) {
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1) setlocale(LC_CTYPE, "C.UTF-8");
}

static bool can_edit(void) {
    const char *kind = getenv("TERM");
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO) && kind && *kind && strcmp(kind, "dumb") != 0;
}

fr_line_editor *fr_line_editor_open(void) {
    HistEvent event;
    if (!can_edit()) return NULL;
    use_utf8();
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
    el_set(editor->edit, EL_BIND, "^I", "ed-insert", NULL); /* what is pasted may have tabs */
    el_set(editor->edit, EL_HIST, history, editor->history);
    el_source(editor->edit, NULL); /* the user's own ~/.editrc */
    return editor;
}

void fr_line_editor_close(fr_line_editor *editor) {
    if (!editor) return;
    if (editor->edit) el_end(editor->edit);
    if (editor->history) history_end(editor->history);
    free(editor);
}

fr_line fr_line_editor_read(fr_line_editor *editor, const char *prompt, const char **line, size_t *length) {
    int count;
    snprintf(editor->prompt, sizeof(editor->prompt), "%s", prompt);
    editor->dropped = false;
    memset(&editor->half, 0, sizeof(editor->half));
    editor->reread = false;
    if (!fr_key_wait_begin()) return FR_LINE_END;
    el_set(editor->edit, EL_PREP_TERM, 1); /* before the prompt: what is typed at it is typed here */
    *line = el_gets(editor->edit, &count);
    fr_key_wait_end();
    if (editor->dropped) fputc('\n', stderr);
    if (editor->dropped) return FR_LINE_DROPPED;
    if (!*line || count <= 0) return FR_LINE_END;
    *length = (size_t)count;
    return FR_LINE_TYPED;
}

void fr_line_editor_remember(fr_line_editor *editor, const char *line) {
    HistEvent event;
    if (*line) history(editor->history, &event, H_ENTER, line);
}
