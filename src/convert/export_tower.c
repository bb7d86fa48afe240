/* Writes a folder's vision tower as llama.cpp's mmproj file: see export_tower.h.
 *
 * The tower is bound as it is for a run (vision_bind.c). That checks its configuration and its tensors, and lists the
 * tensors' names. Most tensors are written row by row. The tensors that have another order in GGUF are small, so they
 * are made in memory. */
#include "src/convert/export_tower.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/file_place.h"
#include "base/sizes.h"
#include "formats/json.h"
#include "formats/storage.h"
#include "kernels/dispatch.h"
#include "src/engine/vision/vision.h"

#define TOKENIZER_MAX ((size_t)256 << 20) /* limit on the bytes of tokenizer.json */

fr_status fr_tower_export_find(const fr_checkpoint *files, bool *found) {
    fr_weights weights = {0};
    *found = false;
    if (files->gguf || !files->config) return FR_OK;
    fr_status status = fr_weights_open(&weights, files);
    if (status == FR_OK) *found = fr_vision_exists(&weights);
    fr_weights_close(&weights);
    return status;
}

/* Gives the tensor as float32 values, which belong to the export. */
static fr_status decode(fr_tower_export *export, const fr_tensor *tensor, float **values) {
    size_t count = 1, cols = tensor->dims ? (size_t)tensor->shape[tensor->dims - 1] : 1;
    for (uint32_t i = 0; i < tensor->dims; i++) count *= (size_t)tensor->shape[i];
    float **all = realloc(export->values, (export->value_count + 1) * sizeof *all);
    if (!all) return fr_fail_memory("a vision tower", (export->value_count + 1) * sizeof *all);
    export->values = all;
    *values = all[export->value_count] = malloc(count * sizeof **values);
    if (!*values) return fr_fail_memory("a vision tower", count * sizeof **values);
    export->value_count++;
    if (!tensor->storage && tensor->type >= FR_FLOAT_TYPES)
        return fr_fail(FR_UNBUILT, "%s: to write tensor %s as GGUF is not built", export->files->path, tensor->name);
    for (size_t row = 0; row < count / cols; row++) {
        float *to = *values + row * cols;
        if (tensor->storage)
            fr_storage_decode(tensor->storage, row, 0, cols, to);
        else
            fr_dtype_decode(tensor->type, (const uint8_t *)tensor->data + row * fr_dtype_row_bytes(tensor->type, cols),
                            to, cols);
    }
    return FR_OK;
}

/* Adds a tensor of values in memory with this shape, in which the last dimension varies fastest. */
static fr_status add_values(fr_outputs *outputs, const char *name, const float *values, uint32_t dims,
                            const uint64_t *shape) {
    FR_TRY(fr_outputs_add_values(outputs, name, FR_F32, (size_t)shape[0], values));
    fr_output *output = fr_outputs_last(outputs);
    output->dims = dims;
    memcpy(output->shape, shape, dims * sizeof *shape);
    return FR_OK;
}

/* Adds the rows of queries, keys and values, or their biases, as three tensors. */
static fr_status add_thirds(fr_tower_export *export, const fr_tensor *tensor, const char *gguf, fr_outputs *outputs) {
    uint64_t rows = tensor->shape[0] / 3;
    float *values = NULL;
    if (tensor->dims == 1) FR_TRY(decode(export, tensor, &values));
    for (size_t i = 0; i < 3; i++) {
        char name[64];
        snprintf(name, sizeof name, "%s", gguf);
        *strchr(name, '?') = "qkv"[i];
        if (values) {
            FR_TRY(add_values(outputs, name, values + i * rows, 1, &rows));
            continue;
        }
        FR_TRY(fr_outputs_add(outputs, name, tensor));
        fr_output *output = fr_outputs_last(outputs);
        output->shape[0] = rows;
        output->first = i * (size_t)rows;
        output->each = 3 * (size_t)rows;
    }
    return FR_OK;
}

/* Adds each frame of a convolution [rows, channels, frames, side, side] as a tensor. */
static fr_status add_frames(fr_tower_export *export, const fr_tensor *tensor, const char *gguf, fr_outputs *outputs) {
    size_t frames = (size_t)tensor->shape[2], area = (size_t)(tensor->shape[3] * tensor->shape[4]);
    size_t planes = (size_t)(tensor->shape[0] * tensor->shape[1]);
    const uint64_t shape[] = {tensor->shape[0], tensor->shape[1], tensor->shape[3], tensor->shape[4]};
    float *values, *frame;
    FR_TRY(decode(export, tensor, &values));
    for (size_t t = 0; t < frames; t++) {
        char name[64];
        FR_TRY(decode(export, tensor, &frame)); /* decoded only to get memory, of which a frame needs a part */
        for (size_t plane = 0; plane < planes; plane++)
            memcpy(frame + plane * area, values + (plane * frames + t) * area, area * sizeof *frame);
        snprintf(name, sizeof name, t ? "%.50s.%zu" : "%.50s", gguf, t);
        FR_TRY(add_values(outputs, name, frame, 4, shape));
    }
    return FR_OK;
}

/* Adds rows of patches. In GGUF a row has all pixels of one channel before those of the next. In a tower with layers,
 * these rows are the kernel of a convolution, and the tensor gets the kernel's shape. */
static fr_status add_channels(fr_tower_export *export, const fr_tensor *tensor, const char *gguf, fr_outputs *outputs) {
    const fr_vision_config *c = &export->vision->config;
    size_t area = c->patch * c->patch, cols = FR_VISION_CHANNELS * area;
    size_t rows = tensor->dims > 1 ? (size_t)tensor->shape[0] : 1;
    const uint64_t kernel[] = {rows, FR_VISION_CHANNELS, c->patch, c->patch};
    float *from, *to;
    FR_TRY(decode(export, tensor, &from));
    FR_TRY(decode(export, tensor, &to));
    for (size_t row = 0; row < rows; row++)
        for (size_t i = 0; i < cols; i++)
            to[row * cols + i] = from[row * cols + i % area * FR_VISION_CHANNELS + i / area];
    return c->layers ? add_values(outputs, gguf, to, 4, kernel)
                     : add_values(outputs, gguf, to, tensor->dims, tensor->shape);
}

/* Adds two tables whose rows alternate in the folder. GGUF has all rows of the first table before all rows of the
 * second. */
static fr_status add_tables(fr_tower_export *export, const fr_tensor *tensor, const char *gguf, fr_outputs *outputs) {
    size_t rows = (size_t)tensor->shape[0], cols = (size_t)tensor->shape[2];
    const uint64_t shape[] = {2, rows, cols};
    float *from, *to;
    FR_TRY(decode(export, tensor, &from));
    FR_TRY(decode(export, tensor, &to));
    for (size_t row = 0; row < 2 * rows; row++)
        memcpy(to + row * cols, from + (row % rows * 2 + row / rows) * cols, cols * sizeof *to);
    return add_values(outputs, gguf, to, 3, shape);
}

static fr_status add_tensor(fr_tower_export *export, const fr_vision_tensor *listed, fr_outputs *outputs) {
    const fr_tensor *tensor = fr_tensors_find(&export->files->tensors, listed->folder);
    if (!tensor)
        return fr_fail(FR_INPUT, "%s: tensor %s of the vision tower is missing", export->files->path, listed->folder);
    switch (listed->layout) {
    case FR_VISION_THIRDS: return add_thirds(export, tensor, listed->gguf, outputs);
    case FR_VISION_FRAMES: return add_frames(export, tensor, listed->gguf, outputs);
    case FR_VISION_CHANNEL_LAST: return add_channels(export, tensor, listed->gguf, outputs);
    case FR_VISION_ALTERNATING: return add_tables(export, tensor, listed->gguf, outputs);
    case FR_VISION_PAIRED:
    case FR_VISION_WHOLE:
    case FR_VISION_ONE_MORE: break;
    }
    FR_TRY(fr_outputs_add(outputs, listed->gguf, tensor));
    fr_output *output = fr_outputs_last(outputs);
    if (listed->layout == FR_VISION_ONE_MORE) output->change = FR_LESS_ONE;
    if (listed->layout == FR_VISION_PAIRED) {
        size_t head = export->vision->config.hidden / export->vision->config.heads;
        output->reorder = (fr_reorder){.order = FR_ROWS_TO_PAIRS, .head = head, .rotated = head};
    }
    return FR_OK;
}

/* Finds a token's id in tokenizer.json; -1: it is not there. */
static fr_status find_token(const fr_checkpoint *files, const char *text, int64_t *id) {
    char *path = fr_path_join(files->path, "tokenizer.json");
    json_t *root = NULL;
    *id = -1;
    if (!path) return fr_fail_memory("path", strlen(files->path));
    fr_status status = fr_file_exists(path) ? fr_json_read(path, TOKENIZER_MAX, &root) : FR_OK;
    free(path);
    json_t *tokens = json_object_get(root, "added_tokens");
    for (size_t i = 0; status == FR_OK && i < json_array_size(tokens); i++) {
        json_t *token = json_array_get(tokens, i), *number = json_object_get(token, "id");
        const char *content = json_string_value(json_object_get(token, "content"));
        if (content && strcmp(content, text) == 0 && json_is_integer(number)) *id = json_integer_value(number);
    }
    json_decref(root);
    return status;
}

/* Adds the embedding of the token that ends each row of a picture. llama.cpp inserts this token itself, with the
 * embedding from this file. If the folder lacks the token's id or the table of embeddings, the conversion fails, as
 * that of llama.cpp does. */
static fr_status add_row_end(fr_tower_export *export, fr_outputs *outputs) {
    static const char *const tables[] = {"language_model.model.embed_tokens.weight",
                                         "model.language_model.embed_tokens.weight"};
    const char *token = fr_vision_row_end(export->vision);
    const fr_tensor *table = NULL;
    int64_t id;
    if (!token) return FR_OK;
    for (size_t i = 0; i < sizeof tables / sizeof *tables && !table; i++)
        table = fr_tensors_find(&export->files->tensors, tables[i]);
    FR_TRY(find_token(export->files, token, &id));
    if (!table || table->dims != 2 || table->shape[1] != export->vision->config.out || table->storage ||
        table->type >= FR_FLOAT_TYPES || id < 0 || (uint64_t)id >= table->shape[0])
        return fr_fail(FR_INPUT, "%s: the embedding of %s, which ends rows of pictures, is not found",
                       export->files->path, token);
    fr_tensor row = *table;
    size_t bytes = fr_dtype_row_bytes(table->type, (size_t)table->shape[1]);
    row.dims = 1;
    row.shape[0] = table->shape[1];
    row.data = (const uint8_t *)table->data + (size_t)id * bytes;
    row.bytes = bytes;
    float *values;
    FR_TRY(decode(export, &row, &values));
    return add_values(outputs, "v.token_embd.img_break", values, 1, row.shape);
}

/* Checks that the list has all tensors that were bound, so that none is left out of the file. */
static fr_status check_listed(const fr_tower_export *export) {
    const fr_tensors *tensors = &export->files->tensors;
    const fr_vision *v = export->vision;
    for (size_t i = 0; i < tensors->count; i++) {
        bool listed = !fr_weights_bound(&export->weights, &tensors->items[i]);
        for (size_t k = 0; k < v->tensor_count && !listed; k++)
            listed = strcmp(v->tensors[k].folder, tensors->items[i].name) == 0;
        if (!listed)
            return fr_fail(FR_UNBUILT, "%s: to write tensor %s of the vision tower as GGUF is not built",
                           export->files->path, tensors->items[i].name);
    }
    return FR_OK;
}

fr_status fr_tower_export_open(fr_tower_export *export, const fr_checkpoint *files, fr_outputs *outputs) {
    const fr_kernels *kernels;
    *export = (fr_tower_export){.files = files};
    FR_TRY(fr_kernels_select(NULL, &kernels));
    FR_TRY(fr_weights_open(&export->weights, files));
    FR_TRY(fr_vision_open(&export->weights, kernels, 0, &export->vision));
    FR_TRY(check_listed(export));
    outputs->layers = export->vision->config.layers;
    for (size_t i = 0; i < export->vision->tensor_count; i++)
        FR_TRY(add_tensor(export, &export->vision->tensors[i], outputs));
    return add_row_end(export, outputs);
}

/* llama.cpp convolves pictures only with kernels of F16 or F32, and adds positions only as F32. It transposes Gemma 3's
 * projection, which must then be F16 or F32. */
void fr_tower_export_types(fr_dtype type, fr_outputs *outputs) {
    fr_dtype half = type == FR_F16 ? FR_F16 : FR_F32;
    bool transposed = false;
    for (size_t i = 0; i < outputs->count; i++)
        transposed |= strcmp(outputs->items[i].name, "mm.soft_emb_norm.weight") == 0; /* only Gemma 3 has it */
    for (size_t i = 0; i < outputs->count; i++) {
        fr_output *output = &outputs->items[i];
        if (output->dims < 2) continue;
        if (strstr(output->name, "patch_embd.weight") || strstr(output->name, "patch_merger.weight"))
            output->type = output->wanted = half;
        else if (transposed && strcmp(output->name, "mm.input_projection.weight") == 0)
            output->type = output->wanted = type == FR_F32 ? FR_F32 : FR_F16;
        else if (strcmp(output->name, "v.position_embd.weight") == 0)
            output->type = output->wanted = FR_F32;
    }
}

fr_status fr_tower_export_metadata(const fr_tower_export *export, fr_gguf_writer *writer) {
    fr_gguf_put_string(writer, "general.type", "mmproj");
    return fr_vision_put(export->vision, writer);
}

void fr_tower_export_close(fr_tower_export *export) {
    for (size_t i = 0; i < export->value_count; i++) free(export->values[i]);
    free(export->values);
    fr_vision_close(export->vision);
    fr_weights_close(&export->weights);
    *export = (fr_tower_export){0};
}
