/* Attention of a batch by a team: see attend.h. */
#include "src/engine/layers/attend.h"

#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "kernels/key_means.h"
#include "kernels/turbo.h"
#include "src/engine/weights/partition.h"

#define BLOCK FR_KV_PAGE   /* number of positions in a block */
#define SPLIT (64 * BLOCK) /* positions are divided into splits of at least this many positions */

/* Counts the floats of a block's partial result for one query: o, m and l of the kernel (kernels.h). */
static size_t partial_size(size_t head_dim) {
    return (head_dim + 2 + 15) / 16 * 16;
}

/* If there are fewer queries than this, attention may divide positions among the threads instead of queries. */
static size_t few(size_t threads) {
    return threads > 1 ? 2 * threads : 0;
}

void fr_attend_layout(fr_attend_workspace *workspace, fr_arena *arena, size_t head_dim, size_t threads) {
    workspace->scratch_size = fr_attn_scratch(head_dim, FR_ATTEND_BATCH);
    workspace->queries = fr_arena_take(arena, threads * FR_ATTEND_BATCH, sizeof *workspace->queries);
    workspace->plain = fr_arena_take(arena, threads * FR_ATTEND_BATCH * head_dim, sizeof *workspace->plain);
    workspace->head_dim = head_dim;
    workspace->scratch = fr_arena_take(arena, threads * workspace->scratch_size, sizeof(float));
    workspace->partials_size = few(threads) * partial_size(head_dim) * (SPLIT / BLOCK);
    workspace->partials = fr_arena_take(arena, workspace->partials_size, sizeof(float));
    workspace->sums = fr_arena_take(arena, 2 * few(threads), sizeof(float));
}

/* ------------------------------------------------------------------------------------------------------ one KV head */

/* Gives the cache of a row's timeline. All caches of a batch have the same shape. */
static const fr_kv_layer *cache_of(const fr_attend_rows *a, size_t row) {
    return &a->batch->timelines[a->batch->rows[row].timeline]->layers[a->layer];
}

/* Fills in the kernel's arguments for a KV head, without the queries. kv_head: the head's index among the KV heads that
 * the queries read. */
static fr_attn of_head(const fr_team *team, const fr_attend_rows *a, const fr_kv_layer *cache, size_t kv_head) {
    const uint8_t *const *pages = (const uint8_t *const *)cache->pages;
    size_t v_bytes = cache->v.bytes ? cache->v.bytes : cache->k.bytes; /* latent values are the beginnings of the keys'
                                                                        * rows */
    return (fr_attn){.k_pages = pages,
                     .v_pages = pages,
                     .k_at = cache->k.at + (a->kv_first + kv_head) * FR_KV_PAGE * cache->k.bytes,
                     .v_at = cache->v.at + (a->kv_first + kv_head) * FR_KV_PAGE * v_bytes,
                     .k_type = cache->k.type,
                     .v_type = cache->v.type,
                     .k_stride = cache->k.bytes,
                     .v_stride = v_bytes,
                     .head_dim = cache->head_dim,
                     .value_dim = cache->value_dim,
                     .scale = a->scale,
                     .softcap = a->softcap,
                     .key_means = cache->key_means ? &cache->key_means[a->kv_first + kv_head] : NULL,
                     .slopes_stepped = a->slopes_stepped,
                     .queries = a->workspace->queries + team->index * FR_ATTEND_BATCH,
                     .scratch = a->workspace->scratch + team->index * a->workspace->scratch_size};
}

void fr_attend_place(size_t number, size_t rows, size_t heads, size_t kv_heads, size_t *row, size_t *head) {
    size_t group = heads / kv_heads, per_kv_head = rows * group;
    *row = number % per_kv_head / group;
    *head = number / per_kv_head * group + number % group;
}

static fr_sight sight_of(const fr_attend_rows *a, size_t row) {
    const fr_row *of = &a->batch->rows[row];
    int64_t span = (int64_t)a->span, own = of->position;
    int64_t last = a->sees_block && of->block_last > own ? of->block_last : own;
    int64_t first = !span ? 0 : a->chunked ? own / span * span : own >= span ? own - span + 1 : 0;
    return a->sights ? a->sights[row] : (fr_sight){first, last};
}

static fr_attn_query query_of(const fr_attend_rows *a, size_t number) {
    const fr_kv_layer *cache = cache_of(a, 0);
    size_t row, head;
    fr_attend_place(number, a->batch->count, a->heads, a->kv_heads, &row, &head);
    size_t q_at = row * a->stride + head * a->q_step, out_at = row * a->stride + head * cache->value_dim;
    const fr_sight sight = sight_of(a, row);
    return (fr_attn_query){.q = a->q + q_at,
                           .out = a->out + out_at,
                           .first = sight.first,
                           .last = sight.last,
                           .sink = a->sinks ? a->sinks + head : NULL,
                           .slope = a->slopes ? a->slopes[head] : 0.0F,
                           .slope_from = a->slopes_stepped ? 0 : a->batch->rows[row].position};
}

/* Runs the kernel. If the cache stores rotated keys, the queries have been rotated too. If means were subtracted from
 * the keys, the kernel also needs each query without that rotation and without its scale. */
static void run_kernel(const fr_team *team, const fr_attend_rows *a, fr_attn_query *queries, const fr_attn *attn) {
    const fr_attend_workspace *w = a->workspace;
    float *plain = w->plain + team->index * FR_ATTEND_BATCH * w->head_dim;
    for (size_t j = 0; attn->key_means && j < attn->count; j++, plain += attn->head_dim) {
        memcpy(plain, queries[j].q, attn->head_dim * sizeof *plain);
        fr_turbo_rotate_back(a->kernels, plain, attn->head_dim);
        a->kernels->mul(plain, attn->key_means->key_scale, attn->head_dim);
        queries[j].plain = plain;
    }
    a->kernels->attn(attn);
}

/* If the cache holds rotated values, rotates the finished sum of values for a query back. */
static void rotate_back(const fr_attend_rows *a, float *out) {
    const fr_kv_layer *cache = cache_of(a, 0);
    if (fr_turbo(cache->v.type)) fr_turbo_rotate_back(a->kernels, out, cache->value_dim);
}

/* ----- partition by queries */

/* Returns the number of queries that the kernel gets in one call. It is the number of queries that fill 64 kB, but at
 * least 64 queries. So the queries stay in an L2 cache together with a tile. */
static size_t batch_of(const fr_attend_rows *a) {
    size_t fit = (64 << 10) / (cache_of(a, 0)->head_dim * sizeof(float));
    return fit < 64 ? 64 : fr_smaller(fit, FR_ATTEND_BATCH);
}

static void partition_queries(const fr_team *team, const fr_attend_rows *a) {
    fr_attn_query *queries = a->workspace->queries + team->index * FR_ATTEND_BATCH;
    size_t group = a->heads / a->kv_heads, per_kv_head = a->batch->count * group, begin, end;
    size_t most = batch_of(a);
    fr_part_heads(team, a->heads, a->batch->count, &begin, &end);
    while (begin < end) {
        size_t kv_head = begin / per_kv_head, row = begin % per_kv_head / group, last = row;
        while (last + 1 < a->batch->count && a->batch->rows[last + 1].timeline == a->batch->rows[row].timeline) last++;
        size_t together = fr_smaller(end, kv_head * per_kv_head + (last + 1) * group);
        fr_attn attn = of_head(team, a, cache_of(a, row), kv_head);
        for (; attn.count < most && begin < together; begin++) queries[attn.count++] = query_of(a, begin);
        run_kernel(team, a, queries, &attn);
        for (size_t j = 0; j < attn.count; j++) rotate_back(a, queries[j].out);
    }
}

/* ----- partition by positions */

/* A split: the positions low..high of all KV heads. The threads divide one split among them at a time. In the
 * workspace, the partial results of block low / BLOCK come first. */
typedef struct split {
    const fr_attend_rows *rows;
    int64_t low, high;
    size_t queries, stride; /* stride: number of floats between the beginnings of two partial results */
} split;

static float *partial_of(const split *s, int64_t position, size_t query) {
    size_t block = (size_t)(position / BLOCK - s->low / BLOCK);
    return s->rows->workspace->partials + (block * s->queries + query) * s->stride;
}

/* Restricts a query to positions low..high. Returns false if the query sees no position in this range. */
static bool within(const fr_attend_rows *a, size_t number, int64_t low, int64_t high, fr_attn_query *query) {
    *query = query_of(a, number);
    if (query->first < low) query->first = low;
    if (query->last > high) query->last = high;
    return query->first <= query->last;
}

/* Runs attention for all queries of one KV head over positions low..high. */
static void attend_partial(const fr_team *team, const split *s, size_t kv_head, int64_t low, int64_t high) {
    const fr_attend_rows *a = s->rows;
    fr_attn_query *queries = a->workspace->queries + team->index * FR_ATTEND_BATCH, query;
    const fr_kv_layer *cache = cache_of(a, 0);
    size_t per_kv_head = s->queries / a->kv_heads;
    fr_attn attn = of_head(team, a, cache, kv_head);
    attn.partial_stride = s->queries * s->stride;
    for (size_t number = kv_head * per_kv_head; number < (kv_head + 1) * per_kv_head; number++) {
        if (!within(a, number, low, high, &query)) continue;
        query.out = partial_of(s, query.first, number);
        queries[attn.count++] = query;
    }
    if (attn.count > 0) run_kernel(team, a, queries, &attn);
}

/* Finds the end of a thread's part of a split: a KV head, and a position in that head. The parts are equal, except that
 * no block is divided. */
static void share_end(const split *s, size_t part, size_t parts, size_t *kv_head, int64_t *position) {
    size_t length = (size_t)(s->high - s->low + 1), at = length * s->rows->kv_heads * part / parts;
    int64_t exact = s->low + (int64_t)(at % length), rounded = (exact + BLOCK / 2) / BLOCK * BLOCK;
    *kv_head = at / length;
    *position = exact == s->low || rounded < s->low ? s->low : rounded > s->high + 1 ? s->high + 1 : rounded;
}

static void attend_share(const fr_team *team, const split *s) {
    size_t head, last_head;
    int64_t from, to;
    share_end(s, team->index, team->count, &head, &from);
    share_end(s, team->index + 1, team->count, &last_head, &to);
    for (; head < last_head; head++, from = s->low)
        if (from <= s->high) attend_partial(team, s, head, from, s->high);
    if (from < to) attend_partial(team, s, head, from, to - 1);
}

/* Joins the partial results of this split for one query to the result of the earlier splits. Blocks are joined in their
 * order, as the kernel's definition says. Each block's partial result is overwritten by the result for all positions up
 * to the end of that block. */
static void join_query(const split *s, size_t number) {
    const fr_kernels *k = s->rows->kernels;
    size_t n = cache_of(s->rows, 0)->value_dim;
    fr_attn_query whole = query_of(s->rows, number), here;
    float *sums = s->rows->workspace->sums + 2 * number, *o = whole.out, m = sums[0], l = sums[1];
    if (!within(s->rows, number, s->low, s->high, &here)) return;
    int64_t position = here.first / BLOCK * BLOCK;
    if (here.first == whole.first) {
        o = partial_of(s, position, number);
        m = o[n], l = o[n + 1];
        position += BLOCK;
    }
    for (; position <= here.last; position += BLOCK) {
        float *block = partial_of(s, position, number), m_b = block[n], l_b = block[n + 1];
        float higher = m_b > m ? m_b : m, factors[2] = {m - higher, m_b - higher};
        k->exp(factors, factors, 2);
        l = fmaf(l, factors[0], l_b * factors[1]);
        k->scale(block, n, factors[1]);
        k->axpy(block, o, n, factors[0]);
        o = block;
        m = higher;
    }
    if (o != whole.out) memcpy(whole.out, o, n * sizeof *o);
    if (here.last == whole.last) {
        k->div(whole.out, n, fr_attn_with_sink(k->exp, &whole, m, l));
        rotate_back(s->rows, whole.out);
    }
    sums[0] = m, sums[1] = l;
}

static void partition_positions(const fr_team *team, const fr_attend_rows *a) {
    size_t rows = a->batch->count;
    size_t begin, end;
    split s = {.rows = a, .queries = rows * a->heads, .stride = partial_size(cache_of(a, 0)->head_dim)};
    int64_t last = sight_of(a, rows - 1).last;
    int64_t blocks = (int64_t)(a->workspace->partials_size / (s.queries * s.stride));
    for (s.low = sight_of(a, 0).first; s.low <= last; s.low = s.high + 1) {
        s.high = (s.low / BLOCK + blocks) * BLOCK - 1;
        if (s.high >= last) s.high = last;
        attend_share(team, &s);
        fr_team_sync(team);
        fr_part_heads(team, a->heads, rows, &begin, &end);
        for (; begin < end; begin++) join_query(&s, begin);
        if (s.high < last) fr_team_sync(team);
    }
}

/* Returns true if all rows belong to one timeline and follow each other without a gap. */
static bool one_chain(const fr_batch *batch) {
    const fr_row *first = batch->rows;
    for (size_t r = 1; r < batch->count; r++)
        if (first[r].timeline != first->timeline || first[r].position != first->position + (int32_t)r) return false;
    return true;
}

/* Returns true if it is faster to divide positions than queries among the threads. Two conditions must hold. There must
 * be fewer than two queries per thread, because so few can't be divided evenly. There must be enough positions to give
 * every thread a block. If the number of queries is a multiple of the number of threads, queries are better. Several
 * threads then read the same head's cache, which costs nothing measurable, while joining partial results takes time. */
static bool positions_are_better(const fr_team *team, const fr_attend_rows *a) {
    size_t queries = a->batch->count * a->heads, heads = a->kv_heads;
    if (queries >= few(team->count) || !one_chain(a->batch)) return false;
    size_t length = (size_t)(sight_of(a, a->batch->count - 1).last + 1 - sight_of(a, 0).first);
    return queries % team->count != 0 && queries / heads <= FR_ATTEND_BATCH && heads * length >= team->count * BLOCK;
}

void fr_attend_run(const fr_team *team, const fr_attend_rows *rows) {
    if (rows->batch->count == 0 || rows->heads == 0) return;
    if (positions_are_better(team, rows))
        partition_positions(team, rows);
    else
        partition_queries(team, rows);
}
