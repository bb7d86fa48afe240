/* Implements Python's operators on numbers, texts and lists. If an integer result needs more than 64 bits, the render
 * fails, although Python could compute it. If an operand is a float, the result is a float, which can't fail in this
 * way. */
#include <math.h>

#include "src/language/jinja/template_format.h"
#include "src/language/jinja/template_strings.h"
#include "src/language/jinja/template_wide.h"

static fr_jinja_value too_large(fr_jinja_render *render) {
    return fr_jinja_render_fail(render, "an integer of more than 64 bits");
}

static fr_jinja_value fail_types(fr_jinja_render *render, fr_jinja_operator operator, fr_jinja_value a,
                                 fr_jinja_value b) {
    static const char *const signs[] = {"+", "-", "*", "/", "//", "%", "**"};
    if (a.kind == FR_KIND_UNDEFINED) return fr_jinja_render_fail_undefined(render, a);
    if (b.kind == FR_KIND_UNDEFINED) return fr_jinja_render_fail_undefined(render, b);
    return fr_jinja_render_fail(render, "unsupported operand types for %s: '%s' and '%s'", signs[operator],
                          fr_jinja_kind_name(a.kind), fr_jinja_kind_name(b.kind));
}

/* --------------------------------------------------------------------------------------------------------- integers */

/* Divides and rounds towards minus infinity, as Python does. So the remainder has the divisor's sign. */
static int64_t floor_divide(int64_t a, int64_t b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t floor_remainder(int64_t a, int64_t b) {
    int64_t remainder = a % b;
    return remainder != 0 && (remainder < 0) != (b < 0) ? remainder + b : remainder;
}

static bool power_of_int(int64_t base, int64_t exponent, int64_t *power) {
    *power = 1;
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1 && __builtin_mul_overflow(*power, base, power)) return false;
        if (exponent > 1 && __builtin_mul_overflow(base, base, &base)) return false;
    }
    return true;
}

static double power_of_real(double base, int64_t exponent) {
    double power = 1;
    for (uint64_t left = exponent < 0 ? -(uint64_t)exponent : (uint64_t)exponent; left > 0; left >>= 1) {
        if (left & 1) power *= base;
        base *= base;
    }
    return exponent < 0 ? 1 / power : power;
}

static fr_jinja_value divide_ints(fr_jinja_render *render, fr_jinja_operator operator, int64_t a, int64_t b,
                                  bool foreign) {
    if (b == 0) return fr_jinja_render_fail(render, "division by zero");
    if (operator== FR_OPERATOR_DIVIDE) return fr_jinja_of_real((double)a / (double)b, foreign);
    if (b == -1 && operator== FR_OPERATOR_REMAINDER) return fr_jinja_of_int(0, foreign);
    if (b == -1) return a == INT64_MIN ? too_large(render) : fr_jinja_of_int(-a, foreign);
    return fr_jinja_of_int(operator== FR_OPERATOR_REMAINDER ? floor_remainder(a, b) : floor_divide(a, b), foreign);
}

static fr_jinja_value combine_ints(fr_jinja_render *render, fr_jinja_operator operator, int64_t a, int64_t b,
                                   bool foreign) {
    int64_t result;
    bool fits;
    switch (operator) {
    case FR_OPERATOR_ADD: fits = !__builtin_add_overflow(a, b, &result); break;
    case FR_OPERATOR_SUBTRACT: fits = !__builtin_sub_overflow(a, b, &result); break;
    case FR_OPERATOR_MULTIPLY: fits = !__builtin_mul_overflow(a, b, &result); break;
    case FR_OPERATOR_POWER:
        if (b < 0 && a == 0) return fr_jinja_render_fail(render, "0 to a negative power");
        if (b < 0) return fr_jinja_of_real(power_of_real((double)a, b), foreign);
        fits = power_of_int(a, b, &result);
        break;
    default: return divide_ints(render, operator, a, b, foreign);
    }
    return fits ? fr_jinja_of_int(result, foreign) : too_large(render);
}

/* ------------------------------------------------------------------------------------------------------------ reals */

static double real_remainder(double a, double b) {
    double remainder = fmod(a, b);
    if (remainder == 0) return copysign(0, b);
    return (b < 0) != (remainder < 0) ? remainder + b : remainder;
}

static double real_floor_divide(double a, double b) {
    double remainder = fmod(a, b), quotient = (a - remainder) / b;
    if (remainder != 0 && (b < 0) != (remainder < 0)) quotient -= 1;
    if (quotient == 0) return copysign(0, a / b);
    double whole = floor(quotient);
    return quotient - whole > 0.5 ? whole + 1 : whole;
}

static fr_jinja_value combine_reals(fr_jinja_render *render, fr_jinja_operator operator, double a, double b,
                                    bool foreign) {
    bool divides = operator== FR_OPERATOR_DIVIDE || operator== FR_OPERATOR_FLOOR_DIVIDE || operator==
        FR_OPERATOR_REMAINDER;
    if (divides && b == 0) return fr_jinja_render_fail(render, "division by zero");
    switch (operator) {
    case FR_OPERATOR_ADD: return fr_jinja_of_real(a + b, foreign);
    case FR_OPERATOR_SUBTRACT: return fr_jinja_of_real(a - b, foreign);
    case FR_OPERATOR_MULTIPLY: return fr_jinja_of_real(a * b, foreign);
    case FR_OPERATOR_DIVIDE: return fr_jinja_of_real(a / b, foreign);
    case FR_OPERATOR_FLOOR_DIVIDE: return fr_jinja_of_real(real_floor_divide(a, b), foreign);
    case FR_OPERATOR_REMAINDER: return fr_jinja_of_real(real_remainder(a, b), foreign);
    default:
        if (fabs(b) > 1e9 || b != floor(b)) return fr_jinja_render_fail(render, "a power that is not a whole number");
        if (a == 0 && b < 0) return fr_jinja_render_fail(render, "0 to a negative power");
        return fr_jinja_of_real(power_of_real(a, (int64_t)b), foreign);
    }
}

static double real_of(fr_jinja_value value) {
    return value.kind == FR_KIND_WIDE ? fr_wide_real(value) : fr_jinja_real_of(value);
}

static fr_jinja_value combine_numbers(fr_jinja_render *render, fr_jinja_operator operator, fr_jinja_value a,
                                      fr_jinja_value b) {
    bool foreign = a.foreign || b.foreign, wide = a.kind == FR_KIND_WIDE || b.kind == FR_KIND_WIDE;
    bool real = a.kind == FR_KIND_FLOAT || b.kind == FR_KIND_FLOAT;
    if (wide && (!real || isinf(real_of(a.kind == FR_KIND_WIDE ? a : b)))) return too_large(render);
    if (real) return combine_reals(render, operator, real_of(a), real_of(b), foreign);
    return combine_ints(render, operator, fr_jinja_int_of(a), fr_jinja_int_of(b), foreign);
}

/* -------------------------------------------------------------------------------------------------- texts and lists */

/* Joins two strings. If only one of them is markup, the other is escaped, and the result is markup. */
static fr_jinja_value join_strings(fr_jinja_render *render, const fr_jinja_string *a, const fr_jinja_string *b) {
    bool markup = a->markup || b->markup;
    size_t begin = fr_jinja_text_begin(render);
    if (markup && !a->markup)
        fr_jinja_put_escaped(render, a);
    else
        fr_jinja_put_string(render, a);
    if (markup && !b->markup)
        fr_jinja_put_escaped(render, b);
    else
        fr_jinja_put_string(render, b);
    return fr_jinja_of_string(fr_jinja_string_as_markup(render, fr_jinja_text_end(render, begin), markup));
}

static fr_jinja_value join_lists(fr_jinja_render *render, fr_jinja_value a, fr_jinja_value b) {
    fr_jinja_list *list = fr_jinja_list_new(render, a.list->count + b.list->count);
    for (size_t i = 0; i < a.list->count && fr_jinja_render_step(render, 0); i++)
        fr_jinja_list_append(render, list, a.list->items[i]);
    for (size_t i = 0; i < b.list->count && fr_jinja_render_step(render, 0); i++)
        fr_jinja_list_append(render, list, b.list->items[i]);
    a.list = list;
    a.foreign = a.foreign || b.foreign;
    return a;
}

static fr_jinja_value repeat_string(fr_jinja_render *render, const fr_jinja_string *string, int64_t times) {
    size_t begin = fr_jinja_text_begin(render);
    fr_jinja_put_times(render, string, times);
    return fr_jinja_of_string(fr_jinja_string_as_markup(render, fr_jinja_text_end(render, begin), string->markup));
}

static fr_jinja_value repeat_list(fr_jinja_render *render, fr_jinja_value value, int64_t times) {
    fr_jinja_list *list = fr_jinja_list_new(render, 0);
    if (value.list->count == 0) times = 0;
    for (; times > 0; times--) {
        for (size_t i = 0; i < value.list->count && fr_jinja_render_step(render, 0); i++)
            fr_jinja_list_append(render, list, value.list->items[i]);
        if (fr_jinja_render_failed(render)) break;
    }
    value.list = list;
    return value;
}

static bool is_list(fr_jinja_value value) {
    return value.kind == FR_KIND_LIST || value.kind == FR_KIND_TUPLE;
}

static bool is_whole(fr_jinja_value value) {
    return value.kind == FR_KIND_INT || value.kind == FR_KIND_BOOL;
}

static fr_jinja_value multiply(fr_jinja_render *render, fr_jinja_value a, fr_jinja_value b) {
    if (is_whole(a) && !is_whole(b)) return multiply(render, b, a);
    if (a.kind == FR_KIND_STRING && is_whole(b)) return repeat_string(render, a.string, fr_jinja_int_of(b));
    if (is_list(a) && is_whole(b)) return repeat_list(render, a, fr_jinja_int_of(b));
    return fail_types(render, FR_OPERATOR_MULTIPLY, a, b);
}

fr_jinja_value fr_jinja_arithmetic(fr_jinja_render *render, fr_jinja_operator operator, fr_jinja_value a,
                                   fr_jinja_value b) {
    if (fr_is_number(a) && fr_is_number(b)) return combine_numbers(render, operator, a, b);
    if (operator== FR_OPERATOR_REMAINDER && a.kind == FR_KIND_STRING)
        return fr_jinja_of_string(fr_jinja_format_percent(render, a.string, b));
    if (operator== FR_OPERATOR_MULTIPLY) return multiply(render, a, b);
    if (operator== FR_OPERATOR_ADD && a.kind == b.kind) {
        if (a.kind == FR_KIND_STRING) return join_strings(render, a.string, b.string);
        if (is_list(a)) return join_lists(render, a, b);
    }
    return fail_types(render, operator, a, b);
}

fr_jinja_value fr_jinja_negative(fr_jinja_render *render, fr_jinja_value value) {
    if (value.kind == FR_KIND_FLOAT) return fr_jinja_of_real(-value.real, value.foreign);
    if (value.kind == FR_KIND_WIDE) return fr_wide_negative(render, value);
    if (value.kind == FR_KIND_UNDEFINED) return fr_jinja_render_fail_undefined(render, value);
    if (!is_whole(value))
        return fr_jinja_render_fail(render, "a '%s' can't have a sign", fr_jinja_kind_name(value.kind));
    if (fr_jinja_int_of(value) == INT64_MIN) return too_large(render);
    return fr_jinja_of_int(-fr_jinja_int_of(value), value.foreign);
}
