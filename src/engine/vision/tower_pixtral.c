/* The vision tower of Mistral Small 3.1, 3.2 and Ministral 3: Pixtral.
 *
 * Source: the published checkpoints and transformers 5.24, models pixtral and mistral3; for GGUF llama.cpp's converter,
 * projector "pixtral". A picture keeps its ratio and becomes whole tokens. Layers have RMS norms, no biases and a gated
 * feed-forward; one more norm comes before the first layer. A head's even rotary frequencies are for the patch's row,
 * and its odd ones for the patch's column. The patches of a square are normed, and a product makes one row of them. Two
 * products with an activation between them turn that row into a token's row. In the prompt, a token ends each row of a
 * picture. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/vision/tower.h"

#define THETA     10000.0 /* the usual base of the rotary positions, for which GGUF has no key */
#define EPS       1e-5F   /* eps of the layers' norms, for which there is no key */
#define BREAK_ROW "[IMG_BREAK]"
#define END       "[IMG_END]"

/* The tensors that are not in layers. */
typedef struct ends {
    fr_vision_norm first;                    /* [hidden] the norm before the layers */
    const float *norm;                       /* [hidden] the norm of a patch before it is merged */
    float eps;                               /* eps of `norm` */
    fr_matrix merge;                         /* [hidden, merge * merge * hidden] makes one row of merge * merge
                                              * patches */
    fr_matrix first_product, second_product; /* [out, hidden], [out, out] */
    const float *first_bias, *second_bias;
} ends;

/* ---------------------------------------------------------------------------------------------------- configuration */

/* Reads the base of the rotary positions. Newer files have it in a nested object. */
static fr_status read_rope(const json_t *v, double *theta) {
    json_t *rope;
    const char *type;
    FR_TRY(fr_json_real(v, "rope_theta", 1.0, 1e12, *theta, FR_TOWER_CONFIG, theta));
    FR_TRY(fr_json_object(v, "rope_parameters", FR_TOWER_CONFIG, &rope));
    FR_TRY(fr_json_text(rope, "rope_type", FR_TOWER_CONFIG, &type));
    if (type && strcmp(type, "axial") != 0 && strcmp(type, "default") != 0)
        return fr_fail(FR_UNBUILT, FR_TOWER_CONFIG ": rope_type %s of the vision tower is not built (axial is)", type);
    return fr_json_real(rope, "rope_theta", 1.0, 1e12, *theta, FR_TOWER_CONFIG, theta);
}

/* Reads the number of the last layer whose output is used. The setting is a number, or a list of one number; -1 stands
 * for the last layer. */
static fr_status read_feature_layer(const fr_tower_source *s, size_t *layers) {
    json_t *layer = json_object_get(s->root, "vision_feature_layer");
    int64_t number = -1, count = (int64_t)*layers;
    if (json_is_array(layer)) {
        if (json_array_size(layer) != 1)
            return fr_fail(FR_UNBUILT, FR_TOWER_CONFIG ": vision_feature_layer with %zu layers is not built (1 is)",
                           json_array_size(layer));
        layer = json_array_get(layer, 0);
    }
    if (layer && !json_is_null(layer)) number = json_integer_value(layer);
    if (layer && !json_is_null(layer) && (!json_is_integer(layer) || number < -count - 1 || number > count))
        return fr_fail(FR_INPUT, FR_TOWER_CONFIG ": vision_feature_layer names a layer that is none of the tower's %zu",
                       *layers);
    *layers = (size_t)(number < 0 ? count + 1 + number : number);
    return FR_OK;
}

static fr_status read_tower(const fr_tower_source *s, fr_vision_config *c, size_t *side) {
    static const char where[] = FR_TOWER_CONFIG;
    const json_t *v = s->vision;
    size_t channels, head;
    FR_TRY(fr_tower_size(v, "hidden_size", 4, 1 << 16, 1024, where, &c->hidden));
    FR_TRY(fr_tower_size(v, "num_hidden_layers", 1, FR_VISION_LAYERS_MAX, 24, where, &c->layers));
    FR_TRY(fr_tower_size(v, "num_attention_heads", 1, 4096, 16, where, &c->heads));
    FR_TRY(fr_tower_size(v, "head_dim", 1, 1 << 16, (int64_t)(c->hidden / c->heads), where, &head));
    FR_TRY(fr_tower_size(v, "intermediate_size", 1, 1 << 20, 4096, where, &c->ffn));
    FR_TRY(fr_tower_size(v, "patch_size", 1, 256, 16, where, &c->patch));
    FR_TRY(fr_tower_size(v, "image_size", 1, 1 << 16, 1024, where, side));
    FR_TRY(fr_tower_size(v, "num_channels", FR_VISION_CHANNELS, FR_VISION_CHANNELS, 3, where, &channels));
    FR_TRY(fr_tower_activation(v, "hidden_act", FR_VISION_GELU_ERF, &c->activation));
    FR_TRY(read_rope(v, &c->theta));
    FR_TRY(read_feature_layer(s, &c->layers));
    if (head * c->heads == c->hidden) return FR_OK;
    return fr_fail(FR_UNBUILT, FR_TOWER_CONFIG ": a vision tower of width %zu with %zu heads of %zu is not built",
                   c->hidden, c->heads, head);
}

/* Reads the merger, which comes after the layers. The norm of patches has the eps of the text model's norms. */
static fr_status read_merger(const fr_tower_source *s, fr_vision_config *c) {
    static const char where[] = FR_TOWER_CONFIG;
    json_t *text;
    const char *type;
    double eps;
    FR_TRY(fr_json_object(s->root, "text_config", where, &text));
    FR_TRY(fr_json_text(text, "model_type", where, &type));
    bool newer = type && strcmp(type, "ministral3") == 0;
    FR_TRY(fr_json_real(text, "rms_norm_eps", 0.0, 1.0, newer || !text ? 1e-5 : 1e-6, where, &eps));
    FR_TRY(fr_tower_size(text, "hidden_size", 1, 1 << 17, text ? 4096 : 5120, where, &c->out));
    FR_TRY(fr_tower_size(s->root, "spatial_merge_size", 1, 16, 2, where, &c->merge));
    FR_TRY(fr_json_bool(s->root, "multimodal_projector_bias", false, where, &c->merger_bias));
    FR_TRY(fr_tower_activation(s->root, "projector_hidden_act", FR_VISION_GELU_ERF, &c->merger_activation));
    c->merger_eps = (float)eps;
    return FR_OK;
}

/* Reads the largest height and width of a picture. Checks the sizes in processor_config.json by which the processor
 * resizes to whole tokens. */
static fr_status read_processor(const fr_tower_source *s, fr_vision_config *c) {
    json_t *size;
    bool crops;
    size_t longest;
    FR_TRY(fr_json_object(s->processor, "size", s->where, &size));
    FR_TRY(fr_tower_size(size, "longest_edge", 1, 1 << 16, size ? 0 : 1024, s->where, &longest));
    c->cuts.longest_width = c->cuts.longest_height = longest;
    if (!longest) FR_TRY(fr_tower_size(size, "width", 1, 1 << 16, 0, s->where, &c->cuts.longest_width));
    if (!longest) FR_TRY(fr_tower_size(size, "height", 1, 1 << 16, 0, s->where, &c->cuts.longest_height));
    if (!c->cuts.longest_width || !c->cuts.longest_height)
        return fr_fail(FR_INPUT, "%s: size has neither longest_edge nor width and height", s->where);
    FR_TRY(fr_json_bool(s->processor, "do_center_crop", false, s->where, &crops));
    if (crops) return fr_fail(FR_UNBUILT, "%s: do_center_crop is not built", s->where);
    FR_TRY(fr_tower_same_outside(s, "patch_size", c->patch));
    FR_TRY(fr_tower_same_outside(s, "spatial_merge_size", c->merge));
    FR_TRY(fr_tower_same_text(s, "image_break_token", BREAK_ROW));
    FR_TRY(fr_tower_same_text(s, "image_end_token", END));
    FR_TRY(fr_tower_resample(s, c));
    return fr_tower_pixels(s, fr_clip_mean, fr_clip_deviation, c);
}

static fr_status read_gguf(const fr_tower_source *s, fr_vision_config *c, size_t *side) {
    bool silu, gelu;
    FR_TRY(fr_gguf_bool(s->gguf, ".use_silu", false, &silu));
    FR_TRY(fr_gguf_bool(s->gguf, ".use_gelu", false, &gelu));
    if (!silu && !gelu)
        return fr_fail(FR_UNBUILT, "%s: a vision tower without clip.use_silu and clip.use_gelu is not built",
                       s->gguf->path);
    FR_TRY(fr_tower_gguf_sizes(s->gguf, c));
    FR_TRY(fr_gguf_size(s->gguf, ".vision.image_size", 1, 1 << 16, FR_GGUF_REQUIRED, side));
    FR_TRY(fr_gguf_size(s->gguf, ".vision.spatial_merge_size", 1, 16, 1, &c->merge));
    c->activation = silu ? FR_VISION_SILU : FR_VISION_GELU_ERF;
    c->merger_activation = FR_VISION_GELU_ERF;
    c->merger_bias = fr_weights_has(s->weights, "", "mm.1.bias");
    c->merger_eps = c->eps;
    c->cuts.longest_width = c->cuts.longest_height = *side;
    c->rope_pairs = true;
    return FR_OK;
}

static fr_status read(fr_vision_config *c, const fr_tower_source *s) {
    size_t side;
    c->theta = THETA;
    c->eps = EPS;
    if (s->gguf) {
        FR_TRY(read_gguf(s, c, &side));
    } else {
        FR_TRY(read_tower(s, c, &side));
        FR_TRY(read_merger(s, c));
        FR_TRY(read_processor(s, c));
    }
    c->frames = 1;
    c->rope_alternates = true;
    c->out_ffn = c->out;
    return FR_OK;
}

static double between_one_and(double most, double tokens) {
    return tokens < 1.0 ? 1.0 : tokens > most ? floor(most) : tokens;
}

/* Shrinks a picture with a side that is too long, and enlarges its sides to whole tokens. Like the published processor,
 * it computes in doubles and rounds in the same order. */
static fr_status choose_grid(const fr_vision_config *c, size_t width, size_t height, fr_image_grid *grid) {
    double unit = (double)(c->patch * c->merge), w = (double)width, h = (double)height;
    double tall = h / (double)c->cuts.longest_height, wide = w / (double)c->cuts.longest_width;
    double ratio = tall > wide ? tall : wide;
    if (ratio > 1.0) {
        h = floor(h / ratio);
        w = floor(w / ratio);
    }
    if (h < 1.0 || w < 1.0)
        return fr_fail(FR_INPUT, "a picture of %zu x %zu would have no pixel on one side", width, height);
    double rows = floor((h - 1.0) / unit) + 1.0, columns = floor((w - 1.0) / unit) + 1.0;
    double most = (double)c->max_pixels / (unit * unit);
    if (c->max_pixels && rows * columns > most) {
        double shrink = sqrt(h * w / (double)c->max_pixels);
        rows = between_one_and(most, floor(h / shrink / unit));
        columns = between_one_and(most, floor(w / shrink / unit));
    }
    *grid = (fr_image_grid){.rows = (size_t)rows, .columns = (size_t)columns, .runs = (size_t)rows};
    return FR_OK;
}

static fr_status limit(fr_vision_config *c, int64_t least, int64_t most) {
    if (least)
        return fr_fail(FR_INPUT, "this vision tower has no smallest picture: image-min-pixels and image-min-tokens "
                                 "don't apply");
    c->max_pixels = most;
    return FR_OK;
}

static void spell(const fr_vision *v, size_t width, size_t height, const char *token, fr_text_buffer *text) {
    fr_image_grid grid;
    if (fr_vision_grid(v, width, height, &grid) != FR_OK) return;
    for (size_t row = 0; row < grid.rows; row++) {
        for (size_t column = 0; column < grid.columns; column++) fr_text_append_string(text, token);
        fr_text_append_string(text, row + 1 < grid.rows ? BREAK_ROW : END);
    }
}

/* ---------------------------------------------------------------------------------------------------------- tensors */

static fr_status bind(const fr_tower_binder *b, fr_vision *v) {
    static const char *const projectors[] = {"multi_modal_projector.", "model.multi_modal_projector.", NULL};
    const fr_vision_config *c = &v->config;
    const fr_gguf *gguf = b->weights->files->gguf;
    const uint64_t patch[] = {c->hidden, FR_VISION_CHANNELS, c->patch, c->patch};
    const fr_tower_binder p = fr_tower_beside(b, projectors, "patch_merger.merging_layer.weight");
    const char *embed = gguf ? "v.patch_embd.weight" : "patch_conv.weight";
    ends *e = v->own = calloc(1, sizeof *e);
    if (!e) return fr_fail_memory("vision tower", sizeof *e);
    FR_TRY(fr_tower_list(b, embed, "v.patch_embd.weight", FR_VISION_WHOLE));
    FR_TRY(fr_bind_convolution(b->weights, b->prefix, embed, patch, 4, &v->embed));
    FR_TRY(fr_tower_bind_norm(b, "ln_pre", "v.pre_ln", false, c->hidden, &e->first));
    FR_TRY(fr_tower_bind_vector(&p, "norm.weight", "mm.input_norm.weight", c->hidden, &e->norm));
    FR_TRY(fr_tower_bind_product(&p, "patch_merger.merging_layer", "mm.patch_merger", c->hidden,
                                 c->merge * c->merge * c->hidden, &e->merge, NULL));
    FR_TRY(fr_tower_bind_product(&p, "linear_1", "mm.1", c->out, c->hidden, &e->first_product,
                                 c->merger_bias ? &e->first_bias : NULL));
    return fr_tower_bind_product(&p, "linear_2", "mm.2", c->out, c->out, &e->second_product,
                                 c->merger_bias ? &e->second_bias : NULL);
}

/* ------------------------------------------------------------------------------------------------- a picture's rows */

static void norm_patch(const fr_vision *v, fr_image_grid grid, size_t row, size_t column, float *spare, float *x) {
    const ends *e = v->own;
    (void)grid;
    (void)row;
    (void)column;
    (void)spare;
    fr_vision_norm_row(v, &e->first, x, x, v->config.hidden);
}

/* Makes one row for each token of a chunk: the normed streams of a token's patches, interleaved like a convolution's
 * weights. */
static void gather_tokens(const fr_team *team, const fr_vision_activations *a, size_t first, size_t rows) {
    const fr_vision_config *c = &a->vision->config;
    const ends *e = a->vision->own;
    size_t parts = c->merge * c->merge, begin, end;
    fr_part_rows(team, rows, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *wide = a->wide + r * a->wide_width;
        for (size_t i = 0; i < parts; i++) {
            float *x = a->x + ((first + r) * parts + i) * c->hidden;
            a->vision->kernels->rmsnorm(x, x, e->norm, c->hidden, c->merger_eps);
            for (size_t d = 0; d < c->hidden; d++) wide[d * parts + i] = x[d];
        }
        fr_matrix_input_row(&a->workspace, r, wide, parts * c->hidden);
    }
    fr_team_sync(team);
}

static void merge(const fr_team *team, const fr_vision_activations *a, size_t first, size_t rows) {
    const fr_vision_config *c = &a->vision->config;
    const ends *e = a->vision->own;
    const fr_vision_ffn ffn = {.up = &e->first_product, .up_bias = e->first_bias, .activation = c->merger_activation};
    gather_tokens(team, a, first, rows);
    fr_vision_apply(team, a, &e->merge, NULL,
                    &(fr_matrix_rows){a->narrow, a->narrow_width, a->wide, a->wide_width, rows});
    fr_publish_own_input(team, &a->workspace, a->narrow, a->narrow_width, c->hidden, rows);
    fr_vision_feed(team, a, &ffn, &(fr_matrix_rows){a->gate, a->gate_width, a->narrow, a->narrow_width, rows});
    fr_publish_own_input(team, &a->workspace, a->gate, a->gate_width, c->out, rows);
    fr_vision_apply(team, a, &e->second_product, e->second_bias,
                    &(fr_matrix_rows){a->rows + first * c->out, c->out, a->gate, a->gate_width, rows});
    fr_team_sync(team);
}

/* Writes the keys. GGUF has only one eps for all norms, and only the longest side of a picture. */
static fr_status put(const fr_vision_config *c, fr_gguf_writer *writer) {
    if (c->resample != FR_RESAMPLE_BICUBIC) return fr_tower_no_key("resample");
    if (c->theta != THETA) return fr_tower_no_key("rope_theta");
    if (c->merger_eps != c->eps) return fr_tower_no_key("rms_norm_eps");
    if (c->cuts.longest_width != c->cuts.longest_height) return fr_tower_no_key("size");
    if (c->merger_activation != FR_VISION_GELU_ERF) return fr_tower_no_key("projector_hidden_act");
    fr_tower_put(c, c->cuts.longest_width, ".projector_type", writer);
    fr_gguf_put_bool(writer, c->activation == FR_VISION_SILU ? ".use_silu" : ".use_gelu", true);
    fr_gguf_put_u32(writer, ".vision.spatial_merge_size", (uint32_t)c->merge);
    return FR_OK;
}

const fr_tower fr_tower_pixtral = {
    .architectures = (const char *const[]){"Mistral3ForConditionalGeneration", "mistral3", NULL},
    .projector = "pixtral",
    .token = "[IMG]",
    .prefixes = (const char *const[]){"vision_tower.", "model.vision_tower.", "vision_tower.vision_model.", NULL},
    .first = "patch_conv.weight",
    .names = &(const fr_tower_names){.layers = "transformer.layers.",
                                     .norm1 = "attention_norm",
                                     .norm2 = "ffn_norm",
                                     .q = "attention.q_proj",
                                     .k = "attention.k_proj",
                                     .paired_in_gguf = true,
                                     .v = "attention.v_proj",
                                     .proj = "attention.o_proj",
                                     .gate = "feed_forward.gate_proj",
                                     .up = "feed_forward.up_proj",
                                     .down = "feed_forward.down_proj"},
    .read = read,
    .bind = bind,
    .grid = choose_grid,
    .limit = limit,
    .spell = spell,
    .finish_patch = norm_patch,
    .merge = merge,
    .row_end = BREAK_ROW,
    .put = put};
