/* Gated DeltaNet in configurations: its sizes, and which layers are.
 *
 * In: the text model's part of config.json, or GGUF metadata as llama.cpp's converter writes it. Out: a spec's
 * layer.deltanet, beside the attention of the other layers; of a spec the converter's keys. */
#ifndef FR_SRC_DELTANET_CONFIG_H
#define FR_SRC_DELTANET_CONFIG_H

#include "src/families/family.h"

/* Written with the kinds of layers, MTP layers' too. */
extern const fr_config_part fr_deltanet_part;

/* Which layers are, for each of them; without a word of it all but every fourth. */
fr_status fr_deltanet_kinds(const fr_source *source, const fr_model_spec *spec, bool *recurrent);

/* Makes one of a layer with attention. */
void fr_deltanet_layer(const fr_deltanet_spec *deltanet, fr_layer_spec *layer);

#endif
