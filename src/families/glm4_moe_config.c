/* GLM-4.5's configuration: the hub's JSON, or GGUF metadata, to checked numbers; a spec to GGUF metadata.
 *
 * In: config.json or a GGUF file as llama.cpp's converter writes it (conversion/glm.py). Out: fr_glm4_moe_config; the
 * converter's keys. Keys left out of the JSON take the defaults of transformers' configuration. */
#include "base/error.h"
#include "src/families/config_keys.h"
#include "src/families/glm4_moe.h"
#include "src/families/llama.h"
#include "src/families/rope_config.h"

static const char config_json[] = "config.json";

static const fr_mixture_config usual_mixture = {.experts = {.count = 128,
                                                            .top_k = 8,
                                                            .width = 1408,
                                                            .activation = FR_SILU,
                                                            .scoring = FR_SCORING_SIGMOID,
                                                            .score_bias = true,
                                                            .norm_top_k = true,
                                                            .routed_scaling = 1.0f},
                                                .shared = 1,
                                                .leading_dense = 1};

static fr_status from_json(fr_glm4_moe_config *c, const fr_weights *weights) {
    static const fr_uniform_config usual = {.vocab = 151552,
                                            .hidden = 4096,
                                            .layers = 46,
                                            .heads = 96,
                                            .kv_heads = 8,
                                            .ffn = 10944,
                                            .context_limit = 131072,
                                            .eps = 1e-5F};
    const json_t *root = weights->files->config;
    FR_TRY(fr_config_head(root, config_json, weights));
    FR_TRY(fr_uniform_from_json(&c->uniform, root, &usual, config_json));
    FR_TRY(fr_json_bool(root, "attention_bias", false, config_json, &c->uniform.attention_biased));
    FR_TRY(fr_json_bool(root, "use_qk_norm", false, config_json, &c->uniform.qk_norm));
    FR_TRY(fr_config_mtp(root, "num_nextn_predict_layers", 1, config_json, &c->mtp_layers));
    FR_TRY(fr_mixture_from_json(&c->mixture, root, &usual_mixture, config_json));
    return fr_llama_rope_from_json(&c->uniform, root, 0.5, config_json);
}

/* Biases and norms of heads have no keys. */
static fr_status from_gguf(fr_glm4_moe_config *c, fr_weights *weights) {
    const fr_gguf *gguf = weights->files->gguf;
    FR_TRY(fr_uniform_from_gguf(&c->uniform, weights->files));
    FR_TRY(fr_config_gguf_mtp(gguf, &c->uniform.layers, &c->mtp_layers));
    c->uniform.attention_biased = fr_uniform_biased_in_gguf(weights);
    c->uniform.qk_norm = fr_weights_has(weights, "", "blk.0.attn_q_norm.weight");
    c->uniform.rope.neox = true;
    FR_TRY(fr_mixture_from_gguf(&c->mixture, gguf, &usual_mixture));
    return fr_llama_rope_from_gguf(&c->uniform.rope, weights);
}

fr_status fr_glm4_moe_config_read(fr_glm4_moe_config *c, fr_weights *weights) {
    const fr_gguf *gguf = weights->files->gguf;
    const char *where = gguf ? gguf->path : config_json;
    *c = (fr_glm4_moe_config){0};
    FR_TRY(gguf ? from_gguf(c, weights) : from_json(c, weights));
    c->uniform.rope.sections[0] = c->uniform.rope.dims / 2;
    FR_TRY(fr_uniform_check(&c->uniform, where));
    return fr_mixture_check(&c->mixture, c->uniform.layers, where);
}

fr_status fr_glm4_moe_put_keys(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    fr_uniform_put_sizes(s, mtp_layers, w);
    fr_uniform_put_heads(s, w);
    FR_TRY(fr_mixture_put_keys(s, where, w));
    if (mtp_layers) fr_gguf_put_u32(w, ".nextn_predict_layers", (uint32_t)mtp_layers);
    return fr_rope_put_scaling(&s->rope[0], where, w);
}
