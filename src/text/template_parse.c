/* Jinja's grammar: tokens to a tree.
 *
 * In: a template with its source. Out: its routine's body; names without their places. A failure sticks: the first is
 * kept, the current token becomes the end, what is parsed then is nothing, and loops end because ok() says so. */
#include "formats/error.h"
#include "src/text/template_function.h"
#include "src/text/template_lex.h"
#include "src/text/template_text.h"

#define NAME_LISTS 256

typedef struct parser {
    fr_template *template;
    fr_lexer lexer;
    fr_token token, ahead; /* the current one, and the one behind it */
    fr_status status;
    unsigned nesting; /* of blocks and expressions being parsed */
    fr_name *names[NAME_LISTS];
    fr_node broken; /* what can't be had is written into these */
    fr_name unnamed;
} parser;

/* ---------------------------------------------------------------------------------------------- failures and memory */

static bool ok(const parser *p) {
    return p->status == FR_OK;
}

static void keep(parser *p, fr_status status) {
    if (!ok(p) || status == FR_OK) return;
    p->status = status;
    p->token = p->ahead = (fr_token){.kind = FR_TOKEN_END, .line = p->token.line, .bytes = ""};
}

static void refuse(parser *p, uint32_t line, const char *what) {
    if (ok(p)) keep(p, fr_template_fail(p->template, line, "%s", what));
}

static void *take(parser *p, size_t count, size_t item) {
    void *piece = ok(p) ? fr_bump_take(&p->template->memory, count, item) : NULL;
    if (!piece && ok(p)) keep(p, fr_template_fail_memory(p->template, p->token.line, &p->template->memory));
    return piece;
}

static fr_node *new_node(parser *p, fr_node_kind kind, uint32_t line) {
    fr_node *node = take(p, 1, sizeof *node);
    if (!node) node = &p->broken;
    *node = (fr_node){.kind = (uint8_t)kind, .line = line, .nesting = 1};
    return node;
}

/* The child is below the node: how deep that nests is limited, so that who walks a tree may recurse. */
static fr_node *below(parser *p, fr_node *node, fr_node *child) {
    if (!child || child->nesting < node->nesting) return child;
    node->nesting = child->nesting + 1;
    if (node->nesting > FR_TEMPLATE_MAX_NESTING && ok(p))
        keep(p, fr_template_fail(p->template, node->line, "nested deeper than %d", FR_TEMPLATE_MAX_NESTING));
    return child;
}

static void append(parser *p, fr_nodes *nodes, fr_node *node) {
    if (nodes->count == nodes->capacity) {
        size_t capacity = nodes->capacity ? 2 * nodes->capacity : 4;
        fr_node **items = take(p, capacity, sizeof *items);
        if (!items) return;
        if (nodes->count > 0) memcpy(items, nodes->items, nodes->count * sizeof *items);
        nodes->items = items;
        nodes->capacity = capacity;
    }
    nodes->items[nodes->count++] = node;
}

/* Each level of recursion here enters; the parser's own stack is limited with it. */
static bool enter(parser *p) {
    if (++p->nesting > FR_TEMPLATE_MAX_NESTING && ok(p))
        keep(p, fr_template_fail(p->template, p->token.line, "nested deeper than %d", FR_TEMPLATE_MAX_NESTING));
    return ok(p);
}

static void leave(parser *p) {
    p->nesting--;
}

/* ----------------------------------------------------------------------------------------------------------- tokens */

static void next(parser *p) {
    if (!ok(p)) return;
    p->token = p->ahead;
    keep(p, fr_lexer_next(&p->lexer, &p->ahead));
}

static bool is(const parser *p, fr_token_kind kind) {
    return p->token.kind == kind;
}

static bool token_is_word(const fr_token *token, const char *word) {
    return token->kind == FR_TOKEN_NAME && token->length == strlen(word) &&
           memcmp(token->bytes, word, token->length) == 0;
}

static bool is_word(const parser *p, const char *word) {
    return token_is_word(&p->token, word);
}

static void fail_unexpected(parser *p, const char *expected) {
    static const char *const what[] = {
        [FR_TOKEN_END] = "the end of the template",
        [FR_TOKEN_TEXT] = "text",
        [FR_TOKEN_BLOCK_BEGIN] = "\"{%\"",
        [FR_TOKEN_BLOCK_END] = "\"%}\"",
        [FR_TOKEN_PRINT_BEGIN] = "\"{{\"",
        [FR_TOKEN_PRINT_END] = "\"}}\"",
        [FR_TOKEN_STRING] = "a string",
    };
    const fr_token *token = &p->token;
    const char *name = token->kind <= FR_TOKEN_STRING ? what[token->kind] : NULL;
    if (!ok(p)) return;
    if (name)
        keep(p, fr_template_fail(p->template, token->line, "expected %s, not %s", expected, name));
    else
        keep(p, fr_template_fail(p->template, token->line, "expected %s, not \"%.*s\"", expected,
                                 token->length < 80 ? (int)token->length : 80, token->bytes));
}

static bool skip(parser *p, fr_token_kind kind) {
    bool skipped = is(p, kind);
    if (skipped) next(p);
    return skipped;
}

static bool skip_word(parser *p, const char *word) {
    bool skipped = is_word(p, word);
    if (skipped) next(p);
    return skipped;
}

static void expect(parser *p, fr_token_kind kind, const char *what) {
    if (!skip(p, kind)) fail_unexpected(p, what);
}

/* ------------------------------------------------------------------------------------------------------------ names */

static const fr_string *new_string(parser *p, const char *bytes, size_t length) {
    static const fr_string empty = {.bytes = "", .ascii = true};
    fr_string *string = take(p, 1, sizeof *string);
    if (!string) return &empty;
    *string = (fr_string){.bytes = bytes, .length = length, .ascii = fr_all_ascii(bytes, length)};
    return string;
}

/* One fr_name for all occurrences of a word. */
static fr_name *intern(parser *p, const fr_token *token) {
    uint32_t hash = 0;
    for (size_t i = 0; i < token->length; i++) hash = hash * 31 + (unsigned char)token->bytes[i];
    fr_name **list = &p->names[hash % NAME_LISTS];
    for (fr_name *name = *list; name; name = name->next)
        if (name->string.length == token->length && memcmp(name->string.bytes, token->bytes, token->length) == 0)
            return name;
    fr_name *name = take(p, 1, sizeof *name);
    if (!name) return &p->unnamed;
    bool ascii = fr_all_ascii(token->bytes, token->length);
    *name = (fr_name){.string = {.bytes = token->bytes, .length = token->length, .ascii = ascii}, .next = *list};
    *list = name;
    return name;
}

/* The current token, a name. */
static fr_name *take_name(parser *p) {
    if (!is(p, FR_TOKEN_NAME)) fail_unexpected(p, "a name");
    fr_name *name = intern(p, &p->token);
    next(p);
    return name;
}

static fr_node *name_node(parser *p, fr_name *name, uint32_t line) {
    fr_node *node = new_node(p, FR_NODE_NAME, line);
    node->variable.name = name;
    return node;
}

/* --------------------------------------------------------------------------------------------------- primary things */

static fr_node *parse_expression(parser *p);
static fr_node *parse_or(parser *p);
static fr_node *parse_unary(parser *p, bool with_filters);
static fr_node *parse_postfix(parser *p, fr_node *node);
static fr_node *parse_tuple(parser *p, fr_node *parse(parser *), bool in_parentheses, const char *end);

static fr_node *constant(parser *p, fr_value value, uint32_t line) {
    fr_node *node = new_node(p, FR_NODE_CONSTANT, line);
    node->constant = value;
    return node;
}

/* "a" 'b': neighbouring strings are one. */
static fr_node *parse_string(parser *p) {
    uint32_t line = p->token.line;
    const char *bytes = p->token.bytes;
    size_t length = p->token.length;
    next(p);
    while (ok(p) && is(p, FR_TOKEN_STRING)) {
        char *joined = take(p, length + p->token.length, 1);
        if (!joined) break;
        memcpy(joined, bytes, length);
        memcpy(joined + length, p->token.bytes, p->token.length);
        length += p->token.length;
        bytes = joined;
        next(p);
    }
    return constant(p, fr_of_string(new_string(p, bytes, length)), line);
}

static fr_node *parse_name(parser *p) {
    static const struct {
        const char *word;
        fr_value value;
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
        if (skip_word(p, constants[i].word)) return constant(p, constants[i].value, line);
    return name_node(p, take_name(p), line);
}

static fr_node *parse_list(parser *p) {
    fr_node *node = new_node(p, FR_NODE_LIST, p->token.line);
    next(p);
    while (ok(p) && !is(p, FR_TOKEN_RIGHT_BRACKET)) {
        if (node->items.count > 0) expect(p, FR_TOKEN_COMMA, "\",\"");
        if (is(p, FR_TOKEN_RIGHT_BRACKET)) break;
        append(p, &node->items, below(p, node, parse_expression(p)));
    }
    expect(p, FR_TOKEN_RIGHT_BRACKET, "\"]\"");
    return node;
}

static fr_node *parse_dict(parser *p) {
    fr_node *node = new_node(p, FR_NODE_DICT, p->token.line);
    next(p);
    while (ok(p) && !is(p, FR_TOKEN_RIGHT_BRACE)) {
        if (node->items.count > 0) expect(p, FR_TOKEN_COMMA, "\",\"");
        if (is(p, FR_TOKEN_RIGHT_BRACE)) break;
        append(p, &node->items, below(p, node, parse_expression(p)));
        expect(p, FR_TOKEN_COLON, "\":\"");
        append(p, &node->items, below(p, node, parse_expression(p)));
    }
    expect(p, FR_TOKEN_RIGHT_BRACE, "\"}\"");
    return node;
}

static fr_node *parse_number(parser *p) {
    fr_token token = p->token;
    next(p);
    bool whole = token.kind == FR_TOKEN_INT;
    return constant(p, whole ? fr_of_int(token.integer, false) : fr_of_real(token.real, false), token.line);
}

static fr_node *parse_parentheses(parser *p) {
    next(p);
    fr_node *node = parse_tuple(p, parse_expression, true, NULL);
    expect(p, FR_TOKEN_RIGHT_PARENTHESIS, "\")\"");
    return node;
}

static fr_node *parse_primary(parser *p) {
    switch (p->token.kind) {
    case FR_TOKEN_NAME: return parse_name(p);
    case FR_TOKEN_STRING: return parse_string(p);
    case FR_TOKEN_INT:
    case FR_TOKEN_FLOAT: return parse_number(p);
    case FR_TOKEN_LEFT_PARENTHESIS: return parse_parentheses(p);
    case FR_TOKEN_LEFT_BRACKET: return parse_list(p);
    case FR_TOKEN_LEFT_BRACE: return parse_dict(p);
    default: fail_unexpected(p, "an expression"); return &p->broken;
    }
}

/* A tuple without parentheses ends where a tag does, or before the word `end`. */
static bool at_tuple_end(const parser *p, const char *end) {
    return is(p, FR_TOKEN_PRINT_END) || is(p, FR_TOKEN_BLOCK_END) || is(p, FR_TOKEN_RIGHT_PARENTHESIS) ||
           is(p, FR_TOKEN_END) || (end && is_word(p, end));
}

/* a, b, c: a tuple if there is a comma, otherwise the one thing. */
static fr_node *parse_tuple(parser *p, fr_node *parse(parser *), bool in_parentheses, const char *end) {
    uint32_t line = p->token.line;
    fr_nodes items = {0};
    bool is_tuple = false;
    while (ok(p) && !at_tuple_end(p, end)) {
        append(p, &items, parse(p));
        if (!skip(p, FR_TOKEN_COMMA)) break;
        is_tuple = true;
    }
    if (!is_tuple && items.count == 1) return items.items[0];
    if (!is_tuple && !in_parentheses) fail_unexpected(p, "an expression");
    fr_node *node = new_node(p, FR_NODE_TUPLE, line);
    for (size_t i = 0; i < items.count; i++) append(p, &node->items, below(p, node, items.items[i]));
    return node;
}

/* --------------------------------------------------------------------------------------- what follows an expression */

static void append_keyword(parser *p, fr_call_nodes *arguments) {
    fr_name *name = take_name(p);
    next(p); /* = */
    size_t count = arguments->keywords.count;
    const fr_string **names = take(p, count + 1, sizeof *names);
    if (!names) return;
    if (count > 0) memcpy(names, arguments->names, count * sizeof *names);
    names[count] = &name->string;
    arguments->names = names;
    append(p, &arguments->keywords, parse_expression(p));
}

static void parse_argument(parser *p, fr_call_nodes *arguments) {
    const char *order = "arguments in an order that means nothing";
    uint32_t line = p->token.line;
    if (skip(p, FR_TOKEN_MULTIPLY)) {
        if (arguments->star || arguments->star_star) refuse(p, line, order);
        arguments->star = parse_expression(p);
    } else if (skip(p, FR_TOKEN_POWER)) {
        if (arguments->star_star) refuse(p, line, order);
        arguments->star_star = parse_expression(p);
    } else if (is(p, FR_TOKEN_NAME) && p->ahead.kind == FR_TOKEN_ASSIGN) {
        if (arguments->star_star) refuse(p, line, order);
        append_keyword(p, arguments);
    } else {
        if (arguments->star || arguments->star_star || arguments->keywords.count > 0) refuse(p, line, order);
        append(p, &arguments->positional, parse_expression(p));
    }
}

/* (a, b, c=d, *e, **f), which lie below the node. */
static fr_call_nodes *parse_arguments(parser *p, fr_node *node) {
    fr_call_nodes *arguments = take(p, 1, sizeof *arguments);
    if (!arguments) return NULL;
    expect(p, FR_TOKEN_LEFT_PARENTHESIS, "\"(\"");
    for (bool first = true; ok(p) && !is(p, FR_TOKEN_RIGHT_PARENTHESIS); first = false) {
        if (!first) expect(p, FR_TOKEN_COMMA, "\",\"");
        if (is(p, FR_TOKEN_RIGHT_PARENTHESIS)) break;
        parse_argument(p, arguments);
    }
    expect(p, FR_TOKEN_RIGHT_PARENTHESIS, "\")\"");
    for (size_t i = 0; i < arguments->positional.count; i++) below(p, node, arguments->positional.items[i]);
    for (size_t i = 0; i < arguments->keywords.count; i++) below(p, node, arguments->keywords.items[i]);
    below(p, node, arguments->star);
    below(p, node, arguments->star_star);
    return arguments;
}

static fr_node *parse_call(parser *p, fr_node *callee) {
    fr_node *node = new_node(p, FR_NODE_CALL, p->token.line);
    node->call.callee = below(p, node, callee);
    node->call.arguments = parse_arguments(p, node);
    return node;
}

/* Between brackets: an expression, or a slice a:b:c of which any may be missing. */
static fr_node *parse_subscript(parser *p) {
    uint32_t line = p->token.line;
    fr_node *start = is(p, FR_TOKEN_COLON) ? NULL : parse_expression(p);
    if (!skip(p, FR_TOKEN_COLON)) return start ? start : &p->broken;
    fr_node *node = new_node(p, FR_NODE_SLICE, line);
    node->slice.start = below(p, node, start);
    if (!is(p, FR_TOKEN_COLON) && !is(p, FR_TOKEN_RIGHT_BRACKET) && !is(p, FR_TOKEN_COMMA))
        node->slice.stop = below(p, node, parse_expression(p));
    if (skip(p, FR_TOKEN_COLON) && !is(p, FR_TOKEN_RIGHT_BRACKET) && !is(p, FR_TOKEN_COMMA))
        node->slice.step = below(p, node, parse_expression(p));
    return node;
}

/* a[b], a[b, c] */
static fr_node *parse_brackets(parser *p, fr_node *object, uint32_t line) {
    fr_nodes items = {0};
    while (ok(p) && !is(p, FR_TOKEN_RIGHT_BRACKET)) {
        if (items.count > 0) expect(p, FR_TOKEN_COMMA, "\",\"");
        append(p, &items, parse_subscript(p));
    }
    expect(p, FR_TOKEN_RIGHT_BRACKET, "\"]\"");
    fr_node *node = new_node(p, FR_NODE_ITEM, line);
    node->item.object = below(p, node, object);
    if (items.count == 1) {
        node->item.index = below(p, node, items.items[0]);
        return node;
    }
    fr_node *tuple = new_node(p, FR_NODE_TUPLE, line);
    for (size_t i = 0; i < items.count; i++) {
        append(p, &tuple->items, below(p, tuple, items.items[i]));
        if (items.items[i]->kind == FR_NODE_SLICE) refuse(p, line, "a slice in a tuple");
    }
    node->item.index = below(p, node, tuple);
    return node;
}

/* a.b, a.0 */
static fr_node *parse_member(parser *p, fr_node *object, uint32_t line) {
    bool number = is(p, FR_TOKEN_INT);
    fr_node *node = new_node(p, number ? FR_NODE_ITEM : FR_NODE_ATTRIBUTE, line);
    if (number) {
        node->item.object = below(p, node, object);
        node->item.index = below(p, node, parse_number(p));
    } else {
        node->attribute.object = below(p, node, object);
        node->attribute.name = &take_name(p)->string;
    }
    return node;
}

static fr_node *parse_postfix(parser *p, fr_node *node) {
    while (ok(p)) {
        uint32_t line = p->token.line;
        if (skip(p, FR_TOKEN_DOT))
            node = parse_member(p, node, line);
        else if (skip(p, FR_TOKEN_LEFT_BRACKET))
            node = parse_brackets(p, node, line);
        else if (is(p, FR_TOKEN_LEFT_PARENTHESIS))
            node = parse_call(p, node);
        else
            break;
    }
    return node;
}

/* --------------------------------------------------------------------------------------------------- filters, tests */

/* The name of a filter or test; environments may have names with dots, this one has none. */
static void take_function_name(parser *p, fr_node *node, const fr_function_table *table) {
    node->filter.name = &take_name(p)->string;
    node->filter.function = fr_function_find(table, node->filter.name);
    if (is(p, FR_TOKEN_DOT)) refuse(p, node->line, "a filter or test whose name has a dot");
}

/* |a|b(c), or without the first bar at the begin of a filter block. subject: NULL in a block. */
static fr_node *parse_filters(parser *p, fr_node *subject, bool inside) {
    while (ok(p) && (inside || skip(p, FR_TOKEN_PIPE))) {
        fr_node *node = new_node(p, FR_NODE_FILTER, p->token.line);
        inside = false;
        take_function_name(p, node, &fr_template_filters);
        node->filter.subject = below(p, node, subject);
        if (is(p, FR_TOKEN_LEFT_PARENTHESIS)) node->filter.arguments = parse_arguments(p, node);
        subject = node;
    }
    return subject;
}

/* A test's argument may stand without parentheses. */
static bool begins_argument(const parser *p) {
    switch (p->token.kind) {
    case FR_TOKEN_NAME: return !is_word(p, "else") && !is_word(p, "or") && !is_word(p, "and");
    case FR_TOKEN_STRING:
    case FR_TOKEN_INT:
    case FR_TOKEN_FLOAT:
    case FR_TOKEN_LEFT_BRACKET:
    case FR_TOKEN_LEFT_BRACE: return true;
    default: return false;
    }
}

static fr_node *negated(parser *p, fr_node *operand) {
    fr_node *node = new_node(p, FR_NODE_NOT, operand->line);
    node->operand = below(p, node, operand);
    return node;
}

/* Behind "is". */
static fr_node *parse_test(parser *p, fr_node *subject) {
    bool negative = skip_word(p, "not");
    fr_node *node = new_node(p, FR_NODE_TEST, p->token.line);
    take_function_name(p, node, &fr_template_tests);
    node->filter.subject = below(p, node, subject);
    if (is(p, FR_TOKEN_LEFT_PARENTHESIS)) {
        node->filter.arguments = parse_arguments(p, node);
    } else if (begins_argument(p)) {
        if (is_word(p, "is")) refuse(p, p->token.line, "two tests in a row: say which belongs together");
        node->filter.arguments = take(p, 1, sizeof *node->filter.arguments);
        fr_node *argument = below(p, node, parse_postfix(p, parse_primary(p)));
        if (ok(p)) append(p, &node->filter.arguments->positional, argument);
    }
    return negative ? negated(p, node) : node;
}

static fr_node *parse_filters_and_tests(parser *p, fr_node *node) {
    while (ok(p)) {
        if (is(p, FR_TOKEN_PIPE))
            node = parse_filters(p, node, false);
        else if (skip_word(p, "is"))
            node = parse_test(p, node);
        else if (is(p, FR_TOKEN_LEFT_PARENTHESIS))
            node = parse_call(p, node);
        else
            break;
    }
    return node;
}

/* -------------------------------------------------------------------------------------------------------- operators */

/* -a, +a; filters bind less than the sign in front of all, more than any other. */
static fr_node *parse_unary(parser *p, bool with_filters) {
    fr_node *node = &p->broken;
    uint32_t line = p->token.line;
    bool negative = is(p, FR_TOKEN_SUBTRACT);
    if (!enter(p)) return node;
    if (negative || is(p, FR_TOKEN_ADD)) {
        next(p);
        node = new_node(p, negative ? FR_NODE_NEGATIVE : FR_NODE_POSITIVE, line);
        node->operand = below(p, node, parse_unary(p, false));
    } else {
        node = parse_primary(p);
    }
    node = parse_postfix(p, node);
    leave(p);
    return with_filters ? parse_filters_and_tests(p, node) : node;
}

static fr_node *pair(parser *p, fr_node_kind kind, fr_node *left, fr_node *right, uint32_t line) {
    fr_node *node = new_node(p, kind, line);
    node->pair.left = below(p, node, left);
    node->pair.right = below(p, node, right);
    return node;
}

/* What an arithmetic operator is, and how strongly it binds: + and - least, then ~, then * and its like, then **. */
typedef enum strength { STRENGTH_ADD, STRENGTH_CONCAT, STRENGTH_MULTIPLY, STRENGTH_POWER, STRENGTH_UNARY } strength;

static bool find_arithmetic(fr_token_kind token, strength level, fr_operator *operator) {
    static const struct {
        fr_token_kind token;
        strength level;
        fr_operator operator;
    } rows[] = {
        {FR_TOKEN_ADD, STRENGTH_ADD, FR_OPERATOR_ADD},
        {FR_TOKEN_SUBTRACT, STRENGTH_ADD, FR_OPERATOR_SUBTRACT},
        {FR_TOKEN_MULTIPLY, STRENGTH_MULTIPLY, FR_OPERATOR_MULTIPLY},
        {FR_TOKEN_DIVIDE, STRENGTH_MULTIPLY, FR_OPERATOR_DIVIDE},
        {FR_TOKEN_FLOOR_DIVIDE, STRENGTH_MULTIPLY, FR_OPERATOR_FLOOR_DIVIDE},
        {FR_TOKEN_REMAINDER, STRENGTH_MULTIPLY, FR_OPERATOR_REMAINDER},
        {FR_TOKEN_POWER, STRENGTH_POWER, FR_OPERATOR_POWER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        if (rows[i].token != token || rows[i].level != level) continue;
        *operator= rows[i].operator;
        return true;
    }
    return false;
}

static fr_node *parse_arithmetic(parser *p, strength level);

/* a ~ b ~ c */
static fr_node *parse_concat(parser *p) {
    uint32_t line = p->token.line;
    fr_node *first = parse_arithmetic(p, STRENGTH_MULTIPLY);
    if (!is(p, FR_TOKEN_TILDE)) return first;
    fr_node *node = new_node(p, FR_NODE_CONCAT, line);
    append(p, &node->items, below(p, node, first));
    while (ok(p) && skip(p, FR_TOKEN_TILDE))
        append(p, &node->items, below(p, node, parse_arithmetic(p, STRENGTH_MULTIPLY)));
    return node;
}

/* Operators of one strength bind from left to right; ** too. */
static fr_node *parse_arithmetic(parser *p, strength level) {
    if (level == STRENGTH_CONCAT) return parse_concat(p);
    if (level == STRENGTH_UNARY) return parse_unary(p, true);
    fr_node *left = parse_arithmetic(p, level + 1);
    fr_operator operator;
    while (ok(p) && find_arithmetic(p->token.kind, level, &operator)) {
        uint32_t line = p->token.line;
        next(p);
        left = pair(p, FR_NODE_BINARY, left, parse_arithmetic(p, level + 1), line);
        left->operator=(uint8_t) operator;
    }
    return left;
}

/* The comparison at the current token, which is skipped. */
static bool skip_comparison(parser *p, fr_operator *operator) {
    static const struct {
        fr_token_kind token;
        fr_operator operator;
    } rows[] = {
        {FR_TOKEN_EQUAL, FR_OPERATOR_EQUAL},     {FR_TOKEN_UNEQUAL, FR_OPERATOR_UNEQUAL},
        {FR_TOKEN_LESS, FR_OPERATOR_LESS},       {FR_TOKEN_LESS_EQUAL, FR_OPERATOR_LESS_EQUAL},
        {FR_TOKEN_GREATER, FR_OPERATOR_GREATER}, {FR_TOKEN_GREATER_EQUAL, FR_OPERATOR_GREATER_EQUAL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        *operator= rows[i].operator;
        if (skip(p, rows[i].token)) return true;
    }
    *operator= FR_OPERATOR_IN;
    if (skip_word(p, "in")) return true;
    *operator= FR_OPERATOR_NOT_IN;
    if (!is_word(p, "not") || !token_is_word(&p->ahead, "in")) return false;
    next(p);
    next(p);
    return true;
}

static void append_operator(parser *p, fr_node *node, fr_operator operator) {
    size_t count = node->compare.others.count;
    uint8_t *operators = take(p, count + 1, 1);
    if (!operators) return;
    if (count > 0) memcpy(operators, node->compare.operators, count);
    operators[count] = (uint8_t) operator;
    node->compare.operators = operators;
}

/* a < b == c */
static fr_node *parse_compare(parser *p) {
    uint32_t line = p->token.line;
    fr_node *first = parse_arithmetic(p, STRENGTH_ADD), *node = NULL;
    fr_operator operator;
    while (ok(p) && skip_comparison(p, &operator)) {
        if (!node) {
            node = new_node(p, FR_NODE_COMPARE, line);
            node->compare.first = below(p, node, first);
        }
        append_operator(p, node, operator);
        append(p, &node->compare.others, below(p, node, parse_arithmetic(p, STRENGTH_ADD)));
    }
    return node ? node : first;
}

static fr_node *parse_not(parser *p) {
    if (!is_word(p, "not")) return parse_compare(p);
    if (!enter(p)) return &p->broken;
    next(p);
    fr_node *node = negated(p, parse_not(p));
    leave(p);
    return node;
}

static fr_node *parse_and(parser *p) {
    fr_node *left = parse_not(p);
    for (uint32_t line = p->token.line; ok(p) && skip_word(p, "and"); line = p->token.line)
        left = pair(p, FR_NODE_AND, left, parse_not(p), line);
    return left;
}

static fr_node *parse_or(parser *p) {
    if (!enter(p)) return &p->broken;
    fr_node *left = parse_and(p);
    for (uint32_t line = p->token.line; ok(p) && skip_word(p, "or"); line = p->token.line)
        left = pair(p, FR_NODE_OR, left, parse_and(p), line);
    leave(p);
    return left;
}

/* a if b else c */
static fr_node *parse_expression(parser *p) {
    fr_node *expression = parse_or(p);
    for (uint32_t line = p->token.line; ok(p) && skip_word(p, "if"); line = p->token.line) {
        fr_node *node = new_node(p, FR_NODE_CONDITION, line);
        node->condition.yes = below(p, node, expression);
        node->condition.test = below(p, node, parse_or(p));
        if (skip_word(p, "else") && enter(p)) {
            node->condition.no = below(p, node, parse_expression(p));
            leave(p);
        }
        expression = node;
    }
    return expression;
}

/* ------------------------------------------------------------------------------------------------------- statements */

static fr_nodes parse_body(parser *p, const char *const *ends);

/* The rest of a tag, and what stands between it and one of the end tags, whose word is then the current token. */
static fr_nodes parse_block(parser *p, fr_node *node, const char *const *ends) {
    skip(p, FR_TOKEN_COLON);
    expect(p, FR_TOKEN_BLOCK_END, "\"%}\"");
    fr_nodes body = {0};
    if (enter(p)) body = parse_body(p, ends);
    leave(p);
    if (ok(p) && is(p, FR_TOKEN_END)) {
        const char *last = ends[0];
        for (; *ends; ends++) last = *ends;
        keep(p, fr_template_fail(p->template, node->line, "a block without its \"%s\"", last));
    }
    for (size_t i = 0; i < body.count; i++) below(p, node, body.items[i]);
    return body;
}

/* The same up to the one end tag, whose word is skipped. */
static fr_nodes parse_whole_block(parser *p, fr_node *node, const char *end) {
    const char *const ends[] = {end, NULL};
    fr_nodes body = parse_block(p, node, ends);
    next(p);
    return body;
}

static void check_target(parser *p, fr_node *node) {
    if (!ok(p) || node->kind == FR_NODE_MEMBER) return;
    if (node->kind == FR_NODE_NAME) {
        node->variable.stored = true;
        return;
    }
    if (node->kind != FR_NODE_TUPLE) refuse(p, node->line, "an assignment to what is no variable");
    for (size_t i = 0; ok(p) && i < node->items.count; i++) check_target(p, node->items.items[i]);
}

static fr_node *parse_target_item(parser *p) {
    uint32_t line = p->token.line;
    if (!is(p, FR_TOKEN_NAME) || p->ahead.kind != FR_TOKEN_DOT) return parse_primary(p);
    fr_node *node = new_node(p, FR_NODE_MEMBER, line);
    node->member.name = take_name(p);
    next(p); /* . */
    node->member.attribute = &take_name(p)->string;
    return node;
}

/* a, (b, c); in set also namespace.attribute */
static fr_node *parse_target(parser *p, bool with_members, const char *end) {
    fr_node *target = parse_tuple(p, with_members ? parse_target_item : parse_primary, false, end);
    check_target(p, target);
    return target;
}

static fr_node *parse_set(parser *p, uint32_t line) {
    fr_node *target = parse_target(p, true, NULL);
    bool plain = skip(p, FR_TOKEN_ASSIGN);
    fr_node *node = new_node(p, plain ? FR_NODE_SET : FR_NODE_SET_BLOCK, line);
    below(p, node, target);
    if (plain) {
        node->set.target = target;
        node->set.value = below(p, node, parse_tuple(p, parse_expression, false, NULL));
    } else {
        node->block.target = target;
        node->block.filter = below(p, node, parse_filters(p, NULL, false));
        node->block.body = parse_whole_block(p, node, "endset");
    }
    return node;
}

static void append_branch(parser *p, fr_node *node, fr_node *test, fr_nodes body) {
    size_t count = node->choice.count;
    fr_if_branch *branches = take(p, count + 1, sizeof *branches);
    if (!branches) return;
    if (count > 0) memcpy(branches, node->choice.branches, count * sizeof *branches);
    branches[count] = (fr_if_branch){test, body};
    node->choice.branches = branches;
    node->choice.count = count + 1;
}

static fr_node *parse_if(parser *p, uint32_t line) {
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    fr_node *node = new_node(p, FR_NODE_IF, line);
    do {
        fr_node *test = below(p, node, parse_tuple(p, parse_or, false, NULL));
        append_branch(p, node, test, parse_block(p, node, ends));
    } while (ok(p) && skip_word(p, "elif"));
    if (skip_word(p, "else"))
        append_branch(p, node, NULL, parse_whole_block(p, node, "endif"));
    else
        next(p);
    return node;
}

static fr_node *parse_for(parser *p, uint32_t line) {
    static const char *const ends[] = {"endfor", "else", NULL};
    fr_node *node = new_node(p, FR_NODE_FOR, line);
    fr_for_node *loop = take(p, 1, sizeof *loop);
    if (!loop) return node;
    node->loop = loop;
    loop->target = below(p, node, parse_target(p, false, "in"));
    if (!skip_word(p, "in")) fail_unexpected(p, "\"in\"");
    loop->sequence = below(p, node, parse_tuple(p, parse_or, false, "recursive"));
    if (skip_word(p, "if")) loop->test = below(p, node, parse_expression(p));
    if (skip_word(p, "recursive")) loop->recursive = take(p, 1, sizeof *loop->recursive);
    loop->body = parse_block(p, node, ends);
    if (skip_word(p, "else"))
        loop->otherwise = parse_whole_block(p, node, "endfor");
    else
        next(p);
    return node;
}

/* (a, b=c) */
static void parse_signature(parser *p, fr_node *node, fr_routine *routine) {
    fr_nodes parameters = {0};
    expect(p, FR_TOKEN_LEFT_PARENTHESIS, "\"(\"");
    while (ok(p) && !is(p, FR_TOKEN_RIGHT_PARENTHESIS)) {
        if (parameters.count > 0) expect(p, FR_TOKEN_COMMA, "\",\"");
        uint32_t line = p->token.line;
        fr_node *parameter = below(p, node, name_node(p, take_name(p), line));
        parameter->variable.stored = true;
        append(p, &parameters, parameter);
        if (skip(p, FR_TOKEN_ASSIGN))
            append(p, &routine->defaults, below(p, node, parse_expression(p)));
        else if (routine->defaults.count > 0)
            refuse(p, line, "a parameter without a default behind one with");
    }
    expect(p, FR_TOKEN_RIGHT_PARENTHESIS, "\")\"");
    routine->parameters = parameters.items;
    routine->parameter_count = parameters.count;
}

static fr_node *parse_macro(parser *p, uint32_t line) {
    fr_node *node = new_node(p, FR_NODE_MACRO, line);
    fr_routine *routine = take(p, 1, sizeof *routine);
    if (!routine) return node;
    node->macro.routine = routine;
    node->macro.target = name_node(p, take_name(p), line);
    routine->name = &node->macro.target->variable.name->string;
    parse_signature(p, node, routine);
    routine->body = parse_whole_block(p, node, "endmacro");
    return node;
}

static fr_node *parse_call_block(parser *p, uint32_t line) {
    static const fr_string caller = {.bytes = "caller", .length = 6, .ascii = true};
    fr_node *node = new_node(p, FR_NODE_CALL_BLOCK, line);
    fr_routine *routine = take(p, 1, sizeof *routine);
    if (!routine) return node;
    node->macro.routine = routine;
    routine->name = &caller;
    if (is(p, FR_TOKEN_LEFT_PARENTHESIS)) parse_signature(p, node, routine);
    node->macro.call = below(p, node, parse_expression(p));
    if (node->macro.call->kind != FR_NODE_CALL) refuse(p, line, "a call block that calls nothing");
    routine->body = parse_whole_block(p, node, "endcall");
    return node;
}

static fr_node *parse_filter_block(parser *p, uint32_t line) {
    fr_node *node = new_node(p, FR_NODE_FILTER_BLOCK, line);
    node->block.filter = below(p, node, parse_filters(p, NULL, true));
    node->block.body = parse_whole_block(p, node, "endfilter");
    return node;
}

static fr_node *parse_with(parser *p, uint32_t line) {
    fr_node *node = new_node(p, FR_NODE_WITH, line);
    while (ok(p) && !is(p, FR_TOKEN_BLOCK_END) && !is(p, FR_TOKEN_COLON)) {
        if (node->with.targets.count > 0) expect(p, FR_TOKEN_COMMA, "\",\"");
        append(p, &node->with.targets, below(p, node, parse_target(p, false, NULL)));
        expect(p, FR_TOKEN_ASSIGN, "\"=\"");
        append(p, &node->with.values, below(p, node, parse_expression(p)));
    }
    node->with.body = parse_whole_block(p, node, "endwith");
    return node;
}

static fr_node *parse_print(parser *p, uint32_t line) {
    fr_node *node = new_node(p, FR_NODE_OUTPUT, line);
    while (ok(p) && !is(p, FR_TOKEN_BLOCK_END)) {
        if (node->items.count > 0) expect(p, FR_TOKEN_COMMA, "\",\"");
        append(p, &node->items, below(p, node, parse_expression(p)));
    }
    return node;
}

static fr_node *parse_generation(parser *p, uint32_t line) {
    fr_node *node = new_node(p, FR_NODE_SCOPE, line);
    node->block.body = parse_whole_block(p, node, "endgeneration");
    return node;
}

static fr_node *parse_break(parser *p, uint32_t line) {
    return new_node(p, FR_NODE_BREAK, line);
}

static fr_node *parse_continue(parser *p, uint32_t line) {
    return new_node(p, FR_NODE_CONTINUE, line);
}

static fr_node *refuse_other_templates(parser *p, uint32_t line) {
    refuse(p, line, "include, import, from, extends and block are not for chat templates, which stand alone");
    return &p->broken;
}

/* Behind "{%". */
static fr_node *parse_statement(parser *p) {
    static const struct {
        const char *word;
        fr_node *(*parse)(parser *p, uint32_t line);
    } statements[] = {
        {"set", parse_set},
        {"if", parse_if},
        {"for", parse_for},
        {"macro", parse_macro},
        {"call", parse_call_block},
        {"filter", parse_filter_block},
        {"with", parse_with},
        {"print", parse_print},
        {"generation", parse_generation},
        {"break", parse_break},
        {"continue", parse_continue},
        {"include", refuse_other_templates},
        {"import", refuse_other_templates},
        {"from", refuse_other_templates},
        {"extends", refuse_other_templates},
        {"block", refuse_other_templates},
    };
    uint32_t line = p->token.line;
    for (size_t i = 0; i < sizeof statements / sizeof *statements; i++)
        if (skip_word(p, statements[i].word)) return statements[i].parse(p, line);
    fail_unexpected(p, "a statement");
    return &p->broken;
}

static bool at_any(const parser *p, const char *const *words) {
    for (; words && *words; words++)
        if (is_word(p, *words)) return true;
    return false;
}

static void append_output(parser *p, fr_nodes *body, fr_node **output, fr_node *item) {
    if (!*output) {
        *output = new_node(p, FR_NODE_OUTPUT, item->line);
        append(p, body, *output);
    }
    append(p, &(*output)->items, below(p, *output, item));
}

/* Up to the end of the template, or to a tag that begins with one of those words, which is then the current token. */
static fr_nodes parse_body(parser *p, const char *const *ends) {
    fr_nodes body = {0};
    fr_node *output = NULL; /* what is printed without a statement between */
    while (ok(p) && !is(p, FR_TOKEN_END)) {
        if (is(p, FR_TOKEN_TEXT)) {
            const fr_string *text = new_string(p, p->token.bytes, p->token.length);
            append_output(p, &body, &output, constant(p, fr_of_string(text), p->token.line));
            next(p);
        } else if (skip(p, FR_TOKEN_PRINT_BEGIN)) {
            append_output(p, &body, &output, parse_tuple(p, parse_expression, false, NULL));
            expect(p, FR_TOKEN_PRINT_END, "\"}}\"");
        } else {
            expect(p, FR_TOKEN_BLOCK_BEGIN, "\"{%\"");
            if (at_any(p, ends)) return body;
            append(p, &body, parse_statement(p));
            expect(p, FR_TOKEN_BLOCK_END, "\"%}\"");
            output = NULL;
        }
    }
    return body;
}

fr_status fr_template_parse(fr_template *template) {
    parser p = {.template = template, .unnamed = {.string = {.bytes = "", .ascii = true}}};
    FR_TRY(fr_lexer_open(&p.lexer, template));
    keep(&p, fr_lexer_next(&p.lexer, &p.ahead));
    next(&p);
    template->routine.body = parse_body(&p, NULL);
    return p.status;
}
