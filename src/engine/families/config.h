/* Reads and writes a family's rows: see family.h.
 *
 * In: a source and a family. Out: a checked spec. In the other direction: a spec's keys as the converter writes them.
 * An error line names the key. */
#ifndef FR_SRC_ENGINE_FAMILIES_CONFIG_H
#define FR_SRC_ENGINE_FAMILIES_CONFIG_H

#include "src/engine/families/family.h"

/* Makes the source for a model's files: config.json and its part for the text model, or GGUF metadata. */
fr_status fr_source_of(fr_weights *weights, fr_source *source);

/* Reads a model's spec. The caller frees spec->trunk.layer, also after a failure. */
fr_status fr_family_read(const fr_family *family, const fr_source *source, fr_model_spec *spec);

/* Writes the keys of a decoder's sizes to GGUF, as llama.cpp's converter does. mtp_layers: the number of MTP layers
 * after the other layers. Returns FR_INPUT if GGUF has no key for a property of the spec. `where` is the beginning of
 * the error line. */
fr_status fr_family_put(const fr_family *family, const fr_trunk_spec *spec, size_t mtp_layers, const char *where,
                        fr_gguf_writer *writer);

#endif
