/* The vision tower of Idefics 3 and SmolVLM: SigLIP, whose patches are joined into tokens.
 *
 * Source: the published checkpoints and transformers 5.24, models idefics3 and smolvlm; for GGUF llama.cpp's converter,
 * projector "idefics3". A picture is resized so that its longer side has a fixed length, and then so that it consists
 * of whole square tiles. The tower sees the tiles row by row, and at the end the whole picture as one more tile. In the
 * prompt, each tile has its row and column before it. After the last LayerNorm, a square of patches is joined into one
 * row and multiplied, which gives a token's row. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/sizes.h"
#include "src/engine/vision/siglip.h"

#define TILE        364  /* side of a tile, if the picture processor has no setting for it */
#define SIDE_MAX    4096 /* longest side of a picture that the processor cuts into tiles */
#define AROUND      "<fake_token_around_image>"
#define WHOLE       "<global-img>"
#define GGUF_JOINED 2 /* default side, in patches, of a token */

/* ---------------------------------------------------------------------------------------------------- configuration */

/* Reads the size to which pictures are resized before they are cut: the length of the longer side, or width and
 * height. */
static fr_status read_size(const fr_tower_source *s, fr_vision_cuts *cuts) {
    json_t *size;
    size_t longest;
    FR_TRY(fr_json_object(s->processor, "size", s->where, &size));
    FR_TRY(fr_tower_size(size, "longest_edge", 1, 1 << 16, size ? 0 : 4 * TILE, s->where, &longest));
    cuts->longest_width = cuts->longest_height = longest;
    if (longest) return FR_OK;
    FR_TRY(fr_tower_size(size, "width", 1, SIDE_MAX, 0, s->where, &cuts->longest_width));
    FR_TRY(fr_tower_size(size, "height", 1, SIDE_MAX, 0, s->where, &cuts->longest_height));
    cuts->stretch = true;
    if (cuts->longest_width && cuts->longest_height) return FR_OK;
    return fr_fail(FR_INPUT, "%s: size has neither longest_edge nor width and height", s->where);
}

static fr_status read_folder(const fr_tower_source *s, fr_vision_config *c) {
    json_t *text, *tile;
    int64_t filter;
    FR_TRY(fr_json_object(s->root, "text_config", FR_TOWER_CONFIG, &text));
    FR_TRY(fr_tower_size(text, "hidden_size", 1, 1 << 17, 4096, FR_TOWER_CONFIG, &c->out));
    FR_TRY(fr_tower_size(s->root, "scale_factor", 1, 64, GGUF_JOINED, FR_TOWER_CONFIG, &c->merge));
    FR_TRY(fr_json_object(s->processor, "max_image_size", s->where, &tile));
    FR_TRY(fr_tower_size(tile, "longest_edge", 1, 1 << 14, TILE, s->where, &c->tile));
    FR_TRY(fr_json_bool(s->processor, "do_resize", true, s->where, &c->cuts.resize));
    FR_TRY(fr_json_bool(s->processor, "do_image_splitting", true, s->where, &c->cuts.on));
    FR_TRY(fr_json_int(s->processor, "resample", FR_RESAMPLE_LANCZOS, FR_RESAMPLE_BICUBIC, FR_RESAMPLE_LANCZOS,
                       s->where, &filter));
    c->resample = (fr_resample)filter;
    FR_TRY(read_size(s, &c->cuts));
    return fr_tower_pixels(s, fr_siglip_half, fr_siglip_half, c);
}

/* Reads GGUF. Older files do not have the length of the longer side. Pictures are then cut in their own size. */
static fr_status read_gguf(const fr_tower_source *s, size_t side, fr_vision_config *c) {
    FR_TRY(fr_gguf_size(s->gguf, ".vision.projector.scale_factor", 1, 64, GGUF_JOINED, &c->merge));
    FR_TRY(fr_gguf_size(s->gguf, ".vision.preproc_image_size", 1, 1 << 16, 0, &c->cuts.longest_width));
    c->cuts.longest_height = c->cuts.longest_width;
    c->cuts.resize = c->cuts.longest_width > 0;
    c->cuts.on = true;
    c->tile = side;
    return FR_OK;
}

static fr_status read(fr_vision_config *c, const fr_tower_source *s) {
    static const fr_siglip_sizes usual = {.hidden = 1152, .layers = 12, .heads = 16, .ffn = 3072, .patch = 32};
    size_t side;
    c->resample = FR_RESAMPLE_LANCZOS;
    FR_TRY(fr_siglip_read(s, &usual, c, &side));
    FR_TRY(s->gguf ? read_gguf(s, side, c) : read_folder(s, c));
    size_t patches = c->tile / c->patch, across = patches / c->merge;
    c->positions = side / c->patch;
    c->positions_by_fraction = !s->gguf;
    if (!c->positions || !across || across * c->merge != patches)
        return fr_fail(FR_INPUT,
                       "%s: a tile of %zu x %zu pixels is no whole number of tokens of %zu x %zu patches of %zu pixels",
                       s->weights->files->path, c->tile, c->tile, c->merge, c->merge, c->patch);
    return s->gguf ? FR_OK : fr_tower_same_outside(s, "image_seq_len", across * across);
}

/* ------------------------------------------------------------------------------------------------------------ tiles */

static size_t to_tiles(size_t side, size_t tile) {
    return (side + tile - 1) / tile * tile;
}

/* Takes the length that one side of a picture gets, and computes the length of the other side. ratio: the given side
 * divided by the other side; if `tall`, the other side divided by the given side. Numbers are rounded as the published
 * processor does it. */
static size_t other_side(size_t length, double ratio, bool tall) {
    double other = tall ? (double)length * ratio : (double)length / ratio;
    return other < 1e9 ? (size_t)other : (size_t)1e9;
}

static size_t at_least_one(size_t side) {
    return side ? side : 1;
}

/* Chooses the size to which a picture is resized first. */
static void resize_first(const fr_vision_cuts *cuts, size_t *width, size_t *height) {
    bool tall = *height > *width;
    size_t *longer = tall ? height : width, *shorter = tall ? width : height;
    double ratio = (double)*width / (double)*height;
    if (cuts->stretch) {
        *width = cuts->longest_width;
        *height = cuts->longest_height;
        return;
    }
    *longer = cuts->longest_width;
    *shorter = other_side(*longer, ratio, tall);
    *shorter = at_least_one(*shorter + *shorter % 2);
    tall = *height > *width; /* rounding up to an even number may have made the other side the longer one */
    longer = tall ? height : width;
    shorter = tall ? width : height;
    if (*longer <= SIDE_MAX) return;
    ratio = (double)*width / (double)*height;
    *longer = SIDE_MAX;
    *shorter = at_least_one(other_side(*longer, ratio, tall));
}

static void resize_to(fr_vision_tiling *tiling, size_t width, size_t height) {
    tiling->size[tiling->resizes][0] = width;
    tiling->size[tiling->resizes++][1] = height;
}

/* Chooses the tiles of a picture by the settings in `cuts`. */
static void tile_by(const fr_vision_config *c, const fr_vision_cuts *cuts, size_t width, size_t height,
                    fr_vision_tiling *tiling) {
    *tiling = (fr_vision_tiling){.whole_last = true};
    if (cuts->resize) {
        resize_first(cuts, &width, &height);
        resize_to(tiling, width, height);
    }
    if (!cuts->on) return;
    bool tall = height > width;
    size_t *longer = tall ? &height : &width, *shorter = tall ? &width : &height;
    double ratio = (double)width / (double)height;
    *longer = to_tiles(*longer, c->tile);
    *shorter = to_tiles(other_side(*longer, ratio, tall), c->tile);
    resize_to(tiling, width, height);
    tiling->width = tiling->height = c->tile;
    if (width <= c->tile && height <= c->tile) return;
    tiling->rows = height / c->tile;
    tiling->columns = width / c->tile;
}

/* Chooses the tiles. If the caller has set a limit on pixels, the longer side is made shorter, a tile at a time, until
 * the limit holds. */
static fr_status tile(const fr_vision_config *c, size_t width, size_t height, fr_vision_tiling *tiling) {
    fr_vision_cuts cuts = c->cuts;
    tile_by(c, &cuts, width, height, tiling);
    while (c->max_pixels && tiling->rows && fr_vision_views(tiling) > (size_t)c->max_pixels / (c->tile * c->tile)) {
        cuts.longest_width = cuts.longest_height =
            (fr_larger(tiling->rows, tiling->columns) - 1) * c->tile; /* there are at least 2 tiles, so this is not
                                                                       * 0 */
        cuts.resize = true;
        cuts.stretch = false;
        tile_by(c, &cuts, width, height, tiling);
    }
    return FR_OK;
}

static fr_status limit(fr_vision_config *c, int64_t least, int64_t most) {
    if (least)
        return fr_fail(FR_INPUT, "this vision tower has no smallest picture: image-min-pixels and image-min-tokens "
                                 "don't apply");
    if (most < (int64_t)(c->tile * c->tile))
        return fr_fail(FR_INPUT, "this vision tower sees at least one square of %zu x %zu pixels, more than %lld",
                       c->tile, c->tile, (long long)most);
    c->max_pixels = most;
    return FR_OK;
}

static void spell_view(const fr_vision *v, const char *token, fr_text_buffer *text) {
    for (size_t i = fr_vision_run_max(v); i > 0; i--) fr_text_append_string(text, token);
}

static void spell(const fr_vision *v, size_t width, size_t height, const char *token, fr_text_buffer *text) {
    fr_vision_tiling tiling = {0};
    if (fr_vision_tile(&v->config, width, height, &tiling) != FR_OK) return;
    for (size_t row = 0; row < tiling.rows; row++) {
        for (size_t column = 0; column < tiling.columns; column++) {
            char place[96];
            snprintf(place, sizeof place, AROUND "<row_%zu_col_%zu>", row + 1, column + 1);
            fr_text_append_string(text, place);
            spell_view(v, token, text);
        }
        fr_text_append_string(text, "\n");
    }
    fr_text_append_string(text, tiling.rows ? "\n" AROUND WHOLE : AROUND WHOLE);
    spell_view(v, token, text);
    fr_text_append_string(text, AROUND);
}

/* ---------------------------------------------------------------------------------------------------------- tensors */

static fr_status bind(const fr_tower_binder *b, fr_vision *v) {
    static const char *const connectors[] = {"model.connector.", "connector.", NULL};
    const fr_vision_config *c = &v->config;
    const fr_tower_binder p = fr_tower_beside(b, connectors, "modality_projection.proj.weight");
    fr_siglip *s;
    FR_TRY(fr_siglip_bind(b, v, &s));
    return fr_tower_bind_product(&p, "modality_projection.proj", "mm.model.fc", c->out, c->merge * c->merge * c->hidden,
                                 &s->project, NULL);
}

/* ------------------------------------------------------------------------------------------------- a picture's rows */

/* The table of positions has `count` entries for each side of the picture. The fraction of the side at which a patch
 * lies decides which entry the patch gets. Gives the smallest fraction that belongs to the entry after `index`. This
 * fraction equals, to the bit, torch.arange(1 / count, 1, 1 / count)[index]. torch computes most of these fractions
 * eight at a time, from a first fraction that is rounded to float32. */
static float find_boundary(size_t count, size_t index) {
    double step = 1.0 / (double)count, boundaries = ceil((1.0 - step) / step);
    size_t by_eights = (size_t)boundaries / 16 * 16, first = index < by_eights ? index / 8 * 8 : index;
    double base = step + step * (double)first;
    if (index >= by_eights) return (float)base;
    return (float)((double)(float)base + (double)(index - first) * step);
}

/* Gives the index of a tile's patch in the table of positions for a side. In folders the index follows from the patch's
 * fraction of the side, computed in float32. Because of the rounding it is not always the patch's own index, even if
 * the table is as long as the tile. */
static size_t find_position(const fr_vision_config *c, size_t patch) {
    size_t patches = c->tile / c->patch, at = 0;
    const float last = (float)(1.0 - 1e-6);
    if (!c->positions_by_fraction) return patch;
    float fraction = (float)patch * (1.0F / (float)patches);
    if (fraction > last) fraction = last;
    while (at + 1 < c->positions && find_boundary(c->positions, at) <= fraction) at++;
    return at;
}

static void add_position(const fr_vision *v, fr_image_grid grid, size_t row, size_t column, float *spare, float *x) {
    const fr_vision_config *c = &v->config;
    (void)grid;
    fr_siglip_add_position(v, find_position(c, row) * c->positions + find_position(c, column), spare, x);
}

/* Joins the normed streams of each token's patches to one row, for a chunk of tokens. */
static void join(const fr_team *team, const fr_vision_activations *a, size_t first, size_t rows) {
    const fr_vision_config *c = &a->vision->config;
    const fr_siglip *s = a->vision->own;
    size_t parts = c->merge * c->merge, begin, end;
    fr_part_rows(team, rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *wide = a->wide + r * a->wide_width;
        for (size_t i = 0; i < parts; i++)
            fr_vision_norm_row(a->vision, &s->last, wide + i * c->hidden, a->x + ((first + r) * parts + i) * c->hidden,
                               c->hidden);
        fr_matrix_input_row(&a->workspace, r, wide, parts * c->hidden);
    }
    fr_team_sync(team);
}

static void merge(const fr_team *team, const fr_vision_activations *a, size_t first, size_t rows) {
    const fr_vision_config *c = &a->vision->config;
    const fr_siglip *s = a->vision->own;
    join(team, a, first, rows);
    fr_vision_apply(team, a, &s->project, NULL,
                    &(fr_matrix_rows){a->rows + first * c->out, c->out, a->wide, a->wide_width, rows});
    fr_team_sync(team);
}

static fr_status put(const fr_vision_config *c, fr_gguf_writer *writer) {
    if (c->resample != FR_RESAMPLE_LANCZOS) return fr_tower_no_key("resample");
    if (!c->cuts.on) return fr_tower_no_key("do_image_splitting");
    if (c->cuts.resize && c->cuts.stretch) return fr_tower_no_key("size");
    if (c->tile != c->positions * c->patch) return fr_tower_no_key("max_image_size");
    fr_tower_put(c, c->tile, ".projector_type", writer);
    fr_gguf_put_bool(writer, ".use_gelu", true);
    fr_gguf_put_u32(writer, ".vision.projector.scale_factor", (uint32_t)c->merge);
    if (c->cuts.resize) fr_gguf_put_u32(writer, ".vision.preproc_image_size", (uint32_t)c->cuts.longest_width);
    return FR_OK;
}

const fr_tower fr_tower_idefics3 = {.architectures = (const char *const[]){"SmolVLMForConditionalGeneration",
                                                                           "Idefics3ForConditionalGeneration",
                                                                           "smolvlm", "idefics3", NULL},
                                    .projector = "idefics3",
                                    .token = "<image>",
                                    .prefixes = (const char *const[]){"model.vision_model.", "vision_model.", NULL},
                                    .first = "post_layernorm.weight",
                                    .names = &fr_siglip_names,
                                    .read = read,
                                    .bind = bind,
                                    .limit = limit,
                                    .tile = tile,
                                    .spell = spell,
                                    .finish_patch = add_position,
                                    .merge = merge,
                                    .put = put};
