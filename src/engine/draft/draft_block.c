/* The methods `dflash`, `dflash2` and `dspark`, whose drafters are block drafters (block.h).
 *
 * In: timelines, and the target's rows when the target runs them. Out: the drafts of a block for each timeline.
 *
 * The drafter's cache (drafter_cache.h) holds context: keys and values of the positions that the target has run. A
 * proposal first adds the context of new positions, and then runs the block. The block's keys and values lie after the
 * context, and the block of the next round overwrites them. So a rejected block leaves no trace.
 *
 * If fr_proposal.depth is below the block's size, the block has only that many masks, as in the published code. A round
 * may want fewer drafts than `depth`, because the text ends or because more rows are not worth their time. The block is
 * then still run whole. Its cost hardly depends on the number of masks, and the drafts are better with as many masks as
 * in training.
 *
 * Sessions of an engine work in one workspace. If sessions propose together, their blocks are run together through the
 * layers and the head. Then each session chooses its drafts row by row, because DFlash2 and DSpark choose a draft
 * depending on the preceding draft. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sizes.h"
#include "src/engine/draft/block.h"
#include "src/engine/draft/draft_choice.h"
#include "src/engine/draft/drafter_cache.h"
#include "src/engine/draft/learned_head.h"
#include "src/engine/families/architecture.h"
#include "src/engine/layers/parts.h"

/* The most rows that are scored together. Each of them has a row of scores that is as wide as the vocabulary. */
enum { SCORED_ROWS = 64 };

typedef struct workspace {
    const fr_drafter *drafter;
    const fr_block_net *net;
    fr_kv kv; /* this cache has the layout of the sessions' caches, and the pages of all of them; no session uses it as
               * its own */
    fr_block_rows rows;
    fr_kv **timelines;         /* [sessions] for each block in `asks`, the cache of its session */
    struct block *asks;        /* [sessions] the blocks of the proposals that are run together */
    size_t scored;             /* the most rows that are scored together */
    float *heads;              /* [scored, hidden] the rows that are scored */
    float *scores;             /* [scored, candidates] the head's scores of the rows in `heads` */
    float *selected;           /* [scored, rank] DFlash2: the selector's products of the rows */
    float *codes;              /* [top_k, rank] DFlash2: the codes of a row's best ids */
    float *best;               /* [top_k] the scores of best_ids */
    int32_t *best_ids, *order; /* best_ids: [top_k] a row's best ids; order: [candidates] memory for sorting */
    float *befores, *biases;   /* DSpark: befores [sessions, rank] has the code of each session's last draft; biases
                                * [sessions, candidates] has the biases that are computed from these codes */
    float *row;                /* [rank] DFlash2: the code of the id before a row, multiplied by the selector's product
                                * of the row */
    fr_learned_head learned;
} workspace;

typedef struct state {
    fr_draft base;
    workspace *work;
    fr_drafter_cache cache;
    fr_learned_ids learned;
} state;

/* The block of one session's proposal. */
typedef struct block {
    state *of;
    fr_proposal *proposal;
    fr_followed_rows context; /* the target's new rows, which are run as context */
    size_t count;             /* rows of the block */
    size_t scored;            /* index of the block's first scored row among all scored rows */
} block;

static const fr_matrix *head_of(const workspace *w) {
    if (w->learned.whole) return &w->learned.matrix;
    return w->drafter->head.ids ? &w->drafter->head.matrix : &w->net->trunk.head;
}

static const int32_t *ids_of(const workspace *w) {
    return w->drafter->head.ids ? w->drafter->head.ids : w->net->ids;
}

/* Counts the rows at the beginning of a block that don't score a draft. */
static size_t unscored(const fr_block_net *net) {
    return net->config.from_anchor ? 0 : 1;
}

/* Gives the most drafts that a block can give. */
static size_t most_drafts(const fr_block_net *net) {
    return fr_smaller(net->config.block - unscored(net), FR_STEP_MAX - 1);
}

/* ---------------------------------------------------------------------------------------------------------- context */

/* New rows of context, which the team runs. */
typedef struct context_run {
    const fr_block_rows *rows;
    fr_batch batch;
} context_run;

static void store_context(void *context, const fr_team *team) {
    const context_run *run = context;
    fr_block_run_context(team, run->rows, &run->batch);
}

static void place_row(workspace *w, size_t at, size_t timeline, size_t position, int32_t id, bool first) {
    int32_t p = (int32_t)position;
    w->rows.rows[at] = (fr_row){.id = id,
                                .timeline = (int32_t)timeline,
                                .position = p,
                                .parent = first ? -1 : (int32_t)at - 1,
                                .rope_position = {{p, p, p}}};
}

static void run_context_rows(workspace *w, fr_pool *pool, size_t count) {
    context_run run = {&w->rows, {.rows = w->rows.rows, .count = count, .timelines = w->timelines}};
    if (count) fr_pool_run_some(pool, w, count, store_context, &run);
}

/* Runs the new context of blocks [0, count), and moves the frontiers of their caches. If the context has more rows than
 * a batch can have, several batches are run. */
static void run_contexts(workspace *w, fr_pool *pool, size_t count) {
    size_t rows = 0, width = w->net->fc.cols;
    for (size_t b = 0; b < count; b++) {
        const fr_followed_rows *context = &w->asks[b].context;
        w->timelines[b] = &w->asks[b].of->cache.kv;
        for (size_t i = 0; i < context->count; i++) {
            if (rows == w->rows.most) {
                run_context_rows(w, pool, rows);
                rows = 0;
            }
            memcpy(w->rows.input + rows * width, fr_followed_row(context, i), width * sizeof(float));
            place_row(w, rows, b, context->first + i, 0, i == 0 || rows == 0);
            rows++;
        }
    }
    run_context_rows(w, pool, rows);
    for (size_t b = 0; b < count; b++) {
        const fr_followed_rows *context = &w->asks[b].context;
        fr_drafter_cache_advance(&w->asks[b].of->cache, context->first + context->count);
    }
}

static void block_cut(fr_draft *draft, const fr_draft_view *view) {
    fr_drafter_cache_cut(&((state *)draft)->cache, view);
}

static fr_status block_follow(fr_draft *draft, const fr_draft_view *view) {
    state *s = (state *)draft;
    size_t end = view->kv->length;
    fr_drafter_cache_cut(&s->cache, view);
    if (end <= s->cache.kv.length || fr_drafter_cache_keep(&s->cache, view, end)) return FR_OK;
    s->work->asks[0] = (block){.of = s};
    if (fr_drafter_cache_take(&s->cache, view, end, 0, &s->work->asks[0].context)) run_contexts(s->work, view->pool, 1);
    return FR_OK;
}

/* -------------------------------------------------------------------------------------------------------- the block */

/* Blocks [from, to), which the team runs. */
typedef struct block_run {
    const workspace *work;
    fr_batch batch;
    size_t from, to, scored;
} block_run;

/* Copies the scored rows of all blocks, one after the other, to the head's input. Each thread copies the rows that it
 * owns. */
static void gather_heads(const fr_team *team, const block_run *run) {
    const workspace *w = run->work;
    size_t hidden = w->net->trunk.spec.hidden, skipped = unscored(w->net), begin, end, at = 0;
    fr_part_rows(team, run->batch.count, &begin, &end);
    for (size_t b = run->from; b < run->to; b++)
        for (size_t i = 0; i < w->asks[b].count; i++, at++) {
            if (i < skipped || at < begin || at >= end) continue;
            size_t scored = w->asks[b].scored + i - skipped;
            memcpy(w->heads + scored * hidden, w->rows.hidden + at * hidden, hidden * sizeof(float));
            fr_matrix_input_row(&w->rows.activations->workspace, scored, w->heads + scored * hidden, hidden);
        }
}

static void run_blocks(void *context, const fr_team *team) {
    const block_run *run = context;
    const workspace *w = run->work;
    const fr_block_config *c = &w->net->config;
    const fr_workspace *products = &w->rows.activations->workspace;
    const fr_kernels *k = w->rows.activations->kernels;
    size_t hidden = w->net->trunk.spec.hidden, count = head_of(w)->features, begin, end;
    fr_block_run_layers(team, &w->rows, &run->batch);
    gather_heads(team, run);
    fr_team_sync(team);
    fr_matrix_apply(team, products, head_of(w), &(fr_matrix_rows){w->scores, count, w->heads, hidden, run->scored});
    if (w->selected)
        fr_matrix_apply(team, products, &w->net->selector,
                        &(fr_matrix_rows){w->selected, c->rank, w->heads, hidden, run->scored});
    fr_part_features(team, count, &begin, &end);
    for (size_t r = 0; r < run->scored && begin < end; r++) {
        float *scores = w->scores + r * count + begin;
        if (c->multiplier != 1.0F) k->scale(scores, end - begin, c->multiplier);
        if (c->softcap != 0.0F) k->softcap(scores, end - begin, c->softcap);
    }
}

/* --------------------------------------------------------------------------------------------------------- choosing */

/* Gives the id before a block's next draft. */
static int32_t id_before(const block *b) {
    const fr_proposal *p = b->proposal;
    return p->proposed ? p->ids[p->proposed - 1] : p->view->ids[p->view->length - 1];
}

/* Computes DFlash2's scores of a row's best ids. all: the head's scores of the row. The score of an id is the head's
 * score plus a number that says how well the id follows the preceding id p. This number is the sum over i < config.rank
 * of before[p][i] * selected[i] * after[id][i]. */
static fr_scores select_best(const workspace *w, const block *b, size_t row, const fr_scores *all) {
    const fr_block_net *net = w->net;
    const fr_kernels *k = w->rows.activations->kernels;
    size_t rank = net->config.rank, top = fr_smaller(net->config.top_k, all->count);
    k->topk(all->logits, all->count, top, w->best_ids, w->order);
    fr_matrix_row(k, &net->before, (size_t)id_before(b), 1.0f, w->row);
    k->mul(w->row, w->selected + row * rank, rank);
    for (size_t i = 0; i < top; i++) {
        size_t at = (size_t)w->best_ids[i];
        if (all->ids) w->best_ids[i] = all->ids[at];
        fr_matrix_row(k, &net->after, (size_t)w->best_ids[i], 1.0f, w->codes + i * rank);
        w->order[i] = (int32_t)at;
    }
    k->matmul[FR_F32](&(fr_matmul){.y = w->best,
                                   .y_stride = top,
                                   .x = w->row,
                                   .x_stride = rank,
                                   .rows = 1,
                                   .w = w->codes,
                                   .w_stride = rank * sizeof(float),
                                   .cols = rank,
                                   .features = top});
    for (size_t i = 0; i < top; i++) w->best[i] += all->logits[w->order[i]];
    return (fr_scores){.logits = w->best, .ids = w->best_ids, .count = top};
}

/* Returns the probability that DSpark's confidence head gives for a row's draft. before: the code of the id before the
 * draft. */
static double confidence_of(const workspace *w, size_t row, const float *before) {
    const fr_block_net *net = w->net;
    const fr_kernels *k = w->rows.activations->kernels;
    size_t hidden = net->trunk.spec.hidden;
    float parts[2] = {0}, sure;
    const struct {
        const float *x;
        size_t n;
    } inputs[] = {{w->heads + row * hidden, hidden},
                  {before, net->config.confidence_sees_draft ? net->config.rank : 0}};
    for (size_t i = 0; i < 2; i++) {
        fr_matmul product = {.y = &parts[i],
                             .y_stride = 1,
                             .x = inputs[i].x,
                             .x_stride = inputs[i].n,
                             .rows = 1,
                             .w = net->confidence + i * hidden,
                             .w_stride = inputs[i].n * sizeof(float),
                             .cols = inputs[i].n,
                             .features = 1};
        if (inputs[i].n) k->matmul[FR_F32](&product);
    }
    sure = -(parts[0] + parts[1] + net->confidence_bias);
    k->exp(&sure, &sure, 1);
    return 1.0 / (1.0 + (double)sure);
}

/* Adds the next draft of a block to its proposal. Returns true if another draft may follow. number: the block's index
 * among the blocks whose biases were computed. */
static bool choose(workspace *w, const block *b, size_t number) {
    const fr_block_net *net = w->net;
    const fr_model *target = w->drafter->target;
    size_t row = b->scored + b->proposal->proposed, count = head_of(w)->features;
    fr_scores scores = {.logits = w->scores + row * count, .ids = ids_of(w), .count = count};
    fr_scorer scorer = {target->kernels, target->trunk.spec.vocab, fr_drafter_path(w->drafter), "the block drafter's",
                        NULL};
    double sure;
    if (w->learned.whole) scores = fr_learned_head_scores(&w->learned, &b->of->learned, w->scores + row * count);
    if (w->selected) scores = select_best(w, b, row, &scores);
    if (net->confidence) {
        sure = confidence_of(w, row, w->befores + number * net->config.rank);
        scorer.chance = &sure;
    }
    return fr_draft_choice_add(b->proposal, &scores, &scorer);
}

/* Adds DSpark's biases to the scores of each block's next row, for blocks [from, to). */
static void add_biases(void *context, const fr_team *team) {
    const block_run *run = context;
    const workspace *w = run->work;
    size_t rank = w->net->config.rank, count = w->net->bias_after.features, begin, end;
    fr_matrix_apply(team, &w->rows.activations->workspace, &w->net->bias_after,
                    &(fr_matrix_rows){w->biases, count, w->befores, rank, run->to - run->from});
    fr_part_features(team, count, &begin, &end);
    for (size_t b = run->from; b < run->to && begin < end; b++) {
        size_t row = w->asks[b].scored + w->asks[b].proposal->proposed;
        w->rows.activations->kernels->add(w->scores + row * count + begin, w->biases + (b - run->from) * count + begin,
                                          end - begin);
    }
}

/* Chooses the drafts of blocks [from, to). Each pass chooses one draft for each block. Blocks without further drafts
 * leave the list. */
static void choose_drafts(workspace *w, fr_pool *pool, size_t from, size_t to) {
    size_t rank = w->net->config.rank;
    while (from < to) {
        const block_run run = {.work = w, .from = from, .to = to};
        size_t going = from;
        for (size_t b = from; b < to && w->befores; b++) {
            float *before = w->befores + (b - from) * rank;
            fr_matrix_row(w->rows.activations->kernels, &w->net->bias_before, (size_t)id_before(&w->asks[b]), 1.0f,
                          before);
            fr_matrix_input_row(&w->rows.activations->workspace, b - from, before, rank);
        }
        if (w->befores) fr_pool_run_some(pool, w->biases, to - from, add_biases, (void *)&run);
        for (size_t b = from; b < to; b++) {
            const block *ask = &w->asks[b];
            bool more = choose(w, ask, b - from) && ask->proposal->proposed + unscored(w->net) < ask->count;
            if (more) w->asks[going++] = *ask;
        }
        to = going;
    }
}

/* Prepares a session's block, and claims pages for the block and for its new context. Returns false if there are not
 * enough pages; the session then drafts nothing. */
static bool begin_block(fr_proposal *p, block *b) {
    state *s = (state *)p->draft;
    const fr_block_net *net = s->work->net;
    size_t drafts = fr_smaller(most_drafts(net), p->depth ? p->depth : p->count), end = p->view->length - 1;
    *b = (block){.of = s, .proposal = p, .count = drafts + unscored(net)};
    if (!p->count || !fr_drafter_cache_take(&s->cache, p->view, end, b->count, &b->context)) return false;
    fr_learned_ids_follow(&s->learned, &s->work->learned, p->view);
    return true;
}

/* Places the rows of a block in the batch, beginning with row `at` of the batch. */
static void place_block(workspace *w, size_t number, size_t at) {
    const block *b = &w->asks[number];
    const fr_draft_view *view = b->proposal->view;
    size_t position = view->length - 1;
    w->timelines[number] = &b->of->cache.kv;
    for (size_t i = 0; i < b->count; i++)
        place_row(w, at + i, number, position + i, i ? -1 : view->ids[position], i == 0);
    fr_block_set_sights(&w->net->config.sight, position, b->count, w->rows.full + at, w->rows.sliding + at);
}

static void block_propose(fr_proposal *first) {
    workspace *w = ((state *)first->draft)->work;
    fr_pool *pool = first->view->pool;
    size_t count = 0;
    for (fr_proposal *p = first; p; p = p->next) count += begin_block(p, &w->asks[count]);
    fr_learned_head_gather(&w->learned);
    run_contexts(w, pool, count);
    for (block_run run = {.work = w}; run.to < count;) {
        run.from = run.to;
        run.scored = run.batch.count = 0;
        while (run.to < count && run.batch.count + w->asks[run.to].count <= fr_smaller(w->rows.most, w->scored)) {
            place_block(w, run.to, run.batch.count);
            w->asks[run.to].scored = run.scored;
            run.scored += w->asks[run.to].count - unscored(w->net);
            run.batch.count += w->asks[run.to++].count;
        }
        run.batch.rows = w->rows.rows;
        run.batch.timelines = w->timelines;
        fr_pool_run_some(pool, &w->rows, run.batch.count, run_blocks, &run);
        choose_drafts(w, pool, run.from, run.to);
    }
}

/* ------------------------------------------------------------------------------------------------------------- open */

static void lay_out_pages(fr_kv *kv, fr_arena *arena, const fr_drafter *drafter, const fr_draft_sizes *sizes) {
    const fr_trunk *trunk = &((const fr_block_net *)drafter->net)->trunk;
    fr_drafter_cache_lay_out_pages(kv, arena, trunk->kv_shapes, trunk->kv_count, sizes);
}

static void take_scores(workspace *w, fr_arena *arena, const fr_draft_sizes *sizes) {
    const fr_block_config *c = &w->net->config;
    fr_learned_head_layout(&w->learned, arena, w->drafter, sizes);
    size_t hidden = w->net->trunk.spec.hidden;
    size_t candidates = w->learned.whole ? fr_learned_head_width(&w->learned) : head_of(w)->features;
    w->scored = fr_smaller(sizes->sessions * FR_STEP_MAX, SCORED_ROWS);
    w->heads = fr_arena_take(arena, w->scored * hidden, sizeof(float));
    w->scores = fr_arena_take(arena, w->scored * candidates, sizeof(float));
    w->row = fr_arena_take(arena, c->rank, sizeof(float));
    if (c->kind == FR_BLOCK_DFLASH2) {
        w->selected = fr_arena_take(arena, w->scored * c->rank, sizeof(float));
        w->codes = fr_arena_take(arena, c->top_k * c->rank, sizeof(float));
        w->best = fr_arena_take(arena, c->top_k, sizeof(float));
        w->best_ids = fr_arena_take(arena, c->top_k, sizeof(int32_t));
        w->order = fr_arena_take(arena, candidates, sizeof(int32_t));
    }
    if (c->kind == FR_BLOCK_DSPARK && c->rank) {
        w->befores = fr_arena_take(arena, sizes->sessions * c->rank, sizeof(float));
        w->biases = fr_arena_take(arena, sizes->sessions * candidates, sizeof(float));
    }
}

static void *block_workspace(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes) {
    workspace work = {.drafter = drafter, .net = drafter->net};
    workspace *place = fr_arena_take(arena, 1, sizeof *place);
    lay_out_pages(&work.kv, arena, drafter, sizes);
    fr_block_rows_layout(&work.rows, drafter, arena, fr_larger(sizes->rows, FR_STEP_MAX), sizes->threads);
    work.timelines = fr_arena_take(arena, sizes->sessions, sizeof(fr_kv *));
    work.asks = fr_arena_take(arena, sizes->sessions, sizeof *work.asks);
    take_scores(&work, arena, sizes);
    if (!place || arena->overflow) return NULL;
    *place = work;
    return place;
}

static fr_draft *block_open(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes) {
    workspace *work = sizes->workspace;
    fr_kv measured;
    if (!work) lay_out_pages(&measured, &(fr_arena){0}, drafter, sizes);
    const fr_block_net *net = drafter->net;
    state opened = {.base = {.method = drafter->method, .follows = true, .block = most_drafts(net)}, .work = work};
    state *place = fr_arena_take(arena, 1, sizeof *place);
    fr_drafter_cache_lay_out(&opened.cache, arena, work ? &work->kv : &measured, drafter, sizes);
    fr_learned_ids_layout(&opened.learned, arena, drafter, sizes);
    if (!place || arena->overflow) return NULL;
    *place = opened;
    return &place->base;
}

static void block_fork(fr_draft *fork, const fr_draft *draft) {
    fr_drafter_cache_fork(&((state *)fork)->cache, &((const state *)draft)->cache);
}

static fr_kv *block_kv(fr_draft *draft) {
    return &((state *)draft)->cache.kv;
}

static const fr_kv *workspace_kv(const void *work) {
    return &((const workspace *)work)->kv;
}

static void block_close(fr_draft *draft) {
    state *s = (state *)draft;
    fr_learned_ids_forget(&s->learned, &s->work->learned);
    fr_kv_reset(&s->cache.kv);
}

/* ------------------------------------------------------------------------------------------------------------- load */

static bool reads(const fr_checkpoint *files) {
    return fr_is_block_drafter(files);
}

/* The kind of drafter is read from the files, and decides which method the drafter gets. */
static fr_status load(fr_drafter *drafter) {
    static const fr_draft_method *const methods[] = {&fr_draft_dflash, &fr_draft_dflash2, &fr_draft_dspark};
    fr_block_config *config = calloc(1, sizeof *config);
    fr_block_net *net = drafter->net = calloc(1, sizeof *net);
    fr_status status = config && net ? fr_block_config_read(config, &drafter->weights, drafter->target)
                                     : fr_fail_memory("drafter", sizeof *config + sizeof *net);
    if (status == FR_OK) {
        drafter->method = methods[config->kind];
        drafter->aux_layers = config->aux_layers;
        status = fr_block_open(net, config, drafter);
    }
    free(config);
    return status;
}

static void unload(fr_drafter *drafter) {
    if (drafter->net) fr_block_close(drafter->net);
    free(drafter->net);
}

static const fr_matrix *head(const fr_drafter *drafter) {
    const fr_block_net *net = drafter->net;
    return net->ids ? NULL : &net->trunk.head;
}

/* Makes the table of a method's functions. whole: the head can't be made smaller. This is so for DSpark, whose biases
 * have a row for each id that the head scores. */
#define BLOCK_METHOD(word, whole)                                                                                   \
    {                                                                                                               \
        .name = word, .reads = reads, .load = load, .unload = unload, .head = head, .workspace = block_workspace,   \
        .open = block_open, .fork = block_fork, .propose = block_propose, .cut = block_cut, .follow = block_follow, \
        .kv = block_kv, .workspace_kv = workspace_kv, .close = block_close, .whole_head = whole                     \
    }

const fr_draft_method fr_draft_dflash = BLOCK_METHOD("dflash", false);
const fr_draft_method fr_draft_dflash2 = BLOCK_METHOD("dflash2", false);
const fr_draft_method fr_draft_dspark = BLOCK_METHOD("dspark", true);
