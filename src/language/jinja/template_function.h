/* Describes the functions that templates call by name: filters, tests, methods and functions of the environment. Each
 * function is a row of a table.
 *
 * Arguments are bound to a row's parameters in one place, by position and by name, as Python does. The row's body gets
 * the values in the order of its parameters. The value of a parameter that was not given is of kind FR_KIND_MISSING. */
#ifndef FR_SRC_LANGUAGE_JINJA_TEMPLATE_FUNCTION_H
#define FR_SRC_LANGUAGE_JINJA_TEMPLATE_FUNCTION_H

#include "src/language/jinja/template_value.h"

#define FR_PARAMETERS_MAX 6

struct fr_jinja_render;

/* The body of a function. arguments: a value for each parameter. If takes_rest is set, a tuple and a dict with all
 * further arguments follow. */
typedef fr_jinja_value fr_jinja_function_body(struct fr_jinja_render *render, const fr_jinja_value *arguments);

typedef struct fr_jinja_function {
    const char *name;
    /* NULL: the function is a method that would change its object, so templates may not call it */
    fr_jinja_function_body *body;
    uint8_t required; /* number of parameters that must be given; they are the first ones */
    bool takes_rest;
    /* the parameters' names; the first parameter of a filter, test or method is the value to which it is applied */
    const char *parameters[FR_PARAMETERS_MAX];
} fr_jinja_function;

typedef struct fr_jinja_function_table {
    const fr_jinja_function *rows; /* sorted by name, because rows are found by binary search */
    size_t count;
} fr_jinja_function_table;

extern const fr_jinja_function_table fr_template_filters, fr_template_tests, fr_template_functions;

/* Gives the methods of a kind of value. For most kinds the table is empty. */
const fr_jinja_function_table *fr_template_methods(fr_jinja_kind kind);

/* Finds a row by its name; NULL: no row has that name. */
const fr_jinja_function *fr_jinja_function_find(const fr_jinja_function_table *table, const fr_jinja_string *name);

#endif
