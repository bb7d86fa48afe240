/* The vision tower of Gemma 3: SigLIP, whose rows are averaged.
 *
 * Source: the published checkpoints and transformers 5.24, models gemma3 and siglip; for GGUF llama.cpp's converter,
 * projector "gemma3". A picture is stretched to one square size. With pan and scan, the tower also sees crops of a
 * picture whose one side is much longer than the other. The crops lie along the longer side, and each crop is stretched
 * to the same square size. After the last LayerNorm, the mean of a square of patches is normed and multiplied, which
 * gives a token's row. */
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/sizes.h"
#include "src/engine/vision/siglip.h"

#define TOKENS       256 /* default number of tokens of a picture */
#define GGUF_POOLING 4   /* default side, in patches, of a token in GGUF */

#define BEGIN "\n\n<start_of_image>"
#define END   "<end_of_image>\n\n"

/* ---------------------------------------------------------------------------------------------------- configuration */

/* Reads when and how pictures are cut. If a key is null, the defaults here are used, as in the processor's class. */
static fr_status read_cuts(const fr_tower_source *s, fr_vision_cuts *cuts) {
    FR_TRY(fr_json_bool(s->processor, "do_pan_and_scan", false, s->where, &cuts->on));
    FR_TRY(fr_tower_size(s->processor, "pan_and_scan_min_crop_size", 1, 1 << 16, 256, s->where, &cuts->least));
    FR_TRY(fr_tower_size(s->processor, "pan_and_scan_max_num_crops", 1, 1 << 12, 4, s->where, &cuts->most));
    return fr_json_real(s->processor, "pan_and_scan_min_ratio_to_activate", 0.0, 1e6, 1.2, s->where, &cuts->ratio);
}

/* Checks that the processor resizes to the tower's size. */
static fr_status check_size(const fr_tower_source *s, size_t side) {
    json_t *size;
    size_t width, height;
    FR_TRY(fr_json_object(s->processor, "size", s->where, &size));
    FR_TRY(fr_tower_size(size, "width", 1, 1 << 16, (int64_t)side, s->where, &width));
    FR_TRY(fr_tower_size(size, "height", 1, 1 << 16, (int64_t)side, s->where, &height));
    if (width == side && height == side) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: pictures of %zu x %zu are not built for a tower of %zu x %zu", s->where, width,
                   height, side, side);
}

static fr_status read_folder(const fr_tower_source *s, size_t side, size_t *tokens, fr_vision_config *c) {
    json_t *text;
    FR_TRY(fr_json_object(s->root, "text_config", FR_TOWER_CONFIG, &text));
    FR_TRY(fr_tower_size(text, "hidden_size", 1, 1 << 17, 2304, FR_TOWER_CONFIG, &c->out));
    FR_TRY(fr_tower_size(s->root, "mm_tokens_per_image", 1, 1 << 16, TOKENS, FR_TOWER_CONFIG, tokens));
    FR_TRY(check_size(s, side));
    FR_TRY(read_cuts(s, &c->cuts));
    FR_TRY(fr_tower_same_outside(s, "image_seq_length", *tokens));
    FR_TRY(fr_tower_resample(s, c));
    return fr_tower_pixels(s, fr_siglip_half, fr_siglip_half, c);
}

/* Reads the configuration. In folders the number of patches that make one token follows from the number of tokens. */
static fr_status read(fr_vision_config *c, const fr_tower_source *s) {
    static const fr_siglip_sizes usual = {.hidden = 768, .layers = 12, .heads = 12, .ffn = 3072, .patch = 16};
    const char *where = s->weights->files->path;
    size_t side, tokens = 0;
    c->resample = FR_RESAMPLE_BILINEAR;
    FR_TRY(fr_siglip_read(s, &usual, c, &side));
    FR_TRY(s->gguf ? fr_gguf_size(s->gguf, ".vision.projector.scale_factor", 1, 256, GGUF_POOLING, &c->merge)
                   : read_folder(s, side, &tokens, c));
    size_t patches = side / c->patch, across = s->gguf ? patches / c->merge : fr_siglip_root(tokens);
    if (!s->gguf) c->merge = across ? patches / across : 0;
    if (!patches || side % c->patch || !c->merge || c->merge > 256 || across * c->merge != patches ||
        (tokens && across * across != tokens))
        return fr_fail(FR_INPUT, "%s: a picture of %zu x %zu pixels is no whole number of patches of %zu and of tokens",
                       where, side, side, c->patch);
    c->positions = patches;
    c->tile = side;
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------ crops */

/* Chooses crops along the longer side. Their number follows from the ratio of the sides, but no crop is narrower than
 * the smallest allowed one. Only the last crop, which is the rest of the picture, may be narrower. Numbers are rounded
 * as the published processor does it. */
static fr_status tile(const fr_vision_config *c, size_t width, size_t height, fr_vision_tiling *tiling) {
    const fr_vision_cuts *cuts = &c->cuts;
    bool tall = height > width;
    size_t longer = tall ? height : width, shorter = tall ? width : height;
    double ratio = (double)longer / (double)shorter;
    if (!cuts->on || ratio < cuts->ratio) return FR_OK;
    size_t crops = fr_smaller(longer / cuts->least, (size_t)floor(ratio + 0.5));
    crops = fr_smaller(fr_larger(crops, 2), cuts->most);
    size_t length = (longer + crops - 1) / crops;
    if (fr_smaller(length, shorter) < cuts->least) return FR_OK;
    if (length * (crops - 1) >= longer)
        return fr_fail(FR_INPUT, "a picture of %zu x %zu can't be cut into %zu crops of %zu pixels", width, height,
                       crops, length);
    tiling->rows = tall ? crops : 1;
    tiling->columns = tall ? 1 : crops;
    tiling->width = tall ? width : length;
    tiling->height = tall ? length : height;
    return FR_OK;
}

static void spell_view(const fr_vision *v, const char *token, fr_text_buffer *text) {
    fr_text_append_string(text, BEGIN);
    for (size_t i = fr_vision_run_max(v); i > 0; i--) fr_text_append_string(text, token);
    fr_text_append_string(text, END);
}

static void spell(const fr_vision *v, size_t width, size_t height, const char *token, fr_text_buffer *text) {
    fr_vision_tiling tiling = {0};
    size_t crops = fr_vision_tile(&v->config, width, height, &tiling) == FR_OK ? fr_vision_views(&tiling) - 1 : 0;
    if (crops) fr_text_append_string(text, "Here is the original image ");
    spell_view(v, token, text);
    if (crops) fr_text_append_string(text, " and here are some crops to help you see better");
    for (size_t i = 0; i < crops; i++) {
        fr_text_append_string(text, " ");
        spell_view(v, token, text);
    }
}

/* ---------------------------------------------------------------------------------------------------------- tensors */

static fr_status bind(const fr_tower_binder *b, fr_vision *v) {
    static const char *const projectors[] = {"multi_modal_projector.", "model.multi_modal_projector.", NULL};
    const fr_vision_config *c = &v->config;
    const fr_gguf *gguf = b->weights->files->gguf;
    const fr_tower_binder p = fr_tower_beside(b, projectors, "mm_input_projection_weight");
    const char *product = gguf ? "mm.input_projection.weight" : "mm_input_projection_weight";
    const char *norm = gguf ? "mm.soft_emb_norm.weight" : "mm_soft_emb_norm.weight";
    fr_siglip *s;
    FR_TRY(fr_siglip_bind(b, v, &s));
    FR_TRY(fr_tower_list(&p, norm, "mm.soft_emb_norm.weight", FR_VISION_ONE_MORE));
    FR_TRY(fr_tower_list(&p, product, "mm.input_projection.weight", FR_VISION_WHOLE));
    FR_TRY(fr_bind_values(b->weights, p.prefix, norm, c->hidden, gguf ? FR_AS_THEY_ARE : FR_LESS_ONE, &s->norm));
    return fr_bind_columns(b->weights, p.prefix, product, c->out, c->hidden, &s->project);
}

/* ------------------------------------------------------------------------------------------------- a picture's rows */

static void add_position(const fr_vision *v, fr_image_grid grid, size_t row, size_t column, float *spare, float *x) {
    (void)grid;
    fr_siglip_add_position(v, row * v->config.positions + column, spare, x);
}

/* Writes the normed mean of each token's patches to `wide`, for a chunk of tokens. */
static void average(const fr_team *team, const fr_vision_activations *a, size_t first, size_t rows) {
    const fr_vision *v = a->vision;
    const fr_vision_config *c = &v->config;
    const fr_siglip *s = v->own;
    size_t parts = c->merge * c->merge, begin, end;
    fr_part_rows(team, rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *mean = a->wide + r * a->wide_width;
        memset(mean, 0, c->hidden * sizeof *mean);
        for (size_t i = 0; i < parts; i++) {
            float *x = a->x + ((first + r) * parts + i) * c->hidden;
            fr_vision_norm_row(v, &s->last, x, x, c->hidden);
            v->kernels->add(mean, x, c->hidden);
        }
        v->kernels->div(mean, c->hidden, (float)parts);
        v->kernels->rmsnorm(mean, mean, s->norm, c->hidden, c->eps);
        fr_matrix_input_row(&a->workspace, r, mean, c->hidden);
    }
    fr_team_sync(team);
}

static void merge(const fr_team *team, const fr_vision_activations *a, size_t first, size_t rows) {
    const fr_vision_config *c = &a->vision->config;
    const fr_siglip *s = a->vision->own;
    average(team, a, first, rows);
    fr_vision_apply(team, a, &s->project, NULL,
                    &(fr_matrix_rows){a->rows + first * c->out, c->out, a->wide, a->wide_width, rows});
    fr_team_sync(team);
}

static fr_status put(const fr_vision_config *c, fr_gguf_writer *writer) {
    if (c->resample != FR_RESAMPLE_BILINEAR) return fr_tower_no_key("resample");
    if (c->cuts.on) return fr_tower_no_key("do_pan_and_scan");
    fr_tower_put(c, c->positions * c->patch, ".projector_type", writer);
    fr_gguf_put_bool(writer, ".use_gelu", true);
    fr_gguf_put_u32(writer, ".vision.projector.scale_factor", (uint32_t)c->merge);
    return FR_OK;
}

const fr_tower fr_tower_gemma3 = {
    .architectures = (const char *const[]){"Gemma3ForConditionalGeneration", "gemma3", NULL},
    .projector = "gemma3",
    .prefixes = (const char *const[]){"vision_tower.vision_model.", "model.vision_tower.vision_model.",
                                      "model.vision_tower.", "vision_tower.", NULL},
    .first = "post_layernorm.weight",
    .names = &fr_siglip_names,
    .read = read,
    .bind = bind,
    .tile = tile,
    .mark = "<start_of_image>",
    .spell = spell,
    .finish_patch = add_position,
    .merge = merge,
    .put = put};
