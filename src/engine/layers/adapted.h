/* Finds the matrices of a trunk that adapters can change, by the names that adapters give them.
 *
 * In: a trunk whose tensors are bound, a family's tables of names. Out: numbers of the matrices (fr_matrix.adapted),
 * and for a tensor's name the matrices that it fills. Adapters can change every matrix that multiplies rows: those of
 * attention, DeltaNet, feed-forwards, experts and routers, and the head. They can't change tables, vectors,
 * convolutions, and the products of latent attention that work on single heads. */
#ifndef FR_SRC_ENGINE_LAYERS_ADAPTED_H
#define FR_SRC_ENGINE_LAYERS_ADAPTED_H

#include "src/engine/layers/tensor_names.h"

enum { FR_ADAPTED_PARTS = 3 };

/* The matrices that one tensor fills. */
typedef struct fr_adapted_matrices {
    const fr_tensor_name *name; /* the table's line that names the tensor */
    const fr_layer_spec *layer; /* spec of the layer; NULL: the tensor belongs to no layer */
    /* for each part its matrix, or an array with a matrix for each expert. The tensor has the rows of the first part,
     * then those of the second, and so on */
    fr_matrix *part[FR_ADAPTED_PARTS];
    size_t parts;
    size_t experts; /* matrices of a part; 1 if the tensor is no stack */
    bool of_expert; /* the name has the number of an expert */
    size_t expert;  /* the expert's number in the name */
} fr_adapted_matrices;

typedef enum fr_adapted_found {
    FR_ADAPTED_NOTHING, /* no table has the name */
    FR_ADAPTED_UNUSED,  /* the layer does not use this tensor; for example, it reads another layer's keys */
    FR_ADAPTED_OTHER,   /* the tensor is no matrix that adapters can change */
    FR_ADAPTED_FOUND
} fr_adapted_found;

/* Numbers the trunk's matrices from 1 on, and notes their count in the trunk. */
void fr_adapted_number(fr_trunk *trunk, const fr_tensor_naming *naming);

/* Finds the matrices for the name of a tensor. gguf: the name is one of GGUF; if false, one of published folders. The
 * trunk may have been bound from either kind of file. */
fr_adapted_found fr_adapted_find(const fr_trunk *trunk, const fr_tensor_naming *naming, bool gguf, const char *tensor,
                                 fr_adapted_matrices *found);

#endif
