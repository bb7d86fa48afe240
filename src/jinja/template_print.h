/* Values as JSON, as Python's json.dumps() writes them. */
#ifndef FR_SRC_TEMPLATE_PRINT_H
#define FR_SRC_TEMPLATE_PRINT_H

#include "src/jinja/template_render.h"

typedef struct fr_json_style {
    const fr_string *indent;          /* of a level; NULL: all in one line */
    const fr_string *between, *colon; /* ", " and ": ", say */
    bool ascii, sorted;
} fr_json_style;

void fr_put_json(fr_render *render, fr_value value, const fr_json_style *style);

#endif
