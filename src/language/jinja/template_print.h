/* Writes values as JSON, as Python's json.dumps() does. */
#ifndef FR_SRC_LANGUAGE_JINJA_TEMPLATE_PRINT_H
#define FR_SRC_LANGUAGE_JINJA_TEMPLATE_PRINT_H

#include "src/language/jinja/template_render.h"

typedef struct fr_jinja_json_style {
    const fr_jinja_string *indent; /* indentation of one level; NULL: everything is on one line */
    /* the separators between items and after a key, for example ", " and ": " */
    const fr_jinja_string *between, *colon;
    bool ascii, sorted;
} fr_jinja_json_style;

void fr_jinja_put_json(fr_jinja_render *render, fr_jinja_value value, const fr_jinja_json_style *style);

#endif
