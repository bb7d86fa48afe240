/* Lists every kernel and makes operands for it: random numbers in the shapes of real models. The functions here make
 * single calls, and compare the bits of their output with those of the scalar definition.
 *
 * In: kernels.def, block_kernels.def and grouped_kernels.def, which have a line for each kernel. Out: cases. A case is
 * one thread's call of a kernel on one shape, with the call's bytes and multiply-adds. The operands are ordinary
 * numbers (uniform in -1 .. 1, random codes). Extreme numbers are tested elsewhere, by tests/kernels/check_kernels.c
 * and check_blocks.c. The operands of a case are the same every time. */
#ifndef FR_BENCH_KERNEL_CASES_H
#define FR_BENCH_KERNEL_CASES_H

#include "kernels/cpu.h"
#include "kernels/kernels.h"

typedef void fr_bench_function(void);
typedef struct fr_bench_kind fr_bench_kind;

typedef struct fr_bench_kernel {
    const char *name; /* name of the function */
    fr_isa_level level;
    fr_bench_function *function;
    /* offset in fr_kernels of the pointer that is set to the function; kernels with the same offset compute the same */
    size_t slot;
    const fr_bench_kind *kind;
} fr_bench_kernel;

/* All kernels, those of the weakest instruction set first. A slot is a pointer of fr_kernels. The plain scalar kernel
 * of a slot defines the results of all kernels of that slot. */
extern const fr_bench_kernel fr_bench_kernels[];
extern const size_t fr_bench_kernel_count;

/* Names the tables into which the results are grouped. */
typedef enum fr_bench_group {
    FR_BENCH_STREAMED, /* products with weights from memory */
    FR_BENCH_CACHED,   /* products with weights that are in the L2 cache */
    FR_BENCH_ATTENTION,
    FR_BENCH_ARRAYS, /* rows and arrays that are in the caches */
    FR_BENCH_GROUPS
} fr_bench_group;

typedef struct fr_bench_shape {
    fr_bench_group group;
    size_t features, cols;
    size_t most_rows; /* the largest number of rows of a call; 0 if the kernel does not work on rows */
    fr_dtype type;    /* type of the operands, for a kernel that takes several types */
} fr_bench_shape;

size_t fr_bench_shapes(const fr_bench_kernel *kernel, const fr_bench_shape **shapes);

typedef struct fr_bench_case {
    const fr_bench_kind *kind;
    fr_dtype type;          /* FR_STORED for grouped codes */
    fr_grouped_tiles tiles; /* sizes of the tiles of grouped codes */
    size_t rows, features, cols;
    /* Number of parts into which a call can be divided. For a product it is the number of tiles of 16 features, and for
     * any other kernel 1. */
    size_t units;
    size_t stream_bytes, input_bytes, output_bytes, scratch_bytes;
    /* Totals of a call.
     *     bytes         of the weights; of the cached keys and values; of the table's rows; for other kernels, of all
     *                   arrays
     *     macs          number of multiply-adds; 0 if the kernel computes something else
     *     integer_macs  number of these multiply-adds that multiply integers of 8 bits
     *     values        number of weights; of cached keys and values; for other kernels, of one array's elements */
    double bytes, macs, integer_macs, values;
} fr_bench_case;

/* Makes a case. `threads` threads divide the features of this shape among them, and the case is the call that one of
 * them makes. If the weights would take more than `room` bytes, the case has fewer features. `room` is at least
 * FR_BENCH_LEAST_ROOM. */
#define FR_BENCH_LEAST_ROOM ((size_t)4 << 20)
fr_bench_case fr_bench_case_make(const fr_bench_kernel *kernel, const fr_bench_shape *shape, size_t rows,
                                 size_t threads, size_t room);

/* Writes a case's name, such as "6144 x 1536", for `units` units on each of `threads` threads. */
void fr_bench_case_name(const fr_bench_case *c, size_t units, size_t threads, char *text, size_t size);

/* Points to the arrays that a call reads and writes, aligned to 64 bytes. stream: weights or the cache; input: rows. If
 * the case needs 0 bytes of an array, the pointer is NULL. */
typedef struct fr_bench_operands {
    uint8_t *stream;
    void *input, *output, *scratch;
} fr_bench_operands;

void fr_bench_fill_stream(const fr_bench_case *c, uint8_t *stream);
void fr_bench_fill_input(const fr_bench_case *c, void *input);
void fr_bench_fill_output(const fr_bench_case *c, void *output); /* needed for kernels that work in place */

/* Makes one call, for the units [first, first + units). */
void fr_bench_call(const fr_bench_case *c, fr_bench_function *function, const fr_bench_operands *o, size_t first,
                   size_t units);

/* Computes the expected output with the scalar definition into `expected`, which has output_bytes bytes. If a product
 * is large, only some of its units are computed, and only these are compared. */
void fr_bench_define(const fr_bench_case *c, const fr_bench_kernel *kernel, const fr_bench_operands *o, void *expected);

/* Calls the kernel on the first `units` units, and returns true if the output has the definition's bits. */
bool fr_bench_same_bits(const fr_bench_case *c, fr_bench_function *function, const fr_bench_operands *o, size_t units,
                        const void *expected);

#endif
