/* Makes models with block types that no quantizer of this project writes.
 *
 * In: a GGUF file and a block type. Out: a copy in which Q8_0 matrices have become noise in this type, wherever a row
 * has whole blocks of it. For types without a kernel only the matrices of the first layer are replaced. The bytes of a
 * block are drawn again until its values are as large as those of weights. The same type gives the same file. */
#ifndef FR_TESTS_NOISE_MODEL_H
#define FR_TESTS_NOISE_MODEL_H

#include "quant/dtype.h"

/* Ends the test at any failure, and if no matrix was replaced. */
void fr_noise_model(const char *from, fr_dtype type, const char *to);

#endif
