/* What templates call by name: filters, tests, methods and functions of the environment, each a row of a table.
 *
 * A row's parameters are bound once, in one place, by position and by name, as Python does; its body finds the values
 * in their order, FR_KIND_MISSING where none was given. */
#ifndef FR_SRC_LANGUAGE_JINJA_TEMPLATE_FUNCTION_H
#define FR_SRC_LANGUAGE_JINJA_TEMPLATE_FUNCTION_H

#include "src/language/jinja/template_value.h"

#define FR_MAX_PARAMETERS 6

struct fr_jinja_render;

/* arguments: of each parameter; if the row takes the rest, then a tuple and a dict of what else was given. */
typedef fr_jinja_value fr_jinja_function_body(struct fr_jinja_render *render, const fr_jinja_value *arguments);

typedef struct fr_jinja_function {
    const char *name;
    fr_jinja_function_body *body; /* NULL: a method that would change its object */
    uint8_t required;       /* of the parameters, from the first one on */
    bool takes_rest;
    const char *parameters[FR_MAX_PARAMETERS]; /* the first of a filter, test or method: what it is applied to */
} fr_jinja_function;

typedef struct fr_jinja_function_table {
    const fr_jinja_function *rows; /* names ascend */
    size_t count;
} fr_jinja_function_table;

extern const fr_jinja_function_table fr_template_filters, fr_template_tests, fr_template_functions;

/* The methods of a kind of value; an empty table for most. */
const fr_jinja_function_table *fr_template_methods(fr_jinja_kind kind);

/* NULL: there is none. */
const fr_jinja_function *fr_jinja_function_find(const fr_jinja_function_table *table, const fr_jinja_string *name);

#endif
