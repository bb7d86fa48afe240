/* Finds the schema to which a reference leads (json_schema_reader.h). A reference is a pointer, an anchor, or the $id
 * of a schema within the same document. All URIs are resolved against the document's own $id. Other documents are not
 * fetched. */
#include <stdio.h>
#include <string.h>

#include "formats/json_pointer.h"
#include "src/language/grammar/json_schema_reader.h"

enum { URI_MAX = 1024, DEPTH_MAX = 256 };

typedef struct search {
    fr_grammar_rules *rules;
    char wanted[URI_MAX];
    const char *base; /* the document's own $id; NULL: the search is for an anchor */
} search;

/* Gives the length of a URI's scheme and host, such as "https://a.org"; 0: the URI is relative. */
static size_t host_length(const char *uri) {
    size_t scheme = strcspn(uri, ":/?#");
    if (scheme == 0 || uri[scheme] != ':') return 0;
    if (strncmp(uri + scheme, "://", 3) != 0) return scheme + 1;
    return scheme + 3 + strcspn(uri + scheme + 3, "/?#");
}

/* Writes a URI without its fragment, resolved against a base (RFC 3986; "." and ".." are not resolved). Returns false
 * if the result is too long. */
static bool resolve(const char *base, const char *uri, char out[URI_MAX]) {
    size_t length = strcspn(uri, "#"), host = host_length(base), kept = 0;
    if (length == 0) {
        kept = strcspn(base, "#");
    } else if (host_length(uri) == 0) {
        kept = host;
        for (size_t i = host; *uri != '/' && base[i] && base[i] != '#' && base[i] != '?'; i++)
            if (base[i] == '/') kept = i + 1;
    }
    int written = snprintf(out, URI_MAX, "%.*s%.*s", (int)(kept < URI_MAX ? kept : URI_MAX), base,
                           (int)(length < URI_MAX ? length : URI_MAX), uri);
    return written >= 0 && written < URI_MAX;
}

static bool is_wanted(const search *s, const json_t *schema) {
    const char *id = json_string_value(json_object_get(schema, "$id"));
    const char *anchor = json_string_value(json_object_get(schema, "$anchor"));
    char own[URI_MAX];
    if (s->base) return id && *id != '#' && resolve(s->base, id, own) && strcmp(own, s->wanted) == 0;
    return (anchor && strcmp(anchor, s->wanted) == 0) || (id && *id == '#' && strcmp(id + 1, s->wanted) == 0);
}

/* Searches a value, and everything in it except constants, for the wanted schema. named: the keys of the value are
 * names that the schema's author chose, and not keywords. */
static const json_t *find_below(const search *s, const json_t *value, bool named, size_t depth) {
    static const char *const constants[] = {"const", "enum", "default", "examples", NULL};
    static const char *const maps[] = {"properties",  "patternProperties", "$defs",
                                       "definitions", "dependentSchemas",  NULL};
    const json_t *found = NULL;
    const char *key;
    json_t *inner;
    size_t i;
    if (depth == DEPTH_MAX || !fr_grammar_spend(s->rules, 1)) return NULL;
    if (json_is_object(value) && is_wanted(s, value)) return value;
    json_object_foreach ((json_t *)value, key, inner)
        if (!found && (named || !fr_schema_is_word(key, constants)))
            found = find_below(s, inner, !named && fr_schema_is_word(key, maps), depth + 1);
    json_array_foreach (value, i, inner)
        if (!found) found = find_below(s, inner, false, depth + 1);
    return found;
}

fr_status fr_schema_find(fr_schema_reader *r, const char *reference, const fr_schema_path *path, const json_t **found) {
    const char *fragment = strchr(reference, '#'), *id = json_string_value(json_object_get(r->root, "$id"));
    search s = {.rules = r->parts->rules, .base = id ? id : ""};
    fr_grammar_spend(r->parts->rules, 1 + strlen(reference) / 16);
    *found = r->root;
    if (fragment != reference) *found = resolve(s.base, reference, s.wanted) ? find_below(&s, r->root, false, 0) : NULL;
    if (!*found) return fr_schema_fail(path, FR_UNBUILT, "references to other schemas are not built");
    if (fragment && (fragment[1] == '/' || fragment[1] == '%' || !fragment[1])) {
        *found = fr_json_refer(*found, fragment);
    } else if (fragment) {
        s.base = NULL;
        bool fits = snprintf(s.wanted, sizeof s.wanted, "%s", fragment + 1) < URI_MAX;
        *found = fits ? find_below(&s, *found, false, 0) : NULL;
    }
    return *found ? FR_OK : fr_schema_fail(path, FR_INPUT, "this refers to nothing in the schema");
}
