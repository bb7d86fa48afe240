/* What Gemma 4's layers are one by one, and its rotary positions.
 *
 * In: what the rows of gemma4.c have read. Out: layers, that differ in kind, heads, width, and in whose K/V they read;
 * see fr_family. */
#ifndef FR_SRC_ENGINE_FAMILIES_GEMMA4_LAYERS_H
#define FR_SRC_ENGINE_FAMILIES_GEMMA4_LAYERS_H

#include "src/engine/families/family.h"

fr_status fr_gemma4_rope(const fr_source *source, fr_model_spec *spec);
fr_status fr_gemma4_layers(const fr_source *source, fr_model_spec *spec);

/* What the frequencies of full layers are divided by. */
size_t fr_gemma4_put_rope_factors(const fr_trunk_spec *spec, float *factors);

#endif
