/* A template's source as tokens.
 *
 * In: the source. Out: text between tags (white space stripped as trim_blocks, lstrip_blocks, - and + say), and what
 * stands inside the tags; comments are gone and raw blocks are text. */
#ifndef FR_SRC_TEMPLATE_LEX_H
#define FR_SRC_TEMPLATE_LEX_H

#include "src/jinja/template_tree.h"

typedef enum fr_jinja_token_kind {
    FR_TOKEN_END,
    FR_TOKEN_TEXT, /* between tags */
    FR_TOKEN_BLOCK_BEGIN,
    FR_TOKEN_BLOCK_END,
    FR_TOKEN_PRINT_BEGIN,
    FR_TOKEN_PRINT_END,
    FR_TOKEN_NAME,
    FR_TOKEN_STRING,
    FR_TOKEN_INT,
    FR_TOKEN_FLOAT,
    FR_TOKEN_POWER,
    FR_TOKEN_FLOOR_DIVIDE,
    FR_TOKEN_EQUAL,
    FR_TOKEN_UNEQUAL,
    FR_TOKEN_GREATER_EQUAL,
    FR_TOKEN_LESS_EQUAL,
    FR_TOKEN_GREATER,
    FR_TOKEN_LESS,
    FR_TOKEN_ADD,
    FR_TOKEN_SUBTRACT,
    FR_TOKEN_MULTIPLY,
    FR_TOKEN_DIVIDE,
    FR_TOKEN_REMAINDER,
    FR_TOKEN_TILDE,
    FR_TOKEN_LEFT_BRACKET,
    FR_TOKEN_RIGHT_BRACKET,
    FR_TOKEN_LEFT_PARENTHESIS,
    FR_TOKEN_RIGHT_PARENTHESIS,
    FR_TOKEN_LEFT_BRACE,
    FR_TOKEN_RIGHT_BRACE,
    FR_TOKEN_ASSIGN,
    FR_TOKEN_DOT,
    FR_TOKEN_COLON,
    FR_TOKEN_PIPE,
    FR_TOKEN_COMMA,
    FR_TOKEN_SEMICOLON
} fr_jinja_token_kind;

typedef struct fr_jinja_token {
    fr_jinja_token_kind kind;
    uint32_t line;
    const char *bytes; /* of the source; of a string what it means */
    size_t length;
    int64_t integer;
    double real;
} fr_jinja_token;

typedef struct fr_jinja_lexer {
    fr_template *template;
    const char *source, *end, *at; /* its line ends are \n */
    uint32_t line;                 /* of `at` */
    bool in_block, in_print;       /* which tag `at` is inside of */
    char pending;                  /* the tag that opened behind the text that was given last */
    char open[FR_TEMPLATE_MAX_NESTING];
    size_t open_count; /* brackets */
} fr_jinja_lexer;

fr_status fr_jinja_lexer_open(fr_jinja_lexer *lexer, fr_template *template);

/* The next token; END again and again at the end. */
fr_status fr_jinja_lexer_next(fr_jinja_lexer *lexer, fr_jinja_token *token);

#endif
