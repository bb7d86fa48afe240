/* Makes models with block types that no quantizer of this project writes.
 *
 * In: a GGUF file and a block type. Out: a copy in which Q8_0 matrices are replaced by noise in this type. A matrix is
 * replaced if each of its rows consists of whole blocks of the type. If the type has no kernel, only matrices of the
 * first layer are replaced. The bytes of a block are drawn again until its values are about as large as those of real
 * weights. The same type gives the same file. */
#ifndef FR_TESTS_NOISE_MODEL_H
#define FR_TESTS_NOISE_MODEL_H

#include "quant/dtype.h"

/* Any failure ends the test. If no matrix can be replaced in the file, this is a failure too. */
void fr_noise_model(const char *from, fr_dtype type, const char *to);

#endif
