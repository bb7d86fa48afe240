/* Reads and writes Mamba-2 in the configurations of families that have it.
 *
 * In: the text model's part of config.json, or GGUF metadata as llama.cpp's converter writes it. Out: checked sizes in
 * spec->layer.mamba; layers that have Mamba-2, attention, both or neither; or a spec's keys as the converter writes
 * them. */
#ifndef FR_SRC_ENGINE_FAMILIES_MAMBA_CONFIG_H
#define FR_SRC_ENGINE_FAMILIES_MAMBA_CONFIG_H

#include "src/engine/families/family.h"

/* Rows of the sizes, for a family's table. The arguments are the family's keys in config.json. After these rows the
 * table must list fr_mamba_part. For GGUF, fr_mamba_part does three things: it reads the width of a head, finds out
 * from the tensors whether the convolution has biases, and writes the keys that no row writes. */
#define FR_MAMBA_ROWS(heads_key, groups_key, state_key, conv_key, conv_bias_key, bias_key)                       \
    FR_SIZE(layer.mamba.heads, heads_key, ".ssm.time_step_rank", 1, 4096, .required = true),                     \
        FR_SIZE(layer.mamba.groups, groups_key, ".ssm.group_count", 1, 4096, .required = true),                  \
        FR_SIZE(layer.mamba.state_dim, state_key, ".ssm.state_size", 1, 4096, .required = true),                 \
        FR_SIZE(layer.mamba.conv_kernel, conv_key, ".ssm.conv_kernel", 1, FR_CONV_KERNEL_MAX, .required = true), \
        FR_FLAG(layer.mamba.conv_bias, conv_bias_key, NULL), FR_FLAG(layer.mamba.bias, bias_key, NULL)

extern const fr_config_part fr_mamba_part;

/* Reads the width of a head from config.json. If it is "auto", or missing without a default, it is `inner` divided by
 * the number of heads. All heads together must have `inner` values. inner 0: they may have any number of values. */
fr_status fr_mamba_head_dim(const fr_source *source, const char *key, size_t inner, fr_model_spec *spec);

/* Reads the limits of time steps, a list of two numbers, from config.json. A missing key leaves the defaults. */
fr_status fr_mamba_limits(const fr_source *source, const char *key, fr_model_spec *spec);

/* Refuses to write a model whose time steps have limits, because GGUF has no key for time_step_limit. */
fr_status fr_mamba_put_no_limits(const fr_mamba_spec *mamba, const char *where);

/* Checks that the heads, and all their values, can be divided evenly among the groups. If the outputs are normed, sets
 * the number of parts in which they are normed: one for each group of keys. */
fr_status fr_mamba_check(const fr_source *source, fr_model_spec *spec, bool normed);

/* Reads and writes the number of key/value heads. GGUF has an array of them, in which layers without attention have
 * 0. */
extern const fr_config_part fr_mamba_kv_heads_part;

/* Reads GGUF's array of key/value heads. A file without Mamba-2 may have a single number instead. */
fr_status fr_mamba_gguf_kv_heads(const fr_source *source, size_t layers, int64_t *heads);

/* Sets the mixer of a layer, and removes from the layer's spec the attention and the Mamba-2 that this mixer does not
 * use. */
void fr_mamba_set_mixer(fr_layer_spec *layer, fr_mixer mixer);

/* The names of Mamba-2's tensors. The first list is for published files in which they are below "mamba." (Granite,
 * Bamba, Falcon-H1), the second for those in which they are below "mixer." (Mamba-2, Nemotron-H). */
extern const fr_tensor_name fr_mamba_names[], fr_mamba_mixer_names[];

#endif
