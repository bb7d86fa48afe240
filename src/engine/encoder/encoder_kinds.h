/* The kinds of text encoders: their configuration and the names of their tensors.
 *
 * In: config.json of a folder, or GGUF metadata. Out: a spec (encoder_parts.h). A kind is a row of the table in
 * encoder_kinds.c. It has the names by which the kind's files are recognized, the functions that read its
 * configuration, and the names of its tensors. */
#ifndef FR_SRC_ENGINE_ENCODER_ENCODER_KINDS_H
#define FR_SRC_ENGINE_ENCODER_ENCODER_KINDS_H

#include "formats/json.h"
#include "src/engine/encoder/encoder_parts.h"

/* The names of tensors, without ".weight" and ".bias". In a layer's tensor, the name follows the layer's prefix and
 * number. A name is NULL if the kind has no such tensor. */
struct fr_encoder_names {
    const char *const *prefixes; /* the possible beginnings of all names; NULL ends the list */
    const char *words, *positions, *types, *embedding_norm, *final_norm, *relative;
    const char *layer; /* the part of a name before a layer's number; a point follows the number */
    const char *q, *k, *v, *qkv, *o, *q_norm, *k_norm;
    const char *norm1, *norm2, *post1, *post2;
    const char *gate, *up, *down;
    const char *up_alone; /* the name of `up` in layers without a gate; NULL: `up` has the same name in all layers */
    /* The names of a mixture's tensors. The names of the experts are whole names, without ".weight". */
    const char *router, *expert_up, *expert_down, *expert_bias;
    bool experts_flat;   /* the experts' tensors have two dimensions, and the tensors of down are stored transposed:
                          * their rows are the columns of down */
    const char *gate_up; /* one tensor that contains both the gate and up */
    bool up_first;       /* in the tensor `gate_up`, the rows of up come before those of the gate */
    /* The names of the classifier's tensors, which get no prefix. */
    const char *head_dense, *head_norm, *head_label;
};

struct fr_encoder_kind {
    const char *name;               /* the kind's name in descriptions */
    const char *const *model_types; /* values of model_type in config.json; NULL ends the list */
    /* Values of general.architecture in GGUF; NULL ends the list. The first value is the one that is written. If a kind
     * has no read_gguf, its GGUF files are read as another kind. */
    const char *const *gguf;
    fr_status (*read)(const json_t *config, const char *where, const fr_weights *weights, fr_encoder_spec *spec);
    fr_status (*read_gguf)(const fr_gguf *gguf, const fr_weights *weights, fr_encoder_spec *spec);
    /* The possible spellings of the names. The first spelling is used for which the files have the tensor `words`. An
     * entry without `words` ends the list. */
    const fr_encoder_names *names;
    const fr_encoder_names *gguf_names;
};

/* Gives the kind of encoder that the files contain. Gives NULL if they are not an encoder's files. */
const fr_encoder_kind *fr_encoder_kind_of(const fr_checkpoint *files);

/* Reads the spec of an encoder's files, and checks its sizes. */
fr_status fr_encoder_read(const fr_weights *weights, fr_encoder_spec *spec);

#endif
