/* The vision towers of Qwen2.5-VL, and of Qwen3-VL, Qwen3.5 and models of the same architecture.
 *
 * Source: the published checkpoints and transformers 5.24, models qwen2_5_vl, qwen3_vl and qwen3_5; for GGUF
 * llama.cpp's converter, projectors "qwen2.5vl_merger" and "qwen3vl_merger". The older tower has RMS norms, a gated
 * feed-forward, and layers in which a patch sees only its window of tokens. The newer tower has LayerNorms, a
 * feed-forward without a gate, and a table of learned positions. In both towers, the normed rows of merge x merge
 * patches are joined end to end. Two products with a GELU between them turn the joined row into a token's row. Qwen3-VL
 * computes such rows from some earlier layers too (deepstack). They are added to the outputs of the first layers of the
 * text model. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/vision/tower.h"

/* The default limits on a picture's size: in pixels for a processor without limits, and in tokens for GGUF files, as
 * in llama.cpp. */
#define MIN_PIXELS      (56 * 56)
#define PIXELS_MAX      (28 * 28 * 1280)
#define GGUF_MIN_TOKENS 8
#define GGUF_TOKENS_MAX 4096

#define GGUF_SIDE 560 /* the side of a picture that llama.cpp's converter writes for Qwen2.5-VL */

#define WINDOW 112 /* side of a window in pixels, for GGUF files without a key for it */

/* Two products that make a token's row from its patches. */
typedef struct merger {
    fr_vision_norm norm;
    bool norm_merged; /* the norm is over the whole token; if false, over each patch */
    fr_matrix fc1, fc2;
    const float *fc1_bias, *fc2_bias;
} merger;

/* The tensors that only Qwen's towers have. */
typedef struct ends {
    fr_matrix positions; /* [positions * positions, hidden] a learned embedding of each place */
    merger merger, deepstack[FR_VISION_DEEPSTACK_MAX];
} ends;

/* ---------------------------------------------------------------------------------------------------- configuration */

static fr_status read_numbers(const json_t *vision, const char *key, const size_t *fallback, size_t fallbacks,
                              size_t most, size_t layers, size_t *numbers, size_t *count) {
    const json_t *array = json_object_get(vision, key);
    *count = array ? json_array_size(array) : fallbacks;
    if ((array && !json_is_array(array)) || *count > most)
        return fr_fail(FR_INPUT, FR_TOWER_CONFIG ": %s must be an array of up to %zu layers", key, most);
    for (size_t i = 0; i < *count; i++) {
        const json_t *entry = json_array_get(array, i);
        json_int_t number = array ? json_integer_value(entry) : (json_int_t)fallback[i];
        if ((array && !json_is_integer(entry)) || number < 0 || (size_t)number >= layers)
            return fr_fail(FR_INPUT, FR_TOWER_CONFIG ": %s names a layer that is none of the tower's %zu", key, layers);
        numbers[i] = (size_t)number;
    }
    return FR_OK;
}

/* Reads the limits on a picture's size, in pixels. If a file has both the old keys and the new keys, the old keys are
 * used. */
static fr_status read_limits(const fr_tower_source *s, fr_vision_config *c) {
    json_t *size;
    FR_TRY(fr_json_object(s->processor, "size", s->where, &size));
    FR_TRY(fr_json_int(size, "shortest_edge", 1, INT32_MAX, MIN_PIXELS, s->where, &c->min_pixels));
    FR_TRY(fr_json_int(size, "longest_edge", 1, INT32_MAX, PIXELS_MAX, s->where, &c->max_pixels));
    FR_TRY(fr_json_int(s->processor, "min_pixels", 1, INT32_MAX, c->min_pixels, s->where, &c->min_pixels));
    FR_TRY(fr_json_int(s->processor, "max_pixels", 1, INT32_MAX, c->max_pixels, s->where, &c->max_pixels));
    FR_TRY(fr_tower_resizes(s));
    FR_TRY(fr_tower_same(s, "patch_size", c->patch));
    FR_TRY(fr_tower_same(s, "temporal_patch_size", c->frames));
    FR_TRY(fr_tower_same(s, "merge_size", c->merge));
    return fr_tower_pixels(s, fr_clip_mean, fr_clip_deviation, c);
}

static fr_status read_activation(const json_t *vision, const char *built) {
    const char *activation;
    FR_TRY(fr_json_text(vision, "hidden_act", FR_TOWER_CONFIG, &activation));
    if (!activation || strcmp(activation, built) == 0) return FR_OK;
    return fr_fail(FR_UNBUILT, FR_TOWER_CONFIG ": hidden_act %s of the vision tower is not built (%s is)", activation,
                   built);
}

/* Reads the sizes that both towers have; the defaults are those of their configurations in transformers. */
static fr_status read_sizes(const json_t *v, const fr_vision_config *defaults, fr_vision_config *c) {
    static const char where[] = FR_TOWER_CONFIG;
    size_t channels;
    FR_TRY(fr_tower_size(v, "hidden_size", 4, 1 << 16, (int64_t)defaults->hidden, where, &c->hidden));
    FR_TRY(fr_tower_size(v, "depth", 1, FR_VISION_LAYERS_MAX, (int64_t)defaults->layers, where, &c->layers));
    FR_TRY(fr_tower_size(v, "num_heads", 1, 4096, (int64_t)defaults->heads, where, &c->heads));
    FR_TRY(fr_tower_size(v, "intermediate_size", 1, 1 << 20, (int64_t)defaults->ffn, where, &c->ffn));
    FR_TRY(fr_tower_size(v, "out_hidden_size", 1, 1 << 17, (int64_t)defaults->out, where, &c->out));
    FR_TRY(fr_tower_size(v, "patch_size", 1, 256, (int64_t)defaults->patch, where, &c->patch));
    FR_TRY(fr_tower_size(v, "temporal_patch_size", 1, 16, 2, where, &c->frames));
    FR_TRY(fr_tower_size(v, "spatial_merge_size", 1, 16, 2, where, &c->merge));
    return fr_tower_size(v, "in_channels", FR_VISION_CHANNELS, FR_VISION_CHANNELS, 3, where, &channels);
}

static fr_status read_gguf(const fr_tower_source *s, const char *activation, fr_vision_config *c) {
    const fr_gguf *gguf = s->gguf;
    bool flag;
    FR_TRY(fr_gguf_bool(gguf, activation, false, &flag));
    if (!flag) return fr_fail(FR_UNBUILT, "%s: a vision tower without clip%s is not built", gguf->path, activation);
    FR_TRY(fr_tower_gguf_sizes(gguf, c));
    c->frames = FR_VISION_GGUF_FRAMES;
    FR_TRY(fr_gguf_size(gguf, ".vision.spatial_merge_size", 1, 16, 2, &c->merge));
    int64_t token = (int64_t)(c->patch * c->patch * c->merge * c->merge);
    FR_TRY(fr_gguf_int(gguf, ".vision.image_min_pixels", 1, INT32_MAX, GGUF_MIN_TOKENS * token, &c->min_pixels));
    return fr_gguf_int(gguf, ".vision.image_max_pixels", 1, INT32_MAX, GGUF_TOKENS_MAX * token, &c->max_pixels);
}

static void complete(fr_vision_config *c) {
    c->theta = 10000.0;
    c->bias = true;
    c->out_ffn = c->merge * c->merge * c->hidden;
}

static fr_status read_windows(const fr_tower_source *s, fr_vision_config *c) {
    static const size_t usual[] = {7, 15, 23, 31};
    size_t pixels, every, full[FR_VISION_LAYERS_MAX], count;
    for (size_t i = 0; i < c->layers; i++) c->windowed[i] = true;
    if (s->gguf) {
        FR_TRY(fr_gguf_size(s->gguf, ".vision.window_size", 1, 1 << 16, WINDOW, &pixels));
        FR_TRY(fr_gguf_size(s->gguf, ".vision.n_wa_pattern", 0, FR_VISION_LAYERS_MAX, 0, &every));
        for (size_t i = 0; i < c->layers; i++) c->windowed[i] = every && (i + 1) % every != 0;
    } else {
        FR_TRY(fr_tower_size(s->vision, "window_size", 1, 1 << 16, WINDOW, FR_TOWER_CONFIG, &pixels));
        FR_TRY(read_numbers(s->vision, "fullatt_block_indexes", usual, c->layers > 31 ? 4 : 0, FR_VISION_LAYERS_MAX,
                            c->layers, full, &count));
        for (size_t i = 0; i < count; i++) c->windowed[full[i]] = false;
    }
    c->window = pixels / c->merge / c->patch;
    if (c->window) return FR_OK;
    return fr_fail(FR_INPUT, "%s: a window of %zu pixels is smaller than a token of %zu", s->weights->files->path,
                   pixels, c->merge * c->patch);
}

static fr_status read_25(fr_vision_config *c, const fr_tower_source *s) {
    static const fr_vision_config defaults = {
        .hidden = 3584, .layers = 32, .heads = 16, .ffn = 3420, .out = 3584, .patch = 14};
    c->activation = FR_VISION_SILU;
    if (s->gguf)
        FR_TRY(read_gguf(s, ".use_silu", c));
    else {
        FR_TRY(read_activation(s->vision, "silu"));
        FR_TRY(read_sizes(s->vision, &defaults, c));
        c->eps = 1e-6F;
        FR_TRY(read_limits(s, c));
    }
    complete(c);
    return read_windows(s, c);
}

/* Reads which layers have mergers of their own. The rows that these mergers make are added in the text model's first
 * layers. */
static fr_status read_deepstack(const fr_tower_source *s, fr_vision_config *c) {
    static const size_t usual[] = {8, 16, 24};
    const fr_gguf_value *flags;
    if (!s->gguf) {
        const char *type = json_string_value(json_object_get(s->root, "model_type"));
        bool has = type && strncmp(type, "qwen3_vl", 8) == 0;
        return read_numbers(s->vision, "deepstack_visual_indexes", usual, has && c->layers > 24 ? 3 : 0,
                            FR_VISION_DEEPSTACK_MAX, c->layers, c->deepstack_layers, &c->deepstack);
    }
    FR_TRY(fr_gguf_array(s->gguf, ".vision.is_deepstack_layers", FR_GGUF_BOOL, &flags));
    for (size_t i = 0; flags && i < flags->count && i < c->layers; i++) {
        if (!flags->data[i]) continue;
        if (c->deepstack == FR_VISION_DEEPSTACK_MAX)
            return fr_fail(FR_UNBUILT, "%s: more than %d layers with mergers of their own are not built", s->gguf->path,
                           FR_VISION_DEEPSTACK_MAX);
        c->deepstack_layers[c->deepstack++] = i;
    }
    return FR_OK;
}

static fr_status read_3(fr_vision_config *c, const fr_tower_source *s) {
    static const fr_vision_config defaults = {
        .hidden = 1152, .layers = 27, .heads = 16, .ffn = 4304, .out = 3584, .patch = 16};
    size_t entries = 0;
    c->activation = FR_VISION_GELU_TANH;
    c->layer_norm = true;
    if (s->gguf) {
        size_t side;
        FR_TRY(read_gguf(s, ".use_gelu", c));
        FR_TRY(fr_gguf_size(s->gguf, ".vision.image_size", 1, 1 << 16, FR_GGUF_REQUIRED, &side));
        c->positions = side / c->patch;
    } else {
        FR_TRY(read_activation(s->vision, "gelu_pytorch_tanh"));
        FR_TRY(read_sizes(s->vision, &defaults, c));
        FR_TRY(fr_tower_size(s->vision, "num_position_embeddings", 1, 1 << 24, 2304, FR_TOWER_CONFIG, &entries));
        c->positions = (size_t)rint(sqrt((double)entries));
        if (c->positions * c->positions != entries)
            return fr_fail(FR_INPUT, FR_TOWER_CONFIG ": num_position_embeddings is %zu, which is no square", entries);
        c->eps = 1e-6F;
        FR_TRY(read_limits(s, c));
    }
    if (!c->positions) return fr_fail(FR_INPUT, "%s: a table of no positions", s->weights->files->path);
    complete(c);
    return read_deepstack(s, c);
}

static fr_status choose_grid(const fr_vision_config *c, size_t width, size_t height, fr_image_grid *grid) {
    double w = (double)width, h = (double)height;
    FR_TRY(fr_tower_check_ratio(width, height, h > w ? h / w : w / h));
    fr_tower_grid_by_area(c, 1.0, w, h, grid);
    return FR_OK;
}

/* Orders tokens window by window. Windows at the right and at the bottom of a picture may be smaller. */
static void order_by_windows(const fr_vision_config *c, fr_image_grid grid, fr_vision_token *tokens) {
    size_t side = c->window, n = 0;
    for (size_t top = 0; top < grid.rows; top += side)
        for (size_t left = 0; left < grid.columns; left += side) {
            size_t first = n;
            for (size_t row = top; row < top + side && row < grid.rows; row++)
                for (size_t column = left; column < left + side && column < grid.columns; column++)
                    tokens[n++].place = (uint32_t)(row * grid.columns + column);
            for (size_t i = first; i < n; i++) {
                tokens[i].first = (uint32_t)first;
                tokens[i].last = (uint32_t)(n - 1);
            }
        }
}

/* ---------------------------------------------------------------------------------------------------------- tensors */

static fr_status bind_merger(const fr_tower_binder *b, const fr_vision_config *c, const char *const folder[3],
                             const char *const gguf[3], merger *m) {
    size_t whole = c->merge * c->merge * c->hidden;
    FR_TRY(fr_tower_bind_norm(b, folder[0], gguf[0], c->layer_norm, m->norm_merged ? whole : c->hidden, &m->norm));
    FR_TRY(fr_tower_bind_product(b, folder[1], gguf[1], whole, whole, &m->fc1, &m->fc1_bias));
    return fr_tower_bind_product(b, folder[2], gguf[2], c->out, whole, &m->fc2, &m->fc2_bias);
}

static fr_status bind_25(const fr_tower_binder *b, fr_vision *v) {
    static const char *const folder[] = {"merger.ln_q", "merger.mlp.0", "merger.mlp.2"};
    static const char *const gguf[] = {"v.post_ln", "mm.0", "mm.2"};
    ends *own = v->own = calloc(1, sizeof *own);
    if (!own) return fr_fail_memory("vision tower", sizeof *own);
    FR_TRY(fr_tower_bind_patches(b, "patch_embed.proj.weight", v));
    return bind_merger(b, &v->config, folder, gguf, &own->merger);
}

static fr_status bind_deepstack(const fr_tower_binder *b, const fr_vision_config *c, size_t index, merger *m) {
    static const char *const folder_parts[] = {"norm", "linear_fc1", "linear_fc2"};
    static const char *const gguf_parts[] = {"norm", "fc1", "fc2"};
    char folder[3][64], gguf[3][64];
    for (size_t i = 0; i < 3; i++) {
        snprintf(folder[i], sizeof folder[i], "deepstack_merger_list.%zu.%s", index, folder_parts[i]);
        snprintf(gguf[i], sizeof gguf[i], "v.deepstack.%zu.%s", c->deepstack_layers[index], gguf_parts[i]);
    }
    m->norm_merged = true;
    return bind_merger(b, c, (const char *const[]){folder[0], folder[1], folder[2]},
                       (const char *const[]){gguf[0], gguf[1], gguf[2]}, m);
}

static fr_status bind_3(const fr_tower_binder *b, fr_vision *v) {
    static const char *const folder[] = {"merger.norm", "merger.linear_fc1", "merger.linear_fc2"};
    static const char *const gguf[] = {"v.post_ln", "mm.0", "mm.2"};
    const fr_vision_config *c = &v->config;
    ends *own = v->own = calloc(1, sizeof *own);
    if (!own) return fr_fail_memory("vision tower", sizeof *own);
    const char *positions = b->weights->files->gguf ? "v.position_embd.weight" : "pos_embed.weight";
    FR_TRY(fr_tower_bind_vector(b, "patch_embed.proj.bias", "v.patch_embd.bias", c->hidden, &v->embed_bias));
    FR_TRY(fr_tower_bind_patches(b, "patch_embed.proj.weight", v));
    FR_TRY(fr_tower_list(b, positions, "v.position_embd.weight", FR_VISION_WHOLE));
    FR_TRY(fr_bind_matrix(b->weights, b->prefix, positions, c->positions * c->positions, c->hidden, FR_LOOKED_UP,
                          &own->positions));
    FR_TRY(bind_merger(b, c, folder, gguf, &own->merger));
    for (size_t i = 0; i < c->deepstack; i++) FR_TRY(bind_deepstack(b, c, i, &own->deepstack[i]));
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------- a picture's rows */

/* Finds where patch `at` of `count` patches lies along an axis of the table, which has `entries` entries. The patch
 * lies between entries *low and *high, at the fraction `part` of the way. */
static void find_entry(size_t at, size_t count, size_t entries, size_t *low, size_t *high, float *part) {
    double x = count > 1 ? (double)(at * (entries - 1)) / (double)(count - 1) : 0.0;
    *low = (size_t)x;
    *high = *low + 1 < entries ? *low + 1 : entries - 1;
    *part = (float)(x - (double)*low);
}

/* Adds the patch's learned position. The table is stretched over the picture, so the position is interpolated between
 * entries. */
static void add_position(const fr_vision *v, fr_image_grid grid, size_t row, size_t column, float *entry, float *x) {
    const fr_vision_config *c = &v->config;
    const ends *own = v->own;
    size_t side = c->positions, rows[2], columns[2];
    float down, right;
    find_entry(row, grid.rows * c->merge, side, &rows[0], &rows[1], &down);
    find_entry(column, grid.columns * c->merge, side, &columns[0], &columns[1], &right);
    const float along[] = {1.0F - down, down}, across[] = {1.0F - right, right};
    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 2; j++) {
            fr_matrix_row(v->kernels, &own->positions, rows[i] * side + columns[j], along[i] * across[j], entry);
            v->kernels->add(x, entry, c->hidden);
        }
}

/* Makes one input row of the merger for each token of a chunk: the normed streams of its patches, joined end to
 * end. */
static void gather_tokens(const fr_team *team, const fr_vision_activations *a, const merger *m, size_t first,
                          size_t count) {
    const fr_vision_config *c = &a->vision->config;
    size_t parts = c->merge * c->merge, whole = parts * c->hidden, begin, end;
    fr_part_rows(team, count, &begin, &end);
    for (size_t r = begin; r < end; r++) {
        float *wide = a->wide + r * a->wide_width;
        const float *x = a->x + (first + r) * whole;
        if (m->norm_merged)
            fr_vision_norm_row(a->vision, &m->norm, wide, x, whole);
        else
            for (size_t i = 0; i < whole; i += c->hidden)
                fr_vision_norm_row(a->vision, &m->norm, wide + i, x + i, c->hidden);
        fr_matrix_input_row(&a->workspace, r, wide, whole);
    }
    fr_team_sync(team);
}

/* Runs the merger over tokens [first, first + count). The results are columns [part * out, (part + 1) * out) of the
 * tokens' output rows. Output rows are in the order of the picture, which may differ from the tower's order of
 * tokens. */
static void merge_into(const fr_team *team, const fr_vision_activations *a, const merger *m, size_t part, size_t first,
                       size_t count) {
    const fr_vision_config *c = &a->vision->config;
    const fr_vision_ffn ffn = {.up = &m->fc1, .up_bias = m->fc1_bias, .activation = FR_VISION_GELU_ERF};
    size_t width = fr_vision_row_width(a->vision), begin, end;
    gather_tokens(team, a, m, first, count);
    fr_vision_feed(team, a, &ffn, &(fr_matrix_rows){a->gate, a->gate_width, a->wide, a->wide_width, count});
    fr_publish_own_input(team, &a->workspace, a->gate, a->gate_width, c->out_ffn, count);
    fr_vision_apply(team, a, &m->fc2, m->fc2_bias,
                    &(fr_matrix_rows){a->narrow, a->narrow_width, a->gate, a->gate_width, count});
    fr_team_sync(team);
    fr_part_rows(team, count, &begin, &end);
    for (size_t r = begin; r < end; r++)
        memcpy(a->rows + a->tokens[first + r].place * width + part * c->out, a->narrow + r * a->narrow_width,
               c->out * sizeof *a->rows);
    fr_team_sync(team);
}

static void merge(const fr_team *team, const fr_vision_activations *a, size_t first, size_t count) {
    const ends *own = a->vision->own;
    merge_into(team, a, &own->merger, 0, first, count);
}

static void merge_layer(const fr_team *team, const fr_vision_activations *a, size_t layer) {
    const fr_vision_config *c = &a->vision->config;
    const ends *own = a->vision->own;
    size_t tokens = a->grid.rows * a->grid.columns;
    for (size_t i = 0; i < c->deepstack; i++)
        for (size_t first = 0; c->deepstack_layers[i] == layer && first < tokens; first += FR_VISION_CHUNK)
            merge_into(team, a, &own->deepstack[i], 1 + i, first, fr_vision_chunk(first, tokens));
}

/* ----------------------------------------------------------------------------------------------------- keys in GGUF */

static fr_status put_common(const fr_vision_config *c, size_t image_size, const char *activation,
                            fr_gguf_writer *writer) {
    if (c->frames != FR_VISION_GGUF_FRAMES) return fr_tower_no_key("temporal_patch_size");
    if (c->resample != FR_RESAMPLE_BICUBIC) return fr_tower_no_key("resample");
    fr_tower_put(c, image_size, ".projector_type", writer);
    fr_tower_put_limits(c, writer);
    fr_gguf_put_bool(writer, activation, true);
    fr_gguf_put_u32(writer, ".vision.spatial_merge_size", (uint32_t)c->merge);
    return FR_OK;
}

/* Writes the key for the layers without windows. The key has one number n: every n-th layer has no window. */
static fr_status put_25(const fr_vision_config *c, fr_gguf_writer *writer) {
    size_t every = 1;
    while (every <= c->layers && c->windowed[every - 1]) every++;
    for (size_t i = 0; i < c->layers; i++)
        if (c->windowed[i] != ((i + 1) % every != 0)) return fr_tower_no_key("fullatt_block_indexes");
    FR_TRY(put_common(c, GGUF_SIDE, ".use_silu", writer));
    fr_gguf_put_u32(writer, ".vision.n_wa_pattern", (uint32_t)every);
    if (c->window != WINDOW / c->merge / c->patch)
        fr_gguf_put_u32(writer, ".vision.window_size", (uint32_t)(c->window * c->merge * c->patch));
    return FR_OK;
}

static fr_status put_3(const fr_vision_config *c, fr_gguf_writer *writer) {
    FR_TRY(put_common(c, c->positions * c->patch, ".use_gelu", writer));
    fr_gguf_put_array(writer, ".vision.is_deepstack_layers", FR_GGUF_BOOL, c->layers);
    for (size_t i = 0; i < c->layers; i++) {
        bool merges = false;
        for (size_t k = 0; k < c->deepstack; k++) merges |= c->deepstack_layers[k] == i;
        fr_gguf_add_bool(writer, merges);
    }
    return FR_OK;
}

const fr_tower fr_tower_qwen25 = {.architectures =
                                      (const char *const[]){"Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl", NULL},
                                  .projector = "qwen2.5vl_merger",
                                  .prefixes = (const char *const[]){"visual.", "model.visual.", NULL},
                                  .first = "patch_embed.proj.weight",
                                  .names = &(const fr_tower_names){.layers = "blocks.",
                                                                   .norm1 = "norm1",
                                                                   .norm2 = "norm2",
                                                                   .qkv = "attn.qkv",
                                                                   .parted_in_gguf = true,
                                                                   .proj = "attn.proj",
                                                                   .gate = "mlp.gate_proj",
                                                                   .up = "mlp.up_proj",
                                                                   .down = "mlp.down_proj"},
                                  .read = read_25,
                                  .bind = bind_25,
                                  .grid = choose_grid,
                                  .order = order_by_windows,
                                  .merge = merge,
                                  .put = put_25};

const fr_tower fr_tower_qwen3 = {
    .architectures = (const char *const[]){"Qwen3_5ForConditionalGeneration", "Qwen3_5MoeForConditionalGeneration",
                                           "Qwen3VLForConditionalGeneration", "Qwen3VLMoeForConditionalGeneration",
                                           "qwen3_5", "qwen3_5_moe", "qwen3_vl", "qwen3_vl_moe", NULL},
    .projector = "qwen3vl_merger",
    .prefixes = (const char *const[]){"model.visual.", "visual.", NULL},
    .first = "patch_embed.proj.weight",
    .names = &(const fr_tower_names){.layers = "blocks.",
                                     .norm1 = "norm1",
                                     .norm2 = "norm2",
                                     .qkv = "attn.qkv",
                                     .proj = "attn.proj",
                                     .up = "mlp.linear_fc1",
                                     .down = "mlp.linear_fc2"},
    .read = read_3,
    .bind = bind_3,
    .grid = choose_grid,
    .finish_patch = add_position,
    .merge = merge,
    .put = put_3,
    .after_layer = merge_layer};
