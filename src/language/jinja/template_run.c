/* Runs statements, which write text and set variables. */
#include "src/language/jinja/template_render.h"

/* ----------------------------------------------------------------------------------------------------------- frames */

fr_jinja_frame *fr_jinja_frame_new(fr_jinja_render *render, const fr_jinja_routine *routine, fr_jinja_frame *outer) {
    fr_jinja_frame *frame = fr_jinja_render_take(render, 1, sizeof *frame + routine->slots * sizeof *frame->slots);
    if (frame) frame->outer = outer;
    return frame;
}

static fr_jinja_value *slot_of(fr_jinja_frame *frame, fr_jinja_place place) {
    for (uint32_t hops = place.hops; hops > 0; hops--) frame = frame->outer;
    return &frame->slots[place.slot];
}

void fr_jinja_enter_scope(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_scope *scope) {
    for (size_t i = 0; i < scope->count; i++) {
        const fr_jinja_load *load = &scope->loads[i];
        fr_jinja_value value = fr_jinja_missing();
        if (load->from == FR_LOAD_CONTEXT) value = fr_jinja_resolve(render, load->name);
        if (load->from == FR_LOAD_OUTER) value = *slot_of(frame, load->outer);
        frame->slots[load->slot] = value;
    }
}

/* ------------------------------------------------------------------------------------------------------- assignment */

static void assign(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *target, fr_jinja_value value);

static void assign_tuple(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *target,
                         fr_jinja_value value) {
    size_t count = target->items.count, i = 0;
    fr_jinja_cursor cursor = fr_jinja_cursor_new(render, value);
    for (fr_jinja_value item; fr_jinja_cursor_next(render, &cursor, &item); i++) {
        if (i == count)
            fr_jinja_render_fail(render, "too many values to unpack, %zu are expected", count);
        else
            assign(render, frame, target->items.items[i], item);
    }
    if (i < count) fr_jinja_render_fail(render, "%zu values to unpack, %zu are expected", i, count);
}

static void assign(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *target, fr_jinja_value value) {
    if (fr_jinja_render_failed(render)) return;
    if (target->kind == FR_NODE_TUPLE) {
        assign_tuple(render, frame, target, value);
    } else if (target->kind == FR_NODE_NAME) {
        *slot_of(frame, target->variable.place) = value;
    } else {
        fr_jinja_value object = *slot_of(frame, target->member.place);
        if (object.kind == FR_KIND_NAMESPACE)
            fr_jinja_dict_set(render, object.dict, fr_jinja_of_string(target->member.attribute), value);
        else
            fr_jinja_render_fail(render, "only a namespace() has attributes that can be set");
    }
}

/* ------------------------------------------------------------------------------------------------------------ loops */

/* Gives the next item of the sequence. Does not check the loop's `if`. */
static bool next_item(fr_jinja_render *render, fr_jinja_loop *loop, fr_jinja_value *item) {
    if (!loop->rest) return fr_jinja_cursor_next(render, &loop->cursor, item);
    if (loop->rest_at >= loop->rest->count || !fr_jinja_render_step(render, 0)) return false;
    *item = loop->rest->items[loop->rest_at++];
    return true;
}

/* Gives the next item of the sequence for which the loop's `if` holds. */
static bool next_passing(fr_jinja_render *render, fr_jinja_loop *loop, fr_jinja_value *item) {
    const fr_jinja_for_node *node = loop->node;
    while (next_item(render, loop, item)) {
        if (!node->test || loop->rest) return true;
        assign(render, loop->frame, node->test_target, *item);
        if (fr_jinja_truth(render, fr_jinja_evaluate(render, loop->frame, node->test)))
            return !fr_jinja_render_failed(render);
    }
    return false;
}

static bool look_ahead(fr_jinja_render *render, fr_jinja_loop *loop) {
    if (!loop->ahead_known) loop->ahead_any = next_passing(render, loop, &loop->ahead);
    loop->ahead_known = true;
    return loop->ahead_any;
}

static bool advance(fr_jinja_render *render, fr_jinja_loop *loop) {
    fr_jinja_value item = loop->ahead;
    bool any = loop->ahead_known ? loop->ahead_any : next_passing(render, loop, &item);
    loop->ahead_known = false;
    loop->before = loop->current;
    loop->current = item;
    return any && !fr_jinja_render_failed(render);
}

/* Gives the length of a loop. If the sequence has no length, first collects its remaining items. */
static size_t loop_length(fr_jinja_render *render, fr_jinja_loop *loop) {
    if (loop->length_known) return loop->length;
    loop->length_known = true;
    if (!loop->node->test && fr_jinja_has_length(loop->sequence)) {
        loop->length = fr_jinja_length(render, loop->sequence);
    } else {
        fr_jinja_list *rest = fr_jinja_list_new(render, 0);
        for (fr_jinja_value item; next_passing(render, loop, &item);) fr_jinja_list_append(render, rest, item);
        loop->rest = rest;
        loop->length = rest->count + loop->index + 1 + (loop->ahead_known && loop->ahead_any);
    }
    return loop->length;
}

static fr_jinja_value neighbour(fr_jinja_render *render, fr_jinja_loop *loop, bool next) {
    bool any = next ? look_ahead(render, loop) : loop->index > 0;
    if (!any) return fr_jinja_undefined(FR_REASON_EMPTY, NULL);
    return next ? loop->ahead : loop->before;
}

typedef enum loop_fact {
    INDEX,
    INDEX0,
    REVINDEX,
    REVINDEX0,
    FIRST,
    LAST,
    LENGTH,
    DEPTH,
    DEPTH0,
    PREVIOUS,
    NEXT
} loop_fact;

static fr_jinja_value fact_of(fr_jinja_render *render, fr_jinja_loop *loop, loop_fact fact) {
    switch (fact) {
    case INDEX: return fr_jinja_of_size(loop->index + 1);
    case INDEX0: return fr_jinja_of_size(loop->index);
    case REVINDEX: return fr_jinja_of_size(loop_length(render, loop) - loop->index);
    case REVINDEX0: return fr_jinja_of_int((int64_t)loop_length(render, loop) - (int64_t)loop->index - 1, false);
    case FIRST: return fr_jinja_of_truth(loop->index == 0);
    case LAST: return fr_jinja_of_truth(!look_ahead(render, loop));
    case LENGTH: return fr_jinja_of_size(loop_length(render, loop));
    case DEPTH: return fr_jinja_of_size(loop->depth + 1);
    case DEPTH0: return fr_jinja_of_size(loop->depth);
    default: return neighbour(render, loop, fact == NEXT);
    }
}

fr_jinja_value fr_jinja_loop_attribute(fr_jinja_render *render, fr_jinja_loop *loop, const fr_jinja_string *name) {
    static const struct {
        const char *name;
        loop_fact fact;
    } facts[] = {
        {"index", INDEX},   {"index0", INDEX0},     {"revindex", REVINDEX}, {"revindex0", REVINDEX0},
        {"first", FIRST},   {"last", LAST},         {"length", LENGTH},     {"depth", DEPTH},
        {"depth0", DEPTH0}, {"previtem", PREVIOUS}, {"nextitem", NEXT},
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++)
        if (fr_jinja_string_is(name, facts[i].name)) return fact_of(render, loop, facts[i].fact);
    return fr_jinja_missing();
}

/* Runs the iterations of a loop. As in Jinja, `else` runs if no iteration was completed. An iteration that ended by
 * break or continue does not count as completed. */
static fr_jinja_flow run_turns(fr_jinja_render *render, fr_jinja_loop *loop) {
    const fr_jinja_for_node *node = loop->node;
    bool completed = false;
    fr_jinja_flow flow = FR_FLOW_ON;
    fr_jinja_enter_scope(render, loop->frame, &node->test_scope);
    for (; flow != FR_FLOW_BREAK && advance(render, loop); loop->index++) {
        assign(render, loop->frame, node->target, loop->current);
        if (node->has_loop) loop->frame->slots[node->loop_slot] = (fr_jinja_value){.kind = FR_KIND_LOOP, .loop = loop};
        fr_jinja_enter_scope(render, loop->frame, &node->scope);
        flow = fr_jinja_run(render, loop->frame, &node->body);
        completed = completed || flow == FR_FLOW_ON;
    }
    if (completed || node->otherwise.count == 0 || fr_jinja_render_failed(render)) return FR_FLOW_ON;
    fr_jinja_enter_scope(render, loop->frame, &node->otherwise_scope);
    return fr_jinja_run(render, loop->frame, &node->otherwise);
}

static fr_jinja_flow run_over(fr_jinja_render *render, const fr_jinja_for_node *node, fr_jinja_frame *frame,
                              fr_jinja_frame *outer, fr_jinja_value sequence, size_t depth) {
    fr_jinja_loop *loop = fr_jinja_render_take(render, 1, sizeof *loop);
    if (!loop) return FR_FLOW_ON;
    *loop = (fr_jinja_loop){.node = node, .frame = frame, .outer = outer, .sequence = sequence, .depth = depth};
    loop->cursor = fr_jinja_cursor_new(render, sequence);
    return run_turns(render, loop);
}

const fr_jinja_string *fr_jinja_run_recursive(fr_jinja_render *render, const fr_jinja_for_node *node,
                                              fr_jinja_frame *outer, fr_jinja_value sequence, size_t depth) {
    size_t begin = fr_jinja_text_begin(render);
    fr_jinja_frame *frame = fr_jinja_frame_new(render, node->recursive, outer);
    if (frame && fr_jinja_render_enter(render)) {
        run_over(render, node, frame, outer, sequence, depth);
        fr_jinja_render_leave(render);
    }
    return fr_jinja_text_end(render, begin);
}

static fr_jinja_flow run_for(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node) {
    const fr_jinja_for_node *loop = node->loop;
    fr_jinja_value sequence = fr_jinja_evaluate(render, frame, loop->sequence);
    render->line = node->line;
    if (!loop->recursive) return run_over(render, loop, frame, frame, sequence, 0);
    fr_jinja_put_string(render, fr_jinja_run_recursive(render, loop, frame, sequence, 0));
    return FR_FLOW_ON;
}

/* ----------------------------------------------------------------------------------------------------------- blocks */

static fr_jinja_flow run_output(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node) {
    for (size_t i = 0; i < node->items.count && !fr_jinja_render_failed(render); i++)
        fr_jinja_put_str(render, fr_jinja_evaluate(render, frame, node->items.items[i]));
    return FR_FLOW_ON;
}

static fr_jinja_flow run_if(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node) {
    for (size_t i = 0; i < node->choice.count && !fr_jinja_render_failed(render); i++) {
        const fr_jinja_if_branch *branch = &node->choice.branches[i];
        if (!branch->test || fr_jinja_truth(render, fr_jinja_evaluate(render, frame, branch->test)))
            return fr_jinja_run(render, frame, &branch->body);
    }
    return FR_FLOW_ON;
}

static fr_jinja_flow run_set(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node) {
    assign(render, frame, node->set.target, fr_jinja_evaluate(render, frame, node->set.value));
    return FR_FLOW_ON;
}

/* Runs a set or filter block. Its text becomes a value (set), or is printed (filter). A break or continue within the
 * block discards the text. */
static fr_jinja_flow run_block(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node) {
    size_t begin = fr_jinja_text_begin(render);
    fr_jinja_enter_scope(render, frame, &node->block.scope);
    fr_jinja_flow flow = fr_jinja_run(render, frame, &node->block.body);
    if (flow != FR_FLOW_ON) {
        fr_jinja_text_drop(render, begin);
        return flow;
    }
    fr_jinja_value text = fr_jinja_of_string(fr_jinja_text_end(render, begin));
    if (node->block.filter) text = fr_jinja_evaluate_filters(render, frame, node->block.filter, text);
    if (node->block.target)
        assign(render, frame, node->block.target, text);
    else
        fr_jinja_put_str(render, text);
    return FR_FLOW_ON;
}

static fr_jinja_flow run_with(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node) {
    fr_jinja_enter_scope(render, frame, &node->with.scope);
    for (size_t i = 0; i < node->with.targets.count; i++)
        assign(render, frame, node->with.targets.items[i],
               fr_jinja_evaluate(render, frame, node->with.values.items[i]));
    return fr_jinja_run(render, frame, &node->with.body);
}

static fr_jinja_value macro_of(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node) {
    fr_jinja_macro *macro = fr_jinja_render_take(render, 1, sizeof *macro);
    if (!macro) return fr_jinja_none();
    *macro = (fr_jinja_macro){node->macro.routine, frame};
    return (fr_jinja_value){.kind = FR_KIND_MACRO, .macro = macro};
}

static fr_jinja_flow run_macro(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node) {
    assign(render, frame, node->macro.target, macro_of(render, frame, node));
    return FR_FLOW_ON;
}

static fr_jinja_flow run_call(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node) {
    fr_jinja_value caller = macro_of(render, frame, node);
    const fr_jinja_arguments none = {0};
    if (node->macro.call)
        fr_jinja_put_str(render, fr_jinja_evaluate_call_with(render, frame, node->macro.call, caller));
    else if (!fr_jinja_render_failed(render))
        fr_jinja_put_str(render, fr_jinja_call_macro(render, caller.macro, &none));
    return FR_FLOW_ON;
}

/* ------------------------------------------------------------------------------------------------------ a statement */

static fr_jinja_flow run_statement(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_node *node) {
    switch (node->kind) {
    case FR_NODE_OUTPUT: return run_output(render, frame, node);
    case FR_NODE_IF: return run_if(render, frame, node);
    case FR_NODE_FOR: return run_for(render, frame, node);
    case FR_NODE_SET: return run_set(render, frame, node);
    case FR_NODE_SET_BLOCK:
    case FR_NODE_FILTER_BLOCK: return run_block(render, frame, node);
    case FR_NODE_WITH: return run_with(render, frame, node);
    case FR_NODE_MACRO: return run_macro(render, frame, node);
    case FR_NODE_CALL_BLOCK: return run_call(render, frame, node);
    case FR_NODE_BREAK: return FR_FLOW_BREAK;
    case FR_NODE_CONTINUE: return FR_FLOW_CONTINUE;
    default: fr_jinja_render_fail(render, "no statement"); return FR_FLOW_ON;
    }
}

fr_jinja_flow fr_jinja_run(fr_jinja_render *render, fr_jinja_frame *frame, const fr_jinja_nodes *body) {
    fr_jinja_flow flow = FR_FLOW_ON;
    if (!fr_jinja_render_enter(render)) return flow;
    for (size_t i = 0; i < body->count && flow == FR_FLOW_ON && fr_jinja_render_step(render, 0); i++) {
        render->line = body->items[i]->line;
        flow = run_statement(render, frame, body->items[i]);
    }
    fr_jinja_render_leave(render);
    return flow;
}
