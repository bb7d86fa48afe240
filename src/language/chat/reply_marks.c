/* Finds marks in a reply (reply_marks.h). There are few marks, and they are short, so the held bytes are compared with
 * each of them. */
#include "src/language/chat/reply_marks.h"

#include <string.h>

/* Returns true for a mark that is found in text. If a mark has an id, only that token is the mark. */
static bool in_text(const fr_reply_format *format, size_t mark) {
    return format->marks[mark] && format->ids[mark] < 0;
}

void fr_mark_finder_begin(fr_mark_finder *finder, const fr_reply_format *format) {
    *finder = (fr_mark_finder){.format = format};
    for (size_t i = 0; i < FR_MARK_COUNT; i++)
        if (in_text(format, i)) finder->begins[(unsigned char)format->marks[i][0]] = true;
}

/* Returns the mark that the held bytes are equal to; FR_MARK_NONE: they are equal to none. *partly: further bytes may
 * complete a mark. No mark is the beginning of another mark. */
static fr_mark held_mark(const fr_mark_finder *finder, bool *partly) {
    *partly = false;
    for (size_t i = 0; i < FR_MARK_COUNT; i++) {
        if (!in_text(finder->format, i) || strncmp(finder->format->marks[i], finder->held, finder->count) != 0)
            continue;
        if (finder->format->marks[i][finder->count] == '\0') return (fr_mark)i;
        *partly = true;
    }
    return FR_MARK_NONE;
}

static void let_go(fr_mark_finder *finder, size_t count, fr_mark_fn *found, void *context) {
    found(context, FR_MARK_NONE, finder->held, count);
    finder->count -= count;
    memmove(finder->held, finder->held + count, finder->count);
}

/* Passes on held bytes as text, until the remaining bytes may begin a mark. If the remaining bytes are a whole mark,
 * passes on the mark. */
static void settle(fr_mark_finder *finder, fr_mark_fn *found, void *context) {
    while (finder->count > 0) {
        bool partly;
        fr_mark mark = held_mark(finder, &partly);
        if (partly) return;
        if (mark == FR_MARK_NONE) {
            let_go(finder, 1, found, context);
        } else {
            finder->count = 0;
            found(context, mark, finder->format->marks[mark], strlen(finder->format->marks[mark]));
        }
    }
}

static fr_mark whole_mark(const fr_reply_format *format, const char *text, size_t length) {
    for (size_t i = 0; i < FR_MARK_COUNT; i++) {
        const char *mark = format->marks[i];
        if (mark && strlen(mark) == length && memcmp(mark, text, length) == 0) return (fr_mark)i;
    }
    return FR_MARK_NONE;
}

void fr_mark_finder_feed(fr_mark_finder *finder, const char *text, size_t length, bool control, fr_mark_fn *found,
                         void *context) {
    if (control) {
        fr_mark_finder_finish(finder, found, context);
        found(context, whole_mark(finder->format, text, length), text, length);
        return;
    }
    for (size_t at = 0; at < length;) {
        size_t end = at;
        while (finder->count == 0 && end < length && !finder->begins[(unsigned char)text[end]]) end++;
        if (end > at) found(context, FR_MARK_NONE, text + at, end - at);
        at = end;
        if (at == length) return;
        finder->held[finder->count++] = text[at++];
        settle(finder, found, context);
    }
}

void fr_mark_finder_finish(fr_mark_finder *finder, fr_mark_fn *found, void *context) {
    if (finder->count > 0) let_go(finder, finder->count, found, context);
}
