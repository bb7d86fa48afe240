/* Finds models by the names under which other programs store them.
 *
 * In: a name or a path, and an environment; stores.c lists the variables that are read. Out: a path, or a list of all
 * models. Names, manifests and links are hostile; no name leads out of the stores' folders (model_name.h). */
#ifndef FR_SRC_NAMED_NAMED_H
#define FR_SRC_NAMED_NAMED_H

#include "forerun.h"

/* Finds a model. *path: the model's path, which the caller frees. If `text` is the path of a file, or is not a name,
 * *path is a copy of it. FR_INPUT: no model has that name. */
fr_status fr_named_find(const char *text, const char *const *environment, char **path);

/* Lists all models. FR_ABORTED: the function `told` has ended the list by returning false. */
fr_status fr_named_list(const char *const *environment, fr_found_fn *told, void *context);

#endif
