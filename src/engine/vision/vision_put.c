/* Writes a vision tower's keys to GGUF: see vision.h. The keys are those that llama.cpp's converter writes, and those
 * by which forerun reads a picture's limits. */
#include "base/error.h"
#include "src/engine/vision/tower.h"

fr_status fr_tower_no_key(const char *what) {
    return fr_fail(FR_UNBUILT,
                   "a vision tower with this %s can't be written: GGUF has no key for it (mmproj-type none leaves the "
                   "tower out)",
                   what);
}

static void put_three(fr_gguf_writer *writer, const char *key, const double *values) {
    fr_gguf_put_array(writer, key, FR_GGUF_F32, FR_VISION_CHANNELS);
    for (size_t i = 0; i < FR_VISION_CHANNELS; i++) fr_gguf_add_f32(writer, (float)values[i]);
}

void fr_tower_put(const fr_vision_config *c, size_t image_size, const char *key, fr_gguf_writer *writer) {
    size_t patch = c->pooling ? c->patch / c->pooling : c->patch;
    fr_gguf_put_bool(writer, ".has_vision_encoder", true);
    fr_gguf_put_string(writer, key, c->tower->projector);
    fr_gguf_put_u32(writer, ".vision.projection_dim", (uint32_t)c->out);
    fr_gguf_put_u32(writer, ".vision.image_size", (uint32_t)image_size);
    fr_gguf_put_u32(writer, ".vision.patch_size", (uint32_t)patch);
    fr_gguf_put_u32(writer, ".vision.embedding_length", (uint32_t)c->hidden);
    fr_gguf_put_u32(writer, ".vision.feed_forward_length", (uint32_t)(c->layers ? c->ffn : 0));
    fr_gguf_put_u32(writer, ".vision.block_count", (uint32_t)c->layers);
    fr_gguf_put_u32(writer, ".vision.attention.head_count", (uint32_t)(c->layers ? c->heads : 0));
    fr_gguf_put_f32(writer, ".vision.attention.layer_norm_epsilon", c->eps);
    put_three(writer, ".vision.image_mean", c->mean);
    put_three(writer, ".vision.image_std", c->deviation);
}

void fr_tower_put_limits(const fr_vision_config *c, fr_gguf_writer *writer) {
    fr_gguf_put_u32(writer, ".vision.image_min_pixels", (uint32_t)((size_t)c->min_pixels / c->pixel_count));
    fr_gguf_put_u32(writer, ".vision.image_max_pixels", (uint32_t)((size_t)c->max_pixels / c->pixel_count));
}

const char *fr_vision_row_end(const fr_vision *vision) {
    return vision->config.tower->row_end;
}

fr_status fr_vision_put(const fr_vision *vision, fr_gguf_writer *writer) {
    const fr_vision_config *c = &vision->config;
    if (!c->tower->put)
        return fr_fail(FR_UNBUILT, "writing a vision tower of projector \"%s\" is not built", c->tower->projector);
    if (c->rescale != 1.0 / 255.0) return fr_tower_no_key("rescale_factor");
    return c->tower->put(c, writer);
}
