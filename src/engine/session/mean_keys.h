/* Learns the mean key of each of a model's heads, and scales for the values of its keys. Caches of type turbo4 and
 * turbo3 store the head's keys less this mean, scaled (kernels/key_means.h).
 *
 * In: an engine whose keys are cached as turbo4 or turbo3. Out: the key_means of its cache's layers. They are learned
 * when the engine is opened, by one run of a short fixed text whose keys are kept as float32. The scales are computed
 * from the distances of keys from their mean, and from the size of the queries that read the keys. Means and scales
 * depend only on the model and its tokenizer, so sessions and saved caches of one model fit together. */
#ifndef FR_SRC_ENGINE_SESSION_MEAN_KEYS_H
#define FR_SRC_ENGINE_SESSION_MEAN_KEYS_H

#include "src/engine/session/engine.h"

/* Takes memory for the means of the engine's cache from the engine's arena, which may only count bytes
 * (base/arena.h). */
void fr_mean_keys_layout(fr_engine *engine);

/* Runs the fixed text and fills in the means of its keys. All ranks must call it together. */
fr_status fr_mean_keys_learn(fr_engine *engine, const fr_kv_shape *shapes);

/* Adds the fixed text to a hash of the model if keys are stored without their means. A saved cache can't be used with
 * means that were learned from another text or in another way, or without means. */
uint64_t fr_mean_keys_hash(const fr_engine *engine, uint64_t hash);

#endif
