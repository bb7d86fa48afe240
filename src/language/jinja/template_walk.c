/* Walks over a template's tree (template_walk.h). */
#include "src/language/jinja/template_walk.h"

void fr_jinja_visit_all(const fr_jinja_nodes *nodes, fr_jinja_visitor *visit, void *context) {
    for (size_t i = 0; i < nodes->count; i++) visit(context, nodes->items[i]);
}

static void visit_one(fr_jinja_node *node, fr_jinja_visitor *visit, void *context) {
    if (node) visit(context, node);
}

static void visit_arguments(const fr_jinja_call_nodes *arguments, fr_jinja_visitor *visit, void *context) {
    if (!arguments) return;
    fr_jinja_visit_all(&arguments->positional, visit, context);
    fr_jinja_visit_all(&arguments->keywords, visit, context);
    visit_one(arguments->star, visit, context);
    visit_one(arguments->star_star, visit, context);
}

void fr_jinja_visit_routine(const fr_jinja_routine *routine, fr_jinja_visitor *visit, void *context) {
    for (size_t i = 0; i < routine->parameter_count; i++) visit(context, routine->parameters[i]);
    fr_jinja_visit_all(&routine->defaults, visit, context);
    fr_jinja_visit_all(&routine->body, visit, context);
}

static void visit_for(const fr_jinja_for_node *loop, fr_jinja_visitor *visit, void *context) {
    visit(context, loop->target);
    visit(context, loop->sequence);
    fr_jinja_visit_all(&loop->body, visit, context);
    fr_jinja_visit_all(&loop->otherwise, visit, context);
    visit_one(loop->test, visit, context);
}

void fr_jinja_visit_if(const fr_jinja_node *node, fr_jinja_visitor *visit, void *context) {
    for (size_t i = 0; i < node->choice.count; i++) {
        visit_one(node->choice.branches[i].test, visit, context);
        fr_jinja_visit_all(&node->choice.branches[i].body, visit, context);
    }
}

void fr_jinja_visit_expression(const fr_jinja_node *node, fr_jinja_visitor *visit, void *context) {
    switch (node->kind) {
    case FR_NODE_TUPLE:
    case FR_NODE_LIST:
    case FR_NODE_DICT:
    case FR_NODE_CONCAT:
    case FR_NODE_OUTPUT: fr_jinja_visit_all(&node->items, visit, context); break;
    case FR_NODE_AND:
    case FR_NODE_OR:
    case FR_NODE_BINARY:
        visit(context, node->pair.left);
        visit(context, node->pair.right);
        break;
    case FR_NODE_NOT:
    case FR_NODE_NEGATIVE:
    case FR_NODE_POSITIVE: visit(context, node->operand); break;
    case FR_NODE_COMPARE:
        visit(context, node->compare.first);
        fr_jinja_visit_all(&node->compare.others, visit, context);
        break;
    case FR_NODE_CONDITION:
        visit(context, node->condition.test);
        visit(context, node->condition.yes);
        visit_one(node->condition.no, visit, context);
        break;
    case FR_NODE_ATTRIBUTE: visit(context, node->attribute.object); break;
    case FR_NODE_ITEM:
        visit(context, node->item.object);
        visit(context, node->item.index);
        break;
    case FR_NODE_SLICE:
        visit_one(node->slice.start, visit, context);
        visit_one(node->slice.stop, visit, context);
        visit_one(node->slice.step, visit, context);
        break;
    case FR_NODE_CALL:
        visit(context, node->call.callee);
        visit_arguments(node->call.arguments, visit, context);
        break;
    case FR_NODE_FILTER:
    case FR_NODE_TEST:
        visit_one(node->filter.subject, visit, context);
        visit_arguments(node->filter.arguments, visit, context);
        break;
    default: break;
    }
}

void fr_jinja_visit_children(const fr_jinja_node *node, fr_jinja_visitor *visit, void *context) {
    switch (node->kind) {
    case FR_NODE_IF: fr_jinja_visit_if(node, visit, context); break;
    case FR_NODE_FOR: visit_for(node->loop, visit, context); break;
    case FR_NODE_SET:
        visit(context, node->set.target);
        visit(context, node->set.value);
        break;
    case FR_NODE_SET_BLOCK:
    case FR_NODE_FILTER_BLOCK:
        visit_one(node->block.target, visit, context);
        if (node->block.target) visit_one(node->block.filter, visit, context);
        fr_jinja_visit_all(&node->block.body, visit, context);
        if (!node->block.target) visit_one(node->block.filter, visit, context);
        break;
    case FR_NODE_MACRO:
    case FR_NODE_CALL_BLOCK:
        visit_one(node->macro.call, visit, context);
        fr_jinja_visit_routine(node->macro.routine, visit, context);
        break;
    case FR_NODE_WITH:
        fr_jinja_visit_all(&node->with.targets, visit, context);
        fr_jinja_visit_all(&node->with.values, visit, context);
        fr_jinja_visit_all(&node->with.body, visit, context);
        break;
    default: fr_jinja_visit_expression(node, visit, context); break;
    }
}
