/* Writes random weights of a published shape as GGUF, to time engines on models of that size without a download
 * (fr_lab_synth).
 *
 * In: the name of a shape, and a type. Out: a file as llama.cpp's converter writes it. The text of such a model is
 * noise, but its speed and memory are those of the published model. The same arguments give the same bytes. This file
 * makes the numbers and writes the GGUF file; the shapes are in shapes.c, and their tensors in synth_tensors.c.
 *
 * Matrices are normal noise with a standard deviation of 1 / sqrt(cols). Quantizing billions of values would take
 * minutes, so one pool of blocks is quantized for each number of columns. A row consists of two stretches of the pool,
 * each of which begins at a random block. If a row were a single stretch, each row of a large table would occur
 * hundreds of times, and hundreds of logits would be equal. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/fpenv.h"
#include "base/options.h"
#include "forerun_lab.h"
#include "quant/encode.h"
#include "src/convert/quantize_types.h"
#include "src/convert/synth.h"
#include "src/engine/families/config.h"

#define POOL      ((size_t)1 << 18) /* number of values in a pool; it is a whole number of blocks of every type */
#define POOLS_MAX 16 /* limit on the pools that a shape needs, one for each pair of a type and a number of columns */
#define BUFFER    ((size_t)1 << 20)

typedef struct pool {
    fr_dtype type;
    size_t cols;
    uint8_t *blocks; /* POOL values, encoded in the pool's type */
} pool;

/* The file that is being written. */
typedef struct synth {
    fr_dtype type;
    const fr_options *options;
    fr_gguf_writer writer;
    uint64_t random, done;
    pool pools[POOLS_MAX];
    uint8_t *buffer; /* BUFFER bytes */
    fr_status status;
} synth;

/* ------------------------------------------------------------------------------------------------------ the numbers */

/* Gives the next random number by the method of Marsaglia 2003, Xorshift RNGs. */
static uint64_t next_random(synth *s) {
    s->random ^= s->random << 13;
    s->random ^= s->random >> 7;
    return s->random ^= s->random << 17;
}

/* Gives roughly normal noise with a standard deviation of 1: the sum of four uniform numbers. */
static float next_noise(synth *s) {
    uint64_t bits = next_random(s);
    int sum = 0;
    for (int i = 0; i < 4; i++, bits >>= 16) sum += (int)(bits & 0xffff) - 32768;
    return (float)sum * (1.0f / 37837.2f);
}

static fr_status fill_pool(synth *s, pool *p, fr_dtype type, size_t cols) {
    float *values = malloc(POOL * sizeof *values), deviation = 1.0f / sqrtf((float)cols);
    *p = (pool){.type = type, .cols = cols, .blocks = malloc(fr_dtype_row_bytes(type, POOL))};
    if (values && p->blocks) {
        for (size_t i = 0; i < POOL; i++) values[i] = deviation * next_noise(s);
        fr_dtype_encode(type, values, p->blocks, POOL);
    }
    free(values);
    return values && p->blocks ? FR_OK : fr_fail_memory("random blocks", POOL * sizeof *values);
}

static fr_status find_pool(synth *s, fr_dtype type, size_t cols, const pool **found) {
    pool *p = s->pools;
    while (p->cols && (p->type != type || p->cols != cols)) p++;
    *found = p;
    return p->cols ? FR_OK : fill_pool(s, p, type, cols);
}

/* ------------------------------------------------------------------------------------------------------ the tensors */

static void put_bytes(synth *s, const void *bytes, size_t count) {
    s->status = fr_gguf_write_data(&s->writer, bytes, count);
    s->done += count;
    const fr_options *o = s->options;
    if (!o || !o->progress || o->progress(o->progress_context, s->done, s->writer.data_size)) return;
    if (s->status == FR_OK) s->status = fr_fail_ended("a synthetic model", s->done, s->writer.data_size);
}

/* Copies `count` values of the pool, starting at a random block. At the pool's end the copying continues at the pool's
 * beginning. */
static void copy_stretch(synth *s, const pool *p, uint8_t *to, size_t count) {
    size_t block = fr_dtype_row_bytes(p->type, fr_dtype_block(p->type)), size = fr_dtype_row_bytes(p->type, POOL);
    size_t at = next_random(s) % (size / block) * block, first = size - at < count ? size - at : count;
    memcpy(to, p->blocks + at, first);
    memcpy(to + first, p->blocks, count - first);
}

static void copy_row(synth *s, const pool *p, uint8_t *row, size_t cols) {
    size_t block = fr_dtype_block(p->type), half = fr_dtype_row_bytes(p->type, cols / block / 2 * block);
    copy_stretch(s, p, row, half);
    copy_stretch(s, p, row + half, fr_dtype_row_bytes(p->type, cols) - half);
}

static void write_rows(synth *s, fr_dtype type, size_t features, size_t cols) {
    const pool *p;
    size_t row_bytes = fr_dtype_row_bytes(type, cols), batch = BUFFER / row_bytes;
    s->status = find_pool(s, type, cols, &p);
    for (size_t rows; features > 0 && s->status == FR_OK; features -= rows) {
        rows = features < batch ? features : batch;
        for (size_t r = 0; r < rows; r++) copy_row(s, p, s->buffer + r * row_bytes, cols);
        put_bytes(s, s->buffer, rows * row_bytes);
    }
}

static float mean_of(const fr_synth_mean *means, const char *name) {
    for (; means && means->name; means++) {
        size_t length = strlen(name), tail = strlen(means->name);
        if (length >= tail && strcmp(name + length - tail, means->name) == 0) return means->mean;
    }
    return 1;
}

static void write_vector(synth *s, size_t n, float mean) {
    float *values = (float *)(void *)s->buffer;
    for (size_t i = 0; i < n; i++) values[i] = mean * (1.0f + 0.1f * next_noise(s));
    put_bytes(s, values, n * sizeof *values);
}

static fr_status write_tensors(synth *s, const fr_outputs *outputs, const fr_synth_mean *means) {
    for (size_t i = 0; i < outputs->count; i++)
        fr_gguf_put_tensor(&s->writer, outputs->items[i].name, outputs->items[i].type, false, outputs->items[i].dims,
                           outputs->items[i].shape);
    FR_TRY(fr_gguf_write_header(&s->writer));
    for (size_t i = 0; i < outputs->count; i++) {
        const fr_output *o = &outputs->items[i];
        size_t cols = (size_t)o->shape[o->dims - 1];
        if (o->values)
            put_bytes(s, o->values, fr_dtype_row_bytes(o->type, cols));
        else if (o->dims == 1)
            write_vector(s, cols, mean_of(means, o->name));
        else
            write_rows(s, o->type, fr_output_rows(o), cols);
        FR_TRY(s->status);
    }
    return fr_gguf_write_end(&s->writer);
}

/* --------------------------------------------------------------------------------------------------------- the file */

static fr_status check(const fr_synth_order *order) {
    const fr_synth_shape *shape = order->shape;
    if (order->layers < 2 || order->layers > shape->layers)
        return fr_fail(FR_USAGE, "%zu layers: %s takes 2 to %zu", order->layers, shape->name, shape->layers);
    if (order->vocab < FR_SYNTH_LEAST_VOCAB || order->vocab > (size_t)1 << 24)
        return fr_fail(FR_USAGE, "a vocabulary of %zu: it takes %d to 2^24 ids", order->vocab, FR_SYNTH_LEAST_VOCAB);
    size_t unit = shape->family->vocab_unit;
    if (unit && order->vocab % unit)
        return fr_fail(FR_USAGE, "a vocabulary of %zu: %s takes multiples of %zu, the ids of a centroid", order->vocab,
                       shape->name, unit);
    return FR_OK;
}

/* Reduces the number of experts. The number of groups of experts stays the same. */
static fr_status cut_experts(const fr_synth_order *order, fr_trunk_spec *spec) {
    const fr_experts_spec *all = fr_spec_experts(spec);
    if (order->experts == 0) return FR_OK;
    if (!all) return fr_fail(FR_USAGE, "%s has no mixture of experts", order->shape->name);
    size_t unit = all->groups > 1 ? 2 * all->groups : 1, least = all->top_k > unit ? all->top_k : unit,
           most = all->count;
    if (order->experts < least || order->experts > most || order->experts % unit)
        return fr_fail(FR_USAGE, "%zu experts: %s takes multiples of %zu from %zu to %zu", order->experts,
                       order->shape->name, unit, least, most);
    for (size_t i = 0; i <= spec->layers; i++) {
        fr_layer_spec *layer = i < spec->layers ? &spec->layer[i] : &spec->mtp;
        if (layer->experts.count) layer->experts.count = order->experts;
    }
    return FR_OK;
}

static void put_general(synth *s, const fr_synth_order *order) {
    fr_gguf_put_string(&s->writer, "general.type", "model");
    fr_gguf_put_string(&s->writer, "general.name", order->shape->name);
    fr_gguf_put_u32(&s->writer, "general.file_type", fr_file_type(&(fr_type_choice){.type = s->type, .pure = true}));
    fr_gguf_put_u32(&s->writer, "general.quantization_version", 2);
}

static fr_status write_model(synth *s, const fr_synth_order *order, fr_synth_model *model) {
    const fr_synth_shape *shape = order->shape;
    const fr_synth_family *of = shape->family;
    FR_TRY(fr_synth_read(order, model));
    FR_TRY(cut_experts(order, &model->spec));
    put_general(s, order);
    FR_TRY(fr_synth_list(shape, model));
    if (of->add_drafter)
        FR_TRY(of->add_drafter(order, model, &s->writer));
    else
        FR_TRY(fr_family_put(of->family, &model->spec, of->mtp_layers, shape->name, &s->writer));
    fr_synth_put_tokenizer(of, order->vocab, &s->writer);
    fr_choose_plain_types(s->type, &model->outputs);
    if (order->note) fr_note_fallbacks(&model->outputs, order->note);
    return write_tensors(s, &model->outputs, of->means);
}

static fr_status write_file(const fr_lab_shape *what, const fr_options *options, FILE *out) {
    synth s = {.options = options, .random = 0x9e3779b97f4a7c15u};
    fr_synth_order order = {0};
    fr_synth_model model = {0};
    FR_TRY(fr_synth_find(what->name, &order.shape));
    FR_TRY(fr_type_read(what->type, &s.type));
    const fr_synth_family *of = order.shape->family;
    order.vocab = what->vocab ? what->vocab : order.shape->vocab;
    order.layers = what->layers ? what->layers : order.shape->layers;
    order.experts = what->experts;
    order.note = what->note;
    FR_TRY(check(&order));
    s.buffer = malloc(BUFFER);
    if (!s.buffer) return fr_fail_memory("random weights", BUFFER);
    fr_gguf_writer_open(&s.writer, out, of->architecture ? of->architecture : of->family->gguf);
    fr_status status = write_model(&s, &order, &model);
    fr_gguf_writer_close(&s.writer);
    for (size_t i = 0; i < POOLS_MAX; i++) free(s.pools[i].blocks);
    fr_outputs_free(&model.outputs);
    json_decref(model.config);
    free(model.spec.layer);
    free(model.ids);
    free(s.buffer);
    return status;
}

fr_status fr_lab_synth(const fr_lab_shape *shape, const fr_options *options, FILE *out) {
    if (!shape || !shape->name || !shape->type || !out)
        return fr_fail(FR_USAGE, "fr_lab_synth: a shape, a type and a stream are needed");
    uint64_t environment = fr_fpenv_enter();
    fr_status status = write_file(shape, options, out);
    fr_fpenv_leave(environment);
    return status;
}
