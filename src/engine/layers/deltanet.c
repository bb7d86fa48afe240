/* Gated DeltaNet and Kimi Delta Attention: a short convolution, and a state that each position partly rewrites and then
 * reads. See parts.h.
 *
 * In: the residual stream x. Out: `out`, which is added to the stream. There are barriers between the phases of the
 * work. The first word says what the threads divide in a phase: rows, features of weights, or heads:
 *
 *     rows      normed = input_norm(x)
 *     features  inputs of the convolution, z, and for each value head a and b: projections of normed
 *     rows      separate inputs and z, if one projection gives both, key head by key head
 *     heads     mixed = silu(convolution of this and earlier inputs); queries and keys of length 1; decay, beta
 *     heads     run the positions after the base again, then the rows (recurrent.h): seen = outputs of the states;
 *               norm(seen) * silu(z), or norm(seen) * sigmoid(z)
 *     features  out = o(seen); the rows' inputs are kept in the ring
 *
 * Sources: Yang, Kautz and Hatamizadeh 2024, arXiv:2412.06464; Kimi Team 2025, arXiv:2510.26692, where z and the decays
 * may be products of two matrices. quant/NUMERICS.md has the operations in their order. */
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "kernels/deltanet_gates.h"
#include "src/engine/layers/parts.h"

/* Counts the channels of the convolution, which are the queries and keys of all key heads and the values of all value
 * heads. */
static size_t channels(const fr_deltanet_spec *spec) {
    return 2 * spec->key_heads * spec->key_dim + spec->value_heads * spec->value_dim;
}

/* Counts the decays of a position. There is one for each value head, or one for each value of each head's key (by_key).
 * In memory, the position's betas follow its decays. */
static size_t decays_of(const fr_deltanet_spec *spec) {
    return spec->value_heads * (spec->by_key ? spec->key_dim : 1);
}

fr_recurrent_shape fr_deltanet_shape(const fr_deltanet_spec *spec) {
    return (fr_recurrent_shape){.heads = spec->value_heads,
                                .key_dim = spec->key_dim,
                                .value_dim = spec->value_dim,
                                .channels = channels(spec),
                                .gates = decays_of(spec) + spec->value_heads,
                                .conv_kernel = spec->conv_kernel};
}

fr_split fr_deltanet_split(const fr_deltanet_spec *spec, size_t each) {
    return fr_split_heads(spec->value_heads, spec->value_heads, each);
}

/* ----------------------------------------------------------------------------------------------------------- memory */

/* Takes memory that each thread needs for itself: for the positions that it runs again, for a strip of a state, and for
 * the rows of one head. */
static void take_threads(fr_deltanet_rows *d, const fr_deltanet_spec *spec, fr_arena *arena, size_t max_rows,
                         size_t threads) {
    d->rerun_width = spec->key_dim + spec->value_dim;
    d->rerun = fr_arena_take(arena, threads * FR_STEP_MAX * d->rerun_width, sizeof *d->rerun);
    d->strip_size = fr_deltanet_scratch(spec->key_dim);
    d->strips = fr_arena_take(arena, threads * d->strip_size, sizeof *d->strips);
    d->run_size = FR_STEP_MAX + max_rows;
    d->runs = fr_arena_take(arena, threads * d->run_size, sizeof *d->runs);
}

void fr_deltanet_layout(fr_activations *a, const fr_deltanet_spec *spec, fr_arena *arena, size_t max_rows,
                        size_t threads) {
    fr_deltanet_rows d = {.channels = channels(spec), .width = spec->value_heads * spec->value_dim};
    fr_conv_layout(a, fr_deltanet_shape(spec), arena, max_rows);
    fr_deltanet_rows *place = fr_arena_take(arena, 1, sizeof *place);
    d.mixed = fr_arena_take(arena, max_rows * d.channels, sizeof *d.mixed);
    d.z = fr_arena_take(arena, max_rows * d.width, sizeof *d.z);
    d.seen = fr_arena_take(arena, max_rows * d.width, sizeof *d.seen);
    if (spec->fused) d.fused = fr_arena_take(arena, max_rows * (d.channels + d.width), sizeof *d.fused);
    d.gates = fr_arena_take(arena, max_rows * 2 * spec->value_heads, sizeof *d.gates);
    if (spec->by_key) d.low_a = fr_arena_take(arena, max_rows * spec->value_dim, sizeof *d.low_a);
    if (spec->by_key) d.low_z = fr_arena_take(arena, max_rows * spec->value_dim, sizeof *d.low_z);
    take_threads(&d, spec, arena, max_rows, threads);
    a->deltanet = place;
    if (place) *place = d;
}

/* ------------------------------------------------------------------------------------------------------ convolution */

/* Gives a row's decays, which its betas follow in memory. As in the ring (recurrent.h), they come after the inputs of
 * the convolution. */
static float *gates_of(const fr_activations *a, size_t row) {
    return a->conv->input + row * a->conv->width + a->deltanet->channels;
}

/* Computes the convolution for channels [from, from + n) of the inputs. */
static void convolve(const fr_activations *a, const fr_deltanet_spec *spec, const fr_deltanet_weights *weights,
                     const float *const *inputs, size_t from, size_t n, float *out) {
    const float *at[FR_CONV_KERNEL_MAX], *taps = spec->by_key ? NULL : weights->conv + from;
    size_t stride = spec->by_key ? a->deltanet->width : a->deltanet->channels;
    if (!taps) taps = weights->conv_parts[from / stride] + from % stride;
    for (size_t t = 0; t < spec->conv_kernel; t++) at[t] = inputs[t] ? inputs[t] + from : NULL;
    a->kernels->short_conv(out, at, taps, stride, spec->conv_kernel, NULL, n);
}

/* Scales a head's key to length 1, or a head's query to length 1 / sqrt(dimension). */
static void make_unit(const fr_activations *a, const fr_deltanet_spec *spec, float *head, bool query) {
    size_t n = spec->key_dim;
    a->kernels->rmsnorm(head, head, NULL, n, 1e-6f / (float)n);
    a->kernels->scale(head, n, (float)(query ? 1.0 / (double)n : 1.0 / sqrt((double)n)));
}

/* Computes one head of a row's queries, keys or values. `head` counts first all heads of queries, then those of keys,
 * then those of values. */
static void mix_head(const fr_activations *a, const fr_deltanet_spec *spec, const fr_deltanet_weights *weights,
                     size_t row, size_t head) {
    const fr_row *of = &a->batch.rows[row];
    const fr_recurrent *ring = &a->batch.timelines[of->timeline]->recurrent;
    const float *inputs[FR_CONV_KERNEL_MAX];
    size_t keys = 2 * spec->key_heads, n = head < keys ? spec->key_dim : spec->value_dim;
    size_t from = head < keys ? head * n : keys * spec->key_dim + (head - keys) * n;
    float *mixed = a->deltanet->mixed + row * a->deltanet->channels + from;
    fr_conv_collect(a, ring, &ring->layers[spec->state], (size_t)of->position, (int32_t)row, inputs);
    convolve(a, spec, weights, inputs, from, n, mixed);
    if (head < keys) make_unit(a, spec, mixed, head < spec->key_heads);
}

/* Separates b and a, from which the betas and the decays are made. The projection gives b and a for the value heads of
 * one key head after the other. Here each of the two becomes one array over all value heads. */
static void part_gates(const fr_deltanet_spec *spec, const float *gates, float *b, float *a) {
    size_t each = spec->value_heads / spec->key_heads, bytes = each * sizeof *gates;
    for (size_t g = 0; g < spec->key_heads; g++) {
        memcpy(b + g * each, gates + 2 * g * each, bytes);
        memcpy(a + g * each, gates + (2 * g + 1) * each, bytes);
    }
}

static void mix(const fr_team *team, const fr_activations *a, const fr_deltanet_spec *spec,
                const fr_deltanet_weights *weights) {
    size_t rows = a->batch.count, heads = spec->value_heads, begin, end;
    fr_part_rows(team, rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *decay = gates_of(a, r), *beta = decay + decays_of(spec);
        if (weights->in_ba.data) part_gates(spec, a->deltanet->gates + r * 2 * heads, beta, decay);
        if (!spec->by_key) fr_deltanet_decay(decay, decay, weights->dt_bias, weights->decay, heads);
        fr_deltanet_beta(beta, beta, heads);
    }
    fr_part_heads(team, spec->by_key ? heads : 0, rows, &begin, &end);
    for (size_t item = begin; item < end; item++) {
        size_t head = item / rows, at = head * spec->key_dim;
        /* weights->decay is negative in Kimi Linear's files and positive in Ling 3's. In both cases the negative number
         * is meant. */
        fr_kda_decays(gates_of(a, item % rows) + at, weights->dt_bias + at, -fabsf(weights->decay[head]),
                      spec->lower_bound, spec->key_dim);
    }
    fr_part_heads(team, 2 * spec->key_heads + heads, rows, &begin, &end);
    for (size_t item = begin; item < end; item++) mix_head(a, spec, weights, item % rows, item / rows);
}

/* ----------------------------------------------------------------------------------------------------------- states */

/* A run is the unit of work of one thread: one value head, for all rows of one timeline. */
typedef struct head_run {
    const fr_deltanet_spec *spec;
    const fr_deltanet_weights *weights;
    const fr_conv_span *span;
    const fr_recurrent *recurrent;
    const fr_recurrent_layer *states;
    size_t head, key_head;
    float *rerun, *strip;  /* memory of the thread. rerun: values and keys of positions that the thread runs again;
                            * strip: a strip of a state */
    fr_deltanet_row *rows; /* the rows to run: the positions after the base, then the rows of the batch */
    size_t count;
} head_run;

/* Sets the decays and the beta of a row of one head. gates: the decays and betas of the row's position. */
static void set_gates(const fr_deltanet_spec *spec, const float *gates, size_t head, fr_deltanet_row *row) {
    if (spec->by_key)
        row->decays = gates + head * spec->key_dim;
    else
        row->decay = gates[head];
    row->beta = gates[decays_of(spec) + head];
}

/* Computes the key and the value of an earlier position again, from the inputs in the ring. */
static void rerun_position(const fr_activations *a, head_run *run, size_t position, size_t index) {
    const fr_deltanet_spec *spec = run->spec;
    const float *inputs[FR_CONV_KERNEL_MAX], *slot = fr_recurrent_slot(run->recurrent, run->states, position);
    float *key = run->rerun + index * a->deltanet->rerun_width, *value = key + spec->key_dim;
    size_t keys = spec->key_heads * spec->key_dim;
    fr_conv_collect(a, run->recurrent, run->states, position, -1, inputs);
    convolve(a, spec, run->weights, inputs, keys + run->key_head * spec->key_dim, spec->key_dim, key);
    make_unit(a, spec, key, false);
    convolve(a, spec, run->weights, inputs, 2 * keys + run->head * spec->value_dim, spec->value_dim, value);
    run->rows[index] = (fr_deltanet_row){.key = key, .value = value};
    set_gates(spec, slot + a->deltanet->channels, run->head, &run->rows[index]);
}

/* Makes the kernel's row for a row of the batch. If several timelines read a row, only the row's own timeline writes
 * the row's output. */
static fr_deltanet_row row_of(const fr_activations *a, const head_run *run, size_t row) {
    const fr_deltanet_spec *spec = run->spec;
    const fr_deltanet_rows *d = a->deltanet;
    const float *mixed = d->mixed + row * d->channels;
    size_t keys = spec->key_heads * spec->key_dim;
    bool speaks = a->batch.timelines[a->batch.rows[row].timeline] == run->span->kv;
    fr_deltanet_row filled = {.key = mixed + keys + run->key_head * spec->key_dim,
                              .query = speaks ? mixed + run->key_head * spec->key_dim : NULL,
                              .value = mixed + 2 * keys + run->head * spec->value_dim,
                              .out = speaks ? d->seen + row * d->width + run->head * spec->value_dim : NULL};
    set_gates(spec, gates_of(a, row), run->head, &filled);
    return filled;
}

/* Runs a head over its rows. Stops at each position at which a copy of the state is wanted, and copies the state. */
static void run_head(const fr_activations *a, const head_run *run) {
    const fr_recurrent *r = run->recurrent;
    size_t size = fr_deltanet_state(run->spec->key_dim, run->spec->value_dim), done = 0;
    size_t state_at = run->states->state_at + (run->head - run->states->shape.before) * size;
    float *state = (float *)r->base + state_at;
    fr_deltanet part = {
        .state = state, .key_dim = run->spec->key_dim, .value_dim = run->spec->value_dim, .scratch = run->strip};
    if (r->at == 0) memset(state, 0, size * sizeof *state);
    for (size_t i = 0; i < r->points; i++) {
        part.rows = run->rows + done;
        part.count = part.keeps = r->point[i].position - r->at - done;
        a->kernels->deltanet(&part);
        done += part.count;
        memcpy((float *)r->point[i].page + state_at, state, size * sizeof *state);
    }
    part.rows = run->rows + done;
    part.count = run->count - done;
    part.keeps = fr_larger(r->certain, r->at) - r->at - done;
    a->kernels->deltanet(&part);
}

/* Applies the norm and the gates to the outputs of the batch's rows. */
static void gate_outputs(const fr_activations *a, const head_run *run) {
    const fr_deltanet_rows *d = a->deltanet;
    size_t n = run->spec->value_dim;
    for (size_t i = run->span->position - run->recurrent->at; i < run->count; i++) {
        float *out = run->rows[i].out;
        if (!out) continue;
        a->kernels->rmsnorm(out, out, run->weights->value_norm, n, a->trunk->spec.eps);
        if (run->spec->by_key)
            a->kernels->sigmoid_mul(out, out, d->z + (out - d->seen), n);
        else
            a->kernels->silu_mul(out, d->z + (out - d->seen), out, n);
    }
}

/* Runs the heads of this rank. The heads of each timeline are divided among all threads, so that all threads work even
 * on a long prompt of a single timeline. */
static void run_heads(const fr_team *team, const fr_activations *a, const fr_deltanet_spec *spec,
                      const fr_deltanet_weights *weights) {
    const fr_deltanet_rows *d = a->deltanet;
    const fr_conv_rows *c = a->conv;
    size_t first, last, begin, end;
    head_run run = {.spec = spec,
                    .weights = weights,
                    .rerun = d->rerun + team->index * FR_STEP_MAX * d->rerun_width,
                    .strip = d->strips + team->index * d->strip_size,
                    .rows = d->runs + team->index * d->run_size};
    fr_part_rank(team, fr_deltanet_split(spec, 1), &first, &last);
    fr_part_heads(team, last - first, c->span_count, &begin, &end);
    for (size_t item = begin; item < end; item++) {
        run.head = first + item / c->span_count;
        run.key_head = spec->tiled ? run.head % spec->key_heads : run.head / (spec->value_heads / spec->key_heads);
        run.span = &c->spans[item % c->span_count];
        run.recurrent = &run.span->kv->recurrent;
        run.states = &run.recurrent->layers[spec->state];
        /* `at` is the position of run.rows[0]. Positions before the batch's first row are run again. */
        size_t at = run.recurrent->at;
        run.count = (size_t)a->batch.rows[run.span->last].position + 1 - at;
        for (size_t p = at; p < run.span->position; p++) rerun_position(a, &run, p, p - at);
        for (int32_t r = run.span->last; r >= 0; r = a->batch.rows[r].parent)
            run.rows[(size_t)a->batch.rows[r].position - at] = row_of(a, &run, (size_t)r);
        run_head(a, &run);
        gate_outputs(a, &run);
    }
}

/* ------------------------------------------------------------------------------------------------------------ layer */

/* Separates a row's products into the convolution's inputs and z. The projection gives both for one key head after the
 * other. */
static void part_row(const fr_deltanet_spec *spec, const float *fused, float *input, float *z) {
    size_t keys = spec->key_heads * spec->key_dim, values = spec->value_heads / spec->key_heads * spec->value_dim;
    for (size_t g = 0; g < spec->key_heads; g++, fused += 2 * (spec->key_dim + values)) {
        memcpy(input + g * spec->key_dim, fused, spec->key_dim * sizeof *fused);
        memcpy(input + keys + g * spec->key_dim, fused + spec->key_dim, spec->key_dim * sizeof *fused);
        memcpy(input + 2 * keys + g * values, fused + 2 * spec->key_dim, values * sizeof *fused);
        memcpy(z + g * values, fused + 2 * spec->key_dim + values, values * sizeof *fused);
    }
}

static void project_fused(const fr_team *team, const fr_activations *a, const fr_deltanet_spec *spec,
                          const fr_matrix *in_qkvz) {
    const fr_deltanet_rows *d = a->deltanet;
    size_t stride = d->channels + d->width, begin, end;
    fr_matrix_apply(team, &a->workspace, in_qkvz,
                    &(fr_matrix_rows){d->fused, stride, a->normed, a->trunk->spec.hidden, a->batch.count});
    fr_publish_rows(team, &(fr_shared_rows){d->fused, stride, a->batch.count, fr_split_features(in_qkvz->features)}, 1);
    fr_part_rows(team, a->batch.count, &begin, &end);
    for (size_t r = begin; r < end; r++)
        part_row(spec, d->fused + r * stride, a->conv->input + r * a->conv->width, d->z + r * d->width);
}

/* Computes the projections of Kimi Delta Attention. Each rank computes the gates of its own heads, but the decays of
 * all heads, because rings keep all decays. If decays and gates are products of two matrices, each rank computes the
 * small rows between the two matrices completely. */
static void project_by_key(const fr_team *team, const fr_activations *a, const fr_deltanet_spec *spec,
                           const fr_deltanet_weights *weights) {
    const fr_workspace *w = &a->workspace;
    const fr_deltanet_rows *d = a->deltanet;
    size_t hidden = a->trunk->spec.hidden, rows = a->batch.count, stride = a->conv->width, low = spec->value_dim;
    size_t first, last;
    fr_matrix_rows decays = {gates_of(a, 0), stride, a->normed, hidden, rows},
                   z = {d->z, d->width, a->normed, hidden, rows};
    fr_shared_rows shared[3];
    for (size_t i = 0; i < 3; i++) {
        float *at = a->conv->input + i * d->width;
        fr_matrix_apply(team, w, &weights->in_parts[i], &(fr_matrix_rows){at, stride, a->normed, hidden, rows});
        shared[i] = (fr_shared_rows){at, stride, rows, fr_split_features(d->width)};
    }
    fr_matrix_apply_whole(team, w, &weights->in_b,
                          &(fr_matrix_rows){gates_of(a, 0) + decays_of(spec), stride, a->normed, hidden, rows});
    if (weights->low_a.data) {
        fr_matrix_apply_whole(team, w, &weights->low_a, &(fr_matrix_rows){d->low_a, low, a->normed, hidden, rows});
        fr_matrix_apply_whole(team, w, &weights->low_z, &(fr_matrix_rows){d->low_z, low, a->normed, hidden, rows});
        fr_publish_own_input(team, w, d->low_a, low, low, rows);
        decays.x = d->low_a, decays.x_stride = low;
    }
    fr_matrix_apply_whole(team, w, &weights->in_a, &decays);
    if (weights->low_z.data) {
        fr_publish_own_input(team, w, d->low_z, low, low, rows);
        z.x = d->low_z, z.x_stride = low;
    }
    fr_part_rank(team, fr_deltanet_split(spec, spec->value_dim), &first, &last);
    fr_matrix_apply_share(team, w, &weights->in_z, first * spec->value_dim, last * spec->value_dim, &z);
    fr_publish_rows(team, shared, 3);
}

static void project(const fr_team *team, const fr_activations *a, const fr_deltanet_spec *spec,
                    const fr_deltanet_weights *weights) {
    const fr_workspace *w = &a->workspace;
    const fr_deltanet_rows *d = a->deltanet;
    size_t hidden = a->trunk->spec.hidden, rows = a->batch.count, heads = spec->value_heads, stride = a->conv->width;
    size_t each = spec->value_dim, first, last;
    const struct {
        const fr_matrix *matrix;
        float *out;
        size_t stride;
    } gates[] = {{&weights->in_a, gates_of(a, 0), stride},
                 {&weights->in_b, gates_of(a, 0) + heads, stride},
                 {&weights->in_ba, d->gates, 2 * heads}};
    for (size_t i = 0; i < sizeof gates / sizeof *gates; i++)
        if (gates[i].matrix->data)
            fr_matrix_apply_whole(team, w, gates[i].matrix,
                                  &(fr_matrix_rows){gates[i].out, gates[i].stride, a->normed, hidden, rows});
    fr_part_rank(team, fr_deltanet_split(spec, each), &first, &last);
    if (weights->in_z.data)
        fr_matrix_apply_share(team, w, &weights->in_z, first * each, last * each,
                              &(fr_matrix_rows){d->z, d->width, a->normed, hidden, rows});
    if (weights->in_qkv.data)
        fr_matrix_apply(team, w, &weights->in_qkv, &(fr_matrix_rows){a->conv->input, stride, a->normed, hidden, rows});
    if (spec->fused) project_fused(team, a, spec, &weights->in_qkvz);
}

void fr_deltanet_run(const fr_team *team, fr_activations *a, const fr_layer_spec *layer_spec, const fr_layer *layer,
                     bool ends_rows) {
    const fr_deltanet_spec *spec = &layer_spec->deltanet;
    const fr_deltanet_weights *weights = &layer->deltanet;
    const fr_deltanet_rows *d = a->deltanet;
    const fr_activations whole = *a;
    fr_input_norm(team, a, layer, a->trunk->spec.hidden);
    fr_team_sync(team);
    /* Each rank completes the convolution's inputs, because value heads may need keys of any key head, and rings keep
     * all inputs. A rank keeps only the states of its own heads. */
    if (spec->by_key) {
        project_by_key(team, a, spec, weights);
    } else {
        project(team, a, spec, weights);
        fr_publish_rows(team,
                        &(fr_shared_rows){a->conv->input, a->conv->width, a->batch.count,
                                          fr_split_features(weights->in_qkv.features)},
                        weights->in_qkv.data != NULL);
    }
    mix(team, a, spec, weights);
    fr_conv_save(team, a, spec->state);
    fr_team_sync(team);
    run_heads(team, a, spec, weights);
    float *seen = d->seen + (ends_rows ? a->keep * d->width : 0);
    if (ends_rows) fr_activations_narrow(a);
    fr_publish_input(team, &a->workspace, &weights->out,
                     &(fr_shared_rows){seen, d->width, a->batch.count, fr_deltanet_split(spec, spec->value_dim)});
    fr_conv_keep(team, &whole, spec->state);
    fr_matrix_apply(team, &a->workspace, &weights->out,
                    &(fr_matrix_rows){a->out, a->trunk->spec.hidden, seen, d->width, a->batch.count});
}
