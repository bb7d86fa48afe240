/* Finds the matrices of a trunk that adapters can change, by the names that adapters use for them.
 *
 * In: a trunk whose tensors are bound, a family's tables of names. Out: numbers of the matrices (fr_matrix.adapted),
 * and for a tensor's name the matrices that the tensor fills. Adapters can change every matrix that multiplies rows:
 * those of attention, DeltaNet, feed-forwards, experts and routers, and the head. They can't change embedding tables,
 * vectors, convolutions, and the products of latent attention that work on single heads. */
#ifndef FR_SRC_ENGINE_LAYERS_ADAPTED_H
#define FR_SRC_ENGINE_LAYERS_ADAPTED_H

#include "src/engine/layers/tensor_names.h"

enum { FR_ADAPTED_PARTS = 3 };

/* The matrices that one tensor fills. */
typedef struct fr_adapted_matrices {
    const fr_tensor_name *name; /* the row of the table that names the tensor */
    const fr_layer_spec *layer; /* the spec of the tensor's layer; NULL: the tensor is not in a layer */
    /* for each part, its matrix or an array with a matrix for each expert. The tensor has the rows of the first part,
     * then those of the second part, and so on */
    fr_matrix *part[FR_ADAPTED_PARTS];
    size_t parts;
    size_t experts; /* number of matrices in a part; 1 if the tensor is not a stack of experts */
    bool of_expert; /* the name contains the number of an expert */
    size_t expert;  /* the number of the expert that the name contains */
} fr_adapted_matrices;

typedef enum fr_adapted_found {
    FR_ADAPTED_NOTHING, /* no table has the name */
    FR_ADAPTED_UNUSED,  /* the layer does not use this tensor, for example because the layer reads another layer's
                         * keys */
    FR_ADAPTED_OTHER,   /* the tensor is not a matrix that adapters can change */
    FR_ADAPTED_FOUND
} fr_adapted_found;

/* Numbers the trunk's matrices from 1 on, and stores their count in the trunk. */
void fr_adapted_number(fr_trunk *trunk, const fr_tensor_naming *naming);

/* Finds the matrices for the name of a tensor. gguf: the name is one of GGUF; if false, it is one of published folders.
 * The trunk may have been bound from the other kind of file. */
fr_adapted_found fr_adapted_find(const fr_trunk *trunk, const fr_tensor_naming *naming, bool gguf, const char *tensor,
                                 fr_adapted_matrices *found);

#endif
