/* Makes Gemma 4's layers one by one, and its rotary positions.
 *
 * In: the spec that the rows of gemma4.c have read. Out: layers. They differ in kind, heads and width, and in the layer
 * whose keys and values they read; see fr_family. */
#ifndef FR_SRC_ENGINE_FAMILIES_GEMMA4_LAYERS_H
#define FR_SRC_ENGINE_FAMILIES_GEMMA4_LAYERS_H

#include "src/engine/families/family.h"

fr_status fr_gemma4_rope(const fr_source *source, fr_model_spec *spec);
fr_status fr_gemma4_layers(const fr_source *source, fr_model_spec *spec);

/* Writes the divisors of the full layers' frequencies. */
size_t fr_gemma4_put_rope_factors(const fr_trunk_spec *spec, float *factors);

#endif
