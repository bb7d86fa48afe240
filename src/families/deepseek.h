/* DeepSeek-V3 as data, and GLM-4.7-Flash, which has the same layers: their configuration.
 *
 * In: config.json of DeepseekV3ForCausalLM (V3, R1, V3.1) or Glm4MoeLiteForCausalLM, or the metadata of llama.cpp's
 * GGUF of either (architecture "deepseek2"). Out: what trunk.h opens. Source of the architecture: the published
 * checkpoints and transformers 5.17, models deepseek_v3 and glm4_moe_lite. */
#ifndef FR_SRC_DEEPSEEK_H
#define FR_SRC_DEEPSEEK_H

#include "src/families/mixture.h"
#include "src/families/uniform.h"

typedef struct fr_deepseek_config {
    fr_uniform_config uniform; /* its layers without the MTP layers; of its heads what is cached */
    fr_mla_spec mla;
    size_t latent;
    fr_mixture_config mixture;
    size_t mtp_layers; /* behind the others */
} fr_deepseek_config;

/* DeepSeek-V3 and GLM-4.7-Flash as published, but for rotary positions; `shared` counts experts here. What their files
 * don't say is as here. */
extern const fr_deepseek_config fr_deepseek_v3, fr_glm_flash;

/* From config.json or GGUF metadata. */
fr_status fr_deepseek_config_read(fr_deepseek_config *config, fr_weights *weights);

/* The layers as the decoder's parts read them: free spec->layer. */
fr_status fr_deepseek_spec(const fr_deepseek_config *config, fr_trunk_spec *spec);

/* The keys of a GGUF file of that spec: see fr_family. */
fr_status fr_deepseek_put_keys(const fr_trunk_spec *spec, size_t mtp_layers, const char *where, fr_gguf_writer *writer);

#endif
