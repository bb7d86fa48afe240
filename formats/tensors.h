/* The directory that every parser of weight files fills: named tensors and where their bytes lie.
 *
 * In: tensors as a parser finds them (names, types, shapes, and spans whose bounds it has checked). Out: lookup by
 * name. The bytes belong to the parser's maps, the names to the directory. */
#ifndef FR_FORMATS_TENSORS_H
#define FR_FORMATS_TENSORS_H

#include "forerun.h"
#include "quant/dtype.h"

#define FR_DIMS_MAX 8

typedef struct fr_tensor {
    const char *name;
    const char *type_name; /* the file's spelling; NULL in fr_tensors_add means fr_dtype_name(type) */
    fr_dtype type;         /* FR_DTYPE_COUNT: a type that is not read */
    bool packed;           /* stored in the packed layout (quant/packed.h), each matrix of a stack by itself */
    uint32_t dims;
    uint64_t shape[FR_DIMS_MAX]; /* slowest first, as safetensors and PyTorch write it */
    const void *data;            /* at any alignment */
    uint64_t bytes;
    uint32_t file; /* index of the file it lies in */
} fr_tensor;

typedef struct fr_tensors {
    fr_tensor *items; /* in file order */
    size_t count, capacity;
    uint32_t *index; /* open-addressed hash table of names; its size is a power of two; holds item + 1, or 0 */
    size_t index_size;
    uint64_t keys[2]; /* random keys of the hash, so that a file can't choose names that collide */
} fr_tensors;

void fr_tensors_free(fr_tensors *tensors);

/* Adds a copy of the tensor, with its two names. A name that is already there is FR_INPUT. Error lines name the file
 * `where`. */
fr_status fr_tensors_add(fr_tensors *tensors, const fr_tensor *tensor, const char *where);

/* Finds a tensor by name; NULL if there is none. */
const fr_tensor *fr_tensors_find(const fr_tensors *tensors, const char *name);

#endif
