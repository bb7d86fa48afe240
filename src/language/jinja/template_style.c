/* Writes values in a style (template_style.h). */
#include "src/language/jinja/template_style.h"

#include <inttypes.h>
#include <stdio.h>

#include "src/language/jinja/template_strings.h"
#include "src/language/jinja/template_wide.h"

#define NUMBER_SIZE (FR_PRECISION_MAX + 330)

/* A number without its sign. */
typedef struct numeral {
    char digits[NUMBER_SIZE];
    const char *prefix; /* for example 0x */
    bool negative;
} numeral;

static void put_fill(fr_jinja_render *render, const fr_jinja_style *s, int64_t times) {
    fr_jinja_put_times(render, fr_jinja_string_new(render, s->fill, s->fill_length, s->foreign), times);
}

/* If the digits before the point shall be grouped, counts these digits and gives the size of a group. 0: they are not
 * grouped. */
static size_t grouped_digits(const fr_jinja_style *s, const char *digits, size_t *size) {
    bool decimal = !s->type || !strchr("xXob", s->type);
    *size = decimal ? 3 : 4;
    return s->group ? strspn(digits, decimal ? "0123456789" : "0123456789abcdefABCDEF") : 0;
}

static void put_digits(fr_jinja_render *render, const fr_jinja_style *s, const char *digits, bool foreign) {
    size_t size, whole = grouped_digits(s, digits, &size);
    for (size_t i = 0; i < whole; i++) {
        if (i > 0 && (whole - i) % size == 0) fr_jinja_put(render, &s->group, 1, foreign);
        fr_jinja_put(render, digits + i, 1, foreign);
    }
    fr_jinja_put_text(render, digits + whole, foreign);
}

static size_t digits_width(const fr_jinja_style *s, const char *digits) {
    size_t size, whole = grouped_digits(s, digits, &size);
    return strlen(digits) + (whole > 0 ? (whole - 1) / size : 0);
}

static void put_number(fr_jinja_render *render, const fr_jinja_style *s, const numeral *n, bool foreign) {
    char sign[2] = {n->negative ? '-' : s->sign, 0};
    size_t length = strlen(sign) + strlen(n->prefix) + digits_width(s, n->digits);
    int64_t padding = s->width > (int64_t)length ? s->width - (int64_t)length : 0;
    int64_t left = s->align == '<' ? 0 : s->align == '^' ? padding / 2 : padding;
    if (s->align != '=') put_fill(render, s, left);
    fr_jinja_put_text(render, sign, foreign);
    fr_jinja_put_text(render, n->prefix, foreign);
    if (s->align == '=') put_fill(render, s, padding);
    put_digits(render, s, n->digits, foreign);
    put_fill(render, s, padding - left);
}

static void print_binary(uint64_t magnitude, char *digits) {
    char reversed[65];
    size_t count = 0;
    do reversed[count++] = (char)('0' + (magnitude & 1));
    while (magnitude >>= 1);
    while (count > 0) *digits++ = reversed[--count];
    *digits = 0;
}

/* Writes an integer with at least as many digits as the precision demands. */
static void print_int(const fr_jinja_style *s, int64_t integer, numeral *n) {
    uint64_t magnitude = integer < 0 ? -(uint64_t)integer : (uint64_t)integer;
    int precision = s->precision > 0 ? (int)s->precision : 1;
    n->negative = integer < 0;
    n->prefix = !s->alternate ? "" : s->type == 'x' ? "0x" : s->type == 'X' ? "0X" : s->type == 'o' ? "0o" : "";
    switch (s->type) {
    case 'x': snprintf(n->digits, sizeof n->digits, "%.*" PRIx64, precision, magnitude); break;
    case 'X': snprintf(n->digits, sizeof n->digits, "%.*" PRIX64, precision, magnitude); break;
    case 'o': snprintf(n->digits, sizeof n->digits, "%.*" PRIo64, precision, magnitude); break;
    case 'b':
        print_binary(magnitude, n->digits);
        n->prefix = s->alternate ? "0b" : "";
        break;
    default: snprintf(n->digits, sizeof n->digits, "%.*" PRIu64, precision, magnitude); break;
    }
}

static void print_real(const fr_jinja_style *s, double real, numeral *n) {
    int precision = s->precision < 0 ? 6 : (int)s->precision;
    n->negative = real < 0 || (real == 0 && 1 / real < 0);
    n->prefix = "";
    if (n->negative) real = -real;
    char *text = n->digits;
    switch (s->type) {
    case 'e': snprintf(text, NUMBER_SIZE, "%.*e", precision, real); break;
    case 'E': snprintf(text, NUMBER_SIZE, "%.*E", precision, real); break;
    case 'g': snprintf(text, NUMBER_SIZE, s->alternate ? "%#.*g" : "%.*g", precision, real); break;
    case 'G': snprintf(text, NUMBER_SIZE, s->alternate ? "%#.*G" : "%.*G", precision, real); break;
    case 'F': snprintf(text, NUMBER_SIZE, "%.*F", precision, real); break;
    case '%': snprintf(text, NUMBER_SIZE, "%.*f%%", precision, real * 100); break;
    case 0:
        if (s->precision < 0) {
            fr_jinja_print_real(real, text);
        } else {
            snprintf(text, NUMBER_SIZE - 2, "%.*g", precision, real);
            if (!strpbrk(text, ".en")) memcpy(text + strlen(text), ".0", 3);
        }
        break;
    default: snprintf(text, NUMBER_SIZE, "%.*f", precision, real); break;
    }
}

void fr_jinja_put_styled_int(fr_jinja_render *render, const fr_jinja_style *s, int64_t integer, bool foreign) {
    numeral n;
    print_int(s, integer, &n);
    put_number(render, s, &n, foreign);
}

/* Writes a wide integer (one beyond 64 bits). It can be written only in decimal. */
void fr_put_styled_wide(fr_jinja_render *render, const fr_jinja_style *s, fr_jinja_value wide) {
    numeral n = {.prefix = "", .negative = fr_wide_is_negative(wide)};
    size_t length = wide.string->length - n.negative;
    size_t least = s->precision > 0 ? (size_t)s->precision : 0, zeros = least > length ? least - length : 0;
    if (zeros + length >= sizeof n.digits || (s->type && strchr("xXob", s->type))) {
        fr_jinja_render_fail(render, "a format of an integer of more than 64 bits");
        return;
    }
    memset(n.digits, '0', zeros);
    memcpy(n.digits + zeros, wide.string->bytes + n.negative, length);
    n.digits[zeros + length] = 0;
    put_number(render, s, &n, wide.foreign);
}

void fr_jinja_put_styled_real(fr_jinja_render *render, const fr_jinja_style *s, double real, bool foreign) {
    numeral n;
    if (!fr_jinja_render_step(render, (size_t)(32 + (s->precision < 0 ? 0 : s->precision)) * 32)) return;
    print_real(s, real, &n);
    put_number(render, s, &n, foreign);
}

void fr_jinja_put_styled_string(fr_jinja_render *render, const fr_jinja_style *s, const fr_jinja_string *string) {
    size_t count = fr_jinja_length(render, fr_jinja_of_string(string));
    if (s->precision >= 0 && (size_t)s->precision < count) {
        size_t end = fr_jinja_character_offset(string->bytes, string->length, (size_t)s->precision);
        string = fr_jinja_string_part(render, string, 0, end);
    }
    const fr_jinja_string *fill = fr_jinja_string_new(render, s->fill, s->fill_length, s->foreign);
    fr_jinja_put_aligned(render, string, s->width, fill, s->align ? s->align : '<');
}

int64_t fr_jinja_read_count(const char *bytes, size_t end, size_t *at) {
    int64_t count = -1;
    for (size_t digits = 0; *at < end && digits < 9 && bytes[*at] >= '0' && bytes[*at] <= '9'; digits++)
        count = (count < 0 ? 0 : count) * 10 + bytes[(*at)++] - '0';
    return count;
}

void fr_jinja_check_precision(fr_jinja_render *render, const fr_jinja_style *s) {
    if (s->precision > FR_PRECISION_MAX && s->type != 's' && s->type != 0)
        fr_jinja_render_fail(render, "a precision of more than %d", FR_PRECISION_MAX);
}
