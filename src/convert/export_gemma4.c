/* A published Gemma 4 folder as GGUF: names of tensors, and metadata.
 *
 * In: a folder of Gemma4ForCausalLM, Gemma4ForConditionalGeneration (the text part) or Gemma4AssistantForCausalLM. Out:
 * what llama.cpp's converter makes of it, key by key and tensor by tensor. It has no keys for an assistant's centroid
 * head; such an assistant is written as AtomicChat's fork does ("gemma4_assistant"), which keeps it. The gemma4 and
 * gemma4-assistant names: github.com/ggml-org/llama.cpp, gguf-py/gguf/tensor_mapping.py; the fork's:
 * github.com/AtomicBot-ai/atomic-llama-cpp-turboquant. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/error.h"
#include "src/convert/quantize.h"
#include "src/families/model.h"

/* ------------------------------------------------------------------------------------------------------------ names */

typedef struct spelling {
    const char *published, *gguf;
} spelling;

/* Below model. or model.language_model. */
static const spelling model_names[] = {
    {"embed_tokens.weight", "token_embd.weight"},
    {"embed_tokens_per_layer.weight", "per_layer_token_embd.weight"},
    {"per_layer_model_projection.weight", "per_layer_model_proj.weight"},
    {"per_layer_projection_norm.weight", "per_layer_proj_norm.weight"},
    {"norm.weight", "output_norm.weight"},
};

/* Below layers.N. and blk.N. */
static const spelling layer_names[] = {
    {"input_layernorm.weight", "attn_norm.weight"},
    {"self_attn.q_proj.weight", "attn_q.weight"},
    {"self_attn.k_proj.weight", "attn_k.weight"},
    {"self_attn.v_proj.weight", "attn_v.weight"},
    {"self_attn.o_proj.weight", "attn_output.weight"},
    {"self_attn.q_norm.weight", "attn_q_norm.weight"},
    {"self_attn.k_norm.weight", "attn_k_norm.weight"},
    {"post_attention_layernorm.weight", "post_attention_norm.weight"},
    {"pre_feedforward_layernorm.weight", "ffn_norm.weight"},
    {"post_feedforward_layernorm.weight", "post_ffw_norm.weight"},
    {"mlp.gate_proj.weight", "ffn_gate.weight"},
    {"mlp.up_proj.weight", "ffn_up.weight"},
    {"mlp.down_proj.weight", "ffn_down.weight"},
    {"layer_scalar", "layer_output_scale.weight"},
    {"per_layer_input_gate.weight", "inp_gate.weight"},
    {"per_layer_projection.weight", "proj.weight"},
    {"post_per_layer_input_norm.weight", "post_norm.weight"},
    {"router.proj.weight", "ffn_gate_inp.weight"},
    {"router.scale", "ffn_gate_inp.scale"},
    {"router.per_expert_scale", "ffn_down_exps.scale"},
    {"experts.gate_up_proj", "ffn_gate_up_exps.weight"},
    {"experts.down_proj", "ffn_down_exps.weight"},
    {"post_feedforward_layernorm_1.weight", "post_ffw_norm_1.weight"},
    {"pre_feedforward_layernorm_2.weight", "pre_ffw_norm_2.weight"},
    {"post_feedforward_layernorm_2.weight", "post_ffw_norm_2.weight"},
};

/* Not below a model; an assistant's have two spellings. */
static const spelling head_names[] = {{"lm_head.weight", "output.weight"}};
static const spelling assistant_names[] = {
    {"pre_projection.weight", "nextn.pre_projection.weight"},
    {"post_projection.weight", "nextn.post_projection.weight"},
};
static const spelling centroid_names[] = {
    {"pre_projection.weight", "mtp.pre_projection.weight"},
    {"post_projection.weight", "mtp.post_projection.weight"},
    {"masked_embedding.centroids.weight", "mtp.centroids.weight"},
    {"masked_embedding.token_ordering", "mtp.token_ordering.weight"},
};

static const char *look_up(const spelling *names, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i].published, name) == 0) return names[i].gguf;
    return NULL;
}

#define LOOK_UP(names, name) look_up(names, sizeof(names) / sizeof *(names), name)

static const char *after(const char *name, const char *prefix) {
    size_t length = strlen(prefix);
    return strncmp(name, prefix, length) == 0 ? name + length : NULL;
}

/* The name in GGUF; false: it has none. */
static bool translate(const fr_export *export, const char *name, char *gguf, size_t size) {
    const char *below = after(name, "model.language_model."), *found;
    if (!below) below = after(name, "model.");
    unsigned layer;
    int length = 0;
    if (!export->assistant)
        found = LOOK_UP(head_names, name);
    else
        found = export->net.clusters ? LOOK_UP(centroid_names, name) : LOOK_UP(assistant_names, name);
    if (below && !found) found = LOOK_UP(model_names, below);
    if (found) {
        snprintf(gguf, size, "%s", found);
    } else if (below && sscanf(below, "layers.%5u.%n", &layer, &length) == 1 && length > 0) {
        found = LOOK_UP(layer_names, below + length);
        if (found) snprintf(gguf, size, "blk.%u.%s", layer, found);
    }
    return found != NULL;
}

/* What a text model leaves out: towers of other senses, and the centroid head's tensors where it is not used. */
static bool left_out(const char *name) {
    return strstr(name, "vision") || strstr(name, "audio") || strstr(name, "masked_embedding");
}

static fr_status list_tensors(const fr_export *export, fr_outputs *outputs) {
    const fr_tensors *tensors = &export->files->tensors;
    for (size_t i = 0; i < tensors->count; i++) {
        char name[64];
        const char *published = tensors->items[i].name;
        if (left_out(published) && !(export->net.clusters && after(published, "masked_embedding."))) continue;
        if (!translate(export, published, name, sizeof name))
            return fr_fail(FR_INPUT, "%s: tensor %s has no name in GGUF", export->files->path, published);
        FR_TRY(fr_outputs_add(outputs, name, &tensors->items[i]));
    }
    return FR_OK;
}

/* The full layers' rotary positions, as divisors of their frequencies: 1 for angles that turn, 1e30 for the others. */
static fr_status list_rope_factors(fr_export *export, fr_outputs *outputs) {
    const fr_gemma4_config *c = &export->config;
    const fr_gemma4_rope *rope = &c->rope[FR_FULL];
    size_t layer = 0;
    while (layer < c->layers && c->layer[layer].kind != FR_FULL) layer++;
    if (layer == c->layers) return FR_OK;
    size_t head_dim = c->layer[layer].head_dim, angles = head_dim / 2;
    size_t turning = rope->proportional ? (size_t)((double)head_dim * rope->partial / 2) : angles;
    export->rope_factors = calloc(angles, sizeof(float));
    if (!export->rope_factors) return fr_fail_memory("rotary factors", angles * sizeof(float));
    for (size_t i = 0; i < angles; i++) export->rope_factors[i] = i < turning ? 1.0F : 1e30F;
    FR_TRY(fr_outputs_add(outputs, "rope_freqs.weight", NULL));
    fr_output *output = &outputs->items[outputs->count - 1];
    output->values = export->rope_factors;
    output->dims = 1;
    output->shape[0] = angles;
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------------------- opening */

/* What GGUF has no keys for. */
static fr_status check_expressible(const fr_export *export) {
    const fr_gemma4_rope *sliding = &export->config.rope[FR_SLIDING],
                         *full = &export->config.rope[FR_FULL];
    if (sliding->proportional || sliding->partial < 1.0 || sliding->factor > 1.0 || sliding->factor < 1.0 ||
        full->factor > 1.0 || full->factor < 1.0)
        return fr_fail(FR_INPUT, "%s: its rotary positions have a factor or a part that GGUF has no key for",
                       export->files->path);
    return FR_OK;
}

/* The opening that running it would begin with. */
static fr_status open_net(fr_export *export) {
    const fr_checkpoint *files = export->files;
    const char *architecture = fr_checkpoint_architecture(files);
    const fr_family *family;
    fr_trunk_spec spec = {0};
    FR_TRY(fr_weights_open(&export->weights, files));
    export->assistant = fr_architecture_in(fr_draft_mtp.architectures, architecture);
    if (!export->assistant) FR_TRY(fr_family_find(files, &family));
    if (!export->assistant && family != &fr_family_gemma4)
        return fr_fail(FR_UNBUILT, "%s: writing architecture \"%s\" as GGUF is not built yet", files->path,
                       architecture);
    FR_TRY(fr_gemma4_config_read(&export->config, &export->weights, export->assistant));
    if (export->assistant) {
        FR_TRY(fr_assistant_open(&export->net, NULL, files, &export->weights));
        export->architecture = export->net.clusters ? "gemma4_assistant" : "gemma4-assistant";
        return check_expressible(export);
    }
    FR_TRY(fr_gemma4_spec(&export->config, files->path, &spec));
    fr_status status = fr_trunk_open(&export->net.trunk, &spec, &fr_gemma4_names, &export->weights, NULL);
    free(spec.layer);
    FR_TRY(status);
    export->architecture = "gemma4";
    return check_expressible(export);
}

fr_status fr_export_open(fr_export *export, const fr_checkpoint *files, fr_outputs *outputs) {
    *export = (fr_export){.files = files};
    FR_TRY(open_net(export));
    const fr_gemma4_config *c = &export->config;
    outputs->layers = c->layers;
    outputs->gqa = c->heads / c->layer[0].kv_heads;
    FR_TRY(list_rope_factors(export, outputs));
    return list_tensors(export, outputs);
}

void fr_export_close(fr_export *export) {
    fr_assistant_close(&export->net);
    fr_gemma4_config_free(&export->config);
    fr_weights_close(&export->weights);
    free(export->rope_factors);
    *export = (fr_export){0};
}

/* --------------------------------------------------------------------------------------------------------- metadata */

/* 1.9M: two digits at least. */
static void print_count(double count, char *text, size_t size) {
    static const char *const units[] = {"K", "M", "B", "T"};
    size_t unit = 0;
    for (count /= 1e3; count > 1e3 && unit < 3; count /= 1e3) unit++;
    snprintf(text, size, "%.*f%s", count < 9.5 ? 1 : 0, count, units[unit]);
}

/* Parameters; of a mixture "8x342K": its experts, times all that runs with one of them. */
static void put_size(const fr_export *export, const fr_outputs *outputs, fr_gguf_writer *writer) {
    size_t experts = export->config.experts;
    double total = 0;
    char count[32], label[64];
    for (size_t i = 0; i < outputs->count; i++) {
        double values = 1;
        bool of_experts = strstr(outputs->items[i].name, "_exps.");
        for (uint32_t d = 0; d < outputs->items[i].dims; d++) values *= (double)outputs->items[i].shape[d];
        total += of_experts ? values / (double)experts : values;
    }
    print_count(total, count, sizeof count);
    snprintf(label, sizeof label, "%zux%s", experts, count);
    fr_gguf_put_string(writer, "general.size_label", experts ? label : count);
}

static fr_status put_general(const fr_export *export, const fr_outputs *outputs, fr_gguf_writer *writer) {
    const json_t *generation = export->files->generation;
    const char *where = "generation_config.json";
    fr_gguf_put_string(writer, "general.type", "model");
    if (generation) {
        int64_t top_k;
        double top_p, temperature;
        FR_TRY(fr_json_int(generation, "top_k", 0, INT32_MAX, -1, where, &top_k));
        FR_TRY(fr_json_real(generation, "top_p", 0, 1, -1, where, &top_p));
        FR_TRY(fr_json_real(generation, "temperature", 0, 1e6, -1, where, &temperature));
        if (top_k >= 0) fr_gguf_put_i32(writer, "general.sampling.top_k", (int32_t)top_k);
        if (top_p >= 0) fr_gguf_put_f32(writer, "general.sampling.top_p", (float)top_p);
        if (temperature >= 0) fr_gguf_put_f32(writer, "general.sampling.temp", (float)temperature);
    }
    const char *path = export->files->path;
    size_t end = strlen(path), begin;
    while (end > 1 && path[end - 1] == '/') end--;
    for (begin = end; begin > 0 && path[begin - 1] != '/';) begin--;
    fr_gguf_put_text(writer, "general.name", (fr_text){path + begin, end - begin});
    put_size(export, outputs, writer);
    return FR_OK;
}

/* A number of each layer: one for all where they are the same. */
static void put_per_layer(fr_gguf_writer *writer, const char *key, const fr_gemma4_config *c, size_t offset) {
    const char *first = (const char *)c->layer + offset;
    bool same = true;
    for (size_t i = 0; i < c->layers; i++)
        same &= *(const size_t *)(first + i * sizeof *c->layer) == *(const size_t *)first;
    if (same) {
        fr_gguf_put_u32(writer, key, (uint32_t) * (const size_t *)first);
        return;
    }
    fr_gguf_put_array(writer, key, FR_GGUF_I32, c->layers);
    for (size_t i = 0; i < c->layers; i++)
        fr_gguf_add_u32(writer, (uint32_t) * (const size_t *)(first + i * sizeof *c->layer));
}

static void put_head_dim(fr_gguf_writer *writer, const fr_gemma4_config *c, fr_layer_kind kind,
                         const char *const keys[3]) {
    for (size_t i = 0; i < c->layers; i++) {
        if (c->layer[i].kind != kind) continue;
        for (size_t k = 0; k < 3; k++) fr_gguf_put_u32(writer, keys[k], (uint32_t)c->layer[i].head_dim);
        return;
    }
}

static void put_sizes(const fr_gemma4_config *c, fr_gguf_writer *writer) {
    size_t shared = 0;
    for (size_t i = 0; i < c->layers; i++) shared += !c->layer[i].owns_kv;
    fr_gguf_put_u32(writer, ".block_count", (uint32_t)c->layers);
    fr_gguf_put_u32(writer, ".context_length", (uint32_t)c->context_limit);
    fr_gguf_put_u32(writer, ".embedding_length", (uint32_t)c->hidden);
    put_per_layer(writer, ".feed_forward_length", c, offsetof(fr_gemma4_layer_config, ffn));
    fr_gguf_put_u32(writer, ".attention.head_count", (uint32_t)c->heads);
    put_per_layer(writer, ".attention.head_count_kv", c, offsetof(fr_gemma4_layer_config, kv_heads));
    fr_gguf_put_f32(writer, ".rope.freq_base", (float)c->rope[FR_FULL].theta);
    fr_gguf_put_f32(writer, ".rope.freq_base_swa", (float)c->rope[FR_SLIDING].theta);
    fr_gguf_put_f32(writer, ".attention.layer_norm_rms_epsilon", c->eps);
    if (c->softcap > 0) fr_gguf_put_f32(writer, ".final_logit_softcapping", c->softcap);
    fr_gguf_put_u32(writer, ".attention.sliding_window", (uint32_t)c->window);
    fr_gguf_put_u32(writer, ".attention.shared_kv_layers", (uint32_t)shared);
    fr_gguf_put_u32(writer, ".embedding_length_per_layer_input", (uint32_t)c->ple);
    fr_gguf_put_array(writer, ".attention.sliding_window_pattern", FR_GGUF_BOOL, c->layers);
    for (size_t i = 0; i < c->layers; i++) fr_gguf_add_bool(writer, c->layer[i].kind == FR_SLIDING);
    if (c->experts == 0) return;
    fr_gguf_put_u32(writer, ".expert_count", (uint32_t)c->experts);
    fr_gguf_put_u32(writer, ".expert_used_count", (uint32_t)c->expert_top);
    fr_gguf_put_u32(writer, ".expert_feed_forward_length", (uint32_t)c->expert_ffn);
}

/* The keys of llama.cpp for a plain head, and that no centroids were dropped; those of the fork for centroids. */
static void put_assistant(const fr_gemma4_config *c, size_t backbone, size_t clusters, size_t top,
                          fr_gguf_writer *writer) {
    if (clusters == 0) {
        fr_gguf_put_u32(writer, ".embedding_length_out", (uint32_t)backbone);
        fr_gguf_put_u32(writer, ".nextn_predict_layers", (uint32_t)c->layers);
        fr_gguf_put_bool(writer, ".use_ordered_embeddings", false);
        return;
    }
    fr_gguf_put_u32(writer, ".n_embd_backbone", (uint32_t)backbone);
    fr_gguf_put_u32(writer, ".n_centroids", (uint32_t)clusters);
    fr_gguf_put_u32(writer, ".centroid_top_k", (uint32_t)top);
    fr_gguf_put_bool(writer, ".use_ordered_embeddings", true);
    fr_gguf_put_bool(writer, ".attention.k_eq_v", c->k_eq_v);
    fr_gguf_put_string(writer, ".requires_target_arch", "gemma4");
}

void fr_export_config(const fr_gemma4_config *config, size_t backbone, size_t clusters, size_t top,
                      fr_gguf_writer *writer) {
    static const char *const full[] = {".attention.key_length", ".attention.value_length", ".rope.dimension_count"};
    static const char *const sliding[] = {".attention.key_length_swa", ".attention.value_length_swa",
                                          ".rope.dimension_count_swa"};
    put_sizes(config, writer);
    put_head_dim(writer, config, FR_FULL, full);
    put_head_dim(writer, config, FR_SLIDING, sliding);
    if (backbone) put_assistant(config, backbone, clusters, top, writer);
}

fr_status fr_export_metadata(const fr_export *export, const fr_outputs *outputs, fr_gguf_writer *writer) {
    const fr_assistant *net = &export->net;
    FR_TRY(put_general(export, outputs, writer));
    fr_export_config(&export->config, net->post.outs, net->clusters, net->top, writer);
    return fr_export_tokenizer(export->files, export->config.vocab, writer);
}
