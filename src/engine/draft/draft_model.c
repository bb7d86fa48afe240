/* The method `draft`, which drafts token by token with a smaller model of the target's vocabulary.
 *
 * In: the ids of the timeline. Out: a chain of drafts: the tokens with which the model continues the timeline. The
 * model may be of any family. The vocabularies are compared token by token. If the model's ids mean something else than
 * the target's, the method in draft_text.c is used instead.
 *
 * The model has a cache of its own. The cache's frontier is the number of ids that the model has run and that are still
 * on the timeline:
 *     prompt --> run up to the last id (begin, or the next proposal)
 *     proposal: run the new ids and the last one, whose logits give the first draft; then the drafts themselves
 *     commit: the frontier moves over the accepted drafts that were run, which are all but the last draft proposed
 * At a prompt's beginning, the model skips the whole blocks that it has run for any session (kv_prefixes.h). A model
 * with recurrent layers begins after the last states that were kept within the common beginning. After rounds without
 * drafts, the model first runs the ids that it has missed, in as few forwards as possible.
 *
 * The model sees only the ids of pictures, not the pictures. Its cache has the same types as the target's. Sessions of
 * an engine work in one workspace, all in one batch. Each session has its own table of the cache's pages, and there are
 * enough pages for all. Source: Leviathan et al. 2023, arXiv:2211.17192. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "base/ranks.h"
#include "base/sizes.h"
#include "src/engine/cache/kv_prefixes.h"
#include "src/engine/draft/draft_choice.h"
#include "src/engine/draft/learned_head.h"
#include "src/language/tokenizer/tokenizer.h"

typedef struct workspace {
    const fr_model *model;
    fr_draft_head head;         /* the trimmed head that scores drafts; if it has no ids, the model's own head scores
                                 * them */
    fr_learned_head learned;    /* the trimmed head that learns ids and scores drafts; learned.whole is NULL if there is
                                 * no such head */
    size_t vocab, target_vocab; /* vocab: number of ids that are in both models; target_vocab: number of ids in the
                                 * target */
    /* this cache has the layout of the sessions' caches, and the pages of all of them; no session uses it as its own */
    fr_kv kv;
    fr_kv_prefixes prefixes; /* tree of the texts that the model has run, including those of closed sessions */
    void *activations;
    size_t most;        /* most rows of a batch */
    fr_row *rows;       /* [most] the rows of the batch */
    float *hidden;      /* [most, hidden] the hidden rows of the batch's rows */
    fr_kv **timelines;  /* [sessions] the caches of the sessions in the batch */
    fr_proposal **asks; /* [sessions] for each row with logits in the batch, the proposal to which it belongs */
    float *logits;      /* [sessions, features of the head] scores of each row with logits */
    int64_t *best;      /* [threads, sessions] as fr_forward.best */
    size_t sessions;
} workspace;

typedef struct state {
    fr_draft base;
    workspace *work;
    fr_kv kv;
    fr_kv_path path; /* the timeline's path in the tree `prefixes` */
    size_t length;   /* the timeline's length at the last proposal */
    fr_learned_ids learned;
} state;

/* ------------------------------------------------------------------------------------------------------------- rows */

static fr_row row_of(size_t timeline, int32_t id, size_t position, int32_t parent) {
    int32_t at = (int32_t)position;
    return (fr_row){
        .id = id, .timeline = (int32_t)timeline, .position = at, .parent = parent, .rope_position = {{at, at, at}}};
}

/* Places ids [from, to) of a timeline in rows of the batch, from row `at` on. parent: the row that precedes the first
 * of these rows in the timeline. */
static void place(workspace *w, size_t timeline, const fr_draft_view *view, size_t from, size_t to, size_t at,
                  int32_t parent) {
    for (size_t p = from; p < to; p++, at++) {
        bool known = (size_t)view->ids[p] < w->model->trunk.spec.vocab; /* the draft model has this id; other ids are
                                                                         * only the target's */
        w->rows[at] = row_of(timeline, known ? view->ids[p] : 0, p, parent);
        parent = (int32_t)at;
    }
}

/* Gives the trimmed head that scores drafts. Gives NULL if the model's own head scores them. */
static const fr_matrix *head_of(const workspace *w) {
    return w->learned.whole ? &w->learned.matrix : w->head.ids ? &w->head.matrix : NULL;
}

/* Runs the first `count` rows, and computes logits for the last `heads` of them. */
static void run(workspace *w, fr_pool *pool, size_t count, size_t heads) {
    fr_forward f = {.model = w->model,
                    .activations = w->activations,
                    .batch = {.rows = w->rows, .count = count, .timelines = w->timelines},
                    .keep = count - heads,
                    .hidden = w->hidden,
                    .head_first = count - heads,
                    .head_rows = heads,
                    .head = head_of(w),
                    .logits = w->logits,
                    .best = w->best,
                    .best_stride = w->sessions};
    fr_forward_run(pool, &f);
}

/* Claims pages for `rows` more rows. Returns false if there are not enough pages. That can happen because sessions may
 * share pages of the target's cache that they don't share in the draft model's cache. */
static bool claim(state *s, size_t rows) {
    return fr_failure_keep(fr_kv_claim(&s->kv, rows)).status == FR_OK;
}

static fr_kv_content content_of(const fr_draft_view *view) {
    return (fr_kv_content){.ids = view->ids}; /* for this model, the positions of a picture are just ids */
}

/* Shares the blocks that were run, so that prompts of other sessions can skip them. */
static void offer(state *s, const fr_draft_view *view) {
    fr_kv_prefixes_add(&s->work->prefixes, &s->path, &s->kv, NULL, content_of(view), false);
}

/* Chooses the positions whose recurrent states are kept. A state can't be cut back, so another prompt can begin only at
 * such a position. States are kept at the end of the ids that are run now, and at the last position of blocks: of each
 * of the first four blocks, and of every fourth block after them. */
static bool wants_states(size_t position, size_t end) {
    size_t every = position < 4 * FR_KV_PAGE ? FR_KV_PAGE : 4 * FR_KV_PAGE;
    return position == end || position % every == every - 1;
}

/* Takes pages for the states at the wanted positions up to `to`, which the next forward fills. One page is reserved for
 * the last position. Returns the number of pages. */
static size_t save_states(state *s, size_t to, size_t end, size_t *positions, uint8_t **pages) {
    fr_recurrent *r = &s->kv.recurrent;
    size_t count = 0;
    for (size_t p = r->at + 1; r->count && p <= to && count < FR_RECURRENT_POINTS; p++) {
        bool last = count + 1 == FR_RECURRENT_POINTS;
        if (!wants_states(p, end) || (last && p != to) || !(pages[count] = fr_recurrent_save(r, p))) continue;
        positions[count++] = p;
    }
    return count;
}

/* Shares the states that a forward has stored, together with the last, incomplete block. */
static void offer_states(state *s, const fr_draft_view *view, size_t count, const size_t *positions, uint8_t **pages) {
    fr_kv_prefixes *prefixes = &s->work->prefixes;
    offer(s, view);
    uint32_t tail = fr_kv_prefixes_add_tail(prefixes, &s->path, &s->kv, NULL, content_of(view), s->kv.length);
    for (size_t i = 0; i < count; i++)
        fr_kv_prefixes_add_point(prefixes, &s->path, tail, positions[i], pages[i], positions[i] != s->kv.length);
    fr_kv_pages_drop(s->kv.recurrent.pages, pages, 0, count);
}

/* Runs the ids before `end` that are not in the cache yet, in several forwards if there are many. Returns false if
 * there are not enough pages. */
static bool catch_up(state *s, const fr_draft_view *view, size_t end) {
    workspace *w = s->work;
    w->timelines[0] = &s->kv;
    while (s->kv.length < end) {
        size_t from = s->kv.length, to = fr_smaller(end, from + w->most);
        if (!claim(s, to - from)) return false;
        fr_recurrent_certain(&s->kv.recurrent, to);
        size_t positions[FR_RECURRENT_POINTS], count;
        uint8_t *pages[FR_RECURRENT_POINTS];
        count = save_states(s, to, end, positions, pages);
        place(w, 0, view, from, to, 0, -1);
        run(w, view->pool, to - from, 0);
        fr_kv_commit(&s->kv, to);
        if (count) offer_states(s, view, count, positions, pages);
    }
    return true;
}

/* Skips the leading ids that the model has run before for any session. */
static void find(state *s, const fr_draft_view *view) {
    fr_kv_prefixes *prefixes = &s->work->prefixes;
    size_t found = fr_kv_prefixes_find(prefixes, content_of(view), view->length, false);
    if (found <= s->kv.length) return;
    fr_kv_reset(&s->kv);
    fr_kv_path_cut(prefixes, &s->path, 0);
    fr_kv_prefixes_take(prefixes, &s->path, &s->kv, NULL, content_of(view), found);
}

/* Cuts the cache to the ids that are unchanged: ids from view->seen on may be new. */
static void model_cut(fr_draft *draft, const fr_draft_view *view) {
    state *s = (state *)draft;
    size_t stands = view->length ? fr_smaller(view->seen, view->length - 1) : 0;
    if (s->kv.length <= stands) return;
    fr_kv_rewind(&s->kv, fr_kv_holds_lookback(&s->kv, stands) ? stands : 0);
    fr_kv_path_cut(&s->work->prefixes, &s->path, s->kv.length);
}

/* ------------------------------------------------------------------------------------------------------- one method */

/* Runs a prompt at once, so that its time counts as the prompt's time and not as the first proposal's. If there may
 * never be a proposal (view->defers), the prompt is not run yet. */
static void model_begin(fr_draft *draft, const fr_draft_view *view) {
    state *s = (state *)draft;
    model_cut(draft, view);
    find(s, view);
    if (!view->defers) catch_up(s, view, view->length - 1);
    offer(s, view);
}

/* Counts the ids that the model has not run yet. The last id of the timeline is not counted. */
static size_t behind(const fr_proposal *p) {
    return p->view->length - 1 - ((state *)p->draft)->kv.length;
}

/* Prepares a session's chain. If the model has missed more ids than a batch has room for, these ids are run first. Then
 * pages are claimed for the remaining ids and for the chain. Returns false if there are not enough pages; the session
 * then drafts nothing. */
static bool begin_chain(fr_proposal *p, size_t room) {
    state *s = (state *)p->draft;
    size_t last = p->view->length - 1;
    model_cut(p->draft, p->view);
    if (behind(p) > room && !catch_up(s, p->view, last)) return false;
    if (!claim(s, behind(p) + p->count)) return false;
    fr_learned_ids_follow(&s->learned, &s->work->learned, p->view);
    fr_recurrent_certain(&s->kv.recurrent, last);
    s->length = p->view->length;
    return true;
}

/* Begins the chains of all sessions that can draft, and returns their number. *rows is the total number of rows that
 * are run before the last ids of these sessions. */
static size_t begin_chains(workspace *w, fr_proposal *first, size_t *rows) {
    size_t going = 0;
    *rows = 0;
    for (fr_proposal *p = first; p; p = p->next) {
        if (!begin_chain(p, w->most - w->sessions - *rows)) continue;
        *rows += behind(p);
        w->asks[going++] = p;
    }
    return going;
}

/* Places rows in the batch. The first rows are, session by session, the ids that the model has not run, except each
 * session's last id. The last ids of all sessions follow after these rows. */
static void place_first(workspace *w, size_t going, size_t rows) {
    for (size_t i = 0, at = 0; i < going; i++) {
        const fr_draft_view *view = w->asks[i]->view;
        size_t last = view->length - 1, new = behind(w->asks[i]);
        w->timelines[i] = &((state *)w->asks[i]->draft)->kv;
        place(w, i, view, last - new, last, at, -1);
        at += new;
        place(w, i, view, last, last + 1, rows + i, new ? (int32_t)at - 1 : -1);
    }
}

static size_t features_of(const workspace *w) {
    return head_of(w) ? head_of(w)->features : w->model->trunk.spec.vocab;
}

/* Gives the scores from a row of logits, for the session of a proposal. */
static fr_scores scores_of(workspace *w, size_t row, const fr_proposal *p) {
    const fr_draft_head *head = &w->head;
    float *logits = w->logits + row * features_of(w);
    if (w->learned.whole) return fr_learned_head_scores(&w->learned, &((state *)p->draft)->learned, logits);
    return (fr_scores){.logits = logits, .ids = head->ids, .count = head->ids ? head->matrix.features : w->vocab};
}

/* Adds a draft from each of the first `count` rows to the row's proposal. Returns the number of chains that go on, and
 * places the rows of these chains at the beginning of the next batch. */
static size_t take_drafts(workspace *w, size_t count) {
    const fr_scorer scorer = {w->model->kernels, w->target_vocab, w->model->files.path, "the draft model's", NULL};
    size_t going = 0;
    for (size_t i = 0; i < count; i++) {
        fr_proposal *p = w->asks[i];
        const fr_scores scores = scores_of(w, i, p);
        if (!fr_draft_choice_add(p, &scores, &scorer)) continue;
        w->asks[going] = p;
        w->timelines[going] = &((state *)p->draft)->kv;
        w->rows[going] = row_of(going, p->ids[p->proposed - 1], p->view->length - 1 + p->proposed, -1);
        going++;
    }
    return going;
}

static void model_propose(fr_proposal *first) {
    workspace *w = ((state *)first->draft)->work;
    size_t rows, going = begin_chains(w, first, &rows);
    place_first(w, going, rows);
    fr_learned_head_gather(&w->learned);
    for (; going; rows = 0) {
        run(w, first->view->pool, rows + going, going);
        if (fr_ranks_check(w->model->ranks) != FR_OK) return; /* then the target's next forward will fail too */
        for (size_t i = 0; i < going; i++) {
            state *s = (state *)w->asks[i]->draft;
            if (w->asks[i]->proposed == 0) fr_kv_commit(&s->kv, s->length);
        }
        going = take_drafts(w, going);
    }
}

/* Moves the frontier over the accepted drafts that were run. The last draft proposed has not been run. */
static void model_commit(fr_draft *draft, const fr_draft_view *view, size_t proposed, size_t accepted) {
    state *s = (state *)draft;
    if (proposed == 0 || s->kv.length != s->length || view->length < s->length + accepted) return;
    fr_kv_commit(&s->kv, s->length + fr_smaller(accepted, proposed - 1));
    offer(s, view);
}

/* ------------------------------------------------------------------------------------------------------------- open */

/* A session may need this many more pages here than in the target's cache, because its chain may reach past the page of
 * the last position. */
enum { OWN_PAGES = 2 };

static void lay_out_cache(fr_kv *kv, fr_arena *arena, const fr_model *model, const fr_draft_sizes *sizes) {
    const fr_trunk *trunk = &model->trunk;
    size_t context = sizes->context + FR_STEP_MAX;
    size_t pages = sizes->pages + OWN_PAGES * sizes->sessions;
    fr_kv_types types = fr_kv_drafter_types(trunk->kv_shapes, trunk->kv_count, sizes->kv_types);
    fr_kv_layout(kv, arena, trunk->kv_shapes, trunk->kv_count, types,
                 (fr_kv_sizes){.context = context,
                               .batch = context,
                               .timelines = sizes->sessions,
                               .pages = pages,
                               .checkpoints = sizes->checkpoints,
                               .recurrent = trunk->recurrent_shapes,
                               .recurrent_count = trunk->recurrent_count});
}

static void *model_workspace(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes) {
    const fr_model *model = drafter->net;
    const fr_trunk_spec *spec = &model->trunk.spec;
    size_t target_vocab = drafter->target->trunk.spec.vocab;
    workspace w = {.model = model,
                   .head = drafter->head,
                   .vocab = fr_smaller(spec->vocab, target_vocab),
                   .target_vocab = target_vocab,
                   .most = sizes->rows,
                   .sessions = sizes->sessions};
    workspace *place = fr_arena_take(arena, 1, sizeof *place);
    lay_out_cache(&w.kv, arena, model, sizes);
    w.activations = fr_model_layout(model, arena, sizes->rows, sizes->threads);
    w.rows = fr_arena_take(arena, sizes->rows, sizeof *w.rows);
    w.hidden = fr_arena_take(arena, sizes->rows * spec->hidden, sizeof *w.hidden);
    w.timelines = fr_arena_take(arena, sizes->sessions, sizeof(fr_kv *));
    w.asks = fr_arena_take(arena, sizes->sessions, sizeof(fr_proposal *));
    fr_learned_head_layout(&w.learned, arena, drafter, sizes);
    size_t scores = w.learned.whole ? fr_learned_head_width(&w.learned) : features_of(&w);
    w.logits = fr_arena_take(arena, sizes->sessions * scores, sizeof *w.logits);
    w.best = fr_arena_take(arena, sizes->threads * sizes->sessions, sizeof *w.best);
    fr_kv_prefixes_layout(&w.prefixes, arena, &w.kv, NULL);
    if (!place || arena->overflow) return NULL;
    *place = w;
    fr_kv_prefixes_serve(&place->prefixes);
    return place;
}

static fr_draft *model_open(const fr_drafter *drafter, fr_arena *arena, const fr_draft_sizes *sizes) {
    workspace *work = sizes->workspace;
    fr_kv measured;
    if (!work) lay_out_cache(&measured, &(fr_arena){0}, drafter->net, sizes);
    state opened = {.base = {.method = &fr_draft_model, .lags = true}, .work = work};
    state *place = fr_arena_take(arena, 1, sizeof *place);
    fr_kv_layout_fork(&opened.kv, arena, work ? &work->kv : &measured);
    fr_kv_path_layout(&opened.path, arena, &opened.kv);
    fr_learned_ids_layout(&opened.learned, arena, drafter, sizes);
    if (!place || arena->overflow) return NULL;
    *place = opened;
    return &place->base;
}

static void model_fork(fr_draft *fork, const fr_draft *draft) {
    const state *of = (const state *)draft;
    fr_kv_fork(&((state *)fork)->kv, &of->kv);
    ((state *)fork)->length = of->length;
}

static fr_kv *model_kv(fr_draft *draft) {
    return &((state *)draft)->kv;
}

static void model_close(fr_draft *draft) {
    state *s = (state *)draft;
    fr_learned_ids_forget(&s->learned, &s->work->learned);
    fr_kv_reset(&s->kv);
    fr_kv_path_cut(&s->work->prefixes, &s->path, 0);
}

/* Keeps this method if ids mean the same in both models. Otherwise changes the drafter's method to fr_draft_text. */
static fr_status choose_method(fr_drafter *drafter) {
    const fr_model *model = drafter->net, *target = drafter->target;
    size_t vocab = model->trunk.spec.vocab, targets = target->trunk.spec.vocab;
    if (model->tokenizer && target->tokenizer) {
        if (!fr_tokenizers_agree(model->tokenizer, target->tokenizer)) drafter->method = &fr_draft_text;
        return FR_OK;
    }
    if (vocab == targets) return FR_OK;
    return fr_fail(FR_INPUT,
                   "%s: its vocabulary has %zu ids, the target's %zu, and one of them has no tokenizer: it "
                   "can't draft for it",
                   model->files.path, vocab, targets);
}

/* Divides the model's weights among the target's ranks. */
static void share(fr_model *model, const fr_model *target) {
    fr_ranks *ranks = target->weights.ranks;
    if (!ranks) return;
    model->weights.ranks = ranks;
    if (fr_trunk_share_drafter(&model->trunk, &model->weights, &target->rank_plan))
        model->ranks = ranks;
    else
        model->weights.ranks = NULL;
}

/* Loads the model from the drafter's files. The model's weights are the drafter's weights. */
static fr_status model_load(fr_drafter *drafter) {
    const fr_model *target = drafter->target;
    fr_model *model = calloc(1, sizeof *model);
    if (!model) return fr_fail_memory("drafter", sizeof *model);
    drafter->net = model;
    model->files = drafter->files;
    model->kernels = target->kernels;
    model->machine = target->machine;
    model->plan = target->plan;
    if (drafter->files.gguf) memcpy(model->pre, target->pre, sizeof model->pre);
    fr_weights_close(&drafter->weights);
    fr_status status = fr_model_bind_files(model, "");
    if (status == FR_OK) {
        share(model, target);
        fr_weights_compare(&model->weights, fr_spec_mixture_size(&model->trunk.spec), &target->weights,
                           fr_memory_available(""));
    }
    drafter->weights = model->weights;
    return status == FR_OK ? choose_method(drafter) : status;
}

static void model_unload(fr_drafter *drafter) {
    fr_model *model = drafter->net;
    if (!model) return;
    model->weights = (fr_weights){0};
    model->files = (fr_checkpoint){0};
    fr_model_unload(model);
}

static const fr_matrix *model_head(const fr_drafter *drafter) {
    const fr_model *model = drafter->net;
    return &model->trunk.head;
}

static bool model_reads(const fr_checkpoint *files) {
    const fr_family *family;
    return fr_family_find(files, &family) == FR_OK;
}

const fr_draft_method fr_draft_model = {
    .name = "draft",
    .reads = model_reads,
    .load = model_load,
    .unload = model_unload,
    .head = model_head,
    .workspace = model_workspace,
    .open = model_open,
    .fork = model_fork,
    .propose = model_propose,
    .cut = model_cut,
    .begin = model_begin,
    .commit = model_commit,
    .kv = model_kv,
    .close = model_close,
};
