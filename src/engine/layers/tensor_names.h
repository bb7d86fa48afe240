/* Names of tensors as data: a tensor's name in either kind of file, the field that it fills, and its shape.
 *
 * In: a family's tables. Out: the bound fields of fr_trunk, fr_layer or another struct. The same tables give export
 * the names of published tensors in GGUF, synth the tensors to make, and inspect the tensors that are read. A field
 * that nothing fills, or a tensor that nothing reads, is an error that names it. */
#ifndef FR_SRC_ENGINE_LAYERS_TENSOR_NAMES_H
#define FR_SRC_ENGINE_LAYERS_TENSOR_NAMES_H

#include <stddef.h>

#include "src/engine/layers/layer.h"
#include "src/engine/weights/weights.h"

/* The sizes of tensors, by name. */
typedef enum fr_dim {
    FR_DIM_ONE,
    FR_DIM_HIDDEN,
    FR_DIM_TWICE_HIDDEN,
    FR_DIM_VOCAB,
    FR_DIM_HEAD, /* values of an attention head */
    FR_DIM_HEADS,
    FR_DIM_QUERIES,        /* of all heads */
    FR_DIM_QUERIES_GATED,  /* the same, each head's followed by its gate where there are gates */
    FR_DIM_KEYS,           /* of all key/value heads */
    FR_DIM_QUERY_NORM,     /* the values that a norm of queries is over: those of a head, or of all heads */
    FR_DIM_KEY_NORM,       /* values that a norm of keys is over, likewise */
    FR_DIM_DELTA_HEADS,    /* value heads of a DeltaNet layer */
    FR_DIM_DELTA_HEAD,     /* values of one of them */
    FR_DIM_DELTA_VALUES,   /* of all of them */
    FR_DIM_DELTA_CHANNELS, /* queries and keys of its key heads, then those values */
    FR_DIM_DELTA_QKVZ,     /* those, and a gate for each value */
    FR_DIM_DELTA_BA,       /* two for each value head */
    FR_DIM_CONV_KERNEL,    /* of a convolution over positions */
    FR_DIM_FFN,
    FR_DIM_EXPERTS,
    FR_DIM_EXPERT_FFN,
    FR_DIM_Q_LORA,
    FR_DIM_Q_INPUT,      /* the input of latent attention's queries: q_lora, or hidden */
    FR_DIM_HEAD_QUERIES, /* of all its heads, nope and rotary parts */
    FR_DIM_LATENT,
    FR_DIM_NOPE,
    FR_DIM_VALUE,  /* the output of one of its heads */
    FR_DIM_VALUES, /* the outputs of all of them */
    FR_DIM_KV_B,   /* nope parts and values of all heads */
    FR_DIM_TOKEN,  /* a layer's embedding of a token */
    FR_DIM_TOKENS, /* those of all layers */
} fr_dim;

/* The kind of a tensor, which decides the type of its field. */
typedef enum fr_slot {
    FR_SLOT_MATRIX,     /* fr_matrix [rows, cols] that every step reads */
    FR_SLOT_TABLE,      /* the same, of which a step looks up rows */
    FR_SLOT_PARTS,      /* fr_matrix[2], [rows, cols] each, both in one tensor */
    FR_SLOT_THIRDS,     /* fr_matrix[3], likewise */
    FR_SLOT_VECTOR,     /* const float *, [rows] */
    FR_SLOT_ROW,        /* a vector that is a matrix of one row, [1, cols] */
    FR_SLOT_CONV,       /* const float *, [cols, rows]: of a convolution over positions, [rows, cols] in the file */
    FR_SLOT_EXPERTS,    /* fr_matrix *: a matrix [rows, cols] for each expert, all in one tensor, or a tensor each */
    FR_SLOT_HEADS,      /* fr_matrix *: a matrix [rows, cols] for each head, all in one tensor */
    FR_SLOT_KV_B,       /* fr_latent_heads, all of it, of one tensor [rows, cols] */
    FR_SLOT_QKV,        /* fr_matrix[3]: [rows, cols], then two of FR_DIM_KEYS rows, one tensor of all */
    FR_SLOT_QKV_VECTOR, /* the same for vectors */
    FR_SLOT_QKVZ,       /* fr_matrix of DeltaNet's queries, keys, values and gates, which GGUF has apart */
    /* Like FR_SLOT_EXPERTS, but with two matrices for each expert, into this field and the next; one tensor of all. */
    FR_SLOT_EXPERTS_PARTS,
    FR_SLOT_EXPERTS_VECTORS, /* const float *, [experts, rows] */
    /* Like FR_SLOT_EXPERTS_VECTORS, but with two vectors for each expert, whose values alternate, into this field and
     * the next; one tensor of all. */
    FR_SLOT_EXPERTS_VECTOR_PARTS,
} fr_slot;

/* The conditions for a model or layer to have a tensor; all that are set must hold. */
enum {
    FR_IF_KEYS = 1,   /* layers with K/V of their own */
    FR_IF_VALUES = 2, /* layers with a value projection */
    FR_IF_EXPERTS = 4,
    FR_IF_PLE = 8,     /* models with per-layer embeddings */
    FR_IF_EMBEDS = 16, /* models that embed ids */
    FR_IF_QKV_BIAS = 32,
    FR_IF_FFN_BIASED = 64,
    FR_IF_THERE = 128,     /* if the file has it; otherwise the field stays empty */
    FR_IF_ATTENTION = 256, /* layers that mix positions by attention */
    FR_IF_DELTANET = 512,  /* layers that mix them by gated DeltaNet */
    FR_IF_DENSE = 1024,    /* layers without a mixture */
    FR_IF_SHARED = 2048,   /* layers with a mixture, and experts that all rows share */
    FR_IF_SHARED_GATED = 4096,
    FR_IF_CORRECTED = 8192,     /* mixtures whose scores are corrected */
    FR_IF_Q_LORA = 1 << 15,     /* latent attention whose queries have a latent too */
    FR_IF_NORMED_HEADS = 16384, /* attention that norms queries and keys */
    FR_IF_O_BIAS = 1 << 16,
    FR_IF_INPUT_NORM = 1 << 17,     /* layers with a norm before their parts */
    FR_IF_NORM_BIAS = 1 << 18,      /* models whose norms have biases */
    FR_IF_FFN_NORM = 1 << 26,       /* layers whose feed-forward has a norm of its own before it */
    FR_IF_SHORT_CONV = 1 << 19,     /* layers that mix positions by a short convolution */
    FR_IF_FUSED = 1 << 24,          /* gated DeltaNet whose queries, keys, values and gates are one projection */
    FR_IF_PARTED = 1 << 25,         /* gated DeltaNet whose queries, keys, values and gates are several projections */
    FR_IF_SINKS = 1 << 29,          /* attention with sinks */
    FR_IF_EXPERTS_BIASED = 1 << 30, /* mixtures whose products have biases */
};

/* The order of a tensor's rows in GGUF, against that in published files (llama.cpp's converter).
 *
 * FR_ROWS_TO_PAIRS: rows of queries or keys; those that are rotated together are side by side in each head, while the
 * published file has them half a head apart. FR_ROWS_TO_NEOX: the other way round.
 *
 * FR_ROWS_TILED: rows of DeltaNet's value heads; the first of each key head come first, then the second of each,
 * while the published file has those of one key head together. Rows of queries and keys in front of them stay.
 * FR_COLS_TILED: the columns of a matrix that multiplies such heads.
 *
 * FR_ROWS_PARTED: queries of all key heads, then keys, values and gates, while the published file has those of a key
 * head together. */
typedef enum fr_row_order {
    FR_ROWS_ALIKE,
    FR_ROWS_TO_PAIRS,
    FR_ROWS_TO_NEOX,
    FR_ROWS_TILED,
    FR_COLS_TILED,
    FR_ROWS_PARTED
} fr_row_order;

/* A line of a table. If several lines are about one field, the first whose tensor is there fills it. */
typedef struct fr_tensor_name {
    /* NULL: that kind of file doesn't have it. A * stands for an expert's number: each expert's matrix is a tensor of
     * its own. */
    const char *published, *gguf;
    size_t field; /* offsetof in the struct that the table is about */
    fr_slot slot;
    fr_dim rows, cols;
    unsigned needs; /* FR_IF_... */
    bool top;       /* its name in published files lacks the prefix of the model's other tensors */
    fr_row_order order;
    bool rotary;            /* its rows are queries or keys, in the family's order (fr_tensor_naming.rotary_rows) */
    fr_values values;       /* the numbers that published files have for a vector's values */
    bool norm;              /* a vector whose numbers in published files are those of norms (fr_tensor_naming.norms) */
    fr_stack_layout layout; /* the form in which published files have a stack of experts' matrices */
} fr_tensor_name;

/* Lines of tables: the struct and its field, sizes (the part after FR_DIM_), both names, and more by designators. */
#define FR_NAMED(of, at, kind, r, c, p, g, ...)                                                                     \
    {                                                                                                               \
        .published = p, .gguf = g, .field = offsetof(of, at), .slot = kind, .rows = FR_DIM_##r, .cols = FR_DIM_##c, \
        __VA_ARGS__                                                                                                 \
    }
#define FR_MATRIX(of, at, ...)    FR_NAMED(of, at, FR_SLOT_MATRIX, __VA_ARGS__)
#define FR_TABLE(of, at, ...)     FR_NAMED(of, at, FR_SLOT_TABLE, __VA_ARGS__)
#define FR_VECTOR(of, at, r, ...) FR_NAMED(of, at, FR_SLOT_VECTOR, r, ONE, __VA_ARGS__)
#define FR_EXPERTS(of, at, ...)   FR_NAMED(of, at, FR_SLOT_EXPERTS, __VA_ARGS__)

/* A layer's queries, keys and values in one tensor, and their biases in another, as Phi's files have them and
 * llama.cpp's converter makes them with --fuse-qkv. In a table these lines come before those of separate tensors. */
#define FR_FUSED_QKV(r, ...) \
    FR_NAMED(fr_layer, attention.q, FR_SLOT_QKV, r, HIDDEN, "self_attn.qkv_proj.weight", "attn_qkv.weight", __VA_ARGS__)
#define FR_FUSED_QKV_BIAS                                                                                              \
    FR_NAMED(fr_layer, attention.q_bias, FR_SLOT_QKV_VECTOR, QUERIES, ONE, "self_attn.qkv_proj.bias", "attn_qkv.bias", \
             .needs = FR_IF_QKV_BIAS)

enum { FR_LAYER_TABLES = 5 };

typedef struct fr_tensor_naming {
    const fr_tensor_name *model; /* fields of fr_trunk; up to a line without names; NULL: fr_model_names */
    const fr_tensor_name *layer[FR_LAYER_TABLES]; /* fields of fr_layer, by tables that families share or their own */
    /* fields of fr_mtp_layer (families/mtp_layer.h), beside a layer's; NULL: the family has none */
    const fr_tensor_name *mtp;
    /* The prefixes that published names of an MTP layer's tensors may have. A name beside a layer's follows, or
     * "layers.0." and a layer's name. NULL: the tensors are named as the next layer's. */
    const char *const *mtp_prefixes;
    bool mtp_flat;         /* a layer's names follow without "layers.0." */
    bool mtp_hidden_first; /* the input of an MTP layer is [hidden row ; embedding]; otherwise the other way round */
    /* names of tensors that nothing reads, as patterns of fnmatch; NULL-terminated, or NULL */
    const char *const *extras;
    fr_values norms;          /* the numbers that published files have for the values of norms */
    fr_row_order rotary_rows; /* the order in GGUF of the rows of rotary lines */
    bool untiled;             /* its GGUF files have value heads in the published order, not in tiles */
} fr_tensor_naming;

/* The table for models of an embedding, a norm and a head, which may be the embedding. */
extern const fr_tensor_name fr_model_names[];

/* Gives the family's table of models, or the default one. */
const fr_tensor_name *fr_naming_model(const fr_tensor_naming *naming);

/* The part of a model that is bound: the prefix of its names, and the specs of its sizes. */
typedef struct fr_binding {
    fr_weights *weights;
    char prefix[128]; /* "model.layers.7." or "blk.7." and so on */
    const fr_trunk_spec *trunk;
    const fr_layer_spec *layer; /* NULL: the model as a whole is bound */
    /* the naming whose norms and rotary rows apply; NULL: tensors are taken as they are */
    const fr_tensor_naming *naming;
    /* the order in which the rows of a matrix [vocab, hidden] are packed; NULL: their own */
    const int32_t *head_order;
    bool *head_sorted; /* out: they were packed in that order */
} fr_binding;

/* Gives the prefix of the published names of a model's tensors; multimodal models keep the text model one level
 * down. */
const char *fr_tensor_names_prefix(const fr_weights *weights);

/* Gives the prefix of tensors beside the model, which is that of its head. */
const char *fr_names_top(const fr_weights *weights);

/* Makes a binding for the model's own tensors, and for those of a layer by its number. */
fr_binding fr_binding_model(fr_weights *weights, const fr_trunk_spec *trunk);
fr_binding fr_binding_layer(fr_weights *weights, const fr_trunk_spec *trunk, const fr_layer_spec *layer, size_t index);

/* Makes a binding for the MTP layer after the trunk's layers, by its own names; beside: for its tensors beside those
 * of a layer. */
fr_binding fr_binding_mtp(fr_weights *weights, const fr_tensor_naming *naming, const fr_trunk_spec *trunk, bool beside);

size_t fr_dim_size(fr_dim dim, const fr_trunk_spec *trunk, const fr_layer_spec *layer);

/* Returns true if a model of this spec has the tensor; FR_IF_THERE is ignored. */
bool fr_tensor_name_needed(const fr_tensor_name *name, const fr_trunk_spec *trunk, const fr_layer_spec *layer);

/* Finds the tensor that fills a field, by the first line about it that the file has; NULL: there is none. */
const fr_tensor *fr_tensor_names_tensor(const fr_binding *binding, const fr_tensor_name *names, size_t field);

/* Fills the fields of `base` that the table has lines about. */
fr_status fr_tensor_names_bind(const fr_binding *binding, const fr_tensor_name *names, void *base);

/* Does the same for a trunk, by the family's table of models, and for a layer, by all tables of layers. */
fr_status fr_names_bind_model(const fr_binding *binding, const fr_tensor_naming *naming, fr_trunk *trunk);
fr_status fr_tensor_names_bind_layer(const fr_binding *binding, const fr_tensor_naming *naming, fr_layer *layer);

/* Returns true if a tensor is one of the family's extras. */
bool fr_tensor_names_extra(const fr_tensor_naming *naming, const char *tensor);

/* Checks, once all is bound, that every tensor of the file is read or is one of the family's extras. Tensors after the
 * last layer are of MTP layers, if the family has any: at most `mtp_layers` of them. */
fr_status fr_tensor_names_check_read(const fr_weights *weights, const fr_tensor_naming *naming, size_t layers,
                                     size_t mtp_layers);

/* Does the same for all tensors whose names begin with `prefix`, but for `spared`, whose entries may be NULL. */
fr_status fr_tensor_names_check_below(const fr_weights *weights, const char *prefix, const fr_tensor *const spared[2]);

/* ------------------------------------------------------------------------------------------------ without a binding */

/* Returns true if a later line that such a model needs may fill the same field when the file lacks this line's
 * tensor. */
bool fr_tensor_name_has_another(const fr_tensor_name *name, bool gguf, const fr_trunk_spec *trunk,
                                const fr_layer_spec *layer);

/* Returns true if the line's slot fills two fields, its own and the next one. */
bool fr_tensor_name_fills_two(const fr_tensor_name *name);

/* The line that names a published tensor, and the tensor's layer. `layers` are those of the trunk; the table of MTP
 * layers is about those after them, of which there are `mtp_layers`. */
typedef struct fr_tensor_name_found {
    const fr_tensor_name *name, *table; /* the line, and the first of its table */
    bool of_layer, of_expert;
    size_t layer, expert;
} fr_tensor_name_found;

bool fr_tensor_names_find(const fr_tensor_naming *naming, const char *prefix, const char *published, size_t layers,
                          size_t mtp_layers, fr_tensor_name_found *found);

/* Gives the line of a table for the first or second field (part 0, 1) of a line that fills two; NULL: GGUF has
 * none. */
const fr_tensor_name *fr_tensor_name_of_part(const fr_tensor_name *table, const fr_tensor_name *name, size_t part);

/* The published places of the rows or columns of a tensor in GGUF. */
typedef struct fr_reorder {
    fr_row_order order;
    size_t head;                    /* rows of a head, or columns */
    size_t rotated;                 /* to pairs, to neox: the number of them that are rotated */
    size_t first, groups, in_group; /* tiled: rows in front of the heads; key heads, and value heads of each */
    /* parted: rows of a key head's values; `head` has its query's rows, `first` those of the parts before this one */
    size_t values;
} fr_reorder;

/* Gives the reordering of a line of a layer's table. */
fr_reorder fr_tensor_name_reorder(const fr_tensor_naming *naming, const fr_tensor_name *name,
                                  const fr_trunk_spec *trunk, const fr_layer_spec *layer);

/* Gives the reordering of a line whose tensor is DeltaNet's queries, keys, values and gates: of its first part, or of
 * the gates. */
fr_reorder fr_tensor_name_parted(const fr_layer_spec *layer, bool gates);

/* Gives the numbers that published files have for a line's vector. */
fr_values fr_name_values(const fr_tensor_naming *naming, const fr_tensor_name *name);

/* Gives the row, or column, of the published tensor that is row `row` in GGUF. */
size_t fr_row_published(const fr_reorder *reorder, size_t row);

#endif
