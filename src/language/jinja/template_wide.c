/* Handles integers as digits (template_wide.h). */
#include "src/language/jinja/template_wide.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define REAL_SIZE 400 /* limit on the bytes of a double without a fraction, as text */

fr_jinja_value fr_of_wide(const fr_jinja_string *digits) {
    return (fr_jinja_value){.kind = FR_KIND_WIDE, .foreign = digits->foreign, .string = digits};
}

bool fr_wide_is_negative(fr_jinja_value wide) {
    return wide.string->length > 0 && wide.string->bytes[0] == '-';
}

/* Compares two numbers with signs. First compares their numbers of digits, and then the digits. */
static int order_digits(const char *a, size_t a_length, const char *b, size_t b_length) {
    bool negative = a_length > 0 && *a == '-', other = b_length > 0 && *b == '-';
    if (negative != other) return negative ? -1 : 1;
    int order = a_length != b_length ? (a_length < b_length ? -1 : 1) : memcmp(a, b, a_length);
    return order == 0 ? 0 : (order < 0) != negative ? -1 : 1;
}

int fr_wide_order(fr_jinja_value wide, fr_jinja_value other) {
    const fr_jinja_string *digits = wide.string;
    const int far = fr_wide_is_negative(wide) ? -1 : 1;
    char text[REAL_SIZE];
    if (other.kind == FR_KIND_WIDE)
        return order_digits(digits->bytes, digits->length, other.string->bytes, other.string->length);
    if (other.kind != FR_KIND_FLOAT) return far;
    if (isnan(other.real)) return FR_UNORDERED;
    if (isinf(other.real)) return other.real > 0 ? -1 : 1;
    if (other.real >= -0x1p63 && other.real < 0x1p63) return far;
    size_t length = (size_t)snprintf(text, sizeof text, "%.0f", other.real);
    return order_digits(digits->bytes, digits->length, text, length);
}

double fr_wide_real(fr_jinja_value wide) {
    char text[REAL_SIZE];
    const fr_jinja_string *digits = wide.string;
    if (digits->length >= sizeof text) return fr_wide_is_negative(wide) ? -INFINITY : INFINITY;
    memcpy(text, digits->bytes, digits->length);
    text[digits->length] = 0;
    return strtod(text, NULL);
}

/* Negates a wide integer. Only the result -9223372036854775808 fits in an int64. */
fr_jinja_value fr_wide_negative(fr_jinja_render *render, fr_jinja_value wide) {
    const fr_jinja_string *digits = wide.string;
    if (fr_jinja_string_is(digits, "9223372036854775808")) return fr_jinja_of_int(INT64_MIN, wide.foreign);
    if (fr_wide_is_negative(wide)) return fr_of_wide(fr_jinja_string_part(render, digits, 1, digits->length));
    size_t begin = fr_jinja_text_begin(render);
    fr_jinja_put(render, "-", 1, wide.foreign);
    fr_jinja_put_string(render, digits);
    return fr_of_wide(fr_jinja_text_end(render, begin));
}
