/* Finds the members of an object in its text (json_member.h). */
#include "tools/cli/json_member.h"

#include <string.h>

/* The part of the text that is still to be read. */
typedef struct rest {
    const char *at, *end;
} rest;

static bool is_blank(char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_blanks(rest *r) {
    while (r->at < r->end && is_blank(*r->at)) r->at++;
}

static bool take(rest *r, char c) {
    skip_blanks(r);
    bool there = r->at < r->end && *r->at == c;
    r->at += there;
    return there;
}

/* Skips the rest of a string after its opening quote, up to and including the closing quote. */
static void skip_string(rest *r) {
    for (; r->at < r->end && *r->at != '"'; r->at++)
        if (*r->at == '\\' && r->at + 1 < r->end) r->at++;
    if (r->at < r->end) r->at++;
}

/* Skips a value, up to the comma or bracket after it. */
static void skip_value(rest *r) {
    for (size_t depth = 0; r->at < r->end;) {
        char c = *r->at;
        if (depth == 0 && (c == ',' || c == '}' || c == ']')) return;
        r->at++;
        if (c == '"') skip_string(r);
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
    }
}

bool fr_json_member(const char *text, size_t length, const char *name, const char **value, size_t *size) {
    rest r = {text, text + length};
    size_t name_length = strlen(name);
    if (!take(&r, '{')) return false;
    do {
        if (!take(&r, '"')) return false;
        const char *key = r.at;
        skip_string(&r);
        bool found = (size_t)(r.at - key) == name_length + 1 && memcmp(key, name, name_length) == 0;
        if (!take(&r, ':')) return false;
        skip_blanks(&r);
        *value = r.at;
        skip_value(&r);
        *size = (size_t)(r.at - *value);
        while (*size && is_blank((*value)[*size - 1])) --*size;
        if (found) return *size > 0;
    } while (take(&r, ','));
    return false;
}
