/* Computes with whole numbers of up to 40 digits, for the bounds of schemas, which may not fit in 64 bits.
 *
 * In: JSON values. Out: their digits, with a minus before them if the number is negative. A number with more digits
 * becomes the largest number of 40 digits. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_DECIMAL_H
#define FR_SRC_LANGUAGE_GRAMMAR_DECIMAL_H

#include <jansson.h>
#include <stdbool.h>

#define FR_DECIMAL_DIGITS 40

typedef struct fr_decimal {
    char text[FR_DECIMAL_DIGITS + 2];
} fr_decimal;

/* Gives the value if it is a whole number. Otherwise gives the next whole number above it (`above`) or below it.
 * *whole: true if the value is a whole number. */
fr_decimal fr_decimal_of(const json_t *value, bool above, bool *whole);

/* Makes the number whose digits are this many nines. */
fr_decimal fr_decimal_nines(size_t digits, bool negative);

int fr_decimal_compare(const fr_decimal *one, const fr_decimal *other);
size_t fr_decimal_length(const fr_decimal *number); /* gives the number of digits */
fr_decimal fr_decimal_negated(fr_decimal number);
fr_decimal fr_decimal_next(fr_decimal number, bool below);

#endif
