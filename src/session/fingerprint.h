/* Which model this is, as one number: what tells a saved session's model from another.
 *
 * In: an opened model. Out: a hash over what describes it (config.json, or GGUF's metadata below its architecture),
 * over every tensor's name, type and shape, and over a sample of every tensor's bytes. */
#ifndef FR_SRC_FINGERPRINT_H
#define FR_SRC_FINGERPRINT_H

#include "src/families/model.h"

/* Hashes more bytes into a hash (0 begins one). Pieces give the same as the whole where they are multiples of 8. Not
 * made to withstand anybody who wants two equal hashes. */
uint64_t fr_hash(uint64_t hash, const void *bytes, size_t size);

fr_status fr_fingerprint(const fr_model *model, uint64_t *fingerprint);

#endif
