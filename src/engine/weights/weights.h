/* Tensors bound by name, once, with their shapes checked; from then on they are fields.
 *
 * In: a checkpoint's tensor directory. Out: matrices that point into the mapped files or at packed copies, and small
 * vectors (norms, scales) as float32 of the model's own. Also places what was bound: each thread fills the rows it will
 * read. Packed copies are made then, and the file's pages behind them given back as it goes, so that loading takes
 * little more memory than the model. */
#ifndef FR_SRC_ENGINE_WEIGHTS_WEIGHTS_H
#define FR_SRC_ENGINE_WEIGHTS_WEIGHTS_H

#include "base/arena.h"
#include "base/options.h"
#include "formats/checkpoint.h"
#include "formats/notes.h"
#include "src/engine/weights/matrix.h"
#include "src/engine/weights/partition.h"
#include "src/engine/weights/residence.h"

/* How a bound tensor is read, which decides whether it is brought into memory at load. */
typedef enum fr_access {
    FR_STREAMED, /* every step reads all of it */
    FR_LOOKED_UP /* a step reads a few rows: stays in the file until then, if it is mapped */
} fr_access;

/* How a file has the matrices of a stack (stored.c). Where an entry is two of them FR_STORED_ROWS has the rows of one
 * in front of the other's, the others have them by turns. */
typedef enum fr_stored {
    FR_STORED_ROWS,    /* rows of a type of weights */
    FR_STORED_MX,      /* rows of MXFP4, codes and exponents apart, as gpt-oss has them: OCP Microscaling Formats */
    FR_STORED_COLUMNS, /* rows are columns of the file's: floats */
} fr_stored;

/* Rows of each matrix of a tensor that a product of its own reads, and how they are split over ranks. */
typedef struct fr_bound_share {
    size_t first, rows;
    fr_split split;
} fr_bound_share;

enum { FR_BOUND_SHARES = 3 }; /* queries, keys and values in one */

typedef struct fr_bound {
    const fr_tensor *tensor;
    size_t rows;     /* the features that fr_part_features partitions */
    size_t matrices; /* that the tensor is cut into, each partitioned by itself */
    fr_access access;
    bool chosen;     /* an expert's, or a stack of experts: a step reads the matrices that its rows chose */
    uint8_t *packed; /* where the packed copy goes; NULL: used as it lies in the file */
    const float *scales;  /* of FP8 codes, or one of each matrix of NVFP4, as float32; NULL: none */
    bool of_codes;        /* it holds the scales of another one */
    fr_stored stored;     /* else than as rows: its matrices are copies, `packed`, tiles of MXFP4 or rows of floats */
    size_t parts;         /* matrices of an entry, and */
    const fr_tensor *exponents; /* of MXFP4 codes */
    fr_bound_share share[FR_BOUND_SHARES]; /* once they are all of its rows a rank reads its own alone */
    size_t shares;
    fr_split heads; /* or those matrices that are its heads'; count 0: not so */
    const int32_t *order; /* of the copy: its row r is the tensor's row order[r]; NULL: the tensor's own */
} fr_bound;

/* Matrices that are needed the other way round, as float32: made when they have been placed, each by the thread that
 * will read it if it gets as many of them as others do. */
typedef struct fr_transposed {
    const fr_matrix *from; /* [count] */
    size_t count;
    float *to; /* [count, cols, features] */
    fr_split heads; /* those that a rank has of them; count 0: all */
} fr_transposed;

/* Which products' inputs are summed up. */
typedef enum fr_tapping { FR_TAP_NONE, FR_TAP_LAYERS, FR_TAP_HEAD_TOO } fr_tapping;

/* A tensor whose inputs are: a tap for each of its matrices. */
typedef struct fr_tapped {
    const fr_tensor *tensor;
    size_t matrices, cols;
    fr_tap *taps; /* [matrices], their squares behind each other: taps[0].squares has [matrices, cols] */
} fr_tapped;

struct fr_weights {
    const fr_checkpoint *files;
    fr_arena vectors; /* float32 copies */
    fr_arena packed;  /* packed copies */
    bool has_packed;  /* some matrix is packed, here or in its file */
    fr_bound *bound;
    size_t count;
    uint32_t *of_tensor; /* by the tensor's index in the checkpoint: what is bound of it, + 1; 0: nothing */
    uint64_t bytes; /* of all bound tensors */
    fr_residence residence; /* what they take of memory, once that was compared (residence.h) */
    uint64_t available;     /* how much memory there was then */
    bool exceed; /* memory does not hold them all: experts stay in their files until rows choose them */
    bool placed; /* they have been brought into memory */
    struct fr_ranks *ranks; /* NULL; or those that share them (fr_weights_share) */
    size_t sharing;         /* what was shared last: the next is beside it */
    fr_transposed *transposed;
    size_t transposed_count;
    uint64_t transposed_bytes;
    fr_notes notes;
    fr_tapping tapping;
    fr_tapped *tapped; /* in the order in which they were bound */
    size_t tapped_count;
};

/* Room for every tensor of the checkpoint. The checkpoint must outlive it. */
fr_status fr_weights_open(fr_weights *weights, const fr_checkpoint *files);
void fr_weights_close(fr_weights *weights);

/* Whether the checkpoint has the tensor named PREFIX + NAME, of whatever type: one that is not read fails when it is
 * bound. */
bool fr_weights_has(const fr_weights *weights, const char *prefix, const char *name);

/* Whether it has any whose name begins so. */
bool fr_weights_has_any(const fr_weights *weights, const char *prefix);

/* Whether two tensors of the checkpoint are the same, byte by byte. The second one's bytes may be in use: they stay. */
fr_status fr_weights_same(const fr_weights *weights, const fr_tensor *copy, const fr_tensor *tensor, bool *same);

/* Whether the tensor has been bound. */
bool fr_weights_bound(const fr_weights *weights, const fr_tensor *tensor);

/* The tensor PREFIX + NAME of shape [features, cols]. A tensor that is both looked up and streamed is bound as streamed
 * first, so that both read its packed form. Here and below, a tensor that is missing, or of another shape or type, is
 * FR_INPUT, and the line names it. */
fr_status fr_bind_matrix(fr_weights *weights, const char *prefix, const char *name, size_t features, size_t cols,
                         fr_access access, fr_matrix *matrix);

/* The key of a packed GGUF that names the one tensor whose rows stand in an order other than its own: a drafter's head
 * in the order of its clusters. */
#define FR_KEY_SORTED "forerun.sorted_tensor"

/* The tensor PREFIX + NAME of shape [features, cols], whose row order[r] becomes row r, if its type packs, here or in
 * its file: *sorted. Else it is bound as looked up, in its own order. order must outlive fr_weights_place. Packed in a
 * file that does not say in which order is an error. */
fr_status fr_bind_sorted(fr_weights *weights, const char *prefix, const char *name, const int32_t *order,
                         size_t features, size_t cols, fr_matrix *matrix, bool *sorted);

/* The tensor PREFIX + NAME of shape [count, parts * features, cols] as count * parts matrices [features, cols] of the
 * model's own: part p of entry i is matrices[i * parts + p]. Stored as columns it is [count, cols, parts * features];
 * as MXFP4, where NAME ends in _blocks, [count, parts * features, cols / 32, 16] bytes, and beside it stand as many
 * exponents, named alike but for _scales. */
fr_status fr_bind_stack(fr_weights *weights, const char *prefix, const char *name, fr_stored stored, size_t count,
                        size_t parts, size_t features, size_t cols, fr_matrix *matrices);

/* The same for matrices that every step reads, all of them. */
fr_status fr_bind_heads(fr_weights *weights, const char *prefix, const char *name, size_t count, size_t features,
                        size_t cols, fr_matrix *matrices);

/* The tensor PREFIX + NAME of shape [features, cols], of one expert: chosen as those of a stack are. */
fr_status fr_bind_expert(fr_weights *weights, const char *prefix, const char *name, size_t features, size_t cols,
                         fr_matrix *matrix);

/* The tensor PREFIX + NAME of shape [parts * features, cols] as matrices [features, cols]; parts is 1 or 2, or features
 * are whole tiles where the tensor packs. */
fr_status fr_bind_parts(fr_weights *weights, const char *prefix, const char *name, size_t parts, size_t features,
                        size_t cols, fr_matrix *matrices);

/* The same of matrices of different features. The tensor is placed as one, so that on several NUMA nodes a part's rows
 * may lie beside another thread; of one that packs all parts but the last must be whole tiles. */
fr_status fr_bind_rows(fr_weights *weights, const char *prefix, const char *name, const size_t *features, size_t parts,
                       size_t cols, fr_matrix *matrices);

/* The weights of a convolution whose steps are as long as its kernel, a float tensor PREFIX + NAME of `dims`
 * dimensions, as the matrix [shape[0], all the others] that it is. */
fr_status fr_bind_convolution(fr_weights *weights, const char *prefix, const char *name, const uint64_t *shape,
                              uint32_t dims, fr_matrix *matrix);

/* The same of a convolution over frames that was written as one for each: float tensors PREFIX + names[t] of shape
 * [features, channels, side, side], joined as the matrix [features, channels * frames * side * side], a float32
 * copy. */
fr_status fr_bind_frames(fr_weights *weights, const char *prefix, const char *const *names, size_t frames,
                         const uint64_t *shape, fr_matrix *matrix);

/* The float tensor PREFIX + NAME of shape [n], decoded; a value that is not finite is an error. */
fr_status fr_bind_vector(fr_weights *weights, const char *prefix, const char *name, size_t n, const float **vector);

/* The same of a matrix of one row, [1, n], or of a vector, as which some writers of GGUF keep it. */
fr_status fr_bind_row(fr_weights *weights, const char *prefix, const char *name, size_t n, const float **vector);

/* What a file has instead of a value x: x; x - 1; log(-x). */
typedef enum fr_values { FR_AS_THEY_ARE, FR_LESS_ONE, FR_LOG_OF_MINUS } fr_values;

/* The value of which a file has that. */
float fr_value_of(fr_values values, float written);

/* fr_bind_vector of a tensor that has something else instead of the values. */
fr_status fr_bind_values(fr_weights *weights, const char *prefix, const char *name, size_t n, fr_values values,
                         const float **vector);

/* The float tensor PREFIX + NAME of shape [count, parts * n] as `parts` arrays [count, n], whose values take turns
 * there. */
fr_status fr_bind_vectors(fr_weights *weights, const char *prefix, const char *name, size_t count, size_t n,
                          size_t parts, const float **vectors);

/* The weights of a convolution over positions, each channel by itself: the float tensor PREFIX + NAME of shape
 * [channels, conv_kernel] or [channels, 1, conv_kernel], decoded, as [conv_kernel, channels]; conv_kernel <=
 * FR_MOST_CONV_KERNEL. */
fr_status fr_bind_conv(fr_weights *weights, const char *prefix, const char *name, size_t channels, size_t conv_kernel,
                       const float **turned);

/* The integer tensor PREFIX + NAME of shape [n], each value in [0, limit). */
fr_status fr_bind_indices(fr_weights *weights, const char *prefix, const char *name, size_t n, int64_t limit,
                          const int32_t **indices);

/* The same of a tensor that has each value's difference to its own index. */
fr_status fr_bind_offsets(fr_weights *weights, const char *prefix, const char *name, size_t n, int64_t limit,
                          const int32_t **indices);

/* The scales of a bound tensor of FP8 codes, a row of them for each 128 rows of each matrix of it; NULL: it has another
 * type. And whether a tensor holds another one's. */
const float *fr_weights_scales(const fr_weights *weights, const fr_tensor *codes);
bool fr_weights_is_scales(const fr_weights *weights, const fr_tensor *tensor);

/* Packs rows [begin, end) of a bound tensor, as a matrix of its own from `tiles` on: brings them in, and gives the
 * file's pages back. begin is where a tile begins. */
fr_status fr_bound_pack(const fr_weights *weights, const fr_bound *bound, size_t begin, size_t end, uint8_t *tiles);

/* Whether any streamed matrix is of a block type; FP8 is none, its rows are float32. */
bool fr_weights_quantized(const fr_weights *weights);

/* Adds a note of how much memory transposed matrices take beside what was bound, if there are any. */
void fr_weights_note_transposed(fr_weights *weights);

/* Has `count` bound matrices, all of one shape, transposed into `to` when they are placed. */
fr_status fr_weights_transpose(fr_weights *weights, const fr_matrix *from, size_t count, float *to);

/* shared.c, where ranks have weights together. That a product with this bound matrix is split so over them: of its rows
 * only the rank's own are brought in. Where a tensor is several matrices that holds once all of them have been told
 * of. */
void fr_weights_share(fr_weights *weights, const fr_matrix *matrix, fr_split split);

/* That of matrices which are heads', an array of as many, a rank has those of its heads; and those of what they are
 * transposed to. */
void fr_weights_share_heads(fr_weights *weights, const fr_matrix *matrices, fr_split heads);

/* That all products with this bound matrix, or with whatever else its tensor holds, are one rank's. */
void fr_weights_assign(fr_weights *weights, const fr_matrix *matrix, size_t rank);

/* fr_weights_share of an LM head, of ids; a table that is the same tensor is looked up in the file, where that is
 * mapped, and stays whole with it where not. */
void fr_weights_share_head(fr_weights *weights, const fr_matrix *head, fr_matrix *table);

/* Gives pages of a mapped file back that somebody has read since of a tensor, if that is packed. */
void fr_weights_release(const fr_weights *weights, const fr_tensor *tensor);

/* Brings what was bound into memory, each row by the thread that will read it. progress may be NULL. */
fr_status fr_weights_place(fr_weights *weights, fr_pool *pool, fr_progress_fn *progress, void *context);

/* Locks what was bound in memory; FR_MACHINE when the system refuses. */
fr_status fr_weights_lock(const fr_weights *weights);

/* Both as the options ask, by threads of its own. */
fr_status fr_weights_load(fr_weights *weights, const fr_plan *plan, const fr_options *options);

/* The same of the rest of a matrix that ranks share, if this is one, which somebody else reads whole on each rank.
 * While nothing runs. */
fr_status fr_weights_bring_rest(const fr_weights *weights, const fr_matrix *matrix, const fr_plan *plan,
                                const fr_options *options);

#endif
