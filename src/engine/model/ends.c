/* Reads ids that end a sequence, and ids that are never drawn: see ends.h. */
#include "src/engine/model/ends.h"

#include "base/error.h"
#include "formats/tokenizer_gguf.h"
#include "src/language/tokenizer/tokenizer.h"

/* Reads the ids that end a sequence. GGUF has a key for them. A folder may give such ids in three places, and all of
 * them count: generation_config.json, config.json at its top, and text_config in config.json. */
static fr_status read_eos(fr_model *model) {
    size_t vocab = model->trunk.spec.vocab;
    if (model->files.gguf)
        return fr_tokenizer_gguf_ends(model->files.gguf, model->pre, vocab, &model->weights.notes, model->eos,
                                      FR_EOS_MAX, &model->eos_count);
    const json_t *text = json_object_get(model->files.config, "text_config");
    const json_t *sources[] = {model->files.generation, model->files.config, json_is_object(text) ? text : NULL};
    static const char *const names[] = {"generation_config.json", "config.json", "config.json"};
    for (size_t i = 0; i < 3; i++)
        if (sources[i])
            FR_TRY(fr_json_ids(sources[i], "eos_token_id", (int64_t)vocab - 1, names[i], &model->weights.notes,
                               model->eos, FR_EOS_MAX, &model->eos_count));
    return FR_OK;
}

/* Uses the tokenizer's end token if no configuration names one, as vLLM and llama.cpp's converter do. */
static void add_tokenizer_eos(fr_model *model) {
    int32_t id = model->tokenizer && model->eos_count == 0 ? fr_tokenizer_end(model->tokenizer) : -1;
    if (id >= 0 && (size_t)id < model->trunk.spec.vocab) model->eos[model->eos_count++] = id;
}

/* Reads ids that are never drawn. Ids past the vocabulary are ignored, because a model whose vocabulary was cut may
 * still have the list of the full vocabulary. transformers does the same. */
static fr_status read_suppressed(fr_model *model) {
    size_t vocab = model->trunk.spec.vocab, *count = &model->suppressed_count;
    if (model->files.gguf)
        return fr_tokenizer_gguf_suppressed(model->files.gguf, vocab, model->suppressed, FR_SUPPRESSED_MAX, count);
    if (!model->files.generation) return FR_OK;
    return fr_json_id_list(model->files.generation, "suppress_tokens", (int64_t)vocab - 1, "generation_config.json",
                           model->suppressed, FR_SUPPRESSED_MAX, count);
}

fr_status fr_model_read_ends(fr_model *model) {
    FR_TRY(read_eos(model));
    add_tokenizer_eos(model);
    return read_suppressed(model);
}

bool fr_model_is_eos(const fr_model *model, int32_t id) {
    for (size_t i = 0; i < model->eos_count; i++)
        if (model->eos[i] == id) return true;
    return false;
}
