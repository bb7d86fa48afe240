/* What quantize makes of an importance matrix (formats/imatrix.h): how much the columns of each tensor matter.
 *
 * In: a file, the tensors that will be written. Out: their columns' importances, and what the written file says of
 * where they are from, as llama-quantize does. */
#ifndef FR_SRC_CONVERT_IMPORTANCES_H
#define FR_SRC_CONVERT_IMPORTANCES_H

#include "formats/gguf_write.h"
#include "formats/imatrix.h"
#include "src/convert/outputs.h"

#define FR_IMPORTANCES_KEYS "quantize.imatrix."

typedef struct fr_importances {
    const char *path; /* NULL: none were given, all columns are alike */
    fr_imatrix matrix;
} fr_importances;

/* A failure leaves nothing open. The path must outlive it. */
fr_status fr_importances_open(fr_importances *importances, const char *path);
void fr_importances_close(fr_importances *importances);

/* Whether they are of these tensors. One of another length is FR_INPUT, and a file that has none of them. note: NULL,
 * or told of matrices that it does not have. */
fr_status fr_importances_check(const fr_importances *importances, const fr_outputs *outputs,
                               void (*note)(const char *line));

/* [matrices, cols]; NULL: the columns are alike. */
const float *fr_importance_of(const fr_importances *importances, const fr_output *output);

/* Where they are from. */
void fr_importances_put(const fr_importances *importances, fr_gguf_writer *writer);

#endif
