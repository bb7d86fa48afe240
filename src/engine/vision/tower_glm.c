/* The vision tower of GLM-OCR.
 *
 * Source: the published checkpoint and transformers 5.17, models glm_ocr and glm46v; for GGUF llama.cpp's converter,
 * projector "glm4v". Layers have RMS norms, norms of heads and a gated feed-forward. After the last layer comes a norm.
 * Then a convolution makes one row of each 2 x 2 patches. A gated feed-forward with a norm of its own turns that row
 * into an embedding. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/vision/tower.h"

/* The default limits on a picture's pixels. Each pixel counts once for each frame. */
#define MIN_PIXELS (112 * 112)
#define PIXELS_MAX (28 * 28 * 15000)

#define THETA     10000.0 /* the base of rotary positions in GGUF files, which have no key for it */
#define GGUF_SIDE 336     /* the side of a picture that llama.cpp's converter writes */

/* The tensors that only this kind has: the last norm, the convolution and the merger. */
typedef struct merger {
    fr_vision_norm last;  /* [hidden] the norm after the layers */
    fr_matrix downsample; /* [out, merge * merge * hidden] the convolution, which makes one row of merge * merge
                           * patches */
    fr_matrix proj, gate, up, down;
    const float *downsample_bias;
    fr_vision_norm norm; /* [out] */
} merger;

/* ---------------------------------------------------------------------------------------------------- configuration */

static fr_status read_tower(const json_t *vision, fr_vision_config *c) {
    json_t *rope;
    double eps;
    const char *activation;
    size_t channels;
    FR_TRY(fr_tower_size(vision, "hidden_size", 4, 1 << 16, 1024, FR_TOWER_CONFIG, &c->hidden));
    FR_TRY(fr_tower_size(vision, "depth", 1, FR_VISION_LAYERS_MAX, 24, FR_TOWER_CONFIG, &c->layers));
    FR_TRY(fr_tower_size(vision, "num_heads", 1, 4096, 16, FR_TOWER_CONFIG, &c->heads));
    FR_TRY(fr_tower_size(vision, "intermediate_size", 1, 1 << 20, 4096, FR_TOWER_CONFIG, &c->ffn));
    FR_TRY(fr_tower_size(vision, "out_hidden_size", 1, 1 << 17, 1536, FR_TOWER_CONFIG, &c->out));
    FR_TRY(fr_tower_size(vision, "patch_size", 1, 256, 14, FR_TOWER_CONFIG, &c->patch));
    FR_TRY(fr_tower_size(vision, "temporal_patch_size", 1, 16, 2, FR_TOWER_CONFIG, &c->frames));
    FR_TRY(fr_tower_size(vision, "spatial_merge_size", 1, 16, 2, FR_TOWER_CONFIG, &c->merge));
    FR_TRY(fr_tower_size(vision, "in_channels", FR_VISION_CHANNELS, FR_VISION_CHANNELS, 3, FR_TOWER_CONFIG, &channels));
    FR_TRY(fr_json_bool(vision, "attention_bias", true, FR_TOWER_CONFIG, &c->bias));
    FR_TRY(fr_json_real(vision, "rms_norm_eps", 0.0, 1.0, 1e-5, FR_TOWER_CONFIG, &eps));
    FR_TRY(fr_json_text(vision, "hidden_act", FR_TOWER_CONFIG, &activation));
    if (activation && strcmp(activation, "silu") != 0)
        return fr_fail(FR_UNBUILT, FR_TOWER_CONFIG ": hidden_act %s of the vision tower is not built (silu is)",
                       activation);
    FR_TRY(fr_json_object(vision, "rope_parameters", FR_TOWER_CONFIG, &rope));
    if (rope) FR_TRY(fr_json_real(rope, "rope_theta", 1.0, 1e12, c->theta, FR_TOWER_CONFIG, &c->theta));
    c->eps = (float)eps;
    return FR_OK;
}

static fr_status read_folder(const fr_tower_source *source, fr_vision_config *c) {
    json_t *size;
    FR_TRY(read_tower(source->vision, c));
    FR_TRY(fr_json_object(source->processor, "size", source->where, &size));
    FR_TRY(fr_json_int(size, "shortest_edge", 1, INT32_MAX, MIN_PIXELS, source->where, &c->min_pixels));
    FR_TRY(fr_json_int(size, "longest_edge", 1, INT32_MAX, PIXELS_MAX, source->where, &c->max_pixels));
    FR_TRY(fr_tower_resizes(source));
    FR_TRY(fr_tower_same(source, "patch_size", c->patch));
    FR_TRY(fr_tower_same(source, "temporal_patch_size", c->frames));
    FR_TRY(fr_tower_same(source, "merge_size", c->merge));
    return fr_tower_pixels(source, fr_clip_mean, fr_clip_deviation, c);
}

static fr_status read_gguf(const fr_tower_source *source, fr_vision_config *c) {
    const fr_gguf *gguf = source->gguf;
    const int64_t frames = FR_VISION_GGUF_FRAMES;
    bool silu;
    FR_TRY(fr_gguf_bool(gguf, ".use_silu", false, &silu));
    if (!silu) return fr_fail(FR_UNBUILT, "%s: a vision tower without clip.use_silu is not built", gguf->path);
    FR_TRY(fr_tower_gguf_sizes(gguf, c));
    c->frames = FR_VISION_GGUF_FRAMES;
    FR_TRY(fr_gguf_size(gguf, ".vision.spatial_merge_size", 1, 16, 2, &c->merge));
    FR_TRY(fr_gguf_int(gguf, ".vision.image_min_pixels", 1, INT32_MAX, MIN_PIXELS / frames, &c->min_pixels));
    FR_TRY(fr_gguf_int(gguf, ".vision.image_max_pixels", 1, INT32_MAX, PIXELS_MAX / frames, &c->max_pixels));
    c->min_pixels *= frames;
    c->max_pixels *= frames;
    c->bias = fr_weights_has(source->weights, "v.blk.0.", "attn_qkv.bias");
    return FR_OK;
}

static fr_status read(fr_vision_config *c, const fr_tower_source *source) {
    c->theta = THETA;
    c->activation = FR_VISION_SILU;
    FR_TRY(source->gguf ? read_gguf(source, c) : read_folder(source, c));
    c->pixel_count = c->frames;
    c->out_ffn = c->out * FR_VISION_CHANNELS;
    c->merged = c->out;
    return FR_OK;
}

/* Chooses the grid. A picture with a side shorter than a token is enlarged first, as in the published processor. */
static fr_status choose_grid(const fr_vision_config *c, size_t width, size_t height, fr_image_grid *grid) {
    double unit = (double)(c->patch * c->merge), w = (double)width, h = (double)height;
    if (h < unit || w < unit) {
        double scale = unit / h > unit / w ? unit / h : unit / w;
        h = floor(h * scale);
        w = floor(w * scale);
    }
    FR_TRY(fr_tower_check_ratio(width, height, h > w ? h / w : w / h));
    fr_tower_grid_by_area(c, (double)c->frames, w, h, grid);
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------------------- tensors */

static fr_status bind(const fr_tower_binder *b, fr_vision *v) {
    const fr_vision_config *c = &v->config;
    const uint64_t block[] = {c->out, c->hidden, c->merge, c->merge};
    merger *m = v->own = calloc(1, sizeof *m);
    if (!m) return fr_fail_memory("vision tower", sizeof *m);
    const char *downsample = b->weights->files->gguf ? "mm.patch_merger.weight" : "downsample.weight";
    FR_TRY(fr_tower_bind_vector(b, "patch_embed.proj.bias", "v.patch_embd.bias", c->hidden, &v->embed_bias));
    FR_TRY(fr_tower_bind_patches(b, "patch_embed.proj.weight", v));
    FR_TRY(fr_tower_bind_norm(b, "post_layernorm", "v.post_ln", false, c->hidden, &m->last));
    FR_TRY(fr_tower_list(b, downsample, "mm.patch_merger.weight", FR_VISION_WHOLE));
    FR_TRY(fr_bind_convolution(b->weights, b->prefix, downsample, block, 4, &m->downsample));
    FR_TRY(fr_tower_bind_vector(b, "downsample.bias", "mm.patch_merger.bias", c->out, &m->downsample_bias));
    FR_TRY(fr_tower_bind_norm(b, "merger.post_projection_norm", "mm.post_norm", true, c->out, &m->norm));
    FR_TRY(fr_tower_bind_product(b, "merger.proj", "mm.model.fc", c->out, c->out, &m->proj, NULL));
    FR_TRY(fr_tower_bind_product(b, "merger.gate_proj", "mm.gate", c->out_ffn, c->out, &m->gate, NULL));
    FR_TRY(fr_tower_bind_product(b, "merger.up_proj", "mm.up", c->out_ffn, c->out, &m->up, NULL));
    return fr_tower_bind_product(b, "merger.down_proj", "mm.down", c->out, c->out_ffn, &m->down, NULL);
}

/* ----------------------------------------------------------------------------------------------------------- merger */

/* Makes one row for each token of a chunk: the normed streams of a token's patches, interleaved like the convolution's
 * weights. */
static void gather_tokens(const fr_team *team, const fr_vision_activations *a, size_t first, size_t rows) {
    const fr_vision_config *c = &a->vision->config;
    const merger *m = a->vision->own;
    size_t parts = c->merge * c->merge, begin, end;
    fr_part_rows(team, rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *wide = a->wide + r * a->wide_width;
        for (size_t i = 0; i < parts; i++) {
            float *x = a->x + ((first + r) * parts + i) * c->hidden;
            fr_vision_norm_row(a->vision, &m->last, x, x, c->hidden);
            for (size_t d = 0; d < c->hidden; d++) wide[d * parts + i] = x[d];
        }
        fr_matrix_input_row(&a->workspace, r, wide, parts * c->hidden);
    }
    fr_team_sync(team);
}

static void norm_merged(const fr_team *team, const fr_vision_activations *a, size_t rows) {
    const fr_vision *v = a->vision;
    const merger *m = v->own;
    size_t out = v->config.out, begin, end;
    fr_publish_rows(team, NULL, 0);
    fr_part_rows(team, rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *row = a->narrow + r * a->narrow_width;
        v->kernels->layernorm(row, row, m->norm.weight, m->norm.bias, out, 1e-5f);
        v->kernels->gelu_erf(row, row, out);
        fr_matrix_input_row(&a->workspace, r, row, out);
    }
    fr_team_sync(team);
}

static void merge(const fr_team *team, const fr_vision_activations *a, size_t first, size_t rows) {
    const fr_vision_config *c = &a->vision->config;
    const merger *m = a->vision->own;
    const fr_vision_ffn ffn = {.gate = &m->gate, .up = &m->up, .activation = FR_VISION_SILU};
    float *merged = a->merged + first * c->out;
    gather_tokens(team, a, first, rows);
    fr_vision_apply(team, a, &m->downsample, m->downsample_bias,
                    &(fr_matrix_rows){merged, c->out, a->wide, a->wide_width, rows});
    fr_publish_own_input(team, &a->workspace, merged, c->out, c->out, rows);
    fr_vision_apply(team, a, &m->proj, NULL, &(fr_matrix_rows){a->narrow, a->narrow_width, merged, c->out, rows});
    norm_merged(team, a, rows);
    fr_vision_feed(team, a, &ffn, &(fr_matrix_rows){a->gate, a->gate_width, a->narrow, a->narrow_width, rows});
    fr_publish_own_input(team, &a->workspace, a->gate, a->gate_width, c->out_ffn, rows);
    fr_vision_apply(team, a, &m->down, NULL,
                    &(fr_matrix_rows){a->rows + first * c->out, c->out, a->gate, a->gate_width, rows});
    fr_team_sync(team);
}

static fr_status put(const fr_vision_config *c, fr_gguf_writer *writer) {
    if (c->frames != FR_VISION_GGUF_FRAMES) return fr_tower_no_key("temporal_patch_size");
    if (c->theta != THETA) return fr_tower_no_key("rope_theta");
    fr_tower_put(c, GGUF_SIDE, ".projector_type", writer);
    fr_tower_put_limits(c, writer);
    fr_gguf_put_bool(writer, ".use_silu", true);
    fr_gguf_put_u32(writer, ".vision.spatial_merge_size", (uint32_t)c->merge);
    return FR_OK;
}

const fr_tower fr_tower_glm = {.architectures =
                                   (const char *const[]){"GlmOcrForConditionalGeneration", "glm_ocr", NULL},
                               .projector = "glm4v",
                               .prefixes = (const char *const[]){"model.visual.", NULL},
                               .first = "patch_embed.proj.weight",
                               .names = &(const fr_tower_names){.layers = "blocks.",
                                                                .norm1 = "norm1",
                                                                .norm2 = "norm2",
                                                                .q_norm = "attn.q_norm.weight",
                                                                .k_norm = "attn.k_norm.weight",
                                                                .qkv = "attn.qkv",
                                                                .proj = "attn.proj",
                                                                .gate = "mlp.gate_proj",
                                                                .up = "mlp.up_proj",
                                                                .down = "mlp.down_proj"},
                               .read = read,
                               .bind = bind,
                               .grid = choose_grid,
                               .merge = merge,
                               .put = put};
