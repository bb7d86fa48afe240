/* What the parts of the parser share: tokens, nodes in the template's memory, and the first failure.
 *
 * A failure sticks: the first is kept, the current token becomes the end, what is parsed then is nothing, and loops end
 * because ok() says so. */
#ifndef FR_SRC_TEMPLATE_PARSER_H
#define FR_SRC_TEMPLATE_PARSER_H

#include "src/jinja/template_lex.h"

typedef struct fr_parser {
    fr_template *template;
    fr_lexer lexer;
    fr_token token, ahead; /* the current one, and the one behind it */
    fr_status status;
    unsigned nesting; /* of blocks and expressions being parsed */
    fr_name **names;  /* in lists, by their hash */
    size_t name_count, list_count;
    fr_node broken; /* what can't be had is written into these */
    fr_name unnamed;
} fr_parser;

/* Keeps a failure, if it is the first. */
void fr_parser_keep(fr_parser *p, fr_status status);
void fr_parser_refuse(fr_parser *p, uint32_t line, const char *what);

/* Fails at the current token, which is not what was expected. */
void fr_parser_unexpected(fr_parser *p, const char *expected);

/* NULL after a failure. */
void *fr_parser_take(fr_parser *p, size_t count, size_t item);

/* Never NULL. */
fr_node *fr_parser_node(fr_parser *p, fr_node_kind kind, uint32_t line);
fr_node *fr_parser_constant(fr_parser *p, fr_value value, uint32_t line);
fr_node *fr_parser_name_node(fr_parser *p, fr_name *name, uint32_t line);
const fr_string *fr_parser_string(fr_parser *p, const char *bytes, size_t length);

/* The child, which lies below the node: how deep that nests is limited, so that who walks a tree may recurse. */
fr_node *fr_parser_below(fr_parser *p, fr_node *node, fr_node *child);
void fr_parser_append(fr_parser *p, fr_nodes *nodes, fr_node *node);

/* The next token becomes the current one. */
void fr_parser_next(fr_parser *p);

/* The current token, which must be a name; one fr_name for all occurrences of a word. */
fr_name *fr_parser_name(fr_parser *p);

static inline bool ok(const fr_parser *p) {
    return p->status == FR_OK;
}

/* Each level of recursion here enters; the parser's own stack is limited with it. */
static inline bool enter(fr_parser *p) {
    if (++p->nesting > FR_TEMPLATE_MAX_NESTING && ok(p))
        fr_parser_keep(p,
                       fr_template_fail(p->template, p->token.line, "nested deeper than %d", FR_TEMPLATE_MAX_NESTING));
    return ok(p);
}

static inline void leave(fr_parser *p) {
    p->nesting--;
}

static inline bool is(const fr_parser *p, fr_token_kind kind) {
    return p->token.kind == kind;
}

static inline bool token_is_word(const fr_token *token, const char *word) {
    return token->kind == FR_TOKEN_NAME && token->length == strlen(word) &&
           memcmp(token->bytes, word, token->length) == 0;
}

static inline bool is_word(const fr_parser *p, const char *word) {
    return token_is_word(&p->token, word);
}

static inline bool skip(fr_parser *p, fr_token_kind kind) {
    bool skipped = is(p, kind);
    if (skipped) fr_parser_next(p);
    return skipped;
}

static inline bool skip_word(fr_parser *p, const char *word) {
    bool skipped = is_word(p, word);
    if (skipped) fr_parser_next(p);
    return skipped;
}

static inline void expect(fr_parser *p, fr_token_kind kind, const char *what) {
    if (!skip(p, kind)) fr_parser_unexpected(p, what);
}

/* template_parse_expression.c: a if b else c; what may stand before an if; names, constants and brackets. */
fr_node *fr_parse_expression(fr_parser *p);
fr_node *fr_parse_or(fr_parser *p);
fr_node *fr_parse_primary(fr_parser *p);

/* a, b, c: a tuple if there is a comma, otherwise the one thing. Without parentheses it ends where a tag does, or
 * before the word `end`. */
fr_node *fr_parse_tuple(fr_parser *p, fr_node *parse(fr_parser *), bool in_parentheses, const char *end);

/* |a|b(c), or without the first bar at the begin of a filter block. subject: NULL in a block. */
fr_node *fr_parse_filters(fr_parser *p, fr_node *subject, bool inside);

#endif
