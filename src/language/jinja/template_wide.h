/* Integers beyond 64 bits, which conversations and tools may have: printed, compared and negated as Python does it;
 * other arithmetic on them fails, but with floats. */
#ifndef FR_SRC_LANGUAGE_JINJA_TEMPLATE_WIDE_H
#define FR_SRC_LANGUAGE_JINJA_TEMPLATE_WIDE_H

#include "src/language/jinja/template_render.h"

#define FR_UNORDERED 2 /* what fr_wide_order gives for a NaN */

/* digits: ASCII, without zeros or anything but a minus before them, of a number that int64 doesn't hold. */
fr_jinja_value fr_of_wide(const fr_jinja_string *digits);

/* Below, at or above 0, or FR_UNORDERED. other: any number. */
int fr_wide_order(fr_jinja_value wide, fr_jinja_value other);

/* The nearest double; an infinite one where there is none. */
double fr_wide_real(fr_jinja_value wide);

bool fr_wide_is_negative(fr_jinja_value wide);
fr_jinja_value fr_wide_negative(fr_jinja_render *render, fr_jinja_value wide);

#endif
