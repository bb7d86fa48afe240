/* Storages: how folders that quantizers published keep the weights of a module, in several tensors.
 *
 * In: a checkpoint's tensors and the description in its configuration (AWQ, GPTQ, compressed-tensors, modelopt, MLX,
 * and FP8 with scales of other shapes than quant/fp8.h has). Out: one tensor MODULE.weight of shape [rows, cols] for
 * each module, whose values are decoded from its parts a row at a time. Values are what the quantizers' own packages
 * compute from the stored scales as float32 (quant/NUMERICS.md). All shapes are checked before a storage exists, so
 * decoding stays inside the tensors; scales that are not finite are found by fr_storage_check. */
#ifndef FR_FORMATS_STORAGE_H
#define FR_FORMATS_STORAGE_H

#include "formats/tensors.h"
#include "quant/grouped.h"

typedef struct fr_checkpoint fr_checkpoint;

/* The number format of a module's codes. */
typedef enum fr_storage_form {
    FR_STORAGE_GROUPED, /* integers (quant/grouped.h) */
    FR_STORAGE_FP8,     /* E4M3: value of the code * scale */
    FR_STORAGE_NVFP4 /* E2M1: value of the code * (the scale of 16 columns, times or divided by that of the matrix) */
} fr_storage_form;

/* A packing of integers into lines: one after the other from the lowest bit of 32-bit words on, crossing from a word
 * into the next one; as many as fit in each word; 8 of 4 bits in a word in AWQ's order; or signed bytes, which stand
 * for integers that are 2^(bits - 1) larger. */
typedef enum fr_code_packing { FR_PACKED_STREAM, FR_PACKED_WORDS, FR_PACKED_AWQ, FR_PACKED_BYTES } fr_code_packing;

/* Lines of integers. The words of a line are word_step bytes apart, lines are line_step bytes apart. */
typedef struct fr_code_lines {
    const fr_tensor *tensor; /* NULL: there are none */
    uint64_t word_step, line_step;
    fr_code_packing packing;
    uint8_t bits;
} fr_code_lines;

typedef struct fr_storage {
    const char *method; /* "AWQ", "GPTQ", ...: for descriptions */
    fr_storage_form form;
    size_t rows, cols;
    size_t first;            /* the index in its tensors of row 0: experts may be stacked in them */
    fr_grouping grouping;    /* only its group has a meaning in all forms */
    size_t groups;           /* scales of a row */
    fr_code_lines codes;     /* a line is a row; with AWQ's order it is a column */
    fr_code_lines zeros;     /* a line is a group, and has the zeros of all rows */
    bool zeros_less_one;     /* a zero is one larger than stored, modulo 2^bits */
    const fr_tensor *scales; /* scale of (row, group): index row / scale_rows * row_step + group * group_step */
    size_t scale_rows, row_step, group_step;
    const fr_tensor *biases;    /* NULL, or of the scales' shape */
    const fr_tensor *group_of;  /* [cols] the group of each column; NULL: column / group */
    const fr_tensor *of_matrix; /* NVFP4: the scale of the matrix, one float */
    bool divides;               /* the scale of a group is divided by that of the matrix, not multiplied */
} fr_storage;

/* Replaces the checkpoint's directory of tensors by one in which each quantized module is a tensor MODULE.weight; the
 * directory as it was becomes checkpoint->parts. Does nothing for a folder without such modules. A storage that is not
 * built, and tensors that do not fit each other, are errors that name the tensor. */
fr_status fr_storage_read(fr_checkpoint *checkpoint);

/* Makes a matrix of MLX one of `cols` columns, if its codes and scales are as many for other bits and groups: its shape
 * does not tell these, and a folder may leave out what it says of single modules. Returns false if they are not. */
bool fr_storage_refit(const fr_checkpoint *files, const fr_tensor *tensor, uint64_t cols);

enum { FR_STORAGE_PARTS = 6 };

/* Gives the tensors that a module's values are made of; returns their number. */
size_t fr_storage_parts(const fr_storage *storage, const fr_tensor *parts[FR_STORAGE_PARTS]);

/* Returns the bytes of all parts; for one of several stacked experts, its equal share of them. */
uint64_t fr_storage_bytes(const fr_storage *storage);

/* Unpacks a row of integers (FR_STORAGE_GROUPED without group_of). The arrays of `unpacked` are the caller's. */
void fr_storage_unpack(const fr_storage *storage, size_t row, const fr_grouped_row *unpacked);

/* Decodes columns [begin, end) of a row. */
void fr_storage_decode(const fr_storage *storage, size_t row, size_t begin, size_t end, float *values);

/* Returns the scale that row and group have, in FR_STORAGE_NVFP4 with that of the matrix. */
float fr_storage_scale(const fr_storage *storage, size_t row, size_t group);

/* Checks that the scales and biases of rows [begin, end) are finite, and that no code of FP8 is NaN; FR_INPUT if not.
 * Error lines call the folder `where`. */
fr_status fr_storage_check(const fr_storage *storage, size_t begin, size_t end, const char *where);

#endif
