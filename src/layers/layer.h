/* A decoder's weights, bound: the fields that tensor_names.c fills and the parts read.
 *
 * In: a spec (layer_spec.h), a checkpoint. Out: fr_trunk, immutable. What a model doesn't have is NULL, or without
 * data: a part that finds no norm, bias or projection leaves that step out. */
#ifndef FR_SRC_LAYER_H
#define FR_SRC_LAYER_H

#include "src/layers/layer_spec.h"

/* What latent attention's heads multiply with: a query's nope part [latent, nope], and the latents that it has seen
 * [value_dim, latent]. Of a file that has both in one tensor, [nope + value_dim, latent] a head, k_b is a copy of the
 * nope parts, transposed, as float32. */
typedef struct fr_latent_heads {
    fr_matrix *k_b, *v_b; /* [heads] */
    fr_matrix *kv_b;      /* [heads] that tensor's nope parts; NULL: the file has none such */
    float *copy;          /* [heads, latent, nope] */
} fr_latent_heads;

typedef struct fr_layer {
    const float *input_norm, *post_attn_norm, *pre_ffn_norm, *post_ffn_norm; /* [hidden] */
    fr_matrix q, k, v, o; /* [heads * d, hidden], [kv_heads * d, hidden] twice, [hidden, heads * d] */
    const float *q_bias, *k_bias, *v_bias, *o_bias;
    const float *q_norm, *k_norm; /* [d] */

    fr_matrix q_a, kv_a; /* [q_lora, hidden], [latent + rotary, hidden]; q is [heads * (nope + rotary), q_lora] then */
    const float *q_a_norm, *kv_a_norm; /* [q_lora], [latent] */
    fr_latent_heads heads;

    fr_matrix in_qkv, in_z; /* [queries, keys, values of all heads; hidden], [value_heads * value_dim, hidden] */
    fr_matrix in_b, in_a;   /* [value_heads, hidden] */
    fr_matrix out;          /* [hidden, value_heads * value_dim] */
    const float *conv;      /* [conv_kernel, channels of in_qkv] the oldest position's first */
    const float *dt_bias, *decay; /* [value_heads]; decay: -exp(A_log) */
    const float *value_norm;      /* [value_dim] */

    fr_matrix gate_up[2], down;   /* [ffn, hidden] each, [hidden, ffn] */
    const float *gate_bias, *up_bias, *down_bias;
    const float *scalar; /* [1] multiplies the layer's output */

    fr_matrix ple_gate, ple_out;     /* [ple_width, hidden], [hidden, ple_width] */
    const float *post_token_norm;    /* [hidden] */

    fr_matrix router;          /* [experts, hidden] */
    const float *router_scale; /* [hidden] */
    const float *router_bias;  /* [experts] what corrects the scores that choose */
    const float *expert_scale; /* [experts] */
    const float *shared_gate;  /* [hidden] */
    const float *pre_experts_norm, *post_dense_norm, *post_experts_norm; /* [hidden] */
    fr_matrix *expert_gate, *expert_up, *expert_down; /* [experts]: [width, hidden] twice, [hidden, width] */
} fr_layer;

typedef struct fr_trunk {
    fr_trunk_spec spec;
    fr_layer *layers;
    fr_matrix embedding; /* [vocab, hidden] */
    fr_matrix head;      /* [vocab, hidden]; the embedding where they are tied */
    bool head_sorted;    /* its rows stand in another order; there is no embedding then */
    const float *norm;   /* [hidden], the final one */
    fr_matrix ple_table; /* [vocab, layers * ple_width] */
    fr_matrix ple_projection; /* [layers * ple_width, hidden] */
    const float *ple_norm;    /* [ple_width] */

    float *inverse[FR_ROPES]; /* rotary frequencies, [dims / 2] */
    fr_kv_shape *kv_shapes;   /* one per owning layer */
    size_t kv_count;
    fr_recurrent_shape *recurrent_shapes; /* one per layer with a state */
    size_t recurrent_count;
    size_t owners; /* layers from here on borrow their KV, and have no state */
    bool packed;   /* some matrix is */
} fr_trunk;

#endif
