/* Reads the sizes of gated DeltaNet from configurations, and finds out which layers have it.
 *
 * In: the text model's part of config.json, or GGUF metadata as llama.cpp's converter writes it. Out: layer.deltanet in
 * a spec, and the attention of the other layers. In the other direction: a spec's keys as the converter writes them. */
#ifndef FR_SRC_ENGINE_FAMILIES_DELTANET_CONFIG_H
#define FR_SRC_ENGINE_FAMILIES_DELTANET_CONFIG_H

#include "src/engine/families/family.h"

/* Reads and writes the sizes. Writing also writes the kinds of all layers, including MTP layers. */
extern const fr_config_part fr_deltanet_part;

/* Makes a spec's layers by calling `layers`. Then sets gated DeltaNet in the layers that have it. */
fr_status fr_deltanet_layers(const fr_source *source, fr_model_spec *spec,
                             fr_status (*layers)(const fr_source *source, fr_model_spec *spec));

/* The names of the tensors of a gated DeltaNet layer. The projections of its input are not in this table. */
extern const fr_tensor_name fr_deltanet_names[];

#endif
