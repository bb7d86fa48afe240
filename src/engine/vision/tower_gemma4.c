/* The vision towers of Gemma 4.
 *
 * Source: the published checkpoints and transformers 5.24, models gemma4 and gemma4_unified; for GGUF llama.cpp's
 * converter, projectors "gemma4v" and "gemma4uv". A picture keeps its ratio and is resized to as many patches as the
 * budget of tokens allows. The tower of the E-series, 26B and 31B has RMS norms before and after attention and
 * feed-forward, norms of heads, and a gated feed-forward. One half of each head is rotated by the patch's column, and
 * the other half by its row. In the E-series, products are clipped. A token is the mean of 3 x 3 patches. The 12B has
 * no layers: a token is one large patch, which is normed, multiplied and given its position. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/vision/tower.h"

#define SOFT_TOKENS 280   /* default budget of tokens, for processors and GGUF files without one */
#define POOLING     3     /* a token's side in patches */
#define TORCH_EPS   1e-5f /* eps of the 12B's LayerNorms */
#define THETA       100.0 /* the base of rotary positions in GGUF files, which have no key for it */
#define GGUF_SIDE   224   /* the side of a picture that llama.cpp's converter writes */

#define KEY_BUDGET ".vision.image_max_tokens" /* our own key for a budget that is not the default */

static const double none[FR_VISION_CHANNELS] = {0}, one[FR_VISION_CHANNELS] = {1.0, 1.0, 1.0};

/* The tensors that are not in layers. */
typedef struct ends {
    fr_matrix positions;           /* [2, positions, hidden] learned positions, for columns and for rows */
    const float *std_bias, *scale; /* [hidden] shift and scale that standardize rows; NULL: none */
    fr_vision_norm norms[3];       /* in the 12B: the norm of the patch, the norm of the patch's product, and the norm
                                    * after positions are added */
    fr_matrix project;             /* [out, hidden] */
} ends;

/* ---------------------------------------------------------------------------------------------------- configuration */

/* Reads the budget of tokens as a limit on pixels, and the settings that the processors of both kinds have. */
static fr_status read_processor(const fr_tower_source *s, size_t patch, size_t pooling, fr_vision_config *c) {
    size_t tokens;
    FR_TRY(fr_tower_size(s->processor, "max_soft_tokens", 1, 1 << 14, SOFT_TOKENS, s->where, &tokens));
    FR_TRY(fr_tower_same(s, "patch_size", patch));
    FR_TRY(fr_tower_same(s, "pooling_kernel_size", pooling));
    FR_TRY(fr_tower_resample(s, c));
    c->max_pixels = (int64_t)(tokens * patch * patch * pooling * pooling);
    return fr_tower_pixels(s, none, one, c);
}

/* Reads the rows' width. Also finds out whether readers of the GGUF file would be wrong about one thing: whether a
 * picture's rows see later rows of the picture. GGUF has no key for this. Its readers assume that they do if the model
 * has no per-layer embeddings. */
static fr_status read_text(const fr_tower_source *s, bool unified, fr_vision_config *c) {
    json_t *text;
    size_t per_layer;
    FR_TRY(fr_json_object(s->root, "text_config", FR_TOWER_CONFIG, &text));
    FR_TRY(
        fr_tower_size(text, "hidden_size_per_layer_input", 0, 1 << 17, unified ? 0 : 256, FR_TOWER_CONFIG, &per_layer));
    const json_t *sight = json_object_get(text, "use_bidirectional_attention");
    c->other_sight = (sight ? json_is_string(sight) : unified) != (per_layer == 0);
    return fr_tower_size(text, "hidden_size", 1, 1 << 17, 2304, FR_TOWER_CONFIG, &c->out);
}

/* Refuses settings that no published tower has. */
static fr_status check_layers(const json_t *v, const fr_vision_config *c) {
    const char *activation;
    size_t kv_heads, head_dim;
    bool bias;
    FR_TRY(fr_json_text(v, "hidden_activation", FR_TOWER_CONFIG, &activation));
    FR_TRY(fr_tower_size(v, "num_key_value_heads", 1, 4096, (int64_t)c->heads, FR_TOWER_CONFIG, &kv_heads));
    FR_TRY(fr_tower_size(v, "head_dim", 1, 1 << 16, 64, FR_TOWER_CONFIG, &head_dim));
    FR_TRY(fr_json_bool(v, "attention_bias", false, FR_TOWER_CONFIG, &bias));
    if (activation && strcmp(activation, "gelu_pytorch_tanh") != 0)
        return fr_fail(FR_UNBUILT, FR_TOWER_CONFIG ": hidden_activation %s of the vision tower is not built",
                       activation);
    if (kv_heads == c->heads && head_dim * c->heads == c->hidden && !bias) return FR_OK;
    return fr_fail(FR_UNBUILT,
                   FR_TOWER_CONFIG ": a vision tower of width %zu with %zu heads of %zu, %zu of them with keys%s, is "
                                   "not built",
                   c->hidden, c->heads, head_dim, kv_heads, bias ? ", and biases" : "");
}

static fr_status read_folder(const fr_tower_source *s, fr_vision_config *c) {
    static const char where[] = FR_TOWER_CONFIG;
    const json_t *v = s->vision;
    json_t *rope;
    double eps;
    FR_TRY(read_text(s, false, c));
    FR_TRY(fr_tower_size(v, "hidden_size", 4, 1 << 16, 768, where, &c->hidden));
    FR_TRY(fr_tower_size(v, "num_hidden_layers", 1, FR_VISION_LAYERS_MAX, 16, where, &c->layers));
    FR_TRY(fr_tower_size(v, "num_attention_heads", 1, 4096, 12, where, &c->heads));
    FR_TRY(fr_tower_size(v, "intermediate_size", 1, 1 << 20, 3072, where, &c->ffn));
    FR_TRY(fr_tower_size(v, "patch_size", 1, 256, 16, where, &c->patch));
    FR_TRY(fr_tower_size(v, "pooling_kernel_size", 1, 16, POOLING, where, &c->merge));
    FR_TRY(fr_tower_size(v, "position_embedding_size", 1, 1 << 20, 10240, where, &c->positions));
    FR_TRY(fr_json_bool(v, "use_clipped_linears", false, where, &c->clipped));
    FR_TRY(fr_json_real(v, "rms_norm_eps", 0.0, 1.0, 1e-6, where, &eps));
    FR_TRY(fr_json_object(v, "rope_parameters", where, &rope));
    if (rope) FR_TRY(fr_json_real(rope, "rope_theta", 1.0, 1e12, c->theta, where, &c->theta));
    FR_TRY(check_layers(v, c));
    c->eps = (float)eps;
    c->channel_last = true;
    return read_processor(s, c->patch, c->merge, c);
}

/* Finds the number of rows in the table of positions, for which GGUF has no key. */
static fr_status find_positions(const fr_tower_source *s, fr_vision_config *c) {
    static const char name[] = "v.position_embd.weight";
    const fr_tensor *table = fr_tensors_find(&s->weights->files->tensors, name);
    if (!table || table->dims != 3 || table->shape[1] > 1 << 20)
        return fr_fail(FR_INPUT, "%s: tensor %s is missing or not two tables of positions", s->gguf->path, name);
    c->positions = (size_t)table->shape[1];
    return FR_OK;
}

static fr_status read_gguf(const fr_tower_source *s, fr_vision_config *c) {
    size_t tokens;
    FR_TRY(fr_tower_gguf_sizes(s->gguf, c));
    FR_TRY(fr_gguf_size(s->gguf, ".vision.projector.scale_factor", 1, 16, POOLING, &c->merge));
    c->clipped = fr_weights_has(s->weights, "v.blk.0.", "attn_q.input_min");
    FR_TRY(fr_gguf_size(s->gguf, KEY_BUDGET, 1, 1 << 14, SOFT_TOKENS, &tokens));
    c->max_pixels = (int64_t)(tokens * c->patch * c->patch * c->merge * c->merge);
    return find_positions(s, c);
}

/* Reads the configuration. The processor makes a value x of each byte, and the tower reads 2 * (x - 0.5) instead. */
static fr_status read(fr_vision_config *c, const fr_tower_source *s) {
    c->theta = THETA;
    c->activation = FR_VISION_GELU_TANH;
    FR_TRY(s->gguf ? read_gguf(s, c) : read_folder(s, c));
    for (size_t i = 0; i < FR_VISION_CHANNELS; i++)
        for (size_t byte = 0; byte < 256; byte++) c->value[i][byte] = 2.0F * (c->value[i][byte] - 0.5F);
    c->frames = 1;
    c->min_pixels = 1;
    c->v_norm = c->rope_halves = true;
    c->scale = 1.0F;
    return FR_OK;
}

/* Reads the configuration of the 12B's tower, which has no layers; a patch is a whole token. */
static fr_status read_unified(fr_vision_config *c, const fr_tower_source *s) {
    size_t patch, pooling, tokens;
    double eps;
    c->layers = 0;
    c->heads = c->merge = c->frames = c->ffn = 1;
    c->min_pixels = 1;
    if (s->gguf) {
        FR_TRY(fr_gguf_size(s->gguf, ".vision.embedding_length", 4, 1 << 16, FR_GGUF_REQUIRED, &c->hidden));
        FR_TRY(fr_gguf_size(s->gguf, ".vision.projection_dim", 1, 1 << 17, FR_GGUF_REQUIRED, &c->out));
        FR_TRY(fr_gguf_size(s->gguf, ".vision.patch_size", 1, 64, FR_GGUF_REQUIRED, &patch));
        FR_TRY(fr_gguf_size(s->gguf, ".vision.projector.scale_factor", 1, 16, POOLING, &pooling));
        FR_TRY(fr_gguf_real(s->gguf, ".vision.attention.layer_norm_epsilon", 0.0, 1.0, 1e-6, &eps));
        FR_TRY(fr_tower_gguf_pixels(s->gguf, c));
        FR_TRY(fr_gguf_size(s->gguf, KEY_BUDGET, 1, 1 << 14, SOFT_TOKENS, &tokens));
        c->max_pixels = (int64_t)(tokens * patch * patch * pooling * pooling);
        FR_TRY(find_positions(s, c));
    } else {
        FR_TRY(read_text(s, true, c));
        FR_TRY(fr_tower_size(s->vision, "mm_embed_dim", 4, 1 << 16, 3840, FR_TOWER_CONFIG, &c->hidden));
        FR_TRY(fr_tower_size(s->vision, "mm_posemb_size", 1, 1 << 20, 1120, FR_TOWER_CONFIG, &c->positions));
        FR_TRY(fr_tower_size(s->vision, "patch_size", 1, 64, 16, FR_TOWER_CONFIG, &patch));
        FR_TRY(fr_tower_size(s->vision, "pooling_kernel_size", 1, 16, POOLING, FR_TOWER_CONFIG, &pooling));
        FR_TRY(fr_json_real(s->vision, "rms_norm_eps", 0.0, 1.0, 1e-6, FR_TOWER_CONFIG, &eps));
        FR_TRY(read_processor(s, patch, pooling, c));
        c->channel_last = true;
    }
    c->patch = patch * pooling;
    c->pooling = pooling;
    c->eps = (float)eps;
    return FR_OK;
}

/* Chooses the largest size that keeps the picture's ratio, has no more patches than the budget allows, and has whole
 * tokens on both sides. If one side would have no token, it gets one token, and the other side gets as many as the
 * ratio requires. Like the published processor, it computes in doubles and rounds in the same order. */
static fr_status choose_grid(const fr_vision_config *c, size_t width, size_t height, fr_image_grid *grid) {
    double unit = (double)(c->patch * c->merge), w = (double)width, h = (double)height;
    double factor = sqrt((double)c->max_pixels / (h * w)), most = floor((double)c->max_pixels / (unit * unit));
    double rows = floor(factor * h / unit), columns = floor(factor * w / unit);
    if (rows == 0 && columns == 0)
        return fr_fail(FR_INPUT, "a picture of %zu x %zu would have no token of %g x %g pixels", width, height, unit,
                       unit);
    bool flat = rows == 0, thin = columns == 0;
    double whole = floor(flat ? w / h : h / w), length = whole < most ? whole : most;
    if (flat) columns = length;
    if (thin) rows = length;
    if (flat || thin) *(flat ? &rows : &columns) = 1;
    double longer = (rows > columns ? rows : columns) * (double)c->merge;
    if (longer > (double)c->positions)
        return fr_fail(FR_INPUT, "a picture of %zu x %zu would be %.0f patches long, the tower has positions for %zu",
                       width, height, longer, c->positions);
    *grid = (fr_image_grid){.rows = (size_t)rows, .columns = (size_t)columns};
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------------------- tensors */

/* Binds the table of positions: two tables of `positions` rows, one after the other. */
static fr_status bind_positions(const fr_tower_binder *b, const char *folder, const uint64_t *shape, fr_matrix *table) {
    const char *name = b->weights->files->gguf ? "v.position_embd.weight" : folder;
    FR_TRY(fr_tower_list(b, folder, "v.position_embd.weight", shape[0] == 2 ? FR_VISION_WHOLE : FR_VISION_ALTERNATING));
    FR_TRY(fr_bind_convolution(b->weights, b->prefix, name, shape, 3, table));
    table->features = shape[0] * shape[1];
    table->cols = shape[2];
    table->row_bytes = fr_dtype_row_bytes(table->type, table->cols);
    return FR_OK;
}

static fr_status bind(const fr_tower_binder *b, fr_vision *v) {
    static const char *const projectors[] = {"model.embed_vision.", "embed_vision.", NULL};
    const fr_vision_config *c = &v->config;
    const fr_gguf *gguf = b->weights->files->gguf;
    const uint64_t tables[] = {2, c->positions, c->hidden};
    const uint64_t patch[] = {c->hidden, FR_VISION_CHANNELS, c->patch, c->patch};
    const char *bias = gguf ? "v.std_bias" : "std_bias";
    const fr_tower_binder p = fr_tower_beside(b, projectors, "embedding_projection.weight");
    ends *e = v->own = calloc(1, sizeof *e);
    if (!e) return fr_fail_memory("vision tower", sizeof *e);
    FR_TRY(gguf ? fr_bind_convolution(b->weights, "", "v.patch_embd.weight", patch, 4, &v->embed)
                : fr_tower_bind_product(b, "patch_embedder.input_proj", "v.patch_embd", c->hidden,
                                        FR_VISION_CHANNELS * c->patch * c->patch, &v->embed, NULL));
    if (!gguf) v->tensors[v->tensor_count - 1].layout = FR_VISION_CHANNEL_LAST;
    FR_TRY(bind_positions(b, "patch_embedder.position_embedding_table", tables, &e->positions));
    if (fr_weights_has(b->weights, b->prefix, bias)) {
        FR_TRY(fr_tower_bind_vector(b, "std_bias", "v.std_bias", c->hidden, &e->std_bias));
        FR_TRY(fr_tower_bind_vector(b, "std_scale", "v.std_scale", c->hidden, &e->scale));
    }
    return fr_tower_bind_product(&p, "embedding_projection", "mm.input_projection", c->out, c->hidden, &e->project,
                                 NULL);
}

/* Binds the tensors of the 12B's tower. In folders the rows of the tables for columns and rows alternate, so they are
 * copied into two tables. */
static fr_status bind_unified(const fr_tower_binder *b, fr_vision *v) {
    static const char *const folder[] = {"patch_ln1", "patch_ln2", "pos_norm"},
                             *const of_gguf[] = {"v.patch_norm.1", "v.patch_norm.2", "v.patch_norm.3"},
                             *const projectors[] = {"model.embed_vision.",
                                                    "embed_vision.",
                                                    "model.embed_vision.multimodal_embedder.",
                                                    "embed_vision.multimodal_embedder.",
                                                    "model.vision_embedder.multimodal_embedder.",
                                                    NULL};
    const fr_tower_binder p = fr_tower_beside(b, projectors, "embedding_projection.weight");
    const fr_vision_config *c = &v->config;
    bool gguf = b->weights->files->gguf != NULL;
    size_t values = FR_VISION_CHANNELS * c->patch * c->patch;
    const uint64_t apart[] = {2, c->positions, c->hidden}, alternating[] = {c->positions, 2, c->hidden};
    ends *e = v->own = calloc(1, sizeof *e);
    if (!e) return fr_fail_memory("vision tower", sizeof *e);
    size_t listed = v->tensor_count;
    for (size_t i = 0; i < 3; i++)
        FR_TRY(fr_tower_bind_norm(b, folder[i], of_gguf[i], true, i ? c->hidden : values, &e->norms[i]));
    for (size_t i = listed; !gguf && i < listed + 2; i++) v->tensors[i].layout = FR_VISION_CHANNEL_LAST;
    listed = v->tensor_count;
    FR_TRY(fr_tower_bind_product(b, "patch_dense", "v.patch_embd", c->hidden, values, &v->embed, &v->embed_bias));
    if (!gguf) v->tensors[listed].layout = FR_VISION_CHANNEL_LAST;
    FR_TRY(bind_positions(b, "pos_embedding", gguf ? apart : alternating, &e->positions));
    return fr_tower_bind_product(&p, "embedding_projection", "mm.input_projection", c->out, c->hidden, &e->project,
                                 NULL);
}

/* ------------------------------------------------------------------------------------------------- a picture's rows */

/* Adds the learned positions of a column and of a row. If alternate is true, the rows of both tables alternate in
 * memory: the first of the columns, the first of the rows, the second of the columns, and so on. */
static void add_positions(const fr_vision *v, bool alternate, size_t row, size_t column, float *spare, float *x) {
    const ends *e = v->own;
    size_t count = v->config.positions, at[] = {column, row};
    for (size_t axis = 0; axis < 2; axis++) {
        size_t index = alternate ? 2 * at[axis] + axis : axis * count + at[axis];
        fr_matrix_row(v->kernels, &e->positions, index, 1.0f, spare);
        v->kernels->add(x, spare, v->config.hidden);
    }
}

static void finish_patch(const fr_vision *v, fr_image_grid grid, size_t row, size_t column, float *spare, float *x) {
    (void)grid;
    add_positions(v, false, row, column, spare, x);
}

static void norm_row(const fr_vision *v, size_t norm, float *x, size_t n) {
    const fr_vision_norm *of = &((const ends *)v->own)->norms[norm];
    v->kernels->layernorm(x, x, of->weight, of->bias, n, TORCH_EPS);
}

static void prepare_unified(const fr_vision *v, float *values) {
    norm_row(v, 0, values, FR_VISION_CHANNELS * v->config.patch * v->config.patch);
}

static void finish_unified(const fr_vision *v, fr_image_grid grid, size_t row, size_t column, float *spare, float *x) {
    (void)grid;
    norm_row(v, 1, x, v->config.hidden);
    add_positions(v, v->config.channel_last, row, column, spare, x);
    norm_row(v, 2, x, v->config.hidden);
}

/* Writes the mean of a token's patches, standardized, to `mean`. */
static void average(const fr_vision_activations *a, size_t token, float *mean) {
    const fr_vision_config *c = &a->vision->config;
    const fr_kernels *k = a->vision->kernels;
    const ends *e = a->vision->own;
    size_t parts = c->merge * c->merge;
    memcpy(mean, a->x + token * parts * c->hidden, c->hidden * sizeof *mean);
    for (size_t i = 1; i < parts; i++) k->add(mean, a->x + (token * parts + i) * c->hidden, c->hidden);
    if (c->layers == 0) return;
    k->div(mean, c->hidden, (float)parts);
    k->scale(mean, c->hidden, (float)sqrt((double)c->hidden));
    for (size_t i = 0; e->std_bias && i < c->hidden; i++) mean[i] = (mean[i] - e->std_bias[i]) * e->scale[i];
}

static void merge(const fr_team *team, const fr_vision_activations *a, size_t first, size_t rows) {
    const fr_vision_config *c = &a->vision->config;
    const ends *e = a->vision->own;
    size_t begin, end;
    fr_part_rows(team, rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *mean = a->wide + r * a->wide_width;
        average(a, first + r, mean);
        a->vision->kernels->rmsnorm(mean, mean, NULL, c->hidden, c->eps);
        fr_matrix_input_row(&a->workspace, r, mean, c->hidden);
    }
    fr_team_sync(team);
    fr_vision_apply(team, a, &e->project, NULL,
                    &(fr_matrix_rows){a->rows + first * c->out, c->out, a->wide, a->wide_width, rows});
    fr_team_sync(team);
}

static fr_status put_common(const fr_vision_config *c, size_t pooling, fr_gguf_writer *writer) {
    if (c->resample != FR_RESAMPLE_BICUBIC) return fr_tower_no_key("resample");
    if (c->other_sight) return fr_tower_no_key("use_bidirectional_attention");
    fr_tower_put(c, GGUF_SIDE, ".vision.projector_type", writer);
    if (pooling != POOLING) fr_gguf_put_u32(writer, ".vision.projector.scale_factor", (uint32_t)pooling);
    size_t budget = (size_t)c->max_pixels / (c->patch * c->patch * c->merge * c->merge);
    if (budget != SOFT_TOKENS) fr_gguf_put_u32(writer, KEY_BUDGET, (uint32_t)budget);
    return FR_OK;
}

static fr_status put(const fr_vision_config *c, fr_gguf_writer *writer) {
    if (c->theta != THETA) return fr_tower_no_key("rope_theta");
    return put_common(c, c->merge, writer);
}

static fr_status put_unified(const fr_vision_config *c, fr_gguf_writer *writer) {
    return put_common(c, c->pooling, writer);
}

const fr_tower fr_tower_gemma4 = {.architectures =
                                      (const char *const[]){"Gemma4ForConditionalGeneration", "gemma4", NULL},
                                  .projector = "gemma4v",
                                  .prefixes = (const char *const[]){"model.vision_tower.", "vision_tower.", NULL},
                                  .first = "patch_embedder.input_proj.weight",
                                  .names = &(const fr_tower_names){.layers = "encoder.layers.",
                                                                   .norm1 = "input_layernorm",
                                                                   .norm2 = "pre_feedforward_layernorm",
                                                                   .post_norm1 = "post_attention_layernorm",
                                                                   .post_norm2 = "post_feedforward_layernorm",
                                                                   .q_norm = "self_attn.q_norm.weight",
                                                                   .k_norm = "self_attn.k_norm.weight",
                                                                   .q = "self_attn.q_proj.linear",
                                                                   .k = "self_attn.k_proj.linear",
                                                                   .v = "self_attn.v_proj.linear",
                                                                   .proj = "self_attn.o_proj.linear",
                                                                   .gate = "mlp.gate_proj.linear",
                                                                   .up = "mlp.up_proj.linear",
                                                                   .down = "mlp.down_proj.linear"},
                                  .read = read,
                                  .bind = bind,
                                  .grid = choose_grid,
                                  .before = "<|image>",
                                  .after = "<image|>",
                                  .finish_patch = finish_patch,
                                  .merge = merge,
                                  .put = put};

const fr_tower fr_tower_gemma4_unified = {
    /* in GGUF, the text models of both kinds have the same architecture */
    .architectures = (const char *const[]){"Gemma4UnifiedForConditionalGeneration", "gemma4_unified", "gemma4", NULL},
    .projector = "gemma4uv",
    .prefixes = (const char *const[]){"model.vision_embedder.", "vision_embedder.", "model.embed_vision.",
                                      "embed_vision.", NULL},
    .first = "patch_dense.weight",
    .read = read_unified,
    .bind = bind_unified,
    .grid = choose_grid,
    .before = "<|image>",
    .after = "<image|>",
    .prepare_patch = prepare_unified,
    .finish_patch = finish_unified,
    .merge = merge,
    .put = put_unified};
