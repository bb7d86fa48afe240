/* A family's rows, read and written: see family.h.
 *
 * In: a source and a family. Out: a checked spec; of a spec the converter's keys. A line of a failure names the key. */
#ifndef FR_SRC_ENGINE_FAMILIES_CONFIG_H
#define FR_SRC_ENGINE_FAMILIES_CONFIG_H

#include "src/engine/families/family.h"

/* Of a model's files: config.json with its text part, or GGUF metadata. */
fr_status fr_source_of(fr_weights *weights, fr_source *source);

/* spec->trunk.layer is the caller's to free, after a failure too. */
fr_status fr_family_read(const fr_family *family, const fr_source *source, fr_model_spec *spec);

/* The keys of a decoder's sizes in GGUF, as llama.cpp's converter writes them. mtp_layers: that stand behind the
 * others. What has no key there is FR_INPUT, `where` in its line. */
fr_status fr_family_put(const fr_family *family, const fr_trunk_spec *spec, size_t mtp_layers, const char *where,
                        fr_gguf_writer *writer);

#endif
