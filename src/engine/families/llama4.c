/* The text model of Llama 4 (Scout, Maverick), and MobileLLM-R1, which has no experts: config.json of
 * Llama4ForCausalLM, or of Llama4ForConditionalGeneration, whose pictures are not read; GGUF "llama4". Source:
 * transformers 5.24, model llama4; for GGUF github.com/ggml-org/llama.cpp, conversion/llama.py and
 * src/models/llama4.cpp. In layers with rotary positions, a row reads only its chunk of the text; a norm without
 * weights is applied to heads after their rotation. In all other layers, a row reads the whole text, and queries are
 * multiplied by a factor that grows with the position. The input of an expert is multiplied by the row's weight for the
 * expert. GGUF has no keys for these facts, because readers assume the published numbers. */
#include "base/error.h"
#include "src/engine/families/config_keys.h"
#include "src/engine/families/mixture.h"

/* The numbers that readers of GGUF assume. CHUNK: positions of a chunk. STILL_EVERY: the interval of layers without
 * rotary positions. UNNORMED: the number of experts of those models whose heads have no norm. QUERY_EVERY: the number
 * of positions after which the factor of queries grows, by QUERY_BETA. */
enum { CHUNK = 8192, STILL_EVERY = 4, UNNORMED = 128, QUERY_EVERY = 8192 };
#define QUERY_BETA 0.1

enum { EXPERTS_MAX = 4096, WIDTH_MAX = 1 << 22 };

static const fr_model_spec defaults = {.trunk = {.vocab = 202048,
                                                 .hidden = 5120,
                                                 .layers = 48,
                                                 .context_limit = 131072,
                                                 .eps = 1e-5F,
                                                 .rope = {{.theta = 500000}}},
                                       .layer = {.attention = {.heads = 40,
                                                               .kv_heads = 8,
                                                               .head_dim = 128,
                                                               .window = CHUNK,
                                                               .chunked = true,
                                                               .bare_qk_norm = true,
                                                               .norm_after_rope = true,
                                                               .query_beta = QUERY_BETA,
                                                               .query_every = QUERY_EVERY},
                                                 .ffn = {.width = 16384, .activation = FR_SILU},
                                                 .experts = {.count = 16,
                                                             .top_k = 1,
                                                             .width = 8192,
                                                             .activation = FR_SILU,
                                                             .scoring = FR_SCORING_SIGMOID,
                                                             .weighs_input = true,
                                                             .routed_scaling = 1}}};

/* ---------------------------------------------------------------------------------------------------------- reading */

/* Reads the sizes of the experts. In config.json, intermediate_size is the width of an expert, and another key has the
 * width of dense layers. */
static fr_status read_mixture(const fr_source *source, fr_model_spec *s) {
    const json_t *text = source->text;
    const char *where = source->where;
    fr_experts_spec *e = &s->layer.experts;
    if (source->gguf) {
        FR_TRY(fr_gguf_size(source->gguf, ".expert_count", 1, EXPERTS_MAX, FR_GGUF_REQUIRED, &e->count));
        FR_TRY(fr_gguf_size(source->gguf, ".expert_used_count", 1, EXPERTS_MAX, FR_GGUF_REQUIRED, &e->top_k));
        FR_TRY(fr_gguf_size(source->gguf, ".expert_feed_forward_length", 1, WIDTH_MAX, FR_GGUF_REQUIRED, &e->width));
    } else {
        FR_TRY(fr_json_size(text, "num_local_experts", 0, EXPERTS_MAX, (int64_t)e->count, where, &e->count));
        FR_TRY(fr_json_size(text, "num_experts_per_tok", 0, EXPERTS_MAX, (int64_t)e->top_k, where, &e->top_k));
        FR_TRY(fr_json_size(text, "intermediate_size", 1, WIDTH_MAX, (int64_t)e->width, where, &e->width));
        FR_TRY(fr_json_size(text, "intermediate_size_mlp", 1, WIDTH_MAX, (int64_t)defaults.layer.ffn.width, where,
                            &s->layer.ffn.width));
    }
    s->mixture.shared = e->width;
    /* A model without experts may still have the key, or its default. */
    if (e->count == 0) e->top_k = 0;
    if (e->count > 0 && e->top_k == 0)
        return fr_fail(FR_INPUT, "%s: num_experts_per_tok is 0, and there are %zu experts", where, e->count);
    return FR_OK;
}

/* Refuses a GGUF file whose keys give other kinds of layers than those of the published models. */
static fr_status check_gguf_kinds(const fr_gguf *gguf) {
    size_t window, every;
    FR_TRY(fr_gguf_size(gguf, ".attention.sliding_window", 0, INT64_MAX, CHUNK, &window));
    FR_TRY(fr_gguf_size(gguf, ".attention.sliding_window_pattern", 0, INT64_MAX, STILL_EVERY, &every));
    if (window != CHUNK)
        return fr_fail(FR_UNBUILT, "%s: key %s.attention.sliding_window: %zu is not built (%d is)", gguf->path,
                       gguf->architecture, window, CHUNK);
    if (every != STILL_EVERY)
        return fr_fail(FR_UNBUILT, "%s: key %s.attention.sliding_window_pattern: %zu is not built (%d is)", gguf->path,
                       gguf->architecture, every, STILL_EVERY);
    return FR_OK;
}

/* Reads the size of chunks and how queries grow. A size of null means that there are no chunks. Files of 2025 have a
 * number for attn_temperature_tuning, in which every number except 0 means true. */
static fr_status read_attention(const fr_source *source, fr_model_spec *s) {
    const json_t *text = source->text, *tuned = json_object_get(text, "attn_temperature_tuning");
    const char *where = source->where;
    fr_attention_spec *a = &s->layer.attention;
    bool grow = true;
    if (source->gguf) {
        a->bare_qk_norm = s->layer.experts.count != UNNORMED;
        return check_gguf_kinds(source->gguf);
    }
    if (json_is_null(json_object_get(text, "attention_chunk_size")))
        a->window = 0;
    else
        FR_TRY(fr_json_size(text, "attention_chunk_size", 1, 1 << 24, CHUNK, where, &a->window));
    if (json_is_integer(tuned))
        grow = json_integer_value(tuned) != 0;
    else
        FR_TRY(fr_json_bool(text, "attn_temperature_tuning", true, where, &grow));
    FR_TRY(fr_json_real(text, "attn_scale", 0, 1e6, QUERY_BETA, where, &a->query_beta));
    FR_TRY(fr_json_size(text, "floor_scale", 1, 1 << 24, QUERY_EVERY, where, &a->query_every));
    if (!grow) a->query_beta = 0;
    return FR_OK;
}

/* Finds the layers without a mixture. If there is a list moe_layers, they are the layers that are not in the list.
 * Otherwise every interleave_moe_layer_step-th layer has a mixture, and all others have none. */
static fr_status read_dense(const fr_source *source, const fr_model_spec *s, bool *is_dense) {
    const json_t *listed = json_object_get(source->text, "moe_layers"), *number;
    bool told = listed && !json_is_null(listed);
    size_t step = 1, i;
    if (source->gguf)
        FR_TRY(fr_gguf_size(source->gguf, ".interleave_moe_layer_step", 1, FR_LAYERS_MAX, FR_GGUF_REQUIRED, &step));
    else if (!told)
        FR_TRY(fr_json_size(source->text, "interleave_moe_layer_step", 1, FR_LAYERS_MAX, 1, source->where, &step));
    for (i = 0; i < FR_LAYERS_MAX; i++) is_dense[i] = told || (i + 1) % step != 0;
    if (told && !json_is_array(listed)) return fr_fail(FR_INPUT, "%s: moe_layers is no list", source->where);
    json_array_foreach (listed, i, number) {
        json_int_t layer = json_is_integer(number) ? json_integer_value(number) : -1;
        if (layer < 0 || layer >= FR_LAYERS_MAX)
            return fr_fail(FR_INPUT, "%s: moe_layers has something that is no layer's number", source->where);
        is_dense[layer] = false;
    }
    for (i = 0; i < s->trunk.layers; i++)
        if (!is_dense[i] && s->layer.experts.count == 0)
            return fr_fail(FR_INPUT, "%s: layer %zu has a mixture of experts, and num_local_experts is 0",
                           source->where, i);
    return FR_OK;
}

/* Finds the layers whose heads are rotated, and the layers in which rows read chunks. Published files have an empty
 * list no_rope_layers, which means the same as no list. */
static fr_status read_kinds(const fr_source *source, const fr_model_spec *s, bool *is_rotated, bool *is_chunked) {
    const json_t *list = json_object_get(source->text, "no_rope_layers");
    bool listed = json_array_size(list) > 0, found = false;
    size_t every = STILL_EVERY, layers = s->trunk.layers;
    if (list && !json_is_null(list) && !json_is_array(list))
        return fr_fail(FR_INPUT, "%s: no_rope_layers is no list", source->where);
    if (!source->gguf)
        FR_TRY(
            fr_json_size(source->text, "no_rope_layer_interval", 1, FR_LAYERS_MAX, STILL_EVERY, source->where, &every));
    for (size_t i = 0; i < layers; i++) {
        const json_t *flag = json_array_get(list, i);
        if (listed && !json_is_integer(flag) && !json_is_boolean(flag))
            return fr_fail(FR_INPUT, "%s: no_rope_layers has no number for layer %zu", source->where, i);
        is_rotated[i] = listed ? json_is_true(flag) || json_integer_value(flag) != 0 : (i + 1) % every != 0;
        is_chunked[i] = is_rotated[i] && s->layer.attention.window > 0;
    }
    if (source->gguf) return FR_OK;
    FR_TRY(fr_source_words(source, "layer_types", "chunked_attention", "full_attention", layers, is_chunked, &found));
    for (size_t i = 0; i < layers && found; i++)
        if (is_chunked[i] && s->layer.attention.window == 0)
            return fr_fail(FR_INPUT, "%s: layer %zu is chunked, and attention_chunk_size is null", source->where, i);
    return FR_OK;
}

static fr_status shape(const fr_source *source, fr_model_spec *s) {
    bool is_dense[FR_LAYERS_MAX], is_rotated[FR_LAYERS_MAX], is_chunked[FR_LAYERS_MAX];
    if (!source->gguf && source->text != source->root)
        FR_TRY(fr_config_only(source->text, "model_type", "llama4_text", source->where));
    FR_TRY(read_dense(source, s, is_dense));
    FR_TRY(read_kinds(source, s, is_rotated, is_chunked));
    FR_TRY(fr_mixture_layers(source, s, is_dense));
    for (size_t i = 0; i < s->trunk.layers; i++) {
        fr_attention_spec *a = &s->trunk.layer[i].attention;
        a->no_rope = !is_rotated[i];
        a->chunked = is_chunked[i];
        if (!is_chunked[i]) a->window = 0;
        if (is_rotated[i])
            a->query_beta = 0;
        else
            a->bare_qk_norm = false;
    }
    return FR_OK;
}

/* ---------------------------------------------------------------------------------------------------------- writing */

/* Returns true if the layer's attention is as readers of GGUF assume it. */
static bool is_assumed(const fr_attention_spec *a, size_t index, size_t experts) {
    bool still = (index + 1) % STILL_EVERY == 0;
    bool grows = a->query_beta == QUERY_BETA && a->query_every == QUERY_EVERY;
    if (a->no_rope != still || a->window != (still ? 0 : CHUNK)) return false;
    return still ? grows : a->bare_qk_norm == (experts != UNNORMED);
}

static fr_status put_own(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    const fr_experts_spec *e = fr_spec_experts(s);
    size_t first = 0;
    (void)mtp_layers;
    while (first < s->layers && s->layer[first].experts.count == 0) first++;
    if (first == s->layers) return fr_fail(FR_INPUT, "%s: GGUF has no key for a model without experts", where);
    for (size_t i = 0; i < s->layers; i++)
        if ((s->layer[i].experts.count > 0) != ((i + 1) % (first + 1) == 0))
            return fr_fail(FR_INPUT, "%s: GGUF has no key for mixtures that do not come at equal intervals", where);
    for (size_t i = 0; i < s->layers; i++)
        if (!is_assumed(&s->layer[i].attention, i, e->count))
            return fr_fail(
                FR_INPUT,
                "%s: GGUF has no key for rotary positions, chunks, norms of heads and the growth of queries, "
                "and layer %zu differs from what its readers assume",
                where, i);
    fr_mixture_put_counts(s, w);
    fr_gguf_put_u32(w, ".interleave_moe_layer_step", (uint32_t)(first + 1));
    fr_gguf_put_u32(w, ".expert_feed_forward_length", (uint32_t)e->width);
    return FR_OK;
}

static const fr_config_part mixture = {.read = read_mixture, .put = put_own}, attention = {.read = read_attention};
static const fr_config_row own[] = {FR_ONLY("hidden_act", "silu"),
                                    FR_FLAG(layer.attention.qkv_bias, "attention_bias", NULL),
                                    FR_FLAG(layer.attention.o_bias, "attention_bias", NULL),
                                    FR_FLAG(layer.attention.bare_qk_norm, "use_qk_norm", NULL),
                                    {0}};
static const fr_config_row last[] = {FR_PART(mixture), FR_PART(attention), {0}};

/* In published folders, the stacked matrices of experts are stored transposed. In quantized folders, each matrix of
 * each expert is a tensor of its own. */
#define OWN    "feed_forward."
#define SHARED OWN "shared_expert."
static const fr_tensor_name ffn_names[] = {
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, OWN "gate_proj.weight", "ffn_gate.weight", .needs = FR_IF_DENSE),
    FR_MATRIX(fr_layer, ffn.gate_up[1], FFN, HIDDEN, OWN "up_proj.weight", "ffn_up.weight", .needs = FR_IF_DENSE),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, OWN "down_proj.weight", "ffn_down.weight", .needs = FR_IF_DENSE),
    FR_MATRIX(fr_layer, experts.router, EXPERTS, HIDDEN, OWN "router.weight", "ffn_gate_inp.weight",
              .needs = FR_IF_EXPERTS),
    FR_NAMED(fr_layer, experts.gate, FR_SLOT_EXPERTS_PARTS, EXPERT_FFN, HIDDEN, OWN "experts.gate_up_proj", NULL,
             .needs = FR_IF_EXPERTS, .layout = FR_LAYOUT_HALVES),
    FR_EXPERTS(fr_layer, experts.gate, EXPERT_FFN, HIDDEN, OWN "experts.*.gate_proj.weight", "ffn_gate_exps.weight",
               .needs = FR_IF_EXPERTS),
    FR_EXPERTS(fr_layer, experts.up, EXPERT_FFN, HIDDEN, OWN "experts.*.up_proj.weight", "ffn_up_exps.weight",
               .needs = FR_IF_EXPERTS),
    FR_EXPERTS(fr_layer, experts.down, HIDDEN, EXPERT_FFN, OWN "experts.down_proj", "ffn_down_exps.weight",
               .needs = FR_IF_EXPERTS, .layout = FR_LAYOUT_HALVES),
    FR_EXPERTS(fr_layer, experts.down, HIDDEN, EXPERT_FFN, OWN "experts.*.down_proj.weight", "ffn_down_exps.weight",
               .needs = FR_IF_EXPERTS),
    FR_MATRIX(fr_layer, ffn.gate_up[0], FFN, HIDDEN, SHARED "gate_proj.weight", "ffn_gate_shexp.weight",
              .needs = FR_IF_SHARED),
    FR_MATRIX(fr_layer, ffn.gate_up[1], FFN, HIDDEN, SHARED "up_proj.weight", "ffn_up_shexp.weight",
              .needs = FR_IF_SHARED),
    FR_MATRIX(fr_layer, ffn.down, HIDDEN, FFN, SHARED "down_proj.weight", "ffn_down_shexp.weight",
              .needs = FR_IF_SHARED),
    {0},
};

const fr_family fr_family_llama4 = {
    .architectures = (const char *const[]){"Llama4ForCausalLM", "Llama4ForConditionalGeneration", "llama4", NULL},
    .gguf = "llama4",
    .tokenizer = "gpt2",
    .pre = "llama4",
    .counts_ids = true,
    .finds_biases = true,
    .defaults = &defaults,
    .rows = {own, fr_size_keys, fr_head_keys, last},
    .rope = fr_rope_whole_heads,
    .shape = shape,
    .put_rope_factors = fr_rope_llama3_factors,
    .names = &(const fr_tensor_naming){.layer = {fr_attention_names, fr_pre_norm_names, ffn_names},
                                       .extras =
                                           (const char *const[]){"*vision_model.*", "*multi_modal_projector.*", NULL}}};
