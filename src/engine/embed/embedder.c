/* Opens embedders and runs them: see embedder.h. */
#include "src/engine/embed/embedder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cores.h"
#include "base/error.h"
#include "base/sizes.h"
#include "src/engine/session/scoring.h"
#include "src/language/tokenizer/tokenizer.h"

/* ---------------------------------------------------------------------------------------------------------- opening */

static size_t hidden_of(const fr_embedder *e) {
    return e->model->encoder ? fr_encoder_fact(e->model->encoder).hidden : e->model->trunk.spec.hidden;
}

/* Chooses how rows are pooled. The caller's choice comes first, then the choice of the model's makers. If neither is
 * given, an encoder gets the mean, as in sentence-transformers. A model that generates text then gets no pooling,
 * because it was perhaps not made for embeddings. */
static fr_status choose_pooling(fr_embedder *e, fr_pooling pooling) {
    static const fr_pool_mode of[] = {
        [FR_POOLING_MEAN] = FR_POOL_MEAN, [FR_POOLING_CLS] = FR_POOL_CLS, [FR_POOLING_LAST] = FR_POOL_LAST};
    fr_recipe *r = &e->recipe;
    if (pooling == FR_POOLING_RANK) return fr_fail(FR_USAGE, "fr_embedder_open: pooling %d makes no rows", pooling);
    if (pooling == FR_POOLING_NONE && (r->mode_count || !e->model->encoder)) return FR_OK;
    /* If the makers join the results of several poolings to one row, the modules with weights read rows of that
     * width. */
    for (size_t i = 0; r->mode_count > 1 && i < r->step_count; i++)
        if (r->steps[i].kind != FR_STEP_NORMALIZE)
            return fr_fail(FR_INPUT, "%s: its dense layers and norms read %zu pooled rows side by side",
                           e->model->files.path, r->mode_count);
    for (size_t i = 0; r->mode_count > 1 && i < r->step_count; i++) r->steps[i].in = r->steps[i].out = hidden_of(e);
    if (r->mode_count > 1) r->width = hidden_of(e);
    r->modes[0] = pooling == FR_POOLING_NONE ? FR_POOL_MEAN : of[pooling];
    r->mode_count = 1;
    return FR_OK;
}

/* Finds the tokens for yes and no. A model that generates text judges a pair by the logits of these two tokens. */
static void find_answers(fr_embedder *e) {
    const fr_tokenizer *tokenizer = e->model->tokenizer;
    if (e->model->encoder || !tokenizer || e->recipe.yes >= 0) return;
    if (fr_model_check_head(e->model) != FR_OK) return;
    int32_t yes = fr_tokenizer_id(tokenizer, "yes"), no = fr_tokenizer_id(tokenizer, "no");
    size_t vocab = e->model->trunk.spec.vocab;
    if (yes < 0 || no < 0 || (size_t)yes >= vocab || (size_t)no >= vocab) return;
    e->recipe.yes = yes;
    e->recipe.no = no;
}

static fr_status open_embedder(fr_embedder *e, fr_pooling pooling) {
    const fr_model *model = e->model;
    FR_TRY(fr_recipe_read(model, &e->recipe));
    FR_TRY(choose_pooling(e, pooling));
    find_answers(e);
    size_t most = model->encoder ? fr_encoder_fact(model->encoder).context : model->trunk.spec.context_limit;
    e->limit = e->recipe.limit ? fr_smaller(e->recipe.limit, most) : most;
    int64_t context = e->options.value[FR_OPT_CONTEXT];
    if (context > 0) e->limit = fr_smaller(e->limit, (size_t)context);
    if (!model->encoder) return FR_OK;
    e->plan = model->plan;
    fr_cores_claim(&model->machine, &e->plan);
    return fr_pool_open(&e->plan, &e->pool);
}

fr_status fr_embedder_create(const fr_model *model, fr_engine *engine, const fr_options *options, fr_pooling pooling,
                             fr_embedder **embedder) {
    fr_embedder *e = calloc(1, sizeof *e);
    *embedder = NULL;
    if (!e) return fr_fail_memory("an embedder", sizeof *e);
    *e = (fr_embedder){.model = model, .engine = engine, .options = *options};
    e->options.biases = NULL;
    snprintf(e->options.spec_type, sizeof e->options.spec_type, "none");
    fr_status status = open_embedder(e, pooling);
    if (status == FR_OK)
        *embedder = e;
    else
        fr_embedder_destroy(e);
    return status;
}

static void close_sessions(fr_embedder *e, size_t kept) {
    while (e->group.count > kept) fr_session_destroy(e->group.sessions[--e->group.count]);
}

static void close_own_engine(fr_embedder *e) {
    close_sessions(e, 0);
    fr_engine_destroy(e->own_engine);
    e->own_engine = NULL;
}

void fr_embedder_destroy(fr_embedder *e) {
    if (!e) return;
    close_own_engine(e);
    fr_encoder_memory_close(e->memory);
    if (e->pool) {
        fr_pool_close(e->pool);
        fr_cores_release(&e->plan);
    }
    fr_recipe_close(&e->recipe);
    free(e);
}

bool fr_embedder_can_score(const fr_embedder *e) {
    return e->model->encoder ? fr_encoder_fact(e->model->encoder).labels == 1 : e->recipe.yes >= 0;
}

bool fr_embedder_normalizes(const fr_embedder *e) {
    return e->recipe.step_count && e->recipe.steps[e->recipe.step_count - 1].kind == FR_STEP_NORMALIZE;
}

/* ---------------------------------------------------------------------------------------------------------- running */

fr_status fr_embedder_check_ids(const fr_embedder *e, const int32_t *ids, size_t count) {
    size_t vocab = e->model->encoder ? fr_encoder_fact(e->model->encoder).vocab : e->model->trunk.spec.vocab;
    for (size_t i = 0; i < count; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= vocab)
            return fr_fail(FR_INPUT, "id %d at %zu is outside the vocabulary of %zu", ids[i], i, vocab);
    return FR_OK;
}

fr_status fr_embedder_check(const fr_embedder *e, const fr_embedder_text *texts, size_t count) {
    size_t types = e->model->encoder ? fr_encoder_fact(e->model->encoder).types : 0;
    for (size_t t = 0; t < count; t++) {
        if (texts[t].count == 0) return fr_fail(FR_INPUT, "text %zu has no tokens", t);
        if (texts[t].count > e->limit)
            return fr_fail_about(FR_OPT_CONTEXT, FR_INPUT, "text %zu has %zu tokens, and at most %zu are read", t,
                                 texts[t].count, e->limit);
        FR_TRY(fr_embedder_check_ids(e, texts[t].ids, texts[t].count));
        for (size_t i = 0; types && texts[t].types && i < texts[t].count; i++)
            if (texts[t].types[i] >= types)
                return fr_fail(FR_INPUT, "text %zu: token type %d at %zu is none of the model's %zu", t,
                               texts[t].types[i], i, types);
    }
    return FR_OK;
}

/* Refuses a result that is not finite. Such results come from weights that are too large or damaged. */
static fr_status check_finite(const fr_embedder *e, size_t text, const float *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return fr_fail(FR_INPUT,
                           "%s: text %zu gets a value that is not finite: the weights are damaged or too "
                           "large for float32",
                           e->model->files.path, text);
    return FR_OK;
}

/* Receives a text's rows, and pools or classifies them. */
typedef fr_status take_rows(void *context, fr_embedder *e, size_t text, const float *rows);

static fr_status reserve(fr_embedder *e, size_t rows) {
    if (e->memory && e->memory_rows >= rows) return FR_OK;
    fr_encoder_memory_close(e->memory);
    e->memory = NULL;
    e->memory_rows = rows;
    return fr_encoder_memory_open(e->model->encoder, rows, e->plan.threads, &e->memory);
}

/* Runs texts through an encoder. Several texts share a forward, so that it has about FR_ENCODER_ROWS rows. */
static fr_status run_encoder(fr_embedder *e, const fr_embedder_text *texts, size_t count, take_rows *take,
                             void *context) {
    size_t longest = FR_ENCODER_ROWS;
    for (size_t t = 0; t < count; t++) longest = fr_larger(longest, texts[t].count);
    FR_TRY(reserve(e, longest));
    FR_TRY(fr_files_check(e->model, NULL));
    size_t hidden = fr_encoder_fact(e->model->encoder).hidden;
    fr_encoder_text batch[FR_ENCODER_ROWS];
    for (size_t first = 0, many; first < count; first += many) {
        const float *rows;
        size_t together = 0;
        for (many = 0; first + many < count && many < FR_ENCODER_ROWS; many++) {
            const fr_embedder_text *text = &texts[first + many];
            if (many && together + text->count > FR_ENCODER_ROWS) break;
            batch[many] = (fr_encoder_text){text->ids, text->types, text->count};
            together += text->count;
        }
        fr_encoder_run(e->memory, e->pool, batch, many, &rows);
        for (size_t t = 0; t < many; rows += texts[first + t++].count * hidden, e->done++)
            FR_TRY(take(context, e, first + t, rows));
    }
    return FR_OK;
}

/* Limits the memory for the keys, values and states of texts that are run in the same forwards. A text of at most 64
 * tokens takes one page. A page has 7 MB in float16 for Qwen3-Embedding-0.6B and Qwen3-Reranker-0.6B. */
#define CACHE_BYTES ((size_t)256 << 20)

/* Opens the embedder's own engine for the longest text, and for as many texts in one forward as CACHE_BYTES hold. If a
 * long text takes more pages than others, fewer texts run together with it (text_group.c). */
static fr_status open_own_engine(fr_embedder *e, size_t many, size_t longest) {
    fr_options options = e->options;
    fr_session_bytes bytes;
    close_own_engine(e);
    e->own_texts = many;
    options.value[FR_OPT_CONTEXT] = (int64_t)fr_smaller(fr_larger(longest, 512), e->limit);
    options.value[FR_OPT_CHUNK] = (int64_t)fr_model_chunk(e->model, &options, true);
    options.value[FR_OPT_CTX_CHECKPOINTS] = 0;
    options.value[FR_OPT_KV_MEMORY] = 0;
    for (; many > 1; many /= 2) {
        FR_TRY(fr_session_measure(e->model, NULL, &options, many, &bytes));
        if (bytes.states <= CACHE_BYTES) break;
    }
    if (many > 1 && bytes.target_kv > CACHE_BYTES)
        options.value[FR_OPT_KV_MEMORY] = (int64_t)fr_larger(bytes.least_kv, CACHE_BYTES);
    FR_TRY(fr_engine_create(e->model, NULL, &options, many > 1 ? many : 0, &e->own_engine));
    /* No text begins with the pages of an earlier text, so no pages are kept for later texts. */
    e->own_engine->shares = false;
    fr_status status = FR_OK;
    while (e->group.count < many && status == FR_OK) {
        status = fr_session_create(e->own_engine, &options, &e->group.sessions[e->group.count]);
        e->group.count += status == FR_OK;
    }
    if (status != FR_OK) close_own_engine(e);
    return status;
}

/* Opens sessions in the caller's engine. The engine has room for the first session, which may already be open. Copies
 * of the first session are opened if the engine has places and memory for them. */
static fr_status open_in_engine(fr_embedder *e, size_t many) {
    fr_session **sessions = e->group.sessions;
    fr_engine_settle(e->engine); /* drafts that are being made at this time take pages too */
    if (e->group.count == 0) FR_TRY(fr_session_create(e->engine, &e->options, sessions));
    e->group.count = 1;
    while (e->group.count < many && fr_session_copy(*sessions, &e->options, &sessions[e->group.count]) == FR_OK)
        e->group.count++;
    return FR_OK;
}

/* Runs texts through a model that generates text. If the engine is the caller's, only one session stays open
 * afterwards. */
static fr_status run_group(fr_embedder *e, const fr_embedder_text *texts, size_t count, bool logits, fr_group_fn *sink,
                           void *context) {
    size_t longest = 1, many = fr_smaller(count, FR_TEXT_GROUP_MAX);
    for (size_t t = 0; t < count; t++) longest = fr_larger(longest, texts[t].count);
    fr_group_text *list = malloc(count * sizeof *list);
    if (!list) return fr_fail_memory("texts", count * sizeof *list);
    for (size_t t = 0; t < count; t++) list[t] = (fr_group_text){texts[t].ids, texts[t].count};
    fr_status status = FR_OK;
    if (e->engine)
        status = open_in_engine(e, many);
    else if (!e->own_engine || e->own_texts < many || e->own_engine->context < longest)
        status = open_own_engine(e, fr_larger(many, e->own_engine ? e->own_texts : 1), longest);
    if (status == FR_OK) status = fr_text_group_run(&e->group, list, count, logits, sink, context);
    free(list);
    if (e->engine) close_sessions(e, 1);
    return status;
}

/* Collects the rows of one text while forwards make them. */
typedef struct collected {
    fr_embedder *embedder;
    const fr_embedder_text *texts;
    take_rows *take;
    void *context;
    float *rows; /* room for the longest text */
    size_t count;
} collected;

static fr_status collect(void *context, size_t text, const float *rows, size_t count, size_t width) {
    collected *c = context;
    memcpy(c->rows + c->count * width, rows, count * width * sizeof *rows);
    c->count += count;
    if (c->count < c->texts[text].count) return FR_OK;
    c->count = 0;
    FR_TRY(c->take(c->context, c->embedder, text, c->rows));
    c->embedder->done++;
    return FR_OK;
}

/* Receives the rows of the only text, in an engine whose calls are repeated by other ranks (rank_leader.h). */
static fr_status collect_led(void *context, const float *rows, size_t count, size_t width) {
    return collect(context, 0, rows, count, width);
}

static fr_status run_sessions(fr_embedder *e, const fr_embedder_text *texts, size_t count, take_rows *take,
                              void *context) {
    size_t hidden = e->model->trunk.spec.hidden, longest = 1;
    for (size_t t = 0; t < count; t++) longest = fr_larger(longest, texts[t].count);
    collected c = {.embedder = e,
                   .texts = texts,
                   .take = take,
                   .context = context,
                   .rows = malloc(longest * hidden * sizeof *c.rows)};
    if (!c.rows) return fr_fail_memory("a text's rows", longest * hidden * sizeof *c.rows);
    fr_status status = e->engine && e->engine->leader
                           ? fr_scoring_rows(*e->group.sessions, texts->ids, texts->count, NULL, collect_led, &c)
                           : run_group(e, texts, count, false, collect, &c);
    free(c.rows);
    return status;
}

/* ------------------------------------------------------------------------------------------------------- embeddings */

typedef struct embedding {
    const fr_embedder_text *texts;
    size_t hidden, dimensions;
    int normalize;
    float *buffers[2];
    float *out;
} embedding;

static fr_status embed_text(void *context, fr_embedder *e, size_t t, const float *rows) {
    const embedding *job = context;
    const fr_embedder_text *text = &job->texts[t];
    fr_recipe_pool(&e->recipe, rows, text->count, job->hidden, text->prompt, job->buffers[0]);
    const float *row =
        fr_recipe_finish(&e->recipe, e->model->kernels, job->buffers[0], job->buffers[1], job->normalize == 0);
    float *out = job->out + t * job->dimensions;
    memcpy(out, row, job->dimensions * sizeof *out);
    bool cut = job->dimensions < e->recipe.width;
    if (job->normalize == 1 || (job->normalize < 0 && cut && fr_embedder_normalizes(e)))
        fr_row_normalize(out, job->dimensions);
    return check_finite(e, t, row, e->recipe.width);
}

fr_status fr_embedder_run(fr_embedder *e, const fr_embedder_text *texts, size_t count, size_t dimensions, int normalize,
                          float *rows) {
    e->done = 0;
    if (e->recipe.mode_count == 0)
        return fr_fail(FR_INPUT, "%s does not say how its rows are pooled: give --pooling", e->model->files.path);
    if (dimensions > e->recipe.width)
        return fr_fail(FR_USAGE, "%zu dimensions of rows that have %zu", dimensions, e->recipe.width);
    FR_TRY(fr_embedder_check(e, texts, count));
    if (count == 0) return FR_OK;
    size_t hidden = hidden_of(e);
    size_t widest = fr_recipe_widest(&e->recipe, hidden);
    embedding job = {.texts = texts,
                     .hidden = hidden,
                     .dimensions = dimensions ? dimensions : e->recipe.width,
                     .normalize = normalize,
                     .out = rows};
    job.buffers[0] = calloc(2 * widest, sizeof **job.buffers);
    if (!job.buffers[0]) return fr_fail_memory("a row", 2 * widest * sizeof **job.buffers);
    job.buffers[1] = job.buffers[0] + widest;
    fr_status status = (e->model->encoder ? run_encoder : run_sessions)(e, texts, count, embed_text, &job);
    free(job.buffers[0]);
    return status;
}

/* ----------------------------------------------------------------------------------------------------------- scores */

typedef struct scoring {
    fr_embedder *embedder;
    const fr_embedder_text *texts;
    float *scores;
} scoring;

static fr_status classify(void *context, fr_embedder *e, size_t t, const float *rows) {
    const scoring *job = context;
    fr_encoder_classify(e->memory, rows, job->texts[t].count, &job->scores[t]);
    return check_finite(e, t, &job->scores[t], 1);
}

/* Judges a pair by the logits of a model that generates text. The score is the logit of `yes` minus the logit of
 * `no`. */
static fr_status judge(void *context, size_t t, const float *logits, size_t count, size_t vocab) {
    const scoring *job = context;
    fr_embedder *e = job->embedder;
    (void)count;
    (void)vocab;
    float yes = logits[e->recipe.yes];
    job->scores[t] = e->recipe.no < 0 ? yes : yes - logits[e->recipe.no];
    FR_TRY(check_finite(e, t, &job->scores[t], 1));
    e->done++;
    return FR_OK;
}

fr_status fr_embedder_score(fr_embedder *e, const fr_embedder_text *pairs, size_t count, bool raw, float *scores) {
    e->done = 0;
    if (!fr_embedder_can_score(e))
        return e->model->encoder
                   ? fr_fail(FR_INPUT, "%s scores no pairs: its classifier has %zu labels, and 1 is needed",
                             e->model->files.path, fr_encoder_fact(e->model->encoder).labels)
                   : fr_fail(FR_INPUT, "%s scores no pairs: its tokenizer has no tokens for yes and no",
                             e->model->files.path);
    FR_TRY(fr_embedder_check(e, pairs, count));
    if (count == 0) return FR_OK;
    scoring job = {e, pairs, scores};
    fr_status status = e->model->encoder ? run_encoder(e, pairs, count, classify, &job)
                                         : run_group(e, pairs, count, true, judge, &job);
    for (size_t t = 0; t < e->done && !raw; t++)
        scores[t] = fr_dense_activate(e->model->kernels, e->recipe.scoring, scores[t]);
    return status;
}
