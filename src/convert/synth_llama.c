/* Llama, of random weights: see synth.h.
 *
 * Sizes: the published config.json of meta-llama/Llama-3.2-1B and Llama-3.1-8B. */
#include "src/convert/synth.h"
#include "src/families/llama.h"

enum { VOCAB = 128256 };

typedef struct sizes {
    size_t hidden, heads, kv_heads, head_dim, ffn;
    double slower; /* rotary positions, beyond what they were trained on first */
} sizes;

static const sizes small = {2048, 32, 8, 64, 8192, 32}, medium = {4096, 32, 8, 128, 14336, 8};

static const char *const untied[] = {"output.weight", NULL};

static const fr_synth_shape shapes[] = {
    {"llama3.2-1b", "llama", 16, VOCAB, 1, &small, NULL},
    {"llama3.1-8b", "llama", 32, VOCAB, 1, &medium, untied},
    {0},
};

static const fr_synth_tokenizer tokenizer = {
    .model = "gpt2",
    .pre = "llama-bpe",
    .special = {"<|begin_of_text|>", "<|end_of_text|>", "<|eom_id|>", "<|eot_id|>"},
    .byte_level = true,
    .begins = true,
    .end = 1,
    .turn_end = 3,
    .unknown = 1,
    .padding = 1,
};

static fr_status make_spec(const fr_synth_order *order, fr_trunk_spec *spec) {
    const sizes *s = order->shape->sizes;
    const fr_uniform_config config = {
        .vocab = order->vocab,
        .hidden = s->hidden,
        .layers = order->layers,
        .heads = s->heads,
        .kv_heads = s->kv_heads,
        .head_dim = s->head_dim,
        .ffn = s->ffn,
        .context_limit = FR_SYNTH_CONTEXT,
        .rope = {.kind = FR_ROPE_LLAMA3,
                 .dims = s->head_dim,
                 .theta = 500000.0,
                 .partial = 1.0,
                 .factor = s->slower,
                 .low_factor = 1.0,
                 .high_factor = 4.0,
                 .trained = 8192.0},
        .eps = 1e-5F,
    };
    return fr_uniform_spec(&config, spec);
}

const fr_synth_family fr_synth_llama = {
    .shapes = shapes, .family = &fr_family_llama, .tokenizer = &tokenizer, .make_spec = make_spec};
