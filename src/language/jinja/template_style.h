/* Describes the style in which a format writes a value, both for "%5d" and for "{:>5}". */
#ifndef FR_SRC_LANGUAGE_JINJA_TEMPLATE_STYLE_H
#define FR_SRC_LANGUAGE_JINJA_TEMPLATE_STYLE_H

#include "src/language/jinja/template_render.h"

#define FR_PRECISION_MAX 300

typedef struct fr_jinja_style {
    char fill[4]; /* the character, in UTF-8, with which the text is padded to the width */
    size_t fill_length;
    char align; /* '<', '>' or '^' as in fr_jinja_put_aligned; '=': the padding is between the sign and the digits */
    char sign;  /* + or a blank, written before numbers that are not negative; 0: nothing is written */
    char group; /* , or _ between groups of digits; 0: digits are not grouped */
    bool alternate;
    bool foreign;             /* the padding comes from foreign text */
    int64_t width, precision; /* -1: none */
    char type;                /* the letter of the conversion, such as d or x; 0: there is none */
} fr_jinja_style;

/* Fails the render if the precision is above the limit for numbers. */
void fr_jinja_check_precision(fr_jinja_render *render, const fr_jinja_style *s);

void fr_jinja_put_styled_int(fr_jinja_render *render, const fr_jinja_style *s, int64_t integer, bool foreign);
void fr_put_styled_wide(fr_jinja_render *render, const fr_jinja_style *s, fr_jinja_value wide);
void fr_jinja_put_styled_real(fr_jinja_render *render, const fr_jinja_style *s, double real, bool foreign);

/* Writes a string, cut to the number of characters that the precision gives. */
void fr_jinja_put_styled_string(fr_jinja_render *render, const fr_jinja_style *s, const fr_jinja_string *string);

/* Reads a number of at most 9 digits at *at, and moves *at past it; -1: there is no number. */
int64_t fr_jinja_read_count(const char *bytes, size_t end, size_t *at);

static inline bool fr_jinja_is_whole(fr_jinja_value value) {
    return value.kind == FR_KIND_INT || value.kind == FR_KIND_BOOL;
}

#endif
