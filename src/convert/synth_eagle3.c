/* Makes an EAGLE-3 drafter for Llama with random weights (synth.h).
 *
 * In: an order. Its number of layers is that of the target. So two calls with the same --layers make a target and a
 * drafter that fit each other. Out: the drafter's only layer, its own keys and tensors. */
#include <stdlib.h>

#include "base/error.h"
#include "src/convert/synth.h"
#include "src/engine/draft/eagle.h"

enum { DRAFT_VOCAB = 32000 };

static bool complete(const fr_synth_order *order, json_t *config) {
    (void)order;
    return fr_synth_set(config, "num_hidden_layers", 1);
}

/* Adds the ids of the draft vocabulary: for each of its tokens, the target's id of that token. These ids are spread
 * evenly over all ids of the target. */
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
    fr_eagle net = {.trunk.spec = model->spec, .pairs.spec = model->spec.layer};
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

/* The EAGLE-3 drafter. It has no rope scaling, because EAGLE-3 drafters are trained on short texts. */
const fr_synth_family fr_synth_eagle3 = {
    &fr_family_llama,     &fr_synth_llama_tokenizer,  .layer_names = fr_eagle3_layer_names,
    .complete = complete, .add_drafter = add_drafter, .architecture = "eagle3"};
