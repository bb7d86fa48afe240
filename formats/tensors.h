/* Keeps a list of tensors, which every parser of weight files fills: their names, and where their bytes are.
 *
 * In: tensors as a parser finds them (names, types, shapes, and spans whose bounds the parser has checked). Out: lookup
 * by name. The bytes belong to the files that the parser has mapped, the names to the list. */
#ifndef FR_FORMATS_TENSORS_H
#define FR_FORMATS_TENSORS_H

#include "forerun.h"
#include "quant/dtype.h"

#define FR_DIMS_MAX 8

typedef struct fr_tensor {
    const char *name;
    const char *type_name; /* the type's name in the file; fr_tensors_add replaces NULL by fr_dtype_name(type) */
    fr_dtype type;         /* FR_DTYPE_COUNT: an unsupported type */
    bool packed;           /* stored in the packed layout (quant/packed.h); in a stack of experts, each expert's matrix
                            * is packed separately */
    uint32_t dims;
    uint64_t shape[FR_DIMS_MAX];      /* slowest first, as safetensors and PyTorch write it */
    const void *data;                 /* at any alignment */
    const struct fr_storage *storage; /* describes the tensors from which the values are decoded (storage.h); NULL if
                                       * `data` has the values. If it is not NULL, `data` has only the codes */
    uint64_t bytes;
    uint32_t file; /* number of the file that contains the tensor */
} fr_tensor;

typedef struct fr_tensors {
    fr_tensor *items; /* in file order */
    size_t count, capacity;
    uint32_t *index; /* open-addressed hash table of names, of 2^n entries; an entry is item + 1, or 0 if it is empty */
    size_t index_size;
    uint64_t keys[2]; /* random keys of the hash, so that no file can contain names chosen to collide */
} fr_tensors;

void fr_tensors_free(fr_tensors *tensors);

/* Adds a copy of the tensor, its name and its type name. If the name already exists, the call fails with FR_INPUT.
 * Error lines call the file `where`. */
fr_status fr_tensors_add(fr_tensors *tensors, const fr_tensor *tensor, const char *where);

/* Finds a tensor by name; NULL if there is none. */
const fr_tensor *fr_tensors_find(const fr_tensors *tensors, const char *name);

#endif
