/* Turns a published folder into the tensors and keys of a GGUF file (export.h).
 *
 * In: a folder of a text model of any family, of an assistant (Gemma 4's drafter), or of an EAGLE-3 drafter and its
 * target. Out: the keys and tensors that llama.cpp's converter writes. The names of tensors and the orders of rows come
 * from the family (src/engine/layers/tensor_names.h) or from the drafter. That converter has no keys for an assistant's
 * centroid head. So an assistant with such a head is written as AtomicChat's fork writes it ("gemma4_assistant"):
 * github.com/AtomicBot-ai/atomic-llama-cpp-turboquant. */
#include "src/convert/export.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "formats/tokenizer_gguf.h"
#include "kernels/dispatch.h"
#include "src/engine/families/config.h"
#include "src/engine/model/sampling_keys.h"
#include "src/engine/weights/bound.h"

/* ---------------------------------------------------------------------------------------------------------- tensors */

/* Returns true for a tensor of the vision tower. The caller asks only about tensors that are not in the text model's
 * tables of names. If such a tensor was bound, the tower uses it. */
static bool is_tower(const fr_export *export, const fr_tensor *tensor) {
    bool sees = !export->written && export->target && export->target->vision;
    return sees && fr_weights_bound(export->weights, tensor);
}

static void spell(const fr_tensor_name_found *found, const char *own, char *gguf, size_t size) {
    if (found->of_layer)
        snprintf(gguf, size, "blk.%zu.%s", found->layer, own);
    else
        snprintf(gguf, size, "%s", own);
}

/* Finds a published tensor's name in GGUF, and the tensor's layer. Returns false if GGUF has no name for the tensor. If
 * the tensor becomes two tensors in GGUF, *gguf is not written. */
static bool translate(const fr_export *export, const char *published, char *gguf, size_t size,
                      fr_tensor_name_found *found) {
    const char *own = export->target ? NULL : fr_assistant_name(&export->drafter, published);
    *found = (fr_tensor_name_found){0};
    if (own) return snprintf(gguf, size, "%s", own) > 0;
    if (export->written) {
        bool eagle = export->written->method == &fr_draft_eagle3;
        if (!(eagle ? fr_eagle3_name : fr_block_name)(published, &own, found)) return false;
    } else {
        if (!fr_tensor_names_find(export->names, fr_tensor_names_prefix(export->weights), published, export->spec,
                                  export->mtp_layers, found))
            return false;
        own = found->name->gguf;
    }
    if (own) spell(found, own, gguf, size);
    return true;
}

/* Sets how rows, columns and values change. The kernels of a short convolution lose the dimension of the input
 * channels, which has size 1. */
static void set_changes(const fr_export *export, const fr_tensor_name_found *found, fr_output *output) {
    const fr_tensor_name *name = found->name;
    const fr_layer_spec *layer = found->of_layer ? fr_spec_layer(export->spec, found->layer) : NULL;
    output->reorder = fr_tensor_name_reorder(export->names, name, export->spec, layer);
    output->change = fr_name_values(export->files, export->names, name);
    if (name->slot == FR_SLOT_IN_ROWS) output->shape[0] = fr_dim_size(name->rows, export->spec, layer);
    if (name->slot == FR_SLOT_IN_ROWS) fr_tensor_name_in_rows(name, layer, output->shape, &output->dims);
    if (name->slot == FR_SLOT_CONV_WHOLE && export->files->channels_last) {
        output->shape[2] = output->shape[1];
        output->shape[1] = 1;
    }
    if (name->slot != FR_SLOT_CONV) return;
    output->dims = 2;
    if (!export->files->channels_last) output->shape[1] = output->shape[2];
}

/* Multiplies a tensor of Falcon-H1 by the factor that a folder gives for its product (fr_layer_factors). The embedding
 * table and the head are multiplied by the factors of embeddings and of logits. GGUF has no keys for these factors. */
static void set_factors(const fr_export *export, const fr_tensor_name_found *found, fr_output *output) {
    const fr_tensor_name *name = found->name;
    size_t rows = fr_output_rows(output), values, keys, parts = 1;
    float factors[FR_ROW_FACTORS] = {0};
    size_t ends[FR_ROW_FACTORS] = {rows};
    if (!export->family->factors_in_weights || export->written) return;
    if (found->of_layer && name->slot == FR_SLOT_MAMBA_IN) {
        const fr_layer_spec *layer = fr_spec_layer(export->spec, found->layer);
        const fr_layer_factors *f = &layer->factors;
        values = layer->mamba.heads * layer->mamba.head_dim;
        keys = layer->mamba.groups * layer->mamba.state_dim;
        parts = FR_ROW_FACTORS;
        memcpy(factors, (float[]){f->mamba_z, f->mamba_x, f->mamba_b, f->mamba_c, f->mamba_dt}, sizeof factors);
        memcpy(ends, (size_t[]){values, 2 * values, 2 * values + keys, 2 * (values + keys), rows}, sizeof ends);
    } else if (found->of_layer && name->factor) {
        const fr_layer_spec *layer = fr_spec_layer(export->spec, found->layer);
        factors[0] = *(const float *)(const void *)((const char *)layer + name->factor);
    } else if (strcmp(output->name, "token_embd.weight") == 0) {
        factors[0] = export->spec->embedding_scale;
    } else if (strcmp(output->name, "output.weight") == 0) {
        factors[0] = export->spec->logit_scale;
    }
    for (size_t i = 0; i < parts && factors[0] != 0.0F; i++) output->factors[i] = (fr_row_factor){ends[i], factors[i]};
}

static const float *scales_of(const fr_export *export, const fr_tensor *tensor) {
    const float *scales = fr_weights_scales(export->weights, tensor);
    return scales || !export->mtp ? scales : fr_weights_scales(&export->mtp->weights, tensor);
}

static bool is_scales(const fr_export *export, const fr_tensor *tensor) {
    if (fr_weights_is_scales(export->weights, tensor)) return true;
    return export->mtp && fr_weights_is_scales(&export->mtp->weights, tensor);
}

/* Adds the two halves of a matrix as two tensors, as GGUF has them. If the tensor is a stack of matrices, each matrix
 * is halved. */
static fr_status add_parts(const fr_export *export, const fr_tensor *tensor, const fr_tensor_name_found *found,
                           fr_outputs *outputs) {
    size_t dims = found->name->slot == FR_SLOT_PARTS ? 2 : 3;
    char name[64];
    for (size_t part = 0; part < 2; part++) {
        const fr_tensor_name *of = fr_tensor_name_of_part(found->table, found->name, part);
        if (!of || tensor->dims != dims || tensor->shape[dims - 2] % 2)
            return fr_fail(FR_INPUT, "%s: tensor %s has no name in GGUF", export->files->path, tensor->name);
        spell(found, of->gguf, name, sizeof name);
        FR_TRY(fr_outputs_add(outputs, name, tensor));
        fr_output *output = fr_outputs_last(outputs);
        output->each = output->shape[dims - 2];
        output->shape[dims - 2] /= 2;
        output->first = part * output->shape[dims - 2];
        output->scales = scales_of(export, tensor);
    }
    return FR_OK;
}

/* Adds kv_b as two tensors, as GGUF has it. The first has the rows for keys without positions, transposed; the second
 * has the rows for values. */
static fr_status add_latent_heads(const fr_export *export, const fr_tensor *tensor, const fr_tensor_name_found *found,
                                  fr_outputs *outputs) {
    const fr_layer_spec *layer = fr_spec_layer(export->spec, found->layer);
    size_t heads = layer->attention.heads, latent = layer->attention.latent, nope = layer->mla.nope;
    char name[64];
    for (size_t part = 0; part < 2; part++) {
        const fr_tensor_name *of = fr_tensor_name_of_part(found->table, found->name, part);
        if (!of) return fr_fail(FR_INPUT, "%s: tensor %s has no name in GGUF", export->files->path, tensor->name);
        spell(found, of->gguf, name, sizeof name);
        FR_TRY(fr_outputs_add(outputs, name, tensor));
        fr_output *output = fr_outputs_last(outputs);
        output->dims = 3;
        output->shape[0] = heads;
        output->shape[1] = part ? layer->mla.value_dim : latent;
        output->shape[2] = part ? latent : nope;
        output->first = part ? nope : 0;
        output->each = nope + layer->mla.value_dim;
        output->transposed = part == 0;
        output->scales = scales_of(export, tensor);
    }
    return FR_OK;
}

/* Adds DeltaNet's single projection as two tensors, because GGUF has the rows of the gates in a tensor of its own. */
static fr_status add_qkvz(const fr_export *export, const fr_tensor *tensor, const fr_tensor_name_found *found,
                          fr_outputs *outputs) {
    static const char *const names[] = {"attn_qkv.weight", "attn_gate.weight"};
    static const fr_dim rows[] = {FR_DIM_DELTA_CHANNELS, FR_DIM_DELTA_VALUES};
    const fr_layer_spec *layer = fr_spec_layer(export->spec, found->layer);
    char name[64];
    for (size_t part = 0; part < 2; part++) {
        spell(found, names[part], name, sizeof name);
        FR_TRY(fr_outputs_add(outputs, name, tensor));
        fr_output *output = fr_outputs_last(outputs);
        output->shape[0] = fr_dim_size(rows[part], export->spec, layer);
        output->reorder = fr_tensor_name_parted(layer, part == 1);
        output->scales = scales_of(export, tensor);
    }
    return FR_OK;
}

/* Adds a tensor from the copy that was made when the model was bound. Such a tensor is a matrix that the folder does
 * not store as rows, the joined matrix of queries, keys and values, or the vector of their biases. */
static fr_status add_copied(const fr_export *export, const fr_tensor *tensor, const char *name,
                            const fr_tensor_name_found *found, fr_outputs *outputs) {
    const char *bound = (const char *)&export->target->trunk.layers[found->layer] + found->name->field;
    if (found->name->slot == FR_SLOT_QKV_VECTOR)
        return fr_outputs_add_values(outputs, name, FR_F32, (size_t)tensor->shape[0],
                                     *(const float *const *)(const void *)bound);
    const fr_matrix *matrix = (const fr_matrix *)(const void *)bound;
    FR_TRY(fr_outputs_add(outputs, name, NULL));
    fr_output *output = fr_outputs_last(outputs);
    output->dims = 2;
    output->stored_in = export->weights;
    output->stored = fr_bound_of(export->weights, tensor);
    output->shape[0] = output->stored->rows;
    output->shape[1] = matrix->cols;
    return FR_OK;
}

/* Adds matrices of experts that the folder stores in another form than rows. */
static fr_status add_stored(const fr_export *export, const fr_tensor *tensor, const fr_tensor_name_found *found,
                            fr_outputs *outputs) {
    bool two = fr_tensor_name_fills_two(found->name);
    const fr_layer_spec *layer = fr_spec_layer(export->spec, found->layer);
    char name[64];
    for (size_t part = 0; part < (two ? 2 : 1); part++) {
        const fr_tensor_name *of = two ? fr_tensor_name_of_part(found->table, found->name, part) : found->name;
        if (!of) return fr_fail(FR_INPUT, "%s: tensor %s has no name in GGUF", export->files->path, tensor->name);
        spell(found, of->gguf, name, sizeof name);
        FR_TRY(fr_outputs_add(outputs, name, NULL));
        fr_output *output = fr_outputs_last(outputs);
        output->dims = 3;
        output->shape[0] = layer->experts.count;
        output->shape[1] = fr_dim_size(found->name->rows, export->spec, layer);
        output->shape[2] = fr_dim_size(found->name->cols, export->spec, layer);
        output->stored_in = export->weights;
        output->stored = fr_bound_of(export->weights, tensor);
        output->part = part;
    }
    return FR_OK;
}

/* Adds vectors of experts. If the folder stores the values of two vectors alternately, they become two vectors, as when
 * the model is bound. */
static fr_status add_vector_parts(const fr_export *export, const fr_tensor *tensor, const fr_tensor_name_found *found,
                                  fr_outputs *outputs) {
    const fr_layer_spec *layer = fr_spec_layer(export->spec, found->layer);
    const char *bound = (const char *)&export->target->trunk.layers[found->layer] + found->name->field;
    char name[64];
    for (size_t part = 0; part < 2; part++) {
        const fr_tensor_name *of = fr_tensor_name_of_part(found->table, found->name, part);
        if (!of) return fr_fail(FR_INPUT, "%s: tensor %s has no name in GGUF", export->files->path, tensor->name);
        spell(found, of->gguf, name, sizeof name);
        FR_TRY(fr_outputs_add_values(outputs, name, FR_F32, layer->experts.count,
                                     ((const float *const *)(const void *)bound)[part]));
        fr_output *output = fr_outputs_last(outputs);
        output->dims = 2;
        output->shape[1] = fr_dim_size(found->name->rows, export->spec, layer);
    }
    return FR_OK;
}

/* Adds the norms of all heads as one tensor. In the folder, each head's norm is a tensor of its own; when the first of
 * these tensors is listed, all are added. */
static fr_status add_head_norms(const fr_export *export, const char *name, const fr_tensor_name_found *found,
                                fr_outputs *outputs) {
    const fr_layer_spec *layer = fr_spec_layer(export->spec, found->layer);
    const char *bound = (const char *)&export->target->trunk.layers[found->layer] + found->name->field;
    size_t values = fr_dim_size(found->name->rows, export->spec, layer), each = layer->attention.head_dim;
    if (found->expert > 0) return FR_OK;
    FR_TRY(fr_outputs_add_values(outputs, name, FR_F32, values / each, *(const float *const *)(const void *)bound));
    fr_output *output = fr_outputs_last(outputs);
    output->dims = 2;
    output->shape[1] = each;
    return FR_OK;
}

/* Gives latent attention's matrices of all heads the shape [heads, rows, cols] that they have in GGUF. */
static void set_heads(const fr_export *export, const fr_tensor_name_found *found, fr_output *output) {
    const fr_layer_spec *layer = fr_spec_layer(export->spec, found->layer);
    output->dims = 3;
    output->shape[0] = layer->attention.heads;
    output->shape[1] = fr_dim_size(found->name->rows, export->spec, layer);
    output->shape[2] = fr_dim_size(found->name->cols, export->spec, layer);
}

static fr_status add_tensor(const fr_export *export, const fr_tensor *tensor, const char *name,
                            const fr_tensor_name_found *found, fr_outputs *outputs) {
    const float *scales = scales_of(export, tensor);
    if (found->of_expert && found->name->slot == FR_SLOT_VECTOR) return add_head_norms(export, name, found, outputs);
    if (found->of_expert)
        return fr_outputs_add_expert(outputs, name, found->expert, fr_spec_experts(export->spec)->count,
                                     (fr_output_source){tensor, scales});
    bool divided = found->name && fr_tensor_name_fills_two(found->name) &&
                   (!found->name->gguf || fr_tensor_name_of_part(found->table, found->name, 0));
    if (found->name && found->name->slot == FR_SLOT_KV_B && divided)
        return add_latent_heads(export, tensor, found, outputs);
    if (found->name && found->name->slot == FR_SLOT_QKVZ) return add_qkvz(export, tensor, found, outputs);
    if (found->name && found->name->layout != FR_LAYOUT_ROWS && tensor->dims < 3)
        return add_copied(export, tensor, name, found, outputs);
    const fr_bound *bound = found->name ? fr_bound_of(export->weights, tensor) : NULL;
    /* a quantizer's FP4 was copied only for products; here its rows are decoded from the storage, with the matrix's
     * scale */
    if (bound && bound->layout != FR_LAYOUT_ROWS && bound->layout != FR_LAYOUT_FP4)
        return add_stored(export, tensor, found, outputs);
    if (found->name && found->name->slot == FR_SLOT_EXPERTS_VECTOR_PARTS)
        return add_vector_parts(export, tensor, found, outputs);
    if (found->name && !found->name->gguf) return add_parts(export, tensor, found, outputs);
    FR_TRY(fr_outputs_add(outputs, name, tensor));
    if (found->name && found->name->slot == FR_SLOT_HEADS) set_heads(export, found, fr_outputs_last(outputs));
    if (found->name) set_changes(export, found, fr_outputs_last(outputs));
    if (found->name) set_factors(export, found, fr_outputs_last(outputs));
    fr_outputs_last(outputs)->scales = scales;
    fr_outputs_last(outputs)->offsets = export->written && tensor->type >= FR_I32;
    return FR_OK;
}

/* Adds the embedding table once more as the head if the folder has no head. This is needed because both are multiplied
 * by a factor when they are written (set_factors), and the factor of the embeddings differs from that of the head. */
static fr_status add_tied_head(const fr_export *export, fr_outputs *outputs) {
    const fr_output *table = NULL;
    for (size_t i = 0; i < outputs->count; i++) {
        if (strcmp(outputs->items[i].name, "output.weight") == 0) return FR_OK;
        if (strcmp(outputs->items[i].name, "token_embd.weight") == 0) table = &outputs->items[i];
    }
    if (!table) return FR_OK;
    const float *scales = table->scales;
    FR_TRY(fr_outputs_add(outputs, "output.weight", table->source));
    fr_output *head = fr_outputs_last(outputs);
    head->scales = scales;
    set_factors(export, &(fr_tensor_name_found){0}, head);
    return FR_OK;
}

static fr_status list_tensors(const fr_export *export, fr_outputs *outputs) {
    const fr_tensors *tensors = &export->files->tensors;
    for (size_t i = 0; i < tensors->count; i++) {
        char name[64];
        fr_tensor_name_found found;
        const fr_tensor *tensor = &tensors->items[i];
        if (!translate(export, tensor->name, name, sizeof name, &found)) {
            if (is_tower(export, tensor) || fr_tensor_names_extra(export->names, tensor->name)) continue;
            if (is_scales(export, tensor)) continue;
            return fr_fail(FR_INPUT, "%s: tensor %s has no name in GGUF", export->files->path, tensor->name);
        }
        FR_TRY(add_tensor(export, tensor, name, &found, outputs));
    }
    if (export->family->factors_in_weights && !export->written) FR_TRY(add_tied_head(export, outputs));
    return fr_outputs_check_experts(outputs);
}

/* ---------------------------------------------------------------------------------------------------------- opening */

static fr_status bind_target(fr_export *export, fr_checkpoint *files) {
    fr_model *model = export->target = calloc(1, sizeof *model);
    if (!model) return fr_fail_memory("model", sizeof *model);
    model->files = *files;
    *files = (fr_checkpoint){0};
    FR_TRY(fr_kernels_select(NULL, &model->kernels));
    return fr_model_bind_files(model, "");
}

static fr_status open_target(fr_export *export, fr_checkpoint *files) {
    FR_TRY(bind_target(export, files));
    const fr_model *model = export->target;
    if (model->encoder) return FR_OK;
    export->files = &model->files;
    export->family = model->family;
    export->spec = &model->trunk.spec;
    export->mtp_layers = model->family->names->mtp_in_folders ? 0 : model->mtp_layers;
    export->weights = &model->weights;
    export->architecture = model->family->gguf_of ? model->family->gguf_of(export->spec) : model->family->gguf;
    if (model->family->gguf) return export->mtp_layers ? fr_drafter_bind(NULL, model, NULL, &export->mtp) : FR_OK;
    return fr_fail(FR_UNBUILT, "%s: writing architecture \"%s\" as GGUF is not built yet", model->files.path,
                   fr_checkpoint_architecture(&model->files));
}

static fr_status refuse_eagle1(const char *path) {
    return fr_fail(FR_UNBUILT, "%s: EAGLE-1 has no form in GGUF (llama.cpp's is EAGLE-3's): it stays a folder", path);
}

static fr_status open_assistant(fr_export *export, fr_checkpoint *files) {
    export->drafter_files = *files;
    *files = (fr_checkpoint){0};
    export->files = &export->drafter_files;
    bool block = fr_is_block_drafter(export->files);
    if (block || fr_is_eagle3(export->files))
        return fr_fail(FR_USAGE,
                       "%s: %s drafter is written with what its target says: give it with -md, and "
                       "the target with -m",
                       export->files->path, block ? "a block" : "an EAGLE-3");
    if (fr_is_eagle(export->files)) return refuse_eagle1(export->files->path);
    FR_TRY(fr_weights_open(&export->drafter_weights, export->files));
    FR_TRY(fr_assistant_open(&export->drafter, NULL, export->files, &export->drafter_weights));
    export->family = &fr_family_gemma4;
    export->spec = &export->drafter.trunk.spec;
    export->weights = &export->drafter_weights;
    export->architecture = fr_assistant_gguf(&export->drafter);
    return FR_OK;
}

/* Opens a drafter that is written for a target. Facts that the drafter's files lack, such as aux_layers and ids, are
 * taken from the target. */
static fr_status open_written(fr_export *export, fr_checkpoint *files, const char *path, const fr_options *options) {
    FR_TRY(bind_target(export, files));
    FR_TRY(fr_drafter_bind(path, export->target, options, &export->written));
    const fr_drafter *d = export->written;
    bool eagle = d->method == &fr_draft_eagle3;
    if (d->method == &fr_draft_eagle) return refuse_eagle1(path);
    if (d->files.gguf || !(eagle || fr_is_block_drafter(&d->files)))
        return fr_fail(FR_USAGE, "%s is no folder of an EAGLE-3 drafter or a block drafter: give it with -m alone",
                       path);
    export->files = &d->files;
    export->family = eagle ? &fr_family_llama : &fr_family_block;
    export->names = eagle ? &fr_eagle_names : &fr_block_names;
    export->spec = eagle ? &((const fr_eagle *)d->net)->trunk.spec : &((const fr_block_net *)d->net)->trunk.spec;
    export->weights = &d->weights;
    export->architecture = eagle ? "eagle3" : fr_family_block.gguf;
    return FR_OK;
}

fr_status fr_export_open(fr_export *export, fr_checkpoint *files, const char *drafter, const fr_options *options,
                         fr_outputs *outputs) {
    *export = (fr_export){0};
    if (drafter)
        FR_TRY(open_written(export, files, drafter, options));
    else
        FR_TRY(fr_is_drafter(files) ? open_assistant(export, files) : open_target(export, files));
    if (export->target && export->target->encoder) return fr_export_encoder_open(export, outputs);
    if (!drafter) export->names = export->family->names;
    const fr_attention_spec *attention = fr_spec_attention(export->spec);
    outputs->layers = export->spec->layers + export->mtp_layers;
    outputs->gqa = attention->heads / attention->kv_heads;
    FR_TRY(fr_outputs_add_rope_factors(outputs, export->family, export->spec));
    return list_tensors(export, outputs);
}

void fr_export_close(fr_export *export) {
    fr_recipe_close(&export->recipe);
    fr_drafter_unload(export->written);
    fr_drafter_unload(export->mtp);
    fr_model_unload(export->target);
    fr_assistant_close(&export->drafter);
    fr_weights_close(&export->drafter_weights);
    fr_checkpoint_close(&export->drafter_files);
    *export = (fr_export){0};
}

/* --------------------------------------------------------------------------------------------------------- metadata */

/* Prints a count in thousands, millions and so on, such as 1.9M, with at least two digits. */
static void print_count(double count, char *text, size_t size) {
    static const char *const units[] = {"K", "M", "B", "T"};
    size_t unit = 0;
    for (count /= 1e3; count > 1e3 && unit < 3; count /= 1e3) unit++;
    snprintf(text, size, "%.*f%s", count < 9.5 ? 1 : 0, count, units[unit]);
}

/* Adds the number of parameters. For a mixture it is written like "8x342K": the number of experts, and the number of
 * parameters that the model would have with a single expert. */
static void put_size(const fr_export *export, const fr_outputs *outputs, fr_gguf_writer *writer) {
    const fr_experts_spec *mixture = export->spec ? fr_spec_experts(export->spec) : NULL;
    const fr_encoder *encoder = export->target ? export->target->encoder : NULL;
    size_t experts = mixture ? mixture->count : encoder ? fr_encoder_fact(encoder).experts : 0;
    double total = 0;
    char count[32], label[64];
    for (size_t i = 0; i < outputs->count; i++) {
        double values = 1;
        bool of_experts = strstr(outputs->items[i].name, "_exps.");
        for (uint32_t d = 0; d < outputs->items[i].dims; d++) values *= (double)outputs->items[i].shape[d];
        total += of_experts ? values / (double)experts : values;
    }
    print_count(total, count, sizeof count);
    snprintf(label, sizeof label, "%zux%s", experts, count);
    fr_gguf_put_string(writer, "general.size_label", experts ? label : count);
}

/* Writes the sampling settings that the folder's makers recommend. A value that is not a number is an error. A value
 * that no sampler accepts, such as a top_k of -1, is left out; a run of the folder ignores such a value, too. */
static fr_status put_sampling(const fr_checkpoint *files, fr_gguf_writer *writer) {
    fr_text order = fr_sampling_order(files);
    if (order.length) fr_gguf_put_text(writer, FR_SAMPLING_ORDER_KEY, order);
    for (const fr_sampling_key *key = fr_sampling_keys; key < fr_sampling_keys + FR_SAMPLING_KEYS; key++) {
        fr_option_kind kind;
        double value;
        FR_TRY(fr_json_real(files->generation, key->name, -INFINITY, INFINITY, 0, "generation_config.json", &value));
        value = fr_sampling_number(files, key);
        if (isnan(value) || fr_option_range(key->option, &kind, NULL, NULL) != FR_OK) continue;
        if (kind == FR_OPTION_WHOLE)
            fr_gguf_put_i32(writer, key->key, (int32_t)value);
        else
            fr_gguf_put_f32(writer, key->key, (float)value);
    }
    return FR_OK;
}

static fr_status put_general(const fr_export *export, const fr_outputs *outputs, fr_gguf_writer *writer) {
    fr_gguf_put_string(writer, "general.type", "model");
    if (export->files->generation) FR_TRY(put_sampling(export->files, writer));
    const char *path = export->files->path;
    size_t end = strlen(path), begin;
    while (end > 1 && path[end - 1] == '/') end--;
    for (begin = end; begin > 0 && path[begin - 1] != '/';) begin--;
    fr_gguf_put_text(writer, "general.name", (fr_text){path + begin, end - begin});
    put_size(export, outputs, writer);
    return FR_OK;
}

static void put_suppressed(const fr_model *target, fr_gguf_writer *writer) {
    if (!target->suppressed_count) return;
    fr_gguf_put_array(writer, FR_KEY_SUPPRESSED, FR_GGUF_I32, target->suppressed_count);
    for (size_t i = 0; i < target->suppressed_count; i++) fr_gguf_add_u32(writer, (uint32_t)target->suppressed[i]);
}

static fr_tokenizer_form form_of(const fr_family *family) {
    return (fr_tokenizer_form){.model = family->tokenizer, .pre = family->pre, .counts_ids = family->counts_ids};
}

/* Adds the target's tokenizer, because a drafter's files have none. masks: the drafter has a mask token, whose key has
 * been written; Gemma's tokenizers name another one. */
static fr_status put_targets_tokenizer(const fr_export *export, bool masks, fr_gguf_writer *writer) {
    const fr_model *target = export->target;
    const fr_gguf *gguf = target->files.gguf;
    static const char section[] = "tokenizer.";
    if (!gguf) {
        put_suppressed(target, writer);
        fr_tokenizer_form form = form_of(target->family);
        form.masks = masks;
        return fr_export_tokenizer(&target->files, &form, export->spec->vocab, writer);
    }
    fr_gguf_put_u32(writer, ".vocab_size", (uint32_t) export->spec->vocab);
    for (size_t i = 0; i < gguf->count; i++) {
        fr_text key = gguf->values[i].key;
        if (masks && fr_text_is(key, "tokenizer.ggml.mask_token_id")) continue;
        if (key.length >= sizeof section && memcmp(key.bytes, section, sizeof section - 1) == 0)
            fr_gguf_put_value(writer, &gguf->values[i]);
    }
    return FR_OK;
}

fr_status fr_export_metadata(const fr_export *export, const fr_outputs *outputs, fr_gguf_writer *writer) {
    const char *where = export->files->path;
    FR_TRY(put_general(export, outputs, writer));
    if (export->target && export->target->encoder) return fr_export_encoder_metadata(export, writer);
    if (export->written) {
        bool eagle = export->written->method == &fr_draft_eagle3;
        FR_TRY((eagle ? fr_eagle3_put_keys : fr_block_put_keys)(export->written, writer));
        return put_targets_tokenizer(export, !eagle, writer);
    }
    if (export->target) {
        FR_TRY(fr_family_put(export->family, export->spec, export->mtp_layers, where, writer));
        put_suppressed(export->target, writer);
    } else {
        FR_TRY(fr_assistant_put_keys(&export->drafter, where, writer));
    }
    const fr_tokenizer_form form = form_of(export->family);
    return fr_export_tokenizer(export->files, &form, export->spec->vocab, writer);
}
