/* Llama as data: its configuration, as a spec.
 *
 * In: config.json of LlamaForCausalLM, or the metadata of llama.cpp's GGUF of it (architecture "llama"). Out: what
 * trunk.h opens. Source of the architecture: the published checkpoints and transformers 5.17, model llama. */
#ifndef FR_SRC_LLAMA_H
#define FR_SRC_LLAMA_H

#include "formats/gguf_write.h"
#include "src/decoder/trunk.h"

typedef struct fr_llama_config {
    size_t vocab, hidden, layers, heads, kv_heads, head_dim, ffn, context_limit;
    fr_rope_spec rope; /* all of it */
    float eps;
    bool attention_biased, ffn_biased;
} fr_llama_config;

/* From config.json or GGUF metadata. A GGUF file's rotary factors are kept by the weights. */
fr_status fr_llama_config_read(fr_llama_config *config, fr_weights *weights);

/* The layers as the decoder's parts read them. */
fr_status fr_llama_spec(const fr_llama_config *config, fr_trunk_spec *spec);

/* What a GGUF file says of that: see fr_family. */
fr_status fr_llama_put_keys(const fr_trunk_spec *spec, size_t mtp_layers, const char *where, fr_gguf_writer *writer);
size_t fr_llama_put_rope_factors(const fr_trunk_spec *spec, float *factors);

#endif
