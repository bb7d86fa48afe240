/* Follows JSON pointers (json_pointer.h). */
#include "formats/json_pointer.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define KEY_MAX 1024 /* bytes of a member's name */
#define END     (-1)

static int hex_digit(char byte) {
    static const char digits[] = "0123456789abcdef";
    const char *found = byte ? strchr(digits, byte >= 'A' && byte <= 'F' ? byte | 0x20 : byte) : NULL;
    return found ? (int)(found - digits) : -1;
}

/* Takes the next byte of the pointer. An escape such as %2F is decoded to one byte. */
static int take_byte(const char **at) {
    const char *in = *at;
    int high = *in == '%' ? hex_digit(in[1]) : -1, low = high >= 0 ? hex_digit(in[2]) : -1;
    if (!*in) return END;
    *at += low >= 0 ? 3 : 1;
    return low >= 0 ? high << 4 | low : (unsigned char)*in;
}

/* Takes the rest of an escape, after its tilde: "1" means a slash, and "0" a tilde. If neither follows, the tilde is an
 * ordinary character. */
static char take_escape(const char **at) {
    const char *next = *at;
    int byte = take_byte(&next);
    if (byte != '0' && byte != '1') return '~';
    *at = next;
    return byte == '0' ? '~' : '/';
}

/* Takes a name of the pointer. *end gets the byte after the name. Returns false if the name is longer than any
 * member's name. */
static bool take_key(const char **at, char key[KEY_MAX], int *end) {
    size_t length = 0;
    for (;;) {
        int byte = *end = take_byte(at);
        if (byte == END || byte == '/') break;
        if (byte == 0 || length == KEY_MAX - 1) return false;
        key[length++] = byte == '~' ? take_escape(at) : (char)byte;
    }
    key[length] = '\0';
    return true;
}

static const json_t *step_into(const json_t *value, const char *key) {
    if (!json_is_array(value)) return json_object_get(value, key);
    bool number = *key && strspn(key, "0123456789") == strlen(key) && (*key != '0' || !key[1]);
    return number ? json_array_get(value, strtoull(key, NULL, 10)) : NULL;
}

const json_t *fr_json_refer(const json_t *root, const char *reference) {
    char key[KEY_MAX];
    if (!reference || *reference != '#') return NULL;
    const char *at = reference + 1;
    int byte = take_byte(&at);
    while (root && byte == '/') {
        if (!take_key(&at, key, &byte)) return NULL;
        root = step_into(root, key);
    }
    return byte == END ? root : NULL;
}
