/* Computes with the digits of whole numbers (decimal.h). */
#include "src/language/grammar/decimal.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formats/json_wide.h"

fr_decimal fr_decimal_nines(size_t digits, bool negative) {
    fr_decimal made;
    if (digits > FR_DECIMAL_DIGITS) digits = FR_DECIMAL_DIGITS;
    snprintf(made.text, sizeof made.text, "%s", negative ? "-" : "");
    memset(made.text + negative, '9', digits);
    made.text[digits + negative] = '\0';
    return made;
}

fr_decimal fr_decimal_of(const json_t *value, bool above, bool *whole) {
    char text[400]; /* a double has at most 309 digits before the point */
    size_t length;
    const char *digits = fr_json_wide_digits(value, &length);
    double real = json_real_value(value), bound = above ? ceil(real) : floor(real);
    *whole = !json_is_real(value) || real == bound;
    if (!digits) {
        if (json_is_integer(value))
            snprintf(text, sizeof text, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
        else
            snprintf(text, sizeof text, "%.0f", bound == 0 ? 0 : bound);
        digits = text;
        length = strlen(text);
    }
    fr_decimal made;
    if (length > FR_DECIMAL_DIGITS + (*digits == '-')) return fr_decimal_nines(FR_DECIMAL_DIGITS, *digits == '-');
    memcpy(made.text, digits, length);
    made.text[length] = '\0';
    return made;
}

size_t fr_decimal_length(const fr_decimal *number) {
    return strlen(number->text) - (*number->text == '-');
}

int fr_decimal_compare(const fr_decimal *one, const fr_decimal *other) {
    bool negative = *one->text == '-';
    if (negative != (*other->text == '-')) return negative ? -1 : 1;
    size_t a = strlen(one->text), b = strlen(other->text);
    int larger = a != b ? (a > b) - (a < b) : strcmp(one->text, other->text);
    return negative ? -larger : larger;
}

fr_decimal fr_decimal_negated(fr_decimal number) {
    fr_decimal made = number;
    if (*number.text == '-')
        memmove(made.text, number.text + 1, strlen(number.text));
    else if (strcmp(number.text, "0") != 0)
        snprintf(made.text, sizeof made.text, "-%.*s", FR_DECIMAL_DIGITS, number.text);
    return made;
}

/* Adds 1 to the digits after the sign, or subtracts 1 from them (`down`). The largest number of 40 digits stays
 * unchanged. */
static fr_decimal count(fr_decimal number, bool down) {
    bool negative = *number.text == '-';
    char *digits = number.text + negative;
    size_t length = strlen(digits), at = length;
    const char from = down ? '0' : '9', to = down ? '9' : '0';
    if (!down && strspn(digits, "9") == length) {
        if (length == FR_DECIMAL_DIGITS) return number;
        memset(digits + 1, '0', length);
        *digits = '1';
        digits[length + 1] = '\0';
        return number;
    }
    while (digits[at - 1] == from) digits[--at] = to;
    digits[at - 1] = (char)(digits[at - 1] + (down ? -1 : 1));
    if (length > 1 && *digits == '0') memmove(digits, digits + 1, length);
    if (strcmp(digits, "0") == 0) snprintf(number.text, sizeof number.text, "0");
    return number;
}

fr_decimal fr_decimal_next(fr_decimal number, bool below) {
    bool negative = *number.text == '-';
    if (below && strcmp(number.text, "0") == 0) return (fr_decimal){"-1"};
    return count(number, negative != below);
}
