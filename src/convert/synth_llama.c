/* Llama, and an EAGLE-3 drafter for it, of random weights: see synth.h.
 *
 * Sizes: the published config.json of meta-llama/Llama-3.2-1B, Llama-3.1-8B and yuhuili/EAGLE3-LLaMA3.1-Instruct-8B. */
#include <stdlib.h>

#include "base/error.h"
#include "src/convert/synth.h"
#include "src/draft/eagle.h"
#include "src/families/uniform.h"

enum { VOCAB = 128256, DRAFT_VOCAB = 32000 };

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

/* Its layers are its target's: --layers cuts both alike. */
static const fr_synth_shape drafters[] = {{"llama3.1-8b-eagle3", "eagle3", 32, VOCAB, 1, &medium, NULL}, {0}};

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

static fr_status make_spec_of(const fr_synth_order *order, size_t layers, fr_rope_kind rope, fr_trunk_spec *spec) {
    const sizes *s = order->shape->sizes;
    const fr_uniform_config config = {
        .vocab = order->vocab,
        .hidden = s->hidden,
        .layers = layers,
        .heads = s->heads,
        .kv_heads = s->kv_heads,
        .head_dim = s->head_dim,
        .ffn = s->ffn,
        .context_limit = FR_SYNTH_CONTEXT,
        .rope = {.kind = rope,
                 .dims = s->head_dim,
                 .theta = 500000.0,
                 .partial = 1.0,
                 .factor = s->slower,
                 .low_factor = 1.0,
                 .high_factor = 4.0,
                 .original_context = 8192.0},
        .eps = 1e-5F,
    };
    return fr_uniform_spec(&config, spec);
}

static fr_status make_spec(const fr_synth_order *order, fr_trunk_spec *spec) {
    return make_spec_of(order, order->layers, FR_ROPE_LLAMA3, spec);
}

/* ---------------------------------------------------------------------------------------------------------- EAGLE-3 */

/* It was trained on texts that need no scaling. */
static fr_status make_drafter_spec(const fr_synth_order *order, fr_trunk_spec *spec) {
    return make_spec_of(order, 1, FR_ROPE_DEFAULT, spec);
}

/* The target's ids of a draft vocabulary that is spread over them evenly. */
static fr_status add_ids(fr_synth_model *model, size_t count) {
    int64_t *ids = model->ids = calloc(count, sizeof *ids);
    if (!ids) return fr_fail_memory("draft vocabulary", count * sizeof *ids);
    for (size_t i = 0; i < count; i++) ids[i] = (int64_t)(i * model->spec.vocab / count);
    return fr_outputs_add_values(&model->outputs, "d2t", FR_I64, count, ids);
}

static fr_status add_drafter(const fr_synth_order *order, fr_synth_model *model, fr_gguf_writer *writer) {
    size_t hidden = model->spec.hidden, count = order->vocab < DRAFT_VOCAB ? order->vocab : DRAFT_VOCAB;
    if (order->layers < 3)
        return fr_fail(FR_USAGE, "%zu layers: %s sees three of them", order->layers, order->shape->name);
    const fr_model target = {.trunk.spec.hidden = hidden};
    fr_eagle net = {.trunk.spec = model->spec};
    const fr_drafter drafter = {
        .target = &target, .net = &net, .aux_layers = {3, {2, order->layers / 2, order->layers - 3}}};
    FR_TRY(fr_eagle3_put_keys(&drafter, writer));
    FR_TRY(fr_synth_add_matrix(model, "fc.weight", hidden, 3 * hidden));
    FR_TRY(fr_synth_add_matrix(model, "output.weight", count, hidden));
    FR_TRY(fr_outputs_add(&model->outputs, "output_norm.weight", NULL));
    fr_outputs_last(&model->outputs)->shape[0] = hidden;
    FR_TRY(add_ids(model, count));
    fr_outputs_sort(&model->outputs);
    return FR_OK;
}

const fr_synth_family fr_synth_llama_eagle3 = {.shapes = drafters,
                                               .family = &fr_family_llama,
                                               .tokenizer = &tokenizer,
                                               .layer_names = fr_eagle3_layer_names,
                                               .make_spec = make_drafter_spec,
                                               .add_drafter = add_drafter};

const fr_synth_family fr_synth_llama = {
    .shapes = shapes, .family = &fr_family_llama, .tokenizer = &tokenizer, .make_spec = make_spec};
