/* Reading and writing a base's predictions (base.h). */
#include "tools/cli/base.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is the memory, so that must be little-endian too");

#define MAGIC   "_logits_"
#define HEADER  20      /* bytes before the ids */
#define SCALES  4       /* uint16 that scale and least take */
#define DEPTH   16.0f   /* below the largest logit */
#define CODES   65535.0f
#define LARGEST (1 << 24) /* ids a chunk, words, chunks: more is a damaged file */

static size_t row_length(const fr_base *base) {
    return SCALES + (base->vocab + 1) / 2 * 2;
}

/* The length of a complete file; every factor is at most LARGEST, so it can be told in floating point. */
static double file_length(const fr_base *base) {
    double rows = (double)base->chunks * (double)fr_base_rows(base->chunk);
    return HEADER + 4.0 * (double)base->chunks * (double)base->chunk + 2.0 * rows * (double)row_length(base);
}

static int read_ids(fr_base *base, const char *path) {
    size_t count = base->chunks * base->chunk;
    base->ids = fr_resize(NULL, count, sizeof(*base->ids));
    base->row = fr_resize(NULL, row_length(base), sizeof(*base->row));
    if (fread(base->ids, sizeof(*base->ids), count, base->file) != count) {
        return fr_bad_input("%s: %s", path, strerror(errno));
    }
    for (size_t i = 0; i < count; i++) {
        if (base->ids[i] >= 0 && (size_t)base->ids[i] < base->vocab) continue;
        return fr_bad_input("%s: id %d is outside its vocabulary of %zu", path, base->ids[i], base->vocab);
    }
    return 0;
}

static int read_header(fr_base *base, const char *path) {
    char magic[8];
    int32_t sizes[3];
    if (fread(magic, 1, 8, base->file) != 8 || memcmp(magic, MAGIC, 8) != 0 ||
        fread(sizes, sizeof(*sizes), 3, base->file) != 3) {
        return fr_bad_input("%s is no file of a base's logits", path);
    }
    for (int i = 0; i < 3; i++) {
        if (sizes[i] < (i ? 1 : 4) || sizes[i] > LARGEST) return fr_bad_input("%s: damaged header", path);
    }
    base->chunk = (size_t)sizes[0];
    base->vocab = (size_t)sizes[1];
    base->chunks = (size_t)sizes[2];
    if (fseeko(base->file, 0, SEEK_END) != 0) return fr_bad_input("%s: %s", path, strerror(errno));
    off_t length = ftello(base->file);
    if ((double)length != file_length(base)) {
        return fr_bad_input("%s has %lld bytes, its header says %.0f: not complete?", path, (long long)length,
                            file_length(base));
    }
    return fseeko(base->file, HEADER, SEEK_SET) == 0 ? read_ids(base, path)
                                                     : fr_bad_input("%s: %s", path, strerror(errno));
}

int fr_base_open(fr_base *base, const char *path) {
    *base = (fr_base){.file = fopen(path, "rb"), .reading = true};
    if (!base->file) return fr_bad_input("%s: %s", path, strerror(errno));
    return read_header(base, path);
}

void fr_base_begin(fr_base *base, FILE *file, const int32_t *ids, size_t chunk, size_t vocab, size_t chunks) {
    *base = (fr_base){.file = file, .chunk = chunk, .vocab = vocab, .chunks = chunks};
    base->row = fr_resize(NULL, row_length(base), sizeof(*base->row));
    int32_t sizes[3] = {(int32_t)chunk, (int32_t)vocab, (int32_t)chunks};
    fwrite(MAGIC, 1, 8, file);
    fwrite(sizes, sizeof(*sizes), 3, file);
    fwrite(ids, sizeof(*ids), chunks * chunk, file);
}

void fr_base_write(fr_base *base, const float *logits, double log_sum) {
    float largest = logits[0], least = logits[0];
    for (size_t i = 1; i < base->vocab; i++) {
        largest = fmaxf(largest, logits[i]);
        least = fminf(least, logits[i]);
    }
    least = fmaxf(least, largest - DEPTH);
    float scales[2] = {(largest - least) / CODES, (float)(least - log_sum)};
    float inverse = largest > least ? CODES / (largest - least) : 0;
    memset(base->row, 0, row_length(base) * sizeof(*base->row));
    memcpy(base->row, scales, sizeof(scales));
    for (size_t i = 0; i < base->vocab; i++) {
        base->row[SCALES + i] = (uint16_t)fminf(CODES, rintf(fmaxf(0, logits[i] - least) * inverse));
    }
    fwrite(base->row, sizeof(*base->row), row_length(base), base->file);
}

bool fr_base_read(fr_base *base, float *log_probabilities) {
    float scales[2];
    if (fread(base->row, sizeof(*base->row), row_length(base), base->file) != row_length(base)) return false;
    memcpy(scales, base->row, sizeof(scales));
    for (size_t i = 0; i < base->vocab; i++) log_probabilities[i] = scales[1] + scales[0] * base->row[SCALES + i];
    return true;
}

void fr_base_close(fr_base *base) {
    if (base->reading && base->file) fclose(base->file);
    free(base->ids);
    free(base->row);
    *base = (fr_base){0};
}
