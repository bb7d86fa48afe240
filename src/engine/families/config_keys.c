/* Reads keys that configurations of many families have: see config_keys.h. */
#include "src/engine/families/config_keys.h"

#include <string.h>

#include "base/error.h"
#include "src/engine/families/rope_config.h"
#include "src/engine/layers/tensor_names.h"

fr_status fr_config_only(const json_t *object, const char *key, const char *built, const char *where) {
    const char *word;
    FR_TRY(fr_json_text(object, key, where, &word));
    if (!word || strcmp(word, built) == 0) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: %s %s is not built (%s is)", where, key, word, built);
}

fr_status fr_config_activation(const json_t *object, const char *key, const char *where, fr_activation *activation) {
    static const struct {
        const char *word;
        fr_activation activation;
    } built[] = {{"gelu", FR_GELU_ERF},
                 {"gelu_python", FR_GELU_ERF},
                 {"gelu_new", FR_GELU},
                 {"gelu_fast", FR_GELU},
                 {"gelu_pytorch_tanh", FR_GELU},
                 {"gelu_python_tanh", FR_GELU},
                 {"relu", FR_RELU},
                 {"relu2", FR_RELU2},
                 {"silu", FR_SILU},
                 {"swish", FR_SILU}};
    const char *word;
    FR_TRY(fr_json_text(object, key, where, &word));
    if (!word) return FR_OK;
    for (size_t i = 0; i < sizeof built / sizeof *built; i++)
        if (strcmp(word, built[i].word) == 0) {
            *activation = built[i].activation;
            return FR_OK;
        }
    return fr_fail(FR_UNBUILT, "%s: %s %.40s is not built (gelu, gelu_new, relu, relu2 and silu are)", where, key,
                   word);
}

fr_status fr_config_without(const json_t *object, const char *key, const char *where) {
    bool has;
    FR_TRY(fr_json_bool(object, key, false, where, &has));
    return has ? fr_fail(FR_UNBUILT, "%s: %s is not built", where, key) : FR_OK;
}

fr_status fr_config_head(const json_t *object, const char *where, const fr_weights *weights) {
    bool tied, outer;
    FR_TRY(fr_json_bool(object, "tie_word_embeddings", true, where, &tied));
    FR_TRY(fr_json_bool(weights->files->config, "tie_word_embeddings", false, where, &outer));
    if (tied || outer || fr_weights_has(weights, fr_names_top(weights), "lm_head.weight")) return FR_OK;
    if (fr_weights_has(weights, "", "embed_out.weight")) return FR_OK; /* GPT-NeoX's name of the head */
    /* Models for embeddings, such as Qwen3-Embedding-8B, are published without a head. They generate no text
     * (fr_model_check_head). */
    if (weights->files->pooling) return FR_OK;
    return fr_fail(FR_INPUT, "%s: tensor %slm_head.weight is missing, and tie_word_embeddings is false",
                   weights->files->path, fr_names_top(weights));
}

fr_status fr_config_sections(const json_t *text, const size_t *fallback, const char *where, size_t *sections) {
    const json_t *parameters;
    const char *key;
    FR_TRY(fr_rope_parameters(text, where, &parameters, &key));
    memcpy(sections, fallback, FR_AXES * sizeof *sections);
    const json_t *list = json_object_get(parameters, "mrope_section");
    if (!list || json_is_null(list)) return FR_OK;
    if (json_array_size(list) != FR_AXES)
        return fr_fail(FR_INPUT, "%s: mrope_section is not an array of %d numbers", where, FR_AXES);
    for (size_t axis = 0; axis < FR_AXES; axis++) {
        const json_t *number = json_array_get(list, axis);
        json_int_t value = json_integer_value(number);
        if (!json_is_integer(number) || value < 0 || value > 4096)
            return fr_fail(FR_INPUT, "%s: mrope_section holds something that is no number of angles", where);
        sections[axis] = (size_t)value;
    }
    return FR_OK;
}

fr_status fr_config_gguf_sections(const fr_gguf *gguf, size_t *sections) {
    static const char key[] = ".rope.dimension_sections";
    int64_t numbers[FR_AXES + 1];
    FR_TRY(fr_gguf_ints(gguf, key, 0, 4096, FR_GGUF_REQUIRED, FR_AXES + 1, numbers));
    for (int axis = 0; axis < FR_AXES; axis++) sections[axis] = (size_t)numbers[axis];
    if (numbers[FR_AXES] == 0) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: key %s%s: rotary positions along four axes are not built", gguf->path,
                   gguf->architecture, key);
}

void fr_config_put_sections(const fr_rope_spec *rope, fr_gguf_writer *w) {
    fr_gguf_put_array(w, ".rope.dimension_sections", FR_GGUF_I32, FR_AXES + 1);
    for (size_t axis = 0; axis < FR_AXES; axis++) fr_gguf_add_u32(w, (uint32_t)rope->sections[axis]);
    fr_gguf_add_u32(w, 0); /* llama.cpp has a fourth axis */
}

static fr_status check_mtp(const char *where, const char *architecture, const char *key, size_t mtp) {
    if (mtp <= 1) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: %s%s: %zu MTP layers are not built, 1 is", where, architecture, key, mtp);
}

fr_status fr_config_mtp(const json_t *text, const char *key, int64_t fallback, const char *where, size_t *mtp) {
    FR_TRY(fr_json_size(text, key, 0, 64, fallback, where, mtp));
    return check_mtp(where, "", key, *mtp);
}

fr_status fr_config_gguf_mtp(const fr_gguf *gguf, size_t *layers, size_t *mtp) {
    static const char key[] = ".nextn_predict_layers";
    FR_TRY(fr_gguf_size(gguf, key, 0, (int64_t)*layers - 1, 0, mtp));
    *layers -= *mtp;
    return check_mtp(gguf->path, gguf->architecture, key, *mtp);
}

fr_status fr_config_image_token(const json_t *root, const char *key, const char *older, int64_t fallback, size_t vocab,
                                const char *where, int32_t *token) {
    int64_t id, last = (int64_t)vocab - 1;
    if (json_is_null(json_object_get(root, key)) || !json_object_get(root, key)) key = older;
    FR_TRY(fr_json_int(root, key, 0, last, fallback <= last ? fallback : -1, where, &id));
    *token = (int32_t)id;
    return FR_OK;
}

fr_status fr_config_vocabulary(const fr_checkpoint *files, size_t hidden, size_t *vocab) {
    const fr_tensor *table;
    FR_TRY(fr_checkpoint_tensor(files, "token_embd.weight", &table));
    *vocab = table->dims == 2 && table->shape[1] == hidden ? table->shape[0] : 0;
    if (*vocab >= 1 && *vocab <= 1 << 24) return FR_OK;
    return fr_fail(FR_INPUT, "%s: tensor token_embd.weight is no table of 1 to 2^24 ids by %zu values", files->path,
                   hidden);
}
