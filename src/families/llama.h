/* Llama as data: its configuration.
 *
 * In: config.json of LlamaForCausalLM, or the metadata of llama.cpp's GGUF of it (architecture "llama"). Out: what
 * trunk.h opens. Source of the architecture: the published checkpoints and transformers 5.17, model llama. */
#ifndef FR_SRC_LLAMA_H
#define FR_SRC_LLAMA_H

#include "src/families/uniform.h"

/* From config.json or GGUF metadata. A GGUF file's rotary factors are kept by the weights. */
fr_status fr_llama_config_read(fr_uniform_config *config, fr_weights *weights);

/* Of a drafter whose layers are as Llama's: text is the object of config.json that says what they are. GGUF's does not
 * say the vocabulary. */
fr_status fr_llama_layer_config(fr_uniform_config *config, const json_t *text, fr_weights *weights);

/* Rotary positions as its configurations have them, and as others' do: of JSON's, heads turn halves, of GGUF's pairs.
 * usual_partial: the part of a head that turns where nothing says it. */
fr_status fr_llama_rope_from_json(fr_uniform_config *config, const json_t *root, double usual_partial,
                                  const char *where);
fr_status fr_llama_rope_from_gguf(fr_rope_spec *rope, fr_weights *weights);

/* What a GGUF file says of that: see fr_family. */
fr_status fr_llama_put_keys(const fr_trunk_spec *spec, size_t mtp_layers, const char *where, fr_gguf_writer *writer);
size_t fr_llama_put_rope_factors(const fr_trunk_spec *spec, float *factors);

#endif
