/* Reads the rotation by which a GGUF file's weights were multiplied, as PrismML's Bonsai 2 declares it
 * (prism.hadamard.*).
 *
 * A rotated weight W is stored as W' = W D H, where D is a diagonal of signs and H is the Walsh-Hadamard matrix over
 * each block of columns, divided by the square root of the block's size. H is its own transpose and inverse: H = H^T =
 * H^-1. So W x = W' (H D x) for an input x, and a row w of an embedding table is D H w' for its stored row w'. Rows of
 * activations are therefore rotated before a product with a rotated weight. Rows that are looked up in a rotated table
 * are rotated back.
 *
 *     prism.hadamard.version               1, or 2: the head is the embedding table (tied_output)
 *     prism.hadamard.transform             normalized-sylvester-walsh-hadamard
 *     prism.hadamard.axis                  input-last-dimension
 *     prism.hadamard.block_size            columns of a block, a power of two
 *     prism.hadamard.sign_mode             identity: all signs are +; explicit: the next two keys give them
 *     prism.hadamard.sign_widths           widths of rows
 *     prism.hadamard.sign_values           1 or -1 for each column of each of these widths
 *     prism.hadamard.weight_names          the rotated weights: projections of layers, and output.weight
 *     prism.hadamard.inverse_weight_names  token_embd.weight, or nothing
 *     prism.hadamard.gdn_v_grouped         true: columns of ssm_out.weight have the value heads of one key head side by
 *                                          side, while all other tensors have them in GGUF's order
 * Source: llama.cpp of PrismML (github.com/PrismML-Eng/llama.cpp, branch prism, src/llama-model.cpp).
 *
 * In: a file's metadata and tensors. Out: the rotation of each tensor's columns. Checked: the values of all these keys;
 * every named tensor is in the file; each row is a whole number of blocks; each width of a rotated tensor has signs. */
#ifndef FR_FORMATS_ROTATION_H
#define FR_FORMATS_ROTATION_H

#include "formats/gguf.h"
#include "formats/json.h"

/* Describes how rows of one width are rotated. */
typedef struct fr_rotation {
    size_t cols, block;
    const float *signs; /* [cols] 1 or -1; NULL if all signs are 1 */
    size_t groups;      /* number of key heads by which value heads are grouped before the rotation; 0 if heads keep
                         * their order. With n = heads / groups, head g * n + r of the grouped row is head r * groups +
                         * g of the given row */
    size_t heads;       /* number of value heads in the row */
} fr_rotation;

typedef struct fr_rotation_set fr_rotation_set;

/* Reads the rotation that the file declares; *rotations is NULL if it declares none. */
fr_status fr_rotation_set_read(const fr_gguf *gguf, const fr_tensors *tensors, fr_rotation_set **rotations);
/* Reads the rotation from hadamard.json, a file in MLX's folders of Bonsai 2. The file is an object with the keys
 * prism.hadamard.* (rotation.h lists them). Its tensors have the names of the published folder, and their value heads
 * are already in the published order. path: the file's path, for error lines. */
fr_status fr_rotation_set_read_published(const json_t *keys, const char *path, const fr_tensors *tensors,
                                         fr_rotation_set **rotations);
void fr_rotation_set_free(fr_rotation_set *rotations);

/* Gives the rotation of a tensor's columns; NULL if the tensor isn't rotated or `rotations` is NULL. */
const fr_rotation *fr_rotation_of(const fr_rotation_set *rotations, const char *tensor, size_t cols);

/* Gives the rotation for rows of this width that keeps heads in their order; NULL if there is none. */
const fr_rotation *fr_rotation_of_width(const fr_rotation_set *rotations, size_t cols);

#endif
