/* Implements made_schema.h, which makes schemas from bytes. Each byte chooses the next part of the schema. When no byte
 * is left, all open parts are closed. */
#include "tests/fuzz/made_schema.h"

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

enum { DEPTH_MAX = 7, ITEMS_MAX = 6, WORDS_MAX = 7 };

typedef struct maker {
    const uint8_t *bytes;
    size_t left;
} maker;

typedef enum kind { COUNT, NUMBER, BOOLEAN, TEXT, TYPE, VALUE, VALUES, TEXTS, SCHEMA, SCHEMAS, NAMED, REFERENCE } kind;

static const struct word {
    const char *key;
    kind kind;
} WORDS[] = {
    {"type", TYPE},
    {"enum", VALUES},
    {"const", VALUE},
    {"properties", NAMED},
    {"required", TEXTS},
    {"additionalProperties", SCHEMA},
    {"items", SCHEMA},
    {"prefixItems", SCHEMAS},
    {"additionalItems", SCHEMA},
    {"minItems", COUNT},
    {"maxItems", COUNT},
    {"minLength", COUNT},
    {"maxLength", COUNT},
    {"pattern", TEXT},
    {"format", TEXT},
    {"minimum", NUMBER},
    {"maximum", NUMBER},
    {"exclusiveMinimum", NUMBER},
    {"exclusiveMaximum", NUMBER},
    {"anyOf", SCHEMAS},
    {"oneOf", SCHEMAS},
    {"allOf", SCHEMAS},
    {"$ref", REFERENCE},
    {"not", SCHEMA},
    {"if", SCHEMA},
    {"then", SCHEMA},
    {"else", SCHEMA},
    {"dependentRequired", NAMED},
    {"dependentSchemas", NAMED},
    {"dependencies", NAMED},
    {"patternProperties", NAMED},
    {"propertyNames", SCHEMA},
    {"unevaluatedProperties", SCHEMA},
    {"unevaluatedItems", SCHEMA},
    {"contains", SCHEMA},
    {"minContains", COUNT},
    {"maxContains", COUNT},
    {"uniqueItems", BOOLEAN},
    {"multipleOf", NUMBER},
    {"minProperties", COUNT},
    {"maxProperties", COUNT},
    {"$defs", NAMED},
    {"$dynamicRef", REFERENCE},
    {"title", TEXT},
};

static const char *const TEXTS_OF[] = {
    "a",    "b",    "ab",   "^a", "b$",    "^[a-c]{1,3}$", "a|b*", "(ab)+", "date", "time",      "uuid",     "email",
    "ipv4", "\\d+", "[^a]", "",   "a.{4}", "hostname",     "uri",  "a~b/c", ".*",   "date-time", "\xC3\xA9", "x\"y"};
static const char *const TYPES[] = {"object", "array", "string", "number", "integer", "boolean", "null", "any"};
static const char *const REFERENCES[] = {"#",         "#/$defs/a", "#/$defs/b",      "#/properties/a", "#/items",
                                         "#/allOf/0", "#/not",     "#/$defs/a~1b/c", "other.json",     "#/anyOf/1"};
static const double NUMBERS[] = {0, 1,   -1,     2, 0.5,  10, -0.25, 100, 1e15, 9007199254740993.0,
                                 3, 0.1, -1e300, 7, 1e-9, 255};

#define OF(list, byte) (list)[(byte) % (sizeof(list) / sizeof *(list))]

static uint8_t take(maker *m) {
    if (!m->left) return 0;
    m->left--;
    return *m->bytes++;
}

static json_t *schema(maker *m, int depth);

static json_t *number(maker *m) {
    uint8_t byte = take(m);
    if (byte & 0x80) return json_integer((byte & 0x7F) - 32);
    return json_real(OF(NUMBERS, byte));
}

static json_t *value(maker *m, int depth) {
    uint8_t byte = take(m);
    json_t *all;
    switch (byte % 8) {
    case 0: return json_string(OF(TEXTS_OF, take(m)));
    case 1: return number(m);
    case 2: return json_boolean(byte & 8);
    case 3: return json_null();
    case 4:
        all = json_array();
        for (int i = take(m) % 4; i > 0 && depth < DEPTH_MAX; i--) json_array_append_new(all, value(m, depth + 1));
        return all;
    case 5:
        all = json_object();
        for (int i = take(m) % 4; i > 0 && depth < DEPTH_MAX; i--) {
            const char *key = OF(TEXTS_OF, take(m));
            json_object_set_new(all, key, value(m, depth + 1));
        }
        return all;
    default: return json_integer(byte / 8);
    }
}

static json_t *several(maker *m, kind of, int depth) {
    json_t *all = json_array();
    for (int i = take(m) % ITEMS_MAX; i > 0; i--)
        json_array_append_new(all, of == SCHEMAS  ? schema(m, depth)
                                   : of == VALUES ? value(m, depth)
                                                  : json_string(OF(TEXTS_OF, take(m))));
    return all;
}

/* Makes an object whose members are schemas. If `lists` is true, some members are lists of names instead. */
static json_t *named(maker *m, bool lists, int depth) {
    json_t *all = json_object();
    for (int i = take(m) % ITEMS_MAX; i > 0; i--) {
        uint8_t byte = take(m);
        json_object_set_new(all, OF(TEXTS_OF, byte), lists ? several(m, TEXTS, depth) : schema(m, depth));
    }
    return all;
}

static json_t *of_kind(maker *m, const struct word *word, int depth) {
    uint8_t byte;
    switch (word->kind) {
    case COUNT: return json_integer(take(m) % 9);
    case NUMBER: return number(m);
    case BOOLEAN: return json_boolean(take(m) % 8);
    case TEXT: return json_string(OF(TEXTS_OF, take(m)));
    case REFERENCE: return json_string(OF(REFERENCES, take(m)));
    case VALUE: return value(m, depth);
    case SCHEMA: return schema(m, depth);
    case NAMED: return named(m, strcmp(word->key, "dependentRequired") == 0, depth);
    case TYPE:
        byte = take(m);
        if (byte < 0xC0) return json_string(OF(TYPES, byte));
        return json_pack("[s,s]", OF(TYPES, byte), OF(TYPES, byte / 8));
    default: return several(m, word->kind, depth);
    }
}

static json_t *schema(maker *m, int depth) {
    uint8_t byte = take(m);
    if (depth >= DEPTH_MAX || byte >= 0xF8) return json_boolean(byte & 1);
    json_t *all = json_object();
    for (int i = byte % WORDS_MAX; i > 0; i--) {
        const struct word *word = &OF(WORDS, take(m));
        json_t *said = take(m) == 0xFF ? value(m, depth + 1) : of_kind(m, word, depth + 1);
        json_object_set_new(all, word->key, said);
    }
    return all;
}

char *fuzz_made_schema(const uint8_t *bytes, size_t size) {
    maker m = {bytes, size};
    json_t *all = schema(&m, 0);
    char *text = json_dumps(all, JSON_COMPACT | JSON_ENCODE_ANY);
    json_decref(all);
    return text;
}
