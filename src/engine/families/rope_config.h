/* Rotary positions in configurations of decoders that have one form of them.
 *
 * In: the text model's part of config.json, or GGUF metadata as llama.cpp's converter writes it. Out: a base and a
 * scaling, checked; of a spec the converter's keys. Built are default, linear, llama3, yarn and longrope. How many
 * values of a head are rotated, which of them together and along which axes is the family's to say. */
#ifndef FR_SRC_ENGINE_FAMILIES_ROPE_CONFIG_H
#define FR_SRC_ENGINE_FAMILIES_ROPE_CONFIG_H

#include "formats/gguf_write.h"
#include "formats/json.h"
#include "src/engine/families/family.h"

/* The object of config.json that says how rotary positions are scaled, and its key: rope_scaling where that says
 * anything, as in older files and in transformers' order, else rope_parameters; NULL where there is none. */
fr_status fr_rope_parameters(const json_t *text, const char *where, const json_t **parameters, const char **key);

/* What such an object calls its kind of scaling: older files have another key. */
const char *fr_rope_type_key(const json_t *parameters);

/* Sets the whole spec but for theta's default, which stands in it; no values are rotated yet. partial: the part of a
 * head that is rotated where nothing says it; what is said. trained: the positions that llama3's and yarn's scalings
 * are told of where nothing says them. */
fr_status fr_rope_from_json(fr_rope_spec *rope, const json_t *text, size_t trained, const char *where, double *partial);

/* A scaling onto a spec of the default kind: none, yarn or linear, which is meant where a file gives a factor alone. */
fr_status fr_rope_scaling_from_gguf(fr_rope_spec *rope, const fr_gguf *gguf);

/* That LongRoPE's divisors are as many as there are angles that rotate: all behind them are 0. */
fr_status fr_rope_check_longrope(const fr_rope_spec *rope, const char *where);

/* The keys of a spec's scaling: of one form, or of the full layers'. */
fr_status fr_rope_put(const fr_family *family, const fr_trunk_spec *spec, const char *where, fr_gguf_writer *writer);

/* The keys of a scaling. llama3's has none. */
fr_status fr_rope_put_scaling(const fr_rope_spec *rope, const char *where, fr_gguf_writer *writer);

#endif
