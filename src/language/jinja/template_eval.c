/* Evaluates expressions: a node and a frame give a value. */
#include "src/language/jinja/template_render.h"

/* ------------------------------------------------------------------------------------------------------------ names */

static const fr_jinja_value *slot_of(fr_jinja_frame *frame, fr_jinja_place place) {
    for (uint32_t hops = place.hops; hops > 0; hops--) frame = frame->outer;
    return &frame->slots[place.slot];
}

static fr_jinja_value evaluate_name(fr_jinja_frame *frame, const fr_jinja_node *node) {
    fr_jinja_value value = *slot_of(frame, node->variable.place);
    return fr_jinja_is_given(value) ? value : fr_jinja_undefined(FR_REASON_NAME, &node->variable.name->string);
}

/* Finds a variable of the context. Variables in `given` take precedence over those in `own`, and those in `own` over
 * functions of the environment. */
fr_jinja_value fr_jinja_resolve(fr_jinja_render *render, const fr_jinja_string *name) {
    const fr_jinja_entry *entry = fr_jinja_dict_find_string(render, render->given.dict, name);
    if (!entry) entry = fr_jinja_dict_find_string(render, render->own.dict, name);
    if (entry) return entry->value;
    const fr_jinja_function *function = fr_jinja_function_find(&fr_template_functions, name);
    return function ? (fr_jinja_value){.kind = FR_KIND_FUNCTION, .function = function} : fr_jinja_missing();
}

/* ------------------------------------------------------------------------------------------------------- containers */

static fr_jinja_value evaluate_list(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node) {
    fr_jinja_list *list = fr_jinja_list_new(render, node->items.count);
    for (size_t i = 0; i < node->items.count; i++)
        fr_jinja_list_append(render, list, fr_jinja_evaluate(render, frame, node->items.items[i]));
    return node->kind == FR_NODE_LIST ? fr_jinja_of_list(list, false) : fr_jinja_of_tuple(list, false);
}

static fr_jinja_value evaluate_dict(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node) {
    fr_jinja_dict *dict = fr_jinja_dict_new(render, node->items.count / 2);
    for (size_t i = 0; i + 1 < node->items.count; i += 2) {
        fr_jinja_value key = fr_jinja_evaluate(render, frame, node->items.items[i]);
        fr_jinja_dict_set(render, dict, key, fr_jinja_evaluate(render, frame, node->items.items[i + 1]));
    }
    return fr_jinja_of_dict(dict, false);
}

/* -------------------------------------------------------------------------------------------------------- operators */

static fr_jinja_value evaluate_binary(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node) {
    fr_jinja_value left = fr_jinja_evaluate(render, frame, node->pair.left);
    fr_jinja_value right = fr_jinja_evaluate(render, frame, node->pair.right);
    render->line = node->line;
    return fr_jinja_render_failed(render) ? fr_jinja_none() : fr_jinja_arithmetic(render, node->operator, left, right);
}

static fr_jinja_value evaluate_concat(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node) {
    size_t begin = fr_jinja_text_begin(render);
    for (size_t i = 0; i < node->items.count; i++)
        fr_jinja_put_str(render, fr_jinja_evaluate(render, frame, node->items.items[i]));
    return fr_jinja_of_string(fr_jinja_text_end(render, begin));
}

bool fr_jinja_holds(fr_jinja_render *render, fr_jinja_operator operator, fr_jinja_value a, fr_jinja_value b) {
    switch (operator) {
    case FR_OPERATOR_EQUAL: return fr_jinja_equal(render, a, b);
    case FR_OPERATOR_UNEQUAL: return !fr_jinja_equal(render, a, b);
    case FR_OPERATOR_IN: return fr_jinja_contains(render, b, a);
    case FR_OPERATOR_NOT_IN: return !fr_jinja_contains(render, b, a);
    case FR_OPERATOR_LESS: return fr_jinja_compare(render, a, b) == -1;
    case FR_OPERATOR_GREATER: return fr_jinja_compare(render, a, b) == 1;
    default: break;
    }
    int order = fr_jinja_compare(render, a, b);
    return order == 0 || order == (operator== FR_OPERATOR_LESS_EQUAL ? -1 : 1);
}

/* Evaluates a chain such as a < b < c pair by pair, until a comparison is false. */
static fr_jinja_value evaluate_compare(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node) {
    fr_jinja_value left = fr_jinja_evaluate(render, frame, node->compare.first);
    bool all = true;
    for (size_t i = 0; i < node->compare.others.count && all && !fr_jinja_render_failed(render); i++) {
        fr_jinja_value right = fr_jinja_evaluate(render, frame, node->compare.others.items[i]);
        render->line = node->line;
        all = !fr_jinja_render_failed(render) && fr_jinja_holds(render, node->compare.operators[i], left, right);
        left = right;
    }
    return fr_jinja_of_truth(all);
}

static fr_jinja_value evaluate_condition(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node) {
    if (fr_jinja_truth(render, fr_jinja_evaluate(render, frame, node->condition.test)))
        return fr_jinja_evaluate(render, frame, node->condition.yes);
    if (node->condition.no) return fr_jinja_evaluate(render, frame, node->condition.no);
    return (fr_jinja_value){.kind = FR_KIND_UNDEFINED, .reason = FR_REASON_CONDITION, .integer = node->line};
}

/* Evaluates `and` and `or`. The result is the value of the operand that decides, as in Python. */
static fr_jinja_value evaluate_either(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node) {
    fr_jinja_value left = fr_jinja_evaluate(render, frame, node->pair.left);
    bool decided = fr_jinja_truth(render, left) == (node->kind == FR_NODE_OR);
    return decided ? left : fr_jinja_evaluate(render, frame, node->pair.right);
}

static fr_jinja_value evaluate_sign(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node) {
    fr_jinja_value value = fr_jinja_evaluate(render, frame, node->operand);
    render->line = node->line;
    if (node->kind == FR_NODE_NEGATIVE || !fr_is_number(value)) return fr_jinja_negative(render, value);
    return value.kind == FR_KIND_BOOL ? fr_jinja_of_int(value.truth, value.foreign) : value;
}

/* ----------------------------------------------------------------------------------------------------------- access */

static fr_jinja_value evaluate_attribute(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node) {
    fr_jinja_value object = fr_jinja_evaluate(render, frame, node->attribute.object);
    render->line = node->line;
    return fr_jinja_render_failed(render) ? fr_jinja_none()
                                          : fr_jinja_get_attribute(render, object, node->attribute.name);
}

static fr_jinja_value evaluate_optional(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node) {
    return node ? fr_jinja_evaluate(render, frame, node) : fr_jinja_missing();
}

static fr_jinja_value evaluate_item(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node) {
    const fr_jinja_node *index = node->item.index;
    fr_jinja_value object = fr_jinja_evaluate(render, frame, node->item.object);
    if (index->kind != FR_NODE_SLICE) {
        fr_jinja_value at = fr_jinja_evaluate(render, frame, index);
        render->line = node->line;
        return fr_jinja_render_failed(render) ? fr_jinja_none() : fr_jinja_get_item(render, object, at);
    }
    fr_jinja_value start = evaluate_optional(render, frame, index->slice.start);
    fr_jinja_value stop = evaluate_optional(render, frame, index->slice.stop);
    fr_jinja_value step = evaluate_optional(render, frame, index->slice.step);
    render->line = node->line;
    return fr_jinja_render_failed(render) ? fr_jinja_none() : fr_jinja_get_slice(render, object, start, stop, step);
}

/* ------------------------------------------------------------------------------------------------------------ calls */

static void add_keyword(fr_jinja_render *render, fr_jinja_dict *keywords, const fr_jinja_string *name,
                        fr_jinja_value value) {
    if (fr_jinja_dict_find_string(render, keywords, name))
        fr_jinja_render_fail(render, "keyword argument '%.*s' twice", name->length < 100 ? (int)name->length : 100,
                             name->bytes);
    fr_jinja_dict_set(render, keywords, fr_jinja_of_string(name), value);
}

static void add_keywords_of(fr_jinja_render *render, fr_jinja_dict *keywords, fr_jinja_value mapping) {
    if (mapping.kind != FR_KIND_DICT) {
        fr_jinja_render_fail(render, "a '%s' after ** is not a mapping", fr_jinja_kind_name(mapping.kind));
        return;
    }
    for (size_t i = 0; i < mapping.dict->count && fr_jinja_render_step(render, 0); i++) {
        const fr_jinja_entry *entry = &mapping.dict->entries[i];
        if (entry->key.kind != FR_KIND_STRING) fr_jinja_render_fail(render, "a keyword after ** is not a string");
        if (!fr_jinja_render_failed(render)) add_keyword(render, keywords, entry->key.string, entry->value);
    }
}

static fr_jinja_arguments evaluate_arguments(fr_jinja_render *render, fr_jinja_frame *frame,
                                             const fr_jinja_call_nodes *nodes) {
    fr_jinja_arguments arguments = {0};
    if (!nodes) return arguments;
    fr_jinja_list *positional = fr_jinja_list_new(render, nodes->positional.count);
    for (size_t i = 0; i < nodes->positional.count; i++)
        fr_jinja_list_append(render, positional, fr_jinja_evaluate(render, frame, nodes->positional.items[i]));
    if (nodes->star) {
        fr_jinja_cursor cursor = fr_jinja_cursor_new(render, fr_jinja_evaluate(render, frame, nodes->star));
        for (fr_jinja_value item; fr_jinja_cursor_next(render, &cursor, &item);)
            fr_jinja_list_append(render, positional, item);
    }
    if (nodes->keywords.count > 0 || nodes->star_star) {
        fr_jinja_dict *keywords = fr_jinja_dict_new(render, nodes->keywords.count);
        for (size_t i = 0; i < nodes->keywords.count; i++)
            add_keyword(render, keywords, nodes->names[i], fr_jinja_evaluate(render, frame, nodes->keywords.items[i]));
        if (nodes->star_star) add_keywords_of(render, keywords, fr_jinja_evaluate(render, frame, nodes->star_star));
        arguments.keywords = keywords->entries;
        arguments.keyword_count = keywords->count;
    }
    arguments.positional = positional->items;
    arguments.count = positional->count;
    return arguments;
}

/* Evaluates a call. If it is object.method(...), the method is called directly and does not become a value. */
static fr_jinja_value evaluate_call(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node) {
    const fr_jinja_node *callee = node->call.callee;
    const fr_jinja_function *method = NULL;
    fr_jinja_value object = fr_jinja_none();
    if (callee->kind == FR_NODE_ATTRIBUTE) {
        object = fr_jinja_evaluate(render, frame, callee->attribute.object);
        method = fr_jinja_function_find(fr_template_methods(object.kind), callee->attribute.name);
        if (!method || !method->body) object = fr_jinja_get_attribute(render, object, callee->attribute.name);
        if (method && !method->body) method = NULL;
    } else {
        object = fr_jinja_evaluate(render, frame, callee);
    }
    fr_jinja_arguments arguments = evaluate_arguments(render, frame, node->call.arguments);
    render->line = node->line;
    if (fr_jinja_render_failed(render)) return fr_jinja_none();
    return method ? fr_jinja_call_function(render, method, object, &arguments)
                  : fr_jinja_call(render, object, &arguments);
}

fr_jinja_value fr_jinja_evaluate_call_with(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node,
                                           fr_jinja_value caller) {
    static const fr_jinja_string name = {.bytes = "caller", .length = 6, .ascii = true};
    fr_jinja_value callee = fr_jinja_evaluate(render, frame, node->call.callee);
    fr_jinja_arguments arguments = evaluate_arguments(render, frame, node->call.arguments);
    fr_jinja_dict *keywords = fr_jinja_dict_new(render, arguments.keyword_count + 1);
    for (size_t i = 0; i < arguments.keyword_count; i++)
        fr_jinja_dict_set(render, keywords, arguments.keywords[i].key, arguments.keywords[i].value);
    add_keyword(render, keywords, &name, caller);
    arguments.keywords = keywords->entries;
    arguments.keyword_count = keywords->count;
    render->line = node->line;
    return fr_jinja_render_failed(render) ? fr_jinja_none() : fr_jinja_call(render, callee, &arguments);
}

/* Applies a filter or test to its subject, which is the value before the | or the `is`. */
static fr_jinja_value apply(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node,
                            fr_jinja_value subject) {
    const fr_jinja_function *function = node->filter.function;
    const fr_jinja_string *name = node->filter.name;
    fr_jinja_arguments arguments = evaluate_arguments(render, frame, node->filter.arguments);
    render->line = node->line;
    if (!function)
        return fr_jinja_render_fail(render, "no %s named '%.*s'", node->kind == FR_NODE_FILTER ? "filter" : "test",
                                    name->length < 100 ? (int)name->length : 100, name->bytes);
    return fr_jinja_render_failed(render) ? fr_jinja_none()
                                          : fr_jinja_call_function(render, function, subject, &arguments);
}

fr_jinja_value fr_jinja_evaluate_filters(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node,
                                         fr_jinja_value text) {
    if (!fr_jinja_render_enter(render)) return fr_jinja_none();
    fr_jinja_value subject = text;
    if (node->filter.subject) subject = fr_jinja_evaluate_filters(render, frame, node->filter.subject, text);
    subject = apply(render, frame, node, subject);
    fr_jinja_render_leave(render);
    return subject;
}

/* ---------------------------------------------------------------------------------------------------- an expression */

static fr_jinja_value evaluate(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node) {
    switch (node->kind) {
    case FR_NODE_TUPLE:
    case FR_NODE_LIST: return evaluate_list(render, frame, node);
    case FR_NODE_DICT: return evaluate_dict(render, frame, node);
    case FR_NODE_AND:
    case FR_NODE_OR: return evaluate_either(render, frame, node);
    case FR_NODE_NOT:
        return fr_jinja_of_truth(!fr_jinja_truth(render, fr_jinja_evaluate(render, frame, node->operand)));
    case FR_NODE_NEGATIVE:
    case FR_NODE_POSITIVE: return evaluate_sign(render, frame, node);
    case FR_NODE_BINARY: return evaluate_binary(render, frame, node);
    case FR_NODE_CONCAT: return evaluate_concat(render, frame, node);
    case FR_NODE_COMPARE: return evaluate_compare(render, frame, node);
    case FR_NODE_CONDITION: return evaluate_condition(render, frame, node);
    case FR_NODE_ATTRIBUTE: return evaluate_attribute(render, frame, node);
    case FR_NODE_ITEM: return evaluate_item(render, frame, node);
    case FR_NODE_CALL: return evaluate_call(render, frame, node);
    case FR_NODE_FILTER:
    case FR_NODE_TEST: return apply(render, frame, node, fr_jinja_evaluate(render, frame, node->filter.subject));
    default: return fr_jinja_render_fail(render, "no expression");
    }
}

fr_jinja_value fr_jinja_evaluate(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node) {
    if (!fr_jinja_render_step(render, 0)) return fr_jinja_none();
    if (node->kind == FR_NODE_CONSTANT) return node->constant;
    if (node->kind == FR_NODE_NAME) return evaluate_name(frame, node);
    if (!fr_jinja_render_enter(render)) return fr_jinja_none();
    render->line = node->line;
    fr_jinja_value value = evaluate(render, frame, node);
    fr_jinja_render_leave(render);
    return value;
}
