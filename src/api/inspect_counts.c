/* Counts the parameters of a model or drafter, and describes the target that a drafter needs (inspect.h). */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/sizes.h"
#include "formats/storage.h"
#include "src/api/inspect.h"
#include "src/engine/families/architecture.h"

/* Counts the values of a tensor. */
static uint64_t parameters(const fr_tensor *tensor) {
    uint64_t values = 1;
    for (uint32_t d = 0; d < tensor->dims; d++) values *= tensor->shape[d];
    return values;
}

static bool of_a_tower(const fr_tensor *tensor) {
    static const char *const senses[] = {"vision", "visual", "audio"};
    for (size_t i = 0; i < sizeof senses / sizeof *senses; i++)
        if (strstr(tensor->name, senses[i])) return true;
    return false;
}

fr_inspected_counts fr_inspected_count(const fr_inspected *what) {
    const fr_checkpoint *files = what->files;
    fr_inspected_counts counts = {0};
    for (size_t i = 0; i < files->tensors.count; i++) {
        counts.parameters += parameters(&files->tensors.items[i]);
        counts.towers += of_a_tower(&files->tensors.items[i]);
    }
    for (size_t i = 0; i < files->unread.count; i++) counts.towers += of_a_tower(&files->unread.items[i]);
    size_t used = what->weights->count + (what->own ? what->own->weights.count : 0);
    counts.unused = files->tensors.count - used + files->unread.count;
    const fr_weights *weights[] = {what->weights, what->own ? &what->own->weights : NULL};
    for (size_t w = 0; w < 2 && weights[w]; w++)
        for (size_t i = 0; i < weights[w]->count; i++) {
            counts.used_parameters += parameters(weights[w]->bound[i].tensor);
            counts.towers -= of_a_tower(weights[w]->bound[i].tensor);
        }
    return counts;
}

uint64_t fr_lab_model_parameters(const fr_model *model) {
    uint64_t count = 0;
    for (size_t i = 0; model && i < model->weights.count; i++) count += parameters(model->weights.bound[i].tensor);
    return count;
}

const char *fr_weights_main_type(const fr_weights *weights) {
    uint64_t bytes[FR_DTYPE_COUNT] = {0};
    fr_dtype most = FR_F32;
    const char *method = NULL;
    for (size_t i = 0; i < weights->count; i++) {
        const fr_tensor *tensor = weights->bound[i].tensor;
        bytes[tensor->type] += tensor->bytes;
        if (tensor->type == FR_STORED) method = tensor->storage->method;
    }
    for (fr_dtype type = FR_F32; type < FR_DTYPE_COUNT; type++)
        if (bytes[type] > bytes[most]) most = type;
    return most == FR_STORED ? method : fr_dtype_name(most);
}

const char *fr_lab_model_type(const fr_model *model) {
    return model ? fr_weights_main_type(&model->weights) : "";
}

fr_inspected_needs fr_inspected_need(const fr_inspected *what) {
    if (what->mtp) {
        const fr_trunk_spec *spec = &what->mtp->target->trunk.spec;
        return (fr_inspected_needs){.architecture = fr_checkpoint_architecture(what->files),
                                    .hidden = spec->hidden,
                                    .vocab = spec->vocab,
                                    .layers = spec->layers};
    }
    if (what->block) {
        const fr_block_config *c = &((const fr_block_net *)what->block->net)->config;
        fr_inspected_needs needs = {
            .architecture = c->target, .hidden = c->spec.trunk.hidden, .vocab = c->spec.trunk.vocab, .deeper = true};
        for (size_t i = 0; i < c->aux_layers.count; i++) needs.layers = fr_larger(needs.layers, c->aux_layers.layer[i]);
        return needs;
    }
    const fr_eagle *e = what->eagle->net;
    return (fr_inspected_needs){.architecture = e->needs.architecture,
                                .hidden = e->needs.hidden,
                                .vocab = e->trunk.spec.vocab,
                                .layers = e->needs.layers,
                                .deeper = true};
}

const size_t fr_inspected_sizes[FR_INSPECTED_SIZES][2] = {{640, 480}, {1024, 768}, {1920, 1080}, {4032, 3024}};

/* Measures how many multiply-adds of floats a thread does in a second, on rows that fit into the caches. Takes the best
 * of several products, so that other work on the machine has little influence. 0: there is no memory. */
static double measure_rate(const fr_kernels *kernels, fr_dtype type) {
    enum { ROWS = 96, COLS = 1024, FEATURES = 64, TRIALS = 20 };
    size_t row_bytes = fr_dtype_row_bytes(type, COLS);
    float *x = calloc(ROWS * (COLS + 16), sizeof *x), *y = calloc(ROWS * FEATURES, sizeof *y);
    uint8_t *w = calloc(FEATURES, row_bytes);
    double best = 0;
    for (size_t i = 0; i < TRIALS && x && y && w; i++) {
        double before = fr_clock();
        kernels->matmul[type](&(fr_matmul){y, FEATURES, x, COLS + 16, ROWS, w, row_bytes, COLS, FEATURES});
        double seconds = fr_clock() - before, rate = ROWS * COLS * FEATURES / (seconds > 1e-9 ? seconds : 1e-9);
        if (rate > best) best = rate;
    }
    free(x);
    free(y);
    free(w);
    return best;
}

/* Time of a multiply-add of attention over many patches, divided by the time of a multiply-add of a product with
 * weights. Measured on one core (Zen 4, AVX-512), with 3072 patches and heads of width 64: attention does 42
 * multiply-adds in a nanosecond, and the product 51. */
#define ATTENTION 1.2

fr_status fr_inspect_image(const fr_inspected *what, size_t index, fr_inspected_picture *picture) {
    const char *path = what->how->images[index];
    fr_image image;
    fr_image_grid grid;
    fr_vision_work work = {0};
    *picture = (fr_inspected_picture){0};
    if (!what->vision) return fr_fail(FR_INPUT, "%s has no vision tower: it can't see %s", what->files->path, path);
    FR_TRY(fr_image_open(&image, path));
    fr_status status = fr_vision_grid(what->vision, image.width, image.height, &grid);
    if (status == FR_OK) status = fr_vision_count(what->vision, image.width, image.height, &work);
    picture->width = image.width;
    picture->height = image.height;
    fr_image_close(&image);
    FR_TRY(status);
    picture->tokens = grid.rows * grid.columns;
    picture->multiply_adds = work.products + work.attention;
    if (!what->model || work.type >= FR_FLOAT_TYPES) return FR_OK;
    double rate = measure_rate(what->model->kernels, work.type) * (double)what->model->plan.threads;
    if (rate > 0) picture->seconds = (work.products + ATTENTION * work.attention) / rate;
    return FR_OK;
}
