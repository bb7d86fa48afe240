/* Implements the tests, which are written after "is". */
#include "src/language/jinja/template_strings.h"

static fr_jinja_value is_kind(const fr_jinja_value *arguments, fr_jinja_kind kind) {
    return fr_jinja_of_truth(arguments[0].kind == kind);
}

static fr_jinja_value test_defined(fr_jinja_render *render, const fr_jinja_value *arguments) {
    (void)render;
    return fr_jinja_of_truth(arguments[0].kind != FR_KIND_UNDEFINED);
}

static fr_jinja_value test_undefined(fr_jinja_render *render, const fr_jinja_value *arguments) {
    (void)render;
    return is_kind(arguments, FR_KIND_UNDEFINED);
}

static fr_jinja_value test_none(fr_jinja_render *render, const fr_jinja_value *arguments) {
    (void)render;
    return is_kind(arguments, FR_KIND_NONE);
}

static fr_jinja_value test_boolean(fr_jinja_render *render, const fr_jinja_value *arguments) {
    (void)render;
    return is_kind(arguments, FR_KIND_BOOL);
}

static fr_jinja_value test_true(fr_jinja_render *render, const fr_jinja_value *arguments) {
    (void)render;
    return fr_jinja_of_truth(arguments[0].kind == FR_KIND_BOOL && arguments[0].truth);
}

static fr_jinja_value test_false(fr_jinja_render *render, const fr_jinja_value *arguments) {
    (void)render;
    return fr_jinja_of_truth(arguments[0].kind == FR_KIND_BOOL && !arguments[0].truth);
}

static fr_jinja_value test_integer(fr_jinja_render *render, const fr_jinja_value *arguments) {
    (void)render;
    return fr_jinja_of_truth(arguments[0].kind == FR_KIND_INT || arguments[0].kind == FR_KIND_WIDE);
}

static fr_jinja_value test_float(fr_jinja_render *render, const fr_jinja_value *arguments) {
    (void)render;
    return is_kind(arguments, FR_KIND_FLOAT);
}

static fr_jinja_value test_number(fr_jinja_render *render, const fr_jinja_value *arguments) {
    (void)render;
    return fr_jinja_of_truth(fr_is_number(arguments[0]));
}

static fr_jinja_value test_string(fr_jinja_render *render, const fr_jinja_value *arguments) {
    (void)render;
    return is_kind(arguments, FR_KIND_STRING);
}

static fr_jinja_value test_mapping(fr_jinja_render *render, const fr_jinja_value *arguments) {
    (void)render;
    return is_kind(arguments, FR_KIND_DICT);
}

static fr_jinja_value test_iterable(fr_jinja_render *render, const fr_jinja_value *arguments) {
    (void)render;
    return fr_jinja_of_truth(fr_jinja_is_iterable(arguments[0]));
}

/* Returns true for values that have a length and whose items have indices or keys. An undefined value counts as such a
 * value, too. */
static fr_jinja_value test_sequence(fr_jinja_render *render, const fr_jinja_value *arguments) {
    (void)render;
    bool view = arguments[0].kind == FR_KIND_VIEW || arguments[0].kind == FR_KIND_LOOP;
    return fr_jinja_of_truth(fr_jinja_has_length(arguments[0]) && !view);
}

static fr_jinja_value test_callable(fr_jinja_render *render, const fr_jinja_value *arguments) {
    (void)render;
    switch (arguments[0].kind) {
    case FR_KIND_UNDEFINED:
    case FR_KIND_LOOP:
    case FR_KIND_MACRO:
    case FR_KIND_METHOD:
    case FR_KIND_FUNCTION:
    case FR_KIND_JOINER: return fr_jinja_of_truth(true);
    default: return fr_jinja_of_truth(false);
    }
}

static fr_jinja_value test_escaped(fr_jinja_render *render, const fr_jinja_value *arguments) {
    (void)render;
    return fr_jinja_of_truth(arguments[0].kind == FR_KIND_STRING && arguments[0].string->markup);
}

static fr_jinja_value test_lower(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_truth(fr_jinja_string_is_lower(render, fr_jinja_str(render, arguments[0])));
}

static fr_jinja_value test_upper(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_truth(fr_jinja_string_is_upper(render, fr_jinja_str(render, arguments[0])));
}

/* Returns true if dividing the value by the divisor leaves this remainder. */
static fr_jinja_value leaves(fr_jinja_render *render, fr_jinja_value value, fr_jinja_value divisor, int64_t remainder) {
    fr_jinja_value left = fr_jinja_arithmetic(render, FR_OPERATOR_REMAINDER, value, divisor);
    return fr_jinja_of_truth(!fr_jinja_render_failed(render) &&
                             fr_jinja_equal(render, left, fr_jinja_of_int(remainder, false)));
}

static fr_jinja_value test_odd(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return leaves(render, arguments[0], fr_jinja_of_int(2, false), 1);
}

static fr_jinja_value test_even(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return leaves(render, arguments[0], fr_jinja_of_int(2, false), 0);
}

static fr_jinja_value test_divisibleby(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return leaves(render, arguments[0], arguments[1], 0);
}

/* Returns true if both arguments are the same object. Two constants, or two texts, count as the same object if they
 * have the same kind and are equal. */
static fr_jinja_value test_sameas(fr_jinja_render *render, const fr_jinja_value *arguments) {
    fr_jinja_value a = arguments[0], b = arguments[1];
    bool same = a.kind == b.kind;
    if (same && a.kind <= FR_KIND_STRING) return fr_jinja_of_truth(fr_jinja_equal(render, a, b));
    return fr_jinja_of_truth(same && a.dict == b.dict);
}

static fr_jinja_value test_in(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_truth(fr_jinja_contains(render, arguments[1], arguments[0]));
}

static fr_jinja_value test_equal(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_truth(fr_jinja_equal(render, arguments[0], arguments[1]));
}

static fr_jinja_value test_unequal(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_truth(!fr_jinja_equal(render, arguments[0], arguments[1]));
}

static fr_jinja_value test_less(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_truth(fr_jinja_holds(render, FR_OPERATOR_LESS, arguments[0], arguments[1]));
}

static fr_jinja_value test_less_equal(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_truth(fr_jinja_holds(render, FR_OPERATOR_LESS_EQUAL, arguments[0], arguments[1]));
}

static fr_jinja_value test_greater(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_truth(fr_jinja_holds(render, FR_OPERATOR_GREATER, arguments[0], arguments[1]));
}

static fr_jinja_value test_greater_equal(fr_jinja_render *render, const fr_jinja_value *arguments) {
    return fr_jinja_of_truth(fr_jinja_holds(render, FR_OPERATOR_GREATER_EQUAL, arguments[0], arguments[1]));
}

static fr_jinja_value is_named(const fr_jinja_function_table *table, fr_jinja_value name) {
    return fr_jinja_of_truth(name.kind == FR_KIND_STRING && fr_jinja_function_find(table, name.string));
}

static fr_jinja_value test_filter(fr_jinja_render *render, const fr_jinja_value *arguments) {
    (void)render;
    return is_named(&fr_template_filters, arguments[0]);
}

static fr_jinja_value test_test(fr_jinja_render *render, const fr_jinja_value *arguments) {
    (void)render;
    return is_named(&fr_template_tests, arguments[0]);
}

/* The names are in ascending order, because a binary search finds them. */
static const fr_jinja_function rows[] = {
    {"!=", test_unequal, 2, false, {"a", "b"}},
    {"<", test_less, 2, false, {"a", "b"}},
    {"<=", test_less_equal, 2, false, {"a", "b"}},
    {"==", test_equal, 2, false, {"a", "b"}},
    {">", test_greater, 2, false, {"a", "b"}},
    {">=", test_greater_equal, 2, false, {"a", "b"}},
    {"boolean", test_boolean, 1, false, {"value"}},
    {"callable", test_callable, 1, false, {"obj"}},
    {"defined", test_defined, 1, false, {"value"}},
    {"divisibleby", test_divisibleby, 2, false, {"value", "num"}},
    {"eq", test_equal, 2, false, {"a", "b"}},
    {"equalto", test_equal, 2, false, {"a", "b"}},
    {"escaped", test_escaped, 1, false, {"value"}},
    {"even", test_even, 1, false, {"value"}},
    {"false", test_false, 1, false, {"value"}},
    {"filter", test_filter, 1, false, {"value"}},
    {"float", test_float, 1, false, {"value"}},
    {"ge", test_greater_equal, 2, false, {"a", "b"}},
    {"greaterthan", test_greater, 2, false, {"a", "b"}},
    {"gt", test_greater, 2, false, {"a", "b"}},
    {"in", test_in, 2, false, {"value", "seq"}},
    {"integer", test_integer, 1, false, {"value"}},
    {"iterable", test_iterable, 1, false, {"value"}},
    {"le", test_less_equal, 2, false, {"a", "b"}},
    {"lessthan", test_less, 2, false, {"a", "b"}},
    {"lower", test_lower, 1, false, {"value"}},
    {"lt", test_less, 2, false, {"a", "b"}},
    {"mapping", test_mapping, 1, false, {"value"}},
    {"ne", test_unequal, 2, false, {"a", "b"}},
    {"none", test_none, 1, false, {"value"}},
    {"number", test_number, 1, false, {"value"}},
    {"odd", test_odd, 1, false, {"value"}},
    {"sameas", test_sameas, 2, false, {"value", "other"}},
    {"sequence", test_sequence, 1, false, {"value"}},
    {"string", test_string, 1, false, {"value"}},
    {"test", test_test, 1, false, {"value"}},
    {"true", test_true, 1, false, {"value"}},
    {"undefined", test_undefined, 1, false, {"value"}},
    {"upper", test_upper, 1, false, {"value"}},
};

const fr_jinja_function_table fr_template_tests = {rows, sizeof rows / sizeof *rows};
