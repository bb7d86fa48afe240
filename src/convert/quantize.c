/* Implements forerun quantize, which reads, encodes and writes tensors some rows at a time.
 *
 * In: a published folder or a GGUF file, and the types that the tensors shall have. Out: a GGUF file on a stream. A
 * tensor's rows are divided among a team of threads and written in order, so the file does not depend on the number of
 * threads. The source's pages are released once they are read, so only a batch of rows and the metadata stay in
 * memory. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "formats/imatrix.h"
#include "formats/storage.h"
#include "quant/encode.h"
#include "quant/fp8.h"
#include "src/convert/export.h"
#include "src/convert/export_tower.h"
#include "src/convert/importances.h"
#include "src/convert/merge.h"
#include "src/convert/quantize_types.h"
#include "src/engine/model/model.h"
#include "src/engine/weights/bound.h"

/* Number of values in a batch. A batch of this size has enough rows for every thread, and needs little memory. */
#define BATCH_VALUES ((size_t)4 << 20)

/* -------------------------------------------------------------------------------------------- what a GGUF file has */

/* Returns the number that a key has for the first layer; 1 if the key is missing. */
static size_t first_number(const fr_gguf *gguf, const char *key) {
    const fr_gguf_value *value = fr_gguf_find(gguf, key);
    bool known = value && value->count > 0 && (value->element == FR_GGUF_U32 || value->element == FR_GGUF_I32);
    int32_t number = known ? fr_gguf_i32(value, 0) : 1;
    return number > 0 ? (size_t)number : 0;
}

/* Gives the number of heads that share a KV head in the first layer; 0 if the layer has no KV heads. */
static size_t shared_heads(const fr_gguf *gguf) {
    size_t kv_heads = first_number(gguf, ".attention.head_count_kv");
    return kv_heads > 0 ? first_number(gguf, ".attention.head_count") / kv_heads : 0;
}

/* Refuses an NVFP4 tensor that has a scale for the whole tensor, because only products apply this scale, and decoding
 * does not. */
static fr_status check_factor(const fr_checkpoint *files, const fr_tensor *tensor) {
    static const char tail[] = ".scale";
    size_t length = strlen(tensor->name), before = length - (sizeof tail - 1);
    char name[256];
    if (length < sizeof tail || strcmp(tensor->name + before, tail) != 0) return FR_OK;
    if ((size_t)snprintf(name, sizeof name, "%.*s.weight", (int)before, tensor->name) >= sizeof name) return FR_OK;
    const fr_tensor *codes = fr_tensors_find(&files->tensors, name);
    if (!codes || codes->type != FR_NVFP4) return FR_OK;
    return fr_fail(FR_UNBUILT, "%s: to quantize tensor %s, NVFP4 scaled by %s, is not built: the published model's is",
                   files->path, name, tensor->name);
}

static fr_status list_gguf(const fr_checkpoint *files, fr_outputs *outputs) {
    int64_t layers;
    const fr_tensors *tensors = &files->tensors;
    if (files->unread.count > 0)
        return fr_fail(FR_INPUT, "%s: tensor %s is of type %s, which is not read", files->path,
                       files->unread.items[0].name, files->unread.items[0].type_name);
    FR_TRY(fr_gguf_int(files->gguf, ".block_count", 0, 1 << 20, 0, &layers));
    outputs->layers = (size_t)layers;
    outputs->gqa = shared_heads(files->gguf);
    for (size_t i = 0; i < tensors->count; i++) {
        if (tensors->items[i].packed)
            return fr_fail(FR_INPUT, "%s: tensor %s is packed: quantize the file that was packed", files->path,
                           tensors->items[i].name);
        FR_TRY(check_factor(files, &tensors->items[i]));
        FR_TRY(fr_outputs_add(outputs, tensors->items[i].name, &tensors->items[i]));
    }
    return FR_OK;
}

/* --------------------------------------------------------------------------------------------------------- metadata */

static bool begins(fr_text key, const char *with) {
    size_t length = strlen(with);
    return key.length >= length && memcmp(key.bytes, with, length) == 0;
}

/* Returns true for a key that is not copied, because the output writes the key itself, or because its value would be
 * wrong for the output. */
static bool is_superseded(fr_text key) {
    return fr_text_is(key, "general.architecture") || fr_text_is(key, "general.file_type") ||
           fr_text_is(key, "general.quantization_version") || fr_text_is(key, "general.alignment") ||
           begins(key, "split.") || begins(key, FR_IMPORTANCES_KEYS);
}

static void copy_metadata(const fr_gguf *gguf, fr_gguf_writer *writer) {
    for (size_t i = 0; i < gguf->count; i++)
        if (!is_superseded(gguf->values[i].key)) fr_gguf_put_value(writer, &gguf->values[i]);
}

/* ------------------------------------------------------------------------------------------------------------- data */

/* Holds the rows that the team works on. */
typedef struct batch {
    const fr_output *output;
    size_t first; /* number of the batch's first row in the output */
    size_t rows, cols;
    const float *importance;   /* [matrices, cols] importances of the columns; NULL: all columns count equally */
    uint8_t *target;           /* the batch's rows, encoded */
    const fr_merge_into *into; /* the products of adapters that are added */
    /* [threads, 3, cols] for each thread: a row of the output, the same row before its columns are reordered, and what
     * adapters add to it */
    float *values;
    size_t *bad;      /* [threads] the first row with a value that can't be written; `rows`: there is none */
    float *bad_value; /* [threads] the value in that row that can't be written */
} batch;

/* Gives the index of the first value that is not finite, or beyond the limit; n if there is none. */
static size_t find_bad(const float *values, size_t n, float limit) {
    for (size_t i = 0; i < n; i++)
        if (!(values[i] >= -limit && values[i] <= limit)) return i;
    return n;
}

/* Gives the number of the source's row that becomes this row. For a vector, gives the number of the value instead. */
static size_t source_of(const fr_output *output, size_t row) {
    return output->reorder.order == FR_COLS_TILED ? row : fr_row_published(&output->reorder, row);
}

/* Returns true if the values of a row are computed from those of the source, or are in another order. */
static bool changes_rows(const batch *b) {
    const fr_output *output = b->output;
    return output->reorder.order == FR_COLS_TILED || output->change != FR_AS_THEY_ARE || output->factors[0].end ||
           b->into->any;
}

/* One row of an output as the source stores it. */
typedef struct stored_row {
    const uint8_t *bytes;
    fr_dtype type;
    const float *scales; /* scales of the blocks, if the row has FP8 codes; NULL: it has another type */
} stored_row;

/* Makes a row in `bytes` from tensors in memory, for a matrix that the source stores in another form than rows. */
static stored_row make_row(const fr_output *output, size_t row, uint8_t *bytes) {
    size_t rows = output->stored->rows, entry = row / rows;
    size_t at = (entry * output->stored->parts + output->part) * rows + row % rows;
    fr_copied_rows(output->stored_in, output->stored, at, at + 1, bytes);
    return (stored_row){bytes, fr_copied_type(output->stored), NULL};
}

/* Finds a row in the source, or makes it in `spare`, which has room for a row of float32 values. */
static stored_row find_row(const batch *b, size_t row, float *spare) {
    const fr_output *output = b->output;
    size_t at;
    if (output->stored) return make_row(output, row, (uint8_t *)(void *)spare);
    if (output->values)
        return (stored_row){(const uint8_t *)output->values + row * fr_dtype_row_bytes(FR_F32, b->cols), FR_F32, NULL};
    fr_output_source from = fr_output_row(output, row, &at);
    const fr_tensor *tensor = from.tensor;
    if (tensor->storage) {
        fr_storage_decode(tensor->storage, at, 0, b->cols, spare);
        return (stored_row){(const uint8_t *)spare, FR_F32, NULL};
    }
    stored_row found = {(const uint8_t *)tensor->data + at * fr_dtype_row_bytes(tensor->type, b->cols), tensor->type,
                        from.scales};
    if (!from.scales) return found;
    size_t rows = (size_t)tensor->shape[tensor->dims - 2]; /* rows of one matrix of a stack */
    found.scales += (at / rows * fr_fp8_blocks(rows) + at % rows / FR_FP8_BLOCK) * fr_fp8_blocks(b->cols);
    return found;
}

/* Decodes row `row` of the source into float32 values, in the output's order. Adds the adapters' products to the row,
 * and multiplies it by its factor. */
static void read_row(const batch *b, const stored_row *source, size_t row, float *values) {
    const fr_output *output = b->output;
    bool moves = output->reorder.order == FR_COLS_TILED;
    float *as_read = moves ? values + b->cols : values;
    if (source->scales)
        fr_fp8_decode(source->bytes, source->scales, as_read, b->cols);
    else if (source->bytes != (const uint8_t *)as_read) /* otherwise the row was already decoded into as_read */
        fr_dtype_decode(source->type, source->bytes, as_read, b->cols);
    if (b->into->any) fr_merge_row(b->into, row, as_read, values + 2 * b->cols);
    for (size_t c = 0; moves && c < b->cols; c++) values[c] = as_read[fr_row_published(&output->reorder, c)];
    for (size_t c = 0; output->change != FR_AS_THEY_ARE && c < b->cols; c++)
        values[c] = fr_value_of(output->change, values[c]);
    size_t part = 0;
    while (part < FR_ROW_FACTORS && output->factors[part].end && row >= output->factors[part].end) part++;
    if (part == FR_ROW_FACTORS || !output->factors[part].end) return;
    for (size_t c = 0; c < b->cols; c++) values[c] *= output->factors[part].factor;
}

/* Returns the importances of the columns of the matrix to which a row belongs. */
static const float *importance_of(const batch *b, size_t row) {
    const fr_output *output = b->output;
    if (!b->importance || output->dims < 3) return b->importance;
    return b->importance + row / (size_t)output->shape[output->dims - 2] * b->cols;
}

static void encode_rows(void *context, const fr_team *team) {
    const batch *b = context;
    size_t begin, end, target_row = fr_dtype_row_bytes(b->output->type, b->cols);
    float *values = b->values + 3 * team->index * b->cols, limit = fr_encode_limit(b->output->type);
    fr_partition(b->rows, 1, team->index, team->count, &begin, &end);
    b->bad[team->index] = b->rows;
    for (size_t row = begin; row < end; row++) {
        size_t from = source_of(b->output, b->first + row);
        stored_row source = find_row(b, from, values + b->cols);
        uint8_t *target = b->target + row * target_row;
        read_row(b, &source, from, values);
        size_t bad = find_bad(values, b->cols, limit);
        if (bad < b->cols) {
            b->bad[team->index] = row;
            b->bad_value[team->index] = values[bad];
            return;
        }
        if (source.type == b->output->type && !changes_rows(b))
            memcpy(target, source.bytes, target_row);
        else
            fr_dtype_encode_weighted(b->output->type, values, importance_of(b, b->first + row), target, b->cols);
    }
}

typedef struct stream {
    const fr_checkpoint *files;
    const fr_importances *importances;
    const fr_merge *merge;
    fr_gguf_writer *writer;
    fr_pool *pool;
    size_t threads;
    fr_progress_fn *progress;
    void *progress_context;
    uint64_t done, total; /* in bytes of the source. done: bytes that are done; total: all bytes */
    bool ended;           /* the progress callback has ended the job */
} stream;

static void release(const stream *s, const fr_tensor *tensor, size_t begin, size_t end) {
    const fr_map *map = &s->files->files[tensor->file];
    size_t at = (size_t)((const uint8_t *)tensor->data - map->bytes);
    fr_map_release(map, at + begin, at + end);
}

/* Reports bytes [begin, end) of the source as done. */
static void advance(stream *s, size_t begin, size_t end) {
    s->done += end - begin;
    if (s->progress) s->ended |= !s->progress(s->progress_context, s->done, s->total);
}

/* Reports rows as done, and releases their pages. Pages of neighbouring rows of the source are released together. */
static void advance_rows(stream *s, const fr_output *output, size_t row, size_t rows, size_t row_bytes) {
    advance(s, 0, rows * row_bytes);
    /* rows of a folder that a quantizer wrote may be spread over pages that are still needed */
    if (!output->source || output->values || output->source->type == FR_STORED) return;
    size_t step = output->experts || output->each ? (size_t)output->shape[output->dims - 2] : row + rows;
    for (size_t end = row + rows, to; row < end; row = to) {
        size_t at;
        const fr_tensor *tensor = fr_output_row(output, row, &at).tensor;
        to = row - row % step + step < end ? row - row % step + step : end;
        release(s, tensor, at * row_bytes, (at + to - row) * row_bytes);
    }
}

/* Finds the first row that can't be written. It is the same row for any number of threads. */
static fr_status check_batch(const batch *b, size_t threads, size_t first_row) {
    for (size_t i = 0; i < threads; i++)
        if (b->bad[i] < b->rows)
            return fr_fail(FR_INPUT, "tensor %s has %g in row %zu: %s can't hold it",
                           b->output->source ? b->output->source->name : b->output->name, (double)b->bad_value[i],
                           first_row + b->bad[i], fr_dtype_name(b->output->type));
    return FR_OK;
}

/* Returns the bytes of a row of `source`. If `source` is NULL, the row has float32 values. */
static size_t source_row_bytes(const fr_tensor *source, size_t cols) {
    if (source && source->type == FR_STORED) return (size_t)(source->bytes / source->shape[0]);
    return fr_dtype_row_bytes(source ? source->type : FR_F32, cols);
}

static fr_status write_rows(stream *s, batch *b, size_t rows, size_t batch_rows) {
    size_t source_row = source_row_bytes(b->output->source, b->cols);
    size_t target_row = fr_dtype_row_bytes(b->output->type, b->cols);
    for (size_t row = 0; row < rows; row += b->rows) {
        b->rows = rows - row < batch_rows ? rows - row : batch_rows;
        b->first = row;
        fr_pool_run(s->pool, encode_rows, b);
        FR_TRY(check_batch(b, s->threads, row));
        FR_TRY(fr_gguf_write_data(s->writer, b->target, b->rows * target_row));
        advance_rows(s, b->output, row, b->rows, source_row);
        if (s->ended) return fr_fail_ended(s->files->path, s->done, s->total);
    }
    return FR_OK;
}

/* Decodes a row of the source into float32 values. */
static void decode_source(const fr_output *output, size_t at, float *row) {
    const fr_tensor *tensor = output->source;
    size_t cols = (size_t)tensor->shape[tensor->dims - 1];
    if (tensor->storage) return fr_storage_decode(tensor->storage, at, 0, cols, row);
    const uint8_t *bytes = (const uint8_t *)tensor->data + at * fr_dtype_row_bytes(tensor->type, cols);
    const float *scales = output->scales;
    if (scales)
        fr_fp8_decode(bytes, scales + at / FR_FP8_BLOCK * fr_fp8_blocks(cols), row, cols);
    else
        fr_dtype_decode(tensor->type, bytes, row, cols);
}

/* Transposes all values of an output [matrices, rows, cols]. In the source, each matrix has `cols` rows, which are the
 * output's columns. */
static void transpose(const fr_output *output, float *row, float *values) {
    size_t matrices = (size_t)output->shape[0], rows = (size_t)output->shape[1], cols = (size_t)output->shape[2];
    for (size_t m = 0; m < matrices; m++, values += rows * cols)
        for (size_t c = 0; c < cols; c++) {
            decode_source(output, m * output->each + output->first + c, row);
            for (size_t r = 0; r < rows; r++) values[r * cols + c] = row[r];
        }
}

/* Writes float values. If the values of a vector change places, it is handled as rows of one value each. */
static fr_status write_numbers(stream *s, const fr_output *output) {
    size_t cols = (size_t)output->shape[output->dims - 1], rows = fr_output_rows(output);
    if (output->reorder.order != FR_ROWS_ALIKE && output->dims == 1) {
        rows = cols;
        cols = 1;
    }
    size_t batch_rows = BATCH_VALUES / cols;
    if (batch_rows < s->threads) batch_rows = s->threads;
    if (batch_rows > rows) batch_rows = rows;
    const fr_merge_into into = fr_merge_find(s->merge, output);
    batch b = {
        .output = output,
        .into = &into,
        .cols = cols,
        .importance = fr_importance_of(s->importances, output),
        .target = malloc(batch_rows * fr_dtype_row_bytes(output->type, cols)),
        .values = malloc(3 * s->threads * cols * sizeof(float)),
        .bad = calloc(s->threads, sizeof(size_t)),
        .bad_value = calloc(s->threads, sizeof(float)),
    };
    bool there = b.target && b.values && b.bad && b.bad_value;
    fr_status status =
        there ? write_rows(s, &b, rows, batch_rows) : fr_fail_memory("rows", (batch_rows + 1) * cols * 4);
    free(b.target);
    free(b.values);
    free(b.bad);
    free(b.bad_value);
    return status;
}

static fr_status write_transposed(stream *s, const fr_output *output) {
    size_t count = fr_output_rows(output) * (size_t)output->shape[2], width = (size_t)output->shape[1];
    float *values = malloc(count * sizeof *values), *row = malloc(width * sizeof *row);
    fr_output given = *output;
    bool there = values && row;
    fr_status status = there ? FR_OK : fr_fail_memory("a transposed tensor", (count + width) * sizeof *values);
    given.values = values;
    if (there) {
        transpose(output, row, values);
        status = write_numbers(s, &given);
        release(s, output->source, 0, (size_t)output->source->bytes);
    }
    free(values);
    free(row);
    return status;
}

/* Writes integers. They are token ids, and there are few of them, so one thread writes them all. */
static fr_status write_integers(stream *s, const fr_output *output) {
    const fr_tensor *source = output->source;
    size_t size = fr_dtype_row_bytes(source->type, 1), count = (size_t)(source->bytes / size);
    const uint8_t *data = source->data;
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = fr_little_endian(data + i * size, size);
        int64_t value = (size == 4 ? (int32_t)(uint32_t)bits : (int64_t)bits) + (output->offsets ? (int64_t)i : 0);
        int32_t narrow = (int32_t)value;
        bool wide = output->type == FR_I64;
        if (narrow != value)
            return fr_fail(FR_INPUT, "tensor %s has %lld at index %zu, which is no token's id", source->name,
                           (long long)value, i);
        FR_TRY(fr_gguf_write_data(s->writer, wide ? (void *)&value : &narrow, wide ? sizeof value : sizeof narrow));
    }
    release(s, source, 0, (size_t)source->bytes);
    advance(s, 0, (size_t)source->bytes);
    return FR_OK;
}

static fr_status write_data(stream *s, const fr_outputs *outputs) {
    for (size_t i = 0; i < outputs->count; i++) {
        const fr_output *output = &outputs->items[i];
        if (output->stored) FR_TRY(fr_copied_fill(output->stored_in, output->stored));
        FR_TRY(output->type >= FR_I32 ? write_integers(s, output)
               : output->transposed   ? write_transposed(s, output)
                                      : write_numbers(s, output));
    }
    return fr_gguf_write_end(s->writer);
}

/* --------------------------------------------------------------------------------------------------- the whole file */

/* Notes how many tensors are quantized a second time, which costs accuracy. */
static void note_quantized(const fr_lab_quantization *how, const fr_outputs *outputs) {
    size_t again = 0;
    char line[160];
    for (size_t i = 0; i < outputs->count; i++) {
        const fr_output *output = &outputs->items[i];
        fr_dtype own = output->source ? output->source->type : FR_F32;
        bool block = own >= FR_FLOAT_TYPES && own < FR_KERNEL_TYPES;
        again += (block || own == FR_STORED) && own != output->type;
    }
    if (again == 0) return;
    snprintf(line, sizeof line,
             "%zu tensors were quantized before: a file made from the float weights is more accurate", again);
    how->note(line);
}

static void take_notes(const fr_lab_quantization *how, const fr_outputs *outputs) {
    if (!how->note) return;
    fr_note_fallbacks(outputs, how->note);
    note_quantized(how, outputs);
}

static uint64_t source_bytes(const fr_output *output) {
    if (!output->source) return fr_output_rows(output) * output->shape[output->dims - 1] * sizeof(float);
    return fr_output_rows(output) * source_row_bytes(output->source, (size_t)output->shape[output->dims - 1]);
}

typedef struct job {
    const fr_lab_quantization *how;
    fr_type_choice choice;
    fr_importances importances;
    fr_merge merge;
    const fr_options *options;
    FILE *out;
} job;

/* Describes a file to be written: its tensors (`outputs`), and the part of a folder from which they come. That part is
 * the model (`export`) or its vision tower (`tower`). Both are NULL if the source is a GGUF file, whose metadata are
 * copied. */
typedef struct contents {
    const fr_checkpoint *files;
    const fr_export *export;
    const fr_tower_export *tower;
    const fr_outputs *outputs;
} contents;

static fr_status write_all(const job *j, const contents *c, fr_gguf_writer *writer, stream *s) {
    const fr_outputs *outputs = c->outputs;
    if (c->tower)
        FR_TRY(fr_tower_export_metadata(c->tower, writer));
    else if (!c->export)
        copy_metadata(c->files->gguf, writer);
    else
        FR_TRY(fr_export_metadata(c->export, outputs, writer));
    fr_gguf_put_u32(writer, "general.quantization_version", 2);
    fr_gguf_put_u32(writer, "general.file_type", fr_file_type(&j->choice));
    fr_importances_put(&j->importances, writer);
    for (size_t i = 0; i < outputs->count; i++) {
        const fr_output *output = &outputs->items[i];
        fr_gguf_put_tensor(writer, output->name, output->type, false, output->dims, output->shape);
        s->total += source_bytes(output);
    }
    FR_TRY(fr_gguf_write_header(writer));
    return write_data(s, outputs);
}

static const char *architecture_of(const contents *c) {
    if (c->tower) return "clip";
    return c->export ? c->export->architecture : c->files->gguf->architecture;
}

static fr_status write_file(const job *j, const contents *c) {
    fr_machine machine;
    fr_plan plan;
    fr_pool *pool;
    fr_gguf_writer writer;
    FR_TRY(fr_plan_from_options(j->options, &machine, &plan));
    FR_TRY(fr_pool_open(&plan, &pool));
    fr_gguf_writer_open(&writer, j->out, architecture_of(c));
    stream s = {.files = c->files,
                .importances = &j->importances,
                .merge = &j->merge,
                .writer = &writer,
                .pool = pool,
                .threads = plan.threads,
                .progress = j->options->progress,
                .progress_context = j->options->progress_context};
    fr_status status = write_all(j, c, &writer, &s);
    fr_gguf_writer_close(&writer);
    fr_pool_close(pool);
    return status;
}

static fr_status quantize(job *j, fr_checkpoint *files) {
    fr_outputs outputs = {0};
    fr_export export = {0};
    bool listed = files->gguf && !j->how->drafter;
    if (!listed && files->rotations)
        return fr_fail(FR_UNBUILT, "%s: to quantize rotated weights of a folder is not built: a GGUF file's is",
                       files->path);
    fr_status status =
        listed ? list_gguf(files, &outputs) : fr_export_open(&export, files, j->how->drafter, j->options, &outputs);
    if (status == FR_OK) {
        fr_outputs_sort(&outputs);
        status = fr_choose_types(&j->choice, &outputs);
        if (listed && strcmp(files->gguf->architecture, "clip") == 0) fr_tower_export_types(j->choice.type, &outputs);
    }
    if (status == FR_OK) status = fr_importances_check(&j->importances, &outputs, j->how->note);
    if (status == FR_OK) status = fr_merge_open(&j->merge, j->how, export.target, files);
    if (status == FR_OK) status = fr_merge_check(&j->merge, &outputs);
    if (status == FR_OK) {
        take_notes(j->how, &outputs);
        status = write_file(j, &(contents){.files = listed ? files : export.files,
                                           .export = listed ? NULL : &export,
                                           .outputs = &outputs});
    }
    fr_merge_close(&j->merge);
    fr_export_close(&export);
    fr_outputs_free(&outputs);
    return status;
}

/* Writes the folder's vision tower. */
static fr_status quantize_tower(const job *j, const fr_checkpoint *files) {
    fr_outputs outputs = {0};
    fr_tower_export tower = {0};
    bool found;
    FR_TRY(fr_tower_export_find(files, &found));
    if (!found) return fr_fail(FR_INPUT, "%s is no folder with a vision tower", files->path);
    fr_status status = fr_tower_export_open(&tower, files, &outputs);
    if (status == FR_OK) {
        fr_outputs_sort(&outputs);
        status = fr_choose_types(&j->choice, &outputs);
        fr_tower_export_types(j->choice.type, &outputs);
    }
    if (status == FR_OK) {
        take_notes(j->how, &outputs);
        status = write_file(j, &(contents){.files = files, .tower = &tower, .outputs = &outputs});
    }
    fr_tower_export_close(&tower);
    fr_outputs_free(&outputs);
    return status;
}

fr_status fr_lab_find_tower(const char *path, bool *found) {
    fr_checkpoint files;
    *found = false;
    if (!path) return fr_fail(FR_USAGE, "fr_lab_find_tower: a path is needed");
    FR_TRY(fr_open_files(&files, path, true));
    fr_status status = fr_tower_export_find(&files, found);
    fr_checkpoint_close(&files);
    return status;
}

fr_status fr_lab_quantize(const char *path, const fr_lab_quantization *how, const fr_options *options, FILE *out) {
    if (!path || !how || !how->type || !out)
        return fr_fail(FR_USAGE, "fr_lab_quantize: a path, a type and a stream are needed");
    fr_options resolved = fr_options_resolve(options);
    job j = {.how = how, .options = &resolved, .out = out};
    fr_checkpoint files;
    FR_TRY(fr_type_choice_read(&j.choice, how));
    uint64_t environment = fr_fpenv_enter();
    fr_status status = how->imatrix ? fr_importances_open(&j.importances, how->imatrix) : FR_OK;
    j.choice.weighted = j.importances.path != NULL;
    if (status == FR_OK) status = fr_open_files(&files, path, true);
    if (status == FR_OK) {
        status = how->tower ? quantize_tower(&j, &files) : quantize(&j, &files);
        fr_checkpoint_close(&files);
    }
    fr_importances_close(&j.importances);
    fr_fpenv_leave(environment);
    return status;
}
