/* Multi-head latent attention in configurations: its sizes, and its rotary positions.
 *
 * In: config.json, or GGUF metadata as llama.cpp's converter writes it. Out: a spec's layer.mla and layer.attention,
 * which is that of what is cached: one key of a latent and a rotary part for all heads; of a spec the converter's
 * keys. */
#ifndef FR_SRC_ENGINE_FAMILIES_LATENT_CONFIG_H
#define FR_SRC_ENGINE_FAMILIES_LATENT_CONFIG_H

#include "src/engine/families/family.h"

/* Scaling, base, eps and lengths. */
extern const fr_config_row fr_latent_keys[];

/* Once they are read. */
fr_status fr_rope_of_latents(const fr_source *source, fr_model_spec *spec);

#endif
