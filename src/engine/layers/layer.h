/* A decoder's bound weights. tensor_names.c fills the fields, and the parts of a layer read them.
 *
 * In: a spec (layer_spec.h), a checkpoint. Out: fr_trunk, which does not change. If a model lacks a tensor, the field
 * is NULL or a matrix without data. The parts then leave out that norm, bias or projection. */
#ifndef FR_SRC_ENGINE_LAYERS_LAYER_H
#define FR_SRC_ENGINE_LAYERS_LAYER_H

#include <stddef.h>

#include "src/engine/layers/layer_spec.h"

/* The matrices of latent attention's heads. nope is the number of a query's values that are not rotated. k_b [latent,
 * nope] multiplies these values, and v_b [value_dim, latent] multiplies the weighted sum of latents. A file may have
 * both matrices in one tensor, [nope + value_dim, latent] for each head. Then k_b is a transposed float32 copy of its
 * first nope rows. */
typedef struct fr_latent_heads {
    fr_matrix *k_b, *v_b; /* [heads] the matrices of each head, as products read them */
    fr_matrix *kv_b;      /* [heads] the rows of k_b in the file, if the file has k_b and v_b in one tensor; otherwise
                           * NULL */
    float *copy;          /* [heads, latent, nope] memory for the transposed copies */
} fr_latent_heads;

/* Weights of attention; latent attention also uses `q` and `o`. One tensor may fill q, k and v (FR_SLOT_QKV), and one
 * tensor may fill their biases (FR_SLOT_QKV_VECTOR). So q, k and v are adjacent and in this order, and their biases
 * too. */
typedef struct fr_attention_weights {
    /* q is [heads * head_dim, hidden]; k and v are [kv_heads * head_dim, hidden]; o is [hidden, heads * head_dim] */
    fr_matrix q, k, v, o;
    const float *q_bias, *k_bias, *v_bias, *o_bias;
    const float *q_norm, *k_norm; /* [head_dim] the weights of the norms of heads. If one norm covers all heads, q_norm
                                   * has heads * head_dim weights, and k_norm has kv_heads * head_dim */
    const float *sinks;           /* [heads] the scores of attention sinks */
    fr_matrix gate;               /* [heads * own_gate, hidden] the matrix that makes the gates of heads */
} fr_attention_weights;

_Static_assert(offsetof(fr_attention_weights, k) == offsetof(fr_attention_weights, q) + sizeof(fr_matrix) &&
                   offsetof(fr_attention_weights, v) == offsetof(fr_attention_weights, q) + 2 * sizeof(fr_matrix),
               "one tensor fills q, k and v");
_Static_assert(offsetof(fr_attention_weights, k_bias) == offsetof(fr_attention_weights, q_bias) + sizeof(float *) &&
                   offsetof(fr_attention_weights, v_bias) ==
                       offsetof(fr_attention_weights, q_bias) + 2 * sizeof(float *),
               "one tensor fills their biases");

/* Additional weights of latent attention. In such a layer, attention.q is [heads * (nope + rotary), q_lora]. */
typedef struct fr_mla_weights {
    fr_matrix q_a, kv_a;               /* q_a [q_lora, hidden] makes the latent of queries; kv_a [latent + rotary,
                                        * hidden] makes the latent and the rotary part of the key */
    const float *q_a_norm, *kv_a_norm; /* [q_lora], [latent] */
    fr_matrix gate;                    /* [heads, hidden] the matrix that makes a gate for each head */
    fr_latent_heads heads;
} fr_mla_weights;

typedef struct fr_deltanet_weights {
    fr_matrix in_qkv, in_z; /* in_qkv [queries, keys and values of all heads, hidden]; in_z [value_heads * value_dim,
                             * hidden] */
    fr_matrix in_b, in_a;   /* [value_heads, hidden] */
    fr_matrix in_qkvz;      /* in_qkv and in_z as one tensor. Key heads follow each other, and each has its query, key,
                             * values and z */
    fr_matrix in_ba;        /* in_b and in_a as one tensor. Key heads follow each other, and each has b and then a of
                             * its value heads */
    /* Kimi Delta Attention. The in_parts make queries, keys and values, [value_heads * value_dim, hidden] each. in_a
     * [value_heads * key_dim, hidden or value_dim] makes decays, and in_z makes gates. If low_a and low_z have data,
     * [value_dim, hidden] each, they first make small rows from the input, and in_a and in_z read these rows. */
    fr_matrix in_parts[3], low_a, low_z;
    fr_matrix out;                /* [hidden, value_heads * value_dim] */
    const float *conv;            /* [conv_kernel, channels of in_qkv] factors of the convolution, those of the oldest
                                   * position first */
    const float *conv_parts[3];   /* [conv_kernel, value_heads * value_dim] each; Kimi Delta Attention has these three
                                   * in place of `conv` */
    const float *dt_bias, *decay; /* [value_heads], or for dt_bias one for each value of a key; decay is -exp(A_log),
                                   * and in Ling 3 exp(A_log) */
    const float *value_norm;      /* [value_dim] */
} fr_deltanet_weights;

/* The weights of Mamba-2. One tensor fills in_z, in_xbc and in_dt, so these members are adjacent and in this order. */
typedef struct fr_mamba_weights {
    fr_matrix in_z, in_xbc, in_dt; /* in_z [heads * head_dim, hidden]; in_xbc [values of all heads, keys and queries of
                                    * all groups, hidden]; in_dt [heads, hidden] */
    fr_matrix out;                 /* [hidden, heads * head_dim] */
    const float *in_bias, *out_bias;
    const float *conv, *conv_bias;       /* conv [conv_kernel, channels of in_xbc]: factors of the convolution, those of
                                          * the oldest position first; conv_bias [channels]: its biases */
    const float *dt_bias, *decay, *skip; /* [heads]; decay: -exp(A_log) */
    const float *norm;                   /* [heads * head_dim] */
} fr_mamba_weights;

_Static_assert(offsetof(fr_mamba_weights, in_xbc) == offsetof(fr_mamba_weights, in_z) + sizeof(fr_matrix) &&
                   offsetof(fr_mamba_weights, in_dt) == offsetof(fr_mamba_weights, in_z) + 2 * sizeof(fr_matrix),
               "one tensor fills all three");

typedef struct fr_short_conv_weights {
    fr_matrix in[3], out; /* [hidden, hidden] each. in: the projections that make b, c and x, which are one tensor in
                           * files; out: the projection of the output */
    const float *conv;    /* [conv_kernel, hidden] factors of the convolution, those of the oldest position first */
} fr_short_conv_weights;

/* The feed-forward of a layer. In a mixture, it is the feed-forward of the experts that all rows share. */
typedef struct fr_ffn_weights {
    /* gate_up: the matrices gate and up, [ffn, hidden] each; down: [hidden, ffn]. If a feed-forward has no gate,
     * gate_up[0] is `up` and gate_up[1] has no data */
    fr_matrix gate_up[2], down;
    const float *gate_bias, *up_bias, *down_bias;
} fr_ffn_weights;

/* Per-layer embeddings. */
typedef struct fr_ple_weights {
    fr_matrix gate, out; /* [ple_width, hidden], [hidden, ple_width] */
    const float *norm;   /* [hidden] norm after `out` */
} fr_ple_weights;

/* Weights of a mixture. One tensor may fill gate and up (FR_SLOT_EXPERTS_PARTS), so these two members are adjacent and
 * in this order. */
typedef struct fr_experts_weights {
    fr_matrix router;                                    /* [experts, hidden] its products with a row are the experts'
                                                          * scores */
    const float *router_scale;                           /* [hidden] factors for the router's input */
    const float *router_bias;                            /* [experts] bias that is added to the scores by which experts
                                                          * are chosen */
    const float *product_bias;                           /* [experts] bias that is added to the router's products */
    const float *scale;                                  /* [experts] factors for the weights of the experts' outputs */
    const float *shared_gate;                            /* [hidden] the dot product with a row is the gate of the
                                                          * shared experts' output */
    const float *pre_norm, *post_dense_norm, *post_norm; /* [hidden] the norms of a mixture that runs in parallel with a
                                                          * feed-forward */
    fr_matrix *gate, *up, *down;                         /* [experts] matrices: gate and up [width, hidden] each, down
                                                          * [hidden, width] */
    const float *gate_bias, *up_bias, *down_bias;        /* gate_bias and up_bias [experts, width], down_bias [experts,
                                                          * hidden] */
    fr_matrix latent_in, latent_out;                     /* [latent, hidden], [hidden, latent] */
    const float *latent_in_bias, *latent_out_bias;
} fr_experts_weights;

_Static_assert(offsetof(fr_experts_weights, up) == offsetof(fr_experts_weights, gate) + sizeof(fr_matrix *),
               "one tensor fills gate and up");

typedef struct fr_layer {
    const float *input_norm, *post_attn_norm, *pre_ffn_norm, *post_ffn_norm; /* [hidden] norms before and after
                                                                              * attention and feed-forward */
    const float *input_norm_bias, *post_attn_norm_bias, *pre_ffn_norm_bias, *post_ffn_norm_bias;
    fr_attention_weights attention;
    fr_mla_weights mla;
    fr_deltanet_weights deltanet;
    fr_mamba_weights mamba;
    fr_short_conv_weights short_conv;
    fr_ffn_weights ffn;
    const float *scalar; /* [1] a factor for the layer's output */
    fr_ple_weights ple;
    fr_experts_weights experts;
} fr_layer;

typedef struct fr_trunk {
    fr_trunk_spec spec;
    fr_layer *layers;
    fr_matrix embedding;               /* [vocab, hidden] */
    fr_matrix head;                    /* [vocab, hidden] the matrix that computes logits; if the head is tied to the
                                        * embedding table, it is that table */
    bool head_sorted;                  /* the head's rows are not in the order of ids; such a model has no embedding
                                        * table */
    const float *head_bias;            /* [vocab] */
    fr_matrix project_in, project_out; /* matrices for an embedding table with rows that are narrower than the stream.
                                        * project_in [hidden, embed_width] makes the stream's rows, and project_out
                                        * [embed_width, hidden] makes narrow rows again */
    fr_matrix positions;               /* [position_rows, hidden] the table of learned positions */
    const float *embed_norm, *embed_norm_bias; /* [hidden] the weights and biases of the norm of embeddings; NULL: there
                                                * are none */
    const float *norm, *norm_bias;             /* [hidden], the final norm */
    fr_matrix ple_table;                       /* [vocab, layers * ple_width] the table of per-layer embeddings */
    fr_matrix ple_projection;                  /* [layers * ple_width, hidden] makes per-layer embeddings from an
                                                * embedding */
    const float *ple_norm;                     /* [ple_width] */

    float *ones;   /* [hidden] ones, which serve as the weights of norms that have no weights in the file; NULL: all
                    * norms have weights */
    float *slopes; /* [heads] the slopes of ALiBi; NULL: no layer has ALiBi */
    float *inverse[FR_ROPES];          /* [dims / 2] the rotary frequencies of each form */
    float *rope_far_inverse[FR_ROPES]; /* the frequencies for texts of more than rope_near_max ids; NULL: such texts use
                                        * the frequencies `inverse` too */
    size_t rope_near_max;              /* the longest text that uses the frequencies `inverse`; 0: texts of any length
                                        * use them */
    fr_kv_shape *kv_shapes;            /* one shape for each layer that has keys and values of its own */
    size_t kv_count;
    fr_recurrent_shape *recurrent_shapes; /* one shape for each layer with a state */
    size_t recurrent_count;
    size_t owners;                    /* layers from this number on use another layer's keys and values, and have no
                                       * state */
    size_t adaptable;                 /* number of matrices that adapters can change (adapted.h) */
    bool packed;                      /* at least one matrix is packed */
    const fr_rotation_set *rotations; /* rotations of the inputs of products; a drafter has its target's rotations;
                                       * NULL: there are none */
    struct fr_stages *stages; /* the layers that each rank runs (stages.h); NULL: layers are not divided among ranks */
    bool drafts;              /* the trunk is a drafter's; its messages among ranks are counted separately */
} fr_trunk;

#endif
