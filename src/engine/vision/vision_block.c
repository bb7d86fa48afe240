/* Runs a layer of a vision tower with a team of threads.
 *
 * In: activations whose stream x holds the layer's input. Out: x holds its output. Every patch attends to every patch;
 * in layers with windows, it attends only to the patches of its window:
 *
 *     chunks of rows   wide = norm1(x); qkv = qkv(wide)
 *     heads            q: norm, rotate; k: norm, rotate; v: norm; towers may lack any of these
 *     heads            attn = attention(q, k, v)
 *     chunks of rows   x += proj(attn); wide = norm2(x); gate = feed-forward's first half of wide; x += down(gate);
 *                      what is added may be normed first
 *
 * For the attention kernel, keys and values are a float32 cache. */
#include "src/engine/vision/tower.h"

#include <math.h>
#include <string.h>

#include "base/sizes.h"

void fr_vision_norm_row(const fr_vision *vision, const fr_vision_norm *norm, float *y, const float *x, size_t n) {
    const fr_kernels *k = vision->kernels;
    if (norm->bias)
        k->layernorm(y, x, norm->weight, norm->bias, n, vision->config.eps);
    else
        k->rmsnorm(y, x, norm->weight, n, vision->config.eps);
}

void fr_vision_apply(const fr_team *team, const fr_vision_activations *a, const fr_matrix *matrix, const float *bias,
                     const fr_matrix_rows *rows) {
    size_t begin, end;
    fr_matrix_apply(team, &a->workspace, matrix, rows);
    if (!bias) return;
    fr_part_features(team, matrix->features, &begin, &end);
    for (size_t r = 0; r < rows->count; r++)
        a->vision->kernels->add(rows->y + r * rows->y_stride + begin, bias + begin, end - begin);
}

/* Copies a row; values outside of the bounds are set to the nearer bound. y may be x. */
static void clip_row(float *y, const float *x, size_t n, float least, float most) {
    for (size_t i = 0; i < n; i++) y[i] = x[i] < least ? least : x[i] > most ? most : x[i];
}

void fr_vision_apply_clipped(const fr_team *team, const fr_vision_activations *a, const fr_matrix *matrix,
                             const float *bias, const fr_vision_clip *clip, const fr_matrix_rows *rows) {
    size_t begin, end;
    if (!clip) {
        fr_vision_apply(team, a, matrix, bias, rows);
        return;
    }
    fr_team_sync(team); /* the product before this one may still read the clipped rows */
    fr_part_rows(team, rows->count, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *clipped = a->clipped + r * a->clipped_width;
        clip_row(clipped, rows->x + r * rows->x_stride, matrix->cols, clip->input_min, clip->input_max);
        fr_matrix_input_row(&a->workspace, r, clipped, matrix->cols);
    }
    fr_team_sync(team);
    const fr_matrix_rows inner = {rows->y, rows->y_stride, a->clipped, a->clipped_width, rows->count};
    fr_vision_apply(team, a, matrix, bias, &inner);
    fr_part_features(team, matrix->features, &begin, &end);
    for (size_t r = 0; r < rows->count; r++) {
        float *y = rows->y + r * rows->y_stride + begin;
        clip_row(y, y, end - begin, clip->output_min, clip->output_max);
    }
}

void fr_vision_feed(const fr_team *team, const fr_vision_activations *a, const fr_vision_ffn *ffn,
                    const fr_matrix_rows *rows) {
    const fr_kernels *k = a->vision->kernels;
    bool gated = ffn->gate && ffn->gate->features > 0;
    size_t begin, end;
    fr_matrix_rows of_up = *rows;
    const fr_vision_clip *of_gate = ffn->clips ? &ffn->clips[FR_VISION_GATE] : NULL;
    if (gated) {
        fr_vision_apply_clipped(team, a, ffn->gate, ffn->gate_bias, of_gate, rows);
        of_up.y = a->up;
    }
    fr_vision_apply_clipped(team, a, ffn->up, ffn->up_bias, ffn->clips ? &ffn->clips[FR_VISION_UP] : NULL, &of_up);
    fr_part_features(team, ffn->up->features, &begin, &end);
    for (size_t r = 0; r < rows->count; r++) {
        float *row = rows->y + r * rows->y_stride + begin;
        const float *up = gated ? a->up + r * rows->y_stride + begin : a->ones;
        switch (ffn->activation) {
        case FR_VISION_SILU: k->silu_mul(row, row, up, end - begin); break;
        case FR_VISION_GELU_TANH: k->gelu_mul(row, row, up, end - begin); break;
        case FR_VISION_GELU_ERF:
            k->gelu_erf(row, row, end - begin);
            if (gated) k->mul(row, up, end - begin);
            break;
        }
    }
}

static void norm_rows(const fr_team *team, const fr_vision_activations *a, const fr_vision_norm *norm, size_t first,
                      size_t rows) {
    size_t hidden = a->vision->config.hidden, begin, end;
    fr_part_rows(team, rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *wide = a->wide + r * a->wide_width;
        fr_vision_norm_row(a->vision, norm, wide, a->x + (first + r) * hidden, hidden);
        fr_matrix_input_row(&a->workspace, r, wide, hidden);
    }
    fr_team_sync(team);
}

/* Adds `narrow` to the stream's rows from `first` on. If there is a norm, it is applied to `narrow` first. */
static void join(const fr_team *team, const fr_vision_activations *a, const fr_vision_norm *norm, size_t first,
                 size_t rows) {
    size_t hidden = a->vision->config.hidden, begin, end;
    fr_publish_rows(team, NULL, 0);
    fr_part_rows(team, rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *narrow = a->narrow + r * a->narrow_width;
        if (norm->weight) fr_vision_norm_row(a->vision, norm, narrow, narrow, hidden);
        a->vision->kernels->add(a->x + (first + r) * hidden, narrow, hidden);
    }
}

/* Gives the bounds of a layer's product; NULL: it is not clipped. */
static const fr_vision_clip *clip_of(const fr_vision_activations *a, const fr_vision_layer *layer,
                                     fr_vision_product product) {
    return a->vision->config.clipped ? &layer->clips[product] : NULL;
}

static void project(const fr_team *team, const fr_vision_activations *a, const fr_vision_layer *layer, size_t first,
                    size_t rows) {
    size_t hidden = a->vision->config.hidden, width = 3 * hidden;
    norm_rows(team, a, &layer->norm1, first, rows);
    for (size_t i = 0; i < layer->qkv_count; i++)
        fr_vision_apply_clipped(
            team, a, &layer->qkv[i], layer->qkv_bias[i], clip_of(a, layer, (fr_vision_product)(FR_VISION_Q + i)),
            &(fr_matrix_rows){a->qkv + first * width + i * hidden, width, a->wide, a->wide_width, rows});
    fr_team_sync(team);
}

static void norm_and_rotate(const fr_team *team, const fr_vision_activations *a, const fr_vision_layer *layer) {
    const fr_vision_config *c = &a->vision->config;
    const fr_kernels *k = a->vision->kernels;
    size_t n = c->hidden / c->heads, begin, end;
    fr_part_heads(team, c->heads, a->patches, &begin, &end);
    for (size_t item = begin; item < end && (layer->q_norm || c->theta > 0); item++) {
        size_t patch = item % a->patches, head = item / a->patches;
        float *query = a->qkv + patch * 3 * c->hidden + head * n, *key = query + c->hidden;
        const float *cosine = a->cosine + patch * (n / 2), *sine = a->sine + patch * (n / 2);
        if (layer->q_norm) {
            k->rmsnorm(query, query, layer->q_norm, n, c->eps);
            k->rmsnorm(key, key, layer->k_norm, n, c->eps);
        }
        if (c->v_norm) k->rmsnorm(key + c->hidden, key + c->hidden, NULL, n, c->eps);
        if (c->rope_halves) { /* the row's angles come first, then the column's (read_patches) */
            for (size_t half = 0; half < 2; half++) {
                size_t from = half ? 0 : n / 4;
                k->rope_neox(query + half * (n / 2), cosine + from, sine + from, n / 2);
                k->rope_neox(key + half * (n / 2), cosine + from, sine + from, n / 2);
            }
        } else if (c->theta > 0) {
            fr_rope_fn *rotate = c->rope_pairs ? k->rope_pairs : k->rope_neox;
            rotate(query, cosine, sine, n);
            rotate(key, cosine, sine, n);
        }
    }
    fr_team_sync(team);
}

/* Copies the head's keys and values into rows that follow each other. The product often writes these rows whole pages
 * apart; the L1 cache can hold only a few such rows. */
static void gather_head(const fr_team *team, const fr_vision_activations *a, size_t head) {
    size_t hidden = a->vision->config.hidden, n = hidden / a->vision->config.heads, begin, end;
    fr_part_rows(team, a->patches, &begin, &end);
    for (size_t patch = begin; patch < end; patch++) {
        const float *key = a->qkv + patch * 3 * hidden + hidden + head * n;
        memcpy(a->keys + patch * a->head_width, key, n * sizeof *key);
        memcpy(a->values + patch * a->head_width, key + hidden, n * sizeof *key);
    }
    fr_team_sync(team);
}

/* Computes the attention of one head. Neighbouring queries share keys and values. Queries and outputs are copied to
 * rows that follow each other, for the same reason as keys. */
static void attend(const fr_team *team, const fr_vision_activations *a, bool windowed, size_t head) {
    const fr_vision_config *c = &a->vision->config;
    size_t n = c->hidden / c->heads, parts = c->merge * c->merge, begin, end;
    size_t stride = a->head_width, batch = FR_ATTEND_BATCH * stride;
    fr_attn_query *queries = a->attend.queries + team->index * FR_ATTEND_BATCH;
    float *q = a->batches + team->index * 2 * batch, *out = q + batch;
    fr_attn attn = {.k_pages = a->key_pages,
                    .v_pages = a->value_pages,
                    .k_type = FR_F32,
                    .v_type = FR_F32,
                    .k_stride = stride * sizeof(float),
                    .v_stride = stride * sizeof(float),
                    .head_dim = n,
                    .value_dim = n,
                    .scale = c->scale > 0.0F ? c->scale : (float)(1.0 / sqrt((double)n)),
                    .queries = queries,
                    .scratch = a->attend.scratch + team->index * a->attend.scratch_size};
    gather_head(team, a, head);
    fr_part_heads(team, 1, a->patches, &begin, &end);
    for (size_t first = begin; first < end; first += attn.count) {
        attn.count = fr_smaller(end - first, FR_ATTEND_BATCH);
        for (size_t i = 0; i < attn.count; i++) {
            const fr_vision_token *token = &a->tokens[(first + i) / parts];
            memcpy(q + i * stride, a->qkv + (first + i) * 3 * c->hidden + head * n, n * sizeof *q);
            queries[i] = (fr_attn_query){.q = q + i * stride,
                                         .out = out + i * stride,
                                         .first = windowed ? (int64_t)(token->first * parts) : 0,
                                         .last = (int64_t)(windowed ? (token->last + 1) * parts : a->patches) - 1};
        }
        a->vision->kernels->attn(&attn);
        for (size_t i = 0; i < attn.count; i++)
            memcpy(a->attn + (first + i) * a->attn_width + head * n, out + i * stride, n * sizeof *out);
    }
    fr_team_sync(team);
}

static void feed_forward(const fr_team *team, const fr_vision_activations *a, const fr_vision_layer *layer,
                         size_t first, size_t rows) {
    const fr_vision_config *c = &a->vision->config;
    const float *attn = a->attn + first * a->attn_width;
    fr_matrix_input_rows(team, &a->workspace, NULL, attn, a->attn_width, c->hidden, rows);
    fr_vision_apply_clipped(team, a, &layer->proj, layer->proj_bias, clip_of(a, layer, FR_VISION_PROJ),
                            &(fr_matrix_rows){a->narrow, a->narrow_width, attn, a->attn_width, rows});
    join(team, a, &layer->post_norm1, first, rows);
    norm_rows(team, a, &layer->norm2, first, rows);
    const fr_vision_ffn ffn = {
        &layer->gate, &layer->up, layer->gate_bias, layer->up_bias, c->clipped ? layer->clips : NULL, c->activation};
    fr_vision_feed(team, a, &ffn, &(fr_matrix_rows){a->gate, a->gate_width, a->wide, a->wide_width, rows});
    fr_publish_own_input(team, &a->workspace, a->gate, a->gate_width, c->ffn, rows);
    fr_vision_apply_clipped(team, a, &layer->down, layer->down_bias, clip_of(a, layer, FR_VISION_DOWN),
                            &(fr_matrix_rows){a->narrow, a->narrow_width, a->gate, a->gate_width, rows});
    join(team, a, &layer->post_norm2, first, rows);
    fr_team_sync(team);
}

static size_t count_chunks(const fr_vision_activations *a) {
    return (a->patches + FR_VISION_CHUNK - 1) / FR_VISION_CHUNK;
}

/* Counts the parts into which a layer is divided: each chunk of rows before attention, the rotation of all heads, the
 * attention of each head, and each chunk of rows after attention. */
size_t fr_vision_block_parts(const fr_vision_activations *a) {
    return 2 * count_chunks(a) + 1 + a->vision->config.heads;
}

void fr_vision_block_part(const fr_team *team, const fr_vision_activations *a, size_t layer, size_t part) {
    const fr_vision_layer *weights = &a->vision->layers[layer];
    const fr_tower *tower = a->vision->config.tower;
    size_t chunks = count_chunks(a), heads = a->vision->config.heads;
    if (part < chunks) {
        project(team, a, weights, part * FR_VISION_CHUNK, fr_vision_chunk(part * FR_VISION_CHUNK, a->patches));
    } else if (part == chunks) {
        norm_and_rotate(team, a, weights);
    } else if (part <= chunks + heads) {
        attend(team, a, a->vision->config.windowed[layer], part - chunks - 1);
    } else {
        size_t first = (part - chunks - heads - 1) * FR_VISION_CHUNK;
        feed_forward(team, a, weights, first, fr_vision_chunk(first, a->patches));
        if (part + 1 == fr_vision_block_parts(a) && tower->after_layer) tower->after_layer(team, a, layer);
    }
}

void fr_vision_block(const fr_team *team, const fr_vision_activations *a, size_t layer) {
    for (size_t part = 0; part < fr_vision_block_parts(a); part++) fr_vision_block_part(team, a, layer, part);
}
