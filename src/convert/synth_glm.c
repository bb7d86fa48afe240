/* GLM-OCR's text model with its MTP layer, of random weights: see synth.h.
 *
 * Sizes: the published config.json of zai-org/GLM-OCR. Keys and names: github.com/ggml-org/llama.cpp,
 * conversion/glm.py. The MTP layer has an embedding and a head of its own, as published. */
#include "src/convert/synth.h"
#include "src/families/glm.h"

static const fr_glm_config ocr = {
    .hidden = 1536,
    .heads = 16,
    .kv_heads = 8,
    .head_dim = 128,
    .ffn = 4608,
    .mtp_layers = 1,
    .rotary = 128,
    .sections = {16, 24, 24},
    .theta = 10000.0,
    .eps = 1e-5F,
};

static const fr_synth_shape shapes[] = {{"glm-ocr", "glm4", 16, 59392, 1, &ocr}, {0}};

static void put_config(const fr_glm_config *c, fr_gguf_writer *w) {
    fr_gguf_put_u32(w, ".block_count", (uint32_t)(c->layers + c->mtp_layers));
    fr_gguf_put_u32(w, ".context_length", FR_SYNTH_CONTEXT);
    fr_gguf_put_u32(w, ".embedding_length", (uint32_t)c->hidden);
    fr_gguf_put_u32(w, ".feed_forward_length", (uint32_t)c->ffn);
    fr_gguf_put_u32(w, ".attention.head_count", (uint32_t)c->heads);
    fr_gguf_put_u32(w, ".attention.head_count_kv", (uint32_t)c->kv_heads);
    fr_gguf_put_array(w, ".rope.dimension_sections", FR_GGUF_I32, FR_AXES + 1);
    for (size_t axis = 0; axis < FR_AXES; axis++) fr_gguf_add_u32(w, (uint32_t)c->sections[axis]);
    fr_gguf_add_u32(w, 0); /* llama.cpp's fourth axis */
    fr_gguf_put_f32(w, ".rope.freq_base", (float)c->theta);
    fr_gguf_put_f32(w, ".attention.layer_norm_rms_epsilon", c->eps);
    fr_gguf_put_u32(w, ".attention.key_length", (uint32_t)c->head_dim);
    fr_gguf_put_u32(w, ".attention.value_length", (uint32_t)c->head_dim);
    fr_gguf_put_u32(w, ".rope.dimension_count", (uint32_t)c->rotary);
    fr_gguf_put_u32(w, ".nextn_predict_layers", (uint32_t)c->mtp_layers);
}

static void walk_layer(fr_synth *s, const fr_glm_config *c, int i) {
    size_t q_width = c->heads * c->head_dim, kv_width = c->kv_heads * c->head_dim;
    fr_synth_vector(s, i, "attn_norm.weight", c->hidden, 1);
    fr_synth_matrix(s, i, "attn_q.weight", q_width, c->hidden);
    fr_synth_matrix(s, i, "attn_k.weight", kv_width, c->hidden);
    fr_synth_matrix(s, i, "attn_v.weight", kv_width, c->hidden);
    fr_synth_matrix(s, i, "attn_output.weight", c->hidden, q_width);
    fr_synth_vector(s, i, "post_attention_norm.weight", c->hidden, 1);
    fr_synth_vector(s, i, "ffn_norm.weight", c->hidden, 1);
    fr_synth_matrix(s, i, "ffn_up.weight", 2 * c->ffn, c->hidden); /* the gate, then what it gates */
    fr_synth_matrix(s, i, "ffn_down.weight", c->hidden, c->ffn);
    fr_synth_vector(s, i, "post_ffw_norm.weight", c->hidden, 1);
}

static void walk(fr_synth *s, const void *model) {
    const fr_glm_config *c = model;
    int mtp = (int)c->layers;
    fr_synth_matrix(s, -1, "output.weight", c->vocab, c->hidden);
    fr_synth_matrix(s, -1, "token_embd.weight", c->vocab, c->hidden);
    fr_synth_vector(s, -1, "output_norm.weight", c->hidden, 1);
    for (int i = 0; i <= mtp; i++) walk_layer(s, c, i);
    fr_synth_matrix(s, mtp, "nextn.eh_proj.weight", c->hidden, 2 * c->hidden);
    fr_synth_matrix(s, mtp, "nextn.embed_tokens.weight", c->vocab, c->hidden);
    fr_synth_vector(s, mtp, "nextn.enorm.weight", c->hidden, 1);
    fr_synth_vector(s, mtp, "nextn.hnorm.weight", c->hidden, 1);
    fr_synth_matrix(s, mtp, "nextn.shared_head_head.weight", c->vocab, c->hidden);
    fr_synth_vector(s, mtp, "nextn.shared_head_norm.weight", c->hidden, 1);
}

static fr_status write_model(const fr_synth_order *order, fr_gguf_writer *writer, fr_synth *synth) {
    static const fr_synth_tokenizer tokenizer = {
        .model = "gpt2",
        .pre = "glm4",
        .special = {"<|endoftext|>", "<|user|>", "[gMASK]", "<sop>"},
        .byte_level = true,
        .turn_end = 1,
    };
    fr_glm_config config = *(const fr_glm_config *)order->shape->sizes;
    config.layers = order->layers;
    config.vocab = order->vocab;
    put_config(&config, writer);
    fr_synth_put_tokenizer(&tokenizer, order->vocab, writer);
    return fr_synth_tensors(synth, walk, &config);
}

const fr_synth_family fr_synth_glm = {.shapes = shapes, .write = write_model};
