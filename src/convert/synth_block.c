/* Makes block drafters of random weights for Qwen3.5's shapes (synth.h).
 *
 * In: an order. Its number of layers is that of the target, and decides which of the target's layers the drafter reads.
 * Out: a drafter with as many layers, rows and ranks as the published drafters, with its own keys and tensors. */
#include <stdio.h>

#include "base/error.h"
#include "src/convert/synth.h"
#include "src/engine/draft/block.h"

enum { LAYERS = 5, BLOCK = 16, DSPARK_BLOCK = 7, TAPS = 2, GROUP = 16, RANK = 256, TOP_K = 16 };

static bool complete(const fr_synth_order *order, json_t *config) {
    (void)order;
    return fr_synth_set(config, "num_hidden_layers", LAYERS);
}

static fr_status add_vector(fr_synth_model *model, const char *name, size_t count) {
    FR_TRY(fr_outputs_add(&model->outputs, name, NULL));
    fr_outputs_last(&model->outputs)->shape[0] = count;
    return FR_OK;
}

/* Adds the two convolutions of a layer. */
static fr_status add_convolutions(fr_synth_model *model, size_t layer) {
    static const char *const parts[] = {"attn", "ffn"};
    size_t hidden = model->spec.hidden;
    char name[64];
    for (size_t part = 0; part < 2; part++) {
        snprintf(name, sizeof name, "blk.%zu.%s_conv_base", layer, parts[part]);
        FR_TRY(fr_outputs_add(&model->outputs, name, NULL));
        fr_output *base = fr_outputs_last(&model->outputs);
        base->dims = 3;
        base->shape[0] = 2;
        base->shape[1] = TAPS;
        base->shape[2] = hidden;
        snprintf(name, sizeof name, "blk.%zu.%s_conv_proj.weight", layer, parts[part]);
        FR_TRY(fr_synth_add_matrix(model, name, 2 * TAPS * (hidden / GROUP), hidden));
    }
    return FR_OK;
}

static fr_status add_kind(fr_synth_model *model, const fr_block_config *c) {
    size_t hidden = model->spec.hidden, vocab = model->spec.vocab;
    if (c->kind == FR_BLOCK_DFLASH2) {
        for (size_t i = 0; i < model->spec.layers; i++) FR_TRY(add_convolutions(model, i));
        FR_TRY(fr_synth_add_matrix(model, "selector_predecessor.weight", vocab, RANK));
        FR_TRY(fr_synth_add_matrix(model, "selector_successor.weight", vocab, RANK));
        FR_TRY(fr_synth_add_matrix(model, "selector_hidden.weight", RANK, hidden));
    }
    if (c->kind == FR_BLOCK_DSPARK) {
        FR_TRY(fr_synth_add_matrix(model, "markov_w1.weight", vocab, RANK));
        FR_TRY(fr_synth_add_matrix(model, "markov_w2.weight", vocab, RANK));
        FR_TRY(fr_synth_add_matrix(model, "conf_proj.weight", 1, hidden + RANK));
        FR_TRY(add_vector(model, "conf_proj.bias", 1));
    }
    return FR_OK;
}

static fr_status add(const fr_synth_order *order, fr_synth_model *model, fr_gguf_writer *writer, fr_block_kind kind) {
    size_t hidden = model->spec.hidden;
    fr_block_net net = {.trunk.spec = model->spec};
    fr_block_config *c = &net.config;
    if (order->layers < LAYERS)
        return fr_fail(FR_USAGE, "%zu layers: %s sees %d of them", order->layers, order->shape->name, LAYERS);
    c->kind = kind;
    c->spec.trunk = model->spec;
    c->block = kind == FR_BLOCK_DSPARK ? DSPARK_BLOCK : BLOCK;
    c->from_anchor = kind == FR_BLOCK_DSPARK;
    c->mask = (int32_t)order->vocab - 1;
    c->multiplier = c->embedding_scale = 1;
    c->sight.sliding_causal = true;
    c->conv_taps = TAPS;
    c->conv_group = GROUP;
    c->rank = RANK;
    c->top_k = TOP_K;
    c->confidence = true;
    c->aux_layers = fr_block_spread_layers(LAYERS, order->layers);
    const fr_drafter drafter = {.net = &net};
    FR_TRY(fr_block_put_keys(&drafter, writer));
    FR_TRY(fr_synth_add_matrix(model, "fc.weight", hidden, c->aux_layers.count * hidden));
    FR_TRY(add_vector(model, "enc.output_norm.weight", hidden));
    FR_TRY(add_kind(model, c));
    fr_outputs_sort(&model->outputs);
    return FR_OK;
}

static fr_status add_dflash(const fr_synth_order *order, fr_synth_model *model, fr_gguf_writer *writer) {
    return add(order, model, writer, FR_BLOCK_DFLASH);
}

static fr_status add_dflash2(const fr_synth_order *order, fr_synth_model *model, fr_gguf_writer *writer) {
    return add(order, model, writer, FR_BLOCK_DFLASH2);
}

static fr_status add_dspark(const fr_synth_order *order, fr_synth_model *model, fr_gguf_writer *writer) {
    return add(order, model, writer, FR_BLOCK_DSPARK);
}

const fr_synth_family fr_synth_dflash = {&fr_family_block, &fr_synth_qwen_tokenizer, .complete = complete,
                                         .add_drafter = add_dflash, .architecture = "dflash"},
                      fr_synth_dflash2 = {&fr_family_block, &fr_synth_qwen_tokenizer, .complete = complete,
                                          .add_drafter = add_dflash2, .architecture = "dflash"},
                      fr_synth_dspark = {&fr_family_block, &fr_synth_qwen_tokenizer, .complete = complete,
                                         .add_drafter = add_dspark, .architecture = "dflash"};
