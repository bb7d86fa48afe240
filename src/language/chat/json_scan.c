/* Implements json_scan.h as an automaton. It has a state, and a bit for each object or array that is open. */
#include "src/language/chat/json_scan.h"

#include <string.h>

static bool is_digit(char byte) {
    return byte >= '0' && byte <= '9';
}

static bool is_hex(char byte) {
    char lower = (char)(byte | 0x20);
    return is_digit(byte) || (lower >= 'a' && lower <= 'f');
}

static fr_scan_result go(fr_json_scan *scan, fr_scan_state state) {
    scan->state = state;
    return FR_SCAN_ON;
}

static bool in_object(const fr_json_scan *scan) {
    return scan->depth > 0 && (scan->objects >> (scan->depth - 1) & 1) != 0;
}

static fr_scan_result ended(fr_json_scan *scan) {
    scan->state = FR_SCAN_AFTER;
    return scan->depth == 0 ? FR_SCAN_DONE : FR_SCAN_ON;
}

static bool number_may_end(fr_scan_state state) {
    return state == FR_SCAN_ZERO || state == FR_SCAN_WHOLE || state == FR_SCAN_FRACTION ||
           state == FR_SCAN_EXPONENT_DIGITS;
}

static uint64_t with_bit(uint64_t bits, uint64_t bit, bool set) {
    return set ? bits | bit : bits & ~bit;
}

static fr_scan_result open_container(fr_json_scan *scan, char byte) {
    bool object = byte == '{';
    if (scan->depth == FR_SCAN_DEPTH) return FR_SCAN_BAD;
    uint64_t bit = (uint64_t)1 << scan->depth++;
    scan->objects = with_bit(scan->objects, bit, object);
    scan->tuples = with_bit(scan->tuples, bit, byte == '(');
    scan->commas &= ~bit;
    scan->python |= byte == '(';
    return go(scan, object ? FR_SCAN_KEY_OR_END : FR_SCAN_VALUE_OR_END);
}

static bool is_closing(char byte) {
    return byte == '}' || byte == ']' || byte == ')';
}

char fr_json_scan_closing(const fr_json_scan *scan) {
    bool here = scan->state == FR_SCAN_AFTER || scan->state == FR_SCAN_VALUE_OR_END ||
                scan->state == FR_SCAN_KEY_OR_END || (scan->state == FR_SCAN_KEY && scan->loose) ||
                number_may_end(scan->state);
    if (scan->depth == 0 || !here) return '\0';
    if (in_object(scan)) return '}';
    return scan->tuples >> (scan->depth - 1) & 1 ? ')' : ']';
}

/* Closes a container. In Python, parentheses around one value without a comma are not a tuple, so they are refused. */
static fr_scan_result close_container(fr_json_scan *scan, char byte) {
    if (byte != fr_json_scan_closing(scan)) return FR_SCAN_BAD;
    bool comma = scan->commas >> (scan->depth - 1) & 1;
    if (byte == ')' && !comma && scan->state != FR_SCAN_VALUE_OR_END) return FR_SCAN_BAD;
    scan->depth--;
    return ended(scan);
}

static fr_scan_result begin_string(fr_json_scan *scan, bool key, char quote) {
    scan->key = key;
    scan->quote = quote;
    scan->python |= quote == '\'';
    return go(scan, FR_SCAN_STRING);
}

static bool is_quote(const fr_json_scan *scan, char byte) {
    return byte == '"' || (scan->loose && byte == '\'');
}

static fr_scan_result begin_word(fr_json_scan *scan, const char *rest) {
    scan->word = rest;
    return go(scan, FR_SCAN_WORD);
}

static fr_scan_result begin_value(fr_json_scan *scan, char byte) {
    if (is_quote(scan, byte)) return begin_string(scan, false, byte);
    if (scan->loose && (byte == 'T' || byte == 'F' || byte == 'N')) {
        scan->python = true;
        return begin_word(scan, byte == 'T' ? "rue" : byte == 'F' ? "alse" : "one");
    }
    switch (byte) {
    case '(':
        if (!scan->loose) return FR_SCAN_BAD;
        /* fallthrough */
    case '{':
    case '[': return open_container(scan, byte);
    case 't': return begin_word(scan, "rue");
    case 'f': return begin_word(scan, "alse");
    case 'n': return begin_word(scan, "ull");
    case '-': return go(scan, FR_SCAN_MINUS);
    case '0': return go(scan, FR_SCAN_ZERO);
    default: return is_digit(byte) ? go(scan, FR_SCAN_WHOLE) : FR_SCAN_BAD;
    }
}

/* Reads a byte between two parts of a value: white space, a bracket, a comma, a colon, or the first byte of a part. */
static fr_scan_result between(fr_json_scan *scan, char byte) {
    if (fr_json_is_space(byte)) return FR_SCAN_ON;
    switch (scan->state) {
    case FR_SCAN_VALUE_OR_END: return is_closing(byte) ? close_container(scan, byte) : begin_value(scan, byte);
    case FR_SCAN_VALUE: return begin_value(scan, byte);
    case FR_SCAN_KEY_OR_END:
        if (byte == '}') return close_container(scan, byte);
        /* fallthrough */
    case FR_SCAN_KEY:
        if (byte == '}' && scan->loose) return close_container(scan, byte);
        return is_quote(scan, byte) ? begin_string(scan, true, byte) : FR_SCAN_BAD;
    case FR_SCAN_COLON: return byte == ':' ? go(scan, FR_SCAN_VALUE) : FR_SCAN_BAD;
    default:
        if (byte == ',' && scan->depth > 0) {
            scan->commas |= (uint64_t)1 << (scan->depth - 1);
            return go(scan, in_object(scan) ? FR_SCAN_KEY : scan->loose ? FR_SCAN_VALUE_OR_END : FR_SCAN_VALUE);
        }
        return is_closing(byte) ? close_container(scan, byte) : FR_SCAN_BAD;
    }
}

/* Reads a byte of a string. In a loose scan, a backslash that begins no escape is an ordinary character. */
static fr_scan_result in_string(fr_json_scan *scan, char byte) {
    if (scan->state == FR_SCAN_HEX && is_hex(byte)) return --scan->hex == 0 ? go(scan, FR_SCAN_STRING) : FR_SCAN_ON;
    if (scan->state == FR_SCAN_HEX && !scan->loose) return FR_SCAN_BAD;
    if (scan->state == FR_SCAN_ESCAPE) {
        bool two = byte == 'x' && scan->python;
        scan->hex = two ? 2 : 4;
        if (byte == 'u' || two) return go(scan, FR_SCAN_HEX);
        bool known = byte && strchr("\"\\/bfnrt", byte);
        return known || scan->loose ? go(scan, FR_SCAN_STRING) : FR_SCAN_BAD;
    }
    scan->state = FR_SCAN_STRING;
    if (byte == '\\') return go(scan, FR_SCAN_ESCAPE);
    if (byte == scan->quote) return scan->key ? go(scan, FR_SCAN_COLON) : ended(scan);
    return (unsigned char)byte < ' ' && !scan->loose ? FR_SCAN_BAD : FR_SCAN_ON;
}

/* Gives the state of a number after this byte. FR_SCAN_AFTER: the byte is not part of the number. */
static fr_scan_state number_goes_on(fr_scan_state state, char byte) {
    bool digit = is_digit(byte), exponent = byte == 'e' || byte == 'E';
    switch (state) {
    case FR_SCAN_MINUS:
        if (byte == '0') return FR_SCAN_ZERO;
        return digit ? FR_SCAN_WHOLE : FR_SCAN_AFTER;
    case FR_SCAN_WHOLE:
        if (digit) return FR_SCAN_WHOLE;
        /* fallthrough */
    case FR_SCAN_ZERO:
        if (byte == '.') return FR_SCAN_POINT;
        return exponent ? FR_SCAN_EXPONENT : FR_SCAN_AFTER;
    case FR_SCAN_FRACTION:
        if (exponent) return FR_SCAN_EXPONENT;
        /* fallthrough */
    case FR_SCAN_POINT: return digit ? FR_SCAN_FRACTION : FR_SCAN_AFTER;
    case FR_SCAN_EXPONENT:
        if (byte == '+' || byte == '-') return FR_SCAN_EXPONENT_SIGN;
        /* fallthrough */
    default: return digit ? FR_SCAN_EXPONENT_DIGITS : FR_SCAN_AFTER;
    }
}

/* Reads a byte of a number. A number ends before the first byte that is not part of it, so that byte is then read again
 * as the byte after the number. */
static fr_scan_result in_number(fr_json_scan *scan, char byte) {
    fr_scan_state next = number_goes_on(scan->state, byte);
    if (next != FR_SCAN_AFTER) return go(scan, next);
    if (!number_may_end(scan->state)) return FR_SCAN_BAD;
    scan->state = FR_SCAN_AFTER;
    return between(scan, byte);
}

fr_scan_result fr_json_scan_byte(fr_json_scan *scan, char byte) {
    switch (scan->state) {
    case FR_SCAN_STRING:
    case FR_SCAN_ESCAPE:
    case FR_SCAN_HEX: return in_string(scan, byte);
    case FR_SCAN_WORD:
        if (byte != *scan->word) return FR_SCAN_BAD;
        return *++scan->word ? FR_SCAN_ON : ended(scan);
    case FR_SCAN_MINUS:
    case FR_SCAN_ZERO:
    case FR_SCAN_WHOLE:
    case FR_SCAN_POINT:
    case FR_SCAN_FRACTION:
    case FR_SCAN_EXPONENT:
    case FR_SCAN_EXPONENT_SIGN:
    case FR_SCAN_EXPONENT_DIGITS: return in_number(scan, byte);
    default: return between(scan, byte);
    }
}

bool fr_json_scan_in_number(const fr_json_scan *scan) {
    return scan->state >= FR_SCAN_MINUS && scan->state <= FR_SCAN_EXPONENT_DIGITS;
}

bool fr_json_scan_complete(const fr_json_scan *scan) {
    return scan->depth == 0 && (scan->state == FR_SCAN_AFTER || number_may_end(scan->state));
}
