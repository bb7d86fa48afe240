/* The vision tower of Gemma 3: SigLIP, whose rows are averaged.
 *
 * Source: the published checkpoints and transformers 5.24, models gemma3 and siglip; for GGUF llama.cpp's converter,
 * projector "gemma3". A picture is stretched to one square size. Layers have LayerNorms, biases and a feed-forward
 * without a gate; a table has one learned position for each patch. After the last LayerNorm, the mean of a square of
 * patches is normed and multiplied, which gives a token's row. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/vision/tower.h"

#define SIDE         896 /* side of a resized picture in pixels, in published models */
#define TOKENS       256
#define GGUF_POOLING 4

static const double half[FR_VISION_CHANNELS] = {0.5, 0.5, 0.5};

/* The tensors that only this kind has. */
typedef struct ends {
    fr_matrix positions; /* [patches, hidden] */
    fr_vision_norm last; /* [hidden] */
    const float *norm;   /* [hidden] the RMS norm of a token's mean */
    fr_matrix project;   /* [out, hidden] */
} ends;

/* ---------------------------------------------------------------------------------------------------- configuration */

static fr_status check_activation(const json_t *vision) {
    const char *activation;
    FR_TRY(fr_json_text(vision, "hidden_act", FR_TOWER_CONFIG, &activation));
    if (!activation || strcmp(activation, "gelu_pytorch_tanh") == 0) return FR_OK;
    return fr_fail(FR_UNBUILT,
                   FR_TOWER_CONFIG ": hidden_act %s of the vision tower is not built (gelu_pytorch_tanh is)",
                   activation);
}

/* Checks that the processor resizes to the tower's size, and that it shows the whole picture only. */
static fr_status check_processor(const fr_tower_source *s, size_t side) {
    json_t *size;
    size_t width, height;
    bool crops;
    FR_TRY(fr_json_object(s->processor, "size", s->where, &size));
    FR_TRY(fr_tower_size(size, "width", 1, 1 << 16, (int64_t)side, s->where, &width));
    FR_TRY(fr_tower_size(size, "height", 1, 1 << 16, (int64_t)side, s->where, &height));
    if (width != side || height != side)
        return fr_fail(FR_UNBUILT, "%s: pictures of %zu x %zu are not built for a tower of %zu x %zu", s->where, width,
                       height, side, side);
    FR_TRY(fr_json_bool(s->processor, "do_pan_and_scan", false, s->where, &crops));
    if (!crops) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: do_pan_and_scan true is not built", s->where);
}

static fr_status read_folder(const fr_tower_source *s, size_t *side, size_t *tokens, fr_vision_config *c) {
    static const char where[] = FR_TOWER_CONFIG;
    const json_t *v = s->vision;
    json_t *text;
    size_t channels;
    double eps;
    FR_TRY(fr_json_object(s->root, "text_config", where, &text));
    FR_TRY(fr_tower_size(text, "hidden_size", 1, 1 << 17, 2304, where, &c->out));
    FR_TRY(fr_tower_size(s->root, "mm_tokens_per_image", 1, 1 << 16, TOKENS, where, tokens));
    FR_TRY(fr_tower_size(v, "hidden_size", 4, 1 << 16, 768, where, &c->hidden));
    FR_TRY(fr_tower_size(v, "num_hidden_layers", 1, FR_VISION_LAYERS_MAX, 12, where, &c->layers));
    FR_TRY(fr_tower_size(v, "num_attention_heads", 1, 4096, 12, where, &c->heads));
    FR_TRY(fr_tower_size(v, "intermediate_size", 1, 1 << 20, 3072, where, &c->ffn));
    FR_TRY(fr_tower_size(v, "patch_size", 1, 256, 16, where, &c->patch));
    FR_TRY(fr_tower_size(v, "image_size", 1, 1 << 16, 224, where, side));
    FR_TRY(fr_tower_size(v, "num_channels", FR_VISION_CHANNELS, FR_VISION_CHANNELS, 3, where, &channels));
    FR_TRY(fr_json_real(v, "layer_norm_eps", 0.0, 1.0, 1e-6, where, &eps));
    FR_TRY(check_activation(v));
    c->eps = (float)eps;
    FR_TRY(check_processor(s, *side));
    FR_TRY(fr_tower_resample(s, c));
    return fr_tower_pixels(s, half, half, c);
}

static fr_status read_gguf(const fr_tower_source *s, size_t *side, fr_vision_config *c) {
    bool gelu;
    FR_TRY(fr_gguf_bool(s->gguf, ".use_gelu", false, &gelu));
    if (!gelu) return fr_fail(FR_UNBUILT, "%s: a vision tower without clip.use_gelu is not built", s->gguf->path);
    FR_TRY(fr_tower_gguf_sizes(s->gguf, c));
    FR_TRY(fr_gguf_size(s->gguf, ".vision.image_size", 1, 1 << 16, SIDE, side));
    return fr_gguf_size(s->gguf, ".vision.projector.scale_factor", 1, 256, GGUF_POOLING, &c->merge);
}

/* Gives the square root of a number, rounded down. */
static size_t root_of(size_t number) {
    size_t root = 0;
    while ((root + 1) * (root + 1) <= number) root++;
    return root;
}

/* Reads the configuration. In folders the number of patches that make one token follows from the number of tokens. */
static fr_status read(fr_vision_config *c, const fr_tower_source *s) {
    const char *where = s->weights->files->path;
    size_t side = 0, tokens = 0;
    c->resample = FR_RESAMPLE_BILINEAR;
    FR_TRY(s->gguf ? read_gguf(s, &side, c) : read_folder(s, &side, &tokens, c));
    size_t patches = side / c->patch, across = s->gguf ? patches / c->merge : root_of(tokens);
    if (!s->gguf) c->merge = across ? patches / across : 0;
    if (!patches || side % c->patch || !c->merge || c->merge > 256 || across * c->merge != patches ||
        (tokens && across * across != tokens))
        return fr_fail(FR_INPUT, "%s: a picture of %zu x %zu pixels is no whole number of patches of %zu and of tokens",
                       where, side, side, c->patch);
    c->frames = 1;
    c->bias = c->layer_norm = true;
    c->activation = FR_VISION_GELU_TANH;
    c->positions = patches;
    return FR_OK;
}

/* Chooses the grid, which is the same for all pictures. */
static fr_status choose_grid(const fr_vision_config *c, size_t width, size_t height, fr_image_grid *grid) {
    (void)width;
    (void)height;
    *grid = (fr_image_grid){c->positions / c->merge, c->positions / c->merge};
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------------------- tensors */

static fr_status bind(const fr_tower_binder *b, fr_vision *v) {
    static const char *const projectors[] = {"multi_modal_projector.", "model.multi_modal_projector.", NULL};
    const fr_vision_config *c = &v->config;
    const fr_gguf *gguf = b->weights->files->gguf;
    const uint64_t patch[] = {c->hidden, FR_VISION_CHANNELS, c->patch, c->patch};
    const fr_tower_binder p = fr_tower_beside(b, projectors, "mm_input_projection_weight");
    const char *product = gguf ? "mm.input_projection.weight" : "mm_input_projection_weight";
    const char *norm = gguf ? "mm.soft_emb_norm.weight" : "mm_soft_emb_norm.weight";
    const char *embed = gguf ? "v.patch_embd.weight" : "embeddings.patch_embedding.weight";
    const char *positions = gguf ? "v.position_embd.weight" : "embeddings.position_embedding.weight";
    ends *e = v->own = calloc(1, sizeof *e);
    if (!e) return fr_fail_memory("vision tower", sizeof *e);
    FR_TRY(fr_bind_convolution(b->weights, b->prefix, embed, patch, 4, &v->embed));
    FR_TRY(fr_tower_bind_vector(b, "embeddings.patch_embedding.bias", "v.patch_embd.bias", c->hidden, &v->embed_bias));
    FR_TRY(fr_bind_matrix(b->weights, b->prefix, positions, c->positions * c->positions, c->hidden, FR_LOOKED_UP,
                          &e->positions));
    FR_TRY(fr_tower_bind_norm(b, "post_layernorm", "v.post_ln", true, c->hidden, &e->last));
    FR_TRY(fr_bind_values(b->weights, p.prefix, norm, c->hidden, gguf ? FR_AS_THEY_ARE : FR_LESS_ONE, &e->norm));
    return fr_bind_columns(b->weights, p.prefix, product, c->out, c->hidden, &e->project);
}

/* ------------------------------------------------------------------------------------------------ a picture's rows */

static void add_position(const fr_vision *v, fr_image_grid grid, size_t row, size_t column, float *spare, float *x) {
    const ends *e = v->own;
    (void)grid;
    fr_matrix_row(v->kernels, &e->positions, row * v->config.positions + column, 1.0f, spare);
    v->kernels->add(x, spare, v->config.hidden);
}

/* Writes the normed mean of each token's patches to `wide`, for a chunk of tokens. */
static void average(const fr_team *team, const fr_vision_activations *a, size_t first, size_t rows) {
    const fr_vision *v = a->vision;
    const fr_vision_config *c = &v->config;
    const ends *e = v->own;
    size_t parts = c->merge * c->merge, begin, end;
    fr_part_rows(team, rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *mean = a->wide + r * a->wide_width;
        memset(mean, 0, c->hidden * sizeof *mean);
        for (size_t i = 0; i < parts; i++) {
            float *x = a->x + ((first + r) * parts + i) * c->hidden;
            fr_vision_norm_row(v, &e->last, x, x, c->hidden);
            v->kernels->add(mean, x, c->hidden);
        }
        v->kernels->div(mean, c->hidden, (float)parts);
        v->kernels->rmsnorm(mean, mean, e->norm, c->hidden, c->eps);
        fr_matrix_input_row(&a->workspace, r, mean, c->hidden);
    }
    fr_team_sync(team);
}

static void merge(const fr_team *team, const fr_vision_activations *a, size_t first, size_t rows) {
    const fr_vision_config *c = &a->vision->config;
    const ends *e = a->vision->own;
    average(team, a, first, rows);
    fr_vision_apply(team, a, &e->project, NULL,
                    &(fr_matrix_rows){a->rows + first * c->out, c->out, a->wide, a->wide_width, rows});
    fr_team_sync(team);
}

const fr_tower fr_tower_gemma3 = {
    .architectures = (const char *const[]){"Gemma3ForConditionalGeneration", "gemma3", NULL},
    .projector = "gemma3",
    .prefixes = (const char *const[]){"vision_tower.vision_model.", "model.vision_tower.vision_model.",
                                      "model.vision_tower.", "vision_tower.", NULL},
    .first = "post_layernorm.weight",
    .names = {.layers = "encoder.layers.",
              .norm1 = "layer_norm1",
              .norm2 = "layer_norm2",
              .q = "self_attn.q_proj",
              .k = "self_attn.k_proj",
              .v = "self_attn.v_proj",
              .proj = "self_attn.out_proj",
              .up = "mlp.fc1",
              .down = "mlp.fc2"},
    .read = read,
    .bind = bind,
    .grid = choose_grid,
    .mark = "<start_of_image>",
    .before = "\n\n<start_of_image>",
    .after = "<end_of_image>\n\n",
    .finish_patch = add_position,
    .merge = merge};
