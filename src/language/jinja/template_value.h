/* Defines the values with which templates compute. They are Python's values, as far as Jinja shows them, and each is
 * marked as trusted or foreign.
 *
 * A value has 16 bytes and is passed by value. The memory to which it points belongs to a render; that of a constant
 * belongs to a template. This memory never changes, except in namespaces, loops, cyclers, joiners and iterators, which
 * have a state.
 *
 * Foreign means that a value came from messages, tools or variables. Trusted means that the template itself wrote it.
 * Each byte of a string has its own mark; any other value has one mark. A text that is made of foreign and trusted
 * parts keeps the marks of its parts. Any other value that is made of both is foreign. */
#ifndef FR_SRC_LANGUAGE_JINJA_TEMPLATE_VALUE_H
#define FR_SRC_LANGUAGE_JINJA_TEMPLATE_VALUE_H

#include <string.h>

#include "forerun.h"

typedef enum fr_jinja_kind {
    FR_KIND_MISSING, /* no value: an argument that was not given, or a variable that is not set yet */
    FR_KIND_UNDEFINED,
    FR_KIND_NONE,
    FR_KIND_BOOL,
    FR_KIND_INT,
    FR_KIND_WIDE, /* an integer beyond 64 bits, stored as its digits */
    FR_KIND_FLOAT,
    FR_KIND_STRING,
    FR_KIND_LIST,
    FR_KIND_TUPLE,
    FR_KIND_DICT,
    FR_KIND_RANGE,
    FR_KIND_VIEW, /* the result of dict.keys(), values() or items() */
    FR_KIND_ITERATOR,
    FR_KIND_NAMESPACE,
    FR_KIND_LOOP,
    FR_KIND_MACRO,
    FR_KIND_METHOD,   /* a method together with its object */
    FR_KIND_FUNCTION, /* a function of the environment: range, dict, ... */
    FR_KIND_CYCLER,
    FR_KIND_JOINER,
    FR_KIND_COUNT
} fr_jinja_kind;

/* The reason why a value is undefined, for the error line. */
typedef enum fr_jinja_reason {
    FR_REASON_NAME,      /* 'x' is undefined */
    FR_REASON_ATTRIBUTE, /* 'dict object' has no attribute 'x' */
    FR_REASON_ELEMENT,   /* list object has no element 7 */
    FR_REASON_PARAMETER, /* parameter 'x' was not provided */
    FR_REASON_CONDITION, /* an `if` without else, in line `integer` of the template, whose condition is false */
    FR_REASON_EMPTY,     /* an item of an empty list: its first, last, smallest or next item */
    FR_REASON_CALLER,    /* `caller` in a macro that was not called by a call block */
    FR_REASON_UNSAFE     /* a method that would change its object; templates may not call such methods */
} fr_jinja_reason;

/* A string, normally UTF-8, without a NUL at its end. It may have any bytes. A byte that belongs to no UTF-8 character
 * counts as a character. */
typedef struct fr_jinja_string {
    const char *bytes;
    size_t length;
    /* [length] 1 for a foreign byte, which the template did not write itself; NULL: `foreign` holds for all bytes */
    const uint8_t *marks;
    /* if `marks` is NULL: all bytes are foreign; otherwise: at least one byte is foreign */
    bool foreign;
    bool ascii;
    bool markup; /* made by the filter `safe`; other text that is joined with it is escaped */
} fr_jinja_string;

typedef struct fr_jinja_value {
    uint8_t kind; /* fr_jinja_kind */
    bool foreign; /* not used for strings, because each of their bytes has a mark */
    /* for an undefined value. reason: an fr_jinja_reason; of: the kind of the value that lacks the attribute. */
    uint8_t reason, of;
    union {
        bool truth;
        int64_t integer;
        double real;
        /* a string; also the name of an undefined value, and the digits of a wide integer, with a minus if it is
         * negative */
        const fr_jinja_string *string;
        const struct fr_jinja_list *list; /* the items of a list or tuple */
        struct fr_jinja_dict *dict;
        const struct fr_jinja_range *range;
        const struct fr_jinja_view *view;
        struct fr_jinja_iterator *iterator;
        struct fr_jinja_loop *loop;
        const struct fr_jinja_macro *macro;
        const struct fr_jinja_method *method;
        const struct fr_jinja_function *function;
        struct fr_jinja_cycler *cycler;
        struct fr_jinja_joiner *joiner;
    };
} fr_jinja_value;

_Static_assert(sizeof(fr_jinja_value) == 16, "a value is passed in two registers");

typedef struct fr_jinja_list {
    fr_jinja_value *items;
    size_t count, capacity;
    bool group; /* a tuple that the filter groupby made; it has the attributes grouper and list */
} fr_jinja_list;

typedef struct fr_jinja_entry {
    fr_jinja_value key, value;
    uint64_t hash;
} fr_jinja_entry;

/* A dict, in the order in which keys were inserted. If it has few entries, they are searched one by one; otherwise it
 * has a hash index. */
typedef struct fr_jinja_dict {
    fr_jinja_entry *entries;
    size_t count, capacity;
    /* [index_size], a power of two: 1 + the number of an entry, 0 for an empty slot; NULL: there is no index */
    uint32_t *index;
    size_t index_size;
} fr_jinja_dict;

typedef struct fr_jinja_range {
    int64_t start, stop, step;
    size_t count;
} fr_jinja_range;

typedef enum fr_jinja_view_of { FR_VIEW_KEYS, FR_VIEW_VALUES, FR_VIEW_ITEMS } fr_jinja_view_of;

typedef struct fr_jinja_view {
    const fr_jinja_dict *dict;
    fr_jinja_view_of of;
    bool foreign;
} fr_jinja_view;

typedef struct fr_jinja_cycler {
    const fr_jinja_list *items;
    size_t position;
} fr_jinja_cycler;

typedef struct fr_jinja_joiner {
    fr_jinja_value separator;
    bool used;
} fr_jinja_joiner;

typedef struct fr_jinja_method {
    fr_jinja_value object;
    const struct fr_jinja_function *function;
} fr_jinja_method;

static inline fr_jinja_value fr_jinja_none(void) {
    return (fr_jinja_value){.kind = FR_KIND_NONE};
}

static inline fr_jinja_value fr_jinja_missing(void) {
    return (fr_jinja_value){.kind = FR_KIND_MISSING};
}

static inline fr_jinja_value fr_jinja_of_truth(bool truth) {
    return (fr_jinja_value){.kind = FR_KIND_BOOL, .truth = truth};
}

static inline fr_jinja_value fr_jinja_of_int(int64_t integer, bool foreign) {
    return (fr_jinja_value){.kind = FR_KIND_INT, .foreign = foreign, .integer = integer};
}

static inline fr_jinja_value fr_jinja_of_size(size_t size) {
    return fr_jinja_of_int((int64_t)size, false);
}

static inline fr_jinja_value fr_jinja_of_real(double real, bool foreign) {
    return (fr_jinja_value){.kind = FR_KIND_FLOAT, .foreign = foreign, .real = real};
}

static inline fr_jinja_value fr_jinja_of_string(const fr_jinja_string *string) {
    return (fr_jinja_value){.kind = FR_KIND_STRING, .string = string};
}

static inline fr_jinja_value fr_jinja_of_list(const fr_jinja_list *list, bool foreign) {
    return (fr_jinja_value){.kind = FR_KIND_LIST, .foreign = foreign, .list = list};
}

static inline fr_jinja_value fr_jinja_of_tuple(const fr_jinja_list *list, bool foreign) {
    return (fr_jinja_value){.kind = FR_KIND_TUPLE, .foreign = foreign, .list = list};
}

static inline fr_jinja_value fr_jinja_of_dict(fr_jinja_dict *dict, bool foreign) {
    return (fr_jinja_value){.kind = FR_KIND_DICT, .foreign = foreign, .dict = dict};
}

static inline fr_jinja_value fr_jinja_undefined(fr_jinja_reason reason, const fr_jinja_string *name) {
    return (fr_jinja_value){.kind = FR_KIND_UNDEFINED, .reason = (uint8_t)reason, .string = name};
}

static inline bool fr_jinja_is_given(fr_jinja_value value) {
    return value.kind != FR_KIND_MISSING;
}

/* Gives Python's name of a kind: "int", "str", ... */
const char *fr_jinja_kind_name(uint8_t kind);

/* Returns true if any part of the value is foreign. */
static inline bool fr_jinja_value_foreign(fr_jinja_value value) {
    return value.kind == FR_KIND_STRING ? value.string->foreign : value.foreign;
}

/* Returns true for numbers with which templates can compute: all except wide integers. */
static inline bool fr_jinja_is_numeric(fr_jinja_value value) {
    return value.kind == FR_KIND_INT || value.kind == FR_KIND_FLOAT || value.kind == FR_KIND_BOOL;
}

static inline bool fr_is_number(fr_jinja_value value) {
    return fr_jinja_is_numeric(value) || value.kind == FR_KIND_WIDE;
}

/* Gives the value of an integer or a bool (0 or 1). It must not be called for other kinds. */
static inline int64_t fr_jinja_int_of(fr_jinja_value value) {
    return value.kind == FR_KIND_BOOL ? value.truth : value.integer;
}

static inline double fr_jinja_real_of(fr_jinja_value value) {
    return value.kind == FR_KIND_FLOAT ? value.real : (double)fr_jinja_int_of(value);
}

static inline bool fr_jinja_string_is(const fr_jinja_string *string, const char *text) {
    size_t length = strlen(text);
    return string->length == length && memcmp(string->bytes, text, length) == 0;
}

static inline bool fr_jinja_string_equal(const fr_jinja_string *a, const fr_jinja_string *b) {
    return a->length == b->length && (a->length == 0 || memcmp(a->bytes, b->bytes, a->length) == 0);
}

static inline bool fr_jinja_string_foreign_at(const fr_jinja_string *string, size_t at) {
    return string->marks ? string->marks[at] : string->foreign;
}

#endif
