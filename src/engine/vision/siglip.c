/* Reads and binds what SigLIP towers have in common: see siglip.h. */
#include "src/engine/vision/siglip.h"

#include <stdlib.h>

#include "base/error.h"

const fr_tower_names fr_siglip_names = {.layers = "encoder.layers.",
                                        .norm1 = "layer_norm1",
                                        .norm2 = "layer_norm2",
                                        .q = "self_attn.q_proj",
                                        .k = "self_attn.k_proj",
                                        .v = "self_attn.v_proj",
                                        .proj = "self_attn.out_proj",
                                        .up = "mlp.fc1",
                                        .down = "mlp.fc2"};

const double fr_siglip_half[FR_VISION_CHANNELS] = {0.5, 0.5, 0.5};

static fr_status read_folder(const fr_tower_source *s, const fr_siglip_sizes *usual, fr_vision_config *c,
                             size_t *side) {
    static const char where[] = FR_TOWER_CONFIG;
    const json_t *v = s->vision;
    size_t channels;
    double eps;
    FR_TRY(fr_tower_size(v, "hidden_size", 4, 1 << 16, (int64_t)usual->hidden, where, &c->hidden));
    FR_TRY(fr_tower_size(v, "num_hidden_layers", 1, FR_VISION_LAYERS_MAX, (int64_t)usual->layers, where, &c->layers));
    FR_TRY(fr_tower_size(v, "num_attention_heads", 1, 4096, (int64_t)usual->heads, where, &c->heads));
    FR_TRY(fr_tower_size(v, "intermediate_size", 1, 1 << 20, (int64_t)usual->ffn, where, &c->ffn));
    FR_TRY(fr_tower_size(v, "patch_size", 1, 256, (int64_t)usual->patch, where, &c->patch));
    FR_TRY(fr_tower_size(v, "image_size", 1, 1 << 16, 224, where, side));
    FR_TRY(fr_tower_size(v, "num_channels", FR_VISION_CHANNELS, FR_VISION_CHANNELS, 3, where, &channels));
    FR_TRY(fr_json_real(v, "layer_norm_eps", 0.0, 1.0, 1e-6, where, &eps));
    FR_TRY(fr_tower_activation(v, "hidden_act", FR_VISION_GELU_TANH, &c->activation));
    c->eps = (float)eps;
    return FR_OK;
}

static fr_status read_gguf(const fr_tower_source *s, fr_vision_config *c, size_t *side) {
    bool gelu;
    FR_TRY(fr_gguf_bool(s->gguf, ".use_gelu", false, &gelu));
    if (!gelu) return fr_fail(FR_UNBUILT, "%s: a vision tower without clip.use_gelu is not built", s->gguf->path);
    c->activation = FR_VISION_GELU_TANH;
    FR_TRY(fr_tower_gguf_sizes(s->gguf, c));
    return fr_gguf_size(s->gguf, ".vision.image_size", 1, 1 << 16, FR_GGUF_REQUIRED, side);
}

fr_status fr_siglip_read(const fr_tower_source *s, const fr_siglip_sizes *usual, fr_vision_config *c, size_t *side) {
    FR_TRY(s->gguf ? read_gguf(s, c, side) : read_folder(s, usual, c, side));
    c->frames = 1;
    c->bias = c->layer_norm = true;
    return FR_OK;
}

fr_status fr_siglip_bind(const fr_tower_binder *b, fr_vision *v, fr_siglip **own) {
    const fr_vision_config *c = &v->config;
    const fr_gguf *gguf = b->weights->files->gguf;
    const uint64_t patch[] = {c->hidden, FR_VISION_CHANNELS, c->patch, c->patch};
    const char *embed = gguf ? "v.patch_embd.weight" : "embeddings.patch_embedding.weight";
    const char *positions = gguf ? "v.position_embd.weight" : "embeddings.position_embedding.weight";
    fr_siglip *s = *own = v->own = calloc(1, sizeof *s);
    if (!s) return fr_fail_memory("vision tower", sizeof *s);
    FR_TRY(fr_tower_list(b, embed, "v.patch_embd.weight", FR_VISION_WHOLE));
    FR_TRY(fr_tower_list(b, positions, "v.position_embd.weight", FR_VISION_WHOLE));
    FR_TRY(fr_bind_convolution(b->weights, b->prefix, embed, patch, 4, &v->embed));
    FR_TRY(fr_tower_bind_vector(b, "embeddings.patch_embedding.bias", "v.patch_embd.bias", c->hidden, &v->embed_bias));
    FR_TRY(fr_bind_matrix(b->weights, b->prefix, positions, c->positions * c->positions, c->hidden, FR_LOOKED_UP,
                          &s->positions));
    return fr_tower_bind_norm(b, "post_layernorm", "v.post_ln", true, c->hidden, &s->last);
}

void fr_siglip_add_position(const fr_vision *v, size_t index, float *spare, float *x) {
    const fr_siglip *s = v->own;
    fr_matrix_row(v->kernels, &s->positions, index, 1.0f, spare);
    v->kernels->add(x, spare, v->config.hidden);
}

size_t fr_siglip_root(size_t number) {
    size_t root = 0;
    while ((root + 1) * (root + 1) <= number) root++;
    return root;
}
