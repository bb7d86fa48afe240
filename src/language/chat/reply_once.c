/* Removes members whose key is repeated, in place (reply_once.h). */
#include "src/language/chat/reply_once.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "formats/json_read.h"

/* A member of an object in the output. It begins after the brace or comma that precedes it, and ends before the comma
 * or brace that follows it. */
typedef struct member {
    size_t begin, end, key, key_length; /* offsets in the output; key_length includes the key's quotes */
    json_t *decoded;                    /* the key's text; NULL: the key has no escapes */
    const char *name;
    size_t length;
    bool again; /* a later member has the same key */
} member;

typedef struct pass {
    fr_text_buffer *text;
    member *members; /* members of all open objects; those of the outermost object come first */
    size_t count, room;
    size_t at, to; /* at: bytes read so far; to: bytes written so far */
} pass;

static void copy_byte(pass *p) {
    p->text->bytes[p->to++] = p->text->bytes[p->at++];
}

/* Copies bytes up to the next quote, brace, bracket or comma. */
static void copy_plain(pass *p) {
    while (!strchr("\"{}[],", p->text->bytes[p->at])) copy_byte(p);
}

static void copy_string(pass *p) {
    copy_byte(p);
    for (; p->text->bytes[p->at] != '"'; copy_byte(p))
        if (p->text->bytes[p->at] == '\\') copy_byte(p);
    copy_byte(p);
}

static bool add_member(pass *p, const member *added) {
    if (p->count == p->room) {
        size_t room = p->room ? 2 * p->room : 16;
        member *more = realloc(p->members, room * sizeof *more);
        if (!more) return false;
        p->members = more;
        p->room = room;
    }
    p->members[p->count++] = *added;
    return true;
}

static int by_key(const void *one, const void *other) {
    const member *a = one, *b = other;
    if (a->length != b->length) return a->length < b->length ? -1 : 1;
    int order = memcmp(a->name, b->name, a->length);
    return order ? order : a->begin < b->begin ? -1 : 1;
}

static int by_place(const void *one, const void *other) {
    const member *a = one, *b = other;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

/* Rewrites an object's members in the output. Leaves out each member whose key is repeated later. */
static bool drop_repeated(pass *p, member *members, size_t count) {
    char *bytes = p->text->bytes;
    bool some = false, lost = false;
    for (size_t i = 0; i < count; i++) {
        member *m = &members[i];
        bool escapes = memchr(bytes + m->key, '\\', m->key_length) != NULL;
        if (escapes && !lost)
            m->decoded = fr_json_read_text(bytes + m->key, m->key_length, JSON_DECODE_ANY | JSON_ALLOW_NUL, &lost);
        m->name = m->decoded ? json_string_value(m->decoded) : bytes + m->key + 1;
        m->length = m->decoded ? json_string_length(m->decoded) : m->key_length - 2;
    }
    qsort(members, count, sizeof *members, by_key);
    for (size_t i = 0; i + 1 < count; i++) {
        const member *m = &members[i], *next = m + 1;
        members[i].again = m->length == next->length && memcmp(m->name, next->name, m->length) == 0;
        some |= members[i].again;
    }
    qsort(members, count, sizeof *members, by_place);
    size_t to = members[0].begin, first = to;
    for (size_t i = 0; i < count; i++) {
        size_t length = members[i].end - members[i].begin;
        json_decref(members[i].decoded);
        if (!some || members[i].again) continue;
        if (to > first) bytes[to++] = ',';
        memmove(bytes + to, bytes + members[i].begin, length);
        to += length;
    }
    if (some) p->to = to;
    return !lost;
}

static bool copy_value(pass *p);

/* Copies the members of an object or the items of an array, up to the closing bracket. */
static bool copy_container(pass *p) {
    const char *bytes = p->text->bytes;
    bool object = bytes[p->at] == '{', good = true;
    size_t first = p->count;
    copy_byte(p);
    for (bool on = true; on && good;) {
        member m = {.begin = p->to};
        copy_plain(p);
        if (object && bytes[p->at] == '"') {
            m.key = p->to;
            copy_string(p);
            m.key_length = p->to - m.key;
            copy_plain(p);
        }
        if (bytes[p->at] != ',' && bytes[p->at] != '}' && bytes[p->at] != ']') good = copy_value(p);
        m.end = p->to;
        if (good && m.key_length) good = add_member(p, &m);
        on = bytes[p->at] == ',';
        if (on) copy_byte(p);
    }
    if (good && p->count > first + 1) good = drop_repeated(p, p->members + first, p->count - first);
    p->count = first;
    copy_byte(p);
    return good;
}

static bool copy_value(pass *p) {
    bool good = true;
    copy_plain(p);
    if (p->text->bytes[p->at] == '"')
        copy_string(p);
    else if (p->text->bytes[p->at] == '{' || p->text->bytes[p->at] == '[')
        good = copy_container(p);
    if (good) copy_plain(p);
    return good;
}

void fr_arguments_once(fr_text_buffer *arguments) {
    if (arguments->status != FR_OK || arguments->length == 0) return;
    pass p = {.text = arguments};
    if (!copy_container(&p)) {
        arguments->status = FR_MEMORY;
    } else {
        arguments->length = p.to;
        arguments->bytes[p.to] = '\0';
    }
    free(p.members);
}
