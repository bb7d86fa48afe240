/* Walks over a template's tree. Each function calls `visit` for the direct children of a node, in the order of Jinja's
 * compiler. */
#ifndef FR_SRC_LANGUAGE_JINJA_TEMPLATE_WALK_H
#define FR_SRC_LANGUAGE_JINJA_TEMPLATE_WALK_H

#include "src/language/jinja/template_tree.h"

typedef void fr_jinja_visitor(void *context, fr_jinja_node *node);

/* fr_jinja_visit_children visits the children of any node. fr_jinja_visit_expression does that for a node that is an
 * expression or an output, and fr_jinja_visit_if for an `if`. */
void fr_jinja_visit_children(const fr_jinja_node *node, fr_jinja_visitor *visit, void *context);
void fr_jinja_visit_expression(const fr_jinja_node *node, fr_jinja_visitor *visit, void *context);
void fr_jinja_visit_if(const fr_jinja_node *node, fr_jinja_visitor *visit, void *context);

/* Visits a routine's parameters, their defaults, and the body. */
void fr_jinja_visit_routine(const fr_jinja_routine *routine, fr_jinja_visitor *visit, void *context);

void fr_jinja_visit_all(const fr_jinja_nodes *nodes, fr_jinja_visitor *visit, void *context);

#endif
