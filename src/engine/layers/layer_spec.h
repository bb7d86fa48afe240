/* A decoder described as data: its layers, its rotary positions, its widths.
 *
 * In: a family's configuration, which fills in the description. Out: the description. The parts of a layer
 * (attention.c, mla.c, ffn.c, experts.c, per_layer_embeddings.c) and the loop over layers (trunk.c) read it. They work
 * in the same way for all families. Sizes are numbers of values. */
#ifndef FR_SRC_ENGINE_LAYERS_LAYER_SPEC_H
#define FR_SRC_ENGINE_LAYERS_LAYER_SPEC_H

#include "kernels/rope_table.h"
#include "src/engine/layers/forward.h"
#include "src/engine/weights/memory_use.h"

/* FR_ROPE_NEAR and FR_ROPE_FAR stand for LongRoPE's two sets of divisors: one for short texts and one for long texts.
 * FR_LONGROPE_ANGLES is the largest number of angles that can have divisors. */
typedef enum fr_rope_reach { FR_ROPE_NEAR, FR_ROPE_FAR, FR_ROPE_REACHES } fr_rope_reach;
enum { FR_LONGROPE_ANGLES = 128 };

/* Rotary positions: Su et al. 2021, arXiv:2104.09864. */
typedef struct fr_rope_spec {
    fr_rope_kind kind;
    size_t dims; /* the first `dims` values of a head are rotated */
    bool neox;   /* values i and i + dims / 2 are rotated together; if false, the neighbours 2i and 2i + 1 are */
    /* the number of angles that belong to each axis (time, height, width); the sum of these numbers is dims / 2 */
    size_t sections[FR_AXES];
    /* angles are assigned to the axes one after the other in a cycle. When an axis has all its angles, its later turns
     * in the cycle go to the first axis */
    bool mrope_interleaved;
    bool dynamic; /* the type in config.json is "dynamic", which changes only texts beyond the context limit */
    double theta, partial, factor;                    /* arguments of fr_rope_frequencies */
    double low_factor, high_factor, original_context; /* for FR_ROPE_LLAMA3: arguments of fr_rope_scale */
    double beta_fast, beta_slow; /* for FR_ROPE_YARN: arguments of fr_rope_yarn, as original_context is */
    bool untruncated;            /* for FR_ROPE_YARN: the ends of its ramp, `low` and `high`, are not rounded to whole
                                  * numbers */
    float attention_factor;      /* factor for cosines and sines; 0 means 1 */
    double mscale_all_dim; /* scores are multiplied by the square of fr_rope_yarn_magnitude(factor, mscale_all_dim),
                            * which is 1 if mscale_all_dim is 0 */
    const float *divisors; /* [dims / 2] divisors of the frequencies, which are in memory as long as the weights; NULL:
                            * there are none */
    /* For FR_ROPE_LONGROPE: [dims / 2] divisors for fr_rope_divided. One set is for texts of up to `original_context`
     * ids, the other for longer texts. */
    float longrope[FR_ROPE_REACHES][FR_LONGROPE_ANGLES];
    double query_beta; /* queries are multiplied by 1 + query_beta * log(1 + floor(position / original_context)); 0:
                        * they are not multiplied */
} fr_rope_spec;

/* Attention: Vaswani et al. 2017, arXiv:1706.03762. Several query heads may share a key/value head: Ainslie et al.
 * 2023, arXiv:2305.13245. */
typedef struct fr_attention_spec {
    size_t heads, kv_heads, head_dim;
    size_t window; /* the most positions that a row sees, including its own position; 0: all positions */
    bool chunked;  /* the text is divided into chunks of `window` positions, and a row sees only positions of its own
                    * chunk */
    size_t rope;   /* the layer's rotary form, as an index in fr_trunk_spec.rope */
    size_t kv;     /* index of the KV layer that the layer reads */
    /* the layer also writes KV layer `kv`; if false, it uses the keys and values of an earlier layer or of the
     * target */
    bool owns_kv;
    size_t latent; /* a value is the first `latent` numbers of its key, and only the key is stored; 0: keys and values
                    * are stored */
    bool k_eq_v;   /* values are the output of the key projection, before the norm of keys */
    bool v_norm;
    bool qk_norm;          /* queries and keys have norms; this is only read for families in which some models lack
                            * these norms */
    bool bare_qk_norm;     /* a norm is applied to each head of queries and keys, even if the norm has no weights */
    bool norm_after_rope;  /* the norms of heads are applied after the rotation; if false, before the rotation */
    bool no_rope;          /* the layer's heads aren't rotated: Kazemnejad et al. 2023, arXiv:2305.19466 */
    bool qk_norm_wide;     /* one norm covers the queries of all heads together, and another norm the keys; if false,
                            * each head has its own norm */
    bool qkv_bias, o_bias; /* qkv_bias: the projections of queries, keys and values have biases; o_bias: the projection
                            * of the output has one */
    /* the projection of queries gives each head's query and then its gate, and the head's output is multiplied by
     * sigmoid(gate) */
    bool output_gate;
    /* number of gates that a separate matrix makes for each head: head_dim, or 1 for a single gate that multiplies the
     * head's whole output; 0: there is no such matrix */
    size_t own_gate;
    bool gate_softplus;   /* the gates of own_gate are the softplus of the matrix's output; if false, they are its
                           * sigmoid */
    bool alibi;           /* a score is larger the nearer the key is to the row's position; each head has another slope
                           * (NUMERICS.md, 10) */
    float alibi_octaves;  /* the flattest slope is 2^-alibi_octaves */
    bool alibi_stepped;   /* the values that ALiBi adds are rounded to bfloat16, as in Falcon */
    bool sinks;           /* each head has a sink: Xiao et al. 2023, arXiv:2309.17453 */
    bool sees_block;      /* a row of a picture also sees the picture's later rows */
    float scale, softcap; /* scale and softcap of the scores; softcap 0: scores are not capped */
    float clamp;          /* the largest magnitude of the values of queries, keys and values; 0: there is no limit */
    /* queries are multiplied by 1 + query_beta * log(1 + floor((position + 1) / query_every)), as in Llama 4;
     * query_beta 0: they are not multiplied. (fr_rope_spec.query_beta is for another formula.) */
    double query_beta;
    size_t query_every;
} fr_attention_spec;

/* Multi-head latent attention: DeepSeek-V2, arXiv:2405.04434 (mla.c). The attention spec describes its cache and its
 * scores. All heads share one key, which consists of a latent and a rotary part. The value is the latent. */
typedef struct fr_mla_spec {
    size_t q_lora; /* width of the latent from which queries are made; 0: queries are made directly from the row */
    /* number of values of a query head that are not rotated and so multiply the latent; the rotary part follows these
     * values */
    size_t nope;
    size_t value_dim; /* number of values of a head's output */
    float eps;        /* eps of both latents' norms */
    bool gated; /* a head's output is multiplied by sigmoid(g . x), where x is the layer's input row and g is a row of
                 * weights for the head */
} fr_mla_spec;

/* Gated DeltaNet: Yang, Kautz and Hatamizadeh 2024, arXiv:2412.06464. Also Kimi Delta Attention, in which each value of
 * a key has its own decay of the state: Kimi Team 2025, arXiv:2510.26692. Both are run by deltanet.c. */
typedef struct fr_deltanet_spec {
    size_t key_heads, value_heads; /* value_heads is a multiple of key_heads */
    size_t key_dim, value_dim;     /* key_dim: number of values of a head's key; value_dim: number of values of a head's
                                    * value */
    size_t conv_kernel;            /* number of positions that the short convolution reads, including the row's own
                                    * position */
    bool fused;  /* one projection gives queries, keys, values and z for one key head after the other; if false, there
                  * are two projections */
    bool tiled;  /* value head j reads key head j % key_heads, as in GGUF; if false, it reads key head j / (value_heads
                  * / key_heads) */
    bool by_key; /* The layer is Kimi Delta Attention. Each value of a key has a decay of its own, and gates are
                  * sigmoids instead of silu. Queries, keys and values come from three projections, and each has a
                  * convolution. There are as many key heads as value heads, and both have the same size. */
    float lower_bound; /* for `by_key`: decays are exp(lower_bound * s), where s is a sigmoid; 0: decays are made by
                        * softplus (quant/NUMERICS.md) */
    size_t state;      /* the layer's index among the trunk's recurrent layers */
} fr_deltanet_spec;

/* Mamba-2: Dao and Gu 2024, arXiv:2405.21060 (mamba.c). */
typedef struct fr_mamba_spec {
    size_t groups, heads;       /* heads is a multiple of groups; the heads of a group share keys and queries */
    size_t state_dim, head_dim; /* state_dim: number of values of a key; head_dim: number of values of a head */
    size_t conv_kernel;         /* number of positions that the short convolution reads, including the row's own
                                 * position */
    bool conv_bias, bias;       /* conv_bias: the convolution adds biases; bias: the projections of input and output add
                                 * biases */
    size_t norm_groups;         /* the outputs are divided into this number of equal parts, and a norm is applied to
                                 * each part; 0: there is no norm */
    bool norm_first;            /* the norm of the outputs is applied before the gates; if false, after them */
    float step_min, step_max;   /* limits of the time steps */
    size_t state;               /* the layer's index among the trunk's recurrent layers */
} fr_mamba_spec;

/* LFM2's short convolution between two gates (short_conv.c): out(c * conv(b * x)). Three projections make b, c and
 * x. */
typedef struct fr_short_conv_spec {
    size_t conv_kernel; /* number of positions that the convolution reads, including the row's own position */
    size_t state;       /* the layer's index among the trunk's recurrent layers */
} fr_short_conv_spec;

typedef enum fr_activation {
    FR_GELU, /* GELU, approximated by tanh */
    FR_SILU,
    FR_CLAMPED_SWIGLU, /* fr_clamped_swiglu_fn in kernels.h */
    /* all following values are for a feed-forward without a gate */
    FR_RELU2,    /* the square of max(x, 0): So et al. 2021, arXiv:2109.08668 */
    FR_RELU,     /* max(x, 0) */
    FR_GELU_ERF, /* GELU by the error function */
    FR_XIELU     /* Huang and Schlag 2024, arXiv:2411.13010; each layer has learned numbers for it */
} fr_activation;

/* A feed-forward is down(activation(gate(x)) * up(x)): Shazeer 2020, arXiv:2002.05202. In families without a gate it is
 * down(activation(up(x))), and the weights have `up` in the place of the gate. */
typedef struct fr_ffn_spec {
    size_t width;
    fr_activation activation;
    bool biased;
    float xielu[4]; /* for FR_XIELU: the numbers from which softplus makes alpha for positive and alpha for negative
                     * values; then beta and eps */
} fr_ffn_spec;

/* The function that turns a router's products into scores. Softmax is exp(x) divided by the sum of all exp(x). Sigmoid
 * is 1 / (1 + exp(-x)). */
typedef enum fr_scoring { FR_SCORING_SOFTMAX, FR_SCORING_SIGMOID } fr_scoring;

/* A mixture of experts (experts.c): Shazeer et al. 2017, arXiv:1701.06538. If `count` is 0, the layer has no mixture. A
 * layer with a mixture also runs its feed-forward, and the two outputs are added. If the mixture is `parallel`, this
 * feed-forward is a dense one. Otherwise it consists of the experts that all rows share, joined into one wide
 * feed-forward. If there are no shared experts, the feed-forward's width is 0. */
typedef struct fr_experts_spec {
    size_t count, top_k, width;
    fr_activation activation;
    fr_scoring scoring;
    bool score_bias;           /* a bias is added to the scores by which experts are chosen; the weights are computed
                                * from scores without the bias */
    size_t groups, top_groups; /* experts are divided into groups, in the order of their numbers, and a row chooses only
                                * among the experts of its best groups; 0: there are no groups */
    bool groups_by_best;       /* a group's score is that of its best expert; if false, it is the sum of its two best
                                * scores */
    /* A row chooses two experts one after the other. Each time it chooses the expert with the largest product p among
     * the experts that are left. The expert's weight is its part in a softmax over some products q of the experts that
     * are left: those that are at most nearness * max(p, |q|) smaller than p. */
    bool one_by_one;
    float nearness;
    bool norm_top_k;      /* the weights of a row's experts are divided by their sum */
    float norm_added;     /* number that is added to the sum before weights are divided by it; 0: 1e-20 is added */
    float norm_min;       /* the smallest number by which weights are divided; 0: there is no such limit, and norm_added
                           * is added to the sum instead */
    float product_cap;    /* softcap of the router's products; 0: they are not capped */
    float routed_scaling; /* the weights of a row's experts are multiplied by this factor */
    bool weighs_input;    /* the weight of an expert in a row multiplies the expert's input; if false, it multiplies the
                           * output */
    bool biased;          /* biases are added to the router's products, and to the products of an expert's three
                           * matrices */
    bool ungated;         /* an expert is down(activation(up(x))), and its weights have `up` in the place of the gate */
    size_t latent;        /* Width of the experts' latent. Experts read a projection of the row to this width. The sum
                           * of their outputs is projected back, which gives the mixture's output. 0: experts read the
                           * row itself. */
    float limit;          /* for FR_CLAMPED_SWIGLU */
    bool shared_gated;    /* the feed-forward's output is multiplied by sigmoid(shared_gate . x) */
    bool halved;          /* the output is the mean of the experts' output and the feed-forward's; if false, it is their
                           * sum */
    bool turned;          /* in the files, the matrices of the stacked experts are stored transposed */
    bool parallel;        /* router, experts and feed-forward each have norms of their own, as in Gemma 4 */
} fr_experts_spec;

/* The places of a layer's norms. BEFORE: before attention and feed-forward; some families also have norms after them.
 * BEHIND: only after them, so that attention and feed-forward read the residual stream without a norm. SHARED:
 * attention and feed-forward read the same norm of the layer's input, and their outputs are added to the stream
 * together. PARALLEL: like SHARED, but attention and feed-forward each have a norm of their own. AFTER: attention and
 * feed-forward read the stream without a norm, and each time their output has been added to the stream, a norm is
 * applied to the stream. */
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

/* Returns true if the mixer carries inputs or a state from one position to the next. */
static inline bool fr_mixer_recurs(fr_mixer mixer) {
    return mixer == FR_MIXER_DELTANET || mixer == FR_MIXER_SHORT_CONV || mixer == FR_MIXER_MAMBA ||
           mixer == FR_MIXER_BOTH;
}

/* Returns true if the mixer reads keys and values. */
static inline bool fr_mixer_attends(fr_mixer mixer) {
    return mixer == FR_MIXER_ATTENTION || mixer == FR_MIXER_MLA || mixer == FR_MIXER_BOTH;
}

/* Factors of a layer's products. A factor of 0 means that there is none. In GGUF, the weights are already multiplied by
 * these factors; in a folder, they are not. Mamba-2's inputs have factors for gates (z), values (x), keys (b), queries
 * (c) and time steps (dt). */
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
    /* for attention that reads only a selection of the positions: if there are at most this many positions, attention
     * reads all of them. Longer contexts are not supported, so context_limit is at most this number. 0: attention
     * always reads all positions */
    size_t selected;
    size_t ffn_width; /* width of the feed-forward in layers without a mixture; files have this number even if every
                       * layer has a mixture */
    /* width of the per-layer embeddings of a row's token (per_layer_embeddings.c); 0: there are no per-layer
     * embeddings */
    size_t ple_width;
    size_t deepstack; /* number of layers, counted from the first, that each add a row of the picture to their output;
                       * 0: none does */
    size_t ple_pad;   /* the id whose per-layer embedding the rows of a picture get */
    /* position_rows: number of rows in the table of positions; 0: there is no table. Row position_offset + p of the
     * table is added to the embedding at position p */
    size_t position_rows, position_offset;
    size_t embed_width;    /* width of the embedding table's rows, if they are narrower than the residual stream; two
                            * matrices then convert between the two widths. 0: the rows have the stream's width */
    float embedding_scale; /* factor for the rows of the embedding table */
    float eps;             /* for all norms */
    float post_eps;        /* eps of the norms after attention and feed-forward; 0: they have the same eps as other
                            * norms */
    float residual_scale;  /* factor for the outputs of attention and feed-forward; 0 means 1 */
    float logit_scale;     /* factor for the logits, before softcap; 0 means 1 */
    bool layer_norm;       /* norms of hidden rows are LayerNorms: they first subtract the row's mean
                            * (arXiv:1607.06450) */
    bool no_last_norm;     /* there is no norm after the last layer */
    bool plain_norms;      /* norms of hidden rows have no weights and no biases */
    bool norm_bias;        /* norms of hidden rows add a bias */
    bool norms_embeddings; /* a norm without weights is applied to embeddings before the first layer */
    bool post_norms;       /* there are norms after attention and feed-forward; this is only read for families in which
                            * some models lack these norms */
    bool head_bias;        /* the head adds a bias to the logits, before logit_scale */
    float softcap;         /* softcap of the logits; 0: logits are not capped */
    fr_rope_spec rope[FR_ROPES];
    size_t ropes;
    bool embeds;          /* the model has an embedding table; a drafter with a sorted head has none */
    fr_layer_spec *layer; /* [layers] the specs of the layers */
    fr_layer_spec mtp;    /* the spec of the MTP layers after the trunk's layers, if the family has MTP layers
                           * (families/mtp_layer.h) */
} fr_trunk_spec;

/* Gives the number of floats in a picture's row. It has an embedding, and one more row for each layer that adds a row
 * of the picture to its output (deepstack). */
static inline size_t fr_spec_picture_width(const fr_trunk_spec *spec) {
    return spec->hidden * (1 + spec->deepstack);
}

/* Gives the layer with this number. MTP layers have the numbers after the trunk's layers. */
const fr_layer_spec *fr_spec_layer(const fr_trunk_spec *spec, size_t index);

/* Gives the spec of the first layer with attention. If no layer of the trunk has attention, gives the MTP layer's. */
const fr_attention_spec *fr_spec_attention(const fr_trunk_spec *spec);

/* Gives the widest window of the layers, as configured. Gives 0 if no layer slides. (In a drafter without a cache of
 * its own, sliding layers see one position more: families/gemma4_layers.c.) */
size_t fr_spec_window(const fr_trunk_spec *spec);

/* Returns true if any rotary form has angles for height and width. Rotary positions of pictures then differ from those
 * of text. */
bool fr_spec_has_axes(const fr_trunk_spec *spec);

/* Returns true if there is a layer in which a row of a picture also sees the picture's later rows. All rows of a
 * picture must then be run in one forward. */
bool fr_spec_sees_block(const fr_trunk_spec *spec);

/* Gives the mixture of the layers, or of the MTP layer if no other layer has one. All layers with a mixture have the
 * same sizes. Gives NULL if no layer has a mixture. */
const fr_experts_spec *fr_spec_experts(const fr_trunk_spec *spec);

/* Gives the number of experts, and the number that a row chooses. The memory for weights depends on these numbers. */
fr_mixture_size fr_spec_mixture_size(const fr_trunk_spec *spec);

/* Makes the specs of all layers, including MTP layers, copies of `layer`. */
fr_status fr_spec_repeat(fr_trunk_spec *spec, const fr_layer_spec *layer);

#endif
