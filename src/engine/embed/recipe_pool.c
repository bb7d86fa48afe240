/* Combines a text's rows into one, and runs the recipe's steps: see recipe.h. */
#include <math.h>
#include <string.h>

#include "base/sizes.h"
#include "src/engine/embed/recipe.h"

enum { COLUMNS = 16 }; /* values that are summed together */

/* Sums up the rows from `from` on, and divides the sum. If rows are weighted, each row is first multiplied by its
 * position. */
static void pool_sum(fr_pool_mode mode, const float *rows, size_t from, size_t count, size_t hidden, float *pooled) {
    double weights = 0;
    for (size_t r = from; r < count; r++) weights += mode == FR_POOL_WEIGHTED ? (double)(r + 1) : 1.0;
    double divisor = mode == FR_POOL_MEAN_SQRT ? sqrt(weights) : weights;
    for (size_t first = 0; first < hidden; first += COLUMNS) {
        size_t columns = fr_smaller(COLUMNS, hidden - first);
        double sums[COLUMNS] = {0};
        for (size_t r = from; r < count; r++) {
            double weight = mode == FR_POOL_WEIGHTED ? (double)(r + 1) : 1.0;
            for (size_t i = 0; i < columns; i++) sums[i] += (double)rows[r * hidden + first + i] * weight;
        }
        for (size_t i = 0; i < columns; i++) pooled[first + i] = from < count ? (float)(sums[i] / divisor) : 0;
    }
}

void fr_recipe_pool(const fr_recipe *recipe, const float *rows, size_t count, size_t hidden, size_t skipped,
                    float *pooled) {
    size_t from = recipe->skips_prompt ? fr_smaller(skipped, count) : 0;
    /* If the text after the prompt is empty, all masks of sentence-transformers are 0. */
    bool none = from == count;
    for (size_t m = 0; m < recipe->mode_count; m++, pooled += hidden) {
        switch (recipe->modes[m]) {
        case FR_POOL_CLS: memcpy(pooled, rows + (none ? 0 : from) * hidden, hidden * sizeof *pooled); break;
        case FR_POOL_LAST:
            for (size_t i = 0; i < hidden; i++) pooled[i] = none ? 0 : rows[(count - 1) * hidden + i];
            break;
        case FR_POOL_MAX:
            for (size_t i = 0; i < hidden; i++) pooled[i] = -INFINITY;
            for (size_t r = from; r < count; r++)
                for (size_t i = 0; i < hidden; i++)
                    if (rows[r * hidden + i] > pooled[i]) pooled[i] = rows[r * hidden + i];
            break;
        default: pool_sum(recipe->modes[m], rows, from, count, hidden, pooled); break;
        }
    }
}

void fr_row_normalize(float *row, size_t n) {
    double squares = 0;
    for (size_t i = 0; i < n; i++) squares += (double)row[i] * (double)row[i];
    double scale = squares > 0 ? 1.0 / sqrt(squares) : 0.0;
    for (size_t i = 0; i < n; i++) row[i] = (float)((double)row[i] * scale);
}

float fr_dense_activate(const fr_kernels *kernels, fr_dense_activation activation, float x) {
    const float one = 1.0F;
    float y = x;
    switch (activation) {
    case FR_DENSE_IDENTITY: break;
    case FR_DENSE_TANH: kernels->tanh(&y, &x, 1); break;
    case FR_DENSE_GELU: kernels->gelu_erf(&y, &x, 1); break;
    case FR_DENSE_SILU: kernels->silu_mul(&y, &x, &one, 1); break;
    case FR_DENSE_RELU: y = x > 0 ? x : 0; break;
    case FR_DENSE_SIGMOID: kernels->sigmoid_mul(&y, &one, &x, 1); break;
    }
    return y;
}

static void multiply(const fr_kernels *kernels, const float *weight, size_t in, size_t out, const float *x, float *y) {
    kernels->matmul[FR_F32](&(fr_matmul){.y = y,
                                         .y_stride = out,
                                         .x = x,
                                         .x_stride = in,
                                         .rows = 1,
                                         .w = weight,
                                         .w_stride = in * sizeof(float),
                                         .cols = in,
                                         .features = out});
}

size_t fr_recipe_widest(const fr_recipe *recipe, size_t hidden) {
    size_t widest = hidden * fr_larger(recipe->mode_count, 1);
    for (size_t i = 0; i < recipe->step_count; i++)
        widest = fr_larger(widest, fr_larger(recipe->steps[i].in, 2 * recipe->steps[i].out));
    return widest;
}

float *fr_recipe_finish(const fr_recipe *recipe, const fr_kernels *kernels, float *row, float *other, bool bare) {
    for (size_t i = 0; i < recipe->step_count; i++) {
        const fr_recipe_step *s = &recipe->steps[i];
        if (s->kind == FR_STEP_NORMALIZE) {
            if (!bare || i + 1 < recipe->step_count) fr_row_normalize(row, s->in);
            continue;
        }
        if (s->kind == FR_STEP_LAYER_NORM) {
            kernels->layernorm(row, row, s->weight, s->bias, s->in, 1e-5F);
            continue;
        }
        multiply(kernels, s->weight, s->in, s->out, row, other);
        if (s->bias) kernels->add(other, s->bias, s->out);
        for (size_t o = 0; o < s->out; o++) other[o] = fr_dense_activate(kernels, s->activation, other[o]);
        if (s->residual) multiply(kernels, s->residual, s->in, s->out, row, other + s->out);
        if (s->adds_input) kernels->add(other, s->residual ? other + s->out : row, s->out);
        float *swapped = row;
        row = other;
        other = swapped;
    }
    return row;
}
