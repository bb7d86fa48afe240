/* Binds the vision tower's tensors, and runs a picture through it.
 *
 * In: a checkpoint, a picture. Out: embeddings for the picture's tokens. All of a picture's activations are in one
 * arena that is measured for the picture's size. */
#include "src/engine/vision/vision.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/sizes.h"
#include "kernels/rope_table.h"
#include "src/engine/vision/image_resize.h"
#include "src/engine/vision/vision_parts.h"

#define PUBLISHED "model.visual."

/* ---------------------------------------------------------------------------------------------------------- tensors */

/* Binds tensors under a prefix. Each has two names: the published one and GGUF's. */
typedef struct binder {
    fr_weights *weights;
    char prefix[128]; /* "model.visual.blocks.7." and so on */
} binder;

static const char *spelled(const binder *b, const char *published, const char *gguf) {
    return b->weights->files->gguf ? gguf : published;
}

static fr_status vector(const binder *b, const char *published, const char *gguf, size_t n, const float **field) {
    return fr_bind_vector(b->weights, b->prefix, spelled(b, published, gguf), n, field);
}

/* Binds a product's weights, and its bias if it has one. */
static fr_status bind_product(const binder *b, const char *published, const char *gguf, size_t features, size_t cols,
                              fr_matrix *product, const float **bias) {
    const char *name = spelled(b, published, gguf);
    char full[128];
    snprintf(full, sizeof full, "%s.weight", name);
    FR_TRY(fr_bind_matrix(b->weights, b->prefix, full, features, cols, FR_STREAMED, product));
    if (!bias) return FR_OK;
    snprintf(full, sizeof full, "%s.bias", name);
    return fr_bind_vector(b->weights, b->prefix, full, features, bias);
}

static fr_status bind_layer(fr_weights *weights, const fr_vision_config *c, size_t index, fr_vision_layer *l) {
    binder b = {.weights = weights};
    size_t d = c->hidden, n = d / c->heads;
    bool bias = c->bias;
    snprintf(b.prefix, sizeof b.prefix, weights->files->gguf ? "v.blk.%zu." : PUBLISHED "blocks.%zu.", index);
    FR_TRY(vector(&b, "norm1.weight", "ln1.weight", d, &l->norm1));
    FR_TRY(vector(&b, "norm2.weight", "ln2.weight", d, &l->norm2));
    FR_TRY(vector(&b, "attn.q_norm.weight", "attn_q_norm.weight", n, &l->q_norm));
    FR_TRY(vector(&b, "attn.k_norm.weight", "attn_k_norm.weight", n, &l->k_norm));
    FR_TRY(bind_product(&b, "attn.qkv", "attn_qkv", 3 * d, d, &l->qkv, bias ? &l->qkv_bias : NULL));
    FR_TRY(bind_product(&b, "attn.proj", "attn_out", d, d, &l->proj, bias ? &l->proj_bias : NULL));
    FR_TRY(bind_product(&b, "mlp.gate_proj", "ffn_gate", c->ffn, d, &l->gate, bias ? &l->gate_bias : NULL));
    FR_TRY(bind_product(&b, "mlp.up_proj", "ffn_up", c->ffn, d, &l->up, bias ? &l->up_bias : NULL));
    return bind_product(&b, "mlp.down_proj", "ffn_down", d, c->ffn, &l->down, bias ? &l->down_bias : NULL);
}

/* GGUF has no convolution over time, so its converter cuts this one into two tensors, one for each frame. */
static fr_status bind_patches(const binder *b, fr_vision *v) {
    static const char *const frames[FR_VISION_GGUF_FRAMES] = {"v.patch_embd.weight", "v.patch_embd.weight.1"};
    const fr_vision_config *c = &v->config;
    const uint64_t whole[] = {c->hidden, FR_VISION_CHANNELS, c->frames, c->patch, c->patch};
    const uint64_t frame[] = {c->hidden, FR_VISION_CHANNELS, c->patch, c->patch};
    FR_TRY(vector(b, "patch_embed.proj.bias", "v.patch_embd.bias", c->hidden, &v->embed_bias));
    if (b->weights->files->gguf) return fr_bind_frames(b->weights, "", frames, c->frames, frame, &v->embed);
    return fr_bind_convolution(b->weights, b->prefix, "patch_embed.proj.weight", whole, 5, &v->embed);
}

static fr_status bind_ends(fr_weights *weights, fr_vision *v) {
    const fr_vision_config *c = &v->config;
    const uint64_t block[] = {c->out, c->hidden, c->merge, c->merge};
    binder b = {.weights = weights};
    if (!weights->files->gguf) snprintf(b.prefix, sizeof b.prefix, PUBLISHED);
    FR_TRY(bind_patches(&b, v));
    FR_TRY(vector(&b, "post_layernorm.weight", "v.post_ln.weight", c->hidden, &v->norm));
    FR_TRY(fr_bind_convolution(weights, b.prefix, spelled(&b, "downsample.weight", "mm.patch_merger.weight"), block, 4,
                               &v->downsample));
    FR_TRY(vector(&b, "downsample.bias", "mm.patch_merger.bias", c->out, &v->downsample_bias));
    FR_TRY(vector(&b, "merger.post_projection_norm.weight", "mm.post_norm.weight", c->out, &v->merger_norm));
    FR_TRY(vector(&b, "merger.post_projection_norm.bias", "mm.post_norm.bias", c->out, &v->merger_bias));
    FR_TRY(bind_product(&b, "merger.proj", "mm.model.fc", c->out, c->out, &v->proj, NULL));
    FR_TRY(bind_product(&b, "merger.gate_proj", "mm.gate", c->out_ffn, c->out, &v->gate, NULL));
    FR_TRY(bind_product(&b, "merger.up_proj", "mm.up", c->out_ffn, c->out, &v->up, NULL));
    return bind_product(&b, "merger.down_proj", "mm.down", c->out, c->out_ffn, &v->down, NULL);
}

static fr_status open_tower(fr_vision *v, fr_weights *weights, size_t hidden) {
    FR_TRY(fr_vision_config_read(&v->config, weights));
    const fr_vision_config *c = &v->config;
    if (hidden && c->out != hidden)
        return fr_fail(FR_INPUT, "%s: the vision tower gives rows of %zu, the text model reads rows of %zu (%s)",
                       weights->files->path, c->out, hidden,
                       weights->files->gguf ? "clip.vision.projection_dim" : "out_hidden_size");
    size_t quarter = c->hidden / c->heads / 4;
    v->layers = calloc(c->layers, sizeof *v->layers);
    v->inverse = calloc(quarter, sizeof *v->inverse);
    if (!v->layers || !v->inverse) return fr_fail_memory("vision tower", c->layers * sizeof *v->layers);
    fr_rope_frequencies(FR_ROPE_DEFAULT, c->theta, 2 * quarter, 1.0, 1.0, v->inverse);
    for (size_t i = 0; i < c->layers; i++) FR_TRY(bind_layer(weights, c, i, &v->layers[i]));
    FR_TRY(bind_ends(weights, v));
    v->packed = weights->has_packed;
    return FR_OK;
}

bool fr_vision_exists(const fr_weights *weights) {
    return fr_weights_has_any(weights, PUBLISHED);
}

fr_status fr_vision_open(fr_weights *weights, const fr_kernels *kernels, size_t hidden, fr_vision **vision) {
    fr_vision *v = calloc(1, sizeof *v);
    *vision = NULL;
    if (!v) return fr_fail_memory("vision tower", sizeof *v);
    v->kernels = kernels;
    fr_status status = open_tower(v, weights, hidden);
    if (status == FR_OK)
        *vision = v;
    else
        fr_vision_close(v);
    return status;
}

void fr_vision_describe(const fr_vision *vision, FILE *out) {
    const fr_vision_config *c = &vision->config;
    int64_t frames = (int64_t)c->frames;
    fprintf(out, "tower          %zu layers, hidden %zu, feed-forward %zu, %zu attention heads\n", c->layers, c->hidden,
            c->ffn, c->heads);
    fprintf(out, "pictures       %lld to %lld pixels, in patches of %zu x %zu; %zu x %zu of them are a row of %zu\n",
            (long long)(c->min_pixels / frames), (long long)(c->max_pixels / frames), c->patch, c->patch, c->merge,
            c->merge, c->out);
}

void fr_vision_close(fr_vision *vision) {
    if (!vision) return;
    free(vision->layers);
    free(vision->inverse);
    free(vision);
}

/* ------------------------------------------------------------------------------------------------------- a picture */

static size_t patch_values(const fr_vision_config *c) {
    return FR_VISION_CHANNELS * c->frames * c->patch * c->patch;
}

void fr_vision_activations_layout(fr_vision_activations *a, fr_arena *arena, size_t threads) {
    const fr_vision_config *c = &a->vision->config;
    size_t n = c->hidden / c->heads, patches = a->patches, chunk = fr_vision_chunk(0, patches);
    a->wide_width = fr_larger(fr_larger(patch_values(c), c->merge * c->merge * c->hidden), c->out);
    a->gate_width = fr_larger(c->ffn, c->out_ffn);
    a->narrow_width = fr_larger(c->hidden, c->out);
    a->x = fr_arena_take(arena, patches * c->hidden, sizeof(float));
    a->qkv = fr_arena_take(arena, patches * 3 * c->hidden, sizeof(float));
    a->qkv_pages = fr_arena_take(arena, fr_kv_blocks(patches), sizeof *a->qkv_pages);
    for (size_t p = 0; a->qkv_pages && p < patches; p += FR_KV_PAGE)
        a->qkv_pages[p / FR_KV_PAGE] = (const uint8_t *)(a->qkv + p * 3 * c->hidden);
    a->attn = fr_arena_take(arena, patches * c->hidden, sizeof(float));
    a->cosine = fr_arena_take(arena, patches * (n / 2), sizeof(float));
    a->sine = fr_arena_take(arena, patches * (n / 2), sizeof(float));
    a->wide = fr_arena_take(arena, chunk * a->wide_width, sizeof(float));
    a->gate = fr_arena_take(arena, chunk * a->gate_width, sizeof(float));
    a->up = fr_arena_take(arena, chunk * a->gate_width, sizeof(float));
    a->narrow = fr_arena_take(arena, chunk * a->narrow_width, sizeof(float));
    a->merged = fr_arena_take(arena, a->grid.rows * a->grid.columns * c->out, sizeof(float));
    fr_attend_layout(&a->attend, arena, n, threads);
    fr_workspace_layout(&a->workspace, a->vision->kernels, arena, a->vision->packed, chunk,
                        fr_larger(fr_larger(a->wide_width, a->gate_width), a->narrow_width));
}

/* Reads a chunk's patches as rows, and computes the angles that rotate their heads: one half from the patch's row, the
 * other half from its column. */
static void read_patches(const fr_team *team, const fr_vision_activations *a, size_t first, size_t rows) {
    const fr_vision_config *c = &a->vision->config;
    size_t quarter = c->hidden / c->heads / 4, begin, end;
    fr_part_rows(team, rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *wide = a->wide + r * a->wide_width;
        float *cosine = a->cosine + (first + r) * 2 * quarter, *sine = a->sine + (first + r) * 2 * quarter;
        size_t row, column;
        fr_vision_place(c, a->grid, first + r, &row, &column);
        fr_vision_patch(c, a->image, row, column, wide);
        fr_matrix_input_row(&a->workspace, r, wide, patch_values(c));
        fr_rope_angles(a->vision->inverse, quarter, (int64_t)row, cosine, sine);
        fr_rope_angles(a->vision->inverse, quarter, (int64_t)column, cosine + quarter, sine + quarter);
    }
    fr_team_sync(team);
}

void fr_vision_embed(const fr_team *team, const fr_vision_activations *a) {
    const fr_vision *v = a->vision;
    size_t hidden = v->config.hidden;
    for (size_t first = 0; first < a->patches; first += FR_VISION_CHUNK) {
        size_t rows = fr_vision_chunk(first, a->patches);
        read_patches(team, a, first, rows);
        fr_vision_apply(team, a, &v->embed, v->embed_bias,
                        &(fr_matrix_rows){a->x + first * hidden, hidden, a->wide, a->wide_width, rows});
        fr_publish_rows(team, NULL, 0);
    }
}

/* Makes one row for each token of a chunk: the normed streams of a token's patches, interleaved like the convolution's
 * weights. */
static void gather_tokens(const fr_team *team, const fr_vision_activations *a, size_t first, size_t rows) {
    const fr_vision_config *c = &a->vision->config;
    size_t parts = c->merge * c->merge, begin, end;
    fr_part_rows(team, rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *wide = a->wide + r * a->wide_width;
        for (size_t i = 0; i < parts; i++) {
            float *x = a->x + ((first + r) * parts + i) * c->hidden;
            a->vision->kernels->rmsnorm(x, x, a->vision->norm, c->hidden, c->eps);
            for (size_t d = 0; d < c->hidden; d++) wide[d * parts + i] = x[d];
        }
        fr_matrix_input_row(&a->workspace, r, wide, parts * c->hidden);
    }
    fr_team_sync(team);
}

static void norm_merged(const fr_team *team, const fr_vision_activations *a, size_t rows) {
    const fr_vision *v = a->vision;
    size_t out = v->config.out, begin, end;
    fr_publish_rows(team, NULL, 0);
    fr_part_rows(team, rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *row = a->narrow + r * a->narrow_width;
        v->kernels->layernorm(row, row, v->merger_norm, v->merger_bias, out, 1e-5f);
        v->kernels->gelu_erf(row, row, out);
        fr_matrix_input_row(&a->workspace, r, row, out);
    }
    fr_team_sync(team);
}

static void merge_chunk(const fr_team *team, const fr_vision_activations *a, size_t first, size_t rows) {
    const fr_vision *v = a->vision;
    const fr_vision_config *c = &v->config;
    float *merged = a->merged + first * c->out;
    gather_tokens(team, a, first, rows);
    fr_vision_apply(team, a, &v->downsample, v->downsample_bias,
                    &(fr_matrix_rows){merged, c->out, a->wide, a->wide_width, rows});
    fr_publish_own_input(team, &a->workspace, merged, c->out, c->out, rows);
    fr_vision_apply(team, a, &v->proj, NULL, &(fr_matrix_rows){a->narrow, a->narrow_width, merged, c->out, rows});
    norm_merged(team, a, rows);
    fr_vision_gate(team, a, &v->gate, NULL, &v->up, NULL,
                   &(fr_matrix_rows){a->gate, a->gate_width, a->narrow, a->narrow_width, rows});
    fr_publish_own_input(team, &a->workspace, a->gate, a->gate_width, c->out_ffn, rows);
    fr_vision_apply(team, a, &v->down, NULL,
                    &(fr_matrix_rows){a->rows + first * c->out, c->out, a->gate, a->gate_width, rows});
    fr_team_sync(team);
}

void fr_vision_merge(const fr_team *team, const fr_vision_activations *a) {
    size_t tokens = a->grid.rows * a->grid.columns;
    for (size_t first = 0; first < tokens; first += FR_VISION_CHUNK)
        merge_chunk(team, a, first, fr_vision_chunk(first, tokens));
}

static void run_tower(void *context, const fr_team *team) {
    const fr_vision_activations *a = context;
    fr_vision_embed(team, a);
    for (size_t i = 0; i < a->vision->config.layers; i++) fr_vision_block(team, a, i);
    fr_vision_merge(team, a);
}

static void rows_layout(fr_vision_rows *rows, fr_arena *arena) {
    rows->rows = fr_arena_take(arena, rows->count * rows->hidden, sizeof(float));
}

fr_status fr_vision_rows_open(fr_vision_rows *rows) {
    rows_layout(rows, &rows->memory);
    FR_TRY(fr_arena_open(&rows->memory, rows->memory.used, "a picture's embeddings"));
    rows_layout(rows, &rows->memory);
    return fr_arena_check(&rows->memory, "a picture's embeddings");
}

static fr_status run(fr_vision_activations *a, fr_pool *pool, size_t threads, fr_vision_rows *rows) {
    fr_arena arena = {0};
    rows->hidden = a->vision->config.out;
    rows->count = rows->grid.rows * rows->grid.columns;
    FR_TRY(fr_vision_rows_open(rows));
    a->rows = rows->rows;
    fr_vision_activations_layout(a, &arena, threads);
    FR_TRY(fr_arena_open(&arena, arena.used, "the vision tower's working memory"));
    fr_vision_activations_layout(a, &arena, threads);
    fr_status status = fr_arena_check(&arena, "the vision tower's working memory");
    if (status == FR_OK) fr_pool_run(pool, run_tower, a);
    fr_arena_close(&arena);
    return status;
}

fr_status fr_vision_run(const fr_vision *vision, fr_pool *pool, size_t threads, const fr_image *image,
                        fr_vision_rows *rows) {
    const fr_vision_config *c = &vision->config;
    size_t unit = c->patch * c->merge;
    fr_image resized;
    *rows = (fr_vision_rows){0};
    FR_TRY(fr_vision_grid(vision, image->width, image->height, &rows->grid));
    FR_TRY(fr_image_resize(image, FR_RESAMPLE_BICUBIC, rows->grid.columns * unit, rows->grid.rows * unit, &resized));
    fr_vision_activations a = {.vision = vision,
                               .image = &resized,
                               .grid = rows->grid,
                               .patches = rows->grid.rows * rows->grid.columns * c->merge * c->merge};
    fr_status status = run(&a, pool, threads, rows);
    fr_image_close(&resized);
    if (status != FR_OK) fr_vision_rows_close(rows);
    return status;
}

void fr_vision_rows_close(fr_vision_rows *rows) {
    fr_arena_close(&rows->memory);
    *rows = (fr_vision_rows){0};
}
