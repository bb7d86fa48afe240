/* Tests `forerun bench model`: its output and the arguments that it refuses. If drafts change an answer, the bench must
 * give no speed for it.
 *
 * This program is linked with a wrapper around fr_accept_greedy. The wrapper can accept one draft too many, so that
 * drafts change the answer. */
/* suite: threads alone native no-valgrind links=bench wraps=fr_accept_greedy */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/measure.h"
#include "bench/model_run.h"
#include "bench/rank_shares.h"
#include "tests/support/command.h"
#include "src/engine/session/accept.h"
#include "tests/support/suite.h"

#define BENCH   "bench model " DEMO
#define MIXTURE "tests/data/models/gemma4-moe"
#define DFLASH  "tests/data/dflash/"
#define QUICK   "-p 0 -n 8 -d 0 --rows 0 -r 3 --max-spread 1000000 -o json "

static bool broken;

size_t __real_fr_accept_greedy(const int64_t *choices, const int32_t *drafts, size_t count);
size_t __wrap_fr_accept_greedy(const int64_t *choices, const int32_t *drafts, size_t count);

size_t __wrap_fr_accept_greedy(const int64_t *choices, const int32_t *drafts, size_t count) {
    size_t stood = __real_fr_accept_greedy(choices, drafts, count);
    return broken && stood < count ? stood + 1 : stood;
}

static json_t *parse(const char *text) {
    json_error_t error;
    json_t *rows = json_loads(text, 0, &error);
    ck_assert_msg(rows, "line %d: %s", error.line, error.text);
    ck_assert(json_is_array(rows));
    return rows;
}

static json_t *bench_of(const char *verb, const char *options) {
    fr_command command = fr_command_ok("%s %s", verb, options);
    json_t *rows = parse(command.out);
    fr_command_free(&command);
    return rows;
}

static json_t *bench(const char *options) {
    return bench_of(BENCH, options);
}

static const char *text_of(const json_t *row, const char *key) {
    const json_t *value = fr_json_get(row, key);
    ck_assert_msg(json_is_string(value), "%s is no text", key);
    return json_string_value(value);
}

static double number_of(const json_t *row, const char *key) {
    const json_t *value = fr_json_get(row, key);
    ck_assert_msg(json_is_number(value), "%s is no number", key);
    return json_number_value(value);
}

/* Returns the line of the tables about a measurement. If there are several such lines, returns the last one. */
static const json_t *row_of(const json_t *rows, const char *test) {
    const json_t *found = NULL, *row;
    size_t i;
    json_array_foreach (rows, i, row) {
        if (strcmp(text_of(row, "test"), test) == 0) found = row;
    }
    ck_assert_msg(found, "no row %s", test);
    return found;
}

/* --------------------------------------------------------------------------------------------- llama-bench's fields */

static void check_fields(const json_t *row) {
    static const char *const texts[] = {"build_commit", "cpu_info", "gpu_info", "backends", "model_filename",
                                        "model_type",   "type_k",   "type_v",   "test_time"};
    static const char *const numbers[] = {"model_size", "model_n_params", "n_batch", "n_ubatch",
                                          "n_threads",  "n_prompt",       "n_gen",   "n_depth",
                                          "avg_ns",     "stddev_ns",      "avg_ts",  "stddev_ts"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) text_of(row, texts[i]);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) number_of(row, numbers[i]);
}

/* Checks a line of the tables with three samples. The means and the standard deviation must follow from the samples by
 * the usual formulas. */
static void check_samples(const json_t *row, double tokens) {
    const json_t *ns = fr_json_get(row, "samples_ns"), *rates = fr_json_get(row, "samples_ts");
    double sum = 0, rate = 0, squares = 0, median;
    ck_assert_uint_eq(json_array_size(ns), 3);
    ck_assert_uint_eq(json_array_size(rates), 3);
    for (size_t i = 0; i < 3; i++) {
        double n = json_number_value(json_array_get(ns, i)), r = json_number_value(json_array_get(rates, i));
        ck_assert_double_gt(n, 0);
        ck_assert_double_eq_tol(n * r, 1e9 * tokens, 1e3 * tokens);
        sum += n;
        rate += r;
    }
    for (size_t i = 0; i < 3; i++) {
        double r = json_number_value(json_array_get(rates, i)) - rate / 3;
        squares += r * r;
    }
    median = number_of(row, "median_ts");
    ck_assert_double_eq_tol(number_of(row, "avg_ns"), sum / 3, 1);
    ck_assert_double_eq_tol(number_of(row, "avg_ts"), rate / 3, 1e-6 * rate);
    ck_assert_double_eq_tol(number_of(row, "stddev_ts"), sqrt(squares / 2), 1e-6 * rate);
    ck_assert_double_eq_tol(number_of(row, "median_ns") * median, 1e9 * tokens, 1e3 * tokens);
}

START_TEST(prompts_and_decode_have_llama_benchs_fields_and_names) {
    static const struct {
        const char *name;
        int prompt, generate, depth;
    } tests[] = {{"pp70", 70, 0, 0}, {"tg9", 0, 9, 0}, {"pp70 @ d600", 70, 0, 600}, {"tg9 @ d600", 0, 9, 600}};
    json_t *rows = bench("-p 70 -n 9 -d 0,600 --rows 0 -r 3 --max-spread 1000000 -o json -t 1 -ctk f16");
    ck_assert_uint_eq(json_array_size(rows), 4);
    for (size_t i = 0; i < 4; i++) {
        const json_t *row = json_array_get(rows, i);
        ck_assert_str_eq(text_of(row, "test"), tests[i].name);
        ck_assert_double_eq(number_of(row, "n_prompt"), tests[i].prompt);
        ck_assert_double_eq(number_of(row, "n_gen"), tests[i].generate);
        ck_assert_double_eq(number_of(row, "n_depth"), tests[i].depth);
        ck_assert_double_eq(number_of(row, "n_threads"), 1);
        ck_assert_str_eq(text_of(row, "type_k"), "f16");
        ck_assert_str_eq(text_of(row, "type_v"), "f32");
        check_fields(row);
        check_samples(row, tests[i].prompt + tests[i].generate);
    }
    json_decref(rows);
}
END_TEST

/* -pg P,N measures a prompt of P tokens and the N tokens that are generated after it, as one test. The tests must have
 * llama-bench's names (ppP+tgN) and llama-bench's rates, which count all P + N tokens. */
START_TEST(a_prompt_and_its_generation_are_timed_as_one) {
    static const struct {
        const char *name;
        int prompt, generate, depth;
    } tests[] = {{"pp70+tg9", 70, 9, 0},
                 {"pp1+tg20", 1, 20, 0},
                 {"pp70+tg9 @ d100", 70, 9, 100},
                 {"pp1+tg20 @ d100", 1, 20, 100}};
    json_t *rows = bench("-pg 70,9 -pg 1,20 -p 0 -n 0 -d 0,100 --rows 0 -r 3 --max-spread 1000000 -o json -t 1");
    ck_assert_uint_eq(json_array_size(rows), 4);
    for (size_t i = 0; i < 4; i++) {
        const json_t *row = json_array_get(rows, i);
        ck_assert_str_eq(text_of(row, "test"), tests[i].name);
        ck_assert_double_eq(number_of(row, "n_prompt"), tests[i].prompt);
        ck_assert_double_eq(number_of(row, "n_gen"), tests[i].generate);
        ck_assert_double_eq(number_of(row, "n_depth"), tests[i].depth);
        check_samples(row, tests[i].prompt + tests[i].generate);
    }
    json_decref(rows);
}
END_TEST

START_TEST(every_form_has_a_prompt_with_its_generation) {
    static const char *const forms[] = {"md", "csv", "json", "jsonl", "sql"};
    fr_command c = fr_command_ok(BENCH "-pg 3,2 -p 0 -n 0 -d 0 --rows 0 -r 2 --max-spread 1000000 -o %s", forms[_i]);
    ck_assert_msg(strstr(c.out, "pp3+tg2") != NULL, "%s", c.out);
    fr_command_free(&c);
}
END_TEST

START_TEST(a_model_is_as_large_as_its_files_tensors) {
    json_t *rows = bench(QUICK);
    ck_assert_double_eq(number_of(json_array_get(rows, 0), "model_size"), 13419596);
    ck_assert_double_eq(number_of(json_array_get(rows, 0), "model_n_params"), 6709798);
    json_decref(rows);
}
END_TEST

START_TEST(every_number_of_threads_and_instruction_set_has_its_rows) {
    json_t *rows = bench("-t 1,2 --isa scalar -p 0 -n 4 -d 0 --rows 0 -r 1 -o json");
    ck_assert_uint_eq(json_array_size(rows), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *row = json_array_get(rows, i);
        ck_assert_double_eq(number_of(row, "n_threads"), (double)i + 1);
        ck_assert_str_eq(text_of(row, "isa"), "scalar");
    }
    json_decref(rows);
}
END_TEST

/* The spread of two timings is their difference divided by their mean. One timing has no spread, so its figures must be
 * marked. */
START_TEST(a_figure_without_a_spread_is_marked) {
    static const char *const figures[] = {"median_ns", "avg_ns", "stddev_ns", "median_ts", "avg_ts", "stddev_ts"};
    for (int repetitions = 1; repetitions <= 2; repetitions++) {
        char options[128];
        snprintf(options, sizeof options, "-p 4 -n 4 -d 0 --rows 0 -r %d --max-spread 1000000 -o json", repetitions);
        json_t *rows = bench(options);
        ck_assert_uint_eq(json_array_size(rows), 2);
        for (size_t i = 0; i < 2; i++) {
            const json_t *row = json_array_get(rows, i), *samples = fr_json_get(row, "samples_ns");
            ck_assert_uint_eq(json_array_size(samples), (size_t)repetitions);
            for (size_t f = 0; f < sizeof figures / sizeof *figures; f++)
                ck_assert_msg(json_is_number(fr_json_get(row, figures[f])), "%s", figures[f]);
            ck_assert_int_eq(json_is_null(fr_json_get(row, "spread")), repetitions == 1);
            if (repetitions == 1) continue;
            double a = json_number_value(json_array_get(samples, 0)), b = json_number_value(json_array_get(samples, 1));
            ck_assert_double_eq_tol(number_of(row, "spread"), 200 * fabs(a - b) / (a + b), 1e-5);
        }
        json_decref(rows);
    }
    fr_command c = fr_command_ok("%s -p 4 -n 0 -d 0 --rows 0 -r 1", BENCH);
    ck_assert_ptr_nonnull(strstr(c.out, "of one timing, not known: 1."));
    fr_command_free(&c);
}
END_TEST

START_TEST(a_line_of_jsonl_is_an_object) {
    fr_command command = fr_command_ok("%s -p 4 -n 4 -d 0 --rows 0 -r 1 -o jsonl", BENCH);
    size_t lines = 0;
    for (char *line = command.out, *end; *line; line = end + 1, lines++) {
        end = strchr(line, '\n');
        ck_assert_ptr_nonnull(end);
        json_t *object = json_loadb(line, (size_t)(end - line), 0, NULL);
        ck_assert(json_is_object(object));
        json_decref(object);
    }
    ck_assert_uint_eq(lines, 2);
    fr_command_free(&command);
}
END_TEST

/* fr_bench_fill runs only the first 512 positions. It copies their keys and values to all later positions of the
 * cache. */
START_TEST(a_filled_cache_repeats_its_first_512_positions) {
    enum { LENGTH = 1200 };
    fr_options *options = fr_options_new();
    fr_model *model;
    fr_session *session;
    ck_assert_int_eq(fr_options_set(options, FR_OPT_THREADS, 3), FR_OK);
    ck_assert_int_eq(fr_model_open("tools/demo/target", options, &model), FR_OK);
    ck_assert_int_eq(fr_session_open(model, NULL, options, &session), FR_OK);
    fr_bench_prompt(model, session->ids, session->context, 0);
    fr_bench_fill(session, LENGTH);
    size_t copies = 0;
    for (size_t l = 0; l < session->cache.kv.count; l++) {
        const fr_kv_layer *layer = &session->cache.kv.layers[l];
        const fr_kv_rows *both[] = {&layer->k, &layer->v};
        for (size_t p = 512; p < LENGTH; p++)
            for (size_t i = 0; i < 2 * layer->heads; i++, copies++)
                ck_assert_mem_eq(fr_kv_slot(layer, both[i % 2], i / 2, p),
                                 fr_kv_slot(layer, both[i % 2], i / 2, p % 512), both[i % 2]->bytes);
    }
    ck_assert_uint_ge(copies, 2 * (LENGTH - 512));
    fr_session_close(session);
    fr_model_close(model);
    fr_options_free(options);
}
END_TEST

/* -------------------------------------------------------------------------------------------------- rows and drafts */

START_TEST(rows_are_timed_against_one_and_break_even_grows_with_drafting) {
    json_t *plain = bench("-p 0 -n 0 -d 0 --rows 1..3,16 -r 3 --max-spread 1000000 -o json");
    json_t *drafting = bench(DEMO_DRAFTER "-p 0 -n 0 -d 0 --rows 4 -r 3 --max-spread 1000000 -o json");
    static const char *const names[] = {"T(1)", "T(2)", "T(3)", "T(16)"};
    ck_assert_uint_eq(json_array_size(plain), 4);
    for (size_t i = 0; i < 4; i++) {
        const json_t *row = row_of(plain, names[i]);
        ck_assert_double_gt(number_of(row, "over_one"), 0);
        if (i == 0) ck_assert_double_eq(number_of(row, "over_one"), 1);
        ck_assert_double_eq(number_of(row, "drafts"), number_of(row, "rows") - 1);
        ck_assert(json_is_null(fr_json_get(row, "draft_ms")));
    }
    const json_t *row = row_of(drafting, "T(4)"), *draft = row_of(drafting, "draft15");
    double cost = (number_of(draft, "start_ns") + 3 * number_of(draft, "step_ns")) / 1e6;
    ck_assert_double_eq_tol(number_of(row, "draft_ms"), cost, 1e-4);
    json_decref(plain);
    json_decref(drafting);
}
END_TEST

/* A block drafter makes all its drafts in one forward, so its cost must be the same for any number of drafts. */
START_TEST(a_block_costs_the_same_for_any_number_of_drafts) {
    json_t *rows = bench_of("bench model -m " DFLASH "qwen3 -md " DFLASH "qwen3/drafter",
                            "-p 0 -n 0 -d 0 --rows 2,4 --draft-max 1..5,auto -r 3 --max-spread 1000000 -o json");
    const json_t *draft = row_of(rows, "draft5");
    ck_assert_double_eq(number_of(draft, "step_ns"), 0);
    ck_assert_double_gt(number_of(draft, "start_ns"), 0);
    ck_assert_double_eq(number_of(row_of(rows, "T(2)"), "draft_ms"), number_of(row_of(rows, "T(4)"), "draft_ms"));
    json_decref(rows);
}
END_TEST

/* The expected bytes are counted from the shapes in each drafter's file. Vectors are so small that they are left out.
 * The drafters read:
 *   - EAGLE-3: its layer and head in each step, and fc in the first step of a chain;
 *   - EAGLE-1: fc, its layer and the target's head in each step;
 *   - a draft model: everything that a token reads;
 *   - a block drafter: fc, its layers, a head and its list of ids. DSpark also reads its biases, once for each of its 7
 *     drafts. */
START_TEST(a_draft_step_reads_what_it_needs) {
    enum { BLOCK = 64 * 192 + 2 * (3 * 64 * 128 + 2 * 64 * 64 + 2 * 32 * 64) }; /* weights of fc and the layers */
    static const struct {
        const char *target, *drafter;
        double values; /* number of values, of 2 bytes each, that every step reads */
        double first;  /* number of further values that the first step reads */
    } drafters[] = {
        {"tests/data/models/llama", "tests/data/llama/eagle3",
         256 * 256 + 3 * 256 * 256 + 2 * 32 * 512 + 64 * 512 + 256 * 64, 256 * 768},
        {"tests/data/models/llama", "tests/data/llama/eagle",
         256 * 512 + 3 * 256 * 256 + 2 * 32 * 256 + 2 * 64 * 256 + 512 * 256, 0},
        {"tests/data/models/llama", "tests/data/models/llama",
         7 * (3 * 256 * 256 + 2 * 32 * 256 + 2 * 64 * 256) + 512 * 256, 0},
        {DFLASH "qwen3", DFLASH "qwen3/drafter", BLOCK + 320 * 64, 0},
        {DFLASH "dspark-qwen3", DFLASH "dspark-qwen3/drafter", BLOCK + 200 * 64 + 7 * 200 * 16 + 4 * 200, 0},
    };
    fr_model *model;
    fr_drafter *drafter;
    for (size_t i = 0; i < sizeof drafters / sizeof *drafters; i++) {
        ck_assert_int_eq(fr_model_open(drafters[i].target, NULL, &model), FR_OK);
        double bytes = 2 * drafters[i].values, first = bytes + 2 * drafters[i].first;
        ck_assert_int_eq(fr_drafter_open(drafters[i].drafter, model, NULL, &drafter), FR_OK);
        ck_assert_double_eq_tol(fr_bench_draft_bytes(drafter), bytes, 0.01 * bytes);
        ck_assert_double_eq_tol(fr_bench_first_draft_bytes(drafter), first, 0.01 * first);
        fr_drafter_close(drafter);
        fr_model_close(model);
    }
}
END_TEST

/* Returns the number of bytes of all experts' matrices in the file, over all layers. */
static double bytes_of_experts(const fr_model *model) {
    const fr_tensors *tensors = &model->files.tensors;
    double bytes = 0;
    for (size_t i = 0; i < tensors->count; i++)
        if (strstr(tensors->items[i].name, ".experts.")) bytes += (double)tensors->items[i].bytes;
    return bytes;
}

START_TEST(a_mixture_reads_the_experts_that_rows_choose) {
    enum { EXPERTS = 8, TOP = 2, ROWS = 8 };
    fr_options *options = fr_options_new();
    fr_model *model;
    fr_session *session;
    ck_assert_int_eq(fr_model_open(MIXTURE, options, &model), FR_OK);
    ck_assert_int_eq(fr_session_open(model, NULL, options, &session), FR_OK);
    fr_bench_prompt(model, session->ids, ROWS, 0);
    double expert = bytes_of_experts(model) / EXPERTS;
    fr_bench_cost one = fr_bench_cost_of(session, 1, 0), rows = fr_bench_cost_of(session, ROWS, 0);
    ck_assert_double_gt(expert, 0);
    ck_assert_double_eq(one.experts, TOP);
    ck_assert_double_gt(rows.experts, TOP);
    ck_assert_double_le(rows.experts, EXPERTS);
    ck_assert_double_eq_tol(rows.bytes - one.bytes, (rows.experts - TOP) * expert, 1);
    ck_assert_double_lt(one.bytes, (double)fr_model_bytes(model) - (EXPERTS - TOP - 0.1) * expert);
    ck_assert_double_eq_tol(rows.macs, ROWS * one.macs, 1);
    fr_bench_limits reading = {1, 1e30, 1};
    ck_assert_double_eq_tol(fr_bench_row_limit(&one, &rows, &reading), rows.bytes / one.bytes, 1e-9);
    fr_session_close(session);
    fr_model_close(model);
    fr_options_free(options);
    fr_command command =
        fr_command_ok("bench model -m " MIXTURE " -p 0 -n 0 -d 0 --rows 1,8 -r 3 --max-spread 1000000 -o json");
    json_t *told = parse(command.out);
    ck_assert_double_eq(number_of(row_of(told, "T(1)"), "experts_mean"), TOP);
    ck_assert_double_gt(number_of(row_of(told, "T(8)"), "experts_mean"), TOP);
    json_decref(told);
    fr_command_free(&command);
}
END_TEST

/* The model has three layers of MLA with four heads. For each position the heads share one latent vector of 64 values
 * and a rotary part of 16 values. Both are cached as F16. */
START_TEST(latents_are_read_once_and_multiplied_by_every_head_of_every_row) {
    enum { LAYERS = 3, HEADS = 4, LATENT = 64, ROTARY = 16, ROWS = 4, DEPTH = 50 };
    fr_options *options = fr_options_new();
    fr_model *model;
    fr_session *session;
    ck_assert_int_eq(fr_options_set_text(options, FR_OPT_KV_K, "f16"), FR_OK);
    ck_assert_int_eq(fr_model_open("tests/data/deepseek-v3", options, &model), FR_OK);
    ck_assert_int_eq(fr_session_open(model, NULL, options, &session), FR_OK);
    fr_bench_prompt(model, session->ids, DEPTH + ROWS, 0);
    fr_bench_cost near = fr_bench_cost_of(session, ROWS, 0), far = fr_bench_cost_of(session, ROWS, DEPTH);
    double pairs = LAYERS * HEADS * (2 * LATENT + ROTARY);
    ck_assert_double_eq(near.attention, pairs * (1 + 2 + 3 + 4));
    ck_assert_double_eq(far.attention, pairs * (51 + 52 + 53 + 54));
    if (near.experts == far.experts)
        ck_assert_double_eq(far.bytes - near.bytes, LAYERS * DEPTH * (LATENT + ROTARY) * 2);
    fr_bench_limits limits = {2, 1e30, 5};
    double limit = (far.bytes / 2 + far.attention / 5) / (near.bytes / 2 + near.attention / 5);
    ck_assert_double_eq_tol(fr_bench_row_limit(&near, &far, &limits), limit, 1e-9);
    fr_session_close(session);
    fr_model_close(model);
    fr_options_free(options);
}
END_TEST

START_TEST(break_even_is_where_the_tokens_of_a_round_are_its_cost) {
    ck_assert_double_eq_tol(fr_bench_break_even(1, 1.3), 0.3, 1e-9);
    ck_assert_double_eq_tol(fr_bench_break_even(2, 1.75), 0.5, 1e-9);
    ck_assert_double_eq_tol(fr_bench_break_even(3, 1.875), 0.5, 1e-9);
    ck_assert_double_eq_tol(fr_bench_break_even(15, 16), 1, 1e-9);
    ck_assert_double_eq(fr_bench_break_even(3, 0.98), 0);
    ck_assert(isnan(fr_bench_break_even(3, 4.01)));
    ck_assert(isnan(fr_bench_break_even(3, NAN)));
}
END_TEST

/* Each rank gets a share of the weights according to its speed. Shares are counted in eighths of the fastest rank's
 * share. If the speed of a rank is unknown, all shares are equal. */
START_TEST(shares_of_ranks) {
    uint32_t parts[4];
    fr_bench_shares_of((const double[]){20e9, 19e9, 10.4e9, 0.1e9}, 4, parts);
    ck_assert(parts[0] == 8 && parts[1] == 8 && parts[2] == 4 && parts[3] == 1);
    fr_bench_shares_of((const double[]){20e9, 0, 10e9}, 3, parts);
    ck_assert(parts[0] == 1 && parts[1] == 1 && parts[2] == 1);
    fr_bench_shares_of((const double[]){NAN, 5e9}, 2, parts);
    ck_assert(parts[0] == 1 && parts[1] == 1);
}
END_TEST

static void spin(double seconds) {
    for (double end = fr_clock() + seconds; fr_clock() < end;) continue;
}

/* The child has the part of another program. This process and the child are busy for the same time. It is unknown how
 * much CPU time real other programs take, so the bounds are wide. */
START_TEST(what_a_child_takes_of_the_cpus_is_others_and_what_we_take_is_not) {
    fr_bench_busy begin = fr_bench_busy_now();
    struct rusage used;
    pid_t child = fork();
    spin(0.7);
    if (child == 0) _exit(0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    double others = fr_bench_busy_others(&begin);
    fr_bench_busy end = fr_bench_busy_now();
    double room = (end.clock - begin.clock) * (double)sysconf(_SC_NPROCESSORS_ONLN);
    ck_assert_int_eq(getrusage(RUSAGE_CHILDREN, &used), 0);
    double took = (double)used.ru_utime.tv_sec + 1e-6 * (double)used.ru_utime.tv_usec;
    ck_assert_double_gt(others, 100 * 0.5 * took / room);
    ck_assert_double_lt(others, 100 * (1.1 - (end.own - begin.own) / room));
    begin = fr_bench_busy_now();
    ck_assert(isnan(fr_bench_busy_others(&begin)));
}
END_TEST

START_TEST(a_figure_that_spreads_more_than_it_may_is_marked) {
    json_t *rows = bench("-p 64 -n 0 -d 0 --rows 2 -r 5 --max-spread 0 -o json");
    static const char *const derived[] = {"median_ns", "median_ts", "avg_ns", "avg_ts", "stddev_ns", "stddev_ts"};
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        ck_assert_double_gt(number_of(row, "spread"), 0);
        for (size_t d = 0; d < sizeof derived / sizeof *derived; d++)
            ck_assert_double_gt(number_of(row, derived[d]), 0);
    }
    ck_assert_double_gt(number_of(row_of(rows, "T(2)"), "over_one"), 0);
    json_decref(rows);
    fr_command command = fr_command_ok("%s -p 64 -n 0 -d 0 --rows 0 -r 5 --max-spread 0", BENCH);
    ck_assert_ptr_nonnull(strstr(command.out, "marked with ?, as their spread is above 0%"));
    const char *row = strstr(command.out, "| pp64 |");
    ck_assert_ptr_nonnull(row);
    ck_assert_msg(memmem(row, (size_t)(strchr(row, '\n') - row), " ? |", 4), "%s", row);
    fr_command_free(&command);
}
END_TEST

/* ------------------------------------------------------------------------------------------------------ speculation */

START_TEST(each_class_of_text_is_run_with_and_without_drafts) {
    static const char *const classes[] = {"spec prose", "spec code", "spec chat", "spec repetitive", "spec hard"};
    json_t *rows = bench(DEMO_DRAFTER QUICK "--draft-max 2,auto");
    for (size_t c = 0; c < 5; c++) {
        const json_t *row, *none = NULL;
        size_t i, manners = 0;
        json_array_foreach (rows, i, row) {
            if (strcmp(text_of(row, "test"), classes[c]) != 0) continue;
            const char *drafts = text_of(row, "drafts");
            if (strcmp(drafts, "none") == 0)
                none = row;
            else
                ck_assert_str_eq(text_of(row, "answer"), "same");
            manners++;
            ck_assert_str_eq(text_of(row, "logits_hash"), text_of(none, "logits_hash"));
            ck_assert_str_eq(text_of(row, "ids_hash"), text_of(none, "ids_hash"));
            check_samples(row, 8);
        }
        ck_assert_uint_eq(manners, 3);
    }
    json_decref(rows);
}
END_TEST

/* With made-up acceptance rates, the bench accepts the draft at each depth as often as the rate for that depth says.
 * The last rate in the list also applies to all deeper drafts. With a rate of 1 each round gives 1 + K tokens, where K
 * is the number of drafts. So the 24 timed tokens are a whole number of rounds. */
START_TEST(made_up_rates_are_the_rates_that_drafts_stand_at) {
    json_t *all = bench("-p 0 -n 24 -d 0 --rows 0 -r 1 -o json --spec-synth-rates 1 --draft-max 3");
    ck_assert_double_eq(number_of(row_of(all, "spec synthetic"), "tokens_a_call"), 4);
    ck_assert_double_eq(number_of(row_of(all, "spec synthetic"), "acceptance"), 1);
    json_t *none = bench("-p 0 -n 24 -d 0 --rows 0 -r 1 -o json --spec-synth-rates 0 --draft-max 3");
    ck_assert_double_eq(number_of(row_of(none, "spec synthetic"), "tokens_a_call"), 1);
    json_t *some = bench("-p 0 -n 180 -d 0 --rows 0 -r 1 -o json --spec-synth-rates 0.8,0.5 --draft-max 2");
    const json_t *depths = fr_json_get(row_of(some, "spec synthetic"), "acceptance_by_depth");
    ck_assert_uint_eq(json_array_size(depths), 2);
    ck_assert_double_eq_tol(json_number_value(json_array_get(depths, 0)), 0.8, 0.02);
    ck_assert_double_eq_tol(json_number_value(json_array_get(depths, 1)), 0.5, 0.02);
    json_decref(all);
    json_decref(none);
    json_decref(some);
}
END_TEST

static void write_file(const char *folder, const char *name, const char *text) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs(text, file);
    fclose(file);
}

static void remove_file(const char *folder, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
}

START_TEST(files_of_a_class_are_one_row) {
    char folder[] = "/tmp/forerun-prompts-XXXXXX", options[256];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    write_file(folder, "code-a.txt", "static int one(void)");
    write_file(folder, "code-b.txt", "static int two(void)");
    write_file(folder, "prose.txt", "The lock");
    write_file(folder, "README", "no prompt");
    snprintf(options, sizeof options, DEMO_DRAFTER QUICK "--prompts %s", folder);
    json_t *rows = bench(options);
    ck_assert_uint_eq(json_array_size(rows), 1 + 1 + 2 * 2); /* the lines are tg8, draft15, and two classes of text,
                                                              * each with and without drafts */
    ck_assert_double_eq(number_of(row_of(rows, "spec code"), "texts"), 2);
    check_samples(row_of(rows, "spec code"), 16);
    check_samples(row_of(rows, "spec prose"), 8);
    json_decref(rows);
    remove_file(folder, "code-a.txt");
    remove_file(folder, "code-b.txt");
    remove_file(folder, "prose.txt");
    remove_file(folder, "README");
    rmdir(folder);
}
END_TEST

/* Runs the bench inside this process, where the test can make the acceptance of drafts wrong. */
static fr_status bench_here(json_t **rows) {
    char *text;
    size_t length;
    FILE *out = open_memstream(&text, &length);
    fr_bench_report *report = fr_bench_report_open(out, FR_BENCH_JSON);
    fr_bench_curve curve;
    fr_bench_model_plan plan = {.model = "tools/demo/target",
                                .options = fr_options_new(),
                                .depths = {.at = {0}, .count = 1},
                                .drafts = {.at = {3}, .count = 1},
                                .text_tokens = 40,
                                .rates = {0.6},
                                .rate_count = 1,
                                .repetitions = 3,
                                .max_spread = 1e6};
    fr_status status = fr_bench_model(&plan, report, &curve);
    fr_bench_report_close(report);
    fclose(out);
    *rows = parse(text);
    free(text);
    fr_options_free(plan.options);
    return status;
}

START_TEST(no_speed_is_told_of_an_answer_that_drafts_changed) {
    static const char *const speeds[] = {"median_ns", "avg_ns", "avg_ts", "over_none", "foretold"};
    json_t *rows;
    broken = false;
    ck_assert_int_eq(bench_here(&rows), FR_OK);
    ck_assert_str_eq(text_of(row_of(rows, "spec synthetic"), "answer"), "same");
    number_of(row_of(rows, "spec synthetic"), "avg_ts");
    json_decref(rows);
    broken = true;
    ck_assert_int_eq(bench_here(&rows), FR_NUMERIC);
    ck_assert_ptr_nonnull(strstr(fr_last_error(), "speculation changed the answer"));
    const json_t *row = row_of(rows, "spec synthetic");
    ck_assert_str_eq(text_of(row, "answer"), "differ");
    for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++) ck_assert(json_is_null(fr_json_get(row, speeds[i])));
    ck_assert_uint_eq(json_array_size(fr_json_get(row, "samples_ns")), 0);
    json_decref(rows);
    broken = false;
}
END_TEST

/* -------------------------------------------------------------------------------------------- pictures and failures */

START_TEST(a_picture_is_svg_that_stands_alone) {
    char path[] = "/tmp/forerun-plot-XXXXXX";
    int file = mkstemp(path);
    ck_assert_int_ge(file, 0);
    close(file);
    fr_command command =
        fr_command_ok("%s -p 0 -n 0 -d 0 --rows 1,2,4 -r 3 --max-spread 1000000 --plot %s", BENCH, path);
    fr_command_free(&command);
    FILE *picture = fopen(path, "r");
    char text[16384];
    text[fread(text, 1, sizeof text - 1, picture)] = '\0';
    fclose(picture);
    ck_assert_int_eq(strncmp(text, "<svg xmlns=\"http://www.w3.org/2000/svg\"", 39), 0);
    ck_assert_ptr_nonnull(strstr(text, "T(K)/T(1) at K = 4: "));
    ck_assert_ptr_nonnull(strstr(text, "</svg>\n</svg>\n</svg>\n"));
    unlink(path);
}
END_TEST

static const struct {
    const char *line, *says;
    int status;
} refused[] = {
    {"bench model", "needs -m MODEL", 2},
    {"bench model " DEMO "--rows 17", "--rows up to 16", 2},
    {"bench model " DEMO "-pg 512", "two numbers such as 512,128", 2},
    {"bench model " DEMO "-pg 1,2,3", "two numbers", 2},
    {"bench model " DEMO "-pg 0,2", "from 1 to", 2},
    {"bench model " DEMO "-pg 1..2,3", "two numbers", 2},
    {"bench model " DEMO "-pg 1,", "two numbers", 2},
    {"bench model " DEMO "-pg 4000,97 -p 0 -n 0 -d 0 --rows 0", "beyond the model's 4096", 1},
    {"bench model " DEMO "-p 1..64", "a list of 64 numbers or more", 2},
    {"bench model " DEMO "--rows 1..x", "--rows 1..x", 2},
    {"bench model " DEMO "--spec-synth-rates 1.5", "from 0 to 1", 2},
    {"bench model " DEMO "--spec-synth-rates 0.5,", "from 0 to 1", 2},
    {"bench model " DEMO "--spec-synth-rates nan", "from 0 to 1", 2},
    {"bench model " DEMO "--spec-synth-rates 1 --prompts x", "exclude each other", 2},
    {"bench model " DEMO "--draft-max 3,sometimes", "or auto", 2},
    {"bench model " DEMO "--draft-max 16", "1 to 15", 2},
    {"bench model " DEMO "--draft-max 2", "--draft-max needs a drafter", 2},
    {"bench model " DEMO "--filter x", "bench model takes no --filter", 2},
    {"bench model " DEMO "--spec-type mtp", "needs a drafter", 2},
    {"bench model " DEMO "--spec-type draft", "needs a drafter", 2},
    {"bench model " DEMO DEMO_DRAFTER "-p 0 -n 1 -d 0 --rows 0 --spec-type none,mtp", "none stands alone", 2},
    {"bench model " DEMO "-md no/such/drafter --spec-type ngram", "no/such/drafter", 1},
    {"bench model " DEMO "--prompts tools/demo/prompts", "give -md DRAFTER", 2},
    {"bench model " DEMO "-o xml", "xml is unknown", 2},
    {"bench model " DEMO "-r 0", "out of range", 2},
    {"bench model -m no/such/model", "no/such/model", 1},
    {"bench model " DEMO "-md no/such/drafter", "no/such/drafter", 1},
    {"bench model " DEMO "-d 1000000 -p 8 -n 0 --rows 0", "beyond the model's 4096", 1},
    {"bench model " DEMO DEMO_DRAFTER QUICK "--prompts no/such/folder", "no/such/folder", 1},
    {"bench model " DEMO DEMO_DRAFTER QUICK "--prompts tools/demo/target", "has no prompts", 1},
    {"bench model " DEMO QUICK "--plot no/such/folder/plot.svg", "plot.svg", 1},
};

START_TEST(what_cant_be_measured_is_refused_in_a_line) {
    fr_command command = fr_command_run(refused[_i].line, NULL);
    const char *end = strchr(command.err, '\n');
    ck_assert_msg(command.status == refused[_i].status, "%s: exit %d: %s", refused[_i].line, command.status,
                  command.err);
    ck_assert_msg(strstr(command.err, refused[_i].says), "%s: %s", refused[_i].line, command.err);
    ck_assert_msg(end && !end[1], "%s: not one line: %s", refused[_i].line, command.err);
    ck_assert_msg(!strstr(command.out, "median_ns"), "%s: only after %s", refused[_i].line, command.out);
    fr_command_free(&command);
}
END_TEST

/* Returns the sum of a column over the lines of all threads for a phase. */
static double sum_of_phase(const json_t *rows, const char *phase, const char *key) {
    double sum = 0;
    size_t i;
    const json_t *row;
    json_array_foreach (rows, i, row) {
        if (strcmp(text_of(row, "phase"), phase) == 0) sum += number_of(row, key);
    }
    return sum;
}

/* The multiply-adds follow from config.json. The model has 7 layers, hidden 256 and inner 256, 4 heads and 2 KV heads
 * of width 16, and 512 ids. There are 64 rows. In the last layer only queries, keys and values are computed for all of
 * them. */
START_TEST(phases_have_the_multiply_adds_of_the_model) {
    const double qkv = 256 * (4 + 2 + 2) * 16, rest = 4 * 16 * 256 + 3 * 256 * 256;
    const double scores = 4 * (16 + 16), positions = 64 * 65 / 2;
    json_t *rows = bench_of("bench model -m tests/data/models/llama",
                            "--phases 64 -t 2 -p 0 -n 0 -d 0 --rows 0 -r 3 --max-spread 1000000 -o json"),
           *row;
    double shares[2] = {0, 0};
    size_t i;
    json_array_foreach (rows, i, row) {
        size_t thread = (size_t)number_of(row, "thread");
        ck_assert_uint_lt(thread, 2);
        ck_assert_str_eq(text_of(row, "table"), "phases");
        ck_assert_double_ge(number_of(row, "ms"), 0);
        shares[thread] += number_of(row, "share");
    }
    for (size_t thread = 0; thread < 2; thread++) ck_assert_double_eq_tol(shares[thread], 100, 1e-3);
    ck_assert_double_eq_tol(sum_of_phase(rows, "projections", "gmac"), (64 * 7 * qkv + (64 * 6 + 1) * rest) * 1e-9,
                            1e-9);
    ck_assert_double_eq_tol(sum_of_phase(rows, "head", "gmac"), 512 * 256 * 1e-9, 1e-9);
    ck_assert_double_eq_tol(sum_of_phase(rows, "attention", "gmac"), scores * (6 * positions + 64) * 1e-9, 1e-9);
    ck_assert_double_gt(sum_of_phase(rows, "norms and activations", "ms"), 0);
    json_decref(rows);
}
END_TEST

FR_SUITE("bench model") {
    TCase *tests = tcase_create("bench model");
    tcase_set_timeout(tests, 60);
    suite_add_tcase(suite, tests);
    tcase_add_test(tests, prompts_and_decode_have_llama_benchs_fields_and_names);
    tcase_add_test(tests, a_prompt_and_its_generation_are_timed_as_one);
    tcase_add_test(tests, phases_have_the_multiply_adds_of_the_model);
    tcase_add_loop_test(tests, every_form_has_a_prompt_with_its_generation, 0, 5);
    tcase_add_test(tests, a_model_is_as_large_as_its_files_tensors);
    tcase_add_test(tests, every_number_of_threads_and_instruction_set_has_its_rows);
    tcase_add_test(tests, a_figure_without_a_spread_is_marked);
    tcase_add_test(tests, a_line_of_jsonl_is_an_object);
    tcase_add_test(tests, a_filled_cache_repeats_its_first_512_positions);
    tcase_add_test(tests, rows_are_timed_against_one_and_break_even_grows_with_drafting);
    tcase_add_test(tests, a_block_costs_the_same_for_any_number_of_drafts);
    tcase_add_test(tests, a_draft_step_reads_what_it_needs);
    tcase_add_test(tests, a_mixture_reads_the_experts_that_rows_choose);
    tcase_add_test(tests, latents_are_read_once_and_multiplied_by_every_head_of_every_row);
    tcase_add_test(tests, break_even_is_where_the_tokens_of_a_round_are_its_cost);
    tcase_add_test(tests, shares_of_ranks);
    tcase_add_test(tests, what_a_child_takes_of_the_cpus_is_others_and_what_we_take_is_not);
    tcase_add_test(tests, a_figure_that_spreads_more_than_it_may_is_marked);
    tcase_add_test(tests, each_class_of_text_is_run_with_and_without_drafts);
    tcase_add_test(tests, made_up_rates_are_the_rates_that_drafts_stand_at);
    tcase_add_test(tests, files_of_a_class_are_one_row);
    tcase_add_test(tests, no_speed_is_told_of_an_answer_that_drafts_changed);
    tcase_add_test(tests, a_picture_is_svg_that_stands_alone);
    tcase_add_loop_test(tests, what_cant_be_measured_is_refused_in_a_line, 0, sizeof refused / sizeof *refused);
}
