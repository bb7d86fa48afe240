/* Reads llama.cpp's importance matrices: for each tensor, the mean square of every input column.
 *
 * In: a file of either form, whatever its name.
 *
 *     GGUF   imatrix.datasets (strings), imatrix.chunk_count, imatrix.chunk_size; for each tensor NAME the float32
 *            tensors NAME.in_sum2 [matrices, cols], sums of squares, and NAME.counts [matrices, 1], the number of rows
 *            in each sum
 *     older  i32 number of entries; for each entry: i32 length, name, i32 calls, i32 number of values, float32
 *            value[values], each a mean multiplied by `calls`; then, in the newer of these files, i32 chunks, i32
 *            length, name of the text
 *
 * Out: means, in ascending order of the names. Checked: everything is inside the file, names have 1 to 255 bytes
 * without NUL and occur once, sums are finite and at least 0. If no row chose an expert, all columns of the expert get
 * the same importance. */
#ifndef FR_FORMATS_IMATRIX_H
#define FR_FORMATS_IMATRIX_H

#include "base/text.h"
#include "formats/map.h"

#define FR_IMATRIX_ENTRIES_MAX ((size_t)1 << 17)
#define FR_IMATRIX_NAME_MAX    ((size_t)255)

/* Keys and endings of names in the GGUF form. */
#define FR_IMATRIX_DATASETS   "imatrix.datasets"
#define FR_IMATRIX_CHUNKS     "imatrix.chunk_count"
#define FR_IMATRIX_CHUNK_SIZE "imatrix.chunk_size"
#define FR_IMATRIX_SUMS       ".in_sum2"
#define FR_IMATRIX_COUNTS     ".counts"

typedef struct fr_imatrix_entry {
    char *name;
    float *means; /* [count]: one for each column, matrix after matrix */
    size_t count;
} fr_imatrix_entry;

typedef struct fr_imatrix {
    fr_imatrix_entry *entries; /* sorted by name */
    size_t count, capacity;
    char *dataset;   /* the first text that the matrix was made from; NULL: unknown */
    uint32_t chunks; /* the number of chunks of text; 0: unknown */
} fr_imatrix;

/* Opens a file. A failure leaves nothing open. */
fr_status fr_imatrix_open(fr_imatrix *imatrix, const char *path);

/* Opens a matrix from the bytes of a file. The bytes are not needed after the call. Error lines call the file
 * `name`. */
fr_status fr_imatrix_open_bytes(fr_imatrix *imatrix, const void *bytes, size_t size, const char *name);
void fr_imatrix_close(fr_imatrix *imatrix);

/* Finds the entry of a tensor; NULL if there is none. */
const fr_imatrix_entry *fr_imatrix_find(const fr_imatrix *imatrix, const char *name);

#endif
