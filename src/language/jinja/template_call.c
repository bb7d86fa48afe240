/* Calls functions and macros. To do so, it binds arguments to the parameters of a table's row or of a macro. */
#include "src/language/jinja/template_render.h"

/* ----------------------------------------------------------------------------------------------------------- tables */

const fr_jinja_function *fr_jinja_function_find(const fr_jinja_function_table *table, const fr_jinja_string *name) {
    size_t low = 0, high = table->count;
    while (low < high) {
        size_t middle = (low + high) / 2, length = strlen(table->rows[middle].name);
        size_t shorter = length < name->length ? length : name->length;
        int order = memcmp(table->rows[middle].name, name->bytes, shorter);
        if (order == 0) order = length < name->length ? -1 : length > name->length;
        if (order == 0) return &table->rows[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static size_t parameter_count(const fr_jinja_function *function) {
    size_t count = 0;
    while (count < FR_PARAMETERS_MAX && function->parameters[count]) count++;
    return count;
}

/* Gives the index of the parameter with this name, or `count` if there is none. */
static size_t find_parameter(const fr_jinja_function *function, size_t count, const fr_jinja_string *name) {
    for (size_t i = 0; i < count; i++)
        if (fr_jinja_string_is(name, function->parameters[i])) return i;
    return count;
}

static void bind_positional(fr_jinja_render *render, const fr_jinja_function *function,
                            const fr_jinja_arguments *arguments, size_t first, size_t count, fr_jinja_value *bound) {
    size_t room = count - first;
    for (size_t i = 0; i < arguments->count && i < room; i++) bound[first + i] = arguments->positional[i];
    if (arguments->count > room && !function->takes_rest)
        fr_jinja_render_fail(render, "%s: more than %zu arguments", function->name, room);
}

static void bind_keywords(fr_jinja_render *render, const fr_jinja_function *function,
                          const fr_jinja_arguments *arguments, size_t count, fr_jinja_value *bound) {
    for (size_t i = 0; i < arguments->keyword_count; i++) {
        const fr_jinja_string *name = arguments->keywords[i].key.string;
        size_t parameter = find_parameter(function, count, name);
        int length = name->length < 100 ? (int)name->length : 100;
        if (parameter < count && fr_jinja_is_given(bound[parameter]))
            fr_jinja_render_fail(render, "%s: argument '%.*s' twice", function->name, length, name->bytes);
        else if (parameter < count)
            bound[parameter] = arguments->keywords[i].value;
        else if (!function->takes_rest)
            fr_jinja_render_fail(render, "%s: no argument '%.*s'", function->name, length, name->bytes);
    }
}

/* Collects the arguments for which the function has no parameter, in a tuple (by position) and a dict (by name). */
static void bind_rest(fr_jinja_render *render, const fr_jinja_function *function, const fr_jinja_arguments *arguments,
                      size_t first, size_t count, fr_jinja_value *bound) {
    fr_jinja_list *rest = fr_jinja_list_new(render, 0);
    fr_jinja_dict *keywords = fr_jinja_dict_new(render, arguments->keyword_count);
    for (size_t i = count - first; i < arguments->count; i++)
        fr_jinja_list_append(render, rest, arguments->positional[i]);
    for (size_t i = 0; i < arguments->keyword_count; i++) {
        const fr_jinja_entry *keyword = &arguments->keywords[i];
        if (find_parameter(function, count, keyword->key.string) == count)
            fr_jinja_dict_set(render, keywords, keyword->key, keyword->value);
    }
    bound[count] = fr_jinja_of_tuple(rest, false);
    bound[count + 1] = fr_jinja_of_dict(keywords, false);
}

fr_jinja_value fr_jinja_call_function(fr_jinja_render *render, const fr_jinja_function *function,
                                      fr_jinja_value subject, const fr_jinja_arguments *arguments) {
    fr_jinja_value bound[FR_PARAMETERS_MAX + 2] = {{0}};
    size_t count = parameter_count(function), first = fr_jinja_is_given(subject);
    if (!fr_jinja_render_step(render, 0)) return fr_jinja_none();
    bound[0] = subject;
    bind_positional(render, function, arguments, first, count, bound);
    bind_keywords(render, function, arguments, count, bound);
    if (function->takes_rest) bind_rest(render, function, arguments, first, count, bound);
    for (size_t i = 0; i < function->required; i++)
        if (!fr_jinja_is_given(bound[i]))
            fr_jinja_render_fail(render, "%s: argument '%s' is missing", function->name, function->parameters[i]);
    return fr_jinja_render_failed(render) ? fr_jinja_none() : function->body(render, bound);
}

/* ----------------------------------------------------------------------------------------------------------- macros */

/* Gives the value of a keyword argument; MISSING: no argument has that name. */
static fr_jinja_value take_keyword(fr_jinja_render *render, const fr_jinja_arguments *arguments,
                                   const fr_jinja_string *name) {
    fr_jinja_value value = fr_jinja_missing();
    for (size_t i = 0; i < arguments->keyword_count && fr_jinja_render_step(render, 0); i++)
        if (fr_jinja_string_equal(arguments->keywords[i].key.string, name)) value = arguments->keywords[i].value;
    return value;
}

static bool names_parameter(const fr_jinja_routine *routine, const fr_jinja_string *name, size_t from) {
    for (size_t i = from; i < routine->parameter_count; i++)
        if (fr_jinja_string_equal(&routine->parameters[i]->variable.name->string, name)) return true;
    return routine->takes_caller && fr_jinja_string_is(name, "caller");
}

/* Sets each parameter without an argument to its default. The defaults are evaluated one after the other in the
 * macro's own frame, so a default may use earlier parameters. */
static void set_defaults(fr_jinja_render *render, const fr_jinja_routine *routine, fr_jinja_frame *frame) {
    size_t without = routine->parameter_count - routine->defaults.count;
    for (size_t i = 0; i < routine->parameter_count && !fr_jinja_render_failed(render); i++) {
        const fr_jinja_node *parameter = routine->parameters[i];
        fr_jinja_value *slot = &frame->slots[parameter->variable.place.slot];
        if (fr_jinja_is_given(*slot)) continue;
        if (i < without)
            *slot = fr_jinja_undefined(FR_REASON_PARAMETER, &parameter->variable.name->string);
        else
            *slot = fr_jinja_evaluate(render, frame, routine->defaults.items[i - without]);
    }
}

static void set_rest(fr_jinja_render *render, const fr_jinja_routine *routine, const fr_jinja_arguments *arguments,
                     fr_jinja_frame *frame) {
    size_t count = routine->parameter_count;
    if (routine->takes_rest) {
        fr_jinja_list *rest = fr_jinja_list_new(render, 0);
        for (size_t i = count; i < arguments->count; i++) fr_jinja_list_append(render, rest, arguments->positional[i]);
        frame->slots[routine->rest_slot] = fr_jinja_of_tuple(rest, false);
    } else if (arguments->count > count) {
        fr_jinja_render_fail(render, "macro '%.*s' takes not more than %zu arguments", (int)routine->name->length,
                             routine->name->bytes, count);
    }
}

static void set_keywords(fr_jinja_render *render, const fr_jinja_routine *routine, const fr_jinja_arguments *arguments,
                         fr_jinja_frame *frame) {
    fr_jinja_dict *left = fr_jinja_dict_new(render, 0);
    for (size_t i = 0; i < arguments->keyword_count && fr_jinja_render_step(render, 0); i++) {
        const fr_jinja_entry *keyword = &arguments->keywords[i];
        const fr_jinja_string *name = keyword->key.string;
        if (names_parameter(routine, name, arguments->count)) continue;
        if (!routine->takes_keywords)
            fr_jinja_render_fail(render, "macro '%.*s' takes no keyword argument '%.*s'", (int)routine->name->length,
                                 routine->name->bytes, name->length < 100 ? (int)name->length : 100, name->bytes);
        fr_jinja_dict_set(render, left, keyword->key, keyword->value);
    }
    if (routine->takes_keywords) frame->slots[routine->keywords_slot] = fr_jinja_of_dict(left, false);
}

static void set_parameters(fr_jinja_render *render, const fr_jinja_routine *routine,
                           const fr_jinja_arguments *arguments, fr_jinja_frame *frame) {
    static const fr_jinja_string caller = {.bytes = "caller", .length = 6, .ascii = true};
    for (size_t i = 0; i < routine->parameter_count; i++) {
        const fr_jinja_node *parameter = routine->parameters[i];
        fr_jinja_value *slot = &frame->slots[parameter->variable.place.slot];
        if (i < arguments->count)
            *slot = arguments->positional[i];
        else
            *slot = take_keyword(render, arguments, &parameter->variable.name->string);
    }
    if (routine->takes_caller) {
        fr_jinja_value given = take_keyword(render, arguments, &caller);
        frame->slots[routine->caller_slot] =
            fr_jinja_is_given(given) ? given : fr_jinja_undefined(FR_REASON_CALLER, &caller);
    }
    set_rest(render, routine, arguments, frame);
    set_keywords(render, routine, arguments, frame);
    set_defaults(render, routine, frame);
}

fr_jinja_value fr_jinja_call_macro(fr_jinja_render *render, const fr_jinja_macro *macro,
                                   const fr_jinja_arguments *arguments) {
    const fr_jinja_routine *routine = macro->routine;
    fr_jinja_frame *frame = fr_jinja_frame_new(render, routine, macro->outer);
    if (!frame || !fr_jinja_render_enter(render)) return fr_jinja_none();
    fr_jinja_enter_scope(render, frame, &routine->scope);
    set_parameters(render, routine, arguments, frame);
    size_t begin = fr_jinja_text_begin(render);
    fr_jinja_run(render, frame, &routine->body);
    fr_jinja_render_leave(render);
    return fr_jinja_of_string(fr_jinja_text_end(render, begin));
}

/* ----------------------------------------------------------------------------------------------- calls of any value */

static fr_jinja_value call_loop(fr_jinja_render *render, const fr_jinja_loop *loop,
                                const fr_jinja_arguments *arguments) {
    if (!loop->node->recursive) return fr_jinja_render_fail(render, "a loop that is called must be marked recursive");
    if (arguments->count != 1 || arguments->keyword_count > 0)
        return fr_jinja_render_fail(render, "loop() takes one argument");
    const fr_jinja_value sequence = arguments->positional[0];
    return fr_jinja_of_string(fr_jinja_run_recursive(render, loop->node, loop->outer, sequence, loop->depth + 1));
}

static fr_jinja_value call_joiner(fr_jinja_render *render, fr_jinja_joiner *joiner,
                                  const fr_jinja_arguments *arguments) {
    if (arguments->count > 0 || arguments->keyword_count > 0)
        return fr_jinja_render_fail(render, "a joiner takes no arguments");
    bool used = joiner->used;
    joiner->used = true;
    return used ? joiner->separator : fr_jinja_of_string(fr_jinja_string_new(render, "", 0, false));
}

fr_jinja_value fr_jinja_call(fr_jinja_render *render, fr_jinja_value callee, const fr_jinja_arguments *arguments) {
    switch (callee.kind) {
    case FR_KIND_MACRO: return fr_jinja_call_macro(render, callee.macro, arguments);
    case FR_KIND_METHOD:
        return fr_jinja_call_function(render, callee.method->function, callee.method->object, arguments);
    case FR_KIND_FUNCTION: return fr_jinja_call_function(render, callee.function, fr_jinja_missing(), arguments);
    case FR_KIND_LOOP: return call_loop(render, callee.loop, arguments);
    case FR_KIND_JOINER: return call_joiner(render, callee.joiner, arguments);
    case FR_KIND_UNDEFINED: return fr_jinja_render_fail_undefined(render, callee);
    default: return fr_jinja_render_fail(render, "'%s' object is not callable", fr_jinja_kind_name(callee.kind));
    }
}
