/* A decoder's bound weights: tensor_names.c fills the fields, and the parts of a layer read them.
 *
 * In: a spec (layer_spec.h), a checkpoint. Out: fr_trunk, immutable. If a model doesn't have a tensor, its field is
 * NULL or a matrix without data. The parts then leave that norm, bias or projection out. */
#ifndef FR_SRC_ENGINE_LAYERS_LAYER_H
#define FR_SRC_ENGINE_LAYERS_LAYER_H

#include <stddef.h>

#include "src/engine/layers/layer_spec.h"

/* The matrices of latent attention's heads: k_b [latent, nope] multiplies a query's nope part, v_b [value_dim, latent]
 * the weighted sum of latents. A file may have both in one tensor, [nope + value_dim, latent] for each head. Then k_b
 * is a transposed float32 copy of the nope parts. */
typedef struct fr_latent_heads {
    fr_matrix *k_b, *v_b; /* [heads] the matrices of each head */
    fr_matrix *kv_b;      /* [heads] the nope parts, if the file has k_b and v_b in one tensor; otherwise NULL */
    float *copy;          /* [heads, latent, nope] memory for the transposed copies */
} fr_latent_heads;

/* Weights of attention; latent attention also uses `q` and `o`. One tensor may fill q, k and v (FR_SLOT_QKV), and one
 * their biases (FR_SLOT_QKV_VECTOR). So these members are adjacent and in this order. */
typedef struct fr_attention_weights {
    fr_matrix q, k, v, o; /* q [heads * head_dim, hidden], k and v [kv_heads * head_dim, hidden], o [hidden, heads *
                           * head_dim] */
    const float *q_bias, *k_bias, *v_bias, *o_bias;
    const float *q_norm, *k_norm; /* [head_dim]; in a norm over all heads, q_norm has heads * head_dim values and k_norm
                                   * kv_heads * head_dim */
    const float *sinks;           /* [heads] the scores of attention sinks */
    fr_matrix gate;               /* [heads * own_gate, hidden] makes the gates of heads */
} fr_attention_weights;

_Static_assert(offsetof(fr_attention_weights, k) == offsetof(fr_attention_weights, q) + sizeof(fr_matrix) &&
                   offsetof(fr_attention_weights, v) == offsetof(fr_attention_weights, q) + 2 * sizeof(fr_matrix),
               "one tensor fills q, k and v");
_Static_assert(offsetof(fr_attention_weights, k_bias) == offsetof(fr_attention_weights, q_bias) + sizeof(float *) &&
                   offsetof(fr_attention_weights, v_bias) ==
                       offsetof(fr_attention_weights, q_bias) + 2 * sizeof(float *),
               "one tensor fills their biases");

/* Further weights of latent attention; with these, attention.q is [heads * (nope + rotary), q_lora]. */
typedef struct fr_mla_weights {
    fr_matrix q_a, kv_a;               /* [q_lora, hidden], [latent + rotary, hidden] */
    const float *q_a_norm, *kv_a_norm; /* [q_lora], [latent] */
    fr_matrix gate;                    /* [heads, hidden] makes a gate for each head */
    fr_latent_heads heads;
} fr_mla_weights;

typedef struct fr_deltanet_weights {
    fr_matrix in_qkv, in_z; /* in_qkv [queries, keys and values of all heads, hidden]; in_z [value_heads * value_dim,
                             * hidden] */
    fr_matrix in_b, in_a;   /* [value_heads, hidden] */
    fr_matrix in_qkvz;      /* in_qkv and in_z as one tensor: one key head after the other, each with its query, key,
                             * values and z */
    fr_matrix in_ba;        /* in_b and in_a as one tensor: one key head after the other, each with b and then a of its
                             * value heads */
    /* Kimi Delta Attention: in_parts make queries, keys and values, [value_heads * value_dim, hidden] each. in_a
     * [value_heads * key_dim, hidden or value_dim] makes decays, and in_z gates. If low_a and low_z have data,
     * [value_dim, hidden] each, in_a and in_z read the small rows that low_a and low_z make from the input. */
    fr_matrix in_parts[3], low_a, low_z;
    fr_matrix out;                /* [hidden, value_heads * value_dim] */
    const float *conv;            /* [conv_kernel, channels of in_qkv], the oldest position first */
    const float *conv_parts[3];   /* [conv_kernel, value_heads * value_dim] each: Kimi Delta Attention has these in
                                   * place of `conv` */
    const float *dt_bias, *decay; /* [value_heads], or dt_bias of each value of a key; decay: -exp(A_log), in Ling 3
                                   * exp(A_log) */
    const float *value_norm;      /* [value_dim] */
} fr_deltanet_weights;

/* One tensor fills in_z, in_xbc and in_dt, so these members are adjacent and in this order. */
typedef struct fr_mamba_weights {
    fr_matrix in_z, in_xbc, in_dt; /* in_z [heads * head_dim, hidden]; in_xbc [values of all heads, keys and queries of
                                    * all groups, hidden]; in_dt [heads, hidden] */
    fr_matrix out;                 /* [hidden, heads * head_dim] */
    const float *in_bias, *out_bias;
    const float *conv, *conv_bias;       /* conv [conv_kernel, channels of in_xbc], the oldest position first; conv_bias
                                          * [channels] */
    const float *dt_bias, *decay, *skip; /* [heads]; decay: -exp(A_log) */
    const float *norm;                   /* [heads * head_dim] */
} fr_mamba_weights;

_Static_assert(offsetof(fr_mamba_weights, in_xbc) == offsetof(fr_mamba_weights, in_z) + sizeof(fr_matrix) &&
                   offsetof(fr_mamba_weights, in_dt) == offsetof(fr_mamba_weights, in_z) + 2 * sizeof(fr_matrix),
               "one tensor fills all three");

typedef struct fr_short_conv_weights {
    fr_matrix in[3], out; /* [hidden, hidden] each. in: the projections for b, c and x, in one tensor; out: the output's
                           * projection */
    const float *conv;    /* [conv_kernel, hidden] weights, the oldest position first */
} fr_short_conv_weights;

/* The feed-forward of a layer, or of the experts that all rows share in a mixture. */
typedef struct fr_ffn_weights {
    /* gate_up: gate and up, [ffn, hidden] each; down: [hidden, ffn]. In a feed-forward without a gate, gate_up[0] is
     * `up` and gate_up[1] has no data */
    fr_matrix gate_up[2], down;
    const float *gate_bias, *up_bias, *down_bias;
} fr_ffn_weights;

/* Per-layer embeddings. */
typedef struct fr_ple_weights {
    fr_matrix gate, out; /* [ple_width, hidden], [hidden, ple_width] */
    const float *norm;   /* [hidden] norm after `out` */
} fr_ple_weights;

/* Weights of a mixture. One tensor may fill gate and up (FR_SLOT_EXPERTS_PARTS), so these members are adjacent and in
 * this order. */
typedef struct fr_experts_weights {
    fr_matrix router;                                    /* [experts, hidden] its products score the experts */
    const float *router_scale;                           /* [hidden] factors for the router's input */
    const float *router_bias;                            /* [experts] bias of the scores that choose experts */
    const float *product_bias;                           /* [experts] bias of the router's products */
    const float *scale;                                  /* [experts] factors for the experts' weights */
    const float *shared_gate;                            /* [hidden] makes the gate of the shared experts' output */
    const float *pre_norm, *post_dense_norm, *post_norm; /* [hidden] the norms if the mixture is parallel to a
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
    const float *scalar; /* [1] factor for the layer's output */
    fr_ple_weights ple;
    fr_experts_weights experts;
} fr_layer;

typedef struct fr_trunk {
    fr_trunk_spec spec;
    fr_layer *layers;
    fr_matrix embedding;               /* [vocab, hidden] */
    fr_matrix head;                    /* [vocab, hidden]; the embedding table, if the head is tied to it */
    bool head_sorted;                  /* the head's rows are not in the order of ids; such a model has no embedding */
    const float *head_bias;            /* [vocab] */
    fr_matrix project_in, project_out; /* project_in [hidden, embed_width] leads from the narrower rows of ids to the
                                        * stream, project_out [embed_width, hidden] leads back */
    fr_matrix positions;               /* [position_rows, hidden] the table of learned positions */
    const float *embed_norm, *embed_norm_bias; /* [hidden] the norm of embeddings; NULL: there is none */
    const float *norm, *norm_bias;             /* [hidden], the final norm */
    fr_matrix ple_table;                       /* [vocab, layers * ple_width] the table of per-layer embeddings */
    fr_matrix ple_projection;                  /* [layers * ple_width, hidden] projects an embedding to per-layer
                                                * embeddings */
    const float *ple_norm;                     /* [ple_width] */

    float *ones;   /* [hidden] ones, which are the weights of norms that have none in the file; NULL: all norms have
                    * weights */
    float *slopes; /* [heads] the slopes of ALiBi; NULL: no layer has them */
    float *inverse[FR_ROPES];          /* rotary frequencies [dims / 2] of each form */
    float *rope_far_inverse[FR_ROPES]; /* the frequencies for texts of more than rope_near_max ids; NULL: such texts
                                        * have those of `inverse` */
    size_t rope_near_max;              /* longest text with the normal frequencies; 0: texts of any length have the
                                        * normal frequencies */
    fr_kv_shape *kv_shapes;            /* one shape for each layer that owns K/V */
    size_t kv_count;
    fr_recurrent_shape *recurrent_shapes; /* one shape for each layer with a state */
    size_t recurrent_count;
    size_t owners;                    /* layers from this one on borrow their K/V, and have no state */
    size_t adaptable;                 /* number of matrices that adapters can change (adapted.h) */
    bool packed;                      /* at least one matrix is packed */
    const fr_rotation_set *rotations; /* rotations of product inputs; a drafter has its target's; NULL: none */
    struct fr_stages *stages; /* the layers that each rank runs (stages.h); NULL: layers are not divided among ranks */
    bool drafts;              /* the trunk is a drafter's; its messages among ranks are counted apart */
} fr_trunk;

#endif
