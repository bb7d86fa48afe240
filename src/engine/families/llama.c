/* Llama, and models with the same layers (such as SmolLM2): config.json of LlamaForCausalLM, InternLM3ForCausalLM and
 * IQuestCoderForCausalLM, and the text part of Idefics3ForConditionalGeneration and SmolVLMForConditionalGeneration;
 * GGUF "llama". Source: the published checkpoints and transformers 5.24, models llama, internlm3 and iquestcoder; for
 * GGUF github.com/ggml-org/llama.cpp, conversion/llama.py. In GGUF, the rows of queries and keys are in another order,
 * and llama3's scaling of rotary positions is a tensor. The layer of an EAGLE drafter is a Llama layer
 * (src/engine/draft/eagle.c). */
#include <string.h>

#include "base/error.h"
#include "src/engine/families/config_keys.h"
#include "src/engine/families/family.h"

static const fr_model_spec defaults = {
    .trunk =
        {.vocab = 32000, .hidden = 4096, .layers = 32, .context_limit = 2048, .eps = 1e-6F, .rope = {{.neox = true}}},
    .layer = {.attention = {.heads = 32}, .ffn = {.width = 11008, .activation = FR_SILU}}};

static const fr_model_spec internlm3 = {
    .trunk = {.vocab = 128512, .hidden = 4096, .layers = 48, .context_limit = 32768, .eps = 1e-5F},
    .layer = {.attention = {.heads = 32, .kv_heads = 2, .head_dim = 128}, .ffn = {.width = 10240}}};

static const fr_model_spec iquest_coder = {
    .trunk = {.vocab = 76800, .hidden = 5120, .layers = 80, .context_limit = 131072, .eps = 1e-5F},
    .layer = {.attention = {.heads = 40, .kv_heads = 8, .head_dim = 128}, .ffn = {.width = 27648}}};

/* Reads the additional keys of InternLM3 and IQuest-Coder, which config.json has if its model_type is one of theirs.
 * Both have defaults of their own. InternLM3 has two keys for biases. */
static fr_status read_kind(const fr_source *source, fr_model_spec *s) {
    const fr_model_spec *usual;
    const char *type, *where = source->where;
    fr_attention_spec *a = &s->layer.attention;
    if (source->gguf) return FR_OK;
    FR_TRY(fr_json_text(source->text, "model_type", where, &type));
    bool internlm = type && strcmp(type, "internlm3") == 0;
    if (!internlm && (!type || strcmp(type, "iquestcoder") != 0)) return FR_OK;
    usual = internlm ? &internlm3 : &iquest_coder;
    s->trunk.vocab = usual->trunk.vocab;
    s->trunk.hidden = usual->trunk.hidden;
    s->trunk.layers = usual->trunk.layers;
    s->trunk.context_limit = usual->trunk.context_limit;
    s->trunk.eps = usual->trunk.eps;
    a->heads = usual->layer.attention.heads;
    a->kv_heads = usual->layer.attention.kv_heads;
    a->head_dim = usual->layer.attention.head_dim;
    s->layer.ffn.width = usual->layer.ffn.width;
    if (!internlm && json_is_number(json_object_get(source->text, "clip_qkv")))
        return fr_fail(FR_UNBUILT, "%s: clip_qkv is not built", where);
    if (!internlm) return fr_config_without(source->text, "use_sliding_window", where);
    FR_TRY(fr_json_bool(source->text, "qkv_bias", false, where, &a->qkv_bias));
    FR_TRY(fr_json_bool(source->text, "bias", a->qkv_bias, where, &a->o_bias));
    return fr_json_bool(source->text, "bias", false, where, &s->layer.ffn.biased);
}

static const fr_config_part kind = {.read = read_kind};
static const fr_config_row own[] = {FR_PART(kind),
                                    FR_ONLY("hidden_act", "silu"),
                                    FR_NONE(".expert_count"),
                                    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
                                    FR_FLAG(layer.ffn.biased, "mlp_bias", NULL),
                                    {0}};

/* Makes the layers. Idefics 3 and SmolVLM have the text model in a part of config.json. This text model must be
 * Llama's. The image token is read too. */
static fr_status shape(const fr_source *source, fr_model_spec *s) {
    if (!source->gguf && source->text != source->root) {
        FR_TRY(fr_config_only(source->text, "model_type", "llama", source->where));
        FR_TRY(fr_config_image_token(source->root, "image_token_id", "image_token_id", 128257, s->trunk.vocab,
                                     source->where, &s->image_token));
    }
    return fr_layers_alike(source, s);
}

const fr_family fr_family_llama = {
    .architectures =
        (const char *const[]){"LlamaForCausalLM", "InternLM3ForCausalLM", "IQuestCoderForCausalLM",
                              "SmolVLMForConditionalGeneration", "Idefics3ForConditionalGeneration", "llama", NULL},
    .gguf = "llama",
    .tokenizer = "gpt2",
    .pre = "llama-bpe",
    .counts_ids = true,
    .finds_biases = true,
    .picture = "<image>",
    .sees = true,
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys},
    .rope = fr_rope_whole_heads,
    .shape = shape,
    .put_rope_factors = fr_rope_llama3_factors,
    .names = &(const fr_tensor_naming){
        .layer = {fr_attention_names, fr_pre_norm_names, fr_ffn_names},
        .rotary_rows = FR_ROWS_TO_PAIRS,
        /* rotary frequencies, which early checkpoints contain; vision towers */
        .extras = (const char *const[]){"*rotary_emb.inv_freq", "*vision_model.*", "*connector.*", NULL}}};
