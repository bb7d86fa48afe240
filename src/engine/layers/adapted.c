/* Finds the matrices that adapters can change: see adapted.h. */
#include "src/engine/layers/adapted.h"

#include <stdlib.h>
#include <string.h>

/* Finds the matrices that the tensor `name` fills in the struct `base`, and writes them to *found. *found has no
 * matrices if adapters can't change what the tensor contains. */
static void find_parts(const fr_tensor_name *name, const fr_layer_spec *layer, void *base, fr_adapted_matrices *found) {
    void *field = (char *)base + name->field;
    *found = (fr_adapted_matrices){.name = name, .layer = layer, .experts = 1};
    switch (name->slot) {
    case FR_SLOT_MATRIX:
    case FR_SLOT_QKVZ: found->parts = 1; break;
    case FR_SLOT_PARTS: found->parts = 2; break;
    case FR_SLOT_THIRDS:
    case FR_SLOT_QKV: found->parts = 3; break;
    case FR_SLOT_EXPERTS:
    case FR_SLOT_EXPERTS_PARTS:
        found->parts = name->slot == FR_SLOT_EXPERTS ? 1 : 2;
        found->experts = layer->experts.count;
        for (size_t p = 0; p < found->parts; p++) found->part[p] = ((fr_matrix **)field)[p];
        break;
    default: break;
    }
    for (size_t p = 0; p < found->parts && name->slot != FR_SLOT_EXPERTS && name->slot != FR_SLOT_EXPERTS_PARTS; p++)
        found->part[p] = (fr_matrix *)field + p;
    for (size_t p = 0; p < found->parts; p++)
        if (!found->part[p] || !found->part[p]->features) found->parts = 0;
}

static void number(const fr_tensor_name *names, const fr_trunk_spec *spec, const fr_layer_spec *layer, void *base,
                   size_t *count) {
    for (const fr_tensor_name *name = names; name->published || name->gguf; name++) {
        fr_adapted_matrices found;
        if (!fr_tensor_name_needed(name, spec, layer)) continue;
        find_parts(name, layer, base, &found);
        for (size_t p = 0; p < found.parts; p++)
            for (size_t e = 0; e < found.experts; e++)
                if (!found.part[p][e].adapted) found.part[p][e].adapted = (uint32_t)++ * count;
    }
}

void fr_adapted_number(fr_trunk *trunk, const fr_tensor_naming *naming) {
    trunk->adaptable = 0;
    number(fr_naming_model(naming), &trunk->spec, NULL, trunk, &trunk->adaptable);
    for (size_t i = 0; i < trunk->spec.layers; i++)
        for (size_t t = 0; t < FR_LAYER_TABLES && naming->layer[t]; t++)
            number(naming->layer[t], &trunk->spec, &trunk->spec.layer[i], &trunk->layers[i], &trunk->adaptable);
}

/* Looks for a tensor's name in one table. The values of fr_adapted_found are ordered, and *result is raised to the
 * value for this table if that is greater. For FR_ADAPTED_FOUND, fills in *found. */
static void look_up(const fr_tensor_name *names, const fr_trunk_spec *spec, const fr_layer_spec *layer, void *base,
                    bool gguf, const char *tensor, fr_adapted_found *result, fr_adapted_matrices *found) {
    for (const fr_tensor_name *name = names; name->published || name->gguf; name++) {
        const char *spelling = gguf ? name->gguf : name->published;
        size_t expert = 0;
        fr_adapted_matrices here = {0};
        if (!spelling || *result == FR_ADAPTED_FOUND || !fr_tensor_name_spells(spelling, tensor, &expert)) continue;
        bool needed = fr_tensor_name_needed(name, spec, layer);
        fr_adapted_found is = FR_ADAPTED_OTHER;
        if (needed)
            find_parts(name, layer, base, &here);
        else if (name->needs & (FR_IF_KEYS | FR_IF_VALUES))
            is = FR_ADAPTED_UNUSED;
        here.of_expert = strchr(spelling, '*') != NULL;
        here.expert = expert;
        if (needed && here.parts && (!here.of_expert || expert < here.experts)) {
            is = FR_ADAPTED_FOUND;
            *found = here;
        }
        if (is > *result) *result = is;
    }
}

fr_adapted_found fr_adapted_find(const fr_trunk *trunk, const fr_tensor_naming *naming, bool gguf, const char *tensor,
                                 fr_adapted_matrices *found) {
    bool of_layer;
    size_t layer = 0;
    fr_adapted_found result = FR_ADAPTED_NOTHING;
    const char *name = fr_tensor_names_below(tensor, gguf, &of_layer, &layer);
    if (!of_layer) look_up(fr_naming_model(naming), &trunk->spec, NULL, (void *)trunk, gguf, name, &result, found);
    for (size_t t = 0; of_layer && layer < trunk->spec.layers && t < FR_LAYER_TABLES && naming->layer[t]; t++)
        look_up(naming->layer[t], &trunk->spec, &trunk->spec.layer[layer], &trunk->layers[layer], gguf, name, &result,
                found);
    return result;
}
