/* Finds the importances of the columns of tensors (importances.h). */
#include "src/convert/importances.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

#define TEXT_MAX 127 /* limit on the bytes of a text: llama-quantize writes no more */

fr_status fr_importances_open(fr_importances *importances, const char *path) {
    *importances = (fr_importances){0};
    FR_TRY(fr_imatrix_open(&importances->matrix, path));
    importances->path = path;
    return FR_OK;
}

void fr_importances_close(fr_importances *importances) {
    fr_imatrix_close(&importances->matrix);
    *importances = (fr_importances){0};
}

/* Returns true for embeddings. A forward only looks up their rows and multiplies by none of them, so the importance of
 * their columns can't be measured. */
static bool is_embedding(const char *name) {
    return strcmp(name, "token_embd.weight") == 0 || strcmp(name, "per_layer_token_embd.weight") == 0;
}

static bool is_encoded(const fr_output *output) {
    return output->type >= FR_FLOAT_TYPES && output->type < FR_KERNEL_TYPES;
}

static size_t columns_of(const fr_output *output) {
    size_t count = (size_t)output->shape[output->dims - 1];
    for (uint32_t i = 0; i + 2 < output->dims; i++) count *= (size_t)output->shape[i];
    return count;
}

const float *fr_importance_of(const fr_importances *importances, const fr_output *output) {
    if (!importances->path || !is_encoded(output)) return NULL;
    const fr_imatrix_entry *entry = fr_imatrix_find(&importances->matrix, output->name);
    return entry && entry->count == columns_of(output) ? entry->means : NULL;
}

fr_status fr_importances_check(const fr_importances *importances, const fr_outputs *outputs,
                               void (*note)(const char *line)) {
    size_t found = 0, missing = 0;
    const char *first = NULL;
    char line[400];
    if (!importances->path) return FR_OK;
    for (size_t i = 0; i < outputs->count; i++) {
        const fr_output *output = &outputs->items[i];
        if (!is_encoded(output)) continue;
        const fr_imatrix_entry *entry = fr_imatrix_find(&importances->matrix, output->name);
        bool embedding = is_embedding(output->name);
        if (entry && entry->count != columns_of(output) && !embedding)
            return fr_fail(FR_INPUT, "%s has %zu values for tensor %s, which takes %zu: it is of another model",
                           importances->path, entry->count, output->name, columns_of(output));
        found += entry != NULL;
        if (entry || embedding) continue;
        if (!first) first = output->name;
        missing++;
    }
    if (found == 0 && missing > 0)
        return fr_fail(FR_INPUT, "%s has none of the model's tensors, such as %s", importances->path, first);
    if (missing == 0 || !note) return FR_OK;
    snprintf(line, sizeof line,
             "the importance matrix lacks %zu of the matrices, %.200s %s: all columns of %s "
             "count the same",
             missing, first, missing == 1 ? "alone" : "among them", missing == 1 ? "it" : "these");
    note(line);
    return FR_OK;
}

static void put_text(fr_gguf_writer *writer, const char *key, const char *text) {
    size_t length = strlen(text);
    fr_gguf_put_text(writer, key, (fr_text){text, length < TEXT_MAX ? length : TEXT_MAX});
}

void fr_importances_put(const fr_importances *importances, fr_gguf_writer *writer) {
    const fr_imatrix *matrix = &importances->matrix;
    if (!importances->path) return;
    put_text(writer, FR_IMPORTANCES_KEYS "file", importances->path);
    if (matrix->dataset) put_text(writer, FR_IMPORTANCES_KEYS "dataset", matrix->dataset);
    fr_gguf_put_u32(writer, FR_IMPORTANCES_KEYS "entries_count", (uint32_t)matrix->count);
    if (matrix->chunks > 0) fr_gguf_put_u32(writer, FR_IMPORTANCES_KEYS "chunks_count", matrix->chunks);
}
