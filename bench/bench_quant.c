/* Measures quantized models and this machine's limits in one run, and compares them. Decoding is compared with the read
 * bandwidth, verifying K rows with decoding, and prompts with the peak of the int8 dot product.
 *
 * In: GGUF files. If none is given, every shape and type that has a target is written as random weights to build/bench
 * (up to 5 GB), measured and removed. Words before the files choose the parts to run: decode, avx2, context, prompt.
 * Out: markdown on standard output, with each figure's limit and target next to the figure.
 *
 * A step of K rows has two lower bounds. Its stream time is the bytes of the weights that it reads, divided by the
 * bandwidth. In a mixture a step reads only the experts that the rows chose. Its dot time is its multiply-adds divided
 * by (e * dot peak), where e is the share of the peak that is left when the weights must be unpacked too. Let L(K) be
 * max(stream time of K, dot time of K) / stream time of 1, and T(K) the measured time of a step of K rows. Then L(K) is
 * the least possible T(K) / T(1). */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/limits.h"
#include "bench/measure.h"
#include "forerun_lab.h"
#include "kernels/cpu.h"
#include "src/engine/layers/activations.h"
#include "src/engine/weights/partition.h"

#define ROWS_MAX 8
#define SHORT    128  /* number of positions before the timed rows */
#define LONG     4096 /* a longer context, in which attention takes a noticeable time */
#define PROMPT   512
#define PROMPTS  15   /* number of timed runs of a prompt */
#define DECODE   0.90 /* the least share of the bandwidth that decode must reach */

/* For each type, the least share of the dot peak that a prompt's products must reach. */
static const struct {
    fr_dtype type;
    double prompt;
} expectations[] = {{FR_Q4_0, 0.60}, {FR_Q8_0, 0.60}, {FR_Q4_K, 0.50}, {FR_Q6_K, 0.50}};

/* limits[K] is the largest factor by which T(K) / T(1) may exceed L(K); 0 means that there is no target for this K. */
static const double vnni_limits[ROWS_MAX + 1] = {[2] = 1.08, [4] = 1.15, [8] = 1.15};
static const double avx2_limits[ROWS_MAX + 1] = {[4] = 1.30};

static int met, missed;

/* Gives the word "met" or "missed", and counts how often each was given. */
static const char *verdict(bool good) {
    if (good)
        met++;
    else
        missed++;
    return good ? "met" : "**missed**";
}

/* ---------------------------------------------------------------------------------------------- a model, its limits */

typedef struct bench {
    fr_options *options;
    fr_model *model;
    fr_session *session;
    fr_dtype type;       /* type of most of the bytes that a step reads */
    double prompt_share; /* the least share of the dot peak that a prompt must reach; 0 if there is no target */
    fr_bench_cost one;   /* cost of a step of one row */
    double decode;       /* seconds of a decode step */
    size_t again;        /* number of pairs that were measured again because the memory's speed changed */
} bench;

/* Opens a model. isa: the instruction set, or NULL for the best one. */
static bench open_bench(const char *path, const char *isa) {
    bench b = {.options = fr_options_new()};
    fr_bench_require(fr_options_set(b.options, FR_OPT_CONTEXT, LONG + FR_STEP_MAX));
    fr_bench_require(fr_options_set_text(b.options, FR_OPT_KV_K, "f16"));
    fr_bench_require(fr_options_set_text(b.options, FR_OPT_KV_V, "f16"));
    if (isa) fr_bench_require(fr_options_set_text(b.options, FR_OPT_ISA, isa));
    fr_bench_require(fr_model_open(path, b.options, &b.model));
    fr_bench_require(fr_session_open(b.model, NULL, b.options, &b.session));
    b.type = fr_bench_main_type(b.model);
    for (size_t i = 0; i < sizeof expectations / sizeof *expectations; i++) {
        if (expectations[i].type == b.type) b.prompt_share = expectations[i].prompt;
    }
    fr_bench_prompt(b.model, b.session->ids, LONG + FR_STEP_MAX, 0);
    return b;
}

static void close_bench(bench *b) {
    fr_session_close(b->session);
    fr_model_close(b->model);
    fr_options_free(b->options);
}

static double measure_limits(bench *b) {
    double peak = fr_bench_dot_peak(b->session->engine->pool, fr_model_isa(b->model));
    fr_bench_stream stream = fr_bench_stream_of(b->session, SHORT);
    b->one = fr_bench_cost_of(b->session, 1, SHORT);
    b->decode = stream.step;
    b->again = stream.again;
    printf("Measured in turn with decode, %s, %zu threads: read %.1f GB/s (%.1f to %.1f); int8 dot %.0f GMAC/s. A step "
           "reads %.3f GB of weights (%s) and multiplies %.3f G a row.\n\n",
           fr_model_isa(b->model), b->model->plan.threads, stream.bandwidth / 1e9, stream.lowest / 1e9,
           stream.highest / 1e9, peak / 1e9, b->one.bytes / 1e9, fr_dtype_name(b->type), b->one.macs / 1e9);
    return stream.share;
}

static void begin_at(bench *b, size_t positions) {
    static int32_t ids[LONG];
    fr_bench_prompt(b->model, ids, positions, 0);
    fr_session_reset(b->session);
    fr_bench_require(fr_session_prompt(b->session, ids, positions));
}

/* ------------------------------------------------------------------------------------------------ decode and verify */

static void print_rows(bench *b, const double *limits) {
    fr_bench_memory memory = fr_bench_memory_open(b->session->engine->pool, (size_t)1 << 30);
    bool mixture = !isnan(b->one.experts);
    printf("| rows | T(K)/T(1) | L(K) | over L(K) | at most | |%s\n| --- | --- | --- | --- | --- | --- |%s\n",
           mixture ? " experts read, mean |" : "", mixture ? " --- |" : "");
    for (size_t rows = 1; rows <= ROWS_MAX; rows++) {
        fr_bench_verify v = fr_bench_verify_limited(b->session, &memory, rows, SHORT);
        b->again += v.again;
        printf("| %zu | %.3f | %.3f | %.3f |", rows, v.ratio, v.limit, v.over);
        if (limits && limits[rows] > 0)
            printf(" %.2f | %s |", limits[rows], verdict(v.over <= limits[rows]));
        else
            printf(" | |");
        if (mixture) printf(" %.1f |", v.experts);
        printf("\n");
    }
    fr_bench_memory_close(&memory);
    printf("\n");
}

static void bench_decode(bench *b, const double *limits, bool judge) {
    begin_at(b, SHORT);
    double share = measure_limits(b);
    print_rows(b, limits);
    printf("Decode at context %d: %.2f ms, %.1f GB/s, **%.1f%%** of the bandwidth", SHORT, b->decode * 1e3,
           b->one.bytes / b->decode / 1e9, 100 * share);
    if (judge) printf(" (at least %.0f%%: %s)", 100 * DECODE, verdict(share >= DECODE));
    printf(". Memory changed its speed within %zu pairs, which were measured again.\n\n", b->again);
}

/* Returns the share of T(rows) at position LONG that attention takes. A forward at position 0 has no earlier positions
 * to attend to, so the difference between the two times is the time of attention. */
static double attention_share(fr_session *session, size_t rows) {
    double shares[FR_BENCH_PAIRS];
    for (size_t pair = 0; pair < FR_BENCH_PAIRS; pair++)
        shares[pair] = 1 - fr_bench_forward(session, rows, 0) / fr_bench_forward(session, rows, LONG);
    return fr_bench_median(shares, FR_BENCH_PAIRS);
}

static void bench_context(bench *b) {
    double one;
    begin_at(b, LONG);
    double ratio = fr_bench_verify_ratio(b->session, 4, LONG, &one);
    printf("Context %d: T(4)/T(1) = %.3f, T(1) = %.2f ms; attention takes %.0f%% of T(1), %.0f%% of T(4).\n\n", LONG,
           ratio, one * 1e3, 100 * attention_share(b->session, 1), 100 * attention_share(b->session, 4));
}

/* --------------------------------------------------------------------------------------------------------- a prompt */

/* Holds the arguments of a run of a prompt's matrix products, without the rest of the forward. `macs` gets the number
 * of their multiply-adds. The inputs are whatever the buffers of the activations hold, because values do not change the
 * time. */
typedef struct products {
    fr_session *session;
    double macs;
} products;

/* Computes the output features [begin, end) of a product. The threads of the team divide these features among them. */
static void apply_part(products *p, const fr_team *team, const fr_workspace *workspace, const fr_matrix *m,
                       size_t begin, size_t end, float *y, const float *x, size_t rows) {
    size_t from, to;
    if (rows == 0 || begin == end) return;
    fr_part_features(team, end - begin, &from, &to);
    fr_matrix_apply_part(workspace, m, begin + from, begin + to, &(fr_matrix_rows){y, m->features, x, m->cols, rows});
    if (team->index == 0) p->macs += (double)rows * (double)(end - begin) * (double)m->cols;
}

static void apply(products *p, const fr_team *team, const fr_workspace *workspace, const fr_matrix *m, float *y,
                  const float *x, size_t rows) {
    apply_part(p, team, workspace, m, 0, m->features, y, x, rows);
}

/* Quantizes the rows of an input, as the engine does before the first product that reads them. */
static void prepare(const fr_team *team, const fr_workspace *workspace, const fr_matrix *m, const float *x,
                    size_t rows) {
    fr_publish_own_input(team, workspace, x, m->cols, m->cols, rows);
}

/* Runs the products of a layer: kv_rows rows for queries, keys and values, and `rows` rows for all others. */
static void layer_products(products *p, const fr_team *team, const fr_activations *a, const fr_layer *l, size_t kv_rows,
                           size_t rows) {
    const fr_workspace *w = &a->workspace;
    prepare(team, w, &l->attention.q, a->normed, kv_rows);
    apply(p, team, w, &l->attention.q, a->q, a->normed, kv_rows);
    if (l->attention.k.data) apply(p, team, w, &l->attention.k, a->k, a->normed, kv_rows);
    if (l->attention.v.data) apply(p, team, w, &l->attention.v, a->v, a->normed, kv_rows);
    prepare(team, w, &l->attention.o, a->attn, rows);
    apply(p, team, w, &l->attention.o, a->out, a->attn, rows);
    prepare(team, w, &l->ffn.gate_up[0], a->normed, rows);
    apply(p, team, w, &l->ffn.gate_up[0], a->gate, a->normed, rows);
    apply(p, team, w, &l->ffn.gate_up[1], a->up, a->normed, rows);
    prepare(team, w, &l->ffn.down, a->up, rows);
    apply(p, team, w, &l->ffn.down, a->out, a->up, rows);
    if (!l->ple.gate.data) return;
    prepare(team, w, &l->ple.gate, a->x, rows);
    apply(p, team, w, &l->ple.gate, a->gate, a->x, rows);
    prepare(team, w, &l->ple.out, a->gate, rows);
    apply(p, team, w, &l->ple.out, a->out, a->gate, rows);
}

/* Runs the products of a prompt's forward. Layers that use the keys and values of an earlier layer run only for the
 * last row. */
static void run_products(void *context, const fr_team *team) {
    products *p = context;
    const fr_engine *e = p->session->engine;
    const fr_activations *a = e->activations;
    const fr_trunk *trunk = a->trunk;
    const fr_matrix *tokens = &trunk->ple_projection;
    size_t owned = trunk->owners * trunk->spec.ple_width;
    for (size_t done = 0, rows; done < PROMPT; done += rows) {
        rows = e->chunk < PROMPT - done ? e->chunk : PROMPT - done;
        size_t kept = done + rows == PROMPT;
        if (tokens->data) {
            prepare(team, &a->workspace, tokens, a->x, rows);
            apply_part(p, team, &a->workspace, tokens, 0, owned, a->token, a->x, rows);
            apply_part(p, team, &a->workspace, tokens, owned, tokens->features, a->token, a->x, kept);
        }
        for (size_t l = 0; l < trunk->spec.layers && (l < trunk->owners || kept); l++)
            layer_products(p, team, a, &trunk->layers[l], l < trunk->owners ? rows : kept,
                           l + 1 < trunk->owners ? rows : kept);
    }
    prepare(team, &a->workspace, &trunk->head, e->hidden, 1);
    apply(p, team, &a->workspace, &trunk->head, e->logits, e->hidden, 1);
}

/* Times the limit and the products in turn, and compares the best time of each. Best times are used because other
 * programs on a shared machine slow the two down unequally. These programs mostly take up caches, which slows the
 * products, but hardly slows a loop on registers. */
static void bench_prompt(bench *b) {
    static int32_t ids[PROMPT];
    double whole[PROMPTS], alone[PROMPTS], macs = 0, peak = 0;
    fr_bench_prompt(b->model, ids, PROMPT, 0);
    for (int run = -1; run < PROMPTS; run++) {
        products p = {.session = b->session};
        fr_session_reset(b->session);
        fr_bench_require(fr_session_prompt(b->session, ids, PROMPT));
        peak = fmax(peak, fr_bench_dot_peak(b->session->engine->pool, fr_model_isa(b->model)));
        double start = fr_clock();
        fr_pool_run(b->session->engine->pool, run_products, &p);
        double seconds = fr_clock() - start;
        if (run < 0) continue;
        whole[run] = fr_session_stat(b->session, FR_STAT_PREFILL_SECONDS);
        alone[run] = seconds;
        macs = p.macs;
    }
    double seconds = fr_bench_median(whole, PROMPTS), middle = fr_bench_median(alone, PROMPTS);
    double share = macs / alone[0] / peak; /* the times are sorted, so the first one is the best */
    printf("Prompt of %d in chunks of %zu: %.0f tokens/s; %.1f GMAC of products at **%.1f%%** of the dot peak (%.0f "
           "GMAC/s)",
           PROMPT, b->session->engine->chunk, PROMPT / seconds, macs / 1e9, 100 * share, peak / 1e9);
    if (b->prompt_share > 0) printf(" (at least %.0f%%: %s)", 100 * b->prompt_share, verdict(share >= b->prompt_share));
    printf(", the middle of %d runs at %.1f%%. They are %.0f%% of the time; the whole prompt is at %.1f%%.\n\n",
           PROMPTS, 100 * macs / middle / peak, 100 * middle / seconds, 100 * macs / seconds / peak);
}

/* ------------------------------------------------------------------------------------------------------ the command */

enum { PART_DECODE = 1, PART_AVX2 = 2, PART_CONTEXT = 4, PART_PROMPT = 8, PART_ALL = 15 };

static void bench_file(const char *path, unsigned parts) {
    const char *slash = strrchr(path, '/');
    printf("\n## %s\n\n", slash ? slash + 1 : path);
    bench b = open_bench(path, NULL);
    bool vnni = fr_isa_allows(fr_isa_from_word(fr_model_isa(b.model))) >> FR_ISA_AVX512VNNI & 1;
    bool expected = b.prompt_share > 0;
    if (parts & PART_DECODE) bench_decode(&b, vnni && expected ? vnni_limits : NULL, expected);
    if (parts & PART_CONTEXT) bench_context(&b);
    if (parts & PART_PROMPT) bench_prompt(&b);
    close_bench(&b);
    if (!(parts & PART_AVX2) || !fr_lab_isa_here("avx2")) return;
    b = open_bench(path, "avx2");
    bench_decode(&b, expected ? avx2_limits : NULL, false);
    close_bench(&b);
}

static unsigned part_named(const char *word) {
    static const char *const words[] = {"decode", "avx2", "context", "prompt"};
    for (unsigned i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i], word) == 0) return 1u << i;
    return 0;
}

/* Measures a model with random weights, which is written first and removed afterwards. */
static void bench_shape(const char *shape, const char *type, unsigned parts) {
    char path[128];
    mkdir("build", 0777);
    mkdir("build/bench", 0777);
    snprintf(path, sizeof path, "build/bench/%s-%s.gguf", shape, type);
    FILE *file = fopen(path, "wb");
    if (!file) {
        perror(path);
        exit(1);
    }
    fr_bench_require(fr_lab_synth(&(fr_lab_shape){.name = shape, .type = type}, NULL, file));
    fclose(file);
    bench_file(path, parts);
    unlink(path);
}

static void bench_shapes(unsigned parts) {
    static const char *const names[] = {"gemma4-1b", "gemma4-e2b"}, *const types[] = {"q4_0", "q8_0", "q4_k", "q6_k"};
    for (size_t s = 0; s < sizeof names / sizeof *names; s++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) bench_shape(names[s], types[t], parts);
}

int main(int argc, char **argv) {
    unsigned parts = 0;
    int at = 1;
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (at < argc && part_named(argv[at])) parts |= part_named(argv[at++]);
    if (!parts) parts = PART_ALL;
    printf("# forerun, quantized weights\n");
    for (int i = at; i < argc; i++) bench_file(argv[i], parts);
    if (at == argc) bench_shapes(parts);
    printf("%d targets met, %d missed.\n", met, missed);
    return 0;
}
