/* Describes the tree of a compiled template. The parser and the scope resolver write its nodes, and renders read
 * them. */
#ifndef FR_SRC_LANGUAGE_JINJA_TEMPLATE_TREE_H
#define FR_SRC_LANGUAGE_JINJA_TEMPLATE_TREE_H

#include "src/language/jinja/bump.h"
#include "src/language/jinja/template_value.h"

typedef struct fr_template fr_template;

/* Limit on nested blocks and expressions. A chain such as a + b + c is nested, too: (a + b) + c. */
#define FR_TEMPLATE_NESTING_MAX 200

typedef enum fr_jinja_node_kind {
    /* expressions */
    FR_NODE_CONSTANT,
    FR_NODE_NAME,  /* an expression, or a target */
    FR_NODE_TUPLE, /* an expression, or a target */
    FR_NODE_LIST,
    FR_NODE_DICT, /* items: a key, its value, the next key, its value, and so on */
    FR_NODE_AND,
    FR_NODE_OR,
    FR_NODE_NOT,
    FR_NODE_NEGATIVE,
    FR_NODE_POSITIVE,
    FR_NODE_BINARY,
    FR_NODE_CONCAT,
    FR_NODE_COMPARE,
    FR_NODE_CONDITION, /* `yes` if `test` else `no` */
    FR_NODE_ATTRIBUTE,
    FR_NODE_ITEM,
    FR_NODE_SLICE, /* only between brackets */
    FR_NODE_CALL,
    FR_NODE_FILTER,
    FR_NODE_TEST,
    FR_NODE_MEMBER, /* the target namespace.attribute */
    /* statements */
    FR_NODE_OUTPUT,
    FR_NODE_IF,
    FR_NODE_FOR,
    FR_NODE_SET,
    FR_NODE_SET_BLOCK,
    FR_NODE_MACRO,
    FR_NODE_CALL_BLOCK,
    FR_NODE_FILTER_BLOCK,
    FR_NODE_WITH,
    FR_NODE_BREAK,
    FR_NODE_CONTINUE
} fr_jinja_node_kind;

typedef enum fr_jinja_operator {
    FR_OPERATOR_ADD,
    FR_OPERATOR_SUBTRACT,
    FR_OPERATOR_MULTIPLY,
    FR_OPERATOR_DIVIDE,
    FR_OPERATOR_FLOOR_DIVIDE,
    FR_OPERATOR_REMAINDER,
    FR_OPERATOR_POWER,
    FR_OPERATOR_EQUAL,
    FR_OPERATOR_UNEQUAL,
    FR_OPERATOR_LESS,
    FR_OPERATOR_LESS_EQUAL,
    FR_OPERATOR_GREATER,
    FR_OPERATOR_GREATER_EQUAL,
    FR_OPERATOR_IN,
    FR_OPERATOR_NOT_IN
} fr_jinja_operator;

typedef struct fr_jinja_node fr_jinja_node;

typedef struct fr_jinja_nodes {
    fr_jinja_node **items;
    size_t count, capacity;
} fr_jinja_nodes;

/* An identifier. All its occurrences in a template have the same fr_jinja_name. */
typedef struct fr_jinja_name {
    fr_jinja_string string;
    struct fr_jinja_name *next;     /* the next name with the same hash */
    struct fr_jinja_symbol *symbol; /* used while scopes are resolved: the variable that the name denotes at present */
} fr_jinja_name;

/* The place of a variable. It is slot number `slot` in a frame: this routine's frame if hops is 0, the frame of the
 * routine that contains it if hops is 1, and so on. */
typedef struct fr_jinja_place {
    uint32_t hops, slot;
} fr_jinja_place;

/* Says from where a scope's variable gets its first value each time the scope is entered. */
typedef enum fr_jinja_load_from { FR_LOAD_NOTHING, FR_LOAD_CONTEXT, FR_LOAD_OUTER } fr_jinja_load_from;

typedef struct fr_jinja_load {
    fr_jinja_load_from from;
    uint32_t slot;
    fr_jinja_place outer;
    const fr_jinja_string *name;
} fr_jinja_load;

typedef struct fr_jinja_scope {
    fr_jinja_load *loads;
    size_t count;
} fr_jinja_scope;

typedef struct fr_jinja_call_nodes {
    fr_jinja_nodes positional;
    fr_jinja_nodes keywords;       /* values of the keyword arguments */
    const fr_jinja_string **names; /* names of the keyword arguments */
    fr_jinja_node *star, *star_star;
} fr_jinja_call_nodes;

/* A body with a frame of its own: the body of a macro, of a call block, of a recursive loop, or of the template itself.
 * Its variables have slots in that frame; so have the variables of the scopes inside it. */
typedef struct fr_jinja_routine {
    const fr_jinja_string *name;
    fr_jinja_node **parameters; /* nodes of names */
    size_t parameter_count;
    fr_jinja_nodes defaults; /* defaults of the last parameters */
    fr_jinja_nodes body;
    fr_jinja_scope scope;
    uint32_t slots;
    bool takes_caller, takes_keywords, takes_rest;
    bool caller_declared; /* `caller` is one of the parameters */
    uint32_t caller_slot, keywords_slot, rest_slot;
} fr_jinja_routine;

typedef struct fr_jinja_if_branch {
    fr_jinja_node *test; /* NULL: the else branch */
    fr_jinja_nodes body;
} fr_jinja_if_branch;

typedef struct fr_jinja_for_node {
    fr_jinja_node *target, *sequence, *test;
    /* a copy of `target`, whose names belong to test_scope, because the test runs in a scope of its own */
    fr_jinja_node *test_target;
    fr_jinja_nodes body, otherwise;
    fr_jinja_scope scope, test_scope, otherwise_scope;
    /* the routine in whose frame the scopes' variables are; NULL: the loop is not recursive */
    fr_jinja_routine *recursive;
    bool has_loop;
    uint32_t loop_slot;
} fr_jinja_for_node;

struct fr_jinja_node {
    uint8_t kind;     /* fr_jinja_node_kind */
    uint8_t operator; /* fr_jinja_operator; only of FR_NODE_BINARY */
    uint16_t nesting; /* number of levels of nodes, from this node down to the deepest one */
    uint32_t line;
    union {
        fr_jinja_value constant;
        struct {
            fr_jinja_name *name;
            fr_jinja_place place;
            bool stored; /* the node is a target or a parameter: a value is stored in it */
        } variable;
        struct {
            fr_jinja_node *left, *right;
        } pair;
        fr_jinja_node *operand;
        fr_jinja_nodes items;
        struct {
            fr_jinja_node *first;
            fr_jinja_nodes others;
            uint8_t *operators;
        } compare;
        struct {
            fr_jinja_node *test, *yes, *no;
        } condition;
        struct {
            fr_jinja_node *object;
            const fr_jinja_string *name;
        } attribute;
        struct {
            fr_jinja_node *object, *index;
        } item;
        struct {
            fr_jinja_node *start, *stop, *step;
        } slice;
        struct {
            fr_jinja_node *callee;
            fr_jinja_call_nodes *arguments;
        } call;
        struct {                    /* filters and tests */
            fr_jinja_node *subject; /* NULL in a filter block, where the subject is the body's text */
            const fr_jinja_string *name;
            const struct fr_jinja_function *function; /* NULL: no filter or test has that name */
            fr_jinja_call_nodes *arguments;
        } filter;
        struct {
            fr_jinja_name *name;
            fr_jinja_place place;
            const fr_jinja_string *attribute;
        } member;
        struct {
            fr_jinja_if_branch *branches;
            size_t count;
        } choice;
        fr_jinja_for_node *loop;
        struct {
            fr_jinja_node *target, *value;
        } set;
        struct {                            /* set and filter blocks */
            fr_jinja_node *target, *filter; /* either may be NULL */
            fr_jinja_nodes body;
            fr_jinja_scope scope;
        } block;
        struct {
            fr_jinja_node *target; /* the macro's name; NULL in a call block */
            /* the call of a call block; NULL in a generation block, which has no call */
            fr_jinja_node *call;
            fr_jinja_routine *routine;
        } macro;
        struct {
            fr_jinja_nodes targets, values, body;
            fr_jinja_scope scope;
        } with;
    };
};

struct fr_template {
    fr_jinja_bump memory;
    char *source; /* the source as it was given */
    size_t length;
    const char *name;
    fr_jinja_routine routine;
};

/* Parse the source of a template, and then find the places of its names. The template must have its source, name and
 * memory. */
fr_status fr_template_parse(fr_template *template);
fr_status fr_template_resolve(fr_template *template);

/* Fails with FR_INPUT and the line "NAME:LINE: REASON". It is called if the template's text can't be used. */
fr_status fr_template_fail(const fr_template *template, uint32_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Fails because the memory of the template or of a render refused a piece. Either the limit was reached, or the system
 * had no memory. */
fr_status fr_template_fail_memory(const fr_template *template, uint32_t line, const fr_jinja_bump *memory);

#endif
