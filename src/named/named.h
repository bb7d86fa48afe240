/* Models by the names that they have where other programs keep them.
 *
 * In: a name or a path, an environment (stores.h says what is read of it). Out: a path; or all models that there are.
 * Names, manifests and what links say are hostile; no name leads out of the folders (model_name.h). */
#ifndef FR_SRC_NAMED_NAMED_H
#define FR_SRC_NAMED_NAMED_H

#include "forerun.h"

/* *path: malloc'd; the text itself where something lies there, or it is no name. FR_INPUT: nothing of that name. */
fr_status fr_named_find(const char *text, const char *const *environment, char **path);

/* FR_ABORTED where `told` said so. */
fr_status fr_named_list(const char *const *environment, fr_found_fn *told, void *context);

#endif
