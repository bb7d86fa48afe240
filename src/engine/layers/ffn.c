/* Runs the feed-forward, with or without a gate, and adds branches to the residual stream: see parts.h. */
#include "src/engine/layers/parts.h"

/* Computes x += scale * norm(out + bias) for one row, in the thread that owns the row. If norms come after sums,
 * computes x = norm(x + scale * (out + bias)). If the layer has no bias, norm or scale, this operation is left out. */
static void join_row(const fr_activations *a, fr_norm_placement norms, const float *bias, const float *norm,
                     const float *norm_bias, size_t row) {
    const fr_kernels *k = a->kernels;
    size_t hidden = a->trunk->spec.hidden;
    bool after = norms == FR_NORMS_AFTER;
    float *out = a->out + row * hidden, *x = a->x + row * hidden, scale = a->trunk->spec.residual_scale;
    if (bias) k->add(out, bias, hidden);
    if (!after && norm && a->trunk->spec.post_eps != 0.0F)
        k->rmsnorm(out, out, norm, hidden, a->trunk->spec.post_eps);
    else if (!after)
        fr_norm_row(a, out, out, norm, norm_bias);
    if (scale != 0.0f) k->scale(out, hidden, scale);
    k->add(x, out, hidden);
    if (after) fr_norm_row(a, x, x, norm, norm_bias);
}

static void join_mixer(const fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer, size_t row) {
    const float *bias = layer->mamba.out_bias ? layer->mamba.out_bias : layer->attention.o_bias;
    join_row(a, spec->norms, bias, layer->post_attn_norm, layer->post_attn_norm_bias, row);
}

void fr_mixer_join(const fr_team *team, const fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer) {
    size_t begin, end;
    fr_part_rows(team, a->batch.count, &begin, &end);
    for (size_t r = begin; r < end; r++) join_mixer(a, spec, layer, r);
}

void fr_ffn_prepare(const fr_team *team, const fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer) {
    size_t begin, end, hidden = a->trunk->spec.hidden;
    fr_part_rows(team, a->batch.count, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *normed = a->normed + r * hidden;
        /* The norm is applied to the layer's input, before attention's output is added. */
        if (spec->norms == FR_NORMS_PARALLEL)
            fr_norm_row(a, normed, a->x + r * hidden, layer->pre_ffn_norm, layer->pre_ffn_norm_bias);
        if (spec->mixer != FR_MIXER_NONE) join_mixer(a, spec, layer, r);
        /* If norms are shared or parallel, `normed` has already been computed. */
        if (spec->norms != FR_NORM_SHARED && spec->norms != FR_NORMS_PARALLEL)
            fr_norm_row(a, normed, a->x + r * hidden, layer->pre_ffn_norm, layer->pre_ffn_norm_bias);
        fr_matrix_input_row(&a->workspace, r, normed, hidden);
        if (spec->experts.parallel && spec->experts.count) fr_experts_prepare(a, &layer->experts, r);
    }
}

/* A thread computes the same features of gate and of up. So no barrier is needed between the products and the
 * activation. */
void fr_ffn_gate(const fr_team *team, const fr_activations *a, const fr_ffn_spec *spec, const fr_ffn_weights *weights) {
    const fr_kernels *k = a->kernels;
    size_t begin, end, hidden = a->trunk->spec.hidden, rows = a->batch.count;
    fr_matrix_apply(team, &a->workspace, &weights->gate_up[0],
                    &(fr_matrix_rows){a->gate, a->ffn_width, a->normed, hidden, rows});
    bool gated = weights->gate_up[1].data;
    if (gated)
        fr_matrix_apply(team, &a->workspace, &weights->gate_up[1],
                        &(fr_matrix_rows){a->up, a->ffn_width, a->normed, hidden, rows});
    fr_part_features(team, weights->gate_up[0].features, &begin, &end);
    for (size_t r = 0; r < rows; r++) {
        float *gate = a->gate + r * a->ffn_width + begin, *up = a->up + r * a->ffn_width + begin;
        if (weights->gate_bias) k->add(gate, weights->gate_bias + begin, end - begin);
        if (weights->up_bias) k->add(up, weights->up_bias + begin, end - begin);
        if (gated)
            fr_activate(k, spec->activation, gate, up, end - begin);
        else if (spec->activation == FR_XIELU)
            fr_activate_xielu(k, spec->xielu, gate, up, end - begin);
        else
            fr_activate_ungated(k, spec->activation, gate, up, end - begin);
    }
}

void fr_ffn_down(const fr_team *team, const fr_activations *a, const fr_ffn_weights *weights) {
    fr_publish_input(team, &a->workspace, &weights->down,
                     &(fr_shared_rows){a->gate, a->ffn_width, a->batch.count, fr_split_features(weights->down.cols)});
    fr_matrix_apply(team, &a->workspace, &weights->down,
                    &(fr_matrix_rows){a->out, a->trunk->spec.hidden, a->gate, a->ffn_width, a->batch.count});
}

void fr_ffn_join(const fr_team *team, const fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer) {
    size_t begin, end, hidden = a->trunk->spec.hidden;
    fr_part_rows(team, a->batch.count, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *x = a->x + r * hidden;
        if (layer->experts.router.data) fr_experts_join(a, spec, &layer->experts, r);
        join_row(a, spec->norms, layer->ffn.down_bias, layer->post_ffn_norm, layer->post_ffn_norm_bias, r);
        if (layer->ple.gate.data)
            fr_matrix_input_row(&a->workspace, r, x, hidden);
        else if (layer->scalar)
            a->kernels->scale(x, hidden, *layer->scalar);
    }
}
