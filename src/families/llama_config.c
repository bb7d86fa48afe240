/* Llama's configuration: the hub's JSON, or GGUF metadata, to checked numbers; a spec to GGUF metadata.
 *
 * In: config.json or a GGUF file as llama.cpp's converter writes it. Out: fr_uniform_config; the converter's keys. Keys
 * left out of the JSON take the defaults of transformers' Llama configuration. What would change the answer and is not
 * built (another activation, other scalings of rotary positions, experts) is refused. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "formats/error.h"
#include "src/families/config_keys.h"
#include "src/families/llama.h"

/* ------------------------------------------------------------------------------------------------------------- JSON */

static fr_status read_llama3(const json_t *scaling, fr_rope_spec *rope, const char *where) {
    FR_TRY(fr_json_real(scaling, "low_freq_factor", 1e-3, 1e6, NAN, where, &rope->low_factor));
    FR_TRY(fr_json_real(scaling, "high_freq_factor", 1e-3, 1e6, NAN, where, &rope->high_factor));
    FR_TRY(fr_json_real(scaling, "original_max_position_embeddings", 1, 1 << 24, NAN, where, &rope->trained));
    if (rope->low_factor < rope->high_factor) return FR_OK;
    return fr_fail(FR_INPUT, "%s: low_freq_factor %g is not below high_freq_factor %g", where, rope->low_factor,
                   rope->high_factor);
}

/* scaling: rope_scaling as older files have it, or rope_parameters. */
static fr_status read_scaling(const json_t *scaling, fr_rope_spec *rope, const char *where) {
    const char *type;
    FR_TRY(fr_json_text(scaling, json_object_get(scaling, "rope_type") ? "rope_type" : "type", where, &type));
    if (!type || strcmp(type, "default") == 0) return FR_OK;
    bool linear = strcmp(type, "linear") == 0;
    if (!linear && strcmp(type, "llama3") != 0)
        return fr_fail(FR_UNBUILT, "%s: rope_type %s is not built (default, linear and llama3 are)", where, type);
    rope->kind = linear ? FR_ROPE_LINEAR : FR_ROPE_LLAMA3;
    FR_TRY(fr_json_real(scaling, "factor", 1e-6, 1e6, NAN, where, &rope->factor));
    return linear ? FR_OK : read_llama3(scaling, rope, where);
}

fr_status fr_llama_rope_from_json(fr_uniform_config *c, const json_t *root, double usual_partial, const char *where) {
    json_t *scaling, *parameters;
    double theta, partial;
    FR_TRY(fr_json_object(root, "rope_scaling", where, &scaling));
    FR_TRY(fr_json_object(root, "rope_parameters", where, &parameters));
    const char *name = parameters ? "rope_parameters" : "rope_scaling";
    if (!parameters) parameters = scaling;
    FR_TRY(fr_json_real(root, "rope_theta", 1.0, 1e12, 10000.0, where, &theta));
    FR_TRY(fr_json_real(root, "partial_rotary_factor", 0.0, 1.0, usual_partial, where, &partial));
    if (parameters) FR_TRY(fr_json_real(parameters, "rope_theta", 1.0, 1e12, theta, where, &theta));
    if (parameters) FR_TRY(fr_json_real(parameters, "partial_rotary_factor", 0.0, 1.0, partial, where, &partial));
    c->rope = (fr_rope_spec){.kind = FR_ROPE_DEFAULT,
                             .dims = (size_t)((double)c->head_dim * partial),
                             .halves = true,
                             .theta = theta,
                             .partial = 1.0,
                             .factor = 1.0};
    char inside[128];
    snprintf(inside, sizeof inside, "%s: %s", where, name);
    return parameters ? read_scaling(parameters, &c->rope, inside) : FR_OK;
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
    const fr_gguf *gguf = weights->files->gguf;
    fr_text scaling;
    FR_TRY(fr_gguf_text(gguf, ".rope.scaling.type", &scaling));
    if (fr_weights_has(weights, "", "rope_freqs.weight"))
        FR_TRY(fr_bind_vector(weights, "", "rope_freqs.weight", rope->dims / 2, &rope->divisors));
    if (!scaling.bytes || (scaling.length == 4 && memcmp(scaling.bytes, "none", 4) == 0)) return FR_OK;
    if (scaling.length != 6 || memcmp(scaling.bytes, "linear", 6) != 0)
        return fr_fail(FR_UNBUILT, "%s: rotary positions scaled by \"%.*s\" are not built (none and linear are)",
                       gguf->path, (int)(scaling.length < 40 ? scaling.length : 40), scaling.bytes);
    rope->kind = FR_ROPE_LINEAR;
    return fr_gguf_real(gguf, ".rope.scaling.factor", 1e-6, 1e6, 1.0, &rope->factor);
}

static fr_status layers_from_gguf(fr_uniform_config *c, fr_weights *weights) {
    const fr_gguf *gguf = weights->files->gguf;
    int64_t experts;
    FR_TRY(fr_gguf_int(gguf, ".expert_count", 0, 4096, 0, &experts));
    if (experts) return fr_fail(FR_UNBUILT, "%s: a Llama of experts is not built", gguf->path);
    FR_TRY(fr_uniform_layers_from_gguf(c, gguf));
    c->attention_biased = fr_weights_has(weights, "", "blk.0.attn_q.bias");
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
    (void)where; /* there is a key for everything */
    fr_uniform_put_sizes(s, mtp_layers, w);
    fr_uniform_put_heads(s, w);
    return fr_llama_put_rope(s, w);
}

fr_status fr_llama_put_rope(const fr_trunk_spec *s, fr_gguf_writer *w) {
    const fr_rope_spec *rope = &s->rope[0];
    if (rope->kind != FR_ROPE_LINEAR) return FR_OK;
    fr_gguf_put_string(w, ".rope.scaling.type", "linear");
    fr_gguf_put_f32(w, ".rope.scaling.factor", (float)rope->factor);
    return FR_OK;
}

/* By how much llama3's scaling makes each frequency smaller. */
size_t fr_llama_put_rope_factors(const fr_trunk_spec *s, float *factors) {
    const fr_rope_spec *rope = &s->rope[0];
    size_t angles = rope->dims / 2;
    if (rope->kind != FR_ROPE_LLAMA3) return 0;
    fr_rope_frequencies(rope->kind, rope->theta, rope->dims, rope->partial, rope->factor, factors);
    for (size_t i = 0; i < angles; i++) {
        float scaled = factors[i];
        fr_rope_scale(&scaled, 1, rope->factor, rope->low_factor, rope->high_factor, rope->trained);
        factors[i] /= scaled;
    }
    return angles;
}
