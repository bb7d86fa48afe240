/* Importances of the columns of each tensor, which quantize reads from an importance matrix (formats/imatrix.h).
 *
 * In: a file, and the tensors that will be written. Out: the importances of these tensors' columns, and the keys by
 * which the written file names the source of the importances, as llama-quantize writes them. */
#ifndef FR_SRC_CONVERT_IMPORTANCES_H
#define FR_SRC_CONVERT_IMPORTANCES_H

#include "formats/gguf_write.h"
#include "formats/imatrix.h"
#include "src/convert/outputs.h"

#define FR_IMPORTANCES_KEYS "quantize.imatrix."

typedef struct fr_importances {
    const char *path; /* NULL: no file was given, and all columns count equally */
    fr_imatrix matrix;
} fr_importances;

/* Opens the file. After a failure nothing is open. The path must outlive the importances. */
fr_status fr_importances_open(fr_importances *importances, const char *path);
void fr_importances_close(fr_importances *importances);

/* Checks that the importances belong to the tensors in `outputs`. FR_INPUT if a tensor has not as many columns as
 * importances, or if the file has importances for none of the tensors. note: NULL, or a function that gets a line about
 * matrices for which the file has no importances. */
fr_status fr_importances_check(const fr_importances *importances, const fr_outputs *outputs,
                               void (*note)(const char *line));

/* Gives the columns' importances, [matrices, cols]; NULL if all columns count equally. */
const float *fr_importance_of(const fr_importances *importances, const fr_output *output);

/* Writes the keys that say where the importances come from. */
void fr_importances_put(const fr_importances *importances, fr_gguf_writer *writer);

#endif
