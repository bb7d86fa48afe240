/* Reads and writes Kimi Delta Attention in the configurations of families that have it.
 *
 * In: the text model's part of config.json, or GGUF metadata as llama.cpp's converter writes it. Out: layers with Kimi
 * Delta Attention or latent attention, and DeepSeek's mixture, for which these families have keys of their own. In the
 * other direction: a spec's keys as the converter writes them. */
#ifndef FR_SRC_ENGINE_FAMILIES_KDA_CONFIG_H
#define FR_SRC_ENGINE_FAMILIES_KDA_CONFIG_H

#include "src/engine/families/family.h"

/* Makes the layers by calling `layers`. Then sets Kimi Delta Attention in the layers without attention. attends: one
 * entry for each layer. For config.json the caller fills it in. For GGUF this function fills it in: a layer attends if
 * it has key/value heads. */
fr_status fr_kda_layers(const fr_source *source, fr_model_spec *spec, bool *attends,
                        fr_status (*layers)(const fr_source *source, fr_model_spec *spec));

/* Writes the sizes of Kimi Delta Attention. *delta is the spec of the first layer that has it. */
fr_status fr_kda_put(const fr_trunk_spec *spec, const char *where, fr_gguf_writer *writer,
                     const fr_deltanet_spec **delta);

/* Reads a mixture. config.json may have each key in either of two spellings. */
fr_status fr_kda_mixture(const fr_source *source, fr_model_spec *spec);

/* The names of the tensors that all families with Kimi Delta Attention have. below: the prefix of published names;
 * stored: the form in which published files store the slopes. */
#define FR_IS_KDA .needs = FR_IF_DELTANET
#define FR_KDA_NAMES(below, stored)                                                                                   \
    FR_MATRIX(fr_layer, deltanet.in_parts[0], DELTA_VALUES, HIDDEN, below "q_proj.weight", "attn_q.weight",           \
              FR_IS_KDA),                                                                                             \
        FR_MATRIX(fr_layer, deltanet.in_parts[1], DELTA_VALUES, HIDDEN, below "k_proj.weight", "attn_k.weight",       \
                  FR_IS_KDA),                                                                                         \
        FR_MATRIX(fr_layer, deltanet.in_parts[2], DELTA_VALUES, HIDDEN, below "v_proj.weight", "attn_v.weight",       \
                  FR_IS_KDA),                                                                                         \
        FR_NAMED(fr_layer, deltanet.conv_parts[0], FR_SLOT_CONV_WHOLE, DELTA_VALUES, CONV_KERNEL,                     \
                 below "q_conv1d.weight", "ssm_conv1d_q.weight", FR_IS_KDA),                                          \
        FR_NAMED(fr_layer, deltanet.conv_parts[1], FR_SLOT_CONV_WHOLE, DELTA_VALUES, CONV_KERNEL,                     \
                 below "k_conv1d.weight", "ssm_conv1d_k.weight", FR_IS_KDA),                                          \
        FR_NAMED(fr_layer, deltanet.conv_parts[2], FR_SLOT_CONV_WHOLE, DELTA_VALUES, CONV_KERNEL,                     \
                 below "v_conv1d.weight", "ssm_conv1d_v.weight", FR_IS_KDA),                                          \
        FR_MATRIX(fr_layer, deltanet.in_b, DELTA_HEADS, HIDDEN, below "b_proj.weight", "ssm_beta.weight", FR_IS_KDA), \
        FR_NAMED(fr_layer, deltanet.decay, FR_SLOT_IN_ROWS, DELTA_HEADS, ONE, below "A_log", "ssm_a", FR_IS_KDA,      \
                 .values = stored),                                                                                   \
        FR_VECTOR(fr_layer, deltanet.dt_bias, DELTA_VALUES, below "dt_bias", "ssm_dt.bias", FR_IS_KDA),               \
        FR_VECTOR(fr_layer, deltanet.value_norm, DELTA_HEAD, below "o_norm.weight", "ssm_norm.weight", FR_IS_KDA)

#endif
