/* DeepSeek-V3 (R1, V3.1) and models with the same attention:
 *     DeepSeek-V3         DeepseekV3ForCausalLM, GGUF "deepseek2"
 *     GLM-4.7-Flash       the same layers: Glm4MoeLiteForCausalLM, GGUF "deepseek2"
 *     DeepSeek-V3.2       V3's layers with an indexer: DeepseekV32ForCausalLM, GGUF "deepseek32"
 *     GLM-5               V3's layers with an indexer: GlmMoeDsaForCausalLM, GGUF "glm-dsa"
 *     Sarvam 105B         V3's layers, other names of some keys: SarvamMLAForCausalLM, only folders
 *     Youtu-LLM           a dense decoder: YoutuForCausalLM, GGUF "deepseek2" without experts
 *     MiniCPM3            a dense decoder: MiniCPM3ForCausalLM, GGUF "minicpm3"
 * Models with an indexer run up to index_topk positions.
 *
 * Source: the published checkpoints and transformers 5.24, models deepseek_v3, glm4_moe_lite, sarvam_mla, youtu and
 * minicpm3; for GGUF github.com/ggml-org/llama.cpp, conversion/deepseek.py. GGUF files have k_b and v_b in separate
 * tensors, with k_b's matrices transposed. Older GGUF files have kv_b as it is published. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/families/mtp_layer.h"
#include "src/engine/families/latent_config.h"
#include "src/engine/families/mixture.h"
#include "src/engine/families/rope_config.h"

static const fr_tensor_naming names = {
    .layer = {fr_latent_names, fr_mixture_names},
    .mtp = fr_mtp_names,
    .extras = (const char *const[]){"*rotary_emb.inv_freq", NULL}}; /* rotary frequencies, in early checkpoints */

/* ---------------------------------------------------------------------------------------------------- configuration */

#define LATENT_EPS 1e-6F /* eps of the norms of both latents in the published modules, which ignore rms_norm_eps */

static const fr_model_spec v3 = {
    .trunk =
        {.vocab = 129280, .hidden = 7168, .layers = 61, .context_limit = 4096, .eps = 1e-6F, .rope = {{.dims = 64}}},
    .layer = {.mixer = FR_MIXER_MLA,
              .attention = {.heads = 128, .latent = 512},
              .mla = {.q_lora = 1536, .nope = 128, .value_dim = 128, .eps = LATENT_EPS},
              .ffn = {.width = 18432, .activation = FR_SILU},
              .experts = {.count = 256,
                          .top_k = 8,
                          .width = 2048,
                          .activation = FR_SILU,
                          .scoring = FR_SCORING_SIGMOID,
                          .score_bias = true,
                          .groups = 8,
                          .top_groups = 4,
                          .norm_top_k = true,
                          .routed_scaling = 2.5F}},
    .mixture = {.shared = 1, .leading_dense = 3},
    .mtp_layers = 1};

static const fr_model_spec flash = {
    .trunk =
        {.vocab = 154880, .hidden = 2048, .layers = 47, .context_limit = 202752, .eps = 1e-5F, .rope = {{.dims = 64}}},
    .layer = {.mixer = FR_MIXER_MLA,
              .attention = {.heads = 20, .latent = 512},
              .mla = {.q_lora = 768, .nope = 192, .value_dim = 256, .eps = LATENT_EPS},
              .ffn = {.width = 10240, .activation = FR_SILU},
              .experts = {.count = 64,
                          .top_k = 4,
                          .width = 1536,
                          .activation = FR_SILU,
                          .scoring = FR_SCORING_SIGMOID,
                          .score_bias = true,
                          .groups = 1,
                          .top_groups = 1,
                          .norm_top_k = true,
                          .routed_scaling = 1.8F}},
    .mixture = {.shared = 1, .leading_dense = 1},
    .mtp_layers = 1};

static const fr_model_spec v2 = {
    .trunk =
        {.vocab = 102400, .hidden = 4096, .layers = 32, .context_limit = 2048, .eps = 1e-6F, .rope = {{.dims = 64}}},
    .layer = {.mixer = FR_MIXER_MLA,
              .attention = {.heads = 32, .latent = 512},
              .mla = {.q_lora = 1536, .nope = 128, .value_dim = 128, .eps = LATENT_EPS},
              .ffn = {.width = 11008, .activation = FR_SILU},
              .experts = {.count = 64,
                          .top_k = 6,
                          .width = 1407,
                          .activation = FR_SILU,
                          .scoring = FR_SCORING_SOFTMAX,
                          .groups_by_best = true,
                          .routed_scaling = 1.0F}},
    .mixture = {.shared = 2, .shared_by_count = true, .normalizes = true}};

/* The defaults for keys that a GGUF file lacks. */
static const fr_model_spec of_gguf = {.layer = {.mixer = FR_MIXER_MLA,
                                                .mla = {.eps = LATENT_EPS},
                                                .ffn = {.activation = FR_SILU},
                                                .experts = {.activation = FR_SILU,
                                                            .scoring = FR_SCORING_SIGMOID,
                                                            .score_bias = true,
                                                            .routed_scaling = 1.0F}},
                                      .mixture = {.any_scoring = true}};

/* Refuses models in which some layers after the first dense ones have no mixture. */
static fr_status check_router(const fr_source *source, fr_model_spec *s) {
    int64_t every;
    (void)s;
    FR_TRY(fr_json_int(source->text, "moe_layer_freq", 1, 1024, 1, source->where, &every));
    return every == 1
               ? FR_OK
               : fr_fail(FR_UNBUILT, "%s: moe_layer_freq %lld is not built (1 is)", source->where, (long long)every);
}

/* Reads the groups of experts of DeepSeek-V2, if the model chooses experts by groups. */
static fr_status read_greedy(const fr_source *source, fr_model_spec *s) {
    const char *method;
    FR_TRY(fr_json_text(source->text, "topk_method", source->where, &method));
    if (!method || strcmp(method, "greedy") == 0) return FR_OK;
    if (strcmp(method, "group_limited_greedy") == 0)
        return fr_mixture_read_groups(source->text, source->where, &s->layer.experts);
    return fr_fail(FR_UNBUILT, "%s: topk_method %s is not built (greedy and group_limited_greedy are)", source->where,
                   method);
}

static const fr_config_part router = {.read = check_router}, greedy = {.read = read_greedy};
static const fr_config_row own_of_v2[] = {
    FR_ONLY("hidden_act", "silu"), FR_WITHOUT("attention_bias"), FR_WITHOUT("mlp_bias"), FR_PART(greedy), {0}};
static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"),
                                    FR_WITHOUT("attention_bias"),
                                    FR_ONLY("topk_method", "noaux_tc"),
                                    FR_PART(router),
                                    FR_NONE(".attention.temperature_scale"), /* a key of Mistral Large 3, which scales
                                                                              * queries by their position */
                                    {0}};
static const fr_config_row mtp[] = {FR_MTP("num_nextn_predict_layers"), {0}};

/* Finds out how a GGUF file's router computes scores. V2 uses softmax without a correction, but older files have no key
 * that says so. */
static void find_scoring(const fr_source *source, fr_model_spec *s) {
    fr_experts_spec *e = &s->layer.experts;
    e->score_bias = fr_source_layer_has(source, s, "exp_probs_b.bias");
    if (!e->score_bias && !fr_gguf_find(source->gguf, ".expert_gating_func")) e->scoring = FR_SCORING_SOFTMAX;
    e->groups_by_best = e->scoring == FR_SCORING_SOFTMAX;
}

static fr_status shape(const fr_source *source, fr_model_spec *s) {
    if (source->gguf) find_scoring(source, s);
    return fr_mixture_told_layers(source, s);
}

const fr_family fr_family_deepseek = {.architectures =
                                          (const char *const[]){"DeepseekV3ForCausalLM", "deepseek2", NULL},
                                      .gguf = "deepseek2",
                                      .gguf_with = ".expert_count",
                                      .tokenizer = "gpt2",
                                      .pre = "deepseek-v3",
                                      .counts_ids = true,
                                      .defaults = &v3,
                                      .gguf_defaults = &of_gguf,
                                      .rows = {own, fr_size_keys, fr_latent_keys, fr_mixture_rows, mtp},
                                      .rope = fr_rope_of_latents,
                                      .scaling_in_rows = true,
                                      .shape = shape,
                                      .names = &names};

/* DeepSeek-V2. For this model transformers ignores norm_topk_prob, and all layers after the first dense ones are
 * mixtures. */
const fr_family fr_family_deepseek_v2 = {.architectures = (const char *const[]){"DeepseekV2ForCausalLM", NULL},
                                         .gguf = "deepseek2",
                                         .tokenizer = "gpt2",
                                         .pre = "deepseek-llm",
                                         .counts_ids = true,
                                         .defaults = &v2,
                                         .gguf_defaults = &of_gguf,
                                         .rows = {own_of_v2, fr_size_keys, fr_latent_keys, fr_mixture_rows},
                                         .rope = fr_rope_of_latents,
                                         .scaling_in_rows = true,
                                         .shape = shape,
                                         .names = &names};

const fr_family fr_family_glm_flash = {.architectures = (const char *const[]){"Glm4MoeLiteForCausalLM", NULL},
                                       .gguf = "deepseek2",
                                       .tokenizer = "gpt2",
                                       .pre = "glm4",
                                       .counts_ids = true,
                                       .defaults = &flash,
                                       .gguf_defaults = &of_gguf,
                                       .rows = {own, fr_size_keys, fr_latent_keys, fr_mixture_rows, mtp},
                                       .rope = fr_rope_of_latents,
                                       .scaling_in_rows = true,
                                       .shape = shape,
                                       .names = &names};

/* Sarvam 105B. The published modeling file always normalizes the weights of a row's experts. So if norm_topk_prob is
 * false, the model is refused. */
static const fr_mixture_words words_of_sarvam = {.shared = "num_shared_experts"};

static const fr_model_spec sarvam = {
    .trunk =
        {.vocab = 262144, .hidden = 4096, .layers = 32, .context_limit = 4096, .eps = 1e-6F, .rope = {{.dims = 64}}},
    .layer = {.mixer = FR_MIXER_MLA,
              .attention = {.heads = 64, .latent = 512},
              .mla = {.nope = 128, .value_dim = 128, .eps = LATENT_EPS},
              .ffn = {.width = 16384, .activation = FR_SILU},
              .experts = {.count = 128,
                          .top_k = 8,
                          .width = 2048,
                          .activation = FR_SILU,
                          .scoring = FR_SCORING_SIGMOID,
                          .score_bias = true,
                          .groups = 1,
                          .top_groups = 1,
                          .norm_top_k = true,
                          .routed_scaling = 2.5F}},
    .mixture = {.words = &words_of_sarvam, .shared = 1, .leading_dense = 1}};

static const fr_config_row own_of_sarvam[] = {
    FR_ONLY("score_function", "sigmoid"), FR_WITH("norm_topk_prob"), FR_WITHOUT("use_bias"), {0}};

const fr_family fr_family_sarvam_mla = {.architectures = (const char *const[]){"SarvamMLAForCausalLM", NULL},
                                        .defaults = &sarvam,
                                        .rows = {own, own_of_sarvam, fr_size_keys, fr_latent_keys, fr_mixture_rows},
                                        .rope = fr_rope_of_latents,
                                        .scaling_in_rows = true,
                                        .shape = shape,
                                        .names = &names};

/* -------------------------------------------------------------------------------------------------------- indexers */

/* In DeepSeek-V3.2 and GLM-5 an indexer selects index_topk positions for each row, and attention reads only these
 * positions. If a context has at most index_topk positions, all of them are selected. Attention is then the same as
 * V3's, and the indexer's tensors aren't read. Longer contexts are refused. GGUF is not written, because readers of
 * GGUF need the indexer. */
static const fr_tensor_naming indexed_names = {.layer = {fr_latent_names, fr_mixture_names},
                                               .mtp = fr_mtp_names,
                                               .layer_extras =
                                                   (const char *const[]){"self_attn.indexer.*", "indexer.*", NULL}};

static const fr_model_spec v32 = {.trunk = {.vocab = 129280,
                                            .hidden = 7168,
                                            .layers = 61,
                                            .context_limit = 163840,
                                            .selected = 2048,
                                            .eps = 1e-6F,
                                            .rope = {{.dims = 64}}},
                                  .layer = {.mixer = FR_MIXER_MLA,
                                            .attention = {.heads = 128, .latent = 512},
                                            .mla = {.q_lora = 1536, .nope = 128, .value_dim = 128, .eps = LATENT_EPS},
                                            .ffn = {.width = 18432, .activation = FR_SILU},
                                            .experts = {.count = 256,
                                                        .top_k = 8,
                                                        .width = 2048,
                                                        .activation = FR_SILU,
                                                        .scoring = FR_SCORING_SIGMOID,
                                                        .score_bias = true,
                                                        .groups = 8,
                                                        .top_groups = 4,
                                                        .norm_top_k = true,
                                                        .routed_scaling = 2.5F}},
                                  .mixture = {.shared = 1, .leading_dense = 3},
                                  .mtp_layers = 1};

static const fr_model_spec glm5 = {.trunk = {.vocab = 154880,
                                             .hidden = 6144,
                                             .layers = 78,
                                             .context_limit = 202752,
                                             .selected = 2048,
                                             .eps = 1e-5F,
                                             .rope = {{.dims = 64}}},
                                   .layer = {.mixer = FR_MIXER_MLA,
                                             .attention = {.heads = 64, .latent = 512},
                                             .mla = {.q_lora = 2048, .nope = 192, .value_dim = 256, .eps = LATENT_EPS},
                                             .ffn = {.width = 12288, .activation = FR_SILU},
                                             .experts = {.count = 256,
                                                         .top_k = 8,
                                                         .width = 2048,
                                                         .activation = FR_SILU,
                                                         .scoring = FR_SCORING_SIGMOID,
                                                         .score_bias = true,
                                                         .groups = 1,
                                                         .top_groups = 1,
                                                         .norm_top_k = true,
                                                         .routed_scaling = 2.5F}},
                                   .mixture = {.shared = 1, .leading_dense = 3},
                                   .mtp_layers = 1};

static const fr_config_row indexer[] = {
    FR_WITHOUT("mlp_bias"),
    FR_WITH("rope_interleave"),
    FR_SIZE(trunk.selected, "index_topk", ".attention.indexer.top_k", 1, 1 << 24, .required = true),
    {0}};

/* Lowers context_limit to index_topk. This is done after rotary positions were read, because these depend on the limit
 * in the file. */
static fr_status indexed_shape(const fr_source *source, fr_model_spec *s) {
    if (s->trunk.selected < s->trunk.context_limit) s->trunk.context_limit = s->trunk.selected;
    return shape(source, s);
}

const fr_family fr_family_deepseek_v32 = {.architectures =
                                              (const char *const[]){"DeepseekV32ForCausalLM", "deepseek32", NULL},
                                          .defaults = &v32,
                                          .gguf_defaults = &of_gguf,
                                          .rows = {own, fr_size_keys, fr_latent_keys, fr_mixture_rows, mtp, indexer},
                                          .rope = fr_rope_of_latents,
                                          .scaling_in_rows = true,
                                          .shape = indexed_shape,
                                          .names = &indexed_names};

const fr_family fr_family_glm_dsa = {.architectures = (const char *const[]){"GlmMoeDsaForCausalLM", "glm-dsa", NULL},
                                     .defaults = &glm5,
                                     .gguf_defaults = &of_gguf,
                                     .rows = {own, fr_size_keys, fr_latent_keys, fr_mixture_rows, mtp, indexer},
                                     .rope = fr_rope_of_latents,
                                     .scaling_in_rows = true,
                                     .shape = indexed_shape,
                                     .names = &indexed_names};

/* ------------------------------------------------------------------------------------------------------------ dense */

static const fr_tensor_naming dense_names = {.layer = {fr_latent_names, fr_ffn_names}};

static const fr_model_spec youtu = {
    .trunk =
        {.vocab = 128256, .hidden = 2048, .layers = 32, .context_limit = 131072, .eps = 1e-6F, .rope = {{.dims = 64}}},
    .layer = {.mixer = FR_MIXER_MLA,
              .attention = {.heads = 16, .latent = 512},
              .mla = {.q_lora = 1536, .nope = 128, .value_dim = 128, .eps = LATENT_EPS},
              .ffn = {.width = 6144, .activation = FR_SILU}}};

static const fr_model_spec dense_of_gguf = {
    .layer = {.mixer = FR_MIXER_MLA, .mla = {.eps = LATENT_EPS}, .ffn = {.activation = FR_SILU}}};

/* Writes keys which say that no layer has a mixture. Readers of deepseek2 require these keys. */
static fr_status put_no_mixture(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    (void)where;
    fr_gguf_put_u32(w, ".leading_dense_block_count", (uint32_t)s->layers);
    fr_gguf_put_u32(w, ".expert_feed_forward_length", (uint32_t)s->ffn_width);
    fr_gguf_put_u32(w, ".expert_shared_count", 0);
    return FR_OK;
}

static const fr_config_part no_mixture = {.put = put_no_mixture};
static const fr_config_row own_of_youtu[] = {
    FR_ONLY("hidden_act", "silu"), FR_WITHOUT("attention_bias"), FR_PART(no_mixture), {0}};

const fr_family fr_family_youtu = {.architectures = (const char *const[]){"YoutuForCausalLM", "deepseek2", NULL},
                                   .gguf = "deepseek2",
                                   .tokenizer = "gpt2",
                                   .pre = "youtu",
                                   .counts_ids = true,
                                   .defaults = &youtu,
                                   .gguf_defaults = &dense_of_gguf,
                                   .rows = {own_of_youtu, fr_size_keys, fr_latent_keys},
                                   .rope = fr_rope_of_latents,
                                   .scaling_in_rows = true,
                                   .names = &dense_names};

static const fr_model_spec minicpm3 = {.trunk = {.vocab = 73448,
                                                 .hidden = 2560,
                                                 .layers = 62,
                                                 .context_limit = 32768,
                                                 .eps = 1e-5F,
                                                 .embedding_scale = 12,
                                                 .rope = {{.dims = 32}}},
                                       .layer = {.mixer = FR_MIXER_MLA,
                                                 .attention = {.heads = 40, .latent = 256},
                                                 .mla = {.q_lora = 768, .nope = 64, .eps = LATENT_EPS},
                                                 .ffn = {.width = 6400, .activation = FR_SILU}}};

#define DEPTH 1.4 /* scale_depth and dim_model_base (BASE) of the published model, which readers of GGUF assume */
#define BASE  256.0

/* Reads values that are computed from other sizes: the width of a value, the factor of the outputs of attention and
 * feed-forward, and the factor of the logits. */
static fr_status read_scales(const fr_source *source, fr_model_spec *s) {
    double layers = (double)s->trunk.layers, hidden = (double)s->trunk.hidden, depth = DEPTH, base = BASE;
    const json_t *told_depth = json_object_get(source->text, "scale_depth");
    const json_t *told_base = json_object_get(source->text, "dim_model_base");
    if (!source->gguf) {
        double of_depth = told_depth ? sqrt(layers) : DEPTH, of_base = told_base ? hidden : BASE;
        FR_TRY(fr_json_real(source->text, "scale_depth", 1e-6, 1e6, of_depth, source->where, &depth));
        FR_TRY(fr_json_real(source->text, "dim_model_base", 1e-6, 1e9, of_base, source->where, &base));
    }
    s->trunk.residual_scale = (float)(depth / sqrt(layers));
    s->trunk.logit_scale = (float)(base / hidden);
    if (s->layer.mla.value_dim > 0) return FR_OK;
    if (s->trunk.hidden % s->layer.attention.heads)
        return fr_fail(FR_INPUT, "%s: without v_head_dim, hidden_size %zu must be a multiple of %zu heads",
                       source->where, s->trunk.hidden, s->layer.attention.heads);
    s->layer.mla.value_dim = s->trunk.hidden / s->layer.attention.heads;
    return FR_OK;
}

static fr_status rope_of_minicpm3(const fr_source *source, fr_model_spec *s) {
    fr_rope_spec *rope = &s->trunk.rope[0];
    if (source->gguf && fr_source_has(source, "rope_factors_long.weight")) {
        FR_TRY(fr_rope_longrope_from_gguf(source, (double)s->trunk.context_limit, rope));
        rope->sections[0] = rope->dims / 2;
        s->layer.attention.scale = fr_rsqrt(s->layer.mla.nope + rope->dims);
    } else {
        FR_TRY(fr_rope_of_latents(source, s));
    }
    rope->neox = true;
    return FR_OK;
}

/* Refuses multipliers that differ from those that readers of GGUF assume. */
static fr_status check_scales(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    (void)mtp_layers;
    (void)w;
    if (s->embedding_scale == minicpm3.trunk.embedding_scale &&
        s->residual_scale == (float)(DEPTH / sqrt((double)s->layers)) &&
        s->logit_scale == (float)(BASE / (double)s->hidden))
        return FR_OK;
    return fr_fail(FR_INPUT, "%s: GGUF has no keys for its scale_emb, scale_depth and dim_model_base", where);
}

static const fr_config_part scales = {.read = read_scales, .put = check_scales};
static const fr_config_row own_of_minicpm3[] = {FR_ONLY("hidden_act", "silu"),
                                                FR_WITHOUT("attention_bias"),
                                                FR_FLAG(layer.ffn.biased, "mlp_bias", NULL),
                                                FR_REAL(trunk.embedding_scale, "scale_emb", NULL, 1e-6, 1e6),
                                                {0}};
/* The usual rows of sizes, but without a row for kv_heads. GGUF's key has the number of heads there, although the cache
 * has only one head of keys and values. */
static const fr_config_row sizes_of_minicpm3[] = {
    FR_SIZE(trunk.vocab, "vocab_size", NULL, 1, 1 << 24),
    FR_SIZE(trunk.layers, "num_hidden_layers", ".block_count", 1, FR_LAYERS_MAX, .required = true),
    FR_SIZE(trunk.context_limit, "max_position_embeddings", ".context_length", 1, 1 << 24, .required = true),
    FR_SIZE(trunk.hidden, "hidden_size", ".embedding_length", 1, 1 << 17, .required = true),
    FR_SIZE(layer.ffn.width, "intermediate_size", ".feed_forward_length", 1, 1 << 22, .required = true),
    FR_SIZE(layer.attention.heads, "num_attention_heads", ".attention.head_count", 1, 4096, .required = true),
    {0}};
static const fr_config_row last_of_minicpm3[] = {FR_PART(scales), {0}};

static const fr_tensor_naming minicpm3_names = {.layer = {fr_whole_latent_names, fr_ffn_names}};

static const fr_model_spec minicpm3_gguf = {
    .trunk = {.embedding_scale = 12},
    .layer = {.mixer = FR_MIXER_MLA, .mla = {.eps = LATENT_EPS}, .ffn = {.activation = FR_SILU}}};

const fr_family fr_family_minicpm3 = {
    .architectures = (const char *const[]){"MiniCPM3ForCausalLM", "minicpm3", NULL},
    .gguf = "minicpm3",
    .tokenizer = "llama",
    .counts_ids = true,
    .defaults = &minicpm3,
    .gguf_defaults = &minicpm3_gguf,
    .rows = {own_of_minicpm3, sizes_of_minicpm3, fr_whole_latent_keys, last_of_minicpm3},
    .rope = rope_of_minicpm3,
    .scaling_in_rows = true,
    .names = &minicpm3_names};
