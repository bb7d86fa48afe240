/* Runs the tests that llama-bench has too: prompts and decoding. At each depth of the context, pp512 runs 512 ids at
 * once, tg128 runs 128 ids one after the other, and pp512+tg128 does the two one after the other in one timing.
 *
 * In: an opened model, lengths, depths. Out: a table. Before each test one prompt, or one id, is run untimed as a
 * warm-up. */
#include "bench/measure.h"
#include "bench/model_run.h"

static double time_once(fr_session *session, size_t prompt, size_t generate, size_t depth) {
    double seconds = prompt ? fr_bench_prefill(session, prompt, depth) : 0;
    return generate ? seconds + fr_bench_decode(session, generate, depth + prompt) : seconds;
}

static void bench_test(fr_bench_run *run, size_t prompt, size_t generate, size_t depth) {
    double seconds[FR_BENCH_TIMINGS];
    char name[64], first[24] = "", second[24] = "", words[50];
    if (prompt) snprintf(first, sizeof first, "pp%zu", prompt);
    if (generate) snprintf(second, sizeof second, "tg%zu", generate);
    snprintf(words, sizeof words, "%s%s%s", first, prompt && generate ? "+" : "", second);
    fr_bench_name(name, sizeof name, words, depth);
    fr_bench_doing(run, name);
    time_once(run->session, prompt, generate ? 1 : 0, depth);
    for (size_t i = 0; i < run->plan->repetitions; i++) seconds[i] = time_once(run->session, prompt, generate, depth);
    fr_bench_begin_row(run, &(fr_bench_test){.name = name,
                                             .prompt = prompt,
                                             .generate = generate,
                                             .depth = depth,
                                             .tokens = prompt + generate,
                                             .seconds = seconds,
                                             .count = run->plan->repetitions});
}

static void bench_depth(fr_bench_run *run, size_t depth) {
    const fr_bench_model_plan *plan = run->plan;
    if (depth) fr_bench_doing(run, "filling the context");
    fr_bench_fill(run->session, depth);
    for (size_t i = 0; i < plan->prompts.count; i++)
        if (plan->prompts.at[i]) bench_test(run, (size_t)plan->prompts.at[i], 0, depth);
    for (size_t i = 0; i < plan->generate.count; i++)
        if (plan->generate.at[i]) bench_test(run, 0, (size_t)plan->generate.at[i], depth);
    for (size_t i = 0; i < plan->both_count; i++) bench_test(run, plan->both[i].prompt, plan->both[i].generate, depth);
}

static bool any(const fr_bench_list *list) {
    for (size_t i = 0; i < list->count; i++)
        if (list->at[i]) return true;
    return false;
}

void fr_bench_model_tests(fr_bench_run *run) {
    if (!any(&run->plan->prompts) && !any(&run->plan->generate) && !run->plan->both_count) return;
    fr_bench_begin(run, "test", "Prompts and decode", NULL, 0);
    for (size_t i = 0; i < run->depths.count; i++) bench_depth(run, (size_t)run->depths.at[i]);
    fr_bench_end(run);
}
