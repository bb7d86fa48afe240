/* Implements forerun bench: runs one of the benchmarks in bench/. */
#include <string.h>

#include "bench/machine.h"
#include "bench/table.h"
#include "tools/cli/bench_gathers.h"
#include "tools/cli/bench_grammar.h"
#include "tools/cli/bench_kernels.h"
#include "tools/cli/bench_model.h"
#include "tools/cli/bench_neighbours.h"
#include "tools/cli/output.h"
#include "tools/cli/verbs.h"

static fr_bench_form form_of(const fr_arguments *args) {
    static const char *const words[] = {"md", "csv", "json", "jsonl", "sql"};
    fr_bench_form form = FR_BENCH_MD;
    while (args->given[FR_ARG_BENCH_FORM] && strcmp(words[form], args->text[FR_ARG_BENCH_FORM]) != 0) form++;
    return form;
}

static int bench_machine(const fr_arguments *args, fr_bench_report *report) {
    int64_t threads[64];
    return fr_exit_status(fr_bench_machine(
        report,
        &(fr_bench_machine_options){
            .threads = threads,
            .thread_count = fr_arguments_numbers(args, FR_ARG_BENCH_THREADS, threads, 64),
            .isas = args->text[FR_ARG_BENCH_ISA],
            .pin = !args->given[FR_ARG_NO_PIN],
            .numa = !args->given[FR_ARG_NUMA] || strcmp(args->text[FR_ARG_NUMA], "off") != 0,
            .repetitions = args->given[FR_ARG_BENCH_REPETITIONS] ? (size_t)args->number[FR_ARG_BENCH_REPETITIONS] : 15,
            .max_spread = args->given[FR_ARG_BENCH_SPREAD] ? args->real[FR_ARG_BENCH_SPREAD] : 20,
        }));
}

int fr_verb_bench(const fr_arguments *args) {
    static const struct {
        const char *word;
        int (*run)(const fr_arguments *args, fr_bench_report *report);
    } parts[] = {{"machine", bench_machine},         {"kernels", fr_bench_kernels_part},
                 {"model", fr_bench_model_part},     {"neighbours", fr_bench_neighbours_part},
                 {"grammar", fr_bench_grammar_part}, {"ranks", fr_bench_gathers_part}};
    if (!args->given[FR_ARG_BENCH_PART] && args->given[FR_ARG_MODEL])
        return fr_wrong_usage("bench what? forerun bench model -m FILE measures a model");
    if (!args->given[FR_ARG_BENCH_PART])
        return fr_wrong_usage("bench what? machine, kernels, model, neighbours, grammar or ranks");
    size_t part = 0;
    while (strcmp(parts[part].word, args->text[FR_ARG_BENCH_PART]) != 0) part++;
    fr_writer out;
    int code = fr_writer_open(&out, "-");
    if (code) return code;
    fr_bench_report *report = fr_bench_report_open(out.file, form_of(args));
    if (!report) return fr_bad_input("out of memory");
    code = parts[part].run(args, report);
    fr_bench_report_close(report);
    int written = fr_writer_close(&out);
    return code ? code : written;
}
