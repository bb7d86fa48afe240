/* Importances of the columns of each tensor, which quantize reads from an importance matrix (formats/imatrix.h).
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

/* Opens the file. A failure leaves nothing open. The path must outlive the importances. */
fr_status fr_importances_open(fr_importances *importances, const char *path);
void fr_importances_close(fr_importances *importances);

/* Checks that the importances belong to these tensors. FR_INPUT for one of another length, and for a file that has none
 * of them. note: NULL, or called with a line about matrices that it does not have. */
fr_status fr_importances_check(const fr_importances *importances, const fr_outputs *outputs,
                               void (*note)(const char *line));

/* Gives the columns' importances, [matrices, cols]; NULL if the columns are alike. */
const float *fr_importance_of(const fr_importances *importances, const fr_output *output);

/* Writes the keys that say where the importances come from. */
void fr_importances_put(const fr_importances *importances, fr_gguf_writer *writer);

#endif
