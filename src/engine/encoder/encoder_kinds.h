/* The kinds of text encoders: their configuration and the names of their tensors.
 *
 * In: config.json of a folder, or GGUF metadata. Out: a spec (encoder_parts.h). A kind is a row of the table in
 * encoder_kinds.c: which files are of it, what reads its configuration, and what its tensors are called. */
#ifndef FR_SRC_ENGINE_ENCODER_ENCODER_KINDS_H
#define FR_SRC_ENGINE_ENCODER_ENCODER_KINDS_H

#include "formats/json.h"
#include "src/engine/encoder/encoder_parts.h"

/* The names of tensors, without ".weight" and ".bias"; those of a layer follow the layer's prefix and number. NULL: the
 * kind has no such tensor. */
struct fr_encoder_names {
    const char *const *prefixes; /* what may come before all names, NULL at the end */
    const char *words, *positions, *types, *embedding_norm, *final_norm, *relative;
    const char *layer; /* before the number of a layer; a point follows it */
    const char *q, *k, *v, *qkv, *o, *q_norm, *k_norm;
    const char *norm1, *norm2, *post1, *post2;
    const char *gate, *up, *down;
    const char *gate_up; /* the gate and up as one tensor */
    bool up_first;       /* in that tensor up comes before the gate */
    /* The classifier's; they have no prefix but their own. */
    const char *head_dense, *head_norm, *head_label;
};

struct fr_encoder_kind {
    const char *name;               /* in words, for people */
    const char *const *model_types; /* model_type of config.json, NULL at the end */
    /* general.architecture, NULL at the end; the first is written. A kind without read_gguf is read as another one. */
    const char *const *gguf;
    fr_status (*read)(const json_t *config, const char *where, const fr_weights *weights, fr_encoder_spec *spec);
    fr_status (*read_gguf)(const fr_gguf *gguf, const fr_weights *weights, fr_encoder_spec *spec);
    /* Several spellings of the names; the first whose table of words is there is taken. The last has no words. */
    const fr_encoder_names *names;
    const fr_encoder_names *gguf_names;
};

/* Gives the kind of files; NULL: they are no encoder's. */
const fr_encoder_kind *fr_encoder_kind_of(const fr_checkpoint *files);

/* Reads the spec of an encoder's files, and checks its sizes. */
fr_status fr_encoder_read(const fr_weights *weights, fr_encoder_spec *spec);

#endif
