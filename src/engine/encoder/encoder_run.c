/* Runs a forward of a text encoder with a team of threads.
 *
 * In: the ids of texts. Out: the rows x after the last layer and its norm. `chunks` are steps that multiply a chunk of
 * the rows by a matrix; in `rows` threads divide the rows. The steps are:
 *
 *     embedding     x = words[id] * scale + types[type] + positions[position]; x = norm(x)
 *     chunks        qkv = qkv(norm1(x)), without the norm if norms come after branches
 *     rows          q and k: norm, rotate
 *     attention     encoder_attend.c
 *     chunks        branch = o(attention); x = norm1(x + branch), or x += branch; the feed-forward in the same way
 *
 * Keys and values are read where the product has written them. To the attention kernel, this memory looks like a
 * float32 cache. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sizes.h"
#include "kernels/rope_table.h"
#include "src/engine/encoder/encoder_parts.h"
#include "src/engine/weights/partition.h"

void fr_encoder_norm_row(const fr_encoder *encoder, const fr_encoder_norm *norm, float *y, const float *x, size_t n) {
    const fr_kernels *k = encoder->kernels;
    if (encoder->spec.rms)
        k->rmsnorm(y, x, norm->weight, n, encoder->spec.eps);
    else
        k->layernorm(y, x, norm->weight, norm->bias, n, encoder->spec.eps);
}

void fr_encoder_activate(const fr_kernels *k, fr_encoder_activation activation, float *y, const float *up, size_t n) {
    switch (activation) {
    case FR_ENCODER_GELU:
        k->gelu_erf(y, y, n);
        if (up) k->mul(y, up, n);
        return;
    case FR_ENCODER_GELU_TANH: k->gelu_mul(y, y, up, n); return;
    case FR_ENCODER_SILU: k->silu_mul(y, y, up, n); return;
    case FR_ENCODER_RELU:
        for (size_t i = 0; i < n; i++) y[i] = y[i] > 0 ? y[i] : 0;
        break;
    case FR_ENCODER_TANH: k->tanh(y, y, n); break;
    case FR_ENCODER_IDENTITY: break;
    }
    if (up) k->mul(y, up, n);
}

/* ----------------------------------------------------------------------------------------------------------- memory */

static void layout(fr_encoder_memory *m, fr_arena *arena) {
    const fr_encoder_spec *s = &m->encoder->spec;
    size_t rows = m->rows_max, chunk = fr_smaller(rows, FR_ENCODER_CHUNK), inner = s->heads * s->head_dim;
    m->qkv_width = inner + 2 * s->kv_heads * s->head_dim;
    m->page_count = fr_kv_blocks(rows);
    m->places = fr_arena_take(arena, rows, sizeof *m->places);
    m->position = fr_arena_take(arena, rows, sizeof *m->position);
    m->x = fr_arena_take(arena, rows * s->hidden, sizeof(float));
    m->qkv = fr_arena_take(arena, rows * m->qkv_width, sizeof(float));
    m->attn = fr_arena_take(arena, rows * inner, sizeof(float));
    m->pages = fr_arena_take(arena, m->threads * m->page_count, sizeof *m->pages);
    for (size_t i = 0; i < FR_ENCODER_REACHES; i++) {
        size_t angles = m->encoder->inverse[i] ? s->rope_dims / 2 : 0;
        m->cosine[i] = fr_arena_take(arena, rows * angles, sizeof(float));
        m->sine[i] = fr_arena_take(arena, rows * angles, sizeof(float));
    }
    m->wide = fr_arena_take(arena, chunk * s->hidden, sizeof(float));
    m->gate = fr_arena_take(arena, chunk * s->ffn, sizeof(float));
    m->up = fr_arena_take(arena, s->gated ? chunk * s->ffn : 0, sizeof(float));
    m->narrow = fr_arena_take(arena, chunk * s->hidden, sizeof(float));
    m->shares = fr_arena_take(arena, chunk * s->experts, sizeof(float));
    m->expert = fr_arena_take(arena, s->experts ? chunk * s->hidden : 0, sizeof(float));
    m->ones = fr_arena_take(arena, s->ffn, sizeof(float));
    for (size_t i = 0; m->ones && i < s->ffn; i++) m->ones[i] = 1.0F;
    m->biased_size = s->buckets || s->alibi ? (3 * rows + 15) / 16 * 16 : 0;
    m->biased = fr_arena_take(arena, m->threads * m->biased_size, sizeof(float));
    m->pooled = fr_arena_take(arena, 3 * s->hidden, sizeof(float));
    fr_attend_layout(&m->attend, arena, s->head_dim, m->threads);
    fr_workspace_layout(&m->workspace, m->encoder->kernels, arena, m->encoder->packed, NULL, chunk,
                        fr_larger(fr_larger(s->hidden, s->ffn), inner));
}

fr_status fr_encoder_memory_open(const fr_encoder *encoder, size_t rows, size_t threads, fr_encoder_memory **memory) {
    fr_encoder_memory *m = calloc(1, sizeof *m);
    *memory = NULL;
    if (!m) return fr_fail_memory("an encoder's memory", sizeof *m);
    *m = (fr_encoder_memory){.encoder = encoder, .rows_max = rows, .threads = threads};
    layout(m, &m->arena);
    fr_status status = fr_arena_open(&m->arena, m->arena.used, "an encoder's rows");
    if (status == FR_OK) {
        layout(m, &m->arena);
        status = fr_arena_check(&m->arena, "an encoder's rows");
    }
    if (status == FR_OK)
        *memory = m;
    else
        fr_encoder_memory_close(m);
    return status;
}

void fr_encoder_memory_close(fr_encoder_memory *m) {
    if (!m) return;
    fr_arena_close(&m->arena);
    free(m);
}

/* ------------------------------------------------------------------------------------------------------- the layers */

/* Computes y = matrix(x), and adds the bias to the features that belong to this thread. bias may be NULL. */
static void apply(const fr_team *team, const fr_encoder_memory *m, const fr_matrix *matrix, const float *bias,
                  const fr_matrix_rows *rows) {
    size_t begin, end;
    fr_matrix_apply(team, &m->workspace, matrix, rows);
    if (!bias) return;
    fr_part_features(team, matrix->features, &begin, &end);
    for (size_t r = 0; r < rows->count; r++)
        m->encoder->kernels->add(rows->y + r * rows->y_stride + begin, bias + begin, end - begin);
}

/* Prepares rows of x as the input of a product, after the norm if there is one. Returns the rows to multiply, which are
 * rows of x itself or the rows after the norm. */
static const float *prepare(const fr_team *team, const fr_encoder_memory *m, const fr_encoder_norm *norm, size_t first,
                            size_t rows) {
    size_t hidden = m->encoder->spec.hidden, begin, end;
    const float *x = m->x + first * hidden;
    bool normed = m->encoder->spec.pre_norm && norm->weight;
    fr_part_rows(team, rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *wide = m->wide + r * hidden;
        if (normed) fr_encoder_norm_row(m->encoder, norm, wide, x + r * hidden, hidden);
        fr_matrix_input_row(&m->workspace, r, normed ? wide : x + r * hidden, hidden);
    }
    fr_team_sync(team);
    return normed ? m->wide : x;
}

/* Adds a branch to rows of x. If the layer has the norm `post`, this norm is applied to the branch first. If norms come
 * after branches, the norm `norm` is applied to the sum. */
static void join(const fr_team *team, const fr_encoder_memory *m, const fr_encoder_norm *norm,
                 const fr_encoder_norm *post, size_t first, size_t rows) {
    const fr_encoder *e = m->encoder;
    size_t hidden = e->spec.hidden, begin, end;
    fr_team_sync(team);
    fr_part_rows(team, rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *narrow = m->narrow + r * hidden, *x = m->x + (first + r) * hidden;
        if (post->weight) fr_encoder_norm_row(e, post, narrow, narrow, hidden);
        e->kernels->add(x, narrow, hidden);
        if (!e->spec.pre_norm) fr_encoder_norm_row(e, norm, x, x, hidden);
    }
    fr_team_sync(team);
}

static void project(const fr_team *team, const fr_encoder_memory *m, const fr_encoder_layer *l, size_t first,
                    size_t rows) {
    const fr_encoder_spec *s = &m->encoder->spec;
    const float *x = prepare(team, m, &l->norm1, first, rows);
    float *y = m->qkv + first * m->qkv_width;
    for (size_t i = 0; i < l->qkv_count; i++) {
        apply(team, m, &l->qkv[i], l->qkv_bias[i], &(fr_matrix_rows){y, m->qkv_width, x, s->hidden, rows});
        y += l->qkv[i].features;
    }
    fr_team_sync(team);
}

/* Applies the norms of queries and keys to each head, and rotates the heads. */
static void rotate(const fr_team *team, const fr_encoder_memory *m, const fr_encoder_layer *l, size_t index) {
    const fr_encoder_spec *s = &m->encoder->spec;
    const fr_kernels *k = m->encoder->kernels;
    size_t heads = s->heads + s->kv_heads, reach = s->local[index], angles = s->rope_dims / 2, begin, end;
    if (!s->qk_norm && !s->rope_dims) return;
    fr_part_rows(team, m->rows, &begin, &end);
    for (size_t r = begin; r < end; r++)
        for (size_t h = 0; h < heads; h++) {
            float *head = m->qkv + r * m->qkv_width + h * s->head_dim;
            if (s->qk_norm) k->rmsnorm(head, head, h < s->heads ? l->q_norm : l->k_norm, s->head_dim, s->eps);
            if (s->rope_dims)
                (s->rope_pairs ? k->rope_pairs : k->rope_neox)(head, m->cosine[reach] + r * angles,
                                                               m->sine[reach] + r * angles, s->rope_dims);
        }
    fr_team_sync(team);
}

/* Turns the outputs of a router into shares. The shares are the softmax over all experts, but experts that are not
 * among the best get 0. Of equal experts, the first ones are chosen. */
static void choose_experts(const fr_encoder *e, float *shares) {
    size_t count = e->spec.experts;
    float most = shares[0];
    double sum = 0;
    for (size_t i = 1; i < count; i++) most = shares[i] > most ? shares[i] : most;
    for (size_t i = 0; i < count; i++) shares[i] -= most;
    e->kernels->exp(shares, shares, count);
    for (size_t i = 0; i < count; i++) sum += (double)shares[i];
    bool kept[FR_ENCODER_EXPERTS_MAX] = {false};
    for (size_t n = 0; n < e->spec.experts_used; n++) {
        size_t best = count;
        for (size_t i = 0; i < count; i++)
            if (!kept[i] && (best == count || shares[i] > shares[best])) best = i;
        if (best < count) kept[best] = true;
    }
    for (size_t i = 0; i < count; i++) shares[i] = kept[i] ? (float)((double)shares[i] / sum) : 0;
}

/* Runs one expert. The rows that have a share in the expert's output are gathered and run together, and the results are
 * added to m->narrow. All threads number these rows in the same way. */
static void run_expert(const fr_team *team, const fr_encoder_memory *m, const fr_encoder_layer *l, size_t expert,
                       const float *x, size_t rows) {
    const fr_encoder_spec *s = &m->encoder->spec;
    size_t hidden = s->hidden, count = 0, begin, end;
    for (size_t r = 0; r < rows; r++) {
        if (m->shares[r * s->experts + expert] == 0) continue;
        if (count % team->count == team->index) {
            memcpy(m->wide + count * hidden, x + r * hidden, hidden * sizeof *x);
            fr_matrix_input_row(&m->workspace, count, m->wide + count * hidden, hidden);
        }
        count++;
    }
    fr_team_sync(team);
    if (!count) return;
    apply(team, m, &l->expert_up[expert], NULL, &(fr_matrix_rows){m->gate, s->ffn, m->wide, hidden, count});
    fr_part_features(team, s->ffn, &begin, &end);
    for (size_t r = 0; r < count; r++)
        fr_encoder_activate(m->encoder->kernels, s->activation, m->gate + r * s->ffn + begin, m->ones, end - begin);
    fr_publish_own_input(team, &m->workspace, m->gate, s->ffn, s->ffn, count);
    apply(team, m, &l->expert_down[expert], NULL, &(fr_matrix_rows){m->expert, hidden, m->gate, s->ffn, count});
    fr_part_features(team, hidden, &begin, &end);
    count = 0;
    for (size_t r = 0; r < rows; r++) {
        float share = m->shares[r * s->experts + expert];
        if (share == 0) continue;
        m->encoder->kernels->axpy(m->narrow + r * hidden + begin, m->expert + count++ * hidden + begin, end - begin,
                                  share);
    }
    fr_team_sync(team);
}

/* Runs prepared rows through a mixture. Each row goes through its best experts, in the order of the experts'
 * numbers. */
static void mix(const fr_team *team, const fr_encoder_memory *m, const fr_encoder_layer *l, const float *x,
                size_t rows) {
    const fr_encoder_spec *s = &m->encoder->spec;
    size_t begin, end;
    apply(team, m, &l->router, NULL, &(fr_matrix_rows){m->shares, s->experts, x, s->hidden, rows});
    fr_team_sync(team);
    fr_part_rows(team, rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        choose_experts(m->encoder, m->shares + r * s->experts);
        for (size_t i = 0; i < s->hidden; i++) m->narrow[r * s->hidden + i] = l->expert_bias ? l->expert_bias[i] : 0;
    }
    fr_team_sync(team);
    for (size_t expert = 0; expert < s->experts; expert++) run_expert(team, m, l, expert, x, rows);
}

static void feed_forward(const fr_team *team, const fr_encoder_memory *m, const fr_encoder_layer *l, size_t first,
                         size_t rows) {
    const fr_encoder_spec *s = &m->encoder->spec;
    size_t inner = s->heads * s->head_dim, begin, end;
    const float *attn = m->attn + first * inner;
    fr_matrix_input_rows(team, &m->workspace, NULL, attn, inner, inner, rows);
    apply(team, m, &l->o, l->o_bias, &(fr_matrix_rows){m->narrow, s->hidden, attn, inner, rows});
    join(team, m, &l->norm1, &l->post1, first, rows);
    const float *x = prepare(team, m, &l->norm2, first, rows);
    if (l->router.features) {
        mix(team, m, l, x, rows);
        join(team, m, &l->norm2, &l->post2, first, rows);
        return;
    }
    const fr_matrix_rows of_up = {s->gated ? m->up : m->gate, s->ffn, x, s->hidden, rows};
    apply(team, m, &l->up, l->up_bias, &of_up);
    if (s->gated) apply(team, m, &l->gate, NULL, &(fr_matrix_rows){m->gate, s->ffn, x, s->hidden, rows});
    fr_part_features(team, s->ffn, &begin, &end);
    for (size_t r = 0; r < rows; r++)
        fr_encoder_activate(m->encoder->kernels, s->activation, m->gate + r * s->ffn + begin,
                            s->gated ? m->up + r * s->ffn + begin : m->ones, end - begin);
    fr_publish_own_input(team, &m->workspace, m->gate, s->ffn, s->ffn, rows);
    apply(team, m, &l->down, l->down_bias, &(fr_matrix_rows){m->narrow, s->hidden, m->gate, s->ffn, rows});
    join(team, m, &l->norm2, &l->post2, first, rows);
}

/* -------------------------------------------------------------------------------------------------------- a forward */

/* Embeds the thread's own rows. */
static void embed(const fr_team *team, const fr_encoder_memory *m) {
    const fr_encoder *e = m->encoder;
    const fr_encoder_spec *s = &e->spec;
    size_t hidden = s->hidden, begin, end;
    fr_part_rows(team, m->rows, &begin, &end);
    for (size_t t = 0; t < m->text_count; t++) {
        const fr_encoder_place *place = &m->places[t];
        const fr_encoder_text *text = &m->texts[t];
        size_t from = fr_larger(begin, place->first), to = fr_smaller(end, place->first + place->count);
        for (size_t r = from; r < to; r++) {
            size_t at = r - place->first;
            float *x = m->x + r * hidden, *row = m->attn + r * s->heads * s->head_dim;
            fr_matrix_row(e->kernels, &e->words, (size_t)text->ids[at], s->embedding_scale, x);
            if (s->types) {
                fr_matrix_row(e->kernels, &e->types, text->types ? text->types[at] : 0, 1.0F, row);
                e->kernels->add(x, row, hidden);
            }
            if (s->positions) {
                fr_matrix_row(e->kernels, &e->positions, (size_t)m->position[r], 1.0F, row);
                e->kernels->add(x, row, hidden);
            }
            if (s->embedding_norm) fr_encoder_norm_row(e, &e->embedding_norm, x, x, hidden);
            for (size_t i = 0; i < FR_ENCODER_REACHES; i++)
                if (e->inverse[i])
                    fr_rope_angles(e->inverse[i], s->rope_dims / 2, (int64_t)at, m->cosine[i] + r * (s->rope_dims / 2),
                                   m->sine[i] + r * (s->rope_dims / 2));
        }
    }
    fr_team_sync(team);
}

static void run_forward(void *context, const fr_team *team) {
    const fr_encoder_memory *m = context;
    const fr_encoder *e = m->encoder;
    size_t hidden = e->spec.hidden, begin, end;
    embed(team, m);
    for (size_t i = 0; i < e->spec.layers; i++) {
        const fr_encoder_layer *layer = &e->layers[i];
        for (size_t first = 0; first < m->rows; first += FR_ENCODER_CHUNK)
            project(team, m, layer, first, fr_smaller(m->rows - first, FR_ENCODER_CHUNK));
        rotate(team, m, layer, i);
        fr_encoder_attend(team, m, i);
        for (size_t first = 0; first < m->rows; first += FR_ENCODER_CHUNK)
            feed_forward(team, m, layer, first, fr_smaller(m->rows - first, FR_ENCODER_CHUNK));
    }
    fr_part_rows(team, m->rows, &begin, &end);
    for (size_t r = begin; r < end && e->final_norm.weight; r++)
        fr_encoder_norm_row(e, &e->final_norm, m->x + r * hidden, m->x + r * hidden, hidden);
}

/* Gives each row its position. If the encoder has a padding id, tokens with this id are not counted. */
static void place_texts(fr_encoder_memory *m) {
    const fr_encoder_spec *s = &m->encoder->spec;
    size_t row = 0;
    uint64_t cost = 0;
    for (size_t t = 0; t < m->text_count; t++) {
        const fr_encoder_text *text = &m->texts[t];
        size_t position = s->position_first;
        m->places[t] = (fr_encoder_place){row, text->count, cost};
        cost += (uint64_t)s->heads * text->count * text->count;
        for (size_t i = 0; i < text->count; i++, row++) {
            bool pads = s->pad >= 0 && text->ids[i] == s->pad;
            m->position[row] = (int32_t)(pads ? s->position_first - 1 : position++);
        }
    }
    m->rows = row;
}

void fr_encoder_run(fr_encoder_memory *m, fr_pool *pool, const fr_encoder_text *texts, size_t count,
                    const float **rows) {
    m->texts = texts;
    m->text_count = count;
    place_texts(m);
    fr_pool_run(pool, run_forward, m);
    *rows = m->x;
}

void fr_encoder_classify(fr_encoder_memory *m, const float *rows, size_t count, float *scores) {
    const fr_encoder *e = m->encoder;
    const fr_encoder_spec *s = &e->spec;
    size_t hidden = s->hidden;
    float *x = m->pooled, *inner = m->pooled + hidden, *ones = m->pooled + 2 * hidden;
    for (size_t i = 0; i < hidden; i++) {
        double sum = 0;
        for (size_t r = 0; r < (s->label_mean ? count : 1); r++) sum += (double)rows[r * hidden + i];
        x[i] = (float)(sum / (double)(s->label_mean ? count : 1));
        ones[i] = 1.0F;
    }
    if (e->head_dense.features) {
        fr_matrix_input_row(&m->workspace, 0, x, hidden);
        fr_matrix_apply_part(&m->workspace, &e->head_dense, 0, hidden, &(fr_matrix_rows){inner, hidden, x, hidden, 1});
        if (e->head_dense_bias) e->kernels->add(inner, e->head_dense_bias, hidden);
        fr_encoder_activate(e->kernels, s->head_activation, inner, ones, hidden);
        if (e->head_norm.weight) fr_encoder_norm_row(e, &e->head_norm, inner, inner, hidden);
        x = inner;
    }
    fr_matrix_input_row(&m->workspace, 0, x, hidden);
    fr_matrix_apply_part(&m->workspace, &e->head_label, 0, s->labels,
                         &(fr_matrix_rows){scores, s->labels, x, hidden, 1});
    if (e->head_label_bias) e->kernels->add(scores, e->head_label_bias, s->labels);
}
