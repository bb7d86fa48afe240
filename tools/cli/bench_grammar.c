/* Runs forerun bench grammar: fills the plan of bench/grammar.h from the command line. */
#include "tools/cli/bench_grammar.h"

#include "bench/grammar.h"
#include "tools/cli/loaded.h"
#include "tools/cli/output.h"

enum { REPETITIONS = 5, SPREAD = 20 };

int fr_bench_grammar_part(const fr_arguments *args, fr_bench_report *report) {
    if (!args->given[FR_ARG_MODEL]) return fr_wrong_usage("bench grammar needs -m MODEL");
    fr_bench_grammar_plan plan = {
        .model = args->text[FR_ARG_MODEL],
        .repetitions =
            args->given[FR_ARG_BENCH_REPETITIONS] ? (size_t)args->number[FR_ARG_BENCH_REPETITIONS] : REPETITIONS,
        .max_spread = args->given[FR_ARG_BENCH_SPREAD] ? args->real[FR_ARG_BENCH_SPREAD] : SPREAD,
    };
    int code = fr_loaded_options(&plan.options, args);
    if (code) return code;
    code = fr_exit_status(fr_bench_grammar(report, &plan));
    fr_options_free(plan.options);
    return code;
}
