/* Finds models by the names that other programs keep them under.
 *
 * In: a name or a path, and an environment (stores.h lists the variables that are read). Out: a path, or all models
 * there are. Names, manifests and links are hostile; no name leads out of the folders (model_name.h). */
#ifndef FR_SRC_NAMED_NAMED_H
#define FR_SRC_NAMED_NAMED_H

#include "forerun.h"

/* Finds a model. *path: malloc'd; the text itself if a file is there, or if it is not a name. FR_INPUT: no model has
 * that name. */
fr_status fr_named_find(const char *text, const char *const *environment, char **path);

/* Lists all models. FR_ABORTED: `told` ended the list. */
fr_status fr_named_list(const char *const *environment, fr_found_fn *told, void *context);

#endif
