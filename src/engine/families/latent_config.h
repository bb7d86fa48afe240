/* Reads the sizes and rotary positions of multi-head latent attention from configurations.
 *
 * In: config.json, or GGUF metadata as llama.cpp's converter writes it. Out: layer.mla in a spec, and layer.attention,
 * which describes the cache: one key for all heads, which has a latent and a rotary part. In the other direction: a
 * spec's keys as the converter writes them. */
#ifndef FR_SRC_ENGINE_FAMILIES_LATENT_CONFIG_H
#define FR_SRC_ENGINE_FAMILIES_LATENT_CONFIG_H

#include "src/engine/families/family.h"

/* Tables of rows. fr_latent_keys: scaling, rotary base, eps, and the lengths of heads. fr_whole_latent_keys: the same
 * for MiniCPM3. In MiniCPM3's GGUF kv_b is one tensor, and the keys of lengths are those of heads instead of those of
 * rows in the cache. */
extern const fr_config_row fr_latent_keys[], fr_whole_latent_keys[];

/* The names of the tensors of a layer with latent attention, and of the norms before the layer's two parts. In
 * fr_whole_latent_names, kv_b is one tensor in GGUF. */
extern const fr_tensor_name fr_latent_names[], fr_whole_latent_names[];

/* The names in Ling 3.0 of the tensors in fr_latent_names, and of the gates of heads. The modules of Ling 3.0 have
 * other names. */
extern const fr_tensor_name fr_gated_latent_names[];

/* Reads rotary positions, after fr_latent_keys have been read. */
fr_status fr_rope_of_latents(const fr_source *source, fr_model_spec *spec);

#endif
