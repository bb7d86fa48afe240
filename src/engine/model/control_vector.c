/* Opens a control vector: see adapter.h.
 *
 * In: a GGUF file of architecture controlvector, as llama.cpp's cvector-generator and repeng write it. Its tensors
 * direction.N are added to the stream after layer N. Out: an adapter with directions. Source: llama.cpp,
 * common/common.cpp (common_control_vector_load) and src/llama-adapter.cpp (llama_adapter_cvec). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/model/adapter.h"

/* Gives the number of the layer in the name of a tensor; 0: the name has no such number. */
static size_t layer_of(const char *name) {
    size_t layer = 0;
    char spelled[32];
    if (sscanf(name, "direction.%9zu", &layer) != 1) return 0;
    snprintf(spelled, sizeof spelled, "direction.%zu", layer);
    return strcmp(spelled, name) == 0 ? layer : 0;
}

static fr_status read_direction(fr_adapter *adapter, const fr_tensor *tensor, size_t first, size_t last) {
    const char *path = adapter->path;
    size_t layers = adapter->model->trunk.spec.layers, hidden = adapter->model->trunk.spec.hidden;
    size_t layer = layer_of(tensor->name);
    if (layer == 0 || layer >= layers)
        return fr_fail(FR_INPUT, "%s: tensor %s is not direction.N with a layer N from 1 to %zu", path, tensor->name,
                       layers - 1);
    if (tensor->type != FR_F32 || tensor->dims != 1 || tensor->shape[0] != hidden)
        return fr_fail(FR_INPUT, "%s: tensor %s is no vector of %zu float32 values, as the model's rows are", path,
                       tensor->name, hidden);
    float *row = adapter->directions + layer * hidden;
    fr_dtype_decode(FR_F32, tensor->data, row, hidden);
    for (size_t i = 0; i < hidden; i++)
        if (!isfinite(row[i]))
            return fr_fail(FR_INPUT, "%s: tensor %s has a value that is not finite", path, tensor->name);
    if (layer < first || layer > last) memset(row, 0, hidden * sizeof *row);
    return FR_OK;
}

static fr_status read(fr_adapter *adapter, const fr_checkpoint *files, size_t first, size_t last) {
    const fr_trunk_spec *spec = &adapter->model->trunk.spec;
    if (!files->gguf || strcmp(files->gguf->architecture, "controlvector") != 0)
        return fr_fail(FR_INPUT, "%s is no control vector: it is no GGUF file of architecture controlvector",
                       files->path);
    if (files->unread.count || files->tensors.count == 0)
        return fr_fail(FR_INPUT, "%s: %s", files->path,
                       files->unread.count ? "a tensor has a type that is not read" : "it has no tensor direction.N");
    adapter->directions = calloc(spec->layers * spec->hidden, sizeof *adapter->directions);
    if (!adapter->directions) return fr_fail_memory("control vector", spec->layers * spec->hidden * sizeof(float));
    for (size_t i = 0; i < files->tensors.count; i++)
        FR_TRY(read_direction(adapter, &files->tensors.items[i], first, last));
    fr_sha256_add(&adapter->hash, "controlvector", sizeof "controlvector");
    fr_sha256_add(&adapter->hash, adapter->directions, spec->layers * spec->hidden * sizeof *adapter->directions);
    return FR_OK;
}

fr_status fr_control_vector_load(const char *path, const fr_model *model, size_t first, size_t last,
                                 fr_adapter **adapter) {
    fr_checkpoint files;
    FR_TRY(fr_adapter_new(path, model, adapter));
    fr_status status = fr_checkpoint_open(&files, path, true);
    if (status == FR_OK) {
        status = read(*adapter, &files, first, last ? last : model->trunk.spec.layers);
        fr_checkpoint_close(&files);
    }
    if (status == FR_OK) {
        fr_sha256_end(&(*adapter)->hash, (*adapter)->digest);
        return FR_OK;
    }
    fr_adapter_unload(*adapter);
    *adapter = NULL;
    return status;
}
