/* A model brought into memory for a server, and out of it (models.h). */
#ifndef FR_TOOLS_SERVE_MODEL_INSTANCE_H
#define FR_TOOLS_SERVE_MODEL_INSTANCE_H

#include "tools/serve/models.h"

/* Opens model, drafter, engine and scheduler; hashes its weights meanwhile. `instance` has its name, path and args.
 * Gives the exit status, after a line on standard error. */
int fr_model_instance_load(fr_model_instance *instance, fr_metrics *metrics, void (*wake)(void *), void *context);
void fr_model_instance_unload(fr_model_instance *instance);

/* The same of a rank that nobody asks, without a scheduler, to the end of rank 0's. */
int fr_model_instance_follow(fr_model_instance *instance);

/* About how many bytes it takes, and how many there are. */
bool fr_model_instance_fits(const fr_model_instance *instance);

#endif
