/* Runs attention: projections, norms, rotation, the cache, scores, the output's projection. See parts.h.
 *
 * In: the residual stream x. Out: `out`, which is added to the stream. There are barriers between the phases of the
 * work. The first word says what the threads divide in a phase: rows, features of weights, or heads:
 *
 *     rows      normed = input_norm(x), or a->input instead
 *     features  q, k, v = projections of normed
 *     rows      q, k: bias, norm, if the norm is over all heads at once
 *     heads     q: bias, norm, rotate; k: bias, norm, rotate, store; v: bias, norm, store; or rotate before norm
 *     heads     attn = attention(q, cache)
 *     heads     attn = attn * sigmoid(gate), if there are gates; a gate follows its head's query, or has its own matrix
 *     features  out = o(attn)
 *
 * If weights are packed, the input rows of a product are quantized before the product. If threads computed whole rows,
 * each quantizes its own rows. Otherwise quantizing is a separate phase (fr_publish_input). */
#include <math.h>
#include <string.h>

#include "kernels/deltanet_gates.h"
#include "kernels/double_math.h"
#include "kernels/key_means.h"
#include "kernels/turbo.h"
#include "src/engine/layers/parts.h"

/* Computes the angles of one row in one rotary form. */
static void row_angles(const fr_activations *a, size_t form, size_t row) {
    const fr_rope_spec *rope = &a->trunk->spec.rope[form];
    size_t angles = rope->dims / 2;
    float *cosine = a->cosine[form] + row * angles, *sine = a->sine[form] + row * angles;
    const fr_row *of = &a->batch.rows[row];
    const fr_rope_position *position = &of->rope_position;
    bool rope_far = a->trunk->rope_far_inverse[form] && a->batch.timelines[of->timeline]->rope_far;
    const float *inverse = rope_far ? a->trunk->rope_far_inverse[form] : a->trunk->inverse[form];
    /* Axes alternate as long as they have angles left. */
    for (size_t i = 0; i < angles && rope->mrope_interleaved; i++) {
        size_t axis = i % FR_AXES, at = i < FR_AXES * rope->sections[axis] ? axis : 0;
        fr_rope_angles(inverse + i, 1, position->at[at], cosine + i, sine + i);
    }
    for (size_t axis = 0, at = 0; axis < FR_AXES && !rope->mrope_interleaved; at += rope->sections[axis++])
        fr_rope_angles(inverse + at, rope->sections[axis], position->at[axis], cosine + at, sine + at);
    if (rope->attention_factor == 0.0f || rope->attention_factor == 1.0f) return;
    a->kernels->scale(cosine, angles, rope->attention_factor);
    a->kernels->scale(sine, angles, rope->attention_factor);
}

void fr_rotations(const fr_team *team, const fr_activations *a) {
    const fr_trunk_spec *s = &a->trunk->spec;
    size_t begin, end;
    fr_part_rows(team, a->batch.count, &begin, &end);
    for (size_t i = 0; i < s->ropes; i++)
        for (size_t r = begin; r < end; r++) row_angles(a, i, r);
}

/* Gives the input rows of the projections. The distance between two rows, in floats, is the projections' number of
 * columns. */
static const float *input_of(const fr_activations *a) {
    return a->input ? a->input : a->normed;
}

void fr_input_norm(const fr_team *team, const fr_activations *a, const fr_layer *layer, size_t width) {
    size_t begin, end, hidden = a->trunk->spec.hidden;
    fr_part_rows(team, a->batch.count, &begin, &end);
    for (size_t r = begin; r < end && !a->input; r++)
        fr_norm_row(a, a->normed + r * hidden, a->x + r * hidden, layer->input_norm, layer->input_norm_bias);
    for (size_t r = begin; r < end; r++) fr_matrix_input_row(&a->workspace, r, input_of(a) + r * width, width);
}

/* Gives the number of values between the beginnings of the queries of two heads. */
static size_t query_step(const fr_attention_spec *spec) {
    return (spec->output_gate ? 2 : 1) * spec->head_dim;
}

/* Gives the KV layer that this layer reads. It is taken from the cache of the first row's timeline, because all caches
 * of the batch have the same shape. */
static const fr_kv_layer *kept_of(const fr_activations *a, const fr_attention_spec *spec) {
    return &a->batch.timelines[a->batch.rows->timeline]->layers[spec->kv];
}

fr_split fr_attention_split(const fr_activations *a, const fr_attention_spec *spec, size_t each) {
    return fr_split_heads(spec->heads, a->batch.count ? kept_of(a, spec)->all : spec->kv_heads, each);
}

/* Computes the projections of keys and values for the heads that this rank keeps. These are the heads that the rank's
 * queries read. If a drafter reads the layer's keys and values, they are all heads. */
static void project_kv(const fr_team *team, const fr_activations *a, const fr_attention_spec *spec,
                       const fr_attention_weights *weights) {
    const fr_workspace *w = &a->workspace;
    const float *input = input_of(a);
    size_t width = weights->k.cols, rows = a->batch.count;
    const fr_kv_layer *kept = kept_of(a, spec);
    size_t first = kept->first * spec->head_dim, last = first + kept->heads * spec->head_dim;
    fr_matrix_apply_share(team, w, &weights->k, first, last, &(fr_matrix_rows){a->k, a->kv_width, input, width, rows});
    if (weights->v.data)
        fr_matrix_apply_share(team, w, &weights->v, first, last,
                              &(fr_matrix_rows){a->v, a->kv_width, input, width, rows});
}

/* Computes the projections of queries, keys and values. Queries are computed only for the heads of this rank. */
static void project(const fr_team *team, const fr_activations *a, const fr_attention_spec *spec,
                    const fr_attention_weights *weights) {
    const fr_workspace *w = &a->workspace;
    const float *input = input_of(a);
    size_t width = weights->q.cols, rows = a->batch.count, each = query_step(spec), head, end;
    fr_part_rank(team, fr_attention_split(a, spec, each), &head, &end);
    fr_matrix_apply_share(team, w, &weights->q, head * each, end * each,
                          &(fr_matrix_rows){a->q, a->q_width, input, width, rows});
    if (spec->owns_kv) project_kv(team, a, spec, weights);
    if (spec->own_gate)
        fr_matrix_apply_share(team, w, &weights->gate, head * spec->own_gate, end * spec->own_gate,
                              &(fr_matrix_rows){a->own_gates, a->own_gates_width, input, width, rows});
}

/* Applies one norm to all heads of a row together, in place. */
static void norm_wide(const fr_activations *a, float *heads, const float *bias, const float *norm, size_t width) {
    if (bias) a->kernels->add(heads, bias, width);
    a->kernels->rmsnorm(heads, heads, norm, width, a->trunk->spec.eps);
}

static void norm_rows(const fr_team *team, const fr_activations *a, const fr_attention_spec *spec,
                      const fr_attention_weights *weights) {
    size_t begin, end, n = spec->head_dim;
    fr_part_rows(team, a->batch.count, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        norm_wide(a, a->q + r * a->q_width, weights->q_bias, weights->q_norm, spec->heads * n);
        if (spec->owns_kv) norm_wide(a, a->k + r * a->kv_width, weights->k_bias, weights->k_norm, spec->kv_heads * n);
    }
}

/* Gives a head's part of a vector that has a part for each head. Gives NULL if there is no such vector, or if norm_rows
 * has already applied the vector. */
static const float *of_head(const fr_attention_spec *spec, const float *bias, size_t head) {
    return bias && !spec->qk_norm_wide ? bias + head * spec->head_dim : NULL;
}

/* Gives the weights of a head's norm. A LayerNorm has different weights for each head (Command R+); an RMSNorm has the
 * same weights for all heads. Gives NULL if the head has no norm, or if norm_rows has already applied the norm. */
static const float *norm_of_head(const fr_activations *a, const fr_attention_spec *spec, const float *norm,
                                 size_t head) {
    if (!norm || spec->qk_norm_wide) return NULL;
    return a->trunk->spec.layer_norm ? norm + head * spec->head_dim : norm;
}

/* Applies the norm to a head in place, if the head has a norm. */
static void norm_head(const fr_activations *a, const fr_attention_spec *spec, float *head, const float *norm) {
    if (norm && a->trunk->spec.layer_norm)
        a->kernels->layernorm(head, head, norm, NULL, spec->head_dim, a->trunk->spec.eps);
    else if (norm || spec->bare_qk_norm)
        a->kernels->rmsnorm(head, head, norm, spec->head_dim, a->trunk->spec.eps);
}

/* Limits the magnitude of a head's values. A NaN stays a NaN, because all comparisons with it are false. */
static void clamp_head(const fr_attention_spec *spec, float *head) {
    for (size_t i = 0; spec->clamp > 0.0F && i < spec->head_dim; i++)
        head[i] = head[i] > spec->clamp ? spec->clamp : head[i] < -spec->clamp ? -spec->clamp : head[i];
}

/* Applies bias, norm and rotation to a head of one row, in place. bias: the head's bias, or NULL if there is none.
 * norm: the norm's weights, or NULL if there is none. */
static void shape_head(const fr_activations *a, const fr_attention_spec *spec, float *head, const float *bias,
                       const float *norm, size_t row) {
    const fr_kernels *k = a->kernels;
    const fr_rope_spec *rope = &a->trunk->spec.rope[spec->rope];
    size_t angles = rope->dims / 2;
    fr_rope_fn *rotate = rope->neox ? k->rope_neox : k->rope_pairs;
    if (bias) k->add(head, bias, spec->head_dim);
    clamp_head(spec, head);
    if (!spec->norm_after_rope) norm_head(a, spec, head, norm);
    if (!spec->no_rope)
        rotate(head, a->cosine[spec->rope] + row * angles, a->sine[spec->rope] + row * angles, rope->dims);
    if (spec->norm_after_rope) norm_head(a, spec, head, norm);
}

/* Scales a query whose position is beyond the positions for which the model was trained. Sources: transformers 5.17,
 * model ministral3, and transformers 5.24, model llama4. Llama 4 counts positions from 1. */
static void scale_query(const fr_activations *a, const fr_attention_spec *spec, float *query, size_t row) {
    const fr_rope_spec *rope = &a->trunk->spec.rope[spec->rope];
    double beta = rope->query_beta, times = 0, position = a->batch.rows[row].position;
    if (beta != 0.0) times = floor(position / rope->original_context);
    if (spec->query_beta != 0.0) {
        beta = spec->query_beta;
        times = floor((position + 1) / (double)spec->query_every);
    }
    if (times < 1) return;
    a->kernels->scale(query, spec->head_dim, (float)(1 + beta * fr_log_double(1 + times)));
}

/* Finishes one key head and its value head of one row, and stores them in the slot of the row's position. The value is
 * finished first, because it may be made from the key before the key is changed. */
static void store_kv(const fr_activations *a, const fr_attention_spec *spec, const fr_attention_weights *weights,
                     size_t row, size_t head) {
    const fr_kernels *k = a->kernels;
    const fr_row *of = &a->batch.rows[row];
    size_t n = spec->head_dim, at = row * a->kv_width + head * n, position = (size_t)of->position;
    float *key = a->k + at, *value = spec->k_eq_v ? key : a->v + at, *stored = a->v + at;
    if (weights->v_bias) k->add(value, weights->v_bias + head * n, n);
    clamp_head(spec, value);
    if (spec->v_norm)
        k->rmsnorm(stored, value, NULL, n, a->trunk->spec.eps);
    else if (value != stored)
        memcpy(stored, value, n * sizeof *value);
    shape_head(a, spec, key, of_head(spec, weights->k_bias, head), norm_of_head(a, spec, weights->k_norm, head), row);
    const fr_kv_layer *cache = &a->batch.timelines[of->timeline]->layers[spec->kv];
    if (cache->key_means) fr_key_means_remove(&cache->key_means[head - cache->first], position, key);
    fr_kv_store(k, cache->k.type, fr_kv_slot(cache, &cache->k, head - cache->first, position), key, n);
    fr_kv_store(k, cache->v.type, fr_kv_slot(cache, &cache->v, head - cache->first, position), stored, n);
}

/* Applies biases, norms and rotation to keys and values, and stores them. Threads divide the heads, so that a thread
 * mostly reads values that it has written itself. */
static void store_heads(const fr_team *team, const fr_activations *a, const fr_attention_spec *spec,
                        const fr_attention_weights *weights) {
    const fr_kv_layer *kept = kept_of(a, spec);
    size_t rows = a->batch.count, begin, end;
    fr_part_heads(team, kept->heads, rows, &begin, &end);
    for (size_t item = begin; item < end; item++) store_kv(a, spec, weights, item % rows, kept->first + item / rows);
}

/* Scales and rotates a query for a cache that stores keys as codes, because those keys were scaled and rotated. */
static void fit_query(const fr_activations *a, const fr_kv_layer *kept, size_t kv_head, float *query) {
    if (kept->key_means) a->kernels->mul(query, kept->key_means[kv_head - kept->first].query_scale, kept->head_dim);
    fr_turbo_rotate(a->kernels, query, kept->head_dim);
}

/* Adds the squares of the queries' values to the sums of the key heads that the queries read, in the order of rows and
 * heads. If ranks divide the heads, each rank first gets all queries, because queries of several ranks may read the
 * same key head. */
static void count_queries(const fr_team *team, const fr_activations *a, const fr_attention_spec *spec) {
    const fr_kv_layer *kept = kept_of(a, spec);
    const fr_split heads = fr_attention_split(a, spec, query_step(spec));
    size_t n = spec->head_dim, group = heads.count / heads.groups, begin, end;
    fr_publish_rows(team, &(fr_shared_rows){a->q, a->q_width, a->batch.count, heads}, 1);
    fr_part_heads(team, kept->heads, 1, &begin, &end);
    for (size_t head = begin; head < end; head++)
        for (size_t i = 0; i < a->batch.count * group; i++) {
            const float *query =
                a->q + i / group * a->q_width + ((kept->first + head) * group + i % group) * query_step(spec);
            for (size_t j = 0; j < n; j++) kept->query_squares[head * n + j] += (double)query[j] * (double)query[j];
        }
}

/* Applies biases, norms and rotation to queries. Does the same with keys and values, and stores them. Threads divide
 * the queries as in attention. */
static void shape_and_store(const fr_team *team, const fr_activations *a, const fr_attention_spec *spec,
                            const fr_attention_weights *weights) {
    size_t rows = a->batch.count, first, last, begin, end;
    const fr_kv_layer *kept = kept_of(a, spec);
    const fr_split heads = fr_attention_split(a, spec, query_step(spec));
    fr_part_rank(team, heads, &first, &last);
    fr_part_heads(team, last - first, rows, &begin, &end);
    for (size_t item = begin; item < end; item++) {
        size_t row, head;
        fr_attend_place(item, rows, last - first, fr_kv_heads_of(&heads, first, last), &row, &head);
        head += first;
        float *query = a->q + row * a->q_width + head * query_step(spec);
        shape_head(a, spec, query, of_head(spec, weights->q_bias, head), norm_of_head(a, spec, weights->q_norm, head),
                   row);
        scale_query(a, spec, query, row);
        if (fr_turbo(kept->k.type)) fit_query(a, kept, head / (heads.count / heads.groups), query);
    }
    if (!spec->owns_kv) return;
    store_heads(team, a, spec, weights);
    if (kept->query_squares) count_queries(team, a, spec);
}

void fr_attention_store(const fr_team *team, const fr_activations *a, const fr_layer_spec *spec,
                        const fr_layer *layer) {
    project_kv(team, a, &spec->attention, &layer->attention);
    fr_team_sync(team);
    store_heads(team, a, &spec->attention, &layer->attention);
}

void fr_attention_attend(const fr_team *team, const fr_activations *a, const fr_attention_spec *spec,
                         const float *sinks) {
    const fr_split heads = fr_attention_split(a, spec, 1);
    size_t first, last;
    fr_part_rank(team, heads, &first, &last);
    if (a->batch.count == 0 || first == last) return;
    const fr_kv_layer *kept = kept_of(a, spec);
    const fr_attend_rows rows = {.kernels = a->kernels,
                                 .workspace = &a->attend,
                                 .batch = &a->batch,
                                 .sights = a->sights,
                                 .layer = spec->kv,
                                 .q = a->q + first * query_step(spec),
                                 .q_step = query_step(spec),
                                 .out = a->attn + first * kept->value_dim,
                                 .stride = a->q_width,
                                 .heads = last - first,
                                 .kv_first = first / (heads.count / heads.groups) - kept->first,
                                 .kv_heads = fr_kv_heads_of(&heads, first, last),
                                 .span = spec->window,
                                 .chunked = spec->chunked,
                                 .sees_block = spec->sees_block,
                                 .scale = spec->scale,
                                 .softcap = spec->softcap,
                                 .sinks = sinks ? sinks + first : NULL,
                                 .slopes = spec->alibi ? a->trunk->slopes + first : NULL,
                                 .slopes_stepped = spec->alibi_stepped};
    fr_attend_run(team, &rows);
}

/* Multiplies a head's output by its gate. */
static void gate_head(const fr_activations *a, const fr_attention_spec *spec, size_t row, size_t head) {
    const fr_kernels *k = a->kernels;
    size_t n = spec->head_dim;
    float *seen = a->attn + row * a->q_width + head * n, whole = 1;
    const float *gate = a->own_gates + row * a->own_gates_width + head * spec->own_gate;
    bool of_values = spec->own_gate > 1 || n == 1;
    if (spec->output_gate) {
        k->sigmoid_mul(seen, seen, a->q + row * a->q_width + head * query_step(spec) + n, n);
        return;
    }
    float *gated = of_values ? seen : &whole;
    size_t count = of_values ? n : 1;
    if (spec->gate_softplus)
        fr_softplus_mul(gated, gate, count);
    else
        k->sigmoid_mul(gated, gated, gate, count);
    if (!of_values) k->scale(seen, n, whole);
}

/* Multiplies the outputs of this rank's heads by their gates. */
static void gate_heads(const fr_team *team, const fr_activations *a, const fr_attention_spec *spec) {
    size_t n = spec->head_dim, rows = a->batch.count, first, last, begin, end;
    fr_part_rank(team, fr_attention_split(a, spec, n), &first, &last);
    fr_part_heads(team, last - first, rows, &begin, &end);
    for (; begin < end; begin++) gate_head(a, spec, begin % rows, first + begin / rows);
}

void fr_attention_run(const fr_team *team, fr_activations *a, const fr_layer_spec *layer_spec, const fr_layer *layer,
                      bool ends_rows) {
    const fr_attention_spec *spec = &layer_spec->attention;
    const fr_attention_weights *weights = &layer->attention;
    fr_input_norm(team, a, layer, weights->q.cols);
    fr_team_sync(team);
    project(team, a, spec, weights);
    /* A norm over all heads needs complete rows of queries and keys on each rank. */
    if (spec->qk_norm_wide) {
        const fr_split keys = fr_split_heads(spec->kv_heads, spec->kv_heads, spec->head_dim);
        const fr_shared_rows rows[] = {
            {a->q, a->q_width, a->batch.count, fr_attention_split(a, spec, query_step(spec))},
            {a->k, a->kv_width, a->batch.count, keys}};
        fr_publish_rows(team, rows, spec->owns_kv ? 2 : 1);
        norm_rows(team, a, spec, weights);
    }
    fr_team_sync(team);
    shape_and_store(team, a, spec, weights);
    fr_team_sync(team);
    if (ends_rows) fr_activations_narrow(a);
    fr_attention_attend(team, a, spec, weights->sinks);
    if (spec->output_gate || spec->own_gate) {
        fr_team_sync(team);
        gate_heads(team, a, spec);
    }
    fr_publish_input(
        team, &a->workspace, &weights->o,
        &(fr_shared_rows){a->attn, a->q_width, a->batch.count, fr_attention_split(a, spec, spec->head_dim)});
    fr_matrix_apply(team, &a->workspace, &weights->o,
                    &(fr_matrix_rows){a->out, a->trunk->spec.hidden, a->attn, a->q_width, a->batch.count});
}
