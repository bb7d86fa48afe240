/* GLM-4.5 as data, and the models of its shape that came after it: 4.5-Air, 4.6, 4.7.
 *
 * In: config.json of Glm4MoeForCausalLM, or the metadata of llama.cpp's GGUF of it (architecture "glm4moe"). Out: what
 * trunk.h opens. Source of the architecture: the published checkpoints and transformers 5.17, model glm4_moe; of its
 * MTP layer mtp_layer.h. */
#ifndef FR_SRC_GLM4_MOE_H
#define FR_SRC_GLM4_MOE_H

#include "src/families/mixture.h"

typedef struct fr_glm4_moe_config {
    fr_uniform_config uniform; /* its layers without the MTP layers */
    fr_mixture_config mixture;
    size_t mtp_layers; /* behind the others */
} fr_glm4_moe_config;

/* From config.json or GGUF metadata. */
fr_status fr_glm4_moe_config_read(fr_glm4_moe_config *config, fr_weights *weights);

/* The keys of a GGUF file of that spec: see fr_family. */
fr_status fr_glm4_moe_put_keys(const fr_trunk_spec *spec, size_t mtp_layers, const char *where,
                               fr_gguf_writer *writer);

#endif
