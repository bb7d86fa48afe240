/* The gated feed-forward, and the joining of branches to the stream: see parts.h. */
#include "src/layers/parts.h"

/* x += norm(out + bias), by the row's owner; without a norm as it is. */
static void join_row(const fr_activations *a, const float *bias, const float *norm, size_t row) {
    const fr_kernels *k = a->kernels;
    size_t hidden = a->trunk->spec.hidden;
    float *out = a->out + row * hidden;
    if (bias) k->add(out, bias, hidden);
    if (norm) k->rmsnorm(out, out, norm, hidden, a->trunk->spec.eps);
    k->add(a->x + row * hidden, out, hidden);
}

void fr_ffn_prepare(const fr_team *team, const fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer) {
    size_t begin, end, hidden = a->trunk->spec.hidden;
    fr_rows_part(team, a->batch.count, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *normed = a->normed + r * hidden;
        join_row(a, layer->o_bias, layer->post_attn_norm, r);
        a->kernels->rmsnorm(normed, a->x + r * hidden, layer->pre_ffn_norm, hidden, a->trunk->spec.eps);
        fr_matrix_input_row(&a->workspace, r, normed, hidden);
        if (spec->experts.parallel && spec->experts.count) fr_experts_prepare(a, layer, r);
    }
}

void fr_activate(const fr_kernels *k, fr_activation activation, float *gate, const float *up, size_t n) {
    if (activation == FR_GELU) k->gelu_mul(gate, gate, up, n);
    else k->silu_mul(gate, gate, up, n);
}

/* A thread's gate and up features are the same range, so the activation needs no barrier. */
void fr_ffn_gate(const fr_team *team, const fr_activations *a, const fr_ffn_spec *spec, const fr_layer *layer) {
    const fr_kernels *k = a->kernels;
    size_t begin, end, hidden = a->trunk->spec.hidden, rows = a->batch.count;
    fr_matrix_apply(team, &a->workspace, &layer->gate_up[0],
                    &(fr_matrix_rows){a->gate, a->ffn_width, a->normed, hidden, rows});
    fr_matrix_apply(team, &a->workspace, &layer->gate_up[1],
                    &(fr_matrix_rows){a->up, a->ffn_width, a->normed, hidden, rows});
    fr_matrix_part(team, &layer->gate_up[0], &begin, &end);
    for (size_t r = 0; r < rows; r++) {
        float *gate = a->gate + r * a->ffn_width + begin, *up = a->up + r * a->ffn_width + begin;
        if (layer->gate_bias) k->add(gate, layer->gate_bias + begin, end - begin);
        if (layer->up_bias) k->add(up, layer->up_bias + begin, end - begin);
        fr_activate(k, spec->activation, gate, up, end - begin);
    }
}

void fr_ffn_down(const fr_team *team, const fr_activations *a, const fr_layer *layer) {
    fr_matrix_input_rows(team, &a->workspace, a->gate, a->ffn_width, layer->down.cols, a->batch.count);
    fr_matrix_apply(team, &a->workspace, &layer->down,
                    &(fr_matrix_rows){a->out, a->trunk->spec.hidden, a->gate, a->ffn_width, a->batch.count});
}

void fr_ffn_join(const fr_team *team, const fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer) {
    size_t begin, end, hidden = a->trunk->spec.hidden;
    fr_rows_part(team, a->batch.count, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *x = a->x + r * hidden;
        if (layer->router.data) fr_experts_join(a, spec, layer, r);
        join_row(a, layer->down_bias, layer->post_ffn_norm, r);
        if (layer->ple_gate.data)
            fr_matrix_input_row(&a->workspace, r, x, hidden);
        else if (layer->scalar) a->kernels->scale(x, hidden, *layer->scalar);
    }
}
