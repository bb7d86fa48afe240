/* DeepSeek-V3's configuration: the hub's JSON, or GGUF metadata, to checked numbers; a spec to GGUF metadata.
 *
 * In: config.json or a GGUF file as llama.cpp's converter writes it. Out: fr_deepseek_config; the converter's keys.
 * Keys left out of the JSON take the defaults of transformers' configurations. What would change the answer and is not
 * built (biases, another activation or router) is refused. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "src/families/architecture.h"
#include "src/families/config_keys.h"
#include "src/families/deepseek.h"
#include "src/families/rope_config.h"

static const char config_json[] = "config.json";

/* Of both latents' norms, whatever rms_norm_eps is: the published modules have it so. */
static const float latent_eps = 1e-6f;

const fr_deepseek_config fr_deepseek_v3 = {.uniform = {.vocab = 129280,
                                                       .hidden = 7168,
                                                       .layers = 61,
                                                       .heads = 128,
                                                       .ffn = 18432,
                                                       .context_limit = 4096,
                                                       .eps = 1e-6F,
                                                       .rope = {.dims = 64}},
                                           .mla = {.q_lora = 1536, .nope = 128, .value_dim = 128},
                                           .latent = 512,
                                           .mixture = {.experts = {.count = 256,
                                                                   .top_k = 8,
                                                                   .width = 2048,
                                                                   .activation = FR_SILU,
                                                                   .scoring = FR_SCORING_SIGMOID,
                                                                   .score_bias = true,
                                                                   .groups = 8,
                                                                   .top_groups = 4,
                                                                   .norm_top_k = true,
                                                                   .routed_scaling = 2.5f},
                                                       .shared = 1,
                                                       .leading_dense = 3}};

const fr_deepseek_config fr_glm_flash = {.uniform = {.vocab = 154880,
                                                     .hidden = 2048,
                                                     .layers = 47,
                                                     .heads = 20,
                                                     .ffn = 10240,
                                                     .context_limit = 202752,
                                                     .eps = 1e-5F,
                                                     .rope = {.dims = 64}},
                                         .mla = {.q_lora = 768, .nope = 192, .value_dim = 256},
                                         .latent = 512,
                                         .mixture = {.experts = {.count = 64,
                                                                 .top_k = 4,
                                                                 .width = 1536,
                                                                 .activation = FR_SILU,
                                                                 .scoring = FR_SCORING_SIGMOID,
                                                                 .score_bias = true,
                                                                 .groups = 1,
                                                                 .top_groups = 1,
                                                                 .norm_top_k = true,
                                                                 .routed_scaling = 1.8f},
                                                     .shared = 1,
                                                     .leading_dense = 1}};

enum { MOST_WIDTH = 4096, MOST_LATENT = 1 << 16 };

/* ------------------------------------------------------------------------------------------------------------- JSON */

static fr_status read_rope(const json_t *root, fr_deepseek_config *c) {
    fr_rope_spec *rope = &c->uniform.rope;
    size_t dims = rope->dims;
    double partial = 1;
    bool pairs;
    FR_TRY(fr_json_bool(root, "rope_interleave", true, config_json, &pairs));
    FR_TRY(fr_rope_from_json(rope, root, c->uniform.context_limit, config_json, &partial));
    if (partial != 1)
        return fr_fail(FR_UNBUILT, "%s: partial_rotary_factor %g is not built (1 is)", config_json, partial);
    rope->dims = dims;
    rope->neox = !pairs;
    return FR_OK;
}

/* null: queries are made of the row. */
static fr_status read_q_lora(const json_t *root, size_t usual, size_t *q_lora) {
    const json_t *value = json_object_get(root, "q_lora_rank");
    *q_lora = 0;
    if (value && json_is_null(value)) return FR_OK;
    return fr_json_size(root, "q_lora_rank", 0, MOST_LATENT, (int64_t)usual, config_json, q_lora);
}

static fr_status read_latents(const json_t *root, fr_deepseek_config *c, const fr_deepseek_config *usual) {
    int64_t nope = (int64_t)usual->mla.nope, values = (int64_t)usual->mla.value_dim;
    FR_TRY(read_q_lora(root, usual->mla.q_lora, &c->mla.q_lora));
    FR_TRY(fr_json_size(root, "kv_lora_rank", 1, MOST_LATENT, (int64_t)usual->latent, config_json, &c->latent));
    FR_TRY(fr_json_size(root, "qk_nope_head_dim", 1, MOST_WIDTH, nope, config_json, &c->mla.nope));
    FR_TRY(fr_json_size(root, "v_head_dim", 1, MOST_WIDTH, values, config_json, &c->mla.value_dim));
    return fr_json_size(root, "qk_rope_head_dim", 2, MOST_WIDTH, (int64_t)usual->uniform.rope.dims, config_json,
                        &c->uniform.rope.dims);
}

/* Layer by layer, in newer files: "dense" or "sparse". */
static fr_status read_layer_types(const json_t *root, fr_deepseek_config *c) {
    const json_t *list = json_object_get(root, "mlp_layer_types");
    size_t leading = 0;
    if (!list || json_is_null(list)) return FR_OK;
    if (json_array_size(list) != c->uniform.layers)
        return fr_fail(FR_INPUT, "%s: mlp_layer_types is no list of %zu layers", config_json, c->uniform.layers);
    for (size_t i = 0; i < c->uniform.layers; i++) {
        const char *type = json_string_value(json_array_get(list, i));
        bool dense = type && strcmp(type, "dense") == 0, sparse = type && strcmp(type, "sparse") == 0;
        if (!dense && !sparse)
            return fr_fail(FR_INPUT, "%s: mlp_layer_types has something other than dense and sparse", config_json);
        c->mixture.dense[i] = dense && leading < i;
        leading += dense && leading == i;
    }
    c->mixture.leading_dense = leading;
    return FR_OK;
}

/* What routers may be called that is built. */
static fr_status check_router(const json_t *root) {
    int64_t every;
    FR_TRY(fr_config_only(root, "topk_method", "noaux_tc", config_json));
    FR_TRY(fr_json_int(root, "moe_layer_freq", 1, 1024, 1, config_json, &every));
    return every == 1 ? FR_OK : fr_fail(FR_UNBUILT, "%s: moe_layer_freq %lld is not built (1 is)", config_json,
                                        (long long)every);
}

static fr_status from_json(fr_deepseek_config *c, const fr_weights *weights) {
    const json_t *root = weights->files->config;
    bool glm = strcmp(fr_checkpoint_architecture(weights->files), "Glm4MoeLiteForCausalLM") == 0;
    const fr_deepseek_config *usual = glm ? &fr_glm_flash : &fr_deepseek_v3;
    FR_TRY(fr_config_head(root, config_json, weights));
    FR_TRY(fr_config_without(root, "attention_bias", config_json));
    FR_TRY(check_router(root));
    FR_TRY(fr_uniform_from_json(&c->uniform, root, &usual->uniform, config_json));
    c->uniform.rope = (fr_rope_spec){.kind = FR_ROPE_DEFAULT, .partial = 1.0, .factor = 1.0};
    FR_TRY(read_latents(root, c, usual));
    FR_TRY(fr_mixture_from_json(&c->mixture, root, &usual->mixture, config_json));
    FR_TRY(read_layer_types(root, c));
    FR_TRY(fr_config_mtp(root, "num_nextn_predict_layers", 1, config_json, &c->mtp_layers));
    return read_rope(root, c);
}

/* ------------------------------------------------------------------------------------------------------------- GGUF */

/* Its multiplier is a tenth of mscale_all_dim, which mscale then equals. */
static fr_status read_gguf_rope(fr_deepseek_config *c, const fr_gguf *gguf) {
    fr_rope_spec *rope = &c->uniform.rope;
    double weight;
    rope->neox = false;
    FR_TRY(fr_rope_scaling_from_gguf(rope, gguf));
    FR_TRY(fr_gguf_real(gguf, ".rope.scaling.yarn_log_multiplier", 0, 100, 0, &weight));
    if (rope->kind == FR_ROPE_LINEAR)
        return fr_fail(FR_UNBUILT, "%s: key %s.rope.scaling.type: \"linear\" is not built for DeepSeek", gguf->path,
                       gguf->architecture);
    if (rope->kind != FR_ROPE_YARN || weight == 0) return FR_OK;
    rope->attention_factor = 1.0f;
    rope->mscale_all_dim = 10 * weight;
    return FR_OK;
}

/* Files with kv_b whole have the heads' own lengths where others have what is cached. */
static fr_status read_gguf_latents(fr_deepseek_config *c, const fr_gguf *gguf) {
    size_t query, least = c->uniform.rope.dims + 1;
    int64_t keys, values;
    FR_TRY(fr_gguf_size(gguf, ".attention.q_lora_rank", 0, MOST_LATENT, 0, &c->mla.q_lora));
    FR_TRY(fr_gguf_size(gguf, ".attention.kv_lora_rank", 1, MOST_LATENT, FR_GGUF_REQUIRED, &c->latent));
    FR_TRY(fr_gguf_int(gguf, ".attention.key_length", 1, 2 * MOST_LATENT, FR_GGUF_REQUIRED, &keys));
    FR_TRY(fr_gguf_int(gguf, ".attention.value_length", 1, 2 * MOST_LATENT, FR_GGUF_REQUIRED, &values));
    FR_TRY(fr_gguf_size(gguf, ".attention.key_length_mla", (int64_t)least, 2 * MOST_WIDTH, keys, &query));
    FR_TRY(fr_gguf_size(gguf, ".attention.value_length_mla", 1, MOST_WIDTH, values, &c->mla.value_dim));
    if (query < least)
        return fr_fail(FR_INPUT, "%s: heads of %zu values have no room for %zu rotary ones and others", gguf->path,
                       query, c->uniform.rope.dims);
    c->mla.nope = query - c->uniform.rope.dims;
    return FR_OK;
}

static fr_status from_gguf(fr_deepseek_config *c, const fr_checkpoint *files) {
    const fr_gguf *gguf = files->gguf;
    fr_mixture_config usual = fr_deepseek_v3.mixture;
    fr_rope_spec *rope = &c->uniform.rope;
    *rope = (fr_rope_spec){.kind = FR_ROPE_DEFAULT, .partial = 1.0, .factor = 1.0};
    usual.experts.groups = usual.experts.top_groups = usual.shared = usual.leading_dense = 0;
    usual.experts.norm_top_k = false;
    usual.experts.routed_scaling = 1;
    FR_TRY(fr_uniform_sizes_from_gguf(&c->uniform, gguf));
    FR_TRY(fr_config_vocabulary(files, c->uniform.hidden, &c->uniform.vocab));
    FR_TRY(fr_gguf_size(gguf, ".attention.head_count", 1, 4096, FR_GGUF_REQUIRED, &c->uniform.heads));
    FR_TRY(fr_gguf_size(gguf, ".rope.dimension_count", 2, MOST_WIDTH, FR_GGUF_REQUIRED, &rope->dims));
    FR_TRY(fr_gguf_real(gguf, ".rope.freq_base", 1.001, 1e12, 10000.0, &rope->theta));
    FR_TRY(read_gguf_latents(c, gguf));
    FR_TRY(fr_mixture_from_gguf(&c->mixture, gguf, &usual));
    FR_TRY(fr_config_gguf_mtp(gguf, &c->uniform.layers, &c->mtp_layers));
    return read_gguf_rope(c, gguf);
}

/* ------------------------------------------------------------------------------------------------------------- spec */

/* What is cached: one key of latent and rotary part for all heads. */
static void take_one_head(fr_uniform_config *uniform, size_t latent) {
    uniform->kv_heads = 1;
    uniform->head_dim = latent + uniform->rope.dims;
    uniform->rope.sections[0] = uniform->rope.dims / 2;
}

fr_status fr_deepseek_config_read(fr_deepseek_config *c, fr_weights *weights) {
    const fr_checkpoint *files = weights->files;
    const char *where = files->gguf ? files->gguf->path : config_json;
    *c = (fr_deepseek_config){0};
    FR_TRY(files->gguf ? from_gguf(c, files) : from_json(c, weights));
    c->mla.eps = latent_eps;
    take_one_head(&c->uniform, c->latent);
    FR_TRY(fr_uniform_check(&c->uniform, where));
    return fr_mixture_check(&c->mixture, c->uniform.layers, where);
}

static void make_latent(const fr_deepseek_config *c, fr_layer_spec *layer) {
    const fr_rope_spec *rope = &c->uniform.rope;
    double query = (double)(c->mla.nope + rope->dims),
           sharper = fr_rope_yarn_magnitude(rope->factor, rope->mscale_all_dim);
    layer->mixer = FR_MIXER_MLA;
    layer->mla = c->mla;
    layer->attention.latent = c->latent;
    layer->attention.scale = (float)(sharper * sharper / sqrt(query));
}

fr_status fr_deepseek_spec(const fr_deepseek_config *c, fr_trunk_spec *spec) {
    fr_uniform_config uniform = c->uniform;
    take_one_head(&uniform, c->latent);
    FR_TRY(fr_mixture_spec(&uniform, &c->mixture, spec));
    for (size_t i = 0; i < spec->layers; i++) make_latent(c, &spec->layer[i]);
    make_latent(c, &spec->mtp);
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------------------- writing */

/* Its files say one number of scores and angles: mscale_all_dim, which mscale then is too. */
static fr_status put_rope(const fr_trunk_spec *s, const char *where, fr_gguf_writer *w) {
    fr_rope_spec rope = s->rope[0];
    if (rope.kind == FR_ROPE_DEFAULT) return FR_OK;
    if (rope.kind != FR_ROPE_YARN)
        return fr_fail(FR_INPUT, "%s: GGUF of DeepSeek has no key for rotary positions scaled other than by YaRN",
                       where);
    if (rope.attention_factor != 1.0f || rope.mscale_all_dim == 0)
        return fr_fail(FR_INPUT, "%s: GGUF has no key for YaRN whose mscale is not mscale_all_dim", where);
    rope.attention_factor = (float)fr_rope_yarn_magnitude(rope.factor, 1);
    FR_TRY(fr_rope_put_scaling(&rope, where, w));
    fr_gguf_put_f32(w, ".rope.scaling.yarn_log_multiplier", (float)(0.1 * rope.mscale_all_dim));
    return FR_OK;
}

fr_status fr_deepseek_put_keys(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    const fr_layer_spec *layer = &s->layer[0];
    size_t rotary = s->rope[0].dims;
    if (s->rope[0].neox) return fr_fail(FR_INPUT, "%s: GGUF has no key for rope_interleave false", where);
    fr_uniform_put_sizes(s, mtp_layers, w);
    FR_TRY(put_rope(s, where, w));
    fr_gguf_put_f32(w, ".rope.freq_base", (float)s->rope[0].theta);
    fr_gguf_put_f32(w, ".attention.layer_norm_rms_epsilon", s->eps);
    fr_gguf_put_u32(w, ".attention.key_length", (uint32_t)layer->attention.head_dim);
    fr_gguf_put_u32(w, ".attention.value_length", (uint32_t)layer->attention.latent);
    if (layer->mla.q_lora) fr_gguf_put_u32(w, ".attention.q_lora_rank", (uint32_t)layer->mla.q_lora);
    fr_gguf_put_u32(w, ".attention.kv_lora_rank", (uint32_t)layer->attention.latent);
    fr_gguf_put_u32(w, ".attention.key_length_mla", (uint32_t)(layer->mla.nope + rotary));
    fr_gguf_put_u32(w, ".attention.value_length_mla", (uint32_t)layer->mla.value_dim);
    fr_gguf_put_u32(w, ".rope.dimension_count", (uint32_t)rotary);
    FR_TRY(fr_mixture_put_keys(s, where, w));
    if (mtp_layers) fr_gguf_put_u32(w, ".nextn_predict_layers", (uint32_t)mtp_layers);
    return FR_OK;
}
