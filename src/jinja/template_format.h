/* Texts with places for values: "%s" % value, and "{}".format(value). */
#ifndef FR_SRC_TEMPLATE_FORMAT_H
#define FR_SRC_TEMPLATE_FORMAT_H

#include "src/jinja/template_render.h"

/* values: a tuple, a dict for %(name)s, or one value. */
const fr_string *fr_format_percent(fr_render *render, const fr_string *format, fr_value values);

/* rest: positional, keywords: by name. */
const fr_string *fr_format_braces(fr_render *render, const fr_string *format, const fr_list *rest,
                                  const fr_dict *keywords);

#endif
