/* Implements forerun perplexity: measures how well the model predicts a text, and how much its predictions differ from
 * those of a baseline model.
 *
 * The text is cut into chunks of N ids (-c, 512 unless given); an incomplete last chunk is left out. Each chunk is run
 * by itself. If the tokenizer puts an id before a text, that id replaces the first id of each chunk. The ids after the
 * positions N / 2 .. N - 2 are scored: perplexity = exp(mean of -log p(id)), where p(id) is the probability that the
 * model gives the id. With --ppl-stride S, the beginnings of two chunks are S ids apart, the last S ids of each chunk
 * are scored, and no id is replaced. Both definitions are llama-perplexity's.
 *
 * With a baseline, two more figures are given. The first figure is the Kullback-Leibler divergence of a row. It is the
 * sum of p_base * (log p_base - log p) over the ids, where p is the model's probability of an id and p_base is the
 * baseline's. Ids whose log p_base is -16 or less are left out, because the file does not have their probabilities. The
 * second figure is the share of rows in which both models have the same most likely id. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tools/cli/baseline.h"
#include "tools/cli/chunks.h"
#include "tools/cli/tasks.h"
#include "tools/cli/verbs.h"

#define SHALLOW (-16.0f) /* the baseline's file stores log-probabilities only if they are above this one */

/* The sums of values and of their squares. The mean and its standard error are computed from them. */
typedef struct tally {
    double sum, squares, largest;
    size_t count;
} tally;

static void add(tally *t, double value) {
    if (t->count == 0 || value > t->largest) t->largest = value;
    t->sum += value;
    t->squares += value * value;
    t->count++;
}

static double mean(const tally *t) {
    return t->sum / (double)t->count;
}

/* Gives the standard error of the mean, which is sqrt(variance / (count - 1)). */
static double error(const tally *t) {
    double variance = t->squares / (double)t->count - mean(t) * mean(t);
    return t->count > 1 && variance > 0 ? sqrt(variance / (double)(t->count - 1)) : 0;
}

typedef struct scoring {
    /* chunk: number of ids in a chunk. step: number of ids between the beginnings of two chunks. first: index of the
     * first row of a chunk that is scored */
    size_t chunk, step, first;
    size_t chunks;
    const int32_t *ids;  /* ids of the text */
    int32_t front;       /* the id that replaces the first id of a chunk; -1: the first id stays */
    const int32_t *next; /* the id that the next row should predict */
    fr_baseline baseline;
    bool saving, comparing;
    fr_writer writer;    /* writes the baseline; used only if `saving` */
    float *baseline_row; /* [vocab] */
    tally own, theirs;   /* sums of -log p(id) by the model and by the baseline */
    tally divergence;
    size_t same_top;
} scoring;

/* ---------------------------------------------------------------------------------------------------------- one row */

static size_t largest_of(const float *x, size_t n) {
    size_t best = 0;
    for (size_t i = 1; i < n; i++) {
        if (x[i] > x[best]) best = i;
    }
    return best;
}

/* Gives log(sum(exp(x))). */
static double log_sum_exp(const float *x, size_t n) {
    double largest = x[largest_of(x, n)], sum = 0;
    for (size_t i = 0; i < n; i++) sum += exp(x[i] - largest);
    return largest + log(sum);
}

static void compare_row(scoring *s, const float *logits, double log_sum, size_t vocab) {
    const float *baseline = s->baseline_row;
    double divergence = 0;
    for (size_t i = 0; i < vocab; i++) {
        if (baseline[i] > SHALLOW) divergence += exp(baseline[i]) * (baseline[i] - (logits[i] - log_sum));
    }
    add(&s->divergence, divergence);
    add(&s->theirs, -baseline[*s->next]);
    s->same_top += largest_of(baseline, vocab) == largest_of(logits, vocab);
}

static fr_status score_rows(void *context, const float *logits, size_t rows, size_t vocab) {
    scoring *s = context;
    for (size_t r = 0; r < rows; r++, logits += vocab, s->next++) {
        double log_sum = log_sum_exp(logits, vocab);
        add(&s->own, log_sum - logits[*s->next]);
        if (s->saving) fr_baseline_write(&s->baseline, logits, log_sum);
        if (!s->comparing) continue;
        if (!fr_baseline_read(&s->baseline, s->baseline_row)) return FR_MACHINE;
        compare_row(s, logits, log_sum, vocab);
    }
    return FR_OK;
}

/* ------------------------------------------------------------------------------------------------------- all chunks */

static void show_progress(const scoring *s, fr_progress *progress, size_t done) {
    char so_far[64] = "";
    if (done) snprintf(so_far, sizeof(so_far), ", perplexity %.4f so far", exp(mean(&s->own)));
    fr_progress_count(progress, done, s->chunks, s->chunks == 1 ? "chunk" : "chunks", so_far);
}

static int score(scoring *s, const fr_loaded *loaded, const fr_arguments *args) {
    int32_t *ids = fr_resize(NULL, s->chunk, sizeof(*ids));
    fr_progress progress = fr_progress_begin("scoring", args->given[FR_ARG_QUIET]);
    fr_status status = FR_OK;
    for (size_t c = 0; c < s->chunks && status == FR_OK; c++) {
        show_progress(s, &progress, c);
        const int32_t *text = s->ids + c * s->step;
        memcpy(ids, text, s->chunk * sizeof(*ids));
        if (s->front >= 0) ids[0] = s->front;
        s->next = text + s->first + 1;
        status = fr_session_logits(loaded->session, ids, s->chunk - 1, s->first, score_rows, s);
        fr_progress_end(&progress);
        if (status == FR_OK && args->given[FR_ARG_VERBOSE]) {
            fr_note("chunk %zu of %zu: perplexity %.4f so far", c + 1, s->chunks, exp(mean(&s->own)));
        }
    }
    free(ids);
    if (status == FR_MACHINE && s->comparing) {
        return fr_bad_input("%s could not be read to its end", args->text[FR_ARG_BASE]);
    }
    return fr_exit_status(status);
}

static void report(const scoring *s) {
    double perplexity = exp(mean(&s->own));
    printf("scored          %zu ids of %zu chunks of %zu\n", s->own.count, s->chunks, s->chunk);
    printf("perplexity      %.6f +- %.6f\n", perplexity, perplexity * error(&s->own));
    if (!s->comparing) return;
    double baseline = exp(mean(&s->theirs));
    printf("base-perplexity %.6f +- %.6f\n", baseline, baseline * error(&s->theirs));
    printf("kl-divergence   %.6f +- %.6f\n", mean(&s->divergence), error(&s->divergence));
    printf("kl-largest      %.6f\n", s->divergence.largest);
    printf("same-top        %.4f%%\n", 100 * (double)s->same_top / (double)s->own.count);
}

/* ------------------------------------------------------------------------------------------ checks and preparations */

static int check(const fr_arguments *args) {
    bool comparing = args->given[FR_ARG_KL], baseline = args->given[FR_ARG_BASE];
    if (!args->given[FR_ARG_FILE] && !comparing) return fr_wrong_usage("perplexity needs a text: -f FILE");
    if (comparing && !baseline) return fr_wrong_usage("--kl-divergence needs --kl-divergence-base FILE");
    if (baseline && args->given[FR_ARG_STRIDE]) return fr_wrong_usage("a base's file has no --ppl-stride");
    if (comparing && (args->given[FR_ARG_CHUNK_IDS] || args->given[FR_ARG_CHUNKS])) {
        return fr_wrong_usage("-c and --chunks are the base's: leave them out with --kl-divergence");
    }
    if (args->given[FR_ARG_CHUNK_IDS] && args->number[FR_ARG_CHUNK_IDS] > 0 && args->number[FR_ARG_CHUNK_IDS] < 4) {
        return fr_wrong_usage("a chunk (-c) has 4 ids or more");
    }
    return 0;
}

/* Decides how the text is cut into chunks. If there is a baseline, the chunks are the same as in its file. Otherwise
 * the options decide. */
static int cut(scoring *s, const fr_loaded *loaded, const fr_arguments *args, const fr_prompt *text) {
    size_t stride = 0;
    s->chunk = s->comparing ? s->baseline.chunk : fr_chunks_ids(loaded, args);
    int code = fr_chunks_check_model(loaded, s->chunk);
    if (code) return code;
    if (args->given[FR_ARG_STRIDE]) stride = (size_t)args->number[FR_ARG_STRIDE];
    if (stride >= s->chunk) {
        return fr_wrong_usage("--ppl-stride %zu: a chunk of %zu ids must be longer", stride, s->chunk);
    }
    s->step = stride ? stride : s->chunk;
    s->first = stride ? s->chunk - stride - 1 : fr_baseline_first(s->chunk);
    if (s->comparing) {
        s->ids = s->baseline.ids;
        s->chunks = s->baseline.chunks;
        return 0;
    }
    code = fr_chunks_check_text(args, text->count, s->chunk);
    if (code) return code;
    s->ids = text->ids;
    s->chunks = stride ? (text->count - s->chunk + stride - 1) / stride : text->count / s->chunk;
    if (s->chunks == 0) s->chunks = 1;
    s->chunks = fr_chunks_most(args, s->chunks);
    return 0;
}

/* Prepares the baseline's file. A new file gets its header. A file that is read is checked against the model. */
static int prepare_base(scoring *s, const fr_loaded *loaded, const fr_arguments *args, const fr_prompt *text) {
    size_t vocab = (size_t)fr_model_fact(loaded->model, FR_FACT_VOCAB);
    if (s->saving) fr_baseline_begin(&s->baseline, s->writer.file, s->ids, s->chunk, vocab, s->chunks);
    if (!s->comparing) return 0;
    if (s->baseline.vocab != vocab) {
        return fr_bad_input("%s is of a vocabulary of %zu, the model's is %zu", args->text[FR_ARG_BASE],
                            s->baseline.vocab, vocab);
    }
    size_t count = s->chunks * s->chunk;
    if (text->ids && (text->count < count || memcmp(text->ids, s->ids, count * sizeof(*s->ids)) != 0)) {
        return fr_bad_input("%s was made of another text than %s, or with another tokenizer", args->text[FR_ARG_BASE],
                            args->text[FR_ARG_FILE]);
    }
    s->baseline_row = fr_resize(NULL, vocab, sizeof(*s->baseline_row));
    return 0;
}

static int run(scoring *s, fr_loaded *loaded, const fr_arguments *args, fr_prompt *text) {
    int code = fr_loaded_open(loaded, args);
    if (!code && text->bytes) code = fr_prompt_tokenize(text, loaded, args);
    s->front = -1;
    if (!code && !args->given[FR_ARG_STRIDE]) code = fr_prompt_front(loaded, args, &s->front);
    if (!code) code = cut(s, loaded, args, text);
    if (!code) code = prepare_base(s, loaded, args, text);
    if (!code) code = fr_loaded_start(loaded, args, s->chunk, 0);
    return code ? code : score(s, loaded, args);
}

int fr_verb_perplexity(const fr_arguments *args) {
    if (fr_tasks_asked(args)) return fr_tasks_run(args);
    int code = check(args);
    if (code) return code;
    scoring s = {.comparing = args->given[FR_ARG_KL], .saving = args->given[FR_ARG_BASE] && !args->given[FR_ARG_KL]};
    fr_loaded loaded = {0};
    fr_prompt text = {0};
    if (args->given[FR_ARG_FILE]) code = fr_prompt_read(&text, args);
    if (!code && s.comparing) code = fr_baseline_open(&s.baseline, args->text[FR_ARG_BASE]);
    if (!code && s.saving) code = fr_writer_open(&s.writer, args->text[FR_ARG_BASE]);
    if (!code) code = run(&s, &loaded, args, &text);
    if (s.saving && !code)
        code = fr_writer_close(&s.writer);
    else if (s.saving)
        fr_writer_abandon(&s.writer);
    if (!code) report(&s);
    fr_baseline_close(&s.baseline);
    free(s.baseline_row);
    fr_loaded_close(&loaded);
    fr_prompt_free(&text);
    return code;
}
