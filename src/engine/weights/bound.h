/* One tensor bound: what binding matrices (bind.c), values (bind_values.c) and placing (place.c) share.
 *
 * In: a checkpoint's tensor. Out: its note in the weights, the matrices that it is cut into. */
#ifndef FR_SRC_ENGINE_WEIGHTS_BOUND_H
#define FR_SRC_ENGINE_WEIGHTS_BOUND_H

#include "src/engine/weights/weights.h"

#define FR_TENSOR_NAME 256 /* bytes of a name, the NUL counted */

/* Finds the tensor PREFIX + NAME of an exact shape and notes it as bound; the note stands until the next call. */
fr_status fr_bound_find(fr_weights *weights, const char *prefix, const char *name, const uint64_t *shape,
                        uint32_t dims, fr_access access, fr_bound **bound);

/* The same of a tensor of bytes that are codes of weights, or their exponents. */
fr_status fr_bound_find_codes(fr_weights *weights, const char *prefix, const char *name, const uint64_t *shape,
                              uint32_t dims, fr_access access, fr_bound **bound);

/* What is bound of a tensor; NULL: nothing. */
fr_bound *fr_bound_of(const fr_weights *weights, const fr_tensor *tensor);

/* bound_fp8.c: finds the scales of a bound tensor of FP8 codes, checked, as float32. */
fr_status fr_bound_scales(fr_weights *weights, fr_bound *bound);

/* bound_factor.c: finds what all values of each matrix of a bound tensor of NVFP4 are multiplied by, as its scales. */
fr_status fr_bound_factors(fr_weights *weights, fr_bound *bound);

/* Whether binding a tensor as streamed makes a packed copy of it. */
bool fr_bound_packs(const fr_tensor *tensor);

/* A tensor as `count` matrices; it was written as stacks of `parts`. */
fr_status fr_bound_cut(fr_weights *weights, fr_bound *bound, size_t count, size_t parts, size_t features, size_t cols,
                       fr_matrix *matrices);

/* tap.c: gives the matrices of a tensor their taps, if it is one whose inputs are summed up. Of `parts` that read the
 * same rows the first one has it. */
fr_status fr_bound_tap(fr_weights *weights, const fr_bound *bound, size_t count, size_t parts, fr_matrix *matrices);
void fr_taps_free(fr_weights *weights);

/* stored.c: the matrices of a stack that is stored else than as rows, and their type; all its bytes, brought in; rows
 * of the matrices, counted one matrix after the other, as GGUF's blocks or as floats; a thread's share of such a
 * tensor, copied; how many bytes so many rows of a copy take, and room for them, which is measured of a checkpoint's
 * tensors. */
fr_status fr_stored_bind(fr_weights *weights, fr_bound *bound, size_t count, size_t features, size_t cols,
                         fr_matrix *matrices);
fr_dtype fr_stored_type(const fr_bound *bound);
fr_status fr_stored_fill(const fr_weights *weights, const fr_bound *bound);
fr_status fr_stored_rows(const fr_weights *weights, const fr_bound *bound, size_t begin, size_t end, uint8_t *rows);
fr_status fr_stored_place(const fr_weights *weights, const fr_bound *bound, const fr_team *team);
size_t fr_stored_rows_bytes(const fr_bound *bound, size_t rows);
void fr_stored_measure(const fr_tensor *tensor, fr_arena *measure);

/* FR_INPUT if its values aren't floats. */
fr_status fr_bound_check_float(const fr_weights *weights, const fr_tensor *tensor);

/* Where its matrices lie, one behind the other: as a copy or in the file. How many there are, what so many rows of one
 * take there, from the first row of a tile on, and what all do. */
static inline const uint8_t *fr_bound_data(const fr_bound *bound) {
    return bound->packed ? bound->packed : bound->tensor->data;
}
size_t fr_bound_matrices(const fr_bound *bound);
size_t fr_bound_rows_bytes(const fr_bound *bound, size_t rows);
size_t fr_bound_bytes(const fr_bound *bound);

/* place.c: a thread's share of it, brought in; and what the rank has of it, locked in memory. */
fr_status fr_bound_place(const fr_weights *weights, const fr_bound *bound, const fr_team *team);
fr_status fr_bound_lock(const fr_weights *weights, const fr_bound *bound);

/* shared.c: whether ranks share it; what is bound of a matrix that they do, NULL of others; the same as somebody has it
 * who reads all of it. What of it a rank has: some matrices, and of each one run of rows or several, numbered from 0,
 * of which a thread brings in its part, whole tiles; all, of what isn't shared. The bytes of others' rows, where they
 * would lie; the matrices of transposed ones that a rank has; huge pages for copies of own rows alone. */
bool fr_bound_is_shared(const fr_bound *bound);
const fr_bound *fr_bound_shared(const fr_weights *weights, const fr_matrix *matrix);
fr_bound fr_bound_whole(const fr_bound *shared);
void fr_bound_own_matrices(const fr_weights *weights, const fr_bound *bound, size_t *first, size_t *last);
size_t fr_bound_runs(const fr_bound *bound);
void fr_bound_own_rows(const fr_weights *weights, const fr_bound *bound, size_t run, const fr_team *team, size_t *begin,
                       size_t *end);
uint64_t fr_bound_foreign_bytes(const fr_weights *weights, const fr_bound *bound);
void fr_transposed_own(const fr_weights *weights, const fr_transposed *transposed, size_t *first, size_t *last);
void fr_weights_separate(const fr_weights *weights);

/* Brings bytes [begin, end) of a tensor in, where the file isn't mapped. */
fr_status fr_bound_fill(const fr_weights *weights, const fr_tensor *tensor, size_t begin, size_t end);

#endif
