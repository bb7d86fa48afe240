/* Names of tensors as data: what a tensor is called in either kind of file, what it is for, and its shape.
 *
 * In: a family's tables. Out: fields of fr_trunk, fr_layer or another struct, bound (binding); the same tables tell
 * export what a published tensor is called in GGUF, synth what to make, inspect what is read. A field that nothing
 * fills, or a tensor that nobody reads, is an error that names it. */
#ifndef FR_SRC_NAMES_H
#define FR_SRC_NAMES_H

#include <stddef.h>

#include "src/decoder/layer.h"
#include "src/decoder/weights.h"

/* Sizes, by what has them. */
typedef enum fr_dim {
    FR_DIM_ONE,
    FR_DIM_HIDDEN,
    FR_DIM_TWICE_HIDDEN,
    FR_DIM_VOCAB,
    FR_DIM_HEAD,    /* values of an attention head */
    FR_DIM_QUERIES, /* of all heads */
    FR_DIM_KEYS,    /* of all key/value heads */
    FR_DIM_FFN,
    FR_DIM_EXPERTS,
    FR_DIM_EXPERT_FFN,
    FR_DIM_TOKEN,  /* what a layer is told of a token */
    FR_DIM_TOKENS, /* what all layers are */
} fr_dim;

/* What becomes of a tensor, and so the type of its field. */
typedef enum fr_slot {
    FR_SLOT_MATRIX,  /* fr_matrix [rows, cols] that every step reads */
    FR_SLOT_TABLE,   /* the same, of which a step looks up rows */
    FR_SLOT_PARTS,   /* fr_matrix[2], [rows, cols] each, one tensor of both */
    FR_SLOT_VECTOR,  /* const float *, [rows] */
    FR_SLOT_EXPERTS, /* fr_matrix *: a matrix [rows, cols] for each expert, one tensor of all */
    FR_SLOT_EXPERTS_PARTS, /* the same of two matrices for each, into this field and the next */
} fr_slot;

/* Who has it: all of these must hold. */
enum {
    FR_IF_KEYS = 1,     /* layers with K/V of their own */
    FR_IF_VALUES = 2,   /* layers with a value projection */
    FR_IF_EXPERTS = 4,
    FR_IF_TOKENS = 8,   /* models with per-layer embeddings */
    FR_IF_EMBEDS = 16,  /* models that embed ids */
    FR_IF_ATTENTION_BIASED = 32,
    FR_IF_FFN_BIASED = 64,
    FR_IF_THERE = 128,  /* where the file has it; else the field stays empty */
};

/* How rows of queries or keys stand in GGUF as against published files (llama.cpp's converter): in each head, those
 * that turn together side by side, where the published file has them half a head apart; or the other way round. */
typedef enum fr_row_order { FR_ROWS_ALIKE, FR_ROWS_TO_PAIRS, FR_ROWS_TO_HALVES } fr_row_order;

/* A line of a table. Several lines about one field: the first whose tensor is there fills it. */
typedef struct fr_name {
    const char *published, *gguf; /* NULL: that kind of file doesn't have it */
    size_t field;                 /* offsetof in the struct that the table is about */
    fr_slot slot;
    fr_dim rows, cols;
    unsigned needs; /* FR_IF_... */
    bool top;       /* in published files it stands beside the model, not below it */
    fr_row_order order;
} fr_name;

/* Lines of tables: the struct and its field, sizes (what follows FR_DIM_), both names, and more by designators. */
#define FR_NAMED(of, at, kind, r, c, p, g, ...)                                                                       \
    {.published = p, .gguf = g, .field = offsetof(of, at), .slot = kind, .rows = FR_DIM_##r, .cols = FR_DIM_##c,     \
     __VA_ARGS__}
#define FR_MATRIX(of, at, ...)  FR_NAMED(of, at, FR_SLOT_MATRIX, __VA_ARGS__)
#define FR_TABLE(of, at, ...)   FR_NAMED(of, at, FR_SLOT_TABLE, __VA_ARGS__)
#define FR_VECTOR(of, at, r, ...) FR_NAMED(of, at, FR_SLOT_VECTOR, r, ONE, __VA_ARGS__)
#define FR_EXPERTS(of, at, ...) FR_NAMED(of, at, FR_SLOT_EXPERTS, __VA_ARGS__)

typedef struct fr_naming {
    const fr_name *model; /* fields of fr_trunk; up to a line without names */
    const fr_name *layer; /* fields of fr_layer */
    const fr_name *chained; /* fields of fr_chained (families/chained.h), beside a layer's; NULL: has none */
    const char *const *extras; /* names that are read by nobody, as patterns of fnmatch; NULL-terminated */
} fr_naming;

/* A model of an embedding, a norm and a head, which may be the embedding. */
extern const fr_name fr_usual_model_names[];

/* What is bound: where names begin, and whose sizes count. */
typedef struct fr_binding {
    fr_weights *weights;
    char prefix[128]; /* "model.layers.7." or "blk.7." and so on */
    const fr_trunk_spec *trunk;
    const fr_layer_spec *layer; /* NULL: of the model as a whole */
    const int32_t *head_order;  /* of a matrix [vocab, hidden], if its rows would be packed in an order; else NULL */
    bool *head_sorted;          /* whether they were */
} fr_binding;

/* What the published names of a model's tensors begin with; multimodal models keep the text model one level down. */
const char *fr_names_prefix(const fr_weights *weights);

/* A binding for the model's own tensors, and for those of a layer by its number. */
fr_binding fr_binding_model(fr_weights *weights, const fr_trunk_spec *trunk);
fr_binding fr_binding_layer(fr_weights *weights, const fr_trunk_spec *trunk, const fr_layer_spec *layer, size_t index);

size_t fr_dim_size(fr_dim dim, const fr_trunk_spec *trunk, const fr_layer_spec *layer);

/* Whether a model of this spec has it; FR_IF_THERE is not looked at. */
bool fr_name_needed(const fr_name *name, const fr_trunk_spec *trunk, const fr_layer_spec *layer);

/* Whether the file has it. */
bool fr_name_there(const fr_binding *binding, const fr_name *name);

/* Fills the fields of `base` that the table speaks of. */
fr_status fr_names_bind(const fr_binding *binding, const fr_name *names, void *base);

/* Whether a tensor is one of the family's extras. */
bool fr_names_extra(const fr_naming *naming, const char *tensor);

/* When all is bound: whether every tensor of the file is read by somebody, or is one of the family's extras. What
 * stands behind the last layer is an MTP layer's, if the family has any: at most `chained` of them. */
fr_status fr_names_check_read(const fr_weights *weights, const fr_naming *naming, size_t layers, size_t chained);

/* ------------------------------------------------------------------------------------------------ without a binding */

/* Whether a later line may fill the same field where the file has this one's tensor not. */
bool fr_name_has_another(const fr_name *name, bool gguf);

/* Whether the line's slot has room for more than one field, the next one too. */
bool fr_name_fills_two(const fr_name *name);

/* The line that a published tensor is named in, and with which layer's number. `layers`: those of the trunk; lines of
 * the chained table are about layers behind them, of which there are `chained`. */
typedef struct fr_name_found {
    const fr_name *name;
    bool of_layer;
    size_t layer;
} fr_name_found;

bool fr_names_find(const fr_naming *naming, const char *prefix, const char *published, size_t layers, size_t chained,
                   fr_name_found *found);

/* Row `row` of a tensor in GGUF is that row of the published one. dims: of the layer's heads, and of their values that
 * turn. */
size_t fr_row_published(fr_row_order order, size_t head_dim, size_t turning, size_t row);

#endif
