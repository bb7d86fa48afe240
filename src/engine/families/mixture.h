/* Mixtures of experts as configurations of several families have them: keys, layers, and names of tensors.
 *
 * In: the text model's part of config.json, or GGUF metadata as llama.cpp's converter writes it. Out: checked numbers
 * in a spec, and layers that have a mixture; of those the converter's keys. */
#ifndef FR_SRC_ENGINE_FAMILIES_MIXTURE_H
#define FR_SRC_ENGINE_FAMILIES_MIXTURE_H

#include "src/engine/families/family.h"

/* Its keys, read into spec->layer.experts and spec->mixture, with what stands there for defaults: they alone say what
 * a family's routers are, scores, corrections, gates. And written, with all that GGUF can say of a router: there is no
 * key for a layer without a mixture behind a layer that has one. */
extern const fr_config_row fr_mixture_rows[];
fr_status fr_mixture_read(const fr_source *source, fr_model_spec *spec);

/* The same of families that say less: sizes, all layers having a mixture; how many experts there are and work. */
fr_status fr_mixture_put_keys(const fr_trunk_spec *spec, const char *where, fr_gguf_writer *writer);
void fr_mixture_put_counts(const fr_trunk_spec *spec, fr_gguf_writer *writer);

/* Groups of experts in config.json. */
fr_status fr_mixture_read_groups(const json_t *text, const char *where, fr_experts_spec *experts);


/* The layers of a spec, which have a mixture but for the leading ones and those that are `dense` (NULL: no others). */
fr_status fr_mixture_layers(const fr_source *source, fr_model_spec *spec, const bool *dense);

/* The same where no others are. */
fr_status fr_mixture_behind_leading(const fr_source *source, fr_model_spec *spec);

/* The same by decoder_sparse_step and mlp_only_layers of Qwen's configurations. */
fr_status fr_mixture_sparse_layers(const fr_source *source, fr_model_spec *spec);

/* The names of a layer's feed-forward: dense, or a mixture and its shared experts; fields of fr_layer. And those of a
 * mixture as Mixtral's published files have it, which stand before them. */
extern const fr_tensor_name fr_mixture_names[], fr_block_sparse_names[];

#endif
