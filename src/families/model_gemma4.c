/* The Gemma 4 family: E-series, dense and mixture-of-experts targets.
 *
 * In: a checkpoint of Gemma4ForCausalLM or Gemma4ForConditionalGeneration. Out: its text model as an fr_model, and the
 * forward function: embed, layers (gemma4_layer.c), final norm, head. */
#include <math.h>
#include <stdlib.h>

#include "formats/error.h"
#include "src/families/gemma4.h"
#include "src/families/model.h"

static float embedding_scale(const fr_gemma4_config *c) {
    return (float)sqrt((double)c->hidden);
}

static fr_status gemma4_open(fr_model *model) {
    fr_gemma4_config config;
    FR_TRY(fr_gemma4_config_read(&config, &model->weights, false));
    fr_gemma4 *net = calloc(1, sizeof *net);
    if (!net) {
        fr_gemma4_config_free(&config);
        return fr_fail_memory("model", sizeof *net);
    }
    model->net = net;
    FR_TRY(fr_gemma4_open(net, &config, &model->weights));
    model->vocab = net->config.vocab;
    model->hidden = net->config.hidden;
    model->layers = net->config.layers;
    model->context_limit = net->config.context_limit;
    model->kv_shapes = net->kv_shapes;
    model->kv_count = net->kv_count;
    return FR_OK;
}

static void gemma4_close(fr_model *model) {
    if (model->net) fr_gemma4_close(model->net);
    free(model->net);
    model->net = NULL;
}

static void *gemma4_layout(const fr_model *model, fr_arena *arena, size_t max_rows, size_t threads) {
    const fr_gemma4 *net = model->net;
    fr_gemma4_pass pass, *place = fr_arena_take(arena, 1, sizeof *place);
    fr_gemma4_pass_layout(&pass, net, model->kernels, arena, max_rows, 0, threads);
    pass.span[FR_SLIDING] = net->config.window;
    if (place) *place = pass;
    return place;
}

static void gemma4_embed(const fr_model *model, int32_t id, float *row) {
    const fr_gemma4 *net = model->net;
    fr_matrix_row(model->kernels, &net->embedding, (size_t)id, embedding_scale(&net->config), row);
}

/* projection(embedding) of rows `first` on, for what layers [from, to) are told; from's column is dealt out whole. */
static void project_inputs(const fr_team *team, const fr_gemma4_pass *pass, size_t first, size_t from, size_t to) {
    const fr_gemma4 *net = pass->net;
    const fr_gemma4_config *c = &net->config;
    size_t width = c->layers * c->ple, begin, end;
    fr_partition(to - from, FR_OUT_UNIT, team->index, team->count, &begin, &end);
    fr_matrix_apply_part(team, &pass->work, &net->ple_projection, from + begin, from + end, pass->ple + first * width,
                         width, pass->x + first * c->hidden, c->hidden, first, pass->rows - first);
}

/* What each layer is told of each row's token: (norm(projection(embedding) / sqrt(hidden)) + table[id] * sqrt(ple)) /
 * sqrt(2), per layer. Rows that are run for their K/V alone never reach the layers behind the owners. */
static void per_layer_inputs(const fr_team *team, fr_gemma4_pass *pass, const int32_t *ids) {
    const fr_gemma4 *net = pass->net;
    const fr_gemma4_config *c = &net->config;
    const fr_kernels *k = pass->kernels;
    size_t width = c->layers * c->ple, begin, end;
    size_t owned = (net->owners * c->ple + FR_OUT_UNIT - 1) / FR_OUT_UNIT * FR_OUT_UNIT;
    float projection_scale = (float)(1.0 / sqrt((double)c->hidden)), table_scale = (float)sqrt((double)c->ple);
    if (owned > width) owned = width;
    fr_team_sync(team);
    fr_work_rows(team, &pass->work, pass->x, c->hidden, c->hidden, pass->rows);
    project_inputs(team, pass, 0, 0, owned);
    project_inputs(team, pass, pass->keep, owned, width);
    fr_team_sync(team);
    fr_rows_part(team, pass->rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *ple = pass->ple + r * width, *table = pass->ple_table + r * width;
        size_t layers = r < pass->keep ? net->owners : c->layers;
        fr_matrix_row(k, &net->ple_embedding, (size_t)ids[r], table_scale, table);
        k->scale(ple, layers * c->ple, projection_scale);
        for (size_t l = 0; l < layers; l++)
            k->rmsnorm(ple + l * c->ple, ple + l * c->ple, net->ple_norm, c->ple, c->eps);
        k->add(ple, table, layers * c->ple);
        k->scale(ple, layers * c->ple, (float)sqrt(0.5));
    }
}

static void gemma4_forward(const fr_team *team, fr_forward *f) {
    fr_gemma4_pass *shared = f->pass;
    const fr_gemma4_config *c = &shared->net->config;
    fr_gemma4_pass pass = *shared; /* a thread's own copy of the fields; the rows they point to are the team's */
    size_t begin, end;
    pass.kv = f->kv;
    pass.rows = f->rows;
    pass.keep = f->keep;
    pass.position = pass.last = f->position;
    fr_rows_part(team, pass.rows, &begin, &end);
    for (size_t r = begin; r < end; r++) gemma4_embed(f->model, f->ids[r], pass.x + r * c->hidden);
    fr_gemma4_rotations(team, &pass);
    if (c->ple) per_layer_inputs(team, &pass, f->ids);
    for (size_t l = 0; l < c->layers && (l < shared->net->owners || pass.rows); l++)
        fr_gemma4_layer_run(team, &pass, l);
    float *hidden = f->hidden + f->keep * c->hidden;
    fr_rows_part(team, pass.rows, &begin, &end);
    for (size_t r = begin; r < end; r++)
        pass.kernels->rmsnorm(hidden + r * c->hidden, pass.x + r * c->hidden, shared->net->norm, c->hidden, c->eps);
}

static fr_head gemma4_head(const fr_forward *f) {
    const fr_gemma4 *net = f->model->net;
    const fr_work *work = &((const fr_gemma4_pass *)f->pass)->work;
    return (fr_head){.matrix = &net->head, .work = work, .softcap = net->config.softcap};
}

static fr_expert_use gemma4_experts(const void *pass) {
    const fr_moe *moe = ((const fr_gemma4_pass *)pass)->moe;
    return moe ? moe->use : (fr_expert_use){0};
}

static void gemma4_describe(const fr_model *model, FILE *out) {
    fr_gemma4_describe(&((const fr_gemma4 *)model->net)->config, out);
}

static const char *const architectures[] = {"Gemma4ForCausalLM", "Gemma4ForConditionalGeneration", "gemma4", NULL};

const fr_family fr_family_gemma4 = {
    .architectures = architectures,
    .open = gemma4_open,
    .close = gemma4_close,
    .layout = gemma4_layout,
    .forward = gemma4_forward,
    .head = gemma4_head,
    .embed = gemma4_embed,
    .experts = gemma4_experts,
    .describe = gemma4_describe,
};
