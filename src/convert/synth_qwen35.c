/* Qwen3.5 and Qwen3.6 with their MTP layer, dense and of experts, of random weights: see synth.h.
 *
 * Sizes: the published config.json of Qwen/Qwen3.5-0.8B, -4B, -9B, Qwen3.6-27B and Qwen3.6-35B-A3B. */
#include "src/convert/synth.h"
#include "src/families/qwen35.h"

enum { VOCAB = 248320, HEAD = 256, ROTARY = 64, INTERVAL = 4 };

typedef struct sizes {
    size_t hidden, heads, kv_heads, ffn; /* ffn of a mixture: the shared expert's */
    size_t value_heads;                  /* of DeltaNet, which has 16 key heads */
    size_t experts, top, expert_ffn;
} sizes;

static const sizes small = {1024, 8, 2, 3584, 16, 0, 0, 0}, medium = {2560, 16, 4, 9216, 32, 0, 0, 0},
                   large = {4096, 16, 4, 12288, 32, 0, 0, 0}, largest = {5120, 24, 4, 17408, 48, 0, 0, 0},
                   mixed = {2048, 16, 2, 512, 32, 256, 8, 512};

static const char *const tied[] = {FR_SYNTH_MTP_NORM, NULL};
static const char *const untied[] = {"output.weight", FR_SYNTH_MTP_NORM, NULL};
static const char *const mixture[] = {"output.weight", "ffn_gate_exps.weight", "ffn_up_exps.weight",
                                      "ffn_down_exps.weight", FR_SYNTH_MTP_NORM, NULL};

static const fr_synth_shape shapes[] = {
    {"qwen3.5-0.8b", "qwen35", 24, VOCAB, 1, &small, tied},   {"qwen3.5-4b", "qwen35", 32, VOCAB, 1, &medium, tied},
    {"qwen3.5-9b", "qwen35", 32, VOCAB, 1, &large, untied},   {"qwen3.6-27b", "qwen35", 64, VOCAB, 1, &largest, untied},
    {0},
};
static const fr_synth_shape mixtures[] = {{"qwen3.6-35b-a3b", "qwen35moe", 40, VOCAB, 1, &mixed, mixture}, {0}};

static const fr_synth_tokenizer tokenizer = {
    .model = "gpt2",
    .pre = "qwen35",
    .special = {"<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|image_pad|>"},
    .byte_level = true,
    .end = 2,
    .turn_end = 2,
    .padding = 0,
};

/* A state forgets by a quarter or so from one position to the next. */
static const fr_synth_mean means[] = {{"ssm_a", -1.0f}, {"ssm_dt.bias", -1.0f}, {0}};

static fr_status make_spec(const fr_synth_order *order, fr_trunk_spec *spec) {
    const sizes *s = order->shape->sizes;
    fr_qwen35_config config = {
        .uniform = {.vocab = order->vocab,
                    .hidden = s->hidden,
                    .layers = order->layers,
                    .heads = s->heads,
                    .kv_heads = s->kv_heads,
                    .head_dim = HEAD,
                    .ffn = s->ffn,
                    .context_limit = FR_SYNTH_CONTEXT,
                    .eps = 1e-6F,
                    .rope = {.kind = FR_ROPE_DEFAULT,
                             .dims = ROTARY,
                             .neox = true,
                             .mrope_interleaved = true,
                             .sections = {11, 11, 10},
                             .theta = 1e7,
                             .partial = 1.0,
                             .factor = 1.0}},
        .deltanet = {.key_heads = 16,
                     .value_heads = s->value_heads,
                     .key_dim = 128,
                     .value_dim = 128,
                     .conv_kernel = 4,
                     .tiled = true},
        .mixture = {.experts = {.count = s->experts,
                                .top_k = s->top,
                                .width = s->expert_ffn,
                                .activation = FR_SILU,
                                .scoring = FR_SCORING_SOFTMAX,
                                .norm_top_k = true,
                                .routed_scaling = 1.0f,
                                .shared_gated = s->experts > 0},
                    .shared = s->ffn},
    };
    fr_qwen35_set_interval(&config, INTERVAL);
    return fr_qwen35_spec(&config, spec);
}

const fr_synth_family fr_synth_qwen35 = {.shapes = shapes,
                                         .family = &fr_family_qwen35,
                                         .tokenizer = &tokenizer,
                                         .means = means,
                                         .mtp_layers = 1,
                                         .make_spec = make_spec};

const fr_synth_family fr_synth_qwen35_moe = {.shapes = mixtures,
                                             .family = &fr_family_qwen35_moe,
                                             .tokenizer = &tokenizer,
                                             .means = means,
                                             .mtp_layers = 1,
                                             .make_spec = make_spec};
