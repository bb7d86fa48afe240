/* Attention of a text encoder. A row sees all rows of its own text; in local layers it sees only the rows near it.
 *
 * In: queries, keys and values of all texts. Out: attention's output. The queries of all heads of all texts are
 * numbered by text, then by head, then by row. The team divides the queries so that each thread has the same number of
 * pairs of a query and a key.
 *
 * Some encoders add a bias to the scores, which depends on the distance of query and key (MPNet's table, ALiBi). These
 * encoders do not use the attention kernel. A score is then the dot product that the matrix kernel computes, times the
 * scale, plus the bias. Let e = exp(score - largest score). The output is one chain o = fma(e, v, o) over the values v
 * in ascending order, divided by the sum of all e. That sum is made of 16 partial sums, which are added by the tree of
 * the dot kernel (kernels.h). */
#include <math.h>

#include "base/sizes.h"
#include "src/engine/encoder/encoder_parts.h"

/* Finds the first query of a text that belongs to a thread. cost: the number of pairs of a query and a key, over all
 * texts, at which the thread's part begins. */
static size_t first_query(const fr_encoder_place *place, size_t heads, uint64_t cost) {
    if (cost <= place->cost) return 0;
    uint64_t query = (cost - place->cost + place->count - 1) / place->count;
    return query > heads * place->count ? heads * place->count : (size_t)query;
}

/* Gives the bucket of a distance in the tables of MPNet and T5. Half of the buckets are for each direction. Of the
 * buckets of a direction, half are for one distance each. The others are for ranges that grow with the logarithm, up to
 * distance 128. The logarithm is taken in float32, as in transformers. */
static size_t bucket_of(int64_t distance, size_t buckets) {
    static const int64_t steps[] = {8, 12, 16, 23, 32, 46, 64, 91};
    size_t half = buckets / 2, exact = half / 2, base = distance > 0 ? half : 0;
    int64_t far = distance < 0 ? -distance : distance;
    if ((size_t)far < exact) return base + (size_t)far;
    size_t bucket = exact;
    while (bucket + 1 < half && far >= steps[bucket + 1 - exact]) bucket++;
    return base + bucket;
}

/* Sums up n values in the same order as the kernels' dot product. */
static float sum_in_parts(const float *x, size_t n) {
    float p[16] = {0};
    for (size_t i = 0; i < n; i++) p[i % 16] += x[i];
    for (size_t w = 8; w; w /= 2)
        for (size_t i = 0; i < w; i++) p[i] += p[i + w];
    return p[0];
}

/* Runs one query of an encoder that adds a bias to the scores. A key that is d positions after the query has the bias
 * added[d + count - 1]. */
static void attend_biased(const fr_encoder_memory *m, const fr_encoder_place *place, size_t head, size_t row,
                          const float *added, float *scores) {
    const fr_encoder_spec *s = &m->encoder->spec;
    const fr_kernels *k = m->encoder->kernels;
    size_t n = place->count, width = m->qkv_width, inner = s->heads * s->head_dim, d = s->head_dim;
    size_t kv = head / (s->heads / s->kv_heads);
    const float *base = m->qkv + place->first * width, *keys = base + inner + kv * d;
    const float *values = base + inner + s->kv_heads * d + kv * d;
    float *out = m->attn + (place->first + row) * inner + head * d, most = -INFINITY;
    k->matmul[FR_F32](&(fr_matmul){.y = scores,
                                   .y_stride = n,
                                   .x = base + row * width + head * d,
                                   .x_stride = width,
                                   .rows = 1,
                                   .w = keys,
                                   .w_stride = width * sizeof(float),
                                   .cols = d,
                                   .features = n});
    k->scale(scores, n, s->scale);
    k->add(scores, added + n - 1 - row, n);
    for (size_t i = 0; i < n; i++) most = scores[i] > most ? scores[i] : most;
    for (size_t i = 0; i < n; i++) scores[i] -= most;
    k->exp(scores, scores, n);
    for (size_t i = 0; i < d; i++) out[i] = 0;
    for (size_t i = 0; i < n; i++) k->axpy(out, values + i * width, d, scores[i]);
    k->div(out, d, sum_in_parts(scores, n));
}

/* Fills in the biases of a head's scores, for all distances from query to key: -(count - 1) to count - 1. */
static void fill_added(const fr_encoder *e, size_t head, size_t count, float *added) {
    for (size_t i = 0; i < 2 * count - 1; i++) {
        int64_t distance = (int64_t)i - (int64_t)(count - 1);
        added[i] = e->spec.alibi ? -e->bias_slopes[head] * (float)(distance < 0 ? -distance : distance)
                                 : e->relative[bucket_of(distance, e->spec.buckets) * e->spec.heads + head];
    }
}

/* Runs queries [begin, end) of a text. Queries are numbered head by head, and within a head row by row. */
static void attend_with_bias(const fr_team *team, const fr_encoder_memory *m, const fr_encoder_place *place,
                             size_t begin, size_t end) {
    float *scores = m->biased + team->index * m->biased_size, *added = scores + m->rows_max;
    for (size_t query = begin; query < end; query++) {
        size_t head = query / place->count, row = query % place->count;
        if (query == begin || row == 0) fill_added(m->encoder, head, place->count, added);
        attend_biased(m, place, head, row, added, scores);
    }
}

static void attend_plainly(const fr_team *team, const fr_encoder_memory *m, const fr_encoder_place *place, bool local,
                           size_t begin, size_t end) {
    const fr_encoder_spec *s = &m->encoder->spec;
    size_t d = s->head_dim, inner = s->heads * d, width = m->qkv_width, n = place->count;
    const uint8_t **pages = m->pages + team->index * m->page_count;
    fr_attn_query *queries = m->attend.queries + team->index * FR_ATTEND_BATCH;
    float *base = m->qkv + place->first * width, *out = m->attn + place->first * inner;
    for (size_t p = 0; p < n; p += FR_KV_PAGE) pages[p / FR_KV_PAGE] = (const uint8_t *)(base + p * width);
    fr_attn attn = {.k_pages = pages,
                    .v_pages = pages,
                    .k_type = FR_F32,
                    .v_type = FR_F32,
                    .k_stride = width * sizeof(float),
                    .v_stride = width * sizeof(float),
                    .head_dim = d,
                    .value_dim = d,
                    .scale = s->scale,
                    .queries = queries,
                    .scratch = m->attend.scratch + team->index * m->attend.scratch_size};
    while (begin < end) {
        size_t head = begin / n, kv = head / (s->heads / s->kv_heads), last = fr_smaller(end, (head + 1) * n);
        attn.k_at = (inner + kv * d) * sizeof(float);
        attn.v_at = (inner + (s->kv_heads + kv) * d) * sizeof(float);
        for (attn.count = 0; attn.count < FR_ATTEND_BATCH && begin < last; begin++) {
            size_t row = begin % n;
            bool near_begin = !local || row < s->reach, near_end = !local || n - 1 - row < s->reach;
            queries[attn.count++] = (fr_attn_query){.q = base + row * width + head * d,
                                                    .out = out + row * inner + head * d,
                                                    .first = near_begin ? 0 : (int64_t)(row - s->reach),
                                                    .last = (int64_t)(near_end ? n - 1 : row + s->reach)};
        }
        m->encoder->kernels->attn(&attn);
    }
}

void fr_encoder_attend(const fr_team *team, const fr_encoder_memory *m, size_t index) {
    const fr_encoder_spec *s = &m->encoder->spec;
    const fr_encoder_place *last = &m->places[m->text_count - 1];
    uint64_t whole = last->cost + (uint64_t)s->heads * last->count * last->count;
    uint64_t from = whole / team->count * team->index, to = whole / team->count * (team->index + 1);
    if (team->index + 1 == team->count) to = whole;
    for (size_t t = 0; t < m->text_count; t++) {
        const fr_encoder_place *place = &m->places[t];
        size_t begin = first_query(place, s->heads, from), end = first_query(place, s->heads, to);
        if (begin >= end) continue;
        if (s->buckets || s->alibi)
            attend_with_bias(team, m, place, begin, end);
        else
            attend_plainly(team, m, place, s->local[index], begin, end);
    }
    fr_team_sync(team);
}
