/* Times llama.cpp's forward of K rows with logits for all of them, for results.py. Verifying K - 1 drafts needs such a
 * forward. build.sh links this program with llama.cpp's library.
 *
 *   usage: peer-rows MODEL THREADS DEPTH PAIRS K...
 *
 * In: a GGUF file; DEPTH ids are run first. Out: JSON like llama-bench's, with an object with "rows" and "samples_ns"
 * for each K. Before each of the PAIRS timings of K rows, one row is run at the same position, as in forerun bench
 * model. The keys and values that a forward adds to the cache are removed again, outside of the timing. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "llama.h"

#define ROWS_MAX 64
#define PART_MAX 2048 /* rows of one forward while the cache is filled, llama.cpp's default */

typedef struct run {
    struct llama_context *context;
    struct llama_batch batch;
    int32_t vocab, depth;
} run;

static void silence(enum ggml_log_level level, const char *text, void *context) {
    (void)level, (void)text, (void)context;
}

/* Reads a number from 1 to `most`. Returns 0 if the text is anything else. */
static int32_t number(const char *text, long most) {
    char *end;
    long value = strtol(text, &end, 10);
    return end != text && *end == '\0' && value > 0 && value <= most ? (int32_t)value : 0;
}

static int64_t nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Runs arbitrary ids from a position on. If `all` is true, logits are computed for all rows, otherwise only for the
 * last row. */
static bool forward(run *r, int32_t position, int32_t rows, bool all) {
    r->batch.n_tokens = rows;
    for (int32_t i = 0; i < rows; i++) {
        int64_t at = position + i;
        r->batch.token[i] = (llama_token)((at * at * 31 + 7 * at + 2) % r->vocab);
        r->batch.pos[i] = (llama_pos)at;
        r->batch.n_seq_id[i] = 1;
        r->batch.seq_id[i][0] = 0;
        r->batch.logits[i] = all || i + 1 == rows;
    }
    if (llama_decode(r->context, r->batch)) return false;
    llama_synchronize(r->context);
    return true;
}

/* Gives the nanoseconds of a forward of `rows` rows after the context. The result is negative if llama.cpp refuses the
 * forward. */
static int64_t time_rows(run *r, int32_t rows) {
    int64_t start = nanoseconds();
    bool done = forward(r, r->depth, rows, true);
    int64_t end = nanoseconds();
    done = done && llama_memory_seq_rm(llama_get_memory(r->context), 0, r->depth, -1);
    return done ? end - start : -1;
}

static bool time_pairs(run *r, int32_t rows, int pairs) {
    printf("{\"rows\": %d, \"samples_ns\": [", rows);
    for (int pair = -1; pair < pairs; pair++) {
        int64_t one = time_rows(r, 1), several = time_rows(r, rows);
        if (one < 0 || several < 0) return false;
        if (pair >= 0) printf("%s%lld", pair ? ", " : "", (long long)several);
    }
    printf("]}");
    return true;
}

static struct llama_context *open_context(struct llama_model *model, int32_t threads, int32_t depth) {
    struct llama_context_params params = llama_context_default_params();
    params.n_ctx = (uint32_t)depth + ROWS_MAX;
    params.n_batch = PART_MAX;
    params.n_threads = params.n_threads_batch = threads;
    params.swa_full = false;
    return llama_init_from_model(model, params);
}

static bool measure(run *r, int pairs, char **words, int count) {
    for (int32_t at = 0; at < r->depth; at += PART_MAX)
        if (!forward(r, at, r->depth - at < PART_MAX ? r->depth - at : PART_MAX, false)) return false;
    printf("[");
    for (int i = 0; i < count; i++) {
        int32_t rows = number(words[i], ROWS_MAX);
        if (i) printf(",\n ");
        if (!rows || !time_pairs(r, rows, pairs)) return false;
    }
    printf("]\n");
    return true;
}

int main(int argc, char **argv) {
    run r = {.depth = argc > 5 ? number(argv[3], 65536) : 0};
    int32_t threads = argc > 5 ? number(argv[2], 1024) : 0, pairs = argc > 5 ? number(argv[4], 10000) : 0;
    if (!r.depth || !threads || !pairs) {
        fprintf(stderr, "usage: peer-rows MODEL THREADS DEPTH PAIRS K...\n");
        return 2;
    }
    llama_log_set(silence, NULL);
    llama_backend_init();
    struct llama_model *model = llama_model_load_from_file(argv[1], llama_model_default_params());
    bool done = false;
    if (model) {
        r.vocab = llama_vocab_n_tokens(llama_model_get_vocab(model));
        r.batch = llama_batch_init(PART_MAX, 0, 1);
        r.context = open_context(model, threads, r.depth);
        done = r.context && measure(&r, pairs, argv + 5, argc - 5);
        if (r.context) llama_free(r.context);
        llama_batch_free(r.batch);
        llama_model_free(model);
    }
    llama_backend_free();
    if (!done) fprintf(stderr, "peer-rows: %s: llama.cpp can't run it\n", argv[1]);
    return !done;
}
