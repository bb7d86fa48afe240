/* Reads the sizes and rotary positions of multi-head latent attention from configurations.
 *
 * In: config.json, or GGUF metadata as llama.cpp's converter writes it. Out: a spec's layer.mla, and layer.attention,
 * which describes the cache: one key for all heads, with a latent and a rotary part; or a spec's keys as the converter
 * writes them. */
#ifndef FR_SRC_ENGINE_FAMILIES_LATENT_CONFIG_H
#define FR_SRC_ENGINE_FAMILIES_LATENT_CONFIG_H

#include "src/engine/families/family.h"

/* fr_latent_keys: rows for scaling, rotary base, eps, and the lengths of heads. fr_whole_latent_keys: such rows for
 * MiniCPM3. In MiniCPM3's GGUF kv_b is one tensor, and the keys of lengths are those of heads, not of rows in the
 * cache. */
extern const fr_config_row fr_latent_keys[], fr_whole_latent_keys[];

/* The names of the tensors of a layer of latent attention, and of the norms before its two parts.
 * fr_whole_latent_names: with kv_b as one tensor in GGUF. */
extern const fr_tensor_name fr_latent_names[], fr_whole_latent_names[];

/* The names of the tensors of fr_latent_names in Ling 3.0, which has other names for the modules, and of the gates of
 * heads. */
extern const fr_tensor_name fr_gated_latent_names[];

/* Reads rotary positions; called after fr_latent_keys were read. */
fr_status fr_rope_of_latents(const fr_source *source, fr_model_spec *spec);

#endif
