/* Lists the tensors of a shape by its family's name tables (synth.h).
 *
 * In: a spec, and the optional tensors that the model has. Out: names and shapes, in the tables' order. If several rows
 * of a table are names for the same tensor of the model, only the row that binding would use is listed. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "src/convert/synth.h"

typedef struct walk {
    const fr_synth_shape *shape;
    fr_synth_model *model;
    const fr_layer_spec *layer; /* the layer whose tensors are listed; NULL: the tensors outside of layers are listed */
    size_t index;
} walk;

static bool shape_has(const fr_synth_shape *shape, const char *name) {
    for (const char *const *has = shape->has; has && *has; has++)
        if (strcmp(*has, name) == 0) return true;
    return false;
}

/* Returns true if an earlier row of the table names every tensor of the model that this row would name. */
static bool covers(const fr_tensor_name *earlier, const fr_tensor_name *name) {
    bool next = fr_tensor_name_fills_two(earlier) && earlier->field + sizeof(fr_matrix *) == name->field;
    bool fused = earlier->slot == FR_SLOT_QKV || earlier->slot == FR_SLOT_QKV_VECTOR;
    size_t each = earlier->slot == FR_SLOT_QKV ? sizeof(fr_matrix) : sizeof(float *);
    if (fused && name->field > earlier->field && name->field <= earlier->field + 2 * each) return true;
    return earlier->field == name->field || next || strcmp(earlier->gguf, name->gguf) == 0;
}

static bool is_made(const walk *w, const fr_tensor_name *names, const fr_tensor_name *name) {
    if (!name->gguf || !fr_tensor_name_needed(name, &w->model->spec, w->layer)) return false;
    for (const fr_tensor_name *earlier = names; earlier < name; earlier++)
        if (earlier->gguf && covers(earlier, name) && is_made(w, names, earlier)) return false;
    bool may_lack = name->needs & FR_IF_THERE || fr_tensor_name_has_another(name, true, &w->model->spec, w->layer);
    return !may_lack || shape_has(w->shape, name->gguf);
}

static void set_shape(const walk *w, const fr_tensor_name *name, fr_output *output) {
    uint64_t *shape = output->shape;
    bool vectors = name->slot == FR_SLOT_EXPERTS_VECTORS;
    bool stack = name->slot == FR_SLOT_EXPERTS || name->slot == FR_SLOT_EXPERTS_PARTS || vectors;
    bool two = name->slot == FR_SLOT_PARTS || name->slot == FR_SLOT_EXPERTS_PARTS;
    size_t parts = name->slot == FR_SLOT_THIRDS ? 3 : two ? 2 : 1;
    output->dims = 0;
    if (stack) shape[output->dims++] = w->layer->experts.count;
    if (name->slot == FR_SLOT_HEADS) shape[output->dims++] = w->layer->attention.heads;
    shape[output->dims] = parts * fr_dim_size(name->rows, &w->model->spec, w->layer);
    if (name->slot == FR_SLOT_QKV) shape[output->dims] += 2 * fr_dim_size(FR_DIM_KEYS, &w->model->spec, w->layer);
    output->dims++;
    if (name->slot == FR_SLOT_IN_ROWS) fr_tensor_name_in_rows(name, w->layer, shape, &output->dims);
    if (name->slot == FR_SLOT_VECTOR || name->slot == FR_SLOT_IN_ROWS || vectors) return;
    if (name->slot == FR_SLOT_CONV_WHOLE) shape[output->dims++] = 1;
    shape[output->dims++] = fr_dim_size(name->cols, &w->model->spec, w->layer);
}

/* Returns true if another table has listed the tensor already. Two tables can list a tensor because published files
 * have several names for it. */
static bool is_listed(const fr_outputs *outputs, const char *name) {
    for (size_t i = 0; i < outputs->count; i++)
        if (strcmp(outputs->items[i].name, name) == 0) return true;
    return false;
}

static fr_status list_table(const walk *w, const fr_tensor_name *names) {
    char whole[64];
    for (const fr_tensor_name *name = names; name->published || name->gguf; name++) {
        if (!is_made(w, names, name)) continue;
        if (w->layer)
            snprintf(whole, sizeof whole, "blk.%zu.%s", w->index, name->gguf);
        else
            snprintf(whole, sizeof whole, "%s", name->gguf);
        if (is_listed(&w->model->outputs, whole)) continue;
        FR_TRY(fr_outputs_add(&w->model->outputs, whole, NULL));
        set_shape(w, name, fr_outputs_last(&w->model->outputs));
    }
    return FR_OK;
}

fr_status fr_synth_list(const fr_synth_shape *shape, fr_synth_model *model) {
    const fr_synth_family *family = shape->family;
    const fr_trunk_spec *spec = &model->spec;
    const fr_tensor_naming *names = family->family->names;
    walk w = {.shape = shape, .model = model};
    FR_TRY(fr_outputs_add_rope_factors(&model->outputs, family->family, spec));
    for (const fr_tensor_name *const *table = family->layer_names; table && *table; table++) {
        w.layer = spec->layer;
        FR_TRY(list_table(&w, *table));
    }
    if (family->layer_names) return FR_OK;
    FR_TRY(list_table(&w, fr_naming_model(names)));
    for (w.index = 0; w.index < spec->layers + family->mtp_layers; w.index++) {
        w.layer = fr_spec_layer(spec, w.index);
        const fr_tensor_name *const *tables = fr_naming_tables(names, w.index >= spec->layers);
        for (size_t t = 0; t < FR_LAYER_TABLES && tables[t]; t++) FR_TRY(list_table(&w, tables[t]));
        if (w.index >= spec->layers) FR_TRY(list_table(&w, names->mtp));
    }
    return FR_OK;
}

fr_status fr_synth_add_matrix(fr_synth_model *model, const char *name, size_t features, size_t cols) {
    FR_TRY(fr_outputs_add(&model->outputs, name, NULL));
    fr_output *output = fr_outputs_last(&model->outputs);
    output->dims = 2;
    output->shape[0] = features;
    output->shape[1] = cols;
    return FR_OK;
}
