/* Mamba-2: a short convolution, and a state that fades from position to position and to which each position adds. See
 * parts.h.
 *
 * In: the residual stream x. Out: `out`, which is added to the stream. There are barriers between the phases of the
 * work. The first word says what the threads divide in a phase: rows, features of weights, heads, or groups of heads:
 *
 *     rows      normed = input_norm(x)
 *     features  z, inputs of the convolution, and for each head its time step: projections of normed
 *     heads     mixed = silu(convolution of this and earlier inputs): values, keys and queries; decay, time step
 *     heads     run the positions after the base again, then the rows (recurrent.h): seen = outputs of the states;
 *               seen * silu(z), if no norm follows
 *     groups    norm(seen * silu(z)), or norm(seen) * silu(z), over the values of one part of the heads
 *     features  out = o(seen); the rows' inputs are kept in the ring
 *
 * Keys and queries are called B and C in the paper. Source: Dao and Gu 2024, arXiv:2405.21060. quant/NUMERICS.md has
 * the operations in their order. */
#include <string.h>

#include "base/sizes.h"
#include "kernels/deltanet_gates.h"
#include "src/engine/layers/parts.h"

static size_t values_of(const fr_mamba_spec *spec) {
    return spec->heads * spec->head_dim;
}

static size_t keys_of(const fr_mamba_spec *spec) {
    return spec->groups * spec->state_dim;
}

/* Counts the channels of the convolution, which are the values of all heads and the keys and queries of all groups. */
static size_t channels_of(const fr_mamba_spec *spec) {
    return values_of(spec) + 2 * keys_of(spec);
}

fr_recurrent_shape fr_mamba_shape(const fr_mamba_spec *spec) {
    return (fr_recurrent_shape){.heads = spec->heads,
                                .key_dim = spec->state_dim,
                                .value_dim = spec->head_dim,
                                .channels = channels_of(spec),
                                .gates = 2 * spec->heads,
                                .conv_kernel = spec->conv_kernel};
}

fr_split fr_mamba_split(const fr_mamba_spec *spec, size_t each) {
    return fr_split_heads(spec->heads, spec->heads, each);
}

void fr_mamba_layout(fr_activations *a, const fr_layer_spec *layer, fr_arena *arena, size_t max_rows, size_t threads) {
    const fr_mamba_spec *spec = &layer->mamba;
    fr_mamba_rows m = {.channels = channels_of(spec), .width = values_of(spec)};
    fr_conv_layout(a, fr_mamba_shape(spec), arena, max_rows);
    fr_mamba_rows *place = fr_arena_take(arena, 1, sizeof *place);
    m.mixed = fr_arena_take(arena, max_rows * m.channels, sizeof *m.mixed);
    m.z = fr_arena_take(arena, max_rows * m.width, sizeof *m.z);
    m.seen = fr_arena_take(arena, max_rows * m.width, sizeof *m.seen);
    if (layer->mixer == FR_MIXER_BOTH)
        m.beside = fr_arena_take(arena, max_rows * a->trunk->spec.hidden, sizeof *m.beside);
    m.rerun_width = spec->state_dim + spec->head_dim;
    m.rerun = fr_arena_take(arena, threads * FR_STEP_MAX * m.rerun_width, sizeof *m.rerun);
    m.strip_size = fr_deltanet_scratch(spec->state_dim);
    m.strips = fr_arena_take(arena, threads * m.strip_size, sizeof *m.strips);
    m.run_size = FR_STEP_MAX + max_rows;
    m.runs = fr_arena_take(arena, threads * m.run_size, sizeof *m.runs);
    a->mamba = place;
    if (place) *place = m;
}

/* ------------------------------------------------------------------------------------------------------ projections */

/* Gives a row's decays, which its time steps follow in memory. As in the ring (recurrent.h), they come after the inputs
 * of the convolution. */
static float *gates_of(const fr_activations *a, size_t row) {
    return a->conv->input + row * a->conv->width + a->mamba->channels;
}

/* Adds a projection's bias to the features of all rows that belong to the thread. */
static void add_bias(const fr_team *team, const fr_activations *a, const fr_matrix_rows *rows, const float *bias,
                     size_t features) {
    size_t begin, end;
    fr_part_features(team, features, &begin, &end);
    for (size_t r = 0; r < rows->count && bias; r++)
        a->kernels->add(rows->y + r * rows->y_stride + begin, bias + begin, end - begin);
}

static void project(const fr_team *team, const fr_activations *a, const fr_mamba_spec *spec,
                    const fr_mamba_weights *weights) {
    const fr_workspace *w = &a->workspace;
    const fr_mamba_rows *m = a->mamba;
    size_t hidden = a->trunk->spec.hidden, rows = a->batch.count, stride = a->conv->width;
    const fr_matrix_rows z = {m->z, m->width, a->normed, hidden, rows};
    const fr_matrix_rows input = {a->conv->input, stride, a->normed, hidden, rows};
    const float *bias = weights->in_bias;
    fr_matrix_apply(team, w, &weights->in_z, &z);
    add_bias(team, a, &z, bias, m->width);
    fr_matrix_apply(team, w, &weights->in_xbc, &input);
    add_bias(team, a, &input, bias ? bias + m->width : NULL, m->channels);
    fr_matrix_apply_whole(team, w, &weights->in_dt,
                          &(fr_matrix_rows){gates_of(a, 0) + spec->heads, stride, a->normed, hidden, rows});
    /* Each rank completes all of these rows, because heads may need keys of any group, norms cover several heads, and
     * rings keep all inputs. A rank keeps only the states of its own heads. */
    const fr_shared_rows shared[] = {{m->z, m->width, rows, fr_split_features(m->width)},
                                     {a->conv->input, stride, rows, fr_split_features(m->channels)}};
    fr_publish_rows(team, shared, 2);
}

/* ------------------------------------------------------------------------------------------------------ convolution */

/* Computes the convolution for channels [from, from + n) of the inputs. */
static void convolve(const fr_activations *a, const fr_mamba_weights *weights, const float *const *inputs,
                     size_t conv_kernel, size_t from, size_t n, float *out) {
    const float *at[FR_CONV_KERNEL_MAX];
    for (size_t t = 0; t < conv_kernel; t++) at[t] = inputs[t] ? inputs[t] + from : NULL;
    a->kernels->short_conv(out, at, weights->conv + from, a->mamba->channels, conv_kernel,
                           weights->conv_bias ? weights->conv_bias + from : NULL, n);
}

/* Computes the values of one head of a row, or the keys or the queries of one group. `item` counts first the heads,
 * then the groups' keys, then the groups' queries. */
static void mix_item(const fr_activations *a, const fr_mamba_spec *spec, const fr_mamba_weights *weights, size_t row,
                     size_t item) {
    const fr_row *of = &a->batch.rows[row];
    const fr_recurrent *ring = &a->batch.timelines[of->timeline]->recurrent;
    const float *inputs[FR_CONV_KERNEL_MAX];
    bool value = item < spec->heads;
    size_t n = value ? spec->head_dim : spec->state_dim;
    size_t from = value ? item * n : values_of(spec) + (item - spec->heads) * n;
    fr_conv_collect(a, ring, &ring->layers[spec->state], (size_t)of->position, (int32_t)row, inputs);
    convolve(a, weights, inputs, spec->conv_kernel, from, n, a->mamba->mixed + row * a->mamba->channels + from);
}

static void mix(const fr_team *team, const fr_activations *a, const fr_mamba_spec *spec,
                const fr_mamba_weights *weights) {
    size_t rows = a->batch.count, begin, end;
    fr_part_rows(team, rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *decay = gates_of(a, r), *step = decay + spec->heads;
        if (weights->in_bias)
            a->kernels->add(step, weights->in_bias + a->mamba->width + a->mamba->channels, spec->heads);
        fr_mamba_gates(decay, step, weights->dt_bias, weights->decay, spec->step_min, spec->step_max, spec->heads);
    }
    fr_part_heads(team, spec->heads + 2 * spec->groups, rows, &begin, &end);
    for (size_t item = begin; item < end; item++) mix_item(a, spec, weights, item % rows, item / rows);
}

/* ----------------------------------------------------------------------------------------------------------- states */

/* A run is the unit of work of one thread: one head, for all rows of one timeline. */
typedef struct head_run {
    const fr_mamba_spec *spec;
    const fr_mamba_weights *weights;
    const fr_conv_span *span;
    const fr_recurrent *recurrent;
    const fr_recurrent_layer *states;
    size_t head, group;
    float *rerun, *strip;  /* memory of the thread. rerun: values and keys of positions that the thread runs again;
                            * strip: a strip of a state */
    fr_deltanet_row *rows; /* the rows to run: the positions after the base, then the rows of the batch */
    size_t count;
} head_run;

/* Computes the values of an earlier position again, from the inputs in the ring. keys_there: run->rerun already has the
 * position's keys, because the last head of the thread was in the same group. Otherwise the keys are computed too. */
static void rerun_position(const fr_activations *a, head_run *run, size_t position, size_t index, bool keys_there) {
    const fr_mamba_spec *spec = run->spec;
    const float *inputs[FR_CONV_KERNEL_MAX], *slot = fr_recurrent_slot(run->recurrent, run->states, position);
    float *key = run->rerun + index * a->mamba->rerun_width, *value = key + spec->state_dim;
    fr_conv_collect(a, run->recurrent, run->states, position, -1, inputs);
    if (!keys_there)
        convolve(a, run->weights, inputs, spec->conv_kernel, values_of(spec) + run->group * spec->state_dim,
                 spec->state_dim, key);
    convolve(a, run->weights, inputs, spec->conv_kernel, run->head * spec->head_dim, spec->head_dim, value);
    slot += a->mamba->channels;
    run->rows[index] =
        (fr_deltanet_row){.key = key, .value = value, .decay = slot[run->head], .beta = slot[spec->heads + run->head]};
}

/* Makes the kernel's row for a row of the batch. If several timelines share a row, only the row's own timeline writes
 * the row's output. */
static fr_deltanet_row row_of(const fr_activations *a, const head_run *run, size_t row) {
    const fr_mamba_spec *spec = run->spec;
    const fr_mamba_rows *m = a->mamba;
    const float *mixed = m->mixed + row * m->channels, *gates = gates_of(a, row);
    const float *keys = mixed + values_of(spec) + run->group * spec->state_dim;
    bool speaks = a->batch.timelines[a->batch.rows[row].timeline] == run->span->kv;
    return (fr_deltanet_row){.key = keys,
                             .query = speaks ? keys + keys_of(spec) : NULL,
                             .value = mixed + run->head * spec->head_dim,
                             .out = speaks ? m->seen + row * m->width + run->head * spec->head_dim : NULL,
                             .decay = gates[run->head],
                             .beta = gates[spec->heads + run->head]};
}

/* Runs a head over its rows. Stops at each position at which a copy of the state is wanted, and copies the state. */
static void run_head(const fr_activations *a, const head_run *run) {
    const fr_recurrent *r = run->recurrent;
    size_t size = fr_deltanet_state(run->spec->state_dim, run->spec->head_dim), done = 0;
    size_t state_at = run->states->state_at + (run->head - run->states->shape.before) * size;
    float *state = (float *)r->base + state_at, skip = run->weights->skip[run->head];
    fr_deltanet part = {
        .state = state, .key_dim = run->spec->state_dim, .value_dim = run->spec->head_dim, .scratch = run->strip};
    if (r->at == 0) memset(state, 0, size * sizeof *state);
    for (size_t i = 0; i < r->points; i++) {
        part.rows = run->rows + done;
        part.count = part.keeps = r->point[i].position - r->at - done;
        a->kernels->mamba(&part, skip);
        done += part.count;
        memcpy((float *)r->point[i].page + state_at, state, size * sizeof *state);
    }
    part.rows = run->rows + done;
    part.count = run->count - done;
    part.keeps = fr_larger(r->certain, r->at) - r->at - done;
    a->kernels->mamba(&part, skip);
}

/* Multiplies the outputs of the batch's rows by their gates, if no norm follows. */
static void gate_outputs(const fr_activations *a, const head_run *run) {
    const fr_mamba_rows *m = a->mamba;
    for (size_t i = run->span->position - run->recurrent->at; i < run->count && !run->spec->norm_groups; i++) {
        float *out = run->rows[i].out;
        if (out) a->kernels->silu_mul(out, m->z + (out - m->seen), out, run->spec->head_dim);
    }
}

/* Moves the states of this rank's heads over the rows. Each timeline's heads are divided among all threads, so that all
 * threads have work even if the batch has only one long prompt. */
static void run_heads(const fr_team *team, const fr_activations *a, const fr_mamba_spec *spec,
                      const fr_mamba_weights *weights) {
    const fr_mamba_rows *m = a->mamba;
    const fr_conv_rows *c = a->conv;
    const fr_conv_span *keys_of_span = NULL;
    size_t first, last, begin, end, keys_of_group = 0;
    head_run run = {.spec = spec,
                    .weights = weights,
                    .rerun = m->rerun + team->index * FR_STEP_MAX * m->rerun_width,
                    .strip = m->strips + team->index * m->strip_size,
                    .rows = m->runs + team->index * m->run_size};
    fr_part_rank(team, fr_mamba_split(spec, 1), &first, &last);
    fr_part_heads(team, last - first, c->span_count, &begin, &end);
    for (size_t item = begin; item < end; item++) {
        run.head = first + item / c->span_count;
        run.group = run.head / (spec->heads / spec->groups);
        run.span = &c->spans[item % c->span_count];
        run.recurrent = &run.span->kv->recurrent;
        run.states = &run.recurrent->layers[spec->state];
        size_t at = run.recurrent->at; /* the position of run.rows[0]; if that is before the batch's first row, the
                                        * positions between are run again */
        bool keys_there = keys_of_span == run.span && keys_of_group == run.group;
        run.count = (size_t)a->batch.rows[run.span->last].position + 1 - at;
        for (size_t p = at; p < run.span->position; p++) rerun_position(a, &run, p, p - at, keys_there);
        keys_of_span = run.span;
        keys_of_group = run.group;
        for (int32_t r = run.span->last; r >= 0; r = a->batch.rows[r].parent)
            run.rows[(size_t)a->batch.rows[r].position - at] = row_of(a, &run, (size_t)r);
        run_head(a, &run);
        gate_outputs(a, &run);
    }
}

/* Norms and gates the outputs of all rows. The heads' outputs are divided into spec->norm_groups groups, and each group
 * is normed as a whole. seen (the outputs), z (the gates): [rows, width]. */
static void norm_groups(const fr_team *team, const fr_activations *a, const fr_mamba_spec *spec, const float *norm,
                        float *seen, const float *z) {
    size_t rows = a->batch.count, width = a->mamba->width, n = width / spec->norm_groups, begin, end;
    fr_part_heads(team, spec->norm_groups, rows, &begin, &end);
    for (; begin < end; begin++) {
        size_t group = begin / rows, at = begin % rows * width + group * n;
        float *out = seen + at;
        if (!spec->norm_first) a->kernels->silu_mul(out, z + at, out, n);
        a->kernels->rmsnorm(out, out, norm + group * n, n, a->trunk->spec.eps);
        if (spec->norm_first) a->kernels->silu_mul(out, z + at, out, n);
    }
}

/* ------------------------------------------------------------------------------------------------------------ layer */

/* Computes the layer's output in out. */
static void run_layer(const fr_team *team, fr_activations *a, const fr_mamba_spec *spec, const fr_layer *layer,
                      bool ends_rows, float *out) {
    const fr_mamba_weights *weights = &layer->mamba;
    const fr_mamba_rows *m = a->mamba;
    const fr_activations whole = *a;
    size_t hidden = a->trunk->spec.hidden;
    fr_input_norm(team, a, layer, hidden);
    fr_team_sync(team);
    project(team, a, spec, weights);
    mix(team, a, spec, weights);
    fr_conv_save(team, a, spec->state);
    fr_team_sync(team);
    run_heads(team, a, spec, weights);
    size_t before = ends_rows ? a->keep * m->width : 0;
    if (ends_rows) fr_activations_narrow(a);
    const fr_shared_rows seen = {m->seen + before, m->width, a->batch.count, fr_mamba_split(spec, spec->head_dim)};
    if (spec->norm_groups) {
        fr_publish_rows(team, &seen, 1);
        norm_groups(team, a, spec, weights->norm, seen.at, m->z + before);
        fr_publish_own_input(team, &a->workspace, seen.at, seen.stride, m->width, seen.rows);
    } else {
        fr_publish_input(team, &a->workspace, &weights->out, &seen);
    }
    fr_conv_keep(team, &whole, spec->state);
    fr_matrix_apply(team, &a->workspace, &weights->out,
                    &(fr_matrix_rows){out, hidden, seen.at, m->width, a->batch.count});
}

void fr_mamba_run(const fr_team *team, fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer,
                  bool ends_rows) {
    run_layer(team, a, &spec->mamba, layer, ends_rows, a->out);
}

/* Each thread computes the same features of both outputs, attention's and Mamba's. So it can add its features without a
 * barrier. */
void fr_mamba_run_beside(const fr_team *team, fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer,
                         bool ends_rows) {
    size_t hidden = a->trunk->spec.hidden, begin, end;
    float *beside = a->mamba->beside + (ends_rows ? a->keep * hidden : 0);
    run_layer(team, a, &spec->mamba, layer, false, a->mamba->beside);
    fr_team_sync(team);
    fr_attention_run(team, a, spec, layer, ends_rows);
    fr_part_features(team, hidden, &begin, &end);
    for (size_t r = 0; r < a->batch.count; r++)
        a->kernels->add(a->out + r * hidden + begin, beside + r * hidden + begin, end - begin);
}
