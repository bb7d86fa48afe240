/* Writes importance matrices in both of llama.cpp's forms (formats/imatrix.h).
 *
 * In: a model's sums of squares (src/engine/weights/activation_stats.c). Out: a file on a stream, with the tensors
 * sorted by name. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/options.h"
#include "forerun_lab.h"
#include "formats/gguf_write.h"
#include "formats/imatrix.h"
#include "src/engine/model/model.h"

void fr_lab_collect(fr_options *options, bool head) {
    options->activation_stats = head ? FR_ACTIVATION_STATS_HEAD_TOO : FR_ACTIVATION_STATS_LAYERS;
}

/* The tensors whose inputs were summed, sorted by name, as the file lists them. */
typedef struct sums {
    fr_watched_tensor *items;
    size_t count;
    float *values; /* has room for the sums of the largest tensor */
} sums;

static int by_name(const void *a, const void *b) {
    return strcmp(((const fr_watched_tensor *)a)->tensor->name, ((const fr_watched_tensor *)b)->tensor->name);
}

static bool has_rows(const fr_watched_tensor *watched) {
    uint64_t rows = 0;
    for (size_t i = 0; i < watched->matrices; i++) rows += watched->stats[i].rows;
    return rows > 0;
}

/* Lists the tensors through which rows were run. All their sums must be finite. */
static fr_status list_sums(sums *s, const fr_weights *weights) {
    size_t largest = 0;
    s->items = malloc((weights->watched_count + 1) * sizeof *s->items);
    if (!s->items) return fr_fail_memory("a list of tensors", weights->watched_count * sizeof *s->items);
    for (size_t i = 0; i < weights->watched_count; i++) {
        const fr_watched_tensor *watched = &weights->watched[i];
        size_t count = watched->matrices * watched->cols;
        if (!has_rows(watched)) continue;
        for (size_t c = 0; c < count; c++)
            if (!(watched->stats->squares[c] <= 0x1.fffffep127))
                return fr_fail(FR_INPUT, "%s: the sum of squares of column %zu of %s is %g", weights->files->path,
                               c % watched->cols, watched->tensor->name, watched->stats->squares[c]);
        if (count > largest) largest = count;
        s->items[s->count++] = *watched;
    }
    qsort(s->items, s->count, sizeof *s->items, by_name);
    s->values = malloc((largest + 1) * sizeof *s->values);
    return s->values ? FR_OK : fr_fail_memory("sums of squares", largest * sizeof *s->values);
}

static void note_missing(const sums *s, void (*note)(const char *line)) {
    size_t missing = 0, all = 0;
    char line[160];
    for (size_t i = 0; i < s->count; i++) {
        all += s->items[i].matrices;
        for (size_t m = 0; m < s->items[i].matrices; m++) missing += s->items[i].stats[m].rows == 0;
    }
    if (missing == 0 || !note) return;
    snprintf(line, sizeof line, "of %zu matrices %zu belong to experts that no row of the text has chosen", all,
             missing);
    note(line);
}

/* ------------------------------------------------------------------------------------------------------------- GGUF */

/* Writes the sums of one tensor. A single matrix gives a vector, and a stack of matrices gives one row for each
 * matrix. */
static void put_tensor(fr_gguf_writer *writer, const fr_watched_tensor *watched, const char *end, size_t cols) {
    uint64_t shape[] = {watched->matrices, cols};
    bool stack = watched->matrices > 1;
    char name[FR_IMATRIX_NAME_MAX + sizeof FR_IMATRIX_SUMS];
    snprintf(name, sizeof name, "%s%s", watched->tensor->name, end);
    fr_gguf_put_tensor(writer, name, FR_F32, false, stack ? 2 : 1, stack ? shape : shape + 1);
}

static void put_header(fr_gguf_writer *writer, const sums *s, const fr_lab_importances *how) {
    fr_gguf_put_string(writer, "general.type", "imatrix");
    fr_gguf_put_array(writer, FR_IMATRIX_DATASETS, FR_GGUF_STRING, 1);
    fr_gguf_add_text(writer, (fr_text){how->text, strlen(how->text)});
    fr_gguf_put_u32(writer, FR_IMATRIX_CHUNKS, (uint32_t)how->chunks);
    fr_gguf_put_u32(writer, FR_IMATRIX_CHUNK_SIZE, (uint32_t)how->chunk);
    for (size_t i = 0; i < s->count; i++) {
        put_tensor(writer, &s->items[i], FR_IMATRIX_SUMS, s->items[i].cols);
        put_tensor(writer, &s->items[i], FR_IMATRIX_COUNTS, 1);
    }
}

static fr_status write_data(fr_gguf_writer *writer, const sums *s) {
    FR_TRY(fr_gguf_write_header(writer));
    for (size_t i = 0; i < s->count; i++) {
        const fr_watched_tensor *watched = &s->items[i];
        size_t count = watched->matrices * watched->cols;
        for (size_t c = 0; c < count; c++) s->values[c] = (float)watched->stats->squares[c];
        FR_TRY(fr_gguf_write_data(writer, s->values, count * sizeof *s->values));
        for (size_t m = 0; m < watched->matrices; m++) s->values[m] = (float)watched->stats[m].rows;
        FR_TRY(fr_gguf_write_data(writer, s->values, watched->matrices * sizeof *s->values));
    }
    return fr_gguf_write_end(writer);
}

static fr_status write_gguf(const sums *s, const fr_lab_importances *how, FILE *out) {
    fr_gguf_writer writer;
    fr_gguf_writer_open(&writer, out, NULL);
    put_header(&writer, s, how);
    fr_status status = write_data(&writer, s);
    fr_gguf_writer_close(&writer);
    return status;
}

/* --------------------------------------------------------------------------------------------------- the older form */

static void put_i32(FILE *out, size_t number) {
    int32_t value = (int32_t)number;
    fwrite(&value, sizeof value, 1, out);
}

static void put_text(FILE *out, const char *text) {
    put_i32(out, strlen(text));
    fwrite(text, 1, strlen(text), out);
}

/* Writes the mean squares times the number of calls, where a call is a chunk that was begun. If no rows were run
 * through an expert, ones are written for it. */
static void write_means(const sums *s, const fr_watched_tensor *watched, size_t chunk, FILE *out) {
    uint64_t most = 0;
    for (size_t m = 0; m < watched->matrices; m++) most = watched->stats[m].rows > most ? watched->stats[m].rows : most;
    size_t calls = (size_t)((most + chunk - 1) / chunk), count = watched->matrices * watched->cols;
    for (size_t c = 0; c < count; c++) {
        uint64_t rows = watched->stats[c / watched->cols].rows;
        double mean = rows > 0 ? watched->stats->squares[c] / (double)rows : 1;
        s->values[c] = (float)(mean * (double)calls);
    }
    put_text(out, watched->tensor->name);
    put_i32(out, calls);
    put_i32(out, count);
    fwrite(s->values, sizeof *s->values, count, out);
}

static fr_status write_older(const sums *s, const fr_lab_importances *how, FILE *out) {
    put_i32(out, s->count);
    for (size_t i = 0; i < s->count; i++) write_means(s, &s->items[i], how->chunk, out);
    put_i32(out, how->chunks);
    put_text(out, how->text);
    return fflush(out) == 0 && !ferror(out) ? FR_OK : fr_fail(FR_MACHINE, "the importance matrix could not be written");
}

/* --------------------------------------------------------------------------------------------------- the whole file */

fr_status fr_lab_write_importances(const fr_model *model, const fr_lab_importances *how, FILE *out) {
    sums s = {0};
    if (!model || !how || !how->text || how->chunk == 0 || !out)
        return fr_fail(FR_USAGE, "fr_lab_write_importances: a model, a text, its chunks and a stream are needed");
    if (!model->files.gguf)
        return fr_fail(FR_INPUT,
                       "%s is not a GGUF file, and importances go by GGUF's tensor names: quantize --type bf16 "
                       "makes one",
                       model->files.path);
    fr_status status = list_sums(&s, &model->weights);
    if (status == FR_OK && s.count == 0)
        status = fr_fail(FR_USAGE, "%s: no row has run through a model that collects importances", model->files.path);
    if (status == FR_OK) {
        note_missing(&s, how->note);
        status = how->older ? write_older(&s, how, out) : write_gguf(&s, how, out);
    }
    free(s.items);
    free(s.values);
    return status;
}
