/* Loads a model of a server into memory, and removes it from memory (models.h). */
#ifndef FR_TOOLS_SERVE_MODEL_INSTANCE_H
#define FR_TOOLS_SERVE_MODEL_INSTANCE_H

#include "tools/serve/models.h"

/* Opens the model, its drafter, an engine and a scheduler. The weights are hashed at the same time. `instance` must
 * have its name, path and arguments. Gives the exit status after an error line, or 0. */
int fr_model_instance_load(fr_model_instance *instance, fr_metrics *metrics, void (*wake)(void *), void *context);
void fr_model_instance_unload(fr_model_instance *instance);

/* Loads the model on a rank that serves no clients. Such a rank has no scheduler. Runs the rounds of rank 0 until rank
 * 0 ends. */
int fr_model_instance_follow(fr_model_instance *instance);

/* Returns true if the model's estimated size fits into the memory that is available. */
bool fr_model_instance_fits(const fr_model_instance *instance);

#endif
