/* Declares the functions that filters run. template_filters.c lists the filters with their parameters. */
#ifndef FR_SRC_LANGUAGE_JINJA_TEMPLATE_FILTERS_H
#define FR_SRC_LANGUAGE_JINJA_TEMPLATE_FILTERS_H

#include "src/language/jinja/template_render.h"

/* These filters are in template_filters_text.c. */
fr_jinja_function_body fr_jinja_filter_capitalize, fr_jinja_filter_center, fr_jinja_filter_escape,
    fr_jinja_filter_forceescape, fr_jinja_filter_format, fr_jinja_filter_indent, fr_jinja_filter_join,
    fr_jinja_filter_lower, fr_jinja_filter_replace, fr_jinja_filter_safe, fr_jinja_filter_string,
    fr_jinja_filter_striptags, fr_jinja_filter_title, fr_jinja_filter_tojson, fr_jinja_filter_trim,
    fr_jinja_filter_truncate, fr_jinja_filter_upper, fr_jinja_filter_urlencode, fr_jinja_filter_wordcount;

/* These filters are in template_filters_value.c. */
fr_jinja_function_body fr_jinja_filter_abs, fr_jinja_filter_attr, fr_jinja_filter_default,
    fr_jinja_filter_filesizeformat, fr_jinja_filter_float, fr_jinja_filter_int, fr_jinja_filter_length,
    fr_jinja_filter_round;

/* These filters are in template_filters_list.c. */
fr_jinja_function_body fr_jinja_filter_batch, fr_jinja_filter_dictsort, fr_jinja_filter_first, fr_jinja_filter_groupby,
    fr_jinja_filter_items, fr_jinja_filter_last, fr_jinja_filter_list, fr_jinja_filter_map, fr_jinja_filter_max,
    fr_jinja_filter_min, fr_jinja_filter_reject, fr_jinja_filter_rejectattr, fr_jinja_filter_reverse,
    fr_jinja_filter_select, fr_jinja_filter_selectattr, fr_jinja_filter_slice, fr_jinja_filter_sort,
    fr_jinja_filter_sum, fr_jinja_filter_unique;

/* A path of attribute names and indices, as a filter's argument `attribute` gives it. */
typedef struct fr_jinja_path {
    const fr_jinja_value *parts;
    size_t count;
} fr_jinja_path;

/* Reads a path such as "a.b.0", or a number. If the argument is missing, the path is empty and leads to the item
 * itself. */
fr_jinja_path fr_jinja_path_of(fr_jinja_render *render, fr_jinja_value attribute);
fr_jinja_value fr_jinja_path_get(fr_jinja_render *render, const fr_jinja_path *path, fr_jinja_value item);

/* These functions read optional arguments. fr_jinja_argument_truth gives a truth value, or false if the argument is
 * missing. fr_jinja_argument_int gives an integer, or `missing` if the argument is missing. */
bool fr_jinja_argument_truth(fr_jinja_render *render, fr_jinja_value argument);
int64_t fr_jinja_argument_int(fr_jinja_render *render, fr_jinja_value argument, int64_t missing, const char *what);

#endif
