/* The GLM family: GLM-OCR's text model.
 *
 * In: a checkpoint of GlmOcrForConditionalGeneration. Out: its text model as an fr_model, and the forward function:
 * embed, layers (glm_layer.c), final norm, head. */
#include <stdlib.h>
#include <string.h>

#include "formats/error.h"
#include "src/families/glm.h"
#include "src/vision/vision.h"

static fr_status glm_open(fr_model *model) {
    fr_glm_config config;
    FR_TRY(fr_glm_config_read(&config, &model->weights));
    fr_glm *net = calloc(1, sizeof *net);
    if (!net) return fr_fail_memory("model", sizeof *net);
    model->net = net;
    FR_TRY(fr_glm_open(net, &config, &model->weights));
    model->vocab = net->config.vocab;
    model->hidden = net->config.hidden;
    model->layers = net->config.layers;
    model->mtp_layers = net->config.mtp_layers;
    model->context_limit = net->config.context_limit;
    model->kv_shapes = net->kv_shapes;
    model->kv_count = net->config.layers;
    model->image_token = net->config.image_token;
    if (!fr_vision_exists(&model->weights)) return FR_OK;
    return fr_vision_open(&model->weights, model->kernels, model->hidden, &model->vision);
}

static void glm_close(fr_model *model) {
    if (model->net) fr_glm_close(model->net);
    free(model->net);
    model->net = NULL;
}

static void *glm_layout(const fr_model *model, fr_arena *arena, size_t max_rows, size_t threads) {
    fr_glm_pass pass, *place = fr_arena_take(arena, 1, sizeof *place);
    fr_glm_pass_layout(&pass, model->net, model->kernels, model->weights.has_packed, arena, max_rows, threads);
    if (place) *place = pass;
    return place;
}

static void glm_embed(const fr_model *model, int32_t id, float *row) {
    const fr_glm *net = model->net;
    fr_matrix_row(model->kernels, &net->embedding, (size_t)id, 1.0f, row);
}

static void glm_forward(const fr_team *team, fr_forward *f) {
    fr_glm_pass pass = *(fr_glm_pass *)f->pass; /* a thread's own copy of the fields; the rows are the team's */
    const fr_glm_config *c = &pass.net->config;
    size_t begin, end;
    pass.rows = f->rows;
    pass.slot = (size_t)f->position;
    fr_rows_part(team, pass.rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        const float *given = fr_given_row(f->given, pass.slot + r, c->hidden);
        if (given)
            memcpy(pass.x + r * c->hidden, given, c->hidden * sizeof *given);
        else
            glm_embed(f->model, f->ids[r], pass.x + r * c->hidden);
    }
    fr_glm_rotations(team, &pass, f->places);
    for (size_t l = 0; l < c->layers; l++) fr_glm_layer_run(team, &pass, &pass.net->layers[l], &f->kv->layers[l]);
    for (size_t r = begin; r < end; r++)
        pass.kernels->rmsnorm(f->hidden + r * c->hidden, pass.x + r * c->hidden, pass.net->norm, c->hidden, c->eps);
}

static fr_head glm_head(const fr_forward *f) {
    const fr_glm *net = f->model->net;
    return (fr_head){.matrix = &net->head, .work = &((const fr_glm_pass *)f->pass)->work};
}

static void glm_describe(const fr_model *model, FILE *out) {
    const fr_glm_config *c = &((const fr_glm *)model->net)->config;
    fprintf(out, "layers         %zu, all of full attention\n", c->layers);
    fprintf(out, "width          hidden %zu, feed-forward %zu, %zu attention heads, %zu of keys and values, of %zu\n",
            c->hidden, c->ffn, c->heads, c->kv_heads, c->head_dim);
    fprintf(out, "vocabulary     %zu ids\n", c->vocab);
}

static const char *const architectures[] = {"GlmOcrForConditionalGeneration", "glm4", NULL};

const fr_family fr_family_glm = {
    .architectures = architectures,
    .picture = "<|image|>",
    .open = glm_open,
    .close = glm_close,
    .layout = glm_layout,
    .forward = glm_forward,
    .head = glm_head,
    .embed = glm_embed,
    .describe = glm_describe,
    .chained = &fr_glm_chained,
};
