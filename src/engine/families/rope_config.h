/* Reads and writes the rotary positions of decoders, in configurations with one form of them.
 *
 * In: the text model's part of config.json, or GGUF metadata as llama.cpp's converter writes it. Out: a checked base
 * and scaling; or a spec's keys as the converter writes them. Default, linear, llama3, yarn and longrope are
 * supported. The family decides how many values of a head are rotated, which of them together, and along which
 * axes. */
#ifndef FR_SRC_ENGINE_FAMILIES_ROPE_CONFIG_H
#define FR_SRC_ENGINE_FAMILIES_ROPE_CONFIG_H

#include "formats/gguf_write.h"
#include "formats/json.h"
#include "src/engine/families/family.h"

/* Gives the object of config.json with the scaling of rotary positions, and its key. Older files have rope_scaling,
 * newer ones rope_parameters. rope_scaling counts if it is not empty, as in transformers. NULL if there is no such
 * object. */
fr_status fr_rope_parameters(const json_t *text, const char *where, const json_t **parameters, const char **key);

/* Gives the key for the kind of scaling in a rope_parameters or rope_scaling object; older files have another name for
 * it. */
const char *fr_rope_type_key(const json_t *parameters);

/* Reads the whole spec from config.json, except for the number of rotated values, which stays 0. Before the call,
 * rope->theta and *partial must have the family's defaults, which stay if the file has no keys for them. *partial: the
 * share of a head that is rotated. trained: the number of positions for which the model was trained; llama3's and
 * yarn's scaling use it if the file has no key for that. */
fr_status fr_rope_from_json(fr_rope_spec *rope, const json_t *text, size_t trained, const char *where, double *partial);

/* Returns true if config.json's type of these positions is "default". For other types transformers computes
 * frequencies by a function that reads partial_rotary_factor, also in families that ignore this key otherwise. */
bool fr_rope_is_plain(const fr_rope_spec *rope);

/* Reads the scaling of a spec that has none yet: linear, yarn, or none. If a file has only a factor, the scaling is
 * linear. */
fr_status fr_rope_scaling_from_gguf(fr_rope_spec *rope, const fr_gguf *gguf);

/* Reads LongRoPE of a GGUF file from its tensors. trained: the number of positions for which the model was trained, if
 * there is no key for it; NAN: the key is required. */
fr_status fr_rope_longrope_from_gguf(const fr_source *source, double trained, fr_rope_spec *rope);

/* Checks that LongRoPE has one divisor for each rotated angle: the entries after these must be 0. */
fr_status fr_rope_check_longrope(const fr_rope_spec *rope, const char *where);

/* Writes the keys of a spec's scaling. If there are two rotary forms, the scaling of the full layers is written. */
fr_status fr_rope_put(const fr_family *family, const fr_trunk_spec *spec, const char *where, fr_gguf_writer *writer);

/* Writes the keys of a scaling. llama3's scaling has no keys. */
fr_status fr_rope_put_scaling(const fr_rope_spec *rope, const char *where, fr_gguf_writer *writer);

#endif
