/* Reads and writes the rotary positions of decoders whose configuration has one form of them.
 *
 * In: the text model's part of config.json, or GGUF metadata as llama.cpp's converter writes it. Out: a checked base
 * and scaling. In the other direction: a spec's keys as the converter writes them. The kinds default, linear, llama3,
 * yarn and longrope are supported. The family decides how many values of a head are rotated, which values are rotated
 * together, and along which axes. */
#ifndef FR_SRC_ENGINE_FAMILIES_ROPE_CONFIG_H
#define FR_SRC_ENGINE_FAMILIES_ROPE_CONFIG_H

#include "formats/gguf_write.h"
#include "formats/json.h"
#include "src/engine/families/family.h"

/* Gives the object of config.json that has the scaling of rotary positions, and the object's key. Older files have
 * rope_scaling, and newer ones rope_parameters. As in transformers, rope_scaling is used if it is not empty.
 * *parameters is NULL if there is no such object. */
fr_status fr_rope_parameters(const json_t *text, const char *where, const json_t **parameters, const char **key);

/* Gives the key for the kind of scaling in a rope_parameters or rope_scaling object. The key has another name in older
 * files. */
const char *fr_rope_type_key(const json_t *parameters);

/* Reads a whole form from config.json, except the number of rotated values, which stays 0. Before the call, rope->theta
 * and *partial must have the family's defaults, which stay if the file has no keys for them. *partial: the part of a
 * head that is rotated. trained: the number of positions for which the model was trained. llama3's and yarn's scaling
 * use it if the file has no key for this number. */
fr_status fr_rope_from_json(fr_rope_spec *rope, const json_t *text, size_t trained, const char *where, double *partial);

/* Returns true if these positions have the type "default" in config.json. For other types, transformers computes
 * frequencies with a function that reads partial_rotary_factor. This is so even in families that otherwise ignore this
 * key. */
bool fr_rope_is_plain(const fr_rope_spec *rope);

/* Reads the scaling into a form that has none yet: linear, yarn, or none. If a file has a factor but no kind, the
 * scaling is linear. */
fr_status fr_rope_scaling_from_gguf(fr_rope_spec *rope, const fr_gguf *gguf);

/* Reads LongRoPE of a GGUF file from its tensors. trained: the number of positions for which the model was trained,
 * used if there is no key for it. If `trained` is NAN, the key is required. */
fr_status fr_rope_longrope_from_gguf(const fr_source *source, double trained, fr_rope_spec *rope);

/* Checks that LongRoPE has one divisor for each rotated angle. All later entries must be 0. */
fr_status fr_rope_check_longrope(const fr_rope_spec *rope, const char *where);

/* Writes the keys of a spec's scaling. If there are two rotary forms, the scaling of the full layers is written. */
fr_status fr_rope_put(const fr_family *family, const fr_trunk_spec *spec, const char *where, fr_gguf_writer *writer);

/* Writes the keys of a scaling. llama3's scaling has no keys. */
fr_status fr_rope_put_scaling(const fr_rope_spec *rope, const char *where, fr_gguf_writer *writer);

#endif
