/* Weight matrices applied by a team: see matrix.h. */
#include "src/matrix.h"

void fr_matrix_part(const fr_team *team, const fr_matrix *matrix, size_t *begin, size_t *end) {
    fr_partition(matrix->outs, FR_OUT_UNIT, team->index, team->count, begin, end);
}

void fr_matrix_apply_part(const fr_kernels *kernels, const fr_matrix *matrix, size_t begin, size_t end, float *y,
                          size_t y_stride, const float *x, size_t x_stride, size_t rows) {
    if (begin == end) return;
    kernels->matmul[matrix->type](y + begin, y_stride, x, x_stride, rows, matrix->data + begin * matrix->row_bytes,
                                  matrix->row_bytes, matrix->cols, end - begin);
}

void fr_matrix_apply(const fr_team *team, const fr_kernels *kernels, const fr_matrix *matrix, float *y, size_t y_stride,
                     const float *x, size_t x_stride, size_t rows) {
    size_t begin, end;
    fr_matrix_part(team, matrix, &begin, &end);
    fr_matrix_apply_part(kernels, matrix, begin, end, y, y_stride, x, x_stride, rows);
}

void fr_matrix_row(const fr_kernels *kernels, const fr_matrix *matrix, size_t out, float factor, float *row) {
    fr_dtype_decode(matrix->type, matrix->data + out * matrix->row_bytes, row, matrix->cols);
    kernels->scale(row, matrix->cols, factor);
}
