/* One bound tensor: the functions shared by the files that bind matrices (bind.c), bind values (bind_values.c) and
 * place tensors (place.c).
 *
 * In: a checkpoint's tensor. Out: its entry in the weights, and the matrices that it is cut into. */
#ifndef FR_SRC_ENGINE_WEIGHTS_BOUND_H
#define FR_SRC_ENGINE_WEIGHTS_BOUND_H

#include "src/engine/weights/weights.h"

#define FR_TENSOR_NAME 256 /* bytes of a name, including the NUL */

/* Finds the tensor PREFIX + NAME of an exact shape and adds it to the bound tensors. *bound is valid until the next
 * call. */
fr_status fr_bound_find(fr_weights *weights, const char *prefix, const char *name, const uint64_t *shape, uint32_t dims,
                        fr_access access, fr_bound **bound);

/* Finds a tensor of bytes and adds it to the bound tensors as fr_bound_find does. The bytes are codes of weights, or
 * their exponents. */
fr_status fr_bound_find_codes(fr_weights *weights, const char *prefix, const char *name, const uint64_t *shape,
                              uint32_t dims, fr_access access, fr_bound **bound);

/* Gives the entry of a bound tensor; NULL if it is not bound. */
fr_bound *fr_bound_of(const fr_weights *weights, const fr_tensor *tensor);

/* bound_fp8.c: finds the scales of a bound tensor of FP8 codes, checks them, and converts them to float32. */
fr_status fr_bound_scales(fr_weights *weights, fr_bound *bound);

/* bound_factor.c: finds the factors of a bound tensor of NVFP4, one for each matrix, and stores them as its scales. */
fr_status fr_bound_factors(fr_weights *weights, fr_bound *bound);

/* Returns true if the tensor gets a packed copy when it is bound as streamed. */
bool fr_bound_packs(const fr_tensor *tensor);

/* Gives the tiles of a tensor of FR_STORED, the type of a quantized folder's codes. Returns false if the tensor can't
 * be packed: its codes have no form of quant/grouped.h, its columns are reordered, or its groups don't fit into
 * tiles. */
bool fr_bound_tiles(const fr_tensor *tensor, fr_grouped_tiles *tiles);

/* Returns the bytes of the tiles for `rows` rows of a tensor that is packed, here or in its file. */
size_t fr_bound_tile_bytes(const fr_tensor *tensor, size_t rows);

/* Cuts a tensor into `count` matrices. If the file stores a stack, each entry of the stack has `parts` of these
 * matrices. */
fr_status fr_bound_cut(fr_weights *weights, fr_bound *bound, size_t count, size_t parts, size_t features, size_t cols,
                       fr_matrix *matrices);

/* activation_stats.c: if the inputs of a tensor are to be summed up, gives its matrices their sums. If `parts`
 * matrices read the same rows, only the first one has sums. */
fr_status fr_bound_watch_activations(fr_weights *weights, const fr_bound *bound, size_t count, size_t parts,
                                     fr_matrix *matrices);
void fr_activation_stats_free(fr_weights *weights);

/* Binds the matrices of a stack that is not stored as rows (copied_layouts.c). */
fr_status fr_copied_bind(fr_weights *weights, fr_bound *bound, size_t count, size_t features, size_t cols,
                         fr_matrix *matrices);

/* fr_copied_fp4 returns true if the tensor is NVFP4 or MXFP4 of a quantized folder, which is copied to tiles.
 * fr_copied_bind_fp4 binds its matrices. */
bool fr_copied_fp4(const fr_tensor *tensor);
fr_status fr_copied_bind_fp4(fr_weights *weights, fr_bound *bound, size_t count, size_t features, size_t cols,
                             fr_matrix *matrices);

/* Takes row `row` of a tensor stored as FR_LAYOUT_HEADS, and gives its row in the file. `row` counts queries, then
 * keys, then values. rows: number of all these rows; head: number of rows of a head. row % head is the row's index in
 * its head in both orders, because queries, keys and values are whole heads. */
size_t fr_row_by_heads(size_t row, size_t rows, size_t head, size_t key_heads);

/* Gives the type of the matrices in a stack that is copied. */
fr_dtype fr_copied_type(const fr_bound *bound);

/* Reads all bytes of the stack into memory, if the file isn't mapped. */
fr_status fr_copied_fill(const fr_weights *weights, const fr_bound *bound);

/* Writes rows [begin, end) of the matrices as GGUF's blocks or as floats. Rows are numbered through all matrices. */
fr_status fr_copied_rows(const fr_weights *weights, const fr_bound *bound, size_t begin, size_t end, uint8_t *rows);

/* Copies a thread's share of the stack. */
fr_status fr_copied_place(const fr_weights *weights, const fr_bound *bound, const fr_team *team);

/* fr_copied_rows_bytes gives the bytes that `rows` rows of a copy take. fr_copied_measure measures the room for the
 * copy of a checkpoint's tensor. */
size_t fr_copied_rows_bytes(const fr_bound *bound, size_t rows);
void fr_copied_measure(const fr_tensor *tensor, fr_arena *measure);

/* Checks that the tensor's values are floats. Fails with FR_INPUT if they are not. */
fr_status fr_bound_check_float(const fr_weights *weights, const fr_tensor *tensor);

/* Matrices of a bound tensor, which lie one after another. fr_bound_data gives the address of the first one, in the
 * packed copy or in the file. fr_bound_matrices gives the number of matrices. fr_bound_rows_bytes gives the bytes of
 * the first `rows` rows of one matrix, which are whole tiles if the tensor is packed. fr_bound_bytes gives the bytes
 * of all matrices. */
static inline const uint8_t *fr_bound_data(const fr_bound *bound) {
    return bound->packed ? bound->packed : bound->tensor->data;
}
size_t fr_bound_matrices(const fr_bound *bound);
size_t fr_bound_rows_bytes(const fr_bound *bound, size_t rows);
size_t fr_bound_bytes(const fr_bound *bound);

/* place.c: fr_bound_place reads a thread's share of the tensor into memory. When all threads have done so,
 * fr_bound_pack_stored packs a thread's share of a tensor of FR_STORED. fr_bound_lock locks the rank's part of the
 * tensor in memory. */
fr_status fr_bound_place(const fr_weights *weights, const fr_bound *bound, const fr_team *team);
fr_status fr_bound_pack_stored(const fr_weights *weights, const fr_bound *bound, const fr_team *team);
fr_status fr_bound_lock(const fr_weights *weights, const fr_bound *bound);

/* rank_share.c: returns true if the tensor is divided among ranks. */
bool fr_bound_has_rank_share(const fr_bound *bound);

/* If the matrix is in a tensor that is divided among ranks, gives that tensor; otherwise gives NULL. */
const fr_bound *fr_bound_find_rank_share(const fr_weights *weights, const fr_matrix *matrix);

/* Gives a copy of a divided tensor's entry, in which the tensor is not divided. It is for readers on this rank that
 * need the whole tensor. */
fr_bound fr_bound_whole(const fr_bound *shared);

/* These functions give the part of a divided tensor that this rank has. If a tensor is not divided, each rank has all
 * of it. fr_bound_own_matrices gives the matrices, from `first` to before `last`. In each of these matrices the rank
 * has one or several runs of rows; fr_bound_runs gives the number of runs. fr_bound_own_rows gives the rows of a run
 * that a thread places, in whole tiles. */
void fr_bound_own_matrices(const fr_weights *weights, const fr_bound *bound, size_t *first, size_t *last);
size_t fr_bound_runs(const fr_bound *bound);
void fr_bound_own_rows(const fr_weights *weights, const fr_bound *bound, size_t run, const fr_team *team, size_t *begin,
                       size_t *end);

/* Gives the bytes of the rows that belong to other ranks. */
uint64_t fr_bound_foreign_bytes(const fr_weights *weights, const fr_bound *bound);

/* Gives the transposed matrices that this rank has: `first` and those after it, before `last`. */
void fr_transposed_own(const fr_weights *weights, const fr_transposed *transposed, size_t *first, size_t *last);

/* Requests huge pages for the copies, only for this rank's own rows. */
void fr_weights_separate(const fr_weights *weights);

/* fr_bound_fill reads bytes [begin, end) of a tensor into memory, if the file isn't mapped. fr_bound_release gives back
 * their memory. */
fr_status fr_bound_fill(const fr_weights *weights, const fr_tensor *tensor, size_t begin, size_t end);
void fr_bound_release(const fr_weights *weights, const fr_tensor *tensor, size_t begin, size_t end);

#endif
