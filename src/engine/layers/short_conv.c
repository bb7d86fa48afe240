/* Runs a short convolution between two gates. See parts.h.
 *
 * In: the stream. Out: out, which is added to the stream. The work is done in phases with barriers between them. In
 * each phase, a thread computes the rows or the weight's features that it owns. Features are channels, so one thread
 * takes a channel from its projections through the convolution:
 *
 *     rows      normed = input_norm(x)
 *     features  b, c, x = projections of normed; input = b * x; seen = c * convolution of this and earlier inputs
 *     features  out = out(seen); the rows' inputs are kept in the ring
 *
 * Liquid AI 2025, LFM2 technical report, arXiv:2511.23404; quant/NUMERICS.md has the operations in their order. */
#include <string.h>

#include "src/engine/layers/parts.h"

enum { B, C, TAP, PARTS }; /* B, C: a row's gates b and c; TAP: room for the products of one tap */

fr_recurrent_shape fr_short_conv_shape(const fr_short_conv_spec *spec, size_t hidden) {
    return (fr_recurrent_shape){.channels = hidden, .conv_kernel = spec->conv_kernel};
}

void fr_short_conv_layout(fr_activations *a, const fr_short_conv_spec *spec, fr_arena *arena, size_t max_rows) {
    size_t hidden = a->trunk->spec.hidden;
    fr_conv_layout(a, fr_short_conv_shape(spec, hidden), arena, max_rows);
    a->gates = fr_arena_take(arena, max_rows * PARTS * hidden, sizeof *a->gates);
}

/* Computes channels [from, from + n) of one row's c * conv(b * x), and writes them to the place of the row's b. */
static void convolve(const fr_activations *a, const fr_short_conv_spec *spec, const float *conv, size_t row,
                     size_t from, size_t n) {
    const fr_kernels *k = a->kernels;
    const fr_row *of = &a->batch.rows[row];
    const fr_recurrent *ring = &a->batch.timelines[of->timeline]->recurrent;
    const float *inputs[FR_CONV_KERNEL_MAX];
    size_t hidden = a->trunk->spec.hidden;
    float *seen = a->gates + row * PARTS * hidden + from, *tap = seen + TAP * hidden;
    fr_conv_collect(a, ring, &ring->layers[spec->state], (size_t)of->position, (int32_t)row, inputs);
    memset(seen, 0, n * sizeof *seen);
    for (size_t t = 0; t < spec->conv_kernel; t++) {
        if (!inputs[t]) continue;
        memcpy(tap, conv + t * hidden + from, n * sizeof *tap);
        k->mul(tap, inputs[t] + from, n);
        k->add(seen, tap, n);
    }
    k->mul(seen, seen + C * hidden, n);
}

static void mix(const fr_team *team, const fr_activations *a, const fr_short_conv_spec *spec,
                const fr_short_conv_weights *weights) {
    size_t hidden = a->trunk->spec.hidden, rows = a->batch.count, begin, end;
    float *to[] = {a->gates + B * hidden, a->gates + C * hidden, a->conv->input};
    for (size_t i = 0; i < 3; i++)
        fr_matrix_apply(team, &a->workspace, &weights->in[i],
                        &(fr_matrix_rows){to[i], i < 2 ? PARTS * hidden : a->conv->width, a->normed, hidden, rows});
    fr_part_features(team, hidden, &begin, &end);
    for (size_t r = 0; r < rows; r++)
        a->kernels->mul(a->conv->input + r * a->conv->width + begin, a->gates + r * PARTS * hidden + begin,
                        end - begin);
    for (size_t r = 0; r < rows && begin < end; r++) convolve(a, spec, weights->conv, r, begin, end - begin);
}

void fr_short_conv_run(const fr_team *team, fr_activations *a, const fr_layer_spec *layer_spec, const fr_layer *layer,
                       bool ends_rows) {
    const fr_short_conv_spec *spec = &layer_spec->short_conv;
    const fr_short_conv_weights *weights = &layer->short_conv;
    const fr_activations whole = *a;
    size_t hidden = a->trunk->spec.hidden, width = PARTS * hidden;
    fr_input_norm(team, a, layer, hidden);
    fr_team_sync(team);
    mix(team, a, spec, weights);
    float *seen = a->gates + (ends_rows ? a->keep * width : 0);
    if (ends_rows) fr_activations_narrow(a);
    fr_publish_input(team, &a->workspace, &weights->out,
                     &(fr_shared_rows){seen, width, a->batch.count, fr_split_features(hidden)});
    fr_conv_save(team, &whole, spec->state);
    fr_conv_keep(team, &whole, spec->state);
    fr_matrix_apply(team, &a->workspace, &weights->out, &(fr_matrix_rows){a->out, hidden, seen, width, a->batch.count});
}
