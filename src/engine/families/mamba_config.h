/* Reads and writes Mamba-2 in the configurations of families that have it.
 *
 * In: the text model's part of config.json, or GGUF metadata as llama.cpp's converter writes it. Out: checked sizes in
 * spec->layer.mamba, and layers that have Mamba-2, attention, both or neither. In the other direction: a spec's keys as
 * the converter writes them. */
#ifndef FR_SRC_ENGINE_FAMILIES_MAMBA_CONFIG_H
#define FR_SRC_ENGINE_FAMILIES_MAMBA_CONFIG_H

#include "src/engine/families/family.h"

/* Rows of the sizes, for a family's table. The arguments are the family's keys in config.json. The table must have
 * fr_mamba_part after these rows. For GGUF, fr_mamba_part reads the width of a head, finds out from the tensors whether
 * the convolution has biases, and writes the keys that no row writes. */
#define FR_MAMBA_ROWS(heads_key, groups_key, state_key, conv_key, conv_bias_key, bias_key)                       \
    FR_SIZE(layer.mamba.heads, heads_key, ".ssm.time_step_rank", 1, 4096, .required = true),                     \
        FR_SIZE(layer.mamba.groups, groups_key, ".ssm.group_count", 1, 4096, .required = true),                  \
        FR_SIZE(layer.mamba.state_dim, state_key, ".ssm.state_size", 1, 4096, .required = true),                 \
        FR_SIZE(layer.mamba.conv_kernel, conv_key, ".ssm.conv_kernel", 1, FR_CONV_KERNEL_MAX, .required = true), \
        FR_FLAG(layer.mamba.conv_bias, conv_bias_key, NULL), FR_FLAG(layer.mamba.bias, bias_key, NULL)

extern const fr_config_part fr_mamba_part;

/* Reads the width of a head from config.json. If the key is "auto", or if it is missing and has no default, the width
 * is `inner` divided by the number of heads. All heads together must have `inner` values. If `inner` is 0, they may
 * have any number of values. */
fr_status fr_mamba_head_dim(const fr_source *source, const char *key, size_t inner, fr_model_spec *spec);

/* Reads the limits of time steps, a list of two numbers, from config.json. If the key is missing, the defaults stay. */
fr_status fr_mamba_limits(const fr_source *source, const char *key, fr_model_spec *spec);

/* Refuses to write a model whose time steps have limits, because GGUF has no key for time_step_limit. */
fr_status fr_mamba_put_no_limits(const fr_mamba_spec *mamba, const char *where);

/* Checks that the heads, and the values of all heads, can be divided evenly among the groups. normed: the outputs have
 * a norm. Then sets the number of parts to which the norm is applied separately: one for each group of keys. */
fr_status fr_mamba_check(const fr_source *source, fr_model_spec *spec, bool normed);

/* Reads and writes the number of key/value heads. In GGUF it is an array, with 0 for layers without attention. */
extern const fr_config_part fr_mamba_kv_heads_part;

/* Reads GGUF's array of key/value heads. A file without Mamba-2 may have a single number instead. */
fr_status fr_mamba_gguf_kv_heads(const fr_source *source, size_t layers, int64_t *heads);

/* Sets the mixer of a layer. Removes from the layer's spec the attention or the Mamba-2 that this mixer does not
 * use. */
void fr_mamba_set_mixer(fr_layer_spec *layer, fr_mixer mixer);

/* The names of Mamba-2's tensors in published files. fr_mamba_names: they are below "mamba." (Granite, Bamba,
 * Falcon-H1). fr_mamba_mixer_names: they are below "mixer." (Mamba-2, Nemotron-H). */
extern const fr_tensor_name fr_mamba_names[], fr_mamba_mixer_names[];

#endif
