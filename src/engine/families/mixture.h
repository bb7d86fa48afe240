/* Reads and writes mixtures of experts, which several families have: keys, layers, and names of tensors.
 *
 * In: the text model's part of config.json, or GGUF metadata as llama.cpp's converter writes it. Out: checked numbers
 * in a spec, and layers that have a mixture; or a spec's keys as the converter writes them. */
#ifndef FR_SRC_ENGINE_FAMILIES_MIXTURE_H
#define FR_SRC_ENGINE_FAMILIES_MIXTURE_H

#include "src/engine/families/family.h"

/* Reads the keys into spec->layer.experts and spec->mixture. Before the call these must have the family's defaults,
 * among them the kind of the routers (scores, corrections, gates), for which config.json has no key. fr_mixture_rows
 * also writes the keys, including all that GGUF has for a router. GGUF has only the number of leading dense layers, so
 * a model with a later layer without a mixture can't be written. */
extern const fr_config_row fr_mixture_rows[];
fr_status fr_mixture_read(const fr_source *source, fr_model_spec *spec);

/* For families with fewer keys: fr_mixture_put_keys writes the sizes, if all layers have a mixture;
 * fr_mixture_put_counts writes only how many experts there are and how many are chosen. */
fr_status fr_mixture_put_keys(const fr_trunk_spec *spec, const char *where, fr_gguf_writer *writer);
void fr_mixture_put_counts(const fr_trunk_spec *spec, fr_gguf_writer *writer);

/* For the writers of these keys: finds the first layer that has a mixture. If only the MTP layer has one, gives the
 * number of layers; if not even that layer has one, fails. `where` begins the message. */
fr_status fr_mixture_first(const fr_trunk_spec *spec, const char *where, size_t *first);

/* Reads the groups of experts from config.json. */
fr_status fr_mixture_read_groups(const json_t *text, const char *where, fr_experts_spec *experts);

/* Checks that the numbers of experts, groups and layers fit together. The functions below check it too. */
fr_status fr_mixture_check(const fr_model_spec *spec, const char *where);

/* Makes the layers of a spec. Each has a mixture, except the leading ones and those marked in `dense`; dense NULL:
 * none is marked. */
fr_status fr_mixture_layers(const fr_source *source, fr_model_spec *spec, const bool *dense);

/* Makes the layers of a spec; all have a mixture except the leading ones. */
fr_status fr_mixture_behind_leading(const fr_source *source, fr_model_spec *spec);

/* Gives the MTP layer of made layers a dense feed-forward, as wide as that of dense layers. */
void fr_mixture_dense_mtp(fr_model_spec *spec);

/* Makes the layers of a spec. mlp_layer_types in config.json says of each layer if it is sparse or dense. Without this
 * key the leading layers are dense. */
fr_status fr_mixture_told_layers(const fr_source *source, fr_model_spec *spec);

/* Makes the layers of a spec; decoder_sparse_step and mlp_only_layers of Qwen's configurations select those that have
 * a mixture. */
fr_status fr_mixture_sparse_layers(const fr_source *source, fr_model_spec *spec);

/* The names of the tensors of a layer's feed-forward: of a dense one, or of a mixture and its shared experts.
 * fr_block_sparse_names has the names of Mixtral's published files, and must come before fr_mixture_names in a
 * family's list. */
extern const fr_tensor_name fr_mixture_names[], fr_block_sparse_names[];

#endif
