/* Reads and writes mixtures of experts, which several families have: keys, layers, and names of tensors.
 *
 * In: the text model's part of config.json, or GGUF metadata as llama.cpp's converter writes it. Out: checked numbers
 * in a spec, and layers that have a mixture. In the other direction: a spec's keys as the converter writes them. */
#ifndef FR_SRC_ENGINE_FAMILIES_MIXTURE_H
#define FR_SRC_ENGINE_FAMILIES_MIXTURE_H

#include "src/engine/families/family.h"

/* Reads the keys into spec->layer.experts and spec->mixture. Before the call, these must have the family's defaults.
 * Defaults include the kind of routers (scores, corrections, gates), for which config.json has no key. fr_mixture_rows
 * also writes the keys, including all that GGUF has for a router. GGUF only has a key for the number of leading dense
 * layers. So a model can't be written if a layer after the leading ones has no mixture. */
extern const fr_config_row fr_mixture_rows[];
fr_status fr_mixture_read(const fr_source *source, fr_model_spec *spec);

/* Functions for families that have fewer keys. fr_mixture_put_keys writes the sizes; all layers must have a mixture.
 * fr_mixture_put_counts writes only the number of experts and how many of them a row uses. */
fr_status fr_mixture_put_keys(const fr_trunk_spec *spec, const char *where, fr_gguf_writer *writer);
void fr_mixture_put_counts(const fr_trunk_spec *spec, fr_gguf_writer *writer);

/* Finds the first layer that has a mixture, for functions that write keys. If only the MTP layer has one, gives the
 * number of layers. Fails if not even the MTP layer has one. `where` is the beginning of the error line. */
fr_status fr_mixture_first(const fr_trunk_spec *spec, const char *where, size_t *first);

/* Reads the groups of experts from config.json. */
fr_status fr_mixture_read_groups(const json_t *text, const char *where, fr_experts_spec *experts);

/* Checks that the numbers of experts, groups and layers fit together. The functions below check it too. */
fr_status fr_mixture_check(const fr_model_spec *spec, const char *where);

/* Makes the layers of a spec. All layers have a mixture, except the leading ones and those marked in `dense`. dense may
 * be NULL; then no layer is marked. */
fr_status fr_mixture_layers(const fr_source *source, fr_model_spec *spec, const bool *dense);

/* Makes the layers of a spec. All layers have a mixture, except the leading ones. */
fr_status fr_mixture_behind_leading(const fr_source *source, fr_model_spec *spec);

/* Gives the MTP layer a dense feed-forward, which is as wide as that of dense layers. The layers must have been
 * made. */
void fr_mixture_dense_mtp(fr_model_spec *spec);

/* Makes the layers of a spec. In config.json, mlp_layer_types says for each layer whether it is sparse or dense. If
 * this key is missing, only the leading layers are dense. */
fr_status fr_mixture_told_layers(const fr_source *source, fr_model_spec *spec);

/* Makes the layers of a spec. Which layers have a mixture is decided by decoder_sparse_step and mlp_only_layers, keys
 * of Qwen's configurations. */
fr_status fr_mixture_sparse_layers(const fr_source *source, fr_model_spec *spec);

/* The names of the tensors of a layer's feed-forward, which is dense or a mixture with shared experts.
 * fr_block_sparse_names has the names of Mixtral's published files. In a family's list, it must come before
 * fr_mixture_names. */
extern const fr_tensor_name fr_mixture_names[], fr_block_sparse_names[];

#endif
