/* Reads the sizes of gated DeltaNet from configurations, and the layers that have it.
 *
 * In: the text model's part of config.json, or GGUF metadata as llama.cpp's converter writes it. Out: a spec's
 * layer.deltanet, beside the attention of the other layers; or the converter's keys of a spec. */
#ifndef FR_SRC_ENGINE_FAMILIES_DELTANET_CONFIG_H
#define FR_SRC_ENGINE_FAMILIES_DELTANET_CONFIG_H

#include "src/engine/families/family.h"

/* The sizes; the kinds of layers are written with them, MTP layers' too. */
extern const fr_config_part fr_deltanet_part;

/* Makes a spec's layers by `layers`, and then gives gated DeltaNet to those that have it. */
fr_status fr_deltanet_layers(const fr_source *source, fr_model_spec *spec,
                             fr_status (*layers)(const fr_source *source, fr_model_spec *spec));

/* The names of such a layer's tensors, except the projections of its input. */
extern const fr_tensor_name fr_deltanet_names[];

#endif
