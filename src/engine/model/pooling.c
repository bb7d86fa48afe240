/* Reads a model's pooling from GGUF's key or from the file of sentence-transformers in its folder: see pooling.h. */
#include "src/engine/model/pooling.h"

#include <string.h>

#include "base/error.h"

/* The pooling modes of sentence-transformers; FR_POOLING_NONE: the mode is not supported. If several modes are true,
 * sentence-transformers joins their rows. That is not supported either. */
static const struct {
    const char *key;
    fr_pooling pooling;
} words[] = {{"pooling_mode_mean_tokens", FR_POOLING_MEAN},
             {"pooling_mode_cls_token", FR_POOLING_CLS},
             {"pooling_mode_lasttoken", FR_POOLING_LAST},
             {"pooling_mode_max_tokens", FR_POOLING_NONE},
             {"pooling_mode_mean_sqrt_len_tokens", FR_POOLING_NONE},
             {"pooling_mode_weightedmean_tokens", FR_POOLING_NONE}};

/* Reads the modes. If a mode is not supported, gives FR_POOLING_NONE. This is not an error, because the model may be
 * used only to generate text. */
static fr_status read_modes(const json_t *modes, fr_pooling *pooling) {
    size_t found = 0;
    fr_pooling last = FR_POOLING_NONE;
    const char *word = json_string_value(json_object_get(modes, "pooling_mode"));
    static const struct {
        const char *word;
        fr_pooling pooling;
    } newer[] = {{"mean", FR_POOLING_MEAN}, {"cls", FR_POOLING_CLS}, {"lasttoken", FR_POOLING_LAST}};
    *pooling = FR_POOLING_NONE;
    for (size_t i = 0; word && i < sizeof newer / sizeof *newer; i++)
        if (strcmp(word, newer[i].word) == 0) *pooling = newer[i].pooling;
    if (json_object_get(modes, "pooling_mode")) return FR_OK;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        bool is;
        FR_TRY(fr_json_bool(modes, words[i].key, false, FR_POOLING_FILE, &is));
        found += is;
        if (is) last = words[i].pooling;
    }
    *pooling = found == 1 ? last : FR_POOLING_NONE;
    return FR_OK;
}

fr_status fr_model_read_pooling(fr_model *model) {
    const fr_checkpoint *files = &model->files;
    int64_t number = FR_POOLING_NONE;
    if (files->gguf) FR_TRY(fr_gguf_int(files->gguf, ".pooling_type", 0, FR_POOLING_RANK, FR_POOLING_NONE, &number));
    model->pooling = (fr_pooling)number;
    return files->pooling ? read_modes(files->pooling, &model->pooling) : FR_OK;
}
