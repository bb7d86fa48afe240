/* Measures a model's speed (model.h). */
#include "bench/model_run.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/error.h"
#include "bench/machine.h"
#include "bench/measure.h"
#include "src/engine/draft/draft_list.h"

/* ------------------------------------------------------------------------------------------------ opening the model */

/* Counts the bytes and parameters of all tensors in the files, as llama-bench does. */
static void count_weights(const fr_model *model, double *bytes, double *parameters) {
    const fr_tensors *tensors = &model->files.tensors;
    *bytes = *parameters = 0;
    for (size_t i = 0; i < tensors->count; i++) {
        double values = 1;
        for (uint32_t d = 0; d < tensors->items[i].dims; d++) values *= (double)tensors->items[i].shape[d];
        *parameters += values;
        *bytes += (double)tensors->items[i].bytes;
    }
}

static void kv_fact(fr_bench_report *report, const char *name, const char *head, fr_dtype type) {
    char word[16];
    snprintf(word, sizeof word, "%s", fr_dtype_name(type));
    for (char *c = word; *c; c++) *c = (char)tolower((unsigned char)*c);
    fr_bench_fact_text(report, name, head, word);
}

/* Writes the facts about the model under llama-bench's names, without those about graphics cards. */
static void model_facts(const fr_bench_run *run) {
    const fr_model *model = run->model;
    fr_bench_report *report = run->report;
    fr_kv_types kv = fr_model_kv_types(model, run->plan->options);
    double bytes, parameters;
    char text[128];
    count_weights(model, &bytes, &parameters);
    snprintf(text, sizeof text, "%s %.2f%c %s", fr_checkpoint_architecture(&model->files),
             parameters / (parameters < 1e9 ? 1e6 : 1e9), parameters < 1e9 ? 'M' : 'B',
             fr_dtype_name(fr_bench_main_type(model)));
    fr_bench_fact_text(report, "build_commit", NULL, fr_version());
    fr_bench_fact_text(report, "gpu_info", NULL, "");
    fr_bench_fact_text(report, "backends", NULL, "CPU");
    fr_bench_fact_text(report, "model_filename", "model", model->files.path);
    fr_bench_fact_text(report, "model_type", "type", text);
    fr_bench_fact_number(report, "model_size", NULL, bytes);
    fr_bench_fact_number(report, NULL, "size, MB", bytes / 1e6);
    fr_bench_fact_number(report, "model_n_params", NULL, parameters);
    if (run->drafter)
        fr_bench_fact_text(report, "drafter_filename", "drafter",
                           run->plan->drafter ? run->plan->drafter : "in the model");
    const fr_options options = fr_options_resolve(run->plan->options);
    size_t chunk = fr_model_chunk(model, &options, true);
    fr_bench_fact_number(report, "n_batch", NULL, (double)chunk);
    fr_bench_fact_number(report, "n_ubatch", "rows of a prompt's forward", (double)chunk);
    kv_fact(report, "type_k", "cached keys", kv.k);
    kv_fact(report, "type_v", "cached values", kv.v);
}

/* Checks the file of a drafter that --spec-type does not use. The file must be a drafter all the same. */
static fr_status check_unused(const fr_bench_run *run) {
    fr_drafter *drafter;
    FR_TRY(fr_drafter_open(run->plan->drafter, run->model, run->plan->options, &drafter));
    fr_drafter_close(drafter);
    return FR_OK;
}

static fr_status open_models(fr_bench_run *run) {
    const fr_bench_model_plan *plan = run->plan;
    fr_bench_doing(run, "loading");
    FR_TRY(fr_model_open(plan->model, plan->options, &run->model));
    bool one = plan->drafter || fr_model_fact(run->model, FR_FACT_MTP_LAYERS) > 0;
    bool wanted = fr_draft_words_take_drafter(plan->spec_type);
    if (wanted && one) FR_TRY(fr_drafter_open(plan->drafter, run->model, plan->options, &run->drafter));
    if (!wanted && plan->drafter) FR_TRY(check_unused(run));
    if (wanted && plan->spec_type && !one)
        return fr_fail(FR_USAGE, "--spec-type %s needs a drafter: -md DRAFTER, or a model with an MTP layer",
                       plan->spec_type);
    if (plan->prompt_folder && !fr_bench_drafts_at_all(run))
        return fr_fail(FR_USAGE, "--prompts are to draft on: give -md DRAFTER, or --spec-type ngram");
    if (plan->drafts_asked && !fr_bench_drafts_at_all(run))
        return fr_fail(FR_USAGE, "--draft-max needs a drafter: -md DRAFTER, or --spec-type ngram");
    snprintf(run->how, sizeof run->how, ", %zu threads, %s", run->model->plan.threads, fr_model_isa(run->model));
    return FR_OK;
}

static size_t largest(const fr_bench_list *list, size_t least) {
    for (size_t i = 0; i < list->count; i++)
        if (list->at[i] > (int64_t)least) least = (size_t)list->at[i];
    return least;
}

/* Opens the session in which forwards are timed, with a context that is long enough for the deepest test. */
static fr_status open_session(fr_bench_run *run) {
    const fr_bench_model_plan *plan = run->plan;
    size_t longest = largest(&plan->generate, largest(&plan->prompts, FR_STEP_MAX));
    for (size_t i = 0; i < plan->both_count; i++)
        if (plan->both[i].prompt + plan->both[i].generate > longest)
            longest = plan->both[i].prompt + plan->both[i].generate;
    run->depths.count = 0;
    for (size_t i = 0; i < plan->depths.count; i++)
        if (!plan->depths_fit || (size_t)plan->depths.at[i] + longest <= run->model->trunk.spec.context_limit)
            run->depths.at[run->depths.count++] = plan->depths.at[i];
    FR_TRY(fr_bench_session(run, 0, largest(&run->depths, 0) + longest, &run->session));
    fr_bench_prompt(run->model, run->session->ids, run->session->context, 0);
    return FR_OK;
}

static void close_all(fr_bench_run *run) {
    fr_bench_prompts_close(&run->prompts);
    fr_session_close(run->session);
    fr_drafter_close(run->drafter);
    fr_model_close(run->model);
    run->session = NULL;
    run->drafter = NULL;
    run->model = NULL;
}

/* ------------------------------------------------------------------------------------------------------ the command */

static void note_depths(const fr_bench_run *run) {
    if (run->depths.count < run->plan->depths.count)
        fr_bench_remark(run->report,
                        "The model's context, %zu, has no room for a test at the deepest of the usual "
                        "contexts.",
                        run->model->trunk.spec.context_limit);
}

static fr_bench_curve begin_curve(const fr_bench_run *run) {
    fr_bench_curve curve = {.depth = run->depths.count ? (size_t)run->depths.at[0] : 0};
    memcpy(curve.how, run->how, sizeof curve.how);
    return curve;
}

static fr_status run_parts(fr_bench_run *run, bool first) {
    FR_TRY(open_models(run));
    FR_TRY(fr_bench_model_read_texts(run));
    FR_TRY(open_session(run));
    if (first) FR_TRY(fr_bench_machine_facts(run->report, NULL, 0));
    if (first) model_facts(run);
    if (first) *run->curve = begin_curve(run);
    fr_bench_model_tests(run);
    note_depths(run);
    FR_TRY(fr_bench_model_drafts(run));
    fr_bench_model_rows(run);
    fr_bench_model_ranks(run);
    fr_session_close(run->session); /* this session's context may be long, so its memory is freed first */
    run->session = NULL;
    FR_TRY(fr_bench_model_phases(run));
    return fr_bench_model_texts(run);
}

static fr_status run_configuration(fr_bench_run *run, const char *isa, int64_t threads, bool first) {
    fr_options *options = run->plan->options;
    if (isa) FR_TRY(fr_options_set_text(options, FR_OPT_ISA, isa));
    if (threads) FR_TRY(fr_options_set(options, FR_OPT_THREADS, threads));
    run->one = run->draft_start = run->draft_step = NAN;
    for (size_t k = 0; k <= FR_STEP_MAX; k++) run->ratio[k] = NAN;
    fr_status status = run_parts(run, first);
    close_all(run);
    return status;
}

fr_status fr_bench_model(const fr_bench_model_plan *plan, fr_bench_report *report, fr_bench_curve *curve) {
    fr_bench_run run = {.plan = plan, .report = report, .curve = curve};
    size_t isas = plan->isa_count ? plan->isa_count : 1, teams = plan->threads.count ? plan->threads.count : 1;
    curve->count = 0;
    for (size_t i = 0; i < isas; i++)
        for (size_t t = 0; t < teams; t++)
            FR_TRY(run_configuration(&run, plan->isa_count ? plan->isas[i] : NULL,
                                     plan->threads.count ? plan->threads.at[t] : 0, i + t == 0));
    if (!run.differs) return FR_OK;
    return fr_fail(FR_NUMERIC, "%s: speculation changed the answer; no speed is told for what differs", plan->model);
}
