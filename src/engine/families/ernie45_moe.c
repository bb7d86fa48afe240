/* ERNIE 4.5, mixtures: config.json of Ernie4_5_MoeForCausalLM, GGUF "ernie4_5-moe". Source: the published checkpoints
 * and transformers 5.17, model ernie4_5_moe; for GGUF github.com/ggml-org/llama.cpp, conversion/ernie.py and
 * src/models/ernie4-5-moe.cpp. GGUF has no key for the last layer with a mixture, and its key for the width of the
 * shared experts is right only for published sizes. Scores are softmax, and a bias corrects the choice of experts.
 * Heads are rotated in pairs of neighbouring values. transformers and llama.cpp ignore the MTP layer; the source for it
 * is github.com/PaddlePaddle/FastDeploy, ernie4_5_mtp.py and spec_decode/mtp.py. */
#include "base/error.h"
#include "formats/tensors.h"
#include "src/engine/families/mixture.h"
#include "src/engine/families/mtp_layer.h"

#define LEAST_SUM 1e-12F /* weights are divided by their sum, or by this number if their sum is smaller */
#define INTERVAL  ".interleave_moe_layer_step"

static const fr_mixture_words words = {"moe_num_experts", "moe_k", "moe_intermediate_size", "moe_num_shared_experts"};

static const fr_model_spec defaults = {
    .trunk = {.vocab = 103424,
              .hidden = 2560,
              .layers = 28,
              .context_limit = 131072,
              .eps = 1e-5F,
              .rope = {{.theta = 5e5}}},
    .layer = {.attention = {.heads = 20, .kv_heads = 4},
              .ffn = {.width = 12288, .activation = FR_SILU},
              .experts = {.count = 64,
                          .top_k = 6,
                          .width = 1536,
                          .activation = FR_SILU,
                          .scoring = FR_SCORING_SOFTMAX,
                          .score_bias = true,
                          .norm_top_k = true,
                          .norm_min = LEAST_SUM,
                          .routed_scaling = 1.0F}},
    .mixture = {.words = &words, .shared = 2, .shared_by_count = true, .normalizes = true}};

/* Finds out which layers are dense. Between the first and the last layer for which the configuration allows a mixture,
 * every `interval`th layer has one. */
static fr_status read_dense(const fr_source *source, const fr_model_spec *s, bool *is_dense) {
    int64_t first = (int64_t)s->mixture.leading_dense, last = -1, interval;
    if (source->gguf) {
        FR_TRY(fr_gguf_int(source->gguf, INTERVAL, 1, FR_LAYERS_MAX, 1, &interval));
    } else {
        FR_TRY(fr_json_int(source->text, "moe_layer_start_index", 0, FR_LAYERS_MAX, 1, source->where, &first));
        FR_TRY(fr_json_int(source->text, "moe_layer_end_index", -1, FR_LAYERS_MAX, -1, source->where, &last));
        FR_TRY(fr_json_int(source->text, "moe_layer_interval", 1, FR_LAYERS_MAX, 1, source->where, &interval));
    }
    for (int64_t i = 0; i < FR_LAYERS_MAX; i++)
        is_dense[i] = (i + 1) % interval || i < first || (last >= 0 && i > last);
    return FR_OK;
}

/* Makes the layers. The MTP layer is always dense. */
static fr_status shape(const fr_source *source, fr_model_spec *s) {
    bool is_dense[FR_LAYERS_MAX];
    FR_TRY(read_dense(source, s, is_dense));
    s->mixture.leading_dense = 0;
    FR_TRY(fr_mixture_layers(source, s, is_dense));
    fr_mixture_dense_mtp(s);
    return FR_OK;
}

#define MTP        "model.mtp_"
#define MTP_LINEAR "linear_proj.0.weight"

/* Reads the number of MTP layers of a folder. If there are several, the first one makes the drafts of all depths, as in
 * FastDeploy, whose MTP model never reads a second layer. If the input projection of the first one is stored
 * transposed, as in the published 300B model, the MTP layer is left out. */
static fr_status read_mtp(const fr_source *source, fr_model_spec *s) {
    size_t layers;
    if (source->gguf) return FR_OK;
    FR_TRY(fr_json_size(source->text, "num_nextn_predict_layers", 0, 64, 0, source->where, &layers));
    s->mtp_layers = layers > 0;
    const fr_tensor *linear =
        source->weights ? fr_tensors_find(&source->weights->files->tensors, MTP MTP_LINEAR) : NULL;
    if (!layers || !linear) return FR_OK;
    if (linear->dims == 2 && linear->shape[0] == 2 * linear->shape[1]) {
        s->mtp_layers = 0;
        fr_notes_add(&source->weights->notes, "%s: tensor " MTP MTP_LINEAR " is turned, so the MTP layer is left out",
                     source->where);
    } else if (layers > 1) {
        fr_notes_add(&source->weights->notes, "%s: the first of its %zu MTP layers drafts alone", source->where,
                     layers);
    }
    return FR_OK;
}

/* Writes `first`, the first layer with a mixture. Also writes the interval of the mixtures after it, which must
 * continue to the last layer. */
static fr_status put_layers(const fr_trunk_spec *s, size_t first, const char *where, fr_gguf_writer *w) {
    size_t interval = 1;
    while (first + interval < s->layers && !s->layer[first + interval].experts.count) interval++;
    if ((first + 1) % interval) interval = 1;
    for (size_t i = first; i < s->layers; i++)
        if ((s->layer[i].experts.count == 0) != ((i + 1) % interval != 0))
            return fr_fail(FR_INPUT, "%s: GGUF has no key for which of its layers are mixtures", where);
    fr_gguf_put_u32(w, INTERVAL, (uint32_t)interval);
    fr_gguf_put_u32(w, ".leading_dense_block_count", (uint32_t)first);
    return FR_OK;
}

static fr_status put_mixture(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    size_t first;
    (void)mtp_layers;
    FR_TRY(fr_mixture_first(s, where, &first));
    const fr_experts_spec *e = &s->layer[first].experts;
    size_t shared = s->layer[first].ffn.width;
    if (e->norm_min != LEAST_SUM) return fr_fail(FR_INPUT, "%s: GGUF has no key for its moe_norm_min", where);
    fr_mixture_put_counts(s, w);
    FR_TRY(put_layers(s, first, where, w));
    fr_gguf_put_u32(w, ".expert_feed_forward_length", (uint32_t)e->width);
    fr_gguf_put_u32(w, ".expert_shared_count", (uint32_t)(shared / e->width));
    if (shared) fr_gguf_put_u32(w, ".expert_shared_feed_forward_length", (uint32_t)shared);
    return FR_OK;
}

static const fr_config_part mixture = {.read = fr_mixture_read, .put = put_mixture}, mtp = {.read = read_mtp};
static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"),
                                    FR_WITHOUT("use_bias"),
                                    FR_REAL(layer.experts.norm_min, "moe_norm_min", NULL, 0, 1),
                                    {0}};
static const fr_config_row mixtures[] = {FR_PART(mixture), FR_PART(mtp), {0}};

static const fr_tensor_name bias_names[] = {
    FR_NAMED(fr_layer, experts.router_bias, FR_SLOT_ROW, ONE, EXPERTS, "mlp.moe_statics.e_score_correction_bias",
             "exp_probs_b.bias", .needs = FR_IF_CORRECTED),
    {0},
};

/* The names of the MTP layer's tensors, after the prefix MTP. The layer has no final norm, embedding table or head of
 * its own. */
static const fr_tensor_name mtp_names[] = {
    FR_MATRIX(fr_mtp_layer, eh_proj, HIDDEN, TWICE_HIDDEN, MTP_LINEAR, NULL),
    FR_VECTOR(fr_mtp_layer, enorm, HIDDEN, "emb_norm.0.weight", NULL),
    FR_VECTOR(fr_mtp_layer, hnorm, HIDDEN, "hidden_norm.0.weight", NULL),
    {0},
};

const fr_family fr_family_ernie45_moe = {
    .architectures = (const char *const[]){"Ernie4_5_MoeForCausalLM", "ernie4_5-moe", NULL},
    .gguf = "ernie4_5-moe",
    .tokenizer = "llama",
    .pre = "default",
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys, mixtures},
    .rope = fr_rope_whole_heads,
    .shape = shape,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, bias_names, fr_mixture_names},
                                       .mtp = mtp_names,
                                       .mtp_prefixes = (const char *const[]){MTP, NULL},
                                       .mtp_word = "block.",
                                       .mtp_in_folders = true,
                                       .extras = (const char *const[]){MTP "*", NULL}}};
