/* Llama's configuration: the hub's JSON, or GGUF metadata, to checked numbers; a spec to GGUF metadata.
 *
 * In: config.json or a GGUF file as llama.cpp's converter writes it. Out: fr_uniform_config; the converter's keys. Keys
 * left out of the JSON take the defaults of transformers' Llama configuration. What would change the answer and is not
 * built (another activation, experts) is refused. */
#include "base/error.h"
#include "src/families/config_keys.h"
#include "src/families/llama.h"
#include "src/families/rope_config.h"

/* ------------------------------------------------------------------------------------------------------------- JSON */

fr_status fr_llama_rope_from_json(fr_uniform_config *c, const json_t *root, double usual_partial, const char *where) {
    double partial = usual_partial;
    FR_TRY(fr_rope_from_json(&c->rope, root, c->context_limit, where, &partial));
    c->rope.dims = (size_t)((double)c->head_dim * partial);
    c->rope.neox = true;
    return FR_OK;
}

static const char config_json[] = "config.json";

static fr_status layers_from_json(fr_uniform_config *c, const json_t *root) {
    static const fr_uniform_config usual = {.vocab = 32000,
                                            .hidden = 4096,
                                            .layers = 32,
                                            .heads = 32,
                                            .ffn = 11008,
                                            .context_limit = 2048,
                                            .eps = 1e-6F};
    FR_TRY(fr_uniform_from_json(c, root, &usual, config_json));
    FR_TRY(fr_json_bool(root, "attention_bias", false, config_json, &c->attention_biased));
    FR_TRY(fr_json_bool(root, "mlp_bias", false, config_json, &c->ffn_biased));
    return fr_llama_rope_from_json(c, root, 1.0, config_json);
}

/* ------------------------------------------------------------------------------------------------------------- GGUF */

/* rope_freqs.weight divides the frequencies: the converter writes llama3's scaling so. */
fr_status fr_llama_rope_from_gguf(fr_rope_spec *rope, fr_weights *weights) {
    if (fr_weights_has(weights, "", "rope_freqs.weight"))
        FR_TRY(fr_bind_vector(weights, "", "rope_freqs.weight", rope->dims / 2, &rope->divisors));
    return fr_rope_scaling_from_gguf(rope, weights->files->gguf);
}

static fr_status layers_from_gguf(fr_uniform_config *c, fr_weights *weights) {
    const fr_gguf *gguf = weights->files->gguf;
    int64_t experts;
    FR_TRY(fr_gguf_int(gguf, ".expert_count", 0, 4096, 0, &experts));
    if (experts) return fr_fail(FR_UNBUILT, "%s: a Llama of experts is not built", gguf->path);
    FR_TRY(fr_uniform_layers_from_gguf(c, gguf));
    c->attention_biased = fr_uniform_biased_in_gguf(weights);
    c->ffn_biased = fr_weights_has(weights, "", "blk.0.ffn_gate.bias");
    return fr_llama_rope_from_gguf(&c->rope, weights);
}

fr_status fr_llama_layer_config(fr_uniform_config *config, const json_t *text, fr_weights *weights) {
    const fr_gguf *gguf = weights->files->gguf;
    *config = (fr_uniform_config){0};
    FR_TRY(gguf ? layers_from_gguf(config, weights) : layers_from_json(config, text));
    config->rope.sections[0] = config->rope.dims / 2;
    return fr_uniform_check(config, gguf ? gguf->path : config_json);
}

fr_status fr_llama_config_read(fr_uniform_config *config, fr_weights *weights) {
    const fr_checkpoint *files = weights->files;
    if (!files->gguf) FR_TRY(fr_config_head(files->config, config_json, weights));
    FR_TRY(fr_llama_layer_config(config, files->config, weights));
    return files->gguf ? fr_config_vocabulary(files, config->hidden, &config->vocab) : FR_OK;
}

/* ---------------------------------------------------------------------------------------------------------- writing */

fr_status fr_llama_put_keys(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    fr_uniform_put_sizes(s, mtp_layers, w);
    fr_uniform_put_heads(s, w);
    if (s->rope[0].kind == FR_ROPE_LLAMA3) return FR_OK; /* a tensor has it */
    return fr_rope_put_scaling(&s->rope[0], where, w);
}

/* By how much llama3's scaling makes each frequency smaller. */
size_t fr_llama_put_rope_factors(const fr_trunk_spec *s, float *factors) {
    const fr_rope_spec *rope = &s->rope[0];
    size_t angles = rope->dims / 2;
    if (rope->kind != FR_ROPE_LLAMA3) return 0;
    fr_rope_frequencies(rope->kind, rope->theta, rope->dims, rope->partial, rope->factor, factors);
    for (size_t i = 0; i < angles; i++) {
        float scaled = factors[i];
        fr_rope_scale(&scaled, 1, rope->factor, rope->low_factor, rope->high_factor, rope->original_context);
        factors[i] /= scaled;
    }
    return angles;
}
