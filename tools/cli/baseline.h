/* Reads and writes a file with the predictions of a baseline model. Another model, or a quantized copy of the baseline,
 * is compared with these predictions.
 *
 * The files have the form of llama-perplexity's files, so that the two programs can read each other's files.
 * Little-endian:
 *     8 bytes  "_logits_"
 *     int32    n: ids of a chunk
 *     int32    vocab
 *     int32    chunks
 *     int32    [chunks * n] the ids
 *     rows     (n - 1 - n / 2) for each chunk: predictions of the ids after positions n / 2 .. n - 2
 * A row is float32 scale, float32 least, and a uint16 code for each id of the vocabulary (padded to an even number of
 * codes): the natural logarithm of the id's probability is least + scale * code. The codes cover logarithms down to 16
 * below the largest one; smaller logarithms are stored as least. */
#ifndef FR_TOOLS_CLI_BASELINE_H
#define FR_TOOLS_CLI_BASELINE_H

#include "tools/cli/output.h"

typedef struct fr_baseline {
    FILE *file;
    bool reading; /* the file was opened by fr_baseline_open, for reading */
    size_t chunk, vocab, chunks;
    int32_t *ids;  /* [chunks * chunk] the file's ids; set only if the file is read */
    uint16_t *row; /* a row as it is stored in the file */
} fr_baseline;

/* fr_baseline_first gives the first position of a chunk for which the file has a row. fr_baseline_rows gives the number
 * of rows of a chunk. */
static inline size_t fr_baseline_first(size_t chunk) {
    return chunk / 2;
}

static inline size_t fr_baseline_rows(size_t chunk) {
    return chunk - 1 - fr_baseline_first(chunk);
}

/* Opens a file, reads its header and its ids, and checks that its length agrees with them. */
int fr_baseline_open(fr_baseline *baseline, const char *path);

/* Writes the header to `file`. The caller has opened the file and closes it later. */
void fr_baseline_begin(fr_baseline *baseline, FILE *file, const int32_t *ids, size_t chunk, size_t vocab,
                       size_t chunks);

/* Writes the next row. log_sum: the natural logarithm of the sum of exp(logit), which turns logits into
 * log-probabilities. */
void fr_baseline_write(fr_baseline *baseline, const float *logits, double log_sum);

/* Reads the next row as log-probabilities, one for each id of the vocabulary. Returns false if the file can't be
 * read. */
bool fr_baseline_read(fr_baseline *baseline, float *log_probabilities);

/* Closes a file that fr_baseline_open opened, and frees the memory. A file that fr_baseline_begin got stays open,
 * because the caller closes it. */
void fr_baseline_close(fr_baseline *baseline);

#endif
