/* Defines the public functions that find models by name. Each checks its arguments, as the functions in api.c do. */
#include "base/error.h"
#include "src/named/named.h"

fr_status fr_model_find(const char *name, const char *const *environment, char **path) {
    if (path) *path = NULL;
    if (!name || !path) return fr_fail_null("fr_model_find", "a name and a place for its path");
    return fr_named_find(name, environment, path);
}

fr_status fr_model_list(const char *const *environment, fr_found_fn *told, void *context) {
    if (!told) return fr_fail_null("fr_model_list", "a function to be told");
    return fr_named_list(environment, told, context);
}
