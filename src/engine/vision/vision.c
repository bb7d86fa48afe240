/* Opens a vision tower, and runs a picture through it.
 *
 * In: a checkpoint, a picture. Out: embeddings for the picture's tokens. All of a picture's activations are in one
 * arena that is measured for the picture's size. */
#include "src/engine/vision/vision.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sizes.h"
#include "kernels/rope_table.h"
#include "src/engine/vision/image_resize.h"
#include "src/engine/vision/tower.h"

bool fr_vision_exists(const fr_weights *weights) {
    const fr_tower *tower = fr_tower_of(weights->files);
    if (!json_object_get(weights->files->config, "vision_config")) return false; /* a text model's stray tensors */
    for (const char *const *prefix = tower ? tower->prefixes : NULL; prefix && *prefix; prefix++)
        if (fr_weights_has_any(weights, *prefix)) return true;
    return false;
}

fr_status fr_vision_open(fr_weights *weights, const fr_kernels *kernels, size_t hidden, fr_vision **vision) {
    fr_vision *v = calloc(1, sizeof *v);
    *vision = NULL;
    if (!v) return fr_fail_memory("vision tower", sizeof *v);
    v->kernels = kernels;
    fr_status status = fr_vision_bind(v, weights, hidden);
    if (status == FR_OK)
        *vision = v;
    else
        fr_vision_close(v);
    return status;
}

bool fr_vision_is_of(const fr_vision *vision, const char *const *architectures) {
    for (const char *const *own = vision->config.tower->architectures; *own; own++)
        for (const char *const *name = architectures; *name; name++)
            if (strcmp(*own, *name) == 0) return true;
    return false;
}

size_t fr_vision_run_max(const fr_vision *vision) {
    const fr_vision_config *c = &vision->config;
    size_t unit = c->patch * c->merge;
    if (c->tile) return (c->tile / unit) * (c->tile / unit);
    return (size_t)c->max_pixels / (c->pixel_count * unit * unit);
}

size_t fr_vision_row_width(const fr_vision *vision) {
    return vision->config.out * (1 + vision->config.deepstack);
}

void fr_vision_describe(const fr_vision *vision, FILE *out) {
    const fr_vision_config *c = &vision->config;
    int64_t frames = (int64_t)c->pixel_count;
    fprintf(out, "tower          %zu layers, hidden %zu, feed-forward %zu, %zu attention heads\n", c->layers, c->hidden,
            c->ffn, c->heads);
    if (c->max_pixels && !c->tile)
        fprintf(out, "pictures       %lld to %lld pixels,", (long long)(c->min_pixels / frames),
                (long long)(c->max_pixels / frames));
    else if (c->cuts.on)
        fprintf(out, "pictures       whole and in tiles, each of %zu x %zu pixels,", c->tile, c->tile);
    else if (c->tile)
        fprintf(out, "pictures       of one size,");
    else
        fprintf(out, "pictures       at most %zu pixels wide and %zu high,", c->cuts.longest_width,
                c->cuts.longest_height);
    fprintf(out, " in patches of %zu x %zu; %zu x %zu of them are a row of %zu\n", c->patch, c->patch, c->merge,
            c->merge, c->out);
}

const char *fr_vision_token_text(const fr_vision *vision) {
    return vision->config.tower->token;
}

const char *fr_vision_mark(const fr_vision *vision) {
    return vision->config.tower->mark;
}

void fr_vision_spell(const fr_vision *vision, size_t width, size_t height, const char *token, fr_text_buffer *text) {
    const fr_tower *tower = vision->config.tower;
    fr_image_grid grid;
    if (tower->before) fr_text_append_string(text, tower->before);
    if (tower->spell)
        tower->spell(vision, width, height, token, text);
    else if (fr_vision_grid(vision, width, height, &grid) == FR_OK)
        for (size_t i = 0; i < grid.rows * grid.columns; i++) fr_text_append_string(text, token);
    if (tower->after) fr_text_append_string(text, tower->after);
}

void fr_vision_close(fr_vision *vision) {
    if (!vision) return;
    free(vision->layers);
    free(vision->inverse);
    free(vision->own);
    free(vision->tensors);
    free(vision);
}

/* -------------------------------------------------------------------------------------------------------- a picture */

static size_t patch_values(const fr_vision_config *c) {
    return FR_VISION_CHANNELS * c->frames * c->patch * c->patch;
}

/* Gives the distance between rows of this many floats. If rows lay whole pages apart, they would share a few sets of
 * the L1 cache, and products would first have to copy them. So such rows get a gap of one cache line. */
static size_t spread(size_t width) {
    return width % 1024 == 0 ? width + 16 : width;
}

void fr_vision_activations_layout(fr_vision_activations *a, fr_arena *arena, size_t threads) {
    const fr_vision_config *c = &a->vision->config;
    size_t n = c->hidden / c->heads, patches = a->patches, tokens = a->grid.rows * a->grid.columns;
    size_t chunk = fr_vision_chunk(0, patches);
    a->wide_width = spread(fr_larger(fr_larger(patch_values(c), c->merge * c->merge * c->hidden), c->out));
    a->gate_width = spread(fr_larger(c->ffn, c->out_ffn));
    a->narrow_width = spread(fr_larger(c->hidden, c->out));
    a->attn_width = spread(c->hidden);
    a->tokens = fr_arena_take(arena, tokens, sizeof *a->tokens);
    if (a->tokens) fr_vision_order(c, a->grid, a->tokens);
    a->x = fr_arena_take(arena, patches * c->hidden, sizeof(float));
    a->qkv = fr_arena_take(arena, patches * 3 * c->hidden, sizeof(float));
    a->head_width = (n + 15) / 16 * 16;
    a->keys = fr_arena_take(arena, patches * a->head_width, sizeof(float));
    a->values = fr_arena_take(arena, patches * a->head_width, sizeof(float));
    a->key_pages = fr_arena_take(arena, fr_kv_blocks(patches), sizeof *a->key_pages);
    a->value_pages = fr_arena_take(arena, fr_kv_blocks(patches), sizeof *a->value_pages);
    for (size_t p = 0; a->value_pages && p < patches; p += FR_KV_PAGE) {
        a->key_pages[p / FR_KV_PAGE] = (const uint8_t *)(a->keys + p * a->head_width);
        a->value_pages[p / FR_KV_PAGE] = (const uint8_t *)(a->values + p * a->head_width);
    }
    a->batches = fr_arena_take(arena, 2 * threads * FR_ATTEND_BATCH * a->head_width, sizeof(float));
    a->attn = fr_arena_take(arena, patches * a->attn_width, sizeof(float));
    a->cosine = fr_arena_take(arena, patches * (n / 2), sizeof(float));
    a->sine = fr_arena_take(arena, patches * (n / 2), sizeof(float));
    a->wide = fr_arena_take(arena, chunk * a->wide_width, sizeof(float));
    a->gate = fr_arena_take(arena, chunk * a->gate_width, sizeof(float));
    a->up = fr_arena_take(arena, chunk * a->gate_width, sizeof(float));
    a->narrow = fr_arena_take(arena, chunk * a->narrow_width, sizeof(float));
    a->clipped_width = c->clipped ? fr_larger(c->hidden, c->ffn) : 0;
    a->clipped = fr_arena_take(arena, chunk * a->clipped_width, sizeof(float));
    a->ones = fr_arena_take(arena, a->gate_width, sizeof(float));
    for (size_t i = 0; a->ones && i < a->gate_width; i++) a->ones[i] = 1.0f;
    a->merged = fr_arena_take(arena, tokens * c->merged, sizeof(float));
    fr_attend_layout(&a->attend, arena, n, threads);
    fr_workspace_layout(&a->workspace, a->vision->kernels, arena, a->vision->packed, NULL, chunk,
                        fr_larger(fr_larger(a->wide_width, a->gate_width), a->narrow_width));
}

/* Writes a chunk's patches as rows. Also computes the angles by which their heads are rotated: half of them from the
 * patch's row, the other half from its column. */
static void read_patches(const fr_team *team, const fr_vision_activations *a, size_t first, size_t rows) {
    const fr_vision_config *c = &a->vision->config;
    size_t quarter = c->hidden / c->heads / 4, begin, end;
    fr_part_rows(team, rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *wide = a->wide + r * a->wide_width;
        float *cosine = a->cosine + (first + r) * 2 * quarter, *sine = a->sine + (first + r) * 2 * quarter;
        size_t row, column;
        fr_vision_place(c, a->grid, a->tokens, first + r, &row, &column);
        fr_vision_patch(c, a->image, row, column, wide);
        if (c->tower->prepare_patch) c->tower->prepare_patch(a->vision, wide);
        fr_matrix_input_row(&a->workspace, r, wide, patch_values(c));
        if (c->theta == 0) continue;
        fr_rope_angles(a->vision->inverse, quarter, (int64_t)row, cosine, sine);
        fr_rope_angles(a->vision->inverse + quarter, quarter, (int64_t)column, cosine + quarter, sine + quarter);
    }
    fr_team_sync(team);
}

/* Finishes the embeddings of a chunk's patches. */
static void finish_patches(const fr_team *team, const fr_vision_activations *a, size_t first, size_t rows) {
    const fr_vision_config *c = &a->vision->config;
    size_t begin, end, row, column;
    fr_part_rows(team, rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        fr_vision_place(c, a->grid, a->tokens, first + r, &row, &column);
        c->tower->finish_patch(a->vision, a->grid, row, column, a->wide + r * a->wide_width,
                               a->x + (first + r) * c->hidden);
    }
    fr_team_sync(team);
}

static void embed_chunk(const fr_team *team, const fr_vision_activations *a, size_t first) {
    const fr_vision *v = a->vision;
    size_t hidden = v->config.hidden, rows = fr_vision_chunk(first, a->patches);
    read_patches(team, a, first, rows);
    fr_vision_apply(team, a, &v->embed, v->embed_bias,
                    &(fr_matrix_rows){a->x + first * hidden, hidden, a->wide, a->wide_width, rows});
    fr_publish_rows(team, NULL, 0);
    if (v->config.tower->finish_patch) finish_patches(team, a, first, rows);
}

static void merge_chunk(const fr_team *team, const fr_vision_activations *a, size_t first) {
    a->vision->config.tower->merge(team, a, first, fr_vision_chunk(first, a->grid.rows * a->grid.columns));
}

void fr_vision_embed(const fr_team *team, const fr_vision_activations *a) {
    for (size_t first = 0; first < a->patches; first += FR_VISION_CHUNK) embed_chunk(team, a, first);
}

void fr_vision_merge(const fr_team *team, const fr_vision_activations *a) {
    size_t tokens = a->grid.rows * a->grid.columns;
    for (size_t first = 0; first < tokens; first += FR_VISION_CHUNK) merge_chunk(team, a, first);
}

static size_t count_chunks(size_t rows) {
    return (rows + FR_VISION_CHUNK - 1) / FR_VISION_CHUNK;
}

/* A slice of the tower's work: the embedding of one chunk of patches, a part of a layer, or the rows of one chunk of
 * tokens. */
typedef struct slice {
    const fr_vision_activations *a;
    size_t index;
} slice;

static size_t count_slices(const fr_vision_activations *a) {
    return count_chunks(a->patches) + a->vision->config.layers * fr_vision_block_parts(a) +
           count_chunks(a->grid.rows * a->grid.columns);
}

static void run_slice(void *context, const fr_team *team) {
    const slice *s = context;
    size_t parts = fr_vision_block_parts(s->a), embedding = count_chunks(s->a->patches);
    size_t before_merger = embedding + s->a->vision->config.layers * parts;
    if (s->index < embedding)
        embed_chunk(team, s->a, s->index * FR_VISION_CHUNK);
    else if (s->index < before_merger)
        fr_vision_block_part(team, s->a, (s->index - embedding) / parts, (s->index - embedding) % parts);
    else
        merge_chunk(team, s->a, (s->index - before_merger) * FR_VISION_CHUNK);
}

/* Runs the view whose activations are in `a`. before: true if another view of the same picture was run before. */
static fr_status run_tower(const fr_vision_activations *a, fr_pool *pool, bool before, const fr_vision_ask *ask) {
    for (slice s = {.a = a}; s.index < count_slices(a); s.index++) {
        if (ask && (before || s.index)) FR_TRY(ask->goes_on(ask->context));
        fr_pool_run(pool, run_slice, &s);
    }
    return FR_OK;
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

/* Runs the views of a picture one after another, in the same activations. Each view writes its rows after those of the
 * view before. */
static fr_status run_views(fr_vision_activations *a, fr_pool *pool, const fr_vision_tiling *tiling,
                           const fr_image *canvas, const fr_vision_ask *ask, const fr_vision_rows *rows) {
    const fr_vision_config *c = &a->vision->config;
    fr_status status = FR_OK;
    for (size_t view = 0; view < fr_vision_views(tiling) && status == FR_OK; view++) {
        fr_image image;
        FR_TRY(fr_vision_view(c, tiling, a->grid, canvas, view, &image));
        a->image = &image;
        a->rows = rows->rows + view * a->grid.rows * a->grid.columns * rows->hidden;
        status = run_tower(a, pool, view > 0, ask);
        fr_image_close(&image);
    }
    return status;
}

static fr_status run(fr_vision_activations *a, fr_pool *pool, size_t threads, const fr_vision_tiling *tiling,
                     const fr_image *canvas, const fr_vision_ask *ask, fr_vision_rows *rows) {
    fr_arena arena = {0};
    rows->hidden = fr_vision_row_width(a->vision);
    rows->count = rows->grid.rows * rows->grid.columns;
    FR_TRY(fr_vision_rows_open(rows));
    fr_vision_activations_layout(a, &arena, threads);
    FR_TRY(fr_arena_open(&arena, arena.used, "the vision tower's working memory"));
    fr_vision_activations_layout(a, &arena, threads);
    fr_status status = fr_arena_check(&arena, "the vision tower's working memory");
    if (status == FR_OK) status = run_views(a, pool, tiling, canvas, ask, rows);
    fr_arena_close(&arena);
    return status;
}

fr_status fr_vision_run_slices(const fr_vision *vision, fr_pool *pool, size_t threads, const fr_image *image,
                               const fr_vision_ask *ask, fr_vision_rows *rows) {
    const fr_vision_config *c = &vision->config;
    fr_vision_tiling tiling;
    fr_image canvas;
    *rows = (fr_vision_rows){0};
    FR_TRY(fr_vision_grid(vision, image->width, image->height, &rows->grid));
    FR_TRY(fr_vision_tile(c, image->width, image->height, &tiling));
    const fr_image_grid one = {.rows = rows->grid.rows / fr_vision_views(&tiling), .columns = rows->grid.columns};
    FR_TRY(fr_vision_canvas(c, &tiling, image, &canvas));
    fr_vision_activations a = {.vision = vision, .grid = one, .patches = one.rows * one.columns * c->merge * c->merge};
    fr_status status = run(&a, pool, threads, &tiling, canvas.rgb ? &canvas : image, ask, rows);
    fr_image_close(&canvas);
    if (status != FR_OK) fr_vision_rows_close(rows);
    return status;
}

void fr_vision_rows_close(fr_vision_rows *rows) {
    fr_arena_close(&rows->memory);
    *rows = (fr_vision_rows){0};
}
