/* Compares names with those of a list (near_name.h). */
#include "src/named/near_name.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "src/named/named.h"

#define OLLAMA "ollama:"

typedef struct comparison {
    const char *text;
    size_t length; /* the length of the text before its colon */
    fr_near_name *near;
} comparison;

static bool is_same(const char *name, size_t length, const comparison *c) {
    return length == c->length && strncasecmp(name, c->text, length) == 0;
}

/* Adds a name. exact: true if the store has the requested file or tag. If there are exact names, only these are
 * kept. */
static void add(fr_near_name *near, const char *name, bool exact) {
    if (near->exact && !exact) return;
    if (exact && !near->exact) *near = (fr_near_name){.exact = true};
    if (near->count && strstr(near->names, name)) return; /* another file of the model has already added this name */
    size_t length = strlen(near->names);
    if (near->count++ == 0) snprintf(near->name, sizeof near->name, "%s", name);
    snprintf(near->names + length, sizeof near->names - length, "%s%s", length ? ", " : "", name);
}

/* Compares a listed model with the text (an fr_found_fn). A matching name is kept as the store writes it, with the file
 * or tag of the text. */
static bool compare(void *context, const fr_found *found) {
    const comparison *c = context;
    bool ollama = strncmp(found->name, OLLAMA, strlen(OLLAMA)) == 0;
    const char *name = found->name + (ollama ? strlen(OLLAMA) : 0), *colon = strchr(name, ':');
    size_t length = colon ? (size_t)(colon - name) : strlen(name);
    const char *slash = memrchr(name, '/', length), *last = slash ? slash + 1 : name;
    char canonical[FR_NEAR_NAME];
    const char *which = c->text + c->length;
    if (found->name[0] == '/') return true; /* the model has no name and is listed by its path */
    if (!is_same(name, length, c) && !is_same(last, length - (size_t)(last - name), c)) return true;
    if (ollama && *which && (!colon || strcasecmp(colon, which) != 0)) return true;
    if (ollama)
        snprintf(canonical, sizeof canonical, "%s", found->name);
    else
        snprintf(canonical, sizeof canonical, "%.*s%s", (int)length, name, which);
    add(c->near, canonical, !*which || (colon && strcasecmp(colon, which) == 0));
    return true;
}

fr_status fr_named_near(const char *text, const char *const *environment, fr_near_name *near) {
    const char *bare = strncmp(text, OLLAMA, strlen(OLLAMA)) == 0 ? text + strlen(OLLAMA) : text;
    comparison c = {.text = bare, .length = strcspn(bare, ":"), .near = near};
    *near = (fr_near_name){0};
    return c.length ? fr_named_list(environment, compare, &c) : FR_OK;
}
