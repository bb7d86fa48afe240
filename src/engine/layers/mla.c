/* Runs multi-head latent attention in the absorbed form: projections, norms, rotation, the latent cache, scores, the
 * output's projection. See parts.h; section 10 of quant/NUMERICS.md has the formulas.
 *
 * In: the stream. Out: out, which is added to the stream. The work is done in phases with barriers between them. In
 * each phase, a thread computes the rows, the weight's features or the heads that it owns:
 *
 *     rows      normed = input_norm(x)
 *     features  q_a, k = projections of normed; without q_a, the heads' queries; gates, if heads have them
 *     rows      q_a: norm; k: norm of the latent, rotate the rotary part, store; sigmoid(gates)
 *     features  heads = q(q_a), each with a nope and a rotary part
 *     heads     q = [k_b(nope part) ; rotary part, rotated]: queries that are compared with latents
 *     heads     attn = attention(q, cache): weighted sums of latents; one cached row per position serves all heads
 *     heads     heads = v_b(attn), each multiplied by its gate
 *     features  out = o(heads)
 *
 * The two products of a head are partitioned by heads and by tiles of their features. Every thread that has tiles of a
 * head quantizes that head's input itself, so no barrier is needed. */
#include <string.h>

#include "base/sizes.h"
#include "kernels/deltanet_gates.h"
#include "src/engine/layers/parts.h"

void fr_mla_layout(fr_activations *a, bool packed, fr_arena *arena, size_t max_rows, size_t threads) {
    const fr_trunk_spec *s = &a->trunk->spec;
    size_t widest = 0;
    for (size_t i = 0; i <= s->layers; i++) { /* layer s->layers is the MTP layer */
        const fr_layer_spec *layer = fr_spec_layer(s, i);
        const fr_attention_spec *attention = &layer->attention;
        const fr_mla_spec *mla = &layer->mla;
        if (layer->mixer != FR_MIXER_MLA) continue;
        size_t query = mla->nope + attention->head_dim - attention->latent;
        a->q_a_width = fr_larger(a->q_a_width, mla->q_lora);
        a->heads_width = fr_larger(a->heads_width, attention->heads * fr_larger(query, mla->value_dim));
        widest = fr_larger(widest, fr_larger(mla->nope, attention->latent));
        if (mla->gated) a->head_gates_width = attention->heads;
    }
    if (widest == 0) return;
    a->q_a = fr_arena_take(arena, max_rows * a->q_a_width, sizeof *a->q_a);
    a->heads = fr_arena_take(arena, max_rows * a->heads_width, sizeof *a->heads);
    if (a->head_gates_width)
        a->head_gates = fr_arena_take(arena, max_rows * a->head_gates_width, sizeof *a->head_gates);
    a->head_rows = max_rows;
    fr_workspace_layout(&a->head_products, a->kernels, arena, packed, NULL, threads * max_rows, widest);
}

static size_t rotary_of(const fr_attention_spec *spec) {
    return spec->head_dim - spec->latent;
}

/* Counts the values of one head's query before k_b is applied. They are its nope part and its rotary part. */
static size_t query_of(const fr_layer_spec *spec) {
    return spec->mla.nope + rotary_of(&spec->attention);
}

/* Computes the queries of the rank's heads for all rows. */
static void make_heads(const fr_team *team, const fr_activations *a, const fr_layer_spec *spec, const fr_matrix *q,
                       const float *x, size_t x_stride) {
    size_t each = query_of(spec), first, last;
    fr_part_rank(team, fr_attention_split(a, &spec->attention, each), &first, &last);
    fr_matrix_apply_share(team, &a->workspace, q, first * each, last * each,
                          &(fr_matrix_rows){a->heads, a->heads_width, x, x_stride, a->batch.count});
}

/* Computes q_a, the latents and the gates of all heads. Each rank computes all of them. */
static void project(const fr_team *team, const fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer) {
    const fr_mla_spec *mla = &spec->mla;
    size_t hidden = a->trunk->spec.hidden, rows = a->batch.count;
    if (mla->q_lora)
        fr_matrix_apply_whole(team, &a->workspace, &layer->mla.q_a,
                              &(fr_matrix_rows){a->q_a, a->q_a_width, a->normed, hidden, rows});
    else
        make_heads(team, a, spec, &layer->attention.q, a->normed, hidden);
    fr_matrix_apply_whole(team, &a->workspace, &layer->mla.kv_a,
                          &(fr_matrix_rows){a->k, a->kv_width, a->normed, hidden, rows});
    if (mla->gated)
        fr_matrix_apply_whole(team, &a->workspace, &layer->mla.gate,
                              &(fr_matrix_rows){a->head_gates, a->head_gates_width, a->normed, hidden, rows});
}

/* Rotates the rotary part of a head or of a latent row, in place. If the layer's heads are not rotated, nothing is
 * done. */
static void rotate(const fr_activations *a, const fr_attention_spec *spec, float *part, size_t row) {
    if (spec->no_rope) return;
    const fr_rope_spec *rope = &a->trunk->spec.rope[spec->rope];
    size_t at = row * (rope->dims / 2);
    fr_rope_fn *apply_rope = rope->neox ? a->kernels->rope_neox : a->kernels->rope_pairs;
    apply_rope(part, a->cosine[spec->rope] + at, a->sine[spec->rope] + at, rope->dims);
}

/* Norms and rotates a row's latent, and stores it in the cache's slot for the row's position. */
static void store_latent(const fr_activations *a, const fr_layer_spec *spec, const fr_mla_weights *weights,
                         size_t row) {
    const fr_attention_spec *attention = &spec->attention;
    const fr_row *of = &a->batch.rows[row];
    float *latent = a->k + row * a->kv_width;
    a->kernels->rmsnorm(latent, latent, weights->kv_a_norm, attention->latent, spec->mla.eps);
    rotate(a, attention, latent + attention->latent, row);
    const fr_kv_layer *cache = &a->batch.timelines[of->timeline]->layers[attention->kv];
    a->kernels->kv_store[cache->k.type](fr_kv_slot(cache, &cache->k, 0, (size_t)of->position), latent,
                                        attention->head_dim);
}

static void norm_and_store(const fr_team *team, const fr_activations *a, const fr_layer_spec *spec,
                           const fr_mla_weights *weights) {
    size_t begin, end, q_lora = spec->mla.q_lora;
    fr_part_rows(team, a->batch.count, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        store_latent(a, spec, weights, r);
        float *gates = spec->mla.gated ? a->head_gates + r * a->head_gates_width : NULL;
        if (gates) fr_deltanet_beta(gates, gates, spec->attention.heads); /* a sigmoid, computed in double */
        if (q_lora == 0) continue;
        float *q_a = a->q_a + r * a->q_a_width;
        a->kernels->rmsnorm(q_a, q_a, weights->q_a_norm, q_lora, spec->mla.eps);
        fr_matrix_input_row(&a->workspace, r, q_a, q_lora);
    }
}

/* Heads of rows. Consecutive rows are `stride` floats apart, and consecutive heads of a row are `each` floats apart. */
typedef struct fr_head_rows {
    float *at;
    size_t stride, each;
} fr_head_rows;

/* Multiplies one head's matrix with the head's part of every row; computes features [begin, end) of the products. If
 * there are gates, each product is multiplied by its row's gate for that head. */
static void apply_head(const fr_team *team, const fr_activations *a, const fr_matrix *matrix, size_t head, size_t begin,
                       size_t end, fr_head_rows y, fr_head_rows x, const float *gates) {
    fr_workspace mine = fr_workspace_from(&a->head_products, team->index * a->head_rows);
    for (size_t r = 0; r < a->batch.count; r++)
        fr_matrix_input_row(&mine, r, x.at + r * x.stride + head * x.each, matrix->cols);
    fr_matrix_apply_part(
        &mine, matrix, begin, end,
        &(fr_matrix_rows){y.at + head * y.each, y.stride, x.at + head * x.each, x.stride, a->batch.count});
    for (size_t r = 0; gates && r < a->batch.count; r++)
        a->kernels->scale(y.at + r * y.stride + head * y.each + begin, end - begin,
                          gates[r * a->head_gates_width + head]);
}

/* Computes y = matrices[head](x) for all rows and all heads of the rank. If there are gates, each product is multiplied
 * by its gate. */
static void apply_heads(const fr_team *team, const fr_activations *a, const fr_attention_spec *spec,
                        const fr_matrix *matrices, fr_head_rows y, fr_head_rows x, const float *gates) {
    size_t features = matrices->features, tiles = (features + FR_FEATURE_UNIT - 1) / FR_FEATURE_UNIT, begin, end;
    size_t first_head, last_head;
    fr_part_rank(team, fr_attention_split(a, spec, 1), &first_head, &last_head);
    fr_part_heads(team, last_head - first_head, tiles, &begin, &end);
    while (begin < end) {
        size_t head = first_head + begin / tiles, first = begin / tiles * tiles, last = fr_smaller(end, first + tiles);
        apply_head(team, a, &matrices[head], head, (begin - first) * FR_FEATURE_UNIT,
                   fr_smaller((last - first) * FR_FEATURE_UNIT, features), y, x, gates);
        begin = last;
    }
}

static void rotate_queries(const fr_team *team, const fr_activations *a, const fr_layer_spec *spec) {
    const fr_attention_spec *attention = &spec->attention;
    size_t rotary = rotary_of(attention), each = query_of(spec), rows = a->batch.count, first, last, begin, end;
    fr_part_rank(team, fr_attention_split(a, attention, each), &first, &last);
    fr_part_heads(team, last - first, rows, &begin, &end);
    for (; begin < end; begin++) {
        size_t row = begin % rows, head = first + begin / rows;
        const float *part = a->heads + row * a->heads_width + head * each + spec->mla.nope;
        float *q = a->q + row * a->q_width + head * attention->head_dim + attention->latent;
        memcpy(q, part, rotary * sizeof *q);
        rotate(a, attention, q, row);
    }
}

void fr_mla_run(const fr_team *team, fr_activations *a, const fr_layer_spec *spec, const fr_layer *layer,
                bool ends_rows) {
    const fr_attention_spec *attention = &spec->attention;
    const fr_mla_spec *mla = &spec->mla;
    fr_input_norm(team, a, layer, a->trunk->spec.hidden);
    fr_team_sync(team);
    project(team, a, spec, layer);
    fr_team_sync(team);
    norm_and_store(team, a, spec, &layer->mla);
    fr_team_sync(team);
    if (mla->q_lora) {
        make_heads(team, a, spec, &layer->attention.q, a->q_a, a->q_a_width);
        fr_team_sync(team);
    }
    if (ends_rows) fr_activations_narrow(a);
    apply_heads(team, a, attention, layer->mla.heads.k_b, (fr_head_rows){a->q, a->q_width, attention->head_dim},
                (fr_head_rows){a->heads, a->heads_width, query_of(spec)}, NULL);
    rotate_queries(team, a, spec);
    fr_team_sync(team);
    fr_attention_attend(team, a, attention, NULL);
    fr_team_sync(team);
    apply_heads(team, a, attention, layer->mla.heads.v_b, (fr_head_rows){a->heads, a->heads_width, mla->value_dim},
                (fr_head_rows){a->attn, a->q_width, attention->latent}, mla->gated ? a->head_gates : NULL);
    fr_publish_input(
        team, &a->workspace, &layer->attention.o,
        &(fr_shared_rows){a->heads, a->heads_width, a->batch.count, fr_attention_split(a, attention, mla->value_dim)});
    fr_matrix_apply(team, &a->workspace, &layer->attention.o,
                    &(fr_matrix_rows){a->out, a->trunk->spec.hidden, a->heads, a->heads_width, a->batch.count});
}
