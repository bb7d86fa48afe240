/* GLM's configuration: the hub's JSON, or GGUF metadata, to checked numbers; a spec to GGUF metadata.
 *
 * In: config.json or a GGUF file as llama.cpp's converter writes it. Out: fr_glm_config; the converter's keys. Keys
 * left out of the JSON take the defaults of transformers' GLM-OCR configuration. What would change the answer and is
 * not built (biases, another activation, scaled rotary positions) is refused. */
#include <math.h>
#include <string.h>

#include "formats/error.h"
#include "src/families/glm.h"

/* ------------------------------------------------------------------------------------------------------------- both */

/* Whether the numbers go together. */
static fr_status check(const fr_glm_config *c, const char *where) {
    size_t angles = 0;
    for (int axis = 0; axis < FR_AXES; axis++) angles += c->sections[axis];
    if (c->heads % c->kv_heads)
        return fr_fail(FR_INPUT, "%s: %zu attention heads are no multiple of %zu key/value heads", where, c->heads,
                       c->kv_heads);
    if (c->rotary < 2 || c->rotary % 2 || c->rotary > c->head_dim)
        return fr_fail(FR_INPUT, "%s: %zu rotary values in heads of %zu, expected an even number", where,
                       c->rotary, c->head_dim);
    if (angles != c->rotary / 2)
        return fr_fail(FR_INPUT, "%s: the sections of the rotary positions have %zu angles, the heads %zu", where,
                       angles, c->rotary / 2);
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------------- JSON */

/* What this engine would compute wrongly if it went on. */
static fr_status refuse_unknown(const json_t *text, const json_t *rope, const char *where) {
    const char *activation, *type;
    bool bias;
    FR_TRY(fr_json_text(text, "hidden_act", where, &activation));
    if (activation && strcmp(activation, "silu") != 0)
        return fr_fail(FR_UNBUILT, "%s: hidden_act %s is not built (silu is)", where, activation);
    FR_TRY(fr_json_bool(text, "attention_bias", false, where, &bias));
    if (bias) return fr_fail(FR_UNBUILT, "%s: attention_bias is not built", where);
    FR_TRY(fr_json_text(rope, "rope_type", where, &type));
    if (type && strcmp(type, "default") != 0)
        return fr_fail(FR_UNBUILT, "%s: rope_type %s is not built (default is)", where, type);
    return FR_OK;
}

static fr_status read_sections(const json_t *rope, fr_glm_config *c, const char *where) {
    static const size_t usual[FR_AXES] = {8, 12, 12};
    memcpy(c->sections, usual, sizeof usual);
    const json_t *list = json_object_get(rope, "mrope_section");
    if (!list || json_is_null(list)) return FR_OK;
    if (json_array_size(list) != FR_AXES)
        return fr_fail(FR_INPUT, "%s: mrope_section is not an array of %d numbers", where, FR_AXES);
    for (size_t axis = 0; axis < FR_AXES; axis++) {
        const json_t *number = json_array_get(list, axis);
        json_int_t value = json_integer_value(number);
        if (!json_is_integer(number) || value < 0 || value > 4096)
            return fr_fail(FR_INPUT, "%s: mrope_section holds something that is no number of angles", where);
        c->sections[axis] = (size_t)value;
    }
    return FR_OK;
}

static fr_status read_rope(const json_t *text, fr_glm_config *c, const char *where) {
    json_t *rope;
    double partial;
    FR_TRY(fr_json_object(text, "rope_parameters", where, &rope));
    FR_TRY(refuse_unknown(text, rope, where));
    FR_TRY(fr_json_real(rope, "rope_theta", 1.0, 1e12, 10000.0, where, &c->theta));
    FR_TRY(fr_json_real(rope, "partial_rotary_factor", 0.0, 1.0, 1.0, where, &partial));
    c->rotary = (size_t)((double)c->head_dim * partial);
    return read_sections(rope, c, where);
}

static fr_status from_json(fr_glm_config *c, const json_t *root) {
    static const char where[] = "config.json";
    double eps;
    int64_t image;
    json_t *text;
    FR_TRY(fr_json_object(root, "text_config", where, &text));
    if (!text) return fr_fail(FR_INPUT, "%s: text_config is missing", where);
    FR_TRY(fr_json_size(text, "vocab_size", 1, 1 << 24, 59392, where, &c->vocab));
    FR_TRY(fr_json_size(text, "hidden_size", 1, 1 << 17, 1024, where, &c->hidden));
    FR_TRY(fr_json_size(text, "intermediate_size", 1, 1 << 22, 4096, where, &c->ffn));
    FR_TRY(fr_json_size(text, "num_hidden_layers", 1, 1024, 16, where, &c->layers));
    FR_TRY(fr_json_size(text, "num_nextn_predict_layers", 0, 64, 0, where, &c->mtp_layers));
    FR_TRY(fr_json_size(text, "num_attention_heads", 1, 4096, 16, where, &c->heads));
    FR_TRY(fr_json_size(text, "num_key_value_heads", 1, 4096, 8, where, &c->kv_heads));
    FR_TRY(fr_json_size(text, "head_dim", 2, 4096, (int64_t)(c->hidden / c->heads), where, &c->head_dim));
    FR_TRY(fr_json_size(text, "max_position_embeddings", 1, 1 << 24, 131072, where, &c->context_limit));
    FR_TRY(fr_json_real(text, "rms_norm_eps", 0.0, 1.0, 1e-5, where, &eps));
    FR_TRY(fr_json_int(root, "image_token_id", 0, (int64_t)c->vocab - 1, -1, where, &image));
    c->eps = (float)eps;
    c->image_token = (int32_t)image;
    return read_rope(text, c, where);
}

/* ------------------------------------------------------------------------------------------------------------- GGUF */

static fr_status read_gguf_rope(const fr_gguf *gguf, fr_glm_config *c) {
    int64_t sections[FR_AXES + 1];
    FR_TRY(fr_gguf_size(gguf, ".rope.dimension_count", 2, (int64_t)c->head_dim, (int64_t)c->head_dim, &c->rotary));
    FR_TRY(fr_gguf_real(gguf, ".rope.freq_base", 1.0, 1e12, 10000.0, &c->theta));
    c->halves = fr_gguf_find(gguf, "glm4.rope.dimension_sections") != NULL;
    c->sections[0] = c->rotary / 2;
    if (!c->halves) return FR_OK;
    FR_TRY(fr_gguf_ints(gguf, ".rope.dimension_sections", 0, 4096, FR_GGUF_REQUIRED, FR_AXES + 1, sections));
    for (int axis = 0; axis < FR_AXES; axis++) c->sections[axis] = (size_t)sections[axis];
    return sections[FR_AXES] == 0 ? FR_OK
                                  : fr_fail(FR_UNBUILT, "%s: rotary positions along four axes are not built",
                                            gguf->path);
}

/* block_count counts the MTP layers too. */
static fr_status read_gguf_layers(const fr_gguf *gguf, fr_glm_config *c) {
    FR_TRY(fr_gguf_size(gguf, ".block_count", 1, 1024, FR_GGUF_REQUIRED, &c->layers));
    FR_TRY(fr_gguf_size(gguf, ".nextn_predict_layers", 0, (int64_t)c->layers - 1, 0, &c->mtp_layers));
    c->layers -= c->mtp_layers;
    return FR_OK;
}

static fr_status read_gguf_heads(const fr_gguf *gguf, fr_glm_config *c) {
    size_t values;
    FR_TRY(fr_gguf_size(gguf, ".attention.head_count", 1, 4096, FR_GGUF_REQUIRED, &c->heads));
    FR_TRY(fr_gguf_size(gguf, ".attention.head_count_kv", 1, 4096, (int64_t)c->heads, &c->kv_heads));
    FR_TRY(fr_gguf_size(gguf, ".attention.key_length", 2, 4096, (int64_t)(c->hidden / c->heads), &c->head_dim));
    FR_TRY(fr_gguf_size(gguf, ".attention.value_length", 2, 4096, (int64_t)c->head_dim, &values));
    if (values == c->head_dim) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: keys of %zu and values of %zu are not built: both must be the same", gguf->path,
                   c->head_dim, values);
}

static fr_status from_gguf(fr_glm_config *c, const fr_checkpoint *files) {
    const fr_gguf *gguf = files->gguf;
    const fr_tensor *table;
    double eps;
    FR_TRY(fr_checkpoint_tensor(files, "token_embd.weight", &table));
    c->vocab = table->dims == 2 && table->shape[0] <= 1 << 24 ? table->shape[0] : 0;
    if (c->vocab == 0) return fr_fail(FR_INPUT, "%s: tensor token_embd.weight is no table of ids", gguf->path);
    FR_TRY(fr_gguf_size(gguf, ".embedding_length", 1, 1 << 17, FR_GGUF_REQUIRED, &c->hidden));
    FR_TRY(fr_gguf_size(gguf, ".feed_forward_length", 1, 1 << 22, FR_GGUF_REQUIRED, &c->ffn));
    FR_TRY(fr_gguf_size(gguf, ".context_length", 1, 1 << 24, FR_GGUF_REQUIRED, &c->context_limit));
    FR_TRY(fr_gguf_real(gguf, ".attention.layer_norm_rms_epsilon", 0.0, 1.0, NAN, &eps));
    c->eps = (float)eps;
    c->image_token = -1;
    FR_TRY(read_gguf_layers(gguf, c));
    FR_TRY(read_gguf_heads(gguf, c));
    return read_gguf_rope(gguf, c);
}

fr_status fr_glm_config_read(fr_glm_config *config, const fr_weights *weights) {
    const fr_checkpoint *files = weights->files;
    *config = (fr_glm_config){0};
    FR_TRY(files->gguf ? from_gguf(config, files) : from_json(config, files->config));
    return check(config, files->gguf ? files->gguf->path : "config.json");
}

/* ---------------------------------------------------------------------------------------------------------- writing */

/* The sections are what tells readers that the rows of a head were put apart, so they are always there. */
fr_status fr_glm_put_keys(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    const fr_attention_spec *attention = &s->layer[0].attention;
    const fr_rope_spec *rope = &s->rope[0];
    (void)where; /* there is a key for everything */
    fr_gguf_put_u32(w, ".block_count", (uint32_t)(s->layers + mtp_layers));
    fr_gguf_put_u32(w, ".context_length", (uint32_t)s->context_limit);
    fr_gguf_put_u32(w, ".embedding_length", (uint32_t)s->hidden);
    fr_gguf_put_u32(w, ".feed_forward_length", (uint32_t)s->layer[0].ffn.width);
    fr_gguf_put_u32(w, ".attention.head_count", (uint32_t)attention->heads);
    fr_gguf_put_u32(w, ".attention.head_count_kv", (uint32_t)attention->kv_heads);
    fr_gguf_put_array(w, ".rope.dimension_sections", FR_GGUF_I32, FR_AXES + 1);
    for (size_t axis = 0; axis < FR_AXES; axis++) fr_gguf_add_u32(w, (uint32_t)rope->sections[axis]);
    fr_gguf_add_u32(w, 0); /* llama.cpp's fourth axis */
    fr_gguf_put_f32(w, ".rope.freq_base", (float)rope->theta);
    fr_gguf_put_f32(w, ".attention.layer_norm_rms_epsilon", s->eps);
    fr_gguf_put_u32(w, ".attention.key_length", (uint32_t)attention->head_dim);
    fr_gguf_put_u32(w, ".attention.value_length", (uint32_t)attention->head_dim);
    fr_gguf_put_u32(w, ".rope.dimension_count", (uint32_t)rope->dims);
    if (mtp_layers) fr_gguf_put_u32(w, ".nextn_predict_layers", (uint32_t)mtp_layers);
    return FR_OK;
}
