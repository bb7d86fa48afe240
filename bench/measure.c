/* Times whole forwards (measure.h). */
#include "bench/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "bench/limits.h"
#include "src/engine/draft/assistant_gemma4.h"
#include "src/engine/draft/block.h"
#include "src/engine/draft/eagle.h"

void fr_bench_require(fr_status status) {
    if (status == FR_OK) return;
    fprintf(stderr, "bench: %s\n", fr_last_error());
    exit(1);
}

void fr_bench_prompt(const fr_model *model, int32_t *ids, size_t count, size_t number) {
    for (size_t i = 0; i < count; i++) {
        ids[i] = (int32_t)((i * i * 31 + 7 * i + 2 + 977 * number) % model->trunk.spec.vocab);
        if (ids[i] == model->image_token) ids[i] = 0;
    }
}

/* Gives each position up to `end` a page of the cache. If no free page is left, positions share pages. Every position
 * needs a page, even one that sliding layers have already dropped, because a measurement may use any of them. The
 * contents of the pages do not matter. */
static void reach(fr_kv *kv, size_t end) {
    for (fr_kv_kind kind = 0; kind < FR_KV_KINDS; kind++)
        for (size_t block = 0; kv->page_bytes[kind] && block < fr_kv_blocks(end); block++) {
            fr_kv_pages *pages = &kv->pages[kind];
            uint8_t **page = &kv->table[kind][block], *shared = pages->data + block % pages->count * pages->bytes;
            if (*page) continue;
            *page = fr_kv_pages_take(pages);
            if (!*page) fr_kv_pages_hold(pages, page, &shared, 0, 1);
        }
}

/* Moves the states of recurrent layers to a position; their contents do not matter. certain: the number of rows at the
 * start of the batch that are not drafts, and so advance the state; 0 counts as 1. */
static void reach_states(fr_recurrent *r, size_t position, size_t certain) {
    if (r->count == 0) return;
    fr_bench_require(fr_recurrent_claim(r, position));
    r->at = position;
    fr_recurrent_certain(r, position + (certain ? certain : 1));
}

/* Runs a batch of the timeline's ids. Logits are computed for the last `head_rows` rows. The other rows are only run
 * for their keys and values. */
static void run_batch(fr_session *s, size_t rows, size_t position, size_t head_rows) {
    reach(&s->cache.kv, position + rows);
    reach_states(&s->cache.kv.recurrent, position, rows - head_rows);
    fr_batch_rows(s, position, rows, 0, -1);
    fr_forward f = fr_batch_forward(s->engine, rows);
    f.keep = f.head_first = rows - head_rows;
    f.head_rows = head_rows;
    fr_forward_run(s->engine->pool, &f);
}

double fr_bench_forward(fr_session *session, size_t rows, size_t position) {
    double start = fr_clock();
    run_batch(session, rows, position, rows);
    return fr_clock() - start;
}

double fr_bench_prefill(fr_session *session, size_t count, size_t position) {
    double start = fr_clock();
    for (size_t done = 0, rows; done < count; done += rows) {
        rows = session->engine->chunk < count - done ? session->engine->chunk : count - done;
        run_batch(session, rows, position + done, done + rows == count);
    }
    return fr_clock() - start;
}

double fr_bench_decode(fr_session *session, size_t count, size_t position) {
    double start = fr_clock();
    for (size_t i = 0; i < count; i++) run_batch(session, 1, position + i, 1);
    return fr_clock() - start;
}

/* --------------------------------------------------------------------------------------------------- a filled cache */

enum { RUN = 512, BLOCK = 64 };

typedef struct filling {
    fr_session *session;
    size_t length;
} filling;

static void copy_rows(const fr_kv_layer *layer, const fr_kv_rows *rows, size_t from, size_t to) {
    for (size_t head = 0; head < layer->heads; head++)
        for (size_t position = from; position < to; position++)
            memcpy(fr_kv_slot(layer, rows, head, position), fr_kv_slot(layer, rows, head, position % RUN), rows->bytes);
}

/* Copies the keys and values of the first RUN positions to all other positions. Each thread writes the positions that
 * it would write in a real prompt, so that the pages are in the same NUMA nodes. */
static void fill_positions(void *context, const fr_team *team) {
    const filling *f = context;
    const fr_kv *kv = &f->session->cache.kv;
    size_t begin, end;
    fr_partition(BLOCK, 1, team->index, team->count, &begin, &end);
    for (size_t l = 0; l < kv->count; l++) {
        const fr_kv_layer *layer = &kv->layers[l];
        for (size_t block = RUN; block < f->length; block += BLOCK) {
            size_t to = block + end < f->length ? block + end : f->length;
            copy_rows(layer, &layer->k, block + begin, to);
            copy_rows(layer, &layer->v, block + begin, to);
        }
    }
}

void fr_bench_fill(fr_session *session, size_t length) {
    filling f = {session, length};
    fr_bench_prefill(session, length < RUN ? length : RUN, 0);
    reach(&session->cache.kv, length);
    fr_pool_run(session->engine->pool, fill_positions, &f);
}

/* ----------------------------------------------------------------------------------------------------------- drafts */

enum { BEFORE = 128 };

fr_status fr_bench_begin_drafts(fr_session *session) {
    int32_t ids[BEFORE], id;
    size_t count, accepted;
    fr_bench_prompt(session->model, ids, BEFORE, 0);
    FR_TRY(fr_session_prompt(session, ids, BEFORE));
    return fr_session_step(session, &id, 1, &count, &accepted);
}

fr_status fr_bench_time_drafts(fr_session *session, size_t drafts, double *seconds) {
    int32_t ids[FR_STEP_MAX];
    size_t count;
    double start = fr_clock();
    FR_TRY(fr_draft_now(session, drafts, ids, &count, NULL));
    *seconds = count == drafts ? fr_clock() - start : NAN;
    return FR_OK;
}

static double bytes_of(const fr_matrix *matrix) {
    return (double)matrix->features * (double)matrix->row_bytes;
}

/* Gives the bytes of weights that a step reads. chosen: the share of a mixture's experts that the step reads. */
static double streamed(const fr_weights *weights, double chosen) {
    double bytes = 0;
    for (size_t i = 0; i < weights->count; i++) {
        const fr_bound *bound = &weights->bound[i];
        if (bound->access == FR_STREAMED) bytes += (double)bound->tensor->bytes * (bound->chosen ? chosen : 1);
    }
    return bytes;
}

static bool is_bound(const fr_weights *weights, const fr_matrix *matrix) {
    for (size_t i = 0; i < weights->count; i++) {
        const fr_bound *bound = &weights->bound[i];
        const void *data = bound->packed ? bound->packed : bound->tensor->data;
        if (data == matrix->data && bound->access == FR_STREAMED) return true;
    }
    return false;
}

/* Gives the share of a mixture's experts that one row uses. If the model is not a mixture (spec is NULL), gives 1. */
static double chosen_experts(const fr_experts_spec *spec) {
    return spec && spec->count ? (double)spec->top_k / (double)spec->count : 1;
}

/* Gives the bytes that an assistant's step reads. A centroid head reads only the rows of the chosen clusters. */
static double assistant_bytes(const fr_drafter *drafter) {
    const fr_assistant *a = drafter->net;
    const fr_matrix *head = &a->trunk.head;
    double bytes = streamed(&drafter->weights, 1);
    if (a->clusters == 0) return bytes;
    if (is_bound(&drafter->weights, head)) bytes -= bytes_of(head);
    return bytes + (double)(a->top * a->cluster_size) * (double)head->row_bytes;
}

/* Returns the bytes of EAGLE-3's matrix fc, which combines the target's hidden rows. Returns 0 if the drafter has no
 * such matrix. Only the first step of a chain reads the matrix, because later steps start from the drafter's own
 * row. */
static double target_row_bytes(const fr_drafter *drafter) {
    return drafter->method == &fr_draft_eagle3 ? bytes_of(&((const fr_eagle *)drafter->net)->fc) : 0;
}

/* Gives the bytes that a step of the drafter reads, including the target's head if the drafter has no head of its
 * own. */
static double pairs_bytes(const fr_drafter *drafter) {
    const fr_pair_net *net = drafter->net;
    double bytes = streamed(&drafter->weights, chosen_experts(&net->spec->experts));
    if (!is_bound(&drafter->weights, net->head)) bytes += bytes_of(net->head);
    return bytes - target_row_bytes(drafter);
}

static bool is_block_drafter(const fr_drafter *drafter) {
    return drafter->method == &fr_draft_dflash || drafter->method == &fr_draft_dflash2 ||
           drafter->method == &fr_draft_dspark;
}

/* Gives the bytes that the forward of a block drafter reads, including the target's head if the drafter has no head of
 * its own. The matrix of DSpark's biases is read again for each draft. */
static double block_bytes(const fr_drafter *drafter) {
    const fr_block_net *net = drafter->net;
    const fr_matrix *head = drafter->head.ids ? &drafter->head.matrix : &net->trunk.head;
    double bytes = streamed(&drafter->weights, 1), drafts = (double)net->config.block - !net->config.from_anchor;
    if (net->own_head) bytes -= bytes_of(&net->trunk.head);
    return bytes + bytes_of(head) + bytes_of(&net->bias_after) * (drafts - 1);
}

double fr_bench_draft_bytes(const fr_drafter *drafter) {
    if (drafter->method == &fr_draft_assistant) return assistant_bytes(drafter);
    if (is_block_drafter(drafter)) return block_bytes(drafter);
    const fr_model *model = fr_drafter_model(drafter);
    if (!model) return pairs_bytes(drafter);
    return streamed(&model->weights, chosen_experts(fr_spec_experts(&model->trunk.spec)));
}

double fr_bench_first_draft_bytes(const fr_drafter *drafter) {
    return fr_bench_draft_bytes(drafter) + target_row_bytes(drafter);
}

/* ----------------------------------------------------------------------------------------------------------- ratios */

double fr_bench_verify_ratio(fr_session *session, size_t rows, size_t position, double *one) {
    double ratios[FR_BENCH_PAIRS], ones[FR_BENCH_PAIRS];
    fr_bench_forward(session, rows, position);
    for (size_t pair = 0; pair < FR_BENCH_PAIRS; pair++) {
        ones[pair] = fr_bench_forward(session, 1, position);
        ratios[pair] = fr_bench_forward(session, rows, position) / ones[pair];
    }
    *one = fr_bench_median(ones, FR_BENCH_PAIRS);
    return fr_bench_median(ratios, FR_BENCH_PAIRS);
}

/* Returns the bytes that a forward reads and writes for the states of recurrent layers. */
static double state_bytes(const fr_trunk *trunk) {
    double bytes = 0;
    for (size_t i = 0; i < trunk->recurrent_count; i++) {
        const fr_recurrent_shape *shape = &trunk->recurrent_shapes[i];
        bytes += (double)(shape->heads * fr_deltanet_state(shape->key_dim, shape->value_dim) * sizeof(float));
    }
    return 2 * bytes;
}

/* Gives the cost of a forward. use: counts of the experts that the forward read; all counts are 0 if the model is not a
 * mixture. */
static fr_bench_cost cost_with(const fr_model *model, size_t rows, const fr_expert_use *use) {
    double read = use->all ? (double)use->read / (double)use->all : 1;
    double chosen = use->all ? (double)use->pairs / (double)use->all : (double)rows;
    fr_bench_cost cost = {.experts = NAN};
    for (size_t i = 0; i < model->weights.count; i++) {
        const fr_bound *bound = &model->weights.bound[i];
        double values = 1;
        if (bound->access != FR_STREAMED) continue;
        for (uint32_t d = 0; d < bound->tensor->dims; d++) values *= (double)bound->tensor->shape[d];
        cost.bytes += (double)bound->tensor->bytes * (bound->chosen ? read : 1);
        if (bound->tensor->dims > 1) cost.macs += values * (bound->chosen ? chosen : (double)rows);
    }
    cost.bytes += state_bytes(&model->trunk);
    if (use->all) cost.experts = read * (double)fr_spec_experts(&model->trunk.spec)->count;
    return cost;
}

/* Adds the cost of attention over latents. A row sees the latents up to its own position. Each head of the row
 * multiplies each of these latents twice: first the whole latent, as a key, and then all of it except its rotary part,
 * as a value. */
static void add_latents(fr_bench_cost *cost, const fr_session *session, size_t rows, size_t position) {
    const fr_trunk *trunk = &session->model->trunk;
    double seen = 0;
    for (size_t r = 0; r < rows; r++) seen += (double)(position + r + 1);
    for (size_t i = 0; i < trunk->spec.layers; i++) {
        const fr_attention_spec *spec = &trunk->spec.layer[i].attention;
        if (trunk->spec.layer[i].mixer != FR_MIXER_MLA) continue;
        cost->bytes += (double)(position + rows) * (double)session->cache.kv.layers[spec->kv].k.bytes;
        cost->attention += (double)spec->heads * seen * (double)(spec->head_dim + spec->latent);
    }
}

fr_bench_cost fr_bench_cost_of(fr_session *session, size_t rows, size_t position) {
    fr_expert_use before = fr_model_expert_use(session->engine->activations);
    fr_bench_forward(session, rows, position);
    fr_expert_use use = fr_model_expert_use(session->engine->activations);
    use.all -= before.all;
    use.read -= before.read;
    use.pairs -= before.pairs;
    fr_bench_cost cost = cost_with(session->model, rows, &use);
    add_latents(&cost, session, rows, position);
    return cost;
}

/* Measures the bandwidth of memory after a pair of measurements. *bandwidth is the value from before the pair, and
 * becomes the value from after it. Returns true if the pair counts. A pair counts if the bandwidth hardly changed, or
 * if too many pairs were repeated already. */
static bool counts(fr_session *session, const fr_bench_memory *memory, double *bandwidth, size_t *again) {
    double before = *bandwidth, after = fr_bench_memory_read(session->engine->pool, memory);
    bool steady = fmax(before, after) * 6 <= fmin(before, after) * 7;
    *bandwidth = after;
    if (steady || *again == 3 * FR_BENCH_PAIRS) return true;
    ++*again;
    return false;
}

fr_bench_stream fr_bench_stream_of(fr_session *session, size_t position) {
    double rates[FR_BENCH_PAIRS], shares[FR_BENCH_PAIRS], steps[FR_BENCH_PAIRS];
    double bytes = fr_bench_cost_of(session, 1, position).bytes;
    fr_bench_memory memory = fr_bench_memory_open(session->engine->pool, (size_t)1 << 30);
    size_t again = 0;
    double bandwidth = fr_bench_memory_read(session->engine->pool, &memory);
    for (size_t pair = 0; pair < FR_BENCH_PAIRS; pair += counts(session, &memory, &bandwidth, &again)) {
        rates[pair] = bandwidth;
        steps[pair] = fr_bench_forward(session, 1, position);
        shares[pair] = bytes / steps[pair] / rates[pair];
    }
    fr_bench_memory_close(&memory);
    double middle = fr_bench_median(rates, FR_BENCH_PAIRS); /* this also sorts the rates */
    return (fr_bench_stream){.bandwidth = middle,
                             .lowest = rates[0],
                             .highest = rates[FR_BENCH_PAIRS - 1],
                             .step = fr_bench_median(steps, FR_BENCH_PAIRS),
                             .share = fr_bench_median(shares, FR_BENCH_PAIRS),
                             .again = again};
}

fr_dtype fr_bench_main_type(const fr_model *model) {
    double bytes[FR_DTYPE_COUNT] = {0};
    fr_dtype main = 0;
    for (size_t i = 0; i < model->weights.count; i++) {
        const fr_bound *bound = &model->weights.bound[i];
        if (bound->access == FR_STREAMED) bytes[bound->tensor->type] += (double)bound->tensor->bytes;
    }
    for (fr_dtype type = 0; type < FR_DTYPE_COUNT; type++)
        if (bytes[type] > bytes[main]) main = type;
    return main;
}

/* Gives the share of the dot product's peak that remains when weights of this type must be unpacked too. Returns 1 if
 * the share is unknown. */
static double dot_share(fr_dtype type) {
    static const double shares[FR_DTYPE_COUNT] = {
        [FR_Q4_0] = 0.75, [FR_Q8_0] = 0.75, [FR_Q4_K] = 0.62, [FR_Q6_K] = 0.62};
    return shares[type] > 0 ? shares[type] : 1;
}

double fr_bench_product_peak(const fr_model *model, double dot_peak) {
    return dot_share(fr_bench_main_type(model)) * dot_peak;
}

static bool has_latents(const fr_trunk_spec *spec) {
    for (size_t i = 0; i < spec->layers; i++)
        if (spec->layer[i].mixer == FR_MIXER_MLA) return true;
    return false;
}

fr_bench_limits fr_bench_limits_now(fr_session *session, double bandwidth) {
    const fr_model *model = session->model;
    fr_pool *pool = session->engine->pool;
    bool integers = fr_weights_quantized(&model->weights), latents = has_latents(&model->trunk.spec);
    double floats = latents || !integers ? fr_bench_fma_peak(pool, fr_model_isa(model)) : INFINITY;
    double products = integers ? fr_bench_dot_peak(pool, fr_model_isa(model)) : floats;
    return (fr_bench_limits){bandwidth, fr_bench_product_peak(model, products), latents ? floats : INFINITY};
}

double fr_bench_row_limit(const fr_bench_cost *one, const fr_bench_cost *rows, const fr_bench_limits *limits) {
    double read = rows->bytes / limits->bandwidth, multiplied = rows->macs / limits->peak;
    return (fmax(read, multiplied) + rows->attention / limits->attention) /
           (one->bytes / limits->bandwidth + one->attention / limits->attention);
}

fr_bench_verify fr_bench_verify_limited(fr_session *session, const fr_bench_memory *memory, size_t rows,
                                        size_t position) {
    double ratios[FR_BENCH_PAIRS], limits[FR_BENCH_PAIRS], overs[FR_BENCH_PAIRS];
    fr_bench_cost one_cost = fr_bench_cost_of(session, 1, position), cost = fr_bench_cost_of(session, rows, position);
    double bandwidth = fr_bench_memory_read(session->engine->pool, memory);
    size_t again = 0;
    for (size_t pair = 0; pair < FR_BENCH_PAIRS; pair += counts(session, memory, &bandwidth, &again)) {
        fr_bench_limits now = fr_bench_limits_now(session, bandwidth);
        limits[pair] = fr_bench_row_limit(&one_cost, &cost, &now);
        /* An untimed forward comes first, so that the two timed forwards find the same data in the caches. */
        fr_bench_forward(session, rows, position);
        double one = fr_bench_forward(session, 1, position);
        ratios[pair] = fr_bench_forward(session, rows, position) / one;
        overs[pair] = ratios[pair] / limits[pair];
    }
    return (fr_bench_verify){.ratio = fr_bench_median(ratios, FR_BENCH_PAIRS),
                             .limit = fr_bench_median(limits, FR_BENCH_PAIRS),
                             .over = fr_bench_median(overs, FR_BENCH_PAIRS),
                             .experts = cost.experts,
                             .again = again};
}
