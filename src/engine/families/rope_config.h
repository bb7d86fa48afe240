/* Reads and writes the rotary positions of decoders, in configurations with one form of them.
 *
 * In: the text model's part of config.json, or GGUF metadata as llama.cpp's converter writes it. Out: a checked base
 * and scaling; or the converter's keys of a spec. Default, linear, llama3, yarn and longrope are built. The family
 * decides how many values of a head are rotated, which of them together, and along which axes. */
#ifndef FR_SRC_ENGINE_FAMILIES_ROPE_CONFIG_H
#define FR_SRC_ENGINE_FAMILIES_ROPE_CONFIG_H

#include "formats/gguf_write.h"
#include "formats/json.h"
#include "src/engine/families/family.h"

/* Gives the object of config.json with the scaling of rotary positions, and its key: rope_scaling if that is not
 * empty, as in older files and in transformers' order, otherwise rope_parameters; NULL: there is none. */
fr_status fr_rope_parameters(const json_t *text, const char *where, const json_t **parameters, const char **key);

/* Gives the name of the key for the kind of scaling in such an object; it has another name in older files. */
const char *fr_rope_type_key(const json_t *parameters);

/* Sets the whole spec by config.json; theta's default is read from it, and no values are rotated yet. *partial: the
 * default for the part of a head that is rotated, then the part. trained: the default for the trained positions of
 * llama3's and yarn's scaling. */
fr_status fr_rope_from_json(fr_rope_spec *rope, const json_t *text, size_t trained, const char *where, double *partial);

/* Sets the scaling of a spec of the default kind: none, yarn, or linear, which a file with only a factor means. */
fr_status fr_rope_scaling_from_gguf(fr_rope_spec *rope, const fr_gguf *gguf);

/* Checks that LongRoPE has one divisor for each rotated angle: all entries after them are 0. */
fr_status fr_rope_check_longrope(const fr_rope_spec *rope, const char *where);

/* Writes the keys of a spec's scaling: that of its one form, or of the full layers. */
fr_status fr_rope_put(const fr_family *family, const fr_trunk_spec *spec, const char *where, fr_gguf_writer *writer);

/* Writes the keys of a scaling; llama3's has none. */
fr_status fr_rope_put_scaling(const fr_rope_spec *rope, const char *where, fr_gguf_writer *writer);

#endif
