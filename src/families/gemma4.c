/* The Gemma 4 family: what its layers are, and what its tensors are called. See gemma4.h.
 *
 * Names in GGUF: github.com/ggml-org/llama.cpp, gguf-py/gguf/tensor_mapping.py. */
#include "src/families/gemma4.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"
#include "src/model/model.h"

static const fr_tensor_name model_names[] = {
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "lm_head.weight", "output.weight", .top = true),
    FR_MATRIX(fr_trunk, head, VOCAB, HIDDEN, "embed_tokens.weight", "token_embd.weight"),
    FR_TABLE(fr_trunk, embedding, VOCAB, HIDDEN, "embed_tokens.weight", "token_embd.weight", .needs = FR_IF_EMBEDS),
    FR_VECTOR(fr_trunk, norm, HIDDEN, "norm.weight", "output_norm.weight"),
    FR_TABLE(fr_trunk, ple_table, VOCAB, TOKENS, "embed_tokens_per_layer.weight", "per_layer_token_embd.weight",
             .needs = FR_IF_PLE),
    FR_MATRIX(fr_trunk, ple_projection, TOKENS, HIDDEN, "per_layer_model_projection.weight",
              "per_layer_model_proj.weight", .needs = FR_IF_PLE),
    FR_VECTOR(fr_trunk, ple_norm, TOKEN, "per_layer_projection_norm.weight", "per_layer_proj_norm.weight",
              .needs = FR_IF_PLE),
    {0},
};

static const fr_tensor_name layer_names[] = {
    FR_VECTOR(fr_layer, input_norm, HIDDEN, "input_layernorm.weight", "attn_norm.weight"),
    FR_FUSED_QKV(QUERIES),
    FR_MATRIX(fr_layer, q, QUERIES, HIDDEN, "self_attn.q_proj.weight", "attn_q.weight"),
    FR_VECTOR(fr_layer, q_norm, HEAD, "self_attn.q_norm.weight", "attn_q_norm.weight"),
    FR_MATRIX(fr_layer, k, KEYS, HIDDEN, "self_attn.k_proj.weight", "attn_k.weight", .needs = FR_IF_KEYS),
    FR_VECTOR(fr_layer, k_norm, HEAD, "self_attn.k_norm.weight", "attn_k_norm.weight", .needs = FR_IF_KEYS),
    FR_MATRIX(fr_layer, v, KEYS, HIDDEN, "self_attn.v_proj.weight", "attn_v.weight", .needs = FR_IF_VALUES),
    FR_MATRIX(fr_layer, o, HIDDEN, QUERIES, "self_attn.o_proj.weight", "attn_output.weight"),
    FR_VECTOR(fr_layer, post_attn_norm, HIDDEN, "post_attention_layernorm.weight", "post_attention_norm.weight"),
    FR_VECTOR(fr_layer, pre_ffn_norm, HIDDEN, "pre_feedforward_layernorm.weight", "ffn_norm.weight"),
    FR_MATRIX(fr_layer, gate_up[0], FFN, HIDDEN, "mlp.gate_proj.weight", "ffn_gate.weight"),
    FR_MATRIX(fr_layer, gate_up[1], FFN, HIDDEN, "mlp.up_proj.weight", "ffn_up.weight"),
    FR_MATRIX(fr_layer, down, HIDDEN, FFN, "mlp.down_proj.weight", "ffn_down.weight"),
    FR_MATRIX(fr_layer, router, EXPERTS, HIDDEN, "router.proj.weight", "ffn_gate_inp.weight", .needs = FR_IF_EXPERTS),
    FR_VECTOR(fr_layer, router_scale, HIDDEN, "router.scale", "ffn_gate_inp.scale", .needs = FR_IF_EXPERTS),
    FR_VECTOR(fr_layer, pre_experts_norm, HIDDEN, "pre_feedforward_layernorm_2.weight", "pre_ffw_norm_2.weight",
              .needs = FR_IF_EXPERTS),
    FR_NAMED(fr_layer, expert_gate, FR_SLOT_EXPERTS_PARTS, EXPERT_FFN, HIDDEN, "experts.gate_up_proj",
             "ffn_gate_up_exps.weight", .needs = FR_IF_EXPERTS),
    FR_EXPERTS(fr_layer, expert_gate, EXPERT_FFN, HIDDEN, NULL, "ffn_gate_exps.weight", .needs = FR_IF_EXPERTS),
    FR_EXPERTS(fr_layer, expert_up, EXPERT_FFN, HIDDEN, NULL, "ffn_up_exps.weight", .needs = FR_IF_EXPERTS),
    FR_EXPERTS(fr_layer, expert_down, HIDDEN, EXPERT_FFN, "experts.down_proj", "ffn_down_exps.weight",
               .needs = FR_IF_EXPERTS),
    FR_VECTOR(fr_layer, expert_scale, EXPERTS, "router.per_expert_scale", "ffn_down_exps.scale",
              .needs = FR_IF_EXPERTS),
    FR_VECTOR(fr_layer, post_dense_norm, HIDDEN, "post_feedforward_layernorm_1.weight", "post_ffw_norm_1.weight",
              .needs = FR_IF_EXPERTS),
    FR_VECTOR(fr_layer, post_experts_norm, HIDDEN, "post_feedforward_layernorm_2.weight", "post_ffw_norm_2.weight",
              .needs = FR_IF_EXPERTS),
    FR_VECTOR(fr_layer, post_ffn_norm, HIDDEN, "post_feedforward_layernorm.weight", "post_ffw_norm.weight"),
    FR_VECTOR(fr_layer, scalar, ONE, "layer_scalar", "layer_output_scale.weight"),
    FR_MATRIX(fr_layer, ple_gate, TOKEN, HIDDEN, "per_layer_input_gate.weight", "inp_gate.weight", .needs = FR_IF_PLE),
    FR_MATRIX(fr_layer, ple_out, HIDDEN, TOKEN, "per_layer_projection.weight", "proj.weight", .needs = FR_IF_PLE),
    FR_VECTOR(fr_layer, post_token_norm, HIDDEN, "post_per_layer_input_norm.weight", "post_norm.weight",
              .needs = FR_IF_PLE),
    {0},
};

/* Towers of other senses; projections that borrowers of K/V have and don't use; an assistant's centroids where it is
 * told to score all ids; the angles of full layers where there are none. */
static const char *const extras[] = {
    "*vision*", "*audio*", "*.self_attn.[kv]_proj.weight", "*.self_attn.k_norm.weight", "blk.*.attn_[kv].weight",
    "blk.*.attn_k_norm.weight", "masked_embedding.centroids.weight", "masked_embedding.token_ordering",
    "masked_embd_centroids.weight", "masked_embd_ordering", "mtp[._]centroids.weight", "mtp[._]token_ordering.weight",
    "rope_freqs.weight", NULL};

const fr_tensor_naming fr_gemma4_names = {.model = model_names, .layer = {layer_names}, .extras = extras};

/* ------------------------------------------------------------------------------------------------------------- spec */

/* One kind's layers share a head_dim: there is one row of angles for each kind. */
static fr_status set_rope(const fr_gemma4_config *c, fr_layer_kind kind, const char *where, fr_rope_spec *rope) {
    const fr_gemma4_rope *from = &c->rope[kind];
    *rope = (fr_rope_spec){.kind = from->proportional ? FR_ROPE_PROPORTIONAL : FR_ROPE_DEFAULT,
                           .neox = true,
                           .theta = from->theta,
                           .partial = from->partial,
                           .factor = from->factor};
    for (size_t i = 0; i < c->layers; i++) {
        size_t head_dim = c->layer[i].head_dim;
        if (c->layer[i].kind != kind) continue;
        if (rope->dims && rope->dims != head_dim)
            return fr_fail(FR_UNBUILT, "%s: layers of one kind have head_dim %zu and %zu, which is not built", where,
                           rope->dims, head_dim);
        rope->dims = head_dim;
    }
    rope->sections[0] = rope->dims / 2;
    return FR_OK;
}

/* An assistant's row sees its target's K/V, and not its own: one position more within the same window. */
static fr_layer_spec layer_of(const fr_gemma4_config *c, const fr_gemma4_layer_config *layer) {
    return (fr_layer_spec){
        .attention = {.heads = c->heads,
                      .kv_heads = layer->kv_heads,
                      .head_dim = layer->head_dim,
                      .window = layer->kind == FR_SLIDING ? c->window + c->assistant : 0,
                      .rope = layer->kind,
                      .owns_kv = layer->owns_kv,
                      .k_eq_v = c->k_eq_v && layer->kind == FR_FULL,
                      .v_norm = true,
                      .scale = 1.0f},
        .ffn = {.width = layer->ffn, .activation = FR_GELU},
        .experts = {.count = c->experts,
                    .top_k = c->expert_top,
                    .width = c->expert_ffn,
                    .activation = FR_GELU,
                    .norm_top_k = true,
                    .routed_scaling = 1.0f,
                    .parallel = true},
    };
}

fr_status fr_gemma4_spec(const fr_gemma4_config *c, const char *where, fr_trunk_spec *spec) {
    *spec = (fr_trunk_spec){.vocab = c->vocab,
                            .hidden = c->hidden,
                            .layers = c->layers,
                            .context_limit = c->context_limit,
                            .ple_width = c->ple,
                            .embedding_scale = (float)sqrt((double)c->hidden),
                            .eps = c->eps,
                            .softcap = c->softcap,
                            .ropes = FR_LAYER_KINDS};
    for (fr_layer_kind kind = 0; kind < FR_LAYER_KINDS; kind++) FR_TRY(set_rope(c, kind, where, &spec->rope[kind]));
    spec->layer = calloc(c->layers, sizeof *spec->layer);
    if (!spec->layer) return fr_fail_memory("layers", c->layers * sizeof *spec->layer);
    for (size_t i = 0; i < c->layers; i++) spec->layer[i] = layer_of(c, &c->layer[i]);
    return FR_OK;
}

static fr_status gemma4_read(fr_model *model, fr_trunk_spec *spec) {
    fr_gemma4_config config;
    FR_TRY(fr_gemma4_config_read(&config, &model->weights, false));
    fr_status status = fr_gemma4_spec(&config, model->files.path, spec);
    fr_gemma4_config_free(&config);
    return status;
}

static const char *const architectures[] = {"Gemma4ForCausalLM",
                                             "Gemma4ForConditionalGeneration",
                                             "Gemma4UnifiedForCausalLM",
                                             "Gemma4UnifiedForConditionalGeneration",
                                             "gemma4",
                                             NULL};

const fr_family fr_family_gemma4 = {.architectures = architectures,
                                    .gguf = "gemma4",
                                    .tokenizer = "gemma4",
                                    .names = &fr_gemma4_names,
                                    .read = gemma4_read,
                                    .put_keys = fr_gemma4_put_keys,
                                    .put_rope_factors = fr_gemma4_put_rope_factors};
