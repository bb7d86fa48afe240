/* Qwen3.5 as data: its configuration, as a spec and as names; Qwen3.6 and the dense Qwen3.8 are of the same
 * architecture. Three layers of four are gated DeltaNet, the fourth gated attention; each has a feed-forward, or a
 * mixture of experts with a shared one.
 *
 * In: config.json of Qwen3_5ForCausalLM, Qwen3_5ForConditionalGeneration (text part), Qwen3_5Moe..., or the metadata of
 * llama.cpp's GGUF of them (architectures "qwen35", "qwen35moe"). Out: what trunk.h opens. Source of the architecture:
 * the published checkpoints and transformers 5.17, models qwen3_5 and qwen3_5_moe. */
#ifndef FR_SRC_QWEN35_H
#define FR_SRC_QWEN35_H

#include "src/families/mixture.h"

typedef struct fr_qwen35_config {
    fr_uniform_config uniform; /* its layers without the MTP layer */
    fr_deltanet_spec deltanet; /* of all such layers */
    fr_mixture_config mixture; /* of none where the model is dense */
    bool recurrent[FR_MOST_LAYERS]; /* which layers are */
    size_t mtp_layers; /* behind the others */
} fr_qwen35_config;

/* From config.json or GGUF metadata. mixture: its layers have one. */
fr_status fr_qwen35_config_read(fr_qwen35_config *config, const fr_weights *weights, bool mixture);

/* Every interval-th layer has attention. */
void fr_qwen35_set_interval(fr_qwen35_config *config, size_t interval);

/* The layers as the decoder's parts read them: free spec->layer. */
fr_status fr_qwen35_spec(const fr_qwen35_config *config, fr_trunk_spec *spec);

/* The keys of a GGUF file of that spec: see fr_family. */
fr_status fr_qwen35_put_keys(const fr_trunk_spec *spec, size_t mtp_layers, const char *where, fr_gguf_writer *writer);

#endif
