/* A mixture of experts, which is a part of a feed-forward. See parts.h; router.c chooses the experts.
 *
 * In: the rows that the feed-forward reads, or the residual stream before it. Out: experts->sum, the weighted outputs
 * of each row's chosen experts. For each element, they are added in ascending order of the experts' numbers, by one fma
 * chain from 0 (quant/NUMERICS.md). So the result does not depend on which threads computed them. There are barriers
 * between the phases of the work. The first words say what the threads divide in a phase:
 *
 *     features    the router's products with all rows
 *     rows        each row's experts and weights
 *     one thread  pairs of a row and an expert, sorted by expert
 *     experts     if memory doesn't hold all experts, the system is asked to read the ones that are used next
 *     features    a mixture with a latent: the projection of all rows to the latent, which is the experts' input
 *     pairs       each pair's input, so that an expert's rows are adjacent
 *     tiles       activation(gate) * up of every pair; tiles of the chosen experts are divided among threads by cost
 *     features    down of every pair, and the chain
 *     features    a mixture with a latent: the projection of the sums back to the stream's width
 *
 * A router of Gemma 4 reads r = (rmsnorm(x) * scale) / sqrt(hidden), and its experts have a norm of their own. */
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "formats/map.h"
#include "src/engine/layers/parts.h"

/* With up to BYTES_BOUND rows, an expert takes as long as with a single row, because most of the time is spent reading
 * the expert's weights. */
enum { BYTES_BOUND = 4 };

/* Gives the width of the experts' input, which is also the width of their output. */
static size_t outer_of(const fr_activations *a, const fr_experts_spec *spec) {
    return spec->latent ? spec->latent : a->trunk->spec.hidden;
}

void fr_experts_layout(fr_activations *a, const fr_experts_spec *spec, bool packed, fr_arena *arena, size_t max_rows,
                       size_t threads) {
    size_t pairs = max_rows * spec->top_k, hidden = a->trunk->spec.hidden, outer = outer_of(a, spec);
    fr_experts_rows e = {0}, *place = fr_arena_take(arena, 1, sizeof *place);
    fr_workspace_layout(&e.workspace, a->kernels, arena, packed, a->trunk->rotations, pairs,
                        fr_larger(fr_larger(hidden, outer), spec->width));
    e.scores = fr_arena_take(arena, max_rows * spec->count, sizeof(float));
    if (spec->parallel) e.routed = fr_arena_take(arena, max_rows * hidden, sizeof(float));
    if (spec->parallel) e.normed = fr_arena_take(arena, max_rows * hidden, sizeof(float));
    if (spec->latent) e.normed = fr_arena_take(arena, max_rows * outer, sizeof(float));
    if (spec->latent) e.latent = fr_arena_take(arena, max_rows * outer, sizeof(float));
    e.input = fr_arena_take(arena, pairs * outer, sizeof(float));
    e.inner = fr_arena_take(arena, pairs * 2 * spec->width, sizeof(float));
    e.output = fr_arena_take(arena, pairs * outer, sizeof(float));
    e.sum = fr_arena_take(arena, max_rows * hidden, sizeof(float));
    e.adapters = fr_arena_take(arena, pairs, sizeof *e.adapters);
    e.row = fr_arena_take(arena, pairs, sizeof(int32_t));
    e.weight = fr_arena_take(arena, pairs, sizeof(float));
    e.first = fr_arena_take(arena, spec->count + 1, sizeof(size_t));
    e.chosen = fr_arena_take(arena, pairs, sizeof(int32_t));
    e.chosen_weight = fr_arena_take(arena, pairs, sizeof(float));
    e.choices = fr_arena_take(arena, 2 * threads * spec->count, sizeof(float));
    e.scratch = fr_arena_take(arena, 2 * threads * spec->count, sizeof(int32_t));
    a->experts = place;
    if (place) *place = e;
}

void fr_experts_prepare(const fr_activations *a, const fr_experts_weights *weights, size_t row) {
    const fr_kernels *k = a->kernels;
    size_t hidden = a->trunk->spec.hidden;
    const float *x = a->x + row * hidden;
    float *routed = a->experts->routed + row * hidden, eps = a->trunk->spec.eps;
    k->rmsnorm(routed, x, weights->router_scale, hidden, eps);
    k->scale(routed, hidden, (float)(1.0 / sqrt((double)hidden)));
    fr_matrix_input_row(&a->experts->workspace, row, routed, hidden);
    k->rmsnorm(a->experts->normed + row * hidden, x, weights->pre_norm, hidden, eps);
}

void fr_experts_score(const fr_team *team, const fr_activations *a, const fr_experts_spec *spec,
                      const fr_experts_weights *weights) {
    const fr_experts_rows *m = a->experts;
    size_t hidden = a->trunk->spec.hidden;
    fr_workspace workspace = spec->parallel ? m->workspace : a->workspace;
    workspace.adapters = a->workspace.adapters;
    fr_matrix_apply_whole(
        team, &workspace, &weights->router,
        &(fr_matrix_rows){m->scores, spec->count, spec->parallel ? m->routed : a->normed, hidden, a->batch.count});
    if (spec->latent)
        fr_matrix_apply_whole(team, &a->workspace, &weights->latent_in,
                              &(fr_matrix_rows){m->normed, spec->latent, a->normed, hidden, a->batch.count});
}

/* Sorts the pairs of all rows by expert, and then by row, with a counting sort. */
static void sort_pairs(const fr_activations *a, const fr_experts_spec *spec) {
    fr_experts_rows *m = a->experts;
    size_t pairs = a->batch.count * spec->top_k, *first = m->first;
    memset(first, 0, (spec->count + 1) * sizeof *first);
    for (size_t i = 0; i < pairs; i++) first[m->chosen[i] + 1]++;
    for (size_t e = 0; e < spec->count; e++) first[e + 1] += first[e];
    for (size_t i = 0; i < pairs; i++) {
        size_t at = first[m->chosen[i]]++;
        m->row[at] = (int32_t)(i / spec->top_k);
        m->weight[at] = m->chosen_weight[i];
    }
    /* Filling has moved first[e] to the end of expert e. */
    for (size_t e = spec->count; e > 0; e--) first[e] = first[e - 1];
    first[0] = 0;
    m->use.all += spec->count;
    m->use.pairs += pairs;
    for (size_t e = 0; e < spec->count; e++) m->use.read += first[e + 1] > first[e];
}

/* A range of bytes that the operating system is asked to read by one call. */
typedef struct stretch {
    const uint8_t *begin;
    size_t bytes;
} stretch;

/* Extends the range by a matrix if the matrix begins where the range ends. Otherwise asks the operating system to read
 * the range, and begins a new range with the matrix. */
static void prefetch(stretch *s, const fr_matrix *matrix) {
    size_t bytes = fr_matrix_bytes(matrix);
    if (s->bytes && s->begin + s->bytes == matrix->data) {
        s->bytes += bytes;
        return;
    }
    fr_map_ahead(s->begin, s->bytes);
    *s = (stretch){matrix->data, bytes};
}

/* Asks the operating system to read some of the chosen experts, in the order in which they are used. The threads divide
 * the chosen experts. */
static void read_ahead(const fr_team *team, const fr_activations *a, const fr_experts_spec *spec,
                       const fr_experts_weights *weights) {
    const size_t *first = a->experts->first;
    size_t begin, end, chosen = 0;
    for (size_t e = 0; e < spec->count; e++) chosen += first[e + 1] > first[e];
    fr_part_pairs(team, chosen, &begin, &end);
    stretch s = {0};
    for (int down = 0; down < 2; down++) {
        for (size_t e = 0, at = 0; e < spec->count && at < end; e++) {
            if (first[e + 1] == first[e] || at++ < begin) continue;
            prefetch(&s, down ? &weights->down[e] : &weights->gate[e]);
            if (!down && weights->up) prefetch(&s, &weights->up[e]);
        }
    }
    fr_map_ahead(s.begin, s.bytes);
}

/* Copies the rows of each expert next to each other, so that one product can multiply all of them. If weights multiply
 * the experts' inputs, the weights of the outputs are then set to 1. */
static void gather(const fr_team *team, const fr_activations *a, const fr_experts_spec *spec,
                   const fr_experts_weights *weights) {
    const fr_experts_rows *m = a->experts;
    size_t outer = outer_of(a, spec), begin, end;
    const float *normed = m->normed ? m->normed : a->normed;
    fr_part_pairs(team, m->first[spec->count], &begin, &end);
    for (size_t p = begin; p < end; p++) {
        size_t row = (size_t)m->row[p];
        memcpy(m->input + p * outer, normed + row * outer, outer * sizeof(float));
        if (a->workspace.adapters) m->adapters[p] = a->workspace.adapters[row];
        if (weights->latent_in_bias) a->kernels->add(m->input + p * outer, weights->latent_in_bias, outer);
        if (spec->weighs_input) {
            a->kernels->scale(m->input + p * outer, outer, m->weight[p]);
            /* A NaN must reach the output, but would be lost when inputs are quantized to integers. */
            if (!isnan(m->weight[p])) m->weight[p] = 1;
        }
        fr_matrix_input_row(&m->workspace, p, m->input + p * outer, outer);
    }
}

/* Gives the workspace for the products of `pair` and the pairs after it. */
static fr_workspace workspace_of(const fr_activations *a, size_t pair) {
    fr_workspace workspace = fr_workspace_from(&a->experts->workspace, pair);
    workspace.adapters = a->workspace.adapters ? a->experts->adapters + pair : NULL;
    return workspace;
}

/* Computes activation(gate) * up of all pairs of an expert, for the features [begin, end). */
static void expert_in(const fr_activations *a, const fr_experts_spec *spec, const fr_experts_weights *weights,
                      size_t expert, size_t begin, size_t end) {
    const fr_kernels *k = a->kernels;
    const fr_experts_rows *m = a->experts;
    size_t ffn = spec->width, stride = 2 * ffn, outer = outer_of(a, spec);
    size_t p = m->first[expert], rows = m->first[expert + 1] - p;
    const float *input = m->input + p * outer;
    float *inner = m->inner + p * stride;
    fr_workspace workspace = workspace_of(a, p);
    fr_matrix_apply_part(&workspace, &weights->gate[expert], begin, end,
                         &(fr_matrix_rows){inner, stride, input, outer, rows});
    if (!spec->ungated)
        fr_matrix_apply_part(&workspace, &weights->up[expert], begin, end,
                             &(fr_matrix_rows){inner + ffn, stride, input, outer, rows});
    for (size_t r = 0; r < rows; r++) {
        float *gate = inner + r * stride + begin, *up = gate + ffn;
        if (weights->gate_bias) k->add(gate, weights->gate_bias + expert * ffn + begin, end - begin);
        if (weights->up_bias) k->add(up, weights->up_bias + expert * ffn + begin, end - begin);
        if (spec->ungated)
            fr_activate_ungated(k, spec->activation, gate, up, end - begin);
        else if (spec->activation == FR_CLAMPED_SWIGLU)
            k->clamped_swiglu(gate, gate, up, end - begin, spec->limit);
        else
            fr_activate(k, spec->activation, gate, up, end - begin);
    }
}

/* Gives the cost of one tile of an expert that has `rows` rows. If there are few rows, the cost is that of reading the
 * tile's bytes. */
static size_t tile_cost(size_t rows) {
    return rows == 0 ? 0 : rows < BYTES_BOUND ? BYTES_BOUND : rows;
}

/* Finds the first tile of an expert that begins at or after `cost`. Imagine the tiles of all experts on a line, where
 * the length of a tile is its cost. first: the place where the expert's first tile begins; each: the cost of one of its
 * tiles. */
static size_t tile_at(size_t cost, size_t first, size_t each, size_t tiles) {
    size_t tile = cost > first ? (cost - first + each - 1) / each : 0;
    return tile < tiles ? tile : tiles;
}

/* Runs the tiles of all experts. The tiles are put on a line, which is divided into one part of equal cost for each
 * thread. Dividing the experts themselves among the threads would be uneven: a single expert may be too narrow for a
 * team, and experts have different numbers of rows. Only tiles in this rank's part of the features are run. */
static void experts_in(const fr_team *team, const fr_activations *a, const fr_experts_spec *spec,
                       const fr_experts_weights *weights) {
    const size_t *first = a->experts->first;
    size_t all = 0, before = 0, share, share_end, begin, end;
    fr_part_rank(team, fr_split_features(spec->width), &share, &share_end);
    size_t tiles = (share_end - share + FR_FEATURE_UNIT - 1) / FR_FEATURE_UNIT;
    for (size_t e = 0; e < spec->count; e++) all += tiles * tile_cost(first[e + 1] - first[e]);
    fr_part_pairs(team, all, &begin, &end);
    for (size_t e = 0; e < spec->count && before < end; e++) {
        size_t each = tile_cost(first[e + 1] - first[e]);
        if (each == 0) continue;
        size_t from = share + tile_at(begin, before, each, tiles) * FR_FEATURE_UNIT;
        size_t to = share + tile_at(end, before, each, tiles) * FR_FEATURE_UNIT;
        before += tiles * each;
        if (to > share_end) to = share_end;
        if (from < to) expert_in(a, spec, weights, e, from, to);
    }
}

/* Adds up the weighted outputs of the experts, for the columns that the thread owns. These are columns of the stream,
 * or of the latent. */
static void experts_out(const fr_team *team, const fr_activations *a, const fr_experts_spec *spec,
                        const fr_experts_weights *weights) {
    const fr_kernels *k = a->kernels;
    const fr_experts_rows *m = a->experts;
    size_t stride = 2 * spec->width, outer = outer_of(a, spec), begin, end;
    float *sum = spec->latent ? m->latent : m->sum;
    fr_part_features(team, outer, &begin, &end);
    for (size_t r = 0; r < a->batch.count; r++) memset(sum + r * outer + begin, 0, (end - begin) * sizeof(float));
    for (size_t e = 0; e < spec->count; e++) {
        size_t p = m->first[e], rows = m->first[e + 1] - p;
        if (rows == 0) continue;
        fr_workspace workspace = workspace_of(a, p);
        fr_matrix_apply_part(&workspace, &weights->down[e], begin, end,
                             &(fr_matrix_rows){m->output + p * outer, outer, m->inner + p * stride, stride, rows});
        for (size_t i = p; i < p + rows; i++) {
            float *output = m->output + i * outer + begin;
            if (weights->down_bias) k->add(output, weights->down_bias + e * outer + begin, end - begin);
            k->axpy(sum + (size_t)m->row[i] * outer + begin, output, end - begin, m->weight[i]);
        }
    }
}

/* Projects the sums from the latent back to the stream's width. */
static void leave_latent(const fr_team *team, const fr_activations *a, const fr_experts_spec *spec,
                         const fr_experts_weights *weights) {
    const fr_experts_rows *m = a->experts;
    size_t hidden = a->trunk->spec.hidden, begin, end;
    const fr_shared_rows latent = {m->latent, spec->latent, a->batch.count, fr_split_features(spec->latent)};
    fr_workspace workspace = m->workspace;
    workspace.adapters = a->workspace.adapters;
    fr_publish_input(team, &workspace, &weights->latent_out, &latent);
    fr_matrix_apply(team, &workspace, &weights->latent_out,
                    &(fr_matrix_rows){m->sum, hidden, m->latent, spec->latent, a->batch.count});
    fr_part_features(team, hidden, &begin, &end);
    for (size_t r = 0; r < a->batch.count && weights->latent_out_bias; r++)
        a->kernels->add(m->sum + r * hidden + begin, weights->latent_out_bias + begin, end - begin);
}

void fr_experts_run(const fr_team *team, const fr_activations *a, const fr_experts_spec *spec,
                    const fr_experts_weights *weights) {
    size_t begin, end;
    fr_part_rows(team, a->batch.count, &begin, &end);
    for (size_t r = begin; r < end; r++) fr_experts_choose(a, spec, weights, r, team->index);
    fr_team_sync(team);
    if (team->index == 0) sort_pairs(a, spec);
    fr_team_sync(team);
    if (a->reads_ahead) read_ahead(team, a, spec, weights);
    gather(team, a, spec, weights);
    fr_team_sync(team);
    experts_in(team, a, spec, weights);
    fr_publish_input(team, &a->experts->workspace, weights->down,
                     &(fr_shared_rows){a->experts->inner, 2 * spec->width, a->experts->first[spec->count],
                                       fr_split_features(spec->width)});
    experts_out(team, a, spec, weights);
    if (spec->latent) leave_latent(team, a, spec, weights);
}

/* Computes the weight of the shared experts, sigmoid(gate . x). x is the row that the feed-forward has read. */
static float shared_weight(const fr_activations *a, const fr_experts_weights *weights, size_t row) {
    size_t hidden = a->trunk->spec.hidden;
    float gate;
    a->kernels->matmul[FR_F32](&(fr_matmul){.y = &gate,
                                            .x = a->normed + row * hidden,
                                            .rows = 1,
                                            .w = weights->shared_gate,
                                            .cols = hidden,
                                            .features = 1});
    gate = -gate;
    a->kernels->exp(&gate, &gate, 1);
    return 1.0f / (1.0f + gate);
}

void fr_experts_join(const fr_activations *a, const fr_layer_spec *spec, const fr_experts_weights *weights,
                     size_t row) {
    const fr_kernels *k = a->kernels;
    size_t hidden = a->trunk->spec.hidden;
    float *out = a->out + row * hidden, *routed = a->experts->sum + row * hidden, eps = a->trunk->spec.eps;
    if (spec->experts.parallel) {
        k->rmsnorm(out, out, weights->post_dense_norm, hidden, eps);
        k->rmsnorm(routed, routed, weights->post_norm, hidden, eps);
    }
    if (spec->experts.shared_gated && spec->ffn.width) k->scale(out, hidden, shared_weight(a, weights, row));
    if (spec->ffn.width)
        k->add(out, routed, hidden);
    else
        memcpy(out, routed, hidden * sizeof *out);
    if (spec->experts.halved && spec->ffn.width) k->scale(out, hidden, 0.5F);
}
