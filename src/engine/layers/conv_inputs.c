/* Finds the inputs of convolutions over positions, and keeps the inputs that later forwards need. See parts.h.
 *
 * In: the rows' inputs, and the rings of timelines (recurrent.h). Out: inputs by position. The rings are filled, and
 * copies for checkpoints are made. */
#include <string.h>

#include "base/sizes.h"
#include "src/engine/layers/parts.h"

void fr_conv_layout(fr_activations *a, fr_recurrent_shape shape, fr_arena *arena, size_t max_rows) {
    fr_conv_rows c = {.width = shape.channels + shape.gates};
    fr_conv_rows *place = fr_arena_take(arena, 1, sizeof *place);
    c.input = fr_arena_take(arena, max_rows * c.width, sizeof *c.input);
    c.spans = fr_arena_take(arena, max_rows, sizeof *c.spans);
    a->conv = place;
    if (place) *place = c;
}

static fr_conv_span *span_of(fr_conv_rows *c, fr_kv *kv) {
    for (size_t i = 0; i < c->span_count; i++)
        if (c->spans[i].kv == kv) return &c->spans[i];
    c->spans[c->span_count] = (fr_conv_span){.kv = kv, .last = -1};
    return &c->spans[c->span_count++];
}

void fr_conv_begin(const fr_activations *a) {
    fr_conv_rows *c = a->conv;
    const fr_batch *b = &a->batch;
    c->span_count = 0;
    for (size_t r = 0; r < b->count; r++) {
        fr_conv_span *span = span_of(c, b->timelines[b->rows[r].timeline]);
        if (span->last < 0 || b->rows[span->last].position < b->rows[r].position) span->last = (int32_t)r;
    }
    for (size_t i = 0; i < c->span_count; i++) {
        int32_t r = c->spans[i].last;
        while (b->rows[r].parent >= 0) r = b->rows[r].parent;
        c->spans[i].position = (size_t)b->rows[r].position;
    }
}

void fr_conv_collect(const fr_activations *a, const fr_recurrent *ring, const fr_recurrent_layer *layer,
                     size_t position, int32_t row, const float **inputs) {
    size_t conv_kernel = layer->shape.conv_kernel;
    for (size_t back = 0; back < conv_kernel; back++) {
        const float *input = NULL;
        if (row >= 0)
            input = a->conv->input + (size_t)row * a->conv->width;
        else if (position >= back)
            input = fr_recurrent_slot(ring, layer, position - back);
        inputs[conv_kernel - 1 - back] = input;
        if (row >= 0) row = a->batch.rows[row].parent;
    }
}

void fr_conv_save(const fr_team *team, const fr_activations *a, size_t state) {
    const float *inputs[FR_CONV_KERNEL_MAX];
    for (size_t s = team->index; s < a->conv->span_count; s += team->count) {
        const fr_conv_span *span = &a->conv->spans[s];
        const fr_recurrent *r = &span->kv->recurrent;
        const fr_recurrent_layer *layer = &r->layers[state];
        size_t channels = layer->shape.channels;
        for (size_t i = 0; i < r->points; i++) {
            size_t last = r->point[i].position - 1;
            float *history = (float *)r->point[i].page + layer->history_at;
            int32_t row = span->last;
            while (row >= 0 && (size_t)a->batch.rows[row].position > last) row = a->batch.rows[row].parent;
            fr_conv_collect(a, r, layer, last, row, inputs);
            for (size_t t = 1; t < layer->shape.conv_kernel; t++)
                if (inputs[t]) memcpy(history + (t - 1) * channels, inputs[t], channels * sizeof *history);
        }
    }
}

void fr_conv_keep(const fr_team *team, const fr_activations *a, size_t state) {
    const fr_conv_rows *c = a->conv;
    for (size_t s = team->index; s < c->span_count; s += team->count) {
        const fr_recurrent *r = &c->spans[s].kv->recurrent;
        const fr_recurrent_layer *layer = &r->layers[state];
        size_t at = fr_larger(r->certain, r->at);
        for (int32_t row = c->spans[s].last; row >= 0; row = a->batch.rows[row].parent) {
            size_t position = (size_t)a->batch.rows[row].position;
            if (position + layer->shape.conv_kernel <= at) break;
            memcpy(fr_recurrent_slot(r, layer, position), c->input + (size_t)row * c->width,
                   c->width * sizeof *c->input);
        }
    }
}
