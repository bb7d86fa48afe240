/* Declares the tables of methods: the methods of texts, and the methods of all other values. */
#ifndef FR_SRC_LANGUAGE_JINJA_TEMPLATE_METHODS_H
#define FR_SRC_LANGUAGE_JINJA_TEMPLATE_METHODS_H

#include "src/language/jinja/template_function.h"

extern const fr_jinja_function_table fr_jinja_string_methods;

#endif
