/* Reads and writes a baseline's predictions (baseline.h). */
#include "tools/cli/baseline.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is the memory, so that must be little-endian too");

#define MAGIC   "_logits_"
#define HEADER  20 /* bytes before the ids */
/* each row begins with two floats, its scale and its least logarithm, which take the place of 4 uint16 */
#define SCALES  4
/* a logarithm that is below the row's largest one by more than this is stored as the row's least */
#define DEPTH   16.0f
#define CODES   65535.0f
/* the largest plausible number of ids, words or chunks; a file with a larger number is damaged */
#define LARGEST (1 << 24)

static size_t row_length(const fr_baseline *baseline) {
    return SCALES + (baseline->vocab + 1) / 2 * 2;
}

/* Gives the length of a complete file in bytes. It is computed as a double, which is exact enough because each factor
 * is at most LARGEST. */
static double file_length(const fr_baseline *baseline) {
    double rows = (double)baseline->chunks * (double)fr_baseline_rows(baseline->chunk);
    return HEADER + 4.0 * (double)baseline->chunks * (double)baseline->chunk +
           2.0 * rows * (double)row_length(baseline);
}

static int read_ids(fr_baseline *baseline, const char *path) {
    size_t count = baseline->chunks * baseline->chunk;
    baseline->ids = fr_resize(NULL, count, sizeof(*baseline->ids));
    baseline->row = fr_resize(NULL, row_length(baseline), sizeof(*baseline->row));
    if (fread(baseline->ids, sizeof(*baseline->ids), count, baseline->file) != count) {
        return fr_bad_input("%s: %s", path, strerror(errno));
    }
    for (size_t i = 0; i < count; i++) {
        if (baseline->ids[i] >= 0 && (size_t)baseline->ids[i] < baseline->vocab) continue;
        return fr_bad_input("%s: id %d is outside its vocabulary of %zu", path, baseline->ids[i], baseline->vocab);
    }
    return 0;
}

static int read_header(fr_baseline *baseline, const char *path) {
    char magic[8];
    int32_t sizes[3];
    if (fread(magic, 1, 8, baseline->file) != 8 || memcmp(magic, MAGIC, 8) != 0 ||
        fread(sizes, sizeof(*sizes), 3, baseline->file) != 3) {
        return fr_bad_input("%s is not a file of a base model's logits", path);
    }
    for (int i = 0; i < 3; i++) {
        if (sizes[i] < (i ? 1 : 4) || sizes[i] > LARGEST) return fr_bad_input("%s: damaged header", path);
    }
    baseline->chunk = (size_t)sizes[0];
    baseline->vocab = (size_t)sizes[1];
    baseline->chunks = (size_t)sizes[2];
    if (fseeko(baseline->file, 0, SEEK_END) != 0) return fr_bad_input("%s: %s", path, strerror(errno));
    off_t length = ftello(baseline->file);
    if ((double)length != file_length(baseline)) {
        return fr_bad_input("%s has %lld bytes, its header says %.0f: not complete?", path, (long long)length,
                            file_length(baseline));
    }
    return fseeko(baseline->file, HEADER, SEEK_SET) == 0 ? read_ids(baseline, path)
                                                         : fr_bad_input("%s: %s", path, strerror(errno));
}

int fr_baseline_open(fr_baseline *baseline, const char *path) {
    *baseline = (fr_baseline){.file = fopen(path, "rb"), .reading = true};
    if (!baseline->file) return fr_bad_input("%s: %s", path, strerror(errno));
    return read_header(baseline, path);
}

void fr_baseline_begin(fr_baseline *baseline, FILE *file, const int32_t *ids, size_t chunk, size_t vocab,
                       size_t chunks) {
    *baseline = (fr_baseline){.file = file, .chunk = chunk, .vocab = vocab, .chunks = chunks};
    baseline->row = fr_resize(NULL, row_length(baseline), sizeof(*baseline->row));
    int32_t sizes[3] = {(int32_t)chunk, (int32_t)vocab, (int32_t)chunks};
    fwrite(MAGIC, 1, 8, file);
    fwrite(sizes, sizeof(*sizes), 3, file);
    fwrite(ids, sizeof(*ids), chunks * chunk, file);
}

void fr_baseline_write(fr_baseline *baseline, const float *logits, double log_sum) {
    float largest = logits[0], least = logits[0];
    for (size_t i = 1; i < baseline->vocab; i++) {
        largest = fmaxf(largest, logits[i]);
        least = fminf(least, logits[i]);
    }
    least = fmaxf(least, largest - DEPTH);
    float scales[2] = {(largest - least) / CODES, (float)(least - log_sum)};
    float inverse = largest > least ? CODES / (largest - least) : 0;
    memset(baseline->row, 0, row_length(baseline) * sizeof(*baseline->row));
    memcpy(baseline->row, scales, sizeof(scales));
    for (size_t i = 0; i < baseline->vocab; i++) {
        baseline->row[SCALES + i] = (uint16_t)fminf(CODES, rintf(fmaxf(0, logits[i] - least) * inverse));
    }
    fwrite(baseline->row, sizeof(*baseline->row), row_length(baseline), baseline->file);
}

bool fr_baseline_read(fr_baseline *baseline, float *log_probabilities) {
    float scales[2];
    if (fread(baseline->row, sizeof(*baseline->row), row_length(baseline), baseline->file) != row_length(baseline))
        return false;
    memcpy(scales, baseline->row, sizeof(scales));
    for (size_t i = 0; i < baseline->vocab; i++)
        log_probabilities[i] = scales[1] + scales[0] * baseline->row[SCALES + i];
    return true;
}

void fr_baseline_close(fr_baseline *baseline) {
    if (baseline->reading && baseline->file) fclose(baseline->file);
    free(baseline->ids);
    free(baseline->row);
    *baseline = (fr_baseline){0};
}
