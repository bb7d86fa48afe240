/* Names of tensors as data: what a tensor is called in either kind of file, what it is for, and its shape.
 *
 * In: a family's tables. Out: fields of fr_trunk, fr_layer or another struct, bound (binding); the same tables tell
 * export what a published tensor is called in GGUF, synth what to make, inspect what is read. A field that nothing
 * fills, or a tensor that nobody reads, is an error that names it. */
#ifndef FR_SRC_ENGINE_LAYERS_TENSOR_NAMES_H
#define FR_SRC_ENGINE_LAYERS_TENSOR_NAMES_H

#include <stddef.h>

#include "src/engine/layers/layer.h"
#include "src/engine/weights/weights.h"

/* Sizes, by what has them. */
typedef enum fr_dim {
    FR_DIM_ONE,
    FR_DIM_HIDDEN,
    FR_DIM_TWICE_HIDDEN,
    FR_DIM_VOCAB,
    FR_DIM_HEAD,           /* values of an attention head */
    FR_DIM_HEADS,
    FR_DIM_QUERIES,        /* of all heads */
    FR_DIM_QUERIES_GATED,  /* the same, each head's followed by its gate where there are gates */
    FR_DIM_KEYS,           /* of all key/value heads */
    FR_DIM_QUERY_NORM,     /* what a norm of queries is over: a head, or all */
    FR_DIM_KEY_NORM,       /* the same of keys */
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
    FR_DIM_Q_INPUT,      /* what latent attention's queries are made of: q_lora, or hidden */
    FR_DIM_HEAD_QUERIES, /* of all its heads, nope and rotary parts */
    FR_DIM_LATENT,
    FR_DIM_NOPE,
    FR_DIM_VALUE,  /* what one of its heads makes of latents */
    FR_DIM_VALUES, /* what all do */
    FR_DIM_KV_B,   /* nope parts and values of all heads */
    FR_DIM_TOKEN,  /* what a layer is told of a token */
    FR_DIM_TOKENS, /* what all layers are */
} fr_dim;

/* What becomes of a tensor, and so the type of its field. */
typedef enum fr_slot {
    FR_SLOT_MATRIX,        /* fr_matrix [rows, cols] that every step reads */
    FR_SLOT_TABLE,         /* the same, of which a step looks up rows */
    FR_SLOT_PARTS,         /* fr_matrix[2], [rows, cols] each, one tensor of both */
    FR_SLOT_THIRDS,        /* fr_matrix[3], the same */
    FR_SLOT_VECTOR,        /* const float *, [rows] */
    FR_SLOT_ROW,           /* the same of a matrix of one row, [1, cols] */
    FR_SLOT_CONV,          /* const float *, [cols, rows]: of a convolution over positions, [rows, cols] in the file */
    FR_SLOT_EXPERTS,       /* fr_matrix *: a matrix [rows, cols] for each expert, one tensor of all, or one each */
    FR_SLOT_HEADS,         /* fr_matrix *: a matrix [rows, cols] for each head, one tensor of all */
    FR_SLOT_KV_B,          /* fr_latent_heads, all of it, of one tensor [rows, cols] */
    FR_SLOT_QKV,           /* fr_matrix[3]: [rows, cols], then two of FR_DIM_KEYS rows, one tensor of all */
    FR_SLOT_QKV_VECTOR,    /* the same of vectors */
    FR_SLOT_QKVZ,          /* fr_matrix of DeltaNet's queries, keys, values and gates, which GGUF has apart */
    /* The same as of experts of two matrices for each, into this field and the next, one tensor of all. */
    FR_SLOT_EXPERTS_PARTS,
    FR_SLOT_EXPERTS_VECTORS, /* const float *, [experts, rows] */
    /* The same of two vectors for each whose values take turns, into this field and the next, one tensor of all. */
    FR_SLOT_EXPERTS_VECTOR_PARTS,
} fr_slot;

/* Who has it: all of these must hold. */
enum {
    FR_IF_KEYS = 1,   /* layers with K/V of their own */
    FR_IF_VALUES = 2, /* layers with a value projection */
    FR_IF_EXPERTS = 4,
    FR_IF_PLE = 8,     /* models with per-layer embeddings */
    FR_IF_EMBEDS = 16, /* models that embed ids */
    FR_IF_QKV_BIAS = 32,
    FR_IF_FFN_BIASED = 64,
    FR_IF_THERE = 128,     /* where the file has it; else the field stays empty */
    FR_IF_ATTENTION = 256, /* layers that mix positions by attention */
    FR_IF_DELTANET = 512,  /* layers that mix them by gated DeltaNet */
    FR_IF_DENSE = 1024,    /* layers without a mixture */
    FR_IF_SHARED = 2048,   /* layers with a mixture, and experts that all rows share */
    FR_IF_SHARED_GATED = 4096,
    FR_IF_CORRECTED = 8192,     /* mixtures whose scores are corrected */
    FR_IF_Q_LORA = 1 << 15,     /* latent attention whose queries have a latent too */
    FR_IF_NORMED_HEADS = 16384, /* attention that norms queries and keys */
    FR_IF_O_BIAS = 1 << 16,
    FR_IF_INPUT_NORM = 1 << 17, /* layers with a norm before their parts */
    FR_IF_NORM_BIAS = 1 << 18,  /* models whose norms have biases */
    FR_IF_FFN_NORM = 1 << 26,   /* layers whose feed-forward has one of its own */
    FR_IF_SHORT_CONV = 1 << 19, /* layers that mix positions by a short convolution */
    FR_IF_FUSED = 1 << 24,      /* gated DeltaNet whose queries, keys, values and gates are one projection */
    FR_IF_PARTED = 1 << 25,     /* and such whose are not */
    FR_IF_SINKS = 1 << 29,       /* attention with sinks */
    FR_IF_EXPERTS_BIASED = 1 << 30, /* mixtures whose products have biases */
};

/* How rows stand in GGUF as against published files (llama.cpp's converter). Of queries or keys: in each head, those
 * that are rotated together side by side, where the published file has them half a head apart; or the other way round.
 * Of DeltaNet's value heads: the first of each key head, then the second of each, where the published file has those
 * of one key head together; the rows of queries and keys in front of them stay. Of what multiplies such heads the
 * columns stand so. Parted: queries of all key heads, then keys, values and gates, where the published file has a key
 * head's together. */
typedef enum fr_row_order {
    FR_ROWS_ALIKE,
    FR_ROWS_TO_PAIRS,
    FR_ROWS_TO_NEOX,
    FR_ROWS_TILED,
    FR_COLS_TILED,
    FR_ROWS_PARTED
} fr_row_order;

/* A line of a table. Several lines about one field: the first whose tensor is there fills it. */
typedef struct fr_tensor_name {
    /* NULL: that kind of file doesn't have it. A * stands for an expert's number: each expert's matrix is a tensor of
     * its own. */
    const char *published, *gguf;
    size_t field; /* offsetof in the struct that the table is about */
    fr_slot slot;
    fr_dim rows, cols;
    unsigned needs; /* FR_IF_... */
    bool top;       /* in published files it stands beside the model, not below it */
    fr_row_order order;
    bool rotary;      /* its rows are queries or keys: in the family's order of them (fr_tensor_naming.rotary_rows) */
    fr_values values; /* what a vector's are in published files */
    bool norm;        /* a vector that the family's files have as it has norms (fr_tensor_naming.norms) */
    fr_stored stored; /* how published files have a stack of experts' matrices */
} fr_tensor_name;

/* Lines of tables: the struct and its field, sizes (what follows FR_DIM_), both names, and more by designators. */
#define FR_NAMED(of, at, kind, r, c, p, g, ...)                                                                       \
    {.published = p, .gguf = g, .field = offsetof(of, at), .slot = kind, .rows = FR_DIM_##r, .cols = FR_DIM_##c,     \
     __VA_ARGS__}
#define FR_MATRIX(of, at, ...)  FR_NAMED(of, at, FR_SLOT_MATRIX, __VA_ARGS__)
#define FR_TABLE(of, at, ...)   FR_NAMED(of, at, FR_SLOT_TABLE, __VA_ARGS__)
#define FR_VECTOR(of, at, r, ...) FR_NAMED(of, at, FR_SLOT_VECTOR, r, ONE, __VA_ARGS__)
#define FR_EXPERTS(of, at, ...) FR_NAMED(of, at, FR_SLOT_EXPERTS, __VA_ARGS__)

/* A layer's queries, keys and values in one tensor, as Phi's files have them and llama.cpp's converter makes them with
 * --fuse-qkv, and their biases: lines that stand before those of their own. */
#define FR_FUSED_QKV(r, ...)                                                                                         \
    FR_NAMED(fr_layer, attention.q, FR_SLOT_QKV, r, HIDDEN, "self_attn.qkv_proj.weight", "attn_qkv.weight", __VA_ARGS__)
#define FR_FUSED_QKV_BIAS                                                                                            \
    FR_NAMED(fr_layer, attention.q_bias, FR_SLOT_QKV_VECTOR, QUERIES, ONE, "self_attn.qkv_proj.bias",                \
             "attn_qkv.bias", .needs = FR_IF_QKV_BIAS)

enum { FR_LAYER_TABLES = 5 };

typedef struct fr_tensor_naming {
    const fr_tensor_name *model; /* fields of fr_trunk; up to a line without names; NULL: fr_model_names */
    const fr_tensor_name *layer[FR_LAYER_TABLES]; /* fields of fr_layer, by tables that families share or their own */
    const fr_tensor_name *mtp; /* fields of fr_mtp_layer (families/mtp_layer.h), beside a layer's; NULL: has none */
    /* What published names of an MTP layer's tensors begin with, one of these; what it has beside a layer's follows, or
     * "layers.0."; NULL: they are named as the next layer's. */
    const char *const *mtp_prefixes;
    bool mtp_flat;         /* the layer's follow without "layers.0." */
    bool mtp_hidden_first; /* what enters an MTP layer is [hidden row ; embedding], else the other way round */
    const char *const *extras; /* names that are read by nobody, as patterns of fnmatch; NULL-terminated, or NULL */
    fr_values norms;          /* what published files have of lines that are norms */
    fr_row_order rotary_rows; /* how rows of lines that are rotary stand in GGUF */
    bool untiled; /* lines whose heads stand in tiles elsewhere are alike */
} fr_tensor_naming;

/* A model of an embedding, a norm and a head, which may be the embedding. */
extern const fr_tensor_name fr_model_names[];

/* Of a family, the default filled in. */
const fr_tensor_name *fr_naming_model(const fr_tensor_naming *naming);

/* What is bound: where names begin, and whose sizes count. */
typedef struct fr_binding {
    fr_weights *weights;
    char prefix[128]; /* "model.layers.7." or "blk.7." and so on */
    const fr_trunk_spec *trunk;
    const fr_layer_spec *layer; /* NULL: of the model as a whole */
    const fr_tensor_naming *naming; /* whose norms and rotary rows; NULL: as they are */
    const int32_t *head_order;  /* of a matrix [vocab, hidden], if its rows would be packed in an order; else NULL */
    bool *head_sorted;          /* whether they were */
} fr_binding;

/* What the published names of a model's tensors begin with; multimodal models keep the text model one level down. */
const char *fr_tensor_names_prefix(const fr_weights *weights);

/* The same of what stands beside the model: its head. */
const char *fr_names_top(const fr_weights *weights);

/* A binding for the model's own tensors, and for those of a layer by its number. */
fr_binding fr_binding_model(fr_weights *weights, const fr_trunk_spec *trunk);
fr_binding fr_binding_layer(fr_weights *weights, const fr_trunk_spec *trunk, const fr_layer_spec *layer, size_t index);

/* The same for the MTP layer behind the trunk's, by its own names; beside: for what it has beside a layer's tensors. */
fr_binding fr_binding_mtp(fr_weights *weights, const fr_tensor_naming *naming, const fr_trunk_spec *trunk, bool beside);

size_t fr_dim_size(fr_dim dim, const fr_trunk_spec *trunk, const fr_layer_spec *layer);

/* Whether a model of this spec has it; FR_IF_THERE is not looked at. */
bool fr_tensor_name_needed(const fr_tensor_name *name, const fr_trunk_spec *trunk, const fr_layer_spec *layer);

/* The tensor that fills a field, by the first line about it that the file has; NULL: none. */
const fr_tensor *fr_tensor_names_tensor(const fr_binding *binding, const fr_tensor_name *names, size_t field);

/* Fills the fields of `base` that the table speaks of. */
fr_status fr_tensor_names_bind(const fr_binding *binding, const fr_tensor_name *names, void *base);

/* The same of a trunk, by the family's table about models, and of a layer, by all tables about layers. */
fr_status fr_names_bind_model(const fr_binding *binding, const fr_tensor_naming *naming, fr_trunk *trunk);
fr_status fr_tensor_names_bind_layer(const fr_binding *binding, const fr_tensor_naming *naming, fr_layer *layer);

/* Whether a tensor is one of the family's extras. */
bool fr_tensor_names_extra(const fr_tensor_naming *naming, const char *tensor);

/* When all is bound: whether every tensor of the file is read by somebody, or is one of the family's extras. What
 * stands behind the last layer is an MTP layer's, if the family has any: at most `mtp_layers` of them. */
fr_status fr_tensor_names_check_read(const fr_weights *weights, const fr_tensor_naming *naming, size_t layers,
                                     size_t mtp_layers);

/* The same for all tensors whose names begin so, but for `spared`, which may be NULL. */
fr_status fr_tensor_names_check_below(const fr_weights *weights, const char *prefix, const fr_tensor *const spared[2]);

/* ------------------------------------------------------------------------------------------------ without a binding */

/* Whether a later line, that such a model needs, may fill the same field where the file has this one's tensor not. */
bool fr_tensor_name_has_another(const fr_tensor_name *name, bool gguf, const fr_trunk_spec *trunk,
                                const fr_layer_spec *layer);

/* Whether the line's slot has room for more than one field, the next one too. */
bool fr_tensor_name_fills_two(const fr_tensor_name *name);

/* The line that a published tensor is named in, and with which layer's number. `layers`: those of the trunk; lines of
 * the table of MTP layers are about layers behind them, of which there are `mtp_layers`. */
typedef struct fr_tensor_name_found {
    const fr_tensor_name *name, *table; /* the line, and the first of its table */
    bool of_layer, of_expert;
    size_t layer, expert;
} fr_tensor_name_found;

bool fr_tensor_names_find(const fr_tensor_naming *naming, const char *prefix, const char *published, size_t layers,
                          size_t mtp_layers, fr_tensor_name_found *found);

/* The line of a table for the second field of a line that fills two, or for its first; NULL: there is none in GGUF. */
const fr_tensor_name *fr_tensor_name_of_part(const fr_tensor_name *table, const fr_tensor_name *name, size_t part);

/* Where the rows or columns of a tensor are from. */
typedef struct fr_reorder {
    fr_row_order order;
    size_t head;    /* rows of a head, or columns */
    size_t rotated; /* to pairs, to neox: how many of them are rotated */
    size_t first, groups, in_group; /* tiled: rows in front of the heads; key heads, and value heads of one */
    size_t values; /* parted: of a key head; `head` is its query's rows, `first` those of parts in front of this one */
} fr_reorder;

/* Of a line of a layer's table. */
fr_reorder fr_tensor_name_reorder(const fr_tensor_naming *naming, const fr_tensor_name *name,
                                  const fr_trunk_spec *trunk, const fr_layer_spec *layer);

/* Of a line whose tensor is DeltaNet's queries, keys, values and gates: its first part, and its second, the gates. */
fr_reorder fr_tensor_name_parted(const fr_layer_spec *layer, bool gates);

/* What a line's vector has in published files. */
fr_values fr_name_values(const fr_tensor_naming *naming, const fr_tensor_name *name);

/* Row `row`, or column, of a tensor in GGUF is that one of the published tensor. */
size_t fr_row_published(const fr_reorder *reorder, size_t row);

#endif
