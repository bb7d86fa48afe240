/* A decoder described as data: its layers, its rotary positions, its widths.
 *
 * In: a family's configuration, which fills in the description. Out: the description, which the parts of a layer
 * (attention.c, mla.c, ffn.c, experts.c, per_layer_embeddings.c) and the loop over layers (trunk.c) read; no part
 * knows which family it runs. Sizes count values. */
#ifndef FR_SRC_ENGINE_LAYERS_LAYER_SPEC_H
#define FR_SRC_ENGINE_LAYERS_LAYER_SPEC_H

#include "kernels/rope_table.h"
#include "src/engine/layers/forward.h"
#include "src/engine/weights/memory_use.h"

/* FR_ROPE_NEAR and FR_ROPE_FAR are LongRoPE's two sets of divisors, for short and for long texts. FR_LONGROPE_ANGLES
 * is the most angles that can have divisors. */
typedef enum fr_rope_reach { FR_ROPE_NEAR, FR_ROPE_FAR, FR_ROPE_REACHES } fr_rope_reach;
enum { FR_LONGROPE_ANGLES = 128 };

/* Rotary positions: Su et al. 2021, arXiv:2104.09864. */
typedef struct fr_rope_spec {
    fr_rope_kind kind;
    size_t dims; /* the first `dims` values of a head are rotated */
    bool neox;   /* value i is rotated with i + dims / 2; if false, with its neighbour: 2i and 2i + 1 */
    /* numbers of angles that belong to each axis: time, height, width; their sum is dims / 2 */
    size_t sections[FR_AXES];
    /* the angles go to the axes in turn; once an axis has all its angles, its further turns go to the first axis */
    bool mrope_interleaved;
    bool dynamic; /* config.json's type is "dynamic", which scales only texts beyond the context limit */
    double theta, partial, factor;                    /* arguments of fr_rope_frequencies */
    double low_factor, high_factor, original_context; /* for FR_ROPE_LLAMA3: arguments of fr_rope_scale */
    double beta_fast, beta_slow; /* for FR_ROPE_YARN: arguments of fr_rope_yarn, like original_context */
    bool untruncated;       /* fr_rope_yarn does not round the ends of its ramp, `low` and `high`, to whole numbers */
    float attention_factor; /* factor for cosines and sines; 0 means 1 */
    double mscale_all_dim;  /* scores are multiplied by fr_rope_yarn_magnitude(factor, mscale_all_dim)^2, which is 1 if
                             * this is 0 */
    const float *divisors;  /* [dims / 2] divisors of the frequencies, valid as long as the weights; NULL: none */
    /* For FR_ROPE_LONGROPE: [dims / 2] divisors for fr_rope_divided, one set for texts of up to `original_context` ids,
     * and one for longer texts. */
    float longrope[FR_ROPE_REACHES][FR_LONGROPE_ANGLES];
    double query_beta; /* queries are multiplied by 1 + this * log(1 + floor(position / original_context)); 0: queries
                        * are not multiplied */
} fr_rope_spec;

/* Attention: Vaswani et al. 2017, arXiv:1706.03762; key/value heads shared: Ainslie et al. 2023, arXiv:2305.13245. */
typedef struct fr_attention_spec {
    size_t heads, kv_heads, head_dim;
    size_t window; /* the most positions that a row sees, including its own; 0: all */
    bool chunked;  /* a row sees only positions of its own chunk; the text is divided into chunks of `window` */
    size_t rope;   /* the layer's rotary form, as an index in the trunk */
    size_t kv;     /* index of the KV layer that the layer reads */
    /* the layer also writes KV layer `kv`; if false, it borrows the K/V of an earlier layer, or of the target */
    bool owns_kv;
    size_t latent; /* a value is the first `latent` numbers of its key, and only the key is stored; 0: both are
                    * stored */
    bool k_eq_v;   /* values are the output of the key projection, before its norm */
    bool v_norm;
    bool qk_norm;          /* queries and keys are normed; only read for families in which not all models have these
                            * norms */
    bool bare_qk_norm;     /* queries and keys are normed head by head, even if the norms have no weights */
    bool norm_after_rope;  /* the norms of heads come after the rotation; if false, before it */
    bool no_rope;          /* the layer's heads aren't rotated: Kazemnejad et al. 2023, arXiv:2305.19466 */
    bool qk_norm_wide;     /* the norms of queries and keys are over all heads at once; if false, over each head */
    bool qkv_bias, o_bias; /* the projections of q, k and v have biases; the projection of the output has one */
    /* q's projection gives each head's query, then its gate; the head's output is multiplied by sigmoid(gate) */
    bool output_gate;
    /* number of gate values that a separate matrix gives each head: head_dim, or 1, which gates the head's whole
     * output; 0: there is no such matrix */
    size_t own_gate;
    bool gate_softplus;   /* gates of own_gate are softplus of the matrix's output, not its sigmoid */
    bool alibi;           /* scores grow towards the row's position, in each head by another slope (NUMERICS.md, 10) */
    float alibi_octaves;  /* the flattest slope is 2 to the minus this power */
    bool alibi_stepped;   /* the values that the slopes add are rounded to bfloat16, as in Falcon */
    bool sinks;           /* each head has a sink: Xiao et al. 2023, arXiv:2309.17453 */
    bool sees_block;      /* a row of a picture also sees the picture's later rows */
    float scale, softcap; /* applied to the scores; softcap 0: none */
    float clamp;          /* the largest magnitude of values of queries, keys and values; 0: none */
    /* queries are multiplied by 1 + query_beta * log(1 + floor((position + 1) / query_every)), as in Llama 4;
     * query_beta 0: they are not (fr_rope_spec.query_beta has another rule) */
    double query_beta;
    size_t query_every;
} fr_attention_spec;

/* Multi-head latent attention: DeepSeek-V2, arXiv:2405.04434 (mla.c). The attention spec describes its cache and its
 * scores: all heads share one key, which consists of a latent and a rotary part; the value is the latent. */
typedef struct fr_mla_spec {
    size_t q_lora; /* the size of the latent from which queries are made; 0: they are made from the row */
    /* number of values of a query head that multiply the latent; the rotary part follows them */
    size_t nope;
    size_t value_dim; /* number of values of a head's output */
    float eps;        /* eps of both latents' norms */
    bool gated; /* a head's output is multiplied by sigmoid(dot of the layer's input row and a row for this head) */
} fr_mla_spec;

/* Gated DeltaNet: Yang, Kautz and Hatamizadeh 2024, arXiv:2412.06464; and Kimi Delta Attention, whose states fade by
 * another factor for each value of a key: Kimi Team 2025, arXiv:2510.26692 (deltanet.c). */
typedef struct fr_deltanet_spec {
    size_t key_heads, value_heads; /* value_heads is a multiple of key_heads */
    size_t key_dim, value_dim;     /* key_dim: values of a head's key; value_dim: values of a head's value */
    size_t conv_kernel;            /* positions that the short convolution reads, including the row's own */
    bool fused;  /* one projection gives queries, keys, values and z, key head by key head; if false, there are two
                  * projections */
    bool tiled;  /* value head j reads key head j % key_heads, as in GGUF; if false, j / (value_heads / key_heads) */
    bool by_key; /* The layer is Kimi Delta Attention: each value of a key has a decay of its own, and gates are
                  * sigmoids instead of silu. Queries, keys and values come from three projections, each with a
                  * convolution. There are as many key heads as value heads, and they have the same size. */
    float lower_bound; /* if `by_key` is set: decays are exp(lower_bound * a sigmoid); 0: decays are made by softplus
                        * (quant/NUMERICS.md) */
    size_t state;      /* the layer's index among the trunk's recurrent layers */
} fr_deltanet_spec;

/* Mamba-2: Dao and Gu 2024, arXiv:2405.21060 (mamba.c). */
typedef struct fr_mamba_spec {
    size_t groups, heads;       /* heads is a multiple of groups; the heads of a group have the same keys and queries */
    size_t state_dim, head_dim; /* state_dim: values of a key; head_dim: values of a head */
    size_t conv_kernel;         /* positions that the short convolution reads, including the row's own */
    bool conv_bias, bias;       /* conv_bias: the convolution adds biases; bias: the projections of input and output add
                                 * biases */
    size_t norm_groups;         /* number of parts of equal width in which the outputs are normed; 0: the outputs are
                                 * not normed */
    bool norm_first;            /* the outputs are normed and then gated; if false, first gated */
    float step_min, step_max;   /* limits of the time steps */
    size_t state;               /* the layer's index among the trunk's recurrent layers */
} fr_mamba_spec;

/* LFM2's short convolution between two gates (short_conv.c): out(c * conv(b * x)); b, c and x are three
 * projections. */
typedef struct fr_short_conv_spec {
    size_t conv_kernel; /* number of positions that the convolution reads, including the row's own */
    size_t state;       /* the layer's index among the trunk's recurrent layers */
} fr_short_conv_spec;

typedef enum fr_activation {
    FR_GELU, /* GELU, approximated by tanh */
    FR_SILU,
    FR_CLAMPED_SWIGLU, /* fr_clamped_swiglu_fn in kernels.h */
    /* the values from here on are for a feed-forward without a gate */
    FR_RELU2,    /* the square of max(x, 0): So et al. 2021, arXiv:2109.08668 */
    FR_RELU,     /* max(x, 0) */
    FR_GELU_ERF, /* GELU by the error function */
    FR_XIELU     /* Huang and Schlag 2024, arXiv:2411.13010: with numbers that each layer has learned */
} fr_activation;

/* A feed-forward is down(activation(gate(x)) * up(x)): Shazeer 2020, arXiv:2002.05202. In families without a gate it is
 * down(activation(up(x))); their weights have `up` in the place of the gate. */
typedef struct fr_ffn_spec {
    size_t width;
    fr_activation activation;
    bool biased;
    float xielu[4]; /* for FR_XIELU: alpha of positive values and alpha of negative ones, both before their softplus;
                     * then beta and eps */
} fr_ffn_spec;

/* The function that turns a router's products into scores: softmax, exp(x) over the sum of all exp(x), or sigmoid, 1 /
 * (1 + exp(-x)). */
typedef enum fr_scoring { FR_SCORING_SOFTMAX, FR_SCORING_SIGMOID } fr_scoring;

/* A mixture of experts (experts.c): Shazeer et al. 2017, arXiv:1701.06538; count 0: none. The layer's feed-forward
 * runs too, and the two outputs are added. If the mixture is `parallel`, this feed-forward is a dense one. Otherwise
 * it consists of the experts that all rows share, joined into one wide feed-forward. If there are no shared experts
 * either, the feed-forward's width is 0. */
typedef struct fr_experts_spec {
    size_t count, top_k, width;
    fr_activation activation;
    fr_scoring scoring;
    bool score_bias;           /* a bias is added to the scores by which experts are chosen, but not to the weights */
    size_t groups, top_groups; /* experts are divided into groups, in the order of their numbers, and a row chooses
                                * only among the experts of its best groups; 0: no groups */
    bool groups_by_best;       /* a group is rated by its best expert; if false, by the sum of its two best */
    /* A row chooses two experts, one after the other: each time the one whose product p is the largest of those that
     * are left. The expert's weight is its share in a softmax over some of the products that are left: those products
     * q that are at most nearness * max(p, |q|) smaller than p. */
    bool one_by_one;
    float nearness;
    bool norm_top_k;      /* a row's weights are divided by their sum */
    float norm_added;     /* added to the sum of scores before weights are divided by the sum; 0: 1e-20 is added */
    float norm_min;       /* the smallest divisor of weights; 0: there is none, and norm_added is added to the sum
                           * instead */
    float product_cap;    /* softcap of the router's products; 0: none */
    float routed_scaling; /* a row's weights are multiplied by this */
    bool weighs_input;    /* a row's weight multiplies the expert's input; if false, its output */
    bool biased;          /* biases are added to the router's products, and to those of the experts' three matrices */
    bool ungated;         /* an expert is down(activation(up(x))); its weights have `up` in the place of the gate */
    size_t latent;        /* Width of the experts' latent: experts read a projection of the row to this width, and the
                           * mixture's output is another projection, of the sum of their outputs. 0: experts read the
                           * row. */
    float limit;          /* for FR_CLAMPED_SWIGLU */
    bool shared_gated;    /* the feed-forward's output is multiplied by sigmoid(shared_gate . x) */
    bool halved;          /* the output is the mean of the experts' and the feed-forward's, not their sum */
    bool turned;          /* in the files, the matrices of the experts' stacks are stored by columns */
    bool parallel;        /* router, experts and feed-forward each have norms of their own, as in Gemma 4 */
} fr_experts_spec;

/* The places of a layer's norms. BEFORE: before attention and feed-forward, and for some families after them too.
 * BEHIND: only after them, so that attention and feed-forward read the stream without a norm. SHARED: attention and
 * feed-forward read the same norm of the input, and their outputs are added to the stream together. PARALLEL: like
 * SHARED, but attention and feed-forward each have a norm of their own. AFTER: attention and feed-forward read the
 * stream without a norm, and the stream is normed each time an output has been added to it. */
typedef enum fr_norm_placement {
    FR_NORMS_BEFORE,
    FR_NORMS_BEHIND,
    FR_NORM_SHARED,
    FR_NORMS_PARALLEL,
    FR_NORMS_AFTER
} fr_norm_placement;

/* The part of a layer that mixes positions. BOTH: attention and Mamba-2 read the same norm, and their outputs are
 * added. NONE: the layer has only a feed-forward. */
typedef enum fr_mixer {
    FR_MIXER_ATTENTION,
    FR_MIXER_DELTANET,
    FR_MIXER_SHORT_CONV,
    FR_MIXER_MLA,
    FR_MIXER_MAMBA,
    FR_MIXER_BOTH,
    FR_MIXER_NONE
} fr_mixer;

/* Returns true if the mixer carries inputs or a state from position to position. */
static inline bool fr_mixer_recurs(fr_mixer mixer) {
    return mixer == FR_MIXER_DELTANET || mixer == FR_MIXER_SHORT_CONV || mixer == FR_MIXER_MAMBA ||
           mixer == FR_MIXER_BOTH;
}

/* Returns true if the mixer reads keys and values. */
static inline bool fr_mixer_attends(fr_mixer mixer) {
    return mixer == FR_MIXER_ATTENTION || mixer == FR_MIXER_MLA || mixer == FR_MIXER_BOTH;
}

/* Factors of a layer's products; 0: none. The weights in GGUF are already multiplied by these factors, those in a
 * folder are not. Mamba-2's inputs have factors for gates, values, keys, queries and time steps. */
typedef struct fr_layer_factors {
    float q, k, v, o, gate, down;
    float mamba_z, mamba_x, mamba_b, mamba_c, mamba_dt, mamba_out;
} fr_layer_factors;

typedef struct fr_layer_spec {
    fr_mixer mixer;
    fr_norm_placement norms;
    fr_attention_spec attention; /* latent attention uses this too */
    fr_deltanet_spec deltanet;
    fr_mamba_spec mamba;
    fr_short_conv_spec short_conv;
    fr_mla_spec mla;
    fr_ffn_spec ffn;
    fr_experts_spec experts;
    fr_layer_factors factors;
} fr_layer_spec;

/* Returns true if the layer has a feed-forward or a mixture of experts. */
static inline bool fr_layer_feeds(const fr_layer_spec *layer) {
    return layer->ffn.width || layer->experts.count;
}

enum { FR_ROPES = 4 };

typedef struct fr_trunk_spec {
    size_t vocab, hidden, layers, context_limit;
    /* for attention that reads only a selection of the positions: the number of positions up to which attention reads
     * all of them. Longer contexts are not built, so context_limit is at most this number. 0: attention reads all
     * positions, however many there are */
    size_t selected;
    size_t ffn_width; /* width of the feed-forward in layers without a mixture; files have it even if every layer has a
                       * mixture */
    /* width of the per-layer embeddings of a row's token (per_layer_embeddings.c); 0: there are none */
    size_t ple_width;
    size_t deepstack; /* the first so many layers each add a further row of the picture to their output; 0: none */
    size_t ple_pad;   /* the id whose per-layer embedding a picture's rows get */
    /* rows of the table of positions; 0: there is no table. Row position_offset + p of the table is added to the
     * embedding at position p */
    size_t position_rows, position_offset;
    size_t embed_width;    /* values in an id's row of the embedding table, if the row is narrower than the stream. Two
                            * matrices then lead from the row to the stream and back; 0: hidden */
    float embedding_scale; /* factor for an id's row of the embedding table */
    float eps;             /* for all norms */
    float post_eps;        /* for the norms after attention and feed-forward; 0: eps */
    float residual_scale;  /* factor for the outputs of attention and feed-forward; 0 means 1 */
    float logit_scale;     /* factor for the logits, before softcap; 0 means 1 */
    bool layer_norm;       /* norms of hidden rows subtract the row's mean first (arXiv:1607.06450) */
    bool no_last_norm;     /* there is no norm after the last layer */
    bool plain_norms;      /* norms of hidden rows have no weights and no biases */
    bool norm_bias;        /* norms of hidden rows add a bias */
    bool norms_embeddings; /* the rows of ids are normed, without weights, before the first layer */
    bool post_norms;       /* there are norms after attention and feed-forward; only read for families in which some
                            * models lack these norms */
    bool head_bias;        /* the head adds a bias to the logits, before logit_scale */
    float softcap;         /* softcap of the logits; 0: none */
    fr_rope_spec rope[FR_ROPES];
    size_t ropes;
    bool embeds;          /* the model has a table of ids; a drafter with a sorted head doesn't */
    fr_layer_spec *layer; /* [layers] the specs of the layers */
    fr_layer_spec mtp;    /* the MTP layers after the trunk's, if the family has any (families/mtp_layer.h) */
} fr_trunk_spec;

/* Gives the number of floats of a picture's row: an embedding, and a further row for each layer whose output gets a
 * further row of the picture (deepstack). */
static inline size_t fr_spec_picture_width(const fr_trunk_spec *spec) {
    return spec->hidden * (1 + spec->deepstack);
}

/* Gives the layer with this number; MTP layers are numbered after the trunk's. */
const fr_layer_spec *fr_spec_layer(const fr_trunk_spec *spec, size_t index);

/* Gives the attention of the first layer that has attention. If no layer of the trunk has attention, gives the MTP
 * layer's. */
const fr_attention_spec *fr_spec_attention(const fr_trunk_spec *spec);

/* Gives the widest window of the layers, as configured; 0 if no layer slides. (Sliding layers of a drafter without a
 * cache of its own see one position more: families/gemma4_layers.c.) */
size_t fr_spec_window(const fr_trunk_spec *spec);

/* Returns true if any rotary form has angles for height and width, so that rotary positions of pictures differ from
 * those of text. */
bool fr_spec_has_axes(const fr_trunk_spec *spec);

/* Returns true if in any layer a row of a picture also sees the picture's later rows. All rows of a picture must then
 * be run in one forward. */
bool fr_spec_sees_block(const fr_trunk_spec *spec);

/* Gives the mixture of the layers, or of the MTP layer; all layers with a mixture have the same sizes. NULL if no
 * layer has one. */
const fr_experts_spec *fr_spec_experts(const fr_trunk_spec *spec);

/* Gives the number of experts and of chosen experts, which determine how much memory weights need. */
fr_mixture_size fr_spec_mixture_size(const fr_trunk_spec *spec);

/* Makes all layers of the trunk, including MTP layers, copies of this one. */
fr_status fr_spec_repeat(fr_trunk_spec *spec, const fr_layer_spec *layer);

#endif
