/* Declares what the parts of the parser share: tokens, nodes in the template's memory, and the first failure.
 *
 * After the first failure, which is kept, the current token is the end of the source. Everything that is parsed
 * afterwards is empty, and loops end because ok() is false. */
#ifndef FR_SRC_LANGUAGE_JINJA_TEMPLATE_PARSER_H
#define FR_SRC_LANGUAGE_JINJA_TEMPLATE_PARSER_H

#include "src/language/jinja/template_lex.h"

typedef struct fr_jinja_parser {
    fr_template *template;
    fr_jinja_lexer lexer;
    fr_jinja_token token, ahead; /* the current token, and the one after it */
    fr_status status;
    unsigned nesting;      /* number of blocks and expressions that contain the current token */
    fr_jinja_name **names; /* a hash table of all names; each slot is a list */
    size_t name_count, list_count;
    /* `broken` and `unnamed` are used in place of a node or a name when memory has run out */
    fr_jinja_node broken;
    fr_jinja_name unnamed;
} fr_jinja_parser;

/* Keep a failure. If an earlier failure was kept, they do nothing. */
void fr_jinja_parser_keep(fr_jinja_parser *p, fr_status status);
void fr_jinja_parser_refuse(fr_jinja_parser *p, uint32_t line, const char *what);

/* Fails because the current token is not the expected one. */
void fr_jinja_parser_unexpected(fr_jinja_parser *p, const char *expected);

/* Takes memory. Gives NULL after a failure. */
void *fr_jinja_parser_take(fr_jinja_parser *p, size_t count, size_t item);

/* Make nodes; never NULL. */
fr_jinja_node *fr_jinja_parser_node(fr_jinja_parser *p, fr_jinja_node_kind kind, uint32_t line);
fr_jinja_node *fr_jinja_parser_constant(fr_jinja_parser *p, fr_jinja_value value, uint32_t line);
fr_jinja_node *fr_jinja_parser_name_node(fr_jinja_parser *p, fr_jinja_name *name, uint32_t line);
const fr_jinja_string *fr_jinja_parser_string(fr_jinja_parser *p, const char *bytes, size_t length);

/* Makes `child` a child of `node`, and returns the child. Nesting is limited, so functions that walk a tree may
 * recurse. */
fr_jinja_node *fr_jinja_parser_below(fr_jinja_parser *p, fr_jinja_node *node, fr_jinja_node *child);
void fr_jinja_parser_append(fr_jinja_parser *p, fr_jinja_nodes *nodes, fr_jinja_node *node);

/* Makes the next token the current one. */
void fr_jinja_parser_next(fr_jinja_parser *p);

/* Gives the name that is the current token, and goes to the next token. Fails if the current token is not a name. All
 * occurrences of a word have the same fr_jinja_name. */
fr_jinja_name *fr_jinja_parser_name(fr_jinja_parser *p);

static inline bool ok(const fr_jinja_parser *p) {
    return p->status == FR_OK;
}

/* Goes one level deeper. Each recursion of the parser calls it, so that the use of the C stack is limited. */
static inline bool enter(fr_jinja_parser *p) {
    if (++p->nesting > FR_TEMPLATE_NESTING_MAX && ok(p))
        fr_jinja_parser_keep(
            p, fr_template_fail(p->template, p->token.line, "nested deeper than %d", FR_TEMPLATE_NESTING_MAX));
    return ok(p);
}

static inline void leave(fr_jinja_parser *p) {
    p->nesting--;
}

static inline bool is(const fr_jinja_parser *p, fr_jinja_token_kind kind) {
    return p->token.kind == kind;
}

static inline bool token_is_word(const fr_jinja_token *token, const char *word) {
    return token->kind == FR_LEX_NAME && token->length == strlen(word) &&
           memcmp(token->bytes, word, token->length) == 0;
}

static inline bool is_word(const fr_jinja_parser *p, const char *word) {
    return token_is_word(&p->token, word);
}

static inline bool skip(fr_jinja_parser *p, fr_jinja_token_kind kind) {
    bool skipped = is(p, kind);
    if (skipped) fr_jinja_parser_next(p);
    return skipped;
}

static inline bool skip_word(fr_jinja_parser *p, const char *word) {
    bool skipped = is_word(p, word);
    if (skipped) fr_jinja_parser_next(p);
    return skipped;
}

static inline void expect(fr_jinja_parser *p, fr_jinja_token_kind kind, const char *what) {
    if (!skip(p, kind)) fr_jinja_parser_unexpected(p, what);
}

/* fr_jinja_parse_expression parses an expression, which may have the form a if b else c. fr_jinja_parse_or parses an
 * expression without `if`. fr_jinja_parse_primary parses a name, a constant or an expression in brackets
 * (template_parse_expression.c). */
fr_jinja_node *fr_jinja_parse_expression(fr_jinja_parser *p);
fr_jinja_node *fr_jinja_parse_or(fr_jinja_parser *p);
fr_jinja_node *fr_jinja_parse_primary(fr_jinja_parser *p);

/* Parses items such as a, b, c. If there is a comma, the items are a tuple; otherwise the only item is the result.
 * Without parentheses, the items end at the end of a tag, or before the word `end`. */
fr_jinja_node *fr_jinja_parse_tuple(fr_jinja_parser *p, fr_jinja_node *parse(fr_jinja_parser *), bool in_parentheses,
                                    const char *end);

/* Parses filters such as |a|b(c). inside: the filters are those of a filter block; then the first filter has no bar
 * before it, and `subject` is NULL. */
fr_jinja_node *fr_jinja_parse_filters(fr_jinja_parser *p, fr_jinja_node *subject, bool inside);

#endif
