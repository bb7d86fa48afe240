/* Formats texts in which values are inserted: "%s" % value, and "{}".format(value). */
#ifndef FR_SRC_LANGUAGE_JINJA_TEMPLATE_FORMAT_H
#define FR_SRC_LANGUAGE_JINJA_TEMPLATE_FORMAT_H

#include "src/language/jinja/template_render.h"

/* Does Python's format % values. values: a tuple, a dict for %(name)s, or one value. */
const fr_jinja_string *fr_jinja_format_percent(fr_jinja_render *render, const fr_jinja_string *format,
                                               fr_jinja_value values);

/* Does Python's format.format(...). rest: arguments by position; keywords: arguments by name. */
const fr_jinja_string *fr_jinja_format_braces(fr_jinja_render *render, const fr_jinja_string *format,
                                              const fr_jinja_list *rest, const fr_jinja_dict *keywords);

#endif
