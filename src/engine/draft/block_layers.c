/* Runs the rows of block drafters: see block.h.
 *
 * A layer runs in these phases, with a barrier between any two. Only DFlash2 has the phases in brackets. `rows` are
 * phases in which threads divide the rows; in `features` they divide the outputs of a product:
 *
 *     rows       normed = input_norm(x)
 *     [features  kernels = kernel(normed)
 *      rows      convolved = convolution 0 of normed]
 *     ...        out = attention of these (attention.c)
 *     rows       x += out [or convolution 1 of out]; normed = pre_ffn_norm(x)
 *     [features  kernels = kernel(normed)
 *      rows      normed = convolution 0 of normed]
 *     ...        out = feed-forward of these (ffn.c)
 *     rows       x += out [or convolution 1 of out]
 *
 * A convolution reads rows that other threads have made, so there is a barrier before each convolution. */
#include <string.h>

#include "base/sizes.h"
#include "src/engine/draft/block.h"
#include "src/engine/layers/parts.h"

/* ----------------------------------------------------------------------------------------------------------- layout */

void fr_block_rows_layout(fr_block_rows *rows, const fr_drafter *drafter, fr_arena *arena, size_t count,
                          size_t threads) {
    const fr_block_net *net = drafter->net;
    size_t hidden = net->trunk.spec.hidden;
    fr_activations activations;
    *rows = (fr_block_rows){.net = net, .target = drafter->target, .most = count};
    rows->activations = fr_arena_take(arena, 1, sizeof *rows->activations);
    fr_activations_layout(&activations, &net->trunk, drafter->target->kernels, net->packed, arena, count,
                          fr_larger(net->fc.cols, net->config.rank), threads);
    activations.reads_ahead = drafter->weights.exceed;
    if (rows->activations) *rows->activations = activations;
    rows->rows = fr_arena_take(arena, count, sizeof *rows->rows);
    rows->full = fr_arena_take(arena, count, sizeof *rows->full);
    rows->sliding = fr_arena_take(arena, count, sizeof *rows->sliding);
    rows->input = fr_arena_take(arena, count * net->fc.cols, sizeof(float));
    rows->hidden = fr_arena_take(arena, count * hidden, sizeof(float));
    if (!net->conv_width) return;
    rows->kernels = fr_arena_take(arena, count * net->conv_width, sizeof(float));
    rows->convolved = fr_arena_take(arena, count * hidden, sizeof(float));
}

void fr_block_set_sights(const fr_block_sight *sight, size_t position, size_t count, fr_sight *full,
                         fr_sight *sliding) {
    int64_t window = (int64_t)sight->window, first = (int64_t)position, end = first + (int64_t)count - 1;
    for (size_t r = 0; r < count; r++) {
        int64_t own = first + (int64_t)r, low = 0, high = sight->sliding_causal ? own : end;
        if (window && sight->shared) low = first - window;
        if (window && !sight->shared) {
            low = own - window + 1;
            if (high > own + window - 1) high = own + window - 1;
        }
        full[r] = (fr_sight){0, sight->full_causal ? own : end};
        sliding[r] = (fr_sight){low < 0 ? 0 : low, high};
    }
}

/* ---------------------------------------------------------------------------------------------------------- context */

void fr_block_run_context(const fr_team *team, const fr_block_rows *rows, const fr_batch *batch) {
    const fr_block_net *net = rows->net;
    const fr_trunk_spec *spec = &net->trunk.spec;
    size_t hidden = spec->hidden, width = net->fc.cols, begin, end;
    fr_activations a = *rows->activations;
    a.batch = *batch;
    fr_part_rows(team, batch->count, &begin, &end);
    for (size_t r = begin; r < end; r++) fr_matrix_input_row(&a.workspace, r, rows->input + r * width, width);
    fr_rotations(team, &a);
    fr_team_sync(team);
    fr_matrix_apply(team, &a.workspace, &net->fc, &(fr_matrix_rows){a.x, hidden, rows->input, width, batch->count});
    fr_team_sync(team);
    for (size_t r = begin; r < end; r++) {
        a.kernels->rmsnorm(a.normed + r * hidden, a.x + r * hidden, net->context_norm, hidden, spec->eps);
        fr_matrix_input_row(&a.workspace, r, a.normed + r * hidden, hidden);
    }
    for (size_t i = 0; i < spec->layers; i++) {
        fr_team_sync(team);
        fr_attention_store(team, &a, &spec->layer[i], &net->trunk.layers[i]);
    }
}

/* ------------------------------------------------------------------------------------------------------------ block */

/* Returns the row that is `back` rows before row r of the batch. Returns NULL if that row is not in the same block. */
static const float *row_before(const fr_activations *a, const float *rows, size_t r, size_t back) {
    size_t hidden = a->trunk->spec.hidden;
    if (back > r || a->batch.rows[r - back].timeline != a->batch.rows[r].timeline) return NULL;
    return rows + (r - back) * hidden;
}

/* Computes y, the result of one side of a convolution at row r. Tap t multiplies the row that is t rows before by (base
 * + kernel), and y is the sum over t in ascending order. */
static void convolve_row(const fr_block_rows *rows, const fr_activations *a, const float *base, size_t side,
                         const float *from, size_t r, float *y) {
    const fr_block_config *c = &rows->net->config;
    size_t hidden = a->trunk->spec.hidden, groups = hidden / c->conv_group;
    const float *kernel = rows->kernels + r * rows->net->conv_width + side * c->conv_taps * groups;
    memset(y, 0, hidden * sizeof *y);
    for (size_t t = 0; t < c->conv_taps; t++, kernel += groups) {
        const float *x = row_before(a, from, r, t), *weight = base + (side * c->conv_taps + t) * hidden;
        if (!x) break;
        for (size_t g = 0; g < groups; g++)
            for (size_t i = g * c->conv_group; i < (g + 1) * c->conv_group; i++) y[i] += (weight[i] + kernel[g]) * x[i];
    }
}

/* Computes the kernels of a convolution, and applies side 0 of the convolution to the normed rows. The result is the
 * input of the next products. The normed rows must be prepared. On return, each row is complete for the thread that
 * owns it. */
static void convolve_input(const fr_team *team, const fr_block_rows *rows, const fr_activations *a,
                           const fr_block_conv *conv) {
    size_t hidden = a->trunk->spec.hidden, begin, end;
    fr_part_rows(team, a->batch.count, &begin, &end);
    fr_team_sync(team);
    fr_matrix_apply(team, &a->workspace, &conv->kernel,
                    &(fr_matrix_rows){rows->kernels, rows->net->conv_width, a->normed, hidden, a->batch.count});
    fr_team_sync(team);
    for (size_t r = begin; r < end; r++) {
        float *y = rows->convolved + r * hidden;
        convolve_row(rows, a, conv->base, 0, a->normed, r, y);
        fr_matrix_input_row(&a->workspace, r, y, hidden);
    }
}

/* Adds the output of attention or feed-forward to the residual stream. If there is a convolution, its side 1 is applied
 * to the output first. Begins with a barrier. */
static void join(const fr_team *team, const fr_block_rows *rows, const fr_activations *a, const fr_block_conv *conv,
                 const float *bias) {
    size_t hidden = a->trunk->spec.hidden, begin, end;
    fr_part_rows(team, a->batch.count, &begin, &end);
    fr_team_sync(team);
    for (size_t r = begin; bias && r < end; r++) a->kernels->add(a->out + r * hidden, bias, hidden);
    if (bias && conv) fr_team_sync(team);
    for (size_t r = begin; r < end; r++) {
        const float *out = a->out + r * hidden;
        if (conv) convolve_row(rows, a, conv->base, 1, a->out, r, rows->convolved + r * hidden);
        a->kernels->add(a->x + r * hidden, conv ? rows->convolved + r * hidden : out, hidden);
    }
}

static void run_layer(const fr_team *team, const fr_block_rows *rows, const fr_activations *stream, size_t index) {
    const fr_block_net *net = rows->net;
    const fr_layer *layer = &net->trunk.layers[index];
    const fr_layer_spec *spec = &net->trunk.spec.layer[index];
    const fr_block_conv *convs = net->convs ? net->convs[index] : NULL, *ffn = convs ? &convs[FR_BLOCK_FFN] : NULL;
    size_t hidden = net->trunk.spec.hidden, begin, end;
    fr_activations a = *stream;
    fr_part_rows(team, a.batch.count, &begin, &end);
    a.sights = net->config.slides[index] ? rows->sliding : rows->full;
    if (convs) {
        for (size_t r = begin; r < end; r++) {
            fr_norm_row(&a, a.normed + r * hidden, a.x + r * hidden, layer->input_norm, NULL);
            fr_matrix_input_row(&a.workspace, r, a.normed + r * hidden, hidden);
        }
        convolve_input(team, rows, &a, &convs[FR_BLOCK_ATTENTION]);
        a.input = rows->convolved;
    }
    fr_attention_run(team, &a, spec, layer, false);
    join(team, rows, &a, convs ? &convs[FR_BLOCK_ATTENTION] : NULL, layer->attention.o_bias);
    for (size_t r = begin; r < end; r++) {
        fr_norm_row(&a, a.normed + r * hidden, a.x + r * hidden, layer->pre_ffn_norm, NULL);
        fr_matrix_input_row(&a.workspace, r, a.normed + r * hidden, hidden);
    }
    if (convs) {
        convolve_input(team, rows, &a, ffn);
        a.normed = rows->convolved;
    }
    fr_team_sync(team);
    fr_ffn_gate(team, &a, &spec->ffn, &layer->ffn);
    fr_ffn_down(team, &a, &layer->ffn);
    join(team, rows, &a, ffn, layer->ffn.down_bias);
}

/* Writes the embedding of row r of the batch to the residual stream. */
static void embed(const fr_block_rows *rows, const fr_activations *a, size_t r) {
    const fr_block_net *net = rows->net;
    const fr_block_config *c = &net->config;
    int32_t id = a->batch.rows[r].id;
    size_t hidden = net->trunk.spec.hidden;
    float *x = a->x + r * hidden, scale = c->embedding_scale;
    const fr_trunk *target = &rows->target->trunk;
    if (id < 0 && net->mask_row) {
        memcpy(x, net->mask_row, hidden * sizeof *x);
        return;
    }
    if (id < 0) id = c->mask;
    if (c->target_scale) scale *= target->spec.embedding_scale;
    fr_matrix_row(a->kernels, net->trunk.embedding.data ? &net->trunk.embedding : &target->embedding, (size_t)id, scale,
                  x);
}

void fr_block_run_layers(const fr_team *team, const fr_block_rows *rows, const fr_batch *batch) {
    const fr_block_net *net = rows->net;
    const fr_trunk_spec *spec = &net->trunk.spec;
    size_t hidden = spec->hidden, begin, end;
    fr_activations a = *rows->activations;
    a.batch = *batch;
    fr_part_rows(team, batch->count, &begin, &end);
    for (size_t r = begin; r < end; r++) embed(rows, &a, r);
    fr_rotations(team, &a);
    for (size_t i = 0; i < spec->layers; i++) run_layer(team, rows, &a, i);
    for (size_t r = begin; r < end; r++)
        fr_norm_row(&a, rows->hidden + r * hidden, a.x + r * hidden, net->trunk.norm, NULL);
}
