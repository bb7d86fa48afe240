/* Parses statements by Jinja's grammar. Makes the tree of a template's source.
 *
 * In: a template with its source. Out: the body of the template's routine. The places where variables are stored are
 * not known yet; template_scope.c finds them. */
#include "base/error.h"
#include "src/language/jinja/template_parser.h"

/* ------------------------------------------------------------------------------------------------------- statements */

static fr_jinja_nodes parse_body(fr_jinja_parser *p, const char *const *ends);

/* Parses the rest of a tag, and the body up to one of the end tags. Afterwards the current token is the word in that
 * end tag. */
static fr_jinja_nodes parse_block(fr_jinja_parser *p, fr_jinja_node *node, const char *const *ends) {
    skip(p, FR_LEX_COLON);
    expect(p, FR_LEX_BLOCK_END, "\"%}\"");
    fr_jinja_nodes body = {0};
    if (enter(p)) body = parse_body(p, ends);
    leave(p);
    if (ok(p) && is(p, FR_LEX_END)) {
        const char *last = ends[0];
        for (; *ends; ends++) last = *ends;
        fr_jinja_parser_keep(p, fr_template_fail(p->template, node->line, "a block without its \"%s\"", last));
    }
    for (size_t i = 0; i < body.count; i++) fr_jinja_parser_below(p, node, body.items[i]);
    return body;
}

/* Parses the rest of a tag, and the body up to the only possible end tag. Skips the word in that end tag. */
static fr_jinja_nodes parse_whole_block(fr_jinja_parser *p, fr_jinja_node *node, const char *end) {
    const char *const ends[] = {end, NULL};
    fr_jinja_nodes body = parse_block(p, node, ends);
    fr_jinja_parser_next(p);
    return body;
}

static void check_target(fr_jinja_parser *p, fr_jinja_node *node) {
    if (!ok(p) || node->kind == FR_NODE_MEMBER) return;
    if (node->kind == FR_NODE_NAME) {
        node->variable.stored = true;
        return;
    }
    if (node->kind != FR_NODE_TUPLE)
        fr_jinja_parser_refuse(p, node->line, "the target of an assignment is not a variable");
    for (size_t i = 0; ok(p) && i < node->items.count; i++) check_target(p, node->items.items[i]);
}

static fr_jinja_node *parse_target_item(fr_jinja_parser *p) {
    uint32_t line = p->token.line;
    if (!is(p, FR_LEX_NAME) || p->ahead.kind != FR_LEX_DOT) return fr_jinja_parse_primary(p);
    fr_jinja_node *node = fr_jinja_parser_node(p, FR_NODE_MEMBER, line);
    node->member.name = fr_jinja_parser_name(p);
    fr_jinja_parser_next(p); /* the dot */
    node->member.attribute = &fr_jinja_parser_name(p)->string;
    return node;
}

/* Parses the target of an assignment, such as a, (b, c). In a `set` statement it may also be namespace.attribute. */
static fr_jinja_node *parse_target(fr_jinja_parser *p, bool with_members, const char *end) {
    fr_jinja_node *target =
        fr_jinja_parse_tuple(p, with_members ? parse_target_item : fr_jinja_parse_primary, false, end);
    check_target(p, target);
    return target;
}

static fr_jinja_node *parse_set(fr_jinja_parser *p, uint32_t line) {
    fr_jinja_node *target = parse_target(p, true, NULL);
    bool plain = skip(p, FR_LEX_ASSIGN);
    fr_jinja_node *node = fr_jinja_parser_node(p, plain ? FR_NODE_SET : FR_NODE_SET_BLOCK, line);
    fr_jinja_parser_below(p, node, target);
    if (plain) {
        node->set.target = target;
        node->set.value =
            fr_jinja_parser_below(p, node, fr_jinja_parse_tuple(p, fr_jinja_parse_expression, false, NULL));
    } else {
        node->block.target = target;
        node->block.filter = fr_jinja_parser_below(p, node, fr_jinja_parse_filters(p, NULL, false));
        node->block.body = parse_whole_block(p, node, "endset");
    }
    return node;
}

static void append_branch(fr_jinja_parser *p, fr_jinja_node *node, fr_jinja_node *test, fr_jinja_nodes body) {
    size_t count = node->choice.count;
    fr_jinja_if_branch *branches = fr_jinja_parser_take(p, count + 1, sizeof *branches);
    if (!branches) return;
    if (count > 0) memcpy(branches, node->choice.branches, count * sizeof *branches);
    branches[count] = (fr_jinja_if_branch){test, body};
    node->choice.branches = branches;
    node->choice.count = count + 1;
}

static fr_jinja_node *parse_if(fr_jinja_parser *p, uint32_t line) {
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    fr_jinja_node *node = fr_jinja_parser_node(p, FR_NODE_IF, line);
    do {
        fr_jinja_node *test = fr_jinja_parser_below(p, node, fr_jinja_parse_tuple(p, fr_jinja_parse_or, false, NULL));
        append_branch(p, node, test, parse_block(p, node, ends));
    } while (ok(p) && skip_word(p, "elif"));
    if (skip_word(p, "else"))
        append_branch(p, node, NULL, parse_whole_block(p, node, "endif"));
    else
        fr_jinja_parser_next(p);
    return node;
}

static fr_jinja_node *parse_for(fr_jinja_parser *p, uint32_t line) {
    static const char *const ends[] = {"endfor", "else", NULL};
    fr_jinja_node *node = fr_jinja_parser_node(p, FR_NODE_FOR, line);
    fr_jinja_for_node *loop = fr_jinja_parser_take(p, 1, sizeof *loop);
    if (!loop) return node;
    node->loop = loop;
    loop->target = fr_jinja_parser_below(p, node, parse_target(p, false, "in"));
    if (!skip_word(p, "in")) fr_jinja_parser_unexpected(p, "\"in\"");
    loop->sequence = fr_jinja_parser_below(p, node, fr_jinja_parse_tuple(p, fr_jinja_parse_or, false, "recursive"));
    if (skip_word(p, "if")) loop->test = fr_jinja_parser_below(p, node, fr_jinja_parse_expression(p));
    if (skip_word(p, "recursive")) loop->recursive = fr_jinja_parser_take(p, 1, sizeof *loop->recursive);
    loop->body = parse_block(p, node, ends);
    if (skip_word(p, "else"))
        loop->otherwise = parse_whole_block(p, node, "endfor");
    else
        fr_jinja_parser_next(p);
    return node;
}

/* Parses the parameters of a macro, such as (a, b=c). */
static void parse_signature(fr_jinja_parser *p, fr_jinja_node *node, fr_jinja_routine *routine) {
    fr_jinja_nodes parameters = {0};
    expect(p, FR_LEX_LEFT_PARENTHESIS, "\"(\"");
    while (ok(p) && !is(p, FR_LEX_RIGHT_PARENTHESIS)) {
        if (parameters.count > 0) expect(p, FR_LEX_COMMA, "\",\"");
        uint32_t line = p->token.line;
        fr_jinja_node *parameter =
            fr_jinja_parser_below(p, node, fr_jinja_parser_name_node(p, fr_jinja_parser_name(p), line));
        parameter->variable.stored = true;
        fr_jinja_parser_append(p, &parameters, parameter);
        if (skip(p, FR_LEX_ASSIGN))
            fr_jinja_parser_append(p, &routine->defaults, fr_jinja_parser_below(p, node, fr_jinja_parse_expression(p)));
        else if (routine->defaults.count > 0)
            fr_jinja_parser_refuse(p, line, "a parameter without a default behind one with");
    }
    expect(p, FR_LEX_RIGHT_PARENTHESIS, "\")\"");
    routine->parameters = parameters.items;
    routine->parameter_count = parameters.count;
}

static fr_jinja_node *parse_macro(fr_jinja_parser *p, uint32_t line) {
    fr_jinja_node *node = fr_jinja_parser_node(p, FR_NODE_MACRO, line);
    fr_jinja_routine *routine = fr_jinja_parser_take(p, 1, sizeof *routine);
    if (!routine) return node;
    node->macro.routine = routine;
    node->macro.target = fr_jinja_parser_name_node(p, fr_jinja_parser_name(p), line);
    routine->name = &node->macro.target->variable.name->string;
    parse_signature(p, node, routine);
    routine->body = parse_whole_block(p, node, "endmacro");
    return node;
}

static fr_jinja_node *parse_call_block(fr_jinja_parser *p, uint32_t line) {
    static const fr_jinja_string caller = {.bytes = "caller", .length = 6, .ascii = true};
    fr_jinja_node *node = fr_jinja_parser_node(p, FR_NODE_CALL_BLOCK, line);
    fr_jinja_routine *routine = fr_jinja_parser_take(p, 1, sizeof *routine);
    if (!routine) return node;
    node->macro.routine = routine;
    routine->name = &caller;
    if (is(p, FR_LEX_LEFT_PARENTHESIS)) parse_signature(p, node, routine);
    node->macro.call = fr_jinja_parser_below(p, node, fr_jinja_parse_expression(p));
    if (node->macro.call->kind != FR_NODE_CALL) fr_jinja_parser_refuse(p, line, "a call block must call a macro");
    routine->body = parse_whole_block(p, node, "endcall");
    return node;
}

static fr_jinja_node *parse_filter_block(fr_jinja_parser *p, uint32_t line) {
    fr_jinja_node *node = fr_jinja_parser_node(p, FR_NODE_FILTER_BLOCK, line);
    node->block.filter = fr_jinja_parser_below(p, node, fr_jinja_parse_filters(p, NULL, true));
    node->block.body = parse_whole_block(p, node, "endfilter");
    return node;
}

static fr_jinja_node *parse_with(fr_jinja_parser *p, uint32_t line) {
    fr_jinja_node *node = fr_jinja_parser_node(p, FR_NODE_WITH, line);
    while (ok(p) && !is(p, FR_LEX_BLOCK_END) && !is(p, FR_LEX_COLON)) {
        if (node->with.targets.count > 0) expect(p, FR_LEX_COMMA, "\",\"");
        fr_jinja_parser_append(p, &node->with.targets, fr_jinja_parser_below(p, node, parse_target(p, false, NULL)));
        expect(p, FR_LEX_ASSIGN, "\"=\"");
        fr_jinja_parser_append(p, &node->with.values, fr_jinja_parser_below(p, node, fr_jinja_parse_expression(p)));
    }
    node->with.body = parse_whole_block(p, node, "endwith");
    return node;
}

static fr_jinja_node *parse_print(fr_jinja_parser *p, uint32_t line) {
    fr_jinja_node *node = fr_jinja_parser_node(p, FR_NODE_OUTPUT, line);
    while (ok(p) && !is(p, FR_LEX_BLOCK_END)) {
        if (node->items.count > 0) expect(p, FR_LEX_COMMA, "\",\"");
        fr_jinja_parser_append(p, &node->items, fr_jinja_parser_below(p, node, fr_jinja_parse_expression(p)));
    }
    return node;
}

/* Parses a generation block. As in transformers, it becomes a call block in which nothing is called: the block itself
 * is run. */
static fr_jinja_node *parse_generation(fr_jinja_parser *p, uint32_t line) {
    fr_jinja_node *node = fr_jinja_parser_node(p, FR_NODE_CALL_BLOCK, line);
    fr_jinja_routine *routine = fr_jinja_parser_take(p, 1, sizeof *routine);
    if (!routine) return node;
    node->macro.routine = routine;
    routine->name = fr_jinja_parser_string(p, "generation", strlen("generation"));
    routine->body = parse_whole_block(p, node, "endgeneration");
    return node;
}

static fr_jinja_node *parse_break(fr_jinja_parser *p, uint32_t line) {
    return fr_jinja_parser_node(p, FR_NODE_BREAK, line);
}

static fr_jinja_node *parse_continue(fr_jinja_parser *p, uint32_t line) {
    return fr_jinja_parser_node(p, FR_NODE_CONTINUE, line);
}

static fr_jinja_node *refuse_other_templates(fr_jinja_parser *p, uint32_t line) {
    fr_jinja_parser_refuse(p, line,
                           "include, import, from, extends and block are not for chat templates, which stand alone");
    return &p->broken;
}

/* Parses a statement after its "{%". */
static fr_jinja_node *parse_statement(fr_jinja_parser *p) {
    static const struct {
        const char *word;
        fr_jinja_node *(*parse)(fr_jinja_parser *p, uint32_t line);
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
    fr_jinja_parser_unexpected(p, "a statement");
    return &p->broken;
}

static bool at_any(const fr_jinja_parser *p, const char *const *words) {
    for (; words && *words; words++)
        if (is_word(p, *words)) return true;
    return false;
}

static void append_output(fr_jinja_parser *p, fr_jinja_nodes *body, fr_jinja_node **output, fr_jinja_node *item) {
    if (!*output) {
        *output = fr_jinja_parser_node(p, FR_NODE_OUTPUT, item->line);
        fr_jinja_parser_append(p, body, *output);
    }
    fr_jinja_parser_append(p, &(*output)->items, fr_jinja_parser_below(p, *output, item));
}

/* Parses a body. It ends at the template's end, or before a tag that begins with one of the words in `ends`. That word
 * is then the current token. */
static fr_jinja_nodes parse_body(fr_jinja_parser *p, const char *const *ends) {
    fr_jinja_nodes body = {0};
    fr_jinja_node *output = NULL; /* items that are printed one after the other, without a statement between them */
    while (ok(p) && !is(p, FR_LEX_END)) {
        if (is(p, FR_LEX_TEXT)) {
            const fr_jinja_string *text = fr_jinja_parser_string(p, p->token.bytes, p->token.length);
            append_output(p, &body, &output, fr_jinja_parser_constant(p, fr_jinja_of_string(text), p->token.line));
            fr_jinja_parser_next(p);
        } else if (skip(p, FR_LEX_PRINT_BEGIN)) {
            append_output(p, &body, &output, fr_jinja_parse_tuple(p, fr_jinja_parse_expression, false, NULL));
            expect(p, FR_LEX_PRINT_END, "\"}}\"");
        } else {
            expect(p, FR_LEX_BLOCK_BEGIN, "\"{%\"");
            if (at_any(p, ends)) return body;
            fr_jinja_parser_append(p, &body, parse_statement(p));
            expect(p, FR_LEX_BLOCK_END, "\"%}\"");
            output = NULL;
        }
    }
    return body;
}

fr_status fr_template_parse(fr_template *template) {
    fr_jinja_parser p = {.template = template, .unnamed = {.string = {.bytes = "", .ascii = true}}};
    FR_TRY(fr_jinja_lexer_open(&p.lexer, template));
    fr_jinja_parser_keep(&p, fr_jinja_lexer_next(&p.lexer, &p.ahead));
    fr_jinja_parser_next(&p);
    template->routine.body = parse_body(&p, NULL);
    return p.status;
}
