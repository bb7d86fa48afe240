/* The bodies of filters, which template_filters.c lists with their parameters. */
#ifndef FR_SRC_TEMPLATE_FILTERS_H
#define FR_SRC_TEMPLATE_FILTERS_H

#include "src/jinja/template_render.h"

/* template_filters_text.c */
fr_function_body fr_filter_capitalize, fr_filter_center, fr_filter_escape, fr_filter_forceescape, fr_filter_format,
    fr_filter_indent, fr_filter_join, fr_filter_lower, fr_filter_replace, fr_filter_safe, fr_filter_string,
    fr_filter_striptags, fr_filter_title, fr_filter_tojson, fr_filter_trim, fr_filter_truncate, fr_filter_upper,
    fr_filter_urlencode, fr_filter_wordcount;

/* template_filters_value.c */
fr_function_body fr_filter_abs, fr_filter_attr, fr_filter_default, fr_filter_filesizeformat, fr_filter_float,
    fr_filter_int, fr_filter_length, fr_filter_round;

/* template_filters_list.c */
fr_function_body fr_filter_batch, fr_filter_dictsort, fr_filter_first, fr_filter_groupby, fr_filter_items,
    fr_filter_last, fr_filter_list, fr_filter_map, fr_filter_max, fr_filter_min, fr_filter_reject, fr_filter_rejectattr,
    fr_filter_reverse, fr_filter_select, fr_filter_selectattr, fr_filter_slice, fr_filter_sort, fr_filter_sum,
    fr_filter_unique;

/* What an argument `attribute` names: a path of names and numbers. */
typedef struct fr_path {
    const fr_value *parts;
    size_t count;
} fr_path;

/* "a.b.0", a number, or nothing: the item itself. */
fr_path fr_path_of(fr_render *render, fr_value attribute);
fr_value fr_path_get(fr_render *render, const fr_path *path, fr_value item);

/* Arguments that may be left out: a truth, false without one; an integer. */
bool fr_argument_truth(fr_render *render, fr_value argument);
int64_t fr_argument_int(fr_render *render, fr_value argument, int64_t missing, const char *what);

#endif
