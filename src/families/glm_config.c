/* GLM's configuration: the hub's JSON, or GGUF metadata, to checked numbers; a spec to GGUF metadata.
 *
 * In: config.json or a GGUF file as llama.cpp's converter writes it. Out: fr_glm_config; the converter's keys. Keys
 * left out of the JSON take the defaults of transformers' GLM-OCR configuration. What would change the answer and is
 * not built (biases, another activation) is refused. */
#include <string.h>

#include "base/error.h"
#include "src/families/config_keys.h"
#include "src/families/glm.h"
#include "src/families/rope_config.h"

/* Whether the numbers go together. */
static fr_status check(const fr_uniform_config *c, const char *where) {
    size_t angles = 0;
    FR_TRY(fr_uniform_check(c, where));
    for (int axis = 0; axis < FR_AXES; axis++) angles += c->rope.sections[axis];
    if (angles == c->rope.dims / 2) return FR_OK;
    return fr_fail(FR_INPUT, "%s: the sections of the rotary positions have %zu angles, the heads %zu", where, angles,
                   c->rope.dims / 2);
}

/* ------------------------------------------------------------------------------------------------------------- JSON */

static fr_status read_rope(const json_t *text, fr_uniform_config *c, const char *where) {
    static const size_t usual[FR_AXES] = {8, 12, 12};
    double partial = 1.0;
    FR_TRY(fr_rope_from_json(&c->rope, text, c->context_limit, where, &partial));
    c->rope.dims = (size_t)((double)c->head_dim * partial);
    return fr_config_sections(text, usual, where, c->rope.sections);
}

static fr_status from_json(fr_glm_config *c, const fr_weights *weights) {
    static const char where[] = "config.json";
    static const fr_uniform_config usual = {.vocab = 59392,
                                            .hidden = 1024,
                                            .layers = 16,
                                            .heads = 16,
                                            .kv_heads = 8,
                                            .ffn = 4096,
                                            .context_limit = 131072,
                                            .eps = 1e-5F};
    const json_t *root = weights->files->config;
    int64_t image;
    json_t *text;
    FR_TRY(fr_json_object(root, "text_config", where, &text));
    if (!text) return fr_fail(FR_INPUT, "%s: text_config is missing", where);
    FR_TRY(fr_config_head(text, where, weights));
    FR_TRY(fr_config_without(text, "attention_bias", where));
    FR_TRY(fr_uniform_from_json(&c->uniform, text, &usual, where));
    FR_TRY(fr_config_mtp(text, "num_nextn_predict_layers", 0, where, &c->mtp_layers));
    FR_TRY(fr_json_int(root, "image_token_id", 0, (int64_t)c->uniform.vocab - 1, -1, where, &image));
    c->image_token = (int32_t)image;
    return read_rope(text, &c->uniform, where);
}

/* ------------------------------------------------------------------------------------------------------------- GGUF */

/* Files with sections have rows in llama.cpp's order of halves. */
bool fr_glm_gguf_halves(const fr_gguf *gguf) {
    return fr_gguf_find(gguf, ".rope.dimension_sections") != NULL;
}

static fr_status read_gguf_sections(const fr_gguf *gguf, fr_rope_spec *rope) {
    rope->neox = fr_glm_gguf_halves(gguf);
    rope->sections[0] = rope->dims / 2;
    return rope->neox ? fr_config_gguf_sections(gguf, rope->sections) : FR_OK;
}

static fr_status from_gguf(fr_glm_config *c, const fr_checkpoint *files) {
    const fr_gguf *gguf = files->gguf;
    c->image_token = -1;
    FR_TRY(fr_uniform_from_gguf(&c->uniform, files));
    FR_TRY(fr_config_gguf_mtp(gguf, &c->uniform.layers, &c->mtp_layers));
    FR_TRY(fr_rope_scaling_from_gguf(&c->uniform.rope, gguf));
    return read_gguf_sections(gguf, &c->uniform.rope);
}

fr_status fr_glm_config_read(fr_glm_config *config, const fr_weights *weights) {
    const fr_checkpoint *files = weights->files;
    *config = (fr_glm_config){0};
    FR_TRY(files->gguf ? from_gguf(config, files) : from_json(config, weights));
    return check(&config->uniform, files->gguf ? files->gguf->path : "config.json");
}

/* ---------------------------------------------------------------------------------------------------------- writing */

/* The sections are what tells readers that the rows of a head were put apart, so they are always there. */
fr_status fr_glm_put_keys(const fr_trunk_spec *s, size_t mtp_layers, const char *where, fr_gguf_writer *w) {
    fr_uniform_put_sizes(s, mtp_layers, w);
    fr_config_put_sections(&s->rope[0], w);
    fr_uniform_put_heads(s, w);
    if (mtp_layers) fr_gguf_put_u32(w, ".nextn_predict_layers", (uint32_t)mtp_layers);
    return fr_rope_put_scaling(&s->rope[0], where, w);
}
