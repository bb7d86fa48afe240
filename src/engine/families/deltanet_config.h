/* Gated DeltaNet in configurations: its sizes, and which layers are.
 *
 * In: the text model's part of config.json, or GGUF metadata as llama.cpp's converter writes it. Out: a spec's
 * layer.deltanet, beside the attention of the other layers; of a spec the converter's keys. */
#ifndef FR_SRC_ENGINE_FAMILIES_DELTANET_CONFIG_H
#define FR_SRC_ENGINE_FAMILIES_DELTANET_CONFIG_H

#include "src/engine/families/family.h"

/* Written with the kinds of layers, MTP layers' too. */
extern const fr_config_part fr_deltanet_part;

/* A spec's layers, as `layers` makes them of the rest of it, those among them that are gated DeltaNet. */
fr_status fr_deltanet_layers(const fr_source *source, fr_model_spec *spec,
                             fr_status (*layers)(const fr_source *source, fr_model_spec *spec));

/* Names of what such a layer has beside the projections of its input. */
extern const fr_tensor_name fr_deltanet_names[];

#endif
