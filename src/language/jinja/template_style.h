/* How values look in formats: what "%5d" and "{:>5}" have in common. */
#ifndef FR_SRC_LANGUAGE_JINJA_TEMPLATE_STYLE_H
#define FR_SRC_LANGUAGE_JINJA_TEMPLATE_STYLE_H

#include "src/language/jinja/template_render.h"

#define FR_MAX_PRECISION 300

typedef struct fr_jinja_style {
    char fill[4]; /* one character */
    size_t fill_length;
    char align; /* < > ^, or = for filling between sign and digits */
    char sign;  /* + or blank before what isn't negative, or 0 */
    char group; /* , or _ between thousands, or 0 */
    bool alternate;
    bool foreign;             /* whose hand the filling is of */
    int64_t width, precision; /* -1: none */
    char type;                /* 0: none */
} fr_jinja_style;

/* A precision beyond what numbers are written with fails. */
void fr_jinja_check_precision(fr_jinja_render *render, const fr_jinja_style *s);

void fr_jinja_put_styled_int(fr_jinja_render *render, const fr_jinja_style *s, int64_t integer, bool foreign);
void fr_put_styled_wide(fr_jinja_render *render, const fr_jinja_style *s, fr_jinja_value wide);
void fr_jinja_put_styled_real(fr_jinja_render *render, const fr_jinja_style *s, double real, bool foreign);

/* Cut to the precision. */
void fr_jinja_put_styled_string(fr_jinja_render *render, const fr_jinja_style *s, const fr_jinja_string *string);

/* A number in a format, of at most 9 digits, at *at, which moves behind it; -1: there is none. */
int64_t fr_jinja_read_count(const char *bytes, size_t end, size_t *at);

static inline bool fr_jinja_is_whole(fr_jinja_value value) {
    return value.kind == FR_KIND_INT || value.kind == FR_KIND_BOOL;
}

#endif
