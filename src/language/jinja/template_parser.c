/* Handles the parser's tokens, nodes and failures (template_parser.h). */
#include "src/language/jinja/template_parser.h"

#include "src/language/jinja/template_text.h"

/* ---------------------------------------------------------------------------------------------- failures and memory */

void fr_jinja_parser_keep(fr_jinja_parser *p, fr_status status) {
    if (!ok(p) || status == FR_OK) return;
    p->status = status;
    p->token = p->ahead = (fr_jinja_token){.kind = FR_LEX_END, .line = p->token.line, .bytes = ""};
}

void fr_jinja_parser_refuse(fr_jinja_parser *p, uint32_t line, const char *what) {
    if (ok(p)) fr_jinja_parser_keep(p, fr_template_fail(p->template, line, "%s", what));
}

void *fr_jinja_parser_take(fr_jinja_parser *p, size_t count, size_t item) {
    void *piece = ok(p) ? fr_jinja_bump_take(&p->template->memory, count, item) : NULL;
    if (!piece && ok(p))
        fr_jinja_parser_keep(p, fr_template_fail_memory(p->template, p->token.line, &p->template->memory));
    return piece;
}

fr_jinja_node *fr_jinja_parser_node(fr_jinja_parser *p, fr_jinja_node_kind kind, uint32_t line) {
    fr_jinja_node *node = fr_jinja_parser_take(p, 1, sizeof *node);
    if (!node) node = &p->broken;
    *node = (fr_jinja_node){.kind = (uint8_t)kind, .line = line, .nesting = 1};
    return node;
}

fr_jinja_node *fr_jinja_parser_below(fr_jinja_parser *p, fr_jinja_node *node, fr_jinja_node *child) {
    if (!child || child->nesting < node->nesting) return child;
    node->nesting = child->nesting + 1;
    if (node->nesting > FR_TEMPLATE_NESTING_MAX && ok(p))
        fr_jinja_parser_keep(
            p, fr_template_fail(p->template, node->line, "nested deeper than %d", FR_TEMPLATE_NESTING_MAX));
    return child;
}

void fr_jinja_parser_append(fr_jinja_parser *p, fr_jinja_nodes *nodes, fr_jinja_node *node) {
    if (nodes->count == nodes->capacity) {
        size_t capacity = nodes->capacity ? 2 * nodes->capacity : 4;
        fr_jinja_node **items = fr_jinja_parser_take(p, capacity, sizeof *items);
        if (!items) return;
        if (nodes->count > 0) memcpy(items, nodes->items, nodes->count * sizeof *items);
        nodes->items = items;
        nodes->capacity = capacity;
    }
    nodes->items[nodes->count++] = node;
}

/* ----------------------------------------------------------------------------------------------------------- tokens */

void fr_jinja_parser_next(fr_jinja_parser *p) {
    if (!ok(p)) return;
    p->token = p->ahead;
    fr_jinja_parser_keep(p, fr_jinja_lexer_next(&p->lexer, &p->ahead));
}

void fr_jinja_parser_unexpected(fr_jinja_parser *p, const char *expected) {
    static const char *const what[] = {
        [FR_LEX_END] = "the end of the template",
        [FR_LEX_TEXT] = "text",
        [FR_LEX_BLOCK_BEGIN] = "\"{%\"",
        [FR_LEX_BLOCK_END] = "\"%}\"",
        [FR_LEX_PRINT_BEGIN] = "\"{{\"",
        [FR_LEX_PRINT_END] = "\"}}\"",
        [FR_LEX_STRING] = "a string",
    };
    const fr_jinja_token *token = &p->token;
    const char *name = token->kind <= FR_LEX_STRING ? what[token->kind] : NULL;
    if (!ok(p)) return;
    if (name)
        fr_jinja_parser_keep(p, fr_template_fail(p->template, token->line, "expected %s, not %s", expected, name));
    else
        fr_jinja_parser_keep(p, fr_template_fail(p->template, token->line, "expected %s, not \"%.*s\"", expected,
                                                 token->length < 80 ? (int)token->length : 80, token->bytes));
}

/* ------------------------------------------------------------------------------------------------------------ names */

const fr_jinja_string *fr_jinja_parser_string(fr_jinja_parser *p, const char *bytes, size_t length) {
    static const fr_jinja_string empty = {.bytes = "", .ascii = true};
    fr_jinja_string *string = fr_jinja_parser_take(p, 1, sizeof *string);
    if (!string) return &empty;
    *string = (fr_jinja_string){.bytes = bytes, .length = length, .ascii = fr_jinja_all_ascii(bytes, length)};
    return string;
}

static uint32_t hash_of(const char *bytes, size_t length) {
    uint32_t hash = 0;
    for (size_t i = 0; i < length; i++) hash = hash * 31 + (unsigned char)bytes[i];
    return hash;
}

/* Doubles the hash table of names. It is called when there are as many names as lists. */
static void grow_names(fr_jinja_parser *p) {
    size_t count = p->list_count ? 2 * p->list_count : 64;
    fr_jinja_name **lists = fr_jinja_parser_take(p, count, sizeof *lists);
    if (!lists) return;
    for (size_t i = 0; i < p->list_count; i++) {
        for (fr_jinja_name *name = p->names[i], *next; name; name = next) {
            fr_jinja_name **list = &lists[hash_of(name->string.bytes, name->string.length) & (count - 1)];
            next = name->next;
            name->next = *list;
            *list = name;
        }
    }
    p->names = lists;
    p->list_count = count;
}

/* Gives the name for a word. Adds the name if it is new. All occurrences of a word have the same fr_jinja_name. */
static fr_jinja_name *intern(fr_jinja_parser *p, const fr_jinja_token *token) {
    if (p->name_count == p->list_count) grow_names(p);
    if (!ok(p)) return &p->unnamed;
    fr_jinja_name **list = &p->names[hash_of(token->bytes, token->length) & (p->list_count - 1)];
    for (fr_jinja_name *name = *list; name; name = name->next)
        if (name->string.length == token->length && memcmp(name->string.bytes, token->bytes, token->length) == 0)
            return name;
    fr_jinja_name *name = fr_jinja_parser_take(p, 1, sizeof *name);
    if (!name) return &p->unnamed;
    bool ascii = fr_jinja_all_ascii(token->bytes, token->length);
    *name = (fr_jinja_name){.string = {.bytes = token->bytes, .length = token->length, .ascii = ascii}, .next = *list};
    *list = name;
    p->name_count++;
    return name;
}

fr_jinja_name *fr_jinja_parser_name(fr_jinja_parser *p) {
    if (!is(p, FR_LEX_NAME)) fr_jinja_parser_unexpected(p, "a name");
    fr_jinja_name *name = intern(p, &p->token);
    fr_jinja_parser_next(p);
    return name;
}

fr_jinja_node *fr_jinja_parser_name_node(fr_jinja_parser *p, fr_jinja_name *name, uint32_t line) {
    fr_jinja_node *node = fr_jinja_parser_node(p, FR_NODE_NAME, line);
    node->variable.name = name;
    return node;
}

fr_jinja_node *fr_jinja_parser_constant(fr_jinja_parser *p, fr_jinja_value value, uint32_t line) {
    fr_jinja_node *node = fr_jinja_parser_node(p, FR_NODE_CONSTANT, line);
    node->constant = value;
    return node;
}
