/* Checks what a drafter's files say about its target: see drafter_target.h. */
#include "src/engine/draft/drafter_target.h"

#include <stdlib.h>

#include "base/error.h"
#include "formats/json.h"
#include "src/engine/families/architecture.h"

/* Reads the first word of "architectures". *word is NULL if there is none. */
static fr_status first_architecture(const json_t *object, const char *where, const char **word) {
    const json_t *list = json_object_get(object, "architectures"), *first = json_array_get(list, 0);
    *word = json_string_value(first);
    if (!list || json_is_null(list) || (json_is_array(list) && (!first || *word))) return FR_OK;
    return fr_fail(FR_INPUT, "%s: \"architectures\" is no array of words", where);
}

fr_status fr_drafter_read_architecture(const json_t *config, const char *where, const char **architecture) {
    json_t *speculators, *verifier;
    FR_TRY(fr_json_object(config, "speculators_config", where, &speculators));
    FR_TRY(fr_json_object(speculators, "verifier", where, &verifier));
    FR_TRY(first_architecture(config, where, architecture));
    return first_architecture(verifier, where, architecture);
}

fr_status fr_drafter_check_number(const fr_weights *weights, const char *what, size_t own, size_t targets) {
    if (own == targets) return FR_OK;
    return fr_fail(FR_INPUT, "%s: %s is %zu, the target's %zu: it drafts for another model", weights->files->path, what,
                   own, targets);
}

fr_status fr_drafter_check_target(const fr_drafter_target *wanted, const fr_weights *weights, const fr_model *target) {
    const fr_trunk_spec *spec = &target->trunk.spec;
    const char *path = weights->files->path;
    if (wanted->architecture && !fr_model_is_of(target, wanted->architecture))
        return fr_fail(FR_INPUT, "%s: by its verifier's architectures it drafts for %s, the target is %s", path,
                       wanted->architecture, fr_checkpoint_architecture(&target->files));
    FR_TRY(fr_drafter_check_number(weights, wanted->width_key, wanted->width, spec->hidden));
    FR_TRY(fr_drafter_check_number(weights, wanted->vocab_key, wanted->vocab, spec->vocab));
    for (size_t i = 0; i < wanted->aux_layers->count; i++)
        if (wanted->aux_layers->layer[i] > spec->layers)
            return fr_fail(FR_INPUT,
                           "%s: it reads the input of the target's layer %zu, which has %zu: it drafts for "
                           "another model",
                           path, wanted->aux_layers->layer[i], spec->layers);
    return FR_OK;
}

fr_status fr_drafter_bind_ids(fr_weights *weights, const char *prefix, const char *name, size_t count, size_t vocab,
                              const int32_t **ids) {
    size_t i = 0;
    FR_TRY(weights->files->gguf ? fr_bind_indices(weights, prefix, name, count, (int64_t)vocab, ids)
                                : fr_bind_offsets(weights, prefix, name, count, (int64_t)vocab, ids));
    uint8_t *seen = calloc(vocab, 1);
    if (!seen) return fr_fail_memory("draft vocabulary", vocab);
    while (i < count && !seen[(*ids)[i]]++) i++;
    free(seen);
    if (i == count) return FR_OK;
    return fr_fail(FR_INPUT, "%s: tensor %s has the target's id %d twice, again at index %zu", weights->files->path,
                   name, (*ids)[i], i);
}
