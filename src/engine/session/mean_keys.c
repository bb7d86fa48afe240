/* Learns the mean keys of heads, and their scales: see mean_keys.h. */
#include "src/engine/session/mean_keys.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/ranks.h"
#include "base/sizes.h"
#include "kernels/key_means.h"
#include "kernels/rope_table.h"
#include "kernels/turbo.h"
#include "src/engine/layers/trunk.h"

enum {
    IDS_MAX = 128, /* ids that are run */
    LEARNED = 3,   /* version of the way in which means are learned; a saved cache can be used only if its version and
                    * text are the same */
    VALUES = 6, /* number of arrays of a head: the first key, the mean, its level and its slope, and the scales of keys
                 * and of queries */
    SKIPPED = 4 /* number of first positions that are left out, because much attention goes to them and their keys are
                 * unlike all other keys */
};

/* The text has prose, code and numbers, because a mean should suit all of them. */
static const char text[] =
    "The river rises in the hills north of the town, and after two days of rain it carries branches, leaves and mud. "
    "Most people here know when to move their boats; few of them write it down. In 1987 the bridge was closed for 14 "
    "weeks.\n\nint count_words(const char *line) {\n    int words = 0;\n    while (*line) {\n        if (*line == ' ') "
    "words++;\n        line++;\n    }\n    return words + 1;\n}\n\n- What is the result for an empty line?\n- It is 1, "
    "which is wrong: an empty line has no words.\n";

/* Gives the attention specification of the layer that owns the keys and values of KV layer `kv`. */
static const fr_attention_spec *attention_of(const fr_engine *e, size_t kv) {
    const fr_trunk *trunk = &e->model->trunk;
    return &trunk->spec.layer[fr_trunk_kv_owner(trunk, kv)].attention;
}

/* Gives the number of values of a head that the rotary positions rotate. */
static size_t turning_dims(const fr_engine *e, const fr_attention_spec *attention) {
    return attention->no_rope ? 0 : e->model->trunk.spec.rope[attention->rope].dims;
}

/* Finds the first KV layer whose keys are rotated in the same way as those of layer `kv`. The tables of cosines and
 * sines belong to the layer that is found, and layer `kv` uses them too. */
static size_t table_holder(const fr_engine *e, size_t kv) {
    const fr_attention_spec *own = attention_of(e, kv);
    for (size_t i = 0; i < kv; i++) {
        const fr_attention_spec *other = attention_of(e, i);
        if (other->rope == own->rope && other->head_dim == own->head_dim && other->no_rope == own->no_rope) return i;
    }
    return kv;
}

/* Fills in the tables of cosines and sines: `starts` has the angles of each block's first position, `columns` has the
 * angles of the positions within a block. */
static void fill_tables(const fr_engine *e, const fr_attention_spec *attention, size_t dims, float *starts,
                        float *columns) {
    float cosine[FR_KEY_MEANS_WIDEST], sine[FR_KEY_MEANS_WIDEST];
    const float *inverse = e->model->trunk.inverse[attention->rope];
    for (size_t block = 0; dims && block < e->kv.blocks; block++) {
        fr_rope_angles(inverse, dims / 2, (int64_t)(block * FR_KEY_MEANS_BLOCK), cosine, sine);
        fr_key_means_fill(starts + block * dims, cosine, sine, dims);
    }
    for (size_t r = 0; r < FR_KEY_MEANS_BLOCK; r++) {
        if (dims) fr_rope_angles(inverse, dims / 2, (int64_t)r, cosine, sine);
        fr_key_means_fill_columns(columns, r, cosine, sine, dims);
    }
}

void fr_mean_keys_layout(fr_engine *e) {
    const fr_trunk *trunk = &e->model->trunk;
    for (size_t kv = 0; kv < trunk->kv_count && fr_turbo(e->kv_types.k); kv++) {
        const fr_attention_spec *attention = attention_of(e, kv);
        size_t n = attention->head_dim, dims = turning_dims(e, attention), heads = trunk->kv_shapes[kv].heads;
        size_t holder = table_holder(e, kv);
        if (n > FR_KEY_MEANS_WIDEST) continue;
        fr_key_means *means = fr_arena_take(&e->arena, heads, sizeof *means);
        float *values = fr_arena_take(&e->arena, heads * VALUES * n, sizeof *values);
        uint16_t *used = fr_arena_take(&e->arena, heads * FR_KEY_MEANS_USED, sizeof *used);
        float *starts = NULL, *columns = NULL;
        if (holder == kv) {
            starts = fr_arena_take(&e->arena, fr_kv_blocks(e->context) * dims, sizeof *starts);
            columns = fr_arena_take(&e->arena, FR_KEY_MEANS_BLOCK * (2 + dims), sizeof *columns);
        }
        if (!e->kv.layers || e->arena.overflow || !means) continue;
        if (holder == kv) fill_tables(e, attention, dims, starts, columns);
        for (size_t h = 0; h < heads; h++)
            means[h] = (fr_key_means){.head_dim = n,
                                      .dims = dims,
                                      .neox = trunk->spec.rope[attention->rope].neox,
                                      .first = values + VALUES * h * n,
                                      .mean = values + (VALUES * h + 1) * n,
                                      .level = values + (VALUES * h + 2) * n,
                                      .slope = values + (VALUES * h + 3) * n,
                                      .key_scale = values + (VALUES * h + 4) * n,
                                      .query_scale = values + (VALUES * h + 5) * n,
                                      .used = used + h * FR_KEY_MEANS_USED,
                                      .starts = holder == kv ? starts : e->kv.layers[holder].key_means->starts,
                                      .columns = holder == kv ? columns : e->kv.layers[holder].key_means->columns};
        e->kv.layers[kv].key_means = means;
    }
}

/* --------------------------------------------------------------------------------------------------------- the run */

/* Gives the ids of the text. If the model has no tokenizer, gives ids from all over its vocabulary. */
static size_t choose_ids(const fr_engine *e, int32_t ids[IDS_MAX]) {
    size_t most = fr_smaller(IDS_MAX, e->context), count = 0, vocab = e->model->trunk.spec.vocab;
    int32_t *spelled = NULL;
    if (e->model->tokenizer)
        fr_failure_keep(fr_tokenize(e->model->tokenizer, text, strlen(text), true, false, &spelled, &count));
    for (size_t i = 0; i < most; i++) ids[i] = (int32_t)((300 + 37 * i) % vocab);
    count = spelled ? fr_smaller(count, most) : most;
    for (size_t i = 0; spelled && i < count; i++)
        if ((size_t)spelled[i] < vocab) ids[i] = spelled[i];
    free(spelled);
    return count;
}

static fr_status run_ids(fr_engine *e, fr_kv *cache, const int32_t *ids, size_t count) {
    fr_kv *timelines[] = {cache};
    for (size_t from = 0, rows; from < count; from += rows) {
        rows = fr_smaller(e->rows, count - from);
        FR_TRY(fr_kv_claim(cache, rows));
        fr_recurrent_certain(&cache->recurrent, from + rows);
        for (size_t i = 0; i < rows; i++) {
            int32_t at = (int32_t)(from + i);
            e->batch[i] = (fr_row){.id = ids[at],
                                   .position = at,
                                   .parent = (int32_t)i - 1,
                                   .block_last = -1,
                                   .rope_position = {{at, at, at}}};
        }
        fr_forward f = {.model = e->model,
                        .activations = e->activations,
                        .batch = {.rows = e->batch, .count = rows, .timelines = timelines},
                        .keep = rows,
                        .hidden = e->hidden,
                        .logits = e->logits,
                        .best = e->best,
                        .best_stride = e->head_rows};
        fr_forward_run(e->pool, &f);
        FR_TRY(fr_ranks_check(e->model->ranks));
        fr_kv_commit(cache, from + rows);
    }
    return FR_OK;
}

/* Gives a pair's cosines at all places of a block. Its sines are dims / 2 columns further. */
static const float *angles_of(const fr_key_means *means, size_t pair) {
    return means->columns + (2 + pair) * FR_KEY_MEANS_BLOCK;
}

/* Turns a key at a position back to where it was before its rotation. */
static void turn_back(const fr_key_means *means, size_t position, const float *key, double *plain) {
    for (size_t i = 0; i < means->head_dim; i++) plain[i] = (double)key[i];
    for (size_t i = 0; i < means->dims / 2; i++) {
        size_t a, b, half = means->dims / 2;
        const float *start = means->starts + position / FR_KEY_MEANS_BLOCK * means->dims + i;
        const float *turn = angles_of(means, i) + position % FR_KEY_MEANS_BLOCK;
        double turn_cosine = (double)turn[0], turn_sine = (double)turn[half * FR_KEY_MEANS_BLOCK];
        double cosine = (double)start[0] * turn_cosine - (double)start[half] * turn_sine;
        double sine = (double)start[half] * turn_cosine + (double)start[0] * turn_sine;
        fr_key_means_pair(means, i, &a, &b);
        double x = plain[a], y = plain[b];
        plain[a] = x * cosine + y * sine;
        plain[b] = y * cosine - x * sine;
    }
}

/* Adds up the two values of each pair that is rotated together, and sets both values of the pair to the sum. */
static void join_pairs(const fr_key_means *means, double *values) {
    for (size_t i = 0; i < means->dims / 2; i++) {
        size_t a, b;
        fr_key_means_pair(means, i, &a, &b);
        values[a] = values[b] = values[a] + values[b];
    }
}

/* Fills in the scales of one head. keys: for each value, the sum of its squared distances from the mean. queries: for
 * each value, the sum of its squares. Both arrays are overwritten.
 *
 * A score's error is the sum of query value * error of the key value. If keys are scaled by s, a value's error is e /
 * s. e is the same for all values and grows with the length of the scaled key. So the mean square error is proportional
 * to the product of sum(keys * s^2) and sum(queries / s^2). This product is least with s^4 = queries / keys. The sums
 * are made a little larger, so that no scale is extreme. At the end the scaled keys get the same length as the keys. */
static void learn_scales(const fr_key_means *means, double *keys, double *queries) {
    static const double little = 1e-6;
    double key_length = 0, query_length = 0, scaled = 0;
    size_t n = means->head_dim;
    join_pairs(means, keys);
    join_pairs(means, queries);
    for (size_t i = 0; i < n; i++) {
        key_length += keys[i];
        query_length += queries[i];
    }
    bool usable = key_length > 0 && query_length > 0 && isfinite(key_length) && isfinite(query_length);
    for (size_t i = 0; i < n; i++) {
        keys[i] += little * key_length;
        queries[i] = usable ? sqrt((queries[i] + little * query_length) / keys[i]) : 1; /* the scale's square */
        scaled += keys[i] * queries[i];
    }
    for (size_t i = 0; i < n; i++) {
        double scale = usable ? sqrt(queries[i] * key_length / scaled) : 1;
        means->key_scale[i] = (float)scale;
        means->query_scale[i] = (float)(1 / scale);
    }
}

/* A line that replaces the rotation of a pair within a block. At place r the pair, as a complex number, is multiplied
 * by level + t * slope. Both of these have a real and an imaginary part. */
typedef struct line {
    double level[2], slope[2];
    double missed; /* the mean square distance of a pair of length 1 from its line */
} line;

/* Gives the line that has the least square distance from a pair's cosines and sines. */
static line fit_line(const fr_key_means *means, size_t pair) {
    const float *angles[] = {angles_of(means, pair), angles_of(means, pair + means->dims / 2)};
    line l = {.missed = 1};
    double squares = 0;
    for (size_t r = 0; r < FR_KEY_MEANS_BLOCK; r++) {
        double t = (double)fr_key_means_t(r);
        squares += t * t;
        for (size_t part = 0; part < 2; part++) {
            l.level[part] += (double)angles[part][r];
            l.slope[part] += (double)angles[part][r] * t;
        }
    }
    for (size_t part = 0; part < 2; part++) {
        l.level[part] /= FR_KEY_MEANS_BLOCK;
        l.slope[part] /= squares;
        l.missed -= l.level[part] * l.level[part] + l.slope[part] * l.slope[part] * squares / FR_KEY_MEANS_BLOCK;
    }
    return l;
}

/* Multiplies a pair by a complex number. */
static void multiply_pair(const double number[2], float x, float y, float *to_x, float *to_y) {
    *to_x = (float)((double)x * number[0] - (double)y * number[1]);
    *to_y = (float)((double)y * number[0] + (double)x * number[1]);
}

/* Chooses the fast pairs of a head, and makes lines of all other pairs. What the lines miss stays in the keys and must
 * be coded with them, so it is kept to a small share of `length`. The pairs whose lines miss most become fast. length:
 * the average squared length of the scaled keys after their mean is subtracted. */
static void choose_fast(fr_key_means *means, double length) {
    static const double share = .03;
    double missed[FR_KEY_MEANS_WIDEST / 2], rest = 0;
    size_t pairs = means->dims / 2, a, b;
    memcpy(means->level, means->mean, means->head_dim * sizeof *means->level);
    memset(means->slope, 0, means->head_dim * sizeof *means->slope);
    for (size_t i = 0; i < pairs; i++) {
        const line l = fit_line(means, i);
        fr_key_means_pair(means, i, &a, &b);
        double x = (double)means->mean[a] * (double)means->key_scale[a];
        double y = (double)means->mean[b] * (double)means->key_scale[b];
        multiply_pair(l.level, means->mean[a], means->mean[b], &means->level[a], &means->level[b]);
        multiply_pair(l.slope, means->mean[a], means->mean[b], &means->slope[a], &means->slope[b]);
        missed[i] = l.missed > 0 ? (x * x + y * y) * l.missed : 0;
        rest += missed[i];
    }
    fr_key_means_begin(means);
    for (size_t fast = 0; fast < fr_smaller(pairs, FR_KEY_MEANS_FAST) && rest > share * length; fast++) {
        size_t most = 0;
        for (size_t i = 1; i < pairs; i++)
            if (missed[i] > missed[most]) most = i;
        fr_key_means_add_fast(means, most);
        fr_key_means_pair(means, most, &a, &b);
        means->level[a] = means->level[b] = means->slope[a] = means->slope[b] = 0;
        rest -= missed[most];
        missed[most] = -1;
    }
}

/* Fills in the means and scales of one head from its first `count` keys, which `cache` holds as float32, and from the
 * squares of its queries. A mean that is not finite becomes 0. */
static void learn_head(fr_key_means *means, const fr_kv_layer *cache, size_t head, size_t count) {
    double sums[FR_KEY_MEANS_WIDEST] = {0}, plain[FR_KEY_MEANS_WIDEST], squares[FR_KEY_MEANS_WIDEST] = {0};
    double distances[FR_KEY_MEANS_WIDEST], length = 0;
    size_t n = means->head_dim, from = count > SKIPPED ? SKIPPED : 0;
    for (size_t p = from; p < count; p++) {
        turn_back(means, p, fr_kv_slot(cache, &cache->k, head, p), plain);
        for (size_t i = 0; i < n; i++) {
            sums[i] += plain[i];
            squares[i] += plain[i] * plain[i];
        }
    }
    memcpy(means->first, fr_kv_slot(cache, &cache->k, head, 0), n * sizeof(float));
    for (size_t i = 0; i < n; i++) {
        means->mean[i] = (float)(sums[i] / (double)(count - from));
        squares[i] -= sums[i] * sums[i] / (double)(count - from);
        if (!(squares[i] > 0)) squares[i] = 0;
        if (!isfinite(means->first[i])) means->first[i] = 0;
        if (!isfinite(means->mean[i])) means->mean[i] = 0;
    }
    memcpy(distances, squares, n * sizeof *distances);
    learn_scales(means, squares, cache->query_squares + head * n);
    for (size_t i = 0; i < n; i++)
        length += distances[i] / (double)(count - from) * (double)means->key_scale[i] * (double)means->key_scale[i];
    choose_fast(means, length);
}

/* Takes memory for the squares of the cache's queries from the arena, which may only count bytes (base/arena.h). */
static void layout_squares(fr_kv *cache, fr_arena *arena, const fr_kv_shape *shapes) {
    for (size_t kv = 0; kv < cache->count; kv++) {
        double *squares = fr_arena_take(arena, shapes[kv].heads * shapes[kv].head_dim, sizeof *squares);
        if (cache->layers) cache->layers[kv].query_squares = squares;
    }
}

fr_status fr_mean_keys_learn(fr_engine *e, const fr_kv_shape *shapes) {
    const fr_trunk *trunk = &e->model->trunk;
    int32_t ids[IDS_MAX];
    size_t count = choose_ids(e, ids);
    const fr_kv_sizes sizes = {.context = count,
                               .batch = count,
                               .timelines = 1,
                               .recurrent = trunk->recurrent_shapes,
                               .recurrent_count = trunk->recurrent_count};
    const fr_kv_types types = {FR_F32, FR_F32};
    fr_kv cache;
    fr_arena arena = {0};
    if (!fr_turbo(e->kv_types.k) || count == 0) return FR_OK;
    fr_kv_layout(&cache, &arena, shapes, trunk->kv_count, types, sizes);
    layout_squares(&cache, &arena, shapes);
    FR_TRY(fr_arena_open(&arena, arena.used, "mean keys"));
    fr_kv_layout(&cache, &arena, shapes, trunk->kv_count, types, sizes);
    layout_squares(&cache, &arena, shapes);
    fr_status status = run_ids(e, &cache, ids, count);
    for (size_t kv = 0; kv < e->kv.count && status == FR_OK; kv++)
        for (size_t h = 0; e->kv.layers[kv].key_means && h < cache.layers[kv].heads; h++)
            learn_head(&e->kv.layers[kv].key_means[h], &cache.layers[kv], h, count);
    fr_arena_close(&arena);
    return status;
}

uint64_t fr_mean_keys_hash(const fr_engine *e, uint64_t hash) {
    const uint32_t learned = LEARNED;
    if (!fr_turbo(e->kv_types.k)) return hash;
    return fr_hash(fr_hash(hash, text, sizeof text), &learned, sizeof learned);
}
