/* Computes a model's fingerprint. Two fingerprints differ if the models or their numerics differ. So a saved session is
 * restored only with its own model.
 *
 * In: an opened model. Out: a hash of these: the version of the numerics; the model's description (config.json, or
 * GGUF's metadata under its architecture's name); every tensor's name, type and shape; a sample of every tensor's
 * bytes. */
#ifndef FR_SRC_ENGINE_SESSION_FINGERPRINT_H
#define FR_SRC_ENGINE_SESSION_FINGERPRINT_H

#include "src/engine/model/model.h"

fr_status fr_fingerprint(const fr_model *model, uint64_t *fingerprint);

#endif
