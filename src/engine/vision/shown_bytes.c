/* Packs the pictures that one rank has run, so that the other ranks get the pictures' rows: see picture.h. The bytes
 * have for each picture its grid, its digest, and a row of floats for each of its tokens. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "src/engine/vision/picture.h"

typedef struct head {
    uint64_t rows, columns, runs;
    fr_picture_digest digest;
} head;

static size_t bytes_of(const fr_vision_rows *rows, size_t hidden) {
    return sizeof(head) + rows->count * hidden * sizeof(float);
}

fr_status fr_shown_pack(const fr_shown *shown, size_t hidden, void **bytes, size_t *size) {
    *size = 0;
    for (size_t i = 0; i < shown->count; i++) *size += bytes_of(&shown->rows[i], hidden);
    uint8_t *at = *bytes = malloc(*size + 1);
    if (!at) return fr_fail_memory("pictures", *size);
    for (size_t i = 0; i < shown->count; i++) {
        const fr_vision_rows *rows = &shown->rows[i];
        head h = {shown->grids[i].rows, shown->grids[i].columns, shown->grids[i].runs, shown->digests[i]};
        memcpy(at, &h, sizeof h);
        memcpy(at + sizeof h, rows->rows, bytes_of(rows, hidden) - sizeof h);
        at += bytes_of(rows, hidden);
    }
    return FR_OK;
}

/* Reads the next picture's head, and computes the picture's size in bytes. If too few bytes are left, returns false. */
static bool read_head(const uint8_t *bytes, size_t left, size_t hidden, head *h, size_t *size) {
    if (left < sizeof *h) return false;
    memcpy(h, bytes, sizeof *h);
    size_t most = (left - sizeof *h) / (hidden * sizeof(float));
    if (h->rows == 0 || h->columns == 0 || h->rows > most / h->columns) return false;
    if (h->runs && (h->runs > h->rows || h->rows % h->runs)) return false;
    *size = sizeof *h + (size_t)(h->rows * h->columns) * hidden * sizeof(float);
    return true;
}

static fr_status take(fr_shown *shown, size_t index, const head *h, size_t hidden, const void *floats) {
    fr_vision_rows *rows = &shown->rows[index];
    *rows = (fr_vision_rows){
        .count = (size_t)(h->rows * h->columns), .hidden = hidden, .grid = {h->rows, h->columns, h->runs}};
    FR_TRY(fr_vision_rows_open(rows));
    memcpy(rows->rows, floats, rows->count * hidden * sizeof(float));
    shown->grids[index] = rows->grid;
    shown->digests[index] = h->digest;
    return FR_OK;
}

fr_status fr_shown_unpack(fr_shown *shown, size_t hidden, const void *bytes, size_t size) {
    const uint8_t *at = bytes, *end = at + size;
    size_t count = 0, one;
    head h;
    while (read_head(at, (size_t)(end - at), hidden, &h, &one)) {
        at += one;
        count++;
    }
    if (at != end) return fr_fail(FR_MACHINE, "the %zu bytes received for pictures can't be read", size);
    fr_status status = fr_shown_open(shown, count);
    at = bytes;
    for (size_t i = 0; i < count && status == FR_OK; i++, at += one) {
        read_head(at, (size_t)(end - at), hidden, &h, &one);
        status = take(shown, i, &h, hidden, at + sizeof h);
    }
    if (status == FR_OK) status = fr_shown_open_runs(shown);
    if (status != FR_OK) fr_shown_free(shown);
    return status;
}
