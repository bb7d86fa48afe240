/* Whole forwards, timed: see measure.h. */
#include "bench/measure.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/limits.h"

void fr_bench_require(fr_status status) {
    if (status == FR_OK) return;
    fprintf(stderr, "bench: %s\n", fr_last_error());
    exit(1);
}

void fr_bench_prompt(const fr_model *model, int32_t *ids, size_t count, size_t number) {
    for (size_t i = 0; i < count; i++) ids[i] = (int32_t)((i * i * 31 + 7 * i + 2 + 977 * number) % model->vocab);
}

double fr_bench_forward(fr_session *s, size_t rows, size_t position) {
    fr_forward f = {.model = s->model,
                    .pass = s->pass,
                    .kv = &s->kv,
                    .ids = s->ids,
                    .rows = rows,
                    .position = (int64_t)position,
                    .hidden = s->hidden,
                    .head_rows = rows,
                    .logits = s->logits,
                    .best = s->best};
    double start = fr_clock();
    fr_forward_run(s->pool, &f);
    return fr_clock() - start;
}

double fr_bench_verify_ratio(fr_session *session, size_t rows, size_t position, double *one) {
    double ratios[FR_BENCH_PAIRS], ones[FR_BENCH_PAIRS];
    fr_bench_forward(session, rows, position);
    for (size_t pair = 0; pair < FR_BENCH_PAIRS; pair++) {
        ones[pair] = fr_bench_forward(session, 1, position);
        ratios[pair] = fr_bench_forward(session, rows, position) / ones[pair];
    }
    *one = fr_bench_median(ones, FR_BENCH_PAIRS);
    return fr_bench_median(ratios, FR_BENCH_PAIRS);
}

double fr_bench_streamed_bytes(const fr_model *model) {
    double bytes = 0;
    for (size_t i = 0; i < model->weights.count; i++)
        if (model->weights.bound[i].access == FR_STREAMED) bytes += (double)model->weights.bound[i].tensor->bytes;
    return bytes;
}

double fr_bench_streamed_macs(const fr_model *model) {
    double macs = 0;
    for (size_t i = 0; i < model->weights.count; i++) {
        const fr_tensor *tensor = model->weights.bound[i].tensor;
        double values = 1;
        for (uint32_t d = 0; d < tensor->dims; d++) values *= (double)tensor->shape[d];
        if (model->weights.bound[i].access == FR_STREAMED && tensor->dims > 1) macs += values;
    }
    return macs;
}
