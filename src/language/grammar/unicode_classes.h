/* Finds the characters of Unicode's properties, as \p{...} names them in regular expressions.
 *
 * In: a name in ECMA 262's form: a general category, short or long (Lu, Uppercase_Letter, gc=Lu), a script
 * (Script=Greek, scx=Grek, or Greek alone), or a binary property (Alphabetic). Out: sorted ranges. Categories come from
 * utf8proc, scripts and binary properties from PCRE2. A name that the installed version of PCRE2 does not know is
 * refused, and the error line has the name. */
#ifndef FR_SRC_LANGUAGE_GRAMMAR_UNICODE_CLASSES_H
#define FR_SRC_LANGUAGE_GRAMMAR_UNICODE_CLASSES_H

#include "src/language/grammar/rules.h"

#define FR_UNICODE_CLASS_WORK ((size_t)1 << 13) /* number of steps that one search through all characters counts as */

/* Writes at most `most` ranges. *count: the number of ranges that the class has, which may be larger. FR_UNBUILT: the
 * name is not known. */
fr_status fr_unicode_class(fr_text name, fr_character_range *ranges, size_t most, size_t *count);

#endif
