/* Checks JSON a byte at a time: finds out if the bytes so far can be the beginning of a value.
 *
 * In: bytes. Out: for each byte, whether the value goes on, ends with the byte, or is invalid. The grammar is that of
 * RFC 8259; strings may have any bytes except control characters. A loose scan also accepts forms that models write
 * instead: control characters in strings, backslashes that begin no escape, a comma after the last item of a container,
 * and Python's literals ('text', True, False, None, tuples). A scan allocates no memory. */
#ifndef FR_SRC_LANGUAGE_CHAT_JSON_SCAN_H
#define FR_SRC_LANGUAGE_CHAT_JSON_SCAN_H

#include "forerun.h"

#define FR_SCAN_DEPTH 64 /* limit on nested objects and arrays */

typedef enum fr_scan_state {
    FR_SCAN_VALUE,        /* a value must follow */
    FR_SCAN_VALUE_OR_END, /* a value or the end of an empty array must follow */
    FR_SCAN_KEY,          /* a key must follow, because a comma was read */
    FR_SCAN_KEY_OR_END,   /* a key or the end of an empty object must follow */
    FR_SCAN_COLON,
    FR_SCAN_AFTER,  /* a value has ended: a comma or the end of its container must follow */
    FR_SCAN_STRING, /* within a string, which is a value or a key */
    FR_SCAN_ESCAPE, /* after the backslash of an escape */
    FR_SCAN_HEX,    /* within the hexadecimal digits of an escape */
    FR_SCAN_WORD,   /* within true, false or null */
    FR_SCAN_MINUS,  /* after the minus of a number */
    FR_SCAN_ZERO,   /* after the leading 0 of a number */
    FR_SCAN_WHOLE,  /* within the digits before the point */
    FR_SCAN_POINT,
    FR_SCAN_FRACTION,
    FR_SCAN_EXPONENT,
    FR_SCAN_EXPONENT_SIGN,
    FR_SCAN_EXPONENT_DIGITS,
} fr_scan_state;

typedef struct fr_json_scan {
    fr_scan_state state;
    bool loose;  /* the scan is loose (see above); set before the first byte */
    bool python; /* some of the text is written as in Python, so strings follow Python's rules */
    bool key;    /* the string is a key */
    char quote;  /* the quote that ends the string */
    uint8_t depth;
    uint8_t hex;      /* number of digits of an escape that are still missing */
    const char *word; /* the letters of the word that are still missing */
    uint64_t objects; /* bit d: the container at depth d + 1 is an object, not an array */
    uint64_t tuples;  /* bit d: the container at depth d + 1 is written in parentheses */
    uint64_t commas;  /* bit d: the container at depth d + 1 has a comma in it */
} fr_json_scan;

typedef enum fr_scan_result {
    FR_SCAN_ON,   /* the value continues */
    FR_SCAN_DONE, /* an object, array, string or word ended with this byte */
    FR_SCAN_BAD,
} fr_scan_result;

/* Reads a byte. A zeroed scan expects a value. A number at depth 0 has no last byte, so fr_json_scan_complete says if
 * it may end. */
fr_scan_result fr_json_scan_byte(fr_json_scan *scan, char byte);

/* Gives the byte that would close the innermost object or array. '\0': it can't be closed here, or none is open. */
char fr_json_scan_closing(const fr_json_scan *scan);

/* Returns true inside a number, which the next byte may continue. */
bool fr_json_scan_in_number(const fr_json_scan *scan);

/* Returns true if the bytes so far are one whole value. */
bool fr_json_scan_complete(const fr_json_scan *scan);

static inline bool fr_json_is_space(char byte) {
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

#endif
