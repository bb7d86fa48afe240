/* A render in progress: its memory, its limits, its first failure, and the text that it writes.
 *
 * A failure sticks. fr_jinja_render_fail keeps the first one and gives undefined; from then on fr_jinja_render_step
 * says no, every loop and every evaluation ends there, lists and texts that are asked for are empty ones, and the
 * render as a whole gives the failure. So values are returned, not statuses, and nothing in between has to look. */
#ifndef FR_SRC_LANGUAGE_JINJA_TEMPLATE_RENDER_H
#define FR_SRC_LANGUAGE_JINJA_TEMPLATE_RENDER_H

#include <jansson.h>

#include "src/language/jinja/template_function.h"
#include "src/language/jinja/template_tree.h"

/* Limits of one render. A step is a node that is evaluated, a turn of a loop, or FR_RENDER_STEP_BYTES of text that are
 * looked at or copied. Depth counts calls, blocks and expressions inside each other, as they are evaluated. */
#ifndef FR_RENDER_MAX_STEPS
#define FR_RENDER_MAX_STEPS 10000000
#endif
#define FR_RENDER_MAX_DEPTH  500
#define FR_RENDER_STEP_BYTES 32
#define FR_RENDER_MAX_TEXT   ((size_t)64 << 20)
#define FR_RENDER_MAX_MEMORY ((size_t)256 << 20)
#define FR_RENDER_MAX_RANGE  100000 /* Jinja's sandbox has it */

/* Variables of a routine that is running. */
typedef struct fr_jinja_frame {
    struct fr_jinja_frame *outer; /* of the routine that this one's text stands in */
    fr_jinja_value slots[];
} fr_jinja_frame;

typedef struct fr_jinja_render {
    const fr_template *template;
    fr_jinja_bump memory;
    fr_status status;
    uint32_t line; /* of what is evaluated */
    uint32_t depth;
    size_t steps; /* still allowed */
    int64_t now;
    fr_jinja_value given, own; /* dicts */
    /* Texts being written, one behind the other: the last one's end is the end. */
    char *bytes;
    uint8_t *marks; /* 1: foreign */
    size_t length, capacity;
} fr_jinja_render;

/* Whether a step may be taken that looks at so many bytes. */
bool fr_jinja_render_step(fr_jinja_render *render, size_t bytes);

/* A level deeper, if allowed; every true is followed by fr_jinja_render_leave. */
bool fr_jinja_render_enter(fr_jinja_render *render);
void fr_jinja_render_leave(fr_jinja_render *render);

/* Fails the render, in the line that is evaluated, and gives undefined. */
fr_jinja_value fr_jinja_render_fail(fr_jinja_render *render, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Says why this undefined value is undefined. */
fr_jinja_value fr_jinja_render_fail_undefined(fr_jinja_render *render, fr_jinja_value value);

static inline bool fr_jinja_render_failed(const fr_jinja_render *render) {
    return render->status != FR_OK;
}

/* Zeroed memory until the render's end; NULL: the render has failed. */
void *fr_jinja_render_take(fr_jinja_render *render, size_t count, size_t item);

/* ---------------------------------------------------------------------------------------------------- writing texts */

/* A text is begun, written, and ended as a string; others may be begun and ended meanwhile. */
size_t fr_jinja_text_begin(const fr_jinja_render *render);
const fr_jinja_string *fr_jinja_text_end(fr_jinja_render *render, size_t begin);

/* Takes the last text back. */
void fr_jinja_text_drop(fr_jinja_render *render, size_t begin);

void fr_jinja_put(fr_jinja_render *render, const char *bytes, size_t length, bool foreign);
void fr_jinja_put_text(fr_jinja_render *render, const char *text, bool foreign);
void fr_jinja_put_string(fr_jinja_render *render, const fr_jinja_string *string);
void fr_jinja_put_part(fr_jinja_render *render, const fr_jinja_string *string, size_t begin, size_t end);
void fr_jinja_put_times(fr_jinja_render *render, const fr_jinja_string *string, int64_t times);
void fr_jinja_put_character(fr_jinja_render *render, int32_t codepoint, bool foreign);

/* ----------------------------------------------------------------------------------------- strings, lists and dicts */

const fr_jinja_string *fr_jinja_string_new(fr_jinja_render *render, const char *bytes, size_t length, bool foreign);

/* Bytes begin to end - 1, which are not copied. */
const fr_jinja_string *fr_jinja_string_part(fr_jinja_render *render, const fr_jinja_string *string, size_t begin,
                                            size_t end);

/* The same bytes, as text that joins others without being escaped, or not. */
const fr_jinja_string *fr_jinja_string_as_markup(fr_jinja_render *render, const fr_jinja_string *string, bool markup);

/* Never NULL: after a failure it takes nothing. */
fr_jinja_list *fr_jinja_list_new(fr_jinja_render *render, size_t capacity);
void fr_jinja_list_append(fr_jinja_render *render, fr_jinja_list *list, fr_jinja_value value);
fr_jinja_value fr_jinja_tuple_of_two(fr_jinja_render *render, fr_jinja_value first, fr_jinja_value second,
                                     bool foreign);

/* Never NULL. Setting replaces the value of an equal key; the key must be hashable, or the render fails. */
fr_jinja_dict *fr_jinja_dict_new(fr_jinja_render *render, size_t capacity);
void fr_jinja_dict_set(fr_jinja_render *render, fr_jinja_dict *dict, fr_jinja_value key, fr_jinja_value value);

/* NULL: there is none. */
const fr_jinja_entry *fr_jinja_dict_find(fr_jinja_render *render, const fr_jinja_dict *dict, fr_jinja_value key);
const fr_jinja_entry *fr_jinja_dict_find_string(fr_jinja_render *render, const fr_jinja_dict *dict,
                                                const fr_jinja_string *key);

/* -------------------------------------------------------------------------------------------------------- any value */

bool fr_jinja_truth(fr_jinja_render *render, fr_jinja_value value);
bool fr_jinja_equal(fr_jinja_render *render, fr_jinja_value a, fr_jinja_value b);

/* Below, at or above 0; a failure where the two have no order. */
int fr_jinja_compare(fr_jinja_render *render, fr_jinja_value a, fr_jinja_value b);

/* Whether a comparison holds; `in` too. */
bool fr_jinja_holds(fr_jinja_render *render, fr_jinja_operator operator, fr_jinja_value a, fr_jinja_value b);

/* A list in order, stable: of items, or by keys of the same number (NULL: the items themselves). */
void fr_jinja_sort(fr_jinja_render *render, fr_jinja_value *items, fr_jinja_value *keys, size_t count, bool descending);

/* The entries of a dict by their keys. */
const fr_jinja_entry *fr_jinja_sorted_entries(fr_jinja_render *render, const fr_jinja_dict *dict);

/* value in container */
bool fr_jinja_contains(fr_jinja_render *render, fr_jinja_value container, fr_jinja_value value);

/* len(); a failure for what has none. */
size_t fr_jinja_length(fr_jinja_render *render, fr_jinja_value value);
bool fr_jinja_has_length(fr_jinja_value value);
bool fr_jinja_is_iterable(fr_jinja_value value);

/* str(), repr() */
const fr_jinja_string *fr_jinja_str(fr_jinja_render *render, fr_jinja_value value);
void fr_jinja_put_str(fr_jinja_render *render, fr_jinja_value value);
void fr_jinja_put_repr(fr_jinja_render *render, fr_jinja_value value);

/* str(), but markup stays markup. */
const fr_jinja_string *fr_jinja_soft_str(fr_jinja_render *render, fr_jinja_value value);

/* environment.getattr, environment.getitem: object.name, object[index] */
fr_jinja_value fr_jinja_get_attribute(fr_jinja_render *render, fr_jinja_value object, const fr_jinja_string *name);
fr_jinja_value fr_jinja_get_item(fr_jinja_render *render, fr_jinja_value object, fr_jinja_value index);

/* object[start:stop:step]; MISSING or none where there is none. */
fr_jinja_value fr_jinja_get_slice(fr_jinja_render *render, fr_jinja_value object, fr_jinja_value start,
                                  fr_jinja_value stop, fr_jinja_value step);

fr_jinja_value fr_jinja_arithmetic(fr_jinja_render *render, fr_jinja_operator operator, fr_jinja_value a,
                                   fr_jinja_value b);
fr_jinja_value fr_jinja_negative(fr_jinja_render *render, fr_jinja_value value);

/* What a loop over a value gives, one after the other. */
typedef struct fr_jinja_cursor {
    fr_jinja_value over;
    size_t at; /* items, entries or bytes so far */
} fr_jinja_cursor;

/* A failure for what can't be looped over. */
fr_jinja_cursor fr_jinja_cursor_new(fr_jinja_render *render, fr_jinja_value over);

/* false: there is nothing further, or the render failed. */
bool fr_jinja_cursor_next(fr_jinja_render *render, fr_jinja_cursor *cursor, fr_jinja_value *value);

/* Python's generators: each item is made when it is asked for, and once. */
typedef struct fr_jinja_iterator {
    bool (*next)(fr_jinja_render *render, struct fr_jinja_iterator *iterator, fr_jinja_value *value);
    fr_jinja_cursor source;
    const void *state; /* next's own */
    size_t count;
} fr_jinja_iterator;

fr_jinja_value fr_jinja_iterator_new(fr_jinja_render *render,
                                     bool next(fr_jinja_render *, fr_jinja_iterator *, fr_jinja_value *),
                                     fr_jinja_value source, const void *state);

/* All items, of what can be looped over. */
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

/* A row of a table. subject: the first argument, or MISSING. */
fr_jinja_value fr_jinja_call_function(fr_jinja_render *render, const fr_jinja_function *function,
                                      fr_jinja_value subject, const fr_jinja_arguments *arguments);

/* Any value. */
fr_jinja_value fr_jinja_call(fr_jinja_render *render, fr_jinja_value callee, const fr_jinja_arguments *arguments);

/* ---------------------------------------------------------------------------------------------- the template's tree */

fr_jinja_value fr_jinja_evaluate(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node);

/* A call with one more argument by name, caller. */
fr_jinja_value fr_jinja_evaluate_call_with(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node,
                                           fr_jinja_value caller);

/* A chain of filters, whose first is applied to a block's text. */
fr_jinja_value fr_jinja_evaluate_filters(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node,
                                         fr_jinja_value text);

typedef enum fr_jinja_flow { FR_FLOW_ON, FR_FLOW_BREAK, FR_FLOW_CONTINUE } fr_jinja_flow;
fr_jinja_flow fr_jinja_run(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_nodes *body);

fr_jinja_frame *fr_jinja_frame_new(fr_jinja_render *render, const fr_jinja_routine *routine, fr_jinja_frame *outer);
void fr_jinja_enter_scope(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_scope *scope);

/* The variable of the context: given, own, or a function of the environment. */
fr_jinja_value fr_jinja_resolve(fr_jinja_render *render, const fr_jinja_string *name);

/* Runs the body of a macro, given its arguments. */
fr_jinja_value fr_jinja_call_macro(fr_jinja_render *render, const fr_jinja_macro *macro,
                                   const fr_jinja_arguments *arguments);

/* A loop that is running: the value `loop`. */
typedef struct fr_jinja_loop {
    const fr_jinja_for_node *node;
    fr_jinja_frame *frame; /* of its variables */
    fr_jinja_frame *outer; /* of what surrounds it */
    fr_jinja_value sequence;
    fr_jinja_cursor cursor;
    const fr_jinja_list *rest; /* once its length was asked of what has none: what comes then */
    size_t rest_at;
    size_t index, length, depth;
    bool length_known, ahead_known, ahead_any;
    fr_jinja_value before, current, ahead, changed;
} fr_jinja_loop;

fr_jinja_value fr_jinja_loop_attribute(fr_jinja_render *render, fr_jinja_loop *loop, const fr_jinja_string *name);
const fr_jinja_string *fr_jinja_run_recursive(fr_jinja_render *render, const fr_jinja_for_node *node,
                                              fr_jinja_frame *outer, fr_jinja_value sequence, size_t depth);

#endif
