/* Implements the filters for numbers and for other single values. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "src/language/jinja/template_filters.h"
#include "src/language/jinja/template_text.h"
#include "src/language/jinja/template_wide.h"

/* -------------------------------------------------------------------------------------------------------- arguments */

bool fr_jinja_argument_truth(fr_jinja_render *render, fr_jinja_value argument) {
    return fr_jinja_is_given(argument) && fr_jinja_truth(render, argument);
}

int64_t fr_jinja_argument_int(fr_jinja_render *render, fr_jinja_value argument, int64_t missing, const char *what) {
    if (!fr_jinja_is_given(argument)) return missing;
    if (argument.kind == FR_KIND_INT || argument.kind == FR_KIND_BOOL) return fr_jinja_int_of(argument);
    fr_jinja_render_fail(render, "%s is a '%s', not an integer", what, fr_jinja_kind_name(argument.kind));
    return missing;
}

/* ----------------------------------------------------------------------------------------------------------- values */

fr_jinja_value fr_jinja_filter_default(fr_jinja_render *render, const fr_jinja_value *arguments) {
    bool missing = arguments[0].kind == FR_KIND_UNDEFINED;
    if (!missing && fr_jinja_argument_truth(render, arguments[2])) missing = !fr_jinja_truth(render, arguments[0]);
    if (!missing) return arguments[0];
    return fr_jinja_is_given(arguments[1]) ? arguments[1]
                                           : fr_jinja_of_string(fr_jinja_string_new(render, "", 0, false));
}

fr_jinja_value fr_jinja_filter_length(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_size(fr_jinja_length(render, arguments[0]));
}

/* Gives an attribute, but never an item of that name. */
fr_jinja_value fr_jinja_filter_attr(fr_jinja_render *render, const fr_jinja_value *arguments) {
    if (arguments[1].kind != FR_KIND_STRING) return fr_jinja_render_fail(render, "attr: the name is not a string");
    fr_jinja_value undefined = fr_jinja_undefined(FR_REASON_ATTRIBUTE, arguments[1].string);
    undefined.of = arguments[0].kind;
    if (arguments[0].kind == FR_KIND_DICT &&
        !fr_jinja_function_find(fr_template_methods(FR_KIND_DICT), arguments[1].string))
        return undefined;
    return fr_jinja_get_attribute(render, arguments[0], arguments[1].string);
}

/* ---------------------------------------------------------------------------------------------------------- numbers */

fr_jinja_value fr_jinja_filter_abs(fr_jinja_render *render, const fr_jinja_value *arguments) {
    fr_jinja_value value = arguments[0];
    if (value.kind == FR_KIND_FLOAT) return fr_jinja_of_real(fabs(value.real), value.foreign);
    if (value.kind == FR_KIND_UNDEFINED) return fr_jinja_render_fail_undefined(render, value);
    if (value.kind == FR_KIND_WIDE) return fr_wide_is_negative(value) ? fr_wide_negative(render, value) : value;
    if (!fr_jinja_is_numeric(value))
        return fr_jinja_render_fail(render, "abs: a '%s' is not a number", fr_jinja_kind_name(value.kind));
    return fr_jinja_int_of(value) < 0 ? fr_jinja_negative(render, value)
                                      : fr_jinja_of_int(fr_jinja_int_of(value), value.foreign);
}

/* Reads words such as inf, -Infinity and nan, which Python reads as numbers, too. */
static bool read_special(const char *bytes, size_t length, double *real) {
    static const char *const names[] = {"inf", "infinity", "nan"};
    bool negative = length > 0 && *bytes == '-';
    size_t sign = length > 0 && (*bytes == '-' || *bytes == '+');
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strlen(names[i]) != length - sign || strncasecmp(bytes + sign, names[i], length - sign) != 0) continue;
        *real = i == 2 ? NAN : negative ? -INFINITY : INFINITY;
        return true;
    }
    return false;
}

static bool real_of(fr_jinja_value value, double *real) {
    if (fr_is_number(value)) *real = value.kind == FR_KIND_WIDE ? fr_wide_real(value) : fr_jinja_real_of(value);
    if (value.kind != FR_KIND_STRING) return fr_is_number(value);
    const char *bytes = value.string->bytes;
    size_t begin = fr_jinja_space_prefix(bytes, value.string->length), end = value.string->length;
    end -= begin < end ? fr_jinja_space_suffix(bytes, end) : 0;
    return fr_jinja_read_real(bytes + begin, end - begin, real) || read_special(bytes + begin, end - begin, real);
}

fr_jinja_value fr_jinja_filter_float(fr_jinja_render *render, const fr_jinja_value *arguments) {
    double real;
    if (arguments[0].kind == FR_KIND_UNDEFINED) return fr_jinja_render_fail_undefined(render, arguments[0]);
    if (arguments[0].kind == FR_KIND_WIDE && isinf(fr_wide_real(arguments[0])))
        return fr_jinja_render_fail(render, "float: the integer is too large");
    if (real_of(arguments[0], &real)) return fr_jinja_of_real(real, fr_jinja_value_foreign(arguments[0]));
    return fr_jinja_is_given(arguments[1]) ? arguments[1] : fr_jinja_of_real(0, false);
}

static int digit_of(char c) {
    int digit = c >= '0' && c <= '9' ? c - '0' : (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? (c | 0x20) - 'a' + 10 : 36;
    return digit;
}

typedef enum reading { READ, NOT_READ, TOO_LARGE } reading;

/* Reads digits. A single underscore may separate two digits. */
static reading read_digits(const char *bytes, size_t length, int base, bool negative, int64_t *integer) {
    bool fits = true, digit_before = false;
    *integer = 0;
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '_' && digit_before && i + 1 < length) {
            digit_before = false;
            continue;
        }
        int digit = digit_of(bytes[i]);
        if (digit >= base) return NOT_READ;
        digit_before = true;
        fits = fits && !__builtin_mul_overflow(*integer, base, integer) &&
               !__builtin_add_overflow(*integer, negative ? -digit : digit, integer);
    }
    if (!digit_before) return NOT_READ;
    return fits ? READ : TOO_LARGE;
}

/* Reads text as int(text, base) does. It may have white space around it, a sign, and a prefix that fits the base. */
static reading read_int(const fr_jinja_string *string, int64_t base, int64_t *integer) {
    const char *bytes = string->bytes;
    size_t begin = fr_jinja_space_prefix(bytes, string->length), end = string->length;
    end -= begin < end ? fr_jinja_space_suffix(bytes, end) : 0;
    bool negative = begin < end && bytes[begin] == '-';
    if (begin < end && (bytes[begin] == '-' || bytes[begin] == '+')) begin++;
    static const struct {
        char letter;
        int base;
    } prefixes[] = {{'x', 16}, {'o', 8}, {'b', 2}};
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes && begin + 2 < end; i++) {
        bool prefix = bytes[begin] == '0' && (bytes[begin + 1] | 0x20) == prefixes[i].letter;
        if (!prefix || (base != 0 && base != prefixes[i].base)) continue;
        base = prefixes[i].base;
        begin += bytes[begin + 2] == '_' ? 3 : 2;
        break;
    }
    if (base == 0 && end - begin > 1 && bytes[begin] == '0') base = 1; /* as in Python, only zeros may follow a zero */
    return read_digits(bytes + begin, end - begin, base == 0 ? 10 : (int)base, negative, integer);
}

static fr_jinja_value int_of_real(fr_jinja_render *render, double real, bool foreign) {
    if (real >= -0x1p63 && real < 0x1p63) return fr_jinja_of_int((int64_t)real, foreign);
    return fr_jinja_render_fail(render, "int: more than 64 bits");
}

/* Converts a value to an integer. A text such as "42.23" gives 42. */
fr_jinja_value fr_jinja_filter_int(fr_jinja_render *render, const fr_jinja_value *arguments) {
    fr_jinja_value value = arguments[0],
                   otherwise = fr_jinja_is_given(arguments[1]) ? arguments[1] : fr_jinja_of_int(0, false);
    int64_t integer, base = fr_jinja_argument_int(render, arguments[2], 10, "int: the base");
    bool foreign = fr_jinja_value_foreign(value);
    double real;
    if (value.kind == FR_KIND_UNDEFINED) return fr_jinja_render_fail_undefined(render, value);
    if (value.kind == FR_KIND_INT || value.kind == FR_KIND_BOOL)
        return fr_jinja_of_int(fr_jinja_int_of(value), foreign);
    if (value.kind == FR_KIND_WIDE) return value;
    if (value.kind == FR_KIND_STRING && (base == 0 || (base >= 2 && base <= 36))) {
        reading result = read_int(value.string, base, &integer);
        if (result == READ) return fr_jinja_of_int(integer, foreign);
        if (result == TOO_LARGE) return fr_jinja_render_fail(render, "int: more than 64 bits");
    }
    if (!real_of(value, &real) || isnan(real)) return otherwise;
    if (!isinf(real)) return int_of_real(render, real, foreign);
    return value.kind == FR_KIND_STRING ? otherwise : fr_jinja_render_fail(render, "int: the number is infinite");
}

/* Rounds the exact decimal value to `digits` places after the point. A value half-way between two results is rounded to
 * the even one. */
static double round_real(double real, int digits) {
    char text[400];
    if (digits > 300 || !isfinite(real)) return real;
    if (digits >= 0) {
        snprintf(text, sizeof text, "%.*f", digits, real);
        return strtod(text, NULL);
    }
    double unit = 1;
    for (; digits < 0 && isfinite(unit); digits++) unit *= 10;
    return isfinite(unit) ? rint(real / unit) * unit : copysign(0, real);
}

/* Rounds an integer. A value half-way between two results is rounded to the even one. */
static fr_jinja_value round_int(fr_jinja_render *render, int64_t integer, int64_t digits, bool foreign) {
    int64_t unit = 1, rounded;
    if (digits >= 0) return fr_jinja_of_int(integer, foreign);
    for (; digits < 0; digits++)
        if (__builtin_mul_overflow(unit, 10, &unit)) return fr_jinja_of_int(0, foreign);
    int64_t rest = integer % unit, down = integer - rest;
    if (rest < 0) {
        rest += unit;
        if (__builtin_sub_overflow(down, unit, &down)) return fr_jinja_render_fail(render, "round: more than 64 bits");
    }
    bool up = rest > unit / 2 || (rest == unit / 2 && (down / unit) % 2 != 0);
    if (__builtin_add_overflow(down, up ? unit : 0, &rounded))
        return fr_jinja_render_fail(render, "round: more than 64 bits");
    return fr_jinja_of_int(rounded, foreign);
}

/* Rounds a wide integer (one beyond 64 bits). With the method "common", the result is the integer itself; with the
 * others, it is the nearest float. If the rounding needs arithmetic with more than 64 bits, the render fails. */
static fr_jinja_value round_wide(fr_jinja_render *render, fr_jinja_value value, bool common, int64_t digits) {
    if (digits < 0 || (!common && digits > 0)) return fr_jinja_render_fail(render, "round: more than 64 bits");
    return common ? value : fr_jinja_of_real(fr_wide_real(value), fr_jinja_value_foreign(value));
}

static double power_of_ten(int64_t exponent) {
    double power = 1;
    for (; exponent > 0 && isfinite(power); exponent--) power *= 10;
    for (; exponent < 0 && power != 0; exponent++) power /= 10;
    return power;
}

fr_jinja_value fr_jinja_filter_round(fr_jinja_render *render, const fr_jinja_value *arguments) {
    static const fr_jinja_string common = {.bytes = "common", .length = 6, .ascii = true};
    fr_jinja_value value = arguments[0];
    const fr_jinja_string *method = arguments[2].kind == FR_KIND_STRING ? arguments[2].string : &common;
    int64_t digits = fr_jinja_argument_int(render, arguments[1], 0, "round: the precision");
    bool up = fr_jinja_string_is(method, "ceil"),
         known = up || fr_jinja_string_is(method, "floor") || fr_jinja_string_is(method, "common");
    if (!known || (fr_jinja_is_given(arguments[2]) && arguments[2].kind != FR_KIND_STRING))
        return fr_jinja_render_fail(render, "round: the method must be common, ceil or floor");
    if (value.kind == FR_KIND_UNDEFINED) return fr_jinja_render_fail_undefined(render, value);
    if (!fr_is_number(value))
        return fr_jinja_render_fail(render, "round: a '%s' is not a number", fr_jinja_kind_name(value.kind));
    if (digits < -400 || digits > 400) return fr_jinja_render_fail(render, "round: the precision is more than 400");
    if (value.kind == FR_KIND_WIDE) return round_wide(render, value, fr_jinja_string_is(method, "common"), digits);
    if (fr_jinja_string_is(method, "common")) {
        if (value.kind != FR_KIND_FLOAT) return round_int(render, fr_jinja_int_of(value), digits, value.foreign);
        return fr_jinja_of_real(round_real(value.real, (int)digits), value.foreign);
    }
    double unit = power_of_ten(digits), scaled = fr_jinja_real_of(value) * unit;
    return fr_jinja_of_real((up ? -floor(-scaled) : floor(scaled)) / unit, value.foreign);
}

fr_jinja_value fr_jinja_filter_filesizeformat(fr_jinja_render *render, const fr_jinja_value *arguments) {
    static const char *const decimal[] = {"kB", "MB", "GB", "TB", "PB", "EB", "ZB", "YB"};
    static const char *const binary[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"};
    bool twos = fr_jinja_argument_truth(render, arguments[1]);
    double size, base = twos ? 1024 : 1000, unit = base;
    if (!real_of(arguments[0], &size)) return fr_jinja_render_fail(render, "filesizeformat: the value is not a number");
    bool foreign = fr_jinja_value_foreign(arguments[0]);
    char text[64];
    if (size == 1) {
        snprintf(text, sizeof text, "1 Byte");
    } else if (size < base) {
        snprintf(text, sizeof text, "%.0f Bytes", size < 0 ? -floor(-size) : floor(size));
    } else {
        size_t i = 0;
        for (; i < 7 && !(size < unit * base); i++) unit *= base;
        snprintf(text, sizeof text, "%.1f %s", size / unit, (twos ? binary : decimal)[i]);
    }
    size_t begin = fr_jinja_text_begin(render);
    fr_jinja_put_text(render, text, foreign);
    return fr_jinja_of_string(fr_jinja_text_end(render, begin));
}
