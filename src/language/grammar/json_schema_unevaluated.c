/* Handles unevaluatedProperties and unevaluatedItems, which concern the members and items that no other keyword covers
 * (json_schema_reader.h). To know which members and items these are, all keywords about the object or array must be in
 * one schema. */
#include "src/language/grammar/json_schema_reader.h"

#define DEPTH_MAX 32 /* limit on nested schemas that concern the same value */

static const struct {
    const char *key, *as;
} WORDS[] = {{"unevaluatedProperties", "additionalProperties"}, {"unevaluatedItems", "items"}};

/* Keywords that contain schemas for the same value as the schema itself: lists of schemas, and objects with named
 * schemas. */
static const char *const LISTS[] = {"allOf", "anyOf", NULL};
static const char *const NAMED[] = {"dependentSchemas", "dependencies", NULL};

/* Returns true if it is unknown which members are covered, because some schema for the value must not hold, or need not
 * hold. Also returns true if references never end. */
static bool denies(fr_schema_reader *r, const json_t *schema, const fr_schema_path *path, size_t depth) {
    static const char *const denying[] = {"not", "if", "oneOf", NULL};
    const char *key;
    const json_t *target;
    json_t *item;
    size_t i;
    if (depth == DEPTH_MAX || !fr_grammar_spend(r->parts->rules, 1) || fr_schema_has_any(schema, denying)) return true;
    for (const char *const *list = LISTS; *list; list++)
        json_array_foreach (json_object_get(schema, *list), i, item)
            if (denies(r, item, path, depth + 1)) return true;
    for (const char *const *named = NAMED; *named; named++)
        json_object_foreach (json_object_get(schema, *named), key, item)
            if (denies(r, item, path, depth + 1)) return true;
    const char *ref = json_string_value(json_object_get(schema, "$ref"));
    return ref && (fr_schema_find(r, ref, path, &target) != FR_OK || denies(r, target, path, depth + 1));
}

fr_status fr_schema_rewrite_unevaluated(fr_schema_reader *r, json_t *schema, const fr_schema_path *path) {
    for (size_t i = 0; i < sizeof WORDS / sizeof *WORDS; i++) {
        const fr_schema_path place = {path, WORDS[i].key, 0};
        json_t *value = json_object_get(schema, WORDS[i].key);
        if (!value) continue;
        bool denied = denies(r, schema, path, 0);
        FR_TRY(fr_schema_check(r->parts->rules, path));
        if (denied) return fr_schema_fail(&place, FR_UNBUILT, "not built beside not, if or oneOf");
        bool apart = fr_schema_has_any(schema, LISTS) || fr_schema_has_any(schema, NAMED) ||
                     json_object_get(schema, "$ref") || json_is_array(json_object_get(schema, WORDS[i].as));
        if (apart) continue;
        if (!json_object_get(schema, WORDS[i].as))
            fr_schema_set(r->parts->rules, schema, WORDS[i].as, json_incref(value));
        json_object_del(schema, WORDS[i].key);
    }
    return FR_OK;
}
