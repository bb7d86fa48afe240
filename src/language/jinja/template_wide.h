/* Handles integers beyond 64 bits, which conversations and tools may contain. Printing, comparing and negating them
 * works as in Python. Other arithmetic on them fails, except with floats. */
#ifndef FR_SRC_LANGUAGE_JINJA_TEMPLATE_WIDE_H
#define FR_SRC_LANGUAGE_JINJA_TEMPLATE_WIDE_H

#include "src/language/jinja/template_render.h"

#define FR_UNORDERED 2 /* the result of fr_wide_order for a NaN */

/* Makes a wide integer from its ASCII digits, which follow a minus if it is negative. The number must not fit in an
 * int64. */
fr_jinja_value fr_of_wide(const fr_jinja_string *digits);

/* Compares a wide integer with any number. Gives a number below 0, 0 or a number above 0; FR_UNORDERED if `other` is a
 * NaN. */
int fr_wide_order(fr_jinja_value wide, fr_jinja_value other);

/* Gives the nearest double, which is infinite if the number is too large. */
double fr_wide_real(fr_jinja_value wide);

bool fr_wide_is_negative(fr_jinja_value wide);
fr_jinja_value fr_wide_negative(fr_jinja_render *render, fr_jinja_value wide);

#endif
