/* Keys of any configuration: see config_keys.h. */
#include "src/families/config_keys.h"

#include <string.h>

#include "formats/error.h"

fr_status fr_config_only(const json_t *object, const char *key, const char *built, const char *where) {
    const char *word;
    FR_TRY(fr_json_text(object, key, where, &word));
    if (!word || strcmp(word, built) == 0) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: %s %s is not built (%s is)", where, key, word, built);
}

fr_status fr_config_without(const json_t *object, const char *key, const char *where) {
    bool has;
    FR_TRY(fr_json_bool(object, key, false, where, &has));
    return has ? fr_fail(FR_UNBUILT, "%s: %s is not built", where, key) : FR_OK;
}

fr_status fr_config_head(const json_t *object, const char *where, const fr_weights *weights) {
    bool tied;
    FR_TRY(fr_json_bool(object, "tie_word_embeddings", true, where, &tied));
    if (tied || fr_weights_has(weights, "", "lm_head.weight")) return FR_OK;
    return fr_fail(FR_INPUT, "%s: tensor lm_head.weight is missing, and tie_word_embeddings is false",
                   weights->files->path);
}

fr_status fr_config_vocabulary(const fr_checkpoint *files, size_t hidden, size_t *vocab) {
    const fr_tensor *table;
    FR_TRY(fr_checkpoint_tensor(files, "token_embd.weight", &table));
    *vocab = table->dims == 2 && table->shape[1] == hidden ? table->shape[0] : 0;
    if (*vocab >= 1 && *vocab <= 1 << 24) return FR_OK;
    return fr_fail(FR_INPUT, "%s: tensor token_embd.weight is no table of 1 to 2^24 ids by %zu values", files->path,
                   hidden);
}
