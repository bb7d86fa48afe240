/* What a decoder is, as data: its layers, its rotary positions, its widths.
 *
 * In: a family's configuration, which fills this. Out: what the parts (attention.c, mla.c, ffn.c, experts.c,
 * per_layer_embeddings.c) and the loop over layers (trunk.c) read; no part asks which family it runs. Sizes count
 * values. */
#ifndef FR_SRC_ENGINE_LAYERS_LAYER_SPEC_H
#define FR_SRC_ENGINE_LAYERS_LAYER_SPEC_H

#include "kernels/rope_table.h"
#include "src/engine/layers/forward.h"
#include "src/engine/weights/residence.h"

/* LongRoPE's two sets of divisors, by how long a text is, and for how many angles at most. */
typedef enum fr_rope_reach { FR_ROPE_NEAR, FR_ROPE_FAR, FR_ROPE_REACHES } fr_rope_reach;
enum { FR_LONGROPE_ANGLES = 128 };

/* Su et al. 2021, arXiv:2104.09864. */
typedef struct fr_rope_spec {
    fr_rope_kind kind;
    size_t dims; /* of a head's values, those that are rotated: the first */
    bool neox;   /* value i is rotated with i + dims / 2; else neighbours, 2i and 2i + 1 */
    size_t sections[FR_AXES]; /* how many of the dims / 2 angles follow each axis, in this order; they are all */
    bool mrope_interleaved;   /* instead they follow the axes in turn, the first where another has its number */
    double theta, partial, factor; /* as fr_rope_frequencies takes them */
    double low_factor, high_factor, original_context; /* as fr_rope_scale takes them, with FR_ROPE_LLAMA3 */
    double beta_fast, beta_slow; /* as fr_rope_yarn takes them and `original_context`, with FR_ROPE_YARN */
    bool untruncated;            /* it doesn't truncate */
    float attention_factor;      /* of cosine and sine; 0: 1 */
    double mscale_all_dim; /* scores grow by the square of its magnitude (fr_rope_yarn_magnitude) */
    const float *divisors; /* [dims / 2] of the frequencies; NULL: none. Lives as long as the weights */
    /* [dims / 2] with FR_ROPE_LONGROPE, as fr_rope_divided takes them: of texts of up to `original_context` ids, and of
     * longer ones. */
    float longrope[FR_ROPE_REACHES][FR_LONGROPE_ANGLES];
    double query_beta; /* queries grow by 1 + this * log(1 + floor(position / original_context)); 0: not so */
} fr_rope_spec;

/* Vaswani et al. 2017, arXiv:1706.03762; key/value heads shared: Ainslie et al. 2023, arXiv:2305.13245. */
typedef struct fr_attention_spec {
    size_t heads, kv_heads, head_dim;
    size_t window; /* positions that a row sees at most, its own included; 0: all */
    size_t rope;   /* of the trunk's rotary forms */
    size_t kv;     /* the KV layer that it reads */
    bool owns_kv;  /* and writes; else it borrows that of an earlier layer, or of the target */
    size_t latent; /* a value is the first so many values of its key, the only one that is kept; 0: not so */
    bool k_eq_v;  /* values come from the key projection, before its norm */
    bool v_norm;
    bool qk_norm; /* for families of which not every model has it */
    bool norm_after_rope; /* the norms of heads come behind the rotation, else before it */
    bool no_rope;     /* its heads aren't rotated: Kazemnejad et al. 2023, arXiv:2305.19466 */
    bool qk_norm_wide; /* over the values of all heads at once, before they are heads; else of each head */
    bool qkv_bias, o_bias; /* its projections add biases: those of the input, that of the output */
    bool output_gate; /* q's projection gives a head's query, then a gate: sigmoid(gate) multiplies what it has seen */
    bool sinks;  /* each head has one: Xiao et al. 2023, arXiv:2309.17453 */
    float scale, softcap; /* of the scores; softcap 0: none */
} fr_attention_spec;

/* Multi-head latent attention: DeepSeek-V2, arXiv:2405.04434 (mla.c). What it caches and how it attends is the
 * attention spec's: one key of a latent and a rotary part for all heads, `latent` values of it. */
typedef struct fr_mla_spec {
    size_t q_lora;    /* queries are made of a latent of their own; 0: of the row */
    size_t nope;      /* of a query head's values those that meet the latent; the rotary part's stand behind them */
    size_t value_dim; /* that a head makes of the latents it has seen */
    float eps;        /* of both latents' norms */
} fr_mla_spec;

/* Gated DeltaNet: Yang, Kautz and Hatamizadeh 2024, arXiv:2412.06464 (deltanet.c). */
typedef struct fr_deltanet_spec {
    size_t key_heads, value_heads; /* the latter a multiple of the former */
    size_t key_dim, value_dim;     /* of a head */
    size_t conv_kernel;            /* of the short convolution: positions that it reads, the row's own included */
    bool fused;    /* queries, keys, values and z are one projection, key head by key head; else two */
    bool tiled;    /* value head j reads key head j % key_heads, as GGUF has them; else j / (value_heads / key_heads) */
    size_t state;  /* which of the trunk's recurrent layers it is */
} fr_deltanet_spec;

/* A short convolution between two gates, of LFM2 (short_conv.c): out(c * conv(b * x)), of three projections. */
typedef struct fr_short_conv_spec {
    size_t conv_kernel; /* positions that it reads, the row's own included */
    size_t state;       /* which of the trunk's recurrent layers it is */
} fr_short_conv_spec;

typedef enum fr_activation { FR_GELU, FR_SILU, FR_CLAMPED_SWIGLU } fr_activation; /* the last: kernels.h */

/* down(activation(gate(x)) * up(x)): Shazeer 2020, arXiv:2002.05202. */
typedef struct fr_ffn_spec {
    size_t width;
    fr_activation activation;
    bool biased;
} fr_ffn_spec;

/* What a router's products say of the experts: exp(x) to be divided by a sum of such, or 1 / (1 + exp(-x)). */
typedef enum fr_scoring { FR_SCORING_SOFTMAX, FR_SCORING_SIGMOID } fr_scoring;

/* A mixture of experts (experts.c): Shazeer et al. 2017, arXiv:1701.06538; count 0: none. The feed-forward of a layer
 * that has one stands beside it: experts that all rows share, as one of their joint width, or nothing (width 0). */
typedef struct fr_experts_spec {
    size_t count, top_k, width;
    fr_activation activation;
    fr_scoring scoring;
    bool score_bias;           /* a bias is added to the scores that choose, and to no weight */
    size_t groups, top_groups; /* of neighbours: a row chooses in its best ones; 0: no groups */
    bool groups_by_best;       /* a group is as good as its best expert; else as its two best together */
    bool norm_top_k;           /* a row's weights are divided by their sum */
    float norm_min;            /* which is no smaller than this; 0: it has 1e-20 added, where sums may be that small */
    float routed_scaling;      /* and multiplied by this */
    bool biased;       /* the router's products have biases, and those of the experts' three matrices */
    float limit;       /* of FR_CLAMPED_SWIGLU */
    bool shared_gated; /* what the feed-forward gives is multiplied by sigmoid(shared_gate . x) */
    bool parallel;     /* router, experts and feed-forward have norms of their own, as Gemma 4's */
} fr_experts_spec;

/* Where a layer has norms: before each part, and perhaps behind it too; behind each part alone, which then reads the
 * stream as it is; before both parts, which read one norm and add to the stream together. */
typedef enum fr_norm_placement { FR_NORMS_BEFORE, FR_NORMS_BEHIND, FR_NORM_SHARED } fr_norm_placement;

/* What mixes positions. */
typedef enum fr_mixer { FR_MIXER_ATTENTION, FR_MIXER_DELTANET, FR_MIXER_SHORT_CONV, FR_MIXER_MLA } fr_mixer;

/* Whether it carries inputs or a state on from position to position, and has no keys and values. */
static inline bool fr_mixer_recurs(fr_mixer mixer) {
    return mixer == FR_MIXER_DELTANET || mixer == FR_MIXER_SHORT_CONV;
}

typedef struct fr_layer_spec {
    fr_mixer mixer;
    fr_norm_placement norms;
    fr_attention_spec attention; /* MLA's too; or */
    fr_deltanet_spec deltanet;
    fr_short_conv_spec short_conv;
    fr_mla_spec mla;
    fr_ffn_spec ffn;
    fr_experts_spec experts;
} fr_layer_spec;

enum { FR_ROPES = 2 };

typedef struct fr_trunk_spec {
    size_t vocab, hidden, layers, context_limit;
    size_t ffn_width;      /* of layers without a mixture, which files tell even where all have one */
    size_t ple_width;      /* of what each layer is told of a row's token (per_layer_embeddings.c); 0: nothing */
    float embedding_scale; /* of an id's row of the table */
    float eps;             /* of all norms */
    float residual_scale;  /* of what attention and feed-forward add to the stream; 0: 1 */
    float logit_scale;     /* of the logits, before softcap; 0: 1 */
    bool layer_norm;       /* those of hidden rows subtract a row's mean first (arXiv:1607.06450) */
    bool norm_bias;        /* and add a bias */
    float softcap;         /* of the logits; 0: none */
    fr_rope_spec rope[FR_ROPES];
    size_t ropes;
    bool embeds;          /* has a table of ids; a drafter with a sorted head doesn't */
    fr_layer_spec *layer; /* [layers] */
    fr_layer_spec mtp;    /* of an MTP layer behind them, where the family has any (families/mtp_layer.h) */
} fr_trunk_spec;

/* One of its layers by its number; behind them stand MTP layers. */
const fr_layer_spec *fr_spec_layer(const fr_trunk_spec *spec, size_t index);

/* The attention of the first layer that has it; of the MTP layer where none has. */
const fr_attention_spec *fr_spec_attention(const fr_trunk_spec *spec);

/* The widest window of its layers, as it was configured: what slides in a drafter without a cache of its own sees one
 * position more (families/gemma4_layers.c). 0: nothing slides. */
size_t fr_spec_window(const fr_trunk_spec *spec);

/* The mixture of its layers, or of the MTP layer alone: of the same sizes wherever there is one. NULL: none has. */
const fr_experts_spec *fr_spec_experts(const fr_trunk_spec *spec);

/* Its sizes, as what weights take of memory depends on them. */
fr_mixture_size fr_spec_mixture_size(const fr_trunk_spec *spec);

/* Gives it layers that are all alike, MTP layers too. */
fr_status fr_spec_repeat(fr_trunk_spec *spec, const fr_layer_spec *layer);

#endif
