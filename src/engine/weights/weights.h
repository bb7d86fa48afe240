/* Binds tensors by name, once, and checks their shapes; from then on they are fields of structs.
 *
 * In: a checkpoint's tensor directory. Out: matrices that point into the mapped files or at packed copies, and small
 * vectors (norms, scales) as the model's own float32 copies. Binding is followed by placing, in which each thread
 * reads the rows that it will need. Placing also makes the packed copies and gives the file's pages back at once, so
 * that loading takes little more memory than the model. */
#ifndef FR_SRC_ENGINE_WEIGHTS_WEIGHTS_H
#define FR_SRC_ENGINE_WEIGHTS_WEIGHTS_H

#include "base/arena.h"
#include "base/options.h"
#include "formats/checkpoint.h"
#include "formats/notes.h"
#include "src/engine/weights/matrix.h"
#include "src/engine/weights/partition.h"
#include "src/engine/weights/memory_use.h"

/* Says how a bound tensor is read. This decides whether the tensor is brought into memory when the model is loaded. */
typedef enum fr_access {
    FR_STREAMED, /* every step reads the whole tensor */
    /* each step reads only a few rows; if the file is mapped, they are read from there when they are needed */
    FR_LOOKED_UP
} fr_access;

/* Says how a file stores the matrices of a stack (copied_layouts.c). If an entry has two matrices, FR_LAYOUT_ROWS and
 * FR_LAYOUT_HALVES have all rows of one matrix before those of the other matrix. In the other layouts rows of the two
 * matrices alternate. */
typedef enum fr_stack_layout {
    FR_LAYOUT_ROWS,    /* rows of weights, as in GGUF */
    FR_LAYOUT_MX,      /* rows of MXFP4, with codes and exponents in separate tensors, as in gpt-oss: OCP Microscaling
                        * Formats */
    FR_LAYOUT_FP4,     /* rows of NVFP4 or MXFP4, with codes and scales in separate tensors of a quantized folder */
    FR_LAYOUT_COLUMNS, /* floats; a matrix's rows are the file's columns */
    FR_LAYOUT_HALVES,  /* like FR_LAYOUT_COLUMNS, but all columns of one matrix come before those of the other
                        * matrix */
    /* floats; one key head after the other, each with the rows of its query heads, its key and its value */
    FR_LAYOUT_HEADS,
} fr_stack_layout;

/* Some rows of a tensor's matrices, which one product reads, and how ranks divide them. */
typedef struct fr_bound_share {
    size_t first, rows;
    fr_split split;
} fr_bound_share;

enum { FR_BOUND_SHARES = 3 }; /* the most shares: queries, keys and values, or the three parts of Mamba-2's inputs */

typedef struct fr_bound {
    const fr_tensor *tensor;
    size_t rows;     /* rows of each matrix; they are the features that fr_part_features divides */
    size_t matrices; /* number of matrices that the tensor is cut into; threads divide each of them */
    fr_access access;
    bool chosen; /* the tensor is an expert, or a stack of experts: a step reads only the matrices that its rows have
                  * chosen */
    uint8_t *packed;         /* the packed copy; NULL: the tensor is used directly in the file */
    fr_grouped_tiles tiles;  /* the form of the packed copy of a tensor of FR_STORED */
    bool unpacked;           /* this tensor of FR_STORED stays unpacked, because it is a router, or because one of its
                              * matrices begins within a tile */
    const float *scales;     /* scales as float32: the scales of FP8 codes, or one scale for each matrix of NVFP4; NULL:
                              * none */
    const float *row_scales; /* the scales of FP8 codes that have one for each row; NULL: none */
    bool of_codes;           /* the tensor holds the scales or exponents of another tensor */
    fr_stack_layout layout;  /* the layout of the matrices in the file; if it is not rows, they are copied to
                              * `packed` */
    size_t parts;            /* number of matrices in one entry of the file's stack, such as 2 for an expert's gate and
                              * up */
    size_t head, key_heads;  /* for FR_LAYOUT_HEADS: `head` is the number of rows of a head, key_heads the number of key
                              * heads */
    const fr_tensor *exponents;            /* exponents of MXFP4 codes */
    fr_bound_share share[FR_BOUND_SHARES]; /* the division of rows among ranks; a rank reads only its own rows if the
                                            * shares cover all rows */
    size_t shares;
    fr_split heads;       /* the division of matrices that belong to heads; count 0: ranks don't divide these
                           * matrices */
    const int32_t *order; /* row r of the copy is the tensor's row order[r]; NULL: the tensor's own order */
} fr_bound;

/* Matrices that are also needed transposed, as float32. The copies are made after placing, each by the thread that
 * will read it, if the matrices can be divided evenly among the threads. */
typedef struct fr_transposed {
    const fr_matrix *from; /* [count] the matrices */
    size_t count;
    float *to;      /* [count, cols, features] the transposed copies */
    fr_split heads; /* the matrices that a rank has; count 0: a rank has all of them */
} fr_transposed;

/* The products for which inputs are summed up. */
typedef enum fr_activation_stats_kind {
    FR_ACTIVATION_STATS_NONE,
    FR_ACTIVATION_STATS_LAYERS,
    FR_ACTIVATION_STATS_HEAD_TOO
} fr_activation_stats_kind;

/* A tensor whose matrices' inputs are summed up, with sums for each matrix. */
typedef struct fr_watched_tensor {
    const fr_tensor *tensor;
    size_t matrices, cols;
    fr_activation_stats *stats; /* [matrices]; their squares are in one array: stats[0].squares has [matrices, cols] */
} fr_watched_tensor;

struct fr_weights {
    const fr_checkpoint *files;
    const fr_rotation_set *rotations; /* rotations of rows: the files' own; for a drafter, those of its target; NULL:
                                       * none */
    fr_arena vectors;                 /* float32 copies */
    fr_arena packed;                  /* packed copies */
    bool has_packed;                  /* at least one matrix is packed, here or in its file */
    fr_bound *bound;
    size_t count;
    uint32_t *of_tensor;      /* [tensors of the checkpoint] 1 + the tensor's index in `bound`; 0: it is not bound */
    uint64_t bytes;           /* bytes of all bound tensors */
    fr_memory_use memory_use; /* the memory that bound tensors take; set by fr_weights_compare (memory_use.h) */
    uint64_t available;       /* the memory that was available when memory_use was set */
    bool exceed; /* Memory does not hold all tensors, so experts stay in their files until rows choose them. */
    bool placed; /* all bound tensors have been brought into memory */
    struct fr_ranks *ranks; /* the ranks among which weights are divided (fr_weights_share); NULL: there is one
                             * process */
    size_t sharing;         /* index in `bound` of the divided tensor that was found last; the search for the next
                             * tensor begins there */
    fr_transposed *transposed;
    size_t transposed_count;
    uint64_t transposed_bytes;
    fr_notes notes;
    fr_activation_stats_kind activation_stats;
    fr_watched_tensor *watched; /* the tensors in the order in which they were bound */
    size_t watched_count;
};

/* Allocates an entry for every tensor of the checkpoint. The checkpoint must outlive the weights. */
fr_status fr_weights_open(fr_weights *weights, const fr_checkpoint *files);
void fr_weights_close(fr_weights *weights);

/* Returns true if the checkpoint has the tensor PREFIX + NAME, of any type. If its type is not supported, binding it
 * fails. */
bool fr_weights_has(const fr_weights *weights, const char *prefix, const char *name);

/* Returns true if the checkpoint has any tensor whose name begins with `prefix`. */
bool fr_weights_has_any(const fr_weights *weights, const char *prefix);

/* Sets *same to whether two tensors of the checkpoint have equal bytes. `tensor` may be in use, so its bytes stay in
 * memory. */
fr_status fr_weights_same(const fr_weights *weights, const fr_tensor *copy, const fr_tensor *tensor, bool *same);

bool fr_weights_bound(const fr_weights *weights, const fr_tensor *tensor);

/* Binds the tensor PREFIX + NAME of shape [features, cols]. A tensor that is both looked up and streamed must be bound
 * as streamed first, so that both uses read its packed form. If a tensor is missing, or has another shape or type, this
 * function and the following ones fail with FR_INPUT, and the error line names the tensor. */
fr_status fr_bind_matrix(fr_weights *weights, const char *prefix, const char *name, size_t features, size_t cols,
                         fr_access access, fr_matrix *matrix);

/* Binds the router of a mixture as fr_bind_matrix does. The router is streamed. A router of FR_STORED is not packed,
 * because products with rows of 8 bits would change which experts are chosen. GGUF files have routers of floats. */
fr_status fr_bind_router(fr_weights *weights, const char *prefix, const char *name, size_t features, size_t cols,
                         fr_matrix *matrix);

/* The key of a packed GGUF file that names the one tensor whose rows are stored in another order: a drafter's head, in
 * the order of its clusters. */
#define FR_KEY_SORTED "forerun.sorted_tensor"

/* Binds the tensor PREFIX + NAME of shape [features, cols]. If the tensor is packed, here or in its file, its rows are
 * sorted: row order[r] of the tensor becomes row r, and *sorted is set. A tensor that is not packed is bound as looked
 * up (FR_LOOKED_UP), in its own order. Fails if the file has packed the tensor without naming it as sorted
 * (FR_KEY_SORTED). order must outlive fr_weights_place. */
fr_status fr_bind_sorted(fr_weights *weights, const char *prefix, const char *name, const int32_t *order,
                         size_t features, size_t cols, fr_matrix *matrix, bool *sorted);

/* Binds the tensor PREFIX + NAME of shape [count, parts * features, cols] as count * parts matrices [features, cols]:
 * part p of entry i is matrices[i * parts + p]. With FR_LAYOUT_COLUMNS or FR_LAYOUT_HALVES its shape is [count, cols,
 * parts * features]. With FR_LAYOUT_MX, NAME ends in _blocks, and the tensor's shape is [count, parts * features, cols
 * / 32, 16] bytes. Another tensor, whose name ends in _scales instead, has one exponent for every 16 of these bytes. */
fr_status fr_bind_stack(fr_weights *weights, const char *prefix, const char *name, fr_stack_layout layout, size_t count,
                        size_t parts, size_t features, size_t cols, fr_matrix *matrices);

/* Binds a stack as fr_bind_stack does, if all matrices of the stack are read in every step. */
fr_status fr_bind_heads(fr_weights *weights, const char *prefix, const char *name, size_t count, size_t features,
                        size_t cols, fr_matrix *matrices);

/* Binds the tensor PREFIX + NAME of shape [features, cols] of one expert. The tensor is read when the expert is chosen,
 * like an entry of a stack. */
fr_status fr_bind_expert(fr_weights *weights, const char *prefix, const char *name, size_t features, size_t cols,
                         fr_matrix *matrix);

/* Binds the tensor PREFIX + NAME of shape [parts * features, cols] as matrices [features, cols]. If the tensor is
 * packed, parts is 1 or 2, or features is a whole number of tiles. */
fr_status fr_bind_parts(fr_weights *weights, const char *prefix, const char *name, size_t parts, size_t features,
                        size_t cols, fr_matrix *matrices);

/* Binds one tensor as several matrices, which may have different numbers of features. The tensor is placed as a whole.
 * So on a machine with several NUMA nodes, some rows may be on another node than the thread that reads them. If the
 * tensor is packed, each part except the last must fill whole tiles. */
fr_status fr_bind_rows(fr_weights *weights, const char *prefix, const char *name, const size_t *features, size_t parts,
                       size_t cols, fr_matrix *matrices);

/* Binds a float tensor as fr_bind_rows does, if the file does not store it as the rows of these matrices. With
 * FR_LAYOUT_HALVES the file's columns are the rows. With FR_LAYOUT_HEADS the matrices are queries, keys and values,
 * which the file stores head by head, with `head` rows for each head. */
fr_status fr_bind_copied_rows(fr_weights *weights, const char *prefix, const char *name, fr_stack_layout layout,
                              const size_t *features, size_t parts, size_t head, size_t cols, fr_matrix *matrices);

/* Binds the weights of a convolution whose stride equals its kernel's size. The float tensor PREFIX + NAME of `dims`
 * dimensions becomes the matrix [shape[0], product of all other dimensions]. */
fr_status fr_bind_convolution(fr_weights *weights, const char *prefix, const char *name, const uint64_t *shape,
                              uint32_t dims, fr_matrix *matrix);

/* Binds the weights of a convolution over frames. The file has one tensor for each frame. The float tensors PREFIX +
 * names[t] have the shape [features, channels, side, side]. They are joined into the matrix [features, channels *
 * frames * side * side], which is a float32 copy. */
fr_status fr_bind_frames(fr_weights *weights, const char *prefix, const char *const *names, size_t frames,
                         const uint64_t *shape, fr_matrix *matrix);

/* Binds the float tensor PREFIX + NAME of shape [cols, features], whose rows are a matrix's columns. The matrix is
 * [features, cols], a float32 copy. */
fr_status fr_bind_columns(fr_weights *weights, const char *prefix, const char *name, size_t features, size_t cols,
                          fr_matrix *matrix);

/* Binds the float tensor PREFIX + NAME of a single value, whose shape is [] or [1]. */
fr_status fr_bind_scalar(fr_weights *weights, const char *prefix, const char *name, float *value);

/* Binds the float tensor PREFIX + NAME of shape [n], decoded. If a value is not finite, it fails. */
fr_status fr_bind_vector(fr_weights *weights, const char *prefix, const char *name, size_t n, const float **vector);

/* Binds a float tensor of `dims` dimensions, decoded, whose values stay in the file's order. */
fr_status fr_bind_array(fr_weights *weights, const char *prefix, const char *name, const uint64_t *shape, uint32_t dims,
                        const float **values);

/* Binds a vector as fr_bind_vector does. The vector may also be a matrix of one row, [1, n], as some writers of GGUF
 * store it. */
fr_status fr_bind_row(fr_weights *weights, const char *prefix, const char *name, size_t n, const float **vector);

/* Says what number a file stores for a value x. FR_AS_THEY_ARE: x; FR_LESS_ONE: x - 1; FR_LOG_OF_MINUS: log(-x);
 * FR_LOG_OF: log(x). */
typedef enum fr_values { FR_AS_THEY_ARE, FR_LESS_ONE, FR_LOG_OF_MINUS, FR_LOG_OF } fr_values;

/* Gives the value for which the file stores `written`. */
float fr_value_of(fr_values values, float written);

/* Binds a vector as fr_bind_vector does, from a file that stores numbers other than the values themselves
 * (fr_values). */
fr_status fr_bind_values(fr_weights *weights, const char *prefix, const char *name, size_t n, fr_values values,
                         const float **vector);

/* Writes a name with a number in place of the pattern's `*`. */
void fr_spell_numbered(const char *pattern, size_t number, char *name, size_t size);

/* Binds `count` float tensors of n values each as one array [count, n]. The name of tensor i is PREFIX and the pattern
 * with i in place of the `*`. */
fr_status fr_bind_numbered(fr_weights *weights, const char *prefix, const char *pattern, size_t count, size_t n,
                           const float **vectors);

/* Binds the float tensor PREFIX + NAME of biases, which is in the order of FR_LAYOUT_HEADS. The vector has the biases
 * of n queries, then of `keys` keys, then of as many values. */
fr_status fr_bind_head_values(fr_weights *weights, const char *prefix, const char *name, size_t n, size_t keys,
                              size_t head, const float **vector);

/* Binds a vector as fr_bind_values does, if GGUF stores the vector as a matrix. The matrix may have any shape with n
 * values, which are read row by row. */
fr_status fr_bind_values_in_rows(fr_weights *weights, const char *prefix, const char *name, size_t n, fr_values values,
                                 const float **vector);

/* Binds the float tensor PREFIX + NAME of shape [count, parts * n] as `parts` arrays [count, n], whose values
 * alternate in the file. */
fr_status fr_bind_vectors(fr_weights *weights, const char *prefix, const char *name, size_t count, size_t n,
                          size_t parts, const float **vectors);

/* Binds the weights of a convolution over positions, separate for each channel: the float tensor PREFIX + NAME of
 * shape [channels, conv_kernel] or [channels, 1, conv_kernel] is decoded as [conv_kernel, channels]; conv_kernel <=
 * FR_CONV_KERNEL_MAX. */
fr_status fr_bind_conv(fr_weights *weights, const char *prefix, const char *name, size_t channels, size_t conv_kernel,
                       const float **turned);

/* Binds the integer tensor PREFIX + NAME of shape [n], each value in [0, limit). */
fr_status fr_bind_indices(fr_weights *weights, const char *prefix, const char *name, size_t n, int64_t limit,
                          const int32_t **indices);

/* Binds an integer tensor as fr_bind_indices does, if the file stores each value minus the value's own index. */
fr_status fr_bind_offsets(fr_weights *weights, const char *prefix, const char *name, size_t n, int64_t limit,
                          const int32_t **indices);

/* fr_weights_scales gives the scales of a bound tensor of FP8 codes, one row of scales for every 128 rows of each
 * matrix; NULL for other types. fr_weights_is_scales returns true if a tensor holds another tensor's scales. */
const float *fr_weights_scales(const fr_weights *weights, const fr_tensor *codes);
bool fr_weights_is_scales(const fr_weights *weights, const fr_tensor *tensor);

/* Packs rows [begin, end) of a bound tensor into `tiles`, as a separate matrix. Reads the rows from the file and gives
 * the file's pages back. begin is the first row of a tile. */
fr_status fr_bound_pack(const fr_weights *weights, const fr_bound *bound, size_t begin, size_t end, uint8_t *tiles);

/* Returns true if any streamed matrix has a block type or is packed. FP8 and stored types without tiles do not count,
 * because their rows are decoded to float32. */
bool fr_weights_quantized(const fr_weights *weights);

/* Adds a note about the memory of transposed copies, if there are any. */
void fr_weights_note_transposed(fr_weights *weights);

/* Requests that `count` bound matrices of one shape be transposed into `to` when they are placed. */
fr_status fr_weights_transpose(fr_weights *weights, const fr_matrix *from, size_t count, float *to);

/* rank_share.c: if weights are divided among ranks, says how a product with this bound matrix is divided. A rank then
 * places only its own rows of the matrix. If several matrices are bound to one tensor, the rank places all rows of the
 * tensor unless this function is called for each of these matrices. */
void fr_weights_share(fr_weights *weights, const fr_matrix *matrix, fr_split split);

/* Says that these matrices belong to heads, one matrix for each head. A rank then places only the matrices of its own
 * heads. Transposed copies are also made of these only. */
void fr_weights_share_heads(fr_weights *weights, const fr_matrix *matrices, fr_split heads);

/* Says that one rank alone computes the products with this bound matrix. This applies to the whole tensor that contains
 * the matrix. */
void fr_weights_assign(fr_weights *weights, const fr_matrix *matrix, size_t rank);

/* Divides an LM head among the ranks by ids. The embedding table may be the same tensor. Its rows are then looked up in
 * the mapped file; if that file is not mapped, the head is not divided. */
void fr_weights_share_head(fr_weights *weights, const fr_matrix *head, fr_matrix *table);

/* If the tensor is packed, gives back pages of the mapped file that were read again after loading. */
void fr_weights_release(const fr_weights *weights, const fr_tensor *tensor);

/* Reads all bound tensors into memory, each row by the thread that will need it. progress may be NULL. */
fr_status fr_weights_place(fr_weights *weights, fr_pool *pool, fr_progress_fn *progress, void *context);

/* Locks the bound tensors in memory. Fails with FR_MACHINE if the system refuses. */
fr_status fr_weights_lock(const fr_weights *weights);

/* Places and locks the weights according to the options, with threads of its own. */
fr_status fr_weights_load(fr_weights *weights, const fr_plan *plan, const fr_options *options);

/* Also places the rows of a divided matrix that belong to other ranks, because something on this rank reads the whole
 * matrix. If the matrix is not divided, nothing is done. No forward may run during the call. */
fr_status fr_weights_bring_rest(const fr_weights *weights, const fr_matrix *matrix, const fr_plan *plan,
                                const fr_options *options);

#endif
