/* A render in progress: its memory, its limits, its first failure, and the text that it writes.
 *
 * A failure sticks. fr_render_fail keeps the first one and gives undefined; from then on fr_render_step says no, every
 * loop and every evaluation ends there, lists and texts that are asked for are empty ones, and the render as a whole
 * gives the failure. So values are returned, not statuses, and nothing in between has to look. */
#ifndef FR_SRC_TEMPLATE_RENDER_H
#define FR_SRC_TEMPLATE_RENDER_H

#include <jansson.h>

#include "src/jinja/template_function.h"
#include "src/jinja/template_tree.h"

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
typedef struct fr_frame {
    struct fr_frame *outer; /* of the routine that this one's text stands in */
    fr_value slots[];
} fr_frame;

typedef struct fr_render {
    const fr_template *template;
    fr_bump memory;
    fr_status status;
    uint32_t line; /* of what is evaluated */
    uint32_t depth;
    size_t steps; /* still allowed */
    int64_t now;
    fr_value given, own; /* dicts */
    /* Texts being written, one behind the other: the last one's end is the end. */
    char *bytes;
    uint8_t *marks; /* 1: foreign */
    size_t length, capacity;
} fr_render;

/* Whether a step may be taken that looks at so many bytes. */
bool fr_render_step(fr_render *render, size_t bytes);

/* A level deeper, if allowed; every true is followed by fr_render_leave. */
bool fr_render_enter(fr_render *render);
void fr_render_leave(fr_render *render);

/* Fails the render, in the line that is evaluated, and gives undefined. */
fr_value fr_render_fail(fr_render *render, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Says why this undefined value is undefined. */
fr_value fr_render_fail_undefined(fr_render *render, fr_value value);

static inline bool fr_render_failed(const fr_render *render) {
    return render->status != FR_OK;
}

/* Zeroed memory until the render's end; NULL: the render has failed. */
void *fr_render_take(fr_render *render, size_t count, size_t item);

/* ---------------------------------------------------------------------------------------------------- writing texts */

/* A text is begun, written, and ended as a string; others may be begun and ended meanwhile. */
size_t fr_text_begin(const fr_render *render);
const fr_string *fr_text_end(fr_render *render, size_t begin);

/* Takes the last text back. */
void fr_text_drop(fr_render *render, size_t begin);

void fr_put(fr_render *render, const char *bytes, size_t length, bool foreign);
void fr_put_text(fr_render *render, const char *text, bool foreign);
void fr_put_string(fr_render *render, const fr_string *string);
void fr_put_part(fr_render *render, const fr_string *string, size_t begin, size_t end);
void fr_put_times(fr_render *render, const fr_string *string, int64_t times);
void fr_put_character(fr_render *render, int32_t codepoint, bool foreign);

/* ----------------------------------------------------------------------------------------- strings, lists and dicts */

const fr_string *fr_string_new(fr_render *render, const char *bytes, size_t length, bool foreign);

/* Bytes begin to end - 1, which are not copied. */
const fr_string *fr_string_part(fr_render *render, const fr_string *string, size_t begin, size_t end);

/* The same bytes, as text that joins others without being escaped, or not. */
const fr_string *fr_string_as_markup(fr_render *render, const fr_string *string, bool markup);

/* Never NULL: after a failure it takes nothing. */
fr_list *fr_list_new(fr_render *render, size_t capacity);
void fr_list_append(fr_render *render, fr_list *list, fr_value value);
fr_value fr_tuple_of_two(fr_render *render, fr_value first, fr_value second, bool foreign);

/* Never NULL. Setting replaces the value of an equal key; the key must be hashable, or the render fails. */
fr_dict *fr_dict_new(fr_render *render, size_t capacity);
void fr_dict_set(fr_render *render, fr_dict *dict, fr_value key, fr_value value);

/* NULL: there is none. */
const fr_entry *fr_dict_find(fr_render *render, const fr_dict *dict, fr_value key);
const fr_entry *fr_dict_find_string(fr_render *render, const fr_dict *dict, const fr_string *key);

/* -------------------------------------------------------------------------------------------------------- any value */

bool fr_truth(fr_render *render, fr_value value);
bool fr_equal(fr_render *render, fr_value a, fr_value b);

/* Below, at or above 0; a failure where the two have no order. */
int fr_compare(fr_render *render, fr_value a, fr_value b);

/* Whether a comparison holds; `in` too. */
bool fr_holds(fr_render *render, fr_operator operator, fr_value a, fr_value b);

/* A list in order, stable: of items, or by keys of the same number (NULL: the items themselves). */
void fr_sort(fr_render *render, fr_value *items, fr_value *keys, size_t count, bool descending);

/* The entries of a dict by their keys. */
const fr_entry *fr_sorted_entries(fr_render *render, const fr_dict *dict);

/* value in container */
bool fr_contains(fr_render *render, fr_value container, fr_value value);

/* len(); a failure for what has none. */
size_t fr_length(fr_render *render, fr_value value);
bool fr_has_length(fr_value value);
bool fr_is_iterable(fr_value value);

/* str(), repr() */
const fr_string *fr_str(fr_render *render, fr_value value);
void fr_put_str(fr_render *render, fr_value value);
void fr_put_repr(fr_render *render, fr_value value);

/* str(), but markup stays markup. */
const fr_string *fr_soft_str(fr_render *render, fr_value value);

/* environment.getattr, environment.getitem: object.name, object[index] */
fr_value fr_get_attribute(fr_render *render, fr_value object, const fr_string *name);
fr_value fr_get_item(fr_render *render, fr_value object, fr_value index);

/* object[start:stop:step]; MISSING or none where there is none. */
fr_value fr_get_slice(fr_render *render, fr_value object, fr_value start, fr_value stop, fr_value step);

fr_value fr_arithmetic(fr_render *render, fr_operator operator, fr_value a, fr_value b);
fr_value fr_negative(fr_render *render, fr_value value);

/* What a loop over a value gives, one after the other. */
typedef struct fr_cursor {
    fr_value over;
    size_t at; /* items, entries or bytes so far */
} fr_cursor;

/* A failure for what can't be looped over. */
fr_cursor fr_cursor_new(fr_render *render, fr_value over);

/* false: there is nothing further, or the render failed. */
bool fr_cursor_next(fr_render *render, fr_cursor *cursor, fr_value *value);

/* Python's generators: each item is made when it is asked for, and once. */
typedef struct fr_iterator {
    bool (*next)(fr_render *render, struct fr_iterator *iterator, fr_value *value);
    fr_cursor source;
    const void *state; /* next's own */
    size_t count;
} fr_iterator;

fr_value fr_iterator_new(fr_render *render, bool next(fr_render *, fr_iterator *, fr_value *), fr_value source,
                         const void *state);

/* All items, of what can be looped over. */
fr_list *fr_list_of(fr_render *render, fr_value value);

/* ---------------------------------------------------------------------------------------------------------- calling */

typedef struct fr_arguments {
    const fr_value *positional;
    size_t count;
    const fr_entry *keywords; /* keys are strings */
    size_t keyword_count;
} fr_arguments;

typedef struct fr_macro {
    const fr_routine *routine;
    fr_frame *outer;
} fr_macro;

/* A row of a table. subject: the first argument, or MISSING. */
fr_value fr_call_function(fr_render *render, const fr_function *function, fr_value subject,
                          const fr_arguments *arguments);

/* Any value. */
fr_value fr_call(fr_render *render, fr_value callee, const fr_arguments *arguments);

/* ---------------------------------------------------------------------------------------------- the template's tree */

fr_value fr_evaluate(fr_render *render, fr_frame *frame, const fr_node *node);

/* A call with one more argument by name, caller. */
fr_value fr_evaluate_call_with(fr_render *render, fr_frame *frame, const fr_node *node, fr_value caller);

/* A chain of filters, whose first is applied to a block's text. */
fr_value fr_evaluate_filters(fr_render *render, fr_frame *frame, const fr_node *node, fr_value text);

typedef enum fr_flow { FR_FLOW_ON, FR_FLOW_BREAK, FR_FLOW_CONTINUE } fr_flow;
fr_flow fr_run(fr_render *render, fr_frame *frame, const fr_nodes *body);

fr_frame *fr_frame_new(fr_render *render, const fr_routine *routine, fr_frame *outer);
void fr_enter_scope(fr_render *render, fr_frame *frame, const fr_scope *scope);

/* The variable of the context: given, own, or a function of the environment. */
fr_value fr_resolve(fr_render *render, const fr_string *name);

/* Runs the body of a macro, given its arguments. */
fr_value fr_call_macro(fr_render *render, const fr_macro *macro, const fr_arguments *arguments);

/* A loop that is running: the value `loop`. */
typedef struct fr_loop {
    const fr_for_node *node;
    fr_frame *frame; /* of its variables */
    fr_frame *outer; /* of what surrounds it */
    fr_value sequence;
    fr_cursor cursor;
    const fr_list *rest; /* once its length was asked of what has none: what comes then */
    size_t rest_at;
    size_t index, length, depth;
    bool length_known, ahead_known, ahead_any;
    fr_value before, current, ahead, changed;
} fr_loop;

fr_value fr_loop_attribute(fr_render *render, fr_loop *loop, const fr_string *name);
const fr_string *fr_run_recursive(fr_render *render, const fr_for_node *node, fr_frame *outer, fr_value sequence,
                                  size_t depth);

#endif
