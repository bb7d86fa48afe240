/* Which model this is and which numbers come of it, as one number: what tells a saved session's model from another.
 *
 * In: an opened model. Out: a hash over the version of the numerics, over what describes the model (config.json, or
 * GGUF's metadata below its architecture), over every tensor's name, type and shape, and over a sample of every
 * tensor's bytes. */
#ifndef FR_SRC_ENGINE_SESSION_FINGERPRINT_H
#define FR_SRC_ENGINE_SESSION_FINGERPRINT_H

#include "src/engine/model/model.h"

fr_status fr_fingerprint(const fr_model *model, uint64_t *fingerprint);

#endif
