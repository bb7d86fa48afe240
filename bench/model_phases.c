/* Tells where the time of a prompt goes, by phase and thread: see model_phases.h. */
#include "bench/model_phases.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "bench/limits.h"
#include "bench/measure.h"

/* ----------------------------------------------------------------------------------------------- kernels that count */

static fr_kernels under, counting;
static struct { const uint8_t *begin, *end; } head;
static _Thread_local fr_bench_share *own; /* the counts of this thread; NULL if the thread does not count */

static void count(fr_bench_phase phase, double start, double macs) {
    if (!own) return;
    own->seconds[phase] += fr_clock() - start;
    own->macs[phase] += macs;
}

static fr_bench_phase phase_of(const void *weights) {
    const uint8_t *w = weights;
    return w >= head.begin && w < head.end ? FR_BENCH_HEAD : FR_BENCH_PROJECTIONS;
}

static double product_macs(size_t rows, size_t cols, size_t features) {
    return (double)rows * (double)cols * (double)features;
}

static double attention_macs(const fr_attn *attn) {
    double positions = 0;
    for (size_t i = 0; i < attn->count; i++) positions += (double)(attn->queries[i].last - attn->queries[i].first + 1);
    return positions * (double)(attn->head_dim + attn->value_dim);
}

/* Defines the function that replaces the kernel in `slot` and counts its calls. The function is named after the scalar
 * kernel of the slot, so that each slot's function has a name of its own. */
#define COUNTS(slot, function, phase, macs, parameters, arguments) \
    static void counting_##function parameters {                   \
        double start = fr_clock();                                 \
        under.slot arguments;                                      \
        count(phase, start, macs);                                 \
    }
#define JOB(slot, function, type, phase, macs) COUNTS(slot, function, phase, macs, (const type *job), (job))

#define COUNT_matmul(slot, function) \
    JOB(slot, function, fr_matmul, phase_of(job->w), product_macs(job->rows, job->cols, job->features))
#define COUNT_matmul_fp8(slot, function) \
    JOB(slot, function, fr_matmul_fp8, phase_of(job->w), product_macs(job->rows, job->cols, job->features))
#define COUNT_matmul_block(slot, function) \
    JOB(slot, function, fr_matmul_block, phase_of(job->w), product_macs(job->rows, job->cols, job->features))
#define COUNT_matmul_grouped(slot, function)                 \
    JOB(slot, function, fr_matmul_grouped, phase_of(job->w), \
        product_macs(job->rows, job->tiles->runs *FR_GROUPED_RUN, job->features))
#define COUNT_attn(slot, function)     JOB(slot, function, fr_attn, FR_BENCH_ATTENTION, attention_macs(job))
#define COUNT_deltanet(slot, function) JOB(slot, function, fr_deltanet, FR_BENCH_RECURRENT, 0)
#define COUNT_mamba(slot, function) \
    COUNTS(slot, function, FR_BENCH_RECURRENT, 0, (const fr_deltanet *run, float skip), (run, skip))
#define COUNT_short_conv(slot, function)                                                             \
    COUNTS(slot, function, FR_BENCH_RECURRENT, 0,                                                    \
           (float *y, const float *const *rows, const float *w, size_t w_stride, size_t conv_kernel, \
            const float *bias, size_t n),                                                            \
           (y, rows, w, w_stride, conv_kernel, bias, n))
#define COUNT_kv_store(slot, function) \
    COUNTS(slot, function, FR_BENCH_ATTENTION, 0, (void *to, const float *x, size_t n), (to, x, n))
#define COUNT_quantize(slot, function) \
    COUNTS(slot, function, FR_BENCH_ROWS, 0, (fr_qblock * q, const float *x, size_t cols), (q, x, cols))
#define COUNT_hadamard(slot, function)                                                                               \
    COUNTS(slot, function, FR_BENCH_ROWS, 0, (float *y, const float *x, const float *signs, size_t block, size_t n), \
           (y, x, signs, block, n))
#define COUNT_rmsnorm(slot, function)                                                                               \
    COUNTS(slot, function, FR_BENCH_NORMS, 0, (float *y, const float *x, const float *weight, size_t n, float eps), \
           (y, x, weight, n, eps))
#define COUNT_layernorm(slot, function)                                                             \
    COUNTS(slot, function, FR_BENCH_NORMS, 0,                                                       \
           (float *y, const float *x, const float *weight, const float *bias, size_t n, float eps), \
           (y, x, weight, bias, n, eps))
#define COUNT_rope(slot, function)                                                                          \
    COUNTS(slot, function, FR_BENCH_NORMS, 0, (float *x, const float *cosine, const float *sine, size_t n), \
           (x, cosine, sine, n))
#define COUNT_OF_TWO(slot, function) \
    COUNTS(slot, function, FR_BENCH_NORMS, 0, (float *y, const float *a, const float *b, size_t n), (y, a, b, n))
#define COUNT_OF_ONE(slot, function) \
    COUNTS(slot, function, FR_BENCH_NORMS, 0, (float *y, const float *x, size_t n), (y, x, n))
#define COUNT_WITH_FACTOR(slot, function) \
    COUNTS(slot, function, FR_BENCH_NORMS, 0, (float *y, size_t n, float factor), (y, n, factor))
#define COUNT_gelu_mul    COUNT_OF_TWO
#define COUNT_silu_mul    COUNT_OF_TWO
#define COUNT_sigmoid_mul COUNT_OF_TWO
#define COUNT_gelu_erf    COUNT_OF_ONE
#define COUNT_add         COUNT_OF_ONE
#define COUNT_mul         COUNT_OF_ONE
#define COUNT_scale       COUNT_WITH_FACTOR
#define COUNT_div         COUNT_WITH_FACTOR
#define COUNT_softcap     COUNT_WITH_FACTOR
#define COUNT_axpy(slot, function) \
    COUNTS(slot, function, FR_BENCH_NORMS, 0, (float *y, const float *x, size_t n, float factor), (y, x, n, factor))
#define COUNT_clamped_swiglu(slot, function)                                                                         \
    COUNTS(slot, function, FR_BENCH_NORMS, 0, (float *y, const float *gate, const float *up, size_t n, float limit), \
           (y, gate, up, n, limit))

#define COUNT_exp  COUNT_OF_ONE
#define COUNT_tanh COUNT_OF_ONE
#define COUNT_gather(slot, function) \
    JOB(slot, function, fr_gather, phase_of(job->w), product_macs(1, job->cols, job->count))
#define COUNT_topk(slot, function)                                                                                 \
    COUNTS(slot, function, FR_BENCH_HEAD, 0, (const float *x, size_t n, size_t k, int32_t *ids, int32_t *scratch), \
           (x, n, k, ids, scratch))
#define COUNT_argmax(slot, function)                               \
    static int64_t counting_##function(const float *x, size_t n) { \
        double start = fr_clock();                                 \
        int64_t at = under.slot(x, n);                             \
        count(FR_BENCH_HEAD, start, 0);                            \
        return at;                                                 \
    }

/* kernels.def and the two files beside it have a line for each kernel. Only the lines of scalar kernels are used here:
 * each slot has one such line, and the line defines the slot's counting function. A twin (FR_TWIN_KERNEL) is a slot
 * that has the kernel of another slot, so it gets the counting function of that other slot. */
#define AT_FR_ISA_SCALAR(...) __VA_ARGS__
#define AT_FR_ISA_SCALAR_FMA(...)
#define AT_FR_ISA_AVX2(...)
#define AT_FR_ISA_AVXVNNI(...)
#define AT_FR_ISA_AVX512(...)
#define AT_FR_ISA_AVX512VNNI(...)
#define AT_FR_ISA_NEON(...)
#define AT_FR_ISA_DOTPROD(...)
#define AT_FR_ISA_I8MM(...)

#define FR_KERNEL(level, kind, slot, function) AT_##level(COUNT_##kind(slot, function))
#define FR_TWIN_KERNEL(...)
#include "kernels/kernels.def"
#include "kernels/block_kernels.def"
#include "kernels/grouped_kernels.def"
#undef FR_KERNEL

const fr_kernels *fr_bench_counting_kernels(const fr_kernels *kernels, const uint8_t *weights, size_t bytes) {
    under = *kernels;
    counting.isa = kernels->isa;
    head.begin = weights;
    head.end = weights + bytes;
#define FR_KERNEL(level, kind, slot, function) AT_##level(counting.slot = counting_##function;)
#include "kernels/kernels.def"
#include "kernels/block_kernels.def"
#include "kernels/grouped_kernels.def"
#undef FR_KERNEL
    return &counting;
}

void fr_bench_count_into(const fr_team *team, fr_bench_share *shares) {
    own = shares ? shares + team->index : NULL;
    if (own) memset(own, 0, sizeof *own);
}

/* -------------------------------------------------------------------------------------------------------- the table */

/* Holds a timing of a prompt, with the work of each thread. */
typedef struct timing {
    double seconds;
    fr_bench_share *shares; /* [threads] */
} timing;

static void count_into(void *context, const fr_team *team) {
    fr_bench_count_into(team, context);
}

/* Returns the timing whose time is the median. All figures of the table come from this timing, so that the times of the
 * phases add up to the timing's total. */
static const timing *middle_of(timing *timings, size_t count) {
    for (size_t i = 1; i < count; i++)
        for (size_t k = i; k > 0 && timings[k].seconds < timings[k - 1].seconds; k--) {
            timing slower = timings[k - 1];
            timings[k - 1] = timings[k];
            timings[k] = slower;
        }
    return &timings[count / 2];
}

/* Adds a line to the table. of: the seconds of the whole prompt. macs: the phase's multiply-adds, or NaN if they are
 * not counted. peak: the peak to compare with, or NaN if there is none. */
static void put_share(const fr_bench_run *run, const char *phase, size_t thread, double seconds, double of, double macs,
                      double peak) {
    double rate = seconds > 0 ? macs / seconds : NAN;
    fr_bench_text(run->report, phase);
    fr_bench_number(run->report, (double)thread);
    fr_bench_number(run->report, seconds * 1e3);
    fr_bench_number(run->report, 100 * seconds / of);
    fr_bench_number(run->report, macs * 1e-9);
    fr_bench_number(run->report, rate * 1e-9);
    fr_bench_number(run->report, peak > 0 ? 100 * rate / peak : NAN);
}

static void put_timing(const fr_bench_run *run, const timing *t, size_t threads, double peak) {
    static const char *const names[FR_BENCH_PHASES] = {
        "projections", "head", "attention", "recurrent layers", "norms and activations", "quantizing rows"};
    for (size_t phase = 0; phase < FR_BENCH_PHASES; phase++) {
        bool product = phase == FR_BENCH_PROJECTIONS || phase == FR_BENCH_HEAD;
        bool counted = product || phase == FR_BENCH_ATTENTION;
        double all = 0;
        for (size_t i = 0; i < threads; i++) all += t->shares[i].seconds[phase];
        for (size_t i = 0; i < threads && all > 0; i++)
            put_share(run, names[phase], i, t->shares[i].seconds[phase], t->seconds,
                      counted ? t->shares[i].macs[phase] : NAN, product ? peak : NAN);
    }
    for (size_t i = 0; i < threads; i++) {
        double rest = t->seconds;
        for (size_t phase = 0; phase < FR_BENCH_PHASES; phase++) rest -= t->shares[i].seconds[phase];
        put_share(run, "waiting, and the rest", i, rest, t->seconds, NAN, NAN);
    }
}

/* Times prompts with kernels that count. The model has its own kernels again only after the session that uses the
 * counting kernels was closed. */
static fr_status time_prompts(fr_bench_run *run, size_t prompt, timing *timings, size_t threads, double *peak) {
    fr_session *session;
    size_t repetitions = run->plan->repetitions;
    FR_TRY(fr_bench_session(run, 0, prompt, &session));
    fr_pool *pool = session->engine->pool;
    fr_bench_prompt(run->model, session->ids, prompt, 0);
    fr_bench_prefill(session, prompt, 0);
    for (size_t i = 0; i < repetitions; i++) {
        fr_pool_run(pool, count_into, timings[i].shares);
        timings[i].seconds = fr_bench_prefill(session, prompt, 0);
        fr_pool_run(pool, count_into, NULL);
    }
    bool integers = fr_bench_main_type(run->model) >= FR_FLOAT_TYPES;
    *peak = (integers ? fr_bench_dot_peak : fr_bench_fma_peak)(pool, fr_model_isa(run->model)) / (double)threads;
    fr_session_close(session);
    return FR_OK;
}

fr_status fr_bench_model_phases(fr_bench_run *run) {
    static const fr_bench_column columns[] = {
        {"phase", "phase", 0},           {"thread", "thread", 0}, {"ms", "ms", 2},
        {"share", "% of the prompt", 1}, {"gmac", "GMAC", 2},     {"gmac_s", "GMAC/s", 1},
        {"of_peak", "% of peak", 0}};
    size_t prompt = run->plan->phases, repetitions = run->plan->repetitions, threads = run->model->plan.threads;
    if (prompt == 0) return FR_OK;
    fr_bench_doing(run, "phases of a prompt");
    timing *timings = calloc(repetitions, sizeof *timings);
    fr_bench_share *shares = calloc(repetitions * threads, sizeof *shares);
    const fr_kernels *kernels = run->model->kernels;
    const fr_matrix *of_head = &run->model->trunk.head;
    fr_status status = timings && shares ? FR_OK : fr_fail(FR_MEMORY, "no memory for the timings of phases");
    double peak = 0;
    if (status == FR_OK) {
        for (size_t i = 0; i < repetitions; i++) timings[i].shares = shares + i * threads;
        run->model->kernels = fr_bench_counting_kernels(kernels, of_head->data, fr_matrix_bytes(of_head));
        status = time_prompts(run, prompt, timings, threads, &peak);
        run->model->kernels = kernels;
    }
    if (status == FR_OK) {
        double seconds[FR_BENCH_TIMINGS];
        char title[160];
        for (size_t i = 0; i < repetitions; i++) seconds[i] = timings[i].seconds;
        fr_bench_figure figure = fr_bench_figure_of(seconds, repetitions);
        snprintf(title, sizeof title, "Phases of a prompt of %zu%s", prompt, run->how);
        fr_bench_table(run->report, "phases", title, columns, sizeof columns / sizeof *columns);
        put_timing(run, middle_of(timings, repetitions), threads, peak);
        if (fr_bench_is_doubtful(&figure, run->plan->max_spread))
            fr_bench_remark(run->report, "Doubtful: the prompts' times are %.0f%% apart, or there is only one.",
                            isnan(figure.spread) ? 0 : figure.spread);
    }
    fr_bench_doing(run, NULL);
    free(timings);
    free(shares);
    return status;
}
