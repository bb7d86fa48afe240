/* Llama, and an EAGLE-3 drafter for it, of random weights: see synth.h.
 *
 * Sizes: the published config.json of meta-llama/Llama-3.2-1B, Llama-3.1-8B and yuhuili/EAGLE3-LLaMA3.1-Instruct-8B. */
#include <stdlib.h>

#include "base/error.h"
#include "src/convert/synth.h"
#include "src/draft/eagle.h"

enum { VOCAB = 128256, DRAFT_VOCAB = 32000 };

#define REST   "\"rope_theta\": 500000, \"rms_norm_eps\": 1e-5, "
#define LLAMA3 "\"rope_type\": \"llama3\", \"low_freq_factor\": 1, \"high_freq_factor\": 4, " \
               "\"original_max_position_embeddings\": 8192"

static const char *const untied[] = {"output.weight", NULL};

static const fr_synth_shape shapes[] = {
    {"llama3.2-1b", "llama", 16, VOCAB, 1,
     "{\"hidden_size\": 2048, \"num_key_value_heads\": 8, \"intermediate_size\": 8192, " REST
     "\"rope_scaling\": {" LLAMA3 ", \"factor\": 32}}", NULL},
    {"llama3.1-8b", "llama", 32, VOCAB, 1,
     "{\"num_key_value_heads\": 8, \"intermediate_size\": 14336, " REST
     "\"rope_scaling\": {" LLAMA3 ", \"factor\": 8}}", untied},
    {0},
};

/* Its layers are its target's: --layers cuts both alike. It was trained on texts that need no scaling. */
static const fr_synth_shape drafters[] = {
    {"llama3.1-8b-eagle3", "eagle3", 32, VOCAB, 1,
     "{\"num_key_value_heads\": 8, \"intermediate_size\": 14336, " REST "\"hidden_act\": \"silu\"}", NULL},
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

/* ---------------------------------------------------------------------------------------------------------- EAGLE-3 */

static fr_status make_drafter_spec(const fr_synth_order *order, fr_trunk_spec *spec) {
    fr_synth_order one = *order;
    one.layers = 1;
    return fr_synth_spec_of_config(&fr_family_llama, &one, spec);
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
    .shapes = shapes, .family = &fr_family_llama, .tokenizer = &tokenizer};
