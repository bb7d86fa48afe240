/* Describes in which tensors a folder written by a quantizer keeps the weights of each module (its storage).
 *
 * In: a checkpoint's tensors and the description in its configuration (AWQ, GPTQ, compressed-tensors, modelopt, MLX,
 * and FP8 whose scales have other shapes than those of quant/fp8.h). Out: one tensor MODULE.weight of shape [rows,
 * cols] for each module. Its values are decoded from the stored tensors, row by row. They equal the values that the
 * quantizers' own packages compute from the stored scales as float32 (quant/NUMERICS.md). All shapes are checked before
 * a storage is made, so decoding stays inside the tensors. fr_storage_check finds scales that are not finite. */
#ifndef FR_FORMATS_STORAGE_H
#define FR_FORMATS_STORAGE_H

#include "formats/tensors.h"
#include "quant/grouped.h"

typedef struct fr_checkpoint fr_checkpoint;

/* Names the number format of a module's codes. */
typedef enum fr_storage_form {
    FR_STORAGE_GROUPED, /* integers (quant/grouped.h) */
    FR_STORAGE_FP8,     /* E4M3: value of the code * scale */
    FR_STORAGE_FP4      /* E2M1: value of the code * scale of 16 columns (NVFP4) or of 32 columns (MXFP4). If the matrix
                         * has a scale too, the columns' scale is first multiplied or divided by the matrix's scale */
} fr_storage_form;

/* Says how the integers of a line are packed. A line is a row or a column of codes (fr_code_lines).
 *     STREAM  into 32-bit words from their lowest bits on; an integer may begin in one word and end in the next
 *     WORDS   like STREAM, but no integer crosses into the next word, so the last bits of a word may be unused
 *     AWQ     8 integers of 4 bits in a word, in AWQ's order
 *     BYTES   one signed byte for each integer, which is stored minus 2^(bits - 1) */
typedef enum fr_code_packing { FR_PACKED_STREAM, FR_PACKED_WORDS, FR_PACKED_AWQ, FR_PACKED_BYTES } fr_code_packing;

/* Describes lines of integers. The words of a line are word_step bytes apart, and the lines are line_step bytes
 * apart. */
typedef struct fr_code_lines {
    const fr_tensor *tensor; /* NULL if no integers are stored */
    uint64_t word_step, line_step;
    fr_code_packing packing;
    uint8_t bits;
} fr_code_lines;

typedef struct fr_storage {
    const char *method; /* name that users see: "AWQ", "GPTQ", ... */
    fr_storage_form form;
    size_t rows, cols;
    size_t first;            /* index of this matrix's row 0 in the tensors, which may hold several experts one after
                              * the other */
    fr_grouping grouping;    /* FP8 and FP4 use only its member `group` */
    size_t groups;           /* number of scales in a row */
    fr_code_lines codes;     /* each line is a row, or in AWQ's packing a column */
    fr_code_lines zeros;     /* each line has the zero points of all rows for one group */
    bool zeros_less_one;     /* each real zero point is the stored one plus 1, modulo 2^bits */
    const fr_tensor *scales; /* the scale of (row, group) has the index row / scale_rows * row_step + group *
                              * group_step */
    size_t scale_rows, row_step, group_step;
    const fr_tensor *biases;    /* biases, in the same shape as the scales; NULL if there are none */
    const fr_tensor *group_of;  /* [cols] the group of each column; NULL if the group is column / group size */
    bool exponents;             /* scales are bytes e, which mean 2^(e - 127) (MXFP4 and MXFP8) */
    const fr_tensor *of_matrix; /* NVFP4: the scale of the whole matrix, one float; NULL if there is none */
    bool divides;               /* NVFP4: the scale of 16 columns is divided by the matrix's scale; otherwise it is
                                 * multiplied by that scale */
} fr_storage;

/* Replaces the checkpoint's list of tensors by one in which each quantized module is a tensor MODULE.weight. The list
 * of the stored tensors becomes checkpoint->parts. Does nothing for a folder without quantized modules. Fails, with
 * the name of the tensor, if forerun cannot read a storage, or if the shapes of its tensors do not fit each other. */
fr_status fr_storage_read(fr_checkpoint *checkpoint);

/* Changes the number of columns of an MLX matrix to `cols`, and chooses the bits of a code and the group size that fit
 * this number. The shapes of codes and scales fit several combinations, and a folder may omit the settings of single
 * modules, so fr_storage_read may have chosen a wrong combination. Returns false if the codes and scales do not fit
 * `cols` columns. */
bool fr_storage_refit(const fr_checkpoint *files, const fr_tensor *tensor, uint64_t cols);

enum { FR_STORAGE_PARTS = 6 };

/* Gives the tensors from which a module's values are decoded, and returns the number of these tensors. */
size_t fr_storage_parts(const fr_storage *storage, const fr_tensor *parts[FR_STORAGE_PARTS]);

/* Returns the number of modules whose matrices are stacked in the same tensors; 1 if the tensors hold only this
 * module. */
size_t fr_storage_stacked(const fr_storage *storage);

/* Returns the bytes of all tensors of the module. If several experts are stacked in the tensors, the result is one
 * expert's share. */
uint64_t fr_storage_bytes(const fr_storage *storage);

/* Unpacks `count` rows of integers from row `row` on, with their scales and zero points or biases, into the caller's
 * arrays. Many rows in one call are faster, because some packings keep neighbouring rows together. The storage must be
 * FR_STORAGE_GROUPED and have no group_of. */
void fr_storage_unpack(const fr_storage *storage, size_t row, size_t count, const fr_grouped_row *rows);

/* Decodes columns [begin, end) of a row. */
void fr_storage_decode(const fr_storage *storage, size_t row, size_t begin, size_t end, float *values);

/* Returns the scale of a row and group. For NVFP4 the matrix's scale is included. */
float fr_storage_scale(const fr_storage *storage, size_t row, size_t group);

/* Fails with FR_INPUT if a scale or bias of rows [begin, end) is not finite, or if an FP8 code is NaN. Error lines
 * call the folder `where`. */
fr_status fr_storage_check(const fr_storage *storage, size_t begin, size_t end, const char *where);

#endif
