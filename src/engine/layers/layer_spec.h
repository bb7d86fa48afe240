/* A decoder described as data: its layers, its rotary positions, its widths.
 *
 * In: a family's configuration, which fills this. Out: the description that the parts (attention.c, mla.c, ffn.c,
 * experts.c, per_layer_embeddings.c) and the loop over layers (trunk.c) read; no part asks for the family that it
 * runs. Sizes count values. */
#ifndef FR_SRC_ENGINE_LAYERS_LAYER_SPEC_H
#define FR_SRC_ENGINE_LAYERS_LAYER_SPEC_H

#include "kernels/rope_table.h"
#include "src/engine/layers/forward.h"
#include "src/engine/weights/memory_use.h"

/* LongRoPE's two sets of divisors, for short texts and for long ones; and the most angles that they have divisors
 * for. */
typedef enum fr_rope_reach { FR_ROPE_NEAR, FR_ROPE_FAR, FR_ROPE_REACHES } fr_rope_reach;
enum { FR_LONGROPE_ANGLES = 128 };

/* Rotary positions: Su et al. 2021, arXiv:2104.09864. */
typedef struct fr_rope_spec {
    fr_rope_kind kind;
    size_t dims; /* the first `dims` values of a head are rotated */
    bool neox;   /* value i is rotated with i + dims / 2; otherwise neighbours are, 2i and 2i + 1 */
    /* the number of the dims / 2 angles that follow each axis, in this order; they add up to all */
    size_t sections[FR_AXES];
    /* instead they follow the axes in turn; the first axis takes the turns of one that has its number */
    bool mrope_interleaved;
    double theta, partial, factor;                    /* as fr_rope_frequencies takes them */
    double low_factor, high_factor, original_context; /* as fr_rope_scale takes them, with FR_ROPE_LLAMA3 */
    double beta_fast, beta_slow; /* as fr_rope_yarn takes them and `original_context`, with FR_ROPE_YARN */
    bool untruncated;            /* fr_rope_yarn doesn't truncate */
    float attention_factor;      /* multiplies cosine and sine; 0: 1 */
    double mscale_all_dim;       /* scores grow by the square of its magnitude (fr_rope_yarn_magnitude) */
    const float *divisors; /* [dims / 2] divisors of the frequencies; NULL: none. They live as long as the weights */
    /* [dims / 2] with FR_ROPE_LONGROPE, as fr_rope_divided takes them: for texts of up to `original_context` ids, and
     * for longer ones. */
    float longrope[FR_ROPE_REACHES][FR_LONGROPE_ANGLES];
    double query_beta; /* queries grow by 1 + this * log(1 + floor(position / original_context)); 0: they don't */
} fr_rope_spec;

/* Attention: Vaswani et al. 2017, arXiv:1706.03762; key/value heads shared: Ainslie et al. 2023, arXiv:2305.13245. */
typedef struct fr_attention_spec {
    size_t heads, kv_heads, head_dim;
    size_t window; /* the most positions that a row sees, its own included; 0: all */
    size_t rope;   /* its rotary form, by its number in the trunk */
    size_t kv;     /* the KV layer that it reads */
    /* it also writes that KV layer; otherwise it borrows the one of an earlier layer, or of the target */
    bool owns_kv;
    size_t latent; /* a value is the first `latent` numbers of its key, and only the key is kept; 0: both are kept */
    bool k_eq_v;   /* values come from the key projection, before its norm */
    bool v_norm;
    bool qk_norm;          /* queries and keys are normed; for families in which not every model has these norms */
    bool norm_after_rope;  /* the norms of heads come after the rotation; otherwise before it */
    bool no_rope;          /* its heads aren't rotated: Kazemnejad et al. 2023, arXiv:2305.19466 */
    bool qk_norm_wide;     /* these norms are over the values of all heads at once; otherwise over each head */
    bool qkv_bias, o_bias; /* its projections add biases: those of the input, that of the output */
    /* q's projection gives each head's query, then its gate; sigmoid(gate) multiplies the head's output */
    bool output_gate;
    bool sinks;           /* each head has a sink: Xiao et al. 2023, arXiv:2309.17453 */
    float scale, softcap; /* applied to the scores; softcap 0: none */
} fr_attention_spec;

/* Multi-head latent attention: DeepSeek-V2, arXiv:2405.04434 (mla.c). The attention spec describes its cache and its
 * scores: one key for all heads, of a latent and a rotary part; the value is the latent. */
typedef struct fr_mla_spec {
    size_t q_lora; /* the size of the latent that queries are made of; 0: they are made of the row */
    /* values of a query head that are multiplied with the latent; its rotary part follows them */
    size_t nope;
    size_t value_dim; /* values of a head's output */
    float eps;        /* used in both latents' norms */
} fr_mla_spec;

/* Gated DeltaNet: Yang, Kautz and Hatamizadeh 2024, arXiv:2412.06464 (deltanet.c). */
typedef struct fr_deltanet_spec {
    size_t key_heads, value_heads; /* the latter a multiple of the former */
    size_t key_dim, value_dim;     /* of a head */
    size_t conv_kernel;            /* positions that the short convolution reads, the row's own included */
    bool fused;   /* one projection gives queries, keys, values and z, key head by key head; otherwise there are two */
    bool tiled;   /* value head j reads key head j % key_heads, as GGUF has them; else j / (value_heads / key_heads) */
    size_t state; /* which of the trunk's recurrent layers it is */
} fr_deltanet_spec;

/* A short convolution between two gates, of LFM2 (short_conv.c): out(c * conv(b * x)), of three projections. */
typedef struct fr_short_conv_spec {
    size_t conv_kernel; /* positions that it reads, the row's own included */
    size_t state;       /* which of the trunk's recurrent layers it is */
} fr_short_conv_spec;

typedef enum fr_activation { FR_GELU, FR_SILU, FR_CLAMPED_SWIGLU } fr_activation; /* the last: kernels.h */

/* A feed-forward is down(activation(gate(x)) * up(x)): Shazeer 2020, arXiv:2002.05202. */
typedef struct fr_ffn_spec {
    size_t width;
    fr_activation activation;
    bool biased;
} fr_ffn_spec;

/* The function that makes scores of a router's products: softmax, exp(x) over a sum of such, or sigmoid, 1 / (1 +
 * exp(-x)). */
typedef enum fr_scoring { FR_SCORING_SOFTMAX, FR_SCORING_SIGMOID } fr_scoring;

/* A mixture of experts (experts.c): Shazeer et al. 2017, arXiv:1701.06538; count 0: none. The layer's feed-forward is
 * added to it: the experts that all rows share, as one of their joint width; a dense one if it is parallel; or none
 * (width 0). */
typedef struct fr_experts_spec {
    size_t count, top_k, width;
    fr_activation activation;
    fr_scoring scoring;
    bool score_bias;           /* a bias is added to the scores that choose, and to no weight */
    size_t groups, top_groups; /* groups of neighbouring experts: a row chooses in its best groups; 0: no groups */
    bool groups_by_best;       /* a group is as good as its best expert; otherwise as its two best ones together */
    bool norm_top_k;           /* a row's weights are divided by their sum */
    float norm_min;            /* the least sum to divide by; 0: 1e-20 is added instead if sums may be that small */
    float routed_scaling;      /* a row's weights are multiplied by this */
    bool biased;               /* the router's products have biases, and those of the experts' three matrices */
    float limit;               /* of FR_CLAMPED_SWIGLU */
    bool shared_gated;         /* the feed-forward's output is multiplied by sigmoid(shared_gate . x) */
    bool parallel;             /* router, experts and feed-forward have norms of their own, as Gemma 4's */
} fr_experts_spec;

/* The places of a layer's norms: before each part, and perhaps after it too; only after each part, which then reads
 * the stream as it is; or before both parts, which read one norm and add to the stream together. */
typedef enum fr_norm_placement { FR_NORMS_BEFORE, FR_NORMS_BEHIND, FR_NORM_SHARED } fr_norm_placement;

/* The part of a layer that mixes positions. */
typedef enum fr_mixer { FR_MIXER_ATTENTION, FR_MIXER_DELTANET, FR_MIXER_SHORT_CONV, FR_MIXER_MLA } fr_mixer;

/* Returns true if the mixer carries inputs or a state on from position to position, and has no keys and values. */
static inline bool fr_mixer_recurs(fr_mixer mixer) {
    return mixer == FR_MIXER_DELTANET || mixer == FR_MIXER_SHORT_CONV;
}

typedef struct fr_layer_spec {
    fr_mixer mixer;
    fr_norm_placement norms;
    fr_attention_spec attention; /* also that of MLA */
    fr_deltanet_spec deltanet;
    fr_short_conv_spec short_conv;
    fr_mla_spec mla;
    fr_ffn_spec ffn;
    fr_experts_spec experts;
} fr_layer_spec;

enum { FR_ROPES = 2 };

typedef struct fr_trunk_spec {
    size_t vocab, hidden, layers, context_limit;
    size_t ffn_width; /* of layers without a mixture; files have it even if there is no such layer */
    /* width of the per-layer embeddings of a row's token (per_layer_embeddings.c); 0: there are none */
    size_t ple_width;
    float embedding_scale; /* multiplies an id's row of the table */
    float eps;             /* of all norms */
    float residual_scale;  /* multiplies the outputs of attention and feed-forward; 0: 1 */
    float logit_scale;     /* multiplies the logits, before softcap; 0: 1 */
    bool layer_norm;       /* norms of hidden rows subtract the row's mean first (arXiv:1607.06450) */
    bool norm_bias;        /* these norms add a bias */
    float softcap;         /* of the logits; 0: none */
    fr_rope_spec rope[FR_ROPES];
    size_t ropes;
    bool embeds;          /* it has a table of ids; a drafter with a sorted head doesn't */
    fr_layer_spec *layer; /* [layers] */
    fr_layer_spec mtp;    /* the MTP layers after them, if the family has any (families/mtp_layer.h) */
} fr_trunk_spec;

/* Gives one of its layers by its number; the MTP layers follow the trunk's. */
const fr_layer_spec *fr_spec_layer(const fr_trunk_spec *spec, size_t index);

/* Gives the attention of the first layer that has it, or that of the MTP layer. */
const fr_attention_spec *fr_spec_attention(const fr_trunk_spec *spec);

/* Gives the widest window of its layers, as configured: sliding layers of a drafter without a cache of its own see one
 * position more (families/gemma4_layers.c). 0: no layer slides. */
size_t fr_spec_window(const fr_trunk_spec *spec);

/* Gives the mixture of its layers, or of the MTP layer; all layers with a mixture have the same sizes. NULL: none has
 * one. */
const fr_experts_spec *fr_spec_experts(const fr_trunk_spec *spec);

/* Gives the mixture's sizes, on which the memory of weights depends. */
fr_mixture_size fr_spec_mixture_size(const fr_trunk_spec *spec);

/* Gives the trunk layers that are all alike, MTP layers too. */
fr_status fr_spec_repeat(fr_trunk_spec *spec, const fr_layer_spec *layer);

#endif
