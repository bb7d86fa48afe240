/* Parses expressions by Jinja's grammar. Makes trees from tokens. */
#include "src/language/jinja/template_function.h"
#include "src/language/jinja/template_parser.h"

/* ---------------------------------------------------------------------------------------------- primary expressions */

static fr_jinja_node *parse_unary(fr_jinja_parser *p, bool with_filters);
static fr_jinja_node *parse_postfix(fr_jinja_parser *p, fr_jinja_node *node);

/* Parses a string. Adjacent strings such as "a" 'b' are joined. */
static fr_jinja_node *parse_string(fr_jinja_parser *p) {
    uint32_t line = p->token.line;
    const char *bytes = p->token.bytes;
    size_t length = p->token.length;
    fr_jinja_parser_next(p);
    while (ok(p) && is(p, FR_LEX_STRING)) {
        char *joined = fr_jinja_parser_take(p, length + p->token.length, 1);
        if (!joined) break;
        memcpy(joined, bytes, length);
        memcpy(joined + length, p->token.bytes, p->token.length);
        length += p->token.length;
        bytes = joined;
        fr_jinja_parser_next(p);
    }
    return fr_jinja_parser_constant(p, fr_jinja_of_string(fr_jinja_parser_string(p, bytes, length)), line);
}

static fr_jinja_node *parse_name(fr_jinja_parser *p) {
    static const struct {
        const char *word;
        fr_jinja_value value;
    } constants[] = {
        {"true", {.kind = FR_KIND_BOOL, .truth = true}},
        {"True", {.kind = FR_KIND_BOOL, .truth = true}},
        {"false", {.kind = FR_KIND_BOOL, .truth = false}},
        {"False", {.kind = FR_KIND_BOOL, .truth = false}},
        {"none", {.kind = FR_KIND_NONE}},
        {"None", {.kind = FR_KIND_NONE}},
    };
    uint32_t line = p->token.line;
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (skip_word(p, constants[i].word)) return fr_jinja_parser_constant(p, constants[i].value, line);
    return fr_jinja_parser_name_node(p, fr_jinja_parser_name(p), line);
}

static fr_jinja_node *parse_list(fr_jinja_parser *p) {
    fr_jinja_node *node = fr_jinja_parser_node(p, FR_NODE_LIST, p->token.line);
    fr_jinja_parser_next(p);
    while (ok(p) && !is(p, FR_LEX_RIGHT_BRACKET)) {
        if (node->items.count > 0) expect(p, FR_LEX_COMMA, "\",\"");
        if (is(p, FR_LEX_RIGHT_BRACKET)) break;
        fr_jinja_parser_append(p, &node->items, fr_jinja_parser_below(p, node, fr_jinja_parse_expression(p)));
    }
    expect(p, FR_LEX_RIGHT_BRACKET, "\"]\"");
    return node;
}

static fr_jinja_node *parse_dict(fr_jinja_parser *p) {
    fr_jinja_node *node = fr_jinja_parser_node(p, FR_NODE_DICT, p->token.line);
    fr_jinja_parser_next(p);
    while (ok(p) && !is(p, FR_LEX_RIGHT_BRACE)) {
        if (node->items.count > 0) expect(p, FR_LEX_COMMA, "\",\"");
        if (is(p, FR_LEX_RIGHT_BRACE)) break;
        fr_jinja_parser_append(p, &node->items, fr_jinja_parser_below(p, node, fr_jinja_parse_expression(p)));
        expect(p, FR_LEX_COLON, "\":\"");
        fr_jinja_parser_append(p, &node->items, fr_jinja_parser_below(p, node, fr_jinja_parse_expression(p)));
    }
    expect(p, FR_LEX_RIGHT_BRACE, "\"}\"");
    return node;
}

static fr_jinja_node *parse_number(fr_jinja_parser *p) {
    fr_jinja_token token = p->token;
    fr_jinja_parser_next(p);
    bool whole = token.kind == FR_LEX_INT;
    return fr_jinja_parser_constant(
        p, whole ? fr_jinja_of_int(token.integer, false) : fr_jinja_of_real(token.real, false), token.line);
}

static fr_jinja_node *parse_parentheses(fr_jinja_parser *p) {
    fr_jinja_parser_next(p);
    fr_jinja_node *node = fr_jinja_parse_tuple(p, fr_jinja_parse_expression, true, NULL);
    expect(p, FR_LEX_RIGHT_PARENTHESIS, "\")\"");
    return node;
}

fr_jinja_node *fr_jinja_parse_primary(fr_jinja_parser *p) {
    switch (p->token.kind) {
    case FR_LEX_NAME: return parse_name(p);
    case FR_LEX_STRING: return parse_string(p);
    case FR_LEX_INT:
    case FR_LEX_FLOAT: return parse_number(p);
    case FR_LEX_LEFT_PARENTHESIS: return parse_parentheses(p);
    case FR_LEX_LEFT_BRACKET: return parse_list(p);
    case FR_LEX_LEFT_BRACE: return parse_dict(p);
    default: fr_jinja_parser_unexpected(p, "an expression"); return &p->broken;
    }
}

/* Returns true if a tuple without parentheses ends here: at the end of a tag, or before the word `end`. */
static bool at_tuple_end(const fr_jinja_parser *p, const char *end) {
    return is(p, FR_LEX_PRINT_END) || is(p, FR_LEX_BLOCK_END) || is(p, FR_LEX_RIGHT_PARENTHESIS) || is(p, FR_LEX_END) ||
           (end && is_word(p, end));
}

fr_jinja_node *fr_jinja_parse_tuple(fr_jinja_parser *p, fr_jinja_node *parse(fr_jinja_parser *), bool in_parentheses,
                                    const char *end) {
    uint32_t line = p->token.line;
    fr_jinja_nodes items = {0};
    bool is_tuple = false;
    while (ok(p) && !at_tuple_end(p, end)) {
        fr_jinja_parser_append(p, &items, parse(p));
        if (!skip(p, FR_LEX_COMMA)) break;
        is_tuple = true;
    }
    if (!is_tuple && items.count == 1) return items.items[0];
    if (!is_tuple && !in_parentheses) fr_jinja_parser_unexpected(p, "an expression");
    fr_jinja_node *node = fr_jinja_parser_node(p, FR_NODE_TUPLE, line);
    for (size_t i = 0; i < items.count; i++)
        fr_jinja_parser_append(p, &node->items, fr_jinja_parser_below(p, node, items.items[i]));
    return node;
}

/* ----------------------------------------------------------------------------------------- calls, items, attributes */

static void append_keyword(fr_jinja_parser *p, fr_jinja_call_nodes *arguments) {
    fr_jinja_name *name = fr_jinja_parser_name(p);
    fr_jinja_parser_next(p); /* the equals sign */
    size_t count = arguments->keywords.count;
    const fr_jinja_string **names = fr_jinja_parser_take(p, count + 1, sizeof *names);
    if (!names) return;
    if (count > 0) memcpy(names, arguments->names, count * sizeof *names);
    names[count] = &name->string;
    arguments->names = names;
    fr_jinja_parser_append(p, &arguments->keywords, fr_jinja_parse_expression(p));
}

static void parse_argument(fr_jinja_parser *p, fr_jinja_call_nodes *arguments) {
    const char *order = "positional arguments must come before keyword arguments";
    uint32_t line = p->token.line;
    if (skip(p, FR_LEX_MULTIPLY)) {
        if (arguments->star || arguments->star_star) fr_jinja_parser_refuse(p, line, order);
        arguments->star = fr_jinja_parse_expression(p);
    } else if (skip(p, FR_LEX_POWER)) {
        if (arguments->star_star) fr_jinja_parser_refuse(p, line, order);
        arguments->star_star = fr_jinja_parse_expression(p);
    } else if (is(p, FR_LEX_NAME) && p->ahead.kind == FR_LEX_ASSIGN) {
        if (arguments->star_star) fr_jinja_parser_refuse(p, line, order);
        append_keyword(p, arguments);
    } else {
        if (arguments->star || arguments->star_star || arguments->keywords.count > 0)
            fr_jinja_parser_refuse(p, line, order);
        fr_jinja_parser_append(p, &arguments->positional, fr_jinja_parse_expression(p));
    }
}

/* Parses the arguments of a call, such as (a, b, c=d, *e, **f). Makes them children of the node. */
static fr_jinja_call_nodes *parse_arguments(fr_jinja_parser *p, fr_jinja_node *node) {
    fr_jinja_call_nodes *arguments = fr_jinja_parser_take(p, 1, sizeof *arguments);
    if (!arguments) return NULL;
    expect(p, FR_LEX_LEFT_PARENTHESIS, "\"(\"");
    for (bool first = true; ok(p) && !is(p, FR_LEX_RIGHT_PARENTHESIS); first = false) {
        if (!first) expect(p, FR_LEX_COMMA, "\",\"");
        if (is(p, FR_LEX_RIGHT_PARENTHESIS)) break;
        parse_argument(p, arguments);
    }
    expect(p, FR_LEX_RIGHT_PARENTHESIS, "\")\"");
    for (size_t i = 0; i < arguments->positional.count; i++)
        fr_jinja_parser_below(p, node, arguments->positional.items[i]);
    for (size_t i = 0; i < arguments->keywords.count; i++) fr_jinja_parser_below(p, node, arguments->keywords.items[i]);
    fr_jinja_parser_below(p, node, arguments->star);
    fr_jinja_parser_below(p, node, arguments->star_star);
    return arguments;
}

static fr_jinja_node *parse_call(fr_jinja_parser *p, fr_jinja_node *callee) {
    fr_jinja_node *node = fr_jinja_parser_node(p, FR_NODE_CALL, p->token.line);
    node->call.callee = fr_jinja_parser_below(p, node, callee);
    node->call.arguments = parse_arguments(p, node);
    return node;
}

/* Parses the text between square brackets. It is an expression, or a slice a:b:c in which any part may be missing. */
static fr_jinja_node *parse_subscript(fr_jinja_parser *p) {
    uint32_t line = p->token.line;
    fr_jinja_node *start = is(p, FR_LEX_COLON) ? NULL : fr_jinja_parse_expression(p);
    if (!skip(p, FR_LEX_COLON)) return start ? start : &p->broken;
    fr_jinja_node *node = fr_jinja_parser_node(p, FR_NODE_SLICE, line);
    node->slice.start = fr_jinja_parser_below(p, node, start);
    if (!is(p, FR_LEX_COLON) && !is(p, FR_LEX_RIGHT_BRACKET) && !is(p, FR_LEX_COMMA))
        node->slice.stop = fr_jinja_parser_below(p, node, fr_jinja_parse_expression(p));
    if (skip(p, FR_LEX_COLON) && !is(p, FR_LEX_RIGHT_BRACKET) && !is(p, FR_LEX_COMMA))
        node->slice.step = fr_jinja_parser_below(p, node, fr_jinja_parse_expression(p));
    return node;
}

/* Parses a[b] or a[b, c]. */
static fr_jinja_node *parse_brackets(fr_jinja_parser *p, fr_jinja_node *object, uint32_t line) {
    fr_jinja_nodes items = {0};
    while (ok(p) && !is(p, FR_LEX_RIGHT_BRACKET)) {
        if (items.count > 0) expect(p, FR_LEX_COMMA, "\",\"");
        fr_jinja_parser_append(p, &items, parse_subscript(p));
    }
    expect(p, FR_LEX_RIGHT_BRACKET, "\"]\"");
    fr_jinja_node *node = fr_jinja_parser_node(p, FR_NODE_ITEM, line);
    node->item.object = fr_jinja_parser_below(p, node, object);
    if (items.count == 1) {
        node->item.index = fr_jinja_parser_below(p, node, items.items[0]);
        return node;
    }
    fr_jinja_node *tuple = fr_jinja_parser_node(p, FR_NODE_TUPLE, line);
    for (size_t i = 0; i < items.count; i++) {
        fr_jinja_parser_append(p, &tuple->items, fr_jinja_parser_below(p, tuple, items.items[i]));
        if (items.items[i]->kind == FR_NODE_SLICE) fr_jinja_parser_refuse(p, line, "a slice in a tuple");
    }
    node->item.index = fr_jinja_parser_below(p, node, tuple);
    return node;
}

/* Parses a.b or a.0. */
static fr_jinja_node *parse_member(fr_jinja_parser *p, fr_jinja_node *object, uint32_t line) {
    bool number = is(p, FR_LEX_INT);
    fr_jinja_node *node = fr_jinja_parser_node(p, number ? FR_NODE_ITEM : FR_NODE_ATTRIBUTE, line);
    if (number) {
        node->item.object = fr_jinja_parser_below(p, node, object);
        node->item.index = fr_jinja_parser_below(p, node, parse_number(p));
    } else {
        node->attribute.object = fr_jinja_parser_below(p, node, object);
        node->attribute.name = &fr_jinja_parser_name(p)->string;
    }
    return node;
}

static fr_jinja_node *parse_postfix(fr_jinja_parser *p, fr_jinja_node *node) {
    while (ok(p)) {
        uint32_t line = p->token.line;
        if (skip(p, FR_LEX_DOT))
            node = parse_member(p, node, line);
        else if (skip(p, FR_LEX_LEFT_BRACKET))
            node = parse_brackets(p, node, line);
        else if (is(p, FR_LEX_LEFT_PARENTHESIS))
            node = parse_call(p, node);
        else
            break;
    }
    return node;
}

/* --------------------------------------------------------------------------------------------------- filters, tests */

/* Reads the name of a filter or test. Jinja allows names with dots, but this environment has no such names. */
static void take_function_name(fr_jinja_parser *p, fr_jinja_node *node, const fr_jinja_function_table *table) {
    node->filter.name = &fr_jinja_parser_name(p)->string;
    node->filter.function = fr_jinja_function_find(table, node->filter.name);
    if (is(p, FR_LEX_DOT)) fr_jinja_parser_refuse(p, node->line, "a filter or test whose name has a dot");
}

fr_jinja_node *fr_jinja_parse_filters(fr_jinja_parser *p, fr_jinja_node *subject, bool inside) {
    while (ok(p) && (inside || skip(p, FR_LEX_PIPE))) {
        fr_jinja_node *node = fr_jinja_parser_node(p, FR_NODE_FILTER, p->token.line);
        inside = false;
        take_function_name(p, node, &fr_template_filters);
        node->filter.subject = fr_jinja_parser_below(p, node, subject);
        if (is(p, FR_LEX_LEFT_PARENTHESIS)) node->filter.arguments = parse_arguments(p, node);
        subject = node;
    }
    return subject;
}

/* Returns true if the argument of a test begins here. Such an argument has no parentheses. */
static bool begins_argument(const fr_jinja_parser *p) {
    switch (p->token.kind) {
    case FR_LEX_NAME: return !is_word(p, "else") && !is_word(p, "or") && !is_word(p, "and");
    case FR_LEX_STRING:
    case FR_LEX_INT:
    case FR_LEX_FLOAT:
    case FR_LEX_LEFT_BRACKET:
    case FR_LEX_LEFT_BRACE: return true;
    default: return false;
    }
}

static fr_jinja_node *negated(fr_jinja_parser *p, fr_jinja_node *operand) {
    fr_jinja_node *node = fr_jinja_parser_node(p, FR_NODE_NOT, operand->line);
    node->operand = fr_jinja_parser_below(p, node, operand);
    return node;
}

/* Parses a test after "is". */
static fr_jinja_node *parse_test(fr_jinja_parser *p, fr_jinja_node *subject) {
    bool negative = skip_word(p, "not");
    fr_jinja_node *node = fr_jinja_parser_node(p, FR_NODE_TEST, p->token.line);
    take_function_name(p, node, &fr_template_tests);
    node->filter.subject = fr_jinja_parser_below(p, node, subject);
    if (is(p, FR_LEX_LEFT_PARENTHESIS)) {
        node->filter.arguments = parse_arguments(p, node);
    } else if (begins_argument(p)) {
        if (is_word(p, "is"))
            fr_jinja_parser_refuse(p, p->token.line, "two tests in a row: say which belongs together");
        node->filter.arguments = fr_jinja_parser_take(p, 1, sizeof *node->filter.arguments);
        fr_jinja_node *argument = fr_jinja_parser_below(p, node, parse_postfix(p, fr_jinja_parse_primary(p)));
        if (ok(p)) fr_jinja_parser_append(p, &node->filter.arguments->positional, argument);
    }
    return negative ? negated(p, node) : node;
}

static fr_jinja_node *parse_filters_and_tests(fr_jinja_parser *p, fr_jinja_node *node) {
    while (ok(p)) {
        if (is(p, FR_LEX_PIPE))
            node = fr_jinja_parse_filters(p, node, false);
        else if (skip_word(p, "is"))
            node = parse_test(p, node);
        else if (is(p, FR_LEX_LEFT_PARENTHESIS))
            node = parse_call(p, node);
        else
            break;
    }
    return node;
}

/* -------------------------------------------------------------------------------------------------------- operators */

/* Parses -a and +a. A filter binds less tightly than a sign, so a filter after -a applies to the negated value. It
 * binds more tightly than all other operators. */
static fr_jinja_node *parse_unary(fr_jinja_parser *p, bool with_filters) {
    fr_jinja_node *node = &p->broken;
    uint32_t line = p->token.line;
    bool negative = is(p, FR_LEX_SUBTRACT);
    if (!enter(p)) return node;
    if (negative || is(p, FR_LEX_ADD)) {
        fr_jinja_parser_next(p);
        node = fr_jinja_parser_node(p, negative ? FR_NODE_NEGATIVE : FR_NODE_POSITIVE, line);
        node->operand = fr_jinja_parser_below(p, node, parse_unary(p, false));
    } else {
        node = fr_jinja_parse_primary(p);
    }
    node = parse_postfix(p, node);
    leave(p);
    return with_filters ? parse_filters_and_tests(p, node) : node;
}

static fr_jinja_node *pair(fr_jinja_parser *p, fr_jinja_node_kind kind, fr_jinja_node *left, fr_jinja_node *right,
                           uint32_t line) {
    fr_jinja_node *node = fr_jinja_parser_node(p, kind, line);
    node->pair.left = fr_jinja_parser_below(p, node, left);
    node->pair.right = fr_jinja_parser_below(p, node, right);
    return node;
}

/* Levels of arithmetic operators, from those that bind least tightly to those that bind most tightly: + and -, then ~,
 * then * / // %, then **. find_arithmetic finds the operator of a token. */
typedef enum strength { STRENGTH_ADD, STRENGTH_CONCAT, STRENGTH_MULTIPLY, STRENGTH_POWER, STRENGTH_UNARY } strength;

static bool find_arithmetic(fr_jinja_token_kind token, strength level, fr_jinja_operator *operator) {
    static const struct {
        fr_jinja_token_kind token;
        strength level;
        fr_jinja_operator operator;
    } rows[] = {
        {FR_LEX_ADD, STRENGTH_ADD, FR_OPERATOR_ADD},
        {FR_LEX_SUBTRACT, STRENGTH_ADD, FR_OPERATOR_SUBTRACT},
        {FR_LEX_MULTIPLY, STRENGTH_MULTIPLY, FR_OPERATOR_MULTIPLY},
        {FR_LEX_DIVIDE, STRENGTH_MULTIPLY, FR_OPERATOR_DIVIDE},
        {FR_LEX_FLOOR_DIVIDE, STRENGTH_MULTIPLY, FR_OPERATOR_FLOOR_DIVIDE},
        {FR_LEX_REMAINDER, STRENGTH_MULTIPLY, FR_OPERATOR_REMAINDER},
        {FR_LEX_POWER, STRENGTH_POWER, FR_OPERATOR_POWER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].token != token || rows[i].level != level) continue;
        *operator= rows[i].operator;
        return true;
    }
    return false;
}

static fr_jinja_node *parse_arithmetic(fr_jinja_parser *p, strength level);

/* Parses a ~ b ~ c. */
static fr_jinja_node *parse_concat(fr_jinja_parser *p) {
    uint32_t line = p->token.line;
    fr_jinja_node *first = parse_arithmetic(p, STRENGTH_MULTIPLY);
    if (!is(p, FR_LEX_TILDE)) return first;
    fr_jinja_node *node = fr_jinja_parser_node(p, FR_NODE_CONCAT, line);
    fr_jinja_parser_append(p, &node->items, fr_jinja_parser_below(p, node, first));
    while (ok(p) && skip(p, FR_LEX_TILDE))
        fr_jinja_parser_append(p, &node->items, fr_jinja_parser_below(p, node, parse_arithmetic(p, STRENGTH_MULTIPLY)));
    return node;
}

/* Parses operators of one level. All of them, even **, are evaluated from left to right, as in Jinja. */
static fr_jinja_node *parse_arithmetic(fr_jinja_parser *p, strength level) {
    if (level == STRENGTH_CONCAT) return parse_concat(p);
    if (level == STRENGTH_UNARY) return parse_unary(p, true);
    fr_jinja_node *left = parse_arithmetic(p, level + 1);
    fr_jinja_operator operator;
    while (ok(p) && find_arithmetic(p->token.kind, level, &operator)) {
        uint32_t line = p->token.line;
        fr_jinja_parser_next(p);
        left = pair(p, FR_NODE_BINARY, left, parse_arithmetic(p, level + 1), line);
        left->operator=(uint8_t) operator;
    }
    return left;
}

/* If the current token is a comparison, skips it and gives its operator. */
static bool skip_comparison(fr_jinja_parser *p, fr_jinja_operator *operator) {
    static const struct {
        fr_jinja_token_kind token;
        fr_jinja_operator operator;
    } rows[] = {
        {FR_LEX_EQUAL, FR_OPERATOR_EQUAL},     {FR_LEX_UNEQUAL, FR_OPERATOR_UNEQUAL},
        {FR_LEX_LESS, FR_OPERATOR_LESS},       {FR_LEX_LESS_EQUAL, FR_OPERATOR_LESS_EQUAL},
        {FR_LEX_GREATER, FR_OPERATOR_GREATER}, {FR_LEX_GREATER_EQUAL, FR_OPERATOR_GREATER_EQUAL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        *operator= rows[i].operator;
        if (skip(p, rows[i].token)) return true;
    }
    *operator= FR_OPERATOR_IN;
    if (skip_word(p, "in")) return true;
    *operator= FR_OPERATOR_NOT_IN;
    if (!is_word(p, "not") || !token_is_word(&p->ahead, "in")) return false;
    fr_jinja_parser_next(p);
    fr_jinja_parser_next(p);
    return true;
}

static void append_operator(fr_jinja_parser *p, fr_jinja_node *node, fr_jinja_operator operator) {
    size_t count = node->compare.others.count;
    uint8_t *operators = fr_jinja_parser_take(p, count + 1, 1);
    if (!operators) return;
    if (count > 0) memcpy(operators, node->compare.operators, count);
    operators[count] = (uint8_t) operator;
    node->compare.operators = operators;
}

/* Parses a < b == c. */
static fr_jinja_node *parse_compare(fr_jinja_parser *p) {
    uint32_t line = p->token.line;
    fr_jinja_node *first = parse_arithmetic(p, STRENGTH_ADD), *node = NULL;
    fr_jinja_operator operator;
    while (ok(p) && skip_comparison(p, &operator)) {
        if (!node) {
            node = fr_jinja_parser_node(p, FR_NODE_COMPARE, line);
            node->compare.first = fr_jinja_parser_below(p, node, first);
        }
        append_operator(p, node, operator);
        fr_jinja_parser_append(p, &node->compare.others,
                               fr_jinja_parser_below(p, node, parse_arithmetic(p, STRENGTH_ADD)));
    }
    return node ? node : first;
}

static fr_jinja_node *parse_not(fr_jinja_parser *p) {
    if (!is_word(p, "not")) return parse_compare(p);
    if (!enter(p)) return &p->broken;
    fr_jinja_parser_next(p);
    fr_jinja_node *node = negated(p, parse_not(p));
    leave(p);
    return node;
}

static fr_jinja_node *parse_and(fr_jinja_parser *p) {
    fr_jinja_node *left = parse_not(p);
    for (uint32_t line = p->token.line; ok(p) && skip_word(p, "and"); line = p->token.line)
        left = pair(p, FR_NODE_AND, left, parse_not(p), line);
    return left;
}

fr_jinja_node *fr_jinja_parse_or(fr_jinja_parser *p) {
    if (!enter(p)) return &p->broken;
    fr_jinja_node *left = parse_and(p);
    for (uint32_t line = p->token.line; ok(p) && skip_word(p, "or"); line = p->token.line)
        left = pair(p, FR_NODE_OR, left, parse_and(p), line);
    leave(p);
    return left;
}

/* Parses a if b else c. */
fr_jinja_node *fr_jinja_parse_expression(fr_jinja_parser *p) {
    fr_jinja_node *expression = fr_jinja_parse_or(p);
    for (uint32_t line = p->token.line; ok(p) && skip_word(p, "if"); line = p->token.line) {
        fr_jinja_node *node = fr_jinja_parser_node(p, FR_NODE_CONDITION, line);
        node->condition.yes = fr_jinja_parser_below(p, node, expression);
        node->condition.test = fr_jinja_parser_below(p, node, fr_jinja_parse_or(p));
        if (skip_word(p, "else") && enter(p)) {
            node->condition.no = fr_jinja_parser_below(p, node, fr_jinja_parse_expression(p));
            leave(p);
        }
        expression = node;
    }
    return expression;
}
