/* Holds the state of a render: its memory, its limits, its first failure, and the text that it writes.
 *
 * fr_jinja_render_fail keeps the first failure and gives the value undefined. After a failure fr_jinja_render_step
 * returns false, so every loop and every evaluation ends at its next step. New lists and texts are empty, and the
 * render as a whole returns the failure. So functions return values instead of statuses, and callers need not check for
 * failures. */
#ifndef FR_SRC_LANGUAGE_JINJA_TEMPLATE_RENDER_H
#define FR_SRC_LANGUAGE_JINJA_TEMPLATE_RENDER_H

#include <jansson.h>

#include "src/language/jinja/template_function.h"
#include "src/language/jinja/template_tree.h"

/* Limits of one render. Each evaluated node, each iteration of a loop, and every FR_RENDER_STEP_BYTES bytes of text
 * that are read or copied count as a step. The depth is the number of calls, blocks and expressions that are nested at
 * the place that is being evaluated. */
#ifndef FR_RENDER_STEPS_MAX
#define FR_RENDER_STEPS_MAX 10000000
#endif
#define FR_RENDER_DEPTH_MAX  500
#define FR_RENDER_STEP_BYTES 32
#define FR_RENDER_TEXT_MAX   ((size_t)64 << 20)
#define FR_RENDER_MEMORY_MAX ((size_t)256 << 20)
#define FR_RENDER_RANGE_MAX  100000 /* the limit of Jinja's sandbox */

/* The variables of a running routine. */
typedef struct fr_jinja_frame {
    struct fr_jinja_frame *outer; /* the frame of the routine that contains this routine in the template */
    fr_jinja_value slots[];
} fr_jinja_frame;

typedef struct fr_jinja_render {
    const fr_template *template;
    fr_jinja_bump memory;
    fr_status status;
    uint32_t line; /* line of the node that is being evaluated */
    uint32_t depth;
    size_t steps; /* steps that are still allowed */
    int64_t now;
    fr_jinja_value given, own; /* the variables given to fr_template_render, as dicts */
    /* The texts that are being written share this memory. If a text begins while another is being written, it is stored
     * after the other. The newest text ends at `length`. */
    char *bytes;
    uint8_t *marks; /* [capacity] 1 for each foreign byte, which is a byte that is not trusted */
    size_t length, capacity;
} fr_jinja_render;

/* Counts one step, and the steps for reading this many bytes. Returns false if the render has failed, or has no steps
 * left. */
bool fr_jinja_render_step(fr_jinja_render *render, size_t bytes);

/* Goes one level deeper. Returns false if the limit does not allow that. After each call that returns true,
 * fr_jinja_render_leave must be called. */
bool fr_jinja_render_enter(fr_jinja_render *render);
void fr_jinja_render_leave(fr_jinja_render *render);

/* Fails the render and gives undefined. The error line names the line of the template that is being evaluated. */
fr_jinja_value fr_jinja_render_fail(fr_jinja_render *render, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Fails the render. The error line says why this value is undefined. */
fr_jinja_value fr_jinja_render_fail_undefined(fr_jinja_render *render, fr_jinja_value value);

static inline bool fr_jinja_render_failed(const fr_jinja_render *render) {
    return render->status != FR_OK;
}

/* Takes zeroed memory that lasts until the render's end. NULL: the render has failed. */
void *fr_jinja_render_take(fr_jinja_render *render, size_t count, size_t item);

/* ---------------------------------------------------------------------------------------------------- writing texts */

/* fr_jinja_text_begin begins a text, and fr_jinja_text_end makes a string of the text since then. Other texts may begin
 * and end between these two calls. */
size_t fr_jinja_text_begin(const fr_jinja_render *render);
const fr_jinja_string *fr_jinja_text_end(fr_jinja_render *render, size_t begin);

/* Drops the text that begins at `begin`. */
void fr_jinja_text_drop(fr_jinja_render *render, size_t begin);

void fr_jinja_put(fr_jinja_render *render, const char *bytes, size_t length, bool foreign);
void fr_jinja_put_text(fr_jinja_render *render, const char *text, bool foreign);
void fr_jinja_put_string(fr_jinja_render *render, const fr_jinja_string *string);
void fr_jinja_put_part(fr_jinja_render *render, const fr_jinja_string *string, size_t begin, size_t end);
void fr_jinja_put_times(fr_jinja_render *render, const fr_jinja_string *string, int64_t times);
void fr_jinja_put_character(fr_jinja_render *render, int32_t codepoint, bool foreign);

/* ----------------------------------------------------------------------------------------- strings, lists and dicts */

const fr_jinja_string *fr_jinja_string_new(fr_jinja_render *render, const char *bytes, size_t length, bool foreign);

/* Gives bytes [begin, end) of a string as a string. The bytes are not copied. */
const fr_jinja_string *fr_jinja_string_part(fr_jinja_render *render, const fr_jinja_string *string, size_t begin,
                                            size_t end);

/* Gives a string with the same bytes, as markup or as plain text (`markup`). When markup is joined with other text, it
 * is not escaped. */
const fr_jinja_string *fr_jinja_string_as_markup(fr_jinja_render *render, const fr_jinja_string *string, bool markup);

/* Makes a list. The result is never NULL, but after a failure nothing can be appended to it. */
fr_jinja_list *fr_jinja_list_new(fr_jinja_render *render, size_t capacity);
void fr_jinja_list_append(fr_jinja_render *render, fr_jinja_list *list, fr_jinja_value value);
fr_jinja_value fr_jinja_tuple_of_two(fr_jinja_render *render, fr_jinja_value first, fr_jinja_value second,
                                     bool foreign);

/* fr_jinja_dict_new makes a dict, and its result is never NULL. fr_jinja_dict_set sets the value of a key, and replaces
 * the value of an equal key. If a key is not hashable, the render fails. */
fr_jinja_dict *fr_jinja_dict_new(fr_jinja_render *render, size_t capacity);
void fr_jinja_dict_set(fr_jinja_render *render, fr_jinja_dict *dict, fr_jinja_value key, fr_jinja_value value);

/* These functions find an entry. NULL: there is no such entry. */
const fr_jinja_entry *fr_jinja_dict_find(fr_jinja_render *render, const fr_jinja_dict *dict, fr_jinja_value key);
const fr_jinja_entry *fr_jinja_dict_find_string(fr_jinja_render *render, const fr_jinja_dict *dict,
                                                const fr_jinja_string *key);

/* -------------------------------------------------------------------------------------------------------- any value */

bool fr_jinja_truth(fr_jinja_render *render, fr_jinja_value value);
bool fr_jinja_equal(fr_jinja_render *render, fr_jinja_value a, fr_jinja_value b);

/* Compares two values. Gives a number below 0, 0 or a number above 0. If the two values have no order, the render
 * fails. */
int fr_jinja_compare(fr_jinja_render *render, fr_jinja_value a, fr_jinja_value b);

/* Returns true if the comparison holds. `in` is one of the comparisons. */
bool fr_jinja_holds(fr_jinja_render *render, fr_jinja_operator operator, fr_jinja_value a, fr_jinja_value b);

/* Sorts a list in place. If `keys` is NULL, it is sorted by its items; otherwise by the keys with the same indices.
 * Equal items keep their order. */
void fr_jinja_sort(fr_jinja_render *render, fr_jinja_value *items, fr_jinja_value *keys, size_t count, bool descending);

/* Gives the entries of a dict sorted by their keys. */
const fr_jinja_entry *fr_jinja_sorted_entries(fr_jinja_render *render, const fr_jinja_dict *dict);

/* Returns true if the container contains the value. */
bool fr_jinja_contains(fr_jinja_render *render, fr_jinja_value container, fr_jinja_value value);

/* Gives a value's len(). If the value has no length, the render fails. */
size_t fr_jinja_length(fr_jinja_render *render, fr_jinja_value value);
bool fr_jinja_has_length(fr_jinja_value value);
bool fr_jinja_is_iterable(fr_jinja_value value);

/* Write a value as str() and repr() do. */
const fr_jinja_string *fr_jinja_str(fr_jinja_render *render, fr_jinja_value value);
void fr_jinja_put_str(fr_jinja_render *render, fr_jinja_value value);
void fr_jinja_put_repr(fr_jinja_render *render, fr_jinja_value value);

/* Does the same as fr_jinja_str, except that markup stays markup. */
const fr_jinja_string *fr_jinja_soft_str(fr_jinja_render *render, fr_jinja_value value);

/* fr_jinja_get_attribute gives object.name, and fr_jinja_get_item gives object[index], as environment.getattr and
 * environment.getitem of Jinja do. */
fr_jinja_value fr_jinja_get_attribute(fr_jinja_render *render, fr_jinja_value object, const fr_jinja_string *name);
fr_jinja_value fr_jinja_get_item(fr_jinja_render *render, fr_jinja_value object, fr_jinja_value index);

/* Gives object[start:stop:step]. If the template leaves out a bound, the bound is MISSING or none. */
fr_jinja_value fr_jinja_get_slice(fr_jinja_render *render, fr_jinja_value object, fr_jinja_value start,
                                  fr_jinja_value stop, fr_jinja_value step);

fr_jinja_value fr_jinja_arithmetic(fr_jinja_render *render, fr_jinja_operator operator, fr_jinja_value a,
                                   fr_jinja_value b);
fr_jinja_value fr_jinja_negative(fr_jinja_render *render, fr_jinja_value value);

/* The state of an iteration over a value. */
typedef struct fr_jinja_cursor {
    fr_jinja_value over;
    size_t at; /* index of the next item or entry; if a string is iterated, the byte offset */
} fr_jinja_cursor;

/* Begins an iteration. If the value can't be iterated, the render fails. */
fr_jinja_cursor fr_jinja_cursor_new(fr_jinja_render *render, fr_jinja_value over);

/* Gives the next item. Returns false if there is none, or if the render has failed. */
bool fr_jinja_cursor_next(fr_jinja_render *render, fr_jinja_cursor *cursor, fr_jinja_value *value);

/* An iterator, like a generator in Python: it makes each item only when it is needed, and only once. */
typedef struct fr_jinja_iterator {
    bool (*next)(fr_jinja_render *render, struct fr_jinja_iterator *iterator, fr_jinja_value *value);
    fr_jinja_cursor source;
    const void *state; /* only `next` uses it */
    size_t count;
} fr_jinja_iterator;

fr_jinja_value fr_jinja_iterator_new(fr_jinja_render *render,
                                     bool next(fr_jinja_render *, fr_jinja_iterator *, fr_jinja_value *),
                                     fr_jinja_value source, const void *state);

/* Lists all items of an iterable. */
fr_jinja_list *fr_jinja_list_of(fr_jinja_render *render, fr_jinja_value value);

/* ---------------------------------------------------------------------------------------------------------- calling */

typedef struct fr_jinja_arguments {
    const fr_jinja_value *positional;
    size_t count;
    const fr_jinja_entry *keywords; /* keys are strings */
    size_t keyword_count;
} fr_jinja_arguments;

typedef struct fr_jinja_macro {
    const fr_jinja_routine *routine;
    fr_jinja_frame *outer;
} fr_jinja_macro;

/* Calls the function of a table's row. subject: its first argument, or MISSING if it has no subject. */
fr_jinja_value fr_jinja_call_function(fr_jinja_render *render, const fr_jinja_function *function,
                                      fr_jinja_value subject, const fr_jinja_arguments *arguments);

/* Calls any value. */
fr_jinja_value fr_jinja_call(fr_jinja_render *render, fr_jinja_value callee, const fr_jinja_arguments *arguments);

/* ---------------------------------------------------------------------------------------------- the template's tree */

fr_jinja_value fr_jinja_evaluate(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node);

/* Evaluates a call and adds the keyword argument `caller` to it. */
fr_jinja_value fr_jinja_evaluate_call_with(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node,
                                           fr_jinja_value caller);

/* Evaluates a chain of filters. The first of them is applied to `text`, the text of a filter block. */
fr_jinja_value fr_jinja_evaluate_filters(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node,
                                         fr_jinja_value text);

typedef enum fr_jinja_flow { FR_FLOW_ON, FR_FLOW_BREAK, FR_FLOW_CONTINUE } fr_jinja_flow;
fr_jinja_flow fr_jinja_run(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_nodes *body);

fr_jinja_frame *fr_jinja_frame_new(fr_jinja_render *render, const fr_jinja_routine *routine, fr_jinja_frame *outer);
void fr_jinja_enter_scope(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_scope *scope);

/* Gives a variable of the context. It is looked up in `given`, then in `own`, then among the functions of the
 * environment. */
fr_jinja_value fr_jinja_resolve(fr_jinja_render *render, const fr_jinja_string *name);

/* Runs the body of a macro with these arguments. */
fr_jinja_value fr_jinja_call_macro(fr_jinja_render *render, const fr_jinja_macro *macro,
                                   const fr_jinja_arguments *arguments);

/* The state of a loop that is running. In the template it is the value `loop`. */
typedef struct fr_jinja_loop {
    const fr_jinja_for_node *node;
    fr_jinja_frame *frame; /* the frame that has the loop's variables */
    fr_jinja_frame *outer; /* the frame around the loop */
    fr_jinja_value sequence;
    fr_jinja_cursor cursor;
    /* NULL, or a list of the remaining items, if a sequence has no length and its length was asked for */
    const fr_jinja_list *rest;
    size_t rest_at;
    size_t index, length, depth;
    bool length_known, ahead_known, ahead_any;
    fr_jinja_value before, current, ahead, changed;
} fr_jinja_loop;

fr_jinja_value fr_jinja_loop_attribute(fr_jinja_render *render, fr_jinja_loop *loop, const fr_jinja_string *name);
const fr_jinja_string *fr_jinja_run_recursive(fr_jinja_render *render, const fr_jinja_for_node *node,
                                              fr_jinja_frame *outer, fr_jinja_value sequence, size_t depth);

#endif
