/* Prompts and decode, the tests that llama-bench has: pp512 runs 512 ids from the context's depth on, tg128 runs 128
 * ids one after the other.
 *
 * In: an opened model, lengths, depths. Out: a table. A prompt is warm after one run of it, decode after one id. */
#include "bench/measure.h"
#include "bench/model_run.h"

typedef double timing_fn(fr_session *session, size_t count, size_t position);

static void bench_test(fr_bench_run *run, bool generate, size_t count, size_t depth) {
    double seconds[FR_BENCH_TIMINGS];
    char name[64], words[32];
    timing_fn *time = generate ? fr_bench_decode : fr_bench_prefill;
    snprintf(words, sizeof words, "%s%zu", generate ? "tg" : "pp", count);
    fr_bench_name(name, sizeof name, words, depth);
    fr_bench_doing(run, name);
    time(run->session, generate ? 1 : count, depth);
    for (size_t i = 0; i < run->plan->repetitions; i++) seconds[i] = time(run->session, count, depth);
    fr_bench_begin_row(run, &(fr_bench_test){.name = name,
                                             .prompt = generate ? 0 : count,
                                             .generate = generate ? count : 0,
                                             .depth = depth,
                                             .tokens = count,
                                             .seconds = seconds,
                                             .count = run->plan->repetitions});
}

static void bench_depth(fr_bench_run *run, size_t depth) {
    const fr_bench_model_plan *plan = run->plan;
    if (depth) fr_bench_doing(run, "filling the context");
    fr_bench_fill(run->session, depth);
    for (size_t i = 0; i < plan->prompts.count; i++)
        if (plan->prompts.at[i]) bench_test(run, false, (size_t)plan->prompts.at[i], depth);
    for (size_t i = 0; i < plan->generate.count; i++)
        if (plan->generate.at[i]) bench_test(run, true, (size_t)plan->generate.at[i], depth);
}

static bool any(const fr_bench_list *list) {
    for (size_t i = 0; i < list->count; i++)
        if (list->at[i]) return true;
    return false;
}

void fr_bench_model_tests(fr_bench_run *run) {
    if (!any(&run->plan->prompts) && !any(&run->plan->generate)) return;
    fr_bench_begin(run, "test", "Prompts and decode", NULL, 0);
    for (size_t i = 0; i < run->depths.count; i++) bench_depth(run, (size_t)run->depths.at[i]);
    fr_bench_end(run);
}
