/* Implements forerun imatrix: runs a text, measures how large the inputs of each matrix are in each column, and writes
 * the result in llama-imatrix's form. Quantization uses this result to keep the important columns more exact.
 *
 * The text is cut into chunks of N ids (-c, 512 unless given); an incomplete last chunk is left out. Each chunk is run
 * by itself. If the tokenizer puts an id before a text, that id replaces the first id of each chunk. The library adds
 * up the squares of the inputs. */
#include <stdlib.h>
#include <string.h>

#include "forerun_lab.h"
#include "tools/cli/chunks.h"
#include "tools/cli/output.h"
#include "tools/cli/verbs.h"

/* The text that is run, and how it is cut into chunks. */
typedef struct collecting {
    fr_prompt text;
    size_t chunk, chunks;
    int32_t front; /* the id that replaces the first id of each chunk; -1: the first id stays */
} collecting;

static fr_status drop_rows(void *context, const float *logits, size_t rows, size_t vocab) {
    (void)context;
    (void)logits;
    (void)rows;
    (void)vocab;
    return FR_OK;
}

static int run_chunks(const collecting *c, const fr_loaded *loaded, const fr_arguments *args) {
    int32_t *ids = fr_resize(NULL, c->chunk, sizeof(*ids));
    fr_progress progress = fr_progress_begin("collecting", args->given[FR_ARG_QUIET]);
    fr_status status = FR_OK;
    for (size_t i = 0; i < c->chunks && status == FR_OK; i++) {
        fr_progress_count(&progress, i, c->chunks, c->chunks == 1 ? "chunk" : "chunks", "");
        memcpy(ids, c->text.ids + i * c->chunk, c->chunk * sizeof(*ids));
        if (c->front >= 0) ids[0] = c->front;
        status = fr_session_logits(loaded->session, ids, c->chunk, 0, drop_rows, NULL);
    }
    fr_progress_end(&progress);
    free(ids);
    return fr_exit_status(status);
}

static int collect(collecting *c, fr_loaded *loaded, const fr_arguments *args) {
    int code = fr_prompt_read(&c->text, args);
    if (!code) code = fr_loaded_open(loaded, args);
    if (!code) code = fr_prompt_tokenize(&c->text, loaded, args);
    if (!code) code = fr_prompt_front(loaded, args, &c->front);
    if (!code) c->chunk = fr_chunks_ids(loaded, args);
    if (!code) code = fr_chunks_check_model(loaded, c->chunk);
    if (!code) code = fr_chunks_check_text(args, c->text.count, c->chunk);
    if (!code) c->chunks = fr_chunks_most(args, c->text.count / c->chunk);
    if (!code) code = fr_loaded_start(loaded, args, c->chunk, 0);
    return code ? code : run_chunks(c, loaded, args);
}

static int write_sums(const collecting *c, const fr_loaded *loaded, const fr_arguments *args, FILE *out) {
    const char *form = args->text[FR_ARG_OUTPUT_FORMAT];
    fr_lab_importances how = {
        .text = args->text[FR_ARG_FILE],
        .chunk = c->chunk,
        .chunks = c->chunks,
        .older = form && strcmp(form, "dat") == 0,
        .note = args->given[FR_ARG_QUIET] ? NULL : fr_note_line,
    };
    return fr_exit_status(fr_lab_write_importances(loaded->model, &how, out));
}

int fr_verb_imatrix(const fr_arguments *args) {
    if (!args->given[FR_ARG_FILE]) return fr_wrong_usage("imatrix needs a text: -f FILE");
    if (!args->given[FR_ARG_OUT_FILE]) return fr_wrong_usage("imatrix needs -o FILE");
    collecting c = {.front = -1};
    fr_loaded loaded = {0};
    fr_writer writer;
    int code = fr_writer_open(&writer, args->text[FR_ARG_OUT_FILE]);
    if (code) return code;
    code = collect(&c, &loaded, args);
    if (!code) code = write_sums(&c, &loaded, args, writer.file);
    if (!code)
        code = fr_writer_close(&writer);
    else
        fr_writer_abandon(&writer);
    fr_loaded_close(&loaded);
    fr_prompt_free(&c.text);
    return code;
}
