/* Splits a template's source into tokens.
 *
 * In: the source. Out: the text between tags, and the tokens in tags. White space of the text is stripped by the rules
 * of trim_blocks, lstrip_blocks, - and +. Comments are removed, and raw blocks become text. */
#ifndef FR_SRC_LANGUAGE_JINJA_TEMPLATE_LEX_H
#define FR_SRC_LANGUAGE_JINJA_TEMPLATE_LEX_H

#include "src/language/jinja/template_tree.h"

typedef enum fr_jinja_token_kind {
    FR_LEX_END,
    FR_LEX_TEXT, /* text between tags */
    FR_LEX_BLOCK_BEGIN,
    FR_LEX_BLOCK_END,
    FR_LEX_PRINT_BEGIN,
    FR_LEX_PRINT_END,
    FR_LEX_NAME,
    FR_LEX_STRING,
    FR_LEX_INT,
    FR_LEX_FLOAT,
    FR_LEX_POWER,
    FR_LEX_FLOOR_DIVIDE,
    FR_LEX_EQUAL,
    FR_LEX_UNEQUAL,
    FR_LEX_GREATER_EQUAL,
    FR_LEX_LESS_EQUAL,
    FR_LEX_GREATER,
    FR_LEX_LESS,
    FR_LEX_ADD,
    FR_LEX_SUBTRACT,
    FR_LEX_MULTIPLY,
    FR_LEX_DIVIDE,
    FR_LEX_REMAINDER,
    FR_LEX_TILDE,
    FR_LEX_LEFT_BRACKET,
    FR_LEX_RIGHT_BRACKET,
    FR_LEX_LEFT_PARENTHESIS,
    FR_LEX_RIGHT_PARENTHESIS,
    FR_LEX_LEFT_BRACE,
    FR_LEX_RIGHT_BRACE,
    FR_LEX_ASSIGN,
    FR_LEX_DOT,
    FR_LEX_COLON,
    FR_LEX_PIPE,
    FR_LEX_COMMA,
    FR_LEX_SEMICOLON
} fr_jinja_token_kind;

typedef struct fr_jinja_token {
    fr_jinja_token_kind kind;
    uint32_t line;
    const char *bytes; /* the token's bytes in the source; for a string, its converted text */
    size_t length;
    int64_t integer;
    double real;
} fr_jinja_token;

typedef struct fr_jinja_lexer {
    fr_template *template;
    /* source: a copy in which all line ends are \n; at: the next byte to be read */
    const char *source, *end, *at;
    uint32_t line; /* the line of `at` */
    /* in_block: `at` is in a statement's tag; in_print: `at` is in a tag that prints */
    bool in_block, in_print;
    char pending; /* kind of the tag after the text that was taken last; 0: no tag follows it */
    char open[FR_TEMPLATE_NESTING_MAX];
    size_t open_count; /* number of brackets that are open */
} fr_jinja_lexer;

fr_status fr_jinja_lexer_open(fr_jinja_lexer *lexer, fr_template *template);

/* Takes the next token. At the end of the source, each call gives FR_LEX_END. */
fr_status fr_jinja_lexer_next(fr_jinja_lexer *lexer, fr_jinja_token *token);

#endif
