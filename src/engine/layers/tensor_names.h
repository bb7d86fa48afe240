/* Names of tensors as data: for each tensor, its names in published folders and in GGUF, the field that it fills, and
 * its shape.
 *
 * In: a family's tables. Out: the filled fields of fr_trunk, fr_layer or another struct. A field that no tensor fills
 * is an error, and so is a tensor that no field reads; the error line names the field or the tensor.
 *
 * Other code reads the same tables: export, for the GGUF names of published tensors; synth, which makes the tensors;
 * inspect, which lists the tensors that are read. */
#ifndef FR_SRC_ENGINE_LAYERS_TENSOR_NAMES_H
#define FR_SRC_ENGINE_LAYERS_TENSOR_NAMES_H

#include <stddef.h>

#include "src/engine/layers/layer.h"
#include "src/engine/weights/weights.h"

/* The sizes that tensors can have, by name. */
typedef enum fr_dim {
    FR_DIM_ONE,
    FR_DIM_HIDDEN,
    FR_DIM_TWICE_HIDDEN,
    FR_DIM_VOCAB,
    FR_DIM_HEAD, /* values of an attention head */
    FR_DIM_HEADS,
    FR_DIM_QUERIES,        /* values of all query heads */
    FR_DIM_QUERIES_GATED,  /* like FR_DIM_QUERIES, but if there are gates, each head's query is followed by its gate */
    FR_DIM_GATES,          /* gates of all heads, which come from a separate matrix */
    FR_DIM_KEYS,           /* values of all key/value heads */
    FR_DIM_QUERY_NORM,     /* weights of the norm of queries: usually one for each value of a head; for a LayerNorm or a
                           * norm over all heads, one for each value of all heads */
    FR_DIM_KEY_NORM,       /* weights of the norm of keys, counted like those of FR_DIM_QUERY_NORM */
    FR_DIM_DELTA_HEADS,    /* value heads of a DeltaNet layer */
    FR_DIM_DELTA_HEAD,     /* values of a value head of DeltaNet */
    FR_DIM_DELTA_VALUES,   /* values of all value heads of DeltaNet */
    FR_DIM_DELTA_CHANNELS, /* queries and keys of DeltaNet's key heads, then the values of its value heads */
    FR_DIM_DELTA_QKVZ,     /* DeltaNet's queries, keys and values, and a gate for each value */
    FR_DIM_DELTA_BA,       /* the projections b and a of each value head of DeltaNet */
    FR_DIM_MAMBA_HEADS,    /* heads of a Mamba-2 layer */
    FR_DIM_MAMBA_VALUES,   /* values of all heads of Mamba-2 */
    FR_DIM_MAMBA_CHANNELS, /* values of Mamba-2's heads, then the keys and queries of its groups */
    FR_DIM_MAMBA_INPUTS, /* values of Mamba-2's input projection: a gate for each value of its heads, then the values of
                          * FR_DIM_MAMBA_CHANNELS, then a time step for each head */
    FR_DIM_LATENT_EXPERTS, /* values that an expert reads: the width of the experts' latent if they have one, otherwise
                            * hidden */
    FR_DIM_CONV_KERNEL,    /* positions that a convolution spans */
    FR_DIM_FFN,
    FR_DIM_EXPERTS,
    FR_DIM_EXPERT_FFN,
    FR_DIM_Q_LORA,
    FR_DIM_Q_INPUT, /* values from which latent attention computes queries: q_lora if queries have a latent, otherwise
                     * hidden */
    /* width of all heads' queries in latent attention; each query has a nope and a rotary part */
    FR_DIM_HEAD_QUERIES,
    FR_DIM_LATENT,
    FR_DIM_NOPE,
    FR_DIM_VALUE,     /* width of one head's output in latent attention */
    FR_DIM_VALUES,    /* width of all heads' outputs in latent attention */
    FR_DIM_KV_B,      /* rows of kv_b: for each head of latent attention, the nope part of its key, and its value */
    FR_DIM_TOKEN,     /* width of a token's embedding for one layer */
    FR_DIM_EMBEDDING, /* values of an id's row in the embedding table */
    FR_DIM_POSITIONS, /* rows of the table of positions */
    FR_DIM_TOKENS,    /* width of a token's embeddings for all layers together */
} fr_dim;

/* The kind of a tensor, which decides the type of its field. */
typedef enum fr_slot {
    FR_SLOT_MATRIX,     /* fr_matrix [rows, cols] that every step reads */
    FR_SLOT_TABLE,      /* fr_matrix [rows, cols]; each step looks up only some of its rows */
    FR_SLOT_PARTS,      /* fr_matrix[2], [rows, cols] each, both in one tensor */
    FR_SLOT_THIRDS,     /* fr_matrix[3], [rows, cols] each, all in one tensor */
    FR_SLOT_VECTOR,     /* const float *, [rows] */
    FR_SLOT_ROW,        /* a vector that is a matrix of one row, [1, cols] */
    FR_SLOT_CONV,       /* const float *, [cols, rows]: a convolution over positions, [rows, cols] in the file */
    FR_SLOT_CONV_WHOLE, /* like FR_SLOT_CONV, but GGUF keeps the dimension of the input channels, which has size 1 */
    FR_SLOT_EXPERTS,    /* fr_matrix *: a matrix [rows, cols] for each expert, all in one tensor or each in its own */
    FR_SLOT_HEADS,      /* fr_matrix *: a matrix [rows, cols] for each head, all in one tensor */
    FR_SLOT_KV_B,       /* fr_latent_heads, filled from one tensor [rows, cols] */
    FR_SLOT_QKV,        /* fr_matrix[3]: queries [rows, cols], keys and values of FR_DIM_KEYS rows, in one tensor */
    FR_SLOT_QKV_VECTOR, /* const float *[3]: like FR_SLOT_QKV, but vectors */
    FR_SLOT_MAMBA_IN,   /* fr_matrix[3]: Mamba-2's gates, channels and time steps, in one tensor */
    FR_SLOT_IN_ROWS,    /* const float *, [rows], which in GGUF is a matrix of any shape */
    FR_SLOT_QKVZ,       /* fr_matrix of DeltaNet's queries, keys, values and gates, which are separate tensors in
                         * GGUF */
    /* Like FR_SLOT_EXPERTS, but one tensor has two matrices for each expert, which fill this field and the next. */
    FR_SLOT_EXPERTS_PARTS,
    FR_SLOT_EXPERTS_VECTORS, /* const float *, [experts, rows], one vector for each expert */
    /* Like FR_SLOT_EXPERTS_VECTORS, but one tensor has two vectors for each expert, whose values alternate; they fill
     * this field and the next. */
    FR_SLOT_EXPERTS_VECTOR_PARTS,
} fr_slot;

/* The conditions under which a model or layer has a tensor; all conditions that are set must hold. */
enum {
    FR_IF_KEYS = 1,   /* layers with K/V of their own */
    FR_IF_VALUES = 2, /* layers with a value projection */
    FR_IF_EXPERTS = 4,
    FR_IF_PLE = 8,     /* models with per-layer embeddings */
    FR_IF_EMBEDS = 16, /* models that embed ids */
    FR_IF_QKV_BIAS = 32,
    FR_IF_FFN_BIASED = 64,
    FR_IF_THERE = 128,     /* only if the file has the tensor; otherwise the field stays empty */
    FR_IF_ATTENTION = 256, /* layers that mix positions by attention */
    FR_IF_DELTANET = 512,  /* layers that mix positions by gated DeltaNet */
    FR_IF_DENSE = 1024,    /* layers without a mixture */
    FR_IF_SHARED = 2048,   /* layers with a mixture that has experts shared by all rows */
    FR_IF_SHARED_GATED = 4096,
    FR_IF_CORRECTED = 8192,     /* mixtures with a bias on the scores that choose experts */
    FR_IF_Q_LORA = 1 << 15,     /* latent attention in which queries also have a latent */
    FR_IF_NORMED_HEADS = 16384, /* attention that norms queries and keys */
    FR_IF_O_BIAS = 1 << 16,
    FR_IF_INPUT_NORM = 1 << 17,     /* layers that have a norm before the part that mixes positions */
    FR_IF_NORMS_AFTER = 1 << 22,    /* layers that norm the stream after each addition of an output */
    FR_IF_EMBED_WIDTH = 1 << 23,    /* models whose embedding table has narrower rows than the stream */
    FR_IF_LAST_NORM = 1 << 27,      /* models with a norm after the last layer, if the norm has weights */
    FR_IF_HEAD_BIAS = 1 << 21,      /* models whose head has a bias */
    FR_IF_NORM_BIAS = 1 << 18,      /* models whose norms have biases */
    FR_IF_FFN_NORM = 1 << 26,       /* layers whose feed-forward has a norm of its own before it */
    FR_IF_SHORT_CONV = 1 << 19,     /* layers that mix positions by a short convolution */
    FR_IF_FUSED = 1 << 24,          /* gated DeltaNet with one projection for queries, keys, values and gates */
    FR_IF_TURNED = 1 << 20,         /* mixtures whose experts' matrices are stored by columns */
    FR_IF_PARTED = 1 << 25,         /* gated DeltaNet with separate projections for queries, keys, values and gates */
    FR_IF_SINKS = 1 << 29,          /* attention with sinks */
    FR_IF_EXPERTS_BIASED = 1 << 30, /* mixtures whose products have biases */
};

/* More conditions, for recurrent layers, mixtures, attention and norms. */
enum {
    FR_ALSO_MAMBA = 1,        /* layers that mix positions by Mamba-2, alone or together with attention */
    FR_ALSO_MAMBA_NORM = 2,   /* Mamba-2 whose outputs are normed */
    FR_ALSO_MAMBA_BIAS = 4,   /* Mamba-2 whose projections have biases */
    FR_ALSO_CONV_BIAS = 8,    /* Mamba-2 whose convolution has biases */
    FR_ALSO_LATENT = 16,      /* mixtures whose experts read a latent */
    FR_ALSO_MLA = 32,         /* layers that mix positions by latent attention */
    FR_ALSO_GATED = 64,       /* latent attention whose heads' outputs have gates */
    FR_ALSO_OWN_GATE = 128,   /* attention whose gates come from a matrix of their own */
    FR_ALSO_POST_NORMS = 256, /* models with norms after attention and feed-forward (fr_trunk_spec.post_norms) */
};

/* The order of a tensor's rows in GGUF, compared with published files (by llama.cpp's converter).
 *
 * FR_ROWS_TO_PAIRS: rows of queries or keys. Rows that are rotated together are adjacent in each head, while in the
 * published file they are half a head apart. FR_ROWS_TO_NEOX is the reverse.
 *
 * FR_ROWS_TILED: rows of DeltaNet's value heads. The first value heads of all key heads come first, then the second
 * value heads of all key heads. The published file keeps the value heads of one key head together. Rows of queries and
 * keys before them keep their place. FR_COLS_TILED is the same for the columns of a matrix that multiplies such heads.
 *
 * FR_ROWS_PARTED: the queries of all key heads come first, then all keys, all values and all gates. The published file
 * keeps the queries, keys, values and gates of one key head together. */
typedef enum fr_row_order {
    FR_ROWS_ALIKE,
    FR_ROWS_TO_PAIRS,
    FR_ROWS_TO_NEOX,
    FR_ROWS_TILED,
    FR_COLS_TILED,
    FR_ROWS_PARTED
} fr_row_order;

/* A line of a table. If several lines fill one field, the first line whose tensor exists is used. */
typedef struct fr_tensor_name {
    /* published: the tensor's name in published files; gguf: its name in GGUF. NULL: this kind of file doesn't have the
     * tensor. If each expert's matrix or each head's norm is a separate tensor, a * in the name stands for the number
     * of the expert or head. */
    const char *published, *gguf;
    size_t field; /* offset of the field in the struct that the table fills */
    fr_slot slot;
    fr_dim rows, cols;
    unsigned needs; /* the conditions for this line (FR_IF_...) */
    unsigned also;  /* more conditions for this line (FR_ALSO_...) */
    bool top;       /* the tensor's published name lacks the prefix of the model's other tensors */
    fr_row_order order;
    bool rotary;            /* the rows are queries or keys, in the order that fr_tensor_naming.rotary_rows gives */
    size_t factor;          /* offset in fr_layer_spec of a factor, by which products with the tensor are multiplied if
                             * it comes from a folder; 0: no factor */
    fr_values values;       /* the form in which published files store a vector's values */
    bool norm;              /* published files store this vector as they store norms (fr_tensor_naming.norms) */
    fr_stack_layout layout; /* the layout of the tensor in published files, if the tensor is a single matrix, a stack of
                             * experts' matrices, or queries, keys and values together */
} fr_tensor_name;

/* Writes a line of a table. The arguments are the struct and its field, the slot, the sizes (their names after
 * FR_DIM_), both names, and other members by designators. */
#define FR_NAMED(of, at, kind, r, c, p, g, ...)                                                                     \
    {                                                                                                               \
        .published = p, .gguf = g, .field = offsetof(of, at), .slot = kind, .rows = FR_DIM_##r, .cols = FR_DIM_##c, \
        __VA_ARGS__                                                                                                 \
    }
#define FR_MATRIX(of, at, ...)    FR_NAMED(of, at, FR_SLOT_MATRIX, __VA_ARGS__)
#define FR_TABLE(of, at, ...)     FR_NAMED(of, at, FR_SLOT_TABLE, __VA_ARGS__)
#define FR_VECTOR(of, at, r, ...) FR_NAMED(of, at, FR_SLOT_VECTOR, r, ONE, __VA_ARGS__)
#define FR_EXPERTS(of, at, ...)   FR_NAMED(of, at, FR_SLOT_EXPERTS, __VA_ARGS__)

/* A layer's queries, keys and values in one tensor, and their biases in another tensor. Phi's files have such tensors,
 * and so have files that llama.cpp's converter makes with --fuse-qkv. In a table these lines come before the lines of
 * separate tensors. */
#define FR_FUSED_QKV(r, ...) \
    FR_NAMED(fr_layer, attention.q, FR_SLOT_QKV, r, HIDDEN, "self_attn.qkv_proj.weight", "attn_qkv.weight", __VA_ARGS__)
#define FR_FUSED_QKV_BIAS                                                                                              \
    FR_NAMED(fr_layer, attention.q_bias, FR_SLOT_QKV_VECTOR, QUERIES, ONE, "self_attn.qkv_proj.bias", "attn_qkv.bias", \
             .needs = FR_IF_QKV_BIAS)

enum { FR_LAYER_TABLES = 5 };

typedef struct fr_tensor_naming {
    const fr_tensor_name *model; /* fields of fr_trunk; ends with a line without names; NULL: fr_model_names */
    const fr_tensor_name *layer[FR_LAYER_TABLES]; /* tables of fields of fr_layer: the family's own, or tables that
                                                   * several families share */
    /* fields of fr_mtp_layer (families/mtp_layer.h) that a decoder layer does not have; NULL: the family has no MTP
     * layer */
    const fr_tensor_name *mtp;
    /* The prefixes that published names of an MTP layer's tensors may have. After the prefix comes the name of a tensor
     * in `mtp`, or "layers.0." and the name of a tensor that decoder layers have. NULL: the tensors are named as if the
     * MTP layer were the decoder layer after the last one. */
    const char *const *mtp_prefixes;
    const char *mtp_word; /* the word used there in place of "layers."; NULL: "layers." */
    /* tables of the tensors that an MTP layer has in common with decoder layers, by their names after the prefix; if
     * there are none, the tables in `layer` are used */
    const fr_tensor_name *mtp_layer[FR_LAYER_TABLES];
    bool mtp_flat;         /* the names of an MTP layer follow the prefix without "layers.0." */
    bool mtp_hidden_first; /* the input of an MTP layer is [hidden row ; embedding]; if false, [embedding ; hidden
                            * row] */
    bool mtp_in_folders;   /* only folders have the MTP layer, because programs that read the family's GGUF files do not
                            * support it */
    /* names of tensors that nothing reads, as patterns of fnmatch; NULL-terminated, or NULL */
    const char *const *extras;
    /* patterns of names that nothing reads, below the prefix of a layer or of an MTP layer; NULL-terminated, or NULL */
    const char *const *layer_extras;
    fr_values norms;          /* the form in which published files store the values of norms */
    fr_row_order rotary_rows; /* the order in GGUF of rows of tensors whose lines set `rotary` */
    bool untiled;             /* in the family's GGUF files, value heads are in the published order, not tiled */
} fr_tensor_naming;

/* The default table of a model's own tensors: an embedding, a norm and a head. The head may be the embedding. */
extern const fr_tensor_name fr_model_names[];

/* Gives the family's table of the model's own tensors, or the default one. */
const fr_tensor_name *fr_naming_model(const fr_tensor_naming *naming);

/* Gives the tables of a layer's names: up to FR_LAYER_TABLES pointers, with NULL after the last if there are fewer.
 * mtp: gives the tables of an MTP layer. */
const fr_tensor_name *const *fr_naming_tables(const fr_tensor_naming *naming, bool mtp);

/* The part of a model that is being bound: the prefix of its tensors' names, and the specs that give the sizes. */
typedef struct fr_binding {
    fr_weights *weights;
    char prefix[128]; /* the prefix, such as "model.layers.7." or "blk.7." */
    const fr_trunk_spec *trunk;
    const fr_layer_spec *layer; /* spec of the layer; NULL: the model's own tensors are bound */
    /* the naming whose `norms` and `rotary_rows` apply; NULL: tensors are used unchanged */
    const fr_tensor_naming *naming;
    /* the order in which the rows of a matrix [vocab, hidden] are packed; NULL: unchanged */
    const int32_t *head_order;
    bool *head_sorted; /* out: true if the head's rows were packed in the order of head_order */
} fr_binding;

/* Gives the prefix of the published names of a model's tensors. In multimodal models, the names of the text model's
 * tensors have a longer prefix than in text models. */
const char *fr_tensor_names_prefix(const fr_weights *weights);

/* Gives the part of a tensor's name by which tables list it. Two things are left out: a prefix that models of any
 * family may have, and the number of the tensor's layer. Sets *of_layer to whether the name has a layer's number, and
 * *layer to that number. */
const char *fr_tensor_names_below(const char *name, bool gguf, bool *of_layer, size_t *layer);

/* Gives the prefix of the names of tensors outside of the text model. The head's name has this prefix too. */
const char *fr_names_top(const fr_weights *weights);

/* fr_binding_model makes a binding for the model's own tensors, fr_binding_layer for those of layer `index`. */
fr_binding fr_binding_model(fr_weights *weights, const fr_trunk_spec *trunk);
fr_binding fr_binding_layer(fr_weights *weights, const fr_trunk_spec *trunk, const fr_layer_spec *layer, size_t index);

/* Makes a binding for the MTP layer after the trunk's layers, with the names that such a layer has. An MTP layer has
 * the tensors of a decoder layer and some further tensors. If beside is true, the binding is for the further tensors,
 * otherwise for the tensors of a decoder layer. */
fr_binding fr_binding_mtp(fr_weights *weights, const fr_tensor_naming *naming, const fr_trunk_spec *trunk, bool beside);

/* Gives the factor of a channel of Mamba-2's convolution, if the layer has any (fr_layer_factors). */
float fr_channel_factor(const fr_layer_spec *layer, size_t channel);

size_t fr_dim_size(fr_dim dim, const fr_trunk_spec *trunk, const fr_layer_spec *layer);

/* Returns true if a model of this spec has the tensor; FR_IF_THERE is ignored. */
bool fr_tensor_name_needed(const fr_tensor_name *name, const fr_trunk_spec *trunk, const fr_layer_spec *layer);

/* Finds the tensor that fills a field. If the table has several lines for the field, the first line whose tensor is in
 * the file is used. Returns NULL if there is no such tensor. */
const fr_tensor *fr_tensor_names_tensor(const fr_binding *binding, const fr_tensor_name *names, size_t field);

/* Fills the fields of `base` for which the table has lines. */
fr_status fr_tensor_names_bind(const fr_binding *binding, const fr_tensor_name *names, void *base);

/* fr_names_bind_model fills the fields of a trunk by the family's table of models. fr_tensor_names_bind_layer fills
 * the fields of a layer by all of the family's tables of layers. */
fr_status fr_names_bind_model(const fr_binding *binding, const fr_tensor_naming *naming, fr_trunk *trunk);
fr_status fr_tensor_names_bind_layer(const fr_binding *binding, const fr_tensor_naming *naming, fr_layer *layer);

/* Returns true if a tensor is one of the family's extras. */
bool fr_tensor_names_extra(const fr_tensor_naming *naming, const char *tensor);

/* Checks that every tensor of the file is read or is one of the family's extras. Everything must be bound before the
 * call. Tensors after the last layer belong to MTP layers, if the family has such layers. At most `mtp_layers` MTP
 * layers are expected. */
fr_status fr_tensor_names_check_read(const fr_weights *weights, const fr_tensor_naming *naming, size_t layers,
                                     size_t mtp_layers);

/* Checks that every tensor whose name begins with `prefix` is read. The tensors in `spared` need not be read; its
 * entries may be NULL. */
fr_status fr_tensor_names_check_below(const fr_weights *weights, const fr_tensor_naming *naming, const char *prefix,
                                      const fr_tensor *const spared[2]);

/* ------------------------------------------------------------------------------------------------ without a binding */

/* Returns true if the table has a later line for the same field, and a model of this spec may have that line's tensor
 * in place of this line's tensor. */
bool fr_tensor_name_has_another(const fr_tensor_name *name, bool gguf, const fr_trunk_spec *trunk,
                                const fr_layer_spec *layer);

/* Returns true if a name matches a line's spelling. *expert gets the number that stands in place of the `*`. */
bool fr_tensor_name_spells(const char *spelling, const char *name, size_t *expert);

/* Returns true if the line's slot fills two fields, its own and the next one. */
bool fr_tensor_name_fills_two(const fr_tensor_name *name);

/* Gives the shape in GGUF of a vector of FR_SLOT_IN_ROWS. Before the call, shape[0] is the vector's length. A norm
 * over several parts has one row for each part; all other vectors have rows of one value. */
void fr_tensor_name_in_rows(const fr_tensor_name *name, const fr_layer_spec *layer, uint64_t *shape, uint32_t *dims);

/* The result of a search for a published tensor: the line of a table that names it, and its layer. Layers are numbered
 * in one sequence: first the trunk's `layers`, then the `mtp_layers` MTP layers. MTP layers have a table of their
 * own. */
typedef struct fr_tensor_name_found {
    const fr_tensor_name *name, *table; /* the line, and the first line of its table */
    bool of_layer, of_expert;
    size_t layer, expert;
} fr_tensor_name_found;

bool fr_tensor_names_find(const fr_tensor_naming *naming, const char *prefix, const char *published,
                          const fr_trunk_spec *spec, size_t mtp_layers, fr_tensor_name_found *found);

/* A published tensor's line may fill two fields. Gives the table's line for the GGUF tensor of one of these fields:
 * part 0 is the first field, part 1 the second. If there are several such lines, gives the line with the same
 * conditions as the published tensor's line. NULL: GGUF has no such tensor. */
const fr_tensor_name *fr_tensor_name_of_part(const fr_tensor_name *table, const fr_tensor_name *name, size_t part);

/* Maps the rows or columns of a tensor in GGUF to their published places. */
typedef struct fr_reorder {
    fr_row_order order;
    size_t head;                    /* number of rows (or columns) of one head */
    size_t rotated;                 /* for FR_ROWS_TO_PAIRS and FR_ROWS_TO_NEOX: rows of a head that are rotated */
    size_t first, groups, in_group; /* for tiled orders: `first` is the number of rows before the heads, `groups` the
                                     * number of key heads, and `in_group` the number of value heads of each key head */
    /* for FR_ROWS_PARTED: number of rows of a key head's values. In that order, `head` is the number of rows of a key
     * head's query, and `first` is the number of rows of the parts before this one. */
    size_t values;
} fr_reorder;

/* Gives the reordering for a line of a layer's table. */
fr_reorder fr_tensor_name_reorder(const fr_tensor_naming *naming, const fr_tensor_name *name,
                                  const fr_trunk_spec *trunk, const fr_layer_spec *layer);

/* Gives the reordering for a published tensor that holds DeltaNet's queries, keys, values and gates. If `gates` is set,
 * the reordering is for the rows of gates, otherwise for the rows of queries, keys and values. */
fr_reorder fr_tensor_name_parted(const fr_layer_spec *layer, bool gates);

/* Gives the form in which published files store the vector that this line names. */
fr_values fr_name_values(const fr_checkpoint *files, const fr_tensor_naming *naming, const fr_tensor_name *name);

/* Gives the published index of the row (or column) that has the index `row` in GGUF. */
size_t fr_row_published(const fr_reorder *reorder, size_t row);

#endif
